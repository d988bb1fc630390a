/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c: records for every model node where it runs, and why: from the
 * attempts that passes note, and from the final module.
 */
#include "ledger_internal.h"
#include "core/base/guard.h"
#include "core/ir/samples.h"

#include <string.h>

/* The rows of reasons.def. */
static const struct {
    const char *code, *text;
} reasons[BYI_N_REASONS] = {
#define REASON(id, code, text) [BYI_REASON_##id] = {code, text},
#include "reasons.def"
#undef REASON
};

const char *byi_reason_code(enum byi_reason reason)
{
    return reasons[reason].code;
}

const char *byi_reason_text(enum byi_reason reason)
{
    return reasons[reason].text;
}

/* The stages of an attempt, in order. Reasons that are not listed, such as
 * limits and user options, apply to nodes that passed all stages. */
static const enum byi_reason stages[] = {
    BYI_REASON_NO_BACKEND, BYI_REASON_BACKEND_FAILED,
    BYI_REASON_WRITES_C,   BYI_REASON_OTHER_MACHINE,
    BYI_REASON_NO_PATTERN, BYI_REASON_PATTERN_MISMATCH,
    BYI_REASON_NOT_CLOSED, BYI_REASON_DYNAMIC,
    BYI_REASON_PREDICATE,  BYI_REASON_PROBE,
    BYI_REASON_REFERENCE,
};

uint32_t byi_reason_stage(enum byi_reason reason)
{
    uint32_t i = 0;
    while (i < BYI_COUNT(stages) && stages[i] != reason)
        i++;
    return i;
}

const struct byi_context_key byi_ledger_key = {"ledger"};

struct byi_ledger *byi_ledger_new(void)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_ledger *ledger = byi_arena_alloc(arena, sizeof *ledger);
    ledger->arena = arena;
    return ledger;
}

void byi_ledger_free(struct byi_ledger **ledger)
{
    if (!*ledger)
        return;
    struct byi_ledger *l = *ledger;
    byi_vec_free(l->texts.list.at);
    byi_index_free(&l->texts.index);
    byi_vec_free(l->attempts.at);
    byi_vec_free(l->entries.at);
    byi_vec_free(l->regions.at);
    byi_vec_free(l->gates.at);
    byi_vec_free(l->weights.at);
    struct byi_arena *arena = l->arena;
    *ledger = NULL;
    byi_arena_free(&arena);
}

/* --- interned strings ----------------------------------------------------- */

static struct byi_interned_text *intern_text(struct byi_ledger *l,
                                             const char *text)
{
    struct byi_texts *t = &l->texts;
    const uint64_t hash = byi_hash_text(text);
    BYI_INDEX_EACH (&t->index, hash, i)
        if (strcmp(t->list.at[i].text, text) == 0)
            return &t->list.at[i];
    byi_index_add(&t->index, hash, t->list.n);
    BYI_PUSH(&t->list, ((struct byi_interned_text){
                           .text = byi_arena_str(l->arena, text)}));
    return &t->list.at[t->list.n - 1];
}

const char *byi_ledger_intern(struct byi_ledger *l, const char *text)
{
    return text ? intern_text(l, text)->text : NULL;
}

struct byi_times *byi_ledger_times_of(struct byi_ledger *ledger,
                                      const char *region)
{
    return &intern_text(ledger, region)->times;
}

/* --- opening -------------------------------------------------------------- */

void byi_ledger_set_facts(struct byi_ledger *l,
                          const struct byi_ledger_facts *facts)
{
    struct byi_ledger_backend *backends =
        byi_arena_calloc(l->arena, facts->n_backends, sizeof *backends);
    for (uint32_t i = 0; i < facts->n_backends; i++)
        backends[i] = (struct byi_ledger_backend){
            .name = byi_ledger_intern(l, facts->backends[i].name),
            .version = byi_ledger_intern(l, facts->backends[i].version)};
    l->facts =
        (struct byi_ledger_facts){.model = byi_ledger_intern(l, facts->model),
                                  .cpu = byi_ledger_intern(l, facts->cpu),
                                  .native = byi_ledger_intern(l, facts->native),
                                  .threads = facts->threads,
                                  .n_backends = facts->n_backends,
                                  .backends = backends};
}

/* --- noting --------------------------------------------------------------- */

struct byi_ledger_entry *byi_ledger_entry_of(struct byi_ledger *l,
                                             uint32_t source)
{
    const struct byi_ledger_entry new_entry = {.where = BYI_REASON_REMOVED};
    while (l->entries.n <= source)
        BYI_PUSH(&l->entries, new_entry);
    return &l->entries.at[source];
}

