/* SPDX-License-Identifier: Apache-2.0 */
/* ops_control.c: converts If, Loop and Scan.
 *
 * If the condition is a constant, the taken branch is inlined; otherwise both
 * branches become functions without parameters (see squeeze_if_one() for an
 * exception).
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* --- If ------------------------------------------------------------------- */

static byi_id make_tuple(struct byi_import *o, const byi_id *ids, uint32_t n)
{
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    return n == 1 ? ids[0] : byi_add_tuple(o->m, o->f, ids, n, o->sources);
}

/* A branch that is being imported. */
struct if_branch {
    struct byi_body body;
    byi_id *outputs;
    uint32_t n;
};

static struct if_branch open_branch(struct byi_import *o,
                                    const Onnx__GraphProto *graph)
{
    struct if_branch b = {.n = (uint32_t)graph->n_output};

    b.outputs = byi_arena_calloc(o->scratch, b.n + 1, sizeof *b.outputs);
    byi_import_body_open(o, graph, &b.body);
    byi_import_body_add_captures(o, &b.body);
    byi_import_body_nodes(o, &b.body, NULL, 0, b.outputs);
    return b;
}

static byi_id close_branch(struct byi_import *o, struct if_branch *b)
{
    return byi_import_body_close(o, &b->body,
                                 make_tuple(&b->body.inner, b->outputs, b->n));
}

static bool is_tensor(const struct if_branch *b, uint32_t i)
{
    const struct byi_import *inner = &b->body.inner;

    return byi_import_ok(inner) && b->outputs[i] != BYI_NO_ID &&
           inner->f->nodes.at[b->outputs[i]].type->kind == BYI_TENSOR;
}

/* Prepend axes of size 1 to each output that has a higher rank in the other
 * branch because of such axes. Both branches must return the same rank, and
 * broadcasting ignores these axes. */
static void raise_ranks(struct if_branch *b, const struct if_branch *other)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (!is_tensor(b, i) || !is_tensor(other, i))
            continue;
        const uint32_t rank = byi_import_rank(&b->body.inner, b->outputs[i]);
        const uint32_t expected =
            byi_import_rank(&other->body.inner, other->outputs[i]);
        bool adds_ones = expected > rank && expected - rank <= BYI_MAX_RANK;
        for (uint32_t k = 0; adds_ones && k < expected - rank; k++)
            adds_ones =
                byi_import_dim(&other->body.inner, other->outputs[i], k) == 1;
        if (adds_ones)
            b->outputs[i] = byi_import_add_axes(&b->body.inner, b->outputs[i],
                                                0, expected - rank);
    }
}

/* Make the fields of a function's result the outputs of the node. */
static void take_results(struct byi_import *o, byi_id id, uint32_t n_fields)
{
    for (uint32_t i = 0; i < o->n_out && byi_import_ok(o); i++)
        o->out[i] = n_fields == 1 ? id : byi_import_get(o, id, i);
}

static void emit_if(struct byi_import *o, const Onnx__GraphProto *then,
                    const Onnx__GraphProto *otherwise)
{
    const byi_id cond = byi_import_as_scalar(o, byi_import_in(o, 0));
    byi_id id = BYI_NO_ID;

    if (!byi_import_ok(o))
        return;
    struct if_branch a = open_branch(o, then), b = open_branch(o, otherwise);
    if (byi_import_ok(o)) {
        raise_ranks(&a, &b);
        raise_ranks(&b, &a);
    }
    const byi_id yes = close_branch(o, &a), no = close_branch(o, &b);
    if (!byi_import_ok(o))
        return;
    o->status = byi_add_if(o->m, o->f, cond, yes, no, o->sources, &id, &o->err);
    if (!byi_import_ok(o))
        byi_prefix(&o->err,
                   "node %.200s (If), whose condition is not constant (try to "
                   "fix dims with --dim or --shape, or an input with --const)",
                   o->name);
    take_results(o, id, (uint32_t)then->n_output);
}

/* Whether the condition is `dim == 1` for a symbolic dim; if so, sets *dim. */
static bool compares_dim_with_one(struct byi_import *o, byi_id cond,
                                  int64_t *dim)
{
    const struct byi_node *node = &o->f->nodes.at[cond];
    const struct byi_dim_item *items[2] = {0};
    for (uint32_t i = 0; i < 2 && node->kind == BYI_CALL_OP; i++) {
        uint32_t n = 0;
        if (node->op == BYI_OP_EQUAL)
            items[i] = byi_import_items(o, node->args[i], &n);
        if (n != 1)
            return false;
    }
    if (!items[0] || !items[1])
        return false;
    const struct byi_dim_item *number = items[items[0]->kind != BYI_NUMBER];
    const struct byi_dim_item *symbol = items[items[0]->kind == BYI_NUMBER];
    *dim = symbol->value;
    return number->kind == BYI_NUMBER && number->value == 1 &&
           symbol->kind == BYI_SYMBOL;
}

