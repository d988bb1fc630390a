/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/conv.h: float32 convolutions of up to three spatial axes and products
 * with packed weights, channels last. A plan chooses the algorithm; weights
 * are packed once for it; then any number of runs may go on at once, each with
 * scratch memory of its own. All memory is the caller's; nothing here allocates
 * or fails.
 */
#ifndef BYI_F32_CONV_H
#define BYI_F32_CONV_H

#include "kernels/f32.h"

enum {
    BYI_F32_POSTS = 8,   /* operations of an epilogue, at most */
    BYI_F32_AXES = 3,    /* spatial axes; those in front may be 1 */
    BYI_F32_TAPS = 128,  /* pieces of rows that are found at once */
    BYI_F32_PIECE = 4096 /* elements of a piece of padding that is shared */
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

/* A convolution: x (images, in..., channels), y (images, out..., outputs), both
 * dense. A product of M x K by K x N has M images of one position, K channels
 * and N outputs. */
struct byi_f32_conv {
    int64_t images, in[BYI_F32_AXES], out[BYI_F32_AXES];
    int64_t channels, outputs, groups;
    bool transposed; /* the window slides over y: `pad` is of y */
    int64_t size[BYI_F32_AXES], stride[BYI_F32_AXES], dilation[BYI_F32_AXES];
    int64_t pad[BYI_F32_AXES];
    /* Of a product: the strides of its unpacked weights, as `output` and
     * `channel` of struct byi_f32_weights; 0 if they are not known. */
    int64_t weight_strides[2];
    bool bias;
    /* Rows are gathered from the run's sources, for a product or a convolution
     * of one tap that reads every position once. Element c of a row is
     * multiplied by scale[c], `scale_image` elements further for each image,
     * then shift[c] is added, if the run has them; then ReLU, if it
     * `rectifies`. `scales`: the run has one source and a scale, but no shift,
     * and ReLU is not applied. */
    bool gathers, rectifies, scales;
    int64_t scale_image;
    enum byi_f32_type type;        /* of x, y, bias and operands */
    enum byi_f32_type weight_type; /* of weights that are not packed */
    enum byi_f32_type x_type;      /* of x alone; strips.c sets it */
    uint32_t n_posts;
    struct byi_f32_post posts[BYI_F32_POSTS];
    /* byi_f32_conv_plan() sets these, the first unless it is set */
    const struct byi_f32_kernels *kernels;
    enum byi_f32_algorithm algorithm;
    /* Products that share no operands: one for each group or, if groups are
     * small, for some together, with weights of zero between them. */
    int64_t parts, run, columns; /* channels, outputs of a part */
    int64_t cache;               /* bytes of a core's second cache */
    /* the part of the epilogue that the kernels apply in registers: a sum with
     * a matrix laid out as y, then a clamp; the rest begins at post `next` */
    bool adds, clamps;
    uint32_t next;
};

/* A tensor of `channels` for each position, which follow those of the source
 * before. */
struct byi_f32_source {
    const float *x;
    int64_t channels;
};

/* Arguments of a run. operands[i]: of the posts, by their `operand`. Pointers
 * to float may point to narrow elements (see struct byi_f32_conv). The scratch
 * is aligned as pointers are. */
struct byi_f32_conv_run {
    const struct byi_f32_conv *conv;
    const float *x, *weights, *bias;
    const float *operands[BYI_F32_POSTS];
    const struct byi_f32_source *sources; /* in place of x, if it gathers */
    uint32_t n_sources;
    const float *scale, *shift;
    float *y;
    void *scratch;
    int threads;        /* the scratch was sized for so many at least */
    const float *zeros; /* byi_f32_conv_run() sets it: a piece of padding */
};

/* Weights: the element for output o and channel c of group g and tap (i, j, k)
 * is at[g * group + o * output + c * channel + i * tap[0] + j * tap[1] + ...].
 */
struct byi_f32_weights {
    const float *at;
    int64_t group, output, channel, tap[BYI_F32_AXES];
};

/* Bytes of a core's second-level cache. */
int64_t byi_f32_second_cache(void);
/* Choose the fastest algorithm for these shapes on this machine. `exact`: none
 * that rounds more than a sum of products does. */
void byi_f32_conv_plan(struct byi_f32_conv *conv, bool exact);
/* Is the planned algorithm known to be faster than oneDNN's? */
bool byi_f32_conv_pays(const struct byi_f32_conv *conv);
/* "winograd_4x4:avx2" */
const char *byi_f32_conv_name(const struct byi_f32_conv *conv);
/* Are unpacked weights read, by `weight_strides`? */
bool byi_f32_conv_reads_in_place(const struct byi_f32_conv *conv);
/* Bytes of the packed weights. */
uint64_t byi_f32_conv_packed(const struct byi_f32_conv *conv);
void byi_f32_conv_pack(const struct byi_f32_conv *conv,
                       const struct byi_f32_weights *weights, float *to,
                       int threads);
/* Would `a` and `b` pack the same weights to the same bytes? */
bool byi_f32_conv_packs_alike(const struct byi_f32_conv *a,
                              const struct byi_f32_conv *b);
/* Bytes of scratch of a run with at most so many threads. Those of a product
 * with two rows are enough for any number of rows. */
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

static inline int64_t byi_f32_product_of(const int64_t n[BYI_F32_AXES])
{
    return n[0] * n[1] * n[2];
}

/* Does output c depend on channel c alone? */
static inline bool byi_f32_is_depthwise(const struct byi_f32_conv *conv)
{
    return conv->groups > 1 && conv->groups == conv->channels &&
           conv->groups == conv->outputs;
}

/* The element `i` of x from `from` on. */
static inline const float *byi_f32_element(const struct byi_f32_conv *conv,
                                           const float *from, int64_t i)
{
    const int64_t size = conv->x_type ? sizeof(uint16_t) : sizeof(float);
    return (const float *)(const void *)((const char *)from + i * size);
}

/* direct.c */
/* Run a tile of which y has `columns`, of the last panel maybe a part only. */
void byi_f32_tile_run(const struct byi_f32_kernels *kernels,
                      struct byi_f32_tile *t, int rows, int64_t columns);
/* Bytes of the pointers of a thread, for `pieces` of a row. */
uint64_t byi_f32_pointers(int64_t pieces);

/* conv.c. Threads, at most `threads`, that pay. */
int byi_f32_conv_team(const struct byi_f32_conv *conv, int threads);

/* strips.c: lines of images, along axis 1, and strips of them. Can they be
 * computed separately? */
bool byi_f32_has_lines(const struct byi_f32_conv *conv);
/* Lines of x that `high` lines of y read, at most. */
int64_t byi_f32_lines_read(const struct byi_f32_conv *conv, int64_t high);
/* *part: the convolution of lines [first, first + high) of an image of y alone.
 * Returns the first of the lines of x that it reads, part->in[1] in all. */
int64_t byi_f32_cut_lines(const struct byi_f32_conv *conv, int64_t first,
                          int64_t high, struct byi_f32_conv *part);
/* If x and y are narrow. */
uint64_t byi_f32_strips_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_strips_run(const struct byi_f32_conv_run *run);

/* tiles.c: convolutions and products of bfloat16 on AMX's tiles, if x is narrow
 * and y is not */
bool byi_f32_tiles_suit(const struct byi_f32_conv *conv);
uint64_t byi_f32_tiles_packed(const struct byi_f32_conv *conv);
void byi_f32_tiles_pack(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_tiles_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_tiles_run(const struct byi_f32_conv_run *run);

/* direct.c, depthwise.c, transposed.c, vector.c, winograd.c; offsets and sizes
 * of packed weights are in floats */
int64_t byi_f32_direct_floats(const struct byi_f32_conv *conv);
/* Pack one tap, `from`, of all outputs of a group to panels of `panel` floats,
 * from column `first` on. */
void byi_f32_pack_tap(const struct byi_f32_conv *conv,
                      const struct byi_f32_weights *weights, const float *from,
                      int64_t panel, int64_t first, float *to);
void byi_f32_depthwise_run(const struct byi_f32_conv_run *run);
void byi_f32_vector_run(const struct byi_f32_conv_run *run);
void byi_f32_transposed_pack(const struct byi_f32_conv *conv,
                             const struct byi_f32_weights *weights, float *to);
void byi_f32_transposed_run(const struct byi_f32_conv_run *run);
uint64_t byi_f32_direct_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_direct_run(const struct byi_f32_conv_run *run);
int64_t byi_f32_winograd_floats(const struct byi_f32_conv *conv);
void byi_f32_winograd_pack(const struct byi_f32_conv *conv,
                           const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_winograd_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_winograd_run(const struct byi_f32_conv_run *run);

/* transpose.c */
/* to[c pitch + r] = from[r stride + c] for r < rows, c < columns. */
void byi_f32_transpose(const struct byi_f32_kernels *kernels, const float *from,
                       int64_t stride, int64_t rows, int64_t columns, float *to,
                       int64_t pitch);
/* to[j pitch + i] = from[i rs + j cs] for i < n, j < k. */
void byi_f32_gather(const struct byi_f32_kernels *kernels, const float *from,
                    int64_t rs, int64_t cs, int64_t n, int64_t k, float *to,
                    int64_t pitch);

/* Make `t`, tile number i of n that share their weights, prefetch its part of
 * the weights at `ahead`, which the next tiles read. */
void byi_f32_fetch(struct byi_f32_tile *t, int64_t i, int64_t n,
                   const float *ahead);

#endif
