/* SPDX-License-Identifier: Apache-2.0 */
/* make_ops.c: operators on existing values, constants that rewrite rules look
 * for, and repeated expressions.
 */
#include "make.h"

#include <math.h>
#include <string.h>

#define LARGE 60.0 /* floats beyond it are squashed */

int64_t make_elements(const struct byi_type *type)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < type->rank; i++)
        n *= BYI_IS_SYMBOL(type->dims[i]) ? N_SYMBOL : type->dims[i];
    return n;
}

/* --- predicates on types ----------------------------------------- */

bool make_is_float32(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind == BYI_TENSOR && type->dtype == BYOC_F32;
}

bool make_is_image(const struct byi_type *type, const void *unused)
{
    return make_is_float32(type, unused) && type->rank == 4;
}

static bool is_number(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind == BYI_TENSOR && type->dtype != BYOC_BOOL;
}

static bool is_bool(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind == BYI_TENSOR && type->dtype == BYOC_BOOL;
}

static bool is_tensor(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind == BYI_TENSOR;
}

static bool is_ranked(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind == BYI_TENSOR && type->rank > 0;
}

static bool is_bool_scalar(const struct byi_type *type, const void *unused)
{
    return is_bool(type, unused) && type->rank == 0;
}

static bool is_dtype(const struct byi_type *type, const void *dtype)
{
    return type->kind == BYI_TENSOR &&
           type->dtype == *(const enum byoc_dtype *)dtype;
}

/* --- calls ------------------------------------------------------- */

static const struct byi_sources *make_source(struct maker *k, enum byi_op_id op)
{
    char name[24];
    snprintf(name, sizeof name, "n%u", k->n_sources++);
    return byi_sources_one(k->m, byi_source_new(k->m, name, byi_op(op)->name));
}

/* Map x to a small range. */
static byi_id squash(struct maker *k, struct scope *s, byi_id x)
{
    static const enum byi_op_id ops[] = {BYI_OP_TANH, BYI_OP_SIGMOID,
                                         BYI_OP_SIN, BYI_OP_CLIP};
    const enum byi_op_id op = ops[make_pick(k, BYI_COUNT(ops))];
    const struct byi_attr bounds[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT, .f = -4.0},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT, .f = 4.0}};
    byi_id id = x;
    s->cost++;
    if (byi_add_call(k->m, s->f, op, &x, 1, bounds, op == BYI_OP_CLIP ? 2 : 0,
                     make_source(k, op), &id, NULL) != BYOC_OK)
        return x;
    return id;
}

static bool is_small(const struct byi_type *type)
{
    bool small = true;
    if (type->kind == BYI_TENSOR)
        return make_elements(type) <= MAX_ELEMENTS;
    for (uint32_t i = 0; small && i < type->n_fields; i++)
        small = is_small(type->fields[i]);
    return small;
}

byi_id make_call(struct maker *k, struct scope *s, enum byi_op_id op,
                 const byi_id *args, uint32_t n, const struct byi_attr *attrs,
                 uint32_t n_attrs, double bound)
{
    byi_id id;
    for (uint32_t i = 0; i < n; i++)
        if (args[i] == BYI_NO_ID)
            return BYI_NO_ID;
    if (byi_add_call(k->m, s->f, op, args, n, attrs, n_attrs,
                     make_source(k, op), &id, NULL) != BYOC_OK)
        return BYI_NO_ID;
    s->cost++;
    s->f->nodes.at[id].let = k->lets && make_pick(k, 2);
    const struct byi_type *type = make_type_of(s, id);
    const bool real =
        type->kind == BYI_TENSOR && byi_dtype_is_float(type->dtype);
    if (!is_small(type) || (!real && bound > 1e6))
        return BYI_NO_ID; /* the call stays, and no node reads it */
    if (real && bound > LARGE) {
        id = squash(k, s, id);
        bound = 4.0;
    }
    make_push(s, id, bound);
    return id;
}

/* --- constants --------------------------------------------------- */

static double special_number(struct maker *k)
{
    static const double numbers[] = {0,    1,        0.5,        2,
                                     3,    6,        -1,         1.0 / 6,
                                     1e-5, 0.044715, 1.41421356, 0.70710678};
    return numbers[make_pick(k, BYI_COUNT(numbers))];
}

