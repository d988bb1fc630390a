/* SPDX-License-Identifier: Apache-2.0 */
/* cases_contrib.c: random calls of com.microsoft's operators. */
#include "fuzz.h"

#include <string.h>

#define MS "com.microsoft"

#define ONE_OF(d, list) (list)[draw_int(d, 0, BYI_COUNT(list) - 1)]

static bool is_op(const char *name)
{
    return strcmp(op_now->op, name) == 0;
}

/* --- element by element, norms -------------------------------------------- */

/* x, and a bias of its last axis. */
static void biased(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    if (is_op("BiasGelu") || draw_chance(d, 50))
        draw_operand(d, d->dtype, 1, &dims[rank - 1], ORDINARY);
}

static void quick_gelu(struct draw *d)
{
    draw_same(d);
    if (draw_chance(d, 60))
        draw_attr_float(d, "alpha", (float)draw_int(d, -16, 16) / 8);
}

/* x, a summand, gamma, beta (unless simplified), a bias. */
static void skip_norm(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 3), draw_int(d, 1, 6),
                            draw_int(d, 2, 40)};
    const bool simplified = is_op("SkipSimplifiedLayerNormalization");

    draw_operand(d, d->dtype, 3, dims, ORDINARY);
    draw_operand(d, d->dtype, 3, dims, ORDINARY);
    draw_operand(d, d->dtype, 1, &dims[2], ORDINARY);
    if (!simplified && draw_chance(d, 70))
        draw_operand(d, d->dtype, 1, &dims[2], ORDINARY);
    else if (!simplified)
        draw_nothing(d);
    if (draw_chance(d, 40))
        draw_operand(d, d->dtype, 1, &dims[2], ORDINARY);
    draw_attr_float(d, "epsilon", draw_chance(d, 50) ? 1e-3f : 0.25f);
}

static void simplified_norm(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 3), draw_int(d, 1, 6),
                            draw_int(d, 1, 40)};

    draw_operand(d, d->dtype, 3, dims, ORDINARY);
    draw_operand(d, d->dtype, 1, &dims[2], ORDINARY);
    draw_attr_int(d, "axis", -1);
    draw_attr_float(d, "epsilon", 1e-3f);
}

static void indices(struct draw *d, uint32_t rank, const int64_t *dims,
                    int64_t end)
{
    struct byi_tensor *t = draw_operand(d, BYOC_I32, rank, dims, ORDINARY);

    for (int64_t i = 0; i < byi_elements(rank, dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, end - 1));
}

/* Rows of few different ids, so that some n-grams repeat, and scores. */
static void block_repeats(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 3), draw_int(d, 1, 20)};
    const int64_t scores[] = {dims[0], draw_int(d, 3, 9)};
    struct byi_tensor *t = draw_operand(d, BYOC_I64, 2, dims, ORDINARY);

    for (int64_t i = 0; i < byi_elements(2, dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 2));
    draw_operand(d, BYOC_F32, 2, scores, ORDINARY);
    draw_attr_int(d, "ngram_size", draw_int(d, 1, 4));
}

/* Words, segments, their tables and that of positions, gamma, beta, mask. */
static void embed_norm(struct draw *d)
{
    const int64_t ids[] = {draw_int(d, 1, 3), draw_int(d, 1, 6)};
    const int64_t width = draw_int(d, 2, 30);
    const bool segments = draw_chance(d, 60);

    indices(d, 2, ids, 9);
    if (segments)
        indices(d, 2, ids, 2);
    else
        draw_nothing(d);
    draw_operand(d, BYOC_F32, 2, (int64_t[]){9, width}, ORDINARY);
    draw_operand(d, BYOC_F32, 2, (int64_t[]){6, width}, ORDINARY);
    if (segments)
        draw_operand(d, BYOC_F32, 2, (int64_t[]){2, width}, ORDINARY);
    else
        draw_nothing(d);
    for (int i = 0; i < 2; i++)
        draw_operand(d, BYOC_F32, 1, &width, ORDINARY);
    if (draw_chance(d, 50))
        indices(d, 2, ids, 2);
    draw_attr_float(d, "epsilon", 1e-3f);
}

/* --- products ------------------------------------------------------------- */

