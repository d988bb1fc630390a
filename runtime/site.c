/* SPDX-License-Identifier: Apache-2.0 */
/* site.c: computes the shapes and small values that a call returns from the
 * shapes and values of its operands. Several calls may share a function that
 * computes shapes. Each call is evaluated separately, so its results are known
 * although the function's values have no fixed sizes. */
#include "plan.h"

/* A function of more steps does more than compute shapes. */
enum { MAX_STEPS = 64 };

/* The evaluation of one call of function `f`. */
struct site {
    const struct byi_plan_func *f;
    struct byi_arena *arena;
    const struct byi_type **type;    /* indexed by value; NULL: not known */
    const struct byi_tensor **value; /* indexed by value; NULL: not known */
};

/* Set the type and value of alias v if its shape is fixed: it has the bytes of
 * its root, so no step needs to compute it. */
static void infer_alias(struct site *s, uint32_t v)
{
    const struct byi_value *value = &s->f->values[v];
    if (s->type[v] || value->kind != BYI_V_ALIAS || !value->fixed)
        return;
    s->type[v] = value->type;
    if (!s->value[value->root])
        return;
    struct byi_tensor *t = byi_arena_calloc(s->arena, 1, sizeof *t);
    *t = byi_tensor_of(value->type);
    t->data = s->value[value->root]->data;
    s->value[v] = t;
}

/* Compute the results of a step if they are small and follow from the known
 * operands and sizes. */
static void compute_results(struct site *s, const struct byi_step *step,
                            const struct byi_tensor *const *known)
{
    struct byi_tensor *in = byi_arena_calloc(s->arena, step->n_in, sizeof *in);
    struct byi_tensor *out =
        byi_arena_calloc(s->arena, step->n_out, sizeof *out);
    for (uint32_t i = 0; i < step->n_out; i++) {
        const struct byi_type *type = s->type[step->out[i]];
        if (!byi_follows_from_sizes(step->op, step->n_in, known, type))
            return;
        out[i] = byi_tensor_of(type);
        out[i].data = byi_arena_alloc(s->arena, byi_tensor_bytes(&out[i]) + 1);
    }
    for (uint32_t i = 0; i < step->n_in; i++)
        in[i] = known[i] ? *known[i] : byi_tensor_of(s->type[step->in[i]]);
    if (byoc_internal_kernel_eval(step->op, step->attrs, step->n_in, in,
                                  step->n_out, out, 1, NULL) != BYOC_OK)
        return; /* if the step runs, the run reports the error */
    for (uint32_t i = 0; i < step->n_out; i++)
        s->value[step->out[i]] = &out[i];
}

/* Infer the types of a step's results, and their values if possible. Leaves
 * them unknown if an operand's type is unknown or a size depends on data. */
static void infer_results(struct site *s, const struct byi_step *step)
{
    const struct byi_type **in =
        byi_arena_calloc(s->arena, step->n_in, sizeof *in);
    const struct byi_tensor **known =
        byi_arena_calloc(s->arena, step->n_in, sizeof *known);
    for (uint32_t i = 0; i < step->n_in; i++) {
        infer_alias(s, step->in[i]);
        in[i] = s->type[step->in[i]];
        known[i] = s->value[step->in[i]];
        if (!in[i])
            return;
    }
    struct byoc_error unused;
    struct byi_infer rule = {.arena = s->arena,
                             .op = step->op,
                             .attrs = step->attrs,
                             .n_in = step->n_op_in,
                             .in = in,
                             .value = known,
                             .err = &unused};
    const struct byi_type *out;
    if (byi_infer_type(&rule, &out) != BYOC_OK ||
        !byi_type_has_static_sizes(out) ||
        step->n_out != (out->kind == BYI_TUPLE ? out->n_fields : 1))
        return;
    for (uint32_t i = 0; i < step->n_out; i++)
        s->type[step->out[i]] = out->kind == BYI_TUPLE ? out->fields[i] : out;
    if (step->n_epilogue == 0)
        compute_results(s, step, known);
}

void byi_site_eval(const struct byi_plan_tables *plan, uint32_t func,
                   const struct byi_type *const *types,
                   const struct byi_tensor *const *values,
                   struct byi_arena *arena, const struct byi_type **out,
                   const struct byi_tensor **out_values)
{
    const struct byi_plan_func *f = &plan->funcs[func];
    struct site s = {.f = f, .arena = arena};
    if (f->n_steps > MAX_STEPS)
        return;
    s.type = byi_arena_calloc(arena, f->n_values + 1u, sizeof *s.type);
    s.value = byi_arena_calloc(arena, f->n_values + 1u, sizeof *s.value);
    for (uint32_t v = 0; v < f->n_values; v++)
        if (f->values[v].kind == BYI_V_CONST) {
            s.type[v] = f->values[v].type;
            const struct byi_tensor *t = &plan->consts[f->values[v].index].view;
            s.value[v] = t->data ? t : NULL;
        }
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        s.type[f->inputs[i]] = types[i];
        s.value[f->inputs[i]] = values[i];
    }
    for (uint32_t k = 0; k < f->n_steps; k++)
        if (f->steps[k].kind == BYI_STEP_OP &&
            !byi_op_has(f->steps[k].op->id, BYI_TRAIT_LIST))
            infer_results(&s, &f->steps[k]);
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        infer_alias(&s, f->outputs[i]);
        out[i] = s.type[f->outputs[i]];
        out_values[i] = s.value[f->outputs[i]];
    }
}
