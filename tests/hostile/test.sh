#!/bin/bash
# Text from hostile files never becomes code: see hostile.py.
set -eu
command -v python3 > /dev/null || { echo "skip: python3 is needed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$GGCC_SOURCE/tests/hostile/hostile.py" "$work"
