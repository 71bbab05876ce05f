#!/usr/bin/env python3
"""Counts the descriptions: count-archs.py [--ggcc PATH] [--arch-specs DIR] [--jobs N]

For each file: lines (code and comments, without blank ones), and the operators that it comes to: those of the graphs that
`ggcc` makes of it, over the variants of tests/golden/peers.txt and encoders.txt, the models of tests/archs, and MORE here (an
operator that only other settings bring in is not seen). What only hands values on (sources, views, copies) is no operator
here; attention names the extras that it is asked for. Then the median, the longest, the two diffs that say how far one
family is from the next, and the constants of families that no key carries, each with its source: the comment on its line.
"""
import argparse, difflib, os, re, signal, statistics, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUMBING = "get set token position cache const param weight reshape slice concat copy take q8 id index at".split()

# What the other tables lack: settings that bring an operator in. As there: ARCH and what `ggcc synth` is given;
# +: and what the first line for ARCH there has.
MORE = """
gemma3 final_logit_softcapping=30
qwen3 pooling_type=4 size.labels=2
kimi-linear + expert_gating_func=1
bailingmoe3 + expert_gating_func=1
dots3note + expert_gating_func=1
hy_v4 + expert_gating_func=1
hy_v3 tensor.ffn_gate_inp=1 tensor.ffn_gate_shexp=1 expert_gating_func=1
step35 + tensor.ffn_gate_inp=1 expert_gating_func=1
""".split("\n")


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [l.rstrip() for l in f if l.strip()]


def ggcc(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("count-archs.py: %s: %s" % (" ".join(argv), done.stderr.strip()[:600]))
    return done.stdout


def dump(a, model, out, *of):
    return ggcc(a.ggcc, "build", model, "-o", out, "--quiet", "--dump", "graph", "--arch-dir", a.arch_specs, *of)


def graph(a, arch, sets, description=None):
    """The text of the graph of one synthetic model, by its own description or by a file."""
    with tempfile.TemporaryDirectory() as d:
        model = os.path.join(d, "model.gguf")
        settings = [x for s in sets for x in ("--set", s)]
        ggcc(a.ggcc, "synth", arch, "-o", model, "--quiet", "--arch-dir", a.arch_specs, *settings)
        return dump(a, model, os.path.join(d, "program"), *(["--arch", description] if description else []))


def operators(text):
    found = set()
    for op, rest in re.findall(r"^    (?:\S+)? ?\.?\S* = (\w+)(.*)", text, re.M):
        found.add(op)
        if op == "attention":
            found |= {"attention:" + extra for extra in re.findall(r" (softcap|alibi)=", rest)}
    return found - set(PLUMBING)


def variants():
    """(architecture, settings of synth) of every line of the two tables."""
    golden = os.path.join(ROOT, "tests", "golden")
    tables = [(lines(os.path.join(golden, f)), skip) for f, skip in (("peers.txt", 1), ("encoders.txt", 2))]
    first = {}
    for table, skip in tables + [(MORE, 1)]:  # an encoder's second word: how it is pooled
        short = {}
        for line in table:
            words = line.split("#")[0].split()
            if words and words[0][0] == "@":
                short[words[0]] = words[2:]
            elif words and words[1:2] != ["!"]:
                sets = [s for w in words[skip:] for s in short.get(w, [w])]
                sets = [s for s in sets if not s.startswith("rows=")]
                if sets[:1] == ["+"]:
                    sets = ["=".join(x) for x in dict(s.split("=", 1) for s in first[words[0]] + sets[1:]).items()]
                first.setdefault(words[0], sets)
                yield words[0], tuple(sets)


def used(a, files):
    """{file: its operators}; architectures that no line names are made with default values."""
    of = {name: f for f, names, _ in files for name in names}
    asked = sorted(set(v for v in variants() if v[0] in of))
    asked += [(name, ()) for name in of if name not in set(v[0] for v in asked)]
    ops = {f: set() for f, _, _ in files}
    with ThreadPoolExecutor(a.jobs) as ex:
        for (arch, _), text in zip(asked, ex.map(lambda v: graph(a, *v), asked)):
            ops[of[arch]] |= operators(text)
    with tempfile.TemporaryDirectory() as d:
        make = os.path.join(ROOT, "tests", "archs", "make.py")
        subprocess.run([sys.executable, make, "--out", d], check=True, stdout=subprocess.DEVNULL)
        models = [os.path.join(d, m) for m in sorted(os.listdir(d)) if m.endswith(".gguf")]
        with ThreadPoolExecutor(a.jobs) as ex:
            for text in ex.map(lambda m: dump(a, m, m + ".out"), models):
                name = text.split()[1].strip('"')
                if name in of:  # a folder may have fewer than ggcc itself
                    ops[of[name]] |= operators(text)
    return ops, len(asked) + len(models)


def show_diff(what, before, after):
    d = [l for l in difflib.unified_diff(before, after, lineterm="", n=0)][2:]
    d = [l for l in d if l[:1] in "+-"]
    print("\ndiff %s: %d lines" % (what, len(d)))
    for l in d:
        print("  " + l)


def without_experts(a, text):
    """llama.arch is Llama and Mixtral: its dense half alone, which must come to the same graph for a dense model."""
    dense = [l.replace(" lib/moe,", "") for l in text if not re.match(r"size\s+\w+\s*= expert_", l)]
    dense = [re.sub(r"\(E == 0 \? (.*) : routed\(.*\)\)", r"\1", l) for l in dense]
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "dense.arch")
        with open(path, "w") as f:
            f.write("\n".join(dense) + "\n")
        plain = [re.sub(r"^fact .*\n", "", graph(a, "llama", (), x), flags=re.M) for x in (None, path)]
    if plain[0] != plain[1] or re.search(r"\b(routed|expert_\w+)\b", "\n".join(l.split("#")[0] for l in dense)):
        raise SystemExit("count-archs.py: llama.arch without its experts is no longer what this script takes it for")
    return dense


