/* SPDX-License-Identifier: Apache-2.0 */
/* binary.c: elementwise operators of two operands (and `where` of three) with
 * NumPy broadcasting. Adjacent axes that one stride covers in every operand are
 * merged first. The innermost axis then has stride 0 or 1 in each operand. So
 * equal shapes, scalars and per-channel operands share one row loop. */
#include "move.h"

enum {
    BLOCK = 512,   /* elements that are converted or expanded together */
    CHUNK = 16384, /* elements of a parallel task */
    OPERANDS = 3
};

/* --- broadcasting ------------------------------------------------------- */

/* A broadcast as rows of `inner` elements. Operand o's row starts at the dot
 * product of strides[o] and the row's coordinates; its elements are step[o]
 * apart, 0 or 1. */
struct broadcast {
    uint32_t rank; /* number of outer axes, those of a row's coordinates */
    int64_t dims[BYI_MAX_RANK];
    int64_t strides[OPERANDS][BYI_MAX_RANK];
    int64_t rows, inner;
    int64_t step[OPERANDS];
};

static int64_t stride_at(const struct byi_tensor *t, uint32_t rank,
                         uint32_t axis)
{
    if (axis + t->rank < rank)
        return 0;
    uint32_t at = axis + t->rank - rank;
    return t->dims[at] == 1 ? 0 : byi_span(t, at + 1, t->rank);
}

/* Whether an axis can be merged with the next inner one, of size `dim`. `outer`
 * and `inner` are the operands' strides along the two. */
static bool merges(uint32_t n, const int64_t *outer, const int64_t *inner,
                   int64_t dim)
{
    for (uint32_t o = 0; o < n; o++)
        if (outer[o] != inner[o] * dim)
            return false;
    return true;
}

/* Describe the broadcast of n operands. Sets only the first s->rank dims and
 * strides: clearing the others would take longer than a short loop. */
static void describe_broadcast(const struct byi_tensor *out,
                               const struct byi_tensor *in, uint32_t n,
                               struct broadcast *s)
{
    /* from the innermost axis outwards */
    int64_t dims[BYI_MAX_RANK + 1], strides[BYI_MAX_RANK + 1][OPERANDS];
    uint32_t top = 0;
    dims[0] = 1;
    memset(strides[0], 0, sizeof strides[0]);
    for (uint32_t axis = out->rank; axis-- > 0;) {
        int64_t next[OPERANDS] = {0};
        if (out->dims[axis] == 1)
            continue;
        for (uint32_t o = 0; o < n; o++)
            next[o] = stride_at(&in[o], out->rank, axis);
        if (dims[top] == 1) {
            dims[top] = out->dims[axis];
            memcpy(strides[top], next, sizeof next);
        } else if (merges(n, next, strides[top], dims[top])) {
            dims[top] *= out->dims[axis];
        } else {
            dims[++top] = out->dims[axis];
            memcpy(strides[top], next, sizeof next);
        }
    }

    s->rank = top;
    s->rows = 1;
    s->inner = dims[0];
    memcpy(s->step, strides[0], sizeof s->step);
    for (uint32_t i = 0; i < top; i++) {
        s->dims[i] = dims[top - i];
        s->rows *= s->dims[i];
        for (uint32_t o = 0; o < OPERANDS; o++)
            s->strides[o][i] = strides[top - i][o];
    }
}

/* --- one call ----------------------------------------------------------- */

struct binary_job;
/* y[i] = a[i * sa] op b[i * sb] */
typedef void (*loop_fn)(const struct binary_job *job, const void *a, int64_t sa,
                        const void *b, int64_t sb, void *y, int64_t n);

/* A call, and the loop that computes its rows. */
struct binary_job {
    const struct byi_call *call;
    size_t size[OPERANDS], out_size; /* bytes of an element */
    loop_fn loop;
    loop_fn f32_loop; /* called by half_loop(), for float16 and bfloat16 */
    byi_typed_binary
        pair; /* called by pair_loop(); NULL: it calls `plain_loop` */
    loop_fn plain_loop;
    size_t
        pair_size; /* bytes of an element that `pair` or `plain_loop` reads */
    bool fmod;     /* mod: the remainder has the sign of a, as in C */
    bool blocks;   /* rows are short, and computed in blocks */
    /* computes n elements of one row from the operands at at[] */
    void (*row)(const struct binary_job *job, const char *const *at, char *y,
                int64_t n);
    struct broadcast shape;
};

