/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_recurrent.c: builds nn.rnn, nn.gru and nn.lstm, each as
 * one primitive. Weights are prepared at load: gates are put in oneDNN's order,
 * both biases are added up, and weights are packed. */
#include "runtime_dnnl/build.h"

#include <string.h>

/* Operand positions; those after RECURRENT are optional. */
enum { X, WEIGHTS, RECURRENT, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

/* A recurrent layer: its parameters, sizes and arguments. */
struct recurrent {
    uint32_t n_gates, directions;
    struct byi_dnnl_rnn p;
    bool batch_first;
    int64_t time, batch, input, hidden; /* sizes of X and of the state */
    const uint8_t *gates; /* oneDNN's gate i is the model's gates[i] */
    uint32_t n_biases;
    struct byi_dnnl_view src, src_h, src_c, bias;
};

static const char *op_name(const struct byi_build *b)
{
    return byi_dn_step0(b)->name;
}

static struct byi_dnnl_value *value_of(struct byi_build *b, uint32_t i)
{
    return byi_dn_operand(b, byi_dn_arg0(b, i));
}

static bool is_present(struct byi_build *b, uint32_t i)
{
    if (i >= byi_dn_step0(b)->n_args)
        return false;
    const struct byi_desc *d = &value_of(b, i)->views[0].desc;
    return d->rank != 1 || d->dims[0] != 0; /* empty: absent */
}

static bool has_flag(const struct byi_build *b, const char *name)
{
    return byoc_graph_int(byi_dn_step0(b), name, 0) != 0;
}

static bool is_constant(struct byi_build *b, uint32_t i)
{
    const uint32_t buf = value_of(b, i)->views[0].buf;
    return b->bufs.at[buf].kind == BYI_BUF_CONST;
}

/* --- features that oneDNN lacks ------------------------------------------- */

static enum byoc_status read_functions(struct byi_build *b, struct recurrent *m)
{
    static const struct {
        const char *name;
        enum byi_elt alg;
    } plain[] = {{"tanh", BYI_ELT_TANH},
                 {"nn.relu", BYI_ELT_RELU},
                 {"sigmoid", BYI_ELT_SIGMOID}};
    const struct byoc_graph_attr *fns =
        byoc_graph_attr(byi_dn_step0(b), "activations");
    const uint32_t n = fns ? fns->n : 0; /* 0: the default functions */
    if (m->p.kind != BYI_RNN_PLAIN) {
        const uint32_t per_direction = n / m->directions;
        for (uint32_t i = 0; i < n; i++) {
            const char *supported = i % per_direction ? "tanh" : "sigmoid";
            if (strcmp(fns->strings[i], supported) != 0)
                return byi_dn_refuse(b,
                                     "%s: found activation %s, expected %s, "
                                     "the only one that oneDNN has there",
                                     op_name(b), fns->strings[i], supported);
        }
        return BYOC_OK;
    }
    const char *fn = n ? fns->strings[0] : "tanh";
    if (n && strcmp(fns->strings[n - 1], fn) != 0)
        return byi_dn_refuse(b,
                             "%s: found activations %s and %s, expected the "
                             "same one in both directions",
                             op_name(b), fn, fns->strings[n - 1]);
    for (size_t i = 0; i < BYI_COUNT(plain); i++)
        if (strcmp(plain[i].name, fn) == 0) {
            m->p.activation = plain[i].alg;
            return BYOC_OK;
        }
    return byi_dn_refuse(b,
                         "%s: found activation %s, expected tanh, nn.relu or "
                         "sigmoid, which oneDNN has",
                         op_name(b), fn);
}

/* Lengths can be ignored if they are constant and equal to the time. */
static enum byoc_status check_lengths(struct byi_build *b,
                                      const struct recurrent *m)
{
    enum byoc_dtype dtype;
    int64_t n = 0;
    if (!is_present(b, LENGTHS))
        return BYOC_OK;
    const int32_t *lengths =
        byi_dn_const_data(b, byi_dn_arg0(b, LENGTHS), &dtype, &n);
    if (!lengths)
        return byi_dn_refuse(b,
                             "%s: found computed lengths, expected constants, "
                             "since oneDNN runs every sequence to its end",
                             op_name(b));
    for (int64_t i = 0; i < n; i++)
        if (lengths[i] != m->time)
            return byi_dn_refuse(
                b,
                "%s: found a sequence of length %d, expected %lld, since "
                "oneDNN runs every sequence to its end",
                op_name(b), lengths[i], (long long)m->time);
    return BYOC_OK;
}

/* Refuse a layer that oneDNN cannot compute. */
static enum byoc_status check_features(struct byi_build *b, struct recurrent *m)
{
    const double clip = byoc_graph_float(byi_dn_step0(b), "clip", 0);
    if (value_of(b, X)->views[0].desc.dtype != BYOC_F32)
        return byi_dn_refuse(
            b, "%s: found dtype %s, expected float32", op_name(b),
            byoc_dtype_name(value_of(b, X)->views[0].desc.dtype));
    for (uint32_t i = WEIGHTS; i <= BIAS; i++)
        if (i < byi_dn_step0(b)->n_args && is_present(b, i) &&
            !is_constant(b, i))
            return byi_dn_refuse(b,
                                 "%s: found %s that is not constant, expected "
                                 "a constant, which is packed at load",
                                 op_name(b),
                                 i == BIAS ? "a bias" : "a weight matrix");
    if (clip < 1e30)
        return byi_dn_refuse(
            b, "%s: found clip %s, expected none, since oneDNN lacks it",
            op_name(b), BYI_FLOAT_TEXT(clip));
    if (has_flag(b, "input_forget"))
        return byi_dn_refuse(
            b, "%s: found input_forget, expected 0, since oneDNN lacks it",
            op_name(b));
    if (is_present(b, PEEPHOLES))
        return byi_dn_refuse(b,
                             "%s: found peepholes, expected none, since they "
                             "are not passed to oneDNN",
                             op_name(b));
    BYI_TRY(read_functions(b, m));
    return check_lengths(b, m);
}

/* --- operands ------------------------------------------------------------- */

/* Get a row-major view with dims (a, b, c) of a value with dims (a, b, c) or,
 * if `swap`, (b, a, c). */
static enum byoc_status get_order(struct byi_build *b,
                                  struct byi_dnnl_value *value, bool swap,
                                  struct byi_dnnl_view *view)
{
    const uint32_t order[] = {swap ? 1 : 0, swap ? 0 : 1, 2};
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc layout =
        byi_dn_dense(main->dtype, main->rank, main->dims, order);
    BYI_TRY(byi_dn_get_view(b, value, &layout, view));
    view->desc = byi_dn_permute_desc(&layout, order);
    return BYOC_OK;
}

static struct byi_desc state_desc(const struct recurrent *m)
{
    return byi_dn_dense(
        BYOC_F32, 4, (const int64_t[]){1, m->directions, m->batch, m->hidden},
        NULL);
}

static enum byoc_status get_state(struct byi_build *b, struct recurrent *m,
                                  uint32_t operand, struct byi_dnnl_view *view)
{
    const struct byi_desc desc = state_desc(m);
    const struct byi_fill zeros = {.n = byi_elements(4, desc.dims)};
    if (is_present(b, operand)) {
        BYI_TRY(get_order(b, value_of(b, operand), m->batch_first, view));
    } else {
        BYI_TRY(byi_dn_make_fill(b->program, &zeros, b->err));
        view->buf = byi_dn_computed_buf(b, b->program->computed.n - 1);
    }
    view->desc = desc;
    return BYOC_OK;
}

/* Describe the gates of operand `i`, `size` floats each, which load puts in
 * oneDNN's order. */
static struct byi_gates gates_of(struct byi_build *b, const struct recurrent *m,
                                 uint32_t i, int64_t size)
{
    struct byi_gates p = {.no_bias = !is_present(b, i),
                          .directions = m->directions,
                          .gates = m->n_gates,
                          .last_separate = m->n_biases > m->n_gates,
                          .size = size};
    if (!p.no_bias)
        p.from = byi_dn_place(b, &value_of(b, i)->views[0]);
    memcpy(p.order, m->gates, m->n_gates);
    return p;
}

/* Make the constant for the bias: input and recurrent bias added up, except
 * that with linear_before_reset the last gate keeps both. If the model has no
 * bias, the constant is zeros, since oneDNN 2.6 creates no primitive without a
 * bias. */
static enum byoc_status make_bias(struct byi_build *b, struct recurrent *m)
{
    const struct byi_gates p = gates_of(b, m, BIAS, m->hidden);
    BYI_TRY(byi_dn_make_gate_biases(b->program, &p, b->err));
    m->bias.buf = byi_dn_computed_buf(b, b->program->computed.n - 1);
    m->bias.desc = byi_dn_dense(
        BYOC_F32, 4,
        (const int64_t[]){1, m->directions, m->n_biases, m->hidden}, NULL);
    return BYOC_OK;
}

/* View (D, gates H, n) as (1, D, n, gates, H). */
static struct byi_desc weights_desc(const struct recurrent *m, int64_t n)
{
    const int64_t rows = m->n_gates * m->hidden;
    struct byi_desc d = {
        .kind = BYI_DESC_STRIDED,
        .dtype = BYOC_F32,
        .rank = 5,
        .dims = {1, m->directions, n, m->n_gates, m->hidden},
        .strides = {m->directions * rows * n, rows * n, 1, m->hidden * n, n}};
    return d;
}

/* Pack constant weights for `arg` of the primitive. */
static enum byoc_status pack_weights(struct byi_build *b,
                                     const struct recurrent *m,
                                     uint32_t operand, int arg,
                                     struct byi_emit *e)
{
    struct byi_dnnl_view view;
    BYI_TRY(byi_dn_get_row_major(b, value_of(b, operand), &view));
    const int64_t n = view.desc.dims[2];
    bool in_order = true;
    for (uint32_t g = 0; g < m->n_gates; g++)
        in_order = in_order && m->gates[g] == g;
    if (!in_order) {
        const struct byi_gates p = gates_of(b, m, operand, m->hidden * n);
        BYI_TRY(byi_dn_make_gate_weights(b->program, &p, b->err));
        view = (struct byi_dnnl_view){
            .buf = byi_dn_computed_buf(b, b->program->computed.n - 1)};
    }
    view.desc = weights_desc(m, n);
    return byi_dn_get_packed(b, &view, e->prim, arg, &e->uses[e->n++]);
}

/* --- the kernel ----------------------------------------------------------- */

static enum byoc_status read_layer(struct byi_build *b, struct recurrent *m)
{
    static const uint8_t model_order[] = {0, 1, 2}, lstm_order[] = {0, 2, 3, 1};
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const char *direction = byoc_graph_string(step, "direction", "");
    const int64_t *x = value_of(b, X)->views[0].desc.dims;
    m->batch_first = has_flag(b, "batch_first");
    m->time = x[m->batch_first ? 1 : 0];
    m->batch = x[m->batch_first ? 0 : 1];
    m->input = x[2];
    m->hidden = value_of(b, RECURRENT)->views[0].desc.dims[2];
    m->gates = byi_dn_is(step, "nn.lstm") ? lstm_order : model_order;
    m->p.kind = byi_dn_is(step, "nn.rnn")            ? BYI_RNN_PLAIN
                : byi_dn_is(step, "nn.lstm")         ? BYI_RNN_LSTM
                : has_flag(b, "linear_before_reset") ? BYI_RNN_GRU_LINEAR
                                                     : BYI_RNN_GRU;
    m->n_gates = m->p.kind == BYI_RNN_PLAIN  ? 1
                 : m->p.kind == BYI_RNN_LSTM ? 4
                                             : 3;
    m->n_biases = m->n_gates + (m->p.kind == BYI_RNN_GRU_LINEAR);
    m->p.bidirectional = strcmp(direction, "bidirectional") == 0;
    m->p.reverse = strcmp(direction, "reverse") == 0;
    m->directions = m->p.bidirectional ? 2 : 1;
    return BYOC_OK;
}

static enum byoc_status get_operands(struct byi_build *b, struct recurrent *m)
{
    BYI_TRY(get_order(b, value_of(b, X), m->batch_first, &m->src));
    m->p.src = m->src.desc;
    if (is_present(b, INITIAL_H) || is_present(b, INITIAL_C)) {
        BYI_TRY(get_state(b, m, INITIAL_H, &m->src_h));
        m->p.src_h = m->src_h.desc;
        if (m->p.kind == BYI_RNN_LSTM) {
            BYI_TRY(get_state(b, m, INITIAL_C, &m->src_c));
            m->p.src_c = m->src_c.desc;
        }
    }
    BYI_TRY(make_bias(b, m));
    m->p.bias = m->bias.desc;
    m->p.weights = weights_desc(m, m->input);
    m->p.recurrent = weights_desc(m, m->hidden);
    m->p.weights.kind = m->p.recurrent.kind = BYI_DESC_ANY;
    m->p.dst = byi_dn_dense(
        BYOC_F32, 3,
        (const int64_t[]){m->time, m->batch, m->directions * m->hidden}, NULL);
    m->p.dst_h = state_desc(m);
    if (m->p.kind == BYI_RNN_LSTM)
        m->p.dst_c = state_desc(m);
    return BYOC_OK;
}

/* Define an output of the operator as a result of the primitive. */
static void define_output(struct byi_build *b, const struct recurrent *m,
                          uint32_t output, struct byi_dnnl_view view)
{
    const int64_t directions = m->directions, h = m->hidden;
    const int64_t row = directions * h, t = m->batch * row;
    const struct byi_desc y_time_first = {
        .dims = {m->time, directions, m->batch, h}, .strides = {t, h, row, 1}};
    const struct byi_desc y_batch_first = {
        .dims = {m->batch, m->time, directions, h}, .strides = {row, t, h, 1}};
    const struct byi_desc state = {.dims = {directions, m->batch, h},
                                   .strides = {m->batch * h, h, 1}};
    const struct byi_desc state_batch_first = {
        .dims = {m->batch, directions, h}, .strides = {h, m->batch * h, 1}};
    view.desc = output ? (m->batch_first ? state_batch_first : state)
                       : (m->batch_first ? y_batch_first : y_time_first);
    view.desc.kind = BYI_DESC_STRIDED;
    view.desc.dtype = BYOC_F32;
    view.desc.rank = output ? 3 : 4;
    byi_dn_define(b, output, &view);
}

/* Make `view` argument `arg`, unless the argument is absent. */
static void use_if_present(struct byi_emit *e, int arg,
                           const struct byi_dnnl_view *view,
                           const struct byi_desc *desc)
{
    if (desc->kind != BYI_DESC_ABSENT)
        byi_dn_use(e, arg, view);
}

enum byoc_status byi_dn_build_recurrent(struct byi_build *b)
{
    static const int results[] = {BYI_ARG_DST, BYI_ARG_DST_H, BYI_ARG_DST_C};
    struct recurrent m = {0};
    struct byi_emit e = {.name = op_name(b)};
    BYI_TRY(read_layer(b, &m));
    BYI_TRY(check_features(b, &m));
    BYI_TRY(get_operands(b, &m));
    BYI_TRY(byi_dn_rnn_new(b, &m.p, NULL, &e.prim));
    use_if_present(&e, BYI_ARG_SRC, &m.src, &m.p.src);
    use_if_present(&e, BYI_ARG_SRC_H, &m.src_h, &m.p.src_h);
    use_if_present(&e, BYI_ARG_SRC_C, &m.src_c, &m.p.src_c);
    use_if_present(&e, BYI_ARG_BIAS, &m.bias, &m.p.bias);
    enum byoc_status status = pack_weights(b, &m, WEIGHTS, BYI_ARG_WEIGHTS, &e);
    if (status == BYOC_OK)
        status = pack_weights(b, &m, RECURRENT, BYI_ARG_RECURRENT, &e);
    if (status != BYOC_OK) {
        byi_dn_abandon(b, &e.prim);
        return status;
    }
    struct byi_dnnl_view out[3] = {{0}};
    const struct byi_desc *descs[] = {&m.p.dst, &m.p.dst_h, &m.p.dst_c};
    for (uint32_t i = 0; i < b->kernel->n_outs; i++) {
        out[i].buf = byi_dn_temp(b, byi_dn_desc_bytes(descs[i]));
        byi_dn_use(&e, results[i], &out[i]);
    }
    BYI_TRY(byi_dn_emit(b, &e));
    for (uint32_t i = 0; i < b->kernel->n_outs; i++)
        define_output(b, &m, i, out[i]);
    return BYOC_OK;
}