/* Append the attempt to the entry's list, unless the list has an equal one. */
static void add_attempt(struct byi_ledger *l, struct byi_ledger_entry *e,
                        const struct byi_attempt *attempt)
{
    for (uint32_t i = e->first; i; i = l->attempts.at[i - 1].next) {
        const struct byi_attempt *a = &l->attempts.at[i - 1];
        if (a->reason == attempt->reason && a->backend == attempt->backend &&
            a->pattern == attempt->pattern && a->detail == attempt->detail)
            return;
    }
    BYI_PUSH(&l->attempts, *attempt);
    if (e->last)
        l->attempts.at[e->last - 1].next = l->attempts.n;
    else
        e->first = l->attempts.n;
    e->last = l->attempts.n;
}

void byi_ledger_note(struct byi_ledger *ledger, const struct byi_sources *s,
                     enum byi_reason reason, const char *backend,
                     const char *pattern, const char *detail)
{
    const struct byi_attempt attempt = {
        .reason = reason,
        .backend = byi_ledger_intern(ledger, backend),
        .pattern = byi_ledger_intern(ledger, pattern),
        .detail = byi_ledger_intern(ledger, detail)};
    for (uint32_t i = 0; i < s->n; i++)
        add_attempt(ledger, byi_ledger_entry_of(ledger, s->at[i]), &attempt);
}

void byi_ledger_set_impl(struct byi_ledger *ledger, const struct byi_sources *s,
                         const char *impl)
{
    impl = byi_ledger_intern(ledger, impl);
    for (uint32_t i = 0; i < s->n; i++)
        byi_ledger_entry_of(ledger, s->at[i])->impl = impl;
}

void byi_ledger_add_region(struct byi_ledger *ledger,
                           const struct byi_ledger_region *r)
{
    const struct byi_region_entry entry = {
        .name = byi_ledger_intern(ledger, r->name),
        .backend = byi_ledger_intern(ledger, r->backend),
        .reason = r->reason,
        .detail = byi_ledger_intern(ledger, r->detail),
        .n_nodes = r->sources->n,
        .nodes = byi_arena_copy(ledger->arena, r->sources->at,
                                r->sources->n * sizeof *r->sources->at),
        .flops = r->flops,
        .n_inputs = r->n_inputs,
        .n_outputs = r->n_outputs};
    BYI_PUSH(&ledger->regions, entry);
    byi_ledger_note(ledger, r->sources, r->reason, r->backend, NULL, r->detail);
}

static uint32_t count_outputs(const struct byi_func *f)
{
    const struct byi_type *type = f->nodes.at[f->result].type;
    return type->kind == BYI_TUPLE ? type->n_fields : 1;
}

void byi_ledger_revert(struct byi_ledger *ledger, const struct byi_module *m,
                       const struct byi_samples *samples, uint32_t func,
                       enum byi_reason reason, const char *detail)
{
    const struct byi_func *f = m->funcs.at[func];
    BYI_VEC(uint32_t) list = {0};
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 0; node->kind == BYI_CALL && i < node->sources->n;
             i++)
            BYI_PUSH(&list, node->sources->at[i]);
    }
    const struct byi_sources sources = {.n = byi_ids_sort(list.at, list.n),
                                        .at = list.at};
    const struct byi_ledger_region region = {
        .name = f->name,
        .backend = f->attr.compiler,
        .reason = reason,
        .detail = detail,
        .sources = &sources,
        .flops = byi_func_flops(m, samples, func),
        .n_inputs = f->params.n,
        .n_outputs = count_outputs(f)};
    byi_ledger_add_region(ledger, &region);
    byi_vec_free(list.at);
}

void byi_ledger_set_region_times(struct byi_ledger *ledger, const char *region,
                                 double backend_us, double native_us)
{
    *byi_ledger_times_of(ledger, region) =
        (struct byi_times){.backend = backend_us, .native = native_us};
}

void byi_ledger_set_node_times(struct byi_ledger *ledger,
                               const struct byi_sources *s, double backend_us,
                               double native_us)
{
    for (uint32_t i = 0; i < s->n; i++)
        byi_ledger_entry_of(ledger, s->at[i])->times = (struct byi_times){
            .backend = backend_us / s->n, .native = native_us / s->n};
}

/* --- closing -------------------------------------------------------------- */

/* The placement of the IR node that is being read. */
struct node_place {
    enum byi_reason where;
    uint32_t region; /* 1 + index */
    const char *pattern;
};

/* An operator ranks above a constant, an offloaded operator above a native one.
 * A model node that was split is placed where its highest-ranking part is. */
