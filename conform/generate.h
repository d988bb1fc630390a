/* SPDX-License-Identifier: Apache-2.0 */
/* conform/generate.h: graphs that a row of a vendor's table fits, made from the
 * row itself: operators, attributes and shapes are drawn from what its pattern
 * allows, the same ones for the same numbers.
 *
 * generate.c walks the pattern; recipes.c knows for each operator which
 * operands and attributes go together; domain.c which values.
 */
#ifndef BYI_GENERATE_H
#define BYI_GENERATE_H

#include "core/ir/ir.h"
#include "patterns/patterns.h"

/* What the sizes of a graph are like. */
enum byi_mood {
    BYI_MOOD_SMALL,
    BYI_MOOD_ONES,  /* many axes of size 1          */
    BYI_MOOD_ODD,   /* primes                       */
    BYI_MOOD_ZERO,  /* an axis of size 0            */
    BYI_MOOD_LARGE, /* beyond a register and a page */
    BYI_MOOD_RANK,  /* ranks that are rare          */
    BYI_MOOD_DTYPE, /* another element type         */
    BYI_N_MOODS
};

/* --- generate.c --------------------------------------------------------- */

/* How the rows of a graph hang together. */
enum byi_weave {
    BYI_WEAVE_NET,  /* operands are what any row before gives, now and then;
                       everything is a result                              */
    BYI_WEAVE_CHAIN /* each row reads what the one before it gives; the last
                       is the result, and now and then another is, too     */
};

/* One graph: @main is each of the rows once, in order; their operands are
 * parameters, constants, or what rows before them give. Errors: BYOC_ETYPE,
 * what was drawn does not go together, and another seed may; BYOC_EUNSUPPORTED,
 * the row has something that cannot be made. *m is NULL then. */
enum byoc_status byi_generate(const struct byi_pattern *const *rows, uint32_t n,
                              enum byi_weave weave, enum byi_mood mood,
                              uint64_t seed, struct byi_module **m,
                              struct byoc_error *err);

/* --- random numbers ------------------------------------------------------ */

static inline uint64_t byi_draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11; /* 53 bits */
}

/* 0 .. n-1 */
static inline uint32_t byi_draw_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(byi_draw(state) >> 21) % n;
}

/* --- recipes.c ----------------------------------------------------------- */

enum { BYI_GENERATE_MAX_ROWS = 6 };

enum { BYI_MAX_SLOTS = 16, BYI_MAX_GIVEN = 16, BYI_MAX_INTS = 16 };

/* An operand of a call that is being made. */
struct byi_slot {
    const struct byi_type *type;      /* of a value that is there; NULL: to be
                                         made, of what is below             */
    const struct byi_pat_type *asked; /* what the pattern says of it, or NULL */
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
    bool constant; /* the pattern wants one           */
    uint32_t n;    /* > 0: a constant of these numbers */
    int64_t ints[BYI_MAX_INTS];
};

/* A call that is being made. */
struct byi_draft {
    const struct byi_op *op;
    const struct byi_pat *pat;
    enum byi_mood mood;
    enum byoc_dtype dtype; /* of what is free */
    uint64_t *state;
    struct byi_arena *arena;
    bool zero; /* nothing has an axis of size 0 yet, and something should */
    uint32_t n;
    struct byi_slot at[BYI_MAX_SLOTS];
    uint32_t n_given;
    struct byi_attr given[BYI_MAX_GIVEN];
};

/* Fill in the slots without a type, and the attributes. False: these do not go
 * together. */
bool byi_draft_fill(struct byi_draft *d);

/* --- domain.c ------------------------------------------------------------ */

/* Which numbers an operand may be; [low, high], or any of its type's where
 * low > high. */
struct byi_domain {
    double low, high;
};
/* Operand `operand` of a call. `types` are those of its operands. */
struct byi_domain byi_domain_of(const struct byi_op *op,
                                const struct byi_attrs *attrs,
                                const struct byi_type *const *types, uint32_t n,
                                uint32_t operand);
/* What parameter `param` of f may be: what all who read it take. */
struct byi_domain byi_domain_of_param(const struct byi_func *f, uint32_t param);
/* Numbers of the domain that depend on the seed only. */
void byi_domain_fill(struct byi_tensor *t, struct byi_domain domain,
                     uint64_t seed);

#endif
