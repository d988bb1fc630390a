/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: computes the shapes of a module's values for some sizes of the
 * inputs' symbolic dims. Runs the type rules forward with numbers in place of
 * symbols, and computes small values that follow from sizes, as the runtime
 * does (runtime/specialise.c). The runtime therefore knows the shape of every
 * value that has one here. The shape of any other value depends on data.
 */
#include "samples.h"

#include <string.h>

/* The shapes in one function for one round, from its latest visit. */
struct shapes {
    const struct byi_type **type;    /* indexed by node; NULL: not known      */
    const struct byi_tensor **value; /* indexed by node; NULL: not known      */
};

/* The rounds. All arrays are in `arena`. */
struct byi_samples {
    const struct byi_module *m;
    const struct byi_pass_context *ctx;
    struct byi_arena *arena;
    uint32_t n_rounds;
    struct shapes **shapes; /* indexed by round and function */
    const char **fault; /* for each round: why the model rejects it           */
    uint32_t *n_empty;  /* for each round: the operators' empty results      */
    bool *bound; /* for each symbol: an input has it, so that a run binds it */
    uint32_t n_symbols; /* of the module when `bound` was made            */
    uint32_t n_funcs;
    /* how many function literals, which may never run, enclose the node that is
     * visited */
    uint32_t literal_depth;
};

/* The larger sizes are for models that reject the first three, such as models
 * with reflective padding, which needs long axes, or that have empty values for
 * all of them. */
static const int64_t usual_sizes[] = {1, 2, 64, 512, 4096, 32768};
/* The number of sizes that are used for all models. */
enum { N_FIRST = 3 };

/* --- sizes ---------------------------------------------------------------- */

static const struct byi_size_list *list_of(const struct byi_sizes *sizes,
                                           const char *name)
{
    for (uint32_t i = 0; sizes && i < sizes->n; i++)
        if (strcmp(sizes->at[i].name, name) == 0)
            return &sizes->at[i];
    return NULL;
}

/* Whether an input of the entry has symbol `i`. No input has symbols that
 * passes and type rules have added since. */
static bool is_bound(const struct byi_samples *s, uint32_t i)
{
    return i < s->n_symbols && s->bound[i];
}

/* The size of a symbol; -1 if no input of the model has it, so that no run
 * binds it. */
static int64_t size_of(const struct byi_samples *s, uint32_t round, int64_t dim)
{
    const char *name = byi_symbol_name(s->m, dim);
    const struct byi_size_list *list = list_of(s->ctx->sizes, name);
    if (!is_bound(s, (uint32_t)(-1 - dim)))
        return -1;
    const int64_t *at = list ? list->at : usual_sizes;
    const uint32_t n = list ? list->n : BYI_COUNT(usual_sizes);
    return at[round < n ? round : n - 1];
}

static uint32_t count_rounds(const struct byi_sizes *sizes)
{
    uint32_t n = N_FIRST;
    for (uint32_t i = 0; sizes && i < sizes->n; i++)
        n = sizes->at[i].n > n ? sizes->at[i].n : n;
    return n;
}

/* The type with numbers for symbols; NULL if one is unknown, or if no tensor
 * can be so large. */
static const struct byi_type *put_sizes(const struct byi_samples *s,
                                        uint32_t round,
                                        const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    if (type->kind != BYI_TENSOR)
        return NULL;
    for (uint32_t d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d];
        if (BYI_IS_SYMBOL(dims[d]))
            dims[d] = size_of(s, round, dims[d]);
        if (dims[d] < 0)
            return NULL;
    }
    const struct byi_type *sized =
        byi_type_tensor(s->arena, type->dtype, type->rank, dims);
    if (type->dtype == BYOC_STRING || byi_type_bytes(sized) != UINT64_MAX)
        return sized;
    if (!s->fault[round])
        s->fault[round] = "a tensor is larger than any memory";
    return NULL;
}

/* --- one node ------------------------------------------------------------- */

/* The value of a call, if it is small and its operands are known. */
static const struct byi_tensor *compute_value(
    const struct byi_samples *s, const struct byi_node *node,
    const struct byi_type *const *in, const struct byi_tensor *const *values,
    const struct byi_type *type)
{
    if (!s->ctx->eval ||
        !byi_follows_from_sizes(byi_op(node->op), node->n_args, values, type))
        return NULL;
    struct byi_tensor *args =
        byi_arena_calloc(s->arena, node->n_args, sizeof *args);
    for (uint32_t i = 0; i < node->n_args; i++)
        args[i] = values[i] ? *values[i] : byi_tensor_of(in[i]);
    struct byi_tensor *out = byi_arena_calloc(s->arena, 1, sizeof *out);
    *out = byi_tensor_of(type);
    out->data = byi_arena_alloc(s->arena, byi_tensor_bytes(out) + 1);
    if (s->ctx->eval(byi_op(node->op), node->attrs, node->n_args, args, 1, out,
                     NULL) != BYOC_OK)
        return NULL;
    return out;
}

