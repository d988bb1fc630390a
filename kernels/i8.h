/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8.h: exact 8-bit convolutions and products, channels last, for every
 * instruction set. Results do not depend on the number of threads nor, except
 * for the float32 functions of ACTIVATED, on the instruction set:
 *
 *   sum = sum over k of (x - x zero) * (weights - weights zero) + bias, 32 bits
 *   SUMS       sum
 *   FLOATS     (float) sum * scale
 *   QUANTIZED  q + zero, a byte, where q = round(clamp((float) sum * scale,
 *              low, high)), half to even
 *   ADDED      round(clamp((q * scale' + (b - b zero) * b scale) / scale'',
 *              low'', high'')) + zero'', where b is the summand, a tensor of
 *              bytes
 *   ACTIVATED  round(clamp(f((float) sum * scale) / f scale, low, high)) +
 *              zero, a byte, where f is a chain of float32 functions
 *
 * Blocks also multiply bfloat16 numbers and split float16 numbers. Their sums
 * and biases are float32, and b, if there is one, has elements like y:
 *
 *   FLOATS     clamp(sum + b, low, high), then SiLU if `silu`
 *   FLOAT16S   the same, rounded to float16
 *   BFLOAT16S  the same, rounded to bfloat16
 *
 * Kernels multiply words of 32 bits, which have consecutive elements of a sum:
 * with form BYTES, 4 unsigned bytes by 4 signed ones; with form PAIRS, 2 by 2
 * numbers of 16 bits. Weights are packed in panels of BYI_I8_PANEL columns,
 * [words][BYI_I8_PANEL], the same for all instruction sets. x is read as
 * unsigned bytes; its zero point is part of the addend of a column. The caller
 * provides all memory; nothing here allocates or fails. */
#ifndef BYI_I8_H
#define BYI_I8_H

#include "kernels/f32.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BYI_I8_PANEL = 16,                 /* columns of a panel                 */
    BYI_I8_ROWS = 14,                  /* most rows of a tile */
    BYI_I8_COLUMNS = 2 * BYI_I8_PANEL, /* most columns of a tile */
    BYI_I8_STRIP = 64,                 /* most channels of a strip */
    BYI_I8_BLOCK = 16,                 /* fewest rows that a block reads */
    BYI_I8_AXES = 3,                   /* spatial axes */
    BYI_I8_FUNCTIONS = 4               /* most functions of ACTIVATED */
};

/* The forms of words and the kinds of results, as above. */
enum byi_i8_form { BYI_I8_PAIRS, BYI_I8_BYTES, BYI_I8_FORMS };
enum byi_i8_result {
    BYI_I8_SUMS,
    BYI_I8_FLOATS,
    BYI_I8_FLOAT16S, /* this and the next: of bfloat16 and split numbers only */
    BYI_I8_BFLOAT16S,
    BYI_I8_QUANTIZED,
    BYI_I8_ADDED,
    BYI_I8_ACTIVATED /* kernels compute FLOATS, and i8_results.c the rest */
};

/* The tensor that ADDED adds, and how to convert the sum to bytes. `flip` is
 * xored with its bytes, which makes them unsigned. */
struct byi_i8_summand {
    const uint8_t *at;             /* with the layout of y */
    int64_t ld;                    /* bytes between its rows */
    uint8_t flip;                  /* 0x80 for signed bytes */
    int32_t b_zero;                /* zero point of the flipped bytes */
    float q_scale, b_scale, scale; /* scale', b scale and scale'' above */
    float low, high;               /* bounds of the quotient */
    int32_t zero;                  /* zero point of the results */
};

/* The chain f of ACTIVATED: functions[0], ..., functions[n - 1], each of which
 * is applied to the result of the one before; and `scale`, the quantisation
 * step of the bytes, by which the last result is divided. */
struct byi_i8_activation {
    struct {
        byi_f32_unary_fn *unary;
        float p0, p1;
    } functions[BYI_I8_FUNCTIONS];
    int n;
    float scale;
};

/* How to convert sums to results. `add` and `scale` have an entry for each
 * column of whole panels. */
