/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c: generates a random call of each operator. A generator reads
 * op_now->distribution. Types are letters:
 *
 *     f  float32, float64    h  float16, bfloat16    F  float32
 *     i  int32, int64        u  uint32, uint64       I  int64
 *     6  uint16, int16       8  uint8, int8          7  int8, int16
 *     b  bool                s  strings
 *     -  the only letter of operators that are drawn once, with float32
 */
#include "fuzz.h"

#include <string.h>

const struct op_case *op_now;
const char *plugin_now;

/* --- element by element --------------------------------------------------- */

static void with_alpha(struct draw *d)
{
    draw_same(d);
    if (draw_chance(d, 70))
        draw_attr_float(d, "alpha", (float)draw_int(d, 1, 16) / 8);
}

static void hard_sigmoid(struct draw *d)
{
    with_alpha(d);
    if (draw_chance(d, 50))
        draw_attr_float(d, "beta", (float)draw_int(d, -8, 8) / 8);
}

static void shrink(struct draw *d)
{
    draw_same(d);
    draw_attr_float(d, "lambd", (float)draw_int(d, 0, 8) / 4);
    draw_attr_float(d, "bias", (float)draw_int(d, -4, 4) / 4);
}

static void broadcast(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], a[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool swap = draw_chance(d, 50);
    const uint32_t ra = swap ? draw_narrower(d, rank, dims, a) : rank;
    const uint32_t rb = swap ? rank : draw_narrower(d, rank, dims, b);

    draw_operand(d, d->dtype, ra, swap ? a : dims, op_now->distribution);
    draw_operand(d, d->dtype, rb, swap ? dims : b, op_now->distribution);
}

/* Divisors of integers are not 0: that division ends ONNX Runtime's process. */
static void quotient(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool is_integer = !byi_dtype_is_float(d->dtype);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b,
                 is_integer ? POSITIVE : op_now->distribution);
    for (int64_t i = 0; byi_dtype_is_signed(d->dtype) && is_integer &&
                        d->dtype != BYOC_I8 && i < byi_elements(rb, b);
         i++)
        if (op_now->distribution != EXTREME && draw_chance(d, 30))
            byi_tensor_set(&d->in[1], i, -byi_tensor_float(&d->in[1], i));
    if (strcmp(op_now->op, "Mod") == 0 && (!is_integer || draw_chance(d, 50)))
        draw_attr_int(d, "fmod", 1);
}

static void power(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 3, dims);
    const double exponents[] = {0.5, 1, 2, 3, -1, -0.5, 0, 1.5};

    if (byi_dtype_is_float(d->dtype) && draw_chance(d, 40)) {
        const double e = exponents[draw_int(d, 0, BYI_COUNT(exponents) - 1)];
        draw_operand(d, d->dtype, rank, dims, EXTREME);
        if (d->dtype == BYOC_F32)
            draw_floats(d, -1, &e, draw_chance(d, 70));
        else
            byi_tensor_set(draw_operand(d, d->dtype, 0, NULL, ORDINARY), 0, e);
        return;
    }
    draw_operand(d, d->dtype, rank, dims, POSITIVE);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b,
                 byi_dtype_is_float(d->dtype) ? ORDINARY : POSITIVE);
}

static void shift(struct draw *d)
{
    broadcast(d);
    for (int64_t i = 0; i < byi_elements(d->in[1].rank, d->in[1].dims); i++)
        byi_tensor_set(&d->in[1], i, (double)draw_int(d, 0, 7));
    draw_attr_string(d, "direction", draw_chance(d, 50) ? "LEFT" : "RIGHT");
}

static void prelu(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, ORDINARY);
}

static void variadic(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const int64_t n = draw_int(d, 1, 4);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    for (int64_t i = 1; i < n; i++) {
        const uint32_t rb = draw_narrower(d, rank, dims, b);
        draw_operand(d, d->dtype, rb, b, op_now->distribution);
    }
}

