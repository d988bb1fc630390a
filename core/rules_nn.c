/* rules_nn.c: type rules of convolution, pooling, normalisation and padding.
 * Data is (N, C, spatial...). A spatial dim that is a symbol stays that symbol
 * where the window provably keeps the size, and is fresh otherwise.
 */
#include "rules.h"

#include <string.h>

/* A window sliding along one axis. */
struct window {
    int64_t kernel; /* taps; may be a symbol */
    int64_t stride, dilation;
    int64_t pad; /* begin and end together */
    int64_t begin;
    bool ceil_mode;
};

/* Attributes of windows are kept to 31 bits, so that the sums and products of
 * two of them fit in 64. */
#define MAX_WINDOW INT32_MAX

/* Outputs along one axis of size `in`; -1 when the window does not fit. */
static int64_t count_windows(const struct window *w, int64_t in)
{
    const int64_t extent = (w->kernel - 1) * w->dilation + 1;
    const int64_t span = in + w->pad - extent;
    if (span < 0)
        return -1;
    int64_t n = span / w->stride + 1;
    if (!w->ceil_mode)
        return n;
    /* The last window must start on data or on the padding before it (ONNX 19,
     * PyTorch): one that starts in the padding after it is not counted. */
    n += span % w->stride != 0;
    return (n - 1) * w->stride >= in + w->begin ? n - 1 : n;
}

static enum byoc_status slide(const struct byi_infer *t, const struct window *w,
                              uint32_t axis, int64_t in, int64_t *out)
{
    if (BYI_IS_SYMBOL(in) || BYI_IS_SYMBOL(w->kernel)) {
        const bool same = !BYI_IS_SYMBOL(w->kernel) && w->stride == 1 &&
                          (w->kernel - 1) * w->dilation == w->pad;
        *out = same ? in : byi_rule_fresh(t);
        return BYOC_OK;
    }
    *out = count_windows(w, in);
    if (*out >= 0)
        return BYOC_OK;
    return byi_rule_fail(
        t,
        "a window of %lld with dilation %lld does not fit in %lld plus "
        "padding %lld on spatial axis %u",
        (long long)w->kernel, (long long)w->dilation, (long long)in,
        (long long)w->pad, axis);
}

/* The lists strides, padding and dilation, for n spatial axes. */
struct lists {
    const int64_t *strides, *padding, *dilation;
};

static enum byoc_status read_lists(const struct byi_infer *t, uint32_t n,
                                   struct lists *l)
{
    BYI_TRY(byi_want_list(t, "strides", n, 1, MAX_WINDOW, &l->strides));
    BYI_TRY(byi_want_list(t, "padding", 2 * n, 0, MAX_WINDOW, &l->padding));
    return byi_want_list(t, "dilation", n, 1, MAX_WINDOW, &l->dilation);
}

static struct window window_at(const struct lists *l, uint32_t n, uint32_t i,
                               int64_t kernel)
{
    return (struct window){
        .kernel = kernel,
        .stride = l->strides[i],
        .dilation = l->dilation[i],
        .pad = l->padding[i] + l->padding[n + i],
        .begin = l->padding[i],
    };
}

/* Kernel sizes come from weights here: they must be 31-bit numbers too. */
static enum byoc_status check_kernel(const struct byi_infer *t, uint32_t n)
{
    const int64_t *kernel = t->in[1]->dims + 2;
    for (uint32_t i = 0; i < n; i++)
        if (kernel[i] == 0 || kernel[i] > MAX_WINDOW)
            return byi_rule_fail(t,
                                 "weights have %lld taps on spatial axis "
                                 "%u, expected 1 to %d",
                                 (long long)kernel[i], i, MAX_WINDOW);
    return BYOC_OK;
}

static enum byoc_status check_conv(const struct byi_infer *t, uint32_t n,
                                   int64_t *groups)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "weights"));
    BYI_TRY(byi_want_rank(t, 0, n + 2, "data"));
    BYI_TRY(byi_want_rank(t, 1, n + 2, "weights"));
    *groups = byi_attr_int(t->attrs, "groups");
    if (*groups < 1 || *groups > MAX_WINDOW)
        return byi_rule_fail(t, "groups is %lld, expected 1 to %d",
                             (long long)*groups, MAX_WINDOW);
    return check_kernel(t, n);
}

