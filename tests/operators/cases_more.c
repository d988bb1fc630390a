/* SPDX-License-Identifier: Apache-2.0 */
/* cases_more.c: random calls of operators on strings, of losses, and of
 * operators that are not in cases.c or cases_move.c.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#define ONE_OF(d, list) (list)[draw_int(d, 0, BYI_COUNT(list) - 1)]

/* Draw n dims from 1 to `max_dim` into dims[]. Returns dims. */
static const int64_t *shape(struct draw *d, uint32_t n, int64_t max_dim,
                            int64_t *dims)
{
    for (uint32_t i = 0; i < n; i++)
        dims[i] = draw_int(d, 1, max_dim);
    return dims;
}

/* --- strings -------------------------------------------------------------- */

static void normalize(struct draw *d)
{
    static const char *const cases[] = {"NONE", "LOWER", "UPPER"};
    static const char *const stops[] = {"the", "a", "10"};
    const bool row = draw_chance(d, 50);
    const int64_t n = draw_int(d, 1, 7);

    draw_operand(d, BYOC_STRING, row ? 2 : 1,
                 row ? (int64_t[]){1, n} : (int64_t[]){n}, ORDINARY);
    draw_attr_string(d, "case_change_action", ONE_OF(d, cases));
    draw_attr_int(d, "is_case_sensitive", draw_int(d, 0, 1));
    draw_attr_string(d, "locale", "C.UTF-8");
    if (draw_chance(d, 70))
        draw_attr_words(d, "stopwords", (size_t)draw_int(d, 1, 3), stops);
}

static void split(struct draw *d)
{
    static const char *const delimiters[] = {"e", "h", " ", "10"};
    int64_t dims[2];

    draw_operand(d, BYOC_STRING, 2, shape(d, 2, 4, dims), ORDINARY);
    if (draw_chance(d, 70))
        draw_attr_string(d, "delimiter", ONE_OF(d, delimiters));
    if (draw_chance(d, 50))
        draw_attr_int(d, "maxsplit", draw_int(d, 0, 2));
}

static void string_pair(struct draw *d)
{
    int64_t dims[2];

    draw_operand(d, BYOC_STRING, 2, shape(d, 2, 4, dims), ORDINARY);
    dims[0] = draw_chance(d, 50) ? 1 : dims[0];
    draw_operand(d, BYOC_STRING, 2, dims, ORDINARY);
}

static void matches(struct draw *d)
{
    static const char *const patterns[] = {".*",    "\\w+", "[a-z]*[0-9]?",
                                           "The|a", "\\d+", "T?he"};
    int64_t dims[2];

    draw_operand(d, BYOC_STRING, 2, shape(d, 2, 4, dims), ORDINARY);
    draw_attr_string(d, "pattern", ONE_OF(d, patterns));
}

/* A pool of three words and two pairs of them. */
static void tf_idf(struct draw *d)
{
    static const char *const modes[] = {"TF", "IDF", "TFIDF"};
    static const char *const words[] = {"a",  "The", "10", "a",
                                        "10", "The", "The"};
    static const int64_t numbers[] = {1, 2, 5, 1, 5, 2, 2};
    static const float weights[] = {0.5f, 2, 1, 3, 0.25f};
    const bool flat = draw_chance(d, 40);
    const int64_t longest = draw_int(d, 1, 2),
                  shortest = draw_int(d, 1, longest);
    int64_t dims[2], order[] = {0, 1, 2, 3, 4};

    draw_operand(d, d->dtype, flat ? 1 : 2, shape(d, 2, 12, dims), POSITIVE);
    for (int64_t i = 4; i > 0; i--) {
        const int64_t k = draw_int(d, 0, i), last = order[i];
        order[i] = order[k];
        order[k] = last;
    }
    draw_attr_int(d, "max_gram_length", longest);
    draw_attr_int(d, "min_gram_length", shortest);
    draw_attr_int(d, "max_skip_count", draw_int(d, 0, 3));
    draw_attr_string(d, "mode", ONE_OF(d, modes));
    draw_attr_ints(d, "ngram_counts", 2, (int64_t[]){0, 3});
    draw_attr_ints(d, "ngram_indexes", 5, order);
    if (draw_chance(d, 60))
        draw_attr_floats(d, "weights", 5, weights);
    if (d->dtype == BYOC_STRING)
        draw_attr_words(d, "pool_strings", 7, words);
    else
        draw_attr_ints(d, "pool_int64s", 7, numbers);
}

