/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c: elementwise operators of one operand, any shape. The plain form is
 * a function of one double; float32 has vectorised loops for most operators;
 * float16 and bfloat16 go through them in blocks; integers have their own.
 */
#include "kernel.h"

enum { BLOCK = 512, PARAMS = 4 };

/* --- plain forms, of one double ----------------------------------------- */

#define PLAIN(name, expr)                                                      \
    static double name##_plain(double x, const double *p)                      \
    {                                                                          \
        (void)p;                                                               \
        return expr;                                                           \
    }

/* clang-format off */
PLAIN(abs, fabs(x))
PLAIN(negative, -x)
PLAIN(exp, exp(x))
PLAIN(log, log(x))
PLAIN(sqrt, sqrt(x))
PLAIN(rsqrt, 1 / sqrt(x))
PLAIN(reciprocal, 1 / x)
PLAIN(erf, erf(x))
PLAIN(sin, sin(x))
PLAIN(cos, cos(x))
PLAIN(tan, tan(x))
PLAIN(asin, asin(x))
PLAIN(acos, acos(x))
PLAIN(atan, atan(x))
PLAIN(sinh, sinh(x))
PLAIN(cosh, cosh(x))
PLAIN(tanh, tanh(x))
PLAIN(asinh, asinh(x))
PLAIN(acosh, acosh(x))
PLAIN(atanh, atanh(x))
PLAIN(sigmoid, 1 / (1 + exp(-x)))
PLAIN(ceil, ceil(x))
PLAIN(floor, floor(x))
PLAIN(round, rint(x))
PLAIN(sign, x > 0 ? 1 : x < 0 ? -1 : x)
PLAIN(relu, x < 0 ? 0 : x)
PLAIN(leaky_relu, x < 0 ? p[0] * x : x)
PLAIN(elu, x < 0 ? p[0] * expm1(x) : x)
PLAIN(selu, x > 0 ? p[1] * x : p[1] * p[0] * expm1(x))
PLAIN(celu, x < 0 ? p[0] * expm1(x / p[0]) : x)
PLAIN(silu, x / (1 + exp(-x)))
PLAIN(softplus, (x < 0 ? 0 : x) + log1p(exp(-fabs(x))))
PLAIN(mish, x * tanh(softplus_plain(x, p)))
PLAIN(softsign, x / (1 + fabs(x)))
PLAIN(thresholded_relu, x > p[0] || x != x ? x : 0)
PLAIN(shrink, x < -p[0] ? x + p[1] : x > p[0] ? x - p[1] : x != x ? x : 0)
/* clang-format on */

static double clamp(double x, double low, double high)
{
    double t = x < low ? low : x;
    return t > high ? high : t;
}

PLAIN(clip, clamp(x, p[0], p[1]))
PLAIN(hard_sigmoid, clamp(p[0] * x + p[1], 0, 1))
PLAIN(hard_swish, x *clamp(x / 6 + 0.5, 0, 1))