static void fused_matmul(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 20), k = draw_int(d, 1, 20),
                  n = draw_int(d, 1, 36);
    const uint32_t rank = (uint32_t)draw_int(d, 2, 4);
    const bool transpose_a = draw_chance(d, 40),
               transpose_b = draw_chance(d, 40);
    int64_t a[] = {2, 3, 0, 0}, b[] = {2, 3, 0, 0};

    a[rank - 2] = transpose_a ? k : m;
    a[rank - 1] = transpose_a ? m : k;
    b[rank - 2] = transpose_b ? n : k;
    b[rank - 1] = transpose_b ? k : n;
    draw_operand(d, d->dtype, rank, a, ORDINARY);
    draw_operand(d, d->dtype, rank, b, ORDINARY);
    draw_attr_int(d, "transA", transpose_a);
    draw_attr_int(d, "transB", transpose_b);
    if (draw_chance(d, 50))
        draw_attr_float(d, "alpha", (float)draw_int(d, -8, 8) / 4);
}

static void distances(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 20), k = draw_int(d, 1, 20),
                  n = draw_int(d, 1, 36);

    draw_operand(d, d->dtype, 2, (int64_t[]){m, k}, ORDINARY);
    draw_operand(d, d->dtype, 2, (int64_t[]){n, k}, ORDINARY);
    /* the square root of a distance near 0 has few exact digits */
    draw_attr_string(d, "metric", "sqeuclidean");
}

static void fused_gemm(struct draw *d)
{
    static const char *const functions[] = {"Relu", "Tanh", "Sigmoid",
                                            "LeakyRelu"};
    const int64_t m = draw_int(d, 1, 20), k = draw_int(d, 1, 20),
                  n = draw_int(d, 1, 36);
    const char *function = ONE_OF(d, functions);
    const bool transpose_b = draw_chance(d, 50);

    draw_operand(d, d->dtype, 2, (int64_t[]){m, k}, ORDINARY);
    draw_operand(d, d->dtype, 2,
                 transpose_b ? (int64_t[]){n, k} : (int64_t[]){k, n}, ORDINARY);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 1, &n, ORDINARY);
    draw_attr_int(d, "transB", transpose_b);
    draw_attr_float(d, "alpha", (float)draw_int(d, 1, 8) / 4);
    draw_attr_float(d, "beta", (float)draw_int(d, 0, 8) / 4);
    draw_attr_string(d, "activation", function);
    if (strcmp(function, "LeakyRelu") == 0)
        draw_attr_float(d, "activation_alpha", 0.125f);
}

/* x, weights, bias, a summand before the function. */
static void fused_conv(struct draw *d)
{
    static const char *const functions[] = {"Relu", "Tanh", "Sigmoid",
                                            "LeakyRelu", "Clip"};
    const char *function = ONE_OF(d, functions);
    const int64_t groups = draw_int(d, 1, 2);
    const int64_t x[] = {draw_int(d, 1, 2), groups * draw_int(d, 1, 4),
                         draw_int(d, 3, 9), draw_int(d, 3, 9)};
    const int64_t w[] = {groups * draw_int(d, 1, 9), x[1] / groups,
                         draw_int(d, 1, 3), draw_int(d, 1, 3)};
    const int64_t y[] = {x[0], w[0], x[2] - w[2] + 1, x[3] - w[3] + 1};

    draw_operand(d, d->dtype, 4, x, ORDINARY);
    draw_operand(d, d->dtype, 4, w, ORDINARY);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 1, w, ORDINARY);
    else
        draw_nothing(d);
    if (draw_chance(d, 50))
        draw_operand(d, d->dtype, 4, y, ORDINARY);
    draw_attr_int(d, "group", groups);
    draw_attr_string(d, "activation", function);
    if (strcmp(function, "LeakyRelu") == 0)
        draw_attr_floats(d, "activation_params", 1, (float[]){0.125f});
    if (strcmp(function, "Clip") == 0)
        draw_attr_floats(d, "activation_params", 2, (float[]){-0.5f, 0.75f});
}

/* a, b, their scales and zero points, bias. */
static void integers_to_float(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 9), k = draw_int(d, 1, 20),
                  n = draw_int(d, 1, 36);

    draw_operand(d, d->dtype, 2, (int64_t[]){m, k}, EXTREME);
    draw_operand(d, d->dtype, 2, (int64_t[]){k, n}, EXTREME);
    draw_scale(d, 0.02f);
    draw_scale(d, 0.03f);
    draw_zero_point(d);
    draw_zero_point(d);
    if (draw_chance(d, 50))
        draw_operand(d, BYOC_F32, 1, &n, ORDINARY);
}

/* a of floats, b, its scale, its zero point, bias. */
static void dynamic_product(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 9), k = draw_int(d, 1, 20),
                  n = draw_int(d, 1, 36);

    draw_operand(d, BYOC_F32, 2, (int64_t[]){m, k}, ORDINARY);
    draw_operand(d, d->dtype, 2, (int64_t[]){k, n}, EXTREME);
    draw_scale(d, 0.03f);
    draw_zero_point(d);
    if (draw_chance(d, 50))
        draw_operand(d, BYOC_F32, 1, &n, ORDINARY);
}

