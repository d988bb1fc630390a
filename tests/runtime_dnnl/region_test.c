/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/region_test.c: compares regions that the plug-in runs with
 * the native kernels. Also tests the program that it makes of them: the
 * primitives, the number of conversions, and the reasons for refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "kernels/f32.h"
#include "region.inc"
#include "runtime_dnnl/layer.h"

#define NONE UINT32_MAX
#define IDS(...)                                                               \
    BYI_COUNT(((uint32_t[]){__VA_ARGS__})), (uint32_t[])                       \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static const double tolerance = 2e-5;

static void expect(struct region *g, uint32_t out, double tol,
                   struct region_report *report)
{
    const char *why = region_check(g, 1, &out, tol, report);
    if (why)
        fail_msg("%s", why);
}

#define PAD1 "{\"padding\":[1,1,1,1]}"

/* conv + bias + relu: one primitive, one conversion at either border */
static void test_conv_bias_relu(void **state)
{
    (void)state;
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 14, 14, -1);
    uint32_t w = region_const(&g, 32, 16, 3, 3, -1);
    uint32_t b = region_const(&g, 32, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    region_post(&g, "add", "{}", b, false);
    region_post(&g, "nn.relu", "{}", NONE, false);
    expect(&g, region_end(&g), tolerance, &r);
    assert_int_equal(r.n_steps, 3);
    assert_int_equal(r.n_reorders, 2);
    assert_non_null(strstr(r.trace, "nn.conv2d+add+nn.relu:"));
    assert_non_null(strstr(r.trace, ":node_3"));
    region_close(&g);
}

/* a residual block: the last add happens in the memory of its operand */
static void test_residual(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 16, 9, 9, -1);
    uint32_t w0 = region_const(&g, 16, 16, 1, 1, -1);
    uint32_t w1 = region_const(&g, 16, 16, 3, 3, -1);
    uint32_t b1 = region_const(&g, 1, 16, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", "{}", IDS(x, w0));
    region_post(&g, "nn.relu", "{}", NONE, false);
    uint32_t trunk = region_end(&g);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(trunk, w1));
    region_post(&g, "add", "{}", b1, false);
    region_post(&g, "nn.relu", "{}", NONE, false);
    uint32_t branch = region_end(&g);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(branch, w1));
    region_post(&g, "add", "{}", trunk, true);
    region_post(&g, "nn.relu", "{}", NONE, false);
    expect(&g, region_end(&g), tolerance, &r);
    assert_int_equal(r.n_steps, 5);
    region_close(&g);
}

/* the summand is read again later, so it must not be overwritten */
static void test_residual_read_again(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 9, 9, -1);
    uint32_t w = region_const(&g, 16, 16, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    uint32_t a = region_end(&g);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(a, w));
    region_post(&g, "add", "{}", a, false);
    uint32_t b = region_end(&g);
    region_kernel(&g, "add", "{}", IDS(a, b));
    uint32_t c = region_end(&g);
    const uint32_t outs[] = {c, a, x};
    const char *why = region_check(&g, 3, outs, tolerance, NULL);
    if (why)
        fail_msg("%s", why);
    region_close(&g);
}

/* byoc's kernel adds in the memory of the operand only if the sum is its first
 * post-op. After another post-op it reads the operand, rather than leave the
 * convolution to oneDNN, whose transposed convolutions are slow. */
static void test_late_sum(void **state)
{
    (void)state;
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 32, 5, 6, -1);
    uint32_t z = region_input(&g, 1, 24, 10, 12, -1);
    uint32_t w = region_const(&g, 32, 24, 4, 4, -1);
    region_kernel(&g, "nn.relu", "{}", IDS(z));
    uint32_t skip = region_end(&g);
    region_kernel(&g, "nn.conv2d_transpose",
                  "{\"strides\":[2,2],\"padding\":[1,1,1,1]}", IDS(x, w));
    region_post(&g, "nn.relu", "{}", NONE, false);
    region_post(&g, "add", "{}", skip, false);
    expect(&g, region_end(&g), tolerance, &r);
    assert_non_null(
        strstr(r.trace, "nn.conv2d_transpose+nn.relu+add:transposed"));
    region_close(&g);
}

/* conv(x) + x: source and summand are one tensor */
static void test_conv_plus_source(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 9, 9, -1);
    uint32_t w = region_const(&g, 16, 16, 3, 3, -1);
    region_kernel(&g, "nn.relu", "{}", IDS(x));
    uint32_t y = region_end(&g);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(y, w));
    region_post(&g, "add", "{}", y, false);
    expect(&g, region_end(&g), tolerance, NULL);
    region_close(&g);
}

/* every activation, after a convolution and alone */
static void test_activations(void **state)
{
    static const struct {
        const char *op, *attrs;
        double tol;
    } acts[] = {
        {"abs", "{}", 2e-5},
        {"clip", "{\"a_min\":-0.5,\"a_max\":1.5}", 2e-5},
        {"nn.relu", "{}", 2e-5},
        {"nn.leaky_relu", "{\"alpha\":0.2}", 2e-5},
        {"nn.elu", "{\"alpha\":0.7}", 2e-5},
        {"nn.selu", "{}", 2e-5},
        {"sigmoid", "{}", 2e-5},
        {"tanh", "{}", 2e-5},
        {"exp", "{}", 2e-5},
        {"nn.gelu", "{}", 2e-5},
        {"nn.gelu", "{\"approximate\":\"tanh\"}", 2e-5},
        {"nn.silu", "{}", 2e-5},
        {"nn.hard_swish", "{}", 2e-5},
        {"nn.hard_sigmoid", "{}", 2e-5},
        {"nn.mish", "{}", 2e-5},
        {"nn.softplus", "{}", 2e-5},
        {"negative", "{}", 2e-5},
        {"round", "{}", 2e-5},
    };
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(acts); i++) {
        struct region g;
        struct region_report r;
        region_open(&g);
        uint32_t x = region_input(&g, 1, 8, 5, 7, -1);
        uint32_t w = region_const(&g, 24, 8, 1, 1, -1);
        region_kernel(&g, acts[i].op, acts[i].attrs, IDS(x));
        uint32_t y = region_end(&g);
        if (strcmp(acts[i].op, "round") == 0) {
            expect(&g, y, acts[i].tol, NULL);
            region_close(&g);
            continue;
        }
        region_kernel(&g, "nn.conv2d", "{}", IDS(y, w));
        region_post(&g, acts[i].op, acts[i].attrs, NONE, false);
        const uint32_t out = region_end(&g);
        const char *why = region_check(&g, 1, &out, acts[i].tol, &r);
        if (why)
            fail_msg("%s: %s", acts[i].op, why);
        region_close(&g);
    }
}

