/* SPDX-License-Identifier: Apache-2.0 */
/* transform/call_graph.h: the references between the functions of a module, for
 * interprocedural passes.
 */
#ifndef BYI_CALL_GRAPH_H
#define BYI_CALL_GRAPH_H

#include "core/ir/ir.h"

/* Arrays except `order` are indexed by function. The graph has only functions
 * that are reachable from a named function. */
struct byi_call_graph {
    uint32_t n; /* functions in the graph */
    /* the functions in the graph, callees first; strongly connected components
     * are contiguous */
    uint32_t *order;
    bool *reached;   /* the function is in the graph */
    bool *recursive; /* the function refers to itself, directly or indirectly */
    /* the function, or one around it, is closed (byi_is_closed): its body must
     * not change */
    bool *closed;
    uint32_t *n_fns;     /* number of FN nodes that refer to it */
    uint32_t *n_globals; /* number of GLOBAL nodes that refer to it */
    uint32_t *root;      /* the named function that contains it, or itself */
};

/* Find the references of m's functions; the arrays are in `arena`. Time: linear
 * in the module. */
struct byi_call_graph byi_call_graph(const struct byi_module *m,
                                     struct byi_arena *arena);

/* Numbers for the nodes of all functions in the graph: node `id` of function
 * `func` has the number base[func] + id. */
struct byi_numbers {
    uint32_t n;      /* nodes of all functions in the graph */
    uint32_t *base;  /* for each function: the number of its first node */
    uint32_t *owner; /* for each number: the function of the node */
};

/* Number the nodes. The arrays are in `arena`. */
struct byi_numbers byi_call_graph_number(const struct byi_module *m,
                                         const struct byi_call_graph *graph,
                                         struct byi_arena *arena);

/* The node with this number. */
static inline const struct byi_node *byi_numbers_node(
    const struct byi_module *m, const struct byi_numbers *numbers,
    uint32_t number)
{
    const uint32_t func = numbers->owner[number];
    return &m->funcs.at[func]->nodes.at[number - numbers->base[func]];
}

/* Drop the functions to which no function with needed[func] refers, directly or
 * indirectly. Sets needed[] for the functions that stay. */
void byi_call_graph_drop(struct byi_module *m, bool *needed,
                         struct byi_arena *scratch);

#endif
