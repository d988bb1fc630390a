/* SPDX-License-Identifier: Apache-2.0 */
/* append_test.c: tests outputs in the memory of an input, such as keys that
 * grow in a buffer with room: a plane for each head, whose rows follow one
 * another. Results must equal those of dense memory, and all lengths share one
 * specialisation. Some bindings must be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/plan.h"
#include "tests/fixture.h"

enum { HEADS = 3, SIZE = 4, ROOM = 80, STEPS = 64 };

/* A loaded model and its only state. */
struct model {
    struct fixture x;
    struct byoc_model *model;
    struct byoc_state *state;
};

static void open_with(struct model *m, const char *ir,
                      const struct byoc_load_params *params)
{
    struct byoc_error err;
    if (fixture_open(&m->x, ir, &err) != BYOC_OK ||
        byoc_internal_model_open(&m->x.image, params, &m->model, &err) !=
            BYOC_OK ||
        byoc_state_new(m->model, &m->state, &err) != BYOC_OK)
        fail_msg("%s", err.text);
}

static void close_model(struct model *m)
{
    byoc_state_free(&m->state);
    byoc_model_free(&m->model);
    fixture_close(&m->x);
}

/* A product reads the present rows in planes; tanh, and the sum of a view, read
 * a dense copy; main also returns the past. */
static const char grows[] =
    "def @main(%past: Tensor[(1, 3, past, 4), float32], %new: Tensor[(1, 3, "
    "1, 4), float32]) {\n"
    "  %0 = concatenate(%past, %new, axis=2);\n"
    "  %1 = nn.matmul(%new, %0, transpose_b=true);\n"
    "  %2 = nn.softmax(%1);\n"
    "  %3 = nn.matmul(%2, %0);\n"
    "  %4 = tanh(%0);\n"
    "  %5 = expand_dims(%0, axis=[2]);\n"
    "  %6 = sum(%5, axis=[3]);\n"
    "  (%0, %3, %4, %6, %past)\n"
    "}\n";

/* The same with attention, which reads both operands in planes. */
static const char attends[] =
    "def @main(%past: Tensor[(1, 3, past, 4), float32], %new: Tensor[(1, 3, "
    "1, 4), float32]) {\n"
    "  %0 = concatenate(%past, %new, axis=2);\n"
    "  %1 = nn.attention(%new, %0, %0);\n"
    "  %2 = tanh(%0);\n"
    "  %3 = expand_dims(%0, axis=[2]);\n"
    "  %4 = sum(%3, axis=[3]);\n"
    "  (%0, %1, %2, %4, %past)\n"
    "}\n";

/* A view whose shape and strides are its own; strides[1] 0: dense. */
struct view {
    DLTensor t;
    int64_t shape[4], strides[4];
};

/* A view of n rows of each head, in a buffer with `room` rows; 0: dense. */
static struct view rows_of(float *data, int64_t n, int64_t room)
{
    struct view v = {.shape = {1, HEADS, n, SIZE},
                     .strides = {HEADS * room * SIZE, room * SIZE, SIZE, 1}};
    v.t = (DLTensor){.data = data,
                     .device = {kDLCPU, 0},
                     .ndim = 4,
                     .dtype = byoc_dtype_dlpack(BYOC_F32)};
    return v;
}

static enum byoc_status run(struct model *m, struct view past,
                            struct view present, float *new, DLTensor *out,
                            struct byoc_error *err)
{
    struct view one = rows_of(new, 1, 0);
    past.t.shape = past.shape;
    past.t.strides = past.strides[1] ? past.strides : NULL;
    present.t.shape = present.shape;
    present.t.strides = present.strides[1] ? present.strides : NULL;
    one.t.shape = one.shape;
    const DLTensor in[] = {past.t, one.t};
    memset(out, 0, 5 * sizeof *out);
    out[0] = present.t;
    return byoc_run(m->state, in, 2, out, 5, err);
}

