/* SPDX-License-Identifier: Apache-2.0 */
/* plan_check.c: checks that a plan is safe to run, function by function. Values
 * must be written once and before they are read, and types must agree with the
 * operators' type rules. No step may write to memory that it reads. Function
 * values are known only at run time: call.c checks their calls. Also finds last
 * readers and tail calls for the executor. */
#include "plan.h"

#include <string.h>

/* The state of checking a plan, in step `step` of function `f`; UINT32_MAX: in
 * no step. */
struct checker {
    struct byi_plan_tables *plan;
    struct byi_plan_func *f;
    uint32_t step;
    struct byi_arena *scratch;
    bool *defined;       /* indexed by value */
    int64_t next_symbol; /* what new_symbol() returns next */
    struct byoc_error *err;
};

static enum byoc_status fail_step(struct checker *c, const char *fmt, ...)
    BYI_PRINTF(2, 3);

static enum byoc_status fail_step(struct checker *c, const char *fmt, ...)
{
    char text[400];
    BYI_FORMAT(text, fmt);
    uint32_t f = (uint32_t)(c->f - c->plan->funcs);
    if (c->step == UINT32_MAX)
        return byi_fail(c->err, BYOC_EPARSE, "functions[%u]: %s", f, text);
    return byi_fail(c->err, BYOC_EPARSE, "functions[%u].steps[%u]: %s", f,
                    c->step, text);
}

/* --- signature ---------------------------------------------------------- */

static enum byoc_status check_kinds(struct checker *c)
{
    const struct byi_plan_func *f = c->f;
    bool is_main = f == c->plan->funcs;
    for (uint32_t i = 0; is_main && i < f->n_outputs; i++)
        if (byi_value_is_func(&f->values[f->outputs[i]]))
            return fail_step(
                c,
                "outputs[%u]: found a function, expected a tensor, sequence or "
                "optional",
                i);
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const struct byi_value *v = &f->values[f->inputs[i]];
        if (is_main && byi_value_is_func(v))
            return fail_step(
                c,
                "inputs[%u]: found a function, expected a tensor, sequence or "
                "optional",
                i);
        if (v->kind != BYI_V_INPUT || v->index != i)
            return fail_step(
                c,
                "inputs[%u]: found value %u, expected the value that "
                "is input %u",
                i, f->inputs[i], i);
    }
    for (uint32_t i = 0; i < f->n_values; i++) {
        const struct byi_value *v = &f->values[i];
        if (v->kind == BYI_V_INPUT && f->inputs[v->index] != i)
            return fail_step(c, "found value %u as input %u, expected value %u",
                             i, v->index, f->inputs[v->index]);
        if (v->kind != BYI_V_OUTPUT)
            continue;
        const struct byi_value *out = &f->values[f->outputs[v->index]];
        if (out->root != i || out->fixed != v->fixed || (!v->fixed && out != v))
            return fail_step(c,
                             "found value %u as output %u, expected value %u",
                             i, v->index, f->outputs[v->index]);
    }
    return BYOC_OK;
}

/* Whether the value is an alias that no step needs to compute: it is valid as
 * soon as its root is. */
static bool is_free_alias(const struct byi_plan_func *f, uint32_t v)
{
    return f->values[v].kind == BYI_V_ALIAS && f->values[v].fixed &&
           f->values[f->values[v].root].fixed;
}

static bool is_defined(const struct checker *c, uint32_t v)
{
    if (is_free_alias(c->f, v))
        v = c->f->values[v].root;
    return c->defined[v] || c->f->values[v].kind == BYI_V_INPUT ||
           c->f->values[v].kind == BYI_V_CONST;
}

/* --- the values of a step ------------------------------------------------- */