/* Rows of codes, packed if they have 4 bits. */
static void gather_blocks(struct draw *d)
{
    const int64_t bits = draw_chance(d, 50) ? 4 : 8, block = 16;
    const int64_t rows = draw_int(d, 1, 9), k = 2 * draw_int(d, 1, 40);
    const int64_t blocks = (k + block - 1) / block;
    const int64_t w[] = {rows, k * bits / 8}, scales[] = {rows, blocks};
    const int64_t zeros[] = {rows, (blocks * bits + 7) / 8};
    const int64_t index_dims[] = {draw_int(d, 1, 3), draw_int(d, 1, 4)};
    const uint32_t rank = (uint32_t)draw_int(d, 0, 2);
    struct byi_tensor *t = draw_operand(d, BYOC_U8, 2, w, ORDINARY);

    for (int64_t i = 0; i < byi_elements(2, w); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
    t = draw_operand(d, BYOC_I64, rank, index_dims, ORDINARY);
    for (int64_t i = 0; i < byi_elements(rank, index_dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, -rows, rows - 1));
    draw_operand(d, d->dtype, 2, scales, UNIT);
    if (draw_chance(d, 50)) {
        t = draw_operand(d, BYOC_U8, 2, zeros, ORDINARY);
        for (int64_t i = 0; i < byi_elements(2, zeros); i++)
            byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
    }
    draw_attr_int(d, "bits", bits);
    draw_attr_int(d, "block_size", block);
    draw_attr_int(d, "gather_axis", 0);
    draw_attr_int(d, "quantize_axis", draw_chance(d, 50) ? 1 : -1);
}

/* x, two codes in each byte, the largest number of each block. */
static void matmul_bnb(struct draw *d)
{
    const int64_t k = draw_int(d, 1, 80), n = draw_int(d, 1, 12);
    const int64_t block = 16 << draw_int(d, 0, 2), bytes = (k * n + 1) / 2;
    const int64_t blocks = (k * n + block - 1) / block;
    struct byi_tensor *t;

    draw_operand(d, d->dtype, 2, (int64_t[]){draw_int(d, 1, 5), k}, ORDINARY);
    t = draw_operand(d, BYOC_U8, 1, &bytes, ORDINARY);
    for (int64_t i = 0; i < bytes; i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
    draw_operand(d, d->dtype, 1, &blocks, UNIT);
    draw_attr_int(d, "K", k);
    draw_attr_int(d, "N", n);
    draw_attr_int(d, "block_size", block);
    draw_attr_int(d, "quant_type", draw_int(d, 0, 1));
}

/* x, codes, scales; maybe zero points, groups, a bias */
static void matmul_n_bits(struct draw *d)
{
    const int64_t bits = 2 << draw_int(d, 0, 2);
    const int64_t block = 16 << draw_int(d, 0, 2);
    /* ONNX Runtime 1.30 gives other results for groups of 2 bits. */
    const bool groups = bits > 2 && draw_chance(d, 20);
    const int64_t k = groups ? block * draw_int(d, 1, 4) : draw_int(d, 1, 200);
    const int64_t n = draw_int(d, 1, 40);
    const int64_t blocks = (k + block - 1) / block;
    const int64_t w[] = {n, blocks, block * bits / 8};
    const int64_t scales = n * blocks, zeros = n * ((blocks * bits + 7) / 8);
    const bool bias = draw_chance(d, 30);
    struct byi_tensor *t;

    draw_operand(d, d->dtype, 2, (int64_t[]){draw_int(d, 1, 6), k}, ORDINARY);
    t = draw_operand(d, BYOC_U8, 3, w, ORDINARY);
    for (int64_t i = 0; i < byi_elements(3, w); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
    draw_operand(d, d->dtype, 1, &scales, UNIT);
    /* With groups and zero points of 4 bits ONNX Runtime 1.30 gives other
     * results than the zero point of each group does. */
    if (draw_chance(d, 50) && !groups) {
        t = draw_operand(d, BYOC_U8, 1, &zeros, ORDINARY);
        for (int64_t i = 0; i < zeros; i++)
            byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
    } else if (bias || groups) {
        draw_nothing(d);
    }
    if (groups) { /* the block of each column */
        t = draw_operand(d, BYOC_I32, 1, &k, ORDINARY);
        for (int64_t i = 0; i < k; i++)
            byi_tensor_set(t, i, (double)draw_int(d, 0, blocks - 1));
    } else if (bias) {
        draw_nothing(d);
    }
    if (bias)
        draw_operand(d, d->dtype, 1, &n, ORDINARY);
    draw_attr_int(d, "K", k);
    draw_attr_int(d, "N", n);
    draw_attr_int(d, "bits", bits);
    draw_attr_int(d, "block_size", block);
}

/* --- 8 bits --------------------------------------------------------------- */

static void quantized(struct draw *d, uint32_t rank, const int64_t *dims,
                      float scale)
{
    draw_operand(d, d->dtype, rank, dims, EXTREME);
    draw_scale(d, scale);
    draw_zero_point(d);
}

/* a, b and their scales; an integer sum; a scale of the result, or floats. */
static void qgemm(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 9), k = draw_int(d, 1, 20);
    const int64_t n = draw_int(d, 1, 20);
    const bool transpose_b = draw_chance(d, 50), columns = draw_chance(d, 50);

    quantized(d, 2, (int64_t[]){m, k}, 0.02f);
    draw_operand(d, d->dtype, 2,
                 transpose_b ? (int64_t[]){n, k} : (int64_t[]){k, n}, EXTREME);
    if (columns) {
        draw_operand(d, BYOC_F32, 1, &n, UNIT);
        draw_operand(d, d->dtype, 1, &n, ORDINARY);
    } else {
        draw_scale(d, 0.03f);
        draw_zero_point(d);
    }
    if (draw_chance(d, 50))
        draw_operand(d, BYOC_I32, 1, &n, ORDINARY);
    else
        draw_nothing(d);
    if (draw_chance(d, 50)) {
        draw_scale(d, columns ? 2 : 0.5f);
        draw_zero_point(d);
    }
    draw_attr_int(d, "transB", transpose_b);
    draw_attr_float(d, "alpha", 0.5f);
}

static void qlinear_concat(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank), n = draw_int(d, 1, 4);

    draw_scale(d, 0.04f);
    draw_zero_point(d);
    for (int64_t i = 0; i < n; i++) {
        dims[axis < 0 ? axis + rank : axis] = draw_int(d, 1, 5);
        quantized(d, rank, dims, 0.02f + 0.01f * (float)i);
    }
    draw_attr_int(d, "axis", axis);
}

static void qlinear_where(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], narrow[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, BYOC_BOOL, rank, dims, ORDINARY);
    quantized(d, draw_narrower(d, rank, dims, narrow), narrow, 0.02f);
    quantized(d, draw_narrower(d, rank, dims, narrow), narrow, 0.03f);
    draw_scale(d, 0.04f);
    draw_zero_point(d);
}

