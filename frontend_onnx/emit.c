/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c: emits calls of operators for the converters, and expressions that
 * many converters share. A call whose operands are small constants is folded.
 */
#include "frontend_onnx/import.h"

#include "core/ir/template.h"

#include <assert.h>
#include <math.h>
#include <string.h>

byi_id byi_import_emit(struct byi_import *o, enum byi_op_id op, uint32_t n,
                       const byi_id *args, uint32_t n_attrs,
                       const struct byi_attr *attrs)
{
    byi_id id = BYI_NO_ID;
    uint32_t n_items = 0, rank = 0;

    for (uint32_t i = 0; i < n && byi_import_ok(o); i++)
        if (args[i] == BYI_NO_ID)
            byi_import_fail(
                o, BYOC_EPARSE,
                "operand %u of %s is an omitted input, expected a value", i,
                byi_op(op)->name);
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const struct byi_dim_item *items =
        byi_import_items_of(o, op, n, args, n_attrs, attrs, &n_items, &rank);
    if (items && byi_import_const_of_items(o, items, n_items, rank, &id))
        return id;
    if (byi_import_fold(o, op, n, args, n_attrs, attrs, &id))
        return id;
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    o->status = byi_add_call(o->m, o->f, op, args, n, attrs, n_attrs,
                             o->sources, &id, &o->err);
    if (!byi_import_ok(o))
        byi_prefix(&o->err, "node %.200s (%.100s)", o->name, o->row->type);
    else if (items)
        byi_import_set_items(o, id, items);
    return byi_import_ok(o) ? id : BYI_NO_ID;
}

byi_id byi_import_call_scalar(struct byi_import *o, enum byi_op_id op, byi_id a,
                              double b)
{
    return byi_import_call(o, op, a,
                           byi_import_scalar(o, byi_import_dtype(o, a), b));
}

byi_id byi_import_get(struct byi_import *o, byi_id tuple, uint32_t index)
{
    byi_id id = BYI_NO_ID;

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    o->status = byi_add_get(o->m, o->f, tuple, index, o->sources, &id, &o->err);
    if (!byi_import_ok(o))
        byi_prefix(&o->err, "node %.200s (%.100s)", o->name, o->row->type);
    return id;
}

void byi_import_get_outputs(struct byi_import *o, byi_id tuple, uint32_t n)
{
    for (uint32_t i = 0; i < n && i < o->n_out; i++)
        if (byi_import_wants_output(o, i))
            o->out[i] = byi_import_get(o, tuple, i);
}

byi_id byi_import_cast(struct byi_import *o, byi_id id, enum byoc_dtype dtype)
{
    struct byi_tensor t = {0};

    if (!byi_import_ok(o) || byi_import_dtype(o, id) == dtype)
        return id;
    /* shape integers are cast here, without a kernel */
    if (dtype == BYOC_I64 && byi_import_const_view(o, id, &t) && t.rank <= 1 &&
        byi_dtype_is_int(t.dtype) && t.dtype != BYOC_U64) {
        const int64_t n = byi_elements(t.rank, t.dims);
        struct byi_tensor cast = t;
        int64_t *values =
            byi_arena_calloc(o->scratch, (size_t)n + 1, sizeof *values);
        for (int64_t i = 0; i < n; i++)
            values[i] = byi_tensor_int(&t, i);
        cast.dtype = BYOC_I64;
        cast.data = values;
        return byi_import_const(o, &cast, false);
    }
    return byi_import_emit(o, BYI_OP_CAST, ARGS(id),
                           ATTRS(A_DTYPE("dtype", dtype)));
}

byi_id byi_import_scatter(struct byi_import *o, byi_id vector, byi_id axes,
                          byi_id values)
{
    const byi_id at = byi_import_cast(o, axes, BYOC_I64);
    struct byi_tensor to, from, places;

    if (!byi_import_const_view(o, vector, &to) ||
        !byi_import_const_view(o, values, &from) ||
        !byi_import_const_view(o, at, &places) || to.dtype != BYOC_I64 ||
        from.dtype != BYOC_I64 || places.dims[0] != from.dims[0])
        return byi_import_emit(o, BYI_OP_SCATTER_ELEMENTS,
                               ARGS(vector, at, values),
                               ATTRS(AN_INT("axis", 0)));
    /* the usual case, without a kernel */
    const uint32_t n = (uint32_t)to.dims[0];
    int64_t *elements = byi_arena_calloc(o->scratch, n + 1, sizeof *elements);
    for (uint32_t i = 0; i < n; i++)
        elements[i] = byi_tensor_int(&to, i);
    for (int64_t i = 0; i < places.dims[0] && byi_import_ok(o); i++)
        elements[byi_import_axis(o, byi_tensor_int(&places, i), n)] =
            byi_tensor_int(&from, i);
    return byi_import_vector(o, n, elements);
}

