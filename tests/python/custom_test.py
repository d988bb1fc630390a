# SPDX-License-Identifier: Apache-2.0
"""Tests operators of plug-ins (byoc/custom.h): imported from ONNX, compiled, written,
loaded and run; errors; and patterns with them. Arguments: the plug-ins of
tests/plugins/ops.c and scale.c, and that of examples/imaging or "none"."""

import os
import struct
import sys
import unittest
import zlib

import models

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    models.skip("NumPy or onnx is not installed")

import byoc

OPS, SCALE, IMAGING = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
models.folder()


def model_of(op, inputs, outputs=1, domain="com.example", version=1, **attrs):
    """One node. inputs: (element type, shape), or None: omitted."""
    names = ["x%d" % i if x else "" for i, x in enumerate(inputs)]
    values = [
        helper.make_tensor_value_info(name, *x)
        for name, x in zip(names, inputs) if x
    ]
    out_names = ["y%d" % i for i in range(outputs)]
    node = helper.make_node(op, names, out_names, name="it", domain=domain, **attrs)
    results = [helper.make_tensor_value_info(name, 1, None) for name in out_names]
    for result in results:
        result.type.Clear()
    graph = helper.make_graph([node], "g", values, results)
    model = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 20),
        helper.make_opsetid(domain or "com.example", 20 if not domain else version)])
    return model.SerializeToString()


def compile_one(*args, plugins=OPS, **attrs):
    return byoc.compile(model_of(*args, **attrs), plugins=plugins, backends=[])


def run(model, *inputs):
    """The outputs as a list."""
    found = model(*inputs)
    return [found] if isinstance(found, np.ndarray) else list(found)


F32 = TensorProto.FLOAT
X = np.array([1, -2, 3], np.float32)


class Operators(unittest.TestCase):
    def test_default_attributes(self):
        model = compile_one("Mix", [(F32, ["n"])], factor=2.0)
        # the defaults of the other attributes add 10.5:
        # 3 + len("ab") + 1 + 2 + 0.5 + 2 words
        for n in (1, 3):
            np.testing.assert_array_equal(run(model, X[:n])[0], 2 * X[:n] + 10.5)

    def test_attributes(self):
        table = numpy_helper.from_array(np.array([0.25, 0.5], np.float32))
        model = compile_one(
            "Mix", [(F32, [3])], factor=1.0, add=10, word="", ints=[5],
            floats=[1.5, 2.5], words=["x"], blob=b"\x01\x00\x02", table=table)
        np.testing.assert_array_equal(
            run(model, X)[0], X + 10 + 5 + 4 + 1 + 3 + 0.75)

    def test_different_blobs(self):
        """Models whose attributes differ only in `blob` do not share an operator."""
        for blob, sum in ((b"\x01", 1), (b"\x09", 9)):
            model = compile_one("Mix", [(F32, [3])], factor=1.0, blob=blob)
            np.testing.assert_array_equal(run(model, X)[0], X + 10.5 + sum)

    def test_omitted_input(self):
        model = compile_one("Mix", [(F32, [3]), None, (F32, [1])], factor=1.0)
        np.testing.assert_array_equal(
            run(model, X, np.array([7], np.float32))[0], X + 10.5 + 7)

    def test_sizes_of_the_run(self):
        model = compile_one("Positives", [(F32, ["n"])], outputs=2)
        for x in (X, -abs(X), X[:1]):
            values, places = model(x)
            np.testing.assert_array_equal(values, x[x > 0])
            np.testing.assert_array_equal(places, np.flatnonzero(x > 0))

    def test_versions_and_strings(self):
        words = np.array(["ab", "", "\u00e9"], object)
        for version, times in ((1, 2), (2, 3), (9, 3)):
            model = compile_one(
                "Twice", [(TensorProto.STRING, [3])], version=version)
            self.assertEqual(list(run(model, words)[0]), [w * times for w in words])

    def test_artifact(self):
        model = compile_one("Mix", [(F32, [3])], factor=2.0)
        model.write("mix.so")
        np.testing.assert_array_equal(
            run(byoc.load("mix.so", plugins=OPS), X)[0], 2 * X + 10.5)
        with self.assertRaisesRegex(
                byoc.Error, "the model calls operators of the plug-in 'ops': "):
            byoc.load("mix.so", plugins="only")


