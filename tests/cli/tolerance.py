#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tolerance.py BYOC: tests that the tolerance of `byoc compare` allows for the rounding
of each type, and that options change it."""

import os
import struct
import subprocess
import sys
import tempfile

BYOC = sys.argv[1]


def npy(path, descr, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (4,), }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def halves(*numbers):
    return struct.pack("<4e", *numbers)


def floats(*numbers):
    return struct.pack("<4f", *numbers)


def bfloats(*numbers):
    return b"".join(struct.pack("<f", x)[2:] for x in numbers)


# type, NumPy's name of it, the function that writes it, an error within the tolerance
# and one beyond it
CASES = [("float32", "<f4", floats, 0.0005, 0.004), ("float16", "<f2", halves, 0.004, 0.03),
         ("bfloat16", "<u2", bfloats, 0.03125, 0.125)]
failed = 0
for dtype, descr, write, small, large in CASES:
    for error, options, code in [(0, [], 0), (small, [], 0), (large, [], 1),
                                 (small, ["--rtol", "1e-6", "--stol", "0"], 1),
                                 (large, ["--rtol", "0.5"], 0)]:
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.ir")
            with open(model, "w", encoding="utf-8") as file:
                file.write(f"def @main(%x: Tensor[(4), {dtype}]) {{ nn.relu(%x) }}\n")
            npy(os.path.join(folder, "input_0.npy"), descr, write(1, 1, 1, 1))
            npy(os.path.join(folder, "output_0.npy"), descr, write(1, 1 + error, 1, 1))
            result = subprocess.run([BYOC, "compare", model, "--data", folder, *options],
                                    capture_output=True, text=True)
        if result.returncode != code:
            print(f"FAILED: {dtype}, off by {error}, {options}: exit code {result.returncode}, "
                  f"expected {code}: {result.stdout}{result.stderr}")
            failed += 1

# float32 results that are values of a narrower type were computed in it, unless they
# are multiples of one step: integers, or numbers dequantised from a few bits
HALVES, BFLOATS = (1 + 2**-10, 2**-10, 1000.5, 3), (1 + 2**-7, 2**-12, 200, 3)
for values, error, code in [(HALVES, 0.004, 0), (HALVES, 3, 0), (HALVES, 20, 1),
                            (BFLOATS, 3, 0), (BFLOATS, 40, 1),
                            ((1.1, 2**-10, 1000.5, 3), 3, 1), ((1, 1000, 2000, 7), 3, 1),
                            ((0.125, 100.125, 200, 3), 1, 1), ((0, 0, 0, 0), 1e-6, 1)]:
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.ir")
        with open(model, "w", encoding="utf-8") as file:
            file.write("def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }\n")
        x = list(values)
        x[2] += error
        npy(os.path.join(folder, "input_0.npy"), "<f4", floats(*x))
        npy(os.path.join(folder, "output_0.npy"), "<f4", floats(*values))
        result = subprocess.run([BYOC, "compare", model, "--data", folder],
                                capture_output=True, text=True)
    if result.returncode != code:
        print(f"FAILED: {values}, off by {error}: exit code {result.returncode}, "
              f"expected {code}: {result.stdout}{result.stderr}")
        failed += 1
if failed:
    sys.exit(1)
print("tolerances are those of the types")