byi_id byi_import_expand_dims(struct byi_import *o, byi_id id, uint32_t n,
                              const int64_t *axes)
{
    if (n == 0)
        return id;
    return byi_import_emit(o, BYI_OP_EXPAND_DIMS, ARGS(id),
                           ATTRS(SOME_INTS("axis", n, axes)));
}

byi_id byi_import_add_axes(struct byi_import *o, byi_id id, uint32_t first,
                           uint32_t n)
{
    int64_t axes[BYI_MAX_RANK];

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    assert(n <= BYI_MAX_RANK);
    for (uint32_t i = 0; i < n; i++)
        axes[i] = first + i;
    return byi_import_expand_dims(o, id, n, axes);
}

byi_id byi_import_move_axis(struct byi_import *o, byi_id id, uint32_t from,
                            uint32_t to)
{
    const uint32_t rank = byi_import_rank(o, id);
    int64_t axes[BYI_MAX_RANK];
    uint32_t next = 0;

    for (uint32_t i = 0; i < rank; i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    return byi_import_emit(o, BYI_OP_TRANSPOSE, ARGS(id),
                           ATTRS(SOME_INTS("axes", rank, axes)));
}

byi_id byi_import_reshape(struct byi_import *o, byi_id id, byi_id shape,
                          bool allowzero)
{
    return byi_import_emit(o, BYI_OP_RESHAPE, ARGS(id, shape),
                           ATTRS(A_BOOL("allowzero", allowzero)));
}

byi_id byi_import_reshape_to(struct byi_import *o, byi_id id, uint32_t n,
                             const int64_t *dims)
{
    return byi_import_reshape(o, id, byi_import_vector(o, n, dims), false);
}

byi_id byi_import_shape_of(struct byi_import *o, byi_id id)
{
    return byi_import_call(o, BYI_OP_SHAPE_OF, id);
}

byi_id byi_import_as_scalar(struct byi_import *o, byi_id id)
{
    if (id == BYI_NO_ID || byi_import_rank(o, id) == 0)
        return id;
    return byi_import_reshape_to(o, id, 0, NULL);
}

byi_id byi_import_scale(struct byi_import *o, byi_id x, double factor)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, x);

    if (factor == 1.0)
        return x;
    if (!byi_dtype_is_float(dtype) && factor != rint(factor))
        byi_import_refuse(
            o, "found factor %s for integer operands, expected an integer",
            BYI_FLOAT_TEXT(factor));
    return byi_import_call(o, BYI_OP_MULTIPLY, x,
                           byi_import_scalar(o, dtype, factor));
}

/* --- templates ------------------------------------------------------------ */

static byi_id emit_call(void *ctx, enum byi_op_id op, const byi_id *args,
                        uint32_t n, const struct byi_attr *attrs,
                        uint32_t n_attrs)
{
    if (op == BYI_OP_CAST)
        return byi_import_cast(ctx, args[0], (enum byoc_dtype)attrs[0].i);
    if (op == BYI_OP_EXPAND_DIMS)
        return byi_import_expand_dims(ctx, args[0], attrs[0].n, attrs[0].ints);
    return byi_import_emit(ctx, op, n, args, n_attrs, attrs);
}

void byi_import_template_results(struct byi_import *o, const char *text,
                                 uint32_t n, const byi_id *args,
                                 uint32_t n_attrs, const struct byi_attr *attrs,
                                 uint32_t n_results, byi_id *results)
{
    const struct byi_emitter to = {.ctx = o,
                                   .m = o->m,
                                   .f = o->f,
                                   .sources = o->sources,
                                   .call = emit_call};
    const struct byi_template_inputs inputs = {
        .n_values = n, .values = args, .n_attrs = n_attrs, .attrs = attrs};
    struct byoc_error err;

    for (uint32_t i = 0; i < n_results; i++)
        results[i] = BYI_NO_ID;
    if (!byi_import_ok(o))
        return;
    const enum byoc_status status =
        byi_template(&to, text, &inputs, o->scratch, n_results, results, &err);
    if (status != BYOC_OK)
        byi_import_fail(o, status, "%s", err.text);
}

