/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c: compares optimised implementations of operators with plain ones and
 * with oneDNN. They run in turns in one process for each of SSE4.2, AVX2 and
 * AVX-512 that the machine has. Prints a table in Markdown.
 *
 *     forms [--threads N] resize|tables|math|sparse|idct|warps
 *
 * Exits with 1 if a benchmark fails, and with 2 for wrong arguments.
 */
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/isa.h"
#include "core/ops/dct.h"
#include "core/ops/resample.h"

enum { ROUNDS = 21 };

static uint32_t n_threads = 1;
static const char *const isas[] = {"sse4.2", "avx2", "avx512"};

/* --- in turns ------------------------------------------------------------- */

/* One implementation of an operator. */
struct variant {
    double (*run)(void *ctx); /* runs it once and returns the seconds */
    void *ctx;
    double times[ROUNDS]; /* seconds of a run in each round */
};

/* Run the variants in turns. Replaces times[0] of each by the median of its
 * times, and sets ratios[] to the medians of each round's ratio to variant 0.
 */
static void measure(struct variant *variants, uint32_t n, double *ratios)
{
    double list[ROUNDS], first = 0;
    for (uint32_t i = 0; i < 2 * n; i++)
        first = variants[i % n].run(variants[i % n].ctx);
    const int repeat = first > 2e-3 ? 1 : (int)(2e-3 / first) + 1;
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < n; i++) {
            variants[i].times[round] = 0;
            for (int k = 0; k < repeat; k++)
                variants[i].times[round] +=
                    variants[i].run(variants[i].ctx) / repeat;
        }
    for (uint32_t i = 0; i < n; i++) {
        for (int round = 0; round < ROUNDS; round++)
            list[round] = variants[i].times[round] / variants[0].times[round];
        ratios[i] = bench_median(list, ROUNDS);
    }
    for (uint32_t i = 0; i < n; i++)
        variants[i].times[0] = bench_median(variants[i].times, ROUNDS);
}

static double run_side(void *ctx)
{
    return bench_run(ctx);
}

static void check(enum byoc_status status, const struct byoc_error *err)
{
    if (status == BYOC_OK)
        return;
    fprintf(stderr, "forms: %s\n", err->text);
    bench_folder_remove();
    exit(2);
}

/* Compile the text twice: the second time without the passes `disable`, and
 * with the additional passes `add`. Either list may be NULL. */
static void compile_both(const char *text, const char *const *disable,
                         const char *const *add, struct bench_side both[2])
{
    static const char *const none[] = {NULL};
    for (int i = 0; i < 2; i++) {
        const struct byoc_compile_params params = {
            .backends = none,
            .disable = i ? disable : NULL,
            .add_passes = i ? add : NULL};
        bench_open_text(text, i ? "plain" : "fast", &params, n_threads,
                        &both[i]);
    }
}

/* Limit oneDNN to the instruction set `isa`. */
static void limit_backend(const char *isa)
{
    setenv("ONEDNN_MAX_CPU_ISA",
           strcmp(isa, "avx512") == 0 ? "AVX512_CORE"
           : strcmp(isa, "avx2") == 0 ? "AVX2"
                                      : "SSE41",
           1);
}

/* Compile the text three times: native with `options`, native without the pass
 * `without`, and for oneDNN without this pass. */
static void compile_three(const char *text, const char *const *options,
                          const char *without, struct bench_side sides[3])
{
    const char *const disable[] = {without, NULL};
    static const char *const none[] = {NULL}, *const dnnl[] = {"dnnl", NULL};
    static const char *const names[] = {"fast", "plain", "backend"};
    for (int i = 0; i < 3; i++) {
        const struct byoc_compile_params params = {
            .backends = i == 2 ? dnnl : none,
            .options = i ? NULL : options,
            .disable = i ? disable : NULL};
        bench_open_text(text, names[i], &params, n_threads, &sides[i]);
    }
}

