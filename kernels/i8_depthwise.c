/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_depthwise.c: 8-bit depthwise convolutions. A word has taps of one
 * column of the window. */
#include "kernels/i8_job.h"

#include <math.h>
#include <string.h>

enum { BAND_BYTES = 1 << 17 /* bytes of x for a band of output rows */ };

/* Make the words of the output row at `at` from its input rows, for channels
 * [c, c + columns). */
static void interleave_row(const struct i8_job *j, const struct i8_place *at,
                           int64_t c, int columns, uint32_t *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t left = at->first[2], n = i8_interleaved_positions(conv);
    const int64_t before = left < 0 ? byi_min(-left, n) : 0;
    const int64_t over = left + n - conv->in[2];
    const int64_t after = over <= 0 ? 0 : byi_min(over, n - before);
    for (int64_t h = 0; h < conv->size[1];
         h += i8_word_elements(j->form), to += n * BYI_I8_PANEL) {
        struct byi_i8_interleaving padding = {.columns = BYI_I8_PANEL,
                                              .flip = j->flip};
        struct byi_i8_interleaving inside = {.columns = columns,
                                             .flip = j->flip};
        for (int64_t i = 0; i < i8_word_elements(j->form); i++) {
            const uint8_t *line =
                h + i < conv->size[1] ? i8_line_at(conv, at, 0, h + i) : NULL;
            padding.rows[i] = j->zeros;
            inside.rows[i] =
                line ? line + (left + before) * conv->channels + c : j->zeros;
            inside.steps[i] = line ? conv->channels : 0;
        }
        padding.to = to;
        padding.n = before;
        conv->kernels->interleave[j->form](&padding);
        inside.to = to + before * BYI_I8_PANEL;
        inside.n = n - before - after;
        conv->kernels->interleave[j->form](&inside);
        padding.to = to + (n - after) * BYI_I8_PANEL;
        padding.n = after;
        conv->kernels->interleave[j->form](&padding);
    }
}

/* Set the words of 4 channels, entries `to` to `to` + 3. Words of adjacent
 * columns of the window are BYI_I8_PANEL apart in `from`. The weights of the
 * second output row are shifted by one element, since its window is a row
 * further down. */
static void fill_words(const struct i8_job *j, const uint32_t *from, int to,
                       struct byi_i8_strip_weights *w)
{
    enum { PAIR = 16 }; /* from an entry to that of the next pair of rows */
    static const uint32_t zeros[3 * BYI_I8_PANEL];
    const uint32_t *next = j->words > 3 ? from + 3 * BYI_I8_PANEL : zeros;
    for (int t = 0; t < 3; t++) {
        uint32_t *first = w->weights[0][t] + to,
                 *second = w->weights[1][t] + to;
        for (int k = 0; j->form == BYI_I8_BYTES && k < 4; k++) {
            first[k] = from[t * BYI_I8_PANEL + k];
            second[k] = first[k] << 8;
        }
        for (int k = 0; j->form == BYI_I8_PAIRS && k < 4; k++) {
            first[k] = from[t * BYI_I8_PANEL + k];
            second[k] = first[k] << 16;
            first[k + PAIR] = next[t * BYI_I8_PANEL + k];
            second[k + PAIR] = first[k] >> 16 | first[k + PAIR] << 16;
        }
    }
}

/* Set the constants of `columns` channels from c on, for strips of `lanes`
 * lanes. */
static void fill_strip(const struct i8_job *j, int64_t c, int columns,
                       int lanes, struct byi_i8_strip_weights *w)
{
    const int lane_channels =
        j->form == BYI_I8_BYTES ? 16 : 8; /* channels of a lane */
    if (columns < lane_channels * lanes)
        memset(w, 0, sizeof *w);
    for (int i = 0; i < columns; i += 4) {
        const int to = (i % lane_channels / 4 * lanes + i / lane_channels) * 4;
        fill_words(j,
                   j->panels +
                       (c + i) / BYI_I8_PANEL * j->words * BYI_I8_PANEL +
                       (c + i) % BYI_I8_PANEL,
                   to, w);
        memcpy(w->add + to, j->e.add + c + i, 4 * sizeof *w->add);
        memcpy(w->scale + to, j->e.scale + c + i, 4 * sizeof *w->scale);
    }
}

