/* SPDX-License-Identifier: Apache-2.0 */
/* ir.c: creates modules, functions, names, sources and constants. Everything is
 * in the module's arena except growing arrays and tables, which are on the
 * heap. Names and constants are found by hash, so that building a module is
 * linear. Tables are never iterated, so that no result depends on their order.
 */
#include "ir.h"
#include "core/base/guard.h"
#include "core/base/index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* operands in the first block of memory for them, and in the largest */
enum { FIRST_ARGS = 256, LAST_ARGS = 1 << 15 };

/* The tables that find the contents of a module by name or hash, and memory
 * that is reused. */
struct byi_module_tables {
    struct byi_index consts, funcs, symbols, sources, backends;
    byi_id *args;         /* memory for operands */
    uint32_t n_args;      /* operands that still fit there */
    uint32_t next_args;   /* operands of the next block of memory */
    uint32_t next_symbol; /* of "?0", "?1": the next number to try */
    uint32_t next_suffix; /* the last number appended to a source's name */
    /* all functions ever created, to be freed */
    BYI_VEC(struct byi_func *) all_funcs;
    /* holds each struct byi_func, so that they are adjacent in memory */
    struct byi_arena *func_arena;
    BYI_VEC(struct byi_node) spare; /* memory of a function that was replaced */
    /* the indices of the functions that may be open (byi_open_funcs), of the
     * first n_checked ones */
    BYI_VEC(uint32_t) open_funcs;
    uint32_t n_checked;
};

