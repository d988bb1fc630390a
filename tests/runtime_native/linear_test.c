/* SPDX-License-Identifier: Apache-2.0 */
/* linear_test.c: tests nn.linear_attention: the plain form is compared with
 * numbers computed by hand, and the float32 loops with the plain form. */
#include "kernels.h"
#include "tests/share.h"

/* Operands of random numbers up to `bound`. */
static struct byi_tensor scaled_tensor(double bound, const int64_t *dims,
                                       uint32_t rank)
{
    struct byi_tensor t = tensor(BYOC_F32, rank, dims);
    for (int64_t i = 0; i < byi_count(&t); i++)
        byi_tensor_set(&t, i, byi_tensor_float(&t, i) * bound / 4);
    return t;
}
#define SCALED(bound, ...)                                                     \
    scaled_tensor(bound, DIMS(__VA_ARGS__), RANK(__VA_ARGS__))

/* The sizes of a case. A key has `size` elements, a value `width`. */
struct shape {
    int64_t batch, time, heads, kv_heads, key_heads, size, width;
};

/* present: bit i is set if operand 3 + i is present */
static void check_case(const struct shape *s, int present, bool each_row,
                       bool one_beta)
{
    const int64_t kv = s->kv_heads;
    char what[160];
    struct byi_tensor in[6];
    const struct byi_attr attrs[] = {INT("heads", s->heads),
                                     INT("kv_heads", kv), FLOAT("scale", 0.5)};
    snprintf(
        what, sizeof what,
        "batch %d time %d heads %d of %d, %d of keys, %d by %d, present %x",
        (int)s->batch, (int)s->time, (int)s->heads, (int)kv, (int)s->key_heads,
        (int)s->size, (int)s->width, present);
    in[0] = SCALED(4, s->batch, s->time, s->heads * s->size);
    in[1] = SCALED(1 / sqrt((double)s->size), s->batch, s->time,
                   s->key_heads * s->size);
    in[2] = SCALED(4, s->batch, s->time, kv * s->width);
    in[3] =
        present & 1 ? SCALED(4, s->batch, kv, s->size, s->width) : SCALED(0, 0);
    in[4] = present & 2
                ? SCALED(1, s->batch, s->time, each_row ? kv * s->size : kv)
                : SCALED(0, 0);
    in[5] = present & 4 ? SCALED(1, s->batch, s->time, one_beta ? 1 : kv)
                        : SCALED(0, 0);
    for (int64_t i = 0; i < byi_count(&in[4]); i++)
        byi_tensor_set(&in[4], i, -fabs(byi_tensor_float(&in[4], i)));
    struct eval e = prepare(BYI_OP_NN_LINEAR_ATTENTION, attrs, 3, in, 6);
    if (!e.typed)
        fail_msg("%s: %s", what, err.text);
    expect_plain(&e, byi_linear_plain, 1e-4, what);
}

/* All rules, shared heads of each kind, widths that are not whole vectors. */
static void test_random(void **state_)
{
    (void)state_;
    for (int round = 0; round < test_share_of(300); round++) {
        const int64_t groups = random_in(1, 3), keys = random_in(1, 2);
        struct shape s = {
            .batch = random_in(round % 40 ? 1 : 0, 3),
            .time = random_in(round % 20 ? 1 : 0, 6),
            .key_heads = keys,
            .kv_heads = keys * groups,
            .size = random_in(1, 20),
            .width = random_in(round % 30 ? 1 : 0, round % 2 ? 20 : 150),
        };
        s.heads = round % 3 == 0 ? s.kv_heads * random_in(1, 3) : keys;
        check_case(&s, round % 8, random_in(0, 1), random_in(0, 1));
    }
}

/* A shape with so much work that threads share it. */
static void test_parallel(void **state_)
{
    (void)state_;
    for (int present = 0; present < 8; present++) {
        const struct shape s = {2, 20, 8, 4, 4, 64, 70};
        check_case(&s, present, present & 1, false);
    }
}

/* Keys and values of two elements, two steps. */
static void test_by_hand(void **state_)
{
    (void)state_;
    const double ln2 = 0.6931471805599453;
    const struct byi_attr attrs[] = {INT("heads", 1), INT("kv_heads", 1),
                                     FLOAT("scale", 2)};
    struct byi_tensor in[6] = {
        TENSOR(BYOC_F64, 1, 2, 2), TENSOR(BYOC_F64, 1, 2, 2),
        TENSOR(BYOC_F64, 1, 2, 2), TENSOR(BYOC_F64, 1, 1, 2, 2),
        TENSOR(BYOC_F64, 1, 2, 1), TENSOR(BYOC_F64, 1, 2, 1)};
    set(&in[0], (const double[]){1, 1, 0, 1});
    set(&in[1], (const double[]){1, 2, 0, -1});
    set(&in[2], (const double[]){9, 7, 2, 1});
    set(&in[3], (const double[]){2, 4, 6, 8});
    set(&in[4], (const double[]){-ln2, ln2});
    set(&in[5], (const double[]){0.5, 1});
    /* Step 1: the decay exp(-ln 2) gives the state [1 2; 3 4], of which the key
     * (1, 2) reads (7, 10). The difference to the value, (2, -3), times 0.5 is
     * (1, -1.5), which the key adds: [2 0.5; 5 1]. The query gives 2 (7, 1.5).
     * Step 2: the decay exp(ln 2) gives [4 1; 10 2], of which the key (0, -1)
     * reads (-10, -2). The difference (12, 3) gives the state [4 1; -2 -1], and
     * the query 2 (-2, -1). */
    struct eval e = prepare(BYI_OP_NN_LINEAR_ATTENTION, attrs, 3, in, 6);
    assert_true(e.typed);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    static const double y[] = {14, 3, -4, -2}, last[] = {4, 1, -2, -1};
    for (int64_t i = 0; i < 4; i++) {
        assert_true(fabs(byi_tensor_float(&e.out[0], i) - y[i]) < 1e-12);
        assert_true(fabs(byi_tensor_float(&e.out[1], i) - last[i]) < 1e-12);
    }
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_parallel),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
