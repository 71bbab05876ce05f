#!/usr/bin/env python3
"""Compares ids with the Python package `tokenizers` on random and multilingual text.

    pip install tokenizers gguf
    python3 tests/tokenizer/compare.py TOOL MODEL.gguf [PRE] [TEXTS]

MODEL has a byte-level BPE vocabulary; PRE takes its pre-tokenizer's place.
TOOL is build/tests/tokenizer/tokenizer_tool.
"""

import random
import subprocess
import sys

from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

import splits


def strings(reader, key):
    field = reader.fields[key]
    return [bytes(field.parts[i]).decode() for i in field.data]


def main():
    tool, path = sys.argv[1:3]
    reader = GGUFReader(path)
    table = splits.read_table(every=True)
    pre = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else strings(reader, "tokenizer.ggml.pre")[0]
    patterns, flags = table[pre]
    tokens = strings(reader, "tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in strings(reader, "tokenizer.ggml.merges")]
    theirs = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, ignore_merges="IGNORE_MERGES" in flags))
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    theirs.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(False, use_regex=False)])
    rnd = random.Random(2)
    texts = [splits.random_text(rnd) for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else 20000)]
    data = b"".join(b"%d\n%s" % (len(t.encode()), t.encode()) for t in texts)
    run = subprocess.run([tool, path, "each", "0", pre], input=data, capture_output=True, check=True)
    ours = run.stdout.decode().split("\n")
    wrong = 0
    for text, mine in zip(texts, ours):
        want = " ".join(map(str, theirs.encode(text, add_special_tokens=False).ids))
        if want != mine:
            wrong += 1
            if wrong < 4:
                print(ascii(text), "\n  tokenizers", want, "\n  ours      ", mine)
    print(f"{path} {pre}: {len(texts)} texts, {len(data)} bytes, {wrong} different")
    sys.exit(wrong != 0)


main()
