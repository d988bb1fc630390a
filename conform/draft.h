/* SPDX-License-Identifier: Apache-2.0 */
/* conform/draft.h: helpers of the op generators (recipes.c): random numbers,
 * types of operands, attributes.
 */
#ifndef BYI_DRAFT_H
#define BYI_DRAFT_H

#include "generate.h"

/* A random number from 0 to n - 1. */
uint32_t byi_draft_below(struct byi_draft *d, uint32_t n);
/* True with a probability of `percent` percent. */
bool byi_draft_chance(struct byi_draft *d, uint32_t percent);
/* A random size of an axis, of the draft's mood. */
int64_t byi_draft_size(struct byi_draft *d);
/* A random word of "a|b|c", in the draft's arena. */
const char *byi_draft_word(struct byi_draft *d, const char *words);
/* Whether a tensor of this shape is small enough to generate. */
bool byi_draft_fits(uint32_t rank, const int64_t *dims);

/* Whether operand i has a type already; and its type, or else the planned one.
 */
bool byi_draft_is_known(const struct byi_draft *d, uint32_t i);
uint32_t byi_draft_rank_of(const struct byi_draft *d, uint32_t i);
const int64_t *byi_draft_dims_of(const struct byi_draft *d, uint32_t i);
enum byoc_dtype byi_draft_dtype_of(const struct byi_draft *d, uint32_t i);
/* `dtype` if the pattern allows it; otherwise a random one that it allows. */
enum byoc_dtype byi_draft_fit_dtype(struct byi_draft *d,
                                    const struct byi_pat_type *asked,
                                    enum byoc_dtype dtype);
/* Plan the type of operand i. Does nothing if its type is known. */
void byi_draft_set_dims(struct byi_draft *d, uint32_t i, enum byoc_dtype dtype,
                        uint32_t rank, const int64_t *dims);
/* Plan operand i as a constant int64 vector. Does nothing if its type is known.
 */
void byi_draft_set_ints(struct byi_draft *d, uint32_t i, const int64_t *values,
                        uint32_t n);
/* Plan a random type of `rank` axes (UINT32_MAX: any rank) for operand i,
 * unless its type is known. Returns false if a known type has another rank, or
 * if the planned tensor would be too large. */
bool byi_draft_want_free(struct byi_draft *d, uint32_t i, uint32_t rank);

/* The pattern's test that fixes the value of an attribute; NULL: none. */
const struct byi_pat_test *byi_draft_pinned(const struct byi_draft *d,
                                            const char *name);
/* The operator's declaration of an attribute; NULL: it has no such attribute.
 */
const struct byi_attr_def *byi_draft_def_of(const struct byi_draft *d,
                                            const char *name);
/* Whether the attribute has been set. */
bool byi_draft_is_given(const struct byi_draft *d, const char *name);
/* Set an attribute to the value that the pattern requires, otherwise to
 * `value`, and return the value. Sets nothing if the operator has no such
 * attribute. The first function also sets bools and dtypes. */
int64_t byi_draft_give_int(struct byi_draft *d, const char *name,
                           int64_t value);
double byi_draft_give_float(struct byi_draft *d, const char *name,
                            double value);
const char *byi_draft_give_string(struct byi_draft *d, const char *name,
                                  const char *value);
/* The same for a list of n ints. Values that the pattern requires replace those
 * in values[]. */
void byi_draft_give_ints(struct byi_draft *d, const char *name, int64_t *values,
                         uint32_t n);

#endif
