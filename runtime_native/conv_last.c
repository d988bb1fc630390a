/* SPDX-License-Identifier: Apache-2.0 */
/* conv_last.c: float32 convolutions and transposed convolutions on the kernels
 * of kernels/conv.h, which need channels last. If channels are first, chunks of
 * images are transposed before and after the kernels run. With few channels,
 * the loop over one tap is short; rows are then copied with their padding, so
 * that all taps of a row are adjacent. Blocked layouts are converted as a
 * whole. */
#include "conv.h"

#include "epilogue.h"

enum {
    AXES = BYI_F32_AXES,
    CHUNK_POSITIONS = 2048, /* approximate, of all images of a chunk */
    STRIP = 128,            /* positions that are transposed together */
    FEW_CHANNELS = 16,
    /* positions of results for which transforming the weights in a run pays */
    MIN_TRANSFORMED = 1024
};

/* The header of packed weights, which follow it. */
struct packed_header {
    enum byi_f32_algorithm algorithm;
    bool exact; /* as they were planned: decides which groups are merged */
};

/* How to run a convolution on the kernels. */
struct conv_last {
    struct byi_f32_conv conv; /* describes the images of one chunk */
    struct byi_f32_weights weights;
    struct byi_epilogue_data epilogue;
    bool channels_first;
    bool blocked;   /* x and y are in blocks of channels */
    bool pads;      /* copy rows of x with their padding */
    int64_t chunks; /* number of chunks */
    int64_t most;   /* images of the largest chunk */
    /* bytes of the buffers in scratch (struct conv_last_memory); 0 if they are
     * not needed */
    uint64_t filter_bytes, packed_bytes, scratch_bytes, x_bytes, y_bytes;
    uint64_t all_x_bytes, all_y_bytes;
};

static const char *const channels_last_layouts[] = {"NC", "NWC", "NHWC",
                                                    "NDHWC"};
static const char *const plain_weights_layouts[] = {"OI", "OIW", "OIHW",
                                                    "OIDHW"};

/* --- describing ----------------------------------------------------------- */

static bool is_blocked(const struct byi_filter *at)
{
    return at->at_o.block > 1 || at->at_i.block > 1;
}

/* Set the members that packed weights depend on, besides the algorithm. */
static void describe_weights(const struct byi_call *call,
                             const struct byi_conv *v, struct conv_last *p)
{
    const struct byi_filter *at = &v->weights_layout;
    struct byi_f32_conv *conv = &p->conv;
    int64_t tap = at->tap;
    conv->kernels = byi_f32_kernels_of(byi_simd_isa());
    conv->groups = v->groups;
    conv->channels = v->c * v->groups;
    conv->outputs = v->o * v->groups;
    conv->transposed = v->transposed;
    for (int i = AXES - 1; i >= 0; i--) {
        conv->size[i] = v->w.size[i];
        conv->stride[i] = v->w.stride[i];
        conv->dilation[i] = v->w.dilation[i];
        conv->pad[i] = v->w.pad[i];
        p->weights.tap[i] = tap;
        tap *= v->w.size[i];
    }
    p->weights.at = v->weights;
    p->weights.output = at->at_o.outer;
    p->weights.channel = at->at_i.outer;
    p->weights.group =
        v->transposed ? v->c * at->at_i.outer : v->o * at->at_o.outer;
    if (is_blocked(at))
        p->filter_bytes =
            byi_align_bytes((uint64_t)byi_count(&call->in[1]) * sizeof(float));
}

/* Whether rows of x are copied with their padding, so that all taps of a row
 * are adjacent. The copy must not be much larger than x. */
static bool pads_rows(const struct byi_conv *v, const struct conv_last *p)
{
    const struct byi_f32_conv *conv = &p->conv;
    const int64_t columns_read =
        (conv->out[2] - 1) * conv->stride[2] + conv->size[2];
    return conv->algorithm == BYI_F32_DIRECT && conv->merged_groups == 1 &&
           !conv->slim && conv->size[2] > 1 && conv->dilation[2] == 1 &&
           conv->pad[2] >= 0 &&
           (p->channels_first ||
            (conv->channels < FEW_CHANNELS && columns_read != v->w.in[2])) &&
           byi_max(columns_read, conv->pad[2] + v->w.in[2]) <=
               2 * (conv->in[2] + conv->size[2]);
}

