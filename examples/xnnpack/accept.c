/* SPDX-License-Identifier: Apache-2.0 */
/* accept.c: accepts the matches that XNNPACK supports, and refuses others with
 * a sentence that says what was found and what is expected.
 */
#include "xnn.h"

#include <stdio.h>
#include <string.h>

/* The type of a value in a match. */
struct type {
    uint32_t dtype, rank;
    const int64_t *dims;
};

/* Set *t to the type of a value. Returns 0 if the match has no such value. */
static int type_of(const struct byoc_host *host, const struct byoc_match *m,
                   const char *name, struct type *t)
{
    return host->match_type(m, name, &t->dtype, &t->rank, &t->dims);
}

/* An attribute of the first operator that is a list of `n` ints; NULL if it has
 * another kind or length. */
static const int64_t *ints_of(const struct byoc_host *host,
                              const struct byoc_match *m, const char *name,
                              uint32_t n)
{
    const int64_t *values;
    uint32_t found;
    return host->match_ints(m, 0, name, &values, &found) && found == n ? values
                                                                       : NULL;
}

/* An int attribute of the first operator; 0 if it does not have it. */
static int64_t int_of(const struct byoc_host *host, const struct byoc_match *m,
                      const char *name)
{
    const int64_t *value = ints_of(host, m, name, 1);
    return value ? *value : 0;
}

/* A string attribute of the first operator; "" if it does not have it. */
static const char *string_of(const struct byoc_host *host,
                             const struct byoc_match *m, const char *name)
{
    const char *text = host->match_string(m, 0, name);
    return text ? text : "";
}

/* --- checks for every row ------------------------------------------------- */

/* Refuse a value of the type `t`, which messages show as `shown`, unless it is
 * float32 with elements and not too many axes. */
static const char *check_float(const struct byoc_host *host,
                               const struct byoc_match *m, const struct type *t,
                               const char *shown)
{
    bool is_empty = false;
    for (uint32_t d = 0; d < t->rank; d++)
        is_empty |= t->dims[d] == 0;
    if (t->dtype != BYOC_F32)
        return host->match_say(m,
                               "found %s, expected float32, the only type "
                               "this plug-in supports",
                               shown);
    if (is_empty || t->rank > XNN_MAX_TENSOR_DIMS)
        return host->match_say(m,
                               "found %s, expected dims above 0 and a rank "
                               "of at most %d",
                               shown, XNN_MAX_TENSOR_DIMS);
    return NULL;
}

/* Refuse operator i if it is a clip unless a_min < a_max as float32, which
 * XNNPACK requires. */
static const char *check_clip(const struct byoc_host *host,
                              const struct byoc_match *m, uint32_t i)
{
    double min, max;
    if (strcmp(host->match_op(m, i), "clip") != 0 ||
        !host->match_float(m, i, "a_min", &min) ||
        !host->match_float(m, i, "a_max", &max) || (float)min < (float)max)
        return NULL;
    return host->match_say(m,
                           "found a clip from %g to %g, expected a_min < "
                           "a_max",
                           min, max);
}

const char *accept_float(const struct byoc_host *host,
                         const struct byoc_match *m)
{
    static const char *const operands[] = {"src", "with", "weights", "bias",
                                           "slope"};
    struct type t;
    const char *why = NULL;
    for (size_t i = 0; !why && i < COUNT(operands); i++)
        if (type_of(host, m, operands[i], &t))
            why = check_float(host, m, &t, host->match_show(m, operands[i]));
    for (int i = 0; !why; i++) {
        char name[16];
        snprintf(name, sizeof name, "src%d", i);
        if (!type_of(host, m, name, &t))
            break;
        why = check_float(host, m, &t, host->match_show(m, name));
    }
    for (uint32_t i = 0; !why && i < host->match_n_ops(m); i++) {
        why = check_clip(host, m, i);
        if (!why && host->match_op_type(m, i, &t.dtype, &t.rank, &t.dims))
            why = check_float(host, m, &t, host->match_show_op(m, i));
    }
    return why;
}

