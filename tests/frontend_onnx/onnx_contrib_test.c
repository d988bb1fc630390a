/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_contrib_test.c: tests importing operators of com.microsoft: the
 * operators of the IR that they become, and refusals. cases_test.c tests their
 * results.
 */
#include "models.h"

#include "interp/interp.h"
#include "tests/compare.h"

/* Version 1 of com.microsoft in addition to `opset`. */
static struct build begin_contrib(int64_t opset)
{
    struct build b = begin(opset);

    import_opset(&b, "com.microsoft", 1);
    return b;
}

static Onnx__NodeProto *contrib(struct build *b, const char *op, const char *in,
                                const char *out)
{
    Onnx__NodeProto *n = node(b, op, in, out);

    n->domain = byi_arena_str(b->arena, "com.microsoft");
    return n;
}

static void activations(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "2 8");
    input(&b, "b", "8");
    contrib(&b, "BiasGelu", "x b", "c");
    contrib(&b, "FastGelu", "c", "d");
    Onnx__NodeProto *quick = contrib(&b, "QuickGelu", "d", "y");
    attr_float(&b, quick, "alpha", 1.0f);
    output(&b, "y");
    EXPECT(&b, "%0 = add(%x, %b)", "%1 = nn.gelu(%0)",
           "%2 = nn.gelu(%1, approximate=\"tanh\")", "nn.silu(%2)");
}

static void fused_products(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "2 8");
    floats(&b, "w", 2, (const int64_t[]){4, 8});
    input(&b, "z", "1 3 8 8");
    floats(&b, "k", 4, (const int64_t[]){4, 3, 3, 3});
    input(&b, "s", "1 4 6 6");
    Onnx__NodeProto *gemm = contrib(&b, "FusedGemm", "x w", "y");
    attr_int(&b, gemm, "transB", 1);
    attr_string(&b, gemm, "activation", "Relu");
    attr_string(&b, contrib(&b, "FusedConv", "z k - s", "c"), "activation",
                "Tanh");
    output(&b, "y");
    output(&b, "c");
    EXPECT(&b, "nn.dense(%x, ", "nn.relu(", "nn.conv2d(%z, ", "add(", "%s)",
           "tanh(");
}

static void distances(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "N 8");
    floats(&b, "w", 2, (const int64_t[]){4, 8});
    contrib(&b, "CDist", "x w", "s");
    attr_string(&b, contrib(&b, "CDist", "x w", "d"), "metric", "euclidean");
    output(&b, "s");
    output(&b, "d");
    EXPECT(&b, "sum(", "transpose_b=true", "maximum(", "sqrt(");
}

/* Scales that are not constant: one number scales exact sums. Dequantised terms
 * round one by one, and a sum halfway between two results may go either way. */
static void quantized_gemm(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    typed_input(&b, "a", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "5 16");
    typed_input(&b, "za", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "");
    typed_input(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "2 16");
    typed_input(&b, "zw", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "2");
    typed_input(&b, "c", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "2");
    typed_input(&b, "zy", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "");
    input(&b, "s", "");
    input(&b, "t", "2");
    input(&b, "u", "");
    Onnx__NodeProto *gemm = contrib(&b, "QGemm", "a s za w t zw c u zy", "y");
    attr_int(&b, gemm, "transB", 1);
    attr_float(&b, gemm, "alpha", 0.5f);
    output(&b, "y");
    EXPECT(&b, "multiply(%s, 0.5f)", "expand_dims(", "nn.matmul(", "multiply(",
           "add(", "%c)", "divide(", "%u)", "cast(", "dtype=\"float32\"",
           "multiply(", "qnn.quantize(", "1.0f, %zy)");
}

/* A norm of halves follows a sum that is not rounded to 16 bits: a row of two
 * sums that differ by their last bits would have another norm. */
static void norm_of_half_sums(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, "2 3 8");
    typed_input(&b, "z", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, "2 3 8");
    typed_input(&b, "g", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, "8");
    contrib(&b, "SkipLayerNormalization", "x z g g", "y - - s");
    output(&b, "y");
    output(&b, "s");
    EXPECT(&b, "%0 = cast(%x, dtype=\"float32\")",
           "%1 = cast(%z, dtype=\"float32\")", "%2 = add(%0, %1)",
           "nn.layer_norm(%2, ", "dtype=\"float16\")",
           "cast(%2, dtype=\"float16\")");
}

