#!/bin/sh
# bad_input.sh BYOC: user errors. Each case must end with its exit code and one
# sentence on stderr that contains the given words, and leave no file behind.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: bad_input.sh BYOC" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(dirname "$byoc")
digits=$(cd "$(dirname "$0")/../../examples/digits" && pwd)
BYOC_PLUGIN_PATH=$plugins
# no lines of progress on a slow machine
BYOC_PROGRESS=0
export BYOC_PLUGIN_PATH BYOC_PROGRESS
# the leak checker's own walk over thread-local memory crashes now and then
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}intercept_tls_get_addr=0
export ASAN_OPTIONS
dir=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
mkdir "$dir/work" && cd "$dir/work" || exit 2
passed=0 failed=0

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' "$dir/err"
}

# bad CODE WORDS [env NAME=VALUE] ARG...: byoc ARG..., with the variable if one is given,
# prints one line that contains WORDS, and ends with CODE
bad() {
    code=$1 words=$2
    shift 2
    find . | sort >"$dir/before"
    case $1 in
    env)
        setting=$2
        shift 2
        env "$setting" "$byoc" "$@" >"$dir/out" 2>"$dir/err"
        ;;
    *) "$byoc" "$@" >"$dir/out" 2>"$dir/err" ;;
    esac
    found=$?
    find . | sort >"$dir/after"
    [ $found -eq "$code" ] || { fail "found exit code $found, expected $code: $*"; return; }
    [ "$(wc -l <"$dir/err")" -eq 1 ] || { fail "expected one line on stderr: $*"; return; }
    grep -q '^byoc[a-z :]*: [^A-Z]*.*[^.]$' "$dir/err" ||
        { fail "expected 'byoc COMMAND: SENTENCE' without a full stop: $*"; return; }
    grep -qF -e "$words" "$dir/err" || { fail "expected '$words': $*"; return; }
    cmp -s "$dir/before" "$dir/after" || { fail "leaves files behind: $*"; return; }
    passed=$((passed + 1))
}

# good ARG...: byoc ARG... ends with 0
good() {
    if "$byoc" "$@" >"$dir/out" 2>"$dir/err"; then
        passed=$((passed + 1))
    else
        fail "exit $?: $*"
    fi
}

# byte NUMBER: print the byte with this value
byte() {
    printf "\\$(printf %03o "$1")"
}

# value TAG NAME TYPE: a field of a GraphProto with this tag that holds the
# ValueInfoProto of a tensor of 4 elements, 17 bytes in all
value() {
    byte "$1"
    printf '\017\012\001%s\022\012\012\010\010' "$2"
    byte "$3"
    printf '\022\004\012\002\010\004'
}

