/* SPDX-License-Identifier: Apache-2.0 */
/* ops_recurrent.c: converts recurrent operators and LinearAttention.
 *
 * LSTM(x, W, R, "", "", h, direction="reverse", hidden_size=64, layout=1)
 *     -> nn.lstm(%x, %W, %R, [], [], %h, direction="reverse", batch_first=true)
 *
 * hidden_size follows from R; [] is an empty tensor for an omitted input.
 * ONNX's activation_alpha and _beta have entries only for activations that take
 * such a parameter; the IR has an entry for every activation.
 *
 * LinearAttention becomes nn.linear_attention.
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { MAX_INPUTS = 8, MAX_FUNCTIONS = 2 * BYI_MAX_GATE_FNS };

/* ONNX's activations of recurrent operators. */
static const struct rnn_function {
    const char *onnx, *name; /* its names in ONNX and in the IR */
    bool alpha, beta;        /* it has these parameters */
    double alpha_default, beta_default;
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
    byi_import_refuse(
        o, "activation is '%.40s', expected one that ONNX defines for RNN",
        name);
    return NULL;
}

/* The activations' attributes for the IR. */
struct rnn_activations {
    uint32_t n;
    const char *names[MAX_FUNCTIONS];
    double alpha[MAX_FUNCTIONS], beta[MAX_FUNCTIONS];
};

