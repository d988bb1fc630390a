/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h: one call of a kernel in a test: operands of random bytes, shapes
 * from the type rule, and results followed by canaries.
 */
#ifndef BYI_TESTS_TRIAL_H
#define BYI_TESTS_TRIAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_native/native.h"

#include <cmocka.h>

enum { MAX_IO = 8, CANARY = 32, ROUNDS = 60 };

/* Memory of one test, and the state of its random numbers. setup() and
 * teardown() are cmocka's fixtures. */
static struct byi_arena *arena;
static uint64_t seed;

static inline int setup(void **state)
{
    (void)state;
    arena = byi_arena_new();
    seed = 88172645463325252u;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    byi_arena_free(&arena);
    return 0;
}

/* A random number from low to high, both included (Marsaglia's xorshift64). */
static inline int64_t pick(int64_t low, int64_t high)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return low + (int64_t)(seed % (uint64_t)(high - low + 1));
}

/* Bytes of an element; a string is a pointer. */
static inline size_t element_size(enum byoc_dtype dtype)
{
    return dtype == BYOC_STRING ? sizeof(char *) : byoc_dtype_size(dtype);
}

/* The number of elements. */
static inline int64_t count(const struct byi_tensor *t)
{
    return byi_elements(t->rank, t->dims);
}

/* A tensor of random bytes, followed by a canary; the arena owns both. */
static inline struct byi_tensor make(enum byoc_dtype dtype, uint32_t rank,
                                     const int64_t *dims)
{
    struct byi_tensor t = {.dtype = dtype, .rank = rank};
    if (rank)
        memcpy(t.dims, dims, rank * sizeof *dims);
    const size_t bytes = (size_t)count(&t) * element_size(dtype);
    unsigned char *data = byi_arena_alloc(arena, bytes + CANARY);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)pick(0, 255);
    memset(data + bytes, 0xa5, CANARY);
    t.data = data;
    return t;
}

/* A vector of these integers; a scalar if n is 0. */
static inline struct byi_tensor ints(uint32_t n, const int64_t *values)
{
    const int64_t dims[] = {n};
    struct byi_tensor t = make(BYOC_I64, n > 0, dims);
    memcpy(t.data, values, (n ? n : 1) * sizeof *values);
    return t;
}

/* A tensor of random rank, dims up to max_dim and element type. */
static inline struct byi_tensor random_tensor(int64_t max_dim)
{
    static const enum byoc_dtype dtypes[] = {BYOC_U8,  BYOC_I16,  BYOC_F32,
                                             BYOC_I64, BYOC_C128, BYOC_STRING};
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = (uint32_t)pick(1, 5);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = pick(0, 40) ? pick(1, max_dim) : 0;
    return make(dtypes[pick(0, 5)], rank, dims);
}

/* The new_symbol() of struct byi_infer: fails the test. */
static inline int64_t no_symbol(void *ctx)
{
    (void)ctx;
    fail_msg("found an unknown dim, although every value is known");
    return -1;
}

/* A call: its operands, and after run() its results. */
struct trial {
    const struct byi_op *op;
    uint32_t n_in, n_out;
    struct byi_tensor in[MAX_IO], out[MAX_IO];
    struct byoc_error err;
};

/* The operator's attributes from a JSON object; the arena owns them. */
static inline const struct byi_attrs *read_attrs(const struct byi_op *op,
                                                 const char *text)
{
    struct cJSON *json = NULL;
    struct byoc_error err;
    const struct byi_attrs *attrs = NULL;
    assert_int_equal(byi_json_parse(text, strlen(text), 4096, &json, &err), 0);
    const struct byi_json root = byi_json_root(json);
    assert_int_equal(byi_attrs_from_json(&root, arena, op, &attrs, &err), 0);
    byi_json_free(&json);
    return attrs;
}

/* Infer the types of the results, run the operator on 1 to 3 threads, and check
 * the canaries after the results. Its attributes are the JSON object `text`.
 * Returns the status of the type rule or kernel, with the error in t->err. */
static inline enum byoc_status run(struct trial *t, enum byi_op_id id,
                                   const char *text)
{
    const struct byi_type *in[MAX_IO], *out = NULL;
    const struct byi_tensor *values[MAX_IO];
    size_t bytes[MAX_IO];
    t->op = byi_op(id);
    const struct byi_attrs *attrs = read_attrs(t->op, text);
    for (uint32_t i = 0; i < t->n_in; i++) {
        in[i] = byi_type_tensor(arena, t->in[i].dtype, t->in[i].rank,
                                t->in[i].dims);
        values[i] = &t->in[i];
    }
    struct byi_infer infer = {.arena = arena,
                              .op = t->op,
                              .attrs = attrs,
                              .n_in = t->n_in,
                              .in = in,
                              .value = values,
                              .bounds = true,
                              .new_symbol = no_symbol,
                              .err = &t->err};
    BYI_TRY(byi_infer_type(&infer, &out));
    t->n_out = out->kind == BYI_TUPLE ? out->n_fields : 1;
    for (uint32_t i = 0; i < t->n_out; i++) {
        const struct byi_type *f =
            out->kind == BYI_TUPLE ? out->fields[i] : out;
        t->out[i] = make(f->dtype, f->rank, f->dims);
        bytes[i] = byi_tensor_bytes(&t->out[i]);
    }
    BYI_TRY(byoc_internal_kernel_eval(t->op, attrs, t->n_in, t->in, t->n_out,
                                      t->out, (uint32_t)pick(1, 3), &t->err));
    for (uint32_t i = 0; i < t->n_out; i++)
        for (size_t k = 0; k < CANARY; k++)
            assert_int_equal(((unsigned char *)t->out[i].data)[bytes[i] + k],
                             0xa5);
    return BYOC_OK;
}

/* run() that fails the test on an error. */
static inline void must_run(struct trial *t, enum byi_op_id id,
                            const char *text)
{
    if (run(t, id, text) != BYOC_OK)
        fail_msg("%s", t->err.text);
}

/* A copy of `format` with the n values, separated by commas, in place of its
 * %s. */
static inline char *text_of(const char *format, uint32_t n,
                            const int64_t *values)
{
    struct byi_text text = {0};
    for (uint32_t i = 0; i < n; i++)
        byi_text_addf(&text, "%s%lld", i ? ", " : "", (long long)values[i]);
    const char *at = strstr(format, "%s");
    char *result = byi_arena_printf(arena, "%.*s%s%s", (int)(at - format),
                                    format, n ? text.at : "", at + 2);
    byi_text_free(&text);
    return result;
}

/* The index of the element at the coordinates at[]; unflat() is its inverse. */
static inline int64_t flat(const struct byi_tensor *t, const int64_t *at)
{
    int64_t i = 0;
    for (uint32_t k = 0; k < t->rank; k++) {
        assert_true(at[k] >= 0 && at[k] < t->dims[k]);
        i = i * t->dims[k] + at[k];
    }
    return i;
}

static inline void unflat(const struct byi_tensor *t, int64_t i, int64_t *at)
{
    for (uint32_t k = t->rank; k-- > 0;) {
        at[k] = i % t->dims[k];
        i /= t->dims[k];
    }
}

#endif
