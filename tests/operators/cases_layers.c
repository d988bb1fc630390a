/* SPDX-License-Identifier: Apache-2.0 */
/* cases_layers.c: random calls of the layers of neural networks: recurrent
 * ones, convolutions, pooling, mixtures of experts; see cases.c.
 */
#include "fuzz.h"

#include <string.h>

/* Draw the activations of each direction, and the parameters of those that take
 * some. If a direction has several, the first belongs to the gates, and must be
 * bounded so that states do not overflow. ONNX Runtime's Softplus overflows,
 * too. */
static void draw_activations(struct draw *d, int64_t directions,
                             int64_t functions)
{
    static const struct {
        const char *name;
        bool alpha, beta;
    } kinds[] = {{"Tanh", false, false},     {"Sigmoid", false, false},
                 {"Softsign", false, false}, {"HardSigmoid", true, true},
                 {"Relu", false, false},     {"LeakyRelu", true, false},
                 {"Elu", true, false},       {"ScaledTanh", true, true},
                 {"Affine", true, true}};
    enum { LAST_BOUNDED = 3 };
    const char *words[6];
    float alphas[6], betas[6];
    size_t n_alphas = 0, n_betas = 0;

    for (int64_t i = 0; i < directions * functions; i++) {
        const bool of_gates = functions > 1 && i % functions == 0;
        const int64_t k =
            draw_int(d, 0, of_gates ? LAST_BOUNDED : BYI_COUNT(kinds) - 1);
        words[i] = kinds[k].name;
        if (kinds[k].alpha)
            alphas[n_alphas++] = (float)draw_int(d, 1, 8) / 8;
        if (kinds[k].beta)
            betas[n_betas++] = (float)draw_int(d, 1, 8) / 8;
    }
    draw_attr_words(d, "activations", (size_t)(directions * functions), words);
    if (n_alphas)
        draw_attr_floats(d, "activation_alpha", n_alphas, alphas);
    if (n_betas)
        draw_attr_floats(d, "activation_beta", n_betas, betas);
}

/* The sizes of a recurrent layer. */
struct recurrence {
    int64_t directions, gates, hidden, input, time, batch;
};

/* Lengths of sequences, initial states, and an LSTM's peepholes; each of them
 * may be omitted. */
static void draw_states(struct draw *d, const struct recurrence *r)
{
    const int64_t state[] = {r->directions, r->batch, r->hidden};
    int64_t lengths[4];

    for (int64_t i = 0; i < r->batch; i++)
        lengths[i] = draw_int(d, 1, r->time);
    if (draw_chance(d, 40))
        draw_ints(d, BYOC_I32, r->batch, lengths, draw_chance(d, 30));
    else
        draw_nothing(d);
    for (int64_t i = 0; i < (r->gates == 4 ? 2 : 1); i++) {
        if (draw_chance(d, 50))
            draw_operand(d, d->dtype, 3, state, ORDINARY);
        else
            draw_nothing(d);
    }
    if (r->gates == 4 && draw_chance(d, 40))
        draw_operand(d, d->dtype, 2, (int64_t[]){r->directions, 3 * r->hidden},
                     UNIT);
}

/* Weights (directions, gates * hidden, columns), small enough that a state does
 * not grow much even if no function bounds it. */
static void draw_recurrent_weights(struct draw *d, const struct recurrence *r,
                                   int64_t columns)
{
    const int64_t dims[] = {r->directions, r->gates * r->hidden, columns};
    struct byi_tensor *t = draw_operand(d, d->dtype, 3, dims, UNIT);

    for (int64_t i = 0; i < byi_elements(3, dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, -8, 16) / 64);
}

/* RNN, GRU, LSTM: x, weights, recurrent weights, bias, states; forward, reverse
 * or both. */
static void recurrent(struct draw *d)
{
    static const char *const directions[] = {"forward", "reverse",
                                             "bidirectional"};
    const int64_t direction = draw_int(d, 0, 2);
    const struct recurrence r = {
        .directions = direction == 2 ? 2 : 1,
        .gates = op_now->op[0] == 'L'   ? 4
                 : op_now->op[0] == 'G' ? 3
                                        : 1,
        .hidden = draw_int(d, 1, draw_chance(d, 20) ? 40 : 9),
        .input = draw_int(d, 1, 9),
        .time = draw_int(d, 1, 6),
        .batch = draw_int(d, 1, 4)};
    const int64_t functions = r.gates == 1 ? 1 : r.gates - 1;

    draw_operand(d, d->dtype, 3, (int64_t[]){r.time, r.batch, r.input},
                 ORDINARY);
    draw_recurrent_weights(d, &r, r.input);
    draw_recurrent_weights(d, &r, r.hidden);
    if (draw_chance(d, 60))
        draw_operand(d, d->dtype, 2,
                     (int64_t[]){r.directions, 2 * r.gates * r.hidden},
                     ORDINARY);
    else
        draw_nothing(d);
    draw_states(d, &r);
    if (draw_chance(d, 30))
        draw_activations(d, r.directions, functions);
    if (draw_chance(d, 20))
        draw_attr_float(d, "clip", (float)draw_int(d, 1, 8) / 4);
    if (r.gates == 4 && draw_chance(d, 15))
        draw_attr_int(d, "input_forget", 1);
    draw_attr_int(d, "hidden_size", r.hidden);
    draw_attr_string(d, "direction", directions[direction]);
    if (r.gates == 3)
        draw_attr_int(d, "linear_before_reset", draw_int(d, 0, 1));
}

