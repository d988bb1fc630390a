/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c: creates the frames of functions. A frame, the memory of one
 * activation, is one block. It has the tensors of its values, its arena, the
 * destinations of its results, and the views for backends. Each function has a
 * first frame; a recursion allocates more, which are kept for later calls up to
 * a limit.
 */
#include "state.h"

#include <string.h>

enum {
    MAX_SPARE_BYTES = 16 << 20 /* bytes of spare frames that a state keeps */
};

/* --- creating frames ------------------------------------------------------ */

/* Divides one block of memory into arrays: a first pass computes the size of
 * the block, a second one sets pointers into it. */
struct block_parts {
    char *at; /* NULL: only compute the size */
    uint64_t end;
};

/* Add an array of n elements of `size` bytes to the block. Returns its address;
 * NULL while only the size is computed. */
static void *reserve(struct block_parts *parts, uint64_t n, uint64_t size)
{
    void *at = parts->at ? parts->at + parts->end : NULL;
    parts->end += (n * size + 15) / 16 * 16;
    return at;
}

static bool runs_on_backend(const struct byi_specialisation *specialisation,
                            const struct byi_step *step)
{
    return step->kind == BYI_STEP_REGION &&
           specialisation->regions[step->callee].plugin;
}

/* Reserve the frame and its arrays in the block, and set the pointers in *fr.
 * The arena, which is aligned, comes after them. */
static void divide_block(const struct byi_specialisation *specialisation,
                         const struct byi_plan_func *f,
                         struct block_parts *parts, struct byi_frame *fr)
{
    reserve(parts, 1, sizeof *fr);
    fr->t = reserve(parts, f->n_values, sizeof *fr->t);
    fr->block = reserve(parts, f->n_values, sizeof *fr->block);
    fr->obj = reserve(parts, f->n_values, sizeof(void *));
    fr->dest = reserve(parts, f->n_outputs, sizeof *fr->dest);
    fr->planes = reserve(parts, f->n_values, sizeof *fr->planes);
    fr->dest_planes = reserve(parts, f->n_outputs, sizeof *fr->dest_planes);
    fr->views = reserve(parts, f->n_steps, sizeof(void *));
    for (uint32_t s = 0; s < f->n_steps; s++) {
        const struct byi_step *step = &f->steps[s];
        if (!runs_on_backend(specialisation, step))
            continue;
        void *views = reserve(parts, (uint64_t)step->n_in + step->n_out,
                              sizeof(struct byoc_view));
        if (parts->at)
            fr->views[s] = views;
    }
}

static void init_tensors(const struct byi_plan_tables *plan,
                         const struct byi_plan_func *f, struct byi_frame *fr,
                         char *arena)
{
    for (uint32_t v = 0; v < f->n_values; v++) {
        const struct byi_value *value = &f->values[v];
        const struct byi_value *root = &f->values[value->root];
        struct byi_tensor *t = &fr->t[v];
        t->dtype = value->type->dtype;
        t->rank = value->type->rank;
        for (uint32_t d = 0; value->fixed && d < t->rank; d++)
            t->dims[d] = value->type->dims[d];
        if (root->kind == BYI_V_CONST)
            t->data = plan->consts[root->index].view.data;
        if (root->kind == BYI_V_TEMP && root->fixed)
            t->data = arena + root->offset;
    }
}

static void init_view(struct byoc_view *view, const struct byi_tensor *t)
{
    *view = (struct byoc_view){.dtype = t->dtype,
                               .rank = t->rank,
                               .dims = t->dims,
                               .bytes = byi_tensor_bytes(t)};
}

/* Set dtype, dims and bytes of the views of regions' operands and results; each
 * run sets their data. */
static void init_views(const struct byi_plan_func *f, struct byi_frame *fr)
{
    for (uint32_t s = 0; s < f->n_steps; s++) {
        const struct byi_step *step = &f->steps[s];
        if (!fr->views[s])
            continue;
        for (uint32_t i = 0; i < step->n_in; i++)
            init_view(&fr->views[s][i], &fr->t[step->in[i]]);
        for (uint32_t i = 0; i < step->n_out; i++)
            init_view(&fr->views[s][step->n_in + i], &fr->t[step->out[i]]);
    }
}

/* Bytes of a frame of function `func`. Sets *arena_at to its
 * arena's offset. */
static uint64_t frame_bytes(const struct byi_specialisation *specialisation,
                            uint32_t func, uint64_t *arena_at)
{
    const struct byi_plan_func *f = &specialisation->plan->funcs[func];
    struct block_parts parts = {0};
    struct byi_frame unused;
    divide_block(specialisation, f, &parts, &unused);
    *arena_at = byi_align_bytes(parts.end);
    return *arena_at + f->arena + BYI_ALIGN;
}