/* Set *image to the sizes of operand src, whose layout is attribute `name`.
 * Refuse all layouts except NCHW and NHWC. */
static const char *check_layout(const struct byoc_host *host,
                                const struct byoc_match *m, const char *name,
                                struct image *image)
{
    const char *layout = string_of(host, m, name);
    struct type t;
    if (!type_of(host, m, "src", &t) || t.rank != 4 ||
        !image_of(image, layout, t.dims))
        return host->match_say(m, "found %s \"%s\", expected NCHW or NHWC",
                               name, layout);
    return NULL;
}

/* Refuse a bias unless it has one element for each of the `channels`, on the
 * axis that is followed by `behind` more axes. */
static const char *check_bias(const struct byoc_host *host,
                              const struct byoc_match *m, int64_t channels,
                              uint32_t behind)
{
    struct type t;
    if (!type_of(host, m, "bias", &t))
        return NULL;
    int fit = t.rank > behind && t.dims[t.rank - 1 - behind] == channels;
    for (uint32_t d = 0; fit && d < t.rank; d++)
        fit = t.dims[d] == 1 || d == t.rank - 1 - behind;
    return fit ? NULL
               : host->match_say(m,
                                 "found bias %s, expected one element for "
                                 "each of the %lld channels",
                                 host->match_show(m, "bias"),
                                 (long long)channels);
}

/* --- rows ----------------------------------------------------------------- */

const char *accept_convolution(const struct byoc_host *host,
                               const struct byoc_match *m)
{
    const char *why = accept_float(host, m);
    const char *layout = string_of(host, m, "kernel_layout");
    struct image image, out;
    struct type t;
    why = why ? why : check_layout(host, m, "data_layout", &image);
    if (!why && strlen(layout) != 4)
        why = host->match_say(m,
                              "found kernel_layout \"%s\", expected O, I, H "
                              "and W in any order",
                              layout);
    if (!why && strcmp(host->match_op(m, 0), "nn.conv2d_transpose") == 0 &&
        int_of(host, m, "groups") != 1)
        why = host->match_say(m,
                              "found a transposed convolution in %lld "
                              "groups, expected 1",
                              (long long)int_of(host, m, "groups"));
    if (why || !host->match_op_type(m, 0, &t.dtype, &t.rank, &t.dims))
        return why;
    layout = string_of(host, m, "data_layout");
    image_of(&out, layout, t.dims);
    return check_bias(host, m, (int64_t)out.c,
                      strcmp(layout, "NCHW") == 0 ? 2 : 0);
}

const char *accept_dense(const struct byoc_host *host,
                         const struct byoc_match *m)
{
    struct type weights, out;
    const char *why = accept_float(host, m);
    if (why || !type_of(host, m, "weights", &weights) ||
        !host->match_op_type(m, 0, &out.dtype, &out.rank, &out.dims))
        return why;
    if (weights.rank != 2)
        return host->match_say(m, "found weights %s, expected a matrix",
                               host->match_show(m, "weights"));
    if (int_of(host, m, "transpose_a"))
        return "found transpose_a = 1, expected 0: XNNPACK cannot transpose "
               "the first operand";
    return out.rank > 0 ? check_bias(host, m, out.dims[out.rank - 1], 0) : NULL;
}

/* Whether a window reaches beyond the padding of the image, as ceil_mode
 * allows. */
static int reaches_over(const struct byoc_host *host,
                        const struct byoc_match *m, const struct image *in,
                        const char *layout)
{
    const int64_t *size = ints_of(host, m, "pool_size", 2);
    const int64_t *stride = ints_of(host, m, "strides", 2);
    const int64_t *pad = ints_of(host, m, "padding", 4);
    struct type t;
    struct image out;
    if (!size || !stride || !pad || !type_of(host, m, NULL, &t) ||
        !image_of(&out, layout, t.dims))
        return 0;
    return ((int64_t)out.h - 1) * stride[0] + size[0] >
               (int64_t)in->h + pad[0] + pad[2] ||
           ((int64_t)out.w - 1) * stride[1] + size[1] >
               (int64_t)in->w + pad[1] + pad[3];
}

