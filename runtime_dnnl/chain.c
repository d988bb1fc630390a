/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/chain.c: builds a kernel's epilogue, the operators after its
 * first one. Reads them as a chain, a list of items, each of which may become a
 * post-op. Items become post-ops of the kernel's primitive, in the model's
 * order, as far as oneDNN supports that. An item that oneDNN refuses, or fuses
 * only in a reference implementation, runs as a separate primitive, with the
 * items after it as post-ops. */
#include "runtime_dnnl/build.h"

#include <string.h>

/* --- reading ------------------------------------------------------------- */

/* An operator that is one elementwise function. Each parameter is the value of
 * the attribute with this name or, if the name is NULL, the number. */
struct unary {
    const char *name;
    enum byi_elt alg;
    const char *alpha, *beta;
    float alpha_value, beta_value;
};

#define COMMA ,
#define UNARY(op, name, elt, alpha, beta, a, b)                                \
    {                                                                          \
        name, BYI_ELT_##elt, alpha, beta, a, b                                 \
    }
static const struct unary unaries[] = {BYI_DN_ELTWISE(UNARY, COMMA)};

#define BINARY(op, name, bin)                                                  \
    {                                                                          \
        name, BYI_BIN_##bin                                                    \
    }
static const struct {
    const char *name;
    enum byi_bin alg;
} binaries[] = {BYI_DN_BINARY(BINARY, COMMA)};

enum { MAX_ITEMS_PER_STEP = 2 };

static void add_elt(struct byi_chain *c, const struct byi_chain_item *like,
                    enum byi_elt alg, float alpha, float beta)
{
    struct byi_chain_item item = *like;
    item.kind = BYI_ITEM_ELT;
    item.alg = (int)alg;
    item.alpha = alpha;
    item.beta = beta;
    c->at[c->n++] = item;
}

static void add_bin(struct byi_chain *c, const struct byi_chain_item *like,
                    enum byi_bin alg, uint32_t operand)
{
    struct byi_chain_item item = *like;
    item.kind = BYI_ITEM_BIN;
    item.alg = (int)alg;
    item.operand = operand;
    c->at[c->n++] = item;
}

/* Read an elementwise step of one argument; false if the step is another
 * operator. Two items may be added for one step. */
static bool read_unary(const struct byoc_graph_step *step, struct byi_chain *c,
                       const struct byi_chain_item *like)
{
    const struct unary *u = NULL;
    for (size_t i = 0; i < BYI_COUNT(unaries) && !u; i++)
        if (byi_dn_is(step, unaries[i].name))
            u = &unaries[i];
    if (!u)
        return false;
    float alpha =
        u->alpha ? (float)byoc_graph_float(step, u->alpha, 0) : u->alpha_value;
    float beta =
        u->beta ? (float)byoc_graph_float(step, u->beta, 0) : u->beta_value;
    enum byi_elt alg = u->alg;
    if (byi_dn_is(step, "nn.gelu") &&
        strcmp(byoc_graph_string(step, "approximate", ""), "tanh") == 0)
        alg = BYI_ELT_GELU_TANH;
    if (byi_dn_is(step, "nn.hard_sigmoid") && byi_dnnl_major() < 3) {
        add_elt(c, like, BYI_ELT_LINEAR, alpha, beta);
        add_elt(c, like, BYI_ELT_CLIP, 0, 1);
        return true;
    }
    add_elt(c, like, alg, alpha, beta);
    if (byi_dn_is(step, "nn.selu"))
        add_elt(c, like, BYI_ELT_LINEAR,
                (float)byoc_graph_float(step, "gamma", 0), 0);
    return true;
}

/* Read a binary step whose argument `previous` is the chain's value and whose
 * other argument is `operand`. The chain's value must come first: operand -
 * value becomes -value + operand; operand / value becomes value^-1 * operand.
 */
