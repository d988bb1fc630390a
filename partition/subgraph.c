/* SPDX-License-Identifier: Apache-2.0 */
/* subgraph.c: cuts nodes out of a function, to time them, and identifies them
 * by a hash of everything that their time depends on.
 */
#include "cost.h"

#include <string.h>

/* A subgraph that is copied or hashed. */
struct cutter {
    const struct byi_module *m;
    const struct byi_func *f;
    const struct byi_subgraph *subgraph;
    struct byi_arena *arena;
    byi_id *inner; /* of each node of f: its copy, or its number in a hash */
    bool *inside;  /* of each node of f: it belongs to the subgraph */
};

static void open_cutter(struct cutter *c, const struct byi_module *m,
                        const struct byi_subgraph *subgraph)
{
    const struct byi_func *f = m->funcs.at[subgraph->func];
    *c = (struct cutter){
        .m = m, .f = f, .subgraph = subgraph, .arena = byi_arena_new()};
    c->inner = byi_arena_alloc(c->arena, f->nodes.n * sizeof *c->inner);
    memset(c->inner, 0xff, f->nodes.n * sizeof *c->inner);
    c->inside = byi_arena_calloc(c->arena, f->nodes.n, sizeof *c->inside);
    for (uint32_t i = 0; i < subgraph->n; i++)
        c->inside[subgraph->at[i]] = true;
}

/* --- a subgraph as a function -------------------------------------------- */

static enum byoc_status add_operand(struct cutter *c, struct byi_module *to,
                                    struct byi_func *body, byi_id id,
                                    struct byoc_error *err)
{
    const struct byi_node *node = &c->f->nodes.at[id];
    if (c->inside[id] || c->inner[id] != BYI_NO_ID)
        return BYOC_OK;
    if (node->kind == BYI_CONST) {
        const struct byi_const *k = &c->m->consts.at[node->index];
        c->inner[id] = byi_add_const(
            to, body, byi_const_add(to, k->type, k->data, true), NULL);
        return BYOC_OK;
    }
    if (!byi_type_is_static(node->type))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found operand %u that is not a tensor with fixed "
                        "dims, expected one",
                        id);
    c->inner[id] =
        byi_add_param(to, body, byi_arena_printf(to->arena, "i%u", id),
                      byi_type_tensor(to->arena, node->type->dtype,
                                      node->type->rank, node->type->dims));
    return BYOC_OK;
}

static enum byoc_status add_node(struct cutter *c, struct byi_module *to,
                                 struct byi_func *body, byi_id id,
                                 struct byoc_error *err)
{
    const struct byi_node *node = &c->f->nodes.at[id];
    if (node->kind == BYI_GET)
        return byi_add_get(to, body, c->inner[node->args[0]], node->index, NULL,
                           &c->inner[id], err);
    if (node->kind != BYI_CALL_OP)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found node %u that is not an operator, expected one",
                        id);
    byi_id *args = byi_arena_calloc(c->arena, node->n_args, sizeof *args);
    for (uint32_t a = 0; a < node->n_args; a++)
        args[a] = c->inner[node->args[a]];
    return byi_add_op(to, body, node->op, args, node->n_args, node->attrs, NULL,
                      &c->inner[id], err);
}

/* Returns, by node of the function, whether an outside node reads it or it is
 * the function's result. */
static bool *find_read_outside(const struct cutter *c)
{
    bool *read_outside =
        byi_arena_calloc(c->arena, c->f->nodes.n, sizeof *read_outside);
    for (byi_id id = 0; id < c->f->nodes.n; id++) {
        const struct byi_node *node = &c->f->nodes.at[id];
        for (uint32_t a = 0; a < node->n_args && !c->inside[id]; a++)
            read_outside[node->args[a]] = true;
    }
    read_outside[c->f->result] = true;
    return read_outside;
}

