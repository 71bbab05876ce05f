#!/usr/bin/env python3
"""Golden logits of an independent engine: made by tools/goldens.sh, checked by test.sh.

  golden.py make OUT.npz --lc LC_LOGITS --reference F32.gguf --model MODEL.gguf --ids FILE [--at 0,5,...]
  golden.py check IN.npz --model MODEL.gguf --logits COMMAND [--tol 1e-4]

A golden holds: ids (int32), positions, and at each position the logits of some tokens (`probes`: evenly spread, and the
best ones of every position), the best token and its lead over the second; the standard deviation of all logits at all
positions; the sha256 of the model file that it is for. --reference is what the engine evaluates: the model itself, or the
same dequantised to F32, which is what its interpreter must reproduce.
COMMAND has {model}, {ids}, {at} and {out} in it and writes raw float32 rows.
A check passes when no probe is off by more than tol standard deviations and the best token is the same wherever
the golden's lead is larger than twice that.
"""
import argparse, hashlib, os, shlex, subprocess, sys, tempfile
import numpy as np

PROBES, BEST = 1024, 8
AT = [0, 1, 2, 3, 7, 15, 31, 32, 33, 63, 64, 65, 95, 127, 128, 200, 255, 256, 300, 383, 400, 450, 480, 500, 509, 510, 511]


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit("error: %s: exit status %d: %s" % (argv[0], done.returncode, done.stdout.decode("utf-8", "replace").strip()[-500:]))


def make(a):
    ids = np.array(open(a.ids).read().split(), np.int32)
    positions = np.array([p for p in ([int(x) for x in a.at.split(",")] if a.at else AT) if p < len(ids)], np.int32)
    with tempfile.TemporaryDirectory() as d:
        run([a.lc, a.reference, a.ids, d + "/out", "all", "f32", str(os.cpu_count()), "0"])
        rows = np.memmap(d + "/out", "<f4", "r").reshape(len(ids), -1)
        vocab = rows.shape[1]
        std = float(np.std(rows, dtype=np.float64))
        rows = np.array(rows[positions])
    order = np.argsort(-rows, axis=1, kind="stable")
    probes = np.unique(np.concatenate([np.linspace(0, vocab - 1, min(PROBES, vocab)).astype(np.int32), order[:, :BEST].ravel().astype(np.int32)]))
    best = order[:, 0].astype(np.int32)
    lead = np.take_along_axis(rows, order[:, :1], 1)[:, 0] - np.take_along_axis(rows, order[:, 1:2], 1)[:, 0]
    np.savez_compressed(a.file, ids=ids, positions=positions, vocab=vocab, std=std, probes=probes, logits=rows[:, probes], best=best, lead=lead, model=sha256(a.model))
    print("%s: %d tokens, %d positions, %d of %d logits each, std %.3f, %d bytes" % (os.path.basename(a.file), len(ids), len(positions), len(probes), vocab, std, os.path.getsize(a.file)))


def check(a):
    g = np.load(a.file)
    name = os.path.basename(a.file)[:-len(".npz")]
    if not a.same_values and sha256(a.model) != str(g["model"]):
        sys.exit("%s: %s is not the file that the golden was made for; make it anew with tools/goldens.sh" % (name, a.model))
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/ids", "w") as f:
            f.write(" ".join(map(str, g["ids"])) + "\n")
        fields = dict(model=a.model, ids=d + "/ids", at=",".join(map(str, g["positions"])), out=d + "/out")
        run([x.format(**fields) for x in shlex.split(a.logits)])
        got = np.fromfile(d + "/out", "<f4")
    if got.size != len(g["positions"]) * int(g["vocab"]):
        sys.exit("%s: %d values, %d x %d expected" % (name, got.size, len(g["positions"]), int(g["vocab"])))
    got = got.reshape(len(g["positions"]), -1)
    if not np.isfinite(got).all():
        sys.exit("%s: some values are not finite" % name)
    std = float(g["std"])
    error = np.abs(got[:, g["probes"]].astype(np.float64) - g["logits"]).max(1) / std
    other = (got.argmax(1) != g["best"]) & (g["lead"] > 2 * a.tol * std)
    worst = int(error.argmax())
    print("%-16s max|d|/std %.2g at position %d, best token differs at %d of %d" % (name, error[worst], g["positions"][worst], other.sum(), len(other)))
    return 1 if error[worst] > a.tol or other.any() else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="command", required=True)
    m, c = sub.add_parser("make"), sub.add_parser("check")
    for p in m, c:
        p.add_argument("file")
        p.add_argument("--model", required=True)
    m.add_argument("--lc", required=True)
    m.add_argument("--reference", required=True)
    m.add_argument("--ids", required=True)
    m.add_argument("--at", default="")
    c.add_argument("--logits", required=True)
    c.add_argument("--tol", type=float, default=1e-4)
    c.add_argument("--same-values", action="store_true", help="MODEL is another file with the same weights: do not look at its hash")
    a = ap.parse_args()
    return make(a) if a.command == "make" else check(a)


if __name__ == "__main__":
    sys.exit(main())
