// Hierarchical reduce-scatter: each host reduces what its ranks have of every block, every block on one of its ranks,
// which sends the sum to the block's rank; that one reduces the sums of all hosts.
//   M. Cho, U. Finkler, D. Kung, H. Hunter: BlueConnect: Decomposing All-Reduce for Deep Learning on Heterogeneous
//   Network Hierarchy, MLSys 2019 (the first half).
// Steps: 1 hop on the host, 1 between hosts. For H hosts of L ranks and n bytes in all blocks, a rank sends
// (H-1)/H n/L bytes to other hosts, the minimum for its host, and (L-1)/L n on its own, block by block.
// Only what goes to another host is encoded: a sum, once. The operands stand in rank order on each host, then in the
// order of the hosts: the same for all elements. Scratch: L blocks for each host, and one more from each.
#include "algos/algorithm.hpp"
#include "algos/host_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

namespace uzip {
namespace {

class Build {
 public:
  Build(const Shape& shape, int rank)
      : groups_(shape),
        rank_(rank),
        host_(groups_.host_of(rank)),
        members_(groups_.members(host_)),
        places_(groups_.places_after(host_, groups_.local_rank(rank))),
        builder_(shape, rank) {}

  Schedule schedule() {
    for_each_block([&](int block) {
      const int handler = groups_.handler(host_, block);
      if (handler != rank_) builder_.send(builder_.input_block(block), handler);
    });
    Slice own_sum;
    for_each_block([&](int block) {
      if (groups_.handler(host_, block) != rank_) return;
      const Slice sum = reduce_on_host(block);
      if (block == rank_) own_sum = sum;
      else builder_.send(sum, block);
    });
    if (groups_.hosts() > 1) reduce_between_hosts(own_sum);
    return builder_.finish();
  }

 private:
  // Beginning after the own one, so that ranks do the same as seen from where they stand.
  template <class Visit>
  void for_each_block(Visit visit) {
    for (int place : places_) visit(members_[place]);
    for (int i = 1; i < groups_.hosts(); ++i) {
      for (int block : groups_.members(rank_after(host_, i, groups_.hosts()))) visit(block);
    }
  }

  // What the ranks of this host make of a block; where it is.
  Slice reduce_on_host(int block) {
    const Slice mine = builder_.input_block(block);
    const bool last = groups_.hosts() == 1;
    if (members_.size() == 1 && !last) return mine;
    std::vector<Slice> operands(members_.size(), mine);
    for (int place : places_) {
      if (members_[place] == rank_) continue;
      operands[place] = builder_.scratch(mine.length);
      builder_.recv(members_[place], operands[place]);
    }
    const Slice sum = last ? builder_.output_block(rank_) : builder_.scratch(mine.length);
    builder_.reduce(operands, sum, last);
    return sum;
  }

  void reduce_between_hosts(const Slice& own_sum) {
    const int hosts = groups_.hosts();
    std::vector<Slice> operands(static_cast<size_t>(hosts), own_sum);
    for (int i = 1; i < hosts; ++i) {
      const int host = rank_after(host_, i, hosts);
      operands[host] = builder_.scratch(own_sum.length);
      builder_.recv(groups_.handler(host, rank_), operands[host]);
    }
    builder_.reduce(operands, builder_.output_block(rank_), true);
  }

  const HostGroups groups_;
  const int rank_;
  const int host_;
  const std::vector<int>& members_;
  const std::vector<int> places_;
  ScheduleBuilder builder_;
};

Schedule build(const Shape& shape, int rank) { return Build(shape, rank).schedule(); }

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const HostCosts costs(shape, model);
  const double on_host = bytes * (costs.ranks - 1) / costs.ranks;
  const double between = bytes / costs.shares * (costs.hosts - 1) / costs.hosts;
  return costs.in_vain + costs.on_host((costs.ranks - 1) * costs.hosts, on_host) + costs.between(costs.hosts - 1, between) +
         (on_host + between) * model.reduce_per_byte;
}

}  // namespace

extern const Algorithm reduce_scatter_hierarchical = {
    "hierarchical",
    Coll::kReduceScatter,
    "each host reduces what its ranks have of every block, and the block's rank reduces the sums of all hosts: two hops, "
    "n/L bytes to other hosts from each of L ranks; where some ranks share a host and others don't",
    [](const Shape& shape) { return shape.coll == Coll::kReduceScatter; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
