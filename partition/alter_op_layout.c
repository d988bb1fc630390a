/* SPDX-License-Identifier: Apache-2.0 */
/* AlterOpLayout: give operators the layout that their backend prefers.
 * requires: types; backends                breaks: nothing
 * leaves:   each operator with weights in the layout that its backend prefers,
 *           such as the blocked "NCHW16c"; its neighbours in the same layout
 *           where that is cheaper; at most one conversion per value, where
 *           producer and consumer differ
 *
 *   %0 = nn.conv2d(%x, const[w]);        %0 = layout_transform(%x, ...);
 *   nn.relu(%0)                    ==>   %1 = nn.conv2d(%0, const[w'],
 *                                             data_layout="NCHW16c", ...);
 *                                        %2 = nn.relu(%1);
 *                                        layout_transform(%2, ...)
 *
 * The module is unchanged if no backend has a preference; operators of unknown
 * shapes keep their layout. transform/relayout.h propagates the layouts.
 */
#include "partition.h"

#include <string.h>

#include "core/base/index.h"
#include "core/ops/layout.h"
#include "transform/relayout.h"

/* The layouts that a backend prefers, for all calls with the same operator and
 * shapes. */
struct layout_answer {
    byi_id id; /* the first such call */
    struct byi_layout_preference preferred;
};

/* The state of the pass in one function. */
struct layout_query {
    struct byi_module *m;
    const struct byi_func *f;
    struct byi_pass_context *ctx;
    struct byi_arena *scratch;
    BYI_VEC(struct layout_answer) answers;
    struct byi_index index; /* of the answers, by operator and shapes */
};

/* Whether the call has weights, known shapes, and the default layout. */
static bool may_have_preference(const struct layout_query *a, byi_id id)
{
    const struct byi_node *node = &a->f->nodes.at[id];
    if (node->kind != BYI_CALL_OP ||
        byi_op(node->op)->layout != BYI_LAYOUT_SENSITIVE ||
        !byi_attr_find(node->attrs, "kernel_layout") ||
        !byi_layout_is_default(byi_op(node->op), node->attrs))
        return false;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!byi_type_is_static(a->f->nodes.at[node->args[i]].type))
            return false;
    return byi_type_is_static(node->type);
}

static uint64_t hash_call(const struct byi_func *f, const struct byi_node *node)
{
    uint64_t hash = node->op;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *type = f->nodes.at[node->args[i]].type;
        hash = byi_hash(hash, type->dims, type->rank * sizeof *type->dims);
    }
    return hash;
}

static bool is_same_call(const struct byi_func *f, const struct byi_node *a,
                         const struct byi_node *b)
{
    if (a->op != b->op || a->n_args != b->n_args ||
        !byi_attrs_equal(a->attrs, b->attrs))
        return false;
    for (uint32_t i = 0; i < a->n_args; i++) {
        const struct byi_node *x = &f->nodes.at[a->args[i]];
        const struct byi_node *y = &f->nodes.at[b->args[i]];
        if (!byi_type_equal(x->type, y->type) ||
            (x->kind == BYI_CONST) != (y->kind == BYI_CONST))
            return false;
    }
    return true;
}

/* Build a module of one function that makes only this call. */
static enum byoc_status isolate_call(const struct layout_query *a, byi_id id,
                                     struct byi_module *single_call,
                                     struct byoc_error *err)
{
    const struct byi_node *node = &a->f->nodes.at[id];
    const uint32_t func = byi_func_new(single_call, "main");
    struct byi_func *f = single_call->funcs.at[func];
    byi_id *args = byi_args_new(single_call, node->n_args), result;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_node *arg = &a->f->nodes.at[node->args[i]];
        if (arg->kind == BYI_CONST) {
            const struct byi_const *c = &a->m->consts.at[arg->index];
            args[i] = byi_add_const(
                single_call, f,
                byi_const_add(single_call, c->type, c->data, true), NULL);
            continue;
        }
        char name[16];
        snprintf(name, sizeof name, "x%u", i);
        args[i] = byi_add_param(
            single_call, f, byi_arena_str(single_call->arena, name), arg->type);
    }
    BYI_TRY(byi_add_op(single_call, f, node->op, args, node->n_args,
                       node->attrs, NULL, &result, err));
    f->result = result;
    return BYOC_OK;
}

/* Returns the backend that matched the only call of `single_call`, or NULL;
 * *composite becomes the function of its composite. */
