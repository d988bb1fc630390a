/* SPDX-License-Identifier: Apache-2.0 */
/* ir_build.c: appends nodes to a function. Each builder checks the operands and
 * sets the node's type, so that types are never inferred twice.
 */
#include "ir.h"
#include "core/base/guard.h"

#include <assert.h>
#include <string.h>

/* --- nodes -------------------------------------------------------------- */

static byi_id append_node(struct byi_module *m, struct byi_func *f,
                          struct byi_node node)
{
    byi_id *args = NULL;

    if (node.n_args) {
        args = byi_args_new(m, node.n_args);
        memcpy(args, node.args, node.n_args * sizeof *args);
    }
    node.args = args;
    return byi_add_node(f, node);
}

byi_id byi_add_const(struct byi_module *m, struct byi_func *f,
                     uint32_t constant, const struct byi_sources *sources)
{
    assert(constant < m->consts.n);
    return append_node(m, f,
                       (struct byi_node){
                           .kind = BYI_CONST,
                           .index = constant,
                           .type = m->consts.at[constant].type,
                           .sources = sources,
                       });
}

byi_id byi_add_global(struct byi_module *m, struct byi_func *f, uint32_t func)
{
    const struct byi_type *type = byi_func_type(m, func);

    assert(type);
    return append_node(m, f,
                       (struct byi_node){
                           .kind = BYI_GLOBAL,
                           .index = func,
                           .type = type,
                       });
}

byi_id byi_add_fn(struct byi_module *m, struct byi_func *f, uint32_t func,
                  const byi_id *captures, uint32_t n,
                  const struct byi_sources *sources)
{
    const struct byi_type *type = byi_func_type(m, func);

    assert(type && m->funcs.at[func]->n_captures == n);
    return append_node(m, f,
                       (struct byi_node){
                           .kind = BYI_FN,
                           .index = func,
                           .n_args = n,
                           .args = captures,
                           .type = type,
                           .sources = sources,
                       });
}

/* The types of nodes: in `buffer` if they fit, otherwise on the heap. */
enum { BUFFER_OPERANDS = 16 };
static const struct byi_type **types_of(const struct byi_func *f,
                                        const byi_id *args, uint32_t n,
                                        const struct byi_type **buffer)
{
    const struct byi_type **types = buffer;

    if (n > BUFFER_OPERANDS)
        types = byi_own(n, sizeof *types, NULL);
    for (uint32_t i = 0; i < n; i++) {
        assert(args[i] < f->nodes.n);
        types[i] = f->nodes.at[args[i]].type;
    }
    return types;
}

static void release_types(const struct byi_type **types,
                          const struct byi_type **buffer)
{
    if (types != buffer)
        byi_vec_free(types);
}

byi_id byi_add_tuple(struct byi_module *m, struct byi_func *f,
                     const byi_id *args, uint32_t n,
                     const struct byi_sources *sources)
{
    const struct byi_type *buffer[BUFFER_OPERANDS] = {NULL},
                          **types = types_of(f, args, n, buffer);
    byi_id id = append_node(m, f,
                            (struct byi_node){
                                .kind = BYI_MAKE_TUPLE,
                                .n_args = n,
                                .args = args,
                                .type = byi_type_tuple(m->arena, n, types),
                                .sources = sources,
                            });

    release_types(types, buffer);
    return id;
}

/* --- messages ----------------------------------------------------------- */

/* "float32 (1, 3)", "a tuple of 2 fields", "a function of 1 parameter". Returns
 * buf. */
