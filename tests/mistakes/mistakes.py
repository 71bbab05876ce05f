"""Deliberate mistakes in every description and in a file of it, and what `ggcc` says to each.

  mistakes.py WORK [--all] [--bless] [--sample] [--only REGEX]

--sample: every third description, and those that have changed since answers.txt was written. For each description and each kind of mistake (kinds.py) one place is chosen, and what is said compared with answers.txt; --all: every
place, counted and not compared. An answer is the error, word for word but for line numbers, which would change with each edit. Where
the build goes through, the interpreter says whether the logits are others: NOT CAUGHT is a mistake that names and shapes cannot tell.
Those are shown by the logits of another engine (tests/golden), and, with trained weights, by the loss on a text: the last section
of answers.txt has it, for every place in `llama.arch`, with the small trained model of tests/data.
"""
import array
import difflib
import math
import os
import re
import sys
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import kinds
from family import PLACE, SOURCE, SPECS, Family, digest

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWERS = f"{HERE}/answers.txt"
FEWEST = 5  # kinds of mistakes that each description must have room for
# Verses of the World English Bible (public domain), which the trained model has read.
VERSES = """In the beginning, God created the heavens and the earth. The earth was formless and empty. Darkness was on the surface of the
deep and God's Spirit was hovering over the surface of the waters. God said, "Let there be light," and there was light. God saw the light,
and saw that it was good. God divided the light from the darkness. God called the light "day", and the darkness he called "night"."""


def settings():
    """NAME: what its synthetic model is given, so that more of the description is in use"""
    with open(f"{HERE}/models.txt") as f:
        rows = [line.split("#")[0].split() for line in f]
    return {r[0]: r[1:] for r in rows if r}


def told(family, mistake, answer):
    """(class, text): the answer in words."""
    state, text = answer
    if state == "crash":
        return "CRASH", text
    if state == "logits":
        if text == family.right[1]:
            return "same", ""
        had = family.facts({}, None) if mistake.change else []
        new = [x.strip() for x in family.facts(mistake.texts, mistake.change) if x not in had] if mistake.change else []
        return "not caught", "      explain: " + "; ".join(new) if new else ""
    place = PLACE.match(text)
    lines = text.rstrip().split("\n")
    lines[0] = re.sub(r":\d+:\d+: ", ": ", lines[0], count=1)
    if place:  # the line and its caret: the words there
        at = lines[1][len(lines[2]) - 1 :]
        lines[1:3] = [f"  at `{at[:40]}`"]
    calls = [x for x in lines if x.startswith("  called at")]
    lines = [re.sub(r"(called at \S+):\d+:", r"\1:", x) for x in lines if x not in calls[:-1]]
    lines = [x.replace(family.work + "/", "").replace(SOURCE + "/", "") for x in lines]
    lines = [lines[0][:220]] + [x if len(x) < 110 else x[:107] + ".." for x in lines[1:]]
    if not mistake.at:
        where = "" if any(n in text for n in mistake.names) or not mistake.names else ", not named"
    elif place and (place.group(1), int(place.group(2))) == mistake.at:
        where = ", there"
    else:
        named = f"{mistake.at[0]}:{mistake.at[1]}:" in text or any(n in text for n in mistake.names)
        where = ", elsewhere" + (" (it is named)" if named else "")
    return "caught" + where, "\n".join("      " + x for x in lines)


def in_turn(family, places):
    """The places, each family beginning at another; a description's own lines before those of the parts that it uses."""
    start = zlib.crc32(family.name.encode())
    own = [p for p in places if not p.texts or family.main in p.texts]
    for part in own, [p for p in places if p not in own]:
        for i in range(len(part)):
            yield part[(start + i) % len(part)]


def answers(family, find, every):
    """(place, class, text) of the first place where the mistake changes anything, or of all."""
    tries = 0
    for place in in_turn(family, list(find(family))):
        what, text = told(family, place, family.answer(place.texts, place.change))
        tries += 1
        if what != "same":
            yield place, what, text
        if not every and (what != "same" or tries == 8):
            return


def loss(logits, ids):
    """Nats a token, of each from those before."""
    row = array.array("f", logits)
    n = len(row) // len(ids)
    total = 0
    for i, token in enumerate(ids[1:]):
        at = row[i * n : (i + 1) * n]
        top = max(at)
        total += math.log(sum(math.exp(x - top) for x in at)) + top - at[token]
    return total / (len(ids) - 1)


class Result:
    def __init__(self, family):
        self.name, self.digest, self.text, self.count, self.wrong = family.name, family.digest, [], Counter(), []


