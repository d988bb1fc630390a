/* SPDX-License-Identifier: Apache-2.0 */
/* movement_test.c: tests the kernels that move data, compared with references
 * that compute the source of each result element. Shapes, element types and
 * thread counts are random, from fixed seeds; results have canaries after them.
 */
#include "runtime_native/kernel.h"
#include "trial.h"

/* Sets from[] to the element of operand 0 from which element position[] of the
 * result comes. Returns false if it comes from operand 2, the padding value. */
typedef bool (*source_fn)(const void *ctx, const struct trial *t,
                          const int64_t *position, int64_t *from);

static void check_sources(const struct trial *t, source_fn source_of,
                          const void *ctx)
{
    const struct byi_tensor *x = &t->in[0], *y = &t->out[0];
    const size_t size = element_size(x->dtype);
    for (int64_t i = 0; i < count(y); i++) {
        int64_t position[2 * BYI_MAX_RANK] = {0}, from[2 * BYI_MAX_RANK] = {0};
        unflat(y, i, position);
        const char *expected = t->in[2].data;
        if (source_of(ctx, t, position, from))
            expected = (const char *)x->data + (size_t)flat(x, from) * size;
        if (memcmp((const char *)y->data + (size_t)i * size, expected, size) !=
            0)
            fail_msg("%s: element %lld differs", t->op->name, (long long)i);
    }
}

static bool axes_source(const void *ctx, const struct trial *t,
                        const int64_t *position, int64_t *from)
{
    const int64_t *axes = ctx;
    for (uint32_t i = 0; i < t->in[0].rank; i++)
        from[axes[i]] = position[i];
    return true;
}

static void test_transpose(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct trial t = {.n_in = 1, .in = {random_tensor(round % 8 ? 7 : 37)}};
        int64_t axes[BYI_MAX_RANK];
        const uint32_t rank = t.in[0].rank;
        for (uint32_t i = 0; i < rank; i++) {
            const int64_t k = pick(0, i);
            axes[i] = axes[k];
            axes[k] = i;
        }
        if (count(&t.in[0]) > 1000000)
            continue;
        must_run(&t, BYI_OP_TRANSPOSE, text_of("{\"axes\": [%s]}", rank, axes));
        check_sources(&t, axes_source, axes);
    }
}

/* Matrices, over the edges of the tiles of each instruction set. */
static void test_transpose_matrices(void **state)
{
    (void)state;
    static const int64_t axes[] = {0, 2, 1};
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_U8, BYOC_F16};
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        if (!byi_simd_use((enum byi_isa)isa))
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            const int64_t dims[] = {pick(1, 2), pick(1, 150), pick(1, 150)};
            const enum byoc_dtype dtype = dtypes[round % 3];
            struct trial t = {.n_in = 1, .in = {make(dtype, 3, dims)}};
            must_run(&t, BYI_OP_TRANSPOSE, "{\"axes\": [0, 2, 1]}");
            check_sources(&t, axes_source, axes);
        }
    }
    byi_simd_use(byi_isa_widest());
}

/* Two or three long rows, which are larger than a cache. */
static void test_transpose_few(void **state)
{
    (void)state;
    static const int64_t axes[] = {0, 2, 1};
    for (int64_t n_rows = 2; n_rows < 4; n_rows++) {
        const int64_t dims[] = {2, 140001, n_rows};
        struct trial t = {.n_in = 1, .in = {make(BYOC_F32, 3, dims)}};
        must_run(&t, BYI_OP_TRANSPOSE, "{\"axes\": [0, 2, 1]}");
        check_sources(&t, axes_source, axes);
    }
}

static bool modulus_source(const void *ctx, const struct trial *t,
                           const int64_t *position, int64_t *from)
{
    (void)ctx;
    const uint32_t lead = t->out[0].rank - t->in[0].rank;
    for (uint32_t i = 0; i < t->in[0].rank; i++)
        from[i] = position[i + lead] % t->in[0].dims[i];
    return true;
}

/* Broadcasting and tiling both read at the position modulo the size. */
static void test_broadcast_and_tile(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t shape[BYI_MAX_RANK], repeats[BYI_MAX_RANK];
        struct trial t = {.in = {random_tensor(3)}};
        const uint32_t rank = t.in[0].rank;
        shape[0] = pick(1, 3);
        for (uint32_t i = 0; i < rank; i++) {
            shape[i + 1] = t.in[0].dims[i] == 1 ? pick(0, 5) : t.in[0].dims[i];
            repeats[i] = pick(0, 20) ? pick(1, 3) : 0;
        }
        t.n_in = 2;
        t.in[1] = ints(rank + 1, shape);
        must_run(&t, BYI_OP_BROADCAST_TO, "{}");
        check_sources(&t, modulus_source, NULL);
        t.in[1] = ints(rank, repeats);
        must_run(&t, BYI_OP_TILE, "{}");
        check_sources(&t, modulus_source, NULL);
    }
}

