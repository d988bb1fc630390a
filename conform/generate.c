/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: generates a graph from a pattern, operands before their readers,
 * since the shapes of operands determine the shapes of results. Where the
 * pattern leaves a choice (operators, alternatives, repetitions), it is random.
 */
#include "generate.h"

#include <string.h>

enum {
    MAX_STEPS = 3, /* repetitions of a chain's step beyond the required ones */
    MAX_CAPTURED = 32,   /* values that a branch captures */
    MAX_OUTSIDE = 4096,  /* nodes of the function around a branch */
    MAX_POOL = 32,       /* results of rows, kept for later rows */
    MAX_REST = 4,        /* operands of a pattern's `...` */
    MAX_RESULT = 1 << 18 /* elements of a result */
};

/* The result of a pattern node: a value, or an operand to be created when its
 * reader has chosen its type. */
struct generated_value {
    byi_id id; /* BYI_NO_ID: not created yet */
    const struct byi_pat *leaf;
    const struct byi_pat_type *required; /* by the pattern, or NULL */
};

/* The state of byi_generate. */
struct graph_generator {
    const struct byi_pattern *p; /* of the current row */
    struct byi_module *m;
    struct byi_func *f; /* @main, or the branch that is being created */
    struct byi_arena *arena;
    enum byi_emphasis emphasis;
    enum byoc_dtype dtype; /* default of created operands */
    bool needs_zero;       /* the graph still needs an axis of size 0 */
    uint64_t state;        /* of byi_draw */
    byi_id *named;         /* values by name; BYI_NO_ID: not created yet */
    byi_id *once;          /* values of BYI_PAT_ONCE nodes, by node */
    /* in a branch: the function around it; NULL outside of branches */
    struct byi_func *outer;
    byi_id *inside; /* in a branch: copies of outer values, by outer id */
    byi_id captured[MAX_CAPTURED];
    uint32_t n_captured;
    struct generated_value
        hole;              /* operand of a chain's step: the value before it */
    byi_id pool[MAX_POOL]; /* results of previous rows */
    uint32_t n_pool;
    uint32_t n_before; /* pool[n_before..] are results of the last row */
    enum byi_topology topology;
    bool linked; /* in a chain: this row reads the previous one already */
    struct byoc_error *err;
};

static enum byoc_status make_pattern(struct graph_generator *g, uint32_t at,
                                     struct generated_value *out);

/* Fail because the random choices do not fit together; byi_sample_make then
 * tries other ones. */
static enum byoc_status fail_misfit(struct graph_generator *g,
                                    const char *found)
{
    return byi_fail(g->err, BYOC_ETYPE, "found %s; try another seed", found);
}

static const struct byi_type *type_of(const struct graph_generator *g,
                                      byi_id id)
{
    return g->f->nodes.at[id].type;
}

/* Make an outer value available in the current branch: as a capture, or as the
 * same constant. */
static byi_id capture_value(struct graph_generator *g, byi_id id)
{
    if (!g->outer || id == BYI_NO_ID)
        return id;
    const struct byi_node *node = &g->outer->nodes.at[id];
    if (id >= MAX_OUTSIDE || g->n_captured == MAX_CAPTURED)
        return BYI_NO_ID;
    if (g->inside[id] != BYI_NO_ID)
        return g->inside[id];
    if (node->kind == BYI_CONST) {
        g->inside[id] = byi_add_const(g->m, g->f, node->index, NULL);
    } else {
        g->captured[g->n_captured++] = id;
        g->inside[id] = byi_add_param(g->m, g->f, "captured", node->type);
    }
    return g->inside[id];
}

/* --- operands ------------------------------------------------------------- */

static byi_id add_const(struct graph_generator *g, const struct byi_type *type,
                        const struct byi_slot *slot, struct byi_domain domain)
{
    struct byi_tensor t;
    if (!byi_const_alloc(g->m, type, &t))
        return BYI_NO_ID;
    if (slot && slot->n)
        for (uint32_t i = 0; i < slot->n; i++)
            byi_tensor_set(&t, i, (double)slot->ints[i]);
    else
        byi_domain_fill(&t, domain, byi_draw(&g->state));
    return byi_add_const(g->m, g->f, byi_const_add(g->m, type, t.data, false),
                         NULL);
}