/* The index of `name` in names[], which `t` indexes. */
static uint32_t find_name(const struct byi_index *t, const char *const *names,
                          const char *name)
{
    BYI_INDEX_EACH (t, byi_hash_text(name), i)
        if (strcmp(names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* --- modules and functions ---------------------------------------------- */

struct byi_module *byi_module_new(void)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_module *m = byi_arena_alloc(arena, sizeof *m);

    m->arena = arena;
    m->tables = byi_arena_alloc(arena, sizeof *m->tables);
    m->tables->func_arena = byi_arena_new();
    return m;
}

static void free_func(struct byi_func *f)
{
    byi_vec_free(f->nodes.at);
    byi_vec_free(f->params.at);
    byi_vec_free(f->param_names.at);
    byi_vec_free(f->result_names.at);
    *f = (struct byi_func){.result = BYI_NO_ID, .dead = true};
}

void byi_module_free(struct byi_module **module)
{
    struct byi_module *m = *module;
    struct byi_module_tables *tables = NULL;
    struct byi_arena *arena = NULL;

    if (!m)
        return;
    tables = m->tables;
    for (uint32_t i = 0; i < tables->all_funcs.n; i++)
        free_func(tables->all_funcs.at[i]);
    byi_arena_free(&tables->func_arena);
    byi_vec_free(tables->all_funcs.at);
    byi_vec_free(tables->spare.at);
    byi_vec_free(tables->open_funcs.at);
    byi_index_free(&tables->consts);
    byi_index_free(&tables->funcs);
    byi_index_free(&tables->symbols);
    byi_index_free(&tables->sources);
    byi_index_free(&tables->backends);
    byi_vec_free(m->funcs.at);
    byi_vec_free(m->consts.at);
    byi_vec_free(m->sources.at);
    byi_vec_free(m->symbols.at);
    byi_vec_free(m->backends.at);
    arena = m->arena; /* m itself lives in it */
    byi_arena_free(&arena);
    *module = NULL;
}

static struct byi_func *make_func(struct byi_module *m, const char *name)
{
    struct byi_func *f = byi_arena_alloc(m->tables->func_arena, sizeof *f);

    f->name = name ? byi_arena_str(m->arena, name) : NULL;
    f->result = BYI_NO_ID;
    BYI_PUSH(&m->tables->all_funcs, f);
    return f;
}

uint32_t byi_func_new(struct byi_module *m, const char *name)
{
    uint32_t index = m->funcs.n;

    BYI_PUSH(&m->funcs, make_func(m, name));
    if (name)
        byi_index_add(&m->tables->funcs, byi_hash_text(name), index);
    return index;
}

uint32_t byi_func_find(const struct byi_module *m, const char *name)
{
    uint64_t hash = byi_hash_text(name);
    uint32_t at = UINT32_MAX, i = 0;

    while ((i = byi_index_next(&m->tables->funcs, hash, &at)) != UINT32_MAX) {
        const struct byi_func *f = m->funcs.at[i];
        if (!f->dead && f->name && strcmp(f->name, name) == 0)
            break;
    }
    return i;
}

const char *byi_module_entry_name(const struct byi_module *m)
{
    return m->entry ? m->entry : "main";
}

uint32_t byi_module_entry(const struct byi_module *m)
{
    return byi_func_find(m, byi_module_entry_name(m));
}

enum byoc_status byi_module_entry_set(struct byi_module *m, const char *name,
                                      const char *where, struct byoc_error *err)
{
    struct byi_text names = {0};
    enum byoc_status status = BYOC_OK;

    if (byi_func_find(m, name) != UINT32_MAX) {
        m->entry = byi_arena_str(m->arena, name);
        return BYOC_OK;
    }
    for (uint32_t i = 0; i < m->funcs.n && names.n < 600; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->name)
            byi_text_addf(&names, "%s@%.80s", names.n ? ", " : "",
                          m->funcs.at[i]->name);
    status = byi_fail(
        err, BYOC_EINVAL,
        "%s: found no function @%.80s, expected one of its functions: %.700s",
        where, name, names.n ? names.at : "none");
    byi_text_free(&names);
    return status;
}

static const struct byi_type *param_type(const struct byi_func *f, uint32_t i)
{
    return f->nodes.at[f->params.at[i]].type;
}

/* Whether `type` matches the body, compared by pointers: a miss only costs a
 * new type. */
static bool is_current_type(const struct byi_func *f,
                            const struct byi_type *type)
{
    uint32_t n = f->params.n - f->n_captures;

    if (!type || type->n_fields != n ||
        type->result != f->nodes.at[f->result].type)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (type->fields[i] != param_type(f, i))
            return false;
    return true;
}

const struct byi_type *byi_func_type(struct byi_module *m, uint32_t func)
{
    struct byi_func *f = m->funcs.at[func];
    uint32_t n = f->params.n - f->n_captures;
    BYI_VEC(const struct byi_type *) params = {0};

    assert(f->n_captures <= f->params.n);
    if (f->result == BYI_NO_ID || is_current_type(f, f->type))
        return f->type;
    for (uint32_t i = 0; i < n; i++)
        BYI_PUSH(&params, param_type(f, i));
    f->type =
        byi_type_func(m->arena, n, params.at, f->nodes.at[f->result].type);
    byi_vec_free(params.at);
    return f->type;
}

/* A function with at least this many nodes is rebuilt in the memory of one that
 * was replaced before. New memory from the system would take more time than
 * creating the nodes. */
enum { LARGE_FUNC = 1024 };

static void keep_nodes(struct byi_module *m, struct byi_func *old)
{
    struct byi_module_tables *tables = m->tables;

    if (old->nodes.cap < LARGE_FUNC || old->nodes.cap <= tables->spare.cap)
        return;
    byi_vec_free(tables->spare.at);
    tables->spare.at = old->nodes.at;
    tables->spare.cap = old->nodes.cap;
    old->nodes.at = NULL;
}

static void reuse_nodes(struct byi_module *m, struct byi_func *f, uint32_t n)
{
    struct byi_module_tables *tables = m->tables;

    if (n < LARGE_FUNC || tables->spare.cap < n || tables->spare.cap / 4 > n)
        return;
    f->nodes.at = tables->spare.at;
    f->nodes.cap = tables->spare.cap;
    tables->spare.at = NULL;
    tables->spare.cap = 0;
}

byi_id byi_add_node(struct byi_func *f, struct byi_node node)
{
    byi_id id = f->nodes.n;

    for (uint32_t i = 0; i < node.n_args; i++)
        assert(node.args[i] < id);
    f->refers = f->refers || byi_node_refers(&node);
    if (!node.sources)
        node.sources = byi_sources_none();
    BYI_PUSH(&f->nodes, node);
    return id;
}

byi_id byi_add_like(struct byi_func *f, const struct byi_node *like,
                    const byi_id *args, uint32_t n_args)
{
    struct byi_node node = *like;
    node.args = args;
    node.n_args = n_args;
    return byi_add_node(f, node);
}

byi_id byi_add_param(struct byi_module *m, struct byi_func *f, const char *name,
                     const struct byi_type *type)
{
    byi_id id = byi_add_node(f, (struct byi_node){
                                    .kind = BYI_PARAM,
                                    .index = f->params.n,
                                    .type = type,
                                });

    BYI_PUSH(&f->params, id);
    BYI_PUSH(&f->param_names, byi_arena_str(m->arena, name));
    return id;
}

struct byi_func *byi_func_like(struct byi_module *m,
                               const struct byi_func *like, byi_id *map)
{
    struct byi_func *f = make_func(m, NULL);

    reuse_nodes(m, f, like->nodes.n);
    f->name = like->name;
    f->origin = like;
    f->attr = like->attr;
    f->n_captures = like->n_captures;
    for (uint32_t i = 0; i < like->params.n; i++) {
        const struct byi_node *old = &like->nodes.at[like->params.at[i]];
        byi_id id = byi_add_param(m, f, like->param_names.at[i], old->type);
        struct byi_node *node = &f->nodes.at[id];
        node->sources = old->sources;
        node->backend = old->backend;
        node->region = old->region;
        if (map)
            map[like->params.at[i]] = id;
    }
    for (uint32_t i = 0; i < like->result_names.n; i++)
        BYI_PUSH(&f->result_names, like->result_names.at[i]);
    return f;
}

static const char *new_or_old(const char *new_text, const char *old_text)
{
    return new_text ? new_text : old_text;
}

bool byi_is_closed(const struct byi_func *f)
{
    return f->attr.compiler || f->attr.composite || f->attr.primitive ||
           f->attr.inner;
}

/* Whether f is dead, or closed and not a branch of a composite: these branches
 * become open when the composite is inlined. */
static bool stays_closed(const struct byi_func *f)
{
    return f->dead || f->attr.compiler || f->attr.composite ||
           f->attr.primitive;
}

const uint32_t *byi_open_funcs(struct byi_module *m, uint32_t *n)
{
    /* functions are scattered in memory: prefetch them */
    enum { PREFETCH = 16 };
    struct byi_module_tables *tables = m->tables;
    uint32_t n_open = 0;

    for (uint32_t i = 0; i < tables->open_funcs.n; i++)
        if (!stays_closed(m->funcs.at[tables->open_funcs.at[i]]))
            tables->open_funcs.at[n_open++] = tables->open_funcs.at[i];
    tables->open_funcs.n = n_open;
    for (; tables->n_checked < m->funcs.n; tables->n_checked++) {
        if (tables->n_checked + PREFETCH < m->funcs.n)
            __builtin_prefetch(
                &m->funcs.at[tables->n_checked + PREFETCH]->attr.compiler);
        if (!stays_closed(m->funcs.at[tables->n_checked]))
            BYI_PUSH(&tables->open_funcs, tables->n_checked);
    }
    *n = tables->open_funcs.n;
    return tables->open_funcs.at;
}

void byi_func_replace(struct byi_module *m, uint32_t index,
                      struct byi_func *new_func)
{
    struct byi_func *old = m->funcs.at[index];

    assert(new_func != old);
    if (new_func->name &&
        (!old->name || strcmp(old->name, new_func->name) != 0))
        byi_index_add(&m->tables->funcs, byi_hash_text(new_func->name), index);
    new_func->name = new_or_old(new_func->name, old->name);
    new_func->attr.compiler =
        new_or_old(new_func->attr.compiler, old->attr.compiler);
    new_func->attr.composite =
        new_or_old(new_func->attr.composite, old->attr.composite);
    new_func->attr.from_pattern =
        new_or_old(new_func->attr.from_pattern, old->attr.from_pattern);
    new_func->attr.global_symbol =
        new_or_old(new_func->attr.global_symbol, old->attr.global_symbol);
    new_func->attr.operands =
        new_or_old(new_func->attr.operands, old->attr.operands);
    new_func->attr.primitive = new_func->attr.primitive || old->attr.primitive;
    new_func->attr.inner = new_func->attr.inner || old->attr.inner;
    new_func->attr.inlined = new_func->attr.inlined || old->attr.inlined;
    new_func->attr.exact = new_func->attr.exact || old->attr.exact;
    if (new_func->result_names.n == 0) {
        void *spare = new_func->result_names.at;
        memcpy(&new_func->result_names, &old->result_names,
               sizeof old->result_names);
        memset(&old->result_names, 0, sizeof old->result_names);
        byi_vec_free(spare);
    }
    m->funcs.at[index] = new_func;
    if (new_func->result == BYI_NO_ID && !new_func->type)
        new_func->type = old->type;
    byi_func_type(m, index);
    keep_nodes(m, old);
    free_func(old);
}

/* --- names -------------------------------------------------------------- */

int64_t byi_symbol(struct byi_module *m, const char *name)
{
    struct byi_index *t = &m->tables->symbols;
    uint32_t i = find_name(t, m->symbols.at, name);

    if (i == UINT32_MAX) {
        i = m->symbols.n;
        BYI_PUSH(&m->symbols, byi_arena_str(m->arena, name));
        byi_index_add(t, byi_hash_text(name), i);
    }
    return -1 - (int64_t)i;
}

int64_t byi_symbol_new(struct byi_module *m)
{
    struct byi_module_tables *tables = m->tables;
    char name[16];

    do
        snprintf(name, sizeof name, "?%u", tables->next_symbol++);
    while (find_name(&tables->symbols, m->symbols.at, name) != UINT32_MAX);
    return byi_symbol(m, name);
}

const char *byi_symbol_name(const struct byi_module *m, int64_t dim)
{
    assert(BYI_IS_SYMBOL(dim) && -1 - dim < (int64_t)m->symbols.n);
    return m->symbols.at[-1 - dim];
}

enum byoc_status byi_backend_add(struct byi_module *m, const char *name,
                                 uint32_t *backend, struct byoc_error *err)
{
    struct byi_index *t = &m->tables->backends;
    uint32_t i = find_name(t, m->backends.at, name);

    if (i == UINT32_MAX) {
        i = m->backends.n;
        if (i == BYI_MAX_BACKENDS)
            return byi_fail(err, BYOC_ELIMIT,
                            "found backend '%.100s' after %d others, expected "
                            "at most %d in a module",
                            name, BYI_MAX_BACKENDS, BYI_MAX_BACKENDS);
        BYI_PUSH(&m->backends, byi_arena_str(m->arena, name));
        byi_index_add(t, byi_hash_text(name), i);
    }
    *backend = i + 1;
    return BYOC_OK;
}

void byi_node_mark(struct byi_node *node, uint32_t backend, uint32_t region)
{
    assert(backend <= BYI_MAX_BACKENDS);
    node->backend = backend & BYI_MAX_BACKENDS;
    node->region = region;
}

/* --- sources ------------------------------------------------------------ */

static bool is_source_taken(const struct byi_module *m, const char *name)
{
    const struct byi_index *t = &m->tables->sources;
    uint64_t hash = byi_hash_text(name);
    uint32_t at = UINT32_MAX, i = 0;

    while ((i = byi_index_next(t, hash, &at)) != UINT32_MAX)
        if (strcmp(m->sources.at[i].name, name) == 0)
            return true;
    return false;
}

/* The suffix only ever grows, so that naming many equal nodes takes linear
 * time. */
uint32_t byi_source_new(struct byi_module *m, const char *name, const char *op)
{
    struct byi_module_tables *tables = m->tables;
    uint32_t i = m->sources.n;
    bool empty = !name || !*name;
    char *unique = byi_arena_str(m->arena, empty ? op : name);
    const char *stem = unique;

    while ((empty && unique == stem) || is_source_taken(m, unique))
        unique =
            byi_arena_printf(m->arena, "%s#%u", stem, ++tables->next_suffix);
    BYI_PUSH(&m->sources, ((struct byi_source){
                              .name = unique,
                              .op = byi_arena_str(m->arena, op),
                          }));
    byi_index_add(&tables->sources, byi_hash_text(unique), i);
    return i;
}

const struct byi_sources *byi_sources_none(void)
{
    static const struct byi_sources none = {0};

    return &none;
}

static const struct byi_sources *make_sources(struct byi_module *m, uint32_t n,
                                              const uint32_t *at)
{
    struct byi_sources *s = byi_arena_alloc(m->arena, sizeof *s);

    *s = (struct byi_sources){.n = n, .at = at};
    return s;
}

const struct byi_sources *byi_sources_one(struct byi_module *m, uint32_t s)
{
    assert(s < m->sources.n);
    return make_sources(m, 1, byi_arena_copy(m->arena, &s, sizeof s));
}

/* The number of members of b that are not in a. */
static uint32_t count_new(const struct byi_sources *a,
                          const struct byi_sources *b)
{
    uint32_t n = 0;

    for (uint32_t i = 0, j = 0; j < b->n; j++) {
        while (i < a->n && a->at[i] < b->at[j])
            i++;
        n += i == a->n || a->at[i] != b->at[j];
    }
    return n;
}

const struct byi_sources *byi_sources_join(struct byi_module *m,
                                           const struct byi_sources *a,
                                           const struct byi_sources *b)
{
    uint32_t n_new = a == b ? 0 : count_new(a, b), n = a->n + n_new;
    uint32_t *at = NULL;

    if (n_new == 0)
        return a;
    if (n == b->n)
        return b;
    at = byi_arena_calloc(m->arena, n, sizeof *at);
    for (uint32_t i = 0, j = 0, k = 0; k < n; k++) {
        bool from_a = j == b->n || (i < a->n && a->at[i] <= b->at[j]);
        if (from_a && j < b->n && a->at[i] == b->at[j])
            j++;
        at[k] = from_a ? a->at[i++] : b->at[j++];
    }
    return make_sources(m, n, at);
}

static int compare_ids(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t byi_ids_sort(uint32_t *at, uint32_t n)
{
    uint32_t count = 0;

    if (n)
        qsort(at, n, sizeof *at, compare_ids);
    for (uint32_t i = 0; i < n; i++)
        if (!count || at[i] != at[count - 1])
            at[count++] = at[i];
    return count;
}

const struct byi_sources *byi_sources_of(struct byi_module *m, uint32_t *at,
                                         uint32_t n)
{
    const uint32_t count = byi_ids_sort(at, n);

    return count
               ? make_sources(m, count,
                              byi_arena_copy(m->arena, at, count * sizeof *at))
               : byi_sources_none();
}

const struct byi_sources *byi_sources_of_nodes(struct byi_module *m,
                                               const struct byi_func *f,
                                               const byi_id *nodes, uint32_t n)
{
    BYI_VEC(uint32_t) ids = {0};

    for (uint32_t i = 0; i < n; i++) {
        const struct byi_sources *sources = f->nodes.at[nodes[i]].sources;
        for (uint32_t k = 0; k < sources->n; k++)
            BYI_PUSH(&ids, sources->at[k]);
    }
    const struct byi_sources *joined = byi_sources_of(m, ids.at, ids.n);
    byi_vec_free(ids.at);
    return joined;
}

/* --- constants ---------------------------------------------------------- */

static uint64_t hash_const(const struct byi_type *type, const void *data,
                           uint64_t bytes)
{
    uint64_t h =
        byi_hash(type->dtype, type->dims, type->rank * sizeof *type->dims);
    const char *const *strings = data;

    if (type->dtype != BYOC_STRING)
        return byi_hash(h, data, bytes);
    for (uint64_t i = 0; i < bytes / sizeof *strings; i++)
        h = byi_hash(h, strings[i], strlen(strings[i]));
    return h;
}

static bool same_data(const struct byi_const *c, const void *data)
{
    const char *const *a = c->data, *const *b = data;

    if (c->bytes == 0 || c->data == data)
        return true;
    if (c->type->dtype != BYOC_STRING)
        return memcmp(c->data, data, c->bytes) == 0;
    for (uint64_t i = 0; i < c->bytes / sizeof *a; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static const void *copy_data(struct byi_module *m, const struct byi_type *type,
                             const void *data, uint64_t bytes)
{
    void *copy = byi_arena_data(m->arena, bytes);
    const char **strings = copy;

    if (bytes)
        memcpy(copy, data, bytes);
    if (type->dtype == BYOC_STRING)
        for (uint64_t i = 0; i < bytes / sizeof *strings; i++)
            strings[i] = byi_arena_str(m->arena, strings[i]);
    return copy;
}

uint32_t byi_const_add(struct byi_module *m, const struct byi_type *type,
                       const void *data, bool borrow)
{
    struct byi_index *t = &m->tables->consts;
    uint64_t bytes = byi_type_bytes(type), hash = 0;
    uint32_t at = UINT32_MAX, i = 0;

    assert(bytes < UINT64_MAX && type->rank <= BYI_MAX_RANK);
    hash = hash_const(type, data, bytes);
    while ((i = byi_index_next(t, hash, &at)) != UINT32_MAX) {
        const struct byi_const *c = &m->consts.at[i];
        if (c->hash == hash && byi_type_equal(c->type, type) &&
            same_data(c, data))
            return i;
    }
    i = m->consts.n;
    BYI_PUSH(
        &m->consts,
        ((struct byi_const){
            .type =
                byi_type_tensor(m->arena, type->dtype, type->rank, type->dims),
            .data = borrow && bytes ? data : copy_data(m, type, data, bytes),
            .bytes = bytes,
            .hash = hash,
        }));
    byi_index_add(t, hash, i);
    return i;
}

uint32_t byi_const_add_model(struct byi_module *m, const struct byi_type *type,
                             const void *data, bool borrow)
{
    const uint64_t limit = UINT64_MAX / BYI_CONST_BUDGET_FACTOR / 2;
    const uint64_t bytes = byi_type_bytes(type);

    m->model_const_bytes = bytes < limit - m->model_const_bytes
                               ? m->model_const_bytes + bytes
                               : limit;
    return byi_const_add(m, type, data, borrow);
}

/* The most bytes of constants that passes may make. */
static uint64_t const_budget(const struct byi_module *m)
{
    return BYI_CONST_BUDGET_FREE +
           BYI_CONST_BUDGET_FACTOR * m->model_const_bytes;
}

uint64_t byi_consts_left(const struct byi_module *m)
{
    const uint64_t budget = const_budget(m);

    return m->pass_const_bytes < budget ? budget - m->pass_const_bytes : 0;
}

bool byi_consts_can_grow(const struct byi_module *m, uint64_t bytes)
{
    return bytes <= byi_consts_left(m);
}

enum byoc_status byi_const_refuse(const struct byi_module *m, enum byi_op_id op,
                                  const char *what, struct byoc_error *err)
{
    return byi_fail(err, BYOC_ELIMIT,
                    "%s: found a %s constant beyond the limit on constants "
                    "that passes make, expected at most %llu bytes in all, of "
                    "which %llu are used; skip the pass with --disable-pass",
                    byi_op(op)->name, what, (unsigned long long)const_budget(m),
                    (unsigned long long)m->pass_const_bytes);
}

bool byi_const_alloc(struct byi_module *m, const struct byi_type *type,
                     struct byi_tensor *out)
{
    const uint64_t bytes = byi_type_bytes(type);

    if (bytes >= SIZE_MAX - BYI_ALIGN || byoc_dtype_size(type->dtype) == 0 ||
        !byi_consts_can_grow(m, bytes))
        return false;
    m->pass_const_bytes += bytes;
    *out = (struct byi_tensor){.data = byi_arena_data(m->arena, bytes),
                               .dtype = type->dtype,
                               .rank = type->rank};
    if (type->rank)
        memcpy(out->dims, type->dims, type->rank * sizeof *out->dims);
    return true;
}

bool byi_const_view(const struct byi_module *m, const struct byi_func *f,
                    byi_id id, struct byi_tensor *view)
{
    const struct byi_node *node = &f->nodes.at[id];
    const struct byi_const *c = NULL;

    if (node->kind != BYI_CONST)
        return false;
    c = &m->consts.at[node->index];
    *view = (struct byi_tensor){
        .data = (void *)(uintptr_t)c->data,
        .dtype = c->type->dtype,
        .rank = c->type->rank,
    };
    memcpy(view->dims, c->type->dims, c->type->rank * sizeof *view->dims);
    return true;
}

/* --- operands ----------------------------------------------------------- */

byi_id *byi_args_new(struct byi_module *m, uint32_t n)
{
    struct byi_module_tables *tables = m->tables;
    byi_id *args = NULL;

    if (n > tables->n_args) {
        uint32_t capacity =
            tables->next_args < FIRST_ARGS ? FIRST_ARGS : tables->next_args;
        tables->next_args = capacity < LAST_ARGS ? capacity * 2 : capacity;
        capacity = capacity < n ? n : capacity;
        tables->args =
            byi_arena_calloc(m->arena, capacity, sizeof *tables->args);
        tables->n_args = capacity;
    }
    args = tables->args;
    tables->args += n;
    tables->n_args -= n;
    return args;
}

/* --- uses, members -------------------------------------------------------- */

struct byi_uses byi_uses_of(const struct byi_func *f, struct byi_arena *arena)
{
    uint32_t n = f->nodes.n;
    uint32_t *first = byi_arena_calloc(arena, (size_t)n + 2, sizeof *first);
    byi_id *at = NULL;

    /* A counting sort. The readers of id are counted at id + 2. So
     * first[id + 1] is the place of the next reader of id while readers are
     * filled in, and afterwards the end of id's readers. */
    for (byi_id id = 0; id < n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            first[f->nodes.at[id].args[i] + 2]++;
    for (byi_id id = 0; id <= n; id++)
        first[id + 1] += first[id];
    at = byi_arena_calloc(arena, first[n + 1], sizeof *at);
    for (byi_id id = 0; id < n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            at[first[f->nodes.at[id].args[i] + 1]++] = id;
    return (struct byi_uses){.first = first, .at = at};
}

struct byi_members byi_members_of(const struct byi_func *f, uint32_t n_regions,
                                  struct byi_arena *arena)
{
    uint32_t *first =
        byi_arena_calloc(arena, (size_t)n_regions + 3, sizeof *first);
    byi_id *at = byi_arena_calloc(arena, f->nodes.n, sizeof *at);

    /* counted at r + 2, as in byi_uses_of */
    for (byi_id id = 0; id < f->nodes.n; id++)
        first[f->nodes.at[id].region + 2]++;
    for (uint32_t r = 0; r <= n_regions + 1; r++)
        first[r + 1] += first[r];
    for (byi_id id = 0; id < f->nodes.n; id++)
        at[first[f->nodes.at[id].region + 1]++] = id;
    return (struct byi_members){.first = first, .at = at};
}
