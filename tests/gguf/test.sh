#!/bin/bash
# Every recipe of make.py through the reader; what it says must be what expected.txt says, to the byte.
set -eu
here=$GGCC_SOURCE/tests/gguf
work=$GGCC_BUILD/tests/gguf/files
rm -rf "$work"
names=$(python3 "$here/make.py" "$work")
cd "$work"
# shellcheck disable=SC2086
"$GGCC_BUILD/tests/gguf/show_tool" $names > ../actual.txt
if [ "${GGCC_BLESS:-0}" = 1 ]; then cp ../actual.txt "$here/expected.txt"; fi
diff -u "$here/expected.txt" ../actual.txt
echo "$(grep -c '    error: ' ../actual.txt) broken files refused, $(grep -c '    version' ../actual.txt) good files read"
