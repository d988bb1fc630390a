#!/bin/sh
# extract.sh BYOC PLUGINS: an extracted region of a model runs alone, from a
# text and from an artifact; a reduced region still fails; other requests are
# refused, and leave no file behind.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: extract.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(cd "$2" && pwd)
ref=$plugins/libbyoc_backend_ref.so wrong=$plugins/wrong_numbers.so
. "$(dirname "$0")/../folder.sh"
passed=0 failed=0

# holds WHAT COMMAND...: COMMAND succeeds; WHAT describes the condition if it fails
holds() {
    what=$1
    shift
    if "$@" >out 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what:"
        cat out
    fi
}

# refused WHAT PATTERN OPTIONS...: extract ends with exit code 2, prints PATTERN and makes
# no folder
refused() {
    what=$1 pattern=$2
    shift 2
    "$byoc" extract model.ir --plugin "only:$ref" "$@" >out 2>err
    code=$?
    if [ $code -eq 2 ] && grep -q "$pattern" err && [ ! -e no ] &&
        [ -z "$(find . -name 'no.*')" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: exit code $code, $(cat err)"
    fi
}

cat >model.ir <<'IR'
def @main(%x: Tensor[(4, 6, 8), float32], %y: Tensor[(8), float32]) -> Tensor[(4, 6, 8), float32] {
  %0 = nn.relu(%x);
  %1 = tanh(%0);
  %2 = add(%1, random[(8), float32, seed=3]);
  %3 = multiply(%2, %0);
  %4 = nn.relu(%3);
  %5 = add(%4, %y);
  multiply(%5, 0.5f)
}
IR

sed 's/(4, 6, 8)/(N, 6, 8)/g' model.ir >varying.ir
"$byoc" extract varying.ir --plugin "only:$ref" --region 1 -o no >out 2>err
holds "a symbolic dim is refused: $?" test $? -eq 2
holds "the message advises --dim" grep -q "has the symbolic dim 'N', .* with --dim N=1" err
holds "a refused symbolic dim leaves no folder" test ! -e no

holds "a region of a text" "$byoc" extract model.ir --plugin "only:$ref" \
    --region 1 -o text
holds "the extracted region has its JSON" grep -q '"format": *"byoc-graph"' text/region.json
holds "the extracted region has its constants" test -e text/const_0.npy
holds "the extracted region runs natively" "$byoc" run text/region.ir --data text --native -o ran
holds "native kernels give the stored outputs" cmp text/output_0.npy ran/output_0.npy
holds "the backend gives the stored outputs" "$byoc" compare text/region.ir --data text \
    --plugin "only:$ref" --backend ref --require-offload 100
holds "compile an artifact" "$byoc" compile model.ir --plugin "only:$ref" -o model.so
holds "a region of an artifact" "$byoc" extract model.so --plugin "only:$ref" \
    --region 1 -o artifact
holds "the artifact's region equals the text's" cmp text/region.ir artifact/region.ir
holds "the artifact's region has the same outputs" cmp text/output_0.npy artifact/output_0.npy

test="'$byoc' compare region.ir --data . --plugin 'only:$wrong' --backend ref"
holds "reduce a region" "$byoc" extract model.ir --plugin "only:$wrong" \
    --backend ref --region 1 -o small --reduce --test "$test"
# two lines have a name before a bracket: def @main( and the operator
holds "the reduced region has one operator" test "$(grep -c '[a-z](' small/region.ir)" -eq 2
holds "the reduced region's input has one element" grep -q 'input0: Tensor\[([1, ]*), float32\]) ' \
    small/region.ir
holds "the reduced region still fails the test" sh -c "cd small && $test; [ \$? -eq 1 ]"
holds "reduce the region again" "$byoc" extract model.ir --plugin "only:$wrong" \
    --backend ref --region 1 -o again --reduce --test "$test"
holds "both reductions give the same" diff -r small again

cat >branches.ir <<'IR'
def @main(%c: Tensor[(), bool], %x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  if (%c) { nn.relu(add(%x, %y)) } else { multiply(%x, 0.5f) }
}
IR
"$byoc" extract branches.ir --plugin "only:$ref" --region 0 -o no >out 2>err
holds "a region with branches is refused" test $? -eq 2
holds "the message names the if" grep -q "found an .if., expected operators" err
holds "a refused region with branches leaves no folder" test ! -e no

# a chain of additions: one region that reads all inputs
awk 'BEGIN {
    printf "def @main("
    for (i = 0; i < 514; i++)
        printf "%s%%x%d: Tensor[(4), float32]", i ? ", " : "", i
    print ") {"
    print "  %s0 = add(%x0, %x1);"
    for (i = 1; i < 512; i++)
        printf "  %%s%d = add(%%s%d, %%x%d);\n", i, i - 1, i + 1
    print "  add(%s511, %x513)\n}"
}' >operands.ir
"$byoc" extract operands.ir --plugin "only:$ref" --region 0 -o no >out 2>err
holds "a region of too many operands is refused" test $? -eq 2
holds "the message gives the number of operands" \
    grep -q "region 0: found 514 operands, expected at most 512" err

mkdir here
refused "no such region" "region 7: found 2 regions in the model, expected a number from 0 to 1" --region 7 -o no
refused "an output that exists" "here: found an existing file" --region 0 -o here
refused "a folder that cannot be created" "cannot create the folder" -o nowhere/no
refused "a test that succeeds" "the test succeeds on the whole region" \
    -o no --reduce --test true
refused "a test that takes too long" "did not end within 0.1 seconds" \
    -o no --reduce --test "sleep 9" --test-seconds 0.1
refused "no test" "reduce without --test" -o no --reduce
refused "no folder" "found no -o" --region 0

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