static void measure_three(struct bench_side sides[3],
                          struct variant variants[3], double ratios[3])
{
    for (int i = 0; i < 3; i++)
        variants[i] = (struct variant){run_side, &sides[i], {0}};
    measure(variants, 3, ratios);
    for (int i = 0; i < 3; i++)
        bench_close(&sides[i]);
}

/* --- resize --------------------------------------------------------------- */

struct resize {
    const char *mode, *coordinates;
    bool antialias;
    int64_t channels, in, out; /* in and out: height and width */
};

static const struct resize resizes[] = {
    {"nearest", "half_pixel", false, 64, 56, 112},
    {"linear", "half_pixel", false, 64, 56, 112},
    {"linear", "half_pixel", false, 256, 13, 26},
    {"linear", "half_pixel", false, 3, 512, 224},
    {"linear", "align_corners", false, 19, 65, 513},
    {"cubic", "half_pixel", false, 3, 224, 672},
    {"linear", "half_pixel", true, 3, 512, 224},
    {"cubic", "half_pixel", true, 3, 1024, 224},
};

/* A resize in a single pass: a plain loop that computes every output as a sum
 * over its window, compiled for the baseline instruction set. */
struct single {
    struct byi_resample r;
    struct byi_tensor x, y;
    struct byi_tensor
        sizes;       /* the operand of the resize, whose data are dims */
    int64_t dims[4]; /* the shape of y */
};

/* nh and nw are the numbers of taps, which inlining makes constant. */
static inline __attribute__((always_inline)) void single_pass(
    const struct single *s, int64_t nh, int64_t nw)
{
    const struct byi_taps *h = &s->r.axes[2], *w = &s->r.axes[3];
    const float *x = s->x.data, *wh = h->weight, *ww = w->weight;
    float *y = s->y.data;
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1)
    for (int64_t row = 0; row < s->x.dims[1] * h->out; row++) {
        const int64_t i = row % h->out;
        const float *plane = x + (row / h->out * h->in + h->first[i]) * w->in;
        for (int64_t j = 0; j < w->out; j++) {
            const float *from = plane + w->first[j];
            float sum = nh == 1 ? *from : 0;
            for (int64_t a = 0; a < nh && nh > 1; a++)
                for (int64_t b = 0; b < nw; b++)
                    sum += wh[i * h->stride_j + a * h->stride_t] *
                           ww[j * w->stride_j + b * w->stride_t] *
                           from[a * w->in + b];
            y[row * w->out + j] = sum;
        }
    }
}

static double run_single(void *ctx)
{
    const struct single *s = ctx;
    const int64_t nh = s->r.axes[2].n, nw = s->r.axes[3].n;
    const double start = bench_now();
    if (nh == 1)
        single_pass(s, 1, 1);
    else if (nh == 2)
        single_pass(s, 2, 2);
    else if (nh == 4)
        single_pass(s, 4, 4);
    else
        single_pass(s, nh, nw);
    return bench_now() - start;
}

static void make_single(const struct resize *r, const DLTensor *in,
                        struct byi_arena *arena, struct single *s)
{
    const struct byi_attr attr_list[] = {
        {.name = "mode", .kind = BYI_ATTR_STRING, .s = r->mode},
        {.name = "coordinate_transformation_mode",
         .kind = BYI_ATTR_STRING,
         .s = r->coordinates},
        {.name = "antialias", .kind = BYI_ATTR_BOOL, .i = r->antialias},
    };
    const struct byi_attrs *attrs;
    struct byoc_error err;
    *s = (struct single){
        .dims = {1, r->channels, r->out, r->out},
        .x = {.data = in->data, .dtype = BYOC_F32, .rank = 4},
        .y = {.dtype = BYOC_F32, .rank = 4},
        .sizes = {.dtype = BYOC_I64, .rank = 1, .dims = {4}},
    };
    const int64_t n = r->channels * r->out * r->out;
    memcpy(s->x.dims, in->shape, sizeof s->dims);
    memcpy(s->y.dims, s->dims, sizeof s->dims);
    s->sizes.data = s->dims;
    s->y.data = byi_arena_alloc(arena, (size_t)n * sizeof(float));
    check(byi_attrs_make(arena, byi_op(BYI_OP_RESIZE), attr_list,
                         BYI_COUNT(attr_list), &attrs, &err),
          &err);
    s->r = (struct byi_resample){.op = BYI_OP_RESIZE,
                                 .attrs = attrs,
                                 .x = &s->x,
                                 .y = &s->y,
                                 .target = &s->sizes};
    const uint64_t bytes = byi_resample_plan(&s->r, NULL);
    byi_resample_plan(&s->r, byi_arena_alloc(arena, (size_t)bytes));
    check(byi_resample_fill(&s->r, &err), &err);
}

