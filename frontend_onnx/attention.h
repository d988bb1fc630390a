/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/attention.h: shared by the converters of attention operators of
 * ai.onnx, com.microsoft and ai.onnx.preview (ops_attention.c, ops_flex.c,
 * ops_grouped.c, ops_rotary.c). Dims: b sequences, n query heads, g query heads
 * per key head, s queries, t keys, h elements of a head. Errors are sticky, as
 * in struct byi_import.
 */
#ifndef BYI_FRONTEND_ONNX_ATTENTION_H
#define BYI_FRONTEND_ONNX_ATTENTION_H

#include "frontend_onnx/import.h"

/* The operands and attributes of an attention operator. */
struct byi_attention {
    int64_t heads;    /* of queries */
    int64_t kv_heads; /* of keys and values; 0: as many as queries have */
    /* (b, n, s or t, h), including past keys and values; grouped: q is (b, n /
     * g, g, s, h), k and v are (b, n / g, t, h) */
    byi_id q, k, v;
    byi_id new_k;      /* keys without the past */
    byi_id bias, mask; /* BYI_NO_ID: none */
    /* (n, 1, 1) or (n / g, g, 1, 1): the score of a key without a value */
    byi_id sink;
    double filter;  /* added to a score where the query must not attend */
    double scale;   /* of the products; 0: 1 / sqrt(h) */
    double softcap; /* limits |score|, by tanh; 0: no limit */
    bool causal;
    /* ai.onnx's Attention: masked scores are -inf, and a query without keys
     * gives 0 */
    bool standard;
    enum byoc_dtype dtype; /* of the result */
};

/* Read the attributes that com.microsoft's operators share. */
struct byi_attention byi_attention_read(struct byi_import *o);
/* Set a->dtype to the dtype of the queries, and cast 16-bit operands to
 * float32: softmax turns the absolute error of a score into a relative error of
 * its probability. Call before making masks, which have the queries' dtype. */
void byi_attention_widen(struct byi_import *o, struct byi_attention *a);
/* Emit softmax(q k scale + bias + mask) v, (b, s, n h). */
byi_id byi_attention_emit(struct byi_import *o, const struct byi_attention *a);

/* Emit x (b, s, n, h) as (b, n, s, h), or the reverse. */
byi_id byi_transpose_heads(struct byi_import *o, byi_id x);
/* Emit x (b, s, n h) as (b, s, n, h); `heads` is n. */
byi_id byi_unflatten_heads(struct byi_import *o, byi_id x, int64_t heads);
/* Split x's heads, on axis `axis`, into groups that share keys. */
byi_id byi_group_heads(struct byi_import *o, const struct byi_attention *a,
                       byi_id x, uint32_t axis);
/* Reshape scores, or a bias or mask of scores, (b, n or 1, s, t), to the groups
 * of heads that a->q has. */
byi_id byi_group_scores(struct byi_import *o, const struct byi_attention *a,
                        byi_id x);
/* Reverse byi_group_scores: (b, n / g, g, s, t) or (b, n, s, t) to (b, n, s,
 * t).
 */
byi_id byi_join_groups(struct byi_import *o, const struct byi_attention *a,
                       byi_id x);
/* Fail unless a->heads is a multiple of a->kv_heads, and `values`, the number
 * of heads of the values, equals a->kv_heads. */
void byi_check_heads(struct byi_import *o, const struct byi_attention *a,
                     int64_t values);
/* Split the last axis of x into three parts with these sizes. */
void byi_split_qkv(struct byi_import *o, byi_id x, const int64_t sizes[3],
                   byi_id parts[3]);

/* Emit an additive mask: 0 where `allowed` is true, otherwise `filter`. The
 * result has n additional axes of size 1, from axis `first` on. */
byi_id byi_attention_mask(struct byi_import *o, const struct byi_attention *a,
                          byi_id allowed, double filter, uint32_t first,
                          uint32_t n);
/* Returns the value of an additive mask that excludes a key: -infinity in
 * ai.onnx's Attention, otherwise the lowest finite float. */
double byi_attention_lowest(struct byi_import *o,
                            const struct byi_attention *a);

/* Gather the table's rows at positions (b, s): (b, s, 1, columns), or
 * (b, 1, s, columns) if heads_first. */
byi_id byi_rotary_rows(struct byi_import *o, byi_id table, byi_id positions,
                       bool heads_first);
/* Apply the rotary embedding to x (b, s, n, h). Of a head's elements, the
 * first ones rotate, two for each column of the cosine and sine tables. Pairs
 * are (i, i + half), or adjacent elements if interleaved. */
byi_id byi_rotary_apply(struct byi_import *o, byi_id x, const byi_id tables[2],
                        bool interleaved);

#endif