byi_id make_const(struct maker *k, struct scope *s, enum byoc_dtype dtype,
                  uint32_t rank, const int64_t *dims)
{
    const struct byi_type *type =
        byi_type_tensor(k->m->arena, dtype, rank, dims);
    const int64_t n = byi_elements(rank, dims);
    const uint32_t distribution = make_pick(k, 3);
    struct byi_tensor t = {.dtype = dtype, .rank = rank};
    if (n < 0 || n > MAX_ELEMENTS)
        return BYI_NO_ID;
    memcpy(t.dims, type->dims, rank * sizeof *dims);
    t.data = byi_arena_alloc(k->m->arena, byi_tensor_bytes(&t) + 1);
    double value = special_number(k);
    for (int64_t i = 0; i < n; i++) {
        if (distribution == 1)
            value = special_number(k);
        else if (distribution == 2)
            value = (double)make_pick(k, 4096) / 1024.0 - 2.0;
        byi_tensor_set(&t, i,
                       byi_dtype_is_float(dtype) ? value
                       : dtype == BYOC_BOOL      ? value > 0.6
                                                 : floor(value));
    }
    const byi_id id = byi_add_const(
        k->m, s->f, byi_const_add(k->m, type, t.data, false), NULL);
    make_push(s, id, 6.0);
    return id;
}

byi_id make_number(struct maker *k, struct scope *s, enum byoc_dtype dtype,
                   double value)
{
    const int64_t *no_dims = NULL;
    uint64_t element;
    struct byi_tensor t = {.data = &element, .dtype = dtype};
    byi_tensor_set(&t, 0, value);
    const struct byi_type *type =
        byi_type_tensor(k->m->arena, dtype, 0, no_dims);
    return byi_add_const(k->m, s->f, byi_const_add(k->m, type, &element, false),
                         NULL);
}

byi_id make_ints(struct maker *k, struct scope *s, const int64_t *values,
                 uint32_t n)
{
    const int64_t dim = (int64_t)n;
    const struct byi_type *type =
        byi_type_tensor(k->m->arena, BYOC_I64, 1, &dim);
    return byi_add_const(k->m, s->f, byi_const_add(k->m, type, values, false),
                         NULL);
}

/* A constant that broadcasts to `like`; for an image, often one number per
 * channel. */
static byi_id operand_const(struct maker *k, struct scope *s,
                            const struct byi_type *like)
{
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = make_pick(k, like->rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = like->dims[like->rank - rank + i];
        if (BYI_IS_SYMBOL(dims[i]) || make_pick(k, 3) == 0)
            dims[i] = 1;
    }
    if (like->rank == 4 && make_pick(k, 2)) {
        rank = 3;
        dims[0] = like->dims[1];
        dims[1] = dims[2] = 1;
    }
    return make_const(k, s, like->dtype, rank, dims);
}

/* --- elementwise ------------------------------------------------- */

static void add_unary(struct maker *k, struct scope *s)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_NEGATIVE,    BYI_OP_ABS,           BYI_OP_NN_RELU,
        BYI_OP_NN_RELU,     BYI_OP_SIGMOID,       BYI_OP_ERF,
        BYI_OP_TANH,        BYI_OP_COPY,          BYI_OP_SIN,
        BYI_OP_NN_GELU,     BYI_OP_NN_SILU,       BYI_OP_NN_ELU,
        BYI_OP_NN_SOFTPLUS, BYI_OP_NN_LEAKY_RELU, BYI_OP_NN_HARD_SWISH};
    const struct bounded_value *x = make_find(k, s, make_is_float32, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const enum byi_op_id op = ops[make_pick(k, BYI_COUNT(ops))];
    make_call(k, s, op, &id, 1, NULL, 0, bound + 1.0);
    if (bound <= 4.0 && make_pick(k, 8) == 0)
        make_call(k, s, BYI_OP_EXP, &id, 1, NULL, 0, exp(bound));
}

static double result_bound(enum byi_op_id op, double a, double b)
{
    if (op == BYI_OP_MULTIPLY)
        return a * b;
    return op == BYI_OP_ADD || op == BYI_OP_SUBTRACT ? a + b : fmax(a, b);
}

