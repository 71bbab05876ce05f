#!/bin/bash
# Rounded inputs cost no more than in llama.cpp: mean divergence from the interpreter, at most 1.1 times the recorded one. The small
# trained model, and Q8_0 files of three synthetic families. Every format against llama.cpp itself: tools/bench/formats.py.
set -eu
python3 -c 'import numpy' 2> /dev/null || { echo "skip: python3 with numpy is needed (apt install python3-numpy)"; exit 77; }
python3 -B "$GGCC_SOURCE/tests/formats/check.py" --ggcc "$GGCC"