static void where(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    uint32_t rb = draw_narrower(d, rank, dims, b);

    draw_operand(d, BYOC_BOOL, rb, b, ORDINARY);
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, op_now->distribution);
}

static void cast(struct draw *d)
{
    static const enum byoc_dtype to[] = {
        BYOC_F32, BYOC_F64, BYOC_F16, BYOC_BF16, BYOC_I8,  BYOC_U8,
        BYOC_I16, BYOC_I32, BYOC_I64, BYOC_U32,  BYOC_BOOL};

    draw_same(d);
    draw_attr_int(d, "to", to[draw_int(d, 0, BYI_COUNT(to) - 1)]);
}

/* If a bound is omitted, byoc keeps infinities, and ONNX Runtime clips to the
 * type's largest numbers. For whole or ordinary numbers that is the same. */
static void clip(struct draw *d)
{
    const int64_t low = draw_int(d, 0, 3), high = draw_int(d, 4, 8);
    const bool has_bounds =
        byi_dtype_is_float(d->dtype) && op_now->distribution == EXTREME;

    draw_same(d);
    if (has_bounds || draw_chance(d, 70))
        draw_ints(d, d->dtype, -1, &low, draw_chance(d, 50));
    else
        draw_nothing(d);
    if (has_bounds || draw_chance(d, 70))
        draw_ints(d, d->dtype, -1, &high, draw_chance(d, 50));
}

/* At least rank 1: of a scalar, NonZero returns no rows in byoc and one row in
 * ONNX Runtime. */
static void of_rank_1_or_more(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
}

static void isinf_of(struct draw *d)
{
    draw_same(d);
    if (draw_chance(d, 50))
        draw_attr_int(d, "detect_negative", draw_int(d, 0, 1));
    if (draw_chance(d, 50))
        draw_attr_int(d, "detect_positive", draw_int(d, 0, 1));
}

/* --- products ------------------------------------------------------------- */

static void matmul(struct draw *d)
{
    int64_t batch[BYI_MAX_RANK], a[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, draw_chance(d, 20) ? 4 : 2, batch);
    const int64_t m = draw_int(d, 0, 20);
    /* without products, ONNX Runtime does not broadcast the batches */
    const int64_t k = rank == 0 && draw_chance(d, 10) ? 0 : draw_int(d, 1, 33);
    const int64_t n = draw_chance(d, 10) ? 1 : draw_int(d, 0, 35);
    const uint32_t drop =
        draw_chance(d, 30) ? (uint32_t)draw_int(d, 0, rank) : 0;
    uint32_t ra = 0, rb = 0;

    for (uint32_t i = drop; i < rank; i++)
        a[ra++] = draw_chance(d, 20) ? 1 : batch[i];
    if (ra || draw_chance(d, 80))
        a[ra++] = m;
    a[ra++] = k;
    if (draw_chance(d, 60))
        for (uint32_t i = 0; i < rank; i++)
            b[rb++] = draw_chance(d, 20) ? 1 : batch[i];
    b[rb++] = k;
    if (rb > 1 || draw_chance(d, 80))
        b[rb++] = n;
    draw_operand(d, d->dtype, ra, a, op_now->distribution);
    draw_operand(d, d->dtype, rb, b, op_now->distribution);
}

