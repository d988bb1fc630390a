# SPDX-License-Identifier: Apache-2.0
"""Classify the digits of ../digits with ONNX Runtime 1.23 or newer and byoc's
execution provider; prints the classes, one per line.

    python3 digits.py PROVIDER digits.onnx batch0.input_0.npy

PROVIDER is the absolute path of libbyoc_onnxruntime.so.
"""
import sys

import numpy
import onnxruntime

provider, model, images = sys.argv[1:]
onnxruntime.register_execution_provider_library("byoc", provider)
devices = [device for device in onnxruntime.get_ep_devices()
           if device.ep_name == "ByocExecutionProvider"]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(devices, {"partition_by": "greedy"})
session = onnxruntime.InferenceSession(model, options)
(probability,) = session.run(None, {"image": numpy.load(images)})
print(*probability.argmax(axis=1), sep="\n")
