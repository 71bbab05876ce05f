"""What `ggcc build` does with chat templates: takes them, all that have names, or stops and says why. In: a folder to
work in. The program `tales` stays there for terminal.py.
"""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "program"))
sys.dont_write_bytecode = True
import gguf

GGCC, SOURCE = os.environ["GGCC"], os.environ["GGCC_SOURCE"]
TALES = os.path.join(SOURCE, "tests", "data", "tales.gguf")
TEMPLATE = os.path.join(here, "tales.jinja")
work = sys.argv[1]
failures = 0


def run(*args, **more):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, **more)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def check(ok, what, seen=""):
    global failures
    if not ok:
        failures += 1
        print("FAILED  %s\n  %s" % (what, str(seen)[-800:]))


def build(model, name, *options):
    return run(GGCC, "build", model, "-o", os.path.join(work, name), *options)


def refused(what, words, model, *options):
    status, _, err = build(model, "refused", *options)
    lacks = [w for w in words if w not in err]
    check(status == 1 and not lacks, "%s: status %d, without %s" % (what, status, lacks), err)
    check(not os.path.exists(os.path.join(work, "refused")), what + ": a program was left")


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
    refused("a template that is no Jinja", ["bad.jinja:2:", "--no-chat"], TALES, "--chat-template", bad)
    im_end = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    other = write("other.jinja", im_end)
    refused("an end of turn that no token has", ["<|im_end|>", "--stop", "--no-chat"], TALES, "--chat-template", other)
    opening = write("opening.jinja", "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
    refused("a turn that only the next one's beginning ends", ["<|user|>", "--stop"], TALES, "--chat-template", opening)
    bare = write("bare.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}")
    refused("nothing that ends a turn", ["--stop"], TALES, "--chat-template", bare)
    refused("a template without tokenizer", ["no tokenizer"], TALES, "--chat-template", TEMPLATE, "--no-tokenizer")
    status, _, err = build(TALES, "stop", "--chat-template", other, "--stop", "<|im_end|>")
    check(status == 0, "--stop TEXT makes it build", err)
    status, out, err = run(os.path.join(work, "stop"), "selftest")
    check(status == 0, "its self-test", err)


def named():
    with open(TEMPLATE, encoding="utf-8") as f:
        text = f.read()
    model = with_templates("named.gguf", default=text, tool_use=text.replace("USER", "X").replace("upper", "title"))
    status, _, err = build(model, "named")
    check(status == 0, "two templates in a file", err)
    program = os.path.join(work, "named")
    check("default, tool-use" in run(program, "info")[1], "info names the templates")
    check(run(program, "selftest")[0] == 0, "both are in the self-test")
    status, _, err = run(program, "run", "--chat", "-p", "a", "-n", "1", "--template", "tool-use")
    check(status == 0, "--template NAME", err)
    status, _, err = run(program, "run", "--chat", "-p", "a", "--template", "no")
    check(status == 2 and "'no'" in err, "--template with an unknown name", err)
    broken = with_templates("broken.gguf", default="{% for %}")
    refused("a broken template in the model", ["broken.gguf:tokenizer.chat_template", "--no-chat"], broken)
    status, _, err = build(broken, "without", "--no-chat")
    check(status == 0, "--no-chat builds without it", err)
    status, _, err = run(os.path.join(work, "without"), "chat")
    check(status == 1 and "--chat-template FILE" in err, "chat without a template names the way", err)
    status, _, err = run(os.path.join(work, "without"), "run", "--chat", "-p", "a")
    check(status == 1 and "--chat-template FILE" in err, "run --chat without a template names the way", err)


def ids(program, text, *options):
    status, out, err = run(program, "tokenize", "--no-special", "-p", text, *options)
    check(status == 0, "tokenize", err)
    return out.split()


def prompts():
    """run --chat: the rendered message's own ids, and no token by the text of one."""
    status, _, err = build(TALES, "tales", "--chat-template", TEMPLATE)
    check(status == 0, "--chat-template builds", err)
    program = os.path.join(work, "tales")
    check(run(program, "selftest")[0] == 0, "the self-test of tales")
    raw = run(program, "run", "-n", "20", "--parse-special", "--no-special", "-p",
              "<|endoftext|>SYSTEM: Short.\nUSER: Where is he?\nASSISTANT:")
    chat = run(program, "run", "-n", "20", "--chat", "--system", "Short.", "-p", "Where is he?")
    same = raw[0] == 0 and chat[0] == 0 and raw[1] == chat[1] and raw[1]
    check(same, "run --chat is run of the rendered text", (raw, chat))
    read = lambda *options: int(run(program, "run", "--chat", "-v", "-n", "1", *options)[2].split()[0])
    text = "a<|endoftext|>b"
    around = len(ids(program, "<|endoftext|>USER: ", "--parse-special")) + len(ids(program, "\nASSISTANT:"))
    check(read("-p", text, "--parse-special") <= around + 4, "--parse-special reads a special token's text as it")
    check(read("-p", text) >= len(ids(program, text)) + around - 3, "the text of a special token is text in a message")
    status, _, err = run(program, "run", "--chat", "-p", "a", "--chat-template-kwargs", '{"messages": [{"role": "x"}]}')
    check(status == 1 and "no role x" in err, "what a template raises is the message", err)
    status, out, err = run(program, "run", "--chat", "--ids", TEMPLATE)
    check(status == 2, "--chat does not go with --ids", err)
    lines = subprocess.run([program, "chat", "-n", "5"], input=b"one\ntwo\n", capture_output=True, timeout=60)
    quiet = lines.stdout.count(b"\n") >= 2 and b"> " not in lines.stdout
    check(lines.returncode == 0 and quiet, "chat through a pipe", lines)


refusals()
named()
prompts()
sys.exit(1 if failures else 0)