enum byoc_status byi_rule_conv(struct byi_infer *t, const struct byi_type **out)
{
    const uint32_t n = t->op->id == BYI_OP_NN_CONV1D   ? 1
                       : t->op->id == BYI_OP_NN_CONV2D ? 2
                                                       : 3;
    struct lists l;
    int64_t groups;
    BYI_TRY(check_conv(t, n, &groups));
    BYI_TRY(read_lists(t, n, &l));
    const int64_t *x = t->in[0]->dims, *w = t->in[1]->dims;
    if (!BYI_IS_SYMBOL(x[1]) && !BYI_IS_SYMBOL(w[1]) &&
        (x[1] % groups || x[1] / groups != w[1]))
        return byi_rule_fail(t,
                             "weights have %lld input channels, data has "
                             "%lld in %lld groups",
                             (long long)w[1], (long long)x[1],
                             (long long)groups);
    if (!BYI_IS_SYMBOL(w[0]) && w[0] % groups)
        return byi_rule_fail(t,
                             "weights have %lld output channels, expected "
                             "a multiple of %lld groups",
                             (long long)w[0], (long long)groups);
    int64_t dims[5] = {x[0], w[0]};
    for (uint32_t i = 0; i < n; i++) {
        const struct window window = window_at(&l, n, i, w[2 + i]);
        BYI_TRY(slide(t, &window, i, x[2 + i], &dims[2 + i]));
    }
    return byi_rule_tensor(t, t->in[0]->dtype, n + 2, dims, out);
}

/* The size a transposed window gives from `in`; grows back what slide shrank:
 * stride (in - 1) + output padding + extent - padding. */
static enum byoc_status unslide(const struct byi_infer *t,
                                const struct window *w, int64_t extra,
                                uint32_t axis, int64_t in, int64_t *out)
{
    if (BYI_IS_SYMBOL(in) || BYI_IS_SYMBOL(w->kernel)) {
        const bool same = !BYI_IS_SYMBOL(w->kernel) && w->stride == 1 &&
                          (w->kernel - 1) * w->dilation + extra == w->pad;
        *out = same ? in : byi_rule_fresh(t);
        return BYOC_OK;
    }
    /* stride < 2^31, in <= 2^40: clamped to 2^61, so that the extent, which
     * is below 2^62, still fits beside it. */
    const int64_t most = (int64_t)1 << 61;
    int64_t grown;
    if (__builtin_mul_overflow(w->stride, in - 1, &grown) || grown > most)
        grown = most;
    *out = grown + (w->kernel - 1) * w->dilation + 1 + extra - w->pad;
    if (in > 0 && *out >= 0)
        return BYOC_OK;
    return byi_rule_fail(t,
                         "spatial axis %u of size %lld would become %lld, "
                         "use less padding",
                         axis, (long long)in, (long long)*out);
}

enum byoc_status byi_rule_deconv(struct byi_infer *t,
                                 const struct byi_type **out)
{
    const uint32_t n = t->op->id == BYI_OP_NN_CONV1D_TRANSPOSE   ? 1
                       : t->op->id == BYI_OP_NN_CONV2D_TRANSPOSE ? 2
                                                                 : 3;
    struct lists l;
    const int64_t *extra;
    int64_t groups;
    BYI_TRY(check_conv(t, n, &groups));
    BYI_TRY(read_lists(t, n, &l));
    BYI_TRY(byi_want_list(t, "output_padding", n, 0, MAX_WINDOW, &extra));
    const int64_t *x = t->in[0]->dims, *w = t->in[1]->dims;
    const int64_t channels = byi_dim_unify(x[1], w[0]);
    if (!byi_dims_agree(x[1], w[0]) ||
        (!BYI_IS_SYMBOL(channels) && channels % groups))
        return byi_rule_fail(t,
                             "weights have %lld input channels, data has "
                             "%lld in %lld groups",
                             (long long)w[0], (long long)x[1],
                             (long long)groups);
    int64_t dims[5] = {x[0], byi_dim_mul(t, w[1], groups)};
    for (uint32_t i = 0; i < n; i++) {
        const struct window window = window_at(&l, n, i, w[2 + i]);
        BYI_TRY(unslide(t, &window, extra[i], i, x[2 + i], &dims[2 + i]));
    }
    return byi_rule_tensor(t, t->in[0]->dtype, n + 2, dims, out);
}

