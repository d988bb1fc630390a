/* SPDX-License-Identifier: Apache-2.0 */
/* rules_nn.c: type rules of convolution, pooling, normalisation and padding.
 * Data is (N, C, spatial...); operands in other layouts are converted to it
 * first. A symbolic spatial dim stays that symbol if the window provably keeps
 * the size, and is a new symbol otherwise.
 */
#include "layout.h"
#include "rules.h"

#include <string.h>

/* --- layouts ------------------------------------------------------------ */

/* The plain layouts with channels first, by the number of spatial axes. */
static const char *const data_first[] = {NULL, "NCW", "NCHW", "NCDHW"};
static const char *const conv_first[] = {NULL, "OIW", "OIHW", "OIDHW"};
static const char *const transposed_first[] = {NULL, "IOW", "IOHW", "IODHW"};

/* Check that operand i has the axes and blocks of `layout`, the value of
 * attribute `name`. */
static enum byoc_status want_layout(const struct byi_infer *t, uint32_t i,
                                    const char *name, const char *operand,
                                    const struct byi_layout *layout)
{
    BYI_TRY(byi_want_rank(t, i, layout->n, operand));
    for (uint32_t k = 0; k < layout->n; k++)
        if (layout->at[k].block && t->in[i]->dims[k] != layout->at[k].block)
            return byi_rule_fail(
                t, "%s has %lld elements on axis %u, expected %lld as %s is %s",
                operand, (long long)t->in[i]->dims[k], k,
                (long long)layout->at[k].block, name,
                byi_attr_string(t->attrs, name));
    return BYOC_OK;
}

/* Set dims to those of operand i, in `layout`, in the channels-first layout
 * `first`. */
static enum byoc_status dims_in_first(const struct byi_infer *t, uint32_t i,
                                      const char *name, const char *operand,
                                      const struct byi_layout *layout,
                                      const char *first,
                                      int64_t dims[BYI_MAX_RANK])
{
    struct byi_layout default_layout;
    byi_layout_parse(first, &default_layout);
    BYI_TRY(want_layout(t, i, name, operand, layout));
    char why[BYI_LAYOUT_WHY];
    if (!byi_layout_dims(layout, &default_layout, t->in[i]->dims, dims, why))
        return byi_rule_fail(t, "%s: %s", operand, why);
    return BYOC_OK;
}

/* Parse and check the layout of the data: `first`, channels last, or blocked.
 * `dims` are its dims in `first`. */
static enum byoc_status read_data(const struct byi_infer *t, const char *name,
                                  const char *first, struct byi_layout *layout,
                                  int64_t dims[BYI_MAX_RANK])
{
    const char *text = byi_attr_string(t->attrs, name);
    if (byi_layout_parse(text, layout) || !byi_layout_is_data(layout, first))
        return byi_rule_fail(
            t, "%s is %s, expected %s, N%sC or blocks of channels as in %s16c",
            name, text, first, first + 2, first);
    return dims_in_first(t, 0, name, "data", layout, first, dims);
}

static enum byoc_status read_kernel(const struct byi_infer *t,
                                    const char *first,
                                    int64_t dims[BYI_MAX_RANK])
{
    struct byi_layout layout;
    const char *text = byi_attr_string(t->attrs, "kernel_layout");
    if (byi_layout_parse(text, &layout) ||
        !byi_layout_is_kernel(&layout, first))
        return byi_rule_fail(
            t,
            "kernel_layout is %s, expected O, I and %s in any order (%s, %sIO, "
            "O%sI), and blocks behind them as in %s16i16o",
            text, first + 2, first, first + 2, first + 2, first);
    return dims_in_first(t, 1, "kernel_layout", "weights", &layout, first,
                         dims);
}

