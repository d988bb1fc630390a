/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: applies rewriting rules that are rows: finds their patterns with the
 * matcher of patterns/ and emits their replacements.
 */
#include "rows.h"

#include "core/ir/template.h"

struct row_table {
    const struct byi_row *rows;
    struct byi_pattern_table *patterns;
    uint64_t steps;
};

/* The match of a row at a node, and the replacement when one was emitted. */
struct row_try {
    struct byi_row_match match;
    const struct byi_row *row;
    byi_id out;
};

byi_id byi_row_value(const struct byi_row_match *r, const char *name)
{
    for (uint32_t i = 0; i < r->match->n_bound; i++)
        if (strcmp(r->match->bound[i].name, name) == 0)
            return r->match->bound[i].value;
    return BYI_NO_ID;
}

/* Do operands that are called "zero", "one", ..., perhaps with a number behind,
 * have that value? */
static bool has_named_values(const struct byi_row_match *r)
{
    static const struct {
        const char *name;
        double value;
    } known[] = {{"zero", 0.0},
                 {"one", 1.0},
                 {"two", 2.0},
                 {"half", 0.5},
                 {"minus_half", -0.5}};
    for (uint32_t i = 0; i < r->match->n_bound; i++) {
        const char *name = r->match->bound[i].name;
        const size_t n = strcspn(name, "0123456789");
        for (size_t k = 0; k < BYI_COUNT(known); k++)
            if (strlen(known[k].name) == n &&
                memcmp(name, known[k].name, n) == 0 &&
                !byi_rw_is_value(r->rw, r->match->bound[i].value,
                                 known[k].value))
                return false;
    }
    return true;
}

/* --- emitting ------------------------------------------------------------- */

static byi_id call_of(void *rw, enum byi_op_id op, const byi_id *args,
                      uint32_t n, const struct byi_attr *attrs,
                      uint32_t n_attrs)
{
    return byi_rw_call(rw, op, args, n, attrs, n_attrs);
}

/* Emit the row's template; BYI_NO_ID if that fails. */
static byi_id emit_template(const struct row_try *t)
{
    const struct byi_match *match = t->match.match;
    struct byi_rewrite *rw = t->match.rw;
    const struct byi_emitter to = {
        .ctx = rw, .m = rw->m, .f = rw->f, .call = call_of};
    const char *names[BYI_MATCH_MAX_OPERANDS + BYI_MATCH_MAX_OPS];
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
    const struct byi_template_given given = {.names = names,
                                             .values = values,
                                             .n_values = n,
                                             .n_attrs =
                                                 t->match.attr.name ? 1 : 0,
                                             .attrs = &t->match.attr};
    return byi_template(&to, t->row->to, &given, rw->scratch, 1, &out, &err) ==
                   BYOC_OK
               ? out
               : BYI_NO_ID;
}

static bool try_match(const struct byi_match *match, void *ctx)
{
    struct row_try *t = ctx;
    struct byi_rewrite *rw = t->match.rw;
    t->match.match = match;
    t->match.attr = (struct byi_attr){0};
    if (!has_named_values(&t->match) ||
        (!t->row->shared &&
         !byi_rw_closed(rw, match->root, match->ops, match->n_ops - 1)) ||
        (t->row->when && !t->row->when(&t->match)))
        return false;
    t->out = t->row->emit ? t->row->emit(&t->match) : emit_template(t);
    return t->out != BYI_NO_ID &&
           byi_type_equal(byi_rw_node(rw, match->root)->type,
                          byi_rw_node(rw, t->out)->type);
}

/* --- the rule ------------------------------------------------------------- */

byi_id byi_rows_apply(struct byi_rewrite *rw, byi_id at)
{
    struct row_table *table = rw->state;
    const uint32_t root = byi_root_of(byi_rw_node(rw, at));
    for (uint32_t i = 0; root != BYI_ROOT_NONE && i < table->patterns->n; i++) {
        struct row_try t = {.match = {.rw = rw}, .row = &table->rows[i]};
        uint32_t tried;
        if (table->patterns->at[i].roots[root] &&
            byi_match(rw->m, rw->f, &table->patterns->at[i], at, NULL,
                      &table->steps, try_match, &t, &tried))
            return t.out;
    }
    return BYI_NO_ID;
}

enum byoc_status byi_rewrite_rows(struct byi_module *m, uint32_t func,
                                  const struct byi_rule *rules,
                                  uint32_t n_rules, const struct byi_row *rows,
                                  uint32_t n_rows, struct byi_pass_context *ctx,
                                  struct byi_arena *scratch,
                                  struct byoc_error *err)
{
    struct row_table table = {.rows = rows,
                              .steps = byi_match_steps(m->funcs.at[func])};
    struct byoc_pattern *patterns =
        byi_arena_calloc(scratch, n_rows + 1, sizeof *patterns);
    for (uint32_t i = 0; i < n_rows; i++)
        patterns[i] = (struct byoc_pattern){
            .name = byi_arena_printf(scratch, "rules.row%u", i),
            .pattern = rows[i].pattern};
    enum byoc_status status =
        byi_patterns_compile(patterns, n_rows, &table.patterns, err);
    if (status == BYOC_OK)
        status =
            byi_rewrite(m, func, rules, n_rules, ctx, scratch, &table, err);
    byi_patterns_free(&table.patterns);
    return status;
}
