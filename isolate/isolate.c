/* SPDX-License-Identifier: Apache-2.0 */
/* isolate.c: byoc's side of an isolated plug-in: a struct byoc_backend whose
 * functions are messages to its process.
 */
#include "isolate.h"

#include "wire.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/temp.h"
#include "patterns/patterns.h"

const char *const byi_isolate_names[BYI_ISOLATE_N_OPS] = {
    [BYI_ISOLATE_OPEN] = "query",          [BYI_ISOLATE_ACCEPT] = "accept",
    [BYI_ISOLATE_PROBE] = "probe",         [BYI_ISOLATE_LAYOUT] = "layout",
    [BYI_ISOLATE_COST] = "cost",           [BYI_ISOLATE_COMPILE] = "compile",
    [BYI_ISOLATE_LOAD] = "load or unload",
};

struct isolated {
    struct byi_plugin plugin; /* first: what host->ctx points to */
    struct byoc_backend backend;
    struct byi_arena *arena;
    pid_t pid;
    struct byi_temp *listed;
    int fd;
    double seconds;
    const struct byoc_match *match; /* of the accept() that goes on */
    const char *fell;
    bool nameless; /* it fell before it said its name */
};

static struct isolated *isolated_of(const struct byoc_host *host)
{
    return host->ctx;
}

const char *byi_isolate_fall(const struct byi_plugin *plugin)
{
    return ((const struct isolated *)plugin)->fell;
}

/* --- falling -------------------------------------------------------------- */

/* End the process; how it ended by itself, or -1 where it had to be killed. A
 * process that dies may take a moment. */
static int end_process(struct isolated *iso, bool late)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int status = -1;
    close(iso->fd);
    for (uint32_t i = 0; i < 200 && !late; i++) {
        if (waitpid(iso->pid, &status, WNOHANG) == iso->pid) {
            byi_temp_done(&iso->listed);
            iso->pid = 0;
            return status;
        }
        nanosleep(&moment, NULL);
    }
    kill(iso->pid, SIGKILL);
    waitpid(iso->pid, NULL, 0);
    byi_temp_done(&iso->listed);
    iso->pid = 0;
    return -1;
}

