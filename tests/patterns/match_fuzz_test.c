/* SPDX-License-Identifier: Apache-2.0 */
/* match_fuzz_test.c: matches random rows on random graphs with match.c and with
 * a naive matcher. The latter lists every way to match each part of a pattern,
 * and combines the parts. Both must find the same ways.
 *     match_fuzz_test [--count N] [--seed S]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patterns/patterns.h"
#include "tests/xorshift.h"

enum { MAX_FACTS = 80, MAX_WAYS = 3000 };

/* --- the naive matcher ------------------------------------------------------
 *
 * A way is a set of facts, such as: node `key` of the pattern matches value
 * `is` of the graph. Two ways can be combined if none of their facts contradict
 * each other. */

enum fact_kind {
    ROLE,  /* value `key` matches pattern node `is`                         */
    BOUND, /* name `key`, in the repetition `depth`, is value `is`          */
    COUNT, /* name `key` with '...' stands for `is` values                  */
    ONCE,  /* the part defined once, pattern node `key`, matches value `is` */
    WAY    /* that part matches value `depth` in the way of number `is`     */
};

struct fact {
    enum fact_kind kind;
    uint32_t key, depth, is;
};

struct way {
    uint32_t n;
    struct fact at[MAX_FACTS];
};

struct ways {
    uint32_t n, capacity;
    struct way *at;
};

/* The step that a pattern node is in. */
struct around {
    uint32_t chain;             /* the BYI_PAT_CHAIN of the step            */
    uint32_t count;             /* repetitions matched so far               */
    byi_id at;                  /* value that this repetition matches       */
    const struct around *outer; /* the step around this one, or NULL        */
};

/* The state of the naive matcher. */
struct naive {
    const struct byi_module *m;
    const struct byi_func *f;
    const struct byi_pattern *p;
    bool too_many;
};

static void push(struct naive *v, struct ways *ways, const struct way *way)
{
    if (ways->n == MAX_WAYS) {
        v->too_many = true;
        return;
    }
    if (ways->n == ways->capacity) {
        ways->capacity = ways->capacity ? 2 * ways->capacity : 4;
        ways->at = realloc(ways->at, ways->capacity * sizeof *ways->at);
        assert_non_null(ways->at);
    }
    ways->at[ways->n++] = *way;
}

/* Add a fact to a way. Returns false if it contradicts the way. */
static bool join_fact(struct naive *v, struct way *way, struct fact fact)
{
    for (uint32_t i = 0; i < way->n; i++)
        if (way->at[i].kind == fact.kind && way->at[i].key == fact.key &&
            way->at[i].depth == fact.depth)
            return way->at[i].is == fact.is;
    if (way->n == MAX_FACTS) {
        v->too_many = true;
        return false;
    }
    way->at[way->n++] = fact;
    return true;
}

/* Combine each way of a with each way of b. Frees both lists. */
static struct ways join(struct naive *v, struct ways a, struct ways b)
{
    struct ways combined = {0};
    for (uint32_t i = 0; i < a.n; i++)
        for (uint32_t k = 0; k < b.n && !v->too_many; k++) {
            struct way way = a.at[i];
            bool fits = true;
            for (uint32_t j = 0; j < b.at[k].n && fits; j++)
                fits = join_fact(v, &way, b.at[k].at[j]);
            if (fits)
                push(v, &combined, &way);
        }
    free(a.at);
    free(b.at);
    return combined;
}

static void append(struct naive *v, struct ways *to, struct ways from)
{
    for (uint32_t i = 0; i < from.n && !v->too_many; i++)
        push(v, to, &from.at[i]);
    free(from.at);
}

static struct ways single_way(struct naive *v, struct fact fact)
{
    struct ways ways = {0};
    const struct way way = {.n = 1, .at = {fact}};
    push(v, &ways, &way);
    return ways;
}

/* Number the ways of a part that occurs once: every other use of the part must
 * match it in the same way. */
static struct ways number_ways(struct naive *v, struct ways ways, uint32_t at,
                               byi_id value)
{
    for (uint32_t i = 0; i < ways.n; i++)
        join_fact(
            v, &ways.at[i],
            (struct fact){.kind = WAY, .key = at, .depth = value, .is = i});
    return ways;
}

static struct ways find(struct naive *v, uint32_t at, byi_id value,
                        const struct around *around);

static const struct byi_node *node_of(const struct naive *v, byi_id id)
{
    return &v->f->nodes.at[id];
}

static uint32_t depth_at(const struct naive *v, const struct around *around)
{
    for (; around; around = around->outer)
        if (v->p->nodes[around->chain].max != 1)
            return ~around->at;
    return 0;
}

