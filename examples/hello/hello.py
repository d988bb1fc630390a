# SPDX-License-Identifier: Apache-2.0
# Compile a model and run it: python3 hello.py digits.onnx batch0.input_0.npy
import sys

import byoc
import numpy

model = byoc.compile(sys.argv[1])
print(*model(numpy.load(sys.argv[2])).argmax(axis=1), sep="\n")