static void bench_resize(const char *isa, const struct resize *r)
{
    static const char *const fuse[] = {"FuseOps", NULL};
    static struct bench_side both[2];
    struct byi_arena *arena = byi_arena_new();
    struct single single;
    double ratios[3];
    compile_both(
        byi_arena_printf(
            arena,
            "def @main(%%x: Tensor[(1, %lld, %lld, %lld), float32]) -> "
            "Tensor[(1, %lld, %lld, %lld), float32] {\n"
            "  image.resize(%%x, [1, %lld, %lld, %lld], mode=\"%s\", "
            "coordinate_transformation_mode=\"%s\", antialias=%s)\n}\n",
            (long long)r->channels, (long long)r->in, (long long)r->in,
            (long long)r->channels, (long long)r->out, (long long)r->out,
            (long long)r->channels, (long long)r->out, (long long)r->out,
            r->mode, r->coordinates, r->antialias ? "true" : "false"),
        fuse, NULL, both);
    make_single(r, &both[0].in[0], arena, &single);
    struct variant variants[] = {{run_side, &both[0], {0}},
                                 {run_side, &both[1], {0}},
                                 {run_single, &single, {0}}};
    measure(variants, 3, ratios);
    printf("| %s | %s%s | %s | %lldx%lld^2 to %lld^2 | %.1f | %.1f | %.1f | "
           "%.2f | %.2f |\n",
           isa, r->mode, r->antialias ? " antialias" : "", r->coordinates,
           (long long)r->channels, (long long)r->in, (long long)r->out,
           1e6 * variants[0].times[0], 1e6 * variants[1].times[0],
           1e6 * variants[2].times[0], ratios[1], ratios[2]);
    bench_close(&both[0]);
    bench_close(&both[1]);
    byi_arena_free(&arena);
}

static void bench_resizes(const char *isa)
{
    for (size_t i = 0; i < BYI_COUNT(resizes); i++)
        bench_resize(isa, &resizes[i]);
}

/* --- functions ------------------------------------------------------------ */

/* An elementwise function: the name of its operator, and the number of
 * elements.
 */
struct function {
    const char *call;
    int64_t n;
};

/* Compare three implementations of a function between dequantize and quantize:
 * a table, fused native code, and oneDNN. */
static void bench_table(const char *isa, const struct function *f)
{
    static struct bench_side sides[3];
    struct variant variants[3];
    double ratios[3];
    char text[600];
    snprintf(text, sizeof text,
             "def @main(%%x: Tensor[(%lld), uint8]) {\n"
             "  %%0 = qnn.dequantize(%%x, 0.05f, cast(128, dtype=\"uint8\"));\n"
             "  %%1 = %s(%%0);\n"
             "  qnn.quantize(%%1, 0.01f, cast(9, dtype=\"uint8\"))\n}\n",
             (long long)f->n, f->call);
    limit_backend(isa);
    compile_three(text, NULL, "Tabulate", sides);
    measure_three(sides, variants, ratios);
    printf("| %s | %s | %lld | %.1f | %.1f | %.1f | %.2f | %.2f |\n", isa,
           f->call, (long long)f->n, 1e6 * variants[0].times[0],
           1e6 * variants[1].times[0], 1e6 * variants[2].times[0], ratios[1],
           ratios[2]);
}