/* the model's order of post-ops, operands of every broadcast shape */
static void test_chains(void **state)
{
    static const char *const ops[] = {"add",    "subtract", "multiply",
                                      "divide", "maximum",  "minimum"};
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(ops); i++) {
        for (int swapped = 0; swapped < 2; swapped++) {
            struct region g;
            region_open(&g);
            uint32_t x = region_input(&g, 1, 8, 6, 5, -1);
            uint32_t w = region_const(&g, 20, 8, 3, 3, -1);
            uint32_t others[] = {
                region_positive(&g, -1),
                region_positive(&g, 20, 1, 1, -1),
                region_positive(&g, 1, 20, 6, 5, -1),
                region_positive(&g, 6, 5, -1),
                region_positive(&g, 5, -1),
            };
            region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
            for (size_t k = 0; k < BYI_COUNT(others); k++) {
                region_post(&g, "clip", "{\"a_min\":1,\"a_max\":3}", NONE,
                            false);
                region_post(&g, ops[i], "{}", others[k], swapped);
            }
            const uint32_t out = region_end(&g);
            const char *why = region_check(&g, 1, &out, 1e-4, NULL);
            if (why)
                fail_msg("%s swapped %d: %s", ops[i], swapped, why);
            region_close(&g);
        }
    }
}

static void test_conv_forms(void **state)
{
    static const struct {
        const char *op, *attrs;
        int n, c, o, per_group, k;
    } convs[] = {
        {"nn.conv1d", "{\"padding\":[2,1],\"strides\":[2]}", 2, 6, 10, 6, 3},
        {"nn.conv2d", "{\"groups\":12,\"padding\":[1,1,1,1]}", 1, 12, 12, 1, 3},
        {"nn.conv2d", "{\"groups\":3,\"dilation\":[2,2]}", 2, 9, 15, 3, 3},
        {"nn.conv2d", "{\"strides\":[2,2],\"padding\":[0,1,1,2]}", 1, 3, 8, 3,
         5},
        {"nn.conv3d", "{\"padding\":[1,1,1,1,1,1]}", 1, 4, 6, 4, 3},
        {"nn.conv1d_transpose", "{\"strides\":[2]}", 1, 6, 0, 5, 3},
        {"nn.conv2d_transpose",
         "{\"strides\":[2,2],\"padding\":[1,1,1,1],\"output_padding\":[1,1]}",
         1, 8, 0, 6, 3},
        {"nn.conv2d_transpose", "{\"groups\":2,\"strides\":[2,2]}", 2, 8, 0, 3,
         2},
        {"nn.conv3d_transpose", "{\"strides\":[2,1,1]}", 1, 4, 0, 5, 2},
    };
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(convs); i++) {
        const int n = convs[i].op[7] - '0', k = convs[i].k;
        struct region g;
        region_open(&g);
        const int first = convs[i].o ? convs[i].o : convs[i].c;
        uint32_t x = region_input(&g, convs[i].n, convs[i].c, 9,
                                  n > 1 ? 10 : -1, n > 2 ? 8 : -1, -1);
        uint32_t w = region_const(&g, first, convs[i].per_group, k,
                                  n > 1 ? k : -1, n > 2 ? k : -1, -1);
        region_kernel(&g, convs[i].op, convs[i].attrs, IDS(x, w));
        region_post(&g, "nn.relu", "{}", NONE, false);
        const uint32_t out = region_end(&g);
        const char *why = region_check(&g, 1, &out, tolerance, NULL);
        if (why)
            fail_msg("%s %s: %s", convs[i].op, convs[i].attrs, why);
        region_close(&g);
    }
}

/* Operators at the region's border, and after a convolution, give the results
 * of their native kernels. */
