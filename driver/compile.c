/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c: the entry points of a compile: in this process (pipeline.c), or in
 * a child process (isolated.c).
 */
#include "compiled.h"

#include "core/base/guard.h"

/* The arguments and the result of compile_all. */
struct compile_args {
    const struct byi_model_source *source;
    const struct byoc_compile_params *params;
    struct byoc_compiled *c;
};

/* Compile in this process or in a child. byi_guarded() calls this. */
static enum byoc_status compile_all(void *arg, struct byoc_error *err)
{
    struct compile_args *args = arg;
    if (args->params->isolate)
        return byi_compile_isolated(args->source, args->params, &args->c, err);
    return byi_compile_here(args->source, args->params, NULL, 0, &args->c, err);
}

static enum byoc_status compile_model(const struct byi_model_source *source,
                                      const struct byoc_compile_params *params,
                                      struct byoc_compiled **compiled,
                                      struct byoc_error *err)
{
    struct byoc_compile_params full_params;
    struct compile_args args = {.source = source, .params = &full_params};
    struct byi_guard guard;
    *compiled = NULL;
    BYI_TRY(byi_compile_params_read(&full_params, params, err));
    const enum byoc_status status =
        byi_guarded(&guard, compile_all, &args, err);
    if (status != BYOC_OK)
        byoc_compiled_free(&args.c);
    *compiled = args.c;
    byi_guard_leave(&guard);
    return status;
}

enum byoc_status byoc_compile(const char *path,
                              const struct byoc_compile_params *params,
                              struct byoc_compiled **compiled,
                              struct byoc_error *err)
{
    const struct byi_model_source source = {.path = path};
    return compile_model(&source, params, compiled, err);
}

enum byoc_status byoc_compile_memory(const void *data, uint64_t bytes,
                                     const char *name,
                                     const struct byoc_compile_params *params,
                                     struct byoc_compiled **compiled,
                                     struct byoc_error *err)
{
    const struct byi_model_source source = {
        .path = name, .data = data ? data : "", .bytes = data ? bytes : 0};
    return compile_model(&source, params, compiled, err);
}