static double number_of(const struct naive *v, const struct byi_node *node)
{
    struct byi_tensor t = {0};
    assert_true(
        byi_const_view(v->m, v->f, (byi_id)(node - v->f->nodes.at), &t));
    return byi_elements(t.rank, t.dims) == 1 ? byi_tensor_float(&t, 0) : NAN;
}

static struct ways find_leaf(struct naive *v, const struct byi_pat *pat,
                             byi_id value, const struct around *around)
{
    const struct byi_node *node = node_of(v, value);
    struct fact fact = {.kind = BOUND, .key = pat->name, .is = value};
    if (pat->kind == BYI_PAT_CONST && node->kind != BYI_CONST)
        return (struct ways){0};
    if (pat->has_value) {
        const double found = number_of(v, node);
        if (!(fabs(found - pat->value) <= 1e-4 * fabs(pat->value)))
            return (struct ways){0};
    }
    if (strcmp(v->p->names[pat->name], "const") == 0)
        fact.depth = ~value;
    else if (v->p->repeated[pat->name])
        fact.depth = depth_at(v, around);
    return single_way(v, fact);
}

static int order(double a, double b)
{
    return a < b ? -1 : a > b;
}

static bool holds(enum byi_cmp cmp, int sign)
{
    static const bool table[BYI_N_CMPS][3] = {
        [BYI_EQ] = {0, 1, 0}, [BYI_NE] = {1, 0, 1}, [BYI_LT] = {1, 0, 0},
        [BYI_LE] = {1, 1, 0}, [BYI_GT] = {0, 0, 1}, [BYI_GE] = {0, 1, 1},
    };
    return table[cmp][sign + 1];
}

/* The graphs' attributes are floats, and lists of integers. */
static bool test_holds(const struct byi_node *node,
                       const struct byi_pat_test *test)
{
    const struct byi_attr *attr = byi_attr_find(node->attrs, test->name);
    bool any = false, none = true;
    for (uint32_t i = 0; attr && i < test->n; i++) {
        const struct byi_attr *expected = &test->values[i];
        bool one = true, equal = true;
        if (attr->kind == BYI_ATTR_FLOAT) {
            const int sign = order((float)attr->f, (float)expected->f);
            one = holds(test->cmp, sign);
            equal = sign == 0;
        } else {
            const bool list = expected->kind == BYI_ATTR_INTS;
            equal = !list || expected->n == attr->n;
            one = equal;
            for (uint32_t k = 0; k < attr->n && (!list || k < expected->n);
                 k++) {
                const int64_t item = list ? expected->ints[k] : expected->i;
                const int sign =
                    item == INT64_MIN
                        ? 0
                        : order((double)attr->ints[k], (double)item);
                one = one && holds(test->cmp, sign);
                equal = equal && sign == 0;
            }
        }
        any = any || one;
        none = none && !equal;
    }
    return attr && (test->cmp == BYI_NE ? none : any);
}

static bool op_holds(const struct byi_pat *pat, const struct byi_node *node)
{
    bool fits = false;
    for (uint32_t i = 0; i < pat->n_ops; i++)
        fits = fits || (node->kind == BYI_CALL_OP && node->op == pat->ops[i]);
    for (uint32_t i = 0; i < pat->n_tests && fits; i++)
        fits = test_holds(node, &pat->tests[i]);
    return fits;
}

static bool is_commutative(enum byi_op_id op)
{
    return op == BYI_OP_ADD || op == BYI_OP_MULTIPLY || op == BYI_OP_MAXIMUM ||
           op == BYI_OP_MINIMUM;
}

static struct ways find_args(struct naive *v, uint32_t at, byi_id value,
                             bool swap, const struct around *around)
{
    const struct byi_pat *pat = &v->p->nodes[at];
    const struct byi_node *node = node_of(v, value);
    struct ways all =
        single_way(v, (struct fact){.kind = ROLE, .key = value, .is = at});
    if (pat->has_rest)
        all = join(
            v, all,
            single_way(v, (struct fact){.kind = COUNT,
                                        .key = pat->rest,
                                        .is = node->n_args - pat->n_args}));
    for (uint32_t i = pat->n_args; pat->has_rest && i < node->n_args; i++)
        all = join(v, all,
                   single_way(v, (struct fact){.kind = BOUND,
                                               .key = pat->rest,
                                               .depth = node->n_args - i,
                                               .is = node->args[i]}));
    for (uint32_t i = 0; i < pat->n_args; i++)
        all = join(v, all,
                   find(v, pat->args[i], node->args[swap ? 1 - i : i], around));
    return all;
}

