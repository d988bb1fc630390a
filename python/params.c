/* SPDX-License-Identifier: Apache-2.0 */
/* params.c: converts options of Python to the params structs of byoc, by tables
 * with a row for each option. */
#include "module.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The C type of a member; LIST: strings that end in NULL. */
enum kind { TEXT, LIST, U32, U64, INT, DOUBLE };

/* An option. */
struct row {
    const char *name; /* of the option and of the struct's member */
    enum kind kind;
    size_t offset; /* of the member, in bytes */
};

/* clang-format off */
#define ROW(name, kind) {#name, kind, offsetof(struct PARAMS, name)}

#define PARAMS byoc_compile_params
static const struct row compile_rows[] = {
    ROW(backends, LIST), ROW(plugins, TEXT), ROW(dims, LIST), ROW(shapes, LIST),
    ROW(values, LIST), ROW(exclude, LIST), ROW(only, LIST), ROW(patterns, LIST),
    ROW(disable, LIST), ROW(require, LIST), ROW(opt_level, INT),
    ROW(forbid_reference, INT), ROW(min_region_nodes, U32),
    ROW(min_region_flops, DOUBLE), ROW(max_regions, U32),
    ROW(require_offload, DOUBLE), ROW(require_offload_nodes, DOUBLE),
    ROW(threads, U32), ROW(add_passes, LIST), ROW(pass_plugins, LIST),
    ROW(options, LIST), ROW(cc, TEXT), ROW(codegen, INT), ROW(exact, U32),
    ROW(dump_passes, TEXT), ROW(keep_c, TEXT), ROW(warm, LIST),
    ROW(verify, INT), ROW(function, TEXT), ROW(partition_by, INT),
    ROW(keep_nan, U32), ROW(cost_table, TEXT), ROW(measure_seconds, DOUBLE),
    ROW(isolate, INT), ROW(isolate_seconds, DOUBLE), ROW(isolate_bytes, U64),
    ROW(weights, INT), ROW(target, TEXT), ROW(precision, INT),
    {0},
};
#undef PARAMS

#define PARAMS byoc_load_params
static const struct row load_rows[] = {
    ROW(threads, U32), ROW(plugins, TEXT), ROW(native_only, INT),
    ROW(require_backends, INT), ROW(cache_shapes, U32), ROW(verify, INT),
    ROW(cache_bytes, U64), ROW(wait, INT), ROW(log_severity, INT),
    ROW(runners, U32), ROW(memory_bytes, U64),
    {0},
};
#undef PARAMS
/* clang-format on */

/* --- one option ----------------------------------------------------------- */

static int read_list(struct pyb_params *p, const char *name, PyObject *object,
                     const char ***to)
{
    const Py_ssize_t n = PyList_Check(object) ? PyList_Size(object) : -1;
    if (n < 0) {
        PyErr_Format(PyExc_TypeError, "%s: found %R, expected a list", name,
                     object);
        return -1;
    }
    const char **list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return PyErr_NoMemory(), -1;
    p->lists[p->n_lists++] = list;
    for (Py_ssize_t i = 0; i < n; i++) {
        list[i] = pyb_text(PyList_GetItem(object, i), name);
        if (!list[i])
            return -1;
    }
    *to = list;
    return 0;
}

static int read_count(const char *name, PyObject *object, uint64_t max,
                      uint64_t *to)
{
    *to = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred() && *to <= max)
        return 0;
    const bool is_other_error =
        PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError);
    PyErr_Format(is_other_error ? PyExc_TypeError : PyExc_OverflowError,
                 "%s: found %R, expected a whole number from 0 to %llu", name,
                 object, (unsigned long long)max);
    return -1;
}

static int read_option(struct pyb_params *p, const struct row *row,
                       PyObject *object, char *params)
{
    void *to = params + row->offset;
    uint64_t n = 0;
    switch (row->kind) {
    case TEXT:
        *(const char **)to = pyb_text(object, row->name);
        if (PyUnicode_Check(object))
            return PyErr_Occurred() ? -1 : 0;
        break;
    case LIST:
        return read_list(p, row->name, object, to);
    case DOUBLE:
        *(double *)to = PyFloat_AsDouble(object);
        break;
    case U64:
        return read_count(row->name, object, UINT64_MAX, to);
    case U32:
    case INT:
        if (read_count(row->name, object, INT32_MAX, &n))
            return -1;
        *(uint32_t *)to = (uint32_t)n;
    }
    if (!PyErr_Occurred())
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: found %R, expected %s", row->name,
                 object, row->kind == TEXT ? "a string" : "a number");
    return -1;
}

/* Read an option if it is in the table `rows`. Returns 1 if it is, 0 if not, or
 * -1 with an exception if the value is wrong. */
static int find_option(struct pyb_params *p, const struct row *rows,
                       const char *name, PyObject *object, void *params)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return read_option(p, rows, object, params) ? -1 : 1;
    return 0;
}

/* --- callbacks ------------------------------------------------------------ */

/* Call a Python callable, from any thread of byoc, and print an exception that
 * it raises. */
static void call_back(PyObject *callable, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *tuple = Py_VaBuildValue(format, args);
    PyObject *result = tuple ? PyObject_CallObject(callable, tuple) : NULL;
    if (!result)
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(result);
    Py_XDECREF(tuple);
    PyGILState_Release(gil);
    va_end(args);
}

static void progress(void *ctx, const char *what, uint32_t done, uint32_t total)
{
    call_back(ctx, "(sII)", what, done, total);
}

static void log_line(void *ctx, enum byoc_severity severity, const char *line)
{
    call_back(ctx, "(is)", (int)severity, line);
}

/* --- all options ---------------------------------------------------------- */

/* Read one option. If `compiles`, `verify` sets only the member of p->compile.
 */
static int read_named_option(struct pyb_params *p, const char *name,
                             PyObject *object, bool compiles)
{
    int compile_result = 0, load_result = 0;
    if (compiles && strcmp(name, "progress") == 0)
        return p->progress = object, 0;
    if (strcmp(name, "log") == 0)
        return p->log = object, 0;
    if (compiles)
        compile_result =
            find_option(p, compile_rows, name, object, &p->compile);
    if (compile_result == 0 ||
        (compile_result > 0 && strcmp(name, "verify") != 0))
        load_result = find_option(p, load_rows, name, object, &p->load);
    if (compile_result < 0 || load_result < 0)
        return -1;
    if (compile_result || load_result)
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "found option '%s', expected one of those of byoc.%s()", name,
                 compiles ? "compile" : "load");
    return -1;
}

int pyb_params_read(struct pyb_params *p, PyObject *options, bool compiles)
{
    PyObject *key, *object;
    Py_ssize_t at = 0;
    *p = (struct pyb_params){.compile.struct_size = sizeof p->compile,
                             .load.struct_size = sizeof p->load};
    while (PyDict_Next(options, &at, &key, &object)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!name || read_named_option(p, name, object, compiles)) {
            pyb_params_free(p);
            return -1;
        }
    }
    if (p->progress) {
        p->compile.progress = progress;
        p->compile.progress_ctx = p->progress;
    }
    if (p->log) {
        p->load.log = log_line;
        p->load.log_ctx = p->log;
    }
    return 0;
}

void pyb_params_free(struct pyb_params *p)
{
    while (p->n_lists)
        free(p->lists[--p->n_lists]);
}
