"""The law of row counts, for one program: the same bits however a text is evaluated.

In: a program, token ids. Its own single steps (--batch 1, one thread) are the reference; every batch size, thread count, choice of
positions, and a state saved and loaded in between must give those bytes. A program that reads a text as a whole has no steps: there
only threads may change.
"""
import json
import os
import random

from common import *


class Program:
    """Each length has a file with that many of the ids; every_way: whether all combinations are tried, or a few of each."""

    def __init__(self, path, lengths, every_way=False, ids=None):
        info = json.loads(good(path, "info", "--json").out)
        self.path, self.every_way, self.row, self.ctx = path, every_way, info["vocab"] * 4, info["ctx"]
        # What goes on after a text of n needs places for the tokens that it generates.
        self.lengths = [n for n in lengths if n + 8 <= self.ctx] or [self.ctx - 8]
        rng = random.Random(7)
        self.ids = [str(i) for i in ids or [rng.randrange(info["vocab"]) for _ in range(max(self.lengths))]]

    def file_of(self, first, last):
        path = f"{self.path}.{first}-{last}.ids"
        if not os.path.exists(path):
            with open(f"{path}.{os.getpid()}", "w") as f:
                f.write("\n".join(self.ids[first:last]))
            os.rename(f"{path}.{os.getpid()}", path)
        return path

    def logits(self, length, *options):
        out = f"{self.path}.logits"
        good(self.path, "logits", "--ids", self.file_of(0, length), "-o", out, *options)
        return bytes_of(out)

    def rows(self, data, positions):
        return b"".join(data[p * self.row : (p + 1) * self.row] for p in positions)


def how(batch, threads):
    return [*(["--batch", batch] if batch else []), "--threads", threads]


def same(got, want, row, what):
    if got == want:
        return
    check(len(got) == len(want), f"{what}: {len(got)} bytes instead of {len(want)}")
    first = next(i for i in range(len(got)) if got[i] != want[i])
    rows = sum(got[i : i + row] != want[i : i + row] for i in range(0, len(got), row))
    raise Failed(f"{what}: other bits, first in row {first // row}, value {first % row // 4}; {rows} of {len(got) // row} rows differ")


def numbers(data):
    check(data.count(b"\0\0\xc0\x7f") == 0 and len(set(data)) > 100, "the logits are no numbers")


def check_logits(p, ways):
    """ways: (length, batch, threads). Prefixes of the longest text, all positions and some."""
    want = p.logits(max(p.lengths), "--batch", "1", "--threads", "1")
    numbers(want)
    rng = random.Random(3)
    for n, (length, batch, threads) in enumerate(ways):
        if p.every_way or n % 2 == 0 or batch is None:
            got = p.logits(length, *how(batch, threads))
            same(got, want[: length * p.row], p.row, f"{length} tokens, all positions, --batch {batch} --threads {threads}")
        # Few wanted rows: large batches are evaluated whole, and the last layer for those rows alone.
        some = [length - 1] if n % 2 else [rng.randrange(length) for _ in range(4)]
        got = p.logits(length, "--at", ",".join(map(str, some)), *how(batch, threads))
        same(got, p.rows(want, some), p.row, f"{length} tokens, --at {some}, --batch {batch} --threads {threads}")
    return len(ways)


def check_states(p, n, cuts):
    """cuts: (after how many of n tokens, batch, threads). A text evaluated and gone on from in one run, and in two with the state in
    a file: same tokens, same probabilities, same state."""
    go_on = ["-n", "6", "--ignore-eos", "--logprobs", "3"]
    whole = good(p.path, "run", "--ids", p.file_of(0, n), *go_on, "--save", f"{p.path}.state", "--threads", "1", "--batch", "1")
    state = bytes_of(f"{p.path}.state")
    for cut, batch, threads in cuts:
        what = f"saved after {cut} of {n} tokens, --batch {batch} --threads {threads}"
        first, second = f"{p.path}.first", f"{p.path}.second"
        good(p.path, "run", "--ids", p.file_of(0, cut), "-n", "0", "--save", first, *how(batch, threads))
        r = good(p.path, "run", "--load", first, "--ids", p.file_of(cut, n), *go_on, "--save", second, *how(batch, threads))
        check(r.out == whole.out, f"{what}: generated {r.out!r}, in one run {whole.out!r}")
        check(r.err == whole.err, f"{what}: the probabilities differ")
        check(bytes_of(second) == state, f"{what}: the state afterwards has other bytes")


def check_threads(p, counts):
    """A program that reads a text as a whole: every number of threads, all positions and some."""
    for length in p.lengths:
        want = p.logits(length, "--threads", "1")
        numbers(want)
        for threads in counts:
            same(p.logits(length, "--threads", threads), want, p.row, f"{length} tokens, --threads {threads}")
            got = p.logits(length, "--at", str(length // 2), "--threads", threads)
            same(got, p.rows(want, [length // 2]), p.row, f"{length} tokens, --at {length // 2}, --threads {threads}")
