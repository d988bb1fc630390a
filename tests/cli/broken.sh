#!/bin/sh
# broken.sh BYOC PLUGINS: runs `byoc conform`, `byoc compile` and `byoc compile
# --isolate` on plug-ins with one fault each, and checks which rule conform
# reports, and how the compile ends. The command that conform prints to run a
# case alone must report the same. `broken.sh BYOC PLUGINS --table` prints all
# results.
# SPDX-License-Identifier: Apache-2.0
[ $# -ge 2 ] && [ -x "$1" ] || { echo "usage: broken.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(cd "$2" && pwd)
table=${3-}
PATH=$(dirname "$byoc"):$PATH
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
failed=0
export BYOC_PROGRESS=0 # no lines of progress among the messages
# the plug-ins leak and crash on purpose
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:handle_segv=0"
cat >"$dir/model.ir" <<'IR'
def @main(%x: Tensor[(4, 8), float32], %y: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
  %0 = add(%x, %y) #["sum": "Add"];
  nn.relu(%0) #["relu": "Relu"]
}
IR

# holds WHAT PATTERN FOUND: counts a failure unless FOUND matches PATTERN
holds() {
    [ -z "$table" ] || printf '  %-18s %s\n' "$1" "$3"
    # shellcheck disable=SC2254
    case $3 in
    $2) return ;;
    esac
    failed=$((failed + 1))
    echo "FAILED: $name: $1: found '$3', expected '$2'"
}

# first_failure: read a scorecard from stdin; print the rule of its first failure and
# the sentence
first_failure() {
    sed -n '/^FAIL/{s/^FAIL [^ ]* (\([a-z.]*\):.*/\1/p;n;s/^ *//p;q;}' |
        tr '\n' '|' | sed "s,$plugins/,,g;s/|\$//;s/|/: /"
}

# conform CASE PATTERN: the case fails as in PATTERN, and so does the command that
# it prints
conform() {
    "$byoc" conform "$plugins/$name.so" --only "$1" \
        ${hang_seconds:+--seconds "$hang_seconds"} >"$dir/card"
    code=$?
    holds conform "$2" "$(first_failure <"$dir/card")"
    again=$(sed -n 's/^    \(byoc conform .*\)/\1/p' "$dir/card" | head -n 1)
    sh -c "$again" >"$dir/card" 2>&1
    holds "exit codes" 1,1 "$code,$?"
    case $(first_failure <"$dir/card") in
    "${2%%:*}"*) ;;
    *) holds "run again" "${2%%:*}: ..." "$(first_failure <"$dir/card")" ;;
    esac
}

# compile SECONDS PATTERN OPTIONS...: compile the model within SECONDS and compare "CODE:
# MESSAGE" with PATTERN. MESSAGE is the error or, if there is none, the printed share of
# offloaded operators.
compile() {
    seconds=$1 pattern=$2
    shift 2
    rm -f "$dir/model.so"
    timeout "$seconds" "$byoc" compile "$dir/model.ir" -o "$dir/model.so" \
        --plugin "only:$plugins/$name.so" --backend "$backend" "$@" \
        >"$dir/out" 2>"$dir/err"
    code=$?
    [ $code -ne 124 ] || code=hang
    message=$(sed '/^ *$/d' "$dir/err" | head -n 1)
    message=${message:-$(sed -n 's/.*reverted, //p' "$dir/out")}
    message=${message:-$(sed -n '1s/.*FLOP and //p' "$dir/out")}
    case $code in
    0) [ -s "$dir/model.so" ] || message="no model" ;;
    hang) message= ;;
    esac
    holds "compile${1:+ $1}" "$pattern" \
        "$(echo "$code: $message" | sed "s,$plugins/,,g")"
}

name=
# plugin NAME CASE CONFORM COMPILE ISOLATED [SECONDS]: run conform's CASE, a compile and
# a compile --isolate with the plug-in NAME, and compare the messages with the patterns
# CONFORM, COMPILE and ISOLATED; SECONDS: how long a plug-in that hangs may take
plugin() {
    name=$1
    case $name in bad_*) backend=bad ;; *) backend=ref ;; esac
    hang_seconds=${6-}
    [ -z "$table" ] || echo "$name"
    conform "$2" "$3"
    compile "${hang_seconds:-1200}" "$4"
    compile 1200 "$5" --isolate --isolate-seconds 3
}

all_offloaded='0: 2 of 2 operators offloaded*'
refused='3: byoc compile: found no backend '\''bad'\'' among 0 plug-ins in *; '

plugin crash_in_match numerics/ref.add/0 \
    'crash: SIGSEGV in accept() of ref.*' \
    '139: byoc compile: crashed with signal 11 (*) in accept() of ref.* of the plug-in ref; *' \
    '0: byoc: warning: ref was left out: its process crashed with signal 11 * in accept() of ref.*'
plugin hang_in_compile numerics/ref.add/0 \
    'hang: still in compile() after * seconds' \
    'hang: ' \
    '0: byoc: warning: ref was left out: its process timed out after 3 s in compile()' 5
plugin bad_size entry/open \
    'entry.opens: bad_size.so: struct_size of its backend is 24, expected *' \
    "${refused}bad_size.so: struct_size of its backend is 24, expected at least *" \
    "${refused}bad_size.so: struct_size of its backend is 24, expected at least *"
plugin bad_abi entry/open \
    'entry.opens: bad_abi.so: built with version 77.0 of byoc/backend.h, *' \
    "${refused}bad_abi.so: built with version 77.0 of byoc/backend.h, *" \
    "${refused}bad_abi.so: built with version 77.0 of byoc/backend.h, *"
plugin bad_member entry/open \
    'entry.opens: bad_member.so: found NULL as member run of its backend, *' \
    "${refused}bad_member.so: found NULL as member run of its backend, *" \
    "${refused}bad_member.so: found NULL as member run of its backend, *"
plugin fails_to_build numerics/ref.add/0 \
    'claims.builds: load() failed after accept() succeeded: no kernel was built *' \
    '0: region-failed: ref: ref_0: no kernel was built for this shape' \
    '0: region-failed: ref: ref_0: no kernel was built for this shape'
plugin wrong_numbers numerics/ref.add/0 \
    'numerics.result: output 0: 1 of * elements are wrong; element *' \
    "$all_offloaded" "$all_offloaded"
plugin races threads \
    'threads.results: 4 threads run one compiled region, *' \
    "$all_offloaded" "$all_offloaded"
plugin leaks numerics/ref.add/0 \
    'memory.balance: 1 block of 1000 bytes that the host gave is not released *' \
    "$all_offloaded" "$all_offloaded"
plugin writes_past numerics/ref.add/0 \
    'bounds.write: run() wrote to byte * of output 0, which has *' \
    "$all_offloaded" "$all_offloaded"
plugin keeps_pointer numerics/ref.add/0 \
    'lifetime.kept: run() read * of an earlier call, which is over' \
    "$all_offloaded" "$all_offloaded"
plugin describes_nothing numerics/ref.add/0 \
    'claims.opinion: describe() passed a step with name *' \
    "$all_offloaded" "$all_offloaded"
plugin signal_on_unload library/unload \
    'crash: SIGABRT in quiesce() and closing the library' \
    '134: byoc compile: crashed with signal 6 (*) in quiesce() or library end of the plug-in ref; *' \
    "$all_offloaded"

[ $failed -eq 0 ] || exit 1
echo "13 faulty plug-ins are reported as expected"
