/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/build.c: implements the functions that the builders of kernels
 * share: queries of the graph, values and their layouts, buffers, steps and
 * packing. */
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

#include <assert.h>
#include <string.h>

enum byoc_status byi_dn_refuse(struct byi_build *b, const char *fmt, ...)
{
    char text[600];
    BYI_FORMAT(text, fmt);
    return byi_fail(b->err, BYOC_EUNSUPPORTED, "%s", text);
}

/* --- queries of the kernels' builders ------------------------------------- */

const struct byoc_graph_step *byi_dn_step(const struct byi_build *b, uint32_t i)
{
    return &b->graph->steps[b->kernel->first + i];
}

const struct byoc_graph_step *byi_dn_step0(const struct byi_build *b)
{
    return byi_dn_step(b, 0);
}

bool byi_dn_is(const struct byoc_graph_step *step, const char *name)
{
    return strcmp(step->name, name) == 0;
}

const struct byoc_graph_value *byi_dn_result(const struct byi_build *b)
{
    return &b->graph->values[byi_dn_step0(b)->outs[0]];
}

uint32_t byi_dn_arg0(const struct byi_build *b, uint32_t i)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    assert(i < step->n_args);
    return step->args[i];
}

const char *byi_dn_joined_name(struct byi_build *b)
{
    const char *name = byi_dn_step0(b)->name;
    for (uint32_t i = 1; i < b->kernel->n_steps; i++)
        name =
            byi_arena_printf(b->arena, "%s+%s", name, byi_dn_step(b, i)->name);
    return name;
}

struct byi_dnnl_value *byi_dn_operand(struct byi_build *b, uint32_t value)
{
    return &b->values[value];
}

const void *byi_dn_const_data(struct byi_build *b, uint32_t value,
                              enum byoc_dtype *dtype, int64_t *n)
{
    const struct byoc_graph_value *v = &b->graph->values[value];
    *dtype = v->dtype;
    *n = (int64_t)v->count;
    return v->kind == BYOC_GRAPH_CONST ? byi_dn_const(b->program, v->index)
                                       : NULL;
}

static const char *name_of(const struct byi_build *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->kernel->n_operands; i++)
        if (b->kernel->operands[i].value == value)
            return b->kernel->operands[i].name;
    return "";
}

enum byoc_status byi_dn_read_const_ints(struct byi_build *b, uint32_t value,
                                        int64_t out[BYI_MAX_RANK], uint32_t *n)
{
    enum byoc_dtype dtype;
    int64_t count;
    const void *data = byi_dn_const_data(b, value, &dtype, &count);
    if (!data || (dtype != BYOC_I64 && dtype != BYOC_I32) ||
        count > BYI_MAX_RANK)
        return byi_dn_refuse(
            b,
            "operand '%s': found %s list of %lld %s elements, expected a "
            "constant list of at most %d int32 or int64 elements",
            name_of(b, value), data ? "a constant" : "a computed",
            (long long)count, byoc_dtype_name(dtype), BYI_MAX_RANK);
    for (int64_t i = 0; i < count; i++)
        out[i] = dtype == BYOC_I64 ? ((const int64_t *)data)[i]
                                   : ((const int32_t *)data)[i];
    *n = (uint32_t)count;
    return BYOC_OK;
}

bool byi_dn_read_const_scalar(struct byi_build *b, uint32_t value, float *out)
{
    enum byoc_dtype dtype;
    int64_t n;
    const void *data = byi_dn_const_data(b, value, &dtype, &n);
    if (!data || !byi_dn_is_float(dtype) || n != 1)
        return false;
    *out = (float)byi_tensor_float(
        &(struct byi_tensor){.data = (void *)(uintptr_t)data, .dtype = dtype},
        0);
    return true;
}

/* --- buffers ------------------------------------------------------------- */

