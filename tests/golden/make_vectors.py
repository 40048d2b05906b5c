#!/usr/bin/env python3
"""usage: make_vectors.py

Writes the frames of tests/golden/vectors that this library's encoder would not make, though
docs/FORMAT.md allows them, and those of vectors/reject, each of which breaks one rule. An encoder
without judgement: every choice is spelled out below. Needs numpy. The frames that the library made
come from tests/codec/golden_frames_test.cpp.
"""
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
from uzip_decode import Corrupt, TYPES, ceil64, crc32c, decode_frame, pad  # noqa: E402

INT8, UINT8, INT32, UINT32, INT64, UINT64, FP16, BF16, FP32, FP64, E4M3, E5M2 = range(12)
NAMES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "fp16", "bf16", "fp32", "fp64",
         "fp8_e4m3fn", "fp8_e5m2"]
PLANES, CONSTANT = 1, 2
DELTA, ZEROS = 1, 2
CHECKSUM = 1


def padded(data, alignment):
    return data + bytes(pad(len(data), alignment) - len(data))


def pack(things, width):
    """FORMAT.md 3.4, bit order."""
    groups = np.zeros((ceil64(len(things)), 64), np.uint8)
    groups.reshape(-1)[:len(things)] = things
    bits = np.stack([groups >> b & 1 for b in range(width)], axis=1) if width else groups[:, :0]
    return np.packbits(bits, axis=-1, bitorder="little").tobytes()


