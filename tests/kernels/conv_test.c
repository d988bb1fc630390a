/* SPDX-License-Identifier: Apache-2.0 */
/* conv_test.c: every algorithm of kernels/conv.h, under every instruction set
 * that the machine has, against sums in float64: random shapes and epilogues,
 * any number of threads, and the layers that networks are made of.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv.h"

#include <cmocka.h>

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static float *numbers(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)draw(20001) / 10000 - 1;
    return at;
}

/* A convolution with all its arguments. */
struct conv_case {
    struct byi_f32_conv conv;
    int64_t strides[4];
    float *x, *weights, *bias, *operands[BYI_F32_POSTS], *y, *packed, *scratch;
    bool sums; /* the first post adds to y */
    int threads;
};

static int64_t positions_of(const struct byi_f32_conv *conv)
{
    return conv->images * conv->out[0] * conv->out[1];
}

static void open_case(struct conv_case *c)
{
    struct byi_f32_conv *conv = &c->conv;
    const int64_t taps = conv->size[0] * conv->size[1];
    const int64_t inputs =
        conv->images * conv->in[0] * conv->in[1] * conv->channels;
    const int64_t results = positions_of(conv) * conv->outputs;
    const int64_t each = conv->depthwise ? 1 : conv->channels;
    const int64_t strides[4] = {each * taps, taps, conv->size[1], 1};
    memcpy(c->strides, strides, sizeof strides);
    c->x = numbers(inputs);
    c->weights = numbers(conv->outputs * each * taps);
    c->bias = conv->bias ? numbers(conv->outputs) : NULL;
    for (uint32_t i = 0; i < conv->n_posts; i++)
        c->operands[i] = numbers(results);
    c->y = numbers(results);
    c->packed = numbers((int64_t)byi_f32_conv_packed(conv) / 4);
    c->scratch =
        numbers((int64_t)byi_f32_conv_scratch(conv, c->threads) / 4 + 1);
    byi_f32_conv_pack(conv, c->weights, c->strides, c->packed);
}

static void close_case(struct conv_case *c)
{
    for (uint32_t i = 0; i < c->conv.n_posts; i++)
        free(c->operands[i]);
    free(c->x);
    free(c->weights);
    free(c->bias);
    free(c->y);
    free(c->packed);
    free(c->scratch);
}

/* A 3 x 3 convolution of stride 1 that keeps the size of its images. */
static struct byi_f32_conv three_by_three(int64_t images, int64_t map,
                                          int64_t channels, int64_t outputs)
{
    return (struct byi_f32_conv){.images = images,
                                 .in = {map, map},
                                 .out = {map, map},
                                 .channels = channels,
                                 .outputs = outputs,
                                 .size = {3, 3},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .pad = {1, 1}};
}

/* Plan c->conv and open the case, with this algorithm instead of the planned
 * one, which must be of Winograd's. */
static void open_with(struct conv_case *c, int algorithm)
{
    byi_f32_conv_plan(&c->conv, false);
    assert_true(c->conv.algorithm >= BYI_F32_WINOGRAD_2);
    c->conv.algorithm = (enum byi_f32_algorithm)algorithm;
    open_case(c);
}

static void run_case(struct conv_case *c, int threads)
{
    struct byi_f32_conv_run run = {.conv = &c->conv,
                                   .x = c->x,
                                   .weights = c->packed,
                                   .bias = c->bias,
                                   .y = c->y,
                                   .scratch = c->scratch,
                                   .threads = threads};
    for (uint32_t i = 0; i < c->conv.n_posts; i++)
        run.operands[i] = c->sums && i == 0 ? c->y : c->operands[i];
    byi_f32_conv_run(&run);
}

/* The sum of products and bias at position `row`, output `column`; *size: the
 * sum of their absolute values. */
