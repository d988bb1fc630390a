/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_i8.c: creates primitives on 8-bit integers, which byoc's
 * own kernels run exactly on every CPU (kernels/i8.h).
 */
#include "runtime_dnnl/layer_dnnl.h"

#include <assert.h>

#include "core/base/openmp.h"
#include "kernels/lookup.h"

/* An xor with this byte converts bytes of the type to unsigned bytes. */
static uint8_t flip_of(enum byoc_dtype dtype)
{
    return dtype == BYOC_I8 ? 0x80 : 0;
}

static bool is_bytes(const struct byi_desc *desc)
{
    return desc->dtype == BYOC_U8 || desc->dtype == BYOC_I8;
}

/* The zero point of the bytes after that xor. */
static int32_t flipped_zero(int64_t zero, enum byoc_dtype dtype)
{
    return (int32_t)zero + (dtype == BYOC_I8 ? 128 : 0);
}

/* --- convolutions and products -------------------------------------------- */

static const char *qconv_name(const struct byi_dn_fast *fast)
{
    return byi_i8_conv_name(&fast->i8);
}

static uint64_t qconv_scratch(const struct byi_dn_fast *fast)
{
    return byi_i8_conv_scratch(&fast->i8, fast->threads);
}

static uint64_t qconv_packed(const struct byi_dn_fast *fast, int arg)
{
    (void)arg;
    return byi_i8_conv_packed(&fast->i8);
}

/* Pack the weights (O, I, k...) at `from`, which `src` describes. */
static void pack_qconv(const struct byi_dn_fast *fast, int arg,
                       const struct byi_desc *src, const void *from, void *to)
{
    struct byi_i8_weights w = {.at = from};
    const uint32_t n = src->rank - 2;
    w.strides[0] = src->strides[0];
    w.strides[1] = src->strides[1];
    for (uint32_t i = 0; i < n; i++)
        w.strides[2 + BYI_I8_AXES - n + i] = src->strides[2 + i];
    (void)arg;
    byi_i8_conv_pack(&fast->i8, &w, to);
}

static bool qconvs_pack_alike(const struct byi_dn_fast *a,
                              const struct byi_dn_fast *b)
{
    return byi_i8_conv_packs_alike(&a->i8, &b->i8);
}

static void run_qconv(const struct byi_dn_fast *fast, uint32_t n,
                      const struct byi_dn_fast_slot *slots, void *scratch,
                      int threads)
{
    struct byi_i8_conv_run run = {
        .conv = &fast->i8,
        .x = byi_dn_fast_find(n, slots, BYI_ARG_SRC),
        .packed = byi_dn_fast_find(n, slots, BYI_ARG_WEIGHTS),
        .x_zero = (uint8_t)fast->src_zero,
        .bias = byi_dn_fast_find(n, slots, BYI_ARG_BIAS),
        .scale = byi_dn_fast_find(n, slots, BYI_ARG_SCALE),
        .bias_step = 1,
        .scale_step = 1,
        .low = fast->low,
        .high = fast->high,
        .zero = (int32_t)fast->zero,
        .summand = fast->summand,
        .activation = &fast->activation,
        .y = byi_dn_fast_find(n, slots, BYI_ARG_DST),
        .scratch = scratch,
        .threads = threads};
    run.summand.at = byi_dn_fast_find(n, slots, BYI_ARG_SRC1);
    byi_i8_conv_run(&run);
}

static const struct byi_dn_fast_kind qconv_kind = {
    .name = qconv_name,
    .scratch = qconv_scratch,
    .packed = qconv_packed,
    .pack = pack_qconv,
    .packs_alike = qconvs_pack_alike,
    .run = run_qconv,
};

static bool has_sum(const struct byi_dnnl_qconv *p)
{
    return p->add.kind == BYI_QELEMENTWISE_ADD;
}

static struct byi_i8_summand read_summand(const struct byi_dnnl_qelementwise *p)
{
    return (struct byi_i8_summand){
        .flip = flip_of(p->src1.dtype),
        .b_zero = flipped_zero(p->src1_zero, p->src1.dtype),
        .q_scale = p->src_scale,
        .b_scale = p->src1_scale,
        .scale = p->scale,
        .low = p->low,
        .high = p->high,
        .zero = (int32_t)p->zero};
}

