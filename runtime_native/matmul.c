/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: nn.dense and nn.matmul: matrix products with broadcast batches.
 *   nn.dense   (m, k) (n, k)^T              -> (m, n)
 *   nn.matmul  (..., m, k) (..., k, n)      -> (..., m, n), as numpy.matmul
 */
#include "matmul.h"

#include "epilogue.h"

#include "kernels/product.h"

/* Set the strides of operand `t` along the result's batch axes; 0 where it is
 * broadcast. */
static void batch_strides(const struct byi_tensor *t, uint32_t rank,
                          int64_t *strides)
{
    uint32_t axes = t->rank > 2 ? t->rank - 2 : 0;
    for (uint32_t i = 0; i < rank; i++) {
        strides[i] = 0;
        if (i + axes < rank)
            continue;
        uint32_t axis = i + axes - rank;
        if (t->dims[axis] != 1)
            strides[i] = byi_span(t, axis + 1, t->rank);
    }
}

/* Set the sizes and strides of the matrices of operands a and b. A vector is
 * one row of A, or one column of B. */
static void set_matrices(const struct byi_tensor *a, bool transpose_a,
                         const struct byi_tensor *b, bool transpose_b,
                         struct byi_product *p)
{
    int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    int64_t columns = a->dims[a->rank - 1];
    transpose_a = transpose_a && a->rank > 1;
    p->m = transpose_a ? columns : rows;
    p->k = transpose_a ? rows : columns;
    p->a_rs = transpose_a ? 1 : columns;
    p->a_cs = transpose_a ? columns : 1;

    rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
    columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    transpose_b = transpose_b && b->rank > 1;
    p->n = transpose_b ? rows : columns;
    p->b_rs = transpose_b ? 1 : columns;
    p->b_cs = transpose_b ? columns : 1;
    p->c_rs = p->n;
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
    for (uint32_t i = p.rank; i-- > 0;) {
        p.dims[i] = call->out->dims[i];
        p.c_batch[i] = p.m * p.n * p.batches;
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
        p->a_rs = p->k; /* one row is row-major, even if A is transposed */
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
        .c = (float *)p->c + byi_product_offset(p, p->c_batch, batch)};
}

static void run_product(const struct byi_product *p,
                        const struct byi_call *call, void *scratch)
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
        .ldc = p->c_rs,
        .whole = true,
        .at = matrices_of,
        .ctx = p,
    };
    byi_f32_product_run(&product, (int)call->threads, scratch);
}

/* --- float32, B shared by all batches: a pointwise convolution ------------ */

/* Describe the product as a convolution of m images of one position. Unless
 * `call` is NULL, also reads its epilogue into the description and *data, and
 * lets the kernels read p->b without packing. */
static struct byi_f32_conv conv_of(const struct byi_product *p,
                                   const struct byi_call *call,
                                   struct byi_epilogue_data *data)
{
    struct byi_f32_conv conv = {.kernels = byi_f32_kernels_of(byi_simd_isa()),
                                .images = p->m,
                                .channels = p->k,
                                .outputs = p->n,
                                .groups = 1};
    for (int i = 0; i < BYI_F32_AXES; i++)
        conv.in[i] = conv.out[i] = conv.size[i] = conv.stride[i] =
            conv.dilation[i] = 1;
    if (call) {
        conv.weight_strides[0] = p->b_cs;
        conv.weight_strides[1] = p->b_rs;
        byi_epilogue_read(call, true, &conv, data);
    }
    byi_f32_conv_plan(&conv, true);
    return conv;
}

/* Multiply by B, packed or as it is; returns false if B must be packed first.
 */
static bool run_conv(const struct byi_product *p, const struct byi_call *call)
{
    struct byi_epilogue_data data;
    struct byi_f32_conv conv = conv_of(p, call, &data);
    const bool in_place = byi_f32_conv_reads_in_place(&conv);
    if (!in_place && !call->packed)
        return false;
    struct byi_f32_conv_run run = {.conv = &conv,
                                   .x = p->a,
                                   .weights = in_place ? p->b : call->packed,
                                   .y = p->c,
                                   .scratch = call->scratch,
                                   .threads = (int)call->threads};
    byi_epilogue_set_row(&conv, &data, 0, &run);
    byi_f32_conv_run(&run);
    return true;
}