static bool overlaps(const struct byi_plan_func *f, uint32_t a, uint32_t b)
{
    const struct byi_value *x = &f->values[f->values[a].root];
    const struct byi_value *y = &f->values[f->values[b].root];
    if (x->kind != BYI_V_TEMP || y->kind != BYI_V_TEMP || !x->fixed ||
        !y->fixed)
        return x == y && x->kind != BYI_V_CONST && x->kind != BYI_V_INPUT;
    uint64_t n = byi_type_bytes(x->type), k = byi_type_bytes(y->type);
    return n > 0 && k > 0 && x->offset < y->offset + k &&
           y->offset < x->offset + n;
}

static enum byoc_status check_view(struct checker *c, struct byi_step *step)
{
    const struct byi_value *values = c->f->values;
    uint32_t out = step->out[0];
    if (step->kind != BYI_STEP_OP ||
        !byi_op_has(step->op->id, BYI_TRAIT_VIEW) || step->n_out != 1 ||
        step->n_in == 0)
        return fail_step(
            c,
            "found value %u, an alias, as result of %s, expected an "
            "operator that returns a view",
            out, step->name);
    if (values[step->in[0]].root != values[out].root)
        return fail_step(
            c,
            "found value %u as an alias of value %u, expected one of "
            "operand %u",
            out, values[out].root, step->in[0]);
    step->view = true;
    return BYOC_OK;
}

static enum byoc_status check_out(struct checker *c, struct byi_step *step,
                                  uint32_t i)
{
    uint32_t out = step->out[i];
    const struct byi_value *v = &c->f->values[out];
    if (v->kind == BYI_V_INPUT || v->kind == BYI_V_CONST ||
        is_free_alias(c->f, out))
        return fail_step(c,
                         "out[%u]: value %u is read-only, expected a temporary "
                         "or an output",
                         i, out);
    if (c->defined[out])
        return fail_step(
            c,
            "out[%u]: value %u is written twice, expected one step "
            "that writes it",
            i, out);
    c->defined[out] = true;
    if (v->kind == BYI_V_ALIAS)
        return check_view(c, step);
    for (uint32_t k = 0; k < step->n_in; k++)
        if (overlaps(c->f, out, step->in[k]))
            return fail_step(c,
                             "out[%u] overlaps in[%u] in the arena, expected "
                             "separate memory",
                             i, k);
    for (uint32_t k = 0; k < i; k++)
        if (overlaps(c->f, out, step->out[k]))
            return fail_step(c,
                             "out[%u] overlaps out[%u] in the arena, expected "
                             "separate memory",
                             i, k);
    return BYOC_OK;
}

static enum byoc_status check_values(struct checker *c, struct byi_step *step)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        if (!is_defined(c, step->in[i]))
            return fail_step(c,
                             "in[%u]: value %u is read before it is written, "
                             "expected an earlier step that writes it",
                             i, step->in[i]);
    for (uint32_t i = 0; i < step->n_out; i++)
        BYI_TRY(check_out(c, step, i));
    return BYOC_OK;
}

/* --- the types of a step -------------------------------------------------- */

static int64_t new_symbol(void *ctx)
{
    struct checker *c = ctx;
    return c->next_symbol--;
}

/* Compare a required type with the actual one, of operand or result i. Dims
 * that are symbolic in either are compared when the step runs, for which this
 * sets step->infer. `what` is "in" or "out". */
static enum byoc_status match_types(struct checker *c, struct byi_step *step,
                                    const char *what, uint32_t i,
                                    const struct byi_type *required,
                                    const struct byi_type *actual)
{
    bool fits = required->kind == actual->kind &&
                required->dtype == actual->dtype &&
                required->rank == actual->rank;
    if (fits && byi_type_is_list(required))
        fits = what[0] == 'i' ? byi_type_accepts(required, actual)
                              : byi_type_accepts(actual, required);
    for (uint32_t d = 0; fits && d < required->rank; d++) {
        if (BYI_IS_SYMBOL(required->dims[d]) || BYI_IS_SYMBOL(actual->dims[d]))
            step->infer = true;
        else
            fits = required->dims[d] == actual->dims[d];
    }
    char found[160], expected[160];
    return fits ? BYOC_OK
                : fail_step(
                      c,
                      "%s[%u]: found %s as the type of value %u, expected %s "
                      "for %s",
                      what, i, byi_type_text(found, sizeof found, actual),
                      what[0] == 'i' ? step->in[i] : step->out[i],
                      byi_type_text(expected, sizeof expected, required),
                      step->name);
}

