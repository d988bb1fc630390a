/* SPDX-License-Identifier: Apache-2.0 */
/* compute_test.c: tests matrix products, reductions, normalisation,
 * quantisation and einsum: each fast path is compared with its plain form or a
 * loop in this file. Also tests refusals, and that every operator has a kernel.
 */
#include "kernels.h"
#include "kernels/lookup.h"

/* --- the table ---------------------------------------------------------- */

static void test_every_operator(void **state)
{
    (void)state;
    for (int i = 1; i < BYI_N_OPS; i++)
        if (!byi_op_has((enum byi_op_id)i, BYI_TRAIT_LIST) &&
            !byi_kernel_of((enum byi_op_id)i))
            fail_msg("%s: found no kernel, expected one",
                     byi_op((enum byi_op_id)i)->name);
    assert_null(byi_kernel_of(BYI_OP_NONE));
}

/* --- matrix products ---------------------------------------------------- */

static void test_matmul(void **state)
{
    static const struct {
        uint32_t ra, rb;
        int64_t a[5], b[5];
    } shapes[] = {
        {2, 2, {5, 7}, {7, 3}},
        {2, 2, {1, 600}, {600, 70}},
        {2, 2, {70, 1}, {1, 90}},
        {1, 2, {9}, {9, 4}},
        {2, 1, {4, 9}, {9}},
        {1, 1, {9}, {9}},
        {3, 3, {3, 5, 7}, {3, 7, 6}},
        {3, 2, {3, 5, 7}, {7, 40}},
        {4, 3, {2, 3, 5, 7}, {1, 7, 6}},
        {4, 4, {2, 1, 5, 7}, {1, 3, 7, 6}},
        {2, 3, {5, 7}, {4, 7, 6}},
        {2, 2, {3, 0}, {0, 4}},
        {3, 3, {0, 3, 2}, {0, 2, 4}},
        {3, 2, {3, 1, 7}, {7, 6}},
        {2, 2, {130, 520}, {520, 530}},
        {2, 2, {50, 7}, {7, 1}},
        {3, 2, {3, 5, 70}, {70, 1}},
        {4, 4, {3, 1, 50, 9}, {3, 2, 9, 1}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(shapes); i++)
        for (int transposes = 0; transposes < 4; transposes++) {
            int64_t a[5], b[5];
            memcpy(a, shapes[i].a, sizeof a);
            memcpy(b, shapes[i].b, sizeof b);
            const uint32_t ra = shapes[i].ra, rb = shapes[i].rb;
            if ((transposes & 1) && ra > 1) {
                a[ra - 1] = shapes[i].a[ra - 2];
                a[ra - 2] = shapes[i].a[ra - 1];
            }
            if ((transposes & 2) && rb > 1) {
                b[rb - 1] = shapes[i].b[rb - 2];
                b[rb - 2] = shapes[i].b[rb - 1];
            }
            const struct byi_attr attrs[] = {
                BOOL("transpose_a", transposes & 1),
                BOOL("transpose_b", transposes / 2)};
            const struct byi_tensor in[] = {tensor(BYOC_F32, ra, a),
                                            tensor(BYOC_F32, rb, b)};
            struct eval e = prepare(BYI_OP_NN_MATMUL, attrs, 2, in, 2);
            const bool transposes_vector =
                ((transposes & 1) && ra == 1) || ((transposes & 2) && rb == 1);
            assert_int_equal(e.typed, !transposes_vector);
            if (e.typed)
                expect_plain(&e, byi_matmul_plain, 1e-3, "matmul");
            else
                finish(&e);
        }
}

/* float64 and integers, with matrices of few and many rows, columns and
 * elements of a sum. */
static void test_matmul_types(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_F64, BYOC_I32, BYOC_U32,
                                             BYOC_I64, BYOC_U64, BYOC_I16};
    (void)state;
    for (int round = 0; round < 160; round++) {
        const enum byoc_dtype dtype = dtypes[round % 6];
        const int transposes = (int)random_in(0, 3);
        const int64_t m = random_in(1, round % 4 ? 12 : 150);
        const int64_t n = round % 5 ? random_in(1, round % 3 ? 40 : 90) : 1;
        const int64_t k = random_in(0, round % 7 ? 50 : 300);
        const int64_t batch = random_in(1, 2);
        const struct byi_tensor in[] = {
            TENSOR(dtype, 2, transposes & 1 ? k : m, transposes & 1 ? m : k),
            TENSOR(dtype, batch, transposes & 2 ? n : k,
                   transposes & 2 ? k : n)};
        const struct byi_attr attrs[] = {BOOL("transpose_a", transposes & 1),
                                         BOOL("transpose_b", transposes / 2)};
        struct eval e = prepare(BYI_OP_NN_MATMUL, attrs, 2, in, 2);
        expect_plain(&e, byi_matmul_plain, 1e-9, "matmul");
    }
}

