#!/usr/bin/env python3
"""make.py FOLDER: writes the GGUF files of the reader's test there, good ones and broken ones, and prints their names.

Each recipe below is one file. What the reader must say about it stands in expected.txt under the same name.
"""
import os
import re
import struct
import sys

KINDS = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
         "f32": (6, "f"), "bool": (7, "B"), "str": (8, None), "arr": (9, None), "u64": (10, "Q"), "i64": (11, "q"),
         "f64": (12, "d")}
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q6_K": (14, 256, 210),
         "I64": (27, 1, 8), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}


def u32(v):
    return struct.pack("<I", v)


def u64(v):
    return struct.pack("<Q", v)


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return u64(len(b)) + b


def value(kind, v):
    """The bytes of a value; an array is (kind of its elements, [elements])."""
    if isinstance(v, bytes):
        return v  # as it is
    if kind == "str":
        return text(v)
    if kind == "arr":
        elem, items = v
        return u32(KINDS[elem][0]) + u64(len(items)) + b"".join(value(elem, x) for x in items)
    return struct.pack("<" + KINDS[kind][1], v)


class File:
    """A GGUF file in the making; every argument that is not given takes its right value."""

    def __init__(self, magic=b"GGUF", version=3, n_tensors=None, n_keys=None, align=32):
        self.magic, self.version, self.n_tensors, self.n_keys, self.align = magic, version, n_tensors, n_keys, align
        self.keys, self.tensors, self.data = [], [], b""

    def key(self, name, kind, v):
        number = KINDS[kind][0] if isinstance(kind, str) else kind
        self.keys.append(text(name) + u32(number) + value(kind, v))
        return self

    def tensor(self, name, type="F32", ne=(4,), offset=None, n_dims=None, size=None):
        number, block, width = TYPES[type] if isinstance(type, str) else (type, 1, 4)
        if size is None:
            size = width
            for i, n in enumerate(ne):
                size *= n // block if i == 0 else n
        self.data += bytes(-len(self.data) % self.align)
        at = len(self.data) if offset is None else offset
        self.tensors.append(text(name) + u32(len(ne) if n_dims is None else n_dims) +
                            b"".join(u64(n % (1 << 64)) for n in ne) + u32(number) + u64(at))
        self.data += bytes((len(self.data) + i) % 251 for i in range(size))
        return self

    def header(self):
        return (self.magic + u32(self.version) + u64(len(self.tensors) if self.n_tensors is None else self.n_tensors) +
                u64(len(self.keys) if self.n_keys is None else self.n_keys) + b"".join(self.keys) +
                b"".join(self.tensors))

    def bytes(self):
        h = self.header()
        return h + bytes(-len(h) % self.align) + self.data if self.tensors else h


def nested(depth):
    """An array of `depth` levels, as a value."""
    return ("u8", [7]) if depth == 1 else ("arr", [nested(depth - 1)])


def small():
    return File().key("general.architecture", "str", "tiny")


def part(no, count, tensors, **more):
    f = File(**more)
    if no == 0:
        f.key("general.architecture", "str", "tiny")
    return f.key("split.no", "u16", no).key("split.count", "u16", count).key("split.tensors.count", "i32", tensors)


def cut(f, n):
    return f.bytes()[:n]


FILES = {}
OPENED = ("split-later-00002-of-00002.gguf", "split-name-lies-00002-of-00002.gguf")  # later parts that are opened themselves


