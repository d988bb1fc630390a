/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/bands.c: plans and runs convolutions in bands (kernels/bands.h). */
#include "kernels/bands.h"

#include <string.h>

/* The fewest lines of a band. Each band finds the lines of intermediate results
 * that it shares with the band before, and may move them. Bands of one line are
 * no faster, even if none are moved. */
enum { MIN_LINES = 2 };

/* Lines [from, end) of an image. */
struct band_lines {
    int64_t from, end;
};

/* Elements of x from the beginning of a line to that of the next. */
static int64_t line_of_x(const struct byi_f32_conv *conv)
{
    return conv->planar ? conv->in[2] : conv->in[2] * conv->channels;
}

/* Elements of an image of x. */
static int64_t image_of_x(const struct byi_f32_conv *conv)
{
    return byi_f32_product_of(conv->in) * conv->channels;
}

/* Elements of a line of y. */
static int64_t line_of_y(const struct byi_f32_conv *conv)
{
    return conv->out[2] * conv->outputs;
}

/* The lines of x that the lines `y` of the result read. */
static struct band_lines lines_under(const struct byi_f32_conv *conv,
                                     struct band_lines y)
{
    struct byi_f32_conv strip;
    const int64_t from =
        byi_f32_cut_lines(conv, y.from, y.end - y.from, &strip);
    return (struct band_lines){from, from + strip.in[1]};
}

/* --- planning ------------------------------------------------------------- */

/* Whether the kernel can compute lines separately, including the epilogue, and
 * lines are long enough for that. `first`: it is the first convolution. */
static bool suits_bands(const struct byi_f32_conv *conv, bool first)
{
    const enum byi_f32_algorithm algorithm = conv->algorithm;
    if (conv->type || conv->gathers || conv->out[2] < 8 ||
        !byi_f32_has_lines(conv) ||
        (algorithm != BYI_F32_DIRECT && algorithm != BYI_F32_DEPTHWISE &&
         (algorithm != BYI_F32_PLANAR || !first)))
        return false;
    const int64_t positions = byi_f32_product_of(conv->out);
    for (uint32_t i = 0; i < conv->n_epilogue; i++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
        if (op->binary && op->row && op->repeat != 1 &&
            op->repeat % positions != 0)
            return false;
    }
    return true;
}

/* Number of lines of result i that a band needs; for the last result, the lines
 * of the band itself. */
static int64_t lines_at(const struct byi_f32_bands *bands, uint32_t i)
{
    int64_t lines = bands->band_lines;
    for (uint32_t k = bands->n - 1; k > i; k--)
        lines = byi_f32_lines_read(bands->convs[k], lines);
    return lines;
}

/* Bytes of the lines of intermediate results that a band needs. */
static int64_t bytes_between(const struct byi_f32_bands *bands)
{
    int64_t floats = 0;
    for (uint32_t i = 0; i + 1 < bands->n; i++)
        floats += lines_at(bands, i) * line_of_y(bands->convs[i]);
    return floats * (int64_t)sizeof(float);
}

/* Bytes of the largest scratch of a convolution for up to `lines` lines. */
static uint64_t kernel_bytes(const struct byi_f32_conv *conv, int64_t lines)
{
    uint64_t most = 0;
    for (int64_t n = 1; n <= lines; n++) {
        struct byi_f32_conv strip;
        byi_f32_cut_lines(conv, 0, n, &strip);
        const uint64_t bytes = byi_f32_conv_scratch(&strip, 1);
        most = bytes > most ? bytes : most;
    }
    return byi_align_bytes(most);
}

