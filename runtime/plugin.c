/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c: opens and closes plug-ins, and checks their tables of functions. A
 * library is opened once per process, for any number of models. Each user of
 * the library has a separate byoc_host, with its threads and log. Closing the
 * last user closes the library if the backend has quiesce(); otherwise the
 * library stays mapped. */
#include "internal.h"

#include "core/base/child.h"
#include "core/base/fork.h"
#include "core/base/loader.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A library of a plug-in that is open, shared by its users. */
struct byi_library {
    struct byi_plugin self; /* its host is passed to the plug-in's query
                             * function */
    struct byoc_backend backend;
    char *path;
    void *handle;
    uint32_t abi;       /* the version agreed on */
    byi_gomp_fn openmp; /* of the OpenMP library that the process had when this
                         * library was opened */
    uint32_t users;
    struct byi_customs *customs; /* the plug-in's operators, or NULL */
    struct byi_library *next;
};

static const pthread_mutex_t unlocked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static struct byi_library *libraries; /* guarded by `lock` */
static bool locked_by_fork;           /* the thread that forks holds `lock` */

/* --- calls ---------------------------------------------------------------- */

struct byoc_fail *byoc_internal_plugin_compile(const struct byi_plugin *plugin,
                                               const struct byoc_region *region,
                                               struct byoc_blob *blob)
{
    const struct byoc_host *host = &plugin->host;
    *blob = (struct byoc_blob){.struct_size = sizeof *blob};
    byi_child_step(plugin->backend->name, "compile()");
    struct byoc_fail *fail = plugin->backend->compile(host, region, blob);
    byi_child_step_end();
    /* C may be empty here: code generation refuses it */
    if (!fail &&
        (!blob->data || (!blob->bytes && blob->kind == BYOC_BLOB_DATA))) {
        fail = host->fail(host->ctx, BYOC_FAIL_INTERNAL,
                          blob->data ? "compile() returned a blob of 0 bytes, "
                                       "expected at least 1"
                                     : "compile() returned a blob without "
                                       "data, expected its address");
        host->release(host->ctx, blob->data);
    }
    if (fail)
        blob->data = NULL;
    return fail;
}

static struct byoc_fail *call_load(const struct byi_plugin *plugin,
                                   const struct byoc_region *region,
                                   void **compiled)
{
    byi_child_step(plugin->backend->name, "load()");
    struct byoc_fail *fail =
        plugin->backend->load(&plugin->host, region, compiled);
    byi_child_step_end();
    return fail;
}

void byi_plugin_unload(const struct byi_plugin *plugin, void *compiled)
{
    byi_child_step(plugin->backend->name, "unload()");
    plugin->backend->unload(&plugin->host, compiled);
    byi_child_step_end();
}

struct byoc_fail *byoc_internal_plugin_load(const struct byi_plugin *plugin,
                                            const struct byoc_region *region,
                                            void **compiled)
{
    const struct byoc_backend *b = plugin->backend;
    struct byoc_region aligned_region = *region;
    if (!b->compile || (uintptr_t)region->json % BYI_ALIGN == 0)
        return call_load(plugin, region, compiled);
    char *copy = byi_acquire(region->json_bytes);
    if (!copy)
        return plugin->host.fail(
            plugin->host.ctx, BYOC_FAIL_RESOURCE,
            "out of memory for an aligned copy of its blob");
    aligned_region.json = memcpy(copy, region->json, region->json_bytes);
    struct byoc_fail *fail = call_load(plugin, &aligned_region, compiled);
    byi_release(copy);
    return fail;
}

struct byoc_fail *byi_plugin_state_new(const struct byi_plugin *plugin,
                                       void *compiled, void **state)
{
    const struct byoc_backend *b = plugin->backend;
    const struct byoc_host *host = &plugin->host;
    *state = NULL;
    if (b->state_new)
        return b->state_new(host, compiled, state);
    const uint64_t bytes = b->state_bytes ? b->state_bytes(host, compiled) : 0;
    if (!bytes)
        return NULL;
    *state = host->acquire(host->ctx, bytes);
    if (!*state)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                          "out of memory for its state");
    memset(*state, 0, bytes);
    return NULL;
}

uint64_t byi_plugin_scratch_bytes(const struct byi_plugin *plugin,
                                  const void *compiled)
{
    const struct byoc_backend *b = plugin->backend;
    return b->scratch_bytes ? b->scratch_bytes(&plugin->host, compiled) : 0;
}

void byi_plugin_state_free(const struct byi_plugin *plugin, void *compiled,
                           void *state)
{
    const struct byoc_backend *b = plugin->backend;
    if (b->state_free)
        b->state_free(&plugin->host, compiled, state);
    else
        plugin->host.release(plugin->host.ctx, state);
}

/* --- checks of a plug-in --------------------------------------------- */

static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= 32 && name[n] == '\0' && name[0] >= 'a' &&
           name[0] <= 'z';
}

