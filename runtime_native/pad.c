/* SPDX-License-Identifier: Apache-2.0 */
/* pad.c: kernels that copy rows or parts of rows: pad and trilu, which fill the
 * other elements, and reverse_sequence. */
#include "move.h"

enum pad_mode { CONSTANT, EDGE, REFLECT, WRAP };

/* The source of position `at` of an axis of size dim that becomes one of size
 * `out`; -1 if the position gets the padding value. */
static int64_t source_of(int64_t at, int64_t begin, int64_t dim, int64_t out,
                         enum pad_mode mode)
{
    const int64_t i = at - begin;
    if (i >= 0 && i < dim)
        return i;
    if (mode == CONSTANT)
        return -1;
    if (mode == EDGE)
        return i < 0 ? 0 : dim - 1;
    if (mode == WRAP) { /* around the elements that are not cropped */
        const int64_t low = byi_max(-begin, 0);
        const int64_t period = byi_min(dim, out - begin) - low;
        return low + ((i - low) % period + period) % period;
    }
    return i < 0 ? -i : 2 * (dim - 1) - i;
}

/* A call of pad. */
struct padding {
    const char *x;
    char *y;
    uint32_t rank;                               /* at least 1 */
    int64_t in[BYI_MAX_RANK], out[BYI_MAX_RANK]; /* sizes of axes */
    int64_t begin[BYI_MAX_RANK];   /* padding before x along each axis; below 0:
                                    * elements of x that are left out */
    int64_t strides[BYI_MAX_RANK]; /* of x */
    enum pad_mode mode;
    const char *value; /* the padding value */
    size_t size;       /* bytes of an element */
};

/* Positions [first, stop) of a row of y that lie on x. */
struct row_part {
    int64_t first, stop;
};

static struct row_part part_on_data(const struct padding *p)
{
    const uint32_t last = p->rank - 1;
    const int64_t n = p->out[last], begin = p->begin[last];
    struct row_part part = {.first = byi_min(byi_max(begin, 0), n)};
    part.stop = byi_max(byi_min(begin + p->in[last], n), part.first);
    return part;
}

/* Write one row of the last axis, from the row `src`, or with padding only if
 * src is NULL. */
static void pad_row(const struct padding *p, const char *src, char *dst)
{
    const uint32_t last = p->rank - 1;
    const int64_t n = p->out[last], dim = p->in[last];
    const int64_t begin = p->begin[last], size = (int64_t)p->size;
    const struct row_part data_part = part_on_data(p);
    if (!src) {
        byi_fill(dst, p->value, n, p->size);
        return;
    }
    if (p->mode == CONSTANT) {
        byi_fill(dst, p->value, data_part.first, p->size);
        byi_fill(dst + data_part.stop * size, p->value, n - data_part.stop,
                 p->size);
    }
    if (data_part.stop > data_part.first)
        memcpy(dst + data_part.first * size,
               src + (data_part.first - begin) * size,
               (size_t)((data_part.stop - data_part.first) * size));
    for (int64_t i = 0; i < n && p->mode != CONSTANT; i++) {
        if (i == data_part.first)
            i = data_part.stop;
        if (i < n)
            byi_copy_element(dst + i * size,
                             src + source_of(i, begin, dim, n, p->mode) * size,
                             p->size);
    }
}

enum {
    SHORT_ROW = 128, /* bytes below which calls of memcpy take most time */
    SPAN = 16        /* bytes that are written at once */
};

/* Write bytes [from, end) in spans; with `src`, copy them from there. Up to
 * SPAN - 1 bytes after them are changed, and read from src. */
static void write_spans(char *dst, int64_t from, int64_t end, const char *src,
                        const char *fill)
{
    for (int64_t i = from; i < end; i += SPAN)
        memcpy(dst + i, src ? src + (i - from) : fill, SPAN);
}

/* Whether pad_short_row() supports the rows. */
static bool is_short(const struct padding *p)
{
    return p->mode == CONSTANT && SPAN % p->size == 0 &&
           p->out[p->rank - 1] * (int64_t)p->size < SHORT_ROW;
}

/* pad_row() with a constant, for a short row. A part overwrites the excess of
 * the one before; so does the next row. `fill` has SPAN bytes of padding. */
static void pad_short_row(const struct padding *p, const char *src,
                          const char *fill, char *dst)
{
    const uint32_t last = p->rank - 1;
    const int64_t size = (int64_t)p->size, end = p->out[last] * size;
    const struct row_part data_part = part_on_data(p);
    if (!src) {
        write_spans(dst, 0, end, NULL, fill);
        return;
    }
    write_spans(dst, 0, data_part.first * size, NULL, fill);
    write_spans(dst, data_part.first * size, data_part.stop * size,
                src + (data_part.first - p->begin[last]) * size, fill);
    write_spans(dst, data_part.stop * size, end, NULL, fill);
}

