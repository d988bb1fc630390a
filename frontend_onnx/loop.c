/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c: converts Loop and Scan to recursion:
 *
 *   %loop = fn (%i, %go, states..., rows...) -> (states..., rows...) {
 *     if (%i < trips and %go) {
 *       the body's graph computes %go', states'..., row...
 *       %loop(%i + 1, %go', states'..., concatenate(rows, row)...)
 *     } else { (states..., rows...) }
 *   };
 *   %loop(0, true, initial states..., empty...)
 *
 * `rows` are the slices of the scan outputs so far, `row` is the slice of one
 * iteration. The recursive call is a tail call, which the runtime runs as a
 * loop. A dim of a state that changes between iterations becomes a new
 * symbol. A fixpoint iteration finds these dims. The first pass starts from the
 * types of the initial values. A pass that finds a changed dim is followed by
 * another with the wider types. Slices with unknown dims are collected in a
 * sequence and stacked after the loop.
 */
#include "core/ir/text.h"
#include "frontend_onnx/import.h"

#include <string.h>

/* One pass: the parameters of the function, and where the branch of an
 * iteration captures them, as indices into then.outside. input_at first indexes
 * func.outside; open_iteration() changes that. */
struct typed_pass {
    struct byi_body func, then;
    byi_id i, go, self;
    byi_id *states, *rows;
    uint32_t i_at, go_at, self_at, *state_at, *row_at, *input_at;
};

static const struct byi_type *scalar_type(struct byi_import *o,
                                          enum byoc_dtype dtype)
{
    return byi_type_tensor(o->m->arena, dtype, 0, NULL);
}

/* Returns the type of a scan output: a sequence of slices if s->is_sequence,
 * otherwise a slice with an additional axis of size `size`. */
static const struct byi_type *rows_type(struct byi_import *o,
                                        const struct byi_slices *s,
                                        int64_t size)
{
    int64_t dims[BYI_MAX_RANK + 1];
    const uint32_t rank = s->slice_type->rank;

    if (s->is_sequence)
        return byi_type_list(o->m->arena, BYI_SEQ, s->slice_type);

    for (uint32_t i = 0, k = 0; i <= rank; i++)
        dims[i] = i == s->axis ? size : s->slice_type->dims[k++];
    return byi_type_tensor(o->m->arena, s->slice_type->dtype, rank + 1, dims);
}

/* Returns the type of the loop's result, in which dims of states that change
 * have new symbols. */
static const struct byi_type *result_type(struct byi_import *o,
                                          const struct byi_onnx_loop *loop)
{
    const uint32_t n = loop->n_states + loop->n_typed;
    const struct byi_type **fields =
        byi_arena_calloc(o->scratch, n + 1, sizeof *fields);

    for (uint32_t i = 0; i < loop->n_states; i++) {
        const struct byi_type *type = loop->types[i];
        const struct byi_type *first = o->f->nodes.at[loop->states[i]].type;
        int64_t dims[BYI_MAX_RANK];
        fields[i] = type;
        if (type->kind != BYI_TENSOR)
            continue;
        for (uint32_t d = 0; d < type->rank; d++)
            dims[d] = type->dims[d] == first->dims[d] ? type->dims[d]
                                                      : byi_symbol_new(o->m);
        fields[i] = byi_type_tensor(o->m->arena, type->dtype, type->rank, dims);
    }
    for (uint32_t i = 0; i < loop->n_typed; i++)
        fields[loop->n_states + i] =
            rows_type(o, &loop->scan_outputs[i], byi_symbol_new(o->m));
    return n == 1 ? fields[0] : byi_type_tuple(o->m->arena, n, fields);
}

/* Open the function and set its parameters and type. Sets *trips_at to the
 * index of the trip count in func->outside, if the loop has one. */
static void open_loop(struct byi_import *o, const struct byi_onnx_loop *loop,
                      struct typed_pass *r, uint32_t *trips_at)
{
    struct byi_body *func = &r->func;
    BYI_VEC(const struct byi_type *) params = {0};
    char name[24];

