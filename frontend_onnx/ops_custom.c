/* SPDX-License-Identifier: Apache-2.0 */
/* ops_custom.c: converts operators of plug-ins (byoc/custom.h). */
#include "core/ops/custom.h"
#include "frontend_onnx/import.h"

/* Read the bytes of a string attribute as a vector of uint8, which borrows
 * them. False if the node does not have the attribute. */
static bool read_bytes(struct byi_import *o, const char *name,
                       struct byi_tensor *t)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

    if (!a)
        return false;
    *t = (struct byi_tensor){.data = a->s.len ? a->s.data : (void *)t,
                             .dtype = BYOC_U8,
                             .rank = 1,
                             .dims = {(int64_t)a->s.len}};
    return true;
}

/* Returns the SHA-256 of the tensor's data in hex digits, in scratch. */
static const char *digest_of(struct byi_import *o, const struct byi_tensor *t)
{
    char text[65];

    if (t->dtype == BYOC_STRING) {
        byi_import_refuse(o, "found a tensor attribute of strings, expected "
                             "numbers");
        return "";
    }
    byi_sha256_hex_of(t->data, (size_t)byi_tensor_bytes(t), text);
    return byi_arena_str(o->scratch, text);
}

/* Add the tensor of attribute i as a constant, and set the value of `a` to its
 * digest. Returns BYI_NO_ID if the node does not have the attribute. */
static byi_id read_tensor(struct byi_import *o, const struct byoc_operator *op,
                          uint32_t i, struct byi_attr *a)
{
    struct byi_tensor t = {0};
    const bool found = op->attrs[i].kind == BYOC_ATTR_BYTES
                           ? read_bytes(o, a->name, &t)
                           : byi_import_tensor(o, a->name, &t);

    if (!found)
        return BYI_NO_ID;
    a->s = digest_of(o, &t);
    return byi_import_const(o, &t, false);
}

/* Read attribute i, which the node must have. If it is a tensor, read the
 * tensor too. */
static void read_attr(struct byi_import *o, const struct byoc_operator *op,
                      uint32_t i, struct byi_attr *a, byi_id *tensor)
{
    const struct byi_attr_def *def = &byi_custom_row(o->scratch, op)->attrs[i];

    *a = (struct byi_attr){.name = def->name, .kind = def->kind};
    if (byi_custom_is_tensor(op, i))
        *tensor = read_tensor(o, op, i, a);
    else if (a->kind == BYI_ATTR_INT)
        a->i = byi_import_int(o, a->name, 0);
    else if (a->kind == BYI_ATTR_FLOAT)
        a->f = byi_import_float(o, a->name, 0);
    else if (a->kind == BYI_ATTR_INTS)
        a->ints = byi_import_ints(o, a->name, &a->n);
    else if (a->kind == BYI_ATTR_FLOATS)
        a->floats = byi_import_floats(o, a->name, &a->n);
    else if (a->kind == BYI_ATTR_STRINGS)
        a->strings = byi_import_strings(o, a->name, &a->n);
    else
        a->s = byi_import_string(o, a->name, "");
}

/* ImageDecoder(x, pixel_format="BGR") ->
 * custom(%x, op="imaging.ImageDecoder@20",
 *        attributes="{\"pixel_format\": \"BGR\"}")
 * The attribute `operands` says where each operand is from. It is the index of
 * the node's input, or -k for the k-th tensor attribute that the operator
 * declares. */
static void convert_custom(struct byi_import *o)
{
    const struct byoc_operator *op = o->custom.op;
    struct byi_attr *attrs =
        byi_arena_calloc(o->scratch, op->n_attrs + 1u, sizeof *attrs);
    const uint32_t max_args = o->n_in + op->n_attrs;
    byi_id *args = byi_arena_calloc(o->scratch, max_args + 1u, sizeof *args);
    int64_t *operands =
        byi_arena_calloc(o->scratch, max_args + 1u, sizeof *operands);
    uint32_t n = 0, n_attrs = 0, tensors = 0;
    const char *attributes = "{}";

    for (uint32_t i = 0; i < o->n_in; i++)
        if (o->in[i] != BYI_NO_ID) {
            operands[n] = i;
            args[n++] = o->in[i];
        }
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        byi_id tensor = BYI_NO_ID;
        tensors += byi_custom_is_tensor(op, i);
        if (byi_import_has_attr(o, op->attrs[i].name))
            read_attr(o, op, i, &attrs[n_attrs++], &tensor);
        if (tensor != BYI_NO_ID) {
            operands[n] = -(int64_t)tensors;
            args[n++] = tensor;
        }
    }
    if (byi_import_ok(o) &&
        byi_custom_attributes(o->scratch, op, attrs, n_attrs, &attributes,
                              &o->err))
        o->status = byi_prefix(&o->err, "node %.200s (%.100s)", o->name,
                               o->node->op_type);
    const byi_id result = byi_import_emit(
        o, BYI_OP_CUSTOM, n, args,
        ATTRS(A_STRING("op",
                       byi_arena_printf(o->scratch, "%s.%s@%u",
                                        o->custom.plugin, op->name, op->since)),
              A_STRING("attributes", attributes),
              SOME_INTS("operands", n, operands), AN_INT("results", o->n_out)));
    for (uint32_t i = 0; i < o->n_out; i++)
        o->out[i] = o->n_out == 1 ? result : byi_import_get(o, result, i);
}

bool byi_import_find_custom(struct byi_import *o)
{
    const char *domain = byi_onnx_domain(o->node->domain);
    const struct byi_onnx_params *p = o->params;

    if (!p->find ||
        !p->find(p->find_ctx, domain, byi_text_or(o->node->op_type, ""),
                 o->opset, &o->custom))
        return false;
    struct byi_onnx_op *row = byi_arena_alloc(o->scratch, sizeof *row);
    *row = (struct byi_onnx_op){
        .type = o->custom.op->name,
        .min_in = (uint16_t)o->custom.op->min_inputs,
        .max_in = (uint16_t)o->custom.op->max_inputs,
        .convert = convert_custom,
    };
    o->row = row;
    return true;
}
