/* SPDX-License-Identifier: Apache-2.0 */
/* bands_test.c: tests that convolutions in bands (kernels/bands.h) compute the
 * same bytes as separate runs. Uses random blocks with every kind of epilogue,
 * images whose lines do not fill bands, 1 to 3 threads, and every instruction
 * set of the machine whose kernels can run in bands. Also tests which
 * convolutions are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bands.h"
#include "tests/share.h"

#include <cmocka.h>

static uint64_t seed = 1;
static const struct byi_f32_kernels *kernels; /* of the ISA under test */

static int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

/* Random numbers in memory of exactly n floats, so that a sanitizer sees reads
 * beyond them. */
static float *random_floats(int64_t n)
{
    float *at = malloc((size_t)(n ? n : 1) * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)draw(20001) / 10000 - 1;
    return at;
}

/* --- blocks --------------------------------------------------------------- */

/* Convolutions that run in bands, and the results of their separate runs. */
struct block {
    struct byi_f32_bands bands;
    struct byi_f32_conv convs[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_conv_run runs[BYI_F32_MAX_BAND_CONVS];
    float *y[BYI_F32_MAX_BAND_CONVS]; /* of separate runs */
};

static int64_t n_results(const struct byi_f32_conv *conv)
{
    return conv->images * byi_f32_product_of(conv->out) * conv->outputs;
}

/* Add a random operation to the epilogue; its operand is bound by open_block().
 */
static void add_epilogue_op(struct byi_f32_conv *conv)
{
    struct byi_f32_epilogue_op *op = &conv->epilogue[conv->n_epilogue];
    const int64_t positions = byi_f32_product_of(conv->out);
    *op =
        (struct byi_f32_epilogue_op){.operand = conv->n_epilogue, .repeat = 1};
    switch (draw(6)) {
    case 0: /* clamp */
        op->unary = kernels->unary[BYI_OP_CLIP];
        op->p1 = 0.5f;
        break;
    case 1:
        op->unary = kernels->unary[BYI_OP_NN_SILU];
        break;
    case 2: /* a residual */
        op->binary = kernels->binary[BYI_F32_ADD];
        op->row = conv->outputs;
        op->column = 1;
        break;
    case 3: /* a number for each channel */
        op->binary = kernels->binary[BYI_F32_MUL];
        op->column = 1;
        break;
    case 4: /* and for each channel of each image */
        op->binary = kernels->binary[BYI_F32_MUL];
        op->row = conv->outputs;
        op->column = 1;
        op->repeat = positions;
        break;
    default: /* a number for each position */
        op->binary = kernels->binary[BYI_F32_SUB];
        op->row = 1;
    }
    conv->n_epilogue++;
}

static int64_t operand_floats(const struct byi_f32_conv *conv,
                              const struct byi_f32_epilogue_op *op)
{
    const int64_t rows = conv->images * byi_f32_product_of(conv->out);
    return (byi_ceil_div(rows, op->repeat) - 1) * op->row +
           (conv->outputs - 1) * op->column + 1;
}

/* A convolution of n x n taps on images of in[1] x in[2] positions, with random
 * epilogue operations. */
static void plan(struct byi_f32_conv *conv, int64_t images, const int64_t *in,
                 int64_t channels, int64_t outputs, int64_t n, bool depthwise)
{
    *conv = (struct byi_f32_conv){.images = images,
                                  .in = {1, in[1], in[2]},
                                  .out = {1, in[1], in[2]},
                                  .channels = channels,
                                  .outputs = outputs,
                                  .groups = depthwise ? channels : 1,
                                  .size = {1, n, n},
                                  .stride = {1, 1, 1},
                                  .dilation = {1, 1, 1},
                                  .bias = draw(2),
                                  .kernels = kernels};
    for (int i = 1; n > 1 && i < BYI_F32_AXES; i++) {
        conv->stride[i] = 1 + draw(2);
        conv->dilation[i] = 1 + draw(2);
        conv->pad[i] = draw(n + 1);
        const int64_t reach = (n - 1) * conv->dilation[i] + 1;
        conv->out[i] = (in[i] + 2 * conv->pad[i] - reach) / conv->stride[i] + 1;
    }
    while (conv->n_epilogue < 3 && draw(3))
        add_epilogue_op(conv);
    byi_f32_conv_plan(conv, true);
}

static void open_run(struct byi_f32_conv_run *run,
                     const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t group_channels = conv->channels / conv->groups;
    float *weights = random_floats(conv->outputs * group_channels * taps);
    const struct byi_f32_weights from = {.at = weights,
                                         .group = group_channels * taps,
                                         .output = group_channels * taps,
                                         .channel = taps,
                                         .tap = {taps, conv->size[2], 1}};
    float *packed =
        aligned_alloc(64, (size_t)(byi_f32_conv_packed(conv) + 63) / 64 * 64);
    byi_f32_conv_pack(conv, &from, packed, 1);
    free(weights);
    *run = (struct byi_f32_conv_run){.conv = conv, .weights = packed};
    if (conv->bias)
        run->bias = random_floats(conv->outputs);
    for (uint32_t i = 0; i < conv->n_epilogue; i++)
        if (conv->epilogue[i].binary)
            run->operands[i] =
                random_floats(operand_floats(conv, &conv->epilogue[i]));
}

/* Describe a random convolution whose input is that of the block or the result
 * of the convolution before it; false if no position is left. */
static bool draw_conv(struct block *b, uint32_t i, int64_t images,
                      const int64_t *in, int64_t channels)
{
    const bool planes = i == 0 && channels <= 4; /* of an image */
    const bool depthwise = !planes && channels > 1 && draw(2);
    struct byi_f32_conv *conv = &b->convs[i];
    plan(conv, images, in, channels, depthwise ? channels : 1 + draw(70),
         planes || depthwise || draw(3) == 0 ? 1 + draw(5) : 1, depthwise);
    return conv->out[1] > 0 && conv->out[2] > 0;
}

/* Let the first convolution read its input channels-first, if it can. */
static void read_planes(struct byi_f32_conv *conv)
{
    if (!byi_f32_planar_suits(conv) || conv->adds)
        return;
    conv->planar = true;
    byi_f32_conv_plan(conv, true);
}

/* Make the arguments of a planned block, and results of separate runs. */
static void open_runs(struct block *b)
{
    const struct byi_f32_conv *first = &b->convs[0];
    for (uint32_t i = 0; i < b->bands.n; i++) {
        open_run(&b->runs[i], &b->convs[i]);
        b->y[i] = random_floats(n_results(&b->convs[i]));
    }
    b->runs[0].x = random_floats(first->images * first->in[1] * first->in[2] *
                                 first->channels);
}

/* A random block; false if it cannot run in bands, or has too few lines. */
static bool open_block(struct block *b)
{
    const int64_t in[] = {1, 9 + draw(40), 8 + draw(30)};
    const int64_t images = 1 + draw(3), cache = (8 + draw(200)) << 10;
    const int64_t channels = 1 + draw(draw(2) ? 4 : 20);
    memset(b, 0, sizeof *b);
    b->bands.n = 2 + (uint32_t)draw(2);
    for (uint32_t i = 0; i < b->bands.n; i++) {
        if (!draw_conv(b, i, images, i ? b->convs[i - 1].out : in,
                       i ? b->convs[i - 1].outputs : channels))
            return false;
        b->bands.convs[i] = &b->convs[i];
    }
    read_planes(&b->convs[0]);
    for (uint32_t i = 0; i < b->bands.n; i++)
        b->convs[i].cache = cache;
    if (!byi_f32_bands_plan(&b->bands))
        return false;
    open_runs(b);
    return true;
}

static void close_block(struct block *b)
{
    free((void *)(uintptr_t)b->runs[0].x);
    for (uint32_t i = 0; i < b->bands.n; i++) {
        free((void *)(uintptr_t)b->runs[i].weights);
        free((void *)(uintptr_t)b->runs[i].bias);
        for (uint32_t p = 0; p < b->convs[i].n_epilogue; p++)
            free((void *)(uintptr_t)b->runs[i].operands[p]);
        free(b->y[i]);
    }
}

/* --- comparing ------------------------------------------------------------ */

static void run_separately(struct block *b)
{
    for (uint32_t i = 0; i < b->bands.n; i++) {
        struct byi_f32_conv_run run = b->runs[i];
        run.x = i ? b->y[i - 1] : run.x;
        run.y = b->y[i];
        run.threads = 1;
        run.scratch = malloc(byi_f32_conv_scratch(run.conv, 1) + 1);
        byi_f32_conv_run(&run);
        free(run.scratch);
    }
}

/* Compare a run in bands with the separate runs. If the last convolution adds a
 * residual, its operand 0 is y itself, which byi_f32_bands_run() allows. */
static void compare(struct block *b, int threads)
{
    const uint32_t last = b->bands.n - 1;
    const size_t bytes = (size_t)n_results(&b->convs[last]) * sizeof(float);
    struct byi_f32_conv_run runs[BYI_F32_MAX_BAND_CONVS];
    memcpy(runs, b->runs, sizeof runs);
    float *y = malloc(bytes);
    memset(y, 0xff, bytes);
    if (b->convs[last].adds) {
        memcpy(y, runs[last].operands[0], bytes);
        runs[last].operands[0] = y;
    }
    runs[last].y = y;
    void *scratch = malloc(byi_f32_bands_scratch(&b->bands, threads));
    byi_f32_bands_run(&b->bands, runs, scratch, threads);
    assert_memory_equal(y, b->y[last], bytes);
    free(scratch);
    free(y);
}

static void compare_all(void)
{
    int n_blocks = 0, n_planar = 0;
    for (int i = 0; i < test_share_of(4000); i++) {
        struct block b;
        if (!open_block(&b))
            continue;
        run_separately(&b);
        for (int threads = 1; threads <= 3; threads++)
            compare(&b, threads);
        close_block(&b);
        n_blocks++;
        n_planar += b.convs[0].planar;
    }
    assert_true(n_blocks >= test_share_of(240));
    assert_true(n_planar >= test_share_of(24));
}

/* Call `test` with the kernels of each instruction set that have bands. */
static void with_each_isa(void (*test)(void))
{
    const struct byi_f32_kernels *previous = NULL;
    for (int isa = 0; isa <= (int)byi_isa_widest(); isa++) {
        kernels = byi_f32_kernels_of((enum byi_isa)isa);
        if (kernels != previous && kernels->rows >= 6)
            test();
        previous = kernels;
    }
}

static void test_random(void **state)
{
    (void)state;
    with_each_isa(compare_all);
}

/* Bands of one line of 8 positions, which are two tiles of 4 rows, and half a
 * panel: kernels could add up the products of so small tiles in another order
 * than those of the tiles of a separate run. */
static void compare_small_tiles(void)
{
    const int64_t in[] = {1, 40, 8};
    struct block b = {.bands = {.n = 2}};
    plan(&b.convs[0], 1, in, 10, 24, 1, false);
    plan(&b.convs[1], 1, in, 24, 24, 1, true);
    for (uint32_t i = 0; i < b.bands.n; i++) {
        b.convs[i].cache = 8 << 10;
        b.bands.convs[i] = &b.convs[i];
    }
    assert_true(byi_f32_bands_plan(&b.bands));
    open_runs(&b);
    run_separately(&b);
    for (int threads = 1; threads <= 3; threads++)
        compare(&b, threads);
    close_block(&b);
}

static void test_small_tiles(void **state)
{
    (void)state;
    with_each_isa(compare_small_tiles);
}

/* --- refusals ------------------------------------------------------------- */

static bool is_planned(struct byi_f32_conv *a, struct byi_f32_conv *b,
                       struct byi_f32_conv *c)
{
    struct byi_f32_bands bands = {.n = c ? 3 : 2, .convs = {a, b, c}};
    return byi_f32_bands_plan(&bands);
}

static void check_refusals(void)
{
    const int64_t in[] = {1, 40, 40};
    struct byi_f32_conv first, middle, last, other;
    plan(&first, 1, in, 8, 64, 1, false);
    plan(&middle, 1, in, 64, 64, 1, true);
    plan(&last, 1, middle.out, 64, 16, 1, false);
    first.cache = middle.cache = last.cache = 256 << 10;
    assert_true(is_planned(&first, &middle, &last));
    assert_true(is_planned(&first, &middle, NULL));
    assert_true(is_planned(&middle, &last, NULL));
    /* no depthwise convolution, or a planar one that is not the first */
    assert_false(is_planned(&first, &last, NULL));
    other = first;
    other.algorithm = BYI_F32_PLANAR;
    assert_false(is_planned(&middle, &other, NULL));
    /* a few of its lines fill the cache, or both results fit: 400 KiB each */
    middle.cache = 8 << 10;
    assert_false(is_planned(&first, &middle, NULL));
    /* two lines of both intermediate results, 40 KiB, may fill half of the
     * cache, but those of one a quarter */
    middle.cache = last.cache = 80 << 10;
    assert_true(is_planned(&first, &middle, &last));
    assert_true(is_planned(&first, &middle, NULL));
    middle.cache = last.cache = 79 << 10;
    assert_false(is_planned(&first, &middle, &last));
    assert_false(is_planned(&first, &middle, NULL));
    last.cache = 256 << 10;
    middle.cache = 600 << 10;
    assert_true(is_planned(&first, &middle, NULL));
    middle.cache = 800 << 10;
    assert_false(is_planned(&first, &middle, NULL));
    middle.cache = 256 << 10;
    /* Winograd's algorithm, float16, three axes */
    other = last;
    other.algorithm = BYI_F32_WINOGRAD_4;
    assert_false(is_planned(&first, &middle, &other));
    other = first;
    other.type = BYI_F32_F16;
    assert_false(is_planned(&other, &middle, NULL));
    other = middle;
    other.in[0] = other.out[0] = 2;
    assert_false(is_planned(&first, &other, NULL));
    /* an operand that changes within a band */
    other = first;
    other.epilogue[0] = (struct byi_f32_epilogue_op){
        .binary = kernels->binary[BYI_F32_MUL], .row = 1, .repeat = 7};
    other.n_epilogue = 1;
    assert_false(is_planned(&other, &middle, NULL));
}

static void test_refusals(void **state)
{
    (void)state;
    with_each_isa(check_refusals);
    kernels = &byi_f32_base;
    if (kernels->rows >= 6)
        return;
    const int64_t in[] = {1, 40, 40};
    struct byi_f32_conv first, middle;
    plan(&first, 1, in, 8, 64, 1, false);
    plan(&middle, 1, in, 64, 64, 3, true);
    first.cache = middle.cache = 256 << 10;
    assert_false(is_planned(&first, &middle, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_small_tiles),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