static void qlinear_softmax(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t zero = d->dtype == BYOC_U8 ? 0 : -128;

    quantized(d, rank, dims, 0.03f);
    draw_scale(d, 1.0f / 256);
    draw_ints(d, d->dtype, -1, &zero, true);
    draw_attr_int(d, "axis", draw_axis(d, rank));
    draw_attr_int(d, "opset", draw_chance(d, 50) ? 12 : 13);
}

static void qlinear_pool(struct draw *d)
{
    const bool global = is_op("QLinearGlobalAveragePool");
    const int64_t dims[] = {draw_int(d, 1, 2), draw_int(d, 3, 9),
                            draw_int(d, 3, 9), draw_int(d, 2, 9)};

    quantized(d, 4, dims, 0.03f);
    draw_scale(d, 0.025f);
    draw_zero_point(d);
    draw_attr_int(d, "channels_last", draw_int(d, 0, 1));
    if (global)
        return;
    draw_attr_ints(d, "kernel_shape", 2,
                   (int64_t[]){draw_int(d, 1, 3), draw_int(d, 1, 2)});
    draw_attr_ints(d, "strides", 2,
                   (int64_t[]){draw_int(d, 1, 2), draw_int(d, 1, 2)});
}

static void nhwc_pool(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 2), draw_int(d, 2, 9),
                            draw_int(d, 2, 9), draw_int(d, 1, 20)};
    const int64_t kernel[] = {draw_int(d, 1, 2), draw_int(d, 1, 2)};

    draw_operand(d, d->dtype, 4, dims, EXTREME);
    draw_attr_ints(d, "kernel_shape", 2, kernel);
    draw_attr_ints(d, "strides", 2, (int64_t[]){1, draw_int(d, 1, 2)});
}

/* --- attention ------------------------------------------------------------ */

/* The sizes of a GroupQueryAttention. */
struct grouped {
    int64_t batch, queries, heads, kv_heads, size; /* size: of a head */
    int64_t cache;   /* rows of the cache; 0: none is given   */
    int64_t total;   /* keys of the longest sequence          */
    int64_t last[3]; /* the last key of each sequence         */
    bool rotary;
    /* queries after the end of their sequence: their results are not specified,
     * and differ with a window */
    bool padded;
};

