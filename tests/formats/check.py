#!/usr/bin/env python3
"""How far a program of a quantised file is from the same weights computed in f32, beside what llama.cpp's kernels lose.

  check.py --ggcc PATH [--peers DIR]      with --peers: llama.cpp measured anew, golden.txt written

In: models that ggcc itself can make, four texts of 96 random ids each. The reference is the interpreter, which rounds nothing. Out: the mean
Kullback-Leibler divergence of the next token; the program's must be at most 1.1 times the one in golden.txt.
"""
import argparse, os, subprocess, sys, tempfile
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "bench"))
from accuracy import compare
from formats import FAMILIES

GOLDEN = os.path.join(HERE, "golden.txt")
TEXTS, TOKENS, LIMIT = 4, 96, 1.1


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit("%s: exit status %d: %s" % (" ".join(argv), done.returncode, done.stdout.decode("utf-8", "replace")[-500:]))


def models(a, folder):
    yield "tales", os.path.join(HERE, "..", "data", "tales.gguf")
    for name, (arch, sets) in FAMILIES.items():
        model = "%s/%s.gguf" % (folder, name)
        run(a.ggcc, "synth", arch, "-o", model, "--quiet", *[w for s in sets.split() + ["type=Q8_0"] for w in ("--set", s)])
        yield name, model


def logits(folder, command):
    """All texts by one command with {ids} and {out} in it."""
    all_of = []
    for i in range(TEXTS):
        ids, out = "%s/ids%d" % (folder, i), folder + "/out"
        with open(ids, "w") as f:
            f.write(" ".join(map(str, np.random.RandomState(i).randint(3, 250, size=TOKENS))) + "\n")
        run(*[w.format(ids=ids, out=out) for w in command])
        all_of.append(np.fromfile(out, "<f4").reshape(TOKENS, -1))
    return np.concatenate(all_of)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", required=True)
    ap.add_argument("--peers")
    a = ap.parse_args()
    bad, golden = 0, {}
    if not a.peers:
        with open(GOLDEN) as f:
            golden = {w[0]: float(w[1]) for w in (line.split("#")[0].split() for line in f) if w}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models(a, folder):
            ref = logits(folder, [a.ggcc, "logits", model, "--ids", "{ids}", "-o", "{out}"])
            if a.peers:
                command = [a.peers + "/bin/lc_logits", model, "{ids}", "{out}", "all", "f16", "1", "0"]
                golden[name] = compare(ref, logits(folder, command))[0].mean()
            run(a.ggcc, "build", "--quiet", model, "-o", folder + "/program")
            kl = compare(ref, logits(folder, [folder + "/program", "logits", "--ids", "{ids}", "-o", "{out}"]))[0].mean()
            good = kl <= LIMIT * golden[name]
            bad += not good
            print("%-8s %9.3e, llama.cpp %9.3e: %.3f%s" % (name, kl, golden[name], kl / golden[name], "" if good else "   FAILED"), flush=True)
    if a.peers:
        with open(GOLDEN, "w") as f:
            f.write("# Mean divergence of llama.cpp from f32 arithmetic on the same weights; written by check.py --peers.\n")
            f.writelines("%s %.4e\n" % x for x in golden.items())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
