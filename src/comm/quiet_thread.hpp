// Threads of the library's own: they take no signals, so that the program's handlers never run in them.
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>

namespace uzip {

/// A thread with a name of 15 characters at most; not joinable if the system has no more of them.
template <class Body>
std::thread start_quiet_thread(const char* name, Body&& body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::forward<Body>(body));
    pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace uzip