static void binary_row(const struct binary_job *job, const char *const *at,
                       char *y, int64_t n)
{
    job->loop(job, at[0], job->shape.step[0], at[1], job->shape.step[1], y, n);
}

/* A row of a broadcast, and where each operand's row starts, in elements. */
struct row_cursor {
    int64_t at[BYI_MAX_RANK];
    int64_t offset[OPERANDS];
};

static struct row_cursor cursor_at(const struct broadcast *s, int64_t row)
{
    struct row_cursor c = {.offset = {0}};
    for (uint32_t i = s->rank; i-- > 0;) {
        c.at[i] = row % s->dims[i];
        row /= s->dims[i];
        for (uint32_t o = 0; o < OPERANDS; o++)
            c.offset[o] += c.at[i] * s->strides[o][i];
    }
    return c;
}

static void next_row(const struct broadcast *s, struct row_cursor *c)
{
    for (uint32_t i = s->rank; i-- > 0;) {
        int64_t wrapped = ++c->at[i] < s->dims[i] ? 0 : s->dims[i];
        for (uint32_t o = 0; o < OPERANDS; o++)
            c->offset[o] += (1 - wrapped) * s->strides[o][i];
        if (!wrapped)
            break;
        c->at[i] = 0;
    }
}

/* Element `from` of the row of operand o. */
static const char *operand_at(const struct binary_job *job, uint32_t o,
                              const struct row_cursor *c, int64_t from)
{
    return (const char *)job->call->in[o].data +
           (size_t)(c->offset[o] + from * job->shape.step[o]) * job->size[o];
}

/* Compute rows [begin, end) of the result; of each row only the elements [from,
 * from + n). */
static void run_rows(const struct binary_job *job, int64_t begin, int64_t end,
                     int64_t from, int64_t n)
{
    const struct broadcast *s = &job->shape;
    struct row_cursor c = cursor_at(s, begin);
    for (int64_t row = begin; row < end; row++) {
        const char *in[OPERANDS] = {NULL};
        for (uint32_t o = 0; o < job->call->n_in; o++)
            in[o] = operand_at(job, o, &c, from);
        job->row(job, in,
                 (char *)job->call->out->data +
                     (size_t)(row * s->inner + from) * job->out_size,
                 n);
        next_row(s, &c);
    }
}

/* --- short rows --------------------------------------------------------- */

/* A loop takes longer to begin than to compute a row of few elements. So rows
 * are computed in blocks of up to BLOCK elements:
 *
 *   a  a0 a1 a2 | a3 a4 a5 | ...     as it is, dense
 *   b  b0 b0 b0 | b1 b1 b1 | ...     expanded to a block
 */
enum {
    SHORT_ROW = 64, /* elements of the longest row that is short */
    SPREAD = 16     /* bytes that spread_element writes at once */
};

/* How a block reads an operand. */
enum expansion {
    DENSE,     /* in place */
    SAME_ROWS, /* from one block: all rows are the same */
    EXPANDED   /* from a block of the next rows */
};

static enum expansion expansion_of(const struct binary_job *job, uint32_t o)
{
    const struct broadcast *s = &job->shape;
    const struct byi_tensor *x = &job->call->in[o];
    if (byi_elements(x->rank, x->dims) == s->rows * s->inner)
        return DENSE;
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->strides[o][i] != 0)
            return EXPANDED;
    return SAME_ROWS;
}

/* The bits of an element of 1, 2, 4 or 8 bytes, repeated. */
static uint64_t repeated_bits(const char *from, size_t size)
{
    uint8_t of8;
    uint16_t of16;
    uint32_t of32;
    uint64_t bits;
    switch (size) {
    case 1:
        memcpy(&of8, from, 1);
        return of8 * (UINT64_MAX / UINT8_MAX);
    case 2:
        memcpy(&of16, from, 2);
        return of16 * (UINT64_MAX / UINT16_MAX);
    case 4:
        memcpy(&of32, from, 4);
        return of32 * (UINT64_MAX / UINT32_MAX);
    default:
        assert(size == 8);
        memcpy(&bits, from, 8);
        return bits;
    }
}