/* `op` of `what` ("": not known) was the last that it did. */
static void fall(struct isolated *iso, enum byi_isolate_op op, const char *what,
                 bool late)
{
    const int status = end_process(iso, late);
    const char *how = "said what makes no sense";
    if (late)
        how = byi_arena_printf(iso->arena, "gave no answer within %g s",
                               iso->seconds);
    else if (status >= 0 && WIFSIGNALED(status))
        how = byi_arena_printf(iso->arena, "died of signal %d (%s)",
                               WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (status >= 0)
        how = byi_arena_printf(iso->arena, "left with exit code %d",
                               WEXITSTATUS(status));
    iso->fell =
        byi_arena_printf(iso->arena, "its process %s in %s()%s%s", how,
                         byi_isolate_names[op], *what ? " of " : "", what);
}

/* --- what it asks about a match ------------------------------------------- */

struct question {
    const struct byoc_host *host;
    const struct byoc_match *m;
    uint32_t i;
    const char *name;
};

static void put_type(struct byi_text *out, int is, uint32_t dtype,
                     uint32_t rank, const int64_t *dims)
{
    byi_wire_u64(out, is != 0);
    byi_wire_u64(out, dtype);
    byi_wire_bytes(out, dims, is ? rank * sizeof *dims : 0);
}

static void answer_type(const struct question *q, struct byi_text *out)
{
    uint32_t dtype = 0, rank = 0;
    const int64_t *dims = NULL;
    const int is = q->host->match_type(q->m, q->name, &dtype, &rank, &dims);
    put_type(out, is, dtype, rank, dims);
}

static void answer_op_type(const struct question *q, struct byi_text *out)
{
    uint32_t dtype = 0, rank = 0;
    const int64_t *dims = NULL;
    const int is = q->host->match_op_type(q->m, q->i, &dtype, &rank, &dims);
    put_type(out, is, dtype, rank, dims);
}

static void answer_const(const struct question *q, struct byi_text *out)
{
    uint64_t bytes = 0;
    const void *data =
        q->name ? q->host->match_const(q->m, q->name, &bytes) : NULL;
    byi_wire_u64(out, data != NULL);
    byi_wire_bytes(out, data, data ? bytes : 0);
}

static void answer_n_ops(const struct question *q, struct byi_text *out)
{
    byi_wire_u64(out, q->host->match_n_ops(q->m));
}

static void answer_op(const struct question *q, struct byi_text *out)
{
    byi_wire_string(out, q->host->match_op(q->m, q->i));
}

static void answer_find(const struct question *q, struct byi_text *out)
{
    byi_wire_u64(out,
                 q->name ? q->host->match_find(q->m, q->name) : UINT32_MAX);
}

static void answer_ints(const struct question *q, struct byi_text *out)
{
    const int64_t *values = NULL;
    uint32_t n = 0;
    const int is = q->host->match_ints(q->m, q->i, q->name, &values, &n);
    byi_wire_u64(out, is != 0);
    byi_wire_bytes(out, values, is ? n * sizeof *values : 0);
}

static void answer_floats(const struct question *q, struct byi_text *out)
{
    const double *values = NULL;
    uint32_t n = 0;
    const int is = q->host->match_floats(q->m, q->i, q->name, &values, &n);
    byi_wire_u64(out, is != 0);
    byi_wire_bytes(out, values, is ? n * sizeof *values : 0);
}

static void answer_strings(const struct question *q, struct byi_text *out)
{
    const char *const *values = NULL;
    uint32_t n = 0;
    const int is = q->host->match_strings(q->m, q->i, q->name, &values, &n);
    byi_wire_u64(out, is != 0);
    byi_wire_u64(out, is ? n : 0);
    for (uint32_t k = 0; is && k < n; k++)
        byi_wire_string(out, values[k]);
}

static void answer_float(const struct question *q, struct byi_text *out)
{
    double value = 0;
    const int is = q->host->match_float(q->m, q->i, q->name, &value);
    byi_wire_u64(out, is != 0);
    byi_wire_bytes(out, &value, sizeof value);
}

static void answer_string(const struct question *q, struct byi_text *out)
{
    byi_wire_string(out, q->host->match_string(q->m, q->i, q->name));
}

static void answer_say(const struct question *q, struct byi_text *out)
{
    byi_wire_string(out, q->host->match_say(q->m, "%s", q->name));
}

static void answer_show(const struct question *q, struct byi_text *out)
{
    byi_wire_string(out, q->host->match_show(q->m, q->name));
}

static void answer_show_op(const struct question *q, struct byi_text *out)
{
    byi_wire_string(out, q->host->match_show_op(q->m, q->i));
}

static const struct {
    void (*answer)(const struct question *q, struct byi_text *out);
    bool needs_name;
} answers[BYI_N_ASKS] = {
    [BYI_ASK_TYPE] = {answer_type, false},
    [BYI_ASK_CONST] = {answer_const, true},
    [BYI_ASK_N_OPS] = {answer_n_ops, false},
    [BYI_ASK_OP] = {answer_op, false},
    [BYI_ASK_OP_TYPE] = {answer_op_type, false},
    [BYI_ASK_FIND] = {answer_find, true},
    [BYI_ASK_INTS] = {answer_ints, true},
    [BYI_ASK_FLOATS] = {answer_floats, true},
    [BYI_ASK_STRINGS] = {answer_strings, true},
    [BYI_ASK_FLOAT] = {answer_float, true},
    [BYI_ASK_STRING] = {answer_string, true},
    [BYI_ASK_SAY] = {answer_say, true},
    [BYI_ASK_SHOW] = {answer_show, false},
    [BYI_ASK_SHOW_OP] = {answer_show_op, false},
};

/* What is asked without a match, or without sense, has no answer. */
static bool answer(const struct isolated *iso, struct byi_wire *w,
                   struct byi_text *out)
{
    const uint64_t ask = byi_wire_get_u64(w);
    const struct question q = {.host = &iso->plugin.host,
                               .m = iso->match,
                               .i = (uint32_t)byi_wire_get_u64(w),
                               .name = byi_wire_get_string(w)};
    if (w->bad || !q.m || ask >= BYI_N_ASKS ||
        (answers[ask].needs_name && !q.name))
        return false;
    answers[ask].answer(&q, out);
    return true;
}

/* --- asking it ------------------------------------------------------------ */

/* Take messages until the reply. */
static bool listen_for(struct isolated *iso, uint64_t deadline, bool *late,
                       struct byi_wire *reply)
{
    for (;;) {
        if (!byi_wire_receive(iso->fd, reply, deadline, late))
            return false;
        if (reply->op == BYI_ISOLATE_REPLY)
            return true;
        struct byi_text out = {0};
        bool good = false;
        if (reply->op == BYI_ISOLATE_LOG) {
            const char *line = byi_wire_get_string(reply);
            good = line != NULL;
            if (good)
                iso->plugin.host.log(iso->plugin.host.ctx, line);
        } else if (reply->op == BYI_ISOLATE_ASK && answer(iso, reply, &out)) {
            good =
                byi_wire_send(iso->fd, BYI_ISOLATE_REPLY, &out, deadline, late);
        }
        byi_text_free(&out);
        byi_wire_free(reply);
        if (!good)
            return false;
    }
}

/* `what` it is about, for the message; body NULL: only listen. False: it fell.
 */
static bool converse(struct isolated *iso, enum byi_isolate_op op,
                     const char *what, const struct byi_text *body,
                     struct byi_wire *reply)
{
    const uint64_t deadline =
        byi_wire_now() + (uint64_t)(iso->seconds * 1e9) + 1;
    bool late = false;
    if (iso->fell)
        return false;
    if ((!body || byi_wire_send(iso->fd, op, body, deadline, &late)) &&
        listen_for(iso, deadline, &late, reply))
        return true;
    fall(iso, op, what, late);
    return false;
}

static struct byoc_fail *give_fail(const struct isolated *iso)
{
    const struct byoc_host *host = &iso->plugin.host;
    return host->fail(host->ctx, BYOC_FAIL_INTERNAL, iso->fell);
}

static void put_region(struct byi_text *body, const struct byoc_region *r)
{
    byi_wire_string(body, r->symbol);
    byi_wire_bytes(body, r->json, r->json_bytes);
    byi_wire_u64(body, r->n_consts);
    for (uint32_t i = 0; i < r->n_consts; i++) {
        const struct byoc_view *v = &r->consts[i];
        byi_wire_u64(body, v->dtype);
        byi_wire_bytes(body, v->dims, v->rank * sizeof *v->dims);
        byi_wire_bytes(body, v->data, v->bytes);
    }
    const struct byi_isolate_library *library = (const void *)byoc_ext_find(
        r->ext, BYI_ISOLATE_LIBRARY, sizeof *library);
    byi_wire_bytes(body, library ? library->file->at : NULL,
                   library ? library->file->n : 0);
}

/* Ask about a region; the reply begins with a failure's code, 0: none, and
 * text. NULL: `reply` has the rest, and has to be freed. */
static struct byoc_fail *ask_region(const struct byoc_host *host,
                                    enum byi_isolate_op op,
                                    const struct byoc_region *region,
                                    struct byi_wire *reply)
{
    struct isolated *iso = isolated_of(host);
    struct byi_text body = {0};
    put_region(&body, region);
    const bool lives = converse(iso, op, "", &body, reply);
    byi_text_free(&body);
    if (!lives)
        return give_fail(iso);
    const uint32_t code = (uint32_t)byi_wire_get_u64(reply);
    const char *text = byi_wire_get_string(reply);
    struct byoc_fail *fail = code ? host->fail(host->ctx, code, text) : NULL;
    if (fail)
        byi_wire_free(reply);
    return fail;
}

/* End a reply that was read; one that was short is a fall. */
static struct byoc_fail *end_reply(const struct byoc_host *host,
                                   enum byi_isolate_op op,
                                   struct byi_wire *reply)
{
    struct isolated *iso = isolated_of(host);
    const bool bad = reply->bad;
    byi_wire_free(reply);
    if (!bad)
        return NULL;
    fall(iso, op, "", false);
    return give_fail(iso);
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    struct byi_wire reply;
    struct byoc_fail *fail = ask_region(host, BYI_ISOLATE_PROBE, graph, &reply);
    if (fail)
        return fail;
    result->reference = (uint32_t)byi_wire_get_u64(&reply);
    const char *impl = byi_wire_get_string(&reply);
    snprintf(result->impl, sizeof result->impl, "%s", impl ? impl : "");
    return end_reply(host, BYI_ISOLATE_PROBE, &reply);
}

static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *wish)
{
    struct byi_wire reply;
    struct byoc_fail *fail =
        ask_region(host, BYI_ISOLATE_LAYOUT, graph, &reply);
    if (fail)
        return fail;
    const char *data = byi_wire_get_string(&reply);
    snprintf(wish->data, sizeof wish->data, "%s", data ? data : "");
    const char *kernel = byi_wire_get_string(&reply);
    snprintf(wish->kernel, sizeof wish->kernel, "%s", kernel ? kernel : "");
    return end_reply(host, BYI_ISOLATE_LAYOUT, &reply);
}