static struct ways find_op(struct naive *v, uint32_t at, byi_id value,
                           const struct around *around)
{
    const struct byi_pat *pat = &v->p->nodes[at];
    const struct byi_node *node = node_of(v, value);
    struct ways all = {0};
    const bool fits = pat->kind == BYI_PAT_TUPLE ? node->kind == BYI_MAKE_TUPLE
                                                 : op_holds(pat, node);
    if (!fits || node->n_args < pat->n_args ||
        (node->n_args > pat->n_args && !pat->has_rest))
        return all;
    append(v, &all, find_args(v, at, value, false, around));
    if (pat->n_args == 2 && node->kind == BYI_CALL_OP &&
        is_commutative(node->op))
        append(v, &all, find_args(v, at, value, true, around));
    return all;
}

/* A way to divide a nested sum or product into operands. */
struct parts {
    uint32_t n, n_ops;
    byi_id value[8], ops[8];
    bool inverse[8];
};

/* All ways to divide one value. */
struct divisions {
    uint32_t n;
    struct parts at[400];
};

static void take_apart(struct naive *v, const struct byi_pat *pat,
                       struct divisions *out, const struct parts *done,
                       uint32_t from)
{
    const bool sum = pat->ops[0] == BYI_OP_ADD;
    if (out->n == BYI_COUNT(out->at)) {
        v->too_many = true;
        return;
    }
    out->at[out->n++] = *done;
    for (uint32_t i = from; i < done->n; i++) {
        const struct byi_node *node = node_of(v, done->value[i]);
        struct parts next = *done;
        if (node->kind != BYI_CALL_OP || done->n_ops == 8)
            continue;
        const bool plain = node->op == pat->ops[0];
        const bool minus =
            pat->inverse && node->op == (sum ? BYI_OP_SUBTRACT : BYI_OP_DIVIDE);
        const bool single =
            pat->inverse &&
            node->op == (sum ? BYI_OP_NEGATIVE : BYI_OP_RECIPROCAL);
        next.ops[next.n_ops++] = done->value[i];
        next.value[i] = node->args[0];
        if (single) {
            next.inverse[i] = !next.inverse[i];
        } else if ((plain || minus) && done->n < 8) {
            /* the second operand comes after the first */
            for (uint32_t k = next.n++; k > i + 1; k--) {
                next.value[k] = next.value[k - 1];
                next.inverse[k] = next.inverse[k - 1];
            }
            next.value[i + 1] = node->args[1];
            next.inverse[i + 1] = done->inverse[i] != minus;
        } else {
            continue;
        }
        take_apart(v, pat, out, &next, i);
    }
}

/* Match operand `arg` of the pattern with each unused part, and the following
 * operands with the others. */
static void permute(struct naive *v, uint32_t at, const struct parts *parts,
                    uint32_t arg, uint32_t used, struct ways so_far,
                    const struct around *around, struct ways *all)
{
    const struct byi_pat *pat = &v->p->nodes[at];
    if (arg == pat->n_args) {
        append(v, all, so_far);
        return;
    }
    for (uint32_t i = 0; i < parts->n; i++) {
        if (used >> i & 1 || parts->inverse[i] != (pat->inverse >> arg & 1))
            continue;
        struct ways copy = {0};
        for (uint32_t k = 0; k < so_far.n; k++)
            push(v, &copy, &so_far.at[k]);
        permute(v, at, parts, arg + 1, used | 1u << i,
                join(v, copy, find(v, pat->args[arg], parts->value[i], around)),
                around, all);
    }
    free(so_far.at);
}

static struct ways find_group(struct naive *v, uint32_t at, byi_id value,
                              const struct around *around)
{
    const struct byi_pat *pat = &v->p->nodes[at];
    struct divisions *divisions = calloc(1, sizeof *divisions);
    struct ways all = {0};
    assert_non_null(divisions);
    take_apart(v, pat, divisions, &(struct parts){.n = 1, .value = {value}}, 0);
    for (uint32_t i = 0; i < divisions->n && !v->too_many; i++) {
        const struct parts *parts = &divisions->at[i];
        struct ways ops = {0};
        if (parts->n != pat->n_args)
            continue;
        push(v, &ops, &(struct way){0});
        for (uint32_t k = 0; k < parts->n_ops; k++)
            ops = join(v, ops,
                       single_way(v, (struct fact){.kind = ROLE,
                                                   .key = parts->ops[k],
                                                   .is = at}));
        permute(v, at, parts, 0, 0, ops, around, &all);
    }
    free(divisions);
    return all;
}