static void add_binary(struct maker *k, struct scope *s)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_ADD,      BYI_OP_ADD,      BYI_OP_ADD,
        BYI_OP_MULTIPLY, BYI_OP_MULTIPLY, BYI_OP_MAXIMUM,
        BYI_OP_MINIMUM,  BYI_OP_SUBTRACT, BYI_OP_SUBTRACT};
    const struct bounded_value *x = make_find(k, s, is_number, NULL);
    if (!x)
        return;
    const struct bounded_value a = *x;
    const struct byi_type *type = make_type_of(s, a.id);
    struct bounded_value b = {BYI_NO_ID, 6.0};
    if (make_pick(k, 2) && (x = make_find(k, s, is_dtype, &type->dtype)))
        b = *x;
    else
        b.id = operand_const(k, s, type);
    const enum byi_op_id op = ops[make_pick(k, BYI_COUNT(ops))];
    const bool swap = make_pick(k, 3) == 0;
    make_call(k, s, op, (byi_id[]){swap ? b.id : a.id, swap ? a.id : b.id}, 2,
              NULL, 0, result_bound(op, a.bound, b.bound));
}

/* Divide by a number other than zero. */
static void add_divide(struct maker *k, struct scope *s)
{
    static const double divisors[] = {1, 2, 6, -3, 7, 1.41421356};
    const struct bounded_value *x = make_find(k, s, is_number, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    const uint32_t n = byi_dtype_is_float(type->dtype) ? 6 : 5;
    const double by = divisors[make_pick(k, n)];
    const byi_id number = make_number(k, s, type->dtype, by);
    make_call(k, s, BYI_OP_DIVIDE, (byi_id[]){id, number}, 2, NULL, 0, bound);
}

static void add_power(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, make_is_float32, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound, n = 1.0 + make_pick(k, 3);
    const byi_id number = make_number(k, s, BYOC_F32, n);
    make_call(k, s, BYI_OP_POWER, (byi_id[]){id, number}, 2, NULL, 0,
              pow(bound, n));
}

static void add_clip(struct maker *k, struct scope *s)
{
    static const double bounds[] = {-INFINITY, 0, 1, 6, INFINITY};
    const struct bounded_value *x = make_find(k, s, make_is_float32, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    struct byi_attr attrs[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT},
    };
    attrs[0].f = bounds[make_pick(k, 3)];
    attrs[1].f = bounds[2 + make_pick(k, 3)];
    make_call(k, s, BYI_OP_CLIP, &id, 1, attrs, 2, bound);
}

static void add_cast(struct maker *k, struct scope *s)
{
    static const enum byoc_dtype to[] = {BYOC_F32, BYOC_F32, BYOC_F64,
                                         BYOC_I64, BYOC_I32, BYOC_BOOL};
    const struct bounded_value *x = make_find(k, s, is_tensor, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_attr dtype = {.name = "dtype",
                                   .kind = BYI_ATTR_DTYPE,
                                   .i = to[make_pick(k, BYI_COUNT(to))]};
    make_call(k, s, BYI_OP_CAST, &id, 1, &dtype, 1, bound);
}

/* --- bools ------------------------------------------------------- */

static const enum byi_op_id compares[] = {
    BYI_OP_LESS,          BYI_OP_GREATER, BYI_OP_LESS_EQUAL,
    BYI_OP_GREATER_EQUAL, BYI_OP_EQUAL,   BYI_OP_NOT_EQUAL};

static void add_compare(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_number, NULL);
    if (!x)
        return;
    const byi_id a = x->id;
    const struct byi_type *type = make_type_of(s, a);
    x = make_pick(k, 2) ? make_find(k, s, is_dtype, &type->dtype) : NULL;
    const byi_id b = x ? x->id : operand_const(k, s, type);
    const enum byi_op_id op = compares[make_pick(k, BYI_COUNT(compares))];
    make_call(k, s, op, (byi_id[]){a, b}, 2, NULL, 0, 1.0);
}

static void add_logical(struct maker *k, struct scope *s)
{
    static const enum byi_op_id ops[] = {BYI_OP_LOGICAL_AND, BYI_OP_LOGICAL_OR,
                                         BYI_OP_LOGICAL_XOR};
    byi_id args[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct bounded_value *x = make_find(k, s, is_bool, NULL);
        if (!x)
            return;
        args[i] = x->id;
    }
    if (make_pick(k, 3) == 0)
        make_call(k, s, BYI_OP_LOGICAL_NOT, args, 1, NULL, 0, 1.0);
    else
        make_call(k, s, ops[make_pick(k, 3)], args, 2, NULL, 0, 1.0);
}

static void add_where(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_bool, NULL);
    byi_id args[3];
    if (!x)
        return;
    args[0] = x->id;
    x = make_find(k, s, is_number, NULL);
    if (!x)
        return;
    args[1] = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, args[1]);
    x = make_find(k, s, is_dtype, &type->dtype);
    args[2] = x ? x->id : operand_const(k, s, type);
    make_call(k, s, BYI_OP_WHERE, args, 3, NULL, 0, fmax(bound, 8.0));
}

