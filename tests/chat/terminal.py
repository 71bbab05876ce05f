# A program's chat, driven through a real terminal (pty), as a person would.
import json
import os
import pty
import re
import select
import signal
import sys
import time

failures = 0


def check(ok, what, seen=""):
    global failures
    if not ok:
        failures += 1
        print("FAILED  %s" % what)
        if seen:
            print("  %r" % seen[-600:])


class Chat:
    def __init__(self, program, *args, term="xterm"):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = term
            os.environ.pop("NO_COLOR", None)
            os.execv(program, [program, "chat"] + list(args))
        if term != "dumb":
            self.prompt()

    def read(self, until, seconds=60):
        """All output up to where until(text so far) holds."""
        text, end = b"", time.time() + seconds
        while not until(text.decode("utf-8", "replace")):
            left = end - time.time()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                check(False, "the program answers in %d s" % seconds, text.decode("utf-8", "replace"))
                break
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                got = b""
            if not got:
                break
            text += got
        return text.decode("utf-8", "replace")

    def prompt(self):
        # the editor turns bracketed paste on whenever it begins a line
        return self.read(lambda t: "\x1b[?2004h" in t and t.rstrip().endswith("C"))

    def send(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def say(self, text):
        """A line and what the program shows until its next prompt, without escape sequences and without the echo."""
        self.send(text + "\r")
        shown = self.read(lambda t: "\x1b[?2004l" in t and "\x1b[?2004h" in t.split("\x1b[?2004l")[-1] and
                          t.rstrip().endswith("C"))
        return self.plain(shown.split("\x1b[?2004l", 1)[-1].rsplit("\x1b[?2004h", 1)[0])

    @staticmethod
    def plain(text):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")

    def end(self):
        end = time.time() + 20
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            try: # what it still writes must go somewhere
                if select.select([self.fd], [], [], 0.02)[0]:
                    os.read(self.fd, 65536)
            except OSError:
                time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def answer(shown):
    """What was said, without the empty lines around it."""
    return shown.strip("\n")


def context(chat):
    shown = chat.say("/context")
    found = re.search(r"(\d+) messages, (\d+) tokens of (\d+)", shown)
    check(found, "/context gives figures", shown)
    return tuple(int(x) for x in found.groups()) if found else (0, 0, 1)


def conversation(program, work, first, second):
    """Several turns, undo, retry, save, load, the editor: with any model. Greedy, so everything repeats."""
    saved = os.path.join(work, "saved.json")
    chat = Chat(program, "-n", "12", "--verbose")
    one = chat.say(first)
    check("12 made" in one or "made" in one, "the first answer", one)
    text_one = answer(one.split("-n 12")[0])
    two = chat.say(second)
    kept = re.search(r"(\d+) tokens kept", two)
    check(kept and int(kept.group(1)) > 0, "the second turn keeps the first one's tokens", two)
    n, used, room = context(chat)
    check(n == 4, "four messages after two turns: %d" % n)
    again = chat.say("/retry")
    made = lambda shown: re.sub(r"\d+ tokens kept.*", "", shown, flags=re.S)
    check(made(again) == made(two), "greedy /retry says the same", again + "|" + two)
    chat.say("/undo")
    check(context(chat)[0] == 2, "two messages after /undo")
    check(made(chat.say(second)) == made(two), "the same message after /undo gets the same answer")
    chat.say("/save " + saved)
    with open(saved, encoding="utf-8") as f:
        messages = json.load(f)["messages"]
    check([m["role"] for m in messages] == ["user", "assistant"] * 2, "the saved file's roles", str(messages))
    check(messages[0]["content"] == first and messages[2]["content"] == second, "the saved file's texts", str(messages))
    said = messages[1]["content"].strip()
    check(said and said in text_one, "the saved answer is the one shown", said + "|" + text_one)
    # the editor: history, moving, erasing, characters of several bytes
    check("taken back" in chat.say("/undo"), "/undo says what it did")
    wrong = second[:3] + "xé\x7f\x7f" + second[3:]
    check(made(chat.say(wrong)) == made(two), "backspace over a character of two bytes")
    chat.say("/undo")
    check(made(chat.say("\x1b[A\x1b[A")) == made(two), "the line before the last comes back with two arrows up")
    chat.say("/undo")
    check(made(chat.say("zzz" + second[1:] + "\x01\x1b[3~\x1b[3~\x1b[3~" + second[0] + "\x05")) == made(two),
          "Ctrl-A, delete, Ctrl-E")
    chat.say("/undo")
    check(made(chat.say("junk words\x17\x15" + second)) == made(two), "Ctrl-W and Ctrl-U erase")
    check("no command" in chat.say("/nonsense"), "an unknown command is an error and the chat goes on")
    check("top-k" in chat.say("/set temp 0.5") + chat.say("/set"), "/set shows the settings")
    check("error" in chat.say("/set temp -1"), "a setting out of range is an error")
    chat.send("/quit\r")
    check(chat.end() == 0, "/quit leaves with 0")
    # a new program goes on from the file
    chat = Chat(program, "-n", "12", "--verbose")
    check("4 messages loaded" in chat.say("/load " + saved), "/load")
    check(made(chat.say("/retry")) == made(two), "what was saved goes on as if it had not been")
    chat.send("/undo\r")
    chat.prompt()
    # several lines
    chat.send("first\\\r")
    chat.prompt()
    chat.say("second")
    chat.send('"""\r')
    chat.prompt()
    chat.send("third\r")
    chat.prompt()
    chat.say('fourth"""')
    chat.say("\x1b[200~fifth\rsixth\x1b[201~")
    chat.say("/save " + saved)
    with open(saved, encoding="utf-8") as f:
        users = [m["content"] for m in json.load(f)["messages"] if m["role"] == "user"]
    check(users[1:] == ["first\nsecond", "third\nfourth", "fifth\nsixth"], "messages of several lines", str(users))
    chat.send("\x04")
    status = chat.end()
    check(status == 0, "Ctrl-D leaves with 0: %s" % status)


def interrupt(program, first):
    """Ctrl-C in the middle of an answer stops that alone. The program is held meanwhile: no speed is too great."""
    chat = Chat(program)
    chat.send(first + "\r")
    shown = chat.read(lambda t: "\x1b[?2004l" in t and len(t.split("\x1b[?2004l")[-1].strip()) > 2)
    os.kill(chat.pid, signal.SIGSTOP)
    chat.send("\x03")
    time.sleep(0.05)
    os.kill(chat.pid, signal.SIGCONT)
    shown += chat.prompt()
    check("stopped after" in shown, "Ctrl-C stops the answer", shown)
    check(context(chat)[0] == 2, "what was said before Ctrl-C stays")
    chat.send("abc\x03")
    shown = chat.prompt()
    check("again" in shown, "the first Ctrl-C at the prompt only warns", shown)
    chat.send("\x03")
    check(chat.end() == 0, "the second Ctrl-C at the prompt leaves")


def full(program, room, first):
    chat = Chat(program, "--ctx", str(room))
    shown = chat.say(first)
    refused = ""
    for _ in range(40):
        shown = chat.say(first)
        if "would have" in shown:
            refused = shown
            break
    found = re.search(r"would have (\d+) tokens, there is room for (\d+)", refused)
    check(found and int(found.group(1)) >= int(found.group(2)) == room, "a full context is refused, with both numbers",
          shown)
    n = context(chat)[0]
    chat.say("/drop")
    check(n <= 2 or context(chat)[0] == n - 2, "/drop leaves out a turn")
    chat.send("/quit\r")
    check(chat.end() == 0, "leaves after a full context")
    chat = Chat(program, "--ctx", str(room), "--drop-oldest", "-n", "20")
    dropped = False
    for _ in range(room // 20 + 4):
        shown = chat.say(first)
        dropped |= "dropped" in shown
        check("would have" not in shown and "error" not in shown, "--drop-oldest makes room by itself", shown)
        if dropped or failures:
            break
    check(dropped, "--drop-oldest says what it dropped", shown)
    n = context(chat)[0]
    shown = chat.say((first + " ") * room)
    check("would have" in shown and "dropped" not in shown and context(chat)[0] == n,
          "a message that never fits costs no turn", shown)
    chat.send("/quit\r")
    check(chat.end() == 0, "leaves after dropping")


def main():
    program, work, room, first, second = sys.argv[1:6]
    conversation(program, work, first, second)
    interrupt(program, first)
    full(program, int(room), first)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
