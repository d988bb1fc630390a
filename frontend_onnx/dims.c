/* SPDX-License-Identifier: Apache-2.0 */
/* dims.c: partial evaluation of shape vectors.
 *
 * With a symbolic batch N, exporters emit
 *   reshape(%x, concatenate(expand_dims(take(shape_of(%x), 0)), [3, 16]))
 * where only N is unknown. Tracking each element as a number or a symbol
 * through these operators gives the target [0, 3, 16], and so a type with known
 * dims.
 */
#include "frontend_onnx/import.h"

#include <string.h>

enum { MAX_ITEMS = 64 };

static struct byi_dim_item item_of_dim(int64_t dim)
{
    return (struct byi_dim_item){
        .kind = BYI_IS_SYMBOL(dim) ? BYI_SYMBOL : BYI_NUMBER, .value = dim};
}

static struct byi_dim_item *items_new(struct byi_import *o, size_t n)
{
    return byi_arena_calloc(o->scratch, n + 1, sizeof(struct byi_dim_item));
}

const struct byi_dim_item *byi_import_items(struct byi_import *o, byi_id id,
                                            uint32_t *n)
{
    struct byi_tensor t = {0};

    *n = 0;
    if (!byi_import_ok(o) || id == BYI_NO_ID ||
        byi_import_dtype(o, id) != BYOC_I64 || byi_import_rank(o, id) > 1)
        return NULL;
    const int64_t size = byi_import_rank(o, id) ? byi_import_dim(o, id, 0) : 1;
    if (size < 0 || size > MAX_ITEMS)
        return NULL;
    *n = (uint32_t)size;
    if (id < o->items.n && o->items.at[id])
        return o->items.at[id];
    struct byi_dim_item *items = items_new(o, *n);
    const bool known = byi_import_const_view(o, id, &t);
    for (uint32_t i = 0; i < *n; i++) {
        items[i].kind = known ? BYI_NUMBER : BYI_UNKNOWN;
        items[i].value = known ? byi_tensor_int(&t, i) : 0;
    }
    return items;
}

/* --- tracking through operators ------------------------------------------- */

/* A call of an operator. Each track_*() returns the elements of its result
 * and sets n and rank, or returns NULL if the elements cannot be tracked. */
struct dims_call {
    struct byi_import *o;
    enum byi_op_id op;
    uint32_t n_args;
    const byi_id *args;
    const struct byi_attrs *attrs;
    uint32_t n, rank; /* of the result */
};

static const struct byi_dim_item *track_shape_of(struct dims_call *c)
{
    const struct byi_type *type = c->o->f->nodes.at[c->args[0]].type;
    const int64_t rank = type->kind == BYI_TENSOR ? type->rank : 0;
    int64_t start = byi_attr_int(c->attrs, "start");
    int64_t end = byi_attr_int(c->attrs, "end");

    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    struct byi_dim_item *items = items_new(c->o, (size_t)(end - start));
    for (int64_t i = start; i < end; i++) {
        items[i - start] = item_of_dim(type->dims[i]);
        items[i - start].func = c->o->f;
        items[i - start].tensor = c->args[0];
        items[i - start].axis = (uint32_t)i;
    }
    c->n = (uint32_t)(end - start);
    c->rank = 1;
    return items;
}

static const struct byi_dim_item *track_size_of(struct dims_call *c)
{
    const struct byi_type *type = c->o->f->nodes.at[c->args[0]].type;

    if (type->kind != BYI_TENSOR || !byi_type_is_static(type))
        return NULL;
    struct byi_dim_item *items = items_new(c->o, 1);
    items[0] = item_of_dim(byi_elements(type->rank, type->dims));
    c->n = 1;
    c->rank = 0;
    return items;
}

static const struct byi_dim_item *track_take(struct dims_call *c)
{
    struct byi_tensor index = {0};
    uint32_t n = 0;
    const struct byi_dim_item *x = byi_import_items(c->o, c->args[0], &n);
    const int64_t axis = byi_attr_int(c->attrs, "axis");

    if (!x || byi_import_rank(c->o, c->args[0]) != 1 || axis > 0 || axis < -1 ||
        !byi_import_const_view(c->o, c->args[1], &index) || index.rank > 1)
        return NULL;
    const int64_t n_indices = byi_elements(index.rank, index.dims);
    if (n_indices > MAX_ITEMS)
        return NULL;
    struct byi_dim_item *items = items_new(c->o, (size_t)n_indices);
    for (int64_t k = 0; k < n_indices; k++) {
        int64_t i = byi_tensor_int(&index, k);
        i = i < 0 ? i + n : i;
        if (i < 0 || i >= n)
            return NULL; /* the kernel reports it */
        items[k] = x[i];
    }
    c->n = (uint32_t)n_indices;
    c->rank = index.rank;
    return items;
}

