// CRC-32C of memory of a device, the value of base/crc32c.hpp. Used by checksums.cu.
//
// A checksum is a polynomial's remainder, and that of a sum is the sum of the remainders: each thread takes every so many'th
// unit of 16 bytes, multiplies what it has by a power of x and adds the next one. In the end it multiplies by another power,
// for what follows its last unit, and all results are added up. Multiplying by a fixed power takes four looks at tables.
// Units are counted from the end, where a row of them has one for each thread of a block, so tables don't depend on the length.
#pragma once

#include "gpu/cooperative.hpp"
#include "gpu/crc_arithmetic.hpp"

namespace uzip::gpu {

inline constexpr unsigned kChecksumUnit = 16;
inline constexpr unsigned kChecksumRow = kThreads * kChecksumUnit;

/// Products with a fixed power, by byte of the other factor.
struct CrcTable {
  uint32_t of_byte[4][256];

  UZIP_DEVICE uint32_t times(uint32_t a) const {
    return of_byte[0][a & 0xffu] ^ of_byte[1][a >> 8 & 0xffu] ^ of_byte[2][a >> 16 & 0xffu] ^
           of_byte[3][a >> 24];
  }
};
struct ChecksumLoopTables {
  CrcTable word;  ///< x^32
  CrcTable step;  ///< x^(bits of kBlocks rows)
};
/// For `kBlocks` thread blocks at most: row r is of block r % kBlocks.
template <unsigned kBlocks>
struct ChecksumTables {
  ChecksumLoopTables loop;
  uint32_t after_thread[kThreads];        ///< powers for the units of a row behind that of a thread
  uint32_t after_block[kBlocks];          ///< for rows behind that of a block
};

/// Memory of a device that one checksum at a time uses: zeros, to which every kernel leaves it.
struct ChecksumState {
  uint32_t sum;
  uint32_t exited;
};

template <unsigned kBlocks>
struct ChecksumArgs {
  const uint8_t* begin;
  const uint8_t* end;
  const ChecksumTables<kBlocks>* tables;
  ChecksumState* state;
  uint32_t after;  ///< x^(32 - 8 bytes between `end` and the end of its unit)
  uint32_t start;  ///< what an all-ones register at `begin` becomes
  uint32_t* crc;   ///< in memory that the device can write
};

inline void fill_crc_table(uint32_t power, CrcTable& table) {
  for (unsigned k = 0; k < 4; ++k)
    for (uint32_t byte = 0; byte < 256; ++byte)
      table.of_byte[k][byte] = crc_multiply(byte << (8 * k), power);
}
template <unsigned kBlocks>
void fill_checksum_tables(ChecksumTables<kBlocks>& tables) {
  fill_crc_table(crc_power_of_x(32), tables.loop.word);
  fill_crc_table(crc_power_of_x(uint64_t{8} * kChecksumRow * kBlocks), tables.loop.step);
  uint32_t power = kCrcOne;
  for (unsigned t = kThreads; t-- > 0; power = crc_multiply(power, crc_power_of_x(8 * kChecksumUnit)))
    tables.after_thread[t] = power;
  const uint32_t row = power;
  power = kCrcOne;
  for (unsigned b = 0; b < kBlocks; ++b, power = crc_multiply(power, row))
    tables.after_block[b] = power;
}
/// Fills in what depends on the place and length of the data; returns the thread blocks to start.
template <unsigned kBlocks>
unsigned plan_checksum(const void* data, uint64_t bytes, ChecksumArgs<kBlocks>& args) {
  args.begin = static_cast<const uint8_t*>(data);
  args.end = args.begin + bytes;
  const uint64_t behind = (0 - reinterpret_cast<uintptr_t>(args.end)) % kChecksumUnit;
  args.after = crc_power_of_x(kCrcOrder + 32 - 8 * behind);
  args.start = crc_multiply(~0u, crc_power_of_x(bytes % kCrcOrder * 8));
  const uint64_t before = reinterpret_cast<uintptr_t>(args.begin) % kChecksumUnit;
  const uint64_t rows = (before + bytes + behind + kChecksumRow - 1) / kChecksumRow;
  return static_cast<unsigned>(rows < 1 ? 1 : rows < kBlocks ? rows : kBlocks);
}

struct ChecksumShared {
  ChecksumLoopTables tables;
  uint32_t sums[kGroups];
};

template <unsigned kBlocks>
class Checksum {
 public:
  UZIP_DEVICE Checksum(const ChecksumArgs<kBlocks>& args, ChecksumShared& shared)
      : args_(args),
        shared_(shared),
        end_((reinterpret_cast<uintptr_t>(args.end) + kChecksumUnit - 1) / kChecksumUnit * kChecksumUnit),
        begin_(reinterpret_cast<uintptr_t>(args.begin)) {}

