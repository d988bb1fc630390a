/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_norm.c: creates primitives of softmax, reductions and
 * normalisations.
 */
#include "core/base/openmp.h"
#include "runtime_dnnl/layer_dnnl.h"
#include "runtime_dnnl/prim_fast.h"

/* --- softmax -------------------------------------------------------------- */

static const char *softmax_name(const struct byi_dn_fast *fast)
{
    (void)fast;
    return byi_f32_kernels()->softmax_name;
}

static void run_softmax(const struct byi_dn_fast *fast, uint32_t n,
                        const struct byi_dn_fast_slot *slots, void *scratch,
                        int threads)
{
    enum { PART = 1 << 14 }; /* elements for which another thread saves time */
    const struct byi_f32_kernels *k = byi_f32_kernels();
    const int64_t rows = fast->softmax.rows, columns = fast->softmax.columns;
    const int64_t useful_threads = byi_max(rows * columns / PART, 1);
    const int team = (int)byi_min(byi_min(useful_threads, rows), threads);
    const float *x = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
    float *y = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    (void)scratch;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        for (int64_t r = rows * i / team; r < rows * (i + 1) / team; r++)
            k->softmax[fast->softmax.log](x + r * columns, y + r * columns,
                                          columns);
}

static const struct byi_dn_fast_kind softmax_kind = {
    .name = softmax_name,
    .run = run_softmax,
};

/* Whether byoc's own kernels support the softmax. oneDNN's take 1.2 to 2 times
 * as long. */
static bool is_fast_softmax(const struct byi_dnnl_softmax *p,
                            const struct byi_posts *posts)
{
    const struct byi_desc *d = &p->src;
    return p->axis == 1 && d->rank == 2 && d->dtype == BYOC_F32 &&
           d->dims[0] > 0 && d->dims[1] > 0 && byi_dn_is_dense(d) &&
           !(posts && posts->n);
}

BYI_CREATOR(softmax)
{
    const dnnl_alg_kind_t kind =
        p->log ? dnnl_softmax_log : dnnl_softmax_accurate;
    const struct byi_desc *const descs[] = {&p->src};
    struct byi_pieces s;
    if (is_fast_softmax(p, posts)) {
        const struct byi_dn_fast fast = {
            .kind = &softmax_kind,
            .softmax = {p->src.dims[0], p->src.dims[1], p->log},
            .threads = omp_get_max_threads()};
        return byi_prim_wrap_fast(&fast, prim, err);
    }
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_PLAIN, err));
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status;
#if BYI_V3
    status = dnnl_softmax_forward_primitive_desc_create(
        &pd, lib->engine, dnnl_forward_inference, kind, BYI_MD(&s.md[0]),
        BYI_MD(&s.md[0]), (int)p->axis, s.attr);
#else
    dnnl_softmax_v2_desc_t d;
    status = dnnl_softmax_v2_forward_desc_init(&d, dnnl_forward_inference, kind,
                                               BYI_MD(&s.md[0]),
                                               BYI_MD(&s.md[0]), (int)p->axis);
    status = byi_pd_make(status, &d, &s, lib, &pd);
#endif
    return byi_prim_wrap(status, pd, &s, "softmax", prim, err);
}

/* --- reductions ----------------------------------------------------------- */

static const char *sum_name(const struct byi_dn_fast *fast)
{
    (void)fast;
    return byi_f32_kernels()->names[BYI_F32_VECTOR];
}

enum {
    COLUMNS = 1024, /* columns whose sums stay in the first-level cache */
    ROWS = 4096,    /* most summed rows of a part: longer sums are less
                     * accurate */
    PARTS = 8,      /* most parts that are made only to give threads work */
    PART_ROWS = 64  /* fewest rows of such a part */
};

/* The number of parts into which the n summed elements are divided. It does not
 * depend on the number of threads, so neither do the results. */
static int64_t sum_parts(const struct byi_dn_fast *fast)
{
    const int64_t min_parts = byi_ceil_div(fast->sum.n, ROWS);
    return fast->sum.inner == 1
               ? min_parts
               : byi_max(min_parts, byi_min(fast->sum.n / PART_ROWS, PARTS));
}