def scales(*nodes):
    """A model of nodes (op_type, input, output): x -> y; Scales have a factor."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(
            op, [x], [y], name=y, domain="com.example" if op == "Scale" else "",
            **({"factor": 2.5} if op == "Scale" else {})) for op, x, y in nodes],
        "g", [value("x", F32, [3])], [value("y", F32, [3])])
    return helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 20),
        helper.make_opsetid("com.example", 1)]).SerializeToString()


class Patterns(unittest.TestCase):
    """A backend whose patterns name its own operator."""

    NODES = (("Scale", "x", "a"), ("Relu", "a", "b"), ("Scale", "b", "c"),
             ("Sigmoid", "c", "y"))

    def test_offloaded(self):
        model = byoc.compile(scales(*self.NODES), plugins=SCALE, backends=["scale"])
        where = {n.name: (n.where, n.pattern) for n in model.ledger.nodes}
        self.assertEqual(where, {
            "a": ("scale", "scale.scale_relu"), "b": ("scale", "scale.scale_relu"),
            "c": ("scale", "scale.scale"), "y": ("native", None)})
        expected = 1 / (1 + np.exp(-2.5 * np.maximum(2.5 * X, 0)))
        np.testing.assert_allclose(model(X), expected, rtol=1e-5)
        model.write("scale.so")
        np.testing.assert_allclose(
            byoc.load("scale.so", plugins=SCALE)(X), expected, rtol=1e-5)

    def test_native(self):
        """The same operators without a backend."""
        model = byoc.compile(scales(*self.NODES), plugins=SCALE, backends=[])
        self.assertEqual({n.where for n in model.ledger.nodes}, {"native"})
        np.testing.assert_allclose(
            model(X), 1 / (1 + np.exp(-2.5 * np.maximum(2.5 * X, 0))), rtol=1e-5)


class Errors(unittest.TestCase):
    def refused(self, expected, *args, **attrs):
        with self.assertRaisesRegex(byoc.Error, expected):
            compile_one(*args, **attrs)

    def test_unknown(self):
        self.refused(
            r"node it: operator Mix \(domain com.example, opset 1\) is not "
            "supported: give a library that has it with --plugin",
            "Mix", [(F32, [3])], factor=1.0, plugins="only")
        self.refused("operator Mix .* is not supported", "Mix", [(F32, [3])],
                     domain="com.other", factor=1.0)

    def test_wrong_nodes(self):
        self.refused("attribute 'factor' is missing", "Mix", [(F32, [3])])
        self.refused("attribute 'factor' is a string, expected a float", "Mix",
                     [(F32, [3])], factor="x")
        self.refused("attribute 'other' is unknown", "Mix", [(F32, [3])],
                     factor=1.0, other=2)
        self.refused("found 4 inputs, expected 1 to 3", "Mix", [(F32, [3])] * 4,
                     factor=1.0)
        self.refused("found 3 results, expected 1 to 2", "Positives",
                     [(F32, [3])], outputs=3)
        self.refused("x is not float32", "Mix", [(TensorProto.DOUBLE, [3])],
                     factor=1.0)

    def test_failing_shape_function(self):
        for where, expected in (
                ("shape", "it was told to fail"),
                ("size", "the size -77777, which no input has"),
                ("rank", "rank 99"), ("dtype", "element type 0")):
            self.refused(expected, "Fail", [(F32, [3])], where=where)

    def test_failing_run(self):
        for where, expected in (("run", "it was told to fail"),
                                ("grow", "size 4, expected 0 to 3")):
            model = compile_one("Fail", [(F32, [3])], where=where)
            with self.assertRaisesRegex(byoc.Error, expected):
                model(X)


def png(pixels):
    """The bytes of a PNG file with these 8-bit RGB pixels."""
    def chunk(kind, data):
        body = kind + data
        return (struct.pack(">I", len(data)) + body +
                struct.pack(">I", zlib.crc32(body)))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@unittest.skipIf(IMAGING.endswith("none"), "no image libraries")
class Imaging(unittest.TestCase):
    def decoder(self, **attrs):
        return byoc.compile(
            model_of("ImageDecoder", [(TensorProto.UINT8, ["bytes"])], domain="",
                     **attrs), plugins=IMAGING)

    def test_png(self):
        pixels = np.random.RandomState(1).randint(0, 256, (5, 7, 3), np.uint8)
        file = np.frombuffer(png(pixels), np.uint8)
        np.testing.assert_array_equal(run(self.decoder(), file)[0], pixels)
        np.testing.assert_array_equal(
            run(self.decoder(pixel_format="BGR"), file)[0], pixels[:, :, ::-1])
        gray = run(self.decoder(pixel_format="Grayscale"), file)[0]
        self.assertEqual(gray.shape, (5, 7, 1))
        expected = pixels @ np.array([0.299, 0.587, 0.114])
        self.assertLessEqual(abs(gray[:, :, 0] - expected).max(), 0.51)

    def test_anymap(self):
        file = np.frombuffer(b"P5 # gray\n2 2 255 abcd", np.uint8)
        self.assertEqual(run(self.decoder(), file)[0][:, :, 0].tobytes(), b"abcd")

    def test_damaged(self):
        """A damaged file gives an image without pixels, or one of the original size.
        Tries every prefix of a file, and the file with each byte changed."""
        pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
        whole, model = png(pixels), self.decoder()
        for n in range(len(whole) - 12):
            found = run(model, np.frombuffer(whole[:n], np.uint8))[0]
            self.assertIn(found.shape, ((0, 0, 3), (2, 2, 3)))
        for i in range(len(whole)):
            damaged = bytearray(whole)
            damaged[i] ^= 0x55
            model(np.frombuffer(bytes(damaged), np.uint8))
        for file in (b"P6 2 2 255 ", b"P6 99999999 99999999 255 ", b"BM" * 40,
                     b"\xff\xd8\xff\xe0" * 9, b"RIFF" * 9, b"II*\0" * 9,
                     b"P5\0" b"2 2 255 abcd", b"P5 2 2 255\0abcd"):
            found = run(model, np.frombuffer(file, np.uint8))[0]
            self.assertEqual(found.shape, (0, 0, 3))

    def test_pixel_format(self):
        with self.assertRaisesRegex(byoc.Error, "found CMYK, expected RGB, BGR or Grayscale"):
            self.decoder(pixel_format="CMYK")


unittest.main()