static void test_dense(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        const int64_t m = random_in(1, round % 3 ? 40 : 3);
        const int64_t n = round % 4 ? random_in(1, 90) : 1;
        const int64_t k = random_in(1, 600);
        const struct byi_tensor in[] = {TENSOR(BYOC_F32, m, k),
                                        TENSOR(BYOC_F32, n, k)};
        struct eval e = prepare(BYI_OP_NN_DENSE, NULL, 0, in, 2);
        expect_plain(&e, byi_matmul_plain, 1e-3, "dense");
    }
    /* many rows whose distance is a multiple of a page: they are copied */
    for (int64_t k = 512; k <= 1024; k *= 2) {
        const struct byi_tensor in[] = {TENSOR(BYOC_F32, 300, k),
                                        TENSOR(BYOC_F32, 256, k)};
        struct eval e = prepare(BYI_OP_NN_DENSE, NULL, 0, in, 2);
        expect_plain(&e, byi_matmul_plain, 1e-3, "dense");
    }
    /* results computed by hand, and integers that wrap */
    struct byi_tensor in[] = {TENSOR(BYOC_I32, 1, 2), TENSOR(BYOC_I32, 2, 2)};
    set(&in[0], (const double[]){3, INT32_MAX});
    set(&in[1], (const double[]){1, 0, 1, 2});
    struct eval e = prepare(BYI_OP_NN_DENSE, NULL, 0, in, 2);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){3, 1});
    finish(&e);
}

static void test_einsum(void **state)
{
    static const struct {
        const char *equation;
        uint32_t n;
        uint32_t rank[3];
        int64_t dims[3][4];
    } cases[] = {
        {"ij,jk->ik", 2, {2, 2}, {{5, 7}, {7, 3}}},
        {"ij,jk->ki", 2, {2, 2}, {{5, 7}, {7, 3}}},
        {"bij,bjk->bki", 2, {3, 3}, {{4, 5, 7}, {4, 7, 3}}},
        {"ij,jk", 2, {2, 2}, {{5, 7}, {7, 3}}},
        {"bij,bjk->bik", 2, {3, 3}, {{4, 5, 7}, {4, 7, 3}}},
        {"bhqd,bhkd->bhqk", 2, {4, 4}, {{2, 3, 5, 4}, {2, 3, 6, 4}}},
        {"bqhd,bkhd->bhqk", 2, {4, 4}, {{2, 5, 3, 4}, {2, 6, 3, 4}}},
        {"...ij,...jk->...ik", 2, {4, 3}, {{2, 1, 5, 7}, {3, 7, 2}}},
        {"ii->i", 1, {2}, {{4, 4}}},
        {"ii", 1, {2}, {{4, 4}}},
        {"ij->ji", 1, {2}, {{4, 3}}},
        {"ij,ij->", 2, {2, 2}, {{4, 3}, {4, 3}}},
        {"i,j,k->kji", 3, {1, 1, 1}, {{2}, {3}, {4}}},
        {"ab,cb->ca", 2, {2, 2}, {{4, 3}, {5, 3}}},
        {"ab,bc->cba", 2, {2, 2}, {{4, 3}, {3, 5}}},
        {"bnd,hde->bhne", 2, {3, 3}, {{3, 4, 5}, {2, 5, 6}}},
        {"bnd,hde->nhbe", 2, {3, 3}, {{3, 4, 5}, {2, 5, 6}}},
        {"bnd,hde->ehbn", 2, {3, 3}, {{3, 4, 5}, {2, 5, 6}}},
        {"bhne,hed->bnd", 2, {4, 3}, {{3, 2, 4, 5}, {2, 5, 6}}},
        {"bhne,hed->dnb", 2, {4, 3}, {{3, 2, 4, 5}, {2, 5, 6}}},
        {"abc,cba->", 2, {3, 3}, {{3, 2, 4}, {4, 2, 3}}},
        {"iik,kj->ij", 2, {3, 2}, {{3, 3, 4}, {4, 5}}},
        {"akcb,bdk->acd", 2, {4, 3}, {{3, 2, 4, 5}, {5, 6, 2}}},
        {"xaby,yxbc->bac", 2, {4, 4}, {{3, 2, 4, 5}, {5, 3, 4, 6}}},
        {"ij,jk->ki", 2, {2, 2}, {{140, 70}, {70, 90}}},
        {"bij,j->bi", 2, {3, 1}, {{4, 40, 70}, {70}}},
        {"bij,kj->ibk", 2, {3, 2}, {{3, 50, 70}, {1, 70}}},
        {"bikc,bjkc->bijc", 2, {4, 4}, {{2, 5, 3, 4}, {2, 6, 3, 4}}},
        {"bkic,bkjc->bijc", 2, {4, 4}, {{1, 5, 6, 7}, {1, 5, 3, 7}}},
        {"bik,iok->bok", 2, {3, 3}, {{2, 16, 12}, {16, 9, 12}}},
        {"cd,cd->d", 2, {2, 2}, {{7, 5}, {7, 5}}},
        {"dc,cadb->bac", 2, {2, 4}, {{5, 7}, {7, 1, 5, 3}}},
        {"dkn,kdm->dmn", 2, {3, 3}, {{3, 20, 5}, {20, 3, 6}}},
        {"knd,kmd->dmn", 2, {3, 3}, {{20, 5, 3}, {20, 6, 3}}},
        {"ajcb,ibc->iajb", 2, {4, 3}, {{3, 2, 4, 5}, {6, 5, 4}}},
    };
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_F64, BYOC_I32,
                                             BYOC_U8, BYOC_I64};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        for (size_t d = 0; d < BYI_COUNT(dtypes); d++) {
            const struct byi_attr attrs = STRING("equation", cases[i].equation);
            struct byi_tensor in[3];
            for (uint32_t o = 0; o < cases[i].n; o++)
                in[o] = tensor(dtypes[d], cases[i].rank[o], cases[i].dims[o]);
            struct eval e = prepare(BYI_OP_EINSUM, &attrs, 1, in, cases[i].n);
            expect_plain(&e, byi_einsum_plain, 1e-5, cases[i].equation);
        }
    /* results computed by hand, "ij,jk->ki" */
    const struct byi_attr attrs = STRING("equation", "ij,jk->ki");
    struct byi_tensor in[] = {TENSOR(BYOC_F32, 2, 2), TENSOR(BYOC_F32, 2, 2)};
    set(&in[0], (const double[]){1, 2, 3, 4});
    set(&in[1], (const double[]){5, 6, 7, 8});
    struct eval e = prepare(BYI_OP_EINSUM, &attrs, 1, in, 2);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){19, 43, 22, 50});
    finish(&e);
}

