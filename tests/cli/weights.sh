#!/bin/sh
# weights.sh BYOC: --weights narrows large weights: the artifact is smaller, and
# running it gives the same results as `byoc run` of the model; the compile prints
# the error. Weights that cannot be narrowed stay float32, and the compile prints the
# reason.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: weights.sh BYOC" >&2; exit 2; }
byoc=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

# complain TEXT [FILE]: print TEXT and the contents of FILE; the test fails
complain() {
    echo "$1"
    [ -z "$2" ] || sed 's/^/    /' "$2"
    bad=1
}

# weights of a convolution and of two products; values of the second product's weights
# are beyond the range of float16
cat >"$work/m.ir" <<'END'
def @main(%x: Tensor[(2, 64, 4, 4), float32]) {
  %0 = random[(64, 64, 3, 3), float32, seed=1];
  %1 = nn.conv2d(%x, %0, padding=[1, 1, 1, 1]);
  %2 = nn.relu(%1);
  %3 = nn.flatten(%2);
  %4 = random[(200, 1024), float32, seed=2];
  %5 = nn.dense(%3, %4);
  %6 = random[(128, 200), float32, seed=3];
  %7 = multiply(%6, 1e+06f);
  nn.dense(%5, %7)
}
END

# compile NAME OPTION...: compile the model to NAME.so, and set $size to its bytes
compile() {
    name=$1
    shift
    "$byoc" compile "$work/m.ir" "$@" --report "$work/$name.json" \
        -o "$work/$name.so" >"$work/$name.txt" 2>&1 ||
        { complain "compile $name failed" "$work/$name.txt"; exit 1; }
    size=$(wc -c <"$work/$name.so")
}

# expect NAME PATTERN: the output of the compile matches PATTERN
expect() {
    grep -q -- "$2" "$work/$1.txt" ||
        complain "$1: expected output that matches '$2', found:" "$work/$1.txt"
}

compile none
full_size=$size
! grep -q '"weights"' "$work/none.json" || complain "compile without --weights narrowed weights"

for weights in fp16 bf16 int8 int4; do
    compile $weights --weights=$weights
    # as float32, the convolution's weights have 147,456 bytes, the products' 819,200
    # and 102,400
    case $weights in
    fp16) max_size=$((full_size - 475000)) ;;
    bf16) max_size=$((full_size - 526000)) ;;
    int8) max_size=$((full_size - 650000)) ;;
    int4) max_size=$((full_size - 750000)) ;;
    esac
    [ "$size" -le $max_size ] ||
        complain "$weights: $size bytes, expected at most $max_size of $full_size"
    for way in "" --native; do
        # shellcheck disable=SC2086
        "$byoc" run "$work/m.ir" --weights=$weights $way -o "$work/a" \
            >"$work/out" 2>&1 &&
            "$byoc" compile "$work/m.ir" --weights=$weights $way -q \
                -o "$work/way.so" >"$work/out" 2>&1 &&
            "$byoc" run "$work/way.so" -o "$work/b" >"$work/out" 2>&1 ||
            complain "$weights $way: cannot run" "$work/out"
        cmp "$work/a/output_0.npy" "$work/b/output_0.npy" ||
            complain "$weights $way: the artifact differs from the model"
    done
    "$byoc" verify "$work/$weights.so" >"$work/out" 2>&1 ||
        complain "$weights: verify failed" "$work/out"
    "$byoc" report show "$work/$weights.so" >"$work/shown" ||
        complain "$weights: report show failed" "$work/shown"
    grep -q "^weights to $weights: " "$work/shown" ||
        complain "$weights: report show has no weights" "$work/shown"
done
expect fp16 'weights to fp16: 2 of 3 large ones'
expect fp16 'stays float32: its value .* is beyond the range of float16'
expect bf16 'weights to bf16: 3 of 3 large ones'
expect int8 'weights to int8: 2 of 3 large ones'
expect int8 'stays float32: int8 and int4 need a product'
expect int4 'error [0-9.]*% rms, [0-9.]*% at most'

# compared with float32 results, narrow weights are named as a reason of differences
echo 'def @main() { random[(2, 64, 4, 4), float32, seed=4] }' >"$work/x.ir"
"$byoc" run "$work/x.ir" -o "$work/x" >"$work/out" 2>&1 &&
    "$byoc" run "$work/m.ir" -i x="$work/x/output_0.npy" -o "$work/full" >"$work/out" 2>&1 &&
    cp "$work/x/output_0.npy" "$work/full/input_0.npy" || complain "cannot run" "$work/out"
for weights in none int4; do
    "$byoc" compare "$work/$weights.so" --data "$work/full" >"$work/out" 2>&1
    code=$?
    case $weights in
    none) expected=0 count=0 ;;
    int4) expected=1 count=1 ;;
    esac
    [ $code = $expected ] && [ "$(grep -c 'weights that --weights narrowed' "$work/out")" = $count ] ||
        complain "compare $weights: exit code $code, expected $expected and $count notes:" \
            "$work/out"
done

# refused
for words in "--weights=int7" "--weights=fp16 --pass-option=NarrowWeights.block=3"; do
    # shellcheck disable=SC2086
    ! "$byoc" compile "$work/m.ir" $words -o "$work/no.so" >"$work/out" 2>&1 ||
        complain "'$words' was accepted"
    grep -q 'expected' "$work/out" ||
        complain "'$words': expected a message with 'expected', found:" "$work/out"
done
! "$byoc" opt "$work/m.ir" --passes=FoldConstant --weights=fp16 >"$work/out" 2>&1 ||
    complain "a list of passes was accepted with --weights"
exit $bad
