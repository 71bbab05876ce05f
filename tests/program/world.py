"""What programs and the compiler promise about the world around them: files, compilers, processors, disks, signals, memory.

In: the small trained model. Each test is one promise of the command line's contract, tried.
"""
import resource
import signal
import struct
import time

from common import *

WORK = f"{sys.argv[1]}/world"
PROG = f"{WORK}/tales"


def logits(prog, name, *options, **more):
    out = f"{WORK}/{name}.logits"
    good(prog, "logits", "-p", "Once upon a time there was", "-o", out, *options, **more)
    return bytes_of(out)


def temp(name):
    os.makedirs(f"{WORK}/tmp/{name}", exist_ok=True)
    return {**os.environ, "TMPDIR": f"{WORK}/tmp/{name}"}


def left(folder):
    return sorted(os.listdir(folder))


# ---- files ----


def same_program():
    """Two builds, from another folder, with another name for the same file and the compiler's own objects."""
    os.makedirs(f"{WORK}/elsewhere")
    os.symlink(TALES, f"{WORK}/elsewhere/tales.gguf")
    build("tales.gguf", "again", cwd=f"{WORK}/elsewhere", cc=None, env={**temp("again"), "CC": "cc"})
    os.rename(f"{WORK}/elsewhere/again", f"{WORK}/elsewhere/first")
    build("tales.gguf", "again", cwd=f"{WORK}/elsewhere", cc=None, env={**temp("again2"), "CC": "cc", "OMP_NUM_THREADS": "1"})
    check(bytes_of(f"{WORK}/elsewhere/first") == bytes_of(f"{WORK}/elsewhere/again"), "two builds of one file differ")
    check(left(f"{WORK}/elsewhere") == ["again", "first", "tales.gguf"], f"files left behind: {left(f'{WORK}/elsewhere')}")
    check(not left(f"{WORK}/tmp/again"), f"files left in TMPDIR: {left(f'{WORK}/tmp/again')}")
    check(logits(f"{WORK}/elsewhere/again", "again") == logits(PROG, "own"), "the same model gives other bits")
    size = os.path.getsize(PROG) - os.path.getsize(TALES)
    check(size < 1 << 20, f"code, runtime and tables are {size} bytes")
    return f"{size} bytes more than the model's file"


def emit_and_command():
    """The emitted sources, built by the one command at their top, give the program's bits."""
    folder = f"{WORK}/sources"
    good(GGCC, "emit", TALES, "-o", folder)
    check(set(left(folder)) == {"model.c", "chat_templates.c", "runtime", "weights.bin"}, left(folder))
    with open(f"{folder}/model.c") as f:
        lines = f.read().split("\n")[:12]
    command = next(line[2:].strip() for line in lines if " model.c" in line and line.startswith("//"))
    before = set(left(folder))
    r = run("sh", "-c", command, cwd=folder)
    check(r.status == 0 and not r.err, f"{command}\n{r}")
    (made,) = set(left(folder)) - before
    check(logits(f"./{made}", "emitted", cwd=folder) == logits(PROG, "own"), "the emitted sources give other bits")


def running_program():
    """A program is built anew while it runs; the old one goes on."""
    prog = f"{WORK}/busy"
    build(TALES, prog)
    want = good(prog, "run", "-p", "One day", "-n", "200", "--ignore-eos").out
    at_work = subprocess.Popen([prog, "run", "-p", "One day", "-n", "200", "--ignore-eos"], stdout=subprocess.PIPE)
    at_work.stdout.read(1)
    os.kill(at_work.pid, signal.SIGSTOP)
    build(TALES, prog)
    good(prog, "selftest")
    os.kill(at_work.pid, signal.SIGCONT)
    rest = at_work.stdout.read()
    check(at_work.wait(60) == 0 and rest == want[1:], "the running program was disturbed")


