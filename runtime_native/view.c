/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: copies a strided view to dense memory, for transpose, slices,
 * broadcasts, tiles and the block operators. Adjacent axes that one stride
 * covers are merged first. The remaining axes are copied row by row or, if
 * source rows become columns, in square blocks that fit the cache. */
#include "move.h"

#include "kernels/moves.h"

enum {
    BLOCK = 256, /* bytes of a row or column of a square block */
    /* with fewer columns, copying single elements is faster than the squares
     * and the buffer of name_few_rows() (SQUARES) */
    MANY_COLUMNS = 128
};

void byi_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

/* Drop axes of size 1 and merge adjacent axes that one stride covers; keeps at
 * least one axis. */
static struct byi_view simplify(const struct byi_view *v)
{
    struct byi_view s = {.rank = 0};
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->dims[i] == 1)
            continue;
        const uint32_t last = s.rank - 1;
        if (s.rank && s.strides[last] == v->strides[i] * v->dims[i]) {
            s.dims[last] *= v->dims[i];
            s.strides[last] = v->strides[i];
            continue;
        }
        s.dims[s.rank] = v->dims[i];
        s.strides[s.rank++] = v->strides[i];
    }
    if (s.rank == 0) {
        s.rank = 1;
        s.dims[0] = 1;
        s.strides[0] = 1;
    }
    return s;
}

/* The loops below are instantiated for each element size. */
#define FOR_SIZES(S)                                                           \
    S(1)                                                                       \
    S(2)                                                                       \
    S(4)                                                                       \
    S(8)                                                                       \
    S(16)

/* dst[i] = src[i * stride] */
#define ROW(size)                                                              \
    static void row_##size(char *restrict dst, const char *restrict src,       \
                           int64_t n, int64_t stride)                          \
    {                                                                          \
        if (stride == 0) {                                                     \
            char cell[size];                                                   \
            if (n > 0)                                                         \
                memcpy(cell, src, size);                                       \
            for (int64_t i = 0; i < n; i++)                                    \
                memcpy(dst + i * size, cell, size);                            \
        } else if (stride == 1)                                                \
            for (int64_t i = 0; i < n; i++)                                    \
                memcpy(dst + i * size, src + i * size, size);                  \
        else if (stride == 2)                                                  \
            for (int64_t i = 0; i < n; i++)                                    \
                memcpy(dst + i * size, src + i * 2 * size, size);              \
        else                                                                   \
            for (int64_t i = 0; i < n; i++)                                    \
                memcpy(dst + i * size, src + i * stride * size, size);         \
    }
FOR_SIZES(ROW)

/* dst[r * out + c] = src[r + c * in] for r < rows, c < cols */
#define SQUARE(size)                                                           \
    static void square_##size(char *dst, int64_t out, const char *src,         \
                              int64_t in, int64_t rows, int64_t cols)          \
    {                                                                          \
        for (int64_t r = 0; r < rows; r++)                                     \
            for (int64_t c = 0; c < cols; c++)                                 \
                memcpy(dst + (r * out + c) * size, src + (r + c * in) * size,  \
                       size);                                                  \
    }
FOR_SIZES(SQUARE)

/* SQUARE(4), vectorised. */
static void square_words(char *dst, int64_t out, const char *src, int64_t in,
                         int64_t rows, int64_t cols)
{
    byi_f32_transpose(byi_f32_kernels_of(byi_simd_isa()), (const void *)src, in,
                      cols, rows, (void *)dst, out);
}

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

/* dst[r * out + c] = src[r + c * in] for r, c < 16, in four interleaving steps.
 */