static const char *describe_type(char buf[160], const struct byi_type *type)
{
    char dims[120];
    int n = 0;

    for (; byi_type_is_list(type) && n < 64; type = type->fields[0])
        n += snprintf(buf + n, 160 - (size_t)n, "%s of ",
                      byi_type_kind_text(type->kind));
    char *rest = buf + n;
    const size_t room = 160 - (size_t)n;
    if (type->kind == BYI_TENSOR)
        snprintf(rest, room, "%s %s", byoc_dtype_name(type->dtype),
                 byi_dims_text(dims, sizeof dims, type->rank, type->dims));
    else if (type->kind == BYI_ANY_TENSOR || type->kind == BYI_NO_TENSOR)
        snprintf(rest, room, "%s %s",
                 type->kind == BYI_ANY_TENSOR ? "any" : "no",
                 byoc_dtype_name(type->dtype));
    else
        snprintf(rest, room, "%s of %u %s%s", byi_type_kind_text(type->kind),
                 type->n_fields, type->kind == BYI_FUNC ? "parameter" : "field",
                 byi_plural(type->n_fields));
    return buf;
}

/* --- operators ---------------------------------------------------------- */

static int64_t add_symbol(void *ctx)
{
    return byi_symbol_new(ctx);
}

static enum byoc_status check_tensors(const struct byi_op *op,
                                      const struct byi_type *const *types,
                                      uint32_t n, struct byoc_error *err)
{
    char found[160];

    for (uint32_t i = 0; i < n && !byi_op_has(op->id, BYI_TRAIT_LIST); i++)
        if (types[i]->kind != BYI_TENSOR)
            return byi_fail(err, BYOC_ETYPE,
                            "%s: operand %u is %s, expected a tensor", op->name,
                            i, describe_type(found, types[i]));
    return BYOC_OK;
}

/* Infer the result of a call on operands whose types are known. */
static enum byoc_status infer_call(
    struct byi_module *m, const struct byi_func *f, const struct byi_op *op,
    const byi_id *args, uint32_t n, const struct byi_type *const *types,
    const struct byi_attrs *attrs, const struct byi_type **out,
    struct byoc_error *err)
{
    struct byi_tensor views[BUFFER_OPERANDS], *view = views;
    const struct byi_tensor *values[BUFFER_OPERANDS], **value = values;
    enum byoc_status status;

    if (n > BUFFER_OPERANDS) {
        view = byi_own(n, sizeof *view, NULL);
        value = byi_own(n, sizeof *value, NULL);
    }
    for (uint32_t i = 0; i < n; i++)
        value[i] = byi_const_view(m, f, args[i], &view[i]) ? &view[i] : NULL;
    status = byi_infer_type(
        &(struct byi_infer){
            .arena = m->arena,
            .op = op,
            .attrs = attrs,
            .n_in = n,
            .in = types,
            .value = value,
            .new_symbol = add_symbol,
            .symbol_ctx = m,
            .err = err,
        },
        out);
    if (n > BUFFER_OPERANDS) {
        byi_vec_free(view);
        byi_vec_free(value);
    }
    return status;
}

enum byoc_status byi_add_op(struct byi_module *m, struct byi_func *f,
                            enum byi_op_id op, const byi_id *args, uint32_t n,
                            const struct byi_attrs *attrs,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err)
{
    const struct byi_op *row = byi_op(op);
    const struct byi_type *buffer[BUFFER_OPERANDS], **types = NULL,
                                                    *type = NULL;
    enum byoc_status status;

    if (n > BYI_MAX_ARGS)
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found %u operands, expected at most %d", row->name,
                        n, BYI_MAX_ARGS);
    if (!attrs)
        BYI_TRY(byi_attrs_make(m->arena, row, NULL, 0, &attrs, err));
    types = types_of(f, args, n, buffer);
    status = check_tensors(row, types, n, err);
    if (status == BYOC_OK)
        status = infer_call(m, f, row, args, n, types, attrs, &type, err);
    release_types(types, buffer);
    if (status != BYOC_OK)
        return status;
    *id = append_node(m, f,
                      (struct byi_node){
                          .kind = BYI_CALL_OP,
                          .op = op,
                          .n_args = n,
                          .args = args,
                          .attrs = attrs,
                          .type = type,
                          .sources = sources,
                      });
    return BYOC_OK;
}

