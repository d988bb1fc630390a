/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_matmul.c: qnn.matmul: 8-bit integer matrix products with broadcast
 * batches.
 *   (..., m, k) (..., k, n)      -> (..., m, n), as numpy.matmul
 * The integer micro-kernel multiplies words of rows of A (dot.inc) by packed
 * words of columns of B; sums over all of k stay in registers. Weights with a
 * zero point z may stay signed bytes:
 *   sum of x (w - z) = sum of x w - z (sum of x)
 */
#include "matmul.h"
#include "qnn.h"

enum {
    WIDTH = 256, /* columns of a task                 */
    HEIGHT = 8   /* panels of rows of a task, at most */
};

/* How a call runs. Sizes of the parts of scratch are in bytes. */
struct qnn_matmul_plan {
    struct byi_product b; /* a, b and c */
    struct byi_qnn q;
    int64_t k;      /* words of a sum             */
    int64_t panels; /* of B, nr columns each      */
    int64_t height, m_tasks, n_tasks;
    uint64_t offsets, steps, packed; /* shared           */
    uint64_t left, sums;             /* per thread       */
};

/* Words of a matrix B, then the totals of its columns. */
static int64_t packed_words(const struct qnn_matmul_plan *p)
{
    return p->panels * byi_simd()->nr * (p->k + 1);
}

static void plan_right(struct qnn_matmul_plan *p)
{
    p->k = byi_ceil_div(p->b.k, p->q.words->each);
    p->panels = byi_ceil_div(p->b.n, byi_simd()->nr);
}

static struct qnn_matmul_plan plan_of(const struct byi_call *call)
{
    struct qnn_matmul_plan p = {.b = byi_product_read(call)};
    const int64_t mr = byi_simd()->mr, threads = call->threads;
    p.q = byi_qnn_read(call, p.b.n, true);
    byi_product_fold(&p.b);
    plan_right(&p);
    p.n_tasks = byi_ceil_div(p.b.n, WIDTH);
    const int64_t rows = byi_ceil_div(p.b.m, mr);
    p.m_tasks = byi_ceil_div(rows, HEIGHT);
    if (threads > 1 && p.n_tasks * p.m_tasks < 4 * threads)
        p.m_tasks =
            byi_min(rows, byi_ceil_div(4 * threads, byi_max(1, p.n_tasks)));
    p.height = byi_ceil_div(rows, byi_max(1, p.m_tasks));
    p.offsets = byi_align_bytes((uint64_t)p.k * sizeof(int64_t));
    p.steps =
        byi_align_bytes((uint64_t)(p.b.n + BYI_SLACK) * 2 * sizeof(float));
    p.packed =
        call->packed ? 0 : byi_align_bytes((uint64_t)packed_words(&p) * 4);
    p.left = byi_align_bytes((uint64_t)(mr * p.k) * 4);
    p.sums = byi_align_bytes((uint64_t)(mr * WIDTH) * 4);
    return p;
}

/* --- packing -------------------------------------------------------------- */

/* Pack column n of B, at b, as words `step` apart; returns its total. */
static uint32_t pack_column(const struct qnn_matmul_plan *p, int64_t b,
                            int64_t n, uint32_t *to, int64_t step)
{
    const int64_t each = p->q.words->each;
    const int32_t offset = p->q.kept_zeros ? byi_qnn_offset(&p->q, n) : 0;
    uint32_t total = 0;
    for (int64_t w = 0; w < p->k; w++) {
        uint32_t word = 0;
        for (int64_t i = 0; i < byi_min(each, p->b.k - w * each); i++) {
            const int64_t at = b + (w * each + i) * p->b.b_rs + n * p->b.b_cs;
            const int32_t weight = byi_qnn_weight(&p->q, n, at);
            word |= byi_qnn_put(&p->q, i, weight + offset);
            total += (uint32_t)weight;
        }
        to[w * step] = word;
    }
    return total;
}