struct byi_i8_epilogue {
    enum byi_i8_result result;
    const int32_t *add;
    const float *scale;
    float low, high;
    int32_t zero;
    /* ADDED. For sums of bfloat16 and split numbers: `summand.at`, if not NULL,
     * has elements like y, which are added to the sums before clamping to [low,
     * high]. */
    struct byi_i8_summand summand;
    bool silu; /* for these sums: SiLU follows the clamp */
    /* For QUANTIZED: `add` includes BYI_I8_LIFT. This requires that no sum
     * exceeds 2^23 and that results cover the whole range of bytes, so that a
     * negative sum gives the lowest byte. */
    bool lifted;
};

/* The bits of the float 2^23. Adding an integer n from 0 to 2^23 to them gives
 * the bits of the float 2^23 + n. So a sum that starts with these bits can be
 * scaled by one fused multiply-add: (2^23 + sum) * scale - 2^23 * scale is
 * rounded like sum * scale. It is negative for a negative sum. */
enum { BYI_I8_LIFT = 0x4b000000 };

/* The bits of 2^-120 as bfloat16, too small to change a sum. With the number's
 * sign, it replaces a low part of 0 of a split number. */
enum { BYI_I8_TINY = 0x0380 };

/* --- kernels of one instruction set --------------------------------------- */

/* Tiles of a product, one below the other: some rows of x, each in `n_pieces`
 * pieces of `words` words, times one or two panels of weights. */
struct byi_i8_tile {
    int64_t tiles;
    const uint8_t *const *x; /* [tiles][n_pieces][BYI_I8_ROWS] */
    int64_t n_pieces, words;
    const uint32_t *weights; /* the first panel */
    int64_t next;            /* words from one panel to the next */
    /* memory to prefetch, of as many bytes as a panel's words, one after the
     * other for the first `fetches` tiles */
    const char *fetch;
    int64_t fetches;
    struct byi_i8_epilogue e;
    char *y;
    int64_t ldy; /* bytes between its rows */
};
typedef void byi_i8_tile_fn(const struct byi_i8_tile *t);

/* The elements of a block's x. BFLOAT16: words have 2 numbers; sums and addends
 * are float32. SPLIT: as BFLOAT16, and a number is the sum of two, see `split`;
 * the products of two low parts, below 2^-14 of the numbers' product, are left
 * out. SPLIT_EXACTLY: with them. */
enum byi_i8_values {
    BYI_I8_UNSIGNED,
    BYI_I8_SIGNED,
    BYI_I8_BFLOAT16,
    BYI_I8_SPLIT,
    BYI_I8_SPLIT_EXACTLY
};

/* A block of a product in form BYTES: rows [from, from + rows) of x, of which
 * the first `x_rows` rows, at least BYI_I8_BLOCK, may be read, times adjacent
 * panels of `words` words. */
struct byi_i8_block {
    const uint8_t *x;
    int64_t ldx; /* bytes between rows of x */
    int64_t x_rows, from, rows;
    int64_t words, columns;
    const uint32_t *weights;
    enum byi_i8_values values;
    int64_t tap_words; /* BFLOAT16 and SPLIT: words of a tap of the window */
    /* the distances of the taps of a row, in bytes; NULL: taps are adjacent */
    const int64_t *taps;
    /* Not 0: of each `pitch` rows, from row 0 of x on, only the first `width`
     * have results; y is the result of row 0. */
    int64_t pitch, width;
    struct byi_i8_epilogue e; /* ADDED: `summand.at` is for the first result */
    char *y;
    int64_t ldy; /* bytes between its rows */
};

/* A copy of rows of x. A row consists of lines of n bytes, `step` apart, which
 * the copy makes adjacent. `flip` is xored with each byte. If `may_overrun`, up
 * to BYI_I8_COLUMNS elements more may be read and written. */
struct byi_i8_lines {
    const uint8_t *from;
    int64_t rows, next;     /* bytes from one row to the next */
    int64_t lines, step, n; /* of a row: lines, their distance and bytes */
    bool may_overrun;
    uint8_t flip;
    void *to;
    int64_t ld; /* bytes from one result to the next */
};

