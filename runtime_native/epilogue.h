/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h: turns the epilogues of native calls (core/ops/epilogue.h) into
 * the form that kernels/ runs. */
#ifndef BYI_NATIVE_EPILOGUE_H
#define BYI_NATIVE_EPILOGUE_H

#include "kernel.h"

#include "kernels/conv.h"

/* The operands of an epilogue, indexed like conv->epilogue. */
struct byi_epilogue_data {
    const float *bias; /* one per output; NULL: none */
    const float *operands[BYI_F32_EPILOGUE_OPS];
};

/* The number of operands that the epilogue reads, the last ones of the call. */
uint32_t byi_epilogue_operands(const struct byi_call *call);
/* Set the epilogue of `conv`, whose members `kernels` and `outputs` are set. If
 * `bias`, a leading addition of one number per output becomes the bias, which
 * sums start with. */
void byi_epilogue_read(const struct byi_call *call, bool bias,
                       struct byi_f32_conv *conv,
                       struct byi_epilogue_data *data);
/* Check at run time that the shapes of the epilogue's operands fit the
 * result's. Errors: BYOC_ETYPE. */
enum byoc_status byi_epilogue_check(const struct byi_call *call,
                                    struct byoc_error *err);
/* Point `run` to the operands' elements for row `row` of the result and the
 * following ones. */
void byi_epilogue_set_row(const struct byi_f32_conv *conv,
                          const struct byi_epilogue_data *data, int64_t row,
                          struct byi_f32_conv_run *run);
/* Apply the epilogue to the whole result, which has `columns` channels, after a
 * kernel that does not apply it itself. */
void byi_epilogue_apply(const struct byi_call *call, int64_t columns);

#endif
