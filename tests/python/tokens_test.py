# SPDX-License-Identifier: Apache-2.0
"""examples/tokens against the SentencePiece library itself, with a model that the
library's trainer makes of this tree's documents. Arguments: the plug-in and the
program of tests/examples/tokens_train.cpp, or "none"."""

import glob
import os
import subprocess
import sys
import unittest

import models

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    models.skip("NumPy or onnx is not installed")
if "none" in sys.argv[1:3]:
    models.skip("libsentencepiece-dev or a C++ compiler is not installed")

import byoc

PLUGIN, TRAIN = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
DOCS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../docs/*.md"))
models.folder()

LINES = ["A backend is a shared library.", "", "  kernels   and\tregions ",
         "na\u00efve \ufb01le \u4e16\u754c", "x" * 300]


def train():
    with open("text", "w", encoding="utf-8") as out:
        for path in sorted(glob.glob(DOCS)):
            with open(path, encoding="utf-8") as page:
                out.write(page.read())
    printed = subprocess.run([TRAIN, "text", "small", "400", *LINES], check=True,
                             capture_output=True, text=True).stdout.splitlines()
    with open("small.model", "rb") as file:
        return (file.read(), int(printed[0].split()[1]), int(printed[0].split()[3]),
                [[int(i) for i in line.split()] for line in printed[1:]])


MODEL, BOS, EOS, IDS = train()


def compiled(op, inputs, outputs, model=MODEL, domain="com.microsoft.extensions",
             constants=()):
    """One node; inputs: (name, type, shape)."""
    node = helper.make_node(
        op, [i[0] for i in inputs] + [c.name for c in constants],
        ["y%d" % i for i in range(outputs)], name="it", domain=domain, model=model)
    results = [helper.make_tensor_value_info("y%d" % i, 1, None)
               for i in range(outputs)]
    for result in results:
        result.type.Clear()
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(*i) for i in inputs], results,
        list(constants))
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
    return byoc.compile(
        helper.make_model(graph, opset_imports=opsets).SerializeToString(),
        plugins=PLUGIN, backends=[])


def tokenizer(nbest=0, bos=False, eos=False, reverse=False, **options):
    def one(name, kind, value):
        return helper.make_tensor(name, kind, [1], [value])
    flag = TensorProto.BOOL
    return compiled(
        "SentencepieceTokenizer", [("text", TensorProto.STRING, ["n"])], 2,
        constants=[one("nbest_size", TensorProto.INT64, nbest),
                   one("alpha", TensorProto.FLOAT, 0.0), one("add_bos", flag, bos),
                   one("add_eos", flag, eos), one("reverse", flag, reverse)],
        **options)


class Tokenizer(unittest.TestCase):
    def test_as_the_library(self):
        self.assertGreater(sum(map(len, IDS)), 50)
        for domain in "ai.onnx.contrib", "com.microsoft.extensions":
            model = tokenizer(domain=domain)
            for lines, ids in ((LINES, IDS), (LINES[:1], IDS[:1]), ([], [])):
                tokens, begin = model(np.array(lines, object))
                self.assertEqual(tokens.dtype, np.int32)
                self.assertEqual(tokens.tolist(), sum(ids, []))
                self.assertEqual(begin.tolist(),
                                 [0, *np.cumsum([len(i) for i in ids])])

    def test_marks(self):
        tokens, begin = tokenizer(bos=True, eos=True, reverse=True)(
            np.array(LINES[:2], object))
        self.assertEqual(tokens.tolist(),
                         [BOS, *IDS[0][::-1], EOS, BOS, EOS])
        self.assertEqual(begin.tolist(), [0, len(IDS[0]) + 2, len(IDS[0]) + 4])

    def test_artifact(self):
        """The tokenizer's model is in the artifact."""
        tokenizer().write("tokens.so")
        os.rename("small.model", "moved.model")
        tokens, _ = byoc.load("tokens.so", plugins=PLUGIN)(np.array(LINES, object))
        os.rename("moved.model", "small.model")
        self.assertEqual(tokens.tolist(), sum(IDS, []))

    def test_decoder(self):
        model = compiled("SentencepieceDecoder", [("ids", TensorProto.INT64, ["n"])],
                         1)
        self.assertEqual(model(np.array(IDS[0]))[0], LINES[0])
        self.assertEqual(model(np.array([], np.int64))[0], "")
        for wrong in -1, 400:
            with self.assertRaisesRegex(byoc.Error, "the id %d is not in" % wrong):
                model(np.array([wrong]))

    def test_refused(self):
        with self.assertRaisesRegex(byoc.Error, "nbest_size asks for a random"):
            tokenizer(nbest=-1)
        for model in b"no model", MODEL[:len(MODEL) // 2]:
            with self.assertRaisesRegex(byoc.Error, "is not a SentencePiece model"):
                tokenizer(model=model)(np.array(LINES, object))


unittest.main()