static bool read_binary(const struct byoc_graph_step *step, uint32_t previous,
                        uint32_t operand, struct byi_chain *c,
                        const struct byi_chain_item *like)
{
    for (size_t i = 0; i < BYI_COUNT(binaries); i++) {
        if (!byi_dn_is(step, binaries[i].name))
            continue;
        enum byi_bin alg = binaries[i].alg;
        if (previous == 1 && alg == BYI_BIN_SUB) {
            add_elt(c, like, BYI_ELT_LINEAR, -1, 0);
            alg = BYI_BIN_ADD;
        } else if (previous == 1 && alg == BYI_BIN_DIV) {
            add_elt(c, like, BYI_ELT_POW, 1, -1);
            alg = BYI_BIN_MUL;
        }
        add_bin(c, like, alg, operand);
        return true;
    }
    return false;
}

/* Read x^e, for the exponents that oneDNN computes fast. Not 1/2, since
 * oneDNN's root of minus infinity is NaN, and its power is infinity. */
static enum byoc_status read_power(struct byi_build *b, uint32_t operand,
                                   struct byi_chain *c,
                                   const struct byi_chain_item *like)
{
    float e = 0;
    if (!byi_dn_read_const_scalar(b, operand, &e))
        return byi_dn_refuse(b, "power: found an exponent that is not a "
                                "constant scalar, expected 2, -1 or 1");
    if (e == 2.0f)
        add_elt(c, like, BYI_ELT_SQUARE, 0, 0);
    else if (e == -1.0f)
        add_elt(c, like, BYI_ELT_POW, 1, -1);
    else if (e != 1.0f)
        return byi_dn_refuse(b,
                             "power: found exponent %s, expected 2, -1 or 1, "
                             "since oneDNN is slow or inexact for others",
                             BYI_FLOAT_TEXT((double)e));
    return BYOC_OK;
}

static enum byoc_status read_prelu(struct byi_build *b, uint32_t operand,
                                   struct byi_chain *c,
                                   const struct byi_chain_item *like)
{
    float slope;
    if (byi_dn_read_const_scalar(b, operand, &slope) && slope != 0) {
        add_elt(c, like, BYI_ELT_RELU, slope, 0);
        return BYOC_OK;
    }
    struct byi_chain_item item = *like;
    item.kind = BYI_ITEM_PRELU;
    item.operand = operand;
    c->at[c->n++] = item;
    return BYOC_OK;
}

/* Whether the value is the result of a step of this kernel. */
static bool is_step(const struct byi_build *b, uint32_t value)
{
    const struct byoc_graph_value *v = &b->graph->values[value];
    return v->kind == BYOC_GRAPH_RESULT && v->index >= b->kernel->first;
}

/* Find the argument of step `at` that is the chain's value: the previous step,
 * or, for the first step of an elementwise kernel, operand `main`. */
static enum byoc_status find_previous(struct byi_build *b, uint32_t at,
                                      uint32_t main, uint32_t *previous)
{
    const struct byoc_graph_step *step = byi_dn_step(b, at);
    if (at == 0) {
        *previous = main;
        return BYOC_OK;
    }
    const struct byoc_graph_step *previous_step = byi_dn_step(b, at - 1);
    for (uint32_t i = 0; i < step->n_args; i++)
        if (is_step(b, step->args[i]) &&
            (step->args[i] != previous_step->outs[0] ||
             previous_step->n_outs != 1))
            return byi_dn_refuse(b,
                                 "%s: found an operand from an earlier step, "
                                 "expected a post-op to read only the "
                                 "previous step",
                                 step->name);
    for (*previous = 0; *previous < step->n_args; ++*previous)
        if (is_step(b, step->args[*previous]))
            return BYOC_OK;
    return byi_dn_refuse(b,
                         "%s: found no operand that is the result of the "
                         "previous step, expected one, since it is a post-op",
                         step->name);
}

