/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_product.c: creates products of float32 matrices that byoc's
 * own kernel computes without packed weights (kernels/product.h). They replace
 * oneDNN's gemm, whose results depend on the number of threads. */
#include "core/base/openmp.h"
#include "kernels/product.h"
#include "runtime_dnnl/layer_dnnl.h"
#include "runtime_dnnl/prim_fast.h"

/* A run's arguments. */
struct product_run {
    const struct byi_dn_product *product;
    const float *a, *b;
    float *c;
    const float *operands[BYI_DN_PRODUCT_OPS];
};

/* The offset of the matrix of `batch`, in elements. */
static int64_t offset_of(const struct byi_dn_product *p,
                         const struct byi_dn_matrices *m, int64_t batch)
{
    int64_t at = 0;
    for (uint32_t i = p->n_axes; i-- > 0;) {
        at += batch % p->batch[i] * m->batch[i];
        batch /= p->batch[i];
    }
    return at;
}

static struct byi_f32_matrices matrices_of(const void *ctx, int64_t batch)
{
    const struct product_run *run = ctx;
    const struct byi_dn_product *p = run->product;
    return (struct byi_f32_matrices){
        .a = run->a + offset_of(p, &p->a, batch),
        .b = run->b + offset_of(p, &p->b, batch),
        .c = run->c + offset_of(p, &p->c, batch),
    };
}

/* Apply the bias and the post-ops to a block. */
static void apply_posts(const void *ctx, const struct byi_f32_part *part)
{
    const struct product_run *run = ctx;
    const struct byi_dn_product *p = run->product;
    const struct byi_f32_block block = {.y = matrices_of(ctx, part->batch).c +
                                             part->row * p->ldc + part->column,
                                        .ld = p->ldc,
                                        .rows = part->rows,
                                        .n = part->columns};
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct byi_dn_product_op *op = &p->ops[i];
        const struct byi_dn_matrices *m = &op->operand;
        if (op->unary)
            op->unary(&block, op->p0, op->p1);
        else
            op->binary(&block,
                       run->operands[i] + offset_of(p, m, part->batch) +
                           part->row * m->row + part->column * m->column,
                       m->row, m->column);
    }
}

static const char *product_name(const struct byi_dn_fast *fast)
{
    (void)fast;
    return byi_f32_kernels()->product_name;
}

static uint64_t product_scratch(const struct byi_dn_fast *fast)
{
    return byi_f32_product_scratch(fast->threads);
}

static uint64_t product_packed(const struct byi_dn_fast *fast, int arg)
{
    const struct byi_desc *weights = &fast->product.weights;
    (void)arg;
    return (uint64_t)byi_elements(weights->rank, weights->dims) * sizeof(float);
}

/* Constant weights are row-major. */
static void pack_product(const struct byi_dn_fast *fast, int arg,
                         const struct byi_desc *src, const void *from, void *to)
{
    const int64_t n = byi_elements(src->rank, src->dims);
    (void)fast;
    (void)arg;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i;
        for (uint32_t axis = src->rank; axis-- > 0;) {
            at += rest % src->dims[axis] * src->strides[axis];
            rest /= src->dims[axis];
        }
        ((float *)to)[i] = ((const float *)from)[at];
    }
}

static bool products_pack_alike(const struct byi_dn_fast *a,
                                const struct byi_dn_fast *b)
{
    (void)a;
    (void)b;
    return true;
}

static bool product_reads(const struct byi_dn_fast *fast, int arg,
                          const struct byi_desc *desc)
{
    return arg == BYI_ARG_WEIGHTS && desc->kind == BYI_DESC_STRIDED &&
           byi_dn_same_layout(desc, &fast->product.weights);
}

static void run_product(const struct byi_dn_fast *fast, uint32_t n,
                        const struct byi_dn_fast_slot *slots, void *scratch,
                        int threads)
{
    const struct byi_dn_product *p = &fast->product;
    struct product_run run = {
        .product = p,
        .a = byi_dn_fast_find(n, slots, BYI_ARG_SRC),
        .b = byi_dn_fast_find(n, slots, BYI_ARG_WEIGHTS),
        .c = byi_dn_fast_find(n, slots, BYI_ARG_DST),
    };
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (!p->ops[i].unary)
            run.operands[i] = byi_dn_fast_find(n, slots, p->ops[i].arg);
    const struct byi_f32_product product = {
        .kernels = byi_f32_kernels(),
        .batches = byi_elements(p->n_axes, p->batch),
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a_rs = p->a.row,
        .a_cs = p->a.column,
        .b_rs = p->b.row,
        .b_cs = p->b.column,
        .ldc = p->ldc,
        .whole = true,
        .at = matrices_of,
        .finish = p->n_ops ? apply_posts : NULL,
        .ctx = &run};
    byi_f32_product_run(&product, threads, scratch);
}