/* --- losses --------------------------------------------------------------- */

static void loss(struct draw *d)
{
    static const char *const reductions[] = {"none", "sum", "mean"};
    const uint32_t rank = (uint32_t)draw_int(d, 2, 4);
    const int64_t classes = draw_int(d, 1, 6);
    int64_t dims[4], target[4];

    shape(d, rank, 5, dims);
    dims[1] = classes;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    for (uint32_t i = 0, n = 0; i < rank; i++)
        if (i != 1)
            target[n++] = dims[i];
    struct byi_tensor *t =
        draw_operand(d, BYOC_I64, rank - 1, target, ORDINARY);
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, classes - 1));
    byi_tensor_set(t, 0, 0); /* not ignored: the mean of no elements is NaN */
    if (draw_chance(d, 50))
        draw_operand(d, d->dtype, 1, &classes, POSITIVE);
    if (classes > 1 && draw_chance(d, 40))
        draw_attr_int(d, "ignore_index", draw_int(d, 1, classes - 1));
    draw_attr_string(d, "reduction", ONE_OF(d, reductions));
}

/* --- com.microsoft: 8-bit weights ----------------------------------------- */

/* Words and segments (0 to 3), the tables of words, positions and segments,
 * gamma, beta, no mask; then scales and zero points of tables, gamma and beta.
 */
static void embed_norm(struct draw *d)
{
    const int64_t ids[] = {draw_int(d, 1, 3), draw_int(d, 1, 4)};
    const int64_t table[] = {4, draw_int(d, 1, 9)};

    for (int i = 0; i < 2; i++) {
        struct byi_tensor *t = draw_operand(d, BYOC_I32, 2, ids, ORDINARY);
        for (int64_t k = 0; k < ids[0] * ids[1]; k++)
            byi_tensor_set(t, k, (double)draw_int(d, 0, 3));
    }
    for (int i = 0; i < 3; i++)
        draw_operand(d, d->dtype, 2, table, POSITIVE);
    for (int i = 0; i < 2; i++)
        draw_operand(d, d->dtype, 1, &table[1], POSITIVE);
    draw_nothing(d);
    for (int i = 0; i < 5; i++)
        draw_scale(d, (float)draw_int(d, 1, 8) / 16);
    for (int i = 0; i < 5; i++)
        draw_zero_point(d);
    draw_attr_float(d, "epsilon", 0.01f);
}

/* x, weights and recurrent weights of 8 bits, bias, their scales and zero
 * points. */
static void quantized_lstm(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 2), h = draw_int(d, 1, 6);
    const int64_t x[] = {draw_int(d, 1, 4), draw_int(d, 1, 3),
                         draw_int(d, 1, 6)};
    const int64_t sizes[] = {x[2], h}, range[] = {n, 4 * h};
    const bool per_column = draw_chance(d, 50);

    draw_operand(d, BYOC_F32, 3, x, ORDINARY);
    for (int i = 0; i < 2; i++)
        draw_operand(d, d->dtype, 3, (int64_t[]){n, sizes[i], 4 * h}, ORDINARY);
    draw_operand(d, BYOC_F32, 2, (int64_t[]){n, 8 * h}, UNIT);
    for (int i = 0; i < 4; i++)
        draw_nothing(d);
    for (int i = 0; i < 2; i++) {
        struct byi_tensor *t =
            draw_operand(d, BYOC_F32, per_column ? 2 : 1, range, UNIT);
        for (int64_t k = 0; k < byi_elements(t->rank, t->dims); k++)
            byi_tensor_set(t, k, (double)draw_int(d, 1, 8) / 64);
        draw_operand(d, d->dtype, per_column ? 2 : 1, range, ORDINARY);
    }
    draw_attr_int(d, "hidden_size", h);
    draw_attr_string(d, "direction", n == 2 ? "bidirectional" : "forward");
}

static void channels_last_conv(struct draw *d)
{
    const int64_t c = draw_int(d, 1, 5), n = draw_int(d, 1, 9);
    const int64_t x[] = {1, draw_int(d, 3, 8), draw_int(d, 3, 8), c};
    const int64_t w[] = {n, c, draw_int(d, 1, 3), draw_int(d, 1, 3)};

    draw_operand(d, d->dtype, 4, x, EXTREME);
    draw_scale(d, 0.02f);
    draw_zero_point(d);
    draw_operand(d, d->dtype, 4, w, EXTREME);
    draw_scale(d, 0.03f);
    draw_zero_point(d);
    draw_scale(d, 0.25f);
    draw_zero_point(d);
    draw_attr_int(d, "channels_last", 1);
}

