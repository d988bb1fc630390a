/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: keeps specialisations in a cache. A model with symbolic dims in its
 * inputs has a specialisation for each set of sizes, created by the first run
 * with these sizes. Limits apply to the number of specialisations and to the
 * bytes of their plans, their working memory and the memory that backends
 * acquired for them. The least recently used specialisation is evicted first; a
 * running specialisation stays until its runs end. One thread creates a
 * specialisation, without holding the lock; other threads that need the same
 * specialisation wait for it.
 */
#include "state.h"

#include "core/base/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SPECIALISATIONS = 32 };
#define DEFAULT_BYTES (UINT64_C(1) << 30)

/* MAX_UNREPEATED: new sizes run on twins if the specialisations whose regions
 * were built outnumber the second and later runs of such specialisations by at
 * least this many. MIN_REUSES: when a specialisation that runs on twins has
 * been reused this many times, backends build its regions. */
enum { MAX_UNREPEATED = 8, MIN_REUSES = 4 };

/* The stage of creating an entry's specialisation. */
enum cache_stage { CREATING, READY, FAILED };

/* A specialisation in the cache, for one size of each symbol. */
struct byi_cache_entry {
    struct byi_specialisation specialisation;
    enum cache_stage stage;
    /* active runs, and threads that wait for the specialisation */
    uint32_t users;
    bool listed; /* false: the last user frees the entry */
    bool twins;  /* created with BYI_TWINS: its regions run on their twins */
    uint32_t n_reuses; /* times that a specialisation with `twins` was reused */
    struct byi_cache_entry *newer, *older;
    struct byi_work *idle; /* list of working memory that no run uses */
    uint64_t bytes;        /* of the plan and all working memory */
    uint64_t micros;       /* time to create the specialisation */
    uint32_t n_refused;    /* number of regions that their backends could not
                            * build */
    struct byoc_error why; /* if `stage` is FAILED: the error */
    int64_t sizes[];       /* indexed by symbol of the inputs */
};

/* The specialisations of a model for the sizes of recent runs. */
struct byi_cache {
    pthread_mutex_t lock;
    pthread_cond_t created;
    struct byi_cache *next; /* in the list of all caches of this process */
    bool locked_by_fork;    /* before_fork locked this cache, and after_fork
                             * unlocks it */
    struct byi_cache_entry *newest, *oldest;
    uint64_t entry_bytes;  /* bytes of all entries, including unlisted ones */
    uint64_t baseline;     /* bytes that backends had acquired when the cache
                            * was made */
    uint64_t with_regions; /* specialisations whose regions were built */
    uint64_t reruns;       /* second and later runs of them */
    /* in the API, `shapes` is the number of specialisations, and `builds` that
     * of specialisations that were created */
    struct byoc_cache_stats stats;
    bool warned[]; /* for each region: the warning that its twin runs was logged
                    */
};

/* --- limits --------------------------------------------------------------- */

/* Set *limit to `option`, otherwise to the number in the environment variable
 * `name`, otherwise to `by_default`. An option of 0 counts as not given. */
static enum byoc_status read_limit(const char *name, uint64_t option,
                                   uint64_t by_default, uint64_t *limit,
                                   struct byoc_error *err)
{
    const char *text = getenv(name);
    char *end;
    *limit = option ? option : by_default;
    if (option || !text || !*text)
        return BYOC_OK;
    errno = 0;
    *limit = strtoull(text, &end, 10);
    if (errno == 0 && byi_is_digit(*text) && !*end && *limit > 0)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found \"%.40s\", expected a number of 1 or more", name,
                    text);
}

/* --- memory in use -------------------------------------------------------- */

/* Bytes of all entries, and bytes that backends acquired since the cache was
 * made. */
static uint64_t bytes_in_use(const struct byoc_model *model)
{
    const struct byi_cache *c = model->cache;
    uint64_t bytes = 0;
    for (const struct byi_plugin *p = model->plugins; p; p = p->next)
        bytes += byi_plugin_acquired(p);
    return c->entry_bytes + (bytes > c->baseline ? bytes - c->baseline : 0);
}

static void unlist_entry(struct byi_cache *c, struct byi_cache_entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    e->newer = e->older = NULL;
    e->listed = false;
    c->stats.shapes--;
}

