/* SPDX-License-Identifier: Apache-2.0 */
/* interp.c: runs the IR node by node (interp.h). */
#include "interp.h"

#include <math.h>
#include <string.h>

#include "runtime_native/native.h"

enum {
    MAX_DEPTH = 100000, /* of nested calls */
    MAX_OPERANDS = 512, /* of one node */
};

enum value_kind { TENSOR, TUPLE, FUNC };

/* The value of a node. */
struct value {
    enum value_kind kind;
    struct byi_tensor t; /* TENSOR */
    uint32_t n;          /* fields of a tuple, captures of a function */
    const struct value *fields;
    uint32_t func; /* FUNC: its index in the module */
};

/* A function that is being run. values[base..] are its nodes' values. */
struct active_call {
    const struct byi_func *f;
    byi_id at; /* the next node; of a caller: the call that it waits for */
    uint32_t base;
};

/* The state of running a module. */
struct interp {
    const struct byi_module *m;
    struct byi_arena *arena;
    struct byoc_error *err;
    int64_t last_symbol;    /* made for an unknown dim; each is one less */
    byi_perturb_fn perturb; /* or NULL */
    void *perturb_ctx;
    BYI_VEC(struct active_call) calls; /* the outermost first */
    BYI_VEC(struct value) values;
};

static int64_t new_symbol(void *ctx)
{
    struct interp *in = ctx;
    return --in->last_symbol;
}

/* Make the tensor for a result. Dims that only the kernel determines start at
 * an upper bound, the number of elements of the largest operand. */
static enum byoc_status make_result(struct interp *in,
                                    const struct byi_type *type,
                                    const struct byi_tensor *args, uint32_t n,
                                    struct byi_tensor *out)
{
    int64_t bound = 1;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t elements = byi_elements(args[i].rank, args[i].dims);
        bound = elements > bound ? elements : bound;
    }
    *out = (struct byi_tensor){.dtype = type->dtype, .rank = type->rank};
    for (uint32_t i = 0; i < type->rank; i++)
        out->dims[i] = BYI_IS_SYMBOL(type->dims[i]) ? bound : type->dims[i];
    const uint64_t bytes = byi_tensor_bytes(out);
    if (bytes > (uint64_t)4 << 30)
        return byi_fail(in->err, BYOC_ELIMIT,
                        "found a result of %llu bytes, expected at most 4 GiB",
                        (unsigned long long)bytes);
    out->data = byi_arena_data(in->arena, bytes);
    return BYOC_OK;
}

/* Copy the elements if they are floats, which in->perturb may change. */
static void copy_floats(struct interp *in, struct byi_tensor *t)
{
    const uint64_t bytes = byi_tensor_bytes(t);
    void *copy =
        byi_dtype_is_float(t->dtype) ? byi_arena_data(in->arena, bytes) : NULL;
    if (!copy)
        return;
    memcpy(copy, t->data, bytes);
    t->data = copy;
}

static enum byoc_status call_op(struct interp *in, const struct byi_func *f,
                                const struct byi_node *node,
                                const struct value *env, struct value *out)
{
    struct byi_tensor args[MAX_OPERANDS], results[16];
    const struct byi_type *types[MAX_OPERANDS];
    const struct byi_tensor *values[MAX_OPERANDS];
    if (node->n_args > MAX_OPERANDS)
        return byi_fail(in->err, BYOC_ELIMIT,
                        "found %u operands, expected at most %d", node->n_args,
                        MAX_OPERANDS);
    for (uint32_t i = 0; i < node->n_args; i++) {
        args[i] = env[node->args[i]].t;
        if (in->perturb)
            copy_floats(in, &args[i]);
        values[i] = &args[i];
        types[i] = byi_type_tensor(in->arena, args[i].dtype, args[i].rank,
                                   args[i].dims);
    }
    struct byi_infer infer = {.arena = in->arena,
                              .op = byi_op(node->op),
                              .attrs = node->attrs,
                              .n_in = node->n_args,
                              .in = types,
                              .value = values,
                              .bounds = true,
                              .new_symbol = new_symbol,
                              .symbol_ctx = in,
                              .err = in->err};
    const struct byi_type *type;
    BYI_TRY(byi_infer_type(&infer, &type));
    const bool tuple = type->kind == BYI_TUPLE;
    const uint32_t n = tuple ? type->n_fields : 1;
    if (n > BYI_COUNT(results))
        return byi_fail(in->err, BYOC_ELIMIT,
                        "found %u results, expected at most %zu", n,
                        BYI_COUNT(results));
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(make_result(in, tuple ? type->fields[i] : type, args,
                            node->n_args, &results[i]));
    if (in->perturb)
        in->perturb(in->perturb_ctx, f, node, args, NULL, 0);
    BYI_TRY(byi_kernel_eval(infer.op, node->attrs, node->n_args, args, n,
                            results, in->err));
    if (in->perturb)
        in->perturb(in->perturb_ctx, f, node, args, results, n);
    struct value *fields = byi_arena_calloc(in->arena, n, sizeof *fields);
    for (uint32_t i = 0; i < n; i++)
        fields[i] = (struct value){.kind = TENSOR, .t = results[i]};
    *out = tuple ? (struct value){.kind = TUPLE, .n = n, .fields = fields}
                 : fields[0];
    return BYOC_OK;
}

