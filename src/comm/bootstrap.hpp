// How the processes of a job find each other before there is a transport: an all-gather of bytes, from the
// caller's callback or through files in a shared directory.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace uzip {

/// All-gather of byte strings of any length among the processes of a job.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Collective. `all` receives one string for each process, in rank order.
  virtual Status all_gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) = 0;
};

/// Over the caller's callback, whose all-gather has strings of one length: lengths first, then padded strings.
Result<std::unique_ptr<Bootstrap>> make_oob_bootstrap(const uzip_oob_t& oob);

/// Over files in UZIP_RENDEZVOUS, for UZIP_RANK of UZIP_SIZE processes.
Result<std::unique_ptr<Bootstrap>> make_file_bootstrap(const Config& config);

/// Compares library versions and the settings that must match. The same answer on all processes.
Status check_agreement(Bootstrap& bootstrap, const Config& config);

/// Whether `mine` is true on some process. The same answer on all.
Result<bool> is_true_somewhere(Bootstrap& bootstrap, bool mine);

}  // namespace uzip
