/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer_args.c: translates arguments of primitives to oneDNN's
 * numbers, and queries their descriptors. */
#include "runtime_dnnl/layer_dnnl.h"

int byi_prim_arg(int arg)
{
    static const int args[] = {
        [BYI_ARG_SRC] = DNNL_ARG_SRC,
        [BYI_ARG_SRC1] = DNNL_ARG_SRC_1,
        [BYI_ARG_WEIGHTS] = DNNL_ARG_WEIGHTS,
        [BYI_ARG_BIAS] = DNNL_ARG_BIAS,
        [BYI_ARG_MEAN] = DNNL_ARG_MEAN,
        [BYI_ARG_VARIANCE] = DNNL_ARG_VARIANCE,
        [BYI_ARG_SCALE] = DNNL_ARG_SCALE,
        [BYI_ARG_SHIFT] = DNNL_ARG_SHIFT,
        [BYI_ARG_DST] = DNNL_ARG_DST,
        [BYI_ARG_SRC_H] = DNNL_ARG_SRC_ITER,
        [BYI_ARG_SRC_C] = DNNL_ARG_SRC_ITER_C,
        [BYI_ARG_RECURRENT] = DNNL_ARG_WEIGHTS_ITER,
        [BYI_ARG_DST_H] = DNNL_ARG_DST_ITER,
        [BYI_ARG_DST_C] = DNNL_ARG_DST_ITER_C,
    };
    if (arg >= BYI_ARG_MULTI)
        return DNNL_ARG_MULTIPLE_SRC + (arg - BYI_ARG_MULTI);
    if (arg >= BYI_ARG_SLOPE)
        return DNNL_ARG_ATTR_MULTIPLE_POST_OP(arg - BYI_ARG_SLOPE) |
               DNNL_ARG_WEIGHTS;
    if (arg >= BYI_ARG_POST)
        return DNNL_ARG_ATTR_MULTIPLE_POST_OP(arg - BYI_ARG_POST) |
               DNNL_ARG_SRC_1;
    return args[arg];
}

BYI_MD_PTR byi_prim_query(const struct byi_prim *prim, int arg)
{
    return dnnl_primitive_desc_query_md(prim->pd, dnnl_query_exec_arg_md,
                                        byi_prim_arg(arg));
}
