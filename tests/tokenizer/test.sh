#!/bin/bash
# Tokenizers against goldens: the cuts of every pre-tokenizer (from another regular-expression engine), and the ids of
# every vocabulary with goldens in ../shared/data/vocab when that folder is there.
set -eu
tool=$GGCC_BUILD/tests/tokenizer/tokenizer_tool
here=$GGCC_SOURCE/tests/tokenizer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$here/splits.golden" "$work" << 'END'
import sys
rows = [line.split() for line in open(sys.argv[1])]
texts = [bytes.fromhex(row[1]) for row in rows]
with open(sys.argv[2] + "/in", "wb") as file:
    for row, text in zip(rows, texts):
        file.write(b"%s %d\n%s" % (row[0].encode(), len(text), text))
with open(sys.argv[2] + "/want", "w") as file:
    file.writelines(" ".join(row[2:]) + "\n" for row in rows)
END
"$tool" "$GGCC_SOURCE/tests/data/tales.gguf" split - < "$work/in" > "$work/got"
cmp "$work/want" "$work/got"
echo "$(wc -l < "$work/want") texts cut as expected"

count=0 failed=0
for vocab in "$GGCC_SOURCE"/../shared/data/vocab/*.gguf; do
    [ -f "$vocab.out" ] || continue
    case $vocab in *-bert-*) continue ;; esac # WordPiece: not yet there
    "$tool" "$vocab" golden "$vocab.inp" || failed=1
    count=$((count + 1))
done
[ $failed = 0 ] || exit 1
if [ $count = 0 ]; then
    echo "skip: no vocabularies in ../shared/data/vocab"
    exit 77
fi
