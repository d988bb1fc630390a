/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: the extension byoc._byoc, on Python's stable ABI of 3.11 and on
 * nothing of byoc but its public headers. What users import is the package
 * around it (byoc/), which has the documentation.
 *
 * Functions that return an object or an int follow Python's convention: NULL or
 * -1 with an exception set. All of them need the GIL; calls of byoc that may
 * wait release it, since callbacks of byoc acquire it.
 */
#ifndef PYB_MODULE_H
#define PYB_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <byoc/byoc.h>

#include <stdbool.h>

enum { PYB_MAX_RANK = 12 }; /* of a tensor of byoc */

/* --- module.c ------------------------------------------------------------- */

/* Call a function of a module of the package; `format` makes its arguments, a
 * tuple, as for Py_BuildValue. */
PyObject *pyb_call(const char *module, const char *function, const char *format,
                   ...);
/* Raise byoc's exception for a status. Return NULL. */
void *pyb_raise(enum byoc_status status, const char *text);
void *pyb_raisef(enum byoc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- tensor.c ------------------------------------------------------------- */

int pyb_tensor_register(PyObject *module);
/* An array whose elements are not yet set, at *data: of NumPy if it can be
 * imported and has the dtype (strings: of objects), else a byoc.Tensor. */
PyObject *pyb_array_new(enum byoc_dtype dtype, uint32_t rank,
                        const int64_t *dims, void **data);
/* The dtype of a buffer's elements; BYOC_NONE: none of byoc's. Strings are
 * BYOC_STRING if they are objects (format "O"). */
enum byoc_dtype pyb_dtype_of_buffer(const Py_buffer *buffer);

/* --- params.c ------------------------------------------------------------- */

/* The parameters of one call, read from a dict of options. Their pointers are
 * valid while the dict lives, until pyb_params_free. */
struct pyb_params {
    struct byoc_compile_params compile;
    struct byoc_load_params load;
    PyObject *progress, *log; /* callables, or NULL; borrowed */
    const char **lists[16];
    uint32_t n_lists;
};
/* Options that both structs have go to both. `compiles`: whether members of
 * struct byoc_compile_params are options. */
int pyb_params_read(struct pyb_params *params, PyObject *options,
                    bool compiles);
void pyb_params_free(struct pyb_params *params);

/* --- model.c -------------------------------------------------------------- */

/* The memory of one run at a time: a state, and arrays for its bindings. A
 * model keeps idle ones. */
struct pyb_job;

struct pyb_model {
    PyObject head;
    struct byoc_compiled *compiled; /* NULL: an artifact */
    struct byoc_model *model;       /* NULL: closed, or not yet loaded */
    struct pyb_job *idle;
    uint32_t n_inputs, n_outputs;
    uint32_t busy; /* calls that use the model now */
    bool closed;
    PyObject *events; /* a list that gets the events of runs, or NULL */
    PyObject *log;    /* called for each line of the log, or NULL */
};

int pyb_model_register(PyObject *module);
/* Something that counts as busy has ended; the last one frees a closed model.
 */
void pyb_model_leave(struct pyb_model *m);

/* --- value.c: objects as values of a run ---------------------------------- */

/* Something that a run borrows until it ends: a buffer, an object, memory. */
struct pyb_hold {
    struct pyb_hold *next;
    Py_buffer buffer; /* .obj NULL: none */
    PyObject *object; /* or NULL */
    void *memory;     /* or NULL */
};
struct pyb_hold *pyb_hold_add(struct pyb_hold **holds); /* zeroed */
void pyb_holds_free(struct pyb_hold **holds);

/* Describe `object` to byoc, without copying elements, for an input (or an
 * output to write to) like `io`. `what` and `name` are for messages. */
int pyb_value_read(struct pyb_hold **holds, const struct byoc_io *io,
                   const char *what, const char *name, PyObject *object,
                   struct byoc_value *value);
/* The object for an output that byoc filled in: elements are copied. */
PyObject *pyb_value_write(const struct byoc_io *io,
                          const struct byoc_value *value);

/* --- run.c ---------------------------------------------------------------- */

int pyb_run_register(PyObject *module);
void pyb_jobs_free(struct pyb_job *jobs); /* without the GIL */
PyObject *pyb_model_call(PyObject *model, PyObject *args, PyObject *named);
PyObject *pyb_model_run(PyObject *model, PyObject *args, PyObject *named);
/* Whether this thread is in a callback of byoc_run_async. */
bool pyb_in_callback(void);

/* --- backend.c: backends in Python ---------------------------------------- */

int pyb_backend_register(PyObject *module);

#endif
