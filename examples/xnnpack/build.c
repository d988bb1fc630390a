/* SPDX-License-Identifier: Apache-2.0 */
/* build.c: compiles a region to a program. Images that XNNPACK's operators
 * compute are channels-last, for any layout of the model. If a reader needs a
 * tensor in the other layout, the program converts it once, unless both layouts
 * are the same memory. Constants are converted when the program is built.
 */
#include "xnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The program that is being built. */
struct build {
    const struct byoc_host *host;
    const struct byoc_graph *g;
    struct program *p;
    /* for each value and layout: its tensor, or NONE */
    uint32_t (*tensors)[N_LAYOUTS];
    const struct byoc_graph_kernel *kernel; /* the current one; or NULL */
    enum byoc_fail_code code;               /* of the failure; 0: none */
    const char *why;
};

/* Record why the region cannot be built, unless an earlier reason is known.
 * Returns 0. */
static int refuse(struct build *b, enum byoc_fail_code code, const char *why)
{
    if (!b->code) {
        b->code = code;
        b->why = why;
    }
    return 0;
}

int image_of(struct image *image, const char *layout, const int64_t *dims)
{
    const int last = strcmp(layout, "NHWC") == 0;
    if (!last && strcmp(layout, "NCHW") != 0)
        return 0;
    image->n = (size_t)dims[0];
    image->c = (size_t)dims[last ? 3 : 1];
    image->h = (size_t)dims[last ? 1 : 2];
    image->w = (size_t)dims[last ? 2 : 3];
    return 1;
}

/* --- tensors and operators ------------------------------------------------ */

/* Add a tensor. Returns its index, or NONE on failure. */
static uint32_t tensor_new(struct build *b, struct tensor t)
{
    struct program *p = b->p;
    struct tensor *at = realloc(p->tensors, (p->n_tensors + 1) * sizeof *at);
    if (!at) {
        refuse(b, BYOC_FAIL_RESOURCE, "out of memory");
        return NONE;
    }
    p->tensors = at;
    t.last = NONE;
    at[p->n_tensors] = t;
    return p->n_tensors++;
}

/* The approximate number of multiplications of an operator; for operators
 * that only read or write, the larger number of elements. */
static double work_of(const struct program *p, const struct op *op)
{
    const struct window *w = &op->window;
    const double size = w->size[0] ? (double)w->size[0] * w->size[1] : 1;
    const size_t in = p->tensors[op->in[0]].bytes;
    const size_t out = p->tensors[op->out].bytes;
    const double per_input = op->weights && w->in ? size * (double)w->in : size;
    return (double)(in > out && !w->in ? in : out) / sizeof(float) * per_input;
}

/* Add an operator to the program. Returns 0 on failure. */
static int op_add(struct build *b, struct op op)
{
    struct program *p = b->p;
    struct op *at = realloc(p->ops, (p->n_ops + 1) * sizeof *at);
    if (!at)
        return refuse(b, BYOC_FAIL_RESOURCE, "out of memory");
    p->ops = at;
    op.source = b->kernel ? b->kernel->source : "";
    op.work = work_of(p, &op);
    at[p->n_ops] = op;
    for (int i = 0; i < 2; i++)
        if (op.in[i] != NONE)
            p->tensors[op.in[i]].last = p->n_ops;
    p->n_ops++;
    return 1;
}

static const struct byoc_graph_value *value_of(const struct build *b,
                                               uint32_t v)
{
    return &b->g->values[v];
}

/* The sizes of a value as (N, C, H, W), with axes of size 1 in front. */
static struct image image_of_value(const struct byoc_graph_value *v)
{
    int64_t dims[4] = {1, 1, 1, 1};
    struct image image;
    for (uint32_t d = 1; d <= v->rank && d <= 4; d++)
        dims[4 - d] = v->dims[v->rank - d];
    image_of(&image, "NCHW", dims);
    return image;
}

/* Whether both layouts of a value are the same memory. */
static int same_layouts(const struct byoc_graph_value *v)
{
    const struct image i = image_of_value(v);
    return v->rank > 4 || i.c == 1 || i.h * i.w == 1;
}

/* A new tensor for a constant: a copy in one layout, with room for
 * XNNPACK's reads past its end. NONE on failure. */