static void tensor_of(const struct checker *c, uint32_t v, struct byi_tensor *t)
{
    const struct byi_value *value = &c->f->values[v];
    const struct byi_value *root = &c->f->values[value->root];
    *t = byi_tensor_of(value->type);
    if (root->kind == BYI_V_CONST)
        t->data = c->plan->consts[root->index].view.data;
}

static enum byoc_status infer_op(struct checker *c, struct byi_step *step,
                                 const struct byi_tensor *in)
{
    const struct byi_type **types =
        byi_arena_calloc(c->scratch, step->n_in + 1u, sizeof *types);
    const struct byi_tensor **known =
        byi_arena_calloc(c->scratch, step->n_in + 1u, sizeof *known);
    for (uint32_t i = 0; i < step->n_in; i++) {
        types[i] = c->f->values[step->in[i]].type;
        known[i] = in[i].data ? &in[i] : NULL;
    }
    struct byi_infer t = {.arena = c->scratch,
                          .op = step->op,
                          .attrs = step->attrs,
                          .n_in = step->n_op_in,
                          .in = types,
                          .value = known,
                          .new_symbol = new_symbol,
                          .symbol_ctx = c,
                          .err = c->err};
    const struct byi_type *out;
    if (byi_infer_type(&t, &out) != BYOC_OK)
        return byi_prefix(c->err, "functions[%u].steps[%u]",
                          (uint32_t)(c->f - c->plan->funcs), c->step);
    bool tuple = out->kind == BYI_TUPLE;
    if (step->n_out != (tuple ? out->n_fields : 1))
        return fail_step(c, "out: found %u values, expected %u results of %s",
                         step->n_out, tuple ? out->n_fields : 1, step->name);
    for (uint32_t i = 0; i < step->n_out; i++)
        BYI_TRY(match_types(c, step, "out", i, tuple ? out->fields[i] : out,
                            c->f->values[step->out[i]].type));
    for (uint32_t i = 0;
         i < step->n_in && !byi_op_has(step->op->id, BYI_TRAIT_LIST); i++)
        if (!c->f->values[step->in[i]].fixed)
            step->infer = true; /* a rule may have relied on equal symbols */
    if (byi_op_reads_unknown(step->op->id, step->n_op_in, known))
        step->infer = true;
    return BYOC_OK;
}

/* Check that all operands are tensors, as kernels and regions need. */
static enum byoc_status check_tensors(struct checker *c,
                                      const struct byi_step *step)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        if (byi_value_is_object(&c->f->values[step->in[i]]))
            return fail_step(
                c, "in[%u]: value %u is %s, expected a tensor", i, step->in[i],
                byi_type_kind_text(c->f->values[step->in[i]].type->kind));
    return BYOC_OK;
}

/* Check the epilogue, whose operands are the step's last ones. */
static enum byoc_status check_epilogue(struct checker *c,
                                       const struct byi_step *step)
{
    const struct byi_value *values = c->f->values;
    const struct byi_type *out = values[step->out[0]].type;
    uint32_t at = step->n_op_in;
    if (step->n_op_in < 2 ||
        !byi_epilogue_is_supported(step->op->id, step->attrs, step->n_op_in,
                                   values[step->in[1]].type, out))
        return fail_step(c, "found an epilogue of %s, expected none",
                         step->name);
    const uint32_t axis =
        byi_epilogue_axis(step->op->id, step->attrs, out->rank);
    for (uint32_t i = 0; i < step->n_epilogue; i++) {
        const struct byi_op *op = step->epilogue[i].op;
        const struct byi_type *operand =
            byi_epilogue_is_binary(op->id) ? values[step->in[at++]].type : NULL;
        if (!byi_epilogue_allows(op->id, out, axis, operand))
            return fail_step(
                c,
                "epilogue[%u]: found %s, expected an operator that "
                "can follow %s",
                i, op->name, step->name);
    }
    return BYOC_OK;
}

