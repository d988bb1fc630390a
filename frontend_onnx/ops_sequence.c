/* SPDX-License-Identifier: Apache-2.0 */
/* ops_sequence.c: converts operators on sequences and optionals.
 *
 * SequenceInsert(s, x)       -> sequence.insert(%s, %x)
 * Optional(type=seq(float))  -> optional.none(dtype="float32", sequence=true)
 * OptionalHasElement(x)      -> true if x is a tensor or sequence
 * SequenceMap(s, x, body)    -> a loop (loop.c) over the elements of s
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* Returns the kind of a value's type; BYI_TENSOR if the value is omitted. */
static enum byi_type_kind kind_of(const struct byi_import *o, byi_id id)
{
    return byi_import_ok(o) && id != BYI_NO_ID ? o->f->nodes.at[id].type->kind
                                               : BYI_TENSOR;
}

static void convert_concat_from_sequence(struct byi_import *o)
{
    o->out[0] =
        byi_import_same(o, BYI_OP_SEQ_CONCATENATE, ARGS(byi_import_in(o, 0)),
                        ATTRS(AN_INT("axis", byi_import_int(o, "axis", 0))));
}

/* Returns a type in the notation of ONNX, such as "map" or "seq(map)". */
static const char *type_name(struct byi_import *o, const Onnx__TypeProto *type,
                             bool in_sequence)
{
    static const char *const kinds[] = {
        [ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE] = "tensor",
        [ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE] = "seq",
        [ONNX__TYPE_PROTO__VALUE_MAP_TYPE] = "map",
        [ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE] = "optional",
        [ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE] = "sparse_tensor",
    };
    const unsigned kind = type ? (unsigned)type->value_case : 0;
    const char *name =
        kind < BYI_COUNT(kinds) && kinds[kind] ? kinds[kind] : "no type";

    return in_sequence ? byi_arena_printf(o->scratch, "seq(%s)", name) : name;
}

static void convert_optional(struct byi_import *o)
{
    const Onnx__TypeProto *type = NULL;

    for (size_t i = 0; i < o->node->n_attribute; i++)
        if (strcmp(byi_text_or(o->node->attribute[i]->name, ""), "type") == 0) {
            type = o->node->attribute[i]->tp;
            o->seen |= UINT64_C(1) << i;
        }
    if (byi_import_in(o, 0) != BYI_NO_ID) {
        o->out[0] = byi_import_call(o, BYI_OP_OPT_MAKE, byi_import_in(o, 0));
        return;
    }
    const bool sequence =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    if (sequence)
        type = type->sequence_type->elem_type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        byi_import_refuse(o,
                          "attribute type: found %s, expected a tensor or a "
                          "sequence of tensors",
                          type_name(o, type, sequence));
        return;
    }
    o->out[0] =
        byi_import_emit(o, BYI_OP_OPT_NONE, 0, NULL,
                        ATTRS(A_DTYPE("dtype", type->tensor_type->elem_type),
                              A_BOOL("sequence", sequence)));
}

static void convert_has_element(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);

    if (kind_of(o, x) != BYI_OPTIONAL) /* an omitted input has no element */
        o->out[0] = byi_import_scalar(o, BYOC_BOOL, x != BYI_NO_ID);
    else
        o->out[0] = byi_import_call(o, BYI_OP_OPT_HAS, x);
}

static void convert_get_element(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);

    if (kind_of(o, x) != BYI_OPTIONAL)
        o->out[0] = x;
    else
        o->out[0] = byi_import_call(o, BYI_OP_OPT_GET, x);
}

/* --- SequenceMap ---------------------------------------------------------- */

static void convert_sequence_map(struct byi_import *o)
{
    const Onnx__GraphProto *graph = byi_import_graph(o, "body");
    const byi_id zero = byi_import_scalar(o, BYOC_I64, 0);
    struct byi_onnx_loop loop = {.graph = graph, .condition = BYI_NO_ID};
    byi_id id = BYI_NO_ID;

    if (!byi_import_ok(o))
        return;
    if (graph->n_input != o->n_in || graph->n_output < o->n_out) {
        byi_import_fail(o, BYOC_EPARSE,
                        "its body has %zu inputs and %zu outputs, expected %u "
                        "and at least %u",
                        graph->n_input, graph->n_output, o->n_in, o->n_out);
        return;
    }
    loop.n_scan_inputs = o->n_in;
    loop.n_scan_outputs = (uint32_t)graph->n_output;
    loop.scan_inputs = byi_arena_calloc(o->scratch, loop.n_scan_inputs + 1,
                                        sizeof *loop.scan_inputs);
    loop.scan_outputs = byi_arena_calloc(o->scratch, loop.n_scan_outputs + 1,
                                         sizeof *loop.scan_outputs);
    for (uint32_t i = 0; i < loop.n_scan_inputs; i++) {
        loop.scan_inputs[i].whole = byi_import_in(o, i);
        loop.scan_inputs[i].is_sequence =
            kind_of(o, byi_import_in(o, i)) == BYI_SEQ;
        loop.scan_inputs[i].reads_whole = !loop.scan_inputs[i].is_sequence;
    }
    for (uint32_t i = 0; i < loop.n_scan_outputs; i++)
        loop.scan_outputs[i].is_sequence = true;
    loop.trips = byi_import_call(o, BYI_OP_SEQ_LENGTH, byi_import_in(o, 0));
    const byi_id func = byi_loop_make(o, &loop);
    byi_id *args =
        byi_arena_calloc(o->scratch, loop.n_scan_outputs + 1, sizeof *args);
    args[0] = zero;
    for (uint32_t i = 0; i < loop.n_scan_outputs && byi_import_ok(o); i++)
        args[1 + i] = byi_loop_empty_output(o, &loop.scan_outputs[i]);
    if (!byi_import_ok(o))
        return;
    o->status = byi_add_apply(o->m, o->f, func, args, loop.n_scan_outputs + 1,
                              o->sources, &id, &o->err);
    for (uint32_t i = 0; i < o->n_out && byi_import_ok(o); i++)
        o->out[i] = loop.n_scan_outputs == 1 ? id : byi_import_get(o, id, i);
}

#define SAME byi_import_convert_same
/* clang-format off */
BYI_ONNX_ROWS(onnx_sequence, BYI_ONNX,
    {"ConcatFromSequence", 11, 1, 1, convert_concat_from_sequence, BYI_OP_NONE},
    {"Optional", 15, 0, 1, convert_optional, BYI_OP_NONE},
    {"OptionalGetElement", 15, 1, 1, convert_get_element, BYI_OP_NONE},
    {"OptionalHasElement", 15, 0, 1, convert_has_element, BYI_OP_NONE},
    {"SequenceAt", 11, 2, 2, SAME, BYI_OP_SEQ_AT},
    {"SequenceConstruct", 11, 1, BYI_MAX_ARGS, SAME, BYI_OP_SEQ_MAKE},
    {"SequenceEmpty", 11, 0, 0, SAME, BYI_OP_SEQ_MAKE},
    {"SequenceErase", 11, 1, 2, SAME, BYI_OP_SEQ_ERASE},
    {"SequenceInsert", 11, 2, 3, SAME, BYI_OP_SEQ_INSERT},
    {"SequenceLength", 11, 1, 1, SAME, BYI_OP_SEQ_LENGTH},
    {"SequenceMap", 17, 1, BYI_MAX_ARGS / 2, convert_sequence_map, BYI_OP_NONE},
    {"SplitToSequence", 11, 1, 2, SAME, BYI_OP_SEQ_SPLIT})
/* clang-format on */
