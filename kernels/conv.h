/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/conv.h: float32 convolutions of one or two spatial axes and products
 * with constant weights, channels last. A plan chooses the algorithm; weights
 * are packed once for it; then any number of runs may go on at once, each with
 * scratch memory of its own. All memory is the caller's; nothing here allocates
 * or fails.
 */
#ifndef BYI_F32_CONV_H
#define BYI_F32_CONV_H

#include "kernels/f32.h"

enum byi_f32_algorithm {
    BYI_F32_NONE,       /* no kernel here is known to be fast */
    BYI_F32_DIRECT,     /* indirect convolution, or a product */
    BYI_F32_WINOGRAD_2, /* F(2 x 2, 3 x 3)                    */
    BYI_F32_WINOGRAD_4, /* F(4 x 4, 3 x 3)                    */
    BYI_F32_DEPTHWISE,
    BYI_F32_TRANSPOSED, /* of a transposed convolution */
    BYI_F32_ALGORITHMS
};

enum {
    BYI_F32_POSTS = 8,   /* operations of an epilogue, at most */
    BYI_F32_TAPS = 128,  /* of a window, at most               */
    BYI_F32_PIECE = 4096 /* channels of a window of several taps, at most */
};

/* One operation of an epilogue, on the whole result in place. The operand's
 * element for position r and channel c is
 * operand[r / repeat * row + c * column]. */
struct byi_f32_post {
    byi_f32_unary_fn *unary;   /* or */
    byi_f32_binary_fn *binary; /* of the result and operand `operand` */
    uint32_t operand;
    int64_t row, column, repeat;
    float p0, p1;
};

/* A convolution: x (images, in[0], in[1], channels), y (images, out[0], out[1],
 * outputs), both dense. A product of M x K by K x N has M images of one
 * position, K channels and N outputs. */
struct byi_f32_conv {
    int64_t images, in[2], out[2];
    int64_t channels, outputs;
    bool
        depthwise; /* output c depends on channel c alone; outputs = channels */
    bool transposed; /* the window slides over y: `pad` is of y */
    int64_t size[2], stride[2], dilation[2], pad[2];
    bool bias;
    uint32_t n_posts;
    struct byi_f32_post posts[BYI_F32_POSTS];
    /* byi_f32_conv_plan() sets these */
    const struct byi_f32_kernels *kernels;
    enum byi_f32_algorithm algorithm;
    int64_t cache; /* bytes of a core's second cache */
    /* the part of the epilogue that the kernels apply in registers: a sum with
     * a matrix laid out as y, then a clamp; the rest begins at post `next` */
    bool adds, clamps;
    uint32_t next;
};

/* Arguments of a run. operands[i]: of the posts, by their `operand`. */
struct byi_f32_conv_run {
    const struct byi_f32_conv *conv;
    const float *x, *weights, *bias;
    const float *operands[BYI_F32_POSTS];
    float *y;
    void *scratch;
    int threads; /* the scratch was sized for so many at least */
};

/* Choose the fastest algorithm for these shapes on this machine. `exact`: none
 * that rounds more than a sum of products does. */
void byi_f32_conv_plan(struct byi_f32_conv *conv, bool exact);
/* "winograd_4x4:avx2" */
const char *byi_f32_conv_name(const struct byi_f32_conv *conv);
/* Bytes of the packed weights. */
uint64_t byi_f32_conv_packed(const struct byi_f32_conv *conv);
/* Pack weights whose element for output o, channel c and tap (i, j) is
 * from[o * strides[0] + c * strides[1] + i * strides[2] + j * strides[3]]. */
void byi_f32_conv_pack(const struct byi_f32_conv *conv, const float *from,
                       const int64_t strides[4], float *to);
/* Would `a` and `b` pack the same weights to the same bytes? */
bool byi_f32_conv_packs_alike(const struct byi_f32_conv *a,
                              const struct byi_f32_conv *b);
uint64_t byi_f32_conv_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_conv_run(const struct byi_f32_conv_run *run);

/* --- between the files ---------------------------------------------------- */

/* epilogue.c */
struct byi_f32_epilogue {
    const float *bias; /* of the first column, padded if it must be */
    const float *add;
    float low, high;
};
/* The epilogue of position `row`, column `column` on. `room`: BYI_F32_COLUMNS
 * floats, for a bias that ends within the tile. */
struct byi_f32_epilogue byi_f32_epilogue_at(const struct byi_f32_conv_run *run,
                                            int64_t row, int64_t column,
                                            int64_t columns, float *room);
/* Apply the posts from `next` on to a part of the result. */
void byi_f32_posts_run(const struct byi_f32_conv_run *run, uint32_t next,
                       int64_t row, int64_t rows, int64_t column,
                       int64_t columns);

/* direct.c */
/* Pointers to the pieces of rows [row, row + n) of a run: to[tap *
 * BYI_F32_ROWS + i] is of row `row` + i. */
void byi_f32_rows_find(const struct byi_f32_conv_run *run, int64_t row,
                       int64_t n, const float **to);

/* A piece of padding. */
extern const float byi_f32_zeros[BYI_F32_PIECE];

/* direct.c, depthwise.c, transposed.c, winograd.c */
void byi_f32_depthwise_run(const struct byi_f32_conv_run *run);
void byi_f32_transposed_pack(const struct byi_f32_conv *conv, const float *from,
                             const int64_t strides[4], float *to);
void byi_f32_transposed_run(const struct byi_f32_conv_run *run);
uint64_t byi_f32_direct_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_direct_run(const struct byi_f32_conv_run *run);
uint64_t byi_f32_winograd_packed(const struct byi_f32_conv *conv);
void byi_f32_winograd_pack(const struct byi_f32_conv *conv, const float *from,
                           const int64_t strides[4], float *to);
uint64_t byi_f32_winograd_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_winograd_run(const struct byi_f32_conv_run *run);

/* Make `t`, tile number i of n that share their weights, prefetch its part of
 * the weights at `ahead`, which the next tiles read. */
void byi_f32_fetch(struct byi_f32_tile *t, int64_t i, int64_t n,
                   const float *ahead);

#endif