/* Set the number of operands that belong to the operator rather than the
 * epilogue. */
static enum byoc_status divide_operands(struct checker *c,
                                        struct byi_step *step)
{
    step->n_op_in = step->n_in;
    for (uint32_t i = 0; i < step->n_epilogue; i++) {
        if (!byi_epilogue_is_binary(step->epilogue[i].op->id))
            continue;
        if (step->n_op_in == 0)
            return fail_step(
                c,
                "found %u operands, expected one for each binary operator of "
                "the epilogue",
                step->n_in);
        step->n_op_in--;
    }
    return BYOC_OK;
}

static enum byoc_status check_op(struct checker *c, struct byi_step *step)
{
    BYI_TRY(divide_operands(c, step));
    if (!byi_op_has(step->op->id, BYI_TRAIT_LIST))
        BYI_TRY(check_tensors(c, step));
    struct byi_tensor *t =
        byi_arena_calloc(c->scratch, step->n_in + 1u, sizeof *t);
    for (uint32_t i = 0; i < step->n_in; i++)
        tensor_of(c, step->in[i], &t[i]);
    BYI_TRY(infer_op(c, step, t));
    return step->n_epilogue ? check_epilogue(c, step) : BYOC_OK;
}

static enum byoc_status check_count(struct checker *c, uint32_t found,
                                    uint32_t expected)
{
    return found == expected ? BYOC_OK
                             : fail_step(c, "found %u operands, expected %u",
                                         found, expected);
}

/* Check that the operands from `first` on and the results have the types of the
 * function that runs. */
static enum byoc_status check_signature(struct checker *c,
                                        struct byi_step *step, uint32_t first,
                                        uint32_t index)
{
    const struct byi_plan_func *callee = &c->plan->funcs[index];
    if (step->n_in < first || step->n_in - first < callee->n_inputs ||
        step->n_out != callee->n_outputs)
        return fail_step(
            c,
            "found %u operands and %u results, expected %u and %u for "
            "function %u",
            step->n_in, step->n_out, first + callee->n_inputs,
            callee->n_outputs, index);
    for (uint32_t i = 0; i < callee->n_inputs; i++)
        BYI_TRY(match_types(c, step, "in", first + i,
                            callee->values[callee->inputs[i]].type,
                            c->f->values[step->in[first + i]].type));
    for (uint32_t i = 0; i < step->n_out; i++)
        BYI_TRY(match_types(c, step, "out", i,
                            callee->values[callee->outputs[i]].type,
                            c->f->values[step->out[i]].type));
    return BYOC_OK;
}

static enum byoc_status check_condition(struct checker *c,
                                        const struct byi_step *step)
{
    if (step->n_in == 0)
        return fail_step(c, "found no operands, expected a condition");
    const struct byi_type *cond = c->f->values[step->in[0]].type;
    if (cond->kind != BYI_TENSOR || cond->dtype != BYOC_BOOL)
        return fail_step(c, "in[0]: the condition is %s, expected bool",
                         cond->kind == BYI_TENSOR
                             ? byoc_dtype_name(cond->dtype)
                             : byi_type_kind_text(cond->kind));
    return BYOC_OK;
}

static enum byoc_status check_if(struct checker *c, struct byi_step *step)
{
    uint32_t n_then = c->plan->funcs[step->callee].n_inputs;
    uint32_t n_else = c->plan->funcs[step->else_func].n_inputs;
    BYI_TRY(check_signature(c, step, 1, step->callee));
    BYI_TRY(check_signature(c, step, 1 + n_then, step->else_func));
    BYI_TRY(check_count(c, step->n_in, 1 + n_then + n_else));
    return check_condition(c, step);
}

static enum byoc_status check_call(struct checker *c, struct byi_step *step)
{
    step->name = c->plan->funcs[step->callee].name;
    BYI_TRY(check_signature(c, step, 0, step->callee));
    return check_count(c, step->n_in, c->plan->funcs[step->callee].n_inputs);
}

