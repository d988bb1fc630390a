/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: loads regions, creates their states, and runs them.
 *
 * An operator of XNNPACK contains packed weights and the addresses of its
 * operands, so it can serve one run at a time. Loading creates one set of
 * operators, which packs the weights once. A new state takes an unused set, or
 * creates another one; freeing the state makes its set unused again.
 *
 * XNNPACK's threads are a pool with as many threads as the host allows; regions
 * with the same number of threads share it. A run that finds the pool busy uses
 * its own thread.
 */
#define _POSIX_C_SOURCE 200809L
#include "xnn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An operator with fewer multiplications than this runs faster on one thread,
 * since waking others takes longer. */
enum { MIN_PARALLEL_WORK = 1 << 17 };

/* A set of XNNPACK's operators, one for each operator of a program; NULL for
 * conversions and copies. */
struct set {
    struct set *next;
    xnn_operator_t at[];
};

/* A pool of threads, for all regions with this number of threads. */
struct pool {
    pthreadpool_t at;
    uint32_t threads;
    uint32_t users; /* number of loaded regions that use the pool */
    int busy;       /* a run uses it */
    struct pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools; /* `lock` guards the list and its elements */

/* The result of xnn_load. */
struct loaded_region {
    struct program *program;
    struct pool *pool; /* NULL: one thread */
    struct set *idle;  /* unused sets, guarded by `lock` */
};

/* The memory of one run at a time. */
struct state {
    struct set *set;
    char *memory;
    const void **bindings; /* for each operator three entries: the addresses of
                            * in[0], in[1] and out; NULL: not bound */
    float **copies; /* for each input: the copy that readable_input() made, or
                       NULL */
};

/* The failure for a status: `what` was done with the operator, or with the
 * library if op is NULL. */
static struct byoc_fail *fail_of(const struct byoc_host *host,
                                 enum xnn_status status, const char *what,
                                 const struct op *op)
{
    static const struct {
        const char *text;
        enum byoc_fail_code code;
    } known_statuses[] = {
        [xnn_status_success] = {"success", BYOC_FAIL_INTERNAL},
        [xnn_status_uninitialized] = {"uninitialized", BYOC_FAIL_INTERNAL},
        [xnn_status_invalid_parameter] = {"invalid parameter",
                                          BYOC_FAIL_UNSUPPORTED},
        [xnn_status_invalid_state] = {"invalid state", BYOC_FAIL_INTERNAL},
        [xnn_status_unsupported_parameter] = {"unsupported parameter",
                                              BYOC_FAIL_UNSUPPORTED},
        [xnn_status_unsupported_hardware] = {"unsupported hardware",
                                             BYOC_FAIL_UNSUPPORTED},
        [xnn_status_out_of_memory] = {"out of memory", BYOC_FAIL_RESOURCE},
    };
    char text[200];
    const int known =
        (size_t)status < COUNT(known_statuses) && known_statuses[status].text;
    snprintf(text, sizeof text, "XNNPACK: %s %s: %s", what,
             op ? op->kind->name : "the library",
             known ? known_statuses[status].text
                   : "a status unknown to this plug-in");
    return host->fail(host->ctx,
                      known ? known_statuses[status].code : BYOC_FAIL_INTERNAL,
                      text);
}

static struct byoc_fail *out_of_memory(const struct byoc_host *host)
{
    return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
}

/* --- sets ----------------------------------------------------------------- */

static void set_free(const struct program *p, struct set *set)
{
    for (uint32_t i = 0; set && i < p->n_ops; i++)
        if (set->at[i])
            xnn_delete_operator(set->at[i]);
    free(set);
}

static struct byoc_fail *set_new(const struct byoc_host *host,
                                 const struct program *p, struct set **out)
{
    struct set *set = calloc(1, sizeof *set + p->n_ops * sizeof *set->at);
    if (!set)
        return out_of_memory(host);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        enum xnn_status status = xnn_status_success;
        if (op->kind->create)
            status = op->kind->create(op, &set->at[i]);
        if (status != xnn_status_success) {
            set->at[i] = NULL;
            set_free(p, set);
            return fail_of(host, status, "creating", op);
        }
    }
    *out = set;
    return NULL;
}

