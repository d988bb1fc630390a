/* SPDX-License-Identifier: Apache-2.0 */
/* implementations.c: records which implementations the loaded regions use. They
 * may differ from those that probes found: a probe sees one composite, but a
 * backend may combine several composites of a region, such as quantised ones.
 */
#include "compiled.h"

#include "core/base/index.h"
#include "report/ledger.h"

#include <string.h>

/* The implementations of the model's nodes, found by a node's name. */
struct node_impls {
    struct byoc_compiled *c;
    struct byi_index index; /* from names to positions in c->m->sources */
    const char **impls;     /* of each source, joined by '+'; NULL: none */
};

static void add_names(struct node_impls *map)
{
    for (uint32_t i = 0; i < map->c->m->sources.n; i++) {
        const char *name = map->c->m->sources.at[i].name;
        byi_index_add(&map->index, byi_hash_text(name), i);
    }
}

/* Whether `impl` is one of the names in `list`, which are joined by '+'. */
static bool has_impl(const char *list, const char *impl)
{
    const size_t n = strlen(impl);
    const char *at = list;
    while ((at = strstr(at, impl)) != NULL) {
        if ((at == list || at[-1] == '+') && (at[n] == '+' || at[n] == '\0'))
            return true;
        at++;
    }
    return false;
}

/* Add `impl` to the implementations of the model's nodes whose name is the `n`
 * bytes at `at`. */
static void add_impl(const struct node_impls *map, const char *at, size_t n,
                     const char *impl)
{
    BYI_INDEX_EACH (&map->index, byi_hash(0, at, n), i) {
        const char *name = map->c->m->sources.at[i].name;
        const char **impls = &map->impls[i];
        if (strncmp(name, at, n) != 0 || name[n] != '\0')
            continue;
        if (!*impls)
            *impls = impl;
        else if (!has_impl(*impls, impl))
            *impls = byi_arena_printf(map->c->arena, "%s+%s", *impls, impl);
    }
}

/* Drop the implementations that probes gave for the nodes of a region. */
static void drop_probed(struct byoc_compiled *c, const struct byi_func *f)
{
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_CALL)
            byi_ledger_set_impl(c->ledger, f->nodes.at[id].sources, "");
}

/* Add the step's implementation to its nodes. */
static void add_step(const struct node_impls *map,
                     const struct byi_built_step *step)
{
    for (const char *at = step->sources; *at;) {
        const size_t n = strcspn(at, ",");
        add_impl(map, at, n, step->impl);
        at += n + (at[n] == ',');
    }
}

void byi_record_implementations(struct byoc_compiled *c)
{
    const uint32_t n = c->m->sources.n;
    struct node_impls map = {
        .c = c, .impls = byi_arena_calloc(c->arena, n, sizeof(char *))};
    add_names(&map);
    for (uint32_t i = 0; i < c->built.regions.n; i++) {
        const struct byi_built_region *r = &c->built.regions.at[i];
        if (r->steps)
            drop_probed(c, c->m->funcs.at[r->func]);
        for (const struct byi_built_step *s = r->steps; s; s = s->next)
            add_step(&map, s);
    }
    for (uint32_t i = 0; i < n; i++)
        if (map.impls[i])
            byi_ledger_set_impl(c->ledger,
                                &(struct byi_sources){.n = 1, .at = &i},
                                map.impls[i]);
    byi_index_free(&map.index);
}
