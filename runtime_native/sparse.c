/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c: nn.sparse_dense and nn.sparse_conv2d: products Y = W X, where most
 * weights W (m, k) are zero. W is packed as blocks of 4 outputs by 256 inputs.
 * For each pattern of nonzeros among the 4 outputs, a block lists the inputs
 * with this pattern; byi_simd's `sparse` loops run over these lists. X is
 * packed in panels of columns, like B of a dense product. If a panel of X has
 * an infinity or NaN, the zeros of W are multiplied too. So results equal those
 * of nn.dense and nn.conv2d up to the order of sums. */
#include "conv.h"

#include "kernels/conv.h"

enum {
    ROWS = BYI_SPARSE_ROWS,
    PATTERNS = 1 << ROWS,
    /* inputs of a block: a panel of X fits the first-level cache */
    DEPTH = 256,
    SHORT_LIST = 8,   /* shorter lists are split into lists of rows    */
    MIN_COLUMNS = 16, /* of X: with fewer, the dense product is faster */
};

static const struct byi_f32_kernels *kernels_used(void)
{
    return byi_f32_kernels_of(byi_simd_isa());
}

/* --- packed weights --------------------------------------------------------
 * A block (ROWS outputs, DEPTH inputs) is a sequence of lists, ended by a zero
 * word. A list is a word with the pattern and the number of inputs, then the
 * offsets of these inputs in a panel of X, then their weights.
 */

struct packed_sparse {
    int64_t m, k;
    int64_t strips, blocks; /* strips of ROWS outputs; blocks of a strip */
    int64_t at[];           /* first word of a block, by block and strip */
};

static int64_t header_bytes(int64_t strips, int64_t blocks)
{
    return (int64_t)byi_align_bytes(sizeof(struct packed_sparse) +
                                    (uint64_t)(strips * blocks) *
                                        sizeof(int64_t));
}

static const uint32_t *block_of(const struct packed_sparse *s, int64_t block,
                                int64_t strip)
{
    const char *words = (const char *)s + header_bytes(s->strips, s->blocks);
    return (const uint32_t *)(const void *)words +
           s->at[block * s->strips + strip];
}

/* The lists to which a block's inputs belong: an input is in the list of its
 * pattern. If few inputs have the pattern, it is `split`: its inputs are in the
 * list of each row in the pattern. */
struct sparse_block {
    const float *weights; /* of the block; rows are k apart */
    int64_t k, inputs;
    uint8_t pattern[DEPTH];
    bool split[PATTERNS];
};

static void read_block(const float *weights, int64_t k, int64_t rows,
                       int64_t inputs, struct sparse_block *b)
{
    int64_t count[PATTERNS] = {0};
    *b = (struct sparse_block){.weights = weights, .k = k, .inputs = inputs};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < inputs; i++)
            b->pattern[i] |= (uint8_t)((weights[r * k + i] != 0) << r);
    for (int64_t i = 0; i < inputs; i++)
        count[b->pattern[i]]++;
    for (uint32_t p = 0; p < PATTERNS; p++)
        b->split[p] = (p & (p - 1)) && count[p] < SHORT_LIST;
}

/* Write the list of one pattern; returns its length in words. */
static int64_t write_list(const struct sparse_block *b, uint32_t pattern,
                          uint32_t *to)
{
    const bool single = !(pattern & (pattern - 1));
    int32_t at[DEPTH];
    int64_t n = 0;
    if (b->split[pattern])
        return 0;
    for (int64_t i = 0; i < b->inputs; i++) {
        const uint32_t p = b->pattern[i];
        if (p == pattern || (single && b->split[p] && (p & pattern)))
            at[n++] = (int32_t)i;
    }
    const int64_t words_per_input = 1 + __builtin_popcount(pattern);
    if (n == 0 || !to)
        return n ? 1 + n * words_per_input : 0;
    *to++ = pattern | (uint32_t)n << ROWS;
    for (int64_t i = 0; i < n; i++)
        *to++ = (uint32_t)(at[i] * byi_simd()->panel);
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = 0; r < ROWS; r++)
            if (pattern >> r & 1)
                memcpy(to++, &b->weights[r * b->k + at[i]], sizeof *to);
    return 1 + n * words_per_input;
}

