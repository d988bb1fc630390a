/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/operators.h: a small operator library on oneDNN: parameters of
 * operators, memory, and the steps of a region. The plug-in (walk.c) and the C
 * of regions (write.c) use it. That C contains the text of this file, which
 * must be plain C11 and mean the same in both. Loading refuses a unit of C
 * whose declarations differ from the plug-in's (unit.c).
 *
 * The text before this file must define enum byoc_dtype and BYI_MAX_RANK, as
 * core/base/base.h does. */
#ifndef BYI_DNNL_OPERATORS_H
#define BYI_DNNL_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

enum { BYI_MAX_POSTS = 32 };

/* --- tensors ------------------------------------------------------------- */

/* Whether a tensor exists, and whether its layout is known. */
enum byi_desc_kind {
    BYI_DESC_ABSENT,
    BYI_DESC_STRIDED,
    BYI_DESC_ANY /* the primitive may choose the layout */
};

/* The type and layout of a tensor. */
struct byi_desc {
    enum byi_desc_kind kind;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
    int64_t strides[BYI_MAX_RANK]; /* in elements */
};

/* --- post-ops ------------------------------------------------------------ */

/* X(name, oneDNN's algorithm): elementwise functions as this project defines
 * them; creators refuse those that the oneDNN version lacks. CLIP is min(max(x,
 * alpha), beta), HARDSIGMOID clip(alpha x + beta, 0, 1), HARDSWISH x clip(x/6 +
 * 1/2, 0, 1), LINEAR alpha x + beta, POW alpha x^beta, RELU x < 0 ? alpha x :
 * x, SWISH x sigmoid(alpha x); ELU has alpha. */
/* clang-format off */
#define BYI_ELTS(X)                                                            \
    X(ABS, abs) X(CLIP, clip) X(ELU, elu) X(EXP, exp) X(GELU_ERF, gelu_erf)    \
    X(GELU_TANH, gelu_tanh) X(HARDSIGMOID, hardsigmoid)                        \
    X(HARDSWISH, hardswish) X(LINEAR, linear) X(MISH, mish) X(POW, pow)        \
    X(RELU, relu) X(ROUND, round) X(SIGMOID, logistic)                         \
    X(SOFTPLUS, soft_relu) X(SQRT, sqrt) X(SQUARE, square) X(SWISH, swish)     \
    X(TANH, tanh)
#define BYI_BINS(X)                                                            \
    X(ADD, add) X(SUB, sub) X(MUL, mul) X(DIV, div) X(MAX, max) X(MIN, min)
/* clang-format on */

#define BYI_ELT(name, algorithm) BYI_ELT_##name,
#define BYI_BIN(name, algorithm) BYI_BIN_##name,
enum byi_elt { BYI_ELTS(BYI_ELT) };
enum byi_bin { BYI_BINS(BYI_BIN) BYI_N_BINS };

/* The kind of a post-op. */
enum byi_post_kind {
    BYI_POST_SUM,
    BYI_POST_ELT,
    BYI_POST_BIN,
    BYI_POST_PRELU /* a primitive has at most one */
};

/* A post-op: an operator that a primitive applies to its result. */
struct byi_post {
    enum byi_post_kind kind;
    int alg; /* enum byi_elt or byi_bin */
    float alpha, beta;
    /* BIN: the other operand; PRELU: the slopes, which vary along one axis at
     * most */
    struct byi_desc desc;
};

/* The post-ops of a primitive, in order. */
struct byi_posts {
    uint32_t n; /* at most BYI_MAX_POSTS */
    const struct byi_post *at;
};

/* --- operators ----------------------------------------------------------- */

/* The arguments of a primitive. */
enum byi_arg {
    BYI_ARG_SRC,
    BYI_ARG_SRC1,
    BYI_ARG_WEIGHTS,
    BYI_ARG_BIAS,
    BYI_ARG_MEAN,
    BYI_ARG_VARIANCE,
    BYI_ARG_SCALE,
    BYI_ARG_SHIFT,
    BYI_ARG_DST,
    BYI_ARG_SRC_H, /* initial states of a recurrent layer ... */
    BYI_ARG_SRC_C,
    BYI_ARG_RECURRENT,
    BYI_ARG_DST_H, /* ... and its final states */
    BYI_ARG_DST_C,
    BYI_ARG_POST = 0x100,  /* + index of a post-op: its other operand */
    BYI_ARG_SLOPE = 0x200, /* + index of a post-op: its slopes */
    BYI_ARG_MULTI = 0x1000 /* + index of a source that is concatenated */
};

/* A window over the spatial axes of a convolution, transposed convolution
 * (oneDNN's deconvolution) or pooling. Arrays are as long as oneDNN's. */
