/* SPDX-License-Identifier: Apache-2.0 */
/* plan_funcs.c: plans a module. It lists the functions, regions and constants
 * that the plan needs, and finds captures that are always the same function.
 * plan.c plans each function; plan_json.c prints the plan.
 */
#include "plan.h"

enum {
    /* A known function that is captured is passed as its own captures, up to
     * this number of values and this nesting depth. Otherwise it is passed as a
     * value. */
    MAX_LEAVES = 64,
    MAX_DEPTH = 16
};

uint32_t byi_plan_leaves(const struct byi_type *type)
{
    BYI_VEC(const struct byi_type *) work = {0};
    uint32_t n = 0;
    if (type->kind != BYI_TUPLE)
        return 1;
    BYI_PUSH(&work, type);
    while (work.n > 0) {
        const struct byi_type *t = work.at[--work.n];
        n += t->kind != BYI_TUPLE;
        for (uint32_t i = 0; t->kind == BYI_TUPLE && i < t->n_fields; i++)
            BYI_PUSH(&work, t->fields[i]);
    }
    byi_vec_free(work.at);
    return n;
}

uint32_t byi_plan_const(struct byi_planner *b, uint32_t constant)
{
    if (b->const_index[constant] == 0) {
        struct byi_placed_const p = {.constant = constant,
                                     .offset = b->plan->weights_bytes};
        byi_stored_find(&b->m->consts.at[constant], b->store, &p);
        b->plan->weights_bytes += byi_align_bytes(p.bytes);
        BYI_PUSH(&b->plan->consts, p);
        b->const_index[constant] = b->plan->consts.n;
    }
    return b->const_index[constant] - 1;
}

uint32_t byi_plan_func(struct byi_planner *b, uint32_t func)
{
    if (b->func_index[func] == 0) {
        BYI_PUSH(&b->order, func);
        b->func_index[func] = b->order.n;
    }
    return b->func_index[func] - 1;
}

/* --- known captures ------------------------------------------------------ */

/* The state of find_captures. */
struct capture_finder {
    struct byi_planner *b;
    /* for each function: number of FN nodes in other functions that refer to it
     */
    uint32_t *literals;
    bool *seen;
    BYI_VEC(uint32_t) pending;
};

/* 1 + the function that is the value of node `id` of function `func`; 0: not
 * known. */
static uint32_t known_node(const struct capture_finder *x, uint32_t func,
                           byi_id id)
{
    const struct byi_func *f = x->b->m->funcs.at[func];
    const struct byi_node *node = &f->nodes.at[id];
    const uint32_t *known = x->b->captures[func].known;
    uint32_t n_declared = f->params.n - f->n_captures;
    if (node->kind == BYI_GLOBAL || node->kind == BYI_FN)
        return 1 + node->index;
    if (node->kind == BYI_PARAM && node->index >= n_declared && known)
        return known[node->index - n_declared];
    return 0;
}

/* Record the captures of literal `fn` in function `func`. `only`: it is the
 * only literal of its function, which therefore always has these captures. */
static void record_captures(struct capture_finder *x, uint32_t func,
                            const struct byi_node *fn, bool only)
{
    struct byi_planned_captures *c = &x->b->captures[fn->index];
    uint32_t *known = byi_arena_calloc(x->b->arena, fn->n_args, sizeof *known);
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < fn->n_args; i++) {
        uint32_t known_func = only ? known_node(x, func, fn->args[i]) : 0;
        const struct byi_planned_captures *inner =
            known_func ? &x->b->captures[known_func - 1] : NULL;
        if (!inner || inner->leaves > MAX_LEAVES || inner->depth >= MAX_DEPTH) {
            const struct byi_func *f = x->b->m->funcs.at[func];
            leaves += byi_plan_leaves(f->nodes.at[fn->args[i]].type);
            continue;
        }
        known[i] = known_func;
        leaves += inner->leaves;
        c->depth = inner->depth + 1 > c->depth ? inner->depth + 1 : c->depth;
    }
    c->known = known;
    c->holder =
        x->b->m->funcs.at[func]->name ? func : x->b->captures[func].holder;
    c->leaves = leaves > MAX_LEAVES ? MAX_LEAVES + 1 : (uint32_t)leaves;
}