/* Set n elements of `size` bytes at `to` to the one at `from`. May overwrite up
 * to SPREAD - 1 bytes after them. */
static void spread_element(const char *from, size_t size, int64_t n, char *to)
{
    /* in registers: a load of bytes from several recent stores would stall,
     * since the processor cannot forward them */
    const uint64_t bits = repeated_bits(from, size);
    const uint64_t pattern[] = {bits, bits};
    for (size_t i = 0; i < (size_t)n * size; i += SPREAD)
        memcpy(to + i, pattern, SPREAD);
}

/* Write the operand's next n rows to `to`. */
static void expand_rows(const struct binary_job *job, uint32_t o,
                        struct row_cursor c, int64_t n, char *to)
{
    const struct broadcast *s = &job->shape;
    const size_t bytes = (size_t)s->inner * job->size[o];
    for (int64_t i = 0; i < n; i++, to += bytes) {
        const char *from = operand_at(job, o, &c, 0);
        if (s->step[o])
            memcpy(to, from, bytes);
        else
            spread_element(from, job->size[o], s->inner, to);
        next_row(s, &c);
    }
}

/* Compute rows [begin, end) in blocks. */
static void run_short_rows(const struct binary_job *job, int64_t begin,
                           int64_t end)
{
    const struct broadcast *s = &job->shape;
    struct binary_job dense = *job;
    uint64_t blocks[OPERANDS][BLOCK + SPREAD / sizeof(uint64_t)];
    enum expansion how[OPERANDS];
    const int64_t most = byi_min(BLOCK / s->inner, end - begin);
    for (uint32_t o = 0; o < job->call->n_in; o++) {
        how[o] = expansion_of(job, o);
        dense.shape.step[o] = 1;
    }
    for (int64_t row = begin; row < end; row += most) {
        const int64_t n = byi_min(most, end - row);
        const struct row_cursor c = cursor_at(s, row);
        const char *in[OPERANDS];
        for (uint32_t o = 0; o < job->call->n_in; o++) {
            in[o] = how[o] == DENSE ? operand_at(job, o, &c, 0)
                                    : (const char *)blocks[o];
            if (how[o] == EXPANDED || (how[o] == SAME_ROWS && row == begin))
                expand_rows(job, o, c, n, (char *)blocks[o]);
        }
        job->row(&dense, in,
                 (char *)job->call->out->data +
                     (size_t)(row * s->inner) * job->out_size,
                 n * s->inner);
    }
}

/* Compute all rows; an element takes as long as `weight` simple operations. */
static void run_broadcast(const struct binary_job *job, int64_t weight)
{
    const struct broadcast *s = &job->shape;
    const int64_t n = s->rows * s->inner;
    if (n == 0)
        return;
    const int64_t chunks = byi_ceil_div(s->inner, CHUNK);
    const int64_t group = chunks > 1 ? 1 : byi_max(1, CHUNK / s->inner);
    const int64_t groups = byi_ceil_div(s->rows, group);
    const int team = byi_team(job->call, n * weight);
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t task = 0; task < groups * chunks; task++) {
        const int64_t first = task / chunks * group;
        const int64_t from = task % chunks * CHUNK;
        const int64_t end = byi_min(first + group, s->rows);
        if (job->blocks)
            run_short_rows(job, first, end);
        else
            run_rows(job, first, end, from, byi_min(CHUNK, s->inner - from));
    }
}

static void describe(const struct byi_call *call, struct binary_job *job)
{
    memset(job, 0, offsetof(struct binary_job, shape));
    job->call = call;
    job->out_size = byi_dtype_bytes(call->out->dtype);
    job->row = binary_row;
    for (uint32_t o = 0; o < call->n_in; o++)
        job->size[o] = byi_dtype_bytes(call->in[o].dtype);
    describe_broadcast(call->out, call->in, call->n_in, &job->shape);
}

/* --- typed loops -------------------------------------------------------- */

/* Define a loop_fn that sets y[i] to `expr`, which reads the elements a and b.
 */
