/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h: shared by the tests of kernels: makes random tensors and calls,
 * infers the types of results, and compares results. A canary of CANARY
 * bytes after each tensor detects writes past it.
 */
#ifndef BYI_TEST_KERNELS_H
#define BYI_TEST_KERNELS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_native/kernel.h"

#include <cmocka.h>

enum { MAX_OUT = 4, CANARY = 64 };

/* Memory of one test, the error of its last call, and the state of its random
 * numbers. setup() and teardown() are cmocka's fixtures. */
static struct byi_arena *arena;
static struct byoc_error err;
static uint64_t seed = 1;

static int setup(void **state)
{
    (void)state;
    arena = byi_arena_new();
    seed = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    byi_arena_free(&arena);
    return 0;
}

/* xorshift64* (Vigna 2014) */
static inline uint64_t random_bits(void)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 2685821657736338717u;
}

/* A random number from low to high, both included. */
static inline int64_t random_in(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

/* Bytes of an element; a string is a pointer. */
static inline size_t element_size(enum byoc_dtype dtype)
{
    return dtype == BYOC_STRING ? sizeof(char *) : byoc_dtype_size(dtype);
}

/* A tensor of zeros, followed by a canary; release() frees it. */
static inline struct byi_tensor empty_tensor(enum byoc_dtype dtype,
                                             uint32_t rank, const int64_t *dims)
{
    struct byi_tensor t = {.dtype = dtype, .rank = rank};
    if (rank)
        memcpy(t.dims, dims, rank * sizeof *dims);
    t.data = calloc((size_t)byi_count(&t) * element_size(dtype) + CANARY, 1);
    assert_non_null(t.data);
    memset((char *)t.data + (size_t)byi_count(&t) * element_size(dtype), 0x5a,
           CANARY);
    return t;
}

/* A tensor with random elements in [-4, 4): floats with 10 fractional bits, or
 * integers. release() frees it. */
static inline struct byi_tensor tensor(enum byoc_dtype dtype, uint32_t rank,
                                       const int64_t *dims)
{
    struct byi_tensor t = empty_tensor(dtype, rank, dims);
    for (int64_t i = 0; i < byi_count(&t); i++) {
        double v = (double)random_in(-4096, 4095) / 1024;
        if (dtype == BYOC_BOOL)
            v = random_in(0, 1) ? 1 : 0;
        else if (!byi_dtype_is_float(dtype))
            v = trunc(v);
        byi_tensor_set(&t, i, v);
    }
    return t;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define RANK(...) ((uint32_t)BYI_COUNT(DIMS(__VA_ARGS__)))
#define TENSOR(dtype, ...) tensor(dtype, RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

/* Fail the test if the canary after the tensor was overwritten. */
static inline void check_canary(const struct byi_tensor *t)
{
    const uint8_t *end = (const uint8_t *)t->data +
                         (size_t)byi_count(t) * element_size(t->dtype);
    for (int i = 0; i < CANARY; i++)
        assert_int_equal(end[i], 0x5a);
}

/* Check the canary, and free the tensor's elements. */
static inline void release(struct byi_tensor *t)
{
    check_canary(t);
    free(t->data);
    t->data = NULL;
}

/* Attributes in the notation of C. */
#define INT(key, value)                                                        \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_INT, .i = value                          \
    }
#define BOOL(key, value)                                                       \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_BOOL, .i = value                         \
    }
#define FLOAT(key, value)                                                      \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_FLOAT, .f = value                        \
    }
#define STRING(key, value)                                                     \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_STRING, .s = value                       \
    }
#define DTYPE(key, value)                                                      \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_DTYPE, .i = value                        \
    }
#define INTS(key, count, values)                                               \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_INTS, .n = count, .ints = values         \
    }

/* A call, its operands, and memory for results of the type rule's types. */
struct eval {
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    uint32_t n_in, n_out;
    struct byi_tensor in[8], out[MAX_OUT];
    bool typed; /* the type rule accepted it */
};

