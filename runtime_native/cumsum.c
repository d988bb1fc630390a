/* SPDX-License-Identifier: Apache-2.0 */
/* cumsum.c: running sums and products along an axis: cumsum and dyn.cumsum. */
#include "move.h"

/* Number of adjacent lines that are summed together: in general, and for
 * float32, whose running sums are read from the result. */
enum { CUMSUM_LINES = 512, CUMSUM_F32_LINES = 2048 };
/* most lines of a sum whose running values are in registers */
enum { MAX_REGISTER_LINES = 15 };

/* Lines to sum; element i of line l is at i * stride + l, a negative stride
 * runs from the end. */
struct cumsum_lines {
    int64_t n, stride; /* elements of a line, and the distance between them */
    int64_t lines;
    bool exclusive; /* leave out the element itself */
    bool product;   /* multiply instead of adding */
    enum byoc_dtype dtype;
};

/* Define cumsum_ID(): add up (or multiply, if r->product) each line's n
 * elements, r->stride apart; a negative stride runs from the end. Integers
 * wrap, so they are computed as unsigned numbers. The sums of few lines are in
 * registers, of up to eight at a time. */
#define CUMSUM(id, bits_t, sum_t)                                              \
    static inline void cumsum_loop_##id(                                       \
        const struct cumsum_lines *r, const bits_t *x, bits_t *restrict y,     \
        const int64_t lines, const bool product)                               \
    {                                                                          \
        sum_t sum[CUMSUM_LINES];                                               \
        for (int64_t l = 0; l < lines; l++)                                    \
            sum[l] = product ? 1 : 0;                                          \
        for (int64_t l = 0; r->exclusive && l < lines; l++)                    \
            y[l] = (bits_t)sum[l];                                             \
        y += r->exclusive ? r->stride : 0;                                     \
        for (int64_t i = r->exclusive; i < r->n; i++) {                        \
            _Pragma("omp simd") for (int64_t l = 0; l < lines; l++)            \
            {                                                                  \
                const sum_t v = (sum_t)x[l];                                   \
                sum[l] = product ? sum[l] * v : sum[l] + v;                    \
                y[l] = (bits_t)sum[l];                                         \
            }                                                                  \
            x += r->stride;                                                    \
            y += r->stride;                                                    \
        }                                                                      \
    }                                                                          \
    static void cumsum_##id(const struct cumsum_lines *r, const char *vx,      \
                            char *vy)                                          \
    {                                                                          \
        const bits_t *x = (const bits_t *)(const void *)vx;                    \
        bits_t *y = (bits_t *)(void *)vy;                                      \
        int64_t l = r->lines & 8;                                              \
        if (r->product) {                                                      \
            cumsum_loop_##id(r, x, y, r->lines, true);                         \
            return;                                                            \
        }                                                                      \
        if (r->lines > MAX_REGISTER_LINES) {                                   \
            cumsum_loop_##id(r, x, y, r->lines, false);                        \
            return;                                                            \
        }                                                                      \
        if (r->lines & 8)                                                      \
            cumsum_loop_##id(r, x, y, 8, false);                               \
        if (r->lines & 4)                                                      \
            cumsum_loop_##id(r, x + l, y + l, 4, false);                       \
        l = r->lines & 12;                                                     \
        if (r->lines & 2)                                                      \
            cumsum_loop_##id(r, x + l, y + l, 2, false);                       \
        l = r->lines & 14;                                                     \
        if (r->lines & 1)                                                      \
            cumsum_loop_##id(r, x + l, y + l, 1, false);                       \
    }
#define CUMSUM_FLOAT(id, T) CUMSUM(id, T, T)
CUMSUM(U8, uint8_t, uint32_t)
CUMSUM(U16, uint16_t, uint32_t)
CUMSUM(U32, uint32_t, uint32_t)
CUMSUM(U64, uint64_t, uint64_t)
BYI_EACH_FLOAT(CUMSUM_FLOAT)