static void visit_op(struct byi_samples *s, uint32_t round,
                     const struct shapes *sh, const struct byi_node *node,
                     byi_id id)
{
    const struct byi_type **in =
        byi_arena_calloc(s->arena, node->n_args, sizeof *in);
    const struct byi_tensor **values =
        byi_arena_calloc(s->arena, node->n_args, sizeof *values);
    struct byoc_error err;
    for (uint32_t i = 0; i < node->n_args; i++) {
        in[i] = sh->type[node->args[i]];
        values[i] = sh->value[node->args[i]];
        if (!in[i])
            return;
    }
    struct byi_infer infer = {.arena = s->arena,
                              .op = byi_op(node->op),
                              .attrs = node->attrs,
                              .n_in = node->n_args,
                              .in = in,
                              .value = values,
                              .err = &err};
    const struct byi_type *type;
    if (byi_infer_type(&infer, &type) != BYOC_OK) {
        if (!s->fault[round] && s->literal_depth == 0)
            s->fault[round] = byi_arena_str(s->arena, err.text);
        return;
    }
    if (!byi_type_has_static_sizes(type))
        return;
    s->n_empty[round] +=
        type->kind == BYI_TENSOR && byi_elements(type->rank, type->dims) == 0;
    sh->type[id] = type;
    sh->value[id] = compute_value(s, node, in, values, type);
}

/* The type of a tuple, if the types of its fields are known. */
static const struct byi_type *tuple_of(const struct byi_samples *s,
                                       const struct shapes *sh,
                                       const struct byi_node *node)
{
    const struct byi_type **fields =
        byi_arena_calloc(s->arena, node->n_args, sizeof *fields);
    for (uint32_t i = 0; i < node->n_args; i++) {
        fields[i] = sh->type[node->args[i]];
        if (!fields[i])
            return NULL;
    }
    return byi_type_tuple(s->arena, node->n_args, fields);
}

/* --- functions ------------------------------------------------------------ */

static void visit_func(struct byi_samples *s, uint32_t round, uint32_t func);

/* Visit function `func` with these types and values of its parameters. NULL
 * types default to the declared ones with sizes put in. */
static void enter_func(struct byi_samples *s, uint32_t round, uint32_t func,
                       const struct byi_type *const *types,
                       const struct byi_tensor *const *values)
{
    const struct byi_func *f = s->m->funcs.at[func];
    struct shapes *sh = &s->shapes[round][func];
    sh->type = byi_arena_calloc(s->arena, f->nodes.n, sizeof *sh->type);
    sh->value = byi_arena_calloc(s->arena, f->nodes.n, sizeof *sh->value);
    for (uint32_t i = 0; types && i < f->params.n; i++) {
        sh->type[f->params.at[i]] = types[i];
        sh->value[f->params.at[i]] = values[i];
    }
    visit_func(s, round, func);
}

/* Visit `func` with values of the function that sh belongs to: n operands after
 * the first `first` parameters, then captures. */
static void enter_with(struct byi_samples *s, uint32_t round,
                       const struct shapes *sh, uint32_t func, uint32_t first,
                       const byi_id *args, uint32_t n, const byi_id *captures)
{
    const struct byi_func *f = s->m->funcs.at[func];
    const uint32_t n_params = f->params.n;
    const struct byi_type **types =
        byi_arena_calloc(s->arena, n_params, sizeof *types);
    const struct byi_tensor **values =
        byi_arena_calloc(s->arena, n_params, sizeof *values);
    for (uint32_t i = first; i < n_params; i++) {
        const byi_id from =
            i < first + n ? args[i - first] : captures[i - first - n];
        types[i] = sh->type[from];
        values[i] = sh->value[from];
    }
    enter_func(s, round, func, types, values);
}

/* Whether the function is visited at its calls: a region, a composite, a fused
 * group. These contain only composites and branches. */
static bool is_visited_at_calls(const struct byi_func *f)
{
    return f->attr.compiler || f->attr.composite || f->attr.primitive;
}

static void visit_call(struct byi_samples *s, uint32_t round,
                       const struct byi_func *f, const struct shapes *sh,
                       byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    const struct byi_node *callee = &f->nodes.at[node->args[0]];
    if ((callee->kind != BYI_FN && callee->kind != BYI_GLOBAL) ||
        !is_visited_at_calls(s->m->funcs.at[callee->index]))
        return;
    enter_with(s, round, sh, callee->index, 0, node->args + 1, node->n_args - 1,
               callee->args);
    const byi_id result = s->m->funcs.at[callee->index]->result;
    sh->type[id] = s->shapes[round][callee->index].type[result];
    sh->value[id] = s->shapes[round][callee->index].value[result];
}

