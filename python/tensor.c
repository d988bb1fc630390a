/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: the class byoc.Tensor: memory with a dtype and a shape, for outputs
 * if NumPy is not installed or does not have the dtype. It supports the buffer
 * protocol and DLPack.
 */
#include "module.h"

#include <structmember.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The class byoc.Tensor. Its memory is dense and row-major. */
struct tensor {
    PyObject head;
    enum byoc_dtype dtype;
    const char *dtype_name;
    PyObject *sizes; /* `shape` as a tuple */
    int ndim;
    void *data;
    Py_ssize_t bytes; /* of `data` */
    Py_ssize_t shape[PYB_MAX_RANK];
    Py_ssize_t strides[PYB_MAX_RANK]; /* in bytes */
};

static PyTypeObject *tensor_type;

/* --- dtypes --------------------------------------------------------------- */

/* The formats of Python's struct module, by dtype; NULL: no format. */
static const char *const formats[] = {
    [BYOC_F32] = "f",  [BYOC_U8] = "B",    [BYOC_I8] = "b",   [BYOC_U16] = "H",
    [BYOC_I16] = "h",  [BYOC_I32] = "i",   [BYOC_I64] = "l",  [BYOC_BOOL] = "?",
    [BYOC_F16] = "e",  [BYOC_F64] = "d",   [BYOC_U32] = "I",  [BYOC_U64] = "L",
    [BYOC_C64] = "Zf", [BYOC_C128] = "Zd", [BYOC_BF16] = NULL};

const char *pyb_format_of_dtype(enum byoc_dtype dtype)
{
    return (size_t)dtype < sizeof formats / sizeof formats[0] ? formats[dtype]
                                                              : NULL;
}

/* long and long long have the same size, so that "q" is read as "l" */
enum byoc_dtype pyb_dtype_of_buffer(const Py_buffer *buffer)
{
    const char *f = buffer->format ? buffer->format : "B";
    if (*f && strchr("@=<", *f))
        f++;
    if (strcmp(f, "O") == 0)
        return BYOC_STRING;
    if (strcmp(f, "q") == 0 || strcmp(f, "Q") == 0)
        f = *f == 'q' ? "l" : "L";
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i] && strcmp(f, formats[i]) == 0 &&
            byoc_dtype_size((enum byoc_dtype)i) == buffer->itemsize)
            return (enum byoc_dtype)i;
    return BYOC_NONE;
}

/* --- the type ------------------------------------------------------------- */

/* Make a tuple of n integers. */
static PyObject *tuple_of_sizes(const Py_ssize_t *sizes, uint32_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (uint32_t i = 0; tuple && i < n; i++) {
        PyObject *item = PyLong_FromSsize_t(sizes[i]);
        if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item))
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *tensor_new(enum byoc_dtype dtype, uint32_t rank,
                            const int64_t *dims)
{
    struct tensor *t = PyObject_New(struct tensor, tensor_type);
    if (!t)
        return NULL;
    t->dtype = dtype;
    t->dtype_name = byoc_dtype_name(dtype);
    t->ndim = (int)rank;
    t->bytes = byoc_dtype_size(dtype);
    for (uint32_t d = rank; d-- > 0;) {
        t->shape[d] = dims[d];
        t->strides[d] = t->bytes;
        t->bytes *= dims[d];
    }
    t->sizes = tuple_of_sizes(t->shape, rank);
    t->data = aligned_alloc(64, ((size_t)t->bytes + 64) / 64 * 64);
    if (t->data && t->sizes)
        return (PyObject *)t;
    Py_DECREF((PyObject *)t);
    return PyErr_NoMemory();
}

