/* SPDX-License-Identifier: Apache-2.0 */
/* conform/opgen.h: declares helpers of the op generators (op_generators.c):
 * random numbers, types of operands, attributes.
 */
#ifndef BYI_OPGEN_H
#define BYI_OPGEN_H

#include "generate.h"

/* A random number from 0 to n - 1. */
uint32_t byi_opgen_draw_below(struct byi_opgen *d, uint32_t n);
/* True with a probability of `percent` percent. */
bool byi_opgen_draw_chance(struct byi_opgen *d, uint32_t percent);
/* A random size of an axis, according to the emphasis. */
int64_t byi_opgen_draw_size(struct byi_opgen *d);
/* A random word of "a|b|c", copied to d->arena. */
const char *byi_opgen_draw_word(struct byi_opgen *d, const char *words);
/* Whether a tensor of this shape is small enough to generate. */
bool byi_opgen_fits(uint32_t rank, const int64_t *dims);

/* Whether the type of operand i is known, since the operand is an existing
 * value. The other functions return the rank, dims and dtype of the known type
 * or, if there is none, of the planned type. */
bool byi_opgen_is_known(const struct byi_opgen *d, uint32_t i);
uint32_t byi_opgen_rank_of(const struct byi_opgen *d, uint32_t i);
const int64_t *byi_opgen_dims_of(const struct byi_opgen *d, uint32_t i);
enum byoc_dtype byi_opgen_dtype_of(const struct byi_opgen *d, uint32_t i);
/* `dtype` if the pattern allows it; otherwise a random one that it allows. */
enum byoc_dtype byi_opgen_fit_dtype(struct byi_opgen *d,
                                    const struct byi_pat_type *required,
                                    enum byoc_dtype dtype);
/* Plan the type of operand i, with `dtype` adapted by byi_opgen_fit_dtype. Does
 * nothing if the type is known or the call has no operand i. */
void byi_opgen_set_dims(struct byi_opgen *d, uint32_t i, enum byoc_dtype dtype,
                        uint32_t rank, const int64_t *dims);
/* Plan operand i as a constant int64 vector of n elements. Does nothing if its
 * type is known, the call has no operand i, or n > BYI_MAX_INTS. */
void byi_opgen_set_ints(struct byi_opgen *d, uint32_t i, const int64_t *values,
                        uint32_t n);
/* Plan a random type of `rank` axes (UINT32_MAX: any rank) for operand i,
 * unless its type is known. Returns false if a known type has another rank, or
 * if the planned tensor would be too large. */
bool byi_opgen_plan_random(struct byi_opgen *d, uint32_t i, uint32_t rank);

/* The pattern's test that fixes the value of an attribute; NULL: none. */
const struct byi_pat_test *byi_opgen_pinned(const struct byi_opgen *d,
                                            const char *name);
/* Whether the attribute has been set. */
bool byi_opgen_has_attr(const struct byi_opgen *d, const char *name);
/* Set an attribute to the value that the pattern requires, otherwise to
 * `value`, and return the value. Sets nothing if the operator has no such
 * attribute. byi_opgen_give_int also sets bools and dtypes. */
int64_t byi_opgen_give_int(struct byi_opgen *d, const char *name,
                           int64_t value);
double byi_opgen_give_float(struct byi_opgen *d, const char *name,
                            double value);
const char *byi_opgen_give_string(struct byi_opgen *d, const char *name,
                                  const char *value);
/* Like byi_opgen_give_int, for a list of n ints, which is copied. Values that
 * the pattern requires replace the elements of values[]. */
void byi_opgen_give_ints(struct byi_opgen *d, const char *name, int64_t *values,
                         uint32_t n);
/* Set an attribute, for which the pattern has a test of byi_opgen_pinned, to
 * the value that it requires; a list to the test's list. */
void byi_opgen_give_pinned(struct byi_opgen *d, const struct byi_attr_def *def);

#endif