/* --- others --------------------------------------------------------------- */

/* com.microsoft's Unique: a vector. */
static void unique_flat(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 30);
    struct byi_tensor *t = draw_operand(d, d->dtype, 1, &n, ORDINARY);

    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(t, i, (double)draw_int(d, -3, 6));
}

static void unique(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 3, dims);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 1;
    struct byi_tensor *t = draw_operand(d, d->dtype, rank, dims, ORDINARY);
    for (int64_t i = 0; t->dtype != BYOC_STRING && t->dtype != BYOC_BOOL &&
                        i < byi_elements(rank, dims);
         i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 3)); /* some are equal */
    if (draw_chance(d, 60))
        draw_attr_int(d, "axis", draw_axis(d, rank));
    draw_attr_int(d, "sorted", draw_int(d, 0, 1));
}

static void constant_of_shape(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_ints(d, BYOC_I64, rank, dims, draw_chance(d, 50));
    draw_attr_tensor(d, "value", d->dtype, 1, (int64_t[]){1}, EXTREME);
}

static void cast_like(struct draw *d)
{
    static const enum byoc_dtype to[] = {BYOC_F32, BYOC_F64, BYOC_I8,
                                         BYOC_U8,  BYOC_I32, BYOC_I64,
                                         BYOC_U64, BYOC_BOOL};

    draw_same(d);
    draw_operand(d, ONE_OF(d, to), 1, (int64_t[]){2}, ORDINARY);
}

static void conv_integer(struct draw *d)
{
    const int64_t groups = draw_int(d, 1, 2), c = draw_int(d, 1, 3);
    const int64_t x[] = {draw_int(d, 1, 2), c * groups, draw_int(d, 3, 8),
                         draw_int(d, 3, 8)};
    const int64_t w[] = {groups * draw_int(d, 1, 4), c, draw_int(d, 1, 3),
                         draw_int(d, 1, 3)};
    const int64_t zeros[] = {draw_int(d, 0, 100), draw_int(d, 0, 100)};

    draw_operand(d, d->dtype, 4, x, EXTREME);
    draw_operand(d, d->dtype, 4, w, EXTREME);
    if (draw_chance(d, 60)) {
        draw_ints(d, d->dtype, -1, &zeros[0], draw_chance(d, 50));
        draw_ints(d, d->dtype, -1, &zeros[1], draw_chance(d, 50));
    }
    draw_attr_int(d, "group", groups);
    draw_attr_ints(d, "strides", 2, (int64_t[]){1, draw_int(d, 1, 2)});
    draw_attr_ints(d, "pads", 4, (int64_t[]){0, 1, 1, 0});
}

static void global_lp(struct draw *d)
{
    int64_t dims[5];
    const uint32_t rank = (uint32_t)draw_int(d, 3, 5);

    draw_operand(d, d->dtype, rank, shape(d, rank, 6, dims), ORDINARY);
    if (draw_chance(d, 70))
        draw_attr_int(d, "p", draw_int(d, 1, 3));
}

static void mean_variance(struct draw *d)
{
    int64_t dims[4];

    draw_operand(d, d->dtype, 4, shape(d, 4, 6, dims), ORDINARY);
    if (draw_chance(d, 50))
        draw_attr_ints(d, "axes", 2, (int64_t[]){draw_int(d, 0, 1), 3});
}

/* Indices may be equal, since the order of additions does not matter. */
static void scatter_reduce(struct draw *d)
{
    static const char *const reductions[] = {"add", "mul", "max", "min"};
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 3, dims);
    const int64_t axis = draw_axis(d, rank);
    const uint32_t a = (uint32_t)(axis < 0 ? axis + rank : axis);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 2;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    const int64_t size = dims[a];
    dims[a] = draw_int(d, 1, size);
    struct byi_tensor *t = draw_operand(d, BYOC_I64, rank, dims, ORDINARY);
    for (int64_t i = 0; i < byi_elements(rank, dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, -size, size - 1));
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_attr_int(d, "axis", axis);
    draw_attr_string(d, "reduction", ONE_OF(d, reductions));
}

