#!/bin/sh
# broken.sh BYOC PLUGINS: what `byoc conform` finds wrong with each of the twelve
# plug-ins that are wrong in one way: the rule that is broken, and where.
# `broken.sh BYOC PLUGINS --table` prints what compile says of them, too.
[ $# -ge 2 ] && [ -x "$1" ] || { echo "usage: broken.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$1 plugins=$2 failed=0
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT

# found NAME CASE: the rule and the first line of the first failure
found() {
    "$byoc" conform "$plugins/$1.so" --only "$2" --seconds 4 >"$dir/card"
    [ $? -eq 1 ] || { echo "exit code is not 1"; return; }
    sed -n '/^FAIL/{s/^FAIL [^ ]* (\([a-z.]*\):.*/\1/p;n;s/^ *//p;q;}' \
        "$dir/card" | tr '\n' '|' | sed "s,$plugins/,,;s/|\$//;s/|/: /"
}

# expect NAME CASE PATTERN
expect() {
    said=$(found "$1" "$2")
    case $said in
    $3) [ -z "$table" ] || printf '%-17s %s\n' "$1" "$said" ;;
    *)
        failed=$((failed + 1))
        echo "FAILED: $1 ($2): found '$said', expected '$3'"
        ;;
    esac
}

# compiled NAME OPTIONS: the exit code and what is said of a small model
compiled() {
    name=$1
    shift
    timeout 10 "$byoc" compile "$dir/model.ir" -o "$dir/model.so" \
        --plugin "$plugins/$name.so" --backend "$vendor" "$@" >"$dir/out" 2>&1
    code=$?
    [ $code -ne 124 ] || code="hang"
    printf '  %-17s exit %s: %s\n' "compile${1:+ $1}" "$code" \
        "$(grep -v '^ *$' "$dir/out" | head -n 1 | sed "s,$plugins/,,g")"
}

table=${3-}
expect crash_in_match numerics/ref.add/0 \
    'crash: SIGSEGV in accept() of ref.*'
expect hang_in_compile numerics/ref.add/0 \
    'hang: still in compile() after 4 seconds'
expect bad_size entry/open \
    'entry.opens: bad_size.so: struct_size of its backend is 24, expected *'
expect bad_abi entry/open \
    'entry.opens: bad_abi.so: built with version 77.0 of byoc/backend.h, *'
expect bad_member entry/open \
    'entry.opens: bad_member.so: its backend'\''s member run is NULL, *'
expect fails_to_build numerics/ref.add/0 \
    'claims.builds: accept() took it, and load() failed: no kernel was built *'
expect wrong_numbers numerics/ref.add/0 \
    'numerics.result: output 0: 1 of * elements are wrong; element *'
expect races threads 'threads.results: 4 threads run one compiled region, *'
expect leaks numerics/ref.add/0 \
    'memory.balance: 1 block of 1000 bytes that the host gave is not released *'
expect writes_past numerics/ref.add/0 \
    'bounds.write: run() wrote to byte * of output 0, which has *'
expect keeps_pointer numerics/ref.add/0 \
    'lifetime.kept: run() read * of an earlier call, which is over'
expect signal_on_unload library/unload \
    'crash: SIGABRT in quiesce() and closing the library'

if [ -n "$table" ]; then
    cat >"$dir/model.ir" <<'IR'
def @main(%x: Tensor[(4, 8), float32], %y: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
  nn.relu(add(%x, %y))
}
IR
    for name in crash_in_match hang_in_compile bad_size bad_abi bad_member \
        fails_to_build wrong_numbers races leaks writes_past keeps_pointer \
        signal_on_unload; do
        case $name in bad_*) vendor=bad ;; *) vendor=ref ;; esac
        echo "$name"
        compiled "$name"
        "$byoc" compile --help | grep -q isolate &&
            compiled "$name" --isolate --isolate-seconds 3
    done
fi
[ $failed -eq 0 ] || exit 1
echo "12 plug-ins are found out"
