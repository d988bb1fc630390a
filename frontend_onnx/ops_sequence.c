/* SPDX-License-Identifier: Apache-2.0 */
/* ops_sequence.c: converts recurrent operators.
 *
 * LSTM(x, W, R, "", "", h, direction="reverse", hidden_size=64, layout=1)
 *     -> nn.lstm(%x, %W, %R, [], [], %h, direction="reverse", batch_first=true)
 *
 * hidden_size follows from R; [] is an empty tensor for an omitted input.
 * ONNX's activation_alpha and _beta have entries only for activations that take
 * such a parameter; the IR has an entry for every activation.
 */
#include "frontend_onnx/import.h"

#include <string.h>
#include <strings.h>

enum { MAX_INPUTS = 8, MAX_FUNCTIONS = 2 * BYI_MAX_GATE_FNS };

static const struct rnn_function {
    const char *onnx, *name;
    bool alpha, beta;
    double alpha_usual, beta_usual;
} functions[] = {
    {"Affine", "affine", true, true, 1, 0},
    {"Elu", "nn.elu", true, false, 1, 0},
    {"HardSigmoid", "nn.hard_sigmoid", true, true, 0.2, 0.5},
    {"LeakyRelu", "nn.leaky_relu", true, false, 0.01, 0},
    {"Relu", "nn.relu", false, false, 0, 0},
    {"ScaledTanh", "scaled_tanh", true, true, 1, 1},
    {"Sigmoid", "sigmoid", false, false, 0, 0},
    {"Softplus", "nn.softplus", false, false, 0, 0},
    {"Softsign", "nn.softsign", false, false, 0, 0},
    {"Tanh", "tanh", false, false, 0, 0},
    {"ThresholdedRelu", "nn.thresholded_relu", true, false, 1, 0},
};

static const struct rnn_function *find_function(struct byi_import *o,
                                                const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(functions); i++)
        if (strcasecmp(functions[i].onnx, name) == 0)
            return &functions[i];
    byi_o_refuse(
        o, "activation '%.40s', expected one that ONNX defines for RNN", name);
    return NULL;
}

/* The activations' attributes for the IR. */
struct activations {
    uint32_t n;
    const char *names[MAX_FUNCTIONS];
    double alpha[MAX_FUNCTIONS], beta[MAX_FUNCTIONS];
};

/* The model's next number, or `usual` after the last one. */
static double next(const double *values, uint32_t n, uint32_t *at, double usual)
{
    return *at < n ? values[(*at)++] : usual;
}

/* Whether the names are ONNX's default activations of RNN: "Tanh" for each of
 * two directions. ONNX Runtime writes them out even if there is one direction.
 */
static bool is_written_default(const struct byi_import *o,
                               const char *const *names, uint32_t n)
{
    return strcmp(o->row->type, "RNN") == 0 && n == 2 &&
           strcmp(names[0], "Tanh") == 0 && strcmp(names[1], "Tanh") == 0;
}

static void read_activations(struct byi_import *o, struct activations *a)
{
    uint32_t n_alpha, n_beta, at_alpha = 0, at_beta = 0;
    const char *const *names = byi_o_strings(o, "activations", &a->n);
    const double *alpha = byi_o_floats(o, "activation_alpha", &n_alpha);
    const double *beta = byi_o_floats(o, "activation_beta", &n_beta);

    if (is_written_default(o, names, a->n))
        a->n = 0;
    if (a->n > MAX_FUNCTIONS)
        byi_o_fail(o, BYOC_ETYPE, "found %u activations, expected at most %d",
                   a->n, MAX_FUNCTIONS);
    for (uint32_t i = 0; byi_o_ok(o) && i < a->n; i++) {
        const struct rnn_function *f = find_function(o, names[i]);
        if (!f)
            return;
        a->names[i] = f->name;
        a->alpha[i] = f->alpha_usual;
        a->beta[i] = f->beta_usual;
        if (f->alpha)
            a->alpha[i] = next(alpha, n_alpha, &at_alpha, f->alpha_usual);
        if (f->beta)
            a->beta[i] = next(beta, n_beta, &at_beta, f->beta_usual);
    }
}

