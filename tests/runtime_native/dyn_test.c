/* SPDX-License-Identifier: Apache-2.0 */
/* dyn_test.c: tests operators with an operand instead of an attribute: the
 * result equals that of the operator with the attribute, and invalid values are
 * refused.
 */
#include "trial.h"

/* Draw some of the axes of this rank, of either sign, in any order. Returns how
 * many. */
static uint32_t pick_axes(uint32_t rank, int64_t *axes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (pick(0, 1))
            axes[n++] = pick(0, 1) ? (int64_t)i : (int64_t)i - (int64_t)rank;
    for (uint32_t i = n; i-- > 1;) {
        const uint32_t k = (uint32_t)pick(0, i);
        const int64_t axis = axes[i];
        axes[i] = axes[k];
        axes[k] = axis;
    }
    return n;
}

/* A vector of n int64; n may be 0. */
static struct byi_tensor vector(uint32_t n, const int64_t *values)
{
    const int64_t dims[] = {n};
    struct byi_tensor t = make(BYOC_I64, 1, dims);
    if (n)
        memcpy(t.data, values, n * sizeof *values);
    return t;
}

static void expect_same(const struct trial *a, const struct trial *b)
{
    assert_int_equal(a->n_out, b->n_out);
    for (uint32_t i = 0; i < a->n_out; i++) {
        assert_int_equal(a->out[i].rank, b->out[i].rank);
        assert_memory_equal(a->out[i].dims, b->out[i].dims,
                            a->out[i].rank * sizeof(int64_t));
        assert_memory_equal(a->out[i].data, b->out[i].data,
                            byi_tensor_bytes(&a->out[i]));
    }
}

static void expect_failure(struct trial *t, enum byi_op_id id, const char *text,
                           const char *why)
{
    assert_int_not_equal(run(t, id, text), BYOC_OK);
    if (!strstr(t->err.text, why))
        fail_msg("found '%s', expected '%s'", t->err.text, why);
}

static void test_expand_and_squeeze(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t axes[BYI_MAX_RANK];
        struct trial a = {.n_in = 1, .in = {random_tensor(6)}}, b = a, back;
        uint32_t rank = a.in[0].rank, n;
        do
            n = pick_axes(rank + 2, axes);
        while (n != 2);
        b.in[b.n_in++] = vector(n, axes);
        must_run(&a, BYI_OP_EXPAND_DIMS, text_of("{\"axis\": [%s]}", n, axes));
        must_run(&b, BYI_OP_DYN_EXPAND_DIMS, "{}");
        expect_same(&a, &b);
        back = (struct trial){.n_in = 2, .in = {b.out[0], b.in[1]}};
        must_run(&back, BYI_OP_DYN_SQUEEZE, "{}");
        assert_int_equal(back.out[0].rank, rank);
        assert_memory_equal(back.out[0].data, a.in[0].data,
                            byi_tensor_bytes(&a.in[0]));
    }
}

static void test_split(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct trial a = {.n_in = 1, .in = {random_tensor(8)}}, b = a;
        const int64_t axis = pick(0, a.in[0].rank - 1);
        const int64_t dim = a.in[0].dims[axis], first = pick(0, dim);
        const int64_t sizes[] = {first, 0, dim - first};
        b.in[b.n_in++] = vector(3, sizes);
        must_run(&a, BYI_OP_SPLIT,
                 byi_arena_printf(
                     arena, "{\"sizes\": [%lld, 0, %lld], \"axis\": %lld}",
                     (long long)first, (long long)(dim - first),
                     (long long)axis));
        must_run(&b, BYI_OP_DYN_SPLIT, text_of("{\"axis\": %s}", 1, &axis));
        expect_same(&a, &b);
    }
}

static void test_reduce(void **state)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_SUM,     BYI_OP_MEAN,       BYI_OP_MAX, BYI_OP_MIN,
        BYI_OP_PROD,    BYI_OP_L1,         BYI_OP_L2,  BYI_OP_LOG_SUM_EXP,
        BYI_OP_LOG_SUM, BYI_OP_SUM_SQUARE,
    };
    (void)state;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        const enum byi_op_id op = ops[(size_t)round % BYI_COUNT(ops)];
        const int64_t dims[] = {pick(1, 5), pick(1, 5), pick(1, 20)};
        struct trial a = {.n_in = 1, .in = {make(BYOC_F32, 3, dims)}}, b;
        const char *const keep = pick(0, 1) ? "true" : "false";
        const char *const noop = pick(0, 1) ? "true" : "false";
        int64_t axes[BYI_MAX_RANK];
        const uint32_t n = pick_axes(3, axes);
        for (int64_t i = 0; i < count(&a.in[0]); i++)
            byi_tensor_set(&a.in[0], i, (double)pick(1, 3));
        b = a;
        b.in[b.n_in++] = vector(n, axes);
        must_run(&a, op,
                 byi_arena_printf(
                     arena, "{%s, \"keepdims\": %s, \"noop_empty\": %s}",
                     text_of("\"axis\": [%s]", n, axes), keep, noop));
        must_run(&b, BYI_OP_DYN_REDUCE,
                 byi_arena_printf(arena,
                                  "{\"function\": \"%s\", \"keepdims\": %s, "
                                  "\"noop_empty\": %s}",
                                  byi_op(op)->name, keep, noop));
        expect_same(&a, &b);
    }
}

