#!/bin/bash
# Logits against an independent engine's (golden.py): the interpreter and compiled programs, on synthetic models of every description
# (peers.txt, and those of synthetic.txt at more positions) and the small trained model; with --full also on the two real ones.
# Both must be within 1e-4 of the logits' standard deviation, programs where they are built from F32 files. Programs of quantised files have no such bound (8-bit inputs); tools/bench/accuracy.py measures them.
set -eu
here=$GGCC_SOURCE/tests/golden
python3 -c 'import numpy' 2> /dev/null || { echo "skip: python3 with numpy is needed (apt install python3-numpy)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dequant=$GGCC_BUILD/tests/golden/dequant_tool
status=0
check() { python3 "$here/golden.py" check "$here/$1.npz" --model "$2" --logits "$3" --tol "$4" "${@:5}" || { echo "FAIL $1: $3"; status=1; }; }
by_interpreter="$GGCC logits {model} --ids {ids} --at {at} -o {out}"
by_program="$work/program logits --ids {ids} --at {at} -o {out}"

while read -r name args; do
    case $name in '#'*) continue ;; esac
    # shellcheck disable=SC2086
    "$GGCC" synth $args -o "$work/model.gguf"
    check "$name" "$work/model.gguf" "$by_interpreter" 1e-4
    "$GGCC" build --quiet "$work/model.gguf" -o "$work/program"
    check "$name" "$work/model.gguf" "$by_program" 1e-4
done < "$here/synthetic.txt"

# One model or more for each description; programs for a few (all in tools/peers-check.py --compiled).
python3 "$GGCC_SOURCE/tools/peers-check.py" --ggcc "$GGCC" || status=1
python3 "$GGCC_SOURCE/tools/peers-check.py" --ggcc "$GGCC" --compiled --only 'olmoe|deepseek2|jamba' || status=1

# Encoders: the same, of what embed gives.
python3 "$GGCC_SOURCE/tools/encoders-check.py" --ggcc "$GGCC" || status=1
python3 "$GGCC_SOURCE/tools/encoders-check.py" --ggcc "$GGCC" --compiled \
    --only '^bert (mean|file pooling_type=1$)|^modern-bert file.*cls.norm' || status=1

exact() { # NAME MODEL
    check "$1" "$2" "$by_interpreter" 1e-4
    "$dequant" "$2" "$work/f32.gguf"
    "$GGCC" build --quiet "$work/f32.gguf" -o "$work/program"
    check "$1" "$work/f32.gguf" "$by_program" 1e-4 --same-values
}
exact tales "$GGCC_SOURCE/tests/data/tales.gguf"
if [ "${GGCC_FULL:-0}" = 1 ]; then
    models=${GGCC_MODELS:-$GGCC_BUILD/models}
    for name in smollm2 gemma3-270m; do
        if [ -f "$models/$name.gguf" ]; then exact "$name" "$models/$name.gguf"; else echo "not there, not checked: $models/$name.gguf"; fi
    done
fi
exit $status
