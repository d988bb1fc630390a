/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: runs a model. Each run has a job and a state to itself, so that any
 * number of threads can run one model at once. A model keeps the jobs of ended
 * runs for later ones. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The array of an output: given by the caller, or created before the run. */
struct run_output {
    PyObject *array; /* NULL: pyb_value_write copies the output from the state
                      * after the run */
    int64_t dims[PYB_MAX_RANK];
};

struct pyb_job {
    struct pyb_job *next; /* in the model's list of unused jobs */
    struct pyb_model *m;  /* a reference while the job is in use */
    struct byoc_state *state;
    struct byoc_request request;
    struct byoc_binding *in, *out; /* one element more than the model has inputs
                                    * or outputs, so that byoc_run_request can
                                    * refuse a surplus one */
    struct run_output *results;    /* indexed like `out` */
    struct pyb_hold *holds;
    PyObject *tag;
    PyObject *done;     /* callback of submit(), or NULL */
    struct run *handle; /* result of submit(), or NULL */
    bool discard; /* free the job after its run: cancelling may end the state's
                   * next run instead, or its events may go on */
    FILE *events; /* writes events to `text`; NULL: not recorded */
    char *text;
    size_t bytes;
};

/* The class byoc.Run: the result of submit(). */
struct run {
    PyObject head;
    struct pyb_job *job; /* NULL: the run has ended */
};

static PyTypeObject *run_type;
static _Thread_local bool in_callback;

bool pyb_in_callback(void)
{
    return in_callback;
}

/* --- events --------------------------------------------------------------- */

/* Record an event. Called during the run, without the GIL. */
static void record(void *ctx, const struct byoc_event *e)
{
    struct pyb_job *job = ctx;
    fprintf(job->events, "%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%llu\x1f%llu\x1e",
            e->kind, e->name, e->impl, e->sources, e->tag,
            (unsigned long long)e->begin_ns, (unsigned long long)e->end_ns);
}

static int start_events(struct pyb_job *job)
{
    struct byoc_error err;
    if (!job->m->events)
        return 0;
    job->events = open_memstream(&job->text, &job->bytes);
    if (!job->events)
        return PyErr_NoMemory(), -1;
    const enum byoc_status status =
        byoc_state_profile(job->state, record, job, &err);
    return status ? (pyb_raise(status, err.text), -1) : 0;
}

/* Append a text with the events of a run, which may have failed, to the model's
 * list: \x1e ends the record of an event, \x1f separates its members. */
static void end_events(struct pyb_job *job)
{
    if (!job->events)
        return;
    if (byoc_state_profile(job->state, NULL, NULL, NULL))
        job->discard = true; /* the state would still record events */
    const int failed = fclose(job->events);
    PyObject *text = failed ? NULL
                            : PyUnicode_DecodeUTF8(
                                  job->text, (Py_ssize_t)job->bytes, "replace");
    if (!text || (job->m->events && PyList_Append(job->m->events, text)))
        PyErr_Clear(); /* lost events must not make the run fail */
    Py_XDECREF(text);
    free(job->text);
    job->events = NULL;
    job->text = NULL;
}

/* --- jobs ----------------------------------------------------------------- */

void pyb_jobs_free(struct pyb_job *job)
{
    while (job) {
        struct pyb_job *next = job->next;
        byoc_state_free(&job->state);
        free(job->in);
        free(job->out);
        free(job->results);
        free(job);
        job = next;
    }
}

static struct pyb_job *make_job(struct pyb_model *m)
{
    struct byoc_error err;
    enum byoc_status status;
    struct pyb_job *job = calloc(1, sizeof *job);
    if (!job)
        return (void *)PyErr_NoMemory();
    job->in = calloc(m->n_inputs + 1, sizeof *job->in);
    job->out = calloc(m->n_outputs + 1, sizeof *job->out);
    job->results = calloc(m->n_outputs + 1, sizeof *job->results);
    Py_BEGIN_ALLOW_THREADS status = byoc_state_new(m->model, &job->state, &err);
    Py_END_ALLOW_THREADS if (status == BYOC_OK && job->in && job->out &&
                             job->results) return job;
    pyb_jobs_free(job);
    return status ? pyb_raise(status, err.text) : (void *)PyErr_NoMemory();
}

