"""What the scripts here share: running things, building models and programs two at a time, counting checks."""
import os
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(__file__))
import gguf

GGCC = os.environ["GGCC"]
SOURCE = os.environ["GGCC_SOURCE"]
FULL = os.environ.get("GGCC_FULL", "0") == "1"
CACHED_CC = f"{SOURCE}/tests/program/cached-cc"
TALES = f"{SOURCE}/tests/data/tales.gguf"
MODELS = os.environ.get("GGCC_MODELS") or os.path.expanduser("~/.cache/ggcc/models")


class Ran:
    def __init__(self, args, done):
        self.args, self.status, self.out, self.err = args, done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def __str__(self):
        return f"{' '.join(map(str, self.args))[:700]}\n    exit status {self.status}, standard error: {self.err.strip()[-600:]}"


def run(*args, timeout=400, **more):
    return Ran(args, subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, **more))


class Failed(Exception):
    pass


def check(true, what):
    if not true:
        raise Failed(str(what))


def good(*args, **more):
    r = run(*args, **more)
    check(r.status == 0, r)
    return r


# A command that must fail: with that status, exactly one message, and every one of `words` in it.
def refused(status, words, *args, **more):
    r = run(*args, **more)
    check(r.status == status, f"{r}\n    expected exit status {status}")
    check(r.err.count("error: ") == 1, f"{r}\n    expected one message")
    for word in words:
        check(word in r.err, f"{r}\n    expected the word '{word}'")
    return r


def build(model, prog, *options, cc=CACHED_CC, **more):
    return good(GGCC, "build", model, "-o", prog, *(["--cc", cc] if cc else []), *options, **more)


def synth(arch, path, *settings):
    sets = [word for s in settings for word in ("--set", s)]
    good(GGCC, "synth", arch, "-o", path, *sets)
    return path


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


# Runs `tests`, a list of (name, function); prints a line for each; says whether all passed. Two at a time.
def run_all(tests, workers=2):
    def one(test):
        name, work = test
        try:
            note = work()
            print(f"ok      {name}{': ' + note if note else ''}", flush=True)
            return True
        except Failed as e:
            print(f"FAILED  {name}: {e}", flush=True)
        except Exception:
            print(f"FAILED  {name}: {traceback.format_exc()}", flush=True)
        return False

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one, tests))
    print(f"{sum(results)} of {len(tests)} passed")
    return all(results)