static struct byoc_fail *cost(const struct byoc_host *host,
                              const struct byoc_region *region,
                              uint64_t *nanoseconds)
{
    struct byi_wire reply;
    struct byoc_fail *fail = ask_region(host, BYI_ISOLATE_COST, region, &reply);
    if (fail)
        return fail;
    *nanoseconds = byi_wire_get_u64(&reply);
    return end_reply(host, BYI_ISOLATE_COST, &reply);
}

static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    struct byi_wire reply;
    struct byoc_fail *fail =
        ask_region(host, BYI_ISOLATE_COMPILE, region, &reply);
    if (fail)
        return fail;
    blob->kind = (uint32_t)byi_wire_get_u64(&reply);
    const void *data = byi_wire_get_bytes(&reply, &blob->bytes);
    blob->data = host->acquire(host->ctx, blob->bytes);
    if (blob->data)
        memcpy(blob->data, data ? data : "", blob->bytes);
    else
        fail =
            host->fail(host->ctx, BYOC_FAIL_RESOURCE, "no memory for a blob");
    struct byoc_fail *bad = end_reply(host, BYI_ISOLATE_COMPILE, &reply);
    if (bad) {
        host->release(host->ctx, blob->data);
        if (fail)
            host->fail_free(fail);
        fail = bad;
    }
    return fail;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct byi_wire reply;
    struct byoc_fail *fail = ask_region(host, BYI_ISOLATE_LOAD, region, &reply);
    *compiled = NULL;
    return fail ? fail : end_reply(host, BYI_ISOLATE_LOAD, &reply);
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)compiled, (void)state, (void)args;
    return host->fail(host->ctx, BYOC_FAIL_INTERNAL,
                      "an isolated plug-in only compiles");
}