/* The number of summed elements in a part. */
static int64_t part_rows(const struct byi_dn_fast *fast)
{
    return byi_ceil_div(fast->sum.n, sum_parts(fast));
}

/* Bytes of scratch: a row of ones, then the sums of all parts. */
static uint64_t sum_scratch(const struct byi_dn_fast *fast)
{
    const int64_t sums = fast->sum.outer * fast->sum.inner * sum_parts(fast);
    return (uint64_t)(part_rows(fast) + sums) * sizeof(float);
}

static int64_t element_bytes(const struct byi_dn_fast *fast)
{
    return fast->sum.type == BYI_F32_WIDE ? 4 : 2;
}

/* Sum part `part` of columns [first, end) of a matrix, whose columns are
 * `column` elements apart, by a product with a vector of ones. */
static void sum_columns(const struct byi_dn_fast *fast, const float *ones,
                        const char *x, int64_t column, int64_t part,
                        int64_t first, int64_t end, float *to)
{
    const int64_t row = part * part_rows(fast);
    const int64_t size = element_bytes(fast);
    for (int64_t at = first; at < end; at += COLUMNS)
        byi_f32_kernels()->vector[fast->sum.type][column == 1](
            &(struct byi_f32_vector){
                .x = ones,
                .n = byi_min(part_rows(fast), fast->sum.n - row),
                .weights = x + (row * fast->sum.inner + at * column) * size,
                .row_stride = fast->sum.inner,
                .column_stride = column,
                .columns = byi_min(COLUMNS, end - at),
                .y = to + at});
}

/* Set y[0] to y[n - 1] to the sums or means of their columns. `sums` has n sums
 * of the first part, then those of the other parts. y may be `sums`. */
static void add_parts(const struct byi_dn_fast *fast, const float *sums,
                      int64_t n, float *y)
{
    const int64_t parts = sum_parts(fast);
    const float divisor = fast->sum.mean ? (float)fast->sum.n : 1;
    for (int64_t i = 0; i < n; i++) {
        float sum = sums[i];
        for (int64_t part = 1; part < parts; part++)
            sum += sums[part * n + i];
        y[i] = sum / divisor;
    }
}

/* Write the sums or means of n columns in the type of the data. */
static void write_sums(const struct byi_dn_fast *fast, float *sums, int64_t n,
                       char *y)
{
    if (fast->sum.type == BYI_F32_WIDE) {
        add_parts(fast, sums, n, (float *)(void *)y);
        return;
    }
    add_parts(fast, sums, n, sums);
    byi_f32_kernels()->narrow[fast->sum.type == BYI_F32_BF16](
        sums, (uint16_t *)(void *)y, n);
}

static void run_sum(const struct byi_dn_fast *fast, uint32_t n,
                    const struct byi_dn_fast_slot *slots, void *scratch,
                    int threads)
{
    enum { PART = 1 << 14 }; /* elements for which another thread saves time */
    /* if inner is 1, the outer rows are columns of one matrix, n elements apart
     */
    const bool transposed = fast->sum.inner == 1;
    const int64_t outer = transposed ? 1 : fast->sum.outer;
    const int64_t inner = transposed ? fast->sum.outer : fast->sum.inner;
    const int64_t parts = sum_parts(fast),
                  column = transposed ? fast->sum.n : 1;
    const int64_t useful_threads =
        byi_max(outer * inner * fast->sum.n / PART, 1);
    const int64_t cuts = transposed ? byi_min(threads, inner) : 1;
    const int64_t pieces = outer * parts * cuts;
    const int team = (int)byi_min(byi_min(useful_threads, pieces), threads);
    const int64_t size = element_bytes(fast);
    const char *x = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
    char *y = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    float *ones = scratch, *sums = ones + part_rows(fast);
    for (int64_t i = 0; i < part_rows(fast); i++)
        ones[i] = 1;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t o = i / cuts / parts, part = i / cuts % parts;
        sum_columns(fast, ones, x + o * fast->sum.n * inner * size, column,
                    part, inner * (i % cuts) / cuts,
                    inner * (i % cuts + 1) / cuts,
                    sums + (o * parts + part) * inner);
    }
    for (int64_t o = 0; o < outer; o++)
        write_sums(fast, sums + o * parts * inner, inner, y + o * inner * size);
}