static int64_t write_block(const struct sparse_block *b, uint32_t *to)
{
    int64_t n = 0;
    for (uint32_t pattern = 1; pattern < PATTERNS; pattern++)
        n += write_list(b, pattern, to ? to + n : NULL);
    if (to)
        to[n] = 0;
    return n + 1;
}

static uint64_t pack_weights(const float *weights, int64_t m, int64_t k,
                             void *to)
{
    struct packed_sparse s = {.m = m,
                              .k = k,
                              .strips = byi_ceil_div(m, ROWS),
                              .blocks = byi_ceil_div(k, DEPTH)};
    const int64_t header = header_bytes(s.strips, s.blocks);
    struct packed_sparse *packed = to;
    uint32_t *words =
        to ? (uint32_t *)(void *)((char *)to + header) : (uint32_t *)NULL;
    int64_t n = 0;
    if (to)
        *packed = s;
    for (int64_t i = 0; i < s.blocks * s.strips; i++) {
        const int64_t k0 = i / s.strips * DEPTH, m0 = i % s.strips * ROWS;
        struct sparse_block b;
        read_block(weights + m0 * k + k0, k, byi_min(ROWS, m - m0),
                   byi_min(DEPTH, k - k0), &b);
        if (to)
            packed->at[i] = n;
        n += write_block(&b, to ? words + n : NULL);
    }
    return (uint64_t)header + (uint64_t)n * sizeof(uint32_t);
}

/* --- the product ---------------------------------------------------------- */

/* Packs rows [k0, k0 + kc) and columns [n0, n0 + nc) of X of a batch, nc <= nr,
 * to dst[k * nr + n], with zeros for n >= nc. */
typedef void (*sparse_pack_fn)(const void *ctx, int64_t batch, int64_t k0,
                               int64_t kc, int64_t n0, int64_t nc, int64_t nr,
                               float *dst);

/* A product Y = W X of each batch: W (m, k), X (k, n), Y (m, n). */
struct sparse_product {
    const struct packed_sparse *packed;
    const float *weights; /* (m, k), not packed */
    int64_t m, k, n;
    int64_t batches; /* of X and Y */
    sparse_pack_fn pack_x;
    const void *ctx;
    float *y;
    /* element (row, column) is y[row * ldy + column], or y[column * ldy + row]
     * if transposed */
    int64_t ldy;
    bool transposed;
};

/* The division into tasks. A task is a panel of X and a part of the strips of
 * W.
 */
struct sparse_tiling {
    int64_t panels, parts, strips; /* `strips` of each part */
};

static struct sparse_tiling tiling_of(const struct sparse_product *p,
                                      uint32_t threads)
{
    const int64_t strips = byi_ceil_div(p->m, ROWS);
    struct sparse_tiling c = {.panels = byi_ceil_div(p->n, byi_simd()->panel),
                              .parts = 1};
    const int64_t tasks = byi_max(p->batches * c.panels, 1);
    if (threads > 1 && tasks < 4 * (int64_t)threads)
        c.parts = byi_min(strips, byi_ceil_div(4 * (int64_t)threads, tasks));
    c.strips = byi_ceil_div(strips, c.parts);
    c.parts = byi_ceil_div(strips, c.strips);
    return c;
}

/* Floats of scratch per thread, for a panel of X and the sums. */
static int64_t thread_floats(const struct sparse_product *p)
{
    return (DEPTH + byi_ceil_div(p->m, ROWS) * ROWS) * byi_simd()->panel;
}

static uint64_t sparse_bytes(const struct sparse_product *p, uint32_t threads)
{
    return (uint64_t)thread_floats(p) * sizeof(float) * threads;
}