/* The result in `layout`; `dims` are its dims in `first`. */
static enum byoc_status data_result(struct byi_infer *t, const char *first,
                                    const struct byi_layout *layout,
                                    const int64_t *dims)
{
    struct byi_layout default_layout;
    int64_t result[BYI_MAX_RANK];
    byi_layout_parse(first, &default_layout);
    char why[BYI_LAYOUT_WHY];
    if (!byi_layout_dims(&default_layout, layout, dims, result, why))
        return byi_rule_fail(t, "the result: %s", why);
    return byi_rule_tensor(t, t->in[0]->dtype, layout->n, result);
}

/* --- windows ------------------------------------------------------------ */

/* A window sliding along one axis. */
struct window {
    int64_t kernel; /* taps; may be a symbol */
    int64_t stride, dilation;
    int64_t pad;   /* padding on both sides together */
    int64_t begin; /* padding before the data */
    bool ceil_mode;
};

/* Attributes of windows are limited to 31 bits, so that the sums and products
 * of two of them fit in 64. */
#define MAX_WINDOW INT32_MAX

/* The number of positions of the window along an axis of size `in`. As in
 * ONNX's formula, a window that does not fit has none, and one that does not
 * fit by a stride or more has a negative number. In ceil_mode the only window
 * may be larger than the data and the padding. */
static int64_t count_windows(const struct window *w, int64_t in)
{
    const int64_t extent = (w->kernel - 1) * w->dilation + 1;
    const int64_t span = in + w->pad - extent;
    const bool is_partial = span % w->stride != 0;
    const int64_t ceiling = span / w->stride + (is_partial && span > 0) + 1;
    if (!w->ceil_mode)
        return ceiling - is_partial;
    /* The last window must start on data or on the padding before it (ONNX 19,
     * PyTorch). One that starts in the padding after it is not counted. */
    return (ceiling - 1) * w->stride >= in + w->begin ? ceiling - 1 : ceiling;
}

/* Set *out to the outputs along a spatial axis of size `in`. */
static enum byoc_status window_size(const struct byi_infer *t,
                                    const struct window *w, uint32_t axis,
                                    int64_t in, int64_t *out)
{
    if (BYI_IS_SYMBOL(in) || BYI_IS_SYMBOL(w->kernel)) {
        const bool same = !BYI_IS_SYMBOL(w->kernel) && w->stride == 1 &&
                          (w->kernel - 1) * w->dilation == w->pad;
        *out = same ? in : byi_rule_new_symbol(t);
        return BYOC_OK;
    }
    *out = count_windows(w, in);
    if (*out >= 0)
        return BYOC_OK;
    return byi_rule_fail(
        t,
        "a window of %lld with dilation %lld does not fit in %lld plus padding "
        "%lld on spatial axis %u, expected a smaller window or more padding",
        (long long)w->kernel, (long long)w->dilation, (long long)in,
        (long long)w->pad, axis);
}

/* The number of spatial axes of an operator whose name ends in 1d, 2d or 3d; 0
 * for others. */
static uint32_t spatial_of_name(const struct byi_op *op)
{
    const size_t n = strlen(op->name);
    return n > 2 && op->name[n - 1] == 'd' && op->name[n - 2] >= '1' &&
                   op->name[n - 2] <= '3'
               ? (uint32_t)(op->name[n - 2] - '0')
               : 0;
}

/* The lists strides, padding and dilation, for n spatial axes. */
struct window_lists {
    const int64_t *strides, *padding, *dilation;
};

static enum byoc_status read_lists(const struct byi_infer *t, uint32_t n,
                                   struct window_lists *l)
{
    BYI_TRY(byi_want_list(t, "strides", n, 1, MAX_WINDOW, &l->strides));
    BYI_TRY(byi_want_list(t, "padding", 2 * n, 0, MAX_WINDOW, &l->padding));
    return byi_want_list(t, "dilation", n, 1, MAX_WINDOW, &l->dilation);
}

