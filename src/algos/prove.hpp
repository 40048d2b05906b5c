// Proves an algorithm for a number of ranks: every awkward shape, in every form in which the
// library runs it, goes through the verifier. Used by uzip_sched and the tests.
#pragma once

#include "algos/collective_cases.hpp"
#include "algos/verify.hpp"

#include <optional>
#include <string>

namespace uzip {

/// A case in which an algorithm does not do what its collective promises.
struct Counterexample {
  Shape shape;
  Form form;
  std::string fault;  ///< what the verifier says
};

struct Proof {
  size_t cases = 0;                              ///< that were looked at
  size_t skipped = 0;                            ///< that the algorithm says it does not support
  size_t steps = 0;                              ///< of all ranks in all cases
  std::optional<Counterexample> counterexample;  ///< the smallest one that was found

  bool holds() const { return !counterexample && cases > 0; }
};

/// Each case is run in `orders` random legal orders, which `seed` decides.
Proof prove(const Algorithm& algorithm, int ranks, int orders, uint32_t seed);

/// The same for one case.
Proof prove_case(const Algorithm& algorithm, const Shape& shape, Form form, int orders,
                 uint32_t seed);

/// For people: the case, what is wrong, and the schedules of all ranks if they are short.
std::string print_counterexample(const Algorithm& algorithm, const Counterexample& example);

}  // namespace uzip
