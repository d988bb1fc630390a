/* SPDX-License-Identifier: Apache-2.0 */
/* ops_tree.c: converts ai.onnx.ml's tree ensembles to ml.tree_ensemble and
 * operators on its sums; TreeEnsemble is in ops_tree_5.c. ONNX lists nodes by
 * tree and node number, in any order. But ml.tree_ensemble requires each node's
 * true child next to it (see ops.def), so trees are rewritten in depth-first
 * order. The negated comparisons (>, >=, !=) swap the children.
 */
#include "frontend_onnx/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Modes of ml.tree_ensemble: 0 (<=) or one of the first three, and a flag. */
enum { LESS = 1, EQUAL = 2, NOT_EQUAL = 3, NAN_IS_TRUE = 4 };

/* The operands of ml.tree_ensemble. */
struct flat_trees {
    BYI_VEC(int32_t) roots;
    BYI_VEC(int32_t) targets;
    int32_t (*splits)[2];
    uint32_t *from;        /* for each node: its index in the lists */
    uint32_t *weight_from; /* for each leaf weight: its index in the lists */
    uint8_t *modes;
    uint32_t n;
    bool has_modes; /* some mode is not 0; false: `modes` is not needed */
};

/* --- reading -------------------------------------------------------------- */

void byi_tree_ints(struct byi_import *o, uint32_t n, uint32_t n_lists,
                   const struct byi_tree_list *lists)
{
    for (uint32_t i = 0; i < n_lists; i++) {
        uint32_t found = 0;
        if (lists[i].optional && !byi_import_has_attr(o, lists[i].name))
            continue;
        *lists[i].to = byi_import_ints(o, lists[i].name, &found);
        if (byi_import_ok(o) && found != n)
            byi_import_fail(o, BYOC_EPARSE, "%s has %u entries, expected %u",
                            lists[i].name, found, n);
    }
}

static int compare_keys(const void *a, const void *b)
{
    const struct byi_tree_key *x = a, *y = b;

    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Returns the keys of n list entries, sorted; the scratch arena owns them. */
static struct byi_tree_key *sort_keys(struct byi_import *o, uint32_t n,
                                      const int64_t *trees,
                                      const int64_t *nodes)
{
    struct byi_tree_key *keys =
        byi_arena_calloc(o->scratch, n + 1, sizeof *keys);

    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct byi_tree_key){trees[i], nodes[i], i};
    qsort(keys, n, sizeof *keys, compare_keys);
    return keys;
}

/* Returns the index of the first key of (tree, node), by binary search, or n if
 * there is no such key. */