    byi_import_body_open(o, loop->graph, func);
    if (loop->trips != BYI_NO_ID)
        *trips_at = byi_import_body_capture(o, func, loop->trips);
    for (uint32_t i = 0; i < loop->n_scan_inputs; i++)
        r->input_at[i] =
            byi_import_body_capture(o, func, loop->scan_inputs[i].whole);
    if (!byi_import_ok(o))
        return;
    r->i = byi_import_body_param(o, func, "i", scalar_type(o, BYOC_I64));
    BYI_PUSH(&params, scalar_type(o, BYOC_I64));
    if (loop->condition != BYI_NO_ID) {
        r->go = byi_import_body_param(o, func, "go", scalar_type(o, BYOC_BOOL));
        BYI_PUSH(&params, scalar_type(o, BYOC_BOOL));
    }
    for (uint32_t i = 0; i < loop->n_states; i++) {
        snprintf(name, sizeof name, "state%u", i);
        r->states[i] = byi_import_body_param(o, func, name, loop->types[i]);
        BYI_PUSH(&params, loop->types[i]);
    }
    for (uint32_t i = 0; i < loop->n_typed; i++) {
        snprintf(name, sizeof name, "rows%u", i);
        const struct byi_type *type =
            rows_type(o, &loop->scan_outputs[i], byi_symbol_new(o->m));
        r->rows[i] = byi_import_body_param(o, func, name, type);
        BYI_PUSH(&params, type);
    }
    byi_import_body_add_captures(o, func);
    if (byi_import_ok(o))
        func->inner.f->type = byi_type_func(o->m->arena, params.n, params.at,
                                            result_type(o, loop));
    byi_vec_free(params.at);
}

/* Emit %i < trips and %go; if the loop has only one of the two conditions, emit
 * that one. */
static byi_id emit_condition(const struct byi_onnx_loop *loop,
                             struct typed_pass *r, uint32_t trips_at)
{
    struct byi_import *in = &r->func.inner;

    if (loop->trips == BYI_NO_ID)
        return r->go;
    const byi_id trips = r->func.outside[trips_at].inner;
    const byi_id less = byi_import_call(in, BYI_OP_LESS, r->i, trips);
    if (loop->condition == BYI_NO_ID)
        return less;
    return byi_import_call(in, BYI_OP_LOGICAL_AND, less, r->go);
}

/* Add the function as a value in its own body, with the same captures. */
static byi_id add_self(struct byi_body *func)
{
    struct byi_func *f = func->inner.f;
    const uint32_t n = f->n_captures;

    return byi_add_fn(func->inner.m, f, func->func,
                      f->params.at + f->params.n - n, n, byi_sources_none());
}

/* Returns the value in the branch of an iteration that has index `at` in
 * then.outside. */
static byi_id captured_value(const struct typed_pass *r, uint32_t at)
{
    return r->then.outside[at].inner;
}

/* Emit the slice of scan input k for this iteration. */
static byi_id read_slice(const struct byi_onnx_loop *loop, struct typed_pass *r,
                         uint32_t k)
{
    struct byi_import *in = &r->then.inner;
    const struct byi_slices *s = &loop->scan_inputs[k];
    byi_id at = captured_value(r, r->i_at);

    if (s->reads_whole)
        return captured_value(r, r->input_at[k]);
    if (s->is_sequence)
        return byi_import_call(in, BYI_OP_SEQ_AT,
                               captured_value(r, r->input_at[k]), at);
    if (s->backward) /* take counts -1, -2, ... from the end */
        at = byi_import_call(in, BYI_OP_SUBTRACT,
                             byi_import_scalar(in, BYOC_I64, -1), at);
    return byi_import_take(in, captured_value(r, r->input_at[k]), at, s->axis);
}

/* Emit the iteration number or condition `id` as a vector of one element if
 * input k of the body is declared as one, since the standard allows both;
 * otherwise return `id`. */
static byi_id emit_as_declared(struct byi_import *in,
                               const Onnx__GraphProto *body, size_t k,
                               byi_id id)
{
    const Onnx__TypeProto *type =
        k < body->n_input ? body->input[k]->type : NULL;
    const Onnx__TypeProto__Tensor *tensor =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? type->tensor_type
            : NULL;

    if (!tensor || !tensor->shape || tensor->shape->n_dim != 1)
        return id;
    return byi_import_reshape_to(in, id, INTS(1));
}

