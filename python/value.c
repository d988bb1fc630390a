/* SPDX-License-Identifier: Apache-2.0 */
/* value.c: converts between Python's objects and the values of a run. A tensor
 * is an object with the buffer protocol or DLPack, whose memory is used in
 * place. A sequence is a list, and an optional its value or None.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

void pyb_holds_free(struct pyb_hold **holds)
{
    while (*holds) {
        struct pyb_hold *next = (*holds)->next;
        if ((*holds)->buffer.obj)
            PyBuffer_Release(&(*holds)->buffer);
        Py_XDECREF((*holds)->object);
        free((*holds)->memory);
        free(*holds);
        *holds = next;
    }
}

struct pyb_hold *pyb_hold_add(struct pyb_hold **holds)
{
    struct pyb_hold *hold = calloc(1, sizeof *hold);
    if (!hold)
        return (void *)PyErr_NoMemory();
    hold->next = *holds;
    *holds = hold;
    return hold;
}

/* --- strings -------------------------------------------------------------- */

/* The UTF-8 of `item`, element i of an input; belongs to `item`. Returns NULL
 * with an exception if that fails. */
static const char *read_string(PyObject *item, const char *name, Py_ssize_t i)
{
    Py_ssize_t bytes = 0;
    char *at = NULL;
    if (item && PyUnicode_Check(item))
        at = (char *)PyUnicode_AsUTF8AndSize(item, &bytes);
    else if (item && PyBytes_Check(item))
        PyBytes_AsStringAndSize(item, &at, &bytes);
    else {
        PyObject *type = item ? PyType_GetName(Py_TYPE(item)) : NULL;
        pyb_raisef(BYOC_ETYPE,
                   "input \"%s\": element %zd: found %s, expected str or bytes",
                   name, i,
                   type ? PyUnicode_AsUTF8AndSize(type, NULL) : "no object");
        Py_XDECREF(type);
    }
    if (!at || strlen(at) == (size_t)bytes)
        return at;
    return pyb_raisef(BYOC_EINVAL,
                      "input \"%s\": found a NUL in string %zd, expected none",
                      name, i);
}

/* Convert a list, or an array of NumPy's string types, to a dense array of
 * objects. */
static PyObject *array_of_objects(PyObject *object)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *array = NULL;
    PyObject *make = numpy ? PyObject_GetAttrString(numpy, "array") : NULL;
    PyObject *args = make ? Py_BuildValue("(Os)", object, "O") : NULL;
    PyObject *named = args ? Py_BuildValue("{ss}", "order", "C") : NULL;
    if (named)
        array = PyObject_Call(make, args, named);
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(make);
    Py_XDECREF(numpy);
    return array;
}

/* Read an array of strings. The run refers to strings of a copy, an array of
 * objects, which `hold` keeps. */
static int read_strings(struct pyb_hold *hold, const char *name,
                        PyObject *object, DLTensor *to)
{
    Py_buffer *b = &hold->buffer;
    hold->object = array_of_objects(object);
    if (!hold->object ||
        PyObject_GetBuffer(hold->object, b, PyBUF_ND | PyBUF_FORMAT))
        return -1;
    const Py_ssize_t n = b->len / b->itemsize;
    const char **list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return PyErr_NoMemory(), -1;
    hold->memory = list;
    for (Py_ssize_t i = 0; i < n; i++) {
        list[i] = read_string(((PyObject **)b->buf)[i], name, i);
        if (!list[i])
            return -1;
    }
    *to = (DLTensor){.data = list,
                     .device = {kDLCPU, 0},
                     .ndim = b->ndim,
                     .dtype = byoc_dtype_dlpack(BYOC_STRING),
                     .shape = (int64_t *)b->shape};
    return 0;
}

/* --- arrays --------------------------------------------------------------- */

/* The strides, in elements, of an array that is not dense, such as a slice of a
 * cache, or that has no elements. Returns NULL without an exception if the
 * array is dense, or has strides that are negative or not a multiple of the
 * element's size. */
