/* SPDX-License-Identifier: Apache-2.0 */
/* costs.c: counts, for traces, the floating-point operations of steps and
 * primitives and the bytes that they read and write. The operations of a region
 * or fused kernel are those of its twin; its bytes are those of its own
 * operands and results. The costs of a region's primitive are those of some
 * steps of the twin:
 *
 *     primitive  nn.conv2d+add+nn.relu  of Conv_0, Relu_1
 *     twin       nn.conv2d (Conv_0), add (Conv_0), nn.relu (Relu_1)
 */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- types ---------------------------------------------------------------- */

/* The type of value `v` of a function. If a frame is given, sizes that vary
 * come from it. */
static struct byi_type type_of(const struct byi_plan_func *f,
                               const struct byi_frame *frame, uint32_t v)
{
    struct byi_type type = *f->values[v].type;
    if (frame && type.kind == BYI_TENSOR) {
        type.rank = frame->t[v].rank;
        type.dims = frame->t[v].dims;
    }
    return type;
}

static double bytes_of(const struct byi_plan_func *f,
                       const struct byi_frame *frame, uint32_t v)
{
    const struct byi_type type = type_of(f, frame, v);
    const int64_t n =
        type.kind == BYI_TENSOR ? byi_elements(type.rank, type.dims) : 0;
    return n > 0 ? (double)n * byoc_dtype_size(type.dtype) : 0;
}

/* Whether the sizes of all operands and results are known. In a specialisation
 * they are unknown in the twins of regions. */
static bool has_sizes(const struct byi_plan_func *f,
                      const struct byi_step *step)
{
    bool fixed = true;
    for (uint32_t i = 0; i < step->n_in; i++)
        fixed &= f->values[step->in[i]].fixed;
    for (uint32_t i = 0; i < step->n_out; i++)
        fixed &= f->values[step->out[i]].fixed;
    return fixed;
}

static double flops_of(const struct byi_plan_func *f,
                       const struct byi_frame *frame,
                       const struct byi_step *step)
{
    enum { MAX_OPERANDS = 16 };
    struct byi_type types[MAX_OPERANDS + 1];
    const struct byi_type *in[MAX_OPERANDS];
    const uint32_t n = step->n_in < MAX_OPERANDS ? step->n_in : MAX_OPERANDS;
    if (step->kind != BYI_STEP_OP || step->n_out == 0 ||
        (!frame && !has_sizes(f, step)))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        types[i] = type_of(f, frame, step->in[i]);
        in[i] = &types[i];
    }
    const struct byi_type *out = &types[MAX_OPERANDS];
    types[MAX_OPERANDS] = type_of(f, frame, step->out[0]);
    double flops = byi_op_flops(step->op, step->attrs, in, out);
    if (step->n_epilogue)
        flops += step->n_epilogue * (double)byi_elements(out->rank, out->dims);
    return flops;
}

/* --- steps ---------------------------------------------------------------- */

static double results_bytes(const struct byi_plan_func *f,
                            const struct byi_frame *frame,
                            const struct byi_step *step)
{
    double bytes = 0;
    for (uint32_t i = 0; i < step->n_out; i++)
        bytes += bytes_of(f, frame, step->out[i]);
    return bytes;
}

/* Add the bytes that a step reads of operand v. An operator that only moves
 * data reads no more than it writes: a gather reads a few rows of a table. */
static void add_operand(const struct byi_plan_func *f,
                        const struct byi_frame *frame,
                        const struct byi_step *step, uint32_t v,
                        struct byoc_event *event)
{
    double bytes = bytes_of(f, frame, v);
    if (step->kind == BYI_STEP_OP && step->op->cost == BYI_COST_NONE)
        bytes = fmin(bytes, results_bytes(f, frame, step));
    event->bytes += bytes;
    if (f->values[v].kind == BYI_V_CONST)
        event->constant_bytes += bytes;
}

void byi_cost_step(const struct byi_plan_tables *plan,
                   const struct byi_frame *frame, const struct byi_step *step,
                   struct byoc_event *event)
{
    const struct byi_plan_func *f = &plan->funcs[frame->func], *twin = NULL;
    if (step->view || step->kind > BYI_STEP_KERNEL)
        return;
    if (step->kind == BYI_STEP_REGION)
        twin = &plan->funcs[plan->regions[step->callee].twin];
    if (step->kind == BYI_STEP_KERNEL)
        twin = &plan->funcs[plan->kernels[step->callee].twin];
    event->flops = flops_of(f, frame, step);
    for (uint32_t i = 0; twin && i < twin->n_steps; i++)
        event->flops += flops_of(twin, NULL, &twin->steps[i]);
    event->bytes = results_bytes(f, frame, step);
    for (uint32_t i = 0; i < step->n_in; i++)
        add_operand(f, frame, step, step->in[i], event);
}