static void bench_function(const char *isa, const struct function *f)
{
    static const char *const exact[] = {"ExactMath", NULL};
    static struct bench_side both[2];
    double ratios[2];
    char text[200];
    snprintf(text, sizeof text,
             "def @main(%%x: Tensor[(%lld), float32]) {\n  %s(%%x)\n}\n",
             (long long)f->n, f->call);
    compile_both(text, NULL, exact, both);
    struct variant variants[] = {{run_side, &both[0], {0}},
                                 {run_side, &both[1], {0}}};
    measure(variants, 2, ratios);
    printf("| %s | %s | %lld | %.1f | %.1f | %.2f |\n", isa, f->call,
           (long long)f->n, 1e6 * variants[0].times[0],
           1e6 * variants[1].times[0], ratios[1]);
    bench_close(&both[0]);
    bench_close(&both[1]);
}

static void bench_tables(const char *isa)
{
    static const struct function functions[] = {
        {"sigmoid", 100000}, {"tanh", 100000}, {"erf", 100000},
        {"exp", 100000},     {"exp", 4000000},
    };
    for (size_t i = 0; i < BYI_COUNT(functions); i++)
        bench_table(isa, &functions[i]);
}

static void bench_math(const char *isa)
{
    static const struct function functions[] = {
        {"exp", 100000},     {"log", 100000}, {"tanh", 100000},
        {"sigmoid", 100000}, {"erf", 100000}, {"rsqrt", 100000},
    };
    for (size_t i = 0; i < BYI_COUNT(functions); i++)
        bench_function(isa, &functions[i]);
}

/* --- sparse weights ------------------------------------------------------- */

/* A product with weights of which `zeros` percent are zero, in blocks of
 * `block` outputs. If size is 0, it is nn.dense with `rows` rows. Otherwise it
 * is a convolution with a window of kernel^2 on an image of size^2 positions.
 */
struct pruned {
    int64_t rows, k, n, kernel, size, block, zeros;
};

static const struct pruned pruned_products[] = {
    {128, 768, 768, 0, 0, 1, 50},  {128, 768, 768, 0, 0, 1, 70},
    {128, 768, 768, 0, 0, 1, 80},  {128, 768, 768, 0, 0, 1, 90},
    {128, 768, 768, 0, 0, 1, 95},  {128, 768, 768, 0, 0, 4, 50},
    {128, 768, 768, 0, 0, 4, 70},  {128, 768, 768, 0, 0, 4, 90},
    {16, 1024, 1024, 0, 0, 1, 90}, {8, 1024, 1024, 0, 0, 1, 90},
    {0, 256, 256, 1, 28, 1, 70},   {0, 256, 256, 1, 28, 1, 90},
    {0, 512, 512, 1, 14, 1, 90},   {0, 512, 512, 1, 14, 4, 80},
    {0, 128, 128, 3, 28, 1, 90},   {0, 256, 256, 3, 14, 1, 90},
};

/* Return the text of the module. Its weights are products of random numbers
 * with zeros and ones, which constant folding computes. */
