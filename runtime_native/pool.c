/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: maximum, mean and p-norm over windows, and over all spatial axes.
 *   data (N, C, d, h, w) -> (N, C, od, oh, ow)
 * The fast loops of float32, and of maxima of other types, run over channels if
 * these are contiguous (channels last or blocked), otherwise over the positions
 * of a row. Other calls have a plain loop. As in ONNX, a maximum ignores
 * padding; a mean divides by the number of taps on data, or with
 * count_include_pad on data and padding. It does not count taps beyond the
 * padding, which ceil_mode may add. The maximum of a window without taps on
 * data is the lowest number of the type; its mean or norm is 0. */
#include "kernel.h"

enum pool_kind { MAXIMUM, MEAN, NORM };

/* The most taps of a window in the fast loops. These also visit taps on
 * padding, which dominate in larger windows, and sum in float32. */
enum { MAX_TAPS = 1024 };

/* A call of a pooling operator, described for all loops. */
struct pooling {
    struct byi_window w;
    enum pool_kind kind;
    bool include_pad;      /* a mean counts taps on padding */
    bool column_major;     /* indices of maxima are column-major */
    int64_t p;             /* the exponent of a p-norm */
    int64_t planes, block; /* N * C planes; `block` channels are contiguous */
    const void *x;
    void *y;
    int64_t *indices; /* positions of the maxima; NULL: not requested */
};

/* The offset of the first element of plane `plane`. A plane has `count`
 * positions, which are v->block elements apart. */
static int64_t plane_at(const struct pooling *v, int64_t plane, int64_t count)
{
    return plane / v->block * v->block * count + plane % v->block;
}

static enum pool_kind kind_of(enum byi_op_id op)
{
    switch (op) {
    case BYI_OP_NN_AVG_POOL1D:
    case BYI_OP_NN_AVG_POOL2D:
    case BYI_OP_NN_AVG_POOL3D:
    case BYI_OP_NN_GLOBAL_AVG_POOL1D:
    case BYI_OP_NN_GLOBAL_AVG_POOL2D:
    case BYI_OP_NN_GLOBAL_AVG_POOL3D:
        return MEAN;
    case BYI_OP_NN_LP_POOL:
    case BYI_OP_NN_GLOBAL_LP_POOL:
        return NORM;
    default:
        return MAXIMUM;
    }
}

static bool has_flag(const struct byi_attrs *attrs, const char *name)
{
    return byi_attr_find(attrs, name) && byi_attr_int(attrs, name);
}

/* Layouts of the operators that support any rank. */
static const char *const plain_layouts[] = {"NC", "NCW", "NCHW", "NCDHW"};

static enum byoc_status describe(const struct byi_call *call, struct pooling *v,
                                 struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const struct byi_attr *layout = byi_attr_find(call->attrs, "layout");
    struct byi_image_layout in, out;
    uint32_t n;
    const int64_t *size = byi_attr_ints(call->attrs, "pool_size", &n);
    if (n > 3)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found %u spatial axes, expected at most 3; "
                        "reshape the input to merge axes",
                        call->op->name, n);
    byi_image_read(x, layout ? layout->s : plain_layouts[n], &in);
    byi_image_read(call->out, layout ? layout->s : plain_layouts[n], &out);
    *v = (struct pooling){
        .kind = kind_of(call->op->id),
        .include_pad = has_flag(call->attrs, "count_include_pad"),
        .column_major = has_flag(call->attrs, "column_major"),
        .p = byi_attr_find(call->attrs, "p") ? byi_attr_int(call->attrs, "p")
                                             : 1,
        .planes = in.n * in.c,
        .block = in.block,
        .x = x->data,
        .y = call->out->data,
        .indices = call->n_out > 1 ? call->out[1].data : NULL,
    };
    byi_window_read(call->attrs, n, in.space, out.space, size, &v->w);
    return BYOC_OK;
}

/* The number of taps along an axis that a mean counts, for the window at output
 * `at`. */
static int64_t divisor(const struct pooling *v, int axis, int64_t at)
{
    const struct byi_window *w = &v->w;
    int64_t first, last;
    if (!v->include_pad) {
        byi_window_taps(w, axis, at, &first, &last);
        return last - first;
    }
    const int64_t rest =
        w->in[axis] + w->pad[axis] + w->end[axis] - at * w->stride[axis];
    return byi_max(0, byi_min(w->size[axis], byi_ceil_div(byi_max(rest, 0),
                                                          w->dilation[axis])));
}

