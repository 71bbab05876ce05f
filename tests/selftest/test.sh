#!/bin/bash
# A program's `selftest` passes where the program is right, also where a last bit decides much: 8-bit inputs, experts, recurrences. And it
# fails where generated code was broken on purpose (tests/verify/break_cc edits it before the C compiler has it), or weights are.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CC_REAL=${CC:-cc}
status=0

good() { # ARCH SEED
    "$GGCC" synth "$1" --seed "$2" --set type=Q8_0 -o "$work/$1.gguf" --quiet
    "$GGCC" build --quiet "$work/$1.gguf" -o "$work/$1" && "$work/$1" selftest > "$work/out" 2>&1 ||
        { echo "FAIL $1, seed $2: good code does not pass: $(cat "$work/out")"; status=1; return 0; }
    echo "$1, seed $2: $(cat "$work/out")"
}

fails() { # WHAT PROGRAM EXPECTED: selftest ends with status 3 and says EXPECTED (a regular expression)
    local rc=0
    "$2" selftest > "$work/out" 2>&1 || rc=$?
    [ $rc = 3 ] && grep -Eq "^error: selftest: $3" "$work/out" ||
        { echo "FAIL $1: status $rc, expected 3 and: $3"; cat "$work/out"; status=1; return 0; }
    echo "$1: $(cat "$work/out")"
}

broken() { # WHAT MODEL SED-SCRIPT EXPECTED
    BREAK=$3 "$GGCC" build --quiet --cc "$GGCC_SOURCE/tests/verify/break_cc" "$2" -o "$work/broken" && fails "$1" "$work/broken" "$4"
}

good minimax-01 0
good glm5-next 0
good mamba 0
broken "a factor of the residual, 0.7 for 0.75" "$work/minimax-01.gguf" '/^static void block_norm_w\(/,/^}/s/0\.75f \* u/0.70f * u/' 'logit .* at position 0 is'
broken "a recurrence forgets nothing" "$work/minimax-01.gguf" '/^static inline .*block_recur_columns\(/,/^}/s/w \* x/x/' 'logit .* at position [1-3] is'
broken "a row of a large batch off by 1 %" "$work/minimax-01.gguf" \
    '/^static void block_norm\(/,/^}/s/(float scale = )1\.0f/\1 (r == 13 ? 1.01f : 1.0f)/' 'with .* the logits have other bits'
broken "a sigmoid of another slope" "$work/glm5-next.gguf" 's/1 \+ exp_f32/1.5f + exp_f32/' 'logit .* at position 0 is'

# A trained model, then weights of its program's own file, at whose end they are.
tales=$GGCC_SOURCE/tests/data/tales.gguf
"$GGCC" build --quiet "$tales" -o "$work/tales"
"$work/tales" selftest
broken "trained: rotated by the wrong angle" "$tales" '/^static inline void rope_/,/^}/s/c = cos_sin\[i\]/c = cos_sin[i + 1]/' \
    'logit .* at position [0-3] is'
yes | dd of="$work/tales" bs=1024 seek=$(($(stat -c %s "$work/tales") / 1024 - 300)) count=64 iflag=fullblock conv=notrunc 2> "$work/log"
fails "trained: damaged weights" "$work/tales" 'logit .* at position 0 is'
exit $status
