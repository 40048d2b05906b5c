#include "algos/symmetry.hpp"

#include "algos/collective_cases.hpp"

#include <algorithm>

namespace uzip {
namespace {

// The same step but for the peer's number and where its slices are.
bool alike(const Step& a, const Step& b, int peer_of_a) {
  return a.verb == b.verb && a.part == b.part && a.message == b.message && peer_of_a == b.peer &&
         a.src.length == b.src.length && a.dst.length == b.dst.length && a.src.slot == b.src.slot &&
         a.dst.slot == b.dst.slot && a.sources.size() == b.sources.size() &&
         a.depends_on == b.depends_on;
}

bool is_image(const Schedule& first, const Schedule& image, Symmetry symmetry, int rank, int host,
              int size) {
  if (first.steps.size() != image.steps.size()) return false;
  for (size_t i = 0; i < first.steps.size(); ++i) {
    const int peer = image.steps[i].peer;
    const int moved = peer < 0 ? peer : carried(symmetry, peer, rank, host, size);
    if (!alike(image.steps[i], first.steps[i], moved)) return false;
  }
  return true;
}

}  // namespace

Symmetry find_symmetry(const Algorithm& algorithm, const Shape& shape, int host) {
  const int size = shape.size;
  const int hosts = size / host;
  const bool even = std::adjacent_find(shape.counts.begin(), shape.counts.end(),
                                       std::not_equal_to<>()) == shape.counts.end();
  if (size % host != 0 || hosts < 3 || !even) return Symmetry::kNone;
  std::vector<Schedule> first;
  for (int rank = 0; rank < host; ++rank)
    first.push_back(build_schedule(algorithm, shape, Form::kPlain, rank));

  const auto power_of_two = [](int n) { return (n & (n - 1)) == 0; };
  bool rotates = true;
  bool exchanges = power_of_two(size) && power_of_two(host);
  for (int other : {1, hosts / 2, hosts - 1}) {
    for (int i = 0; i < host && (rotates || exchanges); ++i) {
      const int rank = other * host + i;
      const Schedule image = build_schedule(algorithm, shape, Form::kPlain, rank);
      rotates = rotates && is_image(first[i], image, Symmetry::kRotation, rank, host, size);
      exchanges = exchanges && is_image(first[i], image, Symmetry::kExclusive, rank, host, size);
    }
  }
  return rotates ? Symmetry::kRotation : exchanges ? Symmetry::kExclusive : Symmetry::kNone;
}

}  // namespace uzip
