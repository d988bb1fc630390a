# SPDX-License-Identifier: Apache-2.0
"""Compile ONNX models for backends' kernels, and run them.

>>> import byoc, numpy
>>> model = byoc.compile("digits.onnx")
>>> model(numpy.load("batch0.input_0.npy")).argmax(axis=1)[:5].tolist()
[0, 9, 3, 3, 8]

docs/python.md is the guide.
"""

from ._byoc import Run, Tensor, version as _version
from ._backend import Kernel, Operand, PythonBackend, Step
from ._errors import (
    BackendError,
    CancelledError,
    Error,
    FileError,
    GateError,
    IncompatibleError,
    InternalError,
    InvalidError,
    LimitError,
    MismatchError,
    NoMemoryError,
    ParseError,
    Status,
    UnsupportedError,
)
from ._ledger import Ledger, Node
from ._model import (
    Backend,
    Event,
    Model,
    Profile,
    Value,
    backends,
    compile,
    load,
)
from ._session import (
    GraphOptimizationLevel,
    InferenceSession,
    NodeArg,
    RunOptions,
    SessionOptions,
    onnxruntime_provider,
)

__version__ = _version()
__all__ = [name for name in dir() if not name.startswith("_")]
