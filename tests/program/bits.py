"""Same answer always: the logits of T tokens have the same bits however they are evaluated.

In: a few models, each compiled for this machine's packed kernels and for plain x86-64, quantised and not. The reference of each
program is its own single steps (--batch 1, one thread); everything else must give those bytes: every batch size, thread count,
choice of positions, and a state saved and loaded in between.
"""
import itertools
import os
import random
import sys

from common import *

WORK = f"{sys.argv[1]}/bits"
LENGTHS = [1, 2, 7, 33, 96, 150]  # windows are of 24 positions, pages of 64
BATCHES = ["1", "2", "3", "5", "16", "64", None]
THREADS = ["1", "2", "3", "5"]
DEEPSEEK4 = ["attention.compress_ratios=4,0,64,4", "attention.indexer.top_k=3", "attention.head_count=4", "attention.key_length=64",
             "attention.value_length=64", "attention.q_lora_rank=64", "attention.output_group_count=2", "attention.output_lora_rank=32",
             "attention.head_count_kv=1", "attention.indexer.head_count=4", "hyper_connection.count=2", "hash_layer_count=1",
             "hyper_connection.sinkhorn_iterations=2", "expert_gating_func=4", "expert_shared_count=1", "swiglu_clamp_exp=2.0,2.0,2.0,2.0"]
MIXED = ["Q4_K", "Q6_K", "Q4_1", "Q8_0", "Q5_0", "Q5_K", "Q4_0", "F16", "IQ4_XS", "Q3_K", "MXFP4"]


def model_files():
    wide = ["embedding_length=256", "feed_forward_length=512"]
    gemma = synth("gemma3", f"{WORK}/gemma3.gguf", *wide)
    gguf.retype(gemma, f"{WORK}/mixed.gguf", MIXED)
    models = {"mixed": f"{WORK}/mixed.gguf", "qwen3-f32": synth("qwen3", f"{WORK}/qwen3.gguf"), "tales": TALES}
    models["deepseek4"] = synth("deepseek4", f"{WORK}/deepseek4.gguf", "type=Q8_0", *DEEPSEEK4)
    if FULL:
        models["gemma3-f32"] = gemma
        for arch in ["llama", "qwen2"]:
            models[f"{arch}-f32"] = synth(arch, f"{WORK}/{arch}.gguf")
            models[f"{arch}-q8_0"] = synth(arch, f"{WORK}/{arch}-q.gguf", "type=Q8_0")
        for i in range(0, len(gguf.TYPES), 3):
            types = list(gguf.TYPES)[i : i + 3]
            gguf.retype(gemma, f"{WORK}/types{i}.gguf", types)
            models["+".join(types)] = f"{WORK}/types{i}.gguf"
        if os.path.isdir(MODELS):
            models |= {f: f"{MODELS}/{f}" for f in sorted(os.listdir(MODELS)) if f.endswith(".gguf")}
    return models


def programs(models):
    native = [(name, []) for name in models]
    other = [("mixed", ["--march", "x86-64", "--kv", "f32"])]
    if FULL:
        other = [(n, o) for n in ("mixed", "tales", "gemma3-f32") for o in (["--march", "x86-64"], ["--kv", "f32"], ["--kv", "f16"], ["--no-fuse"])]
    return native + other


class Program:
    def __init__(self, path, vocab, every_way):
        self.path, self.every_way, self.row = path, every_way, vocab * 4
        ids = [random.Random(7).randrange(vocab) for _ in range(max(LENGTHS))]
        self.ids = [str(i) for i in ids]

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


def check_logits(p):
    want = p.logits(max(LENGTHS), "--batch", "1", "--threads", "1")
    check(want.count(b"\0\0\xc0\x7f") == 0 and len(set(want)) > 100, "the logits are no numbers")
    runs, rng = 0, random.Random(3)
    ways = list(itertools.product(BATCHES, THREADS)) if p.every_way else [(b, THREADS[i % 4]) for i, b in enumerate(BATCHES)]
    for length, (n, (batch, threads)) in itertools.product(LENGTHS, enumerate(ways)):
        if p.every_way or n % 2 == 0 or length in (7, 96):
            got = p.logits(length, *how(batch, threads))
            same(got, want[: length * p.row], p.row, f"{length} tokens, all positions, --batch {batch} --threads {threads}")
        # Few wanted rows: large batches are evaluated whole, and the last layer for those rows alone.
        some = [length - 1] if n % 2 else [rng.randrange(length) for _ in range(4)]
        got = p.logits(length, "--at", ",".join(map(str, some)), *how(batch, threads))
        same(got, p.rows(want, some), p.row, f"{length} tokens, --at {some}, --batch {batch} --threads {threads}")
        runs += 1
    return runs


def check_states(p):
    """A text evaluated and gone on from in one run, and in two with the state in a file: same tokens, same state."""
    n = 100
    whole = good(p.path, "run", "--ids", p.file_of(0, n), "-n", "6", "--ignore-eos", "--logprobs", "3", "--save", f"{p.path}.state",
                 "--threads", "1", "--batch", "1")
    state = bytes_of(f"{p.path}.state")
    cuts = itertools.product([1, 33, 64, 99], BATCHES, THREADS) if p.every_way else [(1, "3", "2"), (33, None, "1"), (64, "16", "3"), (99, "5", "5")]
    for cut, batch, threads in cuts:
        what = f"saved after {cut} of {n} tokens, --batch {batch} --threads {threads}"
        first, second = f"{p.path}.first", f"{p.path}.second"
        good(p.path, "run", "--ids", p.file_of(0, cut), "-n", "0", "--save", first, *how(batch, threads))
        r = good(p.path, "run", "--load", first, "--ids", p.file_of(cut, n), "-n", "6", "--ignore-eos", "--logprobs", "3", "--save", second,
                 *how(batch, threads))
        check(r.out == whole.out, f"{what}: generated {r.out!r}, in one run {whole.out!r}")
        check(r.err == whole.err, f"{what}: the probabilities differ")
        check(bytes_of(second) == state, f"{what}: the state afterwards has other bytes")


def check_program(name, model, options):
    path = f"{WORK}/{name}{''.join(options)}.prog"
    build(model, path, *options)
    with open(f"{path}.one", "w") as f:
        f.write("1")
    good(path, "logits", "--ids", f"{path}.one", "-o", f"{path}.row")
    p = Program(path, os.path.getsize(f"{path}.row") // 4, FULL and os.path.getsize(model) < 1 << 25)
    good(path, "selftest", "--threads", "2")
    runs = check_logits(p)
    check_states(p)
    return f"{runs} ways"


def main():
    os.makedirs(WORK)
    models = model_files()
    if not run_all([(f"bits: {n} {' '.join(o)}".strip(), lambda n=n, o=o: check_program(n, models[n], o)) for n, o in programs(models)]):
        sys.exit(1)


main()
