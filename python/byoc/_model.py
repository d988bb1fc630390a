# SPDX-License-Identifier: Apache-2.0
"""Models: compiling, loading, running."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Union

from . import _byoc
from ._errors import GateError
from ._ledger import Ledger

log = logging.getLogger("byoc")


class Serializable(Protocol):
    """An ONNX model in memory, such as onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


Path = Union[str, "os.PathLike[str]"]
Names = Union[str, Sequence[str]]


class Value(NamedTuple):
    """An input or output of a model."""

    name: str
    kind: str  # "tensor", "sequence", "optional"
    dtype: str | None  # "float32" and so on
    shape: tuple[int | str | None, ...] | None  # a str: a symbolic dim
    element: Value | None  # of a sequence or optional


class Event(NamedTuple):
    """An event of a run (struct byoc_event of byoc/runtime.h)."""

    kind: str
    name: str
    impl: str
    sources: str
    tag: str
    begin_ns: int
    end_ns: int

    @property
    def us(self) -> float:
        """The duration in microseconds."""
        return (self.end_ns - self.begin_ns) / 1000


class Profile:
    """The events of runs, from Model.profile()."""

    def __init__(self) -> None:
        self._records: list[str] = []

    @property
    def events(self) -> list[Event]:
        """The events so far, in the order in which their runs ended."""
        records = "".join(self._records).split("\x1e")[:-1]
        split = [record.split("\x1f") for record in records]
        return [Event(*m[:5], int(m[5]), int(m[6])) for m in split]

    def rows(self) -> list[dict[str, Any]]:
        """The events as dicts with the same keys, for pandas.DataFrame()."""
        return [{**e._asdict(), "us": e.us} for e in self.events]


def _value(raw: tuple[Any, ...]) -> Value:
    return Value(*raw[:4], _value(raw[4]) if raw[4] else None)