static bool is_squeeze_or_identity(const Onnx__GraphProto *then,
                                   const Onnx__GraphProto *otherwise)
{
    const size_t last = then->n_node - 1;
    for (size_t i = 0; i < then->n_node; i++)
        if (strcmp(then->node[i]->op_type, i < last ? "Constant" : "Squeeze") !=
            0)
            return false;
    return then->n_node && then->n_output == 1 && otherwise->n_node == 1 &&
           strcmp(otherwise->node[0]->op_type, "Identity") == 0;
}

/* PyTorch exports squeeze(x, dim) of a symbolic dim as an If. It removes
 * the axis only if its size is 1, so the rank of its result depends on the
 * data. Readers of the result expect one rank; therefore the axis is always
 * removed, and a run fails if its size is not 1.
 * Returns false if the node is another If. */
static bool squeeze_if_one(struct byi_import *o, const Onnx__GraphProto *then,
                           const Onnx__GraphProto *otherwise)
{
    int64_t dim;
    byi_id squeezed, x;
    if (!byi_import_ok(o) || !is_squeeze_or_identity(then, otherwise) ||
        !compares_dim_with_one(o, byi_import_in(o, 0), &dim))
        return false;
    byi_import_inline(o, then, NULL, 0, &squeezed);
    byi_import_inline(o, otherwise, NULL, 0, &x);
    if (!byi_import_ok(o))
        return true;
    const struct byi_node *node = &o->f->nodes.at[squeezed];
    uint32_t n = 0;
    const int64_t *axes = node->op == BYI_OP_SQUEEZE && node->args[0] == x
                              ? byi_attr_ints(node->attrs, "axis", &n)
                              : NULL;
    o->out[0] = squeezed;
    return n == 1 && byi_import_dim(o, x, (uint32_t)axes[0]) == dim;
}

static void convert_if(struct byi_import *o)
{
    const Onnx__GraphProto *then = byi_import_graph(o, "then_branch");
    const Onnx__GraphProto *otherwise = byi_import_graph(o, "else_branch");
    struct byi_tensor cond = {0};

    if (!byi_import_ok(o))
        return;
    if (then->n_input || otherwise->n_input)
        byi_import_fail(o, BYOC_EPARSE,
                        "its branches have %zu and %zu inputs, expected none",
                        then->n_input, otherwise->n_input);
    if (then->n_output != o->n_out || otherwise->n_output != o->n_out)
        byi_import_fail(o, BYOC_EPARSE,
                        "its branches have %zu and %zu outputs, expected %u",
                        then->n_output, otherwise->n_output, o->n_out);
    if (!byi_import_const_view(o, byi_import_in(o, 0), &cond) ||
        cond.dtype != BYOC_BOOL || byi_elements(cond.rank, cond.dims) != 1) {
        if (!squeeze_if_one(o, then, otherwise))
            emit_if(o, then, otherwise);
        return;
    }
    const bool holds = byi_tensor_int(&cond, 0) != 0;
    byi_import_inline(o, holds ? then : otherwise, NULL, 0, o->out);
}

/* --- Loop, Scan ----------------------------------------------------------- */

/* Call the loop with its initial values. */
static void run_loop(struct byi_import *o, struct byi_onnx_loop *loop)
{
    const byi_id fn = byi_loop_make(o, loop);
    byi_id *args = byi_arena_calloc(
        o->scratch, 2 + loop->n_states + loop->n_scan_outputs, sizeof *args);
    byi_id id = BYI_NO_ID;
    uint32_t n = 0;

    if (!byi_import_ok(o))
        return;
    args[n++] = byi_import_scalar(o, BYOC_I64, 0);
    if (loop->condition != BYI_NO_ID)
        args[n++] = loop->condition;
    for (uint32_t i = 0; i < loop->n_states; i++)
        args[n++] = loop->states[i];
    for (uint32_t i = 0; i < loop->n_scan_outputs; i++)
        args[n++] = byi_loop_empty_output(o, &loop->scan_outputs[i]);
    if (!byi_import_ok(o))
        return;
    o->status =
        byi_add_apply(o->m, o->f, fn, args, n, o->sources, &id, &o->err);
    if (!byi_import_ok(o))
        byi_prefix(&o->err, "node %.200s (%.100s)", o->name, o->row->type);
    take_results(o, id, loop->n_states + loop->n_scan_outputs);
    for (uint32_t i = loop->n_states; i < o->n_out && byi_import_ok(o); i++) {
        const struct byi_slices *output =
            &loop->scan_outputs[i - loop->n_states];
        if (output->stacked)
            o->out[i] = byi_import_emit(
                o, BYI_OP_SEQ_CONCATENATE, ARGS(o->out[i]),
                ATTRS(AN_INT("axis", output->axis), A_BOOL("new_axis", true),
                      A_BOOL("allow_empty", true)));
    }
}

