#!/bin/sh
# pictures.sh BYOC: tests the pages, graphs, charts and annotated models that check,
# inspect, report and bench write: the page and the graph have each node once, Graphviz
# reads the graph, and the ONNX checker the model. Checks whose tools are not installed
# are skipped, and the exit code is 77.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: pictures.sh BYOC" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
tests=$(cd "$(dirname "$0")/.." && pwd)
BYOC_PLUGIN_PATH=$(dirname "$byoc")
export BYOC_PLUGIN_PATH
# the leak checker's own walk over thread-local memory crashes now and then
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}intercept_tls_get_addr=0
export ASAN_OPTIONS
. "$(dirname "$0")/../folder.sh"
passed=0 failed=0

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}

# same WHAT FOUND EXPECTED: the two texts are equal; WHAT names them if they are not
same() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        fail "$1: found '$2', expected '$3'"
    fi
}

# count PATTERN FILE: print the number of lines that match
count() {
    grep -c -e "$1" "$2"
}

# page_ledger PAGE: print the ledger in the page, which equals the output of --json
page_ledger() {
    sed -n '/ id="ledger">$/,/^<\/script>$/p' "$1" |
        sed '1d; $d; s/^{"byoc": .*, "ledger": //'
}

# check MODEL: write the model's page and graph, and compare their nodes with the ledger
check() {
    model=$1 name=$(basename "$1")
    "$byoc" check "$model" --html page.html --dot graph.dot --json \
        >ledger.json 2>err || { fail "$name: $(cat err)"; return; }
    nodes=$(count '^ *{"name": .*"tried"' ledger.json)
    same "$name: nodes of the graph" \
        "$(count '^ *n[0-9]* \[label=' graph.dot)" \
        "$nodes"
    same "$name: numbers of the graph" "$(sed -n \
        's/^ *\(n[0-9]*\) \[label=.*/\1/p' graph.dot | sort -u | wc -l)" \
        "$nodes"
    same "$name: clusters" "$(count '^ *subgraph cluster_' graph.dot)" \
        "$(count '"outcome": "kept"' ledger.json)"
    same "$name: edges" "$(count ' -> ' graph.dot)" "$(sed -n \
        's/^ *{"name": .*"inputs": \[\([^]]*\)\].*/\1/p' ledger.json |
        tr ',' '\n' | grep -c '[0-9]')"
    page_ledger page.html | sed 's/\\u003c/</g' >page_ledger
    # in the page, one more brace closes the object around the ledger
    { cat ledger.json; echo '}'; } | tr -d '\n' >expected
    same "$name: the ledger in the page" "$(tr -d '\n' <page_ledger | cksum)" \
        "$(cksum <expected)"
    if command -v dot >/dev/null; then
        dot -Tsvg graph.dot >graph.svg 2>err && [ ! -s err ] ||
            fail "$name: dot: $(head -n 1 err)"
        same "$name: nodes that dot draws" "$(count 'class="node"' graph.svg)" \
            "$nodes"
    fi
}

