/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c: times convolutions with different layouts of activations.
 *
 *     layouts
 *
 * Times convolutions with ReLU on one thread, with input and output
 * channels-last, row-major, or in the layout that oneDNN chooses, and prints
 * the table of docs/layouts.md. oneDNN chooses the layout of the weights. The
 * primitives come from runtime_dnnl's layer, as in regions. The layer describes
 * activations by strides, so oneDNN's blocked layouts are missing. Exits with 1
 * if oneDNN fails, and with 2 for wrong arguments.
 */
#include "core/base/clock.h"
#include "runtime_dnnl/layer.h"

enum { ROUNDS = 25, RANK = 4, N_BUFFERS = 4 };

enum layout { NHWC, NCHW, ANY, N_LAYOUTS };
static const char *const layout_names[] = {
    [NHWC] = "nhwc", [NCHW] = "nchw", [ANY] = "any"};

/* A convolution of a square image with padding of half the window. */
struct shape {
    int64_t kernel, in, out; /* size of the window; channels */
    int64_t size, stride;    /* size: height and width of the input */
    bool depthwise;
};

static const struct shape shapes[] = {
    {7, 3, 64, 224, 2, false},   {3, 64, 64, 56, 1, false},
    {1, 64, 256, 56, 1, false},  {1, 256, 64, 56, 1, false},
    {3, 128, 128, 28, 1, false}, {1, 512, 128, 28, 1, false},
    {3, 256, 256, 14, 1, false}, {1, 1024, 256, 14, 1, false},
    {3, 512, 512, 7, 1, false},  {3, 144, 144, 56, 1, true},
    {3, 960, 960, 7, 1, true},
};

/* One convolution in one layout. It owns all members. */
struct layout_variant {
    struct byi_prim *prim;
    struct byi_bound_call *call;
    void *buffers[N_BUFFERS], *scratch;
    double best; /* seconds */
};

/* --- preparation ---------------------------------------------------------- */

/* Describe a tensor of shape (1, channels, size, size) in a layout. */
static struct byi_desc describe(enum layout layout, int64_t channels,
                                int64_t size)
{
    static const uint32_t orders[][RANK] = {
        [NHWC] = {0, 2, 3, 1}, [NCHW] = {0, 1, 2, 3}}; /* outermost first */
    struct byi_desc d = {.kind = BYI_DESC_ANY,
                         .dtype = BYOC_F32,
                         .rank = RANK,
                         .dims = {1, channels, size, size}};
    if (layout == ANY)
        return d;
    d.kind = BYI_DESC_STRIDED;
    int64_t stride = 1;
    for (uint32_t i = RANK; i-- > 0;) {
        const uint32_t axis = orders[layout][i];
        d.strides[axis] = stride;
        stride *= d.dims[axis];
    }
    return d;
}

static int64_t result_size(const struct shape *s)
{
    return (s->size + s->stride - 1) / s->stride;
}

static struct byi_dnnl_conv convolution(const struct shape *s,
                                        enum layout layout)
{
    const int64_t size = result_size(s), k = s->kernel, begin = k / 2;
    struct byi_dnnl_conv c = {
        .window.n = 2,
        .src = describe(layout, s->in, s->size),
        .dst = describe(layout, s->out, size),
        .bias = {BYI_DESC_STRIDED, BYOC_F32, 1, {s->out}, {1}},
        .weights = {BYI_DESC_ANY, BYOC_F32, 4, {s->out, s->in, k, k}, {0}},
    };
    if (s->depthwise)
        c.weights = (struct byi_desc){
            BYI_DESC_ANY, BYOC_F32, 5, {s->out, 1, 1, k, k}, {0}};
    for (uint32_t i = 0; i < c.window.n; i++) {
        c.window.kernel[i] = k;
        c.window.stride[i] = s->stride;
        c.window.dilation[i] = 1;
        c.window.begin[i] = begin;
        c.window.end[i] = (size - 1) * s->stride + k - s->size - begin;
    }
    return c;
}

/* A buffer of numbers in [-1/2, 1/2). The time does not depend on the numbers,
 * as long as none is subnormal, and nothing reads the results. */
static float *random_numbers(uint64_t bytes)
{
    float *data = byi_acquire(bytes + BYI_DNNL_SLACK);
    uint32_t x = 1;
    for (uint64_t i = 0; data && i < bytes / sizeof *data; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (float)(x >> 8) * 0x1p-24f - 0.5f;
    }
    return data;
}

/* The bytes of a float32 tensor without padding. A primitive on byoc's kernels
 * knows only the bytes of packed weights. */
static uint64_t dense_bytes(const struct byi_desc *d)
{
    return (uint64_t)byi_elements(d->rank, d->dims) * sizeof(float);
}

