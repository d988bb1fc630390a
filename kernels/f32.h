/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/f32.h: the table of float32 kernels, which each instruction set has.
 * Unless a struct says otherwise, data are channels-last: a matrix of positions
 * by channels, whose rows are dense. Packed weights are panels of BYI_F32_PANEL
 * columns, [K][BYI_F32_PANEL], the same for all instruction sets; columns
 * beyond the last one are zero. */
#ifndef BYI_F32_H
#define BYI_F32_H

#include "core/base/isa.h"
#include "core/ops/ops.h"

/* Select lanes of two vectors by number, where the lanes of `b` come after
 * those of `a`. `ids` is the vector type of the lane numbers. */
#if defined(__clang__)
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shuffle(a, b, (ids){__VA_ARGS__})
#endif

/* Indices of element types in tables of kernels. BYI_F32_WIDE is float32. */
enum byi_f32_type { BYI_F32_WIDE, BYI_F32_F16, BYI_F32_BF16, BYI_F32_TYPES };
/* Pooling kernels also exist for uint8 and int8. */
enum { BYI_F32_U8 = BYI_F32_TYPES, BYI_F32_I8, BYI_F32_POOL_TYPES };

static inline enum byi_f32_type byi_f32_type_of(enum byoc_dtype dtype)
{
    return dtype == BYOC_F16    ? BYI_F32_F16
           : dtype == BYOC_BF16 ? BYI_F32_BF16
                                : BYI_F32_WIDE;
}

enum {
    BYI_F32_PANEL = 16,                  /* columns of a panel */
    BYI_F32_ROWS = 14,                   /* maximum rows of a tile */
    BYI_F32_COLUMNS = 2 * BYI_F32_PANEL, /* maximum columns of a tile */
    BYI_F32_FETCH_STEP = 8, /* elements between prefetches: see byi_f32_tile */
    BYI_F32_SEQUENCES = 6,  /* maximum sequences of a step of a recurrent
                             * layer */
    BYI_F32_STRIDES = 3,    /* strides 1, 2 and 4 of planar convolutions */
    BYI_F32_SLIM_ROWS = 10, /* maximum rows of a tile of slim groups */
};

/* A tile of a product: some rows of x times one or two panels of weights. A row
 * of x consists of `n_pieces` pieces of `length` elements each: one for each
 * tap of an indirect convolution (Dukhan, "The Indirect Convolution Algorithm",
 * arXiv 1907.02129), or one for a matrix. */
struct byi_f32_tile {
    /* [n_pieces][BYI_F32_ROWS]; the first pointer of a piece is NULL if the
     * piece is zero in all rows */
    const float *const *x;
    int64_t n_pieces, length;
    int64_t first;      /* first element of every piece to use */
    const float *plane; /* see byi_f32_kernels.planar */
    const int64_t *offsets;
    const float *weights; /* the first panel                                 */
    int64_t next;         /* elements from one panel to the next             */
    int64_t ld;           /* elements from one row of a panel to the next; 0:
                           * packed. Otherwise n_pieces is 1 and `first` 0. */
    const float *bias;    /* one per column, or NULL */
    const float *add;     /* a matrix that is added after the bias, or NULL  */
    int64_t ldadd;        /* elements between its rows                       */
    float low, high;      /* bounds of the result; NaN stays NaN */
    float *y;
    int64_t ldy;
    /* columns of the last panel that y and `add` have; 0: all. Otherwise a
     * multiple of `partial` of the kernels. */
    int64_t last;
    /* number of further blocks, each of as many whole panels as the first,
     * whose weights, bias, `add` and y follow those of the first. Except in
     * slim tiles, 0 if `last`, `ld` or `fetch` is not 0. */
    int64_t n_more_blocks;
    int64_t step; /* added to `first` from one block to the next */
    /* the kernel may add up the products of one or two rows in another order,
     * which is faster */
    bool splits;
    /* Weights of a later tile, which the kernel prefetches: for every
     * BYI_F32_FETCH_STEP elements of a row of x, `fetch` rows of each panel. */
    const float *prefetch;
    int64_t fetch;
};
typedef void byi_f32_tile_fn(const struct byi_f32_tile *t);

/* Channels [first, end) of adjacent positions of a line of a depthwise
 * convolution. They read lines of x and of the weights, [taps][channels]. Tap k
 * of position p reads column `column` + p * stride + k * dilation of x, which
 * is padding if it is not in [0, columns). */
