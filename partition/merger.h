/* SPDX-License-Identifier: Apache-2.0 */
/* partition/merger.h: the state of MergeComposite while it matches
 * (merge_composite.c), and the reasons why it refuses a match (refusal.c).
 */
#ifndef BYI_MERGER_H
#define BYI_MERGER_H

#include "cost.h"
#include "partition.h"

/* An accepted match: the composite's function and the operands of its call. */
struct byi_accepted_match {
    uint32_t func;
    uint32_t n_args;
    const byi_id *args;
    const struct byi_sources *sources;
};

/* The matches of one backend's patterns in one function. */
struct byi_merger {
    struct byi_module *m;
    struct byi_func *f;
    uint32_t func;
    struct byi_pass_context *ctx;
    struct byi_ledger *ledger;     /* of ctx, or NULL */
    struct byi_backends *backends; /* of ctx */
    struct byi_arena *scratch;
    struct byoc_error *err;
    const struct byi_backend *backend;
    const struct byi_samples *samples; /* NULL: no input varies */
    struct byi_uses uses;
    uint32_t *claimed; /* for each node: 1 + its match; UINT32_MAX:
                        * claimed as a branch; 0: by none */
    /* indexed by function; NULL: not merged */
    struct byi_merger *const *mergers;
    uint32_t n_mergers; /* 0: only this function is examined       */
    uint32_t n_fns;     /* literals of f that no match has claimed */
    uint16_t *roots;    /* for each node: byi_root_of                    */
    bool *matched;      /* for each node: a pattern matched there        */
    /* for each node: the native kernel of an 8-bit product applies it */
    bool *in_epilogue;
    bool occurs[BYI_N_ROOTS]; /* for each kind of root: f has such a node */
    BYI_VEC(struct byi_accepted_match) matches;
    enum byoc_status status;
};

/* Returns why the match is refused before its composite is built and probed,
 * and sets *reason; NULL if it is not. The text is constant, or in g->scratch
 * or the backend's memory. */
const char *byi_merger_refusal(const struct byi_merger *g,
                               const struct byi_match *match,
                               enum byi_reason *reason);
/* Returns the type of a value of the match with the sizes of a round of
 * core/ir/samples.h; NULL if it is unknown. */
const struct byi_type *byi_merger_sample(const struct byi_merger *g,
                                         const struct byi_match *match,
                                         byi_id value, uint32_t round);
/* Mark in g->in_epilogue the operators that FuseOps will put into the epilogue
 * of an 8-bit product which no pattern of the backend has: the product's native
 * kernel applies them while its result is in the cache. */
void byi_merger_mark_epilogues(struct byi_merger *g);

#endif
