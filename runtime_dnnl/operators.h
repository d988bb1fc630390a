/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/operators.h: a small operator library on oneDNN: parameters of
 * operators, memory, and the steps of a region. Both the plug-in (walk.c) and
 * the C that regions become (write.c) use it. The C carries this file as text,
 * so it must be plain C11 and mean the same in both. Loading refuses a unit of
 * C with other declarations than the plug-in's (unit.c).
 *
 * enum byoc_dtype and BYI_MAX_RANK come before it: core/base/base.h has them.
 */
#ifndef BYI_DNNL_OPERATORS_H
#define BYI_DNNL_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

enum { BYI_MAX_POSTS = 32 };

/* --- tensors ------------------------------------------------------------- */

enum byi_desc_kind {
    BYI_DESC_ABSENT,
    BYI_DESC_STRIDED,
    BYI_DESC_ANY /* the primitive may choose the layout */
};

struct byi_desc {
    enum byi_desc_kind kind;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
    int64_t strides[BYI_MAX_RANK]; /* in elements */
};

/* --- post-ops ------------------------------------------------------------ */

/* X(name, oneDNN's algorithm): elementwise functions by this project's
 * definition; a oneDNN version that lacks one refuses it. CLIP is min(max(x,
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

enum byi_post_kind {
    BYI_POST_SUM,
    BYI_POST_ELT,
    BYI_POST_BIN,
    BYI_POST_PRELU /* at most one per primitive */
};

struct byi_post {
    enum byi_post_kind kind;
    int alg; /* enum byi_elt or byi_bin */
    float alpha, beta;
    /* BIN: the other operand; PRELU: the slopes, on at most one axis */
    struct byi_desc desc;
};

struct byi_posts {
    uint32_t n; /* at most BYI_MAX_POSTS */
    const struct byi_post *at;
};

/* --- operators ----------------------------------------------------------- */

/* Names of a primitive's arguments. */
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
    BYI_ARG_SRC_H, /* a recurrent layer's initial states ... */
    BYI_ARG_SRC_C,
    BYI_ARG_RECURRENT,
    BYI_ARG_DST_H, /* ... and its final ones */
    BYI_ARG_DST_C,
    BYI_ARG_POST = 0x100,  /* + index of a post-op: its other operand */
    BYI_ARG_SLOPE = 0x200, /* + index of a post-op: its slopes        */
    BYI_ARG_MULTI = 0x1000 /* + index of a source that is concatenated */
};

/* A window over the spatial axes of convolution, deconvolution or pooling. The
 * arrays have the length of oneDNN's own. */
struct byi_dnnl_window {
    uint32_t n; /* spatial axes: 1 .. 3 */
    int64_t kernel[BYI_MAX_RANK];
    int64_t stride[BYI_MAX_RANK];
    int64_t dilation[BYI_MAX_RANK]; /* 1: dense */
    int64_t begin[BYI_MAX_RANK];
    int64_t end[BYI_MAX_RANK]; /* exact; negative values crop */
};

/* Data that a primitive gathers as it reads them: the channels of n sources
 * follow one another, and are multiplied by SCALE, (N or 1, C, 1...), then
 * SHIFT, (1, C, 1...), is added, unless they are absent; then ReLU. */
enum { BYI_MAX_GATHERED = 32 };
struct byi_dnnl_gather {
    uint32_t n; /* 0: the data are the argument SRC, else MULTI + index */
    int64_t channels[BYI_MAX_GATHERED];
    struct byi_desc scale, shift;
    bool relu;
};
/* dims (N, C, spatial...); weights (O, I, k...) or (G, O/G, I/G, k...), for
 * deconvolution too; bias (O) or absent */
struct byi_dnnl_conv {
    bool deconv;
    bool exact;  /* no algorithm that rounds more than a sum of products */
    bool banded; /* byoc's own kernel, which may run in bands with others */
    struct byi_dnnl_window window;
    struct byi_desc src, weights, bias, dst;
    struct byi_dnnl_gather gather; /* byoc's own kernels, windows of one tap */
};
/* (..., M, K) x (..., K, N), all of the same rank; bias (1, ..., N) or absent
 */