/* Visit a function literal: its captures are known, its parameters are not.
 * Recursion is as deep as functions nest, which the parser and the importer
 * limit. */
static void visit_fn(struct byi_samples *s, uint32_t round, uint32_t func,
                     const struct shapes *sh, const struct byi_node *node)
{
    const struct byi_func *inner = s->m->funcs.at[node->index];
    if (node->index == func || is_visited_at_calls(inner))
        return;
    s->literal_depth++;
    enter_with(s, round, sh, node->index, inner->params.n - inner->n_captures,
               NULL, 0, node->args);
    s->literal_depth--;
}

/* Set the type of an `if`: the common type of both branches, or the type of the
 * branch that these sizes choose. */
static void visit_if(const struct byi_samples *s, uint32_t round,
                     const struct byi_func *f, const struct shapes *sh,
                     byi_id id)
{
    const struct byi_type *type[2] = {0};
    const struct byi_tensor *condition = sh->value[f->nodes.at[id].args[0]];
    for (uint32_t k = 0; k < 2; k++) {
        const struct byi_node *fn = &f->nodes.at[f->nodes.at[id].args[1 + k]];
        if (fn->kind == BYI_FN && s->shapes[round][fn->index].type)
            type[k] = s->shapes[round][fn->index]
                          .type[s->m->funcs.at[fn->index]->result];
    }
    if (condition && byi_elements(condition->rank, condition->dims) == 1)
        sh->type[id] = type[!byi_tensor_int(condition, 0)];
    else if (type[0] && type[1] && byi_type_equal(type[0], type[1]))
        sh->type[id] = type[0];
}

static const struct byi_type *field_of(const struct byi_type *tuple, uint32_t i)
{
    return tuple && tuple->kind == BYI_TUPLE ? tuple->fields[i] : NULL;
}

static void visit_node(struct byi_samples *s, uint32_t round, uint32_t func,
                       byi_id id)
{
    const struct byi_func *f = s->m->funcs.at[func];
    const struct shapes *sh = &s->shapes[round][func];
    const struct byi_node *node = &f->nodes.at[id];
    switch (node->kind) {
    case BYI_CONST: {
        const struct byi_const *c = &s->m->consts.at[node->index];
        struct byi_tensor *t = byi_arena_calloc(s->arena, 1, sizeof *t);
        *t = byi_tensor_of(c->type);
        t->data = (void *)(uintptr_t)c->data;
        sh->type[id] = c->type;
        sh->value[id] = t;
        return;
    }
    case BYI_CALL_OP:
        visit_op(s, round, sh, node, id);
        return;
    case BYI_MAKE_TUPLE:
        sh->type[id] = tuple_of(s, sh, node);
        return;
    case BYI_GET:
        sh->type[id] = field_of(sh->type[node->args[0]], node->index);
        return;
    case BYI_FN:
        visit_fn(s, round, func, sh, node);
        return;
    case BYI_GLOBAL:
        return;
    case BYI_CALL:
        visit_call(s, round, f, sh, id);
        break;
    case BYI_IF:
        visit_if(s, round, f, sh, id);
        break;
    case BYI_PARAM:
        break;
    }
    if (!sh->type[id])
        sh->type[id] = put_sizes(s, round, node->type);
}

static void visit_func(struct byi_samples *s, uint32_t round, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    for (byi_id id = 0; id < f->nodes.n; id++)
        visit_node(s, round, func, id);
}

/* --- all rounds ----------------------------------------------------------- */

/* Mark the symbols in the entry's input shapes, which a run binds
 * (runtime/model.c). Returns false if there are none. */
static bool find_input_symbols(const struct byi_module *m, bool *bound)
{
    const uint32_t entry = byi_module_entry(m);
    bool any = false;
    if (entry == UINT32_MAX)
        return false;
    const struct byi_func *f = m->funcs.at[entry];
    for (uint32_t p = 0; p < f->params.n; p++) {
        const struct byi_type *type = f->nodes.at[f->params.at[p]].type;
        for (uint32_t d = 0; type->kind == BYI_TENSOR && d < type->rank; d++)
            if (BYI_IS_SYMBOL(type->dims[d]))
                any = bound[-1 - type->dims[d]] = true;
    }
    return any;
}

