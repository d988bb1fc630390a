# SPDX-License-Identifier: Apache-2.0
"""The parts of NumPy with which the extension creates outputs; None without NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# by number, as in byoc/dtype.h; NumPy lacks those from 16 on, bfloat16 to int2
_names = (
    "- float32 uint8 int8 uint16 int16 int32 int64 object bool float16 float64 "
    "uint32 uint64 complex64 complex128" + 11 * " -"
).split()

empty: Callable[..., Any] | None = None
dtypes: list[Any] = [None] * len(_names)
try:
    import numpy
except ImportError:
    pass
else:
    empty = numpy.empty
    dtypes = [None if name == "-" else numpy.dtype(name) for name in _names]
