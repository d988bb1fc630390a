#!/bin/sh
# conform.sh BYOC PLUGINS: the parts of `byoc conform` that broken.sh does not
# test: optional queries, leaks of malloc(), valgrind, and the commands that it
# prints. Exits with 77 if all but valgrind was tested, and passed.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: conform.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(cd "$2" && pwd)
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
failed=0

# finds CODE PLUGIN OPTIONS -- SENTENCE...: `byoc conform` ends with CODE, and prints
# each SENTENCE
finds() {
    wanted=$1 plugin=$2
    shift 2
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    "$byoc" conform "$plugin" $options >"$dir/card" 2>"$dir/err"
    code=$?
    [ $code = "$wanted" ] || {
        echo "$plugin$options: exit code $code, expected $wanted"
        failed=1
    }
    for sentence in "$@"; do
        grep -qF -- "$sentence" "$dir/card" "$dir/err" && continue
        echo "$plugin$options: expected '$sentence' in the output:"
        cat "$dir/card" "$dir/err"
        failed=1
    done
}

for i in 0 1 2 3 4 5 6 7; do
    "$byoc" conform "$plugins/bad_layout.so" --only numerics/bad.conv2d/$i
done >"$dir/layouts"
for sentence in "(claims.opinion: " "prefers the data in 'NHCX', expected the axes" \
    "prefers the data in 'NNNNNNNNNNNNNNNNNNNNNNNN', expected a name"; do
    grep -qF "$sentence" "$dir/layouts" || {
        echo "bad_layout: expected '$sentence' in the output:"
        cat "$dir/layouts"
        failed=1
    }
done

# threads of a library that the plug-in links do not count as threads of its query
finds 0 "$plugins/threads_at_load.so" --only entry/query -- \
    "note: entry/query: opening the library started 1 thread, before any query"

# the printed command quotes a path for sh, and has the other options
cp "$plugins/wrong_numbers.so" "$dir/it's wrong.so"
finds 1 "$dir/it's wrong.so" --only regions/3 --seconds 30 -- \
    "byoc conform '$dir/it'\\''s wrong.so' --only regions/3 --seed 1 --seconds 30"
finds 1 "$plugins/wrong_numbers.so" --only regions/1000 -- "regions/1000"
finds 2 "$plugins/wrong_numbers.so" --only regions/x -- "found no case of this name"
# a sanitizer's malloc() has no statistics
grep -q __asan_init "$byoc" ||
    finds 1 "$plugins/forgets.so" --only heap/ref.add -- "(memory.heap: "

"$byoc" conform "$plugins/libbyoc_backend_ref.so" --valgrind \
    --only numerics/ref.add/0 >"$dir/card" 2>"$dir/err" || {
    echo "skipped: valgrind is not there, or does not run this byoc:"
    head -n 3 "$dir/card" "$dir/err"
    [ $failed = 0 ] && exit 77
    exit 1
}
finds 1 "$plugins/forgets.so" --valgrind --only numerics/ref.add/0 -- \
    "(memory.valgrind: " "1,000 bytes in 1 blocks are definitely lost" \
    "--only numerics/ref.add/0 --seed 1 --valgrind"
exit $failed
