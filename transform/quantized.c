/* SPDX-License-Identifier: Apache-2.0 */
/* quantized.c: recognises tensors of 8-bit integers with one scale and zero
 * point.
 */
#include "quantized.h"

#include <math.h>

bool byi_read_number(const struct byi_rewrite *rw, byi_id id, double *value)
{
    struct byi_tensor t;
    if (!byi_rw_view(rw, id, &t) || byi_elements(t.rank, t.dims) != 1)
        return false;
    *value = byi_tensor_float(&t, 0);
    return isfinite(*value);
}

bool byi_read_quantized(const struct byi_rewrite *rw, byi_id id,
                        enum byi_op_id op, struct byi_quantized *q)
{
    if (!byi_rw_is(rw, id, op) ||
        !byi_read_number(rw, byi_rw_arg(rw, id, 1), &q->scale) ||
        !byi_read_number(rw, byi_rw_arg(rw, id, 2), &q->zero) ||
        !(q->scale > 0))
        return false;
    const bool dequantizes = op == BYI_OP_DEQUANTIZE;
    const struct byi_type *float_type =
        byi_rw_tensor(rw, dequantizes ? id : byi_rw_arg(rw, id, 0));
    q->integers = dequantizes ? byi_rw_arg(rw, id, 0) : id;
    const struct byi_type *type = byi_rw_tensor(rw, q->integers);
    return type && byi_is_bytes(type->dtype) && float_type &&
           float_type->dtype == BYOC_F32;
}
