/* SPDX-License-Identifier: Apache-2.0 */
/* request_test.c: runs with inputs and outputs by name, asynchronous runs with
 * a callback, traces and events of runs, and the memory limit.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <byoc/byoc.h>

#include "driver/compiled.h"
#include "tests/watchdog.h"

/* A model with two outputs that share their first step, and one that is an
 * input.
 */
static const char two_branches[] =
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
    "  %0 = add(%x, %y);\n"
    "  %1 = nn.softmax(%0);\n"
    "  %2 = cumsum(%0, axis=1);\n"
    "  (%1, %2, %y)\n"
    "}\n";
static const char varying[] = "def @main(%x: Tensor[(N, 3), float32]) {\n"
                              "  %0 = nn.softmax(%x);\n"
                              "  %1 = cumsum(%x, axis=1);\n"
                              "  (%0, %1)\n"
                              "}\n";
/* The cumsum reads the transpose through a view. */
static const char viewed[] = "def @main(%x: Tensor[(2, 3), float32]) {\n"
                             "  %0 = nn.softmax(%x);\n"
                             "  %1 = transpose(%x, axes=[1, 0]);\n"
                             "  %2 = cumsum(reshape(%1, [6]), axis=0);\n"
                             "  (%0, %2)\n"
                             "}";

/* A compiled and loaded model, and a request for its state. */
struct trial {
    struct byoc_compiled *compiled;
    struct byoc_model *model;
    struct byoc_state *state;
    float x[6], y[6];
    int64_t shape[2];
    struct byoc_binding in[2], out[3];
    struct byoc_request request;
};

static struct byoc_error err;

static DLTensor view(struct trial *t, float *data)
{
    return (DLTensor){.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = 2,
                      .dtype = byoc_dtype_dlpack(BYOC_F32),
                      .shape = t->shape};
}