/* Bytes of scratch that suffice for chunks of the largest size and of one image
 * less. */
static uint64_t kernel_scratch(const struct conv_last *p, int threads)
{
    struct byi_f32_conv conv = p->conv;
    const uint64_t most = byi_f32_conv_scratch(&conv, threads);
    conv.images--;
    const uint64_t less =
        conv.images > 0 ? byi_f32_conv_scratch(&conv, threads) : 0;
    return byi_align_bytes(less > most ? less : most);
}

/* Set the members that depend on the images: chunks, copies and layouts. */
static void describe_images(const struct byi_call *call,
                            const struct byi_conv *v, struct conv_last *p)
{
    struct byi_f32_conv *conv = &p->conv;
    const bool same_layout = v->in.count == 1 && v->out.count == 1;
    p->channels_first = !v->in.last && v->in.block == 1 && !same_layout;
    p->blocked = !v->in.last && v->in.block > 1;
    if (call->packed)
        conv->algorithm =
            ((const struct packed_header *)call->packed)->algorithm;
    p->pads = pads_rows(v, p);
    if (p->pads) {
        conv->in[2] =
            byi_max((conv->out[2] - 1) * conv->stride[2] + conv->size[2],
                    conv->pad[2] + conv->in[2]);
        conv->pad[2] = 0;
    }
    const bool copies = p->channels_first || p->pads;
    p->most =
        copies ? byi_max(CHUNK_POSITIONS / byi_max(v->out.count, 1), 1) : v->n;
    p->chunks = byi_ceil_div(v->n, p->most);
    p->most = byi_ceil_div(v->n, p->chunks);
    conv->images = p->most;
    const uint64_t size = sizeof(float);
    if (copies)
        p->x_bytes = byi_align_bytes((uint64_t)(p->most * conv->channels *
                                                byi_f32_product_of(conv->in)) *
                                     size);
    if (p->channels_first)
        p->y_bytes = byi_align_bytes(
            (uint64_t)(p->most * conv->outputs * v->out.count) * size);
    if (p->blocked) {
        p->all_x_bytes = byi_align_bytes((uint64_t)byi_count(call->in) * size);
        p->all_y_bytes = byi_align_bytes((uint64_t)byi_count(call->out) * size);
    }
}

static struct conv_last describe(const struct byi_call *call,
                                 const struct byi_conv *v, bool exact)
{
    struct conv_last p = {0};
    const int64_t *in = v->transposed ? v->w.out : v->w.in;
    describe_weights(call, v, &p);
    memcpy(p.conv.in, in, sizeof p.conv.in);
    memcpy(p.conv.out, v->transposed ? v->w.in : v->w.out, sizeof p.conv.out);
    /* sums that start with a large bias round more, and only results that are
     * converted anyway can afford to add it later */
    byi_epilogue_read(call, v->in.last, &p.conv, &p.epilogue);
    const struct packed_header *packed = call->packed;
    const bool transforms = v->n * v->out.count >= MIN_TRANSFORMED;
    byi_f32_conv_plan(&p.conv, packed ? packed->exact : exact || !transforms);
    describe_images(call, v, &p);
    if (!call->packed)
        p.packed_bytes = byi_align_bytes(byi_f32_conv_packed(&p.conv));
    p.scratch_bytes = kernel_scratch(&p, (int)call->threads);
    return p;
}

static uint64_t bytes_of(const struct conv_last *p)
{
    return p->filter_bytes + p->packed_bytes + p->scratch_bytes + p->x_bytes +
           p->y_bytes + p->all_x_bytes + p->all_y_bytes;
}

/* Weights that were packed when dims were unknown may be for another algorithm
 * than the one chosen here, so the scratch suffices for both. */
uint64_t byi_conv_last_scratch(const struct byi_call *call,
                               const struct byi_conv *v)
{
    const struct conv_last planned = describe(call, v, call->exact);
    const struct conv_last exact = describe(call, v, true);
    const uint64_t a = bytes_of(&planned), b = bytes_of(&exact);
    return a > b ? a : b;
}

const char *byi_conv_last_algorithm(const struct byi_call *call,
                                    const struct byi_conv *v)
{
    const struct conv_last p = describe(call, v, call->exact);
    return byi_f32_conv_name(&p.conv);
}