/* Take a job for one run: an unused one or a new one. Increments m->busy and
 * the references to the model; return_job decrements them. */
static struct pyb_job *take_job(struct pyb_model *m)
{
    if (m->closed)
        return pyb_raise(BYOC_EINVAL,
                         "the model is closed; load or compile it again");
    Py_INCREF((PyObject *)m);
    m->busy++;
    struct pyb_job *job = m->idle;
    if (job)
        m->idle = job->next;
    else
        job = make_job(m);
    if (job) {
        job->next = NULL;
        job->m = m;
        job->request = (struct byoc_request){.struct_size = sizeof job->request,
                                             .inputs = job->in,
                                             .outputs = job->out};
        return job;
    }
    pyb_model_leave(m);
    Py_DECREF((PyObject *)m);
    return NULL;
}

/* Return a job, whose run has ended or does not begin, to the model's list, or
 * free it if job->discard. */
static void return_job(struct pyb_job *job)
{
    struct pyb_model *m = job->m;
    end_events(job);
    pyb_holds_free(&job->holds);
    for (uint32_t i = 0; i < job->request.n_outputs; i++)
        Py_CLEAR(job->results[i].array);
    Py_CLEAR(job->tag);
    Py_CLEAR(job->done);
    if (job->handle)
        job->handle->job = NULL;
    job->handle = NULL;
    if (job->discard) {
        Py_BEGIN_ALLOW_THREADS pyb_jobs_free(job);
        Py_END_ALLOW_THREADS
    } else {
        job->next = m->idle;
        m->idle = job;
    }
    pyb_model_leave(m);
    Py_DECREF((PyObject *)m);
}

/* --- inputs --------------------------------------------------------------- */

/* Bind an input, whose name must live until the run ends. Returns 0; -1 with an
 * exception; 1 if byoc_run_request will refuse the name or the number of
 * inputs, so that the caller need not bind more. */
static int bind_input(struct pyb_job *job, const char *name, PyObject *object)
{
    const uint32_t k = job->request.n_inputs;
    const uint32_t i = byoc_model_input_index(job->m->model, name);
    job->request.n_inputs++;
    job->in[k] = (struct byoc_binding){.name = name};
    if (i == UINT32_MAX || k == job->m->n_inputs)
        return 1;
    const struct byoc_io *io = byoc_model_input(job->m->model, i);
    return pyb_value_read(&job->holds, io, "input", io->name, object,
                          &job->in[k].value);
}

/* Bind the inputs of a dict. The run keeps the keys, whose memory has the
 * names: the caller may free the dict while a run of submit() waits. The item
 * is held because reading it may call Python code that removes it from the
 * dict. */
static int bind_feeds(struct pyb_job *job, PyObject *feeds)
{
    PyObject *key, *object;
    Py_ssize_t at = 0;
    int outcome = 0;
    while (!outcome && PyDict_Next(feeds, &at, &key, &object)) {
        struct pyb_hold *hold = pyb_hold_add(&job->holds);
        if (!hold)
            return -1;
        hold->object = Py_NewRef(key);
        Py_INCREF(object);
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        outcome = name ? bind_input(job, name, object) : -1;
        Py_DECREF(object);
    }
    return outcome;
}

static int bind_positions(struct pyb_job *job, PyObject *args)
{
    const Py_ssize_t n = PyTuple_Size(args);
    if (n > (Py_ssize_t)job->m->n_inputs) {
        pyb_raisef(BYOC_EINVAL, "found %zd inputs, expected at most %u", n,
                   job->m->n_inputs);
        return -1;
    }
    int outcome = 0;
    for (Py_ssize_t i = 0; !outcome && i < n; i++)
        outcome =
            bind_input(job, byoc_model_input(job->m->model, (uint32_t)i)->name,
                       PyTuple_GetItem(args, i));
    return outcome;
}

