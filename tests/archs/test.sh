#!/bin/bash
# The tiny models whose architecture has a description, rebuilt from their skeletons: right logits from the interpreter. Then
# programs (programs.py): right logits, and the same bits however a text is evaluated; for one of each kind, with --full for
# every architecture.
set -eu
here=$GGCC_SOURCE/tests/archs
python3 -c 'import numpy' 2> /dev/null || { echo "skip: python3 with numpy is needed to rebuild the models (apt install python3-numpy)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^arch  *//p' "$GGCC_SOURCE"/arch-specs/*.arch | tr -d ' ' | tr ',' '\n' > "$work/described"
only=$(python3 - "$here" "$work/described" << 'END'
import sys
sys.path.insert(0, sys.argv[1])
import make
described = set(open(sys.argv[2]).read().split())
names = [n for n in make.names() if make.load(n)["arch"] in described]
print("^(%s)$" % "|".join(names))
for n in sorted(set(make.names()) - set(names)):
    print("not described, not checked: " + n, file=sys.stderr)
END
)
python3 "$here/make.py" --verify --only "$only" > "$work/log" || { tail -5 "$work/log"; echo "the skeletons do not give the files of sums.json"; exit 1; }
status=0
echo "interpreted:"
python3 "$here/check.py" --only "$only" --tmp "$work" --build "" --logits "$GGCC logits {model} --ids {ids} --at {at} -o {out}" || status=1
echo "compiled:"
TMPDIR=$work python3 "$here/programs.py" || status=1
exit $status
