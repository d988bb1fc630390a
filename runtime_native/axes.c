/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c: splits a tensor's axes into two groups: axes that a reduction or
 * normalisation keeps (the outer loop) and axes that it reduces (the inner
 * loop). */
#include "kernel.h"

static void add_axis(struct byi_box *box, int64_t dim, int64_t stride,
                     bool merge)
{
    box->count *= dim;
    if (merge) {
        box->dims[box->rank - 1] *= dim;
        box->strides[box->rank - 1] = stride;
        return;
    }
    box->dims[box->rank] = dim;
    box->strides[box->rank++] = stride;
}

void byi_axes_split(const struct byi_tensor *t, const bool *reduced,
                    struct byi_axes *axes)
{
    *axes = (struct byi_axes){.kept = {.count = 1}, .reduced = {.count = 1}};
    const struct byi_box *last = NULL;
    for (uint32_t i = 0; i < t->rank; i++) {
        struct byi_box *box = reduced[i] ? &axes->reduced : &axes->kept;
        if (t->dims[i] == 1)
            continue;
        add_axis(box, t->dims[i], byi_span(t, i + 1, t->rank), box == last);
        last = box;
    }
}

int64_t byi_box_offset(const struct byi_box *box, int64_t flat)
{
    int64_t offset = 0;
    for (uint32_t i = box->rank; i-- > 0;) {
        offset += flat % box->dims[i] * box->strides[i];
        flat /= box->dims[i];
    }
    return offset;
}

struct byi_box_rows byi_box_rows(const struct byi_box *box)
{
    if (box->count == 0 || box->rank == 0)
        return (struct byi_box_rows){box->count, 1, 0};
    const int64_t n = box->dims[box->rank - 1];
    return (struct byi_box_rows){box->count / n, n,
                                 box->strides[box->rank - 1]};
}