static void test_det(void **state)
{
    (void)state;
    struct byi_tensor x = TENSOR(BYOC_F32, 3, 2, 2);
    set(&x, (const double[]){1, 2, 3, 4, 0, 1, 1, 0, 1, 2, 2, 4});
    struct eval e = prepare(BYI_OP_DET, NULL, 0, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){-2, -1, 0});
    finish(&e);
}

static void test_inverse(void **state)
{
    (void)state;
    struct byi_tensor x = TENSOR(BYOC_F32, 2, 2, 2);
    set(&x, (const double[]){0, 2, 4, 0, 1, 2, 3, 4});
    struct eval e = prepare(BYI_OP_INVERSE, NULL, 0, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){0, 0.25, 0.5, 0, -2, 1, 1.5, -0.5});
    finish(&e);
}

/* Matrices of one and several blocks of columns, times their inverses, with 1
 * and 2 threads. */
static void test_inverse_sizes(void **state)
{
    static const int64_t sizes[] = {1, 3, 7, 16, 17, 31, 32, 50};
    (void)state;
    for (size_t s = 0; s < BYI_COUNT(sizes); s++) {
        const int64_t n = sizes[s];
        struct byi_tensor x = TENSOR(BYOC_F64, 40, n, n);
        for (uint32_t threads = 1; threads <= 2; threads++) {
            struct byi_tensor copy = TENSOR(BYOC_F64, 40, n, n);
            memcpy(copy.data, x.data, (size_t)byi_count(&x) * sizeof(double));
            struct eval e = prepare(BYI_OP_INVERSE, NULL, 0, &copy, 1);
            assert_int_equal(run_fast(&e, threads), BYOC_OK);
            const double *a = x.data, *b = e.out[0].data;
            for (int64_t i = 0; i < 40 * n * n; i++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < n; k++) {
                    const double term =
                        a[i / n * n + k] * b[i / n / n * n * n + k * n + i % n];
                    sum += term;
                    size += fabs(term);
                }
                const double expected = i / n % n == i % n;
                assert_true(fabs(sum - expected) <= 1e-9 * (size + 1));
            }
            finish(&e);
        }
        release(&x);
    }
}

/* --- reductions --------------------------------------------------------- */

static const enum byi_op_id reductions[] = {
    BYI_OP_SUM,     BYI_OP_MEAN,       BYI_OP_MAX, BYI_OP_MIN,
    BYI_OP_PROD,    BYI_OP_L1,         BYI_OP_L2,  BYI_OP_LOG_SUM_EXP,
    BYI_OP_LOG_SUM, BYI_OP_SUM_SQUARE,
};

static void test_reduce(void **state)
{
    static const int64_t dims[] = {3, 5, 2, 37};
    (void)state;
    for (size_t o = 0; o < BYI_COUNT(reductions); o++)
        for (uint32_t mask = 0; mask < 16; mask++) {
            int64_t axes[4];
            uint32_t n = 0;
            for (uint32_t i = 0; i < 4; i++)
                if (mask & (1u << i))
                    axes[n++] = i % 2 ? i : (int64_t)i - 4;
            const struct byi_attr attrs[] = {INTS("axis", n, axes),
                                             BOOL("keepdims", mask % 3 == 0)};
            struct byi_tensor x = tensor(BYOC_F32, 4, dims);
            if (reductions[o] == BYI_OP_MAX || reductions[o] == BYI_OP_MIN)
                byi_tensor_set(&x, 100, NAN);
            if (reductions[o] == BYI_OP_LOG_SUM)
                for (int64_t i = 0; i < byi_count(&x); i++)
                    byi_tensor_set(&x, i, 1.5);
            if (reductions[o] == BYI_OP_PROD)
                for (int64_t i = 0; i < byi_count(&x); i++)
                    byi_tensor_set(&x, i, random_in(0, 1) ? 1 : -1);
            struct eval e = prepare(reductions[o], attrs, 2, &x, 1);
            expect_plain(&e, byi_reduce_plain, 1e-5,
                         byi_op(reductions[o])->name);
        }
}

