/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c: asks loaded backends whether they can build a composite and which
 * layouts they prefer. Caches the results of probes.
 */
#include "partition.h"

#include <string.h>

#include "codegen_json/codegen_json.h"
#include "core/base/child.h"
#include "core/base/index.h"

/* A cached answer to probes about composites of one signature. */
struct probe_answer {
    char *key; /* backend, JSON without sources, small constants */
    size_t key_bytes;
    struct byi_probe_result probed;
};

/* The answers to all probes so far. */
struct byi_probe_cache {
    struct byi_arena *arena;
    struct probe_answer **answers;
    uint32_t n, cap;
    struct byi_index index; /* by key */
};

const struct byi_context_key byi_backends_key = {"backends"};

enum byoc_status byi_backends_init(struct byi_backends *v,
                                   const struct byoc_backend *const *backends,
                                   const struct byoc_host *const *hosts,
                                   uint32_t n, struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    v->cache = byi_arena_calloc(arena, 1, sizeof *v->cache);
    v->cache->arena = v->cache->index.arena = arena;
    v->at = byi_arena_calloc(arena, n, sizeof *v->at);
    v->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct byi_pattern_table *table = NULL;
        enum byoc_status status = byi_patterns_compile(
            backends[i]->patterns, backends[i]->n_patterns, &table, err);
        if (status != BYOC_OK) {
            byi_prefix(err, "backend '%s'", backends[i]->name);
            byi_backends_free(v);
            return status;
        }
        v->at[v->n++] = (struct byi_backend){.name = backends[i]->name,
                                             .api = backends[i],
                                             .host = hosts[i],
                                             .table = table};
    }
    return BYOC_OK;
}

void byi_backends_free(struct byi_backends *v)
{
    if (!v->cache)
        return;
    for (uint32_t i = 0; i < v->n; i++)
        byi_patterns_free(&v->at[i].table);
    struct byi_arena *arena = v->cache->arena;
    *v = (struct byi_backends){0};
    byi_arena_free(&arena);
}

/* --- probing -------------------------------------------------------------- */

static struct probe_answer *find_answer(const struct byi_probe_cache *cache,
                                        uint64_t hash,
                                        const struct byi_text *key)
{
    BYI_INDEX_EACH (&cache->index, hash, i)
        if (cache->answers[i]->key_bytes == key->n &&
            memcmp(cache->answers[i]->key, key->at, key->n) == 0)
            return cache->answers[i];
    return NULL;
}

static struct probe_answer *add_answer(struct byi_probe_cache *cache,
                                       uint64_t hash,
                                       const struct byi_text *key)
{
    struct probe_answer *a = byi_arena_calloc(cache->arena, 1, sizeof *a);
    a->key = byi_arena_copy(cache->arena, key->at, key->n);
    a->key_bytes = key->n;
    if (cache->n == cache->cap)
        cache->answers = byi_arena_grow(cache->arena, cache->answers,
                                        &cache->cap, sizeof(*cache->answers));
    byi_index_add(&cache->index, hash, cache->n);
    cache->answers[cache->n++] = a;
    return a;
}

struct byoc_view *byi_const_views(const struct byi_module *m,
                                  const uint32_t *consts, uint32_t n,
                                  struct byi_arena *arena)
{
    struct byoc_view *views = byi_arena_calloc(arena, n, sizeof *views);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_const *c = &m->consts.at[consts[i]];
        views[i] = (struct byoc_view){.dtype = (uint32_t)c->type->dtype,
                                      .rank = c->type->rank,
                                      .dims = c->type->dims,
                                      .data = (void *)(uintptr_t)c->data,
                                      .bytes = c->bytes};
    }
    return views;
}

/* Small constants are part of the signature, since a backend may depend on
 * their values (a shape, a bound). Weights are larger. */
static void add_small_consts(const struct byoc_view *views, uint32_t n,
                             struct byi_text *key)
{
    enum { MAX_SMALL_BYTES = 256 };
    for (uint32_t i = 0; i < n; i++)
        if (views[i].bytes <= MAX_SMALL_BYTES)
            byi_text_add(key, views[i].data, views[i].bytes);
}

static void call_probe(const struct byi_backend *backend,
                       const struct byi_text *json,
                       const struct byoc_view *views, uint32_t n_consts,
                       struct byi_arena *arena, struct byi_probe_result *probed)
{
    const struct byoc_region graph = {.struct_size = sizeof graph,
                                      .n_consts = n_consts,
                                      .json = json->at,
                                      .json_bytes = json->n,
                                      .consts = views};
    struct byoc_probe result = {.struct_size = sizeof result};
    byi_child_step(backend->name, "probe()");
    struct byoc_fail *fail =
        backend->api->probe(backend->host, &graph, &result);
    byi_child_step_end();
    if (fail) {
        probed->refused = byi_arena_str(arena, backend->host->fail_text(fail));
        backend->host->fail_free(fail);
        return;
    }
    result.impl[sizeof result.impl - 1] = '\0';
    probed->impl = byi_arena_str(arena, result.impl);
    probed->reference = result.reference != 0;
}

