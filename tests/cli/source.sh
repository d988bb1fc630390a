#!/bin/sh
# source.sh BYOC PLUGINS: regions for which a backend returns C: correct C gives
# the results of native kernels, from an artifact and from memory, isolated or
# not, and the same bytes each time; each kind of invalid C leaves its region to
# native kernels, with the reason.
# SPDX-License-Identifier: Apache-2.0
set -u
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") plugin=$(cd "$2" && pwd)/scribe.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
export SCRIBE="$dir/c"
export TMPDIR="$dir/tmp" # nothing may stay there
mkdir "$TMPDIR"

cat >"$dir/model.ir" <<'END'
def @main(%x: Tensor[(4, 8), float32]) {
  %0 = nn.relu(%x) #["first": "Relu"];
  %1 = negative(%0) #["second": "Neg"];
  nn.relu(%1) #["third": "Relu"]
}
END
good='int SYMBOL(const float *x, float *y, int n);
int SYMBOL(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = -x[i];
    return 0;
}'

# fail NAME: print the outputs out and err
fail() {
    echo "FAILED: $*:"
    cat "$dir/out" "$dir/err" | sed 's/^/    /'
    failed=$((failed + 1))
}

# scribe COMMAND OPTIONS: byoc with the backend of C
scribe() {
    command=$1
    shift
    timeout 1200 "$byoc" "$command" "$@" --plugin "only:$plugin" \
        >"$dir/out" 2>"$dir/err"
}

# says NAME WORD: the output contains WORD
says() {
    cat "$dir/out" "$dir/err" | grep -qF -- "$2" || fail "$1: no '$2'"
}

# refused NAME WORD [OPTION]: with the C in DIR/c, the region is reverted, and the
# reason contains WORD
refused() {
    # shellcheck disable=SC2086
    scribe check "$dir/model.ir" --report "$dir/json" ${3-} ||
        fail "$1: exit code $?"
    grep -q '"source-refused"' "$dir/json" || fail "$1: the ledger"
    grep -qF -- "$2" "$dir/json" || {
        cp "$dir/json" "$dir/out"
        fail "$1: nothing says '$2'"
    }
}

# --- valid C
echo "$good" >"$dir/c"
scribe compile "$dir/model.ir" -o "$dir/good.so" --keep-c "$dir/kept" \
    --report "$dir/json" || fail "good"
grep -q '"pattern": "scribe.negative"' "$dir/json" || fail "good: the ledger"
sed "s/SYMBOL/byoc_scribe_0/g" "$dir/c" | cmp - "$dir/kept/byoc_scribe_0.c" ||
    fail "good: kept otherwise"
for how in "--isolate" "--codegen c" "--codegen auto"; do
    # shellcheck disable=SC2086
    scribe compile "$dir/model.ir" -o "$dir/again.so" $how || fail "good $how"
    cmp "$dir/good.so" "$dir/again.so" || fail "good $how: other bytes"
done
[ "$(nm -D --defined-only "$dir/good.so" | wc -l)" = 1 ] ||
    fail "good: exports more than its model"
scribe verify "$dir/good.so" 2>/dev/null ||
    "$byoc" verify "$dir/good.so" >"$dir/out" || fail "good: verify"
"$byoc" inspect "$dir/good.so" >"$dir/out" || fail "good: inspect"
says inspect "byoc_scribe_0, by scribe"
scribe run "$dir/good.so" --require-backends -o "$dir/from_file" || fail "run .so"
scribe run "$dir/model.ir" --require-backends -o "$dir/from_memory" ||
    fail "run .ir"
scribe run "$dir/model.ir" --isolate -o "$dir/isolated" || fail "run isolated"
"$byoc" run "$dir/model.ir" --native -o "$dir/native" >"$dir/out" 2>"$dir/err"
for one in from_file from_memory isolated; do
    cmp "$dir/$one/output_0.npy" "$dir/native/output_0.npy" ||
        fail "$one: not what native kernels compute"
done
scribe compare "$dir/good.so" || fail "compare"
scribe bench "$dir/model.ir" --seconds 0.05 || fail "bench"
scribe check "$dir/model.ir" --require-offload-nodes 33 || fail "check"

# a machine without any of its instruction sets runs the twin
BYOC_MAX_ISA=sse2 scribe run "$dir/good.so" -o "$dir/twin" || fail "twin"
says twin "code for instruction sets that this machine does not have"
cmp "$dir/twin/output_0.npy" "$dir/native/output_0.npy" || fail "twin"