/* Maxima and minima along, across and between rows that are shorter and longer
 * than a vector; NaN in some. */
static void test_max_min(void **state)
{
    static const enum byoc_dtype dtypes[] = {
        BYOC_U8,  BYOC_I8,  BYOC_U16, BYOC_I16, BYOC_U32,
        BYOC_I32, BYOC_U64, BYOC_I64, BYOC_F32, BYOC_F64};
    static const enum byi_op_id ops[] = {BYI_OP_MAX, BYI_OP_MIN};
    (void)state;
    for (size_t d = 0; d < BYI_COUNT(dtypes); d++)
        for (int round = 0; round < 60; round++) {
            const int64_t dims[] = {random_in(1, 9), random_in(1, 70),
                                    random_in(1, round % 2 ? 20 : 300)};
            const int64_t axis = round / 2 % 3;
            const struct byi_attr attrs = INTS("axis", 1, &axis);
            struct byi_tensor x = tensor(dtypes[d], 3, dims);
            for (int64_t i = 0; i < byi_count(&x); i++)
                byi_tensor_set(&x, i, (double)random_in(0, 250) - 125);
            if (byi_dtype_is_float(dtypes[d]))
                byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
            struct eval e = prepare(ops[round / 6 % 2], &attrs, 1, &x, 1);
            expect_plain(&e, byi_reduce_plain, 0, "extremes");
        }
}

/* Rows of a few vectors of float32 or float64, with each instruction set; NaN
 * in some extremes. */
static void test_reduce_rows(void **state)
{
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (uint32_t round = 0; use(isa) && round < 200; round++) {
            const enum byi_op_id op = reductions[round % 10];
            const int64_t dims[] = {random_in(1, 60), random_in(2, 270)};
            const int64_t axis = 1;
            const struct byi_attr attrs = INTS("axis", 1, &axis);
            struct byi_tensor x =
                tensor(round / 10 % 2 ? BYOC_F64 : BYOC_F32, 2, dims);
            for (int64_t i = 0; i < byi_count(&x); i++)
                byi_tensor_set(&x, i, (double)random_in(1, 3) - (round & 1));
            if (op == BYI_OP_MAX || op == BYI_OP_MIN)
                byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
            struct eval e = prepare(op, &attrs, 1, &x, 1);
            expect_plain(&e, byi_reduce_plain, 1e-5, byi_op(op)->name);
        }
    byi_simd_use(byi_isa_widest());
}

/* Shapes with few or many elements in each axis, of which one or two are
 * reduced. */
static void test_reduce_shapes(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 70};
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_I32, BYOC_U8,
                                             BYOC_I64, BYOC_F64, BYOC_U32,
                                             BYOC_I16, BYOC_U64};
    (void)state;
    for (uint32_t round = 0; round < 480; round++) {
        const enum byi_op_id op = reductions[round % 10];
        const enum byoc_dtype dtype = dtypes[round / 10 % 8];
        int64_t dims[4], axes[] = {random_in(0, 3), 0};
        for (int i = 0; i < 4; i++)
            dims[i] = sizes[random_in(0, i == 3 ? 6 : 4)];
        dims[random_in(0, 3)] = random_in(1, 300);
        axes[1] = (axes[0] + 2) % 4;
        const struct byi_attr attrs = INTS("axis", 1 + round / 80 % 2, axes);
        struct byi_tensor x = tensor(dtype, 4, dims);
        for (int64_t i = 0; i < byi_count(&x); i++)
            byi_tensor_set(&x, i, (double)random_in(1, 3) - (round & 1));
        struct eval e = prepare(op, &attrs, 1, &x, 1);
        expect_plain(&e, byi_reduce_plain, byi_dtype_is_float(dtype) ? 1e-5 : 0,
                     byi_op(op)->name);
    }
}

/* Results do not depend on the number of threads, also next to infinities, and
 * for sums over rows that are not equally spaced. */
static void test_reduce_threads(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{7, 3, 50, 300}, {400, 31, 3, 8}};
    const struct byi_attr attrs = INTS("axis", 2, DIMS(0, 2));
    for (size_t o = 0; o < 2 * BYI_COUNT(reductions); o++) {
        struct byi_tensor x = tensor(BYOC_F32, 4, shapes[o % 2]);
        byi_tensor_set(&x, 5, INFINITY);
        byi_tensor_set(&x, 299, -INFINITY);
        struct eval e = prepare(reductions[o / 2], &attrs, 1, &x, 1);
        struct byi_tensor expected = e.out[0];
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (uint32_t threads = 2; threads <= 4; threads++) {
            e.out[0] =
                empty_tensor(expected.dtype, expected.rank, expected.dims);
            assert_int_equal(run_fast(&e, threads), BYOC_OK);
            assert_memory_equal(e.out[0].data, expected.data,
                                (size_t)byi_count(&expected) * sizeof(float));
            release(&e.out[0]);
        }
        e.out[0] = expected;
        finish(&e);
    }
}

