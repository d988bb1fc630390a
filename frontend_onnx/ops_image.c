/* SPDX-License-Identifier: Apache-2.0 */
/* ops_image.c: converts operators on images: resizing, sampling and detection.
 *
 * Upsample, and Resize before opset 11, have one coordinate transformation:
 * image.resize(coordinate_transformation_mode="asymmetric",
 *              nearest_mode="floor"), or "ceil" where Resize shrinks an axis.
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

static const char *resize_mode(struct byi_import *o)
{
    const char *mode = byi_import_string(o, "mode", "nearest");

    if (strcmp(mode, "bilinear") == 0 || strcmp(mode, "trilinear") == 0)
        return "linear"; /* names in opset 1 and of some exporters */
    return mode;
}

static byi_id resize_asymmetric(struct byi_import *o, byi_id x, byi_id scales,
                                const char *nearest)
{
    return byi_import_emit(
        o, BYI_OP_RESIZE, ARGS(x, scales),
        ATTRS(A_STRING("mode", resize_mode(o)),
              A_STRING("coordinate_transformation_mode", "asymmetric"),
              A_STRING("nearest_mode", nearest)));
}

static void emit_old_resize(struct byi_import *o, byi_id scales)
{
    o->out[0] = resize_asymmetric(o, byi_import_in(o, 0), scales, "floor");
}

/* In opset 1, x is (N, C, H, W), with a scale for each of the last two axes. */
static void convert_upsample_1(struct byi_import *o)
{
    const float scales[] = {1, 1, (float)byi_import_float(o, "height_scale", 0),
                            (float)byi_import_float(o, "width_scale", 0)};

    emit_old_resize(o, byi_import_array(o, BYOC_F32, 4, scales));
}