#define LOOP(op, id, type, result, expr)                                       \
    static void op##_##id(const struct binary_job *job, const void *va,        \
                          int64_t sa, const void *vb, int64_t sb, void *vy,    \
                          int64_t n)                                           \
    {                                                                          \
        typedef type T;                                                        \
        T const *as = va;                                                      \
        T const *bs = vb;                                                      \
        result *y = vy;                                                        \
        (void)job;                                                             \
        for (int64_t i = 0; i < n; i++) {                                      \
            T const a = as[i * sa];                                            \
            T const b = bs[i * sb];                                            \
            (void)b;                                                           \
            y[i] = (result)(expr);                                             \
        }                                                                      \
    }
#define TYPED(op, id, type, expr) LOOP(op, id, type, type, expr)
#define TEST(op, id, type, expr) LOOP(op, id, type, uint8_t, expr)

#define BINARY(op, floats, of_signed, of_unsigned)                             \
    BYI_EACH_FLOAT_EXPR(TYPED, op, floats)                                     \
    BINARY_INTS(op, of_signed, of_unsigned)
#define BINARY_INTS(op, of_signed, of_unsigned)                                \
    BYI_EACH_SIGNED_EXPR(TYPED, op, of_signed)                                 \
    BYI_EACH_UNSIGNED_EXPR(TYPED, op, of_unsigned)
#define BINARY_BOOL(op, expr) LOOP(op, BOOL, uint8_t, uint8_t, expr)
#define BINARY_COMPARE(op, expr)                                               \
    BYI_EACH_FLOAT_EXPR(TEST, op, expr)                                        \
    BYI_EACH_SIGNED_EXPR(TEST, op, expr) BYI_EACH_UNSIGNED_EXPR(TEST, op, expr)
#define BINARY_EQUALITY(op, numbers, bools, strings)                           \
    BINARY_COMPARE(op, numbers)                                                \
    BINARY_BOOL(op, bools) LOOP(op, STRING, const char *, uint8_t, strings)
#include "core/ops/binary.def"

/* The remainder of a division by zero is 0, and so is that of a division by -1,
 * which could overflow. */
