// Stands between an engine and its transport and delivers in ways that the loopback does not:
// bodies that are gone after the announcement, messages that come twice or name another process.
#pragma once

#include "base/transport.hpp"

#include <functional>
#include <memory>
#include <span>

namespace uzip {

struct Meddling {
  /// Bodies that the transport has are offered for the time of on_message() only.
  bool fleeting = false;
  /// progress() says that it moved something, always.
  bool always_moving = false;
  /// Announce this message a second time?
  std::function<bool(const Incoming&)> repeat = nullptr;
  /// Changes what is announced.
  std::function<void(Incoming&)> alter = nullptr;
  /// Sees where bodies are taken to.
  std::function<void(std::span<std::byte>)> taken = nullptr;

  /// May make the second copy of a body that wants one.
  std::function<void(std::span<const std::byte>, SecondCopy&)> second = nullptr;

  /// Puts it around a transport.
  std::unique_ptr<Transport> operator()(std::unique_ptr<Transport> transport) const;
};

}  // namespace uzip
