"""One description with a synthetic model of it, and what `ggcc` answers when either is changed. In: a description's path. Out: its
texts by name (its own and the library parts that it uses), the model's keys and tensors, and for a change (texts, file) the
answer: refused with a message, or logits that are those of the right one, or others.
"""
import os
import re
import subprocess
import sys
import zlib

sys.path.insert(0, f"{os.environ['GGCC_SOURCE']}/tests/program")
import gguf

GGCC, SOURCE = os.environ["GGCC"], os.environ["GGCC_SOURCE"]
SPECS = f"{SOURCE}/arch-specs"
IDS = " ".join(str(3 + i * i * 7 % 271) for i in range(40))  # longer than the windows of synthetic models
PLACE = re.compile(r"^error: (\S+?\.arch):(\d+):\d+: ")


def split(line):
    """A line's code and its comment; `.#` is part of a name."""
    m = re.match(r'((?:[^#"]|"[^"]*"|(?<=\.)#)*)(.*)', line, re.S)
    return m.group(1), m.group(2)


def texts_of(path):
    """A description and the library parts that it uses, by name."""
    with open(path) as f:
        texts = {os.path.basename(path): f.read()}
    for part in re.search(r"^use\s+(.*)", list(texts.values())[0] + "\nuse ", re.M).group(1).split(","):
        if part.strip():
            with open(f"{SPECS}/{part.strip()}.arch") as f:
                texts[f"{part.strip()}.arch"] = f.read()
    return texts


def digest(path):
    return f"{zlib.crc32(repr(sorted(texts_of(path).items())).encode()):08x}"


class Family:
    """model: in the place of a synthetic one; read: how it is asked (`ggcc logits` words)."""

    def __init__(self, path, work, settings=(), model=None, read=("--ids", "../ids", "--no-tokenizer")):
        self.name = os.path.basename(path)[:-5]
        self.work, self.runs, self.read = f"{work}/{self.name}", 0, read
        self.texts, self.main, self.digest = texts_of(path), os.path.basename(path), digest(path)
        self.arch = re.search(r"^arch\s+([^\s,]+)", self.texts[self.main], re.M).group(1)
        os.makedirs(self.work)
        with open(f"{self.work}/ids", "w") as f:
            f.write(IDS + "\n")
        self.model = model or f"{self.work}/right.gguf"
        sets = [word for s in settings for word in ("--set", s)]
        if not model:
            subprocess.run([GGCC, "synth", self.arch, "--arch", path, "-o", self.model, *sets], check=True)
        self.keys, self.tensors = gguf.read(self.model)
        self.right = self.answer({}, None)
        if self.right[0] != "logits":
            raise SystemExit(f"{self.name}: its own synthetic model is refused: {self.right[1]}")

    def prefix(self):
        return f"{self.arch}.".encode()

    def arguments(self, texts, change):
        """Writes what is changed into a folder; the words that name it to ggcc."""
        self.runs += 1
        here = f"{self.work}/{self.runs}"
        os.makedirs(f"{here}/lib")
        for name, text in {self.main: self.texts[self.main], **texts}.items():
            with open(f"{here}/{name}", "w") as f:
                f.write(text)
        model = self.model
        if change:
            model = "model.gguf"
            keys, tensors = [list(k) for k in self.keys], [list(t) for t in self.tensors]
            change(keys, tensors)
            gguf.write(f"{here}/{model}", keys, tensors)
        return here, [model, "--arch", self.main]

    def answer(self, texts, change):
        """("error", message) or ("logits", bytes)"""
        here, words = self.arguments(texts, change)
        done = subprocess.run([GGCC, "logits", *words, *self.read, "-o", "out", "--threads", "1"], cwd=here, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120)
        if done.returncode not in (0, 1):
            return "crash", f"exit status {done.returncode}"
        if done.returncode:
            return "error", done.stderr.decode("utf-8", "replace")
        with open(f"{here}/out", "rb") as f:
            logits = f.read()
        os.unlink(f"{here}/out")
        if change:
            os.unlink(f"{here}/model.gguf")
        return "logits", logits

    def ask(self, *words):
        return subprocess.run([GGCC, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()

    def facts(self, texts, change):
        """The lines that `ggcc explain` prints about where numbers come from."""
        here, words = self.arguments(texts, change)
        done = subprocess.run([GGCC, "explain", *words, "--no-tokenizer"], cwd=here, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120)
        text = done.stdout.decode("utf-8", "replace")
        return text.split("\nFacts\n")[1].split("\n\n")[0].split("\n") if "\nFacts\n" in text else []
