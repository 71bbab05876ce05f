#!/bin/bash
# Each pass on short texts: PASS-N.in becomes PASS-N.out, to the byte. And the plans of a few models: nothing that lives at the same
# time lies in the same place.
set -eu
here=$GGCC_SOURCE/tests/passes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0 n=0
for in in "$here"/*.in; do
    name=$(basename "$in" .in)
    "$GGCC_BUILD/tests/passes/passes_tool" "${name%-*}" "$in" > "$work/out" || { echo "FAILED  $name"; status=1; continue; }
    [ "${GGCC_BLESS:-0}" = 1 ] && cp "$work/out" "$here/$name.out"
    diff -u "$here/$name.out" "$work/out" || { echo "FAILED  $name"; status=1; }
    # A pass run again finds nothing to do, but for tail_rows, which has peeled the layer, and the rounding, which is there.
    case $name in
    simplify-* | merge_products-* | inline_decay-* | fuse-*)
        grep -v '^# ' "$work/out" > "$work/once"
        "$GGCC_BUILD/tests/passes/passes_tool" "${name%-*}" "$work/once" | grep -v '^# ' > "$work/twice"
        diff -uB "$work/once" "$work/twice" || { echo "FAILED  $name, a second time"; status=1; } ;;
    esac
    n=$((n + 1))
done
[ $n -ge 10 ] || { echo "only $n texts"; status=1; }

models=("$GGCC_SOURCE/tests/data/tales.gguf")
for arch in llama qwen2 qwen3 gemma3; do
    "$GGCC" synth $arch -o "$work/$arch.gguf"
    models+=("$work/$arch.gguf")
done
"$GGCC" synth gemma3 -o "$work/packed.gguf" --set type=Q8_0
models+=("$work/packed.gguf")
if [ "${GGCC_FULL:-0}" = 1 ]; then
    for m in "${GGCC_MODELS:-$HOME/.cache/ggcc/models}"/*.gguf; do [ -e "$m" ] && models+=("$m"); done
fi
for model in "${models[@]}"; do
    "$GGCC_BUILD/tests/passes/plan_tool" "$model" || { echo "FAILED  plan of $model"; status=1; }
done
"$GGCC" synth rwkv7 -o "$work/rwkv7.gguf"
"$GGCC" explain "$work/rwkv7.gguf" | grep 'a copy of' > "$work/copies"
grep -q 'a copy of a result of [a-z_]* for ' "$work/copies" || { echo "FAILED  a copy of a value without a name"; cat "$work/copies"; status=1; }
exit $status
