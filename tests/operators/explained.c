/* SPDX-License-Identifier: Apache-2.0 */
/* explained.c: known differences between ONNX Runtime and the standard, and
 * code that recognises them. A difference without a row here fails the run;
 * docs/operators.md describes them.
 */
#include "fuzz.h"

#include "core/base/isa.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool any_nan(const struct draw *d)
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

/* Whether the node has the string attribute `name`, and it is `word`. */
static bool attr_is(const struct draw *d, const char *name, const char *word)
{
    const Onnx__AttributeProto *a = attribute(d, name);

    return a && a->s.len == strlen(word) &&
           memcmp(a->s.data, word, a->s.len) == 0;
}

static bool nan_in_16_bits(const struct draw *d)
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
static bool no_iterations(const struct draw *d)
{
    return byi_tensor_int(&d->in[0], 0) == 0 ||
           byi_tensor_int(&d->in[1], 0) == 0;
}

static bool crops_and_resizes(const struct draw *d)
{
    return attr_is(d, "coordinate_transformation_mode", "tf_crop_and_resize");
}

/* Whether a size times its scale is not an integer, with align_corners. */
static bool ends_between_elements(const struct draw *d)
{
    const struct byi_tensor *scales = &d->in[1], *x = &d->in[0];

    if (!attr_is(d, "coordinate_transformation_mode", "align_corners") ||
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
    const bool flat = attribute(d, "opset")->i < 13;
    const uint32_t axis = (uint32_t)(a->i + (a->i < 0 ? x->rank : 0));
    int64_t n = 1;

    for (uint32_t i = axis; i < (flat ? x->rank : axis + 1); i++)
        n *= x->dims[i];
    return d->dtype == BYOC_U8 && n == 1;
}

/* The argument of Resize for an axis: its size or scale, or `default_value`
 * if `axes` does not name it. */
static double resize_argument(const struct draw *d, uint32_t axis,
                              double default_value)
{
    const Onnx__AttributeProto *a = attribute(d, "axes");
    const struct byi_tensor *operand = &d->in[1];

    if (!a)
        return byi_tensor_float(operand, axis);
    for (size_t i = 0; i < a->n_ints; i++)
        if (a->ints[i] + (a->ints[i] < 0 ? d->in[0].rank : 0) == axis)
            return byi_tensor_float(operand, (int64_t)i);
    return default_value;
}

/* Whether the scales keep all sizes, though one of them is not 1. */
static bool sizes_stay(const struct draw *d)
{
    const struct byi_tensor *x = &d->in[0];
    bool scaled = false;

    if (d->in[1].dtype != BYOC_F32)
        return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        const double scale = resize_argument(d, i, 1);
        if ((int64_t)floor((double)x->dims[i] * scale) != x->dims[i])
            return false;
        scaled = scaled || scale != 1;
    }
    return scaled;
}

/* Whether a position that is an integer, or halfway between two, is another
 * number in float32 with a rounded scale. */
static bool position_differs(double in, double out, double half)
{
    const float scale = (float)out / (float)in;

    for (double j = 0; j < out; j++) {
        const double at = (j + half) * in / out - half;
        const float at_float32 = (float)(j + half) / scale - (float)half;
        if (2 * at == floor(2 * at) && (double)at_float32 != at)
            return true;
    }
    return false;
}

/* Like position_differs(), for half_pixel_symmetric and a given scale. */
static bool centred_position_differs(double in, double given)
{
    const double out = floor(in * given), half = 0.5;
    const float scale = (float)given, length = scale * (float)in;
    const float offset = (float)in / 2 * (1 - (float)out / length);

    for (double j = 0; j < out; j++) {
        const double at = (in - 1) / 2 + (j + half - out / 2) / given;
        const float at_float32 =
            offset + (float)(j + half) / scale - (float)half;
        if (2 * at == floor(2 * at) && (double)at_float32 != at)
            return true;
    }
    return false;
}

