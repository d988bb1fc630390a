/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/strips.c: runs convolutions and products of float16 and bfloat16 data
 * on the float32 kernels. The result is divided into strips of lines or of
 * images, whose float32 copies fit in the second-level cache:
 *
 *   x -widen-> strip of x -kernel, epilogue-> strip of y -narrow-> y
 *
 * A strip of planes has lines of each plane. A value is rounded once, after the
 * epilogue. Weights are packed as float32, since converting them for every tile
 * would cost more than reading them, except if a vector is multiplied by a
 * matrix. */
#include "kernels/conv.h"

enum {
    /* unit of a strip's lines, since a tile of Winograd's F(4 x 4) has 4 */
    TILE_LINES = 4,
    PIECE = 1 << 14,        /* elements that a thread converts at a time */
    FIRST_CACHE = 32 << 10, /* bytes of the first-level cache */
};

/* The strips of a convolution. */
struct strips {
    const struct byi_f32_conv *conv;
    bool lines;          /* a unit is a line of an image; otherwise an image */
    int64_t units;       /* to divide: lines of an image, or all images */
    int64_t strip_units; /* units of a strip; the last may have fewer */
    int64_t unit_strips, n;  /* strips of `units`; strips of the convolution */
    int64_t positions;       /* positions of the result in a unit */
    enum byi_f32_type reads; /* not 0: the kernel converts x of this type */
    /* A copy of x for the kernels of tiles.c has `position_floats` floats for a
     * position, and `pitch` positions from one line to the next. The copy
     * does not exist if position_floats is 0. It has no padding if pitch is 0.
     */
    int64_t position_floats, pitch;
    enum byi_f32_type writes; /* not 0: the kernel writes y in this type */
    bool together; /* all threads compute one strip after the other */
    /* bytes of a thread's scratch: of scaled x, of the copies of x, y, operands
     * and bias, of the kernel's scratch, and of all of them */
    uint64_t scaled, x, y, operands[BYI_F32_EPILOGUE_OPS], bias, kernel,
        per_thread;
};

/* One strip. */
struct strip {
    struct byi_f32_conv conv;
    int64_t x;   /* index of its first element in x */
    int64_t row; /* its first position in y */
};

static uint64_t float_bytes(int64_t n)
{
    return byi_align_bytes((uint64_t)n * sizeof(float));
}

int64_t byi_f32_lines_read(const struct byi_f32_conv *conv, int64_t lines)
{
    return byi_min(conv->in[1], (lines - 1) * conv->stride[1] +
                                    (conv->size[1] - 1) * conv->dilation[1] +
                                    1);
}

int64_t byi_f32_cut_lines(const struct byi_f32_conv *conv, int64_t first,
                          int64_t lines, struct byi_f32_conv *strip)
{
    const int64_t at = first * conv->stride[1] - conv->pad[1];
    const int64_t from = byi_min(byi_max(at, 0), conv->in[1]);
    const int64_t end =
        byi_min(byi_max(at + (lines - 1) * conv->stride[1] +
                            (conv->size[1] - 1) * conv->dilation[1] + 1,
                        from),
                conv->in[1]);
    *strip = *conv;
    strip->images = 1;
    strip->in[1] = end - from;
    strip->out[1] = lines;
    strip->pad[1] = from - at;
    return from;
}

static int64_t x_floats(const struct strips *s, int64_t units)
{
    const struct byi_f32_conv *conv = s->conv;
    const int64_t floats =
        s->position_floats ? s->position_floats : conv->channels;
    if (s->reads)
        return 0;
    if (s->pitch)
        return byi_f32_tiles_positions(conv, units) * floats;
    return s->lines ? byi_f32_lines_read(conv, units) * conv->in[2] * floats
                    : units * byi_f32_product_of(conv->in) * floats;
}

static int64_t y_floats(const struct strips *s, int64_t units)
{
    return units * s->positions * s->conv->outputs;
}

/* Elements of an operand, from the first to the last that `rows` positions of
 * the result read. The positions begin at a multiple of `repeat`, or all of
 * them read the same row of the operand. */
static int64_t operand_floats(const struct byi_f32_conv *conv,
                              const struct byi_f32_epilogue_op *op,
                              int64_t rows)
{
    return (byi_ceil_div(rows, op->repeat) - 1) * op->row +
           (op->column ? (conv->outputs - 1) * op->column : 0) + 1;
}