/* --- windows -------------------------------------------------------------- */

/* The attributes of a window over n axes, and the dims of its data. */
struct window {
    uint32_t n;
    int64_t x[5], kernel[3], strides[3], dilations[3], pads[6];
};

/* A window that fits its data, of channels c. */
static void draw_window(struct draw *d, int64_t c, bool dilated,
                        struct window *w)
{
    const bool wide = draw_chance(d, 30);

    w->n = (uint32_t)draw_int(d, 1, draw_chance(d, 20) ? 3 : 2);
    w->x[0] = draw_chance(d, 3) ? 0 : draw_int(d, 1, 3);
    w->x[1] = c;
    for (uint32_t i = 0; i < w->n; i++) {
        w->kernel[i] = draw_int(d, 1, draw_chance(d, 15) ? 9 : 4);
        w->strides[i] = draw_int(d, 1, draw_chance(d, 15) ? 7 : 3);
        w->dilations[i] = dilated && draw_chance(d, 25) ? draw_int(d, 2, 4) : 1;
        const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        const int64_t pad = wide ? w->kernel[i] - 1 : (w->kernel[i] - 1) / 2;
        w->pads[i] = draw_int(d, 0, pad);
        w->pads[i + w->n] = draw_int(d, 0, pad);
        w->x[i + 2] = reach + draw_int(d, 0, draw_chance(d, 20) ? 30 : 8);
    }
}

static void window_attrs(struct draw *d, const struct window *w, bool kernel,
                         bool dilations)
{
    static const char *const automatic[] = {"SAME_UPPER", "SAME_LOWER",
                                            "VALID"};

    if (kernel)
        draw_attr_ints(d, "kernel_shape", w->n, w->kernel);
    if (draw_chance(d, 90))
        draw_attr_ints(d, "strides", w->n, w->strides);
    if (draw_chance(d, 12))
        draw_attr_string(d, "auto_pad", automatic[draw_int(d, 0, 2)]);
    else if (draw_chance(d, 90))
        draw_attr_ints(d, "pads", (size_t)2 * w->n, w->pads);
    if (dilations)
        draw_attr_ints(d, "dilations", w->n, w->dilations);
}

/* Windows of kernels of 3 and more with stride 1, for which fast kernels
 * transform the inputs (Winograd's algorithm). */
static void draw_winograd_window(struct draw *d, struct window *w)
{
    const uint32_t one = (uint32_t)draw_int(d, 0, 4); /* axis of one tap */
    const int64_t size = 1 + 2 * draw_int(d, 1, one < w->n ? 3 : 2);
    for (uint32_t i = 0; i < w->n; i++) {
        w->kernel[i] = i == one ? 1 : size;
        w->strides[i] = 1;
        w->pads[i] = draw_int(d, 0, w->kernel[i] / 2);
        w->pads[i + w->n] = draw_int(d, 0, w->kernel[i] / 2);
        w->x[i + 2] = (w->kernel[i] - 1) * w->dilations[i] + draw_int(d, 1, 24);
    }
}