static uint32_t find_key(const struct byi_tree_key *keys, uint32_t n,
                         int64_t tree, int64_t node)
{
    const struct byi_tree_key key = {tree, node, 0};
    uint32_t low = 0, high = n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_keys(&keys[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && keys[low].tree == tree && keys[low].node == node ? low
                                                                       : n;
}

void byi_tree_index(struct byi_import *o, struct byi_trees *l)
{
    l->node_keys = sort_keys(o, l->n, l->trees, l->nodes);
    l->weight_keys =
        sort_keys(o, l->n_weights, l->weight_trees, l->weight_nodes);
    for (uint32_t i = 1; i < l->n; i++)
        if (l->node_keys[i].tree == l->node_keys[i - 1].tree &&
            l->node_keys[i].node == l->node_keys[i - 1].node)
            byi_import_fail(
                o, BYOC_EPARSE,
                "tree %lld has two nodes with number %lld, expected one",
                (long long)l->node_keys[i].tree,
                (long long)l->node_keys[i].node);
}

/* Read the attributes; the names of the weights' attributes begin with PREFIX_.
 */
static void read_lists(struct byi_import *o, const char *prefix,
                       struct byi_trees *l)
{
    const struct byi_tree_list of_nodes[] = {
        {"nodes_nodeids", &l->nodes, false},
        {"nodes_featureids", &l->features, false},
        {"nodes_truenodeids", &l->true_child, false},
        {"nodes_falsenodeids", &l->false_child, false},
        {"nodes_missing_value_tracks_true", &l->missing, true}};
    const char *trees = byi_arena_printf(o->scratch, "%s_treeids", prefix);
    const struct byi_tree_list of_weights[] = {
        {byi_arena_printf(o->scratch, "%s_nodeids", prefix), &l->weight_nodes,
         false},
        {byi_arena_printf(o->scratch, "%s_ids", prefix), &l->targets, false}};
    uint32_t n_modes = 0;

    l->trees = byi_import_ints(o, "nodes_treeids", &l->n);
    byi_tree_ints(o, l->n, BYI_N(of_nodes), of_nodes);
    l->modes = byi_import_strings(o, "nodes_modes", &n_modes);
    l->weight_trees = byi_import_ints(o, trees, &l->n_weights);
    byi_tree_ints(o, l->n_weights, BYI_N(of_weights), of_weights);
    if (l->n == 0 || l->n > INT32_MAX)
        byi_import_fail(o, BYOC_EPARSE, "found %u nodes, expected 1 to %d",
                        l->n, INT32_MAX);
    if (n_modes != l->n)
        byi_import_fail(o, BYOC_EPARSE,
                        "nodes_modes has %u entries, expected %u, one for each "
                        "node",
                        n_modes, l->n);
    if (l->n_weights > INT32_MAX)
        byi_import_fail(o, BYOC_EPARSE, "found %u weights, expected at most %d",
                        l->n_weights, INT32_MAX);
    if (byi_import_ok(o))
        byi_tree_index(o, l);
}

/* --- depth-first order ---------------------------------------------------- */

/* Read the comparison of the node at index `at` of the lists. *mode: its mode
 * of ml.tree_ensemble; *swap: whether its children are exchanged. Returns false
 * for a leaf and, after an error, for an unknown mode. */
static bool read_mode(struct byi_import *o, const struct byi_trees *l,
                      uint32_t at, uint8_t *mode, bool *swap)
{
    static const struct {
        const char *name;
        uint8_t mode;
        bool swap;
    } comparisons[] = {
        {"BRANCH_LEQ", 0, false},    {"BRANCH_LT", LESS, false},
        {"BRANCH_GTE", LESS, true},  {"BRANCH_GT", 0, true},
        {"BRANCH_EQ", EQUAL, false}, {"BRANCH_NEQ", EQUAL, true},
    };
    const bool tracks = l->missing && l->missing[at];

    if (l->set && l->set[at]) { /* the true child: the set's next node */
        *mode = (uint8_t)(NOT_EQUAL | (tracks ? 0 : NAN_IS_TRUE));
        *swap = true;
        return true;
    }
    for (uint32_t i = 0; i < BYI_COUNT(comparisons); i++) {
        if (strcmp(l->modes[at], comparisons[i].name) != 0)
            continue;
        *mode = comparisons[i].mode;
        *swap = comparisons[i].swap;
        /* NaN goes to the false child, except that NaN != x is true */
        const bool nan_is_true =
            tracks || strcmp(comparisons[i].name, "BRANCH_NEQ") == 0;
        if (nan_is_true != *swap)
            *mode |= NAN_IS_TRUE;
        return true;
    }
    if (strcmp(l->modes[at], "LEAF") != 0)
        byi_import_refuse(
            o,
            "found a node of mode '%s', expected LEAF, BRANCH_LEQ, BRANCH_LT, "
            "BRANCH_GTE, BRANCH_GT, BRANCH_EQ or BRANCH_NEQ",
            l->modes[at]);
    return false;
}

/* Write the node at index `at` of the lists, a leaf, and its weights; `place`
 * is its index in the output. */
static void add_leaf(const struct byi_trees *l, struct flat_trees *f,
                     int32_t place, uint32_t at)
{
    const int64_t tree = l->trees[at], node = l->nodes[at];
    uint32_t k = find_key(l->weight_keys, l->n_weights, tree, node);
    const int32_t first = (int32_t)f->targets.n;

    for (; k < l->n_weights && l->weight_keys[k].tree == tree &&
           l->weight_keys[k].node == node;
         k++) {
        f->weight_from[f->targets.n] = l->weight_keys[k].index;
        BYI_PUSH(&f->targets, (int32_t)l->targets[l->weight_keys[k].index]);
    }
    f->splits[place][0] = -1 - ((int32_t)f->targets.n - first);
    f->splits[place][1] = first;
}

/* A stack entry: a node's index in the lists, and its parent in the output if
 * it is a false child. */
struct tree_visit {
    uint32_t at;
    int32_t parent; /* -1: a root, or a true child */
};

/* Write the tree at `root` depth first. `visited` marks the nodes written: a
 * second visit is an error. */
static void write_tree(struct byi_import *o, const struct byi_trees *l,
                       uint32_t root, bool *visited, struct flat_trees *f)
{
    BYI_VEC(struct tree_visit) stack = {0};

    BYI_PUSH(&f->roots, (int32_t)f->n);
    BYI_PUSH(&stack, ((struct tree_visit){root, -1}));
    while (stack.n && byi_import_ok(o)) {
        const struct tree_visit w = stack.at[--stack.n];
        const int32_t place = (int32_t)f->n;
        bool swap = false;
        if (visited[w.at]) {
            byi_import_fail(
                o, BYOC_EPARSE,
                "node %lld of tree %lld has two parents, expected one",
                (long long)l->nodes[w.at], (long long)l->trees[w.at]);
            break;
        }
        visited[w.at] = true;
        if (w.parent >= 0)
            f->splits[w.parent][1] = place;
        f->from[f->n] = w.at;
        const bool leaf = !read_mode(o, l, w.at, &f->modes[f->n++], &swap);
        if (leaf) {
            add_leaf(l, f, place, w.at);
            continue;
        }
        const int64_t true_child = l->true_child[w.at],
                      false_child = l->false_child[w.at];
        const uint32_t next = find_key(l->node_keys, l->n, l->trees[w.at],
                                       swap ? false_child : true_child);
        const uint32_t other_child =
            find_key(l->node_keys, l->n, l->trees[w.at],
                     swap ? true_child : false_child);
        if (next == l->n || other_child == l->n)
            byi_import_fail(
                o, BYOC_EPARSE,
                "node %lld of tree %lld has child %lld, expected a node "
                "of the tree",
                (long long)l->nodes[w.at], (long long)l->trees[w.at],
                (long long)((next == l->n) != swap ? true_child : false_child));
        else if (l->features[w.at] < 0 || l->features[w.at] > INT32_MAX)
            byi_import_fail(
                o, BYOC_EPARSE,
                "node %lld of tree %lld has feature %lld, expected 0 to %d",
                (long long)l->nodes[w.at], (long long)l->trees[w.at],
                (long long)l->features[w.at], INT32_MAX);
        if (!byi_import_ok(o))
            break;
        f->splits[place][0] = (int32_t)l->features[w.at];
        f->has_modes |= f->modes[place] != 0;
        if (!l->set || l->set[w.at] != BYI_SET_NEXT)
            BYI_PUSH(&stack, ((struct tree_visit){
                                 l->node_keys[other_child].index, place}));
        BYI_PUSH(&stack, ((struct tree_visit){l->node_keys[next].index, -1}));
    }
    for (uint32_t i = (uint32_t)f->roots.at[f->roots.n - 1]; i < f->n; i++)
        if (l->set && l->set[f->from[i]] ==
                          BYI_SET_NEXT) /* a set has one child for matches */
            f->splits[i][1] = f->splits[i - 1][1];
    byi_vec_free(stack.at);
}

/* Returns, by node, whether it is a child; the others are roots. */
static bool *find_children(struct byi_import *o, const struct byi_trees *l)
{
    bool *child = byi_arena_calloc(o->scratch, l->n, sizeof *child);

    for (uint32_t i = 0; i < l->n; i++) {
        if (strcmp(l->modes[i], "LEAF") == 0)
            continue;
        const uint32_t children[] = {
            find_key(l->node_keys, l->n, l->trees[i], l->true_child[i]),
            find_key(l->node_keys, l->n, l->trees[i], l->false_child[i])};
        for (uint32_t k = 0; k < 2; k++)
            if (children[k] < l->n)
                child[l->node_keys[children[k]].index] = true;
    }
    return child;
}

static void write_trees(struct byi_import *o, const struct byi_trees *l,
                        struct flat_trees *f)
{
    const bool *child = find_children(o, l);
    bool *visited = byi_arena_calloc(o->scratch, l->n, sizeof *visited);

    f->splits = byi_arena_calloc(o->scratch, l->n, sizeof *f->splits);
    f->from = byi_arena_calloc(o->scratch, l->n, sizeof *f->from);
    f->modes = byi_arena_calloc(o->scratch, l->n, sizeof *f->modes);
    f->weight_from =
        byi_arena_calloc(o->scratch, l->n_weights + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < l->n && byi_import_ok(o); i++)
        if (!child[i])
            write_tree(o, l, i, visited, f);
    if (byi_import_ok(o) && f->n != l->n)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u of %u nodes on a path from a root, expected "
                        "all: the others form cycles",
                        f->n, l->n);
}

/* --- operands ------------------------------------------------------------- */

/* Read attribute NAME (floats), or NAME_as_tensor. n is the expected number of
 * entries; UINT32_MAX accepts any number. */
static void read_numbers(struct byi_import *o, const char *name, uint32_t n,
                         struct byi_tensor *t)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    const char *tensor = byi_arena_printf(o->scratch, "%s_as_tensor", name);

    *t = (struct byi_tensor){.dtype = BYOC_F32, .rank = 1};
    if (a) {
        t->data = a->floats;
        t->dims[0] = (int64_t)a->n_floats;
    }
    byi_import_tensor(o, tensor, t);
    if (byi_import_ok(o) && !byi_dtype_is_float(t->dtype))
        byi_import_fail(o, BYOC_ETYPE, "%s has type %s, expected floats", name,
                        byoc_dtype_name(t->dtype));
    if (byi_import_ok(o) && n != UINT32_MAX &&
        byi_elements(t->rank, t->dims) != (int64_t)n)
        byi_import_fail(o, BYOC_EPARSE, "%s has %lld entries, expected %u",
                        name, (long long)byi_elements(t->rank, t->dims), n);
}

