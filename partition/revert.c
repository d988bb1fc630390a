/* SPDX-License-Identifier: Apache-2.0 */
/* revert.c: reverts regions, whole or in part. A region's function is inlined
 * at its call as the marked nodes it was made of. The subregions that are kept
 * become functions again, the rest plain operators. Every reverted region
 * passes through here, so that all are recorded in the ledger in the same way.
 *
 *   def @dnnl_0(%i0, Compiler="dnnl") {    def @dnnl_1(%i0, Compiler="dnnl") {
 *     %1 = %0(%i0);                          %0(%i0) }
 *     %2(%1) }                       ==>
 *   @dnnl_0(%x)                            %1 = @dnnl_1(%x);
 *                                          exp(%1)
 */
#include "partition.h"

#include "transform/rewrite.h"

/* --- inlining regions ---------------------------------------------------- */

/* The state of byi_revert_regions in one caller, f, which `new_func` replaces.
 */
struct reverter {
    struct byi_module *m;
    const struct byi_func *f;
    struct byi_func *new_func;
    /* indexed by function; NULL: keep */
    const struct byi_revert *const *decisions;
    uint32_t n_regions; /* numbers in use in new_func          */
    byi_id *map;        /* for each node of f: its node in new_func  */
    struct byi_arena *scratch;
    struct byoc_error *err;
};

/* Returns the decision about the function that node `id` of f calls, or NULL.
 */
static const struct byi_revert *revert_of(const struct reverter *d, byi_id id)
{
    const struct byi_node *node = &d->f->nodes.at[id];
    if (node->kind != BYI_CALL)
        return NULL;
    const struct byi_node *callee = &d->f->nodes.at[node->args[0]];
    return callee->kind == BYI_GLOBAL ? d->decisions[callee->index] : NULL;
}

/* Inline the body of a region at its call, with the marks of its subregions. */
static enum byoc_status inline_region(struct reverter *d, byi_id id,
                                      const struct byi_revert *revert)
{
    const struct byi_node *call = &d->f->nodes.at[id];
    const struct byi_func *body = d->m->funcs.at[revert->func];
    byi_id *map = byi_arena_calloc(d->scratch, body->nodes.n, sizeof *map);
    uint32_t backend = 0, n_subregions = 0;
    BYI_TRY(byi_backend_add(d->m, body->attr.compiler, &backend, d->err));
    for (byi_id i = 0; i < body->nodes.n; i++) {
        const struct byi_node *node = &body->nodes.at[i];
        if (node->kind == BYI_PARAM) {
            map[i] = d->map[call->args[1 + node->index]];
            continue;
        }
        BYI_TRY(
            byi_add_moved(d->m, d->new_func, body, i, map, &map[i], d->err));
        const uint32_t subregion = revert->nodes ? revert->nodes[i].region : 0;
        if (!subregion)
            continue;
        byi_node_mark(&d->new_func->nodes.at[map[i]], backend,
                      d->n_regions + subregion);
        n_subregions = subregion > n_subregions ? subregion : n_subregions;
    }
    d->n_regions += n_subregions;
    d->map[id] = map[body->result];
    return BYOC_OK;
}

/* Replace field `id` of an inlined tuple by the tuple's operand. Returns false
 * if `id` is not such a field. */
static bool replace_field(struct reverter *d, byi_id id)
{
    const struct byi_node *node = &d->f->nodes.at[id];
    if (node->kind != BYI_GET || !revert_of(d, node->args[0]))
        return false;
    const struct byi_node *tuple =
        &d->new_func->nodes.at[d->map[node->args[0]]];
    if (tuple->kind != BYI_MAKE_TUPLE)
        return false;
    d->map[id] = tuple->args[node->index];
    return true;
}

static enum byoc_status inline_regions(struct reverter *d, uint32_t func)
{
    d->map = byi_arena_calloc(d->scratch, d->f->nodes.n, sizeof *d->map);
    d->new_func = byi_func_like(d->m, d->f, d->map);
    for (byi_id id = 0; id < d->f->nodes.n; id++) {
        const struct byi_revert *revert = revert_of(d, id);
        if (d->f->nodes.at[id].kind == BYI_PARAM || replace_field(d, id))
            continue;
        if (revert)
            BYI_TRY(inline_region(d, id, revert));
        else
            BYI_TRY(byi_add_copy(d->m, d->new_func, d->f, id, d->map,
                                 &d->map[id], d->err));
    }
    d->new_func->result = d->map[d->f->result];
    byi_sweep(d->m, d->new_func, d->scratch); /* drops the results' tuples */
    byi_func_replace(d->m, func, d->new_func);
    return BYOC_OK;
}

