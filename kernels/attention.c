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

/* Bytes of a thread's scratch: the scores, then the scratch of a product. */
static uint64_t lane_of(const struct byi_f32_attention *a)
{
    return byi_align_bytes((uint64_t)(a->high * a->wide) * sizeof(float)) +
           byi_align_bytes(byi_f32_product_scratch(1));
}

uint64_t byi_f32_attention_scratch(const struct byi_f32_attention *a,
                                   int threads)
{
    return (uint64_t)threads * lane_of(a);
}

/* The address of row `row` of the matrix of head `head`. */
static const float *find(const struct byi_f32_attention *a, const float *from,
                         const struct byi_f32_strides *s, int64_t head,
                         int64_t row)
{
    from += row * s->row;
    for (int i = BYI_F32_BATCH_AXES; i-- > 0; head /= a->batch[i])
        from += head % a->batch[i] * s->batch[i];
    return from;
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

/* Compute rows [row, row + n) of a head. */
static void run_rows(const struct byi_f32_attention_run *run, int64_t head,
                     int64_t row, int64_t n, char *lane)
{
    const struct byi_f32_attention *a = run->attention;
    float *scores = (float *)(void *)lane;
    char *scratch =
        lane + byi_align_bytes((uint64_t)(a->high * a->wide) * sizeof *scores);
    struct byi_f32_product first = {.kernels = a->kernels,
                                    .m = n,
                                    .n = a->keys,
                                    .k = a->depth,
                                    .a_rs = a->q.row,
                                    .a_cs = a->q.column,
                                    .b_rs = a->k.row,
                                    .b_cs = a->k.column,
                                    .ldc = a->wide};
    multiply(&first, find(a, run->q, &a->q, head, row),
             find(a, run->k, &a->k, head, 0), scores, scratch);
    const struct byi_f32_part part = {scores, a->wide, n, a->keys};
    for (uint32_t i = 0; i < a->n_scores; i++) {
        const struct byi_f32_strides *s = &a->scores[i].operand;
        a->scores[i].binary(&part, find(a, run->operands[i], s, head, row),
                            s->row, s->column);
    }
    for (int64_t i = 0; i < n && a->keys > 0; i++)
        a->kernels->softmax[0](scores + i * a->wide, scores + i * a->wide,
                               a->keys);
    struct byi_f32_product second = {.kernels = a->kernels,
                                     .m = n,
                                     .n = a->columns,
                                     .k = a->keys,
                                     .a_rs = a->wide,
                                     .a_cs = 1,
                                     .b_rs = a->v.row,
                                     .b_cs = a->v.column,
                                     .ldc = a->y.row};
    multiply(&second, scores, find(a, run->v, &a->v, head, 0),
             (float *)(uintptr_t)find(a, run->y, &a->y, head, row), scratch);
}

/* Number of rows of a task: fewer than planned if some threads would have no
 * task. */
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
    const int64_t parts = byi_ceil_div(a->rows, choose_high(a, team));
    const int64_t tasks = heads_of(a) * parts;
    const uint64_t lane = lane_of(a);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        for (int64_t t = tasks * i / team; t < tasks * (i + 1) / team; t++) {
            const int64_t row = a->rows * (t % parts) / parts;
            const int64_t stop = a->rows * (t % parts + 1) / parts;
            run_rows(run, t / parts, row, stop - row,
                     (char *)run->scratch + (uint64_t)i * lane);
        }
}
