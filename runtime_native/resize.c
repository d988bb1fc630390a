/* resize.c: the kernel of image.resize, as ONNX Resize of opset 13 defines it
 * for any rank. Every axis has its own coordinates, so each becomes a list of
 * taps: which inputs an output position reads, and how much of each. nearest
 * has one tap and moves elements of any type; linear has two and cubic four,
 * applied one axis after the other, in float32 (float64 for float64).
 * cubic: R. Keys, "Cubic convolution interpolation for digital image
 * processing", 1981, equation 4.
 */
#include "move.h"

enum { MAX_TAPS = 4 };

enum coordinates {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE
};
enum nearest { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, FLOOR, CEIL };

static const char *const coordinate_names[] = {
    "half_pixel", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
static const char *const nearest_names[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

/* One axis: index[j taps + t] and weight[..] are tap t of output position j;
 * outside[j]: it lies beyond the input and gets the extrapolation value. */
struct axis {
    int64_t in, out;
    double scale, length; /* out / in; the length that scale stands for */
    double begin, end;    /* roi */
    int64_t *index;
    double *weight;
    bool *outside;
    bool identity;
};

struct resize {
    const struct byi_tensor *x, *y;
    struct axis axes[BYI_MAX_RANK];
    uint32_t taps;
    enum coordinates coordinates;
    enum nearest nearest;
    double cubic_a;
    bool exclude_outside;
    size_t work; /* bytes of an element of the buffers */
    char *buffers[2];
    uint64_t bytes; /* of scratch */
};

static uint32_t find(const char *const *names, const char *name)
{
    uint32_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++; /* the type rule knows no other words */
    return i;
}

/* A piece of scratch of so many bytes. */
static void *piece(char *base, uint64_t *used, uint64_t bytes)
{
    void *at = base ? base + *used : NULL;
    *used += byi_lines(bytes);
    return at;
}

/* Elements of the largest buffer between two passes: the axes before one are
 * resized, those after it are not. Floats read x and write y themselves. */
static int64_t largest_buffer(const struct resize *r)
{
    const uint32_t rank = r->x->rank;
    const bool direct = byi_dtype_is_float(r->x->dtype);
    int64_t most = direct ? 0 : byi_count(r->x);
    for (uint32_t i = 0; i + direct < rank; i++)
        most = byi_max(most,
                       byi_span(r->y, 0, i + 1) * byi_span(r->x, i + 1, rank));
    return most;
}

/* All but the taps themselves, from types and attributes alone. */
static struct resize plan(const struct byi_call *call)
{
    const struct byi_attrs *attrs = call->attrs;
    const char *mode = byi_attr_string(attrs, "mode");
    struct resize r = {
        .x = call->in,
        .y = call->out,
        .taps = mode[0] == 'n'   ? 1
                : mode[0] == 'l' ? 2
                                 : 4,
        .coordinates = (enum coordinates)find(
            coordinate_names,
            byi_attr_string(attrs, "coordinate_transformation_mode")),
        .nearest = (enum nearest)find(nearest_names,
                                      byi_attr_string(attrs, "nearest_mode")),
        .cubic_a = byi_attr_float(attrs, "cubic_coeff_a"),
        .exclude_outside = byi_attr_int(attrs, "exclude_outside") != 0,
        .work = call->in->dtype == BYOC_F64 ? sizeof(double) : sizeof(float),
    };
    for (uint32_t i = 0; i < r.x->rank; i++) {
        struct axis *a = &r.axes[i];
        a->in = r.x->dims[i];
        a->out = r.y->dims[i];
        const uint64_t n = (uint64_t)a->out * r.taps;
        a->index = piece(call->scratch, &r.bytes, n * sizeof *a->index);
        a->weight = piece(call->scratch, &r.bytes, n * sizeof *a->weight);
        a->outside = piece(call->scratch, &r.bytes, (uint64_t)a->out);
    }
    if (r.taps > 1)
        for (int i = 0; i < 2; i++)
            r.buffers[i] = piece(call->scratch, &r.bytes,
                                 (uint64_t)largest_buffer(&r) * r.work);
    return r;
}

static uint64_t resize_scratch(const struct byi_call *call)
{
    struct byi_call sized = *call;
    sized.scratch = NULL;
    return plan(&sized).bytes;
}

/* --- taps --------------------------------------------------------------- */

static double source_of(const struct resize *r, const struct axis *a, int64_t j)
{
    const double at = (double)j, last = (double)(a->in - 1);
    switch (r->coordinates) {
    case HALF_PIXEL:
        return (at + 0.5) / a->scale - 0.5;
    case PYTORCH_HALF_PIXEL:
        return a->length > 1 ? (at + 0.5) / a->scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return a->length == 1 ? 0 : at * last / (a->length - 1);
    case ASYMMETRIC:
        return at / a->scale;
    case TF_HALF_PIXEL_FOR_NN:
        return (at + 0.5) / a->scale;
    default:
        if (a->out > 1)
            return a->begin * last +
                   at * (a->end - a->begin) * last / ((double)a->out - 1);
        return 0.5 * (a->begin + a->end) * last;
    }
}

/* Positions are kept near the input, so that none overflows an integer. */
static double bound(double at, int64_t in)
{
    const double far = (double)in + MAX_TAPS;
    return !(at > -MAX_TAPS) ? -MAX_TAPS : at > far ? far : at;
}

static int64_t round_nearest(enum nearest mode, double at)
{
    switch (mode) {
    case ROUND_PREFER_FLOOR:
        return (int64_t)ceil(at - 0.5);
    case ROUND_PREFER_CEIL:
        return (int64_t)floor(at + 0.5);
    case FLOOR:
        return (int64_t)floor(at);
    default:
        return (int64_t)ceil(at);
    }
}

/* Weights of the taps at distance 1 + t, t, 1 - t, 2 - t. */
static void cubic_weights(double a, double t, double *w)
{
    const double far = 1 + t, near = 1 - t, last = 2 - t;
    w[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    w[3] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
}

/* Taps outside of the input count for nothing, and the rest for all. */
static void exclude(int64_t first, int64_t in, uint32_t taps, double *w)
{
    double sum = 0;
    for (uint32_t t = 0; t < taps; t++) {
        if (first + t < 0 || first + t >= in)
            w[t] = 0;
        sum += w[t];
    }
    for (uint32_t t = 0; t < taps && sum != 0; t++)
        w[t] /= sum;
}

static void set_taps(const struct resize *r, struct axis *a, int64_t j)
{
    int64_t *index = a->index + j * r->taps;
    double *w = a->weight + j * r->taps;
    const double real = source_of(r, a, j);
    const double at = bound(real, a->in);
    int64_t first = 0;
    a->outside[j] = r->coordinates == TF_CROP_AND_RESIZE &&
                    !(real >= 0 && real <= (double)(a->in - 1));
    if (r->taps == 1) {
        first = round_nearest(r->nearest, at);
        w[0] = 1;
    } else if (r->taps == 2) {
        first = (int64_t)floor(at);
        w[1] = at - floor(at);
        w[0] = 1 - w[1];
    } else {
        first = (int64_t)floor(at) - 1;
        cubic_weights(r->cubic_a, at - floor(at), w);
    }
    if (r->exclude_outside && r->taps > 1)
        exclude(first, a->in, r->taps, w);
    for (uint32_t t = 0; t < r->taps; t++) {
        index[t] = byi_max(0, byi_min(a->in - 1, first + t));
        if (w[t] != 0 && !(w[t] == 1 && index[t] == j))
            a->identity = false;
    }
    if (a->outside[j])
        a->identity = false;
}

/* The part of axis i that roi, an attribute or operand 2, asks for. */
static void read_part(const struct byi_call *call, uint32_t i, double *begin,
                      double *end)
{
    const uint32_t rank = call->in->rank;
    uint32_t n = 0;
    *begin = 0;
    *end = 1;
    if (call->op->id == BYI_OP_DYN_RESIZE) {
        *begin = byi_tensor_float(&call->in[2], i);
        *end = byi_tensor_float(&call->in[2], rank + i);
        return;
    }
    const double *roi = byi_attr_floats(call->attrs, "roi", &n);
    if (n == 2 * rank) {
        *begin = roi[i];
        *end = roi[rank + i];
    }
}

static void fill_axes(const struct byi_call *call, struct resize *r)
{
    const struct byi_tensor *given = &call->in[1];
    for (uint32_t i = 0; i < r->x->rank; i++) {
        struct axis *a = &r->axes[i];
        a->scale = (double)a->out / (double)a->in;
        a->length = (double)a->out;
        if (given->dtype == BYOC_F32) {
            /* The length is what the scale says, before it is rounded down:
             * so do the reference and its test data. */
            a->scale = byi_tensor_float(given, i);
            a->length = a->scale * (double)a->in;
        }
        read_part(call, i, &a->begin, &a->end);
        a->identity = a->in == a->out;
        for (int64_t j = 0; j < a->out; j++)
            set_taps(r, a, j);
    }
}

/* --- nearest ------------------------------------------------------------ */

/* One row of the last axis from the row src; NULL: all is extrapolated. */
static void nearest_row(const struct axis *a, const char *src, char *dst,
                        const char *value, size_t size)
{
    const int64_t bytes = (int64_t)size;
    if (!src) {
        byi_fill(dst, value, a->out, size);
        return;
    }
    if (a->identity) {
        memcpy(dst, src, (size_t)a->out * size);
        return;
    }
    for (int64_t j = 0; j < a->out; j++)
        byi_copy_cell(dst + j * bytes,
                      a->outside[j] ? value : src + a->index[j] * bytes, size);
}

/* Rows [first, last) of y. A row that reads what the one before it read is
 * that row again. */
static void nearest_rows(const struct resize *r, const char *value,
                         int64_t first, int64_t last)
{
    const uint32_t outer = r->x->rank - 1;
    const size_t size = byi_cell(r->x->dtype);
    const int64_t bytes = r->axes[outer].out * (int64_t)size;
    int64_t strides[BYI_MAX_RANK], at[BYI_MAX_RANK], none = 0;
    const char *before = NULL;
    byi_dense_strides(r->x->rank, r->x->dims, strides);
    byi_seek(outer, r->y->dims, strides, first, at);
    for (int64_t row = first; row < last; row++) {
        const char *src = r->x->data;
        char *dst = (char *)r->y->data + row * bytes;
        for (uint32_t i = 0; i < outer && src; i++)
            src = r->axes[i].outside[at[i]]
                      ? NULL
                      : src + r->axes[i].index[at[i]] * strides[i] *
                                  (int64_t)size;
        if (src && src == before)
            memcpy(dst, dst - bytes, (size_t)bytes);
        else
            nearest_row(&r->axes[outer], src, dst, value, size);
        before = src;
        byi_step(outer, r->y->dims, strides, at, &none);
    }
}

static void run_nearest(const struct byi_call *call, const struct resize *r,
                        const char *value)
{
    const int64_t rows = byi_span(r->y, 0, r->y->rank - 1);
    const int64_t parts = byi_min(rows, byi_team(call, byi_count(r->y)));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        nearest_rows(r, value, rows * p / parts, rows * (p + 1) / parts);
}

/* --- linear and cubic --------------------------------------------------- */

/* x (outer, in, inner) to y (outer, out, inner). Where inner is 1 a line is
 * gathered element by element; else a line is a sum of whole lines. */
#define PASS(T)                                                                \
    static void gather_##T(const struct axis *a, uint32_t taps, const T *x,    \
                           T *y)                                               \
    {                                                                          \
        for (int64_t j = 0; j < a->out; j++) {                                 \
            const int64_t *index = a->index + j * taps;                        \
            const double *weight = a->weight + j * taps;                       \
            T sum = (T)weight[0] * x[index[0]];                                \
            for (uint32_t t = 1; t < taps; t++)                                \
                if (weight[t] != 0)                                            \
                    sum += (T)weight[t] * x[index[t]];                         \
            y[j] = sum;                                                        \
        }                                                                      \
    }                                                                          \
    static void line_##T(const struct axis *a, uint32_t taps, const T *x,      \
                         T *y, int64_t inner, int64_t j)                       \
    {                                                                          \
        const int64_t *index = a->index + j * taps;                            \
        const double *weight = a->weight + j * taps;                           \
        for (uint32_t t = 0; t < taps; t++) {                                  \
            const T *src = x + index[t] * inner;                               \
            const T w = (T)weight[t];                                          \
            if (t == 0)                                                        \
                for (int64_t i = 0; i < inner; i++)                            \
                    y[i] = w * src[i];                                         \
            else if (w != 0)                                                   \
                for (int64_t i = 0; i < inner; i++)                            \
                    y[i] += w * src[i];                                        \
        }                                                                      \
    }                                                                          \
    static void pass_##T(const struct axis *a, uint32_t taps, int64_t outer,   \
                         int64_t inner, const void *from, void *to, int team)  \
    {                                                                          \
        const T *x = from;                                                     \
        T *y = to;                                                             \
        if (inner == 1) {                                                      \
            _Pragma("omp parallel for num_threads(team) if (team > 1)") for (  \
                int64_t o = 0; o < outer; o++)                                 \
                gather_##T(a, taps, x + o * a->in, y + o * a->out);            \
            return;                                                            \
        }                                                                      \
        _Pragma("omp parallel for num_threads(team) if (team > 1)") for (      \
            int64_t l = 0; l < outer * a->out; l++)                            \
            line_##T(a, taps, x + l / a->out * a->in * inner, y + l * inner,   \
                     inner, l % a->out);                                       \
    }
