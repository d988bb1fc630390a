/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c: elementwise operators of one operand of any shape. The plain form is
 * a function of one double. Most operators have vectorised float32 loops, which
 * also compute float16 and bfloat16 in blocks. Integers have separate loops. */
#include "kernel.h"

enum { BLOCK = 512, PARAMS = 4 };

/* --- plain forms, of one double ----------------------------------------- */

static double clamp(double x, double low, double high)
{
    double t = x < low ? low : x;
    return t > high ? high : t;
}

#define PLAIN_FORM(id, expr)                                                   \
    static double id##_plain(double x, const double *p)                        \
    {                                                                          \
        const double p0 = p[0], p1 = p[1];                                     \
        (void)p0, (void)p1;                                                    \
        return expr;                                                           \
    }
#define UNARY(id, wide, single) PLAIN_FORM(id, wide)
#define UNARY_FLOAT32(id, wide, single) PLAIN_FORM(id, wide)
#define UNARY_CHOICE(id, wide, single, other) PLAIN_FORM(id, wide)
#define UNARY_BOUNDED(id, wide, single, most) PLAIN_FORM(id, wide)
#include "core/ops/unary.def"

typedef double (*plain_fn)(double x, const double *p);

static const plain_fn plain[BYI_N_OPS] = {
#define PLAIN_ROW(id) [BYI_OP_##id] = id##_plain,
#define UNARY(id, wide, single) PLAIN_ROW(id)
#define UNARY_FLOAT32(id, wide, single) PLAIN_ROW(id)
#define UNARY_CHOICE(id, wide, single, other) PLAIN_ROW(id)
#define UNARY_BOUNDED(id, wide, single, most) PLAIN_ROW(id)
#include "core/ops/unary.def"
};

/* The largest |x| for which the vectorised loop is accurate; 0: any x. */
static const float bounds[BYI_N_OPS] = {
#define UNARY_BOUNDED(id, wide, single, most) [BYI_OP_##id] = most,
#include "core/ops/unary.def"
};

float byi_unary_bound(enum byi_op_id op)
{
    return bounds[op] > 0 ? bounds[op] : INFINITY;
}

double byi_unary_plain(enum byi_op_id op, double x, const double *params)
{
    return plain[op](x, params);
}

/* --- one call ----------------------------------------------------------- */

struct unary_job;
/* Compute elements [begin, end). */
typedef void (*range_fn)(const struct unary_job *job, int64_t begin,
                         int64_t end);

/* A call, and the loops that compute it; a loop is NULL if the operator or type
 * has none. */
struct unary_job {
    enum byi_op_id op;
    const struct byi_tensor *x;
    struct byi_tensor *y;
    void (*fast)(const float *x, float *y, int64_t n, const float *p);
    void (*fast_f64)(const double *x, double *y, int64_t n, const double *p);
    plain_fn plain;
    byi_typed_unary typed;
    range_fn wide;    /* the loop for x, or for blocks of it in float32 */
    float bound;      /* bounds[] */
    double p[PARAMS]; /* the operator's parameters, for `plain` */
    float pf[PARAMS]; /* the same for `fast` */
};

/* Read the operator's attributes as numbers, in the order of ops.def. */
static void read_params(const struct byi_call *call, struct unary_job *job)
{
    for (uint32_t i = 0; i < call->attrs->n && i < PARAMS; i++) {
        job->p[i] = byi_attr_number(&call->attrs->at[i]);
        job->pf[i] = (float)job->p[i];
    }
}

/* --- floats ------------------------------------------------------------- */

/* Recompute the results for numbers beyond the bound of the vectorised loop. */
static void recompute_large(const struct unary_job *job, const float *x,
                            float *y, int64_t n)
{
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= !(fabsf(x[i]) <= job->bound);
    for (int64_t i = 0; outside && i < n; i++)
        if (!(fabsf(x[i]) <= job->bound))
            y[i] = (float)job->plain((double)x[i], job->p);
}

