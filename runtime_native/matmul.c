/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: nn.dense and nn.matmul: matrix products with broadcast batches.
 *   nn.dense   (m, k) (n, k)^T              -> (m, n)
 *   nn.matmul  (..., m, k) (..., k, n)      -> (..., m, n), as numpy.matmul
 */
#include "matmul.h"

#include "kernels/product.h"

/* Strides of operand `t` along the result's batch axes; 0 where broadcast. */
static void batch_strides(const struct byi_tensor *t, uint32_t rank,
                          int64_t *strides)
{
    uint32_t own = t->rank > 2 ? t->rank - 2 : 0;
    for (uint32_t i = 0; i < rank; i++) {
        strides[i] = 0;
        if (i + own < rank)
            continue;
        uint32_t axis = i + own - rank;
        if (t->dims[axis] != 1)
            strides[i] = byi_span(t, axis + 1, t->rank);
    }
}

static void set_matrices(const struct byi_tensor *a, bool flip_a,
                         const struct byi_tensor *b, bool flip_b,
                         struct byi_product *p)
{
    int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    int64_t columns = a->dims[a->rank - 1];
    flip_a = flip_a && a->rank > 1;
    p->m = flip_a ? columns : rows;
    p->k = flip_a ? rows : columns;
    p->a_rs = flip_a ? 1 : columns;
    p->a_cs = flip_a ? columns : 1;

    rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
    columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    flip_b = flip_b && b->rank > 1;
    p->n = flip_b ? rows : columns;
    p->b_rs = flip_b ? 1 : columns;
    p->b_cs = flip_b ? columns : 1;
}

struct byi_product byi_product_read(const struct byi_call *call)
{
    const struct byi_tensor *a = &call->in[0], *b = &call->in[1];
    const bool dense = call->op->id == BYI_OP_NN_DENSE;
    struct byi_product p = {.a = a->data, .b = b->data, .c = call->out->data};
    set_matrices(a, !dense && byi_attr_int(call->attrs, "transpose_a"), b,
                 dense || byi_attr_int(call->attrs, "transpose_b"), &p);

    uint32_t most = a->rank > b->rank ? a->rank : b->rank;
    p.rank = most > 2 ? most - 2 : 0;
    batch_strides(a, p.rank, p.a_batch);
    batch_strides(b, p.rank, p.b_batch);
    p.batches = 1;
    for (uint32_t i = 0; i < p.rank; i++) {
        p.dims[i] = call->out->dims[i];
        p.batches *= p.dims[i];
    }
    return p;
}

void byi_product_fold(struct byi_product *p)
{
    int64_t stride = p->m * p->k;
    while (p->rank > 0 && p->a_cs == 1 && (p->a_rs == p->k || p->m == 1)) {
        const uint32_t i = p->rank - 1;
        if (p->dims[i] != 1 && (p->b_batch[i] != 0 || p->a_batch[i] != stride))
            return;
        p->a_rs = p->k; /* a single row may have been transposed */
        p->m *= p->dims[i];
        p->batches = p->dims[i] ? p->batches / p->dims[i] : 0;
        stride *= p->dims[i];
        p->rank--;
    }
}

int64_t byi_product_offset(const struct byi_product *p, const int64_t *strides,
                           int64_t batch)
{
    int64_t at = 0;
    for (uint32_t i = p->rank; i-- > 0;) {
        at += batch % p->dims[i] * strides[i];
        batch /= p->dims[i];
    }
    return at;
}

/* --- float32 ------------------------------------------------------------ */

static struct byi_f32_matrices matrices_of(const void *ctx, int64_t batch)
{
    const struct byi_product *p = ctx;
    return (struct byi_f32_matrices){
        .a = (const float *)p->a + byi_product_offset(p, p->a_batch, batch),
        .b = (const float *)p->b + byi_product_offset(p, p->b_batch, batch),
        .c = (float *)p->c + batch * p->m * p->n};
}