static uint32_t add_constant(struct build *b, const struct byoc_graph_value *v,
                             enum layout layout)
{
    struct tensor t = {.where = CONSTANT, .bytes = (size_t)v->bytes};
    t.data = b->host->acquire(b->host->ctx, t.bytes + XNN_EXTRA_BYTES);
    if (!t.data) {
        refuse(b, BYOC_FAIL_RESOURCE, "out of memory");
        return NONE;
    }
    if (layout == LAST && !same_layouts(v))
        convert_to_nhwc(image_of_value(v), v->data, t.data);
    else
        memcpy(t.data, v->data, t.bytes);
    const uint32_t index = tensor_new(b, t);
    if (index == NONE)
        b->host->release(b->host->ctx, t.data);
    return index;
}

/* A new tensor in the state's memory; NONE on failure. */
static uint32_t add_memory(struct build *b, size_t bytes)
{
    return tensor_new(b, (struct tensor){.where = MEMORY, .bytes = bytes});
}

/* Add an operator that converts a value from the other layout to this one.
 * Returns the new tensor, or NONE. */
static uint32_t add_conversion(struct build *b, uint32_t v, enum layout layout)
{
    const uint32_t from = b->tensors[v][layout == LAST ? PLAIN : LAST];
    const uint32_t to = add_memory(b, (size_t)value_of(b, v)->bytes);
    const struct op op = {.kind =
                              layout == LAST ? &kind_to_nhwc : &kind_to_nchw,
                          .in = {from, NONE},
                          .out = to,
                          .image = image_of_value(value_of(b, v))};
    return to != NONE && op_add(b, op) ? to : NONE;
}

/* The tensor of a value in a layout, created or converted if necessary; NONE on
 * failure. LAST is for values of rank 4, and for those that broadcast to rank
 * 4. */
static uint32_t tensor_of(struct build *b, uint32_t v, enum layout layout)
{
    const struct byoc_graph_value *value = value_of(b, v);
    if (same_layouts(value))
        layout = PLAIN;
    uint32_t *at = &b->tensors[v][layout];
    if (*at == NONE && value->kind == BYOC_GRAPH_CONST)
        *at = add_constant(b, value, layout);
    else if (*at == NONE && value->kind == BYOC_GRAPH_INPUT && layout == PLAIN)
        *at = tensor_new(b, (struct tensor){.where = INPUT,
                                            .index = value->index,
                                            .bytes = (size_t)value->bytes});
    else if (*at == NONE && value->kind == BYOC_GRAPH_INPUT)
        *at =
            tensor_of(b, v, PLAIN) == NONE ? NONE : add_conversion(b, v, LAST);
    else if (*at == NONE && b->tensors[v][!layout] != NONE)
        *at = add_conversion(b, v, layout);
    if (*at == NONE)
        refuse(b, BYOC_FAIL_INTERNAL,
               "found a read of a value that no step computes");
    return *at;
}

/* A new tensor for a value that an operator computes in this layout. */
static uint32_t add_result(struct build *b, uint32_t v, enum layout layout)
{
    const struct byoc_graph_value *value = value_of(b, v);
    return b->tensors[v][same_layouts(value) ? PLAIN : layout] =
               add_memory(b, (size_t)value->bytes);
}

/* The layout in which an operator that supports both layouts reads `v`. */
static enum layout layout_of(const struct build *b, uint32_t v)
{
    return b->tensors[v][LAST] != NONE ? LAST : PLAIN;
}

/* --- kernels -------------------------------------------------------------- */

/* A kernel that becomes operators of the program: its first step, and the bias
 * and clamp that its other steps add. */
struct job {
    const struct byoc_graph_step *step;
    const struct byoc_graph_value *bias; /* or NULL */
    uint32_t out;
    struct op op; /* has the range to clamp to; build functions add operands and
                   * sizes */
};

/* Set operand 0 and the result of the operator to tensors in `layout`, and
 * add the operator. Returns 0 on failure. */
static int finish(struct build *b, struct job *j, enum layout layout)
{
    j->op.in[0] = tensor_of(b, j->step->args[0], layout);
    if (j->op.in[0] == NONE)
        return 0;
    j->op.out = add_result(b, j->out, layout);
    return j->op.out != NONE && op_add(b, j->op);
}

/* Read the attributes that convolutions and poolings share, and the sizes of
 * the image, whose layout is attribute `name`. Sets *layout to the layout in
 * which XNNPACK reads operand 0. */