/* Inputs up to the last present one; *n: their number. */
static const byi_id *read_inputs(struct byi_import *o, uint32_t *n)
{
    byi_id *args = byi_arena_calloc(o->scratch, MAX_INPUTS, sizeof *args);

    *n = o->n_in;
    while (*n > 3 && o->in[*n - 1] == BYI_NO_ID)
        (*n)--;
    for (uint32_t i = 0; i < *n; i++) {
        args[i] = byi_o_in(o, i);
        if (args[i] == BYI_NO_ID)
            args[i] = byi_o_array(o, BYOC_F32, 0, NULL);
    }
    return args;
}

static void check_hidden(struct byi_import *o)
{
    const byi_id r = byi_o_in(o, 2);
    const int64_t given = byi_o_int(o, "hidden_size", byi_o_dim(o, r, 2));

    if (byi_o_ok(o) && byi_o_rank(o, r) == 3 && byi_o_dim(o, r, 2) >= 0 &&
        given != byi_o_dim(o, r, 2))
        byi_o_fail(o, BYOC_ETYPE,
                   "hidden_size is %lld, expected the %lld columns of R",
                   (long long)given, (long long)byi_o_dim(o, r, 2));
}

static void convert_recurrent(struct byi_import *o)
{
    struct activations a = {0};
    uint32_t n, n_attrs = 0;
    struct byi_attr attrs[8];

    check_hidden(o);
    byi_o_int(o, "output_sequence", 0); /* before opset 7: whether y is read */
    read_activations(o, &a);
    attrs[n_attrs++] = (struct byi_attr)A_STRING(
        "direction", byi_o_string(o, "direction", "forward"));
    if (a.n) {
        attrs[n_attrs++] = (struct byi_attr){.name = "activations",
                                             .kind = BYI_ATTR_STRINGS,
                                             .n = a.n,
                                             .strings = a.names};
        attrs[n_attrs++] = (struct byi_attr){.name = "activation_alpha",
                                             .kind = BYI_ATTR_FLOATS,
                                             .n = a.n,
                                             .floats = a.alpha};
        attrs[n_attrs++] = (struct byi_attr){.name = "activation_beta",
                                             .kind = BYI_ATTR_FLOATS,
                                             .n = a.n,
                                             .floats = a.beta};
    }
    if (byi_o_has(o, "clip"))
        attrs[n_attrs++] =
            (struct byi_attr)A_FLOAT("clip", byi_o_float(o, "clip", 0));
    attrs[n_attrs++] =
        (struct byi_attr)A_BOOL("batch_first", byi_o_int(o, "layout", 0) != 0);
    if (o->row->op == BYI_OP_NN_GRU)
        attrs[n_attrs++] = (struct byi_attr)A_BOOL(
            "linear_before_reset", byi_o_int(o, "linear_before_reset", 0) != 0);
    if (o->row->op == BYI_OP_NN_LSTM)
        attrs[n_attrs++] = (struct byi_attr)A_BOOL(
            "input_forget", byi_o_int(o, "input_forget", 0) != 0);
    const byi_id *args = read_inputs(o, &n);
    const byi_id all = byi_o_emit(o, o->row->op, n, args, n_attrs, attrs);
    for (uint32_t i = 0; i < o->n_out && i < byi_op(o->row->op)->n_out; i++)
        if (byi_o_wants(o, i))
            o->out[i] = byi_o_get(o, all, i);
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"GRU", 1, 3, 6, convert_recurrent, BYI_OP_NN_GRU},
    {"LSTM", 1, 3, 8, convert_recurrent, BYI_OP_NN_LSTM},
    {"RNN", 1, 3, 6, convert_recurrent, BYI_OP_NN_RNN},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_sequence = {BYI_ONNX, rows,
                                                 BYI_COUNT(rows)};
