/* SPDX-License-Identifier: Apache-2.0 */
/* module.c: the extension module byoc._byoc: its functions and exceptions. */
#include "module.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- the package ---------------------------------------------------------- */

/* The function's name is interned. Python's cache of attributes keeps each
 * string that it looks up, which would look like a leak in the first thousands
 * of calls. */
PyObject *pyb_call(const char *module, const char *function, const char *format,
                   ...)
{
    PyObject *package = PyImport_ImportModule(module), *result = NULL;
    PyObject *name = package ? PyUnicode_InternFromString(function) : NULL;
    PyObject *callable = name ? PyObject_GetAttr(package, name) : NULL;
    va_list args;
    va_start(args, format);
    PyObject *tuple = callable ? Py_VaBuildValue(format, args) : NULL;
    va_end(args);
    if (tuple)
        result = PyObject_CallObject(callable, tuple);
    Py_XDECREF(tuple);
    Py_XDECREF(callable);
    Py_XDECREF(name);
    Py_XDECREF(package);
    return result;
}

/* --- exceptions ----------------------------------------------------------- */

/* byoc/_errors.py defines the exception classes. */
void *pyb_raise(enum byoc_status status, const char *text)
{
    PyObject *message =
        PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *error = NULL;
    if (message)
        error =
            pyb_call("byoc._errors", "error_of", "(iO)", (int)status, message);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(message);
    return NULL;
}

void *pyb_raisef(enum byoc_status status, const char *format, ...)
{
    struct byoc_error err;
    va_list args;
    va_start(args, format);
    vsnprintf(err.text, sizeof err.text, format, args);
    va_end(args);
    return pyb_raise(status, err.text);
}

const char *pyb_text(PyObject *object, const char *what)
{
    Py_ssize_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(object, &bytes);
    if (!text || strlen(text) == (size_t)bytes)
        return text;
    return pyb_raisef(
        BYOC_EINVAL, "%s: found a NUL after \"%s\", expected none", what, text);
}

/* --- functions ------------------------------------------------------------ */

/* Append a plug-in to the list at ctx. On failure frees the list and sets the
 * pointer at ctx to NULL. */
static void add_backend(void *ctx, const char *path, const char *name,
                        const char *version, const char *verdict)
{
    PyObject **list = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *row =
        *list ? Py_BuildValue("(zzzz)", name, version, path, verdict) : NULL;
    if (*list && (!row || PyList_Append(*list, row)))
        Py_CLEAR(*list);
    Py_XDECREF(row);
    PyGILState_Release(gil);
}

/* backends(plugins): returns a list of (name, version, path, verdict), with a
 * tuple for each plug-in that is found. */
static PyObject *list_backends(PyObject *module, PyObject *args)
{
    const char *plugins;
    PyObject *list;
    (void)module;
    if (!PyArg_ParseTuple(args, "z", &plugins))
        return NULL;
    list = PyList_New(0);
    Py_BEGIN_ALLOW_THREADS byoc_backends_list(plugins, add_backend, &list);
    Py_END_ALLOW_THREADS return list;
}

/* report(ledger, what, other, number): `what` is "text" (number > 0: of every
 * node), "explain" (other: the node's name) or "diff" (other: the newer ledger;
 * number: the tolerance). */
static PyObject *report(PyObject *module, PyObject *args)
{
    struct byoc_error err;
    const char *ledger, *what, *other;
    double number;
    char *text;
    int worse;
    enum byoc_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "sssd", &ledger, &what, &other, &number))
        return NULL;
    if (strcmp(what, "text") == 0)
        status = byoc_ledger_text(ledger, number > 0, &text, &err);
    else if (strcmp(what, "explain") == 0)
        status = byoc_ledger_explain(ledger, other, &text, &err);
    else
        status =
            byoc_ledger_diff(ledger, other, number, 1, &worse, &text, &err);
    if (status != BYOC_OK)
        return pyb_raise(status, err.text);
    PyObject *object =
        PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    byoc_string_free(text);
    return object;
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(byoc_version());
}

PyMODINIT_FUNC PyInit__byoc(void);

PyMODINIT_FUNC PyInit__byoc(void)
{
    static PyMethodDef functions[] = {
        {"version", version, METH_NOARGS, NULL},
        {"backends", list_backends, METH_VARARGS, NULL},
        {"report", report, METH_VARARGS, NULL},
        {0}};
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, .m_name = "byoc._byoc",
        .m_doc = "The extension of byoc.", .m_size = -1,
        .m_methods = functions};
    PyObject *module = PyModule_Create(&definition);
    if (module && !pyb_tensor_register(module) && !pyb_model_register(module) &&
        !pyb_run_register(module) && !pyb_backend_register(module))
        return module;
    Py_XDECREF(module);
    return NULL;
}
