/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_rows.c: finds or gathers the rows of x of an 8-bit convolution. */
#include "kernels/i8_job.h"

/* Find pointers to the pieces of rows [row, row + n) of group `group`. */
void i8_find_rows(const struct i8_job *j, int64_t group, int64_t row, int64_t n,
                  const uint8_t **to)
{
    const struct byi_i8_conv *conv = j->conv;
    if (j->pointwise) {
        const uint8_t *x = (const uint8_t *)j->run->x + row * conv->channels +
                           group * j->channels;
        for (int64_t r = 0; r < n; r++)
            to[r] = x + r * conv->channels;
        return;
    }
    struct i8_place at = i8_place_of(j, row);
    for (int64_t r = 0; r < n; r++, i8_next_place(j, &at)) {
        const uint8_t **piece = to + r;
        for (int64_t d = 0; d < conv->size[0]; d++)
            for (int64_t h = 0; h < conv->size[1]; h++) {
                const uint8_t *line = i8_line_at(conv, &at, d, h);
                int64_t x = at.first[2];
                for (int64_t w = 0; w < conv->size[2];
                     w++, x += conv->dilation[2], piece += BYI_I8_ROWS)
                    *piece =
                        line && x >= 0 && x < conv->in[2]
                            ? line + x * conv->channels + group * j->channels
                            : j->zeros;
            }
    }
}

/* Whether BYI_I8_COLUMNS bytes from `end` on may be read. */
static bool can_overread(const struct i8_job *j, const uint8_t *end)
{
    return j->x_end - end >= BYI_I8_COLUMNS;
}

/* Copy a piece of a row; returns the destination of the next piece. */
static char *copy_piece(const struct i8_job *j, const uint8_t *from, int64_t n,
                        char *to)
{
    const struct byi_i8_lines l = {.from = from,
                                   .rows = 1,
                                   .lines = 1,
                                   .n = n,
                                   .may_overrun = from == j->zeros ||
                                                  can_overread(j, from + n),
                                   .flip = j->flip,
                                   .to = to};
    j->conv->kernels->copy[j->form](&l);
    return to + n * 4 / i8_word_elements(j->form);
}

/* Gather one line of a window whose taps are adjacent: padding, elements of x,
 * padding. */
static char *gather_line(const struct i8_job *j, const uint8_t *line,
                         int64_t left, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t c = conv->channels, taps = conv->size[2];
    const int64_t before = !line ? taps : left < 0 ? byi_min(-left, taps) : 0;
    const int64_t over = left + taps - conv->in[2];
    const int64_t after = over <= 0 ? 0 : byi_min(over, taps - before);
    if (before)
        to = copy_piece(j, j->zeros, before * c, to);
    if (before + after < taps)
        to = copy_piece(j, line + (left + before) * c,
                        (taps - before - after) * c, to);
    if (after)
        to = copy_piece(j, j->zeros, after * c, to);
    return to;
}

/* Gather up to n rows from `at` on whose windows are inside of the image and
 * in one line of outputs. Returns their number, 0 if the first row is not such
 * a row. */
static int64_t gather_inside(const struct i8_job *j, const struct i8_place *at,
                             int64_t n, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t line = conv->in[2] * conv->channels;
    if (conv->groups > 1 || conv->dilation[2] > 1 || conv->size[0] > 1 ||
        at->first[0] || at->first[1] < 0 || at->first[2] < 0 ||
        at->first[2] + conv->size[2] > conv->in[2] ||
        at->first[1] + (conv->size[1] - 1) * conv->dilation[1] >= conv->in[1])
        return 0;
    const int64_t further =
        (conv->in[2] - conv->size[2] - at->first[2]) / conv->stride[2];
    n = byi_min(n, byi_min(conv->out[2] - at->out[2], further + 1));
    struct byi_i8_lines l = {.from = i8_line_at(conv, at, 0, 0) +
                                     at->first[2] * conv->channels,
                             .rows = n,
                             .next = conv->stride[2] * conv->channels,
                             .lines = conv->size[1],
                             .step = line * conv->dilation[1],
                             .n = conv->size[2] * conv->channels,
                             .flip = j->flip,
                             .to = to,
                             .ld = j->ld};
    l.may_overrun = can_overread(j, l.from + (n - 1) * l.next +
                                        (l.lines - 1) * l.step + l.n);
    conv->kernels->copy[j->form](&l);
    return n;
}

/* Gather one row. Elements beyond the last one may have any value, since their
 * weights are 0. */
static void gather_row(const struct i8_job *j, int64_t group,
                       const struct i8_place *at, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const bool whole = conv->groups == 1 && conv->dilation[2] == 1;
    for (int64_t d = 0; d < conv->size[0]; d++)
        for (int64_t h = 0; h < conv->size[1]; h++) {
            const uint8_t *line = i8_line_at(conv, at, d, h);
            int64_t x = at->first[2];
            if (whole) {
                to = gather_line(j, line, x, to);
                continue;
            }
            for (int64_t w = 0; w < conv->size[2]; w++, x += conv->dilation[2])
                to = copy_piece(j,
                                line && x >= 0 && x < conv->in[2]
                                    ? line + x * conv->channels +
                                          group * j->channels
                                    : j->zeros,
                                j->channels, to);
        }
}

/* Gather rows [row, row + n) of group `group`, if row i of x is row i of y. */
static void gather_pointwise(const struct i8_job *j, int64_t group, int64_t row,
                             int64_t n, char *to)
{
    struct byi_i8_lines l = {.from = (const uint8_t *)j->run->x +
                                     row * j->conv->channels +
                                     group * j->channels,
                             .rows = n,
                             .next = j->conv->channels,
                             .lines = 1,
                             .n = j->channels,
                             .flip = j->flip,
                             .to = to,
                             .ld = j->ld};
    l.may_overrun = can_overread(j, l.from + (n - 1) * l.next + l.n);
    j->conv->kernels->copy[j->form](&l);
}

/* Gather rows [row, row + n) of group `group`. */
void i8_gather_rows(const struct i8_job *j, int64_t group, int64_t row,
                    int64_t n, char *to)
{
    if (j->pointwise) {
        gather_pointwise(j, group, row, n, to);
        return;
    }
    struct i8_place place = i8_place_of(j, row);
    for (int64_t r = 0, count; r < n; r += count, to += count * j->ld) {
        count = gather_inside(j, &place, n - r, to);
        if (!count) {
            gather_row(j, group, &place, to);
            count = 1;
        }
        for (int64_t i = 0; i < count; i++)
            i8_next_place(j, &place);
    }
}
