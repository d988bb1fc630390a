/* samples.c: what shapes a module's values have for some sizes of the inputs'
 * symbolic dims. The type rules are run forward with numbers in place of names,
 * and small values that follow from sizes alone are computed, as the runtime
 * does it when it meets sizes (runtime/specialise.c): what has a shape here has
 * one there, and what has none depends on data.
 */
#include "partition.h"

#include <string.h>

enum { MAX_COMPUTED = 1024 }; /* elements; as at run time */

/* Of one function, for one round of sizes. */
struct shapes {
    const struct byi_type **type;    /* by node; NULL: not known      */
    const struct byi_tensor **value; /* by node; NULL: not known      */
};

struct byi_samples {
    const struct byi_module *m;
    struct byi_pass_context *ctx;
    struct byi_arena *arena;
    uint32_t n_rounds;
    struct shapes **of; /* by round, by function of the module */
    const char **fault; /* by round: sizes that the model does not take */
    uint32_t n_funcs;
};

static const int64_t usual[] = {1, 2, 64};

/* --- sizes ---------------------------------------------------------------- */

static const struct byi_size_list *list_of(const struct byi_vendors *v,
                                           const char *name)
{
    for (uint32_t i = 0; i < v->n_sizes; i++)
        if (strcmp(v->sizes[i].name, name) == 0)
            return &v->sizes[i];
    return NULL;
}

/* The size of a dim with a name; -1: it is nobody's input. */
static int64_t size_of(const struct byi_samples *s, uint32_t round, int64_t dim)
{
    const char *name = byi_symbol_name(s->m, dim);
    const struct byi_size_list *list = list_of(s->ctx->vendors, name);
    if (*name == '?')
        return -1;
    return list ? list->at[round % list->n] : usual[round % BYI_COUNT(usual)];
}

static uint32_t count_rounds(const struct byi_vendors *v)
{
    uint32_t n = BYI_COUNT(usual);
    for (uint32_t i = 0; i < v->n_sizes; i++)
        n = v->sizes[i].n > n ? v->sizes[i].n : n;
    return n;
}

/* The type with numbers; NULL where one is not known. */
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
    return byi_type_tensor(s->arena, type->dtype, type->rank, dims);
}

/* --- one node ------------------------------------------------------------- */

/* The value of a call, where it is small and follows from what is known. */
static const struct byi_tensor *compute(const struct byi_samples *s,
                                        const struct byi_node *node,
                                        const struct byi_type *const *in,
                                        const struct byi_tensor *const *known,
                                        const struct byi_type *type)
{
    const bool asks_shape =
        node->op == BYI_OP_SHAPE_OF || node->op == BYI_OP_SIZE_OF;
    if (!s->ctx->eval || node->n_args == 0 || byi_op_is_random(node->op) ||
        type->kind != BYI_TENSOR || type->dtype == BYOC_STRING ||
        byi_elements(type->rank, type->dims) > MAX_COMPUTED)
        return NULL;
    struct byi_tensor *args =
        byi_arena_calloc(s->arena, node->n_args, sizeof *args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        if (!known[i] && !asks_shape)
            return NULL;
        args[i] = known[i] ? *known[i] : byi_tensor_of(in[i]);
    }
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
    const struct byi_tensor **known =
        byi_arena_calloc(s->arena, node->n_args, sizeof *known);
    struct byoc_error err;
    for (uint32_t i = 0; i < node->n_args; i++) {
        in[i] = sh->type[node->args[i]];
        known[i] = sh->value[node->args[i]];
        if (!in[i])
            return;
    }
    struct byi_infer infer = {.arena = s->arena,
                              .op = byi_op(node->op),
                              .attrs = node->attrs,
                              .n_in = node->n_args,
                              .in = in,
                              .value = known,
                              .err = &err};
    const struct byi_type *type;
    if (byi_infer_type(&infer, &type) != BYOC_OK) {
        if (!s->fault[round])
            s->fault[round] = byi_arena_str(s->arena, err.text);
        return;
    }
    if (!byi_type_all_static(type))
        return;
    sh->type[id] = type;
    sh->value[id] = compute(s, node, in, known, type);
}

/* A tuple of known types. */
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

static struct shapes *shapes_new(const struct byi_samples *s,
                                 const struct byi_func *f)
{
    struct shapes *sh = byi_arena_calloc(s->arena, 1, sizeof *sh);
    sh->type = byi_arena_calloc(s->arena, f->nodes.n, sizeof *sh->type);
    sh->value = byi_arena_calloc(s->arena, f->nodes.n, sizeof *sh->value);
    return sh;
}

static void walk(struct byi_samples *s, uint32_t round,
                 const struct byi_func *f, struct shapes *sh);

