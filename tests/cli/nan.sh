#!/bin/sh
# nan.sh BYOC: checks docs/dnnl.md's section on NaN: each operator of its table
# loses a NaN, on this CPU or with AVX2, and keeps it if it is excluded or with
# --keep-nan; every other operator that oneDNN supports keeps it. Pools and
# resizing are before a convolution or a product, softmax, norms, reductions and
# nn.rnn before a product, since a region of such layers alone is declined. An
# operator that is in no region fails, since native kernels keep NaN.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: nan.sh BYOC" >&2; exit 2; }
byoc=$1
page=$(dirname "$0")/../../docs/dnnl.md
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0
table=$(sed -n '/^## NaN/,/^## Q/s/^| `\([a-z_.0-9()=]*\)` .*/\1/p' "$page")
[ -n "$table" ] || { echo "docs/dnnl.md: found no table in its section on NaN"; exit 1; }

# hides_nan CALL [OPTION...]: whether a call on %n, which contains NaN, gives other
# results on oneDNN than on native kernels. The factor of %n has the shape of %x,
# since byoc does not offload a product with a factor that is broadcast to short rows.
hides_nan() {
    call=$1
    shift
    cat >"$work/m.ir" <<END
def @main(%x: Tensor[(2, 4, 4, 4), float32]) {
  %n = multiply(%x, broadcast_to([1.0, nan, 1.0, 1.0], [2, 4, 4, 4]));
  $call
}
END
    "$byoc" compare "$work/m.ir" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -lt 2 ] || { cat "$work/err" >&2; exit 2; }
    [ $code -eq 1 ]
}

# offloads OP: whether the operator OP of the last call is in a region
offloads() {
    "$byoc" check "$work/m.ir" --json >"$work/ledger" 2>"$work/err" ||
        { cat "$work/err" >&2; exit 2; }
    grep -q "\"op\": \"$1\",.* \"where\": \"dnnl\"" "$work/ledger"
}

# wrong TEXT: print TEXT; the test fails
wrong() {
    echo "$1"
    bad=1
}

while read -r op call; do
    unset BYOC_MAX_ISA
    echo "$op" >>"$work/tried"
    if ! echo "$table" | grep -qx "$op"; then
        hides_nan "$call" && wrong "$op loses NaN, and docs/dnnl.md does not say so"
        offloads "$op" || wrong "$op is not offloaded"
        continue
    fi
    # with AVX2, without the kernels that byoc has for AVX-512
    hides_nan "$call" || {
        export BYOC_MAX_ISA=avx2
        hides_nan "$call"
    } || wrong "$op keeps NaN, and docs/dnnl.md says that it does not"
    # with a constant, maximum and minimum become clip
    hides_nan "$call" --exclude "${op%(*}" --exclude clip && wrong "$op loses NaN on native kernels"
    hides_nan "$call" --keep-nan && wrong "$op loses NaN with --keep-nan"
    hides_nan "$call" --keep-nan --partition-by estimated &&
        wrong "$op loses NaN with --keep-nan and --partition-by"