/* --- pools ---------------------------------------------------------------- */

/* The pool of this many threads, which the first user creates; NULL if that
 * fails. */
static struct pool *pool_use(uint32_t threads)
{
    pthread_mutex_lock(&lock);
    struct pool *p = pools;
    while (p && p->threads != threads)
        p = p->next;
    if (!p && (p = calloc(1, sizeof *p))) {
        p->threads = threads;
        p->at = pthreadpool_create(threads);
        if (p->at) {
            p->next = pools;
            pools = p;
        } else {
            free(p);
            p = NULL;
        }
    }
    if (p)
        p->users++;
    pthread_mutex_unlock(&lock);
    return p;
}

/* Undo pool_use(). The last user destroys the pool. */
static void pool_leave(struct pool *p)
{
    pthread_mutex_lock(&lock);
    if (--p->users == 0) {
        struct pool **at = &pools;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
        pthreadpool_destroy(p->at);
        free(p);
    }
    pthread_mutex_unlock(&lock);
}

/* Take the pool for a run. Returns NULL if another run has it, or if p is NULL.
 */
static pthreadpool_t pool_take(struct pool *p)
{
    pthread_mutex_lock(&lock);
    const int is_free = p && !p->busy;
    if (is_free)
        p->busy = 1;
    pthread_mutex_unlock(&lock);
    return is_free ? p->at : NULL;
}

static void do_nothing(void *unused, size_t i)
{
    (void)unused, (void)i;
}

/* Release the pool for other runs. Its threads spin while they wait for more
 * work, on CPUs that the next step needs, so let them sleep. */
static void pool_release(struct pool *p)
{
    pthreadpool_parallelize_1d(p->at, do_nothing, NULL, p->threads,
                               PTHREADPOOL_FLAG_YIELD_WORKERS);
    pthread_mutex_lock(&lock);
    p->busy = 0;
    pthread_mutex_unlock(&lock);
}

/* --- regions -------------------------------------------------------------- */

void xnn_unload(const struct byoc_host *host, void *compiled)
{
    struct loaded_region *l = compiled;
    for (struct set *next, *set = l->idle; set; set = next) {
        next = set->next;
        set_free(l->program, set);
    }
    if (l->pool)
        pool_leave(l->pool);
    program_free(host, l->program);
    free(l);
    xnn_deinitialize();
}

/* Whether threads make any operator of the program faster. */
static int is_worth_threads(const struct program *p)
{
    uint32_t i = 0;
    while (i < p->n_ops &&
           (!p->ops[i].kind->create || p->ops[i].work < MIN_PARALLEL_WORK))
        i++;
    return i < p->n_ops;
}

/* Set the program, operators and pool of `l`. */
static struct byoc_fail *load_region(const struct byoc_host *host,
                                     const struct byoc_region *region,
                                     struct loaded_region *l)
{
    struct byoc_graph *graph;
    struct byoc_fail *fail = byoc_graph_read(host, region, &graph);
    fail = fail ? fail : program_new(host, graph, &l->program);
    fail = fail ? fail : set_new(host, l->program, &l->idle);
    const uint32_t threads = host->threads(host->ctx);
    if (!fail && threads > 1 && is_worth_threads(l->program)) {
        l->pool = pool_use(threads);
        fail = l->pool ? NULL : out_of_memory(host);
    }
    return fail;
}

struct byoc_fail *xnn_load(const struct byoc_host *host,
                           const struct byoc_region *region, void **compiled)
{
    const enum xnn_status status = xnn_initialize(NULL);
    if (status != xnn_status_success)
        return fail_of(host, status, "starting", NULL);
    struct loaded_region *l = calloc(1, sizeof *l);
    if (!l) {
        xnn_deinitialize();
        return out_of_memory(host);
    }
    struct byoc_fail *fail = load_region(host, region, l);
    if (fail)
        xnn_unload(host, l);
    else
        *compiled = l;
    return fail;
}