/* --- plain: one output at a time ---------------------------------------- */

/* One output, and the taps [first, last) of its window that lie on data. */
struct tap_box {
    int64_t out[3], first[3], last[3];
};

static void box_of(const struct byi_window *w, int64_t flat,
                   struct tap_box *box)
{
    byi_unflatten(w->out, flat, box->out);
    for (int i = 0; i < 3; i++)
        byi_window_taps(w, i, box->out[i], &box->first[i], &box->last[i]);
}

static int64_t position_of(const struct byi_window *w, int axis, int64_t out,
                           int64_t tap)
{
    return out * w->stride[axis] - w->pad[axis] + tap * w->dilation[axis];
}

/* Run `body` for every tap of the box, with `at` set to the position in the
 * plane that the tap reads. */
#define FOR_TAPS(w, box, at, body)                                             \
    for (int64_t i_ = (box).first[0]; i_ < (box).last[0]; i_++)                \
        for (int64_t j_ = (box).first[1]; j_ < (box).last[1]; j_++)            \
            for (int64_t k_ = (box).first[2]; k_ < (box).last[2]; k_++) {      \
                int64_t at = position_of(w, 0, (box).out[0], i_);              \
                at = at * (w)->in[1] + position_of(w, 1, (box).out[1], j_);    \
                at = at * (w)->in[2] + position_of(w, 2, (box).out[2], k_);    \
                body                                                           \
            }

/* The index of a maximum as ONNX defines it: its position in the whole tensor,
 * row-major or column-major within a plane. */
static int64_t index_of(const struct pooling *v, int64_t plane,
                        int64_t position)
{
    const int64_t *dims = v->w.in;
    int64_t at[3], index = position;
    if (v->column_major) {
        byi_unflatten(dims, position, at);
        index = (at[2] * dims[1] + at[1]) * dims[0] + at[0];
    }
    return plane * v->w.in_count + index;
}

#define IS_NAN(x) ((x) != (x))
#define NEVER_NAN(x) false

/* Define a plane_fn that computes maxima and, if requested, their indices. */
#define MAXIMUM_PLANE(id, type, least, is_nan)                                 \
    static void max_##id(const struct pooling *v, int64_t plane)               \
    {                                                                          \
        const int64_t step = v->block;                                         \
        const type *x =                                                        \
            (const type *)v->x + plane_at(v, plane, v->w.in_count);            \
        type *y = (type *)v->y + plane_at(v, plane, v->w.out_count);           \
        for (int64_t p = 0; p < v->w.out_count; p++) {                         \
            struct tap_box box;                                                \
            type best = least;                                                 \
            int64_t best_position = -1;                                        \
            box_of(&v->w, p, &box);                                            \
            FOR_TAPS(&v->w, box, at, {                                         \
                const type element = x[at * step];                             \
                if (best_position < 0 || element > best ||                     \
                    (is_nan(element) && !is_nan(best))) {                      \
                    best = element;                                            \
                    best_position = at;                                        \
                }                                                              \
            })                                                                 \
            y[p * step] = best;                                                \
            if (v->indices)                                                    \
                v->indices[plane * v->w.out_count + p] =                       \
                    best_position < 0 ? 0 : index_of(v, plane, best_position); \
        }                                                                      \
    }
MAXIMUM_PLANE(F32, float, -INFINITY, IS_NAN)
MAXIMUM_PLANE(F64, double, -INFINITY, IS_NAN)
MAXIMUM_PLANE(U8, uint8_t, 0, NEVER_NAN)
MAXIMUM_PLANE(I8, int8_t, INT8_MIN, NEVER_NAN)
MAXIMUM_PLANE(U16, uint16_t, 0, NEVER_NAN)
MAXIMUM_PLANE(I16, int16_t, INT16_MIN, NEVER_NAN)
MAXIMUM_PLANE(U32, uint32_t, 0, NEVER_NAN)
MAXIMUM_PLANE(I32, int32_t, INT32_MIN, NEVER_NAN)
MAXIMUM_PLANE(U64, uint64_t, 0, NEVER_NAN)
MAXIMUM_PLANE(I64, int64_t, INT64_MIN, NEVER_NAN)

