#!/bin/bash
# Laws of the source tree that no compiler checks (../shared/design.md, section 2).
set -u
shopt -s lastpipe # forbid, at the end of a pipe, sets the status of this shell
cd "$GGCC_SOURCE" || exit 1
status=0
forbid() { # WHAT, then lines on standard input that break the law
    local lines
    lines=$(cat)
    [ -z "$lines" ] || { echo "FAILED  $1:"; echo "$lines" | head -10 | sed 's/^/    /'; status=1; }
}
ours=(compiler runtime templates tools tests)
c_files() { find "$@" -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' \) | sort; }

# ---- who includes whom: util <- gguf <- spec <- graph <- plan <- target <- emit <- driver ----
c_files runtime | xargs grep -nE '#include .*(compiler/|templates/)|#include "(util|gguf|spec|graph|plan|emit|driver)\.h"' | forbid "the runtime never includes the compiler"
rank() {
    case $1 in
    util.h) echo 1 ;; gguf.h) echo 2 ;; spec.h | spec_parse.h) echo 3 ;; graph.h | eval.h | graph_text.h) echo 4 ;;
    passes.h) echo 5 ;; plan.h) echo 6 ;; emit.h) echo 8 ;; driver.h) echo 9 ;; *) echo 0 ;;
    esac
}
for header in compiler/*.h; do
    own=$(rank "${header##*/}")
    [ "$own" = 0 ] && continue
    while read -r name; do
        [ "$(rank "$name")" -gt "$own" ] && echo "$header includes $name"
    done < <(sed -nE 's/^#include "([^"]*)".*/\1/p' "$header")
done | forbid "includes point one way"
grep -lE '#include "(driver|emit)\.h"' compiler/gguf*.c compiler/spec*.c compiler/graph*.c compiler/passes.c compiler/fuse.c compiler/plan.c compiler/pack.c 2> /dev/null |
    forbid "the front and the middle know nothing of the emitter"
grep -nE 'gguf_(find|key|get|int|str|real|bool)[a-z_]*\(' compiler/passes.c compiler/fuse.c compiler/plan.c compiler/pack.c compiler/emit.c compiler/print*.c 2> /dev/null |
    forbid "after the description, nobody reads a key of the file"

# ---- words ----
words='cuda|metal|avx[0-9]*|neon'
c_files compiler runtime tools | grep -vE '^compiler/target/|^runtime/gpu_' | xargs grep -niwE "$words" | forbid "instruction sets and GPUs are named only under compiler/target, templates and runtime/gpu_*"
models='llama|llama[0-9]|gemma[0-9a-z]*|qwen[0-9a-z]*|mistral[0-9a-z]*|phi[0-9]|smollm[0-9]*|falcon|deepseek[0-9a-z]*|mixtral|granite|olmo[0-9a-z]*|cohere|starcoder[0-9]*'
# Kinds of tokenizers are named after models in the files themselves, and a citation of llama.cpp is no model.
c_files compiler runtime templates | grep -vE '(tok|regex|unicode|graph_text)' | xargs grep -niwE "$models" | grep -viE 'llama\.cpp|llama-(tokenize|quantize|completion)' |
    forbid "no C file names a model"
home='/wo''rk/|/ho''me/|/ro''ot/|/us''r/local/'
c_files "${ours[@]}" | xargs grep -nE "$home" | forbid "nothing names a machine's folders"

# ---- form ----
# The words of C are searched by halving.
sed -n '/^static const char \*const reserved\[\]/,/};/p' compiler/print.c | grep -o '"[^"]*"' | LC_ALL=C sort -cu 2>&1 |
    forbid "compiler/print.c: the words of C are in order, each once"
# Tables of data may be longer: Unicode's, a golden; a row of a .def is a line, however wide.
long='runtime/value_unicode\.h|tests/unit/|generated/|tests/jinja/'
c_files "${ours[@]}" | grep -vE "$long" | while read -r f; do
    n=$(wc -l < "$f")
    [ "$n" -gt 700 ] && echo "$f has $n lines"
done | forbid "a file is at most 700 lines"
c_files "${ours[@]}" | grep -vE "$long|format_golden\.h|\.def$" | while read -r f; do
    LC_ALL=C.UTF-8 awk -v f="$f" 'length($0) > 120 { print f ":" FNR ": " length($0) " columns" }' "$f"
done | forbid "a line has at most 120 columns"
c_files "${ours[@]}" | xargs grep -nP '\t| +$' | forbid "no tabs, no blanks at a line's end"
for f in $(c_files compiler runtime templates tools | grep -v 'ops\.def\|list\.def'); do
    head -3 "$f" | grep -qE '^(//|/\*|#)' || echo "$f"
done | forbid "every file opens with a comment"
exit $status
