#!/bin/sh
# command.sh BYOC PLUGINS: the command's handling of existing outputs, full
# disks, names with escape sequences, interrupts, plug-in folders, files for
# other commands, and damaged artifacts.
# SPDX-License-Identifier: Apache-2.0
[ $# -eq 2 ] && [ -x "$1" ] || { echo "usage: command.sh BYOC PLUGINS" >&2; exit 2; }
byoc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plugins=$(cd "$2" && pwd)
digits=$(cd "$(dirname "$0")/../../examples/digits" && pwd)
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}intercept_tls_get_addr=0
export ASAN_OPTIONS
unset BYOC_PLUGIN_PATH
. "$(dirname "$0")/../folder.sh"
passed=0 failed=0

ok() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    head -n 5 err | sed 's/^/    /'
}

# ends CODE WORDS ARG...: byoc ARG... ends with CODE and prints WORDS to stderr
ends() {
    code=$1 words=$2
    shift 2
    "$byoc" "$@" >out 2>err
    found=$?
    if [ $found -eq "$code" ] && { [ -z "$words" ] ||
        grep -qF -e "$words" err; }; then
        ok
    else
        fail "found exit code $found, expected $code and '$words' on stderr: $*"
    fi
}

# holds WHAT COMMAND...: COMMAND succeeds; WHAT describes the condition if it fails
holds() {
    what=$1
    shift
    if "$@"; then ok; else fail "$what"; fi
}

cat >model.ir <<'IR'
def @main(%x: Tensor[(batch, 8), float32]) -> Tensor[(batch, 8), float32] {
  nn.relu(%x)
}
IR
: >err
"$byoc" compile model.ir -q -o good.so || exit 1

# --- every command that writes a file, to each kind of file ----------------
# writers: print commands that write a file; the caller appends the file's path
writers() {
    echo "compile model.ir -q -o"
    echo "compile model.ir -q -o $dir/other.so --report"
    echo "check model.ir --html"
    echo "check model.ir --dot"
    echo "opt model.ir --consts"
    echo "run good.so --trace"
}
mkfifo fifo
mkdir folder
ln -s nowhere dangling
writers | while read -r writer; do
    : >err
    # shellcheck disable=SC2086
    set -- $writer
    if [ -w /dev/full ]; then
        case $writer in *--consts) ;; *) # the model has no constants to write
            ends 2 "cannot write" "$@" /dev/full ;; esac
    fi
    holds "/dev/full is still a device: $writer" test -c /dev/full
    ends 2 "found a folder" "$@" folder
    ends 2 "a dangling symbolic link" "$@" dangling
    holds "the dangling link is still there: $writer" test -L dangling
    cat fifo >from_fifo &
    reader=$!
    "$byoc" "$@" fifo >out 2>err || fail "into a FIFO: $*"
    wait $reader
    holds "the FIFO is still there: $writer" test -p fifo
    rm -f target link
    echo old >target
    chmod 600 target
    ln -s target link
    "$byoc" "$@" link >out 2>err || fail "through a link: $*"
    holds "the link is still there: $writer" test -L link
    holds "the file is replaced: $writer" \
        sh -c '! grep -qx old target'
    case $writer in *--consts) ;; *)
        holds "the FIFO's reader gets bytes: $writer" test -s from_fifo ;; esac
    holds "no temporary files are left: $writer" \
        sh -c '[ -z "$(ls -d -- *.part .byoc-* 2>/dev/null)" ]'
    [ $failed -eq 0 ] || exit 1
    echo "$passed" >count
done || failed=1
passed=$((passed + $(cat count)))
"$byoc" check model.ir --report /dev/stdout >out 2>err
holds "a report into a standard output that is a file, and the text after it" \
    sh -c 'head -n 1 out | grep -q "^{" && grep -q "1 operator offloaded" out'
