/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/conv.h: float32 convolutions of up to three spatial axes and products
 * with packed weights, channels last. A plan chooses the algorithm, for which
 * weights are packed once; then any number of runs may take place at the same
 * time, each with its own scratch memory. The caller provides all memory;
 * nothing here allocates or fails. */
#ifndef BYI_F32_CONV_H
#define BYI_F32_CONV_H

#include "kernels/f32.h"

enum {
    BYI_F32_EPILOGUE_OPS = 12, /* most operations of an epilogue */
    BYI_F32_AXES = 3,          /* spatial axes; unused leading ones are 1 */
    BYI_F32_PIECES = 128,      /* pieces of rows that are found at a time */
    BYI_F32_ZEROS = 4096       /* elements of the shared piece of padding */
};

/* One operation of an epilogue: a unary function of the result, or a binary
 * function of the result and an operand, in place. The operand's element for
 * position r and channel c is operand[r / repeat * row + c * column]. */
struct byi_f32_epilogue_op {
    byi_f32_unary_fn *unary;   /* NULL if it is binary */
    byi_f32_binary_fn *binary; /* reads run->operands[operand] */
    uint32_t operand;
    int64_t row, column, repeat;
    float p0, p1; /* parameters of `unary` */
};

/* Writes rows [k, k + depth) of columns [first, first + n) of a matrix as
 * panels, with zeros after the last column; k is a multiple of
 * BYI_F32_FETCH_STEP, `first` of BYI_F32_PANEL. */
typedef void byi_f32_expand_fn(const void *matrix, int64_t k, int64_t depth,
                               int64_t first, int64_t n, float *to);

/* A convolution: x (images, in..., channels), or, if `planar`, (images,
 * channels, in...); y (images, out..., outputs); both dense. A product of M x K
 * by K x N has M images of one position, K channels and N outputs. */
struct byi_f32_conv {
    int64_t images, in[BYI_F32_AXES], out[BYI_F32_AXES];
    int64_t channels, outputs, groups;
    bool transposed; /* the window slides over y, so `pad` pads y */
    bool exact;      /* as given to byi_f32_conv_plan(), which sets it */
    bool planar;     /* x is channels-first; see byi_f32_planar_suits() */
    int64_t plane;   /* if `planar`: elements from a channel of x to the next;
                      * 0: its planes are adjacent */
    int64_t size[BYI_F32_AXES], stride[BYI_F32_AXES], dilation[BYI_F32_AXES];
    int64_t pad[BYI_F32_AXES]; /* before the first element */
    /* For a product: strides of the unpacked weights, like `output` and
     * `channel` of struct byi_f32_weights; 0 if they are not known. */
    int64_t weight_strides[2];
    bool bias; /* runs have a bias */
    /* For products, and for pointwise convolutions that read every position
     * once. `gathers`: a row consists of elements of the run's sources. If the
     * run has a scale, element c of a row of image i is multiplied by scale[i *
     * scale_image + c]; if it has a shift, shift[c] is added; ReLU follows if
     * `rectifies`. `scales`: the rows are only scaled: the run has one source
     * and a scale, but no shift, and `rectifies` is false. If `type` is narrow,
     * rows are not gathered; they can be scaled, and then the run has x instead
     * of a source. */
    bool gathers, rectifies, scales;
    int64_t scale_image;
    /* element type of x, y, bias and operands; float16 and bfloat16 are called
     * narrow */
    enum byi_f32_type type;
    enum byi_f32_type weight_type; /* element type of weights that are not
                                    * packed */
    /* If not NULL, the weights of a product are not packed: each thread calls
     * this function, which writes a block of them from the run's `matrix`. */
    byi_f32_expand_fn *expand;
    bool in_strips; /* this is one strip of a convolution, and its height
                     * depends on the number of threads; strips.c and bands.c
                     * set it */
    /* Of a depthwise strip in bands, if not 0: the lines of x are in a ring of
     * this many lines, and line 0 is line `ring_first` of the ring. */
    int64_t ring, ring_first;
    /* strips.c sets these: the element types that the kernel reads x in and
     * writes y in; `pitch`, if not 0: positions from one line of x to the next,
     * where x includes its padding (tiles.c) */
    enum byi_f32_type x_type, y_type;
    int64_t pitch;
    uint32_t n_epilogue;
    struct byi_f32_epilogue_op epilogue[BYI_F32_EPILOGUE_OPS];
    /* byi_f32_conv_plan() sets these; `kernels` only if it is NULL */
    bool joins_planes; /* the window slid along axis 0 only: `in`, `out` and the
                        * window now describe axis 0 as axis 1, and the other
                        * two as axis 2. Unpacked weights have the old axes. */
    const struct byi_f32_kernels *kernels;
    enum byi_f32_algorithm algorithm;
    /* A merged group is one group or, if groups are small, several, whose
     * weights become one matrix that is zero between the groups. */
    int64_t merged_groups;
    int64_t merged_channels, merged_outputs; /* of one merged group */
    /* Slim groups have 8 outputs, or 4 outputs and 4 channels; then `slim` is
     * that number of outputs, otherwise 0. Several of them share a panel, whose
     * columns multiply different channels. They are one merged group, which has
     * the channels of one of them and the outputs of all. */
    int64_t slim;
    int64_t cache; /* bytes of a core's second-level cache */
    /* The leading operations of the epilogue, which kernels apply in registers:
     * adding a matrix with the layout of y, then a clamp. Operation `next` is
     * the first of the others. */
    bool adds, clamps;
    uint32_t next;
};