static void check_equal(const DLTensor *a, const DLTensor *b)
{
    int64_t n = 1;
    assert_int_equal(a->ndim, b->ndim);
    for (int d = 0; d < a->ndim; d++) {
        assert_int_equal(a->shape[d], b->shape[d]);
        n *= a->shape[d];
    }
    const float *x = a->data, *y = b->data;
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] - y[i] < 1e-5f && y[i] - x[i] < 1e-5f))
            fail_msg("element %d: %g, expected %g", (int)i, (double)x[i],
                     (double)y[i]);
}

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((i * 7 + seed * 13) % 23 - 11) / 8;
}

/* Append STEPS rows, one at a time: in place with model `ir`, and with model
 * `grows` from one dense buffer to another. Results must be equal. */
static void check_growing(const char *ir)
{
    static float buffer[HEADS * ROOM * SIZE], dense[2][HEADS * ROOM * SIZE];
    struct model m, twin;
    struct byoc_error err;
    struct byoc_cache_stats stats;
    uint32_t axis;
    open_with(&m, ir, NULL);
    open_with(&twin, grows, NULL);
    assert_int_equal(byoc_model_in_place(m.model, 0, &axis), 0);
    assert_int_equal(axis, 2);
    for (uint32_t i = 1; i < 6; i++)
        assert_int_equal(byoc_model_in_place(m.model, i, &axis), UINT32_MAX);
    for (int64_t n = 0; n < STEPS; n++) {
        float new[HEADS * SIZE];
        DLTensor in_place[5], copied[5];
        fill(new, HEADS * SIZE, (int)n);
        if (run(&m, rows_of(buffer, n, ROOM), rows_of(buffer, n + 1, ROOM), new,
                in_place, &err) != BYOC_OK ||
            run(&twin, rows_of(dense[n % 2], n, 0),
                rows_of(dense[(n + 1) % 2], n + 1, 0), new, copied,
                &err) != BYOC_OK)
            fail_msg("%d rows: %s", (int)n, err.text);
        for (int64_t h = 0; h < HEADS; h++)
            assert_memory_equal(buffer + h * ROOM * SIZE,
                                dense[(n + 1) % 2] + h * (n + 1) * SIZE,
                                (size_t)((n + 1) * SIZE) * sizeof(float));
        for (int i = 1; i < 5; i++)
            check_equal(&in_place[i], &copied[i]);
    }
    byoc_model_cache(m.model, &stats);
    assert_int_equal(stats.builds, 1);
    for (int64_t h = 0; h < HEADS; h++) /* nothing after the rows changes */
        for (int64_t i = STEPS * SIZE; i < ROOM * SIZE; i++)
            assert_true(buffer[h * ROOM * SIZE + i] == 0);
    close_model(&m);
    close_model(&twin);
}

static void test_growing(void **state)
{
    (void)state;
    check_growing(grows);
    check_growing(attends);
}

/* Planes on one side only: the rows are copied. */
static void test_copies(void **state)
{
    (void)state;
    static float a[HEADS * ROOM * SIZE], b[HEADS * ROOM * SIZE];
    float new[HEADS * SIZE], dense[HEADS * 6 * SIZE];
    struct model m;
    struct byoc_error err;
    DLTensor out[5], other_out[5];
    open_with(&m, grows, NULL);
    fill(a, HEADS * ROOM * SIZE, 1);
    fill(new, HEADS * SIZE, 2);
    struct view no_memory = rows_of(NULL, 6, 0);
    assert_int_equal(
        run(&m, rows_of(a, 5, ROOM), rows_of(dense, 6, 0), new, out, &err),
        BYOC_OK);
    assert_int_equal(run(&m, rows_of(a, 5, ROOM), rows_of(b, 6, ROOM / 2), new,
                         other_out, &err),
                     BYOC_OK);
    for (int64_t h = 0; h < HEADS; h++) {
        assert_memory_equal(dense + h * 6 * SIZE, a + h * ROOM * SIZE,
                            5 * SIZE * sizeof(float));
        assert_memory_equal(dense + h * 6 * SIZE, b + h * ROOM / 2 * SIZE,
                            6 * SIZE * sizeof(float));
    }
    assert_int_equal(run(&m, rows_of(a, 5, ROOM), no_memory, new, out, &err),
                     BYOC_OK);
    assert_memory_equal(out[0].data, dense, sizeof dense);
    close_model(&m);
}

