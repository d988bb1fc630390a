/* SPDX-License-Identifier: Apache-2.0 */
/* ops_tree_5.c: converts TreeEnsemble of opset 5 of ai.onnx.ml. Inner nodes and
 * leaves have separate numbers, and a node may compare with a set of numbers.
 * The sets are listed one after the other, each ending with NaN. The attributes
 * are rewritten as the lists of the older operators (ops_tree.c). A leaf
 * becomes a node for each parent, and a comparison with a set becomes a chain
 * of nodes.
 */
#include "frontend_onnx/tree.h"

#include <math.h>

/* The attributes of the operator: n inner nodes, and their leaves. */
struct inner_nodes {
    uint32_t n, n_leaves;
    /* for each inner node: its feature, its true and its false child, whether
     * these are leaves, and whether NaN goes to the true child (NULL: no) */
    const int64_t *features, *true_child, *false_child, *true_is_leaf,
        *false_is_leaf, *missing;
    const int64_t *leaf_targets; /* for each leaf, as `weights` */
    struct byi_tensor modes, splits, members,
        weights;     /* members: of the sets */
    uint32_t *start; /* for each inner node: its first listed node; [n]: the
                        number of listed nodes */
};

enum { IN_SET = 6 }; /* the mode of a comparison with a set */

/* Returns the number of listed nodes for inner node i, at least 1. If the node
 * compares with a set, it is one for each number of the set. Then moves
 * *member, an index in t->members, past the set. */
static uint32_t count_listed(const struct inner_nodes *t, uint32_t i,
                             int64_t *member)
{
    const int64_t n = byi_elements(t->members.rank, t->members.dims);
    uint32_t count = 0;

    if (byi_tensor_int(&t->modes, i) != IN_SET)
        return 1;
    for (; *member < n && !isnan(byi_tensor_float(&t->members, *member));
         ++*member)
        count++;
    ++*member;
    return count ? count : 1;
}

/* Read attribute `name`, a tensor of n entries; UINT32_MAX accepts any number,
 * and a missing attribute. */
static void read_tensor(struct byi_import *o, const char *name, uint32_t n,
                        struct byi_tensor *t)
{
    const bool found = byi_import_tensor(o, name, t);

    if (!byi_import_ok(o) || n == UINT32_MAX)
        return;
    if (!found)
        byi_import_fail(o, BYOC_EPARSE,
                        "%s is missing, expected a tensor of %u entries", name,
                        n);
    else if (byi_elements(t->rank, t->dims) != (int64_t)n)
        byi_import_fail(o, BYOC_EPARSE, "%s has %lld entries, expected %u",
                        name, (long long)byi_elements(t->rank, t->dims), n);
}

static void read_inner_nodes(struct byi_import *o, struct inner_nodes *t)
{
    const struct byi_tree_list lists[] = {
        {"nodes_truenodeids", &t->true_child, false},
        {"nodes_falsenodeids", &t->false_child, false},
        {"nodes_trueleafs", &t->true_is_leaf, false},
        {"nodes_falseleafs", &t->false_is_leaf, false},
        {"nodes_missing_value_tracks_true", &t->missing, true}};
    int64_t member = 0;

    t->features = byi_import_ints(o, "nodes_featureids", &t->n);
    byi_tree_ints(o, t->n, BYI_N(lists), lists);
    t->leaf_targets = byi_import_ints(o, "leaf_targetids", &t->n_leaves);
    read_tensor(o, "nodes_modes", t->n, &t->modes);
    read_tensor(o, "nodes_splits", t->n, &t->splits);
    read_tensor(o, "leaf_weights", t->n_leaves, &t->weights);
    read_tensor(o, "membership_values", UINT32_MAX, &t->members);
    read_tensor(o, "nodes_hitrates", UINT32_MAX, &(struct byi_tensor){0});
    if (byi_import_ok(o) && (t->n == 0 || t->n > INT32_MAX / 4))
        byi_import_fail(o, BYOC_EPARSE, "found %u nodes, expected 1 to %d",
                        t->n, INT32_MAX / 4);
    t->start = byi_arena_calloc(o->scratch, t->n + 2, sizeof *t->start);
    for (uint32_t i = 0; byi_import_ok(o) && i < t->n; i++)
        t->start[i + 1] = t->start[i] + count_listed(t, i, &member);
}

