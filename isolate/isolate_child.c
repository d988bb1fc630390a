/* SPDX-License-Identifier: Apache-2.0 */
/* isolate_child.c: the process of an isolated plug-in: opens it, answers what
 * byoc asks, and asks byoc about matches. It dies with byoc.
 */
#include "isolate.h"
#include "wire.h"

#include "codegen_c/codegen_c.h"
#include "core/base/guard.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- asking about the match ----------------------------------------------- */

/* What the plug-in sees as a struct byoc_match. Answers live in the arena. */
struct match {
    int fd;
    struct byi_arena *arena;
};

/* Whoever asked is gone when there is no answer. */
static struct byi_wire ask(const struct byoc_match *m,
                           enum byi_isolate_ask what, uint32_t i,
                           const char *name)
{
    const struct match *match = (const struct match *)(const void *)m;
    struct byi_text body = {0};
    struct byi_wire w;
    bool late;
    byi_wire_u64(&body, what);
    byi_wire_u64(&body, i);
    byi_wire_string(&body, name);
    if (!byi_wire_send(match->fd, BYI_ISOLATE_ASK, &body, 0, &late) ||
        !byi_wire_receive(match->fd, &w, 0, &late))
        _exit(1);
    byi_text_free(&body);
    char *kept = byi_arena_alloc(match->arena, w.n + 1);
    memcpy(kept, w.at ? w.at : "", w.n);
    byi_release(w.at);
    w.at = kept;
    return w;
}

static int32_t take_type(struct byi_wire *w, uint32_t *dtype, uint32_t *rank,
                         const int64_t **dims)
{
    uint64_t n;
    if (!byi_wire_get_u64(w))
        return 0;
    *dtype = (uint32_t)byi_wire_get_u64(w);
    *dims = byi_wire_get_bytes(w, &n);
    *rank = (uint32_t)(n / sizeof **dims);
    return 1;
}

static int32_t match_type(const struct byoc_match *m, const char *name,
                          uint32_t *dtype, uint32_t *rank, const int64_t **dims)
{
    struct byi_wire w = ask(m, BYI_ASK_TYPE, 0, name);
    return take_type(&w, dtype, rank, dims);
}

static int32_t match_op_type(const struct byoc_match *m, uint32_t i,
                             uint32_t *dtype, uint32_t *rank,
                             const int64_t **dims)
{
    struct byi_wire w = ask(m, BYI_ASK_OP_TYPE, i, NULL);
    return take_type(&w, dtype, rank, dims);
}

static const void *match_const(const struct byoc_match *m, const char *name,
                               uint64_t *bytes)
{
    struct byi_wire w = ask(m, BYI_ASK_CONST, 0, name);
    return byi_wire_get_u64(&w) ? byi_wire_get_bytes(&w, bytes) : NULL;
}

static uint32_t match_n_ops(const struct byoc_match *m)
{
    struct byi_wire w = ask(m, BYI_ASK_N_OPS, 0, NULL);
    return (uint32_t)byi_wire_get_u64(&w);
}

static const char *match_op(const struct byoc_match *m, uint32_t i)
{
    struct byi_wire w = ask(m, BYI_ASK_OP, i, NULL);
    return byi_wire_get_string(&w);
}

static uint32_t match_find(const struct byoc_match *m, const char *name)
{
    struct byi_wire w = ask(m, BYI_ASK_FIND, 0, name);
    return (uint32_t)byi_wire_get_u64(&w);
}

static int32_t match_ints(const struct byoc_match *m, uint32_t i,
                          const char *name, const int64_t **values, uint32_t *n)
{
    struct byi_wire w = ask(m, BYI_ASK_INTS, i, name);
    uint64_t bytes;
    if (!byi_wire_get_u64(&w))
        return 0;
    *values = byi_wire_get_bytes(&w, &bytes);
    *n = (uint32_t)(bytes / sizeof **values);
    return 1;
}

