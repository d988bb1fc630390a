# SPDX-License-Identifier: Apache-2.0
"""Tests the package without NumPy, which -S hides with all of site-packages."""

import array
import gc
import sys
import types
import unittest

import byoc
import models


class WithoutNumPy(unittest.TestCase):
    def test_numpy_is_hidden(self):
        with self.assertRaises(ImportError):
            import numpy  # noqa: F401

    def test_tensor(self):
        model = models.compile(models.RELU)
        x = memoryview(array.array("f", range(-3, 3))).cast("B").cast("f", (2, 3))
        y = model(x)
        self.assertIsInstance(y, byoc.Tensor)
        self.assertEqual((y.shape, y.dtype), ((2, 3), "float32"))
        del model
        gc.collect()
        view = memoryview(y)
        self.assertFalse(view.readonly)
        self.assertEqual(view.tolist(), [[0, 0, 0], [0, 1, 2]])
        self.assertEqual(bytes(y), view.tobytes())
        self.assertEqual(repr(y), "<byoc.Tensor (2, 3), float32>")
        count = sys.getrefcount(y)
        capsule = y.__dlpack__(stream=None)
        self.assertEqual(sys.getrefcount(y), count + 1)
        del capsule
        self.assertEqual(sys.getrefcount(y), count)
        self.assertEqual(y.__dlpack_device__(), (1, 0))
        y.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
        y.__dlpack__(dl_device=None, copy=None)
        for wrong in ({"copy": True}, {"dl_device": (2, 0)}, {"dl_device": 1}):
            with self.assertRaises(BufferError):
                y.__dlpack__(**wrong)
        # and a tensor is an input
        self.assertEqual(bytes(models.compile(models.RELU)(y)), bytes(y))

    def test_scalars_and_results_as_inputs(self):
        scalar = models.compile("def @main(%x: Tensor[(), int64]) { add(%x, 1) }")
        four = memoryview(array.array("q", [4])).cast("B").cast("q", ())
        self.assertEqual(memoryview(scalar(four)).tolist(), 5)
        model = models.compile(models.VARIES)
        result = model(memoryview(bytes(12)).cast("f", (1, 3)))
        self.assertEqual(model(result).shape, (1, 3))

    def test_refusals(self):
        model = models.compile(models.RELU)
        with self.assertRaisesRegex(byoc.MismatchError, "rank 1"):
            model(array.array("f", range(6)))
        with self.assertRaises(byoc.MismatchError):
            model(bytes(24))
        for result in (None, 5, model(memoryview(bytes(24)).cast("f", (2, 3)))):
            lender = types.SimpleNamespace(__dlpack__=lambda result=result: result)
            with self.assertRaisesRegex(byoc.MismatchError, 'input "x": .*capsule'):
                model(lender)
        strings = models.compile(models.typed("string", "transpose(%x, axes=[1, 0])"))
        with self.assertRaises(ImportError):
            strings([["a", "b", "c"]] * 2)


if __name__ == "__main__":
    models.folder()
    unittest.main()
