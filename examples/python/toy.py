# SPDX-License-Identifier: Apache-2.0
"""A backend in Python: float32 add, multiply and relu. python3 toy.py writes
libbyoc_backend_toy.so beside this file."""

import byoc
import numpy


def relu(a, b):
    return numpy.maximum(a, 0, dtype=a.dtype)  # NumPy 1 would widen a scalar


OPS = {"add": numpy.add, "multiply": numpy.multiply, "nn.relu": relu}


def run(kernel, a, b=None):
    for step in kernel.steps:
        call = OPS[step.op]
        a = call(a, b)
    return a


PATTERNS = {
    "toy.add_relu": "nn.relu(add(%a: float32, %b))",
    "toy.binary": "add|multiply(%a: float32, %b)",
    "toy.relu": "nn.relu(%a: float32)",
}
backend = byoc.PythonBackend("toy", PATTERNS, run)
if __name__ == "__main__":
    print(backend.write())
