/* SPDX-License-Identifier: Apache-2.0 */
/* resample.c: computes the taps of image.resize and dyn.resize (resample.h). An
 * output position lies somewhere between inputs; the filter gives the weights
 * of the inputs around it. Weights beyond an end of the axis are added to the
 * last input there.
 */
#include "resample.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 16, /* taps and weights are padded to a multiple of this */
    FAR = 4,    /* positions are clamped to FAR + radius outside the input */
    SHORT_TAPS = 8, /* with at most this many taps, vectorise over positions */
    /* cost of a row that is not vectorised over positions, relative to a sum of
     * rows */
    SLOW = 8,
};

enum coordinates {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE,
    HALF_PIXEL_SYMMETRIC
};
enum nearest { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, FLOOR, CEIL };
enum mode { NEAREST, LINEAR, CUBIC };

static const char *const coordinate_names[] = {
    "half_pixel",          "pytorch_half_pixel",   "align_corners",
    "asymmetric",          "tf_half_pixel_for_nn", "tf_crop_and_resize",
    "half_pixel_symmetric"};
static const char *const nearest_names[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
static const char *const mode_names[] = {"nearest", "linear", "cubic"};

/* The attributes of a resize, and one of its axes. */
struct filter {
    enum mode mode;
    enum coordinates coordinates;
    enum nearest nearest;
    double cubic_a;
    bool exclude_outside, antialias, round_dims;
    int64_t in, out;
    bool sized; /* the caller gives sizes, not scales */
    /* of the output to the input; the output's length before rounding */
    double scale, length;
    double begin, end; /* of the resized part, as fractions of the axis */
    double narrow;     /* distances are multiplied by it; antialiasing: < 1 */
    int64_t radius;    /* taps on each side; nearest: 0 */
};

static uint32_t find_word(const char *const *names, const char *name)
{
    uint32_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++; /* the type rule refuses other words */
    return i;
}

static struct filter read_filter(const struct byi_resample *r, uint32_t axis)
{
    const struct byi_attrs *attrs = r->attrs;
    const char *coordinates =
        byi_attr_string(attrs, "coordinate_transformation_mode");
    return (struct filter){
        .mode =
            (enum mode)find_word(mode_names, byi_attr_string(attrs, "mode")),
        .coordinates =
            (enum coordinates)find_word(coordinate_names, coordinates),
        .nearest = (enum nearest)find_word(
            nearest_names, byi_attr_string(attrs, "nearest_mode")),
        .cubic_a = byi_attr_float(attrs, "cubic_coeff_a"),
        .exclude_outside = byi_attr_int(attrs, "exclude_outside") != 0,
        .antialias = byi_attr_int(attrs, "antialias") != 0,
        .round_dims =
            r->op == BYI_OP_RESIZE && byi_attr_int(attrs, "round_dims") != 0,
        .in = r->x->dims[axis],
        .out = r->y->dims[axis],
        .narrow = 1,
    };
}

/* --- memory of the lists ------------------------------------------------ */

/* The most taps of a position, for any scale, since the plan's size must not
 * depend on the scales' values. */
static int64_t max_taps(const struct filter *f)
{
    const double support = f->mode == CUBIC ? 2 : 1;
    /* the least length that rounds to `out` */
    const double length = (double)f->out - (f->round_dims ? 0.5 : 0);
    const double shrinks = (double)f->in / length;
    if (f->mode == NEAREST)
        return 1;
    double taps = 2 * support;
    if (f->antialias && f->coordinates == TF_CROP_AND_RESIZE)
        taps = (double)f->in;
    else if (f->antialias && shrinks > 1)
        taps = 2 * ceil(support * shrinks) + 2;
    return taps < (double)f->in ? (int64_t)taps : f->in;
}

uint64_t byi_resample_plan(struct byi_resample *r, void *memory)
{
    const uint64_t size = r->x->dtype == BYOC_F64 ? sizeof(double) : 4;
    uint64_t used = 0;
    for (uint32_t i = 0; i < r->x->rank; i++) {
        const struct filter f = read_filter(r, i);
        struct byi_taps *a = &r->axes[i];
        *a = (struct byi_taps){.in = f.in, .out = f.out};
        if (f.in > INT32_MAX || f.out > INT32_MAX || f.out == 0)
            continue; /* byi_resample_fill refuses it, or it is never read */
        const int64_t pitch = (f.out + LANES - 1) / LANES * LANES;
        a->n = max_taps(&f);
        if (pitch > (INT64_C(1) << 40) / a->n)
            return UINT64_MAX / 2; /* more than any machine has */
        r->first[i] =
            byi_take_bytes(memory, &used, (uint64_t)pitch * sizeof(int32_t));
        r->outside[i] = byi_take_bytes(memory, &used, (uint64_t)f.out);
        if (f.mode != NEAREST)
            r->weight[i] =
                byi_take_bytes(memory, &used, (uint64_t)(pitch * a->n) * size);
    }
    return used;
}

/* --- one position -------------------------------------------------------- */

/* Divide by the scale. The result must be exact if it is an integer or halfway
 * between two, since rounding it then decides which input is the nearest. If
 * sizes are given, the scale is out / in: multiply before dividing. If scales
 * are given with round_dims, they keep an aspect ratio, and each is a ratio of
 * two integers rounded to float32: division in float32 undoes the rounding. */
static double divide_by_scale(const struct filter *f, double at)
{
    if (f->mode == NEAREST && f->round_dims && !f->sized)
        return (double)((float)at / (float)f->scale);
    return f->sized ? at * (double)f->in / (double)f->out : at / f->scale;
}

/* The position in the input of position j of the output. */
static double source_of(const struct filter *f, int64_t j)
{
    const double at = (double)j, last = (double)(f->in - 1);
    switch (f->coordinates) {
    case HALF_PIXEL:
        return divide_by_scale(f, at + 0.5) - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        /* The centres of input and output coincide. Distances from them keep
         * integers and halves exact. */
        return last / 2 + divide_by_scale(f, (2 * at + 1 - (double)f->out) / 2);
    case PYTORCH_HALF_PIXEL:
        return f->out > 1 ? divide_by_scale(f, at + 0.5) - 0.5 : 0;
    case ALIGN_CORNERS:
        return f->length == 1 ? 0 : at * last / (f->length - 1);
    case ASYMMETRIC:
        return divide_by_scale(f, at);
    case TF_HALF_PIXEL_FOR_NN:
        return divide_by_scale(f, at + 0.5);
    default:
        if (f->out > 1)
            return f->begin * last +
                   at * (f->end - f->begin) * last / ((double)f->out - 1);
        return 0.5 * (f->begin + f->end) * last;
    }
}

/* Clamp a position to the surroundings of the input, so that it fits in an
 * integer. */
static double clamp_position(const struct filter *f, double at)
{
    const double margin = (double)(FAR + f->radius),
                 end = (double)f->in + margin;
    return !(at > -margin) ? -margin : at > end ? end : at;
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

double byi_cubic_weight(double a, double distance)
{
    const double d = fabs(distance);
    if (d < 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The weight of input i, which may lie outside, at the position `at`. */
static double weight_of(const struct filter *f, int64_t i, double at)
{
    const double d = fabs((double)i - at) * f->narrow;
    if (f->exclude_outside && (i < 0 || i >= f->in))
        return 0;
    if (f->mode == CUBIC)
        return byi_cubic_weight(f->cubic_a, d);
    return d < 1 ? 1 - d : 0;
}

/* The sum that the weights are divided by. */
static double sum_of_weights(const struct filter *f, int64_t first, double at)
{
    double sum = 0;
    if (!f->exclude_outside && f->narrow == 1)
        return 1; /* no normalisation */
    for (int64_t i = first; i < first + 2 * f->radius; i++)
        sum += weight_of(f, i, at);
    return sum != 0 ? sum : 1;
}

/* Write the weights of position j of the output, which is at the position `at`
 * of the input. */
static void set_weights(const struct filter *f, const struct byi_taps *a,
                        int64_t j, double at, bool f64, void *weights)
{
    const int64_t first = (int64_t)floor(at) + 1 - f->radius;
    const int64_t low = a->first[j], last = f->in - 1;
    const double sum = sum_of_weights(f, first, at);
    double w = 0;
    int64_t to = 0;
    for (int64_t t = 0; t < 2 * f->radius; t++) {
        w += weight_of(f, first + t, at);
        to = byi_clamp(byi_clamp(first + t, 0, last) - low, 0, a->n - 1);
        const int64_t next = byi_clamp(first + t + 1, 0, last) - low;
        if (t + 1 < 2 * f->radius && next == to)
            continue; /* the next tap is beyond the end: the same input */
        if (f64)
            ((double *)weights)[j * a->stride_j + to * a->stride_t] = w / sum;
        else
            ((float *)weights)[j * a->stride_j + to * a->stride_t] =
                (float)(w / sum);
        w = 0;
    }
}

/* --- one axis ------------------------------------------------------------ */

/* Read the part of the axis that roi, an attribute or operand, selects. */
static void read_roi(const struct byi_resample *r, uint32_t i, struct filter *f)
{
    const uint32_t rank = r->x->rank;
    uint32_t n = 0;
    f->begin = 0;
    f->end = 1;
    if (r->roi) {
        f->begin = byi_tensor_float(r->roi, i);
        f->end = byi_tensor_float(r->roi, rank + i);
        return;
    }
    const double *roi = byi_attr_floats(r->attrs, "roi", &n);
    if (n == 2 * rank) {
        f->begin = roi[i];
        f->end = roi[rank + i];
    }
}

static void read_scale(const struct byi_resample *r, uint32_t i,
                       struct filter *f)
{
    f->scale = (double)f->out / (double)f->in;
    f->length = (double)f->out;
    f->sized = r->target->dtype != BYOC_F32;
    if (!f->sized) {
        f->scale = byi_tensor_float(r->target, i);
        /* A length that would be rounded down is not rounded, as in the
         * reference and its test data. */
        if (!f->round_dims)
            f->length = f->scale * (double)f->in;
    }
    if (f->antialias && f->scale < 1)
        f->narrow = f->scale;
    const double support = f->mode == CUBIC ? 2 : 1;
    const double max_radius = 2 * (double)(f->in + f->out) + FAR;
    const double radius = ceil(support / f->narrow);
    if (f->mode != NEAREST)
        f->radius = (int64_t)(radius < max_radius ? radius : max_radius);
}

/* Whether position j is input j itself. */
static bool is_copy(const struct byi_taps *a, int64_t j, bool f64,
                    const void *weights)
{
    for (int64_t t = 0; t < a->n && weights; t++) {
        const int64_t at = j * a->stride_j + t * a->stride_t;
        const double w =
            f64 ? ((const double *)weights)[at] : ((const float *)weights)[at];
        if (w != (a->first[j] + t == j ? 1 : 0))
            return false;
    }
    return weights || a->first[j] == j;
}

/* Whether two vectors of `width` inputs cover all taps of any `width` adjacent
 * positions, and a position has at most SHORT_TAPS taps. */
static bool fits_vectors(const struct byi_taps *a, int64_t width)
{
    for (int64_t j = 0; j < a->out; j++) {
        const int64_t from = a->first[j / width * width];
        if (a->first[j] < from || a->first[j] + a->n > from + 2 * width)
            return false;
    }
    return a->n <= SHORT_TAPS;
}

static void set_firsts(struct byi_resample *r, uint32_t i,
                       const struct filter *f)
{
    struct byi_taps *a = &r->axes[i];
    const int64_t pitch = (f->out + LANES - 1) / LANES * LANES;
    for (int64_t j = 0; j < f->out; j++) {
        const double at = clamp_position(f, source_of(f, j));
        const int64_t first = f->mode == NEAREST
                                  ? round_nearest(f->nearest, at)
                                  : (int64_t)floor(at) + 1 - f->radius;
        r->first[i][j] = (int32_t)byi_clamp(first, 0, f->in - a->n);
    }
    for (int64_t j = f->out; j < pitch; j++)
        r->first[i][j] = r->first[i][f->out - 1];
    a->first = r->first[i];
}

static void fill_axis(struct byi_resample *r, uint32_t i)
{
    struct byi_taps *a = &r->axes[i];
    struct filter f = read_filter(r, i);
    const bool f64 = r->x->dtype == BYOC_F64;
    const int64_t pitch = (f.out + LANES - 1) / LANES * LANES;
    const size_t size = f64 ? sizeof(double) : sizeof(float);
    read_roi(r, i, &f);
    read_scale(r, i, &f);
    if (f.mode != NEAREST) {
        a->n = byi_clamp(2 * f.radius, 1, a->n);
        memset(r->weight[i], 0, (size_t)(pitch * a->n) * size);
    }
    set_firsts(r, i, &f);
    a->fits = (fits_vectors(a, 8) ? 8 : 0) | (fits_vectors(a, 16) ? 16 : 0);
    a->stride_j = a->fits ? 1 : a->n;
    a->stride_t = a->fits ? pitch : 1;
    a->weight = r->weight[i];
    r->is_identity[i] = f.in == f.out;
    for (int64_t j = 0; j < f.out; j++) {
        const double position = source_of(&f, j);
        if (f.mode != NEAREST)
            set_weights(&f, a, j, clamp_position(&f, position), f64,
                        r->weight[i]);
        r->outside[i][j] = f.coordinates == TF_CROP_AND_RESIZE &&
                           !(position >= 0 && position <= (double)(f.in - 1));
        r->any_outside |= r->outside[i][j];
        r->is_identity[i] = r->is_identity[i] && !r->outside[i][j] &&
                            is_copy(a, j, f64, r->weight[i]);
    }
}

enum byoc_status byi_resample_fill(struct byi_resample *r,
                                   struct byoc_error *err)
{
    r->any_outside = false;
    for (uint32_t i = 0; i < r->x->rank; i++) {
        if (r->x->dims[i] > INT32_MAX || r->y->dims[i] > INT32_MAX)
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "%s: axis %u goes from %lld to %lld positions, "
                            "expected at most 2^31 - 1",
                            byi_op(r->op)->name, i, (long long)r->x->dims[i],
                            (long long)r->y->dims[i]);
        fill_axis(r, i);
    }
    return BYOC_OK;
}

/* --- steps --------------------------------------------------------------- */

/* Choose the axis to resize first, and count the floats of the rows that a
 * thread keeps meanwhile. */
static void choose_order(struct byi_planes *p)
{
    const struct byi_taps *h = &p->high, *w = &p->wide;
    const double row_cost =
        (double)(w->out * w->n) * (p->inner == 1 && !w->fits ? SLOW : 1);
    const double cost_high_first =
        (double)h->out * (double)w->in * (double)h->n +
        (double)h->out * row_cost;
    const double cost_wide_first =
        (double)h->in * row_cost +
        (double)h->out * (double)w->out * (double)h->n;
    if (h->n == 0 || w->n == 0)
        return;
    p->high_first = cost_high_first < cost_wide_first;
    p->floats =
        p->high_first ? w->in * p->inner : h->n * (w->out * p->inner + 2);
}

uint32_t byi_resample_steps(const struct byi_resample *r, uint32_t max_axes,
                            struct byi_planes steps[BYI_MAX_RANK])
{
    static const struct byi_taps one = {.in = 1, .out = 1};
    const uint32_t rank = r->x->rank;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (r->is_identity[i])
            continue;
        struct byi_planes *p = &steps[n++];
        const bool two = max_axes > 1 && i + 1 < rank && !r->is_identity[i + 1];
        *p = (struct byi_planes){.high = r->axes[i],
                                 .wide = two ? r->axes[i + 1] : one,
                                 .planes = byi_span(r->y, 0, i),
                                 .inner = byi_span(r->x, i + 1 + two, rank)};
        if (!two && p->inner == 1) { /* the last axis: rows of a plane */
            p->wide = p->high;
            p->high = one;
        }
        choose_order(p);
        i += two;
    }
    return n;
}