static void begin(struct trial *t, const char *text, uint32_t n_inputs,
                  uint32_t n_outputs, const struct byoc_load_params *load)
{
    static const char *const no_backends[] = {NULL};
    const struct byoc_compile_params params = {
        .struct_size = sizeof params, .backends = no_backends, .threads = 1};
    *t = (struct trial){.shape = {2, 3}};
    if (byoc_compile_memory(text, strlen(text), "trial.ir", &params,
                            &t->compiled, &err) ||
        byoc_compiled_load(t->compiled, load, &t->model, &err) ||
        byoc_state_new(t->model, &t->state, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 6; i++) {
        t->x[i] = (float)i;
        t->y[i] = (float)(10 * i);
    }
    t->in[0] = (struct byoc_binding){"x", {.tensor = view(t, t->x)}};
    t->in[1] = (struct byoc_binding){"y", {.tensor = view(t, t->y)}};
    t->request = (struct byoc_request){.struct_size = sizeof t->request,
                                       .n_inputs = n_inputs,
                                       .inputs = t->in,
                                       .n_outputs = n_outputs,
                                       .outputs = t->out};
}

static void end(struct trial *t)
{
    byoc_state_free(&t->state);
    byoc_model_free(&t->model);
    byoc_compiled_free(&t->compiled);
}

static void check_run(struct trial *t)
{
    if (byoc_run_request(t->state, &t->request, &err) != BYOC_OK)
        fail_msg("%s", err.text);
}

static void check_refused(struct trial *t, const char *text)
{
    assert_int_equal(byoc_run_request(t->state, &t->request, &err),
                     BYOC_EINVAL);
    assert_non_null(strstr(err.text, text));
}

static const float *data_of(const struct byoc_binding *b)
{
    return b->value.tensor.data;
}

static void test_names(void **state)
{
    (void)state;
    struct trial t;
    begin(&t, two_branches, 2, 2, NULL);
    assert_int_equal(byoc_model_input_index(t.model, "y"), 1);
    assert_int_equal(byoc_model_input_index(t.model, "z"), UINT32_MAX);
    assert_int_equal(byoc_model_output_index(t.model, "output_2"), 2);
    /* any order, on both sides */
    const struct byoc_binding first = t.in[0];
    t.in[0] = t.in[1];
    t.in[1] = first;
    t.out[0].name = "output_2";
    t.out[1].name = "output_1";
    check_run(&t);
    assert_true(data_of(&t.out[0])[5] == 50 && data_of(&t.out[1])[1] == 11);
    assert_int_equal(t.out[1].value.tensor.shape[1], 3);
    /* by place */
    t.in[0] = (struct byoc_binding){NULL, {.tensor = view(&t, t.x)}};
    t.in[1] = (struct byoc_binding){NULL, {.tensor = view(&t, t.y)}};
    t.request.n_outputs = 3;
    t.out[0].name = t.out[1].name = t.out[2].name = NULL;
    check_run(&t);
    assert_true(data_of(&t.out[1])[1] == 11 && data_of(&t.out[2])[5] == 50);
    end(&t);
}

static void test_wrong_names(void **state)
{
    (void)state;
    struct trial t;
    begin(&t, two_branches, 2, 1, NULL);
    t.out[0].name = "nothing";
    check_refused(&t, "output 0: found \"nothing\", expected one of the "
                      "model's outputs: output_0, output_1, output_2");
    t.request.n_outputs = 2;
    t.out[0].name = t.out[1].name = "output_1";
    check_refused(&t, "output \"output_1\" is given twice");
    t.request.n_outputs = 0;
    t.in[0].name = "y";
    check_refused(&t, "input \"y\" is given twice");
    t.request.n_inputs = 1;
    check_refused(&t, "input \"x\" is missing");
    t.request.n_inputs = 2;
    t.in[0].name = "x";
    t.request.struct_size = 4;
    check_refused(&t, "struct_size is 4");
    t.request.struct_size = sizeof t.request;
    check_run(&t); /* without outputs */
    end(&t);
}

/* Reserved members must be 0, so that later versions can use them. */
static void test_reserved(void **state)
{
    (void)state;
    struct trial t;
    const struct byoc_conform_params conform = {.struct_size = sizeof conform,
                                                .reserved = 1};
    int failed;
    char *card = NULL;
    begin(&t, two_branches, 2, 0, NULL);
    t.request.reserved = 1;
    check_refused(&t, "reserved: found 1, expected 0");
    assert_int_equal(
        byoc_conform("/nowhere.so", &conform, 0, &failed, &card, &err),
        BYOC_EINVAL);
    assert_non_null(strstr(err.text, "reserved: found 1"));
    end(&t);
}

/* --- events --------------------------------------------------------------- */

/* Numbers of events by name and kind, and the tag of the last one. */
struct event_counts {
    int softmax, cumsum, runs;
    char tag[32];
};

static void count_event(void *ctx, const struct byoc_event *e)
{
    struct event_counts *counts = ctx;
    counts->softmax += strstr(e->name, "softmax") != NULL;
    counts->cumsum += strstr(e->name, "cumsum") != NULL;
    counts->runs += strcmp(e->kind, "run") == 0;
    assert_true(e->end_ns >= e->begin_ns);
    snprintf(counts->tag, sizeof counts->tag, "%s", e->tag);
}

static void check_chosen(const char *text, uint32_t n_inputs)
{
    struct trial t;
    struct event_counts counts = {0};
    begin(&t, text, n_inputs, 1, NULL);
    assert_int_equal(byoc_state_profile(t.state, count_event, &counts, &err),
                     BYOC_OK);
    t.out[0].name = "output_1";
    t.request.tag = "one";
    check_run(&t);
    assert_true(counts.softmax == 0 && counts.cumsum == 1 && counts.runs == 1);
    assert_string_equal(counts.tag, "one");
    const float sum = data_of(&t.out[0])[2];
    /* all outputs again: the choice has no effect on later runs */
    t.request.n_outputs = n_inputs == 2 ? 3 : 2;
    for (uint32_t i = 0; i < 3; i++)
        t.out[i].name = NULL;
    t.request.tag = NULL;
    check_run(&t);
    assert_true(counts.softmax == 1 && counts.cumsum == 2);
    assert_string_equal(counts.tag, "");
    assert_true(data_of(&t.out[1])[2] == sum);
    const float *p = data_of(&t.out[0]);
    assert_true(p[0] + p[1] + p[2] > 0.999f && p[0] + p[1] + p[2] < 1.001f);
    assert_int_equal(byoc_state_profile(t.state, NULL, NULL, &err), BYOC_OK);
    check_run(&t);
    assert_int_equal(counts.runs, 2);
    end(&t);
}

static void test_chosen_outputs(void **state)
{
    (void)state;
    check_chosen(two_branches, 2);
    check_chosen(varying, 1);
    check_chosen(viewed, 1);
}

/* Requests for different outputs in turn: byoc does not treat a view that it
 * has set in an earlier run as memory of the caller. */
static void test_alternate_outputs(void **state)
{
    (void)state;
    enum { LARGE = 50000 };
    struct trial t;
    int64_t large[] = {LARGE, 3};
    float *zeros = calloc(3 * LARGE, sizeof *zeros);
    begin(&t, varying, 1, 1, NULL);
    struct byoc_binding first = {.name = "output_0"};
    struct byoc_binding second = {.name = "output_1"};
    for (int round = 0; round < 2; round++) {
        t.in[0].value.tensor.data = zeros;
        t.in[0].value.tensor.shape = large;
        t.request.outputs = &first;
        check_run(&t);
        const float *p = data_of(&first);
        assert_true(p[0] > 0.333f && p[3 * LARGE - 1] > 0.333f);
        t.request.outputs = &second;
        check_run(&t);
        assert_true(data_of(&second) != p);
        t.in[0].value.tensor = view(&t, t.x);
        for (int i = 0; i < 20; i++)
            check_run(&t);
        assert_true(data_of(&second)[2] == 3 && data_of(&second)[5] == 12);
    }
    end(&t);
    free(zeros);
}

/* --- callbacks ------------------------------------------------------------ */

/* A run whose callback starts `n_more` further runs, one after the other. With
 * -1, the callback frees the state. */
struct chain {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct trial *t;
    int n_more, calls, has_ended;
    enum byoc_status status;
};

static void on_end(void *ctx, struct byoc_state *s, enum byoc_status status,
                   const struct byoc_error *e)
{
    struct chain *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->calls++;
    c->status = status;
    if (status != BYOC_OK)
        assert_true(e->text[0] != '\0');
    const int again = c->n_more-- > 0;
    pthread_mutex_unlock(&c->lock);
    if (again && byoc_run_async(s, &c->t->request, on_end, c, NULL) == BYOC_OK)
        return;
    if (c->n_more < -1)
        byoc_state_free(&c->t->state);
    pthread_mutex_lock(&c->lock);
    c->has_ended = 1;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void run_chain(struct trial *t, struct chain *c, int n_more)
{
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->t = t;
    c->n_more = n_more;
    c->calls = c->has_ended = 0;
    assert_int_equal(byoc_run_async(t->state, &t->request, on_end, c, &err),
                     BYOC_OK);
    pthread_mutex_lock(&c->lock);
    while (!c->has_ended)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void test_callbacks(void **state)
{
    (void)state;
    const struct byoc_load_params load = {.struct_size = sizeof load,
                                          .runners = 3};
    struct chain chain = {0};
    struct trial t;
    begin(&t, two_branches, 2, 1, &load);
    t.out[0].name = "output_1";
    run_chain(&t, &chain, 200);
    assert_true(chain.calls == 201 && chain.status == BYOC_OK);
    assert_true(data_of(&t.out[0])[1] == 11);
    /* a run that fails, or is cancelled, ends in the callback as well */
    t.out[0].name = "nothing";
    run_chain(&t, &chain, 0);
    assert_true(chain.calls == 1 && chain.status == BYOC_EINVAL);
    t.out[0] = (struct byoc_binding){.name = "output_1"};
    byoc_state_cancel(t.state);
    run_chain(&t, &chain, 0);
    assert_int_equal(chain.status, BYOC_ECANCELLED);
    run_chain(&t, &chain, -1);
    assert_true(chain.status == BYOC_OK && !t.state);
    end(&t);
}

/* A run that has ended, and whose callback holds the model's runner until
 * release(). */
struct held_runner {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, released;
    int n; /* of the callbacks after it, in their order */
    struct byoc_state *order[4];
    enum byoc_status status[4];
};

static void hold_until_release(void *ctx, struct byoc_state *s,
                               enum byoc_status status,
                               const struct byoc_error *e)
{
    struct held_runner *h = ctx;
    (void)s, (void)e;
    pthread_mutex_lock(&h->lock);
    assert_int_equal(status, BYOC_OK);
    h->inside = true;
    pthread_cond_broadcast(&h->changed);
    while (!h->released)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void record_end(void *ctx, struct byoc_state *s, enum byoc_status status,
                       const struct byoc_error *e)
{
    struct held_runner *h = ctx;
    (void)e;
    pthread_mutex_lock(&h->lock);
    h->order[h->n] = s;
    h->status[h->n++] = status;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void hold_runner(struct held_runner *h, struct trial *t)
{
    *h = (struct held_runner){0};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    assert_int_equal(
        byoc_run_async(t->state, &t->request, hold_until_release, h, &err),
        BYOC_OK);
    pthread_mutex_lock(&h->lock);
    while (!h->inside)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void release(struct held_runner *h)
{
    pthread_mutex_lock(&h->lock);
    h->released = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void wait_for(struct held_runner *h, int n)
{
    pthread_mutex_lock(&h->lock);
    while (h->n < n)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* A state has one run at a time, and runs begin in their order. A run that
 * waits can be cancelled, and freeing its state waits for it. */
static void test_queue(void **state)
{
    (void)state;
    struct held_runner h;
    struct trial t;
    struct byoc_state *s[3];
    begin(&t, two_branches, 2, 0, NULL);
    hold_runner(&h, &t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(byoc_state_new(t.model, &s[i], &err), BYOC_OK);
        assert_int_equal(byoc_run_async(s[i], &t.request, record_end, &h, &err),
                         BYOC_OK);
    }
    struct byoc_state *const order[] = {s[0], s[1], s[2]};
    assert_int_equal(byoc_run_async(s[1], &t.request, record_end, &h, &err),
                     BYOC_EINVAL);
    assert_non_null(strstr(err.text, "has not ended"));
    byoc_state_cancel(s[1]);
    assert_int_equal(h.n, 0);
    release(&h);
    for (int i = 2; i >= 0; i--)
        byoc_state_free(&s[i]);
    assert_int_equal(h.n, 3);
    assert_memory_equal(h.order, order, sizeof order);
    assert_int_equal(h.status[0], BYOC_OK);
    assert_int_equal(h.status[1], BYOC_ECANCELLED);
    assert_int_equal(h.status[2], BYOC_OK);
    end(&t);
}

/* A thread that a callback notifies may start the next run at once, although
 * the callback has not returned. */
static void test_restart(void **state)
{
    (void)state;
    for (uint32_t runners = 1; runners <= 2; runners++) {
        const struct byoc_load_params load = {.struct_size = sizeof load,
                                              .runners = runners};
        struct held_runner h;
        struct trial t;
        begin(&t, two_branches, 2, 0, &load);
        hold_runner(&h, &t);
        assert_int_equal(
            byoc_run_async(t.state, &t.request, record_end, &h, &err), BYOC_OK);
        if (runners == 2)
            wait_for(&h, 1);
        else
            assert_int_equal(h.n, 0);
        release(&h);
        byoc_state_free(&t.state); /* waits for both */
        assert_int_equal(h.n, 1);
        end(&t);
    }
}

/* --- fork ----------------------------------------------------------------- */

/* In the child, idle states can run, synchronously and asynchronously, and so
 * can states whose run is in the parent's queue. Ends the process. */
static void run_in_child(struct trial *t, struct byoc_state *queued)
{
    struct held_runner h = {0};
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.changed, NULL);
    watch_process(20); /* ends a child that hangs */
    int right = byoc_run_request(t->state, &t->request, &err) == BYOC_OK &&
                data_of(&t->out[0])[1] == 11;
    for (int i = 1; i <= 2; i++) {
        t->out[0].value.tensor.data = NULL;
        struct byoc_state *s = i == 1 ? t->state : queued;
        right = right &&
                byoc_run_async(s, &t->request, record_end, &h, &err) == BYOC_OK;
        if (right)
            wait_for(&h, i);
        right =
            right && h.status[i - 1] == BYOC_OK && data_of(&t->out[0])[1] == 11;
    }
    byoc_state_free(&queued);
    end(t);
    _exit(right ? 0 : 1);
}

static void test_fork(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* under the sanitizer, a forked child cannot start threads */
#endif
    if (getenv("BYOC_EMULATED")) {
        print_message("skipped: qemu lets no forked child make threads\n");
        skip();
    }
    int status = -1;
    struct held_runner h;
    struct trial t;
    struct byoc_state *queued = NULL;
    begin(&t, two_branches, 2, 1, NULL);
    t.out[0].name = "output_1";
    hold_runner(&h, &t);
    assert_int_equal(byoc_state_new(t.model, &queued, &err), BYOC_OK);
    assert_int_equal(byoc_run_async(queued, &t.request, record_end, &h, &err),
                     BYOC_OK);
    const pid_t pid = fork();
    if (pid == 0)
        run_in_child(&t, queued);
    release(&h);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    byoc_state_free(&queued);
    assert_int_equal(h.n, 1);
    end(&t);
}

/* --- memory --------------------------------------------------------------- */

static void *allocate_counted(void *ctx, uint64_t bytes, uint64_t alignment)
{
    void *at = NULL;
    if (posix_memalign(&at, alignment, bytes))
        return NULL;
    *(uint64_t *)ctx += bytes;
    return at;
}

static void release_counted(void *ctx, void *memory, uint64_t bytes)
{
    *(uint64_t *)ctx -= bytes;
    free(memory);
}

static void test_memory(void **state)
{
    (void)state;
    uint64_t bytes = 0, peak = 0;
    struct byoc_load_params load = {.struct_size = sizeof load,
                                    .allocate = allocate_counted,
                                    .release = release_counted,
                                    .allocate_ctx = &bytes,
                                    .memory_bytes = 1 << 16};
    struct trial t;
    begin(&t, varying, 1, 2, &load);
    check_run(&t);
    assert_true(bytes > 0);
    assert_int_equal(byoc_model_memory(t.model, &peak), bytes);
    assert_true(peak >= bytes && peak <= load.memory_bytes);
    /* sizes that need more fail, and those before still run */
    int64_t large[] = {100000, 3};
    float *zeros = calloc(300000, sizeof *zeros);
    t.in[0].value.tensor.data = zeros;
    t.in[0].value.tensor.shape = large;
    assert_int_equal(byoc_run_request(t.state, &t.request, &err), BYOC_ENOMEM);
    t.in[0].value.tensor = view(&t, t.x);
    check_run(&t);
    assert_true(data_of(&t.out[1])[2] == 3);
    byoc_model_memory(t.model, &peak);
    assert_true(peak <= load.memory_bytes);
    end(&t);
    free(zeros);
    assert_int_equal(bytes, 0);
}

/* A model loads with too little memory for a state; and `allocate` needs
 * `release`. */
static void test_too_little_memory(void **state)
{
    (void)state;
    struct trial t;
    struct byoc_load_params load = {.struct_size = sizeof load};
    struct byoc_model *model = NULL;
    struct byoc_state *s = NULL;
    begin(&t, two_branches, 2, 0, &load);
    load.memory_bytes = 100;
    assert_int_equal(byoc_compiled_load(t.compiled, &load, &model, &err),
                     BYOC_OK);
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_ENOMEM);
    assert_non_null(
        strstr(err.text, "; memory_bytes limits the model to 100 bytes"));
    assert_null(s);
    byoc_model_free(&model);
    load.allocate = allocate_counted;
    assert_int_equal(byoc_compiled_load(t.compiled, &load, &model, &err),
                     BYOC_EINVAL);
    assert_null(model);
    end(&t);
}

/* --- the model that compiling has loaded ---------------------------------- */

static void in_order(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                     void *arg)
{
    (void)ctx;
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
}

static void log_nothing(void *ctx, enum byoc_severity severity,
                        const char *line)
{
    (void)ctx, (void)severity, (void)line;
}

/* The first load returns the model that the compile has loaded, unless its
 * params ask for something else. */
static void test_preloaded(void **state)
{
    (void)state;
    static const char *const backends[] = {"abi", NULL};
    static const char plugin[] = PLUGIN_DIR "/abi_this.so";
    const struct byoc_compile_params compile = {.struct_size = sizeof compile,
                                                .plugins = plugin,
                                                .backends = backends,
                                                .threads = 1};
    const struct byoc_load_params same = {.struct_size = sizeof same,
                                          .plugins = plugin,
                                          .threads = 1,
                                          .log = log_nothing,
                                          .log_severity = BYOC_ERROR,
                                          .require_backends = 1,
                                          .verify = 1};
    uint64_t bytes = 0;
    struct byoc_load_params others[] = {same, same, same, same, same,
                                        same, same, same, same, same};
    enum { N_OTHERS = sizeof others / sizeof *others };
    others[0].native_only = 1;
    others[1].threads = 2;
    others[2].plugins = PLUGIN_DIR "/abi_newer.so";
    others[3].wait = BYOC_WAIT_SLEEP;
    others[4].cache_shapes = 1;
    others[5].cache_bytes = 1;
    others[6].parallel_for = in_order;
    others[7].runners = 2;
    others[8].memory_bytes = 1 << 30;
    others[9].allocate = allocate_counted;
    others[9].release = release_counted;
    others[9].allocate_ctx = &bytes;
    struct byoc_compiled *c = NULL;
    struct byoc_model *model = NULL;
    assert_int_equal(byoc_compile(TEST_DIR "/abi/relu.ir", &compile, &c, &err),
                     BYOC_OK);
    const struct byoc_model *const preloaded = c->preloaded;
    assert_non_null(preloaded);
    for (int i = 0; i < N_OTHERS; i++) {
        if (byoc_compiled_load(c, &others[i], &model, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        assert_ptr_not_equal(model, preloaded);
        byoc_model_free(&model);
    }
    assert_int_equal(byoc_compiled_load(c, &same, &model, &err), BYOC_OK);
    assert_ptr_equal(model, preloaded);
    assert_null(c->preloaded);
    byoc_model_free(&model);
    byoc_compiled_free(&c);
}

/* The ledger belongs to the compiled model, not to models loaded from it. */
static void test_no_ledger(void **state)
{
    struct trial t;
    uint64_t bytes = 7;
    (void)state;
    begin(&t, varying, 1, 2, NULL);
    assert_null(byoc_model_ledger(t.model, &bytes));
    assert_int_equal(bytes, 0);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_reserved),
        cmocka_unit_test(test_chosen_outputs),
        cmocka_unit_test(test_alternate_outputs),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_preloaded),
        cmocka_unit_test(test_no_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