#define INT_MOD(id, type)                                                      \
    static type mod_one_##id(type a, type b, bool fmod)                        \
    {                                                                          \
        const bool minus_one = (type) ~(type)0 < 1 && b == (type) ~(type)0;    \
        if (b == 0 || minus_one)                                               \
            return 0;                                                          \
        type r = (type)(a % b);                                                \
        if (fmod || r == 0)                                                    \
            return r;                                                          \
        return (type)(!(r > 0) != !(b > 0) ? r + b : r);                       \
    }                                                                          \
    TYPED(MOD, id, type, mod_one_##id(a, b, job->fmod))
#define FLOAT_MOD(id, type)                                                    \
    static type mod_one_##id(type a, type b, bool trunc)                       \
    {                                                                          \
        type r = (type)fmod((double)a, (double)b);                             \
        return !trunc && r != 0 && (r < 0) != (b < 0) ? r + b : r;             \
    }                                                                          \
    TYPED(MOD, id, type, mod_one_##id(a, b, job->fmod))
BYI_EACH_INT(INT_MOD)
BYI_EACH_FLOAT(FLOAT_MOD)

/* Compute float16 and bfloat16 in blocks of float32. A one-byte result is a
 * bool. */
static void half_loop(const struct binary_job *job, const void *va, int64_t sa,
                      const void *vb, int64_t sb, void *vy, int64_t n)
{
    const enum byoc_dtype dtype = job->call->in->dtype;
    const uint16_t *as = va, *bs = vb;
    float a[BLOCK], b[BLOCK], y[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = byi_min(BLOCK, n - at);
        byi_widen(dtype, as + at * sa, a, sa ? m : 1);
        byi_widen(dtype, bs + at * sb, b, sb ? m : 1);
        if (job->out_size == 1) {
            job->f32_loop(job, a, sa, b, sb, (uint8_t *)vy + at, m);
            continue;
        }
        job->f32_loop(job, a, sa, b, sb, y, m);
        byi_narrow(dtype, y, (uint16_t *)vy + at, m);
    }
}

static loop_fn find_loop(enum byi_op_id op, enum byoc_dtype dtype)
{
#define CASE(op, id, type, expr)                                               \
    case BYI_OP_##op *BYI_DTYPES + BYOC_##id:                                  \
        return op##_##id;
#define NUMBERS(op)                                                            \
    BYI_EACH_FLOAT_EXPR(CASE, op, )                                            \
    BYI_EACH_SIGNED_EXPR(CASE, op, ) BYI_EACH_UNSIGNED_EXPR(CASE, op, )
#define BINARY(op, floats, of_signed, of_unsigned) NUMBERS(op)
#define BINARY_INTS(op, of_signed, of_unsigned)                                \
    BYI_EACH_SIGNED_EXPR(CASE, op, ) BYI_EACH_UNSIGNED_EXPR(CASE, op, )
#define BINARY_BOOL(op, expr) CASE(op, BOOL, , )
#define BINARY_COMPARE(op, expr) NUMBERS(op)
#define BINARY_EQUALITY(op, numbers, bools, strings)                           \
    NUMBERS(op) CASE(op, BOOL, , ) CASE(op, STRING, , )
    switch ((int)op * BYI_DTYPES + (int)dtype) {
#include "core/ops/binary.def"
        NUMBERS(MOD)
    default:
        return NULL;
    }
}

/* --- the kernel of most operators --------------------------------------- */

/* Call the vectorised loop of byi_simd, with the signature of loop_fn. */
static void simd_loop(const struct binary_job *job, const void *a, int64_t sa,
                      const void *b, int64_t sb, void *y, int64_t n)
{
    /* if both steps are 0, the row has one element */
    byi_simd()->binary[job->call->op->id](a, sa || !sb, b, sb, y, n);
}

static void run_pairs(const struct binary_job *job, const void *a,
                      const void *b, void *y, int64_t n)
{
    if (job->pair)
        job->pair(a, b, y, n);
    else
        job->plain_loop(job, a, 1, b, 1, y, n);
}

/* Call job->pair or job->plain_loop on two dense arrays, the case in which
 * these loops are vectorised. If an operand has one element for the whole row,
 * its array is a block filled with that element. */
static void pair_loop(const struct binary_job *job, const void *va, int64_t sa,
                      const void *vb, int64_t sb, void *vy, int64_t n)
{
    const char *a = va, *b = vb;
    uint64_t block[BLOCK / 2];
    const size_t size = job->pair_size;
    const int64_t most = (int64_t)(sizeof block / size);
    if (sa == sb) { /* if both are 0, the row has one element */
        run_pairs(job, a, b, vy, n);
        return;
    }
    spread_element(sa ? b : a, size, byi_min(most, n), (char *)block);
    for (int64_t at = 0; at < n; at += most)
        run_pairs(job, sa ? a + (size_t)at * size : (char *)block,
                  sb ? b + (size_t)at * size : (char *)block,
                  (char *)vy + (size_t)at * job->out_size,
                  byi_min(most, n - at));
}

/* Choose the loop of the job's operator for elements of this dtype; `fast`
 * allows vectorised loops. Sets the members of the job that the loop reads.
 * Returns NULL if the operator does not support the dtype. */
static loop_fn choose_loop(struct binary_job *job, enum byoc_dtype dtype,
                           bool fast)
{
    const struct byi_simd *simd = byi_simd();
    const enum byi_op_id op = job->call->op->id;
    if (fast && dtype == BYOC_F32 && simd->binary[op])
        return simd_loop;
    job->plain_loop = find_loop(op, dtype);
    if (!fast || !job->plain_loop)
        return job->plain_loop;
    job->pair =
        simd->typed_binary && !job->fmod ? simd->typed_binary(op, dtype) : NULL;
    job->pair_size = byi_dtype_bytes(dtype);
    return pair_loop;
}

static enum byoc_status run_binary(const struct byi_call *call, bool fast,
                                   struct byoc_error *err)
{
    const enum byi_op_id op = call->op->id;
    const enum byoc_dtype dtype = call->in->dtype;
    struct binary_job job;
    describe(call, &job);
    if (op == BYI_OP_MOD)
        job.fmod = byi_attr_int(call->attrs, "fmod") != 0;
    if (byi_dtype_is_half(dtype))
        job.f32_loop = choose_loop(&job, BYOC_F32, fast);
    job.loop = job.f32_loop ? half_loop : choose_loop(&job, dtype, fast);
    if (!job.loop)
        return byi_bad_dtype(call, dtype, "a dtype that the operator supports",
                             err);
    job.blocks = fast && job.shape.rows > 1 && job.shape.inner <= SHORT_ROW;
    run_broadcast(&job, 1);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(binary)

/* --- power -------------------------------------------------------------- */

/* Load n elements of the dtype of `like`, `step` (0 or 1) apart, as doubles; n
 * is at most BLOCK. */
static void load_doubles(const struct byi_tensor *like, const void *at,
                         int64_t step, int64_t n, double *to)
{
    struct byi_tensor view = *like;
    view.data = (void *)(uintptr_t)at;
    if (byi_dtype_is_half(like->dtype) && step) {
        float block[BLOCK];
        byi_widen(like->dtype, at, block, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = (double)block[i];
        return;
    }
    const double first = byi_tensor_float(&view, 0);
    for (int64_t i = 0; i < n; i++)
        to[i] = step ? byi_tensor_float(&view, i) : first;
}

/* a^b modulo 2^64; for b < 0 the quotient 1 / a^-b, truncated, or 0 if a is 0.
 */
static int64_t integer_power(int64_t a, int64_t b)
{
    if (b < 0) {
        if (a == 1 || (a == -1 && b % 2 == 0))
            return 1;
        return a == -1 ? -1 : 0;
    }
    uint64_t result = 1, base = (uint64_t)a;
    for (; b; b >>= 1, base *= base)
        if (b & 1)
            result *= base;
    return (int64_t)result;
}

static void power_ints(const struct binary_job *job, const void *a, int64_t sa,
                       const void *b, int64_t sb, void *y, int64_t n)
{
    struct byi_tensor va = job->call->in[0], vb = job->call->in[1];
    const struct byi_tensor vy = {.data = y, .dtype = va.dtype};
    va.data = (void *)(uintptr_t)a;
    vb.data = (void *)(uintptr_t)b;
    for (int64_t i = 0; i < n; i++)
        byi_put_int(&vy, i,
                    (uint64_t)integer_power(byi_tensor_int(&va, i * sa),
                                            byi_tensor_int(&vb, i * sb)));
}

/* y[i] = a[i]^b for whole exponents of 2 to 7, -1 and 1/2; false for other
 * ones. The power 1/2 of -inf is inf, and that of -0 is 0. */
#define POWER_SPECIAL(id, type, root)                                          \
    static bool power_special_##id(const void *va, double b, void *vy,         \
                                   int64_t n)                                  \
    {                                                                          \
        const type *a = va;                                                    \
        type *y = vy;                                                          \
        const int whole = b > 3 && b < 8 && b == trunc(b) ? (int)b : 0;        \
        for (int64_t i = 0; i < n && whole; i++) {                             \
            const type square = a[i] * a[i];                                   \
            const type low =                                                   \
                (whole & 1 ? a[i] : 1) * (whole & 2 ? square : 1);             \
            y[i] = low * (square * square);                                    \
        }                                                                      \
        if (b == 2)                                                            \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = a[i] * a[i];                                            \
        else if (b == 3)                                                       \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = a[i] * a[i] * a[i];                                     \
        else if (b == -1)                                                      \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = 1 / a[i];                                               \
        else if (b == 0.5)                                                     \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] =                                                         \
                    a[i] == -(type)INFINITY ? (type)INFINITY : root(a[i] + 0); \
        return whole || b == 2 || b == 3 || b == -1 || b == 0.5;               \
    }
POWER_SPECIAL(F32, float, sqrtf)
POWER_SPECIAL(F64, double, sqrt)

/* Compute a row with power_special_F32() or power_special_F64() if the base is
 * float32 or float64 and the row has one exponent, of any type. Returns false,
 * and computes nothing, for other operands or exponents. */
static bool power_special(const struct binary_job *job, const void *a,
                          int64_t sa, const void *b, int64_t sb, void *y,
                          int64_t n)
{
    const struct byi_tensor *in = job->call->in;
    double exponent;
    if (sa != 1 || sb != 0)
        return false;
    load_doubles(&in[1], b, 0, 1, &exponent);
    return in->dtype == BYOC_F32   ? power_special_F32(a, exponent, y, n)
           : in->dtype == BYOC_F64 ? power_special_F64(a, exponent, y, n)
                                   : false;
}

/* Compute n powers with the loop of byi_simd, if there is one, and with pow()
 * those that it does not support. */
static void power_block(const double *a, const double *b, double *y, int64_t n)
{
    int special = !byi_simd()->power;
#define HAS_LOOP(i)                                                            \
    (fabs(a[i]) > 0 && fabs(a[i]) < INFINITY && fabs(b[i]) < 1e15)
    for (int64_t i = 0; i < n; i++)
        special |= !HAS_LOOP(i);
    if (byi_simd()->power)
        byi_simd()->power(a, b, y, n);
    for (int64_t i = 0; i < n && special; i++)
        if (!byi_simd()->power || !HAS_LOOP(i))
            y[i] = pow(a[i], b[i]);
}

/* Compute n <= BLOCK powers of float16 or bfloat16 numbers and store them in
 * this type. They are rounded to float32 first. */
static void power_half(enum byoc_dtype dtype, const double *a, const double *b,
                       bool one_exponent, void *to, int64_t n)
{
    double y[BLOCK];
    float narrow[BLOCK];
    if (!one_exponent || !power_special_F64(a, b[0], y, n))
        power_block(a, b, y, n);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)y[i];
    byi_narrow(dtype, narrow, to, n);
}

static void power_any(const struct binary_job *job, const void *va, int64_t sa,
                      const void *vb, int64_t sb, void *vy, int64_t n)
{
    const struct byi_tensor *in = job->call->in;
    struct byi_tensor out = *job->call->out;
    double a[BLOCK], b[BLOCK];
    if (power_special(job, va, sa, vb, sb, vy, n))
        return;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = byi_min(BLOCK, n - at);
        load_doubles(&in[0], (const char *)va + at * sa * (int64_t)job->size[0],
                     sa, m, a);
        load_doubles(&in[1], (const char *)vb + at * sb * (int64_t)job->size[1],
                     sb, m, b);
        out.data = (char *)vy + at * (int64_t)job->out_size;
        if (byi_dtype_is_half(out.dtype))
            power_half(out.dtype, a, b, sb == 0, out.data, m);
        for (int64_t i = 0; i < m && !byi_dtype_is_half(out.dtype); i++)
            byi_tensor_set(&out, i, pow(a[i], b[i]));
    }
}

