/* cases.c: for each operator, how a random call of it is made. Types are
 * letters: f floats of 32 and 64 bits, h float16, i signed and u unsigned
 * integers, b bool; 8 the 8-bit integers. A generator reads op_now->flavour.
 */
#include "fuzz.h"

#include <string.h>

const struct op_case *op_now;

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

    draw_operand(d, d->dtype, ra, swap ? a : dims, op_now->flavour);
    draw_operand(d, d->dtype, rb, swap ? dims : b, op_now->flavour);
}

/* The divisor is not 0: ONNX Runtime's process ends there. */
static void quotient(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool whole = !byi_dtype_is_float(d->dtype);

    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, whole ? POSITIVE : op_now->flavour);
    if (strcmp(op_now->op, "Mod") == 0 && (!whole || draw_chance(d, 50)))
        draw_attr_int(d, "fmod", 1);
}

static void power(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 3, dims);

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

    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, ORDINARY);
}

static void several(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const int64_t n = draw_int(d, 1, 4);

    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    for (int64_t i = 1; i < n; i++) {
        const uint32_t rb = draw_narrower(d, rank, dims, b);
        draw_operand(d, d->dtype, rb, b, op_now->flavour);
    }
}

static void where(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    uint32_t rb = draw_narrower(d, rank, dims, b);

    draw_operand(d, BYOC_BOOL, rb, b, ORDINARY);
    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, op_now->flavour);
}

static void cast(struct draw *d)
{
    static const enum byoc_dtype to[] = {
        BYOC_F32, BYOC_F64, BYOC_F16, BYOC_BF16, BYOC_I8,  BYOC_U8,
        BYOC_I16, BYOC_I32, BYOC_I64, BYOC_U32,  BYOC_BOOL};

    draw_same(d);
    draw_attr_int(d, "to", to[draw_int(d, 0, BYI_COUNT(to) - 1)]);
}

/* A bound left out leaves infinities alone here, and ends at the type's largest
 * numbers in ONNX Runtime: of whole or ordinary numbers that is the same. */
static void clip(struct draw *d)
{
    const int64_t low = draw_int(d, 0, 3), high = draw_int(d, 4, 8);
    const bool both =
        byi_dtype_is_float(d->dtype) && op_now->flavour == EXTREME;

    draw_same(d);
    if (both || draw_chance(d, 70))
        draw_ints(d, d->dtype, -1, &low, draw_chance(d, 50));
    else
        draw_nothing(d);
    if (both || draw_chance(d, 70))
        draw_ints(d, d->dtype, -1, &high, draw_chance(d, 50));
}

/* A scalar has no rows of places here, and one in ONNX Runtime. */
static void with_axes(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
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
    const uint32_t rank = draw_shape(d, 0, 2, batch);
    const int64_t m = draw_int(d, 0, 20), k = draw_int(d, 1, 33),
                  n = draw_int(d, 0, 35);
    uint32_t ra = 0, rb = 0;

    for (uint32_t i = 0; i < rank; i++)
        a[ra++] = draw_chance(d, 20) ? 1 : batch[i];
    if (rank || draw_chance(d, 80))
        a[ra++] = m;
    a[ra++] = k;
    if (draw_chance(d, 60))
        for (uint32_t i = 0; i < rank; i++)
            b[rb++] = draw_chance(d, 20) ? 1 : batch[i];
    b[rb++] = k;
    if (rb > 1 || draw_chance(d, 80))
        b[rb++] = n;
    draw_operand(d, d->dtype, ra, a, op_now->flavour);
    draw_operand(d, d->dtype, rb, b, op_now->flavour);
}

