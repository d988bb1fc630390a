/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/f32.h: the float32 kernels, once for every instruction set.
 * All data is channels-last: a matrix of positions by channels, whose rows are
 * dense. Weights lie in panels of BYI_F32_PANEL columns, the same for all
 * instruction sets: [K][BYI_F32_PANEL], columns beyond the last one are zero.
 */
#ifndef BYI_F32_H
#define BYI_F32_H

#include "core/base/isa.h"
#include "core/ops/ops.h"

/* Selects lanes of two vectors by number; the lanes of `b` follow those of `a`.
 * `ids` is the vector type of the lane numbers. */
#if defined(__clang__)
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shuffle(a, b, (ids){__VA_ARGS__})
#endif

/* Element types beside float32, in the order of tables of kernels. */
enum byi_f32_type { BYI_F32_WIDE, BYI_F32_F16, BYI_F32_BF16, BYI_F32_TYPES };

enum {
    BYI_F32_PANEL = 16, /* columns of a panel                       */
    BYI_F32_ROWS = 14,  /* rows of a tile, at most                  */
    BYI_F32_COLUMNS = 2 * BYI_F32_PANEL, /* of a tile, at most      */
    BYI_F32_STEP = 8,                    /* see struct byi_f32_tile */
    BYI_F32_SEQUENCES = 6, /* of a step of a recurrent layer, at most */
};

/* A tile of a product: rows of x by one or two panels of weights. A row of x
 * consists of `segments` pieces of `run` elements each: the taps of an indirect
 * convolution (Dukhan, "The Indirect Convolution Algorithm", arXiv 1907.02129),
 * or one piece for a matrix. */
struct byi_f32_tile {
    /* [segments][BYI_F32_ROWS]; the first of a segment is NULL if it is zero in
     * all rows */
    const float *const *x;
    int64_t segments, run;
    int64_t first;        /* element of every piece to begin with */
    const float *weights; /* the first panel                                 */
    int64_t next;         /* elements from one panel to the next             */
    int64_t ld;           /* and from one row of it to the next; 0: packed   */
    const float *bias;    /* one per column; NULL: none                      */
    const float *add;     /* a matrix that is added after the bias, or NULL  */
    int64_t ldadd;        /* elements between its rows                       */
    float low, high;      /* the sum is clamped; NaN stays NaN               */
    float *y;
    int64_t ldy;
    /* columns of the last panel that y and `add` have; 0: all. Only kernels
     * with `partial` take other numbers than 0. */
    int64_t last;
    bool more; /* y has the sums of elements before, which take the place of
                * the bias */
    /* the kernel may add the products of one or two rows in another order,
     * which is faster */
    bool splits;
    /* Weights of a later tile, which the kernel prefetches: for every
     * BYI_F32_STEP elements of a row of x, `fetch` rows of each panel. */
    const float *ahead;
    int64_t fetch;
};
typedef void byi_f32_tile_fn(const struct byi_f32_tile *t);

/* Positions of a line of a depthwise convolution, with all channels. Under them
 * are lines of x and of the weights, [taps][channels]; tap k of position p is
 * column `column` + p `stride` + k `dilation` of x, or outside, not in [0,
 * columns). */
struct byi_f32_line {
    const float *const *x, *const *weights; /* [lines] */
    int64_t lines, channels;
    int64_t column, columns, taps, stride, dilation;
    int64_t n;               /* positions                  */
    const float *bias, *add; /* as in struct byi_f32_tile; */
    float low, high;         /* `add` and y are dense      */
    float *y;
};

/* A part of a matrix: `rows` rows of n elements, `ld` elements apart. */
struct byi_f32_part {
    float *y;
    int64_t ld, rows, n;
};
/* Elementwise functions, in place: y = f(y), with the operator's parameters;
 * y = f(y, operand), whose elements are `row` and `column` (0 or 1) apart. */
typedef void byi_f32_unary_fn(const struct byi_f32_part *part, float p0,
                              float p1);
