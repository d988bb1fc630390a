/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c: splits a tensor's axes into two groups. These are the axes that a
 * reduction or normalisation keeps (the outer loop) and those that it reduces
 * (the inner loop). */
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

/* Define transpose_ID(): byi_transpose() for elements of a size. The loops for
 * few columns have constant strides. */
#define TRANSPOSE(bits)                                                        \
    static inline void transpose_some_##bits(                                  \
        const uint##bits##_t *restrict from, int64_t stride, int64_t rows,     \
        int64_t columns, uint##bits##_t *restrict to, int64_t pitch)           \
    {                                                                          \
        for (int64_t c = 0; c < columns; c++)                                  \
            for (int64_t r = 0; r < rows; r++)                                 \
                to[c * pitch + r] = from[r * stride + c];                      \
    }                                                                          \
    static void transpose_##bits(const void *from, int64_t stride,             \
                                 int64_t rows, int64_t columns, void *to,      \
                                 int64_t pitch)                                \
    {                                                                          \
        if (columns == 2 && stride == 2)                                       \
            transpose_some_##bits(from, 2, rows, 2, to, pitch);                \
        else if (columns == 3 && stride == 3)                                  \
            transpose_some_##bits(from, 3, rows, 3, to, pitch);                \
        else                                                                   \
            transpose_some_##bits(from, stride, rows, columns, to, pitch);     \
    }
TRANSPOSE(32)
TRANSPOSE(64)

void byi_transpose(size_t size, const void *from, int64_t stride, int64_t rows,
                   int64_t columns, void *to, int64_t pitch)
{
    if (size < 4)
        byi_square_copy(size, from, stride, rows, columns, to, pitch);
    else if (size == 8)
        transpose_64(from, stride, rows, columns, to, pitch);
    else if (columns < 4)
        transpose_32(from, stride, rows, columns, to, pitch);
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
