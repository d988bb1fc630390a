/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: implements the services of struct byoc_host for plug-ins, and
 * converts failures that plug-ins return to statuses. */
#include "internal.h"

#include "core/base/child.h"
#include "core/base/failure.h"
#include "region/graph.h"
#include "workers.h"

#include <stdatomic.h>

static void *host_acquire(void *ctx, uint64_t bytes)
{
    struct byi_plugin *plugin = ctx;
    void *at = byi_memory_allocate(plugin->memory, bytes);
    if (at)
        atomic_fetch_add_explicit(&plugin->acquired, bytes,
                                  memory_order_relaxed);
    return at;
}

static void host_release(void *ctx, void *memory)
{
    struct byi_plugin *plugin = ctx;
    atomic_fetch_sub_explicit(&plugin->acquired,
                              byi_memory_release(plugin->memory, memory),
                              memory_order_relaxed);
}

uint64_t byi_plugin_acquired(const struct byi_plugin *plugin)
{
    return atomic_load_explicit(&plugin->acquired, memory_order_relaxed);
}

static struct byoc_fail *host_fail(void *ctx, uint32_t code, const char *text)
{
    (void)ctx;
    return byi_failure_new(code, text && *text ? text : "(no reason given)");
}

static void host_log(void *ctx, const char *line)
{
    const struct byi_plugin *plugin = ctx;
    byi_log_line(&plugin->log, BYOC_DEBUG, line);
}

/* The plug-in in whose run(), of its backend or an operator, the calling thread
 * is; NULL: none. run() may use only the threads of the current turn
 * (workers.h); other functions may use all threads of the model. */
static _Thread_local const struct byi_plugin *running;

static uint32_t host_threads(void *ctx)
{
    const struct byi_plugin *plugin = ctx;
    const uint32_t of_turn = running ? byi_workers_of_turn() : 0;
    return of_turn ? of_turn : plugin->threads;
}

const struct byi_plugin *byi_plugin_set_running(const struct byi_plugin *plugin)
{
    const struct byi_plugin *before = running;
    running = plugin;
    return before;
}

uint64_t byoc_internal_step_now(const char **plugin, const char **text)
{
    const uint64_t began = byi_child_step_now(plugin, text);
    if (began)
        return began;
    *plugin = running ? running->backend->name : "";
    *text = running ? "run()" : "";
    return running ? UINT64_MAX : 0;
}

void byoc_internal_record_steps(void)
{
    byi_child_record_steps();
}

struct byoc_fail *byi_plugin_run(const struct byi_plugin *plugin,
                                 void *compiled, void *state,
                                 const struct byoc_run_args *args)
{
    const struct byi_plugin *before = byi_plugin_set_running(plugin);
    struct byoc_fail *fail =
        plugin->backend->run(&plugin->host, compiled, state, args);
    byi_plugin_set_running(before);
    return fail;
}

static void host_parallel_for(void *ctx, uint32_t n,
                              void (*fn)(void *, uint32_t), void *arg)
{
    (void)ctx;
    byi_parallel_for(n, fn, arg);
}

void byi_plugin_init_host(struct byi_plugin *plugin, uint32_t abi)
{
    plugin->host = (struct byoc_host){
        .struct_size = sizeof plugin->host,
        .abi = abi,
        .ctx = plugin,
        .acquire = host_acquire,
        .release = host_release,
        .fail = host_fail,
        .fail_text = byi_failure_text,
        .fail_code = byi_failure_code,
        .fail_free = byi_failure_free,
        .log = host_log,
        .threads = host_threads,
        .parallel_for = host_parallel_for,
        .graph_open = byi_graph_open,
        .graph_close = byi_graph_close,
    };
}

enum byoc_status byi_plugin_status(struct byoc_fail *fail,
                                   const struct byi_plugin *plugin,
                                   const char *where, struct byoc_error *err)
{
    if (!fail)
        return BYOC_OK;
    static const enum byoc_status status_of[] = {
        [BYOC_FAIL_UNSUPPORTED] = BYOC_EUNSUPPORTED,
        [BYOC_FAIL_INVALID] = BYOC_EBACKEND,
        [BYOC_FAIL_INCOMPATIBLE] = BYOC_EINCOMPATIBLE,
        [BYOC_FAIL_RESOURCE] = BYOC_ENOMEM,
        [BYOC_FAIL_INTERNAL] = BYOC_EBACKEND,
        [BYOC_FAIL_STALE] = BYOC_EINCOMPATIBLE,
        [BYOC_FAIL_CANCELLED] = BYOC_ECANCELLED,
    };
    enum byoc_status status = BYOC_EBACKEND;
    const uint32_t code = byi_failure_code(fail);
    if (code > 0 && code < BYI_COUNT(status_of))
        status = status_of[code];
    byi_fail(err, status, "%s: %s: %s", plugin->backend->name, where,
             byi_failure_text(fail));
    byi_failure_free(fail);
    return status;
}
