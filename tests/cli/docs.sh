#!/bin/sh
# docs.sh BYOC: checks that the tables of docs/ list exactly the existing
# passes, rows of oneDNN's table, reasons and rules, and debian/ the exported
# functions and the version; that docs/README.md lists every page; and that everything that
# pages refer to exists: the files in docs/glossary.md, docs/tour.md and
# tests/partition/README.md, the passes and options in the tables of
# equivalents, and the targets of links between documents.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: docs.sh BYOC" >&2; exit 2; }
top=$(dirname "$0")/../..
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")

# compare PAGE EXPECTED FOUND: two lists, one name on each line
compare() {
    [ -n "$2" ] && [ "$2" = "$3" ] && return
    echo "the source (<) and the rows of $1 (>) differ:"
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
compare debian/libbyoc0.symbols \
    "$(sed -n 's/^ *\(byoc_[a-z_]*\);$/\1/p' "$top/cmake/byoc.map.in" \
        "$top/cmake/byoc_runtime.map.in" | sort)" \
    "$(sed -n 's/^ \(byoc_[a-z_]*\)@BYOC_0.1 .*/\1/p' \
        "$top/debian/libbyoc0.symbols" | sort)"
compare debian/changelog \
    "$(sed -n 's/^project(byoc VERSION \([0-9.]*\) .*/\1/p' "$top/CMakeLists.txt")" \
    "$(sed -n '1s/^byoc (\([0-9.]*\)) .*/\1/p' "$top/debian/changelog")"

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

# glossary: the last column of each row names files
named=$(sed -n '/^|/s/.*| \(`[^|]*`\) |$/\1/p' docs/glossary.md |
    grep -o '`[^`]*`' | tr -d '`' | sort -u)
[ "$(echo "$named" | wc -l)" -ge 30 ] || {
    echo "docs/glossary.md names fewer than 30 files"
    exit 1
}
for name in $named; do
    [ -e "$name" ] || {
        echo "docs/glossary.md names $name, which does not exist"
        exit 1
    }
done

# the index: every page but itself
compare docs/README.md "$(ls docs/*.md | sed 's,docs/,,' | grep -v README)" \
    "$(grep -o '](\([a-z-]*\.md\)' docs/README.md | cut -c3- | sort -u)"

# docs/tour.md: names with a slash are paths
for name in $(grep -o '`[a-z_0-9]*/[a-z_0-9./-]*`' docs/tour.md | tr -d '`' | sort -u); do
    [ -e "$name" ] || [ -e "include/$name" ] || {
        echo "docs/tour.md names $name, which does not exist"
        exit 1
    }
done

# the passes and options in the tables of equivalents exist
passes=$("$byoc" opt --list-passes)
commands=$(sed -n '/define BYI_COMMANDS/,/^$/p' cli/cli.h | grep -o 'X([a-z]*)' | tr -d 'X()')
help=$(for command in $commands; do "$byoc" "$command" --help; done)
for page in docs/from-*.md docs/serving.md docs/tour.md; do
    for name in $(grep -o '`[A-Z][A-Za-z]*` | \[passes' "$page" |
        grep -o '`.*`' | tr -d '`'); do
        echo "$passes" | grep -q "^$name " || {
            echo "$page names the pass $name, which does not exist"
            exit 1
        }
    done
    for name in $(grep -o '`byoc [a-z]* [^`|]*`\|`--[^`]*`' "$page" |
        grep -o -e '--[a-z][a-z-]*' | sort -u); do
        echo "$help" | grep -q -e "$name\b" || {
            echo "$page names $name, which no command has"
            exit 1
        }
    done
done

# links: [text](target) relative to the page, and `docs/NAME.md` in the text
pages="README.md HACKING.md docs/*.md bench/results/*.md"
bad=0
for page in $pages; do
    for link in $(grep -o '](\([^)# ]*\)' "$page" | cut -c3- |
        grep -v '^[a-z]*:' | sort -u); do
        [ -e "$(dirname "$page")/$link" ] || {
            echo "$page links to $link, which does not exist"
            bad=1
        }
    done
    for link in $(grep -o '`docs/[a-z-]*\.md`' "$page" | tr -d '`' | sort -u); do
        [ -e "$link" ] || {
            echo "$page names $link, which does not exist"
            bad=1
        }
    done
done
exit $bad