/* Pack panel `panel` of the matrix B at b. */
static void pack_panel(const struct qnn_matmul_plan *p, int64_t b,
                       int64_t panel, uint32_t *to)
{
    const int64_t nr = byi_simd()->nr;
    uint32_t *totals = to + p->panels * nr * p->k + panel * nr;
    to += panel * nr * p->k;
    for (int64_t i = 0; i < nr; i++) {
        const int64_t n = panel * nr + i;
        totals[i] = 0;
        if (n < p->b.n)
            totals[i] = pack_column(p, b, n, to + i, nr);
        else
            for (int64_t w = 0; w < p->k; w++)
                to[w * nr + i] = 0;
    }
}

/* Packs B if all batches share it. */
uint64_t byi_qnn_matmul_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *b = &call->in[BYI_QNN_WEIGHTS];
    const bool turned = byi_attr_int(call->attrs, "transpose_b");
    if (b->rank != 2)
        return 0;
    struct qnn_matmul_plan p = {.b = {.k = b->dims[turned ? 1 : 0],
                                      .n = b->dims[turned ? 0 : 1],
                                      .b_rs = turned ? 1 : b->dims[1],
                                      .b_cs = turned ? b->dims[1] : 1}};
    p.q = byi_qnn_read(call, p.b.n, true);
    plan_right(&p);
    for (int64_t i = 0; to && i < p.panels; i++)
        pack_panel(&p, 0, i, to);
    return (uint64_t)packed_words(&p) * sizeof(uint32_t);
}

/* Pack row m of A, at a, as words `step` apart. */
static void pack_row(const struct qnn_matmul_plan *p, const uint8_t *a,
                     uint32_t *to, int64_t step)
{
    const int64_t each = p->q.words->each, whole = p->b.k / each;
    const uint32_t flip = p->q.x.flip, zero = p->q.x.zero;
    const bool bytes = p->q.form == BYI_DOT_BYTES;
    int64_t w = 0;
    if (bytes && p->b.a_cs == 1)
        for (; w < whole; w++) {
            uint32_t word;
            memcpy(&word, a + 4 * w, sizeof word);
            to[w * step] = word ^ flip * 0x01010101;
        }
    for (; w < p->k; w++) {
        uint32_t word = 0;
        for (int64_t i = 0; i < byi_min(each, p->b.k - w * each); i++) {
            const uint32_t v = a[(w * each + i) * p->b.a_cs] ^ flip;
            word |= byi_qnn_put(&p->q, i, (int32_t)(bytes ? v : v - zero));
        }
        to[w * step] = word;
    }
}

/* Correct a row of sums, columns n0 to n1, whose weights kept their zero
 * points; a is the row of A. */
static void subtract_zeros(const struct qnn_matmul_plan *p, const uint8_t *a,
                           int64_t n0, int64_t n1, uint32_t *sums)
{
    uint32_t total = 0;
    for (int64_t i = 0; i < p->b.k; i++)
        total += a[i * p->b.a_cs] ^ p->q.x.flip;
    for (int64_t n = n0; n < n1; n++)
        sums[n - n0] -= (uint32_t)byi_qnn_offset(&p->q, n) * total;
}

/* --- tasks ---------------------------------------------------------------- */

/* A running call: its buffers, and the matrices of a batch. */
struct qnn_matmul_job {
    const struct qnn_matmul_plan *p;
    int64_t *offsets;
    uint32_t *add;
    float *scale;
    char *lanes;
    const uint32_t *right; /* B, packed */
    const uint8_t *a;
    char *c;
};

