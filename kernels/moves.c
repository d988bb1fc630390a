/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/moves.c: copies 16-bit elements between layouts. */
#include "kernels/moves.h"

#include <string.h>

/* --- planning ------------------------------------------------------------- */

/* Join axis `at` with the next inner axis, `at` + 1. */
static void join(struct byi_f32_move *m, uint32_t at)
{
    m->dims[at] *= m->dims[at + 1];
    m->from[at] = m->from[at + 1];
    m->to[at] = m->to[at + 1];
    m->rank--;
    for (uint32_t i = at + 1; i < m->rank; i++) {
        m->dims[i] = m->dims[i + 1];
        m->from[i] = m->from[i + 1];
        m->to[i] = m->to[i + 1];
    }
}

static void swap(struct byi_f32_move *m, uint32_t a, uint32_t b)
{
    int64_t *const lists[] = {m->dims, m->from, m->to};
    for (size_t i = 0; i < BYI_COUNT(lists); i++) {
        const int64_t x = lists[i][a];
        lists[i][a] = lists[i][b];
        lists[i][b] = x;
    }
}

void byi_f32_move_plan(struct byi_f32_move *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->rank; i++)
        if (m->dims[i] != 1)
            swap(m, n++, i);
    m->rank = n;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0 && m->to[j - 1] < m->to[j]; j--)
            swap(m, j - 1, j);
    for (uint32_t i = 0; i + 1 < m->rank;)
        if (m->to[i] == m->to[i + 1] * m->dims[i + 1] &&
            m->from[i] == m->from[i + 1] * m->dims[i + 1])
            join(m, i);
        else
            i++;
}

/* --- transposition -------------------------------------------------------- */

typedef uint16_t halves8 __attribute__((vector_size(16)));
typedef uint16_t halves8_any
    __attribute__((vector_size(16), aligned(2), may_alias));
typedef int16_t lane_ids8 __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) BYI_SHUFFLE(lane_ids8, a, b, __VA_ARGS__)
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15

void byi_halves_transpose_8(const uint16_t *from, int64_t stride, uint16_t *to,
                            int64_t pitch)
{
    halves8 v[8], w[8];
    for (int i = 0; i < 8; i++)
        v[i] = *(const halves8_any *)(from + i * stride);
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 4; i++) {
            w[2 * i] = SHUFFLE(v[i], v[i + 4], LOW);
            w[2 * i + 1] = SHUFFLE(v[i], v[i + 4], HIGH);
        }
        memcpy(v, w, sizeof v);
    }
    for (int i = 0; i < 8; i++)
        *(halves8_any *)(to + i * pitch) = v[i];
}

/* Transpose any number of rows and columns: to[c * pitch + r] = from[r * stride
 * + c]. */
static void transpose(const uint16_t *from, int64_t stride, int64_t rows,
                      int64_t columns, uint16_t *to, int64_t pitch)
{
    const int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (int64_t r = 0; r < whole_rows; r += 8)
        for (int64_t c = 0; c < whole_columns; c += 8)
            byi_halves_transpose_8(from + r * stride + c, stride,
                                   to + c * pitch + r, pitch);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            to[c * pitch + r] = from[r * stride + c];
}

void byi_halves_interleave(const uint16_t *const *rows, uint32_t n,
                           int64_t columns, uint16_t *to)
{
    int64_t c = 0;
    for (; n == 2 && c + 8 <= columns; c += 8) {
        const halves8 a = *(const halves8_any *)(rows[0] + c);
        const halves8 b = *(const halves8_any *)(rows[1] + c);
        *(halves8_any *)(to + 2 * c) = SHUFFLE(a, b, LOW);
        *(halves8_any *)(to + 2 * c + 8) = SHUFFLE(a, b, HIGH);
    }
    for (; c < columns; c++)
        for (uint32_t r = 0; r < n; r++)
            to[c * n + r] = rows[r][c];
}

/* --- running -------------------------------------------------------------- */

/* The offsets of outer index i over the axes [0, rank) except `skip`. */
static void offsets(const struct byi_f32_move *m, uint32_t rank, uint32_t skip,
                    int64_t i, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    for (uint32_t axis = rank; axis-- > 0;) {
        if (axis == skip)
            continue;
        *from += i % m->dims[axis] * m->from[axis];
        *to += i % m->dims[axis] * m->to[axis];
        i /= m->dims[axis];
    }
}

/* Copy a plane, of axis `a` and the last axis. */
static void copy_plane(const struct byi_f32_move *m, uint32_t a,
                       const uint16_t *from, uint16_t *to)
{
    const uint32_t b = m->rank - 1;
    if (m->to[b] == 1 && m->from[a] == 1) {
        transpose(from, m->from[b], m->dims[b], m->dims[a], to, m->to[a]);
        return;
    }
    for (int64_t i = 0; i < m->dims[a];
         i++, from += m->from[a], to += m->to[a]) {
        if (m->to[b] == 1 && m->from[b] == 1)
            memcpy(to, from, (size_t)m->dims[b] * sizeof *to);
        else
            for (int64_t j = 0; j < m->dims[b]; j++)
                to[j * m->to[b]] = from[j * m->from[b]];
    }
}

/* The axis that forms planes with the last one: the axis along which elements
 * of `from` are adjacent, otherwise the one before the last. */
static uint32_t plane_axis(const struct byi_f32_move *m)
{
    for (uint32_t i = 0; i + 1 < m->rank; i++)
        if (m->from[i] == 1)
            return i;
    return m->rank - 2;
}

void byi_f32_move_run(const struct byi_f32_move *move, const uint16_t *from,
                      uint16_t *to, int threads)
{
    enum { PIECE = 1 << 11 }; /* elements that a thread copies at a time */
    struct byi_f32_move m = *move;
    for (; m.rank < 2; m.rank++) {
        memmove(m.dims + 1, m.dims, m.rank * sizeof *m.dims);
        memmove(m.from + 1, m.from, m.rank * sizeof *m.from);
        memmove(m.to + 1, m.to, m.rank * sizeof *m.to);
        m.dims[0] = 1;
        m.from[0] = m.to[0] = m.rank ? 0 : 1;
    }
    const uint32_t a = plane_axis(&m), b = m.rank - 1;
    int64_t planes = 1;
    for (uint32_t i = 0; i < b; i++)
        planes *= i == a ? 1 : m.dims[i];
    const int64_t lines = byi_max(PIECE / m.dims[b], 8);
    const int64_t pieces = byi_ceil_div(m.dims[a], lines);
    const int64_t count = planes * m.dims[a] * m.dims[b];
    const int team = count < (int64_t)threads << 15 ? 1 : threads;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < planes * pieces; i++) {
        int64_t x, y;
        struct byi_f32_move part = m;
        const int64_t first = i % pieces * lines;
        offsets(&m, b, a, i / pieces, &x, &y);
        part.dims[a] = byi_min(lines, m.dims[a] - first);
        copy_plane(&part, a, from + x + first * m.from[a],
                   to + y + first * m.to[a]);
    }
}