/* A prompt, whose sequences may be shorter than it; or queries after a past,
 * one for each of several sequences, or several of a single one. */
static struct grouped draw_grouped(struct draw *d)
{
    const int64_t kv_heads = draw_int(d, 1, 3);
    struct grouped g = {.batch = draw_int(d, 1, 3),
                        .queries = draw_int(d, 1, 9),
                        .heads = kv_heads * draw_int(d, 1, 3),
                        .kv_heads = kv_heads,
                        .rotary = draw_chance(d, 40)};
    const bool prompt = draw_chance(d, 40);
    const int64_t past = prompt ? 0 : draw_int(d, 1, 20);

    g.size = g.rotary ? 16 * draw_int(d, 1, 2) : 8 * draw_int(d, 1, 5);
    if (!prompt && g.batch > 1)
        g.queries = 1;
    g.total = past + g.queries;
    if (!prompt || draw_chance(d, 30))
        g.cache = draw_chance(d, 50) ? past : g.total + draw_int(d, 0, 9);
    for (int64_t i = 0; i < g.batch; i++) {
        const int64_t first = prompt ? 0 : g.queries - 1;
        g.last[i] = i == 0 ? g.total - 1 : draw_int(d, first, g.total - 1);
        g.padded = g.padded || (prompt && g.last[i] < g.total - 1);
    }
    return g;
}

static void draw_keys(struct draw *d, const struct grouped *g)
{
    const int64_t width = g->kv_heads * g->size;
    const int64_t q[] = {g->batch, g->queries, g->heads * g->size};
    const int64_t kv[] = {g->batch, g->queries, width};
    const int64_t packed_dims[] = {g->batch, g->queries, q[2] + 2 * width};
    const int64_t cache[] = {g->batch, g->kv_heads, g->cache, g->size};
    const bool packed = draw_chance(d, 25);

    draw_operand(d, d->dtype, 3, packed ? packed_dims : q,
                 op_now->distribution);
    for (int i = 0; i < 2; i++)
        if (packed)
            draw_nothing(d);
        else
            draw_operand(d, d->dtype, 3, kv, op_now->distribution);
    for (int i = 0; i < 2; i++)
        if (g->cache == 0)
            draw_nothing(d);
        else
            draw_operand(d, d->dtype, 4, cache, op_now->distribution);
}

/* Draw tables, positions, a bias of the scores and sinks, or omit them. */
static void draw_extras(struct draw *d, const struct grouped *g)
{
    const int64_t table[] = {64, g->size / 2};
    const int64_t bias[] = {draw_chance(d, 50) ? 1 : g->batch,
                            draw_chance(d, 50) ? 1 : g->heads, g->queries,
                            g->total};

    for (int i = 0; i < 2; i++)
        if (g->rotary)
            draw_operand(d, d->dtype, 2, table, UNIT);
        else
            draw_nothing(d);
    draw_nothing(d);
    if (draw_chance(d, 30))
        draw_operand(d, d->dtype, 4, bias, ORDINARY);
    else
        draw_nothing(d);
    if (draw_chance(d, 20))
        draw_operand(d, d->dtype, 1, &g->heads, ORDINARY);
    else if (draw_chance(d, 20))
        draw_attr_int(d, "smooth_softmax", 1);
}

static void group_query(struct draw *d)
{
    const struct grouped g = draw_grouped(d);

    draw_keys(d, &g);
    draw_ints(d, BYOC_I32, g.batch, g.last, draw_chance(d, 20));
    draw_ints(d, BYOC_I32, -1, &g.total, draw_chance(d, 20));
    draw_extras(d, &g);
    draw_attr_int(d, "num_heads", g.heads);
    draw_attr_int(d, "kv_num_heads", g.kv_heads);
    draw_attr_int(d, "do_rotary", g.rotary);
    draw_attr_int(d, "rotary_interleaved", draw_int(d, 0, 1));
    if (!g.padded && draw_chance(d, 40))
        draw_attr_int(d, "local_window_size", draw_int(d, 1, 12));
    else if (draw_chance(d, 20))
        draw_attr_int(d, "causal", 0);
    if (draw_chance(d, 20))
        draw_attr_float(d, "softcap", (float)draw_int(d, 1, 8));
    if (draw_chance(d, 30))
        draw_attr_float(d, "scale", (float)draw_int(d, 1, 8) / 8);
}

