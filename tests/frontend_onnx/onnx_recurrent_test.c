/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_recurrent_test.c: tests importing LSTM, GRU, RNN and LinearAttention,
 * and the errors for invalid ones. */
#include "models.h"

/* x (T, N, 3) and weights for 2 hidden elements in one direction. */
static struct build begin_with(int64_t opset, int64_t gates)
{
    struct build b = begin(opset);

    input(&b, "x", "T N 3");
    floats(&b, "w", 3, (const int64_t[]){1, 2 * gates, 3});
    floats(&b, "r", 3, (const int64_t[]){1, 2 * gates, 2});
    return b;
}

static void inputs_left_out(void **state)
{
    struct build b = begin_with(7, 4);
    (void)state;

    input(&b, "h", "1 N 2");
    Onnx__NodeProto *lstm = node(&b, "LSTM", "x w r - - h - -", "y - c");
    attr_int(&b, lstm, "hidden_size", 2);
    attr_string(&b, lstm, "direction", "reverse");
    output(&b, "y");
    output(&b, "c");
    EXPECT(&b, "Tensor[(0), float32] {}, Tensor[(0), float32] {}, %h, ",
           "direction=\"reverse\"", "#[\"LSTM_0\": \"LSTM\"]", "%0.0", "%0.2");
}

static void batch_first(void **state)
{
    struct build b = begin_with(14, 3);
    (void)state;

    Onnx__NodeProto *gru = node(&b, "GRU", "x w r", "y h");
    attr_int(&b, gru, "layout", 1);
    attr_int(&b, gru, "linear_before_reset", 1);
    attr_string(&b, gru, "direction", "forward");
    output(&b, "h");
    EXPECT(&b, "-> Tensor[(T, 1, 2), float32]", "nn.gru(%x, ",
           "batch_first=true, linear_before_reset=true)");
}

/* 16-bit operands are computed in float32; lengths stay integers. */
static void half_operands(void **state)
{
    enum { HALF = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 };
    struct build b = begin(14);
    (void)state;

    typed_input(&b, "x", HALF, "5 2 3");
    typed_input(&b, "w", HALF, "1 8 3");
    typed_input(&b, "r", HALF, "1 8 2");
    typed_input(&b, "l", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "2");
    node(&b, "LSTM", "x w r - l", "y - c");
    output(&b, "y");
    output(&b, "c");
    EXPECT(&b, "-> (Tensor[(5, 1, 2, 2), float16], Tensor[(1, 2, 2), float16])",
           "cast(%x, dtype=\"float32\")", "cast(%w, dtype=\"float32\")", "%l)",
           "cast(%", "dtype=\"float16\")");
}

/* Parameters are assigned, in order, to the functions that have them. */
static void parameters_of_activations(void **state)
{
    struct build b = begin_with(14, 4);
    (void)state;

    Onnx__NodeProto *lstm = node(&b, "LSTM", "x w r", "y");
    attr_strings(&b, lstm, "activations", "HardSigmoid tanh ScaledTanh");
    attr_floats(&b, lstm, "activation_alpha", 2, (const float[]){0.5f, 1.5f});
    attr_floats(&b, lstm, "activation_beta", 1, (const float[]){0.25f});
    attr_float(&b, lstm, "clip", 3.0f);
    attr_int(&b, lstm, "input_forget", 1);
    output(&b, "y");
    EXPECT(&b, "activations=[\"nn.hard_sigmoid\", \"tanh\", \"scaled_tanh\"]",
           "activation_alpha=[0.5, 0.0, 1.5]",
           "activation_beta=[0.25, 0.0, 1.0]", "clip=3.0", "input_forget=true");
}

static void old_output_sequence(void **state)
{
    struct build b = begin_with(1, 1);
    (void)state;

    Onnx__NodeProto *rnn = node(&b, "RNN", "x w r", "y h");
    attr_int(&b, rnn, "output_sequence", 1);
    output(&b, "y");
    EXPECT(&b, "-> Tensor[(T, 1, N, 2), float32]", "nn.rnn(%x, ");
}

static void wrong_hidden_size(void **state)
{
    struct build b = begin_with(7, 4);
    (void)state;

    Onnx__NodeProto *lstm = node(&b, "LSTM", "x w r", "y");
    attr_int(&b, lstm, "hidden_size", 3);
    output(&b, "y");
    refuse(&b, BYOC_ETYPE,
           "node LSTM_0 (LSTM): hidden_size is 3, expected the 2 columns of R");
}

