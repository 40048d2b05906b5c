#!/usr/bin/env python3
"""usage: uzip_decode.py [--by-group] FILE [OUT]

Decodes the frames in FILE, which stand one after another (header, plain part, coded part), and writes
their elements, little-endian, to OUT or to standard output. Needs numpy, and nothing of libuzipcoll:
it is a second reading of docs/FORMAT.md, whose sections the comments name. Exit status 1, with a
sentence on standard error, when a frame breaks a rule of that page.

--by-group reads every group of 64 values on its own, from the last to the first, as section 3.6
describes; only for frames that allow it.
"""
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("uzip_decode.py: this Python has no numpy (Debian: python3-numpy, for /usr/bin/python3)")

HEADER = np.dtype([("magic", "<u4"), ("version", "u1"), ("codec", "u1"), ("type", "u1"), ("flags", "u1"),
                   ("count", "<u8"), ("coll", "u1"), ("op", "u1"), ("plan", "<u2"), ("sequence", "<u4"),
                   ("call_count", "<u8"), ("plain_bytes", "<u8"), ("coded_bytes", "<u8"), ("checksum", "<u4"),
                   ("reserved", "<u4", 3)])
RAW, LEV = 0, 1
HAS_CHECKSUM, SPLIT = 1, 2
# Section 1.1: bytes of each type, and whether it is a float.
TYPES = [(1, False), (1, False), (4, False), (4, False), (8, False), (8, False),
         (2, True), (2, True), (4, True), (8, True), (1, True), (1, True)]


class Corrupt(Exception):
    """A rule marked [check] is broken."""


def check(condition, what):
    if not condition:
        raise Corrupt(what)


