/* SPDX-License-Identifier: Apache-2.0 */
/* jitter.c: makes a module less exact. Every float result of an operator, and
 * every float constant, is multiplied by random factors within 2^-20 of 1, up
 * to about eight times the error of rounding. A result that this does not
 * change does not depend on the order of additions. A close comparison may
 * change. argmax and argmin break ties the other way, since equal numbers may
 * differ slightly in a more exact computation.
 */
#include "programs.h"

#include <string.h>

/* The state of changing a module, in function f. */
struct jitter {
    struct byi_module *m;
    struct byi_func *f;
    uint64_t state;
};

static double nearly_one(struct jitter *j)
{
    j->state = j->state * 6364136223846793005u + 1442695040888963407u;
    return 1.0 + (double)(int64_t)(j->state >> 11) * 0x1p-72 - 0x1p-20;
}

/* Add a constant of the type: `from`, or ones if it is NULL, times random
 * factors close to 1. */
static byi_id add_jittered(struct jitter *j, const struct byi_type *type,
                           const struct byi_tensor *from)
{
    struct byi_tensor t = {.dtype = type->dtype, .rank = type->rank};
    memcpy(t.dims, type->dims, type->rank * sizeof *t.dims);
    t.data = byi_arena_alloc(j->m->arena, byi_tensor_bytes(&t) + 1);
    const int64_t n = byi_elements(t.rank, t.dims);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(
            &t, i, (from ? byi_tensor_float(from, i) : 1.0) * nearly_one(j));
    return byi_add_const(j->m, j->f, byi_const_add(j->m, type, t.data, false),
                         NULL);
}

/* A type with fixed sizes that broadcasts to `type`: symbolic dims become 1. */
static const struct byi_type *fix_type(struct jitter *j,
                                       const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t d = 0; d < type->rank; d++)
        dims[d] = BYI_IS_SYMBOL(type->dims[d]) ? 1 : type->dims[d];
    return byi_type_tensor(j->m->arena, type->dtype, type->rank, dims);
}

static byi_id perturb(struct jitter *j, byi_id id)
{
    const struct byi_type *type = j->f->nodes.at[id].type;
    const enum byi_node_kind kind = j->f->nodes.at[id].kind;
    struct byi_tensor view;
    if (type->kind != BYI_TENSOR || !byi_dtype_is_float(type->dtype))
        return id;
    if (kind == BYI_CONST && byi_const_view(j->m, j->f, id, &view))
        return add_jittered(j, type, &view);
    if (kind != BYI_CALL_OP)
        return id;
    const byi_id factor = add_jittered(j, fix_type(j, type), NULL);
    byi_id product = id;
    if (byi_add_call(j->m, j->f, BYI_OP_MULTIPLY, (byi_id[]){id, factor}, 2,
                     NULL, 0, NULL, &product, NULL) != BYOC_OK)
        return id;
    return product;
}

/* Make argmax and argmin take the last of equal numbers. */
static byi_id reverse_ties(struct jitter *j, byi_id id)
{
    const struct byi_node node = j->f->nodes.at[id];
    if (node.kind != BYI_CALL_OP ||
        (node.op != BYI_OP_ARGMAX && node.op != BYI_OP_ARGMIN))
        return id;
    struct byi_attr *at =
        byi_arena_copy(j->m->arena, node.attrs->at, node.attrs->n * sizeof *at);
    for (uint32_t i = 0; i < node.attrs->n; i++)
        if (strcmp(at[i].name, "select_last_index") == 0)
            at[i].i = !at[i].i;
    byi_id call = id;
    if (byi_add_call(j->m, j->f, node.op, node.args, node.n_args, at,
                     node.attrs->n, node.sources, &call, NULL) != BYOC_OK)
        return id;
    return call;
}

static void jitter_func(struct jitter *j, uint32_t index)
{
    const struct byi_func *old = j->m->funcs.at[index];
    byi_id *map = byi_arena_calloc(j->m->arena, old->nodes.n + 1, sizeof *map);
    j->f = byi_func_like(j->m, old, map);
    for (byi_id id = 0; id < old->nodes.n; id++) {
        if (old->nodes.at[id].kind == BYI_PARAM)
            continue;
        if (byi_add_copy(j->m, j->f, old, id, map, &map[id], NULL) != BYOC_OK)
            return; /* the function does not change */
        map[id] = perturb(j, reverse_ties(j, map[id]));
    }
    j->f->result = map[old->result];
    byi_func_replace(j->m, index, j->f);
}

void program_jitter(struct byi_module *m, uint64_t seed)
{
    struct jitter j = {.m = m, .state = seed};
    const uint32_t n = m->funcs.n;
    for (uint32_t i = 0; i < n; i++)
        if (!m->funcs.at[i]->dead)
            jitter_func(&j, i);
}