static double norm_term(double x, int64_t p)
{
    const double magnitude = fabs(x);
    return p == 1   ? magnitude
           : p == 2 ? magnitude * magnitude
                    : pow(magnitude, (double)p);
}

static double norm_root(double sum, int64_t p)
{
    return p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / (double)p);
}

static double mean_result(const struct pooling *v, const struct tap_box *box,
                          double sum)
{
    double count = 1;
    for (int i = 0; i < 3; i++)
        count *= (double)divisor(v, i, box->out[i]);
    return count > 0 ? sum / count : 0;
}

static double norm_result(const struct pooling *v, const struct tap_box *box,
                          double sum)
{
    (void)box;
    return norm_root(sum, v->p);
}

/* Define a plane_fn that sums a term of each tap and computes the output from
 * the sum. */
#define SUM_PLANE(kind, id, type, term)                                        \
    static void kind##_##id(const struct pooling *v, int64_t plane)            \
    {                                                                          \
        const int64_t step = v->block;                                         \
        const type *x =                                                        \
            (const type *)v->x + plane_at(v, plane, v->w.in_count);            \
        type *y = (type *)v->y + plane_at(v, plane, v->w.out_count);           \
        for (int64_t p = 0; p < v->w.out_count; p++) {                         \
            struct tap_box box;                                                \
            double sum = 0;                                                    \
            box_of(&v->w, p, &box);                                            \
            FOR_TAPS(&v->w, box, at, { sum += term((double)x[at * step]); })   \
            y[p * step] = (type)kind##_result(v, &box, sum);                   \
        }                                                                      \
    }
#define MEAN_TERM(x) (x)
#define NORM_TERM(x) norm_term((x), v->p)
SUM_PLANE(mean, F32, float, MEAN_TERM)
SUM_PLANE(mean, F64, double, MEAN_TERM)
SUM_PLANE(norm, F32, float, NORM_TERM)
SUM_PLANE(norm, F64, double, NORM_TERM)

typedef void (*plane_fn)(const struct pooling *v, int64_t plane);

static const plane_fn plain[][BYI_DTYPES] = {
#define MAXIMUM_ENTRY(id, type) [BYOC_##id] = max_##id,
    [MAXIMUM] = {BYI_EACH_FLOAT(MAXIMUM_ENTRY) BYI_EACH_INT(MAXIMUM_ENTRY)},
    [MEAN] = {[BYOC_F32] = mean_F32, [BYOC_F64] = mean_F64},
    [NORM] = {[BYOC_F32] = norm_F32, [BYOC_F64] = norm_F64},
};

/* --- float32: contiguous channels ---------------------------------------- */

/* Compute output `at` of a block of v->block channels. */
static void pool_block(const struct pooling *v, const float *x, int64_t at,
                       float *y)
{
    const struct byi_simd *simd = byi_simd();
    const struct byi_window *w = &v->w;
    const int64_t n = v->block;
    struct tap_box box;
    int64_t count = 1;
    for (int64_t i = 0; i < n; i++)
        y[i] = v->kind == MAXIMUM ? -INFINITY : 0;
    box_of(w, at, &box);
    FOR_TAPS(w, box, position, {
        if (v->kind == MAXIMUM)
            simd->slide_max(x + position * n, 1, y, n);
        else
            simd->slide_add(x + position * n, 1, y, n);
    })
    if (v->kind == MAXIMUM)
        return;
    for (int i = 0; i < 3; i++)
        count *= divisor(v, i, box.out[i]);
    for (int64_t i = 0; i < n; i++)
        y[i] = count ? y[i] / (float)count : 0;
}

/* Compute a row of outputs of a block of channels; `item` numbers the rows of
 * all blocks. */
static void block_row(const struct pooling *v, int64_t item)
{
    const struct byi_window *w = &v->w;
    const int64_t rows = w->out[0] * w->out[1];
    const int64_t block = item / rows, from = item % rows * w->out[2];
    const float *x = (const float *)v->x + block * w->in_count * v->block;
    float *y = (float *)v->y + block * w->out_count * v->block;
    for (int64_t at = from; at < from + w->out[2]; at++)
        pool_block(v, x, at, y + at * v->block);
}

/* --- float32: planes ------------------------------------------------------ */

