/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent_test.c: tests nn.rnn, nn.gru and nn.lstm. The plain form is
 * compared with numbers computed by hand, and every path of the fast form with
 * the plain form.
 */
#include "kernels.h"
#include "tests/share.h"

static const enum byi_op_id ops[] = {BYI_OP_NN_RNN, BYI_OP_NN_GRU,
                                     BYI_OP_NN_LSTM};
static const int gates_of[] = {1, 3, 4}, fns_of[] = {1, 2, 3};
static const char *const directions[] = {"forward", "reverse", "bidirectional"};

/* Operands of random numbers; shrunk so that gates do not saturate. */
static struct byi_tensor operand(const int64_t *dims, uint32_t rank)
{
    struct byi_tensor t = tensor(BYOC_F32, rank, dims);
    for (int64_t i = 0; i < byi_count(&t); i++)
        byi_tensor_set(&t, i, byi_tensor_float(&t, i) / 8);
    return t;
}
#define OPERAND(...) operand(DIMS(__VA_ARGS__), RANK(__VA_ARGS__))

/* The sizes of a layer and its data. */
struct shape {
    int64_t time, batch, input, hidden;
};

/* The operands and attributes of a case. If bit i of `present` is set, operand
 * 3 + i is present. */
struct setting {
    int op, direction, present;
    bool batch_first, variant; /* linear_before_reset, input_forget */
    double clip;
    uint32_t n_fns;
    const char *fns[6];
    double alpha[6], beta[6];
};

static struct byi_tensor state(const struct shape *s, const struct setting *c,
                               int64_t d)
{
    return c->batch_first ? OPERAND(s->batch, d, s->hidden)
                          : OPERAND(d, s->batch, s->hidden);
}

static struct eval prepare_case(const struct shape *s, const struct setting *c)
{
    const int64_t d = c->direction == 2 ? 2 : 1;
    const int64_t rows = gates_of[c->op] * s->hidden;
    const uint32_t max_inputs = c->op == 2 ? 8 : 6;
    struct byi_tensor in[8];
    in[0] = c->batch_first ? OPERAND(s->batch, s->time, s->input)
                           : OPERAND(s->time, s->batch, s->input);
    in[1] = OPERAND(d, rows, s->input);
    in[2] = OPERAND(d, rows, s->hidden);
    /* small, so that a difference shrinks from step to step */
    for (int64_t i = 0; i < byi_count(&in[2]); i++)
        byi_tensor_set(&in[2], i,
                       byi_tensor_float(&in[2], i) * 2 /
                           sqrt((double)s->hidden));
    for (uint32_t i = 3; i < max_inputs; i++) {
        const bool is_present = c->present & (1 << (i - 3));
        if (!is_present)
            in[i] = OPERAND(0);
        else if (i == 3)
            in[i] = OPERAND(d, 2 * rows);
        else if (i == 4)
            in[i] = empty_tensor(BYOC_I32, 1, DIMS(s->batch));
        else if (i < 7)
            in[i] = state(s, c, d);
        else
            in[i] = OPERAND(d, 3 * s->hidden);
        for (int64_t n = 0; is_present && i == 4 && n < s->batch; n++)
            byi_tensor_set(&in[i], n, (double)random_in(0, s->time));
    }
    struct byi_attr attrs[8] = {STRING("direction", directions[c->direction]),
                                BOOL("batch_first", c->batch_first),
                                FLOAT("clip", c->clip)};
    uint32_t n = 3;
    if (c->op)
        attrs[n++] = (struct byi_attr)BOOL(
            c->op == 1 ? "linear_before_reset" : "input_forget", c->variant);
    if (c->n_fns) {
        attrs[n++] = (struct byi_attr){.name = "activations",
                                       .kind = BYI_ATTR_STRINGS,
                                       .n = c->n_fns,
                                       .strings = c->fns};
        attrs[n++] = (struct byi_attr){.name = "activation_alpha",
                                       .kind = BYI_ATTR_FLOATS,
                                       .n = c->n_fns,
                                       .floats = c->alpha};
        attrs[n++] = (struct byi_attr){.name = "activation_beta",
                                       .kind = BYI_ATTR_FLOATS,
                                       .n = c->n_fns,
                                       .floats = c->beta};
    }
    return prepare(ops[c->op], attrs, n, in, max_inputs);
}

