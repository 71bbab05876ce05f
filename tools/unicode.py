#!/usr/bin/env python3
"""Writes what the tokenizers need of the Unicode standard.

    pip install unicodedata2==15.1.0
    python3 tools/unicode.py categories > compiler/unicode.def
    python3 tools/unicode.py maps > compiler/unicode_maps.def

The first has the general category of every code point as ranges; the second has lower case, and what is left of
canonical decompositions when accents are dropped.

Unicode 15.1 is the version of the engine that the tokenizer goldens come from; a newer one would
split text of scripts added since then differently from the vocabularies trained before.
"""

import sys

import unicodedata2 as unicode

VERSION = "15.1.0"


class Rows:
    """Rows of a table, filled into lines."""

    def __init__(self):
        self.line = ""

    def put(self, row):
        if len(self.line) + len(row) + 1 > 118:
            self.flush()
        self.line += (" " if self.line else "") + row

    def flush(self):
        if self.line:
            print(self.line)
        self.line = ""


def categories():
    print(f"// General categories of Unicode {VERSION}: R(first, category) holds up to the next row's first.")
    print("// Written by tools/unicode.py; do not edit.")
    rows, before = Rows(), None
    for code in range(0x110000):
        category = unicode.category(chr(code))
        if category != before:
            rows.put(f"R(0x{code:X}, {category})")
            before = category
    rows.flush()


def lower_runs():
    """Runs of letters: first, last, step between them, what is added to each."""
    runs = []
    for code in range(0x110000):
        to = chr(code).lower()
        if len(to) != 1 or ord(to) == code or unicode.category(chr(code)) == "Cn":
            continue
        add = ord(to) - code
        if runs and runs[-1][3] == add:
            first, last, step, _ = runs[-1]
            if code - last <= 2 and (first == last or code - last == step):
                runs[-1] = [first, code, code - last, add]
                continue
        runs.append([code, code, 1, add])
    return runs


def maps():
    print(f"// Simple lower case and unaccented forms of Unicode {VERSION}. Written by tools/unicode.py; do not edit.")
    print("// LOWER(first, last, step, add): the code points first, first + step, ... last become that plus add.")
    rows = Rows()
    for first, last, step, add in lower_runs():
        rows.put(f"LOWER(0x{first:X}, 0x{last:X}, {step}, {add})")
    rows.flush()
    print("// BASE(code, a, b, c): its canonical decomposition less nonspacing marks; 0: nothing. Hangul is by rule.")
    for code in range(0x110000):
        whole = unicode.normalize("NFD", chr(code))
        if whole == chr(code) or 0xAC00 <= code < 0xD7A4:
            continue
        kept = [f"0x{ord(c):X}" for c in whole if unicode.category(c) != "Mn"]
        assert len(kept) < 4
        rows.put(f"BASE(0x{code:X}, {', '.join(kept + ['0'] * (3 - len(kept)))})")
    rows.flush()


def main():
    if unicode.unidata_version != VERSION:
        sys.exit(f"error: unicodedata2 has Unicode {unicode.unidata_version}, expected {VERSION}")
    if sys.argv[1:] == ["maps"]:
        maps()
    elif sys.argv[1:] == ["categories"]:
        categories()
    else:
        sys.exit("error: say categories or maps")


main()