uint64_t byi_conv_last_pack(const struct byi_call *call,
                            const struct byi_conv *v, void *to)
{
    struct conv_last p = {0};
    bool is_known = true;
    for (int i = 0; i < AXES; i++)
        is_known = is_known && v->w.in[i] >= 0 && v->w.out[i] >= 0;
    if (is_blocked(&v->weights_layout))
        return 0;
    describe_weights(call, v, &p);
    for (int i = 0; is_known && i < AXES; i++) {
        p.conv.in[i] = v->transposed ? v->w.out[i] : v->w.in[i];
        p.conv.out[i] = v->transposed ? v->w.in[i] : v->w.out[i];
    }
    const bool exact = call->exact || !is_known;
    byi_f32_conv_plan(&p.conv, exact);
    if (to) {
        *(struct packed_header *)to = (struct packed_header){
            .algorithm = p.conv.algorithm, .exact = exact};
        byi_f32_conv_pack(&p.conv, &p.weights,
                          (float *)(void *)((char *)to + BYI_ALIGN),
                          (int)call->threads);
    }
    return BYI_ALIGN + byi_f32_conv_packed(&p.conv);
}

/* --- copies --------------------------------------------------------------- */

/* Copy row i of the images at x, with its padding, to channels last. */
static void pad_row(const struct byi_conv *v, const struct conv_last *p,
                    const float *x, int64_t i, float *to)
{
    const struct byi_f32_conv *conv = &p->conv;
    const int64_t c = conv->channels, width = v->w.in[2], left = v->w.pad[2];
    const int64_t lines = v->w.in[0] * v->w.in[1];
    memset(to, 0, (size_t)(left * c) * sizeof *to);
    memset(to + (left + width) * c, 0,
           (size_t)((conv->in[2] - left - width) * c) * sizeof *to);
    if (p->channels_first)
        byi_f32_transpose(conv->kernels,
                          x + (i / lines * c * lines + i % lines) * width,
                          lines * width, c, width, to + left * c, c);
    else
        memcpy(to + left * c, x + i * width * c,
               (size_t)(width * c) * sizeof *to);
}

/* Copy n images to channels last. */
static void copy_images(const struct byi_call *call, const struct byi_conv *v,
                        const struct conv_last *p, const float *x, int64_t n,
                        float *to)
{
    const struct byi_f32_conv *conv = &p->conv;
    const int64_t c = conv->channels, count = v->in.count;
    const int64_t strips = byi_ceil_div(count, STRIP);
    const int64_t lines = v->w.in[0] * v->w.in[1];
    const int64_t tasks = n * (p->pads ? lines : strips);
    const int team = byi_team(call, n * c * count);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < tasks; i++) {
        const int64_t at = i % strips * STRIP;
        if (p->pads)
            pad_row(v, p, x, i, to + i * conv->in[2] * c);
        else
            byi_f32_transpose(conv->kernels, x + i / strips * c * count + at,
                              count, c, byi_min(STRIP, count - at),
                              to + (i / strips * count + at) * c, c);
    }
}

/* Copy n images of results to channels first. */
static void copy_results(const struct byi_call *call, const struct byi_conv *v,
                         const struct conv_last *p, const float *from,
                         int64_t n, float *y)
{
    const int64_t o = p->conv.outputs, count = v->out.count;
    const int64_t strips = byi_ceil_div(count, STRIP);
    const int team = byi_team(call, n * o * count);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < n * strips; i++) {
        const int64_t at = i % strips * STRIP;
        byi_f32_transpose(p->conv.kernels, from + (i / strips * count + at) * o,
                          o, byi_min(STRIP, count - at), o,
                          y + i / strips * o * count + at, count);
    }
}

/* Convert the result from channels last to the blocked layout. */
static void convert_result(const struct byi_call *call,
                           const struct byi_conv *v, void *last)
{
    const uint32_t spatial = v->out.spatial;
    struct byi_tensor t = {
        .data = last, .dtype = BYOC_F32, .rank = spatial + 2};
    t.dims[0] = v->n;
    for (uint32_t i = 0; i < spatial; i++)
        t.dims[1 + i] = v->out.space[i];
    t.dims[1 + spatial] = v->out.c;
    byi_relayout_named(call, &t, channels_last_layouts[spatial],
                       byi_attr_string(call->attrs, "data_layout"),
                       call->out->data);
}