byi_id byi_import_template(struct byi_import *o, const char *text, uint32_t n,
                           const byi_id *args, uint32_t n_attrs,
                           const struct byi_attr *attrs)
{
    byi_id result;

    byi_import_template_results(o, text, n, args, n_attrs, attrs, 1, &result);
    return result;
}

/* --- operators that map one to one ---------------------------------------- */

/* Returns ONNX's name of an attribute of an operator. */
static const char *onnx_name(enum byi_op_id op, const char *name)
{
    static const struct {
        enum byi_op_id op;
        const char *name, *onnx;
    } attribute_names[] = {
        {BYI_OP_BITCAST, "dtype", "to"},
        {BYI_OP_ROI_POOL, "pooled_size", "pooled_shape"},
        {BYI_OP_TEXT_NORMALIZE, "case", "case_change_action"},
        {BYI_OP_TEXT_NORMALIZE, "case_sensitive", "is_case_sensitive"},
    };

    for (uint32_t i = 0; i < BYI_COUNT(attribute_names); i++)
        if (attribute_names[i].op == op &&
            strcmp(attribute_names[i].name, name) == 0)
            return attribute_names[i].onnx;
    return name;
}

/* Read the node's attribute that `def` declares. False if the node does not
 * have it. */
static bool read_same_attr(struct byi_import *o, enum byi_op_id op,
                           const struct byi_attr_def *def, struct byi_attr *a)
{
    const char *name = onnx_name(op, def->name);

    *a = (struct byi_attr){.name = def->name, .kind = def->kind};
    if (!byi_import_has_attr(o, name))
        return false;
    switch (def->kind) {
    case BYI_ATTR_BOOL:
        a->i = byi_import_int(o, name, 0) != 0;
        return true;
    case BYI_ATTR_INT:
        a->i = byi_import_int(o, name, 0);
        return true;
    case BYI_ATTR_FLOAT:
        a->f = byi_import_float(o, name, 0);
        return true;
    case BYI_ATTR_STRING:
        a->s = byi_import_string(o, name, "");
        return true;
    case BYI_ATTR_DTYPE:
        a->i = byi_import_dtype_attr(o, name, BYOC_NONE);
        return true;
    case BYI_ATTR_INTS:
        a->ints = byi_import_ints(o, name, &a->n);
        return true;
    case BYI_ATTR_FLOATS:
        a->floats = byi_import_floats(o, name, &a->n);
        return true;
    case BYI_ATTR_STRINGS:
        a->strings = byi_import_strings(o, name, &a->n);
        return true;
    }
    return false;
}

byi_id byi_import_same(struct byi_import *o, enum byi_op_id id, uint32_t n,
                       const byi_id *args, uint32_t n_attrs,
                       const struct byi_attr *attrs)
{
    const struct byi_op *op = byi_op(id);
    struct byi_attr *all =
        byi_arena_calloc(o->scratch, n_attrs + op->n_attrs + 1, sizeof *all);
    uint32_t n_all = 0;

    for (uint32_t i = 0; i < n_attrs; i++)
        all[n_all++] = attrs[i];
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        bool given = false;
        for (uint32_t k = 0; k < n_attrs; k++)
            given |= strcmp(attrs[k].name, op->attrs[i].name) == 0;
        if (!given && read_same_attr(o, id, &op->attrs[i], &all[n_all]))
            n_all++;
    }
    return byi_import_emit(o, id, n, args, n_all, all);
}

void byi_import_convert_same(struct byi_import *o)
{
    const struct byi_op *op = byi_op(o->row->op);
    uint32_t n_in = o->n_in;

    while (n_in > 0 && o->in[n_in - 1] == BYI_NO_ID)
        n_in--; /* trailing inputs may be omitted by an empty name */
    for (uint32_t i = 0; i < n_in; i++)
        if (o->in[i] == BYI_NO_ID) {
            byi_import_refuse(o, "input %u is omitted, expected a value", i);
            return;
        }
    const byi_id y = byi_import_same(o, op->id, n_in, o->in, NO_ATTRS);
    if (op->n_out == 1)
        o->out[0] = y;
    else
        byi_import_get_outputs(o, y, op->n_out);
}