static const char *accept_match(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    struct isolated *iso = isolated_of(host);
    const struct byi_match *match = (const struct byi_match *)(const void *)m;
    const struct byoc_pattern *row = match->pattern->row;
    struct byi_text body = {0};
    struct byi_wire reply;
    byi_wire_u64(&body, (uint64_t)(row - iso->backend.patterns));
    iso->match = m;
    const bool lives =
        converse(iso, BYI_ISOLATE_ACCEPT, row->name, &body, &reply);
    iso->match = NULL;
    byi_text_free(&body);
    if (!lives)
        return iso->fell;
    const char *why = byi_wire_get_string(&reply);
    why = why ? byi_arena_str(iso->arena, why) : NULL;
    byi_wire_free(&reply);
    return why;
}

/* --- opening and closing -------------------------------------------------- */

static const char *get_text(struct isolated *iso, struct byi_wire *w)
{
    const char *text = byi_wire_get_string(w);
    return byi_arena_str(iso->arena, text ? text : "");
}

/* What the reply to OPEN says the backend is. It was checked there, by code
 * that shares its process. */
static enum byoc_status take_backend(struct isolated *iso, struct byi_wire *w,
                                     struct byoc_error *err)
{
    enum { MAX_ROWS = 4096 };
    const enum byoc_status status = (enum byoc_status)byi_wire_get_u64(w);
    const char *text = byi_wire_get_string(w);
    if (status != BYOC_OK)
        return byi_fail(err, status, "%s", text ? text : "no reason given");
    struct byoc_backend *b = &iso->backend;
    *b = (struct byoc_backend){
        .struct_size = sizeof *b, .load = load, .unload = unload, .run = run};
    b->name = get_text(iso, w);
    b->version = get_text(iso, w);
    b->compat = get_text(iso, w);
    b->flags = (uint32_t)byi_wire_get_u64(w);
    const uint64_t has = byi_wire_get_u64(w), n = byi_wire_get_u64(w);
    b->probe = has & BYI_ISOLATE_HAS_PROBE ? probe : NULL;
    b->layout = has & BYI_ISOLATE_HAS_LAYOUT ? layout : NULL;
    b->cost = has & BYI_ISOLATE_HAS_COST ? cost : NULL;
    b->compile = has & BYI_ISOLATE_HAS_COMPILE ? compile : NULL;
    b->n_patterns = n < MAX_ROWS ? (uint32_t)n : MAX_ROWS;
    struct byoc_pattern *rows =
        byi_arena_calloc(iso->arena, b->n_patterns, sizeof *rows);
    for (uint32_t i = 0; i < b->n_patterns; i++) {
        rows[i].name = get_text(iso, w);
        rows[i].pattern = get_text(iso, w);
        rows[i].accept = byi_wire_get_u64(w) ? accept_match : NULL;
    }
    b->patterns = rows;
    iso->plugin.backend = b;
    return w->bad ? byi_fail(err, BYOC_EBACKEND,
                             "%s: its process said what makes no sense",
                             iso->plugin.path)
                  : BYOC_OK;
}