static char *print_pruned(struct byi_arena *arena, const struct pruned *p)
{
    const long long k = p->k * (p->size ? p->kernel * p->kernel : 1);
    const long long n = p->n, bands = p->n / p->block, size = p->size;
    const long long kernel = p->kernel, pad = p->kernel / 2;
    const char *type =
        size ? byi_arena_printf(arena, "(1, %lld, %lld, %lld)", (long long)p->k,
                                size, size)
             : byi_arena_printf(arena, "(%lld, %lld)", (long long)p->rows,
                                (long long)p->k);
    const char *product =
        size ? byi_arena_printf(
                   arena,
                   "  %%6 = reshape(%%5, [%lld, %lld, %lld, %lld]);\n"
                   "  nn.conv2d(%%x, %%6, padding=[%lld, %lld, %lld, %lld])\n",
                   n, (long long)p->k, kernel, kernel, pad, pad, pad, pad)
             : "  nn.dense(%x, %5)\n";
    return byi_arena_printf(
        arena,
        "def @main(%%x: Tensor[%s, float32]) {\n"
        "  %%0 = random[(%lld, 1, %lld), float32, seed=7];\n"
        "  %%1 = greater(%%0, %.4ff);\n"
        "  %%2 = cast(%%1, dtype=\"float32\");\n"
        "  %%3 = random[(%lld, %lld, %lld), float32, seed=1];\n"
        "  %%4 = multiply(%%3, %%2);\n"
        "  %%5 = reshape(%%4, [%lld, %lld]);\n%s}\n",
        type, bands, k, (double)p->zeros / 50 - 1, bands, (long long)p->block,
        k, n, k, product);
}

static void bench_pruned(const char *isa, const struct pruned *p)
{
    static const char *const any_share[] = {"SparseWeights.most=100", NULL};
    static struct bench_side sides[3];
    struct byi_arena *arena = byi_arena_new();
    struct variant variants[3];
    double ratios[3];
    limit_backend(isa);
    compile_three(print_pruned(arena, p), any_share, "SparseWeights", sides);
    measure_three(sides, variants, ratios);
    if (p->size)
        printf("| %s | conv%lld %lldx%lld->%lld |", isa, (long long)p->kernel,
               (long long)p->k, (long long)p->size, (long long)p->n);
    else
        printf("| %s | dense %lldx%lldx%lld |", isa, (long long)p->rows,
               (long long)p->k, (long long)p->n);
    printf(" %lld%% | %lldx1 | %.1f | %.1f | %.1f | %.2f | %.2f |\n",
           (long long)p->zeros, (long long)p->block, 1e6 * variants[0].times[0],
           1e6 * variants[1].times[0], 1e6 * variants[2].times[0], ratios[1],
           ratios[2]);
    byi_arena_free(&arena);
}

static void bench_sparse(const char *isa)
{
    for (size_t i = 0; i < BYI_COUNT(pruned_products); i++)
        bench_pruned(isa, &pruned_products[i]);
}

/* --- inverse DCT ---------------------------------------------------------- */

/* An inverse DCT along `axes` axes of 8x8 blocks, in which only the first
 * n_kept x n_kept coefficients are not zero. */
struct coefficients {
    int64_t blocks, n_kept;
    int axes;
};

static const struct coefficients transforms[] = {
    {4096, 8, 2}, {4096, 4, 2}, {4096, 2, 2}, {4096, 1, 2},
    {4096, 8, 1}, {4096, 4, 1}, {64, 4, 2},
};

static void print_basis(struct byi_text *text, const char *name,
                        bool transposed)
{
    byi_text_addf(text, "  %s = reshape([", name);
    for (int i = 0; i < BYI_DCT * BYI_DCT; i++) {
        const int row = i / BYI_DCT, column = i % BYI_DCT;
        byi_text_addf(text, "%s%.9g", i ? ", " : "",
                      transposed ? byi_dct[column][row] : byi_dct[row][column]);
    }
    byi_text_addf(text, "], [8, 8]);\n");
}

static void clear_coefficients(const DLTensor *in, int64_t n_kept)
{
    float *at = in->data;
    for (int64_t i = 0; i < in->shape[0] * BYI_DCT * BYI_DCT; i++)
        if (i % BYI_DCT >= n_kept || i / BYI_DCT % BYI_DCT >= n_kept)
            at[i] = 0;
}