static void run_product(const struct byi_product *p,
                        const struct byi_call *call)
{
    const struct byi_f32_product product = {
        .kernels = byi_f32_kernels_of(byi_simd_isa()),
        .batches = p->batches,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a_rs = p->a_rs,
        .a_cs = p->a_cs,
        .b_rs = p->b_rs,
        .b_cs = p->b_cs,
        .ldc = p->n,
        .at = matrices_of,
        .ctx = p,
    };
    byi_f32_product_run(&product, (int)call->threads, call->scratch);
}

/* --- float32, B packed: a convolution of m images of one position --------- */

static struct byi_f32_conv packed_product(int64_t m, int64_t n, int64_t k)
{
    struct byi_f32_conv conv = {.kernels = byi_f32_kernels_of(byi_simd_isa()),
                                .images = m,
                                .channels = k,
                                .outputs = n,
                                .groups = 1};
    for (int i = 0; i < BYI_F32_AXES; i++)
        conv.in[i] = conv.out[i] = conv.size[i] = conv.stride[i] =
            conv.dilation[i] = 1;
    byi_f32_conv_plan(&conv, true);
    return conv;
}

static void run_packed(const struct byi_product *p, const struct byi_call *call)
{
    const struct byi_f32_conv conv = packed_product(p->m, p->n, p->k);
    byi_f32_conv_run(&(struct byi_f32_conv_run){.conv = &conv,
                                                .x = p->a,
                                                .weights = call->packed,
                                                .y = p->c,
                                                .scratch = call->scratch,
                                                .threads = (int)call->threads});
}

/* --- float32, few rows: B is read once, unpacked ------------------------- */

enum {
    FEW_DOTS = 8, /* rows, if B's columns are contiguous */
    FEW_ROWS = 4, /* rows, if B's rows are contiguous    */
    CHUNK = 512
};

/* Columns [j0, j0 + n) of all rows; B's columns are contiguous. */
static void thin_dots(const struct byi_product *p, int64_t batch, int64_t j0,
                      int64_t n)
{
    const struct byi_f32_matrices at = matrices_of(p, batch);
    for (int64_t j = j0; j < j0 + n; j++)
        for (int64_t i = 0; i < p->m; i++)
            at.c[i * p->n + j] =
                byi_simd()->dot(at.a + i * p->a_rs, at.b + j * p->b_cs, p->k);
}

/* Columns [j0, j0 + n) of all rows; B's rows are contiguous. */
static void thin_rows(const struct byi_product *p, int64_t batch, int64_t j0,
                      int64_t n)
{
    const struct byi_f32_matrices at = matrices_of(p, batch);
    float *c = at.c + j0;
    for (int64_t i = 0; i < p->m; i++)
        memset(c + i * p->n, 0, (size_t)n * sizeof(float));
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t i = 0; i < p->m; i++)
            byi_simd()->axpy(at.a[i * p->a_rs + k * p->a_cs],
                             at.b + k * p->b_rs + j0, c + i * p->n, n);
}

/* With few rows, most of a blocked product's tile would be empty. Dot products
 * of a long k stay accurate, since they accumulate in double. */
static bool run_thin(const struct byi_product *p, const struct byi_call *call)
{
    const bool dots = p->m <= FEW_DOTS && p->b_rs == 1 && p->a_cs == 1;
    const bool rows = p->m <= FEW_ROWS && p->b_cs == 1 && p->k <= 4096;
    if (p->n == 0 || (!dots && !rows))
        return false;
    const int64_t chunk = dots ? 16 : CHUNK;
    const int64_t parts = byi_ceil_div(p->n, chunk);
    const int team = byi_team(call, p->batches * p->m * p->n * p->k);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < p->batches * parts; task++) {
        const int64_t j0 = task % parts * chunk;
        (dots ? thin_dots : thin_rows)(p, task / parts, j0,
                                       byi_min(chunk, p->n - j0));
    }
    return true;
}

/* --- other element types: triple loop ------------------------------------ */

