# SPDX-License-Identifier: Apache-2.0
"""cluster_test.py dask|mpi: tests examples/cluster with local workers, one of which is
killed while a folder of inputs is scored. The results are in order and correct, and
none is missing. Workers map one copy of the artifact. With MPI, the run fails, and a
second one computes only the results that are left. Exits with 77 if byoc, NumPy, or
Dask or MPI (the one that is tested) is not installed. PYTHONPATH must contain the
folder of the package byoc."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
DIGITS, CLUSTER = TOP / "examples/digits", TOP / "examples/cluster"
BATCHES = 700  # enough work to kill a worker in the middle of it
kind = sys.argv[1]


def skip(why):
    print(f"note: {why}; scripts/deps cluster installs it")
    sys.exit(77)


try:
    import byoc
    import numpy

    if kind == "dask":
        import distributed  # noqa: F401
    else:
        import mpi4py  # noqa: F401

        subprocess.run(["mpirun", "--version"], stdout=subprocess.DEVNULL, check=True)
except (ImportError, FileNotFoundError) as error:
    skip(f"cluster_{kind} was not tried: {error}")


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found}, expected {expected}")


def wait_until(what, condition, seconds=100):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: timed out after {seconds} s")
        time.sleep(0.002)


class Folder:
    """Inputs, an artifact, and the folders to which workers may write."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.inputs, self.out, self.tmp = (
            self.top / name for name in ("inputs", "out", "tmp")
        )
        self.inputs.mkdir()
        self.tmp.mkdir()
        self.names = [f"b{i:04}" for i in range(BATCHES)]
        for i, name in enumerate(self.names):
            source = DIGITS / f"batch{i % 7}.input_0.npy"
            (self.inputs / f"{name}.input_0.npy").symlink_to(source)
        self.artifact = self.top / "digits.so"
        byoc.compile(DIGITS / "digits.onnx", threads=1).write(self.artifact)
        path = f"{CLUSTER}:{os.environ['PYTHONPATH']}"
        self.environment = {
            **os.environ, "TMPDIR": str(self.tmp), "PYTHONPATH": path,
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }  # fmt: skip

    def start(self, *command, **options):
        return subprocess.Popen(
            command, env=self.environment, text=True, cwd=self.top, **options
        )

    def scored(self):
        """The outputs that exist: {path: time of the last change}."""
        return {path: path.stat().st_mtime_ns for path in self.out.glob("b*.npy")}

    def check_all(self, lines, names):
        check("lines", lines, [f"{name} (64, 10)" for name in names])
        expected = [numpy.load(DIGITS / f"batch{i}.output_0.npy") for i in range(7)]
        for i, name in enumerate(self.names):
            found = numpy.load(self.out / f"{name}.output_0.npy")
            error = numpy.abs(found - expected[i % 7]).max()
            if not error < 1e-5:
                sys.exit(f"{name}: found an error of {error}, expected less than 1e-5")
        files = sorted(path.name for path in self.out.iterdir())
        check("files", files, [f"{name}.output_0.npy" for name in self.names])

    def check_copies(self):
        copies = [path.name for path in self.tmp.glob("byoc-*.so*")]
        check("copies of the artifact", len(copies), 1)


def maps_artifact(pid):
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return bool(re.search(r"/tmp/byoc-\w+\.so$", maps, re.MULTILINE))


def kill_in_the_middle(folder, victim, pids):
    """Kill a worker when some batches are scored, but not all."""
    wait_until("ten batches", lambda: len(folder.scored()) >= 10)
    for pid in pids:
        wait_until(f"worker {pid} maps the copy", lambda pid=pid: maps_artifact(pid))
    os.kill(victim, signal.SIGKILL)
    n_scored = len(folder.scored())
    if n_scored == BATCHES:
        sys.exit(f"worker killed: found {n_scored} batches done, expected fewer")


def try_dask(folder, stack):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"

    def start(*command):
        log = stack.enter_context(open(folder.top / "log", "a"))
        process = folder.start(*command, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    quiet = ("--dashboard-address", ":0")
    start("dask-scheduler", "--host", "127.0.0.1", "--port", address.split(":")[1],
          *quiet)  # fmt: skip
    workers = [
        start("dask-worker", address, "--no-nanny", "--nthreads", "1", *quiet)
        for _ in range(2)
    ]
    wait_until("two workers",
               lambda: (folder.top / "log").read_text().count("Registered to:") == 2)  # fmt: skip
    program = folder.start(sys.executable, CLUSTER / "dask_score.py", address,
                           folder.artifact, folder.inputs, folder.out,
                           stdout=subprocess.PIPE)  # fmt: skip
    stack.callback(program.kill)
    kill_in_the_middle(folder, workers[0].pid, [w.pid for w in workers])
    lines = program.communicate(timeout=300)[0].splitlines()
    check("exit code", program.returncode, 0)
    folder.check_all(lines, folder.names)


def ranks(folder):
    """The processes of mpirun's ranks: {rank: pid}."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            text = path.read_bytes().split(b"\0")
            if b"TMPDIR=" + bytes(folder.tmp) in text:
                for entry in text:
                    if entry.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(entry.split(b"=")[1])] = int(path.parent.name)
    return found


def try_mpi(folder, stack):
    def score():
        program = folder.start(
            "mpirun", "--oversubscribe", "--quiet", "-n", "3", sys.executable,
            CLUSTER / "mpi_score.py", folder.artifact, folder.inputs, folder.out,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        stack.callback(program.kill)
        return program

    program = score()
    wait_until("three ranks", lambda: len(ranks(folder)) == 3)
    pids = ranks(folder)
    kill_in_the_middle(folder, pids[2], [pids[1], pids[2]])
    program.communicate(timeout=100)
    if program.returncode == 0:
        sys.exit("mpirun with a killed rank: found exit code 0, expected another one")
    before = folder.scored()
    unscored = [n for n in folder.names if folder.out / f"{n}.output_0.npy" not in before]
    if not 0 < len(unscored) < BATCHES:
        sys.exit(f"batches left: found {len(unscored)}, expected 1 to {BATCHES - 1}")
    program = score()
    lines, errors = program.communicate(timeout=300)
    check(f"exit code ({errors})", program.returncode, 0)
    folder.check_all(lines.splitlines(), unscored)
    after = folder.scored()
    check("batches computed again", [p for p in before if before[p] != after[p]], [])


with tempfile.TemporaryDirectory() as top, contextlib.ExitStack() as stack:
    folder = Folder(top)
    {"dask": try_dask, "mpi": try_mpi}[kind](folder, stack)
    folder.check_copies()
print(f"{BATCHES} batches, one worker killed, all results there and in order")
