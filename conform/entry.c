/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c: implements the cases of the whole library, which open, query and
 * close it. It also has the cases of a row that compare no results: its
 * pattern, and the state of the process.
 */
#include "groups.h"

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of entries of a folder. */
static uint32_t count_entries(const char *folder)
{
    uint32_t n = 0;
    DIR *dir = opendir(folder);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Load the library and find its entry function. */
static byoc_backend_query_fn find_query(struct byi_kit *kit)
{
    void *symbol;
    byoc_backend_query_fn query;
    struct byoc_error err;
    byi_child_step(NULL, "dlopen()");
    if (byoc_internal_library_find(kit->path, BYOC_BACKEND_QUERY, &symbol,
                                   &err) != BYOC_OK)
        byi_kit_failed(kit, BYI_RULE_OPENS, "%s", err.text);
    memcpy(&query, &symbol, sizeof query); /* void * to function, as in POSIX */
    return query;
}

void byi_kit_try_open(struct byi_kit *kit, const struct byi_kit_case *c)
{
    (void)c;
    byi_kit_backend(kit);
}

void byi_kit_try_query(struct byi_kit *kit, const struct byi_kit_case *c)
{
    enum { N_QUERIES = 500 };
    const uint32_t n_before = count_entries("/proc/self/task");
    const struct byoc_host *host = byi_kit_host(kit);
    const struct byi_host_records before = byi_host_records();
    byoc_backend_query_fn query = find_query(kit);
    const uint32_t n_opened = count_entries("/proc/self/task");
    const struct byoc_backend *first = NULL;
    char why[256];
    (void)c;
    for (uint32_t i = 0; i < N_QUERIES; i++) {
        byi_child_step(NULL, "query, time %u", i + 1);
        const struct byoc_backend *b = query(host, why, sizeof why);
        if (!b)
            byi_kit_failed(kit, BYI_RULE_QUERY,
                           "query %u by this host returned NULL", i + 1);
        if (first && b != first &&
            (b->struct_size != first->struct_size ||
             strcmp(b->name, first->name) != 0))
            byi_kit_failed(kit, BYI_RULE_QUERY,
                           "query %u returned backend '%.60s' with %u bytes, "
                           "expected '%.60s' with %u, as from query 1",
                           i + 1, b->name, b->struct_size, first->name,
                           first->struct_size);
        first = first ? first : b;
    }
    byi_host_check_balance(kit, &before, "queries");
    if (count_entries("/proc/self/task") > n_opened)
        byi_kit_failed(kit, BYI_RULE_QUERY,
                       "found %u threads after the queries, expected %u",
                       count_entries("/proc/self/task"), n_opened);
    if (n_opened > n_before)
        byi_kit_end(kit, BYI_PASSED, 0,
                    "opening the library started %u thread%s, before any "
                    "query: a library that it links, such as OpenBLAS or MKL, "
                    "starts threads when it is loaded. The host cannot limit "
                    "them, and a child of fork() has none of them. Set "
                    "OPENBLAS_NUM_THREADS=1 or MKL_NUM_THREADS=1 to prevent it",
                    n_opened - n_before, byi_plural(n_opened - n_before));
}

/* Query as an incompatible host, with a buffer of `bytes` bytes for the reason.
 * The plug-in must return NULL, and a reason that fits. */
static void query_as_old_host(struct byi_kit *kit, byoc_backend_query_fn query,
                              uint32_t bytes)
{
    struct byoc_host old = *byi_kit_host(kit);
    struct byi_zone *z = byi_zone_new(kit, bytes, 0, "the memory of a reason");
    char *why = byi_zone_data(z);
    old.abi = 0;
    memset(why, 'x', bytes);
    byi_child_step(NULL, "query by a host of version 0, with room for %u bytes",
                   bytes);
    const struct byoc_backend *b = query(&old, why, bytes);
    byi_zone_check(kit, z);
    if (b)
        byi_kit_failed(kit, BYI_RULE_VERSIONS,
                       "the query by a host of version 0 returned a backend, "
                       "expected NULL and a reason");
    if (!memchr(why, '\0', bytes))
        byi_kit_failed(kit, BYI_RULE_WHY,
                       "the reason has no NUL within its buffer of %u bytes",
                       bytes);
    if (bytes > 1 && !*why)
        byi_kit_failed(kit, BYI_RULE_WHY,
                       "the query by a host of version 0 returned NULL without "
                       "a reason");
}

void byi_kit_try_old_host(struct byi_kit *kit, const struct byi_kit_case *c)
{
    (void)c;
    byi_zones_watch(kit);
    query_as_old_host(kit, find_query(kit), 256);
}

void byi_kit_try_reason_buffer(struct byi_kit *kit,
                               const struct byi_kit_case *c)
{
    static const uint32_t sizes[] = {1, 2, 7, 64};
    (void)c;
    byi_zones_watch(kit);
    byoc_backend_query_fn query = find_query(kit);
    for (size_t i = 0; i < BYI_COUNT(sizes); i++)
        query_as_old_host(kit, query, sizes[i]);
}

void byi_kit_try_new_host(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct {
        struct byoc_host host;
        void *later[16]; /* members of later versions */
    } next = {.host = *byi_kit_host(kit)};
    char why[256] = "";
    (void)c;
    next.host.struct_size = sizeof next;
    next.host.abi = BYOC_BACKEND_ABI + 1; /* the next minor version */
    byoc_backend_query_fn query = find_query(kit);
    byi_child_step(NULL, "query by a newer host");
    if (!query(&next.host, why, sizeof why))
        byi_kit_failed(kit, BYI_RULE_VERSIONS,
                       "a newer host (version %u, %u bytes) was refused: %s",
                       next.host.abi, next.host.struct_size,
                       *why ? why : "(no reason given)");
}

/* Call check_compat() with the compat string of an artifact. Returns the code
 * of its failure; 0: compatible. */
static uint32_t ask_compat(struct byi_kit *kit, const char *text)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    const size_t n = strlen(text) + 1;
    struct byi_zone *z = byi_zone_new(kit, n, 0, "the compat");
    uint32_t code = 0;
    memcpy(byi_zone_data(z), text, n);
    byi_zone_lend(z, BYI_LENT_READ);
    byi_child_step(NULL, "check_compat() of '%.60s'", text);
    struct byoc_fail *fail =
        b->check_compat(byi_kit_host(kit), byi_zone_data(z));
    byi_zone_lend(z, BYI_LENT_GONE);
    if (fail && !*byi_kit_read_and_free_fail(fail, &code))
        byi_kit_failed(kit, BYI_RULE_REASON,
                       "check_compat() failed without a reason");
    return code;
}