/* Add the product of one strip's block with DEPTH rows of x to the sums. */
static void add_block(const struct sparse_product *p, int64_t block,
                      int64_t strip, const float *x, float *sums)
{
    const struct byi_simd *simd = byi_simd();
    const uint32_t *word = block_of(p->packed, block, strip);
    while (*word) {
        const uint32_t pattern = *word % PATTERNS;
        const int64_t n = *word / PATTERNS;
        const int32_t *at = (const int32_t *)(word + 1);
        const float *weights = (const float *)(const void *)(word + 1 + n);
        simd->sparse[pattern](n, at, weights, x, sums);
        word += 1 + n * (1 + __builtin_popcount(pattern));
    }
}

/* Like add_block, with all weights, for an x that has infinities or NaN. */
static void add_dense(const struct sparse_product *p, int64_t block,
                      int64_t strip, const float *x, float *sums)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t m0 = strip * ROWS, k0 = block * DEPTH;
    for (int64_t m = m0; m < byi_min(m0 + ROWS, p->m); m++)
        for (int64_t k = k0; k < byi_min(k0 + DEPTH, p->k); k++)
            simd->axpy(p->weights[m * p->k + k], x + (k - k0) * simd->panel,
                       sums + (m - m0) * simd->panel, simd->panel);
}

static void run_task(const struct sparse_product *p,
                     const struct sparse_tiling *c, int64_t task,
                     float *scratch)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t panel = simd->panel, strip0 = task % c->parts * c->strips;
    const int64_t strips = byi_min(c->strips, p->packed->strips - strip0);
    const int64_t batch = task / c->parts / c->panels;
    const int64_t n0 = task / c->parts % c->panels * panel;
    const int64_t nc = byi_min(panel, p->n - n0), m0 = strip0 * ROWS;
    const int64_t rows = byi_min(strips * ROWS, p->m - m0);
    float *x = scratch, *sums = scratch + DEPTH * panel;
    memset(sums, 0, (size_t)(strips * ROWS * panel) * sizeof *sums);
    for (int64_t block = 0; block < p->packed->blocks; block++) {
        const int64_t k0 = block * DEPTH, kc = byi_min(DEPTH, p->k - k0);
        p->pack_x(p->ctx, batch, k0, kc, n0, nc, panel, x);
        void (*const add)(const struct sparse_product *, int64_t, int64_t,
                          const float *, float *) =
            simd->finite(x, kc * panel) ? add_block : add_dense;
        for (int64_t strip = 0; strip < strips; strip++)
            add(p, block, strip0 + strip, x, sums + strip * ROWS * panel);
    }
    float *y = p->y + batch * p->m * p->n;
    if (p->transposed)
        byi_f32_transpose(kernels_used(), sums, panel, rows, nc,
                          y + n0 * p->ldy + m0, p->ldy);
    for (int64_t r = 0; r < rows && !p->transposed; r++)
        memcpy(y + (m0 + r) * p->ldy + n0, sums + r * panel,
               (size_t)nc * sizeof *y);
}

static void run_sparse(const struct sparse_product *p,
                       const struct byi_call *call)
{
    const int team = byi_team(call, p->batches * p->n * p->m * p->k / 4);
    const struct sparse_tiling c = tiling_of(p, (uint32_t)team);
    const int64_t tasks = p->batches * c.panels * c.parts;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(dynamic, 1)
    for (int64_t i = 0; i < tasks; i++)
        run_task(p, &c, i,
                 (float *)call->scratch + byi_part_number() * thread_floats(p));
}

/* --- packing X ------------------------------------------------------------ */

/* A sparse_pack_fn for data (columns of X, rows of X). */
static void pack_data(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                      int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct byi_call *call = ctx;
    const int64_t k = call->in[1].dims[1];
    (void)batch;
    for (int64_t i = 0; nc < nr && i < kc; i++)
        memset(dst + i * nr + nc, 0, (size_t)(nr - nc) * sizeof *dst);
    byi_f32_transpose(kernels_used(),
                      (const float *)call->in[0].data + n0 * k + k0, k, nc, kc,
                      dst, nr);
}