/* Weights of queries, keys and values in one; a mask of any form. */
static void attention(struct draw *d)
{
    const int64_t heads = draw_int(d, 1, 4), size = draw_int(d, 1, 9);
    const int64_t x[] = {draw_int(d, 1, 3), draw_int(d, 1, 9),
                         draw_int(d, 1, 12)};
    const int64_t columns = 3 * heads * size, form = draw_int(d, 0, 3);
    const int64_t past[] = {2, x[0], heads, draw_int(d, 1, 6), size};
    const bool has_past = form == 0 && draw_chance(d, 40);

    draw_operand(d, d->dtype, 3, x, op_now->distribution);
    draw_operand(d, d->dtype, 2, (int64_t[]){x[2], columns}, UNIT);
    draw_operand(d, d->dtype, 1, &columns, op_now->distribution);
    if (form == 1) {
        int64_t ends[3];
        for (int64_t i = 0; i < x[0]; i++)
            ends[i] = draw_int(d, 1, x[1]);
        draw_ints(d, BYOC_I32, x[0], ends, false);
    } else if (form == 2) {
        indices(d, 2, x, 2);
    } else if (form == 3) {
        indices(d, 3, (int64_t[]){x[0], x[1], x[1]}, 2);
    } else {
        draw_nothing(d);
    }
    if (has_past)
        draw_operand(d, d->dtype, 5, past, op_now->distribution);
    draw_attr_int(d, "num_heads", heads);
    draw_attr_int(d, "unidirectional", draw_int(d, 0, 1));
    if (draw_chance(d, 30))
        draw_attr_float(d, "scale", 0.25f);
}

/* x and weights of 8 bits, bias, their scales, a mask, their zero points. */
static void quantized_attention(struct draw *d)
{
    const int64_t heads = draw_int(d, 1, 4), size = draw_int(d, 1, 9);
    const int64_t x[] = {draw_int(d, 1, 3), draw_int(d, 1, 9),
                         draw_int(d, 1, 12)};
    const int64_t columns = 3 * heads * size, middle = 120;

    draw_operand(d, BYOC_U8, 3, x, EXTREME);
    draw_operand(d, d->dtype, 2, (int64_t[]){x[2], columns}, EXTREME);
    draw_operand(d, BYOC_F32, 1, &columns, ORDINARY);
    draw_scale(d, 0.02f);
    draw_scale(d, 0.01f);
    if (draw_chance(d, 50))
        indices(d, 2, x, 2);
    else
        draw_nothing(d);
    draw_ints(d, BYOC_U8, -1, &middle, true);
    draw_zero_point(d);
    draw_attr_int(d, "num_heads", heads);
    draw_attr_int(d, "unidirectional", draw_int(d, 0, 1));
}

static void multi_head(struct draw *d)
{
    const int64_t heads = draw_int(d, 1, 4), size = draw_int(d, 1, 9);
    const int64_t q[] = {draw_int(d, 1, 3), draw_int(d, 1, 9), heads * size};
    const int64_t k[] = {q[0], draw_int(d, 1, 9), q[2]};
    const int64_t bias = 3 * q[2];
    const int64_t scores[] = {1, draw_chance(d, 50) ? 1 : heads, q[1], k[1]};

    draw_operand(d, d->dtype, 3, q, op_now->distribution);
    draw_operand(d, d->dtype, 3, k, op_now->distribution);
    draw_operand(d, d->dtype, 3, k, op_now->distribution);
    if (draw_chance(d, 40))
        draw_operand(d, d->dtype, 1, &bias, op_now->distribution);
    else
        draw_nothing(d);
    if (draw_chance(d, 40))
        indices(d, 2, k, 2);
    else
        draw_nothing(d);
    if (draw_chance(d, 40))
        draw_operand(d, d->dtype, 4, scores, op_now->distribution);
    draw_attr_int(d, "num_heads", heads);
}

/* x, positions, tables of cosines and sines. */
static void rotary(struct draw *d)
{
    const int64_t heads = draw_int(d, 1, 3), half = 2 * draw_int(d, 1, 6);
    const int64_t b = draw_int(d, 1, 3), s = draw_int(d, 1, 7);
    const int64_t flat[] = {b, s, heads * 2 * half},
                  tall[] = {b, heads, s, 2 * half};
    const int64_t places[] = {b, s}, one = 1;
    const bool first = draw_chance(d, 40);

    if (draw_chance(d, 50))
        draw_operand(d, d->dtype, 3, flat, ORDINARY);
    else
        draw_operand(d, d->dtype, 4, tall, ORDINARY);
    struct byi_tensor *t = draw_operand(d, BYOC_I64, first ? 1 : 2,
                                        first ? &one : places, ORDINARY);
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 9));
    for (int i = 0; i < 2; i++)
        draw_operand(d, d->dtype, 2, (int64_t[]){20, half}, UNIT);
    draw_attr_int(d, "interleaved", draw_int(d, 0, 1));
}