/* Rows of a few bytes, between many others: their copies overlap. */
static void test_short_rows(void **state)
{
    (void)state;
    static const int64_t axes[] = {2, 0, 1, 3};
    static const enum byoc_dtype dtypes[] = {BYOC_U8, BYOC_F16, BYOC_F32,
                                             BYOC_F64};
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {pick(1, 9), pick(1, 20), pick(1, 20),
                                pick(1, 24)};
        const int64_t repeats[] = {pick(1, 2), pick(1, 3), pick(1, 3),
                                   pick(1, 3)};
        struct trial t = {
            .n_in = 1,
            .in = {make(dtypes[round % 4], 4, dims), ints(4, repeats)}};
        must_run(&t, BYI_OP_TRANSPOSE, "{\"axes\": [2, 0, 1, 3]}");
        check_sources(&t, axes_source, axes);
        t.n_in = 2;
        must_run(&t, BYI_OP_TILE, "{}");
        check_sources(&t, modulus_source, NULL);
    }
}

/* A slice with a begin and a stride for each axis. */
struct slice {
    int64_t begin[BYI_MAX_RANK], stride[BYI_MAX_RANK];
};

static bool slice_source(const void *ctx, const struct trial *t,
                         const int64_t *position, int64_t *from)
{
    const struct slice *slice = ctx;
    for (uint32_t i = 0; i < t->in[0].rank; i++)
        from[i] = slice->begin[i] + position[i] * slice->stride[i];
    return true;
}

static void test_slice(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct trial t = {.n_in = 5, .in = {random_tensor(9)}};
        const uint32_t rank = t.in[0].rank;
        struct slice slice;
        int64_t end[BYI_MAX_RANK], axes[BYI_MAX_RANK], begin[BYI_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++) {
            const int64_t dim = t.in[0].dims[i];
            const bool back = pick(0, 1) && dim > 0;
            axes[i] = i;
            slice.stride[i] = back ? -pick(1, 3) : pick(1, 3);
            slice.begin[i] = dim ? pick(0, dim - 1) : 0;
            begin[i] =
                pick(0, 1) && dim ? slice.begin[i] - dim : slice.begin[i];
            end[i] = back ? INT64_MIN : pick(0, 1) ? INT64_MAX : pick(0, 9);
        }
        t.in[1] = ints(rank, begin);
        t.in[2] = ints(rank, end);
        t.in[3] = ints(rank, axes);
        t.in[4] = ints(rank, slice.stride);
        must_run(&t, BYI_OP_STRIDED_SLICE, "{}");
        check_sources(&t, slice_source, &slice);
    }
}

/* The attributes of a padding. */
struct pad {
    int64_t pads[2 * BYI_MAX_RANK]; /* begins, then ends */
    char mode;                      /* its first letter; 'w': wrap */
};

static bool pad_source(const void *ctx, const struct trial *t,
                       const int64_t *position, int64_t *from)
{
    const struct pad *pad = ctx;
    for (uint32_t i = 0; i < t->in[0].rank; i++) {
        const uint32_t rank = t->in[0].rank;
        const int64_t dim = t->in[0].dims[i];
        const int64_t low = byi_max(-pad->pads[i], 0);
        const int64_t length = dim - low - byi_max(-pad->pads[i + rank], 0);
        from[i] = position[i] - pad->pads[i];
        if (from[i] >= 0 && from[i] < dim)
            continue;
        if (pad->mode == 'c')
            return false;
        if (pad->mode == 'w')
            from[i] = low + (from[i] - low + 9 * length) % length;
        else if (pad->mode == 'e')
            from[i] = from[i] < 0 ? 0 : dim - 1;
        else
            from[i] = from[i] < 0 ? -from[i] : 2 * dim - 2 - from[i];
    }
    return true;
}