static double sum_at(const struct conv_case *c, int64_t row, int64_t column,
                     double *size)
{
    const struct byi_f32_conv *conv = &c->conv;
    const int64_t w = row % conv->out[1], h = row / conv->out[1] % conv->out[0];
    const int64_t image = row / conv->out[1] / conv->out[0];
    double sum = c->bias ? c->bias[column] : 0;
    *size = fabs(sum);
    for (int64_t i = 0; i < conv->size[0]; i++)
        for (int64_t j = 0; j < conv->size[1]; j++) {
            int64_t y =
                h * conv->stride[0] - conv->pad[0] + i * conv->dilation[0];
            int64_t x =
                w * conv->stride[1] - conv->pad[1] + j * conv->dilation[1];
            if (conv->transposed) {
                y = h + conv->pad[0] - i * conv->dilation[0];
                x = w + conv->pad[1] - j * conv->dilation[1];
                if (y % conv->stride[0] || x % conv->stride[1])
                    continue;
                y /= conv->stride[0];
                x /= conv->stride[1];
            }
            if (y < 0 || y >= conv->in[0] || x < 0 || x >= conv->in[1])
                continue;
            const float *from =
                c->x +
                ((image * conv->in[0] + y) * conv->in[1] + x) * conv->channels;
            const float *with = c->weights + column * c->strides[0] +
                                i * c->strides[2] + j * c->strides[3];
            const int64_t first = conv->depthwise ? column : 0;
            const int64_t n = conv->depthwise ? 1 : conv->channels;
            for (int64_t k = 0; k < n; k++) {
                const double product =
                    (double)from[first + k] * with[k * c->strides[1]];
                sum += product;
                *size += fabs(product);
            }
        }
    return sum;
}

/* What the posts of struct epilogue_kind compute. */
static double relu_of(double y, double b)
{
    (void)b;
    return y < 0 ? 0 : y;
}
static double tanh_of(double y, double b)
{
    (void)b;
    return tanh(y);
}
static double add_of(double y, double b)
{
    return y + b;
}
static double mul_of(double y, double b)
{
    return y * b;
}

static const struct {
    enum byi_op_id unary;
    enum byi_f32_binary binary;
    double (*of)(double y, double b);
} functions[] = {{BYI_OP_NN_RELU, 0, relu_of},
                 {BYI_OP_TANH, 0, tanh_of},
                 {0, BYI_F32_ADD, add_of},
                 {0, BYI_F32_MUL, mul_of}};

static void add_post(struct byi_f32_conv *conv, int function, int shape)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const int64_t positions = conv->out[0] * conv->out[1];
    struct byi_f32_post *post = &conv->posts[conv->n_posts];
    *post = (struct byi_f32_post){.operand = conv->n_posts++, .repeat = 1};
    if (functions[function].unary) {
        post->unary = kernels->unary[functions[function].unary];
        return;
    }
    post->binary = kernels->binary[functions[function].binary];
    post->column = shape != 3;
    post->row = shape == 0 || shape == 2 ? conv->outputs : shape == 3;
    post->repeat = shape == 2 ? positions : 1;
}

/* Compare all elements. `bound`: of the error, relative to the sum of the
 * absolute values of the products; of Winograd's algorithm, relative to the
 * largest such sum, since an error comes from the inputs around, too. */
static void check_case(struct conv_case *c, const int *kinds, double bound)
{
    const struct byi_f32_conv *conv = &c->conv;
    const int64_t results = positions_of(conv) * conv->outputs;
    float *before = malloc((size_t)results * sizeof *before);
    memcpy(before, c->y, (size_t)results * sizeof *before);
    run_case(c, c->threads);
    for (int64_t at = 0; at < results; at++) {
        const int64_t row = at / conv->outputs, column = at % conv->outputs;
        double size, y = sum_at(c, row, column, &size);
        if (conv->algorithm == BYI_F32_WINOGRAD_2 ||
            conv->algorithm == BYI_F32_WINOGRAD_4)
            size = (double)(9 * conv->channels);
        double allowed = bound * (size + 1);
        for (uint32_t i = 0; i < conv->n_posts; i++) {
            const struct byi_f32_post *post = &conv->posts[i];
            const float *from = c->sums && i == 0 ? before : c->operands[i];
            const double b = (double)
                from[row / post->repeat * post->row + column * post->column];
            y = functions[kinds[i]].of(y, b);
            allowed += 1e-6 * (fabs(b) + 1);
        }
        if (!(fabs(y - (double)c->y[at]) <= allowed))
            fail_msg("%s, %lld x %lld x %lld x %lld -> %lld, window %lld x "
                     "%lld, threads %d: element %lld is %g, expected %g",
                     byi_f32_conv_name(conv), (long long)conv->images,
                     (long long)conv->in[0], (long long)conv->in[1],
                     (long long)conv->channels, (long long)conv->outputs,
                     (long long)conv->size[0], (long long)conv->size[1],
                     c->threads, (long long)at, (double)c->y[at], y);
    }
    free(before);
}

