/* runtime_dnnl/build.c: walks a region's graph in order and lets the builder
 * of each kernel append its primitives. Here: values and the layouts they are
 * had in, buffers, packing, and the region's borders.
 */
#include "runtime_dnnl/build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum byoc_status byi_dn_refuse(struct byi_build *b, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return byi_fail(b->err, BYOC_EUNSUPPORTED, "%s", text);
}

/* --- what a kernel's builder asks ---------------------------------------- */

const struct byi_gstep *byi_dn_step0(const struct byi_build *b)
{
    return &b->kernel->steps[0];
}

uint32_t byi_dn_arg0(const struct byi_build *b, uint32_t i)
{
    const struct byi_gstep *step = byi_dn_step0(b);
    assert(i < step->n_args && !step->args[i].is_step);
    return step->args[i].index;
}

struct byi_value *byi_dn_operand(struct byi_build *b, uint32_t index)
{
    const struct byi_gref ref = b->kernel->operands[index].ref;
    return &b->values[ref.node][ref.output];
}

static const struct byi_gnode *operand_node(const struct byi_build *b,
                                            uint32_t index)
{
    return &b->program->graph->nodes[b->kernel->operands[index].ref.node];
}

const void *byi_dn_const_data(struct byi_build *b, uint32_t index,
                              enum byoc_dtype *dtype, int64_t *n)
{
    const struct byi_gnode *node = operand_node(b, index);
    if (node->kind != BYI_G_CONST)
        return NULL;
    *dtype = node->out[0]->dtype;
    *n = byi_elements(node->out[0]->rank, node->out[0]->dims);
    return b->consts[node->data].data;
}

enum byoc_status byi_dn_const_ints(struct byi_build *b, uint32_t index,
                                   uint32_t max, int64_t *out, uint32_t *n)
{
    enum byoc_dtype dtype;
    int64_t count;
    const void *data = byi_dn_const_data(b, index, &dtype, &count);
    if (!data || (dtype != BYOC_I64 && dtype != BYOC_I32) || count > max)
        return byi_dn_refuse(b,
                             "operand '%s' is not a constant list of at most "
                             "%u integers",
                             b->kernel->operands[index].name, max);
    for (int64_t i = 0; i < count; i++)
        out[i] = dtype == BYOC_I64 ? ((const int64_t *)data)[i]
                                   : ((const int32_t *)data)[i];
    *n = (uint32_t)count;
    return BYOC_OK;
}

bool byi_dn_const_scalar(struct byi_build *b, uint32_t index, float *out)
{
    enum byoc_dtype dtype;
    int64_t n;
    const void *data = byi_dn_const_data(b, index, &dtype, &n);
    if (!data || dtype != BYOC_F32 || n != 1)
        return false;
    memcpy(out, data, sizeof *out);
    return true;
}

/* --- buffers ------------------------------------------------------------- */

static uint32_t add_buf(struct byi_build *b, struct byi_buf buf)
{
    buf.first = UINT32_MAX;
    BYI_PUSH(&b->program->bufs, buf);
    return b->program->bufs.n - 1;
}

uint32_t byi_dn_temp(struct byi_build *b, uint64_t bytes)
{
    return add_buf(b, (struct byi_buf){.kind = BYI_BUF_TEMP, .bytes = bytes});
}

enum byoc_status byi_dn_own(struct byi_build *b, uint64_t bytes, uint32_t *buf)
{
    const struct byoc_host *host = b->program->host;
    void *data = NULL;
    if (!b->probe) {
        data = host->acquire(host->ctx, bytes + BYI_DNNL_SLACK);
        if (!data)
            return byi_fail(b->err, BYOC_ENOMEM,
                            "no memory for %llu bytes of packed weights",
                            (unsigned long long)bytes);
    }
    *buf = add_buf(b, (struct byi_buf){
                          .kind = BYI_BUF_OWNED, .bytes = bytes, .data = data});
    return BYOC_OK;
}