static void conv(struct draw *d)
{
    const bool transposed = strcmp(op_now->op, "ConvTranspose") == 0;
    const bool is_integer = strcmp(op_now->op, "ConvInteger") == 0;
    const int64_t groups = draw_chance(d, 30) ? draw_int(d, 2, 4) : 1;
    const bool winograd = draw_chance(d, 30);
    /* backends and fast kernels are for many channels */
    const int64_t times =
        winograd || (plugin_now && draw_chance(d, 70)) ? 8 : 1;
    const int64_t in = groups * times * draw_int(d, 1, 4);
    const int64_t each = times * draw_int(d, 1, 5);
    /* sums of many products have large rounding errors */
    const enum distribution values = times > 1 && !is_integer ? UNIT : ORDINARY;
    struct window w;
    int64_t dims[5];

    draw_window(d, in, true, &w);
    if (winograd)
        draw_winograd_window(d, &w);
    draw_operand(d, d->dtype, w.n + 2, w.x, values);
    dims[0] = transposed ? in : groups * each;
    dims[1] = transposed ? each : in / groups;
    memcpy(dims + 2, w.kernel, sizeof w.kernel);
    draw_operand(d, d->dtype, w.n + 2, dims, values);
    if (!is_integer && draw_chance(d, 50))
        draw_operand(d, d->dtype, 1, (int64_t[]){groups * each}, ORDINARY);
    window_attrs(d, &w, draw_chance(d, 50), true);
    draw_attr_int(d, "group", groups);
    if (transposed && draw_chance(d, 30)) {
        for (uint32_t i = 0; i < w.n; i++)
            dims[i] = draw_int(d, 0, w.strides[i] - 1);
        draw_attr_ints(d, "output_padding", w.n, dims);
    } else if (transposed && draw_chance(d, 15)) {
        for (uint32_t i = 0; i < w.n; i++)
            dims[i] = w.strides[i] * (w.x[i + 2] - 1) + draw_int(d, 1, 4);
        draw_attr_ints(d, "output_shape", w.n, dims);
    }
}

static void pool(struct draw *d)
{
    const bool max = strcmp(op_now->op, "MaxPool") == 0;
    const bool dilated =
        max || op_now->opset >= (strcmp(op_now->op, "LpPool") == 0 ? 18 : 19);
    struct window w;

    const bool ceil_mode = (max || dilated) && draw_chance(d, 30);
    draw_window(d, draw_int(d, 1, 5), dilated, &w);
    for (uint32_t i = 0; ceil_mode && i < w.n; i++)
        if (draw_chance(d, 20)) { /* the window may be larger than the data */
            const int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
            const int64_t x = extent - draw_int(d, 0, w.strides[i] - 1);
            w.x[i + 2] = x < 1 ? 1 : x;
        }
    draw_operand(d, d->dtype, w.n + 2, w.x, op_now->distribution);
    window_attrs(d, &w, true, dilated);
    if (strcmp(op_now->op, "LpPool") == 0)
        draw_attr_int(d, "p", draw_int(d, 1, 3));
    if (max && op_now->results > 1)
        draw_attr_int(d, "storage_order", draw_int(d, 0, 1));
    if (ceil_mode)
        draw_attr_int(d, "ceil_mode", 1);
    if (strcmp(op_now->op, "AveragePool") == 0 && draw_chance(d, 50))
        draw_attr_int(d, "count_include_pad", 1);
}

static void global_pool(struct draw *d)
{
    int64_t dims[5] = {draw_int(d, 1, 3), draw_int(d, 1, 9)};
    const uint32_t rank = (uint32_t)draw_int(d, 3, 5);

    for (uint32_t i = 2; i < rank; i++)
        dims[i] = draw_int(d, 1, 9);
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
}

/* --- experts -------------------------------------------------------------- */

/* Router's scores: no two of a row are the same, since the choice among equal
 * ones is not specified. */
static void draw_scores(struct draw *d, int64_t tokens, int64_t experts)
{
    struct byi_tensor *t =
        draw_operand(d, d->dtype, 2, (int64_t[]){tokens, experts}, ORDINARY);

    for (int64_t i = 0; i < tokens; i++) {
        const int64_t first = draw_int(d, 0, experts - 1);
        for (int64_t e = 0; e < experts; e++)
            byi_tensor_set(t, i * experts + (first + e) % experts,
                           (double)(e - 2) / 2);
    }
}

static void draw_codes(struct draw *d, uint32_t rank, const int64_t *dims)
{
    struct byi_tensor *t = draw_operand(d, BYOC_U8, rank, dims, ORDINARY);

    for (int64_t i = 0; i < byi_elements(rank, dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, 0, 255));
}

static void draw_expert_attrs(struct draw *d, const char *activation,
                              int64_t experts)
{
    draw_attr_string(d, "activation_type", activation);
    draw_attr_int(d, "k", draw_int(d, 1, experts));
    draw_attr_int(d, "normalize_routing_weights", draw_int(d, 0, 1));
    if (strcmp(activation, "swiglu") != 0)
        return;
    draw_attr_int(d, "swiglu_fusion", 1);
    if (draw_chance(d, 50)) {
        draw_attr_float(d, "activation_alpha", 1.702f);
        draw_attr_float(d, "activation_beta", 1);
    }
    draw_attr_float(d, "swiglu_limit", (float)draw_int(d, 1, 7));
}

/* The weights and biases of both layers of n experts; layer i has outs[i] rows
 * of ins[i] columns. bits 0: floats, else codes, with a scale for each block
 * or, if block is 0, for each row. */