static void test_single_operators(void **state)
{
    static const struct {
        const char *op, *attrs;
    } cases[] = {
        {"nn.max_pool2d", "{\"pool_size\":[3,3],\"strides\":[2,2],"
                          "\"padding\":[1,1,1,1]}"},
        {"nn.max_pool2d", "{\"pool_size\":[3,2],\"strides\":[2,2],"
                          "\"ceil_mode\":true}"},
        {"nn.avg_pool2d", "{\"pool_size\":[3,3],\"padding\":[1,1,1,1]}"},
        {"nn.avg_pool2d", "{\"pool_size\":[3,3],\"padding\":[1,1,1,1],"
                          "\"count_include_pad\":true}"},
        {"nn.avg_pool2d", "{\"pool_size\":[3,3],\"strides\":[2,2],"
                          "\"ceil_mode\":true}"},
        {"nn.global_avg_pool2d", "{}"},
        {"nn.global_max_pool2d", "{}"},
        {"nn.softmax", "{\"axis\":1}"},
        {"nn.softmax", "{\"axis\":-1}"},
        {"nn.softmax", "{\"axis\":0}"},
        {"nn.log_softmax", "{\"axis\":2}"},
        {"mean", "{\"axis\":[2,3]}"},
        {"mean", "{\"axis\":[2,3],\"keepdims\":false}"},
        {"mean", "{\"axis\":[-1]}"},
        {"mean", "{\"axis\":[1],\"keepdims\":false}"},
        {"sum", "{\"axis\":[0,2],\"keepdims\":false}"},
        {"sum", "{}"},
        {"nn.lrn", "{\"size\":3}"},
        {"transpose", "{\"axes\":[0,2,3,1]}"},
        {"nn.flatten", "{}"},
        {"nn.depth_to_space", "{\"block_size\":2}"},
        {"nn.depth_to_space", "{\"block_size\":2,\"mode\":\"CRD\"}"},
        {"expand_dims", "{\"axis\":[0]}"},
        {"copy", "{}"},
        {"split", "{\"axis\":1,\"sizes\":[3,5]}"},
    };
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct region g;
        region_open(&g);
        uint32_t x = region_input(&g, 2, 8, 9, 7, -1);
        /* from the border, and from inside */
        region_kernel(&g, cases[i].op, cases[i].attrs, IDS(x));
        uint32_t outs[2] = {region_end(&g), 0};
        uint32_t w = region_const(&g, 8, 8, 1, 1, -1);
        region_kernel(&g, "nn.conv2d", "{}", IDS(x, w));
        uint32_t y = region_end(&g);
        region_kernel(&g, cases[i].op, cases[i].attrs, IDS(y));
        outs[1] = region_end(&g);
        const char *why = region_check(&g, 2, outs, tolerance, NULL);
        if (why)
            fail_msg("%s %s: %s", cases[i].op, cases[i].attrs, why);
        region_close(&g);
    }
}

static void test_resize(void **state)
{
    static const char *const attrs[] = {
        "{\"mode\":\"linear\"}",
        ("{\"mode\":\"nearest\",\"coordinate_transformation_mode\":"
         "\"asymmetric\",\"nearest_mode\":\"floor\"}"),
        "{\"mode\":\"nearest\"}",
    };
    static const int64_t sizes[] = {1, 4, 10, 15};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(attrs); i++) {
        struct region g;
        region_open(&g);
        uint32_t x = region_input(&g, 1, 4, 5, 5, -1);
        uint32_t s = region_ints(&g, 4, sizes);
        region_kernel(&g, "image.resize", attrs[i], IDS(x, s));
        const uint32_t out = region_end(&g);
        expect(&g, out, tolerance, NULL);
        region_close(&g);
    }
}

static void test_dense(void **state)
{
    (void)state;
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 5, 33, -1);
    uint32_t w = region_const(&g, 17, 33, -1);
    uint32_t b = region_const(&g, 17, -1);
    region_kernel(&g, "nn.dense", "{}", IDS(x, w));
    region_post(&g, "add", "{}", b, false);
    region_post(&g, "nn.gelu", "{}", NONE, false);
    expect(&g, region_end(&g), tolerance, &r);
    assert_int_equal(r.n_steps, 1);
    region_close(&g);
}

/* numpy's matmul: ranks, broadcasts, transposes, constant and computed */
static void test_matmul_shapes(void **state)
{
    static const struct {
        int a[5], b[5];
        const char *attrs;
    } cases[] = {
        {{3, 4, -1}, {4, 5, -1}, "{}"},
        {{2, 3, 4, -1}, {4, 5, -1}, "{}"},
        {{2, 3, 4, -1}, {1, 4, 5, -1}, "{}"},
        {{2, 3, 4, -1}, {2, 4, 5, -1}, "{}"},
        {{3, 4, -1}, {2, 4, 5, -1}, "{}"},
        {{2, 1, 3, 4, -1}, {1, 3, 4, 5, -1}, "{}"},
        {{2, 2, 3, 4, -1}, {1, 1, 4, 5, -1}, "{}"},
        {{4, -1}, {4, 5, -1}, "{}"},
        {{3, 4, -1}, {4, -1}, "{}"},
        {{4, -1}, {4, -1}, "{}"},
        {{2, 3, 4, -1}, {4, -1}, "{}"},
        {{2, 4, 3, -1}, {2, 4, 5, -1}, "{\"transpose_a\":true}"},
        {{2, 4, 3, -1},
         {5, 4, -1},
         "{\"transpose_a\":true,\"transpose_b\":true}"},
        {{2, 3, 4, -1}, {2, 5, 4, -1}, "{\"transpose_b\":true}"},
        {{1, 4, -1}, {4, 1, -1}, "{}"},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        for (int constant = 0; constant < 2; constant++) {
            const int *a = cases[i].a, *b = cases[i].b;
            struct region g;
            region_open(&g);
            uint32_t x = region_input(&g, a[0], a[1], a[2], a[3], a[4]);
            uint32_t w = constant
                             ? region_const(&g, b[0], b[1], b[2], b[3], b[4])
                             : region_input(&g, b[0], b[1], b[2], b[3], b[4]);
            uint32_t s = region_positive(&g, -1);
            region_kernel(&g, "nn.matmul", cases[i].attrs, IDS(x, w));
            region_post(&g, "multiply", "{}", s, false);
            region_post(&g, "nn.relu", "{}", NONE, false);
            const uint32_t out = region_end(&g);
            const char *why = region_check(&g, 1, &out, tolerance, NULL);
            if (why)
                fail_msg("case %zu constant %d: %s", i, constant, why);
            region_close(&g);
        }
    }
}