void byi_kit_try_compat(struct byi_kit *kit, const struct byi_kit_case *c)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    char large[4001];
    (void)c;
    if (!b->check_compat)
        return;
    byi_zones_watch(kit);
    const uint32_t code = ask_compat(kit, b->compat);
    if (code)
        byi_kit_failed(kit, BYI_RULE_COMPAT,
                       "check_compat() of the plug-in's compat, '%.200s', "
                       "failed with code %u",
                       b->compat, code);
    memset(large, '9', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    const char *const others[] = {"", "x", ".", "-1 ; %s%n", large};
    for (size_t i = 0; i < BYI_COUNT(others); i++)
        ask_compat(kit, others[i]);
}

void byi_kit_try_row(struct byi_kit *kit, const struct byi_kit_case *c)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    struct byi_arena *arena = byi_arena_new();
    const char **findings =
        byi_arena_calloc(arena, b->n_patterns, sizeof *findings);
    byi_patterns_lint(b->patterns, b->n_patterns, arena, findings);
    for (uint32_t i = 0; i < b->n_patterns; i++)
        if (findings[i] && strcmp(b->patterns[i].name, c->row) == 0)
            byi_kit_failed(kit, BYI_RULE_ROW, "%s", findings[i]);
}

/* --- the state of the process -------------------------------------------- */

/* The state of the process that a plug-in must not change. */
struct process {
    int rounding;
    char locale[200], folder[400];
    cpu_set_t cpus;
    void (*handlers[32])(int);
    unsigned mxcsr;
};