struct byi_dnnl_window {
    uint32_t n; /* number of spatial axes, 1 .. 3 */
    int64_t kernel[BYI_MAX_RANK];
    int64_t stride[BYI_MAX_RANK];
    int64_t dilation[BYI_MAX_RANK]; /* 1: adjacent taps */
    int64_t begin[BYI_MAX_RANK];
    int64_t end[BYI_MAX_RANK]; /* end padding, exact; negative values crop */
};

/* Data that a primitive computes while it reads them. It concatenates the
 * channels of n sources, and multiplies them by argument SCALE, (N or 1, C,
 * 1...). Then it adds argument SHIFT, (1, C, 1...), and applies ReLU. The
 * scale, the shift and ReLU may be absent. */
enum { BYI_MAX_GATHERED = 32 };
struct byi_dnnl_gather {
    uint32_t n; /* 0: the data are argument SRC; else source i is argument MULTI
                 * + i */
    int64_t channels[BYI_MAX_GATHERED];
    struct byi_desc scale, shift;
    bool relu;
};
/* dims (N, C, spatial...); weights (O, I, k...) or (G, O/G, I/G, k...), for
 * transposed convolution too; bias (O) or absent */
struct byi_dnnl_conv {
    bool deconv;
    bool exact;  /* use no algorithm with larger rounding errors than sums of
                  * products */
    bool banded; /* use byoc's own kernel, so that it may run in bands with
                  * others */
    struct byi_dnnl_window window;
    struct byi_desc src, weights, bias, dst;
    struct byi_dnnl_gather gather; /* only for byoc's own kernels and windows of
                                    * one tap */
};
/* (..., M, K) x (..., K, N), all of the same rank; bias (1, ..., N) or absent
 */
struct byi_dnnl_matmul {
    struct byi_desc src, weights, bias, dst;
};
/* softmax(posts(SRC x WEIGHTS)) x SRC1: (..., M, K) x (..., K, N), and the
 * result x (..., N, D), all of the same rank; batch axes of size 1 are
 * repeated. Posts are tanh or binary, and the last axis of their operands is
 * dense. */
struct byi_dnnl_attention {
    struct byi_desc src, weights, src1, dst;
    bool zero_nan; /* results of the softmax that are NaN become 0 */
};
enum byi_pool_kind { BYI_POOL_MAX, BYI_POOL_AVG, BYI_POOL_AVG_PAD };
/* dims (N, C, spatial...). The mean of bytes is that of (src - zero) * scale,
 * in float32, by byoc's own kernels; other pools ignore zero and scale. */
struct byi_dnnl_pool {
    enum byi_pool_kind kind;
    struct byi_dnnl_window window;
    struct byi_desc src, dst;
    int64_t zero;
    float scale;
};
/* dst has src's layout */
struct byi_dnnl_softmax {
    bool log;
    uint32_t axis;
    struct byi_desc src;
};
/* dst has src's layout */
struct byi_dnnl_eltwise {
    enum byi_elt alg;
    float alpha, beta;
    struct byi_desc src;
};
/* dst = src op src1, broadcast as oneDNN allows */
struct byi_dnnl_binary {
    enum byi_bin alg;
    struct byi_desc src, src1, dst;
};
enum byi_reduce_kind { BYI_REDUCE_SUM, BYI_REDUCE_MEAN };
struct byi_dnnl_reduce {
    enum byi_reduce_kind kind;
    struct byi_desc src, dst; /* reduced axes have size 1 in dst */
};
/* nearest or, if `linear`, linear interpolation */
struct byi_dnnl_resample {
    bool linear;
    struct byi_desc src, dst;
};
/* over the last axis; scale and shift are vectors of its length */
struct byi_dnnl_layer_norm {
    float epsilon;
    bool scale, shift;
    struct byi_desc src;
};
/* over axis 1; scale and shift per channel; mean and variance are operands or,
 * with `computes_mean`, computed from src */
struct byi_dnnl_batch_norm {
    float epsilon;
    bool computes_mean;
    struct byi_desc src;
};
/* over axis 1, across channels */
struct byi_dnnl_lrn {
    int64_t size;
    float alpha, beta, k;
    struct byi_desc src;
};
struct byi_dnnl_prelu {
    struct byi_desc src, weights;
};
/* n sources, side by side along `axis` */
struct byi_dnnl_concat {
    uint32_t axis;
    uint32_t n;
    const struct byi_desc *src;
    struct byi_desc dst;
};
struct byi_dnnl_reorder {
    struct byi_desc src, dst;
};
/* One recurrent layer over a whole sequence: src (T, N, I), weights (1, D, I,
 * G, H), recurrent (1, D, H, G, H), bias (1, D, G, H) or absent, states (1, D,
 * N, H) or all absent, dst (T, N, D H). Gates are in oneDNN's order: lstm i, f,
 * c, o; gru u, r, o; gru with linear-before-reset has one more bias. */
