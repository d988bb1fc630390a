/* SPDX-License-Identifier: Apache-2.0 */
/* extract.c: `byoc extract`: writes one region of a model to a folder, and
 * reduces it on request.
 */
#include "cli.h"

#include "codegen_json/codegen_json.h"
#include "driver/feed.h"
#include "driver/compiled.h"
#include "extract/extract.h"
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

/* The region to extract. */
struct region {
    uint32_t number;
    struct byi_arena *arena; /* of inputs and constants */
    struct byi_tensor in[BYI_EXTRACT_MAX_IO];
    uint32_t n_in;
    bool seen;            /* the run reached the region: n_in and `in` are set,
                           * `in` only if n_in is within its limit */
    struct byi_text json; /* the region, as its backend receives it */
    struct byi_tensor *consts;
    uint32_t n_consts;
    const char *backend;
};

/* Copy the region's operands when the run reaches it for the first time. */
static void keep_inputs(void *ctx, uint32_t number, uint32_t n,
                        const struct byi_tensor *const *in)
{
    struct region *r = ctx;
    if (number != r->number || r->seen)
        return;
    r->seen = true;
    r->n_in = n;
    for (uint32_t i = 0; i < n && n <= BYI_EXTRACT_MAX_IO; i++) {
        r->in[i] = *in[i];
        r->in[i].data = byi_arena_copy(r->arena, in[i]->data,
                                       (size_t)byi_tensor_bytes(in[i]));
    }
}

/* Run the model once; keep_inputs copies the region's operands. */
static enum byoc_status run_once(const struct byoc_model *model,
                                 const struct byi_feed_params *given,
                                 const char *const *dims, struct region *r,
                                 struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_feed_params params = *given;
    params.dims = dims;
    struct byi_feed in, out = byi_feed_outputs(model, arena);
    struct byoc_state *state = NULL;
    enum byoc_status status = byi_feed_inputs(model, &params, arena, &in, err);
    if (status == BYOC_OK)
        status = byoc_state_new(model, &state, err);
    if (status == BYOC_OK) {
        byoc_internal_state_watch_regions(state, keep_inputs, r);
        status = byoc_run(state, in.views, in.n, out.views, out.n, err);
    }
    byoc_state_free(&state);
    byi_arena_free(&arena);
    if (status == BYOC_OK && !r->seen)
        status = byi_fail(err, BYOC_EINVAL,
                          "region %u: found no run of the region with these "
                          "inputs, expected one; give inputs for which the "
                          "model takes its branch or enters its loop",
                          r->number);
    if (status == BYOC_OK && r->n_in > BYI_EXTRACT_MAX_IO)
        status = byi_fail(err, BYOC_ELIMIT,
                          "region %u: found %u operands, expected at most %d",
                          r->number, r->n_in, BYI_EXTRACT_MAX_IO);
    return status;
}

/* Read the region of a model compiled in memory: serialise its function. */
static enum byoc_status read_compiled(const struct byoc_compiled *compiled,
                                      struct region *r, struct byoc_error *err)
{
    const struct byi_module *m = byi_compiled_module(compiled);
    uint32_t n = 0, *consts;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->dead || !m->funcs.at[i]->attr.compiler ||
            n++ != r->number)
            continue;
        r->backend = byi_arena_str(r->arena, m->funcs.at[i]->attr.compiler);
        BYI_TRY(byi_region_write(m, i, r->arena, &r->json, &consts,
                                 &r->n_consts, err));
        r->consts = byi_arena_calloc(r->arena, r->n_consts, sizeof *r->consts);
        for (uint32_t k = 0; k < r->n_consts; k++) {
            const struct byi_const *c = &m->consts.at[consts[k]];
            struct byi_tensor *t = &r->consts[k];
            *t = (struct byi_tensor){.dtype = c->type->dtype,
                                     .rank = c->type->rank,
                                     .data = (void *)(uintptr_t)c->data};
            memcpy(t->dims, c->type->dims, t->rank * sizeof *t->dims);
        }
        return BYOC_OK;
    }
    if (n == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "--region %u: found no regions, expected at least one; "
                        "`byoc check` says why",
                        r->number);
    return byi_fail(err, BYOC_EINVAL,
                    "--region %u: found %u region%s in the model, expected a "
                    "number from 0 to %u; `byoc check` lists them",
                    r->number, n, byi_plural(n), n - 1);
}

/* Read the region from an artifact. */
static enum byoc_status read_loaded(const struct byoc_model *model,
                                    struct region *r, struct byoc_error *err)
{
    struct byi_region_facts facts;
    BYI_TRY(byoc_internal_region(model, r->number, r->arena, &facts, err));
    r->backend = facts.backend;
    byi_text_add(&r->json, facts.blob, facts.blob_bytes);
    if (facts.blob_bytes == 0 || facts.blob[0] != '{')
        return byi_fail(err, BYOC_EINVAL,
                        "region %u: found a blob that %s compiled, expected "
                        "the region's JSON; extract the region from the "
                        "ONNX model",
                        r->number, facts.backend);
    r->n_consts = facts.n_consts;
    r->consts = byi_arena_calloc(r->arena, r->n_consts, sizeof *r->consts);
    for (uint32_t k = 0; k < r->n_consts; k++)
        r->consts[k] = *facts.consts[k];
    return BYOC_OK;
}