done <<'END'
nn.relu nn.relu(%n)
nn.relu nn.conv2d(nn.relu(nn.avg_pool2d(%n, pool_size=[2, 2], strides=[1, 1])), random[(4, 4, 1, 1), float32, seed=1])
nn.relu nn.relu(nn.conv2d(%n, random[(4, 4, 3, 3), float32, seed=1]))
nn.leaky_relu nn.leaky_relu(%n, alpha=0.1)
nn.leaky_relu(alpha=0) nn.leaky_relu(%n, alpha=0.0)
nn.prelu nn.matmul(nn.prelu(%n, 0.25f), %x)
nn.prelu nn.matmul(nn.prelu(%n, 0.0f), %x)
nn.conv2d nn.conv2d(%n, random[(4, 4, 3, 3), float32, seed=1])
nn.conv2d_transpose nn.conv2d_transpose(%n, random[(4, 4, 3, 3), float32, seed=1])
nn.dense nn.dense(reshape(%n, [32, 4]), random[(4, 4), float32, seed=1])
image.resize nn.conv2d(image.resize(%n, [2, 4, 8, 8], mode="linear", coordinate_transformation_mode="half_pixel"), random[(4, 4, 1, 1), float32, seed=1])
nn.instance_norm nn.matmul(reshape(nn.instance_norm(reshape(%n, [1, 8, 4, 4]), random[(8), float32, seed=1], random[(8), float32, seed=2]), [2, 4, 4, 4]), %x)
nn.lstm nn.lstm(reshape(%n, [8, 4, 4]), random[(1, 8, 4), float32, seed=1], random[(1, 8, 2), float32, seed=2])
nn.gru nn.gru(reshape(%n, [8, 4, 4]), random[(1, 6, 4), float32, seed=1], random[(1, 6, 2), float32, seed=2])
nn.gru nn.gru(reshape(%n, [8, 4, 4]), random[(1, 6, 4), float32, seed=1], random[(1, 6, 2), float32, seed=2], linear_before_reset=true)
nn.rnn %r = nn.rnn(reshape(%n, [8, 4, 4]), random[(1, 2, 4), float32, seed=1], random[(1, 2, 2), float32, seed=2], activations=["nn.relu"]); nn.dense(reshape(%r.0, [32, 2]), random[(4, 2), float32, seed=3])
nn.elu nn.elu(%n, alpha=1.0)
nn.selu nn.selu(%n)
clip clip(%n, a_min=-1.0, a_max=1.0)
sigmoid sigmoid(%n)
tanh tanh(%n)
nn.gelu nn.gelu(%n)
nn.gelu nn.gelu(%n, approximate="tanh")
nn.silu nn.silu(%n)
nn.hard_swish nn.hard_swish(%n)
nn.hard_sigmoid nn.hard_sigmoid(%n)
nn.mish nn.mish(%n)
nn.softplus nn.softplus(%n)
abs abs(%n)
negative negative(%n)
sqrt sqrt(%n)
exp exp(%n)
reciprocal reciprocal(%n)
round round(%n)
maximum maximum(%n, 0.5f)
minimum minimum(%n, 0.5f)
power power(%n, 2f)
add add(%n, %x)
subtract subtract(%n, %x)
multiply multiply(%n, %x)
divide divide(%n, %x)
sum nn.dense(reshape(sum(%n, axis=[3]), [8, 4]), random[(4, 4), float32, seed=1])
mean nn.dense(reshape(mean(%n, axis=[3]), [8, 4]), random[(4, 4), float32, seed=1])
nn.softmax nn.matmul(nn.softmax(%n, axis=3), %x)
nn.log_softmax nn.matmul(nn.log_softmax(%n, axis=3), %x)
nn.max_pool2d nn.conv2d(nn.max_pool2d(%n, pool_size=[2, 2], strides=[1, 1]), random[(4, 4, 1, 1), float32, seed=1])
nn.avg_pool2d nn.matmul(nn.avg_pool2d(%n, pool_size=[2, 2], strides=[1, 1], padding=[0, 0, 1, 1]), %x)
nn.global_max_pool2d nn.conv2d(nn.global_max_pool2d(%n), random[(4, 4, 1, 1), float32, seed=1])
nn.global_avg_pool2d nn.matmul(reshape(nn.global_avg_pool2d(%n), [2, 4]), random[(4, 4), float32, seed=1])
concatenate concatenate(%n, %x, axis=1)
nn.lrn nn.lrn(%n, size=3)
nn.layer_norm nn.layer_norm(%n, [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0])
nn.batch_norm nn.matmul(nn.batch_norm(%n, [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]), %x)
nn.matmul nn.matmul(%n, %x)
END
for op in $table; do
    grep -qx "$op" "$work/tried" || wrong "no case of $op, which docs/dnnl.md lists"
done
exit $bad