/* Add the constant of a pattern that has a value, such as const(0.5). */
static byi_id add_number(struct graph_generator *g, const struct byi_type *type,
                         double value)
{
    struct byi_tensor t;
    if (!byi_const_alloc(g->m, type, &t))
        return BYI_NO_ID;
    byi_tensor_set(&t, 0, value);
    return byi_add_const(g->m, g->f, byi_const_add(g->m, type, t.data, false),
                         NULL);
}

static byi_id add_param(struct graph_generator *g, const struct byi_type *type)
{
    char name[24];
    snprintf(name, sizeof name, "x%u", g->f->params.n);
    return byi_add_param(g->m, g->f, byi_arena_str(g->m->arena, name), type);
}

/* Create operand i of the call from its slot. */
static enum byoc_status make_operand(struct graph_generator *g,
                                     struct byi_opgen *d, uint32_t i,
                                     struct generated_value *operand,
                                     const struct byi_attrs *attrs)
{
    const struct byi_slot *s = &d->operands[i];
    const struct byi_pat *leaf = operand->leaf;
    const bool is_number =
        leaf && leaf->kind == BYI_PAT_CONST && leaf->has_value;
    int64_t ones[BYI_MAX_RANK];
    for (uint32_t k = 0; k < BYI_MAX_RANK; k++)
        ones[k] = 1;
    const uint32_t rank = is_number && s->rank > 1 ? 1 : s->rank;
    const struct byi_type *type = byi_type_tensor(g->m->arena, s->dtype, rank,
                                                  is_number ? ones : s->dims);
    const struct byi_type *types[BYI_MAX_SLOTS];
    for (uint32_t k = 0; k < d->n; k++)
        types[k] = d->operands[k].type ? d->operands[k].type : type;
    const bool constant = is_number || s->constant || s->n ||
                          (leaf && leaf->kind == BYI_PAT_CONST);
    struct byi_func *inner = g->f;
    if (g->outer)
        g->f = g->outer; /* a branch captures its operands */
    if (is_number)
        operand->id = add_number(g, type, leaf->value);
    else if (constant || (i > 0 && byi_draw_below(&g->state, 100) < 20))
        operand->id =
            add_const(g, type, s, byi_domain_of(d->op, attrs, types, d->n, i));
    else
        operand->id = add_param(g, type);
    g->f = inner;
    if (operand->id == BYI_NO_ID)
        return fail_misfit(g, "a constant that is too large");
    if (leaf && leaf->name != BYI_NO_NAME && leaf->kind != BYI_PAT_ONCE)
        g->named[leaf->name] = operand->id;
    operand->id = capture_value(g, operand->id);
    d->operands[i].type = type;
    return BYOC_OK;
}

/* --- operators ------------------------------------------------------------ */

/* Sometimes use the result of an earlier row as this operand. In a chain, the
 * first operand of a row that can be any value is always the result of the
 * previous row. */
static void use_earlier_result(struct graph_generator *g,
                               struct generated_value *operand)
{
    const struct byi_pat *leaf = operand->leaf;
    const bool must_link = g->topology == BYI_TOPOLOGY_CHAIN && !g->linked;
    const uint32_t percent = must_link                           ? 100
                             : g->topology == BYI_TOPOLOGY_CHAIN ? 25
                                                                 : 60;
    const uint32_t from = must_link ? g->n_before : 0;
    if (operand->id != BYI_NO_ID || g->n_pool == from || g->outer ||
        (leaf && leaf->kind != BYI_PAT_ANY) ||
        byi_draw_below(&g->state, 100) >= percent)
        return;
    operand->id = g->pool[from + byi_draw_below(&g->state, g->n_pool - from)];
    g->linked = true;
    if (leaf)
        g->named[leaf->name] = operand->id;
}

/* Use the value that has the operand's name in the pattern, if it exists. */
static void use_named_value(struct graph_generator *g,
                            struct generated_value *operand)
{
    if (operand->id == BYI_NO_ID && operand->leaf &&
        operand->leaf->name != BYI_NO_NAME)
        operand->id = capture_value(g, g->named[operand->leaf->name]);
}

/* Add a call of `op`, creating operands that do not exist yet. `pat`: the
 * pattern's operator; NULL: it has no requirements. */
