/* SPDX-License-Identifier: Apache-2.0 */
/* PartitionGraph: turn every region into a function @backend_N with
 * Compiler="backend", called once; inline composites outside of regions.
 * requires: MergeRegions                   breaks: annotations
 *
 *   %1 = %0(%x) @[dnnl.1]                  def @dnnl_0(%x, Compiler="dnnl") {
 *   %3 = %2(%1) @[dnnl.1]          ==>       ... %0(%x) ... %2(%1) }
 *   exp(%3)                                %1 = @dnnl_0(%x);
 *                                          exp(%1)
 *
 * A value that several nodes of a region read is one parameter. Constants are
 * copied into the function. Each value that nodes outside read is one result,
 * for any number of readers. A region that only moves data, or that the user's
 * limits exclude, is reverted.
 */
#include "partition.h"

#include <string.h>

/* A result of a region: a tensor, or a field of a tuple that is read as a whole
 * outside.
 */
struct region_result {
    byi_id id; /* of the old function */
    uint32_t field;
};

/* A region that becomes a function. */
struct new_region {
    uint32_t func; /* the new function */
    struct byi_func *body;
    BYI_VEC(byi_id) params; /* outer values, in the order of first use */
    BYI_VEC(struct region_result) results; /* read outside */
    BYI_VEC(byi_id) result_ids;            /* the results in the body */
    uint32_t waiting;                      /* operands not emitted yet (Kahn) */
};

/* The state of the pass in one function, f, which `new_func` replaces. */
struct partitioner {
    struct byi_module *m;
    struct byi_func *f, *new_func;
    uint32_t func;
    struct byi_arena *scratch;
    struct byoc_error *err;
    struct byi_uses uses;
    /* for each backend: the first to try for a new name */
    uint32_t *next_numbers;
    uint32_t n_regions;
    struct new_region *regions; /* indexed by number, from 1 */
    struct byi_members members;
    bool *is_result_tuple; /* tuples made in a region and read outside */
    byi_id *map;           /* old id -> id in new_func */
    byi_id *inner;         /* old id -> id in its region's body */
};

static const struct byi_func *composite_of(const struct partitioner *p,
                                           byi_id id)
{
    return byi_composite_of(p->m, p->f, &p->f->nodes.at[id]);
}

/* --- the marks ------------------------------------------------------------ */

/* Marks may come from text, so check them: a region contains only calls of
 * composites of its one backend, and fields of them. */
static enum byoc_status check_marks(struct partitioner *p)
{
    const struct byi_func *f = p->f;
    uint32_t *backend =
        byi_arena_calloc(p->scratch, (size_t)f->nodes.n + 1, sizeof *backend);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (!node->region)
            continue;
        if (node->region > f->nodes.n)
            return byi_fail(p->err, BYOC_EINVAL,
                            "found region %u in a function "
                            "with %u nodes, expected MergeRegions' numbers",
                            node->region, f->nodes.n);
        uint32_t *expected = &backend[node->region];
        if (!*expected)
            *expected = node->backend;
        const bool is_field = node->kind == BYI_GET &&
                              f->nodes.at[node->args[0]].region == node->region;
        if (!*expected || node->backend != *expected ||
            (!is_field && !composite_of(p, id)))
            return byi_fail(p->err, BYOC_EINVAL,
                            "region %u has a node that is not a composite of "
                            "its backend, expected the marks of AnnotateTarget "
                            "and MergeRegions; run these passes first",
                            node->region);
        p->n_regions =
            node->region > p->n_regions ? node->region : p->n_regions;
    }
    return BYOC_OK;
}

/* --- the regions' functions ----------------------------------------------- */

static const char *new_region_name(struct partitioner *p, uint32_t backend)
{
    for (;;) {
        const char *name = byi_arena_printf(p->m->arena, "%s_%u",
                                            p->m->backends.at[backend - 1],
                                            p->next_numbers[backend - 1]++);
        if (byi_func_find(p->m, name) == UINT32_MAX)
            return name;
    }
}

