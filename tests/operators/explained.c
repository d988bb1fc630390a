/* SPDX-License-Identifier: Apache-2.0 */
/* explained.c: known differences between ONNX Runtime and the standard, and
 * code that recognises them. A difference without a row here fails the run;
 * docs/operators.md describes them.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

static bool any_nan(const struct draw *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        for (int64_t k = 0; byi_dtype_is_float(d->in[i].dtype) &&
                            k < byi_elements(d->in[i].rank, d->in[i].dims);
             k++)
            if (isnan(byi_tensor_float(&d->in[i], k)))
                return true;
    return false;
}

static const Onnx__AttributeProto *attribute(const struct draw *d,
                                             const char *name)
{
    for (size_t i = 0; i < d->node->n_attribute; i++)
        if (strcmp(d->node->attribute[i]->name, name) == 0)
            return d->node->attribute[i];
    return NULL;
}

static bool says(const struct draw *d, const char *name, const char *word)
{
    const Onnx__AttributeProto *a = attribute(d, name);

    return a && a->s.len == strlen(word) &&
           memcmp(a->s.data, word, a->s.len) == 0;
}

static bool nan_in_halves(const struct draw *d)
{
    return (d->dtype == BYOC_F16 || d->dtype == BYOC_BF16) && any_nan(d);
}

/* Whether a slice has more than one string. */
static bool runs_of_strings(const struct draw *d)
{
    const Onnx__AttributeProto *a = attribute(d, "axis");
    const struct byi_tensor *x = &d->in[0];
    const int64_t axis = a ? a->i : 0;
    int64_t n = 1;

    for (int64_t i = axis + (axis < 0 ? x->rank : 0) + 1; i < x->rank; i++)
        n *= x->dims[i];
    return d->dtype == BYOC_STRING && n > 1;
}

/* Whether the loop has no iterations. */
static bool no_rounds(const struct draw *d)
{
    return byi_tensor_int(&d->in[0], 0) == 0 ||
           byi_tensor_int(&d->in[1], 0) == 0;
}

static bool crops(const struct draw *d)
{
    return says(d, "coordinate_transformation_mode", "tf_crop_and_resize");
}

/* Whether a scale times its size is not an integer. */
static bool corners_between(const struct draw *d)
{
    const struct byi_tensor *scales = &d->in[1], *x = &d->in[0];

    if (!says(d, "coordinate_transformation_mode", "align_corners") ||
        scales->dtype != BYOC_F32)
        return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        const double size = (double)x->dims[i] * byi_tensor_float(scales, i);
        if (size != floor(size))
            return true;
    }
    return false;
}

/* Whether every result is 1, for which bytes with steps of 1/256 have no code.
 */
static bool ones_in_bytes(const struct draw *d)
{
    const struct byi_tensor *x = &d->in[0];
    const Onnx__AttributeProto *a = attribute(d, "axis");
    const bool rest = attribute(d, "opset")->i < 13;
    const uint32_t axis = (uint32_t)(a->i + (a->i < 0 ? x->rank : 0));
    int64_t n = 1;

    for (uint32_t i = axis; i < (rest ? x->rank : axis + 1); i++)
        n *= x->dims[i];
    return d->dtype == BYOC_U8 && n == 1;
}

/* Whether the scales keep all sizes. */
static bool sizes_stay(const struct draw *d)
{
    const struct byi_tensor *scales = &d->in[1], *x = &d->in[0];
    bool scaled = false;

    if (scales->dtype != BYOC_F32)
        return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        const double scale = byi_tensor_float(scales, i);
        if ((int64_t)floor((double)x->dims[i] * scale) != x->dims[i])
            return false;
        scaled = scaled || scale != 1;
    }
    return scaled;
}

/* Whether a symmetric window has one element. */
static bool one_number(const struct draw *d)
{
    const Onnx__AttributeProto *periodic = attribute(d, "periodic");

    return periodic && periodic->i == 0 && byi_tensor_int(&d->in[0], 0) == 1;
}

/* Whether elements i and k of x belong to the same group: their coordinates
 * differ on the axes only. */