/* ai.onnx's Attention: operands of rank 3 or 4, a mask that broadcasts, past
 * keys and values; present ones, and the scores at one of four stages. */
static void standard_attention(struct draw *d)
{
    const int64_t b = draw_int(d, 1, 3), kv = draw_int(d, 1, 3);
    const int64_t n = kv * draw_int(d, 1, 3), s = draw_int(d, 1, 6);
    const int64_t t = draw_int(d, 1, 6), h = 2 * draw_int(d, 1, 4);
    const int64_t hv = draw_int(d, 1, 6);
    const bool flat = draw_chance(d, 50), past = draw_chance(d, 50);
    const int64_t past_rows = past ? draw_int(d, 1, 5) : 0;
    const int64_t mask[] = {draw_chance(d, 50) ? b : 1,
                            draw_chance(d, 50) ? n : 1, s, t + past_rows};
    const uint32_t dropped = (uint32_t)draw_int(d, 0, 2);
    /* ONNX Runtime ignores is_causal for a single query */
    const bool causal = s > 1 && draw_chance(d, 50);
    int64_t mode = draw_int(d, 0, 3);

    for (int i = 0; i < 3; i++) {
        const int64_t heads = i ? kv : n, rows = i ? t : s;
        const int64_t width = i == 2 ? hv : h;
        draw_operand(d, d->dtype, flat ? 3 : 4,
                     flat ? (int64_t[]){b, rows, heads * width}
                          : (int64_t[]){b, heads, rows, width},
                     ORDINARY);
    }
    if ((s > 1 ||
         !causal) && /* ONNX Runtime ignores causal for one masked row */
        draw_chance(d, 60)) {
        const bool is_bool = draw_chance(d, 40);
        struct byi_tensor *m =
            draw_operand(d, is_bool ? BYOC_BOOL : d->dtype, 4 - dropped,
                         mask + dropped, ORDINARY);
        for (int64_t i = 0; d->dtype == BYOC_F64 && is_bool &&
                            i < byi_elements(m->rank, m->dims);
             i += t + past_rows)
            byi_tensor_set(m, i, 1); /* ONNX Runtime gives NaN without keys */
        /* ONNX Runtime's scores behind a bool mask are finite */
        mode = is_bool && mode == 2 ? 3 : mode;
    } else {
        draw_nothing(d);
    }
    if (past) {
        draw_operand(d, d->dtype, 4, (int64_t[]){b, kv, past_rows, h},
                     ORDINARY);
        draw_operand(d, d->dtype, 4, (int64_t[]){b, kv, past_rows, hv},
                     ORDINARY);
    }
    if (flat) {
        draw_attr_int(d, "q_num_heads", n);
        draw_attr_int(d, "kv_num_heads", kv);
    }
    draw_attr_int(d, "is_causal", causal);
    draw_attr_int(d, "qk_matmul_output_mode", causal && mode == 2 ? 1 : mode);
    if (draw_chance(d, 40))
        draw_attr_float(d, "scale", 0.375f);
    if (draw_chance(d, 30))
        draw_attr_float(d, "softcap", 2);
}

/* x of rank 3 or 4, cosines, sines, and which of their rows belong to the
 * tokens; without these they have a row for each. */
static void standard_rotary(struct draw *d)
{
    const int64_t b = draw_int(d, 1, 3), n = draw_int(d, 1, 3);
    const int64_t s = draw_int(d, 1, 6), half = 2 * draw_int(d, 1, 3);
    const bool part = draw_chance(d, 40), flat = draw_chance(d, 50);
    const bool placed = draw_chance(d, 50);
    const int64_t h = 2 * half + (part ? 4 : 0);
    int64_t places[] = {b, s};

    draw_operand(d, d->dtype, flat ? 3 : 4,
                 flat ? (int64_t[]){b, s, n * h} : (int64_t[]){b, n, s, h},
                 ORDINARY);
    for (int i = 0; i < 2; i++)
        draw_operand(d, d->dtype, placed ? 2 : 3,
                     placed ? (int64_t[]){9, half} : (int64_t[]){b, s, half},
                     UNIT);
    if (placed) {
        struct byi_tensor *at = draw_operand(d, BYOC_I64, 2, places, ORDINARY);
        for (int64_t i = 0; i < b * s; i++)
            byi_tensor_set(at, i, (double)draw_int(d, 0, 8));
    }
    if (flat)
        draw_attr_int(d, "num_heads", n);
    if (part)
        draw_attr_int(d, "rotary_embedding_dim", 2 * half);
    draw_attr_int(d, "interleaved", draw_int(d, 0, 1));
}