/* Whether limits.c dropped the region, so that no node has its number. */
static bool is_empty(const struct partitioner *p, uint32_t number)
{
    return p->members.first[number] == p->members.first[number + 1];
}

/* Map the outer value `arg` into the region: to a copy if it is a constant,
 * otherwise to a parameter. */
static void map_operand(struct partitioner *p, struct new_region *region,
                        byi_id arg)
{
    const struct byi_node *node = &p->f->nodes.at[arg];
    if (node->kind == BYI_CONST) {
        p->inner[arg] =
            byi_add_const(p->m, region->body, node->index, node->sources);
        return;
    }
    const char *name = byi_arena_printf(p->m->arena, "i%u", region->params.n);
    p->inner[arg] = byi_add_param(p->m, region->body, name, node->type);
    BYI_PUSH(&region->params, arg);
}

static bool is_read_outside(const struct partitioner *p, byi_id id)
{
    if (id == p->f->result)
        return true;
    uint32_t number = p->f->nodes.at[id].region;
    for (uint32_t u = p->uses.first[id]; u < p->uses.first[id + 1]; u++)
        if (p->f->nodes.at[p->uses.at[u]].region != number)
            return true;
    return false;
}

static enum byoc_status add_member(struct partitioner *p,
                                   struct new_region *region, byi_id id)
{
    const struct byi_node *node = &p->f->nodes.at[id];
    if (node->kind == BYI_GET)
        return byi_add_get(p->m, region->body, p->inner[node->args[0]],
                           node->index, node->sources, &p->inner[id], p->err);
    byi_id *args = byi_arena_calloc(p->scratch, node->n_args, sizeof *args);
    for (uint32_t a = 1; a < node->n_args; a++)
        args[a - 1] = p->inner[node->args[a]];
    const struct byi_node *fn = &p->f->nodes.at[node->args[0]];
    byi_id callee =
        byi_add_fn(p->m, region->body, fn->index, NULL, 0, fn->sources);
    return byi_add_apply(p->m, region->body, callee, args, node->n_args - 1,
                         node->sources, &p->inner[id], p->err);
}

/* Map the outer values that the region reads into it. Returns their number; the
 * caller resets p->inner of *entered, and frees that list. */
static uint32_t enter_operands(struct partitioner *p, uint32_t number,
                               byi_id **entered)
{
    struct new_region *region = &p->regions[number];
    BYI_VEC(byi_id) list = {0};
    for (uint32_t i = p->members.first[number];
         i < p->members.first[number + 1]; i++) {
        const struct byi_node *node = &p->f->nodes.at[p->members.at[i]];
        for (uint32_t a = node->kind == BYI_CALL; a < node->n_args; a++) {
            byi_id arg = node->args[a];
            if (p->f->nodes.at[arg].region == number ||
                p->inner[arg] != BYI_NO_ID)
                continue;
            map_operand(p, region, arg);
            BYI_PUSH(&list, arg);
        }
    }
    *entered = list.at;
    return list.n;
}

/* Add the fields of `id`, a tuple made inside, as results. */
static enum byoc_status collect_fields(struct partitioner *p,
                                       struct new_region *region, byi_id id)
{
    for (uint32_t i = 0; i < p->f->nodes.at[id].type->n_fields; i++) {
        const struct region_result result = {.id = id, .field = i};
        byi_id field;
        BYI_TRY(byi_add_get(p->m, region->body, p->inner[id], i, NULL, &field,
                            p->err));
        BYI_PUSH(&region->results, result);
        BYI_PUSH(&region->result_ids, field);
    }
    return BYOC_OK;
}

