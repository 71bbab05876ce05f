#!/usr/bin/env python3
# Prints runtime/value_unicode.h: what Python's str methods ask of Unicode, as runs. In: this Python's own tables, so that
# `upper`, `isalpha`, `repr` and their kin agree with it. Run by hand when a newer Unicode is wanted.
import sys
import unicodedata

LAST = 0x110000
FLAGS = ["ALPHA", "DECIMAL", "DIGIT", "NUMERIC", "SPACE", "UPPER", "LOWER", "TITLE", "PRINTABLE", "ID_START", "ID_PART", "IGNORABLE"]


def ignorable(c):  # Case_Ignorable, as the final sigma rule needs it
    return unicodedata.category(c) in ("Mn", "Me", "Cf", "Lm", "Sk") or c in "'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a"


def flags(c):
    tests = [c.isalpha(), c.isdecimal(), c.isdigit(), c.isnumeric(), c.isspace(), c.isupper(), c.islower(), c.istitle() and not c.isupper(),
             c.isprintable(), c.isidentifier(), ("a" + c).isidentifier(), ignorable(c)]
    return sum(1 << i for i, t in enumerate(tests) if t)


def rows(items, per):
    return "\n".join("    " + " ".join(items[i:i + per]) for i in range(0, len(items), per))


def runs(mapping):  # (first, last, stride, delta): every stride-th code point of the run maps to itself + delta
    out = []
    for c, to in sorted(mapping.items()):
        d = to - c
        if out and out[-1][3] == d:
            first, last, stride, _ = out[-1]
            if first == last and c - last <= 2:
                out[-1] = (first, c, c - last, d)
                continue
            if stride and c - last == stride:
                out[-1] = (first, c, stride, d)
                continue
        out.append((c, c, 0, d))
    return ["{0x%X, 0x%X, %d, %d}," % (a, b, s or 1, d) for a, b, s, d in out]


all_runs, before = [], -1
for i in range(LAST):
    f = flags(chr(i))
    if f != before:
        all_runs.append((i, f))
        before = f
simple = {"lower": {}, "upper": {}, "title": {}, "fold": {}}
special = {"lower": [], "upper": [], "title": [], "fold": []}
how = {"lower": str.lower, "upper": str.upper, "title": str.title, "fold": str.casefold}
for i in range(LAST):
    c = chr(i)
    for kind, f in how.items():
        t = f(c)
        if t == c:
            continue
        if len(t) == 1:
            simple[kind][i] = ord(t)
        else:
            special[kind].append("{0x%X, {%s}}," % (i, ", ".join("0x%X" % ord(x) for x in t)))
print("// What Python's str methods ask of Unicode %s, printed by tests/jinja/unicode.py: each run of code points that share" % unicodedata.unidata_version)
print("// their flags begins where it says; case maps are runs with a stride, and a list where one becomes several.")
print("#ifndef VALUE_UNICODE_H\n#define VALUE_UNICODE_H\n\n#include <stdint.h>\n")
for i, f in enumerate(FLAGS):
    print("#define UC_%s 0x%Xu" % (f, 1 << i))
print("\nstatic const uint32_t uc_start[] = {\n%s\n};" % rows(["0x%X," % a for a, _ in all_runs], 14))
print("\nstatic const uint16_t uc_flags[] = {\n%s\n};" % rows(["0x%X," % f for _, f in all_runs], 16))
print("\ntypedef struct {\n    uint32_t first, last;\n    int32_t stride, delta;\n} CaseRun;\n\ntypedef struct {\n    uint32_t c, to[3];\n} CaseSpecial;\n")
for kind in simple:
    print("static const CaseRun uc_%s[] = {\n%s\n};" % (kind, rows(runs(simple[kind]), 5)))
    if special[kind]:
        print("static const CaseSpecial uc_%s_special[] = {\n%s\n};" % (kind, rows(special[kind], 4)))
print("\n#endif")
sys.stderr.write("%d runs\n" % len(all_runs))
