#!/bin/bash
# `ggcc template` as a user calls it: command.sh GGCC CHAT-FOLDER WORK-FOLDER. One golden's bytes, a template's own
# message, what wins over what, and looking at a template without a case.
set -eu
ggcc=$1 chat=$2 work=$3
fail() { echo "command: $1"; exit 1; }

cat > "$work/t.jinja" << 'END'
{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}
{% endfor %}{% if strict is defined %}{{ raise_exception('no ' ~ strict ~ '!') }}{% endif %}{{ strftime_now('%Y-%m-%d %H:%M') }}
END
echo '{"bos_token": "B", "eos_token": "E", "messages": [{"role": "user", "content": "hi"}]}' > "$work/case.json"
got=$("$ggcc" template "$work/t.jinja" --case "$work/case.json" --now 2026-07-26T09:05:03)
[ "$got" = $'B[user] hiE\n2026-07-26 09:05' ] || fail "plain case: $got"
got=$("$ggcc" template "$work/t.jinja" --case "$work/case.json" --bos X --eos Y --now 2026-07-26T09:05:03)
[ "$got" = $'X[user] hiY\n2026-07-26 09:05' ] || fail "--bos, --eos: $got"
echo '{"messages": [], "strict": "way"}' > "$work/case.json"
status=0
got=$("$ggcc" template "$work/t.jinja" --case "$work/case.json" 2>&1 > "$work/out") || status=$?
[ "$status $got" = "1 error: no way!" ] || fail "raise_exception: $status $got"
[ ! -s "$work/out" ] || fail "a failed rendering wrote something"
got=$("$ggcc" template "$work/t.jinja")
case $got in *"reads: bos_token, eos_token, messages, strict"*) ;; *) fail "look: $got" ;; esac
case $got in *"turn ends with:"*"</s>"*) ;; *) fail "turn end: $got" ;; esac
status=0
"$ggcc" template "$work/t.jinja" --case "$work/case.json" --now tomorrow 2> /dev/null || status=$?
[ $status = 2 ] || fail "--now tomorrow: $status"

python3 - "$ggcc" "$chat/google-gemma-2-2b-it.jinja" "$work" << 'END'
import json
import subprocess
import sys
ggcc, template, work = sys.argv[1:]
golden = json.load(open(template + ".golden.json", encoding="utf-8"))
for case in golden["cases"]:
    json.dump(case["input"], open(work + "/case.json", "w"))
    done = subprocess.run([ggcc, "template", template, "--case", work + "/case.json", "--now", golden["now"]], capture_output=True)
    if "output" in case:
        good = done.returncode == 0 and done.stdout == case["output"].encode() and not done.stderr
    else:
        kind, text = case["error"].split(": ", 1)
        text = text if kind == "TemplateError" else case["error"]
        good = done.returncode == 1 and done.stderr.decode() == "error: " + text + "\n" and not done.stdout
    if not good:
        sys.exit("command: case %s: %r" % (case["name"], done))
END
echo "the command: as expected"