/* --- outputs -------------------------------------------------------------- */

/* The size of a symbolic dim, from the inputs; -1 if no input has it. */
static int64_t symbol_size(const struct pyb_job *job, const char *symbol)
{
    for (uint32_t k = 0; symbol && k < job->request.n_inputs; k++) {
        const DLTensor *t = &job->in[k].value.tensor;
        const struct byoc_io *io = byoc_model_input(
            job->m->model,
            byoc_model_input_index(job->m->model, job->in[k].name));
        for (uint32_t d = 0;
             io->kind == BYOC_TENSOR && d < io->rank && (int)d < t->ndim; d++)
            if (io->dim_names[d] && strcmp(io->dim_names[d], symbol) == 0)
                return t->shape[d];
    }
    return -1;
}

/* Create the array of output `io` if its size is known before the run;
 * otherwise pyb_value_write creates it after the run. */
static int make_result(struct pyb_job *job, const struct byoc_io *io,
                       uint32_t k)
{
    struct run_output *r = &job->results[k];
    DLTensor *t = &job->out[k].value.tensor;
    if (io->kind != BYOC_TENSOR || io->dtype == BYOC_STRING)
        return 0;
    for (uint32_t d = 0; d < io->rank; d++) {
        r->dims[d] =
            io->dims[d] >= 0 ? io->dims[d] : symbol_size(job, io->dim_names[d]);
        if (r->dims[d] < 0)
            return 0;
    }
    *t = (DLTensor){.device = {kDLCPU, 0},
                    .ndim = (int)io->rank,
                    .dtype = byoc_dtype_dlpack(io->dtype),
                    .shape = r->dims};
    r->array = pyb_array_new(io->dtype, io->rank, r->dims, &t->data);
    return r->array ? 0 : -1;
}

/* Bind an output, to `array` or, if it is NULL, to a new array. Returns 1 as
 * bind_input does.
 */
static int bind_output(struct pyb_job *job, const char *name, PyObject *array)
{
    const uint32_t k = job->request.n_outputs;
    const uint32_t i = byoc_model_output_index(job->m->model, name);
    job->request.n_outputs++;
    job->out[k] = (struct byoc_binding){.name = name};
    if (i == UINT32_MAX || k == job->m->n_outputs)
        return 1;
    const struct byoc_io *io = byoc_model_output(job->m->model, i);
    job->out[k].value.kind = io->kind;
    if (!array)
        return make_result(job, io, k);
    job->results[k].array = Py_NewRef(array);
    return pyb_value_read(&job->holds, io, "output", io->name, array,
                          &job->out[k].value);
}

static int bind_all_outputs(struct pyb_job *job, PyObject *out)
{
    int outcome = 0;
    for (uint32_t i = 0; !outcome && i < job->m->n_outputs; i++) {
        const char *name = byoc_model_output(job->m->model, i)->name;
        outcome = bind_output(job, name,
                              out ? PyDict_GetItemString(out, name) : NULL);
    }
    return outcome;
}

/* Bind the named outputs. Keeps the names for the run in job->holds. */
static int bind_names(struct pyb_job *job, PyObject *names, PyObject *out)
{
    if (PyUnicode_Check(names)) {
        PyErr_SetString(PyExc_TypeError,
                        "names: found a string, expected None or a list of "
                        "strings");
        return -1;
    }
    PyObject *list = PySequence_Tuple(names);
    struct pyb_hold *hold = list ? pyb_hold_add(&job->holds) : NULL;
    if (!hold) {
        Py_XDECREF(list);
        return -1;
    }
    hold->object = list;
    int outcome = 0;
    for (Py_ssize_t i = 0; !outcome && i < PyTuple_Size(list); i++) {
        PyObject *key = PyTuple_GetItem(list, i);
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        outcome =
            name ? bind_output(job, name, out ? PyDict_GetItem(out, key) : NULL)
                 : -1;
    }
    return outcome;
}

