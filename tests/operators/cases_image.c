/* SPDX-License-Identifier: Apache-2.0 */
/* cases_image.c: random calls of operators that resize, sample and detect, and
 * of signal processing; see cases.c.
 */
#include "fuzz.h"

#include <string.h>

#define ONE_OF(d, list) (list)[draw_int(d, 0, BYI_COUNT(list) - 1)]

static int64_t *draw_dims(int64_t *dims, struct draw *d, uint32_t n,
                          int64_t max_dim)
{
    for (uint32_t i = 0; i < n; i++)
        dims[i] = draw_int(d, 1, max_dim);
    return dims;
}

/* Overwrite an operand with multiples of (high - low) / parts from low to high.
 */
static void fill_in_steps(struct draw *d, struct byi_tensor *t, double low,
                          double high, int64_t parts)
{
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(t, i,
                       low + (high - low) * (double)draw_int(d, 0, parts) /
                                 (double)parts);
}

/* --- sizes ---------------------------------------------------------------- */

/* Sizes, or scales, of the last `space` axes. */
static void draw_sizes_or_scales(struct draw *d, uint32_t rank,
                                 const int64_t *dims, uint32_t space)
{
    static const double factors[] = {0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3};
    const bool has_sizes = draw_chance(d, 50), known = draw_chance(d, 60);
    double scales[BYI_MAX_RANK];
    int64_t sizes[BYI_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++) {
        const bool changes = i >= rank - space;
        scales[i] = changes ? ONE_OF(d, factors) : 1;
        if (scales[i] * (double)dims[i] < 1)
            scales[i] = 1;
        sizes[i] = changes ? draw_int(d, 1, 9) : dims[i];
    }
    if (has_sizes) {
        draw_nothing(d);
        draw_ints(d, BYOC_I64, rank, sizes, known);
    } else {
        draw_floats(d, rank, scales, known);
    }
}

static const char *const roundings[] = {"round_prefer_floor",
                                        "round_prefer_ceil", "floor", "ceil"};

static void resize(struct draw *d)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const transforms[] = {
        "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
        "tf_crop_and_resize"};
    const int64_t mode = draw_int(d, 0, 2), transform = draw_int(d, 0, 4);
    const uint32_t space = mode == 1 ? (uint32_t)draw_int(d, 1, 3) : 2;
    const uint32_t rank = space + 2;
    const double roi[] = {0,   0,   0.125, 0.25, 0.125,
                          1.0, 1.0, 0.75,  1.25, 0.875};
    int64_t dims[BYI_MAX_RANK];
    double ends[2 * BYI_MAX_RANK];

    draw_operand(d, d->dtype, rank, draw_dims(dims, d, rank, 7), ORDINARY);
    for (uint32_t i = 0; i < rank; i++) {
        ends[i] = roi[i];
        ends[i + rank] = roi[i + 5];
    }
    if (transform == 4)
        draw_floats(d, 2 * rank, ends, draw_chance(d, 50));
    else
        draw_nothing(d);
    draw_sizes_or_scales(d, rank, dims, space);
    draw_attr_string(d, "mode", modes[mode]);
    draw_attr_string(d, "coordinate_transformation_mode",
                     transforms[transform]);
    if (mode == 0)
        draw_attr_string(d, "nearest_mode", ONE_OF(d, roundings));
    if (mode == 2 && draw_chance(d, 50))
        draw_attr_float(d, "cubic_coeff_a", -0.5f);
    if (mode == 2 && draw_chance(d, 40))
        draw_attr_int(d, "exclude_outside", 1);
    if (transform == 4)
        draw_attr_float(d, "extrapolation_value", 2.5f);
}