/* A source of gathered rows, which has `channels` elements for each position.
 * In a row, they follow the elements of the previous source. */
struct byi_f32_source {
    const float *x;
    int64_t channels;
};

/* Arguments of a run. operands[] are the operands of the epilogue's operations,
 * indexed by `operand`. Pointers to float may point to narrow elements (see
 * struct byi_f32_conv). The scratch must be aligned for pointers. */
struct byi_f32_conv_run {
    const struct byi_f32_conv *conv;
    const float *x, *weights, *bias;
    const float *operands[BYI_F32_EPILOGUE_OPS];
    const struct byi_f32_source *sources; /* instead of x, if conv->gathers */
    uint32_t n_sources;
    const float *scale, *shift;
    const void *matrix; /* read by conv->expand */
    float *y;
    void *scratch;
    int threads;        /* at most the number for which the scratch was sized */
    const float *zeros; /* a piece of padding; byi_f32_conv_run() sets it */
};

/* Unpacked weights. The element for output o, channel c and tap (i, j, k) of
 * group g is at[g * group + o * output + c * channel + i * tap[0] + j * tap[1]
 * + ...]. */
struct byi_f32_weights {
    const float *at;
    int64_t group, output, channel, tap[BYI_F32_AXES];
};

/* Bytes of a core's second-level cache. */
int64_t byi_f32_second_cache(void);
/* Whether runs can read x channels-first: x has few channels, and the result
 * has long lines. The answer is the same on all machines; the caller need not
 * have planned the convolution. */
bool byi_f32_planar_suits(const struct byi_f32_conv *conv);
/* Whether reading x channels-first is faster on this machine, if
 * byi_f32_planar_suits() is true. */
bool byi_f32_planar_pays(const struct byi_f32_conv *conv);
/* Choose the fastest algorithm for these shapes on this machine. If `exact`, it
 * has no larger rounding errors than a sum of products. */
void byi_f32_conv_plan(struct byi_f32_conv *conv, bool exact);
/* Whether byi_f32_conv_run() may run the planned convolution. Returns false for
 * planar convolutions that add a matrix, since tiles that overlap would add the
 * matrix twice. */
bool byi_f32_conv_runs(const struct byi_f32_conv *conv);
/* Whether byi_f32_conv_runs() returns true, and the planned algorithm is known
 * to be faster than oneDNN's. */
