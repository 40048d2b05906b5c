#include "algos/collective_cases.hpp"

#include "algos/passes.hpp"

#include <algorithm>
#include <set>

namespace uzip {

const char* form_name(Form form) {
  switch (form) {
    case Form::kPlain:
      return "plain";
    case Form::kLowered:
      return "lowered";
    case Form::kSplit:
      return "split";
    case Form::kFused:
      return "fused";
    case Form::kSplitFused:
      return "split and fused";
  }
  return "unknown";
}

Schedule build_schedule(const Algorithm& algorithm, const Shape& shape, Form form, int rank) {
  const Shape part = shape.of_rank(rank);
  Schedule schedule = algorithm.build(part, rank);
  if (form == Form::kPlain) return schedule;
  const bool split = form == Form::kSplit || form == Form::kSplitFused;
  schedule = lower_codec(schedule, part, rank, split);
  const bool fused = form == Form::kFused || form == Form::kSplitFused;
  return fused ? fuse(schedule, part, rank) : schedule;
}

std::vector<Schedule> build_schedules(const Algorithm& algorithm, const Shape& shape, Form form) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < shape.size; ++rank) {
    schedules.push_back(build_schedule(algorithm, shape, form, rank));
  }
  return schedules;
}

Shape even_shape(Coll coll, int size, size_t count, bool in_place) {
  if (coll == Coll::kAlltoallv) {
    const size_t pairs = static_cast<size_t>(size) * static_cast<size_t>(size);
    return {coll, size, std::vector<size_t>(pairs, count), in_place, 0};
  }
  std::vector<size_t> counts = is_of_vectors(coll) ? even_shares(count, size)
                               : coll == Coll::kBarrier
                                   ? std::vector<size_t>()
                                   : std::vector<size_t>(static_cast<size_t>(size), count);
  return {coll, size, std::move(counts), in_place, 0};
}

namespace {

// Blocks of many lengths; the shares of an all-reduce may be uneven, too.
std::vector<std::vector<size_t>> uneven_counts(int size) {
  const size_t ranks = static_cast<size_t>(size);
  std::vector<size_t> last_only(ranks);
  last_only.back() = 5;
  std::vector<size_t> first_only(ranks);
  first_only.front() = 1000;
  std::vector<size_t> gaps(ranks);
  std::vector<size_t> growing(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    gaps[rank] = rank % 3 == 1 ? 0 : 3 * rank + 1;
    growing[rank] = rank * rank;
  }
  return {last_only, first_only, gaps, growing};
}

// For each pair of ranks the product of theirs, so that what goes there comes back, too, as in place
// it has to.
std::vector<size_t> uneven_pairs(const std::vector<size_t>& counts) {
  std::vector<size_t> pairs;
  for (size_t from : counts) {
    for (size_t to : counts) pairs.push_back(from * to);
  }
  return pairs;
}

}  // namespace

std::vector<Shape> awkward_shapes(Coll coll, int size) {
  const size_t ranks = static_cast<size_t>(size);
  std::vector<Shape> shapes;
  if (coll == Coll::kBarrier) return {even_shape(coll, size, 0)};
  for (size_t count : std::set<size_t>{0, 1, 7, ranks - 1, ranks, ranks + 1, 1000, 65537}) {
    shapes.push_back(even_shape(coll, size, count));
  }
  for (std::vector<size_t>& counts : uneven_counts(size)) {
    if (coll == Coll::kAlltoallv) counts = uneven_pairs(counts);
    if (coll != Coll::kAlltoall) shapes.push_back({coll, size, counts, false, 0});
  }
  const size_t apart = shapes.size();
  for (size_t i = 0; i < apart; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().in_place = true;
  }
  // Every third shape knows of hosts: pairs, ranks dealt round, or a host of one.
  for (size_t i = 2; i < shapes.size(); i += 3) {
    for (int rank = 0; rank < size; ++rank) {
      const int hosts[] = {rank / 2, rank % 3, rank == 0 ? 0 : 1};
      shapes[i].hosts.push_back(hosts[i / 3 % 3]);
    }
  }
  // Every fourth of sockets: three ranks each, numbered backwards; dealt round; or one rank apart. So there are hosts with
  // and without sockets, sockets on one host, and groups of many sizes.
  for (size_t i = 1; i < shapes.size(); i += 4) {
    for (int rank = 0; rank < size; ++rank) {
      const int sockets[] = {(size - 1 - rank) / 3, rank % 2, rank == size / 2 ? 0 : 1};
      shapes[i].sockets.push_back(sockets[i / 4 % 3]);
    }
  }
  if (is_rooted(coll)) {
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i].root = static_cast<int>(i * 5 % ranks);
  }
  return shapes;
}

std::string describe(const Algorithm& algorithm, const Shape& shape, Form form) {
  std::string text = std::string(coll_name(algorithm.coll)) + " " + algorithm.name + ", " +
                     std::to_string(shape.size) + " ranks, counts";
  for (size_t count : shape.counts) text += " " + std::to_string(count);
  if (!shape.hosts.empty()) {
    text += ", hosts";
    for (int host : shape.hosts) text += " " + std::to_string(host);
  }
  if (!shape.sockets.empty()) {
    text += ", sockets";
    for (int socket : shape.sockets) text += " " + std::to_string(socket);
  }
  if (is_rooted(shape.coll)) text += ", root " + std::to_string(shape.root);
  return text + (shape.in_place ? ", in place, " : ", ") + form_name(form);
}

size_t count_steps(const Schedule& schedule, Verb verb, Part part) {
  return static_cast<size_t>(
      std::count_if(schedule.steps.begin(), schedule.steps.end(),
                    [&](const Step& step) { return step.verb == verb && step.part == part; }));
}

}  // namespace uzip