/* Describe a strip of n outputs, from output `from` on, of one or two output
 * rows from `row` on, channels [c, c + columns), without y. Rows are numbered
 * through all images. */
static struct byi_i8_strip open_strip(const struct i8_job *j, int64_t row,
                                      int rows, int64_t from, int64_t n,
                                      int64_t c, int columns,
                                      const struct byi_i8_strip_weights *w)
{
    const struct byi_i8_conv *conv = j->conv;
    const struct i8_place at = i8_place_of(j, row * conv->out[2] + from);
    const int64_t first = byi_min(byi_max(at.first[2], 0), conv->in[2]);
    struct byi_i8_strip s = {.zeros = j->zeros,
                             .before = byi_max(-at.first[2], 0),
                             .inside = conv->in[2] - first,
                             .n = n,
                             .stride = conv->stride[2],
                             .w = w,
                             .lifted = j->e.lifted,
                             .low = (int32_t)rintf(j->e.low) + j->e.zero,
                             .high = (int32_t)rintf(j->e.high) + j->e.zero,
                             .zero = j->e.zero,
                             .flip = j->flip,
                             .channels = columns};
    for (int64_t i = 0; i < 4; i++) {
        const uint8_t *line =
            i < conv->size[1] + rows - 1 ? i8_line_at(conv, &at, 0, i) : NULL;
        s.rows[i] = line ? line + first * conv->channels + c : j->zeros;
        s.steps[i] = line ? conv->channels : 0;
    }
    return s;
}

/* Compute one or two output rows, as above. */
static void run_strip(const struct i8_job *j, int64_t row, int rows, int64_t c,
                      int columns, const struct byi_i8_strip_weights *w)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t width = conv->out[2];
    struct byi_i8_strip s = open_strip(j, row, rows, 0, width, c, columns, w);
    s.y = (char *)j->run->y + row * width * conv->outputs + c;
    s.ldy = conv->outputs;
    s.next = rows == 2 ? width * conv->outputs : 0;
    conv->kernels->strip[columns > BYI_I8_STRIP / 2](&s);
}

/* Compute one or two output rows that are activated, some outputs at a time. */
static void run_activated_strip(const struct i8_job *j, int64_t row, int rows,
                                int64_t c, int columns,
                                const struct byi_i8_strip_weights *w)
{
    enum { OUTPUTS = I8_ACTIVATED / BYI_I8_PANEL / 2 };
    const struct byi_i8_conv *conv = j->conv;
    const int64_t width = conv->out[2];
    _Alignas(64) float results[I8_ACTIVATED];
    for (int64_t from = 0; from < width; from += OUTPUTS) {
        const int64_t n = byi_min(OUTPUTS, width - from);
        struct byi_i8_strip s =
            open_strip(j, row, rows, from, n, c, columns, w);
        s.floats = true;
        s.y = (char *)results;
        s.ldy = BYI_I8_PANEL * (int)sizeof *results;
        s.next = rows == 2 ? n * s.ldy : 0;
        conv->kernels->strip[0](&s);
        for (int i = 0; i < rows; i++)
            i8_activate(j->run, results + i * n * BYI_I8_PANEL, BYI_I8_PANEL, n,
                        columns,
                        (char *)j->run->y +
                            ((row + i) * width + from) * conv->outputs + c,
                        conv->outputs);
    }
}

/* Compute output rows [begin, end), channels [c, c + columns). Two rows of an
 * image are computed together if strides are 1 and their windows together are
 * at most 4 rows high. */
