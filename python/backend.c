/* SPDX-License-Identifier: Apache-2.0 */
/* backend.c: makes the struct byoc_backend of a backend in Python.
 * byoc/_backend.py keeps the definitions by name. A region's definition is
 * found by the names of its rows, since the functions of struct byoc_backend do
 * not receive the backend.
 *
 *     load()   the region's graph as Python's tuples -> _backend.load()
 *              -> a callable for each kernel
 *     run()    operands as arrays -> callable -> arrays -> the graph's memory
 *
 * Elements are copied on both sides, so that arrays outlive the run.
 */
#include "module.h"

#include <byoc/graph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A loaded region: the result of load(). */
struct py_region {
    struct byoc_graph *graph;
    PyObject *calls; /* a list of callables: calls[i](operands) runs kernel i
                      * and returns a list of arrays */
};

/* --- exceptions ----------------------------------------------------------- */

/* Convert the current exception to a failure, with the text and code that
 * _backend.describe() returns. */
static struct byoc_fail *fail_of_exception(const struct byoc_host *host)
{
    PyObject *type, *value, *trace;
    struct byoc_fail *fail;
    const char *text = NULL;
    unsigned int code = BYOC_FAIL_INTERNAL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    PyObject *description =
        value ? pyb_call("byoc._backend", "describe", "(O)", value) : NULL;
    if (!description || !PyArg_ParseTuple(description, "Is", &code, &text)) {
        PyErr_Clear();
        code = BYOC_FAIL_INTERNAL;
        text = "a Python exception without a description";
    }
    fail = host->fail(host->ctx, code, text);
    Py_XDECREF(description);
    Py_XDECREF(trace);
    Py_XDECREF(value);
    Py_XDECREF(type);
    return fail;
}

/* --- the graph as tuples -------------------------------------------------- */

/* Append an item, and drop the caller's reference to it. Fails if `item` is
 * NULL. */
static int append(PyObject *list, PyObject *item)
{
    const int failed = !item || PyList_Append(list, item);
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* Make the tuple (dtype, shape, is constant). */
static PyObject *value_tuple(const struct byoc_graph_value *v)
{
    PyObject *shape = PyTuple_New((Py_ssize_t)v->rank);
    for (uint32_t d = 0; shape && d < v->rank; d++) {
        PyObject *size = PyLong_FromLongLong(v->dims[d]);
        if (!size || PyTuple_SetItem(shape, (Py_ssize_t)d, size))
            Py_CLEAR(shape);
    }
    if (!shape)
        return NULL;
    return Py_BuildValue("(sNN)", byoc_dtype_name((enum byoc_dtype)v->dtype),
                         shape, PyBool_FromLong(v->kind == BYOC_GRAPH_CONST));
}

/* Make a tuple of numbers or strings. */
static PyObject *attr_tuple(const struct byoc_graph_attr *a)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)a->n);
    for (uint32_t i = 0; tuple && i < a->n; i++) {
        PyObject *item = a->ints     ? PyLong_FromLongLong(a->ints[i])
                         : a->floats ? PyFloat_FromDouble(a->floats[i])
                                     : PyUnicode_FromString(a->strings[i]);
        if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Make the tuple (operator, {attribute: tuple}). */
static PyObject *step_tuple(const struct byoc_graph_step *s)
{
    PyObject *attrs = PyDict_New();
    for (uint32_t i = 0; attrs && i < s->n_attrs; i++) {
        PyObject *item = attr_tuple(&s->attrs[i]);
        if (!item || PyDict_SetItemString(attrs, s->attrs[i].name, item))
            Py_CLEAR(attrs);
        Py_XDECREF(item);
    }
    return attrs ? Py_BuildValue("(sN)", s->name, attrs) : NULL;
}

/* Make the tuple (row, steps, {operand: value}, outputs, exact). */
static PyObject *kernel_tuple(const struct byoc_graph *g,
                              const struct byoc_graph_kernel *k)
{
    PyObject *steps = PyList_New(0), *operands = PyDict_New();
    PyObject *outs = PyList_New(0);
    int failed = !steps || !operands || !outs;
    for (uint32_t i = 0; !failed && i < k->n_steps; i++)
        failed = append(steps, step_tuple(&g->steps[k->first + i]));
    for (uint32_t i = 0; !failed && i < k->n_operands; i++) {
        PyObject *value = value_tuple(&g->values[k->operands[i].value]);
        failed = !value ||
                 PyDict_SetItemString(operands, k->operands[i].name, value);
        Py_XDECREF(value);
    }
    for (uint32_t i = 0; !failed && i < k->n_outs; i++)
        failed = append(outs, value_tuple(&g->values[k->outs[i]]));
    if (!failed)
        return Py_BuildValue("(sNNNN)", k->pattern, steps, operands, outs,
                             PyBool_FromLong(k->exact != 0));
    Py_XDECREF(steps);
    Py_XDECREF(operands);
    Py_XDECREF(outs);
    return NULL;
}

/* --- load ----------------------------------------------------------------- */

/* Make the list of the graph's kernels. */
static PyObject *kernel_list(const struct byoc_graph *g)
{
    PyObject *kernels = PyList_New(0);
    int failed = !kernels;
    for (uint32_t i = 0; !failed && i < g->n_kernels; i++)
        failed = append(kernels, kernel_tuple(g, &g->kernels[i]));
    if (failed)
        Py_CLEAR(kernels);
    return kernels;
}

/* Set *calls to the list of callables for the graph's kernels. */
static struct byoc_fail *make_calls(const struct byoc_host *host,
                                    const struct byoc_graph *g,
                                    PyObject **calls)
{
    PyObject *kernels = kernel_list(g);
    if (!kernels && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found a name in the region that is not UTF-8, "
                          "expected UTF-8; rename it in the model");
    }
    if (kernels)
        *calls = pyb_call("byoc._backend", "load", "(O)", kernels);
    Py_XDECREF(kernels);
    return *calls ? NULL : fail_of_exception(host);
}