/* A composite that another vendor was given before; there is none in it. */
static const struct byi_type *call_composite(struct byi_samples *s,
                                             uint32_t round,
                                             const struct byi_func *body,
                                             const struct shapes *sh,
                                             const struct byi_node *node)
{
    struct shapes *in = shapes_new(s, body);
    for (uint32_t i = 0; i < body->params.n; i++)
        in->type[body->params.at[i]] = sh->type[node->args[1 + i]];
    walk(s, round, body, in);
    return in->type[body->result];
}

static const struct byi_type *field_of(const struct byi_type *tuple, uint32_t i)
{
    return tuple && tuple->kind == BYI_TUPLE ? tuple->fields[i] : NULL;
}

static void visit(struct byi_samples *s, uint32_t round,
                  const struct byi_func *f, const struct shapes *sh, byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    const struct byi_func *body = byi_composite_of(s->m, f, node);
    switch (node->kind) {
    case BYI_CONST: {
        const struct byi_const *c = &s->m->consts.at[node->index];
        struct byi_tensor *t = byi_arena_calloc(s->arena, 1, sizeof *t);
        *t = byi_tensor_of(c->type);
        t->data = (void *)(uintptr_t)c->data;
        sh->type[id] = c->type;
        sh->value[id] = t;
        break;
    }
    case BYI_CALL_OP:
        visit_op(s, round, sh, node, id);
        break;
    case BYI_MAKE_TUPLE:
        sh->type[id] = tuple_of(s, sh, node);
        break;
    case BYI_GET:
        sh->type[id] = field_of(sh->type[node->args[0]], node->index);
        break;
    case BYI_FN:
    case BYI_GLOBAL:
        break;
    case BYI_PARAM:
    case BYI_CALL:
    case BYI_IF:
        if (body)
            sh->type[id] = call_composite(s, round, body, sh, node);
        else if (!sh->type[id])
            sh->type[id] = put_sizes(s, round, node->type);
        break;
    }
}

static void walk(struct byi_samples *s, uint32_t round,
                 const struct byi_func *f, struct shapes *sh)
{
    for (byi_id id = 0; id < f->nodes.n; id++)
        visit(s, round, f, sh, id);
}

/* --- all of them ---------------------------------------------------------- */

struct byi_samples *byi_samples_new(const struct byi_module *m,
                                    struct byi_pass_context *ctx,
                                    struct byi_arena *arena)
{
    bool open = false;
    for (uint32_t i = 0; i < m->symbols.n && !open; i++)
        open = *m->symbols.at[i] != '?';
    if (!open)
        return NULL;
    struct byi_samples *s = byi_arena_calloc(arena, 1, sizeof *s);
    *s = (struct byi_samples){.m = m,
                              .ctx = ctx,
                              .arena = arena,
                              .n_rounds = count_rounds(ctx->vendors),
                              .n_funcs = m->funcs.n};
    s->of = byi_arena_calloc(arena, s->n_rounds, sizeof *s->of);
    s->fault = byi_arena_calloc(arena, s->n_rounds, sizeof *s->fault);
    for (uint32_t r = 0; r < s->n_rounds; r++) {
        s->of[r] = byi_arena_calloc(arena, m->funcs.n, sizeof **s->of);
        for (uint32_t i = 0; i < m->funcs.n; i++) {
            const struct byi_func *f = m->funcs.at[i];
            if (f->dead || f->attr.compiler || f->attr.composite)
                continue;
            s->of[r][i] = *shapes_new(s, f);
            walk(s, r, f, &s->of[r][i]);
        }
    }
    return s;
}

uint32_t byi_samples_rounds(const struct byi_samples *s)
{
    return s ? s->n_rounds : 0;
}

const struct byi_type *byi_sample_type(const struct byi_samples *s,
                                       uint32_t round, uint32_t func, byi_id id)
{
    if (func >= s->n_funcs || !s->of[round][func].type)
        return NULL;
    return s->of[round][func].type[id];
}

const char *byi_sample_fault(const struct byi_samples *s)
{
    for (uint32_t r = 0; r < s->n_rounds; r++)
        if (!s->fault[r])
            return NULL;
    return s->fault[s->n_rounds - 1];
}

const char *byi_sample_text(const struct byi_samples *s, uint32_t round)
{
    struct byi_text text = {0};
    for (uint32_t i = 0; i < s->m->symbols.n; i++)
        if (*s->m->symbols.at[i] != '?')
            byi_text_addf(&text, "%s%s=%lld", text.n ? ", " : "",
                          s->m->symbols.at[i],
                          (long long)size_of(s, round, -1 - (int64_t)i));
    const char *kept = byi_arena_str(s->arena, text.at ? text.at : "");
    byi_text_free(&text);
    return kept;
}