/* A run of outputs that are adjacent in a panel and in one row of the image. */
struct output_run {
    int64_t out[3]; /* coordinates of the first output */
    int64_t n;
};

/* Divide the positions [n0, n0 + nc) into runs; returns their number. */
static int cut_runs(const struct byi_window *w, int64_t n0, int64_t nc,
                    struct output_run *runs)
{
    int count = 0;
    for (int64_t at = 0; at < nc; at += runs[count++].n) {
        struct output_run *r = &runs[count];
        byi_unflatten(w->out, n0 + at, r->out);
        r->n = byi_min(nc - at, w->out[2] - r->out[2]);
    }
    return count;
}

/* Copy the inputs under tap kw of a run of outputs, with 0 for padding; `row`
 * has w->in[2] inputs. */
static void gather_row(const struct byi_window *w, const float *row,
                       const struct output_run *r, int64_t kw, float *dst)
{
    const int64_t stride = w->stride[2];
    const int64_t from = r->out[2] * stride - w->pad[2] + kw * w->dilation[2];
    int64_t first = from < 0 ? byi_ceil_div(-from, stride) : 0;
    int64_t last = from < w->in[2] ? byi_ceil_div(w->in[2] - from, stride) : 0;
    first = byi_min(first, r->n);
    last = byi_max(first, byi_min(last, r->n));

    for (int64_t i = 0; i < first; i++)
        dst[i] = 0;
    if (stride == 1)
        for (int64_t i = first; i < last; i++)
            dst[i] = row[from + i];
    else
        for (int64_t i = first; i < last; i++)
            dst[i] = row[from + i * stride];
    for (int64_t i = last; i < r->n; i++)
        dst[i] = 0;
}

/* Copy one row of the im2col matrix: the inputs x of a channel under `tap`, for
 * the outputs of these runs. */
static void gather(const struct byi_conv *v, const float *x,
                   const int64_t tap[3], const struct output_run *runs,
                   int n_runs, float *dst)
{
    const struct byi_window *w = &v->w;
    for (int i = 0; i < n_runs; dst += runs[i++].n) {
        const struct output_run *r = &runs[i];
        int64_t d =
            r->out[0] * w->stride[0] - w->pad[0] + tap[0] * w->dilation[0];
        int64_t h =
            r->out[1] * w->stride[1] - w->pad[1] + tap[1] * w->dilation[1];
        if (d < 0 || d >= w->in[0] || h < 0 || h >= w->in[1])
            memset(dst, 0, (size_t)r->n * sizeof(float));
        else
            gather_row(w, x + (d * w->in[1] + h) * w->in[2], r, tap[2], dst);
    }
}

/* A sparse_pack_fn for an image whose windows are the columns of X. */
static void pack_windows(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                         int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    enum { MAX_COLUMNS = 64 };
    const struct byi_conv *v = ctx;
    struct output_run runs[MAX_COLUMNS];
    assert(nr <= MAX_COLUMNS);
    const int n_runs = cut_runs(&v->w, n0, nc, runs);
    const float *x = (const float *)v->x + batch * v->c * v->w.in_count +
                     k0 / v->w.taps * v->w.in_count;
    int64_t tap[3];
    byi_unflatten(v->w.size, k0 % v->w.taps, tap);
    for (int64_t k = 0; k < kc; k++, dst += nr) {
        gather(v, x, tap, runs, n_runs, dst);
        for (int64_t i = nc; i < nr; i++)
            dst[i] = 0;
        int axis = 2;
        while (axis >= 0 && ++tap[axis] == v->w.size[axis])
            tap[axis--] = 0;
        if (axis < 0)
            x += v->w.in_count;
    }
}

/* A sparse_pack_fn for an image whose positions are the columns of X. */
static void pack_image(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                       int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct byi_conv *v = ctx;
    const int64_t count = v->w.in_count;
    const float *from = (const float *)v->x + (batch * v->c + k0) * count + n0;
    for (int64_t k = 0; k < kc; k++, from += count, dst += nr) {
        int64_t i = 0;
        for (; i + 4 <= nc; i += 4)
            memcpy(dst + i, from + i, 4 * sizeof *dst);
        for (; i < nr; i++)
            dst[i] = i < nc ? from[i] : 0;
    }
}

