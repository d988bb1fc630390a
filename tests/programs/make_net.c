/* SPDX-License-Identifier: Apache-2.0 */
/* make_net.c: parts of networks: convolutions with epilogues, several
 * convolutions of one input, and norms, each as one operator or as many. */
#include "make.h"

#include <math.h>

/* Find a float image with a known number of channels. Returns false if there is
 * none. */
static bool find_image(struct maker *k, struct scope *s,
                       struct bounded_value *x, int64_t *channels)
{
    const struct bounded_value *image = make_find(k, s, make_is_image, NULL);
    if (!image)
        return false;
    *x = *image;
    *channels = make_type_of(s, x->id)->dims[1];
    return !BYI_IS_SYMBOL(*channels) && *channels > 0 && *channels <= 8;
}

static int64_t channels_of(const struct scope *s, byi_id x)
{
    return make_type_of(s, x)->dims[1];
}

/* --- after a convolution ----------------------------------------- */

static byi_id channel_const(struct maker *k, struct scope *s, int64_t channels)
{
    const int64_t dims[] = {1, channels, 1, 1};
    const uint32_t skip = make_pick(k, 2);
    return make_const(k, s, BYOC_F32, 4 - skip, dims + skip);
}

static byi_id add_bias(struct maker *k, struct scope *s, byi_id x)
{
    const byi_id c = channel_const(k, s, channels_of(s, x));
    const bool swap = make_pick(k, 3) == 0;
    return make_call(k, s, BYI_OP_ADD, (byi_id[]){swap ? c : x, swap ? x : c},
                     2, NULL, 0, make_bound(s, x) + 6.0);
}

static byi_id add_scale(struct maker *k, struct scope *s, byi_id x)
{
    const byi_id c = channel_const(k, s, channels_of(s, x));
    return make_call(k, s, BYI_OP_MULTIPLY, (byi_id[]){x, c}, 2, NULL, 0,
                     make_bound(s, x) * 6.0);
}

static byi_id add_relu(struct maker *k, struct scope *s, byi_id x)
{
    return make_call(k, s, BYI_OP_NN_RELU, &x, 1, NULL, 0, make_bound(s, x));
}

static byi_id add_batch_norm(struct maker *k, struct scope *s, byi_id x)
{
    static const float variances[] = {0.5f, 2.0f, 1.0f, 0.25f};
    const int64_t channels = channels_of(s, x);
    float var[8];
    const struct byi_type *type =
        byi_type_tensor(k->m->arena, BYOC_F32, 1, &channels);
    byi_id args[5] = {x};
    for (int64_t i = 0; i < channels; i++)
        var[i] = variances[make_pick(k, 4)];
    for (uint32_t i = 1; i < 4; i++)
        args[i] = make_const(k, s, BYOC_F32, 1, &channels);
    args[4] =
        byi_add_const(k->m, s->f, byi_const_add(k->m, type, var, false), NULL);
    return make_call(k, s, BYI_OP_NN_BATCH_NORM, args, 5, NULL, 0,
                     make_bound(s, x) * 12.0 + 12.0);
}

static byi_id add_pool(struct maker *k, struct scope *s, byi_id x)
{
    static const enum byi_op_id ops[] = {BYI_OP_NN_MAX_POOL2D,
                                         BYI_OP_NN_AVG_POOL2D};
    static const int64_t two[] = {2, 2}, three[] = {3, 3}, one[] = {1, 1, 1, 1};
    const bool same = make_pick(k, 2); /* 3 x 3 windows that keep the size */
    const struct byi_attr attrs[] = {
        {.name = "pool_size",
         .kind = BYI_ATTR_INTS,
         .n = 2,
         .ints = same ? three : two},
        {.name = "strides",
         .kind = BYI_ATTR_INTS,
         .n = 2,
         .ints = same ? one : two},
        {.name = "padding", .kind = BYI_ATTR_INTS, .n = 4, .ints = one}};
    if (make_pick(k, 4) == 0)
        return make_call(k, s, BYI_OP_NN_GLOBAL_AVG_POOL2D, &x, 1, NULL, 0,
                         make_bound(s, x));
    const enum byi_op_id op = ops[make_pick(k, 2)];
    return make_call(k, s, op, &x, 1, attrs, same ? 3 : 2, make_bound(s, x));
}

