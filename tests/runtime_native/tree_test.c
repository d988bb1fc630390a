/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c: tests tree ensembles, compared with one walk for each row and
 * tree; arrays that are not valid trees; and the coupling of pairwise
 * probabilities.
 */
#include "kernels.h"

enum { CAPACITY = 4000, FEATURES = 5 };

/* A random forest as the operator's operands. */
struct forest {
    int32_t roots[64], splits[CAPACITY][2], targets[CAPACITY];
    double thresholds[CAPACITY], weights[CAPACITY];
    uint8_t modes[CAPACITY];
    int64_t trees, nodes, n_weights;
};

/* Set *f to random trees with nodes in depth-first order. A stack holds the
 * nodes whose false child is not placed yet. */
static void grow(struct forest *f, int64_t trees, int64_t n_targets)
{
    *f = (struct forest){.trees = trees};
    for (int64_t t = 0; t < trees; t++) {
        int64_t open_nodes[16], levels[16], depth = 0;
        f->roots[t] = (int32_t)f->nodes;
        for (int64_t level = 0;;) {
            const int64_t at = f->nodes++;
            f->thresholds[at] = (double)random_in(-3, 3) / 2;
            f->modes[at] = (uint8_t)(random_in(0, 2) + 4 * random_in(0, 1));
            if (level < 7 && random_in(0, 9) > 2) {
                f->splits[at][0] = (int32_t)random_in(0, FEATURES - 1);
                open_nodes[depth] = at;
                levels[depth++] = ++level;
                continue;
            }
            const int64_t n = random_in(0, 3);
            f->splits[at][0] = (int32_t)(-1 - n);
            f->splits[at][1] = (int32_t)f->n_weights;
            for (int64_t k = 0; k < n; k++, f->n_weights++) {
                f->targets[f->n_weights] = (int32_t)random_in(0, n_targets - 1);
                f->weights[f->n_weights] = (double)random_in(-40, 40) / 8;
            }
            if (depth == 0)
                break;
            level = levels[--depth];
            f->splits[open_nodes[depth]][1] = (int32_t)f->nodes;
        }
        assert_true(f->nodes < CAPACITY / 2);
    }
}

static struct byi_tensor copy_ints(int64_t n, const int32_t *values)
{
    struct byi_tensor t = empty_tensor(BYOC_I32, 1, &n);
    if (n)
        memcpy(t.data, values, (size_t)n * sizeof *values);
    return t;
}

static struct byi_tensor copy_reals(enum byoc_dtype dtype, int64_t n,
                                    const double *values)
{
    struct byi_tensor t = empty_tensor(dtype, 1, &n);
    set(&t, values);
    return t;
}

/* Random features, of which some equal thresholds, and some are NaN. */
static struct byi_tensor features(enum byoc_dtype dtype, int64_t rows)
{
    struct byi_tensor x = empty_tensor(dtype, 2, DIMS(rows, FEATURES));
    for (int64_t i = 0; i < byi_count(&x); i++) {
        const int64_t kind = random_in(0, 19);
        byi_tensor_set(&x, i,
                       kind == 0   ? NAN
                       : kind == 1 ? INFINITY
                                   : (double)random_in(-8, 8) / 4);
    }
    return x;
}

static struct eval make_call(const struct forest *f, enum byoc_dtype dtype,
                             int64_t rows, int64_t n_targets,
                             const char *aggregate, double absent, bool modes)
{
    const int64_t n_modes = modes ? f->nodes : 0;
    struct byi_tensor splits = empty_tensor(BYOC_I32, 2, DIMS(f->nodes, 2));
    struct byi_tensor mode = empty_tensor(BYOC_U8, 1, &n_modes);
    memcpy(splits.data, f->splits, (size_t)f->nodes * sizeof *f->splits);
    memcpy(mode.data, f->modes, (size_t)n_modes);
    const struct byi_tensor in[] = {
        features(dtype, rows),
        copy_ints(f->trees, f->roots),
        splits,
        copy_reals(dtype, f->nodes, f->thresholds),
        mode,
        copy_ints(f->n_weights, f->targets),
        copy_reals(dtype, f->n_weights, f->weights),
    };
    const struct byi_attr attrs[] = {INT("targets", n_targets),
                                     STRING("aggregate", aggregate),
                                     FLOAT("absent", absent)};
    return prepare(BYI_OP_TREE_ENSEMBLE, attrs, BYI_COUNT(attrs), in,
                   BYI_COUNT(in));
}

/* The leaf that a row reaches in a tree. */
static int32_t walk(const struct byi_call *call, int64_t row, int64_t tree)
{
    const int32_t(*splits)[2] = call->in[2].data;
    int32_t at = ((const int32_t *)call->in[1].data)[tree];
    while (splits[at][0] >= 0) {
        const double v =
            byi_tensor_float(&call->in[0], row * FEATURES + splits[at][0]);
        const double t = byi_tensor_float(&call->in[3], at);
        const int64_t mode =
            byi_count(&call->in[4]) ? byi_tensor_int(&call->in[4], at) : 0;
        const int64_t test = mode & 3;
        bool is_true = test == 0 ? v <= t : test == 1 ? v < t : v == t;
        if (isnan(v))
            is_true = (mode & 4) != 0;
        at = is_true ? at + 1 : splits[at][1];
    }
    return at;
}

