#!/bin/bash
# What README.md and docs/ say is so: links lead somewhere, files that are named are there, the manual has every option and no
# other, and the change that turns qwen2 into qwen3 really gives qwen3.
set -u
cd "$GGCC_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

# ---- links, and names of files ----
for page in README.md docs/*.md; do
    for link in $(sed -e '/^    /d' -e 's/`[^`]*`//g' "$page" | grep -o '](\([^)#]*\)' | cut -c 3- | grep -v :); do
        [ -e "$(dirname "$page")/$link" ] || fail "$page: link to $link"
    done
    for name in $(grep -o '`\(compiler\|runtime\|templates\|arch-specs\|tests\|tools\|docs\)/[a-z0-9_./-]*`' "$page" | tr -d '`' | sort -u); do
        [ -e "$name" ] || fail "$page: there is no $name"
    done
done

# ---- the manual's options, and those of ggcc and of a program ----
"$GGCC" build tests/data/tales.gguf -o "$work/program" --quiet || exit 1
options() { # of every command of $1
    for command in $("$1" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        "$1" "$command" --help | grep -o -- '--[a-z][a-z-]*' || fail "$1 $command --help lists no option"
    done
}
{ options "$GGCC"; options "$work/program"; echo --version; } | sort -u > "$work/there"
grep -o -- '--[a-z][a-z-]*' docs/manual.md | sort -u > "$work/told"
for option in $(comm -13 "$work/there" "$work/told"); do fail "docs/manual.md tells of $option, which is not there"; done
# Companions of an option that is told of, long forms of short ones
left='^--\(dry-.*\|mirostat-.*\|n-predict\|file\|prompt\|output\|help\)$'
for option in $(comm -23 "$work/there" "$work/told" | grep -v "$left"); do fail "docs/manual.md does not tell of $option"; done

# ---- adding an architecture: the change that README.md shows ----
grep -q '^```diff' README.md || fail "README.md shows no change"
sed -n '/^```diff/,/^```/p' README.md | grep '^[-+] ' > "$work/change"
python3 - "$work/change" arch-specs/qwen2.arch > "$work/my.arch" << 'END' || fail "the change of README.md does not apply to qwen2.arch"
import sys
flat = lambda s: " ".join(s.split()).replace(" :", ":")
lines = open(sys.argv[2]).read().replace("arch qwen2", "arch qwen3").splitlines()
change = [line.rstrip("\n") for line in open(sys.argv[1])]
i = 0
while i < len(change):
    old, new = [], []
    while i < len(change) and change[i][0] == "-": old.append(change[i][1:]); i += 1
    while i < len(change) and change[i][0] == "+": new.append(change[i][1:]); i += 1
    at = [k for k in range(len(lines)) if [flat(x) for x in lines[k : k + len(old)]] == [flat(x) for x in old]]
    if len(at) != 1: sys.exit(f"not found once: {old}")
    lines[at[0] : at[0] + len(old)] = new
print("\n".join(lines))
END
echo '5 9 100 3 7 250 1' > "$work/ids"
"$GGCC" synth qwen3 -o "$work/model.gguf" --quiet || fail "synth qwen3"
"$GGCC" logits "$work/model.gguf" --ids "$work/ids" -o "$work/theirs" --quiet || fail "logits by qwen3.arch"
"$GGCC" logits "$work/model.gguf" --ids "$work/ids" -o "$work/mine" --arch "$work/my.arch" --arch-dir arch-specs --quiet || fail "logits by the changed qwen2.arch"
cmp "$work/theirs" "$work/mine" || fail "the changed qwen2.arch computes something else than qwen3.arch"
sed 's/^arch qwen2/arch qwen3/' arch-specs/qwen2.arch > "$work/same.arch"
if "$GGCC" logits "$work/model.gguf" --ids "$work/ids" -o "$work/none" --arch "$work/same.arch" --arch-dir arch-specs --quiet 2> "$work/log"; then
    fail "qwen2.arch as it stands takes a qwen3 model"
fi

# ---- the scripts refuse what they do not know ----
tools/fetch-models.sh nonesuch 2> /dev/null
[ $? = 2 ] || fail "fetch-models.sh takes a model that is not there"
tests/run --nonesuch 2> /dev/null
[ $? = 2 ] || fail "tests/run takes an unknown option"
bash -n demo || fail "demo"
exit $failed
