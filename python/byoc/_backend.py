# SPDX-License-Identifier: Apache-2.0
"""Backends in Python: slow, for trying patterns and kernels."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _byoc
from ._errors import CancelledError, InvalidError, Status, UnsupportedError

_here = os.path.dirname(os.path.abspath(__file__))


class Operand(NamedTuple):
    """An operand or a result of a kernel."""

    dtype: str  # "float32" and so on
    shape: tuple[int, ...]
    constant: bool


class Step(NamedTuple):
    """An operator of a kernel; every attribute is a tuple."""

    op: str  # "nn.conv2d"
    attrs: dict[str, tuple[Any, ...]]


class Kernel(NamedTuple):
    """A match of one row, with its shapes. A backend runs one kernel at a time."""

    row: str  # the row's name
    steps: list[Step]  # in topological order
    operands: dict[str, Operand]  # by the names of the pattern
    outputs: list[Operand]
    exact: bool  # True: do not round more than the operators' definitions do


class PythonBackend:
    """A backend whose kernels are Python, for trying patterns.

    name      of the backend; the names of its rows begin with it and a dot
    patterns  {row: pattern}, the most specific first (docs/patterns.md)
    run       run(kernel, **operands) returns the kernel's output as an array,
              or a list of several
    accept    accept(kernel) returns None to accept a match, or a sentence with
              the reason to refuse it. Without accept, all matches are accepted
    version   of the backend; artifacts for another version do not load

    Operands are arrays of NumPy (byoc.Tensor without it) that own their memory.
    Results are arrays of the dtype and shape of kernel.outputs. Calls come from
    any thread, one at a time, holding the GIL.

    >>> import byoc, numpy
    >>> backend = byoc.PythonBackend(
    ...     "toy",
    ...     {"toy.relu": "nn.relu(%x: float32)"},
    ...     run=lambda kernel, x: numpy.maximum(x, 0),
    ... )
    >>> model = byoc.compile(
    ...     "digits.onnx", plugins=backend.write("libbyoc_backend_toy.so"),
    ...     backends=["toy"])
    >>> {node.pattern for node in model.ledger.nodes if node.op == "Relu"}
    {'toy.relu'}
    """

    def __init__(
        self,
        name: str,
        patterns: Mapping[str, str],
        run: Callable[..., Any],
        *,
        accept: Callable[[Kernel], str | None] | None = None,
        version: str = "1",
    ) -> None:
        for what, text in (("name", name), ("version", version)):
            if not isinstance(text, str):
                raise TypeError(f"{what}: found {text!r}, expected a string")
        if not isinstance(patterns, Mapping) or not all(
            isinstance(text, str) for row in patterns.items() for text in row
        ):
            raise TypeError(
                f"patterns: found {patterns!r}, expected a dict of strings: "
                "{row: pattern}"
            )
        for row in patterns:
            if row.partition(".")[0] != name:
                raise InvalidError(
                    f"patterns: found a row called {row!r}, expected a name that "
                    f"begins with {name + '.'!r}"
                )
        for what, call in (("run", run), ("accept", accept or run)):
            if not callable(call):
                raise TypeError(f"{what}: found {call!r}, expected a callable")
        self.name = name
        self.patterns = dict(patterns)
        self.run = run
        self.accept = accept
        self.version = version
        frame = sys._getframe(1)
        self._source = os.path.abspath(frame.f_code.co_filename)
        if not os.path.isfile(self._source):
            self._source = ""  # defined interactively
        rows = list(self.patterns.items())
        self._capsule = _byoc.backend_new(name, version, rows)
        _definitions[name] = self

    def __repr__(self) -> str:
        return f"<byoc.PythonBackend {self.name}: {len(self.patterns)} patterns>"

    def write(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the plug-in, and return its path.

        path  None: libbyoc_backend_NAME.so beside the Python file

        Every program that loads plug-ins can use the file, such as `byoc conform`.

        In a process that has not defined the backend, the plug-in runs the Python
        file of this definition, as a module other than __main__.
        """
        if path is None:
            folder = os.path.dirname(self._source) or os.getcwd()
            path = os.path.join(folder, f"libbyoc_backend_{self.name}.so")
        path = os.path.abspath(path)
        lines = [self.name, self._source, _library(), os.path.dirname(_here)]
        _copy_template(path, lines)
        return path

    def _check(self, kernel: Kernel) -> None:
        if kernel.row not in self.patterns:
            raise InvalidError(
                f"found kernel {kernel.row}, expected a row of {self.name}; "
                "compile the model again"
            )
        refusal = self.accept(kernel) if self.accept else None
        if refusal is not None and not isinstance(refusal, str):
            raise TypeError(
                f"accept() of {kernel.row} returned {refusal!r}, expected None or "
                "a sentence with the reason"
            )
        if refusal is not None:
            raise UnsupportedError(refusal or "accept() gave no reason")

    def _call(self, kernel: Kernel, operands: dict[str, Any]) -> list[Any]:
        answer = self.run(kernel, **operands)
        results = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        if len(results) != len(kernel.outputs):
            raise TypeError(
                f"run() of {kernel.row} returned {len(results)} arrays, expected "
                f"{len(kernel.outputs)}"
            )
        numpy = sys.modules.get("numpy")
        return [numpy.asarray(r) for r in results] if numpy else results


