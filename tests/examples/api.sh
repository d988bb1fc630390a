#!/bin/sh
# api.sh BYOC FOLDER: runs the C programs in examples/ that show the API, with the
# model of examples/digits, and checks their output and their refusals. FOLDER has
# the programs.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: api.sh BYOC FOLDER" >&2; exit 2; }
top=$(cd "$(dirname "$0")/../.." && pwd)
onnx=$top/examples/digits/digits.onnx
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
failed=0

# expect CODE TEXT COMMAND...: the command ends with CODE, and prints a line with TEXT
expect() {
    code=$1 text=$2
    shift 2
    "$@" >"$tmp/out" 2>&1
    found=$?
    [ $found -eq "$code" ] &&
        { [ -z "$text" ] || grep -q -e "$text" "$tmp/out"; } && return
    echo "FAILED: $*: exit $found, expected $code with \"$text\"; found:"
    cat "$tmp/out"
    failed=1
}

"$1" compile "$onnx" -o "$tmp/model.so" >/dev/null || exit 1
cat >"$tmp/two.ir" <<'END'
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = nn.softmax(%x);
  %1 = cumsum(%x, axis=1);
  (%0, %1)
}
END
"$1" compile "$tmp/two.ir" -o "$tmp/two.so" >/dev/null || exit 1
cat >"$tmp/three.ir" <<'END'
def @main(%x: Tensor[(2, 3), float64]) { (nn.softmax(%x), %x, %x) }
END

expect 0 'output_1: 6 elements, the first is 1' "$2/by_name" "$tmp/two.so"
expect 0 '^first .*cumsum' "$2/by_name" "$tmp/two.so" output_1
! grep -q softmax "$tmp/out" || {
    echo "FAILED: by_name: found softmax among the nodes that ran, expected cumsum alone"
    failed=1
}
expect 2 "one of the model's outputs: output_0, output_1" \
    "$2/by_name" "$tmp/two.so" nothing
expect 2 'is given twice' "$2/by_name" "$tmp/two.so" output_1 output_1

expect 0 'from a descriptor: image -> probability' \
    "$2/from_memory" "$onnx" "$tmp/mine.so"
[ "$(grep -c '^refused: ' "$tmp/out")" = 2 ] || {
    echo "FAILED: from_memory: found $(grep -c '^refused: ' "$tmp/out") refusals, expected 2"
    failed=1
}
expect 2 'mine.onnx' "$2/from_memory" "$tmp/two.ir" "$tmp/mine.so"

expect 0 '^29 done, 1 cancelled, 0 failed' "$2/callbacks" "$tmp/model.so" 10
expect 0 '^3 done, 0 cancelled, 0 failed' "$2/callbacks" "$tmp/model.so" 1
expect 2 'cannot\|No such file' "$2/callbacks" "$tmp/nothing.so" 10

expect 0 '^producer_name = ' "$2/describe" "$tmp/model.so"
expect 0 '^[0-9]' "$2/describe" "$tmp/model.so" opset.
expect 1 'has no metadata custom.nothing' \
    "$2/describe" "$tmp/model.so" custom.nothing
expect 0 'libbyoc_backend_dnnl.so: can be used' "$2/describe" --backends
expect 1 '' "$2/describe" --backends only:/nowhere

expect 0 ' ran [1-9][0-9]* parts, 0 bytes not released' "$2/budget" "$tmp/model.so" 0
expect 0 '^\[info\] threads' "$2/budget" "$tmp/model.so" 0
expect 2 'memory' "$2/budget" "$tmp/model.so" 10000
# A text continued by 80 bytes at once equals the text continued by some bytes, then,
# in a second run, by the rest.
"$1" compile "$top/examples/generate/text.onnx" -o "$tmp/text.so" >/dev/null ||
    exit 1
expect 0 'a byte; memory: ' "$2/generate" "$tmp/text.so" "The backend" 80 0
head -c 92 "$tmp/out" >"$tmp/text"
[ "$(wc -l <"$tmp/text")" = 1 ] || {
    echo "FAILED: generate: found no line end in the first 92 bytes, expected one"
    failed=1
}
text=$(head -c 51 "$tmp/text")
expect 0 '^The backend' "$2/generate" "$tmp/text.so" "$text" 40 0
head -c 92 "$tmp/out" | cmp - "$tmp/text" || failed=1
expect 0 '^byoc' "$2/generate" "$tmp/text.so" byoc 20
expect 2 'usage: generate' "$2/generate" "$tmp/text.so"
expect 2 'usage: generate' "$2/generate" "$tmp/text.so" ''
expect 2 'expected ids and caches' "$2/generate" "$tmp/two.so" a

# A recurrent state gives PyTorch's results for the whole sound.
voice=$top/examples/voice
"$1" compile "$voice/voice.onnx" -o "$tmp/voice.so" >/dev/null || exit 1
tail -c +129 "$voice/sound.npy" | "$2/stream" "$tmp/voice.so" >"$tmp/found"
tail -c +129 "$voice/probability.npy" >"$tmp/expected"
for file in found expected; do
    od -An -v -tf4 -w4 "$tmp/$file" >"$tmp/$file.txt"
done
paste "$tmp/found.txt" "$tmp/expected.txt" | awk '
    NF == 2 && ($1 - $2) ^ 2 < 1e-8 { n++ }
    END { exit NR != 250 || n != NR }' || {
    echo "FAILED: stream: probabilities differ from PyTorch"
    failed=1
}
expect 2 'usage: detect' "$2/detect"
expect 2 'found 1 inputs and 1 outputs, expected 1 and 3' "$2/detect" "$tmp/model.so"
"$1" compile "$tmp/three.ir" -o "$tmp/three.so" >/dev/null || exit 1
expect 2 'output 0: found another type, expected classes' "$2/detect" "$tmp/three.so"

# classify reads float32; byoc refuses it for an input of another type.
cat >"$tmp/double.ir" <<'END'
def @main(%x: Tensor[(2, 3), float64]) { nn.softmax(%x) }
END
"$1" compile "$tmp/double.ir" -o "$tmp/double.so" >/dev/null || exit 1
expect 2 'float64' sh -c 'head -c 48 /dev/zero | "$1" "$2"' - "$2/classify" \
    "$tmp/double.so"
expect 2 'expected a chunk and a state' "$2/stream" "$tmp/model.so"
exit $failed