static void test_reduce_by_hand(void **state)
{
    static const struct {
        enum byi_op_id op;
        enum byoc_dtype dtype;
        double expected[2];
    } cases[] = {
        {BYI_OP_SUM, BYOC_I32, {-2, 9}},
        {BYI_OP_MEAN, BYOC_F64, {-2.0 / 3, 3}},
        {BYI_OP_MAX, BYOC_I8, {2, 5}},
        {BYI_OP_MIN, BYOC_F16, {-5, 1}},
        {BYI_OP_PROD, BYOC_I64, {-10, 15}},
        {BYI_OP_L1, BYOC_I32, {8, 9}},
        {BYI_OP_SUM_SQUARE, BYOC_F32, {30, 35}},
        {BYI_OP_L2, BYOC_F64, {5.477225575, 5.916079783}},
        {BYI_OP_LOG_SUM_EXP, BYOC_F32, {2.3139281, 5.1429316}},
    };
    (void)state;
    const struct byi_attr attrs[] = {INTS("axis", 1, DIMS(-1)),
                                     BOOL("keepdims", 0)};
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_tensor x = TENSOR(cases[i].dtype, 2, 3);
        set(&x, (const double[]){-5, 1, 2, 1, 3, 5});
        struct eval e = prepare(cases[i].op, attrs, 2, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i].expected);
        finish(&e);
    }
}

static void test_arg_ties_and_nan(void **state)
{
    static const struct {
        enum byi_op_id op;
        int last;
        double expected[3];
    } cases[] = {
        {BYI_OP_ARGMAX, 0, {0, 1, 1}},
        {BYI_OP_ARGMAX, 1, {1, 1, 1}},
        {BYI_OP_ARGMIN, 0, {0, 0, 1}},
        {BYI_OP_ARGMIN, 1, {1, 0, 1}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        const struct byi_attr attrs[] = {
            INT("axis", 0), BOOL("keepdims", 0),
            BOOL("select_last_index", cases[i].last)};
        struct byi_tensor x = TENSOR(BYOC_F32, 2, 3);
        set(&x, (const double[]){4, -1, 7, 4, 2, NAN});
        struct eval e = prepare(cases[i].op, attrs, 3, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i].expected);
        finish(&e);
    }
}

/* The index of the first or last maximum or minimum of n elements, the first of
 * which is x[from] and which are `step` apart. */
static int64_t extreme_index(const struct byi_tensor *x, int64_t from,
                             int64_t n, int64_t step, bool largest, bool last)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++) {
        const double v = byi_tensor_float(x, from + i * step);
        const double best = byi_tensor_float(x, from + at * step);
        if (isnan(best) ? isnan(v) && last
                        : isnan(v) || (largest ? v > best : v < best) ||
                              (v == best && last))
            at = i;
    }
    return at;
}

/* argmax and argmin of x (outer, n, inner), of each dtype with each instruction
 * set. */
static void test_argmax_of_each_dtype(void **state)
{
    static const enum byoc_dtype dtypes[] = {
        BYOC_F32, BYOC_F64, BYOC_U8,  BYOC_I8,  BYOC_U16,
        BYOC_I16, BYOC_U32, BYOC_I32, BYOC_U64, BYOC_I64};
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int round = 0; use(isa) && round < 400; round++) {
            const bool largest = round & 1, last = round & 2;
            const int64_t outer = round & 8 ? 3 : random_in(1, 70);
            const int64_t n = random_in(1, outer != 3   ? 40
                                           : round & 16 ? 2000
                                                        : 200);
            const int64_t inner =
                round & 4 ? 1 : random_in(1, outer == 3 && n < 200 ? 40 : 3);
            struct byi_tensor x = TENSOR(dtypes[round % 10], outer, n, inner);
            if (round % 10 == 0 && round % 3 == 0)
                byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
            const struct byi_attr attrs[] = {INT("axis", 1),
                                             BOOL("keepdims", 0),
                                             BOOL("select_last_index", last)};
            struct eval e = prepare(largest ? BYI_OP_ARGMAX : BYI_OP_ARGMIN,
                                    attrs, 3, &x, 1);
            assert_int_equal(run_fast(&e, 1), BYOC_OK);
            for (int64_t i = 0; i < outer * inner; i++)
                assert_int_equal(
                    byi_tensor_int(e.out, i),
                    extreme_index(&x, i / inner * n * inner + i % inner, n,
                                  inner, largest, last));
            finish(&e);
        }
    byi_simd_use(byi_isa_widest());
}

/* --- softmax and normalisation ------------------------------------------ */

static void test_softmax(void **state)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_NN_SOFTMAX, BYI_OP_NN_LOG_SOFTMAX, BYI_OP_NN_HARDMAX};
    (void)state;
    for (size_t o = 0; o < BYI_COUNT(ops); o++)
        for (int64_t axis = 0; axis < 3; axis++) {
            const struct byi_attr attrs = INT("axis", axis);
            struct byi_tensor x = TENSOR(BYOC_F32, 4, 37, 70);
            byi_tensor_set(&x, 5, 1000);
            byi_tensor_set(&x, 9000, -INFINITY);
            struct eval e = prepare(ops[o], &attrs, 1, &x, 1);
            expect_plain(&e, byi_softmax_plain, 2e-6, byi_op(ops[o])->name);
        }
}

