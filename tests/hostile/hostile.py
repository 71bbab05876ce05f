"""Text from hostile files never becomes code, a command or a terminal's control sequence.

In: a small model whose strings (names, authors, token texts, ignored keys and tensors, file names, a description's identifiers and
comments) hold everything that ends a string, a comment, a line or a shell word in C, sh and terminals. Each carries a canary: a
call or command that makes a file PWNED. Out: the programs build and print the strings without one dangerous byte, the generated
source holds the strings only as literals or in comments, and no canary file exists.
"""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, f"{os.environ['GGCC_SOURCE']}/tests/program")
from common import *

WORK = f"{sys.argv[1]}/hostile"
CANARY = 'system("touch PWNED")'
ENDS = ['"; %s; //', "*/ %s; /*", "\n%s;\n", "\\\n%s;\n", "\\\"; %s; //", "??/\n%s;//", "??/\"; %s; //", "');%s;('", "%%s%%n%%x%%d%%*d %s",
        "\r\n#include </etc/passwd>\n%s\n", "\x00%s\x00", "\x1b]0;%s\x07\x1b[2J", "\u202e%s\u202c", "`touch PWNED` $(touch PWNED) ; touch PWNED %s",
        "@%s@", "\n}\n%s;\nint main(void) {", "\u2028%s", "'\"\\", "//**//%s"]
EVIL = [end.replace("%s", CANARY, 1).encode() if "%s" in end and "%%" not in end else end.replace("%%", "%").encode() for end in ENDS]
LONG = b"A" * 100000 + b'"; ' + CANARY.encode() + b"; //"
FILE = "- we \"ird' $(touch PWNED) `touch PWNED` ;&|*?\\ %s ??\\.gguf"


def evil_model(path, name):
    keys, tensors = gguf.read(TALES)
    ignored = []
    keys = [k for k in keys if k[0] not in (b"general.name", b"general.basename")] + [[b"general.name", gguf.STRING, name]]
    for i, text in enumerate(EVIL + [LONG]):
        keys.append([b"general.evil%d" % i, gguf.STRING, text])
        if b"\x00" not in text:  # a user cannot name that one
            keys.append([b"llama." + text[:60], gguf.STRING, text])
            tensors.append([text[:60], [1], 0, bytes(4)])
            ignored += ["--ignore-key", b"llama." + text[:60], "--ignore-tensor", text[:60]]
    tokens = gguf.key(keys, b"tokenizer.ggml.tokens")[2][1]
    for i, text in enumerate(EVIL):
        if text not in tokens:
            tokens[500 + i] = text
    gguf.write(path, keys, tensors)
    return ignored


def no_canary():
    found = [d for d, _, files in os.walk(WORK) if "PWNED" in files]
    check(not found, f"a canary was executed in {found}")


# What prints a model's strings may put no control byte, and nothing but ASCII, on a terminal.
def safe(what, data):
    bad = [c for c in data if c != 10 and not 32 <= c < 127]
    check(not bad, f"{what} prints the byte {bad[:1]}: {data[max(0, data.index(bytes(bad[:1])) - 60) :][:120] if bad else ''}")


TOKEN = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)


def scan(source):
    """The source without its literals and comments has no word of ours; those have no byte that could end them early."""
    check(b"??" not in source, "a trigraph could be in the source")
    check(all(c in b"\n\t" or 32 <= c < 127 for c in source), "a byte outside of printable ASCII is in the source")
    check(not re.search(rb"//[^\n]*\\\s*\n", source), "a comment's line ends in a backslash")
    code = TOKEN.sub(b" ", source)
    for word in [b"PWNED", b"touch", b"passwd", b"system", b'"', b"int main"]:
        check(word not in code, f"{word} stands in the code: {code[max(0, code.find(word) - 100) :][:200]}")
    check(source.count(b"PWNED") > 0 or source.count(b"touch") > 0, "no hostile text came as far as the source: the test tests nothing")
    longest = max(len(line) for line in source.split(b"\n"))
    check(longest < 4000, f"a line of {longest} characters")


def metadata(name):
    stem = f"{WORK}/{EVIL.index(name) if name in EVIL else 'long'}"
    os.makedirs(stem)
    model = f"{stem}/{FILE}"
    ignored = evil_model(model, name)
    source = good(GGCC, "build", model, "-o", f"{stem}/unused", "--dump=source", *ignored, cwd=stem).out
    scan(source)
    safe("explain", good(GGCC, "explain", model, *ignored, cwd=stem).out)
    safe("a note", good(GGCC, "explain", model, *ignored, cwd=stem).err.encode())
    refused(1, [], GGCC, "explain", model, cwd=stem)  # without --ignore: the message names an evil tensor or key
    safe("the message about a key", run(GGCC, "explain", model, cwd=stem).err.encode())
    with open(f"{stem}/model.c", "wb") as f:
        f.write(source)
    check(run("cc", "-fsyntax-only", "-trigraphs", "-Wall", "-march=native", f"-I{SOURCE}/runtime", f"{stem}/model.c").err == "", "cc has something to say")
    no_canary()


