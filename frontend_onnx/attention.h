/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h: what the converters of com.microsoft's attentions share:
 * ops_attention.c, ops_grouped.c, ops_rotary.c. With b sequences, n heads, g of
 * them to one of keys, s queries, t keys, h elements of a head. Errors are the
 * importer's: byi_o_ok says whether there was one.
 */
#ifndef BYI_FRONTEND_ONNX_ATTENTION_H
#define BYI_FRONTEND_ONNX_ATTENTION_H

#include "frontend_onnx/import.h"

struct byi_attention {
    int64_t heads;
    byi_id q, k, v;    /* (b, n, s or t, h), keys of the past among them;
                        * q (b, n / g, g, s, h) where heads share keys */
    byi_id own;        /* keys without those of the past */
    byi_id bias, mask; /* BYI_NO_ID: none */
    byi_id sink;       /* (n, 1, 1) or (n / g, g, 1, 1): a score of a key that
                        * has no value */
    double filter, scale;
    double softcap; /* scores stay between -softcap and softcap; 0: any */
    bool causal;
    enum byoc_dtype dtype; /* of the result */
};

/* The attributes that all kinds have. */
struct byi_attention byi_attention_read(struct byi_import *o);
/* Halves are computed with in float32: a score's error is its exponential's
 * factor. Before there are masks, which are of the type of the queries. */
void byi_attention_widen(struct byi_import *o, struct byi_attention *a);
/* softmax(q k scale + bias + mask) v, (b, s, n h) */
byi_id byi_attend(struct byi_import *o, const struct byi_attention *a);

/* (b, s, n, h) <-> (b, n, s, h) */
byi_id byi_swap_heads(struct byi_import *o, byi_id x);
/* (b, s, n h) -> (b, s, n, h) */
byi_id byi_show_heads(struct byi_import *o, byi_id x, int64_t heads);
/* Three parts of the last axis. */
void byi_split_three(struct byi_import *o, byi_id x, const int64_t sizes[3],
                     byi_id parts[3]);

/* allowed ? 0 : filter, as a term of the scores; `axes` are put into it. */
byi_id byi_mask_term(struct byi_import *o, const struct byi_attention *a,
                     byi_id allowed, double filter, uint32_t n,
                     const int64_t *axes);
/* What is added to a score that must not count. */
double byi_lowest_score(struct byi_import *o, const struct byi_attention *a);

/* Rows of the table for positions (b, s): (b, s, 1, width), or (b, 1, s, width)
 * where heads come first. */
byi_id byi_rotations(struct byi_import *o, byi_id table, byi_id at,
                     bool heads_first);
/* x (b, s, n, h), of whose heads the first elements turn, as many as the
 * tables of cosines and sines have: halves, or elements in turn, are pairs. */
byi_id byi_rotate(struct byi_import *o, byi_id x, const byi_id tables[2],
                  bool in_turn);

#endif
