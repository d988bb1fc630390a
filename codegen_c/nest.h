/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/nest.h: the loop nest of a part of a group: decide.c chooses its
 * form, nest.c prints it.
 */
#ifndef BYI_NEST_H
#define BYI_NEST_H

#include "group.h"

enum {
    BYI_STREAM_BLOCK = 2048, /* elements of a block of streaming stores */
    BYI_MANY = 64            /* enough iterations for any team          */
};

/* The printer of one part's loops, and the form of these loops. */
struct byi_printer {
    const struct byi_group *g;
    struct byi_text *out;
    int depth;
    const char **names;                     /* by value */
    uint32_t loops[BYI_MAX_LOOPS], n_loops; /* of the result */
    /* run loops[first .. first + parallel - 1] as one parallel loop */
    uint32_t parallel;
    uint32_t first;
    int64_t team;     /* threads worth using; 1: serial                 */
    uint32_t columns; /* 1 + the value reduced by columns; 0: none      */
    uint32_t split;   /* 1 + the value reduced by several threads; 0: none */
    uint32_t tile;    /* 1 + the loop tiled with the last one; 0: none  */
    bool streams;     /* store the result past the caches               */
};

/* value v; its node; the number of iterations of a loop */

static inline const struct byi_group_value *value_at(
    const struct byi_printer *p, uint32_t v)
{
    return p->g->values.at[v];
}

static inline const struct byi_node *node_of(const struct byi_printer *p,
                                             uint32_t v)
{
    return &p->g->f->nodes.at[value_at(p, v)->node];
}

static inline int64_t extent_of(const struct byi_printer *p, uint32_t loop)
{
    return p->g->loops[loop].extent;
}

/* --- decide.c ----------------------------------------------------------- */

/* Choose the form of the loops over p->g. */
void byi_nest_decide(struct byi_printer *p);
/* Whether any value (or, if only_reductions, any reduction) is computed at
 * depth `level` of a nest. */
bool byi_nest_holds(const struct byi_printer *p, uint32_t nest, uint32_t level,
                    bool only_reductions);

#endif
