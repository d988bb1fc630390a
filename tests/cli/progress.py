#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test the progress of long commands: progress.py BYOC

byoc prints lines if stderr is not a terminal, and replaces one line on a terminal. It
prints nothing with --quiet, with BYOC_PROGRESS=0, or in the first two seconds.
"""
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

BYOC = os.path.abspath(sys.argv[1])
DIGITS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../examples/digits/digits.onnx")
ENV = {k: v for k, v in os.environ.items() if k != "BYOC_PROGRESS"}
LINE = r"^byoc {}: (.*, )?\d+ s$"
failed = 0


def check(ok, what, output=""):
    """Count a failure unless `ok`, and print what was expected, with the output."""
    global failed
    if not ok:
        failed += 1
        print("FAILED:", what, output, sep="\n")


def run(*args, **env):
    """Stdout, stderr, and the seconds that it took."""
    began = time.monotonic()
    process = subprocess.run([BYOC, *args], env={**ENV, **env}, text=True,
                             capture_output=True)
    check(process.returncode == 0, f"{args} exits with {process.returncode}", process.stderr)
    return process.stdout, process.stderr, time.monotonic() - began


def lines(command, stderr):
    return re.findall(LINE.format(command), stderr, re.M)


def on_terminal(*args):
    """All that a terminal gets."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(BYOC, [BYOC, *args], {**ENV, "TERM": "xterm"})
    output = b""
    while True:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        output += part
    check(os.waitpid(pid, 0)[1] == 0, f"{args} on a terminal", output)
    return output.decode()


def main():
    # a low rate, so that the other commands get CPU time
    bench = ["bench", DIGITS, "--rate", "4", "--seconds"]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        # a compiler that takes three seconds
        slow = os.path.join(folder, "cc")
        with open(slow, "w") as file:
            file.write('#!/bin/sh\nsleep 3\nexec cc "$@"\n')
        os.chmod(slow, 0o755)
        compiling = ["compile", DIGITS, "--native", "-o"]
        loud = [*compiling, os.path.join(folder, "loud.so")]
        quiet = [*compiling, os.path.join(folder, "quiet.so"), "--quiet"]
        bench_run = pool.submit(run, *bench, "5")
        disabled_run = pool.submit(run, *bench, "3", BYOC_PROGRESS="0")
        # many runs, since a child that was forked while the thread started could hang
        list_runs = [pool.submit(run, "backends") for _ in range(20)]
        compile_run = pool.submit(run, *loud, CC=slow)
        quiet_run = pool.submit(run, *quiet, CC=slow)

        out, err, _ = bench_run.result()
        found = lines("bench", err)
        check(2 <= len(found) <= 8, "bench of 5 s: 2 to 8 lines", err)
        check(len(err.splitlines()) == len(found), "nothing else on stderr", err)
        check("byoc bench" not in out, "stdout has the result alone", out)
        check(disabled_run.result()[1] == "", "BYOC_PROGRESS=0")
        for list_run in list_runs:
            _, err, seconds = list_run.result()
            check(seconds >= 2 or err == "", "nothing in the first two seconds", err)
        _, err, seconds = compile_run.result()
        check(seconds >= 3, "the slow compiler runs")
        check(any(lines("compile", err)), "the line names the step", err)
        _, err, seconds = quiet_run.result()
        check(seconds >= 3 and err == "", "--quiet", err)

    output = on_terminal(*bench, "4")
    progress_lines = re.findall(r"\r\x1b\[Kbyoc bench: [^\r\n]*\d+ s", output)
    check(len(progress_lines) >= 5, "a line that is replaced", repr(output))
    end = output.rindex("\x1b[K") + 3
    check("byoc bench" not in output[end:] and "median" in output[end:],
          "the line is erased before the result", repr(output))
    return 1 if failed else 0


sys.exit(main())
