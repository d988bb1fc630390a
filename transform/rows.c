/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: applies rewriting rules that are rows: finds their patterns with the
 * matcher of patterns/ and emits their replacements.
 */
#include "rows.h"

#include <assert.h>
#include <stdatomic.h>

#include "core/base/guard.h"
#include "core/ir/template.h"

/* The rows of a pass, with their patterns. The rows that can apply to a node of
 * kind k are by_root[first[k]] .. by_root[first[k + 1] - 1]. */
struct byi_compiled_rows {
    struct byi_arena *arena; /* owns the members below */
    const struct byi_row *rows;
    const struct byi_pattern **patterns; /* of each row; NULL: it is a rule */
    /* of each row: whether a name in its pattern implies a value (zero, one) */
    bool *implies_values;
    uint32_t n; /* rows */
    uint32_t first[BYI_N_ROOTS + 1];
    const uint32_t *by_root;
};

/* The state of a pass of rows for one function. */
struct rows_run {
    const struct byi_compiled_rows *table;
    uint64_t *budgets; /* for each row: the goals left to the matcher */
};

/* The match of a row at a node, and the replacement when one was emitted. */
struct row_try {
    struct byi_row_match match;
    const struct byi_row *row;
    bool implies_values; /* as in byi_compiled_rows */
    byi_id out;
};

/* --- for conditions ------------------------------------------------------- */

byi_id byi_row_value(const struct byi_row_match *r, const char *name)
{
    for (uint32_t i = 0; i < r->match->n_bound; i++)
        if (strcmp(r->match->bound[i].name, name) == 0)
            return r->match->bound[i].value;
    for (uint32_t i = 0; i < r->match->n_named; i++)
        if (strcmp(r->match->named[i].name, name) == 0)
            return r->match->named[i].value;
    return BYI_NO_ID;
}

const struct byi_node *byi_row_node(const struct byi_row_match *r,
                                    const char *name)
{
    return byi_rw_node(r->rw, byi_row_value(r, name));
}

bool byi_row_is_of_floats(struct byi_row_match *r)
{
    return byi_rw_is_float(r->rw, r->root);
}

bool byi_row_bind(struct byi_row_match *r, const char *name, byi_id value)
{
    assert(r->n_values < BYI_COUNT(r->values));
    r->values[r->n_values++] = (struct byi_bound_operand){name, value};
    return value != BYI_NO_ID;
}

bool byi_row_bind_attr(struct byi_row_match *r, struct byi_attr attr)
{
    assert(r->n_attrs < BYI_COUNT(r->attrs));
    r->attrs[r->n_attrs++] = attr;
    return true;
}

bool byi_row_bind_int(struct byi_row_match *r, const char *name, int64_t i)
{
    return byi_row_bind_attr(
        r, (struct byi_attr){.name = name, .kind = BYI_ATTR_INT, .i = i});
}

bool byi_row_bind_float(struct byi_row_match *r, const char *name, double f)
{
    return byi_row_bind_attr(
        r, (struct byi_attr){.name = name, .kind = BYI_ATTR_FLOAT, .f = f});
}

bool byi_row_bind_ints(struct byi_row_match *r, const char *name,
                       const int64_t *values, uint32_t n)
{
    const int64_t *copy =
        byi_arena_copy(r->rw->scratch, values, n * sizeof *values);
    return byi_row_bind_attr(
        r, (struct byi_attr){
               .name = name, .kind = BYI_ATTR_INTS, .n = n, .ints = copy});
}

/* --- matching ------------------------------------------------------------- */

/* Whether all elements of the constant equal `value`; it may be empty. */
static bool has_only(const struct byi_rewrite *rw, byi_id id, double value)
{
    struct byi_tensor t;
    return byi_rw_is_value(rw, id, value) ||
           (byi_rw_view(rw, id, &t) && byi_elements(t.rank, t.dims) == 0);
}

/* Returns the value that a constant with this name must have, or NULL if it may
 * have any value. Digits at the end of the name do not matter. */
static const double *value_of_name(const char *name)
{
    static const struct {
        const char *name;
        double value;
    } values[] = {{"zero", 0.0},
                  {"one", 1.0},
                  {"two", 2.0},
                  {"half", 0.5},
                  {"minus_half", -0.5}};
    const size_t n = strcspn(name, "0123456789");
    for (size_t i = 0; i < BYI_COUNT(values); i++)
        if (strlen(values[i].name) == n && memcmp(name, values[i].name, n) == 0)
            return &values[i].value;
    return NULL;
}

static bool has_named_values(const struct byi_row_match *r)
{
    for (uint32_t i = 0; i < r->match->n_bound; i++) {
        const double *value = value_of_name(r->match->bound[i].name);
        if (value && !has_only(r->rw, r->match->bound[i].value, *value))
            return false;
    }
    return true;
}

/* --- emitting ------------------------------------------------------------- */

