/* SPDX-License-Identifier: Apache-2.0 */
/* find_backends.c: finds the backends of a compile: plug-ins, and backends that
 * consist only of patterns from the command line.
 */
#include "find_backends.h"

#include "core/base/guard.h"

#include "core/base/child.h"
#include "core/ops/custom.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* --- plug-ins ------------------------------------------------------------- */

/* Call each(ctx, path) for every plug-in of `list`, as
 * byoc_compile_params.plugins describes it. Append the searched folders to
 * `places`, which may be NULL. */
static enum byoc_status call_each_plugin(const char *list,
                                         struct byi_text *places,
                                         void (*each)(void *ctx,
                                                      const char *path),
                                         void *ctx, struct byoc_error *err)
{
    struct byi_text paths = {0};
    enum byoc_status status =
        byoc_internal_plugin_list(list, &paths, places, err);
    byi_adopt(paths.at);
    if (places)
        byi_adopt(places->at);
    char *next = NULL;
    for (char *path = paths.at && status == BYOC_OK
                          ? strtok_r(paths.at, "\n", &next)
                          : NULL;
         path; path = strtok_r(NULL, "\n", &next))
        each(ctx, path);
    byi_text_free(&paths);
    return status;
}

/* The state of a search through the plug-ins. */
struct plugin_search {
    struct byi_found_backends *found;
    const struct byoc_compile_params *params;
    struct byi_text failures, places;
    struct byoc_error memory_error; /* status OK: no allocation failed */
};

struct byi_plugin *byi_plugin_of_backend(const struct byi_found_backends *found,
                                         const char *name)
{
    for (uint32_t i = 0; i < found->plugins.n; i++)
        if (strcmp(found->plugins.at[i]->backend->name, name) == 0)
            return found->plugins.at[i];
    return NULL;
}

const struct byoc_operator *byi_find_custom_operator(
    const struct byi_found_backends *found, const char *domain,
    const char *type, int64_t version, const char **plugin)
{
    const struct byoc_operator *op = NULL;
    for (uint32_t i = 0; i < found->plugins.n && !op; i++) {
        const struct byi_plugin *p = found->plugins.at[i];
        if (p->library)
            op = byoc_internal_custom_row(p, domain, type, version);
        *plugin = p->backend->name;
    }
    return op;
}

/* Returns why a backend, or the plug-in at a path, was excluded, or NULL if it
 * was not. */
static const char *crash_reason(const struct byi_found_backends *found,
                                const char *plugin)
{
    for (uint32_t i = 0; i < found->n_crashed; i++)
        if (strcmp(plugin, found->crashed[i].plugin) == 0)
            return found->crashed[i].why;
    return NULL;
}

/* Replaces a plug-in that crashed while it was opened. It has no patterns. */
struct byi_stand_in {
    struct byi_plugin plugin; /* without a library */
    struct byoc_backend backend;
    /* the name is derived from the file's; no requested backend has it */
    bool name_is_guess;
};

/* Make a stand-in for a plug-in that crashed while it was opened. The backend's
 * name comes from the file's, libbyoc_backend_NAME.so: NAME, cut to 32
 * characters, with '_' for each character that a name cannot have.
 */
static struct byi_plugin *make_stand_in(struct byi_arena *arena,
                                        const char *path)
{
    static const char prefix[] = "libbyoc_backend_", suffix[] = ".so";
    enum { MAX_NAME = 32 };
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (strncmp(base, prefix, sizeof prefix - 1) == 0)
        base += sizeof prefix - 1;
    size_t n = strlen(base);
    if (n >= sizeof suffix && strcmp(base + n - sizeof suffix + 1, suffix) == 0)
        n -= sizeof suffix - 1;
    char *name = byi_arena_strn(arena, base, n < MAX_NAME ? n : MAX_NAME);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *c))
            *c = '_';
    struct byi_stand_in *s = byi_arena_alloc(arena, sizeof *s);
    *s = (struct byi_stand_in){
        .plugin = {.path = byi_arena_str(arena, path), .backend = &s->backend},
        .backend = {.struct_size = sizeof s->backend,
                    .name = name,
                    .version = "",
                    .compat = ""},
        .name_is_guess = true};
    return &s->plugin;
}

