/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: the extension module byoc._byoc. It uses Python's stable ABI
 * of 3.11 and only the public headers of byoc. Users import the package around
 * it (byoc/), which has the documentation.
 *
 * Functions that return an object or an int follow Python's convention: they
 * return NULL or -1 with an exception set. Functions need the GIL, unless their
 * comment says otherwise. Calls of byoc that may wait release it, since
 * callbacks of byoc acquire it. */
#ifndef PYB_MODULE_H
#define PYB_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <byoc/byoc.h>

#include <stdbool.h>

enum { PYB_MAX_RANK = 12 }; /* of tensors in byoc */

/* --- module.c ------------------------------------------------------------- */

/* Call a function of one of the package's modules. `format`, as for
 * Py_BuildValue, makes the tuple of arguments. */
PyObject *pyb_call(const char *module, const char *function, const char *format,
                   ...);
/* Raise byoc's exception for a status. Return NULL. */
void *pyb_raise(enum byoc_status status, const char *text);
void *pyb_raisef(enum byoc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The UTF-8 of a str without NULs, which belongs to it. NULL with an exception
 * otherwise, whose message starts with `what`. */
const char *pyb_text(PyObject *object, const char *what);

/* --- tensor.c ------------------------------------------------------------- */

/* Each pyb_*_register adds classes or functions to the module. Returns -1 with
 * an exception set on failure. */
int pyb_tensor_register(PyObject *module);
/* The format of Python's struct module for an element type; NULL: the module
 * has none. */
const char *pyb_format_of_dtype(enum byoc_dtype dtype);
/* Create an array with uninitialised elements, to which *data is set. It is
 * NumPy's if NumPy can be imported and has the dtype, otherwise a byoc.Tensor.
 * NumPy's array of strings has objects, which are None. Raises ImportError for
 * strings without NumPy. *data is valid while the array lives. */
PyObject *pyb_array_new(enum byoc_dtype dtype, uint32_t rank,
                        const int64_t *dims, void **data);
/* The dtype of a buffer's elements; BYOC_NONE: byoc has no such type. Objects
 * (format "O") are BYOC_STRING. */
enum byoc_dtype pyb_dtype_of_buffer(const Py_buffer *buffer);
/* Whether the object is a byoc.Tensor of a dtype that the buffer protocol has
 * no format for. */
bool pyb_tensor_lacks_format(PyObject *object);

/* --- params.c ------------------------------------------------------------- */

/* The parameters of one call, read from a dict of options. The pointers in them
 * are valid while the dict lives, and until pyb_params_free. */
struct pyb_params {
    struct byoc_compile_params compile;
    struct byoc_load_params load;
    PyObject *progress, *log; /* callables, or NULL; borrowed */
    const char **lists[16];   /* for pyb_params_free */
    uint32_t n_lists;
};
/* Read the options of byoc.compile() or, unless `compiles`, of byoc.load(). An
 * option that is a member of both structs sets both, except `verify`, which
 * sets only the member of `compile` if `compiles`. */
int pyb_params_read(struct pyb_params *params, PyObject *options,
                    bool compiles);
/* Free the arrays of pointers in params->lists. The strings belong to the dict.
 */
void pyb_params_free(struct pyb_params *params);

/* --- model.c -------------------------------------------------------------- */

/* The memory of a run: a state, and arrays for its bindings. One run at a time
 * uses it; a model keeps unused ones. */
struct pyb_job;

/* The class byoc._byoc.Model. The GIL guards its members. */
struct pyb_model {
    PyObject head;
    struct byoc_compiled *compiled;    /* NULL: loaded from an artifact */
    struct byoc_model *model;          /* NULL: freed, or not yet loaded */
    struct pyb_job *idle;              /* list of unused jobs */
    struct pyb_model_objects *objects; /* memory that freeing the model needs */
    uint32_t n_inputs, n_outputs;
    uint32_t busy; /* number of calls that use the model now */
    bool closed;
    PyObject *events; /* a list that receives the events of runs, or NULL */
    PyObject *log;    /* called for each line of the log, or NULL */
};

int pyb_model_register(PyObject *module);
/* Decrement m->busy, at the end of a call. Frees a closed model if this was the
 * last call. */
void pyb_model_leave(struct pyb_model *m);
/* Add n, 1 or -1, to the number of threads of byoc that will take the GIL
 * later, for a callback or to free objects. Python must not be finalised while
 * there are any: _byoc.pending() returns the number. */
void pyb_pending_add(int n);

/* --- value.c: objects as values of a run ---------------------------------- */

/* A buffer, an object or memory that a run uses until it ends. */
struct pyb_hold {
    struct pyb_hold *next;
    Py_buffer buffer; /* .obj NULL: none */
    PyObject *object; /* or NULL */
    void *memory;     /* from malloc, or NULL */
};
/* Add a zeroed element to the front of the list, and return it; NULL with an
 * exception set if memory is exhausted. */
struct pyb_hold *pyb_hold_add(struct pyb_hold **holds);
/* Release the buffers, objects and memory of the list, and empty it. */
void pyb_holds_free(struct pyb_hold **holds);

/* Set *value to describe `object` as the input or output `io`. Elements are not
 * copied, except strings. References that the value needs are added to `holds`.
 * `what` is "input", or "output" for memory that the run writes; messages start
 * with it and `name`. */
int pyb_value_read(struct pyb_hold **holds, const struct byoc_io *io,
                   const char *what, const char *name, PyObject *object,
                   struct byoc_value *value);
/* Create the object for an output that byoc has set; copies its elements. */
PyObject *pyb_value_write(const struct byoc_io *io,
                          const struct byoc_value *value);

/* --- run.c ---------------------------------------------------------------- */

int pyb_run_register(PyObject *module);
/* Free a list of jobs. The caller must not have the GIL, since this waits for
 * callbacks. */
void pyb_jobs_free(struct pyb_job *jobs);
/* Model.__call__() and Model.run(). */
PyObject *pyb_model_call(PyObject *model, PyObject *args, PyObject *named);
PyObject *pyb_model_run(PyObject *model, PyObject *args, PyObject *named);
/* Whether this thread is in a callback of byoc_run_async. */
bool pyb_in_callback(void);

/* --- backend.c: backends in Python ---------------------------------------- */

int pyb_backend_register(PyObject *module);

#endif