byi_id make_condition(struct maker *k, struct scope *s)
{
    const struct byi_attr keep = {.name = "keepdims", .kind = BYI_ATTR_BOOL};
    const uint32_t source = make_pick(k, 8);
    const struct bounded_value *x =
        source < 3 ? make_find(k, s, is_bool_scalar, NULL) : NULL;
    if (x)
        return x->id;
    x = source < 7 ? make_find(k, s, is_number, NULL) : NULL;
    if (!x) {
        const bool yes = make_pick(k, 2);
        return make_number(k, s, BYOC_BOOL, yes);
    }
    const double bound = x->bound;
    byi_id id = x->id;
    id = make_call(k, s, BYI_OP_MAX, &id, 1, &keep, 1, bound);
    if (id == BYI_NO_ID)
        return make_number(k, s, BYOC_BOOL, 1.0);
    const double limit = (double)make_pick(k, 5) - 1.0;
    const byi_id number =
        make_number(k, s, make_type_of(s, id)->dtype, limit + 0.25);
    const enum byi_op_id op = compares[make_pick(k, 4)];
    id = make_call(k, s, op, (byi_id[]){id, number}, 2, NULL, 0, 1.0);
    return id == BYI_NO_ID ? make_number(k, s, BYOC_BOOL, 1.0) : id;
}

/* --- reductions -------------------------------------------------- */

static void add_reduce(struct maker *k, struct scope *s)
{
    static const enum byi_op_id ops[] = {BYI_OP_MEAN, BYI_OP_SUM, BYI_OP_MAX,
                                         BYI_OP_MIN, BYI_OP_MEAN};
    const struct bounded_value *x = make_find(k, s, is_number, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    int64_t axes[4];
    uint32_t n = 0;
    for (uint32_t i = 0; i < type->rank && n < 4; i++)
        if (make_pick(k, 2))
            axes[n++] = i;
    struct byi_attr attrs[] = {
        {.name = "axis", .kind = BYI_ATTR_INTS, .n = n, .ints = axes},
        {.name = "keepdims", .kind = BYI_ATTR_BOOL},
    };
    attrs[1].i = make_pick(k, 3) > 0;
    const enum byi_op_id op = ops[make_pick(k, BYI_COUNT(ops))];
    const double factor = op == BYI_OP_SUM ? (double)make_elements(type) : 1.0;
    make_call(k, s, op, &id, 1, attrs, 2, bound * factor);
}

static void add_arg_reduce(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const uint32_t rank = make_type_of(s, id)->rank;
    struct byi_attr attrs[] = {
        {.name = "axis", .kind = BYI_ATTR_INT},
        {.name = "keepdims", .kind = BYI_ATTR_BOOL},
    };
    attrs[0].i = make_pick(k, rank);
    attrs[1].i = make_pick(k, 2);
    const enum byi_op_id op = make_pick(k, 2) ? BYI_OP_ARGMAX : BYI_OP_ARGMIN;
    make_call(k, s, op, &id, 1, attrs, 2, 4.0);
}

/* --- movement ---------------------------------------------------- */

static void add_transpose(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    int64_t axes[BYI_MAX_RANK];
    if (!x)
        return;
    byi_id id = x->id;
    const double bound = x->bound;
    const uint32_t rank = make_type_of(s, id)->rank;
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t j = make_pick(k, i + 1);
        axes[i] = axes[j];
        axes[j] = i;
    }
    const struct byi_attr attr = {
        .name = "axes", .kind = BYI_ATTR_INTS, .n = rank, .ints = axes};
    id = make_call(k, s, BYI_OP_TRANSPOSE, &id, 1, &attr, 1, bound);
    if (id == BYI_NO_ID || make_pick(k, 3))
        return;
    int64_t inverse[BYI_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        inverse[axes[i]] = i;
    const struct byi_attr undo = {
        .name = "axes", .kind = BYI_ATTR_INTS, .n = rank, .ints = inverse};
    if (make_pick(k, 2))
        id = make_call(k, s, BYI_OP_NN_RELU, &id, 1, NULL, 0, bound);
    make_call(k, s, BYI_OP_TRANSPOSE, &id, 1, &undo, 1, bound);
}

/* Reshape to dims in another grouping. Some of them may be 0 (the operand's
 * dim), and one may be -1 (the rest). */
static void add_reshape(struct maker *k, struct scope *s)
{
    /* rank, then the dims */
    static const int64_t shapes[][5] = {
        {4, 1, 2, 4, 4}, {4, 1, 4, 4, 2}, {4, 0, 8, 2, 2},  {4, 2, 1, 4, 4},
        {2, 0, -1},      {1, -1},         {2, 2, 4},        {3, 0, 0, -1},
        {2, -1, 4},      {4, 0, 0, 0, 0}, {4, 0, -1, 4, 4}, {3, 2, 2, 2}};
    const struct bounded_value *x = make_find(k, s, is_tensor, NULL);
    if (!x)
        return;
    byi_id id = x->id;
    const double bound = x->bound;
    const uint32_t times = 1 + make_pick(k, 2);
    for (uint32_t i = 0; i < times && id != BYI_NO_ID; i++) {
        const int64_t *shape = shapes[make_pick(k, BYI_COUNT(shapes))];
        const byi_id ints = make_ints(k, s, shape + 1, (uint32_t)shape[0]);
        id = make_call(k, s, BYI_OP_RESHAPE, (byi_id[]){id, ints}, 2, NULL, 0,
                       bound);
    }
}

static void add_axes(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_tensor, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    const int64_t axis = make_pick(k, type->rank + 1);
    /* squeeze of all axes of size 1 needs a type without symbolic dims */
    const bool all_axes = byi_type_is_static(type) && make_pick(k, 2);
    const struct byi_attr attr = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = 1, .ints = &axis};
    const uint32_t what = make_pick(k, 3);
    if (what == 0)
        make_call(k, s, BYI_OP_SQUEEZE, &id, 1, &attr, all_axes ? 0 : 1, bound);
    else if (what == 1)
        make_call(k, s, BYI_OP_EXPAND_DIMS, &id, 1, &attr, 1, bound);
    else
        make_call(k, s, BYI_OP_FLATTEN, &id, 1, NULL, 0, bound);
}