/* Give the first stand-in whose name is a guess the name of a requested
 * backend, and return it; NULL if there is no such stand-in. */
static struct byi_plugin *name_stand_in(const struct byi_found_backends *found,
                                        const char *name)
{
    for (uint32_t i = 0; i < found->plugins.n; i++) {
        struct byi_stand_in *s = (void *)found->plugins.at[i];
        if (s->plugin.library || !s->name_is_guess)
            continue;
        s->backend.name = name;
        s->name_is_guess = false;
        return &s->plugin;
    }
    return NULL;
}

static enum byoc_status open_plugin(const struct plugin_search *s,
                                    const char *path,
                                    struct byi_plugin **plugin,
                                    struct byoc_error *err)
{
    if (crash_reason(s->found, path)) {
        *plugin = make_stand_in(s->found->arena, path);
        return BYOC_OK;
    }
    byi_child_step(path, "library start or query()");
    const enum byoc_status status =
        byoc_internal_plugin_open(path, s->params->threads, plugin, err);
    byi_child_step_end();
    return status;
}

static void close_plugin(struct byi_plugin **plugin)
{
    if ((*plugin)->library)
        byoc_internal_plugin_close(plugin);
}

static void try_plugin(void *ctx, const char *path)
{
    struct plugin_search *s = ctx;
    struct byi_plugin *plugin = NULL;
    struct byoc_error err;
    /* grow the list first: a failed allocation must not leave a plug-in open */
    BYI_PUSH(&s->found->plugins, NULL);
    s->found->plugins.n--;
    if (open_plugin(s, path, &plugin, &err) != BYOC_OK) {
        if (err.status == BYOC_ENOMEM)
            s->memory_error = err;
        byi_text_addf(&s->failures, "%s%s", s->failures.n ? "; " : "",
                      err.text);
        return;
    }
    if (byi_plugin_of_backend(s->found, plugin->backend->name)) {
        close_plugin(&plugin); /* an earlier plug-in has this name */
        return;
    }
    byi_match_host(&plugin->host);
    s->found->plugins.at[s->found->plugins.n++] = plugin;
}

/* --- backends that are only patterns -------------------------------------- */

/* Parse "a.conv=PATTERN" as a row; the backend's name is in *backend. */
static enum byoc_status read_pattern(struct byi_arena *arena, const char *text,
                                     struct byoc_pattern *row,
                                     const char **backend,
                                     struct byoc_error *err)
{
    size_t name = strcspn(text, "="), dot = strcspn(text, ".=");
    if (text[name] != '=' || text[dot] != '.' || dot == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "pattern: found '%s', expected BACKEND.NAME=PATTERN",
                        text);
    *backend = byi_arena_strn(arena, text, dot);
    row->name = byi_arena_strn(arena, text, name);
    row->pattern = byi_arena_str(arena, text + name + 1);
    return BYOC_OK;
}

/* See find_backends.h. `backend` points to the rows. */
struct byi_pattern_backend {
    struct byoc_backend backend;
    BYI_VEC(struct byoc_pattern) rows;
};

/* Make a backend for each backend name in `patterns`, in order of appearance.
 */