/* Check a step that runs a region or a fused kernel. */
static enum byoc_status check_region_or_kernel(struct checker *c,
                                               struct byi_step *step)
{
    bool region = step->kind == BYI_STEP_REGION;
    uint32_t twin = region ? c->plan->regions[step->callee].twin
                           : c->plan->kernels[step->callee].twin;
    BYI_TRY(check_tensors(c, step));
    BYI_TRY(check_signature(c, step, 0, twin));
    BYI_TRY(check_count(c, step->n_in, c->plan->funcs[twin].n_inputs));
    if (step->infer && !region)
        return fail_step(
            c, "found a shape of %s that varies, expected a fixed one",
            step->name);
    if (step->infer)
        c->plan->regions[step->callee].varies = true;
    return BYOC_OK;
}

static enum byoc_status expect_func(struct checker *c, const char *what,
                                    uint32_t i, uint32_t v)
{
    if (byi_value_is_func(&c->f->values[v]))
        return BYOC_OK;
    return fail_step(c, "%s[%u]: value %u is %s, expected a function", what, i,
                     v, byi_type_kind_text(c->f->values[v].type->kind));
}

/* Check a CLOSURE step, whose operands are captured as the callee's last
 * inputs. */
static enum byoc_status check_closure(struct checker *c, struct byi_step *step)
{
    const struct byi_plan_func *callee = &c->plan->funcs[step->callee];
    if (step->n_in > callee->n_inputs || step->n_out != 1)
        return fail_step(
            c,
            "found %u captures and %u results, expected at most the "
            "%u inputs of function %u, and 1 result",
            step->n_in, step->n_out, callee->n_inputs, step->callee);
    uint32_t first = callee->n_inputs - step->n_in;
    for (uint32_t i = 0; i < step->n_in; i++)
        BYI_TRY(match_types(c, step, "in", i,
                            callee->values[callee->inputs[first + i]].type,
                            c->f->values[step->in[i]].type));
    step->self = callee == c->f;
    for (uint32_t i = 0; i < step->n_in && step->self; i++)
        step->self = step->in[i] == callee->inputs[first + i];
    return expect_func(c, "out", 0, step->out[0]);
}

static enum byoc_status check_apply(struct checker *c, struct byi_step *step)
{
    BYI_TRY(check_count(c, step->n_in, step->n_args + 1));
    return expect_func(c, "in", 0, step->in[0]);
}

static enum byoc_status check_choose(struct checker *c, struct byi_step *step)
{
    BYI_TRY(check_condition(c, step));
    BYI_TRY(check_count(c, step->n_in, step->n_args + 1));
    if (step->n_in != 3 || step->n_out != 1)
        return fail_step(c,
                         "found %u operands and %u results, expected 3 and 1",
                         step->n_in, step->n_out);
    BYI_TRY(expect_func(c, "in", 1, step->in[1]));
    BYI_TRY(expect_func(c, "in", 2, step->in[2]));
    return expect_func(c, "out", 0, step->out[0]);
}

static enum byoc_status (*const step_checks[])(struct checker *c,
                                               struct byi_step *step) = {
    [BYI_STEP_OP] = check_op,
    [BYI_STEP_REGION] = check_region_or_kernel,
    [BYI_STEP_KERNEL] = check_region_or_kernel,
    [BYI_STEP_CALL] = check_call,
    [BYI_STEP_IF] = check_if,
    [BYI_STEP_CLOSURE] = check_closure,
    [BYI_STEP_APPLY] = check_apply,
    [BYI_STEP_CHOOSE] = check_choose,
};

/* --- lifetimes ---------------------------------------------------------- */

/* For each step, list the functions, sequences, optionals and tensors of
 * varying size that no later step reads. */