struct byi_dnnl_matmul {
    struct byi_desc src, weights, bias, dst;
};
/* softmax(SRC WEIGHTS, then posts) SRC1: (..., M, K) x (..., K, N) and (..., N,
 * D), all of the same rank; batch axes of 1 are repeated. Posts are binary, and
 * the last axis of their operands is dense. */
struct byi_dnnl_attention {
    struct byi_desc src, weights, src1, dst;
};
enum byi_pool_kind { BYI_POOL_MAX, BYI_POOL_AVG, BYI_POOL_AVG_PAD };
struct byi_dnnl_pool {
    enum byi_pool_kind kind;
    struct byi_dnnl_window window;
    struct byi_desc src, dst;
};
/* dst has src's layout */
struct byi_dnnl_softmax {
    bool log;
    uint32_t axis;
    struct byi_desc src;
};
struct byi_dnnl_eltwise {
    enum byi_elt alg;
    float alpha, beta;
    struct byi_desc src;
};
struct byi_dnnl_binary {
    enum byi_bin alg;
    struct byi_desc src, src1, dst;
};
enum byi_reduce_kind {
    BYI_REDUCE_SUM,
    BYI_REDUCE_MEAN,
    BYI_REDUCE_MAX,
    BYI_REDUCE_MIN
};
struct byi_dnnl_reduce {
    enum byi_reduce_kind kind;
    struct byi_desc src, dst; /* dst has 1 where reduced */
};
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
 * with `own`, computed from src */
struct byi_dnnl_batch_norm {
    float epsilon;
    bool own;
    struct byi_desc src;
};
struct byi_dnnl_lrn {
    int64_t size;
    float alpha, beta, k;
    struct byi_desc src;
};
struct byi_dnnl_prelu {
    struct byi_desc src, weights;
};
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
 * c, o; gru u, r, o; linear-before-reset gru has one more bias. */
enum byi_rnn_kind {
    BYI_RNN_PLAIN, /* tanh, relu, sigmoid */
    BYI_RNN_LSTM,
    BYI_RNN_GRU,
    BYI_RNN_GRU_LINEAR
};
struct byi_dnnl_rnn {
    enum byi_rnn_kind kind;
    enum byi_elt activation; /* PLAIN */
    bool both, reverse;
    struct byi_desc src, src_h, src_c, weights, recurrent, bias;
    struct byi_desc dst, dst_h, dst_c;
};

/* Elementwise on 8-bit integers that stand for (q - zero) scale, exactly:
 * dst is round(clamp(value / scale)) + zero. */
enum byi_qpoint_kind {
    BYI_QPOINT_QUANTIZE,   /* src is float32             */
    BYI_QPOINT_DEQUANTIZE, /* dst is float32             */
    BYI_QPOINT_ADD,        /* src + src1 of equal layout */
    BYI_QPOINT_MUL
};
struct byi_dnnl_qpoint {
    enum byi_qpoint_kind kind;
    struct byi_desc src, src1, dst;
    int64_t src_zero, src1_zero, zero;
    float src_scale, src1_scale, scale;
    float low, high; /* of value / scale */
};
/* A convolution or product of 8-bit integers, which byoc's own kernels compute
 * exactly (kernels/i8.h): src u8 or s8 with a zero point, dims (N, C,
 * spatial...); weights s8 (O, I/G, k...); bias (O) int32 and scale (O) float32;
 * dst float32, sum scale, or u8 or s8: round(clamp(sum scale)) + zero; or, if
 * `more` is a sum, that of these bytes, its src without a zero point, and src1.
 */
struct byi_dnnl_qconv {
    struct byi_dnnl_window window; /* n is 0 for a product */
    struct byi_desc src, weights, dst;
    int64_t src_zero, zero;
    float low, high;             /* before the zero point is added */
    struct byi_dnnl_qpoint more; /* BYI_QPOINT_ADD, or all zero: none */
};

/* --- memory -------------------------------------------------------------- */

enum byi_buf_kind {
    BYI_BUF_INPUT,  /* the region's input `index`, lent for a run  */
    BYI_BUF_OUTPUT, /* the region's output `index`, lent for a run */
    BYI_BUF_CONST,  /* constant `index` of the artifact, mapped    */
    BYI_BUF_MADE,   /* constant `index` computed at load           */
    BYI_BUF_TEMP    /* in the state's memory; index is 0           */
};

