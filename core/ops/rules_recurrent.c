/* SPDX-License-Identifier: Apache-2.0 */
/* rules_recurrent.c: the type rules of nn.rnn, nn.gru, nn.lstm and
 * nn.linear_attention.
 */
#include "rules.h"

/* Check that operand i, unless omitted, has x's type and these dims, which
 * become more specific if the operand's are. */
static enum byoc_status want_dims(const struct byi_infer *t, uint32_t i,
                                  const char *name, uint32_t n, int64_t **dims)
{
    if (i >= t->n_in ||
        (i > 2 && byi_is_absent(t->in[i]->rank, t->in[i]->dims)))
        return BYOC_OK;
    const struct byi_type *in = t->in[i];
    BYI_TRY(byi_want_same_dtype(t, i, 0, name));
    BYI_TRY(byi_want_rank(t, i, n, name));
    for (uint32_t k = 0; k < n; k++) {
        if (!byi_dims_agree(in->dims[k], *dims[k]))
            return byi_rule_fail(
                t, "%s has %lld elements on axis %u, expected %lld", name,
                (long long)in->dims[k], k, (long long)*dims[k]);
        *dims[k] = byi_dim_unify(*dims[k], in->dims[k]);
    }
    return BYOC_OK;
}

static enum byoc_status want_lengths(const struct byi_infer *t, int64_t *batch)
{
    if (t->n_in <= 4 || byi_is_absent(t->in[4]->rank, t->in[4]->dims))
        return BYOC_OK;
    if (t->in[4]->dtype != BYOC_I32)
        return byi_want_dtype(t, 4, BYI_BIT(BYOC_I32), "lengths");
    BYI_TRY(byi_want_ints(t, 4, *batch, "lengths"));
    *batch = byi_dim_unify(*batch, t->in[4]->dims[0]);
    return BYOC_OK;
}

enum byoc_status byi_rule_recurrent(struct byi_infer *t)
{
    struct byi_recurrent r;
    BYI_TRY(byi_recurrent_read(t->op, t->attrs, &r, t->err));
    const bool batch_first = byi_attr_int(t->attrs, "batch_first") != 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "x"));
    BYI_TRY(byi_want_rank(t, 0, 3, "x"));
    BYI_TRY(byi_want_rank(t, 2, 3, "recurrent"));
    if (!(byi_attr_float(t->attrs, "clip") > 0)) /* NaN is refused, too */
        return byi_rule_fail(t, "clip is %s, expected more than 0",
                             BYI_FLOAT_TEXT(byi_attr_float(t->attrs, "clip")));

    const struct byi_type *x = t->in[0];
    int64_t time = x->dims[batch_first ? 1 : 0];
    int64_t batch = x->dims[batch_first ? 0 : 1];
    int64_t input = x->dims[2], hidden = t->in[2]->dims[2];
    int64_t directions = r.directions;
    int64_t rows = byi_dim_mul(t, r.gates, hidden);
    int64_t biases = byi_dim_mul(t, 2, rows);
    int64_t peepholes = byi_dim_mul(t, 3, hidden);
    int64_t *state[] = {&directions, &batch, &hidden};
    if (batch_first) {
        state[0] = &batch;
        state[1] = &directions;
    }
    BYI_TRY(want_dims(t, 1, "weights", 3,
                      (int64_t *[]){&directions, &rows, &input}));
    BYI_TRY(want_dims(t, 2, "recurrent", 3,
                      (int64_t *[]){&directions, &rows, &hidden}));
    BYI_TRY(want_dims(t, 3, "bias", 2, (int64_t *[]){&directions, &biases}));
    BYI_TRY(want_lengths(t, &batch));
    BYI_TRY(want_dims(t, 5, "initial_h", 3, state));
    BYI_TRY(want_dims(t, 6, "initial_c", 3, state));
    BYI_TRY(want_dims(t, 7, "peepholes", 2,
                      (int64_t *[]){&directions, &peepholes}));

    const int64_t time_major[] = {time, directions, batch, hidden};
    const int64_t batch_major[] = {batch, time, directions, hidden};
    const int64_t last[] = {*state[0], *state[1], hidden};
    return byi_rule_tensors(
        t, t->op->n_out,
        (struct byi_rule_field[]){
            {x->dtype, 4, batch_first ? batch_major : time_major},
            {x->dtype, 3, last},
            {x->dtype, 3, last}});
}