static void gemm(struct draw *d)
{
    static const float fractions[] = {0, 0.5f, -1, 2, 1.0f / 3, -0.25f};
    static const float whole[] = {0, 1, -1, 2, 3, -2};
    /* the importer refuses fractions for integers */
    const float *factors = byi_dtype_is_float(d->dtype) ? fractions : whole;
    const int64_t m = draw_int(d, 0, 40), n = draw_int(d, 0, 40);
    const int64_t k = draw_chance(d, 4) ? 0 : draw_int(d, 1, 40);
    const bool ta = draw_chance(d, 40), tb = draw_chance(d, 40);
    const int64_t c[] = {m, n};
    int64_t dims[2];

    draw_operand(d, d->dtype, 2, (int64_t[]){ta ? k : m, ta ? m : k}, ORDINARY);
    draw_operand(d, d->dtype, 2, (int64_t[]){tb ? n : k, tb ? k : n}, ORDINARY);
    if (draw_chance(d, 60)) {
        const uint32_t rank = draw_narrower(d, 2, c, dims);
        draw_operand(d, d->dtype, rank, dims, ORDINARY);
    }
    draw_attr_int(d, "transA", ta);
    draw_attr_int(d, "transB", tb);
    if (draw_chance(d, 40))
        draw_attr_float(d, "alpha", factors[draw_int(d, 0, 5)]);
    if (draw_chance(d, 40))
        draw_attr_float(d, "beta", factors[draw_int(d, 0, 5)]);
}

/* Insert a letter at a random place of a term. */
static void insert_letter(struct draw *d, char *term, char letter)
{
    const size_t n = strlen(term);
    const size_t at = (size_t)draw_int(d, 0, (int64_t)n);

    memmove(term + at + 1, term + at, n - at + 1);
    term[at] = letter;
}

/* Two operands; each label is one of the first, of the second or of both, and
 * maybe of the result. */
static void random_einsum(struct draw *d)
{
    char terms[3][8] = {"", "", ""}, text[32];
    const int64_t n = draw_int(d, 1, 5);
    int64_t size[8], dims[8];

    for (int64_t i = 0; i < n; i++) {
        const int64_t operands = draw_int(d, 1, 3); /* a mask */
        const char letter = (char)('a' + i);
        size[i] = draw_int(d, 1, 7);
        for (int64_t t = 0; t < 2; t++)
            if (operands & (t + 1))
                insert_letter(d, terms[t], letter);
        if (draw_chance(d, operands == 3 ? 50 : 80))
            insert_letter(d, terms[2], letter);
    }
    for (uint32_t t = 0; t < 2; t++) {
        const uint32_t rank = (uint32_t)strlen(terms[t]);
        for (uint32_t k = 0; k < rank; k++)
            dims[k] = size[terms[t][k] - 'a'];
        draw_operand(d, d->dtype, rank, dims, ORDINARY);
    }
    snprintf(text, sizeof text, "%s,%s->%s", terms[0], terms[1], terms[2]);
    draw_attr_string(d, "equation", text);
}

