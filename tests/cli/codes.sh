#!/bin/sh
# codes.sh BYOC REF: an artifact that stores dequantised weights as 8-bit
# integers gives the results of the model: with oneDNN, which packs the
# integers; with another backend, native kernels and native twins, which receive
# float32; with fixed and with symbolic sizes. REF is a plug-in that does not
# read integers.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: codes.sh BYOC REF" >&2; exit 2; }
byoc=$1 ref=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

# complain TEXT [FILE]: print TEXT and the contents of FILE; the test fails
complain() {
    echo "$1"
    [ -z "$2" ] || sed 's/^/    /' "$2"
    bad=1
}

# model SIZE: print a model with quantised weights: of a convolution, with a scale per
# channel; of a product, whose matrix is transposed in memory; and of a table that
# native kernels read. The scales are such that no average of the pool lies halfway
# between two quantisation steps, where the order of summation would decide.
model() {
    cat <<END
def @main(%x: Tensor[($1, 64, 6, 6), float32], %i: Tensor[($1), int64]) {
  %0 = random[(64, 64, 3, 3), float32, seed=1];
  %1 = random[(64), float32, seed=2];
  %2 = abs(%1);
  %3 = add(%2, 0.01f);
  %z0 = multiply(%1, 0f);
  %z = qnn.quantize(%z0, 1f, 0i8);
  %4 = qnn.quantize(%0, %3, %z, axis=0);
  %5 = qnn.dequantize(%4, %3, %z, axis=0);
  %6 = qnn.quantize(%x, 0.03f, 128u8);
  %7 = qnn.dequantize(%6, 0.03f, 128u8);
  %8 = nn.conv2d(%7, %5, padding=[1, 1, 1, 1]);
  %9 = nn.relu(%8);
  %10 = qnn.quantize(%9, 0.2f, 0u8);
  %11 = qnn.dequantize(%10, 0.2f, 0u8);
  %12 = nn.global_avg_pool2d(%11);
  %13 = nn.flatten(%12);
  %14 = random[(64, 200), float32, seed=3];
  %15 = qnn.quantize(%14, 0.02f, 0i8);
  %16 = qnn.dequantize(%15, 0.02f, 0i8);
  %17 = qnn.quantize(%13, 0.13f, 0u8);
  %18 = qnn.dequantize(%17, 0.13f, 0u8);
  %19 = nn.matmul(%18, %16);
  %20 = random[(50, 200), float32, seed=4];
  %21 = qnn.quantize(%20, 0.02f, 0i8);
  %22 = qnn.dequantize(%21, 0.02f, 0i8);
  %23 = take(%22, %i, axis=0);
  add(%19, %23)
}
END
}
model 2 >"$work/fixed.ir"
model N >"$work/varies.ir"

# check FILE DIM OPTION...: the artifact gives the model's results; sets size to its bytes
check() {
    file=$1 dim=$2
    shift 2
    # shellcheck disable=SC2086
    "$byoc" compile "$work/$file" "$@" -q -o "$work/m.so" >"$work/out" 2>&1 &&
        "$byoc" run "$work/fixed.ir" "$@" -o "$work/a" >"$work/out" 2>&1 &&
        "$byoc" run "$work/m.so" "$@" $dim -o "$work/b" >"$work/out" 2>&1 ||
        { complain "$file $*: cannot run" "$work/out"; return; }
    cmp "$work/a/output_0.npy" "$work/b/output_0.npy" ||
        complain "$file $*: the artifact differs from the model"
    "$byoc" verify "$work/m.so" >"$work/out" 2>&1 ||
        complain "$file $*: verify failed" "$work/out"
    size=$(wc -c <"$work/m.so")
}

for file in fixed.ir varies.ir; do
    [ $file = fixed.ir ] && dim= || dim="--dim N=2"
    check $file "$dim"
    # as float32, the weights have 238,656 bytes
    [ "$size" -lt 160000 ] || complain "$file: found $size bytes, expected fewer than 160000"
    # shellcheck disable=SC2086
    "$byoc" compare "$work/m.so" $dim >"$work/out" 2>&1 ||
        complain "$file: the twins differ" "$work/out"
    check $file "$dim" --native
    check $file "$dim" --plugin "only:$ref"
done
exit $bad