/* Spatial axes of an operator whose name ends in 1d, 2d, 3d; 0 for others. */
static uint32_t spatial_of_name(const struct byi_op *op)
{
    const size_t n = strlen(op->name);
    return n > 2 && op->name[n - 1] == 'd' && op->name[n - 2] >= '1' &&
                   op->name[n - 2] <= '3'
               ? (uint32_t)(op->name[n - 2] - '0')
               : 0;
}

static enum byoc_status pool(struct byi_infer *t, const struct byi_type **out)
{
    const struct byi_type *x = t->in[0];
    uint32_t n = spatial_of_name(t->op);
    if (n == 0)
        byi_attr_ints(t->attrs, "pool_size", &n);
    if (n < 1 || n > BYI_MAX_RANK - 2)
        return byi_rule_fail(t, "pool_size has %u entries, expected 1 to %d", n,
                             BYI_MAX_RANK - 2);
    struct lists l;
    const int64_t *size;
    BYI_TRY(byi_want_rank(t, 0, n + 2, "data"));
    BYI_TRY(byi_want_list(t, "pool_size", n, 1, MAX_WINDOW, &size));
    BYI_TRY(read_lists(t, n, &l));
    int64_t dims[BYI_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (uint32_t i = 0; i < n; i++) {
        struct window window = window_at(&l, n, i, size[i]);
        window.ceil_mode = byi_attr_int(t->attrs, "ceil_mode") != 0;
        BYI_TRY(slide(t, &window, i, x->dims[2 + i], &dims[2 + i]));
    }
    return byi_rule_tensor(t, x->dtype, n + 2, dims, out);
}

/* p of the p-norms: a whole number from 1. */
static enum byoc_status check_p(const struct byi_infer *t)
{
    const int64_t p = byi_attr_int(t->attrs, "p");
    if (p >= 1 && p <= 1000)
        return BYOC_OK;
    return byi_rule_fail(t, "p is %lld, expected 1 to 1000", (long long)p);
}

enum byoc_status byi_rule_pool(struct byi_infer *t, const struct byi_type **out)
{
    if (t->op->id == BYI_OP_NN_LP_POOL)
        BYI_TRY(check_p(t));
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    return pool(t, out);
}

enum byoc_status byi_rule_pool_indices(struct byi_infer *t,
                                       const struct byi_type **out)
{
    const struct byi_type *fields[2];
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    BYI_TRY(pool(t, &fields[0]));
    fields[1] =
        byi_type_tensor(t->arena, BYOC_I64, fields[0]->rank, fields[0]->dims);
    *out = byi_type_tuple(t->arena, 2, fields);
    return BYOC_OK;
}

enum byoc_status byi_rule_global_pool(struct byi_infer *t,
                                      const struct byi_type **out)
{
    const struct byi_type *x = t->in[0];
    const uint32_t n = spatial_of_name(t->op);
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    if (n > 0) {
        BYI_TRY(byi_want_rank(t, 0, n + 2, "data"));
    } else {
        BYI_TRY(byi_want_min_rank(t, 0, 2, "data"));
        BYI_TRY(check_p(t));
    }
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : 1;
    return byi_rule_tensor(t, x->dtype, x->rank, dims, out);
}

/* --- normalisation ------------------------------------------------------ */

enum byoc_status byi_rule_batch_norm(struct byi_infer *t,
                                     const struct byi_type **out)
{
    static const char *const names[] = {"x", "gamma", "beta", "mean", "var"};
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "x"));
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    for (uint32_t i = 1; i < 5; i++)
        BYI_TRY(byi_want_channels(t, i, t->in[0]->dims[1], names[i]));
    *out = t->in[0];
    return BYOC_OK;
}

