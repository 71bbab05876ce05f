"""Every architecture as a program: right logits, and the same bits however a text is evaluated.

In: the tiny models of this folder, and synthetic models of the other descriptions and of beyond.txt. Each is built once. Where there
is a golden, the logits are compared with it; then the law of ../program/same.py, over page borders (64 positions) and past windows.

  programs.py [REGEX]      the models whose names match; names of synthetic ones begin with "synth "
"""
import importlib
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "program"))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import numpy as np

import check as tiny
import make
from same import *

peers = importlib.import_module("peers-check")

LENGTHS = [1, 7, 63, 64, 65, 130, 200]
THREADS = ["1", "2", "3", "5"]
LONGEST = ["2", "3", "16", "63", "64", "65", "128"]  # batches of the longest text
TOLERANCE = 2e-3  # of the logits' standard deviation
# records of several positions; dense; experts; latent attention; recurrent; hybrid; shared caches; the whole sequence visible
KINDS = "b-deepseek4-moe|llama|gemma2|falcon|mixtral|gpt_oss|deepseek_v3|mamba2|qwen3_next|falcon_h1|lfm2|gemma3n|b-dream-dense"


# ---- the models ----

def described():
    """{architecture: the text of its description, without comments}"""
    texts = {}
    for file in sorted(os.listdir(f"{SOURCE}/arch-specs")):
        if file.endswith(".arch"):
            with open(f"{SOURCE}/arch-specs/{file}", encoding="utf-8") as f:
                text = re.sub("#.*", "", f.read())
            for name in re.search(r"^arch\s+(.*)", text, re.M).group(1).replace(" ", "").split(","):
                texts[name] = text
    return texts


def lines(path):
    with open(path) as f:
        return [words for words in (line.split("#")[0].split() for line in f) if words]


def compared():
    """{architecture: words}: the first model of it that is compared with another engine."""
    first = {words[0]: words[2:] for words in reversed(lines(f"{SOURCE}/tests/golden/encoders.txt"))}
    for arch, words in reversed(peers.table()[0]):
        first[arch] = words
    return first


def models():
    """[(name, architecture, words for synth or None, whether in the usual run)]"""
    archs, words_of = described(), compared()
    of = {n: make.load(n)["arch"] for n in make.names()}
    kinds = re.compile(f"^({KINDS})$")
    tiny_ones = [(n, of[n], None, bool(kinds.match(n))) for n in of if of[n] in archs]
    beyond = [(words[0] == "!", words[words[0] == "!" :]) for words in lines(f"{HERE}/beyond.txt")]
    beyond += [(False, [a, *words_of.get(a, [])]) for a in archs if a not in of.values()]
    return tiny_ones + [(f"synth {' '.join(w)}", w[0], w[1:], usual) for usual, w in beyond]


# ---- one model ----

def logits_at(program, ids, at, work):
    with open(f"{work}/golden.ids", "w") as f:
        f.write(" ".join(map(str, ids)))
    good(program, "logits", "--ids", f"{work}/golden.ids", "--at", ",".join(map(str, at)), "-o", f"{work}/golden.out")
    return np.fromfile(f"{work}/golden.out", "<f4")


def right(program, name, words, model, work):
    """Compares with the golden of a tiny model, or of a synthetic one that has any."""
    try:
        if words is None:
            golden = np.load(f"{HERE}/golden/{name}.npz")
            got = logits_at(program, golden["ids"], golden["positions"], work)
            worst = tiny.compare(got.reshape(golden["logits"].shape), golden["logits"], TOLERANCE)
        elif name[len("synth ") :] in GOLDENS:
            want = peers.golden_of(name[len("synth ") :], model, GOLDENS)
            _, ids, at = peers.asked(words, SHORT)
            worst = peers.compare("program", logits_at(program, ids, at, work), want, TOLERANCE, at)
        else:
            return ""
    except (tiny.Fail, peers.Differs) as e:
        raise Failed(f"{name}: {e}")
    return f"max|d|/std {worst:.2g}, "


def check_embedding(p):
    """An encoder gives its rows, or what it makes of them, by `embed`."""
    out = f"{p.path}.rows"
    for length in p.lengths:
        for pool in ([], ["--pool", "none"]):
            want = None
            for threads in THREADS:
                good(p.path, "embed", "--ids", p.file_of(0, length), "-o", out, "--threads", threads, *pool)
                got = bytes_of(out)
                want = want or got
                check(got == want, f"embed {' '.join(pool)} of {length} tokens, --threads {threads}: other bits than one thread's")
        numbers(want)
    return "threads"


def check_bits(p, model, text):
    whole = re.search(r" sees=(all|around)", good(GGCC, "build", model, "-o", p.path, "--dump", "graph").out.decode())
    if not re.search(r"^\s*logits\s*=", text, re.M):
        return check_embedding(p)
    if whole:
        refused(1, ["as a whole"], p.path, "logits", "--ids", p.file_of(0, 7), "-o", f"{p.path}.no", "--batch", "3")
        refused(1, ["as a whole"], p.path, "run", "--ids", p.file_of(0, 7), "-n", "3")
        check_threads(p, THREADS[1:])
        return "threads"
    longest = max(p.lengths)
    ways = [(n, None, THREADS[i % 4]) for i, n in enumerate(p.lengths)]
    ways += [(longest, b, THREADS[(i + 1) % 4]) for i, b in enumerate(LONGEST)]
    runs = check_logits(p, ways)
    cuts = [(1, None, "2"), (63, "5", "1"), (64, "16", "3"), (65, None, "5"), (longest - 1, "64", "2")]
    check_states(p, longest, [c for c in cuts if c[0] < longest])
    return f"{runs} ways"


def check_model(name, arch, words, text):
    work = tempfile.mkdtemp(prefix="arch-", dir=WORK)
    try:
        model, program = f"{work}/model.gguf", f"{work}/program"
        if words is None:
            make.make(name, model)
        else:
            synth(arch, model, *peers.asked(words, SHORT)[0])
        build(model, program, "--quiet")
        return right(program, name, words, model, work) + check_bits(Program(program, LENGTHS), model, text)
    finally:
        shutil.rmtree(work)


def main():
    only = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    texts = described()
    todo = [m for m in models() if (FULL or m[3] or len(sys.argv) > 1) and only.search(m[0])]
    passed = run_all([(n, lambda n=n, a=a, w=w: check_model(n, a, w, texts[a])) for n, a, w, _ in todo])
    sys.exit(0 if passed and todo else 1)


WORK, GOLDENS, SHORT = tempfile.mkdtemp(), peers.load(), peers.table()[2]
try:
    main()
finally:
    shutil.rmtree(WORK)
