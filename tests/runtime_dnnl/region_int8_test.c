/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/region_int8_test.c: tests quantised regions: which steps
 * compute with integers and which with floats, compared with native kernels,
 * which compute with floats. Results may differ by one step if a number is
 * halfway between two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "region.inc"
#include "runtime_dnnl/layer.h"

#define NONE UINT32_MAX
#define IDS(...)                                                               \
    BYI_COUNT(((uint32_t[]){__VA_ARGS__})), (uint32_t[])                       \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* A tolerance of one quantisation step: it is relative to the largest result,
 * which is the largest number of the type. */
static double one_step(enum byoc_dtype dtype)
{
    return 1.01 / (dtype == BYOC_U8 ? 255 : 128);
}

/* How a program is quantised. */
struct scheme {
    enum byoc_dtype data, result; /* result 0: floats */
    int zero;                     /* of the data      */
    bool inexact_weights;         /* not multiples of a scale */
    bool integers;                /* it is computed on integers */
};

static uint32_t number(struct region *g, float x)
{
    const uint32_t id = add_leaf(g, true, BYOC_F32, 0, NULL);
    *(float *)g->data[id].data = x;
    return id;
}

static uint32_t zero_point(struct region *g, enum byoc_dtype dtype, int x)
{
    const uint32_t id = add_leaf(g, true, dtype, 0, NULL);
    byi_tensor_set(&g->data[id], 0, x);
    return id;
}

/* Dequantised data with all integers of the type. */
static uint32_t data(struct region *g, const struct scheme *s,
                     const int64_t *dims, uint32_t rank)
{
    const uint32_t x = add_leaf(g, false, s->data, rank, dims);
    for (int64_t i = 0; i < byi_elements(rank, dims); i++)
        byi_tensor_set(&g->data[x], i,
                       floor(random_unit(g) * 127.99) +
                           (s->data == BYOC_U8 ? 128 : 0));
    region_kernel(g, "qnn.dequantize", "{}",
                  IDS(x, number(g, 0.0213f), zero_point(g, s->data, s->zero)));
    return region_end(g);
}

/* Weights as QDQ models have them once constants are folded: integers times a
 * scale of each row. In every other row a factor, as that of a batch
 * normalization, multiplies the product. */
static uint32_t weights(struct region *g, const struct scheme *s,
                        const int64_t *dims, uint32_t rank)
{
    const uint32_t w = add_leaf(g, true, BYOC_F32, rank, dims);
    const int64_t row = byi_elements(rank - 1, dims + 1);
    float scale = 0;
    for (int64_t i = 0; i < byi_elements(rank, dims); i++) {
        if (i % row == 0)
            scale = 0.003f + 0.002f * (float)fabs(random_unit(g));
        const float x = (float)(random_unit(g) * 127);
        const float weight = scale * (s->inexact_weights ? x : rintf(x));
        byi_tensor_set(&g->data[w], i,
                       i / row % 2 ? weight * 0.7318376f : weight);
    }
    return w;
}

static uint32_t quantize(struct region *g, enum byoc_dtype dtype, uint32_t x)
{
    region_kernel(g, "qnn.quantize", "{}",
                  IDS(x, number(g, 0.02f),
                      zero_point(g, dtype, dtype == BYOC_U8 ? 117 : -5)));
    return region_end(g);
}

/* Check the results, and whether the product computes with integers.
 * `quantizes`: a step of its own quantises an integer product. */
static void expect(struct region *g, const struct scheme *s, uint32_t out,
                   bool quantizes, const char *op)
{
    struct region_report r;
    const char *why =
        region_check(g, 1, &out, s->result ? one_step(s->result) : 1e-4, &r);
    if (why)
        fail_msg("%s of %s, zero %d, to %s: %s\n%s", op,
                 byoc_dtype_name(s->data), s->zero,
                 s->result ? byoc_dtype_name(s->result) : "floats", why,
                 r.trace);
    if (s->integers && quantizes != !!strstr(r.trace, "qnn.quantize:"))
        fail_msg("%s, zero %d: expected %s step that quantises, found\n%s", op,
                 s->zero, quantizes ? "a" : "no", r.trace);
    if (!strstr(r.trace, "qnn.dequantize:") != s->integers)
        fail_msg("%s, zero %d: expected a product of %s, found the steps\n%s",
                 op, s->zero, s->integers ? "integers" : "floats", r.trace);
}