/* Run `body` under every instruction set that the machine has. */
static void at_all_levels(void (*body)(void))
{
    static const char *const levels[] = {"sse2", "avx2", "avx512"};
    const struct byi_f32_kernels *before = NULL;
    for (size_t i = 0; i < BYI_COUNT(levels); i++) {
        setenv("BYOC_MAX_ISA", levels[i], 1);
        if (byi_f32_kernels() != before)
            body();
        before = byi_f32_kernels();
    }
    unsetenv("BYOC_MAX_ISA");
}

/* --- random shapes -------------------------------------------------------- */

static void choose_shape(struct byi_f32_conv *conv)
{
    const bool product = draw(4) == 0;
    *conv = (struct byi_f32_conv){.images = 1 + draw(product ? 40 : 3),
                                  .channels = 1 + draw(70),
                                  .outputs = 1 + draw(70),
                                  .bias = draw(2)};
    if (draw(8) == 0)
        conv->channels = 512 * (1 + draw(2));
    conv->depthwise = draw(4) == 0;
    conv->transposed = !conv->depthwise && !product && draw(3) == 0;
    if (conv->depthwise)
        conv->outputs = conv->channels;
    for (int i = 0; i < 2; i++) {
        conv->in[i] = product ? 1 : 1 + draw(20);
        conv->size[i] = product ? 1 : 1 + draw(4);
        conv->stride[i] = product ? 1 : 1 + draw(3);
        conv->dilation[i] = product ? 1 : 1 + draw(2);
        conv->pad[i] = product ? 0 : draw(4);
    }
    if (!product && draw(2))
        for (int i = 0; i < 2; i++) {
            conv->size[i] = 3;
            conv->stride[i] = conv->dilation[i] = 1;
            conv->pad[i] = draw(3);
        }
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (conv->size[i] - 1) * conv->dilation[i] + 1;
        const int64_t end = draw(3); /* padding there */
        if (conv->transposed) {
            while ((conv->in[i] - 1) * conv->stride[i] + reach <=
                   conv->pad[i] + end)
                conv->in[i]++;
            conv->out[i] = (conv->in[i] - 1) * conv->stride[i] + reach -
                           conv->pad[i] - end;
            continue;
        }
        while (conv->in[i] + conv->pad[i] + end < reach)
            conv->in[i]++;
        conv->out[i] =
            (conv->in[i] + conv->pad[i] + end - reach) / conv->stride[i] + 1;
    }
}

static bool fits(const struct byi_f32_conv *conv,
                 enum byi_f32_algorithm algorithm)
{
    if (conv->depthwise || algorithm == BYI_F32_DEPTHWISE)
        return conv->depthwise && algorithm == BYI_F32_DEPTHWISE;
    if (conv->transposed || algorithm == BYI_F32_TRANSPOSED)
        return conv->transposed && algorithm == BYI_F32_TRANSPOSED;
    for (int i = 0; i < 2 && algorithm != BYI_F32_DIRECT; i++)
        if (conv->size[i] != 3 || conv->stride[i] != 1 ||
            conv->dilation[i] != 1)
            return false;
    return true;
}

static void random_shapes(void)
{
    uint32_t ran[BYI_F32_ALGORITHMS] = {0};
    for (int i = 0; i < 1000; i++) {
        struct conv_case c = {.threads = 1 + (int)draw(3)};
        int kinds[3];
        choose_shape(&c.conv);
        const uint32_t n = draw(4);
        for (uint32_t p = 0; p < n; p++) {
            kinds[p] = (int)draw(BYI_COUNT(functions));
            c.sums |= p == 0 && kinds[0] == 2 && draw(2);
            add_post(&c.conv, kinds[p], c.sums && p == 0 ? 0 : (int)draw(4));
        }
        byi_f32_conv_plan(&c.conv, false);
        const enum byi_f32_algorithm algorithm =
            BYI_F32_DIRECT +
            (enum byi_f32_algorithm)draw(BYI_F32_ALGORITHMS - BYI_F32_DIRECT);
        if (!fits(&c.conv, algorithm))
            continue;
        c.conv.algorithm = algorithm;
        ran[algorithm]++;
        open_case(&c);
        check_case(&c, kinds, algorithm == BYI_F32_WINOGRAD_4 ? 4e-6 : 1e-6);
        close_case(&c);
    }
    for (int i = BYI_F32_DIRECT; i < BYI_F32_ALGORITHMS; i++)
        assert_true(ran[i] > 20);
}