static void test_pad(void **state)
{
    (void)state;
    static const char *const modes[] = {
        "{\"mode\": \"constant\"}", "{\"mode\": \"edge\"}",
        "{\"mode\": \"reflect\"}", "{\"mode\": \"wrap\"}"};
    for (int round = 0; round < ROUNDS; round++) {
        struct trial t = {.n_in = 3, .in = {random_tensor(6)}};
        const uint32_t rank = t.in[0].rank, mode = (uint32_t)pick(0, 3);
        struct pad pad = {.mode = "cerw"[mode]};
        const int64_t padded = pick(0, 63); /* bits: the axes with padding */
        for (uint32_t i = 0; i < 2 * rank; i++) {
            const int64_t dim = t.in[0].dims[i % rank];
            const int64_t cropped = dim / 3;
            const int64_t max_pad = mode == 0   ? 4
                                    : dim == 0  ? 0
                                    : mode == 2 ? dim - 2 * cropped - 1
                                                : 4;
            const int64_t p = pick(0, 5) ? pick(0, max_pad) : -cropped;
            pad.pads[i] = padded >> i % rank & 1 ? p : 0;
        }
        t.in[1] = ints(2 * rank, pad.pads);
        t.in[2] = make(t.in[0].dtype, 0, NULL);
        must_run(&t, BYI_OP_NN_PAD, modes[mode]);
        check_sources(&t, pad_source, &pad);
    }
}

/* The attributes of depth_to_space. */
struct blocks {
    int64_t size;
    bool depth_first; /* mode DCR */
};

/* depth_to_space by its definition in ONNX. */
static bool depth_source(const void *ctx, const struct trial *t,
                         const int64_t *position, int64_t *from)
{
    const struct blocks *b = ctx;
    const int64_t block =
        position[2] % b->size * b->size + position[3] % b->size;
    const int64_t channels = t->out[0].dims[1];
    from[0] = position[0];
    from[1] = b->depth_first ? block * channels + position[1]
                             : position[1] * b->size * b->size + block;
    from[2] = position[2] / b->size;
    from[3] = position[3] / b->size;
    return true;
}

static void test_blocks(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const struct blocks b = {pick(1, 3), round % 2 == 0};
        const int64_t dims[] = {pick(1, 2), pick(1, 3) * b.size * b.size,
                                pick(1, 20), pick(1, 20)};
        struct trial t = {.n_in = 1, .in = {make(BYOC_F32, 4, dims)}};
        must_run(&t, BYI_OP_DEPTH_TO_SPACE,
                 text_of(b.depth_first
                             ? "{\"block_size\": %s}"
                             : "{\"block_size\": %s, \"mode\": \"CRD\"}",
                         1, &b.size));
        check_sources(&t, depth_source, &b);
        if (!b.depth_first)
            continue;
        struct trial back = {.n_in = 1, .in = {t.out[0]}};
        must_run(&back, BYI_OP_SPACE_TO_DEPTH,
                 text_of("{\"block_size\": %s}", 1, &b.size));
        assert_memory_equal(back.out[0].data, t.in[0].data,
                            byi_tensor_bytes(&t.in[0]));
    }
}

/* split followed by concatenate is the identity; the parts equal slices. */
static void test_split_concatenate(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct trial t = {.n_in = 1, .in = {random_tensor(8)}};
        const int64_t axis = pick(0, t.in[0].rank - 1);
        const int64_t dim = t.in[0].dims[axis];
        const int64_t first = pick(0, dim), values[] = {first, dim - first};
        char *attrs = byi_arena_printf(
            arena, "{\"sizes\": [%lld, %lld], \"axis\": %lld}",
            (long long)values[0], (long long)values[1], (long long)axis);
        must_run(&t, BYI_OP_SPLIT, attrs);
        struct slice slice = {.begin = {0}};
        for (uint32_t i = 0; i < BYI_MAX_RANK; i++)
            slice.stride[i] = 1;
        check_sources(&t, slice_source, &slice);
        struct trial join = {.n_in = 2, .in = {t.out[0], t.out[1]}};
        must_run(&join, BYI_OP_CONCATENATE,
                 text_of("{\"axis\": %s}", 1, &axis));
        assert_int_equal(count(&join.out[0]), count(&t.in[0]));
        assert_memory_equal(join.out[0].data, t.in[0].data,
                            byi_tensor_bytes(&t.in[0]));
    }
}

/* --- indices ------------------------------------------------------------ */

static struct byi_tensor random_indices(uint32_t rank, const int64_t *dims,
                                        int64_t size)
{
    struct byi_tensor t = make(pick(0, 1) ? BYOC_I64 : BYOC_I32, rank, dims);
    for (int64_t i = 0; i < count(&t); i++)
        byi_tensor_set(&t, i, (double)pick(-size, size - 1));
    return t;
}