typedef void byi_f32_binary_fn(const struct byi_f32_part *part,
                               const float *operand, int64_t row,
                               int64_t column);
enum byi_f32_binary {
    BYI_F32_ADD,
    BYI_F32_SUB,
    BYI_F32_MUL,
    BYI_F32_DIV,
    BYI_F32_MAX,
    BYI_F32_MIN,
    BYI_F32_BINARIES
};

/* A part of the product of a vector by a matrix that lies as it is:
 * y[j] = bias[j] + sum of x[i] * weights[i * row + j * column], i < n. */
struct byi_f32_vector {
    const float *x, *bias;  /* bias: NULL: none */
    const void *weights;    /* of the kernel's type */
    int64_t n, row, column; /* row or column is 1 */
    float *y;
    int64_t columns;
};

enum {
    /* bytes in front of a block's codes: scales and zero points of a panel */
    BYI_F32_CODES_HEAD = BYI_F32_PANEL * 5,
    BYI_F32_CODES_PANELS = 4 /* of a part, at most */
};

/* A part of the product of a vector by panels of codes (kernels/codes.h). */
struct byi_f32_codes_part {
    const float *x, *sums; /* whole blocks, and the sum of each */
    int64_t blocks, block;
    const uint8_t *panel;
    int64_t next; /* bytes from one panel to the next */
    float *y;
};

/* A patch of Winograd's F(m x m, r x r): its elements outside of the image,
 * those not in rows [top, bottom) and columns [left, right), are zero. */
struct byi_f32_patch {
    const float *x;       /* the patch's first element, maybe outside     */
    int64_t ldrow, ldcol; /* elements between rows, columns of the image  */
    int top, bottom, left, right;
    int64_t channels;
    float *v; /* element (i, j) of the transform: v[(i * n + j) * point] */
    int64_t point;
};

/* Rows of `to`, `ld` elements apart: those of x, which are dense and have n
 * elements, times `scale`, plus `shift`, either of which may be NULL; then
 * ReLU, for `rectify`. */
struct byi_f32_adapted {
    const float *x, *scale, *shift;
    int64_t rows, n, ld;
    bool rectify;
    float *to;
};

/* Outputs of one Winograd tile, for `columns` <= BYI_F32_PANEL channels. */
struct byi_f32_outputs {
    const float *m; /* element (i, j) of the product: m[(i * n + j) * point] */
    int64_t point;
    int rows, cols; /* of the outputs that exist */
    int columns;
    const float *bias; /* as in struct byi_f32_tile */
    const float *add;  /* laid out as y             */
    float low, high;
    float *y;
    int64_t ldrow, ldcol;
};

/* A step of a recurrent layer for one group of hidden units: `width` units of
 * at most `sequences` sequences (see struct byi_f32_kernels). */
struct byi_f32_step {
    const float *h;       /* the whole state before the step               */
    int64_t ldh;          /* elements between its sequences                */
    int64_t hidden;       /* elements of it; 0: it is zero                 */
    const float *weights; /* [hidden][gates][width]                  */
    const float *x;       /* [gates][width]: products with the input */
    int64_t ldx;
    const float *bias; /* GRU: of the last gate's recurrent product  */
    const float *old;  /* GRU: h of this group                       */
    float *c;          /* LSTM: the cell state, in place             */
    int64_t ldc;
    float *y; /* h after the step */
    int64_t ldy;
    int units; /* units that exist: old and y have no others */
};
typedef void byi_f32_step_fn(const struct byi_f32_step *s);

enum byi_f32_algorithm {
    BYI_F32_DIRECT,     /* indirect convolution, or a product */
    BYI_F32_WINOGRAD_2, /* F(2 x 2, 3 x 3)                    */
    BYI_F32_WINOGRAD_4, /* F(4 x 4, 3 x 3)                    */
    BYI_F32_DEPTHWISE,
    BYI_F32_TRANSPOSED, /* of a transposed convolution */
    BYI_F32_VECTOR,     /* by a matrix that is not packed */
    BYI_F32_TILES,      /* of bfloat16, on AMX's tiles    */
    BYI_F32_ALGORITHMS
};