/* What stands for a plug-in that fell while it was opened: no rows, and the
 * name of its file, libbyoc_backend_NAME.so, as far as that can be one. */
static void stand_in(struct isolated *iso)
{
    static const char prefix[] = "libbyoc_backend_", suffix[] = ".so";
    enum { MAX_NAME = 32 };
    const char *base = strrchr(iso->plugin.path, '/');
    base = base ? base + 1 : iso->plugin.path;
    if (strncmp(base, prefix, sizeof prefix - 1) == 0)
        base += sizeof prefix - 1;
    size_t n = strlen(base);
    if (n >= sizeof suffix && strcmp(base + n - sizeof suffix + 1, suffix) == 0)
        n -= sizeof suffix - 1;
    char *name = byi_arena_strn(iso->arena, base, n < MAX_NAME ? n : MAX_NAME);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *c))
            *c = '_';
    iso->backend = (struct byoc_backend){.struct_size = sizeof iso->backend,
                                         .name = name,
                                         .version = "",
                                         .compat = "",
                                         .load = load,
                                         .unload = unload,
                                         .run = run};
    iso->plugin.backend = &iso->backend;
    iso->nameless = true;
    iso->fell =
        byi_arena_printf(iso->arena, "%s: %s", iso->plugin.path, iso->fell);
}

bool byi_isolate_take_for(struct byi_plugin *plugin, const char *name)
{
    struct isolated *iso = (struct isolated *)plugin;
    if (!iso->nameless)
        return false;
    iso->backend.name = name;
    iso->nameless = false;
    return true;
}

static enum byoc_status start(struct isolated *iso,
                              const struct byi_isolate_limits *limits,
                              struct byoc_error *err)
{
    enum { SECONDS = 10 };
    const uint64_t bytes = limits->bytes ? limits->bytes : UINT64_C(4) << 30;
    int pair[2];
    iso->seconds = limits->seconds > 0 ? limits->seconds : SECONDS;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return byi_fail(err, BYOC_EIO, "%s: no sockets for its process",
                        iso->plugin.path);
    iso->pid = byi_temp_fork(false, &iso->listed);
    if (iso->pid == 0) {
        close(pair[0]);
        byi_isolate_serve(iso->plugin.path, iso->plugin.threads, pair[1],
                          bytes);
    }
    close(pair[1]);
    iso->fd = pair[0];
    if (iso->pid > 0)
        return BYOC_OK;
    close(pair[0]);
    iso->pid = 0;
    return byi_fail(err, BYOC_EIO, "%s: no process for it", iso->plugin.path);
}

/* Goes with its arena, which a guard frees when memory runs out. */
static void end_with_arena(void *arg)
{
    struct isolated *iso = arg;
    if (iso->pid <= 0)
        return;
    close(iso->fd);
    kill(iso->pid, SIGKILL);
    waitpid(iso->pid, NULL, 0);
    byi_temp_done(&iso->listed);
}

enum byoc_status byi_isolate_open(const char *path, uint32_t threads,
                                  const struct byi_isolate_limits *limits,
                                  struct byi_plugin **plugin,
                                  struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct isolated *iso = byi_arena_alloc(arena, sizeof *iso);
    struct byi_wire reply = {0};
    *iso = (struct isolated){.arena = arena};
    byi_arena_defer(arena, end_with_arena, iso);
    iso->plugin.path = byi_arena_str(arena, path);
    iso->plugin.threads = threads;
    byoc_internal_host_init(&iso->plugin, BYOC_BACKEND_ABI);
    *plugin = &iso->plugin;
    enum byoc_status status = start(iso, limits, err);
    if (status == BYOC_OK && !converse(iso, BYI_ISOLATE_OPEN, "", NULL, &reply))
        stand_in(iso);
    else if (status == BYOC_OK)
        status = take_backend(iso, &reply, err);
    byi_wire_free(&reply);
    if (status != BYOC_OK)
        byi_isolate_close(plugin);
    return status;
}

void byi_isolate_close(struct byi_plugin **plugin)
{
    struct isolated *iso = (struct isolated *)*plugin;
    *plugin = NULL;
    struct byi_arena *arena = iso->arena;
    byi_arena_free(&arena);
}