def whole_program():
    """One with everything, through the compiler and the linker, with hostile file names on every option; and from `emit`."""
    stem = f"{WORK}/all \"of' it $(touch PWNED)"
    os.makedirs(stem)
    env = {**os.environ, "TMPDIR": stem}
    ignored = evil_model(f"{stem}/{FILE}", EVIL[0])
    shutil.copy(f"{SOURCE}/arch-specs/llama.arch", f"{stem}/-evil 'arch\".arch")
    os.symlink(CACHED_CC, f"{stem}/-c c'\"")
    names = ["--cc", f"{stem}/-c c'\"", "--weights", "-we ights'\"\\.bin"]
    r = good(GGCC, "build", *ignored, *names, "-o", "-prog 'ram\"", "--", FILE, cwd=stem, env=env)
    safe("build", r.err.encode())
    left = sorted(os.listdir(stem))
    check(left == sorted([FILE, "-evil 'arch\".arch", "-c c'\"", "-we ights'\"\\.bin", "-prog 'ram\""]), f"the folder now has {left}")
    for command in (["info"], ["selftest"], ["run", "-p", "Once upon a time", "-n", "4"]):
        r = good(f"{stem}/-prog 'ram\"", *command, cwd=stem)
        if command == ["info"]:
            safe("info", r.out)
            check(b"ignored" in r.out and b"PWNED" in r.out, f"info does not tell what was ignored: {r.out}")
    r = good(f"{stem}/-prog 'ram\"", "bench", "--json", "--pp", "4", "--tg", "2", "--reps", "1", cwd=stem)
    check("PWNED" in json.loads(r.out)["model"], r.out)
    safe("bench", r.out)
    good(GGCC, "emit", *ignored, "-o", "-sour 'ces\"", "--", FILE, cwd=stem, env=env)
    with open(f"{stem}/-sour 'ces\"/model.c") as f:
        command = next(line[2:].strip() for line in f.read().split("\n")[:12] if " model.c" in line and line.startswith("//"))
    r = run("sh", "-c", command.replace("-O2", "-O1"), cwd=f"{stem}/-sour 'ces\"")
    check(r.status == 0, r)
    no_canary()


# The model's own architecture, told with names that mean something else in C: keywords, macros, functions, what the emitter uses.
NAMES = """# EVIL
arch llama

size  NULL     = block_count                          # EVIL
size  double   = embedding_length
size  INFINITY = feed_forward_length
size  restrict = attention.head_count
size  weights  = attention.head_count_kv or restrict  # EVIL
size  PAGE     = double / restrict
real  sqrtf    = attention.layer_norm_rms_epsilon
rope  main     = rope(pairs: adjacent, dims: PAGE, base: rope.freq_base or 10000)     # EVIL

expect rope.dimension_count == PAGE                   # EVIL
expect vocab_size == vocab                            # EVIL

tensor token_embd  : vocab, double
tensor output_norm : double
tensor output      : double -> vocab = output or token_embd

layer int[l < NULL](volatile) {
  tensor attn_norm, ffn_norm : double
  tensor attn_q              : double -> [restrict, PAGE]
  tensor attn_k, attn_v      : double -> [weights, PAGE]
  tensor attn_output         : [restrict, PAGE] -> double
  tensor ffn_gate, ffn_up    : double -> INFINITY
  tensor ffn_down            : INFINITY -> double
  state  printf              : cache(k: [weights, PAGE], v: [weights, PAGE], sees: past)

  m = rms_norm(volatile, attn_norm, sqrtf)
  goto = attention(main(attn_q(m)), printf.put(main(attn_k(m)), attn_v(m)), scale: 1/sqrt(PAGE))
  volatile = volatile + attn_output(goto)
  w = rms_norm(volatile, ffn_norm, sqrtf)
  r = silu(ffn_gate(w)) * ffn_up(w)
  volatile = volatile + ffn_down(r)
}

model {
  volatile = token_embd[token]
  run int(volatile)
  logits = output(rms_norm(volatile, output_norm, sqrtf))
}
"""


def names_of_c():
    path = f"{WORK}/names.arch"
    with open(path, "w", newline="") as f:
        f.write(NAMES.replace("EVIL", f'*/ {CANARY}; /* ??/ " \\'))
    source = good(GGCC, "build", TALES, "-o", f"{WORK}/unused", "--arch", path, "--dump=source").out
    scan(source + b"// touch")
    build(TALES, f"{WORK}/names", "--arch", path)
    build(TALES, f"{WORK}/plain")
    with open(f"{WORK}/ids", "w") as f:
        f.write(" ".join(map(str, range(40))))
    for prog in ("names", "plain"):
        good(f"{WORK}/{prog}", "logits", "--ids", f"{WORK}/ids", "-o", f"{WORK}/{prog}.logits")
    check(bytes_of(f"{WORK}/names.logits") == bytes_of(f"{WORK}/plain.logits"), "other names, other logits")
    no_canary()


def main():
    os.makedirs(WORK)
    os.chdir(WORK)
    names = EVIL + [LONG] if FULL else [EVIL[0], EVIL[3], EVIL[10], EVIL[14], LONG]
    tests = [("hostile: names in C", names_of_c), ("hostile: a whole program", whole_program)]
    tests += [(f"hostile: general.name {name[:24]!r}", lambda name=name: metadata(name)) for name in names]
    if not run_all(tests):
        sys.exit(1)


main()