void byi_dn_disown(struct byi_build *b, uint32_t buf)
{
    const struct byoc_host *host = b->program->host;
    struct byi_buf *own = &b->program->bufs.at[buf];
    assert(!own->shared);
    host->release(host->ctx, own->data);
    own->data = NULL;
}

static bool is_constant(const struct byi_build *b, uint32_t buf)
{
    const enum byi_buf_kind kind = b->program->bufs.at[buf].kind;
    return kind == BYI_BUF_CONST || kind == BYI_BUF_OWNED;
}

static uint64_t offset_bytes(const struct byi_view *view)
{
    return (uint64_t)view->offset * byoc_dtype_size(view->desc.dtype);
}

bool byi_dn_may_overwrite(const struct byi_build *b,
                          const struct byi_view *view)
{
    const struct byi_buf *buf = &b->program->bufs.at[view->buf];
    return buf->kind == BYI_BUF_TEMP && buf->uses <= 1 && view->offset == 0 &&
           byi_dn_is_dense(&view->desc) &&
           byi_dn_desc_bytes(&view->desc) == buf->bytes;
}

/* --- steps --------------------------------------------------------------- */

static const char *join_sources(struct byi_build *b)
{
    struct byi_text text = {0};
    for (uint32_t i = 0; b->kernel && i < b->kernel->n_sources; i++)
        byi_text_addf(&text, "%s%s", i ? "," : "", b->kernel->sources[i]);
    char *joined = byi_arena_str(b->program->arena, text.at ? text.at : "");
    byi_text_free(&text);
    return joined;
}

void byi_dn_slot_add(struct byi_emit *e, int arg, const struct byi_view *view)
{
    assert(e->n < BYI_COUNT(e->slots));
    e->slots[e->n++] = (struct byi_slot){
        .arg = arg, .buf = view->buf, .offset = offset_bytes(view)};
}

enum byoc_status byi_dn_emit(struct byi_build *b, struct byi_emit *e)
{
    struct byi_program *p = b->program;
    enum byoc_status status =
        b->probe ? BYOC_OK : byi_prim_build(e->prim, b->err);
    if (status != BYOC_OK) {
        byi_prim_free(&e->prim);
        return status;
    }
    if (byi_prim_scratch(e->prim) > p->scratch_bytes)
        p->scratch_bytes = byi_prim_scratch(e->prim);
    if (!b->sources)
        b->sources = join_sources(b);
    const struct byi_step step = {
        .prim = e->prim,
        .name = byi_arena_str(p->arena, e->name),
        .sources = b->sources,
        .n_slots = e->n,
        .slots = byi_arena_copy(p->arena, e->slots, e->n * sizeof e->slots[0]),
    };
    BYI_PUSH(&p->steps, step);
    return BYOC_OK;
}

enum byoc_status byi_dn_check_impl(struct byi_build *b, struct byi_prim **prim,
                                   const char *what, int64_t elements)
{
    if (!byi_prim_is_ref(*prim) || elements <= BYI_REF_ELEMENTS)
        return BYOC_OK;
    const enum byoc_status status = byi_dn_refuse(
        b, "%s: oneDNN has only the reference implementation %s for this", what,
        byi_prim_impl(*prim));
    byi_prim_free(prim);
    return status;
}

/* Run a primitive once, while building, from constant to owned memory. */
static enum byoc_status run_now(struct byi_build *b, struct byi_prim *prim,
                                const void *src, void *dst)
{
    const struct byoc_host *host = b->program->host;
    const int args[] = {BYI_ARG_SRC, BYI_ARG_DST};
    void *data[] = {(void *)(uintptr_t)src, dst};
    const uint64_t bytes = byi_prim_scratch(prim);
    void *scratch = bytes ? host->acquire(host->ctx, bytes) : NULL;
    struct byi_bound *call = NULL;
    enum byoc_status status = byi_prim_build(prim, b->err);
    if (status == BYOC_OK && bytes && !scratch)
        status = byi_fail(b->err, BYOC_ENOMEM, "out of memory");
    if (status == BYOC_OK)
        status =
            byi_bound_new(b->lib, prim, 2, args, data, scratch, &call, b->err);
    if (status == BYOC_OK)
        status = byi_bound_run(call, b->err);
    byi_bound_free(&call);
    host->release(host->ctx, scratch);
    return status;
}