static void list_entry(struct byi_cache *c, struct byi_cache_entry *e)
{
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
    e->listed = true;
    c->stats.shapes++;
}

/* Free an unused entry. Called without the lock, since it calls backends. */
static void free_entry(struct byi_cache_entry *e)
{
    while (e->idle) {
        struct byi_work *work = e->idle;
        e->idle = work->next;
        byi_work_free(&work);
    }
    if (e->stage == READY)
        byi_specialisation_end(&e->specialisation);
    free(e);
}

/* Free an unused entry. Called with the lock, which it releases while it frees
 * the entry. */
static void drop_entry(struct byi_cache *c, struct byi_cache_entry *e)
{
    c->entry_bytes -= e->bytes;
    pthread_mutex_unlock(&c->lock);
    free_entry(e);
    pthread_mutex_lock(&c->lock);
}

/* The least recently used entry; if `idle`, the least recently used one without
 * users. */
static struct byi_cache_entry *find_oldest(const struct byi_cache *c, bool idle)
{
    struct byi_cache_entry *e = c->oldest;
    while (e && idle && e->users > 0)
        e = e->newer;
    return e;
}

/* Unlist the entry. Free it if it has no users; otherwise the last user frees
 * it. */
static void evict(struct byi_cache *c, struct byi_cache_entry *e)
{
    unlist_entry(c, e);
    c->stats.evictions++;
    if (e->users == 0)
        drop_entry(c, e);
}

/* Evict the least recently used entries until the limits hold. The limit on the
 * number of entries also evicts entries with users; the limit on bytes evicts
 * only entries without users. */
static void evict_excess(const struct byoc_model *model)
{
    struct byi_cache *c = model->cache;
    for (;;) {
        const bool too_many = c->stats.shapes > c->stats.max_shapes;
        c->stats.bytes = bytes_in_use(model);
        if (c->stats.bytes > c->stats.peak_bytes)
            c->stats.peak_bytes = c->stats.bytes;
        struct byi_cache_entry *e = NULL;
        if (too_many || c->stats.bytes > c->stats.max_bytes)
            e = find_oldest(c, !too_many);
        if (!e)
            return;
        evict(c, e);
    }
}

/* After a failed allocation: free all entries without users. Returns false if
 * there were none. */
static bool evict_unused(struct byi_cache *c)
{
    bool any = false;
    for (struct byi_cache_entry *e; (e = find_oldest(c, true)); any = true)
        evict(c, e);
    return any;
}

static void release_entry(struct byi_cache *c, struct byi_cache_entry *e)
{
    if (--e->users == 0 && !e->listed)
        drop_entry(c, e);
}

/* --- creating specialisations --------------------------------------------- */

char *byi_sizes_text(const struct byoc_model *model, const int64_t *sizes,
                     char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < model->n_keys && at < n; k++)
        at +=
            (size_t)(model->open_symbols[model->keys[k]]
                         ? snprintf(buf + at, n - at, "%s%s=any", k ? ", " : "",
                                    model->plan->symbols[model->keys[k]])
                         : snprintf(buf + at, n - at, "%s%s=%lld",
                                    k ? ", " : "",
                                    model->plan->symbols[model->keys[k]],
                                    (long long)sizes[model->keys[k]]));
    return buf;
}

/* Whether region i runs its native twin because its backend could not build it
 * for these sizes; false if the specialisation was created with BYI_TWINS. */
static bool is_refused(const struct byoc_model *model,
                       const struct byi_specialisation *specialisation,
                       uint32_t i)
{
    return specialisation->regions[i].fault && !specialisation->twins &&
           model->base.regions[i].plugin && !model->base.regions[i].fault;
}

static void log_specialised(const struct byoc_model *model,
                            const struct byi_cache_entry *e,
                            const int64_t *sizes)
{
    char text[256];
    byi_sizes_text(model, sizes, text, sizeof text);
    for (uint32_t i = 0; i < model->plan->n_regions; i++)
        if (is_refused(model, &e->specialisation, i)) {
            /* warn once for each region; stats.refusals counts every refusal */
            byi_log(&model->log,
                    model->cache->warned[i] ? BYOC_INFO : BYOC_WARNING,
                    "region %s runs its native twin for %s: %s",
                    model->plan->regions[i].symbol, text,
                    e->specialisation.regions[i].fault);
            model->cache->warned[i] = true;
        }
    byi_log(&model->log, BYOC_INFO, "specialised for %s in %.1f ms", text,
            (double)e->micros / 1e3);
}