static int read_window(struct build *b, struct job *j, const char *name,
                       enum layout *layout)
{
    const struct byoc_graph_step *s = j->step;
    const struct byoc_graph_value *in = value_of(b, s->args[0]);
    int64_t stride[2] = {1, 1}, pad[4] = {0}, dilation[2] = {1, 1};
    byoc_graph_ints(s, "strides", stride, 2);
    byoc_graph_ints(s, "padding", pad, 4);
    byoc_graph_ints(s, "dilation", dilation, 2);
    const char *order = byoc_graph_string(s, name, "NCHW");
    if (in->rank != 4 || !image_of(&j->op.image, order, in->dims))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found another layout of data, expected NCHW or NHWC");
    *layout = strcmp(order, "NHWC") == 0 ? PLAIN : LAST;
    struct window *w = &j->op.window;
    for (int i = 0; i < 4; i++)
        w->pad[i] = (uint32_t)pad[i];
    for (int i = 0; i < 2; i++) {
        w->stride[i] = (uint32_t)stride[i];
        w->dilation[i] = (uint32_t)dilation[i];
    }
    return 1;
}

/* Read the sizes and strides of weights, whose axes are in the order `axes`,
 * such as "OIHW". */
static int read_weights(struct build *b, struct job *j, const char *axes)
{
    const struct byoc_graph_value *v = value_of(b, j->step->args[1]);
    static const char letters[] = "OHWI";
    size_t size[4] = {0}, step = 1;
    if (v->kind != BYOC_GRAPH_CONST)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found computed weights, expected a constant");
    if (v->rank != 4 || strlen(axes) != 4)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found weights of another rank, expected four axes");
    for (int d = 3; d >= 0; d--) {
        const char *at = strchr(letters, axes[d]);
        if (!at)
            return refuse(b, BYOC_FAIL_UNSUPPORTED,
                          "found an unknown axis of weights, expected O, H, W "
                          "and I");
        size[at - letters] = (size_t)v->dims[d];
        j->op.stride[at - letters] = step;
        step *= (size_t)v->dims[d];
    }
    struct window *w = &j->op.window;
    w->groups = (uint32_t)byoc_graph_int(j->step, "groups", 1);
    if (w->groups == 0)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found 0 groups, expected 1 or more");
    if (size[0] * size[1] * size[2] * size[3] == 0)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found empty weights, expected at least one element");
    w->size[0] = (uint32_t)size[1];
    w->size[1] = (uint32_t)size[2];
    w->out = size[0];
    w->in = size[3];
    j->op.weights = v->data;
    return 1;
}

/* Set the operator's bias to the job's, a constant with one element for
 * each of the channels. Returns 0 for any other bias. */
static int set_bias(struct build *b, struct job *j, size_t channels)
{
    if (!j->bias)
        return 1;
    if (j->bias->kind != BYOC_GRAPH_CONST)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found a computed bias, expected a constant");
    if (j->bias->count != channels)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found a bias of another size, expected one element for "
                      "each channel");
    j->op.bias = j->bias->data;
    return 1;
}

static int build_convolution(struct build *b, struct job *j)
{
    struct window *w = &j->op.window;
    enum layout layout;
    j->op.kind = &kind_convolution;
    if (!read_window(b, j, "data_layout", &layout) ||
        !read_weights(b, j,
                      byoc_graph_string(j->step, "kernel_layout", "OIHW")))
        return 0;
    if (w->out % w->groups)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found weights whose outputs the groups do not divide, "
                      "expected as many outputs in each group");
    if (w->in * w->groups != j->op.image.c)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found weights for another number of channels, expected "
                      "the image's");
    w->out /= w->groups;
    return set_bias(b, j, w->out * w->groups) && finish(b, j, layout);
}

/* Weights are (I, O/groups, H, W), where I counts all groups. XNNPACK needs I
 * of one group, which strides can express for one group only. */
static int build_deconvolution(struct build *b, struct job *j)
{
    struct window *w = &j->op.window;
    int64_t output_padding[2] = {0};
    enum layout layout;
    j->op.kind = &kind_deconvolution;
    if (!read_window(b, j, "data_layout", &layout) ||
        !read_weights(b, j,
                      byoc_graph_string(j->step, "kernel_layout", "IOHW")))
        return 0;
    if (w->groups != 1)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found a transposed convolution in several groups, "
                      "expected 1");
    if (w->in != j->op.image.c)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found weights for another number of channels, expected "
                      "the image's");
    byoc_graph_ints(j->step, "output_padding", output_padding, 2);
    w->output_padding[0] = (uint32_t)output_padding[0];
    w->output_padding[1] = (uint32_t)output_padding[1];
    return set_bias(b, j, w->out) && finish(b, j, layout);
}

