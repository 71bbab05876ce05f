#!/usr/bin/env python3
"""Synthetic models of every decoder description, computed by ggcc and by llama.cpp: the logits must agree.

  peers-check.py --ggcc PATH [--peers DIR [--write]] [--only REGEX] [--compiled] [--tol 2e-3] [-v]

DIR holds bin/lc_logits; without it, what llama.cpp gave is read from tests/golden/peers.npz, which --write makes. The
variants are lines of tests/golden/peers.txt; a description that no line names is checked with default values. Each model
(`ggcc synth`) is run on 60 random ids (rows=N in the line: on N) by llama.cpp, by ggcc's interpreter and, with --compiled, by the program. A variant
is right when at each position checked max|d| is at most tol standard deviations of llama.cpp's logits and the best token
is the same.
"""
import argparse, hashlib, os, re, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests", "golden", "peers.txt")
GOLDEN = os.path.join(ROOT, "tests", "golden", "peers.npz")
N, AT, PROBES = 60, [0, 1, 7, 23, 24, 25, 40, 59], 24


class Differs(Exception):
    pass


def descriptions():
    names = []
    for file in sorted(os.listdir(os.path.join(ROOT, "arch-specs"))):
        if file.endswith(".arch"):
            with open(os.path.join(ROOT, "arch-specs", file)) as f:
                text = f.read()
            if re.search(r"^\s*logits\s*=", text, re.M):
                names += re.search(r"^arch\s+(.*)", text, re.M).group(1).replace(" ", "").split(",")
    return names


def table():
    """[(arch, words)], {arch: why llama.cpp is no reference}, {short word: settings}"""
    variants, unable, short = [], {}, {}
    with open(TABLE) as f:
        for line in f:
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) > 1 and words[1] == "!":
                unable[words[0]] = " ".join(words[2:])
            elif words[0][0] == "@":
                short[words[0]] = words[2:]
            else:
                variants.append((words[0], words[1:]))
    for arch in descriptions():
        if arch not in unable and arch not in [a for a, _ in variants]:
            variants.append((arch, []))
    return variants, unable, short


def run(argv, what):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        told = [x for x in lines if re.search("error|assert|missing|wrong", x, re.I)] or lines[-1:]
        raise Differs("%s: exit status %d: %s" % (what, done.returncode, " | ".join(told)[:400]))


