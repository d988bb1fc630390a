# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package: small models, and a folder."""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile

top = pathlib.Path(__file__).resolve().parents[2]
digits = top / "examples" / "digits"
text = top / "examples" / "generate" / "text.onnx"

# Seconds after which a test gives up waiting. Much more than any wait takes, since the
# clock also counts the time in which the process is suspended.
PATIENCE = 600

# How many times less work a test does with the sanitizers: tests/share.h
SHARE = int(os.environ.get("BYOC_TEST_SHARE", "1"))


def folder():
    """Create a temporary folder with copies of examples/digits and text.onnx, and make
    it the working folder. It is removed when the process exits."""
    path = tempfile.mkdtemp(prefix="byoc-python-")
    atexit.register(shutil.rmtree, path)
    for file in [*digits.iterdir(), text]:
        shutil.copy(file, path)
    os.chdir(path)


def skip(reason):
    print("note:", reason)
    sys.exit(77)


RELU = "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }"
# layers of every kind that examples/digits has
CONV = """
def @main(%x: Tensor[(4, 1, 8, 8), float32]) {
  %0 = nn.conv2d(%x, random[(8, 1, 3, 3), float32, seed=1], padding=[1, 1, 1, 1]);
  %1 = nn.relu(%0);
  %2 = nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2]);
  %3 = reshape(%2, [4, 128]);
  %4 = nn.matmul(%3, random[(128, 10), float32, seed=2]);
  nn.softmax(%4)
}"""
TWO = """
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  %0 = add(%x, %y);
  %1 = nn.softmax(%0);
  %2 = cumsum(%0, axis=1);
  (%1, %2)
}"""
# the size of the input, and that of the result, may vary
VARIES = "def @main(%x: Tensor[(N, 3), float32]) { nn.softmax(%x) }"
# the size of the result depends on the values of the input
DEPENDS = "def @main(%x: Tensor[(N), float32]) { nonzero(%x) }"


def typed(dtype, op="%x"):
    """A model with an input %x of a dtype; it returns the expression `op`."""
    return f"def @main(%x: Tensor[(2, 3), {dtype}]) {{ {op} }}"


def compile(text, **options):
    import byoc

    options.setdefault("threads", 1)
    return byoc.compile(text.encode(), name="model.ir", **options)
