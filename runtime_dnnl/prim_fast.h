/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_fast.h: declares the primitives that byoc's own kernels
 * run. */
#ifndef BYI_PRIM_FAST_H
#define BYI_PRIM_FAST_H

#include "kernels/attention.h"
#include "kernels/bands.h"
#include "kernels/i8.h"
#include "kernels/moves.h"
#include "kernels/recurrent.h"
#include "runtime_dnnl/build.h"

struct byi_dn_fast;
struct byi_dn_fast_slot;

/* The functions of one kind of primitive. packed() returns the bytes of the
 * packed weights for argument `arg`; pack() packs the weights `from`, which
 * `src` describes, to `to`. packs_alike() returns whether two primitives of
 * this kind use the same packed weights. */
struct byi_dn_fast_kind {
    const char *(*name)(const struct byi_dn_fast *fast);
    /* NULL: the primitive needs no scratch */
    uint64_t (*scratch)(const struct byi_dn_fast *fast);
    /* NULL: the primitive packs no weights */
    uint64_t (*packed)(const struct byi_dn_fast *fast, int arg);
    void (*pack)(const struct byi_dn_fast *fast, int arg,
                 const struct byi_desc *src, const void *from, void *to);
    bool (*packs_alike)(const struct byi_dn_fast *a,
                        const struct byi_dn_fast *b);
    /* whether the primitive reads weights with this descriptor without packing
     * them; NULL: it reads none */
    bool (*reads)(const struct byi_dn_fast *fast, int arg,
                  const struct byi_desc *desc);
    void (*run)(const struct byi_dn_fast *fast, uint32_t n,
                const struct byi_dn_fast_slot *slots, void *scratch,
                int threads);
};

/* The largest number of sources of a concatenation. */
enum { BYI_DN_SOURCES = 2 * BYI_MAX_POSTS };

/* prim_product.c. The strides of matrices with batch axes; those of axes of
 * size 1 are 0. */
struct byi_dn_matrices {
    int64_t batch[BYI_MAX_RANK], row, column;
};

/* An operation on the result of a product: its bias or a post-op. */
struct byi_dn_product_op {
    byi_f32_unary_fn *unary; /* NULL if it is binary */
    byi_f32_binary_fn *binary;
    float p0, p1; /* parameters of `unary` */
    int arg;      /* of the operand, enum byi_arg */
    struct byi_dn_matrices operand;
};

/* The bias and all post-ops. */
enum { BYI_DN_PRODUCT_OPS = 1 + BYI_MAX_POSTS };

/* C (..., m, n) = A (..., m, k) B (..., k, n), then the operations. */
struct byi_dn_product {
    uint32_t n_axes; /* batch axes */
    int64_t batch[BYI_MAX_RANK];
    int64_t m, n, k, ldc;
    struct byi_dn_matrices a, b, c;
    struct byi_desc weights; /* B */
    uint32_t n_ops;
    struct byi_dn_product_op ops[BYI_DN_PRODUCT_OPS];
};

/* A primitive that byoc's own kernels run, with the plan of its kernel. */
struct byi_dn_fast {
    const struct byi_dn_fast_kind *kind;
    union { /* depends on `kind` */
        struct byi_f32_recurrent recurrent;
        struct {
            struct byi_f32_conv conv;
            /* the first post-op adds to dst. False for elementwise operators
             * (prim_narrow.c): they are the epilogue of `conv`, which only
             * describes their (images, outputs) elements. */
            bool sums;
            uint32_t n_gathered;
            int64_t source_channels[BYI_MAX_GATHERED];
        };
        struct { /* prim_i8.c */
            struct byi_i8_conv i8;
            int64_t src_zero, zero;
            float low, high;
            struct byi_i8_summand summand;
            struct byi_i8_activation activation;
        };
        struct byi_dnnl_qelementwise qelementwise;
        struct byi_f32_attention attention; /* prim_attention.c */
        struct byi_dn_product product;      /* prim_product.c */
        struct byi_f32_pool pool;           /* prim_move.c */
        struct byi_f32_move move;
        struct { /* prim_norm.c */
            int64_t rows, columns;
            bool log;
        } softmax;
        /* prim_norm.c: a reduction of (outer, n, inner) to (outer, inner) */
        struct {
            int64_t outer, n, inner;
            bool mean;
            enum byi_f32_type type; /* of the data; sums are float32 */
        } sum;
        struct { /* prim_move.c: a concatenation of rows */
            uint32_t n_sources;
            bool interleaves; /* the elements of the sources alternate */
            uint32_t element; /* bytes of an element */
            int64_t outer;    /* rows */
            /* bytes of each source's row, and from one row to the next */
            int64_t length[BYI_DN_SOURCES], pitch[BYI_DN_SOURCES];
        };
    };
    /* if not 0, the primitive packs weights for argument `packs` (enum
     * byi_arg), which `src` describes */
    int packs;
    struct byi_desc src;
    int threads; /* number of threads that a run may use */
};

/* An argument of a call. */
struct byi_dn_fast_slot {
    int arg; /* enum byi_arg */
    void *data;
};

/* The data of an argument of a call, or NULL. */
void *byi_dn_fast_find(uint32_t n, const struct byi_dn_fast_slot *slots,
                       int arg);

/* The kernels' function of a binary post-op. */
enum byi_f32_binary byi_dn_fast_binary(const struct byi_post *post);

