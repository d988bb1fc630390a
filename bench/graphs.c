/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.c: generates modules of any size for measuring passes. */
#include "graphs.h"

#include <stdlib.h>

enum {
    DEPTH = 100, /* levels of nested branches */
    FAN = 64     /* see make_functions() */
};

/* A module that is being built. */
struct graph {
    struct byi_module *m;
    struct byi_func *f;          /* the function to which nodes are added */
    const struct byi_type *type; /* of all activations */
    uint32_t n_consts;
};

/* Start a function; its name is NULL if it is a literal. */
static void start(struct graph *g, const char *name)
{
    static const int64_t dims[] = {1, 4, 2, 2};
    g->type = byi_type_tensor(g->m->arena, BYOC_F32, 4, dims);
    const uint32_t index = byi_func_new(g->m, name);
    g->f = g->m->funcs.at[index];
}

static byi_id param(struct graph *g, const char *name)
{
    return byi_add_param(g->m, g->f, name, g->type);
}

/* Ends the program if a node could not be added. */
static void check(enum byoc_status status, const struct byoc_error *err)
{
    if (status == BYOC_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->text);
    exit(1);
}

static byi_id apply(struct graph *g, byi_id function, const byi_id *args,
                    uint32_t n)
{
    byi_id id = BYI_NO_ID;
    struct byoc_error err;
    check(byi_add_apply(g->m, g->f, function, args, n, NULL, &id, &err), &err);
    return id;
}

static byi_id call(struct graph *g, enum byi_op_id op, const byi_id *args,
                   uint32_t n)
{
    byi_id id = BYI_NO_ID;
    struct byoc_error err;
    const struct byi_sources *sources = byi_sources_one(
        g->m, byi_source_new(g->m, byi_op(op)->name, byi_op(op)->name));
    check(byi_add_call(g->m, g->f, op, args, n, NULL, 0, sources, &id, &err),
          &err);
    return id;
}

/* Add a constant whose data differ from the data of every other constant. */
static byi_id constant(struct graph *g, uint32_t rank, const int64_t *dims)
{
    float data[16];
    const struct byi_type *type =
        byi_type_tensor(g->m->arena, BYOC_F32, rank, dims);
    const int64_t n = byi_elements(rank, dims);
    for (int64_t i = 0; i < n; i++)
        data[i] = 0.5f + (float)(i % 3) * 0.25f;
    data[0] = (float)++g->n_consts;
    return byi_add_const(g->m, g->f, byi_const_add(g->m, type, data, false),
                         NULL);
}

/* A chain: each operator reads the result of the previous one. */
static void make_chain(struct graph *g, uint32_t n)
{
    static const enum byi_op_id ops[] = {BYI_OP_TANH, BYI_OP_NN_RELU,
                                         BYI_OP_SIGMOID};
    static const int64_t channels[] = {4, 1, 1};
    start(g, "main");
    byi_id x = param(g, "x");
    for (uint32_t i = 0; g->f->nodes.n < n; i++) {
        x = call(g, ops[i % 3], &x, 1);
        if (i % 4 == 3)
            x = call(g, i % 8 == 3 ? BYI_OP_ADD : BYI_OP_MULTIPLY,
                     (byi_id[]){x, constant(g, 3, channels)}, 2);
    }
    g->f->result = x;
}

/* A wide graph: many readers of one value, whose results are added in pairs
 * until one is left. */
static void make_wide(struct graph *g, uint32_t n)
{
    static const int64_t channels[] = {4, 1, 1};
    BYI_VEC(byi_id) ends = {0};
    start(g, "main");
    const byi_id x = param(g, "x");
    while (g->f->nodes.n + ends.n < n) {
        byi_id y = call(g, BYI_OP_MULTIPLY,
                        (byi_id[]){x, constant(g, 3, channels)}, 2);
        y = call(g, BYI_OP_NN_RELU, &y, 1);
        BYI_PUSH(&ends, y);
    }
    for (uint32_t i = 0; i + 1 < ends.n; i += 2) {
        const byi_id sum = call(g, BYI_OP_ADD, &ends.at[i], 2);
        BYI_PUSH(&ends, sum);
    }
    g->f->result = ends.at[ends.n - 1];
    byi_vec_free(ends.at);
}

/* Diamonds: two readers of a value, whose results are joined. */
static void make_diamonds(struct graph *g, uint32_t n)
{
    start(g, "main");
    byi_id x = param(g, "x");
    while (g->f->nodes.n < n) {
        const byi_id left = call(g, BYI_OP_NN_RELU, &x, 1);
        byi_id right = call(g, BYI_OP_SIGMOID, &x, 1);
        right = call(g, BYI_OP_TANH, &right, 1);
        x = call(g, BYI_OP_ADD, (byi_id[]){left, right}, 2);
    }
    g->f->result = x;
}

static byi_id conv_norm(struct graph *g, byi_id x)
{
    static const int64_t weights[] = {4, 4, 1, 1}, channels[] = {4};
    byi_id args[5] = {x, constant(g, 4, weights)};
    args[0] = call(g, BYI_OP_NN_CONV2D, args, 2);
    for (uint32_t i = 1; i < 5; i++)
        args[i] = constant(g, 1, channels);
    return call(g, BYI_OP_NN_BATCH_NORM, args, 5);
}

