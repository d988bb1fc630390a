/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/attention.c: computes attention for some rows of a head at a time
 * (kernels/attention.h). */
#include "kernels/attention.h"

#include <math.h>
#include <string.h>

#include "kernels/product.h"

static int64_t heads_of(const struct byi_f32_attention *a)
{
    int64_t n = 1;
    for (int i = 0; i < BYI_F32_BATCH_AXES; i++)
        n *= a->batch[i];
    return n;
}

/* If each head has one row, treat heads that share keys and values (grouped
 * queries) as rows of one head. A product then reads keys and values once.
 */
static void join_heads(struct byi_f32_attention *a)
{
    struct byi_f32_strides *operands[2 + BYI_F32_EPILOGUE_OPS] = {&a->q, &a->y};
    uint32_t n = 2;
    int axis = BYI_F32_BATCH_AXES - 1;
    while (axis >= 0 &&
           (a->batch[axis] == 1 || a->k.batch[axis] || a->v.batch[axis]))
        axis--;
    if (a->rows != 1 || axis < 0)
        return;
    for (uint32_t i = 0; i < a->n_scores; i++)
        operands[n++] = &a->scores[i].operand;
    for (uint32_t i = 0; i < n; i++) {
        operands[i]->row = operands[i]->batch[axis];
        operands[i]->batch[axis] = 0;
    }
    a->rows = a->batch[axis];
    a->batch[axis] = 1;
}

void byi_f32_attention_plan(struct byi_f32_attention *a)
{
    join_heads(a);
    if (!a->kernels)
        a->kernels = byi_f32_kernels();
    const int64_t tile = a->kernels->rows;
    a->scores_ld =
        byi_ceil_div(byi_max(a->keys, 1), BYI_F32_PANEL) * BYI_F32_PANEL;
    /* every task packs keys and values, so a task should have many rows */
    const int64_t fit =
        byi_f32_second_cache() / 2 / (a->scores_ld * (int64_t)sizeof(float));
    a->task_rows = byi_max(fit / tile, 4) * tile;
    a->task_rows = byi_min(a->task_rows, byi_max(a->rows, 1));
}

static uint64_t float_bytes(int64_t n)
{
    return byi_align_bytes((uint64_t)n * sizeof(float));
}

/* Bytes of the float32 copies of a head's narrow data. */
static uint64_t copy_bytes(const struct byi_f32_attention *a)
{
    if (!a->type)
        return 0;
    return float_bytes(a->task_rows * a->depth) +
           float_bytes(a->depth * a->keys) + float_bytes(a->keys * a->columns) +
           float_bytes(a->task_rows * a->columns) +
           a->n_scores * float_bytes(a->task_rows * a->keys);
}

/* Bytes of a thread's scratch: the scores, the copies, the scaled rows of
 * q, a product's scratch. */
static uint64_t thread_bytes(const struct byi_f32_attention *a)
{
    return float_bytes(a->task_rows * a->scores_ld) + copy_bytes(a) +
           float_bytes(a->task_rows * a->depth) +
           byi_align_bytes(byi_f32_product_scratch(1));
}

uint64_t byi_f32_attention_scratch(const struct byi_f32_attention *a,
                                   int threads)
{
    return (uint64_t)threads * thread_bytes(a);
}

/* A matrix of float32; its strides, in elements, may be 0. */
struct head_matrix {
    const float *data;
    int64_t row, column;
};

/* Copy a narrow matrix as float32, in the order of its elements in memory. */
static struct head_matrix widen(const struct byi_f32_attention *a,
                                const uint16_t *from,
                                const struct byi_f32_strides *s, int64_t rows,
                                int64_t columns, float *to)
{
    const bool transposed = s->column > 1 && s->row <= 1;
    const int64_t lines = transposed ? columns : s->row ? rows : 1;
    const int64_t line = transposed ? s->column : s->row;
    const int64_t step = transposed ? s->row : s->column;
    const int64_t n = !step ? 1 : transposed ? rows : columns;
    for (int64_t i = 0; i < lines; i++, from += line, to += n) {
        if (step <= 1)
            a->kernels->widen[a->type - 1](from, to, n);
        else
            for (int64_t k = 0; k < n; k++)
                a->kernels->widen[a->type - 1](from + k * step, to + k, 1);
    }
    to -= lines * n;
    return transposed ? (struct head_matrix){to, step ? 1 : 0, n}
                      : (struct head_matrix){to, line ? n : 0, step ? 1 : 0};
}

