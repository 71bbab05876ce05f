#!/usr/bin/env python3
"""Compares ids with other implementations, over every kind of vocabulary and every splitter.

    pip install tokenizers sentencepiece gguf unicodedata2==15.1.0
    python3 tests/tokenizer/differential.py BUILD/tests/tokenizer/tokenizer_tool [--llama REFERENCE] [--bytes N]

The references: the packages `tokenizers` and `sentencepiece`, a few lines of Python where they have no such kind
(vocabularies.py), and llama.cpp (REFERENCE is llama_reference.cpp, built against it). Vocabularies are trained here;
those of ../shared/data/vocab are used too when they are there. N bytes (10 MB) of text are spread over all: scripts of
the world, code, emoji sequences, digits, white space, control characters; and random bytes, which byte-complete
vocabularies must give back. Every difference is printed and fails, unless a rule below names its reason.
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import unicodedata2 as unicode
from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

import splits
import vocabularies as make

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/data/vocab"

# ---- texts ----

SCRIPTS = [(0x41, 0x5B), (0x61, 0x7B), (0xC0, 0x250), (0x250, 0x2B0), (0x370, 0x400), (0x400, 0x530), (0x531, 0x590),
           (0x591, 0x5F5), (0x600, 0x700), (0x700, 0x750), (0x780, 0x7C0), (0x900, 0xA00), (0xA00, 0xB80),
           (0xB80, 0xD80), (0xD80, 0xE00), (0xE00, 0xE80), (0xE80, 0xF00), (0xF00, 0x1000), (0x1000, 0x10A0),
           (0x10A0, 0x1100), (0x1100, 0x1200), (0x1200, 0x1380), (0x13A0, 0x1400), (0x1400, 0x1680), (0x1780, 0x1800),
           (0x1800, 0x18B0), (0x1E00, 0x2000), (0x2C00, 0x2E00), (0x3040, 0x3100), (0x3100, 0x3130), (0x3400, 0x3480),
           (0x4E00, 0x9FA0), (0xA000, 0xA490), (0xAC00, 0xD7A4), (0xF900, 0xFB00), (0xFB00, 0xFE00), (0xFE70, 0xFF00),
           (0xFF00, 0xFFF0), (0x10000, 0x10100), (0x10400, 0x10450), (0x12000, 0x12100), (0x1D400, 0x1D800),
           (0x20000, 0x20100), (0x2F800, 0x2FA20)]
MARKS = [0x2010, 0x2070, 0x20A0, 0x2100, 0x2190, 0x2200, 0x2300, 0x2460, 0x2500, 0x2600, 0x3000, 0x3200, 0xA9, 0x2581]
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff"
CODE = ["if (x == 0) {\n    return -1;\n}", "def f(a, b=None):\n\treturn a[1:] + b\n", "#include <stdio.h>\n", "a->b.c::d",
        "http://example.org/?q=%20a&b=1#x", "<div class=\"x\">&amp;</div>", "x = 0xFF3A + 1.5e-3;", "// TODO: ...\n",
        "camelCaseName", "snake_case_name", "SCREAMING_CASE", "\\frac{a}{b}", "$ ls -la | grep '\\.c$'\n", "@@ -1,2 +3 @@",
        "<|endoftext|>", "<s>", "</s>", "[CLS]", "<0x0A>", "```\n", "| a | b |\n|---|---|\n", "{\"k\": [1, null]}"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇫🇷", "🇯🇵🇰🇷", "❤️", "1️⃣", "🧑🏿‍🚀", "☺", "🫠", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]


def words():
    text = "".join(p.read_text() for p in sorted(ROOT.glob("docs/*.md")) + sorted(ROOT.glob("tests/data/*.txt")))
    return text


def assigned(low, high):
    return [c for c in map(chr, range(low, high)) if unicode.category(c) not in ("Cn", "Cs", "Co")]


class Texts:
    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.prose = words()
        self.scripts = [assigned(low, high) for low, high in SCRIPTS]
        self.marks = [assigned(low, low + 0x60) for low in MARKS]

    def piece(self):
        r = self.rnd
        kind = r.randrange(20)
        if kind < 5:
            at = r.randrange(len(self.prose) - 200)
            return self.prose[at : at + r.randrange(1, 160)]
        if kind < 9:
            script = r.choice(self.scripts)
            return " ".join("".join(r.choices(script, k=r.randrange(1, 9))) for _ in range(r.randrange(1, 5)))
        if kind == 9:
            return "".join(chr(r.choice((0x300, 0x301, 0x308, 0x327, 0x345, 0x5B0, 0x64B, 0x93C, 0xE34, 0x20DD)))
                           if r.random() < 0.4 else r.choice("aeiouAEOUnkאبकก") for _ in range(r.randrange(1, 12)))
        if kind == 10:
            return r.choice(CODE)
        if kind == 11:
            return "".join(r.choices(EMOJI, k=r.randrange(1, 4)))
        if kind == 12:
            return "".join(r.choices("0123456789", k=r.choice((1, 2, 3, 4, 7, 12))))
        if kind == 13:
            return "".join(r.choices("٠١٢٣४५६๑๒½²Ⅷ①０１２.,-:/", k=r.randrange(1, 6)))
        if kind == 14:
            return r.choice(SPACES) * r.choice((1, 1, 2, 3, 4, 8, 17)) if r.random() < 0.5 else "".join(
                r.choices(SPACES, k=r.randrange(1, 7)))
        if kind == 15:
            return "".join(chr(r.randrange(32)) if r.random() < 0.8 else "\x7f" for _ in range(r.randrange(1, 4)))
        if kind == 16:
            return "".join(r.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", k=r.randrange(1, 7)))
        if kind == 17:
            return "".join(r.choices(r.choice(self.marks), k=r.randrange(1, 4)))
        if kind == 18:
            return r.choice("aA1 é世") * r.choice((2, 9, 30, 99, 101, 200))
        return splits.random_text(r)

    def some(self, size):
        out, n = [], 0
        while n < size:
            text = "".join(self.piece() + self.rnd.choice(("", "", " ", "\n")) for _ in range(self.rnd.randrange(1, 7)))
            out.append(text)
            n += len(text.encode())
        return out

    def sequence(self):
        """Bases between tags, now and then without an end or with letters that are none."""
        r, out = self.rnd, ""
        for _ in range(r.randrange(1, 4)):
            letters = r.choice(("ACGT", "acgt", "ACGTacgtN", "ACGT é<"))
            inside = "".join(r.choices(letters, k=r.choice((0, 1, 5, 6, 7, 12, 40))))
            out += r.choice(("", "x ", "ACGT")) + "<dna>" + inside + r.choice(("</dna>", "</dna>", "</dna>", ""))
        return out

    def bytes(self, size):
        out, n = [], 0
        while n < size:
            data = bytes(self.rnd.randrange(256) for _ in range(self.rnd.randrange(1, 60)))
            if self.rnd.random() < 0.5:
                data = self.piece().encode()[self.rnd.randrange(2) :] + data + self.piece().encode()[:-1]
            out.append(data)
            n += len(data)
        return out


# ---- running ----


def ids_of(program, vocabulary, texts, pre):
    data = b"".join(b"%d\n%s" % (len(t), t) for t in (t if isinstance(t, bytes) else t.encode() for t in texts))
    run = subprocess.run([program, vocabulary, "each", "0"] + ([pre] if pre else []), input=data, capture_output=True)
    if run.returncode:
        sys.exit(f"{program} {vocabulary}: {run.returncode} {run.stderr.decode()[-500:]}")
    return [list(map(int, line.split())) for line in run.stdout.split(b"\n")[: len(texts)]]


class Check:
    def __init__(self, options):
        self.o = options
        self.bytes = self.wrong = self.listed = 0

    def compare(self, name, reference, texts, ours, theirs, excuse):
        wrong, excused, size = [], {}, sum(len(t.encode()) for t in texts)
        for i, text in enumerate(texts):
            if ours[i] == theirs[i]:
                continue
            reason = excuse(reference, text, ours[i], theirs[i]) if excuse else None
            if reason:
                excused[reason] = excused.get(reason, 0) + 1
            else:
                wrong.append(i)
        print(f"{name:28} {reference:14} {len(texts):6} texts {size:9} bytes: {len(wrong)} different", flush=True)
        for reason, n in sorted(excused.items()):
            print(f"{'':44}{n} listed: {reason}")
        for i in wrong[:3]:
            k = next((k for k, (a, b) in enumerate(zip(ours[i], theirs[i])) if a != b), 0)
            print("   ", ascii(texts[i])[:300], "\n      ours  ", ours[i][k : k + 8], "\n      theirs", theirs[i][k : k + 8])
        self.wrong += len(wrong)
        self.listed += sum(excused.values())

    def run(self, name, vocabulary, texts, encode=None, package="", pre=None, excuse=None, llama=True):
        ours = ids_of(self.o.tool, vocabulary, texts, pre)
        self.bytes += sum(len(t.encode()) for t in texts)
        if encode:
            self.compare(name, package, texts, ours, encode(texts), excuse)
        if self.o.llama and llama:
            self.compare(name, "llama.cpp", texts, ours, ids_of(self.o.llama, vocabulary, texts, pre), excuse)

    def back(self, name, vocabulary, texts, pre=None):
        """Random bytes come back as they were."""
        data = b"".join(b"%d\n%s" % (len(t), t) for t in texts)
        run = subprocess.run([self.o.tool, vocabulary, "back", "0"] + ([pre] if pre else []), input=data,
                             capture_output=True)
        lost = int(run.stdout or b"-1") if run.returncode == 0 else -1
        print(f"{name:28} {'round trip':14} {len(texts):6} texts {sum(map(len, texts)):9} bytes: {lost} different")
        self.bytes += sum(map(len, texts))
        self.wrong += lost != 0


# ---- differences with a reason ----


def bert_excuse():
    """`tokenizers` classes characters by an older Unicode; llama.cpp simplifies BERT's normalisation."""
    clean = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    strip = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    punctuation, seen = pre_tokenizers.BertPreTokenizer(), {}

    def older(c):
        if c not in seen:
            category, cleaned = unicode.category(c), clean.normalize_str("a" + c + "a")
            dropped = category in ("Cc", "Cf", "Co") and c not in "\t\n\r" or c in "\0\ufffd"
            base = "".join(x for x in unicode.normalize("NFD", c) if unicode.category(x) != "Mn").lower()
            alone = category[0] == "P" or 32 < ord(c) < 127 and not c.isalnum()
            seen[c] = (dropped != (cleaned == "aa") or alone != (len(punctuation.pre_tokenize_str("a" + c + "a")) == 3
                       and category[0] != "Z" and not dropped and c not in "\t\n\r" and "a a" not in cleaned)
                       or not dropped and category[0] != "Z" and c not in "\t\n\r" and
                       strip.normalize_str(c).strip() != base)
        return seen[c]

    def excuse(reference, text, _ours, _theirs):
        if reference == "tokenizers":
            return "a character that its older Unicode classes otherwise" if any(map(older, text)) else None
        for c in text:
            if c in "\x0b\x0c\x1c\x1d\x1e\x1f\x85":
                return "controls that BERT drops are white space there"
            whole = unicode.normalize("NFD", c)
            if len([x for x in whole if unicode.category(x) != "Mn"]) > 1 or unicode.category(whole[0]) == "Mn":
                return "of a decomposition into several letters it keeps the first (Hangul)"
            if unicode.category(c) in ("Mc", "Me"):
                return "it drops spacing and enclosing marks too"
            if c == "\u0130":
                return "two letters in lower case"
            if c == "\u2581":
                return "its mark of a word's begin in the text"
        if any(len(w) > 90 for w in text.split()):
            return "a word of more than 100 characters, which BERT does not cut"
        return None

    return excuse