static enum byoc_status add_results(struct cutter *c, struct byi_module *to,
                                    struct byi_func *body,
                                    struct byoc_error *err)
{
    BYI_VEC(byi_id) results = {0};
    const bool *read_outside = find_read_outside(c);
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < c->subgraph->n; i++) {
        const byi_id id = c->subgraph->at[i];
        const struct byi_type *type = c->f->nodes.at[id].type;
        if (!read_outside[id])
            continue;
        if (type->kind == BYI_TENSOR)
            BYI_PUSH(&results, c->inner[id]);
        for (uint32_t k = 0;
             type->kind == BYI_TUPLE && k < type->n_fields && status == BYOC_OK;
             k++) {
            byi_id field = 0;
            status = byi_add_get(to, body, c->inner[id], k, NULL, &field, err);
            BYI_PUSH(&results, field);
        }
    }
    if (status == BYOC_OK && !results.n)
        status = byi_fail(err, BYOC_EUNSUPPORTED,
                          "found no node that reads a result, expected at "
                          "least one");
    if (status == BYOC_OK)
        body->result = results.n == 1 ? results.at[0]
                                      : byi_add_tuple(to, body, results.at,
                                                      results.n, NULL);
    byi_vec_free(results.at);
    return status;
}

static enum byoc_status build_subgraph(struct cutter *c, struct byi_module *to,
                                       struct byi_func *body,
                                       struct byoc_error *err)
{
    for (uint32_t i = 0; i < c->subgraph->n; i++) {
        const struct byi_node *node = &c->f->nodes.at[c->subgraph->at[i]];
        for (uint32_t a = 0; a < node->n_args; a++)
            BYI_TRY(add_operand(c, to, body, node->args[a], err));
    }
    for (uint32_t i = 0; i < c->subgraph->n; i++)
        BYI_TRY(add_node(c, to, body, c->subgraph->at[i], err));
    return add_results(c, to, body, err);
}

enum byoc_status byi_subgraph_add(const struct byi_module *m,
                                  const struct byi_subgraph *subgraph,
                                  struct byi_module *to, const char *name,
                                  struct byoc_error *err)
{
    struct cutter c;
    open_cutter(&c, m, subgraph);
    const uint32_t func = byi_func_new(to, name);
    struct byi_func *body = to->funcs.at[func];
    enum byoc_status status = build_subgraph(&c, to, body, err);
    if (status != BYOC_OK)
        body->dead = true;
    byi_arena_free(&c.arena);
    return status;
}

/* --- hashes --------------------------------------------------------------- */

enum { MAX_SMALL_BYTES = 256 }; /* the same limit as for probes */

static void hash_int(struct byi_sha256 *s, int64_t value)
{
    byi_sha256_add(s, &value, sizeof value);
}

static void hash_text(struct byi_sha256 *s, const char *text)
{
    byi_sha256_add(s, text, strlen(text) + 1);
}

static void hash_type(struct byi_sha256 *s, const struct byi_type *type)
{
    hash_int(s, type->kind);
    if (type->kind != BYI_TENSOR) {
        hash_int(s, type->n_fields);
        for (uint32_t i = 0; i < type->n_fields; i++)
            hash_type(s, type->fields[i]);
        return;
    }
    hash_int(s, type->dtype);
    hash_int(s, type->rank);
    for (uint32_t d = 0; d < type->rank; d++)
        hash_int(s, type->dims[d]);
}

static void hash_attr(struct byi_sha256 *s, const struct byi_attr *a)
{
    hash_text(s, a->name);
    hash_int(s, a->kind);
    hash_int(s, a->n);
    switch (a->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        hash_int(s, a->i);
        break;
    case BYI_ATTR_FLOAT:
        byi_sha256_add(s, &a->f, sizeof a->f);
        break;
    case BYI_ATTR_STRING:
        hash_text(s, a->s);
        break;
    case BYI_ATTR_INTS:
        byi_sha256_add(s, a->ints, a->n * sizeof *a->ints);
        break;
    case BYI_ATTR_FLOATS:
        byi_sha256_add(s, a->floats, a->n * sizeof *a->floats);
        break;
    case BYI_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->n; i++)
            hash_text(s, a->strings[i]);
        break;
    }
}

static void hash_const(struct byi_sha256 *s, const struct byi_const *c)
{
    if (c->bytes <= MAX_SMALL_BYTES && c->type->dtype != BYOC_STRING)
        byi_sha256_add(s, c->data, c->bytes);
}

