#!/usr/bin/env python3
"""usage: decode_frame.py FRAME [EXPECTED]

Decodes a frame file (header, plain part, coded part) as docs/FORMAT.md describes it, with the standard
library only. Writes the elements to standard output, or compares them with the file EXPECTED.
This is a second reading of the specification, so it shares nothing with the library; it is slow.
"""
import struct
import sys

#        uzip_dtype_t: (size, is float)
TYPES = {0: (1, False), 1: (1, False), 2: (4, False), 3: (4, False), 4: (8, False), 5: (8, False),
         6: (2, True), 7: (2, True), 8: (4, True), 9: (8, True), 10: (1, True), 11: (1, True)}


class Corrupt(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Corrupt(what)


def pad(x, alignment):
    return (x + alignment - 1) // alignment * alignment


def ceil64(x):
    return (x + 63) // 64


class Bytes:
    """A part that is read from front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(count <= len(self.data) - self.at, "a section ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def skip_to(self, alignment):
        self.take(pad(self.at, alignment) - self.at)


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def unpack_groups(section, count, width):
    """Section 3.4, "Bit order"."""
    result = []
    for group in range(ceil64(count)):
        words = [int.from_bytes(section[8 * (group * width + b):8 * (group * width + b + 1)], "little")
                 for b in range(width)]
        for i in range(min(64, count - 64 * group)):
            result.append(sum((words[b] >> i & 1) << b for b in range(width)))
    return result


class Record:
    def __init__(self, head, q):
        self.q = q
        self.s, self.stored, self.value, self.place = (head.number(1) for _ in range(4))
        check(self.s <= 8, "s")
        check(self.stored < 1 << self.s, "stored")
        check(self.value < 1 << self.s and self.value & self.stored == 0, "value")
        check(self.place < 4, "place")
        if self.s < 8:
            self.read_levels(head)

    def read_levels(self, head):
        count = head.number(1)
        check(count <= 4, "levels")
        packed = head.number(2)
        widths = [packed >> 4 * l & 15 for l in range(4)]
        check(head.number(1) == 0, "reserved")
        check(all(1 <= w <= 4 for w in widths[:count]) and not any(widths[count:]), "widths")
        self.widths = widths[:count]
        self.counts = [self.q]
        for _ in range(count):
            self.counts.append(head.number(4))
            check(self.counts[-1] <= self.counts[-2], "escapes")
        self.symbols = [head.take((1 << w) - 1) for w in self.widths]
        check(all(symbol < 1 << (8 - self.s) for level in self.symbols for symbol in level), "symbol")
        head.skip_to(4)

    def read(self, plain, coded):
        """The bytes of the sequence."""
        low = self.read_stored(coded if self.place & 1 else plain)
        if self.s == 8:
            return low
        fields = self.read_fields(coded if self.place & 2 else plain)
        return bytes(field << self.s | bits for field, bits in zip(fields, low))

    def read_stored(self, part):
        if self.stored == 0xff:
            return part.take(pad(self.q, 8))[:self.q]
        mask = [bit for bit in range(8) if self.stored >> bit & 1]
        packed = unpack_groups(part.take(8 * len(mask) * ceil64(self.q)), self.q, len(mask))
        return bytes(self.value | sum((bits >> i & 1) << bit for i, bit in enumerate(mask))
                     for bits in packed)

    def read_fields(self, part):
        if not self.widths:
            if self.s == 0:
                return part.take(pad(self.q, 8))[:self.q]
            return unpack_groups(part.take(8 * (8 - self.s) * ceil64(self.q)), self.q, 8 - self.s)
        codes = [unpack_groups(part.take(8 * w * ceil64(count)), count, w)
                 for w, count in zip(self.widths, self.counts)]
        fields = part.take(pad(self.counts[-1], 8))[:self.counts[-1]]
        for level in reversed(range(len(codes))):
            escape = (1 << self.widths[level]) - 1
            check(codes[level].count(escape) == self.counts[level + 1], "number of escapes")
            escaped = iter(fields)
            fields = [next(escaped) if code == escape else self.symbols[level][code]
                      for code in codes[level]]
        return fields


def bits_of(sequence, count):
    return [sequence[i // 8] >> i % 8 & 1 for i in range(count)]


def rotate_right(value, by, bits):
    by %= bits
    return (value >> by | value << (bits - by)) & ((1 << bits) - 1)


def decode_constant(coded, values, size):
    value = coded.number(8)
    check(value < 1 << 8 * size, "constant")
    exceptions = coded.number(4)
    check(exceptions < values and coded.number(4) == 0, "exceptions")
    result = [value] * values
    positions = [coded.number(2) for _ in range(exceptions)]
    coded.skip_to(8)
    check(all(p < values for p in positions), "position")
    check(all(p < q for p, q in zip(positions, positions[1:])), "order of positions")
    for position in positions:
        result[position] = coded.number(size)
    coded.skip_to(8)
    return result


def decode_block(plain, coded, values, size):
    bits = 8 * size
    kind, flags, rotation, reserved = (coded.number(1) for _ in range(4))
    check(coded.number(4) == values and reserved == 0, "head")
    if kind == 2:
        check(flags == 0 and rotation == 0, "flags")
        return decode_constant(coded, values, size)
    check(kind == 1 and flags < 4 and rotation < bits, "kind")
    delta, zeros = flags & 1, flags & 2
    kept, zero_sign = values, 0
    if zeros:
        kept, zero_sign = coded.number(4), coded.number(1)
        check(coded.take(3) == bytes(3) and kept <= values and zero_sign <= 2, "zeros")
    base = coded.number(8) if delta else 0
    check(base < 1 << bits, "base")
    kept_record = Record(coded, 8 * ceil64(values)) if zeros else None
    sign_record = Record(coded, 8 * ceil64(values - kept)) if zeros and zero_sign == 2 else None
    records = [Record(coded, kept) for _ in range(size)]
    coded.skip_to(8)

    kept_bits = bits_of(kept_record.read(plain, coded), values) if zeros else [1] * values
    check(sum(kept_bits) == kept, "kept values")
    sign_bits = (bits_of(sign_record.read(plain, coded), values - kept) if sign_record
                 else [zero_sign] * (values - kept))
    planes = [record.read(plain, coded) for record in records]
    ordinary = []
    previous = base
    for i in range(kept):
        value = int.from_bytes(bytes(plane[i] for plane in planes), "big")
        value = rotate_right(value, rotation, bits)
        if delta:
            difference = value >> 1 ^ -(value & 1)
            value = previous = (previous + difference) % (1 << bits)
        ordinary.append(rotate_right(value, 1, bits))
    ordinary, signs = iter(ordinary), iter(sign_bits)
    return [next(ordinary) if keep else next(signs) << (bits - 1) for keep in kept_bits]


def decode_lev(plain, coded, count, size):
    head = Bytes(coded)
    block_log2, reserved, blocks = head.number(1), head.take(3), head.number(4)
    check(12 <= block_log2 <= 16 and reserved == bytes(3), "block_log2")
    check(blocks == -(-count >> block_log2), "blocks")
    table = [(head.number(4), head.number(4)) for _ in range(blocks)]
    head.skip_to(16)
    check(all(a % 16 == 0 and b % 16 == 0 for a, b in table), "table")
    check(sum(a for a, _ in table) == len(plain), "plain part")
    check(sum(b for _, b in table) + head.at == len(coded), "coded part")
    plain, elements = Bytes(plain), bytearray()
    for index, (plain_bytes, coded_bytes) in enumerate(table):
        values = min(1 << block_log2, count - (index << block_log2))
        block = decode_block(Bytes(plain.take(plain_bytes)), Bytes(head.take(coded_bytes)), values, size)
        elements += b"".join(value.to_bytes(size, "little") for value in block)
    return bytes(elements)


def decode_frame(data):
    check(len(data) >= 64, "header")
    (magic, version, codec, dtype, flags, count, _coll, _op, _plan, _sequence, _call_count, plain_bytes,
     coded_bytes, checksum, *reserved) = struct.unpack("<IBBBBQBBHIQQQI3I", data[:64])
    check(magic == 0x465a5a55 and version == 1 and dtype in TYPES and flags < 4, "header")
    check(not any(reserved), "reserved")
    size, is_float = TYPES[dtype]
    plain, coded = data[64:64 + plain_bytes], data[64 + plain_bytes:]
    check(len(plain) == plain_bytes and len(coded) == coded_bytes, "length of the file")
    if codec == 0:
        check(plain_bytes == count * size and coded_bytes == 0, "lengths of a raw frame")
        elements = plain
    else:
        check(codec == 1 and is_float and count > 0, "codec")
        elements = decode_lev(plain, coded, count, size)
    if flags & 1:
        check(crc32c(elements) == checksum, "checksum")
    return elements


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    with open(arguments[0], "rb") as file:
        data = file.read()
    try:
        elements = decode_frame(data)
    except Corrupt as reason:
        sys.exit(f"{arguments[0]}: corrupt: {reason}")
    if len(arguments) == 1:
        sys.stdout.buffer.write(elements)
        return
    with open(arguments[1], "rb") as file:
        if file.read() != elements:
            sys.exit(f"{arguments[0]}: decodes to something else than {arguments[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