/* Sizes or scales of the last two axes only, with the attribute `axes`. */
static void resize_axes(struct draw *d)
{
    static const char *const transforms[] = {"half_pixel",
                                             "half_pixel_symmetric"};
    const bool has_sizes = draw_chance(d, 50);
    const bool keeps_ratio = has_sizes && draw_chance(d, 50);
    /* ONNX Runtime keeps the ratio of no axis that is given as negative */
    const int64_t axes[] = {!keeps_ratio && draw_chance(d, 50) ? -2 : 2, 3};
    const int64_t sizes[] = {draw_int(d, 1, 9), draw_int(d, 1, 9)};
    const double scales[] = {(double)draw_int(d, 2, 9) / 4,
                             (double)draw_int(d, 2, 9) / 4};
    int64_t dims[4] = {draw_int(d, 1, 2), draw_int(d, 1, 3), draw_int(d, 2, 6),
                       draw_int(d, 2, 6)};

    draw_operand(d, d->dtype, 4, dims, ORDINARY);
    draw_nothing(d);
    if (has_sizes) {
        draw_nothing(d);
        draw_ints(d, BYOC_I64, 2, sizes, draw_chance(d, 50));
    } else {
        draw_floats(d, 2, scales, draw_chance(d, 50));
    }
    if (keeps_ratio)
        draw_attr_string(d, "keep_aspect_ratio_policy",
                         draw_chance(d, 50) ? "not_larger" : "not_smaller");
    draw_attr_ints(d, "axes", 2, axes);
    draw_attr_string(d, "mode", draw_chance(d, 50) ? "nearest" : "linear");
    draw_attr_string(d, "nearest_mode", ONE_OF(d, roundings));
    draw_attr_string(d, "coordinate_transformation_mode",
                     transforms[has_sizes ? 0 : draw_int(d, 0, 1)]);
}

/* Experimental operators of opset 1, which ONNX Runtime has kept. */
static void experimental(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 2), draw_int(d, 1, 4),
                            draw_int(d, 4, 8), draw_int(d, 4, 8)};
    const int64_t border[] = {draw_int(d, 0, 1), draw_int(d, 0, 2),
                              draw_int(d, 0, 1), draw_int(d, 0, 1)};
    const int64_t size[] = {draw_int(d, 1, 2), draw_int(d, 1, 3)};
    const float bias[] = {1, -2, 0.5f, 3};

    draw_operand(d, d->dtype, 4, dims, ORDINARY);
    if (strcmp(op_now->op, "Crop") == 0) {
        draw_attr_ints(d, "border", 4, border);
        if (draw_chance(d, 50))
            draw_attr_ints(d, "scale", 2, size);
    } else if (strcmp(op_now->op, "Affine") == 0) {
        draw_attr_float(d, "alpha", 0.75f);
        draw_attr_float(d, "beta", 2);
    } else {
        draw_attr_float(d, "scale", 0.75f);
        draw_attr_floats(d, "bias", (size_t)dims[1], bias);
    }
}

static void upsample(struct draw *d)
{
    const bool shrinks = strcmp(op_now->op, "Resize") == 0;
    const int64_t low = shrinks ? 2 : 4; /* scales in quarters */
    const int64_t dims[] = {draw_int(d, 1, 6), draw_int(d, 1, 6),
                            draw_int(d, 2, 6), draw_int(d, 2, 6)};
    const double scales[] = {1, 1, (double)draw_int(d, low, 12) / 4,
                             (double)draw_int(d, low, 12) / 4};

    draw_operand(d, d->dtype, 4, dims, ORDINARY);
    draw_floats(d, 4, scales, !shrinks || draw_chance(d, 50));
    draw_attr_string(d, "mode", draw_chance(d, 50) ? "nearest" : "linear");
}

/* --- sampling ------------------------------------------------------------- */

/* Images, boxes that may leave them or be reversed, their images, a size. */
static void crop_and_resize(struct draw *d)
{
    const int64_t x[] = {draw_int(d, 1, 3), draw_int(d, 1, 4),
                         draw_int(d, 1, 9), draw_int(d, 1, 9)};
    const int64_t boxes[] = {draw_int(d, 1, 5), 4};
    const int64_t size[] = {draw_int(d, 1, 6), draw_int(d, 1, 6)};
    int64_t images[5];

    draw_operand(d, d->dtype, 4, x, ORDINARY);
    struct byi_tensor *t = draw_operand(d, d->dtype, 2, boxes, ORDINARY);
    for (int64_t i = 0; i < byi_elements(2, boxes); i++)
        byi_tensor_set(t, i, (double)draw_int(d, -2, 18) / 16);
    for (int64_t i = 0; i < boxes[0]; i++)
        images[i] = draw_int(d, 0, x[0] - 1);
    draw_ints(d, BYOC_I32, boxes[0], images, false);
    draw_ints(d, BYOC_I32, 2, size, draw_chance(d, 60));
    if (draw_chance(d, 50))
        draw_attr_float(d, "extrapolation_value", 1.5f);
    draw_attr_string(d, "mode", draw_chance(d, 50) ? "nearest" : "bilinear");
}

