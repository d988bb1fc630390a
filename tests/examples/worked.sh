#!/bin/sh
# worked.sh BUILD: installs byoc into a folder, and follows the pages of docs/
# there that work through a model of examples/.
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
