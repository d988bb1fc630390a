# SPDX-License-Identifier: Apache-2.0
"""ort.py: call ONNX Runtime through its C library, for scripts that compare
byoc with it. The library is that of the npm package onnxruntime-node, in the
folder ORT_FOLDER (bench/against-onnxruntime installs it there). Calls go
through its versioned function table, to which new versions only append.
"""
import ctypes
import os

import numpy as np

LIBRARY_PATH = "node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"

# indices of functions in the API table
(ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, OPTIONS, LOG_SEVERITY,
 OPTIMIZATION, INTRA_THREADS, IN_COUNT, OUT_COUNT, IN_NAME, OUT_NAME,
 CREATE_TENSOR, CREATE_WITH_DATA, DATA, FILL_STRINGS, STRINGS_LENGTH, STRINGS,
 ELEMENT_TYPE, N_DIMS, DIMS, TYPE_AND_SHAPE, VALUE_TYPE, MEMORY_INFO,
 ALLOCATOR, SEQUENCE_AT, SEQUENCE_SIZE, CREATE_SEQUENCE, RELEASE_STATUS,
 RELEASE_SESSION, RELEASE_VALUE, RELEASE_SHAPE) = (
     2, 3, 8, 9, 10, 22, 23, 24, 30, 31, 36, 37, 48, 49, 51, 52, 53, 54, 60,
     61, 62, 65, 67, 69, 78, 80, 81, 82, 93, 95, 96, 99)
# functions since version 23, for plug-in execution providers
REGISTER_PROVIDER, DEVICES, ADD_PROVIDER, PROVIDER_NAME = 301, 303, 304, 312

# by ONNX's numbers of element types; bfloat16 as its bits
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16,
          6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
          11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64,
          15: np.complex128, 16: np.uint16}
# types of 2, 4 and 8 bits: a Packed contains the bytes of packed elements
BITS = {17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2}
# ONNX Runtime reports results of some types by a number that differs from ONNX's,
# which it expects for operands
NUMBERS = {26: 24, 24: 25, 25: 26}
STRING, SEQUENCE = 8, 2


class Packed:
    """A tensor of a narrow element type: its shape and its bytes."""

    def __init__(self, shape, data):
        self.shape, self.data = tuple(shape), np.asarray(data, np.uint8)


class OrtError(Exception):
    """A call of ONNX Runtime failed; the text is its message."""


def library():
    """The path of the library, or None if it is not installed."""
    path = os.path.join(os.environ.get("ORT_FOLDER", ""), LIBRARY_PATH)
    return path if os.path.exists(path) else None


class _Base(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p),
                                             ctypes.c_uint32)),
                ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


def _argument(a):
    """A value of C: sizes and enumerations are as wide as pointers are."""
    if a is None:
        return ctypes.c_void_p()
    if isinstance(a, ctypes.c_int):
        return a
    if isinstance(a, int):
        return ctypes.c_size_t(a)
    if isinstance(a, bytes):
        return ctypes.c_char_p(a)
    return ctypes.cast(a, ctypes.c_void_p)