/* Whether runs with new sizes use the regions' twins. Building the regions
 * takes several times as long as a run. This is wasted if the sizes never
 * recur, like the lengths of a growing sequence (a ski-rental problem). */
static bool prefers_twins(const struct byoc_model *model)
{
    const struct byi_cache *c = model->cache;
    bool varies = false;
    for (uint32_t i = 0; i < model->plan->n_regions && !varies; i++)
        varies =
            model->base.regions[i].plugin && model->plan->regions[i].varies;
    return varies && !model->require_backends &&
           c->with_regions >= c->reruns + MAX_UNREPEATED;
}

/* Create the entry's specialisation, and count its memory. Called with the
 * lock, which it releases while it creates the specialisation. */
static enum byoc_status create_specialisation(const struct byoc_model *model,
                                              const int64_t *sizes,
                                              struct byi_cache_entry *e,
                                              struct byoc_error *err)
{
    struct byi_cache *c = model->cache;
    const uint64_t began = byi_now_ns();
    const unsigned flags = e->twins ? BYI_TWINS : 0;
    pthread_mutex_unlock(&c->lock);
    enum byoc_status status =
        byi_specialise(model, sizes, flags, &e->specialisation, err);
    pthread_mutex_lock(&c->lock);
    if (status == BYOC_ENOMEM) {
        evict_unused(c);
        pthread_mutex_unlock(&c->lock);
        status = byi_specialise(model, sizes, flags | BYI_LAST_ATTEMPT,
                                &e->specialisation, err);
        pthread_mutex_lock(&c->lock);
    }
    if (status != BYOC_OK)
        return status;
    e->micros = (byi_now_ns() - began) / 1000;
    e->bytes = byi_arena_bytes(e->specialisation.plan->arena);
    c->entry_bytes += e->bytes;
    for (uint32_t i = 0; i < model->plan->n_regions; i++)
        e->n_refused += is_refused(model, &e->specialisation, i);
    c->stats.builds++;
    c->with_regions += !e->twins;
    c->stats.refusals += e->n_refused;
    log_specialised(model, e, sizes);
    return BYOC_OK;
}

/* --- taking and returning specialisations --------------------------------- */

/* The entry of these sizes in the cache; NULL if there is none. Called with the
 * lock. */
static struct byi_cache_entry *find_listed(const struct byoc_model *model,
                                           const int64_t *sizes)
{
    struct byi_cache_entry *e = model->cache->newest;
    for (; e; e = e->older) {
        uint32_t k = 0;
        while (k < model->n_keys && e->sizes[k] == sizes[model->keys[k]])
            k++;
        if (k == model->n_keys)
            return e;
    }
    return NULL;
}

/* Wait until another thread has created the entry's specialisation. Returns its
 * error if that failed. Called with the lock. */
static enum byoc_status wait_until_created(struct byi_cache *c,
                                           struct byi_cache_entry *e,
                                           struct byoc_error *err)
{
    while (e->stage == CREATING)
        pthread_cond_wait(&c->created, &c->lock);
    if (e->stage == READY)
        return BYOC_OK;
    return byi_fail(err, e->why.status, "%s", e->why.text);
}

/* Add an entry for new sizes, with one user, and create its specialisation.
 * *entry is set also on failure, unless the entry could not be allocated.
 * Called with the lock. */
