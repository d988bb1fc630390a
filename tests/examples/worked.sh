#!/bin/sh
# worked.sh BUILD: installs byoc from the build folder BUILD into a new folder, and runs
# there the commands of the pages of docs/ that work through a model of examples/.
# Exits with 77 without cc, pkg-config or NumPy.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: worked.sh BUILD" >&2; exit 2; }
top=$(cd "$(dirname "$0")/../.." && pwd)
for program in cc pkg-config; do
    command -v $program >/dev/null || {
        echo "note: $program is not installed"
        exit 77
    }
done
python3 -c 'import numpy' 2>/dev/null || PATH=/usr/bin:$PATH
python3 -c 'import numpy' 2>/dev/null || {
    echo "note: NumPy is not installed"
    exit 77
}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cmake --install "$1" --prefix "$tmp/prefix" >/dev/null || exit 1
"$top/scripts/try-tutorial" "$tmp/prefix" \
    "$top/docs/detect.md" "$top/docs/trees.md" "$top/docs/voice.md"