/* Set factors[] to the reciprocal divisor of each output, by which its sum is
 * multiplied to get the mean. The windows of most rows have the same number of
 * rows on data, and then the same factors. */
static void list_factors(const struct pooling *v, float *factors)
{
    const struct byi_window *w = &v->w;
    const int64_t n = w->out[2];
    int64_t previous = -1;
    for (int64_t row = 0; row < w->out[0] * w->out[1]; row++, factors += n) {
        const int64_t high =
            divisor(v, 0, row / w->out[1]) * divisor(v, 1, row % w->out[1]);
        if (high == previous) {
            memcpy(factors, factors - n, (size_t)n * sizeof *factors);
            continue;
        }
        previous = high;
        for (int64_t i = 0; i < n; i++) {
            const int64_t count = high * divisor(v, 2, i);
            factors[i] = count ? 1.0f / (float)count : 0;
        }
    }
}

static uint64_t factor_bytes(const struct pooling *v)
{
    return v->kind == MEAN
               ? byi_align_bytes((uint64_t)v->w.out_count * sizeof(float))
               : 0;
}

static enum byi_window_kind window_kind(const struct pooling *v)
{
    return v->kind == MEAN ? BYI_WINDOW_SUM : BYI_WINDOW_MAX;
}

static void run_planes(const struct byi_call *call, const struct pooling *v)
{
    float *factors = v->kind == MEAN ? call->scratch : NULL;
    const struct byi_sliding planes = {
        .kind = window_kind(v),
        .w = &v->w,
        .images = 1,
        .channels = v->planes,
        .repeat = 1,
        .x = v->x,
        .factors = factors,
        .y = v->y,
    };
    if (factors)
        list_factors(v, factors);
    byi_sliding_run(&planes, call, (char *)call->scratch + factor_bytes(v));
}

/* --- maxima of other types: in vectors of columns, or of channels --------- */

enum { MAX_ROW_INPUTS = 4096 }; /* largest number of inputs in a row */

/* The outputs of a row whose window has tap k on data. */
struct tap_outputs {
    int64_t first, last;
};

/* The first element of the row that taps (i, j, 0) of a box read. */
static int64_t row_of(const struct byi_window *w, const struct tap_box *box,
                      int64_t i, int64_t j)
{
    return (position_of(w, 0, box->out[0], i) * w->in[1] +
            position_of(w, 1, box->out[1], j)) *
           w->in[2];
}

/* Define max_rows_ID(), a plane_fn: combines the rows under the windows in
 * vectors, and then the columns under each window, so that each output reads
 * few elements. Also define max_blocks_ID(), which combines the channels of a
 * block under the window of one output, `item` of all blocks. */
