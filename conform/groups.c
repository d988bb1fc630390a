/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c: implements the cases that build and run graphs that a row matches.
 */
#include "groups.h"

#include "core/base/clock.h"
#include "core/ops/layout.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- numerics ------------------------------------------------------------- */

/* End the case if an optional query failed without a reason. Frees `fail`,
 * which may be NULL. */
static void check_reason(struct byi_kit *kit, struct byoc_fail *fail,
                         const char *call)
{
    if (fail && !*byi_kit_read_and_free_fail(fail, NULL))
        byi_kit_failed(kit, BYI_RULE_REASON, "%s failed without a reason",
                       call);
}

static void call_cost(struct byi_kit *kit, const struct byoc_region *graph)
{
    uint64_t ns = UINT64_MAX;
    byi_child_step(NULL, "cost()");
    struct byoc_fail *fail =
        byi_kit_backend(kit)->cost(byi_kit_host(kit), graph, &ns);
    if (!fail && ns == UINT64_MAX)
        byi_kit_failed(kit, BYI_RULE_OPINION,
                       "cost() succeeded without a result");
    check_reason(kit, fail, "cost()");
}

/* Check the name of a preferred layout, in a buffer of `bytes` bytes, for a
 * tensor whose layout is `current`; "" means no preference. */
static void check_preference(struct byi_kit *kit, const char *tensor,
                             const char *name, size_t bytes,
                             const char *current)
{
    struct byi_layout preferred, actual;
    if (!memchr(name, '\0', bytes))
        byi_kit_failed(kit, BYI_RULE_OPINION,
                       "layout() prefers the %s in '%.*s', expected a name "
                       "that ends in NUL within its buffer",
                       tensor, (int)bytes, name);
    if (!*name)
        return;
    byi_layout_parse(current, &actual);
    const char *fault = byi_layout_parse(name, &preferred);
    for (uint32_t i = 0; !fault && i < preferred.n; i++)
        if (byi_layout_find(&actual, preferred.at[i].letter) < 0)
            fault = "it has another axis";
    for (uint32_t i = 0; !fault && i < actual.n; i++)
        if (byi_layout_find(&preferred, actual.at[i].letter) < 0)
            fault = "an axis is missing";
    if (fault)
        byi_kit_failed(kit, BYI_RULE_OPINION,
                       "layout() prefers the %s in '%s', expected the axes of "
                       "'%s': %s",
                       tensor, name, current, fault);
}

/* The convolution or transposed convolution of a sample with one kernel, or
 * NULL. */
static const struct byi_node *convolution_of(const struct byi_sample *sample)
{
    const struct byi_func *f = sample->m->funcs.at[sample->func];
    for (byi_id id = 0; id < f->nodes.n && !sample->joined; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_CALL_OP &&
            (byi_op(node->op)->cost == BYI_COST_CONV ||
             byi_op(node->op)->cost == BYI_COST_CONV_TRANSPOSE))
            return node;
    }
    return NULL;
}

static void call_layout(struct byi_kit *kit, const struct byi_node *conv,
                        const struct byoc_region *graph)
{
    struct byoc_layout preferred = {.struct_size = sizeof preferred};
    byi_child_step(NULL, "layout()");
    struct byoc_fail *fail =
        byi_kit_backend(kit)->layout(byi_kit_host(kit), graph, &preferred);
    check_reason(kit, fail, "layout()");
    if (fail)
        return;
    check_preference(kit, "data", preferred.data, sizeof preferred.data,
                     byi_attr_string(conv->attrs, "data_layout"));
    check_preference(kit, "weights", preferred.kernel, sizeof preferred.kernel,
                     byi_attr_string(conv->attrs, "kernel_layout"));
}

