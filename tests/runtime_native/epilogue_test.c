/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_test.c: compares convolutions and products with epilogues with the
 * same operators one by one. It uses every instruction set, packed weights and
 * not, one and several threads, and sizes for each algorithm.
 */
#include "kernels.h"

#include "core/ops/epilogue.h"

enum {
    MAX_CHAIN = 4,      /* operators of a chain */
    SCALED_OPERANDS = 6 /* operands of a qnn.matmul with a float result */
};

/* One operator of an epilogue, and the shape of its other operand: one number,
 * a number for each position of the last axis, or the result's shape. */
struct chain_op {
    enum byi_op_id op;
    enum { NONE, NUMBER, ROW, WHOLE } operand;
    double p0, p1; /* bounds of `clip` */
};

static const struct chain_op chains[][MAX_CHAIN] = {
    {{BYI_OP_ADD, ROW, 0, 0}, {BYI_OP_NN_RELU, NONE, 0, 0}},
    {{BYI_OP_ADD, ROW, 0, 0},
     {BYI_OP_ADD, WHOLE, 0, 0},
     {BYI_OP_NN_RELU, NONE, 0, 0}},
    {{BYI_OP_ADD, WHOLE, 0, 0}, {BYI_OP_CLIP, NONE, -1, 2}},
    {{BYI_OP_MULTIPLY, NUMBER, 0, 0},
     {BYI_OP_ADD, ROW, 0, 0},
     {BYI_OP_NN_SILU, NONE, 0, 0},
     {BYI_OP_ADD, WHOLE, 0, 0}},
    {{BYI_OP_MULTIPLY, ROW, 0, 0},
     {BYI_OP_ADD, NUMBER, 0, 0},
     {BYI_OP_NN_SILU, NONE, 0, 0}},
    {{BYI_OP_ADD, NUMBER, 0, 0},
     {BYI_OP_SUBTRACT, WHOLE, 0, 0},
     {BYI_OP_DIVIDE, ROW, 0, 0},
     {BYI_OP_TANH, NONE, 0, 0}},
};

/* The convolution or product before a chain. */
struct producer {
    const char *name;
    enum byi_op_id op;
    int64_t x[5], w[5]; /* dims of data and weights, of these ranks */
    uint32_t ranks[2], n;
    struct byi_attr attrs[4]; /* n attributes */
};

#define PAD_BY_1 INTS("padding", 4, ((const int64_t[]){1, 1, 1, 1}))
#define LAYOUTS(data, kernel)                                                  \
    STRING("data_layout", data), STRING("kernel_layout", kernel)

static const struct producer producers[] = {
    {"direct",
     BYI_OP_NN_CONV2D,
     {2, 9, 7, 5},
     {3, 2, 5, 19},
     {4, 4},
     3,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1}},
    {"winograd",
     BYI_OP_NN_CONV2D,
     {1, 13, 12, 20},
     {3, 3, 20, 34},
     {4, 4},
     3,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1}},
    {"padded rows",
     BYI_OP_NN_CONV2D,
     {3, 30, 31, 3},
     {3, 3, 3, 18},
     {4, 4},
     3,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1}},
    {"depthwise",
     BYI_OP_NN_CONV2D,
     {1, 8, 9, 21},
     {3, 3, 1, 21},
     {4, 4},
     4,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1, INT("groups", 21)}},
    {"grouped",
     BYI_OP_NN_CONV2D,
     {1, 8, 9, 12},
     {3, 3, 4, 18},
     {4, 4},
     4,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1, INT("groups", 3)}},
    {"transposed",
     BYI_OP_NN_CONV1D_TRANSPOSE,
     {2, 11, 6},
     {3, 6, 17},
     {3, 3},
     2,
     {LAYOUTS("NWC", "WIO")}},
    {"no channels",
     BYI_OP_NN_CONV2D,
     {1, 5, 5, 0},
     {3, 3, 0, 6},
     {4, 4},
     3,
     {LAYOUTS("NHWC", "HWIO"), PAD_BY_1}},
    {"channels first",
     BYI_OP_NN_CONV2D,
     {2, 5, 9, 7},
     {19, 5, 3, 2},
     {4, 4},
     1,
     {PAD_BY_1}},
    {"channels first, pointwise",
     BYI_OP_NN_CONV1D,
     {3, 20, 137},
     {7, 20, 1},
     {3, 3},
     0,
     {{0}}},
    {"channels first, depthwise",
     BYI_OP_NN_CONV2D,
     {2, 6, 9, 8},
     {6, 1, 3, 3},
     {4, 4},
     2,
     {PAD_BY_1, INT("groups", 6)}},
    {"channels first, transposed",
     BYI_OP_NN_CONV1D_TRANSPOSE,
     {2, 6, 11},
     {6, 17, 3},
     {3, 3},
     0,
     {{0}}},
    {"channels first, no channels",
     BYI_OP_NN_CONV2D,
     {2, 0, 5, 5},
     {6, 0, 3, 3},
     {4, 4},
     1,
     {PAD_BY_1}},
    {"vector", BYI_OP_NN_DENSE, {1, 70}, {33, 70}, {2, 2}, 0, {{0}}},
    {"few rows", BYI_OP_NN_MATMUL, {3, 70}, {70, 33}, {2, 2}, 0, {{0}}},
    {"few rows, transposed",
     BYI_OP_NN_DENSE,
     {5, 70},
     {33, 70},
     {2, 2},
     0,
     {{0}}},
    {"rows", BYI_OP_NN_MATMUL, {2, 37, 40}, {40, 50}, {3, 2}, 0, {{0}}},
    {"transposed rows",
     BYI_OP_NN_MATMUL,
     {40, 37},
     {40, 50},
     {2, 2},
     1,
     {BOOL("transpose_a", true)}},
};