static const char *const_bytes(const struct byi_build *b,
                               const struct byi_view *view)
{
    return (const char *)b->program->bufs.at[view->buf].data +
           offset_bytes(view);
}

/* Apply a reorder to what is constant, unless another program of the host has
 * done it. A constant's address is its name as long as the program lives; so is
 * that of what is shared, which it holds, but not that of memory of its own. */
static enum byoc_status pack_now(struct byi_build *b,
                                 const struct byi_view *src,
                                 struct byi_prim **prim, uint64_t bytes,
                                 uint32_t *buf)
{
    const struct byoc_host *host = b->program->host;
    const struct byi_buf from = b->program->bufs.at[src->buf];
    const char *at = const_bytes(b, src);
    const bool named = from.kind == BYI_BUF_CONST || from.shared;
    struct byi_shared *shared =
        named ? byi_dn_share_find(host, at, *prim) : NULL;
    if (!shared) {
        BYI_TRY(byi_dn_own(b, bytes, buf));
        BYI_TRY(run_now(b, *prim, at, b->program->bufs.at[*buf].data));
    } else {
        *buf =
            add_buf(b, (struct byi_buf){.kind = BYI_BUF_OWNED, .bytes = bytes});
    }
    struct byi_buf *to = &b->program->bufs.at[*buf];
    if (named && !shared)
        shared = byi_dn_share(host, at, prim, to->data);
    to->shared = shared;
    if (shared)
        to->data = byi_dn_shared_data(shared);
    return BYOC_OK;
}

/* Apply a reorder from `src` into a new buffer of `bytes`: at once when src
 * is constant, else as a step. Takes the primitive. */
static enum byoc_status apply_reorder(struct byi_build *b,
                                      const struct byi_view *src,
                                      struct byi_prim *prim, uint64_t bytes,
                                      uint32_t *buf)
{
    if (is_constant(b, src->buf)) {
        enum byoc_status status = b->probe
                                      ? byi_dn_own(b, bytes, buf)
                                      : pack_now(b, src, &prim, bytes, buf);
        byi_prim_free(&prim);
        return status;
    }
    *buf = byi_dn_temp(b, bytes);
    struct byi_emit e = {.name = "reorder", .prim = prim};
    byi_dn_slot_add(&e, BYI_ARG_SRC, src);
    byi_dn_slot_add(&e, BYI_ARG_DST, &(struct byi_view){.buf = *buf});
    return byi_dn_emit(b, &e);
}

enum byoc_status byi_dn_reorder(struct byi_build *b, const struct byi_view *src,
                                const struct byi_desc *desc,
                                struct byi_view *view)
{
    const struct byi_reorder p = {.src = src->desc, .dst = *desc};
    struct byi_prim *prim = NULL;
    BYI_TRY(byi_reorder_new(b->lib, &p, NULL, &prim, b->err));
    BYI_TRY(byi_dn_check_impl(b, &prim, "reorder",
                              byi_elements(desc->rank, desc->dims)));
    *view = (struct byi_view){.desc = *desc};
    return apply_reorder(b, src, prim, byi_dn_desc_bytes(desc), &view->buf);
}

/* --- values -------------------------------------------------------------- */

static void add_view(struct byi_build *b, struct byi_value *value,
                     const struct byi_view *view)
{
    if (value->n_views == value->cap_views) {
        const uint32_t cap = value->cap_views ? 2 * value->cap_views : 1;
        struct byi_view *views =
            byi_arena_calloc(b->program->arena, cap, sizeof *views);
        if (value->n_views)
            memcpy(views, value->views, value->n_views * sizeof *views);
        value->views = views;
        value->cap_views = cap;
    }
    value->views[value->n_views++] = *view;
    b->program->bufs.at[view->buf].uses += value->uses;
}