/* Bytes that a strip should have: a quarter of the second-level cache; half of
 * the first-level cache if only the result is copied. Every strip reads all
 * weights, so there is one strip if the weights are larger than the data. */
static int64_t best_bytes(const struct strips *s)
{
    const int64_t data = (x_floats(s, s->units) + y_floats(s, s->units)) *
                         (s->lines ? s->conv->images : 1);
    if (s->reads && s->conv->algorithm == BYI_F32_DEPTHWISE)
        return FIRST_CACHE / 2;
    return (int64_t)byi_f32_conv_packed(s->conv) > data * 4
               ? INT64_MAX / 2
               : s->conv->cache / 4;
}

/* Number of units of a strip: at least one tile, and few enough that every
 * thread has a strip. */
static int64_t choose_units(const struct strips *s, int threads)
{
    const int64_t step = s->lines && !s->reads ? TILE_LINES : 1;
    const int64_t most = best_bytes(s) / (int64_t)sizeof(float);
    const int64_t extra = x_floats(s, 2) - x_floats(s, 1);
    const int64_t unit = byi_max(extra + y_floats(s, 1), 1);
    int64_t units = (most - x_floats(s, 1) + extra) / unit;
    if (!s->together)
        units = byi_min(units, byi_ceil_div(s->units, threads));
    if (units >= s->units)
        return s->units;
    units = byi_max(units / step, 1) * step;
    const int64_t n = byi_ceil_div(s->units, units);
    units = byi_ceil_div(byi_ceil_div(s->units, n), step) * step;
    return byi_min(units, s->units);
}

static struct strips divide_strips(const struct byi_f32_conv *conv, int threads)
{
    struct strips s = {.conv = conv, .lines = byi_f32_has_lines(conv)};
    const int team = byi_f32_conv_team(conv, threads);
    s.positions = s.lines ? conv->out[2] : byi_f32_product_of(conv->out);
    s.units = s.lines ? conv->out[1] : conv->images;
    /* If threads compute a strip together, each reads a share of the weights.
     */
    s.together =
        team > 1 && (byi_f32_conv_packed(conv) > (uint64_t)conv->cache / 2 ||
                     s.units < team * (s.lines ? TILE_LINES : 1));
    if (conv->algorithm == BYI_F32_TILES) {
        s.position_floats = byi_f32_tiles_floats(conv);
        s.pitch = byi_f32_tiles_pitch(conv);
        s.writes = byi_f32_tiles_write(conv) ? conv->type : BYI_F32_WIDE;
    }
    if ((conv->algorithm == BYI_F32_TILES && !s.position_floats) ||
        (conv->algorithm == BYI_F32_DEPTHWISE &&
         conv->kernels->depthwise[conv->type]))
        s.reads = conv->type;
    s.strip_units = choose_units(&s, team);
    s.unit_strips = byi_ceil_div(s.units, s.strip_units);
    s.n = s.lines ? conv->images * s.unit_strips : s.unit_strips;
    return s;
}

static struct strip strip_at(const struct strips *s, int64_t i)
{
    const struct byi_f32_conv *conv = s->conv;
    const int64_t first = i % s->unit_strips * s->strip_units,
                  image = i / s->unit_strips;
    const int64_t units = byi_min(s->strip_units, s->units - first);
    struct strip strip = {.conv = *conv};
    if (!s->lines) {
        strip.conv.images = units;
        strip.x = first * byi_f32_product_of(conv->in) * conv->channels;
        strip.row = first * s->positions;
    } else {
        const int64_t from = byi_f32_cut_lines(conv, first, units, &strip.conv);
        strip.x = (image * conv->in[1] * conv->channels +
                   from * (conv->planar ? 1 : conv->channels)) *
                  conv->in[2];
        strip.row = (image * conv->out[1] + first) * conv->out[2];
    }
    strip.conv.type = BYI_F32_WIDE;
    strip.conv.scales = false;
    strip.conv.in_strips = s->units > 1;
    strip.conv.x_type = s->position_floats ? conv->type : s->reads;
    strip.conv.y_type = s->writes;
    strip.conv.pitch = s->pitch;
    return strip;
}

/* Bytes of the largest scratch that the kernel needs for a strip. Strips differ
 * only if they are at the border. */
