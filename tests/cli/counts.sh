#!/bin/sh
# The counts of `check` are one: on the command line, in the JSON, on the page
# and in a gate. And a region that its vendor refuses, for the sizes that were
# given, is in none of them; a run that meets such sizes says so, once.
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

# counts SIZE OFFLOADED: what is said of the model for N=SIZE
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

# the page shows what the JSON says, and adds nothing up
grep -q "several(summary.operators, 'operator')" "$dir/page" ||
    fail "the page does not show the summary's operators"

"$byoc" compile "$dir/model.ir" -o "$dir/model.so" --plugin "$choosy" \
    --backend ref >"$dir/out" 2>&1 || fail "compile: $(cat "$dir/out")"
run() {
    verb=$1
    size=$2
    shift 2
    "$byoc" "$verb" "$dir/model.so" --plugin "$choosy" --dim "N=$size" "$@" \
        >"$dir/out" 2>"$dir/err"
}
said() {
    grep -c 'warning: region .* runs its native twin for N=13: ' "$dir/err" || :
}
run run 12 || fail "run N=12"
[ "$(said)" = 0 ] || fail "run N=12 warns: $(cat "$dir/err")"
run run 13 || fail "run N=13"
[ "$(said)" = 1 ] || fail "run N=13 does not warn once: $(cat "$dir/err")"
run bench 13 --seconds 0 || fail "bench N=13"
[ "$(said)" = 1 ] || fail "bench N=13 does not warn once: $(cat "$dir/err")"
grep -q '1 regions refused' "$dir/out" || fail "bench N=13: $(cat "$dir/out")"
! run run 13 --require-vendors || fail "run N=13 --require-vendors passes"
echo "counts: one everywhere; refusals are said"