static int64_t index_at(const struct byi_tensor *t, const int64_t *position,
                        int64_t size)
{
    const int64_t index = byi_tensor_int(t, flat(t, position));
    return index < 0 ? index + size : index;
}

static bool take_source(const void *ctx, const struct trial *t,
                        const int64_t *position, int64_t *from)
{
    const struct byi_tensor *x = &t->in[0], *idx = &t->in[1];
    const int64_t axis = *(const int64_t *)ctx;
    for (int64_t i = 0; i < x->rank; i++)
        from[i] = i < axis    ? position[i]
                  : i == axis ? index_at(idx, position + axis, x->dims[axis])
                              : position[i + idx->rank - 1];
    return true;
}

static bool gather_source(const void *ctx, const struct trial *t,
                          const int64_t *position, int64_t *from)
{
    const int64_t axis = *(const int64_t *)ctx;
    memcpy(from, position, t->in[0].rank * sizeof *from);
    from[axis] = index_at(&t->in[1], position, t->in[0].dims[axis]);
    return true;
}

static void test_take_gather(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct trial t = {.n_in = 2, .in = {random_tensor(6)}};
        const int64_t axis = pick(0, t.in[0].rank - 1);
        int64_t dims[BYI_MAX_RANK];
        if (count(&t.in[0]) == 0)
            continue;
        for (uint32_t i = 0; i < t.in[0].rank; i++)
            dims[i] = i == axis ? pick(0, 9) : pick(1, t.in[0].dims[i]);
        const int64_t shape[] = {pick(1, 4), pick(1, 4)};
        const char *attrs = text_of("{\"axis\": %s}", 1, &axis);
        t.in[1] =
            random_indices((uint32_t)pick(0, 2), shape, t.in[0].dims[axis]);
        must_run(&t, BYI_OP_TAKE, attrs);
        check_sources(&t, take_source, &axis);
        t.in[1] = random_indices(t.in[0].rank, dims, t.in[0].dims[axis]);
        must_run(&t, BYI_OP_GATHER, attrs);
        check_sources(&t, gather_source, &axis);
    }
}

/* A gather of elements that were scattered to distinct positions returns them,
 * and other positions are unchanged. */
static void test_scatter(void **state)
{
    (void)state;
    const int64_t dims[] = {4, 6}, position[] = {2, 2};
    const int64_t places[] = {5, 0, -2, 3}, nd[] = {-1, 0, 1, 5};
    struct trial t = {.n_in = 3, .in = {make(BYOC_F64, 2, dims)}};
    t.in[1] = ints(4, places);
    t.in[1].rank = 2;
    memcpy(t.in[1].dims, position, sizeof position);
    t.in[2] = make(BYOC_F64, 2, position);
    must_run(&t, BYI_OP_SCATTER_ELEMENTS, "{\"axis\": 1}");
    const double *y = t.out[0].data, *x = t.in[0].data, *u = t.in[2].data;
    for (int64_t i = 0; i < 24; i++) {
        const double *expected = i == 5    ? &u[0]
                                 : i == 0  ? &u[1]
                                 : i == 10 ? &u[2]
                                 : i == 9  ? &u[3]
                                           : &x[i];
        assert_memory_equal(&y[i], expected, sizeof *expected);
    }
    memcpy(t.in[1].data, nd, sizeof nd);
    const int64_t two[] = {2};
    t.in[2] = make(BYOC_F64, 1, two);
    u = t.in[2].data;
    must_run(&t, BYI_OP_SCATTER_ND, "{}");
    y = t.out[0].data;
    for (int64_t i = 0; i < 24; i++)
        assert_memory_equal(&y[i],
                            i == 18   ? &u[0]
                            : i == 11 ? &u[1]
                                      : &x[i],
                            sizeof *x);
}

static void test_scatter_reductions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t expected[3];
    } rows[] = {
        {"add", {10, 22, 30}}, {"mul", {10, -700, 30}}, {"max", {10, 20, 30}},
        {"min", {10, -5, 30}}, {"none", {10, 7, 30}},
    };
    const int64_t three[] = {3}, two[] = {2}, places[] = {1, 1};
    const int32_t start[] = {10, 20, 30}, updates[] = {-5, 7};
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        struct trial t = {.n_in = 3};
        t.in[0] = make(BYOC_I32, 1, three);
        memcpy(t.in[0].data, start, sizeof start);
        t.in[1] = ints(2, places);
        t.in[2] = make(BYOC_I32, 1, two);
        memcpy(t.in[2].data, updates, sizeof updates);
        must_run(
            &t, BYI_OP_SCATTER_ELEMENTS,
            byi_arena_printf(arena, "{\"reduction\": \"%s\"}", rows[i].name));
        assert_memory_equal(t.out[0].data, rows[i].expected,
                            sizeof rows[i].expected);
    }
}

