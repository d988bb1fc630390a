#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the language model in examples/generate.

A decoder of two layers, which reads and predicts bytes of ASCII, on this
repository's own documentation, for SECONDS (120). It is exported to ONNX with
its caches: past keys and values are inputs, present ones outputs, and both
lengths are symbolic dims. Attention is biased by distance (ALiBi, arXiv
2108.12409), so that the length has no limit.

Needs the distribution's python3-torch and python3-onnx. Not needed to build or
run anything: its output is in the repository.

    scripts/train-text.py examples/generate [SECONDS]
"""
import math
import pathlib
import sys
import time

import torch
from torch import nn

WORDS, WIDTH, HEADS, LAYERS = 128, 48, 4, 2
HEAD = WIDTH // HEADS
CONTEXT, BATCH = 64, 24


class Layer(nn.Module):
    """Attention with a cache, and two dense layers."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.q, self.k, self.v, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                  nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, past, bias):
        def heads(y):
            return y.reshape(x.shape[0], -1, HEADS, HEAD).transpose(1, 2)

        y = self.norms[0](x)
        k = torch.cat((past[0], heads(self.k(y))), 2)
        v = torch.cat((past[1], heads(self.v(y))), 2)
        scores = heads(self.q(y)) @ k.transpose(-1, -2) / HEAD ** 0.5 + bias
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2)
        x = x + self.out(y.reshape(x.shape[0], -1, WIDTH))
        return x + self.feed(self.norms[1](x)), k, v


class Decoder(nn.Module):
    """ids (1, new), past keys and values (1, HEADS, past, HEAD) of each layer:
    logits (1, new, WORDS), present keys and values."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.register_buffer("slopes", torch.tensor(
            [0.5 ** (2 * h) for h in range(HEADS)]).reshape(HEADS, 1, 1))

    def forward(self, ids, *past):
        start = past[0].shape[2]
        at = torch.arange(start, start + ids.shape[1]).unsqueeze(1)
        distance = torch.arange(start + ids.shape[1]).unsqueeze(0) - at
        bias = torch.where(distance > 0, torch.tensor(-1e9),
                           self.slopes * distance)
        x, present = self.words(ids), []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, past[2 * i:2 * i + 2], bias)
            present += [k, v]
        return (self.head(self.norm(x)), *present)


def caches(batch, length):
    """Keys and values of `length` zeros for each layer."""
    return [torch.zeros(batch, HEADS, length, HEAD)
            for _ in range(2 * LAYERS)]


def read_text():
    """The documentation as a tensor of bytes."""
    top = pathlib.Path(__file__).resolve().parent.parent
    files = [top / "README.md", top / "HACKING.md",
             *sorted((top / "docs").glob("*.md"))]
    text = "\n".join(f.read_text() for f in files)
    return torch.tensor(list(text.encode("ascii", "ignore")))


def train(model, text, seconds):
    """Train until the time is over, with a cosine schedule of the learning rate."""
    start, used, step = time.monotonic(), 0.0, 0
    optimizer = torch.optim.Adam(model.parameters())
    while used < seconds:
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * math.cos(used / seconds * math.pi / 2)
        at = torch.randint(len(text) - CONTEXT - 1, (BATCH, 1))
        bytes_ = text[at + torch.arange(CONTEXT + 1)]
        logits = model(bytes_[:, :-1], *caches(BATCH, 0))[0]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1),
                                           bytes_[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used, step = time.monotonic() - start, step + 1
        if step % 100 == 0 or used >= seconds:
            print(f"step {step}: {loss.item():.3f} nats a byte", flush=True)


def main() -> int:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: train-text.py FOLDER [SECONDS]")
    torch.manual_seed(7)
    model = Decoder()
    train(model, read_text(), float(sys.argv[2]) if len(sys.argv) > 2 else 120)
    names = [f"{i}.{t}" for i in range(LAYERS) for t in ("key", "value")]
    inputs = ["ids"] + ["past." + n for n in names]
    outputs = ["logits"] + ["present." + n for n in names]
    axes = {"ids": {1: "new"}, "logits": {1: "new"}}
    axes.update({"past." + n: {2: "past"} for n in names})
    axes.update({"present." + n: {2: "all"} for n in names})
    model.eval()
    torch.onnx.export(
        model, (torch.randint(WORDS, (1, 3)), *caches(1, 5)),
        str(pathlib.Path(sys.argv[1]) / "text.onnx"), input_names=inputs,
        output_names=outputs, dynamic_axes=axes, opset_version=16)
    return 0


if __name__ == "__main__":
    sys.exit(main())