/* Add a constant vector of the n elements t[from[0]], ..., t[from[n - 1]].
 * BYI_NO_ID after an earlier error. */
static byi_id select_elements(struct byi_import *o, enum byoc_dtype dtype,
                              const struct byi_tensor *t, const uint32_t *from,
                              uint32_t n)
{
    struct byi_tensor elements = {
        .data = byi_arena_calloc(o->scratch, n + 1, byoc_dtype_size(dtype)),
        .dtype = dtype,
        .rank = 1,
        .dims = {n}};

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        byi_tensor_set(&elements, i, byi_tensor_float(t, from[i]));
    return byi_import_const(o, &elements, false);
}

/* Add a constant: a vector of n elements if columns is 1, otherwise (n,
 * columns). */
static byi_id add_constant(struct byi_import *o, enum byoc_dtype dtype,
                           const void *data, int64_t n, int64_t columns)
{
    const struct byi_tensor t = {.data = (void *)(uintptr_t)data,
                                 .dtype = dtype,
                                 .rank = columns > 1 ? 2 : 1,
                                 .dims = {n, columns}};

    return byi_import_const(o, &t, false);
}

/* Whether each of the n targets has a tree whose leaves have one weight each,
 * all for this target. Then every row has a vote for each target. */
static bool covers_targets(struct byi_import *o, const struct flat_trees *f,
                           int64_t n)
{
    bool *has_tree = byi_arena_calloc(o->scratch, (size_t)n, sizeof *has_tree);
    int64_t covered = 0;

    for (uint32_t t = 0; t < f->roots.n; t++) {
        const uint32_t end =
            t + 1 < f->roots.n ? (uint32_t)f->roots.at[t + 1] : f->n;
        int32_t target = -1;
        bool same = true; /* each leaf has one weight, of the same target */
        for (uint32_t i = (uint32_t)f->roots.at[t]; i < end; i++) {
            if (f->splits[i][0] >= 0)
                continue;
            const int32_t to =
                f->splits[i][0] == -2 ? f->targets.at[f->splits[i][1]] : -1;
            same &= to >= 0 && (target < 0 || to == target);
            target = to;
        }
        if (same && target >= 0 && !has_tree[target]) {
            has_tree[target] = true;
            covered++;
        }
    }
    return covered == n;
}