const char *xnn_name(const void *compiled)
{
    const struct program *p = ((const struct loaded_region *)compiled)->program;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind->create)
            return p->ops[i].kind->name;
    return "view";
}

/* --- states --------------------------------------------------------------- */

/* Whether the address of tensor t is the same in all runs. */
static int is_fixed(const struct program *p, uint32_t t)
{
    return t == NONE || p->tensors[t].where == CONSTANT ||
           p->tensors[t].where == MEMORY;
}

/* Bind an operator to these addresses, unless it is bound to them already. */
static enum xnn_status bind(const struct loaded_region *l, struct state *s,
                            uint32_t i, const void *a, const void *b, void *out)
{
    const struct op *op = &l->program->ops[i];
    const void **bindings = &s->bindings[3 * i];
    if (bindings[0] == a && bindings[1] == b && bindings[2] == out)
        return xnn_status_success;
    const enum xnn_status status = op->kind->setup(
        op, s->set->at[i], a, b, out, l->pool ? l->pool->at : NULL);
    if (status == xnn_status_success) {
        bindings[0] = a;
        bindings[1] = b;
        bindings[2] = out;
    }
    return status;
}

/* The address of tensor t, for which is_fixed() is true; NULL if t is NONE. */
static void *fixed_address(const struct program *p, const struct state *s,
                           uint32_t t)
{
    if (t == NONE)
        return NULL;
    return p->tensors[t].where == CONSTANT ? (void *)p->tensors[t].data
                                           : s->memory + p->tensors[t].offset;
}

/* Bind the operators whose addresses are the same in all runs. */
static struct byoc_fail *bind_fixed(const struct byoc_host *host,
                                    const struct loaded_region *l,
                                    struct state *s)
{
    const struct program *p = l->program;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (!op->kind->create || !is_fixed(p, op->in[0]) ||
            !is_fixed(p, op->in[1]) || !is_fixed(p, op->out))
            continue;
        const enum xnn_status status =
            bind(l, s, i, fixed_address(p, s, op->in[0]),
                 fixed_address(p, s, op->in[1]), fixed_address(p, s, op->out));
        if (status != xnn_status_success)
            return fail_of(host, status, "binding", op);
    }
    return NULL;
}

void xnn_state_free(const struct byoc_host *host, void *compiled, void *state)
{
    struct loaded_region *l = compiled;
    struct state *s = state;
    for (uint32_t i = 0; s->copies && i < l->program->graph->n_inputs; i++)
        host->release(host->ctx, s->copies[i]);
    if (s->set) {
        pthread_mutex_lock(&lock);
        s->set->next = l->idle;
        l->idle = s->set;
        pthread_mutex_unlock(&lock);
    }
    host->release(host->ctx, s->memory);
    free(s->copies);
    free(s->bindings);
    free(s);
}

static struct byoc_fail *take_set(const struct byoc_host *host,
                                  struct loaded_region *l, struct state *s)
{
    pthread_mutex_lock(&lock);
    s->set = l->idle;
    if (s->set)
        l->idle = s->set->next;
    pthread_mutex_unlock(&lock);
    return s->set ? NULL : set_new(host, l->program, &s->set);
}

struct byoc_fail *xnn_state_new(const struct byoc_host *host, void *compiled,
                                void **state)
{
    struct loaded_region *l = compiled;
    const struct program *p = l->program;
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return out_of_memory(host);
    s->memory = host->acquire(host->ctx, p->bytes + 64);
    s->bindings = calloc(3 * p->n_ops + 1, sizeof *s->bindings);
    s->copies = calloc(p->graph->n_inputs + 1, sizeof *s->copies);
    struct byoc_fail *fail = NULL;
    if (!s->memory || !s->bindings || !s->copies)
        fail = out_of_memory(host);
    fail = fail ? fail : take_set(host, l, s);
    fail = fail ? fail : bind_fixed(host, l, s);
    if (fail)
        xnn_state_free(host, l, s);
    else
        *state = s;
    return fail;
}

/* --- runs ----------------------------------------------------------------- */

/* XNNPACK reads up to XNN_EXTRA_BYTES past an operand. Returns the input if
 * these bytes are in the same page, otherwise a copy; NULL: out of memory. */