static void power_f32(const struct binary_job *job, const void *va, int64_t sa,
                      const void *vb, int64_t sb, void *vy, int64_t n)
{
    const float *a = va, *b = vb;
    float *y = vy;
    if (power_special(job, va, sa, vb, sb, vy, n))
        return;
    for (int64_t i = 0; i < n; i++)
        y[i] = powf(a[i * sa], b[i * sb]);
}

static enum byoc_status power_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const enum byoc_dtype a = call->in[0].dtype, b = call->in[1].dtype;
    (void)err;
    struct binary_job job;
    describe(call, &job);
    job.loop = power_any;
    if (a == BYOC_F32 && b == BYOC_F32)
        job.loop = power_f32;
    else if (byi_dtype_is_int(a) && byi_dtype_is_int(b))
        job.loop = power_ints;
    job.blocks = byi_dtype_is_half(a) && job.shape.rows > 1 &&
                 job.shape.inner <= SHORT_ROW;
    run_broadcast(&job, 8);
    return BYOC_OK;
}

/* --- where -------------------------------------------------------------- */

struct element128 {
    uint64_t half[2];
};

/* Choose one of two numbers that have both been read. Compilers vectorise the
 * first form, but turn it into a branch for 64 bits, which is slow if the
 * conditions are hard to predict. */
