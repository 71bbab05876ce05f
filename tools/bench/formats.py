#!/usr/bin/env python3
"""What each format costs in accuracy, compiled and in llama.cpp: three synthetic families, dense, experts and hybrid.

  formats.py --ggcc PATH --peers DIR [--family REGEX] [--only REGEX] [--texts 6] [--tokens 128] [--seeds 1] [--cc CC]

--peers: the folder of peers.sh (bin/llama-quantize, bin/lc_logits). Each family is one `ggcc synth` model whose matrices have
widths that are multiples of 256. llama-quantize makes of it a file of each type alone (--pure: the table and the head
too) and of each of its mixtures. On --texts times --tokens random ids both engines are measured against llama.cpp on F32, with
an f32 cache: the mean Kullback-Leibler divergence of the next token, in nats, over all positions.

  whole    from the F32 model that was quantised: what the user loses
  typical  the same without the positions, one in twenty, where either engine is furthest off. Another choice of an expert, by
           a hair, changes a whole position: of formats that lose next to nothing a few such positions are all of the mean.
  sums     typical, from the quantised file, unpacked to F32: what the arithmetic alone adds (rounded inputs, f16 cache)

Exit status 1 when a program's divergence is above 1.1 times llama.cpp's, whole and typical, or a file does not build.
"""
import argparse, os, re, subprocess, sys, tempfile
import numpy as np

from accuracy import compare, logits

COMMON = """embedding_length=256 attention.head_count=4 attention.head_count_kv=2 attention.key_length=64 attention.value_length=64
    rope.dimension_count=64 block_count=4 feed_forward_length=512"""
FAMILIES = {
    "dense": ("llama", COMMON),
    "experts": ("qwen3moe", COMMON + " expert_feed_forward_length=256 expert_count=16 expert_used_count=8"),
    "hybrid": ("falcon-h1", COMMON + " tensor.ffn_norm=bare ssm.inner_size=512 ssm.state_size=64 ssm.time_step_rank=8 ssm.group_count=2"),
}
PURE = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split()
MIXED = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS MXFP4".split()
NAMES = {"MXFP4": "MXFP4_MOE"}  # as llama-quantize calls it; --pure takes it for every matrix
LIMIT = 1.1


class Failed(Exception):
    pass


os.environ["OMP_WAIT_POLICY"] = "passive"  # threads that wait for others must not take a busy machine's time


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failed("%s: %s" % (os.path.basename(argv[0]), done.stdout.decode("utf-8", "replace").strip()[-300:]))


def quantise(a, source, name, pure, to):
    more = ["--pure"] if pure else []
    run(os.path.join(a.peers, "bin", "llama-quantize"), *more, "--allow-requantize", source, to, NAMES.get(name, name), "1")


def peer(a, model, folder, cache):
    """llama.cpp's logits of all texts."""
    out, all_of = folder + "/lc", []
    for ids in range(a.texts):
        argv = [os.path.join(a.peers, "bin", "lc_logits"), model, "%s/ids%d" % (folder, ids), out, "all", cache, "1", "0"]
        all_of.append(np.array(logits(argv, out, a.tokens)))
    return np.concatenate(all_of)


def program(a, model, folder):
    """The logits of the program that ggcc makes of a file."""
    path, all_of = folder + "/program", []
    run(a.ggcc, "build", "--quiet", model, "-o", path, *(["--cc", a.cc] if a.cc else []))
    for ids in range(a.texts):
        argv = [path, "logits", "--ids", "%s/ids%d" % (folder, ids), "-o", folder + "/out", "--threads", "1"]
        all_of.append(np.array(logits(argv, folder + "/out", a.tokens)))
    return np.concatenate(all_of)


def typical(kl):
    """The mean of both rows over the positions where neither is among its worst twentieth."""
    keep = (kl <= np.quantile(kl, 0.95, axis=1)[:, None]).all(0)
    return list(kl[:, keep].mean(1))