static enum byoc_status read_step(struct byi_build *b, uint32_t at,
                                  uint32_t main, struct byi_chain *c)
{
    const struct byoc_graph_step *step = byi_dn_step(b, at);
    const struct byi_chain_item like = {
        .step = at, .type = &b->graph->values[step->outs[0]]};
    if (step->n_outs != 1)
        return byi_dn_refuse(b, "%s: found %u results, expected 1", step->name,
                             step->n_outs);
    if (!byi_dn_is_float(like.type->dtype))
        return byi_dn_refuse(b,
                             "%s: found a result of type %s, expected "
                             "float32, float16 or bfloat16",
                             step->name, byoc_dtype_name(like.type->dtype));
    uint32_t previous = 0;
    BYI_TRY(find_previous(b, at, main, &previous));
    if (byi_dn_is(step, "copy") || read_unary(step, c, &like))
        return BYOC_OK;
    if (step->n_args == 2) {
        const uint32_t operand = step->args[1 - previous];
        const bool square = operand == step->args[previous];
        if (square && byi_dn_is(step, "multiply")) {
            add_elt(c, &like, BYI_ELT_SQUARE, 0, 0);
            return BYOC_OK;
        }
        if (!is_step(b, operand)) {
            if (read_binary(step, previous, operand, c, &like))
                return BYOC_OK;
            if (byi_dn_is(step, "power") && previous == 0)
                return read_power(b, operand, c, &like);
            if (byi_dn_is(step, "nn.prelu") && previous == 0)
                return read_prelu(b, operand, c, &like);
        }
    }
    return byi_dn_refuse(
        b, "found operator %s, expected one that oneDNN takes as a post-op",
        step->name);
}

enum byoc_status byi_dn_chain_read(struct byi_build *b, uint32_t first,
                                   uint32_t end, uint32_t main,
                                   struct byi_chain *chain)
{
    const uint32_t n = end - first;
    chain->n = 0;
    chain->at = byi_arena_calloc(b->arena, (size_t)n * MAX_ITEMS_PER_STEP,
                                 sizeof *chain->at);
    for (uint32_t i = first; i < end; i++)
        BYI_TRY(read_step(b, i, main, chain));
    return BYOC_OK;
}

static bool have_same_dims(const struct byoc_graph_value *type,
                           const struct byi_desc *dst)
{
    if (type->rank == 0)
        return byi_elements(dst->rank, dst->dims) == 1;
    return byi_dims_equal(type->rank, type->dims, dst->rank, dst->dims);
}

enum byoc_status byi_dn_chain_bias(struct byi_build *b,
                                   const struct byi_chain *chain,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_dnnl_view *bias, uint32_t *next)
{
    *next = 0;
    if (chain->n == 0 || chain->at[0].kind != BYI_ITEM_BIN ||
        chain->at[0].alg != BYI_BIN_ADD ||
        !have_same_dims(chain->at[0].type, dst))
        return BYOC_OK;
    struct byi_dnnl_value *value = byi_dn_operand(b, chain->at[0].operand);
    const struct byi_desc *desc = &value->views[0].desc;
    if (desc->rank > dst->rank || desc->dtype != dst->dtype)
        return BYOC_OK;
    const struct byi_desc padded = byi_dn_with_rank(desc, dst->rank);
    for (uint32_t i = 0; i < dst->rank; i++)
        if (padded.dims[i] != (i == axis ? dst->dims[i] : 1))
            return BYOC_OK;
    BYI_TRY(byi_dn_get_row_major(b, value, bias));
    bias->desc = byi_dn_dense(dst->dtype, 1, &dst->dims[axis], NULL);
    *next = 1;
    return BYOC_OK;
}

/* --- fusing -------------------------------------------------------------- */

/* A choice of post-ops: some of the next items, at most one of them as a sum.
 */
struct byi_fusion {
    struct byi_posts posts; /* points to post[] */
    struct byi_post post[BYI_MAX_POSTS];
    struct byi_desc layout[BYI_MAX_POSTS]; /* layouts of the operands, in the
                                            * graph's dims */
    uint32_t sum; /* index of the sum, or BYI_MAX_POSTS if there is none */
};

/* Describe an operand for a primitive whose batch axes are folded into M; false
 * if that is impossible. */
static bool fold_operand(const struct byi_desc *dst,
                         const struct byi_desc *operand, struct byi_desc *out)
{
    const uint32_t n = operand->rank;
    int64_t dims[2] = {1, operand->dims[n - 1]};
    if (byi_dims_equal(n, operand->dims, dst->rank, dst->dims)) {
        dims[0] = byi_elements(n, operand->dims) / dims[1];
    } else {
        for (uint32_t i = 0; i + 1 < n; i++)
            if (operand->dims[i] != 1)
                return false;
    }
    *out = byi_dn_dense(operand->dtype, 2, dims, NULL);
    return true;
}

