#!/usr/bin/env python3
"""Microseconds of each sampler, and how much of a program's decoding they are.

    python3 tools/bench/samplers.py [--vocab 262144] [--program PROG]

PROG is a program that ggcc built; the share is of the time of one token of `PROG bench`. The samplers are compiled as
the programs' runtime is.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOGETHER = "top-k,top-p,min-p,temperature"  # the promise: these, and greedy, under 2 % of decoding


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=262144)
    parser.add_argument("--program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tool = f"{folder}/samplers"
        sources = [ROOT / "tools/bench/samplers.c"] + [ROOT / "runtime" / f for f in ("sample.c", "sample_repeat.c", "error.c")]
        subprocess.run(["cc", "-std=gnu11", "-O2", "-ffp-contract=off", *sources, "-o", tool, "-lm"], check=True)
        run = subprocess.run([tool, str(options.vocab)], capture_output=True, text=True, check=True)
    token = None
    if options.program:
        bench = subprocess.run([options.program, "bench", "--pp", "16", "--tg", "32", "--reps", "3", "--json"],
                               capture_output=True, text=True, check=True)
        token = 1e6 / json.loads(bench.stdout)["tg_tokens_per_s"]
        print(f"one token of {options.program}: {token:.0f} us")
    over = False
    for name, us in (line.split() for line in run.stdout.splitlines()):
        share = f"{100 * float(us) / token:7.2f} %" if token else ""
        print(f"{name:32} {float(us):9.1f} us {share}")
        over |= bool(token) and name in ("greedy", TOGETHER) and float(us) > 0.02 * token
    if over:
        print("more than 2 % of decoding")
    sys.exit(over)


main()
