/* SPDX-License-Identifier: Apache-2.0 */
/* conform/generate.h: generates random graphs that a row of a backend's table
 * matches: operators, attributes and shapes are drawn from what its pattern
 * allows, reproducibly for a seed.
 *
 * generate.c walks the pattern; recipes.c knows for each operator which
 * operands and attributes go together; domain.c which values.
 */
#ifndef BYI_GENERATE_H
#define BYI_GENERATE_H

#include "core/ir/ir.h"
#include "patterns/patterns.h"

/* The kind of sizes in a graph. */
enum byi_mood {
    BYI_MOOD_SMALL,
    BYI_MOOD_ONES,  /* many axes of size 1          */
    BYI_MOOD_ODD,   /* primes                       */
    BYI_MOOD_ZERO,  /* an axis of size 0            */
    BYI_MOOD_LARGE, /* larger than a register and a page */
    BYI_MOOD_RANK,  /* ranks that are rare          */
    BYI_MOOD_DTYPE, /* another element type         */
    BYI_N_MOODS
};

/* --- generate.c --------------------------------------------------------- */

/* How the rows of a graph are connected. */
enum byi_weave {
    /* operands are sometimes results of previous rows; everything is an
     * output */
    BYI_WEAVE_NET,
    /* each row reads the result of the previous one; the last is the output,
     * and sometimes another one, too */
    BYI_WEAVE_CHAIN
};

/* Generate a graph: @main has a match of each row once, in order; their
 * operands are parameters, constants, or results of previous rows. Errors, with
 * *m NULL: BYOC_ETYPE, the random choices are inconsistent, but another seed
 * may work; BYOC_EUNSUPPORTED, the row has something that cannot be generated.
 */
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

/* An operand of a call that is being generated. */
struct byi_slot {
    /* of a value that exists; NULL: to be created as described below */
    const struct byi_type *type;
    /* the type that the pattern requires, or NULL */
    const struct byi_pat_type *asked;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
    bool constant; /* the pattern requires a constant */
    uint32_t n;    /* > 0: a constant with these numbers */
    int64_t ints[BYI_MAX_INTS];
};

/* A call that is being generated. */
struct byi_draft {
    const struct byi_op *op;
    const struct byi_pat *pat;
    enum byi_mood mood;
    enum byoc_dtype dtype; /* of operands that are not determined */
    uint64_t *state;
    struct byi_arena *arena;
    bool zero; /* an axis of size 0 is wanted, and there is none yet */
    uint32_t n;
    struct byi_slot at[BYI_MAX_SLOTS];
    uint32_t n_given;
    struct byi_attr given[BYI_MAX_GIVEN];
};

/* Choose the types of the slots without one, and the attributes. False: they
 * are inconsistent. */
bool byi_draft_fill(struct byi_draft *d);

/* --- domain.c ------------------------------------------------------------ */

/* The domain of an operand's numbers: [low, high], or, if low > high, any
 * number of its type. */
struct byi_domain {
    double low, high;
};
/* The domain of operand `operand` of a call. `types` are the operands' types.
 */
struct byi_domain byi_domain_of(const struct byi_op *op,
                                const struct byi_attrs *attrs,
                                const struct byi_type *const *types, uint32_t n,
                                uint32_t operand);
/* The domain of parameter `param` of f: the intersection of its readers'
 * domains. */
struct byi_domain byi_domain_of_param(const struct byi_func *f, uint32_t param);
/* Fill in random numbers of the domain, which depend only on the seed. */
void byi_domain_fill(struct byi_tensor *t, struct byi_domain domain,
                     uint64_t seed);

#endif
