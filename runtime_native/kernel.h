/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: declarations that the kernel files share: lists of element types
 * for typed loops, tensor arithmetic, sizes of thread teams, functions that
 * several files call, and the loops that are compiled once per instruction set.
 */
#ifndef BYI_KERNEL_H
#define BYI_KERNEL_H

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "rows.h"

#include "core/base/isa.h"
#include "core/ops/layout.h"
#include "core/ops/taps.h"
#include "kernels/f32.h"

/* clang-format off */
/* T(id, C type): the element types that are integers in C; those that are
 * floats. */
#define BYI_EACH_INT(T)                                                        \
    T(U8, uint8_t) T(I8, int8_t) T(U16, uint16_t) T(I16, int16_t)              \
    T(U32, uint32_t) T(I32, int32_t) T(U64, uint64_t) T(I64, int64_t)
#define BYI_EACH_FLOAT(T) T(F32, float) T(F64, double)
/* T(id, C type, C accumulator type): integers wrap, so their accumulators are
 * unsigned. */
#define BYI_EACH_SUM(T)                                                        \
    T(F32, float, double) T(F64, double, double) T(U8, uint8_t, uint32_t)      \
    T(I8, int8_t, uint32_t) T(U16, uint16_t, uint32_t)                         \
    T(I16, int16_t, uint32_t) T(U32, uint32_t, uint32_t)                       \
    T(I32, int32_t, uint32_t) T(U64, uint64_t, uint64_t)                       \
    T(I64, int64_t, uint64_t)

/* LOOP(op, id, C type, expr) for the types of binary.def's expressions */
#define BYI_EACH_FLOAT_EXPR(LOOP, op, expr)                                    \
    LOOP(op, F32, float, expr) LOOP(op, F64, double, expr)
#define BYI_EACH_SIGNED_EXPR(LOOP, op, expr)                                   \
    LOOP(op, I8, int8_t, expr) LOOP(op, I16, int16_t, expr)                    \
    LOOP(op, I32, int32_t, expr) LOOP(op, I64, int64_t, expr)
#define BYI_EACH_UNSIGNED_EXPR(LOOP, op, expr)                                 \
    LOOP(op, U8, uint8_t, expr) LOOP(op, U16, uint16_t, expr)                  \
    LOOP(op, U32, uint32_t, expr) LOOP(op, U64, uint64_t, expr)
/* clang-format on */

enum { BYI_DTYPES = BYI_LAST_DTYPE + 1 }; /* indexed by dtype */

/* Read element i of operand 1 as an axis of a tensor of rank `rank`, and
 * set *axis to the axis counted from the front. Errors: BYOC_EINVAL. */
static inline enum byoc_status byi_axis_operand(const struct byi_call *call,
                                                int64_t i, uint32_t rank,
                                                uint32_t *axis,
                                                struct byoc_error *err)
{
    const int64_t found = byi_tensor_int(&call->in[1], i), r = rank;
    if (found < -r || found >= r)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: axis %lld is out of range for rank %u, expected "
                        "%lld to %lld",
                        call->op->name, (long long)found, rank, (long long)-r,
                        (long long)r - 1);
    *axis = (uint32_t)(found < 0 ? found + r : found);
    return BYOC_OK;
}

/* Element i of a float32 or float64 tensor. */
static inline double byi_get_real(const struct byi_tensor *t, int64_t i)
{
    return t->dtype == BYOC_F64 ? ((const double *)t->data)[i]
                                : (double)((const float *)t->data)[i];
}

/* Set element i of a float32 or float64 tensor. */
static inline void byi_put_real(const struct byi_tensor *t, int64_t i,
                                double value)
{
    if (t->dtype == BYOC_F64)
        ((double *)t->data)[i] = value;
    else
        ((float *)t->data)[i] = (float)value;
}

/* Operand i; NULL if the call omits it. */
static inline const struct byi_tensor *byi_optional_operand(
    const struct byi_call *call, uint32_t i)
{
    return i < call->n_in && !byi_is_absent(call->in[i].rank, call->in[i].dims)
               ? &call->in[i]
               : NULL;
}

/* Set element i of an integer tensor to the low bits of `value`. */
static inline void byi_put_int(const struct byi_tensor *t, int64_t i,
                               uint64_t value)
{
    switch (byoc_dtype_size(t->dtype)) {
    case 1:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
        return;
    case 2:
        ((uint16_t *)t->data)[i] = (uint16_t)value;
        return;
    case 4:
        ((uint32_t *)t->data)[i] = (uint32_t)value;
        return;
    default:
        ((uint64_t *)t->data)[i] = value;
    }
}

/* The number of threads worth using for `work` simple operations. Waking a team
 * takes some microseconds, in which one thread does tens of thousands of
 * operations.
 */
static inline int byi_team(const struct byi_call *call, int64_t work)
{
    int64_t most = work >> 15;
    if (most < 1)
        return 1;
    return (int)(most < (int64_t)call->threads ? most : call->threads);
}

