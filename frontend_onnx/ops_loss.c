/* SPDX-License-Identifier: Apache-2.0 */
/* ops_loss.c: converts losses to simpler operators.
 *
 * x (N, C, d...) are log probabilities, target (N, d...) classes:
 *   loss[n, d...] = -x[n, target[n, d...], d...] * weight[target[n, d...]]
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* The inputs of a loss except the scores. */
struct loss_target {
    byi_id target;  /* int64; class 0 where the target is ignored */
    byi_id ignored; /* bool: whether each target is ignored; or BYI_NO_ID */
    byi_id weight;  /* of each target, or BYI_NO_ID: all 1 */
};

/* Read the target, ignore_index and weights, which do not depend on x. */
static struct loss_target read_target(struct byi_import *o,
                                      enum byoc_dtype dtype)
{
    const byi_id weights = byi_import_in(o, 2);
    struct loss_target l = {.ignored = BYI_NO_ID, .weight = BYI_NO_ID};
    static const char ignore[] = "fn (%target) {"
                                 "  %ignored = equal(%target, index);"
                                 "  (%ignored, where(%ignored, 0, %target))"
                                 "}";

    l.target = byi_import_cast(o, byi_import_in(o, 1), BYOC_I64);
    if (byi_import_has_attr(o, "ignore_index")) {
        byi_id results[2];
        byi_import_template_results(
            o, ignore, ARGS(l.target),
            ATTRS(AN_INT("index", byi_import_int(o, "ignore_index", 0))), 2,
            results);
        l.ignored = results[0];
        l.target = results[1];
    }
    if (weights != BYI_NO_ID)
        l.weight = byi_import_take(o, weights, l.target, 0);
    if (l.ignored == BYI_NO_ID)
        return l;
    if (weights == BYI_NO_ID)
        l.weight = byi_import_scalar(o, dtype, 1);
    l.weight = byi_import_template(
        o, "fn (%ignored, %weight) { where(%ignored, 0, %weight) }",
        ARGS(l.ignored, l.weight), NO_ATTRS);
    return l;
}

static byi_id reduce_all(struct byi_import *o, enum byi_op_id op, byi_id x)
{
    return byi_import_emit(o, op, ARGS(x), ATTRS(A_BOOL("keepdims", false)));
}

static byi_id reduce_loss(struct byi_import *o, byi_id loss, byi_id weight)
{
    const char *reduction = byi_import_string(o, "reduction", "mean");

    if (strcmp(reduction, "none") == 0)
        return loss;
    if (strcmp(reduction, "sum") == 0)
        return reduce_all(o, BYI_OP_SUM, loss);
    if (strcmp(reduction, "mean") != 0)
        byi_import_refuse(o, "reduction is '%s', expected none, sum or mean",
                          reduction);
    if (weight == BYI_NO_ID)
        return reduce_all(o, BYI_OP_MEAN, loss);
    weight = reduce_all(o, BYI_OP_SUM, weight);
    return byi_import_call(o, BYI_OP_DIVIDE, reduce_all(o, BYI_OP_SUM, loss),
                           weight);
}

static byi_id emit_nll(struct byi_import *o, byi_id x)
{
    static const char text[] =
        "fn (%x, %target) {"
        "  %picked = gather(%x, expand_dims(%target, axis=[1]), axis=1);"
        "  negative(squeeze(%picked, axis=[1]))"
        "}";
    const struct loss_target l = read_target(o, byi_import_dtype(o, x));

    if (byi_import_ok(o) &&
        byi_import_rank(o, x) != byi_import_rank(o, l.target) + 1)
        byi_import_fail(o, BYOC_ETYPE,
                        "scores have rank %u and the target rank %u, expected "
                        "the rank of the target to be one less",
                        byi_import_rank(o, x), byi_import_rank(o, l.target));
    byi_id loss = byi_import_template(o, text, ARGS(x, l.target), NO_ATTRS);
    if (l.weight != BYI_NO_ID)
        loss = byi_import_call(o, BYI_OP_MULTIPLY, loss, l.weight);
    return reduce_loss(o, loss, l.weight);
}

static void convert_nll(struct byi_import *o)
{
    o->out[0] = emit_nll(o, byi_import_in(o, 0));
}

static void convert_cross_entropy(struct byi_import *o)
{
    const byi_id x =
        byi_import_emit(o, BYI_OP_NN_LOG_SOFTMAX, ARGS(byi_import_in(o, 0)),
                        ATTRS(AN_INT("axis", 1)));

    o->out[0] = emit_nll(o, x);
    if (o->n_out > 1)
        o->out[1] = x;
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_loss, BYI_ONNX,
    {"NegativeLogLikelihoodLoss", 12, 2, 3, convert_nll, BYI_OP_NONE},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, convert_cross_entropy, BYI_OP_NONE})
/* clang-format on */