static struct ways find_chain(struct naive *v, uint32_t chain, byi_id value,
                              uint32_t count, const struct around *outer)
{
    const struct byi_pat *pat = &v->p->nodes[chain];
    const struct around inside = {chain, count + 1, value, outer};
    struct ways all = {0};
    if (count < pat->max && pat->forks)
        append(v, &all,
               number_ways(v, find(v, pat->args[1], value, &inside), chain,
                           value));
    else if (count < pat->max)
        append(v, &all, find(v, pat->args[1], value, &inside));
    if (count >= pat->min)
        append(v, &all, find(v, pat->args[0], value, outer));
    return all;
}

static bool dim_holds(const struct byi_pat_dim *dim, int64_t found)
{
    return dim->any ||
           holds(dim->cmp, order((double)found, (double)dim->value));
}

static bool type_holds(const struct byi_pat_type *expected,
                       const struct byi_type *type)
{
    bool dtype = expected->n_dtypes == 0;
    int64_t size = 1;
    if (type->kind != BYI_TENSOR)
        return false;
    for (uint32_t i = 0; i < expected->n_dtypes; i++)
        dtype = dtype || expected->dtypes[i] == type->dtype;
    for (uint32_t i = 0; i < type->rank; i++)
        size *= type->dims[i];
    if (!dtype || !dim_holds(&expected->rank, type->rank) ||
        !dim_holds(&expected->size, size))
        return false;
    if (!expected->has_dims)
        return true;
    const uint32_t head =
        expected->has_rest ? expected->rest : expected->n_dims;
    const uint32_t tail = expected->n_dims - head;
    if (expected->has_rest ? type->rank < expected->n_dims
                           : type->rank != expected->n_dims)
        return false;
    for (uint32_t i = 0; i < head; i++)
        if (!dim_holds(&expected->dims[i], type->dims[i]))
            return false;
    for (uint32_t i = 0; i < tail; i++)
        if (!dim_holds(&expected->dims[expected->n_dims - 1 - i],
                       type->dims[type->rank - 1 - i]))
            return false;
    return true;
}

static struct ways find(struct naive *v, uint32_t at, byi_id value,
                        const struct around *around)
{
    const struct byi_pat *pat = &v->p->nodes[at];
    const struct byi_node *node = node_of(v, value);
    struct ways all = {0};
    if (v->too_many)
        return all;
    switch (pat->kind) {
    case BYI_PAT_ANY:
    case BYI_PAT_CONST:
        return find_leaf(v, pat, value, around);
    case BYI_PAT_OP:
    case BYI_PAT_TUPLE:
        return find_op(v, at, value, around);
    case BYI_PAT_GROUP:
        return find_group(v, at, value, around);
    case BYI_PAT_GET:
        if (node->kind == BYI_GET && node->index == pat->index)
            return find(v, pat->args[0], node->args[0], around);
        return all;
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++)
            append(v, &all, find(v, pat->args[i], value, around));
        return all;
    case BYI_PAT_CHAIN:
        return find_chain(v, at, value, 0, around);
    case BYI_PAT_HOLE:
        return find_chain(v, around->chain, value, around->count,
                          around->outer);
    case BYI_PAT_TYPE:
        if (type_holds(pat->type, node->type))
            return find(v, pat->args[0], value, around);
        return all;
    case BYI_PAT_IF: /* random functions contain no `if` */
        return all;
    case BYI_PAT_ONCE:
        return join(
            v,
            single_way(v, (struct fact){.kind = ONCE, .key = at, .is = value}),
            number_ways(v, find(v, pat->args[0], value, around), at, value));
    }
    return all;
}

/* --- ways as text --------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void write_way(struct byi_text *out, uint32_t n_ops, const byi_id *ops,
                      uint32_t n_bound, char (*bound)[40])
{
    for (uint32_t i = 0; i < n_ops; i++)
        byi_text_addf(out, "%u ", ops[i]);
    byi_text_addf(out, "|");
    qsort(bound, n_bound, sizeof *bound, by_text);
    for (uint32_t i = 0; i < n_bound; i++)
        byi_text_addf(out, " %s", bound[i]);
}

static int by_id(const void *a, const void *b)
{
    const byi_id x = *(const byi_id *)a, y = *(const byi_id *)b;
    return x < y ? -1 : x > y;
}

/* Write a way as text. Returns false if an operator of the way computes an
 * operand, so that the way is not a match. */
