#!/bin/sh
# compat.sh BYOC PLUGINS: runs an artifact with later versions of its backend,
# which plugins/versioned.c takes from the variable BACKEND_VERSION. The next
# version runs it and recommends to compile again; for the version after that, the
# native twin runs, or loading fails. Also compares the output of `byoc backends --json`.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: compat.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(cd "$2" && pwd)
. "$(dirname "$0")/../folder.sh"
failed=0

# runs VERSION CODE SENTENCE OPTIONS...: a run ends with the exit code and prints
# SENTENCE ("nothing": none) to stderr once; its outputs equal those of the first run
runs() {
    version=$1 wanted=$2 sentence=$3
    shift 3
    rm -rf out
    BACKEND_VERSION=$version "$byoc" run model.so --seed 3 -o out \
        --plugin "only:$plugins/versioned.so" "$@" >printed 2>err
    code=$?
    [ $code != 0 ] || [ -e first ] || cp -r out first
    grep -q "made by version" err || echo nothing >>err
    [ $code = "$wanted" ] || {
        echo "version $version $*: found exit code $code, expected $wanted:"
        cat err
        failed=1
    }
    [ "$(grep -cF -- "$sentence" err)" = 1 ] || {
        echo "version $version $*: expected '$sentence' once in stderr, found:"
        cat err
        failed=1
    }
    [ $code != 0 ] || cmp out/output_0.npy first/output_0.npy || {
        echo "version $version $*: found other outputs, expected those of the first run"
        failed=1
    }
}

cat >model.ir <<'IR'
def @main(%x: Tensor[(4, 8), float32], %y: Tensor[(8), float32]) {
  nn.relu(add(%x, %y))
}
IR
BACKEND_VERSION=1 "$byoc" compile model.ir -o model.so \
    --plugin "only:$plugins/versioned.so" --backend ref >printed || failed=1
runs 1 0 nothing
runs 1 0 nothing --require-backends
runs 2 0 "ref: made by version 1, now it is version 2; compile the model again"
runs 2 0 "ref: made by version 1, now it is version 2; compile the model again" \
    --require-backends
runs 2 0 "ref: made by version 1, now it is version 2; compile the model again" --verbose
runs 3 0 "made by version 1, now it is version 3"
runs 3 3 "made by version 1, now it is version 3" --require-backends

"$byoc" backends --json --plugin \
    "only:$plugins/libbyoc_backend_ref.so:$plugins/bad_refuses.so" >list
code=$?
[ $code = 1 ] || {
    echo "byoc backends --json: found exit code $code, expected 1"
    failed=1
}
version=$("$byoc" --version | sed 's/^byoc //;s/ .*//')
cat >expected <<END
{"plugins": [
    {"path": "$plugins/libbyoc_backend_ref.so", "name": "ref", "version": "1", "usable": true, "why": null},
    {"path": "$plugins/bad_refuses.so", "name": null, "version": null, "usable": false, "why": "$plugins/bad_refuses.so: refused to start: no licence found"}
  ],
  "native": "$version",
  "warnings": null}
END
cmp list expected || {
    diff list expected
    failed=1
}
exit $failed
