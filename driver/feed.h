/* SPDX-License-Identifier: Apache-2.0 */
/* driver/feed.h: provides the inputs and expected outputs of a model, from
 * files or random, and compares outputs.
 */
#ifndef BYI_FEED_H
#define BYI_FEED_H

#include <byoc/runtime.h>

#include "core/base/base.h"

/* The sources of inputs. Zero-initialise. */
struct byi_feed_params {
    const char *data;          /* "DIR" or "path/NAME.": input_K.pb or .npy */
    const char *npz;           /* an archive with the inputs' names as keys */
    const char *const *inputs; /* "NAME=FILE.npy|.pb", NULL-ended           */
    const char *const *dims;   /* "N=4": sizes of symbolic dims, NULL-ended */
    uint32_t seed;             /* of random inputs */
    bool seeded;               /* the seed was given */
};

/* The values of all inputs or outputs. All memory is in the arena that the
 * caller passes to the function that returns it, except results of a run. */
struct byi_feed {
    uint32_t n;
    /* all zero for a sequence or optional; byi_feed_outputs leaves it NULL */
    struct byi_tensor *at;
    DLTensor *views;           /* of the memory of `at` */
    struct byoc_value *values; /* the views, or sequences and optionals */
    bool has_lists;            /* a value is a sequence or optional */
    bool *random; /* for each input: random, since no file was given */
    uint32_t n_random;
};

/* Make the inputs of `model`. Tensors without a file are random, from the seed:
 * floats in [-1, 1), integers 0 or 1. Sequences and optionals need a file. A
 * symbolic dim has the size that a file or `dims` gives. All others have the
 * same size, the first of 1, 2, 64, 512, 4,096 and 32,768 that the model
 * accepts, or 1. Errors: those of reading files; BYOC_EINVAL (an unknown input
 * or dim; a dim or seed without effect), BYOC_EIO (params->data lacks an
 * input), BYOC_ELIMIT, BYOC_ENOMEM, BYOC_EUNSUPPORTED (a dtype that cannot be
 * random). */
enum byoc_status byi_feed_inputs(const struct byoc_model *model,
                                 const struct byi_feed_params *params,
                                 struct byi_arena *arena, struct byi_feed *feed,
                                 struct byoc_error *err);
/* Read the expected outputs from params->data: output_K.pb or .npy. If there is
 * no output_0, *found is false and the result BYOC_OK; a later one must not be
 * missing. Does not set feed->views. Errors: BYOC_EIO, those of reading files.
 */
enum byoc_status byi_feed_expected(const struct byoc_model *model,
                                   const struct byi_feed_params *params,
                                   struct byi_arena *arena,
                                   struct byi_feed *feed, bool *found,
                                   struct byoc_error *err);
/* Returns empty outputs, for byi_feed_run to fill in. */
struct byi_feed byi_feed_outputs(const struct byoc_model *model,
                                 struct byi_arena *arena);
/* Run with byoc_run if all values are tensors, otherwise with byoc_run_values.
 * The data of `out` is in the state's memory, until its next run. */
enum byoc_status byi_feed_run(struct byoc_state *state,
                              const struct byi_feed *in, struct byi_feed *out,
                              struct byoc_error *err);
/* Returns a filled-in view as a tensor in the same memory. */
struct byi_tensor byi_feed_tensor(const DLTensor *view);

/* The difference of two tensors. */
struct byi_difference {
    double max_abs, mean_abs; /* |found - expected|                         */
    double max_rel;         /* relative to |expected| + 1% of max |expected| */
    int64_t worst;          /* the element with max_abs; -1: none        */
    int64_t n_bad;          /* elements outside the tolerance             */
    double found, expected; /* the values at `worst`; NaN for strings     */
    double largest;         /* max |expected|, of finite values           */
    /* the step of an 8-bit quantisation, of which all expected values are
     * multiples; 0: there is no such step */
    double step;
    int64_t n_steps; /* elements that only the tolerance of `step` allows */
};

/* Set *step to the step of an 8-bit quantisation of which all values are
 * multiples; to 0 if there is none. float32 values count as dequantised if at
 * least 16 different ones occur, and each is k times one step, bit for bit.
 * Here |k| <= 255 is an integer, and the step is not. With `integer_steps`,
 * 8-bit integers count as quantised with step 1 if at least 16 different ones
 * occur. Errors: BYOC_ENOMEM. */
enum byoc_status byi_quantisation_step(const struct byi_tensor *t,
                                       bool integer_steps, double *step,
                                       struct byoc_error *err);

/* An element matches if |found - expected| <= atol + rtol |expected| + stol
 * max|expected|; NaN matches NaN. If the expected values are quantised, a
 * difference of up to `steps` of byi_quantisation_step() is allowed, too. A sum
 * in another order may round to a neighbouring step. `integer_steps` is the
 * argument of that function. Strings match if they are equal. Errors:
 * BYOC_ETYPE if shape or dtype differ (bool is compared with any type of one
 * byte); BYOC_ENOMEM. */
struct byi_tolerance {
    double atol, rtol, stol, steps;
    bool integer_steps;
};
enum byoc_status byi_compare_tensors(const struct byi_tensor *found,
                                     const struct byi_tensor *expected,
                                     const struct byi_tolerance *tolerance,
                                     struct byi_difference *difference,
                                     struct byoc_error *err);

#endif