static int rank_of(enum byi_reason where)
{
    switch (where) {
    case BYI_REASON_OFFLOADED:
        return 3;
    case BYI_REASON_NATIVE:
        return 2;
    case BYI_REASON_FOLDED:
        return 1;
    default:
        return 0;
    }
}

/* A Constant node of the model never runs, wherever its value is used. */
static bool is_constant(const struct byi_ledger *l, uint32_t source)
{
    return strcmp(l->sources[source].op, "Constant") == 0;
}

static uint32_t count_operators(const struct byi_ledger *l,
                                const struct byi_sources *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += !is_constant(l, s->at[i]);
    return n;
}

/* Place the model nodes `s` of one IR node, which share its `flops`. Among
 * other operators, Constant nodes count as folded. */
static void place_nodes(struct byi_ledger *l, const struct byi_sources *s,
                        const struct node_place *place, double flops)
{
    const struct node_place folded = {.where = BYI_REASON_FOLDED};
    const uint32_t operators = count_operators(l, s);
    for (uint32_t i = 0; i < s->n; i++) {
        struct byi_ledger_entry *e = byi_ledger_entry_of(l, s->at[i]);
        const bool is_folded = operators > 0 && is_constant(l, s->at[i]);
        const struct node_place *to = is_folded ? &folded : place;
        e->flops += is_folded ? 0 : flops / (operators ? operators : s->n);
        if (rank_of(to->where) <= rank_of(e->where))
            continue;
        e->where = to->where;
        e->region = to->region;
        e->pattern = to->pattern;
    }
}

/* The type of a value, with the last valid sample sizes of symbolic dims if
 * `samples` has them. */
static const struct byi_type *type_of(const struct byi_module *m,
                                      const struct byi_samples *samples,
                                      uint32_t func, byi_id id)
{
    const struct byi_type *type = m->funcs.at[func]->nodes.at[id].type;
    const struct byi_type *sample =
        byi_type_has_static_sizes(type)
            ? NULL
            : byi_sample_last_type(samples, func, id);
    return sample ? sample : type;
}

/* The floating-point operations of a call; byi_op_flops reads only the first
 * few operands. */
static double node_flops(const struct byi_module *m,
                         const struct byi_samples *samples, uint32_t func,
                         byi_id id)
{
    const struct byi_node *node = &m->funcs.at[func]->nodes.at[id];
    const struct byi_type *in[16];
    uint32_t n = node->n_args < BYI_COUNT(in) ? node->n_args : BYI_COUNT(in);
    for (uint32_t i = 0; i < n; i++)
        in[i] = type_of(m, samples, func, node->args[i]);
    return byi_op_flops(byi_op(node->op), node->attrs, in,
                        type_of(m, samples, func, id));
}

/* The composite that the node refers to; NULL for other nodes. */
static const struct byi_func *composite_at(const struct byi_module *m,
                                           const struct byi_node *node)
{
    const struct byi_func *body =
        node->kind == BYI_FN ? m->funcs.at[node->index] : NULL;
    return body && body->attr.composite ? body : NULL;
}

/* Whether the node is a branch in a composite, which is part of the composite.
 */
static bool is_inner(const struct byi_module *m, const struct byi_node *node)
{
    return node->kind == BYI_FN && m->funcs.at[node->index]->attr.inner;
}

/* Recurses as deep as branches nest in composites. */
double byi_func_flops(const struct byi_module *m,
                      const struct byi_samples *samples, uint32_t func)
{
    const struct byi_func *f = m->funcs.at[func];
    double flops = 0;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const struct byi_func *body = composite_at(m, node);
        if (node->kind == BYI_CALL_OP)
            flops += node_flops(m, samples, func, id);
        else if (body || is_inner(m, node))
            flops += byi_func_flops(m, samples, node->index);
    }
    return flops;
}

/* The final module, with sizes for its symbolic dims, and the ledger to fill.
 */
struct module_reader {
    struct byi_ledger *l;
    const struct byi_module *m;
    const struct byi_samples *samples;
};

/* Place the model nodes of a function, without its composites, and add their
 * work to the totals. Recurses into branches. */