/* n outputs of a row of a depthwise convolution, for one block of BYI_I8_PANEL
 * channels: output i is the sum over t of x[i * step + offsets[t]] *
 * weights[t], each of which is a vector of words. */
struct byi_i8_taps {
    const uint32_t *x;
    int64_t step; /* words */
    const int64_t *offsets;
    const uint32_t *weights;
    int64_t taps, n;
    struct byi_i8_epilogue e;
    char *y;
    int64_t ldy; /* bytes between outputs       */
    int columns; /* channels that exist in y    */
};

/* Constants of a strip of 4 * lanes * vectors channels, in the order of a
 * kernel whose vectors have `lanes` lanes of 128 bits: entry (j * lanes + L) *
 * 4 + i is for channel 4 * vectors * L + 4 j + i. There are 4 vectors in form
 * BYTES, 2 in form PAIRS. */
struct byi_i8_strip_weights {
    /* [output row][column]; the window of the second output row is a row
     * further down. In form PAIRS the words of rows 2 and 3 of the window
     * follow those of rows 0 and 1. */
    _Alignas(64) uint32_t weights[2][3][BYI_I8_STRIP];
    _Alignas(64) int32_t add[BYI_I8_STRIP];
    _Alignas(64) float scale[BYI_I8_STRIP];
};

/* A row of n outputs, of up to 64 channels, of a depthwise convolution whose
 * window has 3 adjacent columns and up to 4 rows; or two such rows,
 * if the stride is 1 and windows have up to 3 rows. A column of x is padding,
 * or is at rows[i] + column * steps[i]. */
struct byi_i8_strip {
    const uint8_t *rows[4]; /* the first column that is not padding */
    int64_t steps[4];
    const uint8_t *zeros;   /* padding, for all channels           */
    int64_t before, inside; /* columns of padding, then columns of x */
    int64_t n, stride;      /* `stride` is 1 or 2 */
    const struct byi_i8_strip_weights *w;
    bool lifted;             /* as in the epilogue           */
    int32_t low, high, zero; /* `low` and `high` are bounds of the results */
    uint8_t flip;
    /* Results are floats, for whole panels: those of other channels are 0. Only
     * for kernels with strip_floats. */
    bool floats;
    char *y;
    int64_t ldy;  /* bytes between outputs                 */
    int64_t next; /* bytes to the second row of outputs; 0: one row */
    int channels; /* at least 1 */
};

/* Interleaves the bytes of rows as n vectors of words. Vector i is made from
 * the 16 bytes at rows[r] + i * steps[r] of each of 4 (BYTES) or 2 (PAIRS) rows
 * r. Word k has byte k of each row. Step 0 repeats a row. */
struct byi_i8_interleaving {
    const uint8_t *rows[4];
    int64_t steps[4];
    int64_t n;
    int columns; /* bytes that exist, at most BYI_I8_PANEL */
    uint8_t flip;
    uint32_t *to;
};

/* y = round(clamp(((a - a zero) * a scale + (b - b zero) * b scale) / scale,
 * low, high)) + zero; if `multiplies`, with the product of the two instead of
 * their sum. A flip is 0x80 for signed bytes, else 0. */
struct byi_i8_elementwise {
    const uint8_t *a, *b;
    uint8_t *y;
    int64_t n;
    int32_t zeros[2]; /* of the flipped bytes */
    uint8_t flips[2];
    float scales[2], scale;
    float low, high; /* bounds of the quotient */
    int32_t zero;
    bool multiplies;
};

/* For kernels/i8_winograd.c: a tile of 6 x 6 inputs, of which rows [top,
 * bottom) and columns [left, right) exist; the others are the zero point. */
struct byi_i8_patch {
    const uint8_t *x;   /* its first row and column */
    int64_t line, step; /* bytes between rows, columns */
    int64_t top, bottom, left, right;
    int64_t channels; /* a multiple of 32 */
    int32_t zero;     /* of the flipped bytes */
    uint8_t flip;
    int16_t *v;    /* transformed inputs, [point][channel] */
    int64_t point; /* elements of v from one of the 36 points of a transformed
                    * tile to the next */
};