/* Set the function and the parameters of *to, which compute the ELT post-op
 * `first`. Returns the number of post-ops that they compute, 1 or 2, or 0 if
 * the kernels have no such function. */
uint32_t byi_dn_fast_unary(const struct byi_posts *posts, uint32_t first,
                           struct byi_f32_epilogue_op *to);

/* Set the epilogue of fast->conv from the post-ops; false if the kernels lack
 * one of them. `dst` is channels-last, and describes the result. */
bool byi_dn_fast_posts(const struct byi_posts *posts,
                       const struct byi_desc *dst, struct byi_dn_fast *fast);

/* Whether the tensor is dense and its channel, axis 1, is last in memory. */
bool byi_dn_is_dense_last(const struct byi_desc *desc, enum byoc_dtype dtype);

/* Describe the primitive in *fast; false if oneDNN should run it. */
bool byi_dn_fast_conv(const struct byi_dnnl_conv *p,
                      const struct byi_posts *posts, struct byi_dn_fast *fast);
bool byi_dn_fast_matmul(const struct byi_dnnl_matmul *p,
                        const struct byi_posts *posts,
                        struct byi_dn_fast *fast);
/* Like byi_dn_fast_conv(), but also if oneDNN is faster. */
bool byi_dn_own_conv(const struct byi_dnnl_conv *p,
                     const struct byi_posts *posts, struct byi_dn_fast *fast);
/* prim_product.c. A product of float32 matrices, also of weights that are not
 * constant, even if oneDNN is faster. */
bool byi_dn_own_product(const struct byi_dnnl_matmul *p,
                        const struct byi_posts *posts,
                        struct byi_dn_fast *fast);
/* prim_norm.c. A sum or mean of (outer, n) or (outer, n, inner) over n, without
 * post-ops. */
bool byi_dn_fast_reduce(const struct byi_dnnl_reduce *p,
                        struct byi_dn_fast *fast);
/* prim_narrow.c. The operator `first`, an ELT or BIN, on float16 or bfloat16
 * data, then the post-ops. */
bool byi_dn_fast_elementwise(const struct byi_post *first,
                             const struct byi_desc *src,
                             const struct byi_posts *posts,
                             const struct byi_desc *dst,
                             struct byi_dn_fast *fast);
/* prim_fast.c. A recurrent layer: an LSTM, or a GRU with linear-before-reset.
 */
bool byi_dn_fast_rnn(const struct byi_dnnl_rnn *p, struct byi_dn_fast *fast);
/* prim_move.c. Pools of float32, float16, bfloat16 and 8-bit data. */
bool byi_dn_fast_pool(const struct byi_dnnl_pool *p,
                      const struct byi_posts *posts, struct byi_dn_fast *fast);
/* The number of elements of a row of source i. A row is contiguous in the
 * concatenation unless the elements of two or three sources alternate. */
int64_t byi_dn_concat_row(const struct byi_dnnl_concat *p, uint32_t i);
/* Elements from one row of `src` to the next. 0 if its rows of `row` elements
 * are not evenly spaced in the order of the rows of `like`, which is dense. */
int64_t byi_dn_row_pitch(const struct byi_desc *src,
                         const struct byi_desc *like, int64_t row);
/* prim_move.c. Concatenations of evenly spaced rows. */
bool byi_dn_fast_concat(const struct byi_dnnl_concat *p,
                        struct byi_dn_fast *fast);
/* prim_move.c. Copies of float16 and bfloat16 data, and transpositions of
 * images to channels last: of float32, and of up to four channels of bytes. */
bool byi_dn_fast_reorder(const struct byi_dnnl_reorder *p,
                         const struct byi_posts *posts,
                         struct byi_dn_fast *fast);
/* Describe the primitive that packs `src` for argument `arg` of `user`. */
void byi_dn_fast_pack(const struct byi_dn_fast *user, int arg,
                      const struct byi_desc *src, struct byi_dn_fast *pack);

/* Describe n convolutions, each of which reads the result of the one before;
 * false if they should not run in bands. */
bool byi_dn_fast_bands(uint32_t n, const struct byi_dn_fast *const *fast,
                       struct byi_f32_bands *bands);
/* Set *run to the arguments of a convolution, without scratch and threads. */
void byi_dn_fast_fill(const struct byi_dn_fast *fast, uint32_t n,
                      const struct byi_dn_fast_slot *slots,
                      struct byi_f32_conv_run *run);

/* Whether the primitive can use weights with this descriptor without packing
 * them. */
bool byi_dn_fast_needs(const struct byi_dn_fast *fast, int arg,
                       const struct byi_desc *desc);
/* The name of the implementation. */
const char *byi_dn_fast_impl(const struct byi_dn_fast *fast);
/* Bytes of scratch memory that a run needs. */
uint64_t byi_dn_fast_scratch(const struct byi_dn_fast *fast);
/* Bytes of the packed weights for argument `arg`. */
uint64_t byi_dn_fast_packed(const struct byi_dn_fast *fast, int arg);
/* Whether primitives `a` and `b` use, or make, the same packed weights for
 * their arguments arg_a and arg_b. */
bool byi_dn_fast_same(const struct byi_dn_fast *a, int arg_a,
                      const struct byi_dn_fast *b, int arg_b);
/* Run the primitive, or pack weights, with n arguments. */
void byi_dn_fast_run(const struct byi_dn_fast *fast, uint32_t n,
                     const struct byi_dn_fast_slot *slots, void *scratch);

#endif
