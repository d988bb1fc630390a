/* runtime_dnnl/layer.h: oneDNN 2.6 and 3.x behind one face. Only layer*.c and
 * prim_*.c include dnnl.h; enumerators and signatures differ between the
 * majors, so which one it is is settled when they are compiled.
 *
 * Tensors are described by value (struct byi_desc); the only layouts this
 * header cannot spell are the ones oneDNN picks for packed weights, and those
 * stay inside a primitive. Creators first ask the guards (guards.c) about
 * descriptors that are known to crash or to give wrong results.
 */
#ifndef BYI_DNNL_LAYER_H
#define BYI_DNNL_LAYER_H

#include "core/base.h"

enum {
    BYI_MAX_POSTS = 32,
    BYI_DNNL_SLACK = 64 /* bytes after a buffer that 2.6 may read */
};

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

/* --- layer.c: the library ------------------------------------------------ */

/* The engine; one per process, shared by all threads. NULL and a message in
 * err when the library cannot serve: another major than compiled for, no CPU
 * engine. Never freed: oneDNN's own globals live as long. */
struct byi_dnnl;
const struct byi_dnnl *byi_dnnl_open(struct byoc_error *err);
/* "3.12.1", and "oneDNN 3.12 avx512_core_bf16", what the choices made for an
 * artifact rest on; empty before the first byi_dnnl_open. */
const char *byi_dnnl_version(void);
const char *byi_dnnl_compat(void);
const char *byi_dnnl_isa(void); /* "avx512_core_bf16" */
int byi_dnnl_major(void);       /* of the headers: 2 or 3 */
/* Does oneDNN have this element type for data that is moved or cast? */
bool byi_dnnl_has_dtype(enum byoc_dtype dtype);

/* --- post-ops ------------------------------------------------------------ */

/* Elementwise functions, in the sense of this project; a version that lacks
 * one refuses it. */
enum byi_elt {
    BYI_ELT_ABS,
    BYI_ELT_CLIP, /* min(max(x, alpha), beta)  */
    BYI_ELT_ELU,  /* alpha                     */
    BYI_ELT_EXP,
    BYI_ELT_GELU_ERF,
    BYI_ELT_GELU_TANH,
    BYI_ELT_HARDSIGMOID, /* clip(alpha x + beta, 0, 1): 3.x only */
    BYI_ELT_HARDSWISH,   /* x clip(x/6 + 1/2, 0, 1)   */
    BYI_ELT_LINEAR,      /* alpha x + beta            */
    BYI_ELT_MISH,
    BYI_ELT_POW,  /* alpha x^beta              */
    BYI_ELT_RELU, /* x < 0 ? alpha x : x       */
    BYI_ELT_ROUND,
    BYI_ELT_SIGMOID,
    BYI_ELT_SOFTPLUS,
    BYI_ELT_SQRT,
    BYI_ELT_SQUARE,
    BYI_ELT_SWISH, /* x sigmoid(alpha x)        */
    BYI_ELT_TANH,
    BYI_N_ELTS
};

enum byi_bin {
    BYI_BIN_ADD,
    BYI_BIN_SUB,
    BYI_BIN_MUL,
    BYI_BIN_DIV,
    BYI_BIN_MAX,
    BYI_BIN_MIN,
    BYI_N_BINS
};

enum byi_post_kind {
    BYI_POST_SUM,
    BYI_POST_ELT,
    BYI_POST_BIN,
    BYI_POST_PRELU /* one a primitive */
};

struct byi_post {
    enum byi_post_kind kind;
    int alg; /* enum byi_elt or byi_bin */
    float alpha, beta;
    struct byi_desc desc; /* BIN: the other operand; PRELU: the slopes, along
                             one axis at most */
};

struct byi_posts {
    uint32_t n;
    struct byi_post at[BYI_MAX_POSTS];
};

/* --- primitives ---------------------------------------------------------- */

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
    BYI_ARG_SRC_H, /* of a recurrent layer: states before it, ... */
    BYI_ARG_SRC_C,
    BYI_ARG_RECURRENT,
    BYI_ARG_DST_H, /* ... and after it */
    BYI_ARG_DST_C,
    BYI_ARG_POST = 0x100,  /* + index of the post-op: its other operand */
    BYI_ARG_SLOPE = 0x200, /* + index of the post-op: its slopes        */
    BYI_ARG_MULTI = 0x1000 /* + index: concatenation's sources          */
};