/* Convert blocked weights to plain ones. */
static void convert_weights(const struct byi_call *call,
                            const struct byi_conv *v, struct conv_last *p,
                            void *to)
{
    const int64_t o = v->weights_layout.o, i = v->weights_layout.i,
                  taps = v->w.taps;
    byi_relayout_named(call, &call->in[1],
                       byi_attr_string(call->attrs, "kernel_layout"),
                       plain_weights_layouts[v->in.spatial], to);
    p->weights.at = to;
    p->weights.output = i * taps;
    p->weights.channel = taps;
    p->weights.group = v->transposed ? v->c * taps : o / v->groups * i * taps;
    p->weights.tap[2] = 1;
    p->weights.tap[1] = v->w.size[2];
    p->weights.tap[0] = v->w.size[1] * v->w.size[2];
}

/* --- running -------------------------------------------------------------- */

/* The buffers in scratch: weights in a plain layout, packed weights, scratch of
 * the kernels, a chunk of x and of y with channels last, and all of x and y
 * with channels last if their layout is blocked. */
struct conv_last_memory {
    char *filter, *packed, *scratch, *x, *y, *all_x, *all_y;
};

static struct conv_last_memory divide(const struct conv_last *p, char *at)
{
    struct conv_last_memory r = {.filter = at};
    r.packed = r.filter + p->filter_bytes;
    r.scratch = r.packed + p->packed_bytes;
    r.x = r.scratch + p->scratch_bytes;
    r.y = r.x + p->x_bytes;
    r.all_x = r.y + p->y_bytes;
    r.all_y = r.all_x + p->all_x_bytes;
    return r;
}

/* Run the kernels on one chunk after the other, with copies of its images and
 * results if the layout requires them. */
static void run_chunks(const struct byi_call *call, const struct byi_conv *v,
                       struct conv_last *p, struct byi_f32_conv_run *run,
                       const struct conv_last_memory *memory)
{
    const float *x = v->x;
    float *y = v->y;
    const int64_t in = p->conv.channels * v->in.count;
    const int64_t out = p->conv.outputs * v->out.count;
    for (int64_t i = 0; i < p->chunks; i++) {
        const int64_t first = v->n * i / p->chunks;
        const int64_t n = v->n * (i + 1) / p->chunks - first;
        p->conv.images = n;
        run->x = p->x_bytes ? (const float *)(const void *)memory->x
                            : x + first * in;
        run->y = p->y_bytes ? (float *)(void *)memory->y : y + first * out;
        byi_epilogue_set_row(&p->conv, &p->epilogue, first * v->out.count, run);
        if (p->x_bytes)
            copy_images(call, v, p, x + first * in, n,
                        (float *)(void *)memory->x);
        byi_f32_conv_run(run);
        if (p->y_bytes)
            copy_results(call, v, p, run->y, n, y + first * out);
    }
}

enum byoc_status byi_conv_last_run(const struct byi_call *call,
                                   const struct byi_conv *conv,
                                   struct byoc_error *err)
{
    BYI_TRY(byi_epilogue_check(call, err));
    struct byi_conv v = *conv;
    struct conv_last p = describe(call, &v, call->exact);
    const struct conv_last_memory memory = divide(&p, call->scratch);
    struct byi_f32_conv_run run = {.conv = &p.conv,
                                   .scratch = memory.scratch,
                                   .threads = (int)call->threads};
    if (p.filter_bytes)
        convert_weights(call, &v, &p, memory.filter);
    if (p.packed_bytes)
        byi_f32_conv_pack(&p.conv, &p.weights, (float *)(void *)memory.packed,
                          (int)call->threads);
    run.weights =
        (const float *)(const void *)(p.packed_bytes
                                          ? memory.packed
                                          : (const char *)call->packed +
                                                BYI_ALIGN);
    if (p.blocked) {
        byi_relayout_named(call, call->in,
                           byi_attr_string(call->attrs, "data_layout"),
                           channels_last_layouts[v.in.spatial], memory.all_x);
        v.x = memory.all_x;
        v.y = memory.all_y;
    }
    run_chunks(call, &v, &p, &run, &memory);
    if (p.blocked)
        convert_result(call, &v, v.y);
    return BYOC_OK;
}