/* --- the plain form, for every element type ------------------------------ */

#define PLAIN(id, type, wide)                                                  \
    static void plain_##id(const struct byi_product *p, int64_t batch,         \
                           int64_t i)                                          \
    {                                                                          \
        const type *a = (const type *)p->a +                                   \
                        byi_product_offset(p, p->a_batch, batch) +             \
                        i * p->a_rs;                                           \
        const type *b =                                                        \
            (const type *)p->b + byi_product_offset(p, p->b_batch, batch);     \
        type *c = (type *)p->c + byi_product_offset(p, p->c_batch, batch) +    \
                  i * p->c_rs;                                                 \
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

static void run_plain(const struct byi_product *p, const struct byi_call *call)
{
    const int64_t rows = p->batches * p->m;
    const int team = byi_team(call, rows * p->n * p->k);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t row = 0; row < rows; row++)
        plain[call->in->dtype](p, row / p->m, row % p->m);
}

static enum byoc_status check_dtype(const struct byi_call *call,
                                    struct byoc_error *err)
{
    if (plain[call->in->dtype])
        return BYOC_OK;
    return byi_bad_dtype(call, call->in->dtype, "a float or an integer type",
                         err);
}

enum byoc_status byi_matmul_plain(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const struct byi_product p = byi_product_read(call);
    BYI_TRY(check_dtype(call, err));
    run_plain(&p, call);
    return BYOC_OK;
}

/* --- float64 and wide integers ------------------------------------------- */

enum {
    PANEL_ROWS = 128,   /* rows of a task */
    FEW_PANEL_ROWS = 8, /* fewer rows do not pay for packing B */
    DOT_CHUNK = 64,     /* columns of a task of dot products */
    MIN_DOT = 16, /* least k for which dot products are faster than panels */
    FEW_WIDE_DOTS = 7 /* most rows of A for which they are */
};

static const char *element(const void *from, int64_t i, int64_t size)
{
    return (const char *)from + i * size;
}

/* Copy rows [first, first + rows) of `columns` columns of B, from b on, to
 * `to`, whose rows are `pitch` elements apart. */
static void pack_panel(const struct byi_product *p, const char *b,
                       int64_t first, int64_t rows, int64_t columns,
                       int64_t size, int64_t pitch, char *to)
{
    const char *from = b + first * p->b_rs * size;
    if (p->b_cs != 1 && p->b_rs == 1) {
        byi_transpose((size_t)size, from, p->b_cs, columns, rows, to, pitch);
        return;
    }
    for (int64_t k = 0; k < rows;
         k++, from += p->b_rs * size, to += pitch * size)
        if (p->b_cs == 1)
            memcpy(to, from, (size_t)(columns * size));
        else /* an operand of einsum, whose innermost axis is a batch */
            for (int64_t j = 0; j < columns; j++)
                memcpy(to + j * size, from + j * p->b_cs * size, (size_t)size);
}

/* Compute `panel`, whose A and C are set; B begins at b. */
static void run_panel(const struct byi_product *p, enum byoc_dtype dtype,
                      struct byi_panel *panel, const char *b)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t size = (int64_t)byoc_dtype_size(dtype);
    const int64_t panel_columns = simd->panel_bytes / size;
    _Alignas(64) char packed[BYI_BLOCK_BYTES];
    if (p->b_cs == 1 && p->m < FEW_PANEL_ROWS && panel->n == panel_columns) {
        panel->b = b;
        panel->b_rs = p->b_rs;
        panel->k = p->k;
        simd->product_panel[dtype](panel);
        return;
    }
    panel->b = packed;
    panel->b_rs = panel_columns;
    panel->k = byi_min(p->k, BYI_BLOCK_BYTES / simd->panel_bytes);
    if (panel->n < panel_columns) /* some columns do not exist */
        memset(packed, 0, (size_t)(panel->k * simd->panel_bytes));
    for (int64_t k = 0; k < p->k; k += panel->k) {
        panel->k = byi_min(p->k - k, panel->k);
        panel->add = k > 0;
        pack_panel(p, b, k, panel->k, panel->n, size, panel_columns, packed);
        simd->product_panel[dtype](panel);
        panel->a = element(panel->a, panel->k * p->a_cs, size);
    }
}