static int64_t *read_strides(struct pyb_hold *hold)
{
    const Py_buffer *b = &hold->buffer;
    if (b->ndim < 1 || (PyBuffer_IsContiguous(b, 'C') && b->len > 0))
        return NULL;
    for (int d = 0; d < b->ndim; d++)
        if (b->strides[d] < 0 || b->strides[d] % b->itemsize)
            return NULL;
    int64_t *strides = calloc((unsigned)b->ndim, sizeof *strides);
    hold->memory = strides;
    if (!strides)
        return (void *)PyErr_NoMemory();
    for (int d = 0; d < b->ndim; d++)
        strides[d] = b->strides[d] / b->itemsize;
    return strides;
}

/* Whether the object has a readable buffer. If a request for a writable one has
 * failed, the memory is read-only then. Clears the exception. */
static bool is_readable(PyObject *object)
{
    Py_buffer b;
    PyErr_Clear();
    if (PyObject_GetBuffer(object, &b, PyBUF_STRIDES | PyBUF_FORMAT)) {
        PyErr_Clear();
        return false;
    }
    PyBuffer_Release(&b);
    return true;
}

/* dtypes of the package ml_dtypes. The buffer protocol has no formats for them,
 * so that their arrays are read as unsigned integers. */
static const struct {
    const char *name;
    enum byoc_dtype dtype;
} ml_dtypes[] = {
    {"bfloat16", BYOC_BF16},
    {"float8_e4m3fn", BYOC_F8E4M3FN},
    {"float8_e5m2", BYOC_F8E5M2},
    {"float8_e4m3fnuz", BYOC_F8E4M3FNUZ},
    {"float8_e5m2fnuz", BYOC_F8E5M2FNUZ},
    {"float8_e8m0fnu", BYOC_F8E8M0},
    {"float4_e2m1fn", BYOC_F4E2M1},
    {"int4", BYOC_I4},
    {"uint4", BYOC_U4},
    {"int2", BYOC_I2},
    {"uint2", BYOC_U2},
};

/* str(object.dtype), or the name of the object's type. */
static PyObject *name_of_elements(PyObject *object)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype ? PyObject_Str(dtype) : NULL;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return name ? name : PyType_GetName(Py_TYPE(object));
}

/* Get the buffer of an array of one of ml_dtypes, whose dtype is `name`.
 * Returns BYOC_NONE if ml_dtypes[] does not have `name`, and also, with an
 * exception, if the object's buffer cannot be got. */
static enum byoc_dtype get_ml_buffer(struct pyb_hold *hold, PyObject *object,
                                     const char *name, int flags)
{
    for (size_t i = 0; i < sizeof ml_dtypes / sizeof ml_dtypes[0]; i++) {
        if (strcmp(name, ml_dtypes[i].name) != 0)
            continue;
        const bool wide = byoc_dtype_size(ml_dtypes[i].dtype) == 2;
        hold->object =
            PyObject_CallMethod(object, "view", "s", wide ? "u2" : "u1");
        return hold->object &&
                       !PyObject_GetBuffer(hold->object, &hold->buffer, flags)
                   ? ml_dtypes[i].dtype
                   : BYOC_NONE;
    }
    return BYOC_NONE;
}

/* Get the buffer of an array, and return its dtype. Returns BYOC_NONE, perhaps
 * with an exception, if byoc has no such dtype or the memory is not usable. */
