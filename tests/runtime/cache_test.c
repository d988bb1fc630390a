/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c: tests models with symbolic dims: specialisations by sizes,
 * their limits and counters, backends that refuse, threads, lack of memory.
 * This program is linked so that the runtime's large allocations come here
 * first.
 */
#include "tests/fixture.h"

#include "runtime/internal.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHOOSY PLUGIN_DIR "/choosy.so"

/* the number of calls that succeed before one fails; -1: none fails */
static int64_t fail_at = -1;

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    if (fail_at >= 0 && fail_at-- == 0)
        return NULL;
    return __real_aligned_alloc(alignment, bytes);
}

/* relu runs on the backend, on N values; concatenate runs natively and has 2 N
 * results, so that the output's size differs from the input's. */
static const char varying[] =
    "def @r0(%i: Tensor[(N), float32], Compiler=\"ref\") {\n"
    "  %f = fn (%x: Tensor[(N), float32], Composite=\"ref.relu\") {\n"
    "    nn.relu(%x)\n"
    "  };\n"
    "  %f(%i)\n"
    "}\n"
    "def @main(%x: Tensor[(N), float32]) {\n"
    "  %0 = @r0(%x);\n"
    "  concatenate(%0, %x, axis=0)\n"
    "}\n";

/* A loaded model, and the lines that it logged. */
struct model {
    struct fixture x;
    struct byoc_model *model;
    char log[4096];
};

static void keep_lines(void *ctx, enum byoc_severity severity, const char *line)
{
    struct model *m = ctx;
    const size_t n = strlen(m->log);
    snprintf(m->log + n, sizeof m->log - n, "%s%s\n",
             severity == BYOC_WARNING ? "warning: " : "", line);
}

static void open_model(struct model *m, const char *ir,
                       struct byoc_load_params params)
{
    struct byoc_error err;
    m->model = NULL;
    m->log[0] = '\0';
    params.plugins = CHOOSY;
    params.threads = 1;
    params.log = keep_lines;
    params.log_ctx = m;
    if (fixture_open(&m->x, ir, &err) != BYOC_OK ||
        byoc_internal_model_open(&m->x.image, &params, &m->model, &err) !=
            BYOC_OK)
        fail_msg("%s", err.text);
}

static void close_model(struct model *m)
{
    byoc_model_free(&m->model);
    fixture_close(&m->x);
}

static struct byoc_cache_stats stats_of(const struct model *m)
{
    struct byoc_cache_stats stats;
    byoc_model_cache(m->model, &stats);
    return stats;
}

static struct byoc_state *new_state(const struct model *m)
{
    struct byoc_error err;
    struct byoc_state *s = NULL;
    if (byoc_state_new(m->model, &s, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return s;
}

/* Run a model on n numbers. Returns false if it fails, or if the result is not
 * relu(x) followed by x, as `varying` computes it. */
static bool run(struct byoc_state *s, int64_t n, enum byoc_status *status,
                struct byoc_error *err)
{
    float x[64];
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 3 - 1) * (float)n;
    const DLTensor in = {.data = x,
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = &n};
    DLTensor out = {0};
    *status = byoc_run(s, &in, 1, &out, 1, err);
    if (*status != BYOC_OK)
        return false;
    const float *y = out.data;
    bool right = out.ndim == 1 && out.shape[0] == 2 * n;
    for (int64_t i = 0; right && i < n; i++)
        right = y[i] == (x[i] > 0 ? x[i] : 0) && y[n + i] == x[i];
    return right;
}

static void run_and_check(struct byoc_state *s, int64_t n)
{
    struct byoc_error err = {0};
    enum byoc_status status;
    if (!run(s, n, &status, &err))
        fail_msg("%lld numbers: %s", (long long)n, err.text);
}

static void test_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 16, 1, 0};
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    for (size_t i = 0; i < BYI_COUNT(sizes); i++)
        run_and_check(s, sizes[i]);
    const struct byoc_cache_stats stats = stats_of(&m);
    assert_int_equal(stats.misses, 6);
    assert_int_equal(stats.builds, 6);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.shapes, 6);
    assert_int_equal(stats.evictions, 0);
    assert_int_equal(stats.refusals, 0);
    assert_true(stats.bytes > 0 && stats.bytes <= stats.peak_bytes);
    assert_int_equal(stats.max_shapes, 32);
    assert_int_equal(stats.max_bytes, 1 << 30);
    byoc_state_free(&s);
    close_model(&m);
}

