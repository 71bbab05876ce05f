#!/bin/bash
# Chat templates: the goldens both ways (evaluated, and printed as C), random templates against Python's Jinja2, the
# messages of templates that are refused, and the command. In full mode 10,000 random templates, 1,000 of them as C.
# Goldens: GGCC_CHAT or ../shared/data/chat beside the source; without them only what is here.
set -eu
here=$GGCC_SOURCE/tests/jinja
tool=$GGCC_BUILD/tests/jinja/jinja_tool
work=$GGCC_BUILD/tests/jinja/work
mkdir -p "$work"
full=${GGCC_FULL:-0}

# What is refused, and where.
bash "$here/refused.sh" "$tool" > "$work/refused.txt"
[ "${GGCC_BLESS:-0}" = 1 ] && cp "$work/refused.txt" "$here/refused.expected"
diff -u "$here/refused.expected" "$work/refused.txt"

# The goldens of real models' templates.
chat=${GGCC_CHAT:-$GGCC_SOURCE/../shared/data/chat}
if [ -d "$chat" ]; then
    python3 "$here/golden.py" "$tool" "$chat"
    templates=("$chat"/*.jinja)
    if [ "$full" = 1 ]; then
        CFLAGS="-O1 -Wall -Wextra -Wshadow" python3 "$here/compiled.py" "$tool" "$work/chat" "$GGCC_SOURCE" "${templates[@]}"
    else
        CFLAGS="-O0 -Wall -Wextra -Wshadow" python3 "$here/compiled.py" "$tool" "$work/chat" "$GGCC_SOURCE" "${templates[@]}"
    fi
    python3 "$here/golden.py" "$tool" "$chat" --compiled "$work/chat/templates"
    if [ -x "$GGCC" ]; then bash "$here/command.sh" "$GGCC" "$chat" "$work"; fi
else
    echo "note: no goldens at $chat"
fi

# Random templates.
if ! python3 -c 'import jinja2' 2> /dev/null; then
    echo "skip: Python's jinja2 is not installed: random templates were not compared"
    exit 77
fi
if [ "$full" = 1 ]; then
    python3 "$here/fuzz.py" "$tool" --count 10000 --seed 1
    python3 "$here/fuzz.py" "$tool" --count 1000 --seed 2 --compiled "$GGCC_SOURCE" "$work/fuzz" | tail -n 1
else
    python3 "$here/fuzz.py" "$tool" --count 200 --seed 1 | tail -n 1
    python3 "$here/fuzz.py" "$tool" --count 20 --seed 2 --compiled "$GGCC_SOURCE" "$work/fuzz" | tail -n 1
fi
