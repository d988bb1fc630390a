/* SPDX-License-Identifier: Apache-2.0 */
/* rules_vision.c: type rules of the operators on images and boxes. */
#include "rules.h"

#include <math.h>
#include <string.h>

/* The dim that follows from a scale for `dim` elements, of which the fraction
 * `span` is resized. ONNX computes the product in float32, so that 0.7f * 10 is
 * 7. It rounds the product down, but to the nearest if it chooses the scale to
 * keep the aspect ratio: then the scale is that of the whole axis. */
static float scaled_dim(const struct byi_infer *t, int64_t dim, double scale,
                        double span)
{
    if (t->op->id == BYI_OP_RESIZE && byi_attr_int(t->attrs, "round_dims") != 0)
        return floorf((float)dim * (float)scale + 0.5f);
    return floorf((float)dim * (float)span * (float)scale);
}

/* Multiply *dim by its scale and by the fraction `span` that is resized. */
static enum byoc_status scale_dim(const struct byi_infer *t, uint32_t axis,
                                  double scale, double span, int64_t *dim)
{
    if (!(scale > 0) || !isfinite(scale))
        return byi_rule_fail(t, "scales[%u] is %s, expected a positive number",
                             axis, BYI_FLOAT_TEXT(scale));
    if (BYI_IS_SYMBOL(*dim)) {
        if (scale != 1 || span != 1)
            *dim = byi_rule_new_symbol(t);
        return BYOC_OK;
    }
    const float size = scaled_dim(t, *dim, scale, span);
    if (!(size <= (float)BYI_MAX_ELEMENTS))
        return byi_rule_fail(
            t, "axis %u would have %s elements, expected at most 2^40", axis,
            BYI_FLOAT_TEXT((double)size));
    *dim = size > 0 ? (int64_t)size : 0;
    return BYOC_OK;
}

/* The fraction of axis that operand 2 (roi) selects; 1 and *known = false if
 * the value of roi is unknown. */
static double operand_span(const struct byi_infer *t, uint32_t axis,
                           bool *known)
{
    const struct byi_tensor *roi = byi_known_value(t, 2);
    *known = roi != NULL;
    return roi ? byi_tensor_float(roi, t->in[0]->rank + axis) -
                     byi_tensor_float(roi, axis)
               : 1;
}

/* The fraction of axis that is resized: 1, or with the coordinate
 * transformation tf_crop_and_resize the part in roi. */
static enum byoc_status read_span(const struct byi_infer *t, uint32_t axis,
                                  double *span, bool *known)
{
    uint32_t n;
    const uint32_t rank = t->in[0]->rank;
    *known = true;
    if (t->op->id == BYI_OP_DYN_RESIZE) {
        *span = operand_span(t, axis, known);
        return BYOC_OK;
    }
    const double *roi = byi_attr_floats(t->attrs, "roi", &n);
    const char *mode =
        byi_attr_string(t->attrs, "coordinate_transformation_mode");
    *span = 1;
    if (strcmp(mode, "tf_crop_and_resize") != 0)
        return BYOC_OK;
    if (n != 2 * rank)
        return byi_rule_fail(t, "roi has %u entries, expected %u", n, 2 * rank);
    *span = roi[rank + axis] - roi[axis];
    return BYOC_OK;
}

/* Whether elements are only copied, so that x may have any element type. */
static bool copies_elements(const struct byi_infer *t)
{
    return strcmp(byi_attr_string(t->attrs, "mode"), "nearest") == 0 &&
           strcmp(byi_attr_string(t->attrs, "coordinate_transformation_mode"),
                  "tf_crop_and_resize") != 0;
}