if [ -w /dev/full ]; then
    for args in "inspect good.so" "check model.ir" "--help" "--version" \
        "help run" "opt model.ir" "run good.so" "backends" "verify good.so" \
        "inspect good.so --json"; do
        # shellcheck disable=SC2086
        "$byoc" $args >/dev/full 2>err
        code=$?
        holds "$args into a full disk ends with 2: $code" test $code -eq 2
        holds "$args reports the full disk" grep -q "cannot write to stdout: No space" err
    done
fi

# --- a file that is no ledger ------------------------------------------------
ends 2 "model.ir, good.so: the old ledger: malformed" report diff model.ir good.so
ends 2 "good.so, model.ir: the new ledger: malformed" report diff good.so model.ir

# --- outputs of which only some can be written ------------------------------
# A limit on the size of files acts like a full disk.
cat >two.ir <<'IR'
def @main(%x: Tensor[(4), float32], %y: Tensor[(100000), float32]) {
  (nn.relu(%x), nn.relu(%y))
}
IR
"$byoc" compile two.ir -o two.so >out 2>err || fail "compile two.ir"
limited() { (trap '' XFSZ; ulimit -f 200; "$byoc" "$@" >out 2>err); }
limited run two.so -o new --trace new.json
code=$?
holds "outputs into a full disk end with 2: $code" test $code -eq 2
holds "the message names the file" grep -q "^byoc run: new/output_1.npy: cannot write" err
holds "no output is left" test ! -e new
holds "no trace is left" test ! -e new.json
mkdir -p old/output_1.npy
echo mine >old/mine
ends 2 "found a folder" run two.so -o old --trace new.json
holds "the folder keeps what others wrote" test -s old/mine
holds "no output is left in the folder" test ! -e old/output_0.npy
holds "no trace is left beside the folder" test ! -e new.json
rm -r old/output_1.npy
"$byoc" run two.so -o old --trace new.json >out 2>err || fail "run two.so"
holds "all outputs are written" test -s old/output_0.npy -a -s old/output_1.npy
holds "the trace is written" test -s new.json

# --- names with escape sequences -------------------------------------------
esc=$(printf '\033') bell=$(printf '\007') bidi=$(printf '\342\200\256')
c1=$(printf '\302\233') bad=$(printf '\377')
nasty="a${esc}[2J${bell}${bidi}${c1}${bad}z"
escaped='a\x1b[2J\x07\xe2\x80\xae\xc2\x9b\xffz'
cat >nasty.ir <<IR
def @main(%"$escaped": Tensor[(2), float32]) -> Tensor[(2), float32] {
  nn.relu(%"$escaped") #["$escaped": "Relu"]
}
IR
# clean FILE: it contains no control characters
clean() {
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$1" &&
        ! grep -qF -e "$bidi" "$1" && ! LC_ALL=C grep -qF -e "$c1" "$1" &&
        iconv -f UTF-8 -t UTF-8 "$1" >/dev/null
}
"$byoc" compile nasty.ir -q -o nasty.so 2>err || fail "a model with such names"
cp nasty.ir "$nasty.ir"
for args in "check nasty.ir --all" "check nasty.ir --json" "opt nasty.ir" \
    "inspect nasty.so --all" "inspect nasty.so --json" "run nasty.so" \
    "bench nasty.so --iterations 1 --seconds 0" "compare nasty.so" \
    "partition nasty.ir --print-after all" "check nasty.ir --explain x" \
    "run nasty.so --input x=y" "run $nasty" "check $nasty.ir" "$nasty" \
    "check nasty.ir --$nasty" "check nasty.ir --only $nasty"; do
    # shellcheck disable=SC2086
    "$byoc" $args >out 2>err
    holds "stdout is clean: $args" clean out
    holds "stderr is clean: $args" clean err
done
"$byoc" check nasty.ir --all >out 2>err
replaced=$(printf '\357\277\275') # U+FFFD
holds "check --all prints the escaped name" \
    grep -qF "a\\x1b[2J\\x07\\xe2\\x80\\xae\\xc2\\x9b${replaced}z" out