static uint32_t length_of(const struct chain_op *chain)
{
    uint32_t n = 0;
    while (n < MAX_CHAIN && chain[n].op != BYI_OP_NONE)
        n++;
    return n;
}

/* Whether an operand has the result's shape. */
static bool has_whole(const struct chain_op *chain)
{
    for (uint32_t i = 0; i < MAX_CHAIN; i++)
        if (chain[i].operand == WHOLE)
            return true;
    return false;
}

/* A random second operand for the operator, on a result like `out`. */
static struct byi_tensor operand_of(const struct chain_op *f,
                                    const struct byi_tensor *out, uint32_t axis)
{
    int64_t row[5] = {out->dims[axis], 1, 1, 1, 1};
    struct byi_tensor t =
        f->operand == WHOLE ? tensor(BYOC_F32, out->rank, out->dims)
        : f->operand == ROW ? tensor(BYOC_F32, out->rank - axis, row)
                            : TENSOR(BYOC_F32, 1);
    for (int64_t i = 0; i < byi_count(&t); i++) /* no quotient is huge */
        if (fabs(byi_tensor_float(&t, i)) < 0.25)
            byi_tensor_set(&t, i, 0.5);
    return t;
}

/* y = op(y, operand), by the operator's own kernel. */
static void apply(const struct byi_epilogue_op *op, struct byi_tensor *y,
                  const struct byi_tensor *operand)
{
    struct byi_tensor in[2] = {*y},
                      out = empty_tensor(y->dtype, y->rank, y->dims);
    if (operand)
        in[1] = *operand;
    assert_int_equal(byoc_internal_kernel_eval(op->op, op->attrs,
                                               operand ? 2 : 1, in, 1, &out, 1,
                                               &err),
                     BYOC_OK);
    release(y);
    *y = out;
}

static const struct byi_attrs *attrs_of(const struct chain_op *f)
{
    const struct byi_attr clip[] = {FLOAT("a_min", f->p0),
                                    FLOAT("a_max", f->p1)};
    const struct byi_attrs *attrs;
    assert_int_equal(byi_attrs_make(arena, byi_op(f->op), clip,
                                    f->op == BYI_OP_CLIP ? 2 : 0, &attrs, &err),
                     BYOC_OK);
    return attrs;
}

/* Run `call`, packed and not, and compare the results with `expected`; they
 * must not depend on the number of threads. */