def good_files():
    f = FILES
    f["good-v3.gguf"] = small().tensor("a").tensor("b", "Q8_0", (64, 3))
    f["good-v2.gguf"] = File(version=2).key("general.name", "str", "two").tensor("a")
    f["good-no-tensors.gguf"] = small()
    f["good-nothing.gguf"] = File()
    kinds = File()
    for name, low, high in (("u8", 0, 255), ("i8", -128, 127), ("u16", 0, 65535), ("i16", -32768, 32767),
                            ("u32", 0, 2**32 - 1), ("i32", -2**31, 2**31 - 1), ("u64", 0, 2**64 - 1),
                            ("i64", -2**63, 2**63 - 1), ("f32", -0.5, 1e30), ("f64", 0.1, 1e300), ("bool", 0, 1)):
        kinds.key("low." + name, name, low).key("high." + name, name, high).key("both." + name, "arr", (name, [low, high]))
    kinds.key("text", "str", "\u00fcber \"quoted\" \\ \n\x00 end").key("texts", "arr", ("str", ["", "a", "\U0001F600"]))
    f["good-every-kind.gguf"] = kinds
    f["good-nested.gguf"] = (File().key("one", "arr", nested(1)).key("four", "arr", nested(4))
                             .key("mixed", "arr", ("arr", [("str", ["x", "y"]), ("f32", []), ("bool", [1])])))
    f["good-empty-arrays.gguf"] = File().key("a", "arr", ("str", [])).key("b", "arr", ("u8", [])).key("c", "arr", ("arr", []))
    f["good-alignment-1.gguf"] = File(align=1).key("general.alignment", "u32", 1).tensor("a", "Q4_0", (32,)).tensor("b")
    f["good-alignment-4096.gguf"] = File(align=4096).key("general.alignment", "u32", 4096).tensor("a").tensor("b", "F16", (6, 2))
    f["good-alignment-65536.gguf"] = File(align=65536).key("general.alignment", "u32", 65536).tensor("a").tensor("b")
    f["good-types.gguf"] = small().tensor("f16", "F16", (3, 2, 2, 2)).tensor("q6_k", "Q6_K", (256, 2)).tensor("i64", "I64", (2,)) \
        .tensor("bf16", "BF16", (5,)).tensor("mxfp4", "MXFP4", (32, 1, 2))
    f["good-data-out-of-order.gguf"] = small().tensor("second", offset=32).tensor("first", offset=0)
    f["good-trailing-bytes.gguf"] = small().tensor("a").bytes() + b"behind the last tensor"
    f["good-strange-names.gguf"] = File().key("a\"; system(\"x\"); //", "u8", 1).tensor("blk.0.\u00fc\n*/")
    f["good-beyond-4-gib.gguf"] = beyond_4_gib
    f["good-split-00001-of-00003.gguf"] = part(0, 3, 3).tensor("a")
    f["good-split-00002-of-00003.gguf"] = part(1, 3, 3).tensor("b", "F16", (8, 2)).tensor("c")
    f["good-split-00003-of-00003.gguf"] = part(2, 3, 3)
    f["good-split-one.gguf"] = part(0, 1, 1).tensor("a")
    # Each part has its own alignment, as tools that split write it: the first part's key stands in the first only.
    f["good-split-align-00001-of-00002.gguf"] = part(0, 2, 2, align=64).key("general.alignment", "u32", 64).tensor("a").tensor("b")
    f["good-split-align-00002-of-00002.gguf"] = part(1, 2, 2)


def beyond_4_gib(path):
    """A file with a hole: one tensor's data lies at 5 GiB."""
    head = small().tensor("near").tensor("far", offset=5 << 30).bytes()
    with open(path, "wb") as out:
        out.write(head[:-16 - 16])  # without the data of "far" and the padding before it
        out.seek(len(head) - 48 + (5 << 30))
        out.write(bytes(range(16)))