/* Dequantised data with the zero point 117 and this scale. */
static uint32_t data_of_scale(struct region *g, const int64_t *dims,
                              float scale)
{
    const uint32_t x = add_leaf(g, false, BYOC_U8, 4, dims);
    for (int64_t i = 0; i < byi_elements(4, dims); i++)
        byi_tensor_set(&g->data[x], i, floor(127.5 + random_unit(g) * 127));
    region_kernel(g, "qnn.dequantize", "{}",
                  IDS(x, number(g, scale), zero_point(g, BYOC_U8, 117)));
    return region_end(g);
}

/* A concatenation joins integers. Operands whose scale is not that of the
 * result are converted first. */
static void test_concat(void **state)
{
    static const struct {
        int64_t channels[3];
        float last_scale; /* of the last operand; of the others: 0.02 */
        const char *axis;
    } cases[] = {
        {{16, 24, 5}, 0.02f, "{\"axis\":1}"},
        {{8, 8, 8}, 0.02f, "{\"axis\":-1}"},
        {{16, 24, 5}, 0.03f, "{\"axis\":1}"},
        {{8, 8, 8}, 0.03f, "{\"axis\":2}"},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        const struct scheme s = {BYOC_U8, BYOC_U8, 117, false, true};
        struct region g;
        uint32_t x[3];
        region_open(&g);
        for (int k = 0; k < 3; k++) {
            const int64_t dims[] = {2, cases[i].channels[k], 5, 7};
            x[k] =
                data_of_scale(&g, dims, k == 2 ? cases[i].last_scale : 0.02f);
        }
        region_kernel(&g, "concatenate", cases[i].axis, IDS(x[0], x[1], x[2]));
        expect(&g, &s, quantize(&g, BYOC_U8, region_end(&g)), false,
               "concatenate");
        region_close(&g);
    }
}

static const struct {
    const char *attrs;
    int64_t x[5], w[5];
    uint32_t rank;
} convs[] = {
    {"{}", {2, 16, 7, 9}, {32, 16, 1, 1}, 4},
    {"{}", {1, 3, 9, 9}, {20, 3, 3, 3}, 4},
    {"{\"padding\":[1,1,1,1],\"strides\":[2,2]}",
     {1, 32, 9, 8},
     {64, 32, 3, 3},
     4},
    {"{\"padding\":[1,1,1,1],\"groups\":32}", {1, 32, 9, 8}, {32, 1, 3, 3}, 4},
    {"{\"padding\":[1,0]}", {2, 16, 11}, {24, 16, 3}, 3},
};

static void conv(const struct scheme *scheme, size_t index,
                 const char *function)
{
    const struct scheme s = *scheme;
    struct region g;
    const uint32_t rank = convs[index].rank;
    const int64_t vector[3] = {convs[index].w[0], 1, 1};
    region_open(&g);
    const uint32_t x = data(&g, &s, convs[index].x, rank);
    const uint32_t w = weights(&g, &s, convs[index].w, rank);
    const uint32_t bias = add_leaf(&g, true, BYOC_F32, rank - 1, vector);
    for (int64_t i = 0; i < vector[0]; i++)
        byi_tensor_set(&g.data[bias], i, random_unit(&g));
    region_kernel(&g, rank == 3 ? "nn.conv1d" : "nn.conv2d", convs[index].attrs,
                  IDS(x, w));
    region_post(&g, "add", "{}", bias, false);
    region_post(&g, function, "{}", NONE, false);
    uint32_t out = region_end(&g);
    if (s.result)
        out = quantize(&g, s.result, out);
    expect(&g, &s, out, false, "conv");
    region_close(&g);
}