"$byoc" check nasty.ir --report report.json >out 2>err
"$byoc" run nasty.so --trace trace.json >out 2>err
"$byoc" check nasty.ir --explain "$nasty" >out 2>err ||
    fail "--explain with the bytes of the name: $(cat err)"
for file in report.json trace.json; do
    holds "$file is valid UTF-8" iconv -f UTF-8 -t UTF-8 -o out "$file"
    holds "$file has the name" grep -qF "[2J" "$file"
done
"$byoc" opt nasty.ir >again.ir 2>err
"$byoc" opt again.ir >out 2>err || fail "cannot read text with such names"
holds "text with such names is printed as it was read" cmp -s again.ir out
"$byoc" check "$(printf 'a\nbyoc: forged')" 2>err
holds "a newline in a name does not make a line" test "$(wc -l <err)" -eq 1

# --- interrupts ------------------------------------------------------------
cat >slow <<'END'
#!/bin/sh
echo $$ >>"$PIDS"
touch "$PIDS.$$"
sleep 300 &
echo $! >>"$PIDS"
wait
END
chmod +x slow
mkdir made
# still_there: prints the processes of `pids` that run; a process that ended stays
# a zombie until its parent waits for it
still_there() {
    for child in $(cat pids); do
        state=$(sed 's/.*) //;s/ .*//' "/proc/$child/stat" 2>/dev/null)
        case $state in "" | Z | X) ;; *) echo "$child$state" ;; esac
    done
}
for name in INT TERM HUP; do
    : >pids
    # a shell without job control makes its background jobs ignore SIGINT
    PIDS=$dir/pids CC=$dir/slow env --default-signal=INT "$byoc" compile "$digits/digits.onnx" -q \
        --native -o made/out.so >out 2>err &
    pid=$!
    n=0
    while [ "$(wc -l <pids)" -lt 2 ] && [ $n -lt 3000 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    kill -$name $pid
    wait $pid
    code=$?
    case $name in HUP) number=1 ;; INT) number=2 ;; TERM) number=15 ;; esac
    holds "SIG$name ends it by that signal: $code" test $code -eq $((128 + number))
    holds "SIG$name leaves no files: $(ls -A made)" test -z "$(ls -A made)"
    n=0
    left=$(still_there)
    # killed processes may have to wait for a CPU before they end
    while [ -n "$left" ] && [ $n -lt 300 ]; do
        sleep 0.1
        n=$((n + 1))
        left=$(still_there)
    done
    holds "SIG$name leaves no compilers:$left" test -z "$left"
    rm -f pids.*
done

(ulimit -f 40; exec "$byoc" compile "$digits/digits.onnx" -q -o made/out.so) >out 2>err
holds "a file larger than ulimit -f ends with 2: $?" test $? -eq 2
holds "a file larger than ulimit -f is reported" grep -q "File too large" err
holds "a file larger than ulimit -f is removed: $(ls -A made)" test -z "$(ls -A made)"
# the compiler driver inherits the limit; files that are open already count
(
    exec 3>&- 4>&-
    ulimit -n 5
    exec "$byoc" compile "$digits/digits.onnx" -q -o made/out.so
) 2>err
holds "too few open files end with 2: $?" test $? -eq 2
holds "too few open files are reported: $(cat err)" \
    grep -q '5 files may be open at once, expected at least 16' err

# --- plug-in folders -------------------------------------------------------
cp "$plugins/libbyoc_backend_ref.so" folder/
"$byoc" backends --plugin folder >out 2>err
holds "--plugin accepts a relative path" grep -q "^ref  *$dir/folder/libbyoc_backend_ref.so" out
holds "--plugin keeps the default folder" grep -q "^dnnl " out
"$byoc" backends --plugin only:folder >out 2>err
holds "only: leaves out the default folder" sh -c 'grep -q "^ref " out && ! grep -q "^dnnl " out'
BYOC_PLUGIN_PATH=$dir/folder "$byoc" backends >out 2>err
holds "BYOC_PLUGIN_PATH keeps the default folder" \
    sh -c 'grep -q "^ref " out && grep -q "^dnnl " out'
