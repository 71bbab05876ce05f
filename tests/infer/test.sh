#!/usr/bin/env bash
# Drafts of descriptions: for each dense decoder of tests/archs, `ggcc infer` on its model, then the model with the draft alone (and
# the library parts), by the interpreter. At least half must build; how many also give the right logits is printed.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
python3 -c 'import numpy' 2>/dev/null || { echo "skip: python3 has no numpy"; exit 77; }
dense='^(apertus|bloom|cohere|cohere2|ernie4_5|exaone4|falcon|falcon-40b|gemma|gemma2|gemma3|glm|glm4|gpt2|gpt_neox|granite|hunyuan_dense|jais2|llama|ministral3|mistral|mpt|nemotron|olmo|phi|phi3|qwen2|qwen3|smollm3|stablelm|starcoder2|b-baichuan-dense|b-qwen-dense|b-plamo-dense|b-spark2_5-dense)$'
python3 "$GGCC_SOURCE/tests/archs/make.py" --out . --only "$dense" >/dev/null || exit 1
seq 1 20 >ids
n=0 builds=0 right=0
for f in *.gguf; do
    n=$((n + 1))
    "$GGCC" infer "$f" >draft.arch 2>err || { echo "$f: no draft: $(head -c 200 err)"; continue; }
    grep -q GUESS draft.arch || { echo "$f: a draft without a marked guess"; exit 1; }
    # What no name or shape settles is marked wherever it stands: a bare row into a part, what a part's row sees, the way residuals go.
    if grep -E '^ +(u = |w = |f = |a = attend|x = x \+ a|x = x \+ \(a)|head\(x\)' draft.arch | grep -v GUESS; then
        echo "$f: a guess that is not marked"; exit 1
    fi
    [ "$f" != olmo.gguf ] || [ "$(grep -c 'norm(x, eps).*GUESS: a norm without weights' draft.arch)" = 3 ] ||
        { echo "$f: its norms have no weights: $(cat draft.arch)"; exit 1; }
    "$GGCC" logits "$f" --arch draft.arch --ids ids -o draft.bin 2>err || { echo "$f: the draft does not build: $(head -n 1 err | head -c 200)"; continue; }
    builds=$((builds + 1))
    "$GGCC" logits "$f" --ids ids -o right.bin 2>/dev/null || continue
    python3 - <<'P' && right=$((right + 1))
import numpy as np, sys
a, b = np.fromfile("draft.bin", "<f4"), np.fromfile("right.bin", "<f4")
sys.exit(0 if a.size == b.size and np.abs(a - b).max() < 2e-3 * b.std() else 1)
P
done
echo "$n models: $builds drafts build, $right of them give the right logits"
[ "$n" -ge 30 ] && [ $((2 * builds)) -ge "$n" ]