enum byoc_status byi_add_call(struct byi_module *m, struct byi_func *f,
                              enum byi_op_id op, const byi_id *args, uint32_t n,
                              const struct byi_attr *list, uint32_t n_list,
                              const struct byi_sources *sources, byi_id *id,
                              struct byoc_error *err)
{
    const struct byi_attrs *attrs = NULL;

    BYI_TRY(byi_attrs_make(m->arena, byi_op(op), list, n_list, &attrs, err));
    return byi_add_op(m, f, op, args, n, attrs, sources, id, err);
}

/* --- calls of functions ------------------------------------------------- */

/* A symbol of the callee's parameters and the caller's dim for it. */
struct dim_binding {
    int64_t symbol, dim;
};

/* The list is searched linearly while it has fewer than MAX_LINEAR elements.
 * Afterwards of_symbol has, by symbol, 1 + the position in the list, or 0. */
enum { MAX_LINEAR = 64 };
struct bindings {
    BYI_VEC(struct dim_binding) list;
    uint32_t *of_symbol, n_symbols;
};

static const struct dim_binding *find_binding(const struct bindings *b,
                                              int64_t symbol)
{
    if (b->of_symbol) {
        uint32_t i = b->of_symbol[-1 - symbol];
        return i ? &b->list.at[i - 1] : NULL;
    }
    for (uint32_t i = 0; i < b->list.n; i++)
        if (b->list.at[i].symbol == symbol)
            return &b->list.at[i];
    return NULL;
}

static void index_bindings(struct bindings *b)
{
    b->of_symbol = byi_own(b->n_symbols, sizeof *b->of_symbol, NULL);
    for (uint32_t i = 0; i < b->list.n; i++)
        b->of_symbol[-1 - b->list.at[i].symbol] = i + 1;
}

static bool bind_dim(struct bindings *b, int64_t param, int64_t arg)
{
    const struct dim_binding *binding = NULL;

    if (!BYI_IS_SYMBOL(param))
        return param == arg;
    binding = find_binding(b, param);
    if (binding)
        return binding->dim == arg;
    BYI_PUSH(&b->list, ((struct dim_binding){param, arg}));
    if (b->of_symbol)
        b->of_symbol[-1 - param] = b->list.n;
    else if (b->list.n == MAX_LINEAR)
        index_bindings(b);
    return true;
}

static bool bind_tensor(struct bindings *b, const struct byi_type *param,
                        const struct byi_type *arg)
{
    if (arg->kind != BYI_TENSOR || param->dtype != arg->dtype ||
        param->rank != arg->rank)
        return false;
    for (uint32_t i = 0; i < param->rank; i++)
        if (!bind_dim(b, param->dims[i], arg->dims[i]))
            return false;
    return true;
}

/* Whether an argument matches a parameter. A symbol matches any size, but the
 * same one everywhere. Tensors in a tuple bind symbols, too; deeper types must
 * be equal. */
static bool bind_type(struct bindings *b, const struct byi_type *param,
                      const struct byi_type *arg)
{
    if (param->kind == BYI_TENSOR)
        return bind_tensor(b, param, arg);
    if (byi_type_is_list(param))
        return byi_type_accepts(param, arg);
    if (param->kind != BYI_TUPLE || arg->kind != BYI_TUPLE)
        return byi_type_equal(param, arg);
    if (param->n_fields != arg->n_fields)
        return false;
    for (uint32_t i = 0; i < param->n_fields; i++) {
        const struct byi_type *p = param->fields[i], *a = arg->fields[i];
        if (p->kind == BYI_TENSOR ? !bind_tensor(b, p, a)
            : byi_type_is_list(p) ? !byi_type_accepts(p, a)
                                  : !byi_type_equal(p, a))
            return false;
    }
    return true;
}