static void gemm(struct draw *d)
{
    const int64_t m = draw_int(d, 0, 40), k = draw_int(d, 1, 40),
                  n = draw_int(d, 0, 40);
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
        draw_attr_float(d, "alpha", 0.5f);
    if (draw_chance(d, 40))
        draw_attr_float(d, "beta", 2.0f);
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
        {"ij->ji", 1, {2, 0, 0}, {"ij"}},
        {"ij->i", 1, {2, 0, 0}, {"ij"}},
        {"ij,ij->", 2, {2, 2, 0}, {"ij", "ij"}},
        {"bhik,bhjk->bhij", 2, {4, 4, 0}, {"bhik", "bhjk"}},
        {"i,j->ij", 2, {1, 1, 0}, {"i", "j"}},
        {"bik,kj,bj->bi", 3, {3, 2, 2}, {"bik", "kj", "bj"}},
    };
    const uint32_t f = (uint32_t)draw_int(d, 0, BYI_COUNT(forms) - 1);
    int64_t size[128], dims[4];

    for (char c = 'a'; c <= 'z'; c++)
        size[(int)c] = draw_int(d, 1, 9);
    for (uint32_t i = 0; i < forms[f].n; i++) {
        for (uint32_t k = 0; k < forms[f].ranks[i]; k++)
            dims[k] = size[(int)forms[f].letters[i][k]];
        draw_operand(d, d->dtype, forms[f].ranks[i], dims, ORDINARY);
    }
    draw_attr_string(d, "equation", forms[f].text);
}

static void det(struct draw *d)
{
    int64_t dims[3];
    const int64_t n = draw_int(d, 1, 6);

    dims[0] = draw_int(d, 0, 4);
    dims[1] = dims[2] = n;
    draw_operand(d, d->dtype, 3, dims, ORDINARY);
}

/* RNN, GRU, LSTM: x, weights, recurrent, bias; forward or both ways. */
static void recurrent(struct draw *d)
{
    static const char *const ways[] = {"forward", "reverse", "bidirectional"};
    const int64_t gates = op_now->op[0] == 'L'   ? 4
                          : op_now->op[0] == 'G' ? 3
                                                 : 1;
    const int64_t way = draw_int(d, 0, 2), n = way == 2 ? 2 : 1;
    const int64_t hidden = draw_int(d, 1, 9), input = draw_int(d, 1, 9);

    draw_operand(d, d->dtype, 3,
                 (int64_t[]){draw_int(d, 1, 6), draw_int(d, 1, 4), input},
                 ORDINARY);
    draw_operand(d, d->dtype, 3, (int64_t[]){n, gates * hidden, input}, UNIT);
    draw_operand(d, d->dtype, 3, (int64_t[]){n, gates * hidden, hidden}, UNIT);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 2, (int64_t[]){n, 2 * gates * hidden},
                     ORDINARY);
    draw_attr_int(d, "hidden_size", hidden);
    draw_attr_string(d, "direction", ways[way]);
    if (gates == 3)
        draw_attr_int(d, "linear_before_reset", draw_int(d, 0, 1));
}

/* --- windows -------------------------------------------------------------- */

struct window {
    uint32_t n;
    int64_t x[5], kernel[3], strides[3], dilations[3], pads[6];
};

/* A window that fits its data, of channels c. */
static void draw_window(struct draw *d, int64_t c, bool dilated,
                        struct window *w)
{
    w->n = (uint32_t)draw_int(d, 1, draw_chance(d, 20) ? 3 : 2);
    w->x[0] = draw_int(d, 1, 3);
    w->x[1] = c;
    for (uint32_t i = 0; i < w->n; i++) {
        w->kernel[i] = draw_int(d, 1, 4);
        w->strides[i] = draw_int(d, 1, 3);
        w->dilations[i] = dilated && draw_chance(d, 25) ? 2 : 1;
        const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        w->pads[i] = draw_int(d, 0, (w->kernel[i] - 1) / 2 + 0);
        w->pads[i + w->n] = draw_int(d, 0, (w->kernel[i] - 1) / 2 + 0);
        w->x[i + 2] = reach + draw_int(d, 0, draw_chance(d, 20) ? 30 : 8);
    }
}

static void window_attrs(struct draw *d, const struct window *w, bool kernel,
                         bool dilations)
{
    if (kernel)
        draw_attr_ints(d, "kernel_shape", w->n, w->kernel);
    draw_attr_ints(d, "strides", w->n, w->strides);
    draw_attr_ints(d, "pads", (size_t)2 * w->n, w->pads);
    if (dilations)
        draw_attr_ints(d, "dilations", w->n, w->dilations);
}