static bool read_qconv(const struct byi_dnnl_qconv *p, struct byi_i8_conv *conv)
{
    const struct byi_dnnl_window *w = &p->window;
    const uint32_t n = w->n, skip = BYI_I8_AXES - n;
    if (n > BYI_I8_AXES || p->weights.rank != n + 2 ||
        p->weights.dtype != BYOC_I8 || !is_bytes(&p->src) ||
        !byi_dn_is_dense_last(&p->src, p->src.dtype) ||
        !byi_dn_is_dense_last(&p->dst, p->dst.dtype) ||
        (!is_bytes(&p->dst) && p->dst.dtype != BYOC_F32) ||
        byi_elements(p->dst.rank, p->dst.dims) <= 0)
        return false;
    *conv =
        (struct byi_i8_conv){.images = p->src.dims[0],
                             .channels = p->src.dims[1],
                             .outputs = p->dst.dims[1],
                             .groups = p->src.dims[1] / p->weights.dims[1],
                             .x_signed = p->src.dtype == BYOC_I8,
                             .w_signed = true,
                             .centred = true,
                             .result = has_sum(p)          ? BYI_I8_ADDED
                                       : is_bytes(&p->dst) ? BYI_I8_QUANTIZED
                                                           : BYI_I8_FLOATS};
    for (uint32_t i = 0; i < BYI_I8_AXES; i++) {
        const bool exists = i >= skip;
        conv->in[i] = exists ? p->src.dims[2 + i - skip] : 1;
        conv->out[i] = exists ? p->dst.dims[2 + i - skip] : 1;
        conv->size[i] = exists ? w->kernel[i - skip] : 1;
        conv->stride[i] = exists ? w->stride[i - skip] : 1;
        conv->dilation[i] = exists ? w->dilation[i - skip] : 1;
        conv->pad[i] = exists ? w->begin[i - skip] : 0;
    }
    return true;
}

/* Read post-ops as float32 functions; false if the kernels lack one of them. */
static bool read_activation(const struct byi_posts *posts,
                            struct byi_i8_activation *to)
{
    for (uint32_t i = 0, read = 0; i < posts->n; i += read) {
        struct byi_f32_epilogue_op op;
        if (posts->at[i].kind != BYI_POST_ELT || to->n == BYI_I8_FUNCTIONS)
            return false;
        read = byi_dn_fast_unary(posts, i, &op);
        if (!read)
            return false;
        to->functions[to->n].unary = op.unary;
        to->functions[to->n].p0 = op.p0;
        to->functions[to->n++].p1 = op.p1;
    }
    return true;
}

bool byi_qconv_has_posts(const struct byi_posts *posts)
{
    struct byi_i8_activation activation = {.n = 0};
    return read_activation(posts, &activation);
}

BYI_CREATOR(qconv)
{
    struct byi_dn_fast fast = {.kind = &qconv_kind};
    (void)lib;
    if (posts && (!is_bytes(&p->dst) || has_sum(p) ||
                  !read_activation(posts, &fast.activation)))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "8-bit convolution: found post-ops, expected "
                        "elementwise ones and an 8-bit result without a "
                        "summand; run others as separate primitives");
    if (!read_qconv(p, &fast.i8))
        return byi_fail(
            err, BYOC_EUNSUPPORTED,
            "8-bit convolution: found data of type %s and weights of type %s, "
            "expected int8 or uint8 data, channels last, and int8 weights",
            byoc_dtype_name(p->src.dtype), byoc_dtype_name(p->weights.dtype));
    if (posts)
        fast.i8.result = BYI_I8_ACTIVATED;
    fast.activation.scale = p->scale;
    byi_i8_conv_plan(&fast.i8);
    fast.src_zero = p->src_zero;
    fast.zero = p->zero;
    fast.low = p->low;
    fast.high = p->high;
    fast.summand = read_summand(&p->add);
    fast.threads = omp_get_max_threads();
    return byi_prim_wrap_fast(&fast, prim, err);
}

/* --- elementwise ---------------------------------------------------------- */

static const char *qelementwise_name(const struct byi_dn_fast *fast)
{
    (void)fast;
    return "i8_elementwise";
}

/* Convert n bytes, by a table of the results for all bytes. */
static void requantize(const struct byi_dnnl_qelementwise *p, const uint8_t *x,
                       int64_t n, uint8_t *y)
{
    enum { ENTRIES = 256 };
    const struct byi_i8_kernels *k = byi_i8_kernels();
    uint8_t bytes[ENTRIES], table[ENTRIES];
    float floats[ENTRIES];
    for (int i = 0; i < ENTRIES; i++)
        bytes[i] = (uint8_t)i;
    k->dequantize(bytes, ENTRIES, flip_of(p->src.dtype),
                  flipped_zero(p->src_zero, p->src.dtype), p->src_scale,
                  floats);
    k->quantize(floats, ENTRIES, p->scale, p->low, p->high, (int32_t)p->zero,
                table);
    byi_lookup_of(byi_isa_widest())->run(x, table, y, n);
}