class Model(_byoc.Model):
    """A model that is ready to run, from compile() or load().

    Any number of threads may run one model at once. Calling it takes the
    inputs in the model's order, or by name, and returns the output, or a list
    of several:

    >>> import byoc, numpy
    >>> model = byoc.compile("digits.onnx")
    >>> images = numpy.load("batch0.input_0.npy")
    >>> model(images).shape
    (64, 10)
    >>> bool((model(image=images) == model(images)).all())
    True

    Inputs are arrays with the buffer protocol or __dlpack__(): NumPy's,
    PyTorch's on the CPU, mmap, memoryview. They are read in place, and must be
    dense, except inputs that in_place lists. Outputs are NumPy arrays, which own
    their memory and outlive the model; without NumPy, and for bfloat16, they are
    byoc.Tensor.

    run(names, feeds, out=None, tag=None) takes inputs from the dict `feeds`
    and returns a list of the outputs `names` (None: all). Nodes that only
    other outputs need do not run. `out` maps names to arrays to write to;
    `tag` is in the events of the run:

    >>> model.run(["probability"], {"image": images})[0].shape
    (64, 10)
    >>> scores = numpy.empty((64, 10), numpy.float32)
    >>> model.run(None, {"image": images}, out={"probability": scores})[0] is scores
    True

    submit(names, feeds, done, tag=None) returns at once: another thread runs
    the model, then calls done(outputs, None), or done(None, error). The run
    that it returns has a method cancel().

    A sequence is a list, an optional its value or None, and strings are an array
    of NumPy or a list. A model is also a context manager, which closes it.
    """

    def __reduce__(self) -> Any:
        raise TypeError(
            "found a byoc.Model, which cannot be pickled or copied; write() it, and "
            "load() the file in the other process"
        )

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<byoc.Model closed>"
        names = ", ".join(v.name for v in self.inputs)
        return f"<byoc.Model {names} -> {', '.join(v.name for v in self.outputs)}>"

    @property
    def inputs(self) -> list[Value]:
        """The inputs, in the model's order.

        >>> import byoc
        >>> byoc.compile("digits.onnx").inputs[0][:4]
        ('image', 'tensor', 'float32', (64, 1, 8, 8))
        """
        return [_value(raw) for raw in self._values(False)]

    @property
    def outputs(self) -> list[Value]:
        """The outputs, in the model's order."""
        return [_value(raw) for raw in self._values(True)]

    @property
    def in_place(self) -> dict[str, tuple[str, int]]:
        """The outputs that may share the memory of an input.

        Each has the input's name, and the axis along which the output appends
        rows to that input. The axis is the input's rank if the output has the
        input's shape and replaces some of its values. Pass views of one array,
        which has room for more rows, as both:

        >>> import byoc, numpy
        >>> model = byoc.compile("text.onnx")
        >>> model.in_place["present.0.key"]
        ('past.0.key', 2)
        >>> past = {v.name: numpy.zeros((1, 4, 100, 12), "f4") for v in model.inputs[1:]}
        >>> feeds = {name: a[:, :, :0] for name, a in past.items()}
        >>> out = {y: past[x][:, :, :3] for y, (x, axis) in model.in_place.items()}
        >>> ids = numpy.array([list(b"The")])
        >>> model.run(None, {"ids": ids, **feeds}, out=out)[0].shape
        (1, 3, 128)
        >>> bool(past["past.0.key"][:, :, :3].any(axis=-1).all())
        True
        """
        inputs, outputs = self.inputs, self.outputs
        return {
            outputs[y].name: (inputs[x].name, axis) for y, x, axis in self._in_place()
        }

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the ONNX file."""
        return self._metadata()

    @property
    def ledger(self) -> Ledger | None:
        """Where each node runs, and why; None: the artifact has none."""
        text = self._text("ledger")
        return Ledger(text) if text else None

    @property
    def ir(self) -> str:
        """The module as text after the last pass; "" for an artifact."""
        return self._text("ir")

    @property
    def warnings(self) -> list[str]:
        """The warnings of the compile and the load."""
        text = self._text("compile_warnings") + "\n" + self._text("warnings")
        return [line for line in text.splitlines() if line]

    @property
    def stats(self) -> dict[str, Any]:
        """Threads, memory, and the cache of specialisations."""
        return self._stats()

    def write(self, path: Path) -> None:
        """Write the artifact, a shared library, which load() loads."""
        with _writing:
            self._write(os.fspath(path))

    def warm(self, **sizes: int) -> None:
        """Make the specialisation for these sizes: model.warm(batch=8)."""
        self._warm(sizes)

    def submit(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        done: Callable[[Any, Any], object],
        tag: str | None = None,
    ) -> _byoc.Run:
        """Run on another thread, which then calls done(outputs, error).

        When Python exits, it waits for these runs and calls."""
        if not callable(done):
            raise TypeError(f"done: found {done!r}, expected a callable")
        if _exiting:
            raise RuntimeError("Python is exiting; submit runs before that")
        return self.run(names, feeds, None, tag, done)

    async def run_async(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        tag: str | None = None,
    ) -> list[Any]:
        """run() for asyncio: other tasks continue meanwhile.

        >>> import asyncio, byoc, numpy
        >>> model = byoc.compile("digits.onnx")
        >>> feeds = {"image": numpy.load("batch0.input_0.npy")}
        >>> asyncio.run(model.run_async(None, feeds))[0].shape
        (64, 10)
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()

        def settle(outputs: list[Any], error: Exception | None) -> None:
            if future.done():
                return
            if error:
                future.set_exception(error)
            else:
                future.set_result(outputs)

        def done(outputs: list[Any], error: Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(settle, outputs, error)

        run = self.submit(names, feeds, done, tag=tag)
        try:
            return await future
        except asyncio.CancelledError:
            run.cancel()
            raise

    @contextlib.contextmanager
    def profile(self) -> Iterator[Profile]:
        """Record the events of runs, in any thread, until the context ends.

        >>> import byoc, numpy
        >>> model = byoc.compile("digits.onnx")
        >>> with model.profile() as profile:
        ...     _ = model(numpy.load("batch0.input_0.npy"))
        >>> profile.events[-1].kind
        'run'
        >>> profile.rows()[0]["us"] > 0
        True
        """
        profile = Profile()
        self._record(profile._records)
        try:
            yield profile
        finally:
            self._record(None)


# Held during Model._write(), which only one thread at a time may call.
_writing = threading.Lock()
_exiting = False


@atexit.register
def _finish() -> None:
    """Wait for the runs of submit(), since their threads crash if they call a function
    of a Python that has been finalised. Ctrl-C ends the process without these runs."""
    global _exiting
    _exiting = True
    try:
        while _byoc.pending():
            time.sleep(0.001)
    except KeyboardInterrupt:
        os._exit(130)


# --- options -----------------------------------------------------------------

_OPT = ["O0", "O1", "O2", "O3"]
_CHOICES = {
    "opt_level": ["", *_OPT],
    "codegen": ["", "auto", "c", "json"],
    "partition_by": ["", "greedy", "estimated", "measured"],
    "weights": ["", "fp16", "bf16", "int8", "int4"],
    "precision": ["", "fp16", "bf16"],
    "wait": ["", "brief", "sleep", "spin"],
}
_LISTS = {
    "backends", "exclude", "only", "disable", "require",
    "add_passes", "pass_plugins", "warm",
}  # fmt: skip
_PATHS = {"plugins", "pass_plugins", "cc", "dump_passes", "keep_c", "cost_table"}
_DICTS = {"dims", "shapes", "values", "patterns", "options"}
_SEVERITIES = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}


