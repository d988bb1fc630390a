/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: the class byoc._byoc.Model: a compiled or loaded model, and its
 * properties. The class that users see extends it (byoc/_model.py).
 */
#include "module.h"

#include <structmember.h>

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pyb_model *model_of(PyObject *self)
{
    return (struct pyb_model *)self;
}

/* --- opening a model ------------------------------------------------------ */

/* The source of a model: a path, bytes, or a file descriptor. */
struct model_source {
    const char *path; /* with `data`: the name that messages use */
    Py_buffer data;   /* .obj NULL: none */
    int fd;           /* -1: none */
    bool compiles;    /* a model to compile, not an artifact */
};

/* Set the source to `object`; the caller has set s->compiles. */
static int read_source(struct model_source *s, PyObject *object)
{
    if (PyUnicode_Check(object))
        s->path = pyb_text(object, s->compiles ? "model" : "artifact");
    else if (PyLong_Check(object) && !s->compiles)
        s->fd = (int)PyLong_AsLong(object);
    else
        PyObject_GetBuffer(object, &s->data, PyBUF_SIMPLE);
    return PyErr_Occurred() ? -1 : 0;
}

static enum byoc_status open_source(struct pyb_model *m,
                                    const struct model_source *s,
                                    const struct pyb_params *p,
                                    struct byoc_error *err)
{
    const Py_buffer *d = &s->data;
    if (!s->compiles && d->obj)
        return byoc_model_load_memory(d->buf, (uint64_t)d->len, &p->load,
                                      &m->model, err);
    if (!s->compiles && s->path)
        return byoc_model_load(s->path, &p->load, &m->model, err);
    if (!s->compiles)
        return byoc_model_load_fd(s->fd, &p->load, &m->model, err);
    enum byoc_status status =
        d->obj ? byoc_compile_memory(d->buf, (uint64_t)d->len, s->path,
                                     &p->compile, &m->compiled, err)
               : byoc_compile(s->path, &p->compile, &m->compiled, err);
    return status ? status
                  : byoc_compiled_load(m->compiled, &p->load, &m->model, err);
}

/* The objects that a model owns, as a list for free_objects. Allocated with the
 * model, so that freeing the model cannot fail. */
struct pyb_model_objects {
    struct pyb_model_objects *next; /* freed after this */
    struct pyb_job *jobs;
    struct byoc_model *model;
    struct byoc_compiled *compiled;
    PyObject *log;
};

/* open(type, source, name, options): with a name, the source is a model to
 * compile; if `name` is None, an artifact to load. */
static PyObject *model_open(PyObject *module, PyObject *args)
{
    PyObject *type, *source, *options;
    struct model_source s = {.fd = -1};
    struct pyb_params p = {0};
    struct pyb_model *m = NULL;
    struct byoc_error err;
    enum byoc_status status = BYOC_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOzO", &type, &source, &s.path, &options))
        return NULL;
    s.compiles = s.path != NULL;
    if (read_source(&s, source) == 0 &&
        pyb_params_read(&p, options, s.compiles) == 0)
        m = (void *)((allocfunc)PyType_GetSlot(
            (PyTypeObject *)type, Py_tp_alloc))((PyTypeObject *)type, 0);
    if (m)
        m->objects = calloc(1, sizeof *m->objects);
    if (m && !m->objects) {
        PyErr_NoMemory();
        Py_CLEAR(m);
    }
    if (m) {
        m->log = Py_XNewRef(p.log);
        Py_BEGIN_ALLOW_THREADS status = open_source(m, &s, &p, &err);
        Py_END_ALLOW_THREADS
    }
    pyb_params_free(&p);
    PyBuffer_Release(&s.data);
    if (!m || status != BYOC_OK) {
        Py_XDECREF((PyObject *)m);
        return m ? pyb_raise(status, err.text) : NULL;
    }
    m->n_inputs = byoc_model_n_inputs(m->model);
    m->n_outputs = byoc_model_n_outputs(m->model);
    return (PyObject *)m;
}

/* --- freeing a model ------------------------------------------------------ */

/* The objects of freed models for which no thread could be created. The GIL
 * guards the list. */
static struct pyb_model_objects *unfreed_objects;