static enum byoc_status collect_results(struct partitioner *p, uint32_t number)
{
    struct new_region *region = &p->regions[number];
    for (uint32_t i = p->members.first[number];
         i < p->members.first[number + 1]; i++) {
        const byi_id id = p->members.at[i];
        const struct byi_node *node = &p->f->nodes.at[id];
        if (p->is_result_tuple[id]) {
            BYI_TRY(collect_fields(p, region, id));
            continue;
        }
        if (!is_read_outside(p, id) ||
            (node->kind == BYI_GET && p->is_result_tuple[node->args[0]]))
            continue;
        const struct region_result result = {.id = id};
        BYI_PUSH(&region->results, result);
        BYI_PUSH(&region->result_ids, p->inner[id]);
    }
    region->body->result =
        region->results.n == 1
            ? region->result_ids.at[0]
            : byi_add_tuple(p->m, region->body, region->result_ids.at,
                            region->results.n, NULL);
    return BYOC_OK;
}

static enum byoc_status build_region(struct partitioner *p, uint32_t number)
{
    struct new_region *region = &p->regions[number];
    const struct byi_node *member =
        &p->f->nodes.at[p->members.at[p->members.first[number]]];
    const char *name = p->m->backends.at[member->backend - 1];
    region->func = byi_func_new(p->m, new_region_name(p, member->backend));
    region->body = p->m->funcs.at[region->func];
    region->body->attr.compiler = name;
    region->body->attr.global_symbol = region->body->name;
    byi_id *entered;
    uint32_t n_entered = enter_operands(p, number, &entered);
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = p->members.first[number];
         i < p->members.first[number + 1] && status == BYOC_OK; i++)
        status = add_member(p, region, p->members.at[i]);
    if (status == BYOC_OK)
        status = collect_results(p, number);
    for (uint32_t i = 0; i < n_entered; i++)
        p->inner[entered[i]] = BYI_NO_ID;
    for (uint32_t i = p->members.first[number];
         i < p->members.first[number + 1]; i++)
        p->inner[p->members.at[i]] = BYI_NO_ID; /* for the next region */
    byi_vec_free(entered);
    return status;
}

/* --- the function around the regions -------------------------------------- */

/* If `node` is a branch of an inlined composite, clear the attribute `inner` of
 * its function and of the branches inside. Recursion is as deep as patterns
 * nest `if`. */
static void clear_inner(struct byi_module *m, const struct byi_node *node)
{
    if (node->kind != BYI_FN || !m->funcs.at[node->index]->attr.inner)
        return;
    struct byi_func *f = m->funcs.at[node->index];
    f->attr.inner = false;
    for (byi_id id = 0; id < f->nodes.n; id++)
        clear_inner(m, &f->nodes.at[id]);
}

/* Inline a composite that is in no region. */
static enum byoc_status inline_composite(struct partitioner *p, byi_id id,
                                         const struct byi_func *body)
{
    const struct byi_node *call = &p->f->nodes.at[id];
    byi_id *map = byi_arena_calloc(p->scratch, body->nodes.n, sizeof *map);
    for (byi_id i = 0; i < body->nodes.n; i++) {
        const struct byi_node *node = &body->nodes.at[i];
        if (node->kind == BYI_PARAM)
            map[i] = p->map[call->args[1 + node->index]];
        else
            BYI_TRY(byi_add_moved(p->m, p->new_func, body, i, map, &map[i],
                                  p->err));
        clear_inner(p->m, &p->new_func->nodes.at[map[i]]);
    }
    p->map[id] = map[body->result];
    return BYOC_OK;
}

/* Whether node `id` is a composite's literal that is only called, never read as
 * a value. */
static bool is_only_called(const struct partitioner *p, byi_id id)
{
    const struct byi_node *fn = &p->f->nodes.at[id];
    if (fn->kind != BYI_FN || !p->m->funcs.at[fn->index]->attr.composite ||
        fn->n_args || id == p->f->result)
        return false;
    for (uint32_t u = p->uses.first[id]; u < p->uses.first[id + 1]; u++) {
        const struct byi_node *reader = &p->f->nodes.at[p->uses.at[u]];
        if (reader->kind != BYI_CALL)
            return false;
        for (uint32_t a = 1; a < reader->n_args; a++)
            if (reader->args[a] == id)
                return false;
    }
    return true;
}