static const void *readable_input(const struct byoc_host *host, struct state *s,
                                  const struct byoc_view *view, uint32_t input)
{
    enum { PAGE = 4096 }; /* the smallest page size of any processor */
    const uintptr_t end = (uintptr_t)view->data + view->bytes;
    if ((end - 1) / PAGE == (end - 1 + XNN_EXTRA_BYTES) / PAGE)
        return view->data;
    if (!s->copies[input])
        s->copies[input] =
            host->acquire(host->ctx, view->bytes + XNN_EXTRA_BYTES);
    if (s->copies[input])
        memcpy(s->copies[input], view->data, view->bytes);
    return s->copies[input];
}

/* A run: its region, state and arguments. */
struct run {
    const struct byoc_host *host;
    const struct loaded_region *l;
    struct state *s;
    const struct byoc_run_args *args;
    pthreadpool_t pool; /* NULL: the run's own thread */
};

/* The address from which an operator reads tensor t, or NULL if t is NONE or
 * memory is exhausted. `has_move`: the operator has a move() function. */
static const void *operand_address(struct run *r, uint32_t t, int has_move)
{
    const struct tensor *tensor = t == NONE ? NULL : &r->l->program->tensors[t];
    if (!tensor || is_fixed(r->l->program, t))
        return fixed_address(r->l->program, r->s, t);
    if (tensor->where == OUTPUT)
        return r->args->outputs[tensor->index].data;
    const struct byoc_view *view = &r->args->inputs[tensor->index];
    return has_move ? view->data
                    : readable_input(r->host, r->s, view, tensor->index);
}

static struct byoc_fail *run_op(struct run *r, uint32_t i)
{
    const struct program *p = r->l->program;
    const struct op *op = &p->ops[i];
    const int has_move = op->kind->move != NULL;
    const void *a = operand_address(r, op->in[0], has_move);
    const void *b = operand_address(r, op->in[1], has_move);
    void *out = is_fixed(p, op->out)
                    ? fixed_address(p, r->s, op->out)
                    : r->args->outputs[p->tensors[op->out].index].data;
    if (!a || (!b && op->in[1] != NONE))
        return out_of_memory(r->host);
    if (has_move) {
        op->kind->move(op, a, out);
        return NULL;
    }
    enum xnn_status status = bind(r->l, r->s, i, a, b, out);
    if (status != xnn_status_success)
        return fail_of(r->host, status, "binding", op);
    status = xnn_run_operator(r->s->set->at[i],
                              op->work < MIN_PARALLEL_WORK ? NULL : r->pool);
    return status == xnn_status_success
               ? NULL
               : fail_of(r->host, status, "running", op);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct byoc_fail *run_ops(struct run *r)
{
    const struct program *p = r->l->program;
    struct byoc_fail *fail = NULL;
    for (uint32_t i = 0; !fail && i < p->n_ops; i++) {
        const uint64_t begin = r->args->trace ? now_ns() : 0;
        fail = run_op(r, i);
        if (r->args->trace && !fail)
            r->args->trace(r->args->trace_ctx, p->ops[i].kind->name, "xnnpack",
                           p->ops[i].source, begin, now_ns());
    }
    return fail;
}

struct byoc_fail *xnn_run(const struct byoc_host *host, void *compiled,
                          void *state, const struct byoc_run_args *args)
{
    struct loaded_region *l = compiled;
    const struct byoc_graph *g = l->program->graph;
    if (args->n_inputs != g->n_inputs || args->n_outputs != g->n_outputs) {
        char text[160];
        snprintf(text, sizeof text,
                 "found %u inputs and %u outputs, expected %u and %u",
                 args->n_inputs, args->n_outputs, g->n_inputs, g->n_outputs);
        return host->fail(host->ctx, BYOC_FAIL_INVALID, text);
    }
    struct run r = {host, l, state, args, pool_take(l->pool)};
    struct byoc_fail *fail = run_ops(&r);
    if (r.pool)
        pool_release(l->pool);
    return fail;
}