static void einsum(struct draw *d)
{
    static const struct {
        const char *text;
        uint32_t n, ranks[3];
        const char *letters[3];
    } forms[] = {
        {"ij,jk->ik", 2, {2, 2, 0}, {"ij", "jk"}},
        {"bij,bjk->bik", 2, {3, 3, 0}, {"bij", "bjk"}},
        {"ij,jk->ki", 2, {2, 2, 0}, {"ij", "jk"}},
        {"ij->ji", 1, {2, 0, 0}, {"ij"}},
        {"ij->i", 1, {2, 0, 0}, {"ij"}},
        {"ij,ij->", 2, {2, 2, 0}, {"ij", "ij"}},
        {"bhik,bhjk->bhij", 2, {4, 4, 0}, {"bhik", "bhjk"}},
        {"i,j->ij", 2, {1, 1, 0}, {"i", "j"}},
        {"bik,kj,bj->bi", 3, {3, 2, 2}, {"bik", "kj", "bj"}},
        {"ii->i", 1, {2, 0, 0}, {"ii"}},
        {"ii", 1, {2, 0, 0}, {"ii"}},
        {"iji,j->i", 2, {3, 1, 0}, {"iji", "j"}},
        {"bii,bij->bj", 2, {3, 3, 0}, {"bii", "bij"}},
        {"...ij,...jk->...ik", 2, {4, 3, 0}, {"abij", "bjk"}},
        {"...ij,jk->...ik", 2, {4, 2, 0}, {"abij", "jk"}},
        {"i...->...i", 1, {3, 0, 0}, {"iab"}},
        {"...i,...i->...", 2, {3, 1, 0}, {"abi", "i"}},
        {"ij,jk", 2, {2, 2, 0}, {"ij", "jk"}},
        {"ba,cb", 2, {2, 2, 0}, {"ba", "cb"}},
        {"i, j -> j i", 2, {1, 1, 0}, {"i", "j"}},
        {",ij->ji", 2, {0, 2, 0}, {"", "ij"}},
        {"ab,bc,cd->ad", 3, {2, 2, 2}, {"ab", "bc", "cd"}},
        {"ab,ab,ab->ba", 3, {2, 2, 2}, {"ab", "ab", "ab"}},
        {"abc,ad,bd->cd", 3, {3, 2, 2}, {"abc", "ad", "bd"}},
    };
    const uint32_t f = (uint32_t)draw_int(d, 0, BYI_COUNT(forms) - 1);
    int64_t size[128], dims[4];

    if (draw_chance(d, 60)) {
        random_einsum(d);
        return;
    }
    for (char c = 'a'; c <= 'z'; c++)
        size[(int)c] = draw_chance(d, 3) ? 0 : draw_int(d, 1, 9);
    for (uint32_t i = 0; i < forms[f].n; i++) {
        for (uint32_t k = 0; k < forms[f].ranks[i]; k++)
            dims[k] = size[(int)forms[f].letters[i][k]];
        draw_operand(d, d->dtype, forms[f].ranks[i], dims, ORDINARY);
    }
    draw_attr_string(d, "equation", forms[f].text);
}

static void det(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 6);
    int64_t dims[] = {draw_int(d, 0, 4), draw_int(d, 1, 3), n, n};
    const uint32_t rank = (uint32_t)draw_int(d, 2, 4);

    draw_operand(d, d->dtype, rank, dims + 4 - rank, ORDINARY);
}

/* A matrix with a large diagonal, so that no pivot is near 0. */
static void inverse(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 6), dims[] = {draw_int(d, 0, 4), n, n};
    struct byi_tensor *t = draw_operand(d, d->dtype, 3, dims, UNIT);

    for (int64_t i = 0; i < byi_elements(3, dims); i++)
        if (i % (n * n) % (n + 1) == 0)
            byi_tensor_set(t, i, (double)draw_int(d, 8, 16));
}

/* Experimental operators of opset 1 with the attributes alpha and beta. */
static void with_alpha_and_beta(struct draw *d)
{
    draw_same(d);
    draw_attr_float(d, "alpha", (float)draw_int(d, -8, 8) / 4);
    draw_attr_float(d, "beta", (float)draw_int(d, -8, 8) / 4);
}

/* --- axes ----------------------------------------------------------------- */

static void along_axis(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    if (draw_chance(d, 80))
        draw_attr_int(d, "axis", draw_axis(d, rank));
    if (strcmp(op_now->op, "LpNormalization") == 0)
        draw_attr_int(d, "p", draw_int(d, 1, 2));
}

static void arg_of(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 1;
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    if (draw_chance(d, 85))
        draw_attr_int(d, "axis", draw_axis(d, rank));
    if (draw_chance(d, 85))
        draw_attr_int(d, "keepdims", draw_int(d, 0, 1));
    draw_attr_int(d, "select_last_index", draw_int(d, 0, 1));
}