static void read_function(const struct module_reader *r, uint32_t func,
                          const struct node_place *place)
{
    const struct node_place folded = {.where = BYI_REASON_FOLDED};
    const struct byi_func *f = r->m->funcs.at[func];
    struct byi_ledger *l = r->l;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_CONST)
            place_nodes(l, node->sources, &folded, 0);
        if (node->kind == BYI_IF && place->region)
            place_nodes(l, node->sources, place, 0);
        if (is_inner(r->m, node))
            read_function(r, node->index, place);
        if (node->kind != BYI_CALL_OP)
            continue;
        double flops = node_flops(r->m, r->samples, func, id);
        place_nodes(l, node->sources, place, flops);
        l->coverage.flops += flops;
        if (!place->region)
            continue;
        l->coverage.flops_offloaded += flops;
        l->regions.at[place->region - 1].flops += flops;
    }
}

/* Read the composites of `f`, which is region number `region`, counted from 1;
 * 0: f is a native function, whose composites are in no region. */
static void read_composites(const struct module_reader *r,
                            const struct byi_func *f, uint32_t region)
{
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const struct byi_func *body = composite_at(r->m, node);
        if (!body)
            continue;
        const struct node_place offloaded = {.where = BYI_REASON_OFFLOADED,
                                             .region = region,
                                             .pattern = body->attr.composite};
        const struct node_place native = {.where = BYI_REASON_NATIVE};
        read_function(r, node->index, region ? &offloaded : &native);
    }
}

/* Add an entry for the kept region `f`. Returns 1 + its index. */
static uint32_t add_region(struct byi_ledger *l, const struct byi_func *f)
{
    const struct byi_region_entry entry = {
        .name = byi_ledger_intern(l, f->name),
        .backend = byi_ledger_intern(l, f->attr.compiler),
        .kept = true,
        .n_inputs = f->params.n,
        .n_outputs = count_outputs(f)};
    BYI_PUSH(&l->regions, entry);
    l->coverage.regions++;
    return l->regions.n;
}

static void count_entry(struct byi_ledger *l, const struct byi_ledger_entry *e)
{
    struct byi_coverage *c = &l->coverage;
    c->offloaded += e->where == BYI_REASON_OFFLOADED;
    c->native += e->where == BYI_REASON_NATIVE;
    c->folded += e->where == BYI_REASON_FOLDED;
    c->removed += e->where == BYI_REASON_REMOVED;
    if (e->region)
        l->regions.at[e->region - 1].n_nodes++;
}

/* List the nodes of each kept region in order. */
static void list_nodes(struct byi_ledger *l)
{
    uint32_t **next = byi_arena_calloc(l->arena, l->regions.n, sizeof *next);
    for (uint32_t i = 0; i < l->regions.n; i++) {
        struct byi_region_entry *r = &l->regions.at[i];
        if (r->kept)
            r->nodes = next[i] =
                byi_arena_calloc(l->arena, r->n_nodes, sizeof **next);
    }
    for (uint32_t i = 0; i < l->coverage.nodes; i++)
        if (l->entries.at[i].region)
            *next[l->entries.at[i].region - 1]++ = i;
}

void byi_ledger_close(struct byi_ledger *l, const struct byi_module *m,
                      const struct byi_samples *samples)
{
    const struct module_reader r = {l, m, samples};
    const struct node_place native = {.where = BYI_REASON_NATIVE};
    l->coverage = (struct byi_coverage){
        .nodes = m->sources.n,
        .sizes = byi_ledger_intern(l, byi_sample_sizes(samples))};
    l->sources = byi_arena_copy(l->arena, m->sources.at,
                                m->sources.n * sizeof *m->sources.at);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        if (f->dead || f->attr.composite || f->attr.inner)
            continue;
        const uint32_t region = f->attr.compiler ? add_region(l, f) : 0;
        read_function(&r, i, &native);
        read_composites(&r, f, region);
    }
    for (uint32_t i = 0; i < m->sources.n; i++)
        count_entry(l, byi_ledger_entry_of(l, i));
    list_nodes(l);
}

uint32_t byi_coverage_operators(const struct byi_coverage *coverage)
{
    return coverage->offloaded + coverage->native;
}

const struct byi_coverage *byi_ledger_coverage(const struct byi_ledger *ledger)
{
    return &ledger->coverage;
}

void byi_ledger_set_measured(struct byi_ledger *ledger,
                             const struct byi_placement_times *measured)
{
    ledger->measured = *measured;
}

void byi_ledger_add_weight(struct byi_ledger *ledger,
                           const struct byi_ledger_weight *weight)
{
    BYI_PUSH(&ledger->weights, *weight);
}

void byi_ledger_set_precision(struct byi_ledger *ledger,
                              const struct byi_ledger_precision *precision)
{
    ledger->precision = *precision;
}

void byi_ledger_add_gate(struct byi_ledger *ledger, const struct byi_gate *gate)
{
    BYI_PUSH(&ledger->gates, *gate);
}
