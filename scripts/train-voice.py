#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the voice detector in examples/voice.

A bank of learned filters and a GRU compute, for each 32 ms of sound at 8 kHz, the
probability that somebody speaks; the GRU's state is an input and an output. The
sound is synthetic: harmonics of a gliding pitch through three formants, in syllables
and phrases, with noise, mains hum and clicks. Writes beside the model eight seconds
of sound that were not trained on, PyTorch's results for them, and the times at which
the voice speaks.

Needs the distribution's python3-torch. Not needed to build or run anything: its
output is in the repository.

    scripts/train-voice.py examples/voice
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn

RATE, CHUNK, FILTERS, STATE = 8000, 256, 24, 24
STEPS = 500  # of the optimizer
BATCH = 24  # sequences in a step
LENGTH = 80  # chunks in a sequence


class Voice(nn.Module):
    """chunks (n, 256), state (1, 1, 24) -> probabilities (n, 1), state"""

    def __init__(self):
        super().__init__()
        self.bank = nn.Conv1d(1, FILTERS, 64, stride=16, bias=False)
        self.mix = nn.Linear(FILTERS, STATE)
        self.gru = nn.GRU(STATE, STATE)
        self.out = nn.Linear(STATE, 1)

    def features(self, chunks):
        energy = self.bank(chunks.unsqueeze(1)).square().mean(-1)
        return torch.relu(self.mix(torch.log(energy + 1e-4)))

    def forward(self, chunk, state):
        y, state = self.gru(self.features(chunk).unsqueeze(1), state)
        return torch.sigmoid(self.out(y.squeeze(1))), state


def syllable(rng, n, pitch):
    """Make a syllable of n samples, a vowel: harmonics with the gains of three formants."""
    glide = pitch * (1 + rng.uniform(-0.15, 0.15) * np.linspace(0, 1, n))
    phase = 2 * np.pi * np.cumsum(glide) / RATE
    formants = (rng.uniform(300, 800), rng.uniform(900, 2000),
                rng.uniform(2200, 3200))
    voice = np.zeros(n)
    for k in range(1, int(3600 / pitch)):
        gain = sum(a / (1 + ((k * pitch - f) / 90) ** 2)
                   for a, f in zip((1.0, 0.6, 0.3), formants))
        voice += gain * np.sin(k * phase)
    rise = np.minimum(1, np.minimum(np.arange(n), np.arange(n)[::-1]) / 160)
    return voice * rise


def sound(rng, seconds):
    """Samples, and for each of them whether a phrase is being spoken."""
    total = int(seconds * RATE)
    voice, spoken = np.zeros(total), np.zeros(total, np.float32)
    at = int(rng.uniform(0.2, 1.0) * RATE)
    while at < total:
        pitch, begin = rng.uniform(90, 220), at
        for _ in range(rng.integers(3, 9)):
            n = int(rng.uniform(0.1, 0.28) * RATE)
            part = voice[at:at + n]
            part += syllable(rng, n, pitch)[:len(part)]
            at += n + int(rng.uniform(0.02, 0.08) * RATE)
        spoken[begin:at] = 1
        at += int(rng.uniform(0.5, 2.0) * RATE)
    voice /= np.sqrt(np.mean(voice[spoken > 0] ** 2)) + 1e-9
    noise = rng.normal(0, rng.uniform(0.1, 0.5), total)
    time = np.arange(total) / RATE
    for k in range(1, 6):
        noise += rng.uniform(0, 0.3) / k * np.sin(2 * np.pi * 50 * k * time)
    for click in rng.integers(0, total - 40, int(seconds)):
        noise[click:click + 40] += rng.normal(0, 2, 40)
    level = rng.uniform(0.05, 0.2)
    return (level * (voice + noise)).astype(np.float32), spoken


def chunks(rng, count):
    """`count` chunks (count, CHUNK), and for each 1 if somebody speaks in most of it,
    else 0."""
    samples, spoken = sound(rng, count * CHUNK / RATE)
    return (torch.from_numpy(samples.reshape(count, CHUNK)),
            torch.from_numpy(spoken.reshape(count, CHUNK).mean(1).round()))


def train():
    """The model, trained on random sequences of synthetic sound."""
    rng = np.random.default_rng(7)
    pool = [chunks(rng, 4 * LENGTH) for _ in range(48)]
    model = Voice()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    loss_of = nn.BCEWithLogitsLoss()
    for _ in range(STEPS):
        picked = []
        for _ in range(BATCH):
            x, spoken = pool[rng.integers(len(pool))]
            at = rng.integers(len(x) - LENGTH)
            picked.append((x[at:at + LENGTH], spoken[at:at + LENGTH]))
        x = torch.stack([p[0] for p in picked], 1)
        expected = torch.stack([p[1] for p in picked], 1)
        y, _ = model.gru(model.features(x.flatten(0, 1)).reshape(
            LENGTH, BATCH, STATE))
        loss = loss_of(model.out(y).squeeze(-1), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def main() -> int:
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = train()
    state = torch.zeros(1, 1, STATE)
    x, spoken = chunks(np.random.default_rng(11), 8 * RATE // CHUNK)
    with torch.no_grad():
        probability, _ = model(x, state)
    accuracy = ((probability[:, 0] > 0.5) == (spoken > 0.5)).float().mean()
    print(f"held-out accuracy {accuracy:.4f}")
    out.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(model, (x[:1], state), str(out / "voice.onnx"),
                      opset_version=13, input_names=["chunk", "state"],
                      output_names=["probability", "next"])
    np.save(out / "sound.npy", x.numpy())
    np.save(out / "probability.npy", probability.numpy())
    edges = np.flatnonzero(np.diff(np.r_[0, spoken.numpy(), 0]))
    with open(out / "truth.txt", "w", encoding="ascii") as file:
        for begin, end in zip(edges[::2], edges[1::2]):
            file.write("voice from %.1f to %.1f s\n" % (
                begin * CHUNK / RATE, end * CHUNK / RATE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