static bool shares_group(const struct byi_tensor *x, const int64_t *axes,
                         size_t n_axes, int64_t i, int64_t k)
{
    for (uint32_t axis = x->rank; axis-- > 0;
         i /= x->dims[axis], k /= x->dims[axis]) {
        bool reduced = false;
        for (size_t a = 0; a < n_axes; a++)
            reduced |= axes[a] == axis;
        if (!reduced && i % x->dims[axis] != k % x->dims[axis])
            return false;
    }
    return true;
}

/* A group of elements that are all the same has no variance. */
static bool no_variance(const struct draw *d)
{
    static const int64_t usual[] = {0, 2, 3};
    const Onnx__AttributeProto *a = attribute(d, "axes");
    const int64_t *axes = a ? a->ints : usual;
    const size_t n_axes = a ? a->n_ints : BYI_COUNT(usual);
    const struct byi_tensor *x = &d->in[0];
    const int64_t n = byi_elements(x->rank, x->dims);

    for (int64_t i = 0; i < n; i++) {
        bool varies = false;
        for (int64_t k = 0; k < n && !varies; k++)
            varies = byi_tensor_float(x, i) != byi_tensor_float(x, k) &&
                     shares_group(x, axes, n_axes, i, k);
        if (!varies)
            return true;
    }
    return false;
}

static bool whole(const struct draw *d)
{
    return !byi_dtype_is_float(d->dtype);
}

/* Whether one of the strings is empty and a delimiter is given. */
static bool nothing_to_split(const struct draw *d)
{
    const struct byi_tensor *x = &d->in[0];

    for (int64_t i = 0; i < byi_elements(x->rank, x->dims); i++)
        if (((const char *const *)x->data)[i][0] == '\0')
            return attribute(d, "delimiter");
    return false;
}

static double largest(const struct byi_tensor *t)
{
    double most = 0;

    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        most = fmax(most, fabs(byi_tensor_float(t, i)));
    return most;
}

/* Whether ai.onnx's Attention may have a score of 8 or more in float16, whose
 * steps there are 1/128 or more. */
static bool large_halves(const struct draw *d)
{
    const struct byi_tensor *q = &d->in[0];
    const Onnx__AttributeProto *heads = attribute(d, "q_num_heads");
    const Onnx__AttributeProto *scale = attribute(d, "scale");
    const double n = (double)q->dims[q->rank - 1] /
                     (q->rank == 3 && heads ? (double)heads->i : 1);
    const double by = scale ? (double)scale->f : 1 / sqrt(n);

    return d->dtype == BYOC_F16 && !op_now->domain &&
           n * by * largest(q) * largest(&d->in[1]) >= 8;
}

static const struct {
    const char *op;
    bool (*when)(const struct draw *d);
    const char *why; /* how ONNX Runtime differs from the standard */
} rows[] = {
    {"Attention", large_halves, "it rounds scores to float16"},
    {"BlackmanWindow", one_number, "it divides 0 by 0"},
    {"Gather", runs_of_strings, "it gives the first string of each slice only"},
    {"HammingWindow", one_number, "it divides 0 by 0"},
    {"HannWindow", one_number, "it divides 0 by 0"},
    {"Loop", no_rounds, "without iterations, it gives rows with sizes of 0"},
    {"MeanVarianceNormalization", no_variance,
     "it adds no epsilon to a deviation of 0"},
    {"QLinearSoftmax", ones_in_bytes, "a result of 256 wraps around to 0"},
    {"ReduceLogSumExp", whole,
     "it drops the logarithm's fraction before it adds the maximum"},
    {"Resize", corners_between,
     "it takes the whole size for the resized length, not the product"},
    {"Resize", crops, "it ignores the roi of an axis that keeps its size"},
    {"Resize", sizes_stay, "it copies where no size changes"},
    {"Sign", nan_in_halves, "it gives 0 for NaN in halves"},
    {"StringSplit", nothing_to_split,
     "it finds no part in an empty string; with a delimiter there is one"},
    {"ThresholdedRelu", any_nan, "it gives 0 for NaN"},
};

const char *explained(const struct draw *d)
{
    for (uint32_t i = 0; i < BYI_COUNT(rows); i++)
        if (strcmp(rows[i].op, op_now->op) == 0 && rows[i].when(d))
            return rows[i].why;
    return NULL;
}