/* Returns the model's next number, or `default_value` after the last one. */
static double next_number(const double *values, uint32_t n, uint32_t *at,
                          double default_value)
{
    return *at < n ? values[(*at)++] : default_value;
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

static void read_activations(struct byi_import *o, struct rnn_activations *a)
{
    uint32_t n_alpha, n_beta, at_alpha = 0, at_beta = 0;
    const char *const *names = byi_import_strings(o, "activations", &a->n);
    const double *alpha = byi_import_floats(o, "activation_alpha", &n_alpha);
    const double *beta = byi_import_floats(o, "activation_beta", &n_beta);

    if (is_written_default(o, names, a->n))
        a->n = 0;
    if (a->n > MAX_FUNCTIONS)
        byi_import_fail(o, BYOC_ETYPE,
                        "found %u activations, expected at most %d", a->n,
                        MAX_FUNCTIONS);
    for (uint32_t i = 0; byi_import_ok(o) && i < a->n; i++) {
        const struct rnn_function *f = find_function(o, names[i]);
        if (!f)
            return;
        a->names[i] = f->name;
        a->alpha[i] = f->alpha_default;
        a->beta[i] = f->beta_default;
        if (f->alpha)
            a->alpha[i] =
                next_number(alpha, n_alpha, &at_alpha, f->alpha_default);
        if (f->beta)
            a->beta[i] = next_number(beta, n_beta, &at_beta, f->beta_default);
    }
}

/* Read the inputs up to the last present one; *n becomes their number. 16-bit
 * ones of the type of x are cast to float32. */
static const byi_id *read_inputs(struct byi_import *o, uint32_t *n)
{
    byi_id *args = byi_arena_calloc(o->scratch, MAX_INPUTS, sizeof *args);
    const enum byoc_dtype type = byi_import_dtype(o, byi_import_in(o, 0));

    *n = o->n_in;
    while (*n > 3 && o->in[*n - 1] == BYI_NO_ID)
        (*n)--;
    for (uint32_t i = 0; i < *n; i++) {
        args[i] = byi_import_in(o, i);
        if (args[i] == BYI_NO_ID)
            args[i] = byi_import_array(o, BYOC_F32, 0, NULL);
        else if (byi_dtype_is_half(type) &&
                 byi_import_dtype(o, args[i]) == type)
            args[i] = byi_import_cast(o, args[i], BYOC_F32);
    }
    return args;
}

static void check_hidden_size(struct byi_import *o)
{
    const byi_id r = byi_import_in(o, 2);
    const int64_t hidden_size =
        byi_import_int(o, "hidden_size", byi_import_dim(o, r, 2));

    if (byi_import_ok(o) && byi_import_rank(o, r) == 3 &&
        byi_import_dim(o, r, 2) >= 0 && hidden_size != byi_import_dim(o, r, 2))
        byi_import_fail(o, BYOC_ETYPE,
                        "hidden_size is %lld, expected the %lld columns of R",
                        (long long)hidden_size,
                        (long long)byi_import_dim(o, r, 2));
}

/* RNN, GRU, LSTM. float16 and bfloat16 are computed in float32, so that weights
 * are widened once and not in each run. */
static void convert_recurrent(struct byi_import *o)
{
    const enum byoc_dtype type = byi_import_dtype(o, byi_import_in(o, 0));
    struct rnn_activations a = {0};
    uint32_t n;

    check_hidden_size(o);
    byi_import_int(o, "output_sequence",
                   0); /* before opset 7: whether y is read */
    read_activations(o, &a);
    const byi_id *args = read_inputs(o, &n);
    const struct byi_attr attrs[] = {
        A_BOOL("batch_first", byi_import_int(o, "layout", 0) != 0),
        {.name = "activations",
         .kind = BYI_ATTR_STRINGS,
         .n = a.n,
         .strings = a.names},
        {.name = "activation_alpha",
         .kind = BYI_ATTR_FLOATS,
         .n = a.n,
         .floats = a.alpha},
        {.name = "activation_beta",
         .kind = BYI_ATTR_FLOATS,
         .n = a.n,
         .floats = a.beta}};
    const byi_id results =
        byi_import_same(o, o->row->op, n, args, BYI_N(attrs), attrs);
    byi_import_get_outputs(o, results, byi_op(o->row->op)->n_out);
    for (uint32_t i = 0; i < byi_op(o->row->op)->n_out; i++)
        if (byi_dtype_is_half(type) && byi_import_wants_output(o, i))
            o->out[i] = byi_import_cast(o, o->out[i], type);
}

/* Dequantise weights (directions, n, 4 hidden_size) of 8 bits and transpose
 * them as LSTM has them. The scale and the zero point are for each direction,
 * or for each direction and column. */
static byi_id dequantize_weights(struct byi_import *o, byi_id weights,
                                 byi_id scale, byi_id zero)
{
    static const char text[] =
        "fn (%w, %scale, %zero) {"
        "  %centred = subtract(cast(%w, dtype=\"float32\"),"
        "                      cast(%zero, dtype=\"float32\"));"
        "  transpose(multiply(%centred, %scale), axes=[0, 2, 1])"
        "}";
    byi_id params[] = {scale, zero};

    for (uint32_t i = 0; i < 2; i++)
        if (byi_import_rank(o, params[i]) == 1 ||
            byi_import_rank(o, params[i]) == 2)
            params[i] = byi_import_add_axes(o, params[i], 1,
                                            3 - byi_import_rank(o, params[i]));
    return byi_import_template(o, text, ARGS(weights, params[0], params[1]),
                               NO_ATTRS);
}

/* DynamicQuantizeLSTM: an LSTM whose weights have 8 bits; inputs 8 to 11 are
 * their scales and zero points. ONNX Runtime also quantises x and the state to
 * 8 bits; here they stay float32. */
static void convert_quantized_lstm(struct byi_import *o)
{
    for (uint32_t i = 8; i < 12; i++)
        if (byi_import_in(o, i) == BYI_NO_ID) {
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u, %s of weights, is omitted, expected it",
                            i, i % 2 ? "the zero point" : "the scale");
            return;
        }
    o->in[1] = dequantize_weights(o, byi_import_in(o, 1), byi_import_in(o, 8),
                                  byi_import_in(o, 9));
    o->in[2] = dequantize_weights(o, byi_import_in(o, 2), byi_import_in(o, 10),
                                  byi_import_in(o, 11));
    o->n_in = MAX_INPUTS;
    convert_recurrent(o);
}

/* --- linear attention ----------------------------------------------------- */

/* Read input i in the type that the operator computes in; an omitted input
 * becomes an empty tensor. */
static byi_id read_linear_input(struct byi_import *o, uint32_t i,
                                enum byoc_dtype dtype)
{
    const byi_id x = byi_import_in(o, i);
    return x == BYI_NO_ID ? byi_import_array(o, BYOC_F32, 0, NULL)
                          : byi_import_cast(o, x, dtype);
}

/* Fail unless the node has exactly those of the inputs decay and beta that its
 * update rule needs. */