uint32_t byi_dn_add_buf(struct byi_build *b, struct byi_buf buf)
{
    buf.first = UINT32_MAX;
    BYI_PUSH(&b->bufs, buf);
    return b->bufs.n - 1;
}

uint32_t byi_dn_temp(struct byi_build *b, uint64_t bytes)
{
    return byi_dn_add_buf(
        b, (struct byi_buf){.kind = BYI_BUF_TEMP, .bytes = bytes});
}

uint32_t byi_dn_computed_buf(struct byi_build *b, uint32_t computed)
{
    return byi_dn_add_buf(
        b, (struct byi_buf){.kind = BYI_BUF_COMPUTED,
                            .index = computed,
                            .bytes = b->program->computed.at[computed].bytes});
}

bool byi_dn_is_constant(const struct byi_build *b, uint32_t buf)
{
    const enum byi_buf_kind kind = b->bufs.at[buf].kind;
    return kind == BYI_BUF_CONST || kind == BYI_BUF_COMPUTED;
}

static uint64_t offset_bytes(const struct byi_dnnl_view *view)
{
    return (uint64_t)view->offset * byoc_dtype_size(view->desc.dtype);
}

struct byi_place byi_dn_place(const struct byi_build *b,
                              const struct byi_dnnl_view *view)
{
    const struct byi_buf *buf = &b->bufs.at[view->buf];
    return (struct byi_place){
        .kind = buf->kind, .index = buf->index, .offset = offset_bytes(view)};
}

bool byi_dn_may_overwrite(const struct byi_build *b,
                          const struct byi_dnnl_view *view)
{
    const struct byi_buf *buf = &b->bufs.at[view->buf];
    return buf->kind == BYI_BUF_TEMP && buf->uses <= 1 && view->offset == 0 &&
           byi_dn_is_dense(&view->desc) &&
           byi_dn_desc_bytes(&view->desc) == buf->bytes;
}

/* --- steps --------------------------------------------------------------- */

void byi_dn_use(struct byi_emit *e, int arg, const struct byi_dnnl_view *view)
{
    assert(e->n < BYI_COUNT(e->uses));
    e->uses[e->n++] = (struct byi_use){
        .arg = arg, .buf = view->buf, .offset = offset_bytes(view)};
}

/* Record how `prim` was created, for byi_dn_write. */
static void note_creation(struct byi_build *b, struct byi_prim *prim,
                          const char *function, const void *params, size_t size,
                          const struct byi_posts *posts)
{
    struct byi_arena *arena = b->program->arena;
    const char *pattern = b->kernel ? b->kernel->pattern : "";
    if (b->program->purpose != BYI_TO_WRITE)
        return;
    struct byi_creation *creation = byi_arena_alloc(arena, sizeof *creation);
    *creation =
        (struct byi_creation){.function = function,
                              .params = byi_arena_copy(arena, params, size),
                              .pattern = byi_arena_str(arena, pattern)};
    if (posts && posts->n) {
        struct byi_posts *copy = byi_arena_alloc(arena, sizeof *copy);
        copy->n = posts->n;
        copy->at =
            byi_arena_copy(arena, posts->at, posts->n * sizeof *posts->at);
        creation->posts = copy;
    }
    byi_prim_note(prim, creation);
}

