/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_elementwise.c: builds kernels whose first operator is
 * elementwise or binary: a chain that starts from an operand. They run in any
 * layout, so they keep the layout of their operands. */
#include "runtime_dnnl/build.h"

/* Whether the value has the dims of `type`. */
static bool has_dims(const struct byi_dnnl_value *value,
                     const struct byoc_graph_value *type)
{
    const struct byi_desc *desc = &value->views[0].desc;
    if (type->rank == 0)
        return byi_elements(desc->rank, desc->dims) == 1;
    return byi_dims_equal(desc->rank, desc->dims, type->rank, type->dims);
}

/* Whether the view is of an input or a constant of the region. */
static bool is_from_outside(const struct byi_build *b,
                            const struct byi_dnnl_view *view)
{
    const enum byi_buf_kind kind = b->bufs.at[view->buf].kind;
    return kind != BYI_BUF_TEMP && kind != BYI_BUF_OUTPUT;
}

/* Choose a view of the main operand in a layout that `same_shape`, the other
 * operand, has, too; it is NULL if no other operand has the same shape. If the
 * operands have no layout in common and the main operand comes from outside of
 * the region, reorder the main operand to the other operand's layout. */
static enum byoc_status choose_view(struct byi_build *b,
                                    struct byi_dnnl_value *main,
                                    struct byi_dnnl_value *same_shape,
                                    struct byi_dnnl_view *view)
{
    for (uint32_t i = 0; same_shape && i < main->n_views; i++) {
        *view = main->views[i];
        view->desc = byi_dn_regular(&view->desc);
        if (byi_dn_is_dense(&main->views[i].desc) &&
            byi_dn_find(same_shape, &view->desc))
            return BYOC_OK;
    }
    if (same_shape && is_from_outside(b, &main->views[0]) &&
        !is_from_outside(b, &same_shape->views[0]) &&
        byi_dn_is_dense(&same_shape->views[0].desc)) {
        const struct byi_desc layout =
            byi_dn_regular(&same_shape->views[0].desc);
        return byi_dn_get_view(b, main, &layout, view);
    }
    return byi_dn_get_dense(b, main, view);
}

/* Whether the layout is row-major or channels-last. Only in these do oneDNN's
 * binary kernels broadcast an operand; for others it uses its reference
 * implementation. */
static bool has_fast_broadcast(const struct byi_desc *desc)
{
    const struct byi_desc last =
        byi_dn_channels_last(desc->dtype, desc->rank, desc->dims);
    return byi_dn_is_row_major(desc) || byi_dn_same_layout(desc, &last);
}

enum byoc_status byi_dn_build_elementwise(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    enum byoc_status status = byi_dn_integer_elementwise(b);
    if (status != BYOC_EUNSUPPORTED)
        return status;
    struct byi_dnnl_value *main = byi_dn_operand(b, byi_dn_arg0(b, 0)),
                          *same_shape = NULL;
    uint32_t main_index = 0;
    if (step->n_args == 2) {
        struct byi_dnnl_value *second = byi_dn_operand(b, byi_dn_arg0(b, 1));
        if (!has_dims(main, byi_dn_result(b))) {
            if (!has_dims(second, byi_dn_result(b)))
                return byi_dn_refuse(b,
                                     "%s: both operands are broadcast, "
                                     "expected one with the result's shape, "
                                     "since oneDNN has only a reference "
                                     "implementation",
                                     step->name);
            main_index = 1;
            main = second;
        } else if (has_dims(second, byi_dn_result(b))) {
            same_shape = second;
        }
    }
    if (!byi_dn_is_float(main->views[0].desc.dtype))
        return byi_dn_refuse(
            b, "%s: found dtype %s, expected float32, float16 or bfloat16",
            step->name, byoc_dtype_name(main->views[0].desc.dtype));
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 0, b->kernel->n_steps, main_index, &chain));
    struct byi_dnnl_view view;
    status = BYOC_OK;
    const uint32_t from = byi_dn_arg0(b, main_index);
    if (!same_shape && byi_dn_gather(b, 1, &from, &chain, &status))
        return status;
    BYI_TRY(choose_view(b, main, same_shape, &view));
    if (step->n_args == 2 && !same_shape && !has_fast_broadcast(&view.desc))
        BYI_TRY(byi_dn_get_row_major(b, main, &view));
    return byi_dn_emit_items(b, &chain, 0, view);
}