/* attention: no copies, the heads are read and written in place */
static void test_attention(void **state)
{
    static const int64_t heads[] = {2, 12, 4, 16}, rows[] = {2, 12, 64};
    const char *perm = "{\"axes\":[0,2,1,3]}";
    (void)state;
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 12, 64, -1);
    uint32_t mask = region_input(&g, 2, 1, 1, 12, -1);
    uint32_t scale = region_positive(&g, -1);
    uint32_t to_heads = region_ints(&g, 4, heads);
    uint32_t to_rows = region_ints(&g, 3, rows);
    uint32_t part[3];
    for (int i = 0; i < 3; i++) {
        uint32_t w = region_const(&g, 64, 64, -1);
        uint32_t b = region_const(&g, 64, -1);
        region_kernel(&g, "nn.matmul", "{}", IDS(x, w));
        region_post(&g, "add", "{}", b, true);
        uint32_t y = region_end(&g);
        region_kernel(&g, "reshape", "{}", IDS(y, to_heads));
        y = region_end(&g);
        region_kernel(&g, "transpose", i == 1 ? "{\"axes\":[0,2,3,1]}" : perm,
                      IDS(y));
        part[i] = region_end(&g);
    }
    region_kernel(&g, "nn.matmul", "{}", IDS(part[0], part[1]));
    region_post(&g, "divide", "{}", scale, false);
    region_post(&g, "add", "{}", mask, false);
    uint32_t scores = region_end(&g);
    region_kernel(&g, "nn.softmax", "{}", IDS(scores));
    uint32_t p = region_end(&g);
    region_kernel(&g, "nn.matmul", "{}", IDS(p, part[2]));
    uint32_t y = region_end(&g);
    region_kernel(&g, "transpose", perm, IDS(y));
    y = region_end(&g);
    region_kernel(&g, "reshape", "{}", IDS(y, to_rows));
    y = region_end(&g);
    uint32_t w = region_const(&g, 64, 64, -1);
    uint32_t gamma = region_const(&g, 64, -1), beta = region_const(&g, 64, -1);
    region_kernel(&g, "nn.matmul", "{}", IDS(y, w));
    region_post(&g, "add", "{}", gamma, false);
    region_post(&g, "add", "{}", x, false);
    y = region_end(&g);
    region_kernel(&g, "nn.layer_norm", "{}", IDS(y, gamma, beta));
    expect(&g, region_end(&g), 1e-4, &r);
    assert_int_equal(r.n_reorders, 0);
    region_close(&g);
}

static void test_norms(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 10, 6, 5, -1);
    uint32_t a = region_positive(&g, 10, -1), b = region_const(&g, 10, -1);
    uint32_t m = region_const(&g, 10, -1), v = region_positive(&g, 10, -1);
    region_kernel(&g, "nn.batch_norm", "{}", IDS(x, a, b, m, v));
    region_post(&g, "nn.relu", "{}", NONE, false);
    uint32_t y = region_end(&g);
    region_kernel(&g, "nn.prelu", "{}",
                  IDS(y, region_positive(&g, 10, 1, 1, -1)));
    expect(&g, region_end(&g), tolerance, NULL);
    region_close(&g);
}

/* Post-ops of a normalisation are steps of their own, except ReLU: oneDNN would
 * compute them without vectors. */
static void test_norm_posts(void **state)
{
    static const char *const posts[] = {"nn.leaky_relu", "tanh"};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(posts); i++) {
        struct region g;
        struct region_report r;
        region_open(&g);
        uint32_t x = region_input(&g, 1, 12, 9, 8, -1);
        uint32_t w = region_const(&g, 12, 12, 3, 3, -1);
        region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
        uint32_t y = region_end(&g);
        region_kernel(
            &g, "nn.instance_norm", "{}",
            IDS(y, region_positive(&g, 12, -1), region_const(&g, 12, -1)));
        region_post(&g, posts[i], "{}", NONE, false);
        expect(&g, region_end(&g), tolerance, &r);
        assert_null(strstr(r.trace, "nn.instance_norm+"));
        region_close(&g);
    }
}

/* concatenation and its readers stay channels-last; slices are views */
static void test_concat_split(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 7, 7, -1);
    uint32_t w = region_const(&g, 16, 16, 1, 1, -1);
    uint32_t w2 = region_const(&g, 8, 32, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", "{}", IDS(x, w));
    uint32_t a = region_end(&g);
    region_kernel(&g, "concatenate", "{\"axis\":1}", IDS(x, a));
    uint32_t c = region_end(&g);
    region_kernel(&g, "nn.conv2d", "{}", IDS(c, w2));
    uint32_t d = region_end(&g);
    expect(&g, d, tolerance, &r);
    assert_int_equal(r.n_reorders, 2);
    static const int64_t begin[] = {2, 1}, end[] = {100, -1}, axes[] = {1, 3},
                         steps[] = {2, 3};
    uint32_t lists[] = {region_ints(&g, 2, begin), region_ints(&g, 2, end),
                        region_ints(&g, 2, axes), region_ints(&g, 2, steps)};
    region_kernel(&g, "strided_slice", "{}",
                  IDS(d, lists[0], lists[1], lists[2], lists[3]));
    expect(&g, region_end(&g), tolerance, NULL);
    region_close(&g);
}

/* Whether 1 x 1 convolutions gather their data on this machine. */
static bool gathers(void)
{
    return byi_f32_kernels()->rows >= 6;
}

static void expect_steps(struct region *g, uint32_t out, uint32_t steps,
                         uint32_t n_saved, const char *name)
{
    struct region_report r;
    expect(g, out, tolerance, &r);
    assert_int_equal(r.n_steps - r.n_reorders,
                     steps - (gathers() ? n_saved : 0));
    if (gathers() && name)
        assert_non_null(strstr(r.trace, name));
}

