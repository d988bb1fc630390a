/* SPDX-License-Identifier: Apache-2.0 */
/* partition/cost.h: placement by cost: the cheapest assignment of a whole
 * graph, given the costs of its candidates (docs/cost.md).
 */
#ifndef BYI_COST_H
#define BYI_COST_H

#include "partition.h"

/* --- mincut.c: the minimum cut of a network ------------------------------- */

/* Nodes 0 .. n-1 between a source and a sink. */
struct byi_network;
struct byi_network *byi_network_new(struct byi_arena *arena, uint32_t n);
/* Add the cost of having `node` on the source's side, and on the sink's. Any
 * numbers. */
void byi_network_side(struct byi_network *net, uint32_t node, int64_t source,
                      int64_t sink);
/* Add the cost of having `a` on the source's side and `b` on the sink's, and
 * the reverse. Not negative. */
void byi_network_join(struct byi_network *net, uint32_t a, uint32_t b,
                      int64_t there, int64_t back);
/* Find the minimum cut, of several the one with the fewest nodes on the
 * source's side; sets source_side[node] for each node. Returns the cost. */
int64_t byi_network_cut(struct byi_network *net, bool *source_side);
void byi_network_free(struct byi_network **net);

/* --- assign.c: a label for each unit -------------------------------------- */

/* A pairwise term: time that two units save if they have the same label, since
 * no copy, reorder or call separates them. */
struct byi_bond {
    uint32_t a, b;
    const double *save; /* by label; not negative, finite */
};

/* The problem, in microseconds. Label 0 is native, which is possible for every
 * unit. */
struct byi_choice {
    uint32_t n_units, n_labels;
    const double *cost; /* [unit * n_labels + label]; INFINITY: impossible */
    const struct byi_bond *bonds;
    uint32_t n_bonds;
};

/* The energy of an assignment: costs of its units less savings of its pairs. */
double byi_choice_cost(const struct byi_choice *c, const uint32_t *label);
/* Solve for label[0..n_units-1]. With native and one backend, one minimum cut
 * is exact. With several backends the result is a local minimum of
 * alpha-expansion (Boykov, Veksler, Zabih 2001), which no single label can
 * improve by taking over any set of units, the best from several starts.
 * Deterministic. */
void byi_choose(const struct byi_choice *c, uint32_t *label);

/* --- assignment.c: which backend may take a node -------------------------- */

/* For each node of a module's functions either no decision, or the one backend
 * (or none) that may take it, and why not the others. Lives in an arena. */
struct byi_assignment *byi_assignment_new(const struct byi_module *m,
                                          struct byi_arena *arena);
/* Allow only `vendor` (NULL: no backend) to take the node. `why` is a sentence
 * about the costs. Keeps both pointers. */
void byi_assign(struct byi_assignment *a, uint32_t func, byi_id id,
                const char *vendor, const char *why);
/* Why `vendor` may not take the node; NULL if it may. `a` may be NULL. */
const char *byi_assigned_away(const struct byi_assignment *a, uint32_t func,
                              byi_id id, const char *vendor);
/* Update after a rebuild: node i is now map[i], of n nodes. `a` may be NULL. */
void byi_assignment_move(struct byi_assignment *a, uint32_t func,
                         uint32_t n_old, const byi_id *map, uint32_t n);
/* A copy, for another clone of the module. */
struct byi_assignment *byi_assignment_copy(const struct byi_assignment *a,
                                           struct byi_arena *arena);

/* --- merge_composite.c ---------------------------------------------------- */

/* The composites that MergeComposite would make of function `func` for one
 * vendor, without changing it: (*claimed)[id] is 1 + the composite of node id,
 * or 0. In `arena`. */
enum byoc_status byi_claims(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            const struct byi_vendor *vendor,
                            struct byi_arena *arena, const uint32_t **claimed,
                            struct byoc_error *err);

/* --- units.c: nodes that are assigned together ---------------------------- */

/* A candidate: the nodes that a backend takes as one composite, or the union of
 * overlapping composites of several backends. */
struct byi_unit {
    uint32_t func;
    uint32_t n;
    const byi_id *at; /* ascending */
    uint64_t vendors; /* bit v: the context's vendor v takes some of it */
};
struct byi_unit_pair {
    uint32_t a, b; /* b reads from a */
};
struct byi_units {
    BYI_VEC(struct byi_unit) list;       /* by function, by first node */
    BYI_VEC(struct byi_unit_pair) pairs; /* each once */
};
enum { BYI_MAX_COST_VENDORS = 63 };
/* The candidates of every function that is not yet offloaded. Asks the vendors
 * about `m`, whose functions stay as they are, but which gains dead ones. In
 * `arena` and on the heap: free with byi_units_free. */
enum byoc_status byi_units_find(struct byi_module *m,
                                struct byi_pass_context *ctx,
                                struct byi_arena *arena,
                                struct byi_units *units,
                                struct byoc_error *err);
void byi_units_free(struct byi_units *units);

/* --- piece.c: some nodes of a function on their own ----------------------- */

/* A set of nodes of a function: operators and fields of their results. */
struct byi_piece {
    uint32_t func;
    uint32_t n;
    const byi_id *at; /* ascending */
};
/* Add a function `name` to module `to` that computes the piece's results, which
 * the rest of the function reads, from the values that the piece reads:
 * constants stay constants, other values become parameters. Nodes get no
 * sources; constants share their data. Returns BYOC_EUNSUPPORTED for a value
 * that is not a tensor. */
enum byoc_status byi_piece_add(const struct byi_module *m,
                               const struct byi_piece *piece,
                               struct byi_module *to, const char *name,
                               struct byoc_error *err);
/* Hash into `s` everything that the piece's time depends on: operators,
 * attributes, types, edges, values of small constants. */
void byi_piece_sign(const struct byi_module *m, const struct byi_piece *piece,
                    struct byi_sha256 *s);
/* The same for a whole module. */
void byi_module_sign(const struct byi_module *m, struct byi_sha256 *s);
/* A readable name: "nn.conv2d, add, nn.relu of (1, 64, 56, 56)". */
void byi_piece_name(const struct byi_module *m, const struct byi_piece *piece,
                    struct byi_text *text);

#endif