/* Blocks of conv, batch norm, relu, conv, batch norm, add, relu. */
static void make_residual(struct graph *g, uint32_t n)
{
    start(g, "main");
    byi_id x = param(g, "x");
    while (g->f->nodes.n < n) {
        byi_id y = conv_norm(g, x);
        y = call(g, BYI_OP_NN_RELU, &y, 1);
        y = conv_norm(g, y);
        y = call(g, BYI_OP_ADD, (byi_id[]){y, x}, 2);
        x = call(g, BYI_OP_NN_RELU, &y, 1);
    }
    g->f->result = x;
}

/* Add function `index`, all of whose parameters are captures, as a literal. */
static byi_id add_literal(struct graph *g, const struct byi_func *inner,
                          uint32_t index, const byi_id *captures)
{
    return byi_add_fn(g->m, g->f, index, captures, inner->n_captures, NULL);
}

/* Add a function that applies `op` to its only capture; returns its index. */
static uint32_t add_leaf(struct graph *g, enum byi_op_id op)
{
    const uint32_t index = g->m->funcs.n;
    start(g, NULL);
    const byi_id x = param(g, "x");
    g->f->n_captures = 1;
    g->f->result = call(g, op, &x, 1);
    return index;
}

/* Add a function of captures %x and %c, and return its index:
 *
 *     %y = sigmoid(%x); if (%c) { NEXT } else { relu(%x) }
 *
 * NEXT is the same function of %y and %c one level deeper; the innermost is
 * tanh(%y). */
static uint32_t add_nest(struct graph *g, const struct byi_type *flag)
{
    uint32_t inner = add_leaf(g, BYI_OP_TANH);
    for (uint32_t depth = 1; depth < DEPTH; depth++) {
        const uint32_t other = add_leaf(g, BYI_OP_NN_RELU);
        const uint32_t index = g->m->funcs.n;
        byi_id id = BYI_NO_ID;
        start(g, NULL);
        const byi_id x = param(g, "x");
        const byi_id c = byi_add_param(g->m, g->f, "c", flag);
        g->f->n_captures = 2;
        const byi_id y = call(g, BYI_OP_SIGMOID, &x, 1);
        const byi_id then =
            add_literal(g, g->m->funcs.at[inner], inner, (byi_id[]){y, c});
        const byi_id otherwise =
            add_literal(g, g->m->funcs.at[other], other, &x);
        struct byoc_error err;
        check(byi_add_if(g->m, g->f, c, then, otherwise, NULL, &id, &err),
              &err);
        g->f->result = id;
        inner = index;
    }
    return inner;
}

/* Nested branches, DEPTH deep; several such nests one after the other. */
static void make_nested(struct graph *g, uint32_t n)
{
    const struct byi_type *flag =
        byi_type_tensor(g->m->arena, BYOC_BOOL, 0, NULL);
    BYI_VEC(uint32_t) nests = {0};
    for (uint32_t n_nodes = 0; n_nodes < n; n_nodes += DEPTH * 8)
        BYI_PUSH(&nests, add_nest(g, flag));
    start(g, "main");
    byi_id x = param(g, "x");
    const byi_id c = byi_add_param(g->m, g->f, "c", flag);
    for (uint32_t i = 0; i < nests.n; i++) {
        const byi_id fn = add_literal(g, g->m->funcs.at[nests.at[i]],
                                      nests.at[i], (byi_id[]){x, c});
        x = apply(g, fn, NULL, 0);
    }
    g->f->result = x;
    byi_vec_free(nests.at);
}

/* Many global functions of a few operators. Function i calls function i - FAN,
 * if i > FAN; @main calls the last FAN functions. */
static void make_functions(struct graph *g, uint32_t n)
{
    const uint32_t nodes_per_function = 12;
    const uint32_t first = g->m->funcs.n;
    for (uint32_t i = 0; i < n / nodes_per_function; i++) {
        char name[24];
        const uint32_t before = g->m->funcs.n;
        snprintf(name, sizeof name, "f%u", i);
        start(g, name);
        byi_id x = param(g, "x");
        for (uint32_t k = 0; k < 8; k++)
            x = call(g, k % 2 ? BYI_OP_TANH : BYI_OP_NN_RELU, &x, 1);
        if (i > FAN) {
            const byi_id callee = byi_add_global(g->m, g->f, before - FAN);
            x = apply(g, callee, &x, 1);
        }
        g->f->result = x;
    }
    const uint32_t end = g->m->funcs.n;
    start(g, "main");
    byi_id x = param(g, "x");
    for (uint32_t i = end > first + FAN ? end - FAN : first; i < end; i++)
        x = apply(g, byi_add_global(g->m, g->f, i), &x, 1);
    g->f->result = x;
}

static const struct {
    const char *name;
    void (*make)(struct graph *g, uint32_t n);
} shapes[] = {
    {"chain", make_chain},       {"wide", make_wide},
    {"diamonds", make_diamonds}, {"residual", make_residual},
    {"nested", make_nested},     {"functions", make_functions},
};

const char *bench_shape(uint32_t shape)
{
    return shape < BYI_COUNT(shapes) ? shapes[shape].name : NULL;
}

struct byi_module *bench_graph(uint32_t shape, uint32_t nodes)
{
    struct graph g = {.m = byi_module_new()};
    shapes[shape].make(&g, nodes);
    return g.m;
}

uint64_t bench_count(const struct byi_module *m)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        n += m->funcs.at[i]->nodes.n;
    return n;
}
