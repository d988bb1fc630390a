/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/strides.c: finds one canonical description for each layout. The
 * stride of an axis of size 1 has no meaning, and views have arbitrary values
 * there, but oneDNN reads it. If only such an axis makes a transposed tensor
 * differ from row-major, 2.6's binary kernels do not write the result. Matrix
 * products use the stride as a leading dimension. */
#include "runtime_dnnl/layer.h"

#include <string.h>

/* Set the strides of axes of size 1 so that all axes are in the order `order`,
 * outermost first. False if the other axes are in another order. */
static bool order_units(struct byi_desc *d, const uint32_t *order)
{
    int64_t next = 1; /* stride that the next axis would have if dense */
    int64_t inner_stride = 0;
    for (uint32_t k = d->rank; k-- > 0;) {
        const uint32_t i = order[k];
        if (d->dims[i] == 1) {
            d->strides[i] = next;
            continue;
        }
        if (d->strides[i] < inner_stride)
            return false;
        inner_stride = d->strides[i];
        next = d->dims[i] * d->strides[i];
    }
    return true;
}

static bool order_row_major(struct byi_desc *d)
{
    uint32_t order[BYI_MAX_RANK];
    for (uint32_t i = 0; i < d->rank; i++)
        order[i] = i;
    return order_units(d, order);
}

static bool order_channels_last(struct byi_desc *d)
{
    uint32_t order[BYI_MAX_RANK];
    if (d->rank < 3)
        return order_row_major(d);
    order[0] = 0;
    for (uint32_t i = 2; i < d->rank; i++)
        order[i - 1] = i;
    order[d->rank - 1] = 1;
    return order_units(d, order);
}

void byi_axes_sort(uint32_t rank, const int64_t *strides, uint32_t *order)
{
    for (uint32_t i = 0; i < rank; i++) { /* insertion sort, stable */
        uint32_t at = i;
        for (; at > 0 && strides[order[at - 1]] < strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Order the axes by stride, including those of size 1 if their strides fit;
 * otherwise such an axis follows the axis before it in the shape. */
static void order_any(struct byi_desc *d)
{
    uint32_t order[BYI_MAX_RANK];
    int64_t stride[BYI_MAX_RANK] = {0}, previous = INT64_MAX;
    struct byi_desc ordered = *d;
    byi_axes_sort(d->rank, d->strides, order);
    if (order_units(&ordered, order) &&
        memcmp(ordered.strides, d->strides, d->rank * sizeof previous) == 0)
        return;
    for (uint32_t i = 0; i < d->rank; i++)
        stride[i] = previous = d->dims[i] > 1 ? d->strides[i] : previous;
    byi_axes_sort(d->rank, stride, order);
    order_units(d, order);
}

int64_t byi_desc_span(const struct byi_desc *desc)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < desc->rank; i++)
        last += (desc->dims[i] - 1) * desc->strides[i];
    return last + 1;
}

bool byi_desc_is_row_major(const struct byi_desc *desc)
{
    struct byi_desc d = *desc;
    return order_row_major(&d);
}

bool byi_desc_is_channels_last(const struct byi_desc *desc)
{
    struct byi_desc d = *desc;
    return order_channels_last(&d);
}

struct byi_desc byi_desc_canonical(const struct byi_desc *desc,
                                   enum byi_unit_axes units)
{
    struct byi_desc row_major = *desc, channels_last = *desc, any = *desc;
    const bool is_row_major = order_row_major(&row_major),
               is_channels_last = order_channels_last(&channels_last);
    const bool is_unchanged =
        memcmp(channels_last.strides, desc->strides,
               desc->rank * sizeof channels_last.strides[0]) == 0;
    if (is_channels_last &&
        (!is_row_major || (units == BYI_UNITS_WINDOWS && is_unchanged)))
        return channels_last;
    if (is_row_major)
        return row_major;
    order_any(&any);
    return any;
}