# --- without a request for C
scribe check "$dir/model.ir" --codegen json --all || fail "json"
says json "backend-writes-c"
scribe check "$dir/model.ir" --codegen java && fail "codegen java"
says java "expected auto|c|json"
scribe run "$dir/good.so" --codegen c && fail "codegen of an artifact"
says codegen "an artifact is compiled already"

# --- invalid C
: >"$dir/c"
refused empty "it is empty"
echo "$good
int x = ;" >"$dir/c"
refused syntax "error: expected expression before"
refused syntax "error: expected expression before" --isolate
scribe compile "$dir/model.ir" -o "$dir/syntax.so" || fail "syntax: compile"
scribe run "$dir/syntax.so" -o "$dir/syntax" || fail "syntax: run"
cmp "$dir/syntax/output_0.npy" "$dir/native/output_0.npy" || fail "syntax"
echo "int other(void) { return 0; }" >"$dir/c"
refused missing "it defines other with external linkage"
echo "static int SYMBOL(void) { return 0; } int (*const volatile p)(void);" \
    >"$dir/c"
refused static "with external linkage"
echo "typedef int SYMBOL;" >"$dir/c"
refused type "it does not define the requested function"
echo "int SYMBOL = 3;" >"$dir/c"
refused variable "which is not a function; expected the requested function"
echo "$good
int helper(void) { return 1; }" >"$dir/c"
refused second "it defines helper with external linkage"
echo "$good
int common;" >"$dir/c"
refused common "it defines common with external linkage"
echo "$good
__attribute__((weak)) int weak(void) { return 1; }" >"$dir/c"
refused weak "it defines weak with external linkage"
echo 'int dnnl_engine_create(void); int SYMBOL(void) { return dnnl_engine_create(); }' \
    >"$dir/c"
refused unknown "undefined reference to"
echo "$good
static __attribute__((constructor)) void early(void) { __builtin_trap(); }" \
    >"$dir/c"
refused constructor "it has a section .init_array"
cat - >"$dir/c" <<END
$good
__asm__(".section .byoc.weights,\\"a\\"; .byte 1; .previous");
END
refused section "it has a section .byoc.weights"
echo "$good
static _Thread_local int t; static int *get(void) { return &t; }
int *(*const volatile no)(void) = get;" >"$dir/c"
refused thread "it has a section .tbss"
printf '%s\n/* \000 */\n' "$good" >"$dir/c"
refused nul "has a NUL byte; expected text"
echo "$good
static const char when[] = __DATE__; const char *SYMBOL2(void) { return when; }" \
    >"$dir/c"
refused date "reproducible builds"
echo "#include \"/dev/zero\"
$good" >"$dir/c"
refused zero "it does not compile: "
echo "#include \"$dir\"
$good" >"$dir/c"
refused folder "it does not compile: "
echo "#include __FILE__
$good" >"$dir/c"
refused nested "it does not compile: "
echo '#include <omp.h>
int SYMBOL(void) { return omp_get_max_threads(); }' >"$dir/c"
refused openmp "undefined reference to"
head -c 17000000 /dev/zero | tr '\000' ' ' >"$dir/c"
refused enormous "expected at most 16 MiB"
head -c 3000 /dev/urandom | tr -d '\000' >"$dir/c"
refused noise "it does not compile: "
echo "$good" >"$dir/c"
CC=/nonexistent/cc scribe check "$dir/model.ir" || fail "no compiler"
says "no compiler" "cannot run the compiler driver"

# --- the conformance kit
# conforms WORD...: run the kit with the C in DIR/c; it reports each WORD, or no
# error if there is none
conforms() {
    timeout 1200 "$byoc" conform "$plugin" --only numerics/scribe.negative/0 \
        >"$dir/out" 2>"$dir/err"
    code=$?
    [ "$code" = "$(($# > 0))" ] || fail "conform: exit code $code"
    for word; do
        says conform "$word"
    done
}
echo "$good" >"$dir/c"
conforms
echo "$good
int x = ;" >"$dir/c"
conforms "source.compiles" "it does not compile: byoc_conform_0.c:"
echo "$good" | sed 's/= -x/= x/' >"$dir/c"
conforms "numerics.result"
echo "$good" | sed 's/i < n/i <= n/' >"$dir/c"
conforms "bounds."

# --- sizes that vary: C is compiled before they are known
sed 's/(4, 8)/(n, 8)/' "$dir/model.ir" >"$dir/varies.ir"
scribe check "$dir/varies.ir" --all || fail "varies"
says varies "its sizes vary, and C is compiled before they are known"

[ -z "$(ls -A "$TMPDIR")" ] || {
    ls -A "$TMPDIR" >"$dir/out"
    fail "left behind"
}
[ $failed = 0 ] || echo "$failed failed"
[ $failed = 0 ]