enum byi_rnn_kind {
    BYI_RNN_PLAIN, /* tanh, relu, sigmoid */
    BYI_RNN_LSTM,
    BYI_RNN_GRU,
    BYI_RNN_GRU_LINEAR
};
struct byi_dnnl_rnn {
    enum byi_rnn_kind kind;
    enum byi_elt activation; /* PLAIN */
    bool bidirectional;      /* D is 2 */
    bool reverse; /* the only direction is from the end to the beginning */
    struct byi_desc src, src_h, src_c, weights, recurrent, bias;
    struct byi_desc dst, dst_h, dst_c;
};

/* Exact elementwise operations on 8-bit integers q that represent (q - zero) *
 * scale: dst is round(clamp(value / scale)) + zero. */
enum byi_qelementwise_kind {
    BYI_QELEMENTWISE_QUANTIZE,   /* src is float32 */
    BYI_QELEMENTWISE_DEQUANTIZE, /* dst is float32 */
    BYI_QELEMENTWISE_ADD,        /* src + src1 of equal layout */
    BYI_QELEMENTWISE_MUL,
    BYI_QELEMENTWISE_REQUANTIZE, /* src */
    BYI_QELEMENTWISE_LOOKUP,     /* the entries of table src1 at src */
    BYI_QELEMENTWISE_MEAN        /* dst (M) is float32: the means of the rows of
                                  * dense src (M, N), N <= BYI_QMEAN_MAX */
};
enum { BYI_QMEAN_MAX = 1 << 24 }; /* sums of so many bytes fit 32 bits */
struct byi_dnnl_qelementwise {
    enum byi_qelementwise_kind kind;
    struct byi_desc src, src1, dst;
    int64_t src_zero, src1_zero, zero;
    float src_scale, src1_scale, scale;
    float low, high; /* bounds of value / scale */
};
/* A convolution or product of 8-bit integers, which byoc's own kernels compute
 * exactly (kernels/i8.h): src u8 or s8 with a zero point, dims (N, C,
 * spatial...); weights s8 (O, I/G, k...); bias (O) int32 and scale (O) float32;
 * dst is float32, sum * scale, or u8 or s8, round(clamp(sum * scale)) + zero.
 * If `add` is an ADD, dst is its result for these bytes as src, which has no
 * zero point, and src1. */
struct byi_dnnl_qconv {
    struct byi_dnnl_window window; /* its n is 0 for a product */
    struct byi_desc src, weights, dst;
    int64_t src_zero, zero;
    float low, high; /* bounds before the zero point is added */
    float scale;     /* with post-ops: of the result's quantisation */
    struct byi_dnnl_qelementwise add; /* a BYI_QELEMENTWISE_ADD, or all zero if
                                       * there is none */
};

/* --- memory -------------------------------------------------------------- */

/* The memory of a buffer. */
enum byi_buf_kind {
    BYI_BUF_INPUT,    /* input `index` of the region, in the caller's memory */
    BYI_BUF_OUTPUT,   /* output `index` of the region, in the caller's memory */
    BYI_BUF_CONST,    /* constant `index` of the artifact */
    BYI_BUF_COMPUTED, /* constant `index` computed at load */
    BYI_BUF_TEMP      /* a temporary; index is 0 */
};

/* A place in a buffer. */
struct byi_place {
    enum byi_buf_kind kind;
    uint32_t index;
    uint64_t offset; /* bytes */
};

/* The following structs describe constants that are computed at load from other
 * constants, which are CONST or COMPUTED. */

/* Weights in the layout that argument `arg` of the primitive of step `step`
 * needs. They are not copied if they have that layout already. */
struct byi_pack {
    struct byi_place from;
    struct byi_desc src;
    uint32_t step;
    int arg; /* enum byi_arg */
};
/* `src` in another layout. */
struct byi_copy {
    struct byi_place from;
    struct byi_desc src, dst;
};
/* n copies of one number. */
struct byi_fill {
    int64_t n;
    float value;
};
/* Floats (rows, columns), or (columns, rows) if `transposed`, as int8 times a
 * scale per row. Makes three constants for qconv: the integers, (rows,
 * columns); the scales times `scale`, divided by `result` unless that is 0 or
 * post-ops follow; and the bias in units of the sums, int32. */