struct byi_frame *byi_frame_new(const struct byi_specialisation *specialisation,
                                uint32_t func, struct byoc_error *err)
{
    const struct byi_plan_func *f = &specialisation->plan->funcs[func];
    uint64_t arena_at, bytes = frame_bytes(specialisation, func, &arena_at);
    struct block_parts parts = {
        .at = byi_memory_allocate(specialisation->model->memory, bytes)};
    if (!parts.at) {
        (void)byi_fail_memory(err, bytes, "a run");
        return NULL;
    }
    memset(parts.at, 0, arena_at);
    struct byi_frame *fr = (struct byi_frame *)(void *)parts.at;
    divide_block(specialisation, f, &parts, fr);
    fr->func = func;
    fr->bytes = bytes;
    init_tensors(specialisation->plan, f, fr, parts.at + arena_at);
    init_views(f, fr);
    return fr;
}

/* --- taking and returning frames ------------------------------------------ */

/* Create one more frame of a function whose first frame is active. */
static enum byoc_status make_extra(struct byoc_state *s, uint32_t func,
                                   struct byi_frame **frame,
                                   struct byoc_error *err)
{
    uint64_t arena_at, bytes = frame_bytes(s->specialisation, func, &arena_at);
    BYI_TRY(byi_pool_charge(&s->pool, bytes, err));
    *frame = byi_frame_new(s->specialisation, func, err);
    if (!*frame) {
        byi_pool_refund(&s->pool, bytes);
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for another call of @%s (%llu bytes), "
                        "nested in %u calls; try inputs for which the function "
                        "recurses less, or free memory",
                        s->specialisation->plan->funcs[func].name,
                        (unsigned long long)bytes, s->depth);
    }
    (*frame)->extra = true;
    return BYOC_OK;
}

enum byoc_status byi_frame_take(struct byoc_state *s, uint32_t func,
                                struct byi_frame **frame,
                                struct byoc_error *err)
{
    struct byi_frame *fr = s->work->frames[func];
    if (fr->active && s->work->spare[func]) {
        fr = s->work->spare[func];
        s->work->spare[func] = fr->next;
        s->work->spare_bytes -= fr->bytes;
    } else if (fr->active) {
        BYI_TRY(make_extra(s, func, &fr, err));
    }
    byi_frame_begin(s, fr);
    fr->at = 0;
    fr->up = NULL;
    fr->next = NULL;
    *frame = fr;
    return BYOC_OK;
}

void byi_frame_begin(const struct byoc_state *s, struct byi_frame *fr)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    if (fr->strided)
        memset(fr->planes, 0, f->n_values * sizeof *fr->planes);
    fr->strided = false;
    fr->active = true;
}

void byi_frame_drop(struct byoc_state *s, struct byi_frame *fr, uint32_t v)
{
    if (fr->block[v])
        byi_pool_drop(&s->pool, fr->block[v] - 1);
    fr->block[v] = 0;
    byi_object_release(s, fr->obj[v]);
    fr->obj[v] = NULL;
}

void byi_frame_release(struct byoc_state *s, struct byi_frame *fr)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    for (uint32_t v = 0; v < f->n_values; v++)
        if (fr->block[v] || fr->obj[v])
            byi_frame_drop(s, fr, v);
    byi_object_release(s, fr->self);
    fr->self = NULL;
    fr->active = false;
    if (!fr->extra)
        return;
    if (s->work->spare_bytes + fr->bytes > MAX_SPARE_BYTES) {
        byi_pool_refund(&s->pool, fr->bytes);
        byi_memory_release(s->model->memory, fr);
        return;
    }
    s->work->spare_bytes += fr->bytes;
    fr->next = s->work->spare[fr->func];
    s->work->spare[fr->func] = fr;
}

/* --- memory of values whose size varies --------------------------------- */

enum byoc_status byi_frame_block(struct byoc_state *s, struct byi_frame *fr,
                                 uint32_t v, struct byoc_error *err)
{
    uint64_t bytes = byi_tensor_bytes(&fr->t[v]);
    uint32_t block;
    BYI_TRY(byi_pool_take(&s->pool, bytes, &block, err));
    fr->block[v] = block + 1;
    fr->t[v].data = s->pool.at[block].at;
    return BYOC_OK;
}

enum byoc_status byi_frame_provide(struct byoc_state *s, struct byi_frame *fr,
                                   uint32_t v, struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    const struct byi_value *value = &f->values[v];
    if (value->kind == BYI_V_ALIAS) {
        fr->t[v].data = fr->t[value->root].data;
        return fr->planes[value->root].pitch
                   ? byi_row_planes_alias(s, fr, v, err)
                   : BYOC_OK;
    }
    if (value->fixed)
        return BYOC_OK;
    if (value->kind == BYI_V_OUTPUT) {
        const struct byi_tensor *dest = &fr->dest[value->index];
        if (dest->data && byi_dims_equal(dest->rank, dest->dims, fr->t[v].rank,
                                         fr->t[v].dims)) {
            fr->t[v].data = dest->data;
            fr->planes[v] = fr->dest_planes[value->index];
            return BYOC_OK;
        }
    }
    return byi_frame_block(s, fr, v, err);
}
