#!/bin/bash
# Every fuzzer that was built, side by side, for GGCC_FUZZ_SECONDS each (3; with --full 60). Seeds: seeds/NAME/*, or
# what seeds_NAME below prints. A crash leaves its input in BUILD/tests/fuzz/fuzz_NAME.crash.
set -eu
seconds=${GGCC_FUZZ_SECONDS:-$([ "${GGCC_FULL:-0}" = 1 ] && echo 60 || echo 3)}
cd "$GGCC_BUILD/tests/fuzz"

seeds_gguf() {
    python3 "$GGCC_SOURCE/tests/gguf/make.py" seeds_gguf > /dev/null
    find seeds_gguf -name '*.gguf' -size -64k | sort
}
seeds_arch() { find "$GGCC_SOURCE/arch-specs" -name '*.arch' | sort; }
seeds_spec() { seeds_arch; }

failed=0
jobs=()
for fuzzer in fuzz_*; do
    [ -x "$fuzzer" ] && [ -f "$fuzzer" ] || continue
    name=${fuzzer#fuzz_}
    case $name in *_libfuzzer) continue ;; esac
    if [ -d "$GGCC_SOURCE/tests/fuzz/seeds/$name" ]; then mapfile -t seeds < <(find "$GGCC_SOURCE/tests/fuzz/seeds/$name" -type f | sort)
    elif declare -F "seeds_$name" > /dev/null; then mapfile -t seeds < <("seeds_$name")
    else
        echo "no seeds for $fuzzer: add tests/fuzz/seeds/$name/"
        exit 1
    fi
    rm -f "$fuzzer.crash"
    "./$fuzzer" "$seconds" "${seeds[@]}" > "$fuzzer.log" 2>&1 &
    jobs+=("$! $fuzzer")
done
for job in "${jobs[@]}"; do
    fuzzer=${job#* }
    if wait "${job%% *}"; then tail -n 1 "$fuzzer.log"
    else
        echo "FAILED: $fuzzer"
        tail -n 60 "$fuzzer.log"
        failed=1
    fi
done
exit $failed