/* nn.dense: weights (out, in). nn.matmul: (in, out), unless transpose_b. */
static int build_dense(struct build *b, struct job *j)
{
    const struct byoc_graph_value *in = value_of(b, j->step->args[0]);
    const struct byoc_graph_value *v = value_of(b, j->step->args[1]);
    const int dense = strcmp(j->step->name, "nn.dense") == 0;
    j->op.kind = &kind_dense;
    if (v->kind != BYOC_GRAPH_CONST || v->rank != 2)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      v->rank == 2
                          ? "found computed weights, expected a constant"
                          : "found weights of another rank, expected a matrix");
    if (in->rank == 0 || byoc_graph_int(j->step, "transpose_a", 0))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      in->rank ? "found transpose_a = 1, expected 0"
                               : "found one number, expected rows");
    j->op.transposed = !dense && !byoc_graph_int(j->step, "transpose_b", 0);
    j->op.window.in = (size_t)v->dims[j->op.transposed ? 0 : 1];
    j->op.window.out = (size_t)v->dims[j->op.transposed ? 1 : 0];
    j->op.weights = v->data;
    if (j->op.window.in == 0)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found empty weights, expected at least one element");
    if (j->op.window.in != (size_t)in->dims[in->rank - 1])
        return refuse(b, BYOC_FAIL_INVALID,
                      "found weights for rows of another length, expected the "
                      "length of the operand's");
    j->op.rows = (size_t)in->count / j->op.window.in;
    return set_bias(b, j, j->op.window.out) && finish(b, j, PLAIN);
}

/* For ceil_mode, add padding below and to the right that the last windows need.
 */
static void round_up(struct window *w, const struct image *in,
                     const struct image *out)
{
    const size_t sizes[2][2] = {{in->h, out->h}, {in->w, out->w}};
    for (int i = 0; i < 2; i++) {
        const size_t extent = (sizes[i][1] - 1) * w->stride[i] +
                              (size_t)w->dilation[i] * (w->size[i] - 1) + 1;
        const uint32_t before = w->pad[i == 0 ? 0 : 1];
        if (extent > before + sizes[i][0] + w->pad[2 + i])
            w->pad[2 + i] = (uint32_t)(extent - before - sizes[i][0]);
    }
}

static int build_pool(struct build *b, struct job *j)
{
    struct window *w = &j->op.window;
    const struct byoc_graph_value *out = value_of(b, j->out);
    struct image image;
    int64_t size[2] = {0};
    enum layout layout;
    const int is_max = strcmp(j->step->name, "nn.max_pool2d") == 0;
    j->op.kind = is_max ? &kind_max_pool : &kind_average_pool;
    if (!read_window(b, j, "layout", &layout))
        return 0;
    byoc_graph_ints(j->step, "pool_size", size, 2);
    w->size[0] = (uint32_t)size[0];
    w->size[1] = (uint32_t)size[1];
    if (!is_max && (w->dilation[0] != 1 || w->dilation[1] != 1))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found a dilated average, expected dilation 1");
    image_of(&image, layout == PLAIN ? "NHWC" : "NCHW", out->dims);
    if (is_max && size[0] > 0 && size[1] > 0 && image.h && image.w)
        round_up(w, &j->op.image, &image);
    return finish(b, j, layout);
}

static int build_global_pool(struct build *b, struct job *j)
{
    enum layout layout;
    j->op.kind = &kind_global_average_pool;
    return read_window(b, j, "layout", &layout) && finish(b, j, layout);
}

/* Softmax along the last axis, or along the channels of an image. */
static int build_softmax(struct build *b, struct job *j)
{
    const struct byoc_graph_value *in = value_of(b, j->step->args[0]);
    const int64_t rank = in->rank, axis = byoc_graph_int(j->step, "axis", -1);
    const int channels = rank == 4 && axis == 1;
    if (rank == 0 || in->count == 0 ||
        (!channels && axis != -1 && axis != rank - 1))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found softmax along an inner axis, expected the last "
                      "axis or an image's channels");
    j->op.kind = kind_of("nn.softmax");
    j->op.columns = (size_t)in->dims[channels ? 1 : rank - 1];
    j->op.rows = (size_t)in->count / j->op.columns;
    return finish(b, j, channels ? LAST : PLAIN);
}