/* Maxima and sums of long slices, with any number of threads: the updates of an
 * element are applied in order. */
static void test_scatter_slices(void **state)
{
    (void)state;
    enum { ROWS_OF_X = 9, WIDTH = 500, UPDATES = 300 };
    const int64_t dims[] = {ROWS_OF_X, WIDTH}, position[] = {UPDATES, 1};
    const int64_t shape[] = {UPDATES, WIDTH};
    for (int round = 0; round < 10; round++) { /* run() picks the threads */
        const bool sum = round & 1;
        struct trial t = {.n_in = 3};
        t.in[0] = make(BYOC_F32, 2, dims);
        t.in[1] = make(BYOC_I64, 2, position);
        t.in[2] = make(BYOC_F32, 2, shape);
        float *x = t.in[0].data, *u = t.in[2].data;
        int64_t *rows = t.in[1].data;
        for (int64_t i = 0; i < ROWS_OF_X * WIDTH; i++)
            x[i] = (float)pick(-1000, 1000) / 3;
        for (int64_t i = 0; i < UPDATES * WIDTH; i++)
            u[i] = (float)pick(-1000, 1000) / 3;
        for (int64_t i = 0; i < UPDATES; i++)
            rows[i] = pick(-ROWS_OF_X, ROWS_OF_X - 1);
        must_run(&t, BYI_OP_SCATTER_ND,
                 sum ? "{\"reduction\": \"add\"}" : "{\"reduction\": \"max\"}");
        for (int64_t i = 0; i < UPDATES * WIDTH; i++) {
            const int64_t row = (rows[i / WIDTH] + ROWS_OF_X) % ROWS_OF_X;
            float *to = &x[row * WIDTH + i % WIDTH];
            *to = sum ? *to + u[i] : *to < u[i] ? u[i] : *to;
        }
        assert_memory_equal(t.out[0].data, x, ROWS_OF_X * WIDTH * sizeof *x);
    }
}

static void test_bad_indices(void **state)
{
    (void)state;
    static const enum byi_op_id ops[] = {BYI_OP_TAKE, BYI_OP_GATHER,
                                         BYI_OP_GATHER_ND};
    const int64_t three[] = {3}, bad[] = {3, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < BYI_COUNT(ops); i++)
        for (size_t k = 0; k < BYI_COUNT(bad); k++) {
            struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 1, three)}};
            t.in[1] = ints(1, &bad[k]);
            assert_int_equal(run(&t, ops[i], "{}"), BYOC_EINVAL);
            assert_non_null(strstr(t.err.text, t.op->name));
        }
}

/* --- selections --------------------------------------------------------- */

/* topk, compared with k searches for the best of the remaining elements. */
static void test_topk(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        /* a heap selects few elements of a long line, sorting selects many;
         * lanes select from many lines at once */
        const int64_t dims[] = {round % 5 ? pick(1, 3) : pick(8, 40),
                                round % 2 ? pick(1, 30) : pick(64, 300),
                                round % 3 ? pick(1, 3) : pick(4, 20)};
        const int64_t k = pick(0, round % 4 ? dims[1] : dims[1] / 10);
        const bool largest = pick(0, 1);
        static const enum byoc_dtype types[] = {BYOC_F32, BYOC_I8,  BYOC_F64,
                                                BYOC_F16, BYOC_I64, BYOC_U16,
                                                BYOC_U32, BYOC_U64};
        byi_simd_use((enum byi_isa)(round % BYI_N_ISAS)); /* if it exists */
        struct trial t = {.n_in = 2};
        t.in[0] = make(types[round % 8], 3, dims);
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i,
                           (double)pick(round % 8 > 4 ? 0
                                        : round % 4   ? -9
                                                      : -99,
                                        9));
        t.in[1] = ints(1, &k);
        must_run(&t, BYI_OP_TOPK,
                 largest ? "{\"axis\": 1}"
                         : "{\"axis\": 1, \"largest\": false}");
        const int64_t *index = t.out[1].data;
        for (int64_t line = 0; line < dims[0] * dims[2]; line++) {
            bool used[300] = {false};
            const int64_t o = line / dims[2], i = line % dims[2];
            for (int64_t r = 0; r < k; r++) {
                int64_t best = -1;
                double top = 0;
                for (int64_t j = 0; j < dims[1]; j++) {
                    const double v = byi_tensor_float(
                        &t.in[0], (o * dims[1] + j) * dims[2] + i);
                    if (used[j] ||
                        (best >= 0 && (largest ? v <= top : v >= top)))
                        continue;
                    best = j;
                    top = v;
                }
                used[best] = true;
                const int64_t position = (o * k + r) * dims[2] + i;
                assert_int_equal(index[position], best);
                assert_true(byi_tensor_float(&t.out[0], position) == top);
            }
        }
    }
    byi_simd_use(byi_isa_widest());
}

