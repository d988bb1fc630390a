/* SPDX-License-Identifier: Apache-2.0 */
/* partition/cost.h: who gets what by cost: the cheapest assignment of a whole
 * graph, given what its parts cost (docs/cost.md).
 */
#ifndef BYI_COST_H
#define BYI_COST_H

#include "partition.h"

/* --- mincut.c: the cheapest cut of a network ------------------------------ */

/* Nodes 0 .. n-1 between a source and a sink. */
struct byi_network;
struct byi_network *byi_network_new(struct byi_arena *arena, uint32_t n);
/* What it costs to have `node` on the source's side, and on the sink's: any
 * numbers. */
void byi_network_side(struct byi_network *net, uint32_t node, int64_t source,
                      int64_t sink);
/* What it costs to have `a` on the source's side and `b` on the sink's, and
 * the other way round: not negative. */
void byi_network_join(struct byi_network *net, uint32_t a, uint32_t b,
                      int64_t there, int64_t back);
/* Cut: source_side[node] for each node; of several cheapest cuts the one with
 * the fewest nodes on the source's side. Returns what it costs. */
int64_t byi_network_cut(struct byi_network *net, bool *source_side);
void byi_network_free(struct byi_network **net);

/* --- assign.c: a label for each unit -------------------------------------- */

/* Two units that save time when both have the same label: no copy, no reorder
 * and no call between them. */
struct byi_bond {
    uint32_t a, b;
    const double *save; /* by label; not negative, finite */
};

/* What there is to choose, in microseconds. Label 0 is native and possible for
 * every unit. */
struct byi_choice {
    uint32_t n_units, n_labels;
    const double *cost; /* [unit * n_labels + label]; INFINITY: cannot */
    const struct byi_bond *bonds;
    uint32_t n_bonds;
};

/* What an assignment costs: its units, less what its bonds save. */
double byi_choice_cost(const struct byi_choice *c, const uint32_t *label);
/* The cheapest assignment, to label[0..n_units-1]. For native and one vendor
 * it is exact, by one minimum cut; for several vendors it is one that no label
 * can improve by taking more units, however many at once (alpha-expansion:
 * Boykov, Veksler, Zabih 2001), the best of those found from several starts.
 * Same choice, same assignment. */
void byi_choose(const struct byi_choice *c, uint32_t *label);

/* --- assignment.c: who may take a node ------------------------------------ */

/* Of each node of a module's functions: nothing was decided, or one vendor (or
 * none) may take it, and why no other one. Lives in an arena. */
struct byi_assignment *byi_assignment_new(const struct byi_module *m,
                                          struct byi_arena *arena);
/* Only `vendor` (NULL: nobody) may take the node. `why` is a sentence about
 * the costs; both are kept. */
void byi_assign(struct byi_assignment *a, uint32_t func, byi_id id,
                const char *vendor, const char *why);
/* Why `vendor` may not take the node; NULL when it may. `a` may be NULL. */
const char *byi_assigned_away(const struct byi_assignment *a, uint32_t func,
                              byi_id id, const char *vendor);
/* The function was rebuilt: its node i is map[i] now, of n. `a` may be NULL. */
void byi_assignment_move(struct byi_assignment *a, uint32_t func,
                         uint32_t n_old, const byi_id *map, uint32_t n);
/* The same once more, for another clone of the module. */
struct byi_assignment *byi_assignment_copy(const struct byi_assignment *a,
                                           struct byi_arena *arena);

/* --- merge_composite.c ---------------------------------------------------- */

/* What MergeComposite would make of function `func` for one vendor, which is
 * left as it is: (*claimed)[id] is 1 + the composite that node id is in, 0: in
 * none. In `arena`. */
enum byoc_status byi_claims(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            const struct byi_vendor *vendor,
                            struct byi_arena *arena, const uint32_t **claimed,
                            struct byoc_error *err);

/* --- units.c: what is assigned as a whole --------------------------------- */

/* Nodes that some vendor takes as one composite; where composites of several
 * vendors overlap, all of them together. */
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
/* The units of every function that no vendor has yet. The vendors are asked
 * about `m`, whose functions stay as they are; it gets dead ones. In `arena`
 * and on the heap: free with byi_units_free. */
enum byoc_status byi_units_find(struct byi_module *m,
                                struct byi_pass_context *ctx,
                                struct byi_arena *arena,
                                struct byi_units *units,
                                struct byoc_error *err);
void byi_units_free(struct byi_units *units);

/* --- piece.c: a part of a function on its own ----------------------------- */

/* Nodes of a function: operators and fields of their results. */
struct byi_piece {
    uint32_t func;
    uint32_t n;
    const byi_id *at; /* ascending */
};
/* A function `name` of module `to` that computes what the rest of the function
 * reads of the piece, from what the piece reads: constants stay constants,
 * other values become parameters. Nodes have no sources. The data of constants
 * stays where it is. Errors: BYOC_EUNSUPPORTED (a value that no tensor is). */
enum byoc_status byi_piece_add(const struct byi_module *m,
                               const struct byi_piece *piece,
                               struct byi_module *to, const char *name,
                               struct byoc_error *err);
/* Add to `s` all that the time of a piece depends on: operators, attributes,
 * types, how they hang together, values of small constants. */
void byi_piece_sign(const struct byi_module *m, const struct byi_piece *piece,
                    struct byi_sha256 *s);
/* The same of a whole module. */
void byi_module_sign(const struct byi_module *m, struct byi_sha256 *s);
/* "nn.conv2d, add, nn.relu of (1, 64, 56, 56)", for people. */
void byi_piece_name(const struct byi_module *m, const struct byi_piece *piece,
                    struct byi_text *text);

#endif