/* Refuse element types without a format in the buffer protocol, such as strings
 * and bfloat16. */
static struct byoc_fail *check_dtypes(const struct byoc_host *host,
                                      const struct byoc_graph *g)
{
    char text[120];
    for (uint32_t i = 0; i < g->n_values; i++) {
        const enum byoc_dtype dtype = (enum byoc_dtype)g->values[i].dtype;
        if (pyb_format_of_dtype(dtype))
            continue;
        snprintf(text, sizeof text,
                 "found %s, expected an element type that has a format in "
                 "the buffer protocol, such as float32",
                 byoc_dtype_name(dtype));
        return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, text);
    }
    return NULL;
}

static void region_free(const struct byoc_host *host, struct py_region *region)
{
    if (!region)
        return;
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_XDECREF(region->calls);
        PyGILState_Release(gil);
    }
    byoc_graph_free(host, region->graph);
    free(region);
}

/* Read a region and make the callables of its kernels. Sets *out, which
 * region_free frees, to NULL on failure. */
static struct byoc_fail *region_new(const struct byoc_host *host,
                                    const struct byoc_region *source,
                                    struct py_region **out)
{
    struct py_region *region = calloc(1, sizeof *region);
    struct byoc_fail *fail;
    *out = NULL;
    if (!region)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    fail = byoc_graph_read(host, source, &region->graph);
    if (!fail)
        fail = check_dtypes(host, region->graph);
    if (!fail) {
        PyGILState_STATE gil = PyGILState_Ensure();
        fail = make_calls(host, region->graph, &region->calls);
        PyGILState_Release(gil);
    }
    if (fail)
        region_free(host, region);
    else
        *out = region;
    return fail;
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *source,
                               struct byoc_probe *result)
{
    struct py_region *region;
    struct byoc_fail *fail = region_new(host, source, &region);
    snprintf(result->impl, sizeof result->impl, "python");
    region_free(host, region);
    return fail;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *source, void **compiled)
{
    struct py_region *region;
    struct byoc_fail *fail = region_new(host, source, &region);
    *compiled = region;
    return fail;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    region_free(host, compiled);
}

static uint64_t scratch_bytes(const struct byoc_host *host,
                              const void *compiled)
{
    (void)host;
    return ((const struct py_region *)compiled)->graph->bytes;
}

/* --- run ------------------------------------------------------------------ */

/* Make the dict {name: array} of copies of the operands. */
static PyObject *read_operands(const struct byoc_graph *g,
                               const struct byoc_graph_kernel *k,
                               const struct byoc_run_args *args)
{
    PyObject *operands = PyDict_New();
    for (uint32_t i = 0; operands && i < k->n_operands; i++) {
        const struct byoc_graph_value *v = &g->values[k->operands[i].value];
        void *data;
        PyObject *array =
            pyb_array_new((enum byoc_dtype)v->dtype, v->rank, v->dims, &data);
        if (array && v->bytes)
            memcpy(
                data,
                byoc_graph_data(g, k->operands[i].value, args->scratch, args),
                v->bytes);
        if (!array ||
            PyDict_SetItemString(operands, k->operands[i].name, array))
            Py_CLEAR(operands);
        Py_XDECREF(array);
    }
    return operands;
}

static bool same_shape(const Py_buffer *b, const struct byoc_graph_value *v)
{
    bool same = b->ndim == (int)v->rank;
    for (uint32_t d = 0; same && d < v->rank; d++)
        same = b->shape[d] == v->dims[d];
    return same;
}

/* Raise TypeError: result i of row `row` has another type or shape than value
 * `v` of the graph. */
static int raise_mismatch(const Py_buffer *b, const char *row, uint32_t i,
                          const struct byoc_graph_value *v)
{
    const enum byoc_dtype dtype = pyb_dtype_of_buffer(b);
    PyObject *expected = value_tuple(v), *shape = PyTuple_New(b->ndim);
    for (int d = 0; shape && d < b->ndim; d++)
        PyTuple_SetItem(shape, d, PyLong_FromSsize_t(b->shape[d]));
    if (expected && shape)
        PyErr_Format(PyExc_TypeError,
                     "run() of %s: result %u is %s of shape %R, expected %s of "
                     "shape %R",
                     row, (unsigned)i,
                     dtype == BYOC_NONE ? b->format : byoc_dtype_name(dtype),
                     shape, byoc_dtype_name((enum byoc_dtype)v->dtype),
                     PyTuple_GetItem(expected, 1));
    Py_XDECREF(expected);
    Py_XDECREF(shape);
    return -1;
}