def pad(x, alignment):
    return -(-x // alignment) * alignment


def ceil64(x):
    return -(-x // 64)


class Part:
    """Bytes that are read from front to back, never beyond their end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(count <= len(self.data) - self.at, "a part ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size).tobytes(), "little")

    def skip_to(self, alignment):
        self.take(pad(self.at, alignment) - self.at)


def crc32c(data):
    """Bit by bit over the table's index, byte by byte over the data."""
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    crc = 0xffffffff
    for byte in data.tobytes():
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


# ---- Section 3.4: records and their sections ------------------------------------------------------


def unpack(section, count, width):
    """Section 3.4, bit order: `count` things of `width` bits, as bytes."""
    if width == 0:
        return np.zeros(count, np.uint8)
    bits = np.unpackbits(section, bitorder="little").reshape(-1, width, 64)
    things = np.zeros((len(bits), 64), np.uint8)
    for b in range(width):
        things |= bits[:, b, :] << b
    return things.reshape(-1)[:count]


class Record:
    """How one sequence of `q` bytes is stored."""

    def __init__(self, head, q):
        self.q = q
        self.s, self.stored, self.value, self.place = (head.number(1) for _ in range(4))
        check(self.s <= 8, "s")
        check(self.stored < 1 << self.s, "stored")
        check(self.value < 1 << self.s and self.value & self.stored == 0, "value")
        check(self.place < 4, "place")
        self.mask = [bit for bit in range(8) if self.stored >> bit & 1]
        self.widths, self.counts, self.symbols = [], [q], []
        if self.s < 8:
            self._read_levels(head)

    def _read_levels(self, head):
        levels = head.number(1)
        check(levels <= 4, "levels")
        packed = head.number(2)
        widths = [packed >> 4 * l & 15 for l in range(4)]
        check(head.number(1) == 0, "reserved")
        check(all(1 <= w <= 4 for w in widths[:levels]) and not any(widths[levels:]), "widths")
        self.widths = widths[:levels]
        for _ in range(levels):
            self.counts.append(head.number(4))
            check(self.counts[-1] <= self.counts[-2], "escapes")
        self.symbols = [head.take((1 << w) - 1) for w in self.widths]
        check(all((symbols >> (8 - self.s) == 0).all() for symbols in self.symbols if self.s), "symbols")
        head.skip_to(4)

    def sizes(self):
        """Bytes of the stored bits, and of the fields."""
        q = self.q
        stored = pad(q, 8) if self.stored == 0xff else 8 * len(self.mask) * ceil64(q)
        if self.s == 8:
            return stored, 0
        if not self.widths:
            return stored, pad(q, 8) if self.s == 0 else 8 * (8 - self.s) * ceil64(q)
        codes = sum(8 * w * ceil64(c) for w, c in zip(self.widths, self.counts))
        return stored, codes + pad(self.counts[-1], 8)

    def read(self, plain, coded):
        """The bytes of the sequence."""
        stored, fields = self.sizes()
        low = self._low_bits((coded if self.place & 1 else plain).take(stored))
        if self.s == 8:
            return low
        return self._fields(Part((coded if self.place & 2 else plain).take(fields))) << self.s | low

    def _low_bits(self, section):
        if self.stored == 0xff:
            return section[:self.q]
        packed = unpack(section, self.q, len(self.mask))
        low = np.full(self.q, self.value, np.uint8)
        for i, bit in enumerate(self.mask):
            low |= (packed >> i & 1) << bit
        return low

    def _fields(self, part):
        if not self.widths:
            if self.s == 0:
                return part.data[:self.q]
            return unpack(part.data, self.q, 8 - self.s)
        codes = [unpack(part.take(8 * w * ceil64(count)), count, w)
                 for w, count in zip(self.widths, self.counts)]
        fields = part.take(pad(self.counts[-1], 8))[:self.counts[-1]]
        for level in reversed(range(len(codes))):
            escape = (1 << self.widths[level]) - 1
            escaped = codes[level] == escape
            check(np.count_nonzero(escaped) == self.counts[level + 1], "number of escapes")
            coded = np.append(self.symbols[level], np.uint8(0))[codes[level]]
            coded[escaped] = fields
            fields = coded
        return fields


# ---- Sections 3.1 to 3.3: blocks ------------------------------------------------------------------


def rotate_right(values, by, bits):
    by %= bits
    if by == 0:
        return values
    return values >> values.dtype.type(by) | values << values.dtype.type(bits - by)


class Descriptor:
    """Of a plane block; `at` is where its coded sections begin."""

    def __init__(self, head, values, size, flags, rotation):
        bits = 8 * size
        check(flags < 4 and rotation < bits, "flags or rotation")
        self.values, self.size, self.rotation = values, size, rotation
        self.delta, self.zeros = bool(flags & 1), bool(flags & 2)
        self.kept, self.zero_sign, self.base = values, 0, 0
        if self.zeros:
            self.kept, self.zero_sign = head.number(4), head.number(1)
            check(not head.take(3).any(), "reserved")
            check(self.kept <= values, "kept")
            check(self.zero_sign <= 2, "zero_sign")
        if self.delta:
            self.base = head.number(8)
            check(self.base < 1 << bits, "base")
        self.kept_bits = Record(head, 8 * ceil64(values)) if self.zeros else None
        self.sign_bits = Record(head, 8 * ceil64(values - self.kept)) if self.zero_sign == 2 else None
        self.planes = [Record(head, self.kept) for _ in range(size)]
        head.skip_to(8)
        self._check_room(head)

    def _check_room(self, head):
        plain = coded = 0
        for record in [self.kept_bits, self.sign_bits] + self.planes:
            if record is not None:
                stored, fields = record.sizes()
                coded += stored * (record.place & 1) + fields * (record.place >> 1)
                plain += stored * (1 - (record.place & 1)) + fields * (1 - (record.place >> 1))
        check(coded <= len(head.data) - head.at, "coded bytes of a block")
        self.plain_bytes = plain

    def decode(self, plain, coded):
        check(self.plain_bytes <= len(plain.data), "plain bytes of a block")
        values, kept = self.values, self.kept
        if self.zeros:
            is_kept = unpack(self.kept_bits.read(plain, coded), values, 1).astype(bool)
            check(np.count_nonzero(is_kept) == kept, "number of kept values")
            signs = (unpack(self.sign_bits.read(plain, coded), values - kept, 1) if self.sign_bits
                     else np.full(values - kept, self.zero_sign))
        word = np.dtype(f"<u{self.size}")
        bits = 8 * self.size
        ordinary = np.zeros(kept, word)
        for record in self.planes:  # top plane first
            ordinary = ordinary << word.type(8 % bits) | record.read(plain, coded)
        ordinary = rotate_right(ordinary, self.rotation, bits)
        if self.delta:
            sign = word.type(0) - (ordinary & word.type(1))
            difference = ordinary >> word.type(1) ^ sign
            ordinary = np.cumsum(difference, dtype=word) + word.type(self.base)
        ordinary = rotate_right(ordinary, 1, bits)
        if not self.zeros:
            return ordinary
        result = np.empty(values, word)
        result[is_kept] = ordinary
        result[~is_kept] = signs.astype(word) << word.type(bits - 1)
        return result


def decode_constant(coded, values, size):
    """Section 3.2, after the descriptor's head."""
    word = np.dtype(f"<u{size}")
    value, exceptions, reserved = coded.number(8), coded.number(4), coded.number(4)
    check(value < 1 << 8 * size, "constant")
    check(exceptions < values, "exceptions")
    check(reserved == 0, "reserved")
    positions = coded.take(2 * exceptions).view("<u2").astype(int)
    check((positions < values).all() and (np.diff(positions) > 0).all(), "positions")
    coded.skip_to(8)
    result = np.full(values, value, word)
    result[positions] = coded.take(size * exceptions).view(word)
    coded.skip_to(8)
    return result


class LevFrame:
    """Section 3: the head, the table, and the bytes of each block."""

    def __init__(self, plain, coded, count, size):
        self.count, self.size = count, size
        head = Part(coded)
        self.log2, reserved, blocks = head.number(1), head.take(3), head.number(4)
        check(12 <= self.log2 <= 16, "block_log2")
        check(not reserved.any(), "reserved")
        check(blocks == -(-count >> self.log2), "blocks")
        table = head.take(8 * blocks).view("<u4").reshape(-1, 2).astype(np.int64)
        head.skip_to(16)
        check((table % 16 == 0).all(), "table")
        check(table[:, 0].sum() == len(plain), "plain_bytes")
        check(table[:, 1].sum() + head.at == len(coded), "coded_bytes")
        plain = Part(plain)
        self.blocks = [(plain.take(p), head.take(c)) for p, c in table.tolist()]

    def values_of(self, index):
        return min(1 << self.log2, self.count - (index << self.log2))

    def open(self, index):
        """The block's coded part behind the descriptor, and the descriptor, None if constant."""
        coded, values = Part(self.blocks[index][1]), self.values_of(index)
        kind, flags, rotation, reserved = (coded.number(1) for _ in range(4))
        check(kind in (1, 2), "kind")
        check(reserved == 0, "reserved")
        check(coded.number(4) == values, "values")
        if kind == 2:
            check(flags == 0 and rotation == 0, "flags or rotation of a constant block")
            return coded, None
        return coded, Descriptor(coded, values, self.size, flags, rotation)

    def decode(self):
        result = []
        for index, (plain, _) in enumerate(self.blocks):
            coded, descriptor = self.open(index)
            if descriptor is None:
                result.append(decode_constant(coded, self.values_of(index), self.size))
            else:
                result.append(descriptor.decode(Part(plain), coded))
        return np.concatenate(result)

    def decode_by_group(self):
        return np.concatenate([GroupReader(self, index).decode() for index in range(len(self.blocks))])


class GroupReader:
    """Section 3.6: the groups of a block in any order."""

    def __init__(self, frame, index):
        plain, _ = frame.blocks[index]
        coded, descriptor = frame.open(index)
        top = descriptor.planes[0] if descriptor else None
        if not top or descriptor.delta or descriptor.zeros or descriptor.rotation or len(top.widths) != 1 \
                or any(r.s < 8 or r.stored != 0xff or r.place for r in descriptor.planes[1:]) \
                or top.place & 2 == 0:
            raise Corrupt("not a frame whose groups can be read in any order")
        self.values, self.size, self.record = descriptor.values, frame.size, top
        groups = ceil64(self.values)
        low_part = coded.data[coded.at:] if top.place & 1 else plain
        low_bytes, _ = top.sizes()
        self.low = low_part[:low_bytes].view("<u8").reshape(groups, -1)
        codes_at = coded.at + (low_bytes if top.place & 1 else 0)
        escapes_at = codes_at + 8 * top.widths[0] * groups
        self.codes = coded.data[codes_at:escapes_at].view("<u8").reshape(groups, -1)
        self.escapes = coded.data[escapes_at:escapes_at + top.counts[1]]
        plain_at, stride = 0 if top.place & 1 else low_bytes, pad(self.values, 8)
        self.planes = [plain[plain_at + i * stride:plain_at + i * stride + self.values]
                       for i in range(self.size - 1)]
        # The escape offsets: how many escapes stand before each group.
        counts = [bin(int(np.bitwise_and.reduce(words))).count("1") for words in self.codes]
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        check(self.offsets[-1] == top.counts[1], "number of escapes")

    def value(self, group, lane):
        """One value, from a fixed number of words and bytes."""
        words = [int(word) for word in self.codes[group]]
        code = sum((word >> lane & 1) << b for b, word in enumerate(words))
        escaped = -1
        for word in words:
            escaped &= word
        if escaped >> lane & 1:
            before = bin(escaped & (1 << lane) - 1).count("1")
            field = int(self.escapes[self.offsets[group] + before])
        else:
            field = int(self.record.symbols[0][code])
        top = field << self.record.s | self.record.value
        for i, bit in enumerate(self.record.mask):
            top |= (int(self.low[group][i]) >> lane & 1) << bit
        rotated = top
        for plane in self.planes:
            rotated = rotated << 8 | int(plane[64 * group + lane])
        return rotated >> 1 | (rotated & 1) << (8 * self.size - 1)

    def decode(self):
        result = np.empty(self.values, f"<u{self.size}")
        for group in reversed(range(ceil64(self.values))):
            for lane in range(min(64, self.values - 64 * group)):
                result[64 * group + lane] = self.value(group, lane)
        return result


# ---- Section 1: frames ----------------------------------------------------------------------------


def decode_frame(data, by_group=False):
    """The elements of the first frame in `data`, and the frame's length in bytes."""
    check(len(data) >= HEADER.itemsize, "a header ends too early")
    fields = data[:HEADER.itemsize].view(HEADER)[0]
    header = {name: int(fields[name]) for name in HEADER.names if name != "reserved"}
    check(header["magic"] == 0x465a5a55, "magic")
    check(header["version"] == 1, "version")
    check(header["codec"] in (RAW, LEV), "codec")
    check(header["type"] < len(TYPES), "type")
    check(header["flags"] & ~(HAS_CHECKSUM | SPLIT) == 0, "flags")
    check(not fields["reserved"].any(), "reserved")
    check(header["flags"] & HAS_CHECKSUM or header["checksum"] == 0, "checksum without its flag")
    size, is_float = TYPES[header["type"]]
    count, plain_bytes, coded_bytes = header["count"], header["plain_bytes"], header["coded_bytes"]
    check(count * size <= 1 << 62, "count")
    if header["codec"] == RAW:
        check(plain_bytes == count * size and coded_bytes == 0, "lengths of a raw frame")
    else:
        check(is_float and count > 0, "codec for this type and count")
        check(max(plain_bytes, coded_bytes) <= count * size + 1024 + count // 64, "lengths")
    check(header["flags"] & SPLIT == 0, "only the first part of a split frame")
    end = HEADER.itemsize + plain_bytes + coded_bytes
    check(end <= len(data), "the frame is cut off")
    plain = data[HEADER.itemsize:HEADER.itemsize + plain_bytes]
    elements = plain
    if header["codec"] == LEV:
        frame = LevFrame(plain, data[HEADER.itemsize + plain_bytes:end], count, size)
        elements = (frame.decode_by_group() if by_group else frame.decode()).view(np.uint8)
    if header["flags"] & HAS_CHECKSUM:
        check(crc32c(elements) == header["checksum"], "checksum")
    return elements, end


def main(arguments):
    by_group = arguments[:1] == ["--by-group"]
    names = arguments[by_group:]
    if len(names) not in (1, 2) or names[0].startswith("-"):
        sys.exit(__doc__)
    data = np.fromfile(names[0], np.uint8)
    decoded, at = [], 0
    try:
        while at < len(data) or not decoded:
            elements, length = decode_frame(data[at:], by_group)
            decoded.append(elements.tobytes())
            at += length
    except Corrupt as rule:
        sys.exit(f"{names[0]}: frame {len(decoded)} at byte {at}: corrupt: {rule}")
    if len(names) == 2:
        with open(names[1], "wb") as file:
            file.writelines(decoded)
    else:
        sys.stdout.buffer.writelines(decoded)


if __name__ == "__main__":
    main(sys.argv[1:])
