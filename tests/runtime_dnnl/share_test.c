/* SPDX-License-Identifier: Apache-2.0 */
/* share_test.c: tests packed weights that regions share if one host loads them
 * for several sizes. They are packed once, freed with the last region, and
 * correct. They are not shared if weights, layouts or hosts differ. Threads
 * load and unload at once, and allocations fail.
 */
#include <byoc/backend.h>

#include "region/graph.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_dnnl/build.h"

const struct byoc_backend *byoc_backend_query_v1(const struct byoc_host *host,
                                                 char *why, uint32_t why_bytes);

enum {
    C = 32, /* channels, in and out                          */
    H = 5,  /* height and width                              */
    WEIGHTS = C * C * 9,
    WEIGHT_BYTES = WEIGHTS * (int)sizeof(float)
};

/* --- a host that counts --------------------------------------------------- */

/* What the host counts. */
struct counts {
    _Atomic int64_t unreleased; /* bytes that are not released yet */
    _Atomic int acquired;       /* number of acquisitions */
    _Atomic int fail_at; /* the acquisition from now on that fails; -1: none */
};

static void *acquire(void *ctx, uint64_t bytes)
{
    struct counts *counts = ctx;
    if (counts->fail_at >= 0 && counts->fail_at-- == 0)
        return NULL;
    char *at = byi_acquire(bytes + BYI_ALIGN);
    if (!at)
        return NULL;
    memcpy(at, &bytes, sizeof bytes);
    counts->unreleased += (int64_t)bytes;
    counts->acquired++;
    return at + BYI_ALIGN;
}

static void release(void *ctx, void *memory)
{
    struct counts *counts = ctx;
    uint64_t bytes;
    if (!memory)
        return;
    memcpy(&bytes, (char *)memory - BYI_ALIGN, sizeof bytes);
    counts->unreleased -= (int64_t)bytes;
    byi_release((char *)memory - BYI_ALIGN);
}

struct byoc_fail {
    uint32_t code;
};

static struct byoc_fail *make_fail(void *ctx, uint32_t code, const char *text)
{
    static _Thread_local struct byoc_fail last;
    (void)ctx;
    (void)text;
    last.code = code;
    return &last;
}

static uint32_t one_thread(void *ctx)
{
    (void)ctx;
    return 1;
}

static struct byoc_host host_of(struct counts *counts)
{
    *counts = (struct counts){.fail_at = -1};
    return (struct byoc_host){.struct_size = sizeof(struct byoc_host),
                              .abi = BYOC_BACKEND_ABI,
                              .ctx = counts,
                              .acquire = acquire,
                              .release = release,
                              .fail = make_fail,
                              .threads = one_thread,
                              .graph_open = byi_graph_open,
                              .graph_close = byi_graph_close};
}

static const struct byoc_backend *dnnl; /* set by main() */

/* --- a convolution -------------------------------------------------------- */

static void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 16) / 65536 - 0.5f;
    }
}

/* Load a convolution of batch size b with strides of s. */
static void *load(const struct byoc_host *host, const float *weights, int b,
                  int s, struct byoc_fail **failed)
{
    static const int64_t dims[] = {C, C, 3, 3};
    char json[1400];
    const int out = (H - 1) / s + 1;
    snprintf(json, sizeof json,
             "{\"format\":\"byoc-graph\",\"version\":1,\"symbol\":\"r\","
             "\"nodes\":[{\"op\":\"input\",\"name\":\"x\",\"out\":[{\"dtype\":"
             "\"float32\",\"shape\":[%d,%d,%d,%d]}]},{\"op\":\"const\","
             "\"data\":0,\"out\":[{\"dtype\":\"float32\",\"shape\":[%d,%d,3,3]}"
             "]},{\"op\":\"kernel\",\"pattern\":\"dnnl.conv\",\"operands\":{"
             "\"src\":[0,0],\"weights\":[1,0]},\"name\":\"nn.conv2d\",\"args\":"
             "[\"src\",\"weights\"],\"attrs\":{\"strides\":[%d,%d],"
             "\"padding\":[1,1,1,1]},\"type\":{\"dtype\":\"float32\",\"shape\":"
             "[%d,%d,%d,%d]},\"post_ops\":[],\"out\":[{\"dtype\":\"float32\","
             "\"shape\":[%d,%d,%d,%d]}],\"source\":[]}],\"inputs\":[0],"
             "\"outputs\":[[2,0]]}",
             b, C, H, H, C, C, s, s, b, C, out, out, b, C, out, out);
    const struct byoc_view view = {.dtype = BYOC_F32,
                                   .rank = 4,
                                   .dims = dims,
                                   .data = (void *)(uintptr_t)weights,
                                   .bytes = WEIGHT_BYTES};
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = 1,
                                       .json = json,
                                       .json_bytes = strlen(json),
                                       .consts = &view};
    void *compiled = NULL;
    *failed = dnnl->load(host, &region, &compiled);
    return compiled;
}