static enum byoc_status emit_native(struct partitioner *p, byi_id id)
{
    const struct byi_node *node = &p->f->nodes.at[id];
    const struct byi_func *body = composite_of(p, id);
    if (node->kind == BYI_PARAM)
        return BYOC_OK;
    if (body)
        return inline_composite(p, id, body);
    if (is_only_called(p, id))
        return BYOC_OK; /* its calls are inlined or in a region */
    return byi_add_copy(p->m, p->new_func, p->f, id, p->map, &p->map[id],
                        p->err);
}

/* Map the values that leave a region: outputs[i] is its i-th result. */
static void map_results(struct partitioner *p, uint32_t number,
                        const byi_id *outputs)
{
    const struct new_region *region = &p->regions[number];
    uint32_t n_fields;
    for (uint32_t i = 0; i < region->results.n; i += n_fields) {
        const byi_id id = region->results.at[i].id;
        const struct byi_type *type = p->f->nodes.at[id].type;
        n_fields = 1;
        p->map[id] = outputs[i];
        if (type->kind != BYI_TUPLE)
            continue;
        n_fields = type->n_fields;
        p->map[id] =
            byi_add_tuple(p->m, p->new_func, &outputs[i], n_fields, NULL);
        for (uint32_t u = p->uses.first[id]; u < p->uses.first[id + 1]; u++) {
            const byi_id reader = p->uses.at[u];
            const struct byi_node *node = &p->f->nodes.at[reader];
            if (node->kind == BYI_GET && node->region == number)
                p->map[reader] = outputs[i + node->index];
        }
    }
}

static enum byoc_status emit_region(struct partitioner *p, uint32_t number)
{
    struct new_region *region = &p->regions[number];
    byi_id *args = byi_arena_calloc(p->scratch, region->params.n, sizeof *args);
    for (uint32_t i = 0; i < region->params.n; i++)
        args[i] = p->map[region->params.at[i]];
    byi_id callee = byi_add_global(p->m, p->new_func, region->func);
    byi_id call;
    BYI_TRY(byi_add_apply(p->m, p->new_func, callee, args, region->params.n,
                          NULL, &call, p->err));
    byi_id *outputs =
        byi_arena_calloc(p->scratch, region->results.n, sizeof *outputs);
    for (uint32_t i = 0; i < region->results.n; i++) {
        outputs[i] = call;
        if (region->results.n > 1)
            BYI_TRY(byi_add_get(p->m, p->new_func, call, i, NULL, &outputs[i],
                                p->err));
    }
    map_results(p, number, outputs);
    return BYOC_OK;
}

/* --- emission in topological order (Kahn) --------------------------------- */

/* A vertex is a native node or a region. Its key is (first old id << 32) |
 * region number. Most vertices are ready at once and are listed in order; the
 * others go through the heap. */
struct ready_queue {
    uint64_t *listed, *heap;
    uint32_t n_listed, next; /* entries before `next` were popped */
    uint32_t n;              /* in the heap */
};