static const struct byi_type *replace_tensor(struct byi_arena *arena,
                                             const struct bindings *b,
                                             const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    bool changed = false;

    if (type->kind != BYI_TENSOR || type->rank > BYI_MAX_RANK)
        return type;
    for (uint32_t d = 0; d < type->rank; d++) {
        const struct dim_binding *binding = BYI_IS_SYMBOL(type->dims[d])
                                                ? find_binding(b, type->dims[d])
                                                : NULL;
        dims[d] = binding ? binding->dim : type->dims[d];
        changed = changed || dims[d] != type->dims[d];
    }
    return changed ? byi_type_tensor(arena, type->dtype, type->rank, dims)
                   : type;
}

/* The type of the callee's result in the caller, with symbols replaced. */
static const struct byi_type *replace_symbols(struct byi_arena *arena,
                                              const struct bindings *b,
                                              const struct byi_type *type)
{
    const struct byi_type **fields = NULL;
    bool changed = false;

    if (b->list.n == 0 || type->kind != BYI_TUPLE)
        return replace_tensor(arena, b, type);
    fields = byi_arena_calloc(arena, type->n_fields, sizeof *fields);
    for (uint32_t i = 0; i < type->n_fields; i++) {
        fields[i] = replace_tensor(arena, b, type->fields[i]);
        changed = changed || fields[i] != type->fields[i];
    }
    return changed ? byi_type_tuple(arena, type->n_fields, fields) : type;
}

enum byoc_status byi_apply_type(
    const struct byi_module *m, struct byi_arena *arena,
    const struct byi_func *f, const struct byi_type *callee, const byi_id *args,
    uint32_t n, const struct byi_type **out, struct byoc_error *err)
{
    struct bindings b = {.n_symbols = m->symbols.n};
    enum byoc_status status = BYOC_OK;
    char found[160], expected[160];

    if (callee->kind != BYI_FUNC)
        return byi_fail(err, BYOC_ETYPE, "call: found %s, expected a function",
                        describe_type(found, callee));
    if (callee->n_fields != n)
        return byi_fail(err, BYOC_ETYPE,
                        "call: found %u arguments, expected %u", n,
                        callee->n_fields);
    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        const struct byi_type *type = f->nodes.at[args[i]].type;
        const struct byi_type *param = callee->fields[i];
        if (!bind_type(&b, param, type))
            status = byi_fail(
                err, BYOC_ETYPE, "call: argument %u is %s, expected %s", i,
                describe_type(found, type), describe_type(expected, param));
    }
    if (status == BYOC_OK)
        *out = replace_symbols(arena, &b, callee->result);
    byi_vec_free(b.list.at);
    byi_vec_free(b.of_symbol);
    return status;
}

enum byoc_status byi_add_apply(struct byi_module *m, struct byi_func *f,
                               byi_id callee, const byi_id *args, uint32_t n,
                               const struct byi_sources *sources, byi_id *id,
                               struct byoc_error *err)
{
    const struct byi_type *type = NULL;
    byi_id *callee_and_args = NULL;

    BYI_TRY(byi_apply_type(m, m->arena, f, f->nodes.at[callee].type, args, n,
                           &type, err));
    callee_and_args = byi_args_new(m, n + 1);
    callee_and_args[0] = callee;
    if (n)
        memcpy(callee_and_args + 1, args, n * sizeof *args);
    *id = byi_add_node(f, (struct byi_node){
                              .kind = BYI_CALL,
                              .n_args = n + 1,
                              .args = callee_and_args,
                              .type = type,
                              .sources = sources,
                          });
    return BYOC_OK;
}

enum byoc_status byi_add_get(struct byi_module *m, struct byi_func *f,
                             byi_id tuple, uint32_t index,
                             const struct byi_sources *sources, byi_id *id,
                             struct byoc_error *err)
{
    const struct byi_type *type = f->nodes.at[tuple].type;
    char found[160];

