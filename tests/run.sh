#!/bin/sh
# run.sh [--bless] BYOC [FILE...]: golden tests.
# Runs the command in the first line of every tests/DIR/NAME.ir and
# tests/transform/PASS/NAME.ir:
#     // RUN: byoc COMMAND ARGS %s
# and compares stdout with NAME.out. If NAME.err exists, it also compares stderr
# with it, and expects an exit code other than 0. %s is the file and %S its
# folder, relative to the root, so that messages are the same everywhere. %P is
# the folder of the tests' plug-ins, %T a folder for temporary files.
# BYOC is the command, such as build/byoc; FILE is relative to the root.
# --bless replaces the expected output by the present one. The exit code is 0 if all
# tests passed, 1 if one failed or none ran, and 2 for a usage error.
# SPDX-License-Identifier: Apache-2.0
bless=
[ "$1" != --bless ] || { bless=1; shift; }
[ $# -gt 0 ] && [ -x "$1" ] || {
    echo "usage: run.sh [--bless] BYOC [FILE...]" >&2
    exit 2
}
build=$(cd "$(dirname "$1")" && pwd)
byoc=$build/$(basename "$1")
PATH=$build:$PATH
shift
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || set -- tests/*/*.ir tests/transform/*/*.ir
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
if [ $# -gt 100 ]; then # run 50 files in each process, several processes at once
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n 50 tests/run.sh \
        ${bless:+--bless} "$byoc" >"$tmp/all"
    awk -v processes=$((($# + 49) / 50)) '
        /^[0-9]+ golden tests, [0-9]+ failed$/ {
            ran += $1; failed += $4; ended++; next
        }
        { print }
        END {
            print ran " golden tests, " failed " failed"
            if (ended != processes)
                print "found " ended + 0 " summaries of " processes \
                    " processes, expected one of each; the others crashed or" \
                    " were killed: run their files one by one"
            exit failed > 0 || !ran || ended != processes
        }' "$tmp/all"
    exit
fi
ran=0 failed=0

# compare EXPECTED FOUND: succeed if the files are equal, otherwise print the difference
# and fail; with --bless, copy FOUND to EXPECTED instead
compare() {
    cmp -s "$1" "$2" && return 0
    if [ "$bless" ]; then
        cp "$2" "$1"
        echo "blessed $1"
        return 0
    fi
    diff -u "$1" "$2" 2>&1 | head -40
    return 1
}

# check FILE COMMAND: run COMMAND and compare its output with the files beside FILE
check() {
    base=${1%.ir} status=0
    sh -c "$2" >"$tmp/out" 2>"$tmp/err"
    code=$?
    if [ -e "$base.err" ]; then
        [ $code -ne 0 ] || { echo "found exit code 0, expected another one, as $base.err exists"; status=1; }
        compare "$base.err" "$tmp/err" || status=1
    elif [ $code -ne 0 ]; then
        echo "found exit code $code, expected 0:" && head -5 "$tmp/err"
        return 1
    fi
    if [ -e "$base.out" ] || [ ! -e "$base.err" ]; then
        compare "$base.out" "$tmp/out" || status=1
    fi
    return $status
}

for file in "$@"; do
    read -r line <"$file"
    case $line in
    "// RUN: byoc "*) ;;
    *)
        # an input of other tests, which has no expected output
        [ -e "${file%.ir}.out" ] || [ -e "${file%.ir}.err" ] || continue
        ran=$((ran + 1)) failed=$((failed + 1))
        echo "FAILED $file: found '$line' as the first line, expected // RUN: byoc ..."
        continue
        ;;
    esac
    dir=$(dirname "$file")
    command=$(printf '%s\n' "${line#// RUN: }" |
        sed "s|%s\\([^a-z]\\)|$file\\1|g; s|%s\$|$file|; s|%S|$dir|g; s|%P|$build/tests/plugins|g; s|%T|$tmp/own|g")
    ran=$((ran + 1))
    rm -rf "$tmp/own" && mkdir "$tmp/own"
    check "$file" "$command" && continue
    failed=$((failed + 1))
    echo "FAILED $file: $command"
done
echo "$ran golden tests, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
