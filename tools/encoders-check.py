#!/usr/bin/env python3
"""Synthetic encoders, computed by ggcc and by llama.cpp: what `embed` gives must agree.

  encoders-check.py --ggcc PATH [--lc PATH [--write]] [--only REGEX] [--compiled] [--tol 2e-3] [-v]

--lc names tools/lc_embed.cpp, built (goldens.sh does it); without it, what llama.cpp gave is read from
tests/golden/encoders.npz, which --write makes. The variants are the lines of tests/golden/encoders.txt. Each model
(`ggcc synth`) is run on 60 random ids by llama.cpp, by ggcc's interpreter and, with --compiled, by the program. A
variant is right when max|d| is at most tol standard deviations of llama.cpp's numbers (of one score: tol of it).
"""
import argparse, importlib, os, re, subprocess, sys, tempfile
import numpy as np

peers = importlib.import_module("peers-check")
Differs, run = peers.Differs, peers.run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests", "golden", "encoders.txt")
GOLDEN = os.path.join(ROOT, "tests", "golden", "encoders.npz")
N, KEPT = 60, [0, 1, 7, 8, 9, 31, 58, 59]


def numbers(path, vectors):
    """[vectors][width]; of many, the rows KEPT."""
    x = np.fromfile(path, "<f4").astype(np.float64).reshape(vectors, -1)
    return x[KEPT] if vectors == N else x


def by_interpreter(path, how):
    """The interpreter gives a result for each row: rows, or N times what is pooled."""
    x = np.fromfile(path, "<f4").astype(np.float64).reshape(N, -1)
    return {"none": x[KEPT], "mean": x.mean(0)[None], "first": x[:1], "last": x[-1:], "file": x[-1:]}[how]


def compare(what, got, want, tol):
    if got.shape != want.shape:
        raise Differs("%s: %s numbers, llama.cpp gives %s" % (what, got.shape, want.shape))
    error = np.abs(got - want).max() / (want.std() if want.size > 2 else np.abs(want).max())
    if not error <= tol:
        raise Differs("%s: max|d|/std %.2g" % (what, error))
    return error


def reference(name, model, ids, how, a, out):
    if a.lc:
        run([a.lc, model, ids, out, how], "llama.cpp")
        a.made[name] = numbers(out, N if how == "none" else 1).astype("<f4")
        a.made["model of " + name] = np.array(peers.digest(model))
        return a.made[name].astype(np.float64)
    return peers.golden_of(name, model, a.golden)["rows"].astype(np.float64)


def load():
    with np.load(GOLDEN) as z:
        return {n: {"model": str(z["model of " + n]), "rows": z[n]} for n in z.files if "model of " + n in z.files}


def by_both(name):
    """Rows that the file pools otherwise: only the program gives them."""
    _, how, *sets = name.split()
    return how == "file" or not any(s.startswith("pooling_type=") for s in sets)


def one(name, a):
    arch, how, *sets = name.split()
    with tempfile.TemporaryDirectory() as d:
        model, ids, out = d + "/model.gguf", d + "/ids", d + "/out"
        with open(ids, "w") as f:
            f.write(" ".join(map(str, np.random.RandomState(5).randint(3, 280, size=N))) + "\n")
        keys = ["tokenizer.ggml.token_type_count=2"] + sets  # llama.cpp asks for it
        run([a.ggcc, "synth", arch, "-o", model, "--quiet"] + [x for k in keys for x in ("--set", k)], "synth")
        want = reference(name, model, ids, how, a, out)
        worst = 0
        if by_both(name):
            run([a.ggcc, "logits", model, "--ids", ids, "-o", out], "ggcc logits")
            worst = compare("interpreter", by_interpreter(out, how), want, a.tol)
        if a.compiled:
            run([a.ggcc, "build", "--quiet", model, "-o", d + "/program"], "ggcc build")
            pool = [] if how == "file" else ["--pool", how]
            run([d + "/program", "embed", "--ids", ids, "-o", out] + pool, "program")
            worst = max(worst, compare("program", numbers(out, N if how == "none" else 1), want, a.tol))
        return worst


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--lc", default="", help="tools/lc_embed.cpp, built")
    ap.add_argument("--write", action="store_true", help="the goldens anew, of what agrees")
    ap.add_argument("--ggcc", required=True)
    ap.add_argument("--only", default="", help="regular expression over the lines")
    ap.add_argument("--compiled", action="store_true", help="also build and run the programs")
    ap.add_argument("--tol", type=float, default=2e-3)
    ap.add_argument("-v", action="store_true", help="a line for each variant, not only for those that differ")
    a = ap.parse_args()
    a.made = dict(np.load(GOLDEN)) if a.write and a.only else {}  # the others' stay
    a.golden = {} if a.lc else load()
    with open(TABLE) as f:
        names = [" ".join(x.split()) for x in f if x.strip() and x[0] != "#"]
    names = [x for x in names if re.search(a.only, x) and (a.compiled or a.lc or by_both(x))]
    good = 0
    for name in names:
        try:
            worst = one(name, a)
            good += 1
            if a.v:
                print("ok   %s: %.2g" % (name, worst), flush=True)
        except (Differs, subprocess.TimeoutExpired) as e:
            a.made.pop(name, None)
            print("FAIL %s\n     %s" % (name, e), flush=True)
    print("%d of %d encoders agree" % (good, len(names)))
    if a.write:
        np.savez_compressed(GOLDEN, **a.made)
    return 0 if good == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
