#include "codec/guarded_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace uzip {

GuardedMemory::GuardedMemory(size_t capacity) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (capacity + page - 1) / page * page + page;
  mapped_ = usable + page;
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  begin_ = static_cast<std::byte*>(memory);
  end_ = begin_ + usable;
  if (mprotect(end_, page, PROT_NONE) != 0) std::abort();
}

GuardedMemory::~GuardedMemory() { munmap(begin_, mapped_); }

}  // namespace uzip
