#!/bin/sh
# hostile.sh BYOC: small models that request large resources. Each is checked
# within 1.5 GB of address space and a number of seconds of CPU time.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: hostile.sh BYOC" >&2; exit 2; }
byoc=$1
BYOC_PLUGIN_PATH=$(cd "$(dirname "$1")" && pwd)
export BYOC_PLUGIN_PATH
# a sanitizer's shadow memory is not the program's
nm "$byoc" 2>/dev/null | grep -q __asan_init && bounded=no || bounded=yes
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
failed=0

# within SECONDS WORDS ARG...: byoc ARG... ends with exit code 0, and prints WORDS
within() {
    seconds=$1 words=$2
    shift 2
    (
        [ $bounded = no ] || ulimit -v 1500000
        ulimit -t "$seconds"
        exec "$byoc" "$@"
    ) >"$dir/out" 2>&1
    code=$?
    if [ $code -ne 0 ] || ! grep -q "$words" "$dir/out"; then
        failed=$((failed + 1))
        echo "FAILED with $code, expected '$words': $*"
        head -20 "$dir/out"
    fi
}

# a layer norm without gamma and beta: a pass that joins its operators must not create
# constants of the declared size
cat >"$dir/norm.ir" <<'EOF'
def @main(%x: Tensor[(1, 1000000000), float32]) {
  %m = mean(%x, axis=[1], keepdims=true);
  %d = subtract(%x, %m);
  %v = mean(multiply(%d, %d), axis=[1], keepdims=true);
  divide(%d, sqrt(add(%v, 1e-05f)))
}
EOF
within 10 "offloaded" check "$dir/norm.ir"

# oneDNN searches for the largest prime factor of an axis
cat >"$dir/prime.ir" <<'EOF'
def @main(%x: Tensor[(5, 3, 1000000007), float32]) {
  transpose(%x, axes=[2, 1, 0]) #["t": "Transpose"]
}
EOF
within 3 "prime factor" check --all "$dir/prime.ir"

# a chain of epilogue operators that does not begin at a convolution; each
# multiplication fits two alternatives of a pattern
awk 'BEGIN {
    print "def @main(%x: Tensor[(2, 4), float32]) {"
    print "  %v0 = nn.relu(%x);"
    for (i = 1; i < 10000; i++) {
        from = "%v" (i - 1)
        call = "add(" from ", 0.25f)"
        if (i % 3 == 0)
            call = "nn.relu(" from ")"
        if (i % 3 == 1)
            call = "multiply(" from ", 0.5f)"
        print "  %v" i " = " call ";"
    }
    print "  %v9999"
    print "}"
}' >"$dir/chain.ir"
within 10 "offloaded" check "$dir/chain.ir"

# each operator fits an alternative of a pattern in several ways, and no chain of them
# is a complete match
for call in "multiply(%v, %v)" "add(%v, nn.relu(%v))" "add(%v, %w)"; do
    awk -v call="$call" 'BEGIN {
        print "def @main(%x: Tensor[(2, 4), float32]) {"
        print "  %v0 = exp(%x);"
        print "  %v1 = tanh(%x);"
        for (i = 2; i < 5000; i++) {
            line = call
            gsub(/%v/, "%v" (i - 1), line)
            gsub(/%w/, "%v" (i - 2), line)
            print "  %v" i " = " line ";"
        }
        print "  %v4999"
        print "}"
    }' >"$dir/ladder.ir"
    within 10 "100.00% of" check "$dir/ladder.ir"
done

[ $failed -eq 0 ] && echo "all cases as expected"
exit $((failed > 0))
