#!/bin/bash
# The generated C: no compiler warns, the formatter changes nothing, and two tiny models' whole source is what generated/ holds.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
failed() { echo "FAILED  $*"; status=1; }
export CC=cc

"$GGCC" synth llama -o "$work/llama.gguf" --quiet --set type=Q8_0 --set block_count=3 || failed "synth llama"
"$GGCC" synth gemma3 -o "$work/gemma3.gguf" --quiet || failed "synth gemma3"
cp "$GGCC_SOURCE/tests/data/tales.gguf" "$work/tales.gguf"

# clang alone complains of support functions that this model does not call.
compilers=()
command -v gcc > /dev/null && compilers+=("gcc -O3")
command -v clang > /dev/null && compilers+=("clang -O1 -Wno-unused-function")
check_source() { # MODEL MARCH
    local source=$work/$1-$2.c
    "$GGCC" build "$work/$1.gguf" -o "$work/unused" --march "$2" --dump=source > "$source" || { failed "$1 for $2"; return; }
    for cc in "${compilers[@]}"; do
        # shellcheck disable=SC2086
        ${cc%% *} -std=gnu11 -ffp-contract=off -Wall -Wextra ${cc#* } -march="$2" -I"$GGCC_SOURCE/runtime" -c "$source" -o "$source.o" 2> "$source.log"
        [ -s "$source.log" ] && { failed "$1 for $2: ${cc%% *} has something to say"; head -12 "$source.log"; }
    done
    if command -v clang-format > /dev/null; then
        clang-format --style="file:$GGCC_SOURCE/generated/.clang-format" "$source" > "$source.formatted"
        diff "$source" "$source.formatted" > "$source.diff" || { failed "$1 for $2: clang-format would change it"; head -12 "$source.diff"; }
    fi
    [ "$(tail -c 1 "$source" | od -An -tx1)" = " 0a" ] || failed "$1 for $2: no newline at the end"
    grep -nE ' +$|	' "$source" | head -3 | grep . && failed "$1 for $2: blanks at a line's end, or a tab"
    echo "$1 for $2: $(wc -l < "$source") lines"
}
pairs=("tales native" "gemma3 x86-64" "llama x86-64-v4")
[ "$(uname -m)" = x86_64 ] || pairs=("tales native" "gemma3 native")
if [ "${GGCC_FULL:-0}" = 1 ] && [ "$(uname -m)" = x86_64 ]; then
    pairs=()
    for model in tales gemma3 llama; do
        for march in native x86-64 x86-64-v3 x86-64-v4 znver4; do pairs+=("$model $march"); done
    done
fi
# shellcheck disable=SC2086
for pair in "${pairs[@]}"; do check_source $pair; done
command -v clang-format > /dev/null || echo "note: no clang-format here"

# ---- a layer or value may be called as C, its headers or the runtime call something; a long formula ends in dots ----
"$GGCC" synth qwen2 -o "$work/qwen2.gguf" --quiet
for name in memcpy piece_claim Worker PAGE NAN exit float; do
    twice=
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do twice="$twice; h = (h + h * h) * 0.5"; done
    sed "s/layer block/layer $name/; s/run block/run $name/; s/^  q = rot(q)/  sqrtf = x * 2; h = sqrtf$twice; x = x + h; q = rot(q)/" \
        "$GGCC_SOURCE/arch-specs/qwen2.arch" > "$work/named.arch"
    timeout 60 "$GGCC" emit "$work/qwen2.gguf" --arch "$work/named.arch" -o "$work/named" --quiet || failed "a layer called $name"
    (cd "$work/named" && ${CC:-cc} -std=c11 -march=native -fsyntax-only -Werror -I. -Iruntime model.c) || failed "the code of a layer called $name"
done

# ---- goldens, but for the numbers of the self-test, which come from this machine's libm ----
if [ "$(uname -m)" = x86_64 ]; then
    for model in llama gemma3; do
        (cd "$work" && "$GGCC" emit "$model.gguf" -o "$model" --march x86-64-v3 --quiet) || failed "emit $model"
        golden=$GGCC_SOURCE/generated/$model/model.c
        if [ "${GGCC_BLESS:-0}" = 1 ]; then mkdir -p "${golden%/*}" && cp "$work/$model/model.c" "$golden"; fi
        plain() { sed '/^static const SelfCheck/,/^};/d; /^const SelfTest selftest/d' "$1"; }
        diff <(plain "$golden") <(plain "$work/$model/model.c") > "$work/diff" ||
            { failed "generated/$model/model.c is not what is generated now (tests/run --bless rewrites it)"; head -20 "$work/diff"; }
    done
fi
exit $status