/* Find the layout that an operand must have if the result is `dst`; false if it
 * does not broadcast to dst. */
static bool find_operand_layout(const struct byi_desc *operand,
                                const struct byi_desc *dst,
                                struct byi_desc *layout)
{
    if (operand->rank > dst->rank || operand->dtype != dst->dtype)
        return false;
    const struct byi_desc padded = byi_dn_with_rank(operand, dst->rank);
    for (uint32_t i = 0; i < dst->rank; i++)
        if (padded.dims[i] != 1 && padded.dims[i] != dst->dims[i])
            return false;
    *layout = byi_dn_dense_like(dst, padded.dims);
    layout->dtype = operand->dtype;
    return true;
}

/* Whether the operand's buffer can become dst, so that the primitive adds to
 * it. */
static bool may_sum(struct byi_build *b, const struct byi_core *core,
                    const struct byi_chain_item *item,
                    const struct byi_desc *layout)
{
    if (item->kind != BYI_ITEM_BIN || item->alg != BYI_BIN_ADD ||
        !byi_dims_equal(layout->rank, layout->dims, core->dst.rank,
                        core->dst.dims))
        return false;
    struct byi_dnnl_value *value = byi_dn_operand(b, item->operand);
    const struct byi_desc unpadded =
        byi_dn_with_rank(layout, value->views[0].desc.rank);
    const struct byi_dnnl_view *existing = byi_dn_find(value, &unpadded);
    if (existing)
        return byi_dn_may_overwrite(b, existing);
    /* the operand will be copied to this layout for this reader only */
    return value->uses == 1 && !byi_dn_is_constant(b, value->views[0].buf);
}

/* Whether at most one axis is longer than 1. */
static bool is_vector(const struct byi_desc *desc)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < desc->rank; i++)
        n += desc->dims[i] != 1;
    return n <= 1;
}

/* Make items next .. next + n - 1 post-ops; false if one of them cannot be a
 * post-op, or if `with_sum` and none can be a sum. */
static bool plan_fusion(struct byi_build *b, const struct byi_core *core,
                        const struct byi_chain *chain, uint32_t next,
                        uint32_t n, bool with_sum, struct byi_fusion *f)
{
    f->posts = (struct byi_posts){.n = n, .at = f->post};
    f->sum = BYI_MAX_POSTS;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_chain_item *item = &chain->at[next + i];
        struct byi_post *post = &f->post[i];
        memset(post, 0, sizeof *post);
        if (!have_same_dims(item->type, &core->dst))
            return false;
        post->alg = item->alg;
        if (item->kind == BYI_ITEM_ELT) {
            post->kind = BYI_POST_ELT;
            post->alpha = item->alpha;
            post->beta = item->beta;
            continue;
        }
        const struct byi_dnnl_value *value = byi_dn_operand(b, item->operand);
        post->kind = BYI_POST_BIN;
        if (core->elt_only || !find_operand_layout(&value->views[0].desc,
                                                   &core->dst, &f->layout[i]))
            return false;
        post->desc = core->order
                         ? byi_dn_permute_desc(&f->layout[i], core->order)
                         : f->layout[i];
        if (core->folded &&
            !fold_operand(&core->dst, &f->layout[i], &post->desc))
            return false;
        if (item->kind == BYI_ITEM_PRELU) {
            post->kind = BYI_POST_PRELU;
            if (!is_vector(&post->desc))
                return false;
        }
        if (with_sum && f->sum == BYI_MAX_POSTS &&
            may_sum(b, core, item, &f->layout[i])) {
            post->kind = BYI_POST_SUM;
            f->sum = i;
        }
    }
    return !with_sum || f->sum != BYI_MAX_POSTS;
}

/* Create the primitive with the fusion's post-ops and check its result. */
static enum byoc_status try_fusion(struct byi_build *b, struct byi_core *core,
                                   const struct byi_fusion *f,
                                   struct byi_prim **prim)
{
    BYI_TRY(core->make(b, core->params, &f->posts, prim));
    const int64_t elements = byi_elements(core->dst.rank, core->dst.dims);
    const bool is_small = elements <= BYI_REF_TERMS;
    return byi_prim_check(
        prim, byi_dn_step(b, core->step)->name,
        is_small ? elements * byi_max(core->terms, 1) : elements, b->err);
}