static void add_slice(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    const int64_t axis = make_pick(k, type->rank);
    const int64_t begin = (int64_t)make_pick(k, 4) - 1;
    const int64_t end = make_pick(k, 3) ? INT32_MAX : make_pick(k, 4);
    static const int64_t strides[] = {1, 1, 1, 2, -1};
    const int64_t stride = strides[make_pick(k, BYI_COUNT(strides))];
    const byi_id args[] = {id, make_ints(k, s, &begin, 1),
                           make_ints(k, s, &end, 1), make_ints(k, s, &axis, 1),
                           make_ints(k, s, &stride, 1)};
    make_call(k, s, BYI_OP_STRIDED_SLICE, args, 5, NULL, 0, bound);
}

static void add_concat(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    byi_id args[3];
    if (!x)
        return;
    args[0] = x->id;
    const struct byi_type *type = make_type_of(s, args[0]);
    const uint32_t n = 1 + make_pick(k, 3);
    double bound = x->bound;
    for (uint32_t i = 1; i < n; i++) {
        args[i] = make_value(k, s, type);
        if (args[i] == BYI_NO_ID)
            return;
        bound = fmax(bound, make_bound(s, args[i]));
    }
    const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INT, .i = make_pick(k, type->rank)};
    make_call(k, s, BYI_OP_CONCATENATE, args, n, &axis, 1, bound);
}

/* Add a split and some of its parts, which are sometimes concatenated again. */
static void add_split(struct maker *k, struct scope *s)
{
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    const uint32_t axis = make_pick(k, type->rank);
    const int64_t dim = type->dims[axis];
    int64_t sizes[] = {dim / 2, dim - dim / 2};
    const struct byi_attr attrs[] = {
        {.name = "sizes", .kind = BYI_ATTR_INTS, .n = 2, .ints = sizes},
        {.name = "axis", .kind = BYI_ATTR_INT, .i = axis}};
    if (dim < 2)
        return;
    const byi_id parts = make_call(k, s, BYI_OP_SPLIT, &id, 1, attrs, 2, bound);
    byi_id fields[2] = {BYI_NO_ID, BYI_NO_ID};
    for (uint32_t i = 0; parts != BYI_NO_ID && i < 2; i++)
        if (make_pick(k, 4) && byi_add_get(k->m, s->f, parts, i, NULL,
                                           &fields[i], NULL) == BYOC_OK)
            make_push(s, fields[i], bound);
    if (make_pick(k, 3) == 0)
        make_call(k, s, BYI_OP_CONCATENATE, fields, 2, &attrs[1], 1, bound);
}