/* Copy result i of row `row`, an array of any strides, to `to`, the address of
 * value `v`. */
static int write_result(const struct byoc_graph_value *v, const char *row,
                        uint32_t i, PyObject *array, void *to)
{
    Py_buffer b;
    int failed = 0;
    if (!array || PyObject_GetBuffer(array, &b, PyBUF_STRIDES | PyBUF_FORMAT))
        return -1;
    if (pyb_dtype_of_buffer(&b) != (enum byoc_dtype)v->dtype ||
        !same_shape(&b, v))
        failed = raise_mismatch(&b, row, i, v);
    else if (v->bytes)
        failed = PyBuffer_ToContiguous(to, &b, b.len, 'C');
    PyBuffer_Release(&b);
    return failed;
}

/* Run a kernel of the region: copies its operands to arrays, calls Python, and
 * copies the results to the graph's memory. */
static int run_kernel(const struct py_region *region, uint32_t kernel,
                      const struct byoc_run_args *args)
{
    const struct byoc_graph *g = region->graph;
    const struct byoc_graph_kernel *k = &g->kernels[kernel];
    PyObject *operands = read_operands(g, k, args), *results = NULL;
    int failed = !operands;
    if (!failed)
        results = PyObject_CallFunctionObjArgs(
            PyList_GetItem(region->calls, (Py_ssize_t)kernel), operands, NULL);
    failed = failed || !results;
    for (uint32_t i = 0; !failed && i < k->n_outs; i++)
        failed =
            write_result(&g->values[k->outs[i]], k->pattern, i,
                         PyList_GetItem(results, (Py_ssize_t)i),
                         byoc_graph_data(g, k->outs[i], args->scratch, args));
    Py_XDECREF(results);
    Py_XDECREF(operands);
    return failed ? -1 : 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    const struct py_region *region = compiled;
    (void)state;
    const struct byoc_graph *g = region->graph;
    struct byoc_fail *fail = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    for (uint32_t i = 0; !fail && i < g->n_kernels; i++) {
        const uint64_t begin = args->trace ? now_ns() : 0;
        if (args->cancel && *args->cancel)
            fail = host->fail(host->ctx, BYOC_FAIL_CANCELLED,
                              "the run was cancelled");
        else if (run_kernel(region, i, args))
            fail = fail_of_exception(host);
        else if (args->trace)
            args->trace(args->trace_ctx, g->kernels[i].pattern, "python",
                        g->kernels[i].source, begin, now_ns());
    }
    PyGILState_Release(gil);
    for (uint32_t i = 0; !fail && i < g->n_outputs; i++)
        if (args->outputs[i].bytes)
            memcpy(args->outputs[i].data,
                   byoc_graph_data(g, g->outputs[i], args->scratch, args),
                   args->outputs[i].bytes);
    return fail;
}

/* --- making a backend ----------------------------------------------------- */

/* A copy of a string that lives until the process ends, as backends do. Returns
 * NULL with an exception set if that fails. */
static const char *copy_string(PyObject *text)
{
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    char *copy = utf8 ? strdup(utf8) : NULL;
    if (utf8 && !copy)
        PyErr_NoMemory();
    return copy;
}

/* backend_new(name, version, [(row, pattern), ...]): returns a capsule of a
 * struct byoc_backend, which lives until the process ends. */
static PyObject *backend_new(PyObject *module, PyObject *args)
{
    PyObject *name, *version, *rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &name, &version, &rows))
        return NULL;
    const Py_ssize_t n = PyList_Size(rows);
    struct byoc_backend *b = calloc(1, sizeof *b);
    struct byoc_pattern *table = calloc((size_t)(n > 0 ? n : 1), sizeof *table);
    bool failed = n < 0 || !b || !table;
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        PyObject *row = PyList_GetItem(rows, i);
        table[i].name = copy_string(PyTuple_GetItem(row, 0));
        table[i].pattern = copy_string(PyTuple_GetItem(row, 1));
        failed = !table[i].name || !table[i].pattern;
    }
    if (!failed) {
        *b = (struct byoc_backend){.struct_size = sizeof *b,
                                   .name = copy_string(name),
                                   .version = copy_string(version),
                                   .patterns = table,
                                   .n_patterns = (uint32_t)n,
                                   .probe = probe,
                                   .load = load,
                                   .unload = unload,
                                   .scratch_bytes = scratch_bytes,
                                   .run = run};
        b->compat = b->version;
        failed = !b->name || !b->version;
    }
    if (!failed)
        return PyCapsule_New(b, "byoc_backend", NULL);
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    free(table); /* the strings are not freed: failures are rare */
    free(b);
    return NULL;
}

int pyb_backend_register(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"backend_new", backend_new, METH_VARARGS, NULL}, {0}};
    return PyModule_AddFunctions(module, functions);
}
