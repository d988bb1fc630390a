/* SPDX-License-Identifier: Apache-2.0 */
/* attention_test.c: tests kernels/attention.h under every instruction set that
 * the machine has, against float64, with any type, number of threads and
 * layout.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "isas.h"
#include "kernels/attention.h"
#include "tests/reference.h"
#include "tests/share.h"

#include <cmocka.h>

enum { AXES = 2 }; /* axes of the batch; the matrix has two more */

static uint64_t seed = 1;

REFERENCE int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

/* Random numbers of a tensor whose axes are in random order in memory. */
struct tensor {
    struct byi_f32_strides strides;
    float *data;
    uint16_t *narrow; /* the data as float16 or bfloat16; or NULL */
    int64_t n;        /* number of elements */
};

static void narrow(struct tensor *t, enum byi_f32_type type)
{
    t->narrow = malloc((size_t)(t->n + 1) * sizeof *t->narrow);
    for (int64_t i = 0; i < t->n && type; i++)
        t->narrow[i] = type == BYI_F32_F16 ? byi_f32_to_f16(t->data[i])
                                           : byi_f32_to_bf16(t->data[i]);
}

static void widen(struct tensor *t, enum byi_f32_type type)
{
    for (int64_t i = 0; i < t->n && type; i++)
        t->data[i] = type == BYI_F32_F16 ? byi_f16_to_f32(t->narrow[i])
                                         : byi_bf16_to_f32(t->narrow[i]);
}

static float *argument(const struct tensor *t, enum byi_f32_type type)
{
    return type ? (float *)(void *)t->narrow : t->data;
}

/* Make a tensor of random numbers. If `last`, the last axis is the innermost
 * one; if `repeats`, some axes have stride 0. */
REFERENCE struct tensor make(const int64_t *batch, int64_t rows,
                             int64_t columns, bool last, bool repeats)
{
    const int64_t dims[] = {batch[0], batch[1], rows, columns};
    int64_t *strides[AXES + 2], order[AXES + 2] = {0, 1, 2, 3};
    struct tensor t = {.n = 1};
    for (int i = 0; i < AXES; i++)
        strides[i] = &t.strides.batch[BYI_F32_BATCH_AXES - AXES + i];
    strides[AXES] = &t.strides.row;
    strides[AXES + 1] = &t.strides.column;
    for (int64_t i = last ? AXES : AXES + 1; i > 0; i--) {
        const int64_t k = draw(i + 1), axis = order[i];
        order[i] = order[k];
        order[k] = axis;
    }
    for (int i = AXES + 1; i >= 0; i--) {
        if (repeats && draw(2))
            continue; /* stride 0 */
        *strides[order[i]] = t.n;
        t.n *= dims[order[i]] + (draw(4) == 0);
    }
    t.data = malloc((size_t)(t.n + 1) * sizeof *t.data);
    for (int64_t i = 0; i < t.n; i++)
        t.data[i] = (float)draw(20001) / 10000 - 1;
    return t;
}

/* The index of the operation that adds the mask. */
static uint32_t mask_of(const struct byi_f32_attention *a)
{
    return a->n_scores ? a->n_scores - 1 : 1;
}

/* Make a number by which all scores are multiplied or divided, and a causal
 * mask: row i attends to the keys that are not after its own position, which
 * counts from the end. */
static void make_causal(struct byi_f32_attention *a, struct tensor *scale,
                        struct tensor *mask)
{
    static const float low[] = {-INFINITY, -1e9f, -3.4e38f, -1e4f};
    const float masked = low[draw(4)];
    a->scores[0].binary =
        a->kernels->binary[draw(2) ? BYI_F32_MUL : BYI_F32_DIV];
    scale->strides = (struct byi_f32_strides){.row = 0};
    scale->data[0] = draw(2) ? 0.5f : 3.0f;
    free(mask->data);
    *mask = (struct tensor){.strides = {.row = a->keys, .column = 1},
                            .n = a->rows * a->keys};
    mask->data = malloc((size_t)(mask->n + 1) * sizeof *mask->data);
    for (int64_t i = 0; i < mask->n; i++)
        mask->data[i] =
            i % a->keys > i / a->keys + a->keys - a->rows ? masked : 0.0f;
}