/* Copy the names of the layouts, except names that are not NUL-terminated. */
static void read_preference(const struct byoc_layout *layout,
                            struct byi_layout_preference *preferred)
{
    if (memchr(layout->data, '\0', sizeof layout->data))
        memcpy(preferred->data, layout->data, sizeof preferred->data);
    if (memchr(layout->kernel, '\0', sizeof layout->kernel))
        memcpy(preferred->kernel, layout->kernel, sizeof preferred->kernel);
}

enum byoc_status byi_layout_preference_of(
    const struct byi_backend *backend, const struct byi_module *m,
    uint32_t func, struct byi_layout_preference *preferred,
    struct byoc_error *err)
{
    const struct byi_func *f = m->funcs.at[func];
    *preferred = (struct byi_layout_preference){0};
    if (!backend->api->layout || backend->excluded)
        return BYOC_OK;
    struct byi_arena *scratch = byi_arena_new();
    struct byi_text json = {0};
    uint32_t *consts = NULL, n = 0;
    uint32_t *no_consts =
        byi_arena_calloc(scratch, f->params.n + 1, sizeof *no_consts);
    memset(no_consts, 0xff, (f->params.n + 1) * sizeof *no_consts);
    const enum byoc_status status = byi_composite_write(
        m, func, no_consts, scratch, &json, &consts, &n, err);
    if (status == BYOC_OK) {
        const struct byoc_region graph = {
            .struct_size = sizeof graph,
            .n_consts = n,
            .json = json.at,
            .json_bytes = json.n,
            .consts = byi_const_views(m, consts, n, scratch)};
        struct byoc_layout layout = {.struct_size = sizeof layout};
        byi_child_step(backend->name, "layout()");
        struct byoc_fail *fail =
            backend->api->layout(backend->host, &graph, &layout);
        byi_child_step_end();
        if (fail)
            backend->host->fail_free(fail);
        else
            read_preference(&layout, preferred);
    }
    byi_text_free(&json);
    byi_arena_free(&scratch);
    return status;
}

/* Replace the parameters' types in a composite's JSON by `types`. No parameter
 * may be a constant. */
static enum byoc_status bind_types(const struct byi_module *m, uint32_t func,
                                   const uint32_t *consts, uint32_t n_consts,
                                   const struct byi_type *const *types,
                                   struct byi_arena *scratch,
                                   struct byi_text *json,
                                   struct byoc_error *err)
{
    struct byi_sized sized;
    const struct byi_region_consts region_consts = {
        n_consts, byi_const_views(m, consts, n_consts, scratch), NULL};
    BYI_TRY(byoc_internal_region_bind(json->at, json->n, &region_consts,
                                      m->funcs.at[func]->params.n, types,
                                      scratch, &sized, err));
    json->n = 0;
    byi_text_add(json, sized.json, sized.json_bytes);
    return BYOC_OK;
}

/* Whether the function has branches or loops. If the branches of an `if` differ
 * in type, no size makes the types fit, so the error does not depend on the
 * tried sizes. */
static bool has_bodies(const struct byi_func *f)
{
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (f->nodes.at[i].kind == BYI_FN)
            return true;
    return false;
}

enum byoc_status byi_probe(struct byi_backends *v,
                           const struct byi_backend *backend,
                           const struct byi_module *m, uint32_t func,
                           const uint32_t *const_args,
                           const struct byi_type *const *types,
                           struct byi_probe_result *probed,
                           struct byoc_error *err)
{
    *probed = (struct byi_probe_result){.impl = ""};
    if (!backend->api->probe)
        return BYOC_OK;
    struct byi_probe_cache *cache = v->cache;
    struct byi_arena *scratch = byi_arena_new();
    struct byi_text json = {0}, key = {0};
    uint32_t *consts = NULL, n = 0;
    enum byoc_status status = byi_composite_write(m, func, const_args, scratch,
                                                  &json, &consts, &n, err);
    if (status == BYOC_OK && types)
        status = bind_types(m, func, consts, n, types, scratch, &json, err);
    if (status == BYOC_ETYPE && types && !has_bodies(m->funcs.at[func])) {
        probed->misfit = true;
        status = BYOC_OK;
    } else if (status == BYOC_OK) {
        byi_text_addf(&key, "%s:", backend->name);
        byi_text_add(&key, json.at, json.n);
        struct byoc_view *views = byi_const_views(m, consts, n, scratch);
        add_small_consts(views, n, &key);
        uint64_t hash = byi_hash(0, key.at, key.n);
        const struct probe_answer *a = find_answer(cache, hash, &key);
        if (a) {
            *probed = a->probed;
        } else {
            call_probe(backend, &json, views, n, cache->arena, probed);
            add_answer(cache, hash, &key)->probed = *probed;
        }
    }
    byi_text_free(&json);
    byi_text_free(&key);
    byi_arena_free(&scratch);
    return status;
}