static void scatter_9(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 6), m = draw_int(d, 1, 4);
    const int64_t used = draw_int(d, 1, n);
    const int64_t dims[] = {n, m}, part[] = {used, m};

    draw_operand(d, d->dtype, 2, dims, ORDINARY);
    struct byi_tensor *t = draw_operand(
        d, draw_chance(d, 50) ? BYOC_I64 : BYOC_I32, 2, part, ORDINARY);
    for (int64_t i = 0; i < used * m; i++) /* a column has no index twice */
        byi_tensor_set(t, i, (double)((i / m + i % m) % n));
    draw_operand(d, d->dtype, 2, part, ORDINARY);
    draw_attr_int(d, "axis", draw_chance(d, 50) ? 0 : -2);
}

static void bit_cast(struct draw *d)
{
    static const enum byoc_dtype same[][3] = {
        {BYOC_F32, BYOC_I32, BYOC_U32},
        {BYOC_F64, BYOC_I64, BYOC_U64},
        {BYOC_F16, BYOC_I16, BYOC_U16},
        {BYOC_U8, BYOC_I8, BYOC_U8},
    };
    const uint32_t bytes = byoc_dtype_size(d->dtype);
    const uint32_t row = bytes == 4 ? 0 : bytes == 8 ? 1 : bytes == 2 ? 2 : 3;

    draw_same(d);
    draw_attr_int(d, "to", same[row][draw_int(d, 0, 2)]);
}

/* Operands: x (n, channels, time), weights (channels, 1, k), bias, state. */
static void causal_conv(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 3), channels = draw_int(d, 1, 6);
    const int64_t time = draw_int(d, 1, 9), k = draw_int(d, 2, 4);

    draw_operand(d, d->dtype, 3, (int64_t[]){n, channels, time}, ORDINARY);
    draw_operand(d, d->dtype, 3, (int64_t[]){channels, 1, k}, ORDINARY);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 1, &channels, ORDINARY);
    else
        draw_nothing(d);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 3, (int64_t[]){n, channels, k - 1}, ORDINARY);
    if (draw_chance(d, 50))
        draw_attr_string(d, "activation", "silu");
}

/* Multiply the elements of x by `factor`. Keys of linear attention must be
 * small, or its state grows with each step. */
static void scale_elements(struct byi_tensor *x, double factor)
{
    for (int64_t i = 0; i < byi_count(x); i++)
        byi_tensor_set(x, i, byi_tensor_float(x, i) * factor);
}

/* Operands: query, key, value, past, decay, beta. */
static void linear_attention(struct draw *d)
{
    static const char *const rules[] = {"linear", "gated", "delta",
                                        "gated_delta"};
    const int64_t n = draw_int(d, 1, 2), time = draw_int(d, 1, 7);
    const int64_t kv = draw_int(d, 1, 3), heads = kv * draw_int(d, 1, 3);
    const int64_t size = draw_int(d, 1, 9), width = draw_int(d, 1, 40);
    const int64_t rule = draw_int(d, 0, 3);
    const int64_t decays = draw_chance(d, 50) ? kv * size : kv;
    const double small = 0.25 / sqrt((double)size);

    draw_operand(d, d->dtype, 3, (int64_t[]){n, time, heads * size}, ORDINARY);
    scale_elements(
        draw_operand(d, d->dtype, 3, (int64_t[]){n, time, kv * size}, ORDINARY),
        small);
    draw_operand(d, d->dtype, 3, (int64_t[]){n, time, kv * width}, ORDINARY);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 4, (int64_t[]){n, kv, size, width}, ORDINARY);
    else
        draw_nothing(d);
    if (rule & 1)
        scale_elements(
            draw_operand(d, d->dtype, 3, (int64_t[]){n, time, decays}, UNIT),
            -1);
    else
        draw_nothing(d);
    if (rule & 2)
        draw_operand(d, d->dtype, 3,
                     (int64_t[]){n, time, draw_chance(d, 30) ? 1 : kv}, UNIT);
    draw_attr_string(d, "update_rule", rules[rule]);
    draw_attr_int(d, "q_num_heads", heads);
    draw_attr_int(d, "kv_num_heads", kv);
    if (draw_chance(d, 30))
        draw_attr_float(d, "scale", 0.5);
}

/* MurmurHash3 */
static void hash_elements(struct draw *d)
{
    draw_same(d);
    if (draw_chance(d, 50))
        draw_attr_int(d, "positive", draw_int(d, 0, 1));
    if (draw_chance(d, 50))
        draw_attr_int(d, "seed", draw_int(d, 0, INT32_MAX));
}