static enum byoc_status check_resize(const struct byi_infer *t)
{
    const uint32_t rank = t->in[0]->rank;
    BYI_TRY(
        byi_want_dtype(t, 0, copies_elements(t) ? BYI_ANY : BYI_VALUES, "x"));
    BYI_TRY(byi_want_min_rank(t, 0, 1, "x"));
    BYI_TRY(byi_want_word(t, "mode", "nearest|linear|cubic"));
    BYI_TRY(byi_want_word(t, "coordinate_transformation_mode",
                          "half_pixel|pytorch_half_pixel|align_corners|"
                          "asymmetric|tf_half_pixel_for_nn|"
                          "tf_crop_and_resize|half_pixel_symmetric"));
    BYI_TRY(byi_want_word(t, "nearest_mode",
                          "round_prefer_floor|round_prefer_ceil|floor|ceil"));
    BYI_TRY(byi_want_rank(t, 1, 1, "sizes or scales"));
    if (!byi_dims_agree(t->in[1]->dims[0], rank))
        return byi_rule_fail(
            t, "sizes or scales have %lld elements, expected %u, the rank of x",
            (long long)t->in[1]->dims[0], rank);
    if (t->op->id == BYI_OP_DYN_RESIZE) {
        BYI_TRY(byi_want_word(t, "coordinate_transformation_mode",
                              "tf_crop_and_resize"));
        BYI_TRY(byi_want_dtype(t, 2, BYI_FLOATS, "roi"));
        BYI_TRY(byi_want_rank(t, 2, 1, "roi"));
        if (!byi_dims_agree(t->in[2]->dims[0], 2 * (int64_t)rank))
            return byi_rule_fail(t, "roi has %lld entries, expected %u",
                                 (long long)t->in[2]->dims[0], 2 * rank);
    }
    return byi_want_dtype(t, 1, BYI_BIT(BYOC_I64) | BYI_BIT(BYOC_F32),
                          "sizes (int64) or scales (float32)");
}

enum byoc_status byi_rule_resize(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const struct byi_tensor *known = byi_known_value(t, 1);
    int64_t dims[BYI_MAX_RANK];
    BYI_TRY(check_resize(t));
    for (uint32_t i = 0; i < x->rank; i++) {
        double span;
        bool span_known;
        BYI_TRY(read_span(t, i, &span, &span_known));
        if (!known || (!span_known && known->dtype != BYOC_I64)) {
            dims[i] = byi_rule_new_symbol(t);
        } else if (known->dtype == BYOC_I64) {
            dims[i] = byi_tensor_int(known, i);
            if (dims[i] < 0)
                return byi_rule_fail(t, "sizes[%u] is %lld, expected 0 or more",
                                     i, (long long)dims[i]);
        } else {
            dims[i] = x->dims[i];
            BYI_TRY(
                scale_dim(t, i, byi_tensor_float(known, i), span, &dims[i]));
        }
        if (x->dims[i] == 0 && dims[i] > 0)
            return byi_rule_fail(
                t, "axis %u is empty and would have %lld elements, expected 0",
                i, (long long)dims[i]);
    }
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

enum byoc_status byi_rule_grid_sample(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *grid = t->in[1];
    BYI_TRY(byi_want_dtype(t, 1, BYI_FLOATS, "grid"));
    if (x->rank != 4 && x->rank != 5)
        return byi_rule_fail(t, "x has rank %u, expected 4 or 5", x->rank);
    BYI_TRY(byi_want_rank(t, 1, x->rank, "grid"));
    BYI_TRY(byi_want_word(t, "mode",
                          x->rank == 4 ? "bilinear|nearest|bicubic"
                                       : "bilinear|nearest"));
    BYI_TRY(byi_want_word(t, "padding_mode", "zeros|border|reflection"));
    if (!byi_dims_agree(grid->dims[x->rank - 1], x->rank - 2))
        return byi_rule_fail(t, "grid has %lld coordinates, expected %u",
                             (long long)grid->dims[x->rank - 1], x->rank - 2);
    if (!byi_dims_agree(grid->dims[0], x->dims[0]))
        return byi_rule_fail(
            t, "grid has batch size %lld, expected %lld, as x has",
            (long long)grid->dims[0], (long long)x->dims[0]);
    const int64_t dims[] = {byi_dim_unify(x->dims[0], grid->dims[0]),
                            x->dims[1], grid->dims[1], grid->dims[2],
                            grid->dims[3]};
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

enum byoc_status byi_rule_roi_align(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *rois = t->in[1], *batch = t->in[2];
    const int64_t height = byi_attr_int(t->attrs, "output_height");
    const int64_t width = byi_attr_int(t->attrs, "output_width");
    const int64_t ratio = byi_attr_int(t->attrs, "sampling_ratio");
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "rois"));
    BYI_TRY(byi_want_rank(t, 0, 4, "x"));
    BYI_TRY(byi_want_rank(t, 1, 2, "rois"));
    BYI_TRY(byi_want_ints(t, 2, rois->dims[0], "batch indices"));
    BYI_TRY(byi_want_word(t, "mode", "avg|max"));
    BYI_TRY(byi_want_word(t, "coordinate_transformation_mode",
                          "half_pixel|output_half_pixel"));
    if (!byi_dims_agree(rois->dims[1], 4))
        return byi_rule_fail(t, "rois have %lld coordinates, expected 4",
                             (long long)rois->dims[1]);
    if (height < 1 || width < 1)
        return byi_rule_fail(
            t, "output is %lld by %lld, expected sizes of 1 or more",
            (long long)height, (long long)width);
    if (ratio < 0 || ratio > 4096)
        return byi_rule_fail(t, "sampling_ratio is %lld, expected 0 to 4096",
                             (long long)ratio);
    const int64_t dims[] = {byi_dim_unify(rois->dims[0], batch->dims[0]),
                            x->dims[1], height, width};
    return byi_rule_tensor(t, x->dtype, 4, dims);
}

