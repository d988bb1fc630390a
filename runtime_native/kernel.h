/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: what the files of kernels share: lists of element types for the
 * typed loops, tensor arithmetic, the size of a team of threads, and the
 * float32 loops that exist once per instruction set.
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

/* Lanes of two vectors by their numbers, those of `b` after those of `a`; `ids`
 * is the type of a vector of such numbers. */
#if defined(__clang__)
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BYI_SHUFFLE(ids, a, b, ...) __builtin_shuffle(a, b, (ids){__VA_ARGS__})
#endif

/* T(id, C type): element types by what C can do with them. */
#define BYI_EACH_INT(T)                                                        \
    T(U8, uint8_t)                                                             \
    T(I8, int8_t)                                                              \
    T(U16, uint16_t)                                                           \
    T(I16, int16_t)                                                            \
    T(U32, uint32_t)                                                           \
    T(I32, int32_t)                                                            \
    T(U64, uint64_t)                                                           \
    T(I64, int64_t)
#define BYI_EACH_FLOAT(T) T(F32, float) T(F64, double)
/* T(id, C type, C type to sum products in): integers wrap around, so their
 * sums are of unsigned ones. */
#define BYI_EACH_SUM(T)                                                        \
    T(F32, float, double)                                                      \
    T(F64, double, double)                                                     \
    T(U8, uint8_t, uint32_t)                                                   \
    T(I8, int8_t, uint32_t)                                                    \
    T(U16, uint16_t, uint32_t)                                                 \
    T(I16, int16_t, uint32_t)                                                  \
    T(U32, uint32_t, uint32_t)                                                 \
    T(I32, int32_t, uint32_t)                                                  \
    T(U64, uint64_t, uint64_t)                                                 \
    T(I64, int64_t, uint64_t)

enum { BYI_DTYPES = BYOC_BF16 + 1 }; /* length of tables by dtype */

