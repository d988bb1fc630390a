#!/bin/sh
# load.sh BYOC: tests `byoc bench` with several clients, and at a fixed rate of runs:
# at most the runs that are due begin, and the time of a run counts from the moment
# when it was due.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: load.sh BYOC" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../../examples/digits" || exit 2
failed=0

# bench CONDITION OPTION...: run `byoc bench`, and expect the awk expression CONDITION
# to hold; v["NAME"] in it is the JSON's member NAME
bench() {
    condition=$1
    shift
    found=$("$byoc" bench digits.onnx --native --threads 1 --json "$@" |
        tr -d '{"} ' | tr ',' '\n' |
        awk -F: "{ v[\$1] = \$2 } END { print ($condition) ? \"ok\" : \"no\"
            for (name in v) print name, v[name] }")
    [ "$(echo "$found" | head -n 1)" = ok ] || {
        failed=1
        echo "FAILED: $*: expected $condition:"
        echo "$found"
    }
}

bench 'v["clients"] == 1 && v["runs"] == 20 && !("rate" in v) &&
    v["runs_per_second"] > 0' --iterations 20 --seconds 0
# "runs" counts the runs of all clients
bench 'v["clients"] == 3 && v["runs"] == 50' --iterations 50 --seconds 0 --clients 3
# 50 runs at 100 runs per second take half a second, however short each run is
bench 'v["runs"] == 50 && v["rate"] == 100 && v["runs_per_second"] < 105' \
    --iterations 50 --seconds 0 --clients 2 --rate 100
bench 'v["runs"] <= 40 && v["runs_per_second"] < 85' --seconds 0.5 --rate 80
# no machine reaches this rate: half of the runs wait for most of the 0.5 s, and those
# that have not begun by then are dropped
bench 'v["runs"] < 5000000 && v["p99_ms"] > 300 && v["median_ms"] > 100' \
    --seconds 0.5 --clients 2 --rate 10000000
# the output without --json
"$byoc" bench digits.onnx --clients 2 --rate 50 --seconds 0.2 |
    grep -q 'runs/s of 50.0 that were due, by 2 clients' || {
    failed=1
    echo "FAILED: bench without --json: expected a line with the rate and the clients"
}
exit $failed