static void square16_bytes(const uint8_t *src, int64_t in, uint8_t *dst,
                           int64_t out)
{
    bytes16 row[16], pair[16];
    for (int c = 0; c < 16; c++)
        row[c] = *(const bytes16 *)(src + c * in);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 8; i++) {
            pair[2 * i] = BYI_SHUFFLE(bytes16, row[i], row[i + 8], 0, 16, 1, 17,
                                      2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            pair[2 * i + 1] =
                BYI_SHUFFLE(bytes16, row[i], row[i + 8], 8, 24, 9, 25, 10, 26,
                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        memcpy(row, pair, sizeof row);
    }
    for (int r = 0; r < 16; r++)
        *(bytes16 *)(dst + r * out) = row[r];
}

/* SQUARE(1) and SQUARE(2) in vectors, by squares of `side` by `side` elements.
 * The last squares overlap the squares before them.
 *
 * If there are fewer than `side` columns, and rows of the result are adjacent,
 * name_narrow() writes `side` elements for each row: the next rows overwrite
 * the excess. It returns the number of rows that it copied.
 *
 * If there are fewer than `side` rows, name_few_rows() copies up to BLOCK bytes
 * of each row, and returns the number of columns that it copied; 0 if no square
 * fits. Its squares also read the source elements after the rows, but none
 * after the last column. It transposes to a buffer and copies the rows from
 * there, since short writes that alternate between many rows are slow. */
#define SQUARES(name, square, side, size, type)                                \
    static int64_t name##_narrow(char *dst, const char *src, int64_t in,       \
                                 int64_t rows, int64_t cols)                   \
    {                                                                          \
        const int64_t excess = byi_ceil_div(side - cols, cols);                \
        type part[side * side] = {0}, block[side * side];                      \
        int64_t r = 0;                                                         \
        for (; r + side + excess <= rows; r += side) {                         \
            for (int64_t c = 0; c < cols; c++)                                 \
                memcpy(part + c * side, src + (r + c * in) * size,             \
                       side * size);                                           \
            square(part, side, block, side);                                   \
            for (int64_t i = 0; i < side; i++, dst += cols * size)             \
                memcpy(dst, block + i * side, side * size);                    \
        }                                                                      \
        return r;                                                              \
    }                                                                          \
    static int64_t name##_few_rows(char *dst, int64_t out, const char *src,    \
                                   int64_t in, int64_t rows, int64_t cols)     \
    {                                                                          \
        enum { WIDE = BLOCK / size };                                          \
        type block[side * WIDE];                                               \
        int64_t c = 0;                                                         \
        const int64_t end = (cols - side) * in + rows - side;                  \
        for (; in > 0 && c < WIDE && c * in <= end; c += side)                 \
            square((const type *)(const void *)src + c * in, in, block + c,    \
                   WIDE);                                                      \
        for (int64_t r = 0; r < rows; r++)                                     \
            memcpy(dst + r * out * size, block + r * WIDE, (size_t)c * size);  \
        return c;                                                              \
    }                                                                          \
    static void name(char *dst, int64_t out, const char *src, int64_t in,      \
                     int64_t rows, int64_t cols)                               \
    {                                                                          \
        if (cols < side || (rows < side && cols < MANY_COLUMNS)) {             \
            const int64_t r = cols < side && out == cols                       \
                                  ? name##_narrow(dst, src, in, rows, cols)    \
                                  : 0;                                         \
            square_##size(dst + r * out * size, out, src + r * size, in,       \
                          rows - r, cols);                                     \
            return;                                                            \
        }                                                                      \
        if (rows < side) {                                                     \
            int64_t c = 0, copied = 1;                                         \
            for (; copied > 0; c += copied)                                    \
                copied =                                                       \
                    name##_few_rows(dst + c * size, out, src + c * in * size,  \
                                    in, rows, cols - c);                       \
            square_##size(dst + c * size, out, src + c * in * size, in, rows,  \
                          cols - c);                                           \
            return;                                                            \
        }                                                                      \
        for (int64_t i = 0; i < rows; i += side)                               \
            for (int64_t k = 0; k < cols; k += side) {                         \
                const int64_t r = byi_min(i, rows - side);                     \
                const int64_t c = byi_min(k, cols - side);                     \
                square((const type *)(const void *)src + r + c * in, in,       \
                       (type *)(void *)dst + r * out + c, out);                \
            }                                                                  \
    }
SQUARES(square_bytes, square16_bytes, 16, 1, uint8_t)
SQUARES(square_halves, byi_halves_transpose_8, 8, 2, uint16_t)

typedef void (*row_fn)(char *, const char *, int64_t, int64_t);
typedef void (*square_fn)(char *, int64_t, const char *, int64_t, int64_t,
                          int64_t);

