/* SPDX-License-Identifier: Apache-2.0 */
/* ops_random.c: converts operators that draw random numbers.
 *
 * RandomNormal(shape=[2, 3], mean=1) -> random.normal(const([2, 3]), mean=1)
 * RandomUniformLike(x)               -> random.uniform(shape_of(%x))
 * Bernoulli(x)                       -> cast(less(random.uniform(..), %x))
 *
 * A node without a seed gets one derived from its index in the model. It is
 * negative, to avoid seeds that models use.
 */
#include "frontend_onnx/import.h"

/* Returns the node's seed, or the seed derived from its index. */
static double seed_of(struct byi_import *o)
{
    const bool has_seed = byi_import_has_attr(o, "seed");
    const int64_t source = o->sources->n ? o->sources->at[0] : 0;

    if (has_seed && o->row->op == BYI_OP_NONE) /* Dropout's seed is an int */
        return (double)byi_import_int(o, "seed", 0);
    return has_seed ? byi_import_float(o, "seed", 0) : -1.0 - (double)source;
}

/* Emit random numbers of the node's dtype or, if it has none, of dtype
 * `default_dtype`.
 */
static byi_id emit_random(struct byi_import *o, byi_id shape,
                          enum byoc_dtype default_dtype)
{
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "dtype", default_dtype);

    return byi_import_same(
        o, o->row->op, ARGS(shape),
        ATTRS(A_DTYPE("dtype", dtype), A_FLOAT("seed", seed_of(o))));
}

static void convert_random(struct byi_import *o)
{
    uint32_t n = 0;
    const int64_t *dims = byi_import_ints(o, "shape", &n);

    if (!byi_import_has_attr(o, "shape"))
        byi_import_fail(
            o, BYOC_EPARSE,
            "attribute 'shape' is missing, expected a list of sizes");
    o->out[0] = emit_random(o, byi_import_vector(o, n, dims), BYOC_F32);
}

static void convert_random_like(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);

    o->out[0] =
        emit_random(o, byi_import_shape_of(o, x), byi_import_dtype(o, x));
}

byi_id byi_import_random_uniform(struct byi_import *o, byi_id shape)
{
    return byi_import_emit(o, BYI_OP_RANDOM_UNIFORM, ARGS(shape),
                           ATTRS(A_FLOAT("seed", seed_of(o))));
}

static void convert_bernoulli(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "dtype", byi_import_dtype(o, x));
    const byi_id random = byi_import_emit(
        o, BYI_OP_RANDOM_UNIFORM, ARGS(byi_import_shape_of(o, x)),
        ATTRS(A_DTYPE("dtype", BYOC_F64), A_FLOAT("seed", seed_of(o))));
    const byi_id below = byi_import_call(o, BYI_OP_LESS, random,
                                         byi_import_cast(o, x, BYOC_F64));

    o->out[0] = byi_import_cast(o, below, dtype);
}

static void convert_multinomial(struct byi_import *o)
{
    const enum byoc_dtype dtype = byi_import_dtype_attr(o, "dtype", BYOC_I32);

    o->out[0] = byi_import_same(
        o, BYI_OP_RANDOM_MULTINOMIAL, ARGS(byi_import_in(o, 0)),
        ATTRS(A_DTYPE("dtype", dtype), A_FLOAT("seed", seed_of(o))));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_random, BYI_ONNX,
    {"Bernoulli", 15, 1, 1, convert_bernoulli, BYI_OP_RANDOM_UNIFORM},
    {"Multinomial", 7, 1, 1, convert_multinomial, BYI_OP_RANDOM_MULTINOMIAL},
    {"RandomNormal", 1, 0, 0, convert_random, BYI_OP_RANDOM_NORMAL},
    {"RandomNormalLike", 1, 1, 1, convert_random_like, BYI_OP_RANDOM_NORMAL},
    {"RandomUniform", 1, 0, 0, convert_random, BYI_OP_RANDOM_UNIFORM},
    {"RandomUniformLike", 1, 1, 1, convert_random_like, BYI_OP_RANDOM_UNIFORM})
/* clang-format on */