struct byi_f32_line {
    /* [lines]; x points to elements of the kernel's type */
    const float *const *x, *const *weights;
    int64_t lines, channels, first, end;
    int64_t column, columns, taps, stride, dilation;
    int64_t n;               /* positions                  */
    const float *bias, *add; /* as in struct byi_f32_tile, */
    float low, high;         /* but `add` and y are dense */
    float *y;
};

/* A block of a matrix: `rows` rows of n elements, `ld` elements apart. */
struct byi_f32_block {
    float *y;
    int64_t ld, rows, n;
};
/* Elementwise functions, in place: y = f(y), with the operator's parameters,
 * and y = f(y, operand). The rows of the operand are `row` elements apart, its
 * columns `column`, 0 or 1. */
typedef void byi_f32_unary_fn(const struct byi_f32_block *block, float p0,
                              float p1);
typedef void byi_f32_binary_fn(const struct byi_f32_block *block,
                               const float *operand, int64_t row,
                               int64_t column);
/* Indices of the binary functions in struct byi_f32_kernels. */
enum byi_f32_binary {
    BYI_F32_ADD,
    BYI_F32_SUB,
    BYI_F32_MUL,
    BYI_F32_DIV,
    BYI_F32_MAX,
    BYI_F32_MIN,
    BYI_F32_PRELU, /* the operand is the slope for negative numbers */
    BYI_F32_BINARIES
};

/* A part of the product of a vector and a matrix that is not packed: y[j] =
 * bias[j] + sum of x[i] * weights[i * row_stride + j * column_stride], i < n.
 */
struct byi_f32_vector {
    const float *x, *bias; /* bias may be NULL */
    const void *weights;   /* elements of the kernel's type */
    int64_t n;
    int64_t row_stride, column_stride; /* one of them is 1 */
    float *y;
    int64_t columns;
};

enum {
    /* bytes of scales and zero points in front of the codes of a panel's block
     */
    BYI_F32_CODES_HEADER = BYI_F32_PANEL * 5,
    BYI_F32_CODES_PANELS = 4, /* maximum panels of a tile */
    BYI_F32_CODES_ROWS = 4    /* maximum rows of a tile */
};

/* A tile of the product of rows by panels of codes (kernels/codes.h). The
 * kernel multiplies element k of a row by code j = k % (32 / bits) of a word,
 * 32 bits of codes, without shifting the code. Therefore the caller has divided
 * the element by 2 ^ (bits * j), unless that code is the last of its word. */
struct byi_f32_codes_tile {
    const float *x, *sums; /* x in whole blocks; the sum of each block of x as
                            * it was before the division */
    int64_t ldx;           /* elements from row to row of both */
    int64_t blocks, block; /* blocks of a row; elements of a block */
    const uint8_t *panel;
    int64_t next; /* bytes from one panel to the next */
    float *y;
    int64_t ldy;
};

/* A patch of input for Winograd's algorithm, of n x n elements, or of n along
 * one axis, where n = m + r - 1 for F(m, r). Elements that are not in rows
 * [top, bottom) and columns [left, right) are outside of the image, and zero.
 */
struct byi_f32_patch {
    const float *x;       /* first element of the patch; may be outside of the
                           * image */
    int64_t ldrow, ldcol; /* elements between rows and columns of the image */
    int top, bottom, left, right;
    int64_t channels;
    float *v; /* element (i, j) of the transform is v[(i * n + j) * point] */
    int64_t point; /* elements from one point of the transform to the next */
};

/* Compute to[r][c] = x[r][c] * scale[c] + shift[c], then ReLU if `rectify`.
 * Rows have n elements; those of x are dense, those of `to` are `ld` elements
 * apart. `scale` and `shift` may be NULL. */
struct byi_f32_scale_shift {
    const float *x, *scale, *shift;
    int64_t rows, n, ld;
    bool rectify;
    float *to;
};

/* Outputs of one tile of Winograd's algorithm, for at most BYI_F32_PANEL
 * channels. */
struct byi_f32_outputs {
    const float *m; /* element (i, j) is m[(i * n + j) * point] */
    int64_t point;
    int rows, columns; /* outputs of the tile that exist */
    int channels;
    const float *bias; /* as in struct byi_f32_tile */
    const float *add;  /* with the layout of y */
    float low, high;
    float *y;
    int64_t ldrow, ldcol;
};

/* A step of a recurrent layer for one group of hidden units: `width` units of
 * at most `sequences` sequences (see struct byi_f32_kernels). */
