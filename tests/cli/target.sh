#!/bin/sh
# target.sh BYOC: compile --target aarch64 (on ARM: x86_64) writes an artifact for that
# machine, the same each time, all native, with the reason in its ledger; this machine
# refuses to load it. If BYOC_ARM64 names a build for 64-bit ARM and BYOC_ARM64_ROOT
# the folder of its libraries, the artifact also runs there under qemu, with the
# expected outputs. Exits with 77 without the cross compiler.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: target.sh BYOC" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
digits=$(cd "$(dirname "$0")/../../examples/digits" && pwd)
for name in BYOC_ARM64 BYOC_ARM64_ROOT; do
    eval "[ -z \"\${$name-}\" ] || $name=\$(cd \"\$$name\" && pwd)"
done
BYOC_PLUGIN_PATH=$(dirname "$byoc")
export BYOC_PLUGIN_PATH
. "$(dirname "$0")/../folder.sh"
passed=0 failed=0

# same WHAT FOUND EXPECTED: the two texts are equal; WHAT names them if they are not
same() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1: found '$2', expected '$3'"
    fi
}

"$byoc" compile "$digits/digits.onnx" --target vax -o x.so 2>err
same "an unknown machine: exit code" $? 2
same "an unknown machine: message" "$(grep -c 'found "vax", expected one of x86_64, aarch64' err)" 1
same "an unknown machine: output file" "$(ls x.so 2>/dev/null)" ""
case $(uname -m) in
x86_64) other=aarch64 machine=b700 ;;
*) other=x86_64 machine=3e00 ;;
esac
if ! command -v "$other-linux-gnu-gcc" >/dev/null; then
    "$byoc" compile "$digits/digits.onnx" --target $other -o x.so 2>err >out
    same "without a cross compiler: exit code" $? 2
    same "without a cross compiler: message" "$(grep -c "$other-linux-gnu-gcc" err)" 1
    echo "note: --target was not tried: no $other-linux-gnu-gcc (scripts/deps arm64)"
    [ $failed = 0 ] && exit 77
    exit 1
fi

CC=/nowhere/cc "$byoc" compile "$digits/digits.onnx" --target $other \
    --report ledger.json -o other.so >out 2>err
same "exit code" $? 0
same "the warning" "$(grep -c "dnnl was left out: .* compiled for $other" err)" 1
same "the file's machine" "$(od -An -t x1 -j18 -N2 other.so | tr -d ' ')" $machine
same "nodes with the reason" "$(grep -c '"where": "native", "reason": "other-machine"' \
    ledger.json)" 15
same "the ledger's machine" "$(grep -c "\"cpu\": \"$other\"" ledger.json)" 1
"$byoc" compile "$digits/digits.onnx" --target $other -o again.so >out 2>err
same "the same bytes again" "$(cksum <again.so)" "$(cksum <other.so)"
"$byoc" run other.so --data "$digits/batch0." >out 2>err
same "run on this machine: exit code" $? 4
same "run on this machine: message" "$(grep -c 'made for another processor' err)" 1
"$byoc" compile "$digits/digits.onnx" --target $other --require-offload 90 \
    -o gate.so >out 2>err
same "a gate: exit code" $? 1
"$byoc" compile "$digits/digits.onnx" --native -o host.so >out 2>err
same "this machine: exit code ($(cat err))" $? 0
"$byoc" compile "$digits/digits.onnx" --native --target "$(uname -m)" \
    -o named.so >out 2>err
same "this machine by its name" "$(cksum <named.so)" "$(cksum <host.so)"

if [ -n "${BYOC_ARM64-}" ] && [ $other = aarch64 ]; then
    on_arm() {
        qemu-aarch64 -L "$BYOC_ARM64_ROOT" "$BYOC_ARM64/byoc" "$@"
    }
    on_arm compare other.so --data "$digits/batch0." >out 2>err
    same "under qemu, expected outputs: exit code ($(cat err))" $? 0
    echo 'def @main(%x: Tensor[(64, 100), float32]) {
        multiply(sigmoid(%x), tanh(%x)) }' >fused.ir
    "$byoc" compile fused.ir --target $other -o fused.so >out 2>err
    same "fused kernels: exit code ($(cat err))" $? 0
    same "fused kernels: instruction set" "$(on_arm inspect fused.so |
        grep -c '1 fused, for neon')" 1
    on_arm compare fused.so >out 2>err
    same "under qemu, as the native kernels: exit code ($(cat err))" $? 0
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