static double gelu_plain(double x, const double *p)
{
    if (p[0] == 0)
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

typedef double (*plain_fn)(double x, const double *p);

static const plain_fn plain[BYI_N_OPS] = {
    [BYI_OP_ABS] = abs_plain,
    [BYI_OP_NEGATIVE] = negative_plain,
    [BYI_OP_EXP] = exp_plain,
    [BYI_OP_LOG] = log_plain,
    [BYI_OP_SQRT] = sqrt_plain,
    [BYI_OP_RSQRT] = rsqrt_plain,
    [BYI_OP_RECIPROCAL] = reciprocal_plain,
    [BYI_OP_ERF] = erf_plain,
    [BYI_OP_SIN] = sin_plain,
    [BYI_OP_COS] = cos_plain,
    [BYI_OP_TAN] = tan_plain,
    [BYI_OP_ASIN] = asin_plain,
    [BYI_OP_ACOS] = acos_plain,
    [BYI_OP_ATAN] = atan_plain,
    [BYI_OP_SINH] = sinh_plain,
    [BYI_OP_COSH] = cosh_plain,
    [BYI_OP_TANH] = tanh_plain,
    [BYI_OP_ASINH] = asinh_plain,
    [BYI_OP_ACOSH] = acosh_plain,
    [BYI_OP_ATANH] = atanh_plain,
    [BYI_OP_SIGMOID] = sigmoid_plain,
    [BYI_OP_CEIL] = ceil_plain,
    [BYI_OP_FLOOR] = floor_plain,
    [BYI_OP_ROUND] = round_plain,
    [BYI_OP_SIGN] = sign_plain,
    [BYI_OP_CLIP] = clip_plain,
    [BYI_OP_NN_RELU] = relu_plain,
    [BYI_OP_NN_LEAKY_RELU] = leaky_relu_plain,
    [BYI_OP_NN_ELU] = elu_plain,
    [BYI_OP_NN_SELU] = selu_plain,
    [BYI_OP_NN_CELU] = celu_plain,
    [BYI_OP_NN_GELU] = gelu_plain,
    [BYI_OP_NN_SILU] = silu_plain,
    [BYI_OP_NN_HARD_SIGMOID] = hard_sigmoid_plain,
    [BYI_OP_NN_HARD_SWISH] = hard_swish_plain,
    [BYI_OP_NN_MISH] = mish_plain,
    [BYI_OP_NN_SOFTPLUS] = softplus_plain,
    [BYI_OP_NN_SOFTSIGN] = softsign_plain,
    [BYI_OP_NN_THRESHOLDED_RELU] = thresholded_relu_plain,
    [BYI_OP_NN_SHRINK] = shrink_plain,
};

double byi_unary_plain(enum byi_op_id op, double x, const double *params)
{
    return plain[op](x, params);
}

/* --- one call ----------------------------------------------------------- */

struct job {
    enum byi_op_id op;
    const struct byi_tensor *x;
    struct byi_tensor *y;
    void (*fast)(const float *x, float *y, int64_t n, const float *p);
    plain_fn plain;
    double p[PARAMS];
    float pf[PARAMS];
};

/* Elements [begin, end). */
typedef void (*range_fn)(const struct job *job, int64_t begin, int64_t end);

/* The operator's attributes as numbers, in the table's order. */
static void read_params(const struct byi_call *call, struct job *job)
{
    for (uint32_t i = 0; i < call->attrs->n && i < PARAMS; i++) {
        const struct byi_attr *attr = &call->attrs->at[i];
        if (attr->kind == BYI_ATTR_FLOAT)
            job->p[i] = attr->f;
        else if (attr->kind == BYI_ATTR_STRING)
            job->p[i] = strcmp(attr->s, "tanh") == 0;
        else
            job->p[i] = (double)attr->i;
        job->pf[i] = (float)job->p[i];
    }
}

/* --- floats ------------------------------------------------------------- */

static void run_f32(const struct job *job, const float *x, float *y, int64_t n)
{
    if (job->fast) {
        job->fast(x, y, n, job->pf);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)job->plain((double)x[i], job->p);
}

static void range_f32(const struct job *job, int64_t begin, int64_t end)
{
    run_f32(job, (const float *)job->x->data + begin,
            (float *)job->y->data + begin, end - begin);
}

static void range_f64(const struct job *job, int64_t begin, int64_t end)
{
    const double *x = job->x->data;
    double *y = job->y->data;
    for (int64_t i = begin; i < end; i++)
        y[i] = job->plain(x[i], job->p);
}

static void range_half(const struct job *job, int64_t begin, int64_t end)
{
    const uint16_t *x = job->x->data;
    uint16_t *y = job->y->data;
    float in[BLOCK], out[BLOCK];
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = byi_min(BLOCK, end - at);
        byi_widen(job->x->dtype, x + at, in, n);
        run_f32(job, in, out, n);
        byi_narrow(job->x->dtype, out, y + at, n);
    }
}

/* --- integers ----------------------------------------------------------- */

#define TYPED(op, id, type, expr)                                              \
    static void op##_##id(const struct job *job, int64_t begin, int64_t end)   \
    {                                                                          \
        const type *xs = job->x->data;                                         \
        type *y = job->y->data;                                                \
        for (int64_t i = begin; i < end; i++) {                                \
            const type x = xs[i];                                              \
            y[i] = (type)(expr);                                               \
        }                                                                      \
    }

/* Unsigned subtraction: the least number is its own negative, not an
 * overflow. */
#define SIGNED(T) T(I8, int8_t) T(I16, int16_t) T(I32, int32_t) T(I64, int64_t)
#define UNSIGNED(T)                                                            \
    T(U8, uint8_t) T(U16, uint16_t) T(U32, uint32_t) T(U64, uint64_t)
#define EACH_SIGNED(id, type)                                                  \
    TYPED(abs, id, type, x < 0 ? (type)(0 - (uint64_t)x) : x)                  \
    TYPED(negative, id, type, 0 - (uint64_t)x)                                 \
    TYPED(sign, id, type, (x > 0) - (x < 0))                                   \
    TYPED(relu, id, type, x < 0 ? 0 : x)