/* Call the optional queries cost() and layout(). */
static void call_queries(struct byi_kit *kit, const struct byi_sample *sample)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    const struct byi_node *conv = convolution_of(sample);
    struct byi_session s = {.sample = sample};
    struct byi_lent_region lent =
        byi_session_lend(kit, &s, sample->json.at, sample->json.n, NULL, NULL);
    if (b->cost)
        call_cost(kit, lent.region);
    if (b->layout && conv)
        call_layout(kit, conv, lent.region);
    byi_session_take_back(&lent);
    for (uint32_t i = 0; i < sample->n_consts; i++)
        byi_zone_lend(s.consts[i], BYI_LENT_GONE);
    byi_child_step(NULL, "the kit");
}

/* Build the sample and run it three times on one state: the third run repeats
 * the first one, after a run with other inputs. */
static void run_three_times(struct byi_kit *kit,
                            const struct byi_sample *sample, uint64_t seed)
{
    struct byi_session s;
    const struct byi_host_records before = byi_host_records();
    call_queries(kit, sample);
    byi_session_open(kit, sample, &s);
    void *state = byi_kit_state_open(kit, &s);
    byi_kit_run_checked(kit, &s, state, seed + 1, 0);
    byi_kit_run_checked(kit, &s, state, seed + 2, BYI_ALIGN);
    byi_kit_run_checked(kit, &s, state, seed + 1, 0);
    byi_kit_state_close(kit, &s, state);
    byi_session_close(kit, &s);
    byi_host_check_balance(kit, &before, "unload()");
}

void byi_kit_try_numerics(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_sample sample;
    byi_zones_watch(kit);
    byi_sample_make(kit, c->row, c->number, &sample);
    run_three_times(kit, &sample, c->number * 3u);
}

void byi_kit_try_region(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_sample sample;
    byi_zones_watch(kit);
    byi_sample_region(kit, c->number, &sample);
    run_three_times(kit, &sample, c->number * 3u);
}

/* --- states --------------------------------------------------------------- */

void byi_kit_try_states(struct byi_kit *kit, const struct byi_kit_case *c)
{
    enum { N = 4 };
    static const int order[N] = {2, 0, 3, 1};
    struct byi_sample sample;
    struct byi_session s, second;
    void *states[N];
    byi_zones_watch(kit);
    byi_sample_make_first(kit, c->row, &sample);
    const struct byi_host_records before = byi_host_records();
    byi_session_open(kit, &sample, &s);
    byi_session_open(kit, &sample, &second); /* load the region twice */
    for (int i = 0; i < N; i++)
        states[i] = byi_kit_state_open(kit, &s);
    byi_session_close(kit, &second);
    for (int i = 0; i < N; i++) {
        for (int k = i; k < N; k++)
            byi_kit_run_checked(kit, &s, states[order[k]], (uint64_t)(i + k),
                                0);
        byi_kit_state_close(kit, &s, states[order[i]]);
    }
    void *last_state = byi_kit_state_open(kit, &s);
    byi_kit_run_checked(kit, &s, last_state, 9, 0);
    byi_kit_state_close(kit, &s, last_state);
    byi_session_close(kit, &s);
    byi_host_check_balance(kit, &before, "unload()");
}

/* Make any sample of the case's row, and compute its expected results. */
static void make_expected_sample(struct byi_kit *kit,
                                 const struct byi_kit_case *c,
                                 struct byi_arena *arena,
                                 struct byi_sample *sample,
                                 struct byi_expected *e)
{
    byi_zones_watch(kit);
    byi_sample_make_first(kit, c->row, sample);
    byi_kit_expect(kit, sample, 1, arena, e);
}

/* --- cancelling ----------------------------------------------------------- */

