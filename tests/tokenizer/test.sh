#!/bin/bash
# Tokenizers against goldens: the cuts of every pre-tokenizer (from another regular-expression engine), the ids of a small
# vocabulary of each kind (kinds/, from other implementations: differential.py --goldens), and those of every vocabulary
# with goldens in ../shared/data/vocab when that folder is there.
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

# Digits from the right, in threes, up to the end of a word; of the numbers beyond digits few are of a word.
printf 'tiny_aya 7\n4277①tiny_aya 6\n4277²tiny_aya 7\n4277Ⅱtiny_aya 5\n4277a' |
    "$tool" "$GGCC_SOURCE/tests/data/tales.gguf" split - > "$work/got"
printf '1 3 3\n3 3\n3 4\n3 1 1\n' | cmp - "$work/got"

# Ids of each text, and what the ids print: the text itself, but for the kinds that normalise (lossy).
failed=0
golden() { # VOCABULARY
    "$tool" "$1" golden "$1.inp" > "$work/out" || { cat "$work/out" && failed=1; }
    case $(basename "$1") in
    *bert* | words* | cased*) ;; # WordPiece: white space, case and accents are lost
    unigram*) ;;                 # white space is trimmed, characters are replaced
    segments*) ;;                # white space and case are lost
    bases*) ;;                   # case of sequences is lost, the last six letters of one are filled up
    *) grep -q ' 0 printed otherwise$' "$work/out" || { cat "$work/out" && failed=1; } ;;
    esac
    tail -1 "$work/out" | sed 's|^.*/||'
}
for vocab in "$here"/kinds/*.gguf; do golden "$vocab"; done
count=0
for vocab in "$GGCC_SOURCE"/../shared/data/vocab/*.gguf; do
    [ -f "$vocab.out" ] || continue
    golden "$vocab"
    count=$((count + 1))
done
[ $failed = 0 ] || exit 1

# The whole comparison, where its packages are: GGCC_FULL=1, and GGCC_LLAMA names a built llama_reference.cpp.
if [ "${GGCC_FULL:-0}" = 1 ] && python3 -c 'import tokenizers, sentencepiece, gguf, unicodedata2' 2> /dev/null; then
    python3 "$here/differential.py" "$tool" ${GGCC_LLAMA:+--llama "$GGCC_LLAMA"}
fi
if [ $count = 0 ]; then
    echo "skip: no vocabularies in ../shared/data/vocab"
    exit 77
fi