static struct window window_at(const struct window_lists *l, uint32_t n,
                               uint32_t i, int64_t kernel)
{
    return (struct window){
        .kernel = kernel,
        .stride = l->strides[i],
        .dilation = l->dilation[i],
        .pad = l->padding[i] + l->padding[n + i],
        .begin = l->padding[i],
    };
}

/* Check the kernel sizes, which are dims of the weights here: like attributes,
 * they must be 31-bit numbers. */
static enum byoc_status check_kernel(const struct byi_infer *t, uint32_t n,
                                     const int64_t *kernel)
{
    for (uint32_t i = 0; i < n; i++)
        if (kernel[i] == 0 || kernel[i] > MAX_WINDOW)
            return byi_rule_fail(t,
                                 "weights have %lld taps on spatial axis "
                                 "%u, expected 1 to %d",
                                 (long long)kernel[i], i, MAX_WINDOW);
    return BYOC_OK;
}

/* A convolution's operands in the plain layouts. */
struct conv {
    uint32_t n; /* spatial axes */
    int64_t groups;
    struct byi_layout data;
    int64_t x[BYI_MAX_RANK], w[BYI_MAX_RANK]; /* dims of data and weights */
};

static enum byoc_status read_conv(const struct byi_infer *t, uint32_t n,
                                  const char *kernel, struct conv *c)
{
    BYI_TRY(read_data(t, "data_layout", data_first[n], &c->data, c->x));
    BYI_TRY(read_kernel(t, kernel, c->w));
    c->n = n;
    c->groups = byi_attr_int(t->attrs, "groups");
    if (c->groups < 1 || c->groups > MAX_WINDOW)
        return byi_rule_fail(t, "groups is %lld, expected 1 to %d",
                             (long long)c->groups, MAX_WINDOW);
    return check_kernel(t, n, c->w + 2);
}

/* The same for operands of one numeric element type. */
static enum byoc_status read_alike(const struct byi_infer *t, uint32_t n,
                                   const char *kernel, struct conv *c)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "weights"));
    return read_conv(t, n, kernel, c);
}

enum byoc_status byi_infer_conv(struct byi_infer *t, uint32_t n)
{
    struct window_lists l;
    struct conv c;
    BYI_TRY(read_conv(t, n, conv_first[n], &c));
    BYI_TRY(read_lists(t, n, &l));
    const int64_t *x = c.x, *w = c.w, groups = c.groups;
    if (!BYI_IS_SYMBOL(x[1]) && !BYI_IS_SYMBOL(w[1]) &&
        (x[1] % groups || x[1] / groups != w[1]))
        return byi_rule_fail(
            t,
            "weights have %lld input channels, data has %lld in %lld groups, "
            "expected the channels of data divided by the groups",
            (long long)w[1], (long long)x[1], (long long)groups);
    if (!BYI_IS_SYMBOL(w[0]) && w[0] % groups)
        return byi_rule_fail(t,
                             "weights have %lld output channels, expected "
                             "a multiple of %lld groups",
                             (long long)w[0], (long long)groups);
    int64_t dims[5] = {x[0], w[0]};
    for (uint32_t i = 0; i < n; i++) {
        const struct window window = window_at(&l, n, i, w[2 + i]);
        BYI_TRY(window_size(t, &window, i, x[2 + i], &dims[2 + i]));
    }
    return data_result(t, data_first[n], &c.data, dims);
}

enum byoc_status byi_rule_conv(struct byi_infer *t)
{
    const uint32_t n = spatial_of_name(t->op);
    struct conv c;
    BYI_TRY(read_alike(t, n, conv_first[n], &c));
    return byi_infer_conv(t, n);
}

/* Set *out to the outputs of a transposed window, the inverse of window_size:
 * stride * (in - 1) + output padding (`extra`) + extent - padding. */