static void conv(struct draw *d)
{
    const bool back = strcmp(op_now->op, "ConvTranspose") == 0;
    const bool whole = strcmp(op_now->op, "ConvInteger") == 0;
    const int64_t groups = draw_chance(d, 30) ? draw_int(d, 2, 4) : 1;
    const int64_t in = groups * draw_int(d, 1, 4), each = draw_int(d, 1, 5);
    struct window w;
    int64_t dims[5];

    draw_window(d, in, true, &w);
    draw_operand(d, d->dtype, w.n + 2, w.x, ORDINARY);
    dims[0] = back ? in : groups * each;
    dims[1] = back ? each : in / groups;
    memcpy(dims + 2, w.kernel, sizeof w.kernel);
    draw_operand(d, d->dtype, w.n + 2, dims, ORDINARY);
    if (!whole && draw_chance(d, 50))
        draw_operand(d, d->dtype, 1, (int64_t[]){groups * each}, ORDINARY);
    window_attrs(d, &w, draw_chance(d, 50), true);
    draw_attr_int(d, "group", groups);
}

static void pool(struct draw *d)
{
    const bool max = strcmp(op_now->op, "MaxPool") == 0;
    struct window w;

    draw_window(d, draw_int(d, 1, 5), max, &w);
    draw_operand(d, d->dtype, w.n + 2, w.x, op_now->flavour);
    window_attrs(d, &w, true, max);
    if (strcmp(op_now->op, "LpPool") == 0) {
        draw_attr_int(d, "p", draw_int(d, 1, 3));
        return;
    }
    if (max && draw_chance(d, 30))
        draw_attr_int(d, "ceil_mode", 1);
    if (!max && draw_chance(d, 50))
        draw_attr_int(d, "count_include_pad", 1);
}

static void global_pool(struct draw *d)
{
    int64_t dims[5] = {draw_int(d, 1, 3), draw_int(d, 1, 9)};
    const uint32_t rank = (uint32_t)draw_int(d, 3, 5);

    for (uint32_t i = 2; i < rank; i++)
        dims[i] = draw_int(d, 1, 9);
    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
}

/* --- axes ----------------------------------------------------------------- */

static void along_axis(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
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
    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    draw_attr_int(d, "axis", draw_axis(d, rank));
    draw_attr_int(d, "keepdims", draw_int(d, 0, 1));
    draw_attr_int(d, "select_last_index", draw_int(d, 0, 1));
}

static void reduce(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], axes[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool operand = strcmp(op_now->op, "ReduceSum") == 0;
    size_t n = 0;

    const bool product = strcmp(op_now->op, "ReduceProd") == 0;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = dims[i] ? dims[i] : 2; /* of nothing: there is no rule */
        if (product && !byi_dtype_is_float(d->dtype))
            dims[i] = dims[i] > 2 ? 2 : dims[i]; /* beyond the type: nor here */
        if (draw_chance(d, 50))
            axes[n++] = draw_chance(d, 50) ? i : (int64_t)i - rank;
    }
    draw_operand(d, d->dtype, rank, dims, op_now->flavour);
    draw_attr_int(d, "keepdims", draw_int(d, 0, 1));
    if (operand && n)
        draw_ints(d, BYOC_I64, (int64_t)n, axes, draw_chance(d, 50));
    else if (n)
        draw_attr_ints(d, "axes", n, axes);
}

static void cumsum(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);

    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_ints(d, BYOC_I64, -1, &axis, draw_chance(d, 50));
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
    draw_attr_int(d, "largest", draw_int(d, 0, 1));
}

