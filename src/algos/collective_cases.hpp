// The shapes and forms in which schedules are proved: by the tests, and by uzip_sched(1).
#pragma once

#include "algos/algorithm.hpp"

#include <string>
#include <vector>

namespace uzip {

/// What passes a schedule has gone through.
enum class Form { kPlain, kLowered, kSplit, kFused, kSplitFused };
inline constexpr Form kForms[] = {Form::kPlain, Form::kLowered, Form::kSplit, Form::kFused,
                                  Form::kSplitFused};
const char* form_name(Form form);

Schedule build_schedule(const Algorithm& algorithm, const Shape& shape, Form form, int rank);
/// One for each rank.
std::vector<Schedule> build_schedules(const Algorithm& algorithm, const Shape& shape, Form form);

/// `count` elements in the sense of the public calls: of the whole vector, or of every rank's
/// block.
Shape even_shape(Coll coll, int size, size_t count, bool in_place = false);

/// Sizes around everything that could go wrong, uneven and empty blocks, in place and not.
std::vector<Shape> awkward_shapes(Coll coll, int size);

/// "allgather ring, 3 ranks, counts 1 0 7, in place, split"
std::string describe(const Algorithm& algorithm, const Shape& shape, Form form);

/// Number of steps with this verb (and part).
size_t count_steps(const Schedule& schedule, Verb verb, Part part = Part::kWhole);

}  // namespace uzip
