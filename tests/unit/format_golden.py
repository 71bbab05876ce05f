#!/usr/bin/env python3
# Writes tests/unit/format_golden.h: what the package gguf makes of pseudo-random blocks of every format.
# The bytes come from the same generator as in tests/unit/format.c. Usage: format_golden.py > format_golden.h
import numpy as np
import gguf
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize

BLOCKS = 512
SPECIAL = [0x0001, 0x03FF, 0x8001, 0x7C00, 0xFC00, 0x8000, 0x7BFF, 0x0400]  # subnormals, infinities, -0, largest, smallest


def blocks(seed, size):
    x, out = seed, bytearray()
    for _ in range(BLOCKS * size):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(x >> 24)
    for i, v in enumerate(SPECIAL):  # wherever a scale may lie
        for at in (0, 2, size - 4, size - 2):
            if 0 <= at <= size - 2:
                out[i * size + at: i * size + at + 2] = v.to_bytes(2, "little")
    return bytes(out)


def digest(y):
    bits = y.astype(np.float32).view(np.uint32).copy()
    bits[np.isnan(y)] = 0x7FC00000
    h = 0xCBF29CE484222325
    for b in bits.tolist():
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


print("// Written by tests/unit/format_golden.py with the Python package gguf: format, digest, block, its elements 0, 7, 30.")
for name in "F32 F16 BF16 I32 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split():
    t = T[name]
    n, size = gguf.GGML_QUANT_SIZES[t]
    raw = np.frombuffer(blocks(int(t) + 1, size), dtype=np.uint8).reshape(BLOCKS, size)
    with np.errstate(all="ignore"):
        if name == "F32":
            y = raw.copy().view("<f4").astype(np.float32)
        elif name == "F16":
            y = raw.copy().view("<f2").astype(np.float32)
        elif name == "I32":
            y = raw.copy().view("<i4").astype(np.float32)
        else:
            y = dequantize(raw, t)
    y = y.reshape(-1)
    block = next(b for b in range(len(SPECIAL), BLOCKS) if np.isfinite(y[b * n: b * n + n]).all())
    at = [y[block * n + (i if n > 1 else 0)] for i in (0, 7, 30)]
    print(f'{{"{name.lower()}", 0x{digest(y):016x}, {block}, {{' + ", ".join("%.9gf" % v if v % 1 else "%.1ff" % v for v in at) + "}},")