static void unknown_activation(void **state)
{
    struct build b = begin_with(7, 3);
    (void)state;

    Onnx__NodeProto *gru = node(&b, "GRU", "x w r", "y");
    attr_strings(&b, gru, "activations", "Sine Tanh");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, "activation is 'Sine'");
}

static void too_few_activations(void **state)
{
    struct build b = begin_with(7, 3);
    (void)state;

    Onnx__NodeProto *gru = node(&b, "GRU", "x w r", "y");
    attr_strings(&b, gru, "activations", "Tanh");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "activations has 1 entries, expected none or 2");
}

static void too_many_activations(void **state)
{
    struct build b = begin_with(7, 1);
    (void)state;

    Onnx__NodeProto *rnn = node(&b, "RNN", "x w r", "y");
    attr_strings(&b, rnn, "activations", "Tanh Tanh Tanh Tanh Tanh Tanh Tanh");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "7 activations, expected at most 6");
}

/* The default activations, which have entries for two directions. */
static void default_activations(void **state)
{
    struct build b = begin_with(7, 1);
    (void)state;

    Onnx__NodeProto *rnn = node(&b, "RNN", "x w r", "y");
    attr_strings(&b, rnn, "activations", "Tanh Tanh");
    output(&b, "y");
    EXPECT(&b, "nn.rnn(%x, ");

    b = begin_with(7, 1);
    rnn = node(&b, "RNN", "x w r", "y");
    attr_strings(&b, rnn, "activations", "Tanh Relu");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "activations has 2 entries, expected none or 1");
}

static void attribute_of_another_operator(void **state)
{
    struct build b = begin_with(7, 1);
    (void)state;

    Onnx__NodeProto *rnn = node(&b, "RNN", "x w r", "y");
    attr_int(&b, rnn, "linear_before_reset", 1);
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, "linear_before_reset");
}

/* --- LinearAttention ------------------------------------------------------ */

/* query, key and value of 4, 2 and 2 heads. */
static struct build begin_linear(const char *inputs)
{
    struct build b = begin(27);

    input(&b, "q", "N T 12");
    input(&b, "k", "N T 6");
    input(&b, "v", "N T 10");
    input(&b, "d", "N T 2");
    input(&b, "b", "N T 1");
    Onnx__NodeProto *n = node(&b, "LinearAttention", inputs, "y s");
    attr_int(&b, n, "q_num_heads", 4);
    attr_int(&b, n, "kv_num_heads", 2);
    output(&b, "y");
    output(&b, "s");
    return b;
}

static void linear_attention(void **state)
{
    struct build b = begin_linear("q k v - d b");
    (void)state;

    EXPECT(&b, "(Tensor[(N, T, 20), float32], Tensor[(N, 2, 3, 5), float32])",
           "nn.linear_attention(%q, %k, %v, Tensor[(0), float32] {}, %d, %b, ",
           "heads=4, kv_heads=2, scale=0.577");
}

static void bad_linear_attention(void **state)
{
    static const struct {
        const char *inputs, *rule, *why;
    } cases[] = {
        {"q k v - d b", "square",
         "update_rule is 'square', expected linear, gated, delta or "
         "gated_delta"},
        {"q k v - d b", "linear",
         "update_rule 'linear': found input decay, expected none"},
        {"q k v - - b", "gated_delta",
         "update_rule 'gated_delta': found no input decay, expected one"},
        {"q k v - d b", "gated",
         "update_rule 'gated': found input beta, expected none"},
        {"q k v", "delta",
         "update_rule 'delta': found no input beta, expected one"},
        {"q v k", "linear", "key has width 10, expected a multiple of 3"},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_linear(cases[i].inputs);
        attr_string(&b, b.graph->node[0], "update_rule", cases[i].rule);
        refuse(&b, i < 5 ? BYOC_EPARSE : BYOC_ETYPE, cases[i].why);
    }
    struct build b = begin_linear("q k v - d b");
    attr_int(&b, b.graph->node[0], "state_window", 2);
    refuse(&b, BYOC_EUNSUPPORTED,
           "state_window is 2, expected 0, a single state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_left_out),
        cmocka_unit_test(batch_first),
        cmocka_unit_test(half_operands),
        cmocka_unit_test(parameters_of_activations),
        cmocka_unit_test(old_output_sequence),
        cmocka_unit_test(wrong_hidden_size),
        cmocka_unit_test(unknown_activation),
        cmocka_unit_test(too_few_activations),
        cmocka_unit_test(too_many_activations),
        cmocka_unit_test(default_activations),
        cmocka_unit_test(attribute_of_another_operator),
        cmocka_unit_test(linear_attention),
        cmocka_unit_test(bad_linear_attention),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
