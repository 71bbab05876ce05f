#!/usr/bin/env python3
"""Writes compiler/unicode.def, the general category of every code point as ranges.

    pip install unicodedata2==15.1.0
    python3 tools/unicode.py > compiler/unicode.def

Unicode 15.1 is the version of the engine that the tokenizer goldens come from; a newer one would
split text of scripts added since then differently from the vocabularies trained before.
"""

import sys

import unicodedata2 as unicode

VERSION = "15.1.0"


def main():
    if unicode.unidata_version != VERSION:
        sys.exit(f"error: unicodedata2 has Unicode {unicode.unidata_version}, expected {VERSION}")
    print(f"// General categories of Unicode {VERSION}: R(first, category) holds up to the next row's first.")
    print("// Written by tools/unicode.py; do not edit.")
    line, before = "", None
    for code in range(0x110000):
        category = unicode.category(chr(code))
        if category != before:
            row = f"R(0x{code:X}, {category})"
            if len(line) + len(row) + 1 > 118:
                print(line)
                line = ""
            line += (" " if line else "") + row
            before = category
    print(line)


main()