static void read_process(struct process *p)
{
    *p = (struct process){.rounding = fegetround()};
#if defined(__x86_64__)
    p->mxcsr = __builtin_ia32_stmxcsr() & 0xffc0u; /* without sticky flags */
#endif
    snprintf(p->locale, sizeof p->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(p->folder, sizeof p->folder))
        p->folder[0] = '\0';
    sched_getaffinity(0, sizeof p->cpus, &p->cpus);
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0)
            p->handlers[i] = action.sa_handler;
    }
}

/* The first property in which a and b differ, for a message; NULL: none. */
static const char *changed_property(const struct process *a,
                                    const struct process *b)
{
    for (int i = 1; i < 32; i++)
        if (a->handlers[i] != b->handlers[i])
            return "a signal handler";
    return a->rounding != b->rounding          ? "the rounding mode"
           : a->mxcsr != b->mxcsr              ? "the floating-point mode"
           : strcmp(a->locale, b->locale) != 0 ? "the locale"
           : strcmp(a->folder, b->folder) != 0 ? "the current directory"
           : !CPU_EQUAL(&a->cpus, &b->cpus)    ? "the CPU affinity"
                                               : NULL;
}

void byi_kit_try_manners(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_sample sample;
    struct byi_session s;
    struct process before, after;
    read_process(&before);
    byi_sample_make_first(kit, c->row, &sample);
    byi_session_open(kit, &sample, &s);
    void *state = byi_kit_state_open(kit, &s);
    byi_kit_run_checked(kit, &s, state, 1, 0);
    byi_kit_state_close(kit, &s, state);
    byi_session_close(kit, &s);
    read_process(&after);
    const char *what = changed_property(&before, &after);
    if (what)
        byi_kit_failed(kit, BYI_RULE_PROCESS, "%s differs from before the call",
                       what);
}

/* --- closing -------------------------------------------------------------- */

void byi_kit_try_reload(struct byi_kit *kit, const struct byi_kit_case *c)
{
    /* A leak grows in every span, by 8 bytes a cycle or more; a cache of the
     * plug-in only in the first ones. */
    enum { SPANS = 4, CYCLES = 250 };
    uint64_t heap[SPANS], files[SPANS];
    struct byoc_error err;
    (void)c;
    for (uint32_t i = 0; i < SPANS; i++) {
        for (uint32_t k = 0; k < CYCLES; k++) {
            struct byi_plugin *plugin;
            byi_child_step(NULL, "opening, time %u", i * CYCLES + k + 1);
            if (byoc_internal_plugin_open(kit->path, 1, &plugin, &err))
                byi_kit_failed(kit, BYI_RULE_RELOAD, "%s", err.text);
            byi_child_step(NULL, "quiesce() and closing, time %u",
                           i * CYCLES + k + 1);
            byoc_internal_plugin_close(&plugin);
        }
        const struct mallinfo2 info = mallinfo2();
        heap[i] = (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
        files[i] =
            count_entries("/proc/self/fd") + count_entries("/proc/self/task");
    }
    for (uint32_t i = 2; i < SPANS; i++) {
        if (heap[i] < heap[i - 1] + 8 * CYCLES && files[i] <= files[i - 1])
            return;
    }
    byi_kit_failed(
        kit, BYI_RULE_RELOAD,
        "opening the library %d times leaks %llu bytes of heap and %lld files "
        "or threads",
        (int)CYCLES,
        (unsigned long long)(heap[3] > heap[2] ? heap[3] - heap[2] : 0),
        (long long)(files[3] - files[2]));
}

void byi_kit_try_unload(struct byi_kit *kit, const struct byi_kit_case *c)
{
    struct byi_plugin *plugin;
    struct byoc_error err;
    (void)c;
    byi_child_step(NULL, "opening the library");
    if (byoc_internal_plugin_open(kit->path, 1, &plugin, &err))
        byi_kit_failed(kit, BYI_RULE_UNLOAD, "%s", err.text);
    byi_child_step(NULL, "quiesce() and closing the library");
    byoc_internal_plugin_close(&plugin);
    byi_child_step(NULL, "exit() after the library was closed");
    kit->verdict->done = true;
    exit(0);
}