/* The number of threads worth using for n vectorised multiply-adds: about eight
 * take as long as one operation that is bound by memory. */
static inline int byi_team_of_products(const struct byi_call *call, int64_t n)
{
    return byi_team(call, n / 8);
}

/* --- half.c ------------------------------------------------------------- */

/* Convert n elements from float16 or bfloat16 (`dtype`) to float32, and back.
 */
void byi_widen(enum byoc_dtype dtype, const void *src, float *dst, int64_t n);
void byi_narrow(enum byoc_dtype dtype, const float *src, void *dst, int64_t n);
/* byi_run_float runs `kernel`, on float32 copies if any tensor is float16 or
 * bfloat16, and returns its status. Every kernel of float dtypes is called
 * through it, with at most 8 operands and 8 results. byi_scratch_float returns
 * the bytes of scratch that it needs. */
enum byoc_status byi_run_float(const struct byi_call *call,
                               const struct byi_kernel *kernel,
                               struct byoc_error *err);
uint64_t byi_scratch_float(const struct byi_call *call,
                           const struct byi_kernel *kernel);
/* Check the dtype of a kernel that computes in float32 or float64. Errors:
 * BYOC_EUNSUPPORTED. */
enum byoc_status byi_check_wide(const struct byi_call *call,
                                enum byoc_dtype dtype, struct byoc_error *err);
/* Return BYOC_EUNSUPPORTED with "OP: found dtype X, expected `expected`". */
enum byoc_status byi_bad_dtype(const struct byi_call *call,
                               enum byoc_dtype dtype, const char *expected,
                               struct byoc_error *err);

/* Define NAME_run and NAME_scratch for all float dtypes from a kernel of
 * float32 and float64. */
#define BYI_FLOAT_KERNEL(name, run_fn, scratch_fn)                             \
    static const struct byi_kernel name##_kernel = {run_fn, scratch_fn};       \
    static enum byoc_status name##_run(const struct byi_call *call,            \
                                       struct byoc_error *err)                 \
    {                                                                          \
        return byi_run_float(call, &name##_kernel, err);                       \
    }                                                                          \
    static uint64_t name##_scratch(const struct byi_call *call)                \
    {                                                                          \
        return byi_scratch_float(call, &name##_kernel);                        \
    }

/* Define byi_NAME_plain(), the reference for tests, and NAME_run_fast() by
 * run_NAME(call, fast, err). */
#define BYI_PLAIN_AND_FAST(name)                                               \
    enum byoc_status byi_##name##_plain(const struct byi_call *call,           \
                                        struct byoc_error *err)                \
    {                                                                          \
        return run_##name(call, false, err);                                   \
    }                                                                          \
    static enum byoc_status name##_run_fast(const struct byi_call *call,       \
                                            struct byoc_error *err)            \
    {                                                                          \
        return run_##name(call, true, err);                                    \
    }

/* --- text.c -------------------------------------------------------------- */

/* Return the error of a failed byi_store_string: BYOC_EUNSUPPORTED if the call
 * has no store, otherwise BYOC_ENOMEM. */
byi_kernel_run byi_no_store;

/* --- window.c ----------------------------------------------------------- */

/* A window that slides over up to three spatial axes. If there are fewer, the
 * leading axes have size 1. */
struct byi_window {
    int64_t in[3], out[3], size[3]; /* of the data, the outputs, the window */
    int64_t stride[3], dilation[3], pad[3]; /* padding at the beginning */
    int64_t end[3];                         /* padding at the end */
    int64_t in_count, out_count, taps;      /* products of in, out, size */
};
/* Read a window from the attributes; `in`, `out` and `size` have n entries. */
void byi_window_read(const struct byi_attrs *attrs, uint32_t n,
                     const int64_t *in, const int64_t *out, const int64_t *size,
                     struct byi_window *w);
/* Find the taps [*first, *last) along an axis that lie on data, for the window
 * at output `at`. A tap reads input at * stride - pad + tap * dilation. */
void byi_window_taps(const struct byi_window *w, int axis, int64_t at,
                     int64_t *first, int64_t *last);
/* Find the outputs [*first, *last) along the last axis whose tap `tap` lies on
 * data. */
void byi_window_outputs(const struct byi_window *w, int64_t tap, int64_t *first,
                        int64_t *last);

/* How the elements under a window are combined: maximum (NaN if one is NaN),
 * sum, or sum of products with weights. */
enum byi_window_kind {
    BYI_WINDOW_MAX,
    BYI_WINDOW_SUM,
    BYI_WINDOW_PRODUCT,
    BYI_WINDOW_KINDS
};
enum { BYI_WINDOW_TAPS = 16 }; /* largest number of columns of a window */