struct byi_f32_step {
    const float *h;       /* the whole state before the step               */
    int64_t ldh;          /* elements from one sequence of h to the next */
    int64_t hidden;       /* elements of h; 0: h is zero */
    const float *weights; /* [hidden][gates][width]                  */
    const float *x;       /* [gates][width]: products with the input */
    int64_t ldx;
    const float *bias; /* GRU: the bias of the last gate's recurrent product */
    const float *old;  /* GRU: h of this group                       */
    float *c;          /* LSTM: the cell state, in place             */
    int64_t ldc;
    float *y; /* h after the step */
    int64_t ldy;
    int units; /* units that exist in old and y */
};
typedef void byi_f32_step_fn(const struct byi_f32_step *s);

/* Algorithms of convolutions and products. */
enum byi_f32_algorithm {
    BYI_F32_DIRECT,         /* indirect convolution, or a product */
    BYI_F32_WINOGRAD_2,     /* F(2 x 2, 3 x 3) */
    BYI_F32_WINOGRAD_4,     /* F(4 x 4, 3 x 3) */
    BYI_F32_WINOGRAD_6,     /* F(6 x 6, 3 x 3) */
    BYI_F32_WINOGRAD_4_5,   /* F(4 x 4, 5 x 5) */
    BYI_F32_WINOGRAD_ROW_3, /* F(4, 3), along rows or along columns */
    BYI_F32_WINOGRAD_ROW_5, /* F(4, 5) */
    BYI_F32_WINOGRAD_ROW_7, /* F(2, 7) */
    BYI_F32_DEPTHWISE,
    BYI_F32_TRANSPOSED, /* transposed convolution */
    BYI_F32_VECTOR,     /* a vector by an unpacked matrix */
    BYI_F32_TILES,   /* AMX's tiles of bfloat16, or of float16 as a sum of two
                      * numbers of bfloat16; AVX-512's BF16 (tiles.c) */
    BYI_F32_PLANAR,  /* images of few channels, channels first */
    BYI_F32_SHIFTED, /* few outputs: a sum for each tap, added up at shifted
                      * positions */
    BYI_F32_SPREAD,  /* transposed convolution with few outputs */
    BYI_F32_ALGORITHMS
};

/* Forms of Winograd's algorithm, F(m x m, r x r) and F(m, r): form 0 is
 * BYI_F32_WINOGRAD_2. */
enum {
    BYI_F32_WINOGRAD_FORMS = BYI_F32_DEPTHWISE - BYI_F32_WINOGRAD_2,
    /* maximum points of a tile along one axis, n = m + r - 1 */
    BYI_F32_WINOGRAD_SIZE = 8,
    BYI_F32_WINOGRAD_TAPS = 25, /* maximum taps of a channel */
};