/* Elements of a tensor whose dims are checked already. */
static inline int64_t byi_count(const struct byi_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

/* Elements in the axes [begin, end). */
static inline int64_t byi_span(const struct byi_tensor *t, uint32_t begin,
                               uint32_t end)
{
    int64_t n = 1;
    for (uint32_t i = begin; i < end; i++)
        n *= t->dims[i];
    return n;
}

/* Attribute `axis` counted from the front. */
static inline uint32_t byi_axis(int64_t axis, uint32_t rank)
{
    int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    assert(at >= 0 && (at < (int64_t)rank || rank == 0));
    return (uint32_t)at;
}

/* Element i of operand `arg`, an axis of a tensor of rank `rank` that only the
 * run knows, counted from the front. */
static inline enum byoc_status byi_axis_operand(const struct byi_call *call,
                                                uint32_t arg, int64_t i,
                                                uint32_t rank, uint32_t *axis,
                                                struct byoc_error *err)
{
    const int64_t found = byi_tensor_int(&call->in[arg], i), r = rank;
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

static inline void byi_put_real(const struct byi_tensor *t, int64_t i,
                                double value)
{
    if (t->dtype == BYOC_F64)
        ((double *)t->data)[i] = value;
    else
        ((float *)t->data)[i] = (float)value;
}

static inline bool byi_is_half(enum byoc_dtype dtype)
{
    return dtype == BYOC_F16 || dtype == BYOC_BF16;
}

static inline int64_t byi_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t byi_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t byi_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Bytes rounded up to a whole number of cache lines. */
static inline uint64_t byi_lines(uint64_t bytes)
{
    return (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
}

/* Threads worth waking for `work` simple operations. Waking a team costs some
 * microseconds, which one thread fills with tens of thousands of them. */
static inline int byi_team(const struct byi_call *call, int64_t work)
{
    int64_t most = work >> 15;
    if (most < 1)
        return 1;
    return (int)(most < (int64_t)call->threads ? most : call->threads);
}

/* The same for multiplications with addition, in vectors: many of them take as
 * long as one operation that waits for memory. */
static inline int byi_team_of_products(const struct byi_call *call, int64_t n)
{
    return byi_team(call, n / 8);
}

/* --- half.c ------------------------------------------------------------- */

/* n elements from float16 or bfloat16 to float, and back. */
void byi_widen(enum byoc_dtype dtype, const void *src, float *dst, int64_t n);
void byi_narrow(enum byoc_dtype dtype, const float *src, void *dst, int64_t n);
/* Run `kernel` on float32 copies where the tensors are float16 or bfloat16;
 * else as it is. Every kernel whose dtypes are floats goes through this. */
enum byoc_status byi_run_float(const struct byi_call *call,
                               const struct byi_kernel *kernel,
                               struct byoc_error *err);
uint64_t byi_scratch_float(const struct byi_call *call,
                           const struct byi_kernel *kernel);
/* "OP: dtype X is not supported, give WANTED" */
enum byoc_status byi_bad_dtype(const struct byi_call *call,
                               enum byoc_dtype dtype, const char *wanted,
                               struct byoc_error *err);

/* A kernel NAME_run / NAME_scratch for floats from one for float32 and
 * float64 called NAME. */
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

/* --- text.c -------------------------------------------------------------- */

/* Why there was no room for a string. */
enum byoc_status byi_no_store(const struct byi_call *call,
                              struct byoc_error *err);

/* --- window.c ----------------------------------------------------------- */

/* A window sliding over up to three spatial axes; axes in front are 1. */
struct byi_window {
    int64_t in[3], out[3], size[3];
    int64_t stride[3], dilation[3], pad[3]; /* pad: at the begin */
    int64_t end[3];                         /* and at the end    */
    int64_t in_count, out_count, taps;      /* products          */
};
/* From the attributes; `size` has n entries, as have in and out. */
void byi_window_read(const struct byi_attrs *attrs, uint32_t n,
                     const int64_t *in, const int64_t *out, const int64_t *size,
                     struct byi_window *w);
/* Taps [*first, *last) of the window at output `at` of an axis that lie on
 * data; their place is at stride - pad + tap dilation. */
void byi_window_taps(const struct byi_window *w, int axis, int64_t at,
                     int64_t *first, int64_t *last);
/* Outputs [*first, *last) of an axis whose tap `tap` lies on data. */
void byi_window_outputs(const struct byi_window *w, int axis, int64_t tap,
                        int64_t *first, int64_t *last);

/* What becomes of the elements under a window: the sum of their products with
 * weights, the largest (NaN wins), their sum. */
enum byi_window_kind {
    BYI_WINDOW_PRODUCT,
    BYI_WINDOW_MAX,
    BYI_WINDOW_SUM,
    BYI_WINDOW_KINDS
};
enum { BYI_WINDOW_TAPS = 16 }; /* of a row, at most, where one runs fast */

/* A window over every plane of x (n, groups, in[1], in[2]): y (n, groups
 * repeat, out[1], out[2]); products with weights (groups repeat, size[1],
 * size[2]), sums multiplied by shares (out[1], out[2]) unless that is NULL. */
struct byi_sliding {
    enum byi_window_kind kind;
    const struct byi_window *w;
    int64_t n, groups, repeat;
    const float *x, *weights, *shares;
    float *y;
};
/* Planes are done in bands: what their windows lie on is copied, with a border
 * where windows hang over, so that none is a special case. There are two ways.
 * In rows: with a stride a row is copied as `stride` phases, every stride-th
 * column from the first, the second ... one on, so that neighbours are what
 * vectors of neighbouring outputs see. Side by side, where planes are small:
 * one in each lane of a vector; a column is a vector, then. Bare planes side by
 * side have no border: which taps are outside is known to the code for them. */
struct byi_band {
    const struct byi_window *w;
    bool side, bare;
    int64_t high, planes; /* rows of outputs, planes at a time        */
    int64_t tile;         /* rows that share what is loaded           */
    int64_t phase, pitch; /* floats of a phase of a row, of a row,    */
    int64_t size;         /* of a plane: all in whole vectors;        */
    int64_t lead;         /* and those in front of the first row;     */
    int64_t room;         /* of all                                   */
    int64_t wide, step;   /* a row of outputs; inputs from one to the
                             next of them                             */
    int64_t taps[BYI_WINDOW_TAPS]; /* from an output to column c's tap */
    struct {
        int64_t from, n; /* the row's elements from, from + stride ...
                            that a phase begins with                  */
    } data[2];
};
enum { BYI_WINDOW_KEPT = 25 }; /* taps that side by side have at most */
/* Whether it is done for such windows: of two axes, with little padding. */
bool byi_sliding_fits(const struct byi_window *w);
uint64_t byi_sliding_scratch(const struct byi_window *w, uint32_t threads);
void byi_sliding_run(const struct byi_sliding *v, const struct byi_call *call,
                     void *scratch);

/* Position `flat` of a row-major box. */
static inline void byi_unflatten(const int64_t dims[3], int64_t flat,
                                 int64_t at[3])
{
    for (int i = 3; i-- > 0;) {
        at[i] = flat % dims[i];
        flat /= dims[i];
    }
}

/* --- relayout.c ---------------------------------------------------------- */

/* Images with channels, first, last or in blocks. `block` channels of a
 * position lie next to each other (first: 1, last: all of them), then the
 * positions, then the blocks. */
struct byi_image {
    int64_t n, c, block;
    int64_t count;        /* positions                  */
    const int64_t *space; /* dims[] of the tensor: theirs */
    uint32_t spatial;     /* how many                   */
    bool last;
};
/* `layout` is one that byi_layout_is_data accepts. */
void byi_image_read(const struct byi_tensor *t, const char *layout,
                    struct byi_image *image);
/* Position 0 of channel c of image n; the others are image->block apart. */
static inline int64_t byi_image_at(const struct byi_image *image, int64_t n,
                                   int64_t c)
{
    const int64_t block = image->block;
    return (n * (image->c / block) + c / block) * image->count * block +
           c % block;
}

/* Weights of windows: element (o, i, tap) is at byi_filter_at, taps are
 * `tap` apart. */
struct byi_filter {
    int64_t o, i;         /* all outputs, all inputs (of a group: as typed) */
    const int64_t *space; /* dims[] of the tensor: the window's             */
    int64_t tap;
    struct {
        int64_t block, outer, inner; /* strides of blocks and inside of them */
    } at_o, at_i;
};
/* `layout` is one that byi_layout_is_kernel accepts. */
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

/* The elements of t, which is in layout `from`, in layout `to`. */
void byi_relayout(const struct byi_call *call, const struct byi_tensor *t,
                  const struct byi_layout *from, const struct byi_layout *to,
                  void *dst);

/* The same, by names. */
void byi_relayout_named(const struct byi_call *call, const struct byi_tensor *t,
                        const char *from, const char *to, void *dst);

/* --- axes.c ------------------------------------------------------------- */

/* A tensor's axes in two groups, neighbours of one group merged: kept axes
 * give the outer walk, the others the inner one. Axes of size 1 are gone. */
struct byi_box {
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK], strides[BYI_MAX_RANK];
    int64_t count;
};
struct byi_axes {
    struct byi_box kept, gone;
};
void byi_axes_split(const struct byi_tensor *t, const bool *gone,
                    struct byi_axes *axes);
/* The offset of position `flat` of a box. */
int64_t byi_box_offset(const struct byi_box *box, int64_t flat);

/* --- sequence.c --------------------------------------------------------- */

/* A call of nn.rnn, nn.gru or nn.lstm, its operands by name: NULL where one is
 * left out. Results are never NULL but y_c, of those without. */
struct byi_sequence {
    struct byi_recurrent r;
    enum byi_op_id op;
    bool batch_first;
    bool linear_before_reset, input_forget;
    double clip;
    int64_t time, batch, input, hidden;
    const struct byi_tensor *x, *weights, *recurrent, *bias, *lengths;
    const struct byi_tensor *initial_h, *initial_c, *peepholes;
    struct byi_tensor *y, *y_h, *y_c;
};
void byi_sequence_read(const struct byi_call *call, struct byi_sequence *s);
/* Errors: a length that is negative or more than the time. */
enum byoc_status byi_sequence_check(const struct byi_sequence *s,
                                    const struct byi_call *call,
                                    struct byoc_error *err);
/* Steps of sequence n. */
static inline int64_t byi_sequence_length(const struct byi_sequence *s,
                                          int64_t n)
{
    return s->lengths ? ((const int32_t *)s->lengths->data)[n] : s->time;
}
/* Elements at these places: of x the input's first, of y, and of states, the
 * first of hidden. */
static inline int64_t byi_sequence_x(const struct byi_sequence *s, int64_t t,
                                     int64_t n)
{
    return (s->batch_first ? n * s->time + t : t * s->batch + n) * s->input;
}
static inline int64_t byi_sequence_y(const struct byi_sequence *s, int64_t d,
                                     int64_t t, int64_t n)
{
    const int64_t directions = s->r.directions;
    return (s->batch_first ? (n * s->time + t) * directions + d
                           : (t * directions + d) * s->batch + n) *
           s->hidden;
}
static inline int64_t byi_sequence_state(const struct byi_sequence *s,
                                         int64_t d, int64_t n)
{
    return (s->batch_first ? n * s->r.directions + d : d * s->batch + n) *
           s->hidden;
}

/* --- packing, by files of kernels: see struct byi_packing ------------------
 */

uint64_t byi_conv_pack(const struct byi_call *call, void *to);
uint64_t byi_matmul_pack(const struct byi_call *call, void *to);
uint64_t byi_qnn_conv_pack(const struct byi_call *call, void *to);
uint64_t byi_qnn_matmul_pack(const struct byi_call *call, void *to);
uint64_t byi_recurrent_pack(const struct byi_call *call, void *to);
uint64_t byi_grid_sample_pack(const struct byi_call *call, void *to);
uint64_t byi_sparse_pack(const struct byi_call *call, void *to);

/* --- plain forms, for tests: what the fast ones are held against ---------- */

/* A unary operator of one number; its attributes as numbers. */
double byi_unary_plain(enum byi_op_id op, double x, const double *params);
enum byoc_status byi_binary_plain(const struct byi_call *call,
                                  struct byoc_error *err);
enum byoc_status byi_matmul_plain(const struct byi_call *call,
                                  struct byoc_error *err);
enum byoc_status byi_idct8_plain(const struct byi_call *call,
                                 struct byoc_error *err);
enum byoc_status byi_grid_sample_plain(const struct byi_call *call,
                                       struct byoc_error *err);
enum byoc_status byi_conv_plain(const struct byi_call *call,
                                struct byoc_error *err);
enum byoc_status byi_deconv_plain(const struct byi_call *call,
                                  struct byoc_error *err);
enum byoc_status byi_pool_plain(const struct byi_call *call,
                                struct byoc_error *err);
enum byoc_status byi_softmax_plain(const struct byi_call *call,
                                   struct byoc_error *err);
enum byoc_status byi_quantize_plain(const struct byi_call *call,
                                    struct byoc_error *err);
enum byoc_status byi_qnn_plain(const struct byi_call *call,
                               struct byoc_error *err);
enum byoc_status byi_einsum_plain(const struct byi_call *call,
                                  struct byoc_error *err);
enum byoc_status byi_reduce_plain(const struct byi_call *call,
                                  struct byoc_error *err);
enum byoc_status byi_recurrent_plain(const struct byi_call *call,
                                     struct byoc_error *err);

/* --- simd.c and simd_*.c ------------------------------------------------ */

enum { BYI_SLACK = 64, BYI_SPARSE_ROWS = 4 };

/* How words of 32 bits hold numbers of 8: 2 of 16 bits each, less their zero
 * point, or 4 as they are, of which one side is unsigned: dot.inc. */
enum byi_dot_form { BYI_DOT_PAIRS, BYI_DOT_BYTES, BYI_DOT_FORMS };

/* c (m, n) = a b, rows of c ldc apart. a holds k columns of mr words; row p of
 * b is at b + offsets[p], and nr words of it are read; nr of each row of c are
 * written. */
typedef void (*byi_dot_fn)(int64_t k, const uint32_t *a, const uint32_t *b,
                           const int64_t *offsets, uint32_t *c, int64_t ldc,
                           int64_t m);
struct byi_dot {
    int64_t each; /* numbers in a word; 0: the CPU has no such products */
    byi_dot_fn left_signed, left_unsigned; /* of bytes: which side a is */
    /* sums[i] = sum over t < n_words each of the t-th number of w times
     * x[offsets[t] + i]; reads and writes up to BYI_SLACK elements beyond n */
    void (*taps)(const uint8_t *x, const int64_t *offsets, const uint32_t *w,
                 int64_t n_words, uint32_t *sums, int64_t n);
    /* to[i]: the word of rows[0][i stride], rows[1][i stride] ..., each of
     * which is xor flip, and in pairs less zero */
    void (*weave)(const uint8_t *const rows[4], int64_t stride, uint32_t flip,
                  uint32_t zero, uint32_t *to, int64_t n);
};
/* Rows of n bytes, `pitch` and then `to_pitch` apart, of which every
 * `stride`-th is taken, xor flip. */
struct byi_strip {
    int64_t rows, n, stride, pitch, to_pitch;
    uint32_t flip;
};
/* What 8-bit results are kept to, before their zero point is added. */
struct byi_kept {
    float low, high;
    int32_t zero;
};

/* float32 loops, compiled once per instruction set. Entries by operator are
 * NULL where there is no such loop. */
struct byi_simd {
    enum byi_isa isa;
    int64_t lanes; /* floats of a vector */
    /* y[i] = op(x[i]); p: the operator's attributes in the table's order */
    void (*unary[BYI_N_OPS])(const float *x, float *y, int64_t n,
                             const float *p);
    /* y[i] = op(a[i sa], b[i sb]), sa and sb 0 or 1, not both 0 */
    void (*binary[BYI_N_OPS])(const float *a, int64_t sa, const float *b,
                              int64_t sb, float *y, int64_t n);
    double (*sum)(const float *x, int64_t n);
    double (*sum_squares)(const float *x, int64_t n, float shift);
    float (*max)(const float *x, int64_t n); /* NaN wins; n > 0 */
    float (*min)(const float *x, int64_t n);
    /* y[i] = e^(x[i] - shift), and their sum */
    double (*exp_sum)(const float *x, float *y, int64_t n, float shift);
    float (*dot)(const float *a, const float *b, int64_t n);
    void (*axpy)(float a, const float *x, float *y, int64_t n); /* y += a x */
    /* y[i] = sum over t < taps of w[t] x[offsets[t] + i]; reads and writes up
     * to BYI_SLACK elements beyond n */
    void (*taps)(const float *x, const int64_t *offsets, const float *w,
                 int64_t taps, float *y, int64_t n);
    /* y[i] = sum over t < taps of w[at[t] + i] x[offsets[t] + i] */
    void (*channels)(const float *x, const int64_t *offsets, const float *w,
                     const int64_t *at, int64_t taps, float *y, int64_t n);
    /* to[c pitch + r] = from[r stride + c] for r < rows, c < columns, which are
     * `lanes` or more; the two do not overlap */
    void (*transpose)(const float *from, int64_t stride, int64_t rows,
                      int64_t columns, float *to, int64_t pitch);
    /* What the windows of `rows` rows of outputs from h on lie on, of n planes
     * x (n, in[1], in[2]), to room; n is band->planes where they are side by
     * side. */
    void (*lay)(const struct byi_band *band, const float *x, int64_t h,
                int64_t rows, int64_t n, float outside, float *room);
    /* That many rows of outputs y (n, out[1], out[2]) of n planes that were
     * laid in room, with weights (n, size[1], size[2]). */
    void (*window[BYI_WINDOW_KINDS])(const struct byi_band *band, float *room,
                                     const float *weights, float *y,
                                     int64_t rows, int64_t n);
    /* y[i] += x[i stride] */
    void (*slide_add)(const float *x, int64_t stride, float *y, int64_t n);
    /* y[i] = the larger of y[i] and x[i stride]; NaN wins */
    void (*slide_max)(const float *x, int64_t stride, float *y, int64_t n);
    void (*affine)(const float *x, float *y, int64_t n, float mul, float add);
    /* y[i] *= by */
    void (*scale)(float *y, int64_t n, float by);
    /* y[i] = (x[i] - mean) scale gamma[i] + beta[i]; beta may be NULL */
    void (*normalize)(const float *x, float *y, int64_t n, float mean,
                      float scale, const float *gamma, const float *beta);
    /* y[i] = at[i] / (bias + alpha s)^0.75, s: the sum over c < planes of
     * x[c pitch + i]^2 */
    void (*over_squares)(const float *x, int64_t pitch, int64_t planes,
                         const float *at, float *y, int64_t n, float alpha,
                         float bias);
    /* y[i] = round(x[i] / scale) + zero, saturated; x[i] = (y[i] - zero) scale.
     * By the type of y; zero is one of its values. */
    void (*quantize[BYI_DTYPES])(const float *x, void *y, int64_t n,
                                 float scale, float zero);
    void (*dequantize[BYI_DTYPES])(const void *y, float *x, int64_t n,
                                   float scale, float zero);
    /* Does one of n boxes overlap `box` by more than iou? A box is low 0,
     * low 1, high 0, high 1, area; boxes has these as rows, `pitch` apart and
     * zero up to BYI_SLACK beyond n. */
    bool (*overlaps)(const float *boxes, int64_t pitch, int64_t n,
                     const float *box, float iou);
    /* rows [begin, end) of a resized image: resample.inc */
    void (*resample)(const struct byi_planes *p, const float *x, float *y,
                     int64_t begin, int64_t end, float *room);
    /* y[j] = sum over p < points (1, 4, 16) of weight[p pitch + j] times
     * x[at[p pitch + j]], where that is not negative; one counts whole */
    void (*sample)(uint32_t points, const int32_t *at, const float *weight,
                   int64_t pitch, const float *x, float *y, int64_t n);
    /* c (m, n), rows ldc apart, = or += a b. a holds k columns of mr elements;
     * row p of b is at b + p nr, or with offsets at b + offsets[p], and nr
     * elements of it are read. Sums over k are in order, in float. */
    int64_t mr, nr;
    void (*gemm)(int64_t k, const float *a, const float *b,
                 const int64_t *offsets, float *c, int64_t ldc, int64_t m,
                 int64_t n, bool add);
    const struct byi_dot *words; /* by form */
    void (*copy_bytes)(const struct byi_strip *s, const uint8_t *from,
                       uint8_t *to);
    /* y[i] = sums[i] + add: int32; that times scale: float32; and rounded, kept
     * and with its zero point added: 8 bits. add[i step] and scale[i step],
     * step 0 or 1; reads up to BYI_SLACK elements beyond n. By the type of y.
     */
    void (*finish[BYI_DTYPES])(const uint32_t *sums, const uint32_t *add,
                               const float *scale, int64_t step,
                               const struct byi_kept *kept, void *y, int64_t n);
    /* The inverse DCT of 8 points (core/ops/dct.h): of rows of 8 elements; down
     * columns of a block (8, columns), rows `pitch` apart; both, of blocks
     * (8, 8). */
    void (*idct_rows)(const float *x, float *y, int64_t rows);
    void (*idct_columns)(const float *x, float *y, int64_t pitch,
                         int64_t columns);
    void (*idct_blocks)(const float *x, float *y, int64_t blocks);
    bool (*finite)(const float *x, int64_t n); /* all of them are */
    /* By pattern: bit r says whether row r of c (BYI_SPARSE_ROWS, panel) has
     * weights, that rows of x that are at[p], of `panel` columns, are added
     * with. Of each p the weights of those rows follow each other. */
    int64_t panel;
    void (*sparse[1 << BYI_SPARSE_ROWS])(int64_t n, const int32_t *at,
                                         const float *weights, const float *x,
                                         float *c);
};

/* The table in use: the widest the CPU has and BYOC_MAX_ISA allows, found once.
 */
const struct byi_simd *byi_simd(void);
/* Use the table for `isa` from now on, for tests: no kernel may be running.
 * False, and nothing changes, where there is none or the CPU lacks it. */
bool byi_simd_use(enum byi_isa isa);

/* --- lookup.c ------------------------------------------------------------ */

/* y[i] = table[x[i]], for CPUs that have `isa` and of which `runs` says so;
 * the kernel takes the first such row. */
struct byi_lookup {
    enum byi_isa isa;
    bool (*runs)(void);
    void (*run)(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n);
};
extern const struct byi_lookup byi_lookups[];
extern const uint32_t byi_n_lookups;

/* --- gemm.c ------------------------------------------------------------- */

/* A matrix as the packers see it: element (row, column) is at
 * at[row rs + column cs]. */
struct byi_matrix {
    const float *at;
    int64_t rs, cs;
};
/* Packs B's rows [k0, k0+kc) and columns [n0, n0+nc), nc <= nr, to
 * dst[k nr + n], zero beyond nc. ctx says where from. */
typedef void (*byi_pack_fn)(const void *ctx, int64_t batch, int64_t k0,
                            int64_t kc, int64_t n0, int64_t nc, int64_t nr,
                            float *dst);
enum { BYI_GEMM_DEPTH = 256 }; /* most of k that is packed in one go */
/* C[batch] (m, n) = A[batch] B[batch], rows of C ldc apart. pack_a, unless it
 * is NULL, packs A in the place of a: rows [m0, m0+mc) and columns [k0, k0+kc)
 * to dst[k mr + m], zero beyond mc. */
struct byi_gemm {
    int64_t batches, m, n, k;
    struct byi_matrix (*a)(const void *ctx, int64_t batch);
    float *(*c)(const void *ctx, int64_t batch);
    byi_pack_fn pack_a;
    byi_pack_fn pack_b;
    const float *packed_b; /* not NULL: what byi_gemm_pack left, of all batches;
                              pack_b is not called */
    const void *ctx;
    int64_t ldc;
};
void byi_gemm_run(const struct byi_gemm *g, uint32_t threads, void *scratch);
uint64_t byi_gemm_scratch(int64_t m, int64_t n, int64_t k, uint32_t threads);
/* Enough for products of any size. */
uint64_t byi_gemm_scratch_most(uint32_t threads);
/* All of B (k, n), packed; the bytes that takes. `to` NULL: only these. */
uint64_t byi_gemm_pack(const struct byi_matrix *b, int64_t k, int64_t n,
                       float *to);
/* A packer for matrices. */
void byi_pack_matrix(const struct byi_matrix *b, int64_t k0, int64_t kc,
                     int64_t n0, int64_t nc, int64_t nr, float *dst);

/* to[c pitch + r] = from[r stride + c]; the bits of any elements of 4 bytes. */
void byi_transpose(const float *from, int64_t stride, int64_t rows,
                   int64_t columns, float *to, int64_t pitch);
/* to[j pitch + i] = from[i][j] for i < pitch, j < n. */
void byi_pack_rows(const float *const *from, int64_t pitch, int64_t n,
                   float *to);

#endif