#define MS "com.microsoft"
/* clang-format off */
static const struct op_case rows[] = {
    {"Abs", 13, "fiu", draw_same, EXTREME, 1, 0, NULL},
    {"Acos", 7, "f", draw_same, UNIT, 1, 1e-6, NULL},
    {"Acosh", 9, "f", draw_same, POSITIVE, 1, 1e-6, NULL},
    {"Add", 14, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"And", 7, "b", broadcast, ORDINARY, 1, 0, NULL},
    {"ArgMax", 13, "fi", arg_of, ORDINARY, 1, 0, NULL},
    {"ArgMin", 13, "fi", arg_of, ORDINARY, 1, 0, NULL},
    {"Asin", 7, "f", draw_same, UNIT, 1, 1e-6, NULL},
    {"Asinh", 9, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"Atan", 7, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"Atanh", 9, "f", draw_same, UNIT, 1, 1e-6, NULL},
    {"AveragePool", 11, "f", pool, ORDINARY, 1, 1e-5, NULL},
    {"BitShift", 11, "u", shift, ORDINARY, 1, 0, NULL},
    {"Cast", 13, "fhiub", cast, ORDINARY, 1, 0, NULL},
    {"Ceil", 13, "f", draw_same, EXTREME, 1, 0, NULL},
    {"Celu", 12, "f", with_alpha, EXTREME, 1, 1e-6, NULL},
    {"Clip", 13, "fiu", clip, EXTREME, 1, 0, NULL},
    {"Conv", 11, "f", conv, ORDINARY, 1, 1e-4, NULL},
    {"ConvTranspose", 11, "f", conv, ORDINARY, 1, 1e-4, NULL},
    {"Cos", 7, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"Cosh", 9, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"CumSum", 14, "fi", cumsum, ORDINARY, 1, 1e-5, NULL},
    {"Det", 11, "f", det, ORDINARY, 1, 1e-3, NULL},
    {"Div", 14, "fiu", quotient, EXTREME, 1, 0, NULL},
    {"Einsum", 12, "f", einsum, ORDINARY, 1, 1e-4, NULL},
    {"Elu", 6, "f", with_alpha, EXTREME, 1, 1e-6, NULL},
    {"Equal", 13, "fib", broadcast, EXTREME, 1, 0, NULL},
    {"GRU", 14, "f", recurrent, ORDINARY, 2, 1e-4, NULL},
    {"LSTM", 14, "f", recurrent, ORDINARY, 3, 1e-4, NULL},
    {"RNN", 14, "f", recurrent, ORDINARY, 2, 1e-4, NULL},
    {"Erf", 13, "f", draw_same, EXTREME, 1, 1e-5, NULL},
    {"Exp", 13, "f", draw_same, EXTREME, 1, 1e-5, NULL},
    {"Floor", 13, "f", draw_same, EXTREME, 1, 0, NULL},
    {"Gemm", 13, "f", gemm, ORDINARY, 1, 1e-4, NULL},
    {"GlobalAveragePool", 1, "f", global_pool, ORDINARY, 1, 1e-5, NULL},
    {"GlobalMaxPool", 1, "f", global_pool, ORDINARY, 1, 0, NULL},
    {"Greater", 13, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"GreaterOrEqual", 16, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"HardSigmoid", 6, "f", hard_sigmoid, EXTREME, 1, 1e-6, NULL},
    {"HardSwish", 14, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"Hardmax", 13, "f", along_axis, ORDINARY, 1, 0, NULL},
    {"IsInf", 10, "f", isinf_of, EXTREME, 1, 0, NULL},
    {"IsNaN", 13, "fh", draw_same, EXTREME, 1, 0, NULL},
    {"LeakyRelu", 16, "f", with_alpha, EXTREME, 1, 1e-6, NULL},
    {"Less", 13, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"LessOrEqual", 16, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"Log", 13, "f", draw_same, POSITIVE, 1, 1e-6, NULL},
    {"LogSoftmax", 13, "f", along_axis, ORDINARY, 1, 1e-5, NULL},
    {"LpNormalization", 1, "f", along_axis, ORDINARY, 1, 1e-5, NULL},
    {"LpPool", 11, "f", pool, ORDINARY, 1, 1e-4, NULL},
    {"MatMul", 13, "fiu", matmul, ORDINARY, 1, 1e-4, NULL},
    {"Max", 13, "fiu", several, EXTREME, 1, 0, NULL},
    {"MaxPool", 12, "f8", pool, ORDINARY, 1, 0, NULL},
    {"Mean", 13, "f", several, ORDINARY, 1, 1e-6, NULL},
    {"Min", 13, "fiu", several, EXTREME, 1, 0, NULL},
    {"Mod", 13, "fiu", quotient, ORDINARY, 1, 1e-6, NULL},
    {"Mul", 14, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"Neg", 13, "fi", draw_same, EXTREME, 1, 0, NULL},
    {"NonZero", 13, "fib", with_axes, ORDINARY, 1, 0, NULL},
    {"Not", 1, "b", draw_same, ORDINARY, 1, 0, NULL},
    {"Or", 7, "b", broadcast, ORDINARY, 1, 0, NULL},
    {"PRelu", 16, "f", prelu, EXTREME, 1, 1e-6, NULL},
    {"Pow", 15, "fi", power, ORDINARY, 1, 1e-5, NULL},
    {"Reciprocal", 13, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"ReduceL1", 13, "fi", reduce, ORDINARY, 1, 1e-5, NULL},
    {"ReduceL2", 13, "f", reduce, ORDINARY, 1, 1e-5, NULL},
    {"ReduceLogSum", 13, "f", reduce, POSITIVE, 1, 1e-5, NULL},
    {"ReduceLogSumExp", 13, "f", reduce, ORDINARY, 1, 1e-5, NULL},
    {"ReduceMax", 13, "fi8", reduce, ORDINARY, 1, 0, NULL},
    {"ReduceMean", 13, "fi", reduce, ORDINARY, 1, 1e-5, NULL},
    {"ReduceMin", 13, "fi8", reduce, ORDINARY, 1, 0, NULL},
    {"ReduceProd", 13, "fi", reduce, ORDINARY, 1, 1e-4, NULL},
    {"ReduceSum", 13, "fi", reduce, ORDINARY, 1, 1e-5, NULL},
    {"ReduceSumSquare", 13, "fi", reduce, ORDINARY, 1, 1e-5, NULL},
    {"Relu", 14, "fi", draw_same, EXTREME, 1, 0, NULL},
    {"Round", 11, "f", draw_same, EXTREME, 1, 0, NULL},
    {"Selu", 6, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"Shrink", 9, "fiu", shrink, ORDINARY, 1, 0, NULL},
    {"Sigmoid", 13, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"Sign", 13, "fiu", draw_same, EXTREME, 1, 0, NULL},
    {"Sin", 7, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"Sinh", 9, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"Softmax", 13, "f", along_axis, ORDINARY, 1, 1e-5, NULL},
    {"Softplus", 1, "f", draw_same, EXTREME, 1, 1e-5, NULL},
    {"Softsign", 1, "f", draw_same, ORDINARY, 1, 1e-6, NULL},
    {"Sqrt", 13, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"Sub", 14, "fiu", broadcast, EXTREME, 1, 0, NULL},
    {"Sum", 13, "f", several, ORDINARY, 1, 1e-6, NULL},
    {"Tan", 7, "f", draw_same, ORDINARY, 1, 1e-4, NULL},
    {"Tanh", 13, "f", draw_same, EXTREME, 1, 1e-6, NULL},
    {"ThresholdedRelu", 10, "f", with_alpha, ORDINARY, 1, 0, NULL},
    {"TopK", 11, "fi", topk, ORDINARY, 2, 0, NULL},
    {"Where", 16, "fiu", where, EXTREME, 1, 0, NULL},
    {"Xor", 7, "b", broadcast, ORDINARY, 1, 0, NULL},
    {"FastGelu", 1, "f", draw_same, ORDINARY, 1, 1e-5, MS},
    {"Gelu", 1, "f", draw_same, ORDINARY, 1, 1e-5, MS},
};
/* clang-format on */

const struct op_table op_cases_compute = {rows, BYI_COUNT(rows)};
