/* SPDX-License-Identifier: Apache-2.0 */
/* partition/cost.h: placement by cost: its candidates, and the backend that
 * each is assigned to (docs/cost.md).
 */
#ifndef BYI_COST_H
#define BYI_COST_H

#include "partition.h"

/* --- assignment.c: which backend may run a node --------------------------- */

/* Create an assignment in `arena`, without a decision about any node of the
 * module. A decision is the only backend that may run the node (NULL: native
 * kernels only), with the reason. */
struct byi_assignment *byi_assignment_new(const struct byi_module *m,
                                          struct byi_arena *arena);
/* Allow only `backend` (NULL: no backend) to run the node. `why` is a sentence
 * about the costs. Keeps both pointers. */
void byi_assign(struct byi_assignment *a, uint32_t func, byi_id id,
                const char *backend, const char *why);
/* Returns why `backend` may not run the node, or NULL if it may. `a` may be
 * NULL. */
const char *byi_assignment_refusal(const struct byi_assignment *a,
                                   uint32_t func, byi_id id,
                                   const char *backend);
/* Update after a rebuild of `func`: node i of the n_old nodes is now map[i], of
 * n nodes; a removed node maps to 0. `a` may be NULL. */
void byi_assignment_move(struct byi_assignment *a, uint32_t func,
                         uint32_t n_old, const byi_id *map, uint32_t n);
/* Copy to `arena`, for another clone of the module. */
struct byi_assignment *byi_assignment_copy(const struct byi_assignment *a,
                                           struct byi_arena *arena);

/* --- merge_composite.c ---------------------------------------------------- */

/* Find the composites that MergeComposite would make of function `func` for one
 * backend, without changing the function. (*claimed)[id] is 1 + the composite
 * of node id, or 0. The array is in `arena`. Errors: those of byi_probe and
 * byi_composite_build. */
enum byoc_status byi_find_composites(struct byi_module *m, uint32_t func,
                                     struct byi_pass_context *ctx,
                                     const struct byi_backend *backend,
                                     struct byi_arena *arena,
                                     const uint32_t **claimed,
                                     struct byoc_error *err);

/* --- candidates.c: nodes that are assigned together ----------------------- */

/* A candidate: the nodes that a backend would run as one composite, or the
 * union of overlapping composites of several backends. */
struct byi_candidate {
    uint32_t func;
    uint32_t n;
    const byi_id *at;  /* ascending */
    uint64_t backends; /* bit i: the context's backend i can run part of it */
};
/* The candidates of a module. */
struct byi_candidates {
    BYI_VEC(struct byi_candidate)
    list; /* ordered by function, then first node */
};
/* The most backends of a context with placement by cost: together with native
 * kernels they are the bits of a uint64_t. */
enum { BYI_MAX_COST_BACKENDS = 63 };
/* Find the candidates of every function that is not yet offloaded. The
 * backends' probes add dead functions to `m`; its other functions are
 * unchanged. In `arena` and on the heap: free with byi_candidates_free, also
 * after an error. The context has at most BYI_MAX_COST_BACKENDS backends.
 * Errors: those of byi_find_composites. */
enum byoc_status byi_candidates_find(struct byi_module *m,
                                     struct byi_pass_context *ctx,
                                     struct byi_arena *arena,
                                     struct byi_candidates *candidates,
                                     struct byoc_error *err);
/* Free the list; *candidates may be zero. */
void byi_candidates_free(struct byi_candidates *candidates);

/* --- subgraph.c: some nodes of a function on their own -------------------- */

/* A set of nodes of a function: operators and fields of their results. */
struct byi_subgraph {
    uint32_t func;
    uint32_t n;
    const byi_id *at; /* ascending */
};
/* Add a function `name` to module `to` that computes the subgraph's results
 * from the values that the subgraph reads. The results are the values that the
 * rest of the function reads. Constants stay constants, other values become
 * parameters. Nodes get no sources; constants share their data. Returns
 * BYOC_EUNSUPPORTED if an operand is not a tensor with fixed dims, a node is
 * not an operator, or no node reads a result; then the function is dead. */
enum byoc_status byi_subgraph_add(const struct byi_module *m,
                                  const struct byi_subgraph *subgraph,
                                  struct byi_module *to, const char *name,
                                  struct byoc_error *err);
/* Hash into `s` everything that the subgraph's time depends on: operators,
 * attributes, types, edges, values of small constants. */
void byi_subgraph_hash(const struct byi_module *m,
                       const struct byi_subgraph *subgraph,
                       struct byi_sha256 *s);
/* Like byi_subgraph_hash, for a whole module. */
void byi_module_hash(const struct byi_module *m, struct byi_sha256 *s);
/* Append a readable name: "nn.conv2d, add, nn.relu (1, 64, 56, 56)". */
void byi_subgraph_name(const struct byi_module *m,
                       const struct byi_subgraph *subgraph,
                       struct byi_text *text);

#endif