def constants(f, text):
    for l in text:
        c, _, why = l.partition("#")
        if why and re.search(r"(\bor\s+[-0-9.]+\b|==\s*\d{2,}|\b\d{3,}\b)", c) and not c.lstrip().startswith("arch"):
            print("  %-20s %-80s # %s" % (f, re.sub(r"\s+", " ", c.strip())[:80], why.strip()))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", default=os.path.join(ROOT, "build", "ggcc"))
    ap.add_argument("--arch-specs", default=os.path.join(ROOT, "arch-specs"))
    ap.add_argument("--jobs", type=int, default=2)
    a = ap.parse_args()
    if not os.path.exists(a.ggcc):
        raise SystemExit("count-archs.py: no %s: build it, or name it with --ggcc" % a.ggcc)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly

    files, texts = [], {}
    for f in sorted(os.listdir(a.arch_specs)):
        if f.endswith(".arch"):
            texts[f] = lines(os.path.join(a.arch_specs, f))
            line = next(l for l in texts[f] if l.startswith("arch "))
            files.append((f, re.split(r"[,\s]+", line.split("#")[0][5:].strip()), len(texts[f])))
    for name in ("qwen2.arch", "qwen3.arch", "llama.arch"):
        if name not in texts:
            raise SystemExit("count-archs.py: no %s in %s" % (name, a.arch_specs))
    ops, models = used(a, files)
    print("%-22s %5s  %s" % ("description", "lines", "operators"))
    for f, _, n in files:
        print("%-22s %5d  %s" % (f, n, " ".join(sorted(ops[f]))))
    n = [x[2] for x in files]
    longest = max(files, key=lambda x: x[2])[0]
    print("\n%d descriptions of %d architectures; median %d lines, longest %d (%s); operators of the graphs of %d models"
          % (len(files), sum(len(x[1]) for x in files), statistics.median(n), max(n), longest, models))
    show_diff("qwen2 -> qwen3", texts["qwen2.arch"], texts["qwen3.arch"])
    show_diff("Llama -> Mixtral (llama.arch without its experts -> llama.arch; the experts themselves: lib/moe.arch)",
              without_experts(a, texts["llama.arch"]), texts["llama.arch"])
    print("\nconstants that no key carries, and their source")
    for f in texts:
        constants(f, texts[f])


main()