static enum byoc_status make_pattern_backends(struct byi_found_backends *found,
                                              const char *const *patterns,
                                              struct byoc_error *err)
{
    byi_match_host(&found->pattern_host);
    for (; patterns && *patterns; patterns++) {
        struct byoc_pattern row = {0};
        const char *backend = NULL;
        BYI_TRY(read_pattern(found->arena, *patterns, &row, &backend, err));
        uint32_t i = 0;
        while (i < found->pattern_backends.n &&
               strcmp(found->pattern_backends.at[i]->backend.name, backend))
            i++;
        if (i == found->pattern_backends.n) {
            struct byi_pattern_backend *new_backend =
                byi_arena_alloc(found->arena, sizeof *new_backend);
            new_backend->backend = (struct byoc_backend){
                .struct_size = sizeof new_backend->backend,
                .name = backend,
                .version = "patterns only",
                .compat = ""};
            BYI_PUSH(&found->pattern_backends, new_backend);
        }
        struct byi_pattern_backend *s = found->pattern_backends.at[i];
        BYI_PUSH(&s->rows, row);
        s->backend.patterns = s->rows.at;
        s->backend.n_patterns = s->rows.n;
    }
    return BYOC_OK;
}

/* Find the plug-in of a requested backend. It may be a plug-in that crashed
 * before it returned its name. */
static enum byoc_status find_named_plugin(const struct plugin_search *s,
                                          const char *name,
                                          struct byi_plugin **plugin,
                                          struct byoc_error *err)
{
    struct byi_found_backends *found = s->found;
    *plugin = byi_plugin_of_backend(found, name);
    if (!*plugin)
        *plugin = name_stand_in(found, name);
    if (*plugin)
        return BYOC_OK;
    return byi_fail(err, BYOC_EBACKEND,
                    "found no backend '%s' among %u plug-in%s in %s; %s", name,
                    found->plugins.n, byi_plural(found->plugins.n),
                    s->places.n ? s->places.at : "no folder",
                    s->failures.n ? s->failures.at : "try `byoc backends`");
}

/* Load the requested backends, in the order requested; without a list, all that
 * are found. */
static enum byoc_status load_backends(struct byi_found_backends *found,
                                      const struct byoc_compile_params *params,
                                      struct byoc_error *err)
{
    struct plugin_search s = {.found = found, .params = params};
    BYI_VEC(const struct byoc_backend *) backends = {0};
    BYI_VEC(const struct byoc_host *) hosts = {0};
    enum byoc_status status = BYOC_OK;
    /* with an empty list of backends, the plug-ins that the user names are
     * opened for their custom operators */
    if (!params->backends || params->backends[0] || params->plugins)
        status =
            call_each_plugin(params->plugins, &s.places, try_plugin, &s, err);
    if (status == BYOC_OK && s.memory_error.status != BYOC_OK)
        status =
            byi_fail(err, s.memory_error.status, "%s", s.memory_error.text);
    if (status == BYOC_OK && params->plugins && *params->plugins &&
        s.failures.n && (!params->backends || !params->backends[0]))
        status = byi_fail(err, BYOC_EBACKEND, "%s; try `byoc backends`",
                          s.failures.at);
    for (uint32_t i = 0; i < found->pattern_backends.n; i++) {
        BYI_PUSH(&backends, &found->pattern_backends.at[i]->backend);
        BYI_PUSH(&hosts, &found->pattern_host);
    }
    for (uint32_t i = 0;
         status == BYOC_OK && params->backends && params->backends[i]; i++) {
        struct byi_plugin *plugin = NULL;
        status = find_named_plugin(&s, params->backends[i], &plugin, err);
        if (status != BYOC_OK)
            break;
        BYI_PUSH(&backends, plugin->backend);
        BYI_PUSH(&hosts, &plugin->host);
    }
    for (uint32_t i = 0; !params->backends && i < found->plugins.n; i++) {
        BYI_PUSH(&backends, found->plugins.at[i]->backend);
        BYI_PUSH(&hosts, &found->plugins.at[i]->host);
    }
    if (status == BYOC_OK)
        status = byi_backends_init(&found->backends, backends.at, hosts.at,
                                   backends.n, err);
    byi_vec_free(backends.at);
    byi_vec_free(hosts.at);
    byi_text_free(&s.failures);
    byi_text_free(&s.places);
    return status;
}

