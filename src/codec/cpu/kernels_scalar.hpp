// Portable kernels of single values. The tables of other targets take those over for which no better one is worth its
// lines.
#pragma once

#include "codec/cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace uzip {

void scalar_delta_1(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t scalar_undelta_1(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t scalar_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
void scalar_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void scalar_delta_2(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t scalar_undelta_2(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t scalar_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
void scalar_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void scalar_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t scalar_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t scalar_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
void scalar_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void scalar_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
uint64_t scalar_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
size_t scalar_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs);
void scalar_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst);
void scalar_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void scalar_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void scalar_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void scalar_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void scalar_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void scalar_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
void scalar_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes);
void scalar_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst);
size_t scalar_repeat_length(const uint8_t* bytes, size_t count, unsigned period);

}  // namespace uzip