class Runtime:
    """One environment; run() makes and drops a session each time, open() makes
    one that stays. optimize: with all of its graph optimizations. provider:
    libbyoc_onnxruntime.so, with its options."""

    def __init__(self, path=None, threads=1, optimize=False, provider=None,
                 options=None):
        self.library = ctypes.CDLL(path or library())
        self.library.OrtGetApiBase.restype = ctypes.POINTER(_Base)
        base = self.library.OrtGetApiBase().contents
        self.version = base.version().decode()
        self.api = base.get_api(23 if provider else 1)
        if not self.api:
            raise OrtError("found ONNX Runtime %s, expected 1.23 or newer" %
                           self.version)
        self.env = self._make(CREATE_ENV, 4, b"byoc")
        self.options = self._make(OPTIONS)
        self._check(LOG_SEVERITY, self.options, 4)
        self._check(OPTIMIZATION, self.options, 99 if optimize else 0)
        self._check(INTRA_THREADS, self.options, threads)
        self.memory = self._make(MEMORY_INFO, 1, 0)
        self.allocator = self._make(ALLOCATOR)
        if provider:
            self._check(REGISTER_PROVIDER, self.env, b"byoc",
                       os.fsencode(os.path.abspath(provider)))
            self._add_provider(options or {})

    def _add_provider(self, options):
        devices, n = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
        self._check(DEVICES, self.env, ctypes.byref(devices), ctypes.byref(n))
        name_of = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
            self.api[PROVIDER_NAME])
        byoc_devices = [d for d in devices[:n.value]
                        if name_of(d) == b"ByocExecutionProvider"]

        def texts(values):
            return (ctypes.c_char_p * max(1, len(values)))(
                *[str(v).encode() for v in values])
        self._check(ADD_PROVIDER, self.options, self.env,
                   (ctypes.c_void_p * 1)(*byoc_devices[:1]), 1, texts(options),
                   texts(options.values()), len(options))

    def _call(self, index, *args):
        values = [_argument(a) for a in args]
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, *[type(v) for v in values])
        return kind(self.api[index])(*values)

    def _check(self, index, *args):
        """Call a function that returns a status; raise OrtError if it failed."""
        status = self._call(index, *args)
        if status:
            self._fail(status)

    def _fail(self, status):
        """Raise OrtError with the message of a status, and release it."""
        text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
            self.api[ERROR_MESSAGE])(status).decode(errors="replace")
        self._call(RELEASE_STATUS, ctypes.c_void_p(status))
        raise OrtError(text)

    def _make(self, index, *args):
        """Call a function whose last parameter receives an object; return that."""
        out = ctypes.c_void_p()
        self._check(index, *args, ctypes.byref(out))
        return out

    def _names(self, session, count, name):
        n = ctypes.c_size_t()
        self._check(count, session, ctypes.byref(n))
        names = []
        for i in range(n.value):
            text = self._make(name, session, i, self.allocator)
            names.append(ctypes.cast(text, ctypes.c_char_p).value)
        return names

    def _value(self, array, number):
        if isinstance(array, list):
            parts = [self._value(a, number) for a in array]
            value = self._make(CREATE_SEQUENCE, (ctypes.c_void_p * len(parts))(
                *[p.value for p in parts]), len(parts), SEQUENCE)
            for part in parts:
                self._call(RELEASE_VALUE, part)
            return value
        if isinstance(array, Packed):
            return self._memory_value(array.data, array.shape, number)
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        self.references.append(array)
        dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        if number == STRING:
            value = self._make(CREATE_TENSOR, self.allocator, dims,
                               array.ndim, number)
            texts = [str(s).encode() for s in array.ravel()]
            self._check(FILL_STRINGS, value,
                       (ctypes.c_char_p * max(1, len(texts)))(*texts),
                       len(texts))
            return value
        return self._memory_value(array, array.shape, number)

    def _memory_value(self, array, shape, number):
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        return self._make(CREATE_WITH_DATA, self.memory,
                          ctypes.c_void_p(array.ctypes.data), array.nbytes,
                          dims, len(shape), number)

    def _strings(self, value, shape):
        total = ctypes.c_size_t()
        self._check(STRINGS_LENGTH, value, ctypes.byref(total))
        count = int(np.prod(shape))
        text = ctypes.create_string_buffer(total.value + 1)
        starts = (ctypes.c_size_t * (count + 1))()
        self._check(STRINGS, value, text, total.value, starts, count)
        starts[count] = total.value
        texts = [text.raw[starts[i]:starts[i + 1]].decode()
                 for i in range(count)]
        return np.array(texts, dtype=object).reshape(shape)

    def _list(self, value):
        n = ctypes.c_size_t()
        self._check(SEQUENCE_SIZE, value, ctypes.byref(n))
        arrays, number = [], 0
        for i in range(n.value):
            part = self._make(SEQUENCE_AT, value, ctypes.c_int(i),
                              self.allocator)
            array, number = self._array(part)
            arrays.append(array)
            self._call(RELEASE_VALUE, part)
        return arrays, number

    def _array(self, value):
        kind = ctypes.c_int()
        self._check(VALUE_TYPE, value, ctypes.byref(kind))
        if kind.value == SEQUENCE:
            return self._list(value)
        if kind.value != 1:
            raise OrtError("found a result of type %d, expected a tensor or sequence" %
                           kind.value)
        info = self._make(TYPE_AND_SHAPE, value)
        number, rank = ctypes.c_int(), ctypes.c_size_t()
        self._check(ELEMENT_TYPE, info, ctypes.byref(number))
        number.value = NUMBERS.get(number.value, number.value)
        self._check(N_DIMS, info, ctypes.byref(rank))
        dims = (ctypes.c_int64 * max(1, rank.value))()
        self._check(DIMS, info, dims, rank.value)
        self._call(RELEASE_SHAPE, info)
        shape = tuple(dims[:rank.value])
        if number.value == STRING:
            return self._strings(value, shape), number.value
        count = int(np.prod(shape))
        if number.value in BITS:
            data = np.empty((count * BITS[number.value] + 7) // 8, np.uint8)
            if count:
                ctypes.memmove(data.ctypes.data, self._make(DATA, value),
                               data.nbytes)
            return Packed(shape, data), number.value
        dtype = np.dtype(DTYPES[number.value])
        array = np.empty(shape, dtype)
        if count:
            data = self._make(DATA, value)
            ctypes.memmove(array.ctypes.data, data, count * dtype.itemsize)
        return array, number.value

    def open(self, model):
        """A session of a model (bytes)."""
        return Session(self, model)

    def run(self, model, inputs, numbers):
        """Outputs of a model (bytes), as (array, number of its element type);
        numbers: the element types of the inputs. A sequence is a list of
        arrays. Raises OrtError."""
        session = Session(self, model)
        try:
            return session.run(inputs, numbers)
        finally:
            session.close()


class Session:
    """A loaded model. The caller calls close()."""

    def __init__(self, runtime, model):
        self.runtime = runtime
        self.handle = runtime._make(CREATE_SESSION, runtime.env, model,
                                    len(model), runtime.options)
        self.names_in = runtime._names(self.handle, IN_COUNT, IN_NAME)
        self.names_out = runtime._names(self.handle, OUT_COUNT, OUT_NAME)

    def close(self):
        self.runtime._call(RELEASE_SESSION, self.handle)

    def run(self, inputs, numbers):
        """As Runtime.run."""
        runtime, values = self.runtime, []
        runtime.references = []
        try:
            for array, number in zip(inputs, numbers):
                values.append(runtime._value(array, number))
            handles = (ctypes.c_void_p * max(1, len(values)))(
                *[v.value for v in values])
            names_in, names_out = self.names_in, self.names_out
            outs = (ctypes.c_void_p * len(names_out))()
            runtime._check(RUN, self.handle, None,
                          (ctypes.c_char_p * max(1, len(names_in)))(*names_in),
                          handles, len(values),
                          (ctypes.c_char_p * len(names_out))(*names_out),
                          len(names_out), outs)
            values += [ctypes.c_void_p(v) for v in outs if v]
            return [runtime._array(ctypes.c_void_p(v)) for v in outs]
        finally:
            for value in values:
                runtime._call(RELEASE_VALUE, value)

    def prepare(self, inputs, numbers):
        """A function that runs with these inputs, into the same outputs each
        time, and does nothing else; for timing. Its values last as long as the
        process."""
        runtime = self.runtime
        runtime.references = []
        values = [runtime._value(a, n) for a, n in zip(inputs, numbers)]
        handles = (ctypes.c_void_p * max(1, len(values)))(
            *[v.value for v in values])
        names_in = (ctypes.c_char_p * max(1, len(values)))(*self.names_in)
        names_out = (ctypes.c_char_p * len(self.names_out))(*self.names_out)
        outs = (ctypes.c_void_p * len(names_out))()
        args = [self.handle, None, names_in, handles, len(values), names_out,
                len(names_out), outs]
        runtime._check(RUN, *args)
        args = [_argument(a) for a in args]
        call = ctypes.CFUNCTYPE(ctypes.c_void_p, *[type(a) for a in args])(
            runtime.api[RUN])
        references = values, runtime.references

        def run(_=references):
            status = call(*args)
            if status:
                runtime._fail(status)
        return run
