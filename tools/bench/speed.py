#!/usr/bin/env python3
"""Speed of compiled programs beside llama.cpp, on this machine, in one run.

  speed.py --ggcc build/ggcc --peers DIR MODEL.gguf ...    DIR: bin/ has llama-bench and llama-completion

Both sides take turns on the same file, so that what the machine does to one it does to the other; medians of the turns and
their ratio are printed. Prompt of 512 tokens, 128 generated, 1 and 2 threads; then the time from exec to the first token of a
prompt of about five tokens, one thread, files in the page cache. Figures are for people: nothing here passes or fails.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time


def run(argv, **kw):
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if p.returncode:
        sys.exit("%s: exit %d\n%s" % (argv[0], p.returncode, p.stderr.decode(errors="replace")[-2000:]))
    return p.stdout.decode(errors="replace")


def ours(program, threads, pp, tg):
    r = json.loads(run([program, "bench", "--pp", str(pp), "--tg", str(tg), "--reps", "1", "--threads", str(threads), "--json"]))
    return r["pp_tokens_per_s"], r["tg_tokens_per_s"]


def theirs(peers, model, threads, pp, tg):
    r = json.loads(run([peers + "/bin/llama-bench", "-m", model, "-p", str(pp), "-n", str(tg), "-t", str(threads), "-r", "1", "-o", "json"]))
    pick = lambda n: next(x["avg_ts"] for x in r if x["n_gen" if n else "n_prompt"] and not x["n_prompt" if n else "n_gen"])
    return pick(False), pick(True)


def measure(a, program, model):
    """Prompts and decoding, both sides in turns: medians and their ratio for each count of threads."""
    for threads in map(int, a.threads.split(",")):
        x, y = [], []
        for _ in range(a.turns):
            x.append(ours(program, threads, a.pp, a.tg))
            y.append(theirs(a.peers, model, threads, a.pp, a.tg))
        for i, what in enumerate(("prompt %d" % a.pp, "decode %d" % a.tg)):
            u, v = statistics.median(r[i] for r in x), statistics.median(r[i] for r in y)
            print("  %d thread%s  %-11s %8.1f tokens/s   llama.cpp %8.1f   ratio %.2f" % (threads, " " if threads == 1 else "s", what, u, v, u / v), flush=True)


def first_token(argv):
    t = time.perf_counter()
    run(argv)
    return time.perf_counter() - t


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", default="build/ggcc")
    ap.add_argument("--peers", required=True)
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--pp", type=int, default=512)
    ap.add_argument("--tg", type=int, default=128)
    ap.add_argument("--turns", type=int, default=3)
    ap.add_argument("models", nargs="+")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as d:
        for model in a.models:
            program = os.path.join(d, "program")
            t = time.perf_counter()
            run([a.ggcc, "build", model, "-o", program])
            print("%s: built in %.1f s" % (os.path.basename(model), time.perf_counter() - t), flush=True)
            measure(a, program, model)
            prompt = "The capital of France is"
            x, y = [], []
            for _ in range(a.turns):
                x.append(first_token([program, "run", "-p", prompt, "-n", "1", "--threads", "1"]))
                y.append(first_token([a.peers + "/bin/llama-completion", "-m", model, "-p", prompt, "-n", "1", "-t", "1", "--temp", "0", "-no-cnv", "--no-warmup"]))
            u, v = statistics.median(x), statistics.median(y)
            print("  exec to first token  %6.1f ms   llama.cpp %6.1f ms   a %.1fth" % (u * 1e3, v * 1e3, v / u), flush=True)


if __name__ == "__main__":
    main()