static void grid_sample(struct draw *d)
{
    static const char *const modes_before_20[] = {"bilinear", "nearest",
                                                  "bicubic"};
    static const char *const modes_from_20[] = {"linear", "nearest", "cubic"};
    const char *const *const modes =
        op_now->opset < 20 ? modes_before_20 : modes_from_20;
    static const char *const pads[] = {"zeros", "border", "reflection"};
    const bool is_3d = op_now->opset >= 20 && draw_chance(d, 40);
    const uint32_t rank = is_3d ? 5 : 4;
    int64_t dims[5], grid[5];

    draw_operand(d, d->dtype, rank, draw_dims(dims, d, rank, 6), ORDINARY);
    draw_dims(grid, d, rank - 1, 5);
    grid[0] = dims[0];
    grid[rank - 1] = rank - 2;
    const double reach = draw_chance(d, 10) ? 12 : 1.5;
    fill_in_steps(d, draw_operand(d, d->dtype, rank, grid, ORDINARY), -reach,
                  reach, 96);
    draw_attr_string(d, "mode", modes[draw_int(d, 0, is_3d ? 1 : 2)]);
    draw_attr_string(d, "padding_mode", ONE_OF(d, pads));
    draw_attr_int(d, "align_corners", draw_int(d, 0, 1));
}

static void affine_grid(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 3), space = draw_int(d, 2, 3);
    const int64_t theta[] = {n, space, space + 1};
    const int64_t size[] = {n, draw_int(d, 1, 3), draw_int(d, 2, 5),
                            draw_int(d, 2, 5), draw_int(d, 2, 5)};

    draw_operand(d, d->dtype, 3, theta, ORDINARY);
    draw_ints(d, BYOC_I64, space + 2, size, draw_chance(d, 50));
    draw_attr_int(d, "align_corners", draw_int(d, 0, 1));
}

/* Set the corners of n boxes in 0 .. bound, lower ones first, in columns
 * `first` to `first` + 3 of the rows of t. */
static void corners(struct draw *d, struct byi_tensor *t, int64_t n,
                    uint32_t first, double bound)
{
    const int64_t row_size = first + 4;

    for (int64_t i = 0; i < n * row_size; i++) {
        const int64_t k = i % row_size;
        if (k >= first && k < first + 2)
            byi_tensor_set(t, i, bound * (double)draw_int(d, 0, 8) / 16);
        else if (k >= first)
            byi_tensor_set(t, i, bound * (double)draw_int(d, 9, 16) / 16);
    }
}

static void roi_align(struct draw *d)
{
    const bool half = draw_chance(d, 50);
    const int64_t n = draw_int(d, 0, 4);
    int64_t dims[4];

    draw_operand(d, d->dtype, 4, draw_dims(dims, d, 4, 8), ORDINARY);
    corners(d, draw_operand(d, d->dtype, 2, (int64_t[]){n, 4}, ORDINARY), n, 0,
            10);
    struct byi_tensor *batch =
        draw_operand(d, BYOC_I64, 1, (int64_t[]){n}, ORDINARY);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(batch, i, (double)draw_int(d, 0, dims[0] - 1));
    draw_attr_string(d, "mode", draw_chance(d, 50) ? "avg" : "max");
    draw_attr_int(d, "output_height", draw_int(d, 1, 4));
    draw_attr_int(d, "output_width", draw_int(d, 1, 4));
    draw_attr_int(d, "sampling_ratio", draw_int(d, 0, 3));
    draw_attr_float(d, "spatial_scale", draw_chance(d, 50) ? 1.0f : 0.5f);
    draw_attr_string(d, "coordinate_transformation_mode",
                     half ? "half_pixel" : "output_half_pixel");
}

