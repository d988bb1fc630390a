/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_narrow.c: runs oneDNN's float32 primitives on float16 and
 * bfloat16 arguments. Each argument has a float32 copy in scratch memory, with
 * the same strides. Inputs are converted before the primitive runs and results
 * after it, so that a result is rounded once. byoc's own kernels (prim_fast.c)
 * need no copies: here are those of elementwise operators, which widen a block
 * that fits the first-level cache, apply all operators, and narrow it. */
#include "core/base/openmp.h"
#include "runtime_dnnl/layer_dnnl.h"
#include "runtime_dnnl/prim_fast.h"

enum byoc_status byi_narrowing_read(uint32_t n,
                                    const struct byi_desc *const *desc,
                                    const struct byi_posts *posts,
                                    struct byi_narrowing *narrow,
                                    struct byoc_error *err)
{
    bool wide = false;
    *narrow = (struct byi_narrowing){.wide = -1};
    for (uint32_t i = 0; i < n; i++) {
        if (desc[i]->kind == BYI_DESC_ANY)
            narrow->wide = BYI_ARG_WEIGHTS;
        else if (desc[i]->kind == BYI_DESC_STRIDED &&
                 byi_dtype_is_half(desc[i]->dtype))
            narrow->dtype = desc[i]->dtype;
        else if (desc[i]->kind == BYI_DESC_STRIDED)
            wide = true;
    }
    for (uint32_t i = 0; posts && i < posts->n; i++) {
        const struct byi_post *post = &posts->at[i];
        narrow->adds |= post->kind == BYI_POST_SUM;
        narrow->binary |= (uint32_t)(post->kind == BYI_POST_BIN) << i;
        wide |= (post->kind == BYI_POST_BIN || post->kind == BYI_POST_PRELU) &&
                post->desc.dtype == BYOC_F32;
    }
    if (narrow->dtype && wide)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found %s beside float32, expected one type of floats",
                        byoc_dtype_name(narrow->dtype));
    return BYOC_OK;
}

bool byi_prim_is_narrow(const struct byi_prim *prim, int arg)
{
    return prim->narrow.dtype && arg != prim->narrow.wide;
}

/* Number of floats of an argument, including gaps between its elements. */
static int64_t floats_of(const struct byi_prim *prim, int arg)
{
    if (arg >= BYI_ARG_SLOPE && arg < BYI_ARG_MULTI)
        return prim->slopes;
    BYI_MD_PTR md = byi_prim_query(prim, arg);
    return md ? (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float)) : 0;
}

static uint64_t copy_bytes(const struct byi_prim *prim, int arg)
{
    return byi_prim_is_narrow(prim, arg)
               ? byi_align_bytes((uint64_t)floats_of(prim, arg) * sizeof(float))
               : 0;
}

uint64_t byi_narrow_bytes(const struct byi_prim *prim)
{
    uint64_t bytes = 0;
    if (!prim->narrow.dtype)
        return 0;
    for (int arg = 0; arg <= BYI_ARG_DST; arg++)
        bytes += copy_bytes(prim, arg);
    for (int i = 0; i < BYI_MAX_POSTS; i++)
        if (prim->narrow.binary >> i & 1)
            bytes += copy_bytes(prim, BYI_ARG_POST + i);
    for (uint32_t i = 0; i < prim->narrow.sources; i++)
        bytes += copy_bytes(prim, BYI_ARG_MULTI + (int)i);
    return bytes + (prim->slopes ? copy_bytes(prim, BYI_ARG_SLOPE) : 0);
}

enum byoc_status byi_narrow_copies(const struct byi_prim *prim, uint32_t n,
                                   const int *args, void *const *data,
                                   char *buffer,
                                   struct byi_narrow_copy **copies,
                                   uint32_t *n_copies, struct byoc_error *err)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const bool bf16 = prim->narrow.dtype == BYOC_BF16;
    *copies = NULL;
    *n_copies = 0;
    if (!prim->narrow.dtype)
        return BYOC_OK;
    *copies = byi_alloc(n, sizeof **copies);
    if (!*copies)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for the copies of %u arguments", n);
    for (uint32_t i = 0; i < n; i++) {
        if (!byi_prim_is_narrow(prim, args[i]))
            continue;
        (*copies)[(*n_copies)++] = (struct byi_narrow_copy){
            .slot = i,
            .widen = kernels->widen[bf16],
            .narrow = kernels->narrow[bf16],
            .data = data[i],
            .copy = (float *)(void *)buffer,
            .n = floats_of(prim, args[i]),
            .reads = args[i] != BYI_ARG_DST || prim->narrow.adds,
            .writes = args[i] == BYI_ARG_DST};
        buffer += copy_bytes(prim, args[i]);
    }
    return BYOC_OK;
}