static void add_epilogue(struct maker *k, struct scope *s, byi_id x)
{
    static byi_id (*const steps[])(struct maker *, struct scope *, byi_id) = {
        add_bias, add_bias,       add_scale,      add_relu,
        add_relu, add_batch_norm, add_batch_norm, add_pool};
    for (uint32_t n = make_pick(k, 4); n > 0 && x != BYI_NO_ID; n--)
        if (channels_of(s, x) <= 8)
            x = steps[make_pick(k, BYI_COUNT(steps))](k, s, x);
}

/* --- convolutions ------------------------------------------------ */

/* A convolution to add: channels, size of the kernel, and attributes. */
struct conv {
    enum byi_op_id op;
    int64_t in, out, kernel, groups;
    int64_t strides[2], padding[4];
};

static struct conv pick_conv(struct maker *k, int64_t channels)
{
    struct conv c = {.op = BYI_OP_NN_CONV2D, .in = channels, .groups = 1};
    c.out = 1 + make_pick(k, 4);
    c.kernel = make_pick(k, 2) ? 1 : 3;
    c.strides[0] = c.strides[1] = make_pick(k, 4) ? 1 : 2;
    if (c.kernel == 3 && make_pick(k, 3))
        for (uint32_t i = 0; i < 4; i++)
            c.padding[i] = 1;
    if (make_pick(k, 5) == 0)
        c.op = BYI_OP_NN_CONV2D_TRANSPOSE;
    if (make_pick(k, 4) == 0)
        c.groups = c.out = channels; /* depthwise */
    return c;
}

static byi_id add_conv(struct maker *k, struct scope *s, const struct conv *c,
                       byi_id x)
{
    const bool transposed = c->op == BYI_OP_NN_CONV2D_TRANSPOSE;
    const int64_t dims[] = {transposed ? c->in : c->out,
                            (transposed ? c->out : c->in) / c->groups,
                            c->kernel, c->kernel};
    const struct byi_attr attrs[] = {
        {.name = "strides", .kind = BYI_ATTR_INTS, .n = 2, .ints = c->strides},
        {.name = "padding", .kind = BYI_ATTR_INTS, .n = 4, .ints = c->padding},
        {.name = "groups", .kind = BYI_ATTR_INT, .i = c->groups}};
    const byi_id w = make_const(k, s, BYOC_F32, 4, dims);
    const double terms = (double)(dims[1] * c->kernel * c->kernel);
    return make_call(k, s, c->op, (byi_id[]){x, w}, 2, attrs, 3,
                     make_bound(s, x) * sqrt(terms));
}

static void add_conv_block(struct maker *k, struct scope *s)
{
    struct bounded_value x;
    int64_t channels;
    if (!find_image(k, s, &x, &channels))
        return;
    if (make_pick(k, 4) == 0) /* a scale that FoldScaleAxis can fold */
        x.id = add_scale(k, s, x.id);
    if (x.id == BYI_NO_ID)
        return;
    const struct conv c = pick_conv(k, channels);
    add_epilogue(k, s, add_conv(k, s, &c, x.id));
}

/* Several convolutions of one input, of the same kind, as CombineParallelConv2D
 * needs. */
static void add_parallel_convs(struct maker *k, struct scope *s)
{
    struct bounded_value x;
    int64_t channels;
    if (!find_image(k, s, &x, &channels))
        return;
    struct conv c = pick_conv(k, channels);
    const uint32_t n = 2 + make_pick(k, 3);
    const bool bias = make_pick(k, 2), relu = make_pick(k, 2);
    for (uint32_t i = 0; i < n; i++) {
        byi_id y = add_conv(k, s, &c, x.id);
        if (bias && y != BYI_NO_ID)
            y = add_bias(k, s, y);
        if (relu && y != BYI_NO_ID)
            y = add_relu(k, s, y);
        if (c.groups == 1)
            c.out = 1 + make_pick(k, 4);
    }
}