static void check_case(const struct shape *s, const struct setting *c)
{
    char what[200];
    snprintf(what, sizeof what,
             "%s %s T=%d N=%d I=%d H=%d present %x batch_first %d variant %d "
             "clip %g",
             byi_op(ops[c->op])->name, directions[c->direction], (int)s->time,
             (int)s->batch, (int)s->input, (int)s->hidden, c->present,
             c->batch_first, c->variant, c->clip);
    struct eval e = prepare_case(s, c);
    if (!e.typed)
        fail_msg("%s: %s", what, err.text);
    expect_plain(&e, byi_recurrent_plain, 2e-5, what);
}

/* Few and many sequences, short and long ones, and partial blocks. */
static void test_random(void **state_)
{
    (void)state_;
    for (int round = 0; round < test_share_of(400); round++) {
        const struct setting c = {
            .op = round % 3,
            .direction = (int)random_in(0, 2),
            .present = (int)random_in(0, 31),
            .batch_first = random_in(0, 1),
            .variant = random_in(0, 1),
            .clip = random_in(0, 3) ? INFINITY : 0.5,
        };
        const struct shape s = {
            .time = random_in(round % 20 ? 1 : 0, 9),
            .batch = random_in(round % 30 ? 1 : 0, round % 2 ? 4 : 33),
            .input = random_in(round % 40 ? 1 : 0, 40),
            .hidden = random_in(1, round % 5 ? 70 : 150),
        };
        check_case(&s, &c);
    }
}

/* The product with the input has so many elements that it is computed in
 * several parts, and so much work that threads share it. */
static void test_long(void **state_)
{
    (void)state_;
    for (int i = 0; i < (test_share() > 1 ? 3 : 6); i++) {
        const struct setting c = {.op = i % 3,
                                  .direction = 2,
                                  .present = 31,
                                  .batch_first = i % 2,
                                  .clip = INFINITY};
        /* the input's part has 10, 30 and 40 rows: 1.2 million elements */
        static const int64_t times[] = {60, 20, 15};
        const struct shape s = {times[c.op], 2000, 3, 10};
        check_case(&s, &c);
        const struct shape few_sequences = {6, 2, 3, 300};
        check_case(&few_sequences, &c);
    }
}

/* Every activation function, in every gate. */
static void test_functions(void **state_)
{
    static const char *const names[] = {"sigmoid",
                                        "tanh",
                                        "nn.relu",
                                        "nn.softsign",
                                        "nn.softplus",
                                        "nn.leaky_relu",
                                        "nn.elu",
                                        "nn.hard_sigmoid",
                                        "scaled_tanh",
                                        "affine",
                                        "nn.thresholded_relu"};
    (void)state_;
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        for (int op = 0; op < 3; op++) {
            struct setting c = {.op = op,
                                .direction = 2,
                                .present = 31,
                                .clip = i % 2 ? INFINITY : 0.75,
                                .n_fns = 2 * (uint32_t)fns_of[op]};
            for (uint32_t k = 0; k < c.n_fns; k++) {
                c.fns[k] = names[(i + k) % BYI_COUNT(names)];
                c.alpha[k] = 0.25 + 0.125 * k;
                c.beta[k] = 0.5 - 0.0625 * k;
            }
            const struct shape s = {3, 2, 3, 5};
            check_case(&s, &c);
        }
}

