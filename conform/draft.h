/* SPDX-License-Identifier: Apache-2.0 */
/* conform/draft.h: what recipes are made of: draft.c. */
#ifndef BYI_DRAFT_H
#define BYI_DRAFT_H

#include "generate.h"

/* 0 .. n-1; yes in `percent` of a hundred cases. */
uint32_t byi_draft_below(struct byi_draft *d, uint32_t n);
bool byi_draft_chance(struct byi_draft *d, uint32_t percent);
/* The size of an axis; one of the words between bars. */
int64_t byi_draft_size(struct byi_draft *d);
const char *byi_draft_word(struct byi_draft *d, const char *words);
bool byi_draft_fits(uint32_t rank, const int64_t *dims);

/* Operand i: whether it is there already, and what it is or will be. */
bool byi_draft_is_known(const struct byi_draft *d, uint32_t i);
uint32_t byi_draft_rank_of(const struct byi_draft *d, uint32_t i);
const int64_t *byi_draft_dims_of(const struct byi_draft *d, uint32_t i);
enum byoc_dtype byi_draft_dtype_of(const struct byi_draft *d, uint32_t i);
/* The dtype, or one that the pattern asks for. */
enum byoc_dtype byi_draft_fit_dtype(struct byi_draft *d,
                                    const struct byi_pat_type *asked,
                                    enum byoc_dtype dtype);
/* Say what it will be, where it is not there; a constant vector of ints. */
void byi_draft_set_dims(struct byi_draft *d, uint32_t i, enum byoc_dtype dtype,
                        uint32_t rank, const int64_t *dims);
void byi_draft_set_ints(struct byi_draft *d, uint32_t i, const int64_t *values,
                        uint32_t n);
/* Operand i, of `rank` axes (UINT32_MAX: any), out of nothing where it is not
 * there. False: what is there has another rank, or it got too large. */
bool byi_draft_want_free(struct byi_draft *d, uint32_t i, uint32_t rank);

/* What the pattern says an attribute must be, its declaration; NULL: none. */
const struct byi_pat_test *byi_draft_pinned(const struct byi_draft *d,
                                            const char *name);
const struct byi_attr_def *byi_draft_def_of(const struct byi_draft *d,
                                            const char *name);
bool byi_draft_is_given(const struct byi_draft *d, const char *name);
/* Give an attribute: what the pattern pins, else `value`; returns which. One
 * that the operator does not have is left out. Ints are bools and dtypes, too.
 */
int64_t byi_draft_give_int(struct byi_draft *d, const char *name,
                           int64_t value);
double byi_draft_give_float(struct byi_draft *d, const char *name,
                            double value);
const char *byi_draft_give_string(struct byi_draft *d, const char *name,
                                  const char *value);
/* A list; values[] becomes what the pattern pins of it. */
void byi_draft_give_ints(struct byi_draft *d, const char *name, int64_t *values,
                         uint32_t n);

#endif