/* A window over the spatial axes: convolution, deconvolution, pooling. The
 * arrays are as long as oneDNN declares its own. */
struct byi_window {
    uint32_t n; /* spatial axes: 1 .. 3 */
    int64_t kernel[BYI_MAX_RANK];
    int64_t stride[BYI_MAX_RANK];
    int64_t dilation[BYI_MAX_RANK]; /* 1: dense */
    int64_t begin[BYI_MAX_RANK];
    int64_t end[BYI_MAX_RANK]; /* exact: may be negative, which crops */
};

/* dims (N, C, spatial...); weights (O, I, k...) or (G, O/G, I/G, k...), also
 * of a deconvolution; bias (O) or absent. */
struct byi_conv {
    bool deconv;
    struct byi_window window;
    struct byi_desc src, weights, bias, dst;
};
/* (..., M, K) x (..., K, N), all of one rank; bias (1, ..., N) or absent. */
struct byi_matmul {
    struct byi_desc src, weights, bias, dst;
};
enum byi_pool_kind { BYI_POOL_MAX, BYI_POOL_AVG, BYI_POOL_AVG_PAD };
struct byi_pool {
    enum byi_pool_kind kind;
    struct byi_window window;
    struct byi_desc src, dst;
};
/* dst has src's layout */
struct byi_softmax {
    bool log;
    uint32_t axis;
    struct byi_desc src;
};
struct byi_eltwise {
    enum byi_elt alg;
    float alpha, beta;
    struct byi_desc src;
};
struct byi_binary {
    enum byi_bin alg;
    struct byi_desc src, src1, dst;
};
enum byi_reduce_kind {
    BYI_REDUCE_SUM,
    BYI_REDUCE_MEAN,
    BYI_REDUCE_MAX,
    BYI_REDUCE_MIN,
    BYI_REDUCE_PROD
};
struct byi_reduce {
    enum byi_reduce_kind kind;
    struct byi_desc src, dst; /* dst has 1 where reduced */
};
struct byi_resample {
    bool linear;
    struct byi_desc src, dst;
};
/* over the last axis; scale and shift are vectors of its length */
struct byi_layer_norm {
    float epsilon;
    bool scale, shift;
    struct byi_desc src;
};
/* over axis 1; scale and shift per channel; mean and variance are given, or,
 * with `own`, those of src */
struct byi_batch_norm {
    float epsilon;
    bool own;
    struct byi_desc src;
};
struct byi_lrn {
    int64_t size;
    float alpha, beta, k;
    struct byi_desc src;
};
struct byi_prelu {
    struct byi_desc src, weights;
};
struct byi_concat {
    uint32_t axis;
    uint32_t n;
    const struct byi_desc *src;
    struct byi_desc dst;
};
struct byi_reorder {
    struct byi_desc src, dst;
};
/* One recurrent layer over a whole sequence: src (T, N, I), weights (1, D, I,
 * G, H), recurrent (1, D, H, G, H), bias (1, D, G, H) or absent, states (1, D,
 * N, H) or all absent, dst (T, N, D H). Gates as oneDNN has them: lstm i, f, c,
 * o; gru u, r, o, and linear before reset one bias more. */
enum byi_rnn_kind {
    BYI_RNN_PLAIN, /* tanh, relu, sigmoid */
    BYI_RNN_LSTM,
    BYI_RNN_GRU,
    BYI_RNN_GRU_LINEAR
};
struct byi_rnn {
    enum byi_rnn_kind kind;
    enum byi_elt activation; /* PLAIN */
    bool both, reverse;
    struct byi_desc src, src_h, src_c, weights, recurrent, bias;
    struct byi_desc dst, dst_h, dst_c;
};

struct byi_prim;

/* Make a primitive's descriptor; no code is generated yet. On BYOC_EUNSUPPORTED
 * err says what is not to be had. Any thread. */
#define BYI_CREATOR(name)                                                      \
    enum byoc_status byi_##name##_new(                                         \
        const struct byi_dnnl *lib, const struct byi_##name *p,                \
        const struct byi_posts *posts, struct byi_prim **prim,                 \
        struct byoc_error *err)
