/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/nest.h: prints the loop nest over one iteration domain of a group:
 * decide.c chooses its form, nest.c prints it.
 */
#ifndef BYI_NEST_H
#define BYI_NEST_H

#include "group.h"

enum {
    BYI_STREAM_BLOCK = 2048, /* elements of a block of streaming stores */
    /* a parallel loop of at least this many iterations is not joined with the
     * loop inside it; a team of this many threads means any number of threads
     */
    BYI_MANY = 64
};

/* The printer of the loops over a domain, and the form of these loops. */
struct byi_printer {
    const struct byi_group *g;
    struct byi_text *out;
    int depth;
    const char **names;                     /* C expressions, by value */
    uint32_t loops[BYI_MAX_LOOPS], n_loops; /* of the result */
    /* run loops[first .. first + parallel - 1] as one parallel loop */
    uint32_t parallel;
    uint32_t first;
    int64_t team;     /* largest number of threads; 1: serial; BYI_MANY: no
                       * limit */
    uint32_t columns; /* 1 + the value reduced by columns; 0: none */
    uint32_t split;   /* 1 + the value reduced by several threads; 0: none */
    uint32_t tile;    /* 1 + the loop tiled with the last one; 0: none */
    bool streams;     /* use streaming stores, which bypass the caches */
};

/* Value number v. */
static inline const struct byi_group_value *value_at(
    const struct byi_printer *p, uint32_t v)
{
    return p->g->values.at[v];
}

/* The node of value v. */
static inline const struct byi_node *node_of(const struct byi_printer *p,
                                             uint32_t v)
{
    return &p->g->f->nodes.at[value_at(p, v)->node];
}

/* The number of iterations of a loop. */
static inline int64_t extent_of(const struct byi_printer *p, uint32_t loop)
{
    return p->g->loops[loop].extent;
}

/* --- decide.c ----------------------------------------------------------- */

/* Set the members of *p, except `out`, `depth` and `names`, for p->g. */
void byi_nest_decide(struct byi_printer *p);
/* Whether any value (or, if only_reductions, any reduction) is computed at
 * level `level` of a nest, as in struct byi_group_value. */
bool byi_nest_has_values(const struct byi_printer *p, uint32_t nest,
                         uint32_t level, bool only_reductions);

#endif