PASS(float)
PASS(double)

/* Apply every axis that does something; `from` is x, or the buffer that holds
 * it converted. Gives where the result is: `to` unless nothing was done. */
static const void *run_passes(const struct byi_call *call,
                              const struct resize *r, const void *from,
                              void *to)
{
    const uint32_t rank = r->x->rank;
    uint32_t left = 0, next = 0;
    for (uint32_t i = 0; i < rank; i++)
        left += !r->axes[i].identity;
    for (uint32_t i = 0; i < rank; i++) {
        const struct axis *a = &r->axes[i];
        if (a->identity)
            continue;
        const int64_t outer = byi_span(r->y, 0, i);
        const int64_t inner = byi_span(r->x, i + 1, rank);
        if (from == r->buffers[next])
            next ^= 1;
        void *into = --left == 0 && to ? to : r->buffers[next];
        const int team =
            byi_team(call, outer * a->out * inner * (int64_t)r->taps);
        (r->work == sizeof(double) ? pass_double : pass_float)(
            a, r->taps, outer, inner, from, into, team);
        from = into;
    }
    return from;
}

/* Positions beyond the input, on any axis, get `value`. */
static void extrapolate(const struct resize *r, const char *value)
{
    const size_t size = byi_cell(r->y->dtype);
    const int64_t n = byi_count(r->y);
    int64_t zeros[BYI_MAX_RANK] = {0}, at[BYI_MAX_RANK] = {0}, none = 0;
    for (int64_t j = 0; j < n; j++) {
        bool outside = false;
        for (uint32_t i = 0; i < r->y->rank; i++)
            outside = outside || r->axes[i].outside[at[i]];
        if (outside)
            byi_copy_cell((char *)r->y->data + j * (int64_t)size, value, size);
        byi_step(r->y->rank, r->y->dims, zeros, at, &none);
    }
}