void byi_kit_try_cancel(struct byi_kit *kit, const struct byi_kit_case *c)
{
    static const volatile uint32_t cancel = 1;
    struct byi_sample sample;
    struct byi_session s;
    struct byi_expected e;
    struct byi_tensor found[BYI_KIT_MAX_IO];
    struct byi_arena *arena = byi_arena_new();
    make_expected_sample(kit, c, arena, &sample, &e);
    byi_session_open(kit, &sample, &s);
    void *state = byi_kit_state_open(kit, &s);
    e.cancel = &cancel;
    struct byoc_fail *fail = byi_kit_run(kit, &s, state, &e, 0, arena, found);
    uint32_t code = BYOC_FAIL_CANCELLED;
    const char *reason = fail ? byi_kit_read_and_free_fail(fail, &code) : "";
    if (code != BYOC_FAIL_CANCELLED)
        byi_kit_failed(kit, BYI_RULE_CANCEL,
                       "a run that was cancelled failed with code %u, expected "
                       "%d (CANCELLED): %.600s",
                       code, BYOC_FAIL_CANCELLED, reason);
    if (!fail)
        byi_kit_compare(kit, &sample, &e, found);
    byi_kit_run_checked(kit, &s, state, 2, 0); /* the state must still work */
    byi_kit_state_close(kit, &s, state);
    byi_session_close(kit, &s);
}

/* --- memory that runs out ------------------------------------------------- */

/* Check that `call` failed because of acquire() number n. Frees `fail`. */
static void check_exhausted(struct byi_kit *kit, struct byoc_fail *fail,
                            const char *call, uint32_t n)
{
    uint32_t code;
    const char *reason = byi_kit_read_and_free_fail(fail, &code);
    if (code != BYOC_FAIL_RESOURCE)
        byi_kit_failed(kit, BYI_RULE_EXHAUSTED,
                       "%s failed with code %u, expected %d (RESOURCE), when "
                       "acquire() number %u returned NULL: %.600s",
                       call, code, (int)BYOC_FAIL_RESOURCE, n, reason);
    if (!*reason)
        byi_kit_failed(kit, BYI_RULE_REASON, "%s failed without a reason",
                       call);
}

/* Make all calls while acquire() fails from call n on, counted from 0. Returns
 * true if none failed, since there were at most n calls. */
static bool run_exhausted(struct byi_kit *kit, const struct byi_sample *sample,
                          const struct byi_expected *e, struct byi_arena *arena,
                          uint32_t n)
{
    struct byi_tensor found[BYI_KIT_MAX_IO];
    struct byi_session s = {.sample = sample};
    struct byoc_blob blob = {.data = NULL};
    const struct byoc_backend *b = byi_kit_backend(kit);
    const struct byi_host_records before = byi_host_records();
    const char *call = "compile()";
    void *state = NULL;
    bool is_loaded = false, has_state = false;
    byi_host_exhaust(b->compile ? n : UINT32_MAX);
    struct byoc_fail *fail = byi_kit_compile(kit, &s, &blob);
    if (!b->compile)
        byi_host_exhaust(n);
    if (!fail) {
        call = "load()";
        fail = byi_kit_load(kit, &s, &blob);
        is_loaded = !fail;
    }
    if (!fail) {
        call = "state_new()";
        fail = byi_kit_state_new(kit, &s, &state);
        has_state = !fail;
    }
    if (!fail) {
        call = "run()";
        fail = byi_kit_run(kit, &s, state, e, 0, arena, found);
    }
    const bool all_succeeded =
        byi_host_records().acquired - before.acquired <= n;
    byi_host_exhaust(UINT32_MAX);
    if (fail && all_succeeded)
        byi_kit_failed(kit, BYI_RULE_BUILDS,
                       "%s failed although every acquire() succeeded: %.800s",
                       call, byi_kit_read_and_free_fail(fail, NULL));
    if (fail)
        check_exhausted(kit, fail, call, n);
    if (has_state)
        byi_kit_state_close(kit, &s, state);
    if (is_loaded)
        byi_session_close(kit, &s);
    byi_kit_blob_free(kit, &blob);
    char after[80];
    snprintf(after, sizeof after, "%s without acquire() number %u",
             fail ? call : "all", n);
    byi_host_check_balance(kit, &before, after);
    return all_succeeded;
}