/* A concatenation, BatchNorm and ReLU before a 1 x 1 convolution need no step
 * of their own. */
static void test_gathered_concat(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 24, 5, 7, -1);
    uint32_t w = region_const(&g, 20, 24, 3, 3, -1);
    uint32_t v = region_const(&g, 48, 44, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    uint32_t a = region_end(&g);
    region_kernel(&g, "concatenate", "{\"axis\":1}", IDS(x, a));
    region_post(&g, "multiply", "{}", region_const(&g, 44, 1, 1, -1), false);
    region_post(&g, "add", "{}", region_const(&g, 1, 44, 1, 1, -1), true);
    region_post(&g, "nn.relu", "{}", NONE, false);
    region_kernel(&g, "nn.conv2d", "{}", IDS(region_end(&g), v));
    region_post(&g, "add", "{}", region_const(&g, 48, 1, 1, -1), false);
    /* overwrites its operand, unless a later step reads that */
    uint32_t y = region_end(&g);
    region_kernel(&g, "nn.relu", "{}", IDS(a));
    uint32_t b = region_end(&g);
    region_kernel(&g, "nn.conv2d", PAD1,
                  IDS(b, region_const(&g, 48, 20, 3, 3, -1)));
    region_post(&g, "add", "{}", y, false);
    expect_steps(&g, region_end(&g), 6, 2,
                 "concatenate+multiply+add+nn.relu+nn.conv2d+add:direct");
    region_close(&g);
}

/* The multiplication of squeeze-and-excitation before a 1 x 1 convolution needs
 * no step of its own, even though its scales differ for each image. */
static void test_gathered_scale(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 16, 6, 6, -1);
    uint32_t w = region_const(&g, 16, 16, 3, 3, -1);
    uint32_t v = region_const(&g, 16, 16, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    uint32_t a = region_end(&g);
    region_kernel(&g, "nn.global_avg_pool2d", "{}", IDS(a));
    region_post(&g, "sigmoid", "{}", NONE, false);
    uint32_t s = region_end(&g);
    region_kernel(&g, "multiply", "{}", IDS(s, a));
    region_kernel(&g, "nn.conv2d", "{}", IDS(region_end(&g), v));
    region_post(&g, "add", "{}", x, false);
    expect_steps(&g, region_end(&g), 4, 1, "multiply+nn.conv2d+add:direct");
    region_close(&g);
}

/* A convolution with ten additions, such as that of all skip connections of a
 * WaveNet. */
static void test_many_additions(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 32, 8, 8, -1);
    region_kernel(&g, "nn.conv2d", "{}",
                  IDS(x, region_const(&g, 32, 32, 1, 1, -1)));
    for (int i = 0; i < 10; i++)
        region_post(&g, "add", "{}", x, false);
    region_post(&g, "nn.relu", "{}", NONE, false);
    expect_steps(&g, region_end(&g), 1, 0, "+add+add+add+nn.relu:direct");
    region_close(&g);
}

/* The multiplication is a step of its own if its result has other readers than
 * a 1 x 1 convolution, or if the convolution does not read every position. */
static void test_not_gathered(void **state)
{
    static const struct {
        const char *attrs;
        int64_t taps;
        bool twice;
    } cases[] = {
        {"{\"strides\":[2,2]}", 1, false}, {"{}", 3, false}, {"{}", 1, true}};
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct region g;
        region_open(&g);
        uint32_t x = region_input(&g, 1, 16, 6, 6, -1);
        uint32_t v = region_const(&g, 24, 16, cases[i].taps, cases[i].taps, -1);
        region_kernel(&g, "multiply", "{}",
                      IDS(x, region_const(&g, 16, 1, 1, -1)));
        uint32_t y = region_end(&g);
        region_kernel(&g, "nn.conv2d", cases[i].attrs, IDS(y, v));
        uint32_t z = region_end(&g);
        if (cases[i].twice) {
            region_kernel(&g, "concatenate", "{\"axis\":1}", IDS(y, z));
            z = region_end(&g);
        }
        expect_steps(&g, z, 2 + cases[i].twice, 0, NULL);
        region_close(&g);
    }
}

/* global pooling, flattening and the classifier need no conversion */
static void test_classifier(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 7, 7, -1);
    uint32_t w = region_const(&g, 32, 16, 1, 1, -1);
    uint32_t fc = region_const(&g, 10, 32, -1), b = region_const(&g, 10, -1);
    region_kernel(&g, "nn.conv2d", "{}", IDS(x, w));
    uint32_t y = region_end(&g);
    region_kernel(&g, "nn.global_avg_pool2d", "{}", IDS(y));
    y = region_end(&g);
    region_kernel(&g, "nn.flatten", "{}", IDS(y));
    y = region_end(&g);
    region_kernel(&g, "nn.dense", "{}", IDS(y, fc));
    region_post(&g, "add", "{}", b, false);
    expect(&g, region_end(&g), tolerance, &r);
    assert_int_equal(r.n_reorders, 1);
    region_close(&g);
}

static void test_binary_forms(void **state)
{
    static const char *const ops[] = {"add", "subtract", "multiply", "divide"};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(ops); i++) {
        struct region g;
        region_open(&g);
        uint32_t x = region_input(&g, 2, 6, 5, 4, -1);
        uint32_t c = region_positive(&g, 6, 1, 1, -1);
        uint32_t y = region_positive(&g, 2, 6, 5, 4, -1);
        region_kernel(&g, ops[i], "{}", IDS(x, c));
        region_post(&g, "nn.relu", "{}", NONE, false);
        uint32_t a = region_end(&g);
        region_kernel(&g, ops[i], "{}", IDS(c, y));
        uint32_t b = region_end(&g);
        region_kernel(&g, ops[i], "{}", IDS(a, y));
        region_post(&g, "multiply", "{}", b, false);
        expect(&g, region_end(&g), 1e-4, NULL);
        region_close(&g);
    }
}

