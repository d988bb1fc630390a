/* SPDX-License-Identifier: Apache-2.0 */
/* conform/draft.h: helpers of op generators (recipes.c). */
#ifndef BYI_DRAFT_H
#define BYI_DRAFT_H

#include "generate.h"

/* A random number 0 .. n-1; true in `percent` percent of calls. */
uint32_t byi_draft_below(struct byi_draft *d, uint32_t n);
bool byi_draft_chance(struct byi_draft *d, uint32_t percent);
/* A random size of an axis; a random one of the words between bars. */
int64_t byi_draft_size(struct byi_draft *d);
const char *byi_draft_word(struct byi_draft *d, const char *words);
bool byi_draft_fits(uint32_t rank, const int64_t *dims);

/* Operand i: whether its type is known, and its type or the planned one. */
bool byi_draft_is_known(const struct byi_draft *d, uint32_t i);
uint32_t byi_draft_rank_of(const struct byi_draft *d, uint32_t i);
const int64_t *byi_draft_dims_of(const struct byi_draft *d, uint32_t i);
enum byoc_dtype byi_draft_dtype_of(const struct byi_draft *d, uint32_t i);
/* The dtype, or one that the pattern requires. */
enum byoc_dtype byi_draft_fit_dtype(struct byi_draft *d,
                                    const struct byi_pat_type *asked,
                                    enum byoc_dtype dtype);
/* Plan the type of operand i unless it is known; make it a constant vector of
 * ints. */
void byi_draft_set_dims(struct byi_draft *d, uint32_t i, enum byoc_dtype dtype,
                        uint32_t rank, const int64_t *dims);
void byi_draft_set_ints(struct byi_draft *d, uint32_t i, const int64_t *values,
                        uint32_t n);
/* Require `rank` axes (UINT32_MAX: any) of operand i, and plan a random type if
 * it is not known. False: the known type has another rank, or it would be too
 * large. */
bool byi_draft_want_free(struct byi_draft *d, uint32_t i, uint32_t rank);

/* The pattern's test of an attribute; the attribute's declaration; NULL: none.
 */
const struct byi_pat_test *byi_draft_pinned(const struct byi_draft *d,
                                            const char *name);
const struct byi_attr_def *byi_draft_def_of(const struct byi_draft *d,
                                            const char *name);
bool byi_draft_is_given(const struct byi_draft *d, const char *name);
/* Set an attribute to the value that the pattern requires, else to `value`, and
 * return it. Skips an attribute that the operator does not have. Ints include
 * bools and dtypes.
 */
int64_t byi_draft_give_int(struct byi_draft *d, const char *name,
                           int64_t value);
double byi_draft_give_float(struct byi_draft *d, const char *name,
                            double value);
const char *byi_draft_give_string(struct byi_draft *d, const char *name,
                                  const char *value);
/* The same for a list; values[] becomes the list that the pattern requires. */
void byi_draft_give_ints(struct byi_draft *d, const char *name, int64_t *values,
                         uint32_t n);

#endif