_definitions: dict[str, PythonBackend] = {}

# --- called by the extension and the plug-in -----------------------------------


def find(name: str, source: str) -> Any:
    """The capsule of a backend. Runs `source` if this process has not defined it."""
    if name not in _definitions:
        if not source:
            raise ImportError(
                f"{name}: found a backend that another process defined "
                "interactively, expected one in a file"
            )
        try:
            _execute(source, f"byoc_backend_{name}")
        except Exception as error:
            raise ImportError(f"{source}: {describe(error)[1]}") from error
    if name not in _definitions:
        raise ImportError(
            f"{source}: found no byoc.PythonBackend called {name}, expected its "
            "definition"
        )
    return _definitions[name]._capsule


def _execute(source: str, name: str) -> None:
    """Run a file as a module, which may import modules from its folder."""
    folder = os.path.dirname(source)
    if folder not in sys.path:
        sys.path.append(folder)
    loader = importlib.machinery.SourceFileLoader(name, source)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def load(raw: list[tuple[Any, ...]]) -> list[Callable[[dict[str, Any]], list[Any]]]:
    """Check the kernels of a region, and return a callable for each."""
    calls = []
    for row, steps, operands, outputs, exact in raw:
        kernel = Kernel(
            row,
            [Step(*step) for step in steps],
            {name: Operand(*value) for name, value in operands.items()},
            [Operand(*value) for value in outputs],
            exact,
        )
        definition = _definitions.get(row.partition(".")[0])
        if definition is None:
            raise InvalidError(f"found kernel {row}, expected one of a defined backend")
        definition._check(kernel)
        calls.append(functools.partial(definition._call, kernel))
    return calls


# enum byoc_fail_code of byoc/backend.h
_UNSUPPORTED, _INVALID, _RESOURCE, _INTERNAL, _CANCELLED = 1, 2, 4, 5, 7
_codes = [
    (UnsupportedError, _UNSUPPORTED),
    (InvalidError, _INVALID),
    (CancelledError, _CANCELLED),
    (NotImplementedError, _UNSUPPORTED),
    (MemoryError, _RESOURCE),
]


def describe(error: BaseException) -> tuple[int, str]:
    """The code and text of a failure: which exception was raised, and where."""
    code = next((code for kind, code in _codes if isinstance(error, kind)), _INTERNAL)
    text = str(error)
    if isinstance(getattr(error, "status", None), Status):
        return code, text
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.dirname(frame.filename) != _here
    ]
    if frames:
        where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
        text = f"{where}: {text}"
    return code, text.replace("\0", "")


# --- the plug-in's file --------------------------------------------------------

# LOCATION_HEAD of python/plugin.c, and the size in bytes of its array `location`
_LOCATION_HEAD = b"byoc-python-plugin:"
_LOCATION_BYTES = 4096


def _library() -> str:
    """The path of libpython, which the plug-in opens in programs without Python."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = [sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LIBPL")]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch and folders[0]:
        folders.insert(1, os.path.join(folders[0], multiarch))
    if not name.startswith("libpython") or name.endswith(".a"):
        name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
    for folder in folders:
        path = os.path.join(folder or "", name)
        if os.path.isfile(path):
            return path
    return name  # dlopen() searches for it


def _copy_template(path: str, lines: Sequence[str]) -> None:
    """Write a copy of the template, with these lines in its text (plugin.c)."""
    with open(os.path.join(_here, "_plugin_template.so"), "rb") as file:
        image = file.read()
    text = _LOCATION_HEAD + "\n".join(lines).encode()
    at = image.find(_LOCATION_HEAD + bytes(64))
    for line in lines:
        if "\n" in line:
            raise InvalidError(
                f"{path}: found a newline in {line!r}, expected none; move the files "
                "to another folder"
            )
    if len(text) >= _LOCATION_BYTES:
        raise InvalidError(
            f"{path}: found {len(text)} bytes of names and paths, expected less than "
            f"{_LOCATION_BYTES}; move the files to a folder with a shorter path"
        )
    image = image[:at] + text.ljust(_LOCATION_BYTES, b"\0") + image[at + _LOCATION_BYTES :]
    # rename it into place: a process may have mapped the old file
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".byoc-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(image)
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