static void run_panels(const struct byi_product *p, const struct byi_call *call)
{
    const enum byoc_dtype dtype = call->in->dtype;
    const int64_t size = (int64_t)byoc_dtype_size(dtype);
    const int64_t panel_columns = byi_simd()->panel_bytes / size;
    const int64_t panels = byi_ceil_div(p->n, panel_columns);
    const int64_t blocks = byi_ceil_div(p->m, PANEL_ROWS);
    const int team =
        byi_team_of_products(call, p->batches * p->m * p->n * p->k);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < p->batches * blocks * panels; task++) {
        const int64_t batch = task / panels / blocks;
        const int64_t i = task / panels % blocks * PANEL_ROWS;
        const int64_t j = task % panels * panel_columns;
        const int64_t a = byi_product_offset(p, p->a_batch, batch);
        const int64_t b = byi_product_offset(p, p->b_batch, batch);
        const int64_t c = byi_product_offset(p, p->c_batch, batch);
        struct byi_panel panel = {
            .a = element(p->a, a + i * p->a_rs, size),
            .c = (char *)p->c + (c + i * p->c_rs + j) * size,
            .m = byi_min(PANEL_ROWS, p->m - i),
            .n = byi_min(panel_columns, p->n - j),
            .a_rs = p->a_rs,
            .a_cs = p->a_cs,
            .c_rs = p->c_rs,
        };
        run_panel(p, dtype, &panel, element(p->b, b + j * p->b_cs, size));
    }
}

/* Describe C^T = B^T A^T. If C is one dense column, C^T is one row with the
 * same elements in the same memory. */
static struct byi_product transposed(const struct byi_product *p)
{
    struct byi_product t = *p;
    t.m = p->n;
    t.n = p->m;
    t.a = p->b;
    t.b = p->a;
    t.a_rs = p->b_cs;
    t.a_cs = p->b_rs;
    t.b_rs = p->a_cs;
    t.b_cs = p->a_rs;
    t.c_rs = t.n;
    memcpy(t.a_batch, p->b_batch, sizeof t.a_batch);
    memcpy(t.b_batch, p->a_batch, sizeof t.b_batch);
    return t;
}

static bool is_dense_column(const struct byi_product *p)
{
    return p->n == 1 && p->c_rs == 1;
}

/* Compute few rows as dot products with the columns of B, which are contiguous.
 */
static void run_dots(const struct byi_product *p, const struct byi_call *call)
{
    const enum byoc_dtype dtype = call->in->dtype;
    const int64_t size = (int64_t)byoc_dtype_size(dtype);
    const int64_t chunk = DOT_CHUNK;
    const int64_t chunks = byi_ceil_div(p->n, chunk);
    const int team =
        byi_team_of_products(call, p->batches * p->m * p->n * p->k);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < p->batches * p->m * chunks; task++) {
        const int64_t i = task / chunks % p->m, j = task % chunks * chunk;
        const int64_t batch = task / chunks / p->m;
        const int64_t a = byi_product_offset(p, p->a_batch, batch);
        const int64_t b = byi_product_offset(p, p->b_batch, batch);
        const int64_t c = byi_product_offset(p, p->c_batch, batch);
        byi_simd()->dots[dtype](element(p->a, a + i * p->a_rs, size),
                                element(p->b, b + j * p->b_cs, size), p->b_cs,
                                byi_min(chunk, p->n - j), p->k,
                                (char *)p->c + (c + i * p->c_rs + j) * size);
    }
}

/* Multiply matrices of a type other than float32. */
static void run_other_type(const struct byi_product *product,
                           const struct byi_call *call)
{
    const struct byi_product p =
        is_dense_column(product) ? transposed(product) : *product;
    if (!byi_simd()->product_panel[call->in->dtype] || p.k == 0 ||
        byi_count(call->out) == 0)
        run_plain(&p, call);
    else if (p.m <= FEW_WIDE_DOTS && p.k >= MIN_DOT && p.a_cs == 1 &&
             p.b_rs == 1)
        run_dots(&p, call);
    else
        run_panels(&p, call);
}