/* The offset of row `row` of the matrix at `head`, in elements. */
static int64_t offset_of(const struct byi_f32_attention *a,
                         const struct byi_f32_strides *s, int64_t head,
                         int64_t row)
{
    int64_t at = row * s->row;
    for (int i = BYI_F32_BATCH_AXES; i-- > 0; head /= a->batch[i])
        at += head % a->batch[i] * s->batch[i];
    return at;
}

/* Rows [row, row + rows) of head `head`'s matrix: in place or, if the data is
 * narrow, a float32 copy at *scratch, which then points past the copy. */
static struct head_matrix find_rows(const struct byi_f32_attention *a,
                                    const float *from,
                                    const struct byi_f32_strides *s,
                                    int64_t head, int64_t row, int64_t rows,
                                    int64_t columns, char **scratch)
{
    const int64_t at = offset_of(a, s, head, row);
    if (!a->type)
        return (struct head_matrix){from + at, s->row, s->column};
    float *to = (float *)(void *)*scratch;
    *scratch += float_bytes(rows * columns);
    return widen(a, (const uint16_t *)(const void *)from + at, s, rows, columns,
                 to);
}

static struct byi_f32_matrices same_matrices(const void *ctx, int64_t batch)
{
    (void)batch;
    return *(const struct byi_f32_matrices *)ctx;
}

/* Multiply two matrices on one thread. The caller has set m, n, k and the
 * strides. */
static void multiply(struct byi_f32_product *p, const float *left,
                     const float *right, float *to, void *scratch)
{
    const struct byi_f32_matrices at = {left, right, to};
    p->batches = 1;
    p->at = same_matrices;
    p->ctx = &at;
    byi_f32_product_run(p, 1, scratch);
}

/* The larger of `most` and the absolute values of n floats, `step` apart, all
 * as bits. */
static inline int32_t largest_of(const float *x, int64_t step, int64_t n,
                                 int32_t most)
{
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < n; j++) {
        int32_t bits;
        memcpy(&bits, x + j * step, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return most;
}

/* The largest absolute value of a matrix's elements; not finite if an element
 * is not. Compares bits, whose order is that of absolute values, since
 * compilers do not vectorise the maximum of floats. */
static float largest(const struct head_matrix *x, int64_t rows, int64_t columns)
{
    const bool transposed = x->column > x->row;
    const int64_t lines = transposed ? columns : rows;
    const int64_t n = transposed ? rows : columns;
    const int64_t line = transposed ? x->column : x->row;
    const int64_t step = transposed ? x->row : x->column;
    int32_t most = 0;
    for (int64_t i = 0; i < lines; i++)
        most = step == 1 ? largest_of(x->data + i * line, 1, n, most)
                         : largest_of(x->data + i * line, step, n, most);
    float value;
    memcpy(&value, &most, sizeof value);
    return value;
}

/* The matrices of the scores of some rows of a head. */
struct score_matrices {
    struct head_matrix q, k, operands[BYI_F32_EPILOGUE_OPS];
    uint32_t first; /* operations before it are folded into q */
};

/* Fold operation i into *scale if it multiplies or divides by one number.
 * Returns whether it does. */
static bool fold_scale(const struct byi_f32_attention *a, uint32_t i,
                       const struct head_matrix *x, float *scale)
{
    const bool divides = a->scores[i].binary == a->kernels->binary[BYI_F32_DIV];
    if (x->row || x->column ||
        (!divides && a->scores[i].binary != a->kernels->binary[BYI_F32_MUL]))
        return false;
    *scale = divides ? *scale / *x->data : *scale * *x->data;
    return true;
}

/* Multiply the rows of q by the scales of the scores. q is smaller than the
 * scores, so scaling it is cheaper. */
static void scale_rows(const struct byi_f32_attention *a, int64_t rows,
                       struct score_matrices *m, char **scratch)
{
    float scale = a->scale != 0 ? a->scale : 1, *to = (float *)(void *)*scratch;
    while (m->first < a->n_scores &&
           fold_scale(a, m->first, &m->operands[m->first], &scale))
        m->first++;
    if (scale == 1)
        return;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < a->depth; j++)
            to[i * a->depth + j] =
                m->q.data[i * m->q.row + j * m->q.column] * scale;
    m->q = (struct head_matrix){to, a->depth, 1};
    *scratch += float_bytes(rows * a->depth);
}

