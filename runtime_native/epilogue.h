/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h: the epilogues of native calls (core/ops/epilogue.h) as kernels/
 * runs them.
 */
#ifndef BYI_NATIVE_EPILOGUE_H
#define BYI_NATIVE_EPILOGUE_H

#include "kernel.h"

#include "kernels/conv.h"

/* The operands of an epilogue, by post. */
struct byi_epilogue_data {
    const float *bias; /* one per output; NULL: none */
    const float *operands[BYI_F32_POSTS];
};

/* Set the epilogue of `conv`, whose kernels and outputs are set. An addition of
 * one number per output at the start becomes the bias. */
void byi_epilogue_read(const struct byi_call *call, struct byi_f32_conv *conv,
                       struct byi_epilogue_data *data);
/* Do the operands' shapes, known at run time, fit the result's? Returns
 * BYOC_ETYPE if not. */
enum byoc_status byi_epilogue_check(const struct byi_call *call,
                                    struct byoc_error *err);
/* The operands from row `row` of the result on. */
void byi_epilogue_move(const struct byi_f32_conv *conv,
                       const struct byi_epilogue_data *data, int64_t row,
                       struct byi_f32_conv_run *run);
/* Apply it to the whole result, rows of `columns`, that a kernel without
 * epilogue computed. */
void byi_epilogue_apply(const struct byi_call *call, int64_t columns);

#endif
