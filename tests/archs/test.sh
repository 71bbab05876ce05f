#!/bin/bash
# The tiny models named in supported.txt, rebuilt from their skeletons: right logits from the interpreter and from compiled programs.
set -eu
here=$GGCC_SOURCE/tests/archs
python3 -c 'import numpy' 2> /dev/null || { echo "skip: python3 with numpy is needed to rebuild the models (apt install python3-numpy)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
only="^($(grep -v '^#' "$here/supported.txt" | paste -sd '|'))\$"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 "$here/make.py" --verify --only "$only" > "$work/log" || { tail -5 "$work/log"; echo "the skeletons do not give the files of sums.json"; exit 1; }
status=0
echo "interpreted:"
python3 "$here/check.py" --only "$only" --tmp "$work" -v --build "" --logits "$GGCC logits {model} --ids {ids} --at {at} -o {out}" || status=1
echo "compiled:"
python3 "$here/check.py" --only "$only" --tmp "$work" -v --build "$GGCC build {model} -o {prog}" || status=1
exit $status