static void run_smooth(const struct byi_call *call, const struct resize *r)
{
    const int64_t n = byi_count(r->y);
    if (byi_dtype_is_float(r->x->dtype)) {
        const void *at = run_passes(call, r, r->x->data, r->y->data);
        if (at != r->y->data)
            memcpy(r->y->data, at, (size_t)n * r->work);
        return;
    }
    /* Integers: through float32, and back towards zero as a C conversion. */
    float *buffer = (float *)(void *)r->buffers[0];
    const int64_t n_in = byi_count(r->x);
    for (int64_t i = 0; i < n_in; i++)
        buffer[i] = (float)byi_tensor_float(r->x, i);
    const float *result = run_passes(call, r, buffer, NULL);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(call->out, i, (double)result[i]);
}

static enum byoc_status resize_float(const struct byi_call *call,
                                     struct byoc_error *err)
{
    (void)err;
    struct resize r = plan(call);
    uint64_t memory[2] = {0, 0}; /* one element, of any type */
    struct byi_tensor value = {.data = memory, .dtype = r.y->dtype};
    if (byi_count(r.y) == 0)
        return BYOC_OK;
    byi_tensor_set(&value, 0,
                   byi_attr_float(call->attrs, "extrapolation_value"));
    fill_axes(call, &r);
    if (r.taps == 1) {
        run_nearest(call, &r, value.data);
        return BYOC_OK;
    }
    run_smooth(call, &r);
    if (r.coordinates == TF_CROP_AND_RESIZE)
        extrapolate(&r, value.data);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(resize_half, resize_float, resize_scratch)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_RESIZE, {resize_half_run, resize_half_scratch}},
    {BYI_OP_DYN_RESIZE, {resize_half_run, resize_half_scratch}},
};
const struct byi_kernel_rows byi_rows_resize = {rows, BYI_COUNT(rows)};