static void expect_packed_and_not(struct byi_call *call,
                                  const struct byi_tensor *expected,
                                  const char *what)
{
    const struct byi_packing *packing = byi_packing_of(call->op->id);
    const size_t size = (size_t)byi_count(expected) * sizeof(float);
    for (int packed = 0; packed < 2; packed++) {
        float *first = malloc(size + 1);
        const uint64_t bytes = packed ? packing->pack(call, NULL) : 0;
        void *at = bytes ? byi_acquire(bytes) : NULL;
        if (at)
            assert_int_equal(packing->pack(call, at), bytes);
        call->packed = at;
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            memset(call->out->data, 0x33, size);
            call->threads = threads;
            run_kernel(byi_kernel_of(call->op->id), call);
            assert_near(call->out, expected, 2e-3, what);
            if (threads == 1)
                memcpy(first, call->out->data, size);
            else
                assert_memory_equal(first, call->out->data, size);
        }
        free(first);
        if (at)
            byi_release(at);
        call->packed = NULL;
    }
}

/* Compare a call with an epilogue, and release the call. */
static void check_chain(const char *name, struct eval *e,
                        const struct chain_op *chain)
{
    struct byi_epilogue_op ops[MAX_CHAIN];
    struct byi_tensor in[SCALED_OPERANDS + MAX_CHAIN];
    const uint32_t n = length_of(chain), n_op_in = e->n_in;
    uint32_t n_in = n_op_in;
    memcpy(in, e->in, n_op_in * sizeof *in);
    assert_true(e->typed);
    assert_int_equal(run_fast(e, 1), BYOC_OK);
    struct byi_tensor expected =
        empty_tensor(BYOC_F32, e->out->rank, e->out->dims);
    const uint32_t axis = byi_epilogue_axis(e->op->id, e->attrs, expected.rank);
    memcpy(expected.data, e->out->data, byi_tensor_bytes(&expected));
    const struct byi_type *out =
        byi_type_tensor(arena, BYOC_F32, expected.rank, expected.dims);
    for (uint32_t i = 0; i < n; i++) {
        ops[i] =
            (struct byi_epilogue_op){byi_op(chain[i].op), attrs_of(&chain[i])};
        if (chain[i].operand != NONE)
            in[n_in++] = operand_of(&chain[i], &expected, axis);
        const struct byi_tensor *t =
            chain[i].operand != NONE ? &in[n_in - 1] : NULL;
        assert_true(byi_epilogue_allows(
            chain[i].op, out, axis,
            t ? byi_type_tensor(arena, t->dtype, t->rank, t->dims) : NULL));
        apply(&ops[i], &expected, t);
    }
    struct byi_call call = {.op = e->op,
                            .attrs = e->attrs,
                            .n_in = n_in,
                            .n_out = 1,
                            .in = in,
                            .out = e->out,
                            .n_epilogue = n,
                            .epilogue = ops};
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        if (use(isa))
            expect_packed_and_not(&call, &expected, name);
    for (uint32_t i = n_op_in; i < n_in; i++)
        release(&in[i]);
    release(&expected);
    finish(e);
}

static struct eval prepare_producer(const struct producer *producer)
{
    const struct byi_tensor in[2] = {
        tensor(BYOC_F32, producer->ranks[0], producer->x),
        tensor(BYOC_F32, producer->ranks[1], producer->w)};
    return prepare(producer->op, producer->attrs, producer->n, in, 2);
}

/* A product of bytes that is scaled to float32, one scale for each of n columns
 * or one for all. */
static struct eval prepare_bytes(int64_t m, int64_t k, int64_t n,
                                 bool one_scale)
{
    const struct byi_tensor in[SCALED_OPERANDS] = {
        TENSOR(BYOC_U8, m, k),
        TENSOR(BYOC_I8, k, n),
        TENSOR(BYOC_U8, 1),
        TENSOR(BYOC_I8, 1),
        TENSOR(BYOC_I32, 1),
        one_scale ? TENSOR(BYOC_F32, 1) : TENSOR(BYOC_F32, n)};
    return prepare(BYI_OP_QNN_MATMUL, NULL, 0, in, SCALED_OPERANDS);
}

static void test_chains(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(producers); i++)
        for (size_t k = 0; k < BYI_COUNT(chains); k++) {
            struct eval e = prepare_producer(&producers[i]);
            if (!strncmp(producers[i].name, "channels first", 14) &&
                has_whole(chains[k])) {
                finish(&e);
                continue;
            }
            check_chain(producers[i].name, &e, chains[k]);
        }
}