/* Open the model, and set *r to the region and its inputs. */
static enum byoc_status find_region(const char *path,
                                    struct byi_model_options *o,
                                    const struct byi_feed_params *feed,
                                    struct byi_open_model *open,
                                    struct region *r, struct byoc_error *err)
{
    o->twins = true; /* native kernels compute the region's operands */
    BYI_TRY(byi_open_model(path, o, open, err));
    BYI_TRY(open->compiled ? read_compiled(open->compiled, r, err)
                           : read_loaded(open->model, r, err));
    return run_once(open->model, feed, open->dims, r, err);
}

/* Print a line about the reduction. */
static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "byoc extract: %s\n", line);
}

static enum byoc_status extract(const char *path, struct byi_model_options *o,
                                const struct byi_feed_params *feed,
                                struct byi_region_reduction *reduce,
                                const char *folder, struct region *r,
                                struct byoc_error *err)
{
    struct byi_open_model open = {0};
    struct byi_extract x = {.n_in = 0};
    enum byoc_status status = find_region(path, o, feed, &open, r, err);
    if (status == BYOC_OK)
        status = byi_region_module(r->json.at, r->json.n, r->consts,
                                   r->n_consts, &x.m, err);
    if (status == BYOC_OK) {
        x.arena = r->arena;
        x.n_in = r->n_in;
        x.in = r->in;
        x.json = &r->json;
        x.consts = r->consts;
        x.n_consts = r->n_consts;
        r->arena = NULL; /* the extract owns it now */
        /* reduction replaces the arena and the module, which own this string */
        char *backend = strdup(r->backend);
        x.backend = backend;
        if (reduce->test)
            status = byi_extract_reduce(&x, reduce, err);
        if (status == BYOC_OK)
            status = byi_extract_write(&x, folder, err);
        if (status == BYOC_OK)
            printf("%s: region %u of %s, for %s\n", folder, r->number, path,
                   backend);
        byi_extract_free(&x);
        free(backend);
    }
    byi_text_free(&r->json);
    byi_close_model(&open);
    return status;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_extract};
    struct byi_feed_params feed = {.seed = 1};
    struct byi_region_reduction reduce = {.progress = print_line};
    struct region region = {.n_in = 0};
    const char *folder = NULL, *path;
    bool reduces = false;
    uint32_t n;
    const struct byi_option options[] = {
        {"region", 0, BYI_OPTION_COUNT, &region.number, "N",
         "number of the region, from 0 (default: 0)"},
        {"output", 'o', BYI_OPTION_TEXT, &folder, "DIR", "folder to create"},
        {"reduce", 0, BYI_OPTION_FLAG, &reduces, NULL,
         "make the region smaller while --test fails"},
        {"test", 0, BYI_OPTION_TEXT, &reduce.test, "COMMAND",
         "shell command that fails while the fault is there; run in a copy of "
         "DIR"},
        {"max-tests", 0, BYI_OPTION_COUNT, &reduce.max_tests, "N",
         "maximum number of tests (default: 500)"},
        {"test-seconds", 0, BYI_OPTION_SECONDS, &reduce.seconds, "S",
         "time limit of one test (default: 60)"},
        {"input", 'i', BYI_OPTION_LIST, &feed.inputs, "NAME=FILE",
         "read an input from a .npy or .pb file"},
        {"data", 0, BYI_OPTION_TEXT, &feed.data, "DIR|PREFIX.",
         "read all inputs from input_K.npy or .pb there"},
        {"seed", 0, BYI_OPTION_COUNT, &feed.seed, "N",
         "seed of inputs without a file (default: 1)"},
        BYI_MODEL_OPTIONS(o),
    };
    int code =
        byi_parse_options(&byi_command_extract, options, BYI_COUNT(options),
                          argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    if (!folder || reduces != (reduce.test != NULL)) {
        fprintf(stderr, "byoc extract: found %s, expected %s\n",
                !folder   ? "no -o"
                : reduces ? "--reduce without --test"
                          : "--test without --reduce",
                !folder ? "-o DIR, the folder to create"
                        : "both: --reduce keeps a change if --test still "
                          "fails");
        return BYI_EXIT_USAGE;
    }
    feed.seeded = byi_option_is_given("seed");
    region.arena = byi_arena_new();
    struct byoc_error err;
    code = BYI_EXIT_OK;
    if (extract(path, &o, &feed, &reduce, folder, &region, &err) != BYOC_OK)
        code = byi_cli_print_error(&byi_command_extract, &err);
    byi_arena_free(&region.arena);
    return code;
}

const struct byi_command byi_command_extract = {
    .name = "extract",
    .usage = "MODEL.onnx|MODEL.so [--region N] -o DIR [OPTIONS]",
    .summary = "write one region of a model as a separate program",
    .example = "byoc extract digits.so --region 0 -o region_0\n",
    .steps = BYI_COMPILES | BYI_LOADS,
    .run = run,
};