void byi_kit_try_memory(struct byi_kit *kit, const struct byi_kit_case *c)
{
    enum { MAX_CALLS = 2000 };
    struct byi_sample sample;
    struct byi_expected e;
    struct byi_arena *arena = byi_arena_new();
    make_expected_sample(kit, c, arena, &sample, &e);
    for (uint32_t n = 0; n < MAX_CALLS; n++)
        if (run_exhausted(kit, &sample, &e, arena, n))
            return;
}

/* --- the heap ------------------------------------------------------------- */

static uint64_t heap_now(void)
{
    const struct mallinfo2 info = mallinfo2();
    return (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
}

/* heap[] has n sizes of the heap, with `cycles` calls between two of them. End
 * the case if each is larger than the one before by 16 bytes a call or more,
 * which is a leak. Growth that stops is a cache of the plug-in or of malloc().
 */
static void check_heap_growth(struct byi_kit *kit, const uint64_t *heap,
                              uint32_t n, uint32_t cycles, const char *what)
{
    uint64_t min_growth = UINT64_MAX;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const uint64_t growth =
            heap[i + 1] > heap[i] ? heap[i + 1] - heap[i] : 0;
        min_growth = growth < min_growth ? growth : min_growth;
    }
    if (min_growth >= 16 * (uint64_t)cycles)
        byi_kit_failed(kit, BYI_RULE_HEAP,
                       "the heap grows by %llu bytes with every %s, expected "
                       "it to stop growing",
                       (unsigned long long)(min_growth / cycles), what);
}

void byi_kit_try_heap(struct byi_kit *kit, const struct byi_kit_case *c)
{
    enum { SPANS = 6, CYCLES = 8, RUNS = 12 };
    uint64_t heap[SPANS];
    struct byi_sample sample;
    struct byi_session s;
    struct byi_expected e;
    struct byi_tensor found[BYI_KIT_MAX_IO];
    struct byi_arena *arena = byi_arena_new();
    make_expected_sample(kit, c, arena, &sample, &e);
    for (uint32_t i = 0; i < SPANS; i++) {
        for (uint32_t k = 0; k < CYCLES; k++) {
            byi_session_open(kit, &sample, &s);
            byi_kit_state_close(kit, &s, byi_kit_state_open(kit, &s));
            byi_session_close(kit, &s);
        }
        heap[i] = heap_now();
    }
    check_heap_growth(kit, heap, SPANS, CYCLES, "load() and unload()");
    byi_session_open(kit, &sample, &s);
    void *state = byi_kit_state_open(kit, &s);
    for (uint32_t i = 0; i < SPANS; i++) {
        for (uint32_t k = 0; k < RUNS; k++) {
            struct byi_arena *scratch = byi_arena_new();
            struct byoc_fail *fail =
                byi_kit_run(kit, &s, state, &e, 0, scratch, found);
            if (fail)
                byi_kit_failed(kit, BYI_RULE_RUNS, "run() failed: %.900s",
                               byi_kit_read_and_free_fail(fail, NULL));
            byi_arena_free(&scratch);
        }
        heap[i] = heap_now();
    }
    check_heap_growth(kit, heap, SPANS, RUNS, "run()");
    byi_kit_state_close(kit, &s, state); /* otherwise valgrind reports a leak */
    byi_session_close(kit, &s);
}

/* --- malformed regions and blobs ------------------------------------------ */

/* Load a malformed blob, with the code of `session`. If load() accepts it,
 * create and free a state. `what` names the blob in messages. */
static void load_malformed(struct byi_kit *kit,
                           const struct byi_session *session,
                           const struct byoc_blob *blob, const char *what)
{
    const struct byi_host_records before = byi_host_records();
    struct byi_session s = {.sample = session->sample, .code = session->code};
    struct byoc_fail *fail = byi_kit_load(kit, &s, blob);
    if (fail) {
        uint32_t code;
        const char *reason = byi_kit_read_and_free_fail(fail, &code);
        if (code == BYOC_FAIL_INTERNAL || !*reason)
            byi_kit_failed(kit, BYI_RULE_HOSTILE,
                           "load() of %s failed with code %u and '%.300s', "
                           "expected INVALID or INCOMPATIBLE and a reason",
                           what, code, reason);
    } else {
        void *state;
        fail = byi_kit_state_new(kit, &s, &state);
        if (fail)
            byi_kit_read_and_free_fail(fail, NULL);
        else
            byi_kit_state_close(kit, &s, state);
        byi_session_close(kit, &s);
    }
    byi_host_check_balance(kit, &before, what);
}

