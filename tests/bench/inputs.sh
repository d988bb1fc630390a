#!/bin/sh
# inputs.sh BUILD: runs the benchmarks of BUILD that take a model on models with many
# inputs, with many symbolic dims, with an input that the benchmarks cannot make, and
# with a result that is smaller than the weights.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1/shapes" ] || { echo "usage: inputs.sh BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)
. "$(dirname "$0")/../folder.sh"
failed=0

# model N TYPE OUTPUT: a function with N inputs of TYPE, in which @ is the input's
# number
model() {
    awk -v n="$1" -v type="$2" -v output="$3" 'BEGIN {
        for (i = 0; i < n; i++) {
            this = type
            gsub(/@/, i, this)
            list = list (i ? ", " : "") "%x" i ": " this
        }
        print "def @main(" list ") {\n  " output "\n}"
    }' >model.ir
}

# expect CODE WORDS COMMAND...: COMMAND ends with this exit code and prints the words
expect() {
    wanted=$1 words=$2
    shift 2
    "$@" >out 2>&1
    code=$?
    [ $code = "$wanted" ] && grep -qF -- "$words" out && return
    echo "$*: found exit code $code, expected $wanted and '$words' in the output:"
    head -20 out
    failed=1
}

# shapes CODE WORDS: compile the model natively; `shapes` ends with CODE and prints WORDS
shapes() {
    "$build/byoc" compile model.ir --native -q -o model.so || failed=1
    expect "$1" "$2" "$build/shapes" model.so runs=20
}

model 100 'Tensor[(4), float32]' 'add(%x0, %x99)'
expect 0 model.ir "$build/fusion" --threads 1 model.ir
shapes 2 'found 100 inputs, expected at most 64'
model 60 'Tensor[(a@, b@, c@), float32]' 'nn.relu(%x7)'
shapes 0 'hit rate'
model 2 'Tensor[(n), string]' 'equal(%x0, %x1)'
shapes 2 'input x0: found strings, expected numbers'
# byoc's kernels, whose packed weights are larger than the result that bound saves
if [ -x "$build/bound" ]; then
    cat >model.ir <<'EOF'
def @main(%x: Tensor[(1, 3, 56, 56), float32]) {
  %0 = nn.relu(nn.conv2d(%x, random[(16, 3, 3, 3), float32, seed=1]));
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  nn.dense(reshape(%1, [1, 11664]), random[(10, 11664), float32, seed=2])
}
EOF
    expect 0 'model / chain' "$build/bound" --threads 1 --seconds 0.01 model.ir
fi
if [ -x "$build/provider" ]; then
    expect 2 usage: "$build/provider" --round 3 a.so b.so model.onnx
    expect 2 usage: "$build/provider" --rounds 3 --verbose a.so b.so model.onnx
fi
exit $failed