static void draw_layers(struct draw *d, int64_t n, const int64_t *outs,
                        const int64_t *ins, int64_t bits, int64_t block)
{
    for (int i = 0; i < 2; i++) {
        const int64_t w[] = {n, outs[i], ins[i] * bits / 8};
        const int64_t real[] = {n, outs[i], ins[i]};
        const int64_t scales[] = {n, outs[i], block ? ins[i] / block : 0};
        const uint32_t rank = bits && !block ? 2 : 3;
        const int64_t parts = bits ? 1024 : 128;
        if (bits)
            draw_codes(d, 3, w);
        struct byi_tensor *t =
            draw_operand(d, d->dtype, rank, bits ? scales : real, UNIT);
        for (int64_t k = 0; k < byi_elements(t->rank, t->dims); k++)
            byi_tensor_set(
                t, k, (double)draw_int(d, bits ? 1 : -31, 31) / (double)parts);
        if (draw_chance(d, 50))
            draw_operand(d, d->dtype, 2, real, ORDINARY);
        else
            draw_nothing(d);
    }
}

/* MoE and QMoE: x, the router's scores, two layers; QMoE: maybe zero points. */
static void experts(struct draw *d)
{
    static const char *const activations[] = {"relu", "gelu", "silu",
                                              "identity", "swiglu"};
    const bool flat = draw_chance(d, 50);
    const char *activation = activations[draw_int(d, 0, 4)];
    const int64_t n = draw_int(d, 1, 6), rows = draw_int(d, 1, 5);
    const int64_t x[] = {draw_int(d, 1, 2), rows, 32 * draw_int(d, 1, 2)};
    const int64_t inner = 32 * draw_int(d, 1, 3);
    const int64_t bits = *op_now->op == 'M' ? 0 : draw_chance(d, 50) ? 4 : 8;
    const int64_t block = draw_chance(d, 50) ? 16 : 0;
    const int64_t fused = strcmp(activation, "swiglu") == 0 ? 2 : 1;
    const int64_t outs[] = {inner * fused, x[2]}, ins[] = {x[2], inner};

    draw_operand(d, d->dtype, flat ? 2 : 3, flat ? x + 1 : x, ORDINARY);
    draw_scores(d, flat ? rows : x[0] * rows, n);
    draw_layers(d, n, outs, ins, bits, block);
    draw_expert_attrs(d, activation, n);
    if (!bits)
        return;
    draw_attr_int(d, "expert_weight_bits", bits);
    if (block)
        draw_attr_int(d, "block_size", block);
    const bool zeros = draw_chance(d, 50);
    for (int i = 0; zeros && i < 3; i++)
        draw_nothing(d);
    for (int i = 0; zeros && i < 2; i++) {
        const int64_t of_blocks[] = {n, outs[i], ins[i] / 16 * bits / 8};
        const int64_t of_rows[] = {n, outs[i] * bits / 8};
        draw_codes(d, block ? 3 : 2, block ? of_blocks : of_rows);
    }
}

/* clang-format off */
static const struct op_case rows[] = {
    {"AveragePool", 11, "fh", pool, ORDINARY, 1, 1e-5, NULL, false},
    {"Conv", 11, "fh", conv, ORDINARY, 1, 1e-4, NULL, false},
    {"ConvTranspose", 11, "fh", conv, ORDINARY, 1, 1e-4, NULL, false},
    {"GlobalAveragePool", 1, "fh", global_pool, ORDINARY, 1, 1e-5, NULL, false},
    {"GlobalMaxPool", 1, "fh", global_pool, ORDINARY, 1, 0, NULL, false},
    {"GRU", 14, "fh", recurrent, ORDINARY, 2, 1e-4, NULL, false},
    {"LpPool", 11, "fh", pool, ORDINARY, 1, 1e-4, NULL, false},
    {"LSTM", 14, "fh", recurrent, ORDINARY, 3, 1e-4, NULL, false},
    {"MaxPool", 12, "fh8", pool, ORDINARY, 1, 0, NULL, false},
    {"RNN", 14, "fh", recurrent, ORDINARY, 2, 1e-4, NULL, false},
    {"AveragePool", 19, "fh", pool, ORDINARY, 1, 1e-5, NULL, false},
    {"LpPool", 18, "fh", pool, ORDINARY, 1, 1e-4, NULL, false},
    {"MaxPool", 12, "f8", pool, ORDINARY, 2, 0, NULL, false},
    {"MoE", 1, "Fh", experts, ORDINARY, 1, 1e-4, "com.microsoft", false},
    {"QMoE", 1, "Fh", experts, ORDINARY, 1, 2e-3, "com.microsoft", false},
};
/* clang-format on */

const struct op_table op_cases_layers = {rows, BYI_COUNT(rows)};
