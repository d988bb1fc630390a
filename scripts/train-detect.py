#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the detector in examples/detect.

A small convolutional network finds handwritten digits (scikit-learn's, 8x8) of
several sizes in noisy scenes of 48x48. Each of 6x6 cells predicts a box and the
scores of ten digits; NonMaxSuppression, added to the exported model, keeps one box
for each digit. The last 448 images of digits are held out; 12 scenes of these and
the digits in them are written beside the model.

Needs the distribution's python3-torch, python3-sklearn and python3-onnx. Not
needed to build or run anything: its output is in the repository.

    scripts/train-detect.py examples/detect
"""
import io
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

SIDE, CELLS, HELD_OUT, SCENES = 48, 6, 448, 12
CELL = SIDE // CELLS
STEPS, BATCH = 1500, 48


class Detector(nn.Module):
    """image (1, 1, 48, 48) -> boxes (1, 36, 4) as y0 x0 y1 x1 in pixels, scores
    (1, 10, 36)"""

    def __init__(self):
        super().__init__()
        widths = (1, 16, 32, 64)
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False),
                       nn.BatchNorm2d(b), nn.ReLU(),
                       nn.Conv2d(b, b, 3, padding=1, bias=False),
                       nn.BatchNorm2d(b), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Conv2d(64, 14, 1))
        middle = (torch.arange(CELLS) + 0.5) * CELL
        self.register_buffer("y", middle.repeat_interleave(CELLS))
        self.register_buffer("x", middle.repeat(CELLS))

    def raw(self, image):
        """logits (n, 10, 36), and boxes (n, 36, 4)"""
        found = self.body(image).flatten(2)
        move, size = CELL * found[:, 10:12], CELL * torch.exp(found[:, 12:14])
        y, x = self.y + move[:, 0], self.x + move[:, 1]
        return found[:, :10], torch.stack((
            y - size[:, 0], x - size[:, 1], y + size[:, 0], x + size[:, 1]), -1)

    def forward(self, image):
        logits, boxes = self.raw(image)
        return boxes, torch.sigmoid(logits)


def scene(images, labels, rng):
    """An image with one to four digits that do not touch, and [(digit, box)]"""
    image = rng.normal(0.1, 0.08, (SIDE, SIDE)).astype(np.float32)
    placed = []
    for _ in range(rng.integers(1, 5)):
        pick, side = rng.integers(len(images)), int(rng.integers(11, 20))
        y, x = rng.integers(0, SIDE - side, 2)
        if any(y < b[2] + 2 and b[0] < y + side + 2 and x < b[3] + 2 and
               b[1] < x + side + 2 for _, b in placed):
            continue
        drawn = functional.interpolate(
            torch.from_numpy(images[pick]).reshape(1, 1, 8, 8), (side, side),
            mode="bilinear", align_corners=False).numpy()[0, 0]
        image[y:y + side, x:x + side] += drawn * rng.uniform(0.6, 1.0)
        placed.append((int(labels[pick]), (y, x, y + side, x + side)))
    return image, placed


def batch(images, labels, rng):
    """Scenes, the digits of their cells (one-hot), and the cells' boxes."""
    x = np.zeros((BATCH, 1, SIDE, SIDE), np.float32)
    digits = np.zeros((BATCH, 10, CELLS * CELLS), np.float32)
    boxes = np.zeros((BATCH, CELLS * CELLS, 4), np.float32)
    for i in range(BATCH):
        x[i, 0], placed = scene(images, labels, rng)
        for digit, box in placed:
            middle = (np.arange(CELLS) + 0.5) * CELL
            near = (np.abs(middle[:, None] - (box[0] + box[2]) / 2) <= CELL * 0.8) \
                & (np.abs(middle[None] - (box[1] + box[3]) / 2) <= CELL * 0.8)
            digits[i, digit, near.ravel()] = 1
            boxes[i, near.ravel()] = box
    return map(torch.from_numpy, (x, digits, boxes))


def train(images, labels):
    model = Detector()
    rng = np.random.default_rng(7)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        x, digits, boxes = batch(images, labels, rng)
        logits, found = model.raw(x)
        has_digit = digits.amax(1) > 0
        loss = functional.binary_cross_entropy_with_logits(
            logits, digits, pos_weight=torch.tensor(3.0)) * 10
        loss = loss + (found - boxes).abs()[has_digit].mean() / CELL
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def exported(model):
    """The model with NonMaxSuppression: digits (n), scores (n), boxes (n, 4)."""
    file = io.BytesIO()
    torch.onnx.export(model, torch.zeros(1, 1, SIDE, SIDE), file,
                      opset_version=13, input_names=["image"],
                      output_names=["all_boxes", "all_scores"])
    model = onnx.load_from_string(file.getvalue())
    graph = model.graph
    for name, value in (("most", np.array([8], np.int64)),
                        ("overlap", np.array([0.3], np.float32)),
                        ("least", np.array([0.5], np.float32)),
                        ("one", np.array(1, np.int64)),
                        ("two", np.array(2, np.int64)),
                        ("front", np.array([0], np.int64))):
        graph.initializer.append(numpy_helper.from_array(value, name))
    node = helper.make_node
    graph.node.extend([
        node("NonMaxSuppression",
             ["all_boxes", "all_scores", "most", "overlap", "least"], ["kept"],
             name="suppress"),
        node("Gather", ["kept", "one"], ["digits"], name="digits", axis=1),
        node("GatherND", ["all_scores", "kept"], ["scores"], name="scores"),
        node("Gather", ["kept", "two"], ["places"], name="places", axis=1),
        node("Squeeze", ["all_boxes", "front"], ["candidates"], name="candidates"),
        node("Gather", ["candidates", "places"], ["boxes"], name="boxes", axis=0)])
    del graph.output[:]
    value = helper.make_tensor_value_info
    graph.output.extend([value("digits", TensorProto.INT64, ["n"]),
                         value("scores", TensorProto.FLOAT, ["n"]),
                         value("boxes", TensorProto.FLOAT, ["n", 4])])
    onnx.checker.check_model(model)
    return model


def main() -> int:
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(7)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(labels))
    images = (images[order] / 16).astype(np.float32)
    labels = labels[order]
    model = train(images[:-HELD_OUT], labels[:-HELD_OUT])
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(exported(model), str(out / "detect.onnx"))
    rng = np.random.default_rng(8)
    scenes = [scene(images[-HELD_OUT:], labels[-HELD_OUT:], rng)
              for _ in range(SCENES)]
    np.save(out / "scenes.npy", np.stack([image for image, _ in scenes]))
    with open(out / "truth.txt", "w", encoding="ascii") as file:
        for line in sorted("scene %d: digit %d\n" % (i, digit)
                           for i, (_, placed) in enumerate(scenes)
                           for digit, _ in placed):
            file.write(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
