/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/region_recurrent_test.c: tests recurrent layers of random
 * shapes run by the plug-in. All results are compared with the native kernels.
 * Also tests refusals with their messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "region.inc"

static const char *const ops[] = {"nn.rnn", "nn.gru", "nn.lstm"};
static const int gates_of[] = {1, 3, 4};

/* A layer and its operands. */
struct layer {
    int op; /* index into ops */
    int time, batch, input, hidden;
    int directions;    /* 1 or 2 */
    const char *attrs; /* further attributes: "\"clip\":3.0"; or NULL */
    bool bias;
    bool h, c; /* has an initial hidden state, an initial cell state */
    bool batch_first;
    int lengths; /* 0: no operand; 1: all are `time`; 2: the last is shorter */
    bool lengths_vary, bias_varies; /* an input, not a constant */
    bool peepholes;
};

static uint32_t add_lengths(struct region *g, const struct layer *l)
{
    const int64_t dims[] = {l->batch};
    if (l->lengths_vary)
        return region_typed_input(g, BYOC_I32, l->batch, -1);
    if (!l->lengths)
        return region_const(g, 0, -1);
    const uint32_t id = add_leaf(g, true, BYOC_I32, 1, dims);
    for (int i = 0; i < l->batch; i++)
        byi_tensor_set(&g->data[id], i,
                       l->time - (l->lengths == 2 && i == l->batch - 1));
    return id;
}

static uint32_t add_state(struct region *g, const struct layer *l,
                          bool is_present)
{
    if (!is_present)
        return region_const(g, 0, -1);
    return l->batch_first
               ? region_input(g, l->batch, l->directions, l->hidden, -1)
               : region_input(g, l->directions, l->batch, l->hidden, -1);
}

/* Add a layer. Returns its node. */
static uint32_t add_layer(struct region *g, uint32_t x, const struct layer *l)
{
    const int d = l->directions, h = l->hidden, rows = gates_of[l->op] * h;
    uint32_t ids[8] = {x};
    char attrs[300];
    ids[1] = region_const(g, d, rows, l->input, -1);
    ids[2] = region_const(g, d, rows, h, -1);
    /* small, so that a difference shrinks from step to step */
    for (int64_t i = 0; i < (int64_t)d * rows * h; i++)
        byi_tensor_set(&g->data[ids[2]], i,
                       byi_tensor_float(&g->data[ids[2]], i) / sqrt((double)h));
    ids[3] = !l->bias         ? region_const(g, 0, -1)
             : l->bias_varies ? region_input(g, d, 2 * rows, -1)
                              : region_const(g, d, 2 * rows, -1);
    ids[4] = add_lengths(g, l);
    ids[5] = add_state(g, l, l->h);
    if (l->op == 2) {
        ids[6] = add_state(g, l, l->c);
        ids[7] = l->peepholes ? region_const(g, d, 3 * h, -1)
                              : region_const(g, 0, -1);
    }
    snprintf(attrs, sizeof attrs, "{\"batch_first\":%s%s%s%s}",
             l->batch_first ? "true" : "false",
             d == 2 ? ",\"direction\":\"bidirectional\"" : "",
             l->attrs ? "," : "", l->attrs ? l->attrs : "");
    region_kernel(g, ops[l->op], attrs, l->op == 2 ? 8 : 6, ids);
    return region_end(g);
}

static uint32_t add_x(struct region *g, const struct layer *l)
{
    return l->batch_first ? region_input(g, l->batch, l->time, l->input, -1)
                          : region_input(g, l->time, l->batch, l->input, -1);
}

static void check_layer(const struct layer *l)
{
    struct region g;
    region_open(&g);
    const uint32_t out = add_layer(&g, add_x(&g, l), l);
    struct region_report r;
    const char *why = region_check(&g, 1, &out, 2e-5, &r);
    if (why)
        fail_msg("%s T=%d N=%d I=%d H=%d D=%d first %d h %d c %d %s: %s",
                 ops[l->op], l->time, l->batch, l->input, l->hidden,
                 l->directions, l->batch_first, l->h, l->c,
                 l->attrs ? l->attrs : "", why);
    region_close(&g);
}

static uint64_t seed = 7;
static int pick(int low, int high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int)(seed >> 33) % (high - low + 1);
}

