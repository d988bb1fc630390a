#!/bin/sh
# make_headers.sh DIR: generates possible future versions of byoc/backend.h from
# the present one: DIR/NAME/byoc/backend.h and its layout.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] || { echo "usage: make_headers.sh DIR" >&2; exit 2; }
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$1

# make NAME SED...: write header NAME, the present one changed by sed
make() {
    name=$1
    shift
    mkdir -p "$dir/$name/byoc"
    cp "$root/include/byoc/dtype.h" "$dir/$name/byoc"
    sed "$@" "$root/include/byoc/backend.h" >"$dir/$name/byoc/backend.h"
    if cmp -s "$root/include/byoc/backend.h" "$dir/$name/byoc/backend.h"; then
        echo "$name: found the header unchanged, expected sed to change it"
        exit 1
    fi
    "$root/scripts/abi" --layout "$dir/$name/byoc/backend.h" \
        >"$dir/$name/byoc/backend_layout.h"
}

minor='s/^\(#define BYOC_BACKEND_ABI\) BYOC_ABI(.*/\1 BYOC_ABI(1, 9)/'
# at the end of the structs that grow
grow='/^struct byoc_.* {$/,/^};/{
    /^struct byoc_\(ext\|codes\|region_codes\|view\|pattern\|place\|descriptor\|graph_.*\) {$/,/^};/b
    s/^};/    uint64_t newer;\n};/
}'

make newer -e "$minor" -e "$grow"
make needs -e "$minor" -e "$grow" \
    -e 's/^\(#define BYOC_BACKEND_NEEDS\) BYOC_ABI(.*/\1 BYOC_ABI(1, 9)/'
make major -e 's/^\(#define BYOC_BACKEND_ABI\) BYOC_ABI(.*/\1 BYOC_ABI(2, 0)/'
# a member in the midst of a struct
make moved -e "$minor" \
    -e '/^struct byoc_region {$/,/^};/s/^    const char \*json;/    uint64_t newer;\n&/'
# a member of another type
make retyped -e "$minor" \
    -e '/^struct byoc_probe {$/,/^};/s/impl\[120\]/impl[56]/'
# without a member
make gone -e "$minor" \
    -e '/^struct byoc_run_args {$/,/^};/s/^    void \*trace_ctx;$//'
# a struct that never grows
make view -e "$minor" \
    -e '/^struct byoc_view {$/,/^};/s/^};/    const int64_t *strides;\n};/'