def bad_headers():
    f = FILES
    f["empty.gguf"] = b""
    f["three-bytes.gguf"] = b"GGU"
    f["magic.gguf"] = File(magic=b"GGML")
    f["magic-zip.gguf"] = b"PK\x03\x04" + bytes(60)
    f["magic-binary.gguf"] = b"\x00\xff\n'" + bytes(60)
    f["git-lfs.gguf"] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    f["header-cut.gguf"] = cut(small(), 20)
    f["only-magic.gguf"] = b"GGUF"
    f["version-0.gguf"] = File(version=0)
    f["version-1.gguf"] = File(version=1)
    f["version-4.gguf"] = File(version=4)
    f["version-huge.gguf"] = File(version=0xFFFFFFFF)
    f["big-endian.gguf"] = b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    f["keys-too-many.gguf"] = File(n_keys=1000).key("a", "u8", 1)
    f["keys-huge.gguf"] = File(n_keys=2**64 - 1).key("a", "u8", 1)
    f["keys-one-more.gguf"] = File(n_keys=2).key("a", "str", "room for one more key, but none is there")
    f["tensors-too-many.gguf"] = File(n_tensors=1000)
    f["tensors-huge.gguf"] = File(n_tensors=2**63).key("a", "u8", 1)
    f["tensors-negative.gguf"] = File(n_tensors=2**64 - 1)
    f["tensors-one-more.gguf"] = small().tensor("a").tensor("b").bytes()[:8] + u64(3) + small().tensor("a").tensor("b").bytes()[16:]


def bad_keys():
    f = FILES
    f["key-empty-name.gguf"] = File().key("", "str", "text")
    f["key-long-name.gguf"] = File().key("k" * 65536, "u8", 1)
    f["key-name-cut.gguf"] = cut(File().key("general.architecture", "str", "tiny"), 40)
    f["key-name-length-huge.gguf"] = File(n_keys=1).bytes() + u64(2**64 - 8) + bytes(40)
    f["key-name-not-utf8.gguf"] = File().key(b"na\xffme", "u8", 1)
    f["key-name-nul.gguf"] = File().key("na\0me", "u8", 1)
    f["key-twice.gguf"] = File().key("a", "u8", 1).key("b", "u8", 2).key("a", "u8", 1)
    f["key-kind-13.gguf"] = File().key("a", 13, b"\0" * 8)
    f["key-kind-huge.gguf"] = File().key("a", 0xFFFFFFFF, b"\0" * 8)
    f["key-no-kind.gguf"] = cut(File().key("a name that is long", "u8", 1), 24 + 8 + 19 + 2)
    f["key-value-cut.gguf"] = cut(File().key("a name that is long", "u64", 1), 24 + 8 + 19 + 4 + 3)
    f["key-string-cut.gguf"] = cut(File().key("general.name", "str", "a long text"), 24 + 8 + 12 + 4 + 8 + 3)
    f["key-string-huge.gguf"] = File().key("general.name", "str", u64(2**64 - 1) + b"abc")
    f["key-string-not-utf8.gguf"] = File().key("general.name", "str", text(b"caf\xe9"))
    f["key-string-overlong.gguf"] = File().key("general.name", "str", text(b"\xc0\xaf"))
    f["key-string-overlong-3.gguf"] = File().key("general.name", "str", text(b"\xe0\x80\xaf"))
    f["key-string-surrogate.gguf"] = File().key("general.name", "str", text(b"\xed\xa0\x80"))
    f["key-string-beyond.gguf"] = File().key("general.name", "str", text(b"\xf4\x90\x80\x80"))
    f["key-string-half-character.gguf"] = File().key("general.name", "str", text(b"12345678\xe2\x82"))
    f["bool-2.gguf"] = File().key("flag", "bool", 2)
    f["bool-array-2.gguf"] = File().key("flags", "arr", ("bool", [0, 1, 255]))
    f["array-kind.gguf"] = File().key("a", "arr", u32(99) + u64(1) + bytes(8))
    f["array-cut.gguf"] = File().key("a", "arr", u32(4) + u64(3) + bytes(8))
    f["array-huge.gguf"] = File().key("a", "arr", u32(4) + u64(2**62) + bytes(8))
    f["array-overflow.gguf"] = File().key("a", "arr", u32(10) + u64(2**61) + bytes(8))
    f["array-no-length.gguf"] = cut(File().key("array", "arr", ("u8", [1])), 24 + 8 + 5 + 4 + 4 + 2)
    f["array-of-strings-cut.gguf"] = File().key("a", "arr", u32(8) + u64(2) + text("ab") + u64(10) + b"abc")
    f["array-of-strings-no-length.gguf"] = File().key("a", "arr", u32(8) + u64(2) + text("abcdefgh") + bytes(3))
    f["array-of-strings-huge.gguf"] = File().key("a", "arr", u32(8) + u64(2**60) + text("ab"))
    f["array-of-strings-length-huge.gguf"] = File().key("a", "arr", u32(8) + u64(1) + u64(2**64 - 1) + b"abc")
    f["array-of-strings-not-utf8.gguf"] = File().key("tokens", "arr", u32(8) + u64(3) + text("a") + text("b") + text(b"c\x80"))
    f["array-of-arrays-huge.gguf"] = File().key("a", "arr", u32(9) + u64(2**60) + bytes(24))
    f["array-of-arrays-cut.gguf"] = File().key("a", "arr", u32(9) + u64(2) + value("arr", ("u32", [1, 2])) + u32(4))
    f["array-too-deep.gguf"] = File().key("a", "arr", nested(5))
    f["array-very-deep.gguf"] = File().key("a", "arr", (u32(9) + u64(1)) * 100000)
    f["hostile-name-in-message.gguf"] = File().key("\x1b[2J\n\r'\"" + "x" * 200, "bool", 7)
    f["alignment-kind.gguf"] = File().key("general.alignment", "u64", 32)
    f["alignment-string.gguf"] = File().key("general.alignment", "str", "32")
    f["alignment-0.gguf"] = File().key("general.alignment", "u32", 0)
    f["alignment-33.gguf"] = File().key("general.alignment", "u32", 33)
    f["alignment-131072.gguf"] = File().key("general.alignment", "u32", 131072)