def unigram_excuse(encode):
    def excuse(reference, text, ours, theirs):
        if reference == "sentencepiece":
            mine, other = (sum(encode.scores[i] for i in ids) for ids in (ours, theirs))
            return "it adds scores in single precision; ours is as good" if mine > other - 1e-3 else None
        if not text.strip(" "):
            return "it puts no space before a text of spaces"
        if encode.first_byte >= 0 and 0 in theirs and 0 not in ours:
            return "it does not spell in bytes what no token covers"
        if text.endswith("\u2581") and theirs[:-1] == ours:
            return "a mark of a word's begin at the end is kept there; SentencePiece drops it as white space"
        return None

    return excuse


def segments_excuse(reference, text, _ours, _theirs):
    if reference == "llama.cpp" and "\u0130" in text:
        return "two letters in lower case"
    return None


def splitter_excuse(pre):
    """The ways of llama.cpp that docs/text.md names."""
    letters = ("youtu", "tiny_aya", "kimi-k2", "tekken", "gpt-4o")

    def excuse(reference, text, _ours, _theirs):
        beyond = [unicode.category(c) for c in text if ord(c) > 127]
        if reference != "llama.cpp":
            return None
        if pre in ("deepseek-llm", "deepseek-coder", "afmoe", "tiny_aya") and any(c.isspace() for c in text if ord(c) > 127):
            return "white space beyond ASCII is in no class but \\s there"
        if pre == "superbpe" and "Nd" in beyond:
            return "digits beyond ASCII are none there"
        if pre == "kimi-k2" and any(c in "\u3005\u3007" or unicode.name(c, "").startswith(("KANGXI", "CJK RADICAL"))
                                    for c in text):
            return "of the script Han it takes the ideographs alone"
        if pre == "tiny_aya" and re.search(r"\d{4,}\w|[^\W\d]", text) and re.search(r"\d{4}", text):
            return "digits that a letter follows are cut from the right too"
        if pre in letters and any(unicode.category(c) in ("Lu", "Lt", "Lm", "Lo", "Mn", "Mc", "Me") for c in text):
            return "classes of letters are all letters there"
        return None

    return excuse