/* PRelu with one slope for each channel of an image or element of the last
 * axis.
 */
static int build_prelu(struct build *b, struct job *j)
{
    const struct byoc_graph_value *in = value_of(b, j->step->args[0]);
    const struct byoc_graph_value *slope = value_of(b, j->step->args[1]);
    const struct image image = image_of_value(slope);
    const size_t count = (size_t)slope->count;
    const int channels = in->rank == 4 && image.c == count;
    if (slope->kind != BYOC_GRAPH_CONST)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found computed slopes, expected a constant");
    if (in->rank == 0 || count == 0 ||
        (channels
             ? in->dims[1] != (int64_t)count
             : image.w != count || in->dims[in->rank - 1] != (int64_t)count))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found slopes of another shape, expected one for each "
                      "channel");
    j->op.kind = kind_of("nn.prelu");
    j->op.weights = slope->data;
    j->op.columns = count;
    j->op.rows = (size_t)in->count / count;
    return finish(b, j, channels ? LAST : PLAIN);
}

/* An elementwise operator: one row with all elements. */
static int build_unary(struct build *b, struct job *j)
{
    const struct byoc_graph_value *in = value_of(b, j->step->args[0]);
    const int is_elu = strcmp(j->step->name, "nn.elu") == 0;
    j->op.kind = kind_of(j->step->name);
    j->op.alpha = (float)byoc_graph_float(j->step, "alpha", is_elu ? 1 : 0.01);
    j->op.rows = 1;
    j->op.columns = (size_t)in->count;
    return finish(b, j, layout_of(b, j->step->args[0]));
}

/* Set the sizes of an operand in one layout. */
static void set_dims(struct op *op, int i, const struct byoc_graph_value *v,
                     enum layout layout)
{
    const struct image m = image_of_value(v);
    const size_t last[4] = {m.n, m.h, m.w, m.c};
    op->n_dims[i] = layout == LAST ? 4 : v->rank;
    for (uint32_t d = 0; d < op->n_dims[i]; d++)
        op->dims[i][d] = layout == LAST ? last[d] : (size_t)v->dims[d];
}

/* Whether `v` can be an operand together with channels-last images. */
static int fits_last(const struct byoc_graph_value *v)
{
    return v->rank == 4 || v->kind == BYOC_GRAPH_CONST || same_layouts(v);
}

/* An operator on the values x and y: channels-last if one of them is, and both
 * can be. */
static int build_pair(struct build *b, struct job *j, uint32_t x, uint32_t y)
{
    const struct byoc_graph_value *v[2] = {value_of(b, x), value_of(b, y)};
    const int last = value_of(b, j->out)->rank == 4 && fits_last(v[0]) &&
                     fits_last(v[1]) &&
                     (layout_of(b, x) == LAST || layout_of(b, y) == LAST);
    const enum layout layout = last ? LAST : PLAIN;
    const uint32_t operands[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        if (v[i]->rank > XNN_MAX_TENSOR_DIMS)
            return refuse(b, BYOC_FAIL_UNSUPPORTED,
                          "found too many axes, expected at most 6");
        set_dims(&j->op, i, v[i], layout);
        j->op.in[i] = tensor_of(b, operands[i], layout);
        if (j->op.in[i] == NONE)
            return 0;
    }
    j->op.out = add_result(b, j->out, layout);
    return j->op.out != NONE && op_add(b, j->op);
}

static int build_binary(struct build *b, struct job *j)
{
    j->op.kind = kind_of(j->step->name);
    return build_pair(b, j, j->step->args[0], j->step->args[1]);
}