static void add_pad(struct maker *k, struct scope *s)
{
    static const int64_t pads[][8] = {{0, 0, 1, 0, 0, 0, 0, 1},
                                      {0, 0, 1, 1, 0, 0, 1, 1},
                                      {0, 0, 0, 0, 0, 0, 0, 0}};
    const struct bounded_value *x = make_find(k, s, make_is_image, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const byi_id ints = make_ints(k, s, pads[make_pick(k, 3)], 8);
    const byi_id value = make_number(k, s, BYOC_F32, make_pick(k, 3) ? 0 : 1.5);
    make_call(k, s, BYI_OP_NN_PAD, (byi_id[]){id, ints, value}, 3, NULL, 0,
              bound);
}

static void add_take(struct maker *k, struct scope *s)
{
    static const int64_t indices[] = {1, 0, 1};
    const struct bounded_value *x = make_find(k, s, is_ranked, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const struct byi_type *type = make_type_of(s, id);
    const uint32_t axis = make_pick(k, type->rank);
    if (type->dims[axis] < 2)
        return;
    const byi_id ints = make_ints(k, s, indices, 1 + make_pick(k, 3));
    const struct byi_attr attr = {
        .name = "axis", .kind = BYI_ATTR_INT, .i = axis};
    make_call(k, s, BYI_OP_TAKE, (byi_id[]){id, ints}, 2, &attr, 1, bound);
}

static void add_broadcast(struct maker *k, struct scope *s)
{
    static const int64_t shapes[][5] = {
        {2, 2, 4}, {4, 1, 2, 4, 4}, {1, 1}, {3, 2, 1, 4}};
    const struct bounded_value *x = make_find(k, s, is_tensor, NULL);
    if (!x)
        return;
    const byi_id id = x->id;
    const double bound = x->bound;
    const int64_t *shape = shapes[make_pick(k, BYI_COUNT(shapes))];
    const byi_id ints = make_ints(k, s, shape + 1, (uint32_t)shape[0]);
    make_call(k, s, BYI_OP_BROADCAST_TO, (byi_id[]){id, ints}, 2, NULL, 0,
              bound);
}

/* --- repeated operators ------------------------------------------ */

/* Repeat an existing operator, sometimes with swapped operands if it is
 * commutative. */
static void repeat_operator(struct maker *k, struct scope *s)
{
    const byi_id at = make_pick(k, s->f->nodes.n + 1);
    if (at == s->f->nodes.n || s->f->nodes.at[at].kind != BYI_CALL_OP)
        return;
    const struct byi_node node = s->f->nodes.at[at];
    const bool swap = node.n_args == 2 &&
                      (node.op == BYI_OP_ADD || node.op == BYI_OP_MULTIPLY) &&
                      make_pick(k, 2);
    byi_id args[8], id;
    if (node.n_args > BYI_COUNT(args))
        return;
    for (uint32_t i = 0; i < node.n_args; i++)
        args[i] = node.args[swap ? 1 - i : i];
    if (byi_add_op(k->m, s->f, node.op, args, node.n_args, node.attrs,
                   make_source(k, node.op), &id, NULL) != BYOC_OK)
        return;
    s->cost++;
    if (is_small(node.type))
        make_push(s, id, make_bound(s, at));
}

void (*const make_ops[])(struct maker *, struct scope *) = {
    add_unary,       add_unary,       add_unary,      add_unary,
    add_binary,      add_binary,      add_binary,     add_binary,
    add_binary,      add_binary,      add_divide,     add_power,
    add_clip,        add_cast,        add_compare,    add_logical,
    add_where,       add_reduce,      add_reduce,     add_arg_reduce,
    add_transpose,   add_transpose,   add_reshape,    add_axes,
    add_slice,       add_slice,       add_concat,     add_concat,
    add_split,       add_pad,         add_take,       add_broadcast,
    repeat_operator, repeat_operator, repeat_operator};
const uint32_t n_make_ops = BYI_COUNT(make_ops);