static enum byoc_status add_call(struct graph_generator *g,
                                 const struct byi_pat *pat, enum byi_op_id op,
                                 struct generated_value *args, uint32_t n,
                                 byi_id *id)
{
    static const struct byi_pat plain = {.kind = BYI_PAT_OP};
    struct byi_opgen d = {.op = byi_op(op),
                          .pat = pat ? pat : &plain,
                          .emphasis = g->emphasis,
                          .dtype = g->dtype,
                          .state = &g->state,
                          .arena = g->m->arena,
                          .needs_zero = g->needs_zero,
                          .n = n};
    byi_id ids[BYI_MAX_SLOTS];
    const struct byi_attrs *attrs = NULL;
    for (uint32_t i = 0; i < n; i++) {
        use_named_value(g, &args[i]);
        use_earlier_result(g, &args[i]);
        d.operands[i].required = args[i].required;
        d.operands[i].constant =
            args[i].leaf && args[i].leaf->kind == BYI_PAT_CONST;
        if (args[i].id != BYI_NO_ID)
            d.operands[i].type = type_of(g, args[i].id);
        if (d.operands[i].type && d.operands[i].type->kind != BYI_TENSOR)
            return fail_misfit(g, "an operand that is a tuple");
        if (d.operands[i].type && !d.dtype)
            d.dtype = d.operands[i].type->dtype;
    }
    if (!byi_opgen_fill(&d))
        return fail_misfit(g, "shapes that do not fit together");
    g->needs_zero = d.needs_zero;
    BYI_TRY(byi_attrs_make(g->arena, d.op, d.attrs, d.n_attrs, &attrs, g->err));
    for (uint32_t i = 0; i < n; i++) {
        if (args[i].id == BYI_NO_ID)
            use_named_value(
                g, &args[i]); /* an earlier operand may have this name */
        if (args[i].id == BYI_NO_ID)
            BYI_TRY(make_operand(g, &d, i, &args[i], attrs));
        ids[i] = args[i].id;
    }
    BYI_TRY(byi_add_call(g->m, g->f, op, ids, n, d.attrs, d.n_attrs, NULL, id,
                         g->err));
    const struct byi_type *type = type_of(g, *id);
    if (type->kind == BYI_TENSOR &&
        byi_elements(type->rank, type->dims) > MAX_RESULT)
        return fail_misfit(g, "a result that is too large");
    return BYOC_OK;
}

static enum byoc_status make_op(struct graph_generator *g,
                                const struct byi_pat *pat,
                                struct generated_value *out)
{
    const enum byi_op_id op = pat->ops[byi_draw_below(&g->state, pat->n_ops)];
    struct generated_value args[BYI_MAX_SLOTS];
    uint32_t n = pat->n_args;
    if (n > BYI_MAX_SLOTS - MAX_REST)
        return byi_fail(g->err, BYOC_EUNSUPPORTED,
                        "found an operator with %u operands, expected at most "
                        "%d",
                        n, BYI_MAX_SLOTS - MAX_REST);
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(make_pattern(g, pat->args[i], &args[i]));
    const struct byi_op *row = byi_op(op);
    uint32_t n_rest = pat->has_rest ? byi_draw_below(&g->state, MAX_REST) : 0;
    while (pat->has_rest && n < row->max_in &&
           (n_rest > 0 || n < row->min_in)) {
        args[n++] = (struct generated_value){.id = BYI_NO_ID};
        n_rest -= n_rest > 0;
    }
    out->leaf = NULL;
    return add_call(g, pat, op, args, n, &out->id);
}

/* Create a sum or product of several operands, from left to right; subtract or
 * divide last. */