def bad_tensors():
    f = FILES
    f["tensor-empty-name.gguf"] = small().tensor("")
    f["tensor-name-not-utf8.gguf"] = small().tensor(b"\xfe\xff")
    f["tensor-name-nul.gguf"] = small().tensor("a\0b")
    f["tensor-twice.gguf"] = small().tensor("a").tensor("b").tensor("a")
    f["tensor-0-dims.gguf"] = small().tensor("a", ne=(), size=4)
    f["tensor-5-dims.gguf"] = small().tensor("a", ne=(2, 2, 2, 2, 2))
    f["tensor-dims-huge.gguf"] = small().tensor("a", n_dims=2**32 - 1)
    f["tensor-size-0.gguf"] = small().tensor("a", ne=(4, 0))
    f["tensor-size-negative.gguf"] = small().tensor("a", ne=(4, -2), size=4)
    f["tensor-elements-overflow.gguf"] = small().tensor("a", ne=(2**32, 2**31, 2), size=4)
    f["tensor-elements-overflow-64.gguf"] = small().tensor("a", ne=(2**32, 2**32, 2), size=4)
    f["tensor-bytes-overflow.gguf"] = small().tensor("a", ne=(2**31, 2**31), size=4)
    f["tensor-type-removed.gguf"] = small().tensor("a", 4)
    f["tensor-type-repacked.gguf"] = small().tensor("a", 31)
    f["tensor-type-unknown.gguf"] = small().tensor("a", 99)
    f["tensor-type-huge.gguf"] = small().tensor("a", 0x80000000)
    f["tensor-block.gguf"] = small().tensor("blk.0.attn_q.weight", "Q8_0", (48, 2), size=102)
    f["tensor-block-256.gguf"] = small().tensor("a", "Q6_K", (128,), size=105)
    f["tensor-table-cut.gguf"] = cut(small().tensor("a name that is long enough to be cut", ne=(4, 4)), 24 + 44 + 8 + 37 + 4 + 10)
    f["tensor-offset-unaligned.gguf"] = small().tensor("a").tensor("b", offset=20)
    f["tensor-offset-unaligned-4096.gguf"] = File(align=4096).key("general.alignment", "u32", 4096).tensor("a").tensor("b", offset=32)
    f["tensor-offset-outside.gguf"] = small().tensor("a", offset=4096)
    f["tensor-offset-huge.gguf"] = small().tensor("a", offset=2**64 - 32)
    f["tensor-larger-than-file.gguf"] = small().tensor("a", ne=(1000, 1000), size=400)
    f["tensor-data-cut.gguf"] = small().tensor("a").tensor("b").bytes()[:-1]
    f["tensor-no-data.gguf"] = small().tensor("a").header()
    f["tensor-overlap.gguf"] = small().tensor("a", ne=(32,)).tensor("b", ne=(16,), offset=64)
    f["tensor-overlap-same.gguf"] = small().tensor("a").tensor("b", offset=0)
    f["tensor-overlap-out-of-order.gguf"] = small().tensor("a", ne=(16,), offset=32).tensor("b", ne=(16,), offset=0).tensor("c")


