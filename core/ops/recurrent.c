/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c: reads the attributes of nn.rnn, nn.gru and nn.lstm, for the type
 * rule, the kernels and backends.
 */
#include "ops.h"

#include <string.h>

static const struct byi_gate_fn functions[] = {
    {"sigmoid", BYI_OP_SIGMOID, 0, 0, 0},
    {"tanh", BYI_OP_TANH, 0, 0, 0},
    {"nn.relu", BYI_OP_NN_RELU, 0, 0, 0},
    {"nn.softsign", BYI_OP_NN_SOFTSIGN, 0, 0, 0},
    {"nn.softplus", BYI_OP_NN_SOFTPLUS, 0, 0, 0},
    {"nn.leaky_relu", BYI_OP_NN_LEAKY_RELU, 1, 0.01, 0},
    {"nn.thresholded_relu", BYI_OP_NN_THRESHOLDED_RELU, 1, 1, 0},
    {"nn.elu", BYI_OP_NN_ELU, 1, 1, 0},
    {"nn.hard_sigmoid", BYI_OP_NN_HARD_SIGMOID, 2, 0.2, 0.5},
    {"scaled_tanh", BYI_OP_TANH, 2, 1, 1},
    {"affine", BYI_OP_NONE, 2, 1, 0},
};
enum { SIGMOID, TANH }; /* indices of functions[] */

/* The recurrent operators, with the defaults of their functions. */
static const struct recurrent_kind {
    enum byi_op_id op;
    uint32_t gates, n_fns;
    uint8_t defaults[BYI_MAX_GATE_FNS]; /* indices of functions[] */
} kinds[] = {
    {BYI_OP_NN_RNN, 1, 1, {TANH}},
    {BYI_OP_NN_GRU, 3, 2, {SIGMOID, TANH}},
    {BYI_OP_NN_LSTM, 4, 3, {SIGMOID, TANH, TANH}},
};

static const struct recurrent_kind *kind_of(enum byi_op_id op)
{
    for (size_t i = 0; i < BYI_COUNT(kinds); i++)
        if (kinds[i].op == op)
            return &kinds[i];
    byi_unreachable();
}

static const struct byi_gate_fn *find_function(const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

static enum byoc_status read_direction(const struct byi_op *op,
                                       const struct byi_attrs *attrs,
                                       struct byi_recurrent *r,
                                       struct byoc_error *err)
{
    const char *word = byi_attr_string(attrs, "direction");
    r->directions = 1;
    if (strcmp(word, "reverse") == 0) {
        r->reverse[0] = true;
    } else if (strcmp(word, "bidirectional") == 0) {
        r->directions = 2;
        r->reverse[1] = true;
    } else if (strcmp(word, "forward") != 0) {
        return byi_fail(err, BYOC_ETYPE,
                        "%s: direction is \"%.40s\", expected forward, reverse "
                        "or bidirectional",
                        op->name, word);
    }
    return BYOC_OK;
}

/* Check that a list has one entry for every function, or is empty. */
static enum byoc_status check_count(const struct byi_op *op,
                                    const struct byi_recurrent *r,
                                    const char *name, uint32_t found,
                                    struct byoc_error *err)
{
    const uint32_t n = r->directions * r->n_fns;
    if (found == 0 || found == n)
        return BYOC_OK;
    return byi_fail(err, BYOC_ETYPE,
                    "%s: %s has %u entries, expected none or %u: %u for every "
                    "direction",
                    op->name, name, found, n, r->n_fns);
}

enum byoc_status byi_recurrent_read(const struct byi_op *op,
                                    const struct byi_attrs *attrs,
                                    struct byi_recurrent *r,
                                    struct byoc_error *err)
{
    const struct recurrent_kind *kind = kind_of(op->id);
    const struct byi_attr *names = byi_attr_find(attrs, "activations");
    uint32_t n_alpha, n_beta;
    const double *alpha = byi_attr_floats(attrs, "activation_alpha", &n_alpha);
    const double *beta = byi_attr_floats(attrs, "activation_beta", &n_beta);
    *r = (struct byi_recurrent){
        .gates = kind->gates, .n_fns = kind->n_fns, .has_default_fns = true};
    BYI_TRY(read_direction(op, attrs, r, err));
    BYI_TRY(check_count(op, r, "activations", names->n, err));
    BYI_TRY(check_count(op, r, "activation_alpha", n_alpha, err));
    BYI_TRY(check_count(op, r, "activation_beta", n_beta, err));
    for (uint32_t i = 0; i < r->directions * r->n_fns; i++) {
        const struct byi_gate_fn *standard =
            &functions[kind->defaults[i % r->n_fns]];
        const struct byi_gate_fn *fn =
            names->n ? find_function(names->strings[i]) : standard;
        if (!fn)
            return byi_fail(err, BYOC_ETYPE,
                            "%s: activations[%u] is \"%.40s\", expected "
                            "sigmoid, tanh, nn.relu, nn.softsign, nn.softplus, "
                            "nn.leaky_relu, nn.thresholded_relu, nn.elu, "
                            "nn.hard_sigmoid, scaled_tanh or affine",
                            op->name, i, names->strings[i]);
        struct byi_gate_fn *to = &r->fn[i / r->n_fns][i % r->n_fns];
        *to = *fn;
        to->alpha = n_alpha ? alpha[i] : fn->alpha;
        to->beta = n_beta ? beta[i] : fn->beta;
        r->has_default_fns = r->has_default_fns && fn == standard;
    }
    return BYOC_OK;
}

bool byi_is_absent(uint32_t rank, const int64_t *dims)
{
    return rank == 1 && dims[0] == 0;
}