static void push_ready(struct ready_queue *h, uint64_t key)
{
    uint32_t i = h->n++;
    for (; i > 0 && h->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        h->heap[i] = h->heap[(i - 1) / 2];
    h->heap[i] = key;
}

static bool has_ready(const struct ready_queue *h)
{
    return h->n || h->next < h->n_listed;
}

static uint64_t pop_ready(struct ready_queue *h)
{
    if (!h->n || (h->next < h->n_listed && h->listed[h->next] < h->heap[0]))
        return h->listed[h->next++];
    uint64_t top = h->heap[0], last = h->heap[--h->n];
    uint32_t i = 0;
    for (uint32_t child = 1; child < h->n; i = child, child = 2 * i + 1) {
        if (child + 1 < h->n && h->heap[child + 1] < h->heap[child])
            child++;
        if (last <= h->heap[child])
            break;
        h->heap[i] = h->heap[child];
    }
    h->heap[i] = last;
    return top;
}

static uint64_t key_of(const struct partitioner *p, byi_id id)
{
    uint32_t number = p->f->nodes.at[id].region;
    uint32_t first = number ? p->members.at[p->members.first[number]] : id;
    return (uint64_t)first << 32 | number;
}

/* Count, per vertex, the operands that come from other vertices. */
static void count_waiting(struct partitioner *p, uint32_t *waiting)
{
    for (byi_id id = 0; id < p->f->nodes.n; id++) {
        const struct byi_node *node = &p->f->nodes.at[id];
        for (uint32_t a = 0; a < node->n_args; a++) {
            uint32_t from = p->f->nodes.at[node->args[a]].region;
            if (from && from == node->region)
                continue;
            if (node->region)
                p->regions[node->region].waiting++;
            else
                waiting[id]++;
        }
    }
}

static void release_readers(struct partitioner *p, byi_id id, uint32_t *waiting,
                            struct ready_queue *ready_queue)
{
    uint32_t number = p->f->nodes.at[id].region;
    for (uint32_t u = p->uses.first[id]; u < p->uses.first[id + 1]; u++) {
        byi_id reader = p->uses.at[u];
        uint32_t reader_region = p->f->nodes.at[reader].region;
        if (reader_region && reader_region == number)
            continue;
        uint32_t *remaining = reader_region ? &p->regions[reader_region].waiting
                                            : &waiting[reader];
        if (--*remaining == 0)
            push_ready(ready_queue, key_of(p, reader));
    }
}

/* List the vertices that are ready at once, in order of first node. */
static void list_ready(const struct partitioner *p, const uint32_t *waiting,
                       struct ready_queue *ready_queue)
{
    for (byi_id id = 0; id < p->f->nodes.n; id++) {
        const uint32_t number = p->f->nodes.at[id].region;
        if (number ? p->members.at[p->members.first[number]] == id &&
                         !p->regions[number].waiting
                   : !waiting[id])
            ready_queue->listed[ready_queue->n_listed++] = key_of(p, id);
    }
}

static enum byoc_status emit_all(struct partitioner *p)
{
    const uint32_t n = p->f->nodes.n;
    uint32_t *waiting = byi_arena_calloc(p->scratch, n, sizeof *waiting);
    struct ready_queue ready_queue = {
        .listed = byi_arena_alloc(p->scratch, n * sizeof *ready_queue.listed),
        .heap =
            byi_arena_alloc(p->scratch, (n + 1u) * sizeof *ready_queue.heap)};
    count_waiting(p, waiting);
    list_ready(p, waiting, &ready_queue);
    uint32_t emitted = 0;
    while (has_ready(&ready_queue)) {
        uint64_t key = pop_ready(&ready_queue);
        uint32_t number = (uint32_t)key;
        byi_id id = (byi_id)(key >> 32);
        BYI_TRY(number ? emit_region(p, number) : emit_native(p, id));
        uint32_t from = number ? p->members.first[number] : 0;
        uint32_t to = number ? p->members.first[number + 1] : 1;
        for (uint32_t i = from; i < to; i++, emitted++)
            release_readers(p, number ? p->members.at[i] : id, waiting,
                            &ready_queue);
    }
    if (emitted != n)
        return byi_fail(p->err, BYOC_EINTERNAL,
                        "found regions that depend on each other after "
                        "%u of %u nodes, expected no cycle",
                        emitted, n);
    return BYOC_OK;
}

static bool needs_partitioning(const struct byi_module *m,
                               const struct byi_func *f)
{
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->region ||
            (node->kind == BYI_FN && m->funcs.at[node->index]->attr.composite))
            return true;
    }
    return false;
}