static const struct scheme schemes[] = {
    {BYOC_U8, BYOC_U8, 0, false, true},  {BYOC_U8, BYOC_I8, 0, false, true},
    {BYOC_I8, BYOC_I8, 0, false, true},  {BYOC_U8, BYOC_U8, 131, false, true},
    {BYOC_I8, BYOC_U8, -7, false, true}, {BYOC_U8, 0, 0, false, true},
    {BYOC_U8, 0, 99, false, true},       {BYOC_U8, BYOC_U8, 0, true, false},
    {BYOC_U8, BYOC_U8, 12, true, false},
};

static void test_convs(void **state)
{
    static const char *const functions[] = {"nn.relu",       "nn.silu",
                                            "nn.hard_swish", "nn.gelu",
                                            "nn.mish",       "nn.leaky_relu"};
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(schemes); i++)
        for (size_t k = 0; k < BYI_COUNT(convs); k++)
            conv(&schemes[i], k, functions[(i + k) % BYI_COUNT(functions)]);
}

static void test_dense(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(schemes); i++) {
        const struct scheme *s = &schemes[i];
        const int64_t xd[] = {5, 48}, wd[] = {40, 48}, bd[] = {40};
        struct region g;
        region_open(&g);
        const uint32_t x = data(&g, s, xd, 2), w = weights(&g, s, wd, 2);
        const uint32_t bias = add_leaf(&g, true, BYOC_F32, 1, bd);
        for (int64_t k = 0; k < 40; k++)
            byi_tensor_set(&g.data[bias], k, random_unit(&g));
        region_kernel(&g, "nn.dense", "{}", IDS(x, w));
        region_post(&g, "add", "{}", bias, false);
        uint32_t out = region_end(&g);
        if (s->result)
            out = quantize(&g, s->result, out);
        expect(&g, s, out, false, "dense");
        region_close(&g);
    }
}

/* Means sum the integers of byte data. */
static void test_means(void **state)
{
    static const struct {
        const char *op, *attrs;
    } cases[] = {
        {"nn.avg_pool2d", "{\"pool_size\":[3,2],\"strides\":[2,2],"
                          "\"padding\":[1,1,1,0]}"},
        {"nn.avg_pool2d", "{\"pool_size\":[3,3],\"padding\":[1,1,1,1],"
                          "\"count_include_pad\":true}"},
        {"nn.global_avg_pool2d", "{}"},
        {"nn.global_avg_pool2d", "{\"layout\":\"NHWC\"}"},
    };
    static const struct scheme types[] = {{BYOC_U8, 0, 117, false, true},
                                          {BYOC_I8, 0, -5, false, true}};
    static const int64_t dims[] = {2, 37, 9, 8}, large[] = {1, 3, 130, 70};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        for (size_t k = 0; k < 2 * BYI_COUNT(types); k++) {
            struct region g;
            region_open(&g);
            const uint32_t x = data(&g, &types[k / 2], k % 2 ? large : dims, 4);
            region_kernel(&g, cases[i].op, cases[i].attrs, IDS(x));
            expect(&g, &types[k / 2], region_end(&g), false, cases[i].op);
            region_close(&g);
        }
}

/* A bias that is not a multiple of the sum's scale is added in float32 to the
 * product of the integers. */
static void test_uneven_bias(void **state)
{
    (void)state;
    const struct scheme s = {BYOC_U8, BYOC_U8, 131, false, true};
    const int64_t xd[] = {5, 48}, wd[] = {40, 48}, bd[] = {40};
    struct region g;
    region_open(&g);
    const uint32_t x = data(&g, &s, xd, 2);
    const uint32_t w = add_leaf(&g, true, BYOC_F32, 2, wd);
    const uint32_t bias = add_leaf(&g, true, BYOC_F32, 1, bd);
    for (int64_t k = 0; k < 40 * 48; k++)
        byi_tensor_set(&g.data[w], k, 0.25f * rintf((float)random_unit(&g)));
    for (int64_t k = 0; k < 40; k++)
        byi_tensor_set(&g.data[bias], k, random_unit(&g));
    region_kernel(&g, "nn.dense", "{}", IDS(x, w));
    region_post(&g, "add", "{}", bias, false);
    region_post(&g, "nn.relu", "{}", NONE, false);
    const uint32_t out = quantize(&g, s.result, region_end(&g));
    expect(&g, &s, out, true, "dense");
    region_close(&g);
}

