/* SPDX-License-Identifier: Apache-2.0 */
/* clients.c: runs a model from several client threads at once. With a rate, run
 * k is due at k / rate seconds whether or not earlier runs have ended, and its
 * latency counts from then. Latencies therefore include the delay that a
 * slow run causes to later ones; omitting it is known as "coordinated
 * omission".
 */
#include "clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when,
                               .tv_nsec =
                                   (long)(1e9 * (when - (double)(time_t)when))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
        ;
}

/* The data that the clients share. */
struct shared_by_clients {
    const struct byi_bench_clients *bench;
    double start_time;     /* from byi_now */
    _Atomic uint64_t next; /* number of the next run */
    _Atomic bool failed;   /* a client failed, so all stop */
};

/* A client: a thread with its own state. */
struct client {
    struct shared_by_clients *shared;
    pthread_t thread;
    struct byoc_state *state;
    struct byi_feed out;
    double *latency; /* n latencies in seconds, from byi_realloc */
    uint32_t n, cap;
    double end_time; /* of its last run, from byi_now; 0: none */
    enum byoc_status status;
    struct byoc_error err;
};

/* Append a latency. BYI_PUSH cannot be used: it jumps to the thread's guard
 * when an allocation fails, and client threads have no guard. */
static enum byoc_status add_latency(struct client *c, double latency)
{
    if (c->n == c->cap) {
        const uint32_t cap = c->cap ? 2 * c->cap : 1024;
        double *longer = byi_realloc(c->latency, cap, sizeof *longer);
        if (!longer)
            return byi_fail(&c->err, BYOC_ENOMEM,
                            "out of memory for the latencies of %u runs", cap);
        c->latency = longer;
        c->cap = cap;
    }
    c->latency[c->n++] = latency;
    return BYOC_OK;
}

/* Run until the number of runs and the time are reached, or a client fails. */
static enum byoc_status run_client(struct client *c)
{
    const struct byi_bench_clients *bench = c->shared->bench;
    while (!c->shared->failed) {
        const uint64_t k = c->shared->next++;
        const double now = byi_now(), start_time = c->shared->start_time;
        const double due =
            bench->rate > 0 ? start_time + (double)k / bench->rate : now;
        const double start = due > now ? due : now;
        if (k >= BYI_BENCH_MAX_RUNS ||
            (k >= bench->min_runs && start - start_time >= bench->seconds))
            break;
        if (due > now)
            sleep_until(due);
        BYI_TRY(byi_feed_run(c->state, bench->in, &c->out, &c->err));
        c->end_time = byi_now();
        BYI_TRY(add_latency(c, c->end_time - due));
    }
    return BYOC_OK;
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    c->status = run_client(c);
    if (c->status != BYOC_OK)
        c->shared->failed = true;
    return NULL;
}

/* Start the clients and wait for them. */
static enum byoc_status run_clients(struct shared_by_clients *shared,
                                    struct client *clients,
                                    struct byoc_error *err)
{
    const uint32_t n = shared->bench->clients;
    uint32_t started = 0;
    enum byoc_status status = BYOC_OK;
    shared->start_time = byi_now();
    for (; started < n && status == BYOC_OK; started++) {
        const int error = pthread_create(&clients[started].thread, NULL,
                                         client_main, &clients[started]);
        if (error) {
            status = byi_fail(err, BYOC_ELIMIT,
                              "cannot create the thread of client %u of %u: "
                              "%s; try fewer clients",
                              started + 1, n, strerror(error));
            shared->failed = true;
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(clients[i].thread, NULL);
        if (clients[i].status != BYOC_OK && status == BYOC_OK) {
            *err = clients[i].err;
            status = clients[i].status;
        }
    }
    return status;
}

/* Join the latencies of all clients in one vector, and set the results. */
static void gather_latencies(struct byi_bench_clients *bench,
                             const struct client *clients, double start_time)
{
    BYI_VEC(double) all = {0};
    double end_time = start_time;
    for (uint32_t i = 0; i < bench->clients; i++) {
        end_time =
            clients[i].end_time > end_time ? clients[i].end_time : end_time;
        for (uint32_t k = 0; k < clients[i].n; k++)
            BYI_PUSH(&all, clients[i].latency[k]);
    }
    bench->latency = all.at;
    bench->n = all.n;
    bench->elapsed = end_time - start_time;
}

enum byoc_status byi_clients_run(struct byi_bench_clients *bench,
                                 struct byi_arena *arena,
                                 struct byoc_error *err)
{
    struct shared_by_clients shared = {.bench = bench};
    struct client *clients =
        byi_arena_calloc(arena, bench->clients, sizeof *clients);
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < bench->clients && status == BYOC_OK; i++) {
        clients[i].shared = &shared;
        clients[i].out = byi_feed_outputs(bench->model, arena);
        status = byoc_state_new(bench->model, &clients[i].state, err);
        if (status == BYOC_OK)
            status =
                byi_feed_run(clients[i].state, bench->in, &clients[i].out, err);
    }
    if (status == BYOC_OK)
        status = run_clients(&shared, clients, err);
    if (status == BYOC_OK)
        gather_latencies(bench, clients, shared.start_time);
    for (uint32_t i = 0; i < bench->clients; i++) {
        byoc_state_free(&clients[i].state);
        free(clients[i].latency);
    }
    return status;
}