bool byi_f32_conv_pays(const struct byi_f32_conv *conv);
/* Name of the algorithm and instruction set, such as "winograd_4x4:avx2"; a
 * static string. */
const char *byi_f32_conv_name(const struct byi_f32_conv *conv);
/* Whether runs read unpacked weights, with `weight_strides`. */
bool byi_f32_conv_reads_in_place(const struct byi_f32_conv *conv);
/* Bytes of the packed weights. */
uint64_t byi_f32_conv_packed(const struct byi_f32_conv *conv);
/* Pack the weights to byi_f32_conv_packed() bytes at `to`, on at most `threads`
 * threads. */
void byi_f32_conv_pack(const struct byi_f32_conv *conv,
                       const struct byi_f32_weights *weights, float *to,
                       int threads);
/* Whether `a` and `b` pack the same weights to the same bytes. */
bool byi_f32_conv_packs_alike(const struct byi_f32_conv *a,
                              const struct byi_f32_conv *b);
/* Bytes of scratch for a run with at most `threads` threads. The scratch of a
 * product with two rows suffices for any number of rows. */
uint64_t byi_f32_conv_scratch(const struct byi_f32_conv *conv, int threads);
/* Compute y. The convolution must be planned, and its weights packed. */
void byi_f32_conv_run(const struct byi_f32_conv_run *run);

/* --- for the files of kernels/ only --------------------------------------- */

/* epilogue.c. The operations of the epilogue that a kernel applies in
 * registers, for one tile. */
struct byi_f32_epilogue {
    const float *bias; /* of the first column; padded to whole panels if
                        * necessary */
    const float *add;  /* NULL: none */
    float low, high;
};
/* The epilogue for a tile that begins at position `row` and column `column`.
 * `buffer` has BYI_F32_COLUMNS floats, for the padded bias; NULL if `columns`
 * are whole panels. */
struct byi_f32_epilogue byi_f32_epilogue_at(const struct byi_f32_conv_run *run,
                                            int64_t row, int64_t column,
                                            int64_t columns, float *buffer);
/* Apply the epilogue's operations from `next` on to rows [row, row + rows) and
 * columns [column, column + columns) of the result. */
void byi_f32_epilogue_run(const struct byi_f32_conv_run *run, uint32_t next,
                          int64_t row, int64_t rows, int64_t column,
                          int64_t columns);

static inline int64_t byi_f32_product_of(const int64_t n[BYI_F32_AXES])
{
    return n[0] * n[1] * n[2];
}

/* Whether output c depends on channel c only. */
static inline bool byi_f32_is_depthwise(const struct byi_f32_conv *conv)
{
    return conv->groups > 1 && conv->groups == conv->channels &&
           conv->groups == conv->outputs;
}

/* The address of element i of x, counted from `from`. */
static inline const float *byi_f32_element(const struct byi_f32_conv *conv,
                                           const float *from, int64_t i)
{
    const int64_t size = conv->x_type ? sizeof(uint16_t) : sizeof(float);
    return (const float *)(const void *)((const char *)from + i * size);
}

/* Tap t of the weights, counted from their first tap at `from`. */
static inline const float *byi_f32_tap_at(const struct byi_f32_conv *conv,
                                          const struct byi_f32_weights *weights,
                                          const float *from, int64_t t)
{
    return from + t / conv->size[2] / conv->size[1] * weights->tap[0] +
           t / conv->size[2] % conv->size[1] * weights->tap[1] +
           t % conv->size[2] * weights->tap[2];
}

/* --- one_tile.c ----------------------------------------------------------- */
/* Run a tile whose result has `rows` rows and `columns` columns, which may end
 * within a panel. */
void byi_f32_tile_run(const struct byi_f32_kernels *kernels,
                      struct byi_f32_tile *t, int rows, int64_t columns);