static byi_id emit_call(void *rw, enum byi_op_id op, const byi_id *args,
                        uint32_t n, const struct byi_attr *attrs,
                        uint32_t n_attrs)
{
    return byi_rw_call(rw, op, args, n, attrs, n_attrs);
}

/* Emit the row's template. Returns its result, or BYI_NO_ID if that fails. */
static byi_id emit_template(const struct row_try *t)
{
    const struct byi_row_match *r = &t->match;
    const struct byi_match *match = r->match;
    const struct byi_emitter to = {
        .ctx = r->rw, .m = r->rw->m, .f = r->rw->f, .call = emit_call};
    const struct byi_node root = *byi_rw_node(r->rw, r->root);
    const char *names[BYI_MATCH_MAX_OPERANDS + BYI_MATCH_MAX_OPS +
                      BYI_COUNT(r->values)];
    byi_id values[BYI_COUNT(names)], out;
    uint32_t n = 0;
    struct byoc_error err;
    for (uint32_t i = 0; i < match->n_bound; i++, n++) {
        names[n] = match->bound[i].name;
        values[n] = match->bound[i].value;
    }
    for (uint32_t i = 0; i < match->n_named; i++, n++) {
        names[n] = match->named[i].name;
        values[n] = match->named[i].value;
    }
    for (uint32_t i = 0; i < r->n_values; i++, n++) {
        names[n] = r->values[i].name;
        values[n] = r->values[i].value;
    }
    const struct byi_template_inputs inputs = {.names = names,
                                               .values = values,
                                               .n_values = n,
                                               .n_attrs = r->n_attrs,
                                               .attrs = r->attrs,
                                               .again = &root};
    return byi_template(&to, t->row->to, &inputs, r->rw->scratch, 1, &out,
                        &err) == BYOC_OK
               ? out
               : BYI_NO_ID;
}

/* Where a replacement was emitted: the next node and the next symbol. */
struct emission {
    byi_id node;
    int64_t symbol;
};

static struct emission next_emission(const struct byi_rewrite *rw)
{
    return (struct emission){rw->f->nodes.n, -1 - (int64_t)rw->m->symbols.n};
}

/* Give the nodes emitted up to `out` the symbols of `type` in place of those
 * that the inference created for them. */
static void rename_symbols(struct byi_rewrite *rw, const struct byi_type *type,
                           byi_id out, const struct emission *from)
{
    const struct byi_type *inferred = byi_rw_node(rw, out)->type;
    for (byi_id id = from->node; id <= out; id++) {
        const struct byi_type *old = byi_rw_node(rw, id)->type;
        int64_t dims[BYI_MAX_RANK];
        if (old->kind != BYI_TENSOR)
            continue;
        for (uint32_t i = 0; i < old->rank; i++) {
            dims[i] = old->dims[i];
            for (uint32_t k = 0; k < type->rank && dims[i] <= from->symbol; k++)
                if (inferred->dims[k] == dims[i])
                    dims[i] = type->dims[k];
        }
        if (!byi_dims_equal(old->rank, dims, old->rank, old->dims))
            rw->f->nodes.at[id].type =
                byi_type_tensor(rw->m->arena, old->dtype, old->rank, dims);
    }
}

/* Whether `out` has the type of `at`, or can get it. */
static bool may_replace(struct byi_rewrite *rw, byi_id at, byi_id out,
                        const struct emission *from)
{
    if (out == BYI_NO_ID || out == at)
        return false;
    const struct byi_type *type = byi_rw_node(rw, at)->type;
    const struct byi_type *found = byi_rw_node(rw, out)->type;
    if (byi_type_equal(type, found))
        return true;
    if (type->kind != BYI_TENSOR || out < from->node ||
        !byi_type_fits(type, found, from->symbol))
        return false;
    rename_symbols(rw, type, out, from);
    return true;
}

static bool try_match(const struct byi_match *match, void *ctx)
{
    struct row_try *t = ctx;
    struct byi_rewrite *rw = t->match.rw;
    const struct emission before = next_emission(rw);
    t->match.match = match;
    t->match.n_attrs = t->match.n_values = 0;
    if ((!t->implies_values || has_named_values(&t->match)) &&
        (t->row->shared ||
         byi_rw_has_only_inner_readers(rw, match->root, match->ops,
                                       match->n_ops - 1)) &&
        (!t->row->when || t->row->when(&t->match))) {
        t->out = emit_template(t);
        if (may_replace(rw, match->root, t->out, &before))
            return true;
    }
    byi_rw_undo(rw, before.node);
    return false;
}

/* --- the rule ------------------------------------------------------------- */

static bool try_row(struct row_try *t, const struct byi_pattern *pattern,
                    uint64_t *budget)
{
    struct byi_rewrite *rw = t->match.rw;
    const struct emission before = next_emission(rw);
    const byi_id at = t->match.root;
    uint32_t tried;
    if (pattern)
        return byi_match(rw->m, rw->f, pattern, at, NULL, budget, try_match, t,
                         &tried);
    t->out = t->row->apply(rw, at);
    if (may_replace(rw, at, t->out, &before))
        return true;
    byi_rw_undo(rw, before.node);
    return false;
}

