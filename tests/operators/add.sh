#!/bin/sh
# add.sh SOURCE: tests HACKING.md's list of files for a new elementwise operator:
# adds one with an attribute to a copy of the tree, builds it, and runs the
# operator by its kernel, in fused C, folded, and from its own printed text. An
# operator without a formula must not compile.
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -eq 1 ] && [ -f "$1/CMakeLists.txt" ] ||
    { echo "usage: add.sh SOURCE" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}

mkdir "$dir/tree"
(cd "$1" && tar -cf - --exclude=./build --exclude=./.git --exclude=./tests .) |
    tar -xf - -C "$dir/tree"
cd "$dir/tree"

# the files that HACKING.md lists
sed -n '/^\*\*an elementwise operator/,/^\*\*another operator/p' HACKING.md |
    sed -n '/^[0-9]\./p' >"$dir/listed"
[ -s "$dir/listed" ] || fail "HACKING.md has no list for elementwise operators"

# add FILE PATTERN LINE: insert LINE after the first line of FILE that matches
add() {
    grep -qF "\`$1\`" "$dir/listed" || fail "HACKING.md does not list $1"
    awk -v pattern="$2" -v line="$3" '{ print }
        !done && $0 ~ pattern { print line; done = 1 }
        END { exit !done }' "$1" >"$dir/new" || fail "$1 has no $2"
    cat "$dir/new" >"$1"
}
# Optimised code would take minutes to build. No other build compiles these files, but
# the next run of this test does, in another folder.
export CCACHE_BASEDIR="$dir" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
cmake -S . -B build -DBYOC_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG= >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
# build TARGET
build() {
    cmake --build build -j1 --target "$1" >"$dir/log" 2>&1
}

# x - p0 tanh(x)
add core/ops/ops.def '^ATTRIBUTES[(]shrink' \
    'ATTRIBUTES(test_shrink, ATTR("by", FLOAT, "1.0"))'
add core/ops/ops.def '^OP[(]NN_SHRINK' 'OP(TEST_SHRINK, "test.shrink", 1, 1, 1,'"\
 ELEMWISE, ELEMENT, AGNOSTIC, FLOATS, 0, 0, ULPS(32, 8), test_shrink, same,"\
' "x - by tanh(x)")'
# codegen_c has the check; other objects would be built again after the next change
if build codegen_c; then
    fail "an operator without a formula: found a build that succeeds, expected an error"
fi
grep -q HAS_TEST_SHRINK "$dir/log" ||
    fail "expected an error about HAS_TEST_SHRINK, found: $(cat "$dir/log")"
add core/ops/unary.def '^UNARY[(]NN_SHRINK' \
    'UNARY_FLOAT32(TEST_SHRINK, x - p0 * tanh(x), mad(-p0, tanh_of(x), x))'
build byoc_cli || fail "$(grep -A5 error "$dir/log")"

byoc=$PWD/build/byoc
cd "$dir"
# model NAME EXPRESSION: write NAME.ir, which computes EXPRESSION of %0 between
# operators that it fuses with
model() {
    cat >"$1.ir" <<END
def @main(%x: Tensor[(7, 33), $type]) -> Tensor[(7, 33), $type] {
  %0 = add(%x, %x);
  %1 = $2;
  multiply(%1, %x)
}
END
}
# result ARG...: the line that `byoc run` prints about the output
result() {
    "$byoc" run "$@" --native >out 2>err || fail "run $*: $(cat err)"
    sed -n '/^output_0/p' out
}
for type in float32 float64; do
    model new 'test.shrink(%0, by=0.5)'
    model known "subtract(%0, multiply(tanh(%0), cast(0.5, dtype=\"$type\")))"
    want=$(result known.ir -O0)
    for level in 0 2; do
        [ "$(result new.ir -O$level)" = "$want" ] ||
            fail "$type, -O$level: found $(result new.ir -O$level), expected $want"
    done
    "$byoc" opt new.ir >printed.ir || fail "$type: byoc opt failed"
    grep -q 'test.shrink(%0, by=0.5)' printed.ir || fail "$type: found no test.shrink in the printed text, expected one"
    [ "$(result printed.ir -O2)" = "$want" ] ||
        fail "$type, printed text: found $(result printed.ir -O2), expected $want"
    sed 's/add(%x, %x)/cast(0.25, dtype="'$type'")/' new.ir >constant.ir
    sed 's/add(%x, %x)/cast(0.25, dtype="'$type'")/' known.ir >expected.ir
    [ "$(result constant.ir -O2)" = "$(result expected.ir -O0)" ] ||
        fail "$type, folded: found $(result constant.ir -O2), expected $(result expected.ir -O0)"
done

type=float32
model new 'test.shrink(%0, by=0.5)'
mkdir code
"$byoc" compile new.ir --native --keep-c code -o new.so >out 2>&1 ||
    fail "compile: $(cat out)"
cat code/*.c | grep -q 'mad(-0.5f, tanh_of(' || fail "found no mad(-0.5f, tanh_of( in the C, expected it"