/* Count the scan outputs: the outputs of the body after the states. */
static void count_scan_outputs(struct byi_import *o, struct byi_onnx_loop *loop)
{
    const uint32_t first = loop->is_loop ? 1 : 0;
    const size_t n = loop->graph->n_output;

    if (n < first + loop->n_states || n - first > BYI_MAX_ARGS / 2 ||
        n - first < o->n_out || n == first) {
        byi_import_fail(
            o, BYOC_EPARSE,
            "its body has %zu outputs, expected %u to %d for %u states "
            "and %u outputs of the node",
            n,
            first + (loop->n_states > o->n_out ? loop->n_states
                     : o->n_out > 0            ? o->n_out
                                               : 1),
            (int)first + BYI_MAX_ARGS / 2, loop->n_states, o->n_out);
        return;
    }
    loop->n_scan_outputs = (uint32_t)n - first - loop->n_states;
    loop->scan_outputs = byi_arena_calloc(o->scratch, loop->n_scan_outputs + 1,
                                          sizeof *loop->scan_outputs);
}

static void convert_loop(struct byi_import *o)
{
    struct byi_onnx_loop loop = {
        .graph = byi_import_graph(o, "body"),
        .trips = byi_import_as_scalar(o, byi_import_in(o, 0)),
        .condition = byi_import_as_scalar(o, byi_import_in(o, 1)),
        .is_loop = true,
        .n_states = o->n_in > 2 ? o->n_in - 2 : 0,
        .states = o->in + 2};

    if (!byi_import_ok(o))
        return;
    if (loop.trips == BYI_NO_ID && loop.condition == BYI_NO_ID)
        byi_import_refuse(o, "found neither a trip count nor a condition, "
                             "expected one, or the loop never ends");
    for (uint32_t i = 0; i < loop.n_states; i++)
        if (loop.states[i] == BYI_NO_ID)
            byi_import_fail(o, BYOC_EPARSE,
                            "state %u has no initial value, expected one", i);
    if (loop.graph->n_input != 2 + loop.n_states)
        byi_import_fail(o, BYOC_EPARSE,
                        "its body has %zu inputs, expected %u (iteration, "
                        "condition, states)",
                        loop.graph->n_input, 2 + loop.n_states);
    if (byi_import_ok(o))
        count_scan_outputs(o, &loop);
    run_loop(o, &loop);
}

/* Read the axes and directions of n scan inputs or scan outputs. */
static void read_slices(struct byi_import *o, struct byi_slices *slices,
                        uint32_t n, const char *axes, const char *directions)
{
    uint32_t n_axes, n_directions;
    const int64_t *axis = byi_import_ints(o, axes, &n_axes);
    const int64_t *direction = byi_import_ints(o, directions, &n_directions);

    if (axis && n_axes != n)
        byi_import_fail(o, BYOC_EPARSE,
                        "%s has %u entries, expected %u or none", axes, n_axes,
                        n);
    if (direction && n_directions != n)
        byi_import_fail(o, BYOC_EPARSE,
                        "%s has %u entries, expected %u or none", directions,
                        n_directions, n);
    for (uint32_t i = 0; i < n && byi_import_ok(o); i++) {
        slices[i].node_axis = axis ? axis[i] : 0;
        slices[i].backward = direction && direction[i] != 0;
    }
}

/* Emit the trip count: the number of slices of a scan input. */
static byi_id count_slices(struct byi_import *o, const struct byi_slices *s)
{
    const int64_t n = byi_import_dim(o, s->whole, s->axis);

    if (!BYI_IS_SYMBOL(n))
        return byi_import_scalar(o, BYOC_I64, (double)n);
    const byi_id shape = byi_import_shape_of(o, s->whole);
    return byi_import_take(o, shape, byi_import_scalar(o, BYOC_I64, s->axis),
                           0);
}

/* Read the scan inputs and outputs; fails if an input's fixed number of slices
 * differs from a fixed number of input 0. */