static void find_dead(struct checker *c)
{
    struct byi_plan_func *f = c->f;
    uint32_t *last = byi_arena_calloc(c->scratch, f->n_values + 1u,
                                      sizeof *last); /* 1 + step */
    for (uint32_t s = 0; s < f->n_steps; s++) {
        for (uint32_t i = 0; i < f->steps[s].n_in; i++)
            last[f->values[f->steps[s].in[i]].root] = s + 1;
        for (uint32_t i = 0; i < f->steps[s].n_out; i++)
            last[f->values[f->steps[s].out[i]].root] = s + 1;
    }
    for (uint32_t i = 0; i < f->n_outputs; i++)
        last[f->values[f->outputs[i]].root] = 0;
    for (uint32_t v = 0; v < f->n_values; v++)
        if (f->values[v].kind == BYI_V_TEMP && !f->values[v].fixed && last[v])
            f->steps[last[v] - 1].n_dead++;
    uint32_t **at = byi_arena_calloc(c->scratch, f->n_steps + 1u, sizeof *at);
    for (uint32_t s = 0; s < f->n_steps; s++) {
        at[s] = byi_arena_calloc(c->plan->arena, f->steps[s].n_dead + 1u,
                                 sizeof **at);
        f->steps[s].dead = at[s];
    }
    for (uint32_t v = 0; v < f->n_values; v++)
        if (f->values[v].kind == BYI_V_TEMP && !f->values[v].fixed && last[v])
            *at[last[v] - 1]++ = v;
}

/* A fixed temporary that is in use, and its bytes in the arena. */
struct value_place {
    uint64_t at, end;
    uint32_t value;
};

/* The places of the live values in a function's arena. */
struct value_places {
    struct value_place *list; /* in ascending order of offsets, disjoint */
    uint32_t n;
};

/* The index of the place at offset `at`, or the index at which to insert it. */
static uint32_t find_place(const struct value_places *p, uint64_t at)
{
    uint32_t first = 0, end = p->n;
    while (first < end) {
        const uint32_t mid = first + (end - first) / 2;
        if (p->list[mid].at < at)
            first = mid + 1;
        else
            end = mid;
    }
    return first;
}

static enum byoc_status add_place(struct checker *c, struct value_places *p,
                                  uint32_t v)
{
    const struct byi_value *value = &c->f->values[v];
    const struct value_place place = {
        value->offset, value->offset + byi_type_bytes(value->type), v};
    const uint32_t i = find_place(p, place.at);
    if (place.at == place.end)
        return BYOC_OK;
    if (i > 0 && p->list[i - 1].end > place.at)
        return fail_step(
            c,
            "value %u overlaps value %u, which is in use, expected "
            "separate memory",
            v, p->list[i - 1].value);
    if (i < p->n && p->list[i].at < place.end)
        return fail_step(
            c,
            "value %u overlaps value %u, which is in use, expected "
            "separate memory",
            v, p->list[i].value);
    memmove(&p->list[i + 1], &p->list[i], (p->n - i) * sizeof *p->list);
    p->list[i] = place;
    p->n++;
    return BYOC_OK;
}

static void remove_place(const struct checker *c, struct value_places *p,
                         uint32_t v)
{
    const uint32_t i = find_place(p, c->f->values[v].offset);
    if (i == p->n || p->list[i].value != v)
        return; /* values without bytes overlap nothing */
    p->n--;
    memmove(&p->list[i], &p->list[i + 1], (p->n - i) * sizeof *p->list);
}

static bool is_placed(const struct byi_value *v)
{
    return v->kind == BYI_V_TEMP && v->fixed;
}

/* A temporary is live from the step that writes it to the last one that uses it
 * or an alias of it. Check that no other step writes to its place during that
 * time. */
