#!/usr/bin/env python3
"""Counts the descriptions: count-archs.py [arch-specs]

For each file: architectures, lines (code and comments, without blank ones), operators used (its own and those of the library parts that it
calls). Then the median, the longest, the two diffs that say how far one family is from the next, and the constants of families that no
key carries, each with its source: the comment on its line.
"""
import difflib, os, re, statistics, sys

root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "arch-specs")
OPERATORS = """attention put rms_norm layer_norm l2_norm softmax rope embed top gather only mix spread sum mean max min clamp softcap conv recur pick pool
silu gelu gelu_erf gelu_quick relu sigmoid tanh softplus exp log sqrt floor abs sign join""".split()


def lines(path):
    return [l.rstrip() for l in open(path, encoding="utf-8") if l.strip()]


def code(text):
    return "\n".join(l.split("#", 1)[0] for l in text)


def main():
    libs = {}
    for f in sorted(os.listdir(os.path.join(root, "lib"))):
        text = code(lines(os.path.join(root, "lib", f)))
        for name, body in re.findall(r"def\s+(\w+)\s*\(.*?(?=\ndef\s|\Z)", text, re.S) and [(m.group(1), m.group(0)) for m in re.finditer(r"def\s+(\w+)\s*\(.*?(?=\ndef\s|\Z)", text, re.S)]:
            libs[name] = body
    files, constants = [], []
    for f in sorted(os.listdir(root)):
        if not f.endswith(".arch"):
            continue
        text = lines(os.path.join(root, f))
        arch = next(l for l in text if l.startswith("arch ")).split("#")[0][5:].strip()
        body, seen, grown = code(text), set(), True
        while grown:
            grown = False
            for name, d in libs.items():
                if name not in seen and re.search(r"\b%s\s*\(" % name, body):
                    seen.add(name)
                    body += "\n" + d
                    grown = True
        used = [o for o in OPERATORS if re.search(r"\b%s\b" % o, body)]
        files.append((f, arch, len(text), used))
        for l in text:
            c, _, why = l.partition("#")
            if why and re.search(r"(\bor\s+[-0-9.]+\b|==\s*\d{2,}|\b\d{3,}\b)", c) and not c.lstrip().startswith("arch"):
                constants.append((f, re.sub(r"\s+", " ", c.strip()), why.strip()))
    print("%-22s %5s  %s" % ("description", "lines", "operators"))
    for f, arch, n, used in files:
        print("%-22s %5d  %s" % (f, n, " ".join(used)))
    n = [x[2] for x in files]
    names = sum(len(x[1].split(",")) for x in files)
    print("\n%d descriptions of %d architectures; median %d lines, longest %d (%s)" % (len(files), names, statistics.median(n), max(n), max(files, key=lambda x: x[2])[0]))
    for a, b in (("qwen2", "qwen3"), ("llama", "mixtral")):
        pa, pb = (os.path.join(root, x + ".arch") for x in (a, b))
        if os.path.exists(pa) and os.path.exists(pb):
            d = [l for l in difflib.unified_diff(lines(pa), lines(pb), lineterm="", n=0) if l[:1] in "+-" and l[:3] not in ("+++", "---")]
            print("diff %s -> %s: %d lines" % (a, b, len(d)))
    print("\nconstants that no key carries, and their source")
    for f, c, why in constants:
        print("  %-20s %-80s # %s" % (f, c[:80], why))


main()
