#!/bin/sh
# counts.sh BYOC CHOOSY: `check` reports the same counts on the command line, in
# the JSON, on the page and in a gate. None of them counts a region that its
# backend refuses for the given sizes. A run with refused sizes warns once. CHOOSY is
# the path of the plug-in choosy.so, which refuses the size 13.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: counts.sh BYOC CHOOSY" >&2; exit 2; }
set -eu
byoc=$1
choosy=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/model.ir" <<'END'
def @main(%x: Tensor[(N), float32]) {
  %0 = nn.relu(%x) #["first": "Relu"];
  %1 = tanh(%0) #["second": "Tanh"];
  concatenate(%1, %x, axis=0) #["third": "Concat"]
}
END

fail() {
    echo "FAILED: $*"
    exit 1
}

# counts SIZE OFFLOADED: check the counts of the model for N=SIZE
counts() {
    "$byoc" check "$dir/model.ir" --plugin "$choosy" --backend ref --warm "N=$1" \
        --report "$dir/json" --html "$dir/page" --require-offload-nodes 1 \
        >"$dir/out" 2>"$dir/err" || [ "$2" = 0 ] || fail "check N=$1"
    grep -q "$2 of 3 operators offloaded" "$dir/out" ||
        fail "N=$1: $(head -1 "$dir/out"), expected $2 of 3"
    for file in json page; do
        grep -q "\"operators\": 3, \"offloaded\": $2, \"native\": $((3 - $2))" \
            "$dir/$file" || fail "N=$1: $file has other counts"
    done
    grep -q "found $(awk -v n="$2" 'BEGIN { printf "%.2f", 100 * n / 3 }')%" \
        "$dir/out" || fail "N=$1: the gate: $(cat "$dir/out")"
}
counts 12 1
counts 13 0

# the page shows the numbers of the JSON
grep -q "several(summary.operators, 'operator')" "$dir/page" ||
    fail "the page does not show the summary's operators"

"$byoc" compile "$dir/model.ir" -o "$dir/model.so" --plugin "$choosy" \
    --backend ref >"$dir/out" 2>&1 || fail "compile: $(cat "$dir/out")"
run() {
    command=$1
    size=$2
    shift 2
    "$byoc" "$command" "$dir/model.so" --plugin "$choosy" --dim "N=$size" "$@" \
        >"$dir/out" 2>"$dir/err"
}
count_warnings() {
    grep -c 'warning: region .* runs its native twin for N=13: ' "$dir/err" || :
}
run run 12 || fail "run N=12"
[ "$(count_warnings)" = 0 ] || fail "run N=12 warns: $(cat "$dir/err")"
run run 13 || fail "run N=13"
[ "$(count_warnings)" = 1 ] || fail "run N=13 does not warn once: $(cat "$dir/err")"
run bench 13 --seconds 0 || fail "bench N=13"
[ "$(count_warnings)" = 1 ] || fail "bench N=13 does not warn once: $(cat "$dir/err")"
grep -q '1 regions refused' "$dir/out" || fail "bench N=13: $(cat "$dir/out")"
! run run 13 --require-backends || fail "run N=13 --require-backends passes"

# without a backend the twins run, and `byoc bench` reports it
cat >"$dir/fixed.ir" <<'END'
def @main(%x: Tensor[(64), float32]) {
  %0 = nn.relu(%x) #["first": "Relu"];
  tanh(%0) #["second": "Tanh"]
}
END
"$byoc" compile "$dir/fixed.ir" -o "$dir/fixed.so" --plugin "$choosy" \
    --backend ref >"$dir/out" 2>&1 || fail "compile: $(cat "$dir/out")"
bench() {
    "$byoc" bench "$dir/fixed.so" --seconds 0 --plugin "$@" >"$dir/out" \
        2>"$dir/err" || fail "bench: $(cat "$dir/err")"
}
bench "$choosy"
! grep -q '^native' "$dir/out" || fail "expected the backend to run: $(cat "$dir/out")"
bench "$choosy" --json
grep -q '"regions": 1, "native_regions": 0, "native_share": 0' "$dir/out" ||
    fail "expected the backend to run: $(cat "$dir/out")"
bench only
grep -q '^native  *1 of 1 regions, with 100.00% of the offloaded operations$' \
    "$dir/out" || fail "expected the twin to run: $(cat "$dir/out")"
bench only --json
grep -q '"regions": 1, "native_regions": 1, "native_share": 1' "$dir/out" ||
    fail "expected the twin to run: $(cat "$dir/out")"

# The mask of a TransformerEncoder has sizes that shape arithmetic computes, in an
# artifact by fused kernels. The backend runs the operators that read the mask.
cat >"$dir/model.ir" <<'END'
def @main(%x: Tensor[(B, S), float32]) {
  %0 = shape_of(%x) #["shape": "Shape"];
  %1 = take(%0, 0) #["batch": "Gather"];
  %2 = take(%0, 1) #["sequence": "Gather"];
  %3 = multiply(%1, 4) #["heads": "Mul"];
  %4 = expand_dims(%3, axis=[0]) #["heads_1": "Unsqueeze"];
  %5 = expand_dims(%2, axis=[0]) #["sequence_1": "Unsqueeze"];
  %6 = concatenate(%4, [1], %5, axis=0) #["sizes": "Concat"];
  %7 = broadcast_to(-1.5f, %6) #["mask": "Expand"];
  nn.relu(%7) #["relu": "Relu"]
}
END
"$byoc" compile "$dir/model.ir" -o "$dir/model.so" --plugin "$choosy" \
    --backend ref >"$dir/out" 2>&1 || fail "compile: $(cat "$dir/out")"
grep -q '1 of .* offloaded, in 1 region' "$dir/out" || fail "$(cat "$dir/out")"
"$byoc" run "$dir/model.so" --plugin "$choosy" --dim B=3 --dim S=5 \
    --require-backends --trace "$dir/trace" >"$dir/out" 2>"$dir/err" ||
    fail "the sizes are not known: $(cat "$dir/err")"
grep -q '"impl": "ref"' "$dir/trace" || fail "the backend's region did not run"

# byoc chooses sizes that the model accepts if none are given: here padding that
# reflects accepts no axis of 1, 2 or 64
cat >"$dir/model.ir" <<'END'
def @main(%x: Tensor[(N, T), float32]) {
  %0 = nn.pad(%x, [0, 100, 0, 0], 0f, mode="reflect") #["pad": "Pad"];
  nn.relu(%0) #["relu": "Relu"]
}
END
"$byoc" check "$dir/model.ir" --plugin "$choosy" --backend ref >"$dir/out" 2>&1 ||
    fail "check: $(cat "$dir/out")"
grep -q 'FLOP (N=512, T=512) and 1 of 2 operators' "$dir/out" ||
    fail "sizes for padding that reflects: $(head -1 "$dir/out")"
"$byoc" compile "$dir/model.ir" -q -o "$dir/model.so" --native
"$byoc" run "$dir/model.so" >"$dir/out" 2>&1 || fail "run: $(cat "$dir/out")"
grep -q '(512, 612) float32' "$dir/out" || fail "run: $(cat "$dir/out")"
"$byoc" run "$dir/model.so" --dim T=200 >"$dir/out" 2>&1 || fail "run T=200"
grep -q '(1, 300) float32' "$dir/out" || fail "run T=200: $(cat "$dir/out")"
! "$byoc" run "$dir/model.so" --dim T=50 >"$dir/out" 2>&1 || fail "run T=50"
grep -q 'padding of 100 in mode reflect' "$dir/out" || fail "$(cat "$dir/out")"
echo "counts: the same everywhere; refusals are reported"