/* Slices of few and of many elements, next to each other and apart. */
static void test_softmax_shapes(void **state)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_NN_SOFTMAX, BYI_OP_NN_LOG_SOFTMAX, BYI_OP_NN_HARDMAX};
    (void)state;
    for (int round = 0; round < 150; round++) {
        const int64_t axis = round % 3;
        const struct byi_attr attrs = INT("axis", axis);
        int64_t dims[3];
        for (int i = 0; i < 3; i++)
            dims[i] = random_in(1, 20);
        dims[random_in(0, 2)] = random_in(1, 700);
        struct byi_tensor x = tensor(BYOC_F32, 3, dims);
        byi_tensor_set(&x, byi_count(&x) / 2, 200);
        const enum byi_op_id op = ops[round / 3 % 3];
        struct eval e = prepare(op, &attrs, 1, &x, 1);
        expect_plain(&e, byi_softmax_plain, 5e-6, byi_op(op)->name);
    }
}

/* Normalisations of float32 give the results of float64 for slices of few and
 * of many elements, next to each other and apart. */
static void test_norm_shapes(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_LP_NORMALIZE, BYI_OP_MVN,
                                         BYI_OP_NN_INSTANCE_NORM};
    (void)state;
    for (int round = 0; round < 120; round++) {
        const enum byi_op_id op = ops[round % 3];
        int64_t dims[3], axes[] = {random_in(0, 2), 2};
        for (int i = 0; i < 3; i++)
            dims[i] = random_in(1, 20);
        dims[random_in(0, 2)] = random_in(1, 300);
        struct byi_tensor x[2][3];
        const uint32_t n_in = round % 3 == 2 ? 3 : 1;
        for (uint32_t k = 0; k < n_in; k++) {
            x[0][k] = tensor(BYOC_F32, k ? 1 : 3, k ? &dims[1] : dims);
            x[1][k] = tensor(BYOC_F64, k ? 1 : 3, k ? &dims[1] : dims);
            for (int64_t i = 0; i < byi_count(&x[0][k]); i++)
                byi_tensor_set(&x[1][k], i, byi_tensor_float(&x[0][k], i));
        }
        const struct byi_attr attrs[][2] = {
            {INT("axis", axes[0]), INT("p", 1 + round % 2)},
            {INTS("axis", axes[0] == 2 ? 1u : 2u, axes)},
            {FLOAT("epsilon", 1e-3)}};
        const uint32_t n_attrs = round % 3 == 0 ? 2 : 1;
        struct eval e = prepare(op, attrs[round % 3], n_attrs, x[0], n_in);
        struct eval f = prepare(op, attrs[round % 3], n_attrs, x[1], n_in);
        assert_int_equal(run_fast(&f, 1), BYOC_OK);
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            assert_int_equal(run_fast(&e, threads), BYOC_OK);
            for (int64_t i = 0; i < byi_count(e.out); i++)
                assert_true(fabs(byi_tensor_float(e.out, i) -
                                 byi_tensor_float(f.out, i)) < 1e-4);
        }
        finish(&e);
        finish(&f);
    }
}

/* Short and long rows, divided by their norms; some are zeros. */
static void test_unit_rows(void **state)
{
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int round = 0; use(isa) && round < 60; round++) {
            const int64_t p = 1 + round % 2;
            const int64_t dims[] = {random_in(1, 40), random_in(1, 90)};
            const struct byi_attr attrs[] = {INT("axis", 1), INT("p", p)};
            struct byi_tensor x =
                tensor(round & 2 ? BYOC_F64 : BYOC_F32, 2, dims);
            memset(x.data, 0, 4 * (size_t)dims[1]); /* zero in both types */
            struct eval e = prepare(BYI_OP_LP_NORMALIZE, attrs, 2, &x, 1);
            assert_int_equal(run_fast(&e, 1), BYOC_OK);
            double sum = 0; /* of a row, found at its first element */
            for (int64_t i = 0; i < byi_count(&x); i++) {
                if (i % dims[1] == 0) {
                    sum = 0;
                    for (int64_t k = i; k < i + dims[1]; k++)
                        sum += pow(fabs(byi_tensor_float(e.in, k)), (double)p);
                    sum = sum == 0 ? 1 : p == 1 ? sum : sqrt(sum);
                }
                assert_true(fabs(byi_tensor_float(e.out, i) -
                                 byi_tensor_float(e.in, i) / sum) < 1e-6);
            }
            finish(&e);
        }
    byi_simd_use(byi_isa_widest());
}

/* (x - mean) / sqrt(var + eps) gamma + beta over runs of n elements; gamma and
 * beta of element i are those of channel i / space % period. */
static void naive_norm(const struct byi_tensor *in, int64_t n, int64_t period,
                       int64_t space, struct byi_tensor *out)
{
    for (int64_t at = 0; at < byi_count(in); at += n) {
        double mean = 0, var = 0;
        for (int64_t i = at; i < at + n; i++)
            mean += byi_tensor_float(in, i) / (double)n;
        for (int64_t i = at; i < at + n; i++)
            var += pow(byi_tensor_float(in, i) - mean, 2) / (double)n;
        for (int64_t i = at; i < at + n; i++) {
            const int64_t c = i / space % period;
            const double v =
                (byi_tensor_float(in, i) - mean) / sqrt(var + 1e-5);
            byi_tensor_set(out, i,
                           v * byi_tensor_float(&in[1], c) +
                               byi_tensor_float(&in[2], c));
        }
    }
}