struct byi_place {
    enum byi_buf_kind kind;
    uint32_t index;
    uint64_t offset; /* bytes */
};

/* Constants computed at load from others (CONST or MADE). */

/* Weights in the layout that argument `arg` of a step's primitive wants; no
 * copy if they have it already. */
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
/* Rows of floats as int8 times a scale per row; `turned`: the floats are
 * (columns, rows). Makes three constants for qconv: the integers, (rows,
 * columns); the scales times `scale`, divided by `result` unless it is 0; and
 * the bias in units of the sums, int32. */
struct byi_integers {
    struct byi_place from;
    int64_t rows, columns;
    bool turned;
    float scale, result;
    int64_t n_bias; /* 0: none; 1 or rows floats */
    struct byi_place bias;
};
/* A recurrent layer's gates in oneDNN's order: gate i is the model's order[i].
 * Weights have `size` floats per gate. Biases have `size` floats, input and
 * recurrent bias added up, or zeros without a bias; `apart`: those of the last
 * gate stay separate. */
struct byi_gates {
    struct byi_place from;
    bool none; /* biases: the model has none */
    uint32_t directions, gates;
    uint8_t order[4];
    bool apart;
    int64_t size;
};

/* --- steps --------------------------------------------------------------- */

struct byi_dnnl_slot {
    int arg; /* enum byi_arg */
    struct byi_place at;
};

/* One primitive, the index-th to be created, and its arguments. */
struct byi_dnnl_step {
    uint32_t index;
    /* Its convolution alone reads the result of the step before, and runs with
     * it in bands; the first of such steps is named after all. */
    bool joins;
    const char *name;    /* "nn.conv2d+add+nn.relu", "reorder" */
    const char *sources; /* names of the model, comma between  */
    uint32_t n_slots;
    const struct byi_dnnl_slot *slots;
};

/* --- a region as C ------------------------------------------------------- */

struct byi_load; /* a region being loaded          */
struct byi_exec; /* a region with memory, runnable */

/* The functions that a unit calls: `build` calls all but `run`, and `run` calls
 * only that one.
 * Each function returns 0, or a value that its caller must return unchanged;
 * the loader or executor keeps the error. `posts` may be NULL. */
#define BYI_OPERATOR(name)                                                     \
    int (*name)(struct byi_load * load, const struct byi_dnnl_##name *p,       \
                const struct byi_posts *posts)
#define BYI_MAKER(name, spec)                                                  \
    int (*name)(struct byi_load * load, const struct spec *p)
struct byi_operators {
    /* make the primitive of the next step */
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
    BYI_OPERATOR(qpoint);
    /* make the next constant; `integers` makes three */
    BYI_MAKER(pack, byi_pack);
    BYI_MAKER(copy, byi_copy);
    BYI_MAKER(fill, byi_fill);
    BYI_MAKER(integers, byi_integers);
    BYI_MAKER(gate_weights, byi_gates);
    BYI_MAKER(gate_biases, byi_gates);
    /* constant `made` was needed only to make others */
    int (*drop)(struct byi_load *load, uint32_t made);
    /* run a step, which lives as long as the unit */
    int (*run)(struct byi_exec *exec, const struct byi_dnnl_step *step);
};

/* The constant that a unit's only exported function returns. */
struct byi_dnnl_unit {
    uint32_t size; /* sizeof(struct byi_dnnl_unit) */
    uint32_t id;   /* hash of these declarations: byi_dn_unit_id */
    const char *name;
    uint32_t n_steps, n_made;
    uint32_t n_inputs, n_outputs, n_consts;
    const uint64_t *input_bytes, *output_bytes, *const_bytes;
    uint64_t temp_bytes; /* memory that a run needs */
    /* Make all primitives and constants; called once, at load. */
    int (*build)(const struct byi_operators *dn, struct byi_load *load);
    /* Run all steps in order; called for each run, and once before, to list the
     * steps. */
    int (*run)(const struct byi_operators *dn, struct byi_exec *exec);
};

#endif