static void roi_pool(struct draw *d)
{
    const int64_t n = draw_int(d, 0, 4);
    int64_t dims[4], size[2];

    draw_operand(d, d->dtype, 4, draw_dims(dims, d, 4, 8), ORDINARY);
    struct byi_tensor *rois =
        draw_operand(d, d->dtype, 2, (int64_t[]){n, 5}, ORDINARY);
    corners(d, rois, n, 1, 8);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(rois, 5 * i, (double)draw_int(d, 0, dims[0] - 1));
    draw_attr_ints(d, "pooled_shape", 2, draw_dims(size, d, 2, 4));
    draw_attr_float(d, "spatial_scale", draw_chance(d, 50) ? 1.0f : 0.5f);
}

static void nms(struct draw *d)
{
    const int64_t batch = draw_int(d, 1, 2), boxes = draw_int(d, 0, 12);
    const int64_t classes = draw_int(d, 1, 3), max_selected = draw_int(d, 0, 8);
    const double overlap = (double)draw_int(d, 0, 8) / 8;
    const double min_score = (double)draw_int(d, -4, 8) / 16;
    struct byi_tensor *t =
        draw_operand(d, BYOC_F32, 3, (int64_t[]){batch, boxes, 4}, ORDINARY);

    const bool centred = draw_chance(d, 50);
    if (centred || draw_chance(d, 70)) /* sizes of boxes are positive */
        corners(d, t, batch * boxes, 0, 4);
    fill_in_steps(d,
                  draw_operand(d, BYOC_F32, 3,
                               (int64_t[]){batch, classes, boxes}, ORDINARY),
                  0, 1, 64);
    draw_ints(d, BYOC_I64, draw_chance(d, 50) ? 1 : -1, &max_selected,
              draw_chance(d, 50));
    if (draw_chance(d, 80))
        draw_floats(d, 1, &overlap, draw_chance(d, 50));
    else
        draw_nothing(d);
    if (draw_chance(d, 70))
        draw_floats(d, 1, &min_score, draw_chance(d, 50));
    draw_attr_int(d, "center_point_box", centred);
}

/* Distinct positions: the k-th maximum is in the k-th window. */
static void max_unpool(struct draw *d)
{
    const int64_t k = draw_int(d, 1, 3);
    const int64_t h = draw_int(d, 1, 4), w = draw_int(d, 1, 4);
    const int64_t n = draw_int(d, 1, 2), c = draw_int(d, 1, 3);
    const int64_t dims[] = {n, c, h, w}, out[] = {n, c, h * k, w * k};
    const int64_t size[] = {k, k};

    draw_operand(d, d->dtype, 4, dims, ORDINARY);
    struct byi_tensor *at = draw_operand(d, BYOC_I64, 4, dims, ORDINARY);
    for (int64_t i = 0; i < n * c * h * w; i++) {
        const int64_t plane = i / (h * w), y = i / w % h, x = i % w;
        byi_tensor_set(
            at, i,
            (double)((plane * h * k + y * k + draw_int(d, 0, k - 1)) * w * k +
                     x * k + draw_int(d, 0, k - 1)));
    }
    if (draw_chance(d, 50))
        draw_ints(d, BYOC_I64, 4, out, draw_chance(d, 50));
    draw_attr_ints(d, "kernel_shape", 2, size);
    draw_attr_ints(d, "strides", 2, size);
}

/* --- signals -------------------------------------------------------------- */

static void dft(struct draw *d)
{
    const int64_t parts = draw_int(d, 1, 2);
    const uint32_t rank = (uint32_t)draw_int(d, 3, 5);
    const bool inverse = draw_chance(d, 30);
    const int64_t length = draw_int(d, 1, 40);
    int64_t dims[5], axis = draw_int(d, 0, rank - 2);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis      ? draw_int(d, 1, 40)
                  : i + 1 < rank ? draw_int(d, 1, 3)
                                 : parts;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    if (draw_chance(d, 40))
        draw_ints(d, BYOC_I64, -1, &length, draw_chance(d, 50));
    axis -= draw_chance(d, 50) ? rank : 0;
    if (op_now->opset >= 20 &&
        ((axis != -2 && axis != rank - 2) || draw_chance(d, 70))) {
        if (d->n == 1)
            draw_nothing(d);
        draw_ints(d, BYOC_I64, -1, &axis, true);
    } else if (op_now->opset < 20) {
        draw_attr_int(d, "axis", axis);
    }
    draw_attr_int(d, "inverse", inverse);
    if (parts == 1 && !inverse)
        draw_attr_int(d, "onesided", draw_int(d, 0, 1));
}