void byi_dn_define(struct byi_build *b, uint32_t output,
                   const struct byi_view *view)
{
    add_view(b, &b->values[b->node][output], view);
}

const struct byi_view *byi_dn_find(const struct byi_value *value,
                                   const struct byi_desc *desc)
{
    for (uint32_t i = 0; i < value->n_views; i++)
        if (byi_dn_same_layout(&value->views[i].desc, desc))
            return &value->views[i];
    return NULL;
}

enum byoc_status byi_dn_want(struct byi_build *b, struct byi_value *value,
                             const struct byi_desc *desc, struct byi_view *view)
{
    const struct byi_view *found = byi_dn_find(value, desc);
    if (found) {
        *view = *found;
        view->desc = *desc;
        return BYOC_OK;
    }
    BYI_TRY(byi_dn_reorder(b, &value->views[0], desc, view));
    add_view(b, value, view);
    return BYOC_OK;
}

enum byoc_status byi_dn_want_dense(struct byi_build *b, struct byi_value *value,
                                   struct byi_view *view)
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
    return byi_dn_want(b, value, &desc, view);
}

enum byoc_status byi_dn_want_plain(struct byi_build *b, struct byi_value *value,
                                   struct byi_view *view)
{
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc plain =
        byi_dn_dense(main->dtype, main->rank, main->dims, NULL);
    return byi_dn_want(b, value, &plain, view);
}

enum byoc_status byi_dn_want_packed(struct byi_build *b,
                                    const struct byi_view *src,
                                    const struct byi_prim *prim, int arg,
                                    struct byi_slot *slot)
{
    *slot = (struct byi_slot){
        .arg = arg, .buf = src->buf, .offset = offset_bytes(src)};
    if (byi_prim_wants(prim, arg, &src->desc))
        return BYOC_OK;
    slot->offset = 0;
    const bool constant = is_constant(b, src->buf);
    for (uint32_t i = 0; constant && i < b->packs.n; i++) {
        const struct byi_pack *pack = &b->packs.at[i];
        if (pack->src.buf == src->buf && pack->src.offset == src->offset &&
            byi_dn_same_layout(&pack->src.desc, &src->desc) &&
            byi_prim_same(pack->prim, pack->arg, prim, arg)) {
            slot->buf = pack->buf;
            return BYOC_OK;
        }
    }
    struct byi_prim *reorder = NULL;
    BYI_TRY(byi_pack_new(b->lib, &src->desc, prim, arg, &reorder, b->err));
    BYI_TRY(
        apply_reorder(b, src, reorder, byi_prim_bytes(prim, arg), &slot->buf));
    if (constant) {
        const struct byi_pack pack = {
            .src = *src, .prim = prim, .arg = arg, .buf = slot->buf};
        BYI_PUSH(&b->packs, pack);
    }
    return BYOC_OK;
}

/* --- the walk ------------------------------------------------------------ */