static enum byoc_status transposed_size(const struct byi_infer *t,
                                        const struct window *w, int64_t extra,
                                        uint32_t axis, int64_t in, int64_t *out)
{
    if (BYI_IS_SYMBOL(in) || BYI_IS_SYMBOL(w->kernel)) {
        const bool same = !BYI_IS_SYMBOL(w->kernel) && w->stride == 1 &&
                          (w->kernel - 1) * w->dilation + extra == w->pad;
        *out = same ? in : byi_rule_new_symbol(t);
        return BYOC_OK;
    }
    if (in <= 0)
        return byi_rule_fail(
            t, "spatial axis %u has %lld elements, expected 1 or more", axis,
            (long long)in);
    /* stride < 2^31, in <= 2^40: clamped to 2^61, so that the extent, which
     * is below 2^62, still fits beside it. */
    const int64_t limit = (int64_t)1 << 61;
    int64_t spread;
    if (__builtin_mul_overflow(w->stride, in - 1, &spread) || spread > limit)
        spread = limit;
    *out = spread + (w->kernel - 1) * w->dilation + 1 + extra - w->pad;
    if (*out >= 0)
        return BYOC_OK;
    return byi_rule_fail(t,
                         "spatial axis %u of size %lld would become %lld, "
                         "expected 0 or more; use less padding",
                         axis, (long long)in, (long long)*out);
}

enum byoc_status byi_rule_conv_transpose(struct byi_infer *t)
{
    const uint32_t n = t->op->id == BYI_OP_NN_CONV1D_TRANSPOSE   ? 1
                       : t->op->id == BYI_OP_NN_CONV2D_TRANSPOSE ? 2
                                                                 : 3;
    struct window_lists l;
    struct conv c;
    const int64_t *extra;
    BYI_TRY(read_alike(t, n, transposed_first[n], &c));
    BYI_TRY(read_lists(t, n, &l));
    BYI_TRY(byi_want_list(t, "output_padding", n, 0, MAX_WINDOW, &extra));
    const int64_t *x = c.x, *w = c.w, groups = c.groups;
    const int64_t channels = byi_dim_unify(x[1], w[0]);
    if (!byi_dims_agree(x[1], w[0]))
        return byi_rule_fail(
            t, "weights have %lld input channels, expected %lld, as data has",
            (long long)w[0], (long long)x[1]);
    if (!BYI_IS_SYMBOL(channels) && channels % groups)
        return byi_rule_fail(
            t, "data has %lld channels, expected a multiple of %lld groups",
            (long long)channels, (long long)groups);
    int64_t dims[5] = {x[0], byi_dim_mul(t, w[1], groups)};
    for (uint32_t i = 0; i < n; i++) {
        const struct window window = window_at(&l, n, i, w[2 + i]);
        BYI_TRY(
            transposed_size(t, &window, extra[i], i, x[2 + i], &dims[2 + i]));
    }
    return data_result(t, data_first[n], &c.data, dims);
}

/* Set `dims` to those of the data of a window operator with n spatial axes, in
 * the plain layout with channels first. Without an attribute `layout` the data
 * has that layout, and layout->n is 0. */
static enum byoc_status read_image(const struct byi_infer *t, uint32_t n,
                                   struct byi_layout *layout,
                                   int64_t dims[BYI_MAX_RANK])
{
    if (byi_attr_find(t->attrs, "layout"))
        return read_data(t, "layout", data_first[n], layout, dims);
    layout->n = 0;
    memcpy(dims, t->in[0]->dims, t->in[0]->rank * sizeof *dims);
    return byi_want_rank(t, 0, n + 2, "data");
}

static enum byoc_status image_result(struct byi_infer *t, uint32_t n,
                                     const struct byi_layout *layout,
                                     const int64_t *dims)
{
    if (layout->n)
        return data_result(t, data_first[n], layout, dims);
    return byi_rule_tensor(t, t->in[0]->dtype, n + 2, dims);
}