static void test_scaled_bytes(void **state)
{
    static const int64_t sizes[][3] = {{1, 70, 33}, {37, 40, 50}, {5, 0, 3}};
    (void)state;
    for (size_t i = 0; i < 2 * BYI_COUNT(sizes); i++)
        for (size_t k = 0; k < BYI_COUNT(chains); k++) {
            const int64_t *size = sizes[i / 2];
            struct eval e = prepare_bytes(size[0], size[1], size[2], i % 2);
            check_chain("bytes", &e, chains[k]);
        }
}

/* An operand whose shape only the run knows, and does not fit, is an error. */
static void test_wrong_shape(void **state)
{
    (void)state;
    struct byi_tensor in[3] = {TENSOR(BYOC_F32, 4, 6), TENSOR(BYOC_F32, 5, 6),
                               TENSOR(BYOC_F32, 3, 5)};
    struct eval e = prepare(BYI_OP_NN_DENSE, NULL, 0, in, 2);
    const struct byi_epilogue_op add = {byi_op(BYI_OP_ADD), NULL};
    struct byi_call call = {.op = e.op,
                            .attrs = e.attrs,
                            .n_in = 3,
                            .n_out = 1,
                            .in = in,
                            .out = e.out,
                            .n_epilogue = 1,
                            .epilogue = &add,
                            .threads = 1};
    const struct byi_kernel *kernel = byi_kernel_of(BYI_OP_NN_DENSE);
    call.scratch = byi_acquire(kernel->scratch(&call));
    assert_int_equal(kernel->run(&call, &err), BYOC_ETYPE);
    assert_non_null(strstr(err.text, "operand 2 has shape"));
    byi_release(call.scratch);
    release(&in[2]);
    finish(&e);
}

/* Operators and operands that cannot be in an epilogue. */
static void test_refusals(void **state)
{
    (void)state;
    const struct byi_type *out =
        byi_type_tensor(arena, BYOC_F32, 3, DIMS(2, 3, 4));
    const struct byi_type *weights =
        byi_type_tensor(arena, BYOC_F32, 2, DIMS(4, 4));
    const struct byi_type *narrow =
        byi_type_tensor(arena, BYOC_F16, 1, DIMS(4));
    const struct byi_type *column =
        byi_type_tensor(arena, BYOC_F32, 2, DIMS(3, 1));
    assert_true(byi_epilogue_allows(BYI_OP_ADD, out, 2, out));
    assert_false(byi_epilogue_allows(BYI_OP_ADD, out, 2, NULL));
    assert_false(byi_epilogue_allows(BYI_OP_ADD, out, 2, narrow));
    assert_false(byi_epilogue_allows(BYI_OP_ADD, out, 2, column));
    assert_true(byi_epilogue_allows(BYI_OP_ADD, out, 1, column));
    assert_false(byi_epilogue_allows(BYI_OP_ADD, out, 1, out));
    assert_false(byi_epilogue_allows(BYI_OP_POWER, out, 2, out));
    assert_false(byi_epilogue_allows(BYI_OP_NN_SOFTMAX, out, 2, NULL));
    assert_true(
        byi_epilogue_is_supported(BYI_OP_NN_DENSE, NULL, 2, weights, out));
    assert_false(
        byi_epilogue_is_supported(BYI_OP_NN_MATMUL, NULL, 2, out, out));
    assert_false(
        byi_epilogue_is_supported(BYI_OP_NN_DENSE, NULL, 2, narrow, out));
    assert_false(byi_epilogue_is_supported(BYI_OP_ADD, NULL, 2, weights, out));
    assert_false(
        byi_epilogue_is_supported(BYI_OP_NN_DENSE, NULL, 3, weights, out));
    const struct byi_type *bytes =
        byi_type_tensor(arena, BYOC_I8, 2, DIMS(4, 4));
    assert_true(
        byi_epilogue_is_supported(BYI_OP_QNN_MATMUL, NULL, 6, bytes, out));
    assert_false(
        byi_epilogue_is_supported(BYI_OP_QNN_MATMUL, NULL, 7, bytes, out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_scaled_bytes),
        cmocka_unit_test(test_wrong_shape),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