static uint64_t kernel_bytes(const struct strips *s, int threads)
{
    uint64_t most = 0;
    const int64_t indices[] = {0, 1, s->unit_strips - 2, s->unit_strips - 1};
    for (size_t t = 0; t < BYI_COUNT(indices); t++) {
        if (indices[t] < 0 || indices[t] >= s->unit_strips)
            continue;
        const struct strip strip = strip_at(s, indices[t]);
        const uint64_t bytes = byi_f32_conv_scratch(&strip.conv, threads);
        most = bytes > most ? bytes : most;
    }
    return byi_align_bytes(most);
}

/* Divide a convolution into strips, and compute the sizes of the scratch. */
static struct strips plan(const struct byi_f32_conv *conv, int threads)
{
    struct strips s = divide_strips(conv, threads);
    s.x = float_bytes(x_floats(&s, s.strip_units));
    s.y = s.writes ? 0 : float_bytes(y_floats(&s, s.strip_units));
    s.bias = float_bytes(conv->outputs);
    s.scaled = conv->scales
                   ? byi_align_bytes((uint64_t)(s.strip_units * s.positions *
                                                conv->channels) *
                                     sizeof(uint16_t))
                   : 0;
    s.per_thread = s.scaled + s.x + s.y + s.bias;
    for (uint32_t i = 0; i < conv->n_epilogue; i++) {
        if (!conv->epilogue[i].unary && !s.writes)
            s.operands[i] = float_bytes(operand_floats(
                conv, &conv->epilogue[i], s.strip_units * s.positions));
        s.per_thread += s.operands[i];
    }
    s.kernel = kernel_bytes(&s, s.together ? threads : 1);
    s.per_thread += s.kernel;
    return s;
}

uint64_t byi_f32_strips_scratch(const struct byi_f32_conv *conv, int threads)
{
    uint64_t most = 0;
    for (int n = 1; n <= threads; n++) { /* a run may have fewer threads */
        const struct strips s = plan(conv, n);
        const uint64_t bytes = s.per_thread * (uint64_t)(s.together ? 1 : n);
        most = bytes > most ? bytes : most;
    }
    return most + BYI_ALIGN;
}

/* Convert n elements on several threads. */
static void widen(const struct byi_f32_conv *conv, const uint16_t *from,
                  float *to, int64_t n, int threads)
{
    const int64_t pieces = byi_ceil_div(n, PIECE);
#pragma omp parallel for num_threads(threads) if (threads > 1 && pieces > 2)   \
    schedule(static)
    for (int64_t i = 0; i < pieces; i++)
        conv->kernels->widen[conv->type - 1](from + i * PIECE, to + i * PIECE,
                                             byi_min(PIECE, n - i * PIECE));
}

/* Widen the strip of x that begins at `from`. */
static void widen_strip(const struct byi_f32_conv *conv,
                        const struct strip *strip, const uint16_t *from,
                        float *to, int threads)
{
    const int64_t plane = conv->in[1] * conv->in[2];
    const int64_t n = strip->conv.in[1] * conv->in[2];
    int64_t planes = strip->conv.images * conv->channels;
    if (!conv->planar || n == plane) {
        widen(conv, from, to, planes * byi_f32_product_of(strip->conv.in),
              threads);
        return;
    }
    for (; planes > 0; planes--, from += plane, to += n)
        widen(conv, from, to, n, threads);
}

static void narrow(const struct byi_f32_conv *conv, const float *from,
                   uint16_t *to, int64_t n, int threads)
{
    const int64_t pieces = byi_ceil_div(n, PIECE);
#pragma omp parallel for num_threads(threads) if (threads > 1 && pieces > 2)   \
    schedule(static)
    for (int64_t i = 0; i < pieces; i++)
        conv->kernels->narrow[conv->type - 1](from + i * PIECE, to + i * PIECE,
                                              byi_min(PIECE, n - i * PIECE));
}

/* Take `bytes` from the scratch. */
static float *take_bytes(char **scratch, uint64_t bytes)
{
    float *at = (float *)(void *)*scratch;
    *scratch += bytes;
    return at;
}

/* The address of element i of a narrow tensor. */
static const uint16_t *number_at(const float *from, int64_t i)
{
    return (const uint16_t *)(const void *)from + i;
}

/* Widen the operands of the strip's epilogue; operands that the kernel
 * reads in their own type are not copied. */