static byi_id apply_rows(struct byi_rewrite *rw, byi_id at)
{
    const struct rows_run *run = rw->state;
    const struct byi_compiled_rows *table = run->table;
    const uint32_t root = byi_root_of(byi_rw_node(rw, at));
    for (uint32_t i = table->first[root]; i < table->first[root + 1]; i++) {
        const uint32_t row = table->by_root[i];
        struct row_try t;
        t.match.rw = rw;
        t.match.root = at;
        t.row = &table->rows[row];
        t.implies_values = table->implies_values[row];
        if (try_row(&t, table->patterns[row], &run->budgets[row]))
            return t.out;
    }
    return BYI_NO_ID;
}

enum byoc_status byi_rows_run(struct byi_module *m, uint32_t func,
                              struct byi_pass_context *ctx,
                              struct byi_arena *scratch, struct byoc_error *err)
{
    static const struct byi_rule rule = {BYI_OP_NONE, apply_rows};
    const struct byi_compiled_rows *table = ctx->prepared;
    struct rows_run run = {.table = table};
    run.budgets = byi_arena_calloc(scratch, table->n + 1, sizeof *run.budgets);
    for (uint32_t i = 0; i < table->n; i++)
        run.budgets[i] = byi_match_budget(m->funcs.at[func]);
    return byi_rewrite(m, func, &rule, 1, ctx, scratch, &run, err);
}

/* --- compiling ------------------------------------------------------------ */

/* List the rows by the kinds of their roots. */
static void list_by_root(struct byi_compiled_rows *table,
                         struct byi_arena *arena)
{
    uint32_t n = 0;
    uint32_t *at =
        byi_arena_calloc(arena, (size_t)table->n * BYI_N_ROOTS + 1, sizeof *at);
    for (uint32_t root = 0; root < BYI_N_ROOTS; root++) {
        table->first[root] = n;
        for (uint32_t i = 0; i < table->n; i++)
            if (table->patterns[i] ? table->patterns[i]->roots[root]
                                   : table->rows[i].root == root)
                at[n++] = i;
    }
    table->first[BYI_N_ROOTS] = n;
    table->by_root = at;
}

static bool implies_values(const struct byi_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->n_names; i++)
        if (value_of_name(pattern->names[i]))
            return true;
    return false;
}

static enum byoc_status compile_rows(const struct byi_row_table *source,
                                     struct byi_arena *arena,
                                     struct byi_compiled_rows **rows,
                                     struct byoc_error *err)
{
    struct byi_pattern_table *compiled;
    struct byi_compiled_rows *table = byi_arena_alloc(arena, sizeof *table);
    struct byoc_pattern *patterns =
        byi_arena_calloc(arena, source->n + 1, sizeof *patterns);
    uint32_t n = 0;
    for (uint32_t i = 0; i < source->n; i++)
        if (source->rows[i].pattern)
            patterns[n++] = (struct byoc_pattern){
                .name = byi_arena_printf(arena, "rules.row%u", i),
                .pattern = source->rows[i].pattern};
    BYI_TRY(byi_patterns_compile_in(arena, patterns, n, &compiled, err));
    table->rows = source->rows;
    table->n = source->n;
    table->patterns =
        byi_arena_calloc(arena, source->n + 1, sizeof *table->patterns);
    table->implies_values =
        byi_arena_calloc(arena, source->n + 1, sizeof *table->implies_values);
    n = 0;
    for (uint32_t i = 0; i < source->n; i++) {
        if (!source->rows[i].pattern)
            continue;
        table->patterns[i] = &compiled->at[n++];
        table->implies_values[i] = implies_values(table->patterns[i]);
    }
    list_by_root(table, arena);
    table->arena = arena;
    *rows = table;
    return BYOC_OK;
}

/* Threads that run the pass for the first time at the same time may each
 * compile the rows; the first to finish keeps its copy. If an allocation fails,
 * the guard frees the arena, and the next run compiles the rows. */
enum byoc_status byi_rows_prepare(const struct byi_pass *pass,
                                  const void **prepared, struct byoc_error *err)
{
    const struct byi_row_table *source = pass->data;
    const struct byi_compiled_rows *compiled =
        atomic_load_explicit(source->compiled, memory_order_acquire);
    if (!compiled) {
        struct byi_arena *arena = byi_arena_new();
        struct byi_compiled_rows *rows = NULL;
        const enum byoc_status status = compile_rows(source, arena, &rows, err);
        if (status == BYOC_OK &&
            atomic_compare_exchange_strong(source->compiled, &compiled, rows)) {
            compiled = rows;
            byi_keep(arena); /* until the process ends */
        } else {
            byi_arena_free(&arena);
        }
        BYI_TRY(status);
    }
    *prepared = compiled;
    return BYOC_OK;
}
