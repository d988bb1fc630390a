#!/bin/sh
# precision.sh BYOC: --precision computes in 16 bits: outputs stay float32 and are
# those of float32 within the type's tolerance, the report counts the operators,
# and `byoc compare` takes the type's tolerance, which a wrong result exceeds.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: precision.sh BYOC" >&2; exit 2; }
byoc=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

# complain TEXT [FILE]: print TEXT and the contents of FILE; the test fails
complain() {
    echo "$1"
    [ -z "$2" ] || sed 's/^/    /' "$2"
    bad=1
}

# model FACTOR: a network whose output has this factor; exp computes in float32
model() {
    cat <<END
def @main(%x: Tensor[(2, 64, 6, 6), float32]) {
  %0 = random[(64, 64, 3, 3), float32, seed=1];
  %1 = nn.conv2d(%x, %0, padding=[1, 1, 1, 1]);
  %2 = nn.relu(%1);
  %3 = nn.global_avg_pool2d(%2);
  %4 = nn.flatten(%3);
  %5 = random[(32, 64), float32, seed=2];
  %6 = nn.dense(%4, %5);
  %7 = exp(%6);
  %8 = multiply(%7, $1);
  add(%8, 1.0f)
}
END
}
model 3.0f >"$work/m.ir"
model 3.5f >"$work/wrong.ir"
cat >"$work/input.ir" <<'END'
def @main() {
  %0 = random[(2, 64, 6, 6), float32, seed=3];
  nn.relu(%0)
}
END
"$byoc" run "$work/input.ir" -o "$work/input" >"$work/out" 2>&1 ||
    complain "cannot make an input" "$work/out"

# run_model FILE FOLDER OPTION...: store the input and the output of a model or an
# artifact
run_model() {
    file=$1 folder=$2
    shift 2
    "$byoc" run "$work/$file" "$@" --input "x=$work/input/output_0.npy" \
        -o "$work/$folder" >"$work/out" 2>&1 ||
        complain "run $file $* failed" "$work/out"
    cp "$work/input/output_0.npy" "$work/$folder/input_0.npy"
}

run_model m.ir float32
run_model wrong.ir wrong
"$byoc" compile "$work/m.ir" --report "$work/none.json" -o "$work/none.so" \
    >"$work/none.txt" 2>&1 || complain "compile failed" "$work/none.txt"
! grep -q '"precision"' "$work/none.json" || complain "compile without --precision: found a precision in the ledger"

for type in fp16 bf16; do
    for way in "" --native; do
        so=$type$way.so
        # shellcheck disable=SC2086
        "$byoc" compile "$work/m.ir" --precision=$type $way -o "$work/$so" \
            >"$work/$type.txt" 2>&1 ||
            complain "compile $type $way failed" "$work/$type.txt"
        grep -q "^precision $type: 5 of 8 float32 operators compute in 16 bits" \
            "$work/$type.txt" ||
            complain "$type $way: expected 5 of 8 operators, found:" \
                "$work/$type.txt"
        run_model "$so" $type
        # shellcheck disable=SC2086
        run_model m.ir model --precision=$type $way
        cmp "$work/$type/output_0.npy" "$work/model/output_0.npy" ||
            complain "$type $way: the artifact differs from the model"
        ! cmp -s "$work/$type/output_0.npy" "$work/float32/output_0.npy" ||
            complain "$type $way: nothing was rounded to 16 bits"
        "$byoc" compare "$work/$so" --data "$work/float32" \
            >"$work/out" 2>&1 || complain "$type $way: compare" "$work/out"
        ! "$byoc" compare "$work/$so" --data "$work/wrong" \
            >"$work/out" 2>&1 ||
            complain "$type $way: compare accepted wrong outputs" "$work/out"
    done
    "$byoc" verify "$work/$type.so" >"$work/out" 2>&1 ||
        complain "$type: verify failed" "$work/out"
    "$byoc" report show "$work/$type.so" >"$work/shown" ||
        complain "$type: report show failed" "$work/shown"
    grep -q "^precision $type: " "$work/shown" ||
        complain "$type: report show has no precision" "$work/shown"
done

# refused
! "$byoc" compile "$work/m.ir" --precision=int8 -o "$work/no.so" \
    >"$work/out" 2>&1 || complain "--precision=int8 was accepted"
grep -q 'fp16' "$work/out" || complain "expected a list of types, found:" "$work/out"
! "$byoc" opt "$work/m.ir" --passes=FoldConstant --precision=fp16 \
    >"$work/out" 2>&1 || complain "a list of passes was accepted with --precision"
exit $bad
