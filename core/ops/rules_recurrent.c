/* SPDX-License-Identifier: Apache-2.0 */
/* rules_recurrent.c: the type rule of nn.rnn, nn.gru and nn.lstm. */
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

enum byoc_status byi_rule_recurrent(struct byi_infer *t,
                                    const struct byi_type **out)
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
    int64_t holes = byi_dim_mul(t, 3, hidden);
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
    BYI_TRY(
        want_dims(t, 7, "peepholes", 2, (int64_t *[]){&directions, &holes}));

    const struct byi_type *fields[3];
    const int64_t first[] = {time, directions, batch, hidden};
    const int64_t second[] = {batch, time, directions, hidden};
    const int64_t last[] = {*state[0], *state[1], hidden};
    BYI_TRY(byi_rule_tensor(t, x->dtype, 4, batch_first ? second : first,
                            &fields[0]));
    BYI_TRY(byi_rule_tensor(t, x->dtype, 3, last, &fields[1]));
    fields[2] = fields[1];
    *out = byi_type_tuple(t->arena, t->op->n_out, fields);
    return BYOC_OK;
}