/* An upper bound of |score| before the last operation, given the bound of
 * |q k|. Infinity if unknown. */
static float bound_scores(const struct byi_f32_attention *a, int64_t rows,
                          const struct score_matrices *m, float bound)
{
    for (uint32_t i = m->first; i + 1 < a->n_scores; i++) {
        const struct byi_f32_score *s = &a->scores[i];
        const struct head_matrix *x = &m->operands[i];
        if (s->unary && s->unary == a->kernels->unary[BYI_OP_TANH])
            bound = 1;
        else if (s->binary && s->binary == a->kernels->binary[BYI_F32_ADD])
            bound += largest(x, x->row ? rows : 1, x->column ? a->keys : 1);
        else if (s->unary || !fold_scale(a, i, x, &bound))
            return INFINITY;
        bound = fabsf(bound);
    }
    return bound;
}

enum { MASK_BLOCK = 16 }; /* elements of a mask that are compared at a time */

/* The number of keys up to the last one whose mask exceeds `low`. */
static int64_t count_keys(const float *mask, int64_t keys, float low)
{
    for (; keys >= MASK_BLOCK; keys -= MASK_BLOCK) {
        int exceeds = 0;
        for (int64_t i = 0; i < MASK_BLOCK; i++)
            exceeds |= !(mask[keys - MASK_BLOCK + i] <= low);
        if (exceeds)
            break;
    }
    while (keys > 0 && mask[keys - 1] <= low)
        keys--;
    return keys;
}

/* Returns how many of the first keys the rows attend to. If the last operation
 * adds a mask, such as a causal one, the keys after them have weight 0 in every
 * row: each score is so far below an unmasked score of its row that its softmax
 * is 0. Returns a->keys if there is one row, if a row has no unmasked score, or
 * if no useful bound of the scores is known. */
static int64_t attended_keys(const struct byi_f32_attention *a, int64_t rows,
                             const struct score_matrices *m)
{
    enum { MIN_GAP = 100 }; /* e^-100 is 0 in float32's softmax */
    const uint32_t last = a->n_scores ? a->n_scores - 1 : 0;
    const struct head_matrix *mask = &m->operands[last];
    int64_t most = 0;
    if (rows == 1 || a->keys == 0 || m->first >= a->n_scores ||
        a->scores[last].binary != a->kernels->binary[BYI_F32_ADD] ||
        mask->column != 1 || !(mask->data[a->keys - 1] < -MIN_GAP))
        return a->keys;
    /* no absolute value of a score is larger; 1.01 is for rounding */
    const float bound =
        1.01f * bound_scores(a, rows, m,
                             (float)a->depth * largest(&m->q, rows, a->depth) *
                                 largest(&m->k, a->depth, a->keys));
    if (!(bound < 1e30f))
        return a->keys;
    /* Kept scores are at least -2 bound - 100, and dropped ones at most
     * -2 bound - 200, so that they differ by 100 or more. */
    for (int64_t i = 0; i < rows && most < a->keys; i++) {
        const float *at = mask->data + i * mask->row;
        const int64_t n = count_keys(at, a->keys, -3 * bound - 2 * MIN_GAP);
        if (n == 0 || !(at[n - 1] >= -bound - MIN_GAP))
            return a->keys;
        most = byi_max(most, n);
    }
    return most;
}

/* Apply an operation to a row of scores, row `row` of its operand. */
static void apply_score(const struct byi_f32_score *score,
                        const struct byi_f32_block *block,
                        const struct head_matrix *operand, int64_t row)
{
    if (score->unary)
        score->unary(block, 0, 0);
    else
        score->binary(block, operand->data + row * operand->row, operand->row,
                      operand->column);
}

/* Compute the softmax of the scores of rows [row, row + n) of a head. Returns
 * the number of keys; the rest have weight 0. */
