/* SPDX-License-Identifier: Apache-2.0 */
/* bound_recorder.c: a plug-in that wraps oneDNN's. It forwards every call to
 * libbyoc_backend_dnnl.so in its own folder, and records which compiled region
 * ran with which state, and for how long.
 */
#include "bench/bound.h"
#include "core/base/base.h"
#include "core/base/clock.h"

#include <dlfcn.h>
#include <string.h>

extern struct bound_record bound_record;
BYOC_API struct bound_record bound_record;

static struct byoc_backend
    recorder; /* a copy of oneDNN's struct; only `run` differs */
static struct byoc_fail *(*run_wrapped)(const struct byoc_host *host,
                                        void *compiled, void *state,
                                        const struct byoc_run_args *args);

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    const struct bound_call call = {
        .compiled = compiled, .state = state, .outputs = args->outputs};
    BYI_PUSH(&bound_record, call);
    const uint64_t begin = byi_now_ns();
    struct byoc_fail *fail = run_wrapped(host, compiled, state, args);
    bound_record.ns += byi_now_ns() - begin;
    return fail;
}

/* Open oneDNN's plug-in, which is never closed. Returns its query function, or
 * NULL on failure. */
static byoc_backend_query_fn open_wrapped(void)
{
    static const char name[] = "libbyoc_backend_dnnl.so";
    char path[4096];
    Dl_info info;
    if (!dladdr(&bound_record, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    const int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    snprintf(path, sizeof path, "%.*s%s", folder, info.dli_fname, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, BYOC_BACKEND_QUERY) : NULL;
    byoc_backend_query_fn wrapped;
    memcpy(&wrapped, &symbol, sizeof wrapped); /* void * to function */
    return wrapped;
}

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    const byoc_backend_query_fn query_wrapped = open_wrapped();
    if (!query_wrapped) {
        const char *message = dlerror();
        snprintf(why, why_bytes, "%s",
                 message ? message
                         : "bound_recorder.so: found no path of this library");
        return NULL;
    }
    const struct byoc_backend *wrapped = query_wrapped(host, why, why_bytes);
    if (!wrapped)
        return NULL;
    recorder = *wrapped; /* both plug-ins use the same version of the struct */
    run_wrapped = wrapped->run;
    recorder.run = run;
    return &recorder;
}

BYOC_BACKEND_DEFINE(query)