/* Set e->used, e->negative and e->partial from the weights. */
static void describe_weights(struct byi_import *o, const struct flat_trees *f,
                             const struct byi_tensor *weights,
                             struct byi_ensemble *e)
{
    for (uint32_t i = 0; i < f->targets.n && byi_import_ok(o); i++) {
        const int32_t to = f->targets.at[i];
        if (to < 0 || to >= e->n) {
            byi_import_fail(o, BYOC_EPARSE,
                            "found a weight for target %d, expected 0 to %lld",
                            to, (long long)e->n - 1);
            return;
        }
        if (to < 2)
            e->used[to] = true;
        e->negative |= byi_tensor_float(weights, f->weight_from[i]) < 0;
    }
    if (e->partial && byi_import_ok(o))
        e->partial = !covers_targets(o, f, e->n);
}

static byi_id emit_ensemble(struct byi_import *o, const struct flat_trees *f,
                            byi_id x, const struct byi_tensor *thresholds,
                            const struct byi_tensor *weights,
                            const char *aggregate, const struct byi_ensemble *e)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, x);

    return byi_import_emit(
        o, BYI_OP_TREE_ENSEMBLE,
        ARGS(x, add_constant(o, BYOC_I32, f->roots.at, f->roots.n, 1),
             add_constant(o, BYOC_I32, f->splits, f->n, 2),
             select_elements(o, dtype, thresholds, f->from, f->n),
             add_constant(o, BYOC_U8, f->modes, f->has_modes ? f->n : 0, 1),
             add_constant(o, BYOC_I32,
                          f->targets.at ? f->targets.at : &(int32_t){0},
                          f->targets.n, 1),
             select_elements(o, dtype, weights, f->weight_from, f->targets.n)),
        ATTRS(AN_INT("targets", e->n), A_STRING("aggregate", aggregate),
              A_FLOAT("absent", e->partial ? -INFINITY : 0.0)));
}