/* One tile: panels of rows by columns. */
static void run_task(const struct qnn_matmul_job *j, int64_t task,
                     uint32_t *left, uint32_t *sums)
{
    const struct qnn_matmul_plan *p = j->p;
    const int64_t mr = byi_simd()->mr, nr = byi_simd()->nr, n = p->b.n;
    const int64_t first = task % p->m_tasks * p->height * mr;
    const int64_t last = byi_min(first + p->height * mr, p->b.m);
    const int64_t n0 = task / p->m_tasks * WIDTH;
    const int64_t n1 = byi_min(n0 + WIDTH, n);
    for (int64_t m = first; m < last; m += mr) {
        const int64_t count = byi_min(mr, last - m);
        for (int64_t i = 0; i < count; i++)
            pack_row(p, j->a + (m + i) * p->b.a_rs, left + i, mr);
        for (int64_t at = n0; at < n1; at += nr)
            p->q.words->left_unsigned(p->k, left, j->right + at * p->k,
                                      j->offsets, sums + at - n0, WIDTH, count);
        for (int64_t i = 0; i < count && p->q.kept_zeros; i++)
            subtract_zeros(p, j->a + (m + i) * p->b.a_rs, n0, n1,
                           sums + i * WIDTH);
        for (int64_t i = 0; i < count; i++)
            byi_simd()->finish[p->q.dtype](
                sums + i * WIDTH, j->add + n0, j->scale + n0, 1, &p->q.kept,
                j->c + ((m + i) * n + n0) * p->q.size, n1 - n0);
    }
}

/* All tasks of a batch. If `to` is not NULL, packs B, which is at b, there
 * first. */
static void run_batch(const struct byi_call *call,
                      const struct qnn_matmul_job *j, int64_t b, uint32_t *to)
{
    const struct qnn_matmul_plan *p = j->p;
    const uint32_t *totals = j->right + p->panels * byi_simd()->nr * p->k;
    const int team = byi_team(call, p->b.m * p->b.n * p->b.k / 4);
    if (to) {
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t i = 0; i < p->panels; i++)
            pack_panel(p, b, i, to);
    }
    byi_qnn_steps(call, &p->q, p->q.form == BYI_DOT_BYTES ? totals : NULL,
                  j->add, j->scale);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(dynamic, 1)
    for (int64_t i = 0; i < p->m_tasks * p->n_tasks; i++) {
        char *left = j->lanes + (uint64_t)byi_lane() * (p->left + p->sums);
        run_task(j, i, (uint32_t *)(void *)left,
                 (uint32_t *)(void *)(left + p->left));
    }
}

/* Does each batch have its own B? */
static bool has_batches(const struct qnn_matmul_plan *p)
{
    for (uint32_t i = 0; i < p->b.rank; i++)
        if (p->b.b_batch[i])
            return true;
    return false;
}

static uint64_t qnn_matmul_scratch(const struct byi_call *call)
{
    const struct qnn_matmul_plan p = plan_of(call);
    return p.offsets + p.steps + p.packed + (p.left + p.sums) * call->threads;
}

static enum byoc_status qnn_matmul_run(const struct byi_call *call,
                                       struct byoc_error *err)
{
    const struct qnn_matmul_plan p = plan_of(call);
    char *at = call->scratch;
    struct qnn_matmul_job j = {.p = &p, .offsets = call->scratch};
    (void)err;
    at += p.offsets;
    j.add = (uint32_t *)(void *)at;
    j.scale = (float *)(void *)at + p.b.n + BYI_SLACK;
    at += p.steps;
    uint32_t *packed = call->packed ? NULL : (uint32_t *)(void *)at;
    j.right = packed ? packed : call->packed;
    j.lanes = at + p.packed;
    for (int64_t i = 0; i < p.k; i++)
        j.offsets[i] = i * byi_simd()->nr;
    for (int64_t i = 0; i < p.b.batches; i++) {
        j.a = p.q.x.at + byi_product_offset(&p.b, p.b.a_batch, i);
        j.c = (char *)p.b.c + i * p.b.m * p.b.n * p.q.size;
        run_batch(call, &j, byi_product_offset(&p.b, p.b.b_batch, i),
                  i == 0 || has_batches(&p) ? packed : NULL);
    }
    return BYOC_OK;
}

static const struct byi_kernel_row rows[] = {
    {BYI_OP_QNN_MATMUL, {qnn_matmul_run, qnn_matmul_scratch}},
};
const struct byi_kernel_rows byi_rows_qnn_matmul = {rows, BYI_COUNT(rows)};
