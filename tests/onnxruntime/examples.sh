#!/bin/sh
# examples.sh PROVIDER INCLUDE LIBRARY PREFIX: tests that the programs of
# examples/onnxruntime find the digits' labels. INCLUDE is the folder of ONNX Runtime's
# headers, LIBRARY its library; PREFIX is a folder that scripts/fetch-onnxruntime
# filled, whose Python runs the Python example. With "" for LIBRARY the C++ example is
# left out, with "" for PREFIX the Python example.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 4 ] && [ -e "$1" ] || {
    echo "usage: examples.sh PROVIDER INCLUDE LIBRARY PREFIX" >&2
    exit 2
}
provider=$1 include=$2 library=$3 prefix=$4
top=$(cd "$(dirname "$0")/../.." && pwd)
digits=$top/examples/digits
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
failed=0

# the expected labels, a line each
"${PYTHON3:-python3}" - "$digits/batch0.labels.npy" >"$tmp/labels" <<'END'
import struct
import sys

data = open(sys.argv[1], "rb").read()
head = 10 + struct.unpack_from("<H", data, 8)[0]
letters = {"<i8": "q", "<i4": "i", "|u1": "B"}  # of struct, for NumPy's types
letter = next(letters[t] for t in letters if t.encode() in data[:head])
n = (len(data) - head) // struct.calcsize(letter)
print(*struct.unpack_from("<%d%s" % (n, letter), data, head), sep="\n")
END
[ "$(wc -l <"$tmp/labels")" -eq 64 ] || {
    echo "batch0.labels.npy: found $(wc -l <"$tmp/labels") labels, expected 64"
    exit 1
}
# finds NAME COMMAND...: the command finds at least 62 of the 64 labels
finds() {
    name=$1
    shift
    "$@" "$provider" "$digits/digits.onnx" "$digits/batch0.input_0.npy" \
        >"$tmp/found" 2>"$tmp/err" || {
        echo "FAILED: $name: exit $?"
        grep -v -e '^Schema error' -e '^$' "$tmp/err"
        failed=1
        return
    }
    right=$(paste "$tmp/labels" "$tmp/found" | awk '$1 == $2' | wc -l)
    [ "$right" -ge 62 ] || { echo "FAILED: $name: $right of 64"; failed=1; }
    echo "$name: $right of 64 digits"
}

# refuses NAME TEXT COMMAND...: the command ends with 2 and prints TEXT
refuses() {
    name=$1 text=$2
    shift 2
    "$@" >/dev/null 2>"$tmp/err"
    [ $? -eq 2 ] && grep -q -e "$text" "$tmp/err" && return
    echo "FAILED: $name:"
    cat "$tmp/err"
    failed=1
}

if [ -n "$library" ] && command -v c++ >/dev/null; then
    c++ -std=c++17 -O1 -o "$tmp/digits" "$top/examples/onnxruntime/digits.cpp" \
        -isystem "$include" "$library" -Wl,-rpath,"$(dirname "$library")" ||
        exit 1
    finds C++ "$tmp/digits"
    refuses "C++ without a provider" 'nowhere.so' "$tmp/digits" \
        /nowhere.so "$digits/digits.onnx" "$digits/batch0.input_0.npy"
fi
[ ! -x "$prefix/python3" ] ||
    finds Python "$prefix/python3" "$top/examples/onnxruntime/digits.py"
exit $failed