static void test_norms(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_F64, BYOC_F16};
    (void)state;
    for (size_t d = 0; d < BYI_COUNT(dtypes); d++) {
        const double bound = dtypes[d] == BYOC_F16 ? 1e-2 : 1e-5;
        const enum byi_op_id ops[] = {BYI_OP_NN_LAYER_NORM,
                                      BYI_OP_NN_INSTANCE_NORM,
                                      BYI_OP_NN_GROUP_NORM};
        for (int o = 0; o < 3; o++) {
            const struct byi_attr attrs = INT("num_groups", 3);
            const bool layer = o == 0;
            const int64_t channels = layer ? 35 : 6;
            struct byi_tensor in[] = {TENSOR(dtypes[d], 2, 6, 35),
                                      TENSOR(dtypes[d], channels),
                                      TENSOR(dtypes[d], channels)};
            struct eval e = prepare(ops[o], &attrs, o == 2, in, 3);
            struct byi_tensor expected = TENSOR(dtypes[d], 2, 6, 35);
            assert_int_equal(run_fast(&e, 2), BYOC_OK);
            naive_norm(e.in, o == 2 ? 70 : 35, channels, layer ? 1 : 35,
                       &expected);
            assert_near(e.out, &expected, bound, e.op->name);
            release(&expected);
            finish(&e);
        }
    }
}

/* Channels of few elements are computed together. */
static void test_batch_norm(void **state)
{
    static const int64_t spaces[] = {1, 5, 63, 64, 700};
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_F64, BYOC_F16,
                                             BYOC_BF16};
    static const double bounds[] = {1e-5, 1e-12, 2e-3, 2e-2};
    (void)state;
    for (int round = 0; round < 20; round++) {
        const enum byoc_dtype dtype = dtypes[round % 4];
        const int64_t space = spaces[round / 4];
        struct byi_tensor in[] = {TENSOR(dtype, 40, 3, space), TENSOR(dtype, 3),
                                  TENSOR(dtype, 3), TENSOR(dtype, 3),
                                  TENSOR(dtype, 3)};
        set(&in[4], (const double[]){0.5, 1, 4});
        struct eval e = prepare(BYI_OP_NN_BATCH_NORM, NULL, 0, in, 5);
        assert_int_equal(run_fast(&e, round % 2 ? 2 : 1), BYOC_OK);
        for (int64_t i = 0; i < 120 * space; i++) {
            const int64_t c = i / space % 3;
            const double v = (byi_tensor_float(&e.in[0], i) -
                              byi_tensor_float(&e.in[3], c)) /
                             sqrt(byi_tensor_float(&e.in[4], c) + 1e-5);
            const double expected = v * byi_tensor_float(&e.in[1], c) +
                                    byi_tensor_float(&e.in[2], c);
            assert_true(is_near(byi_tensor_float(e.out, i), expected,
                                bounds[round % 4]));
        }
        finish(&e);
    }
}

static void test_other_norms(void **state)
{
    (void)state;
    const struct byi_attr lrn[] = {INT("size", 3), FLOAT("alpha", 3.0),
                                   FLOAT("beta", 0.5), FLOAT("bias", 1.0)};
    struct byi_tensor x = TENSOR(BYOC_F32, 1, 3, 1);
    set(&x, (const double[]){1, 2, 3});
    struct eval e = prepare(BYI_OP_NN_LRN, lrn, 4, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){1 / sqrt(6), 2 / sqrt(15), 3 / sqrt(14)});
    finish(&e);

    const struct byi_attr unit[] = {INT("axis", 0), INT("p", 1)};
    x = TENSOR(BYOC_F32, 2, 2);
    set(&x, (const double[]){1, 0, -3, 0});
    e = prepare(BYI_OP_LP_NORMALIZE, unit, 2, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){0.25, 0, -0.75, 0});
    finish(&e);

    const struct byi_attr mvn = INTS("axis", 2, DIMS(0, 2));
    x = TENSOR(BYOC_F64, 2, 2, 1);
    set(&x, (const double[]){1, 5, 3, 9});
    e = prepare(BYI_OP_MVN, &mvn, 1, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){-1, -1, 1, 1});
    finish(&e);
}

/* --- quantisation ------------------------------------------------------- */

