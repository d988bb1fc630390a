/* SPDX-License-Identifier: Apache-2.0 */
/* conform/generate.h: generates random graphs that a given row of a backend's
 * table matches. Operators, attributes and shapes are random, within the limits
 * of the row's pattern; equal seeds give equal graphs.
 *
 * generate.c walks the pattern. For each operator, op_generators.c chooses
 * consistent types of operands and attributes, and domain.c the values of
 * operands.
 */
#ifndef BYI_GENERATE_H
#define BYI_GENERATE_H

#include "core/ir/ir.h"
#include "patterns/patterns.h"

/* The property that the types in a graph emphasise. */
enum byi_emphasis {
    BYI_EMPHASIS_SMALL, /* sizes from 1 to 8 */
    BYI_EMPHASIS_ONES,  /* many axes of size 1 */
    BYI_EMPHASIS_ODD,   /* odd primes as sizes */
    BYI_EMPHASIS_ZERO,  /* an axis of size 0 */
    BYI_EMPHASIS_LARGE, /* sizes from 15 to 65 */
    BYI_EMPHASIS_RANK,  /* rare ranks: 0, 1, 5 and more */
    BYI_EMPHASIS_DTYPE, /* an element type that is not float32 */
    BYI_N_EMPHASES
};

/* --- generate.c --------------------------------------------------------- */

/* How the rows of a graph are connected. */
enum byi_topology {
    /* some operands are results of previous rows; every result is an output */
    BYI_TOPOLOGY_NET,
    /* each row reads the result of the previous one; the last result is an
     * output, and sometimes an earlier one, too */
    BYI_TOPOLOGY_CHAIN
};

/* Generate a module whose @main has one match of each of the n rows, in order.
 * Operands are parameters, constants, or results of previous rows. The caller
 * frees *m, which is NULL on errors. Errors: BYOC_ETYPE (the random choices are
 * inconsistent; try another seed), BYOC_EUNSUPPORTED (a row's pattern has a
 * construct that the generator does not support). */
enum byoc_status byi_generate(const struct byi_pattern *const *rows, uint32_t n,
                              enum byi_topology topology,
                              enum byi_emphasis emphasis, uint64_t seed,
                              struct byi_module **m, struct byoc_error *err);

/* --- random numbers ------------------------------------------------------ */

/* A linear congruential generator (Knuth's MMIX): 53 random bits. */
static inline uint64_t byi_draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11;
}

/* A random number from 0 to n - 1. */
static inline uint32_t byi_draw_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(byi_draw(state) >> 21) % n;
}

/* --- op_generators.c ------------------------------------------------------ */

enum { BYI_GENERATE_MAX_ROWS = 6 }; /* of a region or chain */

/* Limits of struct byi_opgen and struct byi_slot. */
enum { BYI_MAX_SLOTS = 16, BYI_MAX_OPGEN_ATTRS = 16, BYI_MAX_INTS = 16 };

/* An operand of a call that is being generated. */
struct byi_slot {
    /* the type of an existing value; NULL: create one of the planned type,
     * which the members below describe */
    const struct byi_type *type;
    /* the pattern's requirements on the type, or NULL */
    const struct byi_pat_type *required;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
    bool constant; /* the pattern requires a constant */
    uint32_t n;    /* > 0: plan a constant with these n numbers */
    int64_t ints[BYI_MAX_INTS];
};

/* The state of an op generator: the call that is being generated. */
struct byi_opgen {
    const struct byi_op *op;
    const struct byi_pat *pat;
    enum byi_emphasis emphasis;
    enum byoc_dtype dtype; /* default for planned operands */
    uint64_t *state;       /* of byi_draw */
    struct byi_arena *arena;
    bool needs_zero; /* the graph still needs an axis of size 0 */
    uint32_t n;
    struct byi_slot operands[BYI_MAX_SLOTS]; /* the n operands */
    uint32_t n_attrs;
    struct byi_attr attrs[BYI_MAX_OPGEN_ATTRS]; /* the attributes set so far */
};

/* Run the op generator of d->op: plan the types of the slots that have none,
 * and set the attributes. Returns false if the choices are inconsistent. */
bool byi_opgen_fill(struct byi_opgen *d);

/* --- domain.c ------------------------------------------------------------ */

/* The domain of an operand's numbers: [low, high]. If low > high: [-2, 2] for
 * floats, all values of 8-bit integers, 200 values of other integers. */
struct byi_domain {
    double low, high;
};
/* The domain of operand `operand` of a call, whose n operands have these types.
 */
struct byi_domain byi_domain_of(const struct byi_op *op,
                                const struct byi_attrs *attrs,
                                const struct byi_type *const *types, uint32_t n,
                                uint32_t operand);
/* The domain of parameter `param` of f: the intersection of the domains that
 * its readers require; [-2, 2] without readers. */
struct byi_domain byi_domain_of_param(const struct byi_func *f, uint32_t param);
/* Fill `t` with random numbers of the domain. Equal seeds give equal numbers.
 */
void byi_domain_fill(struct byi_tensor *t, struct byi_domain domain,
                     uint64_t seed);

#endif