digits=$tests/../examples/digits/digits.onnx
check "$digits"
# goldens of partition whose command has no patterns or options; one file in four, to
# save time
for golden in "$tests"/partition/*.ir; do
    n=$((${n:-0} + 1))
    [ $((n % 4)) = 1 ] || continue
    run=$(sed -n '1s/.*RUN: byoc partition //p' "$golden")
    case $run in "%s" | "") ;; *) continue ;; esac
    grep -q '^def @main' "$golden" && check "$golden"
done

# an artifact has the ledger as well
"$byoc" compile "$digits" -q -o digits.so &&
    "$byoc" inspect digits.so --html so.html --dot so.dot >out
"$byoc" check "$digits" --html page.html --dot graph.dot >out
same "the page of an artifact" "$(cksum <so.html)" "$(cksum <page.html)"
same "the graph of an artifact" "$(cksum <so.dot)" "$(cksum <graph.dot)"

# two ledgers, and times: their parts in the page and in the chart
"$byoc" check "$digits" --exclude MaxPool --report new.json >out
"$byoc" check "$digits" --report old.json >out
"$byoc" report diff old.json new.json --html diff.html >out
same "report diff --html: exit code" $? 1
"$byoc" check "$digits" --exclude MaxPool --html check.html --against old.json >out
same "check --against and report diff write the same" "$(cksum <diff.html)" \
    "$(cksum <check.html)"
same "both ledgers in the page" "$(grep -o '"format": "byoc-ledger"' diff.html |
    wc -l)" 2
"$byoc" bench digits.so --html times.html --svg times.svg --seconds 0 >out
same "bench --html: exit code" $? 0
same "a profile in the page" "$(count '"median_us":' times.html)" 1
same "steps in the chart" "$(grep -c -E 'class="(backend|native)"' times.svg)" \
    "$("$byoc" bench digits.so --profile --json --seconds 0 |
        grep -c '"operators": "')"
# a label is a line of the bar's tooltip, or the beginning of one and an ellipsis
same "labels that are cut without an ellipsis" "$(tr '\n' '|' <times.svg |
    sed 's/<g>/\n&/g' | awk '/<title>/ {
        lines = $0
        sub(/.*<title>/, "|", lines)
        sub(/<\/title>.*/, "|", lines)
        while (match($0, /<text[^>]*>[^<]*/)) {
            label = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            sub(/<text[^>]*>/, "", label)
            bad += !index(lines, "|" label "|") &&
                !(sub(/&#8230;$/, "", label) && index(lines, "|" label))
        }
    } END { print bad + 0 }')" 0
same "labels of which fewer than five letters are left" \
    "$(grep -c '>[^<]\{0,4\}&#8230;<' times.svg)" 0

# refused DESCRIPTION WORDS OPTION...: exit code 2, and these words
refused() {
    what=$1 words=$2
    shift 2
    "$byoc" "$@" >out 2>err
    same "$what: exit code" $? 2
    grep -q -e "$words" err || fail "$what: $(cat err)"
}
refused "an old ledger without a page" "no effect without --html" \
    check "$digits" --against old.json
echo "{" >none.json
refused "an old ledger that is malformed" "the old ledger: .*malformed" \
    check "$digits" --html page.html --against none.json
refused "a page over the old ledger" "found the old ledger as the output" \
    check "$digits" --html old.json --against old.json
refused "a chart over the model" "found the model as the output" \
    bench digits.so --svg digits.so --seconds 0
refused "a page of one ledger" "found --html, expected it with .report diff" \
    report show old.json --html page.html
refused "a chart of many clients" "--svg has no effect with --clients" \
    bench digits.so --svg chart.svg --clients 2

# a model as text cannot be written as ONNX
ir=$tests/partition/$(ls "$tests/partition" | grep -m1 '\.ir$')
"$byoc" check "$ir" --dump-onnx dumped.onnx >out 2>err
same "--dump-onnx of text: exit code" $? 2
grep -q "only an ONNX model can be written as one" err || fail "$(cat err)"
[ ! -e dumped.onnx ] || fail "--dump-onnx of text left a file"

# the model with metadata compiles to the same artifact
"$byoc" check "$digits" --json --dump-onnx digits.onnx >before &&
    "$byoc" check digits.onnx --json >after
same "the ledger of a model with metadata" "$(cksum <after)" "$(cksum <before)"
python=
for p in python3 /usr/bin/python3; do
    "$p" -c 'import onnx; onnx.load, onnx.checker' 2>/dev/null && python=$p
done
if [ -n "$python" ]; then
    "$python" - "$digits" digits.onnx <<'END' || fail "the model with metadata"
import sys
import onnx
old, new = (onnx.load(path) for path in sys.argv[1:])
onnx.checker.check_model(new, full_check=True)
def without_metadata(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.metadata_props[:]
    copy.DiscardUnknownFields()
    for node in copy.graph.node:
        if hasattr(node, "metadata_props"):
            del node.metadata_props[:]
    return copy.SerializeToString(deterministic=True)
assert without_metadata(old) == without_metadata(new)
for before, after in zip(old.graph.node, new.graph.node):
    assert len(after.SerializeToString()) > len(before.SerializeToString())
    assert b"byoc.backend" in after.SerializeToString()
assert [p.key for p in new.metadata_props] == ["byoc.version", "byoc.summary"]
END
else
    echo "note: the ONNX checker is not installed (python3-onnx)"
fi
command -v dot >/dev/null || echo "note: Graphviz is not installed (graphviz)"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 100 ] || exit 1
# 77: a part was skipped
[ -n "$python" ] && command -v dot >/dev/null || exit 77