/* `number` and `func_number` give nodes and functions their numbers in the
 * hash; func_number is NULL if there are no functions. */
static void hash_node(struct byi_sha256 *s, const struct byi_module *m,
                      const struct byi_node *node, const byi_id *number,
                      const uint32_t *func_number)
{
    hash_int(s, node->kind);
    hash_type(s, node->type);
    hash_int(s, node->n_args);
    for (uint32_t a = 0; a < node->n_args; a++)
        hash_int(s, number[node->args[a]]);
    if (node->kind == BYI_CONST) {
        hash_const(s, &m->consts.at[node->index]);
        return;
    }
    if (node->kind != BYI_CALL_OP) {
        hash_int(s, byi_node_refers(node) ? func_number[node->index]
                                          : node->index);
        return;
    }
    hash_text(s, byi_op(node->op)->name);
    for (uint32_t i = 0; node->attrs && i < node->attrs->n; i++)
        hash_attr(s, &node->attrs->at[i]);
}

void byi_subgraph_hash(const struct byi_module *m,
                       const struct byi_subgraph *subgraph,
                       struct byi_sha256 *s)
{
    struct cutter c;
    open_cutter(&c, m, subgraph);
    const bool *read_outside = find_read_outside(&c);
    uint32_t n = 0;
    hash_int(s, subgraph->n);
    for (uint32_t i = 0; i < subgraph->n; i++) {
        const byi_id id = subgraph->at[i];
        const struct byi_node *node = &c.f->nodes.at[id];
        for (uint32_t a = 0; a < node->n_args; a++) {
            const struct byi_node *arg = &c.f->nodes.at[node->args[a]];
            if (c.inner[node->args[a]] != BYI_NO_ID)
                continue;
            c.inner[node->args[a]] = n++;
            hash_int(s, arg->kind == BYI_CONST);
            hash_type(s, arg->type);
            if (arg->kind == BYI_CONST)
                hash_const(s, &m->consts.at[arg->index]);
        }
        hash_node(s, m, node, c.inner, NULL);
        hash_int(s, read_outside[id]);
        c.inner[id] = n++;
    }
    byi_arena_free(&c.arena);
}

void byi_module_hash(const struct byi_module *m, struct byi_sha256 *s)
{
    struct byi_arena *arena = byi_arena_new();
    uint32_t *func_number =
        byi_arena_calloc(arena, m->funcs.n + 1u, sizeof *func_number);
    for (uint32_t i = 0, n = 0; i < m->funcs.n; i++)
        func_number[i] = m->funcs.at[i]->dead ? 0 : n++;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        if (f->dead)
            continue;
        byi_id *number =
            byi_arena_calloc(arena, f->nodes.n + 1u, sizeof *number);
        for (byi_id id = 0; id < f->nodes.n; id++) {
            number[id] = id;
            hash_node(s, m, &f->nodes.at[id], number, func_number);
        }
        hash_int(s, f->result);
        hash_text(s, f->attr.compiler ? f->attr.compiler : "");
        hash_text(s, f->attr.composite ? f->attr.composite : "");
    }
    hash_text(s, byi_module_entry_name(m));
    byi_arena_free(&arena);
}

void byi_subgraph_name(const struct byi_module *m,
                       const struct byi_subgraph *subgraph,
                       struct byi_text *text)
{
    enum { MAX_NAMED = 6 };
    const struct byi_func *f = m->funcs.at[subgraph->func];
    const struct byi_type *type = NULL;
    char dims[128];
    uint32_t n = 0;
    for (uint32_t i = 0; i < subgraph->n; i++) {
        const struct byi_node *node = &f->nodes.at[subgraph->at[i]];
        if (node->kind != BYI_CALL_OP)
            continue;
        if (n++ < MAX_NAMED)
            byi_text_addf(text, "%s%s", n > 1 ? ", " : "",
                          byi_op(node->op)->name);
        if (node->type->kind == BYI_TENSOR)
            type = node->type;
    }
    if (n > MAX_NAMED)
        byi_text_addf(text, " and %u more", n - MAX_NAMED);
    if (type)
        byi_text_addf(text, " %s",
                      byi_dims_text(dims, sizeof dims, type->rank, type->dims));
}