/* For kernels/i8_winograd.c: up to 4 x 4 outputs of a panel, from products of
 * 32 bits. */
struct byi_i8_outputs {
    const uint32_t *m; /* products, [point][column] */
    int64_t point;     /* elements of m from one point to the next */
    struct byi_i8_epilogue e;
    char *y;
    int64_t line, ldy;         /* bytes between rows, columns */
    int64_t n_rows, n_columns; /* rows and columns of outputs that exist */
};

/* When products in form BYTES are exact. */
enum byi_i8_bytes {
    BYI_I8_NEVER, /* the kernels have no products of bytes */
    /* products of bytes are exact if the absolute values of any two adjacent
     * weights in a word sum up to 128 at most */
    BYI_I8_BOUNDED,
    BYI_I8_ALWAYS
};

/* The functions of one instruction set. */
struct byi_i8_kernels {
    const char *names[2]; /* of convolutions, of depthwise convolutions */
    int rows;             /* rows of a full tile */
    int panels;           /* panels of a full tile: 1 or 2 */
    enum byi_i8_bytes bytes;
    /* [form][panels - 1][rows] */
    byi_i8_tile_fn *tile[BYI_I8_FORMS][2][BYI_I8_ROWS + 1];
    /* [form][rows], of `panels` panels without the last BYI_I8_PANEL / 2
     * columns */
    byi_i8_tile_fn *half_tile[BYI_I8_FORMS][BYI_I8_ROWS + 1];
    void (*block)(const struct byi_i8_block *b); /* NULL: tiles */
    const char *block_names[2];                  /* of bytes, of bfloat16 */
    bool block_bytes; /* blocks multiply bytes, not only bfloat16 numbers */
    /* Split float16 numbers, rows of n, exactly: number i of a row is to[i] +
     * to[half + i], two numbers of bfloat16. `to` has rows of 2 `half` numbers,
     * where half >= n is a multiple of 32; the others become 0. NULL: blocks
     * do not multiply split numbers. */
    void (*split)(const uint16_t *from, int64_t rows, int64_t n, int64_t half,
                  uint16_t *to);
    void (*taps[BYI_I8_FORMS])(const struct byi_i8_taps *t);
    void (*interleave[BYI_I8_FORMS])(const struct byi_i8_interleaving *w);
    /* for up to 32 channels or, [1], up to 64, but at most strip_channels;
     * NULL: use taps and interleave */
    void (*strip[2])(const struct byi_i8_strip *s);
    enum byi_i8_form strip_form;
    int strip_channels; /* most channels: 16 or 64 */
    /* strips support `floats`; only if strip_channels is BYI_I8_PANEL */
    bool strip_floats;
    bool lifts; /* kernels support `lifted` */
    void (*winograd_inputs)(const struct byi_i8_patch *w);
    void (*winograd_outputs)(const struct byi_i8_outputs *o);
    /* copy bytes to rows of elements: of bytes, or of 16 bits for PAIRS */
    void (*copy[BYI_I8_FORMS])(const struct byi_i8_lines *l);
    void (*elementwise)(const struct byi_i8_elementwise *p);
    /* y (columns, rows) = x (rows, columns) */
    void (*transpose)(const uint8_t *x, int64_t rows, int64_t columns,
                      uint8_t *y);
    /* y = round(clamp(x / scale, low, high)) + zero; and back, (x - zero) *
     * scale, where x is flipped first */
    void (*quantize)(const float *x, int64_t n, float scale, float low,
                     float high, int32_t zero, uint8_t *y);
    void (*dequantize)(const uint8_t *x, int64_t n, uint8_t flip, int32_t zero,
                       float scale, float *y);
};

/* The kernels of instruction set `isa`, and of the widest one that the CPU and
 * BYOC_MAX_ISA allow. */
const struct byi_i8_kernels *byi_i8_kernels_of(enum byi_isa isa);
const struct byi_i8_kernels *byi_i8_kernels(void);
extern const struct byi_i8_kernels byi_i8_base, byi_i8_avx2, byi_i8_avx_vnni,
    byi_i8_avx512, byi_i8_vnni, byi_i8_bf16, byi_i8_amx;