struct byi_integers {
    struct byi_place from;
    int64_t rows, columns;
    bool transposed;
    float scale, result;
    bool posts;     /* post-ops follow, which read floats */
    int64_t n_bias; /* number of floats: 0, 1 or rows */
    struct byi_place bias;
};
/* Floats that are bytes times `scale`, as bytes of `dtype` with a zero point,
 * in row-major order. Strides of `src` may be zero, which broadcasts. */
struct byi_bytes {
    struct byi_place from;
    struct byi_desc src;
    enum byoc_dtype dtype; /* int8 or uint8 */
    float scale;
    int64_t zero;
};
/* A recurrent layer's gates in oneDNN's order: gate i is the model's order[i].
 * Weights have `size` floats per gate. Biases have `size` floats, the sums of
 * input and recurrent bias, or zeros if there is no bias. If `last_separate`,
 * the biases of the last gate are not added up. */
struct byi_gates {
    struct byi_place from;
    bool no_bias; /* for biases: the model has none, so they are zeros */
    uint32_t directions, gates;
    uint8_t order[4];
    bool last_separate;
    int64_t size;
};

/* --- steps --------------------------------------------------------------- */

/* An argument of a step. */
struct byi_dnnl_slot {
    int arg; /* enum byi_arg */
    struct byi_place at;
};

/* A primitive, number `index` in the order of creation, and its arguments. */
struct byi_dnnl_step {
    uint32_t index;
    /* its convolution is the only reader of the result of the step before, with
     * which it runs in bands; the first of these steps has the names of all */
    bool joins;
    const char *name;    /* "nn.conv2d+add+nn.relu", "reorder" */
    const char *sources; /* the model's nodes, separated by commas */
    uint32_t n_slots;
    const struct byi_dnnl_slot *slots;
};

/* --- a region as C ------------------------------------------------------- */

struct byi_load; /* a region being loaded */
struct byi_exec; /* a region with memory, runnable */

/* The functions that a unit calls: the unit's `build` calls all except `run`,
 * and its `run` calls only `run`. Each function returns 0, or a value that its
 * caller must return unchanged; the loader or executor stores the error.
 * `posts` may be NULL. */
#define BYI_OPERATOR(name)                                                     \
    int (*name)(struct byi_load * load, const struct byi_dnnl_##name *p,       \
                const struct byi_posts *posts)
#define BYI_MAKER(name, spec)                                                  \
    int (*name)(struct byi_load * load, const struct spec *p)
struct byi_operators {
    /* Make the primitive of the next step. */
    BYI_OPERATOR(conv);
    BYI_OPERATOR(matmul);
    BYI_OPERATOR(attention);
    BYI_OPERATOR(pool);
    BYI_OPERATOR(softmax);
    BYI_OPERATOR(eltwise);
    BYI_OPERATOR(binary);
    BYI_OPERATOR(reduce);
    BYI_OPERATOR(resample);
    BYI_OPERATOR(layer_norm);
    BYI_OPERATOR(batch_norm);
    BYI_OPERATOR(lrn);
    BYI_OPERATOR(prelu);
    BYI_OPERATOR(concat);
    BYI_OPERATOR(reorder);
    BYI_OPERATOR(rnn);
    BYI_OPERATOR(qconv);
    BYI_OPERATOR(qelementwise);
    /* Make the next constant; `integers` makes three. */
    BYI_MAKER(pack, byi_pack);
    BYI_MAKER(copy, byi_copy);
    BYI_MAKER(fill, byi_fill);
    BYI_MAKER(integers, byi_integers);
    BYI_MAKER(bytes, byi_bytes);
    BYI_MAKER(gate_weights, byi_gates);
    BYI_MAKER(gate_biases, byi_gates);
    /* Free constant `computed`, which was needed only to make others. */
    int (*drop)(struct byi_load *load, uint32_t computed);
    /* Run a step. The step exists as long as the unit. */
    int (*run)(struct byi_exec *exec, const struct byi_dnnl_step *step);
};

/* A unit, which its only exported function returns. */
struct byi_dnnl_unit {
    uint32_t size; /* sizeof(struct byi_dnnl_unit) */
    uint32_t id;   /* hash of these declarations: byi_dn_unit_id */
    const char *name;
    uint32_t n_steps, n_computed;
    uint32_t n_inputs, n_outputs, n_consts;
    const uint64_t *input_bytes, *output_bytes, *const_bytes;
    uint64_t temp_bytes; /* bytes of memory for temporaries */
    /* Make all primitives and constants; called once, at load. */
    int (*build)(const struct byi_operators *dn, struct byi_load *load);
    /* Run all steps in order; called for each run, and once before, to list the
     * steps. */
    int (*run)(const struct byi_operators *dn, struct byi_exec *exec);
};

#endif