static row_fn row_of(size_t size)
{
    static const row_fn rows[] = {
#define ENTRY(size) [size] = row_##size,
        FOR_SIZES(ENTRY)
#undef ENTRY
    };
    assert(size < BYI_COUNT(rows) && rows[size]);
    return rows[size];
}

static square_fn square_of(size_t size)
{
    static const square_fn squares[] = {
#define ENTRY(size) [size] = square_##size,
        FOR_SIZES(ENTRY)
#undef ENTRY
    };
    if (size == 4)
        return square_words;
    if (size == 2)
        return square_halves;
    if (size == 1)
        return square_bytes;
    assert(size < BYI_COUNT(squares) && squares[size]);
    return squares[size];
}

/* Repeat the row at `to` until there are `rows` of them. Each copy may double
 * their number, since a row may have few bytes. */
static void repeat_row(char *to, int64_t bytes, int64_t rows)
{
    enum { MAX_BYTES = 16384 }; /* of a copy, so that its source is cached */
    const int64_t most = bytes < MAX_BYTES ? MAX_BYTES / byi_max(bytes, 1) : 1;
    for (int64_t n_copied = 1, count; n_copied < rows; n_copied += count) {
        count = byi_min(byi_min(n_copied, most), rows - n_copied);
        memcpy(to + n_copied * bytes, to, (size_t)(count * bytes));
    }
}

enum {
    SHORT_ROW = 64, /* bytes below which a call of memcpy takes most time */
    SPAN = 16       /* bytes that are copied at once */
};

/* The end of the elements that a view reads, in elements from its first one; 0
 * if a stride is negative. */
static int64_t end_of(const struct byi_view *v)
{
    int64_t end = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->strides[i] < 0)
            return 0;
        end += (v->dims[i] - 1) * v->strides[i];
    }
    return end;
}

/* Copy contiguous rows [first, last) of few bytes in spans of SPAN bytes. The
 * last span of a row may be longer than the row: the next row overwrites the
 * excess. Rows whose spans would end after the source or after row `last` are
 * copied exactly. */
static void copy_short_rows(const struct byi_view *v, int64_t first,
                            int64_t last, const char *src, char *dst,
                            int64_t size)
{
    const uint32_t outer = v->rank - 1;
    const int64_t bytes = v->dims[outer] * size;
    const int64_t dim = outer ? v->dims[outer - 1] : 1;
    const int64_t step = outer ? v->strides[outer - 1] : 0;
    /* from this row on, the excess would not be overwritten */
    const int64_t safe = last - byi_ceil_div(SPAN - 1, bytes);
    const int64_t limit = end_of(v) * size - bytes - (SPAN - 1);
    int64_t at[2 * BYI_MAX_RANK], in_axis = first % dim;
    int64_t offset = byi_seek(outer, v->dims, v->strides, first, at);
    for (int64_t r = first; r < last; r++) {
        char *to = dst + r * bytes;
        const char *from = src + offset * size;
        if (r >= safe || offset * size > limit)
            memcpy(to, from, (size_t)bytes);
        else
            for (int64_t i = 0; i < bytes; i += SPAN) {
                char span[SPAN];
                memcpy(span, from + i, SPAN);
                memcpy(to + i, span, SPAN);
            }
        offset += step;
        if (++in_axis < dim)
            continue;
        in_axis = 0;
        offset -= dim * step;
        if (outer > 1)
            byi_advance_position(outer - 1, v->dims, v->strides, at, &offset);
    }
}