/* Elements that a thread converts at a time. */
enum { PIECE = 1 << 14 };

/* The number of threads that convert n elements. */
static int team_size(int64_t n)
{
    const int64_t pieces = byi_ceil_div(n, PIECE);
    const int max_threads = omp_get_max_threads();
    return pieces < 4 ? 1 : (int)byi_min(pieces / 2, max_threads);
}

void byi_narrow_begin(const struct byi_narrow_copy *copies, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_narrow_copy *c = &copies[i];
        const uint16_t *from = c->data;
        const int team = team_size(c->n);
        if (!c->reads)
            continue;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t at = 0; at < c->n; at += PIECE)
            c->widen(from + at, c->copy + at, byi_min(PIECE, c->n - at));
    }
}

void byi_narrow_end(const struct byi_narrow_copy *copies, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_narrow_copy *c = &copies[i];
        uint16_t *to = c->data;
        const int team = team_size(c->n);
        if (!c->writes)
            continue;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t at = 0; at < c->n; at += PIECE)
            c->narrow(c->copy + at, to + at, byi_min(PIECE, c->n - at));
    }
}

/* --- elementwise operators ------------------------------------------------ */

/* Elements of a block. */
enum { BLOCK = 2048 };

static const char *elementwise_name(const struct byi_dn_fast *fast)
{
    return fast->conv.type == BYI_F32_BF16 ? "elementwise:bf16"
                                           : "elementwise:f16";
}

/* Each thread has a block of results and one of an operand. */
static uint64_t elementwise_scratch(const struct byi_dn_fast *fast)
{
    return (uint64_t)fast->threads * 2 * BLOCK * sizeof(float);
}

typedef void widen_fn(const uint16_t *from, float *to, int64_t n);

/* Apply a binary operator to a block, which begins at (row, column) of the
 * result and has whole rows or a part of one. `buffer` has BLOCK elements. */
static void apply_binary(const struct byi_f32_epilogue_op *op,
                         const struct byi_f32_block *block, int64_t row,
                         int64_t column, widen_fn *widen,
                         const uint16_t *operand, float *buffer)
{
    const int64_t n = op->column ? block->n : 1;
    operand += column * op->column;
    if (op->repeat == 1 && (block->rows == 1 || op->row == n)) {
        widen(operand + row * op->row, buffer, block->rows * n);
        op->binary(block, buffer, n, op->column);
        return;
    }
    struct byi_f32_block part = *block; /* rows with the same operands */
    for (int64_t first = 0; first < block->rows; first += part.rows) {
        const int64_t at = op->row ? (row + first) / op->repeat : 0;
        const int64_t end = op->row ? (at + 1) * op->repeat - row : block->rows;
        part.y = block->y + first * block->ld;
        part.rows = byi_min(end, block->rows) - first;
        widen(operand + at * op->row, buffer, n);
        op->binary(&part, buffer, 0, op->column);
    }
}

/* The argument that operation i reads. */
static int operand_of(const struct byi_f32_conv *conv, uint32_t i)
{
    const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
    const bool prelu = op->binary == conv->kernels->binary[BYI_F32_PRELU];
    return op->operand == 0
               ? BYI_ARG_SRC1
               : (prelu ? BYI_ARG_SLOPE : BYI_ARG_POST) + (int)op->operand - 1;
}