/* NaN is the largest number, and -0 equals 0; of equal ones, the first comes
 * first. Few lines are selected from one after the other, many at once; in long
 * lines, most elements are skipped. */
static void test_topk_nan(void **state)
{
    static const double line[] = {0, NAN, -INFINITY, -0.0, NAN, INFINITY};
    static const int64_t expected[2][2][6] = {
        {{2, 0, 3, 5, 1, 4}, {1, 4, 5, 0, 3, 2}},
        {{2, 8, 14, 20, 26, 32}, {1, 4, 7, 10, 13, 16}}};
    static const enum byoc_dtype types[] = {BYOC_F32, BYOC_F64, BYOC_BF16,
                                            BYOC_F16};
    const int64_t k = 6;
    (void)state;
    for (int round = 0; round < 32; round++) {
        const bool largest = round / 2 % 2, is_long = round / 4 % 2;
        const int64_t dims[] = {round % 2 ? 20 : 2, is_long ? 600 : 6};
        struct trial t = {.n_in = 2, .in = {make(types[round / 8], 2, dims)}};
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i, line[i % 6]);
        t.in[1] = ints(1, &k);
        must_run(&t, BYI_OP_TOPK, largest ? "{}" : "{\"largest\": false}");
        for (int64_t i = 0; i < dims[0]; i++)
            assert_memory_equal((const int64_t *)t.out[1].data + i * k,
                                expected[is_long][largest],
                                sizeof expected[0][0]);
    }
}

/* The result has past rows, new rows and zeros; the past of two sequences has
 * any lengths that fit. */
static void test_cache_append(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t h = pick(1, 3), past = pick(0, 5), s = pick(1, 3);
        const int64_t lengths[] = {pick(0, past), pick(0, past + 1)};
        const int64_t total = pick(0, past + s);
        const int64_t dims[] = {2, 3, past, h}, new_dims[] = {2, 3, s, h};
        struct trial t = {
            .n_in = 4,
            .in = {make(round % 2 ? BYOC_F32 : BYOC_F16, 4, dims),
                   make(round % 2 ? BYOC_F32 : BYOC_F16, 4, new_dims),
                   ints(2, lengths), ints(1, &total)}};
        must_run(&t, BYI_OP_NN_CACHE_APPEND, "{}");
        const int64_t n = past < total ? total : past;
        assert_int_equal(t.out[0].dims[2], n);
        for (int64_t i = 0; i < count(&t.out[0]); i++) {
            const int64_t x = i % h, row = i / h % n, plane = i / h / n;
            const int64_t length = lengths[plane / 3], behind = row - length;
            double expected = 0;
            if (behind < 0 && row < past)
                expected =
                    byi_tensor_float(&t.in[0], (plane * past + row) * h + x);
            else if (behind >= 0 && behind < s)
                expected =
                    byi_tensor_float(&t.in[1], (plane * s + behind) * h + x);
            const double found = byi_tensor_float(&t.out[0], i);
            assert_true(found == expected || (isnan(found) && isnan(expected)));
        }
    }
}

/* A scalar has no coordinates: the result has no elements, and the sanitizers
 * find one that is written. */
static void test_nonzero_scalar(void **state)
{
    (void)state;
    struct trial t = {.n_in = 1, .in = {make(BYOC_F32, 0, NULL)}};
    byi_tensor_set(&t.in[0], 0, 1.5);
    must_run(&t, BYI_OP_NONZERO, "{}");
    assert_int_equal(t.out[0].dims[0], 0);
    assert_int_equal(t.out[0].dims[1], 1);
}