BYI_CREATOR(conv);
BYI_CREATOR(matmul);
BYI_CREATOR(pool);
BYI_CREATOR(softmax);
BYI_CREATOR(eltwise);
BYI_CREATOR(binary);
BYI_CREATOR(reduce);
BYI_CREATOR(resample);
BYI_CREATOR(layer_norm);
BYI_CREATOR(batch_norm);
BYI_CREATOR(lrn);
BYI_CREATOR(prelu);
BYI_CREATOR(concat);
BYI_CREATOR(reorder);
BYI_CREATOR(rnn);

/* Generate the code (about 0.3 ms; microseconds when oneDNN has it cached). */
enum byoc_status byi_prim_build(struct byi_prim *prim, struct byoc_error *err);
/* Let the code go again: what is left answers questions. */
void byi_prim_unbuild(struct byi_prim *prim);
void byi_prim_free(struct byi_prim **prim);
/* prim_layout.c: the layouts that the primitive picks where p leaves them to
 * it, as names ("NCHW16c", "OIHW16i16o") of less than n characters; "" where
 * there is no such name, as for weights in groups, or only a reference
 * implementation. */
enum byoc_status byi_conv_layouts(const struct byi_dnnl *lib,
                                  const struct byi_conv *p, char *data,
                                  char *kernel, size_t n,
                                  struct byoc_error *err);
/* The implementation chosen: "brgconv:avx512_core". */
const char *byi_prim_impl(const struct byi_prim *prim);
/* Is it one of the reference implementations, far slower than the rest? */
bool byi_prim_is_ref(const struct byi_prim *prim);
/* Results of more elements than this are never left to one. */
enum { BYI_REF_ELEMENTS = 4096 };
uint64_t byi_prim_scratch(const struct byi_prim *prim);
/* Bytes of an argument as the primitive wants it. */
uint64_t byi_prim_bytes(const struct byi_prim *prim, int arg);
/* Does it want the argument exactly so? */
bool byi_prim_wants(const struct byi_prim *prim, int arg,
                    const struct byi_desc *desc);
/* Do two primitives want these arguments in the same layout? */
bool byi_prim_same(const struct byi_prim *a, int arg_a,
                   const struct byi_prim *b, int arg_b);
/* The reorder from `src` to what `prim` wants as `arg`. */
enum byoc_status byi_pack_new(const struct byi_dnnl *lib,
                              const struct byi_desc *src,
                              const struct byi_prim *prim, int arg,
                              struct byi_prim **reorder,
                              struct byoc_error *err);

/* --- calls: a primitive with memory, ready to run ------------------------ */

struct byi_bound;
/* data may be NULL, to be set later. scratch: of byi_prim_scratch bytes,
 * 64-byte aligned, used by one call at a time. The primitive must be built
 * and outlive the call. */
enum byoc_status byi_bound_new(const struct byi_dnnl *lib,
                               const struct byi_prim *prim, uint32_t n,
                               const int *args, void *const *data,
                               void *scratch, struct byi_bound **call,
                               struct byoc_error *err);
void byi_bound_set(struct byi_bound *call, uint32_t slot, void *data);
/* Run on the calling thread's OpenMP team; returns when it is done. */
enum byoc_status byi_bound_run(const struct byi_bound *call,
                               struct byoc_error *err);
void byi_bound_free(struct byi_bound **call);

/* --- guards.c: descriptors oneDNN gets wrong ----------------------------- */

/* NULL when fine, else the reason. `major`, `posts`: as for the creators. */
const char *byi_guard_desc(const struct byi_desc *desc);
const char *byi_guard_posts(int major, const struct byi_posts *posts);
const char *byi_guard_conv(int major, const struct byi_conv *p,
                           const struct byi_posts *posts);
const char *byi_guard_matmul(int major, const struct byi_matmul *p,
                             const struct byi_posts *posts);
const char *byi_guard_binary(int major, const struct byi_binary *p,
                             const struct byi_posts *posts);
const char *byi_guard_elt_only(const struct byi_posts *posts);
const char *byi_guard_pool(int major, const struct byi_pool *p);
/* After the choice: an implementation that is wrong for these post-ops. */
const char *byi_guard_impl(int major, const struct byi_conv *p,
                           const struct byi_posts *posts, const char *impl);

#endif