static enum byoc_status make_group(struct graph_generator *g,
                                   const struct byi_pat *pat,
                                   struct generated_value *out)
{
    const bool sum = pat->ops[0] == BYI_OP_ADD;
    struct generated_value args[BYI_PATTERN_MAX_ARGS];
    struct generated_value result = {.id = BYI_NO_ID};
    bool has_result = false;
    for (uint32_t i = 0; i < pat->n_args; i++)
        BYI_TRY(make_pattern(g, pat->args[i], &args[i]));
    for (uint32_t inverse = 0; inverse < 2; inverse++)
        for (uint32_t i = 0; i < pat->n_args; i++) {
            if ((pat->inverse >> i & 1) != inverse)
                continue;
            if (!has_result) {
                result = args[i];
                has_result = true;
                continue;
            }
            struct generated_value pair[2] = {result, args[i]};
            BYI_TRY(add_call(g, NULL,
                             sum ? (inverse ? BYI_OP_SUBTRACT : BYI_OP_ADD)
                                 : (inverse ? BYI_OP_DIVIDE : BYI_OP_MULTIPLY),
                             pair, 2, &result.id));
            result.leaf = NULL;
        }
    *out = result;
    return BYOC_OK;
}

/* Create the value of *operand, unless it exists. */
static enum byoc_status make_value(struct graph_generator *g,
                                   const struct byi_pat *pat,
                                   struct generated_value *operand)
{
    use_named_value(g, operand);
    if (operand->id != BYI_NO_ID)
        return BYOC_OK;
    struct byi_opgen d = {.op = byi_op(BYI_OP_COPY),
                          .pat = pat,
                          .emphasis = g->emphasis,
                          .dtype = g->dtype,
                          .state = &g->state,
                          .arena = g->m->arena,
                          .n = 1};
    d.operands[0].required = operand->required;
    if (!byi_opgen_fill(&d))
        return fail_misfit(g, "a value for which no shape fits");
    return make_operand(g, &d, 0, operand, NULL);
}

static enum byoc_status make_tuple(struct graph_generator *g,
                                   const struct byi_pat *pat,
                                   struct generated_value *out)
{
    byi_id ids[BYI_PATTERN_MAX_ARGS];
    for (uint32_t i = 0; i < pat->n_args; i++) {
        struct generated_value field;
        BYI_TRY(make_pattern(g, pat->args[i], &field));
        BYI_TRY(make_value(g, pat, &field));
        ids[i] = field.id;
    }
    *out = (struct generated_value){
        .id = byi_add_tuple(g->m, g->f, ids, pat->n_args, NULL)};
    return BYOC_OK;
}

/* Create a branch as a function literal in the outer function. */
static enum byoc_status make_branch(struct graph_generator *g,
                                    const struct byi_pat *pat, uint32_t branch,
                                    byi_id *fn)
{
    struct byi_func *outer = g->f;
    const uint32_t func = byi_func_new(g->m, NULL);
    struct generated_value result;
    g->inside = byi_arena_calloc(g->arena, MAX_OUTSIDE, sizeof *g->inside);
    memset(g->inside, 0xff, MAX_OUTSIDE * sizeof *g->inside);
    g->n_captured = 0;
    g->outer = outer;
    g->f = g->m->funcs.at[func];
    enum byoc_status status = make_pattern(g, pat->args[branch], &result);
    if (status == BYOC_OK)
        status = make_value(g, pat, &result);
    g->f->result = result.id;
    g->f->n_captures = g->n_captured;
    g->f = outer;
    g->outer = NULL;
    BYI_TRY(status);
    *fn = byi_add_fn(g->m, outer, func, g->captured, g->n_captured, NULL);
    return BYOC_OK;
}

static enum byoc_status make_if(struct graph_generator *g,
                                const struct byi_pat *pat,
                                struct generated_value *out)
{
    struct generated_value cond;
    byi_id fn[2];
    if (g->outer)
        return byi_fail(g->err, BYOC_EUNSUPPORTED,
                        "found an `if` in a branch of an `if`, expected none");
    BYI_TRY(make_pattern(g, pat->args[0], &cond));
    use_named_value(g, &cond);
    if (cond.id == BYI_NO_ID) {
        cond.id =
            add_param(g, byi_type_tensor(g->m->arena, BYOC_BOOL, 0, NULL));
        if (cond.leaf->name != BYI_NO_NAME)
            g->named[cond.leaf->name] = cond.id;
    }
    for (uint32_t i = 0; i < 2; i++)
        BYI_TRY(make_branch(g, pat, 1 + i, &fn[i]));
    out->leaf = NULL;
    return byi_add_if(g->m, g->f, cond.id, fn[0], fn[1], NULL, &out->id,
                      g->err);
}

/* --- chains, shared values, fields of tuples ------------------------------ */

