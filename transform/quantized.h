/* SPDX-License-Identifier: Apache-2.0 */
/* transform/quantized.h: recognises tensors of 8-bit integers with one scale
 * and zero point.
 */
#ifndef BYI_QUANTIZED_H
#define BYI_QUANTIZED_H

#include "rewrite.h"

static inline bool byi_is_bytes(enum byoc_dtype dtype)
{
    return dtype == BYOC_I8 || dtype == BYOC_U8;
}

/* Whether id is a constant of one finite element; if so, sets *value. */
bool byi_read_number(const struct byi_rewrite *rw, byi_id id, double *value);

/* A tensor quantised with one scale: its 8-bit integers, scale and zero
 * point. */
struct byi_quantized {
    byi_id integers;
    double scale, zero;
};

/* Whether node `id` is a call of `op`, which is BYI_OP_DEQUANTIZE (of 8-bit
 * integers to float32) or BYI_OP_QUANTIZE (of float32 to 8-bit integers), with
 * one constant scale and zero point. If so, sets *q. */
bool byi_read_quantized(const struct byi_rewrite *rw, byi_id id,
                        enum byi_op_id op, struct byi_quantized *q);

#endif