/* A residual block: convolutions pass integers on, two read the same ones, and
 * the floats that the sum needs are computed in addition. */
static void test_residual(void **state)
{
    const struct scheme s = {BYOC_U8, BYOC_U8, 0, false, true};
    const int64_t xd[] = {1, 32, 8, 8}, wd[] = {32, 32, 3, 3};
    struct region g;
    struct region_report r;
    uint32_t x, y[2];
    (void)state;
    region_open(&g);
    x = data(&g, &s, xd, 4);
    for (int i = 0; i < 2; i++) {
        const uint32_t w = weights(&g, &s, wd, 4);
        region_kernel(&g, "nn.conv2d", "{\"padding\":[1,1,1,1]}", IDS(x, w));
        region_post(&g, "nn.relu", "{}", NONE, false);
        const uint32_t q = quantize(&g, BYOC_U8, region_end(&g));
        region_kernel(&g, "qnn.dequantize", "{}",
                      IDS(q, number(&g, 0.02f), zero_point(&g, BYOC_U8, 117)));
        y[i] = region_end(&g);
    }
    region_kernel(&g, "add", "{}", IDS(y[0], y[1]));
    region_post(&g, "add", "{}", x, false);
    region_post(&g, "nn.relu", "{}", NONE, false);
    uint32_t out = quantize(&g, BYOC_U8, region_end(&g));
    const char *why = region_check(&g, 1, &out, one_step(BYOC_U8), &r);
    if (why)
        fail_msg("%s\n%s", why, r.trace);
    region_close(&g);
}

/* Two products of one input whose sum is quantised. The second adds the first,
 * unless its bytes are an output, too, or are dequantised in another way. */
static void check_sum(enum byoc_dtype dtype, bool is_output, int shift)
{
    const struct scheme s = {dtype, dtype, 0, false, true};
    const int64_t xd[] = {1, 32, 8, 8}, wd[] = {37, 32, 1, 1};
    const int zero = (dtype == BYOC_U8 ? 117 : -5) + shift;
    struct region g;
    struct region_report r;
    uint32_t q[3], y[2];
    region_open(&g);
    const uint32_t x = data(&g, &s, xd, 4);
    for (int i = 0; i < 2; i++) {
        const uint32_t w = weights(&g, &s, wd, 4);
        region_kernel(&g, "nn.conv2d", "{}", IDS(x, w));
        q[i] = quantize(&g, dtype, region_end(&g));
        region_kernel(
            &g, "qnn.dequantize", "{}",
            IDS(q[i], number(&g, 0.02f), zero_point(&g, dtype, zero)));
        y[i] = region_end(&g);
    }
    region_kernel(&g, "add", "{}", IDS(y[0], y[1]));
    region_post(&g, "nn.relu", "{}", NONE, false);
    q[2] = quantize(&g, dtype, region_end(&g));
    const uint32_t outs[] = {q[2], q[1]};
    const char *why =
        region_check(&g, is_output ? 2 : 1, outs, one_step(dtype), &r);
    if (why)
        fail_msg("%s\n%s", why, r.trace);
    if (strstr(r.trace, "nn.conv2d:i8:"))
        assert_int_equal(strstr(r.trace, "i8_elementwise") != NULL,
                         is_output || shift);
    region_close(&g);
}

static void test_sum(void **state)
{
    (void)state;
    check_sum(BYOC_U8, false, 0);
    check_sum(BYOC_I8, false, 0);
    check_sum(BYOC_U8, true, 0);
    check_sum(BYOC_I8, false, 6);
}

/* Sums and products with a constant, which was dequantised when constants were
 * folded, read bytes, also if the constant is broadcast or the first operand.
 * Constants that no 8-bit type represents stay floats. */