static struct value gather_args(struct interp *in, enum value_kind kind,
                                const struct byi_node *node,
                                const struct value *env)
{
    struct value *fields =
        byi_arena_calloc(in->arena, node->n_args + 1, sizeof *fields);
    for (uint32_t i = 0; i < node->n_args; i++)
        fields[i] = env[node->args[i]];
    return (struct value){
        .kind = kind, .n = node->n_args, .fields = fields, .func = node->index};
}

/* Enter a function. Its first n arguments are values[from + which[i]], or
 * values[from + i] if `which` is NULL; the captured values follow them. */
static enum byoc_status enter_func(struct interp *in, struct value callee,
                                   uint32_t from, const byi_id *which,
                                   uint32_t n)
{
    const struct byi_func *f = in->m->funcs.at[callee.func];
    const uint32_t base = in->values.n;
    if (n + callee.n != f->params.n)
        return byi_fail(in->err, BYOC_EINVAL, "found %u arguments, expected %u",
                        n + callee.n, f->params.n);
    if (in->calls.n == MAX_DEPTH)
        return byi_fail(in->err, BYOC_ELIMIT,
                        "found too many nested calls, expected at most %d",
                        (int)MAX_DEPTH);
    for (uint32_t i = 0; i < f->nodes.n; i++)
        BYI_PUSH(&in->values, ((struct value){0}));
    const struct value *args = in->values.at + from;
    struct value *env = in->values.at + base;
    for (uint32_t i = 0; i < n; i++)
        env[f->params.at[i]] = args[which ? which[i] : i];
    for (uint32_t i = 0; i < callee.n; i++)
        env[f->params.at[n + i]] = callee.fields[i];
    BYI_PUSH(&in->calls, ((struct active_call){.f = f, .base = base}));
    return BYOC_OK;
}

/* Run node `id` of the innermost function: store its value in env or, for a
 * call, enter the callee. */
static enum byoc_status run_node(struct interp *in, const struct byi_func *f,
                                 byi_id id, uint32_t base)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct value *env = in->values.at + base;
    switch (node->kind) {
    case BYI_PARAM:
        return BYOC_OK; /* enter_func() has set the value */
    case BYI_CONST:
        env[id] = (struct value){.kind = TENSOR};
        return byi_const_view(in->m, f, id, &env[id].t)
                   ? BYOC_OK
                   : byi_fail(in->err, BYOC_EINTERNAL,
                              "found a node of constant %u, expected one of "
                              "the module's constants",
                              node->index);
    case BYI_CALL_OP:
        return call_op(in, f, node, env, &env[id]);
    case BYI_CALL:
        return enter_func(in, env[node->args[0]], base, node->args + 1,
                          node->n_args - 1);
    case BYI_GLOBAL:
        env[id] = (struct value){.kind = FUNC, .func = node->index};
        return BYOC_OK;
    case BYI_FN:
        env[id] = gather_args(in, FUNC, node, env);
        return BYOC_OK;
    case BYI_MAKE_TUPLE:
        env[id] = gather_args(in, TUPLE, node, env);
        return BYOC_OK;
    case BYI_GET:
        env[id] = env[node->args[0]].fields[node->index];
        return BYOC_OK;
    case BYI_IF:
        return enter_func(
            in,
            env[node->args[byi_tensor_int(&env[node->args[0]].t, 0) ? 1 : 2]],
            base, NULL, 0);
    }
    byi_unreachable();
}