static const struct byi_dim_item *track_concatenate(struct dims_call *c)
{
    struct byi_dim_item joined[MAX_ITEMS];

    c->n = 0;
    c->rank = 1;
    for (uint32_t k = 0; k < c->n_args; k++) {
        uint32_t n = 0;
        const struct byi_dim_item *x = byi_import_items(c->o, c->args[k], &n);
        if (!x || byi_import_rank(c->o, c->args[k]) != 1 ||
            n > MAX_ITEMS - c->n)
            return NULL;
        memcpy(joined + c->n, x, n * sizeof *x);
        c->n += n;
    }
    struct byi_dim_item *items = items_new(c->o, c->n);
    memcpy(items, joined, c->n * sizeof *items);
    return items;
}

/* Read a constant operand of one element. False for other operands. */
static bool read_one_int(struct dims_call *c, uint32_t arg, int64_t *value)
{
    struct byi_tensor t = {0};

    if (!byi_import_const_view(c->o, c->args[arg], &t) ||
        byi_elements(t.rank, t.dims) != 1)
        return false;
    *value = byi_tensor_int(&t, 0);
    return true;
}

static const struct byi_dim_item *track_slice(struct dims_call *c)
{
    int64_t begin, end, axis, step;
    uint32_t n = 0;
    const struct byi_dim_item *x = byi_import_items(c->o, c->args[0], &n);

    if (!x || c->n_args != 5 || byi_import_rank(c->o, c->args[0]) != 1 ||
        !read_one_int(c, 1, &begin) || !read_one_int(c, 2, &end) ||
        !read_one_int(c, 3, &axis) || !read_one_int(c, 4, &step) || step != 1 ||
        axis < -1 || axis > 0)
        return NULL;
    begin = begin < 0 ? begin + n : begin;
    end = end < 0 ? end + n : end;
    begin = begin < 0 ? 0 : begin > n ? n : begin;
    end = end < begin ? begin : end > n ? n : end;
    c->n = (uint32_t)(end - begin);
    c->rank = 1;
    return x + begin;
}

/* Track an operator that keeps the elements. Returns NULL for results of rank 2
 * or more, or of another type than int64. */
static const struct byi_dim_item *track_view(struct dims_call *c)
{
    const enum byi_op_id op = c->op;
    const uint32_t rank = byi_import_rank(c->o, c->args[0]);
    const struct byi_dim_item *x = byi_import_items(c->o, c->args[0], &c->n);
    uint32_t n = 0;

    c->rank = rank;
    if (op == BYI_OP_EXPAND_DIMS) {
        byi_attr_ints(c->attrs, "axis", &n);
        c->rank = rank + n;
    } else if (op == BYI_OP_SQUEEZE) {
        c->rank = rank == 1 && c->n == 1 ? 0 : rank;
    } else if (op == BYI_OP_RESHAPE) {
        c->rank = 2;
        if (byi_import_items(c->o, c->args[1], &n) && n <= 1)
            c->rank = n;
    } else if (byi_attr_int(c->attrs, "dtype") != BYOC_I64) {
        return NULL;
    }
    return c->rank <= 1 ? x : NULL;
}

/* Returns 1 if two elements are equal, 0 if they differ, -1 if that is known
 * only at run time. A symbol is a size, so it never equals a negative
 * number. */
static int equal_items(struct byi_dim_item a, struct byi_dim_item b)
{
    if (a.kind == BYI_UNKNOWN || b.kind == BYI_UNKNOWN)
        return -1;
    if (a.kind == b.kind)
        return a.value == b.value ? 1 : a.kind == BYI_NUMBER ? 0 : -1;
    return (a.kind == BYI_NUMBER ? a.value : b.value) < 0 ? 0 : -1;
}

/* where(equal(a, b), x, y), as PyTorch's expand() is exported: -1 in its sizes
 * becomes 1. */
static const struct byi_dim_item *track_where(struct dims_call *c)
{
    const struct byi_node *test = &c->o->f->nodes.at[c->args[0]];
    const struct byi_dim_item *operands[4];
    uint32_t n[4];

    if (test->kind != BYI_CALL_OP || test->op != BYI_OP_EQUAL)
        return NULL;
    const byi_id ids[] = {test->args[0], test->args[1], c->args[1], c->args[2]};
    for (uint32_t i = 0; i < BYI_COUNT(ids); i++) {
        operands[i] = byi_import_items(c->o, ids[i], &n[i]);
        if (!operands[i] || byi_import_rank(c->o, ids[i]) != 1 || n[i] != n[0])
            return NULL;
    }
    struct byi_dim_item *items = items_new(c->o, n[0]);
    for (uint32_t k = 0; k < n[0]; k++) {
        const int same = equal_items(operands[0][k], operands[1][k]);
        items[k] = same < 0 ? (struct byi_dim_item){.kind = BYI_UNKNOWN}
                            : operands[same ? 2 : 3][k];
    }
    c->n = n[0];
    c->rank = 1;
    return items;
}

