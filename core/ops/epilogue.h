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
 * True for float32 convolutions in a channels-last layout. Also true for
 * products of float32, or of bytes with a scale, by a single matrix of weights,
 * if the result is float32. `weights` is the type of the second operand. */
bool byi_epilogue_is_supported(enum byi_op_id op, const struct byi_attrs *attrs,
                               uint32_t n_args, const struct byi_type *weights,
                               const struct byi_type *out);
/* Whether `op` may be in the epilogue of a call with this result. `operand` is
 * the type of the other operand of a binary `op`. It must equal the result's
 * type, or have one element, or one for each position of the last axis. NULL:
 * `op` is unary. */
bool byi_epilogue_allows(enum byi_op_id op, const struct byi_type *out,
                         const struct byi_type *operand);
/* Whether `op` is a binary operator of epilogues. */
bool byi_epilogue_is_binary(enum byi_op_id op);

#endif