/* Whether byoc's own kernels run the fusion if its sum becomes a binary
 * operand. They write dst before they apply the post-ops after the first one,
 * so only the first one can be a sum; oneDNN's kernels can be slower by far. */
static bool prefers_operand(struct byi_build *b, const struct byi_core *core,
                            const struct byi_chain *chain, uint32_t next,
                            const struct byi_fusion *summed)
{
    struct byi_fusion f;
    return summed->sum > 0 && core->is_fast &&
           plan_fusion(b, core, chain, next, summed->posts.n, false, &f) &&
           core->is_fast(core->params, &f.posts);
}

/* Find the longest fusion that can be created: tries the largest number of
 * items first and, for each number, an in-place sum before a binary operand,
 * unless prefers_operand(). */
static enum byoc_status choose_fusion(struct byi_build *b,
                                      struct byi_core *core,
                                      const struct byi_chain *chain,
                                      uint32_t next, struct byi_fusion *f,
                                      struct byi_prim **prim)
{
    uint32_t most = core->no_posts ? 0 : chain->n - next;
    if (most > BYI_MAX_POSTS)
        most = BYI_MAX_POSTS;
    for (uint32_t n = most + 1; n-- > 0;) {
        for (int with_sum = !core->no_sum; with_sum >= 0; with_sum--) {
            if (!plan_fusion(b, core, chain, next, n, with_sum, f) ||
                (with_sum && prefers_operand(b, core, chain, next, f)))
                continue;
            const enum byoc_status status = try_fusion(b, core, f, prim);
            if (status != BYOC_EUNSUPPORTED)
                return status;
        }
    }
    /* b->err is that of the last attempt, which has no post-ops */
    return BYOC_EUNSUPPORTED;
}

/* The name of the core's operator joined with those of items from .. end - 1.
 */
static const char *fused_name(struct byi_build *b, const struct byi_core *core,
                              const struct byi_chain *chain, uint32_t from,
                              uint32_t end)
{
    const char *name = byi_dn_step(b, core->step)->name;
    uint32_t last = core->step;
    for (uint32_t i = from; i < end; i++) {
        if (chain->at[i].step == last)
            continue;
        last = chain->at[i].step;
        name = byi_arena_printf(b->arena, "%s+%s", name,
                                byi_dn_step(b, last)->name);
    }
    return name;
}

/* Add the core's arguments to those of its primitive. */
static enum byoc_status use_args(struct byi_build *b,
                                 const struct byi_core *core,
                                 struct byi_emit *e)
{
    if (core->gathered)
        byi_dn_gather_use(e, core->gathered);
    else
        byi_dn_use(e, BYI_ARG_SRC, &core->src);
    for (uint32_t i = 0; i < core->n_args; i++) {
        const struct byi_core_arg *a = &core->args[i];
        if (a->packed)
            BYI_TRY(byi_dn_get_packed(b, a->view, e->prim, a->arg,
                                      &e->uses[e->n++]));
        else
            byi_dn_use(e, a->arg, a->view);
    }
    return BYOC_OK;
}

/* Emit the core with its post-ops; advances *next past them and sets *view to
 * the result. Items from .. *next - 1 are already part of the core, as its
 * bias. */