static void test_cumsum_trilu(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {pick(1, 4), pick(1, 7), pick(1, 7)};
        const int64_t axis = pick(-3, 2), k = pick(-8, 8);
        struct trial a = {.n_in = 1, .in = {make(BYOC_I32, 3, dims)}}, b = a;
        b.in[b.n_in++] = pick(0, 1) ? ints(0, &axis) : ints(1, &axis);
        must_run(&a, BYI_OP_CUMSUM,
                 text_of("{\"axis\": %s, \"reverse\": true}", 1, &axis));
        must_run(&b, BYI_OP_DYN_CUMSUM, "{\"reverse\": true}");
        expect_same(&a, &b);
        b.in[1] = ints(0, &k);
        must_run(&a, BYI_OP_TRILU,
                 text_of("{\"k\": %s, \"upper\": false}", 1, &k));
        must_run(&b, BYI_OP_DYN_TRILU, "{\"upper\": false}");
        expect_same(&a, &b);
    }
}

static void test_resize(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {pick(1, 6), pick(1, 6)}, four = 4;
        const int64_t sizes[] = {pick(1, 9), pick(1, 9)};
        struct trial a = {.n_in = 2, .in = {make(BYOC_F32, 2, dims)}}, b;
        struct byi_tensor roi = make(BYOC_F32, 1, &four);
        double part[4];
        for (int64_t i = 0; i < count(&a.in[0]); i++)
            byi_tensor_set(&a.in[0], i, (double)pick(-9, 9));
        for (int64_t i = 0; i < 4; i++) {
            part[i] = (double)pick(i < 2 ? -2 : 4, i < 2 ? 3 : 10) / 8;
            byi_tensor_set(&roi, i, part[i]);
        }
        a.in[1] = vector(2, sizes);
        b = a;
        b.in[b.n_in++] = roi;
        const char *const mode = round % 2 ? "linear" : "nearest";
        must_run(&a, BYI_OP_RESIZE,
                 byi_arena_printf(arena,
                                  "{\"coordinate_transformation_mode\": "
                                  "\"tf_crop_and_resize\", \"mode\": \"%s\", "
                                  "\"extrapolation_value\": 7, "
                                  "\"roi\": [%g, %g, %g, %g]}",
                                  mode, part[0], part[1], part[2], part[3]));
        must_run(
            &b, BYI_OP_DYN_RESIZE,
            byi_arena_printf(
                arena, "{\"mode\": \"%s\", \"extrapolation_value\": 7}", mode));
        expect_same(&a, &b);
    }
}

static void test_bad_values(void **state)
{
    const int64_t dims[] = {4, 1}, twice[] = {1, -1}, too_large = 2,
                  sizes[] = {3, 2};
    struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 2, dims)}};
    (void)state;

    t.in[1] = vector(1, &too_large);
    expect_failure(&t, BYI_OP_DYN_SQUEEZE, "{}",
                   "axis 2 is out of range for rank 2");
    expect_failure(&t, BYI_OP_DYN_REDUCE, "{\"function\": \"sum\"}",
                   "axis 2 is out of range for rank 2");
    expect_failure(&t, BYI_OP_DYN_CUMSUM, "{}",
                   "axis 2 is out of range for rank 2");
    expect_failure(&t, BYI_OP_DYN_REDUCE, "{\"function\": \"exp\"}",
                   "function is \"exp\", expected a reduction");
    t.in[1] = vector(1, &(int64_t){0});
    expect_failure(&t, BYI_OP_DYN_SQUEEZE, "{}",
                   "axis 0 has size 4, expected 1");
    t.in[1] = vector(2, twice);
    expect_failure(&t, BYI_OP_DYN_SQUEEZE, "{}", "names axis 1 twice");
    t.in[1] = vector(2, sizes);
    expect_failure(&t, BYI_OP_DYN_SPLIT, "{}",
                   "sizes sum to 5, expected 4, the size of axis 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand_and_squeeze),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_cumsum_trilu),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_bad_values),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