/* SiLU: x sigmoid(x), as two operators. */
static int build_silu(struct build *b, struct job *j)
{
    const uint32_t x = j->step->args[0];
    const struct byoc_graph_value *in = value_of(b, x);
    const enum layout layout = layout_of(b, x);
    struct op gate = {.kind = kind_of("sigmoid"),
                      .in = {tensor_of(b, x, layout), NONE},
                      .rows = 1,
                      .columns = (size_t)in->count};
    gate.out = add_memory(b, (size_t)in->bytes);
    if (gate.in[0] == NONE || gate.out == NONE || !op_add(b, gate))
        return 0;
    j->op.kind = kind_of("multiply");
    for (int i = 0; i < 2; i++) {
        j->op.n_dims[i] = 1;
        j->op.dims[i][0] = (size_t)in->count;
    }
    j->op.in[1] = gate.out;
    return finish(b, j, layout);
}

/* A constant tensor with one number. */
static uint32_t add_number(struct build *b, float x)
{
    const struct byoc_graph_value one = {
        .count = 1, .bytes = sizeof x, .data = &x};
    return add_constant(b, &one, PLAIN);
}

/* max(0, min(1, alpha x + beta)), as two operators. */
static int build_hard_sigmoid(struct build *b, struct job *j)
{
    const uint32_t x = j->step->args[0];
    const struct byoc_graph_value *in = value_of(b, x);
    const enum layout layout = layout_of(b, x);
    const uint32_t alpha =
        add_number(b, (float)byoc_graph_float(j->step, "alpha", 0.2));
    const uint32_t beta =
        add_number(b, (float)byoc_graph_float(j->step, "beta", 0.5));
    struct op scale = {.kind = kind_of("multiply"),
                       .in = {tensor_of(b, x, layout), alpha},
                       .out = add_memory(b, (size_t)in->bytes),
                       .n_dims = {1, 1},
                       .dims = {{(size_t)in->count}, {1}},
                       .min = -INFINITY,
                       .max = INFINITY};
    if (scale.in[0] == NONE || alpha == NONE || beta == NONE ||
        scale.out == NONE || !op_add(b, scale))
        return 0;
    struct op shift = scale;
    shift.kind = kind_of("add");
    shift.in[0] = scale.out;
    shift.in[1] = beta;
    shift.min = 0;
    shift.max = 1;
    shift.out = add_result(b, j->out, layout);
    return shift.out != NONE && op_add(b, shift);
}

/* Concatenate along the last axis, or along the channels of images: each
 * operand is copied to its columns of the result's rows. */
static int build_concatenate(struct build *b, struct job *j)
{
    const struct byoc_graph_value *out = value_of(b, j->out);
    const int64_t rank = out->rank, axis = byoc_graph_int(j->step, "axis", 0);
    const int channels = rank == 4 && axis == 1;
    if (rank == 0 || (!channels && axis != -1 && axis != rank - 1))
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found a concatenation along an inner axis, expected the "
                      "last axis or an image's channels");
    const enum layout layout = channels ? LAST : PLAIN;
    const int64_t at = channels ? 1 : rank - 1;
    j->op.kind = &kind_concatenate;
    j->op.width = (size_t)out->dims[at];
    j->op.rows = (size_t)out->count / j->op.width;
    j->op.out = add_result(b, j->out, layout);
    for (uint32_t i = 0; i < j->step->n_args; i++) {
        const struct byoc_graph_value *v = value_of(b, j->step->args[i]);
        j->op.in[0] = tensor_of(b, j->step->args[i], layout);
        j->op.columns = v->rank == rank ? (size_t)v->dims[at] : 0;
        if (j->op.columns * j->op.rows != v->count ||
            j->op.first + j->op.columns > j->op.width)
            return refuse(b, BYOC_FAIL_INVALID,
                          "found operands of other sizes, expected sizes that "
                          "add up to the result's");
        if (j->op.in[0] == NONE || j->op.out == NONE || !op_add(b, j->op))
            return 0;
        j->op.first += j->op.columns;
    }
    return 1;
}

/* An operator whose result is its operand with other dims: both are one
 * tensor.
 */
static int build_view(struct build *b, struct job *j)
{
    const uint32_t x = tensor_of(b, j->step->args[0], PLAIN);
    b->tensors[j->out][PLAIN] = x;
    return x != NONE;
}