#define DEFINE(name)                                                           \
    enum byoc_status byi_dn_##name##_new(                                      \
        struct byi_build *b, const struct byi_dnnl_##name *p,                  \
        const struct byi_posts *posts, struct byi_prim **prim)                 \
    {                                                                          \
        const struct byi_creator_call call = {#name, p, sizeof *p, posts};     \
        enum byoc_status status;                                               \
        if (byi_dn_find_prim(b, &call, prim, &status))                         \
            return status;                                                     \
        status = byi_prim_new_##name(b->lib, p, posts, prim, b->err);          \
        if (status == BYOC_OK)                                                 \
            note_creation(b, *prim, #name, p, sizeof *p, posts);               \
        byi_dn_keep_prim(b, &call, *prim, status);                             \
        return status;                                                         \
    }                                                                          \
    enum byoc_status byi_dn_make_##name(                                       \
        struct byi_build *b, const void *params,                               \
        const struct byi_posts *posts, struct byi_prim **prim)                 \
    {                                                                          \
        return byi_dn_##name##_new(b, params, posts, prim);                    \
    }
BYI_OPERATORS(DEFINE)

enum byoc_status byi_dn_emit(struct byi_build *b, struct byi_emit *e)
{
    if (!b->sources)
        b->sources = byi_arena_str(b->program->arena,
                                   b->kernel ? b->kernel->source : "");
    const struct byi_emitted_step step = {
        .prim = e->prim,
        .name = byi_arena_str(b->program->arena, e->name),
        .sources = b->sources,
        .n = e->n,
        .uses = byi_arena_copy(b->arena, e->uses, e->n * sizeof e->uses[0]),
    };
    BYI_PUSH(&b->emitted, step);
    return BYOC_OK;
}

void byi_dn_abandon(struct byi_build *b, struct byi_prim **prim)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->packs.n; i++)
        if (b->packs.at[i].prim != *prim)
            b->packs.at[n++] = b->packs.at[i];
    b->packs.n = n;
    byi_prim_free(prim);
}

/* Append a step that runs the reorder `prim` from `src` into a new buffer of
 * `bytes`. Takes ownership of the primitive. */
static enum byoc_status emit_reorder(struct byi_build *b,
                                     const struct byi_dnnl_view *src,
                                     struct byi_prim *prim, uint64_t bytes,
                                     uint32_t *buf)
{
    *buf = byi_dn_temp(b, bytes);
    struct byi_emit e = {.name = "reorder", .prim = prim};
    byi_dn_use(&e, BYI_ARG_SRC, src);
    byi_dn_use(&e, BYI_ARG_DST, &(struct byi_dnnl_view){.buf = *buf});
    return byi_dn_emit(b, &e);
}

enum byoc_status byi_dn_reorder(struct byi_build *b,
                                const struct byi_dnnl_view *src,
                                const struct byi_desc *desc,
                                struct byi_dnnl_view *view)
{
    *view = (struct byi_dnnl_view){.desc = *desc};
    if (byi_dn_is_constant(b, src->buf)) {
        const struct byi_copy copy = {
            .from = byi_dn_place(b, src), .src = src->desc, .dst = *desc};
        BYI_TRY(byi_dn_make_copy(b->program, &copy, b->err));
        view->buf = byi_dn_computed_buf(b, b->program->computed.n - 1);
        return BYOC_OK;
    }
    const struct byi_dnnl_reorder p = {.src = src->desc, .dst = *desc};
    struct byi_prim *prim = NULL;
    BYI_TRY(byi_dn_reorder_new(b, &p, NULL, &prim));
    BYI_TRY(byi_prim_check(&prim, "reorder",
                           byi_elements(desc->rank, desc->dims), b->err));
    return emit_reorder(b, src, prim, byi_dn_desc_bytes(desc), &view->buf);
}

/* --- values -------------------------------------------------------------- */

void byi_dn_add_view(struct byi_build *b, struct byi_dnnl_value *value,
                     const struct byi_dnnl_view *view)
{
    if (value->n_views == value->cap_views) {
        const uint32_t cap = value->cap_views ? 2 * value->cap_views : 1;
        struct byi_dnnl_view *views =
            byi_arena_calloc(b->arena, cap, sizeof *views);
        if (value->n_views)
            memcpy(views, value->views, value->n_views * sizeof *views);
        value->views = views;
        value->cap_views = cap;
    }
    value->views[value->n_views++] = *view;
    b->bufs.at[view->buf].uses += value->uses;
}

void byi_dn_define(struct byi_build *b, uint32_t output,
                   const struct byi_dnnl_view *view)
{
    byi_dn_add_view(b, &b->values[b->kernel->outs[output]], view);
}