/* Record the captures of the literals in `func` that were not seen before. */
static void visit_literals(struct capture_finder *x, uint32_t func)
{
    const struct byi_func *f = x->b->m->funcs.at[func];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind != BYI_FN || node->index == func || x->seen[node->index])
            continue;
        x->seen[node->index] = true;
        record_captures(x, func, node, x->literals[node->index] == 1);
        BYI_PUSH(&x->pending, node->index);
    }
}

/* Fill in b->captures, outer functions first: the captures of a function must
 * be known before its own literals are visited. */
static void find_captures(struct byi_planner *b)
{
    const struct byi_module *m = b->m;
    struct capture_finder x = {.b = b};
    x.literals = byi_arena_calloc(b->arena, m->funcs.n, sizeof *x.literals);
    x.seen = byi_arena_calloc(b->arena, m->funcs.n, sizeof *x.seen);
    b->captures = byi_arena_calloc(b->arena, m->funcs.n, sizeof *b->captures);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; id < f->nodes.n && !f->dead; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind == BYI_FN && node->index == i)
                b->captures[i].is_recursive = true;
            else if (node->kind == BYI_FN)
                x.literals[node->index]++;
        }
        if (!f->dead)
            b->may_inline += 2 * (uint64_t)f->nodes.n;
    }
    b->may_inline += 65536;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->name)
            visit_literals(&x, i);
    while (x.pending.n > 0)
        visit_literals(&x, x.pending.at[--x.pending.n]);
    byi_vec_free(x.pending.at);
}

/* --- the plan ----------------------------------------------------------- */

/* Number the regions, and check that the caller gave as many. */
static enum byoc_status find_regions(struct byi_planner *b, uint32_t n_regions)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->m->funcs.n; i++)
        if (!b->m->funcs.at[i]->dead && b->m->funcs.at[i]->attr.compiler)
            b->region_of[i] = ++n;
    if (n != n_regions)
        return byi_fail(
            b->err, BYOC_EINVAL,
            "found %u compiled regions, expected %u, the regions of the module",
            n_regions, n);
    return BYOC_OK;
}

static void free_func(struct byi_planned_func *f)
{
    byi_vec_free(f->values.at);
    byi_vec_free(f->inputs.at);
    byi_vec_free(f->outputs.at);
    byi_vec_free(f->steps.at);
    byi_vec_free(f->flat.at);
    *f = (struct byi_planned_func){0};
}

/* Plan the functions in the order in which they are found to be needed, then
 * the twins of all regions and kernels. */
static enum byoc_status build_funcs(struct byi_planner *b, uint32_t entry)
{
    struct byi_text *json = &b->plan->json;
    byi_text_addf(json, "\"functions\": [");
    byi_plan_func(b, entry);
    for (uint32_t i = 0, twin = 0; i < b->order.n; i++) {
        b->out_index = i;
        BYI_TRY(byi_plan_body(b, b->order.at[i]));
        byi_text_addf(json, "%s\n", i ? "," : "");
        byi_plan_print_func(b->m, &b->out, json);
        free_func(&b->out);
        for (; i + 1 == b->order.n && twin < b->m->funcs.n; twin++)
            if (b->region_of[twin] || (b->code && b->code->kernel_of[twin]))
                byi_plan_func(b, twin);
    }
    byi_text_addf(json, "],\n");
    return BYOC_OK;
}

static void print_region(struct byi_planner *b, uint32_t func,
                         const struct byi_plan_region *region, uint64_t offset)
{
    bool first = b->region_of[func] == 1;
    struct byi_text *json = &b->plan->json;
    const struct byi_func *f = b->m->funcs.at[func];
    byi_text_addf(json, "%s\n{\"backend\": ", first ? "" : ",");
    byi_json_quote(json, f->attr.compiler);
    byi_text_addf(json, ", \"symbol\": ");
    byi_json_quote(json, f->name);
    if (region->code) {
        byi_text_addf(json, ", \"code\": ");
        byi_json_quote(json, region->code);
    }
    byi_text_addf(json, ", \"blob\": [%llu, %llu], \"twin\": %u, \"consts\": [",
                  (unsigned long long)offset,
                  (unsigned long long)region->blob_bytes,
                  byi_plan_func(b, func));
    for (uint32_t k = 0; k < region->n_consts; k++)
        byi_text_addf(json, "%s%u", k ? ", " : "",
                      byi_plan_const(b, region->consts[k]));
    byi_text_addf(json, "]}");
}

