#!/bin/sh
# threads.sh BYOC RUNTIME HOST OMP_HOST: runs host.c on models of oneDNN and of native
# kernels, to test forks, unloading, affinity, exhaustion, limits of the kernel, several
# states, and threads of the host and of its OpenMP library. HOST and OMP_HOST are
# host.c built without and with OpenMP. Exits with 77 on a machine with one CPU.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 4 ] || { echo "usage: threads.sh BYOC RUNTIME HOST OMP_HOST" >&2; exit 2; }
set -u
byoc=$1 runtime=$2 host=$3 omp=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset BYOC_NUM_THREADS OMP_NUM_THREADS BYOC_WAIT_POLICY
failed=0
chmod 755 "$dir" # one check runs as another user
[ "$(nproc)" -ge 2 ] || exit 77

# a convolution and matrix products; the product with a vector has barriers
cat >"$dir/model.ir" <<'END'
def @main(%x: Tensor[(1, 16, 64, 64), float32], %w: Tensor[(32, 16, 3, 3), float32], %a: Tensor[(384, 512), float32], %b: Tensor[(512, 384), float32], %v: Tensor[(1, 4096), float32], %m: Tensor[(4096, 512), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]));
  %1 = nn.softmax(nn.matmul(%a, %b));
  %2 = erf(multiply(%1, 0.01f));
  (%0, %1, %2, nn.matmul(%v, %m))
}
END
cat >"$dir/varying.ir" <<'END'
def @main(%x: Tensor[(N, 64), float32], %w: Tensor[(64, 32), float32]) {
  nn.softmax(nn.relu(nn.matmul(%x, %w)))
}
END
"$byoc" compile "$dir/model.ir" -o "$dir/dnnl.so" >"$dir/out" 2>&1 &&
    "$byoc" compile "$dir/varying.ir" --native -o "$dir/varying.so" >>"$dir/out" 2>&1 &&
    "$byoc" compile "$dir/model.ir" --native -o "$dir/native.so" \
        >>"$dir/out" 2>&1 || {
    cat "$dir/out"
    exit 1
}
for so in dnnl native varying; do
    readelf -d "$dir/$so.so" | grep -q 'NEEDED.*omp' && {
        echo "$so.so: found an OpenMP library that it needs, expected none"
        failed=1
    }
    for check in fork walk busy close affinity states exhaustion nproc space \
        quota pids hook policy; do
        # busy and walk fork while oneDNN may hold locks, which a child would find
        # locked; the small model is only for busy
        case $check-$so in
        busy-dnnl | walk-dnnl) continue ;;
        busy-* | walk-native) ;;
        *-varying) continue ;;
        esac
        timeout 1300 "$host" $check "$runtime" "$dir/$so.so" 2>"$dir/err"
        status=$?
        if [ $status -eq 77 ]; then
            echo "$so: $check: skipped: $(tail -n 1 "$dir/err")"
        elif [ $status -ne 0 ]; then
            echo "$so: $check: found exit code $status, expected 0: $(tail -n 2 "$dir/err")"
            failed=1
        fi
    done
    for check in fork affinity states policy rivals; do
        # without oneDNN, workers are the only threads
        case $check-$so in rivals-native | rivals-varying) continue ;; esac
        timeout 1300 "$omp" $check "$runtime" "$dir/$so.so" 2>"$dir/err" || {
            echo "$so, host with OpenMP: $check: found exit code $?, expected 0:" \
                "$(tail -n 2 "$dir/err")"
            failed=1
        }
    done
done
exit $failed