static void find_slices(struct byi_import *o, struct byi_onnx_loop *loop)
{
    read_slices(o, loop->scan_inputs, loop->n_scan_inputs, "scan_input_axes",
                o->opset < 9 ? "directions" : "scan_input_directions");
    read_slices(o, loop->scan_outputs, loop->n_scan_outputs, "scan_output_axes",
                "scan_output_directions");
    for (uint32_t i = 0; i < loop->n_scan_inputs && byi_import_ok(o); i++) {
        struct byi_slices *s = &loop->scan_inputs[i];
        s->whole = o->in[loop->n_states + i];
        s->axis =
            byi_import_axis(o, s->node_axis, byi_import_rank(o, s->whole));
        const int64_t n = byi_import_dim(o, s->whole, s->axis),
                      first = byi_import_dim(o, loop->scan_inputs[0].whole,
                                             loop->scan_inputs[0].axis);
        if (n != first && !BYI_IS_SYMBOL(n) && !BYI_IS_SYMBOL(first))
            byi_import_fail(o, BYOC_ETYPE,
                            "scan input %u has %lld slices, expected %lld as "
                            "in scan input 0",
                            i, (long long)n, (long long)first);
    }
}

/* Reshape the scan inputs whose number of slices may differ from the trip count
 * to that number: the run fails if it does. */
static void check_slices(struct byi_import *o, struct byi_onnx_loop *loop)
{
    const struct byi_slices *first = &loop->scan_inputs[0];
    const byi_id trips = byi_import_add_axes(o, loop->trips, 0, 1);

    for (uint32_t i = 1; i < loop->n_scan_inputs && byi_import_ok(o); i++) {
        struct byi_slices *s = &loop->scan_inputs[i];
        if (byi_import_dim(o, s->whole, s->axis) ==
            byi_import_dim(o, first->whole, first->axis))
            continue;
        const byi_id shape = byi_import_shape_of(o, s->whole);
        const uint32_t rank = byi_import_rank(o, s->whole);
        const byi_id before = byi_import_slice(o, shape, 0, s->axis, 0),
                     after = byi_import_slice(o, shape, s->axis + 1, rank, 0);
        s->whole = byi_import_reshape(
            o, s->whole,
            byi_import_concat(o, byi_import_concat(o, before, trips, 0), after,
                              0),
            true);
    }
}

static void convert_scan(struct byi_import *o)
{
    const int64_t n_inputs = byi_import_int(o, "num_scan_inputs", 0);
    struct byi_onnx_loop loop = {.graph = byi_import_graph(o, "body"),
                                 .condition = BYI_NO_ID,
                                 .states = o->in};

    if (!byi_import_ok(o))
        return;
    if (n_inputs < 1 || n_inputs > o->n_in) {
        byi_import_fail(o, BYOC_EPARSE,
                        "num_scan_inputs is %lld, expected 1 to %u",
                        (long long)n_inputs, o->n_in);
        return;
    }
    if (loop.graph->n_input != o->n_in) {
        byi_import_fail(o, BYOC_EPARSE,
                        "its body has %zu inputs, expected %u, one for each "
                        "input of the node",
                        loop.graph->n_input, o->n_in);
        return;
    }
    for (uint32_t i = 0; i < o->n_in; i++)
        if (o->in[i] == BYI_NO_ID)
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u is omitted, expected a value", i);
    loop.n_scan_inputs = (uint32_t)n_inputs;
    loop.n_states = o->n_in - loop.n_scan_inputs;
    loop.scan_inputs = byi_arena_calloc(o->scratch, loop.n_scan_inputs,
                                        sizeof *loop.scan_inputs);
    count_scan_outputs(o, &loop);
    if (byi_import_ok(o))
        find_slices(o, &loop);
    if (byi_import_ok(o))
        loop.trips = count_slices(o, &loop.scan_inputs[0]);
    if (byi_import_ok(o))
        check_slices(o, &loop);
    run_loop(o, &loop);
}

/* Append rows of zeros to y until it has as many rows as x; `length` is the
 * number of its rows, a vector of one element. */
static byi_id append_rows(struct byi_import *o, byi_id y, byi_id length,
                          byi_id x)
{
    const uint32_t rank = byi_import_rank(o, y);
    const byi_id n_missing = byi_import_template(
        o,
        "fn (%x, %length) {"
        "  subtract(strided_slice(shape_of(%x), [0], [1], [0], [1]), %length)"
        "}",
        ARGS(x, length), NO_ATTRS);
    byi_id pads =
        byi_import_concat(o, byi_import_series(o, rank, 0, 0), n_missing, 0);

    if (rank > 1)
        pads =
            byi_import_concat(o, pads, byi_import_series(o, rank - 1, 0, 0), 0);
    return byi_import_call(o, BYI_OP_NN_PAD, y, pads,
                           byi_import_scalar(o, byi_import_dtype(o, y), 0));
}