static int32_t match_floats(const struct byoc_match *m, uint32_t i,
                            const char *name, const double **values,
                            uint32_t *n)
{
    struct byi_wire w = ask(m, BYI_ASK_FLOATS, i, name);
    uint64_t bytes;
    if (!byi_wire_get_u64(&w))
        return 0;
    *values = byi_wire_get_bytes(&w, &bytes);
    *n = (uint32_t)(bytes / sizeof **values);
    return 1;
}

static int32_t match_strings(const struct byoc_match *m, uint32_t i,
                             const char *name, const char *const **values,
                             uint32_t *n)
{
    const struct match *match = (const struct match *)(const void *)m;
    struct byi_wire w = ask(m, BYI_ASK_STRINGS, i, name);
    if (!byi_wire_get_u64(&w))
        return 0;
    *n = (uint32_t)byi_wire_get_u64(&w);
    const char **list = byi_arena_calloc(match->arena, *n + 1u, sizeof *list);
    for (uint32_t k = 0; k < *n; k++)
        list[k] = byi_wire_get_string(&w);
    *values = list;
    return 1;
}

static int32_t match_float(const struct byoc_match *m, uint32_t i,
                           const char *name, double *value)
{
    struct byi_wire w = ask(m, BYI_ASK_FLOAT, i, name);
    uint64_t n;
    if (!byi_wire_get_u64(&w))
        return 0;
    memcpy(value, byi_wire_get_bytes(&w, &n), sizeof *value);
    return 1;
}

static const char *match_string(const struct byoc_match *m, uint32_t i,
                                const char *name)
{
    struct byi_wire w = ask(m, BYI_ASK_STRING, i, name);
    return byi_wire_get_string(&w);
}

static const char *match_say(const struct byoc_match *m, const char *format,
                             ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct byi_wire w = ask(m, BYI_ASK_SAY, 0, text);
    return byi_wire_get_string(&w);
}

static const char *match_show(const struct byoc_match *m, const char *name)
{
    struct byi_wire w = ask(m, BYI_ASK_SHOW, 0, name);
    return byi_wire_get_string(&w);
}

static const char *match_show_op(const struct byoc_match *m, uint32_t i)
{
    struct byi_wire w = ask(m, BYI_ASK_SHOW_OP, i, NULL);
    return byi_wire_get_string(&w);
}

/* --- answering ------------------------------------------------------------ */

struct server {
    struct byi_plugin *plugin;
    struct byoc_host host; /* the plug-in's, and the accessors above */
    int fd;
    struct byi_arena *arena; /* of one request */
};

static void put_fail(struct server *s, struct byoc_fail *fail,
                     struct byi_text *out)
{
    byi_wire_u64(out, fail ? s->host.fail_code(fail) : 0);
    byi_wire_string(out, fail ? s->host.fail_text(fail) : NULL);
    if (fail)
        s->host.fail_free(fail);
}

static struct byoc_region get_region(struct server *s, struct byi_wire *w)
{
    struct byoc_region r = {.struct_size = sizeof r};
    r.symbol = byi_wire_get_string(w);
    r.json = byi_wire_get_bytes(w, &r.json_bytes);
    r.n_consts = (uint32_t)byi_wire_get_u64(w);
    struct byoc_view *views =
        byi_arena_calloc(s->arena, r.n_consts + 1u, sizeof *views);
    for (uint32_t i = 0; i < r.n_consts; i++) {
        uint64_t dims;
        views[i].dtype = (uint32_t)byi_wire_get_u64(w);
        views[i].dims = byi_wire_get_bytes(w, &dims);
        views[i].rank = (uint32_t)(dims / sizeof *views[i].dims);
        views[i].data =
            (void *)(uintptr_t)byi_wire_get_bytes(w, &views[i].bytes);
    }
    r.consts = views;
    return r;
}