static void bench_transform(const char *isa, const struct coefficients *c)
{
    static struct bench_side sides[3];
    struct variant variants[3];
    double ratios[3];
    struct byi_text text = {0};
    byi_text_addf(&text, "def @main(%%x: Tensor[(%lld, 8, 8), float32]) {\n",
                  (long long)c->blocks);
    print_basis(&text, "%0", false);
    print_basis(&text, "%1", true);
    byi_text_addf(&text, c->axes == 2 ? "  %%2 = nn.matmul(%%x, %%0);\n"
                                        "  nn.matmul(%%1, %%2)\n}\n"
                                      : "  nn.matmul(%%x, %%0)\n}\n");
    limit_backend(isa);
    compile_three(text.at, NULL, "InverseDct", sides);
    byi_text_free(&text);
    for (int i = 0; i < 3; i++)
        clear_coefficients(&sides[i].in[0], c->n_kept);
    measure_three(sides, variants, ratios);
    printf(
        "| %s | %s | %lld | %lldx%lld | %.1f | %.1f | %.1f | %.2f | %.2f |\n",
        isa, c->axes == 2 ? "both axes" : "rows", (long long)c->blocks,
        (long long)c->n_kept, (long long)c->n_kept, 1e6 * variants[0].times[0],
        1e6 * variants[1].times[0], 1e6 * variants[2].times[0], ratios[1],
        ratios[2]);
}

static void bench_idct(const char *isa)
{
    for (size_t i = 0; i < BYI_COUNT(transforms); i++)
        bench_transform(isa, &transforms[i]);
}

/* --- warps ---------------------------------------------------------------- */

/* The rotation of an image by a small angle, at out^2 positions. */
struct warp {
    const char *mode, *padding;
    int64_t channels, in, out;
};

static const struct warp warps[] = {
    {"bilinear", "zeros", 3, 224, 64},    {"bilinear", "zeros", 64, 28, 28},
    {"bilinear", "border", 256, 14, 14},  {"nearest", "zeros", 32, 56, 56},
    {"bicubic", "reflection", 3, 64, 40}, {"bilinear", "zeros", 3, 224, 224},
};

/* Print a constant of n coordinates, evenly spaced in (-1, 1). */
static void print_line(struct byi_text *text, const char *name, int64_t n,
                       const char *shape)
{
    byi_text_addf(text, "  %s = reshape([", name);
    for (int64_t i = 0; i < n; i++)
        byi_text_addf(text, "%s%.9g", i ? ", " : "",
                      (double)(2 * i + 1) / (double)n - 1);
    byi_text_addf(text, "], %s);\n", shape);
}

/* Print the module of an affine warp. Constant folding computes its grid; if
 * `is_parameter`, the grid is a parameter of @main. */
static void print_warp(const struct warp *w, bool is_parameter,
                       struct byi_text *text)
{
    const long long n = w->out, in = w->in, channels = w->channels;
    char shape[64];
    byi_text_addf(text,
                  "def @main(%%x: Tensor[(1, %lld, %lld, %lld), float32]%s",
                  channels, in, in, is_parameter ? "" : ") {\n");
    if (is_parameter) {
        byi_text_addf(text, ", %%g: Tensor[(1, %lld, %lld, 2), float32]) {\n",
                      n, n);
    } else {
        snprintf(shape, sizeof shape, "[1, 1, %lld, 1]", n);
        print_line(text, "%0", n, shape);
        snprintf(shape, sizeof shape, "[1, %lld, 1, 1]", n);
        print_line(text, "%1", n, shape);
        byi_text_addf(
            text, "  %%2 = add(multiply(%%0, 0.9f), multiply(%%1, -0.3f));\n"
                  "  %%3 = add(multiply(%%0, 0.3f), multiply(%%1, 0.9f));\n"
                  "  %%g = concatenate(%%2, %%3, axis=3);\n");
    }
    byi_text_addf(text,
                  "  image.grid_sample(%%x, %%g, mode=\"%s\", "
                  "padding_mode=\"%s\")\n}\n",
                  w->mode, w->padding);
}

/* Compare generated C, tables computed at load, and tables computed in each
 * run.
 */