/* The lists of the older operators, owned by the scratch arena. */
struct tree_lists {
    int64_t *trees, *nodes, *features, *true_child, *false_child, *missing;
    int64_t *weight_nodes, *targets;
    const char **modes;
    uint8_t *set;
    double *thresholds, *weights;
    uint32_t n, n_weights;
};

/* Allocate the lists, with room for each listed node and two leaves for each
 * inner node. */
static void make_lists(struct byi_import *o, const struct inner_nodes *t,
                       struct tree_lists *m)
{
    const size_t n = t->start[t->n] + 2 * (size_t)t->n;
    int64_t **const lists[] = {&m->trees,      &m->nodes,       &m->features,
                               &m->true_child, &m->false_child, &m->missing,
                               &m->targets,    &m->weight_nodes};

    for (uint32_t i = 0; i < BYI_COUNT(lists); i++)
        *lists[i] = byi_arena_calloc(o->scratch, n, sizeof **lists[i]);
    m->modes = byi_arena_calloc(o->scratch, n, sizeof *m->modes);
    m->set = byi_arena_calloc(o->scratch, n, sizeof *m->set);
    m->thresholds = byi_arena_calloc(o->scratch, n, sizeof *m->thresholds);
    m->weights = byi_arena_calloc(o->scratch, n, sizeof *m->weights);
    m->n = t->start[t->n];
}

/* Returns the listed node of a child, or -1 after an error. Adds the node if
 * the child is a leaf, which becomes one listed node for each parent. */
static int64_t add_child(struct byi_import *o, const struct inner_nodes *t,
                         struct tree_lists *m, int64_t child, bool leaf)
{
    if (child < 0 || child >= (leaf ? t->n_leaves : t->n)) {
        byi_import_fail(o, BYOC_EPARSE,
                        "found %s %lld, expected one of %u, from 0 on",
                        leaf ? "leaf" : "node", (long long)child,
                        leaf ? t->n_leaves : t->n);
        return -1;
    }
    if (!leaf)
        return t->start[child];
    const uint32_t at = m->n++, k = m->n_weights++;
    m->nodes[at] = at;
    m->modes[at] = "LEAF";
    m->weight_nodes[k] = at;
    m->targets[k] = t->leaf_targets[child];
    m->weights[k] = byi_tensor_float(&t->weights, child);
    return at;
}

/* Add the listed nodes of inner node i; *member is the index of the next set's
 * first number. */
static void add_inner(struct byi_import *o, const struct inner_nodes *t,
                      uint32_t i, int64_t *member, struct tree_lists *m)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ",
                                        "BRANCH_EQ"};
    const int64_t mode = byi_tensor_int(&t->modes, i), first = *member;
    const uint32_t begin = t->start[i], end = t->start[i + 1];
    const int64_t true_child =
        add_child(o, t, m, t->true_child[i], t->true_is_leaf[i] != 0);
    const int64_t false_child =
        add_child(o, t, m, t->false_child[i], t->false_is_leaf[i] != 0);

    if (mode < 0 || mode > IN_SET) {
        byi_import_refuse(o, "found a node of mode %lld, expected 0 to %d",
                          (long long)mode, IN_SET);
        return;
    }
    count_listed(t, i, member);
    for (uint32_t at = begin; at < end; at++) {
        const bool empty = mode == IN_SET && *member == first + 1;
        m->nodes[at] = at;
        m->features[at] = t->features[i];
        m->modes[at] = modes[mode];
        m->missing[at] = t->missing && t->missing[i];
        m->true_child[at] = true_child;
        m->false_child[at] = at + 1 < end ? at + 1 : false_child;
        m->set[at] = mode != IN_SET || empty ? BYI_SET_NONE
                     : at == begin           ? BYI_SET_FIRST
                                             : BYI_SET_NEXT;
        m->thresholds[at] =
            mode != IN_SET ? byi_tensor_float(&t->splits, i)
            : empty        ? (double)NAN
                           : byi_tensor_float(&t->members, first + at - begin);
    }
}

