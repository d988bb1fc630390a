/* SPDX-License-Identifier: Apache-2.0 */
/* transform/recompose.h: shared by the files of Recompose. */
#ifndef BYI_RECOMPOSE_H
#define BYI_RECOMPOSE_H

#include "rows.h"

/* --- recompose_gate.c: activations that are x times a gate, or the gate --- */

/* The rule (rewrite.h) for activations such as gelu, silu and hard_sigmoid.
 * Returns the replacement of node `at`; BYI_NO_ID: keep the node. */
byi_id byi_recompose_gate(struct byi_rewrite *rw, byi_id at);

/* --- recompose_norm.c: layer normalisation ------------------------------- */

/* Rows that match the arithmetic of a layer normalisation of x. The square may
 * be of mean(x) - x. TensorFlow writes the result as x s + (beta - mean(x) s),
 * s = gamma / deviation. */
#define BYI_MEAN(x) "mean(" x "){keepdims=true}"
#define BYI_CENTRED                                                            \
    "(subtract(%x, " BYI_MEAN("%x") ")"                                        \
                                    " | add(%x, negative(" BYI_MEAN(           \
                                        "%x") ")))"
#define BYI_REVERSED "subtract(" BYI_MEAN("%x") ", %x)"
#define BYI_SQUARE                                                             \
    "(multiply(" BYI_CENTRED ", " BYI_CENTRED ")"                              \
    " | multiply(" BYI_REVERSED ", " BYI_REVERSED ")"                          \
    " | power((" BYI_CENTRED " | " BYI_REVERSED "), const %two))"
#define BYI_VARIANCE "add(" BYI_MEAN(BYI_SQUARE) ", const %epsilon)"
#define BYI_DEVIATION                                                          \
    "(sqrt(" BYI_VARIANCE ") | power(" BYI_VARIANCE ", const %half))"
#define BYI_INVERSE                                                            \
    "(rsqrt(" BYI_VARIANCE ") | reciprocal(" BYI_DEVIATION ")"                 \
    " | divide(const %one, " BYI_DEVIATION ")"                                 \
    " | power(" BYI_VARIANCE ", const %minus_half))"
#define BYI_AFFINE(s)                                                          \
    "add(multiply(%x, %s), subtract(%beta, multiply(" BYI_MEAN(                \
        "%x") ", %s)))"                                                        \
              " with %s = " s
#define BYI_ROW_NORM(from)                                                     \
    BYI_ROW_IF(from,                                                           \
               "nn.layer_norm(%x, %gamma, %beta, axis=axis, epsilon=epsilon)", \
               byi_is_norm)
/* The first two rows merge gamma and beta into a layer normalisation without
 * them. */
#define BYI_NORM_ROWS                                                          \
    BYI_ROW_NORM("multiply(nn.layer_norm(%x, const %one, %zero...), %gamma)"), \
        BYI_ROW_NORM("add(nn.layer_norm(%x, %gamma, %zero...), %beta)"),       \
        BYI_ROW_NORM("nn.layer_norm(%x, %gamma)"),                             \
        BYI_ROW_NORM("divide(" BYI_CENTRED ", " BYI_DEVIATION ")"),            \
        BYI_ROW_NORM("multiply(" BYI_CENTRED ", " BYI_INVERSE ")"),            \
        BYI_ROW_NORM(BYI_AFFINE("multiply(" BYI_INVERSE ", %gamma)")),         \
        BYI_ROW_NORM(BYI_AFFINE(BYI_INVERSE))
/* Binds the operands and attributes of the layer normalisation of a match.
 * False if its means are over different axes, or if epsilon is not a constant
 * of at least 0. Also false if gamma or beta cannot get the shape of the
 * normalised axes: a constant with as many elements is reshaped, and an absent
 * one is filled with 1 or 0, which needs a static shape. */
bool byi_is_norm(struct byi_row_match *match);

#endif