def _pair(name: str, key: str, value: Any) -> str:
    if name == "shapes" and not isinstance(value, str):
        value = "x".join(str(size) for size in value)
    return f"{key}={value}"


def _convert(name: str, value: Any) -> Any:
    """Convert a value for the extension module: to a str, list of str, or number."""
    if name in _CHOICES:
        choices = _CHOICES[name]
        if value not in choices[1:]:
            raise ValueError(f"{name}: found {value!r}, expected one of {choices[1:]}")
        return choices.index(value)
    if name in _DICTS:
        return [_pair(name, k, v) for k, v in value.items()]
    if name in _LISTS:
        items = [value] if isinstance(value, (str, os.PathLike)) else value
        return [os.fspath(item) for item in items]
    if name in _PATHS:
        return os.fspath(value)
    return value


def _option(name: str, value: Any) -> Any:
    """As _convert(), with messages that name the option."""
    try:
        return _convert(name, value)
    except (TypeError, AttributeError):
        expected = (
            "a dict"
            if name in _DICTS
            else "a name, or a list of names" if name in _LISTS else "a path"
        )
        raise TypeError(f"{name}: found {value!r}, expected {expected}") from None


def _source(source: Any, name: str, expected: str) -> Any:
    """The source as the extension accepts it: a path, or bytes."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    try:
        memoryview(source)
    except TypeError:
        found = "None" if source is None else type(source).__name__
        raise TypeError(f"{name}: found {found}, expected {expected}") from None
    return source


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    options = {k: _option(k, v) for k, v in arguments.items() if v is not None}
    level = log.getEffectiveLevel()
    options["log"] = lambda severity, line: log.log(_SEVERITIES[severity], "%s", line)
    options["log_severity"] = min(
        (s for s in _SEVERITIES if _SEVERITIES[s] >= level), default=4
    )
    return options


def compile(  # noqa: A001
    model: Path | bytes | memoryview | Serializable,
    *,
    name: str = "model.onnx",
    backends: Names | None = None,
    plugins: Path | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    exclude: Names | None = None,
    only: Names | None = None,
    patterns: Mapping[str, str] | None = None,
    disable: Names | None = None,
    require: Names | None = None,
    opt_level: str | None = None,
    forbid_reference: bool | None = None,
    min_region_nodes: int | None = None,
    min_region_flops: float | None = None,
    max_regions: int | None = None,
    require_offload: float | None = None,
    require_offload_nodes: float | None = None,
    threads: int | None = None,
    add_passes: Names | None = None,
    pass_plugins: Names | None = None,
    options: Mapping[str, Any] | None = None,
    cc: str | None = None,
    codegen: str | None = None,
    exact: bool | None = None,
    dump_passes: Path | None = None,
    keep_c: Path | None = None,
    warm: Names | None = None,
    verify: bool | None = None,
    function: str | None = None,
    partition_by: str | None = None,
    keep_nan: bool | None = None,
    cost_table: Path | None = None,
    measure_seconds: float | None = None,
    isolate: bool | None = None,
    isolate_seconds: float | None = None,
    isolate_bytes: int | None = None,
    weights: str | None = None,
    precision: str | None = None,
    target: str | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    native_only: bool | None = None,
    require_backends: bool | None = None,
    cache_shapes: int | None = None,
    cache_bytes: int | None = None,
    wait: str | None = None,
    runners: int | None = None,
    memory_bytes: int | None = None,
) -> Model:
    """Compile a model, and load it.

    model     the path of an ONNX file, or of a module as text (.ir); the bytes of
              either, which messages call `name`; or an object with
              SerializeToString(), such as onnx.ModelProto
    backends  names, in order of preference; []: native kernels only
    dims, shapes, values   {"N": 1}, {"x": (1, 3, 224, 224)}, {"sr": 16000}
    progress  called as progress(what, done, total) in long steps

    The other options are the members of struct byoc_compile_params and struct
    byoc_load_params, which byoc/byoc.h and byoc/runtime.h describe.

    Raises a subclass of byoc.Error: GateError if the offloaded percentage is
    below require_offload or require_offload_nodes.

    >>> import byoc
    >>> model = byoc.compile("digits.onnx", backends=[])
    >>> model.ledger.offloaded
    0.0
    >>> byoc.compile("digits.onnx", backends=[], require_offload=95)
    Traceback (most recent call last):
     ...
    byoc._errors.GateError: --require-offload requires ...
    """
    arguments = dict(locals())
    source, name = arguments.pop("model"), arguments.pop("name")
    if isolate and progress:
        raise ValueError("progress: found a callable, expected None with isolate")
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    source = _source(source, "model", "a path, bytes or a model")
    compiled = _byoc.open(Model, source, name, _options(arguments))
    verdict = compiled._text("verdict")
    if verdict:
        error = GateError(verdict)
        error.ledger = compiled.ledger
        raise error
    return compiled


def load(
    artifact: Path | int | bytes | memoryview,
    *,
    threads: int | None = None,
    plugins: Path | None = None,
    native_only: bool | None = None,
    require_backends: bool | None = None,
    cache_shapes: int | None = None,
    cache_bytes: int | None = None,
    verify: bool | None = None,
    wait: str | None = None,
    runners: int | None = None,
    memory_bytes: int | None = None,
) -> Model:
    """Load an artifact of Model.write() or of `byoc compile`.

    artifact  its path, an open file descriptor, or its bytes
    runners   number of threads for submit() and run_async()

    The options are the members of struct byoc_load_params (byoc/runtime.h).

    >>> import byoc, numpy
    >>> byoc.compile("digits.onnx").write("digits.so")
    >>> with byoc.load("digits.so", threads=1) as model:
    ...     scores = model(numpy.load("batch0.input_0.npy"))
    >>> int(scores[0].argmax())
    0
    """
    arguments = dict(locals())
    source = arguments.pop("artifact")
    if not isinstance(source, int):
        source = _source(source, "artifact", "a path, a descriptor or bytes")
    return _byoc.open(Model, source, None, _options(arguments))


class Backend(NamedTuple):
    """A plug-in that was found. verdict: None, or why it cannot be used."""

    name: str | None
    version: str | None
    path: str
    verdict: str | None


def backends(plugins: Path | None = None) -> list[Backend]:
    """The plug-ins that are found, whether they can be used or not.

    >>> import byoc
    >>> [b.name for b in byoc.backends() if b.verdict is None]
    ['dnnl']
    """
    path = None if plugins is None else os.fspath(plugins)
    return [Backend(*row) for row in _byoc.backends(path)]
