#!/bin/bash
# Deliberate mistakes in every description and in files of it: what ggcc says (answers.txt), and that nothing which names and shapes can
# tell goes through; then keys that are ignored and expected, altered. With --full all libraries' lines for every description, and every
# place of every mistake (minutes).
set -u
here=$GGCC_SOURCE/tests/mistakes
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
no() { # EXPECTED SYNTH-ARGUMENTS: what is asked of synth is refused with these words
    local text=$1
    shift
    "$GGCC" synth "$@" -o "$work/no.gguf" --quiet 2> "$work/said" && { echo "FAILED  synth $*: not refused"; status=1; }
    grep -qF -- "$text" "$work/said" || { echo "FAILED  synth $*: '$text' is not in:"; cat "$work/said"; status=1; }
}
no "block_count=3: this name was given before, as --set block_count=2" llama --set block_count=2 --set block_count=3
no "llama.block_count=3: this name was given before" llama --set block_count=2 --set llama.block_count=3
no "has 3 entries; one number, or one for each of 4 layers, was expected" llama --set attention.head_count_kv=2,2,2
no "asks for nothing of that name" llama --set blok_count=2
no "'require L > 1' (slopes are spread over layers)" minimax-01 --set block_count=1
for arch in bert jina-bert-v2 modern-bert neo-bert qwen3; do no "3: last, 4: scores)" $arch --set pooling_type=5; done
for arch in eurobert nomic-bert gemma-embedding t5encoder; do no "2: first, 3: last)" $arch --set pooling_type=4; done
how=--sample
[ "${GGCC_FULL:-0}" = 1 ] && how=
[ "${GGCC_BLESS:-0}" = 1 ] && how=--bless
python3 "$here/mistakes.py" "$work" $how || status=1
if [ "${GGCC_FULL:-0}" = 1 ]; then
    mkdir "$work/all" && python3 "$here/mistakes.py" "$work/all" --all || status=1
fi
python3 "$here/ignored.py" "$work" || status=1
exit $status