static void *load_or_fail(const struct byoc_host *host, const float *weights,
                          int b, int s)
{
    struct byoc_fail *failed;
    void *compiled = load(host, weights, b, s, &failed);
    assert_null(failed);
    return compiled;
}

static float expected(const float *x, const float *w, int b, int c, int at)
{
    float sum = 0;
    for (int k = 0; k < C; k++)
        for (int i = 0; i < 9; i++) {
            const int y = at / H + i / 3 - 1, z = at % H + i % 3 - 1;
            if (y >= 0 && y < H && z >= 0 && z < H)
                sum +=
                    x[((b * C + k) * H + y) * H + z] * w[(c * C + k) * 9 + i];
        }
    return sum;
}

/* Run the region loaded for batch b with strides of 1. */
static bool is_right(const struct byoc_host *host, void *compiled,
                     const float *weights, int b)
{
    enum { MAX_BATCH = 4 };
    const int64_t dims[] = {b, C, H, H};
    const int n = b * C * H * H;
    float x[MAX_BATCH * C * H * H], y[MAX_BATCH * C * H * H];
    void *state = NULL;
    fill(x, n, (uint32_t)b);
    const struct byoc_view in = {BYOC_F32, 4, dims, x, (uint64_t)n * 4};
    const struct byoc_view out = {BYOC_F32, 4, dims, y, (uint64_t)n * 4};
    struct byoc_run_args args = {.struct_size = sizeof args,
                                 .n_inputs = 1,
                                 .n_outputs = 1,
                                 .inputs = &in,
                                 .outputs = &out};
    if (dnnl->state_new(host, compiled, &state))
        return false;
    args.scratch =
        host->acquire(host->ctx, dnnl->scratch_bytes(host, compiled));
    bool is_equal = args.scratch && !dnnl->run(host, compiled, state, &args);
    dnnl->state_free(host, compiled, state);
    host->release(host->ctx, args.scratch);
    for (int i = 0; i < n && is_equal; i += 37)
        is_equal = fabsf(y[i] - expected(x, weights, i / (C * H * H),
                                         i / (H * H) % C, i % (H * H))) < 1e-4f;
    return is_equal;
}

/* --- tests ---------------------------------------------------------------- */

static float weights[WEIGHTS], other_weights[WEIGHTS];

/* Regions for four batch sizes share packed weights, which are freed with the
 * last region. */
static void test_sizes(void **state)
{
    (void)state;
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    void *at[5];
    int64_t bytes_of_one = 0;
    for (int b = 1; b <= 4; b++) {
        at[b] = load_or_fail(&host, weights, b, 1);
        bytes_of_one = b == 1 ? counts.unreleased : bytes_of_one;
    }
    assert_true(bytes_of_one >= WEIGHT_BYTES); /* they are packed */
    assert_true(counts.unreleased < bytes_of_one + WEIGHT_BYTES);
    for (int b = 1; b <= 4; b++) {
        for (int k = b; k <= 4; k++)
            assert_true(is_right(&host, at[k], weights, k));
        assert_true(counts.unreleased >= WEIGHT_BYTES);
        dnnl->unload(&host, at[b]);
    }
    assert_int_equal(counts.unreleased, 0);
}

/* Other weights at the same address are not taken for the first ones. */
static void test_reused_address(void **state)
{
    (void)state;
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    float *place = malloc(sizeof weights);
    assert_non_null(place);
    for (int i = 0; i < 2; i++) {
        memcpy(place, i ? other_weights : weights, sizeof weights);
        void *at = load_or_fail(&host, place, 2, 1);
        assert_true(is_right(&host, at, i ? other_weights : weights, 2));
        dnnl->unload(&host, at);
    }
    free(place);
}

/* Weights are not shared if their numbers or hosts differ. */
static void test_unshared(void **state)
{
    (void)state;
    struct counts counts, second;
    const struct byoc_host host = host_of(&counts);
    const struct byoc_host other = host_of(&second);
    void *a = load_or_fail(&host, weights, 1, 1);
    void *b = load_or_fail(&host, other_weights, 1, 1);
    void *c = load_or_fail(&other, weights, 1, 1);
    assert_true(counts.unreleased >= 2 * WEIGHT_BYTES);
    assert_true(second.unreleased >= WEIGHT_BYTES);
    assert_true(is_right(&host, a, weights, 1));
    assert_true(is_right(&host, b, other_weights, 1));
    dnnl->unload(&host, a);
    dnnl->unload(&host, b);
    assert_int_equal(counts.unreleased, 0);
    assert_true(is_right(&other, c, weights, 1));
    dnnl->unload(&other, c);
    assert_int_equal(second.unreleased, 0);
}

/* Each acquisition fails in turn: load() returns an error, and releases all
 * memory. */
