# A program's chat in hands that do not know it: what is pasted, broken, missing or in the way must end in an answer or
# in a message, never in a hang, a crash or a spoilt terminal. outsider.py PROGRAM WORK
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import terminal
from terminal import Chat, check


def piped(program, data, *args, env=None):
    done = subprocess.run([program, "chat", *args], input=data, capture_output=True, timeout=60,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def users(path):
    with open(path, encoding="utf-8") as f:
        return [m["content"] for m in json.load(f)["messages"] if m["role"] == "user"]


def pipes(program, work):
    """Standard input is no terminal."""
    saved = os.path.join(work, "piped.json")
    status, out, err = piped(program, b"hello\n/save " + saved.encode() + b"\n", "-n", "4")
    check(status == 0 and out.strip() and users(saved) == ["hello"], "a pipe works: %d" % status, err)
    status, out, err = piped(program, b"", "-n", "4")
    check(status == 0 and out == b"", "no input is no error: %d" % status, err)
    status, out, err = piped(program, b"\xff\xfe\xc3(a\x00b\xed\xa0\x80\n/save " + saved.encode() + b"\n", "-n", "4")
    check(status == 0 and users(saved) == ["\ufffd\ufffd\ufffd(a\0b\ufffd\ufffd\ufffd"], "bytes that are no UTF-8", err)
    status, out, err = piped(program, b'"""\nfirst\nsecond', "-n", "4")
    check(status == 0 and out.strip(), "the end of input within a message of several lines: %d" % status, err)
    status, out, err = piped(program, b"one \\", "-n", "4")
    check(status == 0 and out.strip(), "the end of input behind a backslash: %d" % status, err)
    status, out, err = piped(program, b"a\r\nb\r\n/save " + saved.encode() + b"\r\n", "-n", "4")
    check(status == 0 and users(saved) == ["a", "b"], "lines that end in CR LF: %d" % status, err)
    status, out, err = piped(program, b"x" * 200000 + b"\nhi\n", "-n", "4")
    check(status == 0 and "would have" in err and out.strip(), "a line of 200 KB: %d" % status, err[-300:])
    status, out, err = piped(program, b"/nonsense\n", "-n", "4")
    check(status == 1 and "no command" in err, "an unknown command in a pipe: %d" % status, err)
    for setting in ("temp 0.7", "top-k 5", "top-p 0.5", "min-p 0.1", "typical 0.9", "top-nsigma 1", "xtc-probability 0.1",
                    "xtc-threshold 0.2", "mirostat 1", "mirostat-ent 4", "mirostat-lr 0.2", "dry-multiplier 0.5",
                    "dry-base 2", "dry-allowed-length 3", "dry-penalty-last-n 10", "dry-sequence-breaker x",
                    "repeat-penalty 1.1", "repeat-last-n 5", "presence-penalty 0.2", "frequency-penalty 0.3",
                    "logit-bias 5+1", "samplers top_k;temperature", "dynatemp-range 0.2", "dynatemp-exp 2", "seed 5"):
        data = b"/set temp 0.8\n/set %s\nhello\n" % setting.encode()
        status, out, err = piped(program, data, "-n", "2")
        check(status == 0 and out.strip(), "/set %s" % setting, err)
    dry = ["-n", "120", "--dry-multiplier", "20", "--dry-allowed-length", "1", "--dry-sequence-breaker"]
    told = b"There was a king\n"
    some, none = piped(program, told, *dry, " ")[1], piped(program, told, *dry, "none")[1]
    reset = piped(program, b"/set dry-sequence-breaker none\n" + told, *dry, " ")[1]
    check(some != none and reset == none, "/set dry-sequence-breaker: what was set before breaks nothing")
    never = b"/set logit-bias 5-inf\n/set logit-bias 5+0.5\n/set samplers frob\n"
    status, out, err = piped(program, never, "-n", "2")
    check(status == 1 and "no sampler" in err, "/set of a sampler that is none", err)
    status, out, err = piped(program, b"hello\n", "-n", "4", env={"TERM": "dumb"})
    check(status == 0 and out.strip() and "\x1b" not in err, "TERM=dumb: %d" % status, err)


def broken_files(chat, work):
    bad = os.path.join(work, "bad.json")
    for text in (b"", b"{", b"[]", b'{"messages": 3}', b'{"messages": [{"role": "user"}]}', b"\xff\xfe", b"[" * 100000,
                 b'{"messages": [{"role": "' + b"x" * 1000 + b'", "content": ""}]}'):
        with open(bad, "wb") as f:
            f.write(text)
        check("error" in chat.say("/load " + bad), "/load of %r" % text[:40])
    check("error" in chat.say("/load " + work), "/load of a folder")
    check("error" in chat.say("/load " + os.path.join(work, "missing")), "/load of nothing")
    check("error" in chat.say("/load"), "/load without a name")
    check("error" in chat.say("/save " + work), "/save to a folder")
    check("error" in chat.say("/save /proc/nowhere/x"), "/save where nothing can be")
    check("error" in chat.say("/save"), "/save without a name")
    check("error" in chat.say("/set temp"), "/set without a value")
    check("error" in chat.say("/set nothing 3"), "/set of nothing")
    check("error" in chat.say("/set top-p nan"), "/set of no number")
    check("error" in chat.say("/undo") and "error" in chat.say("/retry"), "/undo and /retry before anything was said")
    check("error" in chat.say("/"), "a / alone")
    check("error" not in chat.say("/tokens <|user|> \xe9\u4e16"), "/tokens of a text")


def keys(chat, work):
    """The editor: what is typed is what is sent."""
    saved = os.path.join(work, "keys.json")

    def typed(what, text, wanted):
        chat.say(text)
        chat.say("/save " + saved)
        got = users(saved)[-1:]
        check(got == [wanted], "%s: %r" % (what, got))
        chat.say("/undo")

    typed("wide characters", "世界 漢字\x1b[D\x1b[D\x7f!", "世界!漢字")
    typed("a mark goes with its letter", "ae\u0301\x7fb", "ab")
    typed("over a letter with marks", "ae\u0301z\x1b[D\x1b[Dx", "axe\u0301z")
    typed("Thai", "กำ\u0e31\u0e49\x7fx", "กx")
    typed("control characters are no text", "a\x00\x02\x06b\x1fc", "abc")
    typed("unknown escape sequences", "a\x1b[99~b\x1b[?1;2cc\x1bOPd", "abcd")
    typed("erasing at both ends", "\x7f\x1b[3~ab\x1b[3~\x01\x7f\x05", "ab")
    typed("pasted control characters and tabs", "\x1b[200~a\tb\x1b[201~", "a\tb")
    long = "word " * 20000 # 100 KB
    start = time.time()
    shown = chat.say("\x1b[200~" + long + "\x1b[201~")
    check("would have" in shown and time.time() - start < 20, "100 KB pasted: %.1f s" % (time.time() - start), shown)
    start = time.time()
    for at in range(0, 20000, 1000): # a terminal reads what the program shows meanwhile
        chat.send(long[at:at + 1000])
        while select.select([chat.fd], [], [], 0.01)[0]:
            os.read(chat.fd, 65536)
    shown = chat.say("")
    check("would have" in shown and time.time() - start < 20, "20 KB typed: %.1f s" % (time.time() - start), shown)
    chat.send("\x1b[200~x\r" + "y" * 30000 + "\x1b[201~\x15")
    typed("erasing what was pasted", "ok", "ok")


def resized(chat):
    chat.send("some words that are longer than the window will be")
    time.sleep(0.2)
    for columns in (3, 1, 20, 200, 80):
        fcntl.ioctl(chat.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.kill(chat.pid, signal.SIGWINCH)
        time.sleep(0.05)
        chat.send("x\x7f")
    chat.send("\x15")
    check("made" in chat.say("after that"), "the window changes its size")


def dumb(program):
    """A terminal that can do nothing: lines, a prompt, no escape sequences."""
    chat = Chat(program, "-n", "4", term="dumb")
    shown = chat.read(lambda t: "> " in t)
    chat.send("hello\n")
    shown += chat.read(lambda t: t.count("> ") >= 1)
    check("\x1b" not in shown, "a dumb terminal gets no escape sequences", shown)
    chat.send("\x04")
    check(chat.end() == 0, "Ctrl-D leaves a dumb terminal's chat")


def main():
    program, work = sys.argv[1:3]
    pipes(program, work)
    chat = Chat(program, "-n", "8", "--verbose")
    broken_files(chat, work)
    keys(chat, work)
    resized(chat)
    chat.send("/quit\r")
    check(chat.end() == 0, "leaves after all that")
    dumb(program)
    sys.exit(1 if terminal.failures else 0)


if __name__ == "__main__":
    main()