/* Convert the graph in the branch that runs one iteration. */
static void convert_graph(const struct byi_onnx_loop *loop,
                          struct typed_pass *r, byi_id *outputs)
{
    struct byi_import *in = &r->then.inner;
    const uint32_t n = 2 + loop->n_states + loop->n_scan_inputs;
    byi_id *inputs = byi_arena_calloc(r->then.inner.scratch, n, sizeof *inputs);
    uint32_t k = 0;

    if (loop->is_loop) {
        const byi_id go = loop->condition == BYI_NO_ID
                              ? byi_import_scalar(in, BYOC_BOOL, 1)
                              : captured_value(r, r->go_at);
        inputs[k++] =
            emit_as_declared(in, loop->graph, 0, captured_value(r, r->i_at));
        inputs[k++] = emit_as_declared(in, loop->graph, 1, go);
    }
    for (uint32_t i = 0; i < loop->n_states; i++)
        inputs[k++] = captured_value(r, r->state_at[i]);
    for (uint32_t i = 0; i < loop->n_scan_inputs; i++)
        inputs[k++] = read_slice(loop, r, i);
    byi_import_body_nodes(&r->func.inner, &r->then, inputs, k, outputs);
}

/* Open the branch, which captures all values of the function that it reads.
 * Changes r->input_at from indices into func.outside to indices into
 * then.outside. */
static void open_iteration(const struct byi_onnx_loop *loop,
                           struct typed_pass *r)
{
    struct byi_import *f = &r->func.inner;
    struct byi_body *then = &r->then;

    byi_import_body_open(f, loop->graph, then);
    r->i_at = byi_import_body_capture(f, then, r->i);
    if (loop->condition != BYI_NO_ID)
        r->go_at = byi_import_body_capture(f, then, r->go);
    for (uint32_t i = 0; i < loop->n_states; i++)
        r->state_at[i] = byi_import_body_capture(f, then, r->states[i]);
    for (uint32_t i = 0; i < loop->n_typed; i++)
        r->row_at[i] = byi_import_body_capture(f, then, r->rows[i]);
    for (uint32_t i = 0; i < loop->n_scan_inputs; i++)
        r->input_at[i] = byi_import_body_capture(
            f, then, r->func.outside[r->input_at[i]].inner);
    r->self_at = byi_import_body_capture(f, then, r->self);
    byi_import_body_add_captures(f, then);
}

/* --- types of a pass ------------------------------------------------------ */

/* Widen the type of state i so that `found`, its type after an iteration, fits.
 * Dims that differ become new symbols; a sequence or optional gets the joined
 * type. Returns whether the type changed. */
static bool widen_state(struct byi_import *o, struct byi_onnx_loop *loop,
                        uint32_t i, const struct byi_type *found)
{
    const struct byi_type *type = loop->types[i];
    const struct byi_type *first = o->f->nodes.at[loop->states[i]].type;
    int64_t dims[BYI_MAX_RANK];
    char text[2][160];
    bool wider = false;

    if (byi_type_is_list(type)) {
        if (type->kind == BYI_OPTIONAL && found->kind != BYI_OPTIONAL)
            found = byi_type_list(o->m->arena, BYI_OPTIONAL, found);
        const struct byi_type *joined = byi_type_join(o->m->arena, type, found);
        if (!joined)
            byi_import_refuse(
                o,
                "state %u after an iteration: found %s, expected %s, "
                "as before the iteration",
                i, byi_text_type_buf(o->m, found, text[0], sizeof text[0]),
                byi_text_type_buf(o->m, type, text[1], sizeof text[1]));
        wider = joined && !byi_type_equal(joined, type);
        loop->types[i] = joined ? joined : type;
        return wider;
    }
    if (found->kind != BYI_TENSOR || found->dtype != type->dtype ||
        found->rank != type->rank) {
        byi_import_refuse(
            o,
            "state %u after an iteration: found %s, expected %s; only its "
            "dims may change",
            i, byi_text_type_buf(o->m, found, text[0], sizeof text[0]),
            byi_text_type_buf(o->m, type, text[1], sizeof text[1]));
        return false;
    }
    for (uint32_t d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d];
        if (found->dims[d] == dims[d] || dims[d] != first->dims[d])
            continue;
        dims[d] = byi_symbol_new(o->m);
        wider = true;
    }
    if (wider)
        loop->types[i] =
            byi_type_tensor(o->m->arena, type->dtype, type->rank, dims);
    return wider;
}