/* A window that slides over every plane of x (images, channels, in[0], in[1],
 * in[2]) and computes y (images, channels * repeat, out[0], out[1], out[2]).
 * Sums are multiplied by `factors`, (out[0], out[1], out[2]), unless that is
 * NULL. Products have weights (channels * repeat, size[1], size[2]); `repeat`
 * is 1 for the others. */
struct byi_sliding {
    enum byi_window_kind kind;
    const struct byi_window *w;
    int64_t images, channels, repeat;
    const float *x, *weights, *factors;
    float *y;
};
/* Most planes are processed in bands: the inputs of some rows of outputs are
 * copied with a border of padding, so that no window is a special case. A band
 * has one of two layouts.
 *   Rows: a row is copied as `stride` phases (columns 0, stride, 2 stride ...,
 *     then 1, stride + 1, ...): adjacent outputs read adjacent elements.
 *   Side by side, for small planes: each lane of a vector holds one plane, and
 *     each column is a vector.
 */
struct byi_band {
    const struct byi_window *w;
    bool side_by_side;        /* the second layout */
    int64_t out_rows, planes; /* of a band: rows of outputs, and planes */
    /* floats of a phase of a row, of a row, and of a plane (of all planes if
     * side by side); each is a number of whole vectors */
    int64_t phase, pitch, size;
    int64_t lead;    /* floats before the first row */
    int64_t weights; /* offset of the vectors of a product's weights */
    int64_t floats;  /* of the whole band */
    /* outputs of a row; inputs from one output to the next */
    int64_t row_outputs, step;
    int64_t taps[BYI_WINDOW_TAPS]; /* offset of column c's tap */
    int64_t columns;               /* of data that a row reads */
    int64_t even, odd;             /* offsets of the phases of these columns */
};
/* Maxima and sums of other windows: for each row of outputs, the rows under its
 * windows are combined into a line, which has a border of padding, and then the
 * columns under each window. A stride above 1 is handled in one of two ways.
 * Phases of the line are copied first: the columns starts[p], starts[p] +
 * stride ... Or windows at every column are computed, and those of the outputs
 * are copied. */
struct byi_line {
    int64_t before;  /* columns of padding before the data */
    int64_t columns; /* of data */
    int64_t length;  /* columns that are filled: padding, data, padding */
    int64_t stride;
    int64_t phases;        /* number of phases that are copied */
    int64_t phase;         /* floats from a phase to the next */
    int64_t used;          /* elements of a phase that are read */
    bool every_column;     /* windows at every column are computed: no phases */
    int64_t split;         /* where the phases, or these windows, begin in the
                            * line's buffer */
    int64_t floats;        /* of the buffer */
    int64_t size;          /* columns of a window */
    int64_t out;           /* outputs of the row */
    const int64_t *starts; /* first column of each phase */
    const int64_t *taps;   /* offset of each column's tap */
};
/* Whether these loops support the window: it must have few taps and little
 * padding, and for products at most two axes, and a stride of 1 or 2 along the
 * last axis. */
bool byi_sliding_fits(enum byi_window_kind kind, const struct byi_window *w);
/* Bytes of scratch that byi_sliding_run needs. */
uint64_t byi_sliding_scratch(const struct byi_window *w, uint32_t threads);
/* Compute y on up to call->threads threads. */
void byi_sliding_run(const struct byi_sliding *v, const struct byi_call *call,
                     void *scratch);

/* Set at[] to the coordinates of position `flat` of a row-major box. */
static inline void byi_unflatten(const int64_t dims[3], int64_t flat,
                                 int64_t at[3])
{
    for (int i = 3; i-- > 0;) {
        at[i] = flat % dims[i];
        flat /= dims[i];
    }
}

/* --- relayout.c ---------------------------------------------------------- */

/* Layout of an image: channels first, last or in blocks. `block` channels of a
 * position are contiguous (1 if channels are first, all if they are last). The
 * other positions of the block follow, and then the other blocks. */
struct byi_image_layout {
    int64_t n, c, block;
    int64_t count;        /* positions                       */
    const int64_t *space; /* the spatial part of dims[]      */
    uint32_t spatial;     /* number of spatial axes          */
    bool last;
};
/* Describe tensor t, whose dims must live as long as *image;
 * byi_layout_is_data must accept `layout`. */
void byi_image_read(const struct byi_tensor *t, const char *layout,
                    struct byi_image_layout *image);
/* Offset of position 0 of channel c of image n; positions are image->block
 * apart. */
static inline int64_t byi_image_at(const struct byi_image_layout *image,
                                   int64_t n, int64_t c)
{
    const int64_t block = image->block;
    return (n * (image->c / block) + c / block) * image->count * block +
           c % block;
}

/* Layout of convolution weights: element (o, i, t) is at byi_filter_at(o, i) +
 * t * tap. */