/* Whether a position that differs in float32 chooses the nearest element. */
static bool nearest_element_changes(const struct draw *d)
{
    const char *const transform = "coordinate_transformation_mode";
    const struct byi_tensor *x = &d->in[0];
    const double half = attr_is(d, transform, "asymmetric") ? 0 : 0.5;

    for (uint32_t i = 0; i < x->rank && d->in[1].dtype == BYOC_F32 &&
                         attr_is(d, transform, "half_pixel_symmetric");
         i++)
        if (centred_position_differs((double)x->dims[i],
                                     resize_argument(d, i, 1)))
            return attr_is(d, "mode", "nearest");
    if (d->in[1].dtype != BYOC_I64 || !attr_is(d, "mode", "nearest") ||
        attr_is(d, transform, "align_corners"))
        return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        const double in = (double)x->dims[i];
        if (position_differs(in, resize_argument(d, i, in), half))
            return true;
    }
    return false;
}

/* Whether a symmetric window function has one element. */
static bool one_number(const struct draw *d)
{
    const Onnx__AttributeProto *periodic = attribute(d, "periodic");

    return periodic && periodic->i == 0 && byi_tensor_int(&d->in[0], 0) == 1;
}

/* The group of element i of x: the first element of those that differ from it
 * on the axes only. Without axes, all elements are one group. */
static int64_t group_of(const struct byi_tensor *x, const int64_t *axes,
                        size_t n_axes, int64_t i)
{
    int64_t group = 0, stride = 1;

    for (uint32_t axis = x->rank; axis-- > 0; i /= x->dims[axis]) {
        bool reduced = n_axes == 0;
        for (size_t a = 0; a < n_axes; a++)
            reduced |= axes[a] + (axes[a] < 0 ? x->rank : 0) == axis;
        group += reduced ? 0 : i % x->dims[axis] * stride;
        stride *= x->dims[axis];
    }
    return group;
}

/* Whether the elements of some group are all the same. */
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
            varies =
                byi_tensor_float(x, i) != byi_tensor_float(x, k) &&
                group_of(x, axes, n_axes, i) == group_of(x, axes, n_axes, k);
        if (!varies)
            return true;
    }
    return false;
}

/* Whether the product of the elements above 1 (in magnitude) of some group is
 * above `limit`; only groups with a zero count if `zero`, only those without
 * one otherwise. */
static bool product_above(const struct draw *d, bool zero, double limit)
{
    const Onnx__AttributeProto *a = attribute(d, "axes");
    const struct byi_tensor *x = &d->in[0];
    const int64_t n = byi_elements(x->rank, x->dims);
    double *logs = byi_arena_calloc(d->arena, (size_t)n + 1, sizeof *logs);
    bool *zeros = byi_arena_calloc(d->arena, (size_t)n + 1, sizeof *zeros);

    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(byi_tensor_float(x, i));
        const int64_t g = group_of(x, a ? a->ints : NULL, a ? a->n_ints : 0, i);
        logs[g] += size > 1 ? log2(size) : 0;
        zeros[g] |= size == 0;
    }
    for (int64_t g = 0; g < n; g++)
        if (zeros[g] == zero && logs[g] > log2(limit))
            return true;
    return false;
}

static bool zero_after_overflow(const struct draw *d)
{
    return (d->dtype == BYOC_F32 || d->dtype == BYOC_F16) &&
           product_above(d, true, (double)FLT_MAX);
}

static bool product_wraps(const struct draw *d)
{
    return d->dtype == BYOC_I32 && product_above(d, false, INT32_MAX);
}

static bool has_integers(const struct draw *d)
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
    double maximum = 0;

    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        maximum = fmax(maximum, fabs(byi_tensor_float(t, i)));
    return maximum;
}

/* Whether ai.onnx's Attention may have a score of 8 or more in float16, whose
 * steps there are 1/128 or more. */
static bool large_float16_scores(const struct draw *d)
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

