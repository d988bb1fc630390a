# SPDX-License-Identifier: Apache-2.0
"""Tests that no call of the package leaks memory or references, in success or
failure.

Run with PYTHONMALLOC=malloc and GLIBC_TUNABLES=glibc.malloc.tcache_count=0: the
C library then counts the bytes of all objects, and of byoc.
"""

import ctypes
import gc
import sys
import threading

import models

try:
    import numpy
except ImportError:
    models.skip("NumPy is not installed")

import byoc


class Info(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
        "fordblks keepcost".split()
    ]


def used():
    """The number of bytes that are allocated now."""
    gc.collect()
    info = malloc_info()
    return info.uordblks + info.hblkhd


def refused(kind, function, *args, **named):
    try:
        function(*args, **named)
    except kind:
        return
    raise AssertionError("not refused")


def main():
    x = numpy.ones((2, 3), "f4")
    relu = models.compile(models.RELU)
    two = models.compile(models.TWO)
    varies = models.compile(models.VARIES)
    strings = models.compile(models.typed("string", "transpose(%x, axes=[1, 0])"))
    lists = models.compile((models.top / "tests/memory/lists.ir").read_text())
    half = models.compile(models.typed("bfloat16", "transpose(%x, axes=[1, 0])"))
    feeds = {"x": x, "y": x}
    wide = numpy.ones((2, 4), "f4")
    words = numpy.array([["a", "b", "c"]] * 2)
    out = {"output_0": numpy.empty((2, 3), "f4")}
    relu.write("relu.so")
    ledger = relu.ledger

    backend = byoc.PythonBackend(
        "try", {"try.relu": "nn.relu(%x)"}, lambda kernel, x: run_relu(x)
    )
    plugin = backend.write("try.so")
    python = models.compile(models.RELU, plugins=plugin, backends=["try"])

    def python_fails():
        nonlocal run_relu
        run_relu, original = (lambda x: 1 / 0), run_relu
        refused(byoc.BackendError, python, x)
        run_relu = lambda x: x[:1]  # noqa: E731
        refused(byoc.BackendError, python, x)
        run_relu = original

    def run_relu(x):
        return numpy.maximum(x, 0)

    def python_compile():
        models.compile(models.RELU, plugins=plugin, backends=["try"])(x)

    def tensor():
        tensor = half(numpy_bf16)
        tensor.__dlpack__()
        repr(tensor)
        refused(BufferError, memoryview, tensor)

    def submit():
        ended = threading.Event()
        relu.submit(None, {"x": x}, lambda *_: ended.set())
        ended.wait()

    def close():
        relu = byoc.load("relu.so")
        relu(x)
        relu.close()

    def profile():
        with relu.profile() as profile:
            relu(x)
        assert profile.rows()

    calls = {
        "call": lambda: relu(x),
        "call by name": lambda: relu(x=x),
        "run": lambda: two.run(["output_1"], feeds, tag="tag"),
        "out": lambda: relu.run(None, {"x": x}, out=out),
        "varies": lambda: varies(x),
        "strings": lambda: strings(words),
        "lists": lambda: lists.run(None, {"s": [wide], "t": ["a"], "x": wide}),
        "profile": profile,
        "submit": submit,
        "wrong shape": lambda: refused(ValueError, relu, x[:1]),
        "wrong dtype": lambda: refused(TypeError, relu, x.astype("f8")),
        "not dense": lambda: refused(ValueError, relu, x[:, ::-1]),
        "not an array": lambda: refused(TypeError, relu, [1]),
        "wrong name": lambda: refused(ValueError, relu.run, ["z"], {"x": x}),
        "unknown feed": lambda: refused(ValueError, relu.run, None, {"z": x}),
        "missing": lambda: refused(ValueError, two, x),
        "wrong string": lambda: refused(ValueError, strings, [["a\0", "", ""]] * 2),
        "wrong list": lambda: refused(TypeError, lists.run, None, {"s": [1]}),
        "wrong names": lambda: refused(TypeError, relu.run, 7, {"x": x}),
        "describe": lambda: (relu.inputs, lists.outputs, relu.metadata, relu.stats),
        "ledger": lambda: (ledger.text(), ledger.diff(ledger), relu.warnings),
        "load": close,
        "load nothing": lambda: refused(OSError, byoc.load, "nothing.so"),
        "wrong option": lambda: refused(TypeError, byoc.load, "relu.so", threads="x"),
        "compile": lambda: models.compile(models.RELU, backends=[])(x),
        "compile error": lambda: refused(ValueError, models.compile, "def"),
        "Python backend": lambda: python(x),
        "Python backend fails": python_fails,
        "Python backend, compile": python_compile,
    }
    try:
        import torch

        numpy_bf16 = torch.ones(2, 3, dtype=torch.bfloat16)
        calls["bfloat16"] = tensor
        t = torch.ones(2, 3)
        calls["dlpack"] = lambda: relu(t)
    except ImportError:
        pass
    objects = [None, True, False, x, feeds, words, byoc.Model, byoc.Error, "x"]
    # Since Python 3.12 some are immortal (PEP 683): Python does not count references
    # to them, but an extension with the stable ABI of 3.11 does, so that counts drift.
    objects = [o for o in objects if sys.getrefcount(o) < 1 << 30]
    failed = 0
    for name, call in calls.items():
        times = 20 if name.endswith(("load", "compile")) else 200
        rounds = []
        for _ in range(5):  # in the first ones, caches fill
            bytes_before, counts = used(), [sys.getrefcount(o) for o in objects]
            for _ in range(times):
                call()
            refs = [abs(sys.getrefcount(o) - n) for o, n in zip(objects, counts)]
            rounds.append((used() - bytes_before, max(refs)))
            # the smallest piece of memory that can leak has 32 bytes
            if rounds[-1][0] < 16 * times and rounds[-1][1] <= 5:
                break
        else:
            print(f"{name}: rounds of {times} calls leave (bytes, references) {rounds}")
            failed += 1
    print(f"{len(calls)} calls, {failed} leak")
    return 1 if failed else 0


if __name__ == "__main__":
    malloc_info = ctypes.CDLL(None).mallinfo2
    malloc_info.restype = Info
    models.folder()
    sys.exit(main())
