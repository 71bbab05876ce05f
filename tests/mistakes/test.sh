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
how=--sample
[ "${GGCC_FULL:-0}" = 1 ] && how=
[ "${GGCC_BLESS:-0}" = 1 ] && how=--bless
python3 "$here/mistakes.py" "$work" $how || status=1
if [ "${GGCC_FULL:-0}" = 1 ]; then
    mkdir "$work/all" && python3 "$here/mistakes.py" "$work/all" --all || status=1
fi
python3 "$here/ignored.py" "$work" || status=1
exit $status