static void run_strips(const struct i8_job *j, int64_t begin, int64_t end,
                       int64_t c, int columns)
{
    const struct byi_i8_conv *conv = j->conv;
    const bool pairs = conv->size[1] <= 3 && conv->stride[1] == 1 &&
                       conv->stride[2] == 1 && conv->dilation[1] == 1;
    struct byi_i8_strip_weights w;
    fill_strip(j, c, columns, columns > BYI_I8_STRIP / 2 ? 4 : 2, &w);
    for (int64_t row = begin, rows; row < end; row += rows) {
        const bool last =
            row + 1 == end || row % conv->out[1] + 1 == conv->out[1];
        rows = pairs && !last ? 2 : 1;
        if (conv->result == BYI_I8_ACTIVATED)
            run_activated_strip(j, row, (int)rows, c, columns, &w);
        else
            run_strip(j, row, (int)rows, c, columns, &w);
    }
}

/* Output rows that all strips compute one after the other, so that cache lines,
 * which have channels of several strips, are loaded once. */
static int64_t band_of(const struct byi_i8_conv *conv)
{
    const int64_t line = conv->in[2] * conv->channels * conv->stride[1];
    return byi_max(BAND_BYTES / byi_max(line, 1) / 2 * 2, 4);
}

/* Compute the outputs of a row, some at a time, which are activated. */
static void run_activated(const struct i8_job *j, const struct byi_i8_taps *t)
{
    enum { OUTPUTS = I8_ACTIVATED / BYI_I8_PANEL };
    _Alignas(64) float results[I8_ACTIVATED];
    for (int64_t i = 0; i < t->n; i += OUTPUTS) {
        struct byi_i8_taps part = *t;
        part.x += i * t->step;
        part.n = byi_min(OUTPUTS, t->n - i);
        part.y = (char *)results;
        part.ldy = part.columns * (int)sizeof *results;
        j->conv->kernels->taps[j->form](&part);
        i8_activate(j->run, results, part.columns, part.n, part.columns,
                    t->y + i * t->ldy, t->ldy);
    }
}

void i8_depthwise_rows(const struct i8_job *j, int64_t begin, int64_t end,
                       int64_t first, int64_t last, char *scratch)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t width = conv->out[2], ldy = conv->outputs * j->size;
    uint32_t *interleaved = (uint32_t *)(void *)scratch;
    int64_t offsets[I8_PIECES];
    const int64_t from = first * BYI_I8_STRIP;
    const int64_t channels = byi_min(last * BYI_I8_STRIP, conv->channels);
    const int64_t strip = conv->kernels->strip_channels, band = band_of(conv);
    for (int64_t row = begin; j->strips && row < end; row += band)
        for (int64_t c = from; c < channels; c += strip)
            run_strips(j, row, byi_min(end, row + band), c,
                       (int)byi_min(strip, channels - c));
    for (int64_t t = 0; t < j->words; t++)
        offsets[t] = (t / conv->size[2] * i8_interleaved_positions(conv) +
                      t % conv->size[2] * conv->dilation[2]) *
                     BYI_I8_PANEL;
    for (int64_t row = begin; row < end && !j->strips; row++) {
        const struct i8_place at = i8_place_of(j, row * width);
        for (int64_t c = from; c < channels; c += BYI_I8_PANEL) {
            struct byi_i8_taps t = {
                .x = interleaved,
                .step = conv->stride[2] * BYI_I8_PANEL,
                .offsets = offsets,
                .weights = j->panels + c * j->words,
                .taps = j->words,
                .n = width,
                .e = j->e,
                .y = (char *)j->run->y + row * width * ldy + c * j->size,
                .ldy = ldy,
                .columns = (int)byi_min(BYI_I8_PANEL, channels - c)};
            t.e.add += c;
            t.e.scale += c;
            interleave_row(j, &at, c, t.columns, interleaved);
            if (conv->result == BYI_I8_ACTIVATED)
                run_activated(j, &t);
            else
                conv->kernels->taps[j->form](&t);
        }
    }
}