#define MAXIMUM_ROWS(id, type, least, is_nan)                                  \
    static void combine_rows_##id(const type *restrict row,                    \
                                  type *restrict best, int64_t n)              \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            best[i] = (row[i] > best[i]) | is_nan(row[i]) ? row[i] : best[i];  \
    }                                                                          \
    static void combine_taps_##id(const struct byi_window *w,                  \
                                  const struct tap_outputs *taps,              \
                                  const type *best, type *restrict y)          \
    {                                                                          \
        for (int64_t i = 0; i < w->out[2]; i++)                                \
            y[i] = least;                                                      \
        for (int64_t k = 0; k < w->size[2]; k++) {                             \
            const int64_t at = k * w->dilation[2] - w->pad[2];                 \
            for (int64_t i = taps[k].first; i < taps[k].last; i++) {           \
                const type element = best[at + i * w->stride[2]];              \
                y[i] = (element > y[i]) | is_nan(element) ? element : y[i];    \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    static void max_rows_##id(const struct pooling *v, int64_t plane)          \
    {                                                                          \
        const struct byi_window *w = &v->w;                                    \
        const int64_t n = w->in[2];                                            \
        const type *x = (const type *)v->x + plane * w->in_count;              \
        type *y = (type *)v->y + plane * w->out_count;                         \
        struct tap_outputs taps[MAX_TAPS];                                     \
        struct tap_box box;                                                    \
        type best[MAX_ROW_INPUTS];                                             \
        for (int64_t k = 0; k < w->size[2]; k++)                               \
            byi_window_outputs(w, k, &taps[k].first, &taps[k].last);           \
        for (int64_t p = 0; p < w->out_count; p += w->out[2]) {                \
            box_of(w, p, &box);                                                \
            for (int64_t i = 0; i < n; i++)                                    \
                best[i] = least;                                               \
            for (int64_t i = box.first[0]; i < box.last[0]; i++)               \
                for (int64_t j = box.first[1]; j < box.last[1]; j++)           \
                    combine_rows_##id(x + row_of(w, &box, i, j), best, n);     \
            combine_taps_##id(w, taps, best, y + p);                           \
        }                                                                      \
    }                                                                          \
    static void max_blocks_##id(const struct pooling *v, int64_t item)         \
    {                                                                          \
        const struct byi_window *w = &v->w;                                    \
        const int64_t n = v->block, p = item % w->out_count;                   \
        const type *x =                                                        \
            (const type *)v->x + item / w->out_count * w->in_count * n;        \
        type *y = (type *)v->y + item * n;                                     \
        struct tap_box box;                                                    \
        for (int64_t i = 0; i < n; i++)                                        \
            y[i] = least;                                                      \
        box_of(w, p, &box);                                                    \
        FOR_TAPS(w, box, at, { combine_rows_##id(x + at * n, y, n); })         \
    }
MAXIMUM_ROWS(F64, double, -INFINITY, IS_NAN)
MAXIMUM_ROWS(U8, uint8_t, 0, NEVER_NAN)
MAXIMUM_ROWS(I8, int8_t, INT8_MIN, NEVER_NAN)
MAXIMUM_ROWS(U16, uint16_t, 0, NEVER_NAN)
MAXIMUM_ROWS(I16, int16_t, INT16_MIN, NEVER_NAN)
MAXIMUM_ROWS(U32, uint32_t, 0, NEVER_NAN)
MAXIMUM_ROWS(I32, int32_t, INT32_MIN, NEVER_NAN)
MAXIMUM_ROWS(U64, uint64_t, 0, NEVER_NAN)
MAXIMUM_ROWS(I64, int64_t, INT64_MIN, NEVER_NAN)

/* The loop over rows if channels are first, or over blocks of channels. NULL
 * unless the call is a maximum without indices. Also NULL for float32, which
 * has faster loops, and if the window or a row is too large. */
static plane_fn vector_loop(const struct pooling *v, enum byoc_dtype dtype)
{
#define MAXIMUM_LOOPS(id, type) [BYOC_##id] = {max_rows_##id, max_blocks_##id},
    static const plane_fn loops[BYI_DTYPES][2] = {
        MAXIMUM_LOOPS(F64, double) BYI_EACH_INT(MAXIMUM_LOOPS)};
#undef MAXIMUM_LOOPS
    if (v->kind != MAXIMUM || v->indices ||
        (v->block == 1 &&
         (v->w.taps > MAX_TAPS || v->w.in[2] > MAX_ROW_INPUTS)))
        return NULL;
    return loops[dtype][v->block > 1];
}

/* --- float32: maxima with indices, a row of outputs at a time ------------- */

enum { COLUMNS = 256 }; /* outputs of a row at a time */

/* The maxima of some adjacent outputs of a row, and their positions in the
 * plane, -1 before the first tap. */
struct indexed_maxima {
    int64_t first, n;
    float *y;
    int32_t at[COLUMNS];
};

/* Combine the taps of the windows that read the row of x at position `row`. */
static void index_row(const struct byi_window *w, const float *x, int64_t row,
                      struct indexed_maxima *m)
{
    const int64_t stride = w->stride[2];
    for (int64_t k = 0; k < w->size[2]; k++) {
        int64_t first, last;
        byi_window_outputs(w, k, &first, &last);
        first = byi_max(first, m->first);
        last = byi_min(last, m->first + m->n);
        if (first >= last)
            continue;
        const int64_t from = row + position_of(w, 2, first, k);
        byi_simd()->slide_index(x + from, stride, (int32_t)from,
                                m->y + (first - m->first),
                                m->at + (first - m->first), last - first);
    }
}

static void indexed_plane(const struct pooling *v, int64_t plane)
{
    const struct byi_window *w = &v->w;
    const float *x = (const float *)v->x + plane * w->in_count;
    struct indexed_maxima m;
    for (int64_t p = 0; p < w->out_count; p += m.n) {
        const int64_t out = plane * w->out_count + p;
        struct tap_box box;
        box_of(w, p, &box);
        m.first = box.out[2];
        m.n = byi_min(COLUMNS, w->out[2] - m.first);
        m.y = (float *)v->y + out;
        memset(m.at, -1, sizeof m.at);
        for (int64_t i = 0; i < m.n; i++)
            m.y[i] = -INFINITY;
        for (int64_t i = box.first[0]; i < box.last[0]; i++)
            for (int64_t j = box.first[1]; j < box.last[1]; j++)
                index_row(w, x, row_of(w, &box, i, j), &m);
        for (int64_t i = 0; i < m.n; i++)
            v->indices[out + i] =
                m.at[i] < 0 ? 0 : plane * w->in_count + m.at[i];
    }
}

/* --- float32: choosing the algorithm -------------------------------------- */

/* Whether the float32 loops support the call. Sums of more than MAX_TAPS floats
 * need double. */
static bool has_float_loops(const struct pooling *v, enum byoc_dtype dtype)
{
    return dtype == BYOC_F32 && v->kind != NORM && !v->indices &&
           v->w.taps <= MAX_TAPS;
}

/* Whether indexed_plane() supports the call, with 32-bit positions. */
static bool is_indexed(const struct pooling *v, enum byoc_dtype dtype)
{
    return dtype == BYOC_F32 && v->indices && !v->column_major &&
           v->block == 1 && v->w.taps <= MAX_TAPS && v->w.in_count <= INT32_MAX;
}

static bool uses_planes(const struct pooling *v, enum byoc_dtype dtype)
{
    return has_float_loops(v, dtype) && v->block == 1 &&
           byi_sliding_fits(window_kind(v), &v->w);
}

/* Call run() for every item; a plane takes `work` simple operations. */
static void run_items(const struct byi_call *call, const struct pooling *v,
                      plane_fn run, int64_t items, int64_t work)
{
    const int team = byi_team(call, v->planes * work);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t i = 0; i < items; i++)
        run(v, i);
}

static enum byoc_status run_pool(const struct byi_call *call, bool fast,
                                 struct byoc_error *err)
{
    struct pooling v;
    BYI_TRY(describe(call, &v, err));
    plane_fn run = plain[v.kind][call->in->dtype];
    if (!run)
        return byi_bad_dtype(call, call->in->dtype,
                             v.kind == MAXIMUM
                                 ? "a float or an integer type"
                                 : "float16, bfloat16, float32 or float64",
                             err);
    if (fast && uses_planes(&v, call->in->dtype)) {
        run_planes(call, &v);
        return BYOC_OK;
    }
    int64_t items = v.planes;
    if (fast && vector_loop(&v, call->in->dtype)) {
        run = vector_loop(&v, call->in->dtype);
        items = v.block > 1 ? v.planes / v.block * v.w.out_count : v.planes;
    }
    if (fast && is_indexed(&v, call->in->dtype))
        run = indexed_plane;
    if (fast && v.block > 1 && has_float_loops(&v, call->in->dtype)) {
        run = block_row;
        items = v.planes / v.block * v.w.out[0] * v.w.out[1];
    }
    run_items(call, &v, run, items,
              byi_min(v.w.taps, v.w.in_count) * v.w.out_count);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(pool)

static uint64_t pool_scratch_f32(const struct byi_call *call)
{
    struct pooling v;
    struct byoc_error ignored;
    if (describe(call, &v, &ignored) != BYOC_OK ||
        !uses_planes(&v, call->in->dtype))
        return 0;
    return factor_bytes(&v) + byi_sliding_scratch(&v.w, call->threads);
}

BYI_FLOAT_KERNEL(pool, pool_run_fast, pool_scratch_f32)

/* --- over all spatial axes ----------------------------------------------- */

static void global_max(const struct pooling *v, int64_t plane)
{
    const float *x = (const float *)v->x + plane * v->w.in_count;
    float *y = (float *)v->y + plane;
    *y = -INFINITY;
    byi_simd()->extreme_row[0][BYOC_F32](x, v->w.in_count, y);
}

static void global_mean(const struct pooling *v, int64_t plane)
{
    const float *x = (const float *)v->x + plane * v->w.in_count;
    ((float *)v->y)[plane] = (float)(byi_simd()->sum(x, v->w.in_count) /
                                     (double)byi_max(v->w.in_count, 1));
}

enum {
    STRIP = 64, /* channels of a task: a few cache lines per position */
    CHUNK = 256 /* positions per partial sum                         */
};

static int64_t strips_of(const struct pooling *v)
{
    return byi_ceil_div(v->block, STRIP);
}

/* Compute STRIP channels of a block, or fewer at its end. */
static void global_strip(const struct pooling *v, int64_t item)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t block = item / strips_of(v), count = v->w.in_count;
    const int64_t first = item % strips_of(v) * STRIP;
    const int64_t n = byi_min(STRIP, v->block - first);
    const float *x = (const float *)v->x + block * count * v->block + first;
    float *y = (float *)v->y + block * v->block + first, sums[STRIP];
    for (int64_t i = 0; i < n; i++)
        y[i] = v->kind == MAXIMUM ? -INFINITY : 0;
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t end = byi_min(at + CHUNK, count);
        memset(sums, 0, sizeof sums);
        for (int64_t p = at; p < end; p++)
            if (v->kind == MAXIMUM)
                simd->slide_max(x + p * v->block, 1, y, n);
            else
                simd->slide_add(x + p * v->block, 1, sums, n);
        for (int64_t i = 0; i < n && v->kind == MEAN; i++)
            y[i] += sums[i];
    }
    for (int64_t i = 0; i < n && v->kind == MEAN; i++)
        y[i] /= (float)byi_max(count, 1);
}

static enum byoc_status global_run_f32(const struct byi_call *call,
                                       struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const struct byi_attr *layout = byi_attr_find(call->attrs, "layout");
    struct byi_image_layout in = {.n = x->dims[0],
                                  .c = x->dims[1],
                                  .block = 1,
                                  .count = byi_span(x, 2, x->rank)};
    if (layout)
        byi_image_read(x, layout->s, &in);
    const int64_t space = in.count;
    struct pooling v = {
        .kind = kind_of(call->op->id),
        .p = byi_attr_find(call->attrs, "p") ? byi_attr_int(call->attrs, "p")
                                             : 1,
        .planes = in.n * in.c,
        .block = in.block,
        .x = x->data,
        .y = call->out->data,
        /* one window of the size of the data */
        .w = {.in = {1, 1, space},
              .out = {1, 1, 1},
              .size = {1, 1, space},
              .stride = {1, 1, 1},
              .dilation = {1, 1, 1},
              .in_count = space,
              .out_count = 1,
              .taps = space},
    };
    int64_t items = v.planes;
    plane_fn run = plain[v.kind][x->dtype];
    if (!run)
        return byi_bad_dtype(call, x->dtype,
                             v.kind == MAXIMUM
                                 ? "a float or an integer type"
                                 : "float16, bfloat16, float32 or float64",
                             err);
    if (x->dtype == BYOC_F32 && v.kind != NORM) {
        run = v.kind == MAXIMUM ? global_max : global_mean;
        if (v.block > 1) {
            run = global_strip;
            items = v.planes / v.block * strips_of(&v);
        }
    }
    run_items(call, &v, run, items, space);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(global, global_run_f32, NULL)

#define POOL(id)                                                               \
    {                                                                          \
        BYI_OP_##id,                                                           \
        {                                                                      \
            pool_run, pool_scratch                                             \
        }                                                                      \
    }
#define GLOBAL(id)                                                             \
    {                                                                          \
        BYI_OP_##id,                                                           \
        {                                                                      \
            global_run, global_scratch                                         \
        }                                                                      \
    }
BYI_KERNEL_ROWS(pool, POOL(NN_MAX_POOL1D), POOL(NN_MAX_POOL2D),
                POOL(NN_MAX_POOL3D), POOL(NN_AVG_POOL1D), POOL(NN_AVG_POOL2D),
                POOL(NN_AVG_POOL3D), POOL(NN_MAX_POOL_INDICES),
                POOL(NN_LP_POOL), GLOBAL(NN_GLOBAL_MAX_POOL1D),
                GLOBAL(NN_GLOBAL_MAX_POOL2D), GLOBAL(NN_GLOBAL_MAX_POOL3D),
                GLOBAL(NN_GLOBAL_AVG_POOL1D), GLOBAL(NN_GLOBAL_AVG_POOL2D),
                GLOBAL(NN_GLOBAL_AVG_POOL3D), GLOBAL(NN_GLOBAL_LP_POOL))
