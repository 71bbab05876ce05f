"""Every key that a description ignores is altered: not one bit of the logits may change. Every key that it expects to have a value
gets another one: the build must stop.

  ignored.py WORK [--only REGEX] [--peers DIR]

With --peers, DIR/bin/lc_logits computes the model with each ignored key altered as well, and says where llama.cpp's logits change:
there `ignore` is wrong and `expect` or reading it would be right.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from family import SPECS, Family, gguf, split
from kinds import altered
from mistakes import settings


def statements(family):
    """(kind, names, wanted value or "", text, indented) of the lines that ignore and expect"""
    for name, text in family.texts.items():
        for line in text.split("\n"):
            m = re.match(r"(\s*)(ignore|expect)\s+(.*?)\s*$", split(line)[0])
            if not m or m.group(3).startswith("layers "):
                continue
            names, _, wanted = m.group(3).partition(" == ")
            yield m.group(2), [n.strip() for n in names.split(",")], wanted, name, bool(m.group(1))


def named(text, name, but=""):
    """A line of this text, but for those beginning with one of `but`, has this key, or all of its group."""
    group = re.escape(".".join(name.split(".")[:2])) if name.startswith("rope.scaling.") else "(?!)"
    for line in text.split("\n"):
        code = split(line)[0]
        if not (but and re.match(rf"\s*({but})\b", code)) and re.search(rf"(?<![\w.])({re.escape(name)}|{group})(?![\w.])", code):
            return True
    return False


def of_library(family, text, name):
    """A library's line is about what nothing else names."""
    rest = [t for n, t in family.texts.items() if n not in (family.main, text)]
    return text == family.main or not (named(family.texts[family.main], name) or any(named(t, name, "ignore|expect") for t in rest))


def full(family, name):
    return name.strip('"').encode() if name[0] == '"' else family.prefix() + name.encode()


def others(family, key, wanted):
    """Values that are not the present one, as (type, value); of a key that is absent, of each kind."""
    have = [k for k in family.keys if k[0] == key]
    if have:
        return [(have[0][1], altered(have[0][1], have[0][2]))]
    if wanted in ("true", "false"):
        return [(gguf.BOOL, wanted == "false")]
    if wanted.startswith('"'):
        return [(gguf.STRING, b"another")]
    if wanted:
        return [(gguf.U32, 977)]
    return [(gguf.U32, 7), (gguf.F32, 0.37), (gguf.BOOL, True), (gguf.STRING, b"yarn")]


def giving(key, kind, value):
    def change(keys, tensors):
        keys[:] = [k for k in keys if k[0] != key] + [[key, kind, value]]

    return change


def peer(family, peers, change):
    """llama.cpp's logits of the changed model, or what it says."""
    here, words = family.arguments({}, change)
    path = f"{here}/{words[0]}" if change else words[0]
    done = subprocess.run([f"{peers}/bin/lc_logits", path, f"{family.work}/ids", f"{here}/out", "all", "f32", "1"], capture_output=True, timeout=120)
    if done.returncode:
        return done.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:160]
    with open(f"{here}/out", "rb") as f:
        return f.read()


def ignored(family, name, peers, right):
    """What is wrong with ignoring this key."""
    wrong, key = [], full(family, name)
    for kind, value in others(family, key, ""):
        change = giving(key, kind, value)
        state, text = family.answer({}, change)
        if state != "logits":
            wrong.append(f"{family.name}: ignores '{name}', and stops when it is {value}: {text.strip()}")
        elif text != family.right[1]:
            wrong.append(f"{family.name}: ignores '{name}', and computes something else when it is {value}")
        if isinstance(right, bytes):
            theirs = peer(family, peers, change)
            if isinstance(theirs, bytes) and theirs != right:  # else it does not load the file: no statement
                print(f"llama.cpp: {family.name}: other logits where '{name}' is {value}", flush=True)
    return wrong


def together(family, names):
    """All of these keys altered at once: still the same logits."""

    def change(keys, tensors):
        for name in names:
            key = full(family, name)
            giving(key, *others(family, key, "")[-1])(keys, tensors)

    state, text = family.answer({}, change)
    return state == "logits" and text == family.right[1]


def expected(family, name, wanted, n, indented):
    key, wrong = full(family, name), []
    for how, value in others(family, key, wanted):
        state, said = family.answer({}, giving(key, how, value))
        if state == "error":
            n["expect"] += 1
        elif indented or "?" in wanted:
            n["not reached"] += 1
        else:
            wrong.append(f"{family.name}: expects '{name}' == {wanted}, and does not stop when it is {value}")
    return wrong


def one(path, work, sets, peers, every):
    family = Family(path, work, sets.get(os.path.basename(path)[:-5], ()))
    right = peer(family, peers, None) if peers else None
    if peers and not isinstance(right, bytes):
        print(f"llama.cpp: {family.name}: not computed: {right}", flush=True)
    n = {"ignore": 0, "expect": 0, "not reached": 0}
    wrong, names = [], []
    for kind, listed, wanted, text, indented in statements(family):
        for name in listed:
            if "$" in name or not of_library(family, text, name):
                continue
            if kind == "expect" and not peers and (text == family.main or every):
                wrong += expected(family, name, wanted, n, indented)
            if kind == "ignore" and not indented:
                names.append(name)
            if kind == "ignore" and indented:  # perhaps in a branch that this model does not take
                n["not reached" if ignored(family, name, peers, right) else "ignore"] += 1
    n["ignore"] += len(names)
    if peers or every or not together(family, names):
        for name in names:
            wrong += ignored(family, name, peers, right)
    return n, wrong


def main():
    work = sys.argv[1] + "/ignored"
    word = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    only, peers = re.compile(word.get("--only", "")), word.get("--peers", "")
    paths = sorted(f"{SPECS}/{f}" for f in os.listdir(SPECS) if f.endswith(".arch") and only.search(f[:-5]))
    sets, full_run = settings(), os.environ.get("GGCC_FULL") == "1"  # else what the library expects only of every eighth
    if peers:
        with open(os.path.dirname(SPECS) + "/tests/golden/peers.txt") as f:
            for row in f:
                words = row.split("#")[0].split()
                if len(words) > 1 and words[1] != "!" and words[0] not in sets and all("=" in w for w in words[1:]):
                    sets[words[0]] = [w for w in words[1:] if not w.startswith("rows=")]
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        each = list(zip(paths, range(len(paths))))
        results = list(pool.map(lambda p: one(p[0], work, sets, peers, full_run or p[1] % 8 == 0), each))
    total = {k: sum(n[k] for n, _ in results) for k in ("ignore", "expect", "not reached")}
    print(f"{total['ignore']} ignored keys altered, {total['expect']} expected ones; {total['not reached']} in branches that the model does not take")
    wrong = [w for _, bad in results for w in bad]
    print("\n".join(f"FAIL {w}" for w in wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong or total["ignore"] < len(paths) else 0)


if __name__ == "__main__":
    main()