static bool is_before_12(const struct draw *d)
{
    return d->model->opset_import[0]->version < 12;
}

/* Whether the node copies strings in each iteration of a Loop. */
static bool repeats_strings(const struct draw *d)
{
    return d->dtype == BYOC_STRING &&
           strcmp(d->graph->node[0]->op_type, "Loop") == 0;
}

static bool clips(const struct draw *d)
{
    return attribute(d, "clip");
}

static bool is_float16(const struct draw *d)
{
    return d->dtype == BYOC_F16;
}

/* Whether a window has dilations, and pads that keep the size. */
static bool keeps_size_dilated(const struct draw *d)
{
    const Onnx__AttributeProto *dilations = attribute(d, "dilations");

    if (!attr_is(d, "auto_pad", "SAME_UPPER") &&
        !attr_is(d, "auto_pad", "SAME_LOWER"))
        return false;
    for (size_t i = 0; dilations && i < dilations->n_ints; i++)
        if (dilations->ints[i] != 1)
            return true;
    return false;
}

/* Whether a transposed convolution has pads that make the result as large as x
 * times the stride. */
static bool multiplies_size(const struct draw *d)
{
    return attr_is(d, "auto_pad", "SAME_UPPER") ||
           attr_is(d, "auto_pad", "SAME_LOWER");
}

/* Whether pads that keep the size, divided by the stride, would be negative on
 * an axis, since the stride is larger than the window. */
static bool keeps_size_strided(const struct draw *d)
{
    const Onnx__AttributeProto *kernel = attribute(d, "kernel_shape");
    const Onnx__AttributeProto *strides = attribute(d, "strides");
    const struct byi_tensor *x = &d->in[0];

    if (!multiplies_size(d))
        return false;
    for (uint32_t i = 0; strides && i < strides->n_ints; i++) {
        const int64_t in = x->dims[i + 2], stride = strides->ints[i];
        const int64_t window = kernel ? kernel->ints[i] : d->in[1].dims[i + 2];
        if ((in + stride - 1) / stride * stride - stride + window < in)
            return true;
    }
    return false;
}

/* Whether x has no elements and one of the axes counts from the end. */
static bool negative_axis_of_empty(const struct draw *d)
{
    const struct byi_tensor *x = &d->in[0], *axes = &d->in[1];

    if (byi_elements(x->rank, x->dims) > 0 || d->node->n_input < 2)
        return false;
    for (int64_t i = 0; i < byi_elements(axes->rank, axes->dims); i++)
        if (byi_tensor_int(axes, i) < 0)
            return true;
    return false;
}

static bool cpu_has_vnni(void)
{
#if defined(__x86_64__)
    return byi_isa_runs(BYI_ISA_VNNI) || byi_isa_runs(BYI_ISA_AVX_VNNI);
#else
    return true; /* other CPUs add products without saturation, too */
#endif
}

/* Whether two products of bytes, of consecutive rows of signed weights, may
 * have a sum beyond 16 bits, on a CPU without an instruction that adds them in
 * 32 bits. */
static bool products_saturate(const struct draw *d)
{
    const struct byi_tensor *w = &d->in[1];
    const int64_t k = w->dims[0], n = w->dims[1];

    for (int64_t i = 0; w->dtype == BYOC_I8 && !cpu_has_vnni() && i + 1 < k;
         i += 2)
        for (int64_t j = 0; j < n; j++) {
            const int64_t a = byi_tensor_int(w, i * n + j),
                          b = byi_tensor_int(w, (i + 1) * n + j);
            const int64_t largest = (a > 0 ? a : 0) + (b > 0 ? b : 0),
                          smallest = (a < 0 ? a : 0) + (b < 0 ? b : 0);
            if (UINT8_MAX * largest > INT16_MAX ||
                UINT8_MAX * smallest < INT16_MIN)
                return true;
        }
    return false;
}

