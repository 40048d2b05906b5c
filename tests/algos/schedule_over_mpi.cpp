// Carries out an algorithm's schedules over MPI, one step after the other as they become ready, and
// prints how long it took and whether the sums are right. simgrid_test.sh runs it in SimGrid's
// SMPI, whose network model is not ours.
//
//   schedule_over_mpi OP:ALGORITHM COUNT REDUCE_SPEED
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

using uzip::Schedule;
using uzip::Shape;
using uzip::Slice;
using uzip::Slot;
using uzip::Step;
using uzip::Verb;

constexpr double kFlopsPerSecond = 1e9;  // of the hosts in the platform file

// One rank's schedule in execution. All-reduce out of place only: the buffers are vectors.
class Execution {
 public:
  Execution(const Schedule& schedule, size_t count, int rank, double reduce_speed)
      : schedule_(schedule), reduce_speed_(reduce_speed) {
    memory_[0].assign(count, static_cast<uint32_t>(rank + 1));
    memory_[1].resize(count);
    memory_[2].resize(schedule.scratch_elements);
    for (const Step& step : schedule.steps) waits_for_.push_back(step.depends_on.size());
  }

  void run() {
    for (uint32_t i = 0; i < schedule_.steps.size(); ++i) {
      if (waits_for_[i] == 0) start(i);
    }
    while (!requests_.empty() || !local_.empty()) {
      if (!local_.empty()) {
        const uint32_t step = local_.front();
        local_.erase(local_.begin());
        execute(schedule_.steps[step]);
        retire(step);
        continue;
      }
      int index = 0;
      MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &index, MPI_STATUS_IGNORE);
      const uint32_t step = steps_[static_cast<size_t>(index)];
      requests_.erase(requests_.begin() + index);
      steps_.erase(steps_.begin() + index);
      retire(step);
    }
  }

  bool is_sum(int ranks) const {
    const uint32_t sum = static_cast<uint32_t>(ranks * (ranks + 1) / 2);
    return std::all_of(memory_[1].begin(), memory_[1].end(),
                       [&](uint32_t value) { return value == sum; });
  }

 private:
  uint32_t* at(const Slice& slice) {
    return memory_[static_cast<size_t>(slice.slot)].data() + slice.offset;
  }

  void start(uint32_t number) {
    const Step& step = schedule_.steps[number];
    MPI_Request request;
    if (step.verb == Verb::kSend) {
      MPI_Isend(at(step.src), static_cast<int>(step.src.length), MPI_UINT32_T, step.peer,
                static_cast<int>(step.message), MPI_COMM_WORLD, &request);
    } else if (step.verb == Verb::kRecv) {
      MPI_Irecv(at(step.dst), static_cast<int>(step.dst.length), MPI_UINT32_T, step.peer,
                static_cast<int>(step.message), MPI_COMM_WORLD, &request);
    } else {
      local_.push_back(number);
      return;
    }
    requests_.push_back(request);
    steps_.push_back(number);
  }

  void execute(const Step& step) {
    uint32_t* dst = at(step.dst);
    if (step.verb == Verb::kCopy) {
      std::memmove(dst, at(step.src), step.src.length * sizeof *dst);
      return;
    }
    for (size_t i = 0; i < step.dst.length; ++i) {
      uint32_t sum = 0;
      for (const Slice& source : step.sources) sum += at(source)[i];
      dst[i] = sum;
    }
    const double bytes = static_cast<double>(step.sources.size() * step.dst.length * sizeof *dst);
    smpi_execute_flops(bytes / reduce_speed_ * kFlopsPerSecond);
  }

  void retire(uint32_t step) {
    for (uint32_t later : schedule_.dependents[step]) {
      if (--waits_for_[later] == 0) start(later);
    }
  }

  const Schedule& schedule_;
  double reduce_speed_;
  std::vector<uint32_t> memory_[3];  // by slot
  std::vector<size_t> waits_for_;
  std::vector<uint32_t> local_;
  std::vector<MPI_Request> requests_;
  std::vector<uint32_t> steps_;  // of the requests
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string name = argc == 4 ? argv[1] : "";
  const uzip::Algorithm* algorithm =
      name.starts_with("allreduce:")
          ? uzip::find_algorithm(uzip::Coll::kAllreduce, name.substr(name.find(':') + 1))
          : nullptr;
  if (algorithm == nullptr) {
    std::fprintf(stderr, "usage: schedule_over_mpi allreduce:ALGORITHM COUNT REDUCE_SPEED\n");
    return 2;
  }
  const size_t count = std::strtoull(argv[2], nullptr, 10);
  const Shape shape = uzip::even_shape(uzip::Coll::kAllreduce, size, count);
  const Schedule schedule = uzip::build_schedule(*algorithm, shape, uzip::Form::kPlain, rank);
  Execution execution(schedule, count, rank, std::strtod(argv[3], nullptr));
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  execution.run();
  const double mine = MPI_Wtime() - begin;
  double longest = 0;
  MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const int right = execution.is_sum(size);
  int all_right = 0;
  MPI_Reduce(&right, &all_right, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("time_us %.3f %s\n", 1e6 * longest, all_right ? "right" : "wrong");
  MPI_Finalize();
  return all_right || rank != 0 ? 0 : 1;
}