#define NAME(op, name, ...) name
#define ELTWISE BYI_DN_ELTWISE(NAME, "|")
#define BINARY BYI_DN_BINARY(NAME, "|")
#define NONE false
#define POSTS true
#define ROW(name, operators, operands, posts, accept, build)                   \
    {name, operators, posts, byi_dn_build_##build},
const struct byi_dn_row byi_dn_rows[] = {
#include "patterns/dnnl.def"
};
const uint32_t byi_dn_n_rows = BYI_COUNT(byi_dn_rows);

bool byi_dn_row_has(const struct byi_dn_row *row, const char *operator)
{
    const size_t n = strlen(operator);
    const char *at = row->operators;
    while (strncmp(at, operator, n) != 0 || (at[n] && at[n] != '|')) {
        at = strchr(at, '|');
        if (!at++)
            return false;
    }
    return true;
}

/* The row that a kernel's pattern names; NULL where it is not the row's. */
static const struct byi_dn_row *find_row(const struct byi_gnode *kernel)
{
    for (uint32_t i = 0; i < byi_dn_n_rows; i++)
        if (strcmp(byi_dn_rows[i].name, kernel->pattern) == 0)
            return byi_dn_row_has(&byi_dn_rows[i], kernel->steps[0].op->name)
                       ? &byi_dn_rows[i]
                       : NULL;
    return NULL;
}

/* Every read by a kernel, and every region output, is one use. */
static void count_uses(struct byi_build *b)
{
    const struct byi_graph *g = b->program->graph;
    for (uint32_t n = 0; n < g->n_nodes; n++)
        b->reader[n] = BYI_NOBODY;
    for (uint32_t n = 0; n < g->n_nodes; n++) {
        const struct byi_gnode *node = &g->nodes[n];
        for (uint32_t i = 0; i < node->n_operands; i++) {
            const struct byi_gref ref = node->operands[i].ref;
            b->values[ref.node][ref.output].uses++;
            b->reader[ref.node] = n;
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const struct byi_gref ref = g->outputs[i];
        b->values[ref.node][ref.output].uses++;
        b->reader[ref.node] = BYI_NOBODY;
    }
    for (uint32_t n = 0; n < g->n_nodes; n++)
        if (b->values[n][0].uses != 1)
            b->reader[n] = BYI_NOBODY;
}

static void release_operands(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->kernel->n_operands; i++) {
        struct byi_value *value = byi_dn_operand(b, i);
        value->uses--;
        for (uint32_t j = 0; j < value->n_views; j++)
            b->program->bufs.at[value->views[j].buf].uses--;
    }
}

static enum byoc_status check_types(struct byi_build *b)
{
    const struct byi_gnode *k = b->kernel;
    for (uint32_t i = 0; i < k->n_steps; i++) {
        const struct byi_type *t = k->steps[i].type;
        const uint32_t n = t->kind == BYI_TUPLE ? t->n_fields : 1;
        for (uint32_t j = 0; j < n; j++) {
            const struct byi_type *field =
                t->kind == BYI_TUPLE ? t->fields[j] : t;
            if (!byi_dnnl_has_dtype(field->dtype))
                return byi_dn_refuse(
                    b, "%s: dtype %s is not supported by oneDNN",
                    k->steps[i].op->name, byoc_dtype_name(field->dtype));
            if (byi_elements(field->rank, field->dims) <= 0)
                return byi_dn_refuse(b,
                                     "%s: an empty tensor does not go to "
                                     "oneDNN",
                                     k->steps[i].op->name);
        }
    }
    return BYOC_OK;
}

static enum byoc_status build_kernel(struct byi_build *b)
{
    const struct byi_gstep *step = byi_dn_step0(b);
    BYI_TRY(check_types(b));
    for (uint32_t i = 0; i < step->n_args; i++)
        assert(!step->args[i].is_step);
    const struct byi_dn_row *row = find_row(b->kernel);
    if (!row)
        return byi_dn_refuse(b,
                             "%s starting with %s is no row of oneDNN's table",
                             b->kernel->pattern, step->op->name);
    if (!row->posts && b->kernel->n_steps > 1)
        return byi_dn_refuse(b, "%s: followed by %s, expected to stand alone",
                             step->op->name, b->kernel->steps[1].op->name);
    b->sources = NULL;
    BYI_TRY(row->build(b));
    release_operands(b);
    return BYOC_OK;
}

static enum byoc_status build_node(struct byi_build *b)
{
    const struct byi_graph *g = b->program->graph;
    const struct byi_gnode *node = &g->nodes[b->node];
    const struct byi_type *type = node->out[0];
    if (node->kind == BYI_G_KERNEL) {
        b->kernel = node;
        return build_kernel(b);
    }
    struct byi_buf buf = {.bytes = byi_type_bytes(type)};
    if (node->kind == BYI_G_INPUT) {
        buf.kind = BYI_BUF_INPUT;
        while (g->inputs[buf.index] != b->node)
            buf.index++;
    } else {
        buf.kind = BYI_BUF_CONST;
        buf.index = node->data;
        buf.data = b->consts[node->data].data;
    }
    struct byi_view view = {.buf = add_buf(b, buf)};
    view.desc = byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
    byi_dn_define(b, 0, &view);
    return BYOC_OK;
}

/* Results reach the caller's memory without a copy where the primitive that
 * makes them can write there: a plain temporary becomes the output itself. */
static enum byoc_status place_output(struct byi_build *b, uint32_t index)
{
    struct byi_program *p = b->program;
    const struct byi_gref ref = p->graph->outputs[index];
    struct byi_value *value = &b->values[ref.node][ref.output];
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc plain =
        byi_dn_dense(main->dtype, main->rank, main->dims, NULL);
    const struct byi_view *found = byi_dn_find(value, &plain);
    if (found) {
        struct byi_buf *buf = &p->bufs.at[found->buf];
        if (buf->kind == BYI_BUF_TEMP && !buf->keep && found->offset == 0 &&
            buf->bytes == byi_dn_desc_bytes(&plain)) {
            buf->kind = BYI_BUF_OUTPUT;
            buf->index = index;
            return BYOC_OK;
        }
    }
    const struct byi_view *src = found ? found : &value->views[0];
    const struct byi_reorder r = {.src = src->desc, .dst = plain};
    struct byi_emit e = {.name = "reorder"};
    BYI_TRY(byi_reorder_new(b->lib, &r, NULL, &e.prim, b->err));
    BYI_TRY(byi_dn_check_impl(b, &e.prim, "reorder",
                              byi_elements(plain.rank, plain.dims)));
    byi_dn_slot_add(&e, BYI_ARG_SRC, src);
    const struct byi_buf out = {.kind = BYI_BUF_OUTPUT,
                                .index = index,
                                .bytes = byi_dn_desc_bytes(&plain)};
    byi_dn_slot_add(&e, BYI_ARG_DST,
                    &(struct byi_view){.buf = add_buf(b, out)});
    b->kernel = &p->graph->nodes[ref.node];
    b->sources = NULL;
    return byi_dn_emit(b, &e);
}

/* Does the step write what is an output, or what a later step reads? */
static bool is_live(const struct byi_program *p, const struct byi_step *s,
                    const bool *read)
{
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const int arg = s->slots[i].arg;
        const uint32_t buf = s->slots[i].buf;
        if ((arg == BYI_ARG_DST || arg == BYI_ARG_DST_H ||
             arg == BYI_ARG_DST_C) &&
            (p->bufs.at[buf].kind != BYI_BUF_TEMP || read[buf]))
            return true;
    }
    return false;
}