/* Forget the names in a repeated step: each repetition binds them anew. */
static void forget_repeated(struct graph_generator *g)
{
    for (uint32_t i = 0; i < g->p->n_names; i++)
        if (g->p->repeated[i])
            g->named[i] = BYI_NO_ID;
}

static enum byoc_status make_chain(struct graph_generator *g,
                                   const struct byi_pat *pat,
                                   struct generated_value *out)
{
    const uint32_t n_extra =
        pat->max - pat->min < MAX_STEPS ? pat->max - pat->min : MAX_STEPS;
    const uint32_t n =
        pat->min + (n_extra ? byi_draw_below(&g->state, n_extra + 1) : 0);
    const struct generated_value outer_hole = g->hole;
    BYI_TRY(make_pattern(g, pat->args[0], out));
    for (uint32_t i = 0; i < n; i++) {
        if (pat->max > 1)
            forget_repeated(g);
        g->hole = *out;
        BYI_TRY(make_pattern(g, pat->args[1], out));
    }
    g->hole = outer_hole;
    return BYOC_OK;
}

/* The value of a BYI_PAT_ONCE node: created at its first use, then shared. */
static enum byoc_status make_once(struct graph_generator *g, uint32_t at,
                                  const struct byi_pat *pat,
                                  struct generated_value *out)
{
    if (g->outer)
        return byi_fail(g->err, BYOC_EUNSUPPORTED,
                        "found a `with` in a branch, expected none");
    if (g->once[at] == BYI_NO_ID) {
        BYI_TRY(make_pattern(g, pat->args[0], out));
        g->once[at] = out->id;
    } else {
        *out = (struct generated_value){.id = g->once[at]};
    }
    return BYOC_OK;
}

static enum byoc_status make_get(struct graph_generator *g,
                                 const struct byi_pat *pat,
                                 struct generated_value *out)
{
    BYI_TRY(make_pattern(g, pat->args[0], out));
    if (out->id == BYI_NO_ID || type_of(g, out->id)->kind != BYI_TUPLE ||
        type_of(g, out->id)->n_fields <= pat->index)
        return fail_misfit(g, "a tuple without the field");
    return byi_add_get(g->m, g->f, out->id, pat->index, NULL, &out->id, g->err);
}

/* Create the graph of pattern node `at`. The recursion is as deep as the
 * pattern's text is nested. */
static enum byoc_status make_pattern(struct graph_generator *g, uint32_t at,
                                     struct generated_value *out)
{
    const struct byi_pat *pat = &g->p->nodes[at];
    *out = (struct generated_value){.id = BYI_NO_ID};
    switch (pat->kind) {
    case BYI_PAT_ANY:
    case BYI_PAT_CONST:
        out->leaf = pat;
        return BYOC_OK;
    case BYI_PAT_OP:
        return make_op(g, pat, out);
    case BYI_PAT_GROUP:
        return make_group(g, pat, out);
    case BYI_PAT_TUPLE:
        return make_tuple(g, pat, out);
    case BYI_PAT_GET:
        return make_get(g, pat, out);
    case BYI_PAT_ALT:
        return make_pattern(
            g, pat->args[byi_draw_below(&g->state, pat->n_args)], out);
    case BYI_PAT_CHAIN:
        return make_chain(g, pat, out);
    case BYI_PAT_HOLE:
        *out = g->hole;
        return BYOC_OK;
    case BYI_PAT_TYPE:
        BYI_TRY(make_pattern(g, pat->args[0], out));
        out->required = pat->type;
        return BYOC_OK;
    case BYI_PAT_ONCE:
        return make_once(g, at, pat, out);
    case BYI_PAT_IF:
        return make_if(g, pat, out);
    }
    byi_unreachable();
}

static enum byoc_dtype draw_dtype(enum byi_emphasis emphasis, uint64_t *state)
{
    static const enum byoc_dtype others[] = {
        BYOC_F16, BYOC_BF16, BYOC_F64, BYOC_I32, BYOC_I64, BYOC_I8, BYOC_U8};
    return emphasis == BYI_EMPHASIS_DTYPE
               ? others[byi_draw_below(state, BYI_COUNT(others))]
               : BYOC_F32;
}