/* Replace `steps` rows of `lines` numbers by the sums before (if r->exclusive)
 * or after them, and update sum[]. The first step is row `first`, the next one
 * is `next` rows on. */
static inline void cumsum_block(const struct cumsum_lines *r, float *x,
                                int64_t first, int64_t next, int64_t steps,
                                const int64_t lines, float *restrict sum)
{
    for (int64_t i = 0; i < steps; i++) {
        float *restrict row = x + (first + i * next) * lines;
        _Pragma("omp simd") for (int64_t l = 0; l < lines; l++)
        {
            const float before = sum[l], v = row[l];
            sum[l] = r->product ? before * v : before + v;
            row[l] = r->exclusive ? before : sum[l];
        }
    }
}

/* float16 and bfloat16: blocks of rows are widened, summed in float32, and
 * narrowed. */
static void cumsum_half(const struct cumsum_lines *r, const char *vx, char *vy)
{
    const uint16_t *x = (const uint16_t *)(const void *)vx;
    uint16_t *y = (uint16_t *)(void *)vy;
    float block[2 * CUMSUM_LINES], sum[CUMSUM_LINES];
    const int64_t lines = r->lines, next = r->stride < 0 ? -1 : 1;
    const int64_t pitch = r->stride * next; /* between rows in memory */
    /* adjacent rows are converted at once */
    const int64_t rows = pitch == lines ? 2 * CUMSUM_LINES / lines : 1;
    for (int64_t l = 0; l < lines; l++)
        sum[l] = r->product ? 1 : 0;
    for (int64_t i = 0; i < r->n; i += rows) {
        const int64_t steps = byi_min(rows, r->n - i);
        const int64_t first = next < 0 ? steps - 1 : 0;
        const int64_t at = i * r->stride - first * pitch;
        byi_widen(r->dtype, x + at, block, steps * lines);
        if (lines == 1)
            cumsum_block(r, block, first, next, steps, 1, sum);
        else
            cumsum_block(r, block, first, next, steps, lines, sum);
        byi_narrow(r->dtype, block, y + at, steps * lines);
    }
}

/* Adjacent lines of float32: each row of the result is the row before it plus a
 * row of x. */
static void cumsum_rows(const struct cumsum_lines *r, const char *vx, char *vy)
{
    const enum byi_op_id op = r->product ? BYI_OP_MULTIPLY : BYI_OP_ADD;
    const float *x = (const float *)(const void *)vx;
    const float start = r->product ? 1 : 0, *before = &start;
    float *y = (float *)(void *)vy;
    int64_t step = 0, i = 0;
    if (r->exclusive) {
        for (int64_t l = 0; l < r->lines; l++)
            y[l] = start;
        before = y;
        step = i = 1;
    }
    for (; i < r->n; i++, x += r->stride, step = 1) {
        float *const to = y + i * r->stride;
        byi_simd()->binary[op](before, step, x, 1, to, r->lines);
        before = to;
    }
}

typedef void (*cumsum_fn)(const struct cumsum_lines *, const char *, char *);

/* Sum short lines of x (outer, n, inner), transposed, `lanes` blocks (n, inner)
 * at a time. */
static void cumsum_lanes(const struct byi_call *call,
                         const struct cumsum_lines *params, cumsum_fn run,
                         int64_t outer, int64_t lanes)
{
    const size_t size = byi_dtype_bytes(call->in->dtype);
    const bool reverse = params->stride < 0;
    const int64_t inner = reverse ? -params->stride : params->stride;
    const int64_t block = params->n * inner, bytes = (int64_t)size;
    const int team = byi_team(call, outer * block);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < outer; i += lanes) {
        const int64_t count = byi_min(lanes, outer - i);
        const int64_t first = reverse ? (block - inner) * count * bytes : 0;
        _Alignas(64) char from[BYI_BLOCK_BYTES], to[BYI_BLOCK_BYTES];
        struct cumsum_lines r = *params;
        r.lines = count * inner;
        r.stride = params->stride * count;
        byi_transpose(size, (const char *)call->in->data + i * block * bytes,
                      block, count, block, from, count);
        run(&r, from + first, to + first);
        byi_transpose(size, to, count, block, count,
                      (char *)call->out->data + i * block * bytes, block);
    }
}