static void test_count_bound(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){.cache_shapes = 2});
    struct byoc_state *s = new_state(&m);
    for (int64_t n = 1; n <= 5; n++)
        run_and_check(s, n);
    run_and_check(s, 4); /* used again, so that 5 is the oldest */
    run_and_check(s, 6);
    run_and_check(s, 4);
    const struct byoc_cache_stats stats = stats_of(&m);
    assert_int_equal(stats.shapes, 2);
    assert_int_equal(stats.evictions, 4);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(stats.builds, 6);
    byoc_state_free(&s);
    close_model(&m);
}

/* No specialisation fits: each is freed at the end of its run, while the result
 * stays valid. */
static void test_byte_bound(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){.cache_bytes = 1});
    struct byoc_state *s = new_state(&m);
    for (int64_t n = 1; n <= 5; n++)
        run_and_check(s, n);
    const struct byoc_cache_stats stats = stats_of(&m);
    assert_int_equal(stats.shapes, 0);
    assert_int_equal(stats.bytes, 0);
    assert_int_equal(stats.evictions, 5);
    byoc_state_free(&s);
    close_model(&m);
}

/* The backend builds nothing for 13 numbers: the twin runs from then on. */
static void test_refusal(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying,
               (struct byoc_load_params){.log = keep_lines, .log_ctx = &m});
    struct byoc_state *s = new_state(&m);
    run_and_check(s, 12);
    assert_null(strstr(m.log, "twin"));
    run_and_check(s, 13);
    run_and_check(s, 13);
    if (!strstr(m.log, "region r0 runs its native twin for N=13: ref: r0: a "
                       "ref.relu of 13 numbers\n"))
        fail_msg(
            "found the log \"%s\", expected that r0 runs its twin for N=13",
            m.log);
    assert_non_null(strstr(m.log, "specialised for N=12 in "));
    assert_int_equal(stats_of(&m).refusals, 1);
    assert_int_equal(stats_of(&m).hits, 1);
    byoc_state_free(&s);
    close_model(&m);
}

/* Sizes that are used once: twins run them, until sizes repeat. */
static void test_sizes_used_once(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying,
               (struct byoc_load_params){.log = keep_lines, .log_ctx = &m});
    struct byoc_state *s = new_state(&m);
    for (int64_t n = 14; n < 34; n++)
        run_and_check(s, n);
    assert_int_equal(stats_of(&m).builds, 20);
    run_and_check(s, 13); /* the backend is not asked, so it does not refuse */
    assert_null(strstr(m.log, "twin"));
    for (int i = 0; i < 3; i++)
        run_and_check(s, 13);
    assert_int_equal(stats_of(&m).builds, 21);
    assert_int_equal(stats_of(&m).refusals, 0);
    run_and_check(s, 13);
    assert_int_equal(stats_of(&m).builds, 22);
    assert_int_equal(stats_of(&m).refusals, 1);
    assert_non_null(strstr(m.log, "ref.relu of 13 numbers"));
    const struct byoc_dim warm = {"N", 33};
    struct byoc_error err;
    assert_int_equal(byoc_model_warm(m.model, &warm, 1, &err), BYOC_OK);
    assert_int_equal(stats_of(&m).builds, 23);
    byoc_state_free(&s);
    close_model(&m);
}

static void test_required(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    enum byoc_status status;
    open_model(&m, varying, (struct byoc_load_params){.require_backends = 1});
    struct byoc_state *s = new_state(&m);
    assert_false(run(s, 13, &status, &err));
    assert_int_equal(status, BYOC_EBACKEND);
    assert_non_null(strstr(err.text, "ref.relu of 13 numbers"));
    assert_int_equal(stats_of(&m).failures, 1);
    assert_int_equal(stats_of(&m).shapes, 0);
    run_and_check(s, 12);
    byoc_state_free(&s);
    close_model(&m);
}

static void test_native_only(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){.native_only = 1});
    struct byoc_state *s = new_state(&m);
    run_and_check(s, 13);
    assert_int_equal(stats_of(&m).refusals, 0);
    byoc_state_free(&s);
    close_model(&m);
}

/* --- two symbols ---------------------------------------------------------- */

static enum byoc_status run_two(struct byoc_state *s, int64_t n, int64_t k,
                                int64_t other, DLTensor *out,
                                struct byoc_error *err)
{
    static float data[256];
    int64_t x[] = {n, k}, y[] = {other};
    const DLTensor in[] = {{.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = 2,
                            .dtype = byoc_dtype_dlpack(BYOC_F32),
                            .shape = x},
                           {.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = 1,
                            .dtype = byoc_dtype_dlpack(BYOC_F32),
                            .shape = y}};
    *out = (DLTensor){0};
    return byoc_run(s, in, 2, out, 1, err);
}

