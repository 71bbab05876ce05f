"""Makes a vocabulary of each kind for differential.py: trained on the spot, or put together where none can be trained.

Each function writes one GGUF file and returns an independent tokenizer for it: text to list of ids.
"""

import collections
import io
import json
import random
import re

import sentencepiece
from gguf import GGUFWriter
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def write(path, model, tokens, types, scores=None, merges=None, **keys):
    w = GGUFWriter(path, "llama")
    w.add_context_length(512), w.add_embedding_length(64), w.add_block_count(1), w.add_feed_forward_length(64)
    w.add_head_count(1), w.add_layer_norm_rms_eps(1e-5)  # llama.cpp wants these, even for a vocabulary alone
    w.add_tokenizer_model(model)
    w.add_token_list(tokens)
    w.add_token_types(types)
    if scores is not None:
        w.add_token_scores(scores)
    if merges is not None:
        w.add_token_merges(merges)
    for key, value in keys.items():
        key = "tokenizer.ggml." + key.replace("__", ".")
        if isinstance(value, bool):
            w.add_bool(key, value)
        elif isinstance(value, int):
            w.add_uint32(key, value)
        elif isinstance(value, str):
            w.add_string(key, value)
        else:
            w.add_array(key, value)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


# ---- SentencePiece ----


def train(corpus, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, minloglevel=2, num_threads=1, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()), model.getvalue()


def piece_type(sp, i):
    if sp.is_unknown(i):
        return UNKNOWN
    if sp.is_control(i):
        return CONTROL
    return BYTE if sp.is_byte(i) else UNUSED if sp.is_unused(i) else NORMAL