/* As byi_f32_tile_run, but by `tile`, the function for this number of rows and
 * panels. */
void byi_f32_tile_run_with(const struct byi_f32_kernels *kernels,
                           byi_f32_tile_fn *tile, struct byi_f32_tile *t,
                           int rows, int64_t columns);
/* Make `t`, tile i of n tiles that share their weights, prefetch its share of
 * the weights at `prefetch`, which the tiles after these n read. */
void byi_f32_fetch(struct byi_f32_tile *t, int64_t i, int64_t n,
                   const float *prefetch);
/* --- direct.c ------------------------------------------------------------- */
/* Bytes of a thread's pointers, for rows of `pieces` pieces. */
uint64_t byi_f32_pointer_bytes(int64_t pieces);

/* --- scaled.c ------------------------------------------------------------- */
/* Whether to multiply the weights, not the rows, by the scale: less work if an
 * image has more positions than outputs. All images must have the same scale,
 * since a tile may have rows of several images. */
bool byi_f32_scales_weights(const struct byi_f32_conv *conv);
/* The convolution by scaled weights. */
struct byi_f32_conv byi_f32_scaled_conv(const struct byi_f32_conv *conv);
/* Multiply row k of panels [first, end) of the weights by scale[k]. */
void byi_f32_scale_weights(const struct byi_f32_conv_run *run, int64_t first,
                           int64_t end, float *to);

/* conv.c. The number of threads, at most `threads`, for which the work pays. */
int byi_f32_conv_team(const struct byi_f32_conv *conv, int threads);

/* strips.c. Whether the lines of images, along axis 1, can be computed
 * separately. */
static inline bool byi_f32_has_lines(const struct byi_f32_conv *conv)
{
    return !conv->transposed && conv->in[0] == 1 && conv->out[0] == 1 &&
           conv->size[0] == 1 && conv->pad[0] == 0 && conv->out[1] > 1;
}
/* strips.c. The largest number of lines of x that `lines` lines of y read. */
int64_t byi_f32_lines_read(const struct byi_f32_conv *conv, int64_t lines);
/* strips.c. Set *strip to the convolution that computes only lines [first,
 * first + lines) of an image of y. Returns the first of the strip->in[1] lines
 * of x that it reads. */
int64_t byi_f32_cut_lines(const struct byi_f32_conv *conv, int64_t first,
                          int64_t lines, struct byi_f32_conv *strip);
/* strips.c. Scratch and run of a convolution whose x and y are narrow. */
uint64_t byi_f32_strips_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_strips_run(const struct byi_f32_conv_run *run);

/* --- tiles.c --------------------------------------------------------------
 * Convolutions and products of narrow numbers: of bfloat16 on AMX's tiles or
 * AVX-512's BF16; of float16 on AMX's tiles, each number split into a sum of
 * two bfloat16 numbers. See x_type, y_type and pitch of struct byi_f32_conv. */
/* Whether tiles can compute the convolution, and are faster than the float32
 * kernels. */
bool byi_f32_tiles_suit(const struct byi_f32_conv *conv);
/* Positions from one line to the next of a copy of x that includes the padding;
 * 0: the kernel does not read such a copy. */
int64_t byi_f32_tiles_pitch(const struct byi_f32_conv *conv);
/* Whether the kernel computes the whole epilogue, and so writes narrow y. */
bool byi_f32_tiles_write(const struct byi_f32_conv *conv);
/* Floats of a position of a copy of x; 0: the kernel reads x itself. */
int64_t byi_f32_tiles_floats(const struct byi_f32_conv *conv);
/* Positions of a copy of the lines that `lines` lines of y read. */
int64_t byi_f32_tiles_positions(const struct byi_f32_conv *conv, int64_t lines);
/* Copy x, of x_type, to `to`: split, with padding, or both. */
void byi_f32_tiles_copy(const struct byi_f32_conv *conv, const uint16_t *from,
                        float *to, int threads);
