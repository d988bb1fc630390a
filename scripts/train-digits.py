#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the digits classifier in examples/digits.

A small convolutional network on the 8x8 handwritten digits of scikit-learn
(1,797 images; UCI's "Optical Recognition of Handwritten Digits" test set),
exported to ONNX with a batch of 64. The last 448 images, shuffled with a fixed
seed, are held out; their images and labels are written beside the model.

Needs the distribution's python3-torch, python3-sklearn and python3-onnx. Not
needed to build or run anything: its output is in the repository.

    scripts/train-digits.py examples/digits
"""
import pathlib
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

HELD_OUT = 448
BATCH = 64


class Block(nn.Module):
    """Two convolutions with batch norm and a residual sum."""

    def __init__(self, channels: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def network() -> nn.Module:
    """Images (n, 1, 8, 8) -> probabilities (n, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.Hardswish(),
        Block(32),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 10),
        nn.Softmax(dim=1),
    )


def main() -> int:
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(7)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(labels))
    images = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = labels[order].astype(np.int64)
    train, held = images[:-HELD_OUT], images[-HELD_OUT:]
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(30):
        model.train()
        for batch in torch.randperm(len(train)).split(BATCH):
            x = torch.from_numpy(train[batch.numpy()])
            y = torch.from_numpy(labels[:-HELD_OUT][batch.numpy()])
            loss = nn.functional.nll_loss(torch.log(model(x) + 1e-9), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(torch.from_numpy(held)).argmax(1).numpy()
    print(f"held-out accuracy {np.mean(guess == labels[-HELD_OUT:]):.4f}")
    out.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(model, torch.zeros(BATCH, 1, 8, 8),
                      str(out / "digits.onnx"), opset_version=13,
                      input_names=["image"], output_names=["probability"])
    for k in range(HELD_OUT // BATCH):
        part = slice(k * BATCH, (k + 1) * BATCH)
        np.save(out / f"batch{k}.input_0.npy", held[part])
        np.save(out / f"batch{k}.labels.npy", labels[-HELD_OUT:][part])
        with torch.no_grad():
            expected = model(torch.from_numpy(held[part])).numpy()
        np.save(out / f"batch{k}.output_0.npy", expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