static void prepare_operands(const struct strips *s, const struct strip *strip,
                             const struct byi_f32_conv_run *caller_run,
                             char **scratch, struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = s->conv;
    const int64_t rows =
        strip->conv.images * byi_f32_product_of(strip->conv.out);
    for (uint32_t p = 0; p < conv->n_epilogue; p++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[p];
        if (op->unary)
            continue;
        const uint16_t *from = number_at(caller_run->operands[op->operand],
                                         strip->row / op->repeat * op->row);
        float *operand = take_bytes(scratch, s->operands[p]);
        if (!s->writes)
            widen(conv, from, operand, operand_floats(conv, op, rows),
                  run->threads);
        run->operands[op->operand] =
            s->writes ? (const float *)(const void *)from : operand;
    }
}

/* Multiply a strip of x by the scale of its images. */
static void scale(const struct strip *strip, const struct byi_f32_conv *conv,
                  const struct byi_f32_conv_run *caller_run, uint16_t *to,
                  int threads)
{
    const int64_t c = conv->channels,
                  image_positions = byi_f32_product_of(conv->in);
    const int64_t first = strip->x / c; /* position */
    const int64_t n = strip->conv.images * byi_f32_product_of(strip->conv.in);
    const int64_t piece = byi_ceil_div(PIECE, c),
                  pieces = byi_ceil_div(n, piece);
#pragma omp parallel for num_threads(threads) if (threads > 1 && pieces > 2)   \
    schedule(static)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t at = i * piece;
        const int64_t end = byi_min(at + piece, n);
        while (at < end) { /* one image after the other */
            const int64_t image = (first + at) / image_positions;
            const int64_t rows =
                byi_min(end, (image + 1) * image_positions - first) - at;
            conv->kernels->scale[conv->type - 1](
                number_at(caller_run->x, (first + at) * c),
                number_at(caller_run->scale, image * conv->scale_image), rows,
                c, to + at * c);
            at += rows;
        }
    }
}

static void run_strip(const struct strips *s,
                      const struct byi_f32_conv_run *caller_run, int64_t i,
                      char *scratch, int threads)
{
    const struct byi_f32_conv *conv = s->conv;
    const struct strip strip = strip_at(s, i);
    const int64_t rows = strip.conv.images * byi_f32_product_of(strip.conv.out);
    struct byi_f32_conv_run run = *caller_run;
    uint16_t *scaled = (uint16_t *)(void *)take_bytes(&scratch, s->scaled);
    float *x = take_bytes(&scratch, s->x), *y = take_bytes(&scratch, s->y);
    float *bias = take_bytes(&scratch, s->bias);
    uint16_t *to =
        (uint16_t *)(void *)caller_run->y + strip.row * conv->outputs;
    run.conv = &strip.conv;
    run.x = x;
    run.y = s->writes ? (float *)(void *)to : y;
    run.threads = threads;
    const uint16_t *from = number_at(caller_run->x, strip.x);
    if (conv->scales) {
        scale(&strip, conv, caller_run, scaled, threads);
        from = scaled;
    }
    if (s->reads)
        run.x = (const float *)(const void *)from;
    else if (s->position_floats)
        byi_f32_tiles_copy(&strip.conv, from, x, threads);
    else
        widen_strip(conv, &strip, from, x, threads);
    if (caller_run->bias) {
        widen(conv, number_at(caller_run->bias, 0), bias, conv->outputs, 1);
        run.bias = bias;
    }
    prepare_operands(s, &strip, caller_run, &scratch, &run);
    run.scratch = scratch;
    byi_f32_conv_run(&run);
    if (!s->writes)
        narrow(conv, y, to, rows * conv->outputs, threads);
}

void byi_f32_strips_run(const struct byi_f32_conv_run *run)
{
    const int team = byi_f32_conv_team(run->conv, run->threads);
    const struct strips s = plan(run->conv, team);
    char *scratch = (char *)(uintptr_t)byi_align_bytes((uintptr_t)run->scratch);
    if (s.together) {
        for (int64_t i = 0; i < s.n; i++)
            run_strip(&s, run, i, scratch, team);
        return;
    }
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t t = 0; t < team; t++)
        for (int64_t i = s.n * t / team; i < s.n * (t + 1) / team; i++)
            run_strip(&s, run, i, scratch + (uint64_t)t * s.per_thread, 1);
}
