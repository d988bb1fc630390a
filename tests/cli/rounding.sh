#!/bin/sh
# rounding.sh BYOC: byoc compare of an 8-bit model accepts the outputs of an
# engine that rounds some sums to other steps, and says why, unless --steps is 0.
# It does not accept the outputs of a model with a wrong scale, a wrong zero point
# or a wrong channel.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: rounding.sh BYOC" >&2; exit 2; }
byoc=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

fail() { echo "$*"; cat "$work/out"; bad=1; }

# model SCALE SCALE4 ZERO4 CHANNEL NAME: write NAME.ir, ten 8-bit convolutions. SCALE is
# that of all activations, SCALE4 and ZERO4 are scale and zero point of the fourth
# layer's result, CHANNEL is the factor of the weights of one of its channels.
model() {
    awk -v scale="$1" -v scale4="$2" -v zero4="$3" -v channel="$4" 'BEGIN {
        print "def @main(%x: Tensor[(1, 16, 24, 24), float32]) {"
        printf "  %%q0 = qnn.dequantize(qnn.quantize(%%x, 0.0079f, 128u8), 0.0079f, 128u8);\n"
        for (l = 1; l <= 10; l++) {
            printf "  %%c%d = nn.relu(nn.conv2d(%%q%d, qnn.dequantize(Tensor[(16, 16, 3, 3), int8] {", l, l - 1
            for (i = 0; i < 2304; i++) {
                seed = (seed * 1103 + 12345) % 65521
                w = seed % 255 - 127
                if (l == 4 && int(i / 144) == 5)
                    w = int(w * channel)
                printf "%s%d", i ? ", " : "", w
            }
            printf "}, %sf, 0i8), padding=[1, 1, 1, 1]));\n",
                l == 1 ? "0.00283" : "0.00161"
            printf "  %%q%d = qnn.dequantize(qnn.quantize(%%c%d, %sf, 3u8), %sf, %su8);\n",
                l, l, scale, l == 4 ? scale4 : scale, l == 4 ? zero4 : 3
        }
        print "  nn.avg_pool2d(%q10, pool_size=[3, 3], strides=[3, 3])\n}"
    }' >"$work/$5.ir"
}
model 0.0131 0.0131 3 1 right
model 0.0131002 0.0131002 3 1 near
model 0.0131 0.0138 3 1 scale
model 0.0131 0.0131 5 1 zero
model 0.0131 0.0131 3 0 channel

# the outputs of a model with slightly different scales stand for those of an engine
# that rounds differently
echo 'def @main(%x: Tensor[(1, 16, 24, 24), float32]) { negative(%x) }' \
    >"$work/input.ir"
"$byoc" run "$work/input.ir" -o "$work/data" >"$work/out" 2>&1 &&
    mv "$work/data/output_0.npy" "$work/data/input_0.npy" &&
    "$byoc" run "$work/near.ir" --native --data "$work/data" -o "$work/data" \
        >"$work/out" 2>&1 || fail "run: failed"
# expect CODE MODEL OPTION...: byoc compare of MODEL with these outputs ends with CODE
expect() {
    code=$1 name=$2
    shift 2
    "$byoc" compare "$work/$name" --data "$work/data" "$@" >"$work/out" 2>&1
    found=$?
    [ $found = "$code" ] || fail "$name $*: exit code $found, expected $code"
}
expect 0 right.ir
grep -q '^rounded .* which rounding to 8 bits explains: ' "$work/out" ||
    fail "right.ir: expected a line 'rounded ... which rounding to 8 bits explains'"
expect 0 right.ir --native
"$byoc" compile "$work/right.ir" -q -o "$work/right.so" >"$work/out" 2>&1 ||
    fail "compile: failed"
expect 0 right.so
expect 1 right.ir --steps 0
for fault in scale zero channel; do
    expect 1 $fault.ir
    grep -q '^DIFFERENT ' "$work/out" || fail "$fault.ir: expected a line DIFFERENT"
done
exit $bad