/* The functions of one instruction set. */
struct byi_f32_kernels {
    const char *name;
    const char *names[BYI_F32_ALGORITHMS]; /* in reports: "direct:avx2" */
    int rows;     /* of a full tile                        */
    int panels;   /* of a full tile: 1 or 2                */
    bool partial; /* see struct byi_f32_tile, `last`      */
    byi_f32_tile_fn *tile[2][BYI_F32_ROWS + 1]; /* [panels - 1][rows] */
    /* [of x]; NULL for a type that is not converted in registers */
    void (*depthwise[BYI_F32_TYPES])(const struct byi_f32_line *t);
    /* [of weights][column == 1] */
    void (*vector[BYI_F32_TYPES][2])(const struct byi_f32_vector *v);
    /* [8 bits][all codes_panels, else one] */
    int codes_panels;
    void (*codes_vector[2][2])(const struct byi_f32_codes_part *part);
    /* to[depth][BYI_F32_PANEL] = rows [k, k + depth) of a panel */
    void (*codes_expand[2])(const uint8_t *panel, int64_t block, int64_t k,
                            int64_t depth, float *to);
    /* F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3). Weights: G t G' of the taps t[3][3]
     * of a channel for a panel of outputs, in float64; element (i, j) goes to
     * to[(i * n + j) * point] and the rest of its panel */
    void (*winograd_weights[2])(const double g[][3],
                                const float taps[9][BYI_F32_PANEL], float *to,
                                int64_t point);
    void (*winograd_input[2])(const struct byi_f32_patch *p);
    void (*winograd_output[2])(const struct byi_f32_outputs *o);
    /* to[c pitch + r] = from[r stride + c] for r < rows, c < columns, both at
     * least `width`; `from` and `to` do not overlap */
    void (*transpose)(const float *from, int64_t stride, int64_t rows,
                      int64_t columns, float *to, int64_t pitch);
    /* to[c n + r] = rows[r][c] for n = 2 or [3] rows, c < columns */
    void (*zip[2])(const float *const *rows, int64_t columns, float *to);
    /* n elements of float16 or [bfloat16] to float32, and back, rounded to
     * nearest even */
    void (*widen[2])(const uint16_t *from, float *to, int64_t n);
    void (*narrow[2])(const float *from, uint16_t *to, int64_t n);
    void (*adapt)(const struct byi_f32_adapted *a);
    /* y = the maximum, where NaN wins, or [1] the sum times `scale`, of n > 0
     * vectors of `channels` elements */
    void (*pool[2][2])(const uint16_t *const *taps, int64_t n, int64_t channels,
                       float scale, uint16_t *y);
    /* y = e^x / the sum of all e^x of n > 0 elements, or [1] its logarithm; y
     * may be x. The relative error is below 3e-6 where x is within 20 of the
     * largest; a result below 2e-38 may be 0. */
    void (*softmax[2])(const float *x, float *y, int64_t n);
    const char *softmax_name;
    const char *attention; /* name: attention.h */
    const char *recurrent; /* the name of the next three */
    int width;             /* hidden units of a group: floats of a vector */
    int sequences;         /* that a step computes, at most */
    byi_f32_step_fn *step[2][BYI_F32_SEQUENCES + 1]; /* LSTM, GRU */
    const char *bands;                               /* name: bands.h */
    byi_f32_unary_fn *unary[BYI_N_OPS];              /* NULL: none */
    byi_f32_binary_fn *binary[BYI_F32_BINARIES];
};

/* The kernels of this instruction set; those of the widest one that the CPU and
 * BYOC_MAX_ISA allow. */
const struct byi_f32_kernels *byi_f32_kernels_of(enum byi_isa isa);
const struct byi_f32_kernels *byi_f32_kernels(void);
extern const struct byi_f32_kernels byi_f32_base, byi_f32_avx2, byi_f32_avx512;

#endif