static void tensor_free(PyObject *self)
{
    struct tensor *t = (struct tensor *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(t->sizes);
    free(t->data);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *represent(PyObject *self)
{
    struct tensor *t = (struct tensor *)self;
    return PyUnicode_FromFormat("<byoc.Tensor %R, %s>", t->sizes,
                                t->dtype_name);
}

/* --- the buffer protocol and DLPack --------------------------------------- */

static int get_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    struct tensor *t = (struct tensor *)self;
    const char *format = pyb_format_of_dtype(t->dtype);
    if (!format && flags & PyBUF_FORMAT) {
        PyErr_Format(PyExc_BufferError,
                     "found %s, for which the buffer protocol has no format; "
                     "use from_dlpack(), or numpy.frombuffer() with a dtype of "
                     "ml_dtypes",
                     byoc_dtype_name(t->dtype));
        return -1;
    }
    *buffer = (Py_buffer){
        .buf = t->data,
        .obj = Py_NewRef(self),
        .len = t->bytes,
        .itemsize = byoc_dtype_size(t->dtype),
        .ndim = t->ndim,
        .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
        .shape = flags & PyBUF_ND ? t->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? t->strides : NULL,
    };
    return 0;
}

/* The deleter of a DLPack tensor, which its consumer calls, from any thread and
 * without the GIL. */
static void release_managed(DLManagedTensor *managed)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)managed->manager_ctx);
    PyGILState_Release(gil);
    free(managed);
}

/* The destructor of the capsule that to_dlpack makes. */
static void drop_capsule(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return; /* a consumer has taken the tensor */
    DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("ii", kDLCPU, 0);
}

/* Refuse a request for a copy, or for a device other than the CPU. Ignores the
 * other arguments of the protocol: a consumer must accept an unversioned
 * capsule, and a CPU has no streams. */
static int check_lending(PyObject *named)
{
    PyObject *copy = named ? PyDict_GetItemString(named, "copy") : NULL;
    PyObject *device = named ? PyDict_GetItemString(named, "dl_device") : NULL;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError,
                        "copy: found True, expected None or False, since a "
                        "tensor lends its memory; copy the result");
        return -1;
    }
    if (!device || device == Py_None)
        return 0;
    PyObject *cpu = dlpack_device(NULL, NULL);
    const int is_cpu = cpu ? PyObject_RichCompareBool(device, cpu, Py_EQ) : -1;
    Py_XDECREF(cpu);
    if (is_cpu == 0)
        PyErr_SetString(PyExc_BufferError,
                        "dl_device: found another device, expected (1, 0), the "
                        "CPU; move the result");
    return is_cpu == 1 ? 0 : -1;
}

/* __dlpack__() */
static PyObject *to_dlpack(PyObject *self, PyObject *args, PyObject *named)
{
    struct tensor *t = (struct tensor *)self;
    (void)args;
    if (check_lending(named))
        return NULL;
    DLManagedTensor *managed = calloc(1, sizeof *managed);
    if (!managed)
        return PyErr_NoMemory();
    managed->dl_tensor = (DLTensor){.data = t->data,
                                    .device = {kDLCPU, 0},
                                    .ndim = t->ndim,
                                    .dtype = byoc_dtype_dlpack(t->dtype),
                                    .shape = (int64_t *)t->shape};
    managed->manager_ctx = self;
    managed->deleter = release_managed;
    PyObject *capsule = PyCapsule_New(managed, "dltensor", drop_capsule);
    if (capsule)
        Py_INCREF(self);
    else
        free(managed);
    return capsule;
}

/* __array__(). Without it, numpy.asarray() would make an array of one object.
 */
static PyObject *to_array(PyObject *self, PyObject *args, PyObject *named)
{
    PyObject *module = PyImport_ImportModule("byoc._arrays"), *array = NULL;
    PyObject *make = module ? PyObject_GetAttrString(module, "widen") : NULL;
    PyObject *first = make ? PyTuple_Pack(1, self) : NULL;
    PyObject *all_args = first ? PySequence_Concat(first, args) : NULL;
    if (all_args)
        array = PyObject_Call(make, all_args, named);
    Py_XDECREF(all_args);
    Py_XDECREF(first);
    Py_XDECREF(make);
    Py_XDECREF(module);
    return array;
}