/* --- primitives ----------------------------------------------------------- */

void byi_cost_begin(const struct byi_plan_tables *plan, uint32_t region,
                    struct byi_cost_region *costs)
{
    const struct byi_plan_func *twin = &plan->funcs[plan->regions[region].twin];
    *costs = (struct byi_cost_region){
        .twin = twin,
        .primitive_of_step =
            byi_alloc(twin->n_steps, sizeof *costs->primitive_of_step)};
}

void byi_cost_end(struct byi_cost_region *costs)
{
    free(costs->primitive_of_step);
    costs->primitive_of_step = NULL;
}

/* Whether the first node of the step's provenance is among `sources`, the
 * provenance of a primitive; also true if the step's provenance is empty. */
static bool has_source(const char *sources, const struct byi_step *step)
{
    const size_t n = strcspn(step->sources, ",");
    for (const char *at = sources; *at; at += strspn(at, ", ")) {
        const size_t length = strcspn(at, ",");
        if (length == n && memcmp(at, step->sources, n) == 0)
            return true;
        at += length;
    }
    return n == 0;
}

/* Take the first step with operator `op` (a name of n bytes) and one of the
 * sources that no primitive has taken yet. Returns UINT32_MAX if there is none.
 */
static uint32_t take_step(struct byi_cost_region *costs, const char *op,
                          size_t n, const char *sources)
{
    const struct byi_plan_func *twin = costs->twin;
    if (!byi_op_of_name(op, n))
        return UINT32_MAX;
    while (costs->begin < twin->n_steps &&
           costs->primitive_of_step[costs->begin])
        costs->begin++;
    for (uint32_t i = costs->begin; i < twin->n_steps; i++) {
        const struct byi_step *step = &twin->steps[i];
        if (costs->primitive_of_step[i] || step->kind != BYI_STEP_OP ||
            strncmp(step->name, op, n) != 0 || step->name[n] ||
            !has_source(sources, step))
            continue;
        costs->primitive_of_step[i] = costs->n;
        return i;
    }
    return UINT32_MAX;
}

/* The steps of the twin that a primitive computes, in the order in which the
 * primitive's name lists their operators. */
struct primitive_steps {
    const struct byi_plan_func *twin;
    uint32_t at[32], n; /* indices of the steps, and their number */
};

static bool is_result(const struct primitive_steps *s, uint32_t v)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (byi_has_id(s->twin->steps[s->at[i]].out,
                       s->twin->steps[s->at[i]].n_out, v))
            return true;
    return false;
}

/* Whether one of the steps reads value `v` earlier than step `step` does as its
 * operand `operand`. */
static bool is_read_before(const struct primitive_steps *s, uint32_t step,
                           uint32_t operand, uint32_t v)
{
    for (uint32_t i = 0; i <= step; i++) {
        const struct byi_step *at = &s->twin->steps[s->at[i]];
        if (byi_has_id(at->in, i < step ? at->n_in : operand, v))
            return true;
    }
    return false;
}

static void add_steps(const struct primitive_steps *s, struct byoc_event *event)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (!has_sizes(s->twin, &s->twin->steps[s->at[i]]))
            return;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct byi_step *step = &s->twin->steps[s->at[i]];
        event->flops += flops_of(s->twin, NULL, step);
        for (uint32_t k = 0; k < step->n_in; k++)
            if (!is_result(s, step->in[k]) &&
                !is_read_before(s, i, k, step->in[k]))
                add_operand(s->twin, NULL, step, step->in[k], event);
    }
    if (s->n > 0)
        event->bytes +=
            results_bytes(s->twin, NULL, &s->twin->steps[s->at[s->n - 1]]);
}

void byi_cost_primitive(struct byi_cost_region *costs, struct byoc_event *event)
{
    struct primitive_steps s = {.twin = costs->twin};
    if (!costs->primitive_of_step || !event->name || !event->sources)
        return;
    costs->n++;
    for (const char *op = event->name; *op && s.n < BYI_COUNT(s.at);) {
        const size_t n = strcspn(op, "+");
        const uint32_t step = take_step(costs, op, n, event->sources);
        if (step != UINT32_MAX)
            s.at[s.n++] = step;
        op += n + (op[n] == '+');
    }
    add_steps(&s, event);
}
