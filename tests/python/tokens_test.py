# SPDX-License-Identifier: Apache-2.0
"""Tests examples/tokens against the SentencePiece library itself, with a model that the
library's trainer makes of this tree's documents. Arguments: the plug-in and the
program of tests/examples/tokens_train.cpp, or "none"."""

import base64
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
    """Train a model. Returns its bytes, the ids of the begin and end marks, and for each
    of LINES a list of pieces [id, byte offset in the line]."""
    with open("text", "w", encoding="utf-8") as out:
        for path in sorted(glob.glob(DOCS)):
            with open(path, encoding="utf-8") as page:
                out.write(page.read())
    printed = subprocess.run([TRAIN, "text", "small", "400", *LINES], check=True,
                             capture_output=True, text=True).stdout.splitlines()
    with open("small.model", "rb") as file:
        return (file.read(), int(printed[0].split()[1]), int(printed[0].split()[3]),
                [[[int(i) for i in piece.split("@")] for piece in line.split()]
                 for line in printed[1:]])


MODEL, BOS, EOS, PIECES = train()
IDS = [[piece[0] for piece in line] for line in PIECES]
BYTES = [[piece[1] for piece in line] for line in PIECES]


def compile_one(op, inputs, outputs, model=MODEL, domain="com.microsoft.extensions",
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


def tokenizer(nbest=0, bos=False, eos=False, reverse=False, fairseq=None,
              outputs=2, **options):
    def one(name, kind, value):
        return helper.make_tensor(name, kind, [1], [value])
    flag = TensorProto.BOOL
    last = [] if fairseq is None else [one("fairseq", flag, fairseq)]
    return compile_one(
        "SentencepieceTokenizer", [("text", TensorProto.STRING, ["n"])], outputs,
        constants=[one("nbest_size", TensorProto.INT64, nbest),
                   one("alpha", TensorProto.FLOAT, 0.0), one("add_bos", flag, bos),
                   one("add_eos", flag, eos), one("reverse", flag, reverse)] + last,
        **options)


def in_fairseq(ids):
    """The ids as Fairseq numbers them."""
    return [{0: 3, 1: 0, 2: 2}.get(i, i + 1) for i in ids]


class Tokenizer(unittest.TestCase):
    def test_same_as_library(self):
        self.assertGreater(sum(map(len, IDS)), 50)
        for domain in "ai.onnx.contrib", "com.microsoft.extensions":
            model = tokenizer(domain=domain)
            for lines, ids in ((LINES, IDS), (LINES[:1], IDS[:1]), ([], [])):
                tokens, begin = model(np.array(lines, object))
                self.assertEqual(tokens.dtype, np.int32)
                self.assertEqual(tokens.tolist(), sum(ids, []))
                self.assertEqual(begin.tolist(),
                                 [0, *np.cumsum([len(i) for i in ids])])

    def test_begin_and_end_marks(self):
        """With `reverse`, the end mark comes first."""
        for reverse in False, True:
            tokens, begin, starts = tokenizer(
                bos=True, eos=True, reverse=reverse, outputs=3)(
                np.array(LINES[:2], object))
            expected = [BOS, *IDS[0], EOS], [BOS, EOS]
            at = [0, *BYTES[0], len(LINES[0])], [0, 0]
            step = -1 if reverse else 1
            self.assertEqual(tokens.tolist(), expected[0][::step] + expected[1][::step])
            self.assertEqual(starts.tolist(), at[0][::step] + at[1][::step])
            self.assertEqual(starts.dtype, np.int32)
            self.assertEqual(begin.tolist(), [0, len(IDS[0]) + 2, len(IDS[0]) + 4])

    def test_starts_are_byte_offsets(self):
        """Pieces start at offsets in bytes, not in characters."""
        _, _, starts = tokenizer(outputs=3)(np.array(LINES, object))
        self.assertEqual(starts.tolist(), sum(BYTES, []))
        line = LINES[3]
        self.assertGreater(max(BYTES[3]), len(line))
        self.assertLess(max(BYTES[3]), len(line.encode()))

    def test_fairseq(self):
        tokens, _ = tokenizer(bos=True, eos=True, fairseq=True)(
            np.array(LINES, object))
        self.assertEqual(tokens.tolist(), in_fairseq(
            sum([[BOS, *ids, EOS] for ids in IDS], [])))
        tokens, _ = tokenizer(fairseq=False)(np.array(LINES, object))
        self.assertEqual(tokens.tolist(), sum(IDS, []))
        decoder = compile_one(
            "SentencepieceDecoder", [("ids", TensorProto.INT64, [1, "n"])], 1,
            constants=[helper.make_tensor("fairseq", TensorProto.BOOL, [1], [True])])
        ids = np.array([in_fairseq([BOS, *IDS[0], EOS])])
        self.assertEqual(decoder(ids)[0], LINES[0])
        with self.assertRaisesRegex(byoc.Error, "the id -9223372036854775808, expected"):
            decoder(np.array([[-2 ** 63]]))

    def test_base64(self):
        for model in base64.b64encode(MODEL), base64.encodebytes(MODEL):
            tokens, _ = tokenizer(model=model)(np.array(LINES, object))
            self.assertEqual(tokens.tolist(), sum(IDS, []))

    def test_nbest_size_is_ignored(self):
        """nbest_size has no effect, as in ONNX Runtime's extensions."""
        tokens, _ = tokenizer(nbest=-1)(np.array(LINES, object))
        self.assertEqual(tokens.tolist(), sum(IDS, []))

    def test_artifact(self):
        """The tokenizer's model is in the artifact."""
        tokenizer().write("tokens.so")
        os.rename("small.model", "moved.model")
        tokens, _ = byoc.load("tokens.so", plugins=PLUGIN)(np.array(LINES, object))
        os.rename("moved.model", "small.model")
        self.assertEqual(tokens.tolist(), sum(IDS, []))

    def test_decoder(self):
        model = compile_one(
            "SentencepieceDecoder", [("ids", TensorProto.INT64, ["n"])], 1)
        self.assertEqual(model(np.array(IDS[0]))[0], LINES[0])
        self.assertEqual(model(np.array([], np.int64))[0], "")
        for wrong in -1, 400:
            with self.assertRaisesRegex(byoc.Error, "the id %d, expected one of" % wrong):
                model(np.array([wrong]))

    def test_refused(self):
        with self.assertRaisesRegex(byoc.Error, "fairseq numbers in reverse"):
            tokenizer(fairseq=True, reverse=True)
        with self.assertRaisesRegex(byoc.Error, "another shape"):
            compile_one("SentencepieceDecoder", [("ids", TensorProto.INT64, [2, "n"])], 1)
        for model in b"no model", MODEL[:len(MODEL) // 2]:
            with self.assertRaisesRegex(byoc.Error, "expected a SentencePiece model"):
                tokenizer(model=model)(np.array(LINES, object))


unittest.main()
