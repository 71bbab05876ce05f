#!/bin/bash
# The runtime without a compiler: unit tests, then a whole program around a fake model (fake_model.c), under the
# sanitizers. Usage: tests/runtime/test.sh [DIR]; CC names the compiler. Exit status 0: all passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
runtime=$here/../../runtime
cc=${CC:-cc}
dir=${1:-}
if [ -z "$dir" ]; then
    dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir" && cd "$dir" || exit 1
failed=0 passed=0
fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}
pass() { passed=$((passed + 1)); }

# ---- build ----
flags="-std=c11 -g -O1 -Wall -Wextra -Wshadow -Werror -I$runtime -I."
san="-fsanitize=address,undefined -fno-sanitize-recover=all"
sources=$(ls "$runtime"/*.c | grep -v -e /tok -e /gpu_ -e /chat -e /value -e /json)
echo 'const SelfTest selftest = {0};' > selftest_values.h
mkdir -p objects && (cd objects && $cc $flags $san -c $sources) || exit 1
build() { # NAME HASH TOKENIZER_BYTES flags...
    local name=$1 hash=$2 tokenizer=$3
    shift 3
    $cc $flags $san "$@" -DHASH=$hash objects/*.o "$here/fake_model.c" "$here/fake_tokenizer.c" -o "$name.code" \
        -lm -lpthread || exit 1
    ./append "$name.code" "$name" $hash 5000 $tokenizer && chmod +x "$name"
}
$cc $flags "$here/append.c" -o append || exit 1
build text 0x1234 100
build plain 0x1234 0
build other 0x9999 0 -DCTX=600
rm -f data.bin no.f32* ./*.part
build lacks 0x1234 0 '-DNEEDS="fpu sse9 sse2 frob"'
build nan 0x1234 100 -DBROKEN_NAN
build beside 0x1234 0 '-DWEIGHTS_FILE="data.bin"'
for t in state sample; do
    $cc $flags $san "$here/${t}_test.c" objects/{$t*,memory,outfile,error}.o -o ${t}_test -lm || exit 1
done
$cc $flags -fsanitize=thread "$here/team_test.c" "$runtime/team.c" "$runtime/error.c" -o team_test -lpthread || exit 1

# ---- units ----
./state_test state.bin && pass || fail "state_test"
./sample_test && pass || fail "sample_test"
# the thread sanitizer cannot work with every layout of memory
timeout 100 ./team_test 60 || timeout 100 setarch "$(uname -m)" -R ./team_test 60 && pass || fail "team_test"

# ---- helpers for commands ----
# ok NAME COMMAND...: exit 0, nothing on stderr but notes
ok() {
    local name=$1
    shift
    "$@" > out 2> err
    local rc=$?
    if [ $rc -ne 0 ] || grep -qv '^note: ' err; then
        fail "$name: exit $rc: $(head -3 err)"
    else
        pass
    fi
}
# bad NAME STATUS MESSAGE COMMAND...: that exit status, and one line "error: MESSAGE" (a regular expression), no output
bad() {
    local name=$1 status=$2 message=$3
    shift 3
    "$@" > out 2> err
    local rc=$?
    if [ $rc -ne "$status" ] || ! grep -qx "error: $message" err ||
        [ "$(grep -cv '^note: ' err)" != 1 ] || [ -s out ]; then
        fail "$name: exit $rc instead of $status, or another message: $(head -3 err)"
    else
        pass
    fi
}
same() { cmp -s "$2" "$3" && pass || fail "$1: $2 and $3 differ"; }

# ---- evaluation: the same bits however it is cut ----
awk 'BEGIN { for (i = 0; i < 300; i++) print (i * 7919 + 3) % 256 }' > ids
ok "logits" ./text logits --ids ids -o all.f32 --threads 1
[ "$(stat -c %s all.f32)" = $((300 * 260 * 4)) ] && pass || fail "logits: size"
for t in 1 2 3 5; do
    for b in 1 2 7 36 37; do
        ok "logits --threads $t --batch $b" ./text logits --ids ids -o some.f32 --threads $t --batch $b
        same "threads $t batch $b" all.f32 some.f32
    done
done
row() { dd if=all.f32 bs=1040 skip="$1" count=1 2> dd.err; }
{ row 5; row 5; row 299; row 0; row 130; } > expected.f32
ok "logits --at" ./text logits --ids ids --at 5,5,299,0,130 -o some.f32
same "--at, in its order, with repeats" expected.f32 some.f32
{ row 0; row 5; row 5; row 299; } > expected.f32
./text logits --ids ids --at 0,5,5,299 -o /dev/stdout | cat > piped.f32
same "rows to a pipe" expected.f32 piped.f32
bad "logits: a pipe has no going back" 1 "'/dev/full' is no file: rows can only be written there in order of position" \
    ./text logits --ids ids --at 5,0 -o /dev/full
bad "logits: full device" 1 "cannot write '/dev/full': No space left on device" ./text logits --ids ids -o /dev/full
ln -sf target.f32 link.f32; : > target.f32
ok "logits through a link" ./text logits --ids ids --at 0 -o link.f32
[ -L link.f32 ] && [ "$(stat -c %s target.f32)" = 1040 ] && pass || fail "a link was replaced"
bad "logits: position" 1 "--at: position 300 is out of range, the text has 300 tokens (0 to 299)" \
    ./text logits --ids ids --at 5,300 -o no.f32
bad "logits: junk position" 2 "--at '5,x': positions separated by commas.*" ./text logits --ids ids --at 5,x -o no.f32
bad "logits: -1" 2 "--at '-1': .*" ./text logits --ids ids --at -1 -o no.f32
bad "logits: empty list" 2 "--at '5,': .*" ./text logits --ids ids --at 5, -o no.f32
bad "logits: no -o" 2 "logits needs -o OUT.*" ./text logits --ids ids
bad "logits: no input" 2 "no input.*" ./text logits -o no.f32
bad "logits: no folder" 1 "cannot write 'no/no.f32': No such file or directory" ./text logits --ids ids -o no/no.f32
bad "logits: a folder" 1 "cannot write '.': it is a folder" ./text logits --ids ids -o .
: > empty
bad "logits: empty" 1 "the input is empty.*" ./text logits --ids empty -o no.f32
echo "1 2 260" > over; echo "1 2x" > junk; echo "1 -2" > minus; awk 'BEGIN { for (i = 0; i < 701; i++) print 1 }' > long
echo 99999999999999999999 > huge
bad "ids: range" 1 "'over' line 1: id 260 is out of range, the vocabulary has 260" ./text logits --ids over -o no.f32
bad "ids: junk" 1 "'junk' line 1: .*found byte 0x78" ./text logits --ids junk -o no.f32
bad "ids: minus" 1 "'minus' line 1: .*found byte 0x2d" ./text logits --ids minus -o no.f32
bad "ids: huge" 1 "'huge' line 1: id 99999999999999999999 is out of range, the vocabulary has 260" ./text logits --ids huge -o no.f32
bad "too long" 1 "701 tokens are more than the context of 700; build the program with a greater --ctx" \
    ./text logits --ids long -o no.f32
bad "too long for --ctx" 1 "300 tokens are more than the context of 299; raise --ctx" \
    ./text logits --ids ids --ctx 299 -o no.f32
bad "--ctx over the built one" 2 "--ctx 701 is more than the program was built for: 700; build it with --ctx 701" \
    ./text logits --ids ids --ctx 701 -o no.f32
bad "--batch" 2 "--batch 38 is out of range: the program was built for 1 to 37" \
    ./text logits --ids ids --batch 38 -o no.f32
ls no.f32* *.part > left 2> ls.err && fail "files left behind: $(cat left)" || pass

# ---- run ----
ok "run" ./text run --ids ids -n 100 --threads 2
mv out whole
[ "$(wc -c < whole)" -gt 50 ] && pass || fail "run made $(wc -c < whole) bytes"
for b in 1 5 37; do
    ok "run --batch $b" ./text run --ids ids -n 100 --threads 3 --batch $b
    same "run --batch $b" whole out
done
for options in "" "--temp 1.3 --seed 9 --top-k 0 --top-p 0.9 --repeat-penalty 1.1 --repeat-last-n -1"; do
    ok "run ids" ./plain run --ids ids -n 90 $options
    cp out whole
    ok "run first half" ./plain run --ids ids -n 40 --save half.state $options
    cp out joined
    ok "run second half" ./plain run --load half.state -n 50 --save end.state --threads 2 $options
    cat out >> joined
    same "save and load ($options)" whole joined
    ok "run, prompt only" ./plain run --ids ids -n 0 --save prompt.state
    ok "run from the prompt's state" ./plain run --load prompt.state -n 90 --batch 3 $options
    same "from the prompt's state" whole out
    ok "run with the first half as ids" \
        bash -c "cat ids <(head -40 whole) > ids2; ./plain run --ids ids2 -n 50 $options"
    same "state and prompt agree" <(tail -50 whole) out
done
ok "seed" ./plain run --ids ids -n 30 --temp 1 --seed 1 --top-k 0 --top-p 1 --min-p 0
mv out seed1
ok "seed" ./plain run --ids ids -n 30 --temp 1 --seed 2 --top-k 0 --top-p 1 --min-p 0
cmp -s seed1 out && fail "two seeds, one text" || pass
for o in "--mirostat 1" "--mirostat 2" "--dry-multiplier 0.8 --dry-sequence-breaker none" "--typical 0.8" \
    "--xtc-probability 0.5" \
    "--top-nsigma 1" "--dynatemp-range 0.5" "--logit-bias 5-inf --logit-bias 6+1.5" \
    "--samplers top_k;temperature;penalties"; do
    ok "run $o" ./text run -p hello -n 20 --temp 0.9 $o
done
ok "logit bias" ./plain run --ids ids -n 5 --logit-bias 77+1000
same "logit bias" out <(printf '77\n77\n77\n77\n77\n')
ok "a stop text ends it" ./text run -p hello --logit-bias 126+1000
same "a stop text is not printed" out empty
ok "half a stop text" ./text run -p hello --logit-bias 126+1000 -n 1
same "half a stop text is text" out <(printf '~')
ok "end of text" ./text run -p hello --logit-bias 257+1000
same "end of text" out empty
ok "--ignore-eos" ./text run -p hello --logit-bias 257+1000 --ignore-eos -n 3 --save eos.state
same "a control token has no text" out empty
ok "half a character at the end" ./text run -p hello --logit-bias 195+1000 -n 3
same "half a character at the end" out <(printf '\303\303\303')
ok "a token never to be sampled" ./text run -p hello --logit-bias 258+1000 -n 3
[ "$(wc -c < out)" -gt 0 ] && pass || fail "a suppressed token was sampled"
bad "bias junk" 2 "--logit-bias '77': .*" ./plain run --ids ids --logit-bias 77
bad "bias range" 2 "--logit-bias '260+1': id 260 is out of range, the vocabulary has 260" \
    ./plain run --ids ids --logit-bias 260+1
bad "samplers" 2 "--samplers 'top_k;frob': 'frob' is no sampler; .*" ./plain run --ids ids --samplers 'top_k;frob'
./plain run --ids ids -n 2 --logprobs 3 > out 2> err
grep -cxE '\{"id": [0-9]+, "logprob": -[0-9.]+, "top": \[\[[0-9]+, -[0-9.]+\](, \[[0-9]+, -[0-9.]+\]){2}\]\}' err | grep -qx 2 &&
    pass || fail "--logprobs: $(cat err)"
ok "context full" ./plain run --ids ids --ctx 320
[ "$(wc -l < out)" = 20 ] && grep -q "note: stopped after 20 tokens: the context of 320 is full" err &&
    pass || fail "context full: $(cat err)"
ok "text prompt" ./text run -p hello -n 3
ok "stdin" bash -c 'printf hello | ./text run -f - -n 3'
ok "empty text has its BOS" ./text run -p "" -n 3
bad "empty prompt" 1 "the prompt is empty.*" ./text run -p "" --no-special
bad "no tokenizer" 1 "this model has no tokenizer: give token ids with --ids FILE" ./plain run -p x
bad "two inputs" 2 "-p, -f and --ids exclude each other: give one" ./text run -p x -f ids
bad "no input" 2 "no input: give -p TEXT, -f FILE or --ids FILE" ./text run
bad "no file" 1 "cannot read 'nofile': No such file or directory" ./text run -f nofile
bad "NaN" 1 "the logits at position 5 are not numbers.*" ./nan run -p hello
for o in "temp -1" "temp nan" "temp 1x" "top-p 1.1" "top-p -0.1" "min-p 2" "top-k -1" "top-k 1.5" "typical 1.01" \
    "repeat-penalty 0" \
    "repeat-last-n -2" "presence-penalty inf" "n-predict 99999999999" "threads 0" "threads 1025" "seed -1" \
    "seed 18446744073709551616" \
    "xtc-probability 2" "top-nsigma -1" "dynatemp-range -1" "ctx 0" "batch 0"; do
    bad "--$o" 2 "--${o% *} .*" ./text run -p x --${o% *} "${o#* }"
done
bad "unknown option" 2 "run has no option '--frob'; see run --help" ./text run --frob
bad "option of another command" 2 "tokenize has no option '--temp'; see tokenize --help" ./text tokenize --temp 1
bad "argument" 2 "run has no argument 'x'; see run --help" ./text run x
bad "value missing" 2 "-p needs a value: TEXT" ./text run -p
bad "flag with a value" 2 "--json takes no value, found '1'" ./text run --json=1
bad "unknown command" 2 "'frob' is no command; see --help" ./text frob
bad "no command" 2 "no command; see --help" ./text

# ---- states that do not fit ----
bad "state of another model" 1 "'half.state' was saved by another program: its model is 0*1234, this one 0*9999" \
    ./other run --load half.state
bad "no state" 1 "'ids' is not a saved state: it does not begin with \"ggccstat\"" ./plain run --load ids
head -c 3000 half.state > cut.state
bad "cut state" 1 "'cut.state' is cut off or has been added to: 3000 bytes, .* were saved" ./plain run --load cut.state
bad "long state" 1 "'end.state' holds 390 tokens and the context 200; raise --ctx" \
    ./plain run --load end.state --ctx 200
bad "state in no folder" 1 "cannot write 'no/x.state': .*" \
    bash -c './plain run --ids ids -n 1 --save no/x.state > out.2'

# ---- text ----
ok "tokenize" ./text tokenize -p 'hé'
same "tokenize" out <(printf '256\n104\n195\n169\n')
ok "tokenize --no-special" bash -c 'printf "a\n" | ./text tokenize --no-special -f - --json'
same "tokenize --json" out <(printf '[97, 10]\n')
printf '104 195\n169 255\t0' > bytes
ok "detokenize" ./text detokenize -f bytes
same "detokenize" out <(printf 'h\303\251\377\0')
bad "detokenize range" 1 "'over' line 1: id 260 .*" ./text detokenize -f over
bad "detokenize without a tokenizer" 1 "this model has no tokenizer.*" ./plain detokenize -f bytes
bad "tokenize without a tokenizer" 1 "this model has no tokenizer.*" ./plain tokenize -p x

# ---- perplexity, bench, info, help ----
ok "perplexity" ./text perplexity --ids ids --threads 1
cp out ppl
grep -qxE '\{"tokens": 300, "nll": [0-9.]+, "ppl": [0-9.]+\}' ppl && pass || fail "perplexity: $(cat ppl)"
ok "perplexity --batch 3" ./text perplexity --ids ids --threads 3 --batch 3
same "perplexity" ppl out
# the definition, by hand, from the rows that logits wrote
od -An -v -tf4 -w1040 all.f32 | awk '
    NR == FNR { id[n++] = $1; next }
    FNR < n { m = $1; for (i = 1; i <= NF; i++) if ($i > m) m = $i; s = 0; for (i = 1; i <= NF; i++) s += exp($i - m)
              sum += log(s) + m - $(id[FNR] + 1) }
    END { printf "%.5f\n", sum / (n - 1) }' ids - > byhand
same "perplexity by definition" byhand <(sed 's/.*"nll": \([0-9.]*\),.*/\1/' ppl | awk '{ printf "%.5f\n", $1 }')
echo 5 > one
bad "perplexity of one token" 1 "the text has 1 token: at least 2 .*" ./text perplexity --ids one
ok "bench" ./text bench --json --pp 20 --tg 4 --reps 3 --depth 50
for key in model arch threads pp tg depth reps pp_tokens_per_s tg_tokens_per_s pp_stddev tg_stddev \
    load_ms first_token_ms kv_bytes \
    weight_bytes peak_rss_bytes; do
    grep -q "\"$key\": [^,}]" out && pass || fail "bench: no $key"
done
bad "bench too long" 1 "--pp 701 and --depth 0 are more than the context of 700" ./text bench --pp 701
bad "bench depth" 1 "--depth 700 leaves no room in the context of 700" ./text bench --depth 700
ok "info" ./plain info
ok "info --json" ./plain info --json
for c in run tokenize detokenize logits perplexity bench selftest info; do
    ok "$c --help" ./text $c --help
    grep -q "^usage: PROGRAM $c" out && pass || fail "$c --help"
done
ok "--version" ./text --version
ok "--help" ./text --help

# ---- the program's file, processor, memory, output ----
cp text text.cut && truncate -s -100 text.cut
bad "cut program" 1 "'/proc/self/exe' is cut off or was never finished.*" ./text.cut run -p x
./append plain.code wrong 0x77 5000 0 && chmod +x wrong
bad "weights of another model" 1 "'/proc/self/exe' belongs to model 0*77, this program is of model 0*1234; .*" \
    ./wrong run --ids ids
./append plain.code short 0x1234 4999 0 && chmod +x short
bad "weights too short" 1 "'/proc/self/exe' has 4999 bytes of weights, expected 5000; build it again" \
    ./short run --ids ids
bad "no weights beside" 1 "cannot open the weights in '.*/data.bin': No such file or directory; .*" \
    ./beside run --ids ids
./append empty data.bin 0x1234 5000 0
ok "weights beside" ./beside logits --ids ids --at 0 -o some.f32
./append plain.code blob 0x1234 5000 99 && chmod +x blob
bad "damaged tokenizer" 1 "the program's tokenizer is damaged.*" ./blob tokenize -p x
bad "processor" 1 "this processor lacks sse9 frob, which the program was compiled for; .*" ./lacks run --ids ids
ok "info on any processor" ./lacks info
if [ -w /dev/full ]; then
    ./plain run --ids ids -n 5 > /dev/full 2> err
    [ $? = 1 ] && grep -qx "error: cannot write to standard output: No space left on device" err &&
        pass || fail "/dev/full: $(cat err)"
fi
{ ./plain run --ids ids -n 300 --batch 1; echo $? > rc; } 2> err | true
[ "$(cat rc)" = 1 ] && grep -qx "error: whoever read the output has closed it" err &&
    pass || fail "broken pipe: $(cat rc err)"
./plain bench --reps 10000 > out 2> err &
sleep 0.3 && kill -INT $! 2> kill.err
wait $!
[ $? = 1 ] && grep -q "^error: interrupted after" err && pass || fail "Ctrl-C: $(cat err)"

# ---- selftest ----
bad "selftest, nothing stored" 1 "no results were stored.*" ./plain selftest
values() { # what the compiler would store: positions 0 and 299, eight logits each; $1 is added to one of them
    echo "static const int32_t ids[] = {"; paste -sd, ids; echo "};"
    echo "static const SelfCheck checks[] = {"
    for pos in 0 299; do
        row $pos | od -An -v -tf4 -w4 | awk -v pos=$pos -v add="$1" '
            { x[NR - 1] = $1; if (NR == 1 || $1 > x[top]) top = NR - 1 }
            END { printf "{%d, %d, {0, 1, 2, 3, 4, 5, 6, 259}, {", pos, top
                  for (i = 0; i < 8; i++) {
                      k = i < 7 ? i : 259
                      printf "%.7gf, ", x[k] + (i == 6 && pos == 299 ? add : 0)
                  }
                  print "}}," }'
    done
    echo "};"
    echo "const SelfTest selftest = {300, ids, 2, checks, 1e-5f};"
}
values 0 | sed 's/\([ {]-\{0,1\}[0-9]*\)f,/\1.0f,/g' > selftest_values.h
build good 0x1234 0
ok "selftest" ./good selftest --threads 2
values 0.001 | sed 's/\([ {]-\{0,1\}[0-9]*\)f,/\1.0f,/g' > selftest_values.h
build wrong 0x1234 0
bad "selftest, one logit off" 3 "selftest: logit 6 at position 299 is .*" ./wrong selftest

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 150 ]