/* A call of `op` with n attributes. finish() frees its operands, which it takes
 * from in[], and its results; there are none if the type rule refuses it. */
static inline struct eval prepare(enum byi_op_id op,
                                  const struct byi_attr *attrs, uint32_t n,
                                  const struct byi_tensor *in, uint32_t n_in)
{
    struct eval e = {.op = byi_op(op), .n_in = n_in};
    const struct byi_type *types[8], *out = NULL;
    const struct byi_tensor *values[8];
    err = (struct byoc_error){0};
    assert_int_equal(byi_attrs_make(arena, e.op, attrs, n, &e.attrs, &err), 0);
    for (uint32_t i = 0; i < n_in; i++) {
        e.in[i] = in[i];
        types[i] = byi_type_tensor(arena, in[i].dtype, in[i].rank, in[i].dims);
        values[i] = &in[i];
    }
    struct byi_infer infer = {
        .arena = arena,
        .op = e.op,
        .attrs = e.attrs,
        .n_in = n_in,
        .in = types,
        .value = values,
        .bounds = true,
        .err = &err,
    };
    if (byi_infer_type(&infer, &out) != BYOC_OK)
        return e;
    e.typed = true;
    e.n_out = out->kind == BYI_TUPLE ? out->n_fields : 1;
    for (uint32_t i = 0; i < e.n_out; i++) {
        const struct byi_type *t =
            out->kind == BYI_TUPLE ? out->fields[i] : out;
        e.out[i] = empty_tensor(t->dtype, t->rank, t->dims);
    }
    return e;
}

/* Run the operator's kernel as a model does. Returns its status. */
static inline enum byoc_status run_fast(struct eval *e, uint32_t threads)
{
    return byoc_internal_kernel_eval(e->op, e->attrs, e->n_in, e->in, e->n_out,
                                     e->out, threads, &err);
}

typedef enum byoc_status (*plain_fn)(const struct byi_call *call,
                                     struct byoc_error *err);

/* Run a plain form on the same operands, with new tensors for the results. */
static inline void run_plain(const struct eval *e, plain_fn plain,
                             struct byi_tensor *out)
{
    static char scratch[1 << 20] __attribute__((aligned(64)));
    for (uint32_t i = 0; i < e->n_out; i++)
        out[i] = empty_tensor(e->out[i].dtype, e->out[i].rank, e->out[i].dims);
    const struct byi_call call = {
        .op = e->op,
        .attrs = e->attrs,
        .n_in = e->n_in,
        .n_out = e->n_out,
        .in = e->in,
        .out = out,
        .scratch = scratch,
        .threads = 1,
    };
    assert_int_equal(plain(&call, &err), BYOC_OK);
}

/* Make the kernel table for `isa` the current one; NULL if the machine lacks
 * it. */
static inline const struct byi_simd *use(int isa)
{
    return byi_simd_use((enum byi_isa)isa) ? byi_simd() : NULL;
}

/* Set the elements, in row-major order. */
static inline void set(struct byi_tensor *t, const double *values)
{
    for (int64_t i = 0; i < byi_count(t); i++)
        byi_tensor_set(t, i, values[i]);
}

/* |a - b| <= bound (1 + |b|); NaN and infinities must agree. */
static inline bool is_near(double a, double b, double bound)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= bound * (1 + fabs(b));
}

/* Check that all elements are near these values. */
static inline void expect(const struct byi_tensor *t, const double *values)
{
    for (int64_t i = 0; i < byi_count(t); i++)
        if (!is_near(byi_tensor_float(t, i), values[i], 1e-6))
            fail_msg("element %lld is %g, expected %g", (long long)i,
                     byi_tensor_float(t, i), values[i]);
}

/* byi_tensor_float, without a call for the type of most large tensors. */
static inline double element(const struct byi_tensor *t, int64_t i)
{
    return t->dtype == BYOC_F32 ? (double)((const float *)t->data)[i]
                                : byi_tensor_float(t, i);
}

/* Check that the tensors have one type, and near elements (see is_near());
 * `what` is for the message. */