static const struct byi_dn_fast_kind sum_kind = {
    .name = sum_name,
    .scratch = sum_scratch,
    .run = run_sum,
};

bool byi_dn_fast_reduce(const struct byi_dnnl_reduce *p,
                        struct byi_dn_fast *fast)
{
    enum { MIN_COLUMNS = 16 }; /* fewer columns would be summed one by one */
    const struct byi_desc *d = &p->src;
    const int64_t inner = d->rank == 3 ? d->dims[2] : 1;
    const bool mean = p->kind == BYI_REDUCE_MEAN;
    *fast = (struct byi_dn_fast){
        .kind = &sum_kind,
        .sum = {d->dims[0], d->dims[1], inner, mean, byi_f32_type_of(d->dtype)},
        .threads = omp_get_max_threads()};
    return byi_dn_is_float(d->dtype) && p->dst.dtype == d->dtype &&
           byi_dn_is_dense(d) && byi_dn_is_dense(&p->dst) &&
           byi_elements(d->rank, d->dims) > 0 &&
           (inner == 1 || inner >= MIN_COLUMNS);
}

BYI_CREATOR(reduce)
{
    static const dnnl_alg_kind_t kinds[] = {
        [BYI_REDUCE_SUM] = dnnl_reduction_sum,
        [BYI_REDUCE_MEAN] = dnnl_reduction_mean,
    };
    struct byi_dn_fast fast;
    BYI_TRY(byi_fault_status(byi_fault_elt_only(posts), err));
    if (byi_dn_fast_reduce(p, &fast)) {
        if (!posts || !posts->n)
            return byi_prim_wrap_fast(&fast, prim, err);
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "reduction: found %u post-ops, expected none, since "
                        "byoc's own kernel has none",
                        posts->n);
    }
    const struct byi_desc *const descs[] = {&p->src, &p->dst};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 2, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(reduction, reduction, kinds[p->kind], BYI_MD(&s.md[0]),
               BYI_MD(&s.md[1]), 0.0f, 0.0f);
    return byi_prim_wrap(status, pd, &s, "reduction", prim, err);
}

/* --- normalisations ------------------------------------------------------ */

BYI_CREATOR(layer_norm)
{
    BYI_TRY(byi_fault_status(byi_fault_elt_only(posts), err));
    const unsigned flags = (p->scale ? (unsigned)dnnl_use_scale : 0u) |
                           (p->shift ? (unsigned)dnnl_use_shift : 0u);
    const struct byi_desc *const descs[] = {&p->src};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(layer_normalization, layer_normalization_forward,
               dnnl_forward_inference,
               BYI_MD(&s.md[0]) BYI_AND(BYI_MD(&s.md[0])), NULL, p->epsilon,
               flags);
    return byi_prim_wrap(status, pd, &s, "layer normalisation", prim, err);
}

BYI_CREATOR(batch_norm)
{
    BYI_TRY(byi_fault_status(byi_fault_batch_norm(posts), err));
    const unsigned flags =
        (p->computes_mean ? 0u : (unsigned)dnnl_use_global_stats) |
        (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift;
    const struct byi_desc *const descs[] = {&p->src};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_WINDOWS, err));
    BYI_CREATE(batch_normalization, batch_normalization_forward,
               dnnl_forward_inference,
               BYI_MD(&s.md[0]) BYI_AND(BYI_MD(&s.md[0])), p->epsilon, flags);
    return byi_prim_wrap(status, pd, &s, "batch normalisation", prim, err);
}

BYI_CREATOR(lrn)
{
    const struct byi_desc *const descs[] = {&p->src};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_WINDOWS, err));
    BYI_CREATE(lrn, lrn_forward, dnnl_forward_inference,
               dnnl_lrn_across_channels,
               BYI_MD(&s.md[0]) BYI_AND(BYI_MD(&s.md[0])), p->size, p->alpha,
               p->beta, p->k);
    return byi_prim_wrap(status, pd, &s, "local response normalisation", prim,
                         err);
}