static enum byoc_status infer_pool(struct byi_infer *t)
{
    uint32_t n = spatial_of_name(t->op);
    if (n == 0)
        byi_attr_ints(t->attrs, "pool_size", &n);
    if (n < 1 || n > BYI_MAX_RANK - 2)
        return byi_rule_fail(t, "pool_size has %u entries, expected 1 to %d", n,
                             BYI_MAX_RANK - 2);
    struct window_lists l;
    struct byi_layout layout;
    const int64_t *size;
    int64_t x[BYI_MAX_RANK];
    BYI_TRY(read_image(t, n, &layout, x));
    BYI_TRY(byi_want_list(t, "pool_size", n, 1, MAX_WINDOW, &size));
    BYI_TRY(read_lists(t, n, &l));
    int64_t dims[BYI_MAX_RANK] = {x[0], x[1]};
    for (uint32_t i = 0; i < n; i++) {
        struct window window = window_at(&l, n, i, size[i]);
        window.ceil_mode = byi_attr_int(t->attrs, "ceil_mode") != 0;
        BYI_TRY(window_size(t, &window, i, x[2 + i], &dims[2 + i]));
    }
    return image_result(t, n, &layout, dims);
}

/* Check p of the p-norms: a whole number from 1 to 1000. */
static enum byoc_status check_p(const struct byi_infer *t)
{
    const int64_t p = byi_attr_int(t->attrs, "p");
    if (p >= 1 && p <= 1000)
        return BYOC_OK;
    return byi_rule_fail(t, "p is %lld, expected 1 to 1000", (long long)p);
}

enum byoc_status byi_rule_pool(struct byi_infer *t)
{
    if (t->op->id == BYI_OP_NN_LP_POOL)
        BYI_TRY(check_p(t));
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    return infer_pool(t);
}

enum byoc_status byi_rule_pool_indices(struct byi_infer *t)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    BYI_TRY(infer_pool(t));
    const struct byi_type *y = t->out;
    return byi_rule_tensors(
        t, 2,
        (struct byi_rule_field[]){{y->dtype, y->rank, y->dims},
                                  {BYOC_I64, y->rank, y->dims}});
}

enum byoc_status byi_rule_global_pool(struct byi_infer *t)
{
    const uint32_t n_named = spatial_of_name(t->op);
    struct byi_layout layout;
    int64_t dims[BYI_MAX_RANK];
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    if (n_named == 0) {
        BYI_TRY(byi_want_min_rank(t, 0, 2, "data"));
        BYI_TRY(check_p(t));
    }
    const uint32_t n = n_named ? n_named : t->in[0]->rank - 2;
    BYI_TRY(read_image(t, n, &layout, dims));
    for (uint32_t i = 0; i < n; i++)
        dims[2 + i] = 1;
    return image_result(t, n, &layout, dims);
}

/* Check the operand of depth_to_space or space_to_depth, whose layout is
 * *layout. */
static enum byoc_status want_blocks(const struct byi_infer *t, int64_t *block,
                                    struct byi_layout *layout,
                                    int64_t dims[BYI_MAX_RANK])
{
    *block = byi_attr_int(t->attrs, "block_size");
    /* the square of the block size is a divisor, and must not overflow */
    if (*block < 1 || *block > (1 << 20))
        return byi_rule_fail(t, "block_size is %lld, expected 1 to 2^20",
                             (long long)*block);
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(read_data(t, "layout", data_first[2], layout, dims));
    if (byi_layout_is_plain(layout))
        return BYOC_OK;
    return byi_rule_fail(t, "layout is %s, expected NCHW or NHWC",
                         byi_attr_string(t->attrs, "layout"));
}

/* Divide *dim, the size of axis `letter`, by `by`. */
static enum byoc_status divide_dim(const struct byi_infer *t,
                                   const struct byi_layout *layout, char letter,
                                   int64_t by, int64_t *dim)
{
    const int64_t in = *dim;
    if (BYI_IS_SYMBOL(in)) {
        *dim = by == 1 ? in : byi_rule_new_symbol(t);
        return BYOC_OK;
    }
    if (in % by)
        return byi_rule_fail(
            t, "axis %d has size %lld, expected a multiple of %lld",
            byi_layout_find(layout, letter), (long long)in, (long long)by);
    *dim = in / by;
    return BYOC_OK;
}

