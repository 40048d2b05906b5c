// The exception with which a measuring program ends: a message for the user and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace perf {

constexpr int kExitWrong = 1;  ///< wrong elements, or an operation failed
constexpr int kExitUsage = 2;  ///< an option or a setting is not allowed

class Failure : public std::runtime_error {
 public:
  Failure(int exit_status, const std::string& message)
      : std::runtime_error(message), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

/// A failure that all ranks see at the same place, so that they can still leave together.
class SharedFailure : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace perf