  UZIP_DEVICE void run() {
    constexpr unsigned kUnits = sizeof(ChecksumLoopTables) / 16;
    for (unsigned i = thread_index(); i < kUnits; i += kThreads)
      reinterpret_cast<uint4*>(&shared_.tables)[i] = reinterpret_cast<const uint4*>(&args_.tables->loop)[i];
    sync();
    const uint32_t own = crc_multiply(sum_units(), args_.tables->after_thread[thread_index()]);
    const uint32_t group = group_xor(own);
    if (lane_index() == 0) shared_.sums[group_index()] = group;
    sync();
    if (thread_index() != 0) return;
    uint32_t all = 0;
    for (unsigned g = 0; g < kGroups; ++g) all ^= shared_.sums[g];
    add_to_all(crc_multiply(all, args_.tables->after_block[block_index()]));
  }

 private:
  UZIP_DEVICE static uint32_t group_xor(uint32_t value) {
    for (unsigned distance = kGroupLanes / 2; distance > 0; distance /= 2)
      value ^= shuffle(value, lane_index() ^ distance);
    return value;
  }

  /// Address of this thread's unit of a row.
  UZIP_DEVICE uintptr_t unit_of(uint64_t row) const {
    return end_ - (row * kThreads + kThreads - thread_index()) * kChecksumUnit;
  }

  /// A unit that may begin before the data, or end behind them; zeros stand for what does not exist.
  UZIP_DEVICE uint4 load_some(uintptr_t unit) const {
    const auto last = reinterpret_cast<uintptr_t>(args_.end);
    uint32_t words[4] = {0, 0, 0, 0};
    UZIP_NO_UNROLL
    for (unsigned i = 0; i < kChecksumUnit; ++i) {
      const uintptr_t at = unit + i;
      // Far before the data, the address may have wrapped.
      const bool exists = at - begin_ < last - begin_;
      const uint32_t byte = exists ? *reinterpret_cast<const uint8_t*>(at) : 0;
      UZIP_UNROLL
      for (unsigned w = 0; w < 4; ++w)
        if (i / 4 == w) words[w] |= byte << (8 * (i % 4));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  UZIP_DEVICE void step(uint32_t (&sums)[4], const uint4& unit) const {
    const CrcTable& table = shared_.tables.step;
    sums[0] = table.times(sums[0]) ^ unit.x;
    sums[1] = table.times(sums[1]) ^ unit.y;
    sums[2] = table.times(sums[2]) ^ unit.z;
    sums[3] = table.times(sums[3]) ^ unit.w;
  }

  /// This thread's units, as if nothing came behind the last one's row.
  UZIP_DEVICE uint32_t sum_units() const {
    const uint64_t rows = (end_ - begin_ + kChecksumRow - 1) / kChecksumRow;
    uint32_t sums[4] = {0, 0, 0, 0};
    if (rows > block_index()) {
      uint64_t row = block_index() + (rows - 1 - block_index()) / kBlocks * kBlocks;
      // The first row and the last one may not be whole; in all others nothing is missing.
      const auto load = [&](uint64_t r) { return load_some(unit_of(r)); };
      if (row == rows - 1) {
        step(sums, load(row));
        if (row < kBlocks) return join(sums);
        row -= kBlocks;
      }
      constexpr unsigned kAtATime = 4;
      while (row >= kAtATime * kBlocks) {
        uint4 units[kAtATime];
        UZIP_UNROLL
        for (unsigned k = 0; k < kAtATime; ++k)
          units[k] = *reinterpret_cast<const uint4*>(unit_of(row - k * kBlocks));
        UZIP_UNROLL
        for (unsigned k = 0; k < kAtATime; ++k) step(sums, units[k]);
        row -= kAtATime * kBlocks;
      }
      for (; row >= kBlocks; row -= kBlocks)
        step(sums, *reinterpret_cast<const uint4*>(unit_of(row)));
      step(sums, row == 0 ? load(0) : *reinterpret_cast<const uint4*>(unit_of(row)));
    }
    return join(sums);
  }

  UZIP_DEVICE uint32_t join(const uint32_t (&sums)[4]) const {
    const CrcTable& word = shared_.tables.word;
    return word.times(word.times(word.times(sums[0]) ^ sums[1]) ^ sums[2]) ^ sums[3];
  }

  /// The last thread block has the result.
  UZIP_DEVICE void add_to_all(uint32_t own) const {
    ChecksumState& state = *args_.state;
    atomic_xor(&state.sum, own);
    fence_device();
    if (atomic_add(&state.exited, 1) + 1 != grid_size()) return;
    fence_device();
    const uint32_t sum = atomic_xor(&state.sum, 0);
    state.sum = 0;
    state.exited = 0;
    *args_.crc = ~(crc_multiply(sum, args_.after) ^ args_.start);
  }

  const ChecksumArgs<kBlocks>& args_;
  ChecksumShared& shared_;
  uintptr_t end_;  ///< of the last unit
  uintptr_t begin_;
};

}  // namespace uzip::gpu