bool byi_backend_writes_c(const struct byi_found_backends *found,
                          const struct byoc_backend *backend)
{
    return backend->compile && found->codegen != BYOC_CODEGEN_JSON &&
           (found->codegen == BYOC_CODEGEN_C ||
            backend->flags & BYOC_BACKEND_WRITES_C);
}

/* Exclude the backend for this reason, unless `why` is NULL. */
static void exclude_backend(struct byi_backend *backend, enum byi_reason reason,
                            const char *why)
{
    if (!why)
        return;
    backend->excluded = why;
    backend->excluded_reason = reason;
}

/* Exclude backends that cannot generate code of the requested kind or for the
 * requested machine, and backends that crashed. */
static void exclude_backends(struct byi_found_backends *found)
{
    for (uint32_t v = 0; v < found->backends.n; v++) {
        struct byi_backend *backend = &found->backends.at[v];
        const struct byi_plugin *plugin =
            byi_plugin_of_backend(found, backend->name);
        if (backend->api->flags & BYOC_BACKEND_WRITES_C &&
            !byi_backend_writes_c(found, backend->api))
            exclude_backend(
                backend, BYI_REASON_WRITES_C,
                "it generates C only, which --codegen json excludes");
        exclude_backend(backend, BYI_REASON_BACKEND_FAILED,
                        crash_reason(found, backend->name));
        if (plugin && found->machine != byi_machine_host())
            exclude_backend(
                backend, BYI_REASON_OTHER_MACHINE,
                byi_arena_printf(
                    found->arena,
                    "this plug-in runs on %s, the model is compiled for %s",
                    byi_machine_host()->name, found->machine->name));
        if (plugin && !plugin->library)
            exclude_backend(
                backend, BYI_REASON_BACKEND_FAILED,
                byi_arena_printf(found->arena, "%s: %s", plugin->path,
                                 crash_reason(found, plugin->path)));
    }
}

void byi_warn_excluded_backends(const struct byi_found_backends *found,
                                struct byi_text *lines)
{
    for (uint32_t v = 0; v < found->backends.n; v++) {
        const struct byi_backend *backend = &found->backends.at[v];
        if (backend->excluded &&
            (backend->excluded_reason == BYI_REASON_BACKEND_FAILED ||
             backend->excluded_reason == BYI_REASON_OTHER_MACHINE))
            byi_text_addf(lines, "%s was left out: %s\n", backend->name,
                          backend->excluded);
    }
}

/* Make this library's copy of the operator table call plug-ins through the
 * runtime. A constructor does it, since several compiles may run at the same
 * time. */
static __attribute__((constructor)) void use_custom_calls(void)
{
    byi_custom_use(byoc_internal_custom_calls());
}

enum byoc_status byi_find_backends(struct byi_found_backends *found,
                                   struct byi_arena *arena,
                                   const struct byoc_compile_params *params,
                                   struct byoc_error *err)
{
    found->arena = arena;
    found->isolated = params->isolate != 0;
    found->codes = byi_arena_alloc(arena, sizeof *found->codes);
    *found->codes = (struct byi_codes){.arena = arena};
    if (params->cc)
        found->codes->cc = byi_arena_str(arena, params->cc);
    found->codegen = params->codegen;
    BYI_TRY(byi_machine_find(params->target, &found->machine, err));
    BYI_TRY(make_pattern_backends(found, params->patterns, err));
    BYI_TRY(load_backends(found, params, err));
    exclude_backends(found);
    found->backends.forbid_ref = params->forbid_reference != 0;
    found->backends.keep_nan = params->keep_nan != 0;
    found->backends.exact = params->exact != 0;
    found->backends.limits =
        (struct byi_limits){.min_nodes = params->min_region_nodes,
                            .min_flops = params->min_region_flops,
                            .max_regions = params->max_regions};
    found->backends.exclude = params->exclude;
    found->backends.only = params->only;
    return BYOC_OK;
}