/* A gamma whose size is not known may be broadcast at run time. */
static void gamma_of_unknown_size(void **state)
{
    struct build b = begin(17);
    (void)state;

    input(&b, "x", "n m");
    input(&b, "g", "k");
    node(&b, "LayerNormalization", "x g", "y");
    output(&b, "y");
    EXPECT(&b, "mean(%x", "divide(", "multiply(", "%g)");
}

/* nn.layer_norm needs a gamma as long as the rows, which the equal names of the
 * symbolic dims ensure. */
static void gamma_of_equal_size(void **state)
{
    struct build b = begin(17);
    (void)state;

    input(&b, "x", "n m");
    input(&b, "g", "m");
    node(&b, "LayerNormalization", "x g", "y");
    output(&b, "y");
    EXPECT(&b, "nn.layer_norm(%x, %g");
}

/* Queries, keys and values in one operand are taken apart. */
static void packed_attention(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "N 5 2 3 4");
    attr_int(&b, contrib(&b, "MultiHeadAttention", "x", "y"), "num_heads", 2);
    output(&b, "y");
    EXPECT(&b, "-> Tensor[(N, 5, 8), float32]", "take(%x, 0, axis=3)",
           "transpose(", "take(%x, 1, axis=3)", "take(%x, 2, axis=3)",
           "nn.matmul(", "transpose_b=true", "multiply(", "0.5f", "nn.softmax(",
           "nn.matmul(", "reshape(");
}

/* Sizes are symbolic; keys are not repeated for the heads that share them;
 * without a past, the cache is the new keys and values. */
static void grouped_attention(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "q", "N s 32");
    input(&b, "k", "N s 16");
    input(&b, "v", "N s 16");
    typed_input(&b, "last", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "N");
    typed_input(&b, "all", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "");
    Onnx__NodeProto *n =
        contrib(&b, "GroupQueryAttention", "q k v - - last all", "y pk pv");
    attr_int(&b, n, "num_heads", 4);
    attr_int(&b, n, "kv_num_heads", 2);
    output(&b, "y");
    output(&b, "pk");
    EXPECT(&b,
           "-> (Tensor[(N, s, 32), float32], Tensor[(N, 2, s, 8), float32])",
           "arange_like(%0, axis=1)", "transpose(", "axes=[0, 2, 3, 1, 4]",
           "expand_dims(", "nn.matmul(", "nn.softmax(", "nn.matmul(");
}

/* A bias of scores of shape (2, 4, 2, 3) that is constant along each axis whose
 * bit is set in `ones`. If `broadcast`, these axes have size 1; otherwise, the
 * tensor has all elements. */
static struct byi_tensor draw_bias(struct byi_arena *arena, uint32_t ones,
                                   bool broadcast)
{
    struct byi_tensor t = {.dtype = BYOC_F32, .rank = 4, .dims = {2, 4, 2, 3}};
    float *to = t.data = byi_arena_alloc(arena, 48 * sizeof *to);
    int64_t at[4];

    for (uint32_t i = 0; i < 4; i++)
        if (broadcast && ones >> i & 1)
            t.dims[i] = 1;
    const int64_t *n = t.dims;
    for (at[0] = 0; at[0] < n[0]; at[0]++)
        for (at[1] = 0; at[1] < n[1]; at[1]++)
            for (at[2] = 0; at[2] < n[2]; at[2]++)
                for (at[3] = 0; at[3] < n[3]; at[3]++) {
                    int64_t code = 0;
                    for (uint32_t i = 0; i < 4; i++)
                        code = 5 * code + (ones >> i & 1 ? 0 : at[i] + 1);
                    *to++ = (float)(code * 37 % 11) / 4;
                }
    return t;
}

/* Run a model whose inputs are queries of 4 heads, keys of 2 heads, and a bias
 * of the scores; flat: with heads in the last axis. */
static struct byi_tensor attend_with(const struct build *b,
                                     struct byi_arena *arena, bool flat,
                                     struct byi_tensor bias)
{
    static float data[32];
    const struct byi_tensor q = {.data = data,
                                 .dtype = BYOC_F32,
                                 .rank = flat ? 3 : 4,
                                 .dims = {2, flat ? 2 : 4, flat ? 8 : 2, 2}};
    const struct byi_tensor k = {.data = data,
                                 .dtype = BYOC_F32,
                                 .rank = flat ? 3 : 4,
                                 .dims = {2, flat ? 3 : 2, flat ? 4 : 3, 2}};
    const struct byi_tensor in[] = {q, k, bias};
    struct byi_tensor out[1] = {{0}};
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    uint32_t n = 0;

