/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h: shapes for some sizes of the inputs' symbolic dims. */
#ifndef BYI_SAMPLES_H
#define BYI_SAMPLES_H

#include "ir.h"

/* Sizes that a symbolic dim of the inputs takes. */
struct byi_size_list {
    const char *name;
    uint32_t n;
    const int64_t *at;
};

/* The dims that the user gave sizes for. */
struct byi_sizes {
    uint32_t n;
    const struct byi_size_list *at;
};

/* The shapes of all values of the module, for sizes that the user gave, or 1,
 * 2 and 64: a number of rounds. NULL where no input's dim has a name. Lives in
 * `arena`, and as long as the module is not changed. */
struct byi_samples;
struct byi_samples *byi_samples_new(const struct byi_module *m,
                                    const struct byi_pass_context *ctx,
                                    struct byi_arena *arena);
/* 0 for NULL. */
uint32_t byi_samples_rounds(const struct byi_samples *samples);
/* A tensor or tuple without names; NULL where the shape depends on data, or the
 * model does not take this round's sizes. */
const struct byi_type *byi_sample_type(const struct byi_samples *samples,
                                       uint32_t round, uint32_t func,
                                       byi_id id);
/* The same for the last round whose sizes the model takes; also of NULL. */
const struct byi_type *byi_sample_usual(const struct byi_samples *samples,
                                        uint32_t func, byi_id id);
/* Which sizes those are, as byi_sample_text; "" where there are none. */
const char *byi_sample_sizes(const struct byi_samples *samples);
/* Why the model takes the sizes of no round; NULL: it takes some. */
const char *byi_sample_fault(const struct byi_samples *samples);
/* The sizes of the last round that the model takes, by symbol of its inputs, in
 * the samples' arena: how many; 0 where there are none, or where all inputs are
 * fixed. */
uint32_t byi_sample_dims(const struct byi_samples *samples,
                         const struct byoc_dim **dims);
/* "batch=2, sequence=2" */
const char *byi_sample_text(const struct byi_samples *samples, uint32_t round);

#endif