static enum byoc_status add_entry(const struct byoc_model *model,
                                  const int64_t *sizes, bool twins,
                                  struct byi_cache_entry **entry,
                                  struct byoc_error *err)
{
    struct byi_cache *c = model->cache;
    struct byi_cache_entry *e =
        byi_alloc(1, sizeof *e + model->n_keys * sizeof e->sizes[0]);
    if (!e)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for a specialisation for %u sizes",
                        model->n_keys);
    for (uint32_t k = 0; k < model->n_keys; k++)
        e->sizes[k] = sizes[model->keys[k]];
    e->users = 1;
    e->twins = twins;
    list_entry(c, e);
    enum byoc_status status = create_specialisation(model, sizes, e, &e->why);
    e->stage = status == BYOC_OK ? READY : FAILED;
    pthread_cond_broadcast(&c->created);
    *entry = e;
    /* a specialisation that uses a twin for lack of memory is given only to the
     * threads that wait for it now */
    if (e->listed && (status != BYOC_OK || e->specialisation.starved))
        unlist_entry(c, e);
    if (status == BYOC_OK)
        return BYOC_OK;
    c->stats.failures++;
    return byi_fail(err, status, "%s", e->why.text);
}

/* Set lease->entry to the entry of these sizes, with this run as a user; create
 * it if there is none. Called with the lock. */
static enum byoc_status find_entry(const struct byoc_model *model,
                                   const int64_t *sizes, bool regions,
                                   struct byi_lease *lease,
                                   struct byoc_error *err)
{
    struct byi_cache *c = model->cache;
    struct byi_cache_entry *e = find_listed(model, sizes);
    const bool recurs = e && e->twins && e->stage == READY &&
                        (regions || ++e->n_reuses == MIN_REUSES);
    if (recurs) { /* these sizes recur: build their regions */
        evict(c, e);
        e = find_listed(model, sizes);
    }
    lease->entry = e;
    if (!e) {
        c->stats.misses++;
        lease->created = true;
        return add_entry(model, sizes,
                         !recurs && !regions && prefers_twins(model),
                         &lease->entry, err);
    }
    c->stats.hits++;
    c->reruns += !e->twins;
    e->users++;
    unlist_entry(c, e);
    list_entry(c, e);
    return wait_until_created(c, e, err);
}

/* Set lease->work to working memory for a run of lease->entry, idle or new.
 * Called with the lock. */
static enum byoc_status find_work(const struct byoc_model *model,
                                  struct byi_lease *lease,
                                  struct byoc_error *err)
{
    struct byi_cache *c = model->cache;
    struct byi_cache_entry *e = lease->entry;
    lease->work = e->idle;
    if (lease->work) {
        e->idle = lease->work->next;
        return BYOC_OK;
    }
    pthread_mutex_unlock(&c->lock);
    enum byoc_status status =
        byi_work_new(&e->specialisation, &lease->work, err);
    pthread_mutex_lock(&c->lock);
    if (status == BYOC_ENOMEM && evict_unused(c)) {
        pthread_mutex_unlock(&c->lock);
        status = byi_work_new(&e->specialisation, &lease->work, err);
        pthread_mutex_lock(&c->lock);
    }
    if (status == BYOC_OK) {
        e->bytes += lease->work->bytes;
        c->entry_bytes += lease->work->bytes;
    }
    return status;
}

enum byoc_status byi_cache_take(const struct byoc_model *model,
                                const int64_t *sizes, bool regions,
                                struct byi_lease *lease, struct byoc_error *err)
{
    struct byi_cache *c = model->cache;
    *lease = (struct byi_lease){0};
    pthread_mutex_lock(&c->lock);
    enum byoc_status status = find_entry(model, sizes, regions, lease, err);
    if (status == BYOC_OK)
        status = find_work(model, lease, err);
    if (status == BYOC_OK)
        lease->specialisation = &lease->entry->specialisation;
    else if (lease->entry)
        release_entry(c, lease->entry);
    evict_excess(model);
    pthread_mutex_unlock(&c->lock);
    return status;
}

void byi_cache_put(const struct byoc_model *model, struct byi_lease *lease)
{
    struct byi_cache *c = model->cache;
    struct byi_cache_entry *e = lease->entry;
    pthread_mutex_lock(&c->lock);
    lease->work->next = e->idle;
    e->idle = lease->work;
    release_entry(c, e);
    evict_excess(model);
    pthread_mutex_unlock(&c->lock);
    *lease = (struct byi_lease){0};
}

/* --- fork ----------------------------------------------------------------- */

/* The caches of all models, which a fork must lock. */
static struct {
    pthread_mutex_t lock;
    struct byi_cache *first;
} all_caches = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void init_locks(struct byi_cache *c)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&c->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    pthread_cond_init(&c->created, NULL);
}