/* Fail unless each array of `out` is for an output that the run returns. */
static int check_out(const struct pyb_job *job, PyObject *out)
{
    Py_ssize_t at = 0;
    PyObject *key, *array;
    while (PyDict_Next(out, &at, &key, &array)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        uint32_t k = 0;
        if (!name)
            return -1;
        while (k < job->request.n_outputs && strcmp(job->out[k].name, name))
            k++;
        if (k < job->request.n_outputs)
            continue;
        pyb_raisef(BYOC_EINVAL,
                   "out: found an array for \"%s\", which is not an output of "
                   "this run, expected names of outputs that the run returns",
                   name);
        return -1;
    }
    return 0;
}

/* --- running -------------------------------------------------------------- */

/* The object for output k of the request. */
static PyObject *make_object(struct pyb_job *job, uint32_t k)
{
    if (job->results[k].array)
        return Py_NewRef(job->results[k].array);
    const uint32_t i = byoc_model_output_index(job->m->model, job->out[k].name);
    return pyb_value_write(byoc_model_output(job->m->model, i),
                           &job->out[k].value);
}

static PyObject *list_results(struct pyb_job *job)
{
    PyObject *list = PyList_New((Py_ssize_t)job->request.n_outputs);
    for (uint32_t k = 0; list && k < job->request.n_outputs; k++) {
        PyObject *object = make_object(job, k);
        if (!object || PyList_SetItem(list, (Py_ssize_t)k, object))
            Py_CLEAR(list);
    }
    return list;
}

static int run_now(struct pyb_job *job)
{
    struct byoc_error err;
    enum byoc_status status;
    if (start_events(job))
        return -1;
    Py_BEGIN_ALLOW_THREADS status =
        byoc_run_request(job->state, &job->request, &err);
    Py_END_ALLOW_THREADS return status ? (pyb_raise(status, err.text), -1) : 0;
}

PyObject *pyb_model_call(PyObject *self, PyObject *args, PyObject *named)
{
    struct pyb_job *job = take_job((struct pyb_model *)self);
    PyObject *results = NULL;
    if (!job)
        return NULL;
    int outcome = bind_positions(job, args);
    if (!outcome && named)
        outcome = bind_feeds(job, named);
    if (!outcome)
        outcome = bind_all_outputs(job, NULL);
    if (outcome >= 0 && run_now(job) == 0)
        results = job->request.n_outputs == 1 ? make_object(job, 0)
                                              : list_results(job);
    return_job(job);
    return results;
}

/* Take a job and bind its inputs and outputs, for run() and submit(). Returns
 * NULL with an exception if that fails. */
static struct pyb_job *prepare_job(PyObject *self, PyObject *names,
                                   PyObject *feeds, PyObject *out,
                                   PyObject *tag)
{
    struct pyb_job *job = take_job((struct pyb_model *)self);
    if (!job)
        return NULL;
    int outcome = bind_feeds(job, feeds);
    if (!outcome)
        outcome = names == Py_None ? bind_all_outputs(job, out)
                                   : bind_names(job, names, out);
    if (!outcome && out)
        outcome = check_out(job, out);
    if (outcome >= 0 && tag != Py_None) {
        job->tag = Py_NewRef(tag);
        job->request.tag = PyUnicode_AsUTF8AndSize(tag, NULL);
        outcome = job->request.tag ? outcome : -1;
    }
    if (outcome >= 0)
        return job;
    return_job(job);
    return NULL;
}

/* --- asynchronous runs ---------------------------------------------------- */

/* The callback of byoc_run_async: call `done`. A thread of the model calls it,
 * once. */
