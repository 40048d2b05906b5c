// What the tests may see and set of a communicator's inside.
#pragma once

#include "comm/communicator.hpp"

namespace uzip {

class CommunicatorInspector {
 public:
  explicit CommunicatorInspector(Communicator& comm) : comm_(comm) {}

  /// As if so many collectives, and messages to and from each rank, had been before.
  void set_sequence(uint32_t next) {
    comm_.next_sequence_ = next;
    comm_.next_sent_.assign(comm_.processes_.size(), next);
    comm_.next_arrival_.assign(comm_.processes_.size(), next);
  }
  /// Messages that wait for a call, and calls that others have given up.
  size_t remembered() const { return comm_.held_.size() + comm_.failed_ahead_.size(); }

 private:
  Communicator& comm_;
};

}  // namespace uzip