static const struct byi_backend *matching_backend(
    const struct layout_query *a, const struct byi_module *single_call,
    uint32_t *composite)
{
    const struct byi_func *f =
        single_call->funcs.at[byi_func_find(single_call, "main")];
    const struct byi_node *call = &f->nodes.at[f->result];
    const struct byi_func *body = byi_composite_of(single_call, f, call);
    if (!body)
        return NULL;
    *composite = f->nodes.at[call->args[0]].index;
    const size_t n = strcspn(body->attr.composite, ".");
    for (uint32_t i = 0; i < byi_backends_of(a->ctx)->n; i++) {
        const struct byi_backend *backend = &byi_backends_of(a->ctx)->at[i];
        if (strlen(backend->name) == n &&
            memcmp(backend->name, body->attr.composite, n) == 0)
            return backend;
    }
    return NULL;
}

/* Match the module's only call as a compile would, and query the backend that
 * matched it. */
static enum byoc_status ask_backend(const struct layout_query *a, byi_id id,
                                    struct byi_layout_preference *preferred,
                                    struct byoc_error *err)
{
    struct byi_module *single_call = byi_module_new();
    struct byi_pass_context ctx = *a->ctx;
    const struct byi_pass *const merge[] = {&byi_pass_merge_composite};
    uint32_t composite = 0;
    byi_context_put(&ctx, byi_ledger_entry(NULL));
    ctx.instruments = NULL;
    ctx.n_instruments = 0;
    ctx.stop_after = NULL;
    ctx.options = ctx.disabled = ctx.required = NULL;
    ctx.runs_all = true;
    enum byoc_status status = isolate_call(a, id, single_call, err);
    if (status == BYOC_OK)
        status = byi_run_passes(single_call, merge, 1, &ctx, err);
    const struct byi_backend *backend =
        status == BYOC_OK ? matching_backend(a, single_call, &composite) : NULL;
    if (backend)
        status = byi_layout_preference_of(backend, single_call, composite,
                                          preferred, err);
    byi_module_free(&single_call);
    return status;
}

/* Find the preference of the backend for call `id`, among earlier answers or by
 * asking. *preferred is empty if no backend has one. */
static enum byoc_status find_preference(struct layout_query *a, byi_id id,
                                        struct byi_layout_preference *preferred,
                                        struct byoc_error *err)
{
    const struct byi_node *node = &a->f->nodes.at[id];
    const uint64_t hash = hash_call(a->f, node);
    BYI_INDEX_EACH (&a->index, hash, i)
        if (is_same_call(a->f, node, &a->f->nodes.at[a->answers.at[i].id])) {
            *preferred = a->answers.at[i].preferred;
            return BYOC_OK;
        }
    BYI_TRY(ask_backend(a, id, preferred, err));
    BYI_PUSH(&a->answers, ((struct layout_answer){id, *preferred}));
    byi_index_add(&a->index, hash, a->answers.n - 1);
    return BYOC_OK;
}

static enum byoc_status pin_preferred(struct layout_query *a,
                                      struct byi_relayout *rl,
                                      struct byoc_error *err)
{
    for (byi_id id = 0; id < a->f->nodes.n; id++) {
        struct byi_layout_preference preferred = {0};
        if (!may_have_preference(a, id))
            continue;
        BYI_TRY(find_preference(a, id, &preferred, err));
        if (preferred.data[0] == '\0')
            continue;
        const char *kernel = preferred.kernel[0]
                                 ? byi_arena_str(a->scratch, preferred.kernel)
                                 : NULL;
        byi_relayout_pin(rl, id, preferred.data, kernel);
    }
    return BYOC_OK;
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    if (!byi_backends_of(ctx))
        return BYOC_OK;
    struct layout_query *a = byi_arena_calloc(scratch, 1, sizeof *a);
    struct byi_relayout rl;
    a->m = m;
    a->f = m->funcs.at[func];
    a->ctx = ctx;
    a->scratch = a->index.arena = scratch;
    byi_relayout_init(&rl, m, func, ctx, scratch);
    enum byoc_status status = pin_preferred(a, &rl, err);
    if (status == BYOC_OK && rl.changed)
        status = byi_relayout_run(&rl, func, err);
    byi_relayout_free(&rl);
    byi_vec_free(a->answers.at);
    return status;
}

const struct byi_pass byi_pass_alter_op_layout = {
    .name = "AlterOpLayout",
    .summary = "give operators the layout that their backend prefers",
    .opt_level = 3,
    .run_func = run,
};
