/* SPDX-License-Identifier: Apache-2.0 */
/* ort.c: opens ONNX Runtime at run time, so that the program can be built
 * without it. Calls it through its versioned function table (OrtGetApiBase, ABI
 * version 1, to which new versions only append).
 */
#include "fuzz.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Indices of functions in the table of version 1. */
enum {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION_FROM_BYTES = 8,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_LOG_SEVERITY = 22,
    SET_OPTIMIZATION_LEVEL = 23,
    SET_INTRA_THREADS = 24,
    CREATE_TENSOR_OF_STRINGS = 48,
    CREATE_TENSOR = 49,
    GET_DATA = 51,
    FILL_STRINGS = 52,
    STRINGS_LENGTH = 53,
    GET_STRINGS = 54,
    GET_ELEMENT_TYPE = 60,
    GET_N_DIMS = 61,
    GET_DIMS = 62,
    GET_TYPE_AND_SHAPE = 65,
    CREATE_CPU_MEMORY_INFO = 69,
    DEFAULT_ALLOCATOR = 78,
    RELEASE_STATUS = 93,
    RELEASE_SESSION = 95,
    RELEASE_VALUE = 96,
    RELEASE_SHAPE = 99
};

enum { LOG_FATAL = 4 }; /* a log severity: only fatal errors are logged */

typedef void *(*ort_fn)(); /* every entry is called with its own arguments */

/* The beginning of ONNX Runtime's OrtApiBase. */
struct fuzz_ort_base {
    const ort_fn *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

static const ort_fn *api;
static void *env, *options, *memory, *allocator;

static bool failed(void *status, char *why, size_t why_bytes)
{
    if (!status)
        return false;
    snprintf(why, why_bytes, "%s",
             (const char *)api[GET_ERROR_MESSAGE](status));
    api[RELEASE_STATUS](status);
    return true;
}

bool ort_open(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const struct fuzz_ort_base *(*base)(void);
    void *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    char why[256];

    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    memcpy(&base, &symbol, sizeof base);
    api = base()->get_api(1);
    if (!failed(api[CREATE_ENV](LOG_FATAL, "fuzz", &env), why, sizeof why) &&
        !failed(api[CREATE_SESSION_OPTIONS](&options), why, sizeof why) &&
        !failed(api[SET_LOG_SEVERITY](options, LOG_FATAL), why, sizeof why) &&
        !failed(api[SET_OPTIMIZATION_LEVEL](options, 0), why, sizeof why) &&
        !failed(api[SET_INTRA_THREADS](options, 1), why, sizeof why) &&
        !failed(api[CREATE_CPU_MEMORY_INFO](1, 0, &memory), why, sizeof why) &&
        !failed(api[DEFAULT_ALLOCATOR](&allocator), why, sizeof why))
        return true;
    fprintf(stderr, "%s: %s\n", library, why);
    return false;
}

/* Read strings, which ONNX Runtime returns as one block of bytes with the
 * offset of each string. */
static bool take_strings(void *value, struct byi_arena *arena,
                         struct byi_tensor *t, char *why, size_t why_bytes)
{
    const size_t n = (size_t)byi_elements(t->rank, t->dims);
    const char **at = byi_arena_calloc(arena, n + 1, sizeof *at);
    size_t *starts = byi_arena_calloc(arena, n + 1, sizeof *starts);
    size_t bytes = 0;

    t->data = at;
    if (failed(api[STRINGS_LENGTH](value, &bytes), why, why_bytes))
        return false;
    char *text = byi_arena_calloc(arena, bytes + 1, 1);
    if (n &&
        failed(api[GET_STRINGS](value, text, bytes, starts, n), why, why_bytes))
        return false;
    starts[n] = bytes;
    for (size_t i = 0; i < n; i++)
        at[i] = byi_arena_printf(
            arena, "%.*s", (int)(starts[i + 1] - starts[i]), text + starts[i]);
    return true;
}

/* Make a value of ONNX Runtime from a tensor. */
static bool make_value(const struct byi_tensor *t, void **value, char *why,
                       size_t why_bytes)
{
    if (t->dtype != BYOC_STRING)
        return !failed(
            api[CREATE_TENSOR](memory, t->data, (size_t)byi_tensor_bytes(t),
                               t->dims, (size_t)t->rank, (int)t->dtype, value),
            why, why_bytes);
    return !failed(api[CREATE_TENSOR_OF_STRINGS](allocator, t->dims,
                                                 (size_t)t->rank, (int)t->dtype,
                                                 value),
                   why, why_bytes) &&
           !failed(api[FILL_STRINGS](*value, t->data,
                                     (size_t)byi_elements(t->rank, t->dims)),
                   why, why_bytes);
}

/* Copy a result to a tensor in the arena. */
static bool copy_result(void *value, struct byi_arena *arena,
                        struct byi_tensor *t, char *why, size_t why_bytes)
{
    void *shape = NULL, *data = NULL;
    int type = 0;
    size_t rank = 0;

    if (failed(api[GET_TYPE_AND_SHAPE](value, &shape), why, why_bytes))
        return false;
    api[GET_ELEMENT_TYPE](shape, &type);
    api[GET_N_DIMS](shape, &rank);
    *t = (struct byi_tensor){.dtype = (enum byoc_dtype)type,
                             .rank = (uint32_t)rank};
    if (rank <= BYI_MAX_RANK)
        api[GET_DIMS](shape, t->dims, rank);
    api[RELEASE_SHAPE](shape);
    if (rank > BYI_MAX_RANK)
        return false;
    if (type == BYOC_STRING)
        return take_strings(value, arena, t, why, why_bytes);
    const size_t bytes = (size_t)byi_tensor_bytes(t);
    t->data = byi_arena_alloc(arena, bytes + 8);
    if (bytes && failed(api[GET_DATA](value, &data), why, why_bytes))
        return false;
    if (bytes)
        memcpy(t->data, data, bytes);
    return true;
}

bool ort_run(const void *model, size_t n, const struct draw *d,
             struct byi_arena *arena, struct byi_tensor *out, uint32_t *n_out,
             char *why, size_t why_bytes)
{
    void *session = NULL, *in[MAX_OPERANDS] = {0}, *found[MAX_RESULTS] = {0};
    const char *in_names[MAX_OPERANDS], *out_names[MAX_RESULTS];
    uint32_t n_in = 0;
    bool ok = !failed(
        api[CREATE_SESSION_FROM_BYTES](env, model, n, options, &session), why,
        why_bytes);

    for (uint32_t i = 0; i < d->n && ok; i++) {
        const struct byi_tensor *t = &d->in[i];
        if (d->constant[i])
            continue;
        in_names[n_in] = byi_arena_printf(arena, "x%u", i);
        ok = make_value(t, &in[n_in++], why, why_bytes);
    }
    *n_out = (uint32_t)d->graph->n_output;
    for (uint32_t i = 0; i < *n_out; i++)
        out_names[i] = d->graph->output[i]->name;
    ok = ok && !failed(api[RUN](session, (void *)0, in_names, in, (size_t)n_in,
                                out_names, (size_t)*n_out, found),
                       why, why_bytes);
    for (uint32_t i = 0; i < *n_out && ok; i++)
        ok = copy_result(found[i], arena, &out[i], why, why_bytes);
    for (uint32_t i = 0; i < *n_out; i++)
        if (found[i])
            api[RELEASE_VALUE](found[i]);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i])
            api[RELEASE_VALUE](in[i]);
    if (session)
        api[RELEASE_SESSION](session);
    return ok;
}