    for (int i = 0; i < 32; i++)
        data[i] = (float)(i * 29 % 17 - 8) / 8;
    if (byi_onnx_import(b->path, NULL, &m, &err) != BYOC_OK ||
        byi_interp_run(m, byi_module_entry(m), in, 3, arena, out, 1, &n,
                       &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_module_free(&m);
    return out[0];
}

/* Symbolic axes of a bias or mask broadcast if they are 1 at run time, also the
 * axis of heads, which is split where heads share keys. */
static void symbolic_bias_broadcasts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const bool flat = i == 1; /* com.microsoft's operator */
        struct build b = begin_contrib(24);
        input(&b, "q", flat ? "2 2 8" : "2 4 2 2");
        input(&b, "k", flat ? "2 3 4" : "2 2 3 2");
        input(&b, "m", "B H S T");
        ints(&b, "last", 2, (const int64_t[]){2, 2});
        ints(&b, "all", 1, (const int64_t[]){3});
        if (flat) {
            Onnx__NodeProto *n = node(&b, "Cast", "last", "l");
            attr_int(&b, n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
            n = node(&b, "Cast", "all", "t");
            attr_int(&b, n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
            n = contrib(&b, "GroupQueryAttention", "q k k - - l t - - - m",
                        "y");
            attr_int(&b, n, "num_heads", 4);
            attr_int(&b, n, "kv_num_heads", 2);
        } else {
            node(&b, "Attention", "q k k m", "y");
        }
        output(&b, "y");
        save(&b);
        for (uint32_t ones = 0; ones < 16; ones++) {
            struct byi_arena *arena = byi_arena_new();
            struct byoc_error err = {0};
            const struct byi_tensor y = attend_with(
                                        &b, arena, flat,
                                        draw_bias(arena, ones, true)),
                                    wanted = attend_with(
                                        &b, arena, flat,
                                        draw_bias(arena, ones, false));
            if (compare_tensors(&y, &wanted, 0, 0, &err) != BYOC_OK)
                fail_msg("axes %u: %s", ones, err.text);
            byi_arena_free(&arena);
        }
        end(&b);
    }
}

static void grouped_refused(void **state)
{
    static const struct {
        const char *in, *attribute;
        int value;
        const char *why;
        enum byoc_status status;
    } cases[] = {
        {"q k v - - l t", "kv_num_heads", 0, "a multiple of kv_num_heads, 0",
         BYOC_EPARSE},
        {"q k v - - l t", "kv_num_heads", 3, "a multiple of kv_num_heads, 3",
         BYOC_EPARSE},
        {"q k v - - l", NULL, 0, "input total_sequence_length is omitted",
         BYOC_EPARSE},
        {"q k v c - l t", NULL, 0, "one of past_key and past_value",
         BYOC_EPARSE},
        {"q k - - - l t", NULL, 0, "one of key and value", BYOC_EPARSE},
        {"k - - - - l t", NULL, 0, "width 6 does not split into 4 heads",
         BYOC_ETYPE},
        {"q k v - - l t", "do_rotary", 1,
         "do_rotary is 1, and cos_cache is omitted", BYOC_EPARSE},
        {"q k v - - l t w w", "do_rotary", 1,
         "expected at least 18, two for each column of cos_cache", BYOC_ETYPE},
        {"q k v - - l t", "local_window_size", 0, "local_window_size is 0",
         BYOC_EPARSE},
        {"z k v - - l t", NULL, 0, "element type complex64", BYOC_EUNSUPPORTED},
        {"q k v - - l t", "sliding_window_cache", 1, "only the window",
         BYOC_EUNSUPPORTED},
        {"q k v - - l t", "qk_output", 1, "the scores as an output",
         BYOC_EUNSUPPORTED},
        {"q k v c c l t - - - - - w w", NULL, 0, "a quantised cache",
         BYOC_EUNSUPPORTED},
        {"q k v - - l t - - - - - - - w w", NULL, 0,
         "normalised queries and keys", BYOC_EUNSUPPORTED},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_contrib(17);
        const char *attribute = cases[i].attribute;
        input(&b, "q", "1 3 12");
        input(&b, "k", "1 3 6");
        input(&b, "v", "1 3 6");
        input(&b, "c", "1 1 5 6");
        typed_input(&b, "z", ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64,
                    "1 3 12");
        typed_input(&b, "l", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "1");
        typed_input(&b, "t", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "");
        floats(&b, "w", 2, (const int64_t[]){4, 9});
        Onnx__NodeProto *n =
            contrib(&b, "GroupQueryAttention", cases[i].in, "y");
        attr_int(&b, n, "num_heads", 2);
        if (!attribute || strcmp(attribute, "kv_num_heads") != 0)
            attr_int(&b, n, "kv_num_heads", 1);
        if (attribute)
            attr_int(&b, n, attribute, cases[i].value);
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *op, *in, *attribute, *why;
        enum byoc_status status;
    } cases[] = {
        {"SkipLayerNormalization", "x x w w w", NULL,
         "output 'o' is not supported, expected no node that reads it",
         BYOC_EUNSUPPORTED},
        {"EmbedLayerNormalization", "i - w - - w w", NULL,
         "is an omitted input, expected a value", BYOC_EPARSE},
        {"FusedConv", "q k", "Swish", "activation is 'Swish'",
         BYOC_EUNSUPPORTED},
        {"Attention", "x m", NULL, "num_heads is 0", BYOC_EPARSE},
        {"QLinearConcat", "w w w", NULL, "found 3 inputs, expected 2 + 3",
         BYOC_EPARSE},
        {"CDist", "m x", NULL, "b has rank 3, expected 2", BYOC_ETYPE},
        {"Sampling", "x", NULL,
         "operator Sampling (domain com.microsoft, opset 1) is not supported",
         BYOC_EUNSUPPORTED},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_contrib(17);
        input(&b, "x", "2 3 8");
        input(&b, "q", "1 2 8 8");
        input(&b, "i", "2 3");
        floats(&b, "w", 1, (const int64_t[]){8});
        floats(&b, "m", 2, (const int64_t[]){8, 24});
        floats(&b, "k", 4, (const int64_t[]){4, 2, 3, 3});
        Onnx__NodeProto *n = contrib(&b, cases[i].op, cases[i].in, "y o");
        if (cases[i].attribute)
            attr_string(&b, n, "activation", cases[i].attribute);
        output(&b, "o");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

/* The messages say which size of a RotaryEmbedding is wrong. */
static void rotary_refused(void **state)
{
    static const struct {
        const char *x;
        int64_t half, rotary_dim, heads;
        const char *why;
    } cases[] = {
        {"3 8", 2, 0, 0, "found x of rank 2, expected 3 or 4"},
        {"2 3 8", 2, 6, 2, "rotary_embedding_dim is 6, expected 4, two for"},
        {"2 3 N", 2, 0, 0,
         "found x with a symbolic last dim, expected a known one"},
        {"2 3 0", 2, 0, 0, "found x whose last dim is 0, expected at least 1"},
        {"2 3 8", 0, 0, 0, "found cos_cache without columns, expected at"},
        {"2 3 8", 2, 4, 4, "found heads of 2 elements, expected at least 4"},
        {"2 3 8", 3, 0, 0, "last dim is 8, expected a multiple of 6"},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_contrib(17);
        input(&b, "x", cases[i].x);
        typed_input(&b, "p", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "2 3");
        floats(&b, "t", 2, (const int64_t[]){5, cases[i].half});
        Onnx__NodeProto *n = contrib(&b, "RotaryEmbedding", "x p t t", "y");
        attr_int(&b, n, "rotary_embedding_dim", cases[i].rotary_dim);
        attr_int(&b, n, "num_heads", cases[i].heads);
        output(&b, "y");
        refuse(&b, BYOC_ETYPE, cases[i].why);
    }
}

/* The last dim of the result is known if that of x is: attention needs it. */
static void rotary_symbolic(void **state)
{
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "N M 12");
    typed_input(&b, "p", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "N M");
    floats(&b, "t", 2, (const int64_t[]){5, 3});
    contrib(&b, "RotaryEmbedding", "x p t t", "r");
    Onnx__NodeProto *n = contrib(&b, "MultiHeadAttention", "r r r", "y");
    attr_int(&b, n, "num_heads", 2);
    output(&b, "y");
    EXPECT(&b, "reshape(%x, [0, 0, 2, 6])", "take(", "concatenate(",
           "[0, 0, 12])", "nn.softmax(");
}

/* The messages say what is wrong with a GatherBlockQuantized. */
static void gather_blocks_refused(void **state)
{
    static const struct {
        const char *in, *why;
        int64_t gather_axis, block_axis, block_size;
        enum byoc_status status;
    } cases[] = {
        {"m i m", "block_size is 0, expected a positive number", 0, 1, 0,
         BYOC_EPARSE},
        {"m i m",
         "gather_axis and quantize_axis are both axis 1, expected two "
         "different "
         "axes",
         1, -1, 16, BYOC_EPARSE},
        {"m i m", "quantize_axis is -3, expected an axis of data", 0, -3, 16,
         BYOC_EPARSE},
        {"m i w", "scales: found rank 1, expected 2, as data has", 0, 1, 16,
         BYOC_ETYPE},
        {"u i m",
         "quantize_axis is axis 0, expected 1, the last axis, for 4-bit codes "
         "in "
         "uint8",
         1, 0, 16, BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_contrib(17);
        input(&b, "i", "2 3");
        floats(&b, "w", 1, (const int64_t[]){8});
        floats(&b, "m", 2, (const int64_t[]){8, 24});
        Onnx__TensorProto *codes =
            tensor(&b, "u", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 2,
                   (const int64_t[]){8, 12});
        raw(&b, codes, (const uint8_t[8 * 12]){0}, 8 * 12);
        weight(&b, codes);
        Onnx__NodeProto *n =
            contrib(&b, "GatherBlockQuantized", cases[i].in, "y");
        attr_int(&b, n, "gather_axis", cases[i].gather_axis);
        attr_int(&b, n, "quantize_axis", cases[i].block_axis);
        attr_int(&b, n, "block_size", cases[i].block_size);
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

/* Operators of com.microsoft that are older than ai.onnx's of the same name, or
 * that ai.onnx lacks. */
static void counterparts(void **state)
{
    const int64_t axis = 1;
    struct build b = begin_contrib(17);
    (void)state;

    input(&b, "x", "2 3 4 4");
    input(&b, "g", "2 5 5 2");
    input(&b, "v", "6");
    input(&b, "s", "1");
    ints(&b, "axis", 1, &axis);
    contrib(&b, "Trilu", "x", "a");
    contrib(&b, "GridSample", "x g", "c");
    contrib(&b, "ExpandDims", "x axis", "d");
    contrib(&b, "Range", "s s", "e");
    contrib(&b, "Unique", "v", "f h i");
    contrib(&b, "Inverse", "x", "j");
    output(&b, "a");
    output(&b, "c");
    output(&b, "d");
    output(&b, "e");
    output(&b, "i");
    output(&b, "j");
    EXPECT(&b, "trilu(%x", "image.grid_sample(%x, %g", "expand_dims(%x, ",
           "arange(", "unique(%v", "inverse(%x)");
}

/* Conversions that need a size name it when it is symbolic. */
static void symbolic_sizes(void **state)
{
    static const struct {
        const char *in, *what;
    } cases[] = {{"q - -", "found a packed query of symbolic size"},
                 {"q q q", "found heads of symbolic size"}};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_contrib(17);
        const char *in =
            byi_arena_printf(b.arena, "%s - - n n t t", cases[i].in);
        input(&b, "q", "1 1 N");
        typed_input(&b, "n", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "1");
        floats(&b, "t", 2, (const int64_t[]){5, 3});
        Onnx__NodeProto *n = contrib(&b, "GroupQueryAttention", in, "y k v");
        attr_int(&b, n, "num_heads", 2);
        attr_int(&b, n, "kv_num_heads", 2);
        attr_int(&b, n, "do_rotary", 1);
        output(&b, "y");
        refuse(&b, BYOC_EUNSUPPORTED, cases[i].what);
    }
}

/* The operator is unknown if its domain is not among the model's opsets. */
static void not_imported(void **state)
{
    struct build b = begin(17);
    (void)state;

    input(&b, "x", "2 8");
    contrib(&b, "Gelu", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "operator Gelu (domain com.microsoft, opset 0) is not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations),
        cmocka_unit_test(fused_products),
        cmocka_unit_test(distances),
        cmocka_unit_test(quantized_gemm),
        cmocka_unit_test(norm_of_half_sums),
        cmocka_unit_test(gamma_of_unknown_size),
        cmocka_unit_test(gamma_of_equal_size),
        cmocka_unit_test(packed_attention),
        cmocka_unit_test(grouped_attention),
        cmocka_unit_test(symbolic_bias_broadcasts),
        cmocka_unit_test(grouped_refused),
        cmocka_unit_test(refused),
        cmocka_unit_test(rotary_refused),
        cmocka_unit_test(rotary_symbolic),
        cmocka_unit_test(gather_blocks_refused),
        cmocka_unit_test(counterparts),
        cmocka_unit_test(symbolic_sizes),
        cmocka_unit_test(not_imported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