/* Copy rows [first, last), which are along the last axis. */
static void copy_rows(const struct byi_view *v, int64_t first, int64_t last,
                      const char *src, char *dst, size_t size)
{
    const uint32_t outer = v->rank - 1;
    const int64_t n = v->dims[outer], stride = v->strides[outer];
    const int64_t bytes = (int64_t)size;
    const bool is_long = stride == 1 && n * bytes >= SHORT_ROW;
    const bool repeats = outer > 0 && v->strides[outer - 1] == 0;
    const row_fn row = row_of(size);
    if (stride == 1 && !is_long &&
        !(repeats && v->dims[outer - 1] * n * bytes >= SHORT_ROW)) {
        copy_short_rows(v, first, last, src, dst, bytes);
        return;
    }
    int64_t at[2 * BYI_MAX_RANK], copies = 1;
    int64_t offset = byi_seek(outer, v->dims, v->strides, first, at);
    for (int64_t r = first; r < last; r += copies) {
        char *to = dst + r * n * bytes;
        const char *from = src + offset * bytes;
        if (is_long)
            memcpy(to, from, (size_t)(n * bytes));
        else if (stride == 0)
            byi_fill(to, from, n, size);
        else
            row(to, from, n, stride);
        if (repeats) {
            copies = byi_min(v->dims[outer - 1] - at[outer - 1], last - r);
            repeat_row(to, n * bytes, copies);
            at[outer - 1] += copies - 1;
        }
        byi_advance_position(outer, v->dims, v->strides, at, &offset);
    }
}

enum {
    MIN_SQUARE_ROWS = 3, /* fewer rows are not copied in squares */
    /* least bytes of data for which near_axis() accepts a short axis */
    MIN_FAR = 1 << 20,
    /* least bytes from a column to the next, and of the data, for software
     * prefetching: the hardware does not prefetch columns so far apart */
    FAR_COLUMNS = 2048,
    MIN_FETCHED = 1 << 22,
};

/* The axis before the last along which source elements are contiguous; v->rank
 * if there is none, or if it is too short for blocks. A short axis is accepted
 * in large data if it fills the space between two elements of the last axis, as
 * in space_to_depth: the data are then read once instead of once for each
 * element of the short axis. */
static uint32_t near_axis(const struct byi_view *v, int64_t bytes)
{
    const uint32_t last = v->rank - 1;
    if (v->strides[last] == 1 || v->strides[last] == 0)
        return v->rank;
    for (uint32_t i = 0; i < last; i++)
        if (v->strides[i] == 1 &&
            (v->dims[i] >= MIN_SQUARE_ROWS ||
             (v->strides[last] == v->dims[i] && bytes >= MIN_FAR)))
            return i;
    return v->rank;
}

/* A blocked transpose of the near axis (near_axis) and the last axis; all other
 * axes are outer axes. */
struct blocked_transpose {
    struct byi_view outer;         /* source strides            */
    int64_t out[2 * BYI_MAX_RANK]; /* destination strides       */
    /* of the two-axis transpose: rows and columns, elements from one column to
     * the next in the source, and from one row to the next in the result */
    int64_t rows, cols, in, row_out;
    /* columns of a block; rows of a group; groups per outer step */
    int64_t wide, high, per_outer;
    bool fetches; /* prefetch blocks by software, see FAR_COLUMNS */
};

static struct blocked_transpose plan_blocks(const struct byi_view *v, int64_t n,
                                            uint32_t near, size_t size)
{
    const uint32_t last = v->rank - 1;
    int64_t dense[2 * BYI_MAX_RANK];
    struct blocked_transpose b = {
        .rows = v->dims[near], .cols = v->dims[last], .in = v->strides[last]};
    byi_dense_strides(v->rank, v->dims, dense);
    b.row_out = dense[near];
    b.wide = BLOCK / (int64_t)size;
    b.high = byi_max(b.wide, b.wide * b.wide / b.cols);
    b.per_outer = byi_ceil_div(b.rows, b.high);
    b.fetches =
        b.in * (int64_t)size >= FAR_COLUMNS && n * (int64_t)size >= MIN_FETCHED;
    for (uint32_t i = 0; i < last; i++) {
        if (i == near)
            continue;
        b.out[b.outer.rank] = dense[i];
        b.outer.dims[b.outer.rank] = v->dims[i];
        b.outer.strides[b.outer.rank++] = v->strides[i];
    }
    return b;
}

/* Prefetch the columns of a block, from column c on, `bytes` of each. A source
 * column has few cache lines, and the next one is in another page, so that
 * hardware does not prefetch it. */
