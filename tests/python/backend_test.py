# SPDX-License-Identifier: Apache-2.0
"""Tests backends in Python: the arguments of run() and accept(), errors, and plug-ins
that the byoc command loads, among others with "byoc conform". The only argument is the
path of the command."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest
import unittest.mock

import models

try:
    import numpy
except ImportError:
    models.skip("NumPy is not installed")

import byoc

COMMAND = os.path.abspath(sys.argv.pop(1))
TWO_ROWS = {"try.relu": "nn.relu(%x: float32)", "try.any": "nn.relu(%x)"}
n_plugins = 0


def define(patterns, run, **options):
    """Define a backend called "try". Returns the path of its plug-in, a new file."""
    global n_plugins
    n_plugins += 1
    backend = byoc.PythonBackend("try", patterns, run, **options)
    return backend.write(f"try{n_plugins}.so")


def compile(text, plugin, **options):
    return models.compile(text, plugins=plugin, backends=["try"], **options)


def relu(kernel, x):
    return numpy.maximum(x, 0, dtype=x.dtype)


X = numpy.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)


class Calls(unittest.TestCase):
    def test_kernel(self):
        calls = []

        def run(kernel, x, w, **rest):
            calls.append((kernel, x, w, rest))
            return numpy.zeros(kernel.outputs[0].shape, "f4")

        plugin = define(
            {"try.conv": "nn.conv2d(%x, const %w) [nn.relu(^)]?"}, run, version="7"
        )
        model = compile(CONV, plugin)
        x = numpy.arange(50, dtype="f4").reshape(1, 2, 5, 5)
        y = model(x)
        self.assertEqual(y.shape, (1, 1, 2, 2))
        kernel, a, w, rest = calls[-1]
        self.assertEqual(kernel.row, "try.conv")
        self.assertEqual([s.op for s in kernel.steps], ["nn.conv2d", "nn.relu"])
        self.assertEqual(kernel.steps[0].attrs["strides"], (2, 2))
        self.assertEqual(kernel.steps[0].attrs["data_layout"], ("NCHW",))
        self.assertEqual(kernel.steps[1].attrs, {})
        self.assertEqual(kernel.operands["x"], ("float32", (1, 2, 5, 5), False))
        self.assertEqual(kernel.operands["w"], ("float32", (1, 2, 2, 2), True))
        self.assertEqual(kernel.outputs, [("float32", (1, 1, 2, 2), False)])
        self.assertIs(kernel.exact, False)
        self.assertEqual(rest, {})
        numpy.testing.assert_array_equal(a, x)
        # arrays outlive the run, and writing to them changes nothing else
        before = w.copy()
        self.assertEqual(len(set(before.ravel())), 8)
        a[:] = 9
        w[:] = 9
        model(x)
        numpy.testing.assert_array_equal(calls[-1][2], before)

    def test_chain_of_kernels_and_strides(self):
        def run(kernel, a, b=None):
            if kernel.row == "try.transpose":
                return a.T  # not dense
            return a + b

        plugin = define(
            {"try.add": "add(%a, %b)", "try.transpose": "transpose(%a)"}, run
        )
        text = (
            "def @main(%x: Tensor[(2, 3), float32]) {"
            " %0 = transpose(%x, axes=[1, 0]); add(%0, %0) }"
        )
        model = compile(text, plugin)
        self.assertEqual(model.ledger.regions and len(model.ledger.regions), 1)
        numpy.testing.assert_array_equal(model(X), X.T + X.T)

    def test_several_outputs_and_dtypes(self):
        plugin = define(
            {"try.split": "split(add(%x, %x))"},
            lambda kernel, x: numpy.split(x + x, 2, axis=1),
        )
        for dtype in ("float64", "int8", "uint64", "float16", "int32"):
            model = compile(
                f"def @main(%x: Tensor[(2, 4), {dtype}]) {{"
                " %0 = add(%x, %x); split(%0, axis=1, sizes=[2, 2]) }",
                plugin,
            )
            x = numpy.arange(8).reshape(2, 4).astype(dtype)
            a, b = model(x)
            numpy.testing.assert_array_equal(a, 2 * x[:, :2])
            numpy.testing.assert_array_equal(b, 2 * x[:, 2:])
            patterns = {node.pattern for node in model.ledger.nodes}
            self.assertEqual(patterns, {"try.split"}, dtype)

    def test_symbolic_dims_and_zero(self):
        model = compile(
            "def @main(%x: Tensor[(N, 3), float32]) { nn.relu(%x) }",
            define(TWO_ROWS, relu),
        )
        for n in (1, 5, 0, 2):
            x = numpy.full((n, 3), -1, "f4")
            numpy.testing.assert_array_equal(model(x), x * 0)

    def test_accept(self):
        kernels = []

        def accept(kernel):
            kernels.append(kernel)
            if kernel.row == "try.relu" and kernel.outputs[0].shape[0] == 2:
                return "found two rows, expected another number"

        plugin = define({"try.relu": "nn.relu(%x)"}, relu, accept=accept)
        model = compile(models.RELU, plugin)
        (node,) = model.ledger.nodes
        self.assertEqual((node.where, node.reason), ("native", "probe-refused"))
        self.assertIn("found two rows", model.ledger.explain(node.name))
        self.assertTrue(kernels)
        # a later row may match nodes that an earlier row refuses
        plugin = define(TWO_ROWS, relu, accept=accept)
        model = compile(models.RELU, plugin)
        self.assertEqual(model.ledger.nodes[0].pattern, "try.any")
        numpy.testing.assert_array_equal(model(X), numpy.maximum(X, 0))

    def test_artifact_uses_the_present_definition(self):
        plugin = define(TWO_ROWS, relu)
        compile(models.RELU, plugin).write("try.so")
        plugin = define(TWO_ROWS, lambda kernel, x: x * 2)
        model = byoc.load("try.so", plugins=plugin, require_backends=True)
        numpy.testing.assert_array_equal(model(X), X * 2)
        other = define(TWO_ROWS, relu, version="2")
        with self.assertRaises(byoc.Error):
            byoc.load("try.so", plugins=other, require_backends=True)
        # the new definition lacks a row that the artifact uses
        plugin = define({"try.other": "tanh(%x)"}, relu)
        with self.assertRaisesRegex(byoc.Error, "found kernel try.relu, expected a row of try"):
            byoc.load("try.so", plugins=plugin, require_backends=True)

    def test_profile(self):
        model = compile(models.RELU, define(TWO_ROWS, relu))
        with model.profile() as profile:
            model(X)
        event = next(e for e in profile.events if e.name == "try.relu")
        self.assertEqual(event.impl, "python")

    def test_threads(self):
        """Four runs at the same time: a callback that waits lets the others run."""
        n_running, max_running, lock = 0, 0, threading.Lock()

        def run(kernel, x):
            nonlocal n_running, max_running
            with lock:
                n_running += 1
                max_running = max(max_running, n_running)
            barrier.wait(models.PATIENCE)  # gives the GIL to the other runs
            with lock:
                n_running -= 1
            return numpy.maximum(x, 0)

        model = compile(models.RELU, define(TWO_ROWS, run))
        barrier, wrong = threading.Barrier(4), []

        def work(i):
            for _ in range(5):
                if not (model(X * i) == numpy.maximum(X * i, 0)).all():
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((wrong, max_running), ([], 4))

    def test_run_from_a_thread_of_byoc(self):
        thread_ids = []

        def run(kernel, x):
            thread_ids.append(threading.get_ident())
            return numpy.maximum(x, 0)

        model = compile(models.RELU, define(TWO_ROWS, run))
        ended, results = threading.Event(), []

        def done(outputs, error):
            results.append((outputs, error))
            ended.set()

        model.submit(None, {"x": X}, done)
        self.assertTrue(ended.wait(models.PATIENCE))
        numpy.testing.assert_array_equal(results[0][0][0], numpy.maximum(X, 0))
        self.assertNotEqual(thread_ids, [threading.get_ident()])


class Failures(unittest.TestCase):
    def fails(self, run, message, exception=byoc.BackendError):
        """Check that a run of this backend raises the exception with the message. Returns
        the model."""
        model = compile(models.RELU, define(TWO_ROWS, run))
        with self.assertRaisesRegex(exception, message):
            model(X)
        return model

    def test_exceptions_of_run(self):
        def run(kernel, x):
            if bad:
                raise ValueError("no such thing: \xfc")
            return numpy.maximum(x, 0)

        bad = True
        model = self.fails(run, r"backend_test.py:\d+: ValueError: no such thing: \xfc")
        bad = False  # the next run succeeds
        numpy.testing.assert_array_equal(model(X), numpy.maximum(X, 0))

    def test_exceptions_without_a_text(self):
        def run(kernel, x):
            raise KeyboardInterrupt

        self.fails(run, r"backend_test.py:\d+: KeyboardInterrupt")

    def test_results_that_do_not_fit(self):
        for result, message in [
            (X.astype("f8"), r"result 0 is float64 of shape \(2, 3\), expected float32"),
            (X[:1], r"is float32 of shape \(1, 3\), expected float32 of shape \(2, 3\)"),
            (X.ravel(), r"of shape \(6,\), expected float32 of shape \(2, 3\)"),
            (numpy.float32(1), r"of shape \(\), expected"),
            ([X, X], "returned 2 arrays, expected 1"),
            ([], "returned 0 arrays, expected 1"),
            (None, "of try.relu"),
            (numpy.array([["a"] * 3] * 2), "of try.relu"),
        ]:
            self.fails(lambda kernel, x, r=result: r, message)

    def test_wrong_signature(self):
        self.fails(lambda kernel: X, "TypeError: .*unexpected keyword argument 'x'")

    def test_exceptions_of_accept(self):
        def accept(kernel):
            return kernel.steps[0].attrs["what"]

        model = compile(models.RELU, define(TWO_ROWS, relu, accept=accept))
        (node,) = model.ledger.nodes
        self.assertEqual(node.reason, "probe-refused")
        self.assertRegex(
            model.ledger.explain(node.name), r"backend_test.py:\d+: KeyError: 'what'"
        )
        model = compile(models.RELU, define(TWO_ROWS, relu, accept=lambda k: True))
        self.assertIn("returned True", model.ledger.explain(node.name))

    def test_element_types_without_a_buffer_format(self):
        plugin = define({"try.relu": "nn.relu(%x)"}, relu)
        model = compile(models.typed("bfloat16", "nn.relu(%x)"), plugin)
        (node,) = model.ledger.nodes
        self.assertEqual((node.where, node.reason), ("native", "probe-refused"))
        self.assertIn("found bfloat16", model.ledger.explain(node.name))
        plugin = define({"try.cast": "cast(%x)"}, relu)
        for dtype in ("float8e4m3fn", "float8e8m0", "float4e2m1", "uint4", "int2"):
            text = models.typed(dtype, 'cast(%x, dtype="float32")')
            model = compile(text, plugin)
            (node,) = model.ledger.nodes
            self.assertEqual((node.where, node.reason), ("native", "probe-refused"))
            self.assertIn("found " + dtype, model.ledger.explain(node.name))

    def test_wrong_definitions(self):
        new = byoc.PythonBackend
        with self.assertRaisesRegex(byoc.InvalidError, "found a row called 'a.b'"):
            new("try", {"a.b": "nn.relu(%x)"}, relu)
        with self.assertRaisesRegex(TypeError, "run: found None"):
            new("try", {}, None)
        with self.assertRaisesRegex(TypeError, "accept: found 3"):
            new("try", {}, relu, accept=3)
        rows = {"try.a": "nn.relu(%x)"}
        for patterns in ({"try.a": 3}, {3: "nn.relu(%x)"}, [*rows.items()], None):
            with self.assertRaisesRegex(TypeError, "patterns: found .* a dict of str"):
                new("try", patterns, relu)
        with self.assertRaisesRegex(TypeError, "name: found 3, expected a string"):
            new(3, rows, relu)
        with self.assertRaisesRegex(TypeError, "version: found 3, expected a string"):
            new("try", rows, relu, version=3)
        with self.assertRaises(FileNotFoundError):
            new("try", {}, relu).write("no/such/folder.so")
        self.assertIn("0 patterns", repr(new("try", {}, relu)))

    def verdict(self, plugin):
        (backend,) = byoc.backends(f"only:{os.path.abspath(plugin)}")
        return backend.verdict

    def test_plugins_that_the_host_refuses(self):
        self.assertIsNone(self.verdict(define(TWO_ROWS, relu)))
        path = byoc.PythonBackend("Try-it", {}, relu).write("name.so")
        self.assertIn("Try-it", self.verdict(path))
        with self.assertRaisesRegex(byoc.Error, "try.bad"):
            compile(models.RELU, define({"try.bad": "nn.relu("}, relu))
        template = pathlib.Path(byoc.__file__).parent / "_plugin_template.so"
        self.assertIn("expected a copy from", self.verdict(template))


CONV = """
def @main(%x: Tensor[(1, 2, 5, 5), float32]) {
  %0 = nn.conv2d(%x, random[(1, 2, 2, 2), float32, seed=1], strides=[2, 2]);
  nn.relu(%0)
}"""


class Command(unittest.TestCase):
    """The plug-in in a program without Python."""

    def run_command(self, *arguments):
        environment = {
            k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")
        }
        environment["OPENBLAS_NUM_THREADS"] = "1"
        process = subprocess.run(
            [COMMAND, *arguments], text=True, capture_output=True, env=environment
        )
        return process.returncode, process.stdout + process.stderr

    def write(self, name, text):
        """Write a Python file and run it. Returns its path, and the path of the plug-in
        that it writes."""
        os.makedirs(name, exist_ok=True)
        path = pathlib.Path(name, f"{name}.py")
        path.write_text(text)
        subprocess.run([sys.executable, str(path)], check=True, stdout=subprocess.DEVNULL)
        return path, os.path.abspath(f"{name}/libbyoc_backend_{name}.so")

    @classmethod
    def setUpClass(cls):
        cls.toy = (models.top / "examples/python/toy.py").read_text()

    def test_example_conforms(self):
        path, plugin = self.write("toy", self.toy)
        lines = [line for line in self.toy.splitlines() if line and line[0] != "#"]
        self.assertLess(len(lines), 26)  # the example stays short
        code, output = self.run_command(
            "conform", plugin, "--no-onnx", "--cases", "2", "--seconds", "60"
        )
        self.assertIn("conforms: no case of", output)
        self.assertEqual(code, 0)
        self.assertRegex(output, r"numerics +6 pass")
        code, output = self.run_command(
            "compare", "digits.onnx", "--plugin", plugin, "--backend", "toy"
        )
        self.assertEqual(code, 0, output)
        self.assertIn("same", output)

    def test_conform_finds_a_wrong_kernel(self):
        wrong = self.toy.replace("numpy.maximum(a, 0,", "numpy.maximum(a, 0.1,")
        self.assertNotEqual(wrong, self.toy)
        _, plugin = self.write("toy", wrong)
        code, output = self.run_command("conform", plugin, "--only", "numerics/toy.relu/0")
        self.assertEqual(code, 1, output)
        self.assertIn("numerics.result", output)

    def test_exception_in_the_command(self):
        wrong = self.toy.replace("    for step", "    assert b is None, 'has b'\n    for step")
        _, plugin = self.write("toy", wrong)
        code, output = self.run_command(
            "run", "digits.onnx", "--plugin", plugin, "--backend", "toy"
        )
        self.assertNotEqual(code, 0)
        self.assertRegex(output, r"toy.py:\d+: AssertionError: has b")

    def test_files_that_cannot_be_loaded(self):
        path, plugin = self.write("toy", self.toy)
        shutil.copy(plugin, "moved.so")  # refers to toy.py by its absolute path
        moved = os.path.abspath("moved.so")
        self.assertEqual(self.run_command("backends", "--plugin", f"only:{moved}")[0], 0)
        path.write_text("import byoc\n)")
        code, output = self.run_command("backends", "--plugin", f"only:{plugin}")
        self.assertEqual(code, 1)
        self.assertRegex(output, r"toy.py: .*SyntaxError")
        path.write_text("import byoc\n")
        _, output = self.run_command("backends", "--plugin", f"only:{plugin}")
        self.assertIn("toy.py: found no byoc.PythonBackend called toy", output)
        path.unlink()
        _, output = self.run_command("backends", "--plugin", f"only:{plugin}")
        self.assertRegex(output, "toy.py: .*No such file")

    def test_no_python(self):
        with unittest.mock.patch("byoc._backend._library", lambda: "libpython0.0.so"):
            path = pathlib.Path(define(TWO_ROWS, relu))
        code, output = self.run_command("backends", "--plugin", f"only:{path.absolute()}")
        self.assertEqual(code, 1)
        self.assertIn("install libpython3", output)


if __name__ == "__main__":
    models.folder()
    unittest.main()