static void convert_upsample_7(struct byi_import *o)
{
    uint32_t n = 0;
    const double *scale_list = byi_import_floats(o, "scales", &n);
    float scales[BYI_MAX_RANK] = {0};

    if (n == 0 || n > BYI_MAX_RANK) {
        byi_import_fail(o, BYOC_EPARSE, "found %u scales, expected 1 to %d", n,
                        BYI_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        scales[i] = (float)scale_list[i];
    emit_old_resize(o, byi_import_array(o, BYOC_F32, n, scales));
}

static void convert_upsample_9(struct byi_import *o)
{
    emit_old_resize(o, byi_import_in(o, 1));
}

/* Whether the scales are constants of at least 1. */
static bool never_shrink(struct byi_import *o, byi_id scales)
{
    struct byi_tensor t;

    if (!byi_import_const_view(o, scales, &t))
        return false;
    for (int64_t i = 0; i < byi_elements(t.rank, t.dims); i++)
        if (!(byi_tensor_float(&t, i) >= 1))
            return false;
    return true;
}

/* In opset 10, ONNX's test cases take the element after a position, not the one
 * before it, on an axis that shrinks. So these axes are resized first, without
 * the others. */
static void convert_resize_10(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), scales = byi_import_in(o, 1);

    if (strcmp(resize_mode(o), "nearest") != 0 || never_shrink(o, scales)) {
        emit_old_resize(o, scales);
        return;
    }
    const byi_id smaller = resize_asymmetric(
        o, x, byi_import_call_scalar(o, BYI_OP_MINIMUM, scales, 1), "ceil");
    o->out[0] = resize_asymmetric(
        o, smaller, byi_import_call_scalar(o, BYI_OP_MAXIMUM, scales, 1),
        "floor");
}

/* Whether an input is present. In opset 11 an empty tensor stands for an
 * omitted input. */
static bool is_present(const struct byi_import *o, uint32_t i)
{
    const byi_id id = byi_import_in(o, i);

    return id != BYI_NO_ID &&
           !(byi_import_rank(o, id) == 1 && byi_import_dim(o, id, 0) == 0);
}

/* Returns the constant roi of tf_crop_and_resize, the part of x that is
 * resized; NULL in other modes, which ignore it, or if complete_roi() must
 * compute it. */
static const double *read_roi(struct byi_import *o, const char *transform,
                              uint32_t *n)
{
    struct byi_tensor t = {0};

    *n = 0;
    if (strcmp(transform, "tf_crop_and_resize") != 0 || !byi_import_ok(o) ||
        byi_import_has_attr(o, "axes"))
        return NULL;
    if (!byi_import_const_view(o, byi_import_in(o, 1), &t))
        return NULL;
    if (t.rank != 1 || t.dims[0] > 2 * BYI_MAX_RANK) {
        byi_import_refuse(
            o,
            "input 'roi' has rank %u and %lld elements, expected a "
            "vector of at most %d",
            t.rank, (long long)byi_elements(t.rank, t.dims), 2 * BYI_MAX_RANK);
        return NULL;
    }
    *n = (uint32_t)t.dims[0];
    double *roi = byi_arena_calloc(o->scratch, *n + 1, sizeof *roi);
    for (uint32_t i = 0; i < *n; i++)
        roi[i] = byi_tensor_float(&t, i);
    return roi;
}

/* Returns the roi input if it is not constant, or if it lists only some axes.
 * The other axes get the whole range, 0 to 1. */
static byi_id complete_roi(struct byi_import *o)
{
    const byi_id roi = byi_import_in(o, 1);
    const int64_t rank = byi_import_rank(o, byi_import_in(o, 0));
    float full_range[2 * BYI_MAX_RANK] = {0};
    int64_t indices[2 * BYI_MAX_RANK]; /* in the vector of all axes */
    uint32_t n = 0;
    const int64_t *axes = byi_import_ints(o, "axes", &n);

    if (roi == BYI_NO_ID)
        byi_import_fail(o, BYOC_EPARSE,
                        "input 'roi' is omitted, expected one for "
                        "tf_crop_and_resize");
    if (n == 0 || n > rank || !byi_import_ok(o))
        return roi;
    for (uint32_t i = 0; i < n; i++) {
        indices[i] = byi_import_axis(o, axes[i], (uint32_t)rank);
        indices[n + i] = indices[i] + rank;
    }
    for (int64_t i = rank; i < 2 * rank; i++)
        full_range[i] = 1;
    const byi_id ends = byi_import_cast(o, roi, BYOC_F32);
    const byi_id at = byi_import_vector(o, 2 * n, indices);
    const byi_id vector =
        byi_import_array(o, BYOC_F32, 2 * (uint32_t)rank, full_range);
    return byi_import_scatter(o, vector, at, ends);
}

/* Replace the sizes of the axes in `resized` by sizes that keep x's aspect
 * ratio. These are the largest that fit in the given sizes if `smaller`,
 * otherwise the smallest that cover them. ONNX rounds these sizes, and maps
 * positions by the scale that all axes share: it is stored in `scales`. Returns
 * whether a size was rounded, so that the scale does not follow from it. */
static bool keep_ratio(struct byi_import *o, const bool *resized, bool smaller,
                       uint32_t rank, int64_t *sizes, float *scales)
{
    double scale = smaller ? INFINITY : 0;
    bool rounded = false;

    for (uint32_t i = 0; i < rank; i++) {
        const double ratio = (double)sizes[i] /
                             (double)byi_import_dim(o, byi_import_in(o, 0), i);
        if (resized[i])
            scale = smaller ? fmin(scale, ratio) : fmax(scale, ratio);
    }
    for (uint32_t i = 0; i < rank; i++) {
        const double length =
            scale * (double)byi_import_dim(o, byi_import_in(o, 0), i);
        if (!resized[i])
            continue;
        sizes[i] = (int64_t)floor(length + 0.5);
        scales[i] = (float)scale;
        rounded |= fabs(length - (double)sizes[i]) > 1e-6;
    }
    return rounded;
}

/* Emit the scale that keep_ratio computes, for sizes or dims that are known
 * only at run time, as a vector that has it once for each axis; `dims` are x's
 * dims at the axes. */
static byi_id emit_kept_ratio(struct byi_import *o, byi_id sizes, byi_id dims,
                              bool smaller)
{
    static const char ratios[] = "fn (%sizes, %dims) {"
                                 "  divide(cast(%sizes, dtype=\"float32\"),"
                                 "         cast(%dims, dtype=\"float32\"))"
                                 "}";
    static const char repeated[] =
        "fn (%dims, %scale) {"
        "  add(multiply(cast(%dims, dtype=\"float32\"), 0.0), %scale)"
        "}";
    const byi_id scale = byi_import_emit(
        o, smaller ? BYI_OP_MIN : BYI_OP_MAX,
        ARGS(byi_import_template(o, ratios, ARGS(sizes, dims), NO_ATTRS)),
        ATTRS(A_BOOL("keepdims", false)));

    return byi_import_template(o, repeated, ARGS(dims, scale), NO_ATTRS);
}

/* Like complete_size, for values or dims that are known only at run time. */
static byi_id emit_size(struct byi_import *o, byi_id size, bool has_sizes,
                        const int64_t *axes, uint32_t n, const char *policy)
{
    const uint32_t rank = byi_import_rank(o, byi_import_in(o, 0));
    const byi_id dims = byi_import_shape_of(o, byi_import_in(o, 0));
    const byi_id at = n ? byi_import_vector(o, n, axes) : BYI_NO_ID;
    const byi_id resized_dims = n ? byi_import_take(o, dims, at, 0) : dims;
    const int64_t count = rank;

    if (has_sizes && strcmp(policy, "stretch") != 0) {
        size = emit_kept_ratio(o, size, resized_dims,
                               strcmp(policy, "not_larger") == 0);
        has_sizes = false;
    }
    if (n == 0)
        return size;
    const byi_id defaults =
        has_sizes
            ? dims
            : byi_import_emit(
                  o, BYI_OP_FULL, ARGS(byi_import_vector(o, 1, &count)),
                  ATTRS(A_FLOAT("value", 1.0), A_DTYPE("dtype", BYOC_F32)));
    return byi_import_scatter(o, defaults, at, size);
}

/* Complete `size`, the input sizes or, unless has_sizes, scales, which may list
 * only some axes, and apply the aspect ratio policy. *rounds says whether dims
 * times scales are rounded to the nearest integers. */
static byi_id complete_size(struct byi_import *o, byi_id size, bool has_sizes,
                            bool *rounds)
{
    const char *policy =
        byi_import_string(o, "keep_aspect_ratio_policy", "stretch");
    const bool stretch = !has_sizes || strcmp(policy, "stretch") == 0;
    uint32_t n = 0;
    const int64_t *axes = byi_import_ints(o, "axes", &n);
    const uint32_t rank = byi_import_rank(o, byi_import_in(o, 0));
    bool resized[BYI_MAX_RANK] = {false};
    int64_t sizes[BYI_MAX_RANK];
    float scales[BYI_MAX_RANK];
    struct byi_tensor t;

    if ((n == 0 && stretch) || !byi_import_ok(o))
        return size;
    bool known = byi_import_const_view(o, size, &t);
    for (uint32_t i = 0; i < rank; i++)
        known = known &&
                (!has_sizes || byi_import_dim(o, byi_import_in(o, 0), i) > 0);
    *rounds = !stretch;
    if (!known)
        return emit_size(o, size, has_sizes, axes, n, policy);
    if (t.rank != 1 || t.dims[0] != (n ? n : rank)) {
        byi_import_fail(o, BYOC_EPARSE, "found %lld %s, expected %u",
                        (long long)t.dims[0], has_sizes ? "sizes" : "scales",
                        n ? n : rank);
        return BYI_NO_ID;
    }
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = byi_import_dim(o, byi_import_in(o, 0), i);
        scales[i] = 1;
    }
    for (uint32_t i = 0; i < t.dims[0]; i++) {
        const uint32_t axis = n ? byi_import_axis(o, axes[i], rank) : i;
        resized[axis] = true;
        scales[axis] = (float)byi_tensor_float(&t, i);
        if (has_sizes)
            sizes[axis] = byi_tensor_int(&t, i);
    }
    if (!stretch)
        *rounds = keep_ratio(o, resized, strcmp(policy, "not_larger") == 0,
                             rank, sizes, scales);
    return has_sizes && !*rounds ? byi_import_vector(o, rank, sizes)
                                 : byi_import_array(o, BYOC_F32, rank, scales);
}

