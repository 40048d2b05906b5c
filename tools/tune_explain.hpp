// uzip_tune --explain: how a call would be carried out, and what else was possible, with predicted and measured times.
#pragma once

#include "base/config.hpp"
#include "comm/tuning_table.hpp"

#include <memory>
#include <string>

namespace uzip {

/// What is asked for.
struct ExplainedCall {
  CallKind kind = CallKind::kAllreduce;
  DataType type = UZIP_BF16;
  size_t bytes = 0;  ///< see tuned_bytes()
  int ranks = 2;
  int per_host = 1;  ///< ranks on each host, in a row; on a network
  LinkClass link = LinkClass::kNetwork;
};

/// Text for people. `table` may be nullptr: then everything is predicted from typical figures.
Result<std::string> explain(const ExplainedCall& call, const Config& config, std::shared_ptr<const TuningTable> table);

}  // namespace uzip