def digest(model):
    with open(model, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def reduced(rows, model):
    """What a golden keeps of llama.cpp's logits at the positions AT."""
    order = np.sort(rows, 1)
    return dict(model=digest(model), size=rows.shape[1], std=rows.std(), best=rows.argmax(1), top=order[:, -1], lead=order[:, -1] - order[:, -2],
                probes=rows[:, np.linspace(0, rows.shape[1] - 1, PROBES).astype(int)])


def compare(name, got, want, tol, at):
    if got.size != len(AT) * want["size"]:
        raise Differs("%s: %d logits, llama.cpp gives %d x %d" % (name, got.size, len(AT), want["size"]))
    got = got.reshape(len(AT), -1).astype(np.float64)
    probes = got[:, np.linspace(0, got.shape[1] - 1, PROBES).astype(int)]
    error = np.maximum(np.abs(probes - want["probes"]).max(1), np.abs(got.max(1) - want["top"])) / want["std"]
    other = (got.argmax(1) != want["best"]) & (want["lead"] > 2 * tol * want["std"])
    if not np.isfinite(got).all() or error.max() > tol or other.any():
        bad = int(np.argmax(~(error <= tol) | other))
        raise Differs("%s: max|d|/std %.2g, first bad position %d" % (name, error.max(), at[bad]))
    return error.max()


def golden_of(name, model, golden):
    if name not in golden:
        raise Differs("no golden; tools/goldens.sh makes it")
    want = golden[name]
    if digest(model) != want["model"]:
        raise Differs("synth gives another model than the golden was made for; tools/goldens.sh makes it anew")
    return want


def asked(words, short):
    """Of the words of a line: what synth is given, the ids, and the positions that are compared."""
    sets = [s for w in words for s in short.get(w, [w])]
    rows = next((int(s[5:]) for s in sets if s.startswith("rows=")), N)
    at = AT if rows == N else [int(x) for x in np.linspace(0, rows - 1, len(AT))]
    return [s for s in sets if not s.startswith("rows=")], np.random.RandomState(5).randint(3, 280, size=rows), at


def one(arch, words, a):
    # Without flash attention llama.cpp selects no blocks; with it, some sums are in half precision.
    flash, tol = ("1", 5 * a.tol) if "@flash" in words else ("0", a.tol)
    sets, ids, at = asked(words, a.short)
    with tempfile.TemporaryDirectory() as d:
        model, text, out = d + "/model.gguf", d + "/ids", d + "/out"
        with open(text, "w") as f:
            f.write(" ".join(map(str, ids)) + "\n")
        run([a.ggcc, "synth", arch, "-o", model, "--quiet"] + [x for s in sets for x in ("--set", s)], "synth")
        name, shown = " ".join([arch] + words), ",".join(map(str, at))
        if a.peers:
            run([os.path.join(a.peers, "bin", "lc_logits"), model, text, out, "all", "f32", "1", flash], "llama.cpp")
            a.made[name] = want = reduced(np.fromfile(out, "<f4").reshape(len(ids), -1)[at], model)
            os.unlink(out)
        else:
            want = golden_of(name, model, a.golden)
        run([a.ggcc, "logits", model, "--ids", text, "--at", shown, "-o", out], "ggcc logits")
        worst = compare("interpreter", np.fromfile(out, "<f4"), want, tol, at)
        if a.compiled:
            run([a.ggcc, "build", "--quiet", model, "-o", d + "/program"], "ggcc build")
            run([d + "/program", "logits", "--ids", text, "--at", shown, "-o", out], "program")
            worst = max(worst, compare("program", np.fromfile(out, "<f4"), want, tol, at))
        return worst


def attempt(variant, a):
    try:
        return one(*variant, a), ""
    except (Differs, subprocess.TimeoutExpired) as e:
        return None, str(e)


def load():
    with np.load(GOLDEN) as z:
        columns = {k: z[k] for k in z.files}
    return {str(n): {k: columns[k][i] for k in columns if k != "name"} for i, n in enumerate(columns["name"])}


def write(made):
    names = sorted(made)
    np.savez_compressed(GOLDEN, name=np.array(names), **{k: np.array([made[n][k] for n in names]) for k in made[names[0]]})
    print("%s: %d models, %d bytes" % (os.path.relpath(GOLDEN, ROOT), len(names), os.path.getsize(GOLDEN)))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--peers", default="")
    ap.add_argument("--write", action="store_true", help="the goldens anew, of what agrees")
    ap.add_argument("--ggcc", required=True)
    ap.add_argument("--only", default="", help="regular expression over the architectures")
    ap.add_argument("--compiled", action="store_true", help="also build and run the programs")
    ap.add_argument("--tol", type=float, default=2e-3)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("-v", action="store_true", help="a line for each variant, not only for those that differ")
    a = ap.parse_args()
    a.made = load() if a.write and a.only else {}  # the others' stay
    a.golden = {} if a.peers else load()
    variants, unable, a.short = table()
    only = re.compile("^(%s)$" % a.only) if a.only else re.compile("")
    variants = [v for v in variants if only.search(v[0])]
    good = 0
    with ThreadPoolExecutor(max(1, a.jobs)) as ex:
        for variant, (worst, why) in zip(variants, ex.map(lambda v: attempt(v, a), variants)):
            name = " ".join([variant[0]] + variant[1])
            good += worst is not None
            if worst is None:
                a.made.pop(name, None)
            if worst is None:
                print("FAIL %s\n     %s" % (name, why), flush=True)
            elif a.v:
                print("ok   %s: %.2g" % (name, worst), flush=True)
    for arch in sorted(x for x in unable if only.search(x)):
        print("no reference: %s: %s" % (arch, unable[arch]))
    print("%d of %d variants of %d architectures agree" % (good, len(variants), len(set(v[0] for v in variants))))
    if a.write:
        write(a.made)
    return 0 if good == len(variants) else 1


if __name__ == "__main__":
    sys.exit(main())
