"""Same answer always: the law of same.py, for weights of every type.

In: a few models, each compiled for this machine's packed kernels and for plain x86-64, quantised and not. (Every architecture, in
F32: tests/archs.)
"""
import itertools
import os
import sys

from same import *

WORK = f"{sys.argv[1]}/bits"
LENGTHS = [1, 2, 7, 33, 96, 150]  # windows are of 24 positions, pages of 64
BATCHES = ["1", "2", "3", "5", "16", "64", None]
THREADS = ["1", "2", "3", "5"]
MIXED = ["Q4_K", "Q6_K", "Q4_1", "Q8_0", "Q5_0", "Q5_K", "Q4_0", "F16", "IQ4_XS", "Q3_K", "MXFP4"]


def model_files():
    wide = ["embedding_length=256", "feed_forward_length=512"]
    gemma = synth("gemma3", f"{WORK}/gemma3.gguf", *wide)
    gguf.retype(gemma, f"{WORK}/mixed.gguf", MIXED)
    models = {"mixed": f"{WORK}/mixed.gguf", "qwen3-f32": synth("qwen3", f"{WORK}/qwen3.gguf"), "tales": TALES}
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


def check_program(name, model, options):
    path = f"{WORK}/{name}{''.join(options)}.prog"
    build(model, path, *options)
    p = Program(path, LENGTHS, FULL and os.path.getsize(model) < 1 << 25)
    good(path, "selftest", "--threads", "2")
    every = list(itertools.product(BATCHES, THREADS))
    ways = every if p.every_way else [(b, THREADS[i % 4]) for i, b in enumerate(BATCHES)]
    runs = check_logits(p, [(length, *way) for length in LENGTHS for way in ways])
    cuts = [(cut, *way) for cut in (1, 33, 64, 99) for way in every]
    check_states(p, 100, cuts if p.every_way else [(1, "3", "2"), (33, None, "1"), (64, "16", "3"), (99, "5", "5")])
    return f"{runs} ways"


def main():
    os.makedirs(WORK)
    models = model_files()
    if not run_all([(f"bits: {n} {' '.join(o)}".strip(), lambda n=n, o=o: check_program(n, models[n], o)) for n, o in programs(models)]):
        sys.exit(1)


main()