static const struct byi_dn_fast_kind product_kind = {
    .name = product_name,
    .scratch = product_scratch,
    .packed = product_packed,
    .pack = pack_product,
    .packs_alike = products_pack_alike,
    .reads = product_reads,
    .run = run_product,
};

/* --- descriptors ---------------------------------------------------------- */

/* Read the strides of matrices with as many axes as `dst`; those of axes of
 * size 1 become 0. False if they are not float32 or do not broadcast. */
static bool read_matrices(const struct byi_desc *desc,
                          const struct byi_desc *dst, struct byi_dn_matrices *m)
{
    const uint32_t n = dst->rank - 2;
    if (desc->dtype != BYOC_F32 || desc->rank != dst->rank)
        return false;
    for (uint32_t i = 0; i < n; i++)
        m->batch[i] = desc->dims[i] == 1 ? 0 : desc->strides[i];
    m->row = desc->dims[n] == 1 ? 0 : desc->strides[n];
    m->column = desc->dims[n + 1] == 1 ? 0 : desc->strides[n + 1];
    return true;
}

/* Read an operand of the bias or of a post-op. */
static bool read_operand(const struct byi_desc *desc,
                         const struct byi_desc *dst, int arg,
                         enum byi_f32_binary binary,
                         struct byi_dn_product_op *op)
{
    op->arg = arg;
    op->binary = byi_f32_kernels()->binary[binary];
    return desc->kind == BYI_DESC_STRIDED &&
           read_matrices(desc, dst, &op->operand) && op->operand.column <= 1;
}

/* Read the post-ops. False if one of them is not supported, such as a sum:
 * parts of the result are written several times. */
static bool read_posts(const struct byi_posts *posts,
                       const struct byi_desc *dst, struct byi_dn_product *p)
{
    const uint32_t n = posts ? posts->n : 0;
    for (uint32_t i = 0, read = 1; i < n; i += read) {
        const struct byi_post *post = &posts->at[i];
        struct byi_dn_product_op *op = &p->ops[p->n_ops];
        struct byi_f32_epilogue_op unary;
        if (p->n_ops++ == BYI_DN_PRODUCT_OPS)
            return false;
        read = 1;
        switch (post->kind) {
        case BYI_POST_SUM:
            return false;
        case BYI_POST_ELT:
            read = byi_dn_fast_unary(posts, i, &unary);
            if (!read)
                return false;
            op->unary = unary.unary;
            op->p0 = unary.p0;
            op->p1 = unary.p1;
            break;
        case BYI_POST_BIN:
            if (!read_operand(&post->desc, dst, BYI_ARG_POST + (int)i,
                              byi_dn_fast_binary(post), op))
                return false;
            break;
        case BYI_POST_PRELU:
            if (!read_operand(&post->desc, dst, BYI_ARG_SLOPE + (int)i,
                              BYI_F32_PRELU, op))
                return false;
            break;
        }
    }
    return true;
}

bool byi_dn_own_product(const struct byi_dnnl_matmul *p,
                        const struct byi_posts *posts, struct byi_dn_fast *fast)
{
    const uint32_t n = p->dst.rank - 2;
    struct byi_dn_product *to = &fast->product;
    *fast = (struct byi_dn_fast){.kind = &product_kind};
    fast->threads = omp_get_max_threads();
    *to = (struct byi_dn_product){.n_axes = n,
                                  .m = p->dst.dims[n],
                                  .n = p->dst.dims[n + 1],
                                  .k = p->src.dims[n + 1],
                                  .weights = p->weights};
    if (p->weights.kind == BYI_DESC_ANY)
        to->weights = byi_dn_dense(p->weights.dtype, p->weights.rank,
                                   p->weights.dims, NULL);
    memcpy(to->batch, p->dst.dims, n * sizeof *to->batch);
    if (p->src.kind != BYI_DESC_STRIDED || p->dst.kind != BYI_DESC_STRIDED ||
        !read_matrices(&p->src, &p->dst, &to->a) ||
        !read_matrices(&to->weights, &p->dst, &to->b) ||
        !read_matrices(&p->dst, &p->dst, &to->c) || to->c.column > 1)
        return false;
    if (p->bias.kind != BYI_DESC_ABSENT &&
        !read_operand(&p->bias, &p->dst, BYI_ARG_BIAS, BYI_F32_ADD,
                      &to->ops[to->n_ops++]))
        return false;
    /* one row, one column: let the kernel choose by the other stride */
    to->ldc = to->m > 1 ? to->c.row : to->n;
    if (to->k == 1)
        to->a.column = to->b.row = 1;
    if (to->n == 1)
        to->b.column = 1;
    return read_posts(posts, &p->dst, to);
}