static enum byoc_dtype get_buffer(struct pyb_hold *hold,
                                  const struct byoc_io *io, const char *what,
                                  const char *name, PyObject *object)
{
    const bool writes = what[0] == 'o';
    const int flags =
        PyBUF_STRIDES | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &hold->buffer, flags) == 0)
        return pyb_dtype_of_buffer(&hold->buffer);
    PyErr_Clear();
    PyObject *found = name_of_elements(object);
    const char *text = found ? PyUnicode_AsUTF8AndSize(found, NULL) : NULL;
    const enum byoc_dtype dtype =
        text ? get_ml_buffer(hold, object, text, flags) : BYOC_NONE;
    if (text && dtype == BYOC_NONE) {
        if (writes && is_readable(hold->object ? hold->object : object))
            pyb_raisef(BYOC_EINVAL,
                       "%s \"%s\": found a read-only array, expected one that "
                       "can be written",
                       what, name);
        else
            pyb_raisef(BYOC_ETYPE, "%s \"%s\": found %s, expected %s", what,
                       name, text, byoc_dtype_name(io->dtype));
    }
    Py_XDECREF(found);
    return dtype;
}

static int read_buffer(struct pyb_hold *hold, const struct byoc_io *io,
                       const char *what, const char *name, PyObject *object,
                       DLTensor *to)
{
    const Py_buffer *b = &hold->buffer;
    const enum byoc_dtype dtype = get_buffer(hold, io, what, name, object);
    if (PyErr_Occurred())
        return -1;
    if (dtype == BYOC_NONE || dtype == BYOC_STRING)
        pyb_raisef(BYOC_ETYPE,
                   "%s \"%s\": found elements of format \"%s\", expected %s",
                   what, name, b->format ? b->format : "B",
                   byoc_dtype_name(io->dtype));
    else if ((dtype == BYOC_BOOL) != (io->dtype == BYOC_BOOL))
        pyb_raisef(BYOC_ETYPE, "%s \"%s\": found %s, expected %s", what, name,
                   byoc_dtype_name(dtype), byoc_dtype_name(io->dtype));
    if (PyErr_Occurred())
        return -1;
    int64_t *strides = read_strides(hold);
    if (!strides && !PyErr_Occurred() && !PyBuffer_IsContiguous(b, 'C'))
        pyb_raisef(BYOC_EINVAL,
                   "%s \"%s\": found a stride that is negative or not a "
                   "multiple of the element's size, expected non-negative "
                   "multiples; copy the array with numpy.ascontiguousarray()",
                   what, name);
    if (PyErr_Occurred())
        return -1;
    *to = (DLTensor){.data = b->buf,
                     .device = {kDLCPU, 0},
                     .ndim = b->ndim,
                     .dtype = byoc_dtype_dlpack(dtype),
                     .shape = (int64_t *)b->shape,
                     .strides = strides};
    return 0;
}

/* Read the tensor of a DLPack capsule. The capsule is not renamed to
 * "used_dltensor", so that its destructor frees the tensor. */
static int read_dlpack(struct pyb_hold *hold, const char *what,
                       const char *name, PyObject *object, DLTensor *to)
{
    enum { DLPACK_BOOL = 6 }; /* type code since DLPack 0.8 */
    hold->object = PyObject_CallMethod(object, "__dlpack__", NULL);
    if (!hold->object)
        return -1;
    if (!PyCapsule_IsValid(hold->object, "dltensor")) {
        pyb_raisef(BYOC_ETYPE,
                   "%s \"%s\": __dlpack__() returned a used capsule or another "
                   "object, expected a new capsule named \"dltensor\"",
                   what, name);
        return -1;
    }
    const DLManagedTensor *managed =
        PyCapsule_GetPointer(hold->object, "dltensor");
    *to = managed->dl_tensor;
    if (to->dtype.code == DLPACK_BOOL && to->dtype.bits == 8)
        to->dtype.code = kDLUInt;
    return 0;
}

/* Raise the exception for an object of a wrong type. */
static void raise_wrong_type(PyObject *object, const char *what,
                             const char *name, const char *expected)
{
    PyObject *type = PyType_GetName(Py_TYPE(object));
    if (type)
        pyb_raisef(BYOC_ETYPE, "%s \"%s\": found %s, expected %s", what, name,
                   PyUnicode_AsUTF8AndSize(type, NULL), expected);
    Py_XDECREF(type);
}