static enum byoc_status check_patterns(const char *path,
                                       const struct byoc_backend *b,
                                       struct byoc_error *err)
{
    enum { MAX_PATTERNS = 4096 };
    if (b->n_patterns > MAX_PATTERNS)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found %u patterns, expected at most %d", path,
                        b->n_patterns, MAX_PATTERNS);
    if (b->n_patterns && !b->patterns)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found NULL as the table of %u patterns, expected "
                        "its address",
                        path, b->n_patterns);
    size_t prefix = strlen(b->name);
    for (uint32_t i = 0; i < b->n_patterns; i++) {
        const struct byoc_pattern *p = &b->patterns[i];
        if (!p->name || !p->pattern)
            return byi_fail(err, BYOC_EBACKEND,
                            "%s: pattern %u has no %s, expected a string", path,
                            i, p->name ? "pattern" : "name");
        if (strncmp(p->name, b->name, prefix) != 0 || p->name[prefix] != '.')
            return byi_fail(err, BYOC_EBACKEND,
                            "%s: pattern %u is called \"%.60s\", expected a "
                            "name that begins with \"%s.\"",
                            path, i, p->name, b->name);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(p->name, b->patterns[k].name) == 0)
                return byi_fail(err, BYOC_EBACKEND,
                                "%s: patterns %u and %u are both called "
                                "\"%.60s\", expected distinct names",
                                path, k, i, p->name);
    }
    return BYOC_OK;
}

/* Check that the list of extensions ends, since byoc_ext_find walks it. */
static enum byoc_status check_extensions(const char *path,
                                         const struct byoc_backend *b,
                                         struct byoc_error *err)
{
    enum { MAX_EXTENSIONS = 256 };
    uint32_t n = 0;
    for (const struct byoc_ext *e = b->ext; e && n <= MAX_EXTENSIONS;
         e = e->next)
        n++;
    if (n > MAX_EXTENSIONS)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found more than %d extensions in its backend's "
                        "list, expected NULL as `next` of the last one",
                        path, MAX_EXTENSIONS);
    return BYOC_OK;
}

static enum byoc_status check_members(const char *path,
                                      const struct byoc_backend *b,
                                      struct byoc_error *err)
{
    const struct {
        const char *name;
        bool present;
    } members[] = {
        {"name", b->name != NULL},     {"version", b->version != NULL},
        {"compat", b->compat != NULL}, {"load", b->load != NULL},
        {"unload", b->unload != NULL}, {"run", b->run != NULL},
    };
    for (size_t i = 0; i < BYI_COUNT(members); i++)
        if (!members[i].present)
            return byi_fail(
                err, BYOC_EBACKEND,
                "%s: found NULL as member %s of its backend, expected a value",
                path, members[i].name);
    if (!is_name(b->name))
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: its backend is called \"%.60s\", expected 1 to "
                        "32 of a-z, 0-9 and _, beginning with a letter",
                        path, b->name);
    if (!b->state_new != !b->state_free || (b->state_new && b->state_bytes))
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: its backend has%s%s%s, expected state_new and "
                        "state_free, or state_bytes, or none",
                        path, b->state_new ? " state_new" : "",
                        b->state_free ? " state_free" : "",
                        b->state_bytes ? " state_bytes" : "");
    BYI_TRY(check_extensions(path, b, err));
    return check_patterns(path, b, err);
}

/* Copy the members of struct byoc_backend that the plug-in was compiled with.
 * Members that are newer than the plug-in stay zero; members that are newer
 * than this host are ignored. */
static enum byoc_status take_backend(struct byi_library *lib,
                                     const struct byoc_backend *theirs,
                                     struct byoc_error *err)
{
    /* the end of 1.0's struct */
    enum { MIN_SIZE = (int)BYI_UP_TO(struct byoc_backend, ext) };
    uint32_t size = theirs->struct_size;
    if (size < MIN_SIZE)
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: struct_size of its backend is %u, expected at "
                        "least %d",
                        lib->path, size, MIN_SIZE);
    memcpy(&lib->backend, theirs,
           size < sizeof lib->backend ? size : sizeof lib->backend);
    lib->self.backend = &lib->backend;
    return check_members(lib->path, &lib->backend, err);
}

/* Call the plug-in's query function, and check what it returns: a backend and
 * perhaps operators. */
static enum byoc_status query_backend(struct byi_library *lib,
                                      struct byoc_error *err)
{
    byoc_backend_query_fn query = NULL;
    void *symbol = byi_library_symbol(lib->handle, BYOC_BACKEND_QUERY);
    if (!symbol) /* byi_plugin_agree found it in the file */
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: changed while it was opened; open it again",
                        lib->path);
    memcpy(&query, &symbol, sizeof query); /* POSIX: data to function */
    char why[512] = "";
    const struct byoc_backend *theirs =
        query(&lib->self.host, why, (uint32_t)sizeof why);
    why[sizeof why - 1] = '\0';
    if (!theirs)
        return byi_fail(err, BYOC_EBACKEND, "%s: refused to start: %s",
                        lib->path, why[0] ? why : "(no reason given)");
    BYI_TRY(take_backend(lib, theirs, err));
    return byi_customs_open(&lib->self, &lib->customs, err);
}

