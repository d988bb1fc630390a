/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.c: computes nn.rnn, nn.gru and nn.lstm from their equations, element
 * by element, in double: the float64 kernel, and the reference for recurrent.c.
 * With W x = weights x + bias, R h = recurrent h + bias and activations f, g,
 * h, whose arguments are clipped:
 *   rnn   h' = f(W x + R h)
 *   gru   z = f(Wz x + Rz h)   r = f(Wr x + Rr h)
 *         n = g(Wh x + Rh (r * h)), or g(Wh x + r * (Rh h)) linear before reset
 *         h' = (1 - z) * n + z * h
 *   lstm  i = f(Wi x + Ri h + Pi * c)   j = f(Wf x + Rf h + Pf * c), or 1 - i
 *         c' = j * c + i * g(Wc x + Rc h)
 *         o = f(Wo x + Ro h + Po * c')   h' = o * h(c')
 */
#include "sequence.h"

static bool has_flag(const struct byi_call *call, const char *name)
{
    return byi_attr_find(call->attrs, name) && byi_attr_int(call->attrs, name);
}

void byi_sequence_read(const struct byi_call *call, struct byi_sequence *s)
{
    struct byoc_error err;
    *s = (struct byi_sequence){
        .op = call->op->id,
        .batch_first = has_flag(call, "batch_first"),
        .linear_before_reset = has_flag(call, "linear_before_reset"),
        .input_forget = has_flag(call, "input_forget"),
        .clip = byi_attr_float(call->attrs, "clip"),
        .x = &call->in[0],
        .weights = &call->in[1],
        .recurrent = &call->in[2],
        .bias = byi_optional_operand(call, 3),
        .lengths = byi_optional_operand(call, 4),
        .initial_h = byi_optional_operand(call, 5),
        .initial_c = byi_optional_operand(call, 6),
        .peepholes = byi_optional_operand(call, 7),
        .y = &call->out[0],
        .y_h = &call->out[1],
        .y_c = call->n_out > 2 ? &call->out[2] : NULL,
    };
    s->time = s->x->dims[s->batch_first ? 1 : 0];
    s->batch = s->x->dims[s->batch_first ? 0 : 1];
    s->input = s->x->dims[2];
    s->hidden = s->recurrent->dims[2];
    const enum byoc_status status =
        byi_recurrent_read(call->op, call->attrs, &s->r, &err);
    assert(status == BYOC_OK);
    (void)status;
}

enum byoc_status byi_sequence_check(const struct byi_sequence *s,
                                    const struct byi_call *call,
                                    struct byoc_error *err)
{
    for (int64_t n = 0; s->lengths && n < s->batch; n++) {
        const int64_t length = byi_sequence_length(s, n);
        if (length < 0 || length > s->time)
            return byi_fail(
                err, BYOC_EINVAL,
                "%s: lengths[%lld] is %lld, expected 0 to %lld, the "
                "number of time steps of x",
                call->op->name, (long long)n, (long long)length,
                (long long)s->time);
    }
    return BYOC_OK;
}

/* --- the plain form ------------------------------------------------------ */

static double element(const struct byi_tensor *t, int64_t i)
{
    return t ? byi_tensor_float(t, i) : 0;
}

static double apply(const struct byi_sequence *s, int64_t d, uint32_t f,
                    double x)
{
    const struct byi_gate_fn *fn = &s->r.fn[d][f];
    const double params[] = {fn->alpha, fn->beta, 0, 0};
    x = x > s->clip ? s->clip : x < -s->clip ? -s->clip : x;
    if (fn->op == BYI_OP_NONE)
        return fn->alpha * x + fn->beta;
    if (fn->op == BYI_OP_TANH && fn->n_params)
        return fn->alpha * tanh(fn->beta * x);
    return byi_unary_plain(fn->op, x, params);
}

/* Step t of sequence n in direction d. */
struct sequence_step {
    const struct byi_sequence *s;
    int64_t d, t, n;
    const double *h, *c;     /* the states before the step */
    double *next_h, *next_c; /* and after it */
    double *reset;           /* gru: r * h, or r if linear_before_reset */
};

/* input_sum: row `row` of weights x + bias. recurrent_sum: row `row` of
 * recurrent v + bias. */
static double input_sum(const struct sequence_step *p, int64_t row)
{
    const struct byi_sequence *s = p->s;
    const int64_t rows = s->r.gates * s->hidden;
    const int64_t x = byi_sequence_x(s, p->t, p->n);
    const int64_t w = (p->d * rows + row) * s->input;
    double sum = element(s->bias, 2 * p->d * rows + row);
    for (int64_t i = 0; i < s->input; i++)
        sum += element(s->x, x + i) * element(s->weights, w + i);
    return sum;
}

static double recurrent_sum(const struct sequence_step *p, int64_t row,
                            const double *v)
{
    const struct byi_sequence *s = p->s;
    const int64_t rows = s->r.gates * s->hidden;
    const int64_t w = (p->d * rows + row) * s->hidden;
    double sum = element(s->bias, (2 * p->d + 1) * rows + row);
    for (int64_t i = 0; i < s->hidden; i++)
        sum += v[i] * element(s->recurrent, w + i);
    return sum;
}

static double gate_sum(const struct sequence_step *p, int64_t row)
{
    return input_sum(p, row) + recurrent_sum(p, row, p->h);
}

static void step_rnn(const struct sequence_step *p)
{
    for (int64_t k = 0; k < p->s->hidden; k++)
        p->next_h[k] = apply(p->s, p->d, 0, gate_sum(p, k));
}

static void step_gru(const struct sequence_step *p)
{
    const struct byi_sequence *s = p->s;
    const int64_t hidden = s->hidden;
    for (int64_t k = 0; k < hidden; k++)
        p->reset[k] = apply(s, p->d, 0, gate_sum(p, hidden + k));
    if (!s->linear_before_reset)
        for (int64_t k = 0; k < hidden; k++)
            p->reset[k] *= p->h[k];
    for (int64_t k = 0; k < hidden; k++) {
        const double z = apply(s, p->d, 0, gate_sum(p, k));
        const int64_t row = 2 * hidden + k;
        const double recurrent = s->linear_before_reset
                                     ? p->reset[k] * recurrent_sum(p, row, p->h)
                                     : recurrent_sum(p, row, p->reset);
        const double n = apply(s, p->d, 1, input_sum(p, row) + recurrent);
        p->next_h[k] = (1 - z) * n + z * p->h[k];
    }
}

static void step_lstm(const struct sequence_step *p)
{
    const struct byi_sequence *s = p->s;
    const int64_t hidden = s->hidden, d = p->d;
    for (int64_t k = 0; k < hidden; k++) {
        const int64_t peephole = 3 * d * hidden + k;
        const double c = p->c[k];
        const double i = apply(
            s, d, 0, gate_sum(p, k) + element(s->peepholes, peephole) * c);
        const double f =
            s->input_forget
                ? 1 - i
                : apply(s, d, 0,
                        gate_sum(p, 2 * hidden + k) +
                            element(s->peepholes, peephole + 2 * hidden) * c);
        p->next_c[k] = f * c + i * apply(s, d, 1, gate_sum(p, 3 * hidden + k));
        const double o =
            apply(s, d, 0,
                  gate_sum(p, hidden + k) +
                      element(s->peepholes, peephole + hidden) * p->next_c[k]);
        p->next_h[k] = o * apply(s, d, 2, p->next_c[k]);
    }
}

/* Compute sequence n in direction d. `state` has 5 * hidden elements. */
static void run_sequence(const struct byi_sequence *s, int64_t d, int64_t n,
                         double *state)
{
    const int64_t hidden = s->hidden, length = byi_sequence_length(s, n);
    const int64_t at = byi_sequence_state(s, d, n);
    const size_t bytes = (size_t)hidden * sizeof *state;
    double *h = state, *c = h + hidden, *next_h = c + hidden;
    double *next_c = next_h + hidden;
    for (int64_t k = 0; k < hidden; k++) {
        h[k] = element(s->initial_h, at + k);
        c[k] = element(s->initial_c, at + k);
    }
    for (int64_t i = 0; i < s->time; i++) {
        const int64_t t = s->r.reverse[d] && i < length ? length - 1 - i : i;
        const struct sequence_step step = {
            s, d, t, n, h, c, next_h, next_c, next_c + hidden};
        const int64_t y = byi_sequence_y(s, d, t, n);
        if (i < length) {
            (s->op == BYI_OP_NN_LSTM  ? step_lstm
             : s->op == BYI_OP_NN_GRU ? step_gru
                                      : step_rnn)(&step);
            memcpy(h, next_h, bytes);
            memcpy(c, next_c, bytes);
        }
        for (int64_t k = 0; k < hidden; k++)
            byi_tensor_set(s->y, y + k, i < length ? h[k] : 0);
    }
    for (int64_t k = 0; k < hidden; k++) {
        byi_tensor_set(s->y_h, at + k, h[k]);
        if (s->y_c)
            byi_tensor_set(s->y_c, at + k, c[k]);
    }
}

enum byoc_status byi_recurrent_plain(const struct byi_call *call,
                                     struct byoc_error *err)
{
    struct byi_sequence s;
    byi_sequence_read(call, &s);
    BYI_TRY(byi_sequence_check(&s, call, err));
    for (int64_t d = 0; d < s.r.directions; d++)
        for (int64_t n = 0; n < s.batch; n++)
            run_sequence(&s, d, n, call->scratch);
    return BYOC_OK;
}
