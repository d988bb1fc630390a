#!/bin/sh
# docs.sh BYOC: every pass that there is has a row in docs/passes.md, and every
# row is a pass.
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: docs.sh BYOC" >&2; exit 2; }
page=$(dirname "$0")/../../docs/passes.md
passes=$("$1" opt --list-passes | sed -n 's/^\([A-Za-z0-9]*\)  *level .*/\1/p' |
    sort)
rows=$(sed -n 's/^| `\([A-Z][A-Za-z0-9]*\)` .*/\1/p' "$page" | sort)
[ -n "$passes" ] && [ "$passes" = "$rows" ] || {
    echo "passes and the rows of docs/passes.md differ:"
    echo "$passes" >"${TMPDIR:-/tmp}/byoc-passes.$$"
    echo "$rows" | diff "${TMPDIR:-/tmp}/byoc-passes.$$" -
    rm -f "${TMPDIR:-/tmp}/byoc-passes.$$"
    exit 1
}
