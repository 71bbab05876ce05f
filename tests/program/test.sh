#!/bin/bash
# Whole programs: what no change of threads, batches, cuts, builds or compilers may change, and what they do when the world fails.
# GGCC_FULL=1 tries every combination, every description, and the real models of GGCC_MODELS (or ~/.cache/ggcc/models).
set -eu
command -v python3 > /dev/null || { echo "skip: python3 is needed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$GGCC_SOURCE/tests/program
status=0
python3 "$here/bits.py" "$work" || status=1
python3 "$here/world.py" "$work" || status=1
exit $status
