/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c: the kinds of operators of a program: create() makes an XNNPACK
 * operator, which packs weights and chooses a kernel, and setup() binds it to
 * memory. Conversions
 * between the two layouts are computed here, without XNNPACK.
 */
#include "xnn.h"

#include <stdlib.h>
#include <string.h>

/* --- weights ------------------------------------------------------------- */

/* The weights in XNNPACK's layout (groups, out, height, width, in): op->weights
 * if they have it, otherwise a copy, *copy, which the caller frees. NULL: out
 * of memory. */
static const float *pack_weights(const struct op *op, float **copy)
{
    const struct window *w = &op->window;
    const size_t n[4] = {w->groups * w->out, w->size[0], w->size[1], w->in};
    const size_t *s = op->stride;
    *copy = NULL;
    if ((s[3] == 1 || n[3] == 1) && (s[2] == n[3] || n[2] == 1) &&
        (s[1] == n[2] * n[3] || n[1] == 1) && s[0] == n[1] * n[2] * n[3])
        return op->weights;
    float *to = *copy = malloc(n[0] * n[1] * n[2] * n[3] * sizeof *to);
    for (size_t o = 0; to && o < n[0]; o++)
        for (size_t y = 0; y < n[1]; y++)
            for (size_t x = 0; x < n[2]; x++)
                for (size_t i = 0; i < n[3]; i++)
                    *to++ =
                        op->weights[o * s[0] + y * s[1] + x * s[2] + i * s[3]];
    return *copy;
}

/* Create a convolution or a transposed one, which have the same parameters. */
static enum xnn_status create_convolution(const struct op *op,
                                          xnn_operator_t *xnn_op)
{
    const struct window *w = &op->window;
    float *copy;
    const float *weights = pack_weights(op, &copy);
    if (!weights)
        return xnn_status_out_of_memory;
    enum xnn_status status =
        (op->kind == &kind_convolution ? xnn_create_convolution2d_nhwc_f32
                                       : xnn_create_deconvolution2d_nhwc_f32)(
            w->pad[0], w->pad[3], w->pad[2], w->pad[1], w->size[0], w->size[1],
            w->stride[0], w->stride[1], w->dilation[0], w->dilation[1],
            w->groups, w->in, w->out, w->groups * w->in, w->groups * w->out,
            weights, op->bias, op->min, op->max, 0, xnn_op);
    free(copy);
    return status;
}

/* --- XNNPACK's calls ------------------------------------------------------ */

/* Define create_ID and setup_ID, which make one call each. */
#define CREATE(id, call)                                                       \
    static enum xnn_status create_##id(const struct op *op,                    \
                                       xnn_operator_t *xnn_op)                 \
    {                                                                          \
        (void)op;                                                              \
        return call;                                                           \
    }
#define SETUP(id, call)                                                        \
    static enum xnn_status setup_##id(                                         \
        const struct op *op, xnn_operator_t xnn_op, const float *a,            \
        const float *b, float *out, pthreadpool_t pool)                        \
    {                                                                          \
        (void)b;                                                               \
        return call;                                                           \
    }
/* Define kind_ID from create_ID and setup_ID. NAME: XNNPACK's name of the
 * operator. */
#define KIND(id, name)                                                         \
    const struct kind kind_##id = {name, create_##id, setup_##id, NULL};

#define IMAGE op->image.n, op->image.h, op->image.w
#define WINDOW                                                                 \
    op->window.pad[0], op->window.pad[3], op->window.pad[2],                   \
        op->window.pad[1], op->window.size[0], op->window.size[1],             \
        op->window.stride[0], op->window.stride[1]
#define CHANNELS op->image.c, op->image.c, op->image.c

/* clang-format off */
SETUP(convolution,
      xnn_setup_convolution2d_nhwc_f32(xnn_op, IMAGE, a, out, pool))
KIND(convolution, "convolution2d_nhwc_f32")

SETUP(deconvolution,
      xnn_setup_deconvolution2d_nhwc_f32(xnn_op, IMAGE,
                                         op->window.output_padding[0],
                                         op->window.output_padding[1], a, out,
                                         pool))
const struct kind kind_deconvolution = {
    "deconvolution2d_nhwc_f32", create_convolution, setup_deconvolution, NULL};

CREATE(dense, xnn_create_fully_connected_nc_f32(
                  op->window.in, op->window.out, op->window.in, op->window.out,
                  op->weights, op->bias, op->min, op->max,
                  op->transposed ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0, xnn_op))
SETUP(dense, xnn_setup_fully_connected_nc_f32(xnn_op, op->rows, a, out, pool))
KIND(dense, "fully_connected_nc_f32")

CREATE(max_pool, xnn_create_max_pooling2d_nhwc_f32(
                     WINDOW, op->window.dilation[0], op->window.dilation[1],
                     CHANNELS, op->min, op->max, 0, xnn_op))
SETUP(max_pool, xnn_setup_max_pooling2d_nhwc_f32(xnn_op, IMAGE, a, out, pool))
KIND(max_pool, "max_pooling2d_nhwc_f32")

CREATE(average_pool, xnn_create_average_pooling2d_nhwc_f32(
                         WINDOW, CHANNELS, op->min, op->max, 0, xnn_op))
SETUP(average_pool,
      xnn_setup_average_pooling2d_nhwc_f32(xnn_op, IMAGE, a, out, pool))
KIND(average_pool, "average_pooling2d_nhwc_f32")

CREATE(global_average_pool,
       xnn_create_global_average_pooling_nwc_f32(CHANNELS, op->min, op->max, 0,
                                                 xnn_op))
