/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/patterns.h: the pattern rows of oneDNN's plug-in, and the
 * operators that can be post-ops, from which patterns.c and walk.c make the
 * text of rows, and chain.c its tables. */
#ifndef BYI_DNNL_PATTERNS_H
#define BYI_DNNL_PATTERNS_H

#include <byoc/backend.h>

/* clang-format off */

/* X(operator, name, function, alpha, beta, value of alpha, of beta): operators
 * that are an elementwise function of oneDNN; chain.c adds a second function for
 * a few. alpha and beta name the attributes that are its parameters. If NULL,
 * the parameter is the value. `AND` is put between entries. */
#define BYI_DN_ELTWISE(X, AND)                                            \
    X(NN_RELU, "nn.relu", RELU, NULL, NULL, 0, 0) AND                     \
    X(NN_LEAKY_RELU, "nn.leaky_relu", RELU, "alpha", NULL, 0, 0) AND      \
    X(NN_ELU, "nn.elu", ELU, "alpha", NULL, 0, 0) AND                     \
    X(NN_SELU, "nn.selu", ELU, "alpha", NULL, 0, 0) AND                   \
    X(CLIP, "clip", CLIP, "a_min", "a_max", 0, 0) AND                     \
    X(SIGMOID, "sigmoid", SIGMOID, NULL, NULL, 0, 0) AND                  \
    X(TANH, "tanh", TANH, NULL, NULL, 0, 0) AND                           \
    X(NN_GELU, "nn.gelu", GELU_ERF, NULL, NULL, 0, 0) AND                 \
    X(NN_SILU, "nn.silu", SWISH, NULL, NULL, 1, 0) AND                    \
    X(NN_HARD_SWISH, "nn.hard_swish", HARDSWISH, NULL, NULL, 0, 0) AND    \
    X(NN_HARD_SIGMOID, "nn.hard_sigmoid", HARDSIGMOID, "alpha", "beta", 0, 0) AND \
    X(NN_MISH, "nn.mish", MISH, NULL, NULL, 0, 0) AND                     \
    X(NN_SOFTPLUS, "nn.softplus", SOFTPLUS, NULL, NULL, 0, 0) AND         \
    X(ABS, "abs", ABS, NULL, NULL, 0, 0) AND                              \
    X(NEGATIVE, "negative", LINEAR, NULL, NULL, -1, 0) AND                \
    X(SQRT, "sqrt", SQRT, NULL, NULL, 0, 0) AND                           \
    X(EXP, "exp", EXP, NULL, NULL, 0, 0) AND                              \
    X(RECIPROCAL, "reciprocal", POW, NULL, NULL, 1, -1) AND               \
    X(ROUND, "round", ROUND, NULL, NULL, 0, 0)

/* X(operator, name, function): operators of two values. */
#define BYI_DN_BINARY(X, AND)                                             \
    X(ADD, "add", ADD) AND                                                \
    X(SUBTRACT, "subtract", SUB) AND                                      \
    X(MULTIPLY, "multiply", MUL) AND                                      \
    X(DIVIDE, "divide", DIV) AND                                          \
    X(MAXIMUM, "maximum", MAX) AND                                        \
    X(MINIMUM, "minimum", MIN)

/* X(id, text): the messages of predicates that refuse a match. */
#define BYI_DN_REFUSALS(X, AND)                                           \
    X(GIVES, "%s gives %s, expected float32, float16 or bfloat16; this backend offloads no other results") AND \
    X(MOVES, "%s moves %s, expected float32, float16, bfloat16, int8 or uint8; this backend moves no other data") AND \
    X(TAKES_WIDE, "%s takes %s, expected float32; this backend offloads no other data") AND \
    X(BITS, "%s makes %s of %s, expected 8 bits on one side and float32 on the other") AND \
    X(SCALES, "%s has scales %s, expected one; this backend supports none along an axis") AND \
    X(RESHAPES, "%s gives %s, expected the shape of the result of %s, %s, which oneDNN's post-ops keep")
/* clang-format on */

extern const struct byoc_pattern byi_dnnl_patterns[];
extern const uint32_t byi_dnnl_n_patterns;

#endif