/* Load prefixes of the blob, and copies in which random bytes are changed. */
static void load_damaged(struct byi_kit *kit, const struct byi_session *s,
                         const struct byoc_blob *whole, uint64_t seed)
{
    enum { CUTS = 48, CHANGES = 160 };
    uint64_t state = seed + 1;
    char what[80];
    for (uint32_t i = 0; i < CUTS; i++) {
        struct byoc_blob prefix = *whole;
        prefix.bytes = i < 16 ? i : byi_draw(&state) % whole->bytes;
        if (prefix.bytes >= whole->bytes)
            continue;
        snprintf(what, sizeof what, "the first %llu of %llu bytes",
                 (unsigned long long)prefix.bytes,
                 (unsigned long long)whole->bytes);
        byi_child_step(NULL, "load() of %s", what);
        load_malformed(kit, s, &prefix, what);
    }
    char *copy = malloc(whole->bytes);
    for (uint32_t i = 0; copy && i < CHANGES; i++) {
        memcpy(copy, whole->data, whole->bytes);
        const uint32_t n = 1 + byi_draw_below(&state, 3);
        uint64_t at = 0;
        for (uint32_t k = 0; k < n; k++) {
            at = byi_draw(&state) % whole->bytes;
            copy[at] = (char)(byi_draw_below(&state, 2)
                                  ? byi_draw_below(&state, 256)
                                  : (unsigned char)copy[at] ^
                                        1u << byi_draw_below(&state, 8));
        }
        const struct byoc_blob changed = {
            .struct_size = sizeof changed, .data = copy, .bytes = whole->bytes};
        snprintf(what, sizeof what,
                 "a blob with %u byte%s changed, the last at %llu (try %u)", n,
                 byi_plural(n), (unsigned long long)at, i);
        load_malformed(kit, s, &changed, what);
    }
    free(copy);
}

void byi_kit_try_blob(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_sample sample;
    struct byoc_blob blob, again;
    byi_zones_watch(kit);
    byi_sample_make_first(kit, c->row, &sample);
    struct byi_session s = {.sample = &sample};
    for (int i = 0; i < 2; i++) {
        struct byoc_fail *fail = byi_kit_compile(kit, &s, i ? &again : &blob);
        if (fail)
            byi_kit_failed(kit, BYI_RULE_BUILDS, "compile() failed: %.900s",
                           byi_kit_read_and_free_fail(fail, NULL));
    }
    if (blob.bytes != again.bytes ||
        memcmp(blob.data, again.data, blob.bytes) != 0)
        byi_kit_failed(
            kit, BYI_RULE_SAME,
            "two calls of compile() for one region returned %llu and %llu "
            "bytes that differ, expected equal bytes",
            (unsigned long long)blob.bytes, (unsigned long long)again.bytes);
    load_damaged(kit, &s, &blob, kit->seed);
    byi_kit_blob_free(kit, &blob);
    byi_kit_blob_free(kit, &again);
}

/* --- threads -------------------------------------------------------------- */

/* Short runs hardly overlap while threads wake up, so run for a while. */
enum { THREADS = 4, MIN_ROUNDS = 60, MIN_MS = 60 };

/* A thread that runs the sample on its own state. */
struct runner {
    struct byi_kit *kit;
    struct byi_session *s;
    pthread_barrier_t *begin;
    struct byi_expected e;
    struct byi_arena *arena;
    void *state, *scratch;
    char error[600]; /* the error, or "" */
};