/* clang-format off */
static const struct op_case rows[] = {
    {"Attention", 1, "f", attention, ORDINARY, 1, 1e-4, MS, false},
    {"Attention", 1, "h", attention, UNIT, 1, 1e-4, MS, false},
    {"BiasGelu", 1, "f", biased, ORDINARY, 1, 1e-5, MS, false},
    {"DynamicQuantizeMatMul", 1, "8", dynamic_product, EXTREME, 1, 1e-4, MS, false},
    {"EmbedLayerNormalization", 1, "-", embed_norm, ORDINARY, 2, 1e-4, MS, false},
    {"FastGelu", 1, "fh", biased, ORDINARY, 1, 1e-5, MS, false},
    {"FusedConv", 1, "f", fused_conv, ORDINARY, 1, 1e-4, MS, false},
    {"FusedGemm", 1, "f", fused_gemm, ORDINARY, 1, 1e-4, MS, false},
    {"CDist", 1, "f", distances, ORDINARY, 1, 1e-4, MS, false},
    {"FusedMatMul", 1, "fh", fused_matmul, ORDINARY, 1, 1e-4, MS, false},
    {"Gelu", 1, "fh", draw_same, ORDINARY, 1, 1e-5, MS, false},
    {"Attention", 23, "fh", standard_attention, ORDINARY, 4, 1e-4, NULL, false},
    {"RotaryEmbedding", 23, "f", standard_rotary, ORDINARY, 1, 1e-5, NULL, false},
    {"RotaryEmbedding", 23, "h", standard_rotary, ORDINARY, 1, 1e-4, NULL, false},
    {"GroupQueryAttention", 1, "f", group_query, ORDINARY, 3, 1e-4, MS, false},
    {"GatherBlockQuantized", 1, "fh", gather_blocks, ORDINARY, 1, 1e-6, MS, false},
    {"GroupQueryAttention", 1, "h", group_query, UNIT, 3, 1e-4, MS, false},
    {"MatMulIntegerToFloat", 1, "8", integers_to_float, EXTREME, 1, 1e-4, MS, false},
    {"MatMulBnb4", 1, "f", matmul_bnb, ORDINARY, 1, 1e-4, MS, false},
    {"MatMulNBits", 1, "fh", matmul_n_bits, ORDINARY, 1, 3e-4, MS, false},
    {"MultiHeadAttention", 1, "f", multi_head, ORDINARY, 1, 1e-4, MS, false},
    {"MultiHeadAttention", 1, "h", multi_head, UNIT, 1, 1e-4, MS, false},
    {"NGramRepeatBlock", 1, "-", block_repeats, ORDINARY, 1, 0, MS, false},
    {"NhwcMaxPool", 1, "8", nhwc_pool, EXTREME, 1, 0, MS, false},
    {"QAttention", 1, "8", quantized_attention, EXTREME, 1, 1e-4, MS, false},
    {"QGemm", 1, "8", qgemm, ORDINARY, 1, 1e-4, MS, false},
    {"QLinearAveragePool", 1, "8", qlinear_pool, EXTREME, 1, 1, MS, false},
    {"QLinearConcat", 1, "8", qlinear_concat, EXTREME, 1, 1, MS, false},
    {"QLinearGlobalAveragePool", 1, "8", qlinear_pool, EXTREME, 1, 1, MS, false},
    {"QLinearSoftmax", 1, "8", qlinear_softmax, EXTREME, 1, 1, MS, false},
    {"QLinearWhere", 1, "8", qlinear_where, EXTREME, 1, 1, MS, false},
    {"QuickGelu", 1, "f", quick_gelu, ORDINARY, 1, 1e-5, MS, false},
    {"RotaryEmbedding", 1, "f", rotary, ORDINARY, 1, 1e-5, MS, false},
    {"RotaryEmbedding", 1, "h", rotary, ORDINARY, 1, 1e-4, MS, false},
    {"SimplifiedLayerNormalization", 1, "fh", simplified_norm, ORDINARY, 1, 1e-4, NULL, false},
    {"SkipLayerNormalization", 1, "fh", skip_norm, ORDINARY, 1, 1e-4, MS, false},
    {"SkipSimplifiedLayerNormalization", 1, "fh", skip_norm, ORDINARY, 1, 1e-4, MS, false},
    {"TransposeMatMul", 1, "f", fused_matmul, ORDINARY, 1, 1e-4, MS, false},
};
/* clang-format on */

const struct op_table op_cases_contrib = {rows, BYI_COUNT(rows)};
