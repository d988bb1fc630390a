/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c: constant folding during import.
 *
 * The importer needs axes, sizes and target shapes as numbers, but exporters
 * emit graphs that compute them (Shape -> Gather -> Mul -> Unsqueeze -> Concat
 * -> Reshape). Only cheap operators on small tensors are folded here; the pass
 * FoldConstant folds the rest. The driver provides the kernels (params->eval).
 * Values that follow from types need no kernel: see dims.c.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* Limits of a foldable operator: elements per tensor, and number of operands.
 */
enum { MAX_ELEMENTS = 1024, MAX_OPERANDS = 64 };

static bool is_small(const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR || !byi_type_is_static(type) ||
        byoc_dtype_size(type->dtype) == 0)
        return false;
    const int64_t n = byi_elements(type->rank, type->dims);
    return n >= 0 && n <= MAX_ELEMENTS;
}

static int64_t new_symbol(void *ctx)
{
    return byi_symbol_new(ctx);
}

/* Run the kernel on constants. Returns true if it set *folded, or false,
 * without an error, if an operand is not a small constant or the kernel fails.
 */
static bool evaluate(struct byi_import *o, const struct byi_op *op,
                     const struct byi_attrs *attrs, uint32_t n,
                     const byi_id *args, byi_id *folded)
{
    struct byi_tensor values[MAX_OPERANDS];
    const struct byi_tensor *known[MAX_OPERANDS];
    const struct byi_type *types[MAX_OPERANDS], *type = NULL;
    struct byi_tensor out = {0};

    for (uint32_t i = 0; i < n; i++) {
        types[i] = o->f->nodes.at[args[i]].type;
        known[i] = &values[i];
        if (!is_small(types[i]) ||
            !byi_import_const_view(o, args[i], &values[i]))
            return false;
    }
    struct byi_infer infer = {
        .arena = o->scratch,
        .op = op,
        .attrs = attrs,
        .n_in = n,
        .in = types,
        .value = known,
        .new_symbol = new_symbol,
        .symbol_ctx = o->m,
    };
    if (byi_infer_type(&infer, &type) != BYOC_OK || !is_small(type))
        return false; /* byi_add_call reports a type error */
    out.dtype = type->dtype;
    out.rank = type->rank;
    memcpy(out.dims, type->dims, type->rank * sizeof *type->dims);
    out.data = byi_arena_data(o->scratch, byi_type_bytes(type));
    if (o->params->eval(op, attrs, n, values, 1, &out, NULL) != BYOC_OK)
        return false;
    *folded = byi_import_const_of(o, &out, false, o->sources);
    return true;
}

bool byi_import_fold(struct byi_import *o, enum byi_op_id id, uint32_t n,
                     const byi_id *args, uint32_t n_attrs,
                     const struct byi_attr *list, byi_id *folded)
{
    const struct byi_op *op = byi_op(id);
    const struct byi_attrs *attrs = NULL;

    if (!o->params->eval || !byi_op_has(id, BYI_TRAIT_FOLDABLE) ||
        n > MAX_OPERANDS || n < op->min_in)
        return false;
    if (byi_attrs_make(o->scratch, op, list, n_attrs, &attrs, NULL) != BYOC_OK)
        return false;
    return evaluate(o, op, attrs, n, args, folded);
}