/* UnfoldTensor: at least one window. */
static void unfold(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);
    int64_t *const size = &dims[axis < 0 ? axis + rank : axis];

    *size = *size ? *size : 2;
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_attr_int(d, "dim", axis);
    draw_attr_int(d, "size", draw_int(d, 1, *size));
    if (draw_chance(d, 70))
        draw_attr_int(d, "step", draw_int(d, 1, 4));
}

static void bias_add(struct draw *d)
{
    const int64_t c = 320 * draw_int(d, 1, 2);
    const int64_t dims[] = {draw_int(d, 1, 2), draw_int(d, 1, 5), c};

    draw_operand(d, d->dtype, 3, dims, ORDINARY);
    draw_operand(d, d->dtype, 1, &c, ORDINARY);
    draw_operand(d, d->dtype, 3, dims, ORDINARY);
}

/* clang-format off */
static const struct op_case rows[] = {
    {"BitCast", 26, "fiu86", bit_cast, EXTREME, 1, 0, NULL, false},
    {"CausalConvWithState", 27, "f", causal_conv, ORDINARY, 2, 1e-5, NULL, false},
    {"CausalConvWithState", 1, "f", causal_conv, ORDINARY, 2, 1e-5, "com.microsoft", false},
    {"LinearAttention", 27, "fh", linear_attention, ORDINARY, 2, 1e-4, NULL, false},
    {"LinearAttention", 1, "f", linear_attention, ORDINARY, 2, 1e-4, "com.microsoft", false},
    {"BiasAdd", 1, "f", bias_add, ORDINARY, 1, 1e-6, "com.microsoft", false},
    {"MurmurHash3", 1, "fiu", hash_elements, EXTREME, 1, 0, "com.microsoft", false},
    {"UnfoldTensor", 1, "fhiu86b", unfold, EXTREME, 1, 0, "com.microsoft", false},
    {"RegexFullMatch", 20, "s", matches, ORDINARY, 1, 0, NULL, false},
    {"StringConcat", 20, "s", string_pair, ORDINARY, 1, 0, NULL, true},
    {"StringSplit", 20, "s", split, ORDINARY, 2, 0, NULL, true},
    {"StringNormalizer", 10, "s", normalize, ORDINARY, 1, 0, NULL, true},
    {"TfIdfVectorizer", 9, "is", tf_idf, ORDINARY, 1, 0, NULL, false},
    {"NegativeLogLikelihoodLoss", 13, "fh", loss, ORDINARY, 1, 1e-4, NULL, false},
    {"SoftmaxCrossEntropyLoss", 13, "fh", loss, ORDINARY, 2, 1e-4, NULL, false},
    {"DynamicQuantizeLSTM", 1, "8", quantized_lstm, ORDINARY, 3, 0.05, "com.microsoft", true},
    {"QEmbedLayerNormalization", 1, "8", embed_norm, ORDINARY, 2, 1e-4, "com.microsoft", false},
    {"QLinearConv", 1, "8", channels_last_conv, EXTREME, 1, 1, "com.microsoft", false},
    {"Unique", 1, "f", unique_flat, ORDINARY, 3, 0, "com.microsoft", false},
    {"Unique", 11, "fhiu86bs", unique, ORDINARY, 4, 0, NULL, false},
    {"ConstantOfShape", 9, "fhiu86b", constant_of_shape, ORDINARY, 1, 0, NULL, false},
    {"CastLike", 15, "fhiu86b", cast_like, ORDINARY, 1, 0, NULL, false},
    {"ConvInteger", 10, "8", conv_integer, EXTREME, 1, 0, NULL, false},
    {"Dropout", 13, "fh", draw_same, EXTREME, 2, 0, NULL, false},
    {"GlobalLpPool", 2, "fh", global_lp, ORDINARY, 1, 1e-4, NULL, false},
    {"MeanVarianceNormalization", 13, "fh", mean_variance, ORDINARY, 1, 1e-4, NULL, false},
    {"ScatterElements", 18, "fhiu86", scatter_reduce, ORDINARY, 1, 1e-4, NULL, false},
    {"Scatter", 9, "fhiu86bs", scatter_9, ORDINARY, 1, 0, NULL, false},
};
/* clang-format on */

const struct op_table op_cases_more = {rows, BYI_COUNT(rows)};