/* conv, conv, add: a block of a residual network */
static void add_residual(struct maker *k, struct scope *s)
{
    struct bounded_value x;
    int64_t channels;
    if (!find_image(k, s, &x, &channels))
        return;
    struct conv c = {.op = BYI_OP_NN_CONV2D,
                     .in = channels,
                     .out = channels,
                     .kernel = 1,
                     .groups = 1,
                     .strides = {1, 1}};
    byi_id y = add_conv(k, s, &c, x.id);
    if (y != BYI_NO_ID)
        y = add_batch_norm(k, s, y);
    if (y != BYI_NO_ID)
        y = add_relu(k, s, y);
    if (y != BYI_NO_ID)
        y = add_conv(k, s, &c, y);
    if (y != BYI_NO_ID)
        y = make_call(k, s, BYI_OP_ADD, (byi_id[]){y, x.id}, 2, NULL, 0,
                      make_bound(s, y) + x.bound);
    if (y != BYI_NO_ID && make_pick(k, 2))
        add_relu(k, s, y);
}

static void add_image_step(struct maker *k, struct scope *s)
{
    struct bounded_value x;
    int64_t channels;
    if (find_image(k, s, &x, &channels))
        add_epilogue(k, s, x.id);
}

/* --- matrices ---------------------------------------------------- */

static bool is_matrix(const struct byi_type *type, const void *unused)
{
    return make_is_float32(type, unused) && type->rank == 2 &&
           !BYI_IS_SYMBOL(type->dims[1]);
}

/* Add one dense layer or several, sometimes with a scale, a bias and relu. */
static void add_dense(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, is_matrix, NULL);
    if (!found)
        return;
    const struct bounded_value x = *found;
    const int64_t depth = make_type_of(s, x.id)->dims[1];
    const uint32_t n = 1 + make_pick(k, 4), same = make_pick(k, 2);
    int64_t out = 2 + make_pick(k, 3);
    for (uint32_t i = 0; i < n && depth <= 32; i++) {
        const int64_t dims[] = {out, depth};
        const byi_id w = make_const(k, s, BYOC_F32, 2, dims);
        byi_id y = make_call(k, s, BYI_OP_NN_DENSE, (byi_id[]){x.id, w}, 2,
                             NULL, 0, x.bound * sqrt((double)depth));
        const byi_id c = make_const(k, s, BYOC_F32, 1, &out);
        const enum byi_op_id op =
            make_pick(k, 2) ? BYI_OP_ADD : BYI_OP_MULTIPLY;
        y = make_call(k, s, op, (byi_id[]){y, c}, 2, NULL, 0, 30.0);
        if (y != BYI_NO_ID && make_pick(k, 2))
            add_relu(k, s, y);
        out = same ? out : 2 + make_pick(k, 3);
    }
}

static void add_matmul(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    if (!found)
        return;
    const struct bounded_value x = *found;
    const int64_t dims[] = {4, 4};
    const struct byi_attr transpose = {
        .name = "transpose_b", .kind = BYI_ATTR_BOOL, .i = make_pick(k, 2)};
    const byi_id w = make_const(k, s, BYOC_F32, 2, dims);
    make_call(k, s, BYI_OP_NN_MATMUL, (byi_id[]){x.id, w}, 2, &transpose, 1,
              x.bound * 4.0);
}

static void add_softmax(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    if (!found)
        return;
    const byi_id x = found->id;
    make_call(k, s, BYI_OP_NN_SOFTMAX, &x, 1, NULL, 0, 1.0);
}

/* --- in many pieces, for Recompose ------------------------------- */

static byi_id unary(struct maker *k, struct scope *s, enum byi_op_id op,
                    byi_id a, double bound)
{
    return make_call(k, s, op, &a, 1, NULL, 0, bound);
}

