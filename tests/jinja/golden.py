#!/usr/bin/env python3
# Renders every case of *.golden.json and compares it byte for byte, messages of errors too.
#   golden.py JINJA_TOOL FOLDER [--compiled PROGRAM]
# With --compiled the templates ran as printed C: see compiled.sh, which makes PROGRAM of every template of the folder.
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import records

tool, folder = sys.argv[1], sys.argv[2]
cases, failed = 0, 0
for number, path in enumerate(sorted(glob.glob(os.path.join(folder, "*.golden.json")))):
    golden = json.load(open(path, encoding="utf-8"))
    source = open(path[:-len(".golden.json")], "rb").read()
    if len(sys.argv) > 4:
        command, source = [sys.argv[4], golden["now"], str(number)], b""
    else:
        command = [tool, golden["now"]]
    got = records.answers(command, [(source, json.dumps(c["input"]).encode()) for c in golden["cases"]])
    for case, (kind, text) in zip(golden["cases"], got):
        cases += 1
        text = text.decode("utf-8", "replace")
        if "output" in case:
            good = kind == "ok" and text == case["output"]
        else:
            want = case["error"]
            good = text == want or (kind == "raised" and "TemplateError: " + text == want)
        if not good:
            failed += 1
            print("%s, case %s:\n  got  %s %r\n  want %r" % (os.path.basename(path), case["name"], kind, text[:600], (case.get("output") or case.get("error"))[:600]))
print("%d golden cases, %d differ" % (cases, failed))
sys.exit(failed > 0 or cases == 0)