/* Mask the whole first row; its result is 0 instead of NaN. */
static void mask_row(struct byi_f32_attention *a, struct tensor *mask)
{
    for (int64_t i = 0; i < a->keys && mask->n; i++)
        mask->data[i * mask->strides.column] = -INFINITY;
    a->zero_nan = true;
}

REFERENCE double element(const struct tensor *t, const int64_t *head,
                         int64_t row, int64_t column)
{
    int64_t at = row * t->strides.row + column * t->strides.column;
    for (int i = 0; i < AXES; i++)
        at += head[i] * t->strides.batch[BYI_F32_BATCH_AXES - AXES + i];
    return (double)t->data[at];
}

/* An attention and its arguments. */
struct layer {
    struct byi_f32_attention a;
    struct tensor q, k, v, y, operands[2];
};

REFERENCE void check_row(const struct layer *l, const int64_t *head,
                         int64_t row)
{
    const struct byi_f32_attention *a = &l->a;
    double *scores = malloc((size_t)(a->keys + 1) * sizeof *scores);
    double maximum = -INFINITY, sum = 0;
    const bool caps = a->n_scores == 3;
    for (int64_t j = 0; j < a->keys; j++) {
        scores[j] = 0;
        for (int64_t k = 0; k < a->depth; k++)
            scores[j] +=
                element(&l->q, head, row, k) * element(&l->k, head, k, j);
        const double factor = element(&l->operands[0], head, row, j);
        if (a->n_scores)
            scores[j] = a->scores[0].binary == a->kernels->binary[BYI_F32_DIV]
                            ? scores[j] / factor
                            : scores[j] * factor;
        if (caps)
            scores[j] = tanh(scores[j]);
        if (a->n_scores)
            scores[j] += element(&l->operands[1], head, row, j);
        maximum = fmax(maximum, scores[j]);
    }
    for (int64_t j = 0; j < a->keys; j++)
        sum += scores[j] =
            a->zero_nan && maximum == -INFINITY ? 0 : exp(scores[j] - maximum);
    sum = sum > 0 ? sum : 1;
    for (int64_t c = 0; c < a->columns; c++) {
        double expected = 0;
        for (int64_t j = 0; j < a->keys; j++)
            expected += scores[j] / sum * element(&l->v, head, j, c);
        const double found = element(&l->y, head, row, c);
        const double tolerance = a->type == BYI_F32_F16    ? 5e-4
                                 : a->type == BYI_F32_BF16 ? 4e-3
                                                           : 1e-5;
        if (!(fabs(found - expected) <= tolerance))
            fail_msg("%s: %lld x %lld x %lld x %lld: row %lld, column %lld is "
                     "%g, expected %g",
                     a->kernels->name, (long long)a->rows, (long long)a->depth,
                     (long long)a->keys, (long long)a->columns, (long long)row,
                     (long long)c, found, expected);
    }
    free(scores);
}