/* If a callback of the host forks while its thread holds a cache's lock,
 * locking fails. */
static void before_fork(void)
{
    pthread_mutex_lock(&all_caches.lock);
    for (struct byi_cache *c = all_caches.first; c; c = c->next)
        c->locked_by_fork = pthread_mutex_lock(&c->lock) == 0;
}

static void after_fork(void)
{
    for (struct byi_cache *c = all_caches.first; c; c = c->next)
        if (c->locked_by_fork)
            pthread_mutex_unlock(&c->lock);
    pthread_mutex_unlock(&all_caches.lock);
}

/* Forget the entries whose specialisations other threads were creating, since
 * those threads do not exist in the child. */
static void reset_in_child(void)
{
    pthread_mutex_init(&all_caches.lock, NULL);
    for (struct byi_cache *c = all_caches.first; c; c = c->next) {
        init_locks(c);
        for (struct byi_cache_entry *e = c->oldest, *next; e; e = next) {
            next = e->newer;
            if (e->stage == CREATING)
                unlist_entry(c, e);
        }
    }
}

BYI_AT_FORK(before_fork, after_fork, reset_in_child)

static void register_cache(struct byi_cache *c)
{
    pthread_mutex_lock(&all_caches.lock);
    c->next = all_caches.first;
    all_caches.first = c;
    pthread_mutex_unlock(&all_caches.lock);
}

static void unregister_cache(struct byi_cache *c)
{
    pthread_mutex_lock(&all_caches.lock);
    struct byi_cache **link = &all_caches.first;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    pthread_mutex_unlock(&all_caches.lock);
}

/* --- the cache of a model ------------------------------------------------- */

enum byoc_status byi_cache_new(struct byoc_model *model,
                               const struct byoc_load_params *params,
                               struct byoc_error *err)
{
    uint64_t specialisations, bytes;
    BYI_TRY(read_limit("BYOC_CACHE_SHAPES", params->cache_shapes,
                       DEFAULT_SPECIALISATIONS, &specialisations, err));
    BYI_TRY(read_limit("BYOC_CACHE_BYTES", params->cache_bytes, DEFAULT_BYTES,
                       &bytes, err));
    struct byi_cache *c =
        byi_alloc(1, sizeof *c + model->plan->n_regions * sizeof c->warned[0]);
    if (!c)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for the cache of specialisations");
    init_locks(c);
    register_cache(c);
    c->stats.max_shapes =
        specialisations < UINT32_MAX ? (uint32_t)specialisations : UINT32_MAX;
    c->stats.max_bytes = bytes;
    model->cache = c;
    c->baseline = bytes_in_use(model);
    return BYOC_OK;
}

void byi_cache_free(struct byoc_model *model)
{
    struct byi_cache *c = model->cache;
    model->cache = NULL;
    if (!c)
        return;
    unregister_cache(c);
    while (c->oldest) {
        struct byi_cache_entry *e = c->oldest;
        unlist_entry(c, e);
        free_entry(e);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->created);
    free(c);
}

void byoc_model_cache(const struct byoc_model *model,
                      struct byoc_cache_stats *stats)
{
    struct byi_cache *c = model->cache;
    *stats = (struct byoc_cache_stats){0};
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stats.bytes = bytes_in_use(model);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
}

static enum byoc_status bind_dims(const struct byoc_model *model,
                                  const struct byoc_dim *dims, uint32_t n,
                                  int64_t *sizes, struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < model->n_keys &&
               strcmp(model->plan->symbols[model->keys[k]], dims[i].name) != 0)
            k++;
        if (k == model->n_keys)
            return byi_fail(err, BYOC_EINVAL,
                            "dims: found the name '%.40s', expected a symbolic "
                            "dim of the inputs",
                            dims[i].name);
        if (dims[i].size < 0)
            return byi_fail(err, BYOC_EINVAL,
                            "dims: found %.40s=%lld, expected a size of 0 or "
                            "more",
                            dims[i].name, (long long)dims[i].size);
        sizes[model->keys[k]] = dims[i].size;
    }
    for (uint32_t k = 0; k < model->n_keys; k++)
        if (sizes[model->keys[k]] < 0)
            return byi_fail(err, BYOC_EINVAL,
                            "dims: found no size for %s, expected a size for "
                            "every symbolic dim of the inputs",
                            model->plan->symbols[model->keys[k]]);
    return BYOC_OK;
}