static enum byoc_status emit_core(struct byi_build *b, struct byi_core *core,
                                  const struct byi_chain *chain, uint32_t from,
                                  uint32_t *next, struct byi_dnnl_view *view)
{
    if (!b->fusion)
        b->fusion = byi_arena_alloc(b->arena, sizeof *b->fusion);
    struct byi_fusion *f = b->fusion;
    struct byi_emit e = {0};
    BYI_TRY(choose_fusion(b, core, chain, *next, f, &e.prim));
    enum byoc_status status = use_args(b, core, &e);
    *view = (struct byi_dnnl_view){.desc = core->dst};
    bool placed = false;
    for (uint32_t i = 0; i < f->posts.n && status == BYOC_OK; i++) {
        if (f->post[i].kind == BYI_POST_ELT)
            continue;
        struct byi_dnnl_value *value =
            byi_dn_operand(b, chain->at[*next + i].operand);
        const struct byi_desc unpadded =
            byi_dn_with_rank(&f->layout[i], value->views[0].desc.rank);
        struct byi_dnnl_view operand;
        status = byi_dn_get_view(b, value, &unpadded, &operand);
        if (i == f->sum) {
            view->buf = operand.buf;
            placed = true;
        } else if (status == BYOC_OK) {
            byi_dn_use(&e,
                       (int)i + (f->post[i].kind == BYI_POST_PRELU
                                     ? BYI_ARG_SLOPE
                                     : BYI_ARG_POST),
                       &operand);
        }
    }
    if (status != BYOC_OK) {
        byi_dn_abandon(b, &e.prim);
        return status;
    }
    if (!placed)
        view->buf = core->in_place && byi_dn_may_overwrite(b, &core->src)
                        ? core->src.buf
                        : byi_dn_temp(b, byi_dn_desc_bytes(&core->dst));
    byi_dn_use(&e, BYI_ARG_DST, view);
    *next += f->posts.n;
    e.name = fused_name(b, core, chain, from, *next);
    if (core->gathered)
        e.name =
            byi_arena_printf(b->arena, "%s+%s", core->gathered->name, e.name);
    return byi_dn_emit(b, &e);
}

/* --- items as separate primitives ---------------------------------------- */

/* The parameters and operands of an item that is a separate primitive. */
struct item_primitive {
    struct byi_dnnl_eltwise elt;
    struct byi_dnnl_binary bin;
    struct byi_dnnl_prelu prelu;
    struct byi_dnnl_view src, second;
};

/* Set p->second to the operand of an item, in a layout that fits p->src. */
static enum byoc_status get_second(struct byi_build *b,
                                   const struct byi_chain_item *item,
                                   struct item_primitive *p)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, item->operand);
    struct byi_desc layout;
    const struct byi_desc *second = &value->views[0].desc, *src = &p->src.desc;
    if (!find_operand_layout(second, src, &layout)) {
        char found[2][128];
        return byi_dn_refuse(
            b,
            "%s: found operands %s %s and %s %s, expected one type, and a "
            "second operand that broadcasts to the first",
            byi_dn_step(b, item->step)->name, byoc_dtype_name(src->dtype),
            byi_dims_text(found[0], sizeof found[0], src->rank, src->dims),
            byoc_dtype_name(second->dtype),
            byi_dims_text(found[1], sizeof found[1], second->rank,
                          second->dims));
    }
    const struct byi_desc unpadded =
        byi_dn_with_rank(&layout, value->views[0].desc.rank);
    BYI_TRY(byi_dn_get_view(b, value, &unpadded, &p->second));
    p->second.desc = layout;
    return BYOC_OK;
}

/* If the chain's value is broadcast to the item's operand, make the operand the
 * source of the primitive and the chain's value its second operand. Errors:
 * BYOC_EUNSUPPORTED for operators that do not commute, and if both are
 * broadcast. */
static enum byoc_status swap_operands(struct byi_build *b,
                                      const struct byi_chain_item *item,
                                      struct item_primitive *p)
{
    const char *name = byi_dn_step(b, item->step)->name;
    struct byi_dnnl_value *value = byi_dn_operand(b, item->operand);
    struct byi_dnnl_view whole;
    if (item->alg == BYI_BIN_SUB || item->alg == BYI_BIN_DIV)
        return byi_dn_refuse(b,
                             "%s: found a first operand that is broadcast, "
                             "expected only the second to be broadcast, since "
                             "oneDNN has only a reference implementation of "
                             "the former",
                             name);
    BYI_TRY(byi_dn_get_dense(b, value, &whole));
    struct byi_desc layout;
    if (!have_same_dims(item->type, &whole.desc) ||
        !find_operand_layout(&p->src.desc, &whole.desc, &layout))
        return byi_dn_refuse(b,
                             "%s: both operands are broadcast, expected one "
                             "with the result's shape",
                             name);
    const struct byi_desc unpadded =
        byi_dn_with_rank(&layout, p->src.desc.rank);
    struct byi_dnnl_view reordered = p->src;
    if (!byi_dn_same_layout(&unpadded, &p->src.desc))
        BYI_TRY(byi_dn_reorder(b, &p->src, &unpadded, &reordered));
    p->src = whole;
    p->second = reordered;
    p->second.desc = layout;
    return BYOC_OK;
}

