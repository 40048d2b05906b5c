// How a communicator's calls are planned: the plans of the last shapes of calls, and those of persistent operations.
#include "comm/communicator.hpp"

#include "base/log.hpp"
#include "comm/engine.hpp"
#include "comm/user_op.hpp"

#include <algorithm>

namespace uzip {
namespace {

constexpr size_t kCachedPlans = 16;
/// Messages of calls that allocate nothing, before the lists that they are in grow.
constexpr size_t kReservedMessages = 64;

bool is_ordered(const CollArgs& args) { return args.user_op && !args.user_op->commutative; }

}  // namespace

Result<std::shared_ptr<PreparedPlan>> Communicator::plan_for(const CollArgs& args) {
  const std::span<const size_t> sent = args.pairs ? std::span(args.pairs->sent.counts) : args.counts;
  const std::span<const size_t> received = args.pairs ? std::span(args.pairs->received.counts) : std::span<const size_t>();
  const bool calibrated = calibration() && !is_point_to_point(args.kind);
  const auto matches = [&](const CallShape& shape) {
    return shape.kind == args.kind && shape.calibrated == calibrated && shape.count == args.count && shape.type == args.type &&
           shape.in_place == args.in_place && shape.ordered == is_ordered(args) &&
           shape.user_defined == (args.user_op != nullptr) && shape.root == args.root &&
           shape.options == args.options && std::ranges::equal(shape.counts, sent) &&
           std::ranges::equal(shape.recv_counts, received) &&
           (!args.neighbors || shape.neighborhood.matches(*args.neighbors));
  };
  const bool staged = args.device >= 0;
  for (size_t i = 0, candidate = last_plan_; i < plans_.size(); ++i, ++candidate) {
    if (candidate == plans_.size()) candidate = 0;
    if (plans_[candidate]->staged != staged || !matches(plans_[candidate]->plan.shape)) continue;
    last_plan_ = candidate;
    return plans_[candidate];
  }
  const int ranks = is_point_to_point(args.kind) ? 1 : size();
  CallShape shape{args.kind, args.type, args.in_place, is_ordered(args), ranks, args.count, {sent.begin(), sent.end()},
                  {received.begin(), received.end()}, args.root, {}, args.options, args.user_op != nullptr, calibrated};
  if (args.neighbors) shape.neighborhood = Neighborhood::read(*args.neighbors);
  return make_plan(shape, staged);
}

Result<std::shared_ptr<PreparedPlan>> Communicator::make_plan(const CallShape& shape, bool staged) {
  auto prepared = std::make_shared<PreparedPlan>();
  UZIP_ASSIGN_OR_RETURN(prepared->plan, selector_.select(shape));
  prepared->staged = staged;
  prepared->direct = !staged && !engine_.config().checksum && (DirectExchange::suits(prepared->plan) || DirectMessage::suits(prepared->plan));
  if (engine_.config().trace) log(LogLevel::kTrace, "%s", selector_.explain(prepared->plan).c_str());
  if (plans_.size() < kCachedPlans) plans_.emplace_back();
  plans_[next_plan_] = prepared;
  last_plan_ = next_plan_;
  next_plan_ = (next_plan_ + 1) % kCachedPlans;
  return prepared;
}

Result<std::shared_ptr<PreparedPlan>> Communicator::plan_of_today(const std::shared_ptr<PreparedPlan>& plan) {
  const CallShape& old = plan->plan.shape;
  if (!calibration() || old.calibrated || is_point_to_point(old.kind)) return plan;
  CallShape shape = old;
  shape.calibrated = true;
  return make_plan(shape, plan->staged);
}

Status Communicator::reserve(Request& request, const CollArgs& args, const std::shared_ptr<PreparedPlan>& plan) {
  UZIP_RETURN_IF_ERROR(request.use_memory_of(args));
  UZIP_RETURN_IF_ERROR(schedules_.keep_all(*plan, request.device()));
  receives_.reserve(kReservedMessages);
  sends_.reserve(kReservedMessages);
  held_.reserve(kReservedMessages);
  return request.reserve(plan);
}

}  // namespace uzip
