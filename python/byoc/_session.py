# SPDX-License-Identifier: Apache-2.0
"""InferenceSession: the common calls of ONNX Runtime's Python API.

    import byoc as onnxruntime

Calls and options that byoc does not support raise UnsupportedError.
"""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._errors import FileError, MismatchError, UnsupportedError
from ._model import Model, Value, compile, load
from ._places import PROVIDER

_TYPES = {"float32": "float", "float64": "double"}
_PROVIDERS = {"CPUExecutionProvider": None, "DnnlExecutionProvider": "dnnl"}


def onnxruntime_provider() -> str:
    """The path of byoc's execution provider, for ONNX Runtime's
    register_execution_provider_library. Raises FileError if it is not installed.
    """
    path = os.path.realpath(os.path.join(os.path.dirname(__file__), PROVIDER))
    if not os.path.exists(path):
        raise FileError(
            f"{path}: does not exist, expected byoc's execution provider; "
            "install libbyoc-onnxruntime, or build byoc with headers of ONNX Runtime"
        )
    return path


class GraphOptimizationLevel(enum.IntEnum):
    """The levels of ONNX Runtime, with its numbers."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """Options of a session.

    >>> import byoc
    >>> options = byoc.SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.enable_mem_patterns = False
    Traceback (most recent call last):
     ...
    byoc._errors.UnsupportedError: SessionOptions.enable_mem_patterns ...
    """

    intra_op_num_threads: int
    graph_optimization_level: GraphOptimizationLevel

    def __init__(self) -> None:
        self.__dict__.update(
            intra_op_num_threads=0,
            graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL,
            _dims={},
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise UnsupportedError(
                f"SessionOptions.{name} is not supported by byoc, expected "
                "intra_op_num_threads or graph_optimization_level; leave it out"
            )
        self.__dict__[name] = value

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic dim."""
        self._dims[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        raise UnsupportedError(
            f"session config entry {key!r} is not supported by byoc; leave it out"
        )

    def register_custom_ops_library(self, path: str) -> None:
        raise UnsupportedError(
            f"{path}: found a library of ONNX Runtime, expected a plug-in of byoc; "
            "docs/custom.md describes custom operators"
        )

    def _compile_options(self) -> dict[str, Any]:
        level = GraphOptimizationLevel(self.graph_optimization_level)
        return {
            "threads": self.intra_op_num_threads or None,
            "opt_level": {0: "O0", 1: "O1", 2: "O2", 99: None}[level],
            "dims": self._dims or None,
        }


class RunOptions:
    """Options of one run: its tag."""

    def __init__(self) -> None:
        self.__dict__["logid"] = ""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "logid":
            raise UnsupportedError(
                f"RunOptions.{name} is not supported by byoc, expected logid"
            )
        self.__dict__[name] = value


class NodeArg:
    """An input or output: name, type such as "tensor(float)", shape."""

    def __init__(self, value: Value):
        self.name = value.name
        self.type = _type(value)
        self.shape = list(value.shape or [])

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _type(value: Value) -> str:
    if value.element:
        kind = {"sequence": "seq"}.get(value.kind, value.kind)
        return f"{kind}({_type(value.element)})"
    return f"tensor({_TYPES.get(str(value.dtype), value.dtype)})"


class ModelMetadata:
    """The metadata of the ONNX file."""

    def __init__(self, metadata: Mapping[str, str]):
        self.producer_name = metadata.get("producer_name", "")
        self.graph_name = metadata.get("graph_name", "")
        self.domain = metadata.get("domain", "")
        self.description = metadata.get("doc_string", "")
        self.version = int(metadata.get("model_version", 0))
        self.custom_metadata_map = {
            k[len("custom.") :]: v
            for k, v in metadata.items()
            if k.startswith("custom.")
        }


def _backends(providers: Sequence[Any] | None) -> list[str] | None:
    """The backends of these providers; None: all that are found."""
    names = [p if isinstance(p, str) else p[0] for p in providers or []]
    for name in names:
        if name not in _PROVIDERS:
            warnings.warn(
                f"provider {name!r} is not available; byoc has "
                f"{', '.join(_PROVIDERS)}",
                stacklevel=3,
            )
    backends = [_PROVIDERS[n] for n in names if _PROVIDERS.get(n)]
    return [str(n) for n in backends] or None


class InferenceSession:
    """Runs a model, as onnxruntime.InferenceSession does.

    The model is an ONNX file, its bytes, or an artifact (.so).

    >>> import byoc, numpy
    >>> session = byoc.InferenceSession("digits.onnx")
    >>> session.get_inputs()[0]
    NodeArg(name='image', type='tensor(float)', shape=[64, 1, 8, 8])
    >>> session.get_outputs()[0].name
    'probability'
    >>> feeds = {"image": numpy.load("batch0.input_0.npy")}
    >>> session.run(None, feeds)[0].shape
    (64, 10)
    >>> session.io_binding()
    Traceback (most recent call last):
     ...
    byoc._errors.UnsupportedError: InferenceSession.io_binding ...
    """

    model: Model

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
    ):
        if provider_options and any(provider_options):
            raise UnsupportedError(
                f"provider_options: found {provider_options!r}, expected none"
            )
        if not isinstance(sess_options or SessionOptions(), SessionOptions):
            raise TypeError(
                f"sess_options: found {sess_options!r}, expected byoc.SessionOptions"
            )
        options = (sess_options or SessionOptions())._compile_options()
        self._providers = [
            p if isinstance(p, str) else p[0]
            for p in providers or ["CPUExecutionProvider"]
        ]
        source = path_or_bytes
        if not isinstance(source, bytes) and os.fspath(source).endswith(".so"):
            if options["dims"]:
                raise UnsupportedError(
                    "add_free_dimension_override_by_name: found an artifact, whose "
                    "dims are fixed, expected a model; compile it with dims="
                )
            self.model = load(source, threads=options["threads"])
        else:
            self.model = compile(source, backends=_backends(providers), **options)

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(value) for value in self.model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(value) for value in self.model.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self.model.metadata)

    def get_providers(self) -> list[str]:
        return [p for p in self._providers if p in _PROVIDERS] or [
            "CPUExecutionProvider"
        ]

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run once. Arrays that are not dense are copied; lists are converted."""
        feeds = self._feeds(input_feed)
        return self.model.run(
            output_names or None, feeds, tag=getattr(run_options, "logid", None) or None
        )

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run on another thread, which calls callback(outputs, user_data, error).

        error is "" if the run succeeded.
        """

        def done(outputs: list[Any], error: Exception | None) -> None:
            callback(outputs or [], user_data, str(error) if error else "")

        self.model.submit(
            output_names or None,
            self._feeds(input_feed),
            done,
            tag=getattr(run_options, "logid", None) or None,
        )

    def _feeds(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        import numpy

        dtypes = {value.name: value.dtype for value in self.model.inputs}

        def dense(name: str, value: Any) -> Any:
            if not dtypes.get(name) or dtypes[name] == "string":
                return value
            if isinstance(value, (list, tuple, int, float)):
                value = numpy.asarray(value)
                if value.dtype.name != dtypes[name]:
                    raise MismatchError(
                        f'input "{name}": found {value.dtype.name}, '
                        f"expected {dtypes[name]}"
                    )
            if isinstance(value, numpy.ndarray) and not value.flags.c_contiguous:
                value = value.copy(order="C")
            return value

        return {name: dense(name, value) for name, value in feeds.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":
            raise AttributeError(name)
        raise UnsupportedError(
            f"InferenceSession.{name} is not part of byoc, expected run, run_async, "
            "get_inputs, get_outputs, get_modelmeta or get_providers; or use "
            "byoc.Model"
        )
