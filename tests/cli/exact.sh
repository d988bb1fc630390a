#!/bin/sh
# exact.sh BYOC: --exact reaches the backend: neither the report nor the trace
# of a run has a Winograd convolution, from JSON or from C, and the text form
# and the region's JSON keep the flag. A NaN in one group of a convolution with few
# outputs per group stays in its group.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: exact.sh BYOC" >&2; exit 2; }
byoc=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

weights=$(awk 'BEGIN { for (i = 0; i < 2304; i++)
    printf "%s%.3f", i ? ", " : "", (i * 7 % 11 - 5) / 8 }')
cat >"$work/m.ir" <<END
def @main(%x: Tensor[(1, 16, 12, 12), float32]) {
  nn.conv2d(%x, Tensor[(16, 16, 3, 3), float32] {$weights}, padding=[1, 1, 1, 1])
}
END

# expect YES|NO WHAT FILE: YES: the file names a Winograd convolution
expect() {
    found=NO
    ! grep -q winograd "$3" || found=YES
    [ "$found" = "$1" ] || { echo "$2: expected $1, found $found"; bad=1; }
}

# native kernels too: a direct convolution rounds differently
for flag in "" --exact; do
    # shellcheck disable=SC2086
    "$byoc" run "$work/m.ir" --native $flag -o "$work/native$flag" \
        >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
done
! cmp -s "$work/native/output_0.npy" "$work/native--exact/output_0.npy" ||
    { echo "--exact has no effect with --native"; bad=1; }

for codegen in json c; do
    for flag in "" --exact; do
        want=${flag:+NO}
        # shellcheck disable=SC2086
        "$byoc" compile "$work/m.ir" $flag --codegen $codegen \
            -o "$work/m.so" >"$work/report" 2>&1 &&
            "$byoc" run "$work/m.so" --trace "$work/trace" >"$work/out" 2>&1 ||
            { cat "$work/report"; exit 1; }
        expect "${want:-YES}" "report, $codegen $flag" "$work/report"
        expect "${want:-YES}" "run, $codegen $flag" "$work/trace"
    done
done

# grouped FIRST: write a model that returns the output channels from FIRST on of a
# convolution with 16 groups of 4 channels; channel 0, in the first group, is NaN
mask=nan
for channel in $(seq 63); do
    mask="$mask, 1.0"
done
grouped() {
    cat >"$work/groups.ir" <<END
def @main(%x: Tensor[(1, 64, 12, 12), float32]) {
  %n = multiply(%x, Tensor[(64, 1, 1), float32] {$mask});
  %y = nn.conv2d(%n, random[(64, 4, 3, 3), float32, seed=1], padding=[1, 1, 1, 1], groups=16);
  strided_slice(%y, [$1], [64], [1], [1])
}
END
}
for where in "" --native; do
    for first in 0 4; do
        grouped $first
        # shellcheck disable=SC2086
        "$byoc" run "$work/groups.ir" --exact $where >"$work/out" 2>&1 ||
            { cat "$work/out"; exit 1; }
        found=NO
        ! grep -qi nan "$work/out" || found=YES
        want=YES
        [ $first = 0 ] || want=NO
        [ $found = $want ] ||
            { echo "outputs from $first $where: NaN: expected $want, found $found"; bad=1; }
    done
done

"$byoc" partition "$work/m.ir" --exact >"$work/p.ir" || exit 1
grep -q 'Composite="dnnl.conv".* Exact=1' "$work/p.ir" ||
    { echo "the composite is not Exact"; bad=1; }
cat >"$work/relu.ir" <<'END'
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%src: Tensor[(4), float32], Composite="dnnl.eltwise", Exact=1) -> Tensor[(4), float32] {
    nn.relu(%src)
  };
  %0(%x)
}
END
"$byoc" opt "$work/relu.ir" >"$work/again.ir" || exit 1
grep -q 'Exact=1' "$work/again.ir" ||
    { echo "reading the text loses Exact"; bad=1; }
exit $bad
