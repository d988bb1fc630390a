#!/bin/sh
# no_effect.sh BYOC: options that have no effect are refused with a sentence:
# every model option on every command, with a model and with an artifact; options
# that need another one; sizes.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: no_effect.sh BYOC" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
digits=$(cd "$(dirname "$0")/../../examples/digits" && pwd)
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}intercept_tls_get_addr=0
export ASAN_OPTIONS
. "$(dirname "$0")/../folder.sh"
passed=0 failed=0

cat >model.ir <<'IR'
def @main(%x: Tensor[(batch, 8), float32]) -> Tensor[(batch, 8), float32] {
  nn.relu(%x)
}
IR
"$byoc" compile model.ir -q --native -o varies.so &&
    "$byoc" compile "$digits/digits.onnx" -q --native -o fixed.so || exit 1
x=$digits/batch0.input_0.npy

# refused WORDS ARG...: ends with 2 and one line that has WORDS
refused() {
    words=$1
    shift
    "$byoc" "$@" >out 2>err
    code=$?
    if [ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -e "$words" err
    then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: exit $code: $*: $(cat err)"
    fi
}

# accepted ARG...: ends with 0
accepted() {
    if "$byoc" "$@" >out 2>err; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*: $(cat err)"
    fi
}

# value OPTION: prints a valid value for the option
value() {
    case $1 in
    require-offload*) echo 0 ;;
    min-region-* | max-regions | measure-seconds | isolate-*) echo 1 ;;
    dim | warm) echo batch=2 ;;
    shape) echo x=2x8 ;;
    const) echo x=1 ;;
    pass-option) echo FoldConstant.none=1 ;;
    partition-by) echo greedy ;;
    codegen) echo json ;;
    weights) echo int8 ;;
    precision) echo bf16 ;;
    *) echo x ;;
    esac
}

# options of compiling have no effect on an artifact, and options of loading on a
# command that only compiles
compile_options=$("$byoc" run --help | sed -n 's/^   *--\([a-z-]*\) .*/\1/p' |
    grep -vx -e native -e plugin -e threads -e dim -e require-backends \
        -e verify -e verbose -e npz -e data -e seed -e trace -e output -e input)
[ "$(echo "$compile_options" | wc -l)" -ge 30 ] || {
    echo "FAILED: found fewer than 30 options in run --help: $compile_options"
    failed=1
}
for command in run bench compare extract; do
    out= # extract needs a folder to make
    [ $command != extract ] || out="-o no"
    for option in $compile_options; do
        case $option in
        forbid-ref | keep-nan | exact | time-passes | isolate)
            refused "an artifact is compiled already; give --$option" \
                $command varies.so --$option $out
            continue ;;
        measure-seconds | cost-table | isolate-*) continue ;; # see below
        esac
        refused "already; give --$option" $command varies.so $out "--$option" \
            "$(value "$option")"
    done
    refused "give -O" $command varies.so -O1 $out
done
for command in compile partition opt; do
    for option in require-backends verbose; do
        refused "--$option has no effect" $command model.ir --$option
    done
done

# options that need or exclude another option
for pair in isolate-seconds=1:isolate isolate-mib=1:isolate \
    measure-seconds=1:partition-by cost-table=x:partition-by; do
    refused "has no effect without --${pair#*:}" check model.ir "--${pair%:*}"
done
for option in backend=dnnl exclude=x only=x forbid-ref keep-nan min-region-nodes=1 \
    min-region-flops=1 max-regions=1 partition-by=greedy codegen=json isolate; do
    refused "has no effect with --native" check model.ir --native "--$option"
done
accepted partition model.ir --native --pattern 'a.relu=nn.relu(%a)' --max-regions 1
refused "--require-backends has no effect with --native" run varies.so --native \
    --require-backends
refused "--all has no effect with --json" check model.ir --all --json
refused "--all has no effect with --json" inspect varies.so --all --json
refused "--all has no effect with --quiet" compile model.ir -q --all -o no.so
refused "--all has no effect with --advise" check model.ir --advise --all
refused "--report has no effect with --advise" check model.ir --advise --report x
refused "--json has no effect with --lint" backends --lint --json
refused "--max-tests has no effect without --reduce" extract model.ir -o no \
    --max-tests 1
refused "--list-passes runs no pass" opt --list-passes model.ir
refused "--list-passes runs no pass" opt --list-passes --passes=FoldConstant
refused "--desired has no effect" opt model.ir --desired nn.conv2d=NHWC

# sizes
accepted run varies.so --dim batch=2
accepted bench varies.so --dim batch=2 --iterations 1 --seconds 0
accepted compare varies.so --dim batch=2
accepted run varies.so --dim batch=0
for command in run bench compare; do
    refused "dim 'bach': no input has it; did you mean 'batch'?" $command \
        varies.so --dim bach=2
    refused "expected NAME=NUMBER" $command varies.so --dim batch
    refused "expected NAME=NUMBER" $command varies.so --dim batch=
    refused "expected NAME=NUMBER" $command varies.so --dim batch=-1
    refused "expected NAME=NUMBER" $command varies.so --dim batch=2x
    refused "expected NAME=NUMBER" $command varies.so --dim =2
    refused "given twice" $command varies.so --dim batch=1 --dim batch=2
    refused "sizes of all inputs are fixed" $command fixed.so --dim batch=2
    refused "found dims, shapes or values for a model in text form" $command model.ir --dim batch=2
done
refused "dim: found 'batch=2'" check "$digits/digits.onnx" --dim batch=2
refused "expected NAME=SIZE" compile model.ir --warm batch=-1 -o no.so
refused "expected NAME=SIZE" compile model.ir --warm batch -o no.so
refused "warm: found 'bach', expected a symbolic dim of an input: 'batch'" \
    compile model.ir --warm bach=1 -o no.so
refused "a dim without a name, expected" compile model.ir --warm =1 -o no.so
echo 'def @main(%x: Tensor[("B,S", 2), float32]) { nn.relu(%x) }' >comma.ir
accepted compile comma.ir --warm 'B,S=1,2,3' -o comma.so
refused "a size that is not a number" compile comma.ir --warm 'B,S=x' -o no.so
refused "seed" run fixed.so --input "image=$x" --seed 3
accepted run fixed.so --input "image=$x"

[ ! -e no.so ] && [ ! -e no ] || { echo "FAILED: files are left"; failed=1; }
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