static void convert_resize(struct byi_import *o)
{
    const bool has_sizes = is_present(o, 3);
    bool rounds = false;
    byi_id size = byi_import_in(o, 2);
    uint32_t n = 0;

    if (has_sizes == is_present(o, 2))
        byi_import_fail(o, BYOC_EPARSE,
                        "found %s, expected one of scales and sizes",
                        has_sizes ? "both" : "neither");
    if (has_sizes)
        size = byi_import_cast(o, byi_import_in(o, 3), BYOC_I64);
    size = complete_size(o, size, has_sizes, &rounds);
    const char *transform =
        byi_import_string(o, "coordinate_transformation_mode", "half_pixel");
    const double *roi = read_roi(o, transform, &n);
    const struct byi_attr attrs[] = {
        A_STRING("mode", resize_mode(o)),
        A_STRING("coordinate_transformation_mode", transform),
        A_BOOL("round_dims", rounds),
        {.name = "roi", .kind = BYI_ATTR_FLOATS, .n = n, .floats = roi},
    };
    if (!roi && strcmp(transform, "tf_crop_and_resize") == 0)
        o->out[0] =
            byi_import_same(o, BYI_OP_DYN_RESIZE,
                            ARGS(byi_import_in(o, 0), size, complete_roi(o)),
                            BYI_N(attrs) - 2, attrs);
    else
        o->out[0] =
            byi_import_same(o, BYI_OP_RESIZE, ARGS(byi_import_in(o, 0), size),
                            BYI_N(attrs) - (n == 0), attrs);
}