static void try_attention(const struct byi_f32_kernels *kernels)
{
    const bool large = draw(12) == 0;
    struct layer l = {.a = {.kernels = kernels,
                            .rows = draw(large ? 350 : 30),
                            .depth = draw(large ? 70 : 20),
                            .keys = draw(large ? 700 : 40),
                            .columns = draw(large ? 40 : 20),
                            .n_scores = (uint32_t[]){0, 2, 2, 3}[draw(4)],
                            .type = (enum byi_f32_type)draw(BYI_F32_TYPES)}};
    struct byi_f32_attention *a = &l.a;
    for (int i = 0; i < BYI_F32_BATCH_AXES; i++)
        a->batch[i] = i < BYI_F32_BATCH_AXES - AXES ? 1 : 1 + draw(3);
    if (draw(4) == 0)
        a->rows = 1;
    const int64_t rows = a->rows;
    const int64_t batch[AXES] = {a->batch[BYI_F32_BATCH_AXES - AXES],
                                 a->batch[BYI_F32_BATCH_AXES - AXES + 1]};
    l.q = make(batch, a->rows, a->depth, false, false);
    l.k = make(batch, a->depth, a->keys, false, false);
    l.v = make(batch, a->keys, a->columns, false, false);
    l.y = make(batch, a->rows, a->columns, true, false);
    for (int i = 0; i < 2; i++) {
        l.operands[i] = make(batch, a->rows, a->keys, true, true);
        if (l.operands[i].strides.column > 1) /* of a padded row */
            l.operands[i].strides.column = 1;
    }
    a->scores[0].binary = kernels->binary[BYI_F32_MUL];
    if (a->n_scores && a->keys >= a->rows && draw(2))
        make_causal(a, &l.operands[0], &l.operands[1]);
    if (a->n_scores && a->rows && draw(4) == 0)
        mask_row(a, &l.operands[1]);
    if (a->n_scores == 3)
        a->scores[1].unary = kernels->unary[BYI_OP_TANH];
    const uint32_t mask = mask_of(a);
    a->scores[mask].binary = kernels->binary[BYI_F32_ADD];
    a->scores[0].operand = l.operands[0].strides;
    a->scores[mask].operand = l.operands[1].strides;
    for (int i = 0; i < AXES; i++) /* heads that share keys and values */
        if (draw(3) == 0)
            l.k.strides.batch[BYI_F32_BATCH_AXES - AXES + i] =
                l.v.strides.batch[BYI_F32_BATCH_AXES - AXES + i] = 0;
    a->q = l.q.strides, a->k = l.k.strides, a->v = l.v.strides,
    a->y = l.y.strides;
    byi_f32_attention_plan(a);
    struct tensor *const tensors[] = {&l.q, &l.k,           &l.v,
                                      &l.y, &l.operands[0], &l.operands[1]};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        narrow(tensors[i], a->type);
        widen(tensors[i], a->type);
    }
    const size_t bytes = (size_t)l.y.n * sizeof(float);
    float *first = malloc(bytes + 1);
    void *scratch = malloc(byi_f32_attention_scratch(a, 3));
    for (int threads = 1; threads <= 3; threads++) {
        struct byi_f32_attention_run run = {
            .attention = a,
            .q = argument(&l.q, a->type),
            .k = argument(&l.k, a->type),
            .v = argument(&l.v, a->type),
            .operands = {argument(&l.operands[0], a->type)},
            .y = argument(&l.y, a->type),
            .scratch = scratch,
            .threads = threads};
        run.operands[mask] = argument(&l.operands[1], a->type);
        byi_f32_attention_run(&run);
        widen(&l.y, a->type);
        if (threads == 1)
            memcpy(first, l.y.data, bytes);
        assert_memory_equal(first, l.y.data, bytes);
    }
    for (int64_t i = 0; i < batch[0] * batch[1]; i++)
        for (int64_t row = 0; row < rows; row++)
            check_row(&l, (int64_t[]){i / batch[1], i % batch[1]}, row);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        free(tensors[i]->data);
        free(tensors[i]->narrow);
    }
    free(scratch);
    free(first);
}

static void test_attention(void **state)
{
    (void)state;
    for (enum byi_isa isa = 0; isa < BYI_N_ISAS; isa++)
        for (int i = 0; byi_isa_runs(isa) && i < test_share_of(100); i++)
            try_attention(byi_f32_kernels_of(isa));
}

/* Compute attention of few rows and so many keys that a task has a few rows
 * only. Keys and values of one head are transposed, so that products of one row
 * would be those of a vector. The result must not depend on the threads. */
