#!/bin/bash
# Every template, for every instruction set that this machine has or SIMDe emulates, against double precision and against
# itself: any number of rows, any cut of a batch, the same bits.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
src=$GGCC_SOURCE
tools=$GGCC_BUILD/tests/templates
warn="-Wall -Wextra -Wshadow -Wno-unused-function -Wno-psabi"
include="-I$src/tests/templates -I$src/compiler -I$src/runtime"
for f in "$src"/compiler/{fail,format,template,util}.c "$GGCC_BUILD/embedded.c"; do
    $cc -std=gnu11 -O1 -ffp-contract=off -I"$src/compiler" -c "$f" -o "$work/$(basename "$f" .c).o" &
done
wait
objects="$work/fail.o $work/format.o $work/template.o $work/util.o $work/embedded.o"

status=0
say() { [ ! -s "$work/log" ] || status=1; tail -20 "$work/log"; }

# check NAME "compiler flags" FOLDER...
check() {
    local name=$1 flags=$2
    shift 2
    local quote=()
    for folder in "$@"; do quote=(-iquote "$src/templates/$folder" "${quote[@]}"); done
    echo "$name:"
    # shellcheck disable=SC2086
    for file in "$src/templates/${!#}"/*.c; do # each template compiles as it stands
        $cc -std=gnu11 $flags -ffp-contract=off $warn "${quote[@]}" -fsyntax-only -include isa.h $include "$file" > "$work/log" 2>&1 || status=1
        say
    done
    {
        "$tools/matmul_tool" "$@" > "$work/$name-matmul.c"
        "$tools/attention_tool" "$@" > "$work/$name-attention.c"
        $cc -std=gnu11 $flags -ffp-contract=off $warn $include "$work/$name-matmul.c" $objects -lm -o "$work/$name-matmul" &
        $cc -std=gnu11 $flags -ffp-contract=off $warn $include "$work/$name-attention.c" -lm -o "$work/$name-attention"
        $cc -std=gnu11 $flags -ffp-contract=off $warn $include "${quote[@]}" "$src/tests/templates/math_check.c" -lm -o "$work/$name-math"
        wait
    } > "$work/log" 2>&1 || status=1
    say
    for test in matmul attention math; do "$work/$name-$test" || status=1; done
}

check portable "-O2" c
if grep -qw avx2 /proc/cpuinfo 2> /dev/null; then check avx2 "-O3 -mavx2 -mfma -mf16c" c c-avx2; fi
vnni="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c"
if grep -qw avx512_vnni /proc/cpuinfo 2> /dev/null; then check avx512 "-O3 $vnni" c c-avx2 c-avx512
elif grep -qw avx2 /proc/cpuinfo 2> /dev/null && [ -e /usr/include/simde/x86/avx512.h ]; then
    check emulated "-O1 -mavx2 -mfma -mf16c -DUSE_SIMDE" c c-avx2 c-avx512
    $cc -std=gnu11 -O2 $vnni -ffp-contract=off $warn $include -c "$work/emulated-matmul.c" -o "$work/vnni.o" > "$work/log" 2>&1 || status=1
    say
else echo "no AVX-512 here and no SIMDe to emulate it (apt install libsimde-dev): its templates were not run"
fi
exit $status