/* The operator's definition: for each row and target, aggregate the weights of
 * the leaves that the row reaches. */
static enum byoc_status forest_by_definition(const struct byi_call *call,
                                             struct byoc_error *error)
{
    const char *aggregate = byi_attr_string(call->attrs, "aggregate");
    const int64_t trees = call->in[1].dims[0], n = call->out->dims[1];
    (void)error;
    for (int64_t i = 0; i < byi_count(call->out); i++) {
        double y = byi_attr_float(call->attrs, "absent");
        bool is_reached = false;
        for (int64_t t = 0; t < trees; t++) {
            const int32_t *leaf =
                (const int32_t *)call->in[2].data + 2 * walk(call, i / n, t);
            for (int64_t k = leaf[1]; k < leaf[1] - 1 - leaf[0]; k++) {
                const double w = byi_tensor_float(&call->in[6], k);
                if (byi_tensor_int(&call->in[5], k) != i % n)
                    continue;
                y = !is_reached                     ? w
                    : strcmp(aggregate, "min") == 0 ? fmin(y, w)
                    : strcmp(aggregate, "max") == 0 ? fmax(y, w)
                                                    : y + w;
                is_reached = true;
            }
        }
        if (is_reached && strcmp(aggregate, "average") == 0)
            y /= (double)trees;
        byi_tensor_set(call->out, i, y);
    }
    return BYOC_OK;
}

static void test_forests(void **state)
{
    static const char *const aggregate[] = {"sum", "average", "min", "max"};
    static const int64_t rows[] = {0, 1, 3, 8, 65, 200};
    struct forest *f = byi_arena_alloc(arena, sizeof *f);
    (void)state;
    for (uint32_t i = 0; i < 48; i++) {
        const int64_t n_targets = random_in(1, 4);
        grow(f, random_in(1, 12), n_targets);
        struct eval e = make_call(
            f, i % 3 ? BYOC_F32 : BYOC_F64, rows[i % BYI_COUNT(rows)],
            n_targets, aggregate[i % 4], i % 5 ? 0 : -INFINITY, i % 2);
        expect_plain(&e, forest_by_definition, 1e-6, aggregate[i % 4]);
    }
}

/* If the probabilities of pairs come from one distribution, the result is that
 * distribution. */
static void test_coupling(void **state)
{
    static const double p[] = {0.1, 0.25, 0.5, 0.15};
    struct byi_tensor x = TENSOR(BYOC_F64, 2, 6);
    double pairs[12];
    (void)state;
    for (int i = 0, n = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++, n++) {
            pairs[n] = p[i] / (p[i] + p[j]);
            pairs[n + 6] = i == 0; /* class 0 for certain */
        }
    set(&x, pairs);
    struct eval e = prepare(BYI_OP_ML_COUPLING, NULL, 0, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    double sums[2] = {0, 0};
    for (int i = 0; i < 8; i++)
        sums[i / 4] += byi_tensor_float(&e.out[0], i);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(byi_tensor_float(&e.out[0], i) - p[i]) < 0.01);
    assert_true(byi_tensor_float(&e.out[0], 4) > 0.99);
    assert_true(fabs(sums[0] - 1) < 1e-9 && fabs(sums[1] - 1) < 1e-9);
    finish(&e);
}

/* Invalid indices are refused with few rows, where the kernel walks several
 * trees at once, and with many, where it walks several rows. */
static void test_invalid_indices(void **state)
{
    static const struct {
        uint32_t operand;
        int64_t at; /* the element of the operand that `value` replaces */
        int32_t value;
    } cases[] = {
        {1, 0, -1},        /* a root before the first node */
        {1, 0, 3},         /* one past the last */
        {2, 0, FEATURES},  /* a feature */
        {2, 1, 0},         /* a child that is the node itself */
        {2, 1, 3},         /* a child past the last */
        {2, 2, INT32_MIN}, /* more weights than there are */
        {2, 3, -1},        /* a weight before the first */
        {2, 4, 0},         /* a split at the end, whose child is beyond */
        {5, 1, 2},         /* a target */
        {5, 0, -1},
    };
    struct forest f = {.trees = 1,
                       .nodes = 3,
                       .n_weights = 2,
                       .splits = {{0, 2}, {-2, 0}, {-2, 1}},
                       .targets = {0, 1}};
    (void)state;
    for (uint32_t i = 0; i < BYI_COUNT(cases); i++)
        for (int64_t rows = 1; rows < 20; rows += 18) {
            struct eval e = make_call(&f, BYOC_F32, rows, 2, "sum", 0, false);
            /* rows of 1 reach the second leaf, rows of 0 the first */
            const bool second = i == 4 || i == 7 || i == 8;
            for (int64_t r = 0; r < rows; r++)
                byi_tensor_set(&e.in[0], r * FEATURES, second);
            ((int32_t *)e.in[cases[i].operand].data)[cases[i].at] =
                cases[i].value;

            assert_int_equal(run_fast(&e, 1), BYOC_EINVAL);
            assert_non_null(strstr(err.text, "found an invalid index"));
            finish(&e);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forests),
        cmocka_unit_test(test_coupling),
        cmocka_unit_test(test_invalid_indices),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