/* Scan one entry of the batch: every input without its first axis. `lengths`
 * has the number of iterations of each entry, unless it is BYI_NO_ID: scan
 * inputs are cut, and zeros appended to scan outputs. */
static void scan_entry(struct byi_import *o, const byi_id *inputs, uint32_t n,
                       byi_id lengths, int64_t entry)
{
    const byi_id at = byi_import_scalar(o, BYOC_I64, (double)entry);
    const int64_t n_inputs = byi_import_int(o, "num_scan_inputs", 0);
    byi_id length = BYI_NO_ID, uncut_input = BYI_NO_ID;

    o->n_in = n;
    o->in = byi_arena_calloc(o->scratch, n, sizeof *o->in);
    o->out = byi_arena_calloc(o->scratch, o->n_out + 1, sizeof *o->out);
    for (uint32_t i = 0; i < n; i++)
        o->in[i] = byi_import_take(o, inputs[i], at, 0);
    if (lengths != BYI_NO_ID) {
        const byi_id all = byi_import_cast(o, lengths, BYOC_I64);
        length = byi_import_take(o, all, byi_import_vector(o, 1, &entry), 0);
        uncut_input = o->in[n - 1];
    }
    for (uint32_t i = 0; i < n && lengths != BYI_NO_ID; i++)
        if (i + n_inputs >= n)
            o->in[i] = byi_import_template(
                o, "fn (%x, %n) { strided_slice(%x, [0], %n, [0], [1]) }",
                ARGS(o->in[i], length), NO_ATTRS);
    convert_scan(o);
    for (uint32_t i = 0; i < o->n_out && byi_import_ok(o); i++) {
        if (!byi_import_wants_output(o, i))
            continue;
        if (lengths != BYI_NO_ID && i + n_inputs >= n)
            o->out[i] = append_rows(o, o->out[i], length, uncut_input);
        o->out[i] = byi_import_add_axes(o, o->out[i], 0, 1);
    }
}

/* Before opset 9, inputs and outputs had a leading batch axis, and input 0 was
 * sequence_lens. Convert one Scan of opset 9 for each entry of the batch. */
static void convert_scan_8(struct byi_import *o)
{
    enum { MAX_BATCH = 64 };
    const byi_id *inputs = o->in + 1, lengths = byi_import_in(o, 0);
    const uint32_t n = o->n_in ? o->n_in - 1 : 0;
    byi_id *const results = o->out, *entries[MAX_BATCH];

    for (uint32_t i = 0; i < n; i++)
        if (inputs[i] == BYI_NO_ID || byi_import_rank(o, inputs[i]) == 0)
            byi_import_fail(
                o, BYOC_ETYPE,
                "input %u is %s, expected a value with a batch axis", i + 1,
                inputs[i] == BYI_NO_ID ? "omitted" : "a scalar");
    if (n == 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "found no scan inputs, expected 1 or more");
    const int64_t batch =
        byi_import_ok(o) ? byi_import_dim(o, inputs[0], 0) : 0;
    if (BYI_IS_SYMBOL(batch))
        byi_import_refuse(o,
                          "found a symbolic batch, expected 1 to %d; fix it "
                          "with --dim or --shape",
                          MAX_BATCH);
    else if (batch < 1 || batch > MAX_BATCH)
        byi_import_refuse(o, "found a batch of %lld, expected 1 to %d",
                          (long long)batch, MAX_BATCH);
    for (int64_t b = 0; b < batch && byi_import_ok(o); b++) {
        scan_entry(o, inputs, n, lengths, b);
        entries[b] = o->out;
    }
    o->out = results;
    for (uint32_t i = 0; i < o->n_out && byi_import_ok(o); i++) {
        byi_id parts[MAX_BATCH];
        if (!byi_import_wants_output(o, i))
            continue;
        for (int64_t b = 0; b < batch; b++)
            parts[b] = entries[b][i];
        results[i] =
            batch == 1 ? parts[0]
                       : byi_import_emit(o, BYI_OP_CONCATENATE, (uint32_t)batch,
                                         parts, ATTRS(AN_INT("axis", 0)));
    }
}

BYI_ONNX_ROWS(onnx_control, BYI_ONNX, {"If", 1, 1, 1, convert_if, 0},
              {"Loop", 1, 0, BYI_MAX_ARGS / 2, convert_loop, 0},
              {"Scan", 8, 0, BYI_MAX_ARGS / 2, convert_scan_8, 0},
              {"Scan", 9, 1, BYI_MAX_ARGS / 2, convert_scan, 0})