/* Steps whose result nobody reads, such as a conversion that integers made
 * needless, go; buffers live from their first step to their last. */
static void drop_dead_steps(struct byi_program *p)
{
    bool *read = byi_arena_calloc(p->arena, p->bufs.n, sizeof *read);
    bool *dead = byi_arena_calloc(p->arena, p->steps.n, sizeof *dead);
    uint32_t n = 0;
    for (uint32_t i = p->steps.n; i-- > 0;) {
        const struct byi_step *s = &p->steps.at[i];
        dead[i] = !is_live(p, s, read);
        for (uint32_t k = 0; k < s->n_slots && !dead[i]; k++)
            read[s->slots[k].buf] = true;
    }
    for (uint32_t i = 0; i < p->bufs.n; i++) {
        p->bufs.at[i].first = UINT32_MAX;
        p->bufs.at[i].last = 0;
    }
    for (uint32_t i = 0; i < p->steps.n; i++) {
        struct byi_step *s = &p->steps.at[i];
        if (dead[i]) {
            byi_prim_free(&s->prim);
            continue;
        }
        for (uint32_t k = 0; k < s->n_slots; k++) {
            struct byi_buf *buf = &p->bufs.at[s->slots[k].buf];
            buf->first = n < buf->first ? n : buf->first;
            buf->last = n;
        }
        p->steps.at[n++] = *s;
    }
    p->steps.n = n;
}