static void stft(struct draw *d)
{
    const int64_t n = draw_int(d, 8, 60), length = draw_int(d, 2, 8);
    const int64_t step = draw_int(d, 1, 6);
    const bool window = draw_chance(d, 60);

    draw_operand(d, d->dtype, (uint32_t)draw_int(d, 2, 3),
                 (int64_t[]){draw_int(d, 1, 3), n, 1}, ORDINARY);
    draw_ints(d, BYOC_I64, -1, &step, draw_chance(d, 50));
    if (window)
        draw_operand(d, d->dtype, 1, &length, ORDINARY);
    else
        draw_nothing(d);
    if (!window || draw_chance(d, 50))
        draw_ints(d, BYOC_I64, -1, &length, draw_chance(d, 50));
    draw_attr_int(d, "onesided", draw_int(d, 0, 1));
}

static void window(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 40);

    draw_ints(d, d->dtype, -1, &n, draw_chance(d, 50));
    draw_attr_int(d, "periodic", draw_int(d, 0, 1));
    if (draw_chance(d, 30))
        draw_attr_int(d, "output_datatype", BYOC_F64);
}

static void mel_weights(struct draw *d)
{
    const int64_t bands = draw_int(d, 1, 8), length = draw_int(d, 8, 64);
    const int64_t rate = 8192;
    const double low = (double)draw_int(d, 0, 500);
    const double high = (double)draw_int(d, 1000, 4096);

    draw_ints(d, d->dtype, -1, &bands, draw_chance(d, 50));
    draw_ints(d, d->dtype, -1, &length, draw_chance(d, 50));
    draw_ints(d, d->dtype, -1, &rate, draw_chance(d, 50));
    draw_floats(d, -1, &low, draw_chance(d, 50));
    draw_floats(d, -1, &high, draw_chance(d, 50));
}

/* Columns (n, c k0 k1, places) of an image that is at least one window. */
static void col2im(struct draw *d)
{
    int64_t image[2], block[2], dilations[2], strides[2], pads[4];
    int64_t places = 1;
    const bool tiles = draw_chance(d, 30); /* side by side */

    for (int i = 0; i < 2; i++) {
        block[i] = draw_int(d, 1, 3);
        dilations[i] = tiles ? 1 : draw_int(d, 1, 2);
        strides[i] = tiles ? block[i] : draw_int(d, 1, 3);
        pads[i] = tiles ? 0 : draw_int(d, 0, 1);
        pads[i + 2] = tiles ? 0 : draw_int(d, 0, 1);
        const int64_t span = dilations[i] * (block[i] - 1) + 1;
        image[i] =
            tiles ? block[i] * draw_int(d, 1, 4) : span + draw_int(d, 0, 5);
        places *= (image[i] + pads[i] + pads[i + 2] - span) / strides[i] + 1;
    }
    const int64_t channels = draw_int(d, 1, 4);
    draw_operand(
        d, d->dtype, 3,
        (int64_t[]){draw_int(d, 1, 2), channels * block[0] * block[1], places},
        ORDINARY);
    draw_ints(d, BYOC_I64, 2, image, draw_chance(d, 70));
    draw_ints(d, BYOC_I64, 2, block, true);
    draw_attr_ints(d, "dilations", 2, dilations);
    draw_attr_ints(d, "strides", 2, strides);
    draw_attr_ints(d, "pads", 4, pads);
}

