/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: compiles a model from the text form to an image in memory, and
 * compares its results with the interpreter's.
 */
#include "fixture.h"

#include <string.h>

#include "interp/interp.h"
#include "tests/compare.h"

enum { MAX_REGIONS = 64, MAX_IO = 64 };

static enum byoc_status write_regions(struct fixture *fixture,
                                      struct byi_plan_region *regions,
                                      uint32_t *n, struct byoc_error *err)
{
    for (uint32_t i = 0; i < fixture->m->funcs.n && *n < MAX_REGIONS; i++) {
        const struct byi_func *f = fixture->m->funcs.at[i];
        if (f->dead || !f->attr.compiler)
            continue;
        uint32_t *consts, n_consts;
        size_t before = fixture->blobs.n;
        BYI_TRY(byi_region_write(fixture->m, i, fixture->arena, &fixture->blobs,
                                 &consts, &n_consts, err));
        regions[(*n)++] =
            (struct byi_plan_region){.blob_bytes = fixture->blobs.n - before,
                                     .consts = consts,
                                     .n_consts = n_consts};
    }
    return BYOC_OK;
}

static uint32_t list_backends(const struct fixture *fixture,
                              struct byi_manifest_backend *backends)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fixture->m->funcs.n && n < MAX_REGIONS; i++) {
        const char *name = fixture->m->funcs.at[i]->attr.compiler;
        bool is_new = name != NULL;
        for (uint32_t k = 0; is_new && k < n; k++)
            is_new = strcmp(backends[k].name, name) != 0;
        if (!is_new)
            continue;
        backends[n++] = (struct byi_manifest_backend){
            .name = name,
            .version = "1",
            .compat = byi_arena_printf(fixture->arena, "%s-1", name)};
    }
    return n;
}

static enum byoc_status build(struct fixture *fixture, struct byoc_error *err)
{
    struct byi_plan_region regions[MAX_REGIONS];
    struct byi_manifest_backend backends[MAX_REGIONS];
    uint32_t n = 0;
    BYI_TRY(write_regions(fixture, regions, &n, err));
    const struct byi_plan_params params = {.regions = regions, .n_regions = n};
    BYI_TRY(byi_plan_write(fixture->m, &params, &fixture->plan, err));
    fixture->image = (struct byi_image){
        .plan = fixture->plan.json.at,
        .plan_bytes = fixture->plan.json.n,
        .ledger = "{}",
        .ledger_bytes = 2,
        .blobs = fixture->blobs.at,
        .blobs_bytes = fixture->blobs.n,
        .weights_bytes = fixture->plan.weights_bytes,
        .spans = byi_plan_spans(fixture->m, &fixture->plan, fixture->arena),
        .n_spans = fixture->plan.consts.n,
    };
    struct byi_manifest manifest = {
        .name = "test",
        .backends = backends,
        .n_backends = list_backends(fixture, backends),
        .hashes = true,
    };
    BYI_TRY(byi_manifest_write(fixture->m, &manifest, &fixture->image,
                               &fixture->manifest, err));
    fixture->image.manifest = fixture->manifest.at;
    fixture->image.manifest_bytes = fixture->manifest.n;
    return BYOC_OK;
}

enum byoc_status fixture_open_module(struct fixture *fixture,
                                     struct byi_module **m,
                                     struct byoc_error *err)
{
    *fixture = (struct fixture){.m = *m, .arena = byi_arena_new()};
    *m = NULL;
    enum byoc_status status = build(fixture, err);
    if (status != BYOC_OK)
        fixture_close(fixture);
    return status;
}

enum byoc_status fixture_open(struct fixture *fixture, const char *ir,
                              struct byoc_error *err)
{
    struct byi_module *m = NULL;
    BYI_TRY(byi_parse_module(ir, strlen(ir), "test", NULL, &m, err));
    return fixture_open_module(fixture, &m, err);
}

void fixture_close(struct fixture *fixture)
{
    byi_plan_free(&fixture->plan);
    byi_text_free(&fixture->blobs);
    byi_text_free(&fixture->manifest);
    if (fixture->m)
        byi_module_free(&fixture->m);
    byi_arena_free(&fixture->arena);
}

static enum byoc_status compare(const DLTensor *found,
                                struct byi_tensor *expected,
                                struct byoc_error *err)
{
    struct byi_tensor t = *expected;
    if ((uint32_t)found->ndim != expected->rank)
        return byi_fail(err, BYOC_EINTERNAL, "found rank %d, expected %u",
                        found->ndim, expected->rank);
    memcpy(t.dims, found->shape, expected->rank * sizeof *t.dims);
    t.data = found->data;
    return compare_tensors(&t, expected, 1e-5, 1e-6, err);
}

static enum byoc_status run(struct fixture *fixture, struct byoc_state *state,
                            uint64_t seed, bool caller_memory,
                            struct byi_arena *arena, struct byoc_error *err)
{
    uint32_t main = byi_func_find(fixture->m, "main");
    const struct byi_func *f = fixture->m->funcs.at[main];
    struct byi_tensor in[MAX_IO], expected[MAX_IO];
    DLTensor inputs[MAX_IO], outputs[MAX_IO] = {0};
    for (uint32_t i = 0; i < f->params.n; i++) {
        if (!byi_interp_random(f->nodes.at[f->params.at[i]].type, seed + i,
                               arena, &in[i]))
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "input %u: cannot draw random values of its type",
                            i);
        inputs[i] = view_of(&in[i]);
    }
    uint32_t n_out = 0;
    BYI_TRY(byi_interp_run(fixture->m, main, in, f->params.n, arena, expected,
                           MAX_IO, &n_out, err));
    struct byi_tensor caller_outputs[MAX_IO];
    for (uint32_t i = 0; i < n_out && caller_memory; i++) {
        caller_outputs[i] = expected[i];
        caller_outputs[i].data =
            byi_arena_alloc(arena, byi_tensor_bytes(&expected[i]) + 1);
        outputs[i] = view_of(&caller_outputs[i]);
    }
    BYI_TRY(byoc_run(state, inputs, f->params.n, outputs, n_out, err));
    for (uint32_t i = 0; i < n_out; i++)
        BYI_TRY(compare(&outputs[i], &expected[i], err));
    return BYOC_OK;
}

enum byoc_status fixture_run(struct fixture *fixture, struct byoc_state *state,
                             uint64_t seed, bool caller_memory,
                             struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    enum byoc_status status =
        run(fixture, state, seed, caller_memory, arena, err);
    byi_arena_free(&arena);
    return status;
}