def one(path, work, sets, every):
    family = Family(path, work, sets.get(os.path.basename(path)[:-5], ()))
    r = Result(family)
    for kind, find in kinds.KINDS.items():
        for place, what, text in answers(family, find, every):
            r.count[kind, what] += 1
            if kind in ("key added", "tensor added", "tensor left unused"):
                text = text.split("\n")[0]  # what follows is how to bind or ignore it
            r.text.append(f"{what}: {kind}; {place.what}" + (f"\n{text}" if text else ""))
            if what == "CRASH" or (what == "not caught" and kind in kinds.SURE):
                r.wrong.append(r.text[-1])
    if len({k for k, _ in r.count}) < FEWEST:
        r.wrong.append(f"{r.name}: fewer than {FEWEST} kinds of mistakes found a place")
    return r


def trained(work):
    """With trained weights: what is not caught costs loss."""
    words = " ".join(VERSES.split())
    family = Family(f"{SPECS}/llama.arch", f"{work}/trained", model=f"{SOURCE}/tests/data/tales.gguf", read=("-p", words))
    ids = [int(x) for x in family.ask("tokenize", family.model, "-p", words).split()]
    right = loss(family.right[1], ids)
    r = Result(family)
    r.name = "trained weights"
    r.text = [f"{right:.2f} nats a token: no mistake"]
    for kind, find in kinds.KINDS.items():
        if kind.startswith(("key", "tensor")):
            continue
        for place in find(family):
            state, logits = family.answer(place.texts, place.change)
            if state == "logits" and logits != family.right[1]:
                cost = loss(logits, ids)
                r.count["with trained weights, loss " + ("rises" if cost > right + 0.01 else "does not rise"), kind] += 1
                r.text.append(f"{cost:.2f} nats a token: {kind}; {place.what}")
    return r


def table(results, every):
    total = sum((r.count for r in results if r.name != "trained weights"), Counter())
    classes = sorted({w for _, w in total})
    print(f"{'':26s}" + "".join(f"{c:>24s}" for c in classes))
    for kind in kinds.KINDS:
        print(f"{kind:26s}" + "".join(f"{total[kind, c] or '':>24}" for c in classes))
    print(f"{sum(r.name != 'trained weights' for r in results)} descriptions, {sum(total.values())} mistakes", end="")
    print(f", {sum(n for (_, w), n in total.items() if w.startswith('caught'))} of them caught")
    for r in results:
        if r.name == "trained weights":
            for what in sorted({w for w, _ in r.count}):
                print(f"{what}: {', '.join(f'{k} {n}' for (w, k), n in sorted(r.count.items()) if w == what)}")


def read_answers():
    """name: (digest of the texts it was made from, section)"""
    if not os.path.exists(ANSWERS):
        return {}
    with open(ANSWERS) as f:
        sections = re.split(r"^== ", f.read(), flags=re.M)[1:]
    return {s.split("\n")[0].rsplit(" ", 1)[0]: (s.split("\n")[0].rsplit(" ", 1)[1], s.rstrip()) for s in sections}


def section(r):
    return f"{r.name} {r.digest}\n" + "\n".join(r.text)


def compare(results):
    """Against answers.txt: what is said differently about the same texts. Of changed texts only that they have changed."""
    had, stale, wrong = read_answers(), [], 0
    for r in results:
        digest, text = had.get(r.name, ("", ""))
        if digest != r.digest:
            stale.append(r.name)
        elif text != section(r):
            wrong += 1
            print("\n".join(difflib.unified_diff(text.split("\n"), section(r).split("\n"), "expected", "found", lineterm="", n=1)))
    if stale:
        print(f"{len(stale)} new or changed since answers.txt was written, not compared (--bless writes it): {' '.join(stale)[:300]}")
    if wrong or (stale and os.environ.get("GGCC_FULL") == "1"):
        sys.exit(1)


def main():
    work, every = sys.argv[1], "--all" in sys.argv
    only = re.compile(sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else "")
    paths = sorted(f"{SPECS}/{f}" for f in os.listdir(SPECS) if f.endswith(".arch") and only.search(f[:-5]))
    if "--sample" in sys.argv:
        had = read_answers()
        paths = [p for i, p in enumerate(paths) if i % 3 == 0 or had.get(os.path.basename(p)[:-5], ("",))[0] != digest(p)]
    sets = settings()
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        last = pool.submit(trained, work)
        results = list(pool.map(lambda p: one(p, work, sets, every), paths)) + ([] if only.pattern else [last.result()])
    table(results, every)
    with open(f"{work}/answers.txt", "w") as f:
        f.write("".join(f"== {section(r)}\n\n" for r in results))
    for r in results:
        print("\n".join("FAIL " + w for w in r.wrong), end="\n" if r.wrong else "")
    if "--bless" in sys.argv and not only.pattern and not every:
        os.replace(f"{work}/answers.txt", ANSWERS)
    elif not every:
        compare(results)
    sys.exit(1 if any(r.wrong for r in results) else 0)


if __name__ == "__main__":
    main()