/* Returns the mode by its name before opset 20, which renames two modes. */
static const char *sample_mode(struct byi_import *o)
{
    const char *mode = byi_import_string(o, "mode", "linear");

    return strcmp(mode, "linear") == 0  ? "bilinear"
           : strcmp(mode, "cubic") == 0 ? "bicubic"
                                        : mode;
}

/* Emit the coordinates of the pixels of an axis of `size` elements. -1 and 1
 * are the first and last pixel if `corners`, otherwise the edges: (2 i + 1) /
 * size - 1. */
static byi_id emit_coordinates(struct byi_import *o, byi_id size, bool corners,
                               enum byoc_dtype dtype)
{
    static const char of_corners[] =
        "fn (%n, %i) {"
        "  subtract(divide(multiply(%i, 2), maximum(subtract(%n, 1), 1)), 1)"
        "}";
    static const char of_centres[] =
        "fn (%n, %i) { subtract(divide(add(multiply(%i, 2), 1), %n), 1) }";
    const byi_id i = byi_import_arange(o, BYI_NO_ID, size);

    return byi_import_template(
        o, corners ? of_corners : of_centres,
        ARGS(byi_import_cast(o, size, dtype), byi_import_cast(o, i, dtype)),
        NO_ATTRS);
}

/* AffineGrid: theta is (n, d, d + 1), and size is n, channels, and d lengths.
 * The result, (n, lengths..., d), has the product of theta and each point of a
 * grid of these lengths: (x, y, 1), or (x, y, z, 1) if d is 3. */
static void convert_affine_grid(struct byi_import *o)
{
    static const char product[] =
        "fn (%theta, %points, %lengths) {"
        "  %y = nn.matmul(reshape(%points, [-1, columns]), %theta,"
        "                 transpose_b=true);"
        "  %front = concatenate(shape_of(%theta, end=1), %lengths, axis=0);"
        "  reshape(%y, concatenate(%front, [d], axis=0))"
        "}";
    const byi_id theta = byi_import_in(o, 0), size = byi_import_in(o, 1);
    const bool corners = byi_import_int(o, "align_corners", 0) != 0;
    const enum byoc_dtype dtype = byi_import_dtype(o, theta);
    const int64_t d = byi_import_known_dim(o, theta, 1, "theta's matrices");
    byi_id columns[4];

    if (byi_import_ok(o) &&
        (byi_import_rank(o, theta) != 3 || (d != 2 && d != 3)))
        byi_import_refuse(
            o,
            "theta has rank %u and %lld rows, expected (N, 2, 3) or (N, 3, 4)",
            byi_import_rank(o, theta), (long long)d);
    if (!byi_import_ok(o))
        return;
    const byi_id lengths =
        byi_import_slice(o, byi_import_cast(o, size, BYOC_I64), 2, d + 2, 0);
    const byi_id shape =
        byi_import_concat(o, lengths, byi_import_vector(o, INTS(1)), 0);
    for (int64_t i = 0; i < d; i++) { /* x runs along the last axis */
        const int64_t axis = d - 1 - i;
        const byi_id length = byi_import_take(
            o, lengths, byi_import_scalar(o, BYOC_I64, (double)axis), 0);
        columns[i] = byi_import_call(
            o, BYI_OP_BROADCAST_TO,
            byi_import_add_axes(o, emit_coordinates(o, length, corners, dtype),
                                1, (uint32_t)(d - axis)),
            shape);
    }
    columns[d] = byi_import_call(o, BYI_OP_BROADCAST_TO,
                                 byi_import_scalar(o, dtype, 1), shape);
    const byi_id points =
        byi_import_emit(o, BYI_OP_CONCATENATE, (uint32_t)d + 1, columns,
                        ATTRS(AN_INT("axis", d)));
    o->out[0] =
        byi_import_template(o, product, ARGS(theta, points, lengths),
                            ATTRS(AN_INT("d", d), AN_INT("columns", d + 1)));
}