static inline void assert_near(const struct byi_tensor *a,
                               const struct byi_tensor *b, double bound,
                               const char *what)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_true(byi_dims_equal(a->rank, a->dims, b->rank, b->dims));
    for (int64_t i = 0; i < byi_count(a); i++) {
        const double x = element(a, i), y = element(b, i);
        if (!is_near(x, y, bound))
            fail_msg("%s: element %lld is %.9g, expected %.9g", what,
                     (long long)i, x, y);
    }
}

/* Check the canaries of the operands and results, and free both. */
static inline void finish(struct eval *e)
{
    for (uint32_t i = 0; i < e->n_out; i++)
        release(&e->out[i]);
    for (uint32_t i = 0; i < e->n_in; i++)
        release(&e->in[i]);
}

/* Run a kernel with exactly the scratch that it requests, and check that it
 * does not write past it. */
static inline void run_kernel(const struct byi_kernel *kernel,
                              struct byi_call *call)
{
    const uint64_t bytes = kernel->scratch ? kernel->scratch(call) : 0;
    uint8_t *scratch = byi_acquire(bytes + CANARY);
    memset(scratch + bytes, 0x5a, CANARY);
    call->scratch = bytes ? scratch : NULL;
    assert_int_equal(kernel->run(call, &err), BYOC_OK);
    for (int i = 0; i < CANARY; i++)
        assert_int_equal(scratch[bytes + (uint64_t)i], 0x5a);
    byi_release(scratch);
}

/* Run the kernel with its constant operands packed; `exact` as in struct
 * byi_call. Returns false if it does not pack them. */
static inline bool run_packed_exact(struct eval *e, uint32_t threads,
                                    bool exact)
{
    const struct byi_packing *packing = byi_packing_of(e->op->id);
    struct byi_call call = {.op = e->op,
                            .attrs = e->attrs,
                            .n_in = e->n_in,
                            .n_out = e->n_out,
                            .in = e->in,
                            .out = e->out,
                            .exact = exact,
                            .threads = threads};
    const uint64_t bytes = packing ? packing->pack(&call, NULL) : 0;
    if (bytes == 0)
        return false;
    void *packed = byi_acquire(bytes);
    assert_int_equal(packing->pack(&call, packed), bytes);
    call.packed = packed;
    run_kernel(byi_kernel_of(e->op->id), &call);
    byi_release(packed);
    return true;
}

/* run_packed_exact() with `exact`. */
static inline bool run_packed(struct eval *e, uint32_t threads)
{
    return run_packed_exact(e, threads, true);
}

/* Fill the outputs with a pattern, so that elements that a kernel does not
 * write are detected. */
static inline void spoil_outputs(struct eval *e)
{
    for (uint32_t i = 0; i < e->n_out; i++)
        memset(e->out[i].data, 0x33,
               (size_t)byi_count(&e->out[i]) * element_size(e->out[i].dtype));
}

/* Check that the kernel, with one and several threads and every instruction
 * set, packed and not, gives the results of the plain form. */
static inline void expect_plain(struct eval *e, plain_fn plain, double bound,
                                const char *what)
{
    struct byi_tensor out[MAX_OUT];
    assert_true(e->typed);
    run_plain(e, plain, out);
    for (int round = 0; round < 2 * BYI_N_ISAS; round++) {
        const uint32_t threads = round % 2 ? 3 : 1;
        if (!use(round / 2))
            continue;
        spoil_outputs(e);
        if (run_fast(e, threads) != BYOC_OK)
            fail_msg("%s: %s", what, err.text);
        for (uint32_t i = 0; i < e->n_out; i++)
            assert_near(&e->out[i], &out[i], bound, what);
        spoil_outputs(e);
        const bool packs = run_packed(e, threads);
        for (uint32_t i = 0; packs && i < e->n_out; i++)
            assert_near(&e->out[i], &out[i], bound, what);
    }
    for (uint32_t i = 0; i < e->n_out; i++)
        release(&out[i]);
    finish(e);
}

#endif