void byi_tree_add(struct byi_import *o, const struct byi_trees *l,
                  const struct byi_tensor *thresholds,
                  const struct byi_tensor *weights, const char *aggregate,
                  struct byi_ensemble *e)
{
    const bool is_double = byi_import_dtype(o, byi_import_in(o, 0)) == BYOC_F64;
    const byi_id x = byi_ml_matrix(o, 0, is_double ? BYOC_F64 : BYOC_F32);
    struct flat_trees f = {0};

    if (e->n < 1 || e->n > INT32_MAX)
        byi_import_fail(o, BYOC_EPARSE, "found %lld targets, expected 1 to %d",
                        (long long)e->n, INT32_MAX);
    if (byi_import_ok(o))
        write_trees(o, l, &f);
    if (byi_import_ok(o))
        describe_weights(o, &f, weights, e);
    if (byi_import_ok(o))
        e->sums = emit_ensemble(o, &f, x, thresholds, weights, aggregate, e);
    byi_vec_free(f.roots.at);
    byi_vec_free(f.targets.at);
}

static void read_ensemble(struct byi_import *o, const char *prefix,
                          const char *aggregate, struct byi_ensemble *e)
{
    struct byi_trees l = {0};
    struct byi_tensor thresholds, weights, hits;

    read_lists(o, prefix, &l);
    read_numbers(o, "nodes_values", l.n, &thresholds);
    read_numbers(o, "nodes_hitrates", UINT32_MAX, &hits);
    read_numbers(o, byi_arena_printf(o->scratch, "%s_weights", prefix),
                 l.n_weights, &weights);
    byi_tree_add(o, &l, &thresholds, &weights, aggregate, e);
}

