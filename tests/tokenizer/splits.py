#!/usr/bin/env python3
"""Writes tests/tokenizer/splits.golden: how each splitter of compiler/pretok.def cuts random texts.

    pip install regex
    python3 tests/tokenizer/splits.py > tests/tokenizer/splits.golden

The patterns come from the table; what they match is decided by the Python package `regex`, a backtracking
engine that shares nothing with ours. A line: name, the text in hexadecimal, the bytes of each piece.
"""

import pathlib
import random
import re
import subprocess

import regex

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = 24


def unescape(literal):
    named = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t", "?": "?"}

    def one(match):
        return named[match[1]] if len(match[1]) == 1 else chr(int(match[1][1:], 16))

    return re.sub(r"\\(u....|U........|.)", one, literal)


def read_table(every=False):
    """A name to its patterns; with `every`, all names, each to its patterns and flags."""
    rows = """
#define SPLITTER(name, ...) @splitter name: __VA_ARGS__ @
#define PRE(name, splitter, flags) @pre name splitter flags @
#include "compiler/pretok.def"
"""
    text = subprocess.run(["cc", "-E", "-P", "-I", ROOT, "-"], input=rows, capture_output=True, text=True, check=True).stdout
    patterns, names, flags = {}, {}, {}
    string = r'"((?:[^"\\]|\\.)*)"'
    for key, rest in re.findall(r'@splitter (\w+): ((?:[^"@]|' + string.replace("(", "(?:", 1) + r')*) @', text):
        parts = [""]
        for literal, comma in re.findall(string + "|(,)", rest):
            parts[-1] += unescape(literal)
            parts += [""] if comma else []
        patterns[key] = parts
    for name, key, flag in re.findall(r'@pre "(.*?)" (\w+) (.*?) @', text):
        names.setdefault(key, name)
        flags[name] = (patterns[key], flag)
    if every:
        return flags
    return {names[key]: row for key, row in patterns.items()}


def without_skips(pattern):
    """What a (*SKIP) passes over saves time alone: other engines search on by themselves."""
    return re.sub(r"\|[^|]*\(\*SKIP\)", "", pattern)


def cut(pattern, text):
    threes = pattern.startswith("(*THREES)")
    if threes:
        pattern = pattern[len("(*THREES)"):]
    pattern = without_skips(pattern).replace("\\d", "[0-9]")
    pieces, at = [], 0
    for match in regex.finditer(pattern, text, flags=regex.V1 if "&&" in pattern else 0):
        if match.start() > at:
            pieces.append(text[at : match.start()])
        found, at = match[0], match.end()
        while threes and len(found) > 3:
            size = len(found) % 3 or 3
            pieces.append(found[:size])
            found = found[size:]
        pieces.append(found)
    return pieces + ([text[at:]] if at < len(text) else [])


ALPHABETS = [
    "abcdefghij KLMNOPQ", "0123456789", "  ", "\n\r", "\t\u00a0\u3000\u2003", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "一二三中文字かなカナ", "бвгдЖЗИЙ", "ابتثج؟،۔", "กขคงิีุู", "가나다라한국", "😀🎉👍🏽\u200d\ufe0f", "\u0301\u0308\u0327",
    "éüñçÅÉßǅʰ", "٠١٢½Ⅷ१२", "\x00\x01\x7f",
]
BITS = ["'s", "'S", "'ll", "'RE", "'d", " '", "' ", "\r\n", "\n\n", "   ", " \n ", "don't", "Hello",
        " world", "IMGIMGABCZ",
        "<sentinel:12>", "12345678", " 3.14", "x_y", "…", "。", "McDonald", "ÉcoleÀ", "\n    x", "    "]


def random_text(rnd):
    out = ""
    for _ in range(rnd.randrange(1, 9)):
        if rnd.random() < 0.45:
            out += rnd.choice(BITS)
        else:
            alphabet = rnd.choice(ALPHABETS)
            out += "".join(rnd.choice(alphabet) for _ in range(rnd.choice((1, 1, 2, 3, 4, 7))))
    return out


def main():
    rnd = random.Random(1)
    for name, patterns in read_table().items():
        for _ in range(TEXTS):
            text = random_text(rnd)
            pieces = [text]
            for pattern in patterns:
                pieces = [part for piece in pieces for part in cut(pattern, piece)]
            print(name, text.encode().hex(), *(len(piece.encode()) for piece in pieces))


if __name__ == "__main__":
    main()
