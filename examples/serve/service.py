# SPDX-License-Identifier: Apache-2.0
"""A model behind HTTP, for both servers. The body of a request is an .npy file, the
model's only input; the body of the response is its first output."""

import hashlib
import io
import os
import pathlib
import threading

import byoc
import numpy


class Service:
    """A model that can be replaced while requests run.

    path     the artifact; replace it by renaming another file to this path, since
             writing to the mapped file would change the model during runs
    threads  threads of each run
    runners  number of concurrent runs of run_async()
    memory   limit in bytes of the model and its runs; beyond it, the response is 503

    `current` is the model and the hash of its file. A request reads it once.
    """

    def __init__(self, path, threads=1, runners=None, memory=None):
        self.path = pathlib.Path(path)
        self.options = {
            "threads": threads, "runners": runners, "memory_bytes": memory,
        }  # fmt: skip
        self.loading = threading.Lock()
        self.stamp = None  # inode and time of change of the loaded file
        self.load()

    def load(self):
        """Load the artifact if it was replaced. Runs that are under way keep the
        old model, which is freed after the last of them. If the new one cannot be
        loaded, the old one stays, and the exception says why."""
        with self.loading:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                stamp = status.st_ino, status.st_mtime_ns
                if stamp == self.stamp:
                    return
                model = byoc.load(file.fileno(), **self.options)
                name = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            self.current, self.stamp = (model, name), stamp

    def feeds(self, model, body):
        """The inputs in the body of a request."""
        with io.BytesIO(body) as file:
            image = numpy.lib.format.read_array(file, allow_pickle=False)
        return {model.inputs[0].name: image}

    def response(self, outputs):
        """The first output as the bytes of an .npy file."""
        file = io.BytesIO()
        numpy.save(file, outputs[0])
        return file.getvalue()

    def error_response(self, error):
        """The HTTP status and text for an exception of feeds(), response() or a run.
        Raises the exception again if the client has not caused it."""
        if isinstance(error, byoc.NoMemoryError):
            return "503 Service Unavailable", f"{error}\n".encode()
        if isinstance(error, (ValueError, EOFError)):  # also MismatchError
            return "400 Bad Request", f"{error}\n".encode()
        raise error
