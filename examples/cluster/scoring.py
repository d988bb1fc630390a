# SPDX-License-Identifier: Apache-2.0
"""Score a folder of inputs in batches; dask_score.py and mpi_score.py use this.
A batch is one run of the model: its files NAME.input_0.npy, NAME.input_1.npy and so
on are the model's inputs, in order; the outputs are NAME.output_0.npy and so on. A
batch is scored if its first output exists: this output is written last, and files are
renamed into place. A job that was killed can therefore be started again."""

import hashlib
import os
import pathlib
import tempfile
import threading

import byoc
import numpy

_loading = threading.Lock()
_models = {}


def batches(folder):
    """The names of all batches, in order."""
    names = {path.name.split(".input_")[0] for path in folder.glob("*.input_*.npy")}
    if not names:
        raise SystemExit(f"{folder}: found no file NAME.input_0.npy, expected one")
    return sorted(names)


def missing(folder, out):
    """The batches that have no outputs yet, in order."""
    out.mkdir(exist_ok=True)
    return [n for n in batches(folder) if not (out / f"{n}.output_0.npy").exists()]


def place(artifact):
    """Write an artifact to this machine, unless it exists; return its path. The name
    contains the hash, since a machine may have several artifacts."""
    name = f"byoc-{hashlib.sha256(artifact).hexdigest()[:16]}.so"
    path = pathlib.Path(tempfile.gettempdir(), name)
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(artifact)
        part.rename(path)
    return str(path)


def _model(path):
    """The model, loaded once in each process. A run has one thread, since several
    workers run at once. Their processes share the pages of the mapped artifact."""
    with _loading:
        if path not in _models:
            _models[path] = byoc.load(path, threads=1)
        return _models[path]


def score(path, folder, out, name):
    """Score one batch; return its name and the shapes of its outputs, as a line."""
    model = _model(path)
    feeds = {
        value.name: numpy.load(folder / f"{name}.input_{i}.npy", mmap_mode="r")
        for i, value in enumerate(model.inputs)
    }
    outputs = model.run(None, feeds)
    for i, value in reversed(list(enumerate(outputs))):
        part = out / f".{name}.{os.getpid()}.{threading.get_ident()}"
        with open(part, "wb") as file:
            numpy.save(file, value)
        part.rename(out / f"{name}.output_{i}.npy")
    return f"{name} {' '.join(str(value.shape) for value in outputs)}"


def sweep(out):
    """Remove partial files of workers that were killed."""
    for part in out.glob(".*.*.*"):
        part.unlink()