class Rec:
    """A record: how a sequence is to be stored. Without symbols the most frequent fields get codes."""

    def __init__(self, s=8, stored=0xff, value=0, place=0, widths=(), symbols=None):
        self.s, self.stored, self.value, self.place = s, stored, value, place
        self.widths, self.symbols = list(widths), symbols

    def encode(self, sequence):
        """(record, stored bits, fields); the sequence must fit the record."""
        head = bytes([self.s, self.stored, self.value, self.place])
        low = sequence & ((1 << self.s) - 1)
        assert ((low & ~self.stored & 0xff) == self.value).all(), "the constant bits vary"
        mask = [bit for bit in range(8) if self.stored >> bit & 1]
        if self.stored == 0xff:
            stored = padded(sequence.tobytes(), 8)
        else:
            stored = pack(sum(((low >> bit & 1) << i for i, bit in enumerate(mask)),
                              np.zeros(len(low), np.uint8)), len(mask))
        if self.s == 8:
            return head, stored, b""
        fields, counts, symbol_bytes, sections = sequence >> self.s, [], b"", b""
        for level, width in enumerate(self.widths):
            symbols = self._symbols(level, width, fields)
            code_of = np.full(256, (1 << width) - 1, np.uint8)
            for code, symbol in reversed(list(enumerate(symbols))):
                code_of[symbol] = code
            codes = code_of[fields]
            sections += pack(codes, width)
            fields = fields[codes == (1 << width) - 1]
            counts.append(len(fields))
            symbol_bytes += bytes(symbols)
        if self.widths or self.s == 0:
            sections += padded(fields.tobytes(), 8)
        else:
            sections += pack(fields, 8 - self.s)
        nibbles = self.widths + [0] * (4 - len(self.widths))
        head += bytes([len(self.widths), nibbles[0] | nibbles[1] << 4, nibbles[2] | nibbles[3] << 4, 0])
        head += struct.pack(f"<{len(counts)}I", *counts) + padded(symbol_bytes, 4)
        return head, stored, sections

    def _symbols(self, level, width, fields):
        if self.symbols is not None:
            return self.symbols[level]
        values, counts = np.unique(fields, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        best = [int(values[i]) for i in order[:(1 << width) - 1]]
        return best + [0] * ((1 << width) - 1 - len(best))


class Planes:
    """A plane block. `records` are those of the planes, top first."""

    def __init__(self, records, delta=False, zeros=False, rotation=0, base=0, kept=Rec(), sign=Rec(),
                 grant=(0, 0)):
        self.records, self.delta, self.zeros, self.rotation = records, delta, zeros, rotation
        self.base, self.kept, self.sign, self.grant = base, kept, sign, grant

    def encode(self, values):
        word, size = values.dtype.type, values.dtype.itemsize
        bits = 8 * size
        head = struct.pack("<BBBBI", PLANES, DELTA * self.delta + ZEROS * self.zeros, self.rotation, 0,
                           len(values))
        sequences = []
        if self.zeros:
            is_kept = (values << word(1)) != 0
            signs = (values[~is_kept] >> word(bits - 1)).astype(np.uint8)
            both = len(signs) > 0 and signs.min() != signs.max()
            sign = 2 if both else int(signs[0]) if len(signs) else 0
            head += struct.pack("<IB3x", np.count_nonzero(is_kept), sign)
            sequences.append((self.kept, self._bitmap(is_kept)))
            if both:
                sequences.append((self.sign, self._bitmap(signs)))
            values = values[is_kept]
        rotated = self._rotate(values, 1, bits)
        if self.delta:
            head += struct.pack("<Q", self.base)
            difference = np.diff(rotated, prepend=word(self.base))
            rotated = difference << word(1) ^ word(0) - (difference >> word(bits - 1))
        rotated = self._rotate(rotated, self.rotation, bits)
        planes = rotated.view(np.uint8).reshape(-1, size)
        sequences += [(record, planes[:, size - 1 - p].copy()) for p, record in enumerate(self.records)]
        parts = [b"", b""]
        for record, sequence in sequences:
            record_bytes, stored, fields = record.encode(sequence)
            head += record_bytes
            parts[record.place & 1] += stored
            parts[record.place >> 1] += fields
        coded = padded(head, 8) + parts[1]
        return padded(parts[0], 16) + bytes(self.grant[0]), padded(coded, 16) + bytes(self.grant[1])

    @staticmethod
    def _rotate(values, by, bits):
        word = values.dtype.type
        return values << word(by) | values >> word(bits - by) if by else values

    @staticmethod
    def _bitmap(bits):
        return np.packbits(np.pad(bits.astype(np.uint8), (0, -len(bits) % 64)), bitorder="little")


class Constant:
    def encode(self, values):
        constant = np.bincount(np.unique(values, return_inverse=True)[1]).argmax()
        constant = np.unique(values)[constant]
        positions = np.flatnonzero(values != constant)
        coded = struct.pack("<BBBBIQII", CONSTANT, 0, 0, 0, len(values), int(constant), len(positions), 0)
        coded += padded(positions.astype("<u2").tobytes(), 8) + padded(values[positions].tobytes(), 8)
        return b"", padded(coded, 16)


class Frame:
    """What frame() made, and of what."""

    def __init__(self, data, values):
        self.data, self.elements = data, values.tobytes()


def frame(dtype, values, blocks=None, log2=12, flags=CHECKSUM):
    """A raw frame without blocks; the last one serves for the rest of the values."""
    plain, coded = values.tobytes(), b""
    if blocks:
        pieces = [values[i:i + (1 << log2)] for i in range(0, len(values), 1 << log2)]
        encoded = [blocks[min(i, len(blocks) - 1)].encode(piece) for i, piece in enumerate(pieces)]
        head = struct.pack("<B3xI", log2, len(encoded))
        head += b"".join(struct.pack("<II", len(p), len(c)) for p, c in encoded)
        plain = b"".join(p for p, _ in encoded)
        coded = padded(head, 16) + b"".join(c for _, c in encoded)
    checksum = crc32c(values.view(np.uint8)) if flags & CHECKSUM else 0
    header = struct.pack("<IBBBBQ16xQQI12x", 0x465a5a55, 1, 1 if blocks else 0, dtype, flags, len(values),
                         len(plain), len(coded), checksum)
    return Frame(header + plain + coded, values)


# ---- The vectors ----------------------------------------------------------------------------------

RANDOM = np.random.Generator(np.random.PCG64(20261130))


def bits_of(dtype, count, spread=1.0):
    """Numbers around 1 as words of the type: cut off, not rounded."""
    size = TYPES[dtype][0]
    word = np.dtype(f"<u{size}")
    doubles = (spread * RANDOM.standard_normal(count)).view("<u8")
    if dtype == FP64:
        return doubles
    exponent_bits, mantissa_bits = {FP16: (5, 10), BF16: (8, 7), FP32: (8, 23), E4M3: (4, 3), E5M2: (5, 2)}[dtype]
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = np.clip((doubles >> 52 & 2047).astype(int) - 1023 + bias, 0, (1 << exponent_bits) - 2)
    mantissa = (doubles & ((1 << 52) - 1)) >> (52 - mantissa_bits)
    magnitude = exponent.astype("<u8") << mantissa_bits | mantissa
    return (doubles >> 63 << (8 * size - 1) | magnitude).astype(word)


def with_zeros(values, signs):
    """Most become zeros: of the signs that the string names."""
    word = values.dtype.type
    zeros = np.array([{"+": 0, "-": 1}[c] for c in signs], values.dtype) << word(8 * values.dtype.itemsize - 1)
    where = RANDOM.random(len(values)) < 0.7
    return np.where(where, zeros[RANDOM.integers(len(zeros), size=len(values))], values).astype(values.dtype)


def walk(dtype, count, step):
    word = np.dtype(f"<u{TYPES[dtype][0]}")
    start = bits_of(dtype, 1)[0]
    return (np.cumsum(RANDOM.integers(-step, step, count)) + int(start)).astype(word)


ALL = Rec()  # as it is


def good_vectors():
    for dtype, name in enumerate(NAMES):
        size = TYPES[dtype][0]
        yield f"raw_{name}", frame(dtype, RANDOM.integers(256, size=11 * size).astype(np.uint8).view(f"<u{size}"))
    yield "empty_fp32", frame(FP32, np.zeros(0, "<u4"))
    yield "no_checksum_bf16", frame(BF16, bits_of(BF16, 130), [Planes([Rec(0, 0, 0, 2, [3]), ALL])], flags=0)
    # Menus of levels: each width in each place, one to four of them.
    for widths in ([1], [2], [4], [1, 1], [2, 3], [4, 1], [3, 2, 1], [1, 4, 2], [1, 2, 3, 4], [4, 3, 2, 1]):
        menu = "".join(map(str, widths))
        yield f"levels_{menu}_bf16", frame(BF16, bits_of(BF16, 333, 40), [Planes([Rec(0, 0, 0, 2, widths), ALL])])
    yield "levels_33_fp64", frame(FP64, bits_of(FP64, 200), [Planes([Rec(0, 0, 0, 2, [3, 3])] + 7 * [ALL])])
    # Tails: of words, of groups, of blocks.
    for count in (1, 2, 63, 64, 65, 127, 128, 129):
        yield f"tail_{count}_fp16", frame(FP16, bits_of(FP16, count), [Planes([Rec(3, 7, 0, 2, [2, 2]), ALL])])
    for log2, count in ((12, 3 * 4096 + 1), (13, 8193), (14, 16385), (15, 32769), (16, 65537)):
        values = np.where(np.arange(count) % 4096 == 17, 0x81, 0x35).astype(np.uint8)
        yield f"blocks_of_2_{log2}_fp8_e5m2", frame(E5M2, values, [Constant()], log2)
    yield "whole_block_fp8_e4m3fn", frame(E4M3, bits_of(E4M3, 4096), [Planes([Rec(3, 7, 0, 2, [3, 2])])])
    yield "different_blocks_fp8_e4m3fn", frame(
        E4M3, np.concatenate([bits_of(E4M3, 4096), np.full(4096, 0x38, np.uint8), bits_of(E4M3, 77)]),
        [Planes([Rec(4, 0x0f, 0, 2, [2])]), Constant(), Planes([Rec(0, 0, 0, 2, [4, 4])])])
    # Fields that are not coded; stored bits in the coded part; places of every kind.
    yield "fields_as_they_are_fp32", frame(
        FP32, bits_of(FP32, 150), [Planes([Rec(0, 0, 0, 2), Rec(3, 7, 0, 0), Rec(5, 31, 0, 3), Rec(8, 255, 0, 1)])])
    for place in range(4):
        yield f"place_{place}_bf16", frame(BF16, bits_of(BF16, 150), [Planes([Rec(2, 3, 0, place, [3]), Rec(8, 255, 0, place)])])
    # Bits that do not vary, in all positions.
    narrow = bits_of(FP32, 180) & 0xfffe4100 | 0x41
    yield "constant_bits_fp32", frame(
        FP32, narrow, [Planes([Rec(0, 0, 0, 2, [3]), Rec(), Rec(8, 0x82, 0), Rec(8, 0x01, 0x82)])])
    yield "constant_low_bits_and_levels_fp32", frame(
        FP32, narrow, [Planes([Rec(0, 0, 0, 2, [2, 2]), Rec(2, 3, 0, 0, [1]), Rec(7, 2, 0, 2, [1]), Rec(1, 1, 0, 0, [2])])])
    # Zeros out of the planes: signs of each kind, none and nothing but zeros.
    for name, signs in (("plus", "+"), ("minus", "-"), ("both", "+-")):
        yield f"zeros_{name}_bf16", frame(BF16, with_zeros(bits_of(BF16, 300), signs), [Planes(
            [Rec(0, 0, 0, 2, [3]), ALL], zeros=True, kept=Rec(8, 255, 0, 3), sign=Rec(8, 255, 0, 3))])
    yield "zeros_none_fp16", frame(FP16, bits_of(FP16, 65) | 1, [Planes([Rec(3, 7, 0, 2, [3]), ALL], zeros=True)])
    yield "zeros_only_fp32", frame(FP32, with_zeros(np.zeros(90, "<u4"), "+-"), [Planes(4 * [ALL], zeros=True)])
    yield "zeros_coded_bitmaps_fp32", frame(FP32, with_zeros(bits_of(FP32, 500), "+++++++-"), [Planes(
        [Rec(0, 0, 0, 2, [3])] + 3 * [ALL], zeros=True, kept=Rec(0, 0, 0, 3, [2, 2]), sign=Rec(0, 0, 0, 3, [1]))])
    # Differences: each size, with and without rotation, with a base, after zeros were taken out.
    for dtype, step in ((E5M2, 2), (BF16, 5), (FP32, 3000), (FP64, 10 ** 8)):
        size = TYPES[dtype][0]
        records = [Rec(0, 0, 0, 2, [2, 1])] + (size - 1) * [ALL]
        yield f"delta_{NAMES[dtype]}", frame(dtype, walk(dtype, 140, step), [Planes(records, delta=True, base=77)])
        turned = [Rec(8, 255, 0, p & 1) for p in range(size)]
        yield f"delta_rotated_{NAMES[dtype]}", frame(dtype, walk(dtype, 70, step), [
            Planes(turned, delta=True, rotation=8 * size - 3)])
    yield "delta_without_zeros_fp32", frame(FP32, with_zeros(walk(FP32, 260, 3000), "+-"), [Planes(
        [Rec(4, 15, 0, 2, [1])] + 3 * [ALL], delta=True, zeros=True, rotation=5, base=1 << 31)])
    for rotation in (1, 7, 8, 15):
        yield f"rotated_{rotation}_fp16", frame(FP16, bits_of(FP16, 66), [Planes([Rec(4, 15, 0, 2, [3]), ALL], rotation=rotation)])
    # Blocks at fixed distances, symbols that are listed twice or never occur.
    yield "larger_grants_fp8_e5m2", frame(E5M2, bits_of(E5M2, 4500), [Planes([Rec(3, 7, 0, 2, [3])], grant=(64, 160))])
    yield "symbols_twice_bf16", frame(BF16, bits_of(BF16, 130), [Planes(
        [Rec(0, 0, 0, 2, [2, 3], [[127, 127, 3], [126, 125, 126, 124, 0, 255, 1]]), ALL])])
    yield "special_values_bf16", frame(BF16, np.arange(0, 65536, 97).astype("<u2"), [Planes([Rec(0, 0, 0, 2, [3]), ALL])])
    yield "special_values_fp8_e4m3fn", frame(E4M3, np.arange(256).astype(np.uint8)[::-1].copy(), [Planes([Rec(3, 7, 0, 2, [3])])])
    # Section 3.6: groups that can be read alone.
    yield "groups_fp32", frame(FP32, bits_of(FP32, 4096 + 100), [Planes([Rec(0, 0, 0, 2, [3])] + 3 * [ALL])])
    yield "groups_fp8_e4m3fn", frame(E4M3, bits_of(E4M3, 515), [Planes([Rec(3, 7, 0, 2, [3])])])
    yield "groups_fp16", frame(FP16, bits_of(FP16, 321), [Planes([Rec(3, 7, 0, 3, [3]), ALL])])


def put(data, at, form, value):
    return data[:at] + struct.pack("<" + form, value) + data[at + struct.calcsize(form):]


def reject_vectors():
    """One broken rule each, in the order of FORMAT.md. No frame has a checksum that could help."""
    raw = frame(BF16, bits_of(BF16, 6)).data
    for name, at, form, value in (
            ("magic", 0, "I", 0x465a5a56), ("version", 4, "B", 2), ("version_0", 4, "B", 0), ("codec", 5, "B", 2),
            ("type", 6, "B", 12), ("flag", 7, "B", CHECKSUM | 4), ("split", 7, "B", CHECKSUM | 2),
            ("checksum_without_flag", 7, "B", 0), ("checksum", 48, "I", 0xbad), ("count", 8, "Q", 7),
            ("count_too_large", 8, "Q", 1 << 62), ("plain_bytes_of_raw", 32, "Q", 10),
            ("coded_bytes_of_raw", 40, "Q", 1), ("reserved_0", 52, "I", 1), ("reserved_1", 56, "I", 1),
            ("reserved_2", 60, "I", 1 << 31)):
        yield f"header_{name}", put(raw, at, form, value)
    yield "header_cut", raw[:63]
    yield "body_cut", raw[:-1]

    # Coded part: head 8, table 8; descriptor: head 8, top record 20 (8, two escapes, 1 + 3 symbols), low record 4.
    values = bits_of(BF16, 100)
    lev = frame(BF16, values, [Planes([Rec(1, 1, 0, 2, [1, 2]), ALL])], flags=0).data
    coded = 64 + number(lev, 32, "Q")
    block, record = coded + 16, coded + 24
    escapes = [number(lev, record + 8, "I"), number(lev, record + 12, "I")]
    yield "lev_of_integers", put(lev, 6, "B", INT32)
    yield "lev_of_nothing", put(lev, 8, "Q", 0)
    yield "lev_plain_bytes", put(put(lev, 32, "Q", 112), 40, "Q", len(lev) - 64 - 112)
    yield "lev_lengths_too_large", put(lev, 40, "Q", 200 + 1024 + 2)
    for name, at, form, value in (
            ("block_log2_small", 0, "B", 11), ("block_log2_large", 0, "B", 17), ("reserved", 2, "B", 1),
            ("blocks", 4, "I", 2), ("blocks_0", 4, "I", 0), ("plain_unaligned", 8, "I", 120),
            ("plain", 8, "I", 112), ("coded", 12, "I", 16)):
        yield f"table_{name}", put(lev, coded + at, form, value)
    for name, at, form, value in (
            ("kind", 0, "B", 3), ("flags", 1, "B", 4), ("rotation", 2, "B", 16), ("reserved", 3, "B", 1),
            ("values", 4, "I", 99)):
        yield f"block_{name}", put(lev, block + at, form, value)
    for name, at, form, value in (
            ("s", 0, "B", 9), ("stored", 1, "B", 2), ("value", 2, "B", 2), ("value_stored", 2, "B", 1),
            ("place", 3, "B", 4), ("levels", 4, "B", 5), ("width_0", 5, "B", 0x20), ("width_5", 5, "B", 0x25),
            ("width_unused", 6, "B", 0x01), ("reserved", 7, "B", 1), ("escapes_more_than_fields", 8, "I", 101),
            ("escapes_more_than_codes", 12, "I", escapes[0] + 1), ("escapes_too_many", 8, "I", escapes[0] + 1),
            ("escapes_too_few", 8, "I", escapes[0] - 1), ("escapes_too_few_in_level_1", 12, "I", escapes[1] - 1),
            ("symbol", 16, "B", 128)):
        yield f"record_{name}", put(lev, record + at, form, value)
    codes = block + 32
    yield "codes_another_escape", put(lev, codes, "Q", flip_one_zero(number(lev, codes, "Q")))

    zeros = Planes([Rec(0, 0, 0, 2, [3]), ALL], zeros=True, kept=Rec(8, 255, 0, 1), sign=Rec(8, 255, 0, 1))
    sparse = frame(BF16, with_zeros(values | 1, "+-"), [zeros], flags=0).data
    block = 64 + number(sparse, 32, "Q") + 16
    yield "zeros_kept_too_many", put(sparse, block + 8, "I", 101)
    yield "zeros_kept_wrong", put(sparse, block + 8, "I", number(sparse, block + 8, "I") - 1)
    yield "zeros_sign", put(sparse, block + 12, "B", 3)
    yield "zeros_reserved", put(sparse, block + 14, "B", 1)
    smooth = frame(BF16, walk(BF16, 100, 5), [Planes([Rec(0, 0, 0, 2, [1]), ALL], delta=True)], flags=0).data
    block = 64 + number(smooth, 32, "Q") + 16
    yield "delta_base", put(smooth, block + 8, "Q", 1 << 16)

    odd = np.full(100, 0x3f80, "<u2")
    odd[[3, 50, 99]] = 7
    constant = frame(BF16, odd, [Constant()], flags=0).data
    block = 64 + 16
    for name, at, form, value in (
            ("flags", 1, "B", 1), ("rotation", 2, "B", 1), ("value", 10, "B", 1), ("exceptions", 16, "I", 100),
            ("exceptions_beyond_the_block", 16, "I", 9), ("reserved", 20, "I", 1),
            ("positions_order", 26, "H", 3), ("position", 28, "H", 100)):
        yield f"constant_{name}", put(constant, block + at, form, value)


def number(data, at, form):
    return struct.unpack_from("<" + form, data, at)[0]


def flip_one_zero(word):
    return word | ~word & (word + 1)


def main():
    folder = HERE / "vectors"
    (folder / "reject").mkdir(parents=True, exist_ok=True)
    for name, vector in good_vectors():
        elements, length = decode_frame(np.frombuffer(vector.data, np.uint8))
        assert length == len(vector.data) and elements.tobytes() == vector.elements, name
        (folder / f"{name}.frame").write_bytes(vector.data)
        (folder / f"{name}.bin").write_bytes(vector.elements)
    for name, data in reject_vectors():
        try:
            decode_frame(np.frombuffer(data, np.uint8))
        except Corrupt:
            (folder / "reject" / f"{name}.frame").write_bytes(data)
        else:
            sys.exit(f"{name} is a good frame")


if __name__ == "__main__":
    main()