/* Add base_values as a vector of the type of `sums`; *n: their number.
 * BYI_NO_ID if there are none, or on error. */
static byi_id add_base_values(struct byi_import *o, byi_id sums, uint32_t *n)
{
    struct byi_tensor t;

    read_numbers(o, "base_values", UINT32_MAX, &t);
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const int64_t count = byi_elements(t.rank, t.dims);
    uint32_t *indices =
        byi_arena_calloc(o->scratch, (size_t)count + 1, sizeof *indices);
    for (int64_t i = 0; i < count; i++)
        indices[i] = (uint32_t)i;
    *n = (uint32_t)count;
    return count
               ? select_elements(o, byi_import_dtype(o, sums), &t, indices, *n)
               : BYI_NO_ID;
}

/* --- the operators -------------------------------------------------------- */

static void convert_tree_regressor(struct byi_import *o)
{
    static const char *const names[][2] = {
        {"SUM", "sum"}, {"AVERAGE", "average"}, {"MIN", "min"}, {"MAX", "max"}};
    const char *aggregate = byi_import_string(o, "aggregate_function", "SUM");
    const char *transform = byi_import_string(o, "post_transform", "NONE");
    struct byi_ensemble e = {.n = byi_import_int(o, "n_targets", 1)};
    const char *combine = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < BYI_COUNT(names); i++)
        if (strcmp(aggregate, names[i][0]) == 0)
            combine = names[i][1];
    if (!combine) {
        byi_import_refuse(
            o, "aggregate_function is '%s', expected SUM, AVERAGE, MIN or MAX",
            aggregate);
        return;
    }
    read_ensemble(o, "target", combine, &e);
    const byi_id base = add_base_values(o, e.sums, &n);
    if (n && n != e.n)
        byi_import_fail(o, BYOC_EPARSE, "found %u base_values, expected %lld",
                        n, (long long)e.n);
    byi_id y = n ? byi_import_call(o, BYI_OP_ADD, e.sums, base) : e.sums;
    y = byi_import_cast(o, y, BYOC_F32);
    /* a single number is not a distribution: only PROBIT applies */
    if (e.n == 1 && strcmp(transform, "PROBIT") != 0)
        transform = "NONE";
    o->out[0] = byi_ml_post_transform(o, y, transform);
}

/* Emit the results for two classes with one sum p, which is a probability if
 * no weight is negative, otherwise a score around 0. */
static void classify_binary(struct byi_import *o, const struct byi_ensemble *e,
                            byi_id p, byi_id labels, const char *transform)
{
    const bool logistic = strcmp(transform, "LOGISTIC") == 0;
    byi_id first;

    if (strcmp(transform, "PROBIT") == 0)
        byi_import_refuse(o, "found PROBIT of one score for two classes, "
                             "expected another post_transform");
    o->out[0] =
        byi_ml_take(o, labels, byi_ml_above(o, p, e->negative ? 0 : 0.5));
    p = byi_import_cast(o, p, BYOC_F32);
    if (logistic)
        p = byi_ml_post_transform(o, p, transform);
    if (logistic || !e->negative)
        first = byi_ml_complement(o, p);
    else
        first = byi_import_call(o, BYI_OP_NEGATIVE, p);
    o->out[1] = byi_ml_two_columns(o, first, p);
}