/* Integers and bools are sampled in float64 and cast back. */
static void convert_grid_sample(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), grid = byi_import_in(o, 1);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    const bool is_float = !byi_dtype_is_int(dtype) && dtype != BYOC_BOOL;

    o->out[0] = byi_import_cast(
        o,
        byi_import_same(
            o, BYI_OP_GRID_SAMPLE,
            ARGS(is_float ? x : byi_import_cast(o, x, BYOC_F64),
                 is_float ? grid : byi_import_cast(o, grid, BYOC_F64)),
            ATTRS(A_STRING("mode", sample_mode(o)))),
        dtype);
}

/* ImageScaler, an experimental operator of opset 1: x scale + the channel's
 * bias */
static void convert_image_scaler(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    float bias[64];
    uint32_t n = 0;
    const double *bias_list = byi_import_floats(o, "bias", &n);
    byi_id y = byi_import_scale(o, x, byi_import_float(o, "scale", 1.0));

    if (n > BYI_N(bias))
        byi_import_refuse(o, "found a bias of %u channels, expected at most %u",
                          n, BYI_N(bias));
    if (bias_list && byi_import_ok(o)) {
        for (uint32_t i = 0; i < n; i++)
            bias[i] = (float)bias_list[i];
        y = byi_import_call(
            o, BYI_OP_ADD, y,
            byi_import_add_axes(
                o,
                byi_import_cast(o, byi_import_array(o, BYOC_F32, n, bias),
                                byi_import_dtype(o, x)),
                1, 2));
    }
    o->out[0] = y;
}

static void check_crop(struct byi_import *o, const char *name,
                       const int64_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] < 0 || values[i] > INT32_MAX)
            byi_import_fail(o, BYOC_EPARSE,
                            "%s[%u] is %lld, expected 0 to 2^31 - 1", name, i,
                            (long long)values[i]);
}

/* Crop, an experimental operator of opset 1: the image without its border
 * (left, top, right, bottom), or `scale` (height, width) from the left and top
 * on. */
static void convert_crop(struct byi_import *o)
{
    static const int64_t axes[] = {2, 3}, ones[] = {1, 1};
    uint32_t n = 0, n_size = 0;
    const int64_t *border = byi_import_ints(o, "border", &n);
    const int64_t *size = byi_import_ints(o, "scale", &n_size);

    if (n != 4)
        byi_import_fail(o, BYOC_EPARSE, "border has %u elements, expected 4",
                        n);
    if (n_size != 0 && n_size != 2)
        byi_import_fail(o, BYOC_EPARSE,
                        "scale has %u elements, expected 0 or 2", n_size);
    check_crop(o, "border", border, n);
    check_crop(o, "scale", size, n_size);
    if (!byi_import_ok(o))
        return;
    const int64_t begin[] = {border[1], border[0]};
    int64_t end[] = {-border[3], -border[2]};
    for (uint32_t i = 0; i < 2; i++) {
        if (n_size)
            end[i] = begin[i] + size[i];
        else if (end[i] == 0)
            end[i] = INT64_MAX;
    }
    o->out[0] = byi_import_call(
        o, BYI_OP_STRIDED_SLICE, byi_import_in(o, 0),
        byi_import_vector(o, 2, begin), byi_import_vector(o, 2, end),
        byi_import_vector(o, 2, axes), byi_import_vector(o, 2, ones));
}

/* Before opset 16 coordinates were not shifted by half a pixel, and there was
 * no attribute for it. */
static void convert_roi_align_10(struct byi_import *o)
{
    o->out[0] = byi_import_same(
        o, BYI_OP_ROI_ALIGN, 3, o->in,
        ATTRS(A_STRING("coordinate_transformation_mode", "output_half_pixel")));
}

/* Omitted inputs in the middle get their defaults here; trailing ones get them
 * from the IR operator. */
