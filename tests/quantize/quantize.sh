#!/bin/sh
# quantize.sh BYOC DIGITS: byoc quantize on the digits model: accuracy, noise
# and size for every method, layers that stay float32, the same file each time,
# every kind of sample, and errors. With ONNX Runtime (ORT_FOLDER) and NumPy
# also the outputs of both.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] ||
    { echo "usage: quantize.sh BYOC DIGITS" >&2; exit 2; }
byoc=$1 digits=$2 model=$2/digits.onnx
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

fail() { echo "$*"; bad=1; }
# number PATTERN: the number before PATTERN in the report
number() { sed -n "s/.*[^0-9.-]\([0-9.]*\)$1.*/\1/p" "$work/report"; }
# at_least WHAT FOUND LIMIT: FOUND is a number that is not below LIMIT
at_least() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a >= b) }' ||
    fail "$1: found $2, expected at least $3"; }
quantize() { "$byoc" quantize "$model" "$@" >"$work/report" 2>"$work/err" ||
    { fail "quantize $*"; cat "$work/err"; }; }

for method in minmax percentile entropy mse; do
    quantize --calibrate "$digits" --method $method -o "$work/q.onnx"
    at_least "$method, dB" "$(number ' dB signal')" 30
    at_least "$method, accuracy" "$(number '% after')" 98.5
    [ "$(wc -c <"$work/q.onnx")" -lt $(($(wc -c <"$model") * 2 / 5)) ] ||
        fail "$method: found $(wc -c <"$work/q.onnx") bytes, expected less than 2/5 of the model's"
    "$byoc" compare "$work/q.onnx" --data "$digits/batch0." --stol 0.25 \
        >"$work/out" 2>&1 || { fail "$method: outputs differ"; cat "$work/out"; }
done
cp "$work/q.onnx" "$work/first.onnx"
quantize --calibrate "$digits" --method mse --threads 1 -o "$work/q.onnx"
cmp "$work/first.onnx" "$work/q.onnx" || fail "two runs: found different files, expected the same bytes"

# layers that stay float32
quantize --calibrate "$digits" --keep /5/Conv --keep-type Gemm -o "$work/k.onnx"
grep -q '3 of 5 layers' "$work/report" || fail "--keep: expected 3 of 5 layers in the report"
[ "$(grep -c '^ *float32 .*\(/5/Conv\|/9/Gemm\)$' "$work/report")" = 2 ] ||
    fail "--keep: expected /5/Conv and /9/Gemm as float32 in the table"

# samples: a folder with inputs, folders in it
mkdir -p "$work/one" "$work/many/a" "$work/many/b"
cp "$digits/batch0.input_0.npy" "$work/one/input_0.npy"
cp "$digits/batch0.input_0.npy" "$work/many/a/input_0.npy"
cp "$digits/batch0.labels.npy" "$work/many/a/labels.npy"
cp "$digits/batch1.input_0.npy" "$work/many/b/input_0.npy"
quantize --calibrate "$work/one" -o "$work/o.onnx"
grep -q 'on 1 sample$' "$work/report" || fail "one folder: expected 1 sample in the report"
grep -q accuracy "$work/report" && fail "no labels: found an accuracy in the report, expected none"
quantize --calibrate "$work/many" -o "$work/o.onnx"
grep -q 'on 2 samples$' "$work/report" || fail "folders: expected 2 samples in the report"
grep -q 'of 64 labels$' "$work/report" || fail "folders: expected 64 labels in the report"

# a sample without numbers, and one with a single NaN beside others
mkdir "$work/nan" "$work/some"
header=$(($(wc -c <"$work/one/input_0.npy") - 16384))
{
    head -c $header "$work/one/input_0.npy"
    tail -c 16384 "$work/one/input_0.npy" | tr '\000-\377' '\377'
} >"$work/nan/input_0.npy"
{
    head -c $header "$work/one/input_0.npy"
    printf '\377\377\377\377'
    tail -c 16380 "$work/one/input_0.npy"
} >"$work/some/input_0.npy"
quantize --calibrate "$work/some" -o "$work/o.onnx"
at_least "one NaN, dB" "$(number ' dB signal')" 30

# --max-loss: the loss of the proposal is within the limit, and --keep with its
# layers gives the same file
loss() { sed -n 's/^loss: .* \([0-9.e-]*\)%* with the proposal.*/\1/p' \
    "$work/report"; }
proposed() { sed -n 's/^  --keep //p' "$work/report"; }
quantize --calibrate "$work/one" --max-loss 50 -o "$work/o.onnx"
[ -z "$(proposed)" ] || fail "--max-loss 50: proposes $(proposed)"
quantize --calibrate "$work/one" --max-loss 0.2% -o "$work/o.onnx"
keep=$(proposed | sed 's/^/--keep /')
at_least '--max-loss 0.2, limit' 0.2 "$(loss)"
at_least '--max-loss 0.2, layers kept' "$(proposed | wc -l)" 1
at_least '--max-loss 0.2, layers quantised' 4 "$(proposed | wc -l)"
[ "$(grep -c '^ *[0-9.e-]* *float32 ' "$work/report")" = \
    "$(proposed | wc -l)" ] || fail "--max-loss: expected as many float32 layers in the table as the proposal has"