static int read_tensor(struct pyb_hold **holds, const struct byoc_io *io,
                       const char *what, const char *name, PyObject *object,
                       DLTensor *to)
{
    struct pyb_hold *hold = pyb_hold_add(holds);
    if (!hold)
        return -1;
    if (io->dtype == BYOC_STRING && what[0] != 'o')
        return read_strings(hold, name, object, to);
    if (PyObject_CheckBuffer(object) && !pyb_tensor_lacks_format(object))
        return read_buffer(hold, io, what, name, object, to);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return read_dlpack(hold, what, name, object, to);
    raise_wrong_type(
        object, what, name,
        "an array with the buffer protocol or __dlpack__(), such as "
        "NumPy's");
    return -1;
}

static int read_elements(struct pyb_hold **holds, const struct byoc_io *io,
                         const char *what, const char *name, PyObject *list,
                         struct byoc_value *value)
{
    const Py_ssize_t n = PySequence_Check(list) ? PySequence_Size(list) : -1;
    if (n < 0 && !PyErr_Occurred())
        raise_wrong_type(list, what, name, "a list of values");
    struct pyb_hold *hold = n < 0 ? NULL : pyb_hold_add(holds);
    if (!hold)
        return -1;
    struct byoc_value *elements = calloc((size_t)n + 1, sizeof *elements);
    if (!elements)
        return PyErr_NoMemory(), -1;
    hold->memory = elements;
    value->n = (uint32_t)n;
    value->elements = elements;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        if (!item)
            return -1;
        const int failed =
            pyb_value_read(holds, io->element, what, name, item, &elements[i]);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

int pyb_value_read(struct pyb_hold **holds, const struct byoc_io *io,
                   const char *what, const char *name, PyObject *object,
                   struct byoc_value *value)
{
    *value = (struct byoc_value){.kind = io->kind};
    if (io->kind == BYOC_TENSOR)
        return read_tensor(holds, io, what, name, object, &value->tensor);
    if (io->kind == BYOC_SEQUENCE)
        return read_elements(holds, io, what, name, object, value);
    if (object == Py_None)
        return 0;
    PyObject *tuple = PyTuple_Pack(1, object);
    const int failed =
        !tuple || read_elements(holds, io, what, name, tuple, value);
    Py_XDECREF(tuple);
    return failed ? -1 : 0;
}

/* --- results -------------------------------------------------------------- */

static int write_strings(const char *const *from, PyObject **to, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *text = PyUnicode_DecodeUTF8(
            from[i], (Py_ssize_t)strlen(from[i]), "surrogateescape");
        if (!text)
            return -1;
        PyObject *old_item = to[i];
        to[i] = text;
        Py_XDECREF(old_item);
    }
    return 0;
}

static PyObject *write_tensor(enum byoc_dtype dtype, const DLTensor *from)
{
    void *to;
    Py_ssize_t n = 1;
    PyObject *array =
        pyb_array_new(dtype, (uint32_t)from->ndim, from->shape, &to);
    for (int d = 0; d < from->ndim; d++)
        n *= from->shape[d];
    if (array && dtype != BYOC_STRING && n)
        memcpy(to, from->data, (size_t)n * byoc_dtype_size(dtype));
    else if (array && write_strings(from->data, to, n))
        Py_CLEAR(array);
    return array;
}

static PyObject *write_elements(const struct byoc_io *io,
                                const struct byoc_value *value)
{
    PyObject *list = PyList_New((Py_ssize_t)value->n);
    for (uint32_t i = 0; list && i < value->n; i++) {
        PyObject *item = pyb_value_write(io, &value->elements[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *pyb_value_write(const struct byoc_io *io,
                          const struct byoc_value *value)
{
    if (io->kind == BYOC_TENSOR)
        return write_tensor(io->dtype, &value->tensor);
    if (io->kind == BYOC_SEQUENCE)
        return write_elements(io->element, value);
    return value->n ? pyb_value_write(io->element, value->elements)
                    : Py_NewRef(Py_None);
}