#define PLAIN(id, type, wide)                                                  \
    static void plain_##id(const struct byi_product *p, int64_t batch,         \
                           int64_t i)                                          \
    {                                                                          \
        const type *a = (const type *)p->a +                                   \
                        byi_product_offset(p, p->a_batch, batch) +             \
                        i * p->a_rs;                                           \
        const type *b =                                                        \
            (const type *)p->b + byi_product_offset(p, p->b_batch, batch);     \
        type *c = (type *)p->c + (batch * p->m + i) * p->n;                    \
        for (int64_t j = 0; j < p->n; j++) {                                   \
            wide sum = 0;                                                      \
            for (int64_t k = 0; k < p->k; k++)                                 \
                sum +=                                                         \
                    (wide)a[k * p->a_cs] * (wide)b[k * p->b_rs + j * p->b_cs]; \
            c[j] = (type)sum;                                                  \
        }                                                                      \
    }
BYI_EACH_SUM(PLAIN)

static void (*const plain[BYI_DTYPES])(const struct byi_product *, int64_t,
                                       int64_t) = {
#define ROW(id, type) [BYOC_##id] = plain_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

enum byoc_status byi_matmul_plain(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const struct byi_product p = byi_product_read(call);
    void (*run)(const struct byi_product *, int64_t, int64_t) =
        plain[call->in->dtype];
    if (!run)
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    const int64_t rows = p.batches * p.m;
    const int team = byi_team(call, rows * p.n * p.k);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t row = 0; row < rows; row++)
        run(&p, row / p.m, row % p.m);
    return BYOC_OK;
}

/* --- the kernel ---------------------------------------------------------- */

/* Are the rows of A those of one dense matrix, and B the same for all? */
static bool is_one_product(const struct byi_product *p)
{
    return p->batches == 1 && (p->a_cs == 1 || p->k == 1) &&
           (p->a_rs == p->k || p->m == 1) && p->n > 0 && p->m > 0 && p->k > 0;
}

uint64_t byi_dense_scratch(int64_t k, int64_t n, uint32_t threads)
{
    const struct byi_f32_conv conv = packed_product(2, n, k);
    const uint64_t packed = byi_f32_conv_scratch(&conv, (int)threads);
    const uint64_t bytes = byi_f32_product_scratch((int)threads);
    return packed > bytes ? packed : bytes;
}

static uint64_t product_scratch(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_product p = byi_product_read(call);
    return byi_dense_scratch(p.k, p.n, call->threads);
}

static enum byoc_status product_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_matmul_plain(call, err);
    struct byi_product p = byi_product_read(call);
    byi_product_fold(&p);
    if (call->packed && is_one_product(&p))
        run_packed(&p, call);
    else if (!run_thin(&p, call))
        run_product(&p, call);
    return BYOC_OK;
}

uint64_t byi_dense_pack(const float *b, int64_t rs, int64_t cs, int64_t k,
                        int64_t n, float *to)
{
    const struct byi_f32_conv conv = packed_product(1, n, k);
    if (to)
        byi_f32_conv_pack(
            &conv,
            &(struct byi_f32_weights){.at = b, .output = cs, .channel = rs}, to,
            1);
    return byi_f32_conv_packed(&conv);
}

/* Packs B if all batches share it. */
uint64_t byi_matmul_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *a = &call->in[0], *b = &call->in[1];
    if (a->dtype != BYOC_F32 || b->rank != 2 || byi_count(b) == 0)
        return 0;
    const bool dense = call->op->id == BYI_OP_NN_DENSE;
    struct byi_product p = {.b = b->data};
    set_matrices(b, false, b, dense || byi_attr_int(call->attrs, "transpose_b"),
                 &p);
    return byi_dense_pack(b->data, p.b_rs, p.b_cs, byi_count(b) / p.n, p.n, to);
}

BYI_FLOAT_KERNEL(matmul, product_run, product_scratch)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_DENSE, {matmul_run, matmul_scratch}},
    {BYI_OP_NN_MATMUL, {matmul_run, matmul_scratch}},
};
const struct byi_kernel_rows byi_rows_matmul = {rows, BYI_COUNT(rows)};
