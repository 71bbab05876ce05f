#!/bin/bash
# Makes all goldens of tests/golden anew, with llama.cpp as the engine.
#   goldens.sh PEERS GGCC [MODELS]
# PEERS: a folder with bin/lc_logits (goldens: f32 cache, GELU computed), bin/llama-tokenize, bin/llama-quantize, and
# llama.cpp, build and exact-build (GELU computed), which lc_embed is made of.
# GGCC: the compiler, for the synthetic models. MODELS: a folder with smollm2.gguf and gemma3-270m.gguf; without it the
# goldens of these two are left as they are.
# What is evaluated is the model dequantised to F32: that is what an interpreter of the quantised file computes.
set -eu
[ $# -ge 2 ] || { sed -n '2,8s/^# *//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
peers=$(cd "$1/bin" && pwd) ggcc=$(realpath "$2") models=${3:+$(realpath "$3")}
out=$root/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make() { python3 "$out/golden.py" make "$out/$1.npz" --lc "$peers/lc_logits" --reference "$2" --model "$3" --ids "$4"; }
first_ids() { tr -d '[],' | tr -s ' ' '\n' | grep . | head -n "$1" | paste -sd ' '; }

# 96 ids below 288, the same for all synthetic models: a linear congruence.
awk 'BEGIN { x = 1; for (i = 0; i < 96; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "%d ", int(x / 65536) % 288 } }' > "$work/synthetic.ids"
grep -v '^#' "$out/synthetic.txt" | while read -r name args; do
    # shellcheck disable=SC2086
    "$ggcc" synth $args -o "$work/$name.gguf"
    make "$name" "$work/$name.gguf" "$work/$name.gguf" "$work/synthetic.ids"
done

# One model for each line of peers.txt, all in peers.npz.
python3 "$root/tools/peers-check.py" --peers "$peers/.." --ggcc "$ggcc" --write

# One for each line of encoders.txt, in encoders.npz; lc_embed is linked as lc_logits is.
exact=$(find "$peers/../exact-build" -name libggml-cpu.a)
llama=$peers/../llama.cpp build=$peers/../build
g++ -O2 -I"$llama/include" -I"$llama/ggml/include" "$root/tools/lc_embed.cpp" -o "$work/lc_embed" "$build/src/libllama.a" \
    "$build/ggml/src/libggml.a" "$exact" "$build/ggml/src/libggml-base.a" -lgomp -lpthread -ldl -lm
python3 "$root/tools/encoders-check.py" --lc "$work/lc_embed" --ggcc "$ggcc" --write

real() { # NAME MODEL TOKENS
    "$peers/llama-quantize" --allow-requantize "$2" "$work/f32.gguf" F32 > "$work/log" 2>&1 || { tail -5 "$work/log" >&2; exit 1; }
    "$peers/llama-tokenize" -m "$2" -f "$root/tests/data/text-1.txt" --ids --log-disable 2> "$work/log" | first_ids "$3" > "$work/ids"
    make "$1" "$work/f32.gguf" "$2" "$work/ids"
    rm "$work/f32.gguf"
}
real tales "$root/tests/data/tales.gguf" 250
if [ -n "$models" ]; then
    real smollm2 "$models/smollm2.gguf" 512
    real gemma3-270m "$models/gemma3-270m.gguf" 512
fi