static void test_random(void **state)
{
    static const char *const attrs[][3] = {
        {NULL, "\"activations\":[\"nn.relu\"]",
         "\"activations\":[\"sigmoid\"]"},
        {NULL, "\"linear_before_reset\":true", "\"linear_before_reset\":true"},
        {NULL, "\"activations\":[\"sigmoid\",\"tanh\",\"tanh\"]", NULL}};
    (void)state;
    for (int round = 0; round < 240; round++) {
        struct layer l = {.op = round % 3,
                          .time = pick(1, 7),
                          .batch = pick(1, round % 2 ? 3 : 20),
                          .input = pick(1, 40),
                          .hidden = pick(1, round % 5 ? 40 : 130),
                          .directions = pick(1, 2),
                          .bias = pick(0, 3) > 0,
                          .h = pick(0, 1),
                          .c = pick(0, 1),
                          .batch_first = pick(0, 1),
                          .lengths = pick(0, 1)};
        const int choice = pick(0, 2);
        l.attrs = attrs[l.op][choice];
        if (l.directions == 2 && l.attrs && strstr(l.attrs, "activations"))
            l.attrs = NULL;
        if (l.directions == 1 && !l.attrs && pick(0, 1))
            l.attrs = "\"direction\":\"reverse\"";
        check_layer(&l);
    }
}

/* Two layers as frameworks export them, with a transpose and a reshape between
 * them, which are views of the first layer's result. */
static void test_stacked(void **state)
{
    (void)state;
    const struct layer first = {.op = 2,
                                .time = 6,
                                .batch = 3,
                                .input = 10,
                                .hidden = 16,
                                .directions = 2,
                                .bias = true};
    struct layer second = first;
    second.input = 32;
    struct region g;
    region_open(&g);
    const uint32_t y = add_layer(&g, add_x(&g, &first), &first);
    region_kernel(&g, "transpose", "{\"axes\":[0,2,1,3]}", 1, &y);
    const uint32_t t = region_end(&g);
    const uint32_t ids[] = {t, region_ints(&g, 3, (const int64_t[]){6, 3, 32})};
    region_kernel(&g, "reshape", "{}", 2, ids);
    const uint32_t outs[] = {add_layer(&g, region_end(&g), &second), y};
    struct region_report r;
    const char *why = region_check(&g, 2, outs, 2e-5, &r);
    if (why)
        fail_msg("%s", why);
    /* the layers; y of both must have the model's layout */
    assert_int_equal(r.n_steps - r.n_reorders, 2);
    assert_int_equal(r.n_reorders, 2);
    region_close(&g);
}

static void expect_refusal(const struct layer *l, const char *text)
{
    struct region g;
    struct byoc_probe probe;
    region_open(&g);
    const uint32_t out = add_layer(&g, add_x(&g, l), l);
    const char *why = region_probe(&g, 1, &out, &probe);
    if (!why)
        fail_msg("accepted, expected: %s", text);
    if (!strstr(why, text))
        fail_msg("found '%s', expected '%s'", why, text);
    region_close(&g);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct layer lstm = {.op = 2,
                               .time = 5,
                               .batch = 2,
                               .input = 3,
                               .hidden = 8,
                               .directions = 1,
                               .bias = true};
    struct layer l = lstm;
    l.attrs = "\"clip\":3.0";
    expect_refusal(
        &l, "nn.lstm: found clip 3, expected none, since oneDNN lacks it");
    l.attrs = "\"input_forget\":true";
    expect_refusal(
        &l, "nn.lstm: found input_forget, expected 0, since oneDNN lacks it");
    l.attrs = "\"activations\":[\"sigmoid\",\"tanh\",\"nn.relu\"]";
    expect_refusal(
        &l, "nn.lstm: found activation nn.relu, expected tanh, the only one "
            "that oneDNN has there");
    l = lstm;
    l.peepholes = true;
    expect_refusal(&l, "nn.lstm: found peepholes");
    l = lstm;
    l.lengths = 2;
    expect_refusal(&l, "nn.lstm: found a sequence of length 4, expected 5");
    l.lengths_vary = true;
    expect_refusal(&l, "nn.lstm: found computed lengths, expected constants");

    struct layer rnn = lstm;
    rnn.op = 0;
    rnn.attrs = "\"activations\":[\"nn.elu\"]";
    expect_refusal(&rnn,
                   "nn.rnn: found activation nn.elu, expected tanh, nn.relu or "
                   "sigmoid");
    rnn.attrs = "\"activations\":[\"scaled_tanh\"]";
    expect_refusal(&rnn, "nn.rnn: found activation scaled_tanh");
    rnn.attrs = "\"activations\":[\"tanh\",\"nn.relu\"]";
    rnn.directions = 2;
    expect_refusal(&rnn,
                   "nn.rnn: found activations tanh and nn.relu, expected the "
                   "same one in both directions");
    l = lstm;
    l.bias_varies = true;
    expect_refusal(&l, "nn.lstm: found a bias that is not constant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_stacked),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(regions_as_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
