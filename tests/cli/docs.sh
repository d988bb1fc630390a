#!/bin/sh
# docs.sh BYOC: every pass that there is has a row in docs/passes.md, every row
# of oneDNN's table one in docs/dnnl.md, every rule of the kit one in
# docs/conform.md, and there are no others; every test that
# tests/partition/README.md names is there.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: docs.sh BYOC" >&2; exit 2; }
top=$(dirname "$0")/../..

# compare PAGE THERE WRITTEN: two lists, each with a name a line
compare() {
    [ -n "$2" ] && [ "$2" = "$3" ] && return
    echo "what there is and the rows of $1 differ:"
    echo "$2" >"${TMPDIR:-/tmp}/byoc-docs.$$"
    echo "$3" | diff "${TMPDIR:-/tmp}/byoc-docs.$$" -
    rm -f "${TMPDIR:-/tmp}/byoc-docs.$$"
    exit 1
}

compare docs/passes.md \
    "$("$1" opt --list-passes | sed -n 's/^\([A-Za-z0-9]*\)  *level .*/\1/p' |
        sort)" \
    "$(sed -n 's/^| `\([A-Z][A-Za-z0-9]*\)` .*/\1/p' "$top/docs/passes.md" |
        sort)"
compare docs/dnnl.md \
    "$(sed -n 's/^ROW("\([^"]*\)".*/\1/p' "$top/runtime_dnnl/patterns.def" | sort)" \
    "$(sed -n 's/^| \(`dnnl[^|]*\) |.*/\1/p' "$top/docs/dnnl.md" |
        tr -d '` ' | tr , '\n' | sort)"
reasons=$(sed -n 's/^REASON([A-Z_]*, "\([a-z-]*\)".*/\1/p' \
    "$top/report/reasons.def" | sort)
[ -n "$reasons" ] || { echo "no reason in report/reasons.def"; exit 1; }
compare docs/ledger.md "$reasons" \
    "$(sed -n '/^| code /,/^$/s/^| `\([a-z-]*\)` .*/\1/p' "$top/docs/ledger.md" |
        sort)"
rules=$(sed -n 's/^RULE([A-Z_]*, "\([a-z.]*\)".*/\1/p' "$top/conform/rules.def" |
    sort)
compare docs/conform.md "$rules" \
    "$(sed -n '/^| Rule /,/^$/s/^| `\([a-z.]*\)` .*/\1/p' \
        "$top/docs/conform.md" | sort)"

cd "$top"
named=$(sed -n '/^|/p' tests/partition/README.md | grep -o '`[a-z0-9_/.]*`' |
    tr -d '`' | sort -u)
[ -n "$named" ] || { echo "tests/partition/README.md names no test"; exit 1; }
for name in $named; do
    case $name in
    */*) file=$name ;;
    *) file=tests/partition/$name.ir ;;
    esac
    [ -e "$file" ] || {
        echo "tests/partition/README.md names $name: no $file"
        exit 1
    }
done