/* One element on every axis, and two steps. */
static void test_by_hand(void **state_)
{
    (void)state_;
    struct byi_tensor in[8] = {
        TENSOR(BYOC_F64, 2, 1, 1),    TENSOR(BYOC_F64, 1, 4, 1),
        TENSOR(BYOC_F64, 1, 4, 1),    TENSOR(BYOC_F64, 1, 8),
        tensor(BYOC_F64, 1, DIMS(0)), TENSOR(BYOC_F64, 1, 1, 1),
        TENSOR(BYOC_F64, 1, 1, 1),    TENSOR(BYOC_F64, 1, 3)};
    set(&in[0], (const double[]){1, -2});
    set(&in[1], (const double[]){0.5, -0.25, 1, 2}); /* i o f c */
    set(&in[2], (const double[]){-1, 0.75, 0.5, -0.5});
    set(&in[3], (const double[]){0.1, 0.2, 0.3, 0.4, 0, -0.1, 0.1, 0});
    set(&in[5], (const double[]){0.5});
    set(&in[6], (const double[]){-1});
    set(&in[7], (const double[]){0.25, -0.5, 1}); /* i o f */
    double h = 0.5, c = -1, y[2];
    for (int t = 0; t < 2; t++) {
        const double x = t ? -2 : 1;
        const double i = 1 / (1 + exp(-(0.5 * x - h + 0.1 + 0.25 * c)));
        const double f = 1 / (1 + exp(-(x + 0.5 * h + 0.4 + c)));
        c = f * c + i * tanh(2 * x - 0.5 * h + 0.4);
        const double o = 1 / (1 + exp(-(-0.25 * x + 0.75 * h + 0.1 - 0.5 * c)));
        y[t] = h = o * tanh(c);
    }
    struct eval e = prepare(BYI_OP_NN_LSTM, NULL, 0, in, 8);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(&e.out[0], y);
    expect(&e.out[1], &h);
    expect(&e.out[2], &c);
    finish(&e);

    struct byi_tensor gru[] = {
        TENSOR(BYOC_F64, 1, 1, 1),    TENSOR(BYOC_F64, 1, 3, 1),
        TENSOR(BYOC_F64, 1, 3, 1),    TENSOR(BYOC_F64, 1, 6),
        tensor(BYOC_F64, 1, DIMS(0)), TENSOR(BYOC_F64, 1, 1, 1)};
    set(&gru[0], (const double[]){1});
    set(&gru[1], (const double[]){0.5, -0.25, 1}); /* z r h */
    set(&gru[2], (const double[]){-1, 0.75, 0.5});
    set(&gru[3], (const double[]){0.1, 0.2, 0.3, 0, 0, 0.7});
    set(&gru[5], (const double[]){-0.5});
    const double z = 1 / (1 + exp(-(0.5 + 0.5 + 0.1)));
    const double r = 1 / (1 + exp(-(-0.25 - 0.375 + 0.2)));
    const double after_reset = tanh(1 + 0.3 + 0.5 * r * -0.5 + 0.7);
    const double linear = tanh(1 + 0.3 + r * (0.5 * -0.5 + 0.7));
    struct eval g = prepare(BYI_OP_NN_GRU, NULL, 0, gru, 6);
    assert_int_equal(run_fast(&g, 1), BYOC_OK);
    expect(&g.out[0], (const double[]){(1 - z) * after_reset - 0.5 * z});
    for (uint32_t i = 0; i < g.n_out; i++)
        release(&g.out[i]);
    const struct byi_attr attrs[] = {BOOL("linear_before_reset", true)};
    g = prepare(BYI_OP_NN_GRU, attrs, 1, gru, 6);
    assert_int_equal(run_fast(&g, 1), BYOC_OK);
    expect(&g.out[1], (const double[]){(1 - z) * linear - 0.5 * z});
    finish(&g);
}

static void test_float16(void **state_)
{
    (void)state_;
    const struct setting c = {.op = 2, .present = 31, .clip = INFINITY};
    const struct shape s = {4, 3, 5, 7};
    struct eval e = prepare_case(&s, &c);
    struct byi_tensor in[8];
    for (uint32_t i = 0; i < e.n_in; i++) {
        in[i] = empty_tensor(i == 4 ? BYOC_I32 : BYOC_F16, e.in[i].rank,
                             e.in[i].dims);
        for (int64_t k = 0; k < byi_count(&in[i]); k++) {
            byi_tensor_set(&in[i], k, byi_tensor_float(&e.in[i], k));
            byi_tensor_set(&e.in[i], k, byi_tensor_float(&in[i], k));
        }
    }
    struct eval half = prepare(BYI_OP_NN_LSTM, NULL, 0, in, 8);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    assert_int_equal(run_fast(&half, 1), BYOC_OK);
    for (uint32_t i = 0; i < 3; i++)
        for (int64_t k = 0; k < byi_count(&e.out[i]); k++)
            assert_true(is_near(byi_tensor_float(&half.out[i], k),
                                byi_tensor_float(&e.out[i], k), 1e-3));
    finish(&e);
    finish(&half);
}

static void test_bad_length(void **state_)
{
    (void)state_;
    const struct setting c = {.op = 0, .present = 2, .clip = INFINITY};
    const struct shape s = {4, 2, 1, 1};
    static const double lengths[][2] = {{4, 5}, {-1, 0}};
    for (size_t i = 0; i < BYI_COUNT(lengths); i++) {
        struct eval e = prepare_case(&s, &c);
        set(&e.in[4], lengths[i]);
        assert_int_equal(run_fast(&e, 1), BYOC_EINVAL);
        assert_non_null(strstr(err.text, i ? "lengths[0] is -1, expected 0 to 4"
                                           : "lengths[1] is 5"));
        finish(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_random),
        cmocka_unit_test(test_long),    cmocka_unit_test(test_functions),
        cmocka_unit_test(test_float16), cmocka_unit_test(test_bad_length),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
