/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/tree.h: tree ensembles as the attributes of ONNX list them,
 * shared by ops_tree.c and ops_tree_5.c. Errors are sticky, as in struct
 * byi_import.
 */
#ifndef BYI_FRONTEND_ONNX_TREE_H
#define BYI_FRONTEND_ONNX_TREE_H

#include "frontend_onnx/import.h"

/* The tree and node ids of a node or leaf weight, and its index in the lists of
 * byi_trees. */
struct byi_tree_key {
    int64_t tree, node;
    uint32_t index;
};

/* A comparison with a set of numbers is a chain of nodes, each of which
 * compares x with one number: the set's first, or one of the next. */
enum byi_tree_set { BYI_SET_NONE, BYI_SET_FIRST, BYI_SET_NEXT };

/* The n nodes and n_weights leaf weights as the attributes list them, in the
 * import's scratch memory. */
struct byi_trees {
    uint32_t n, n_weights;
    const int64_t *trees, *nodes, *features;
    const int64_t *true_child, *false_child; /* node ids */
    const int64_t *missing; /* not 0: NaN goes to the true child; NULL: all 0 */
    const char *const *modes;
    const uint8_t *set; /* enum byi_tree_set of each node; NULL: no sets */
    const int64_t *weight_trees, *weight_nodes, *targets;
    /* set by byi_tree_index: the keys of the nodes and of the leaf weights,
     * sorted by tree, node and index */
    struct byi_tree_key *node_keys, *weight_keys;
};

/* An ensemble, and the facts about its weights that post transforms need. */
struct byi_ensemble {
    /* (rows, n); if `partial`, -inf marks a target without votes */
    byi_id sums;
    int64_t n;     /* targets */
    bool partial;  /* a row may miss a target */
    bool used[2];  /* for target 0 and 1: whether a weight is for it */
    bool negative; /* some weight is negative */
};

/* An attribute that lists integers, and where to store them. If an optional
 * attribute is absent, *to is unchanged. */
struct byi_tree_list {
    const char *name;
    const int64_t **to;
    bool optional;
};
/* Read the n_lists attributes of `lists`, whose integers live until the import
 * ends; fails unless each has n integers. */
void byi_tree_ints(struct byi_import *o, uint32_t n, uint32_t n_lists,
                   const struct byi_tree_list *lists);
/* Set node_keys and weight_keys, in o->scratch; fails if a tree has two nodes
 * of the same id. */
void byi_tree_index(struct byi_import *o, struct byi_trees *trees);
/* Emit the sums of all listed trees; call byi_tree_index first. Set e->n, and
 * e->partial if targets without votes must be marked. The call clears
 * e->partial if each row has votes for all targets, and sets the other members.
 * `thresholds` belong to the nodes and `weights` to the leaves, in the order of
 * the lists. `aggregate` is "sum", "average", "min" or "max", as in ops.def.
 * Comparisons are in float64 if the node's input is float64, otherwise in
 * float32. */
void byi_tree_add(struct byi_import *o, const struct byi_trees *trees,
                  const struct byi_tensor *thresholds,
                  const struct byi_tensor *weights, const char *aggregate,
                  struct byi_ensemble *e);

#endif