/* The functions of one instruction set. */
struct byi_f32_kernels {
    const char *name;
    const char *names[BYI_F32_ALGORITHMS]; /* such as "direct:avx2" */
    int rows;                              /* rows of a full tile */
    int panels;                            /* panels of a full tile: 1 or 2 */
    int64_t partial; /* tiles may have a `last` panel of a multiple of this
                      * many columns; 0: only whole panels */
    byi_f32_tile_fn *tile[2][BYI_F32_ROWS + 1]; /* [panels - 1][rows] */
    /* Tiles of slim groups (see struct byi_f32_conv), of 8 or, [1], 4 outputs.
     * A block is a panel; only the last one may have a half, if `last` is 8.
     * They ignore the members `ld`, `splits`, `prefetch`, `fetch` and `step`.
     */
    byi_f32_tile_fn *slim[2][BYI_F32_SLIM_ROWS + 1]; /* [][rows] */
    int slim_rows;                                   /* of a full tile */
    /* [panels - 1][i]: full tiles of stride 1 << i, in which element k of row
     * r is plane[offsets[k] + r * stride], k < length. They ignore the members
     * x, `n_pieces`, `first`, `ld`, `n_more_blocks`, `step`, `splits`,
     * `prefetch` and `fetch`. */
    byi_f32_tile_fn *planar[2][BYI_F32_STRIDES];
    /* [type of x]; NULL if that type is not converted in registers */
    void (*depthwise[BYI_F32_TYPES])(const struct byi_f32_line *t);
    /* [type of weights][column_stride == 1] */
    void (*vector[BYI_F32_TYPES][2])(const struct byi_f32_vector *v);
    /* codes_tile[0] is for 4 bits, [1] for 8 bits; [][0] multiplies one row,
     * [][1] BYI_F32_CODES_ROWS rows; [][][0] by one panel, [][][1] by
     * codes_panels panels. */
    int codes_panels;
    int codes_rows; /* most rows for which codes_tile is faster than a product
                     * of expanded weights; a multiple of BYI_F32_CODES_ROWS */
    void (*codes_tile[2][2][2])(const struct byi_f32_codes_tile *t);
    /* to[depth][BYI_F32_PANEL] = rows [k, k + depth) of a panel; prefetches
     * those of the panel that begins `ahead` bytes further on */
    void (*codes_expand[2])(const uint8_t *panel, int64_t block, int64_t k,
                            int64_t depth, int64_t ahead, float *to);
    /* For each form of Winograd's algorithm. `weights` computes G t G', or G t
     * for F(m, r), in float64, for a panel of outputs; g is G, and t are the
     * taps of a channel. Element (i, j) of the result for the first output is
     * to[(i * n + j) * point], and the other outputs follow it. */
    struct {
        void (*weights)(const double g[][BYI_F32_WINOGRAD_SIZE],
                        const float taps[][BYI_F32_PANEL], float *to,
                        int64_t point);
        void (*input)(const struct byi_f32_patch *p);
        void (*output)(const struct byi_f32_outputs *o);
    } winograd[BYI_F32_WINOGRAD_FORMS];
    /* to[c * pitch + r] = from[r * stride + c] for r < rows, c < columns, both
     * at least the floats of a vector (`width`); `from` and `to` must not
     * overlap */
    void (*transpose)(const float *from, int64_t stride, int64_t rows,
                      int64_t columns, float *to, int64_t pitch);
    /* to[c * n + r] = rows[r][c] for n = 2 rows, or [1] 3 rows, c < columns */
    void (*interleave_rows[2])(const float *const *rows, int64_t columns,
                               float *to);
    /* convert n elements of float16, or [1] bfloat16, to float32, and back,
     * rounding to nearest even */
    void (*widen[2])(const uint16_t *from, float *to, int64_t n);
    void (*narrow[2])(const float *from, uint16_t *to, int64_t n);
    /* to = from * by in float16, or [1] bfloat16: multiply each of `rows` dense
     * rows by the n elements at `by` in float32, and round to nearest even */
    void (*scale[2])(const uint16_t *from, const uint16_t *by, int64_t rows,
                     int64_t n, uint16_t *to);
    void (*scale_shift)(const struct byi_f32_scale_shift *a);
    /* multiply row k of a panel, k < rows, by scale[k] */
    void (*scale_panel)(const float *panel, const float *scale, int64_t rows,
                        float *to);
    /* [type][0]: y = the maximum of n > 0 vectors of `channels` elements, of
     * their type, NaN if one is NaN. [type][1]: their sum times `scale`; for
     * uint8 and int8, `shift` is first added to the sum, and y is float32. */
    void (*pool[BYI_F32_POOL_TYPES][2])(const void *const *taps, int64_t n,
                                        int64_t channels, float shift,
                                        float scale, void *y);
    const char *pool_name;
    /* y = e^x / the sum of e^x over n > 0 elements, or [1] its logarithm; y may
     * be x. The relative error is below 3e-6 if x is within 20 of the largest;
     * a result below 2e-38 may be 0. */
    void (*softmax[2])(const float *x, float *y, int64_t n);
    const char *softmax_name;
    const char *attention_name; /* of the kernel of attention.h */
    const char *product_name;   /* of the kernel of product.h */
    const char *recurrent_name; /* of the step functions */
    int width;     /* hidden units of a group, as many as floats in a
                    * vector */
    int sequences; /* maximum sequences that a step computes */
    byi_f32_step_fn *step[2][BYI_F32_SEQUENCES + 1]; /* LSTM, GRU */
    const char *bands_name;             /* of the kernels of bands.h */
    byi_f32_unary_fn *unary[BYI_N_OPS]; /* NULL: not supported */
    byi_f32_binary_fn *binary[BYI_F32_BINARIES];
};

/* The kernels of instruction set `isa`, and of the widest one that the CPU and
 * BYOC_MAX_ISA allow. */
const struct byi_f32_kernels *byi_f32_kernels_of(enum byi_isa isa);
const struct byi_f32_kernels *byi_f32_kernels(void);
extern const struct byi_f32_kernels byi_f32_base, byi_f32_avx2, byi_f32_avx512;

#endif