static enum byoc_status build_program(struct byi_build *b)
{
    struct byi_program *p = b->program;
    const struct byi_graph *g = p->graph;
    b->values = byi_arena_calloc(p->arena, g->n_nodes, sizeof *b->values);
    b->reader = byi_arena_calloc(p->arena, g->n_nodes, sizeof *b->reader);
    for (uint32_t n = 0; n < g->n_nodes; n++)
        b->values[n] =
            byi_arena_calloc(p->arena, g->nodes[n].n_out, sizeof *b->values[n]);
    count_uses(b);
    for (b->node = 0; b->node < g->n_nodes; b->node++) {
        enum byoc_status status = build_node(b);
        if (status != BYOC_OK)
            return byi_prefix(b->err, "nodes[%u]", b->node);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        BYI_TRY(place_output(b, i));
    drop_dead_steps(p);
    return byi_dn_plan_temps(p, b->err);
}

/* BYOC_DNNL_LAYOUT: how activations lie in a region. */
static enum byoc_status read_layout(bool *plain, struct byoc_error *err)
{
    const char *text = getenv("BYOC_DNNL_LAYOUT");
    *plain = text && strcmp(text, "plain") == 0;
    if (!text || !*text || *plain || strcmp(text, "channels-last") == 0)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "BYOC_DNNL_LAYOUT is %.40s, expected plain or "
                    "channels-last",
                    text);
}

enum byoc_status byi_dn_program_new(const struct byi_dnnl *lib,
                                    const struct byoc_host *host,
                                    struct byi_graph *graph, uint32_t n_consts,
                                    const struct byoc_view *consts, bool probe,
                                    struct byi_program **program,
                                    struct byoc_error *err)
{
    struct byi_program *p = byi_alloc(1, sizeof *p);
    if (!p) {
        byi_graph_free(&graph);
        return byi_fail(err, BYOC_ENOMEM, "out of memory");
    }
    p->lib = lib;
    p->host = host;
    p->graph = graph;
    p->arena = byi_arena_new();
    struct byoc_error local = {0}; /* also holds what was tried in vain */
    struct byi_build b = {
        .program = p,
        .lib = lib,
        .consts = consts,
        .probe = probe,
        .err = &local,
    };
    enum byoc_status status = read_layout(&b.plain, &local);
    for (uint32_t i = 0; i < graph->n_nodes && status == BYOC_OK; i++) {
        const struct byi_gnode *node = &graph->nodes[i];
        if (node->kind == BYI_G_CONST &&
            (node->data >= n_consts ||
             consts[node->data].bytes != byi_type_bytes(node->out[0])))
            status = byi_fail(&local, BYOC_EINVAL,
                              "nodes[%u].data: constant %u is missing or has "
                              "another size than its type",
                              i, node->data);
    }
    if (status == BYOC_OK)
        status = build_program(&b);
    byi_vec_free(b.packs.at);
    if (status == BYOC_OK) {
        *program = p;
        return BYOC_OK;
    }
    byi_dn_program_free(&p);
    return byi_fail(err, status, "%s", local.text);
}

void byi_dn_program_free(struct byi_program **program)
{
    struct byi_program *p = *program;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->steps.n; i++)
        byi_prim_free(&p->steps.at[i].prim);
    for (uint32_t i = 0; i < p->bufs.n; i++) {
        const struct byi_buf *buf = &p->bufs.at[i];
        if (buf->shared)
            byi_dn_share_end(buf->shared);
        else if (buf->kind == BYI_BUF_OWNED)
            p->host->release(p->host->ctx, buf->data);
    }
    byi_vec_free(p->steps.at);
    byi_vec_free(p->bufs.at);
    byi_graph_free(&p->graph);
    byi_arena_free(&p->arena);
    byi_release(p);
    *program = NULL;
}
