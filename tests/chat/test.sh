#!/bin/bash
# Chat: what the build does with templates, then conversations through a real terminal with a small trained model.
# GGCC_FULL=1: a wrong template in a program, and the real models of GGCC_MODELS (or ~/.cache/ggcc/models) too.
set -u
command -v python3 > /dev/null || { echo "skip: python3 is needed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$GGCC_SOURCE/tests/chat
status=0
python3 "$here/builds.py" "$work" || status=1
python3 "$here/terminal.py" "$work/tales" "$work" 120 "And it came to pass" "And the king said" || status=1
python3 "$here/outsider.py" "$work/tales" "$work" || status=1
[ "${GGCC_FULL:-0}" = 1 ] || exit $status

# ---- a template that renders otherwise than ggcc did is found by the self-test ----
(cd "$work" &&
    "$GGCC" emit "$GGCC_SOURCE/tests/data/tales.gguf" -o sources --quiet --chat-template "$here/tales.jinja" &&
    cd sources && sed -i 's/ASSISTANT:/Assistant:/' chat_default.c &&
    cc -std=gnu11 -O1 -ffp-contract=off -march=native -Iruntime model.c chat_*.c runtime/*.c -o program -pthread \
        -lm) || status=1
said=$("$work/sources/program" selftest 2>&1)
[ $? = 3 ] && [[ $said == *"chat template 'default'"* ]] ||
    { echo "FAILED  a wrong template passes the self-test: $said"; status=1; }

models=${GGCC_MODELS:-$HOME/.cache/ggcc/models}
real() { # MODEL OPTIONS...
    local model=$models/$1.gguf
    shift
    [ -f "$model" ] || { echo "note: no $model"; return; }
    "$GGCC" build "$model" -o "$work/real" --quiet "$@" && "$work/real" selftest > "$work/log" &&
        python3 "$here/terminal.py" "$work/real" "$work" 120 "What is the capital of France?" "Tell me more." ||
        { echo "FAILED  $model"; status=1; }
}
real smollm2
real gemma3-270m --chat-template "$here/gemma.jinja"
exit $status