static void check_roots(struct byi_import *o, const struct inner_nodes *t)
{
    uint32_t n = 0;
    const int64_t *roots = byi_import_ints(o, "tree_roots", &n);

    for (uint32_t i = 0; i < n; i++)
        if (roots[i] < 0 || roots[i] >= t->n)
            byi_import_fail(o, BYOC_EPARSE,
                            "found root %lld, expected one of %u, from 0 on",
                            (long long)roots[i], t->n);
}

static void read_tree_ensemble(struct byi_import *o, const char *aggregate,
                               struct byi_ensemble *e)
{
    struct inner_nodes t = {0};
    struct tree_lists m = {0};
    int64_t member = 0;

    read_inner_nodes(o, &t);
    check_roots(o, &t);
    if (!byi_import_ok(o))
        return;
    make_lists(o, &t, &m);
    for (uint32_t i = 0; i < t.n && byi_import_ok(o); i++)
        add_inner(o, &t, i, &member, &m);
    if (!byi_import_ok(o))
        return;
    const struct byi_tensor thresholds = {
        .data = m.thresholds, .dtype = BYOC_F64, .rank = 1, .dims = {m.n}};
    const struct byi_tensor weights = {
        .data = m.weights, .dtype = BYOC_F64, .rank = 1, .dims = {m.n_weights}};
    struct byi_trees l = {.n = m.n,
                          .n_weights = m.n_weights,
                          .trees = m.trees,
                          .nodes = m.nodes,
                          .features = m.features,
                          .true_child = m.true_child,
                          .false_child = m.false_child,
                          .missing = m.missing,
                          .modes = m.modes,
                          .set = m.set,
                          .weight_trees = m.trees,
                          .weight_nodes = m.weight_nodes,
                          .targets = m.targets};
    byi_tree_index(o, &l);
    byi_tree_add(o, &l, &thresholds, &weights, aggregate, e);
}

static void convert_tree_ensemble(struct byi_import *o)
{
    static const char *const aggregates[] = {"average", "sum", "min", "max"};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC",
                                             "SOFTMAX_ZERO", "PROBIT"};
    const int64_t aggregate = byi_import_int(o, "aggregate_function", 1);
    const int64_t transform = byi_import_int(o, "post_transform", 0);
    struct byi_ensemble e = {.n = byi_import_int(o, "n_targets", 0)};

    if (aggregate < 0 || aggregate >= (int64_t)BYI_COUNT(aggregates)) {
        byi_import_refuse(o, "aggregate_function is %lld, expected 0 to 3",
                          (long long)aggregate);
        return;
    }
    if (transform < 0 || transform >= (int64_t)BYI_COUNT(transforms)) {
        byi_import_refuse(o, "post_transform is %lld, expected 0 to 4",
                          (long long)transform);
        return;
    }
    read_tree_ensemble(o, aggregates[aggregate], &e);
    o->out[0] = byi_ml_post_transform(
        o, byi_import_cast(o, e.sums, byi_import_dtype(o, byi_import_in(o, 0))),
        transforms[transform]);
}

/* clang-format off */
BYI_ONNX_ROWS(ml_tree_5, BYI_ML,
    {"TreeEnsemble", 5, 1, 1, convert_tree_ensemble, BYI_OP_NONE})
/* clang-format on */