enum byoc_status byi_rule_depth_to_space(struct byi_infer *t)
{
    struct byi_layout layout;
    int64_t block, dims[BYI_MAX_RANK];
    BYI_TRY(byi_want_word(t, "mode", "DCR|CRD"));
    BYI_TRY(want_blocks(t, &block, &layout, dims));
    BYI_TRY(divide_dim(t, &layout, 'C', block * block, &dims[1]));
    dims[2] = byi_dim_mul(t, dims[2], block);
    dims[3] = byi_dim_mul(t, dims[3], block);
    return data_result(t, data_first[2], &layout, dims);
}

enum byoc_status byi_rule_space_to_depth(struct byi_infer *t)
{
    struct byi_layout layout;
    int64_t block, dims[BYI_MAX_RANK];
    BYI_TRY(want_blocks(t, &block, &layout, dims));
    dims[1] = byi_dim_mul(t, dims[1], block * block);
    BYI_TRY(divide_dim(t, &layout, 'H', block, &dims[2]));
    BYI_TRY(divide_dim(t, &layout, 'W', block, &dims[3]));
    return data_result(t, data_first[2], &layout, dims);
}

/* Checks that both layouts have the same axes, and that x has the layout
 * src_layout. */
enum byoc_status byi_rule_layout_transform(struct byi_infer *t)
{
    static const char *const names[] = {"src_layout", "dst_layout"};
    struct byi_layout layouts[2];
    int64_t dims[BYI_MAX_RANK];
    for (int i = 0; i < 2; i++) {
        const char *text = byi_attr_string(t->attrs, names[i]);
        const char *why = byi_layout_parse(text, &layouts[i]);
        if (why)
            return byi_rule_fail(t,
                                 "%s is %s: %s; use a layout such as NCHW, "
                                 "NHWC or NCHW16c",
                                 names[i], text, why);
    }
    BYI_TRY(want_layout(t, 0, names[0], "x", &layouts[0]));
    char why[BYI_LAYOUT_WHY];
    if (!byi_layout_dims(&layouts[0], &layouts[1], t->in[0]->dims, dims, why))
        return byi_rule_fail(t, "%s to %s: %s",
                             byi_attr_string(t->attrs, names[0]),
                             byi_attr_string(t->attrs, names[1]), why);
    return byi_rule_tensor(t, t->in[0]->dtype, layouts[1].n, dims);
}

/* --- normalisation ------------------------------------------------------ */

enum byoc_status byi_rule_batch_norm(struct byi_infer *t)
{
    static const char *const names[] = {"x", "gamma", "beta", "mean", "var"};
    const struct byi_type *x = t->in[0];
    uint32_t axis = 0;
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    for (uint32_t i = 1; i < 5; i++)
        BYI_TRY(byi_want_channels(t, i, x->dims[axis], names[i]));
    return byi_rule_result(t, t->in[0]);
}

/* gamma and beta have the shape of x from axis on. */
enum byoc_status byi_rule_layer_norm(struct byi_infer *t)
{
    static const char *const names[] = {"x", "gamma", "beta"};
    const struct byi_type *x = t->in[0];
    uint32_t axis = 0;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    for (uint32_t i = 1; i < t->n_in; i++) {
        BYI_TRY(byi_want_same_dtype(t, i, 0, names[i]));
        BYI_TRY(byi_want_rank(t, i, x->rank - axis, names[i]));
        for (uint32_t k = axis; k < x->rank; k++)
            if (!byi_dims_agree(t->in[i]->dims[k - axis], x->dims[k]))
                return byi_rule_fail(t,
                                     "%s has %lld elements on axis %u, "
                                     "expected %lld, as x has on axis %u",
                                     names[i],
                                     (long long)t->in[i]->dims[k - axis],
                                     k - axis, (long long)x->dims[k], k);
    }
    return byi_rule_result(t, x);
}

