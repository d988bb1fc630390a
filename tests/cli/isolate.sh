#!/bin/sh
# isolate.sh BYOC PLUGINS: --isolate: a plug-in that crashes gives a reason and
# a warning, and the rest of the model is compiled as without it. If no plug-in
# crashes, the results are the same as without --isolate.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: isolate.sh BYOC PLUGINS" >&2; exit 2; }
set -u
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") plugins=$(cd "$2" && pwd)
digits=$(cd "$(dirname "$0")/../../examples/digits" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# model NAME OP: write NAME.ir, with an add, which the backend ref runs, between calls
# of OP; its random[...] is a constant whose values are not in the text
model() {
    cat >"$dir/$1.ir" <<END
def @main(%x: Tensor[(4, 8), float32], %y: Tensor[(8), float32]) {
  %0 = $2(%x) #["first": "Op"];
  %1 = add(%0, %y) #["second": "Add"];
  %2 = subtract(%1, random[(4, 8), float32, seed=1]) #["third": "Sub"];
  $2(%2) #["fourth": "Op"]
}
END
}

# expect NAME FILE WORD: the file contains WORD
expect() {
    grep -qF -- "$3" "$2" && return
    echo "$1: expected '$3' in the output:"
    sed 's/^/    /' "$2"
    failed=1
}

# expect_code NAME FOUND EXPECTED: compare exit codes
expect_code() {
    [ "$2" = "$3" ] && return
    echo "$1: found exit code $2, expected $3"
    failed=1
}

# crashes OP WORD [SECONDS]: compile a model with OP, for which crashes.so crashes, exits or
# hangs; the warning contains WORD, which says how and in which function
crashes() {
    model "$1" "$1"
    timeout 1200 "$byoc" compile "$dir/$1.ir" -o "$dir/$1.so" --isolate \
        --isolate-seconds "${3:-30}" --isolate-mib 128 --report "$dir/$1.json" \
        --plugin "only:$plugins/crashes.so:$plugins/libbyoc_backend_ref.so" \
        --backend crashes,ref >"$dir/out" 2>"$dir/err"
    code=$?
    [ "$code" = 0 ] || {
        echo "$1: exit code $code, expected 0:"
        sed 's/^/    /' "$dir/err"
        failed=1
        return
    }
    expect "$1" "$dir/err" "crashes was left out: its process "
    expect "$1" "$dir/err" "$2"
    expect "$1" "$dir/$1.json" '"backend-failed"'
    expect "$1" "$dir/$1.json" '"ref.add"'
}

crashes tanh 'crashed with signal 11 (Segmentation fault) in accept() of crashes.any'
crashes exp 'timed out after 1 s in probe()' 1
crashes sqrt ' in compile()'
crashes sigmoid 'exited with code 3 in load or unload()'
crashes ceil 'exited with code 0 in load or unload()'
crashes sin 'exited with code 0 in load or unload()'
crashes abs 'crashed with signal 6 (Aborted) in load or unload()'
crashes cos 'crashed with signal 25 (File size limit exceeded) after load or unload()'

# without isolation a plug-in that ends the process ends byoc with a message, and no
# temporary file is left
for pair in 'sigmoid exit()' 'ceil _exit()' 'sin quick_exit()'; do
    op=${pair% *}
    mkdir "$dir/tmp"
    TMPDIR=$dir/tmp "$byoc" compile "$dir/$op.ir" -o "$dir/exits.so" --backend crashes \
        --plugin "only:$plugins/crashes.so" >"$dir/out" 2>"$dir/err"
    expect_code "$op" $? 3
    expect "$op" "$dir/err" "byoc compile: found a call of ${pair#* } by a library, in \
load() of the plug-in crashes"
    rmdir "$dir/tmp" || failed=1
done

# ends COMMAND CODE MODEL PLUGIN WORD: without isolation, a plug-in that crashes ends the
# command with a message that contains WORD, and no temporary file is left
ends() {
    mkdir "$dir/tmp"
    # in a subshell, whose stderr gets what the shell says about the signal
    (TMPDIR=$dir/tmp ASAN_OPTIONS=handle_segv=0:detect_leaks=0 "$byoc" "$1" \
        "$dir/$3.ir" -o "$dir/ended" --plugin "only:$plugins/$4.so" \
        >"$dir/out" 2>"$dir/err"
    exit $?) 2>/dev/null
    expect_code "$1 $3 $4" $? "$2"
    expect "$1 $3 $4" "$dir/err" "byoc $1: crashed with signal $5"
    rmdir "$dir/tmp" || failed=1
}

ends compile 139 tanh crashes \
    '11 (Segmentation fault) in accept() of crashes.any of the plug-in crashes'
ends compile 134 abs crashes '6 (Aborted) in unload() of the plug-in crashes'
ends compile 139 tanh bad_query \
    "11 (Segmentation fault) in library start or query() of the plug-in $plugins/bad_query.so"
model floor floor
ends run 134 floor crashes '6 (Aborted) in run() of the plug-in crashes'
model hangs exp
timeout -s TERM 8 "$byoc" compile "$dir/hangs.ir" -o "$dir/ended" \
    --plugin "only:$plugins/crashes.so" >"$dir/out" 2>"$dir/err"
expect hangs "$dir/err" "byoc compile: ended by signal 15 in probe() of the plug-in crashes"

# `byoc compare` warns if no region runs on a backend
"$byoc" compare "$dir/sigmoid.ir" --backend ref \
    --exclude add --exclude subtract --exclude sigmoid \
    --plugin "only:$plugins/libbyoc_backend_ref.so" >"$dir/out" 2>"$dir/err"
expect_code compare $? 0
expect compare "$dir/err" "byoc compare: no region runs on a backend"

# alike MODEL BACKENDS: if no plug-in crashes, the bytes are the same with and
# without --isolate
alike() {
    for how in "" --isolate; do
        "$byoc" compile "$1" -o "$dir/good$how.so" $how --backend "$2" \
            --plugin "only:$plugins:$plugins/crashes.so:${byoc%/*}" \
            --report "$dir/good$how.json" >"$dir/out" 2>"$dir/err" || {
            echo "$2 $how: found exit code $?, expected 0:"
            sed 's/^/    /' "$dir/err"
            failed=1
        }
    done
    cmp "$dir/good.so" "$dir/good--isolate.so" || failed=1
    cmp "$dir/good.json" "$dir/good--isolate.json" || failed=1
}

model good negative
alike "$dir/good.ir" crashes,ref
alike "$dir/good.ir" ref,crashes
alike "$digits/digits.onnx" ref,dnnl
expect good "$dir/good.json" '"reason": "offloaded"'

# asks.so calls every function of the host that describes a match; the answers are the
# same with and without --isolate
cat >"$dir/asks.ir" <<'END'
def @main(%x: Tensor[(2, 1, 1), float32]) {
  %0 = nn.rnn(%x, Tensor[(1, 1, 1), float32] {0.5}, Tensor[(1, 1, 1), float32] {-0.5}, direction="reverse", activations=["nn.leaky_relu"], activation_alpha=[0.25]) #["rnn": "RNN"];
  nn.relu(%0.0) #["relu": "Relu"]
}
END
for how in "" --isolate; do
    "$byoc" check "$dir/asks.ir" $how --plugin "only:$plugins/asks.so" \
        >"$dir/asks$how" 2>&1
    expect_code "asks $how" $? 0
done
cmp "$dir/asks" "$dir/asks--isolate" || failed=1
expect asks "$dir/asks" "predicate:  x:1/2/1/1 nothing: op 1:1/2/1/1/1 w:0.5/4 \
x const:0 rnn at 0, nothing at 4294967295, nn.rnn nn.relu past:0 \
direction='reverse'['reverse'] activations=['nn.leaky_relu'] \
activation_alpha=[0.25] clip=inf[inf] none=; Tensor[(2, 1, 1), float32]; \
(Tensor[(2, 1, 1, 1), float32], Tensor[(1, 1, 1), float32])"

# a plug-in that crashes in its query is reported by the name that was requested, or by
# that of its file; without isolation, `byoc backends` reports it
for how in "--backend bad,ref:bad" ":bad_query"; do
    timeout 1200 "$byoc" compile "$dir/good.ir" -o "$dir/good.so" --isolate \
        --plugin "only:$plugins/bad_query.so:$plugins/libbyoc_backend_ref.so" \
        ${how%:*} --report "$dir/good.json" >"$dir/out" 2>"$dir/err" || {
        echo "bad_query ${how%:*}: found exit code $?, expected 0:"
        sed 's/^/    /' "$dir/err"
        failed=1
    }
    expect bad_query "$dir/err" "${how#*:} was left out: $plugins/bad_query.so: \
its process crashed with signal 11 (Segmentation fault) in library start or query()"
    expect bad_query "$dir/good.json" '"backend-failed"'
    expect bad_query "$dir/good.json" '"ref.add"'
done
"$byoc" check "$dir/good.ir" --isolate --plugin "only:$plugins/bad_query.so" \
    --backend bad,worse >"$dir/out" 2>"$dir/err"
expect_code worse $? 3
expect worse "$dir/err" "found no backend 'worse' among 1 plug-in"
"$byoc" backends --plugin "only:$plugins/bad_query.so" >"$dir/out" 2>"$dir/err"
expect_code backends $? 1
expect backends "$dir/out" "rejected  $plugins/bad_query.so: its process crashed"

# options that cannot be combined with --isolate are refused
"$byoc" check "$dir/good.ir" --isolate --partition-by measured \
    >"$dir/out" 2>"$dir/err"
expect_code measured $? 2
expect measured "$dir/err" "found 'measured' with isolation"
exit $failed
