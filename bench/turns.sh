# turns.sh: included (.) by the benchmarks that run engines in turns.
# SPDX-License-Identifier: Apache-2.0

# Wait until the processors are at least 95% idle for half a second. After a minute,
# print a note and return.
# Does not wait if $busy, which --busy sets, is not empty.
wait_until_idle() {
    [ -z "$busy" ] || return 0
    for _ in $(seq 120); do
        before=$(sed -n 's/^cpu  //p' /proc/stat)
        sleep 0.5
        after=$(sed -n 's/^cpu  //p' /proc/stat)
        if echo "$before $after" | awk '{ t = 0; for (i = 1; i <= 10; i++)
            t += $(i + 10) - $i; exit !(($14 - $4) >= 0.95 * t) }'; then
            return
        fi
    done
    echo "note: the machine was not idle within a minute; measuring anyway" >&2
}

# median FILE: print the median of the numbers in the file, one on each line
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