static void add_round(struct byi_samples *s)
{
    const uint32_t r = s->n_rounds++;
    s->shapes[r] = byi_arena_calloc(s->arena, s->n_funcs, sizeof **s->shapes);
    for (uint32_t i = 0; i < s->n_funcs; i++) {
        const struct byi_func *f = s->m->funcs.at[i];
        if (!f->dead && f->name && !is_visited_at_calls(f))
            enter_func(s, r, i, NULL, NULL);
    }
}

/* Add rounds as long as each of them leaves fewer values empty. For example,
 * the rows of a matrix from row 100 on are empty if it has 64 rows. */
static void add_larger_rounds(struct byi_samples *s, uint32_t max_rounds)
{
    uint32_t n = s->n_rounds;
    while (n < max_rounds && !s->fault[n - 1] && s->n_empty[n - 1] > 0) {
        add_round(s);
        if (s->fault[n] || s->n_empty[n] >= s->n_empty[n - 1])
            break;
        n++;
    }
    s->n_rounds = n;
}

struct byi_samples *byi_samples_new(const struct byi_module *m,
                                    const struct byi_pass_context *ctx,
                                    struct byi_arena *arena)
{
    bool *bound = byi_arena_calloc(arena, m->symbols.n + 1u, sizeof *bound);
    if (!find_input_symbols(m, bound))
        return NULL;
    struct byi_samples *s = byi_arena_calloc(arena, 1, sizeof *s);
    *s = (struct byi_samples){.m = m,
                              .ctx = ctx,
                              .arena = arena,
                              .n_symbols = m->symbols.n,
                              .n_funcs = m->funcs.n,
                              .bound = bound};
    const uint32_t first = count_rounds(ctx->sizes);
    const uint32_t max_rounds = first > BYI_COUNT(usual_sizes)
                                    ? first
                                    : (uint32_t)BYI_COUNT(usual_sizes);
    s->shapes = byi_arena_calloc(arena, max_rounds, sizeof *s->shapes);
    s->fault = byi_arena_calloc(arena, max_rounds, sizeof *s->fault);
    s->n_empty = byi_arena_calloc(arena, max_rounds, sizeof *s->n_empty);
    while (s->n_rounds < first)
        add_round(s);
    while (s->n_rounds < max_rounds && byi_sample_fault(s))
        add_round(s);
    add_larger_rounds(s, max_rounds);
    return s;
}

uint32_t byi_samples_rounds(const struct byi_samples *s)
{
    return s ? s->n_rounds : 0;
}

const struct byi_type *byi_sample_type(const struct byi_samples *s,
                                       uint32_t round, uint32_t func, byi_id id)
{
    if (func >= s->n_funcs || !s->shapes[round][func].type)
        return NULL;
    return s->shapes[round][func].type[id];
}

/* 1 + the last round that the model accepts; 0: none. */
static uint32_t last_valid_round(const struct byi_samples *s)
{
    uint32_t round = s ? s->n_rounds : 0;
    while (round > 0 && s->fault[round - 1])
        round--;
    return round;
}

const struct byi_type *byi_sample_last_type(const struct byi_samples *s,
                                            uint32_t func, byi_id id)
{
    const uint32_t round = last_valid_round(s);
    return round ? byi_sample_type(s, round - 1, func, id) : NULL;
}

const char *byi_sample_sizes(const struct byi_samples *s)
{
    const uint32_t round = last_valid_round(s);
    return round ? byi_sample_text(s, round - 1) : "";
}

const char *byi_sample_fault(const struct byi_samples *s)
{
    for (uint32_t r = 0; r < s->n_rounds; r++)
        if (!s->fault[r])
            return NULL;
    return s->fault[0];
}

uint32_t byi_sample_dims(const struct byi_samples *s,
                         const struct byoc_dim **dims)
{
    const uint32_t round = last_valid_round(s);
    uint32_t n = 0;
    if (!round)
        return 0;
    struct byoc_dim *list =
        byi_arena_calloc(s->arena, s->n_symbols, sizeof *list);
    for (uint32_t i = 0; i < s->n_symbols; i++)
        if (is_bound(s, i))
            list[n++] = (struct byoc_dim){
                .name = s->m->symbols.at[i],
                .size = size_of(s, round - 1, -1 - (int64_t)i)};
    *dims = list;
    return n;
}

const char *byi_sample_text(const struct byi_samples *s, uint32_t round)
{
    struct byi_text text = {0};
    for (uint32_t i = 0; i < s->n_symbols; i++)
        if (is_bound(s, i))
            byi_text_addf(&text, "%s%s=%lld", text.n ? ", " : "",
                          s->m->symbols.at[i],
                          (long long)size_of(s, round, -1 - (int64_t)i));
    const char *in_arena = byi_arena_str(s->arena, text.at ? text.at : "");
    byi_text_free(&text);
    return in_arena;
}