/* --- linear attention ----------------------------------------------------- */

/* The width of operand i, which must be a number and a multiple of `unit`. */
static enum byoc_status want_width(const struct byi_infer *t, uint32_t i,
                                   const char *name, int64_t unit,
                                   int64_t *width)
{
    BYI_TRY(byi_want_rank(t, i, 3, name));
    *width = t->in[i]->dims[2];
    if (BYI_IS_SYMBOL(*width))
        return byi_rule_fail(t, "%s has a symbolic width, expected a number",
                             name);
    if (*width % unit)
        return byi_rule_fail(t,
                             "%s has width %lld, expected a multiple of %lld",
                             name, (long long)*width, (long long)unit);
    return BYOC_OK;
}

/* The width of operand i, which is `first` or `second`; `first` if it is
 * omitted.
 */
static int64_t either_width(const struct byi_infer *t, uint32_t i,
                            int64_t first, int64_t second)
{
    return i < t->n_in && t->in[i]->rank == 3 && t->in[i]->dims[2] == second
               ? second
               : first;
}

static enum byoc_status want_head_counts(const struct byi_infer *t,
                                         int64_t heads, int64_t kv)
{
    if (heads < 1 || kv < 1 || (heads % kv && kv % heads))
        return byi_rule_fail(t,
                             "heads is %lld and kv_heads %lld, expected "
                             "positive numbers, one a multiple of the other",
                             (long long)heads, (long long)kv);
    return BYOC_OK;
}

enum byoc_status byi_rule_linear_attention(struct byi_infer *t)
{
    const int64_t heads = byi_attr_int(t->attrs, "heads");
    int64_t kv = byi_attr_int(t->attrs, "kv_heads"), widths[3];
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "query"));
    BYI_TRY(want_head_counts(t, heads, kv));
    BYI_TRY(want_width(t, 0, "query", heads, &widths[0]));
    int64_t dk = widths[0] / heads;
    if (dk == 0)
        return byi_rule_fail(t, "query has width 0, expected at least %lld",
                             (long long)heads);
    BYI_TRY(want_width(t, 1, "key", dk, &widths[1]));
    BYI_TRY(want_width(t, 2, "value", kv, &widths[2]));
    int64_t dv = widths[2] / kv;
    if (widths[1] == 0 || kv % (widths[1] / dk))
        return byi_rule_fail(t,
                             "key has %lld heads of size %lld, expected a "
                             "divisor of the %lld heads of value",
                             (long long)(widths[1] / dk), (long long)dk,
                             (long long)kv);

    int64_t batch = t->in[0]->dims[0], time = t->in[0]->dims[1];
    int64_t decays = either_width(t, 4, kv, byi_dim_mul(t, kv, dk));
    int64_t betas = either_width(t, 5, kv, 1);
    BYI_TRY(
        want_dims(t, 1, "key", 3, (int64_t *[]){&batch, &time, &widths[1]}));
    BYI_TRY(
        want_dims(t, 2, "value", 3, (int64_t *[]){&batch, &time, &widths[2]}));
    BYI_TRY(want_dims(t, 3, "past", 4, (int64_t *[]){&batch, &kv, &dk, &dv}));
    BYI_TRY(want_dims(t, 4, "decay", 3, (int64_t *[]){&batch, &time, &decays}));
    BYI_TRY(want_dims(t, 5, "beta", 3, (int64_t *[]){&batch, &time, &betas}));

    const int64_t y[] = {batch, time,
                         byi_dim_mul(t, kv > heads ? kv : heads, dv)};
    const int64_t state[] = {batch, kv, dk, dv};
    return byi_rule_tensors(
        t, 2,
        (struct byi_rule_field[]){{t->in[0]->dtype, 3, y},
                                  {t->in[0]->dtype, 4, state}});
}