/* The operators whose results are tracked. */
static const struct {
    enum byi_op_id op;
    const struct byi_dim_item *(*track)(struct dims_call *c);
} tracked[] = {
    {BYI_OP_SHAPE_OF, track_shape_of},
    {BYI_OP_SIZE_OF, track_size_of},
    {BYI_OP_TAKE, track_take},
    {BYI_OP_CONCATENATE, track_concatenate},
    {BYI_OP_STRIDED_SLICE, track_slice},
    {BYI_OP_WHERE, track_where},
    {BYI_OP_EXPAND_DIMS, track_view},
    {BYI_OP_SQUEEZE, track_view},
    {BYI_OP_RESHAPE, track_view},
    {BYI_OP_CAST, track_view},
};

const struct byi_dim_item *byi_import_items_of(
    struct byi_import *o, enum byi_op_id op, uint32_t n, const byi_id *args,
    uint32_t n_attrs, const struct byi_attr *attrs, uint32_t *n_items,
    uint32_t *rank)
{
    struct dims_call c = {.o = o, .op = op, .n_args = n, .args = args};
    const bool reads_shape = op == BYI_OP_SHAPE_OF || op == BYI_OP_SIZE_OF;
    uint32_t row = 0;

    while (row < BYI_COUNT(tracked) && tracked[row].op != op)
        row++;
    if (row == BYI_COUNT(tracked) || n < byi_op(op)->min_in ||
        (!reads_shape &&
         byi_import_dtype(o, args[op == BYI_OP_WHERE ? 1 : 0]) != BYOC_I64))
        return NULL;
    if (byi_attrs_make(o->scratch, byi_op(op), attrs, n_attrs, &c.attrs,
                       NULL) != BYOC_OK)
        return NULL;
    const struct byi_dim_item *items = tracked[row].track(&c);
    *n_items = c.n;
    *rank = c.rank;
    return items;
}

void byi_import_set_items(struct byi_import *o, byi_id id,
                          const struct byi_dim_item *items)
{
    while (o->items.n <= id)
        BYI_PUSH(&o->items, NULL);
    o->items.at[id] = items;
}

bool byi_import_const_of_items(struct byi_import *o,
                               const struct byi_dim_item *items, uint32_t n,
                               uint32_t rank, byi_id *id)
{
    int64_t values[MAX_ITEMS + 1];

    if (n > MAX_ITEMS)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].kind != BYI_NUMBER)
            return false;
        values[i] = items[i].value;
    }
    const struct byi_tensor t = {
        .data = values, .dtype = BYOC_I64, .rank = rank, .dims = {n}};
    *id = byi_import_const_of(o, &t, false, o->sources);
    return byi_import_ok(o);
}

/* --- targets -------------------------------------------------------------- */

/* The target has 0 where the dim equals x's on that axis, and -1 for one other
 * dim that is not a number. With several such dims the target stays a run-time
 * value. */
byi_id byi_import_reshape_target(struct byi_import *o, byi_id x, byi_id shape)
{
    const uint32_t rank = byi_import_rank(o, x);
    int64_t target[MAX_ITEMS];
    struct byi_tensor t = {0};
    uint32_t n = 0, inferred = 0;
    const struct byi_dim_item *items = byi_import_items(o, shape, &n);

    if (!items || byi_import_rank(o, shape) != 1 ||
        byi_import_const_view(o, shape, &t))
        return shape;
    for (uint32_t i = 0; i < n; i++) {
        const bool same = items[i].kind == BYI_SYMBOL && i < rank &&
                          byi_import_dim(o, x, i) == items[i].value;
        target[i] = items[i].kind == BYI_NUMBER ? items[i].value
                    : same                      ? 0
                                                : -1;
        inferred += target[i] == -1;
    }
    return inferred <= 1 ? byi_import_vector(o, n, target) : shape;
}

/* The target has 1 where the dim equals x's, since broadcasting keeps x's. */
byi_id byi_import_expand_target(struct byi_import *o, byi_id x, byi_id shape)
{
    const uint32_t rank = byi_import_rank(o, x);
    int64_t target[MAX_ITEMS];
    struct byi_tensor t = {0};
    uint32_t n = 0;
    const struct byi_dim_item *items = byi_import_items(o, shape, &n);

    if (!items || byi_import_rank(o, shape) != 1 ||
        byi_import_const_view(o, shape, &t))
        return shape;
    for (uint32_t i = 0; i < n; i++) {
        target[i] = items[i].kind == BYI_NUMBER ? items[i].value : 1;
        if (items[i].kind == BYI_NUMBER)
            continue;
        if (items[i].kind == BYI_UNKNOWN || i + rank < n ||
            byi_import_dim(o, x, i + rank - n) != items[i].value)
            return shape;
    }
    return byi_import_vector(o, n, target);
}