/* Map the code that a region to be loaded has, as its process would. */
static struct byoc_fail *map_code(struct server *s, struct byi_wire *w,
                                  struct byoc_region *region,
                                  struct byi_memory_library *library)
{
    const uint32_t levels = byi_code_levels(BYI_N_CODE_LEVELS);
    struct byoc_error err;
    char name[256];
    uint64_t n;
    const void *file = byi_wire_get_bytes(w, &n);
    if (!n || !region->symbol || !levels)
        return NULL;
    if (byoc_internal_library_map(file, (size_t)n, library, &err) != BYOC_OK)
        return s->host.fail(s->host.ctx, BYOC_FAIL_RESOURCE, err.text);
    region->code = byoc_internal_library_function(
        library,
        byi_c_unit_name(region->symbol, levels - 1, name, sizeof name));
    return NULL;
}

static void serve_accept(struct server *s, struct byi_wire *w,
                         struct byi_text *out)
{
    const struct match match = {.fd = s->fd, .arena = s->arena};
    const uint64_t row = byi_wire_get_u64(w);
    byi_wire_string(
        out, s->plugin->backend->patterns[row].accept(
                 &s->host, (const struct byoc_match *)(const void *)&match));
}

static void serve_probe(struct server *s, struct byi_wire *w,
                        struct byi_text *out)
{
    const struct byoc_region region = get_region(s, w);
    struct byoc_probe result = {.struct_size = sizeof result};
    put_fail(s, s->plugin->backend->probe(&s->host, &region, &result), out);
    result.impl[sizeof result.impl - 1] = '\0';
    byi_wire_u64(out, result.reference);
    byi_wire_string(out, result.impl);
}

/* A name that is not NUL-terminated is none. */
static void put_name(struct byi_text *out, const char *name, size_t n)
{
    byi_wire_string(out, memchr(name, '\0', n) ? name : "");
}

static void serve_layout(struct server *s, struct byi_wire *w,
                         struct byi_text *out)
{
    const struct byoc_region region = get_region(s, w);
    struct byoc_layout wish = {.struct_size = sizeof wish};
    put_fail(s, s->plugin->backend->layout(&s->host, &region, &wish), out);
    put_name(out, wish.data, sizeof wish.data);
    put_name(out, wish.kernel, sizeof wish.kernel);
}

static void serve_cost(struct server *s, struct byi_wire *w,
                       struct byi_text *out)
{
    const struct byoc_region region = get_region(s, w);
    uint64_t nanoseconds = 0;
    put_fail(s, s->plugin->backend->cost(&s->host, &region, &nanoseconds), out);
    byi_wire_u64(out, nanoseconds);
}

static void serve_compile(struct server *s, struct byi_wire *w,
                          struct byi_text *out)
{
    const struct byoc_region region = get_region(s, w);
    struct byoc_blob blob = {.struct_size = sizeof blob};
    struct byoc_fail *fail =
        s->plugin->backend->compile(&s->host, &region, &blob);
    const bool made = !fail;
    put_fail(s, fail, out);
    byi_wire_u64(out, blob.kind);
    byi_wire_bytes(out, blob.data, made ? blob.bytes : 0);
    if (made)
        s->host.release(s->host.ctx, blob.data);
}

static void serve_load(struct server *s, struct byi_wire *w,
                       struct byi_text *out)
{
    struct byoc_region region = get_region(s, w);
    struct byi_memory_library library = {0};
    void *compiled = NULL;
    struct byoc_fail *fail = map_code(s, w, &region, &library);
    if (!fail) {
        fail = s->plugin->backend->load(&s->host, &region, &compiled);
        if (!fail)
            s->plugin->backend->unload(&s->host, compiled);
    }
    byoc_internal_library_unmap(&library);
    put_fail(s, fail, out);
}

static void (*const serves[BYI_ISOLATE_N_OPS])(struct server *s,
                                               struct byi_wire *w,
                                               struct byi_text *out) = {
    [BYI_ISOLATE_ACCEPT] = serve_accept,   [BYI_ISOLATE_PROBE] = serve_probe,
    [BYI_ISOLATE_LAYOUT] = serve_layout,   [BYI_ISOLATE_COST] = serve_cost,
    [BYI_ISOLATE_COMPILE] = serve_compile, [BYI_ISOLATE_LOAD] = serve_load,
};