static void run_f32(const struct unary_job *job, const float *x, float *y,
                    int64_t n)
{
    if (job->fast) {
        job->fast(x, y, n, job->pf);
        if (job->bound > 0)
            recompute_large(job, x, y, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)job->plain((double)x[i], job->p);
}

static void range_f32(const struct unary_job *job, int64_t begin, int64_t end)
{
    run_f32(job, (const float *)job->x->data + begin,
            (float *)job->y->data + begin, end - begin);
}

static void range_f64(const struct unary_job *job, int64_t begin, int64_t end)
{
    const double *x = job->x->data;
    double *y = job->y->data;
    if (job->fast_f64) {
        job->fast_f64(x + begin, y + begin, end - begin, job->p);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        y[i] = job->plain(x[i], job->p);
}

/* Compute float16 and bfloat16 in blocks of float32. A one-byte result is a
 * bool. */
static void range_half(const struct unary_job *job, int64_t begin, int64_t end)
{
    const enum byoc_dtype dtype = job->x->dtype;
    const uint16_t *x = job->x->data;
    float in[BLOCK], out[BLOCK];
    struct byi_tensor from = {.data = in, .dtype = BYOC_F32};
    struct byi_tensor to = {.data = out, .dtype = job->y->dtype};
    struct unary_job block = *job;
    block.x = &from;
    block.y = &to;
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t n = byi_min(BLOCK, end - at);
        byi_widen(dtype, x + at, in, n);
        if (to.dtype == BYOC_BOOL)
            to.data = (uint8_t *)job->y->data + at;
        job->wide(&block, 0, n);
        if (to.dtype != BYOC_BOOL)
            byi_narrow(dtype, out, (uint16_t *)job->y->data + at, n);
    }
}

/* --- integers ----------------------------------------------------------- */

#define TYPED(op, id, type, expr)                                              \
    static void op##_##id(const struct unary_job *job, int64_t begin,          \
                          int64_t end)                                         \
    {                                                                          \
        typedef type T;                                                        \
        const T *xs = job->x->data;                                            \
        T *y = job->y->data;                                                   \
        for (int64_t i = begin; i < end; i++) {                                \
            const T x = xs[i];                                                 \
            y[i] = (T)(expr);                                                  \
        }                                                                      \
    }

#define UNARY_SIGNED(op, expr)                                                 \
    TYPED(op, I8, int8_t, expr)                                                \
    TYPED(op, I16, int16_t, expr)                                              \
    TYPED(op, I32, int32_t, expr)                                              \
    TYPED(op, I64, int64_t, expr)
#define UNARY_UNSIGNED(op, expr)                                               \
    TYPED(op, U8, uint8_t, expr)                                               \
    TYPED(op, U16, uint16_t, expr)                                             \
    TYPED(op, U32, uint32_t, expr)                                             \
    TYPED(op, U64, uint64_t, expr)
#include "core/ops/unary.def"

/* Each bound is truncated to an integer, and limited to the range of the type;
 * NaN becomes the lowest value. */
#define CLIP(id, type, least, most)                                            \
    static type bound_##id(double v)                                           \
    {                                                                          \
        if (!(v > (double)(least)))                                            \
            return least;                                                      \
        return v < (double)(most) ? (type)v : most;                            \
    }                                                                          \
    static void CLIP_##id(const struct unary_job *job, int64_t begin,          \
                          int64_t end)                                         \
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

/* integers of more than 53 bits lose their low bits here */
#define EACH_SHRINK(id, type)                                                  \
    TYPED(NN_SHRINK, id, type, bound_##id(NN_SHRINK_plain((double)x, job->p)))
BYI_EACH_INT(EACH_SHRINK)

/* Call job->typed, a loop of byi_simd for this operator and type. */
static void range_typed(const struct unary_job *job, int64_t begin, int64_t end)
{
    const size_t first = (size_t)begin;
    job->typed((const char *)job->x->data +
                   first * byi_dtype_bytes(job->x->dtype),
               (char *)job->y->data + first * byi_dtype_bytes(job->y->dtype),
               end - begin, job->p);
}

/* --- tests: the result is bool ------------------------------------------- */

#define TEST(op, id, type, expr)                                               \
    static void op##_##id(const struct unary_job *job, int64_t begin,          \
                          int64_t end)                                         \
    {                                                                          \
        const type *xs = job->x->data;                                         \
        uint8_t *y = job->y->data;                                             \
        const bool p0 = job->p[0] != 0, p1 = job->p[1] != 0;                   \
        (void)p0, (void)p1;                                                    \
        for (int64_t i = begin; i < end; i++) {                                \
            const type x = xs[i];                                              \
            y[i] = expr;                                                       \
        }                                                                      \
    }
#define UNARY_TEST(op, expr)                                                   \
    TEST(op, F32, float, expr)                                                 \
    TEST(op, F64, double, expr)
#define UNARY_BOOL(op, expr) TEST(op, BOOL, uint8_t, expr)
#define IS_INF isinf(x) && (x < 0 ? p0 : p1)
/* without branches, so that the loop vectorises */
TEST(ISINF, F32, float, ((x == -INFINITY) & p0) | ((x == INFINITY) & p1))
TEST(ISINF, F64, double, IS_INF)
#include "core/ops/unary.def"