/* Write rows [first, last) of y. */
static void pad_rows(const struct padding *p, int64_t first, int64_t last)
{
    const uint32_t outer = p->rank - 1;
    const int64_t size = (int64_t)p->size, bytes = p->out[outer] * size;
    const int64_t row = p->in[outer] * size;
    const char *end = p->x + p->in[0] * p->strides[0] * size;
    /* the last rows whose excess lies in rows of this call */
    const int64_t safe = is_short(p) ? last - byi_ceil_div(SPAN - 1, bytes) : 0;
    int64_t at[BYI_MAX_RANK], unused_offset = 0;
    char fill[SPAN];
    if (is_short(p))
        byi_fill(fill, p->value, SPAN / size, p->size);
    byi_seek(outer, p->out, p->strides, first, at);
    for (int64_t r = first; r < last; r++) {
        const char *src = p->x;
        for (uint32_t i = 0; i < outer && src; i++) {
            const int64_t from =
                source_of(at[i], p->begin[i], p->in[i], p->out[i], p->mode);
            src = from < 0 ? NULL : src + from * p->strides[i] * size;
        }
        if (r < safe && (!src || end - src >= row + SPAN - 1))
            pad_short_row(p, src, fill, p->y + r * bytes);
        else
            pad_row(p, src, p->y + r * bytes);
        byi_advance_position(outer, p->out, p->strides, at, &unused_offset);
    }
}

static bool is_unpadded(const struct padding *p, uint32_t axis)
{
    return p->begin[axis] == 0 && p->in[axis] == p->out[axis];
}

/* Add the axes of x and y, from the outermost inwards. An axis without padding
 * is merged with the one outside of it, if that has none either or the padding
 * is constant. In the other modes the last axis, if it has no padding, becomes
 * part of the element. */
static void add_axes(const struct byi_call *call, struct padding *p)
{
    for (uint32_t i = 0; i < call->in->rank; i++) {
        const uint32_t last = p->rank++;
        p->in[last] = call->in->dims[i];
        p->out[last] = call->out->dims[i];
        p->begin[last] = byi_index_at(&call->in[1], i);
        if (last == 0 || !is_unpadded(p, last) ||
            (p->mode != CONSTANT && !is_unpadded(p, last - 1)))
            continue;
        p->begin[last - 1] *= p->in[last];
        p->in[last - 1] *= p->in[last];
        p->out[last - 1] *= p->out[last];
        p->rank--;
    }
    if (p->rank > 1 && is_unpadded(p, p->rank - 1))
        p->size *= (size_t)p->in[--p->rank];
    byi_dense_strides(p->rank, p->in, p->strides);
}

/* operands x, pads (begins, then ends), value */
static enum byoc_status pad_run(const struct byi_call *call,
                                struct byoc_error *err)
{
    (void)err;
    const char *mode = byi_attr_string(call->attrs, "mode");
    struct padding p = {
        .x = call->in->data,
        .y = call->out->data,
        .mode = mode[0] == 'c'   ? CONSTANT
                : mode[0] == 'e' ? EDGE
                : mode[0] == 'w' ? WRAP
                                 : REFLECT,
        .value = call->in[2].data,
        .size = byi_dtype_bytes(call->in->dtype),
    };
    const int64_t n = byi_count(call->out);
    if (n == 0)
        return BYOC_OK;
    if (call->out->rank == 0) {
        byi_copy_element(p.y, p.x, p.size);
        return BYOC_OK;
    }
    add_axes(call, &p);
    const int64_t count = byi_elements(p.rank - 1, p.out);
    const int64_t parts = byi_min(count, byi_team(call, n));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t i = 0; i < parts; i++)
        pad_rows(&p, count * i / parts, count * (i + 1) / parts);
    return BYOC_OK;
}

/* Set n elements to zero, or to the empty string. */
static void clear(enum byoc_dtype dtype, char *to, int64_t n, int64_t size)
{
    static const char *const text = "";
    if (dtype == BYOC_STRING)
        byi_fill(to, &text, n, (size_t)size);
    else
        memset(to, 0, (size_t)(n * size));
}

/* Matrices whose elements (i, j) with j >= i + k (upper) or j <= i + k (lower)
 * are kept. */
struct triangles {
    enum byoc_dtype dtype;
    bool upper;
    int64_t rows, cols, k;
    int64_t size, total; /* bytes of an element; rows of all matrices */
    const char *x;
    char *y;
};

/* Copy the kept elements of rows [row, end) of a matrix, and clear the others:
 * of one row, or of rows that keep all elements or none. */
static void copy_alike_rows(const struct triangles *t, int64_t row, int64_t end,
                            const char *src, char *dst)
{
    const int64_t at = row + t->k + (t->upper ? 0 : 1);
    const int64_t before = byi_max(0, byi_min(t->cols, at));
    const int64_t elements = (end - row) * t->cols;
    const int64_t cut = before == t->cols ? elements : before;
    clear(t->dtype, t->upper ? dst : dst + cut * t->size,
          t->upper ? cut : elements - cut, t->size);
    memcpy(t->upper ? dst + cut * t->size : dst,
           t->upper ? src + cut * t->size : src,
           (size_t)((t->upper ? elements - cut : cut) * t->size));
}