/* a broadcast operand with axes in an unusual order (ViT's scaled queries),
 * large enough that a reference kernel would be refused */
static void test_binary_permuted(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 40, 12, 16, -1);
    region_kernel(&g, "transpose", "{\"axes\":[1,0,2]}", IDS(x));
    uint32_t t = region_end(&g);
    uint32_t c = region_const(&g, 1, -1);
    region_kernel(&g, "multiply", "{}", IDS(t, c));
    const uint32_t out = region_end(&g);
    const char *why = region_check(&g, 1, &out, tolerance, NULL);
    if (why)
        fail_msg("%s", why);
    region_close(&g);
}

/* A product of few elements but many terms does not run on a reference kernel.
 * The mask of small attention is added after it, if oneDNN would need a
 * reference kernel to fuse it. */
static void test_product_mask(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t q = region_input(&g, 4, 32, 64, -1);
    uint32_t k = region_input(&g, 4, 64, 32, -1);
    uint32_t mask = region_const(&g, 32, 32, -1);
    region_kernel(&g, "nn.matmul", "{}", IDS(q, k));
    region_post(&g, "add", "{}", mask, false);
    expect(&g, region_end(&g), tolerance, &r);
    if (strstr(r.trace, ":ref"))
        fail_msg("expected no reference kernel in\n%s", r.trace);
    region_close(&g);
}

static void check_sum(const char *op, const char *attrs, enum byoc_dtype dtype,
                      double tol)
{
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_typed_input(&g, dtype, 3, 20, 65, -1);
    region_kernel(&g, op, attrs, IDS(x));
    expect(&g, region_end(&g), tol, &r);
    if (r.n_reorders || !strstr(r.trace, ":vector:"))
        fail_msg("%s %s of %s: found\n%s", op, attrs, byoc_dtype_name(dtype),
                 r.trace);
    region_close(&g);
}

/* Sums and means run on byoc's kernels, without a conversion, wherever the
 * reduced axes are adjacent. */
static void test_sums(void **state)
{
    static const struct {
        const char *op, *attrs;
    } cases[] = {
        {"sum", "{\"axis\":[1]}"},
        {"sum", "{\"axis\":[0,1],\"keepdims\":true}"},
        {"mean", "{\"axis\":[2]}"},
        {"mean", "{\"axis\":[0]}"},
        {"sum", "{}"},
    };
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        check_sum(cases[i].op, cases[i].attrs, BYOC_F32, tolerance);
        check_sum(cases[i].op, cases[i].attrs, BYOC_F16, 0x1p-9);
        check_sum(cases[i].op, cases[i].attrs, BYOC_BF16, 0x1p-6);
    }
}

static void check_halves(enum byoc_dtype dtype, int rows, int columns,
                         double tol)
{
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_typed_input(&g, dtype, rows, columns, -1);
    uint32_t row = region_typed_input(&g, dtype, 1, columns, -1);
    uint32_t column = region_typed_input(&g, dtype, rows, 1, -1);
    uint32_t whole = region_typed_input(&g, dtype, rows, columns, -1);
    region_kernel(&g, "add", "{}", IDS(x, row));
    region_post(&g, "tanh", "{}", NONE, false);
    region_post(&g, "multiply", "{}", column, false);
    region_post(&g, "subtract", "{}", whole, false);
    expect(&g, region_end(&g), tol, &r);
    if (!strstr(r.trace, ":elementwise:"))
        fail_msg("%s %d x %d: found\n%s", byoc_dtype_name(dtype), rows, columns,
                 r.trace);
    region_close(&g);
}

/* Elementwise operators of 16 bits run in blocks on byoc's kernels: of several
 * rows, of a part of a row, and of one column. */
static void test_elementwise_halves(void **state)
{
    static const int sizes[][2] = {{300, 40}, {3, 5000}, {2500, 1}, {7, 13}};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(sizes); i++) {
        check_halves(BYOC_F16, sizes[i][0], sizes[i][1], 0x1p-9);
        check_halves(BYOC_BF16, sizes[i][0], sizes[i][1], 0x1p-6);
    }
}

/* Steps of a few elements run on the calling thread alone. */
static void test_small_steps(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 4, 100, -1);
    uint32_t y = region_input(&g, 4, 28, -1);
    uint32_t c = region_const(&g, 128, -1);
    region_kernel(&g, "concatenate", "{\"axis\":1}", IDS(x, y));
    uint32_t z = region_end(&g);
    region_kernel(&g, "add", "{}", IDS(z, c));
    region_post(&g, "tanh", "{}", NONE, false);
    const uint32_t forks_before = region_forks;
    expect(&g, region_end(&g), tolerance, NULL);
    assert_int_equal(region_forks, forks_before);
    region_close(&g);
}

/* byoc's kernels run dilated pools, for which oneDNN has only a reference
 * implementation. */
static void test_dilated_pools(void **state)
{
    static const char *const ops[] = {"nn.max_pool2d", "nn.avg_pool2d"};
    static const char *const attrs[] = {
        "{\"pool_size\":[2,3],\"strides\":[1,2],\"dilation\":[3,2]}",
        "{\"pool_size\":[2,2],\"dilation\":[2,2],\"padding\":[1,1,1,1]}"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct region g;
        struct region_report r;
        region_open(&g);
        uint32_t x = region_input(&g, 2, 70, 11, 12, -1);
        region_kernel(&g, ops[i % 2], attrs[i / 2], IDS(x));
        expect(&g, region_end(&g), tolerance, &r);
        if (!strstr(r.trace, ":pool:"))
            fail_msg("found\n%s", r.trace);
        region_close(&g);
    }
}

