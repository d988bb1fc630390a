/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: see fixture.h. */
#include "fixture.h"

#include <string.h>

#include "interp/interp.h"
#include "tests/compare.h"

enum { MAX_REGIONS = 64, MAX_IO = 64 };

static enum byoc_status write_regions(struct fixture *x,
                                      struct byi_plan_region *regions,
                                      uint32_t *n, struct byoc_error *err)
{
    for (uint32_t i = 0; i < x->m->funcs.n && *n < MAX_REGIONS; i++) {
        const struct byi_func *f = x->m->funcs.at[i];
        if (f->dead || !f->attr.compiler)
            continue;
        uint32_t *consts, n_consts;
        size_t before = x->blobs.n;
        BYI_TRY(byi_region_write(x->m, i, x->arena, &x->blobs, &consts,
                                 &n_consts, err));
        regions[(*n)++] =
            (struct byi_plan_region){.blob_bytes = x->blobs.n - before,
                                     .consts = consts,
                                     .n_consts = n_consts};
    }
    return BYOC_OK;
}

static uint32_t list_backends(const struct fixture *x,
                              struct byi_manifest_backend *backends)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->m->funcs.n && n < MAX_REGIONS; i++) {
        const char *name = x->m->funcs.at[i]->attr.compiler;
        bool fresh = name != NULL;
        for (uint32_t k = 0; fresh && k < n; k++)
            fresh = strcmp(backends[k].name, name) != 0;
        if (!fresh)
            continue;
        backends[n++] = (struct byi_manifest_backend){
            .name = name,
            .version = "1",
            .compat = byi_arena_printf(x->arena, "%s-1", name)};
    }
    return n;
}

static enum byoc_status build(struct fixture *x, struct byoc_error *err)
{
    struct byi_plan_region regions[MAX_REGIONS];
    struct byi_manifest_backend backends[MAX_REGIONS];
    uint32_t n = 0;
    BYI_TRY(write_regions(x, regions, &n, err));
    const struct byi_plan_params params = {.regions = regions, .n_regions = n};
    BYI_TRY(byi_plan_write(x->m, &params, &x->plan, err));
    x->image = (struct byi_image){
        .plan = x->plan.json.at,
        .plan_bytes = x->plan.json.n,
        .ledger = "{}",
        .ledger_bytes = 2,
        .blobs = x->blobs.at,
        .blobs_bytes = x->blobs.n,
        .weights_bytes = x->plan.weights_bytes,
        .spans = byi_plan_spans(x->m, &x->plan, x->arena),
        .n_spans = x->plan.consts.n,
    };
    struct byi_manifest manifest = {
        .name = "test",
        .backends = backends,
        .n_backends = list_backends(x, backends),
        .hashes = true,
    };
    BYI_TRY(byi_manifest_write(x->m, &manifest, &x->image, &x->manifest, err));
    x->image.manifest = x->manifest.at;
    x->image.manifest_bytes = x->manifest.n;
    return BYOC_OK;
}

enum byoc_status fixture_of(struct fixture *x, struct byi_module **m,
                            struct byoc_error *err)
{
    *x = (struct fixture){.m = *m, .arena = byi_arena_new()};
    *m = NULL;
    enum byoc_status status = build(x, err);
    if (status != BYOC_OK)
        fixture_close(x);
    return status;
}

enum byoc_status fixture_open(struct fixture *x, const char *ir,
                              struct byoc_error *err)
{
    struct byi_module *m = NULL;
    BYI_TRY(byi_parse_module(ir, strlen(ir), "test", NULL, &m, err));
    return fixture_of(x, &m, err);
}

void fixture_close(struct fixture *x)
{
    byi_plan_free(&x->plan);
    byi_text_free(&x->blobs);
    byi_text_free(&x->manifest);
    if (x->m)
        byi_module_free(&x->m);
    byi_arena_free(&x->arena);
}

static enum byoc_status compare(const DLTensor *found, struct byi_tensor *want,
                                struct byoc_error *err)
{
    struct byi_tensor t = *want;
    if ((uint32_t)found->ndim != want->rank)
        return byi_fail(err, BYOC_EINTERNAL, "found rank %d, expected %u",
                        found->ndim, want->rank);
    memcpy(t.dims, found->shape, want->rank * sizeof *t.dims);
    t.data = found->data;
    return compare_tensors(&t, want, 1e-5, 1e-6, err);
}

static enum byoc_status run(struct fixture *x, struct byoc_state *state,
                            uint64_t seed, bool memory, struct byi_arena *arena,
                            struct byoc_error *err)
{
    uint32_t main = byi_func_find(x->m, "main");
    const struct byi_func *f = x->m->funcs.at[main];
    struct byi_tensor in[MAX_IO], want[MAX_IO];
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
    BYI_TRY(byi_interp_run(x->m, main, in, f->params.n, arena, want, MAX_IO,
                           &n_out, err));
    struct byi_tensor mine[MAX_IO];
    for (uint32_t i = 0; i < n_out && memory; i++) {
        mine[i] = want[i];
        mine[i].data = byi_arena_alloc(arena, byi_tensor_bytes(&want[i]) + 1);
        outputs[i] = view_of(&mine[i]);
    }
    BYI_TRY(byoc_run(state, inputs, f->params.n, outputs, n_out, err));
    for (uint32_t i = 0; i < n_out; i++)
        BYI_TRY(compare(&outputs[i], &want[i], err));
    return BYOC_OK;
}

enum byoc_status fixture_run(struct fixture *x, struct byoc_state *state,
                             uint64_t seed, bool memory, struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    enum byoc_status status = run(x, state, seed, memory, arena, err);
    byi_arena_free(&arena);
    return status;
}