/* --- regions -------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *name;
    uint32_t n_args; /* 0: any number */
    int (*build)(struct build *b, struct job *j);
} builders[] = {
    {"nn.conv2d", 2, build_convolution},
    {"nn.conv2d_transpose", 2, build_deconvolution},
    {"nn.dense", 2, build_dense},
    {"nn.matmul", 2, build_dense},
    {"nn.max_pool2d", 1, build_pool},
    {"nn.avg_pool2d", 1, build_pool},
    {"nn.global_avg_pool2d", 1, build_global_pool},
    {"nn.softmax", 1, build_softmax},
    {"nn.prelu", 2, build_prelu},
    {"nn.silu", 1, build_silu},
    {"nn.hard_sigmoid", 1, build_hard_sigmoid},
    {"concatenate", 0, build_concatenate},
    {"nn.flatten", 1, build_view},
    {"squeeze", 1, build_view},
    {"expand_dims", 1, build_view},
    {"reshape", 2, build_view},
    {"add", 2, build_binary}, {"subtract", 2, build_binary},
    {"multiply", 2, build_binary}, {"divide", 2, build_binary},
    {"maximum", 2, build_binary}, {"minimum", 2, build_binary},
    {"nn.relu", 1, build_unary}, {"clip", 1, build_unary},
    {"sigmoid", 1, build_unary}, {"nn.hard_swish", 1, build_unary},
    {"nn.leaky_relu", 1, build_unary}, {"nn.elu", 1, build_unary},
    {"abs", 1, build_unary}, {"negative", 1, build_unary},
    {"ceil", 1, build_unary}, {"floor", 1, build_unary},
    {"round", 1, build_unary}, {"sqrt", 1, build_unary},
};
/* clang-format on */

/* If the step is relu or clip, narrow the range that the operator clamps to.
 * Returns 0 if it is neither. */
static int clamp(struct op *op, const struct byoc_graph_step *s)
{
    const int relu = strcmp(s->name, "nn.relu") == 0;
    if (!relu && strcmp(s->name, "clip") != 0)
        return 0;
    const float min = relu ? 0 : (float)byoc_graph_float(s, "a_min", -INFINITY);
    const float max =
        relu ? INFINITY : (float)byoc_graph_float(s, "a_max", INFINITY);
    op->min = fmaxf(op->min, min);
    op->max = fmaxf(fminf(op->max, max), min);
    return 1;
}

static int check_value(struct build *b, uint32_t v)
{
    if (value_of(b, v)->dtype != BYOC_F32)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found another element type, expected float32");
    if (value_of(b, v)->count == 0)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found an empty tensor, expected at least one element");
    return 1;
}

/* Refuse a step unless it has one result, and all its values are float32
 * and not empty. The sizes of a reshape may have another type. */
static int check_types(struct build *b, const struct byoc_graph_step *s)
{
    const uint32_t n = strcmp(s->name, "reshape") == 0 ? 1 : s->n_args;
    if (s->n_outs != 1)
        return refuse(b, BYOC_FAIL_UNSUPPORTED,
                      "found an operator with several results, expected one");
    int good = check_value(b, s->outs[0]);
    for (uint32_t i = 0; good && i < n; i++)
        good = check_value(b, s->args[i]);
    return good;
}

/* Add the operators of a kernel. Returns 0 on failure. */
static int build_kernel(struct build *b, const struct byoc_graph_kernel *k)
{
    const struct byoc_graph_step *steps = &b->g->steps[k->first];
    struct job j = {
        .step = &steps[0],
        .op = {.in = {NONE, NONE}, .min = -INFINITY, .max = INFINITY}};
    b->kernel = k;
    if (k->n_steps == 0)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found a kernel without steps, expected at least one");
    if (k->n_outs != 1)
        return refuse(b, BYOC_FAIL_INVALID,
                      "found a kernel with several results, expected one");
    if (!check_types(b, j.step))
        return 0;
    clamp(&j.op, j.step);
    j.out = steps[0].outs[0];
    for (uint32_t i = 1; i < k->n_steps; i++) {
        const struct byoc_graph_step *s = &steps[i];
        const uint32_t last = s->n_args - 1, bias_operand = s->args[0] == j.out;
        if (!check_types(b, s) || last > 1 ||
            (s->args[0] != j.out && s->args[last] != j.out))
            return refuse(b, BYOC_FAIL_UNSUPPORTED,
                          "found a step that does not read the one before it, "
                          "expected a chain of steps");
        if (i == 1 && last == 1 && strcmp(s->name, "add") == 0)
            j.bias = value_of(b, s->args[bias_operand]);
        else if (last == 1 || !clamp(&j.op, s))
            return refuse(b, BYOC_FAIL_UNSUPPORTED,
                          "found an unknown epilogue, expected a bias, "
                          "nn.relu or clip");
        j.out = s->outs[0];
    }
    for (size_t i = 0; i < COUNT(builders); i++)
        if (strcmp(builders[i].name, j.step->name) == 0 &&
            (builders[i].n_args == 0 || builders[i].n_args == j.step->n_args))
            return builders[i].build(b, &j);
    return refuse(b, BYOC_FAIL_UNSUPPORTED,
                  "found an operator that this backend does not support");
}