static void reduce(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], axes[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool axes_are_operand =
        strcmp(op_now->op, "ReduceSum") == 0 || op_now->opset >= 18;
    size_t n = 0;

    const bool product = strcmp(op_now->op, "ReduceProd") == 0;
    for (uint32_t i = 0; i < rank; i++) {
        /* before opset 18, reductions of no elements are not specified, and
         * integer overflow is not at all */
        dims[i] = dims[i] || op_now->opset >= 18 ? dims[i] : 2;
        if (product && !byi_dtype_is_float(d->dtype))
            dims[i] = dims[i] > 2 ? 2 : dims[i];
        if (draw_chance(d, 50))
            axes[n++] = draw_chance(d, 50) ? i : (int64_t)i - rank;
    }
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_attr_int(d, "keepdims", draw_int(d, 0, 1));
    if (axes_are_operand && draw_chance(d, 40))
        draw_attr_int(d, "noop_with_empty_axes", 1);
    if (axes_are_operand && n)
        draw_ints(d, BYOC_I64, (int64_t)n, axes, draw_chance(d, 50));
    else if (n)
        draw_attr_ints(d, "axes", n, axes);
}

/* Cast to a float8 and back. */
static void cast_narrow(struct draw *d)
{
    const int64_t to = draw_int(d, BYOC_F8E4M3FN, BYOC_F8E5M2FNUZ);

    draw_same(d);
    draw_set_names(d, "x0", "narrow");
    draw_attr_int(d, "to", to);
    draw_attr_int(d, "saturate", draw_int(d, 0, 1));
    draw_place_node(d);
    draw_node(d, d->graph, "Cast", "narrow", "y0");
    draw_attr_int(d, "to", d->dtype);
}

/* Types of at most 8 bits. No input or output of the graph has one of them,
 * since byoc and ONNX Runtime store their elements in different ways. */
static const struct narrow {
    enum byoc_dtype dtype;
    int low, high; /* range of the drawn values */
} narrow_types[] = {{BYOC_U4, 0, 15},     {BYOC_I4, -8, 7},
                    {BYOC_U2, 0, 3},      {BYOC_I2, -2, 1},
                    {BYOC_F4E2M1, -6, 6}, {BYOC_F8E8M0, 1, 60}};
enum { NARROW_INTS = 4 };

/* Cast to one of narrow_types, perhaps transpose, and cast back. */
static void cast_packed(struct draw *d)
{
    const bool floats = byi_dtype_is_float(d->dtype);
    const bool is_signed = floats || d->dtype == BYOC_I8 ||
                           d->dtype == BYOC_I32 || d->dtype == BYOC_I64;
    const struct narrow *to = &narrow_types[draw_int(
        d, 0, floats ? (int64_t)BYI_COUNT(narrow_types) - 1 : NARROW_INTS - 1)];
    const int64_t low = is_signed ? to->low : byi_max(to->low, 0);
    const bool transposes = to->dtype != BYOC_F8E8M0 && draw_chance(d, 40);
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    struct byi_tensor *t = draw_operand(d, d->dtype, rank, dims, ORDINARY);

    /* ONNX Runtime rounds fractions to 2 and 4 bits; for other integers, it
     * drops the fraction */
    const bool is_integer = to < narrow_types + NARROW_INTS;
    for (int64_t i = 0; i < byi_elements(rank, dims); i++)
        byi_tensor_set(t, i,
                       is_integer
                           ? (double)draw_int(d, low, to->high)
                           : (double)draw_int(d, 4 * low, 4 * to->high) / 4);
    draw_set_names(d, "x0", "narrow");
    draw_attr_int(d, "to", to->dtype);
    draw_place_node(d);
    if (transposes)
        draw_node(d, d->graph, "Transpose", "narrow", "transposed");
    draw_node(d, d->graph, "Cast", transposes ? "transposed" : "narrow", "y0");
    draw_attr_int(d, "to", d->dtype);
}