#define EACH_UNSIGNED(id, type)                                                \
    TYPED(abs, id, type, x)                                                    \
    TYPED(sign, id, type, x > 0)                                               \
    TYPED(relu, id, type, x)
SIGNED(EACH_SIGNED)
UNSIGNED(EACH_UNSIGNED)

/* A bound as a number of the type: the nearest one. */
#define CLIP(id, type, least, most)                                            \
    static type bound_##id(double v)                                           \
    {                                                                          \
        if (!(v > (double)(least)))                                            \
            return least;                                                      \
        return v < (double)(most) ? (type)v : most;                            \
    }                                                                          \
    static void clip_##id(const struct job *job, int64_t begin, int64_t end)   \
    {                                                                          \
        const type low = bound_##id(job->p[0]), high = bound_##id(job->p[1]);  \
        const type *x = job->x->data;                                          \
        type *y = job->y->data;                                                \
        for (int64_t i = begin; i < end; i++) {                                \
            type t = x[i] < low ? low : x[i];                                  \
            y[i] = t > high ? high : t;                                        \
        }                                                                      \
    }
CLIP(U8, uint8_t, 0, UINT8_MAX)
CLIP(I8, int8_t, INT8_MIN, INT8_MAX)
CLIP(U16, uint16_t, 0, UINT16_MAX)
CLIP(I16, int16_t, INT16_MIN, INT16_MAX)
CLIP(U32, uint32_t, 0, UINT32_MAX)
CLIP(I32, int32_t, INT32_MIN, INT32_MAX)
CLIP(U64, uint64_t, 0, UINT64_MAX)
CLIP(I64, int64_t, INT64_MIN, INT64_MAX)

/* numbers of 53 bits and more lose their last ones here */
#define EACH_SHRINK(id, type)                                                  \
    TYPED(shrink, id, type, bound_##id(shrink_plain((double)x, job->p)))
BYI_EACH_INT(EACH_SHRINK)

static const struct {
    enum byi_op_id op;
    range_fn run[BYI_DTYPES];
} integers[] = {
#define ABS(id, type) [BYOC_##id] = abs_##id,
    {BYI_OP_ABS, {BYI_EACH_INT(ABS)}},
#define NEGATIVE(id, type) [BYOC_##id] = negative_##id,
    {BYI_OP_NEGATIVE, {SIGNED(NEGATIVE)}},
#define SIGN(id, type) [BYOC_##id] = sign_##id,
    {BYI_OP_SIGN, {BYI_EACH_INT(SIGN)}},
#define RELU(id, type) [BYOC_##id] = relu_##id,
    {BYI_OP_NN_RELU, {BYI_EACH_INT(RELU)}},
#define SHRINK(id, type) [BYOC_##id] = shrink_##id,
    {BYI_OP_NN_SHRINK, {BYI_EACH_INT(SHRINK)}},
#define CLIPS(id, type) [BYOC_##id] = clip_##id,
    {BYI_OP_CLIP, {BYI_EACH_INT(CLIPS)}},
};

/* --- the kernel of most operators --------------------------------------- */

static range_fn find_range(const struct job *job)
{
    switch (job->x->dtype) {
    case BYOC_F32:
        return range_f32;
    case BYOC_F64:
        return range_f64;
    case BYOC_F16:
    case BYOC_BF16:
        return range_half;
    default:
        break;
    }
    for (uint32_t i = 0; i < BYI_COUNT(integers); i++)
        if (integers[i].op == job->op)
            return integers[i].run[job->x->dtype];
    return NULL;
}

static void run_all(const struct byi_call *call, range_fn run,
                    const struct job *job)
{
    enum { CHUNK = 8192 };
    const int64_t n = byi_count(call->in);
    const int team = byi_team(call, job->fast ? n : n * 8);
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += CHUNK)
        run(job, at, byi_min(at + CHUNK, n));
}

static enum byoc_status unary_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    struct job job = {
        .op = call->op->id,
        .x = call->in,
        .y = call->out,
        .fast = byi_simd()->unary[call->op->id],
        .plain = plain[call->op->id],
    };
    read_params(call, &job);
    range_fn run = find_range(&job);
    if (!run)
        return byi_bad_dtype(call, call->in->dtype,
                             "float16, bfloat16, float32 or float64", err);
    run_all(call, run, &job);
    return BYOC_OK;
}

/* --- predicates and copies ---------------------------------------------- */

