/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/share.c: shares reordered constants. A region is built for each
 * set of sizes that its model runs with, but reordered weights seldom depend on
 * the sizes. Therefore all programs of a host that need the same reorder of the
 * same constant share one result. A constant is identified by its address,
 * since it does not move while a program uses it. */
#include "core/base/fork.h"
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

#include <pthread.h>

/* A reordered constant. */
struct byi_shared {
    struct byi_shared *next; /* next in its bucket */
    const struct byoc_host *host;
    const void *src;          /* the constant that was reordered */
    struct byi_prim *reorder; /* identifies both layouts */
    void *data;               /* the result, from byi_dn_computed_alloc() */
    uint32_t refs;            /* number of programs that use it */
};

enum { BUCKETS = 1024 };

/* The shared constants of this process, by hash of their address. */
static struct {
    pthread_mutex_t lock;
    struct byi_shared *buckets[BUCKETS];
} shared_consts = {.lock = PTHREAD_MUTEX_INITIALIZER};

BYI_HOLD_AT_FORK(shared_consts.lock, after_fork)

static struct byi_shared **bucket_of(const void *src)
{
    return &shared_consts.buckets[(uintptr_t)src / BYI_ALIGN % BUCKETS];
}

/* Find a shared constant and add a reference to it. Call with the lock of
 * shared_consts. */
static struct byi_shared *find_and_ref(const struct byoc_host *host,
                                       const void *src,
                                       const struct byi_prim *reorder)
{
    struct byi_shared *s = *bucket_of(src);
    while (s &&
           (s->src != src || s->host != host ||
            !byi_prim_same(s->reorder, BYI_ARG_SRC, reorder, BYI_ARG_SRC) ||
            !byi_prim_same(s->reorder, BYI_ARG_DST, reorder, BYI_ARG_DST)))
        s = s->next;
    if (s)
        s->refs++;
    return s;
}

struct byi_shared *byi_dn_share_find(const struct byoc_host *host,
                                     const void *src,
                                     const struct byi_prim *reorder)
{
    pthread_mutex_lock(&shared_consts.lock);
    struct byi_shared *s = find_and_ref(host, src, reorder);
    pthread_mutex_unlock(&shared_consts.lock);
    return s;
}

struct byi_shared *byi_dn_share(const struct byoc_host *host, const void *src,
                                struct byi_prim **reorder, void *data)
{
    struct byi_shared *entry = byi_alloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    pthread_mutex_lock(&shared_consts.lock);
    struct byi_shared *s = find_and_ref(host, src, *reorder);
    if (!s) {
        struct byi_shared **bucket = bucket_of(src);
        byi_prim_unbuild(*reorder);
        byi_keep(*reorder); /* any thread may free it */
        *entry = (struct byi_shared){.next = *bucket,
                                     .host = host,
                                     .src = src,
                                     .reorder = *reorder,
                                     .data = data,
                                     .refs = 1};
        s = *bucket = entry;
        *reorder = NULL;
    }
    pthread_mutex_unlock(&shared_consts.lock);
    if (s != entry) {
        byi_dn_computed_free(host, data);
        byi_release(entry);
    }
    return s;
}

void *byi_dn_shared_data(const struct byi_shared *shared)
{
    return shared->data;
}

void byi_dn_share_release(struct byi_shared *shared)
{
    struct byi_shared **at = bucket_of(shared->src);
    pthread_mutex_lock(&shared_consts.lock);
    const bool last = --shared->refs == 0;
    while (last && *at != shared)
        at = &(*at)->next;
    if (last)
        *at = shared->next;
    pthread_mutex_unlock(&shared_consts.lock);
    if (!last)
        return;
    byi_dn_computed_free(shared->host, shared->data);
    byi_prim_free(&shared->reorder);
    byi_release(shared);
}