# model OPERATOR OPSET TYPE: prints the bytes of a ModelProto with y = OPERATOR(x),
# where x has 4 elements of TYPE (protobuf's "Encoding", onnx.proto)
model() {
    printf '\010\010\072'
    byte $((${#1} + 44))
    printf '\012'
    byte $((${#1} + 8))
    printf '\012\001x\022\001y\042'
    byte ${#1}
    printf %s "$1"
    value 90 x "$3"
    value 98 y "$3"
    printf '\102\002\020'
    byte "$2"
}

# patch FILE OFFSET BYTES: overwrites bytes of the file
patch() {
    printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# offset_of FILE TEXT: prints the offset of the text in the file
offset_of() {
    grep -obUaF -m1 -e "$2" "$1" | head -n 1 | cut -d: -f1
}

mkdir folder.onnx folder.npy closed
: >empty.onnx
: >empty.so
: >empty.npy
echo "not a model" >text.onnx
echo "not a library" >text.so
echo "def @main(" >text.ir
head -c 5000 "$digits/digits.onnx" >cut.onnx
x=$digits/batch0.input_0.npy
labels=$digits/batch0.labels.npy
"$byoc" compile "$digits/digits.onnx" -q -o good.so || exit 1
head -c 60000 good.so >cut.so
cp good.so changed.so
patch changed.so "$(offset_of good.so '"functions"')" '#'
cp good.so version.so
patch version.so "$(($(offset_of good.so "BYOCMDL") + 8))" '\0143'
cp "$plugins/libbyoc_runtime.so" other.so
model Relu 13 1 >relu.onnx
model NoSuchThing 13 1 >operator.onnx
model Relu 120 1 >opset.onnx
model Relu 13 8 >strings.onnx
printf '\010\007\100\001' >field.onnx # opset_import as a number
{ # a graph of a million empty nodes
    printf '\010\007\072\200\211\172'
    awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "\n%c", 0 }'
} >entries.onnx

# kinds of model files
bad 2 "truncated" check text.onnx
bad 2 "truncated" check cut.onnx
bad 2 "empty" check empty.onnx
bad 2 "a field of another type, expected a valid ModelProto" check field.onnx
bad 2 "far more entries than 2000006 bytes of a ModelProto" check entries.onnx
bad 2 "found a folder, expected a file" check folder.onnx
bad 2 "cannot open" check none.onnx
bad 2 "expected" check text.ir
bad 2 "cannot open" compile none.onnx -o out.so
bad 2 "cannot open" run none.onnx
bad 2 "operator NoSuchThing" check operator.onnx
bad 2 "operator NoSuchThing" compile operator.onnx -o out.so
bad 2 "opset 120" check opset.onnx
bad 2 "string" check strings.onnx

# pictures of the ledger
bad 2 "found the model as the output" check relu.onnx --dump-onnx relu.onnx
bad 2 "found the model as the output" check relu.onnx --html ./relu.onnx
bad 2 "found the model as the output" inspect good.so --dot good.so
bad 2 "found the model as the output" check relu.onnx --report ./relu.onnx
bad 2 "found the model as the output" run good.so --trace good.so
bad 2 "found the model as the output" opt relu.onnx --passes=FoldConstant --consts relu.onnx
bad 2 "found the model as the output" compile relu.onnx -q --report relu.onnx
bad 2 "which another option names as its output, too" \
    compile relu.onnx -q -o two.so --report two.so
good check relu.onnx
bad 2 "a picture shows one" check relu.onnx --advise --dot graph.dot
bad 2 "cannot create" check relu.onnx --html closed/none/page.html
bad 2 "cannot create" check relu.onnx --dot none/graph.dot
bad 2 "cannot create" check relu.onnx --dump-onnx none/model.onnx

# dims and shapes
for command in check "compile -o out.so" run; do
    set -- $command "$digits/digits.onnx"
    bad 2 "dim: found 'N', expected NAME=NUMBER" "$@" --dim N
    bad 2 "dim: found 'N=x'" "$@" --dim N=x
    bad 2 "dim: found 'N=-1'" "$@" --dim N=-1
    bad 2 "dim: found 'NONE=4'" "$@" --dim NONE=4
    bad 2 "found rank 1" "$@" --shape image=1
    bad 2 "found '1xax3x4', expected at most" "$@" --shape image=1xax3x4
    bad 2 "NAME is an input of the model: 'image'" "$@" --shape none=1x2
    bad 2 "NAME is an input of the model: 'image'" "$@" --const none=1
    bad 2 "weights have 1 input channels, data has 3" "$@" \
        --shape image=64x3x8x8
done

# a parent process that ignores SIGCHLD, which exec inherits
(
    trap '' CHLD
    CC=false exec "$byoc" compile --native "$digits/digits.onnx" -o no.so
) >"$dir/out" 2>"$dir/err"
if [ $? -eq 2 ] && grep -q '"false" failed' "$dir/err"; then
    passed=$((passed + 1))
else
    fail "compile with SIGCHLD ignored"
fi

bad 2 "\"true\" succeeded without writing its output, expected a C compiler" \
    env CC=true compile --native "$digits/digits.onnx" -o no.so
bad 2 "\"true\" succeeded without writing its output" \
    env CC=true compile "$digits/digits.onnx" -o no.so

# inputs
bad 2 "found the input 'none', expected one of" run good.so --input "none=$x"
bad 2 "found no '=', expected NAME=FILE" run good.so --input image
bad 2 "cannot open" run good.so --input image=none.npy
bad 2 "found a folder" run good.so --input image=folder.npy
bad 2 "not a .npy" run good.so --input image=empty.npy
bad 2 "found a file of another kind, expected .npy or .pb" run good.so --input image=good.so
bad 2 "found int64, expected float32" run good.so --input "image=$labels"
bad 2 "input 'image': found no input_0.npy or input_0.pb" run good.so --data folder.onnx
bad 2 "cannot open" run good.so --npz none.npz
bad 2 "a zip archive" run good.so --npz text.so

# outputs
bad 2 "cannot" compile "$digits/digits.onnx" -o none/out.so
bad 2 "cannot" compile "$digits/digits.onnx" -o folder.onnx
bad 2 "cannot create" compile "$digits/digits.onnx" -o out.so --report none/r
bad 2 "none/none: cannot create the folder: No such file" run good.so \
    --input "image=$x" -o none/none
bad 2 "good.so: cannot create the folder: File exists" run good.so \
    --input "image=$x" -o good.so
bad 2 "good.so: cannot create the folder: File exists" check relu.onnx \
    --dump-passes good.so
bad 2 "good.so: cannot create the folder: File exists" compile relu.onnx \
    -o out.so --keep-c good.so
bad 2 "cannot create" run good.so --input "image=$x" --trace none/trace
if [ "$(id -u)" != 0 ]; then
    chmod a-w closed
    bad 2 "cannot" compile "$digits/digits.onnx" -o closed/out.so
    bad 2 "cannot create" run good.so --input "image=$x" -o closed
fi

# artifacts
for command in run inspect; do
    bad 2 "not an artifact of byoc compile" $command text.so
    bad 2 "not an artifact of byoc compile" $command empty.so
    bad 2 "not an artifact of byoc compile" $command other.so
    bad 2 "truncated" $command cut.so
    bad 2 "damaged" $command changed.so
    bad 2 "cannot open" $command none.so
    bad 4 "artifact version 99" $command version.so
done

# ledgers
"$byoc" check "$digits/digits.onnx" --json >good.ledger || exit 1
head -c 3000 good.ledger >cut.ledger
head -c 700 good.ledger >short.ledger
tail -c 700 good.ledger >tail.ledger
sed 's/"version": 4/"version": 1/' good.ledger >old.ledger
sed 's/"version": 4/"version": 99/' good.ledger >new.ledger
sed 's/"inputs": \[0\]/"inputs": [77]/' good.ledger >index.ledger
sed 's/"tried": /"tired": /' good.ledger >key.ledger
sed 's/"flops": [0-9]*/"flops": -1/' good.ledger >flops.ledger
sed 's/"op": "[A-Za-z]*"/"op": 7/' good.ledger >op.ledger
echo '[1, 2]' >list.ledger
echo '{"format": "byoc-graph", "version": 1}' >graph.ledger
{ printf '{"format": "byoc-ledger", "version": 4, "model": '
  head -c 100000 /dev/zero | tr '\0' '['; } >deep.ledger
: >huge.ledger
truncate -s 3G huge.ledger
for command in "report show" "report show --json" "report diff good.ledger" \
    "report show --explain a"; do
    bad 2 "malformed JSON" $command cut.ledger
    bad 2 "malformed JSON" $command short.ledger
    bad 2 "malformed JSON" $command tail.ledger
    bad 2 "malformed JSON" $command text.onnx
    bad 2 "malformed JSON" $command relu.onnx
    bad 2 "malformed JSON" $command empty.onnx
    bad 4 "found ledger version 1, expected 4" $command old.ledger
    bad 4 "found ledger version 99, expected 4" $command new.ledger
    bad 2 "inputs[0]: found 77, expected an integer from 0" $command index.ledger
    bad 2 "tried: found nothing" $command key.ledger
    bad 2 "flops: found -1, expected a finite number" $command flops.ledger
    bad 2 "op: found a number, expected a string" $command op.ledger
    bad 2 "not a ledger" $command list.ledger
    bad 2 "not a ledger" $command graph.ledger
    bad 2 "too deeply nested" $command deep.ledger
    bad 2 "expected a ledger of at most" $command huge.ledger
    bad 2 "cannot open" $command none.ledger
    bad 2 "found a folder" $command folder.onnx
    bad 2 "not an artifact of byoc compile" $command other.so
    bad 2 "damaged" $command changed.so
done
bad 2 "the new ledger" report diff good.so text.onnx
bad 2 "the old ledger" report diff text.onnx good.so
bad 2 "the model has no node 'none'" report show good.so --explain none
# empty names of files: an empty name of a folder must not mean the root folder
bad 2 "--output: found '', expected the name of a file or folder" run "$digits/digits.onnx" -o ""
bad 2 "--data: found '', expected the name of a file or folder" run "$digits/digits.onnx" --data ""
# "-" is no file name in any command
for option in --output --report --keep-c --cost-table --dump-passes; do
    bad 2 "$option: found '-', expected the name of a file" \
        compile "$digits/digits.onnx" $option -
done
bad 2 "--output: found '-', expected" run "$digits/digits.onnx" -o -
bad 2 "--trace: found '-', expected" run "$digits/digits.onnx" --trace=-
bad 2 "--input: found 'x=-', expected" run "$digits/digits.onnx" -i x=-
bad 2 "--html: found '-', expected" check "$digits/digits.onnx" --html -
bad 2 "--output: found '-', expected" extract "$digits/digits.onnx" -o -
bad 2 "--output: found '-', expected" quantize "$digits/digits.onnx" --calibrate "$digits" -o -
bad 2 "--input: found 'image=', expected NAME=FILE" run "$digits/digits.onnx" \
    --input image=
bad 2 "--report: found ''" compile "$digits/digits.onnx" -o x.so --report=
bad 2 "--output: found ''" compile "$digits/digits.onnx" -o ""
bad 2 "found an empty argument, expected" run ""
# names with control characters are one line
bad 2 "unknown option '--op\x0ation'" run "--op
tion"
bad 2 "found no command 'ru\x0an'" "ru
n"
bad 2 "one argument too many, 'b\x0ac'" run a "b
c"
bad 2 "the model has no node ''" check "$digits/digits.onnx" --explain ""
bad 2 "found --explain with --json" check "$digits/digits.onnx" --json --explain a
bad 2 "found 'none', expected show|diff" report none good.so
bad 2 "found 'none', expected show|diff" report none
bad 2 "expected show LEDGER" report diff good.so
bad 2 "expected show LEDGER" report show good.so good.so
bad 2 "found --all, expected it with" \
    report diff good.so good.so --all
bad 2 "found --explain, expected it with" \
    report diff good.so good.so --explain a
bad 2 "found --tolerance, expected it with" \
    report show good.so --tolerance 1
bad 2 "found 1 of 2 arguments" report show
bad 2 "a number that is not negative" report diff good.so good.so --tolerance=-1

# options that would do nothing
bad 2 "compiled already; give --exclude" run good.so --exclude Conv
bad 2 "compiled already; give -O" bench good.so -O1
bad 2 "the model has no node and no operator" check relu.onnx --exclude Rely
bad 2 "found dims, shapes or values for a model in text form" check text.ir --dim N=1
bad 2 "--backend has no effect with --native" check relu.onnx --native --backend dnnl
bad 2 "found the model as the output" compile relu.onnx -o ./relu.onnx

# plug-ins and backends
bad 3 "found no backend 'none'" compile "$digits/digits.onnx" \
    --backend none -o out.so
bad 3 "not a shared library" compile "$digits/digits.onnx" \
    --plugin "only:$PWD/text.so" -o out.so
bad 3 "is not a plug-in" compile "$digits/digits.onnx" \
    --plugin "only:$PWD/other.so" -o out.so
bad 3 "found no plug-in, expected" compile "$digits/digits.onnx" \
    --plugin "only:$PWD/closed" -o out.so
bad 3 "$PWD/text.so: not a shared library" compile "$digits/digits.onnx" \
    --plugin text.so -o out.so
bad 2 "absolute path" env BYOC_PLUGIN_PATH=here compile \
    "$digits/digits.onnx" -o out.so
bad 3 "text.so" run good.so --plugin "only:$PWD/text.so" --require-backends

# the model's node is named, although a pass replaced its operator
cat >deconv.ir <<'END'
def @main(%x: Tensor[(1, 1, L), float32]) {
  nn.conv1d_transpose(%x, Tensor[(1, 1, 3), float32] {0.5, 1.0, 0.5}, padding=[2, 2]) #["blur": "ConvTranspose"]
}
END
"$byoc" compile deconv.ir -q -o deconv.so || exit 1
bad 3 "byoc run: dnnl_0: blur: nn.conv1d: a window of 3" \
    run deconv.so --dim L=1 --require-backends

# the command itself
bad 2 "found no command 'none'" none
bad 2 "unknown option '--none'" run good.so --none
bad 2 "did you mean '--threads'" run good.so --thread 1
bad 2 "expected MODEL" run
bad 2 "one argument too many" run good.so good.so
bad 2 "--clients: found 0, expected 1 or more" bench good.so --clients 0
bad 2 "--profile has no effect with --clients" bench good.so --profile --clients 2
bad 2 "expected a number that is not negative" bench good.so --rate -1
bad 2 "--rate: found 'inf', expected a number" bench good.so --rate inf
bad 2 "--rate: found 'nan', expected a number" bench good.so --rate nan
bad 2 "--rtol: found 'inf', expected a number" compare good.so --rtol inf
bad 2 "--atol: found 'nan', expected a number" compare good.so --atol nan
bad 2 "--rtol: found '1%', expected a number" compare good.so --rtol 1%
bad 2 "--seconds: found '1e300', expected a number of seconds from 0 to" \
    bench good.so --seconds 1e300
bad 2 "--isolate-seconds: found '1e300', expected a number of seconds from 0" \
    check relu.onnx --isolate --isolate-seconds 1e300
bad 2 "one argument too many" help run check
bad 2 "a file has no effect" opt --list-ops good.ir
bad 2 "--passes has no effect" opt --list-ops --passes FoldConstant
bad 2 "only with --list-ops; give both" opt --json
bad 2 "leave out --list-passes" opt --json --list-ops --list-passes
bad 2 "found 'perl', expected text|man|bash|zsh|fish" help --format perl
bad 2 "expected no command" help run --format bash
bad 2 "did you mean 'run'" help rin --format man
bad 2 "found no value" run good.so --seed
bad 2 "found 'x', expected a whole number" run good.so --seed x
bad 2 "expected a level of 0 to 3" check relu.onnx -O7
bad 2 "passes 'None': found no pass of this name, expected one of" \
    opt text.ir --passes=None
bad 2 "did you mean 'FoldConstant'?" opt text.ir --passes=FoldConstants
for option in disable-pass require-pass print-before print-after; do
    bad 2 "$option 'None': found no pass" check relu.onnx --$option None
    bad 2 "$option 'Inline': this pass does not run here, expected one of Canon" \
        check relu.onnx --$option Inline
done
bad 2 "pass-option 'Inline': this pass does not run here" \
    check relu.onnx --pass-option Inline.max_nodes=3
bad 2 "stop-after 'Inline': this pass does not run" \
    partition relu.onnx --stop-after Inline
bad 2 "print-after 'FuseOps': this pass does not run" \
    partition relu.onnx --stop-after PartitionGraph --print-after FuseOps
bad 2 "print-after 'Inline': this pass does not run here, expected one of FoldC" \
    opt text.ir --passes=FoldConstant --print-after Inline
bad 2 "no sequence of \`passes\` has this pass, expected a pass of a sequence in" \
    opt text.ir --passes=FoldConstant --disable-pass FoldConstant
bad 2 "require-pass 'Inline': no sequence of \`passes\` has this pass, expected one" \
    opt text.ir --passes=Canonicalize,Inline --require-pass Inline
good opt relu.onnx "--passes=[FoldConstant]" --disable-pass FoldConstant
good check relu.onnx --pass Inline --disable-pass Inline
good check relu.onnx --advise --disable-pass FuseOps
good check relu.onnx --advise --print-after FuseOps
good partition relu.onnx --print-after Canonicalize
good partition relu.onnx --stop-after FoldConstant --print-before Canonicalize
bad 2 "passes '': found no pass" opt text.ir --passes=FoldConstant,,FoldConstant
bad 2 "found a '[' without its" opt text.ir "--passes=[FoldConstant"
bad 2 "found a ']' without its" opt text.ir "--passes=FoldConstant]"
bad 2 "passes 'None': found no pass" check relu.onnx --pass "[FoldConstant,None]"
bad 2 "found no pass that has it" check relu.onnx --pass-option FoldConstant.none=1
bad 2 "expected PASS.NAME=VALUE" check relu.onnx --pass-option none
bad 2 "$PWD/none.so: cannot open it: No such file" check relu.onnx --pass-plugin none.so
bad 2 "No such file" check relu.onnx --pass-plugin /none/none.so
bad 2 "/none/none: cannot create the folder: No such file" check relu.onnx --dump-passes /none/none
bad 2 "BACKEND.NAME=PATTERN" check relu.onnx --pattern none
bad 2 "expected 1 to 4096" run good.so --threads 100000

# gates
bad 1 "gate failed" run "$digits/digits.onnx" --native --require-offload 1 \
    --input "image=$x"

"$byoc" report diff good.so good.ledger >"$dir/out" 2>"$dir/err" ||
    fail "the artifact's ledger differs from that of check"
"$byoc" check relu.onnx >"$dir/out" 2>"$dir/err" || fail "check relu.onnx"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