static int64_t run_scores(const struct byi_f32_attention_run *run, int64_t head,
                          int64_t row, int64_t n, float *scores, char *scratch)
{
    const struct byi_f32_attention *a = run->attention;
    struct score_matrices m = {
        .q = find_rows(a, run->q, &a->q, head, row, n, a->depth, &scratch),
        .k = find_rows(a, run->k, &a->k, head, 0, a->depth, a->keys, &scratch)};
    for (uint32_t i = 0; i < a->n_scores; i++)
        if (!a->scores[i].unary)
            m.operands[i] =
                find_rows(a, run->operands[i], &a->scores[i].operand, head, row,
                          n, a->keys, &scratch);
    scale_rows(a, n, &m, &scratch);
    const int64_t keys = attended_keys(a, n, &m);
    struct byi_f32_product product = {.kernels = a->kernels,
                                      .m = n,
                                      .n = keys,
                                      .k = a->depth,
                                      .a_rs = m.q.row,
                                      .a_cs = m.q.column,
                                      .b_rs = m.k.row,
                                      .b_cs = m.k.column,
                                      .ldc = a->scores_ld};
    multiply(&product, m.q.data, m.k.data, scores, scratch);
    /* row by row, so that a row stays in the first-level cache */
    for (int64_t i = 0; i < n && keys > 0; i++) {
        float *at = scores + i * a->scores_ld;
        const struct byi_f32_block block = {at, a->scores_ld, 1, keys};
        for (uint32_t s = m.first; s < a->n_scores; s++)
            apply_score(&a->scores[s], &block, &m.operands[s], i);
        a->kernels->softmax[0](at, at, keys);
        for (int64_t j = 0; j < keys && a->zero_nan; j++)
            at[j] = at[j] == at[j] ? at[j] : 0;
    }
    return keys;
}

/* Compute rows [row, row + n) of a head's y. */
static void run_rows(const struct byi_f32_attention_run *run, int64_t head,
                     int64_t row, int64_t n, char *scratch)
{
    const struct byi_f32_attention *a = run->attention;
    float *scores = (float *)(void *)scratch;
    scratch += float_bytes(a->task_rows * a->scores_ld);
    const int64_t keys = run_scores(run, head, row, n, scores, scratch);
    const struct head_matrix v =
        find_rows(a, run->v, &a->v, head, 0, a->keys, a->columns, &scratch);
    const int64_t at = offset_of(a, &a->y, head, row);
    float *y = a->type ? (float *)(void *)scratch : run->y + at;
    if (a->type)
        scratch += float_bytes(n * a->columns);
    struct byi_f32_product product = {.kernels = a->kernels,
                                      .m = n,
                                      .n = a->columns,
                                      .k = keys,
                                      .a_rs = a->scores_ld,
                                      .a_cs = 1,
                                      .b_rs = v.row,
                                      .b_cs = v.column,
                                      .ldc = a->type ? a->columns : a->y.row};
    multiply(&product, scores, v.data, y, scratch);
    for (int64_t i = 0; i < n && a->type; i++)
        a->kernels->narrow[a->type - 1](
            y + i * a->columns, (uint16_t *)(void *)run->y + at + i * a->y.row,
            a->columns);
}

/* The number of rows of a task: the planned number, halved while a thread would
 * have fewer than two tasks. If a head has several rows, no task may get only
 * one: a product of one row may add in another order, and results must not
 * depend on threads. If a task has three rows or more before rows are divided
 * evenly, each has two or more afterwards. */
static int64_t choose_task_rows(const struct byi_f32_attention *a, int team)
{
    enum { MIN_ROWS = 3 };
    const int64_t least = byi_max(a->kernels->rows, MIN_ROWS);
    int64_t rows = a->task_rows;
    while (team > 1 && rows >= 2 * least &&
           heads_of(a) * byi_ceil_div(a->rows, rows) < 2 * team)
        rows = byi_ceil_div(rows, 2);
    return rows;
}

void byi_f32_attention_run(const struct byi_f32_attention_run *run)
{
    enum { WORK_PER_THREAD = 1 << 17 }; /* in multiply-adds */
    const struct byi_f32_attention *a = run->attention;
    const int64_t work =
        heads_of(a) * a->rows * a->keys * (a->depth + a->columns);
    const int team = (int)byi_min(run->threads, work / WORK_PER_THREAD + 1);
    const int64_t strips = byi_ceil_div(a->rows, choose_task_rows(a, team));
    const int64_t tasks = heads_of(a) * strips;
    const uint64_t per_thread = thread_bytes(a);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        for (int64_t t = tasks * i / team; t < tasks * (i + 1) / team; t++) {
            const int64_t row = a->rows * (t % strips) / strips;
            const int64_t stop = a->rows * (t % strips + 1) / strips;
            run_rows(run, t / strips, row, stop - row,
                     (char *)run->scratch + (uint64_t)i * per_thread);
        }
}