/* More positions than are split together, with axes of size 1. */
static void test_nonzero_ranks(void **state)
{
    (void)state;
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_I64, BYOC_U8};
    for (int round = 0; round < ROUNDS / 10; round++) {
        const int64_t dims[] = {pick(1, 30), pick(1, 9), pick(1, 30),
                                pick(1, 3)};
        const uint32_t rank = (uint32_t)pick(1, 4);
        struct trial t = {.n_in = 1,
                          .in = {make(dtypes[round % 3], rank, dims)}};
        int64_t c = 0;
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i, pick(0, 2) ? 3 : 0);
        must_run(&t, BYI_OP_NONZERO, "{}");
        const int64_t n = t.out[0].dims[1], *y = t.out[0].data;
        for (int64_t i = 0; i < count(&t.in[0]); i++) {
            int64_t position[2 * BYI_MAX_RANK] = {0};
            if (byi_tensor_float(&t.in[0], i) == 0)
                continue;
            unflat(&t.in[0], i, position);
            for (uint32_t d = 0; d < rank; d++)
                assert_int_equal(y[d * n + c], position[d]);
            c++;
        }
        assert_int_equal(c, n);
    }
}

static void test_nonzero_compress(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {pick(0, 9), pick(1, 9)};
        struct trial t = {.n_in = 1, .in = {make(BYOC_F32, 2, dims)}};
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i, pick(0, 2) ? 1.5 : -0.0);
        must_run(&t, BYI_OP_NONZERO, "{}");
        const int64_t n = t.out[0].dims[1], *y = t.out[0].data;
        int64_t c = 0;
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            if (byi_tensor_float(&t.in[0], i) != 0) {
                assert_int_equal(y[c], i / dims[1]);
                assert_int_equal(y[n + c], i % dims[1]);
                c++;
            }
        assert_int_equal(c, n);

        t.n_in = 2;
        t.in[1] = make(BYOC_BOOL, 1, &dims[1]);
        for (int64_t i = 0; i < dims[1]; i++)
            byi_tensor_set(&t.in[1], i, (double)pick(0, 1));
        must_run(&t, BYI_OP_COMPRESS, "{\"axis\": 1}");
        c = 0;
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            if (byi_tensor_int(&t.in[1], i % dims[1]))
                assert_true(byi_tensor_float(&t.in[0], i) ==
                            byi_tensor_float(&t.out[0], c++));
        assert_int_equal(c, count(&t.out[0]));
    }
}

static void test_cumsum(void **state)
{
    (void)state;
    static const char *const attrs[] = {
        "{\"axis\": 1}",
        "{\"axis\": 1, \"exclusive\": true}",
        "{\"axis\": 1, \"reverse\": true}",
        "{\"axis\": 1, \"exclusive\": true, \"reverse\": true}",
        "{\"axis\": 1, \"product\": true}",
        "{\"axis\": 1, \"product\": true, \"exclusive\": true}"};
    for (int round = 0; round < ROUNDS; round++) {
        static const int64_t inner[] = {1, 3, 5, 8, 15, 22, 70, 530};
        static const enum byoc_dtype types[] = {BYOC_F32, BYOC_F64,  BYOC_F16,
                                                BYOC_I32, BYOC_BF16, BYOC_I64,
                                                BYOC_I8};
        int64_t dims[] = {2, pick(1, 9), inner[pick(0, 7)]};
        const int form = round % 6;
        const bool exclusive = form & 1, reverse = form & 2;
        const bool product = form > 3;
        /* float32, whose lines are computed together; products are exact, since
         * the numbers are small */
        const enum byoc_dtype dtype = types[pick(0, product ? 5 : 6)];
        const bool is_half = byi_dtype_is_half(dtype);
        dims[0] = dims[2] <= 3 ? pick(1, 600) : 2;    /* many short lines */
        if (is_half && !product && pick(0, 7) == 0) { /* several blocks */
            dims[0] = 2;
            dims[1] = pick(1000, 1300);
            dims[2] = pick(1, 3);
        }
        const bool is_integer = !byi_dtype_is_float(dtype);
        struct trial t = {.n_in = 1};
        t.in[0] = make(dtype, 3, dims);
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i,
                           (double)(is_integer ? pick(-9, 9) : pick(-2, 2)));
        must_run(&t, BYI_OP_CUMSUM, attrs[form]);
        for (int64_t i = 0; i < count(&t.in[0]); i++) {
            int64_t position[3], from[3], sum = product;
            unflat(&t.in[0], i, position);
            memcpy(from, position, sizeof position);
            for (from[1] = 0; from[1] < dims[1]; from[1]++) {
                const int64_t ahead =
                    reverse ? from[1] - position[1] : position[1] - from[1];
                const int64_t v =
                    (int64_t)byi_tensor_float(&t.in[0], flat(&t.in[0], from));
                if (ahead > 0 || (ahead == 0 && !exclusive))
                    sum = product ? sum * v : sum + v;
            }
            const double expected =
                is_half ? (double)byi_half_to_f32(
                              byi_f32_to_half((float)sum, dtype), dtype)
                        : (double)sum;
            assert_true(byi_tensor_float(&t.out[0], i) == expected);
        }
    }
}

