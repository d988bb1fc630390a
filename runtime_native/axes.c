/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c: splits a tensor's axes into two groups. These are the axes that a
 * reduction or normalisation keeps (the outer loop) and those that it reduces
 * (the inner loop). Also transposes matrices of any element size. */
#include "move.h"

#include "kernels/conv.h"

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
    for (uint32_t i = box->rank; i-- > 1;) {
        offset += flat % box->dims[i] * box->strides[i];
        flat /= box->dims[i];
    }
    return box->rank ? offset + flat * box->strides[0] : 0;
}

struct byi_box_rows byi_box_rows(const struct byi_box *box)
{
    if (box->count == 0 || box->rank == 0)
        return (struct byi_box_rows){box->count, 1, 0};
    const int64_t n = box->dims[box->rank - 1];
    return (struct byi_box_rows){box->count / n, n,
                                 box->strides[box->rank - 1]};
}

/* byi_transpose() of elements of 4 bytes, as plain loops. */
static inline void transpose_loop(const uint32_t *restrict from, int64_t stride,
                                  int64_t rows, int64_t columns,
                                  uint32_t *restrict to, int64_t pitch)
{
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * pitch + r] = from[r * stride + c];
}

/* byi_transpose() of fewer than 4 columns of 4 bytes. The loops for adjacent
 * rows have constant strides. */
static void transpose_few_columns(const void *from, int64_t stride,
                                  int64_t rows, int64_t columns, void *to,
                                  int64_t pitch)
{
    if (columns == 2 && stride == 2)
        transpose_loop(from, 2, rows, 2, to, pitch);
    else if (columns == 3 && stride == 3)
        transpose_loop(from, 3, rows, 3, to, pitch);
    else
        transpose_loop(from, stride, rows, columns, to, pitch);
}

typedef uint64_t pair64 __attribute__((vector_size(16), aligned(8), may_alias));

/* byi_transpose() of elements of 8 bytes, two columns of two rows at a time. */
static void transpose_64_bit(const uint64_t *from, int64_t stride, int64_t rows,
                             int64_t columns, uint64_t *to, int64_t pitch)
{
    for (; columns >= 2; columns -= 2, from += 2, to += 2 * pitch) {
        const uint64_t *x = from;
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2, x += 2 * stride) {
            const pair64 a = *(const pair64 *)x;
            const pair64 b = *(const pair64 *)(x + stride);
            *(pair64 *)(to + r) = (pair64){a[0], b[0]};
            *(pair64 *)(to + pitch + r) = (pair64){a[1], b[1]};
        }
        if (r < rows) {
            to[r] = x[0];
            to[pitch + r] = x[1];
        }
    }
    for (int64_t r = 0; columns && r < rows; r++)
        to[r] = from[r * stride];
}

void byi_transpose(size_t size, const void *from, int64_t stride, int64_t rows,
                   int64_t columns, void *to, int64_t pitch)
{
    if (size < 4)
        byi_transpose_small(size, from, stride, rows, columns, to, pitch);
    else if (size == 8)
        transpose_64_bit(from, stride, rows, columns, to, pitch);
    else if (columns < 4)
        transpose_few_columns(from, stride, rows, columns, to, pitch);
    else
        byi_f32_transpose(byi_f32_kernels_of(byi_simd_isa()), from, stride,
                          rows, columns, to, pitch);
}

int64_t byi_lanes(int64_t outer, int64_t n, int64_t inner, size_t size,
                  int64_t most)
{
    if (n < 2 || inner >= BYI_NARROW / 2 || n * inner > most)
        return 1;
    int64_t lanes = BYI_BLOCK_BYTES / (n * inner * (int64_t)size);
    lanes = byi_min(byi_min(lanes, BYI_COLUMNS / inner), outer);
    return lanes < 8 ? 1 : lanes < 16 ? lanes : lanes / 16 * 16;
}