static void convert_nms(struct byi_import *o)
{
    byi_id args[5];
    uint32_t n = o->n_in;

    while (n > 2 && o->in[n - 1] == BYI_NO_ID)
        n--;
    for (uint32_t i = 0; i < n; i++) {
        args[i] = byi_import_in(o, i);
        if (args[i] == BYI_NO_ID) /* max boxes per class, IoU threshold */
            args[i] = byi_import_scalar(o, i == 2 ? BYOC_I64 : BYOC_F32, 0);
    }
    o->out[0] = byi_import_same(o, BYI_OP_NMS, n, args, NO_ATTRS);
}

#define SAME byi_import_convert_same
/* Emit the positions of a crop's rows or columns, (boxes, n), from the box's
 * two edges as parts of the image, which has `size` of them. The first and last
 * positions are exactly the edges; a single one is their middle. */
static byi_id emit_crop_positions(struct byi_import *o, byi_id edges[2],
                                  byi_id size, byi_id n)
{
    static const char text[] =
        "fn (%first, %last, %size, %n) {"
        "  %max = cast(subtract(%size, 1), dtype=%first);"
        "  %steps = subtract(%n, 1);"
        "  %i = arange(0i64, %n, 1i64);"
        "  %step = divide(multiply(subtract(%last, %first), %max),"
        "                 cast(maximum(%steps, 1), dtype=%first));"
        "  %inner = add(multiply(%first, %max),"
        "               multiply(cast(%i, dtype=%first), %step));"
        "  %all = where(equal(%i, %steps), multiply(%last, %max), %inner);"
        "  where(equal(%n, 1),"
        "        multiply(multiply(add(%first, %last), 0.5), %max), %all)"
        "}";

    return byi_import_template(o, text, ARGS(edges[0], edges[1], size, n),
                               NO_ATTRS);
}

/* The rows or columns of crops: whether each position is in the image, the
 * pixels before and after it, and the distance from the former. */
struct crop_axis {
    byi_id inside, low, high, part;
};

/* Read axis `axis` of the crops, 0 for rows, from inputs X, rois, crop_size. */
static struct crop_axis read_crop_axis(struct byi_import *o, uint32_t axis,
                                       bool nearest)
{
    static const char edge[] =
        "fn (%boxes) { strided_slice(%boxes, [at], [end], [1], [1]) }";
    static const char inside[] =
        "fn (%p, %size) {"
        "  %in = logical_and(greater_equal(%p, 0),"
        "                    less_equal(%p, cast(subtract(%size, 1),"
        "                                        dtype=%p)));"
        "  (%in, where(%in, %p, 0))"
        "}";
    const byi_id size = byi_import_cast(o, byi_import_in(o, 3), BYOC_I64);
    const byi_id length = byi_import_length(o, byi_import_in(o, 0), 2 + axis);
    byi_id edges[2], found[2];

    for (uint32_t k = 0; k < 2; k++)
        edges[k] = byi_import_template(
            o, edge, ARGS(byi_import_in(o, 1)),
            ATTRS(AN_INT("at", axis + 2 * k), AN_INT("end", axis + 2 * k + 1)));
    const byi_id n =
        byi_import_as_scalar(o, byi_import_slice(o, size, axis, axis + 1, 0));
    byi_import_template_results(
        o, inside, ARGS(emit_crop_positions(o, edges, length, n), length),
        NO_ATTRS, 2, found);
    const byi_id rounded =
        nearest ? byi_import_call_scalar(o, BYI_OP_ADD, found[1], 0.5)
                : found[1];
    const byi_id low = byi_import_call(o, BYI_OP_FLOOR, rounded);
    const byi_id high = byi_import_call(o, BYI_OP_CEIL, found[1]);
    const byi_id part = byi_import_call(o, BYI_OP_SUBTRACT, found[1], low);
    return (struct crop_axis){found[0], low, high, part};
}

/* Emit the pixels (boxes, h, w, C) of an image (N, H, W, C) at rows y (boxes,
 * h) and columns x (boxes, w). */
static byi_id emit_pixels(struct byi_import *o, byi_id image, byi_id y,
                          byi_id x)
{
    static const char pixel[] =
        "fn (%image, %batch, %y, %x) {"
        "  %b = cast(expand_dims(%batch, axis=[1, 2]), dtype=\"int64\");"
        "  %r = cast(expand_dims(%y, axis=[2]), dtype=\"int64\");"
        "  %c = cast(expand_dims(%x, axis=[1]), dtype=\"int64\");"
        "  %zero = multiply(add(%r, %c), 0);"
        "  gather_nd(%image, concatenate(expand_dims(add(%b, %zero), axis=[3]),"
        "                                expand_dims(add(%r, %zero), axis=[3]),"
        "                                expand_dims(add(%c, %zero), axis=[3]),"
        "                                axis=3))"
        "}";

    return byi_import_template(o, pixel, ARGS(image, byi_import_in(o, 2), y, x),
                               NO_ATTRS);
}