/* Emit column i of the sums, (rows, 1). */
static byi_id emit_column(struct byi_import *o, byi_id sums, double i)
{
    return byi_import_add_axes(
        o, byi_import_take(o, sums, byi_import_scalar(o, BYOC_I64, i), 1), 1,
        1);
}

/* Emit the results for several sums. The label is the class with the largest
 * sum among the classes with a vote. A class without votes scores 0. */
static void classify_multi(struct byi_import *o, const struct byi_ensemble *e,
                           byi_id sums, byi_id labels, const char *transform)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, sums);

    o->out[0] = byi_ml_take(o, labels, byi_ml_argmax(o, sums));
    if (e->partial) {
        const byi_id no_votes = byi_import_call(
            o, BYI_OP_EQUAL, sums, byi_import_scalar(o, dtype, -INFINITY));
        sums = byi_import_call(o, BYI_OP_WHERE, no_votes,
                               byi_import_scalar(o, dtype, 0), sums);
    }
    o->out[1] =
        byi_ml_post_transform(o, byi_import_cast(o, sums, BYOC_F32), transform);
}

/* base_values has an entry for every class, or one for a binary classifier with
 * a single sum. This one belongs to class 0: as in ONNX Runtime, it has no
 * effect if all votes are for class 1. */
static void convert_tree_classifier(struct byi_import *o)
{
    static const int64_t two[] = {0, 1};
    const char *transform = byi_import_string(o, "post_transform", "NONE");
    uint32_t n_labels = 0, n = 0;
    const byi_id labels = byi_ml_labels(o, "classlabels_int64s", &n_labels);
    const bool has_base_values =
        byi_import_has_attr(o, "base_values") ||
        byi_import_has_attr(o, "base_values_as_tensor");
    struct byi_ensemble e = {.n = n_labels,
                             .partial = n_labels > 2 && !has_base_values};

    read_ensemble(o, "class", "sum", &e);
    const byi_id base = add_base_values(o, e.sums, &n);
    const bool has_one_sum = n_labels == 2 && e.used[0] != e.used[1] && n < 2;
    if (n && n != n_labels && !has_one_sum)
        byi_import_refuse(
            o, "found %u base_values for %u classes, expected one each", n,
            n_labels);
    if (!byi_import_ok(o))
        return;
    byi_id sums = has_one_sum && e.used[0] ? emit_column(o, e.sums, 0) : e.sums;
    if (n && (!has_one_sum || e.used[0]))
        sums = byi_import_call(o, BYI_OP_ADD, sums, base);
    if (n_labels == 1) {
        const byi_id above = byi_ml_above(o, sums, 0);
        o->out[0] = byi_ml_take(o, byi_import_vector(o, 2, two), above);
        o->out[1] = byi_import_cast(o, sums, BYOC_F32);
    } else if (has_one_sum && e.used[0]) {
        classify_binary(o, &e, sums, labels, transform);
    } else if (has_one_sum) { /* class 0 scores 0; class 1 decides */
        o->out[1] = byi_ml_post_transform(o, byi_import_cast(o, sums, BYOC_F32),
                                          transform);
        o->out[0] = byi_ml_take(
            o, labels,
            byi_ml_above(o, emit_column(o, sums, 1), e.negative ? 0 : 0.5));
    } else {
        classify_multi(o, &e, sums, labels, transform);
    }
}

/* clang-format off */
BYI_ONNX_ROWS(ml_tree, BYI_ML,
    {"TreeEnsembleClassifier", 1, 1, 1, convert_tree_classifier, BYI_OP_NONE},
    {"TreeEnsembleRegressor", 1, 1, 1, convert_tree_regressor, BYI_OP_NONE})
/* clang-format on */