static void test_constant_operand(void **state)
{
    static const int64_t xd[] = {2, 5, 3, 7};
    static const struct {
        int64_t dims[4];
        uint32_t rank;
        int low, high; /* of the constant's integers */
        bool first, bytes;
    } cases[] = {
        {{2, 5, 3, 7}, 4, -128, 127, false, true},
        {{2, 5, 3, 7}, 4, 0, 255, true, true},
        {{5, 1, 1}, 3, -100, 155, false, true},
        {{2, 1, 3, 1}, 4, -3, 140, true, true},
        {{7}, 1, -255, 0, false, true},
        {{2, 5, 3, 7}, 4, -255, 127, false, false},
        {{5, 1, 1}, 3, -1000, 1001, true, false},
    };
    (void)state;
    for (size_t i = 0; i < 2 * BYI_COUNT(cases); i++) {
        const size_t c = i / 2;
        const char *op = i % 2 ? "multiply" : "add";
        const struct scheme s = {BYOC_U8, BYOC_I8, 131, false, cases[c].bytes};
        struct region g;
        region_open(&g);
        const uint32_t x = data(&g, &s, xd, 4);
        const uint32_t k =
            add_leaf(&g, true, BYOC_F32, cases[c].rank, cases[c].dims);
        const int64_t n = byi_elements(cases[c].rank, cases[c].dims);
        const float scale = 1.7f / (float)cases[c].high;
        const int range = cases[c].high - cases[c].low;
        for (int64_t e = 0; e < n; e++)
            byi_tensor_set(
                &g.data[k], e,
                (float)(cases[c].low + range * (n - 1 - e) / (n - 1)) *
                    (cases[c].high ? scale : 0.011f));
        region_kernel(&g, op, "{}",
                      IDS(cases[c].first ? k : x, cases[c].first ? x : k));
        region_post(&g, "nn.relu", "{}", NONE, false);
        expect(&g, &s, quantize(&g, BYOC_I8, region_end(&g)), false, op);
        region_close(&g);
    }
}

static int64_t draw(struct region *g, int64_t n)
{
    return (int64_t)(fabs(random_unit(g)) * (double)n) % n;
}

/* Random shapes, groups and strides: checks only the results. */
static void test_random(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 150; seed++) {
        struct region g;
        struct region_report r;
        char attrs[120];
        region_open(&g);
        g.seed = seed * 0x9e3779b97f4a7c15u;
        random_unit(&g);
        struct scheme s = schemes[draw(&g, 7)];
        const int64_t groups = 1 + draw(&g, 3) * draw(&g, 8),
                      k = 1 + draw(&g, 3);
        /* depthwise with several outputs for each channel is refused */
        const int64_t in = 1 + (groups > 1) + draw(&g, 20);
        const int64_t out = 1 + draw(&g, 20);
        const int64_t xd[] = {1 + draw(&g, 2), groups * in, k + draw(&g, 8),
                              k + draw(&g, 8)};
        const int64_t wd[] = {groups * out, in, k, k};
        const int64_t pad = s.zero ? 0 : draw(&g, k);
        const uint32_t x = data(&g, &s, xd, 4), w = weights(&g, &s, wd, 4);
        snprintf(attrs, sizeof attrs,
                 "{\"groups\":%lld,\"strides\":[%lld,%lld],\"padding\":"
                 "[%lld,%lld,%lld,%lld]}",
                 (long long)groups, (long long)(1 + draw(&g, 2)),
                 (long long)(1 + draw(&g, 2)), (long long)pad, (long long)pad,
                 (long long)pad, (long long)pad);
        region_kernel(&g, "nn.conv2d", attrs, IDS(x, w));
        region_post(&g, "nn.relu", "{}", NONE, false);
        uint32_t y = region_end(&g);
        if (s.result)
            y = quantize(&g, s.result, y);
        const char *why =
            region_check(&g, 1, &y, s.result ? 1.01 / 64 : 1e-4, &r);
        if (why)
            fail_msg("seed %u: (%lld, %lld, %lld, %lld) by (%lld, %lld, %lld, "
                     "%lld) %s: %s\n%s",
                     seed, (long long)xd[0], (long long)xd[1], (long long)xd[2],
                     (long long)xd[3], (long long)wd[0], (long long)wd[1],
                     (long long)wd[2], (long long)wd[3], attrs, why, r.trace);
        region_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convs),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_uneven_bias),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_constant_operand),
        cmocka_unit_test(regions_as_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
