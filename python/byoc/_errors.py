# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status of the C API."""

import enum


class Status(enum.IntEnum):
    """The status of a call: `enum byoc_status` of byoc/runtime.h."""

    INVALID = 1
    PARSE = 2
    TYPE = 3
    UNSUPPORTED = 4
    NO_MEMORY = 5
    IO = 6
    INCOMPATIBLE = 7
    BACKEND = 8
    LIMIT = 9
    INTERNAL = 10
    CANCELLED = 11


class Error(Exception):
    """The base of byoc's exceptions. The message is one sentence.

    >>> import byoc
    >>> try:
    ...     byoc.load("nothing.so")
    ... except byoc.Error as error:
    ...     print(error.status.name, isinstance(error, OSError))
    IO True
    """

    status: Status = Status.INTERNAL


class InvalidError(Error, ValueError):
    """An argument is wrong."""

    status = Status.INVALID


class ParseError(Error, ValueError):
    """A file or text is malformed."""

    status = Status.PARSE


class MismatchError(Error, ValueError, TypeError):
    """Element types or shapes do not match."""

    status = Status.TYPE


class UnsupportedError(Error, NotImplementedError):
    """The model or an option needs a feature that this build does not support."""

    status = Status.UNSUPPORTED


class NoMemoryError(Error, MemoryError):
    """An allocation failed, or would exceed the option memory_bytes."""

    status = Status.NO_MEMORY


class FileError(Error, OSError):
    """Reading or writing failed."""

    status = Status.IO


class IncompatibleError(Error, RuntimeError):
    """An artifact or plug-in was made by another version or for another CPU."""

    status = Status.INCOMPATIBLE


class BackendError(Error, RuntimeError):
    """A backend's plug-in failed."""

    status = Status.BACKEND


class LimitError(Error, ValueError):
    """A stated limit was exceeded."""

    status = Status.LIMIT


class InternalError(Error, RuntimeError):
    """A bug in byoc."""

    status = Status.INTERNAL


class CancelledError(Error, RuntimeError):
    """The run was cancelled."""

    status = Status.CANCELLED


class GateError(Error, RuntimeError):
    """Less was offloaded than the options of compile() require.

    `ledger` says which nodes stayed native, and why.
    """

    status = Status.LIMIT
    ledger = None


_classes = {c.status: c for c in Error.__subclasses__() if c is not GateError}


def error_of(status: int, text: str) -> Error:
    """The exception for a status; the extension calls this."""
    return _classes[Status(status)](text)
