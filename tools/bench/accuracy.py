#!/usr/bin/env python3
"""How much a compiled, quantised model loses, and how much llama.cpp loses on the same file.

  accuracy.py --peers DIR --model MODEL.gguf --f32 MODEL-F32.gguf --program PROG [--tokens 640] [--threads N] [TEXT ...]

--peers: the folder of peers.sh (bin/lc_logits, bin/llama-tokenize). --f32: the same model dequantised
(llama-quantize --allow-requantize MODEL.gguf MODEL-F32.gguf F32). PROG: what `ggcc build MODEL.gguf -o PROG` made; or a
command with {ids} and {out} in it. Texts: tests/data/text-*.txt unless given.

Each text is cut to its first --tokens ids. The reference is llama.cpp on the F32 file with an f32 cache and exact GELU; against it
stand the program and llama.cpp on the quantised file (f16 cache): the mean Kullback-Leibler divergence, in nats, of
the next token's distribution, and how often the best token is the same. Pooled: over all positions of all texts.
Exit status 1 when the program's pooled divergence is above 1.05 times llama.cpp's, or its agreement more than a point below.
"""
import argparse, glob, os, shlex, subprocess, sys, tempfile
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def token_ids(peers, model, text, n):
    argv = [os.path.join(peers, "bin", "llama-tokenize"), "-m", model, "-f", text, "--ids", "--log-disable"]
    out = subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    return [int(x) for x in out.strip().strip("[]").split(",")][:n]


def logits(argv, out, n):
    """Runs a command that writes `out`; its n rows, mapped."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit("error: %s: exit status %d: %s" % (" ".join(argv), done.returncode, done.stdout.decode("utf-8", "replace")[-500:]))
    a = np.memmap(out, "<f4", "r")
    if a.size % n:
        sys.exit("error: %s wrote %d values, which are no %d rows" % (argv[0], a.size, n))
    return a.reshape(n, -1)


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max()
    return x - np.log(np.exp(x).sum())


def compare(ref, other):
    """KL(ref || other) of each row, and whether the best token is the same."""
    if ref.shape != other.shape:
        sys.exit("error: %s values against %s in the reference" % (other.shape, ref.shape))
    kl, same = np.empty(len(ref)), np.empty(len(ref), bool)
    for i in range(len(ref)):
        p, q = log_softmax(ref[i]), log_softmax(other[i])
        kl[i], same[i] = (np.exp(p) * (p - q)).sum(), p.argmax() == q.argmax()
    return kl, same


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--peers", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--f32", required=True)
    ap.add_argument("--program", required=True)
    ap.add_argument("--tokens", type=int, default=640)
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("texts", nargs="*", metavar="TEXT")
    a = ap.parse_args()
    texts = a.texts or sorted(glob.glob(os.path.join(ROOT, "tests", "data", "text-*.txt")))
    program = a.program if "{ids}" in a.program else shlex.quote(os.path.abspath(a.program)) + " logits --ids {ids} -o {out} --threads %d" % a.threads
    lc = os.path.join(a.peers, "bin", "lc_logits")
    pool = {"program": ([], []), "llama.cpp": ([], [])}
    print("%-24s %7s  %-10s %10s %10s" % ("text", "tokens", "", "mean KL", "same best"))
    for text in texts:
        with tempfile.TemporaryDirectory() as d:
            ids = token_ids(a.peers, a.model, text, a.tokens)
            f = {"ids": os.path.join(d, "ids"), "out": os.path.join(d, "program.bin")}
            with open(f["ids"], "w") as h:
                h.write(" ".join(map(str, ids)) + "\n")
            n, t = len(ids), str(a.threads)
            ref = logits([lc, a.f32, f["ids"], d + "/ref.bin", "all", "f32", t, "0"], d + "/ref.bin", n)
            for name in pool:
                argv = [x.format(**f) for x in shlex.split(program)] if name == "program" else [lc, a.model, f["ids"], d + "/lc.bin", "all", "f16", t]
                kl, same = compare(ref, logits(argv, f["out"] if name == "program" else d + "/lc.bin", n))
                pool[name][0].append(kl), pool[name][1].append(same)
                print("%-24s %7d  %-10s %10.3e %8.2f %%" % (os.path.basename(text), n, name, kl.mean(), 100 * same.mean()), flush=True)
    kl = {k: np.concatenate(v[0]) for k, v in pool.items()}
    same = {k: 100 * np.concatenate(v[1]).mean() for k, v in pool.items()}
    for k in pool:
        print("%-24s %7d  %-10s %10.3e %8.2f %%" % ("pooled", len(kl[k]), k, kl[k].mean(), same[k]))
    ratio = kl["program"].mean() / kl["llama.cpp"].mean()
    good = ratio <= 1.05 and same["program"] >= same["llama.cpp"] - 1
    print("the program's divergence is %.3f of llama.cpp's (at most 1.05), its agreement %+.2f points (at least -1): %s" %
          (ratio, same["program"] - same["llama.cpp"], "good" if good else "NOT GOOD"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