/* One result is the past itself, copied to the caller's memory. */
static void test_past_result(void **state)
{
    (void)state;
    static const char ir[] = "def @main(%past: Tensor[(1, 3, past, 4), "
                             "float32], %new: Tensor[(1, 3, "
                             "1, 4), float32]) {\n"
                             "  %0 = concatenate(%past, %new, axis=2);\n"
                             "  (%0, tanh(%past), %past)\n"
                             "}\n";
    static float a[HEADS * ROOM * SIZE];
    float new[HEADS * SIZE], copy[HEADS * 5 * SIZE] = {0};
    struct model m;
    struct byoc_error err;
    open_with(&m, ir, NULL);
    fill(a, HEADS * ROOM * SIZE, 1);
    fill(new, HEADS * SIZE, 2);
    struct view past = rows_of(a, 5, ROOM), present = rows_of(a, 6, ROOM);
    struct view one = rows_of(new, 1, 0), result = rows_of(copy, 5, 0);
    DLTensor in[] = {past.t, one.t}, out[] = {present.t, {0}, result.t};
    in[0].shape = past.shape;
    in[0].strides = past.strides;
    in[1].shape = one.shape;
    out[0].shape = present.shape;
    out[0].strides = present.strides;
    out[2].shape = result.shape;
    if (byoc_run(m.state, in, 2, out, 3, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    for (int64_t h = 0; h < HEADS; h++)
        assert_memory_equal(copy + h * 5 * SIZE, a + h * ROOM * SIZE,
                            5 * SIZE * sizeof(float));
    close_model(&m);
}

/* nn.cache_append in planes; a product reads the filled rows where they are,
 * and a sum a dense copy of them. */
static void test_cache(void **state)
{
    (void)state;
    static const char ir[] =
        "def @main(%past: Tensor[(1, 3, past, 4), float32], %new: Tensor[(1, "
        "3, "
        "1, 4), float32], %lengths: Tensor[(1), int64], %total: Tensor[(1), "
        "int64]) {\n"
        "  %0 = nn.cache_append(%past, %new, %lengths, %total);\n"
        "  %1 = strided_slice(%0, [0], %total, [2], [1]);\n"
        "  %2 = nn.matmul(%new, %1, transpose_b=true);\n"
        "  (%0, %2, sum(%1, axis=[2]))\n"
        "}\n";
    static float buffer[HEADS * ROOM * SIZE];
    struct model m;
    struct byoc_error err;
    struct byoc_cache_stats stats;
    int64_t one[] = {1};
    uint32_t axis;
    open_with(&m, ir, NULL);
    assert_int_equal(byoc_model_in_place(m.model, 0, &axis), 0);
    assert_int_equal(axis, 2);
    for (int64_t n = 0; n < STEPS; n++) {
        int64_t total = n + 1;
        float new[HEADS * SIZE], sums[HEADS * SIZE] = {0};
        struct view past = rows_of(buffer, n, ROOM);
        struct view present = rows_of(buffer, n + 1, ROOM);
        struct view row = rows_of(new, 1, 0);
        fill(new, HEADS * SIZE, (int)n);
        DLTensor in[] = {past.t, row.t, row.t, row.t}, out[3] = {present.t};
        in[0].shape = past.shape;
        in[0].strides = past.strides;
        in[1].shape = row.shape;
        for (int i = 2; i < 4; i++) {
            in[i].data = i == 2 ? &n : &total;
            in[i].ndim = 1;
            in[i].dtype = byoc_dtype_dlpack(BYOC_I64);
            in[i].shape = one;
        }
        out[0].shape = present.shape;
        out[0].strides = present.strides;
        if (byoc_run(m.state, in, 4, out, 3, &err) != BYOC_OK)
            fail_msg("%d rows: %s", (int)n, err.text);
        for (int64_t h = 0; h < HEADS; h++) {
            const float *rows = buffer + h * ROOM * SIZE;
            assert_memory_equal(rows + n * SIZE, new + h *SIZE,
                                SIZE * sizeof(float));
            for (int64_t r = 0; r <= n; r++) {
                float score = 0;
                for (int64_t i = 0; i < SIZE; i++) {
                    score += rows[r * SIZE + i] * new[h * SIZE + i];
                    sums[h * SIZE + i] += rows[r * SIZE + i];
                }
                assert_float_equal(((float *)out[1].data)[h * (n + 1) + r],
                                   score, 1e-5);
            }
        }
        for (int i = 0; i < HEADS * SIZE; i++)
            assert_float_equal(((float *)out[2].data)[i], sums[i], 1e-4);
    }
    byoc_model_cache(m.model, &stats);
    assert_int_equal(stats.builds, 1);
    for (int64_t h = 0; h < HEADS; h++) /* nothing after the rows changes */
        for (int64_t i = STEPS * SIZE; i < ROOM * SIZE; i++)
            assert_true(buffer[h * ROOM * SIZE + i] == 0);
    close_model(&m);
}

static void refuse(struct model *m, struct view past, struct view present,
                   const char *why)
{
    float new[HEADS * SIZE] = {0};
    struct byoc_error err = {0};
    DLTensor out[5];
    assert_int_not_equal(run(m, past, present, new, out, &err), BYOC_OK);
    if (!strstr(err.text, why))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, why);
}

static void test_refused(void **state)
{
    (void)state;
    static float a[HEADS * ROOM * SIZE];
    struct model m;
    open_with(&m, grows, NULL);
    struct view wrong = rows_of(a, 6, ROOM);
    refuse(&m, rows_of(a, 5, ROOM), rows_of(a, 6, ROOM / 2),
           "rows begin elsewhere");
    refuse(&m, rows_of(a, 5, ROOM), rows_of(a + SIZE, 6, ROOM),
           "rows begin elsewhere");
    refuse(&m, rows_of(a, 5, 0), rows_of(a, 6, 0), "rows begin elsewhere");
    refuse(&m, rows_of(a, 5, 5), rows_of(a, 6, 5), "leave room for 6 rows");
    refuse(&m, rows_of(a, 5, ROOM), rows_of(a, 7, ROOM), "memory of shape");
    wrong.strides[3] = 2;
    refuse(&m, rows_of(a, 5, ROOM), wrong, "found strides (960, 320, 4, 2)");
    close_model(&m);
    open_with(&m, grows, &(struct byoc_load_params){.require_backends = 1});
    refuse(&m, rows_of(a, 5, ROOM), rows_of(a, 6, ROOM),
           "loaded with require_backends");
    close_model(&m);
}

/* Rows are replaced in a cache of a fixed size, unless it is read later. */
static void test_scatter(void **state)
{
    (void)state;
    static const char safe[] =
        "def @main(%x: Tensor[(4, 2), float32], %at: Tensor[(1, 2), int64], "
        "%row: Tensor[(1, 2), float32]) {\n"
        "  %0 = sum(%x, axis=[0]);\n"
        "  %1 = scatter_elements(%x, %at, %row, axis=0);\n"
        "  (%1, %0)\n"
        "}\n";
    static const char unsafe[] =
        "def @main(%x: Tensor[(4, 2), float32], %at: Tensor[(1, 2), int64], "
        "%row: Tensor[(1, 2), float32]) {\n"
        "  %0 = scatter_elements(%x, %at, %row, axis=0);\n"
        "  %1 = multiply(%0, %x);\n"
        "  (%0, %1)\n"
        "}\n";
    for (int i = 0; i < 2; i++) {
        struct model m;
        struct byoc_error err = {0};
        float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, row[] = {-1, -2};
        int64_t at[] = {2, 2}, cache_shape[] = {4, 2}, row_shape[] = {1, 2};
        uint32_t axis;
        open_with(&m, i ? unsafe : safe, NULL);
        DLTensor in[] = {{.data = x, .shape = cache_shape},
                         {.data = at, .shape = row_shape},
                         {.data = row, .shape = row_shape}};
        for (int k = 0; k < 3; k++) {
            in[k].device = (DLDevice){kDLCPU, 0};
            in[k].ndim = 2;
            in[k].dtype = byoc_dtype_dlpack(k == 1 ? BYOC_I64 : BYOC_F32);
        }
        DLTensor out[] = {in[0], {0}};
        const enum byoc_status status = byoc_run(m.state, in, 3, out, 2, &err);
        const uint32_t input = byoc_model_in_place(m.model, 0, &axis);
        if (i == 0) {
            assert_int_equal(status, BYOC_OK);
            assert_int_equal(input, 0);
            assert_int_equal(axis, 2);
            assert_true(x[4] == -1 && x[5] == -2 && x[0] == 1 && x[7] == 8);
            assert_true(((float *)out[1].data)[0] == 16);
        } else {
            assert_int_equal(status, BYOC_EINVAL);
            assert_int_equal(input, UINT32_MAX);
            assert_non_null(
                strstr(err.text, "expected separate memory, since"));
            assert_true(x[4] == 5);
        }
        close_model(&m);
    }
}

/* Scores of four queries, two for each head of n keys. */
static void check_scores(const DLTensor *found, const float *q,
                         const float *keys, int64_t capacity, int64_t n)
{
    assert_int_equal(found->shape[4], n);
    for (int h = 0; h < 4; h++)
        for (int64_t t = 0; t < n; t++) {
            float sum = 0;
            for (int i = 0; i < SIZE; i++)
                sum +=
                    q[h * SIZE + i] * keys[(h / 2 * capacity + t) * SIZE + i];
            assert_float_equal(((float *)found->data)[h * n + t], sum, 1e-6);
        }
}

/* Four query heads share two heads of keys, which are read where they are: the
 * model's memory does not grow as they do. */
static void test_shared_heads(void **state)
{
    (void)state;
    static const char ir[] =
        "def @main(%past: Tensor[(1, 2, past, 4), float32], %new: Tensor[(1, "
        "2, 1, 4), float32], %q: Tensor[(1, 4, 1, 4), float32]) {\n"
        "  %0 = concatenate(%past, %new, axis=2);\n"
        "  %1 = expand_dims(%q, axis=[2]);\n"
        "  %2 = reshape(%1, [0, 2, 2, 0, 0]);\n"
        "  %3 = expand_dims(%0, axis=[2]);\n"
        "  %4 = nn.matmul(%2, %3, transpose_b=true);\n"
        "  (%0, %4, shape_of(%0), size_of(%0))\n"
        "}\n";
    enum { CAPACITY = 4096 };
    static float cache[2 * CAPACITY * SIZE];
    float new[2 * SIZE], q[4 * SIZE];
    uint64_t first_bytes = 0;
    struct model m;
    struct byoc_error err;
    open_with(&m, ir, NULL);
    fill(cache, 2 * CAPACITY * SIZE, 3);
    fill(new, 2 * SIZE, 4);
    fill(q, 4 * SIZE, 5);
    for (int n = 9; n < CAPACITY; n += CAPACITY - 10) {
        struct view past = rows_of(cache, n, CAPACITY);
        struct view present = rows_of(cache, n + 1, CAPACITY);
        struct view one = rows_of(new, 1, 1), query = rows_of(q, 1, 1);
        past.shape[1] = present.shape[1] = one.shape[1] = 2;
        query.shape[1] = 4;
        DLTensor in[] = {past.t, one.t, query.t}, out[4] = {present.t};
        in[0].shape = past.shape;
        in[0].strides = past.strides;
        in[1].shape = one.shape;
        in[2].shape = query.shape;
        out[0].shape = present.shape;
        out[0].strides = present.strides;
        past.strides[0] = present.strides[0] = 2 * CAPACITY * SIZE;
        if (byoc_run(m.state, in, 3, out, 4, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        check_scores(&out[1], q, cache, CAPACITY, n + 1);
        assert_int_equal(((int64_t *)out[2].data)[2], n + 1);
        assert_int_equal(*(int64_t *)out[3].data, 2 * (n + 1) * SIZE);
        first_bytes =
            first_bytes ? first_bytes : byoc_model_memory(m.model, NULL);
    }
    assert_true(byoc_model_memory(m.model, NULL) < first_bytes + sizeof cache);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_heads), cmocka_unit_test(test_growing),
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_past_result),  cmocka_unit_test(test_cache),
        cmocka_unit_test(test_scatter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
