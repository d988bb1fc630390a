/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_rnn.c: creates primitives of recurrent layers. */
#include "runtime_dnnl/layer_dnnl.h"

static dnnl_rnn_direction_t translate_direction(const struct byi_dnnl_rnn *p)
{
    return p->bidirectional ? dnnl_bidirectional_concat
           : p->reverse     ? dnnl_unidirectional_right2left
                            : dnnl_unidirectional_left2right;
}

enum {
    SRC,
    SRC_H,
    SRC_C,
    WEIGHTS,
    RECURRENT,
    BIAS,
    DST,
    DST_H,
    DST_C,
    N_DESCS
};

#define SOURCES(s) BYI_MD(&(s)->md[SRC]), BYI_MD(&(s)->md[SRC_H])
#define WEIGHTS_OF(s) BYI_MD(&(s)->md[WEIGHTS]), BYI_MD(&(s)->md[RECURRENT])
#define RESULTS(s)                                                             \
    BYI_MD(&(s)->md[BIAS]), BYI_MD(&(s)->md[DST]), BYI_MD(&(s)->md[DST_H])

static dnnl_status_t make_pd(const struct byi_dnnl *lib,
                             const struct byi_dnnl_rnn *p, struct byi_pieces *s,
                             dnnl_alg_kind_t activation,
                             dnnl_primitive_desc_t *pd)
{
    const dnnl_prop_kind_t prop = dnnl_forward_inference;
    const dnnl_rnn_direction_t direction = translate_direction(p);
#if BYI_V3
    switch (p->kind) {
    case BYI_RNN_PLAIN:
        return dnnl_vanilla_rnn_forward_primitive_desc_create(
            pd, lib->engine, prop, activation, direction, SOURCES(s),
            WEIGHTS_OF(s), RESULTS(s), 0, 0.0f, 0.0f, s->attr);
    case BYI_RNN_LSTM:
        return dnnl_lstm_forward_primitive_desc_create(
            pd, lib->engine, prop, direction, SOURCES(s), BYI_MD(&s->md[SRC_C]),
            WEIGHTS_OF(s), NULL, NULL, RESULTS(s), BYI_MD(&s->md[DST_C]), 0,
            s->attr);
    case BYI_RNN_GRU:
        return dnnl_gru_forward_primitive_desc_create(
            pd, lib->engine, prop, direction, SOURCES(s), WEIGHTS_OF(s),
            RESULTS(s), 0, s->attr);
    case BYI_RNN_GRU_LINEAR:
        return dnnl_lbr_gru_forward_primitive_desc_create(
            pd, lib->engine, prop, direction, SOURCES(s), WEIGHTS_OF(s),
            RESULTS(s), 0, s->attr);
    }
    byi_unreachable();
#else
    dnnl_rnn_desc_t d;
    dnnl_status_t status = dnnl_unimplemented;
    switch (p->kind) {
    case BYI_RNN_PLAIN:
        status = dnnl_vanilla_rnn_forward_desc_init(
            &d, prop, activation, direction, SOURCES(s), WEIGHTS_OF(s),
            RESULTS(s), 0, 0.0f, 0.0f);
        break;
    case BYI_RNN_LSTM:
        status = dnnl_lstm_forward_desc_init(
            &d, prop, direction, SOURCES(s), BYI_MD(&s->md[SRC_C]),
            WEIGHTS_OF(s), RESULTS(s), BYI_MD(&s->md[DST_C]), 0);
        break;
    case BYI_RNN_GRU:
        status = dnnl_gru_forward_desc_init(&d, prop, direction, SOURCES(s),
                                            WEIGHTS_OF(s), RESULTS(s), 0);
        break;
    case BYI_RNN_GRU_LINEAR:
        status = dnnl_lbr_gru_forward_desc_init(&d, prop, direction, SOURCES(s),
                                                WEIGHTS_OF(s), RESULTS(s), 0);
        break;
    }
    return byi_pd_make(status, &d, s, lib, pd);
#endif
}

BYI_CREATOR(rnn)
{
    struct byi_dn_fast fast;
    if (byi_dn_fast_rnn(p, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    const struct byi_desc *const descs[N_DESCS] = {[SRC] = &p->src,
                                                   [SRC_H] = &p->src_h,
                                                   [SRC_C] = &p->src_c,
                                                   [WEIGHTS] = &p->weights,
                                                   [RECURRENT] = &p->recurrent,
                                                   [BIAS] = &p->bias,
                                                   [DST] = &p->dst,
                                                   [DST_H] = &p->dst_h,
                                                   [DST_C] = &p->dst_c};
    float alpha = 0, beta = 0;
    dnnl_alg_kind_t activation = dnnl_alg_kind_undef;
    if (p->kind == BYI_RNN_PLAIN)
        byi_elt_translate(p->activation, &alpha, &beta, &activation);
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, N_DESCS, descs, posts, BYI_UNITS_PLAIN, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = make_pd(lib, p, &s, activation, &pd);
    return byi_prim_wrap(status, pd, &s, "recurrent layer", prim, err);
}