/* gamma and beta have the shape of x from axis on. */
enum byoc_status byi_rule_layer_norm(struct byi_infer *t,
                                     const struct byi_type **out)
{
    static const char *const names[] = {"x", "gamma", "beta"};
    const struct byi_type *x = t->in[0];
    uint32_t axis = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "x"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    for (uint32_t i = 1; i < t->n_in; i++) {
        BYI_TRY(byi_want_same_dtype(t, i, 0, names[i]));
        BYI_TRY(byi_want_rank(t, i, x->rank - axis, names[i]));
        for (uint32_t k = axis; k < x->rank; k++)
            if (!byi_dims_agree(t->in[i]->dims[k - axis], x->dims[k]))
                return byi_rule_fail(t,
                                     "%s has %lld elements on axis %u, x "
                                     "has %lld on axis %u",
                                     names[i],
                                     (long long)t->in[i]->dims[k - axis],
                                     k - axis, (long long)x->dims[k], k);
    }
    *out = x;
    return BYOC_OK;
}

/* instance and group normalisation: gamma and beta are per channel. */
enum byoc_status byi_rule_channel_same(struct byi_infer *t,
                                       const struct byi_type **out)
{
    const struct byi_type *x = t->in[0];
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "x"));
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    BYI_TRY(byi_want_channels(t, 1, x->dims[1], "gamma"));
    BYI_TRY(byi_want_channels(t, 2, x->dims[1], "beta"));
    if (t->op->id == BYI_OP_NN_GROUP_NORM) {
        const int64_t groups = byi_attr_int(t->attrs, "num_groups");
        if (groups < 1 || (x->dims[1] > 0 && x->dims[1] % groups))
            return byi_rule_fail(t,
                                 "num_groups is %lld, expected a divisor "
                                 "of %lld channels",
                                 (long long)groups, (long long)x->dims[1]);
    }
    *out = x;
    return BYOC_OK;
}

/* --- padding ------------------------------------------------------------ */

/* One padded dim. Negative padding crops. */
static enum byoc_status pad_dim(const struct byi_infer *t, const char *mode,
                                uint32_t axis, int64_t begin, int64_t end,
                                int64_t *dim)
{
    const int64_t in = *dim;
    if (begin < -BYI_MAX_ELEMENTS || begin > BYI_MAX_ELEMENTS ||
        end < -BYI_MAX_ELEMENTS || end > BYI_MAX_ELEMENTS)
        return byi_rule_fail(t,
                             "padding of %lld and %lld on axis %u is out "
                             "of range, expected at most 2^40",
                             (long long)begin, (long long)end, axis);
    if (begin == 0 && end == 0)
        return BYOC_OK;
    if (BYI_IS_SYMBOL(in)) {
        *dim = byi_rule_fresh(t);
        return BYOC_OK;
    }
    *dim = in + begin + end;
    if (*dim < 0 || (begin < 0 && -begin > in) || (end < 0 && -end > in))
        return byi_rule_fail(t,
                             "padding of %lld and %lld crops more than the "
                             "%lld elements of axis %u",
                             (long long)begin, (long long)end, (long long)in,
                             axis);
    const int64_t most = begin > end ? begin : end;
    if (most > 0 &&
        ((mode[0] == 'r' && most >= in) || (mode[0] == 'e' && in == 0)))
        return byi_rule_fail(t,
                             "padding of %lld in mode %s needs more than "
                             "the %lld elements of axis %u",
                             (long long)most, mode, (long long)in, axis);
    return BYOC_OK;
}

enum byoc_status byi_rule_pad(struct byi_infer *t, const struct byi_type **out)
{
    const struct byi_type *x = t->in[0];
    const uint32_t rank = x->rank;
    int64_t dims[BYI_MAX_RANK], pads[2 * BYI_MAX_RANK];
    uint32_t n = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_ints(t, 1, 2 * (int64_t)rank, "pads"));
    BYI_TRY(byi_want_same_dtype(t, 2, 0, "value"));
    BYI_TRY(byi_want_scalar(t, 2, "value"));
    BYI_TRY(byi_want_word(t, "mode", "constant|edge|reflect"));
    const char *mode = byi_attr_string(t->attrs, "mode");
    const bool known =
        byi_known_ints(t, 1, 2 * BYI_MAX_RANK, pads, &n) && n == 2 * rank;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = known ? x->dims[i] : byi_rule_fresh(t);
        if (known)
            BYI_TRY(pad_dim(t, mode, i, pads[i], pads[rank + i], &dims[i]));
    }
    return byi_rule_tensor(t, x->dtype, rank, dims, out);
}