/* Quantize to one of the integers of narrow_types or a float8, and back. */
static void quantize_packed(struct draw *d)
{
    const bool is_integer = draw_chance(d, 50);
    const int64_t to = is_integer
                           ? narrow_types[draw_int(d, 0, NARROW_INTS - 1)].dtype
                           : draw_int(d, BYOC_F8E4M3FN, BYOC_F8E5M2FNUZ);
    const int64_t zero = draw_int(d, 0, 1);
    const double scale = (double)draw_int(d, 1, 8) / 4;

    draw_same(d);
    draw_floats(d, -1, &scale, draw_chance(d, 50));
    draw_ints(d, BYOC_I8, -1, &zero, draw_chance(d, 50));
    draw_set_names(d, is_integer ? "x0 x1 zero" : "x0 x1", "narrow");
    if (!is_integer)
        draw_attr_int(d, "saturate", draw_int(d, 0, 1));
    draw_attr_int(d, "output_dtype", to);
    draw_node(d, d->graph, "Cast", "x2", "zero");
    draw_attr_int(d, "to", is_integer ? to : BYOC_F32);
    draw_place_node(d);
    draw_node(d, d->graph, "DequantizeLinear",
              is_integer ? "narrow x1 zero" : "narrow x1", "y0");
}

/* Draw Gelu's `approximate` or Swish's factor `alpha`. */
static void gelu_or_swish(struct draw *d)
{
    draw_same(d);
    if (strcmp(op_now->op, "Swish") == 0)
        draw_attr_float(d, "alpha", (float)draw_int(d, -8, 8) / 4);
    else
        draw_attr_string(d, "approximate",
                         draw_chance(d, 50) ? "none" : "tanh");
}

static void cumsum(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);

    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_ints(d, draw_chance(d, 50) ? BYOC_I64 : BYOC_I32, -1, &axis,
              draw_chance(d, 50));
    draw_attr_int(d, "exclusive", draw_int(d, 0, 1));
    draw_attr_int(d, "reverse", draw_int(d, 0, 1));
}

static void topk(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);
    const int64_t size = dims[axis < 0 ? axis + rank : axis];
    const int64_t k = draw_int(d, 0, size);

    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_ints(d, BYOC_I64, 1, &k, draw_chance(d, 50));
    draw_attr_int(d, "axis", axis);
    if (draw_chance(d, 80))
        draw_attr_int(d, "largest", draw_int(d, 0, 1));
}