void byi_found_backends_free(struct byi_found_backends *found)
{
    byi_backends_free(&found->backends);
    for (uint32_t i = 0; i < found->plugins.n; i++)
        close_plugin(&found->plugins.at[i]);
    byi_vec_free(found->plugins.at);
    for (uint32_t i = 0; i < found->pattern_backends.n; i++)
        byi_vec_free(found->pattern_backends.at[i]->rows.at);
    byi_vec_free(found->pattern_backends.at);
    if (found->codes)
        byi_codes_free(found->codes);
}

/* --- listing backends ----------------------------------------------------- */

/* A plug-in, with the name of its backend. Both strings are in the listing's
 * arena. */
struct named_plugin {
    const char *name, *path;
};

/* The state of byoc_backends_list. */
struct backend_listing {
    /* as in byoc_backends_list */
    void (*use)(void *, const char *, const char *, const char *, const char *);
    void *ctx;
    struct byi_arena *arena;
    BYI_VEC(struct named_plugin) seen; /* usable plug-ins so far */
};

/* Returns the path of an earlier plug-in with this name, or NULL. */
static const char *path_of_name(const struct backend_listing *l,
                                const char *name)
{
    for (uint32_t i = 0; i < l->seen.n; i++)
        if (strcmp(l->seen.at[i].name, name) == 0)
            return l->seen.at[i].path;
    return NULL;
}

static void open_in_child(void *path, struct byi_text *out)
{
    struct byi_plugin *plugin;
    struct byoc_error err;
    (void)out;
    dup2(STDERR_FILENO, STDOUT_FILENO);
    byi_child_step(path, "library start or query()");
    (void)!byoc_internal_plugin_open(path, 1, &plugin, &err);
}

/* A plug-in that belongs to the guard while it is open, since the code that
 * reads its tables allocates. */
struct listed_plugin {
    struct byi_plugin *plugin;
};

static void close_listed(void *data)
{
    struct listed_plugin *listed = data;
    byoc_internal_plugin_close(&listed->plugin);
    byi_vec_free(listed);
}

/* Open a plug-in, after a child process has opened it without a crash. Close
 * *listed with close_listed; it is NULL after a failure. */
static enum byoc_status open_listed(const char *path,
                                    struct listed_plugin **listed,
                                    struct byoc_error *err)
{
    const struct byi_child_limits limits = {.seconds = BYI_ISOLATE_SECONDS};
    struct byi_child child;
    *listed = NULL;
    byi_child_run(open_in_child, (void *)(uintptr_t)path, &limits, &child);
    enum byoc_status status = BYOC_OK;
    if (!child.started)
        status = byi_fail(err, byi_io_status(errno),
                          "%s: cannot start a process to open it: %s", path,
                          strerror(errno));
    else if (!child.returned)
        status =
            byi_fail(err, BYOC_EBACKEND, "%s: its process %s", path, child.how);
    byi_child_free(&child);
    BYI_TRY(status);
    struct listed_plugin *opened = byi_own(1, sizeof *opened, close_listed);
    status = byoc_internal_plugin_open(path, 0, &opened->plugin, err);
    if (status == BYOC_OK)
        *listed = opened;
    else
        byi_vec_free(opened);
    return status;
}

