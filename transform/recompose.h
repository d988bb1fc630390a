/* SPDX-License-Identifier: Apache-2.0 */
/* transform/recompose.h: shared by the files of Recompose. */
#ifndef BYI_RECOMPOSE_H
#define BYI_RECOMPOSE_H

#include "rows.h"

/* The nodes between a match's operands and its root. The replacement of the
 * root removes them, so they must not have other readers. */
struct byi_inner {
    byi_id at[32];
    uint32_t n;
};

/* Add an inner node once; false if there are too many. */
static inline bool byi_inner_add(struct byi_inner *inner, byi_id id)
{
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->at[i] == id)
            return true;
    if (inner->n == BYI_COUNT(inner->at))
        return false;
    inner->at[inner->n++] = id;
    return true;
}

/* --- recompose_gate.c: gelu, silu, hard_swish: x times a gate ------------- */

byi_id byi_recompose_gate(struct byi_rewrite *rw, byi_id at);

/* --- recompose_norm.c: layer normalisation ------------------------------- */

/* Rows of the arithmetic of a layer normalisation of x. A square may be of
 * mean(x) - x, and as TensorFlow writes it, the result is
 * x s + (beta - mean(x) s), s = gamma / deviation. */
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
#define BYI_NORM_ROWS                                                          \
    BYI_ROW_EMIT("divide(" BYI_CENTRED ", " BYI_DEVIATION ")",                 \
                 byi_recompose_norm),                                          \
        BYI_ROW_EMIT("multiply(" BYI_CENTRED ", " BYI_INVERSE ")",             \
                     byi_recompose_norm),                                      \
        BYI_ROW_EMIT(BYI_AFFINE("multiply(" BYI_INVERSE ", %gamma)"),          \
                     byi_recompose_norm),                                      \
        BYI_ROW_EMIT(BYI_AFFINE(BYI_INVERSE), byi_recompose_norm)
/* The layer normalisation of such a match. */
byi_id byi_recompose_norm(struct byi_row_match *match);
byi_id byi_recompose_norm_gamma(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_beta(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_complete(struct byi_rewrite *rw, byi_id at);

#endif