static enum byoc_status make_variant(struct layout_variant *c,
                                     const struct byi_dnnl *lib,
                                     const struct shape *s, enum layout layout,
                                     struct byoc_error *err)
{
    static const int args[N_BUFFERS] = {BYI_ARG_SRC, BYI_ARG_WEIGHTS,
                                        BYI_ARG_BIAS, BYI_ARG_DST};
    static const struct byi_post post = {.kind = BYI_POST_ELT,
                                         .alg = BYI_ELT_RELU};
    static const struct byi_posts relu = {.n = 1, .at = &post};
    const struct byi_dnnl_conv conv = convolution(s, layout);
    const struct byi_desc *const operands[N_BUFFERS] = {
        &conv.src, &conv.weights, &conv.bias, &conv.dst};
    BYI_TRY(byi_prim_new_conv(lib, &conv, &relu, &c->prim, err));
    BYI_TRY(byi_prim_build(c->prim, err));
    for (uint32_t i = 0; i < N_BUFFERS; i++) {
        const uint64_t dense = dense_bytes(operands[i]);
        const uint64_t needed = byi_prim_bytes(c->prim, args[i]);
        c->buffers[i] = random_numbers(needed > dense ? needed : dense);
        if (!c->buffers[i])
            return byi_fail(err, BYOC_ENOMEM, "out of memory");
    }
    c->scratch = byi_acquire(byi_prim_scratch(c->prim) + BYI_DNNL_SLACK);
    if (!c->scratch)
        return byi_fail(err, BYOC_ENOMEM, "out of memory");
    c->best = 1e9;
    return byi_bound_new(lib, c->prim, N_BUFFERS, args, c->buffers, c->scratch,
                         &c->call, err);
}

static void free_variant(struct layout_variant *c)
{
    byi_bound_free(&c->call);
    byi_prim_free(&c->prim);
    for (uint32_t i = 0; i < N_BUFFERS; i++)
        byi_release(c->buffers[i]);
    byi_release(c->scratch);
}

/* --- measuring ------------------------------------------------------------ */

/* Run twice and time the second run: the first loads the caches, from which the
 * other layouts have evicted the data. */
static enum byoc_status take_turn(struct layout_variant *c,
                                  struct byoc_error *err)
{
    BYI_TRY(byi_bound_run(c->call, err));
    const double start = byi_now();
    BYI_TRY(byi_bound_run(c->call, err));
    const double seconds = byi_now() - start;
    c->best = seconds < c->best ? seconds : c->best;
    return BYOC_OK;
}

/* Time the layouts in turns, so that other load slows all of them. */
static enum byoc_status time_shape(struct layout_variant *c,
                                   const struct byi_dnnl *lib,
                                   const struct shape *s,
                                   struct byoc_error *err)
{
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        BYI_TRY(make_variant(&c[i], lib, s, (enum layout)i, err));
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < N_LAYOUTS; i++)
            BYI_TRY(take_turn(&c[i], err));
    return BYOC_OK;
}

/* --- reporting ------------------------------------------------------------ */

/* The name of the layout that oneDNN chose. */
static const char *chosen_layout(const struct byi_prim *prim, int arg,
                                 int64_t channels, int64_t size)
{
    for (uint32_t i = 0; i < ANY; i++) {
        const struct byi_desc d = describe((enum layout)i, channels, size);
        if (byi_prim_needs(prim, arg, &d))
            return layout_names[i];
    }
    return "other";
}

static void print_head(void)
{
    printf("oneDNN %s, %s, float32, 1 thread; ms, best of %d rounds\n\n",
           byi_dnnl_version(), byi_dnnl_isa(), ROUNDS);
    printf("| Convolution |");
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        printf(" %s |", layout_names[i]);
    printf(" any chose |\n| --- |");
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        printf(" ---: |");
    printf(" --- |\n");
}

static void print_row(const struct shape *s, const struct layout_variant *c)
{
    printf("| %dx%d ", (int)s->kernel, (int)s->kernel);
    if (s->depthwise)
        printf("depthwise %d", (int)s->in);
    else
        printf("%d→%d", (int)s->in, (int)s->out);
    printf(" @%d", (int)s->size);
    if (s->stride > 1)
        printf(", stride %d", (int)s->stride);
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        printf(" | %.3f", 1e3 * c[i].best);
    const struct byi_prim *any = c[ANY].prim;
    printf(" | %s to %s |\n", chosen_layout(any, BYI_ARG_SRC, s->in, s->size),
           chosen_layout(any, BYI_ARG_DST, s->out, result_size(s)));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc != 1) {
        fprintf(stderr, "usage: layouts\n");
        return 2;
    }
    struct byoc_error err;
    const struct byi_dnnl *lib = byi_dnnl_open(&err);
    enum byoc_status status = lib ? BYOC_OK : BYOC_EBACKEND;
    if (lib)
        print_head();
    for (uint32_t i = 0; i < BYI_COUNT(shapes) && status == BYOC_OK; i++) {
        struct layout_variant c[N_LAYOUTS] = {0};
        status = time_shape(c, lib, &shapes[i], &err);
        if (status == BYOC_OK)
            print_row(&shapes[i], c);
        for (uint32_t k = 0; k < N_LAYOUTS; k++)
            free_variant(&c[k]);
    }
    if (status != BYOC_OK)
        fprintf(stderr, "layouts: %s\n", err.text);
    return status == BYOC_OK ? 0 : 1;
}
