"""What `ggcc build` does with chat templates: takes them, all that have names, or stops and says why. In: a folder to
work in. The program `tales` stays there for terminal.py.
"""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "program"))
import common
import gguf
from common import GGCC, TALES, check, good, run, run_all

TEMPLATE = os.path.join(here, "tales.jinja")
work = sys.argv[1]


def build(model, name, *options):
    path = os.path.join(work, name)
    good(GGCC, "build", model, "-o", path, *options)
    return path


def refused(name, words, model, *options):
    path = os.path.join(work, name)
    common.refused(1, words, GGCC, "build", model, "-o", path, *options)
    check(not os.path.exists(path), name + ": a program was left")


def write(name, text):
    path = os.path.join(work, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def with_templates(name, **templates):
    keys, tensors = gguf.read(TALES)
    for key, text in templates.items():
        full = b"tokenizer.chat_template" + (b"" if key == "default" else b"." + key.replace("_", "-").encode())
        keys.append([full, gguf.STRING, text.encode()])
    path = os.path.join(work, name)
    gguf.write(path, keys, tensors)
    return path


def refusals():
    bad = write("bad.jinja", "{{ messages }}\n{% if %}\n")
    refused("no-jinja", ["bad.jinja:2:", "--no-chat"], TALES, "--chat-template", bad)
    im_end = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    other = write("other.jinja", im_end)
    refused("an-end-that-no-token-has", ["<|im_end|>", "--stop", "--no-chat"], TALES, "--chat-template", other)
    opening = write("opening.jinja", "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
    refused("an-end-that-is-the-next-beginning", ["<|user|>", "--stop"], TALES, "--chat-template", opening)
    bare = write("bare.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}")
    refused("no-end", ["--stop"], TALES, "--chat-template", bare)
    refused("no-tokenizer", ["no tokenizer"], TALES, "--chat-template", TEMPLATE, "--no-tokenizer")
    good(build(TALES, "stop", "--chat-template", other, "--stop", "<|im_end|>"), "selftest")


def named():
    with open(TEMPLATE, encoding="utf-8") as f:
        text = f.read()
    model = with_templates("named.gguf", default=text, tool_use=text.replace("USER", "X").replace("upper", "title"))
    program = build(model, "named")
    check(b"default, tool-use" in run(program, "info").out, "info names the templates")
    good(program, "selftest")
    good(program, "run", "--chat", "-p", "a", "-n", "1", "--template", "tool-use")
    common.refused(2, ["'no'"], program, "run", "--chat", "-p", "a", "--template", "no")
    broken = with_templates("broken.gguf", default="{% for %}")
    refused("broken", ["broken.gguf:tokenizer.chat_template", "--no-chat"], broken)
    without = build(broken, "without", "--no-chat")
    common.refused(1, ["--chat-template FILE"], without, "chat")
    common.refused(1, ["--chat-template FILE"], without, "run", "--chat", "-p", "a")


def ids(program, text, *options):
    return good(program, "tokenize", "--no-special", "-p", text, *options).out.split()


def prompts():
    """run --chat: the rendered message's own ids, and no token by the text of one."""
    program = build(TALES, "tales", "--chat-template", TEMPLATE)
    good(program, "selftest")
    raw = good(program, "run", "-n", "20", "--parse-special", "--no-special", "-p",
               "<|endoftext|>SYSTEM: Short.\nUSER: Where is he?\nASSISTANT:")
    chat = good(program, "run", "-n", "20", "--chat", "--system", "Short.", "-p", "Where is he?")
    check(raw.out == chat.out and raw.out, f"run --chat is run of the rendered text: {raw.out} {chat.out}")
    read = lambda *options: int(run(program, "run", "--chat", "-v", "-n", "1", *options).err.split()[0])
    text = "a<|endoftext|>b"
    around = len(ids(program, "<|endoftext|>USER: ", "--parse-special")) + len(ids(program, "\nASSISTANT:"))
    check(read("-p", text, "--parse-special") <= around + 4, "--parse-special reads a special token's text as it")
    check(read("-p", text) >= len(ids(program, text)) + around - 3, "the text of a special token is text in a message")
    role = '{"messages": [{"role": "x"}]}'
    common.refused(1, ["no role x"], program, "run", "--chat", "-p", "a", "--chat-template-kwargs", role)
    common.refused(2, ["--ids"], program, "run", "--chat", "--ids", TEMPLATE)
    lines = subprocess.run([program, "chat", "-n", "5"], input=b"one\ntwo\n", capture_output=True, timeout=60)
    quiet = lines.stdout.count(b"\n") >= 2 and b"> " not in lines.stdout
    check(lines.returncode == 0 and quiet, f"chat through a pipe: {lines}")


sys.exit(0 if run_all([(f.__name__, f) for f in (refusals, named, prompts)]) else 1)