struct byi_filter {
    int64_t o, i;         /* outputs, inputs: one of them per group, as in the
                           * type */
    const int64_t *space; /* the window's part of dims[]             */
    int64_t tap;
    struct {
        int64_t block, outer, inner; /* block size; stride between blocks;
                                      * stride within one */
    } at_o, at_i;
};
/* Describe the weights t, whose dims must live as long as *weights;
 * byi_layout_is_kernel must accept `layout`. */
void byi_filter_read(const struct byi_tensor *t, const char *layout,
                     struct byi_filter *weights);
static inline int64_t byi_filter_at(const struct byi_filter *w, int64_t o,
                                    int64_t i)
{
    return o / w->at_o.block * w->at_o.outer +
           o % w->at_o.block * w->at_o.inner +
           i / w->at_i.block * w->at_i.outer +
           i % w->at_i.block * w->at_i.inner;
}

/* Copy t from layout `from` to layout `to`, such as "NCHW" and "NCHW8c"; dst
 * must not overlap t's data. */
void byi_relayout_named(const struct byi_call *call, const struct byi_tensor *t,
                        const char *from, const char *to, void *dst);

/* --- axes.c ------------------------------------------------------------- */

/* Some axes of a tensor, which need not be adjacent in memory. */
struct byi_box {
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK], strides[BYI_MAX_RANK]; /* in elements */
    int64_t count;                                     /* product of dims */
};
/* A tensor's axes, split into kept axes (the outer loop) and reduced axes (the
 * inner loop). */
struct byi_axes {
    struct byi_box kept, reduced;
};
/* Split the axes of t; reduced[i] says whether axis i is reduced. Merges
 * adjacent axes of the same group if possible, and drops axes of size 1. */
void byi_axes_split(const struct byi_tensor *t, const bool *reduced,
                    struct byi_axes *axes);
/* The offset of position `flat` of a box. */
int64_t byi_box_offset(const struct byi_box *box, int64_t flat);
/* The rows of a box: `rows` rows of n elements along its last axis; the
 * elements of a row are `stride` apart. */
struct byi_box_rows {
    int64_t rows, n, stride;
};
struct byi_box_rows byi_box_rows(const struct byi_box *box);
/* to[c * pitch + r] = from[r * stride + c] for r < rows, c < columns, elements
 * of `size` bytes; `from` and `to` must not overlap. */
void byi_transpose(size_t size, const void *from, int64_t stride, int64_t rows,
                   int64_t columns, void *to, int64_t pitch);

enum {
    BYI_COLUMNS = 512, /* most results that are computed together */
    BYI_BLOCK_BYTES =
        16384,      /* of a transposed block, which stays in the cache */
    BYI_NARROW = 64 /* rows with fewer elements are short */
};
/* Returns how many of `outer` blocks (n, inner) should be transposed together
 * to (n, inner, lanes). The result has at most BYI_BLOCK_BYTES, and inner *
 * lanes <= BYI_COLUMNS adjacent elements of `size` bytes. Returns 1, for no
 * transpose, if n * inner is more than `most` or the elements are adjacent
 * already. */
int64_t byi_lanes(int64_t outer, int64_t n, int64_t inner, size_t size,
                  int64_t most);
/* Run `body` once for each element, with `at` set to its offset. */
#define BYI_FOR_BOX(box, at, body)                                             \
    do {                                                                       \
        const struct byi_box_rows rows_ = byi_box_rows(box);                   \
        for (int64_t row_ = 0; row_ < rows_.rows; row_++) {                    \
            int64_t at = byi_box_offset(box, row_ * rows_.n);                  \
            for (int64_t i_ = 0; i_ < rows_.n; i_++, at += rows_.stride) {     \
                body                                                           \
            }                                                                  \
        }                                                                      \
    } while (0)

/* --- arg.c ---------------------------------------------------------------- */

/* A search for the first or last largest or smallest of n numbers, along the
 * middle axis of x (outer, n, inner); a NaN counts as both. */
struct byi_index_search {
    enum byoc_dtype dtype; /* a float of at least 32 bits or an integer */
    int64_t outer, n, inner;
    bool largest, last;
    const void *x;
};
/* Set y (outer, inner) to the indices. */
void byi_index_search_run(const struct byi_index_search *p, int team,
                          int64_t *y);

/* --- linear.c ------------------------------------------------------------- */

/* Linear attention of one head of values over all time steps. The members
 * *_step are the number of floats from one time step to the next. `decay`,
 * which is e^decay of the operator, and `beta` may be NULL. */
struct byi_linear_head {
    int64_t time, size; /* size: elements of a key */
    const float *query, *key, *value, *decay, *beta;
    int64_t query_step, key_step, value_step, decay_step, beta_step, y_step;
    int64_t decay_stride; /* 0: one number decays all rows of the state */
    int64_t queries;      /* heads of queries, one after the other */
    float *state, *y;     /* state: (size, width) */
    int64_t width;        /* elements of a value */
    float scale;
};
/* nn.linear_attention, element by element in double, with the state in the type
 * of the result: the float64 kernel, and the reference for the float32 loop. */