const char *accept_pool(const struct byoc_host *host,
                        const struct byoc_match *m)
{
    struct image image;
    const char *why = accept_float(host, m);
    why = why ? why : check_layout(host, m, "layout", &image);
    if (why)
        return why;
    const int64_t *size = ints_of(host, m, "pool_size", 2);
    const int64_t *pad = ints_of(host, m, "padding", 4);
    const int64_t *dilation = ints_of(host, m, "dilation", 2);
    if (size && size[0] * size[1] == 1)
        return "found a window of 1 by 1, expected a larger one, as XNNPACK "
               "requires";
    const bool dilated = dilation && (dilation[0] != 1 || dilation[1] != 1);
    const bool padded = pad && (pad[0] || pad[1] || pad[2] || pad[3]);
    if (strcmp(host->match_op(m, 0), "nn.max_pool2d") == 0)
        return dilated && padded ? "found a dilated window over padding, for "
                                   "which XNNPACK reads the wrong elements, "
                                   "expected dilation 1 or no padding"
                                 : NULL;
    if (dilated)
        return host->match_say(m,
                               "found average pooling with dilation %lld and "
                               "%lld, expected 1",
                               (long long)dilation[0], (long long)dilation[1]);
    if (padded && int_of(host, m, "count_include_pad"))
        return "found count_include_pad = 1, expected 0: XNNPACK does not "
               "count "
               "padding";
    if (reaches_over(host, m, &image, string_of(host, m, "layout")))
        return "found a window beyond the padding (ceil_mode), expected none: "
               "XNNPACK's averages end with the padding";
    return NULL;
}

const char *accept_global_pool(const struct byoc_host *host,
                               const struct byoc_match *m)
{
    struct image image;
    const char *why = accept_float(host, m);
    return why ? why : check_layout(host, m, "layout", &image);
}

/* Refuse all axes except the last one and the channels of images, which are
 * contiguous in XNNPACK's layout. */
static const char *check_axis(const struct byoc_host *host,
                              const struct byoc_match *m)
{
    struct type t;
    const int64_t axis = int_of(host, m, "axis");
    if (!type_of(host, m, NULL, &t))
        return NULL;
    const int64_t rank = t.rank;
    if (rank > 0 &&
        (axis == -1 || axis == rank - 1 || (rank == 4 && axis == 1)))
        return NULL;
    return host->match_say(
        m,
        "found %s along axis %lld of %s, expected the last one or "
        "an image's channels",
        host->match_op(m, 0), (long long)axis, host->match_show(m, NULL));
}

const char *accept_axis(const struct byoc_host *host,
                        const struct byoc_match *m)
{
    const char *why = accept_float(host, m);
    return why ? why : check_axis(host, m);
}

const char *accept_prelu(const struct byoc_host *host,
                         const struct byoc_match *m)
{
    struct type x, slope;
    const char *why = accept_float(host, m);
    if (why || !type_of(host, m, "src", &x) ||
        !type_of(host, m, "slope", &slope))
        return why;
    const uint32_t behind = x.rank == 4 && slope.rank >= 3 ? 2 : 0;
    int fit =
        x.rank > behind && slope.rank > behind &&
        slope.dims[slope.rank - 1 - behind] == x.dims[x.rank - 1 - behind];
    for (uint32_t d = 0; fit && d < slope.rank; d++)
        fit = slope.dims[d] == 1 || d == slope.rank - 1 - behind;
    return fit ? NULL
               : host->match_say(m,
                                 "found slopes %s, expected one for each "
                                 "channel",
                                 host->match_show(m, "slope"));
}