/* --- libraries, guarded by `lock` ----------------------------------------- */

static void free_library(struct byi_library *lib)
{
    byi_customs_close(lib->customs);
    byi_library_close(lib->handle);
    free(lib->path);
    free(lib);
}

static enum byoc_status open_library(const char *path, struct byi_library **out,
                                     struct byoc_error *err)
{
    struct byi_library *lib = byi_alloc(1, sizeof *lib);
    char *copy = strdup(path);
    if (!lib || !copy) {
        free(lib);
        free(copy);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a plug-in");
    }
    lib->path = copy;
    lib->self.path = copy;
    lib->self.library = lib;
    lib->self.threads = 1;
    enum byoc_status status = byi_library_check(path, path, err);
    if (status == BYOC_OK)
        status = byi_plugin_agree(path, &lib->abi, err);
    byi_child_step(path, "library start or query()");
    lib->openmp = byi_omp_of_process(); /* before the plug-in can load another
                                         * one */
    if (status == BYOC_OK)
        status = byi_library_open(path, path, &lib->handle, err);
    if (status == BYOC_OK) {
        byi_plugin_init_host(&lib->self, lib->abi);
        status = query_backend(lib, err);
    }
    byi_child_step_end();
    if (status != BYOC_OK) {
        free_library(lib);
        return status;
    }
    lib->next = libraries;
    libraries = lib;
    *out = lib;
    return BYOC_OK;
}

/* Set *out to the library at `path`, with one more user; opens it if it is not
 * open yet. */
static enum byoc_status use_library(const char *path, struct byi_library **out,
                                    struct byoc_error *err)
{
    char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
    const char *name = real ? real : path; /* if the path cannot be resolved,
                                            * open_library reports the error */
    struct byi_library *lib = libraries;
    while (lib && strcmp(lib->path, name) != 0)
        lib = lib->next;
    enum byoc_status status = lib ? BYOC_OK : open_library(name, &lib, err);
    free(real);
    if (status != BYOC_OK)
        return status;
    lib->users++;
    *out = lib;
    return BYOC_OK;
}

/* Drop a user of the library. Without quiesce(), the library stays mapped after
 * the last one: it may have threads or exit handlers that run its code. */
static void leave_library(struct byi_library *lib)
{
    assert(lib->users > 0);
    if (--lib->users > 0 || !lib->backend.quiesce)
        return;
    byi_child_step(lib->backend.name, "quiesce() or library end");
    lib->backend.quiesce(&lib->self.host);
    struct byi_library **at = &libraries;
    while (*at != lib)
        at = &(*at)->next;
    *at = lib->next;
    free_library(lib);
    byi_child_step_end();
}

/* --- fork --------------------------------------------------------------- */

/* If a plug-in forks while it is being opened, this thread already holds
 * `lock`, and locking fails. */
static void before_fork(void)
{
    locked_by_fork = pthread_mutex_lock(&lock) == 0;
    byi_customs_lock();
    byi_loader_lock();
}

static void after_fork(void)
{
    byi_loader_unlock();
    byi_customs_unlock();
    if (locked_by_fork)
        pthread_mutex_unlock(&lock);
}

static void reset_in_child(void)
{
    byi_loader_reset_in_child();
    byi_customs_unlock();
    lock = unlocked;
}

BYI_AT_FORK(before_fork, after_fork, reset_in_child)

/* --- users -------------------------------------------------------------- */

enum byoc_status byoc_internal_plugin_open(const char *path, uint32_t threads,
                                           struct byi_plugin **plugin,
                                           struct byoc_error *err)
{
    char why[256];
    *plugin = NULL;
    if (threads == 0)
        BYI_TRY(byi_threads_decide(0, &threads, why, sizeof why, err));
    struct byi_plugin *p = byi_alloc(1, sizeof *p);
    if (!p)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a plug-in");
    pthread_mutex_lock(&lock);
    enum byoc_status status = use_library(path, &p->library, err);
    pthread_mutex_unlock(&lock);
    if (status != BYOC_OK) {
        free(p);
        return status;
    }
    p->path = p->library->path;
    p->backend = &p->library->backend;
    p->threads = threads;
    if (p->backend->flags & BYOC_BACKEND_USES_OPENMP)
        p->openmp = p->library->openmp;
    byi_plugin_init_host(p, p->library->abi);
    *plugin = p;
    return BYOC_OK;
}

void byoc_internal_plugin_close(struct byi_plugin **plugin)
{
    struct byi_plugin *p = *plugin;
    *plugin = NULL;
    if (!p)
        return;
    pthread_mutex_lock(&lock);
    leave_library(p->library);
    pthread_mutex_unlock(&lock);
    free(p);
}