static const struct {
    const char *op;
    bool (*when)(const struct draw *d);
    const char *why; /* how ONNX Runtime differs from the standard */
} rows[] = {
    {"Attention", large_float16_scores, "it rounds scores to float16"},
    {"AveragePool", keeps_size_dilated,
     "auto_pad does not count the dilations"},
    {"AveragePool", keeps_size_strided,
     "it uses negative pads if the stride is larger than the window"},
    {"BlackmanWindow", one_number, "it divides 0 by 0"},
    {"Conv", keeps_size_strided,
     "it uses negative pads if the stride is larger than the window"},
    {"ConvTranspose", multiplies_size,
     "its result is smaller if the stride is larger than the kernel"},
    {"Dropout", is_before_12, "before opset 12, its mask is all zeros"},
    {"DynamicQuantizeMatMul", products_saturate,
     "without VNNI, it saturates sums of two products at 16 bits"},
    {"Gather", runs_of_strings, "it gives the first string of each slice only"},
    {"HammingWindow", one_number, "it divides 0 by 0"},
    {"HannWindow", one_number, "it divides 0 by 0"},
    {"Identity", repeats_strings,
     "in a Loop, it moves strings of the enclosing graph in the first "
     "iteration"},
    {"LSTM", clips, "it clips the arguments of the gates only"},
    {"Loop", no_iterations,
     "without iterations, it gives rows with sizes of 0"},
    {"LpPool", keeps_size_dilated, "auto_pad does not count the dilations"},
    {"LpPool", keeps_size_strided,
     "it uses negative pads if the stride is larger than the window"},
    {"MaxPool", keeps_size_dilated, "auto_pad does not count the dilations"},
    {"MaxPool", keeps_size_strided,
     "it uses negative pads if the stride is larger than the window"},
    {"MeanVarianceNormalization", no_variance,
     "it adds no epsilon to a deviation of 0"},
    {"MoE", is_float16, "it reads float16 weights as if transposed"},
    {"QAttention", products_saturate,
     "without VNNI, it saturates sums of two products at 16 bits"},
    {"QLinearSoftmax", ones_in_bytes, "a result of 256 wraps around to 0"},
    {"ReduceL1", negative_axis_of_empty,
     "for an x without elements, it ignores negative axes"},
    {"ReduceL2", negative_axis_of_empty,
     "for an x without elements, it ignores negative axes"},
    {"ReduceLogSum", negative_axis_of_empty,
     "for an x without elements, it ignores negative axes"},
    {"ReduceLogSumExp", has_integers,
     "it drops the logarithm's fraction before it adds the maximum"},
    {"ReduceMax", negative_axis_of_empty,
     "for an x without elements, it ignores negative axes"},
    {"ReduceProd", product_wraps, "it saturates"},
    {"ReduceProd", zero_after_overflow,
     "its product of float32 is infinite before a zero makes it NaN"},
    {"ReduceSumSquare", negative_axis_of_empty,
     "for an x without elements, it ignores negative axes"},
    {"Resize", ends_between_elements,
     "it takes the whole size for the resized length, not the product"},
    {"Resize", crops_and_resizes,
     "it ignores the roi of an axis that keeps its size"},
    {"Resize", nearest_element_changes,
     "it rounds positions to float32, and then to another element"},
    {"Resize", sizes_stay, "it copies where no size changes"},
    {"Sign", nan_in_16_bits, "it gives 0 for NaN in 16-bit floats"},
    {"StringSplit", nothing_to_split,
     "it finds no part in an empty string; with a delimiter there is one"},
    {"ThresholdedRelu", any_nan, "it gives 0 for NaN"},
    {"Upsample", sizes_stay, "it copies where no size changes"},
};

const char *explained(const struct draw *d)
{
    for (uint32_t i = 0; i < BYI_COUNT(rows); i++)
        if (strcmp(rows[i].op, op_now->op) == 0 && rows[i].when(d))
            return rows[i].why;
    return NULL;
}