def weights_beside():
    prog, file = f"{WORK}/code", f"{WORK}/the weights.bin"
    build(TALES, prog, "--weights", file)
    check(os.path.getsize(prog) < 1 << 20, f"the program has {os.path.getsize(prog)} bytes, with its weights beside it")
    check(logits(prog, "beside") == logits(PROG, "own"), "other bits with the weights beside")
    data = bytes_of(file)
    for name, damaged in [("missing", None), ("empty", b""), ("cut", data[: len(data) // 2]), ("another", bytes(len(data)))]:
        if os.path.exists(file):
            os.remove(file)
        if damaged is not None:
            with open(file, "wb") as f:
                f.write(damaged)
        refused(1, ["weights.bin"], prog, "run", "-p", "x", "-n", "1")
    whole = bytearray(bytes_of(PROG))
    for name, part in [("half of it", whole[: len(whole) // 2]), ("no end", whole[:-1])]:
        with open(f"{WORK}/damaged", "wb") as f:
            f.write(part)
        os.chmod(f"{WORK}/damaged", 0o755)
        refused(1, [], f"{WORK}/damaged", "run", "-p", "x", "-n", "1")


def failures_leave_nothing():
    folder = f"{WORK}/nothing"
    os.makedirs(folder)
    env = temp("nothing")
    with open(f"{folder}/broken.gguf", "wb") as f:
        f.write(bytes_of(TALES)[:5000])
    with open(f"{folder}/old", "wb") as f:
        f.write(b"an older file")
    for command, prog in [("build", "new"), ("build", "old"), ("logits", "new"), ("emit", "new")]:
        more = ["-p", "x"] if command == "logits" else []
        refused(1, ["broken.gguf"], GGCC, command, f"{folder}/broken.gguf", "-o", f"{folder}/{prog}", *more, env=env)
    keys, tensors = gguf.read(TALES)
    name, dims = next((t[0], t[1]) for t in tensors if len(t[1]) == 2 and t[1][0] % 64 == 0)
    unknown = [name, dims, 40, bytes(dims[0] * dims[1] // 64 * 36)]  # NVFP4: known, and not computed with
    gguf.write(f"{folder}/type.gguf", keys, [unknown if t[0] == name else t for t in tensors])
    for command in ["build", "logits"]:
        more = ["-p", "x"] if command == "logits" else []
        refused(1, [name.decode(), "NVFP4", "Q4_K"], GGCC, command, f"{folder}/type.gguf", "-o", f"{folder}/new", *more, env=env)
    os.unlink(f"{folder}/type.gguf")
    with open(f"{folder}/cc", "w") as f:
        f.write("#!/bin/sh\necho 'I am out of order' >&2\nexit 1\n")
    os.chmod(f"{folder}/cc", 0o755)
    refused(1, ["I am out of order"], GGCC, "build", TALES, "-o", f"{folder}/old", "--cc", f"{folder}/cc", env=env)
    refused(1, ["no C compiler", "gcc"], GGCC, "build", TALES, "-o", f"{folder}/new", "--cc", "/nonexistent/cc", env=env)
    refused(1, ["no C compiler", "gcc", "--cc"], GGCC, "build", TALES, "-o", f"{folder}/new", env={"PATH": "/nonexistent", "TMPDIR": env["TMPDIR"]})
    refused(1, ["no/such/folder"], GGCC, "build", TALES, "-o", f"{folder}/no/such/folder", "--cc", CACHED_CC, env=env)
    refused(2, ["-o"], GGCC, "build", TALES, env=env)
    refused(2, ["--unheard-of"], GGCC, "build", TALES, "-o", f"{folder}/new", "--unheard-of", env=env)
    refused(1, [], PROG, "logits", "-p", "x", "--at", "99", "-o", f"{folder}/new")
    refused(1, [], PROG, "logits", "-p", "", "--no-special", "-o", f"{folder}/new")
    refused(2, ["256", "257"], PROG, "run", "-p", "x", "-n", "1", "--ctx", "257")
    check(left(folder) == ["broken.gguf", "cc", "old"], f"left behind: {left(folder)}")
    check(bytes_of(f"{folder}/old") == b"an older file", "a failed build changed the file at -o")
    check(not left(env["TMPDIR"]), f"left in TMPDIR: {left(env['TMPDIR'])}")


# ---- processor, disk, pipes, signals ----


def foreign_processor():
    prog = f"{WORK}/v4"
    build(TALES, prog, "--march", "x86-64-v4")
    with open("/proc/cpuinfo") as f:
        flags = f.read().split()
    if "avx512vl" in flags and "avx512bw" in flags:
        good(prog, "selftest")
        return "this processor has them all"
    refused(1, ["avx512f", "--march"], prog, "run", "-p", "x", "-n", "1")
    refused(1, ["avx512f"], prog, "selftest")
    good(prog, "info")


def full_disk():
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))

    folder = f"{WORK}/small"
    os.makedirs(folder)
    refused(1, ["logits"], PROG, "logits", "-p", "x" * 150, "-o", f"{folder}/logits", preexec_fn=small)
    refused(1, ["File too large"], GGCC, "emit", TALES, "-o", f"{folder}/sources", preexec_fn=small)
    os.makedirs(f"{WORK}/sources of before")
    refused(1, ["File too large"], GGCC, "emit", TALES, "-o", f"{WORK}/sources of before", preexec_fn=small)
    check("model.c" in left(f"{WORK}/sources of before"), "a folder that was there is emptied")
    refused(1, ["File too large"], GGCC, "synth", "gpt-oss", "-o", f"{folder}/synth", preexec_fn=small)
    check(not left(folder), f"left behind: {left(folder)}")
    refused(1, ["output"], "sh", "-c", f"exec '{PROG}' run -p x -n 50 > /dev/full")
    refused(1, ["output"], "sh", "-c", f"exec '{GGCC}' explain '{TALES}' > /dev/full")
    if run("mount", "-t", "tmpfs", "-o", "size=600k", "none", folder).status:
        return "no right to mount a small disk: files limited in size, instead"
    try:
        refused(1, ["free"], GGCC, "build", TALES, "-o", f"{folder}/prog", "--cc", CACHED_CC)
        check(not left(folder), f"left behind: {left(folder)}")
        refused(1, ["0.6 MB left"], PROG, "logits", "-p", "x" * 250, "-o", f"{folder}/logits")
        check(not left(folder), f"left behind: {left(folder)}")
        refused(1, ["free"], GGCC, "emit", TALES, "-o", f"{folder}/sources")
        check(not left(folder), f"left behind: {left(folder)}")
        with open(f"{folder}/fill", "wb") as f:
            f.write(bytes(600 << 10))
        full = {**os.environ, "TMPDIR": folder}
        refused(1, ["is the disk full?", "TMPDIR"], GGCC, "explain", TALES, env=full)
        check(left(folder) == ["fill"], f"left behind: {left(folder)}")
    finally:
        run("umount", folder)


def broken_pipe():
    text = f"{SOURCE}/tests/data/text-1.txt"
    for command in [[PROG, "run", "-p", "One day", "-n", "200", "--ignore-eos"], [GGCC, "build", TALES, "-o", f"{WORK}/unused", "--dump=source"],
                    [PROG, "tokenize", "-f", text], [GGCC, "tokenize", TALES, "-f", text]]:
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(1)
        p.stdout.close()
        err = p.stderr.read().decode()
        status = p.wait(60)
        if status == 0 and not err:
            continue  # all of it was in the pipe already
        check(status == 1 and err.count("error: ") == 1, f"{command}: exit status {status}, {err}")


def interrupted():
    folder = f"{WORK}/interrupted"
    os.makedirs(folder)
    env = temp("interrupted")
    for wait in [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1]:
        p = subprocess.Popen([GGCC, "build", TALES, "-o", f"{folder}/prog"], stderr=subprocess.PIPE, start_new_session=True, env=env)
        time.sleep(wait)
        os.killpg(p.pid, signal.SIGINT)
        err = p.stderr.read().decode()
        status = p.wait(60)
        check(status != 0, f"after {wait} s: exit status {status}, {err}")
        check("Segmentation" not in err and status in (1, 130, -signal.SIGINT), f"after {wait} s: exit status {status}, {err}")
        check(not left(folder), f"after {wait} s, left behind: {left(folder)}")
        check(not left(env["TMPDIR"]), f"after {wait} s, left in TMPDIR: {left(env['TMPDIR'])}")
    p = subprocess.Popen([PROG, "run", "-p", "One day", "-n", "240", "--ignore-eos", "--save", f"{folder}/state"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(1)
    p.send_signal(signal.SIGINT)
    p.stdout.read()
    err = p.stderr.read().decode()
    status = p.wait(60)
    check(status in (0, 1, 130, -signal.SIGINT) and err.count("error: ") <= 1, f"{status} {err}")


# ---- memory ----


def number_after(text, word):
    line = next(line for line in text.split("\n") if line.strip().startswith(word))
    return int(line[line.index(word) + len(word) :].split()[0])


def peak_of(command):
    p, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while p.poll() is None:
        try:
            with open(f"/proc/{p.pid}/status") as f:
                peak = max([peak] + [int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon")])
        except OSError:
            pass
        time.sleep(0.002)
    check(p.returncode == 0, command)
    return peak


def memory_of(model, prog, *run_options):
    explained = number_after(good(GGCC, "explain", model).out.decode(), "planned, without weights")
    info = number_after(good(prog, "info").out.decode(), "total")
    with open(f"{prog}.text", "w") as f:
        f.write("The quick brown fox jumps over the lazy dog, and the dog does not mind at all. " * 3)
    peak = max(peak_of([prog, "perplexity", "-f", f"{prog}.text", *run_options]),
               peak_of([prog, "run", "-f", f"{prog}.text", "-n", "100", "--ignore-eos", *run_options]))
    room = 16 << 20
    check(peak <= explained + room, f"{peak} bytes were used, explain planned {explained}")
    check(peak <= info + room, f"{peak} bytes were used, info says {info}")
    check(peak > 0, "the program was not seen at work")
    return f"{peak / 1e6:.1f} MB used, {explained / 1e6:.1f} planned by explain, {info / 1e6:.1f} by info"


def memory():
    return memory_of(TALES, PROG)


def memory_of_real(name):
    prog = f"{WORK}/{name}.prog"
    build(f"{MODELS}/{name}", prog)
    return memory_of(f"{MODELS}/{name}", prog)


def rerank_prompt():
    """A file's prompt for pairs: what stands in the texts is no slot, marks of the prompt are single tokens."""
    tales, _ = gguf.read(TALES)
    tokens = gguf.key(tales, b"tokenizer.ggml.tokens")[2][1]
    model = synth("qwen3", f"{WORK}/pairs.gguf", f"vocab_size={len(tokens)}", "pooling_type=4", "size.labels=2")
    keys, tensors = gguf.read(model)
    mark = next(t for t, kind in zip(tokens, gguf.key(tales, b"tokenizer.ggml.token_type")[2][1]) if kind == 3).decode()
    prompt = mark + "query: {query}, {document}\nyes or no?" + mark
    keys = [k for k in keys if not k[0].startswith(b"tokenizer.")] + [
        k for k in tales if k[0].startswith(b"tokenizer.") and b"chat_template" not in k[0]]
    gguf.write(model, keys + [[b"tokenizer.chat_template.rerank", gguf.STRING, prompt.encode()]], tensors)
    build(model, f"{WORK}/pairs")
    query, doc = "Who wrote {document}?", "A girl\n{query}"
    for name, text in ("query", query), ("doc", doc):
        with open(f"{WORK}/{name}", "w") as f:
            f.write(text)
    whole = prompt.replace("{query}", "\0").replace("{document}", doc).replace("\0", query)
    ids = good(f"{WORK}/pairs", "tokenize", "-p", whole, "--parse-special", "--no-special").out
    with open(f"{WORK}/pair.ids", "wb") as f:
        f.write(ids)
    good(f"{WORK}/pairs", "embed", "--ids", f"{WORK}/pair.ids", "-o", f"{WORK}/pair.f32")
    want = struct.unpack("<2f", bytes_of(f"{WORK}/pair.f32"))
    got = [float(x) for x in good(f"{WORK}/pairs", "rerank", "--query", f"{WORK}/query", "--doc", f"{WORK}/doc").out.split()]
    check(all(abs(a - b) < 1e-6 for a, b in zip(got, want)) and len(got) == 2, f"{got}, not {want}")
    check(abs(want[0] - want[1]) > 1e-6, "two equal scores tell nothing")
    return f"scores {got}"


def main():
    os.makedirs(WORK)
    build(TALES, PROG)
    tests = [emit_and_command, same_program, running_program, weights_beside, failures_leave_nothing, foreign_processor, full_disk,
             broken_pipe, interrupted, memory, rerank_prompt]
    tests = [(f"world: {t.__name__.replace('_', ' ')}", t) for t in tests]
    if FULL and os.path.isdir(MODELS):
        tests += [(f"memory of {f}", lambda f=f: memory_of_real(f)) for f in sorted(os.listdir(MODELS)) if f.endswith(".gguf")]
    if not run_all(tests):
        sys.exit(1)


main()
