/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: a program written before struct_size, symbol versions and enums:
 * compiled against the headers in tests/abi/host-0.1, and linked with libraries
 * without versions (stubs.c). It must run with the current libraries, or get an
 * error from them.
 *     host RELU.ir
 */
#include <byoc/byoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/folder.h"

static struct byoc_error err;
static char path[4096], lines[4096];

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, err.text);
    exit(1);
}

static void keep_line(void *ctx, const char *line)
{
    const size_t n = strlen(ctx);
    snprintf((char *)ctx + n, sizeof lines - n, "%s\n", line);
}

/* Compile with members that this old struct has; those after the place where
 * the struct of today has struct_size are at other offsets today. */
static void compile(const char *model)
{
    static const char *const no_backends[] = {NULL};
    struct byoc_compile_params params = {.backends = no_backends,
                                         .opt_level = 1 + 3,
                                         .min_region_flops = 1,
                                         .isolate_bytes = 1 << 30,
                                         .threads = 1};
    struct byoc_compiled *c = NULL;
    check(!byoc_compile(model, &params, &c, &err) &&
              !byoc_compiled_write(c, path, &err),
          "compile");
    byoc_compiled_free(&c);
    check(!c, "free");
    /* a mode that was a string is refused, not misread */
    params.partition_by = "greedy";
    check(byoc_compile(model, &params, &c, &err) == BYOC_EINVAL &&
              strstr(err.text, "partition_by"),
          "a string for a mode");
}

static void run(struct byoc_model *model)
{
    struct byoc_state *state = NULL;
    float x[10], y[10];
    int64_t shape[] = {2, 5};
    DLTensor in = {.data = x,
                   .device = {kDLCPU, 0},
                   .ndim = 2,
                   .dtype = byoc_dtype_dlpack(BYOC_F32),
                   .shape = shape};
    DLTensor out = in;
    out.data = y;
    for (int i = 0; i < 10; i++)
        x[i] = (float)(i - 4);
    check(!byoc_state_new(model, &state, &err) &&
              !byoc_run(state, &in, 1, &out, 1, &err),
          "run");
    for (int i = 0; i < 10; i++)
        check(y[i] == (x[i] > 0 ? x[i] : 0), "values");
    byoc_state_cancel(state);
    check(byoc_run(state, &in, 1, &out, 1, &err) == BYOC_ECANCELLED, "cancel");
    byoc_state_free(&state);
}

int main(int argc, char **argv)
{
    struct byoc_load_params params = {
        .threads = 1, .log = keep_line, .log_ctx = lines, .cache_shapes = 3};
    struct byoc_model *model = NULL;
    struct byoc_cache_stats stats;
    const char *folder = make_test_folder(NULL);
    check(argc == 2 && folder, "usage: host RELU.ir");
    snprintf(path, sizeof path, "%s/abi_host.so", folder);
    compile(argv[1]);
    check(!byoc_model_load(path, &params, &model, &err), "load");
    check(byoc_model_threads(model, NULL) == 1, "threads");
    check(strstr(lines, "threads 1") != NULL, lines);
    check(!strcmp(byoc_model_input(model, 0)->name, "x"), "name");
    byoc_model_cache(model, &stats);
    run(model);
    byoc_model_free(&model);
    check(!byoc_model_load(path, NULL, &model, &err), "load without params");
    run(model);
    byoc_model_free(&model);
    params.wait = (enum byoc_wait)9;
    check(byoc_model_load(path, &params, &model, &err) == BYOC_EINVAL && !model,
          "an unknown wait policy");
    puts("a program of byoc 0.1 runs");
    return 0;
}