static enum byoc_status partition_function(struct partitioner *p)
{
    const uint32_t n = p->f->nodes.n;
    BYI_TRY(check_marks(p));
    p->regions =
        byi_arena_calloc(p->scratch, p->n_regions + 1, sizeof *p->regions);
    p->members = byi_members_of(p->f, p->n_regions, p->scratch);
    p->uses = byi_uses_of(p->f, p->scratch);
    p->is_result_tuple =
        byi_arena_calloc(p->scratch, n, sizeof *p->is_result_tuple);
    for (byi_id id = 0; id < n; id++)
        p->is_result_tuple[id] = p->f->nodes.at[id].region &&
                                 p->f->nodes.at[id].type->kind == BYI_TUPLE &&
                                 is_read_outside(p, id);
    p->map = byi_arena_calloc(p->scratch, n, sizeof *p->map);
    p->inner = byi_arena_alloc(p->scratch, n * sizeof *p->inner);
    memset(p->inner, 0xff, n * sizeof *p->inner);
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 1; i <= p->n_regions && status == BYOC_OK; i++)
        if (!is_empty(p, i))
            status = build_region(p, i);
    if (status == BYOC_OK) {
        p->new_func = byi_func_like(p->m, p->f, p->map);
        status = emit_all(p);
    }
    for (uint32_t i = 1; i <= p->n_regions; i++) {
        byi_vec_free(p->regions[i].params.at);
        byi_vec_free(p->regions[i].results.at);
        byi_vec_free(p->regions[i].result_ids.at);
    }
    if (status != BYOC_OK)
        return status;
    p->new_func->result = p->map[p->f->result];
    byi_func_replace(p->m, p->func, p->new_func);
    return BYOC_OK;
}

/* Returns the first number to try for the name of a new region, by backend.
 * Names are never reused, since the ledger refers to reverted regions by name.
 */
static uint32_t *next_numbers(struct byi_module *m, struct byi_arena *scratch)
{
    uint32_t *next = byi_arena_calloc(scratch, m->backends.n, sizeof *next);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (uint32_t t = 0; f->attr.compiler && f->name && t < m->backends.n;
             t++)
            next[t] += strcmp(m->backends.at[t], f->attr.compiler) == 0;
    }
    return next;
}

enum byoc_status byi_partition_function(struct byi_module *m, uint32_t func,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err)
{
    struct partitioner p = {.m = m,
                            .f = m->funcs.at[func],
                            .func = func,
                            .scratch = scratch,
                            .err = err,
                            .next_numbers = next_numbers(m, scratch)};
    return partition_function(&p);
}

/* Check the marks of every function before limits.c reads them. */
static enum byoc_status check_all_marks(struct byi_module *m,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        struct partitioner p = {
            .m = m, .f = m->funcs.at[i], .scratch = scratch, .err = err};
        if (!p.f->dead && !p.f->attr.compiler && !p.f->attr.composite &&
            needs_partitioning(m, p.f))
            BYI_TRY(check_marks(&p));
    }
    return BYOC_OK;
}

static enum byoc_status partition_graph(struct byi_module *m,
                                        struct byi_pass_context *ctx,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err)
{
    uint32_t n_funcs = m->funcs.n; /* skip the regions made here */
    if (m->backends.n == 0)
        return BYOC_OK;
    BYI_TRY(check_all_marks(m, scratch, err));
    byi_limit_regions(m, ctx, scratch);
    uint32_t *numbers = next_numbers(m, scratch);
    for (uint32_t i = 0; i < n_funcs; i++) {
        struct byi_func *f = m->funcs.at[i];
        if (f->dead || f->attr.compiler || f->attr.composite ||
            !needs_partitioning(m, f))
            continue;
        struct partitioner p = {.m = m,
                                .f = f,
                                .func = i,
                                .scratch = scratch,
                                .err = err,
                                .next_numbers = numbers};
        BYI_TRY(partition_function(&p));
    }
    return BYOC_OK;
}

const struct byi_pass byi_pass_partition_graph = {
    .name = "PartitionGraph",
    .summary = "turn regions into functions of their backends",
    .run_module = partition_graph,
};
