/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_attention.c: creates attention primitives, which byoc's own
 * kernel computes (kernels/attention.h), since oneDNN has no such primitive. */
#include "core/base/openmp.h"
#include "runtime_dnnl/layer_dnnl.h"
#include "runtime_dnnl/prim_fast.h"

static const char *attention_name(const struct byi_dn_fast *fast)
{
    return fast->attention.kernels->attention_name;
}

static uint64_t attention_scratch(const struct byi_dn_fast *fast)
{
    return byi_f32_attention_scratch(&fast->attention, fast->threads);
}

static void run_attention(const struct byi_dn_fast *fast, uint32_t n,
                          const struct byi_dn_fast_slot *slots, void *scratch,
                          int threads)
{
    struct byi_f32_attention_run run = {
        .attention = &fast->attention,
        .q = byi_dn_fast_find(n, slots, BYI_ARG_SRC),
        .k = byi_dn_fast_find(n, slots, BYI_ARG_WEIGHTS),
        .v = byi_dn_fast_find(n, slots, BYI_ARG_SRC1),
        .y = byi_dn_fast_find(n, slots, BYI_ARG_DST),
        .scratch = scratch,
        .threads = threads};
    for (uint32_t i = 0; i < fast->attention.n_scores; i++)
        run.operands[i] = byi_dn_fast_find(n, slots, BYI_ARG_POST + (int)i);
    byi_f32_attention_run(&run);
}

static const struct byi_dn_fast_kind attention_kind = {
    .name = attention_name,
    .scratch = attention_scratch,
    .run = run_attention,
};

/* Read the strides of matrices, or of an operand of the scores, which messages
 * call `name`; axes of size 1 get stride 0. Fails if the kernel does not
 * support them with a result such as `dst`. */
static enum byoc_status read_strides(const struct byi_desc *desc,
                                     const struct byi_desc *dst,
                                     const char *name,
                                     struct byi_f32_strides *to,
                                     struct byoc_error *err)
{
    const uint32_t rank = dst->rank;
    int64_t strides[BYI_MAX_RANK];
    if (desc->kind != BYI_DESC_STRIDED)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "attention: found %s without strides, expected a "
                        "layout with strides",
                        name);
    if (desc->dtype != dst->dtype || desc->rank != rank)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "attention: found %s of type %s and rank %u, expected "
                        "%s and rank %u, as of the result",
                        name, byoc_dtype_name(desc->dtype), desc->rank,
                        byoc_dtype_name(dst->dtype), rank);
    for (uint32_t i = 0; i < rank; i++)
        strides[i] = desc->dims[i] == 1 ? 0 : desc->strides[i];
    *to = (struct byi_f32_strides){.row = strides[rank - 2],
                                   .column = strides[rank - 1]};
    for (uint32_t i = 0; i + 2 < rank; i++)
        to->batch[BYI_F32_BATCH_AXES - (rank - 2) + i] = strides[i];
    return BYOC_OK;
}

static enum byoc_status check_columns(const struct byi_f32_strides *strides,
                                      const char *name, struct byoc_error *err)
{
    if (strides->column <= 1)
        return BYOC_OK;
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "attention: found %s with stride %lld between columns, "
                    "expected at most 1",
                    name, (long long)strides->column);
}

static enum byoc_status read_scores(const struct byi_posts *posts,
                                    const struct byi_desc *dst,
                                    struct byi_f32_attention *a,
                                    struct byoc_error *err)
{
    static const char operand[] = "an operand of the scores";
    a->n_scores = posts ? posts->n : 0;
    for (uint32_t i = 0; i < a->n_scores; i++) {
        const struct byi_post *post = &posts->at[i];
        struct byi_f32_score *to = &a->scores[i];
        if (post->kind == BYI_POST_ELT && post->alg == BYI_ELT_TANH) {
            to->unary = byi_f32_kernels()->unary[BYI_OP_TANH];
            continue;
        }
        if (post->kind != BYI_POST_BIN)
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "attention: found a function of one operand as "
                            "operation %u on the scores, expected tanh or a "
                            "function of two operands",
                            i);
        BYI_TRY(read_strides(&post->desc, dst, operand, &to->operand, err));
        BYI_TRY(check_columns(&to->operand, operand, err));
        to->binary = byi_f32_kernels()->binary[byi_dn_fast_binary(post)];
    }
    return BYOC_OK;
}

static enum byoc_status read_attention(const struct byi_dnnl_attention *p,
                                       const struct byi_posts *posts,
                                       struct byi_f32_attention *a,
                                       struct byoc_error *err)
{
    const uint32_t rank = p->dst.rank;
    BYI_TRY(read_strides(&p->src, &p->dst, "queries", &a->q, err));
    BYI_TRY(read_strides(&p->weights, &p->dst, "keys", &a->k, err));
    BYI_TRY(read_strides(&p->src1, &p->dst, "values", &a->v, err));
    BYI_TRY(read_strides(&p->dst, &p->dst, "a result", &a->y, err));
    BYI_TRY(check_columns(&a->y, "a result", err));
    BYI_TRY(read_scores(posts, &p->dst, a, err));
    a->type = byi_f32_type_of(p->dst.dtype);
    a->zero_nan = p->zero_nan;
    for (int i = 0; i < BYI_F32_BATCH_AXES; i++)
        a->batch[i] = 1;
    for (uint32_t i = 0; i + 2 < rank; i++)
        a->batch[BYI_F32_BATCH_AXES - (rank - 2) + i] = p->dst.dims[i];
    a->rows = p->src.dims[rank - 2];
    a->depth = p->src.dims[rank - 1];
    a->keys = p->weights.dims[rank - 1];
    a->columns = p->src1.dims[rank - 1];
    return BYOC_OK;
}

BYI_CREATOR(attention)
{
    struct byi_dn_fast fast = {.kind = &attention_kind};
    (void)lib;
    if (posts && posts->n > BYI_F32_EPILOGUE_OPS)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "attention: found %u operations on scores, expected at "
                        "most %d",
                        posts->n, BYI_F32_EPILOGUE_OPS);
    if (!byi_dn_is_float(p->dst.dtype))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "attention: found a %s result, expected a "
                        "floating-point type",
                        byoc_dtype_name(p->dst.dtype));
    if (p->dst.rank < 2 || p->dst.rank > 2 + BYI_F32_BATCH_AXES)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "attention: found a result of rank %u, expected 2 to "
                        "%d",
                        p->dst.rank, 2 + BYI_F32_BATCH_AXES);
    BYI_TRY(read_attention(p, posts, &fast.attention, err));
    byi_f32_attention_plan(&fast.attention);
    fast.threads = omp_get_max_threads();
    return byi_prim_wrap_fast(&fast, prim, err);
}