    if (type->kind != BYI_TUPLE)
        return byi_fail(err, BYOC_ETYPE,
                        "projection .%u: found %s, expected a tuple", index,
                        describe_type(found, type));
    if (index >= type->n_fields)
        return byi_fail(err, BYOC_ETYPE,
                        "projection .%u: found a tuple of %u field%s, expected "
                        "at least %lld",
                        index, type->n_fields, byi_plural(type->n_fields),
                        (long long)index + 1);
    *id = append_node(m, f,
                      (struct byi_node){
                          .kind = BYI_GET,
                          .index = index,
                          .n_args = 1,
                          .args = &tuple,
                          .type = type->fields[index],
                          .sources = sources,
                      });
    return BYOC_OK;
}

/* --- if ----------------------------------------------------------------- */

/* The join of two types that are not both tuples: in tensors, sizes that differ
 * become new symbols. NULL if kind, dtype or rank differ. */
static const struct byi_type *join_tensors(struct byi_arena *arena,
                                           const struct byi_type *a,
                                           const struct byi_type *b,
                                           int64_t (*new_symbol)(void *),
                                           void *ctx)
{
    int64_t dims[BYI_MAX_RANK];

    if (byi_type_equal(a, b))
        return a;
    if (byi_type_is_list(a))
        return byi_type_join(arena, a, b);
    if (a->kind != BYI_TENSOR || b->kind != BYI_TENSOR ||
        a->dtype != b->dtype || a->rank != b->rank || a->rank > BYI_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < a->rank; i++)
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : new_symbol(ctx);
    return byi_type_tensor(arena, a->dtype, a->rank, dims);
}

static const struct byi_type *join_types(struct byi_arena *arena,
                                         const struct byi_type *a,
                                         const struct byi_type *b,
                                         int64_t (*new_symbol)(void *),
                                         void *ctx)
{
    const struct byi_type **fields = NULL;

    if (a->kind != BYI_TUPLE || b->kind != BYI_TUPLE || byi_type_equal(a, b))
        return join_tensors(arena, a, b, new_symbol, ctx);
    if (a->n_fields != b->n_fields)
        return NULL;
    fields = byi_arena_calloc(arena, a->n_fields, sizeof *fields);
    for (uint32_t i = 0; i < a->n_fields; i++) {
        fields[i] =
            join_tensors(arena, a->fields[i], b->fields[i], new_symbol, ctx);
        if (!fields[i])
            return NULL;
    }
    return byi_type_tuple(arena, a->n_fields, fields);
}

enum byoc_status byi_if_type(struct byi_arena *arena,
                             const struct byi_type *cond,
                             const struct byi_type *then,
                             const struct byi_type *otherwise,
                             int64_t (*new_symbol)(void *), void *ctx,
                             const struct byi_type **out,
                             struct byoc_error *err)
{
    char text[160], else_text[160];

    if (cond->kind != BYI_TENSOR || cond->dtype != BYOC_BOOL ||
        byi_elements(cond->rank, cond->dims) != 1)
        return byi_fail(err, BYOC_ETYPE,
                        "if: the condition is %s, expected one bool",
                        describe_type(text, cond));
    if (then->kind != BYI_FUNC || otherwise->kind != BYI_FUNC ||
        then->n_fields != 0 || otherwise->n_fields != 0)
        return byi_fail(err, BYOC_ETYPE,
                        "if: the branches are %s and %s, expected functions "
                        "without parameters",
                        describe_type(text, then),
                        describe_type(else_text, otherwise));
    *out = join_types(arena, then->result, otherwise->result, new_symbol, ctx);
    if (!*out)
        return byi_fail(err, BYOC_ETYPE,
                        "if: the branches give %s and %s, expected the same "
                        "dtype and rank",
                        describe_type(text, then->result),
                        describe_type(else_text, otherwise->result));
    return BYOC_OK;
}

enum byoc_status byi_add_if(struct byi_module *m, struct byi_func *f,
                            byi_id cond, byi_id then, byi_id otherwise,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err)
{
    byi_id args[3] = {cond, then, otherwise};
    const struct byi_type *type = NULL;

    BYI_TRY(byi_if_type(m->arena, f->nodes.at[cond].type,
                        f->nodes.at[then].type, f->nodes.at[otherwise].type,
                        add_symbol, m, &type, err));
    *id = append_node(m, f,
                      (struct byi_node){
                          .kind = BYI_IF,
                          .n_args = 3,
                          .args = args,
                          .type = type,
                          .sources = sources,
                      });
    return BYOC_OK;
}