/* Set the type of a slice of a scan output: inferred dims, otherwise the dims
 * that the file declares, which the run checks. If a dim is still unknown,
 * slices go into a sequence. Returns false on failure. */
static bool set_slice_type(struct byi_import *o,
                           const Onnx__ValueInfoProto *info,
                           const struct byi_type *found, struct byi_slices *row)
{
    int64_t dims[BYI_MAX_RANK];
    const Onnx__TensorShapeProto *shape = NULL;

    if (row->is_sequence && !row->stacked) {
        row->slice_type = byi_type_list(o->m->arena, BYI_SEQ, found)->fields[0];
        return true;
    }
    if (info->type &&
        info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        shape = info->type->tensor_type->shape;
    for (uint32_t d = 0; d < found->rank; d++) {
        dims[d] = found->dims[d];
        if (BYI_IS_SYMBOL(dims[d]) && shape && shape->n_dim == found->rank &&
            shape->dim[d]->value_case ==
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            shape->dim[d]->dim_value >= 0)
            dims[d] = shape->dim[d]->dim_value;
        row->stacked = row->stacked || BYI_IS_SYMBOL(dims[d]);
    }
    if (found->rank == BYI_MAX_RANK) {
        byi_import_refuse(o, "a scan output has rank %u, expected at most %d",
                          found->rank + 1, BYI_MAX_RANK);
        return false;
    }
    row->axis = byi_import_axis(o, row->node_axis, found->rank + 1);
    row->slice_type =
        byi_type_tensor(o->m->arena, found->dtype, found->rank, dims);
    row->is_sequence = row->stacked;
    if (row->is_sequence)
        row->slice_type =
            byi_type_list(o->m->arena, BYI_SEQ, row->slice_type)->fields[0];
    return byi_import_ok(o);
}

/* Widen the types by the outputs of an iteration. Returns whether another pass
 * is needed. */
static bool widen_types(struct byi_import *o, struct byi_onnx_loop *loop,
                        const struct typed_pass *r, const byi_id *outputs)
{
    const struct byi_func *f = r->then.inner.f;
    const uint32_t first = loop->is_loop ? 1 : 0;
    bool needs_pass = false;

    for (uint32_t i = 0; i < loop->n_states && byi_import_ok(o); i++)
        needs_pass |=
            widen_state(o, loop, i, f->nodes.at[outputs[first + i]].type);
    for (uint32_t i = 0; i < loop->n_scan_outputs && byi_import_ok(o); i++) {
        struct byi_slices *row = &loop->scan_outputs[i];
        const uint32_t k = first + loop->n_states + i;
        const struct byi_type *found = f->nodes.at[outputs[k]].type;
        const struct byi_type *before = row->slice_type;
        if (set_slice_type(o, loop->graph->output[k], found, row))
            needs_pass |= !before || !byi_type_equal(before, row->slice_type);
    }
    return needs_pass;
}

/* --- the end of an iteration ---------------------------------------------- */

/* Emit the rows of scan output i with the slice `found` of this iteration. */
static byi_id add_row(const struct byi_onnx_loop *loop, struct typed_pass *r,
                      uint32_t i, byi_id found)
{
    struct byi_import *in = &r->then.inner;
    const struct byi_slices *s = &loop->scan_outputs[i];
    const byi_id rows = captured_value(r, r->row_at[i]);

    if (s->is_sequence && s->backward)
        return byi_import_call(in, BYI_OP_SEQ_INSERT, rows, found,
                               byi_import_scalar(in, BYOC_I64, 0));
    if (s->is_sequence)
        return byi_import_call(in, BYI_OP_SEQ_INSERT, rows, found);
    const struct byi_type *type = rows_type(in, s, 1);

    /* only the file declares some dims: reshape checks them at run time */
    if (byi_import_ok(in) && byi_type_is_static(in->f->nodes.at[found].type))
        found = byi_import_add_axes(in, found, s->axis, 1);
    else
        found = byi_import_reshape(
            in, found, byi_import_vector(in, type->rank, type->dims), true);
    const byi_id pieces[] = {s->backward ? found : rows,
                             s->backward ? rows : found};
    return byi_import_emit(in, BYI_OP_CONCATENATE, 2, pieces,
                           ATTRS(AN_INT("axis", s->axis)));
}

/* Wrap the value in an optional if the state's type is an optional. */
static byi_id wrap_state(struct byi_import *in, const struct byi_type *type,
                         byi_id value)
{
    if (!byi_import_ok(in) || type->kind != BYI_OPTIONAL ||
        in->f->nodes.at[value].type->kind == BYI_OPTIONAL)
        return value;
    return byi_import_call(in, BYI_OP_OPT_MAKE, value);
}

/* Emit the tail call of the next iteration. */
static byi_id call_next_iteration(const struct byi_onnx_loop *loop,
                                  struct typed_pass *r, const byi_id *outputs)
{
    struct byi_import *in = &r->then.inner;
    const uint32_t first = loop->is_loop ? 1 : 0;
    byi_id *args = byi_arena_calloc(
        in->scratch, 2 + loop->n_states + loop->n_typed, sizeof *args);
    byi_id id = BYI_NO_ID;
    uint32_t n = 0;

    args[n++] = byi_import_call(in, BYI_OP_ADD, captured_value(r, r->i_at),
                                byi_import_scalar(in, BYOC_I64, 1));
    if (loop->condition != BYI_NO_ID)
        args[n++] = byi_import_as_scalar(in, outputs[0]);
    for (uint32_t i = 0; i < loop->n_states; i++)
        args[n++] = wrap_state(in, loop->types[i], outputs[first + i]);
    for (uint32_t i = 0; i < loop->n_typed; i++)
        args[n++] = add_row(loop, r, i, outputs[first + loop->n_states + i]);
    if (!byi_import_ok(in))
        return BYI_NO_ID;
    in->status = byi_add_apply(in->m, in->f, captured_value(r, r->self_at),
                               args, n, in->sources, &id, &in->err);
    return id;
}

/* Make the else branch, which returns the states and rows. */
static byi_id make_exit_branch(const struct byi_onnx_loop *loop,
                               struct typed_pass *r)
{
    struct byi_import *in = &r->func.inner;
    const uint32_t n = loop->n_states + loop->n_typed;
    byi_id *outer = byi_arena_calloc(in->scratch, n + 1, sizeof *outer);
    byi_id *inner = byi_arena_calloc(in->scratch, n + 1, sizeof *inner);
    const uint32_t index = byi_func_new(in->m, NULL);
    struct byi_func *f = in->m->funcs.at[index];

    for (uint32_t i = 0; i < n; i++) {
        outer[i] =
            i < loop->n_states ? r->states[i] : r->rows[i - loop->n_states];
        inner[i] =
            byi_add_param(in->m, f, byi_arena_printf(in->m->arena, "c%u", i),
                          in->f->nodes.at[outer[i]].type);
    }
    f->n_captures = n;
    f->result = n == 1 ? inner[0]
                       : byi_add_tuple(in->m, f, inner, n, byi_sources_none());
    return byi_add_fn(in->m, in->f, index, outer, n, byi_sources_none());
}

/* --- the loop ------------------------------------------------------------- */

static struct typed_pass typed_pass_new(struct byi_import *o,
                                        const struct byi_onnx_loop *loop)
{
    const uint32_t n = loop->n_states + 1, k = loop->n_scan_outputs + 1;

    return (struct typed_pass){
        .go = BYI_NO_ID,
        .states = byi_arena_calloc(o->scratch, n, sizeof(byi_id)),
        .rows = byi_arena_calloc(o->scratch, k, sizeof(byi_id)),
        .state_at = byi_arena_calloc(o->scratch, n, sizeof(uint32_t)),
        .row_at = byi_arena_calloc(o->scratch, k, sizeof(uint32_t)),
        .input_at = byi_arena_calloc(o->scratch, loop->n_scan_inputs + 1,
                                     sizeof(uint32_t)),
    };
}

/* Make the branch that runs an iteration. Returns BYI_NO_ID without a failure
 * if the types changed. */
static byi_id make_iteration(struct byi_import *o, struct byi_onnx_loop *loop,
                             struct typed_pass *r)
{
    struct byi_import *in = &r->func.inner;
    byi_id *outputs = byi_arena_calloc(o->scratch, loop->graph->n_output + 1,
                                       sizeof *outputs);
    byi_id result = BYI_NO_ID;

    r->self = add_self(&r->func);
    open_iteration(loop, r);
    convert_graph(loop, r, outputs);
    if (byi_import_ok(in) && !widen_types(o, loop, r, outputs) &&
        byi_import_ok(o))
        result = call_next_iteration(loop, r, outputs);
    return byi_import_body_close(in, &r->then, result);
}

/* Run one pass: make the function with the current types. Returns BYI_NO_ID
 * without a failure if the types changed. */
static byi_id run_pass(struct byi_import *o, struct byi_onnx_loop *loop)
{
    struct typed_pass r = typed_pass_new(o, loop);
    byi_id result = BYI_NO_ID;
    uint32_t trips_at = 0;

    open_loop(o, loop, &r, &trips_at);
    struct byi_import *in = &r.func.inner;
    if (byi_import_ok(o)) {
        const byi_id cond = emit_condition(loop, &r, trips_at);
        const byi_id then = make_iteration(o, loop, &r);
        if (then != BYI_NO_ID)
            in->status =
                byi_add_if(in->m, in->f, cond, then, make_exit_branch(loop, &r),
                           in->sources, &result, &in->err);
        if (result != BYI_NO_ID) /* the declared type has its own symbols */
            in->f->nodes.at[result].type = in->f->type->result;
    }
    return byi_import_body_close(o, &r.func, result);
}

byi_id byi_loop_make(struct byi_import *o, struct byi_onnx_loop *loop)
{
    const uint64_t n = (uint64_t)loop->n_scan_inputs + loop->n_states +
                       loop->n_scan_outputs + 2;
    byi_id fn = BYI_NO_ID;

    if (byi_import_ok(o) && n > BYI_MAX_ARGS) {
        byi_import_refuse(o,
                          "found a body with %llu inputs, states and outputs, "
                          "expected at most %d",
                          (unsigned long long)n, BYI_MAX_ARGS);
        return fn;
    }
    loop->types =
        byi_arena_calloc(o->scratch, loop->n_states + 1, sizeof *loop->types);
    for (uint32_t i = 0; i < loop->n_states && byi_import_ok(o); i++) {
        loop->types[i] = o->f->nodes.at[loop->states[i]].type;
        if (loop->types[i]->kind == BYI_TUPLE ||
            loop->types[i]->kind == BYI_FUNC)
            byi_import_refuse(
                o, "state %u is a map, expected a tensor, sequence or optional",
                i);
    }
    while (byi_import_ok(o) &&
           fn == BYI_NO_ID) { /* passes before the last widen types */
        fn = run_pass(o, loop);
        loop->n_typed = loop->n_scan_outputs;
    }
    return fn;
}

byi_id byi_loop_empty_output(struct byi_import *o,
                             const struct byi_slices *output)
{
    int64_t none = 0;
    struct byi_tensor t = {.data = &none};

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    if (output->is_sequence)
        return byi_import_emit(
            o, BYI_OP_SEQ_MAKE, 0, NULL,
            ATTRS(A_DTYPE("dtype", output->slice_type->dtype)));
    const struct byi_type *type = rows_type(o, output, 0);
    t.dtype = type->dtype;
    t.rank = type->rank;
    memcpy(t.dims, type->dims, type->rank * sizeof *type->dims);
    return byi_import_const(o, &t, false);
}
