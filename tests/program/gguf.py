"""GGUF files for tests, by the standard library alone. In: a file, or lists of keys and tensors. Out: the same as Python values,
or a file. Keys are [name, type, value] and tensors [name, dims, type, data]; names and string values are bytes, so that they can
hold anything.

`retype` gives a file's matrices another type, with random blocks whose scales are small: no meaning, but every bit of a format
in use.
"""
import random
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODE = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}

# name: (number, values of a block, bytes of a block, places of its float16 scales)
TYPES = {
    "F32": (0, 1, 4, ()), "F16": (1, 1, 2, ()), "Q4_0": (2, 32, 18, (0,)), "Q4_1": (3, 32, 20, (0, 2)), "Q5_0": (6, 32, 22, (0,)),
    "Q5_1": (7, 32, 24, (0, 2)), "Q8_0": (8, 32, 34, (0,)), "Q2_K": (10, 256, 84, (80, 82)), "Q3_K": (11, 256, 110, (108,)),
    "Q4_K": (12, 256, 144, (0, 2)), "Q5_K": (13, 256, 176, (0, 2)), "Q6_K": (14, 256, 210, (208,)), "IQ4_NL": (20, 32, 18, (0,)),
    "IQ4_XS": (23, 256, 136, (0,)), "BF16": (30, 1, 2, ()), "MXFP4": (39, 32, 17, ()),
}
BY_NUMBER = {number: (name, block, size) for name, (number, block, size, _) in TYPES.items()}
BY_NUMBER.update({26: ("I32", 1, 4), 27: ("I64", 1, 8)})  # tables of ids


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n : self.at]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.take(CODE[kind])
        of, n = self.take("I"), self.take("Q")
        return of, [self.value(of) for _ in range(n)]


def read(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    assert r.take("I") == 0x46554747 and r.take("I") in (2, 3)
    n_tensors, n_keys = r.take("Q"), r.take("Q")
    keys = []
    for _ in range(n_keys):
        name, kind = r.string(), r.take("I")
        keys.append([name, kind, r.value(kind)])
    infos = []
    for _ in range(n_tensors):
        name = r.string()
        dims = [r.take("Q") for _ in range(r.take("I"))]
        infos.append((name, dims, r.take("I"), r.take("Q")))
    align = next((k[2] for k in keys if k[0] == b"general.alignment"), 32)
    base = (r.at + align - 1) // align * align
    tensors = []
    for name, dims, kind, offset in infos:
        n = 1
        for d in dims:
            n *= d
        _, block, size = BY_NUMBER[kind]
        tensors.append([name, dims, kind, r.data[base + offset : base + offset + n // block * size]])
    return keys, tensors


def pack(kind, value):
    if kind == STRING:
        return struct.pack("<Q", len(value)) + value
    if kind != ARRAY:
        return struct.pack("<" + CODE[kind], value)
    return struct.pack("<IQ", value[0], len(value[1])) + b"".join(pack(value[0], v) for v in value[1])


def write(path, keys, tensors):
    align = next((k[2] for k in keys if k[0] == b"general.alignment"), 32)
    head = bytearray(struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(keys)))
    for name, kind, value in keys:
        head += pack(STRING, name) + struct.pack("<I", kind) + pack(kind, value)
    at, body = 0, bytearray()
    for name, dims, kind, data in tensors:
        head += pack(STRING, name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, at)
        body += data + bytes(-len(data) % align)
        at = len(body)
    head += bytes(-len(head) % align)
    with open(path, "wb") as f:
        f.write(head + body)


def key(keys, name):
    return next(k for k in keys if k[0] == name)


def random_blocks(rng, name, n):
    number, block, size, scales = TYPES[name]
    if block == 1:  # no blocks: the values themselves
        values = [rng.uniform(-0.05, 0.05) for _ in range(n)]
        floats = struct.pack(f"<{n}f", *values)
        upper = bytes(b for i in range(0, len(floats), 4) for b in floats[i + 2 : i + 4]) if name == "BF16" else floats
        return number, struct.pack(f"<{n}e", *values) if name == "F16" else upper
    data = bytearray(rng.randbytes(n // block * size))
    for at in range(0, len(data), size):
        for place in scales:
            data[at + place : at + place + 2] = struct.pack("<e", rng.uniform(0.5, 1) * {"Q8_0": 4e-4, "Q6_K": 4e-5}.get(name, 2e-4))
        if name == "MXFP4":
            data[at] = rng.randrange(114, 117)  # the scale is a power of two
    return number, bytes(data)


def retype(source, path, names, seed=1):
    """Matrices of `source` become random ones of the types in `names`, in turn, where their rows allow it."""
    keys, tensors = read(source)
    rng, turn = random.Random(seed), 0
    for t in tensors:
        name = names[turn % len(names)]
        if len(t[1]) != 2 or t[1][0] % TYPES[name][1]:
            continue
        t[2], t[3] = random_blocks(rng, name, t[1][0] * t[1][1])
        turn += 1
    write(path, keys, tensors)