/* clang-format off */
static const struct op_case rows[] = {
    {"Abs", 13, "fhiu86", draw_same, EXTREME, 1, 0, NULL, false},
    {"Acos", 7, "fh", draw_same, UNIT, 1, 1e-6, NULL, false},
    {"Acosh", 9, "fh", draw_same, POSITIVE, 1, 1e-6, NULL, false},
    {"Add", 14, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"And", 7, "b", broadcast, ORDINARY, 1, 0, NULL, false},
    {"ArgMax", 13, "fhiu86", arg_of, ORDINARY, 1, 0, NULL, false},
    {"ArgMin", 13, "fhiu86", arg_of, ORDINARY, 1, 0, NULL, false},
    {"Asin", 7, "fh", draw_same, UNIT, 1, 1e-6, NULL, false},
    {"Asinh", 9, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"Atan", 7, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"Atanh", 9, "fh", draw_same, UNIT, 1, 1e-6, NULL, false},
    {"BitwiseAnd", 18, "iu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"BitwiseNot", 18, "iu86", draw_same, EXTREME, 1, 0, NULL, false},
    {"BitwiseOr", 18, "iu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"BitwiseXor", 18, "iu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"BitShift", 11, "u86", shift, ORDINARY, 1, 0, NULL, false},
    {"Cast", 21, "fh", cast_narrow, ORDINARY, 1, 0, NULL, false},
    {"Cast", 25, "fhi8", cast_packed, ORDINARY, 1, 0, NULL, false},
    {"Cast", 13, "fhiu86b", cast, ORDINARY, 1, 0, NULL, false},
    {"Ceil", 13, "fh", draw_same, EXTREME, 1, 0, NULL, false},
    {"Celu", 12, "f", with_alpha, EXTREME, 1, 1e-6, NULL, false},
    {"Clip", 13, "fhiu86", clip, EXTREME, 1, 0, NULL, false},
    {"Cos", 7, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"Cosh", 9, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"CumProd", 26, "fhiu", cumsum, ORDINARY, 1, 1e-4, NULL, false},
    {"CumSum", 14, "fhiu", cumsum, ORDINARY, 1, 1e-5, NULL, false},
    {"Det", 11, "fh", det, ORDINARY, 1, 1e-3, NULL, false},
    {"Div", 14, "fhiu86", quotient, EXTREME, 1, 0, NULL, false},
    {"Einsum", 12, "fhiu86", einsum, ORDINARY, 1, 1e-4, NULL, false},
    {"Elu", 6, "fh", with_alpha, EXTREME, 1, 1e-6, NULL, false},
    {"Equal", 13, "fhiu86b", broadcast, EXTREME, 1, 0, NULL, false},
    {"QuantizeLinear", 25, "-", quantize_packed, ORDINARY, 1, 0, NULL, false},
    {"Erf", 13, "fhiu86", draw_same, EXTREME, 1, 1e-5, NULL, false},
    {"Exp", 13, "fh", draw_same, EXTREME, 1, 1e-5, NULL, false},
    {"Floor", 13, "fh", draw_same, EXTREME, 1, 0, NULL, false},
    {"Gemm", 13, "fhiu", gemm, ORDINARY, 1, 1e-4, NULL, false},
    {"Greater", 13, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"GreaterOrEqual", 16, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"HardSigmoid", 6, "fh", hard_sigmoid, EXTREME, 1, 1e-6, NULL, false},
    {"Gelu", 20, "fh", gelu_or_swish, EXTREME, 1, 1e-5, NULL, false},
    {"HardSwish", 14, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"Hardmax", 13, "fh", along_axis, ORDINARY, 1, 0, NULL, false},
    {"IsInf", 10, "f", isinf_of, EXTREME, 1, 0, NULL, false},
    {"IsNaN", 13, "fh", draw_same, EXTREME, 1, 0, NULL, false},
    {"LeakyRelu", 16, "fh", with_alpha, EXTREME, 1, 1e-6, NULL, false},
    {"Less", 13, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"LessOrEqual", 16, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"Log", 13, "fh", draw_same, POSITIVE, 1, 1e-6, NULL, false},
    {"LogSoftmax", 13, "fh", along_axis, ORDINARY, 1, 1e-5, NULL, false},
    {"LpNormalization", 1, "fh", along_axis, ORDINARY, 1, 1e-5, NULL, false},
    {"MatMul", 13, "fhiu", matmul, ORDINARY, 1, 1e-4, NULL, false},
    {"Max", 13, "fhiu86", variadic, EXTREME, 1, 0, NULL, false},
    {"Mean", 13, "f", variadic, ORDINARY, 1, 1e-6, NULL, false},
    {"Mean", 13, "h", variadic, ORDINARY, 1, 1e-4, NULL, false},
    {"Min", 13, "fhiu86", variadic, EXTREME, 1, 0, NULL, false},
    {"Mish", 18, "fh", draw_same, EXTREME, 1, 1e-5, NULL, false},
    {"Mod", 13, "fhiu86", quotient, ORDINARY, 1, 1e-6, NULL, false},
    {"Mul", 14, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"Neg", 13, "fhi7", draw_same, EXTREME, 1, 0, NULL, false},
    {"NonZero", 13, "fhiu86bs", of_rank_1_or_more, ORDINARY, 1, 0, NULL, false},
    {"Not", 1, "b", draw_same, ORDINARY, 1, 0, NULL, false},
    {"Or", 7, "b", broadcast, ORDINARY, 1, 0, NULL, false},
    {"PRelu", 16, "fhiu", prelu, EXTREME, 1, 1e-6, NULL, false},
    {"Pow", 15, "fhi", power, ORDINARY, 1, 1e-5, NULL, false},
    {"Reciprocal", 13, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"ReduceL1", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceL1", 18, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceL2", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceL2", 18, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceLogSum", 13, "fhiu", reduce, POSITIVE, 1, 1e-5, NULL, false},
    {"ReduceLogSum", 18, "fhiu", reduce, POSITIVE, 1, 1e-5, NULL, false},
    {"ReduceLogSumExp", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceMax", 20, "fhiu8b", reduce, ORDINARY, 1, 0, NULL, false},
    {"ReduceMax", 13, "fhiu8", reduce, ORDINARY, 1, 0, NULL, false},
    {"ReduceMean", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceMin", 13, "fhiu8", reduce, ORDINARY, 1, 0, NULL, false},
    {"ReduceProd", 13, "fhiu", reduce, ORDINARY, 1, 1e-4, NULL, false},
    {"ReduceSum", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceSumSquare", 13, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"ReduceSumSquare", 18, "fhiu", reduce, ORDINARY, 1, 1e-5, NULL, false},
    {"Relu", 14, "fhi86", draw_same, EXTREME, 1, 0, NULL, false},
    {"Round", 11, "fh", draw_same, EXTREME, 1, 0, NULL, false},
    {"Selu", 6, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"Shrink", 9, "fiu86", shrink, ORDINARY, 1, 0, NULL, false},
    {"Shrink", 9, "h", shrink, EXTREME, 1, 0, NULL, false},
    {"Sigmoid", 13, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"Sign", 13, "fhiu86", draw_same, EXTREME, 1, 0, NULL, false},
    {"Sin", 7, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"Sinh", 9, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"Softmax", 13, "fh", along_axis, ORDINARY, 1, 1e-5, NULL, false},
    {"Softplus", 1, "fh", draw_same, EXTREME, 1, 1e-5, NULL, false},
    {"Softsign", 1, "fh", draw_same, ORDINARY, 1, 1e-6, NULL, false},
    {"Sqrt", 13, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"Sub", 14, "fhiu86", broadcast, EXTREME, 1, 0, NULL, false},
    {"Sum", 13, "f", variadic, ORDINARY, 1, 1e-6, NULL, false},
    {"Sum", 13, "h", variadic, ORDINARY, 1, 1e-4, NULL, false},
    {"Swish", 24, "fh", gelu_or_swish, ORDINARY, 1, 1e-5, NULL, false},
    {"Tan", 7, "fh", draw_same, ORDINARY, 1, 1e-4, NULL, false},
    {"Tanh", 13, "fh", draw_same, EXTREME, 1, 1e-6, NULL, false},
    {"ThresholdedRelu", 10, "fh", with_alpha, ORDINARY, 1, 0, NULL, false},
    {"TopK", 11, "fhiu86", topk, ORDINARY, 2, 0, NULL, false},
    {"Where", 16, "fhiu86bs", where, EXTREME, 1, 0, NULL, false},
    {"Inverse", 1, "fh", inverse, ORDINARY, 1, 1e-4, "com.microsoft", false},
    {"MatMulInteger16", 1, "6", matmul, EXTREME, 1, 0, "com.microsoft", false},
    {"ParametricSoftplus", 7, "f", with_alpha_and_beta, EXTREME, 1, 1e-5, NULL, false},
    {"ScaledTanh", 7, "f", with_alpha_and_beta, EXTREME, 1, 1e-5, NULL, false},
    {"Xor", 7, "b", broadcast, ORDINARY, 1, 0, NULL, false},
};
/* clang-format on */

const struct op_table op_cases_compute = {rows, BYI_COUNT(rows)};

bool next_op(const char *only)
{
    static const struct op_table *const tables[] = {
        &op_cases_compute, &op_cases_layers, &op_cases_move,
        &op_cases_image,   &op_cases_more,   &op_cases_control,
        &op_cases_contrib, &op_cases_ml};
    static uint32_t t, i; /* of the next operator */

    for (; t < BYI_COUNT(tables); t++, i = 0)
        while (i < tables[t]->n) {
            op_now = &tables[t]->at[i++];
            if (!only || strcmp(only, op_now->op) == 0)
                return true;
        }
    return false;
}
