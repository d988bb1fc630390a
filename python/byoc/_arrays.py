# SPDX-License-Identifier: Apache-2.0
"""numpy.empty and NumPy's dtypes, for the extension; None if NumPy is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# indexed by the numbers of byoc/dtype.h; NumPy has no dtypes from 16 (bfloat16) on
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


def widen(tensor: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """Tensor.__array__(): bfloat16 as float32, which has all of its values."""
    if tensor.dtype != "bfloat16":
        raise TypeError(
            f"found {tensor.dtype}, which NumPy does not have; "
            "numpy.frombuffer() with a dtype of ml_dtypes reads it"
        )
    if copy is False:
        raise ValueError("found bfloat16, which NumPy does not have, and copy=False")
    bits = numpy.frombuffer(tensor, numpy.uint16).astype(numpy.uint32) << 16
    array = bits.view(numpy.float32).reshape(tensor.shape)
    return array if dtype is None else array.astype(dtype)