static struct sparse_product describe(const struct byi_call *call,
                                      const struct byi_conv *v)
{
    struct sparse_product p = {.packed = call->packed,
                               .weights = call->in[1].data,
                               .m = call->in[1].dims[0],
                               .k = byi_span(&call->in[1], 1, call->in[1].rank),
                               .y = call->out->data,
                               .batches = 1};
    if (call->op->id == BYI_OP_NN_SPARSE_DENSE) {
        p.n = byi_span(call->in, 0, call->in->rank - 1);
        p.ldy = p.m;
        p.transposed = true;
        p.pack_x = pack_data;
        p.ctx = call;
        return p;
    }
    p.n = p.ldy = v->w.out_count;
    p.batches = v->n;
    p.pack_x = byi_conv_is_pointwise(&v->w) ? pack_image : pack_windows;
    p.ctx = v;
    return p;
}

/* --- the dense operator --------------------------------------------------- */

/* The operator that computes the same without skipping zeros. */
static enum byi_op_id dense_op(enum byi_op_id op)
{
    return op == BYI_OP_NN_SPARSE_DENSE ? BYI_OP_NN_DENSE : BYI_OP_NN_CONV2D;
}

static struct byi_call dense_call(const struct byi_call *call)
{
    struct byi_call dense = *call;
    dense.op = byi_op(dense_op(call->op->id));
    dense.packed = NULL;
    return dense;
}

static const struct byi_kernel *kernel_of(const struct byi_call *dense)
{
    const bool is_conv = dense->op->id == BYI_OP_NN_CONV2D;
    return byi_kernel_in(is_conv ? &byi_rows_conv : &byi_rows_matmul,
                         dense->op->id);
}

/* --- the kernels ---------------------------------------------------------- */

/* Whether the sparse loops support the call; otherwise the dense kernel runs.
 */
static bool is_supported(const struct byi_call *call)
{
    return call->in->dtype == BYOC_F32 &&
           (call->op->id == BYI_OP_NN_SPARSE_DENSE ||
            (byi_attr_int(call->attrs, "groups") == 1 &&
             byi_layout_is_default(call->op, call->attrs)));
}

uint64_t byi_sparse_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *weights = &call->in[1];
    const int64_t k = byi_span(weights, 1, weights->rank);
    if (!is_supported(call) || weights->dims[0] == 0 || k == 0)
        return 0;
    return pack_weights(weights->data, weights->dims[0], k, to);
}

static uint64_t scratch_of(const struct byi_call *call)
{
    const struct byi_call dense = dense_call(call);
    const uint64_t bytes = kernel_of(&dense)->scratch(&dense);
    struct byi_conv v = {0};
    if (!is_supported(call))
        return bytes;
    if (dense.op->id == BYI_OP_NN_CONV2D)
        v = byi_conv_read(call);
    const struct sparse_product p = describe(call, &v);
    const uint64_t sparse = sparse_bytes(&p, call->threads);
    return sparse > bytes ? sparse : bytes;
}

static enum byoc_status run(const struct byi_call *call, struct byoc_error *err)
{
    const struct byi_call dense = dense_call(call);
    struct byi_conv v = {0};
    if (!call->packed)
        return kernel_of(&dense)->run(&dense, err);
    if (dense.op->id == BYI_OP_NN_CONV2D)
        v = byi_conv_read(call);
    const struct sparse_product p = describe(call, &v);
    if (p.n < MIN_COLUMNS)
        return kernel_of(&dense)->run(&dense, err);
    run_sparse(&p, call);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(sparse, {BYI_OP_NN_SPARSE_DENSE, {run, scratch_of}},
                {BYI_OP_NN_SPARSE_CONV2D, {run, scratch_of}})