# shellcheck disable=SC2086
quantize --calibrate "$work/one" $keep -o "$work/k.onnx"
cmp "$work/o.onnx" "$work/k.onnx" || fail "--max-loss and $keep: found different files, expected the same bytes"
grep -q '^loss' "$work/report" && fail "without --max-loss: found a proposal, expected none"
quantize --calibrate "$digits" --method percentile --percentile 60 \
    --max-loss 1 -o "$work/o.onnx"
grep -q '^loss: [0-9]*\.*[0-9]* percentage points of accuracy' "$work/report" ||
    fail "--max-loss with labels: expected the loss in percentage points of accuracy"
at_least '--max-loss 1, limit' 1 "$(loss)"
at_least '--max-loss 1, accuracy' "$(number '% after')" 98.1
at_least '--max-loss 1, layers kept' "$(proposed | wc -l)" 1

# refuse MESSAGE ARGUMENTS: exit code 2, the message, no file
refuse() {
    message=$1
    shift
    "$byoc" quantize "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code = 2 ] || fail "quantize $*: exit code $code, expected 2"
    grep -q "$message" "$work/err" ||
        { fail "quantize $*: expected \"$message\""; cat "$work/err"; }
    [ ! -e "$work/none.onnx" ] || fail "quantize $*: wrote a file"
}
mkdir "$work/empty" "$work/wrong" "$work/labels"
cp "$digits/batch0.labels.npy" "$work/wrong/input_0.npy"
cp "$digits/batch0.input_0.npy" "$work/labels/input_0.npy"
cp "$digits/batch0.input_0.npy" "$work/labels/labels.npy"
head -c 1000 "$model" >"$work/cut.onnx"
to="-o $work/none.onnx"
# shellcheck disable=SC2086
{
    refuse 'expected --calibrate DIR' "$model" $to
    refuse 'expected -o FILE.onnx' "$model" --calibrate "$digits"
    refuse 'found no sample' "$model" --calibrate "$work/empty" $to
    refuse 'expected a folder' "$model" --calibrate "$work/nowhere" $to
    refuse 'found int64, expected float32' "$model" --calibrate "$work/wrong" $to
    refuse 'expected integers' "$model" --calibrate "$work/labels" $to
    refuse "tensor 'image': found only NaN" "$model" --calibrate "$work/nan" $to
    refuse "found no node of the name 'x'" "$model" --calibrate "$digits" \
        --keep x $to
    refuse "did you mean 'Conv'" "$model" --calibrate "$digits" \
        --keep-type Cov $to
    refuse 'found nothing to quantise' "$model" --calibrate "$digits" \
        --keep-type Conv --keep-type Gemm $to
    refuse 'found nothing to quantise' "$work/q.onnx" --calibrate "$digits" $to
    refuse 'from 50 to 100' "$model" --calibrate "$digits" \
        --method percentile --percentile 20 $to
    refuse 'expected both, or neither' "$model" --calibrate "$digits" \
        --percentile 99 $to
    refuse 'no choice of layers' "$model" --calibrate "$work/one" \
        --max-loss 0.0001 $to
    refuse 'from 0 to 100' "$model" --calibrate "$digits" --max-loss 101 $to
    refuse 'a number' "$model" --calibrate "$digits" --max-loss little $to
    refuse 'cannot create' "$model" --calibrate "$digits" \
        -o "$work/nowhere/q.onnx"
    refuse 'found the model as the output' "$model" --calibrate "$digits" -o "$model"
    refuse 'cut.onnx' "$work/cut.onnx" --calibrate "$digits" $to
}

# the same outputs in ONNX Runtime
python=/usr/bin/python3
if [ -n "${ORT_FOLDER:-}" ] && $python -c 'import numpy' 2>/dev/null; then
    "$byoc" run "$work/q.onnx" --data "$digits/batch0." -o "$work" \
        >/dev/null 2>&1 || fail "the 8-bit model does not run"
    $python - "$(dirname "$0")/../../scripts" "$work/q.onnx" \
        "$digits/batch0.input_0.npy" "$work/output_0.npy" <<'END' ||
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import ort
if not ort.library():
    sys.exit(0)
model = open(sys.argv[2], "rb").read()
[(expected, _)] = ort.Runtime().run(model, [np.load(sys.argv[3])], [1])
off = abs(expected - np.load(sys.argv[4])).max()
print(f"ONNX Runtime: largest difference {off:.3g}")
sys.exit(int(off > 0.02))
END
        fail "ONNX Runtime: found the difference above, expected at most 0.02"
fi
exit $bad