static void end_run(void *ctx, struct byoc_state *state,
                    enum byoc_status status, const struct byoc_error *err)
{
    struct pyb_job *job = ctx;
    PyObject *results, *error = NULL, *type, *trace, *answer;
    (void)state;
    PyGILState_STATE gil = PyGILState_Ensure();
    in_callback = true;
    results = status ? pyb_raise(status, err->text) : list_results(job);
    if (!results) {
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        Py_XDECREF(type);
        Py_XDECREF(trace);
    }
    PyObject *done = Py_NewRef(job->done);
    return_job(job); /* before the call, so that a run that `done` starts can
                      * use the job */
    answer = PyObject_CallFunctionObjArgs(done, results ? results : Py_None,
                                          error ? error : Py_None, NULL);
    if (!answer)
        PyErr_WriteUnraisable(done);
    Py_XDECREF(answer);
    Py_DECREF(done);
    Py_XDECREF(results);
    Py_XDECREF(error);
    in_callback = false;
    pyb_pending_add(-1);
    PyGILState_Release(gil);
}

/* Start the run of a job on another thread, which calls `done` at its end.
 * Returns the object of class Run, or NULL with an exception. Returns
 * the job to the model on failure. */
static PyObject *run_async(struct pyb_job *job, PyObject *done)
{
    struct byoc_error err;
    enum byoc_status status;
    struct run *run = PyObject_New(struct run, run_type);
    if (!run || start_events(job)) {
        Py_XDECREF((PyObject *)run);
        return_job(job);
        return NULL;
    }
    run->job = job;
    job->handle = run;
    job->done = Py_NewRef(done);
    status = byoc_run_async(job->state, &job->request, end_run, job, &err);
    if (status == BYOC_OK) {
        pyb_pending_add(1);
        return (PyObject *)run;
    }
    return_job(job);
    Py_DECREF((PyObject *)run);
    return pyb_raise(status, err.text);
}

/* run(names, feeds, out=None, tag=None, done=None) */
PyObject *pyb_model_run(PyObject *self, PyObject *args, PyObject *named)
{
    static const char *const keys[] = {"names", "feeds", "out",
                                       "tag",   "done",  NULL};
    PyObject *names, *feeds, *out = Py_None, *tag = Py_None, *done = Py_None;
    PyObject *results = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO!|OOO", (char **)keys,
                                     &names, &PyDict_Type, &feeds, &out, &tag,
                                     &done))
        return NULL;
    if (out != Py_None && !PyDict_Check(out))
        return PyErr_Format(PyExc_TypeError, "out: found %R, expected a dict",
                            out);
    struct pyb_job *job =
        prepare_job(self, names, feeds, out == Py_None ? NULL : out, tag);
    if (!job)
        return NULL;
    if (done != Py_None)
        return run_async(job, done);
    if (run_now(job) == 0)
        results = list_results(job);
    return_job(job);
    return results;
}

/* Run.cancel(). Returns False if the run has ended. */
static PyObject *run_cancel(PyObject *self, PyObject *unused)
{
    struct pyb_job *job = ((struct run *)self)->job;
    (void)unused;
    if (job) {
        job->discard = true;
        byoc_state_cancel(job->state);
    }
    return PyBool_FromLong(job != NULL);
}

static void run_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct pyb_job *job = ((struct run *)self)->job;
    if (job)
        job->handle = NULL;
    PyObject_Free(self);
    Py_DECREF(type);
}

int pyb_run_register(PyObject *module)
{
    static PyMethodDef methods[] = {{"cancel", run_cancel, METH_NOARGS,
                                     "cancel()\n--\n\nEnd the run early. "
                                     "Returns False if it has ended already."},
                                    {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "A run of Model.submit()."},
                                  {Py_tp_dealloc, run_free},
                                  {Py_tp_methods, methods},
                                  {0}};
    static PyType_Spec spec = {.name = "byoc.Run",
                               .basicsize = sizeof(struct run),
                               .flags = Py_TPFLAGS_DEFAULT |
                                        Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                        Py_TPFLAGS_IMMUTABLETYPE,
                               .slots = slots};
    run_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return run_type ? PyModule_AddType(module, run_type) : -1;
}