ends 3 "in $dir/folder; try" check model.ir --plugin only:folder --backend none
"$byoc" compile "$digits/digits.onnx" -q -o dnnl.so
ends 3 "libbyoc_backend_dnnl.so in $dir/folder; set" run dnnl.so \
    --plugin only:folder --require-backends
BYOC_PLUGIN_PATH=$dir/gone "$byoc" run dnnl.so --require-backends >out 2>err
holds "a missing folder in BYOC_PLUGIN_PATH does not hide the default one" test $? -eq 0
BYOC_PLUGIN_PATH=$dir/gone "$byoc" backends >out 2>err
holds "a missing folder in BYOC_PLUGIN_PATH is reported" grep -q "^rejected  $dir/gone: cannot open it: No such file" out
chmod o+w folder
BYOC_PLUGIN_PATH=$dir/folder "$byoc" check model.ir >out 2>err
holds "a folder that everybody may write to is refused: $?" test $? -eq 2
holds "the message names the reason" grep -q "everybody may write to this folder" err
chmod o-w folder
if [ "$(id -u)" = 0 ]; then
    chown 12345 folder
    BYOC_PLUGIN_PATH=$dir/folder "$byoc" check model.ir >out 2>err
    holds "a folder of another user is refused" grep -q "user 12345 owns this" err
    chown 0 folder && chown 12345 folder/*.so
    BYOC_PLUGIN_PATH=$dir/folder "$byoc" check model.ir >out 2>err
    holds "a file of another user is refused" grep -q "owns this file" err
    "$byoc" backends --plugin folder >out 2>err
    holds "--plugin accepts a file of another user" grep -q "^ref " out
    chown 0 folder/*.so
fi

# --- files for other commands -------------------------------------------------
printf '<!DOCTYPE html><html>' >page.onnx
printf '\010\004\020\001' >tensor.pb
ends 2 "an artifact, which is compiled already" check good.so
ends 2 "an artifact, which is compiled already" compile good.so -o no.so
ends 2 "a backend's plug-in" check "$plugins/libbyoc_backend_ref.so"
ends 2 "a backend's plug-in" run "$plugins/libbyoc_backend_ref.so"
ends 2 "did not make" run "$plugins/tanh_gelu.so"
head -c 2000 good.so >cut.so
head -c 20 good.so >cut_header.so
: >empty.so
for command in run inspect verify; do
    ends 2 "a truncated shared library; copy or compile it again" "$command" cut.so
    ends 2 "a truncated shared library; copy or compile it again" "$command" cut_header.so
    ends 2 "found an empty file" "$command" empty.so
done
ends 2 "not a shared library" verify "$digits/digits.onnx"
ends 2 "not a shared library" inspect "$digits/digits.onnx"
ends 2 "HTML or XML" check page.onnx
ends 2 "an ONNX tensor" check tensor.pb
ends 2 "a NumPy array" run "$digits/batch0.input_0.npy"
ends 2 "did you mean 'compile'" compiel
ends 2 "did you mean 'help'" hlep
ends 2 "did you mean 'verify'" help verfy
ends 0 "" help verify
"$byoc" help run >out && "$byoc" run --help >err
holds "help COMMAND prints what COMMAND --help prints" cmp -s out err
ends 0 "" help

# --- artifacts that are damaged where loading does not look ----------------
at=$("$byoc" inspect dnnl.so | sed -n 's/.*weights \([0-9]*\) bytes/\1/p')
size=$(wc -c <dnnl.so)
cp dnnl.so flipped.so
printf '\125\252' | dd of=flipped.so bs=1 seek=$((size - at / 2)) conv=notrunc \
    2>/dev/null
ends 0 "" run flipped.so
ends 2 "section weights hashes to" run flipped.so --verify
ends 0 "" run dnnl.so --verify
ends 0 "" run model.ir --verify

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 150 ]