static void test_two_symbols(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    DLTensor out;
    open_model(&m,
               "def @main(%x: Tensor[(N, K), float32], %y: Tensor[(K), "
               "float32]) {\n"
               "  %0 = add(%x, %y);\n"
               "  transpose(%0)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    assert_int_equal(run_two(s, 2, 3, 3, &out, &err), BYOC_OK);
    assert_int_equal(out.shape[0], 3);
    assert_int_equal(run_two(s, 3, 2, 2, &out, &err), BYOC_OK);
    assert_int_equal(out.shape[0], 2);
    assert_int_equal(out.shape[1], 3);
    assert_int_equal(run_two(s, 2, 3, 3, &out, &err), BYOC_OK);
    assert_int_equal(stats_of(&m).builds, 2);
    /* a name has one size in a run */
    assert_int_equal(run_two(s, 2, 3, 4, &out, &err), BYOC_ETYPE);
    assert_non_null(strstr(err.text, "\"y\": axis 0 (K) is 4, expected 3, the "
                                     "size of axis 1 of input \"x\""));
    assert_int_equal(stats_of(&m).misses, 2);
    assert_int_equal(stats_of(&m).failures, 0);
    byoc_state_free(&s);
    close_model(&m);
}

/* --- sizes that fail ------------------------------------------------------ */

static void test_bad_sizes(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    enum byoc_status status;
    open_model(&m,
               "def @main(%x: Tensor[(N), float32]) {\n"
               "  %0 = reshape(%x, [7, -1]) #[\"seven\": \"Reshape\"];\n"
               "  %1 = reshape(%0, [-1]);\n"
               "  concatenate(nn.relu(%1), %x, axis=0)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    for (int i = 0; i < 2; i++) {
        assert_false(run(s, 8, &status, &err));
        assert_int_equal(status, BYOC_ETYPE);
        assert_non_null(strstr(err.text, "seven"));
    }
    assert_int_equal(stats_of(&m).failures, 2);
    assert_int_equal(stats_of(&m).shapes, 0);
    run_and_check(s, 14);
    assert_int_equal(stats_of(&m).builds, 1);
    byoc_state_free(&s);
    close_model(&m);
}

/* Lists as inputs and outputs of a model with symbolic dims: results belong to
 * the state, even if the specialisation is evicted. */
static void test_lists(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    open_model(&m,
               "def @r0(%i: Tensor[(N), float32], Compiler=\"ref\") {\n"
               "  %f = fn (%x: Tensor[(N), float32], "
               "Composite=\"ref.relu\") {\n"
               "    nn.relu(%x)\n"
               "  };\n"
               "  %f(%i)\n"
               "}\n"
               "def @main(%s: Seq[Tensor[(?), float32]], "
               "%x: Tensor[(N), float32]) {\n"
               "  %0 = @r0(%x);\n"
               "  sequence.insert(%s, %0, 0)\n"
               "}\n",
               (struct byoc_load_params){.cache_shapes = 1});
    struct byoc_state *s = new_state(&m);
    static const int64_t sizes[] = {3, 13, 3, 3};
    for (size_t i = 0; i < BYI_COUNT(sizes); i++) {
        float x[] = {-1, 2, 3, -4, 5, -6, 7, 8, 9, 10, 11, 12, -13};
        int64_t n = sizes[i], two = 2;
        DLTensor view = {.data = x,
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = &two};
        const struct byoc_value element = {.tensor = view};
        view.shape = &n;
        const struct byoc_value in[] = {
            {.kind = BYOC_SEQUENCE, .n = 1, .elements = &element},
            {.tensor = view}};
        struct byoc_value out = {0};
        if (byoc_run_values(s, in, 2, &out, 1, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(out.n, 2);
        assert_int_equal(out.elements[0].tensor.shape[0], n);
        const float *y = out.elements[0].tensor.data;
        for (int64_t k = 0; k < n; k++)
            assert_true(y[k] == (x[k] > 0 ? x[k] : 0));
        assert_true(((float *)out.elements[1].tensor.data)[1] == 2);
    }
    const struct byoc_cache_stats stats = stats_of(&m);
    assert_int_equal(stats.builds, 3);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.refusals, 1); /* for 13: so it was called */
    const struct byoc_value optionals[2] = {{.kind = BYOC_OPTIONAL}};
    struct byoc_value out = {0};
    assert_int_equal(byoc_run_values(s, optionals, 2, &out, 1, &err),
                     BYOC_ETYPE);
    assert_non_null(strstr(err.text, "expected a sequence"));
    assert_int_equal(stats_of(&m).misses, 3);
    byoc_state_free(&s);
    close_model(&m);
}

/* Inputs of other ranks, element types and sizes than the model's are refused
 * before a specialisation is built. */
static void test_refused_inputs(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    static const struct {
        int64_t shape[3];
        int rank;
        enum byoc_dtype dtype;
        enum byoc_status status;
        const char *word;
    } rows[] = {
        {{2}, 1, BYOC_F32, BYOC_ETYPE, "rank 1, expected shape (N, 3)"},
        {{2, 3, 1}, 3, BYOC_F32, BYOC_ETYPE, "rank 3, expected shape (N, 3)"},
        {{2, 4},
         2,
         BYOC_F32,
         BYOC_ETYPE,
         "axis 1 is 4, expected 3; found shape (2, 4), expected (N, 3)"},
        {{2, 3}, 2, BYOC_F64, BYOC_ETYPE, "float64"},
        {{-2, 3}, 2, BYOC_F32, BYOC_ETYPE, "axis 0 (N) is -2, expected 0 or"},
        {{INT64_C(1) << 62, 3},
         2,
         BYOC_F32,
         BYOC_ELIMIT,
         "expected at most 16 TiB"},
        {{INT64_C(1) << 39, 3}, 2, BYOC_F32, BYOC_ETYPE, "more than 2^40"},
        {{INT64_C(1) << 37, 3}, 2, BYOC_F32, BYOC_ELIMIT, "use smaller inputs"},
    };
    float x[6] = {0};
    open_model(&m,
               "def @main(%x: Tensor[(N, 3), float32]) {\n"
               "  %0 = exp(%x);\n"
               "  concatenate(%0, %0, axis=1)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        int64_t shape[3];
        memcpy(shape, rows[i].shape, sizeof shape);
        const DLTensor in = {.data = x,
                             .device = {kDLCPU, 0},
                             .ndim = rows[i].rank,
                             .dtype = byoc_dtype_dlpack(rows[i].dtype),
                             .shape = shape};
        DLTensor out = {0};
        const enum byoc_status status = byoc_run(s, &in, 1, &out, 1, &err);
        if (status != rows[i].status || !strstr(err.text, rows[i].word))
            fail_msg("row %zu: found status %d and \"%s\", expected status %d "
                     "and \"%s\" in it",
                     i, (int)status, err.text, (int)rows[i].status,
                     rows[i].word);
        assert_null(strstr(err.text, "any size")); /* every axis has a name */
    }
    assert_int_equal(stats_of(&m).builds, 0);
    assert_int_equal(stats_of(&m).shapes, 0);
    assert_int_equal(stats_of(&m).bytes, 0);
    byoc_state_free(&s);
    close_model(&m);
}

/* An axis without a name is "?", which the message explains. */
static void test_unnamed_axis(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    open_model(&m,
               "def @main(%x: Tensor[(N, ?1, 3), float32]) {\n"
               "  nn.relu(%x)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    int64_t shape[] = {2, 1, 4};
    float x[8] = {0};
    DLTensor out = {0};
    const DLTensor in = {.data = x,
                         .device = {kDLCPU, 0},
                         .ndim = 3,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = shape};
    assert_int_equal(byoc_run(s, &in, 1, &out, 1, &err), BYOC_ETYPE);
    assert_non_null(strstr(err.text, "axis 2 is 4, expected 3"));
    assert_non_null(strstr(err.text, "expected (N, ?1, 3) (?: any size)"));
    byoc_state_free(&s);
    close_model(&m);
}

/* Each call of a recursive function binds the function's symbols to the sizes
 * of its own operands: N doubles from one call to the next. */
static void test_recursion(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    open_model(&m,
               "def @twice(%i: Tensor[(), int64], %x: Tensor[(N), float32])"
               " -> Tensor[(?1), float32] {\n"
               "  %0 = less(%i, 2);\n"
               "  if (%0) {\n"
               "    %1 = add(%i, 1);\n"
               "    %2 = concatenate(%x, nn.relu(%x), axis=0);\n"
               "    @twice(%1, %2)\n"
               "  } else {\n"
               "    %x\n"
               "  }\n"
               "}\n"
               "def @main(%x: Tensor[(N), float32]) {\n"
               "  %0 = exp(%x);\n"
               "  @twice(0, %0)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    static const int64_t sizes[] = {3, 1, 3, 0};
    for (size_t i = 0; i < BYI_COUNT(sizes); i++) {
        float x[] = {0, 1, 2};
        int64_t n = sizes[i];
        const DLTensor in = {.data = x,
                             .device = {kDLCPU, 0},
                             .ndim = 1,
                             .dtype = byoc_dtype_dlpack(BYOC_F32),
                             .shape = &n};
        DLTensor out = {0};
        if (byoc_run(s, &in, 1, &out, 1, &err) != BYOC_OK)
            fail_msg("%lld: %s", (long long)n, err.text);
        assert_int_equal(out.shape[0], 4 * n);
        for (int64_t k = 0; k < n; k++)
            assert_true(((float *)out.data)[3 * n + k] ==
                        ((float *)out.data)[k]);
    }
    assert_int_equal(stats_of(&m).builds, 3);
    assert_int_equal(stats_of(&m).failures, 0);
    byoc_state_free(&s);
    close_model(&m);
}

/* A region in the body of a loop has the sizes of the run. */
static void test_loop_body(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    open_model(&m,
               "def @r0(%i: Tensor[(N), float32], Compiler=\"ref\") {\n"
               "  %f = fn (%x: Tensor[(N), float32], "
               "Composite=\"ref.relu\") {\n"
               "    nn.relu(%x)\n"
               "  };\n"
               "  %f(%i)\n"
               "}\n"
               "def @again(%i: Tensor[(), int64], %x: Tensor[(N), float32])"
               " -> Tensor[(N), float32] {\n"
               "  %0 = less(%i, 3);\n"
               "  if (%0) {\n"
               "    %1 = add(%i, 1);\n"
               "    %2 = @r0(%x);\n"
               "    %3 = add(%2, %2);\n"
               "    @again(%1, %3)\n"
               "  } else {\n"
               "    %x\n"
               "  }\n"
               "}\n"
               "def @main(%x: Tensor[(N), float32]) {\n"
               "  @again(0, %x)\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    static const int64_t sizes[] = {3, 12, 13, 3};
    for (size_t i = 0; i < BYI_COUNT(sizes); i++) {
        float x[16] = {-1, 2};
        int64_t n = sizes[i];
        const DLTensor in = {.data = x,
                             .device = {kDLCPU, 0},
                             .ndim = 1,
                             .dtype = byoc_dtype_dlpack(BYOC_F32),
                             .shape = &n};
        DLTensor out = {0};
        if (byoc_run(s, &in, 1, &out, 1, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(out.shape[0], n);
        assert_true(((float *)out.data)[0] == 0);
        assert_true(((float *)out.data)[1] == 16);
        assert_int_equal(stats_of(&m).refusals, i >= 2); /* of 13 */
    }
    assert_int_equal(stats_of(&m).builds, 3);
    byoc_state_free(&s);
    close_model(&m);
}

/* Sizes that depend on data stay symbolic, also in later values: one
 * specialisation serves all of them. Results have rank 1 or 2, with one more
 * element each time. */
static void test_data_dependent(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "  %0 = nonzero(%x);\n"
        "  add(%0, 10)\n",
        "  %0 = greater(%x, [0.5]);\n"
        "  %1 = sum(cast(%0, dtype=\"int64\"));\n"
        "  %2 = reshape(%1, [1]);\n"
        "  strided_slice(%x, [0], %2, [0], [1])\n",
        "  %0 = sum(%x);\n"
        "  arange(0.0, %0, 1.0)\n",
    };
    for (size_t b = 0; b < BYI_COUNT(bodies); b++) {
        struct model m;
        struct byoc_error err;
        char text[500];
        float x[] = {0, 0, 0, 0};
        int64_t n = 4;
        const DLTensor in = {.data = x,
                             .device = {kDLCPU, 0},
                             .ndim = 1,
                             .dtype = byoc_dtype_dlpack(BYOC_F32),
                             .shape = &n};
        snprintf(text, sizeof text,
                 "def @main(%%x: Tensor[(N), float32]) {\n%s}\n", bodies[b]);
        open_model(&m, text, (struct byoc_load_params){0});
        struct byoc_state *s = new_state(&m);
        for (int i = 0; i <= 4; i++) {
            DLTensor out = {0};
            if (byoc_run(s, &in, 1, &out, 1, &err) != BYOC_OK)
                fail_msg("%s", err.text);
            assert_int_equal(out.shape[out.ndim - 1], i);
            x[i % 4] = 1;
        }
        assert_int_equal(stats_of(&m).builds, 1);
        assert_int_equal(stats_of(&m).hits, 4);
        byoc_state_free(&s);
        close_model(&m);
    }
}

/* The program passes the output view again with the dims and data that the
 * previous run set. After a few runs the pool releases blocks that are no
 * longer used; the test runs longer than that. */
static void test_same_views(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    float x[] = {-1, 2, 3, -4};
    int64_t n = 4;
    const DLTensor in = {.data = x,
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = &n};
    DLTensor out = {0};
    open_model(&m, varying, (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    for (int i = 0; i < 40; i++) {
        n = i < 30 ? 4 : 1 + i % 4;
        if (byoc_run(s, &in, 1, &out, 1, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(out.shape[0], 2 * n);
        assert_true(((float *)out.data)[n] == -1);
    }
    byoc_state_free(&s);
    close_model(&m);
}

/* A size that is computed from the input's, through a reshape: the backend runs
 * the region after it. */
static void test_computed_size(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    enum byoc_status status;
    open_model(&m,
               "def @r0(%i: Tensor[(?1), float32], Compiler=\"ref\") {\n"
               "  %f = fn (%x: Tensor[(?1), float32], "
               "Composite=\"ref.relu\") {\n"
               "    nn.relu(%x)\n"
               "  };\n"
               "  %f(%i)\n"
               "}\n"
               "def @main(%x: Tensor[(N), float32]) {\n"
               "  %0 = shape_of(%x);\n"
               "  %1 = reshape(%0, []);\n"
               "  %2 = arange(0, %1, 1);\n"
               "  @r0(cast(%2, dtype=\"float32\"))\n"
               "}\n",
               (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    run(s, 5, &status, &err);
    if (status != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(stats_of(&m).refusals, 0);
    run(s, 13, &status, &err);
    assert_int_equal(stats_of(&m).refusals, 1); /* so it was asked */
    byoc_state_free(&s);
    close_model(&m);
}

/* Run a model with one input and check its n results. */
static void run_once(const char *ir, uint32_t rank, const int64_t *dims,
                     float *x, int n, const float *expected)
{
    struct model m;
    struct byoc_error err;
    open_model(&m, ir, (struct byoc_load_params){0});
    struct byoc_state *s = new_state(&m);
    const DLTensor in = {.data = x,
                         .device = {kDLCPU, 0},
                         .ndim = (int)rank,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = (int64_t *)(uintptr_t)dims};
    DLTensor out = {0};
    if (byoc_run(s, &in, 1, &out, 1, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        assert_true(((const float *)out.data)[i] == expected[i]);
    byoc_state_free(&s);
    close_model(&m);
}

/* The weights of a grouped convolution are packed before the sizes are known.
 * Groups share a panel only if they were packed together. */
static void test_grouped_convolution(void **state)
{
    (void)state;
    enum { CHANNELS = 4, N = 5 };
    float x[CHANNELS * N], expected[CHANNELS * N];
    for (int i = 0; i < CHANNELS * N; i++)
        x[i] = (float)(i * i % 7);
    for (int o = 0; o < CHANNELS; o++)
        for (int i = 0; i < N; i++) {
            const float *of_group = x + o / 2 * 2 * N + i;
            expected[o * N + i] = (float)(2 * o + 1) * of_group[0] +
                                  (float)(2 * o + 2) * of_group[N];
        }
    run_once("def @main(%x: Tensor[(1, 4, N), float32]) {\n"
             "  nn.conv1d(%x, Tensor[(4, 2, 1), float32] "
             "{1, 2, 3, 4, 5, 6, 7, 8}, groups=2)\n"
             "}\n",
             3, (const int64_t[]){1, CHANNELS, N}, x, CHANNELS * N, expected);
}

/* A constant grid is not turned into offsets before the sizes are known. */
static void test_constant_grid(void **state)
{
    (void)state;
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    run_once("def @main(%x: Tensor[(1, 1, H, W), float32]) {\n"
             "  image.grid_sample(%x, Tensor[(1, 1, 2, 2), float32] "
             "{0, 0, 1, -1},\n"
             "                    align_corners=true)\n"
             "}\n",
             4, (const int64_t[]){1, 1, 3, 3}, x, 2, (const float[]){5, 3});
}

/* Sizes that pass through functions and branches. There is a call that shares
 * its function with another call, a branch whose condition follows from sizes,
 * and a value that a branch captures. The backend runs the region after each.
 */
static void test_size_by_call(void **state)
{
    (void)state;
    static const char region[] =
        "def @r0(%i: Tensor[(?1), float32], Compiler=\"ref\") {\n"
        "  %f = fn (%x: Tensor[(?1), float32], Composite=\"ref.relu\") {\n"
        "    nn.relu(%x)\n"
        "  };\n"
        "  %f(%i)\n"
        "}\n"
        "def @more(%n: Tensor[(), int64]) {\n"
        "  %0 = expand_dims(%n, axis=[0]);\n"
        "  reshape(add(%0, [1]), [])\n"
        "}\n";
    static const char *const bodies[] = {
        "  %0 = reshape(shape_of(%x), []);\n"
        "  %1 = @more(%0);\n"
        "  %2 = subtract(@more(%1), 2);\n"
        "  @r0(cast(arange(0, %2, 1), dtype=\"float32\"))\n",
        "  %0 = reshape(shape_of(%x), []);\n"
        "  %1 = less(%0, 1);\n"
        "  %2 = if (%1) { concatenate(%x, %x, axis=0) } else { %x };\n"
        "  @r0(%2)\n",
        "  %0 = reshape(shape_of(%x), []);\n"
        "  %1 = less(reshape(sum(%x), []), 0f);\n"
        "  if (%1) {\n"
        "    %x\n"
        "  } else {\n"
        "    @r0(cast(arange(0, %0, 1), dtype=\"float32\"))\n"
        "  }\n",
    };
    for (size_t b = 0; b < BYI_COUNT(bodies); b++) {
        struct model m;
        struct byoc_error err;
        enum byoc_status status;
        char text[1500];
        snprintf(text, sizeof text,
                 "%sdef @main(%%x: Tensor[(N), float32]) {\n%s}\n", region,
                 bodies[b]);
        open_model(&m, text, (struct byoc_load_params){0});
        struct byoc_state *s = new_state(&m);
        run(s, 5, &status, &err);
        if (status != BYOC_OK)
            fail_msg("%zu: %s", b, err.text);
        if (stats_of(&m).refusals)
            fail_msg("%zu: %s", b, m.log);
        run(s, 13, &status, &err);
        assert_int_equal(stats_of(&m).refusals, 1); /* so it was asked */
        byoc_state_free(&s);
        close_model(&m);
    }
}

/* Let each large allocation of a run fail in turn: the run returns an error or
 * succeeds, and the next run is right. If `cached`, the cache has an entry for
 * other sizes, which byoc may evict. Returns how many runs fail. */
static int fail_each(bool cached)
{
    int n_failed = 0;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        struct model m;
        struct byoc_error err;
        enum byoc_status status;
        open_model(&m, varying, (struct byoc_load_params){0});
        struct byoc_state *s = new_state(&m);
        if (cached)
            run_and_check(s, 3);
        fail_at = at;
        bool right = run(s, 4, &status, &err);
        done = fail_at >= 0;
        fail_at = -1;
        if (!right)
            assert_int_equal(status, BYOC_ENOMEM);
        n_failed += !right;
        run_and_check(s, 4);
        assert_int_equal(stats_of(&m).refusals, 0);
        byoc_state_free(&s);
        close_model(&m);
        assert_true(at < 1000 && (at > 0 || !done)); /* an allocation failed */
    }
    return n_failed;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(fail_each(false) > 1);
    assert_int_equal(fail_each(true), 0); /* the entry is evicted */
}

/* --- threads -------------------------------------------------------------- */

/* A thread that runs a model with a state of its own. */
struct model_user {
    const struct model *m;
    pthread_barrier_t *start;
    uint64_t seed;
    int runs;
    int64_t size; /* 0: random */
    bool wrong;
};

static void *work(void *ctx)
{
    struct model_user *u = ctx;
    struct byoc_error err;
    enum byoc_status status;
    struct byoc_state *s = NULL;
    u->wrong = byoc_state_new(u->m->model, &s, &err) != BYOC_OK;
    pthread_barrier_wait(u->start);
    for (int i = 0; i < u->runs && !u->wrong; i++) {
        u->seed = u->seed * 6364136223846793005u + 1442695040888963407u;
        const int64_t n = u->size ? u->size : (int64_t)(u->seed >> 33) % 16;
        u->wrong = !run(s, n, &status, &err);
    }
    byoc_state_free(&s);
    return NULL;
}

enum { USERS = 8 };

/* Run work() in half of the threads, and `other` in the others. */
static void run_threads(const struct model *m, int runs, int64_t size,
                        void *(*other)(void *))
{
    pthread_t threads[USERS];
    struct model_user users[USERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, USERS);
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct model_user){.m = m,
                                       .start = &start,
                                       .seed = (uint64_t)i + 1,
                                       .runs = runs,
                                       .size = size};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i % 2 ? other : work, &users[i]),
            0);
    }
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(users[i].wrong);
    }
    pthread_barrier_destroy(&start);
}

static void test_threads(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){.cache_shapes = 5});
    run_threads(&m, 300, 0, work);
    const struct byoc_cache_stats stats = stats_of(&m);
    assert_int_equal(stats.hits + stats.misses, USERS * 300);
    assert_int_equal(stats.builds, stats.misses);
    assert_int_equal(stats.builds, stats.evictions + stats.shapes);
    assert_int_equal(stats.failures, 0);
    assert_int_equal(stats.shapes, 5);
    close_model(&m);
}

static void test_same_sizes_at_once(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, varying, (struct byoc_load_params){0});
    run_threads(&m, 1, 9, work);
    assert_int_equal(stats_of(&m).builds, 1);
    assert_int_equal(stats_of(&m).hits, USERS - 1);
    close_model(&m);
}

/* Actions of other threads at the same time: warm sizes, read counters, free
 * states. */
static void *disturb(void *ctx)
{
    struct model_user *u = ctx;
    struct byoc_error err;
    pthread_barrier_wait(u->start);
    for (int i = 0; i < u->runs && !u->wrong; i++) {
        struct byoc_state *s = NULL;
        enum byoc_status status;
        u->seed = u->seed * 6364136223846793005u + 1442695040888963407u;
        const struct byoc_dim dim = {"N", (int64_t)(u->seed >> 33) % 16};
        const struct byoc_cache_stats stats = stats_of(u->m);
        u->wrong = stats.hits + stats.misses < stats.builds ||
                   byoc_model_warm(u->m->model, &dim, 1, &err) != BYOC_OK ||
                   byoc_state_new(u->m->model, &s, &err) != BYOC_OK ||
                   !run(s, dim.size, &status, &err);
        byoc_state_free(&s);
    }
    return NULL;
}

static void test_disturbed(void **state)
{
    (void)state;
    static const struct byoc_load_params bounds[] = {
        {0}, {.cache_shapes = 1}, {.cache_bytes = 1}, {.cache_bytes = 20000}};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        struct model m;
        open_model(&m, varying, bounds[b]);
        run_threads(&m, 60, 0, disturb);
        const struct byoc_cache_stats stats = stats_of(&m);
        assert_int_equal(stats.builds, stats.evictions + stats.shapes);
        assert_int_equal(stats.failures, 0);
        assert_true(stats.shapes <= stats.max_shapes);
        assert_true(stats.bytes <= stats.max_bytes);
        close_model(&m);
    }
}

/* --- warming -------------------------------------------------------------- */

static void warm_fails(const struct model *m, const char *name, int64_t size,
                       const char *word)
{
    struct byoc_error err;
    const struct byoc_dim dim = {name, size};
    assert_int_equal(byoc_model_warm(m->model, &dim, name ? 1 : 0, &err),
                     BYOC_EINVAL);
    if (!strstr(err.text, word))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, word);
}

static void test_warm(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    open_model(&m, varying, (struct byoc_load_params){0});
    const struct byoc_dim dim = {"N", 5};
    assert_int_equal(byoc_model_warm(m.model, &dim, 1, &err), BYOC_OK);
    struct byoc_state *s = new_state(&m);
    run_and_check(s, 5);
    assert_int_equal(stats_of(&m).hits, 1);
    warm_fails(&m, "M", 5,
               "found the name 'M', expected a symbolic dim of the inputs");
    warm_fails(&m, "N", -1, "found N=-1, expected a size of 0 or more");
    warm_fails(&m, NULL, 0, "for N");
    byoc_state_free(&s);
    close_model(&m);
    open_model(&m, "def @main(%x: Tensor[(2), float32]) {\n  exp(%x)\n}\n",
               (struct byoc_load_params){0});
    warm_fails(&m, "N", 5, "without symbolic dims");
    assert_int_equal(stats_of(&m).max_shapes, 0);
    close_model(&m);
}

static void test_environment(void **state)
{
    (void)state;
    struct model m;
    struct byoc_error err;
    setenv("BYOC_CACHE_SHAPES", "3", 1);
    setenv("BYOC_CACHE_BYTES", "4096", 1);
    open_model(&m, varying, (struct byoc_load_params){.cache_bytes = 8192});
    assert_int_equal(stats_of(&m).max_shapes, 3);
    assert_int_equal(stats_of(&m).max_bytes, 8192);
    byoc_model_free(&m.model);
    static const char *const wrong[] = {
        "many", "0", "-1", "1e3", "4 ", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < BYI_COUNT(wrong); i++) {
        setenv("BYOC_CACHE_SHAPES", wrong[i], 1);
        assert_int_equal(
            byoc_internal_model_open(&m.x.image, NULL, &m.model, &err),
            BYOC_EINVAL);
        assert_non_null(strstr(err.text, "BYOC_CACHE_SHAPES: found \""));
        assert_non_null(strstr(err.text, "expected a number of 1 or more"));
    }
    unsetenv("BYOC_CACHE_SHAPES");
    unsetenv("BYOC_CACHE_BYTES");
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_count_bound),
        cmocka_unit_test(test_byte_bound),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_sizes_used_once),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_native_only),
        cmocka_unit_test(test_two_symbols),
        cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused_inputs),
        cmocka_unit_test(test_unnamed_axis),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_loop_body),
        cmocka_unit_test(test_data_dependent),
        cmocka_unit_test(test_same_views),
        cmocka_unit_test(test_computed_size),
        cmocka_unit_test(test_grouped_convolution),
        cmocka_unit_test(test_constant_grid),
        cmocka_unit_test(test_size_by_call),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_same_sizes_at_once),
        cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
