/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h: the elementwise operators behind a convolution or a product that
 * its native kernel applies to its result in place. The compiler decides by
 * these rules, and the runtime checks plans by them.
 */
#ifndef BYI_EPILOGUE_H
#define BYI_EPILOGUE_H

#include "ops.h"

enum { BYI_EPILOGUE_OPS = 8 }; /* maximum number of operators in an epilogue */

/* One operator. It reads the result so far and, if it is binary, one more
 * operand of the call. The epilogue's operands come after those of the product
 * or convolution, in the order of the operators. */
struct byi_epilogue_op {
    const struct byi_op *op;
    const struct byi_attrs *attrs;
};

/* Whether the kernel of this call with `n_args` operands supports an epilogue.
 * True for float32 convolutions whose layout has no blocks. Also true for
 * products of float32, or of bytes with a scale, by a single matrix of weights,
 * if the result is float32. `weights` is the type of the second operand. */
bool byi_epilogue_is_supported(enum byi_op_id op, const struct byi_attrs *attrs,
                               uint32_t n_args, const struct byi_type *weights,
                               const struct byi_type *out);
/* The axis of the channels of a result of this rank: the last axis of a
 * product. The call must support an epilogue. */
uint32_t byi_epilogue_axis(enum byi_op_id op, const struct byi_attrs *attrs,
                           uint32_t rank);
/* Whether `op` may be in the epilogue of a call with this result. `axis` is
 * byi_epilogue_axis() of the call. `operand` is the type of the other operand
 * of a binary `op`: see byi_epilogue_is_row(). If the channels are last, it may
 * also equal the result's type. NULL: `op` is unary. */
bool byi_epilogue_allows(enum byi_op_id op, const struct byi_type *out,
                         uint32_t axis, const struct byi_type *operand);
/* Whether an operand of these dims has one element, or one for each position
 * of axis `axis` of the result. */
bool byi_epilogue_is_row(uint32_t rank, const int64_t *dims, uint32_t out_rank,
                         const int64_t *out_dims, uint32_t axis);
/* Whether `op` is a binary operator of epilogues. */
bool byi_epilogue_is_binary(enum byi_op_id op);

#endif