static void print_regions(struct byi_planner *b,
                          const struct byi_plan_region *regions)
{
    struct byi_text *json = &b->plan->json;
    uint64_t offset = 0;
    byi_text_addf(json, "\"regions\": [");
    for (uint32_t func = 0; func < b->m->funcs.n; func++) {
        if (!b->region_of[func])
            continue;
        const struct byi_plan_region *region = &regions[b->region_of[func] - 1];
        print_region(b, func, region, offset);
        offset += region->blob_bytes;
    }
    byi_text_addf(json, "],\n");
}

static void print_kernels(struct byi_planner *b)
{
    struct byi_text *json = &b->plan->json;
    byi_text_addf(json, "\"kernels\": [");
    for (uint32_t i = 0; i < b->code->n; i++) {
        byi_text_addf(json, "%s\n{\"symbol\": ", i ? "," : "");
        byi_json_quote(json, b->code->at[i].symbol);
        byi_text_addf(json, ", \"twin\": %u}",
                      byi_plan_func(b, b->code->at[i].func));
    }
    byi_text_addf(json, "],\n");
}

static enum byoc_status write_plan(struct byi_planner *b,
                                   const struct byi_plan_region *regions,
                                   uint32_t n_regions)
{
    uint32_t entry = byi_module_entry(b->m);
    if (entry == UINT32_MAX)
        return byi_fail(b->err, BYOC_EINVAL,
                        "the module: found no function @%s, expected the entry "
                        "function",
                        byi_module_entry_name(b->m));
    BYI_TRY(find_regions(b, n_regions));
    find_captures(b);
    byi_text_addf(&b->plan->json,
                  "{\"format\": \"byoc-plan\", \"version\": %d,\n",
                  BYI_PLAN_VERSION);
    BYI_TRY(build_funcs(b, entry));
    print_regions(b, regions);
    if (b->code)
        print_kernels(b);
    byi_plan_print_consts(b->m, b->plan, &b->plan->json);
    if (b->exact)
        byi_text_put(&b->plan->json, ",\n\"exact\": true");
    byi_text_addf(&b->plan->json, "}\n");
    return BYOC_OK;
}

enum byoc_status byi_plan_write(const struct byi_module *m,
                                const struct byi_plan_params *params,
                                struct byi_plan *plan, struct byoc_error *err)
{
    const struct byi_plan_params none = {0};
    params = params ? params : &none;
    *plan = (struct byi_plan){0};
    struct byi_planner b = {.m = m,
                            .arena = byi_arena_new(),
                            .err = err,
                            .plan = plan,
                            .code = params->code,
                            .exact = params->exact,
                            .store = params->store};
    const uint32_t n_consts = m->consts.n + 1, n_funcs = m->funcs.n + 1;
    b.const_index = byi_arena_calloc(b.arena, n_consts, sizeof(uint32_t));
    b.const_at = byi_arena_calloc(b.arena, n_consts, sizeof(uint32_t));
    b.const_seen = byi_arena_calloc(b.arena, n_consts, sizeof(uint32_t));
    b.func_index = byi_arena_calloc(b.arena, n_funcs, sizeof(uint32_t));
    b.region_of = byi_arena_calloc(b.arena, n_funcs, sizeof(uint32_t));
    enum byoc_status status =
        write_plan(&b, params->regions, params->n_regions);
    if (status != BYOC_OK)
        byi_plan_free(plan);
    free_func(&b.out);
    byi_vec_free(b.order.at);
    byi_vec_free(b.stack.at);
    byi_vec_free(b.types.at);
    byi_arena_free(&b.arena);
    return status;
}

void byi_plan_free(struct byi_plan *plan)
{
    byi_text_free(&plan->json);
    byi_vec_free(plan->consts.at);
    *plan = (struct byi_plan){0};
}

const struct byi_weights_span *byi_plan_spans(const struct byi_module *m,
                                              const struct byi_plan *plan,
                                              struct byi_arena *arena)
{
    struct byi_weights_span *spans =
        byi_arena_calloc(arena, plan->consts.n + 1, sizeof *spans);
    for (uint32_t i = 0; i < plan->consts.n; i++) {
        const struct byi_placed_const *p = &plan->consts.at[i];
        spans[i] = (struct byi_weights_span){
            .data = byi_stored_data(&m->consts.at[p->constant], p, arena),
            .bytes = p->bytes,
            .offset = p->offset,
        };
    }
    return spans;
}