static void test_no_memory(void **state)
{
    (void)state;
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    struct byoc_fail *failed;
    void *first = load_or_fail(&host, weights, 1, 1);
    const int64_t unreleased = counts.unreleased;
    int n = 0;
    do {
        counts.fail_at = n++;
        void *second = load(&host, other_weights, 1, 2, &failed);
        if (failed)
            assert_int_equal(failed->code, BYOC_FAIL_RESOURCE);
        else
            dnnl->unload(&host, second);
        assert_int_equal(counts.unreleased, unreleased);
    } while (failed && n < 100);
    assert_in_range(n, 2, 99);
    counts.fail_at = -1;
    assert_true(is_right(&host, first, weights, 1));
    dnnl->unload(&host, first);
    assert_int_equal(counts.unreleased, 0);
}

/* --- memory of constants -------------------------------------------------- */

enum { PIECE_BYTES = 300 * 1000, PIECES = 100 };

/* The first constants have memory of their own, many more share large blocks,
 * which live as long as the last constant. */
static void test_blocks(void **state)
{
    (void)state;
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    struct byi_program p = {.host = &host};
    char *at[PIECES];
    for (int i = 0; i < PIECES; i++) {
        at[i] = byi_dn_computed_alloc(&p, PIECE_BYTES, false);
        assert_non_null(at[i]);
        assert_true((uintptr_t)at[i] % BYI_ALIGN == 0);
        memset(at[i], i, PIECE_BYTES);
        if (i < 3)
            assert_int_equal(counts.acquired, i + 1);
    }
    assert_in_range(counts.acquired, 4 + 3, 4 + 5); /* 30 MB */
    void *large = byi_dn_computed_alloc(&p, 5 << 20, false);
    const int acquired = counts.acquired;
    void *other = byi_dn_computed_alloc(&p, 5 << 20, false);
    assert_non_null(other);
    assert_int_equal(counts.acquired, acquired + 1); /* memory of its own */
    const int64_t unreleased = counts.unreleased;
    void *brief = byi_dn_computed_alloc(&p, PIECE_BYTES, true);
    assert_non_null(brief);
    byi_dn_computed_free(&host, brief); /* freed while blocks are still used */
    assert_int_equal(counts.unreleased, unreleased);
    byi_dn_computed_free(&host, large);
    byi_dn_computed_end(&p);
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < PIECE_BYTES; k += 4096)
            assert_int_equal(at[i][k], i);
        byi_dn_computed_free(&host, at[i]);
    }
    assert_in_range(counts.unreleased, 5 << 20, 6 << 20);
    byi_dn_computed_free(&host, other);
    assert_int_equal(counts.unreleased, 0);
}

/* Without memory for a block, each constant has memory of its own. */
static void test_no_block(void **state)
{
    (void)state;
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    struct byi_program p = {.host = &host};
    void *at[5];
    counts.fail_at = 0;
    assert_null(byi_dn_computed_alloc(&p, PIECE_BYTES, false));
    assert_null(byi_dn_computed_alloc(&p, UINT64_MAX, false));
    for (int i = 0; i < 5; i++) { /* no block: each has memory of its own */
        counts.fail_at = i == 4 ? 0 : -1;
        at[i] = byi_dn_computed_alloc(&p, PIECE_BYTES, false);
        assert_non_null(at[i]);
    }
    assert_int_equal(counts.acquired, 5);
    assert_true(counts.unreleased < 5 * (PIECE_BYTES + 1000));
    byi_dn_computed_free(&host, NULL);
    byi_dn_computed_end(&p);
    for (int i = 0; i < 5; i++)
        byi_dn_computed_free(&host, at[i]);
    assert_int_equal(counts.unreleased, 0);
}

/* --- threads -------------------------------------------------------------- */

/* A thread that loads, runs and unloads regions. */
struct worker {
    const struct byoc_host *host;
    uint32_t seed;
    bool is_wrong;
};

static void *work(void *ctx)
{
    struct worker *w = ctx;
    for (int i = 0; i < 25 && !w->is_wrong; i++) {
        struct byoc_fail *failed;
        w->seed = w->seed * 1664525u + 1013904223u;
        const int b = 1 + (int)(w->seed >> 30);
        const float *region_weights =
            w->seed >> 29 & 1 ? weights : other_weights;
        void *at = load(w->host, region_weights, b, 1, &failed);
        w->is_wrong = failed || !is_right(w->host, at, region_weights, b);
        if (!failed)
            dnnl->unload(w->host, at);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { WORKERS = 6 };
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    pthread_t threads[WORKERS];
    struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.host = &host, .seed = (uint32_t)i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]),
                         0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(workers[i].is_wrong);
    }
    assert_int_equal(counts.unreleased, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),    cmocka_unit_test(test_reused_address),
        cmocka_unit_test(test_unshared), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_no_block),
        cmocka_unit_test(test_threads),
    };
    struct counts counts;
    const struct byoc_host host = host_of(&counts);
    char why[200] = "";
    dnnl = byoc_backend_query_v1(&host, why, sizeof why);
    if (!dnnl) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    fill(weights, WEIGHTS, 1);
    fill(other_weights, WEIGHTS, 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