enum byoc_status byi_rule_roi_pool(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *rois = t->in[1];
    const int64_t *size;
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "rois"));
    BYI_TRY(byi_want_rank(t, 0, 4, "x"));
    BYI_TRY(byi_want_rank(t, 1, 2, "rois"));
    BYI_TRY(byi_want_list(t, "pooled_size", 2, 1, BYI_MAX_ELEMENTS, &size));
    if (!byi_dims_agree(rois->dims[1], 5))
        return byi_rule_fail(t,
                             "rois have %lld numbers, expected 5: a batch "
                             "index and two corners",
                             (long long)rois->dims[1]);
    const int64_t dims[] = {rois->dims[0], x->dims[1], size[0], size[1]};
    return byi_rule_tensor(t, x->dtype, 4, dims);
}

/* The most rows that nms can have: for each class of each batch element,
 * per_class boxes, or all if there are fewer. */
static int64_t count_boxes(const struct byi_infer *t, int64_t per_class)
{
    const int64_t boxes = t->in[0]->dims[1], *scores = t->in[1]->dims;
    if (per_class < 0)
        per_class = 0;
    const int64_t max_per_class = per_class < boxes ? per_class : boxes;
    return byi_dim_mul(t, byi_dim_mul(t, scores[0], scores[1]), max_per_class);
}

/* Only the kernel finds the number of rows, even if boxes and scores are known.
 */
enum byoc_status byi_rule_nms(struct byi_infer *t)
{
    static const char *const names[] = {"boxes", "scores", "max per class",
                                        "iou threshold", "score threshold"};
    const struct byi_type *boxes = t->in[0], *scores = t->in[1];
    int64_t dims[2] = {0, 3}, per_class = 0;
    uint32_t n;
    BYI_TRY(byi_want_dtype(t, 0, BYI_BIT(BYOC_F32), "boxes"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "scores"));
    BYI_TRY(byi_want_rank(t, 0, 3, "boxes"));
    BYI_TRY(byi_want_rank(t, 1, 3, "scores"));
    for (uint32_t i = 2; i < t->n_in; i++) {
        BYI_TRY(byi_want_scalar(t, i, names[i]));
        BYI_TRY(byi_want_dtype(t, i, i == 2 ? BYI_INDEX : BYI_BIT(BYOC_F32),
                               names[i]));
    }
    if (!byi_dims_agree(boxes->dims[2], 4))
        return byi_rule_fail(t, "boxes have %lld coordinates, expected 4",
                             (long long)boxes->dims[2]);
    if (!byi_dims_agree(boxes->dims[0], scores->dims[0]))
        return byi_rule_fail(
            t, "scores have batch size %lld, expected %lld, as boxes have",
            (long long)scores->dims[0], (long long)boxes->dims[0]);
    if (!byi_dims_agree(boxes->dims[1], scores->dims[2]))
        return byi_rule_fail(
            t, "scores are for %lld boxes, expected %lld, the number of boxes",
            (long long)scores->dims[2], (long long)boxes->dims[1]);
    const bool is_limited =
        t->n_in < 3 || byi_known_ints(t, 2, 1, &per_class, &n);
    if (is_limited && per_class <= 0)
        dims[0] = 0; /* ONNX's default, 0, selects no box */
    else if (is_limited && t->bounds)
        dims[0] = count_boxes(t, per_class);
    else
        dims[0] = byi_rule_new_symbol(t);
    return byi_rule_tensor(t, BYOC_I64, 2, dims);
}