/* As byi_f32_conv_packed() and the functions after it, on tiles. */
uint64_t byi_f32_tiles_packed(const struct byi_f32_conv *conv);
void byi_f32_tiles_pack(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_tiles_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_tiles_run(const struct byi_f32_conv_run *run);

/* shifted.c. Whether the convolution has so few outputs, and so many taps along
 * a line, that this is faster than direct.c. */
bool byi_f32_shifted_suits(const struct byi_f32_conv *conv);
/* spread.c. Whether the transposed convolution has so few outputs that this is
 * faster than transposed.c. */
bool byi_f32_spread_suits(const struct byi_f32_conv *conv);

/* direct.c, depthwise.c, planar.c, shifted.c, spread.c, transposed.c, vector.c,
 * winograd.c. Packing, scratch and run of each algorithm, as in struct
 * byi_f32_conv_run; sizes of packed weights (_floats) are in floats, of scratch
 * in bytes. */
int64_t byi_f32_direct_floats(const struct byi_f32_conv *conv);
/* Pack one tap, which begins at `from`, of all outputs of a group to panels of
 * `panel` floats, from column `first` on. */
void byi_f32_pack_tap(const struct byi_f32_conv *conv,
                      const struct byi_f32_weights *weights, const float *from,
                      int64_t panel, int64_t first, float *to);
void byi_f32_depthwise_run(const struct byi_f32_conv_run *run);
void byi_f32_planar_pack(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_planar_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_planar_run(const struct byi_f32_conv_run *run);
int64_t byi_f32_shifted_floats(const struct byi_f32_conv *conv);
void byi_f32_shifted_pack(const struct byi_f32_conv *conv,
                          const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_shifted_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_shifted_run(const struct byi_f32_conv_run *run);
int64_t byi_f32_spread_floats(const struct byi_f32_conv *conv);
void byi_f32_spread_pack(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_spread_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_spread_run(const struct byi_f32_conv_run *run);
void byi_f32_vector_run(const struct byi_f32_conv_run *run);
void byi_f32_transposed_pack(const struct byi_f32_conv *conv,
                             const struct byi_f32_weights *weights, float *to);
void byi_f32_transposed_run(const struct byi_f32_conv_run *run);
uint64_t byi_f32_direct_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_direct_run(const struct byi_f32_conv_run *run);
static inline bool byi_f32_is_winograd(const struct byi_f32_conv *conv)
{
    return conv->algorithm >= BYI_F32_WINOGRAD_2 &&
           conv->algorithm < BYI_F32_WINOGRAD_2 + BYI_F32_WINOGRAD_FORMS;
}
/* Tiles of m outputs along an axis. */
static inline int64_t byi_f32_winograd_tiles(const struct byi_f32_conv *conv,
                                             int axis, int64_t m)
{
    const int64_t d = conv->dilation[axis];
    return d * byi_ceil_div(conv->out[axis], d * m);
}
int64_t byi_f32_winograd_floats(const struct byi_f32_conv *conv);
void byi_f32_winograd_pack(const struct byi_f32_conv *conv,
                           const struct byi_f32_weights *weights, float *to);
uint64_t byi_f32_winograd_scratch(const struct byi_f32_conv *conv, int threads);
void byi_f32_winograd_run(const struct byi_f32_conv_run *run);

/* --- transpose.c ---------------------------------------------------------- */
/* to[c * pitch + r] = from[r * stride + c] for r < rows, c < columns. */
void byi_f32_transpose(const struct byi_f32_kernels *kernels, const float *from,
                       int64_t stride, int64_t rows, int64_t columns, float *to,
                       int64_t pitch);
/* to[j * pitch + i] = from[i * rs + j * cs] for i < n, j < k. */
void byi_f32_gather(const struct byi_f32_kernels *kernels, const float *from,
                    int64_t rs, int64_t cs, int64_t n, int64_t k, float *to,
                    int64_t pitch);

#endif