/* an input that is an output; one value twice; outputs that are views */
static void test_borders(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 2, 3, 4, -1);
    uint32_t c = region_const(&g, 4, -1);
    region_kernel(&g, "add", "{}", IDS(x, c));
    uint32_t y = region_end(&g);
    region_kernel(&g, "transpose", "{}", IDS(y));
    uint32_t t = region_end(&g);
    region_kernel(&g, "nn.relu", "{}", IDS(t));
    uint32_t z = region_end(&g);
    const uint32_t outs[] = {x, y, y, t, z, c};
    const char *why = region_check(&g, 6, outs, tolerance, NULL);
    if (why)
        fail_msg("%s", why);
    region_close(&g);
}

/* An elementwise function is fused with the primitive before it, and prelu of
 * channels with a convolution that runs on byoc's kernels. */
static void test_fused_functions(void **state)
{
    static const struct {
        const char *op, *attrs, *trace;
    } cases[] = {
        {"nn.max_pool2d", "{\"pool_size\":[2,2]}", "nn.max_pool2d+nn.relu:"},
        {"nn.global_avg_pool2d", "{}", "nn.global_avg_pool2d+nn.relu:"},
    };
    (void)state;
    needs_kernels();
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct region g;
        struct region_report r;
        region_open(&g);
        uint32_t x = region_input(&g, 2, 16, 9, 8, -1);
        region_kernel(&g, cases[i].op, cases[i].attrs, IDS(x));
        region_post(&g, "nn.relu", "{}", NONE, false);
        expect(&g, region_end(&g), tolerance, &r);
        if (!strstr(r.trace, cases[i].trace))
            fail_msg("expected %s in\n%s", cases[i].trace, r.trace);
        region_close(&g);
    }
    struct region g;
    struct region_report r;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 12, 12, -1);
    uint32_t w = region_const(&g, 64, 16, 3, 3, -1);
    uint32_t slope = region_const(&g, 64, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    region_post(&g, "nn.relu", "{}", NONE, false);
    region_post(&g, "nn.prelu", "{}", slope, false);
    expect(&g, region_end(&g), tolerance, &r);
    if (!strstr(r.trace, "nn.conv2d+nn.relu+nn.prelu:"))
        fail_msg("expected a fused prelu in\n%s", r.trace);
    region_close(&g);
}

/* --- refusals ------------------------------------------------------------ */

static void expect_refusal(struct region *g, uint32_t out, const char *part)
{
    struct byoc_probe probe;
    const char *why = region_probe(g, 1, &out, &probe);
    if (!why)
        fail_msg("accepted (%s), expected a refusal with '%s'", probe.impl,
                 part);
    if (!strstr(why, part))
        fail_msg("found '%s', expected '%s' in it", why, part);
}