/* Run until the outermost function returns; its result is in *out. */
static enum byoc_status run_calls(struct interp *in, struct value *out)
{
    while (in->calls.n > 0) {
        const uint32_t depth = in->calls.n;
        struct active_call *a = &in->calls.at[depth - 1];
        const struct byi_func *f = a->f;
        if (a->at < f->nodes.n) {
            const byi_id id = a->at;
            if (run_node(in, f, id, a->base) != BYOC_OK)
                return byi_prefix(in->err, "%s, node %u",
                                  f->name ? f->name : "fn", id);
            if (in->calls.n == depth)
                a->at++;
            continue;
        }
        *out = in->values.at[a->base + f->result];
        in->values.n = a->base;
        in->calls.n--;
        if (in->calls.n == 0)
            break;
        a = &in->calls.at[in->calls.n - 1];
        in->values.at[a->base + a->at++] = *out;
    }
    return BYOC_OK;
}

static enum byoc_status run_func(struct interp *in, uint32_t func,
                                 const struct value *args, uint32_t n,
                                 struct value *out)
{
    const struct value callee = {.kind = FUNC, .func = func};
    for (uint32_t i = 0; i < n; i++)
        BYI_PUSH(&in->values, args[i]);
    enum byoc_status status = enter_func(in, callee, 0, NULL, n);
    if (status == BYOC_OK)
        status = run_calls(in, out);
    byi_vec_free(in->calls.at);
    byi_vec_free(in->values.at);
    return status;
}

/* Append the tensors of a value, depth first. */
static enum byoc_status flatten_value(struct interp *in, const struct value *v,
                                      struct byi_tensor *out, uint32_t max,
                                      uint32_t *n)
{
    if (v->kind == TUPLE) {
        for (uint32_t i = 0; i < v->n; i++)
            BYI_TRY(flatten_value(in, &v->fields[i], out, max, n));
        return BYOC_OK;
    }
    if (*n == max)
        return byi_fail(in->err, BYOC_ELIMIT,
                        "found too many results, expected at most %u", max);
    out[(*n)++] = v->t;
    return BYOC_OK;
}

enum byoc_status byi_interp_run(const struct byi_module *m, uint32_t func,
                                const struct byi_tensor *in, uint32_t n_in,
                                struct byi_arena *arena, struct byi_tensor *out,
                                uint32_t max_out, uint32_t *n_out,
                                struct byoc_error *err)
{
    return byi_interp_perturbed(m, func, in, n_in, arena, NULL, NULL, out,
                                max_out, n_out, err);
}

enum byoc_status byi_interp_perturbed(const struct byi_module *m, uint32_t func,
                                      const struct byi_tensor *in,
                                      uint32_t n_in, struct byi_arena *arena,
                                      byi_perturb_fn perturb, void *perturb_ctx,
                                      struct byi_tensor *out, uint32_t max_out,
                                      uint32_t *n_out, struct byoc_error *err)
{
    struct byoc_error unread;
    struct interp i = {.m = m,
                       .arena = arena,
                       .perturb = perturb,
                       .perturb_ctx = perturb_ctx,
                       .err = err ? err : &unread};
    struct value result,
        *args = byi_arena_calloc(arena, n_in + 1, sizeof *args);
    for (uint32_t k = 0; k < n_in; k++)
        args[k] = (struct value){.kind = TENSOR, .t = in[k]};
    BYI_TRY(run_func(&i, func, args, n_in, &result));
    *n_out = 0;
    return flatten_value(&i, &result, out, max_out, n_out);
}

/* --- random inputs ------------------------------------------------------- */

/* The next number in [0, 1) of a linear congruential generator, with Knuth's
 * constants for MMIX. */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0; /* 2^53 */
}

bool byi_interp_random(const struct byi_type *type, uint64_t seed,
                       struct byi_arena *arena, struct byi_tensor *out)
{
    if (type->kind != BYI_TENSOR || type->dtype == BYOC_STRING)
        return false;
    *out = (struct byi_tensor){.dtype = type->dtype, .rank = type->rank};
    for (uint32_t i = 0; i < type->rank; i++)
        out->dims[i] = BYI_IS_SYMBOL(type->dims[i])
                           ? 2 + (int64_t)(((uint64_t)(-1 - type->dims[i])) % 3)
                           : type->dims[i];
    out->data = byi_arena_data(arena, byi_tensor_bytes(out));
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    const int64_t n = byi_elements(out->rank, out->dims);
    for (int64_t i = 0; i < n; i++) {
        const double r = next_random(&state);
        byi_tensor_set(out, i,
                       byi_dtype_is_float(type->dtype) ? 4.0 * r - 2.0
                       : type->dtype == BYOC_BOOL      ? r < 0.5
                                                       : floor(4.0 * r));
    }
    return true;
}