static bool way_text(const struct naive *v, const struct way *way,
                     struct byi_text *out)
{
    byi_id ops[MAX_FACTS];
    char bound[MAX_FACTS][40];
    uint32_t n_ops = 0, n_bound = 0;
    for (uint32_t i = 0; i < way->n; i++)
        if (way->at[i].kind == ROLE)
            ops[n_ops++] = way->at[i].key;
    for (uint32_t i = 0; i < way->n; i++) {
        const struct fact *fact = &way->at[i];
        uint32_t number = 0;
        if (fact->kind != BOUND)
            continue;
        const struct byi_node *node = node_of(v, fact->is);
        for (uint32_t k = 0; k < n_ops; k++)
            if (ops[k] == fact->is ||
                (node->kind == BYI_GET && node->args[0] == ops[k]))
                return false;
        for (uint32_t k = 0; k < way->n; k++)
            number += way->at[k].kind == BOUND && way->at[k].key == fact->key &&
                      way->at[k].depth > fact->depth;
        if (v->p->repeated[fact->key])
            snprintf(bound[n_bound++], sizeof *bound, "%s%u=%u",
                     v->p->names[fact->key], number, fact->is);
        else
            snprintf(bound[n_bound++], sizeof *bound, "%s=%u",
                     v->p->names[fact->key], fact->is);
    }
    qsort(ops, n_ops, sizeof *ops, by_id);
    write_way(out, n_ops, ops, n_bound, bound);
    return true;
}

/* A set of texts, in the order in which they were added. */
struct texts {
    uint32_t n;
    char *at[MAX_WAYS];
};

static void add_text(struct texts *set, struct byi_text *text)
{
    bool is_known = set->n == MAX_WAYS;
    for (uint32_t i = 0; i < set->n && !is_known; i++)
        is_known = strcmp(set->at[i], text->at) == 0;
    if (!is_known)
        set->at[set->n++] = strdup(text->at);
    byi_text_free(text);
}

static void free_texts(struct texts *set)
{
    for (uint32_t i = 0; i < set->n; i++)
        free(set->at[i]);
    set->n = 0;
}

static bool collect(const struct byi_match *match, void *ctx)
{
    char bound[BYI_MATCH_MAX_OPERANDS][40];
    struct byi_text text = {0};
    for (uint32_t i = 0; i < match->n_bound; i++)
        snprintf(bound[i], sizeof *bound, "%s=%u", match->bound[i].name,
                 match->bound[i].value);
    write_way(&text, match->n_ops, match->ops, match->n_bound, bound);
    add_text(ctx, &text);
    return false;
}

/* --- random graphs -------------------------------------------------------- */

static const enum byi_op_id unaries[] = {BYI_OP_NN_RELU, BYI_OP_EXP,
                                         BYI_OP_NEGATIVE, BYI_OP_RECIPROCAL,
                                         BYI_OP_NN_LEAKY_RELU};
static const enum byi_op_id binaries[] = {BYI_OP_ADD,      BYI_OP_MULTIPLY,
                                          BYI_OP_SUBTRACT, BYI_OP_DIVIDE,
                                          BYI_OP_ADD,      BYI_OP_MULTIPLY};

static byi_id add_const(struct byi_module *m, struct byi_func *f, float value,
                        uint32_t rank)
{
    const int64_t one[1] = {1};
    const struct byi_type *type =
        byi_type_tensor(m->arena, BYOC_F32, rank, one);
    return byi_add_const(m, f, byi_const_add(m, type, &value, false), NULL);
}

/* Add a node that reads earlier nodes, mostly the last few. Adds nothing if the
 * types do not allow it. */