static void bench_warp(const char *isa, const struct warp *w)
{
    static const char *const none[] = {NULL}, *const fuse[] = {"FuseOps", NULL};
    static const char *const names[] = {"generated", "packed", "generic"};
    static struct bench_side sides[3];
    struct variant variants[3];
    double ratios[3];
    for (int i = 0; i < 3; i++) {
        struct byi_text text = {0};
        const struct byoc_compile_params params = {.backends = none,
                                                   .disable = i ? fuse : NULL};
        print_warp(w, i == 2, &text);
        bench_open_text(text.at, names[i], &params, n_threads, &sides[i]);
        byi_text_free(&text);
    }
    measure_three(sides, variants, ratios);
    printf(
        "| %s | %s | %s | %lldx%lld^2 to %lld^2 | %.1f | %.1f | %.1f | %.2f | "
        "%.2f |\n",
        isa, w->mode, w->padding, (long long)w->channels, (long long)w->in,
        (long long)w->out, 1e6 * variants[0].times[0],
        1e6 * variants[1].times[0], 1e6 * variants[2].times[0], ratios[1],
        ratios[2]);
}

static void bench_warps(const char *isa)
{
    for (size_t i = 0; i < BYI_COUNT(warps); i++)
        bench_warp(isa, &warps[i]);
}

/* --- the benchmarks ------------------------------------------------------- */

static const struct {
    const char *name, *head;
    void (*run)(const char *isa);
} benches[] = {
    {"resize",
     "| ISA | mode | coordinates | sizes | generated us | generic us | single "
     "pass us | generic / generated | single / generated |\n"
     "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
     bench_resizes},
    {"tables",
     "| ISA | function | elements | table us | computed us | oneDNN us | "
     "computed / table | oneDNN / table |\n"
     "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
     bench_tables},
    {"math",
     "| ISA | function | elements | approximated us | exact us | exact / "
     "approximated |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
     bench_math},
    {"sparse",
     "| ISA | product | zeros | in blocks of | sparse us | dense us | oneDNN "
     "us "
     "| dense / sparse | oneDNN / sparse |\n"
     "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
     bench_sparse},
    {"idct",
     "| ISA | inverse DCT | blocks | nonzero | idct8 us | products us | "
     "oneDNN "
     "us | products / idct8 | oneDNN / idct8 |\n"
     "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
     bench_idct},
    {"warps",
     "| ISA | mode | padding | sizes | generated us | lists at load us | "
     "generic us | at load / generated | generic / generated |\n"
     "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
     bench_warps},
};

/* Run a benchmark in a separate process, since a process chooses the
 * instruction set once. Does nothing if the machine lacks the instruction set.
 * Returns 0 if the process succeeds. */
static int run_at(const char *isa, void (*run)(const char *isa))
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("BYOC_MAX_ISA", isa, 1);
        if (strcmp(byi_isa_name(byi_isa_widest()), isa) == 0)
            run(isa);
        fflush(stdout);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}

int main(int argc, char **argv)
{
    int i = 1, failed = 0;
    if (i + 1 < argc && strcmp(argv[i], "--threads") == 0) {
        n_threads = (uint32_t)atoi(argv[i + 1]);
        i += 2;
    }
    size_t chosen = 0;
    while (chosen < BYI_COUNT(benches) &&
           (i + 1 != argc || strcmp(argv[i], benches[chosen].name) != 0))
        chosen++;
    if (chosen == BYI_COUNT(benches) || n_threads == 0) {
        fprintf(stderr, "usage: forms [--threads N] "
                        "resize|tables|math|sparse|idct|warps\n");
        return 2;
    }
    bench_folder(); /* create it here: all processes share it */
    printf("%s", benches[chosen].head);
    for (size_t k = 0; k < BYI_COUNT(isas) && !failed; k++)
        failed = run_at(isas[k], benches[chosen].run);
    bench_folder_remove();
    return failed;
}