static void list_plugin(void *ctx, const char *path)
{
    struct backend_listing *l = ctx;
    struct listed_plugin *listed;
    struct byoc_error err;
    if (open_listed(path, &listed, &err) != BYOC_OK) {
        l->use(l->ctx, path, NULL, NULL, err.text);
        return;
    }
    const struct byoc_backend *backend = listed->plugin->backend;
    struct byi_pattern_table *table = NULL;
    enum byoc_status status = byi_patterns_compile(
        backend->patterns, backend->n_patterns, &table, &err);
    const char *earlier_path = path_of_name(l, backend->name);
    if (status == BYOC_OK && earlier_path && strcmp(earlier_path, path) != 0)
        status = byi_fail(
            &err, BYOC_EBACKEND,
            "%s: found backend '%s', which %s also defines, expected a name "
            "that no other plug-in has; leave out one of the two",
            path, backend->name, earlier_path);
    const struct named_plugin plugin_entry = {
        byi_arena_str(l->arena, backend->name), byi_arena_str(l->arena, path)};
    if (status == BYOC_OK)
        BYI_PUSH(&l->seen, plugin_entry);
    l->use(l->ctx, path, backend->name, backend->version,
           status == BYOC_OK ? NULL : err.text);
    byi_patterns_free(&table);
    close_listed(listed);
}

void byoc_backends_list(const char *plugins,
                        void (*use)(void *, const char *, const char *,
                                    const char *, const char *),
                        void *ctx)
{
    struct backend_listing listing = {.use = use, .ctx = ctx};
    struct byoc_error err;
    struct byi_guard guard;
    if (byi_guard_enter(&guard)) {
        byi_guard_leave(&guard);
        use(ctx, plugins ? plugins : "", NULL, NULL, "out of memory");
        return;
    }
    listing.arena = byi_arena_new();
    if (call_each_plugin(plugins, NULL, list_plugin, &listing, &err) != BYOC_OK)
        use(ctx, plugins ? plugins : "", NULL, NULL, err.text);
    byi_vec_free(listing.seen.at);
    byi_arena_free(&listing.arena);
    byi_guard_leave(&guard);
}

/* --- checking tables ------------------------------------------------------ */

/* The callback of byoc_patterns_lint. */
struct linting {
    void (*use)(void *ctx, const char *row, const char *finding);
    void *ctx;
    struct byoc_error *err;
    enum byoc_status status; /* BYOC_ENOMEM, or BYOC_OK */
};

static void lint_rows(const struct linting *l, const struct byoc_backend *b)
{
    struct byi_arena *arena = byi_arena_new();
    const char **findings =
        byi_arena_calloc(arena, b->n_patterns, sizeof *findings);
    byi_patterns_lint(b->patterns, b->n_patterns, arena, findings);
    for (uint32_t i = 0; i < b->n_patterns; i++)
        l->use(l->ctx, b->patterns[i].name, findings[i]);
    byi_arena_free(&arena);
}

static void lint_plugin(void *ctx, const char *path)
{
    struct linting *l = ctx;
    struct listed_plugin *listed;
    struct byoc_error err;
    if (l->status != BYOC_OK)
        return;
    const enum byoc_status status = open_listed(path, &listed, &err);
    if (status == BYOC_ENOMEM) {
        l->status = byi_fail(l->err, status, "%s", err.text);
    } else if (status != BYOC_OK) {
        l->use(l->ctx, path, err.text);
    } else {
        lint_rows(l, listed->plugin->backend);
        close_listed(listed);
    }
}

enum byoc_status byoc_patterns_lint(const char *plugins,
                                    const char *const *patterns,
                                    void (*use)(void *ctx, const char *row,
                                                const char *finding),
                                    void *ctx, struct byoc_error *err)
{
    struct linting linting = {.use = use, .ctx = ctx, .err = err};
    BYI_BORDER(err);
    if (!patterns || !*patterns) {
        BYI_TRY(call_each_plugin(plugins, NULL, lint_plugin, &linting, err));
        return linting.status;
    }
    struct byi_found_backends found = {.arena = byi_arena_new()};
    const enum byoc_status status =
        make_pattern_backends(&found, patterns, err);
    for (uint32_t i = 0; status == BYOC_OK && i < found.pattern_backends.n; i++)
        lint_rows(&linting, &found.pattern_backends.at[i]->backend);
    struct byi_arena *arena = found.arena;
    byi_found_backends_free(&found);
    byi_arena_free(&arena);
    return status;
}