static bool calls_reverted(const struct reverter *d)
{
    for (byi_id id = 0; id < d->f->nodes.n; id++)
        if (revert_of(d, id))
            return true;
    return false;
}

/* --- reverting ----------------------------------------------------------- */

static void note_revert(struct byi_ledger *ledger, const struct byi_module *m,
                        const struct byi_samples *samples,
                        const struct byi_revert *revert)
{
    const struct byi_func *f = m->funcs.at[revert->func];
    bool splits = false;
    for (byi_id id = 0; revert->nodes && id < f->nodes.n; id++)
        splits = splits || revert->nodes[id].region;
    byi_ledger_revert(ledger, m, samples, revert->func,
                      splits ? BYI_REASON_SPLIT : revert->reason,
                      revert->detail);
    for (byi_id id = 0; revert->nodes && id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_CALL && !revert->nodes[id].region)
            byi_ledger_note(ledger, f->nodes.at[id].sources, revert->reason,
                            f->attr.compiler, NULL, revert->nodes[id].detail);
}

enum byoc_status byi_revert_regions(struct byi_module *m,
                                    const struct byi_revert *list, uint32_t n,
                                    struct byi_pass_context *ctx,
                                    struct byoc_error *err)
{
    struct byi_ledger *ledger = byi_ledger_of(ctx);
    struct byi_arena *scratch = byi_arena_new();
    const uint32_t n_funcs = m->funcs.n;
    const struct byi_revert **decisions =
        byi_arena_calloc(scratch, n_funcs, sizeof(struct byi_revert *));
    const struct byi_samples *samples =
        ledger ? byi_samples_new(m, ctx, scratch) : NULL;
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < n; i++) {
        decisions[list[i].func] = &list[i];
        if (ledger)
            note_revert(ledger, m, samples, &list[i]);
    }
    for (uint32_t i = 0; i < n_funcs && status == BYOC_OK; i++) {
        struct reverter d = {.m = m,
                             .f = m->funcs.at[i],
                             .decisions = decisions,
                             .scratch = scratch,
                             .err = err};
        if (d.f->dead || byi_is_closed(d.f) || !calls_reverted(&d))
            continue;
        status = inline_regions(&d, i);
    }
    for (uint32_t i = 0; i < n; i++)
        m->funcs.at[list[i].func]->dead = true;
    if (status == BYOC_OK)
        status = byi_pass_partition_graph.run_module(m, ctx, scratch, err);
    byi_arena_free(&scratch);
    return status;
}

/* --- splitting ----------------------------------------------------------- */

/* In each try, the backend is to build a subregion. After this many, the rest
 * of a region is reverted. */
enum { MAX_TRIES = 128 };

/* The state of byi_split_region. */
struct splitter {
    struct byi_module *m;
    uint32_t func;
    byi_id *calls; /* of composites, in the region's order */
    uint32_t n;
    struct byi_build_check builds;
    struct byi_arena *scratch;
    struct byoc_error *err;
    uint32_t tries;
    uint32_t last_size; /* calls of the previous subregion         */
    const char *why;    /* reason of the last failed build   */
    enum byoc_status status;
};

/* Place calls first .. end-1 and their fields in subregion 1, the others on
 * native kernels. */
static struct byi_node_revert *place_calls(struct splitter *s, uint32_t first,
                                           uint32_t end)
{
    const struct byi_func *f = s->m->funcs.at[s->func];
    struct byi_node_revert *nodes =
        byi_arena_calloc(s->scratch, f->nodes.n, sizeof *nodes);
    for (uint32_t i = first; i < end; i++)
        nodes[s->calls[i]].region = 1;
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_GET)
            nodes[id].region = nodes[f->nodes.at[id].args[0]].region;
    return nodes;
}

/* Build a subregion as function *subregion, as PartitionGraph does, from a copy
 * of the region. */
static enum byoc_status build_subregion(struct splitter *s, uint32_t first,
                                        uint32_t end, uint32_t *subregion)
{
    const struct byi_func *f = s->m->funcs.at[s->func];
    const struct byi_node_revert *nodes = place_calls(s, first, end);
    byi_id *map = byi_arena_calloc(s->scratch, f->nodes.n, sizeof *map);
    uint32_t backend = 0;
    BYI_TRY(byi_backend_add(s->m, f->attr.compiler, &backend, s->err));
    const uint32_t copy = byi_func_new(s->m, NULL);
    struct byi_func *copied = s->m->funcs.at[copy];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_PARAM) {
            map[id] = byi_add_param(s->m, copied,
                                    f->param_names.at[node->index], node->type);
            continue;
        }
        BYI_TRY(byi_add_moved(s->m, copied, f, id, map, &map[id], s->err));
        byi_node_mark(&copied->nodes.at[map[id]],
                      nodes[id].region ? backend : 0, nodes[id].region);
    }
    copied->result = map[f->result];
    *subregion = s->m->funcs.n;
    BYI_TRY(byi_partition_function(s->m, copy, s->scratch, s->err));
    s->m->funcs.at[copy]->dead = true;
    return BYOC_OK;
}