static void deform_conv(struct draw *d)
{
    const int64_t groups = draw_int(d, 1, 2), parts = draw_int(d, 1, 2);
    const int64_t n = draw_int(d, 1, 2), outs = groups * draw_int(d, 1, 3);
    const int64_t channels = groups * parts * draw_int(d, 1, 2);
    int64_t x[4] = {n, channels}, y[4] = {n}, w[4] = {outs, channels / groups};
    int64_t pads[4], strides[2], dilations[2];

    for (int i = 0; i < 2; i++) {
        w[i + 2] = draw_int(d, 1, 3);
        strides[i] = draw_int(d, 1, 2);
        dilations[i] = draw_int(d, 1, 2);
        pads[i] = draw_int(d, 0, 1);
        pads[i + 2] = draw_int(d, 0, 1);
        const int64_t span = dilations[i] * (w[i + 2] - 1) + 1;
        x[i + 2] = span + draw_int(d, 0, 4);
        y[i + 2] = (x[i + 2] + pads[i] + pads[i + 2] - span) / strides[i] + 1;
    }
    draw_operand(d, d->dtype, 4, x, ORDINARY);
    draw_operand(d, d->dtype, 4, w, ORDINARY);
    y[1] = parts * w[2] * w[3] * 2;
    draw_operand(d, d->dtype, 4, y, ORDINARY);
    if (draw_chance(d, 50))
        draw_operand(d, d->dtype, 1, &outs, ORDINARY);
    else
        draw_nothing(d);
    y[1] /= 2;
    if (draw_chance(d, 50))
        draw_operand(d, d->dtype, 4, y, UNIT);
    draw_attr_int(d, "group", groups);
    draw_attr_int(d, "offset_group", parts);
    draw_attr_ints(d, "kernel_shape", 2, w + 2);
    draw_attr_ints(d, "strides", 2, strides);
    draw_attr_ints(d, "dilations", 2, dilations);
    draw_attr_ints(d, "pads", 4, pads);
}

/* clang-format off */
static const struct op_case rows[] = {
    {"Col2Im", 18, "fh", col2im, ORDINARY, 1, 1e-4, NULL, false},
    {"DeformConv", 19, "f", deform_conv, ORDINARY, 1, 1e-4, NULL, false},
    {"Resize", 10, "f", upsample, ORDINARY, 1, 1e-5, NULL, false},
    {"Resize", 13, "fh", resize, ORDINARY, 1, 1e-5, NULL, false},
    {"Resize", 13, "iu86", resize, ORDINARY, 1, 1, NULL, false},
    {"Resize", 19, "f", resize_axes, ORDINARY, 1, 1e-5, NULL, false},
    {"Upsample", 9, "fh", upsample, ORDINARY, 1, 1e-5, NULL, false},
    {"Upsample", 9, "iu86", upsample, ORDINARY, 1, 1, NULL, false},
    {"Affine", 7, "f", experimental, ORDINARY, 1, 1e-6, NULL, false},
    {"Crop", 7, "f", experimental, ORDINARY, 1, 0, NULL, false},
    {"ImageScaler", 7, "f", experimental, ORDINARY, 1, 1e-6, NULL, false},
    {"AffineGrid", 20, "f", affine_grid, ORDINARY, 1, 1e-5, NULL, false},
    {"GridSample", 20, "fh", grid_sample, ORDINARY, 1, 1e-4, NULL, false},
    {"GridSample", 16, "fh", grid_sample, ORDINARY, 1, 1e-4, NULL, false},
    {"CropAndResize", 1, "F", crop_and_resize, ORDINARY, 1, 1e-5, "com.microsoft", false},
    {"GridSample", 1, "F", grid_sample, ORDINARY, 1, 1e-4, "com.microsoft", false},
    {"RoiAlign", 16, "fh", roi_align, ORDINARY, 1, 1e-4, NULL, false},
    {"MaxRoiPool", 1, "fh", roi_pool, ORDINARY, 1, 0, NULL, false},
    {"NonMaxSuppression", 11, "-", nms, ORDINARY, 1, 0, NULL, false},
    {"MaxUnpool", 11, "fh", max_unpool, ORDINARY, 1, 0, NULL, false},
    {"DFT", 20, "fh", dft, ORDINARY, 1, 1e-3, NULL, false},
    {"DFT", 17, "fh", dft, ORDINARY, 1, 1e-3, NULL, false},
    {"STFT", 17, "fh", stft, ORDINARY, 1, 1e-4, NULL, false},
    {"BlackmanWindow", 17, "i", window, ORDINARY, 1, 1e-6, NULL, false},
    {"HammingWindow", 17, "i", window, ORDINARY, 1, 1e-6, NULL, false},
    {"HannWindow", 17, "i", window, ORDINARY, 1, 1e-6, NULL, false},
    {"MelWeightMatrix", 17, "i", mel_weights, ORDINARY, 1, 1e-6, NULL, false},
};
/* clang-format on */

const struct op_table op_cases_image = {rows, BYI_COUNT(rows)};