bool pyb_tensor_lacks_format(PyObject *object)
{
    return Py_TYPE(object) == tensor_type &&
           !pyb_format_of_dtype(((struct tensor *)object)->dtype);
}

int pyb_tensor_register(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__dlpack__", (PyCFunction)(void (*)(void))to_dlpack,
         METH_VARARGS | METH_KEYWORDS, "A DLPack capsule of the memory."},
        {"__array__", (PyCFunction)(void (*)(void))to_array,
         METH_VARARGS | METH_KEYWORDS, "bfloat16 as a float32 array."},
        {"__dlpack_device__", dlpack_device, METH_NOARGS, "The CPU."},
        {0}};
    static PyMemberDef members[] = {
        {"shape", T_OBJECT, offsetof(struct tensor, sizes), READONLY, NULL},
        {"dtype", T_STRING, offsetof(struct tensor, dtype_name), READONLY,
         NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         "The memory of an output if NumPy is not installed or does not "
         "have its dtype. Pass it to torch.from_dlpack() or memoryview()."},
        {Py_tp_dealloc, tensor_free},
        {Py_tp_repr, represent},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_bf_getbuffer, get_buffer},
        {0}};
    static PyType_Spec spec = {.name = "byoc.Tensor",
                               .basicsize = sizeof(struct tensor),
                               .flags = Py_TPFLAGS_DEFAULT |
                                        Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                        Py_TPFLAGS_IMMUTABLETYPE,
                               .slots = slots};
    tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return tensor_type ? PyModule_AddType(module, tensor_type) : -1;
}

/* --- NumPy ---------------------------------------------------------------- */

static PyObject *numpy_empty; /* numpy.empty; None: NumPy is not installed */
/* indexed by dtype; None: NumPy does not have it */
static PyObject *numpy_dtypes;

/* Set numpy_empty and numpy_dtypes from byoc/_arrays.py, which imports NumPy.
 * Called for the first output. */
static int import_numpy(void)
{
    PyObject *module = PyImport_ImportModule("byoc._arrays");
    if (module) {
        numpy_dtypes = PyObject_GetAttrString(module, "dtypes");
        numpy_empty = PyObject_GetAttrString(module, "empty");
    }
    Py_XDECREF(module);
    return numpy_empty ? 0 : -1;
}

/* Create a NumPy array. Sets *data to its elements, which are valid while the
 * array lives. The caller may write them, since no other code has a reference
 * to the array yet. */
static PyObject *numpy_new(PyObject *dtype, uint32_t rank, const int64_t *dims,
                           void **data)
{
    Py_buffer buffer;
    PyObject *shape = tuple_of_sizes((const Py_ssize_t *)dims, rank);
    PyObject *array = NULL;
    if (shape)
        array = PyObject_CallFunctionObjArgs(numpy_empty, shape, dtype, NULL);
    Py_XDECREF(shape);
    if (array && PyObject_GetBuffer(array, &buffer, PyBUF_ND | PyBUF_WRITABLE))
        Py_CLEAR(array);
    if (!array)
        return NULL;
    *data = buffer.buf;
    PyBuffer_Release(&buffer);
    return array;
}

PyObject *pyb_array_new(enum byoc_dtype dtype, uint32_t rank,
                        const int64_t *dims, void **data)
{
    if (!numpy_empty && import_numpy())
        return NULL;
    PyObject *numpy_dtype = PyList_GetItem(numpy_dtypes, dtype);
    if (!numpy_dtype || numpy_dtype != Py_None)
        return numpy_dtype ? numpy_new(numpy_dtype, rank, dims, data) : NULL;
    if (dtype == BYOC_STRING) {
        PyErr_SetString(PyExc_ImportError,
                        "found an output of strings, which needs NumPy; "
                        "install NumPy");
        return NULL;
    }
    PyObject *array = tensor_new(dtype, rank, dims);
    if (array)
        *data = ((struct tensor *)array)->data;
    return array;
}