static void fetch_columns(const struct blocked_transpose *b, const char *src,
                          int64_t c, int64_t bytes, int64_t size)
{
    const int64_t end = byi_min(c + b->wide, b->cols);
    for (src += c * b->in * size; c < end; c++, src += b->in * size)
        for (int64_t i = 0; i < bytes; i += BYI_ALIGN)
            __builtin_prefetch(src + i);
}

/* Copy one group: some rows and all columns of a two-axis transpose, whose
 * first element is at src and dst. */
static void copy_group(const struct blocked_transpose *b, int64_t row,
                       const char *src, char *dst, size_t size)
{
    const int64_t bytes = (int64_t)size;
    const int64_t rows = byi_min(b->high, b->rows - row);
    src += row * bytes;
    dst += row * b->row_out * bytes;
    if (b->rows < MIN_SQUARE_ROWS) {
        for (int64_t r = 0; r < rows; r++)
            row_of(size)(dst + r * b->row_out * bytes, src + r * bytes, b->cols,
                         b->in);
        return;
    }
    const square_fn square = square_of(size);
    for (int64_t c = 0; c < b->cols; c += b->wide) {
        if (b->fetches)
            fetch_columns(b, src, c + b->wide, rows * bytes, bytes);
        square(dst + c * bytes, b->row_out, src + c * b->in * bytes, b->in,
               rows, byi_min(b->wide, b->cols - c));
    }
}

/* Copy groups [first, last). */
static void copy_groups(const struct blocked_transpose *b, int64_t first,
                        int64_t last, const char *src, char *dst, size_t size)
{
    const int64_t bytes = (int64_t)size;
    int64_t at[2 * BYI_MAX_RANK], row = first % b->per_outer * b->high;
    int64_t from = byi_seek(b->outer.rank, b->outer.dims, b->outer.strides,
                            first / b->per_outer, at);
    for (int64_t g = first; g < last; g++) {
        int64_t to = 0;
        for (uint32_t i = 0; i < b->outer.rank; i++)
            to += at[i] * b->out[i];
        copy_group(b, row, src + from * bytes, dst + to * bytes, size);
        row += b->high;
        if (row < b->rows)
            continue;
        row = 0;
        byi_advance_position(b->outer.rank, b->outer.dims, b->outer.strides, at,
                             &from);
    }
}

/* Copy n > 0 elements of a simplified view. */
static void copy_view(const struct byi_call *call, const struct byi_view *v,
                      int64_t n, const void *src, void *dst, size_t size)
{
    const int team = byi_team(call, n);
    const uint32_t near = near_axis(v, n * (int64_t)size);
    if (v->rank == 1 && v->strides[0] == 1) {
        byi_copy_bytes(call, dst, src, (size_t)n * size);
        return;
    }
    if (near < v->rank) {
        const struct blocked_transpose b = plan_blocks(v, n, near, size);
        const int64_t groups = n / (b.rows * b.cols) * b.per_outer;
        const int64_t parts = byi_min(groups, team);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t p = 0; p < parts; p++)
            copy_groups(&b, groups * p / parts, groups * (p + 1) / parts, src,
                        dst, size);
        return;
    }
    const int64_t rows = n / v->dims[v->rank - 1];
    const int64_t parts = byi_min(rows, team);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t p = 0; p < parts; p++)
        copy_rows(v, rows * p / parts, rows * (p + 1) / parts, src, dst, size);
}

/* Least bytes of a block that is repeated as a whole, with long copies. */
enum { MIN_REPEATED = 1 << 16 };

/* If the whole block below the first axis is repeated, remove that axis and
 * return its size; otherwise return 1. */
static int64_t take_repeats(struct byi_view *v, int64_t bytes)
{
    const int64_t repeats = v->dims[0];
    if (v->rank < 2 || v->strides[0] != 0 || bytes / repeats < MIN_REPEATED)
        return 1;
    v->rank--;
    memmove(v->dims, v->dims + 1, v->rank * sizeof *v->dims);
    memmove(v->strides, v->strides + 1, v->rank * sizeof *v->strides);
    return repeats;
}

/* If the innermost axis has as many bytes as a larger element, make that the
 * element: drop the axis, and return the size of the new elements. */