/* Run repeatedly, and compare the results. The memory is not guarded, so an
 * invalid access crashes the case. */
static void *run_repeatedly(void *arg)
{
    struct runner *r = arg;
    const struct byi_sample *sample = r->s->sample;
    const struct byoc_backend *b = byi_kit_backend(r->kit);
    const struct byoc_host *host = byi_kit_host(r->kit);
    struct byoc_view views[2 * BYI_KIT_MAX_IO];
    struct byi_tensor out[BYI_KIT_MAX_IO];
    const uint32_t n_in = sample->n_in, n_out = sample->n_out;
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        struct byi_tensor *t = i < n_in ? &r->e.in[i] : &out[i - n_in];
        if (i >= n_in) {
            *t = r->e.out[i - n_in];
            t->data = byi_arena_alloc(r->arena, byi_tensor_bytes(t) + 1);
        }
        views[i] = (struct byoc_view){.dtype = (uint32_t)t->dtype,
                                      .rank = t->rank,
                                      .dims = t->dims,
                                      .data = t->data,
                                      .bytes = byi_tensor_bytes(t)};
    }
    const struct byoc_run_args args = {.struct_size = sizeof args,
                                       .n_inputs = n_in,
                                       .n_outputs = n_out,
                                       .inputs = views,
                                       .outputs = views + n_in,
                                       .scratch = r->scratch};
    pthread_barrier_wait(r->begin);
    const uint64_t end = byi_now_ns() + MIN_MS * UINT64_C(1000000);
    for (int round = 0;
         (round < MIN_ROUNDS || byi_now_ns() < end) && !*r->error; round++) {
        for (uint32_t i = 0; i < n_out; i++)
            memset(out[i].data, 0x7f, byi_tensor_bytes(&out[i]));
        struct byoc_fail *fail = b->run(host, r->s->compiled, r->state, &args);
        if (fail) {
            snprintf(r->error, sizeof r->error, "run() failed: %.500s",
                     host->fail_text(fail));
            host->fail_free(fail);
        }
        for (uint32_t i = 0; !fail && i < n_out; i++) {
            const struct byi_precision bound =
                byi_precision_of(sample->m, sample->func, out[i].dtype);
            struct byoc_error err;
            if (byi_kit_compare_output(&out[i], &r->e.out[i], r->e.slack[i],
                                       &bound, &err) != BYOC_OK)
                snprintf(r->error, sizeof r->error,
                         "round %d, output %u: %.500s", round, i, err.text);
        }
    }
    return NULL;
}

void byi_kit_try_threads(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_sample sample;
    struct byi_session s;
    struct runner runners[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t begin;
    byi_sample_make_first(kit, c->row, &sample);
    byi_session_open(kit, &sample, &s);
    pthread_barrier_init(&begin, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (struct runner){.kit = kit,
                                     .s = &s,
                                     .begin = &begin,
                                     .arena = byi_arena_new(),
                                     .state = byi_kit_state_open(kit, &s),
                                     .scratch = byi_kit_scratch_open(kit, &s)};
        byi_kit_expect(kit, &sample, 100 + i, runners[i].arena, &runners[i].e);
    }
    byi_child_step(NULL, "run() on %d threads", (int)THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        const int error =
            pthread_create(&threads[i], NULL, run_repeatedly, &runners[i]);
        if (error)
            byi_kit_end(kit, BYI_UNTESTED, 0,
                        "cannot start thread %u of %d: %s", i + 1, (int)THREADS,
                        strerror(error));
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (*runners[i].error)
            byi_kit_failed(kit, BYI_RULE_RACES,
                           "%d threads run one compiled region, each with its "
                           "own state; on thread %u, %s",
                           (int)THREADS, i, runners[i].error);
        byi_kit_state_close(kit, &s, runners[i].state);
        byi_kit_scratch_close(kit, runners[i].scratch);
    }
    byi_session_close(kit, &s);
}