/* The sum of n bytes after an exclusive or with `flip`. */
static uint32_t sum_bytes(const uint8_t *x, int64_t n, uint8_t flip)
{
    typedef uint16_t pairs
        __attribute__((vector_size(32), aligned(1), may_alias));
    enum {
        BYTES = sizeof(pairs),
        MAX_PAIRS = 128
    }; /* sums of so many pairs fit */
    uint32_t total = 0;
    while (n >= BYTES) {
        pairs sums = {0};
        for (int i = 0; i < MAX_PAIRS && n >= BYTES;
             i++, n -= BYTES, x += BYTES) {
            const pairs v = *(const pairs *)x ^ (uint16_t)(flip * 0x101);
            sums += (v & 0xff) + (v >> 8);
        }
        for (size_t i = 0; i < BYTES / sizeof sums[0]; i++)
            total += sums[i];
    }
    for (int64_t i = 0; i < n; i++)
        total += x[i] ^ flip;
    return total;
}

/* Compute the means of rows [at, at + n). */
static void average_rows(const struct byi_dnnl_qelementwise *p,
                         const uint8_t *src, float *y, int64_t at, int64_t n)
{
    const int64_t length = p->src.dims[1];
    const int64_t zeros = length * flipped_zero(p->src_zero, p->src.dtype);
    const double scale = (double)p->src_scale / (double)length;
    for (int64_t i = at; i < at + n; i++) {
        const uint32_t sum =
            sum_bytes(src + i * length, length, flip_of(p->src.dtype));
        y[i] = (float)((double)((int64_t)sum - zeros) * scale);
    }
}

/* Compute elements [at, at + n). */
static void run_range(const struct byi_dnnl_qelementwise *p, const void *src,
                      const void *src1, void *dst, int64_t at, int64_t n)
{
    const struct byi_i8_kernels *k = byi_i8_kernels();
    const uint8_t *x = (const uint8_t *)src + at;
    const uint8_t flip = flip_of(p->src.dtype);
    const int32_t zero = flipped_zero(p->src_zero, p->src.dtype);
    if (p->kind == BYI_QELEMENTWISE_QUANTIZE) {
        k->quantize((const float *)src + at, n, p->scale, p->low, p->high,
                    (int32_t)p->zero, (uint8_t *)dst + at);
        return;
    }
    if (p->kind == BYI_QELEMENTWISE_REQUANTIZE) {
        requantize(p, x, n, (uint8_t *)dst + at);
        return;
    }
    if (p->kind == BYI_QELEMENTWISE_DEQUANTIZE) {
        k->dequantize(x, n, flip, zero, p->src_scale, (float *)dst + at);
        return;
    }
    if (p->kind == BYI_QELEMENTWISE_LOOKUP) {
        byi_lookup_of(byi_isa_widest())->run(x, src1, (uint8_t *)dst + at, n);
        return;
    }
    if (p->kind == BYI_QELEMENTWISE_MEAN) {
        average_rows(p, src, dst, at, n);
        return;
    }
    const struct byi_i8_elementwise sum = {
        .a = x,
        .b = (const uint8_t *)src1 + at,
        .y = (uint8_t *)dst + at,
        .n = n,
        .zeros = {zero, flipped_zero(p->src1_zero, p->src1.dtype)},
        .flips = {flip, flip_of(p->src1.dtype)},
        .scales = {p->src_scale, p->src1_scale},
        .scale = p->scale,
        .low = p->low,
        .high = p->high,
        .zero = (int32_t)p->zero,
        .multiplies = p->kind == BYI_QELEMENTWISE_MUL};
    k->elementwise(&sum);
}

static void run_qelementwise(const struct byi_dn_fast *fast, uint32_t n,
                             const struct byi_dn_fast_slot *slots,
                             void *scratch, int threads)
{
    enum { PART = 1 << 15 }; /* elements for which another thread saves time */
    const struct byi_dnnl_qelementwise *p = &fast->qelementwise;
    const int64_t elements = byi_elements(p->dst.rank, p->dst.dims);
    const int64_t work =
        byi_max(elements, byi_elements(p->src.rank, p->src.dims));
    const int64_t parts =
        byi_max(1, byi_min(elements, byi_min(work / PART, threads)));
    const void *src = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
    const void *src1 = byi_dn_fast_find(n, slots, BYI_ARG_SRC1);
    void *dst = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    (void)scratch;
#pragma omp parallel for num_threads((int)parts) if (parts > 1) schedule(static)
    for (int64_t i = 0; i < parts; i++) {
        const int64_t begin = elements * i / parts;
        run_range(p, src, src1, dst, begin, elements * (i + 1) / parts - begin);
    }
}

static const struct byi_dn_fast_kind qelementwise_kind = {
    .name = qelementwise_name,
    .run = run_qelementwise,
};

BYI_CREATOR(qelementwise)
{
    struct byi_dn_fast fast = {.kind = &qelementwise_kind, .qelementwise = *p};
    (void)lib;
    assert(!posts);
    (void)posts;
    fast.threads = omp_get_max_threads();
    return byi_prim_wrap_fast(&fast, prim, err);
}
