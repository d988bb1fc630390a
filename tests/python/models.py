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

# Seconds after which a wait fails. Much more than any takes, since a clock goes on
# while the process is suspended.
PATIENCE = 600


def folder():
    """Make a new folder with the models of examples/ the working folder; it is
    removed at the end."""
    path = tempfile.mkdtemp(prefix="byoc-python-")
    atexit.register(shutil.rmtree, path)
    for file in [*digits.iterdir(), text]:
        shutil.copy(file, path)
    os.chdir(path)


def skip(reason):
    print("note:", reason)
    sys.exit(77)


RELU = "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }"
TWO = """
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  %0 = add(%x, %y);
  %1 = nn.softmax(%0);
  %2 = cumsum(%0, axis=1);
  (%1, %2)
}"""
VARIES = "def @main(%x: Tensor[(N, 3), float32]) { nn.softmax(%x) }"
DEPENDS = "def @main(%x: Tensor[(N), float32]) { nonzero(%x) }"


def typed(dtype, op="%x"):
    """A model that returns its input of a dtype."""
    return f"def @main(%x: Tensor[(2, 3), {dtype}]) {{ {op} }}"


def compile(text, **options):
    import byoc

    options.setdefault("threads", 1)
    return byoc.compile(text.encode(), name="model.ir", **options)
