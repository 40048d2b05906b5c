#include "comm/api_job.hpp"

#include "comm/api_calls.hpp"

#include <cstring>
#include <thread>

namespace uzip {

ApiJob::ApiJob(int size, const LoopbackOptions& wire, const Config& config,
               const LoopbackJob::Wrap& wrap, const gpu::PluginApi* gpu)
    : fabric_(size, wire) {
  for (int rank = 0; rank < size; ++rank) {
    std::unique_ptr<Transport> transport = fabric_.connect(rank);
    if (wrap) transport = wrap(std::move(transport));
    auto engine = Engine::create(config, std::move(transport));
    (*engine)->gpus().use(gpu);
    engines_.push_back(*engine);
    comms_.push_back(*publish(create_world(std::move(*engine))));
  }
}

ApiJob::~ApiJob() {
  run([&](int rank, uzip_comm_t) {
    EXPECT_TRUE(succeeds(uzip_comm_free(&comms_[static_cast<size_t>(rank)])));
  });
}

void ApiJob::run(const std::function<void(int, uzip_comm_t)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) threads.emplace_back(body, rank, comm(rank));
  for (std::thread& thread : threads) thread.join();
}

testing::AssertionResult succeeds(uzip_status_t status) {
  if (status == UZIP_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << uzip_status_string(status) << ": " << uzip_last_error();
}

testing::AssertionResult fails(uzip_status_t status, uzip_status_t expected, const char* said) {
  if (status != expected) {
    return testing::AssertionFailure() << uzip_status_string(status) << ": " << uzip_last_error();
  }
  if (std::strstr(uzip_last_error(), said)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << said << "' is not in: " << uzip_last_error();
}

}  // namespace uzip
