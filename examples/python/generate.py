#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Continue a text with a decoder of bytes, and print it byte by byte, as
examples/generate.c does. The caches are NumPy arrays with room for all rows. The
inputs of a run are views of the rows so far, its outputs are views that also have
the rows of this run, and the run writes only these.

    generate.py text.onnx "The backend" [BYTES [TEMPERATURE]]
"""
import sys

import byoc
import numpy


def stream(model: byoc.Model, text: bytes, count: int, temperature: float):
    """The bytes that follow the text, one at a time."""
    random = numpy.random.default_rng(7)
    ids = numpy.array([list(text)], numpy.int64)
    caches, rows = {}, 0
    for value in model.inputs[1:]:
        shape = list(value.shape)
        shape[model.in_place["present" + value.name[4:]][1]] = len(text) + count
        caches[value.name] = numpy.zeros(shape, numpy.float32)
    for _ in range(count):
        past = {name: a[:, :, :rows] for name, a in caches.items()}
        rows += ids.shape[1]
        present = {
            output: caches[name][:, :, :rows]
            for output, (name, axis) in model.in_place.items()
        }
        logits = model.run(None, {"ids": ids, **past}, out=present)[0][0, -1]
        byte = int(logits.argmax())
        if temperature > 0:
            odds = numpy.exp((logits - logits[byte]) / temperature)
            byte = int(random.choice(len(odds), p=odds / odds.sum()))
        ids = numpy.array([[byte]], numpy.int64)
        yield byte


def main() -> None:
    if len(sys.argv) < 3 or not sys.argv[2]:
        sys.exit("usage: generate.py MODEL TEXT [BYTES [TEMPERATURE]]")
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    temperature = float(sys.argv[4]) if len(sys.argv) > 4 else 0.7
    load = byoc.load if sys.argv[1].endswith(".so") else byoc.compile
    print(sys.argv[2], end="")
    for byte in stream(load(sys.argv[1]), sys.argv[2].encode(), count, temperature):
        print(chr(byte), end="", flush=True)
    print()


if __name__ == "__main__":
    main()