static void test_random(void **state)
{
    (void)state;
    seed = 1;
    at_all_levels(random_shapes);
}

/* --- layers of networks --------------------------------------------------- */

/* Largest error over the largest result, of a tenth of the outputs. */
static void layers(void)
{
    static const struct {
        int64_t map, channels, outputs;
    } shapes[] = {{112, 64, 64},  {56, 64, 64},   {56, 128, 32},
                  {35, 96, 96},   {28, 128, 128}, {28, 256, 256},
                  {14, 256, 256}, {14, 512, 512}, {7, 512, 512},
                  {17, 192, 224}};
    for (size_t i = 0; i < BYI_COUNT(shapes); i++)
        for (int a = BYI_F32_WINOGRAD_2; a <= BYI_F32_WINOGRAD_4; a++) {
            struct conv_case c = {.threads = 1};
            c.conv = three_by_three(1, shapes[i].map, shapes[i].channels,
                                    shapes[i].outputs);
            open_with(&c, a);
            run_case(&c, 1);
            double worst = 0, largest = 0;
            for (int n = 0; n < 2000; n++) {
                const int64_t at =
                    draw((uint32_t)(positions_of(&c.conv) * c.conv.outputs));
                double size;
                const double y =
                    sum_at(&c, at / c.conv.outputs, at % c.conv.outputs, &size);
                worst = fmax(worst, fabs(y - (double)c.y[at]));
                largest = fmax(largest, fabs(y));
            }
            print_message("%-20s %4lld^2 %4lld -> %4lld: %.1e\n",
                          byi_f32_conv_name(&c.conv), (long long)shapes[i].map,
                          (long long)shapes[i].channels,
                          (long long)shapes[i].outputs, worst / largest);
            assert_true(worst <= 1e-4 * largest);
            close_case(&c);
        }
}

static void test_layers(void **state)
{
    (void)state;
    at_all_levels(layers);
}

/* --- threads, NaN --------------------------------------------------------- */

/* The results do not depend on the number of threads. */
static void threads(void)
{
    for (int a = BYI_F32_DIRECT; a <= BYI_F32_WINOGRAD_4; a++) {
        struct conv_case c = {.threads = 4};
        c.conv = three_by_three(2, 29, 40, 72);
        c.conv.in[1] = c.conv.out[1] = 31;
        open_with(&c, a);
        const size_t bytes =
            (size_t)(positions_of(&c.conv) * c.conv.outputs) * sizeof(float);
        float *first = malloc(bytes);
        for (int n = 1; n <= 4; n++) {
            run_case(&c, n);
            if (n == 1)
                memcpy(first, c.y, bytes);
            assert_memory_equal(first, c.y, bytes);
        }
        free(first);
        close_case(&c);
    }
}

static void test_threads(void **state)
{
    (void)state;
    at_all_levels(threads);
}

/* A NaN in the image reaches every result whose window holds it, through ReLU
 * too. */
static void keeps_nan(void)
{
    for (int a = BYI_F32_DIRECT; a <= BYI_F32_WINOGRAD_4; a++) {
        struct conv_case c = {.threads = 1};
        c.conv = three_by_three(1, 9, 16, 19);
        add_post(&c.conv, 0, 0);
        open_with(&c, a);
        c.x[(4 * 9 + 4) * 16] = NAN;
        run_case(&c, 1);
        for (int h = 3; h <= 5; h++)
            for (int w = 3; w <= 5; w++)
                for (int o = 0; o < 19; o++)
                    assert_true(isnan(c.y[(h * 9 + w) * 19 + o]));
        assert_true(c.y[0] == c.y[0]);
        close_case(&c);
    }
}

static void test_nan(void **state)
{
    (void)state;
    at_all_levels(keeps_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