/* --- copies ------------------------------------------------------------- */

/* Whether operand `id` of f and `old` have the same type and the same known
 * value for type rules. */
static bool same_operand(const struct byi_func *from, byi_id old,
                         const struct byi_func *f, byi_id id)
{
    const struct byi_node *a = &from->nodes.at[old], *b = &f->nodes.at[id];

    if (!byi_type_equal(a->type, b->type))
        return false;
    if (a->kind != BYI_CONST && b->kind != BYI_CONST)
        return true;
    return a->kind == b->kind && a->index == b->index;
}

/* Whether a node moves with unchanged operands: then it keeps its type, and
 * with it the symbols of sizes that depend on data. */
static bool same_operands(const struct byi_func *f, const struct byi_func *from,
                          const struct byi_node *old, const byi_id *args)
{
    for (uint32_t i = 0; i < old->n_args; i++)
        if (!same_operand(from, old->args[i], f, args[i]))
            return false;
    return true;
}

/* Append a copy of `old` with operands args[0 .. old->n_args - 1]. */
static byi_id append_unchanged(struct byi_module *m, struct byi_func *f,
                               const struct byi_node *old, const byi_id *args)
{
    struct byi_node node = *old;

    if (old->n_args == 0 ||
        memcmp(args, old->args, old->n_args * sizeof *args) == 0)
        return byi_add_node(f, node);
    node.args = args;
    return append_node(m, f, node);
}

/* Whether the captures args[0..n-1] of f have the types of the parameters of
 * `func`. */
static bool captures_fit(const struct byi_module *m, const struct byi_func *f,
                         uint32_t func, const byi_id *args, uint32_t n)
{
    const struct byi_func *body = m->funcs.at[func];

    for (uint32_t i = 0; i < n; i++) {
        byi_id param = body->params.at[body->params.n - n + i];
        if (!byi_type_equal(f->nodes.at[args[i]].type,
                            body->nodes.at[param].type))
            return false;
    }
    return true;
}

/* Rebuild the function literal `func` for captures of other types, so that
 * sizes known outside are known inside, too. The old function stays, since
 * the rebuild around it may be abandoned. Recursion is as deep as function
 * literals are nested. */
static enum byoc_status retype_literal(struct byi_module *m,
                                       const struct byi_func *f, uint32_t func,
                                       const byi_id *args, uint32_t n,
                                       uint32_t *copy, struct byoc_error *err)
{
    const struct byi_func *body = m->funcs.at[func];
    byi_id *map = byi_own(body->nodes.n + 1u, sizeof *map, NULL);
    enum byoc_status status = BYOC_OK;
    struct byi_func *new_func;

    *copy = byi_func_new(m, NULL);
    m->funcs.at[*copy]->type = body->type;
    m->funcs.at[*copy]->n_captures = n;
    new_func = byi_func_like(m, body, map);
    for (uint32_t i = 0; i < n; i++) {
        byi_id param = new_func->params.at[new_func->params.n - n + i];
        new_func->nodes.at[param].type = f->nodes.at[args[i]].type;
    }
    for (byi_id id = 0; id < body->nodes.n && status == BYOC_OK; id++) {
        const struct byi_node *node = &body->nodes.at[id];
        if (node->kind == BYI_PARAM)
            continue;
        status = byi_add_copy(m, new_func, body, id, map, &map[id], err);
        if (status == BYOC_OK && node->kind == BYI_FN && node->index == func)
            /* the function calls itself */
            new_func->nodes.at[map[id]].index = *copy;
    }
    if (status == BYOC_OK)
        new_func->result = map[body->result];
    byi_func_replace(m, *copy, new_func);
    byi_vec_free(map);
    return status;
}