static enum byoc_status check_places(struct checker *c)
{
    const struct byi_plan_func *f = c->f;
    const uint32_t n = f->n_values + 1, none = UINT32_MAX;
    uint32_t *last = byi_arena_calloc(c->scratch, n, sizeof *last);
    uint32_t *next = byi_arena_calloc(c->scratch, n, sizeof *next);
    uint32_t *ends =
        byi_arena_calloc(c->scratch, f->n_steps + 1u, sizeof *ends);
    struct value_places p = {byi_arena_calloc(c->scratch, n, sizeof *p.list),
                             0};
    for (uint32_t s = 0; s < f->n_steps; s++) {
        ends[s] = none;
        for (uint32_t i = 0; i < f->steps[s].n_in; i++)
            last[f->values[f->steps[s].in[i]].root] = s;
        for (uint32_t i = 0; i < f->steps[s].n_out; i++)
            last[f->values[f->steps[s].out[i]].root] = s;
    }
    for (uint32_t i = 0; i < f->n_outputs; i++)
        last[f->values[f->outputs[i]].root] = f->n_steps;
    for (uint32_t v = 0; v < f->n_values; v++) {
        if (!is_placed(&f->values[v]) || last[v] >= f->n_steps)
            continue;
        next[v] = ends[last[v]];
        ends[last[v]] = v;
    }
    for (uint32_t s = 0; s < f->n_steps; s++) {
        c->step = s;
        for (uint32_t i = 0; i < f->steps[s].n_out; i++)
            if (is_placed(&f->values[f->steps[s].out[i]]))
                BYI_TRY(add_place(c, &p, f->steps[s].out[i]));
        for (uint32_t v = ends[s]; v != none; v = next[v])
            remove_place(c, &p, v);
    }
    c->step = UINT32_MAX;
    return BYOC_OK;
}

static void count_args(struct byi_plan_tables *plan,
                       const struct byi_plan_func *f)
{
    for (uint32_t s = 0; s < f->n_steps; s++) {
        uint32_t args = f->steps[s].n_in + f->steps[s].n_out;
        plan->max_args = args > plan->max_args ? args : plan->max_args;
    }
}

/* Set `tail` of the function's last step if it is a call whose results are the
 * function's results, in the same order. */
static void find_tail(struct byi_plan_func *f)
{
    struct byi_step *step = f->n_steps ? &f->steps[f->n_steps - 1] : NULL;
    if (!step || step->n_out != f->n_outputs ||
        (step->kind != BYI_STEP_CALL && step->kind != BYI_STEP_IF &&
         step->kind != BYI_STEP_APPLY))
        return;
    step->tail = true;
    for (uint32_t i = 0; i < step->n_out; i++) {
        const struct byi_value *v = &f->values[step->out[i]];
        if (step->out[i] != f->outputs[i] ||
            (!byi_value_is_object(v) &&
             (v->kind != BYI_V_OUTPUT || v->index != i)))
            step->tail = false;
    }
}

static enum byoc_status check_func(struct checker *c)
{
    c->step = UINT32_MAX;
    BYI_TRY(check_kinds(c));
    c->defined =
        byi_arena_calloc(c->scratch, c->f->n_values + 1u, sizeof *c->defined);
    for (uint32_t s = 0; s < c->f->n_steps; s++) {
        struct byi_step *step = &c->f->steps[s];
        c->step = s;
        BYI_TRY(check_values(c, step));
        BYI_TRY(step_checks[step->kind](c, step));
    }
    c->step = UINT32_MAX;
    for (uint32_t i = 0; i < c->f->n_outputs; i++)
        if (!is_defined(c, c->f->outputs[i]))
            return fail_step(
                c,
                "outputs[%u]: value %u is never written, expected a "
                "step that writes it",
                i, c->f->outputs[i]);
    BYI_TRY(check_places(c));
    find_dead(c);
    count_args(c->plan, c->f);
    find_tail(c->f);
    return BYOC_OK;
}

enum byoc_status byi_plan_check(struct byi_plan_tables *plan,
                                struct byoc_error *err)
{
    for (uint32_t f = plan->n_funcs; f-- > 0;) {
        struct checker c = {.plan = plan,
                            .f = &plan->funcs[f],
                            .next_symbol = INT32_MIN,
                            .err = err};
        c.scratch = byi_arena_new();
        enum byoc_status status = check_func(&c);
        byi_arena_free(&c.scratch);
        BYI_TRY(status);
    }
    return BYOC_OK;
}