/* Outputs of the region must be in memory that the run provides. The
 * operator that computes an output writes it there if no other operator reads
 * it; otherwise the output is copied. */
static int build_outputs(struct build *b)
{
    struct program *p = b->p;
    b->kernel = NULL;
    for (uint32_t i = 0; i < b->g->n_outputs; i++) {
        const struct byoc_graph_value *v = value_of(b, b->g->outputs[i]);
        const uint32_t t = tensor_of(b, b->g->outputs[i], PLAIN);
        if (t == NONE)
            return 0;
        if (p->tensors[t].where == MEMORY && p->tensors[t].last == NONE) {
            p->tensors[t].where = OUTPUT;
            p->tensors[t].index = i;
            continue;
        }
        struct op copy = {
            .kind = &kind_copy, .in = {t, NONE}, .columns = (size_t)v->count};
        copy.out = tensor_new(b, (struct tensor){.where = OUTPUT,
                                                 .index = i,
                                                 .bytes = (size_t)v->bytes});
        if (copy.out == NONE || !op_add(b, copy))
            return 0;
    }
    return 1;
}

/* --- memory --------------------------------------------------------------- */

/* The bytes that a tensor occupies in the state's memory. */
static uint64_t padded_bytes(const struct tensor *t)
{
    return (t->bytes + XNN_EXTRA_BYTES + 63) & ~(uint64_t)63;
}

/* Whether the memory of a tensor is still in use when operator `i` runs. */
static int is_alive(const struct tensor *t, uint32_t i)
{
    return t->where == MEMORY && t->last != NONE && t->last >= i;
}

/* Place the result of each operator in the state's memory, at the
 * lowest address at which no tensor is in use. Several operators write the
 * result of a concatenation; the first one places it. */
static void place_tensors(struct program *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        struct tensor *t = &p->tensors[p->ops[i].out];
        int moved = t->where == MEMORY && p->ops[i].first == 0;
        while (moved) {
            moved = 0;
            for (uint32_t k = 0; k < i; k++) {
                const struct tensor *u = &p->tensors[p->ops[k].out];
                if (!is_alive(u, i) ||
                    u->offset >= t->offset + padded_bytes(t) ||
                    t->offset >= u->offset + padded_bytes(u))
                    continue;
                t->offset = u->offset + padded_bytes(u);
                moved = 1;
            }
        }
        if (t->where == MEMORY && p->bytes < t->offset + padded_bytes(t))
            p->bytes = t->offset + padded_bytes(t);
    }
}

void program_free(const struct byoc_host *host, struct program *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_tensors; i++)
        host->release(host->ctx, p->tensors[i].data);
    free(p->tensors);
    free(p->ops);
    byoc_graph_free(host, p->graph);
    free(p);
}

struct byoc_fail *program_new(const struct byoc_host *host,
                              struct byoc_graph *graph,
                              struct program **program)
{
    struct program *p = calloc(1, sizeof *p);
    struct build b = {.host = host, .g = graph, .p = p};
    b.tensors = malloc((graph->n_values + 1) * sizeof *b.tensors);
    if (p)
        p->graph = graph;
    else
        byoc_graph_free(host, graph);
    int ok = p && b.tensors;
    if (!ok)
        refuse(&b, BYOC_FAIL_RESOURCE, "out of memory");
    for (uint32_t i = 0; ok && i < graph->n_values; i++)
        b.tensors[i][PLAIN] = b.tensors[i][LAST] = NONE;
    for (uint32_t i = 0; ok && i < graph->n_kernels; i++)
        ok = build_kernel(&b, &graph->kernels[i]);
    ok = ok && build_outputs(&b);
    free(b.tensors);
    if (ok) {
        place_tensors(p);
        *program = p;
        return NULL;
    }
    program_free(host, p);
    return host->fail(host->ctx, b.code, b.why);
}
