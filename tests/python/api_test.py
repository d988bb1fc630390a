# SPDX-License-Identifier: Apache-2.0
"""Tests the Python package: arguments, results and errors."""

import asyncio
import ctypes
import gc
import logging
import mmap
import pickle
import resource
import subprocess
import sys
import threading
import time
import unittest

import models

try:
    import numpy
except ImportError:
    models.skip("NumPy is not installed")
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

import byoc


def ones(*shape, dtype="float32"):
    return numpy.ones(shape, dtype)


class Values(unittest.TestCase):
    """Inputs and outputs: element types, kinds of memory, shapes."""

    def test_every_dtype(self):
        for dtype in (
            "float32 uint8 int8 uint16 int16 int32 int64 bool float16 float64 "
            "uint32 uint64 complex64 complex128"
        ).split():
            with self.subTest(dtype):
                model = models.compile(
                    models.typed(dtype, "transpose(%x, axes=[1, 0])")
                )
                x = numpy.arange(6).reshape(2, 3).astype(dtype)
                y = model(x)
                self.assertEqual(y.dtype, x.dtype)
                self.assertTrue((y == x.T).all())
                self.assertTrue(y.flags.owndata and y.flags.writeable)

    def test_strings(self):
        model = models.compile(
            models.typed("string", "transpose(%x, axes=[1, 0])")
        )
        want = [["a", "d"], ["bü", ""], ["c", "f"]]
        rows = [["a", "bü", "c"], ["d", "", "f"]]
        for x in (rows, numpy.array(rows), numpy.array(rows, dtype=object)):
            self.assertEqual(model(x).tolist(), want)
        raw = numpy.array([[c.encode() for c in row] for row in rows])
        self.assertEqual(model(raw).tolist(), want)
        found = "element 1: found int, expected str or bytes"
        with self.assertRaisesRegex(byoc.MismatchError, found):
            model([["a", 1, "b"], ["c", "d", "e"]])
        with self.assertRaisesRegex(byoc.InvalidError, "a NUL in string 2"):
            model([["a", "b", "c\0d"], ["c", "d", "e"]])

    def test_lists(self):
        text = (models.top / "tests/memory/lists.ir").read_text()
        model = models.compile(text)
        x = ones(2, 4)
        feeds = {"s": [ones(1, 4), ones(3, 4)], "t": ["u", "v"], "x": x}
        out = model.run(None, feeds)
        self.assertEqual([a.shape for a in out[0]], [(2, 4), (1, 4), (3, 4), (2, 4)])
        self.assertEqual([s.tolist() for s in out[2]], [["u", "v"]] * 2)
        self.assertTrue((out[3] == x).all())
        feeds["s"] = [ones(1, 5)]
        with self.assertRaises(byoc.MismatchError):
            model.run(None, feeds)
        for wrong in (7, None, {"a": ones(1, 4)}, (ones(1, 4) for _ in "ab")):
            feeds["s"] = wrong
            found = f'input "s": found {type(wrong).__name__}, expected a list of values'
            with self.assertRaisesRegex(byoc.MismatchError, found):
                model.run(None, feeds)

    def test_optional(self):
        model = models.compile(
            "def @main(%x: Optional[Tensor[(2), float32]]) "
            "{ optional.has(%x) }"
        )
        self.assertEqual(bool(model(ones(2))), True)
        self.assertEqual(bool(model(None)), False)

    def test_kinds_of_memory(self):
        """Inputs may be in any kind of memory; `out` is written in place."""
        model = models.compile(models.RELU)
        want = numpy.maximum(numpy.arange(-3, 3, dtype="float32"), 0).tolist()
        x = numpy.arange(-3, 3, dtype="float32").reshape(2, 3)
        with open("x.bin", "wb") as file:
            x.tofile(file)
        with open("x.bin", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        view = memoryview(mapped).cast("f", (2, 3))
        for source in (x, view, numpy.memmap("x.bin", "f4", "r", 0, (2, 3))):
            self.assertEqual(model(source).ravel().tolist(), want)
        view.release()
        mapped.close()  # BufferError if a run still borrowed it
        out = ones(2, 3)
        result = model.run(None, {"x": x}, out={"output_0": out})[0]
        self.assertIs(result, out)
        self.assertEqual(out.ravel().tolist(), want)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        model = models.compile(models.RELU)
        x = torch.arange(-3, 3).reshape(2, 3).float()
        self.assertEqual(model(x).tolist(), [[0, 0, 0], [0, 1, 2]])
        out = torch.empty(2, 3)
        model.run(None, {"x": x}, out={"output_0": out})
        self.assertEqual(out.tolist(), [[0, 0, 0], [0, 1, 2]])
        with self.assertRaisesRegex(byoc.InvalidError, "not dense"):
            model(torch.ones(3, 2).T)
        half = models.compile(models.typed("bfloat16", "transpose(%x, axes=[1, 0])"))
        y = half(torch.ones(2, 3, dtype=torch.bfloat16))
        self.assertIsInstance(y, byoc.Tensor)
        self.assertEqual((y.shape, y.dtype), ((3, 2), "bfloat16"))
        del half
        tensor = torch.from_dlpack(y)
        del y
        gc.collect()
        self.assertEqual(float(tensor.sum()), 6)
        with self.assertRaises(byoc.MismatchError):
            model(torch.ones(2, 3).bfloat16())

    def test_dtypes_that_numpy_lacks(self):
        for dtype in ("float8e4m3fn", "float8e5m2fnuz", "float8e8m0"):
            cast = models.typed("float32", f'cast(%x, dtype="{dtype}")')
            y = models.compile(cast)(ones(2, 3))
            self.assertIsInstance(y, byoc.Tensor)
            self.assertEqual((y.shape, y.dtype), ((2, 3), dtype))

    def test_bfloat16_without_torch(self):
        cast = models.typed("float32", 'cast(%x, dtype="bfloat16")')
        back = models.compile(models.typed("bfloat16", 'cast(%x, dtype="float32")'))
        x = ones(2, 3) * numpy.arange(3, dtype="f")
        y = models.compile(cast)(x)
        self.assertEqual(back(y).tolist(), x.tolist())
        self.assertEqual(numpy.asarray(y).tolist(), x.tolist())
        self.assertEqual(numpy.array(y, dtype=int).dtype, int)
        self.assertEqual(numpy.frombuffer(y, "u2").tolist(), [0, 0x3F80, 0x4000] * 2)
        with self.assertRaises(BufferError):
            memoryview(y)
        cast = models.typed("float32", 'cast(%x, dtype="float8e5m2")')
        with self.assertRaisesRegex(TypeError, "found float8e5m2"):
            numpy.asarray(models.compile(cast)(x))

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        x = numpy.arange(6).reshape(2, 3)
        for theirs, ours in (
            ("bfloat16", "bfloat16"),
            ("float8_e4m3fn", "float8e4m3fn"),
            ("int4", "int4"),
        ):
            array = x.astype(getattr(ml_dtypes, theirs))
            model = models.compile(models.typed(ours, 'cast(%x, dtype="float32")'))
            self.assertEqual(model(array).tolist(), x.tolist())
        with self.assertRaisesRegex(byoc.MismatchError, "found float8e5m2, expected i"):
            model(x.astype(ml_dtypes.float8_e5m2))
        copy = models.compile(models.typed("bfloat16", "transpose(%x, axes=[1, 0])"))
        out = numpy.zeros((3, 2), ml_dtypes.bfloat16)
        copy.run(None, {"x": x.astype(out.dtype)}, out={copy.outputs[0].name: out})
        self.assertEqual(out.tolist(), x.T.tolist())
        out.setflags(write=False)
        with self.assertRaisesRegex(byoc.InvalidError, "read-only"):
            copy.run(None, {"x": x.astype(out.dtype)}, out={copy.outputs[0].name: out})

    def test_dtypes_without_buffers(self):
        model = models.compile(models.RELU)
        days = numpy.zeros((2, 3), "M8[D]")
        with self.assertRaisesRegex(byoc.MismatchError, '"x": found datetime64.*32'):
            model(days)
        with self.assertRaisesRegex(byoc.MismatchError, "output.*found datetime64"):
            model.run(None, {"x": ones(2, 3)}, out={model.outputs[0].name: days})

    def test_shapes_that_vary(self):
        model = models.compile(models.VARIES)
        for n in (1, 5, 0, 2):
            y = model(ones(n, 3))
            self.assertEqual(y.shape, (n, 3))
            self.assertTrue(numpy.allclose(y, 1 / 3))
        model.warm(N=7)
        self.assertEqual(model.stats["cache_failures"], 0)
        with self.assertRaises(byoc.InvalidError):
            model.warm(M=7)
        with self.assertRaises(TypeError):
            model.warm(N="7")
        y = models.compile(models.DEPENDS)(numpy.array([0, 3, 0, 4], "f4"))
        self.assertEqual(y.tolist(), [[1, 3]])

    def test_outputs_outlive_everything(self):
        model = models.compile(models.RELU)
        y = model(ones(2, 3))
        model.close()
        del model
        gc.collect()
        self.assertEqual(y.sum(), 6)
        y += 1
        self.assertEqual(y.sum(), 12)

    def test_two_runs_do_not_share(self):
        model = models.compile(models.RELU)
        a = model(ones(2, 3))
        b = model(2 * ones(2, 3))
        self.assertEqual((a.sum(), b.sum()), (6, 12))


class Caches(unittest.TestCase):
    """Inputs and outputs that are slices of one larger array."""

    @classmethod
    def setUpClass(cls):
        cls.model = byoc.compile("text.onnx")

    def test_generated_text(self):
        """The most likely bytes are the same with and without caches."""
        sys.path.append(str(models.top / "examples" / "python"))
        import generate

        text = list(b"The backend")
        found = list(generate.stream(self.model, bytes(text), 24, 0))
        empty = {v.name: ones(1, 4, 0, 12) for v in self.model.inputs[1:]}
        for byte in found:
            logits = self.model(ids=numpy.array([text]), **empty)[0]
            self.assertEqual(int(logits[0, -1].argmax()), byte)
            text.append(byte)
        self.assertEqual(len(text), 35)

    def test_wrong_output_memory(self):
        rows = {v.name: ones(1, 4, 18, 12) for v in self.model.inputs[1:]}
        past = {name: a[:, :, :5] for name, a in rows.items()}
        keys = rows["past.0.key"]
        for present, text in (
            (keys[:, :, 1:7], "rows begin elsewhere"),
            (keys[:, :, :7], r"found memory of shape \(1, 4, 7, 12\)"),
            (keys[:, :, :18:3], "dense"),
        ):
            with self.subTest(text), self.assertRaisesRegex(byoc.Error, text):
                self.model.run(
                    ["present.0.key"],
                    {"ids": ones(1, 1, dtype="int64"), **past},
                    out={"present.0.key": present},
                )


class Names(unittest.TestCase):
    """Inputs and outputs by name."""

    def setUp(self):
        self.model = models.compile(models.TWO)
        self.feeds = {"x": ones(2, 3), "y": ones(2, 3)}

    def test_chosen_outputs(self):
        both = self.model.run(None, self.feeds)
        self.assertEqual(len(both), 2)
        one = self.model.run(["output_1"], self.feeds)
        self.assertEqual(one[0].tolist(), [[2, 4, 6]] * 2)
        swapped = self.model.run(("output_1", "output_0"), self.feeds)
        self.assertEqual(swapped[0].tolist(), both[1].tolist())
        self.assertEqual(self.model.run([], self.feeds), [])
        named = self.model(y=self.feeds["y"], x=self.feeds["x"])
        self.assertEqual(named[1].tolist(), one[0].tolist())
        mixed = self.model(self.feeds["x"], y=self.feeds["y"])
        self.assertEqual(mixed[1].tolist(), one[0].tolist())

    def refuse(self, text, names, feeds, **more):
        with self.assertRaisesRegex(byoc.InvalidError, text):
            self.model.run(names, feeds, **more)

    def test_wrong_names(self):
        self.refuse("one of the model's outputs: output_0, output_1", ["z"], self.feeds)
        self.refuse('"output_0" is given twice', ["output_0"] * 2, self.feeds)
        self.refuse('"output_1" is given twice', ["output_0"] + ["output_1"] * 9, self.feeds)
        self.refuse("one of the model's inputs: x, y", None, {**self.feeds, "z": 1})
        self.refuse("one of the model's inputs", None, {"z": ones(2, 3)})
        self.refuse('input "y" is missing', None, {"x": ones(2, 3)})
        with self.assertRaisesRegex(ValueError, "found 3 inputs, expected at most 2"):
            self.model(1, 2, 3)
        with self.assertRaisesRegex(ValueError, '"x" is given twice'):
            self.model(ones(2, 3), ones(2, 3), x=ones(2, 3))
        for names, feeds in ((None, None), (7, {}), ([7], self.feeds), (None, {7: 1})):
            with self.assertRaises(TypeError):
                self.model.run(names, feeds)
        with self.assertRaisesRegex(TypeError, "names: found a string"):
            self.model.run("output_1", self.feeds)
        # and the model still runs
        self.assertEqual(len(self.model.run(None, self.feeds)), 2)


class Refusals(unittest.TestCase):
    """Wrong arguments of runs."""

    def setUp(self):
        self.model = models.compile(models.RELU)

    def refuse(self, kind, text, x, **out):
        with self.assertRaisesRegex(kind, text) as caught:
            self.model.run(None, {"x": x}, **out)
        self.assertIsInstance(caught.exception, (byoc.Error, BufferError))
        self.assertEqual(self.model(ones(2, 3)).sum(), 6)

    def test_inputs(self):
        self.refuse(ValueError, r"\(2, 4\), expected \(2, 3\)", ones(2, 4))
        self.refuse(byoc.MismatchError, "has rank 1, expected shape", ones(6))
        self.refuse(TypeError, "found float64, expected float32$", ones(2, 3, dtype="f8"))
        self.refuse(TypeError, "found bool, expected", ones(2, 3, dtype=bool))
        self.refuse(TypeError, 'format ">f"', ones(2, 3, dtype=">f4"))
        self.refuse(TypeError, 'format "O"', ones(2, 3, dtype=object))
        self.refuse(TypeError, "found list, expected an array", [[1, 2, 3]] * 2)
        self.refuse(TypeError, "found NoneType", None)
        self.refuse(ValueError, "not dense", ones(3, 2).T)
        self.refuse(ValueError, "not dense", ones(2, 6)[:, ::2])
        self.refuse(ValueError, "a stride that is negative", ones(2, 3)[::-1])
        packed = numpy.zeros(25, "u1")[1:].view("f4").reshape(2, 3)
        self.refuse(ValueError, "not aligned", packed)

    def test_bytes_are_not_bool(self):
        model = models.compile(models.typed("bool", "transpose(%x, axes=[1, 0])"))
        with self.assertRaisesRegex(TypeError, "found uint8, expected bool"):
            model(ones(2, 3, dtype="u1"))

    def test_outputs(self):
        x = ones(2, 3)
        out = lambda a: {"out": {"output_0": a}}  # noqa: E731
        self.refuse(ValueError, "overlaps", x, **out(x))
        self.refuse(ValueError, r"expected \(2, 3\)", x, **out(ones(3, 2)))
        self.refuse(ValueError, "not dense.* give other", x, **out(ones(3, 2).T))
        self.refuse(TypeError, "float64", x, **out(ones(2, 3, dtype="f8")))
        frozen = ones(2, 3)
        frozen.flags.writeable = False
        self.refuse(byoc.InvalidError, "found a read-only array", x, **out(frozen))
        with self.assertRaises(TypeError):
            self.model.run(None, {"x": x}, out=[ones(2, 3)])
        with self.assertRaises(TypeError):
            self.model.run(None, {"x": x}, out={0: ones(2, 3)})
        for names in (None, ["output_0"], []):
            with self.assertRaisesRegex(
                byoc.InvalidError, '"other", which is not an output of this run'
            ):
                self.model.run(names, {"x": x}, out={"other": ones(2, 3)})
        with self.assertRaisesRegex(byoc.InvalidError, '"output_0", which is not'):
            self.model.run([], {"x": x}, out={"output_0": ones(2, 3)})

    def test_closed(self):
        self.model.close()
        self.model.close()
        self.assertTrue(self.model.closed)
        for use in (
            lambda: self.model(ones(2, 3)),
            lambda: self.model.inputs,
            lambda: self.model.metadata,
            lambda: self.model.stats,
            lambda: self.model.ledger,
            lambda: self.model.write("x.so"),
            lambda: self.model.warm(N=1),
            lambda: self.model.submit(None, {}, print),
            lambda: self.model.profile().__enter__(),
        ):
            with self.assertRaisesRegex(byoc.InvalidError, "the model is closed"):
                use()
        with models.compile(models.RELU) as model, model.profile() as profile:
            model(ones(2, 3))
            model.close()
        self.assertEqual(profile.events[-1].kind, "run")
        with models.compile(models.RELU) as model:
            pass
        self.assertTrue(model.closed)

    def test_types_are_not_made_directly(self):
        for kind in (byoc.Tensor, byoc.Run, byoc.Model):
            with self.assertRaises(TypeError):
                kind()


class Compile(unittest.TestCase):
    def test_sources(self):
        import pathlib

        data = pathlib.Path("digits.onnx").read_bytes()
        x = numpy.load("batch0.input_0.npy")
        want = byoc.compile("digits.onnx")(x)

        class Proto:
            def SerializeToString(self):
                return data

        for source in (pathlib.Path("digits.onnx"), data, memoryview(data), Proto()):
            self.assertTrue((byoc.compile(source)(x) == want).all())
        byoc.compile(data).write("s.so")
        artifact = pathlib.Path("s.so")
        with artifact.open("rb") as file:
            for source in (
                "s.so", artifact, artifact.read_bytes(), file.fileno(),
            ):  # fmt: skip
                model = byoc.load(source)
                self.assertTrue((model(x) == want).all())
                self.assertEqual(model.ledger.offloaded, 100)
                self.assertEqual(model.ir, "")

    def test_texts_with_a_nul(self):
        """C's strings end at a NUL: the rest must not be ignored."""
        for call in (
            lambda: byoc.compile("digits.onnx\0x"),
            lambda: byoc.load("digits.so\0x"),
            lambda: byoc.compile("digits.onnx").write("nul.so\0x"),
            lambda: byoc.compile("digits.onnx", exclude=["Softmax\0x"]),
            lambda: byoc.compile("digits.onnx", cc="cc\0x"),
        ):
            with self.assertRaisesRegex(byoc.InvalidError, "found a NUL after"):
                call()

    def test_onnx_model(self):
        try:
            import onnx
        except ImportError:
            self.skipTest("the package onnx is not installed")
        x = numpy.load("batch0.input_0.npy")
        self.assertEqual(byoc.compile(onnx.load("digits.onnx"))(x).shape, (64, 10))

    def test_options(self):
        events = []
        model = byoc.compile(
            "digits.onnx",
            backends="dnnl",
            exclude=["Softmax"],
            opt_level="O1",
            codegen="json",
            exact=True,
            threads=1,
            runners=2,
            memory_bytes=1 << 30,
        )
        self.assertEqual(model.ledger.summary["native"], 1)
        self.assertEqual(model.stats["threads"], 1)
        self.assertIn("def @main", model.ir)
        byoc.compile(
            "digits.onnx",
            partition_by="measured",
            cost_table="costs.json",
            measure_seconds=0.2,
            progress=lambda *a: events.append(a),
        )
        self.assertTrue(events and all(len(a) == 3 for a in events))
        fixed = models.compile(models.VARIES, values={}, warm="N=1,2")
        self.assertEqual(fixed.stats["cache_builds"], 2)

    def test_refusals(self):
        def refuse(kind, *args, **options):
            with self.assertRaises(kind):
                byoc.compile(*args, **options)

        refuse(byoc.FileError, "nothing.onnx")
        refuse(OSError, "nothing.onnx")
        refuse(byoc.ParseError, b"not a model")
        refuse(byoc.BackendError, "digits.onnx", backends=["nobody"])
        refuse(ValueError, "digits.onnx", opt_level="O9")
        refuse(ValueError, "digits.onnx", isolate=True, progress=print)
        refuse(TypeError, "digits.onnx", no_such_option=1)
        refuse(TypeError, "digits.onnx", threads="2")
        refuse(OverflowError, "digits.onnx", threads=-1)
        for wrong, kind, message in (
            ({"threads": "2"}, TypeError, "threads: found '2', expected a whole"),
            ({"measure_seconds": "x"}, TypeError, "measure_seconds: found 'x', exp"),
            ({"function": 1}, TypeError, "function: found 1, expected a string"),
            ({"dims": [1]}, TypeError, "dims: found .1., expected a dict"),
            ({"backends": 5}, TypeError, "backends: found 5, expected a name, or"),
            ({"plugins": 5}, TypeError, "plugins: found 5, expected a path"),
            ({"opt_level": 2}, ValueError, "opt_level: found 2, expected one of"),
        ):
            with self.assertRaisesRegex(kind, message):
                byoc.compile("digits.onnx", **wrong)
        with self.assertRaisesRegex(TypeError, "model: found int, expected a path"):
            byoc.compile(3)
        with self.assertRaisesRegex(TypeError, "artifact: found list, expected a"):
            byoc.load([])
        with self.assertRaisesRegex(TypeError, "write.. it, and load"):
            pickle.dumps(models.compile(models.RELU))
        byoc.compile("digits.onnx", shapes={"image": "64x1x8x8"})
        refuse(OverflowError, "digits.onnx", threads=1 << 40)
        refuse(TypeError, "digits.onnx", backends=[1])
        refuse(TypeError, 1.5)
        refuse(TypeError, None)
        with self.assertRaises(byoc.GateError) as caught:
            byoc.compile("digits.onnx", backends=[], require_offload_nodes=50)
        self.assertEqual(caught.exception.ledger.offloaded, 0)
        for source in (b"", "digits.onnx", 999, -1):
            with self.assertRaises(byoc.Error):
                byoc.load(source)
        with self.assertRaises(TypeError):
            byoc.load("digits.onnx", dims={"N": 1})
        with self.assertRaises(byoc.NoMemoryError):
            byoc.compile("digits.onnx", memory_bytes=1000)(ones(64, 1, 8, 8))
        with self.assertRaisesRegex(MemoryError, "out of memory for [1-9].* of a run"):
            models.compile(models.VARIES, memory_bytes=10)(ones(2, 3))
        with self.assertRaisesRegex(byoc.InvalidError, "loaded, not compiled"):
            byoc.compile("digits.onnx").write("l.so")
            byoc.load("l.so").write("m.so")
        with self.assertRaisesRegex(byoc.ParseError, "found a shared library, expected an ONNX model"):
            byoc.compile("l.so")
        with self.assertRaises(byoc.FileError):
            byoc.compile("digits.onnx").write("no/such/folder.so")

    def test_statuses(self):
        """The classes are those of the C API, each with its number."""
        header = (models.top / "include/byoc/runtime.h").read_text()
        body = header.split("enum byoc_status {")[1].split("}")[0]
        import re

        numbers = {int(n) for n in re.findall(r"BYOC_\w+ = (\d+)", body)} - {0}
        self.assertEqual(numbers, {s.value for s in byoc.Status})
        for status in byoc.Status:
            error = byoc._errors.error_of(status, "text")
            self.assertEqual((error.status, str(error)), (status, "text"))
            self.assertIsInstance(error, byoc.Error)

    def test_log(self):
        with self.assertLogs("byoc", logging.INFO) as logs:
            models.compile(models.RELU)
        self.assertTrue(any("threads" in line for line in logs.output))
        with self.assertNoLogs("byoc", logging.WARNING):
            models.compile(models.RELU)

    def test_options_are_those_of_the_headers(self):
        """Each member of the params is an option, or known not to be one."""
        import inspect
        import re

        options = set(inspect.signature(byoc.compile).parameters)
        load_options = set(inspect.signature(byoc.load).parameters)
        internal = {
            "struct_size", "instruments", "n_instruments", "print", "print_ctx",
            "print_before", "print_after", "progress_ctx", "passes",
            "stop_after", "log", "log_ctx", "log_line", "log_severity",
            "parallel_for", "parallel_ctx", "fn", "allocate", "release", "allocate_ctx",
        }  # fmt: skip
        for file, struct in (("byoc", "compile"), ("runtime", "load")):
            text = (models.top / f"include/byoc/{file}.h").read_text()
            body = text.split(f"struct byoc_{struct}_params {{")[1].split("\n};")[0]
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
            members = set(re.findall(r"(\w+);|\(\*(\w+)\)", body))
            members = {a or b for a, b in members}
            self.assertGreater(len(members), 15)
            self.assertEqual(members - internal - options, set())
            if struct == "load":
                self.assertEqual(members - internal - load_options, set())


class Threads(unittest.TestCase):
    def test_eight_threads(self):
        """Eight threads run one model at once; each gets the result of its input.
        The model is small, for the sanitizers."""
        model = models.compile(models.CONV, threads=1)
        batches = [numpy.load(f"batch{i}.input_0.npy")[:4] for i in range(7)]
        want = [model(batch) for batch in batches]
        wrong, barrier = [], threading.Barrier(8)

        def work(seed):
            barrier.wait()
            for i in range(100):
                k = (seed + i) % 7
                if not (model(batches[k]) == want[k]).all():
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_interpreter_goes_on(self):
        """The GIL is released: a counter counts during one long run."""
        n = round(700 / models.SHARE ** (1 / 3))
        model = models.compile(
            f"def @main(%x: Tensor[({n}, {n}), float32]) {{ "
            + "".join(f"%{i} = nn.matmul(%{i - 1 if i else 'x'}, %x);" for i in range(10))
            + " nn.relu(%9) }",
            backends=[],
        )
        state = {"count": 0, "stop": False}

        def count():
            while not state["stop"]:
                state["count"] += 1
                time.sleep(0.0005)

        x = numpy.zeros((n, n), "float32")
        model(x)
        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(100):  # a busy machine may not run the thread at once
            before = state["count"]
            model(x)
            during = state["count"] - before
            if during > 3:
                break
        state["stop"] = True
        thread.join()
        self.assertGreater(during, 3)

    def test_close_while_running(self):
        for _ in range(-(-20 // models.SHARE)):
            model = byoc.compile("digits.onnx", threads=1)
            x = numpy.load("batch0.input_0.npy")
            ends = []

            def work(model=model, x=x, ends=ends):
                try:
                    while True:
                        model(x)
                except byoc.InvalidError as error:
                    ends.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.005)
            model.close()
            for thread in threads:
                thread.join()
            self.assertEqual(ends, ["the model is closed; load or compile it again"] * 3)

    def test_submit(self):
        model = models.compile(models.TWO, runners=2)
        feeds = {"x": ones(2, 3), "y": ones(2, 3)}
        results, ended = [], threading.Semaphore(0)

        def done(outputs, error):
            results.append((outputs, error))
            ended.release()

        for _ in range(50):
            model.submit(["output_1"], feeds, done)
        model.submit(None, {**feeds, "x": ones(2, 4)}, done)
        for _ in range(51):
            ended.acquire()
        self.assertEqual(sum(error is None for _, error in results), 50)
        failed = [e for _, e in results if e]
        self.assertIsInstance(failed[0], byoc.MismatchError)
        for outputs, error in results:
            if not error:
                self.assertEqual(outputs[0].tolist(), [[2, 4, 6]] * 2)
        with self.assertRaises(TypeError):
            model.submit(None, feeds, None)

    def test_submit_keeps_names(self):
        """A waiting run needs the names after the dict of its inputs was freed."""
        model = models.compile(models.typed("float32").replace("%x", "%image"))
        errors, ended = [], threading.Semaphore(0)

        def done(outputs, error):
            errors.append(error)
            ended.release()

        for _ in range(50):
            model.submit(None, {"".join(["im", "age"]): ones(2, 3)}, done)
            _ = ["".join(["pic", f"{i:02}"]) for i in range(50)]  # reuse the memory
        for _ in range(50):
            ended.acquire()
        self.assertEqual(errors, [None] * 50)

    def test_last_reference_in_callback(self):
        """The thread of the run must not free the model it belongs to."""
        for _ in range(20):
            ended = threading.Event()
            box = [models.compile(models.RELU)]

            def done(outputs, error, box=box, ended=ended):
                box.clear()
                gc.collect()
                ended.set()

            box[0].submit(None, {"x": ones(2, 3)}, done)
            self.assertTrue(ended.wait(models.PATIENCE))

    def test_no_thread_to_free_a_model(self):
        """A later model frees a model whose last reference a callback dropped while no
        thread could be created."""
        program = """
import gc, resource, threading
import byoc, numpy

def kept():
    return sum(
        getattr(o, "__qualname__", "") == "_options.<locals>.<lambda>"
        for o in gc.get_objects()
    )

def done(outputs, error):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (16 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    box.clear()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    ended.set()

ended = threading.Event()
box = [byoc.compile("digits.onnx", threads=1)]
box[0].submit(None, {"image": numpy.load("batch0.input_0.npy")}, done)
ended.wait()
assert kept() == 1, "a thread could be created"
byoc.compile("digits.onnx", threads=1).close()
assert kept() == 0, "the model leaks"
"""
        # stacks of threads that have ended are not kept if they are as large as this
        stack = (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1])
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            timeout=models.PATIENCE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, stack),
        )

    def test_cancel(self):
        n = round(900 / models.SHARE ** (1 / 3))
        model = models.compile(
            f"def @main(%x: Tensor[({n}, {n}), float32]) {{"
            + "".join(f"%{i} = nn.matmul(%{i - 1 if i else 'x'}, %x);" for i in range(99))
            + " nn.relu(%98) }",
            backends=[],
        )
        ends, ended = [], threading.Event()

        def done(outputs, error):
            ends.append(error)
            ended.set()

        x = numpy.zeros((n, n), "float32")
        run = model.submit(None, {"x": x}, done)
        self.assertTrue(run.cancel())
        self.assertTrue(ended.wait(models.PATIENCE))
        self.assertIsInstance(ends[0], byoc.CancelledError)
        self.assertFalse(run.cancel())
        small = models.compile(models.RELU)
        self.assertEqual(small(ones(2, 3)).sum(), 6)

    def test_asyncio(self):
        model = models.compile(models.TWO)
        feeds = {"x": ones(2, 3), "y": ones(2, 3)}

        async def main():
            runs = [model.run_async(["output_1"], feeds) for _ in range(20)]
            for outputs in await asyncio.gather(*runs):
                self.assertEqual(outputs[0].tolist(), [[2, 4, 6]] * 2)
            with self.assertRaises(byoc.MismatchError):
                await model.run_async(None, {**feeds, "x": ones(1)})
            task = asyncio.create_task(model.run_async(None, feeds))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(len(model.run(None, feeds)), 2)

    def test_exit_with_a_run_under_way(self):
        n = -(-200 // models.SHARE)
        program = (
            "import byoc, numpy\n"
            "m = byoc.compile('digits.onnx', threads=1)\n"
            "x = numpy.load('batch0.input_0.npy')\n"
            f"for i in range({n}): m.submit(None, {{'image': x}}, lambda *a, i=i: print(i))\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            timeout=models.PATIENCE,
            stdout=subprocess.PIPE,
        )
        self.assertEqual([int(i) for i in ended.stdout.split()], list(range(n)))

    def test_fork_with_a_run_under_way(self):
        """A forked child does not wait for its parent's runs when it exits."""
        program = """
import os, signal, sys, byoc, numpy
m = byoc.compile("digits.onnx", threads=1)
x = numpy.load("batch0.input_0.npy")
for _ in range(200): m.submit(None, {"image": x}, lambda *a: None)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=models.PATIENCE)


class Reports(unittest.TestCase):
    def test_profile(self):
        model = byoc.compile("digits.onnx")
        x = numpy.load("batch0.input_0.npy")
        with model.profile() as profile:
            model.run(None, {"image": x}, tag="mine")
            with self.assertRaises(byoc.Error):
                model(x[:3])
        n = len(profile.events)
        model(x)
        self.assertEqual(len(profile.events), n)
        kinds = [event.kind for event in profile.events]
        self.assertEqual(kinds.count("run"), 1)
        self.assertIn("region", kinds)
        self.assertEqual({event.tag for event in profile.events}, {"mine"})
        for row in profile.rows():
            self.assertGreaterEqual(row["us"], 0)

    def test_ledger(self):
        full = byoc.compile("digits.onnx").ledger
        partial = byoc.compile("digits.onnx", exclude=["Conv"]).ledger
        self.assertEqual(len({tuple(row) for row in full.rows()}), 1)
        self.assertEqual(len(full.rows()), full.summary["nodes"])
        self.assertTrue(full.diff(partial)["worse"])
        self.assertFalse(partial.diff(full)["worse"])
        self.assertIn("operators offloaded", full.text())
        conv = next(node.name for node in partial.nodes if node.op == "Conv")
        self.assertIn("excluded", partial.explain(conv))
        with self.assertRaises(byoc.InvalidError):
            partial.explain("no such node")
        for text in ("", "{}", "not JSON"):
            with self.assertRaises(ValueError):
                byoc.Ledger(text).text()

    def test_command(self):
        def run(*args):
            command = [sys.executable, "-m", "byoc", *args]
            return subprocess.run(command, capture_output=True, text=True)

        self.assertEqual(run("--version").stdout.strip(), f"byoc {byoc.__version__}")
        self.assertIn("100.00%", run("check", "digits.onnx").stdout)
        self.assertEqual(run("check", "nothing.onnx").returncode, 2)


class Session(unittest.TestCase):
    """The calls of ONNX Runtime."""

    def test_calls(self):
        options = byoc.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = byoc.GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = byoc.InferenceSession(
            "digits.onnx", options, providers=["CPUExecutionProvider"]
        )
        self.assertEqual(session.model.stats["threads"], 1)
        (image,) = session.get_inputs()
        self.assertEqual((image.name, image.type), ("image", "tensor(float)"))
        x = numpy.load("batch0.input_0.npy")
        (want,) = session.run(None, {"image": x})
        fortran = numpy.asfortranarray(x)
        (got,) = session.run([session.get_outputs()[0].name], {"image": fortran})
        self.assertTrue((got == want).all())
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertIsInstance(session.get_modelmeta().custom_metadata_map, dict)
        session.model.write("session.so")
        loaded = byoc.InferenceSession("session.so", options)
        self.assertTrue((loaded.run([], {"image": x})[0] == want).all())
        ended, ends = threading.Event(), []

        def done(outputs, user_data, error):
            ends.append((outputs, user_data, error))
            ended.set()

        session.run_async(None, {"image": x}, done, 7)
        self.assertTrue(ended.wait(models.PATIENCE))
        self.assertEqual(ends[0][1:], (7, ""))

    def test_onnxruntime_provider(self):
        try:
            path = byoc.onnxruntime_provider()
        except byoc.FileError as error:
            self.assertIn("libbyoc-onnxruntime", str(error))
        else:
            self.assertTrue(hasattr(ctypes.CDLL(path), "CreateEpFactories"))

    def test_unknown_provider(self):
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider"):
            session = byoc.InferenceSession(
                "digits.onnx", providers=["CUDAExecutionProvider"]
            )
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_dims(self):
        options = byoc.SessionOptions()
        options.add_free_dimension_override_by_name("N", 1)
        with self.assertRaises(byoc.Error):  # a text states its own sizes
            with open("v.ir", "w") as file:
                file.write(models.VARIES)
            byoc.InferenceSession("v.ir", options)
        session = byoc.InferenceSession("v.ir")
        self.assertEqual(session.get_inputs()[0].shape, ["N", 3])
        self.assertEqual(session.run(None, {"x": ones(4, 3)})[0].shape, (4, 3))

    def test_refusals(self):
        session = byoc.InferenceSession("digits.onnx")
        with self.assertRaises(byoc.UnsupportedError):
            session.io_binding()
        with self.assertRaises(byoc.UnsupportedError):
            byoc.SessionOptions().enable_profiling = True
        with self.assertRaises(byoc.UnsupportedError):
            byoc.SessionOptions().add_session_config_entry("a", "b")
        with self.assertRaises(byoc.UnsupportedError):
            byoc.RunOptions().terminate = True
        with self.assertRaises(byoc.UnsupportedError):
            byoc.InferenceSession("digits.onnx", provider_options=[{"a": 1}])
        with self.assertRaisesRegex(TypeError, "sess_options: found 5, expected byoc"):
            byoc.InferenceSession("digits.onnx", 5)
        with self.assertRaises(byoc.InvalidError):
            session.run(["nothing"], {"image": ones(64, 1, 8, 8)})
        with self.assertRaises(byoc.MismatchError):
            session.run(None, {"image": [[1.0]]})
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider"):
            byoc.InferenceSession(
                "digits.onnx",
                providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
            )


if __name__ == "__main__":
    models.folder()
    unittest.main()