/* --- data from numbers, matrices, sequences ----------------------------- */

static void test_shapes_and_ranges(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 3}, range[] = {7, -5, -4}, lengths[] = {2, 0, 1};
    struct trial t = {.n_in = 1, .in = {make(BYOC_I32, 2, dims)}};
    must_run(&t, BYI_OP_SHAPE_OF, "{\"start\": -1}");
    assert_int_equal(byi_tensor_int(&t.out[0], 0), 3);
    must_run(&t, BYI_OP_SIZE_OF, "{}");
    assert_int_equal(byi_tensor_int(&t.out[0], 0), 6);
    must_run(&t, BYI_OP_EYE_LIKE, "{\"k\": 1, \"dtype\": \"float16\"}");
    for (int64_t i = 0; i < 6; i++)
        assert_true(byi_tensor_float(&t.out[0], i) == (i == 1 || i == 5));
    must_run(&t, BYI_OP_EYE_LIKE, "{\"k\": -1000000, \"dtype\": \"int8\"}");
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(byi_tensor_int(&t.out[0], i), 0);
    must_run(&t, BYI_OP_TRILU, "{\"k\": 1, \"upper\": false}");
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(byi_tensor_int(&t.out[0], i),
                         i == 2 ? 0 : byi_tensor_int(&t.in[0], i));
    t = (struct trial){.n_in = 1, .in = {ints(2, dims)}};
    must_run(&t, BYI_OP_FULL, "{\"value\": 2.5}");
    for (int64_t i = 0; i < 6; i++)
        assert_true(byi_tensor_float(&t.out[0], i) == 2.5);
    t = (struct trial){.n_in = 3};
    for (uint32_t i = 0; i < 3; i++)
        t.in[i] = ints(0, &range[i]);
    must_run(&t, BYI_OP_ARANGE, "{}");
    for (int64_t i = 0; i < 3; i++)
        assert_int_equal(byi_tensor_int(&t.out[0], i), 7 - 4 * i);
    assert_int_equal(t.out[0].dims[0], 3);
    t = (struct trial){.n_in = 2, .in = {make(BYOC_I32, 2, dims)}};
    t.in[1] = ints(3, lengths);
    must_run(&t, BYI_OP_REVERSE_SEQUENCE, "{}");
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(byi_tensor_int(&t.out[0], i),
                         byi_tensor_int(&t.in[0], i == 0   ? 3
                                                  : i == 3 ? 0
                                                           : i));
}

static void test_one_hot(void **state)
{
    (void)state;
    const int64_t indices[] = {1, -1, 5}, depth = 3;
    const int64_t values[] = {-7, 8};
    struct trial t = {.n_in = 3};
    t.in[0] = ints(3, indices);
    t.in[1] = ints(0, &depth);
    t.in[2] = ints(2, values);
    must_run(&t, BYI_OP_ONE_HOT, "{\"axis\": 0}");
    for (int64_t i = 0; i < 9; i++) /* (depth, indices) */
        assert_int_equal(byi_tensor_int(&t.out[0], i),
                         i == 3 || i == 7 ? 8 : -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_transpose_matrices),
        cmocka_unit_test(test_transpose_few),
        cmocka_unit_test(test_broadcast_and_tile),
        cmocka_unit_test(test_short_rows),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_split_concatenate),
        cmocka_unit_test(test_take_gather),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_reductions),
        cmocka_unit_test(test_scatter_slices),
        cmocka_unit_test(test_bad_indices),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_topk_nan),
        cmocka_unit_test(test_cache_append),
        cmocka_unit_test(test_nonzero_scalar),
        cmocka_unit_test(test_nonzero_ranks),
        cmocka_unit_test(test_nonzero_compress),
        cmocka_unit_test(test_cumsum),
        cmocka_unit_test(test_shapes_and_ranges),
        cmocka_unit_test(test_one_hot),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