/* CropAndResize: x (N, C, H, W), boxes (boxes, 4) of y1, x1, y2, x2, their
 * images, the size of all crops. Positions outside of x give a given value. */
static void convert_crop_and_resize(struct byi_import *o)
{
    static const char linear[] =
        "fn (%a, %b, %c, %d, %fy, %fx) {"
        "  %v = expand_dims(%fy, axis=[2, 3]);"
        "  %u = expand_dims(%fx, axis=[1, 3]);"
        "  %top = add(%a, multiply(subtract(%b, %a), %u));"
        "  %bottom = add(%c, multiply(subtract(%d, %c), %u));"
        "  add(%top, multiply(subtract(%bottom, %top), %v))"
        "}";
    static const char outside[] =
        "fn (%y, %in_y, %in_x) {"
        "  %in = logical_and(expand_dims(%in_y, axis=[2, 3]),"
        "                    expand_dims(%in_x, axis=[1, 3]));"
        "  transpose(where(%in, %y, value), axes=[0, 3, 1, 2])"
        "}";
    const char *mode = byi_import_string(o, "mode", "bilinear");
    const bool nearest = strcmp(mode, "nearest") == 0;
    const double value = byi_import_float(o, "extrapolation_value", 0);
    const byi_id input = byi_import_in(o, 0);

    if (!nearest && strcmp(mode, "bilinear") != 0)
        byi_import_refuse(o, "mode is '%s', expected bilinear or nearest",
                          mode);
    if (byi_import_ok(o) && byi_import_rank(o, input) != 4)
        byi_import_fail(o, BYOC_ETYPE, "X has rank %u, expected 4",
                        byi_import_rank(o, input));
    const struct crop_axis y = read_crop_axis(o, 0, nearest);
    const struct crop_axis x = read_crop_axis(o, 1, nearest);
    const byi_id image = byi_import_channels_last(o, input);
    byi_id crops = emit_pixels(o, image, y.low, x.low);
    if (!nearest) {
        const byi_id b = emit_pixels(o, image, y.low, x.high);
        const byi_id c = emit_pixels(o, image, y.high, x.low);
        const byi_id d = emit_pixels(o, image, y.high, x.high);
        crops = byi_import_template(
            o, linear, ARGS(crops, b, c, d, y.part, x.part), NO_ATTRS);
    }
    o->out[0] = byi_import_template(o, outside, ARGS(crops, y.inside, x.inside),
                                    ATTRS(A_FLOAT("value", value)));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_image, BYI_ONNX,
    {"AffineGrid", 20, 2, 2, convert_affine_grid, BYI_OP_NONE},
    {"Crop", 1, 1, 1, convert_crop, BYI_OP_NONE},
    {"GridSample", 16, 2, 2, convert_grid_sample, BYI_OP_NONE},
    {"ImageScaler", 1, 1, 1, convert_image_scaler, BYI_OP_NONE},
    {"MaxRoiPool", 1, 2, 2, SAME, BYI_OP_ROI_POOL},
    {"NonMaxSuppression", 10, 2, 5, convert_nms, BYI_OP_NONE},
    {"Resize", 10, 2, 2, convert_resize_10, BYI_OP_NONE},
    {"Resize", 11, 1, 4, convert_resize, BYI_OP_NONE},
    {"RoiAlign", 10, 3, 3, convert_roi_align_10, BYI_OP_NONE},
    {"RoiAlign", 16, 3, 3, SAME, BYI_OP_ROI_ALIGN},
    {"Upsample", 1, 1, 1, convert_upsample_1, BYI_OP_NONE},
    {"Upsample", 7, 1, 1, convert_upsample_7, BYI_OP_NONE},
    {"Upsample", 9, 2, 2, convert_upsample_9, BYI_OP_NONE})

BYI_ONNX_ROWS(microsoft_image, BYI_MICROSOFT,
    {"CropAndResize", 1, 4, 4, convert_crop_and_resize, BYI_OP_NONE},
    {"GridSample", 1, 2, 2, convert_grid_sample, BYI_OP_NONE})
/* clang-format on */