#define TEST(op, id, type, load)                                               \
    static void op##_##id(const struct job *job, int64_t begin, int64_t end)   \
    {                                                                          \
        const type *x = job->x->data;                                          \
        uint8_t *y = job->y->data;                                             \
        const bool low = job->p[0] != 0, high = job->p[1] != 0;                \
        (void)low, (void)high;                                                 \
        for (int64_t i = begin; i < end; i++)                                  \
            y[i] = op##_of(load(x[i]));                                        \
    }
#define ITSELF(x) (x)
#define isnan_of(x) ((x) != (x))
#define isinf_of(x) (isinf(x) && ((x) < 0 ? low : high))
#define TESTS(op)                                                              \
    TEST(op, F32, float, ITSELF)                                               \
    TEST(op, F64, double, ITSELF)                                              \
    TEST(op, F16, uint16_t, byi_f16_to_f32)                                    \
    TEST(op, BF16, uint16_t, byi_bf16_to_f32)                                  \
    static const range_fn op##_ranges[BYI_DTYPES] = {                          \
        [BYOC_F32] = op##_F32,                                                 \
        [BYOC_F64] = op##_F64,                                                 \
        [BYOC_F16] = op##_F16,                                                 \
        [BYOC_BF16] = op##_BF16,                                               \
    };
TESTS(isnan)
TESTS(isinf)

static enum byoc_status test_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    const range_fn *ranges =
        call->op->id == BYI_OP_ISNAN ? isnan_ranges : isinf_ranges;
    struct job job = {.x = call->in, .y = call->out};
    read_params(call, &job);
    if (!ranges[call->in->dtype])
        return byi_bad_dtype(call, call->in->dtype,
                             "float16, bfloat16, float32 or float64", err);
    run_all(call, ranges[call->in->dtype], &job);
    return BYOC_OK;
}

static void range_not(const struct job *job, int64_t begin, int64_t end)
{
    const uint8_t *x = job->x->data;
    uint8_t *y = job->y->data;
    for (int64_t i = begin; i < end; i++)
        y[i] = !x[i];
}

static enum byoc_status not_run(const struct byi_call *call,
                                struct byoc_error *err)
{
    struct job job = {.x = call->in, .y = call->out};
    if (call->in->dtype != BYOC_BOOL)
        return byi_bad_dtype(call, call->in->dtype, "bool", err);
    run_all(call, range_not, &job);
    return BYOC_OK;
}

static enum byoc_status copy_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    (void)err;
    /* strings are copied as pointers: their owner outlives the run */
    size_t bytes = (size_t)byi_tensor_bytes(call->in);
    if (bytes)
        memcpy(call->out->data, call->in->data, bytes);
    return BYOC_OK;
}

#define UNARY(id)                                                              \
    {                                                                          \
        BYI_OP_##id,                                                           \
        {                                                                      \
            unary_run, NULL                                                    \
        }                                                                      \
    }
static const struct byi_kernel_row rows[] = {
    UNARY(ABS),
    UNARY(NEGATIVE),
    UNARY(EXP),
    UNARY(LOG),
    UNARY(SQRT),
    UNARY(RSQRT),
    UNARY(RECIPROCAL),
    UNARY(ERF),
    UNARY(SIN),
    UNARY(COS),
    UNARY(TAN),
    UNARY(ASIN),
    UNARY(ACOS),
    UNARY(ATAN),
    UNARY(SINH),
    UNARY(COSH),
    UNARY(TANH),
    UNARY(ASINH),
    UNARY(ACOSH),
    UNARY(ATANH),
    UNARY(SIGMOID),
    UNARY(CEIL),
    UNARY(FLOOR),
    UNARY(ROUND),
    UNARY(SIGN),
    UNARY(CLIP),
    UNARY(NN_RELU),
    UNARY(NN_LEAKY_RELU),
    UNARY(NN_ELU),
    UNARY(NN_SELU),
    UNARY(NN_CELU),
    UNARY(NN_GELU),
    UNARY(NN_SILU),
    UNARY(NN_HARD_SIGMOID),
    UNARY(NN_HARD_SWISH),
    UNARY(NN_MISH),
    UNARY(NN_SOFTPLUS),
    UNARY(NN_SOFTSIGN),
    UNARY(NN_THRESHOLDED_RELU),
    UNARY(NN_SHRINK),
    {BYI_OP_ISNAN, {test_run, NULL}},
    {BYI_OP_ISINF, {test_run, NULL}},
    {BYI_OP_LOGICAL_NOT, {not_run, NULL}},
    {BYI_OP_COPY, {copy_run, NULL}},
    {BYI_OP_STOP_FUSION, {copy_run, NULL}},
};
const struct byi_kernel_rows byi_rows_unary = {rows, BYI_COUNT(rows)};