static void test_quantize(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_U8,  BYOC_I8,  BYOC_U16,
                                             BYOC_I16, BYOC_I32, BYOC_U32};
    /* long rows, and short rows in whole blocks and in parts of a block */
    static const int64_t shapes[][3] = {
        {2, 3, 150}, {70, 3, 2}, {9, 5, 1}, {2, 700, 2}, {3, 2100, 1}};
    (void)state;
    for (size_t d = 0; d < BYI_COUNT(dtypes) * BYI_COUNT(shapes); d++)
        for (int vector = 0; vector < 2; vector++) {
            const enum byoc_dtype to = dtypes[d % BYI_COUNT(dtypes)];
            const int64_t *dims = shapes[d / BYI_COUNT(dtypes)];
            struct byi_tensor in[] = {
                tensor(BYOC_F32, 3, dims),
                tensor(BYOC_F32, (uint32_t)vector, dims + 1),
                tensor(to, (uint32_t)vector, dims + 1)};
            for (int64_t i = 0; i < byi_count(&in[1]); i++)
                byi_tensor_set(&in[1], i, ldexp(1, -(int)(i % 9) - 4));
            byi_tensor_set(&in[0], 7, 1e30);
            byi_tensor_set(&in[0], 8, -INFINITY);
            struct eval e = prepare(BYI_OP_QUANTIZE, NULL, 0, in, 3);
            expect_plain(&e, byi_quantize_plain, 0, "quantize");
        }
    struct byi_tensor in[] = {TENSOR(BYOC_U8, 3), tensor(BYOC_F32, 0, NULL),
                              tensor(BYOC_U8, 0, NULL)};
    set(&in[0], (const double[]){0, 128, 255});
    set(&in[1], (const double[]){0.5});
    set(&in[2], (const double[]){128});
    struct eval e = prepare(BYI_OP_DEQUANTIZE, NULL, 0, in, 3);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){-64, 0, 63.5});
    finish(&e);
}

/* --- tables of bytes ---------------------------------------------------- */

static enum byoc_status look_up_plain(const struct byi_call *call,
                                      struct byoc_error *error)
{
    const uint8_t *x = call->in[0].data, *table = call->in[1].data;
    (void)error;
    for (int64_t i = 0; i < byi_count(call->out); i++)
        ((uint8_t *)call->out->data)[i] = table[x[i]];
    return BYOC_OK;
}

/* Every implementation that this machine runs, at lengths around those of
 * vectors, with buffers that end with the data. */
static void test_lookups(void **state)
{
    enum { MAX_LENGTH = 200 };
    uint8_t table[256];
    (void)state;
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)random_in(0, 255);
    for (uint32_t row = 0; row < byi_n_lookups; row++) {
        const struct byi_lookup *lookup = &byi_lookups[row];
        if (!byi_isa_runs(lookup->isa) || !lookup->runs())
            continue;
        for (int64_t n = 0; n <= MAX_LENGTH; n++) {
            uint8_t *x = malloc((size_t)n + 1), *y = malloc((size_t)n + 1);
            for (int64_t i = 0; i < n; i++)
                x[i] = (uint8_t)(n == MAX_LENGTH ? i : random_in(0, 255));
            y[n] = 0xa5;
            lookup->run(x, table, y, n);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(y[i], table[x[i]]);
            assert_int_equal(y[n], 0xa5);
            free(x);
            free(y);
        }
    }
    struct byi_tensor in[] = {TENSOR(BYOC_U8, 3, 70000), TENSOR(BYOC_I8, 256)};
    memcpy(in[1].data, table, sizeof table);
    struct eval e = prepare(BYI_OP_LOOKUP, NULL, 0, in, 2);
    expect_plain(&e, look_up_plain, 0, "lookup");
}

/* --- refusals, alignment ------------------------------------------------ */

static void test_unsupported(void **state)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_EXP,    BYI_OP_ISNAN,      BYI_OP_LOGICAL_NOT,  BYI_OP_SUM,
        BYI_OP_ARGMAX, BYI_OP_NN_SOFTMAX, BYI_OP_LP_NORMALIZE, BYI_OP_NN_LRN,
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(ops); i++) {
        struct byi_tensor x = TENSOR(BYOC_F32, 2, 2);
        struct eval e = {.op = byi_op(ops[i]), .n_in = 1, .n_out = 1};
        e.in[0] = x;
        e.out[0] = TENSOR(BYOC_F32, 2, 2);
        assert_int_equal(byi_attrs_make(arena, e.op, NULL, 0, &e.attrs, &err),
                         0);
        e.in[0].dtype = e.out[0].dtype = BYOC_C64;
        assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
        assert_non_null(strstr(err.text, "found dtype complex64, expected"));
        e.in[0].dtype = e.out[0].dtype = BYOC_F32;
        finish(&e);
    }
}

static void test_unaligned_operand(void **state)
{
    (void)state;
    char bytes[2 * sizeof(float) + 1];
    memcpy(bytes + 1, (const float[]){1, 2}, 2 * sizeof(float));
    struct byi_tensor in[] = {
        {.data = bytes + 1, .dtype = BYOC_F32, .rank = 1, .dims = {2}},
        TENSOR(BYOC_F32, 2)};
    set(&in[1], (const double[]){10, 20});
    struct eval e = prepare(BYI_OP_ADD, NULL, 0, in, 2);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){11, 22});
    release(&e.out[0]);
    release(&e.in[1]);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operator),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_matmul_types),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_einsum),
        cmocka_unit_test(test_det),
        cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_inverse_sizes),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_max_min),
        cmocka_unit_test(test_reduce_rows),
        cmocka_unit_test(test_reduce_shapes),
        cmocka_unit_test(test_reduce_threads),
        cmocka_unit_test(test_reduce_by_hand),
        cmocka_unit_test(test_arg_ties_and_nan),
        cmocka_unit_test(test_argmax_of_each_dtype),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_shapes),
        cmocka_unit_test(test_norm_shapes),
        cmocka_unit_test(test_unit_rows),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_other_norms),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_unaligned_operand),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