/* Copy rows [row, end) of a matrix: those before the diagonal, those that it
 * crosses, and those after it. */
static void copy_triangle_rows(const struct triangles *t, int64_t row,
                               int64_t end, const char *src, char *dst)
{
    const int64_t bytes = t->cols * t->size;
    const int64_t first = (t->upper ? 1 : 0) - t->k; /* row of the diagonal */
    while (row < end) {
        const int64_t next = row < first                  ? first
                             : row >= first + t->cols - 1 ? end
                                                          : row + 1;
        const int64_t rows = byi_min(next, end) - row;
        copy_alike_rows(t, row, row + rows, src, dst);
        row += rows;
        src += rows * bytes;
        dst += rows * bytes;
    }
}

enum { MASK_BYTES = 4096 }; /* most bytes of a mask */

/* Copy small matrices, whose rows are short: the elements of as many matrices
 * as fit are combined with a mask that clears those outside of the triangles.
 */
static void mask_matrices(const struct triangles *t, int team)
{
    char ones[MASK_BYTES], mask[MASK_BYTES];
    const int64_t row = t->cols * t->size, matrix = t->rows * row;
    const int64_t bytes = t->total * row, block = MASK_BYTES / matrix * matrix;
    memset(ones, -1, sizeof ones);
    for (int64_t at = 0; at < block; at += matrix)
        copy_triangle_rows(t, 0, t->rows, ones, mask + at);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t at = 0; at < bytes; at += block) {
        const char *restrict src = t->x + at;
        char *restrict dst = t->y + at;
        const int64_t n = byi_min(block, bytes - at);
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i] & mask[i];
    }
}

/* x (..., rows, cols) */
static enum byoc_status trilu_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in;
    const int64_t far = (int64_t)1 << 41; /* larger than any size */
    const int64_t diagonal = call->op->id == BYI_OP_DYN_TRILU
                                 ? byi_index_at(&call->in[1], 0)
                                 : byi_attr_int(call->attrs, "k");
    struct triangles t = {.dtype = x->dtype,
                          .upper = byi_attr_int(call->attrs, "upper") != 0,
                          .rows = x->dims[x->rank - 2],
                          .cols = x->dims[x->rank - 1],
                          .k = byi_max(-far, byi_min(far, diagonal)),
                          .size = (int64_t)byi_dtype_bytes(x->dtype),
                          .x = x->data,
                          .y = call->out->data};
    if (byi_count(x) == 0)
        return BYOC_OK;
    t.total = byi_count(x) / t.cols;
    const int64_t row = t.cols * t.size;
    const int team = byi_team(call, byi_count(x));
    if (t.dtype != BYOC_STRING && t.rows <= MASK_BYTES / row) {
        mask_matrices(&t, team);
        return BYOC_OK;
    }
    const int64_t parts = t.total / t.rows < team ? team : 1; /* of a matrix */
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < t.total / t.rows * parts; i++) {
        const int64_t first = t.rows * (i % parts) / parts;
        const int64_t at = (i / parts * t.rows + first) * row;
        copy_triangle_rows(&t, first, t.rows * (i % parts + 1) / parts,
                           t.x + at, t.y + at);
    }
    return BYOC_OK;
}

/* x (time, batch, ...) or (batch, time, ...): reverses the first lengths[b]
 * steps of sequence b */
static enum byoc_status reverse_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *lengths = &call->in[1];
    const bool batch_first = byi_attr_int(call->attrs, "batch_axis") == 0;
    const int64_t batch = x->dims[batch_first ? 0 : 1];
    const int64_t time = x->dims[batch_first ? 1 : 0];
    const int64_t inner =
        byi_span(x, 2, x->rank) * (int64_t)byi_dtype_bytes(x->dtype);
    const int64_t step_b = batch_first ? time * inner : inner;
    const int64_t step_t = batch_first ? inner : batch * inner;
    for (int64_t b = 0; b < batch; b++) {
        const int64_t n = byi_index_at(lengths, b);
        if (n < 0 || n > time)
            return byi_fail(err, BYOC_EINVAL,
                            "%s: length %lld of sequence %lld is out of "
                            "range, expected 0 to %lld",
                            call->op->name, (long long)n, (long long)b,
                            (long long)time);
        for (int64_t t = 0; t < time; t++) {
            const int64_t from = t < n ? n - 1 - t : t;
            byi_copy_elements((char *)call->out->data + b * step_b + t * step_t,
                              (const char *)x->data + b * step_b +
                                  from * step_t,
                              inner > 0, (size_t)inner);
        }
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(pad, {BYI_OP_NN_PAD, {pad_run, NULL}},
                {BYI_OP_TRILU, {trilu_run, NULL}},
                {BYI_OP_DYN_TRILU, {trilu_run, NULL}},
                {BYI_OP_REVERSE_SEQUENCE, {reverse_run, NULL}})