static byi_id binary(struct maker *k, struct scope *s, enum byi_op_id op,
                     byi_id a, byi_id b, double bound)
{
    return make_call(k, s, op, (byi_id[]){a, b}, 2, NULL, 0, bound);
}

static byi_id number(struct maker *k, struct scope *s, double value)
{
    return make_number(k, s, BYOC_F32, value);
}

/* x / 2 (1 + erf(x / sqrt 2)) */
static void add_gelu(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    if (!found)
        return;
    const struct bounded_value x = *found;
    byi_id y =
        binary(k, s, BYI_OP_DIVIDE, x.id, number(k, s, 1.41421356), x.bound);
    y = unary(k, s, BYI_OP_ERF, y, 1.0);
    y = binary(k, s, BYI_OP_ADD, y, number(k, s, 1.0), 2.0);
    const bool half_last = make_pick(k, 2);
    const byi_id half = number(k, s, 0.5);
    y = binary(k, s, BYI_OP_MULTIPLY, y, half_last ? x.id : half, x.bound);
    binary(k, s, BYI_OP_MULTIPLY, y, half_last ? half : x.id, x.bound);
}

/* x clip(x + 3, 0, 6) / 6 */
static void add_hard_swish(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    if (!found)
        return;
    const struct bounded_value x = *found;
    const struct byi_attr bounds[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT, .f = 0.0},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT, .f = 6.0}};
    byi_id y = binary(k, s, BYI_OP_ADD, x.id, number(k, s, 3.0), x.bound + 3.0);
    y = make_call(k, s, BYI_OP_CLIP, &y, 1, bounds, 2, 6.0);
    if (make_pick(k, 2))
        y = binary(k, s, BYI_OP_DIVIDE, y, number(k, s, 6.0), 1.0);
    binary(k, s, BYI_OP_MULTIPLY, x.id, y, x.bound * 6.0);
}

/* (x - mean) / sqrt(mean (x - mean)^2 + epsilon) gamma + beta */
static void add_layer_norm(struct maker *k, struct scope *s)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    static const int64_t last[] = {-1};
    if (!found || make_type_of(s, found->id)->rank == 0)
        return;
    const struct bounded_value x = *found;
    const struct byi_type *type = make_type_of(s, x.id);
    const int64_t dim = type->dims[type->rank - 1];
    const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = 1, .ints = last};
    if (BYI_IS_SYMBOL(dim) || dim < 2)
        return;
    byi_id y = make_call(k, s, BYI_OP_MEAN, &x.id, 1, &axis, 1, x.bound);
    const byi_id d = binary(k, s, BYI_OP_SUBTRACT, x.id, y, 2.0 * x.bound);
    y = make_pick(k, 2)
            ? binary(k, s, BYI_OP_MULTIPLY, d, d, 50.0)
            : binary(k, s, BYI_OP_POWER, d, number(k, s, 2.0), 50.0);
    y = y == BYI_NO_ID ? y
                       : make_call(k, s, BYI_OP_MEAN, &y, 1, &axis, 1, 50.0);
    y = binary(k, s, BYI_OP_ADD, y, number(k, s, 1e-2), 50.0);
    y = binary(k, s, BYI_OP_DIVIDE, d, unary(k, s, BYI_OP_SQRT, y, 8.0), 10.0);
    y = binary(k, s, BYI_OP_MULTIPLY, y, make_const(k, s, BYOC_F32, 1, &dim),
               30.0);
    binary(k, s, BYI_OP_ADD, y, make_const(k, s, BYOC_F32, 1, &dim), 36.0);
}

void (*const make_nets[])(struct maker *, struct scope *) = {
    add_conv_block,     add_conv_block, add_conv_block, add_parallel_convs,
    add_parallel_convs, add_residual,   add_image_step, add_image_step,
    add_dense,          add_dense,      add_matmul,     add_softmax,
    add_gelu,           add_hard_swish, add_layer_norm};
const uint32_t n_make_nets = BYI_COUNT(make_nets);
