#!/usr/bin/env python3
"""How long `ggcc build` takes: the tiny models of tests/archs, and code generation alone as layers are added.

  build.py --ggcc build/ggcc [--only REGEX] [--tiny] [--layers]     neither of the two: both

Tiny models: wall time of the whole build and processor time of ggcc with the compilers it runs; median and maximum. On
a busy machine the wall time says little. Code generation, which build reports as `code N ms`: processor time of graph, passes,
plan and printing, without the tokenizer's tables, the self-test's run and the C compiler; the median of five. Synthetic models of the
same widths and more and more layers: layers are loops in the program, but each is evaluated. Figures are for people: nothing passes or fails.
"""
import argparse, os, re, resource, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHS = os.path.join(ROOT, "tests", "archs")
LATENT = """attention.key_length_mla=24 attention.value_length_mla=16 attention.kv_lora_rank=16 attention.key_length=24 attention.value_length=16
    attention.head_count_kv=1 attention.q_lora_rank=24 expert_count=8 expert_used_count=3 expert_shared_count=1
    leading_dense_block_count=1 expert_feed_forward_length=48 expert_gating_func=2 expert_group_count=2 expert_group_used_count=1
    tensor.exp_probs_b.bias=1"""
# A list that ends in .. goes on from its beginning for as many layers as there are. Its 20 rounds of Sinkhorn are unrolled.
STREAMS = """context_length=512 embedding_length=128 attention.compress_ratios=0,4,128,4,.. attention.indexer.top_k=8 attention.head_count=8
    attention.key_length=32 attention.value_length=32 attention.q_lora_rank=32 attention.output_group_count=4 attention.output_lora_rank=16
    attention.head_count_kv=1 attention.indexer.head_count=8 attention.indexer.key_length=64 attention.compress_rope_freq_base=20000.0
    hyper_connection.count=4 hyper_connection.sinkhorn_iterations=20 hash_layer_count=2 swiglu_clamp_exp=2.0,.. expert_gating_func=4
    expert_shared_count=1 expert_weights_norm=true expert_weights_scale=1.5 tensor.exp_probs_b.bias=1"""
GROWING = [("llama", "", (2, 32, 128)), ("deepseek2", LATENT, (2, 60)), ("falcon-h1", "", (2, 64)), ("deepseek4", STREAMS, (4, 44))]


def run(argv):
    """What it said, wall and processor seconds of it and its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = p.stderr.decode("utf-8", "replace")
    if p.returncode:
        sys.exit("%s: exit status %d\n%s" % (" ".join(argv), p.returncode, said[-2000:]))
    return said, time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def code_ms(said):
    return float(re.search(r"code (\d+) ms", said).group(1))


def tiny(a):
    sys.dont_write_bytecode = True
    sys.path.insert(0, ARCHS)
    import make
    rows = []
    for name in make.names():
        if not re.search(a.only, name):
            continue
        with tempfile.TemporaryDirectory() as d:
            run([sys.executable, "-B", os.path.join(ARCHS, "make.py"), "--only", "^%s$" % re.escape(name), "--out", d])
            model = next(os.path.join(d, f) for f in os.listdir(d) if f.endswith(".gguf"))
            rows.append((name, *run([a.ggcc, "build", model, "-o", d + "/program"])))
            print("%-24s %6.2f s wall, %6.2f s of the processor, code %3.0f ms" % (name, *rows[-1][2:], code_ms(rows[-1][1])), flush=True)
    for what, of in (("wall", [r[2] for r in rows]), ("processor", [r[3] for r in rows]), ("code", [code_ms(r[1]) / 1e3 for r in rows])):
        print("%d models, %-9s median %6.3f s, maximum %6.3f s (%s)" %
              (len(of), what, statistics.median(of), max(of), rows[of.index(max(of))][0]))


def repeated(word, n):
    name, _, values = word.partition("=")
    if not values.endswith(",.."):
        return word
    values = values[:-3].split(",")
    return name + "=" + ",".join((values * n)[:n])


def layers(a):
    for arch, sets, counts in GROWING:
        if not re.search(a.only, arch):
            continue
        for n in counts:
            with tempfile.TemporaryDirectory() as d:
                words = [w for s in ("block_count=%d %s" % (n, sets)).split() for w in ("--set", repeated(s, n))]
                run([a.ggcc, "synth", arch, "-o", d + "/m.gguf", "--quiet"] + words)
                times = [code_ms(run([a.ggcc, "emit", d + "/m.gguf", "-o", d + "/emitted", "--no-tokenizer"])[0]) for _ in range(5)]
                lines = sum(1 for _ in open(d + "/emitted/model.c"))
                print("%-12s %4d layers: code %3.0f ms, model.c %d lines" % (arch, n, statistics.median(times), lines), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", required=True)
    ap.add_argument("--only", default="", help="regular expression over the models' names")
    ap.add_argument("--tiny", action="store_true", help="only the tiny models")
    ap.add_argument("--layers", action="store_true", help="only the growing ones")
    a = ap.parse_args()
    if a.layers or not a.tiny:
        layers(a)
    if a.tiny or not a.layers:
        tiny(a)


if __name__ == "__main__":
    main()
