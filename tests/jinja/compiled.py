#!/usr/bin/env python3
# Prints templates as C and makes one program of them: compiled.py JINJA_TOOL OUT-FOLDER SOURCE-FOLDER TEMPLATE...
# Out: OUT-FOLDER/templates, which compiled_main.c describes. Environment: CC, CFLAGS, JOBS.
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

RUNTIME = ["value", "value_iter", "value_number", "value_string", "value_text", "value_call", "value_filter", "value_sequence", "value_test", "value_prose", "json",
           "chat_template"]


def is_old(path, source):
    """An object that is missing, or older than some part of the runtime."""
    parts = [source + "/runtime/" + name for name in os.listdir(source + "/runtime")]
    return not os.path.exists(path) or os.path.getmtime(path) < max(map(os.path.getmtime, parts))


def build(tool, folder, source, texts):
    cc = os.environ.get("CC", "gcc").split() + os.environ.get("CFLAGS", "-O0 -w").split() + ["-std=gnu11", "-I", source + "/runtime"]
    os.makedirs(folder, exist_ok=True)
    units = []
    for i, text in enumerate(texts):
        done = subprocess.run([tool, "--emit", "t%d" % i], input=text, capture_output=True)
        if done.returncode:
            raise SystemExit("template %d is refused: %s" % (i, done.stderr.decode(errors="replace")))
        with open("%s/t%d.c" % (folder, i), "wb") as f:
            f.write(done.stdout)
        units.append("t%d" % i)
    with open(folder + "/table.c", "w") as f:
        f.write('#include "chat_template.h"\n' + "".join("int template_%s(Render *r);\n" % u for u in units))
        f.write("int (*const templates[])(Render *r) = {%s};\nconst int n_templates = %d;\n" % (", ".join("template_" + u for u in units), len(units)))
    jobs = [(folder + "/%s.c" % u, folder + "/%s.o" % u) for u in units + ["table"]]
    jobs += [(source + "/runtime/%s.c" % u, folder + "/rt_%s.o" % u) for u in RUNTIME if is_old(folder + "/rt_%s.o" % u, source)]
    jobs.append((source + "/tests/jinja/compiled_main.c", folder + "/main.o"))
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for done in pool.map(lambda job: subprocess.run(cc + ["-c", job[0], "-o", job[1]], capture_output=True), jobs):
            if done.returncode or done.stderr:
                raise SystemExit(done.stderr.decode(errors="replace")[:5000])
    objects = [folder + "/%s.o" % u for u in units + ["table", "main"]] + [folder + "/rt_%s.o" % u for u in RUNTIME]
    subprocess.run(cc + objects + ["-lm", "-o", folder + "/templates"], check=True)
    return folder + "/templates"


if __name__ == "__main__":
    build(sys.argv[1], sys.argv[2], sys.argv[3], [open(p, "rb").read() for p in sys.argv[4:]])
