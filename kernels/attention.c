/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/attention.c: computes attention for some rows of a head at a time
 * (kernels/attention.h). */
#include "kernels/attention.h"

#include "kernels/product.h"

static int64_t heads_of(const struct byi_f32_attention *a)
{
    int64_t n = 1;
    for (int i = 0; i < BYI_F32_BATCH_AXES; i++)
        n *= a->batch[i];
    return n;
}

void byi_f32_attention_plan(struct byi_f32_attention *a)
{
    if (!a->kernels)
        a->kernels = byi_f32_kernels();
    const int64_t tile = a->kernels->rows;
    a->wide = byi_ceil_div(byi_max(a->keys, 1), BYI_F32_PANEL) * BYI_F32_PANEL;
    /* every task packs keys and values, so a task should have many rows */
    const int64_t fit =
        byi_f32_second_cache() / 2 / (a->wide * (int64_t)sizeof(float));
    a->high = byi_max(fit / tile, 4) * tile;
    a->high = byi_min(a->high, byi_max(a->rows, 1));
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
    return float_bytes(a->high * a->depth) + float_bytes(a->depth * a->keys) +
           float_bytes(a->keys * a->columns) +
           float_bytes(a->high * a->columns) +
           a->n_scores * float_bytes(a->high * a->keys);
}

/* Bytes of a thread's scratch: the scores, the copies, a product's scratch. */
static uint64_t thread_bytes(const struct byi_f32_attention *a)
{
    return float_bytes(a->high * a->wide) + copy_bytes(a) +
           byi_align_bytes(byi_f32_product_scratch(1));
}

uint64_t byi_f32_attention_scratch(const struct byi_f32_attention *a,
                                   int threads)
{
    return (uint64_t)threads * thread_bytes(a);
}

/* A matrix of float32; its strides, in elements, may be 0. */
struct head_matrix {
    const float *at;
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
static struct head_matrix find(const struct byi_f32_attention *a,
                               const float *from,
                               const struct byi_f32_strides *s, int64_t head,
                               int64_t row, int64_t rows, int64_t columns,
                               char **scratch)
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

/* Compute the softmax of the scores of rows [row, row + n) of a head. */
static void run_scores(const struct byi_f32_attention_run *run, int64_t head,
                       int64_t row, int64_t n, float *scores, char *scratch)
{
    const struct byi_f32_attention *a = run->attention;
    const struct head_matrix q =
        find(a, run->q, &a->q, head, row, n, a->depth, &scratch);
    const struct head_matrix k =
        find(a, run->k, &a->k, head, 0, a->depth, a->keys, &scratch);
    struct head_matrix operands[BYI_F32_EPILOGUE_OPS];
    for (uint32_t i = 0; i < a->n_scores; i++)
        operands[i] = find(a, run->operands[i], &a->scores[i].operand, head,
                           row, n, a->keys, &scratch);
    struct byi_f32_product product = {.kernels = a->kernels,
                                      .m = n,
                                      .n = a->keys,
                                      .k = a->depth,
                                      .a_rs = q.row,
                                      .a_cs = q.column,
                                      .b_rs = k.row,
                                      .b_cs = k.column,
                                      .ldc = a->wide};
    multiply(&product, q.at, k.at, scores, scratch);
    const struct byi_f32_block block = {scores, a->wide, n, a->keys};
    for (uint32_t i = 0; i < a->n_scores; i++)
        a->scores[i].binary(&block, operands[i].at, operands[i].row,
                            operands[i].column);
    for (int64_t i = 0; i < n && a->keys > 0; i++)
        a->kernels->softmax[0](scores + i * a->wide, scores + i * a->wide,
                               a->keys);
}

/* Compute rows [row, row + n) of a head's y. */
static void run_rows(const struct byi_f32_attention_run *run, int64_t head,
                     int64_t row, int64_t n, char *scratch)
{
    const struct byi_f32_attention *a = run->attention;
    float *scores = (float *)(void *)scratch;
    scratch += float_bytes(a->high * a->wide);
    run_scores(run, head, row, n, scores, scratch);
    const struct head_matrix v =
        find(a, run->v, &a->v, head, 0, a->keys, a->columns, &scratch);
    const int64_t at = offset_of(a, &a->y, head, row);
    float *y = a->type ? (float *)(void *)scratch : run->y + at;
    if (a->type)
        scratch += float_bytes(n * a->columns);
    struct byi_f32_product product = {.kernels = a->kernels,
                                      .m = n,
                                      .n = a->columns,
                                      .k = a->keys,
                                      .a_rs = a->wide,
                                      .a_cs = 1,
                                      .b_rs = v.row,
                                      .b_cs = v.column,
                                      .ldc = a->type ? a->columns : a->y.row};
    multiply(&product, scores, v.at, y, scratch);
    for (int64_t i = 0; i < n && a->type; i++)
        a->kernels->narrow[a->type - 1](
            y + i * a->columns, (uint16_t *)(void *)run->y + at + i * a->y.row,
            a->columns);
}

/* The number of rows of a task. Halves the planned number while a thread would
 * have fewer than two tasks. */
static int64_t choose_high(const struct byi_f32_attention *a, int team)
{
    int64_t high = a->high;
    while (team > 1 && high >= 2 * a->kernels->rows &&
           heads_of(a) * byi_ceil_div(a->rows, high) < 2 * team)
        high = byi_ceil_div(high, 2);
    return high;
}

void byi_f32_attention_run(const struct byi_f32_attention_run *run)
{
    enum { PAYS = 1 << 17 }; /* multiply-adds for which another thread pays */
    const struct byi_f32_attention *a = run->attention;
    const int64_t work =
        heads_of(a) * a->rows * a->keys * (a->depth + a->columns);
    const int team = (int)byi_min(run->threads, work / PAYS + 1);
    const int64_t strips = byi_ceil_div(a->rows, choose_high(a, team));
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