byi_kernel_run byi_linear_plain;

/* --- map.c: elements as keys -----------------------------------------------
 */

/* Set words[] to words of elements begin .. begin + n - 1 of t, numbers or
 * strings. Equal elements have the same word. Different elements have different
 * words unless both are strings and byi_word_is_text() is false for the word.
 */
void byi_words_of(const struct byi_tensor *t, int64_t begin, int64_t n,
                  uint64_t *words);
/* Whether no other string has this word, which is a string's. */
static inline bool byi_word_is_text(uint64_t word)
{
    return word >> 56 == 0;
}

/* --- pack() of struct byi_packing, by operator ---------------------------- */

/* byi_map_pack builds the hash table of the keys. */
uint64_t byi_map_pack(const struct byi_call *call, void *to);
/* byi_tf_idf_pack builds the hash table of the n-grams. */
uint64_t byi_tf_idf_pack(const struct byi_call *call, void *to);
uint64_t byi_conv_pack(const struct byi_call *call, void *to);
uint64_t byi_conv_transpose_pack(const struct byi_call *call, void *to);
uint64_t byi_matmul_pack(const struct byi_call *call, void *to);
/* The names that byi_algorithm_of() returns. */
const char *byi_conv_algorithm(const struct byi_call *call);
const char *byi_conv_transpose_algorithm(const struct byi_call *call);
const char *byi_attention_algorithm(const struct byi_call *call);
const char *byi_matmul_algorithm(const struct byi_call *call);
/* Pack the weights (k, n) of nn.dense, whose rows are rs and whose columns are
 * cs elements apart, to `to` unless that is NULL. Returns the bytes. */
uint64_t byi_dense_pack(const float *b, int64_t rs, int64_t cs, int64_t k,
                        int64_t n, float *to);
/* Bytes of scratch that suffice for nn.dense with any number of rows. */
uint64_t byi_dense_scratch(int64_t k, int64_t n, uint32_t threads);
uint64_t byi_qnn_conv_pack(const struct byi_call *call, void *to);
uint64_t byi_qnn_matmul_pack(const struct byi_call *call, void *to);
uint64_t byi_dense_blocks_pack(const struct byi_call *call, void *to);
uint64_t byi_recurrent_pack(const struct byi_call *call, void *to);
uint64_t byi_grid_sample_pack(const struct byi_call *call, void *to);
uint64_t byi_sparse_pack(const struct byi_call *call, void *to);

/* --- plain forms: references for tests of the fast paths ------------------ */

/* Apply a unary operator to one number; params are its attributes. */
double byi_unary_plain(enum byi_op_id op, double x, const double *params);
/* The largest |x| for which the float32 loops compute the operator; INFINITY if
 * they compute it for any x. */
float byi_unary_bound(enum byi_op_id op);
byi_kernel_run byi_binary_plain, byi_matmul_plain, byi_idct8_plain,
    byi_grid_sample_plain, byi_conv_plain, byi_conv_transpose_plain,
    byi_pool_plain, byi_softmax_plain, byi_quantize_plain, byi_qnn_plain,
    byi_einsum_plain, byi_reduce_plain, byi_recurrent_plain;

/* --- simd.c and simd_*.c ------------------------------------------------ */

/* Elements beyond the end of rows that some loops read or write; rows of
 * weights per pattern of a sparse product. */
enum { BYI_SLACK = 64, BYI_SPARSE_ROWS = 4 };
enum { BYI_TOP_LINES = 16 }; /* lines from which `top` selects together */

/* How byi_simd's `offsets` turns indices into offsets. An index is below `size`
 * and is multiplied by `stride`; i * step is added for index number i. */
struct byi_index_strides {
    int64_t size, stride, step;
};
/* The term that a sum adds for element x: x, |x|, x^2, or e^(x - shift), which
 * is at most 1; BYI_TIMES multiplies by x. */
enum byi_sum {
    BYI_ADD,
    BYI_ADD_ABS,
    BYI_ADD_SQUARE,
    BYI_ADD_EXP,
    BYI_TIMES,
    BYI_SUMS
};

/* C (m, n) = A (m, k) B (k, n), or C += A B if `add`; n columns are at most the
 * panel_bytes of struct byi_simd. The strides are from one row (rs) or column
 * (cs) to the next; columns of B and C are adjacent. B has all columns of the
 * panel, even if n is smaller. */
struct byi_panel {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_rs, a_cs, b_rs, c_rs;
    bool add;
};

struct byi_complex {
    double re, im;
};

/* A stage of a Fourier transform of `length` numbers: combines `radix`
 * transforms of `size` numbers into one of size * radix. from[j * size + k] is
 * element k of the transform of the inputs j, j + length / size, ...; to[] is
 * the same for size * radix. Both have the real part and the imaginary part of
 * a number side by side, each of all lines. */