/* Compute elements [at, at + n) of the result, in whole rows or in one row. */
static void run_elements(const struct byi_dn_fast *fast, uint32_t n_slots,
                         const struct byi_dn_fast_slot *slots, int64_t at,
                         int64_t n, float *buffer)
{
    const struct byi_f32_conv *conv = &fast->conv;
    const bool bf16 = conv->type == BYI_F32_BF16;
    const int64_t columns = byi_min(conv->outputs, n);
    const struct byi_f32_block block = {
        .y = buffer, .ld = columns, .rows = n / columns, .n = columns};
    const uint16_t *x = byi_dn_fast_find(n_slots, slots, BYI_ARG_SRC);
    uint16_t *y = byi_dn_fast_find(n_slots, slots, BYI_ARG_DST);
    conv->kernels->widen[bf16](x + at, buffer, n);
    for (uint32_t i = 0; i < conv->n_epilogue; i++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
        if (op->unary)
            op->unary(&block, op->p0, op->p1);
        else
            apply_binary(op, &block, at / conv->outputs, at % conv->outputs,
                         conv->kernels->widen[bf16],
                         byi_dn_fast_find(n_slots, slots, operand_of(conv, i)),
                         buffer + BLOCK);
    }
    conv->kernels->narrow[bf16](buffer, y + at, n);
}

static void run_elementwise(const struct byi_dn_fast *fast, uint32_t n_slots,
                            const struct byi_dn_fast_slot *slots, void *scratch,
                            int threads)
{
    const int64_t rows = fast->conv.images, columns = fast->conv.outputs;
    const int64_t block_rows = byi_max(BLOCK / columns, 1);
    const int64_t across = byi_ceil_div(columns, BLOCK);
    const int64_t blocks = byi_ceil_div(rows, block_rows) * across;
    const int64_t n = byi_min(threads, team_size(rows * columns));
#pragma omp parallel for num_threads((int)n) if (n > 1) schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = blocks * i / n; b < blocks * (i + 1) / n; b++) {
            const int64_t row = b / across * block_rows,
                          column = b % across * BLOCK;
            run_elements(fast, n_slots, slots, row * columns + column,
                         byi_min(block_rows, rows - row) *
                             byi_min(BLOCK, columns - column),
                         (float *)scratch + i * 2 * BLOCK);
        }
}

static const struct byi_dn_fast_kind elementwise_kind = {
    .name = elementwise_name,
    .scratch = elementwise_scratch,
    .run = run_elementwise,
};

/* Describe an operand of the dense tensor `dst`, which is seen as one row;
 * false if it is broadcast and has several elements. */
static bool flatten(const struct byi_desc *dst, struct byi_desc *desc)
{
    const int64_t n = byi_elements(desc->rank, desc->dims);
    if (n != 1 && !byi_dn_same_layout(desc, dst))
        return false;
    *desc = byi_dn_dense(desc->dtype, 2, (int64_t[]){1, n}, NULL);
    return true;
}

bool byi_dn_fast_elementwise(const struct byi_post *first,
                             const struct byi_desc *src,
                             const struct byi_posts *posts,
                             const struct byi_desc *dst,
                             struct byi_dn_fast *fast)
{
    struct byi_post all[BYI_F32_EPILOGUE_OPS];
    const uint32_t n = 1 + (posts ? posts->n : 0);
    struct byi_desc y = *dst;
    *fast = (struct byi_dn_fast){.kind = &elementwise_kind,
                                 .threads = omp_get_max_threads()};
    if (!byi_dtype_is_half(dst->dtype) || n > BYI_F32_EPILOGUE_OPS ||
        !byi_dn_same_layout(src, dst) || !byi_dn_is_dense(dst) ||
        byi_elements(dst->rank, dst->dims) <= 0)
        return false;
    all[0] = *first;
    for (uint32_t i = 1; i < n; i++)
        all[i] = posts->at[i - 1];
    if (dst->rank < 2 || !byi_dn_is_dense_last(dst, dst->dtype)) {
        flatten(dst, &y);
        for (uint32_t i = 0; i < n; i++)
            if (all[i].kind != BYI_POST_ELT && !flatten(dst, &all[i].desc))
                return false;
    }
    fast->conv.kernels = byi_f32_kernels();
    fast->conv.type = byi_f32_type_of(y.dtype);
    fast->conv.outputs = y.dims[1];
    fast->conv.images = byi_elements(y.rank, y.dims) / y.dims[1];
    return byi_dn_fast_posts(&(struct byi_posts){n, all}, &y, fast);
}