def measure(a, folder, source, ref, name, pure):
    """Of the program and of llama.cpp in turn: whole, typical, sums."""
    model, same = folder + "/model.gguf", folder + "/same.gguf"
    quantise(a, source, name, pure, model)
    quantise(a, model, "F32", False, same)
    both = program(a, model, folder), peer(a, model, folder, "f16")
    whole, sums = (np.array([compare(r, x)[0] for x in both]) for r in (ref, peer(a, same, folder, "f32")))
    return list(whole.mean(1)) + typical(whole) + typical(sums)


def family(a, name, seed, folder, totals):
    arch, sets = FAMILIES[name]
    source = folder + "/f32.gguf"
    words = [w for s in sets.split() for w in ("--set", s)]
    run(a.ggcc, "synth", arch, "-o", source, "--quiet", "--seed", str(seed), *words, "--set", "context_length=%d" % (a.tokens + 8))
    for i in range(a.texts):
        with open("%s/ids%d" % (folder, i), "w") as f:
            f.write(" ".join(map(str, np.random.RandomState(100 * seed + i).randint(3, 280, size=a.tokens))) + "\n")
    ref = peer(a, source, folder, "f32")
    print("%s: %s, seed %d, logits' standard deviation %.2f" % (name, arch, seed, ref.std()), flush=True)
    for kind, names in (("pure", PURE), ("mixed", MIXED)):
        for n in names:
            what = "%s %s" % (n, kind)
            if not re.search(a.only, what):
                continue
            try:
                m = measure(a, folder, source, ref, n, kind == "pure")
            except Failed as e:
                print("  %-13s FAILED: %s" % (what, e), flush=True)
                totals.setdefault((name, what), []).append(None)
                continue
            totals.setdefault((name, what), []).append(m)
            show(what, m)


def ratios(m):
    return [m[i] / m[i + 1] if m[i + 1] else 0 for i in (0, 2, 4)]


def over(m):
    return min(ratios(m)[:2]) > LIMIT


def show(what, m):
    parts = ["%s %8.2e / %8.2e = %5.3f" % (k, m[2 * i], m[2 * i + 1], ratios(m)[i]) for i, k in enumerate(("whole", "typical", "sums"))]
    print("  %-13s %s%s" % (what, "   ".join(parts), "   OVER" if over(m) else ""), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", required=True)
    ap.add_argument("--peers", required=True)
    ap.add_argument("--family", default="", help="of " + ", ".join(FAMILIES))
    ap.add_argument("--only", default="", help="regular expression over names such as 'Q4_K pure'")
    ap.add_argument("--texts", type=int, default=6)
    ap.add_argument("--tokens", type=int, default=128)
    ap.add_argument("--cc", help="of ggcc build")
    ap.add_argument("--seeds", type=int, default=1, help="models of each family; divergences are averaged")
    a = ap.parse_args()
    totals = {}
    for name in FAMILIES:
        for seed in range(a.seeds if re.search(a.family, name) else 0):
            with tempfile.TemporaryDirectory() as folder:
                family(a, name, seed, folder, totals)
    bad, worst = [], 0
    if a.seeds > 1:
        print("mean of %d models:" % a.seeds)
    for (name, what), rows in totals.items():
        if None in rows:
            bad.append("%s %s does not build" % (name, what))
            continue
        m = np.mean(rows, 0)
        if a.seeds > 1:
            show("%s %s" % (name, what), m)
        worst = max(worst, min(ratios(m)[:2]))
        if over(m):
            bad.append("%s %s %.3f" % (name, what, min(ratios(m)[:2])))
    print("%d formats and mixtures, worst ratio %.3f (at most %.1f): %s" % (len(totals), worst, LIMIT, "; ".join(bad) or "good"))
    return 1 if bad or not totals else 0


if __name__ == "__main__":
    sys.exit(main())