static size_t join_elements(struct byi_view *v, const void *src,
                            const void *dst, size_t size)
{
    const uint32_t last = v->rank - 1;
    const int64_t n = v->dims[last];
    const size_t bytes = (size_t)n * size;
    if (last == 0 || v->strides[last] != 1 || n > 16 || bytes > 16 ||
        (bytes & (bytes - 1)) ||
        (((uintptr_t)src | (uintptr_t)dst) & (bytes - 1)))
        return size;
    for (uint32_t i = 0; i < last; i++)
        if (v->strides[i] % n)
            return size;
    for (uint32_t i = 0; i < last; i++)
        v->strides[i] /= n;
    v->rank = last;
    return bytes;
}

void byi_transpose_small(size_t size, const void *from, int64_t stride,
                         int64_t rows, int64_t columns, void *to, int64_t pitch)
{
    square_of(size)(to, pitch, from, stride, columns, rows);
}

void byi_view_copy(const struct byi_call *call, const struct byi_view *view,
                   const void *src, void *dst, size_t size)
{
    int64_t n = byi_elements(view->rank, view->dims);
    if (n == 0)
        return;
    struct byi_view v = simplify(view);
    n *= (int64_t)size;
    size = join_elements(&v, src, dst, size);
    n /= (int64_t)size;
    const int64_t repeats = take_repeats(&v, n * (int64_t)size);
    n /= repeats;
    copy_view(call, &v, n, src, dst, size);
    const size_t block = (size_t)n * size;
    for (int64_t i = 1; i < repeats; i++)
        byi_copy_bytes(call, (char *)dst + (size_t)i * block, dst, block);
}

void byi_copy_bytes(const struct byi_call *call, void *dst, const void *src,
                    size_t bytes)
{
    const int team = byi_team(call, (int64_t)(bytes / sizeof(float)));
    const size_t part = bytes / (size_t)team / BYI_ALIGN * BYI_ALIGN;
    if (team == 1) {
        if (bytes)
            memcpy(dst, src, bytes);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(static)
    for (int p = 0; p < team; p++) {
        const size_t at = (size_t)p * part;
        memcpy((char *)dst + at, (const char *)src + at,
               p + 1 < team ? part : bytes - at);
    }
}

void byi_fill(void *dst, const void *value, int64_t n, size_t size)
{
    if (size == 1 && n > 0)
        memset(dst, *(const unsigned char *)value, (size_t)n);
    else
        row_of(size)(dst, value, n, 0);
}

/* Whether any of n indices is outside -size .. size - 1. For such an index one
 * of the two computed numbers is negative; their sign bits replace comparisons,
 * which SSE2 lacks for 64 bits. */
#define ANY_OUTSIDE(id, T)                                                     \
    static bool any_outside_##id(const T *at, int64_t n, int64_t size)         \
    {                                                                          \
        uint64_t signs = 0;                                                    \
        for (int64_t i = 0; i < n; i++) {                                      \
            const uint64_t index = (uint64_t)at[i];                            \
            signs |= (index + (uint64_t)size) | ((uint64_t)size - 1 - index);  \
        }                                                                      \
        return signs >> 63;                                                    \
    }
ANY_OUTSIDE(I32, int32_t)
ANY_OUTSIDE(I64, int64_t)

enum byoc_status byi_check_indices(const struct byi_call *call,
                                   const struct byi_tensor *indices,
                                   int64_t size, struct byoc_error *err)
{
    const int64_t n = byi_count(indices);
    const bool outside = indices->dtype == BYOC_I64
                             ? any_outside_I64(indices->data, n, size)
                             : any_outside_I32(indices->data, n, size);
    if (!outside)
        return BYOC_OK;
    if (size == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found index %lld for an axis of size 0, expected "
                        "no index",
                        call->op->name, (long long)byi_index_at(indices, 0));
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = byi_index_at(indices, i);
        if (index < -size || index >= size)
            return byi_fail(err, BYOC_EINVAL,
                            "%s: found index %lld, expected %lld to %lld",
                            call->op->name, (long long)index, (long long)-size,
                            (long long)size - 1);
    }
    return BYOC_OK;
}