/* Bytes of a scratch that is large enough for each of the convolutions. */
static uint64_t kernels_bytes(const struct byi_f32_bands *bands)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < bands->n; i++) {
        const uint64_t bytes =
            kernel_bytes(bands->convs[i], lines_at(bands, i));
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Bytes of a thread's memory for the lines of intermediate result i. */
static uint64_t result_bytes(const struct byi_f32_bands *bands, uint32_t i)
{
    return byi_align_bytes(
        (uint64_t)(lines_at(bands, i) * line_of_y(bands->convs[i])) *
        sizeof(float));
}

/* Bytes of a thread's scratch: the scratch of one convolution at a time, then
 * the lines of intermediate results. */
static uint64_t thread_bytes(const struct byi_f32_bands *bands)
{
    uint64_t bytes = bands->kernel_scratch;
    for (uint32_t i = 0; i + 1 < bands->n; i++)
        bytes += result_bytes(bands, i);
    return bytes;
}

bool byi_f32_bands_plan(struct byi_f32_bands *bands)
{
    const struct byi_f32_conv *last = bands->convs[bands->n - 1];
    /* kernels with tiles of 2 rows, such as SSE2's, add up the products of
     * small tiles in another order, so results would depend on the bands */
    if (last->kernels->rows < 6)
        return false;
    int64_t weights = 0;
    bool depthwise = false;
    for (uint32_t i = 0; i < bands->n; i++) {
        if (!suits_bands(bands->convs[i], i == 0))
            return false;
        weights += (int64_t)byi_f32_conv_packed(bands->convs[i]);
        depthwise |= bands->convs[i]->algorithm == BYI_F32_DEPTHWISE;
    }
    if (!depthwise)
        return false;
    bands->band_lines = last->out[1];
    const int64_t result =
        last->out[1] * line_of_y(last) * (int64_t)sizeof(float);
    if (last->images * (bytes_between(bands) + result) <= last->cache ||
        weights > last->cache / 4)
        return false;
    while (bands->band_lines > MIN_LINES &&
           bytes_between(bands) > last->cache / 4)
        bands->band_lines--;
    /* three convolutions save two large images, two only one */
    const int64_t most = last->cache / (bands->n == 3 ? 2 : 4);
    if (bands->band_lines < MIN_LINES || bytes_between(bands) > most)
        return false;
    bands->kernel_scratch = kernels_bytes(bands);
    bands->per_thread = thread_bytes(bands);
    return true;
}

/* --- running -------------------------------------------------------------- */

uint64_t byi_f32_bands_scratch(const struct byi_f32_bands *bands, int threads)
{
    return bands->per_thread * (uint64_t)threads + BYI_ALIGN;
}

/* The state of a thread: its image, and for each intermediate result the lines
 * that exist now, `stored`, and their memory, `at`. */
struct band_thread {
    const struct byi_f32_bands *bands;
    const struct byi_f32_conv_run *runs;
    int64_t image;
    struct band_lines stored[BYI_F32_MAX_BAND_CONVS];
    float *at[BYI_F32_MAX_BAND_CONVS];
    void *scratch;
};

/* Whether the lines of intermediate result i are in a ring, in which a new line
 * replaces one that no band needs any more: line n is line n % lines_at(i) of
 * the ring. Only depthwise convolutions can read one. Lines for others, which
 * need all lines at adjacent addresses, are moved from band to band. */
static bool is_ring(const struct byi_f32_bands *bands, uint32_t i)
{
    return bands->convs[i + 1]->algorithm == BYI_F32_DEPTHWISE;
}

/* Set the lines of x of a strip whose first line is line `from`. */
static void find_x(const struct band_thread *thread, uint32_t i, int64_t from,
                   struct byi_f32_conv *strip, struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = thread->bands->convs[i];
    if (i == 0) {
        run->x += thread->image * image_of_x(conv) + from * line_of_x(conv);
    } else if (is_ring(thread->bands, i - 1)) {
        strip->ring = lines_at(thread->bands, i - 1);
        strip->ring_first = from % strip->ring;
        run->x = thread->at[i - 1];
    } else {
        run->x = thread->at[i - 1] +
                 (from - thread->stored[i - 1].from) * line_of_x(conv);
    }
}

/* Compute lines `y` of result i, and write them to `to`. */
static void run_lines(const struct band_thread *thread, uint32_t i,
                      struct band_lines y, float *to)
{
    const struct byi_f32_conv *conv = thread->bands->convs[i];
    struct byi_f32_conv strip;
    const int64_t from =
        byi_f32_cut_lines(conv, y.from, y.end - y.from, &strip);
    struct byi_f32_conv_run run = thread->runs[i];
    const int64_t row = (thread->image * conv->out[1] + y.from) * conv->out[2];
    strip.plane = conv->in[1] * conv->in[2];
    strip.in_strips = true; /* the threads decide which lines a band has */
    run.conv = &strip;
    find_x(thread, i, from, &strip, &run);
    for (uint32_t p = 0; p < conv->n_epilogue; p++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[p];
        if (op->binary)
            run.operands[op->operand] += row / op->repeat * op->row;
    }
    run.y = to;
    run.scratch = thread->scratch;
    run.threads = 1;
    byi_f32_conv_run(&run);
}

/* Compute lines `y` of intermediate result i, which are in a ring. */
static void run_ring_lines(const struct band_thread *thread, uint32_t i,
                           struct band_lines y)
{
    const int64_t ring = lines_at(thread->bands, i);
    while (y.from < y.end) {
        const int64_t at = y.from % ring;
        const struct band_lines part = {
            y.from, y.from + byi_min(y.end - y.from, ring - at)};
        run_lines(thread, i, part,
                  thread->at[i] + at * line_of_y(thread->bands->convs[i]));
        y.from = part.end;
    }
}

/* Make lines `y` of intermediate result i available: keeps the lines that exist
 * already, and computes the others. */
static void advance(struct band_thread *thread, uint32_t i, struct band_lines y)
{
    const int64_t line = line_of_y(thread->bands->convs[i]);
    struct band_lines *stored = &thread->stored[i];
    const int64_t reused = byi_max(byi_min(stored->end, y.end) - y.from, 0);
    const struct band_lines missing = {y.from + reused, y.end};
    if (is_ring(thread->bands, i)) {
        run_ring_lines(thread, i, missing);
    } else {
        memmove(thread->at[i], thread->at[i] + (y.from - stored->from) * line,
                (size_t)(reused * line) * sizeof(float));
        if (missing.from < missing.end)
            run_lines(thread, i, missing, thread->at[i] + reused * line);
    }
    *stored = y;
}

/* Compute lines `band` of the last result, after the lines of intermediate
 * results that these lines depend on. */
static void run_band(struct band_thread *thread, struct band_lines band)
{
    const struct byi_f32_bands *bands = thread->bands;
    const uint32_t last = bands->n - 1;
    const struct byi_f32_conv *conv = bands->convs[last];
    struct band_lines y[BYI_F32_MAX_BAND_CONVS];
    y[last] = band;
    for (uint32_t i = last; i-- > 0;)
        y[i] = lines_under(bands->convs[i + 1], y[i + 1]);
    for (uint32_t i = 0; i < last; i++)
        advance(thread, i, y[i]);
    run_lines(thread, last, band,
              thread->runs[last].y +
                  (thread->image * conv->out[1] + band.from) * line_of_y(conv));
}

/* Compute lines [begin, end) of the last result; lines are numbered through all
 * images. */
static void run_share(const struct byi_f32_bands *bands,
                      const struct byi_f32_conv_run *runs, int64_t begin,
                      int64_t end, char *scratch)
{
    const int64_t image_lines = bands->convs[bands->n - 1]->out[1];
    struct band_thread thread = {
        .bands = bands, .runs = runs, .scratch = scratch};
    scratch += bands->kernel_scratch;
    for (uint32_t i = 0; i + 1 < bands->n; i++) {
        thread.at[i] = (float *)(void *)scratch;
        scratch += result_bytes(bands, i);
    }
    while (begin < end) {
        const int64_t from = begin % image_lines;
        const int64_t lines = byi_min(image_lines - from, end - begin);
        const int64_t n = byi_ceil_div(lines, bands->band_lines);
        thread.image = begin / image_lines;
        memset(thread.stored, 0, sizeof thread.stored);
        for (int64_t i = 0; i < n; i++)
            run_band(&thread, (struct band_lines){from + lines * i / n,
                                                  from + lines * (i + 1) / n});
        begin += lines;
    }
}

void byi_f32_bands_run(const struct byi_f32_bands *bands,
                       const struct byi_f32_conv_run *runs, void *scratch,
                       int threads)
{
    const struct byi_f32_conv *last = bands->convs[bands->n - 1];
    const int64_t total_lines = last->images * last->out[1];
    const int64_t team = byi_min(threads, total_lines);
    char *at = (char *)(uintptr_t)byi_align_bytes((uintptr_t)scratch);
#pragma omp parallel for num_threads((int)team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < team; i++)
        run_share(bands, runs, total_lines * i / team,
                  total_lines * (i + 1) / team,
                  at + (uint64_t)i * bands->per_thread);
}
