/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c: implements asynchronous runs, which call a callback when they end.
 * A model has a queue of states to run, and threads that take them from the
 * queue in order. The first asynchronous run starts the threads. A state is in
 * the queue at most once, so queueing needs no allocation.
 *
 *     idle -> queued -> running -> idle, and its callback is called
 *
 * The callback, or a thread that it notifies, may queue the state again or free
 * it. Freeing a state waits for its callbacks to return, except the callback
 * that frees it.
 *
 * A forked child has none of these threads: it begins with empty queues and
 * idle states, and starts its own threads. */
#include "state.h"

#include "core/base/fork.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The threads that run the queued runs of a model's states. */
struct byi_runners {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* the queue has a state, or `stop` is set */
    pthread_cond_t ended; /* a callback has returned */
    struct byoc_state *first, **last;
    uint32_t max_threads, n; /* threads to create; threads that exist */
    bool stop;
    struct byi_runners *newer, *older; /* in the list of all runners */
    pthread_t threads[];
};

/* The runners of all models. */
static struct {
    pthread_mutex_t lock;
    struct byi_runners *newest;
    uint32_t epoch; /* number of forks */
} all_runners = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The state whose callback this thread is in, unless the callback freed it. */
static _Thread_local struct byoc_state *ending_state;

static void list_runners(struct byi_runners *r)
{
    pthread_mutex_lock(&all_runners.lock);
    r->older = all_runners.newest;
    if (r->older)
        r->older->newer = r;
    all_runners.newest = r;
    pthread_mutex_unlock(&all_runners.lock);
}

static void unlist_runners(struct byi_runners *r)
{
    pthread_mutex_lock(&all_runners.lock);
    *(r->newer ? &r->newer->older : &all_runners.newest) = r->older;
    if (r->older)
        r->older->newer = r->newer;
    pthread_mutex_unlock(&all_runners.lock);
}

/* Initialise the runners, without threads and with an empty queue. */
static void init_runners(struct byi_runners *r)
{
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->ended, NULL);
    r->first = NULL;
    r->last = &r->first;
    r->n = 0;
}

struct byi_runners *byi_runners_new(uint32_t n)
{
    const uint32_t max_threads = n ? n : 1;
    struct byi_runners *r =
        byi_alloc(1, sizeof *r + max_threads * sizeof r->threads[0]);
    if (!r)
        return NULL;
    r->max_threads = max_threads;
    init_runners(r);
    list_runners(r);
    return r;
}

void byi_runners_free(struct byi_runners **runners)
{
    struct byi_runners *r = *runners;
    *runners = NULL;
    if (!r)
        return;
    unlist_runners(r);
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->n; i++)
        pthread_join(r->threads[i], NULL);
    pthread_cond_destroy(&r->ended);
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* --- threads ------------------------------------------------------------- */

/* Wait for a state, take it from the queue and copy its run to *run. Returns
 * NULL if the queue is empty and the threads must end. */
static struct byoc_state *next_state(struct byi_runners *r,
                                     struct byi_async_run *run)
{
    struct byoc_state *s;
    pthread_mutex_lock(&r->lock);
    while (!r->first && !r->stop)
        pthread_cond_wait(&r->work, &r->lock);
    s = r->first;
    if (s) {
        *run = s->async;
        r->first = run->next;
        if (!r->first)
            r->last = &r->first;
    }
    pthread_mutex_unlock(&r->lock);
    return s;
}

static void run_state(struct byi_runners *r, struct byoc_state *s,
                      const struct byi_async_run *run)
{
    struct byoc_error err = {0};
    const enum byoc_status status = byoc_run_request(s, run->request, &err);
    pthread_mutex_lock(&r->lock);
    s->async.busy = false;
    s->async.callbacks++;
    pthread_mutex_unlock(&r->lock);
    ending_state = s;
    run->done(run->ctx, s, status, &err);
    pthread_mutex_lock(&r->lock);
    if (ending_state)
        s->async.callbacks--;
    ending_state = NULL;
    pthread_cond_broadcast(&r->ended);
    pthread_mutex_unlock(&r->lock);
}

static void *run_queue(void *arg)
{
    struct byi_runners *r = arg;
    struct byi_async_run run;
    struct byoc_state *s;
    while ((s = next_state(r, &run)) != NULL)
        run_state(r, s, &run);
    return NULL;
}

/* Create the threads that are missing, with all signals blocked, so that
 * signals go to the host's threads. Returns 0 if at least one thread exists,
 * otherwise an error number. Called with the lock. */
static int make_threads(struct byi_runners *r)
{
    sigset_t signals, old_signals;
    int error = 0;
    if (r->n == r->max_threads)
        return 0;
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &old_signals);
    while (r->n < r->max_threads && !error) {
        error = pthread_create(&r->threads[r->n], NULL, run_queue, r);
        r->n += !error;
    }
    pthread_sigmask(SIG_SETMASK, &old_signals, NULL);
    return r->n ? 0 : error;
}

/* --- queueing a run ----------------------------------------------------- */

/* The state's asynchronous run, reset if it began in the parent process. */
static struct byi_async_run *async_run_of(struct byoc_state *s)
{
    if (s->async.epoch != all_runners.epoch)
        s->async = (struct byi_async_run){.epoch = all_runners.epoch};
    return &s->async;
}

/* Append the state's run `new_run` to the queue. Called with the lock. */
static enum byoc_status queue_run(struct byi_runners *r, struct byoc_state *s,
                                  const struct byi_async_run *new_run,
                                  struct byoc_error *err)
{
    struct byi_async_run *run = async_run_of(s);
    if (run->busy)
        return byi_fail(err, BYOC_EINVAL,
                        "the state's previous run has not ended; create a "
                        "state for each run that may be active");
    const int error = make_threads(r);
    if (error)
        return byi_fail(err, BYOC_ENOMEM,
                        "cannot create a thread for asynchronous runs: %s",
                        strerror(error));
    run->request = new_run->request;
    run->done = new_run->done;
    run->ctx = new_run->ctx;
    run->next = NULL;
    run->busy = true;
    *r->last = s;
    r->last = &run->next;
    pthread_cond_signal(&r->work);
    return BYOC_OK;
}

enum byoc_status byoc_run_async(struct byoc_state *state,
                                const struct byoc_request *request,
                                byoc_done_fn done, void *ctx,
                                struct byoc_error *err)
{
    struct byi_runners *r = state->model->runners;
    const struct byi_async_run run = {
        .request = request, .done = done, .ctx = ctx};
    pthread_mutex_lock(&r->lock);
    const enum byoc_status status = queue_run(r, state, &run, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

void byi_runners_wait(struct byoc_state *state)
{
    struct byi_runners *r = state->model->runners;
    const uint32_t own_callbacks = ending_state == state;
    pthread_mutex_lock(&r->lock);
    const struct byi_async_run *run = async_run_of(state);
    while (run->busy || run->callbacks > own_callbacks)
        pthread_cond_wait(&r->ended, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (own_callbacks)
        ending_state = NULL;
}

/* --- fork ----------------------------------------------------------------- */

static void reset_in_child(void)
{
    pthread_mutex_init(&all_runners.lock, NULL);
    all_runners.epoch++;
    ending_state = NULL;
    for (struct byi_runners *r = all_runners.newest; r; r = r->older)
        init_runners(r);
}

BYI_HOLD_AT_FORK(all_runners.lock, reset_in_child)