# ---- the kinds ----


def tokens_of(path):
    reader = GGUFReader(path)

    def strings(key):
        field = reader.fields[key]
        return [bytes(field.parts[i]).decode() for i in field.data]

    return strings


# Where the table says in its own way (from the right, in threes) what the tokenizer's file says in another.
ORIGINAL = {("superbpe", 1): r"(?=(\d{3})+(?!\d))", ("tiny_aya", 0): r"\d{1,3}(?=(?:\d{3})*\b)",
            ("afmoe", 0): r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"}


def check_splitters(check, texts, size, folder):
    """Every splitter over one byte-level vocabulary; the packages' regular expressions where they can say it."""
    vocabulary = str(SHARED / "ggml-vocab-gpt-2.gguf")
    if not os.path.exists(vocabulary):
        vocabulary = str(ROOT / "tests/data/tales.gguf")
    strings = tokens_of(vocabulary)
    tokens, merges = strings("tokenizer.ggml.tokens"), strings("tokenizer.ggml.merges")
    where = {t: i for i, t in enumerate(tokens)}
    pairs = [tuple(m.split(" ")) for m in merges]
    table, done = splits.read_table(every=True), {}
    for pre, (patterns, flags) in table.items():
        key = (tuple(patterns), "IGNORE_MERGES" in flags)
        if key in done or "RAW" in flags:
            continue
        done[key] = pre
        encode = None
        patterns = [ORIGINAL.get((pre, i), splits.without_skips(p)) for i, p in enumerate(patterns)]
        if not any("(*" in p or "&&" in p for p in patterns):
            theirs = Tokenizer(models.BPE(where, pairs, ignore_merges="IGNORE_MERGES" in flags))
            steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
            theirs.pre_tokenizer = pre_tokenizers.Sequence(
                steps + [pre_tokenizers.ByteLevel(False, use_regex=False)])
            encode = lambda some, t=theirs: [e.ids for e in t.encode_batch(some, add_special_tokens=False)]
        check.run(f"bpe {pre}", vocabulary, texts.some(size), encode, "tokenizers", pre, splitter_excuse(pre))
        check.back(f"bpe {pre}", vocabulary, texts.bytes(size // 20), pre)


def check_kinds(check, texts, size, folder):
    corpus = [line for text in texts.some(400000) for line in text.split("\n") if line.strip() and "\0" not in line and "s>" not in line]
    corpus += [line for line in texts.prose.split("\n") if line.strip()] * 2
    excuse = bert_excuse()
    for lower, strip in ((True, True), (False, False), (True, False)):
        path = f"{folder}/words-{lower}-{strip}.gguf"
        encode = make.wordpiece(path, corpus, lower, strip)
        check.run(f"wordpiece lower={lower} strip={strip}", path, texts.some(size), encode, "tokenizers", excuse=excuse)
    for kind, norm, trim in (("unigram", "nmt_nfkc", True), ("unigram", "nfkc_cf", True), ("unigram", "identity", False),
                             ("unigram-bytes", "nmt_nfkc", True), ("bpe", "identity", False)):
        path = f"{folder}/{kind}-{norm}.gguf"
        encode = make.sentencepiece_vocabulary(path, corpus, kind, norm, trim)
        check.run(f"{kind} {norm}", path, texts.some(size), encode, "sentencepiece", excuse=unigram_excuse(encode))
    path = f"{folder}/bases.gguf"
    some = [t if i % 3 else texts.sequence() + t for i, t in enumerate(texts.some(size))]
    check.run("hybriddna", path, some, make.bases(path, corpus), "tokenizers")
    for lower in (True, False):
        path = f"{folder}/segments-{lower}.gguf"
        encode = make.segments(path, corpus, lower=lower)
        check.run(f"whitespace lower={lower}", path, texts.some(size), encode, "tokenizers", excuse=segments_excuse)
    path = f"{folder}/longest.gguf"
    spelled = lambda _r, text, _o, _t: "it reads the text of control tokens as those" if "<s>" in text else None
    check.run("rwkv", path, texts.some(size), make.longest_match(path, corpus), "python", excuse=spelled)
    check.back("rwkv", path, texts.bytes(size // 20))
    path = f"{folder}/table.gguf"
    check.run("plamo2", path, texts.some(size), make.table(path, corpus), "python")
    check.back("plamo2", path, texts.bytes(size // 20))
    path = f"{folder}/spaced.gguf"
    check.run("gemma4", path, texts.some(size), make.spaced_bpe(path, corpus), "tokenizers")
    check.back("gemma4", path, texts.bytes(size // 20))


def write_goldens(folder, texts, llama):
    """Small vocabularies of the kinds, and the ids of texts on which all references agree with each other."""
    corpus = [line for line in texts.prose.split("\n") if line.strip()] + texts.some(20000)
    corpus = [line for text in corpus for line in text.split("\n") if line.isprintable() and len(line) > 3]
    plain = [line for line in corpus if line.isascii()]
    rules = os.path.join(tempfile.mkdtemp(), "rules.tsv")
    with open(rules, "w") as file:
        for a, b in (("ﬁ", "fi"), ("Ａ", "A"), ("ａ", "a"), ("\u3000", " "), ("\t", " "), ("\n", " "), ("e\u0301", "é"),
                     ("①", "1"), ("½", "1/2"), ("\u200b", ""), ("…", "...")):
            file.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    kinds = {
        "words": lambda p: make.wordpiece(p, corpus, True, True, 1600),
        "cased": lambda p: make.wordpiece(p, plain, False, False, 700),
        "unigram": lambda p: make.sentencepiece_vocabulary(p, plain, "unigram", "", True, 600, rules),
        "untrimmed": lambda p: make.sentencepiece_vocabulary(p, plain, "unigram-bytes", "identity", False, 800),
        "scores": lambda p: make.sentencepiece_vocabulary(p, plain, "bpe", "identity", False, 800),
        "longest": lambda p: make.longest_match(p, plain, 500),
        "table": lambda p: make.table(p, plain, 500),
        "spaced": lambda p: make.spaced_bpe(p, plain, 900),
        "bases": lambda p: make.bases(p, plain, 400),
        "segments": lambda p: make.segments(p, plain, 700),
    }
    for name, build in kinds.items():
        path = f"{folder}/{name}.gguf"
        encode, kept = build(path), []
        some = [t for t in texts.some(12000) if t and "__ggml" not in t]
        if name == "bases":
            some = [texts.sequence() + t for t in some]
        theirs, others = encode(some), ids_of(llama, path, some, None)
        for text, ids, other in zip(some, theirs, others):
            same = ids == other or name in ("words", "cased", "untrimmed")  # of llama.cpp, what is listed above
            kept += [(text, ids)] if same and len(kept) < 40 else []
        with open(path + ".inp", "wb") as file:
            file.write(b"\n__ggml_vocab_test__\n".join(t.encode() for t, _ in kept))
        with open(path + ".out", "w") as file:
            file.writelines(" ".join(map(str, ids)) + "\n" for _, ids in kept)
        print(name, len(kept), os.path.getsize(path))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--llama")
    parser.add_argument("--bytes", type=int, default=12_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="keep the vocabularies in this folder")
    parser.add_argument("--goldens", help="write tests/tokenizer/kinds instead (needs --llama)")
    parser.add_argument("--only", choices=["kinds", "splitters"])
    options = parser.parse_args()
    check, texts = Check(options), Texts(options.seed)
    if options.goldens:
        return write_goldens(options.goldens, texts, options.llama)
    folder = options.keep or tempfile.mkdtemp()
    size = options.bytes // 45
    if options.only != "splitters":
        check_kinds(check, texts, size, folder)
    if options.only != "kinds":
        check_splitters(check, texts, size, folder)
    print(f"{check.bytes} bytes, {check.wrong} different, {check.listed} with a listed reason")
    sys.exit(check.wrong != 0)


if __name__ == "__main__":
    main()