void byi_product_run(const struct byi_product *p, const struct byi_call *call,
                     void *scratch)
{
    if (call->in->dtype != BYOC_F32)
        run_other_type(p, call);
    else
        run_product(p, call, scratch);
}

uint64_t byi_product_scratch(const struct byi_call *call)
{
    return call->in->dtype == BYOC_F32
               ? byi_f32_product_scratch((int)call->threads)
               : 0;
}

/* --- the kernel ---------------------------------------------------------- */

/* Whether A is one dense row-major matrix, all of its rows are multiplied by
 * the same B, and no matrix is empty. */
static bool is_one_product(const struct byi_product *p)
{
    return p->batches == 1 && (p->a_cs == 1 || p->k == 1) &&
           (p->a_rs == p->k || p->m == 1) && p->n > 0 && p->m > 0 && p->k > 0;
}

uint64_t byi_dense_scratch(int64_t k, int64_t n, uint32_t threads)
{
    const struct byi_product p = {.m = 2, .n = n, .k = k};
    const struct byi_f32_conv conv = conv_of(&p, NULL, NULL);
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
    const bool is_f32 = call->in->dtype == BYOC_F32;
    BYI_TRY(is_f32 ? byi_epilogue_check(call, err) : check_dtype(call, err));
    struct byi_product p = byi_product_read(call);
    byi_product_fold(&p);
    if (is_f32 && p.n > 1 && is_one_product(&p) && run_conv(&p, call))
        return BYOC_OK;
    byi_product_run(&p, call, call->scratch);
    if (is_f32)
        byi_epilogue_apply(call, p.n);
    return BYOC_OK;
}

uint64_t byi_dense_pack(const float *b, int64_t rs, int64_t cs, int64_t k,
                        int64_t n, float *to)
{
    const struct byi_product p = {.m = 2, .n = n, .k = k};
    const struct byi_f32_conv conv = conv_of(&p, NULL, NULL);
    if (to)
        byi_f32_conv_pack(
            &conv,
            &(struct byi_f32_weights){.at = b, .output = cs, .channel = rs}, to,
            1);
    return byi_f32_conv_packed(&conv);
}

static bool has_known_dims(const struct byi_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0)
            return false;
    return true;
}

/* Packs B if all batches share it, unless the kernels read it without packing.
 */
uint64_t byi_matmul_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *a = &call->in[0], *b = &call->in[1];
    if (a->dtype != BYOC_F32 || b->rank != 2 || byi_count(b) == 0)
        return 0;
    const bool dense = call->op->id == BYI_OP_NN_DENSE;
    struct byi_product p = {.b = b->data};
    /* A may have unknown dims: pass B as A, whose members are set below */
    set_matrices(b, false, b, dense || byi_attr_int(call->attrs, "transpose_b"),
                 &p);
    if (p.n == 1)
        return 0;
    p.k = byi_count(b) / p.n;
    p.m = has_known_dims(a) ? byi_count(a) / p.k : 2;
    struct byi_epilogue_data data;
    const struct byi_f32_conv conv = conv_of(&p, call, &data);
    if (byi_f32_conv_reads_in_place(&conv))
        return 0;
    return byi_dense_pack(b->data, p.b_rs, p.b_cs, p.k, p.n, to);
}

BYI_FLOAT_KERNEL(matmul, product_run, product_scratch)

const char *byi_matmul_algorithm(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return NULL;
    struct byi_epilogue_data data;
    struct byi_product p = byi_product_read(call);
    byi_product_fold(&p);
    const struct byi_f32_conv conv = conv_of(&p, call, &data);
    return byi_f32_conv_name(&conv);
}

BYI_KERNEL_ROWS(matmul, {BYI_OP_NN_DENSE, {matmul_run, matmul_scratch}},
                {BYI_OP_NN_MATMUL, {matmul_run, matmul_scratch}})