/* Whether the backend can build calls first .. end-1 as one region. */
static bool can_build(struct splitter *s, uint32_t first, uint32_t end)
{
    uint32_t subregion;
    if (s->status != BYOC_OK)
        return false;
    if (s->tries++ == MAX_TRIES)
        s->why =
            "its region was tried in 128 subregions, and no more are tried";
    if (s->tries > MAX_TRIES)
        return false;
    const char *why = NULL;
    s->status = build_subregion(s, first, end, &subregion);
    if (s->status != BYOC_OK)
        return false;
    s->status = s->builds.ask(s->builds.ctx, s->m, subregion, &why, s->err);
    s->m->funcs.at[subregion]->dead = true;
    s->m->funcs.at[subregion]->name = NULL; /* discard it */
    s->why = why ? why : s->why;
    return s->status == BYOC_OK && !why;
}

/* Returns how many calls from `first` on can be built together. Backends with a
 * size limit refuse the same number repeatedly. So try the rest, then the size
 * of the last subregion, then one call more than that, then bisect. */
static uint32_t longest_buildable(struct splitter *s, uint32_t first)
{
    const uint32_t rest = s->n - first;
    const uint32_t guesses[] = {rest, s->last_size, s->last_size + 1};
    /* `buildable` calls can be built together, `too_many` cannot */
    uint32_t buildable = 0, too_many = rest + (first > 0);
    for (uint32_t i = 0; buildable + 1 < too_many && s->status == BYOC_OK;) {
        uint32_t size = buildable + (too_many - buildable) / 2;
        if (i < BYI_COUNT(guesses))
            size = guesses[i++];
        if (size <= buildable || size >= too_many)
            continue;
        if (can_build(s, first, first + size))
            buildable = size;
        else
            too_many = size;
    }
    return buildable;
}

static void list_calls(struct splitter *s)
{
    const struct byi_func *f = s->m->funcs.at[s->func];
    s->calls = byi_arena_calloc(s->scratch, f->nodes.n, sizeof *s->calls);
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_CALL)
            s->calls[s->n++] = id;
}

/* Place fields with their tuples, and add to the reason how many composites
 * stay. */
static void finish_split(struct splitter *s, struct byi_revert *revert,
                         uint32_t n_subregions, struct byi_node_revert *nodes)
{
    const struct byi_func *f = s->m->funcs.at[s->func];
    uint32_t stay = 0;
    for (uint32_t i = 0; i < s->n; i++)
        stay += nodes[s->calls[i]].region != 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_GET)
            nodes[id].region = nodes[f->nodes.at[id].args[0]].region;
    if (stay)
        revert->detail = byi_arena_printf(
            s->scratch, "%s; %u of its %u composites stay, in %u region%s",
            revert->detail, stay, s->n, n_subregions, byi_plural(n_subregions));
    revert->nodes = nodes;
}

enum byoc_status byi_split_region(struct byi_module *m,
                                  struct byi_build_check builds,
                                  struct byi_arena *arena,
                                  struct byi_revert *revert,
                                  struct byoc_error *err)
{
    struct splitter s = {.m = m,
                         .func = revert->func,
                         .builds = builds,
                         .scratch = arena,
                         .err = err};
    uint32_t n_subregions = 0;
    list_calls(&s);
    if (s.n < 2 || can_build(&s, 0, s.n))
        return s.status;
    struct byi_node_revert *nodes = byi_arena_calloc(
        arena, m->funcs.at[revert->func]->nodes.n, sizeof *nodes);
    for (uint32_t first = 0; first < s.n && s.status == BYOC_OK;) {
        const uint32_t size = longest_buildable(&s, first);
        for (uint32_t i = 0; i < size; i++)
            nodes[s.calls[first + i]].region = n_subregions + 1;
        if (!size)
            nodes[s.calls[first]].detail = s.why;
        n_subregions += size > 0;
        first += size ? size : 1;
        s.last_size = size;
    }
    finish_split(&s, revert, n_subregions, nodes);
    return s.status;
}