def fields(data):
    """The fields of a protocol buffer: number, bytes or integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            n = varint() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
            yield tag >> 3, data[at : at + n]
            at += n


def charsmap(proto):
    normalizer = dict(fields(dict(fields(proto))[3]))
    return normalizer.get(2, b"")


def sentencepiece_vocabulary(path, corpus, kind, normalization, trim, size=8000, rules=None):
    """kind: unigram, unigram-bytes or bpe."""
    options = {"normalization_rule_tsv": rules} if rules else {"normalization_rule_name": normalization}
    sp, proto = train(
        corpus, model_type=kind.split("-")[0], vocab_size=size, remove_extra_whitespaces=trim,
        byte_fallback=kind != "unigram", hard_vocab_limit=False, character_coverage=0.98, pad_id=3, **options)
    ids = range(sp.vocab_size())
    write(
        path, "llama" if kind == "bpe" else "t5", [sp.id_to_piece(i) for i in ids], [piece_type(sp, i) for i in ids],
        [sp.get_score(i) for i in ids], add_space_prefix=True, remove_extra_whitespaces=trim, bos_token_id=1,
        eos_token_id=2, unknown_token_id=0, padding_token_id=3,
        **({"precompiled_charsmap": charsmap(proto)} if charsmap(proto) else {}))
    encode = lambda texts: sp.encode(texts)
    encode.scores = [sp.get_score(i) for i in ids]
    encode.first_byte = sp.piece_to_id("<0x00>") if kind == "unigram-bytes" else -1
    return encode


# ---- tokenizers ----


def wordpiece(path, corpus, lower, strip, size=6000):
    ours = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    ours.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    ours.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ours.train_from_iterator(
        corpus, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False))
    return write_wordpiece(path, ours, special, lower, strip)


def write_wordpiece(path, tokenizer, special, lower, strip):
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    texts = [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t, _ in vocab]
    where = {t: i for t, i in vocab}
    write(
        path, "bert", texts, [CONTROL if t in special else NORMAL for t, _ in vocab], cls_token_id=where["[CLS]"],
        bos_token_id=where["[CLS]"], seperator_token_id=where["[SEP]"], unknown_token_id=where["[UNK]"],
        padding_token_id=where["[PAD]"], mask_token_id=where["[MASK]"], normalizer__lowercase=lower,
        normalizer__strip_accents=strip)
    plain = Tokenizer(models.WordPiece(dict(vocab), unk_token="[UNK]", max_input_chars_per_word=100))
    plain.normalizer, plain.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    return lambda texts: [e.ids for e in plain.encode_batch(texts, add_special_tokens=False)]


def learnt(tokenizer):
    """What byte pairs have learnt: {token: id}, the tokens in order of id, the merges as files have them."""
    model = json.loads(tokenizer.to_str())["model"]
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    return model["vocab"], sorted(model["vocab"], key=model["vocab"].get), merges


def spaced_bpe(path, corpus, size=6000):
    """Byte pairs over characters, spaces as U+2581, bytes for what has no token."""
    ours = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=False))
    ours.normalizer = normalizers.Replace(" ", "\u2581")
    ours.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    ours.decoder = decoders.ByteFallback()
    special = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{i:02X}>" for i in range(256)]
    # Characters that occur once get no token.
    ours.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, limit_alphabet=size // 5, max_token_length=12, show_progress=False))
    vocab, tokens, merges = learnt(ours)
    runs = ("\n", "\n\n", "\n\n\n")
    for run in runs:
        if run not in vocab:
            tokens.append(run)
    types = [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 260)
    write(
        path, "gemma4", tokens, types, [0.0] * len(tokens), merges, bos_token_id=2, eos_token_id=1, unknown_token_id=3,
        padding_token_id=0)
    where = {t: i for i, t in enumerate(tokens)}
    again = Tokenizer(models.BPE(where, [tuple(m.split(" ")) for m in merges], byte_fallback=True, unk_token="<unk>"))
    again.normalizer = ours.normalizer

    def encode(texts):
        out = []
        for text in texts:
            pieces = re.findall("[^\n]+|\n+", text)  # a run of newlines that is a token is that token
            rest = iter(again.encode_batch([p for p in pieces if p not in runs], add_special_tokens=False))
            out.append([i for p in pieces for i in ([where[p]] if p in runs else next(rest).ids)])
        return out

    return encode


def bases(path, corpus, size=1500):
    """Byte-level byte pairs, and tokens of six bases for what stands between <dna> and </dna>."""
    ours = Tokenizer(models.BPE())
    ours.pre_tokenizer = pre_tokenizers.ByteLevel(False)
    ours.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    _, tokens, merges = learnt(ours)
    first = len(tokens)
    tokens += ["<dna>", "</dna>", "<oov>"]
    letters = ["".join("ACGT"[i >> 2 * k & 3] for k in range(6)) for i in range(0, 4096, 3)]
    tokens += [k + "\ue000" for k in letters]
    where = {k: first + 3 + i for i, k in enumerate(letters)}
    write(path, "hybriddna", tokens, [NORMAL] * len(tokens), merges=merges, pre="gpt-2")

    def one(text):
        ids, rest = [], text
        while rest:
            before, tag, rest = rest.partition("<dna>")
            ids += ours.encode(before).ids
            if tag:
                inside, end, rest = rest.partition("</dna>")
                data = inside.encode().upper()
                data += b"A" * (-len(data) % 6)
                ids += [first] + [where.get(data[i : i + 6].decode("latin-1"), first + 2) for i in range(0, len(data), 6)]
                ids += [first + 1] if end else []
        return ids

    return lambda texts: [one(t) for t in texts]


def segments(path, corpus, size=3000, lower=True):
    """Byte pairs over the characters of what lies between white space, in lower case; bytes for what has no token."""
    ours = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=False))
    if lower:
        ours.normalizer = normalizers.Lowercase()
    ours.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{i:02X}>" for i in range(256)]
    ours.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, limit_alphabet=size // 5, max_token_length=12, show_progress=False))
    vocab, tokens, merges = learnt(ours)
    types = [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 260)
    write(path, "whitespace", tokens, types, merges=merges, pre="whitespace", bos_token_id=2, eos_token_id=1,
          unknown_token_id=3, padding_token_id=0, normalizer__lowercase=lower)
    again = Tokenizer(models.BPE(vocab, [tuple(m.split(" ")) for m in merges], byte_fallback=True,
                                 unk_token="<unk>"))
    again.normalizer, again.pre_tokenizer = ours.normalizer or normalizers.Sequence([]), ours.pre_tokenizer
    return lambda texts: [e.ids for e in again.encode_batch(texts, add_special_tokens=False)]


# ---- put together ----


def substrings(corpus, n, longest, rnd):
    count = collections.Counter()
    for text in corpus:
        for _ in range(len(text) // 3 + 1):
            at = rnd.randrange(len(text) + 1)
            piece = text[at : at + rnd.randint(1, longest)]
            if piece:
                count[piece] += 1
    return [p for p, _ in count.most_common(n)]


def escaped(piece):
    return repr(piece)[2:-1] if isinstance(piece, bytes) else repr(piece.encode())[2:-1]


def longest_match(path, corpus, size=5000):
    rnd = random.Random(7)
    pieces = [bytes([i]) for i in range(256)]
    for p in substrings(corpus, size, 9, rnd):
        p = p.encode()
        if p not in pieces[:256]:
            pieces.append(p)
    texts, seen = ["<s>"], {"<s>"}
    keys = {}
    for p in pieces:
        if escaped(p) not in seen:
            seen.add(escaped(p))
            keys[p] = len(texts)
            texts.append(escaped(p))
    write(path, "rwkv", texts, [CONTROL] + [NORMAL] * (len(texts) - 1))
    most = max(map(len, keys))

    def encode(texts):
        out = []
        for text in texts:
            data, at, ids = text.encode() if isinstance(text, str) else text, 0, []
            while at < len(data):
                n = next(n for n in range(most, 0, -1) if data[at : at + n] in keys and at + n <= len(data))
                ids.append(keys[data[at : at + n]])
                at += n
            out.append(ids)
        return out

    return encode


def table(path, corpus, size=5000):
    rnd = random.Random(8)
    texts = ["<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"]
    types, scores = [UNKNOWN, CONTROL, CONTROL, CONTROL], [0.0] * 4
    for i in range(256):
        texts.append(f"<0x{i:02X}>"), types.append(BYTE), scores.append(0.0)
    for p in substrings(corpus, size, 8, rnd):
        if p in texts[:260]:
            continue
        texts.append(p), types.append(NORMAL), scores.append(-rnd.randrange(4, 60) / 4 * max(1, 6 - len(p)))
    write(path, "plamo2", texts, types, scores, bos_token_id=1, eos_token_id=2, unknown_token_id=0, padding_token_id=3)
    keys = {t: i for i, t in enumerate(texts) if types[i] == NORMAL}
    most = max(map(len, keys))

    def one(text):
        text = text[1:] if text.startswith("\ufeff") else text
        cost, pick = [0] * (len(text) + 1), [(0, 0)] * (len(text) + 1)
        for at in range(len(text) - 1, -1, -1):
            best = (cost[at + 1] + 10**7, 1, -1)
            for n in range(1, min(most, len(text) - at) + 1):
                i = keys.get(text[at : at + n])
                if i is not None:
                    c = cost[at + n] - round(scores[i] * 10000)
                    if c <= best[0]:
                        best = (c, n, i)
            cost[at], pick[at] = best[0], best[1:]
        ids, at = [], 0
        while at < len(text):
            n, i = pick[at]
            ids += [i] if i >= 0 else [4 + b for b in text[at].encode()]
            at += n
        return ids

    return lambda texts: [one(t) for t in texts]