#define CHOOSE(type, where, then, other) ((where) ? (then) : (other))
#define CHOOSE_64(type, where, then, other)                                    \
    (((then) & (0 - (uint64_t)(where))) | ((other) & ((uint64_t)(where)-1)))
#define CHOOSE_128(type, where, then, other)                                   \
    (type)                                                                     \
    {                                                                          \
        {                                                                      \
            CHOOSE_64(, where, then.half[0], other.half[0]),                   \
                CHOOSE_64(, where, then.half[1], other.half[1])                \
        }                                                                      \
    }

/* y[i] = from[i * step]; y may be `from` itself */
#define COPY_ROW(bits, type)                                                   \
    static void copy_row_##bits(type *y, const type *from, int64_t step,       \
                                int64_t n)                                     \
    {                                                                          \
        const type one = from[0];                                              \
        if (step == 0)                                                         \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = one;                                                    \
        else if (y != from)                                                    \
            memcpy(y, from, (size_t)n * sizeof *y);                            \
    }

#define WHERE_LOOP(type, choose, c, a, b)                                      \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                        \
    {                                                                          \
        const bool where = (c) != 0;                                           \
        const type if_true = a, if_false = b;                                  \
        y[i] = choose(type, where, if_true, if_false);                         \
    }

/* If the whole row has the same condition, the row is a copy of one operand. */
#define WHERE(bits, type, choose)                                              \
    static void where_##bits(const struct binary_job *job,                     \
                             const char *const *at, char *vy, int64_t n)       \
    {                                                                          \
        const uint8_t *c = (const uint8_t *)at[0];                             \
        const type *a = (const type *)(const void *)at[1];                     \
        const type *b = (const type *)(const void *)at[2];                     \
        type *y = (type *)(void *)vy;                                          \
        const int64_t sc = job->shape.step[0], sa = job->shape.step[1];        \
        const int64_t sb = job->shape.step[2];                                 \
        if (sc == 0)                                                           \
            copy_row_##bits(y, c[0] ? a : b, c[0] ? sa : sb, n);               \
        else if (sa == 1 && sb == 1)                                           \
            WHERE_LOOP(type, choose, c[i], a[i], b[i])                         \
        else if (sa == 1)                                                      \
            WHERE_LOOP(type, choose, c[i], a[i], b[0])                         \
        else if (sb == 1)                                                      \
            WHERE_LOOP(type, choose, c[i], a[0], b[i])                         \
        else                                                                   \
            WHERE_LOOP(type, choose, c[i], a[0], b[0])                         \
    }