/* Set *sizes to the sizes of the inputs' symbols, by symbol of the plan, as for
 * byi_specialise. The caller frees *sizes, also after a failure. */
static enum byoc_status read_dims(const struct byoc_model *model,
                                  const struct byoc_dim *dims, uint32_t n,
                                  int64_t **sizes, struct byoc_error *err)
{
    const uint32_t n_symbols = model->plan->n_symbols;
    *sizes = NULL;
    if (!model->cache)
        return byi_fail(err, BYOC_EINVAL,
                        "dims: found a model without symbolic dims in its "
                        "inputs, expected at least one; a model of fixed "
                        "sizes needs no specialisation");
    *sizes = byi_alloc(n_symbols + 1u, sizeof **sizes);
    if (!*sizes)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for %u sizes",
                        n_symbols);
    for (uint32_t i = 0; i < n_symbols; i++)
        (*sizes)[i] = -1;
    BYI_TRY(bind_dims(model, dims, n, *sizes, err));
    for (uint32_t i = 0; i < n_symbols; i++)
        (*sizes)[i] = model->open_symbols[i] ? -1 : (*sizes)[i];
    return BYOC_OK;
}

/* Set `faults`, by region, to copies in `arena` of the faults of the
 * specialisation's regions. Called without the lock, since a failed allocation
 * in an arena jumps to the guard. */
static void list_faults(const struct byoc_model *model,
                        const struct byi_specialisation *specialisation,
                        struct byi_arena *arena, const char **faults)
{
    for (uint32_t i = 0; i < model->plan->n_regions; i++)
        if (specialisation->regions[i].fault)
            faults[i] = byi_arena_str(arena, specialisation->regions[i].fault);
}

enum byoc_status byoc_internal_region_faults(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byi_arena *arena, const char **faults, struct byoc_error *err)
{
    int64_t *sizes;
    enum byoc_status status = read_dims(model, dims, n, &sizes, err);
    const struct byi_cache_entry *e = NULL;
    if (status == BYOC_OK) {
        pthread_mutex_lock(&model->cache->lock);
        e = find_listed(model, sizes);
        pthread_mutex_unlock(&model->cache->lock);
    }
    /* only the compiler uses this model, so no other thread evicts the entry */
    if (e && e->stage == READY) {
        list_faults(model, &e->specialisation, arena, faults);
    } else if (status == BYOC_OK) {
        struct byi_specialisation specialisation;
        status = byi_specialise(model, sizes, BYI_LAST_ATTEMPT, &specialisation,
                                err);
        if (status == BYOC_OK) {
            list_faults(model, &specialisation, arena, faults);
            byi_specialisation_end(&specialisation);
        }
    }
    free(sizes);
    return status;
}

enum byoc_status byoc_internal_check_dims(const struct byoc_model *model,
                                          const struct byoc_dim *dims,
                                          uint32_t n, struct byoc_error *err)
{
    int64_t *sizes;
    struct byi_specialisation specialisation;
    enum byoc_status status = read_dims(model, dims, n, &sizes, err);
    if (status == BYOC_OK)
        status = byi_specialise(model, sizes, BYI_LAST_ATTEMPT | BYI_TWINS,
                                &specialisation, err);
    if (status == BYOC_OK)
        byi_specialisation_end(&specialisation);
    free(sizes);
    return status;
}

enum byoc_status byoc_model_warm(const struct byoc_model *model,
                                 const struct byoc_dim *dims, uint32_t n,
                                 struct byoc_error *err)
{
    int64_t *sizes;
    struct byi_lease lease;
    struct byi_turn turn;
    enum byoc_status status = read_dims(model, dims, n, &sizes, err);
    byi_workers_enter(&turn, &model->parallelism);
    if (status == BYOC_OK)
        status = byi_cache_take(model, sizes, true, &lease, err);
    if (status == BYOC_OK)
        byi_cache_put(model, &lease);
    if (status == BYOC_OK)
        status = byi_workers_check_fork(err);
    byi_workers_leave(&turn);
    free(sizes);
    return byi_memory_explain(model->memory, status, err);
}