/* Copy a function literal. `is_self`: it is a function's literal of itself,
 * whose captures are the function's own, so that their types need no check. */
static enum byoc_status copy_literal(struct byi_module *m, struct byi_func *f,
                                     const struct byi_node *old,
                                     const byi_id *args, bool is_self,
                                     byi_id *id, struct byoc_error *err)
{
    uint32_t func = old->index;

    if (!is_self && !captures_fit(m, f, func, args, old->n_args))
        BYI_TRY(
            retype_literal(m, f, old->index, args, old->n_args, &func, err));
    *id = byi_add_fn(m, f, func, args, old->n_args, old->sources);
    return BYOC_OK;
}

/* Append a copy of `old`. `moves`: it keeps its type if its operands are
 * unchanged. */
static enum byoc_status append_copy(struct byi_module *m, struct byi_func *f,
                                    const struct byi_func *from,
                                    const struct byi_node *old,
                                    const byi_id *args, bool moves, byi_id *id,
                                    struct byoc_error *err)
{
    switch (old->kind) {
    case BYI_PARAM:
        break;
    case BYI_CONST:
        *id = byi_add_const(m, f, old->index, old->sources);
        return BYOC_OK;
    case BYI_GLOBAL:
        *id = byi_add_global(m, f, old->index);
        return BYOC_OK;
    case BYI_FN:
        return copy_literal(m, f, old, args,
                            moves && from == m->funcs.at[old->index], id, err);
    case BYI_MAKE_TUPLE:
        *id = byi_add_tuple(m, f, args, old->n_args, old->sources);
        return BYOC_OK;
    case BYI_GET:
        return byi_add_get(m, f, args[0], old->index, old->sources, id, err);
    case BYI_CALL:
        return byi_add_apply(m, f, args[0], args + 1, old->n_args - 1,
                             old->sources, id, err);
    case BYI_IF:
    case BYI_CALL_OP:
        if (moves && same_operands(f, from, old, args)) {
            *id = append_unchanged(m, f, old, args);
            return BYOC_OK;
        }
        if (old->kind == BYI_IF)
            return byi_add_if(m, f, args[0], args[1], args[2], old->sources, id,
                              err);
        return byi_add_op(m, f, old->op, args, old->n_args, old->attrs,
                          old->sources, id, err);
    }
    assert(!"a parameter is not copied");
    byi_unreachable();
}

static enum byoc_status add_copy(struct byi_module *m, struct byi_func *f,
                                 const struct byi_func *from, byi_id old,
                                 const byi_id *map, bool moves, byi_id *id,
                                 struct byoc_error *err)
{
    /* a copy: if f is `from`, appending moves its nodes */
    const struct byi_node node = from->nodes.at[old];
    byi_id buffer[BUFFER_OPERANDS], *args = buffer;
    enum byoc_status status;

    if (node.n_args > BUFFER_OPERANDS)
        args = byi_own(node.n_args, sizeof *args, NULL);
    for (uint32_t i = 0; i < node.n_args; i++)
        args[i] = map[node.args[i]];
    status = append_copy(m, f, from, &node, args, moves, id, err);
    if (status == BYOC_OK) {
        f->nodes.at[*id].backend = node.backend;
        f->nodes.at[*id].region = node.region;
        f->nodes.at[*id].let = node.let;
        f->nodes.at[*id].sources = node.sources;
    }
    if (args != buffer)
        byi_vec_free(args);
    return status;
}

enum byoc_status byi_add_copy(struct byi_module *m, struct byi_func *f,
                              const struct byi_func *from, byi_id old,
                              const byi_id *map, byi_id *id,
                              struct byoc_error *err)
{
    return add_copy(m, f, from, old, map, f->origin == from, id, err);
}

enum byoc_status byi_add_moved(struct byi_module *m, struct byi_func *f,
                               const struct byi_func *from, byi_id old,
                               const byi_id *map, byi_id *id,
                               struct byoc_error *err)
{
    return add_copy(m, f, from, old, map, true, id, err);
}