static void check_update_rule(struct byi_import *o)
{
    static const struct {
        const char *name;
        bool decay, beta;
    } rules[] = {{"linear", false, false},
                 {"gated", true, false},
                 {"delta", false, true},
                 {"gated_delta", true, true}};
    const char *rule = byi_import_string(o, "update_rule", "gated_delta");
    const bool decay = byi_import_in(o, 4) != BYI_NO_ID;
    const bool beta = byi_import_in(o, 5) != BYI_NO_ID;
    uint32_t i = 0;

    while (i < BYI_COUNT(rules) && strcmp(rules[i].name, rule) != 0)
        i++;
    if (i == BYI_COUNT(rules))
        byi_import_fail(o, BYOC_EPARSE,
                        "update_rule is '%.40s', expected linear, gated, delta "
                        "or gated_delta",
                        rule);
    else if (decay != rules[i].decay)
        byi_import_fail(
            o, BYOC_EPARSE, "update_rule '%s': found %s, expected %s", rule,
            decay ? "input decay" : "no input decay", decay ? "none" : "one");
    else if (beta != rules[i].beta)
        byi_import_fail(
            o, BYOC_EPARSE, "update_rule '%s': found %s, expected %s", rule,
            beta ? "input beta" : "no input beta", beta ? "none" : "one");
}

/* Returns the attribute scale, or 1 / sqrt(elements of a query's head). */
static double linear_scale(struct byi_import *o, int64_t heads)
{
    const double scale = byi_import_float(o, "scale", 0);
    const int64_t width = byi_import_dim(o, byi_import_in(o, 0), 2);

    if (scale != 0 || !byi_import_ok(o) || heads < 1 || width < heads)
        return scale; /* the type rule refuses the widths */
    const int64_t size = width / heads;
    return 1 / sqrt((double)size);
}

/* LinearAttention: query, key, value, past state, decay, beta. float16 and
 * bfloat16 are computed in float32, with the state in its own type between two
 * calls. chunk_size affects only the speed. */
static void convert_linear_attention(struct byi_import *o)
{
    const enum byoc_dtype type = byi_import_dtype(o, byi_import_in(o, 0));
    const enum byoc_dtype compute_dtype =
        type == BYOC_F64 ? BYOC_F64 : BYOC_F32;
    const byi_id past = byi_import_in(o, 3);
    const int64_t heads = byi_import_int(o, "q_num_heads", 0);
    const int64_t kv_heads = byi_import_int(o, "kv_num_heads", 0);
    /* an attribute of com.microsoft's variant */
    const int64_t window = byi_import_int(o, "state_window", 0);

    byi_import_int(o, "chunk_size", 64);
    if (window != 0)
        byi_import_refuse(o, "state_window is %lld, expected 0, a single state",
                          (long long)window);
    check_update_rule(o);
    const double scale = linear_scale(o, heads);
    if (!byi_import_ok(o))
        return;
    const byi_id results = byi_import_emit(
        o, BYI_OP_NN_LINEAR_ATTENTION,
        ARGS(read_linear_input(o, 0, compute_dtype),
             read_linear_input(o, 1, compute_dtype),
             read_linear_input(o, 2, compute_dtype),
             read_linear_input(o, 3, compute_dtype),
             read_linear_input(o, 4, compute_dtype),
             read_linear_input(o, 5, compute_dtype)),
        ATTRS(AN_INT("heads", heads), AN_INT("kv_heads", kv_heads),
              A_FLOAT("scale", scale)));
    o->out[0] = byi_import_cast(o, byi_import_get(o, results, 0), type);
    if (byi_import_wants_output(o, 1))
        o->out[1] = byi_import_cast(
            o, byi_import_get(o, results, 1),
            past == BYI_NO_ID ? type : byi_import_dtype(o, past));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_recurrent, BYI_ONNX,
    {"GRU", 1, 3, 6, convert_recurrent, BYI_OP_NN_GRU},
    {"LinearAttention", 27, 3, 6, convert_linear_attention, BYI_OP_NONE},
    {"LSTM", 1, 3, 8, convert_recurrent, BYI_OP_NN_LSTM},
    {"RNN", 1, 3, 6, convert_recurrent, BYI_OP_NN_RNN})
BYI_ONNX_ROWS(microsoft_recurrent, BYI_MICROSOFT,
    {"DynamicQuantizeLSTM", 1, 3, 12, convert_quantized_lstm, BYI_OP_NN_LSTM},
    {"LinearAttention", 1, 3, 6, convert_linear_attention, BYI_OP_NONE})
/* clang-format on */