SETUP(global_average_pool,
      xnn_setup_global_average_pooling_nwc_f32(
          xnn_op, op->image.n, op->image.h * op->image.w, a, out, pool))
KIND(global_average_pool, "global_average_pooling_nwc_f32")

/* Copy one operand of a concatenation to its columns of the result. */
CREATE(concatenate, xnn_create_copy_nc_x32(op->columns, op->columns, op->width,
                                           0, xnn_op))
SETUP(concatenate,
      xnn_setup_copy_nc_x32(xnn_op, op->rows, a, out + op->first, pool))
KIND(concatenate, "copy_nc_x32")
/* clang-format on */

/* Define kind_ID, for an operator of XNNPACK on rows of op->columns numbers.
 * `...`: the arguments of xnn_create_ID between the row sizes and the flags,
 * each followed by a comma; EMPTY: none. */
#define ROWS(id, ...)                                                          \
    CREATE(id, xnn_create_##id##_nc_f32(op->columns, op->columns, op->columns, \
                                        __VA_ARGS__ 0, xnn_op))                \
    SETUP(id, xnn_setup_##id##_nc_f32(xnn_op, op->rows, a, out, pool))         \
    static KIND(id, #id "_nc_f32")
#define EMPTY
ROWS(softmax, EMPTY)
ROWS(prelu, op->weights, )
ROWS(clamp, op->min, op->max, )
ROWS(sigmoid, EMPTY)
ROWS(hardswish, EMPTY)
ROWS(leaky_relu, op->alpha, )
ROWS(elu, op->alpha, )
ROWS(abs, EMPTY)
ROWS(negate, EMPTY)
ROWS(ceiling, EMPTY)
ROWS(floor, EMPTY)
ROWS(bankers_rounding, EMPTY)
ROWS(square_root, EMPTY)

/* Define kind_ID, for an operator of XNNPACK on two operands. `...`: the
 * arguments of xnn_create_ID before the flags, each followed by a comma; EMPTY:
 * none. */
#define BINARY(id, ...)                                                        \
    CREATE(id, xnn_create_##id##_nd_f32(__VA_ARGS__ 0, xnn_op))                \
    SETUP(id, xnn_setup_##id##_nd_f32(xnn_op, op->n_dims[0], op->dims[0],      \
                                      op->n_dims[1], op->dims[1], a, b, out,   \
                                      pool))                                   \
    static KIND(id, #id "_nd_f32")
BINARY(add, op->min, op->max, )
BINARY(subtract, op->min, op->max, )
BINARY(multiply, op->min, op->max, )
BINARY(divide, op->min, op->max, )
BINARY(maximum, EMPTY)
BINARY(minimum, EMPTY)

/* clang-format off */
static const struct {
    const char *name;
    const struct kind *kind;
} kinds[] = {
    {"nn.softmax", &kind_softmax},
    {"nn.prelu", &kind_prelu},
    {"nn.relu", &kind_clamp},
    {"clip", &kind_clamp},
    {"sigmoid", &kind_sigmoid},
    {"nn.hard_swish", &kind_hardswish},
    {"nn.leaky_relu", &kind_leaky_relu},
    {"nn.elu", &kind_elu},
    {"abs", &kind_abs},
    {"negative", &kind_negate},
    {"ceil", &kind_ceiling},
    {"floor", &kind_floor},
    {"round", &kind_bankers_rounding},
    {"sqrt", &kind_square_root},
    {"add", &kind_add},
    {"subtract", &kind_subtract},
    {"multiply", &kind_multiply},
    {"divide", &kind_divide},
    {"maximum", &kind_maximum},
    {"minimum", &kind_minimum},
};
/* clang-format on */

const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return NULL;
}

/* --- conversions between layouts ------------------------------------------ */

/* Transpose a matrix (rows, columns), in tiles that fit the first-level cache.
 */
static void transpose(size_t rows, size_t columns, const float *in, float *out)
{
    enum { TILE = 16 };
    for (size_t r = 0; r < rows; r += TILE)
        for (size_t c = 0; c < columns; c += TILE) {
            const size_t r_end = r + TILE < rows ? r + TILE : rows;
            const size_t c_end = c + TILE < columns ? c + TILE : columns;
            for (size_t x = c; x < c_end; x++)
                for (size_t y = r; y < r_end; y++)
                    out[x * rows + y] = in[y * columns + x];
        }
}

void convert_to_nhwc(struct image image, const float *in, float *out)
{
    const size_t area = image.h * image.w, image_size = image.c * area;
    for (size_t i = 0; i < image.n; i++)
        transpose(image.c, area, in + i * image_size, out + i * image_size);
}

static void move_to_nhwc(const struct op *op, const float *in, float *out)
{
    convert_to_nhwc(op->image, in, out);
}

static void move_to_nchw(const struct op *op, const float *in, float *out)
{
    const size_t area = op->image.h * op->image.w,
                 image_size = op->image.c * area;
    for (size_t i = 0; i < op->image.n; i++)
        transpose(area, op->image.c, in + i * image_size, out + i * image_size);
}

static void move_copy(const struct op *op, const float *in, float *out)
{
    memcpy(out, in, op->columns * sizeof *out);
}

const struct kind kind_to_nhwc = {"to NHWC", NULL, NULL, move_to_nhwc};
const struct kind kind_to_nchw = {"to NCHW", NULL, NULL, move_to_nchw};
const struct kind kind_copy = {"copy", NULL, NULL, move_copy};