COPY_ROW(8, uint8_t)
COPY_ROW(16, uint16_t)
COPY_ROW(32, uint32_t)
COPY_ROW(64, uint64_t)
COPY_ROW(128, struct element128)
WHERE(8, uint8_t, CHOOSE)
WHERE(16, uint16_t, CHOOSE)
WHERE(32, uint32_t, CHOOSE)
WHERE(64, uint64_t, CHOOSE_64)
WHERE(128, struct element128, CHOOSE_128)

static enum byoc_status where_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    static void (*const by_size[])(const struct binary_job *,
                                   const char *const *, char *, int64_t) = {
        [1] = where_8,  [2] = where_16,   [4] = where_32,
        [8] = where_64, [16] = where_128,
    };
    (void)err;
    struct binary_job job;
    describe(call, &job);
    job.row = by_size[job.out_size];
    assert(job.row);
    job.blocks = job.shape.rows > 1 && job.shape.inner <= SHORT_ROW &&
                 job.out_size <= sizeof(uint64_t);
    run_broadcast(&job, 1);
    return BYOC_OK;
}

static const struct byi_kernel_row rows[] = {
#define ROW(id) {BYI_OP_##id, {binary_run_fast, NULL}},
#define BINARY(id, floats, of_signed, of_unsigned) ROW(id)
#define BINARY_INTS(id, of_signed, of_unsigned) ROW(id)
#define BINARY_BOOL(id, expr) ROW(id)
#define BINARY_COMPARE(id, expr) ROW(id)
#define BINARY_EQUALITY(id, numbers, bools, strings) ROW(id)
#include "core/ops/binary.def"
    {BYI_OP_MOD, {binary_run_fast, NULL}},
    {BYI_OP_POWER, {power_run, NULL}},
    {BYI_OP_WHERE, {where_run, NULL}},
};
const struct byi_kernel_rows byi_rows_binary = {rows, BYI_COUNT(rows)};