struct byi_dft_stage {
    const void *from;
    void *to;
    const struct byi_complex *twiddle; /* e^(-+2 pi i k / length) */
    int64_t length, size, radix;
};

/* Loops of one operator for elements of one dtype: y[i] = op(x[i]), where p has
 * the attributes in the order of ops.def, and y[i] = op(a[i], b[i]). */
typedef void (*byi_typed_unary)(const void *x, void *y, int64_t n,
                                const double *p);
typedef void (*byi_typed_binary)(const void *a, const void *b, void *y,
                                 int64_t n);

/* Loops of float32, unless a member says otherwise, compiled once per
 * instruction set. An entry of an array that is indexed by operator or dtype is
 * NULL if that operator or dtype has no loop. */
struct byi_simd {
    enum byi_isa isa;
    int64_t lanes; /* number of floats in a vector */
    /* y[i] = op(x[i]); p has the attributes in the order of ops.def */
    void (*unary[BYI_N_OPS])(const float *x, float *y, int64_t n,
                             const float *p);
    /* the same, of operators that do not approximate a function */
    void (*unary_f64[BYI_N_OPS])(const double *x, double *y, int64_t n,
                                 const double *p);
    /* y[i] = a[i]^b[i] for normal a[i] and |b[i]| < 2^50; its relative error is
     * at most 1e-13 if float32 can represent the power. NULL: pow() is as fast.
     */
    void (*power)(const double *a, const double *b, double *y, int64_t n);
    /* y[i] = op(a[i * sa], b[i * sb]); sa and sb are 0 or 1, not both 0 */
    void (*binary[BYI_N_OPS])(const float *a, int64_t sa, const float *b,
                              int64_t sb, float *y, int64_t n);
    /* The loop of an operator on integers or bools, of a test of floats, or of
     * two operands on elements of a dtype; NULL if the plain loop is as fast.
     * The members are NULL if that holds for all operators. */
    byi_typed_unary (*typed_unary)(enum byi_op_id op, enum byoc_dtype dtype);
    byi_typed_binary (*typed_binary)(enum byi_op_id op, enum byoc_dtype dtype);
    double (*sum)(const float *x, int64_t n);
    /* the sum of (x[i] - shift)^2 */
    double (*sum_squares)(const float *x, int64_t n, float shift);
    /* to[i] = base + wrap(at[i]) * stride + i * step, where wrap adds `size` to
     * negative indices. `at` has int32, for [1] int64. Returns true if an index
     * is outside of -size .. size - 1; then the offsets must not be used. */
    bool (*offsets[2])(const void *at, const struct byi_index_strides *strides,
                       int64_t base, int64_t n, int64_t *to);
    double (*sum_abs)(const float *x, int64_t n); /* of |x[i]| */
    /* y[i] += the term of x[i] (enum byi_sum), with shift[i] for BYI_ADD_EXP,
     * for each of `rows` rows x, `pitch` apart */
    void (*accumulate[BYI_SUMS])(const float *x, int64_t rows, int64_t pitch,
                                 const float *shift, float *y, int64_t n);
    /* The same for y of double or, for integers, 64 bits; by the dtype of x */
    void (*accumulate_wide[BYI_SUMS][BYI_DTYPES])(const void *x, int64_t rows,
                                                  int64_t pitch, void *y,
                                                  int64_t n);
    /* y[i] += (x[i] - shift[i])^2 for each of `rows` rows x, `pitch` apart */
    void (*accumulate_squares)(const float *x, int64_t rows, int64_t pitch,
                               const double *shift, double *y, int64_t n);
    /* y[i] = x[i] * mul[i] + add[i] for each of `rows` rows of float32 or
     * float64; y may be x */
    void (*affine_rows[BYI_DTYPES])(const void *x, int64_t rows, int64_t pitch,
                                    const double *mul, const double *add,
                                    void *y, int64_t n);
    /* y[i] = (x[i] - mean) * scale, computed in double */
    void (*standardize)(const float *x, int64_t n, double mean, double scale,
                        float *y);
    /* y[i] = e^(x[i] - shift), which is at most 1; returns the sum of y */
    double (*exp_sum)(const float *x, float *y, int64_t n, float shift);
    /* y[i] = e^(x[i] - top[i]), which is added to sum[i]; x may be y */
    void (*exp_rows)(const float *x, const float *top, float *y, float *sum,
                     int64_t n);
    /* the sum of a[i] * b[i] */
    float (*dot)(const float *a, const float *b, int64_t n);
    void (*axpy)(float a, const float *x, float *y, int64_t n); /* y += a x */
    /* y[i] = sum over t < taps of w[t] * x[offsets[t] + i]; reads and writes up
     * to BYI_SLACK elements beyond n */
    void (*taps)(const float *x, const int64_t *offsets, const float *w,
                 int64_t taps, float *y, int64_t n);
    /* Copy the band of `rows` rows of outputs from row h on, of n planes x (n,
     * in[1], in[2]), to `buffer`; padding gets `outside`. For planes side by
     * side, n is band->planes. */
    void (*copy_band)(const struct byi_band *band, const float *x, int64_t h,
                      int64_t rows, int64_t n, float outside, float *buffer);
    /* Compute `rows` rows of outputs y (n, out[1], out[2]) from the band of n
     * planes in `buffer`, with weights (n, size[1], size[2]) for products. */
    void (*window[BYI_WINDOW_KINDS])(const struct byi_band *band, float *buffer,
                                     const float *weights, float *y,
                                     int64_t rows, int64_t n);
    /* Compute a row of outputs y from the n rows under its windows; not for
     * products. */
    void (*line[BYI_WINDOW_KINDS])(const struct byi_line *l,
                                   const float *const *rows, int64_t n,
                                   const float *factors, float *buffer,
                                   float *y);
    /* y[i] += x[i * stride] */
    void (*slide_add)(const float *x, int64_t stride, float *y, int64_t n);
    /* y[i] = max(y[i], x[i * stride]), NaN if one is NaN */
    void (*slide_max)(const float *x, int64_t stride, float *y, int64_t n);
    /* y[i] = x[i * stride] and at[i] = from + i * stride where that is larger
     * than y[i], or the first NaN, or where at[i] < 0 */
    void (*slide_index)(const float *x, int64_t stride, int32_t from, float *y,
                        int32_t *at, int64_t n);
    /* y[i] = x[i] * mul + add */
    void (*affine)(const float *x, float *y, int64_t n, float mul, float add);
    /* y[i] = (x[i] - mean) * scale * gamma[i] + beta[i]; beta may be NULL */
    void (*normalize)(const float *x, float *y, int64_t n, float mean,
                      float scale, const float *gamma, const float *beta);
    /* y[i] = at[i] / (bias + alpha * s)^0.75, where s is the sum over c <
     * planes of x[c * pitch + i]^2 */
    void (*lrn)(const float *x, int64_t pitch, int64_t planes, const float *at,
                float *y, int64_t n, float alpha, float bias);
    /* y[i] = round(x[i] / scale) + zero, saturated; x[i] = (y[i] - zero) *
     * scale. Indexed by the dtype of y, which can represent `zero`;
     * kernels/i8.h quantizes to 8 bits. */
    void (*quantize[BYI_DTYPES])(const float *x, void *y, int64_t n,
                                 float scale, float zero);
    void (*dequantize[BYI_DTYPES])(const void *y, float *x, int64_t n,
                                   float scale, float zero);
    /* the same with a scale and a zero point for each element */
    void (*quantize_each[BYI_DTYPES])(const float *x, void *y, int64_t n,
                                      const float *scale, const float *zero);
    void (*dequantize_each[BYI_DTYPES])(const void *y, float *x, int64_t n,
                                        const float *scale, const float *zero);
    /* Whether any of n boxes overlaps `box` by more than iou. A box is low 0,
     * low 1, high 0, high 1, area; `boxes` has a row of n for each of these,
     * `pitch` apart. Also counts up to BYI_SLACK elements that follow each row:
     * zeros, which overlap nothing, or further boxes. */
    bool (*overlaps)(const float *boxes, int64_t pitch, int64_t n,
                     const float *box, float iou);
    /* compute rows [begin, end) of a resized image (resample.inc) */
    void (*resample)(const struct byi_planes *p, const float *x, float *y,
                     int64_t begin, int64_t end, float *buffer);
    /* y[j] = sum over p < points of weight[p * pitch + j] * x[at[p * pitch +
     * j]], without terms whose at[] is negative. `points` is 1, 4, 8 or 16;
     * with one point the weight is 1. */
    void (*sample)(uint32_t points, const int32_t *at, const float *weight,
                   int64_t pitch, const float *x, float *y, int64_t n);
    /* The same in all channels of images whose pixels have `channels` elements,
     * for n positions y (n, channels), with 4, 8 or 16 points. Pixels whose
     * at[] is negative are `zeros`, which has that many elements, too. */
    void (*sample_pixels)(uint32_t points, const int32_t *at,
                          const float *weight, int64_t pitch, const float *x,
                          const float *zeros, int64_t channels, float *y,
                          int64_t n);
    /* The inverse DCT of 8 points (core/ops/dct.h): of rows of 8 elements; of
     * the columns of a block (8, columns) whose rows are `pitch` apart; of both
     * axes of blocks (8, 8). */
    void (*idct_rows)(const float *x, float *y, int64_t rows);
    void (*idct_columns)(const float *x, float *y, int64_t pitch,
                         int64_t columns);
    void (*idct_blocks)(const float *x, float *y, int64_t blocks);
    int64_t dft_lanes;
    /* of one line, and [1] of dft_lanes lines */
    void (*dft_stage[2])(const struct byi_dft_stage *d);
    /* Compute columns [begin, end) of the state and of y. */
    void (*linear)(const struct byi_linear_head *h, int64_t begin, int64_t end);
    bool (*finite)(const float *x, int64_t n); /* all are finite */
    /* y[i] = x[i], truncated, of float32 and [1] float64; indexed by the dtype
     * of y, which has at most 32 bits. Returns false if an |x[i]| is not below
     * 2^31; then y must not be used. NULL: the loop would not be faster than
     * scalar conversions. */
    bool (*to_int[2][BYI_DTYPES])(const void *x, void *y, int64_t n);
    /* For each dtype: float32 and float64, in which NaN is the largest and the
     * smallest number, and integers; [0] the largest, [1] the smallest.
     * extreme_row:
     * *best = the extreme of n > 0 numbers and *best. extreme_rows: y[i] = the
     * extreme of y[i] and of x[i] in each of `rows` rows x, `pitch` apart. */
    void (*extreme_row[2][BYI_DTYPES])(const void *x, int64_t n, void *best);
    void (*extreme_rows[2][BYI_DTYPES])(const void *x, int64_t rows,
                                        int64_t pitch, void *y, int64_t n);
    /* y (blocks, inner) = the extremes of the n rows of each block of x
     * (blocks, n, inner); of the numbers of a row if inner is 1 */
    void (*extreme_blocks[2][BYI_DTYPES])(const void *x, int64_t blocks,
                                          int64_t n, int64_t inner, void *y);
    /* y[i] = the sum of the terms of row i of n numbers (enum byi_sum), for
     * `rows` adjacent rows of float32 or float64; NULL for other terms.
     * extreme_each_row: the extremes of float32, as in extreme_row. */
    void (*fold_each_row[BYI_SUMS][BYI_DTYPES])(const void *x, int64_t rows,
                                                int64_t n, void *y);
    void (*extreme_each_row[2])(const void *x, int64_t rows, int64_t n,
                                void *y);
    /* The first or last of n numbers that is *best, which is one of them. */
    int64_t (*find[BYI_DTYPES])(const void *x, int64_t n, const void *best,
                                bool last);
    /* index[i] = k where x[i] is best[i] or NaN; unless `overwrites`, only
     * where index[i] is negative */
    void (*mark[BYI_DTYPES])(const void *x, const void *best, int32_t k,
                             bool overwrites, int32_t *index, int64_t n);
    /* The index of the first of numbers i..n - 1 that is not <= number `worst`,
     * or [1] not >= that; n if there is none. NaN is neither, but of 16 bits it
     * is the largest number. */
    int64_t (*skip[2][BYI_DTYPES])(const void *x, int64_t i, int64_t n,
                                   int64_t worst);
    /* Set to[] to keys of n elements, indexed by their dtype: int32, or int64
     * for elements of 8 bytes. Larger numbers have larger keys, unless
     * `smallest`; NaN is the largest number. */
    void (*keys[BYI_DTYPES])(const void *x, int64_t n, bool smallest, void *to);
    /* Continue to select the k largest of each of BYI_TOP_LINES lines; of equal
     * keys the first comes first. `keys` are elements first .. first + rows - 1
     * (rows, BYI_TOP_LINES), best[] and index[] are (k, BYI_TOP_LINES), of
     * which min(first, k) rows are in use. All are int32, for [1] int64. */
    void (*top[2])(const void *keys, int64_t rows, int64_t first, int64_t k,
                   void *best, void *index);
    /* Products, indexed by dtype: of float64, and of integers of 32 and 64
     * bits. dots: y[j] = the sum over i < k of x[i] * b[j * pitch + i], for j <
     * n. */
    int64_t panel_bytes;
    void (*product_panel[BYI_DTYPES])(const struct byi_panel *p);
    void (*dots[BYI_DTYPES])(const void *x, const void *b, int64_t pitch,
                             int64_t n, int64_t k, void *y);
    /* Sparse products, indexed by pattern: bit r is set if row r of c
     * (BYI_SPARSE_ROWS, panel) has a weight for each of the n listed rows of x.
     * Row p is at x + at[p] and has `panel` columns; its weights are
     * contiguous. */
    int64_t panel;
    void (*sparse[1 << BYI_SPARSE_ROWS])(int64_t n, const int32_t *at,
                                         const float *weights, const float *x,
                                         float *c);
};

/* The table in use: for the widest instruction set that the CPU has and
 * BYOC_MAX_ISA allows. Chosen once. */
const struct byi_simd *byi_simd(void);
/* The instruction set that kernels use; the table may be for a lower one. */
enum byi_isa byi_simd_isa(void);
/* Switch to the table of `isa`, for tests, while no kernel runs. Returns false
 * and changes nothing if the build or the CPU lacks `isa`. */
bool byi_simd_use(enum byi_isa isa);

#endif
