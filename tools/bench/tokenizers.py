#!/usr/bin/env python3
"""Measures tokenizing: MB/s of processor time, one thread, of ours, the package `tokenizers` or `sentencepiece`, and llama.cpp.

    pip install tokenizers sentencepiece gguf unicodedata2==15.1.0
    python3 tools/bench/tokenizers.py BUILD/tests/tokenizer/tokenizer_tool TEXT [--llama REFERENCE]

TEXT is some megabytes of prose; REFERENCE is tests/tokenizer/llama_reference.cpp, built against llama.cpp. A Markdown
table, then the time of a megabyte of one repeated letter, of spaces and of newlines, half and whole: twice the length
must take about twice the time. The best of three runs counts; texts are one string, special tokens are not added.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests/tokenizer")  # not this folder: its tokenizers.py would hide the package

from gguf import GGUFReader  # noqa: E402
from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # noqa: E402

import splits  # noqa: E402
import vocabularies as make  # noqa: E402


def best(encode, text):
    times = []
    for _ in range(3):
        start = time.process_time()
        encode(text)
        times.append(time.process_time() - start)
    return len(text.encode()) / min(times) / 1e6


def program(path, vocabulary, file, pre):
    run = subprocess.run([path, vocabulary, "time", file] + ([pre] if pre else []), capture_output=True, text=True)
    match = re.search(r"([\d.]+) s, ([\d.]+) MB/s", run.stdout)
    return (float(match[1]), float(match[2])) if match else (float("nan"), float("nan"))


def byte_level(vocabulary, pre):
    reader = GGUFReader(vocabulary)

    def strings(key):
        field = reader.fields[key]
        return [bytes(field.parts[i]).decode() for i in field.data]

    patterns, flags = splits.read_table(every=True)[pre]
    pairs = [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]
    tokens = {t: i for i, t in enumerate(strings("tokenizer.ggml.tokens"))}
    theirs = Tokenizer(models.BPE(tokens, pairs, ignore_merges="IGNORE_MERGES" in flags))
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    theirs.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(False, use_regex=False)])
    return lambda text: theirs.encode(text, add_special_tokens=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("text")
    parser.add_argument("--llama")
    parser.add_argument("--megabytes", type=float, default=2, help="of the text, for the others (ours reads it all)")
    o = parser.parse_args()
    text = pathlib.Path(o.text).read_bytes().decode(errors="ignore")
    part = text[: int(o.megabytes * 1e6)]
    folder = tempfile.mkdtemp()
    short = f"{folder}/part.txt"
    pathlib.Path(short).write_text(part)
    corpus = [line for line in text[:600000].split("\n") if line.strip() and "\0" not in line]

    shared = ROOT.parent / "shared/data/vocab/ggml-vocab-gpt-2.gguf"
    bpe = str(shared if shared.exists() else ROOT / "tests/data/tales.gguf")
    rows = [("BPE gpt-2", bpe, "gpt-2", byte_level(bpe, "gpt-2")),
            ("BPE llama-bpe", bpe, "llama-bpe", byte_level(bpe, "llama-bpe")),
            ("BPE qwen2", bpe, "qwen2", byte_level(bpe, "qwen2"))]
    for name, kind, norm, trim in (("SentencePiece BPE", "bpe", "identity", False), ("Unigram", "unigram", "nmt_nfkc", True)):
        path = f"{folder}/{kind}.gguf"
        sp = make.sentencepiece_vocabulary(path, corpus, kind, norm, trim)
        rows.append((name, path, None, lambda t, sp=sp: sp([t])))
    path = f"{folder}/words.gguf"
    wordpiece = make.wordpiece(path, corpus, True, True)
    rows.append(("WordPiece", path, None, lambda t: wordpiece([t])))
    make.longest_match(f"{folder}/longest.gguf", corpus)
    make.table(f"{folder}/table.gguf", corpus)
    rows.append(("longest (rwkv)", f"{folder}/longest.gguf", None, None))
    rows.append(("table (plamo2)", f"{folder}/table.gguf", None, None))

    print("| kind | ours, MB/s | package, MB/s | ratio | llama.cpp, MB/s | ratio |\n|---|---|---|---|---|---|")
    for name, vocabulary, pre, encode in rows:
        ours = program(o.tool, vocabulary, o.text, pre)[1]
        package = best(encode, part) if encode else float("nan")
        llama = program(o.llama, vocabulary, short, pre)[1] if o.llama else float("nan")
        cells = [f"{v:.1f}" if v == v else "" for v in (ours, package, ours / package, llama, ours / llama)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    for what, letter in (("a", "a"), ("spaces", " "), ("newlines", "\n")):
        for name, vocabulary, pre, _ in rows[1:2] + rows[3:]:
            took = []
            for n in (500000, 1000000):
                run = f"{folder}/run.txt"
                pathlib.Path(run).write_text(letter * n)
                took.append(program(o.tool, vocabulary, run, pre)[0])
            print(f"1 MB of {what}, {name}: {took[0] * 1e3:.0f} ms for half, {took[1] * 1e3:.0f} ms for the whole")


main()