static enum byoc_status cumsum_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    static const cumsum_fn sums[BYI_DTYPES] = {
        [BYOC_U8] = cumsum_U8,    [BYOC_I8] = cumsum_U8,
        [BYOC_U16] = cumsum_U16,  [BYOC_I16] = cumsum_U16,
        [BYOC_U32] = cumsum_U32,  [BYOC_I32] = cumsum_U32,
        [BYOC_U64] = cumsum_U64,  [BYOC_I64] = cumsum_U64,
        [BYOC_F32] = cumsum_F32,  [BYOC_F64] = cumsum_F64,
        [BYOC_F16] = cumsum_half, [BYOC_BF16] = cumsum_half,
    };
    const struct byi_tensor *x = call->in;
    uint32_t axis = 0;
    if (call->op->id == BYI_OP_DYN_CUMSUM)
        BYI_TRY(byi_axis_operand(call, 0, x->rank, &axis, err));
    else
        axis = byi_attr_axis(call->attrs, x->rank);
    const int64_t n = x->dims[axis];
    const int64_t inner = byi_span(x, n == 1 ? 0 : axis + 1, x->rank);
    const int64_t lines = n == 1 ? inner : byi_span(x, 0, axis) * inner;
    const int64_t size = (int64_t)byi_dtype_bytes(x->dtype);
    const bool reverse = byi_attr_int(call->attrs, "reverse") != 0;
    const struct cumsum_lines params = {
        .n = n,
        .stride = reverse ? -inner : inner,
        .exclusive = byi_attr_int(call->attrs, "exclusive") != 0,
        .product = byi_attr_int(call->attrs, "product") != 0,
        .dtype = x->dtype,
    };
    if (!sums[x->dtype])
        return byi_bad_dtype(call, x->dtype, "a numeric type", err);
    if (n == 0 || lines == 0)
        return BYOC_OK;
    const int team = byi_team(call, lines * n);
    /* sums in registers are faster than transposing blocks twice */
    const bool in_registers = x->dtype != BYOC_F32 &&
                              !byi_dtype_is_half(x->dtype) && !params.product &&
                              inner >= 4 && inner <= MAX_REGISTER_LINES;
    const int64_t lanes = in_registers ? 1
                                       : byi_lanes(lines / inner, n, inner,
                                                   (size_t)size, BYI_NARROW);
    const bool by_rows = x->dtype == BYOC_F32 && inner * lanes >= 16;
    const cumsum_fn run = by_rows ? cumsum_rows : sums[x->dtype];
    if (lanes > 1) {
        cumsum_lanes(call, &params, run, lines / inner, lanes);
        return BYOC_OK;
    }
    const int64_t most = byi_min(by_rows ? CUMSUM_F32_LINES : CUMSUM_LINES,
                                 byi_max(64, byi_ceil_div(inner, team)));
    const int64_t line_blocks = byi_ceil_div(inner, most);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t task = 0; task < lines / inner * line_blocks; task++) {
        const int64_t line = task % line_blocks * most;
        const int64_t at =
            (task / line_blocks * n + (reverse ? n - 1 : 0)) * inner + line;
        struct cumsum_lines r = params;
        r.lines = byi_min(most, inner - line);
        run(&r, (const char *)x->data + at * size,
            (char *)call->out->data + at * size);
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(cumsum, {BYI_OP_CUMSUM, {cumsum_run, NULL}},
                {BYI_OP_DYN_CUMSUM, {cumsum_run, NULL}})