const struct byi_dnnl_view *byi_dn_find(const struct byi_dnnl_value *value,
                                        const struct byi_desc *desc)
{
    for (uint32_t i = 0; i < value->n_views; i++)
        if (byi_dn_same_layout(&value->views[i].desc, desc))
            return &value->views[i];
    return NULL;
}

enum byoc_status byi_dn_get_view(struct byi_build *b,
                                 struct byi_dnnl_value *value,
                                 const struct byi_desc *desc,
                                 struct byi_dnnl_view *view)
{
    const struct byi_dnnl_view *existing = byi_dn_find(value, desc);
    if (existing) {
        *view = *existing;
        view->desc = *desc;
        return BYOC_OK;
    }
    BYI_TRY(byi_dn_reorder(b, &value->views[0], desc, view));
    byi_dn_add_view(b, value, view);
    return BYOC_OK;
}

enum byoc_status byi_dn_get_dense(struct byi_build *b,
                                  struct byi_dnnl_value *value,
                                  struct byi_dnnl_view *view)
{
    for (uint32_t i = 0; i < value->n_views; i++) {
        if (!byi_dn_is_dense(&value->views[i].desc))
            continue;
        *view = value->views[i];
        view->desc = byi_dn_regular(&view->desc);
        return BYOC_OK;
    }
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc desc = byi_dn_regular(main);
    return byi_dn_get_view(b, value, &desc, view);
}

enum byoc_status byi_dn_get_row_major(struct byi_build *b,
                                      struct byi_dnnl_value *value,
                                      struct byi_dnnl_view *view)
{
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc row_major =
        byi_dn_dense(main->dtype, main->rank, main->dims, NULL);
    return byi_dn_get_view(b, value, &row_major, view);
}

/* The packed copy that was made for an earlier primitive and has the right
 * layout, or NULL. */
static const struct byi_packed_const *find_pack(const struct byi_build *b,
                                                const struct byi_dnnl_view *src,
                                                const struct byi_prim *prim,
                                                int arg)
{
    for (uint32_t i = 0; i < b->packs.n; i++) {
        const struct byi_packed_const *pack = &b->packs.at[i];
        if (pack->src.buf == src->buf && pack->src.offset == src->offset &&
            byi_dn_same_layout(&pack->src.desc, &src->desc) &&
            byi_prim_same(pack->prim, pack->arg, prim, arg))
            return pack;
    }
    return NULL;
}

enum byoc_status byi_dn_get_packed(struct byi_build *b,
                                   const struct byi_dnnl_view *src,
                                   const struct byi_prim *prim, int arg,
                                   struct byi_use *use)
{
    *use = (struct byi_use){.arg = arg};
    if (!byi_dn_is_constant(b, src->buf)) {
        use->buf = src->buf;
        use->offset = offset_bytes(src);
        if (byi_prim_needs(prim, arg, &src->desc))
            return BYOC_OK;
        struct byi_prim *reorder = NULL;
        use->offset = 0;
        BYI_TRY(byi_pack_new(b->lib, &src->desc, prim, arg, &reorder, b->err));
        return emit_reorder(b, src, reorder, byi_prim_bytes(prim, arg),
                            &use->buf);
    }
    const struct byi_packed_const *existing = find_pack(b, src, prim, arg);
    if (existing) {
        use->buf = existing->buf;
        return BYOC_OK;
    }
    const struct byi_pack pack = {
        .from = byi_dn_place(b, src), .src = src->desc, .arg = arg};
    BYI_TRY(byi_dn_make_pack(b->program, &pack, prim, b->err));
    use->buf = byi_dn_computed_buf(b, b->program->computed.n - 1);
    const struct byi_packed_const packed = {
        .src = *src, .prim = prim, .arg = arg, .buf = use->buf};
    BYI_PUSH(&b->packs, packed);
    return BYOC_OK;
}