static void try_many_keys(const struct byi_f32_kernels *kernels, int64_t rows)
{
    enum { KEYS = 70000, DEPTH = 5, COLUMNS = 3, THREADS = 5 };
    struct byi_f32_attention a = {.kernels = kernels,
                                  .batch = {1, 1, 1, 1, 1, 1},
                                  .rows = rows,
                                  .depth = DEPTH,
                                  .keys = KEYS,
                                  .columns = COLUMNS,
                                  .q = {.row = DEPTH, .column = 1},
                                  .k = {.row = 1, .column = DEPTH},
                                  .v = {.row = 1, .column = KEYS},
                                  .y = {.row = COLUMNS, .column = 1}};
    float *x = malloc((DEPTH + COLUMNS) * KEYS * sizeof *x);
    float q[40 * DEPTH], y[40 * COLUMNS], first[40 * COLUMNS];
    for (int64_t i = 0; i < (DEPTH + COLUMNS) * KEYS; i++)
        x[i] = (float)draw(20001) / 10000 - 1;
    for (int64_t i = 0; i < rows * DEPTH; i++)
        q[i] = (float)draw(20001) / 10000 - 1;
    byi_f32_attention_plan(&a);
    void *scratch = malloc(byi_f32_attention_scratch(&a, THREADS));
    for (int threads = 1; threads <= THREADS; threads++) {
        const struct byi_f32_attention_run run = {.attention = &a,
                                                  .q = q,
                                                  .k = x,
                                                  .v = x + DEPTH * KEYS,
                                                  .y = y,
                                                  .scratch = scratch,
                                                  .threads = threads};
        byi_f32_attention_run(&run);
        if (threads == 1)
            memcpy(first, y, sizeof y);
        if (memcmp(first, y, (size_t)(rows * COLUMNS) * sizeof *y) != 0)
            fail_msg("%s: %lld rows: %d threads differ from one", kernels->name,
                     (long long)rows, threads);
    }
    free(scratch);
    free(x);
}

static void many_keys(void)
{
    static const int64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 17, 25, 29, 33};
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        try_many_keys(byi_f32_kernels(), rows[i]);
}

static void test_many_keys(void **state)
{
    (void)state;
    with_each_f32_kernels(many_keys);
}

/* Scores are negated and increased before a mask that still leaves the last key
 * the largest one: their bound must not become smaller. */
static void try_negated_scores(void)
{
    enum { KEYS = 40 };
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    static const float zero = 0, minus_one = -1, increase = 999, q[2] = {1, 1};
    struct byi_f32_attention a = {.kernels = kernels,
                                  .batch = {1, 1, 1, 1, 1, 1},
                                  .rows = 2,
                                  .depth = 1,
                                  .keys = KEYS,
                                  .columns = 1,
                                  .q = {.row = 1, .column = 1},
                                  .k = {.row = KEYS, .column = 1},
                                  .v = {.row = 1, .column = 1},
                                  .y = {.row = 1, .column = 1},
                                  .n_scores = 4};
    byi_f32_binary_fn *const add = kernels->binary[BYI_F32_ADD];
    float k[KEYS], v[KEYS], mask[KEYS] = {0}, y[2];
    a.scores[0].binary = a.scores[2].binary = a.scores[3].binary = add;
    a.scores[1].binary = kernels->binary[BYI_F32_MUL];
    a.scores[3].operand.column = 1;
    for (int i = 0; i < KEYS; i++)
        k[i] = 1000, v[i] = 1;
    k[KEYS - 1] = -1000, v[KEYS - 1] = 5, mask[KEYS - 1] = -300;
    byi_f32_attention_plan(&a);
    void *scratch = malloc(byi_f32_attention_scratch(&a, 1));
    const struct byi_f32_attention_run run = {
        .attention = &a,
        .q = q,
        .k = k,
        .v = v,
        .operands = {&zero, &minus_one, &increase, mask},
        .y = y,
        .scratch = scratch,
        .threads = 1};
    byi_f32_attention_run(&run);
    assert_float_equal(y[0], 5, 1e-6);
    assert_float_equal(y[1], 5, 1e-6);
    free(scratch);
}

static void test_negated_scores(void **state)
{
    (void)state;
    with_each_f32_kernels(try_negated_scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_many_keys),
                                       cmocka_unit_test(test_negated_scores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