/* Free a list of models' objects. The caller must not hold the GIL: freeing a
 * model waits for its threads, which may wait for the GIL. This takes the GIL
 * only to drop the reference to the log. */
static void free_objects(struct pyb_model_objects *objects)
{
    for (struct pyb_model_objects *next; objects; objects = next) {
        next = objects->next;
        pyb_jobs_free(objects->jobs);
        byoc_model_free(&objects->model);
        byoc_compiled_free(&objects->compiled);
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_XDECREF(objects->log);
        PyGILState_Release(gil);
        free(objects);
    }
}

/* The number of threads that will take the GIL later, guarded by the GIL, and
 * the process that counted them: a forked child does not have its parent's
 * threads. */
static int pending;
static pid_t pending_process;

void pyb_pending_add(int n)
{
    if (pending_process != getpid())
        pending = 0;
    pending_process = getpid();
    pending += n;
}

static PyObject *model_pending(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    pyb_pending_add(0);
    return PyLong_FromLong(pending);
}

static void *free_pending(void *objects)
{
    free_objects(objects);
    PyGILState_STATE gil = PyGILState_Ensure();
    pyb_pending_add(-1);
    PyGILState_Release(gil);
    return NULL;
}

/* Free the objects in another thread. For a callback of a run that drops the
 * last reference to the model: freeing the model waits for the callback to end.
 * If no thread can be created, the next model that is freed frees them. */
static void free_elsewhere(struct pyb_model_objects *objects)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_pending, objects)) {
        unfreed_objects = objects;
        return;
    }
    pyb_pending_add(1); /* the thread waits for the GIL to subtract it */
    pthread_detach(thread);
}

/* Free the objects of byoc that `m` owns. */
static void release_objects(struct pyb_model *m)
{
    struct pyb_model_objects *objects = m->objects;
    m->objects = NULL;
    if (!objects)
        return;
    *objects = (struct pyb_model_objects){unfreed_objects, m->idle, m->model,
                                          m->compiled, m->log};
    unfreed_objects = NULL;
    m->idle = NULL;
    m->model = NULL;
    m->compiled = NULL;
    m->log = NULL;
    if (pyb_in_callback()) {
        free_elsewhere(objects);
        return;
    }
    Py_BEGIN_ALLOW_THREADS free_objects(objects);
    Py_END_ALLOW_THREADS
}

void pyb_model_leave(struct pyb_model *m)
{
    if (--m->busy == 0 && m->closed)
        release_objects(m);
}

static PyObject *model_close(PyObject *self, PyObject *unused)
{
    struct pyb_model *m = model_of(self);
    (void)unused;
    m->closed = true;
    if (m->busy == 0)
        release_objects(m);
    Py_RETURN_NONE;
}

static void model_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_objects(model_of(self));
    Py_XDECREF(model_of(self)->events);
    Py_XDECREF(model_of(self)->log);
    free_object(self);
    Py_DECREF(type);
}

/* --- inputs, outputs, metadata, ledger ------------------------------------ */

/* The model, or NULL with an exception if it was closed. */
static struct byoc_model *require_open(PyObject *self)
{
    struct pyb_model *m = model_of(self);
    return m->model && !m->closed
               ? m->model
               : pyb_raise(BYOC_EINVAL,
                           "the model is closed; load or compile it again");
}

static PyObject *describe_dims(const struct byoc_io *io)
{
    if (io->kind != BYOC_TENSOR || io->rank == UINT32_MAX)
        Py_RETURN_NONE;
    PyObject *shape = PyTuple_New((Py_ssize_t)io->rank);
    for (uint32_t d = 0; shape && d < io->rank; d++) {
        PyObject *size = io->dims[d] >= 0
                             ? PyLong_FromLongLong(io->dims[d])
                             : Py_BuildValue("z", io->dim_names[d]);
        if (!size || PyTuple_SetItem(shape, (Py_ssize_t)d, size))
            Py_CLEAR(shape);
    }
    return shape;
}