/* Get the slopes of a prelu. Makes its data row-major if oneDNN would misread
 * the slopes otherwise. */
static enum byoc_status get_slopes(struct byi_build *b,
                                   const struct byi_chain_item *item,
                                   struct item_primitive *p)
{
    const struct byi_desc *src = &p->src.desc;
    struct byi_dnnl_view reordered;
    BYI_TRY(get_second(b, item, p));
    if (!byi_fault_prelu(&(const struct byi_dnnl_prelu){
            .src = *src, .weights = p->second.desc}))
        return BYOC_OK;
    const struct byi_desc row_major =
        byi_dn_dense(src->dtype, src->rank, src->dims, NULL);
    BYI_TRY(byi_dn_reorder(b, &p->src, &row_major, &reordered));
    p->src = reordered;
    return get_second(b, item, p);
}

/* The reference implementations of prelu and of binary operators take 24 ns and
 * 90 ns for an element, as long as that of a product for this many terms. */
enum { PRELU_TERMS = 8, BINARY_TERMS = 32 };

/* Describe the primitive of an item that reads `view`, in *core and *p. */
static enum byoc_status describe_item(struct byi_build *b,
                                      const struct byi_chain_item *item,
                                      struct byi_dnnl_view *view,
                                      struct item_primitive *p,
                                      struct byi_core *core)
{
    memset(p, 0, sizeof *p);
    p->src = *view;
    *core = (struct byi_core){.step = item->step};
    if (item->kind == BYI_ITEM_ELT) {
        p->elt = (struct byi_dnnl_eltwise){.alg = (enum byi_elt)item->alg,
                                           .alpha = item->alpha,
                                           .beta = item->beta,
                                           .src = view->desc};
        core->make = byi_dn_make_eltwise;
        core->params = &p->elt;
        core->no_posts = true; /* with post-ops, oneDNN uses its reference */
    } else {
        const bool same = have_same_dims(item->type, &view->desc);
        BYI_TRY(!same                          ? swap_operands(b, item, p)
                : item->kind == BYI_ITEM_PRELU ? get_slopes(b, item, p)
                                               : get_second(b, item, p));
        const bool binary = item->kind == BYI_ITEM_BIN;
        core->make = binary ? byi_dn_make_binary : byi_dn_make_prelu;
        core->params = binary ? (const void *)&p->bin : &p->prelu;
        core->n_args = 1;
        core->args[0] = (struct byi_core_arg){
            .arg = binary ? BYI_ARG_SRC1 : BYI_ARG_WEIGHTS, .view = &p->second};
        core->no_posts = !binary;
        core->terms = binary ? BINARY_TERMS : PRELU_TERMS;
        p->bin = (struct byi_dnnl_binary){.alg = (enum byi_bin)item->alg,
                                          .src = p->src.desc,
                                          .src1 = p->second.desc,
                                          .dst = p->src.desc};
        p->prelu = (struct byi_dnnl_prelu){.src = p->src.desc,
                                           .weights = p->second.desc};
    }
    /* all versions: an in-place prelu applies some slopes twice */
    core->in_place = item->kind != BYI_ITEM_PRELU;
    core->src = p->src;
    core->dst = p->src.desc;
    return BYOC_OK;
}

enum byoc_status byi_dn_emit_items(struct byi_build *b,
                                   const struct byi_chain *chain, uint32_t next,
                                   struct byi_dnnl_view view)
{
    while (next < chain->n) {
        struct item_primitive p;
        struct byi_core core;
        BYI_TRY(describe_item(b, &chain->at[next], &view, &p, &core));
        next++;
        BYI_TRY(emit_core(b, &core, chain, next, &next, &view));
    }
    byi_dn_define(b, 0, &view);
    return BYOC_OK;
}

enum byoc_status byi_dn_emit_chain(struct byi_build *b, struct byi_core *core,
                                   const struct byi_chain *chain, uint32_t next)
{
    struct byi_dnnl_view view;
    BYI_TRY(emit_core(b, core, chain, 0, &next, &view));
    return byi_dn_emit_items(b, chain, next, view);
}