/* instance and group normalisation: gamma and beta are per channel. */
enum byoc_status byi_rule_channel_same(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    /* first, since an importer may have made gamma and beta from the groups */
    if (t->op->id == BYI_OP_NN_GROUP_NORM) {
        const int64_t groups = byi_attr_int(t->attrs, "num_groups");
        if (groups < 1)
            return byi_rule_fail(t, "num_groups is %lld, expected 1 or more",
                                 (long long)groups);
        if (x->dims[1] > 0 && x->dims[1] % groups)
            return byi_rule_fail(
                t, "num_groups is %lld, expected a divisor of %lld channels",
                (long long)groups, (long long)x->dims[1]);
    }
    BYI_TRY(byi_want_channels(t, 1, x->dims[1], "gamma"));
    BYI_TRY(byi_want_channels(t, 2, x->dims[1], "beta"));
    return byi_rule_result(t, x);
}

/* --- padding ------------------------------------------------------------ */

/* The size of a padded dim. Negative padding crops, before the other end is
 * padded. */
static enum byoc_status pad_dim(const struct byi_infer *t, const char *mode,
                                uint32_t axis, int64_t begin, int64_t end,
                                int64_t *dim)
{
    const int64_t in = *dim;
    if (begin < -BYI_MAX_ELEMENTS || begin > BYI_MAX_ELEMENTS ||
        end < -BYI_MAX_ELEMENTS || end > BYI_MAX_ELEMENTS)
        return byi_rule_fail(
            t, "padding of %lld and %lld on axis %u, expected -2^40 to 2^40",
            (long long)begin, (long long)end, axis);
    if (begin == 0 && end == 0)
        return BYOC_OK;
    if (BYI_IS_SYMBOL(in)) {
        *dim = byi_rule_new_symbol(t);
        return BYOC_OK;
    }
    *dim = in + begin + end;
    if (*dim < 0 || (begin < 0 && -begin > in) || (end < 0 && -end > in))
        return byi_rule_fail(
            t,
            "padding of %lld and %lld crops more than the %lld elements of "
            "axis %u, expected at most as many",
            (long long)begin, (long long)end, (long long)in, axis);
    const int64_t larger = begin > end ? begin : end;
    const int64_t remaining =
        in + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
    if (larger > 0 && ((mode[0] == 'r' && larger >= remaining) ||
                       (mode[0] != 'c' && remaining == 0)))
        return byi_rule_fail(t,
                             "padding of %lld in mode %s needs more than the "
                             "%lld elements of axis %u, expected less padding",
                             (long long)larger, mode, (long long)remaining,
                             axis);
    return BYOC_OK;
}

enum byoc_status byi_rule_pad(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const uint32_t rank = x->rank;
    int64_t dims[BYI_MAX_RANK], pads[2 * BYI_MAX_RANK];
    uint32_t n = 0;
    BYI_TRY(byi_want_ints(t, 1, 2 * (int64_t)rank, "pads"));
    BYI_TRY(byi_want_same_dtype(t, 2, 0, "value"));
    BYI_TRY(byi_want_scalar(t, 2, "value"));
    BYI_TRY(byi_want_word(t, "mode", "constant|edge|reflect|wrap"));
    const char *mode = byi_attr_string(t->attrs, "mode");
    const bool known =
        byi_known_ints(t, 1, 2 * BYI_MAX_RANK, pads, &n) && n == 2 * rank;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = known ? x->dims[i] : byi_rule_new_symbol(t);
        if (known)
            BYI_TRY(pad_dim(t, mode, i, pads[i], pads[rank + i], &dims[i]));
    }
    return byi_rule_tensor(t, x->dtype, rank, dims);
}