/* --- the process ---------------------------------------------------------- */

static void send_line(void *ctx, const char *line)
{
    const struct server *s = ctx;
    struct byi_text body = {0};
    bool late;
    byi_wire_string(&body, line);
    byi_wire_send(s->fd, BYI_ISOLATE_LOG, &body, 0, &late);
    byi_text_free(&body);
}

static void say_backend(const struct byoc_backend *b, struct byi_text *out)
{
    byi_wire_string(out, b->name);
    byi_wire_string(out, b->version);
    byi_wire_string(out, b->compat);
    byi_wire_u64(out, b->flags);
    byi_wire_u64(out, (b->probe ? BYI_ISOLATE_HAS_PROBE : 0u) |
                          (b->layout ? BYI_ISOLATE_HAS_LAYOUT : 0u) |
                          (b->cost ? BYI_ISOLATE_HAS_COST : 0u) |
                          (b->compile ? BYI_ISOLATE_HAS_COMPILE : 0u));
    byi_wire_u64(out, b->n_patterns);
    for (uint32_t i = 0; i < b->n_patterns; i++) {
        byi_wire_string(out, b->patterns[i].name);
        byi_wire_string(out, b->patterns[i].pattern);
        byi_wire_u64(out, b->patterns[i].accept != NULL);
    }
}

static void open_plugin(struct server *s, const char *path, uint32_t threads)
{
    struct byoc_error err = {0};
    struct byi_text out = {0};
    bool late;
    const enum byoc_status status =
        byoc_internal_plugin_open(path, threads, &s->plugin, &err);
    byi_wire_u64(&out, status);
    byi_wire_string(&out, err.text);
    if (status == BYOC_OK) {
        s->plugin->log = (struct byi_log){.log_line = send_line, .ctx = s};
        say_backend(s->plugin->backend, &out);
        s->host = s->plugin->host;
        s->host.match_type = match_type;
        s->host.match_const = match_const;
        s->host.match_n_ops = match_n_ops;
        s->host.match_op = match_op;
        s->host.match_op_type = match_op_type;
        s->host.match_find = match_find;
        s->host.match_ints = match_ints;
        s->host.match_floats = match_floats;
        s->host.match_strings = match_strings;
        s->host.match_float = match_float;
        s->host.match_string = match_string;
        s->host.match_say = match_say;
        s->host.match_show = match_show;
        s->host.match_show_op = match_show_op;
    }
    if (!byi_wire_send(s->fd, BYI_ISOLATE_REPLY, &out, 0, &late) ||
        status != BYOC_OK)
        _exit(0);
    byi_text_free(&out);
}

/* So much more than it has now; no core files; nothing in byoc's output. What
 * kills it is seen as it is, not as a handler of this process makes it. */
static void limit(uint64_t bytes)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < BYI_COUNT(deadly); i++)
        signal(deadly[i], SIG_DFL);
    const struct rlimit no_core = {0, 0};
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%llu", &pages) != 1)
        pages = 0;
    if (statm)
        fclose(statm);
    const uint64_t most = pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
    const struct rlimit memory = {most, most};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_AS, &memory);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

_Noreturn void byi_isolate_serve(const char *path, uint32_t threads, int fd,
                                 uint64_t bytes)
{
    struct server s = {.fd = fd};
    struct byi_wire w;
    bool late;
    /* not back to the parent's guard, whose frames this process has, too */
    struct byi_guard guard;
    if (byi_guard_enter(&guard))
        _exit(1);
    limit(bytes);
    open_plugin(&s, path, threads);
    while (byi_wire_receive(fd, &w, 0, &late) && w.op < BYI_ISOLATE_N_OPS &&
           serves[w.op]) {
        struct byi_text out = {0};
        s.arena = byi_arena_new();
        serves[w.op](&s, &w, &out);
        if (!byi_wire_send(fd, BYI_ISOLATE_REPLY, &out, 0, &late))
            break;
        byi_arena_free(&s.arena);
        byi_text_free(&out);
        byi_wire_free(&w);
    }
    _exit(0);
}
