// Several ranks of the public C API in one process, each in a thread of its own, over a loopback.
#pragma once

#include "comm/loopback_job.hpp"
#include "gpu/plugin.hpp"

#include <uzipcoll/uzipcoll.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace uzip {

class ApiJob {
 public:
  explicit ApiJob(int size, const LoopbackOptions& wire = {}, const Config& config = Config(),
                  const LoopbackJob::Wrap& wrap = nullptr, const gpu::PluginApi* gpu = nullptr);
  /// Frees the communicators.
  ~ApiJob();
  ApiJob(const ApiJob&) = delete;
  ApiJob& operator=(const ApiJob&) = delete;

  int size() const { return static_cast<int>(comms_.size()); }
  uzip_comm_t comm(int rank) const { return comms_[static_cast<size_t>(rank)]; }

  /// Runs `body` for each rank in a thread of its own.
  void run(const std::function<void(int rank, uzip_comm_t comm)>& body);

 private:
  LoopbackFabric fabric_;
  std::vector<std::shared_ptr<Engine>> engines_;  // until all have freed theirs
  std::vector<uzip_comm_t> comms_;
};

/// The call succeeded; else what uzip_last_error() says.
testing::AssertionResult succeeds(uzip_status_t status);
/// The status is as expected, and so is what uzip_last_error() says.
testing::AssertionResult fails(uzip_status_t status, uzip_status_t expected, const char* said);

}  // namespace uzip