/* --- convolutions and products -------------------------------------------- */

/* A convolution: x (images, in..., channels), y (images, out..., outputs), both
 * dense. A product of M x K by K x N has M images of one position, K channels
 * and N outputs. */
struct byi_i8_conv {
    int64_t images, in[BYI_I8_AXES], out[BYI_I8_AXES];
    int64_t channels, outputs, groups;
    int64_t size[BYI_I8_AXES], stride[BYI_I8_AXES], dilation[BYI_I8_AXES];
    int64_t pad[BYI_I8_AXES]; /* before the first element */
    bool x_signed, w_signed;
    bool centred; /* weights are signed and have no zero points */
    /* x and weights are bfloat16, and each number counts as 2 channels; sums
     * and biases are float32, and the result is FLOATS, FLOAT16S or BFLOAT16S.
     * Only for kernels with blocks. */
    bool bfloat16;
    /* of bfloat16: each tap has the high parts of all numbers, then the low
     * parts; parts are multiples of a tile's 32 numbers */
    bool split, exact; /* exact: add the products of low parts, too */
    /* of split: x has float16 numbers, and each row is split after it was
     * gathered, as a single tap */
    bool splits_rows;
    /* Of bfloat16: not 0: x is one image that includes its padding; from one
     * line to the next there are `pitch` positions, and a result's position is
     * that of its first tap. Strides are 1. */
    int64_t pitch;
    enum byi_i8_result result;
    /* byi_i8_conv_plan() sets these; `kernels` only if it is NULL */
    const struct byi_i8_kernels *kernels;
    bool depthwise;
    bool blocks;   /* use blocks, if weights can be packed as BYTES */
    bool winograd; /* if the weights are small enough */
};

/* Unpacked weights. The element for output o, channel c of its group and tap
 * (i, j, k) is at[o * strides[0] + c * strides[1] + i * strides[2] + ...]. */
struct byi_i8_weights {
    const uint8_t *at;
    int64_t strides[2 + BYI_I8_AXES];
    const uint8_t *zeros; /* zero points `zero_step` apart; NULL: all 0 */
    int64_t zero_step;
};

/* Arguments of a run. Bias and scale have one element per output, or one
 * element for all if their step is 0. */
struct byi_i8_conv_run {
    const struct byi_i8_conv *conv;
    const void *x, *packed;
    uint8_t x_zero;      /* as in x, not flipped */
    const int32_t *bias; /* NULL: none     */
    const float *scale;  /* NULL for SUMS  */
    int64_t bias_step, scale_step;
    float low, high; /* these and `zero`: as in the epilogue */
    int32_t zero;
    struct byi_i8_summand summand; /* as in the epilogue; `ld` is not read */
    const struct byi_i8_activation *activation; /* read for ACTIVATED only */
    bool silu;                                  /* as in the epilogue */
    void *y;
    void *scratch; /* 64-byte aligned */
    int threads;   /* at most the number for which the scratch was sized */
};

/* Choose the kernels, unless they are set, and the algorithm. */
void byi_i8_conv_plan(struct byi_i8_conv *conv);
/* Name of the kernels, such as "i8:avx512_amx" or "i8_depthwise:avx2"; a static
 * string. */
const char *byi_i8_conv_name(const struct byi_i8_conv *conv);
/* Bytes of the memory for the packed weights, which must be 64-byte aligned. */
uint64_t byi_i8_conv_packed(const struct byi_i8_conv *conv);
/* Pack the weights to byi_i8_conv_packed() bytes at `to`. */
void byi_i8_conv_pack(const struct byi_i8_conv *conv,
                      const struct byi_i8_weights *weights, void *to);
/* Whether `a` and `b` pack the same weights to the same bytes. */
bool byi_i8_conv_packs_alike(const struct byi_i8_conv *a,
                             const struct byi_i8_conv *b);
/* Bytes of scratch for a run with at most `threads` threads. */
uint64_t byi_i8_conv_scratch(const struct byi_i8_conv *conv, int threads);
/* Compute y. The convolution must be planned, and its weights packed. */
void byi_i8_conv_run(const struct byi_i8_conv_run *run);

#endif