/* Add the result of a row to the pool, for later rows and for the output. */
static enum byoc_status add_result(struct graph_generator *g, byi_id id)
{
    const struct byi_type *type = type_of(g, id);
    g->n_before = g->n_pool;
    if (type->kind == BYI_TENSOR && g->n_pool < MAX_POOL)
        g->pool[g->n_pool++] = id;
    for (uint32_t i = 0; type->kind == BYI_TUPLE && i < type->n_fields; i++) {
        byi_id field;
        BYI_TRY(byi_add_get(g->m, g->f, id, i, NULL, &field, g->err));
        if (g->n_pool < MAX_POOL)
            g->pool[g->n_pool++] = field;
    }
    return BYOC_OK;
}

/* Create the graph of one row; *id is its result. */
static enum byoc_status make_row(struct graph_generator *g,
                                 const struct byi_pattern *row, byi_id *id)
{
    struct generated_value root;
    g->p = row;
    g->linked = false;
    g->named = byi_arena_calloc(g->arena, row->n_names + 1, sizeof *g->named);
    g->once = byi_arena_calloc(g->arena, row->n_nodes, sizeof *g->once);
    memset(g->named, 0xff, (row->n_names + 1) * sizeof *g->named);
    memset(g->once, 0xff, row->n_nodes * sizeof *g->once);
    BYI_TRY(make_pattern(g, row->root, &root));
    *id = root.id;
    return root.id == BYI_NO_ID
               ? fail_misfit(g, "a pattern without an operator")
               : BYOC_OK;
}

/* The result of @main for several rows: all their results; for a chain, the
 * last one and, one time in four, also an earlier one. */
static byi_id result_of(struct graph_generator *g, byi_id last)
{
    if (g->topology == BYI_TOPOLOGY_NET)
        return byi_add_tuple(g->m, g->f, g->pool, g->n_pool, NULL);
    if (!g->n_before || byi_draw_below(&g->state, 4))
        return last;
    const byi_id values[] = {g->pool[byi_draw_below(&g->state, g->n_before)],
                             g->pool[g->n_pool - 1]};
    return byi_add_tuple(g->m, g->f, values, 2, NULL);
}

/* Refuse graphs with an input of unknown size. The branches of an `if` may have
 * results of different sizes. Then the result's size is known only at run time,
 * and the other operand of its reader gets this type too. If that is an input,
 * partitioning puts its readers in a region, which the runtime does not give to
 * a backend. */
static enum byoc_status check_inputs(struct graph_generator *g)
{
    for (uint32_t i = 0; i < g->f->params.n; i++)
        if (!byi_type_has_static_sizes(type_of(g, g->f->params.at[i])))
            return fail_misfit(g, "an input whose size depends on a branch");
    return BYOC_OK;
}

enum byoc_status byi_generate(const struct byi_pattern *const *rows, uint32_t n,
                              enum byi_topology topology,
                              enum byi_emphasis emphasis, uint64_t seed,
                              struct byi_module **m, struct byoc_error *err)
{
    struct graph_generator g = {.m = byi_module_new(),
                                .arena = byi_arena_new(),
                                .topology = topology,
                                .emphasis = emphasis,
                                .needs_zero = emphasis == BYI_EMPHASIS_ZERO,
                                .state = seed * 0x9e3779b97f4a7c15u + 1,
                                .err = err};
    const uint32_t func = byi_func_new(g.m, "main");
    enum byoc_status status = BYOC_OK;
    byi_id last = BYI_NO_ID;
    byi_draw(&g.state);
    g.dtype = draw_dtype(emphasis, &g.state);
    g.f = g.m->funcs.at[func];
    for (uint32_t i = 0; status == BYOC_OK && i < n; i++) {
        status = make_row(&g, rows[i], &last);
        if (status == BYOC_OK && n > 1)
            status = add_result(&g, last);
    }
    if (status == BYOC_OK)
        status = check_inputs(&g);
    if (status == BYOC_OK && g.needs_zero)
        status = fail_misfit(&g, "a graph without an axis of size 0");
    if (status == BYOC_OK)
        g.f->result = n > 1 ? result_of(&g, last) : last;
    byi_arena_free(&g.arena);
    *m = g.m;
    if (status != BYOC_OK)
        byi_module_free(m);
    return status;
}
