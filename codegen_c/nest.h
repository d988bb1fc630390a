/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/nest.h: loops over a part of a group while they are printed:
 * decide.c says of which form, nest.c prints them.
 */
#ifndef BYI_NEST_H
#define BYI_NEST_H

#include "group.h"

enum {
    BYI_STREAM_BLOCK = 2048, /* elements on their way past the caches   */
    BYI_MANY = 64            /* iterations that are enough to share out */
};

struct byi_printer {
    const struct byi_group *g;
    struct byi_text *out;
    int depth;
    const char **names;                     /* by value */
    uint32_t loops[BYI_MAX_LOOPS], n_loops; /* of the result */
    uint32_t parallel; /* this many loops are shared out as one, from the
                          `first` on                                     */
    uint32_t first;
    int64_t team;     /* threads worth waking; 1: none          */
    uint32_t columns; /* 1 + the value reduced in columns; 0    */
    uint32_t split;   /* 1 + the value reduced by several threads; 0 */
    uint32_t tile;    /* 1 + which loop goes by tiles, beside the last; 0 */
    bool streams;
};

static inline const struct byi_gvalue *value_at(const struct byi_printer *p,
                                                uint32_t v)
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

/* What form the loops over p->g have. */
void byi_nest_decide(struct byi_printer *p);
/* Whether something is computed where `level` loops of a nest are open. */
bool byi_nest_holds(const struct byi_printer *p, uint32_t nest, uint32_t level,
                    bool only_reductions);

#endif