/* Make the tuple (name, kind, dtype, shape, element). */
static PyObject *describe(const struct byoc_io *io)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional"};
    PyObject *element =
        io->element ? describe(io->element) : Py_NewRef(Py_None);
    return element ? Py_BuildValue("(sszNN)", io->name, kinds[io->kind],
                                   byoc_dtype_name(io->dtype),
                                   describe_dims(io), element)
                   : NULL;
}

/* Return a list of describe()'s tuples, for the outputs if the argument is
 * true, otherwise for the inputs. */
static PyObject *model_values(PyObject *self, PyObject *outputs)
{
    const struct byoc_model *model = require_open(self);
    const bool out = PyObject_IsTrue(outputs) == 1;
    const uint32_t n =
        out ? model_of(self)->n_outputs : model_of(self)->n_inputs;
    PyObject *list = model ? PyList_New((Py_ssize_t)n) : NULL;
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *io = describe(out ? byoc_model_output(model, i)
                                    : byoc_model_input(model, i));
        if (!io || PyList_SetItem(list, (Py_ssize_t)i, io))
            Py_CLEAR(list);
    }
    return list;
}

/* Return a list of (output, input, axis) for the outputs that may share an
 * input's memory. */
static PyObject *model_in_place(PyObject *self, PyObject *unused)
{
    const struct byoc_model *model = require_open(self);
    PyObject *list = model ? PyList_New(0) : NULL;
    (void)unused;
    for (uint32_t i = 0; list && i < model_of(self)->n_outputs; i++) {
        uint32_t axis;
        const uint32_t input = byoc_model_in_place(model, i, &axis);
        if (input == UINT32_MAX)
            continue;
        PyObject *row = Py_BuildValue("(III)", i, input, axis);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *model_metadata(PyObject *self, PyObject *unused)
{
    const struct byoc_model *model = require_open(self);
    PyObject *dict = model ? PyDict_New() : NULL;
    uint32_t n = 0;
    (void)unused;
    const struct byoc_metadata *pairs =
        dict ? byoc_model_metadata(model, &n) : NULL;
    for (uint32_t i = 0; dict && i < n; i++) {
        PyObject *value = PyUnicode_DecodeUTF8(
            pairs[i].value, (Py_ssize_t)strlen(pairs[i].value), "replace");
        if (!value || PyDict_SetItemString(dict, pairs[i].key, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* Return a dict of memory, threads, and the cache of specialisations. */
static PyObject *model_stats(PyObject *self, PyObject *unused)
{
    const struct byoc_model *model = require_open(self);
    struct byoc_cache_stats c;
    uint64_t peak;
    const char *why;
    (void)unused;
    if (!model)
        return NULL;
    byoc_model_cache(model, &c);
    const uint64_t bytes = byoc_model_memory(model, &peak);
    const uint32_t threads = byoc_model_threads(model, &why);
    return Py_BuildValue(
        "{sIsssKsKsKsKsKsKsKsKsKsKsKsIsI}", "threads", threads, "threads_why",
        why, "memory", bytes, "memory_peak", peak, "cache_hits", c.hits,
        "cache_misses", c.misses, "cache_builds", c.builds, "cache_failures",
        c.failures, "cache_refusals", c.refusals, "cache_evictions",
        c.evictions, "cache_bytes", c.bytes, "cache_peak_bytes", c.peak_bytes,
        "cache_max_bytes", c.max_bytes, "cache_max_shapes", c.max_shapes,
        "cache_shapes", c.shapes);
}

/* Return a text of the model: "ledger", "warnings", "ir", "verdict" or
 * "compile_warnings"; "" if there is none. */
static PyObject *model_text(PyObject *self, PyObject *which)
{
    const struct byoc_model *model = require_open(self);
    struct byoc_compiled *c = model_of(self)->compiled;
    const char *name = PyUnicode_AsUTF8AndSize(which, NULL), *text = NULL;
    uint64_t bytes = 0;
    if (!model || !name)
        return NULL;
    if (strcmp(name, "ledger") == 0)
        text = c ? byoc_compiled_ledger(c) : byoc_model_ledger(model, &bytes);
    else if (strcmp(name, "warnings") == 0)
        text = byoc_model_warnings(model);
    else if (c && strcmp(name, "ir") == 0)
        text = byoc_compiled_ir(c);
    else if (c && strcmp(name, "verdict") == 0)
        text = byoc_compiled_verdict(c);
    else if (c && strcmp(name, "compile_warnings") == 0)
        text = byoc_compiled_warnings(c);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(bytes  ? bytes
                                                          : text ? strlen(text)
                                                                 : 0));
}

/* --- methods -------------------------------------------------------------- */

/* Write the artifact. Only one thread at a time may call this: _model.py has a
 * lock. */
static PyObject *model_write(PyObject *self, PyObject *path)
{
    struct byoc_compiled *c = model_of(self)->compiled;
    const char *to = pyb_text(path, "path");
    struct byoc_error err;
    enum byoc_status status;
    if (!to || !require_open(self))
        return NULL;
    if (!c)
        return pyb_raise(BYOC_EINVAL, "found a model that was loaded, not "
                                      "compiled; copy its artifact instead");
    model_of(self)->busy++; /* close() leaves freeing to this call */
    Py_BEGIN_ALLOW_THREADS status = byoc_compiled_write(c, to, &err);
    Py_END_ALLOW_THREADS pyb_model_leave(model_of(self));
    if (status != BYOC_OK)
        return pyb_raise(status, err.text);
    Py_RETURN_NONE;
}

/* Make the specialisation for sizes of the symbolic dims, a dict {name: size}.
 */
static PyObject *model_warm(PyObject *self, PyObject *sizes)
{
    const struct byoc_model *model = require_open(self);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    uint32_t n = 0;
    struct byoc_error err;
    enum byoc_status status;
    if (!model)
        return NULL;
    struct byoc_dim *dims =
        calloc((size_t)PyDict_Size(sizes) + 1, sizeof *dims);
    if (!dims)
        return PyErr_NoMemory();
    while (PyDict_Next(sizes, &at, &key, &value) && !PyErr_Occurred())
        dims[n++] =
            (struct byoc_dim){.name = PyUnicode_AsUTF8AndSize(key, NULL),
                              .size = PyLong_AsLongLong(value)};
    if (PyErr_Occurred()) {
        free(dims);
        return NULL;
    }
    model_of(self)->busy++;
    Py_BEGIN_ALLOW_THREADS status = byoc_model_warm(model, dims, n, &err);
    Py_END_ALLOW_THREADS free(dims);
    pyb_model_leave(model_of(self));
    if (status != BYOC_OK)
        return pyb_raise(status, err.text);
    Py_RETURN_NONE;
}

/* Append the events of later runs to this list; None: do not record events,
 * which also works when the model was closed meanwhile. */
static PyObject *model_record(PyObject *self, PyObject *list)
{
    if (list != Py_None && !require_open(self))
        return NULL;
    PyObject *old_list = model_of(self)->events;
    model_of(self)->events = PyList_Check(list) ? Py_NewRef(list) : NULL;
    Py_XDECREF(old_list);
    Py_RETURN_NONE;
}

int pyb_model_register(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"open", model_open, METH_VARARGS, NULL},
        {"pending", model_pending, METH_NOARGS, NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"run", (PyCFunction)(void (*)(void))pyb_model_run,
         METH_VARARGS | METH_KEYWORDS, NULL},
        {"close", model_close, METH_NOARGS, NULL},
        {"_values", model_values, METH_O, NULL},
        {"_in_place", model_in_place, METH_NOARGS, NULL},
        {"_metadata", model_metadata, METH_NOARGS, NULL},
        {"_stats", model_stats, METH_NOARGS, NULL},
        {"_text", model_text, METH_O, NULL},
        {"_write", model_write, METH_O, NULL},
        {"_warm", model_warm, METH_O, NULL},
        {"_record", model_record, METH_O, NULL},
        {0}};
    static PyMemberDef members[] = {
        {"closed", T_BOOL, offsetof(struct pyb_model, closed), READONLY, NULL},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, model_free},
                                  {Py_tp_call, pyb_model_call},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {0}};
    static PyType_Spec spec = {.name = "byoc._byoc.Model",
                               .basicsize = sizeof(struct pyb_model),
                               .flags = Py_TPFLAGS_DEFAULT |
                                        Py_TPFLAGS_BASETYPE |
                                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!type || PyModule_AddType(module, type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