/* The loop for this operator and type, or NULL if there is no special one. */
static range_fn typed_range(enum byi_op_id op, enum byoc_dtype dtype)
{
#define CASE(op, id)                                                           \
    case BYI_OP_##op *BYI_DTYPES + BYOC_##id:                                  \
        return op##_##id;
#define UNARY_SIGNED(op, expr)                                                 \
    CASE(op, I8) CASE(op, I16) CASE(op, I32) CASE(op, I64)
#define UNARY_UNSIGNED(op, expr)                                               \
    CASE(op, U8) CASE(op, U16) CASE(op, U32) CASE(op, U64)
#define UNARY_TEST(op, expr) CASE(op, F32) CASE(op, F64)
#define UNARY_BOOL(op, expr) CASE(op, BOOL)
#define CASES(id, type) CASE(CLIP, id) CASE(NN_SHRINK, id)
    switch ((int)op * BYI_DTYPES + (int)dtype) {
        UNARY_TEST(ISINF, )
#include "core/ops/unary.def"
        BYI_EACH_INT(CASES)
    default:
        return NULL;
    }
}

/* --- the kernel of most operators --------------------------------------- */

/* The loop for elements of this dtype; NULL if the operator has none. */
static range_fn find_range(const struct unary_job *job, enum byoc_dtype dtype)
{
    if (job->typed)
        return range_typed;
    if (job->plain && byi_dtype_is_wide(dtype))
        return dtype == BYOC_F32 ? range_f32 : range_f64;
    return typed_range(job->op, dtype);
}

/* Operators whose float32 form approximates a function, such as exp. */
static const bool is_approximated[BYI_N_OPS] = {
#define UNARY_FLOAT32(id, wide, single) [BYI_OP_##id] = true,
#define UNARY_CHOICE(id, wide, single, other) UNARY_FLOAT32(id, , )
#define UNARY_BOUNDED(id, wide, single, most) UNARY_FLOAT32(id, , )
#include "core/ops/unary.def"
};

/* The cost of an element in simple operations (byi_team). */
static int64_t weight_of(const struct unary_job *job)
{
    if (job->typed)
        return 1;
    if (!job->fast)
        return 8;
    switch (job->op) {
    case BYI_OP_CLIP:
    case BYI_OP_NN_HARD_SIGMOID:
    case BYI_OP_NN_HARD_SWISH:
        return 1;
    default:
        return is_approximated[job->op] ? 3 : 1;
    }
}

static void run_chunks(const struct byi_call *call, range_fn run,
                       const struct unary_job *job)
{
    enum { CHUNK = 8192 };
    const int64_t n = byi_count(call->in);
    const int team = byi_team(call, n * weight_of(job));
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += CHUNK)
        run(job, at, byi_min(at + CHUNK, n));
}

static enum byoc_status unary_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    struct unary_job job = {
        .op = call->op->id,
        .x = call->in,
        .y = call->out,
        .fast = byi_simd()->unary[call->op->id],
        .fast_f64 = byi_simd()->unary_f64[call->op->id],
        .plain = plain[call->op->id],
        .bound = bounds[call->op->id],
    };
    const bool half = byi_dtype_is_half(call->in->dtype);
    const enum byoc_dtype dtype = half ? BYOC_F32 : call->in->dtype;
    read_params(call, &job);
    if (byi_simd()->typed_unary)
        job.typed = byi_simd()->typed_unary(job.op, dtype);
    job.wide = find_range(&job, dtype);
    if (!job.wide)
        return byi_bad_dtype(call, call->in->dtype,
                             call->op->id == BYI_OP_LOGICAL_NOT
                                 ? "bool"
                                 : "float16, bfloat16, float32 or float64",
                             err);
    run_chunks(call, half ? range_half : job.wide, &job);
    return BYOC_OK;
}

/* --- copies -------------------------------------------------------------- */

static enum byoc_status copy_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    (void)err;
    /* for strings, copies pointers: the owner of the strings outlives the run
     */
    size_t bytes = (size_t)byi_tensor_bytes(call->in);
    if (bytes)
        memcpy(call->out->data, call->in->data, bytes);
    return BYOC_OK;
}

static const struct byi_kernel_row rows[] = {
#define KERNEL_ROW(id) {BYI_OP_##id, {unary_run, NULL}},
#define UNARY(id, wide, single) KERNEL_ROW(id)
#define UNARY_FLOAT32(id, wide, single) KERNEL_ROW(id)
#define UNARY_CHOICE(id, wide, single, other) KERNEL_ROW(id)
#define UNARY_BOUNDED(id, wide, single, most) KERNEL_ROW(id)
#define UNARY_TEST(id, expr) KERNEL_ROW(id)
#define UNARY_BOOL(id, expr) KERNEL_ROW(id)
#include "core/ops/unary.def"
    {BYI_OP_ISINF, {unary_run, NULL}},
    {BYI_OP_COPY, {copy_run, NULL}},
    {BYI_OP_STOP_FUSION, {copy_run, NULL}},
};
const struct byi_kernel_rows byi_rows_unary = {rows, BYI_COUNT(rows)};