static void test_refusals(void **state)
{
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_typed_input(&g, BYOC_I64, 2, 3, -1);
    region_kernel(&g, "add", "{}", IDS(x, x));
    expect_refusal(&g, region_end(&g), "found dtype int64, expected float32");
    region_close(&g);

    region_open(&g);
    x = region_input(&g, 2, 0, 3, -1);
    region_kernel(&g, "nn.relu", "{}", IDS(x));
    expect_refusal(&g, region_end(&g), "empty tensor");
    region_close(&g);

    /* reads a transposed copy first, of no elements */
    region_open(&g);
    x = region_input(&g, 3, 0, -1);
    region_kernel(&g, "sum", "{}", IDS(x));
    expect_refusal(&g, region_end(&g), "empty tensor");
    region_close(&g);

    region_open(&g);
    uint32_t a = region_input(&g, 64, 1, -1), b = region_input(&g, 1, 80, -1);
    region_kernel(&g, "add", "{}", IDS(a, b));
    expect_refusal(&g, region_end(&g), "both operands are broadcast");
    region_close(&g);

    /* a rotary embedding of few elements */
    region_open(&g);
    a = region_input(&g, 2, 10, 4, 4, -1);
    b = region_input(&g, 2, 10, 1, 4, -1);
    region_kernel(&g, "multiply", "{}", IDS(a, b));
    expect_refusal(&g, region_end(&g), "reference implementation");
    region_close(&g);

    region_open(&g);
    x = region_input(&g, 1, 2, 4, 4, -1);
    uint32_t w = region_const(&g, 2, 2, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", "{\"padding\":[4,4,4,4]}", IDS(x, w));
    expect_refusal(&g, region_end(&g), "lies entirely in the padding");
    region_close(&g);
}

/* a probe answers with the implementation, quickly and without packing */
static void test_probe(void **state)
{
    (void)state;
    struct region g;
    struct byoc_probe probe;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 64, 28, 28, -1);
    uint32_t w = region_const(&g, 64, 64, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    region_post(&g, "nn.relu", "{}", NONE, false);
    const uint32_t out = region_end(&g);
    assert_null(region_probe(&g, 1, &out, &probe));
    assert_int_equal(probe.reference, 0);
    assert_true(probe.impl[0] != '\0');
    assert_null(strstr(probe.impl, "ref"));
    region_close(&g);
}

/* A window along the first of three axes, which byoc's kernels compute as one
 * along a line; with SSE2, too. */
static void test_probe_depth(void **state)
{
    (void)state;
    struct region g;
    struct byoc_probe probe;
    region_open(&g);
    const uint32_t x = region_input(&g, 1, 64, 8, 28, 28, -1);
    const uint32_t w = region_const(&g, 64, 64, 3, 1, 1, -1);
    region_kernel(&g, "nn.conv3d", "{\"padding\":[1,0,0,1,0,0]}", IDS(x, w));
    const uint32_t out = region_end(&g);
    assert_null(region_probe(&g, 1, &out, &probe));
    assert_non_null(strstr(probe.impl, "winograd_4_3"));
    expect(&g, out, 1e-4, NULL);
    region_close(&g);
}

/* A chain of three convolutions that read one constant, or one constant each.
 * Returns the last one's node. */
static uint32_t conv_chain(struct region *g, bool is_shared)
{
    region_open(g);
    uint32_t y = region_input(g, 1, 32, 10, 10, -1);
    uint32_t w = region_const(g, 32, 32, 3, 3, -1);
    for (uint32_t i = 0; i < 3; i++) {
        if (i && !is_shared)
            w = region_const(g, 32, 32, 3, 3, -1);
        region_kernel(g, "nn.conv2d", PAD1, IDS(y, w));
        region_post(g, "tanh", "{}", NONE, false);
        y = region_end(g);
    }
    return y;
}

/* The bytes of memory that loading the chain acquires. */
static uint64_t bytes_of_load(bool is_shared)
{
    struct region g;
    const uint32_t out = conv_chain(&g, is_shared);
    struct job *job = calloc(1, sizeof *job);
    void *compiled = NULL;
    fill_job(&g, job, region_json(&g, 1, &out));
    const uint64_t bytes_before = region_bytes;
    assert_null(region_backend()->load(region_host(), &job->region, &compiled));
    const uint64_t bytes = region_bytes - bytes_before;
    region_backend()->unload(region_host(), compiled);
    free(job);
    region_close(&g);
    return bytes;
}

/* Weights are packed once for three readers of one constant. */
static void test_shared_weights(void **state)
{
    (void)state;
    struct region g;
    const uint32_t out = conv_chain(&g, true);
    expect(&g, out, 5e-4, NULL); /* each layer amplifies the error before */
    region_close(&g);
    const uint64_t weights = 32 * 32 * 9 * sizeof(float);
    assert_true(bytes_of_load(false) >= bytes_of_load(true) + 2 * weights);
}

/* --- threads -------------------------------------------------------------- */

/* A thread that runs the compiled region. */
struct region_user {
    void *compiled;
    struct byoc_view input, output;
    const char *why;
};

static void *run_often(void *arg)
{
    struct region_user *r = arg;
    const struct byoc_host *host = region_host();
    const struct byoc_backend *dnnl = region_backend();
    void *state = NULL;
    struct byoc_fail *fail = dnnl->state_new(host, r->compiled, &state);
    void *scratch =
        host->acquire(host->ctx, dnnl->scratch_bytes(host, r->compiled));
    const struct byoc_run_args args = {.struct_size = sizeof args,
                                       .n_inputs = 1,
                                       .n_outputs = 1,
                                       .inputs = &r->input,
                                       .outputs = &r->output,
                                       .scratch = scratch};
    for (int i = 0; i < 50 && !fail; i++)
        fail = dnnl->run(host, r->compiled, state, &args);
    r->why = fail ? region_fail_text(fail) : NULL;
    if (state)
        dnnl->state_free(host, r->compiled, state);
    host->release(host->ctx, scratch);
    return NULL;
}

/* threads run one compiled region, each with its own state, and get the same
 * results */
static void test_threads(void **state)
{
    enum { N = 3 };
    (void)state;
    struct region g;
    region_open(&g);
    uint32_t x = region_input(&g, 1, 16, 12, 12, -1);
    uint32_t w = region_const(&g, 16, 16, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", PAD1, IDS(x, w));
    region_post(&g, "nn.relu", "{}", NONE, false);
    uint32_t y = region_end(&g);
    region_kernel(&g, "nn.softmax", "{\"axis\":1}", IDS(y));
    const uint32_t out = region_end(&g);
    const char *json = region_json(&g, 1, &out);
    struct job *job = calloc(1, sizeof *job);
    fill_job(&g, job, json);
    struct region_user users[N] = {0};
    pthread_t threads[N];
    void *compiled = NULL;
    assert_null(region_backend()->load(region_host(), &job->region, &compiled));
    for (int i = 0; i < N; i++) {
        const struct byi_tensor t = tensor_of(g.type[out]);
        users[i] = (struct region_user){.compiled = compiled,
                                        .input = job->inputs[0],
                                        .output = view_of(&t)};
        users[i].output.dims = g.type[out]->dims;
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_often, &users[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        if (users[i].why)
            fail_msg("%s", users[i].why);
        assert_memory_equal(users[i].output.data, users[0].output.data,
                            users[0].output.bytes);
    }
    for (int i = 0; i < N; i++)
        byi_release(users[i].output.data);
    region_backend()->unload(region_host(), compiled);
    free(job);
    region_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_bias_relu),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_residual_read_again),
        cmocka_unit_test(test_late_sum),
        cmocka_unit_test(test_conv_plus_source),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_conv_forms),
        cmocka_unit_test(test_single_operators),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_matmul_shapes),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_norm_posts),
        cmocka_unit_test(test_concat_split),
        cmocka_unit_test(test_gathered_concat),
        cmocka_unit_test(test_gathered_scale),
        cmocka_unit_test(test_many_additions),
        cmocka_unit_test(test_not_gathered),
        cmocka_unit_test(test_classifier),
        cmocka_unit_test(test_binary_forms),
        cmocka_unit_test(test_binary_permuted),
        cmocka_unit_test(test_product_mask),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_elementwise_halves),
        cmocka_unit_test(test_small_steps),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_dilated_pools),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_fused_functions),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_depth),
        cmocka_unit_test(test_shared_weights),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(regions_as_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