static void add_node(struct byi_module *m, struct byi_func *f)
{
    struct byoc_error err;
    const uint32_t n = f->nodes.n, n_near = n < 5 ? n : 5;
    const byi_id a = draw(4) ? n - 1 - draw(n_near) : draw(n);
    const byi_id b = draw(2) ? n - 1 - draw(n_near) : draw(n);
    const byi_id args[3] = {a, b, draw(n)};
    byi_id id;
    for (int i = 0; i < 3; i++)
        if (f->nodes.at[args[i]].type->kind != BYI_TENSOR)
            return;
    struct byi_attr alpha = {.name = "alpha", .kind = BYI_ATTR_FLOAT};
    alpha.f = draw(2) ? 0.1f : 0.25;
    switch (draw(16)) {
    case 0: {
        const int64_t sizes[2] = {2, 2};
        const struct byi_attr split = {
            .name = "sizes", .kind = BYI_ATTR_INTS, .n = 2, .ints = sizes};
        if (byi_add_call(m, f, BYI_OP_SPLIT, args, 1, &split, 1, NULL, &id,
                         &err) == BYOC_OK &&
            byi_add_get(m, f, id, draw(2), NULL, &id, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        return;
    }
    case 1:
        byi_add_tuple(m, f, args, 2, NULL);
        return;
    case 2:
        (void)!byi_add_call(m, f, BYI_OP_CONCATENATE, args, 2 + draw(2), NULL,
                            0, NULL, &id, &err);
        return;
    case 3:
        add_const(m, f, draw(2) ? 0.5f : 2.0f, draw(2));
        return;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: {
        const enum byi_op_id op = unaries[draw(BYI_COUNT(unaries))];
        (void)!byi_add_call(m, f, op, args, 1, &alpha,
                            op == BYI_OP_NN_LEAKY_RELU, NULL, &id, &err);
        return;
    }
    default:
        (void)!byi_add_call(m, f, binaries[draw(BYI_COUNT(binaries))], args, 2,
                            NULL, 0, NULL, &id, &err);
    }
}

static struct byi_func *make_graph(struct byi_module *m)
{
    const uint32_t func = byi_func_new(m, "main");
    struct byi_func *f = m->funcs.at[func];
    const int64_t dims[2][2] = {{4, 0}, {1, 4}};
    byi_add_param(m, f, "x", byi_type_tensor(m->arena, BYOC_F32, 1, dims[0]));
    byi_add_param(m, f, "y", byi_type_tensor(m->arena, BYOC_F32, 1, dims[0]));
    byi_add_param(m, f, "z", byi_type_tensor(m->arena, BYOC_F32, 2, dims[1]));
    add_const(m, f, 0.5f, 0);
    for (uint32_t n = 4 + draw(16); n > 0; n--)
        add_node(m, f);
    f->result = f->nodes.n - 1;
    return f;
}

/* --- random rows ----------------------------------------------------------
 *
 * A row mostly describes the graph from some root down; parts of it are written
 * in another way, and parts of it do not match. */

/* The state of writing a row. */
struct writer {
    const struct byi_module *m;
    const struct byi_func *f;
    struct byi_text *out;
    uint32_t size; /* parts that may still be written */
    bool in_step;
    byi_id hole;    /* the value of '^' in a step */
    byi_id defs[4]; /* nodes with a name, to be defined */
    uint32_t n_defs;
};

static void write_part(struct writer *w, byi_id id);

static void write_leaf(struct writer *w, byi_id id)
{
    const struct byi_node *node = &w->f->nodes.at[id];
    if (w->in_step && draw(3)) {
        byi_text_addf(w->out, "%%s%u", draw(2));
        return;
    }
    if (node->kind == BYI_CONST && draw(2)) {
        static const char *const texts[] = {"const 0.5", "const 2",
                                            "const %k = 0.5", "const %c"};
        byi_text_addf(w->out, "%s", texts[draw(4)]);
        return;
    }
    byi_text_addf(w->out, "%%%c", (int)('a' + (draw(4) ? id % 5 : draw(5))));
}

static void write_op_name(struct writer *w, const struct byi_node *node)
{
    const uint32_t n = node->n_args;
    const enum byi_op_id other = n == 1 ? unaries[draw(BYI_COUNT(unaries))]
                                        : binaries[draw(BYI_COUNT(binaries))];
    const char *name = byi_op(draw(16) || n > 2 ? node->op : other)->name;
    if (draw(6) == 0 && n <= 2 && node->op != BYI_OP_SPLIT &&
        node->op != BYI_OP_CONCATENATE)
        byi_text_addf(w->out, "%s|", byi_op(other)->name);
    byi_text_addf(w->out, "%s", name);
}

static void write_tests(struct writer *w, const struct byi_node *node)
{
    static const char *const alphas[] = {
        "{alpha=0.1}", "{alpha=0.25|0.1}",         "{alpha!=0.25}",
        "{alpha>0.1}", "{alpha>=0.1, alpha<0.25}", "{alpha!=0.1|0.25}"};
    static const char *const sizes[] = {"{sizes=[2, 2]}", "{sizes=[_, 2]}",
                                        "{sizes=2}", "{sizes>2}",
                                        "{sizes=[2]|[_, _]}"};
    if (node->op == BYI_OP_NN_LEAKY_RELU)
        byi_text_addf(w->out, "%s", alphas[draw(6)]);
    else if (node->op == BYI_OP_SPLIT)
        byi_text_addf(w->out, "%s", sizes[draw(5)]);
}

/* The operands of a sum or product, inner ones taken apart by chance. */
static void write_members(struct writer *w, byi_id id, enum byi_op_id op,
                          bool inverse, uint32_t *n)
{
    const struct byi_node *node = &w->f->nodes.at[id];
    const bool sum = op == BYI_OP_ADD;
    const enum byi_op_id minus = sum ? BYI_OP_SUBTRACT : BYI_OP_DIVIDE;
    if (node->kind == BYI_CALL_OP && node->n_args == 2 && *n < 3 &&
        (node->op == op || node->op == minus) && (*n == 0 || draw(3))) {
        *n += 1;
        const bool swap = draw(2);
        for (int i = 0; i < 2; i++) {
            const bool second = swap ? i == 0 : i == 1;
            if (i)
                byi_text_addf(w->out, ", ");
            write_members(w, node->args[second], op,
                          inverse != (second && node->op == minus), n);
        }
        return;
    }
    byi_text_addf(w->out, "%s", inverse ? sum ? "- " : "/ " : "");
    write_part(w, id);
}

static void write_args(struct writer *w, const struct byi_node *node)
{
    const bool swap = node->n_args == 2 && draw(3) == 0;
    byi_text_addf(w->out, "(");
    for (uint32_t i = 0; i < node->n_args; i++) {
        byi_text_addf(w->out, i ? ", " : "");
        if (node->op == BYI_OP_CONCATENATE && !w->in_step && draw(3) == 0) {
            byi_text_addf(w->out, "%%r...");
            break;
        }
        write_part(w, node->args[swap ? 1 - i : i]);
    }
    byi_text_addf(
        w->out, node->kind == BYI_MAKE_TUPLE && node->n_args == 1 ? ",)" : ")");
}

/* Write the nodes of a chain up to `id` as steps. */
static void write_chain(struct writer *w, byi_id id)
{
    static const char *const repetitions[] = {"",  "?",   "*",      "*",
                                              "~", "{2}", "{1, 3}", "?"};
    const struct byi_node *node = &w->f->nodes.at[id];
    const byi_id below = node->args[draw(node->n_args)];
    static const char *const choices[] = {
        "nn.relu(^)",       "exp|negative(^)", "add(^, %s0)",
        "multiply(%s1, ^)", "add(^, ^)",       "nn.leaky_relu|reciprocal(^)",
        "subtract(^, %s0)"};
    write_part(w, below);
    byi_text_addf(w->out, " [");
    w->in_step = true;
    w->hole = below;
    write_op_name(w, node);
    write_args(w, node);
    for (uint32_t i = draw(3); i > 0; i--)
        byi_text_addf(w->out, " | %s", choices[draw(7)]);
    w->in_step = false;
    byi_text_addf(w->out, "]%s", repetitions[draw(8)]);
    if (draw(4) == 0)
        byi_text_addf(w->out, " [%s]%s", draw(2) ? "add(^, ^)" : "exp(^)",
                      draw(2) ? "?" : "");
}

static void write_node(struct writer *w, byi_id id)
{
    const struct byi_node *node = &w->f->nodes.at[id];
    const bool sum = node->op == BYI_OP_ADD || node->op == BYI_OP_SUBTRACT;
    const bool product =
        node->op == BYI_OP_MULTIPLY || node->op == BYI_OP_DIVIDE;
    uint32_t n = 0;
    if (node->kind == BYI_GET) {
        write_part(w, node->args[0]);
        byi_text_addf(w->out, ".%u", draw(8) ? node->index : draw(2));
    } else if (node->kind == BYI_MAKE_TUPLE) {
        write_args(w, node);
    } else if ((sum || product) && draw(3) == 0) {
        byi_text_addf(w->out, "%s(", sum ? "add" : "multiply");
        write_members(w, id, sum ? BYI_OP_ADD : BYI_OP_MULTIPLY, false, &n);
        byi_text_addf(w->out, ")");
    } else if (!w->in_step && draw(4) == 0) {
        write_chain(w, id);
    } else {
        write_op_name(w, node);
        write_args(w, node);
        if (draw(3) == 0)
            write_tests(w, node);
    }
}

static void write_type(struct writer *w)
{
    static const char *const types[] = {
        "float32",          "float64|float32",  "Tensor[(4)]",
        "Tensor[(..., 4)]", "Tensor[(_, _)]",   "Tensor[rank<=1]",
        "Tensor[size>1]",   "Tensor[(1, ...)]", "Tensor[(>=2, ...), float32]",
        "float16"};
    byi_text_addf(w->out, ": %s", types[draw(10)]);
}

static void write_part(struct writer *w, byi_id id)
{
    const struct byi_node *node = &w->f->nodes.at[id];
    const bool leaf = node->kind == BYI_PARAM || node->kind == BYI_CONST ||
                      w->size == 0 || draw(5) == 0;
    if (w->in_step && id == w->hole && draw(6)) {
        byi_text_addf(w->out, "^");
        return;
    }
    if (leaf) {
        write_leaf(w, id);
    } else if (!w->in_step && draw(8) == 0 && w->n_defs < BYI_COUNT(w->defs)) {
        w->defs[w->n_defs++] = id;
        byi_text_addf(w->out, "%%q%u", id);
    } else if (draw(10) == 0) {
        byi_text_addf(w->out, "(");
        w->size--;
        write_part(w, draw(2) ? id : draw(w->f->nodes.n));
        byi_text_addf(w->out, " | ");
        write_part(w, id);
        byi_text_addf(w->out, ")");
    } else {
        w->size--;
        write_node(w, id);
    }
    if (draw(12) == 0)
        write_type(w);
}

static void make_row(const struct byi_module *m, const struct byi_func *f,
                     byi_id root, struct byi_text *out)
{
    struct writer w = {.m = m, .f = f, .out = out, .size = 1 + draw(8)};
    w.size += 2;
    write_node(&w, root);
    /* names are defined after the names that use them */
    byi_id last = BYI_NO_ID;
    for (uint32_t n = 0; n < 6; n++) {
        byi_id next = BYI_NO_ID;
        for (uint32_t i = 0; i < w.n_defs; i++)
            if (w.defs[i] < last && (next == BYI_NO_ID || w.defs[i] > next))
                next = w.defs[i];
        if (next == BYI_NO_ID)
            return;
        byi_text_addf(out, "%s%%q%u = ", n ? ", " : " with ", next);
        last = next;
        write_node(&w, next);
    }
}

/* --- both, side by side --------------------------------------------------- */

/* What the comparisons of a run found. */
struct totals {
    uint32_t rows, refused, skipped, tried, matched, ways;
};

static void compare(const struct byi_module *m, const struct byi_func *f,
                    const struct byi_pattern *p, byi_id id,
                    struct totals *totals)
{
    static struct texts found, expected;
    struct naive naive = {.m = m, .f = f, .p = p};
    uint32_t tried;
    struct ways ways = find(&naive, p->root, id, NULL);
    for (uint32_t i = 0; i < ways.n; i++) {
        struct byi_text text = {0};
        if (way_text(&naive, &ways.at[i], &text))
            add_text(&expected, &text);
    }
    free(ways.at);
    totals->tried++;
    if (naive.too_many) {
        totals->skipped++;
        free_texts(&expected);
        return;
    }
    struct byi_arena *arena = byi_arena_new();
    byi_match(m, f, p, id, byi_match_distances(f, p, arena), NULL, collect,
              &found, &tried);
    byi_arena_free(&arena);
    bool same = found.n == expected.n;
    for (uint32_t i = 0; i < expected.n && same; i++) {
        uint32_t k = 0;
        while (k < found.n && strcmp(found.at[k], expected.at[i]) != 0)
            k++;
        same = k < found.n;
    }
    if (!same) {
        struct byi_text ir = {0};
        byi_print_module(m, &ir, NULL);
        fail_msg("%s\n%s\nat node %u: found %u ways (first: %s), expected %u "
                 "(first: %s)",
                 p->row->pattern, ir.at, id, found.n,
                 found.n ? found.at[0] : "-", expected.n,
                 expected.n ? expected.at[0] : "-");
    }
    totals->matched += expected.n > 0;
    totals->ways += expected.n;
    free_texts(&found);
    free_texts(&expected);
}

static void fuzz_one(uint64_t seed, struct totals *totals)
{
    rng = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 4; i++)
        draw(2);
    struct byi_module *m = byi_module_new();
    const struct byi_func *f = make_graph(m);
    for (byi_id id = 4; id < f->nodes.n; id++) {
        struct byi_pattern_table *table = NULL;
        struct byi_text row = {0};
        struct byoc_error err;
        if (byi_root_of(&f->nodes.at[id]) == BYI_ROOT_NONE || draw(2))
            continue;
        make_row(m, f, id, &row);
        const struct byoc_pattern pattern = {.name = "t.row",
                                             .pattern = row.at};
        totals->rows++;
        if (byi_patterns_compile(&pattern, 1, &table, &err) != BYOC_OK)
            totals->refused++;
        for (byi_id at = 4; table && at < f->nodes.n; at++)
            if (table->at[0].roots[byi_root_of(&f->nodes.at[at])])
                compare(m, f, &table->at[0], at, totals);
        byi_patterns_free(&table);
        byi_text_free(&row);
    }
    byi_module_free(&m);
}

static uint32_t count = 2000, seed = 1;

static void agrees_with_naive_matcher(void **state)
{
    struct totals t = {0};
    (void)state;
    for (uint32_t i = 0; i < count; i++)
        fuzz_one((uint64_t)seed + i, &t);
    print_message("%u graphs, %u rows (%u refused), %u places, %u fitted in %u "
                  "ways, %u skipped\n",
                  count, t.rows, t.refused, t.tried, t.matched, t.ways,
                  t.skipped);
    assert_true(count < 100 || t.matched > count);
    assert_true(t.refused < t.rows / 2 && t.skipped < t.tried / 50);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_naive_matcher),
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint32_t value = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--count") == 0)
            count = value;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = value;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
