/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: nn.dense and nn.matmul: matrix products with broadcast batches.
 *   nn.dense   (m, k) (n, k)^T              -> (m, n)
 *   nn.matmul  (..., m, k) (..., k, n)      -> (..., m, n), as numpy.matmul
 */
#include "matmul.h"

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
    if (p->a_cs != 1)
        return;
    int64_t stride = p->m * p->k;
    for (uint32_t i = p->rank; i-- > 0;) {
        if (p->dims[i] == 1)
            continue;
        if (p->b_batch[i] != 0 || p->a_batch[i] != stride)
            return;
        stride *= p->dims[i];
    }
    p->m *= p->batches;
    p->a_rs = p->k; /* a single row may have been transposed */
    p->batches = 1;
    p->rank = 0;
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

static struct byi_matrix matrix_a(const void *ctx, int64_t batch)
{
    const struct byi_product *p = ctx;
    return (struct byi_matrix){
        .at = (const float *)p->a + byi_product_offset(p, p->a_batch, batch),
        .rs = p->a_rs,
        .cs = p->a_cs,
    };
}

static struct byi_matrix matrix_b(const struct byi_product *p, int64_t batch)
{
    return (struct byi_matrix){
        .at = (const float *)p->b + byi_product_offset(p, p->b_batch, batch),
        .rs = p->b_rs,
        .cs = p->b_cs,
    };
}

static float *matrix_c(const void *ctx, int64_t batch)
{
    const struct byi_product *p = ctx;
    return (float *)p->c + batch * p->m * p->n;
}

static void pack_b(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                   int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    struct byi_matrix b = matrix_b(ctx, batch);
    byi_pack_matrix(&b, k0, kc, n0, nc, nr, dst);
}

/* --- float32, few rows: B is read once, unpacked ------------------------- */

enum {
    FEW_DOTS = 8,  /* rows, if B's columns are contiguous */
    FEW_ROWS = 4,  /* rows, if B's rows are contiguous    */
    THIN_ROWS = 2, /* rows, if B could be packed          */
    CHUNK = 512
};

/* Columns [j0, j0 + n) of all rows; B's columns are contiguous. */
static void thin_dots(const struct byi_product *p, int64_t batch, int64_t j0,
                      int64_t n)
{
    const struct byi_matrix a = matrix_a(p, batch), b = matrix_b(p, batch);
    float *c = matrix_c(p, batch);
    for (int64_t j = j0; j < j0 + n; j++)
        for (int64_t i = 0; i < p->m; i++)
            c[i * p->n + j] =
                byi_simd()->dot(a.at + i * a.rs, b.at + j * b.cs, p->k);
}

/* Columns [j0, j0 + n) of all rows; B's rows are contiguous. */
static void thin_rows(const struct byi_product *p, int64_t batch, int64_t j0,
                      int64_t n)
{
    const struct byi_matrix a = matrix_a(p, batch), b = matrix_b(p, batch);
    float *c = matrix_c(p, batch) + j0;
    for (int64_t i = 0; i < p->m; i++)
        memset(c + i * p->n, 0, (size_t)n * sizeof(float));
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t i = 0; i < p->m; i++)
            byi_simd()->axpy(a.at[i * a.rs + k * a.cs], b.at + k * b.rs + j0,
                             c + i * p->n, n);
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

static uint64_t product_scratch(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    struct byi_product p = byi_product_read(call);
    byi_product_fold(&p);
    return byi_gemm_scratch(p.m, p.n, p.k, call->threads);
}

static enum byoc_status product_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_matmul_plain(call, err);
    struct byi_product p = byi_product_read(call);
    byi_product_fold(&p);
    if ((!call->packed || p.m <= THIN_ROWS) && run_thin(&p, call))
        return BYOC_OK;
    const struct byi_gemm g = {
        .batches = p.batches,
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .a = matrix_a,
        .c = matrix_c,
        .pack_b = pack_b,
        .packed_b = call->packed,
        .ctx = &p,
        .ldc = p.n,
    };
    byi_gemm_run(&g, call->threads, call->scratch);
    return BYOC_OK;
}

/* Packs B if all batches share it and there are more than a few rows. */
uint64_t byi_matmul_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *a = &call->in[0], *b = &call->in[1];
    if (a->dtype != BYOC_F32 || b->rank != 2)
        return 0;
    const bool dense = call->op->id == BYI_OP_NN_DENSE;
    const bool flip = !dense && byi_attr_int(call->attrs, "transpose_a");
    struct byi_product p = {.b = b->data};
    set_matrices(b, false, b, dense || byi_attr_int(call->attrs, "transpose_b"),
                 &p);
    const int64_t k = b->dims[0] * b->dims[1] / byi_max(p.n, 1);
    bool few = true; /* few rows, as far as their number is known */
    int64_t rows = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (i == (flip && a->rank > 1 ? a->rank - 2 : a->rank - 1))
            continue;
        few = few && a->dims[i] >= 0;
        rows =
            few ? byi_min(rows * byi_min(a->dims[i], 1 << 20), 1 << 20) : rows;
    }
    if (few && rows <= THIN_ROWS)
        return 0;
    const struct byi_matrix matrix = {p.b, p.b_rs, p.b_cs};
    return byi_gemm_pack(&matrix, k, p.n, to);
}

BYI_FLOAT_KERNEL(matmul, product_run, product_scratch)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_DENSE, {matmul_run, matmul_scratch}},
    {BYI_OP_NN_MATMUL, {matmul_run, matmul_scratch}},
};
const struct byi_kernel_rows byi_rows_matmul = {rows, BYI_COUNT(rows)};
