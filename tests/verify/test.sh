#!/bin/bash
# `ggcc verify` passes on good code, and names the kernel that was broken on purpose: the generated source is edited between
# ggcc and the C compiler (break_cc).
set -eu
here=$GGCC_SOURCE/tests/verify
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CC_REAL=${CC:-cc}
status=0

good() { # NAME MODEL [OPTIONS]
    "$GGCC" verify --quiet "${@:2}" > "$work/out" 2>&1 || { echo "FAIL $1: good code does not pass"; cat "$work/out"; status=1; return 0; }
    echo "$1: $(tail -n 1 "$work/out")"
}

broken() { # WHAT MODEL SED-SCRIPT EXPECTED: verify must end with status 3 and say EXPECTED (a regular expression)
    local rc=0
    BREAK=$3 "$GGCC" verify --quiet --cc "$here/break_cc" "$2" > "$work/out" 2>&1 || rc=$?
    if [ $rc != 3 ] || ! grep -Eq "^error: $4" "$work/out"; then
        echo "FAIL $1: status $rc, expected 3 and: $4"
        grep -E 'error|WRONG' "$work/out" || tail -n 3 "$work/out"
        status=1
    else
        echo "$1: $(grep '^error' "$work/out")"
    fi
}

"$GGCC" synth gemma3 -o "$work/gemma3.gguf" --set attention.sliding_window=90 --set block_count=7
"$GGCC" synth qwen2 -o "$work/qwen2.gguf" --set attention.key_length=16
"$GGCC" synth qwen3 -o "$work/qwen3.gguf"
# What the last recurrence of this mamba reads cancels to a four-hundredth of its terms, and a score of kimi-k3 is a sum of 64 numbers that
# leaves next to nothing: right all the same.
"$GGCC" synth mamba -o "$work/mamba.gguf"
"$GGCC" synth rwkv7 -o "$work/rwkv7.gguf"
"$GGCC" synth kimi-k3 -o "$work/kimi-k3.gguf"
tales=$GGCC_SOURCE/tests/data/tales.gguf
good "trained, 8 bits" "$tales"
for m in gemma3 qwen2 qwen3 mamba rwkv7 kimi-k3; do good "$m" "$work/$m.gguf"; done

# A block that is one product of its input: the result must not be written over what other pieces of it still read.
mkdir "$work/own"
cp -r "$GGCC_SOURCE/arch-specs/lib" "$work/own/lib"
sed -e 's/^model {/layer mixer[l < L](x) {\n  tensor sq : d -> d\n  x = sq(x)\n}\n\nmodel {/' -e 's/^  run block(x)/&\n  run mixer(x)/' \
    "$GGCC_SOURCE/arch-specs/qwen2.arch" > "$work/own/qwen2.arch"
"$GGCC" synth qwen2 --arch "$work/own/qwen2.arch" -o "$work/mixer.gguf"
good "x = W(x)" "$work/mixer.gguf" --arch "$work/own/qwen2.arch"

broken "a row's scale off by 1 %" "$tales" \
    '/^static void block_ffn_down\(/,/^}/s/v0\[j\]/v0[j] * (n + j == 77 ? 1.01f : 1)/' \
    'kernel block_ffn_down differs .*layer 0, .*element 77:'
broken "a norm's row off by 1 %" "$tales" '/^static void block_norm\(/,/^}/s/(float scale = )1\.0f/\1 (r == 5 ? 1.01f : 1.0f)/' 'kernel block_norm differs .*row 5 '
broken "rope pairs swapped" "$work/qwen3.gguf" '/^static inline void rope_halves/,/^}/s/c = cos_sin\[2 \* i\], s = cos_sin\[2 \* i \+ 1\]/c = cos_sin[2 * (i == 3 ? 4 : i)], s = cos_sin[2 * (i == 3 ? 4 : i) + 1]/' \
    'kernel block_[a-z0-9_]* differs from the interpreter: (rope|put)'
broken "window one too long" "$work/gemma3.gguf" 's/(p >= 90\) [*a-z_]+ = p - 90) \+ 1/\1/' 'kernel block[_a-z0-9]*attention differs from the interpreter: attention'
broken "window one too short" "$work/gemma3.gguf" 's/p >= 90\) ([*a-z_]+ = p - 90) \+ 1/p >= 89) \1 + 2/' 'kernel block[_a-z0-9]*attention differs from the interpreter: attention'
broken "angles off by one position" "$work/qwen2.gguf" 's/float turn = \(float\) pos/float turn = (float) (pos + 1)/' 'kernel embed[_a-z0-9]* differs from the interpreter: angles'
broken "a bias left out" "$work/qwen2.gguf" '/^static void block_store_kv\(/,/^}/s/ \+ attn_v_bias\[i\]//' 'kernel block_store_kv differs from the interpreter: put'
broken "one decay off by 0.05 %" "$work/mamba.gguf" '/^static void block_recur\(/,/^}/s/ \* M\[i\]/ * M[i] * (h == 27 \&\& i == 5 ? 1.0005f : 1)/' \
    'kernel block_recur differs from the interpreter: recur .*layer 0, .*element 27:'
broken "what is erased off by 0.1 %" "$work/rwkv7.gguf" '/^static inline .*block_recur_columns\(/,/^}/s/vf_set\(erase\[i\]\)/vf_set(erase[i] * (i == 3 ? 1.001f : 1))/' \
    'kernel block_recur differs from the interpreter: recur .*layer 0, '
broken "a sum off by 0.02 %" "$work/kimi-k3.gguf" '/^static void block_norm_bank\(/,/^}/s/row_sum\(/(1 + 2e-4f * (r == 8)) * row_sum(/' \
    'kernel block_norm_bank differs from the interpreter: .*, row 8 '
exit $status