def bad_splits():
    f = FILES
    f["split-later-00002-of-00002.gguf"] = part(1, 2, 1).tensor("a")
    f["split-later-renamed.gguf"] = part(1, 2, 1).tensor("a")
    f["split-first-renamed.gguf"] = part(0, 2, 1).tensor("a")
    f["split-name-lies-00002-of-00002.gguf"] = part(0, 2, 1).tensor("a")
    f["split-missing-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-no-keys-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-no-keys-00002-of-00002.gguf"] = File().tensor("b")
    f["split-swapped-00001-of-00003.gguf"] = part(0, 3, 3).tensor("a")
    f["split-swapped-00002-of-00003.gguf"] = part(2, 3, 3).tensor("b")
    f["split-other-count-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-other-count-00002-of-00002.gguf"] = part(1, 3, 2).tensor("b")
    f["split-other-tensors-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-other-tensors-00002-of-00002.gguf"] = part(1, 2, 5).tensor("b")
    f["split-other-model-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-other-model-00002-of-00002.gguf"] = part(1, 2, 2).key("general.architecture", "str", "huge").tensor("b")
    f["split-new-key-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-new-key-00002-of-00002.gguf"] = part(1, 2, 2).key("general.name", "str", "x").tensor("b")
    f["split-total-00001-of-00002.gguf"] = part(0, 2, 3).tensor("a")
    f["split-total-00002-of-00002.gguf"] = part(1, 2, 3).tensor("b")
    f["split-twice-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-twice-00002-of-00002.gguf"] = part(1, 2, 2).tensor("a")
    f["split-broken-part-00001-of-00002.gguf"] = part(0, 2, 2).tensor("a")
    f["split-broken-part-00002-of-00002.gguf"] = part(1, 2, 2).tensor("b").bytes()[:-3]
    f["split-count-0.gguf"] = File().key("split.no", "u16", 0).key("split.count", "u16", 0).key("split.tensors.count", "i32", 0)
    f["split-no-too-large.gguf"] = part(2, 2, 0)
    f["split-no-string.gguf"] = File().key("split.no", "str", "0").key("split.count", "u16", 1)
    f["split-count-array.gguf"] = File().key("split.count", "arr", ("u16", [2]))
    f["split-tensors-negative.gguf"] = part(0, 2, -1)
    f["split-no-count.gguf"] = File().key("split.no", "u16", 0)
    f["split-no-total.gguf"] = File().key("split.no", "u16", 0).key("split.count", "u16", 2)
    f["split-one-total.gguf"] = part(0, 1, 7).tensor("a")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for recipes in (good_files, bad_headers, bad_keys, bad_tensors, bad_splits):
        recipes()
    for name, f in FILES.items():
        path = os.path.join(folder, name)
        if callable(f):
            f(path)
        else:
            with open(path, "wb") as out:
                out.write(f if isinstance(f, bytes) else f.bytes())
        if re.search(r"-0000[2-9]-of-", name) and name not in OPENED:
            continue  # comes with its first part
        print(name)
    print("no-such-file.gguf")
    print(".")


main()
