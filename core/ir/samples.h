/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h: computes all shapes for sample sizes of the inputs' symbolic dims.
 */
#ifndef BYI_SAMPLES_H
#define BYI_SAMPLES_H

#include "ir.h"

/* Sizes of a symbolic dim of the inputs. */
struct byi_size_list {
    const char *name;
    uint32_t n;
    const int64_t *at;
};

/* The dims for which the user gave sizes. */
struct byi_sizes {
    uint32_t n;
    const struct byi_size_list *at;
};

/* The shapes of all values of the module, in several rounds. A round uses the
 * sizes that the user gave, or 1, 2 or 64. If the model accepts none of these,
 * or if values are empty for 64, larger ones follow. NULL if the inputs have no
 * symbolic dims. The samples live in `arena`, and are valid until the module
 * changes; m and ctx must outlive them. */
struct byi_samples;
struct byi_samples *byi_samples_new(const struct byi_module *m,
                                    const struct byi_pass_context *ctx,
                                    struct byi_arena *arena);
/* The number of rounds; 0 if `samples` is NULL. */
uint32_t byi_samples_rounds(const struct byi_samples *samples);
/* The type of a value without symbols; NULL if the shape depends on data, or
 * the model is invalid for this round's sizes. */
const struct byi_type *byi_sample_type(const struct byi_samples *samples,
                                       uint32_t round, uint32_t func,
                                       byi_id id);
/* The type in the last round whose sizes are valid; `samples` may be NULL. */
const struct byi_type *byi_sample_last_type(const struct byi_samples *samples,
                                            uint32_t func, byi_id id);
/* The text of byi_sample_text for the last valid round; "" if no round is
 * valid. */
const char *byi_sample_sizes(const struct byi_samples *samples);
/* Why the model rejects the sizes of the first round; NULL: it accepts the
 * sizes of some round. */
const char *byi_sample_fault(const struct byi_samples *samples);
/* The sizes of the last valid round, by symbol of the inputs, in the samples'
 * arena. Returns their number; 0 if no round is valid or all inputs are fixed.
 */
uint32_t byi_sample_dims(const struct byi_samples *samples,
                         const struct byoc_dim **dims);
/* The sizes of a round, such as "batch=2, sequence=2", in the samples' arena.
 */
const char *byi_sample_text(const struct byi_samples *samples, uint32_t round);

#endif
