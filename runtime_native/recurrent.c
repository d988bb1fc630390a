/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c: nn.rnn, nn.gru and nn.lstm in float32; sequence.c has their
 * equations and computes float64. One matrix product computes the input part of
 * many steps in advance. The rest of a step is divided into blocks of hidden
 * elements. A thread always computes the same blocks, so that their part of the
 * recurrent weights stays in its cache. For the same reason several threads run
 * both directions at once, while a single thread runs one after the other. The
 * weights are packed once per call, or once per model if they are constant.
 * There is a barrier after each step and, without linear_before_reset, after
 * GRU's reset gate. A sequence that has ended keeps its state. */
#include "sequence.h"

#include "kernels/product.h"

enum {
    /* largest batch whose sequences are multiplied one by one */
    FEW_SEQUENCES = 4,
    MIN_PACKED_STEPS = 4, /* least number of steps that repay packing weights */
    PANEL = 64,           /* hidden elements of a block of few sequences */
    MAX_INPUT_FLOATS = 1 << 20, /* floats of the input part per product */
    ROWS = 6 /* rows of a thread's buffer, besides the gates */
};

/* The sizes and buffers of one call. */
struct recurrent_plan {
    struct byi_sequence s;
    const struct byi_f32_kernels *kernels;
    int64_t rows;          /* gates times hidden */
    int64_t width, blocks; /* hidden elements of a block; their number */
    int64_t ahead;         /* steps per product of the input part      */
    bool packed;           /* the recurrent weights are packed */
    bool few_sequences;    /* batch <= FEW_SEQUENCES */
    bool two_phases;       /* all of GRU's reset gate precedes its last gate */
    uint64_t bytes;        /* bytes of scratch so far */
    /* [d][gate][block][hidden][width]; with more than FEW_SEQUENCES sequences
     * each block consists of panels */
    float *weights;
    int64_t recurrent_floats;
    /* packed input weights by direction (byi_dense_pack), or NULL */
    const float *x_weights;
    int64_t *offsets; /* [hidden]: offsets of a panel's rows */
    float *input;     /* [d][n, t][rows]: see input_row         */
    /* [d][rows + hidden]: the sum of both biases of every gate; with
     * linear_before_reset, the recurrent bias of the last gate is separate */
    float *bias;
    /* [d][n][hidden]: h before and after a step, in turn; with two_phases, r h
     * for the second phase, and z */
    float *h[2], *reset;
    float *z;
    float *scratch; /* buffers of the threads                 */
    int64_t scratch_floats, h_floats;
    void *dense; /* scratch of the input product */
};

static float *take_floats(struct recurrent_plan *p, char *base, int64_t n)
{
    return byi_take_bytes(base, &p->bytes, (uint64_t)n * sizeof(float));
}

/* Plan a call. Without call->scratch, only the sizes in the plan are valid. */
static struct recurrent_plan make_plan(const struct byi_call *call)
{
    struct recurrent_plan p = {.kernels = byi_f32_kernels_of(byi_simd_isa())};
    char *base = call->scratch;
    byi_sequence_read(call, &p.s);
    const struct byi_sequence *s = &p.s;
    const int64_t directions = s->r.directions, hidden = s->hidden;
    p.two_phases = s->op == BYI_OP_NN_GRU && !s->linear_before_reset;
    p.rows = s->r.gates * hidden;
    p.few_sequences = s->batch <= FEW_SEQUENCES;
    p.packed = !p.few_sequences || s->time >= MIN_PACKED_STEPS;
    p.width = p.few_sequences ? PANEL : p.kernels->panels * BYI_F32_PANEL;
    p.blocks = byi_ceil_div(hidden, p.width);
    p.ahead = MAX_INPUT_FLOATS / byi_max(s->batch * p.rows, 1);
    p.ahead = byi_max(byi_min(p.ahead, s->time), 1);
    p.h_floats = s->batch * hidden;
    p.scratch_floats = (s->r.gates * s->batch + ROWS) * p.width + BYI_SLACK;

    p.recurrent_floats =
        directions * s->r.gates * p.blocks * p.width * hidden + BYI_SLACK;
    if (p.packed && call->packed) {
        p.weights = (float *)(uintptr_t)call->packed; /* not written to */
        p.x_weights = p.weights + p.recurrent_floats;
    } else if (p.packed) {
        p.weights = take_floats(&p, base, p.recurrent_floats);
    }
    p.offsets =
        byi_take_bytes(base, &p.bytes, (uint64_t)hidden * sizeof *p.offsets);
    p.input = take_floats(&p, base, directions * p.ahead * s->batch * p.rows);
    p.bias = take_floats(&p, base, directions * (p.rows + hidden));
    for (int i = 0; i < 2; i++)
        p.h[i] = take_floats(&p, base, directions * p.h_floats);
    if (p.two_phases) {
        p.reset = take_floats(&p, base, directions * p.h_floats);
        p.z = take_floats(&p, base, directions * s->batch * hidden);
    }
    p.scratch = take_floats(&p, base, p.scratch_floats * call->threads);
    p.dense = byi_take_bytes(
        base, &p.bytes, byi_dense_scratch(s->input, p.rows, call->threads));
    return p;
}

static int64_t h_at(const struct recurrent_plan *p, int64_t d, int64_t n,
                    int64_t k)
{
    return d * p->h_floats + n * p->s.hidden + k;
}

/* --- before the steps ----------------------------------------------------- */

static void pack_weights(const struct recurrent_plan *p,
                         const struct byi_call *call)
{
    const struct byi_sequence *s = &p->s;
    const int64_t panels = s->r.directions * s->r.gates * p->blocks;
    const int team = byi_team(call, panels * p->width * s->hidden);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t i = 0; i < panels; i++) {
        const int64_t n0 = i % p->blocks * p->width;
        const int64_t n = byi_min(p->width, s->hidden - n0);
        const int64_t panel_width = p->few_sequences ? p->width : BYI_F32_PANEL;
        const float *gate = (const float *)s->recurrent->data +
                            (i / p->blocks * s->hidden + n0) * s->hidden;
        float *to = p->weights + i * p->width * s->hidden;
        memset(to, 0, (size_t)(p->width * s->hidden) * sizeof *to);
        for (int64_t j = 0; j < n; j += panel_width)
            byi_f32_transpose(p->kernels, gate + j * s->hidden, s->hidden,
                              byi_min(panel_width, n - j), s->hidden,
                              to + j * s->hidden, panel_width);
    }
}

static void list_offsets(const struct recurrent_plan *p)
{
    for (int64_t k = 0; k < p->s.hidden; k++)
        p->offsets[k] = k * p->width;
}

static void set_bias(const struct recurrent_plan *p)
{
    const struct byi_sequence *s = &p->s;
    const bool separate = s->linear_before_reset;
    for (int64_t d = 0; d < s->r.directions; d++) {
        float *to = p->bias + d * (p->rows + s->hidden);
        memset(to, 0, (size_t)(p->rows + s->hidden) * sizeof *to);
        if (!s->bias)
            continue;
        const float *of_x = (const float *)s->bias->data + 2 * d * p->rows;
        const float *of_h = of_x + p->rows;
        for (int64_t i = 0; i < p->rows; i++)
            to[i] =
                separate && i >= 2 * s->hidden ? of_x[i] : of_x[i] + of_h[i];
        for (int64_t k = 0; separate && k < s->hidden; k++)
            to[p->rows + k] = of_h[2 * s->hidden + k];
    }
}

static void set_states(const struct recurrent_plan *p)
{
    const struct byi_sequence *s = &p->s;
    memset(p->h[0], 0, (size_t)(s->r.directions * p->h_floats) * sizeof(float));
    memset(p->h[1], 0, (size_t)(s->r.directions * p->h_floats) * sizeof(float));
    for (int64_t d = 0; d < s->r.directions; d++)
        for (int64_t n = 0; n < s->batch; n++) {
            const int64_t at = byi_sequence_state(s, d, n);
            for (int64_t k = 0; s->initial_h && k < s->hidden; k++)
                p->h[0][h_at(p, d, n, k)] =
                    ((const float *)s->initial_h->data)[at + k];
        }
    if (!s->y_c)
        return;
    const size_t bytes = (size_t)byi_count(s->y_c) * sizeof(float);
    if (s->initial_c)
        memcpy(s->y_c->data, s->initial_c->data, bytes);
    else
        memset(s->y_c->data, 0, bytes);
}

/* Steps [first, first + n), in the order of the direction. */
struct time_range {
    int64_t first, n;
};

static int64_t first_time(const struct recurrent_plan *p, int64_t d,
                          const struct time_range *range)
{
    return p->s.r.reverse[d] ? p->s.time - range->first - range->n
                             : range->first;
}

/* The input part of all gates, for sequence n at time t in direction d. */
static const float *input_row(const struct recurrent_plan *p,
                              const struct time_range *range, int64_t d,
                              int64_t t, int64_t n)
{
    const int64_t at = t - first_time(p, d, range);
    const int64_t row =
        p->s.batch_first ? n * range->n + at : at * p->s.batch + n;
    return p->input + (d * p->ahead * p->s.batch + row) * p->rows;
}

/* The packed input weights of direction d; NULL if they are not packed. */
static const float *x_weights(const struct recurrent_plan *p, int64_t d)
{
    const uint64_t bytes =
        byi_dense_pack(NULL, 1, p->s.input, p->s.input, p->rows, NULL);
    return p->x_weights ? p->x_weights + (uint64_t)d * bytes / sizeof(float)
                        : NULL;
}

/* Multiply n rows of x, from row `from` on, by the input weights of direction
 * d. */
static void multiply_input(const struct recurrent_plan *p,
                           const struct byi_call *call, int64_t d, int64_t from,
                           int64_t n, float *to)
{
    const struct byi_sequence *s = &p->s;
    const struct byi_tensor in[] = {
        {.data = (float *)s->x->data + from * s->input,
         .dtype = BYOC_F32,
         .rank = 2,
         .dims = {n, s->input}},
        {.data = (float *)s->weights->data + d * p->rows * s->input,
         .dtype = BYOC_F32,
         .rank = 2,
         .dims = {p->rows, s->input}}};
    struct byi_tensor out = {
        .data = to, .dtype = BYOC_F32, .rank = 2, .dims = {n, p->rows}};
    const struct byi_call dense = {.op = byi_op(BYI_OP_NN_DENSE),
                                   .n_in = 2,
                                   .n_out = 1,
                                   .in = in,
                                   .out = &out,
                                   .scratch = p->dense,
                                   .packed = x_weights(p, d),
                                   .threads = call->threads};
    struct byoc_error err;
    const enum byoc_status status =
        byi_kernel_in(&byi_rows_matmul, BYI_OP_NN_DENSE)->run(&dense, &err);
    assert(status == BYOC_OK);
    (void)status;
}

static void make_input(const struct recurrent_plan *p,
                       const struct byi_call *call,
                       const struct time_range *range)
{
    const struct byi_sequence *s = &p->s;
    for (int64_t d = 0; d < s->r.directions; d++) {
        const int64_t t = first_time(p, d, range);
        float *to = p->input + d * p->ahead * s->batch * p->rows;
        if (!s->batch_first || range->n == s->time) {
            multiply_input(p, call, d, s->batch_first ? 0 : t * s->batch,
                           range->n * s->batch, to);
            continue;
        }
        for (int64_t n = 0; n < s->batch; n++)
            multiply_input(p, call, d, n * s->time + t, range->n,
                           to + n * range->n * p->rows);
    }
}

/* --- one block of a step -------------------------------------------------- */

/* One block: hidden elements [k0, k0 + n) in direction d at time t. */
struct recurrent_block {
    const struct recurrent_plan *p;
    const struct time_range *range;
    int64_t d, t, index, k0, n;
    const float *h; /* before the step */
    float *next;    /* after it        */
    float *scratch; /* [gate][batch][width], then spare rows of width */
};

static float *gate_row(const struct recurrent_block *b, int64_t gate, int64_t n)
{
    return b->scratch + (gate * b->p->s.batch + n) * b->p->width;
}

static float *spare_row(const struct recurrent_block *b, int64_t i)
{
    return gate_row(b, b->p->s.r.gates, 0) + i * b->p->width;
}

/* Multiply a panel of weights by n rows of h. */
static void multiply_tile(const struct recurrent_block *b, const float *panel,
                          const float *h, int64_t n, float *to)
{
    const struct recurrent_plan *p = b->p;
    const float *rows[BYI_F32_ROWS];
    for (int64_t i = 0; i < n; i++)
        rows[i] = h + i * p->s.hidden;
    struct byi_f32_tile tile = {.x = rows,
                                .n_pieces = 1,
                                .length = p->s.hidden,
                                .weights = panel,
                                .next = p->s.hidden * BYI_F32_PANEL,
                                .low = -INFINITY,
                                .high = INFINITY,
                                .y = to,
                                .ldy = p->width};
    byi_f32_tile_run(p->kernels, &tile, (int)n, b->n);
}

/* Multiply one gate's recurrent weights by h, for all sequences. */
static void multiply(const struct recurrent_block *b, int64_t gate,
                     const float *h)
{
    const struct recurrent_plan *p = b->p;
    const struct byi_sequence *s = &p->s;
    const int64_t hidden = s->hidden, at = b->d * s->r.gates + gate;
    const float *panel =
        p->packed ? p->weights + (at * p->blocks + b->index) * p->width * hidden
                  : (const float *)s->recurrent->data +
                        (at * hidden + b->k0) * hidden;
    h += b->d * p->h_floats;
    for (int64_t n = 0, count; n < s->batch; n += count) {
        float *to = gate_row(b, gate, n);
        count = p->few_sequences ? 1 : byi_min(p->kernels->rows, s->batch - n);
        if (!p->few_sequences)
            multiply_tile(b, panel, h + n * hidden, count, to);
        else if (p->packed)
            byi_simd()->taps(panel, p->offsets, h + n * hidden, hidden, to,
                             b->n);
        else
            for (int64_t k = 0; k < b->n; k++)
                to[k] =
                    byi_simd()->dot(h + n * hidden, panel + k * hidden, hidden);
    }
}

/* to = activation f of clip(x), for the block's elements; overwrites x. */
static void apply(const struct recurrent_block *b, uint32_t f, float *x,
                  float *to)
{
    const struct byi_sequence *s = &b->p->s;
    const struct byi_gate_fn *fn = &s->r.fn[b->d][f];
    const float params[4] = {(float)fn->alpha, (float)fn->beta};
    const float clip = (float)s->clip;
    if (!isinf(clip))
        for (int64_t k = 0; k < b->n; k++)
            x[k] = x[k] > clip ? clip : x[k] < -clip ? -clip : x[k];
    if (fn->op == BYI_OP_NONE) {
        byi_simd()->affine(x, to, b->n, params[0], params[1]);
    } else if (fn->op == BYI_OP_TANH && fn->n_params) {
        byi_simd()->affine(x, to, b->n, params[1], 0);
        byi_simd()->unary[fn->op](to, x, b->n, params);
        byi_simd()->affine(x, to, b->n, params[0], 0);
    } else {
        byi_simd()->unary[fn->op](x, to, b->n, params);
    }
}

/* Add the input part and the bias to a gate's row, which is then the argument
 * of its activation. */
static float *add_input(const struct recurrent_block *b, int64_t gate,
                        int64_t n)
{
    const struct recurrent_plan *p = b->p;
    const int64_t at = gate * p->s.hidden + b->k0;
    const float *x = input_row(p, b->range, b->d, b->t, n) + at;
    const float *bias = p->bias + b->d * (p->rows + p->s.hidden) + at;
    float *row = gate_row(b, gate, n);
    for (int64_t k = 0; k < b->n; k++)
        row[k] += x[k] + bias[k];
    return row;
}

/* row += the weights of peephole number `peephole`, times c */
static void add_peephole(const struct recurrent_block *b, int64_t peephole,
                         const float *c, float *row)
{
    const struct byi_sequence *s = &b->p->s;
    if (!s->peepholes)
        return;
    const float *w = (const float *)s->peepholes->data +
                     (3 * b->d + peephole) * s->hidden + b->k0;
    for (int64_t k = 0; k < b->n; k++)
        row[k] += w[k] * c[k];
}

/* Copy the block's elements of h of sequence n to `to`. */
static void read_h(const struct recurrent_block *b, int64_t n, float *to)
{
    const float *h = b->h + h_at(b->p, b->d, n, b->k0);
    for (int64_t k = 0; k < b->n; k++)
        to[k] = h[k];
}

/* The finish functions compute the block's part of h' of sequence n and write
 * it to `to`. */
static void finish_rnn(const struct recurrent_block *b, int64_t n, float *to)
{
    apply(b, 0, add_input(b, 0, n), to);
}

static void finish_lstm(const struct recurrent_block *b, int64_t n, float *to)
{
    const struct byi_sequence *s = &b->p->s;
    float *c = (float *)s->y_c->data + byi_sequence_state(s, b->d, n) + b->k0;
    float *i = spare_row(b, 0), *f = spare_row(b, 1), *g = spare_row(b, 2);
    float *o = spare_row(b, 3), *x = add_input(b, 0, n);
    add_peephole(b, 0, c, x);
    apply(b, 0, x, i);
    if (s->input_forget) {
        for (int64_t k = 0; k < b->n; k++)
            f[k] = 1 - i[k];
    } else {
        x = add_input(b, 2, n);
        add_peephole(b, 2, c, x);
        apply(b, 0, x, f);
    }
    apply(b, 1, add_input(b, 3, n), g);
    for (int64_t k = 0; k < b->n; k++)
        c[k] = f[k] * c[k] + i[k] * g[k];
    x = add_input(b, 1, n);
    add_peephole(b, 1, c, x);
    apply(b, 0, x, o);
    memcpy(g, c, (size_t)b->n * sizeof *g);
    apply(b, 2, g, to);
    for (int64_t k = 0; k < b->n; k++)
        to[k] *= o[k];
}

/* h' = (1 - z) g(x) + z h */
static void finish_gru(const struct recurrent_block *b, int64_t n,
                       const float *z, float *x, float *to)
{
    float *h = spare_row(b, 2);
    read_h(b, n, h);
    apply(b, 1, x, to);
    for (int64_t k = 0; k < b->n; k++)
        to[k] = (1 - z[k]) * to[k] + z[k] * h[k];
}

/* GRU with linear_before_reset, which needs only one phase, since it multiplies
 * r by R h instead of h. */
static void finish_gru_linear(const struct recurrent_block *b, int64_t n,
                              float *to)
{
    const struct recurrent_plan *p = b->p;
    float *z = spare_row(b, 0), *r = spare_row(b, 1), *x = gate_row(b, 2, n);
    const float *bias = p->bias + b->d * (p->rows + p->s.hidden) + p->rows;
    apply(b, 0, add_input(b, 0, n), z);
    apply(b, 0, add_input(b, 1, n), r);
    for (int64_t k = 0; k < b->n; k++)
        x[k] = r[k] * (x[k] + bias[b->k0 + k]);
    finish_gru(b, n, z, add_input(b, 2, n), to);
}

/* First phase of GRU without linear_before_reset: computes z, and r h for the
 * second phase. */
static void start_gru(const struct recurrent_block *b, int64_t n)
{
    const struct recurrent_plan *p = b->p;
    float *z = p->z + (b->d * p->s.batch + n) * p->s.hidden + b->k0;
    float *r = spare_row(b, 1), *h = spare_row(b, 2);
    float *to = p->reset + h_at(p, b->d, n, b->k0);
    apply(b, 0, add_input(b, 0, n), z);
    apply(b, 0, add_input(b, 1, n), r);
    read_h(b, n, h);
    for (int64_t k = 0; k < b->n; k++)
        to[k] = r[k] * h[k];
}

/* Store `row` as h' and y of sequence n. `row` is NULL if the sequence has no
 * step t: then h is kept and y is 0. */
static void store(const struct recurrent_block *b, int64_t n, const float *row)
{
    const struct recurrent_plan *p = b->p;
    float *y =
        (float *)p->s.y->data + byi_sequence_y(&p->s, b->d, b->t, n) + b->k0;
    const int64_t at = h_at(p, b->d, n, b->k0);
    for (int64_t k = 0; k < b->n; k++) {
        b->next[at + k] = row ? row[k] : b->h[at + k];
        y[k] = row ? row[k] : 0;
    }
}

static void run_block(const struct recurrent_block *b, int phase)
{
    const struct recurrent_plan *p = b->p;
    const struct byi_sequence *s = &p->s;
    const bool start = p->two_phases && phase == 0;
    const int64_t first = phase ? 2 : 0, last = start ? 2 : s->r.gates;
    float *to = spare_row(b, 4);
    for (int64_t gate = first; gate < last; gate++)
        if (gate != 2 || !s->input_forget)
            multiply(b, gate, phase ? p->reset : b->h);
    for (int64_t n = 0; n < s->batch; n++) {
        if (b->t >= byi_sequence_length(s, n)) {
            if (!start)
                store(b, n, NULL);
            continue;
        }
        if (start) {
            start_gru(b, n);
            continue;
        }
        if (s->op == BYI_OP_NN_LSTM)
            finish_lstm(b, n, to);
        else if (s->op == BYI_OP_NN_RNN)
            finish_rnn(b, n, to);
        else if (s->linear_before_reset)
            finish_gru_linear(b, n, to);
        else
            finish_gru(b, n, p->z + (b->d * s->batch + n) * s->hidden + b->k0,
                       add_input(b, 2, n), to);
        store(b, n, to);
    }
}

/* --- the steps ------------------------------------------------------------ */

static void run_task(const struct recurrent_plan *p,
                     const struct time_range *range, int64_t step, int64_t task,
                     int phase, int64_t number)
{
    const int64_t d = task / p->blocks, index = task % p->blocks;
    const struct recurrent_block b = {
        .p = p,
        .range = range,
        .d = d,
        .t = p->s.r.reverse[d] ? p->s.time - 1 - step : step,
        .index = index,
        .k0 = index * p->width,
        .n = byi_min(p->width, p->s.hidden - index * p->width),
        .h = p->h[step % 2],
        .next = p->h[(step + 1) % 2],
        .scratch = p->scratch + number * p->scratch_floats,
    };
    run_block(&b, phase);
}

/* Run the steps on the calling thread. */
static void run_alone(const struct recurrent_plan *p,
                      const struct time_range *range)
{
    for (int64_t d = 0; d < p->s.r.directions; d++)
        for (int64_t step = range->first; step < range->first + range->n;
             step++)
            for (int phase = 0; phase <= (int)p->two_phases; phase++)
                for (int64_t i = 0; i < p->blocks; i++)
                    run_task(p, range, step, d * p->blocks + i, phase, 0);
}

static void run_steps(const struct recurrent_plan *p,
                      const struct byi_call *call,
                      const struct time_range *range)
{
    const struct byi_sequence *s = &p->s;
    const int64_t tasks = s->r.directions * p->blocks;
    const int64_t work = s->r.directions * s->batch * p->rows * s->hidden;
    const int team = (int)byi_min(byi_team(call, work), tasks);
    if (team == 1) {
        run_alone(p, range);
        return;
    }
    for (int64_t step = range->first; step < range->first + range->n; step++)
        for (int phase = 0; phase <= (int)p->two_phases; phase++) {
#pragma omp parallel for num_threads(team) schedule(static)
            for (int64_t task = 0; task < tasks; task++)
                run_task(p, range, step, task, phase, byi_part_number());
        }
}

static uint64_t sequence_scratch(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 5 * sizeof(double) * (uint64_t)call->in[2].dims[2];
    struct byi_call without_scratch = *call;
    without_scratch.scratch = NULL;
    return make_plan(&without_scratch).bytes;
}

static enum byoc_status sequence_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    if (call->in->dtype == BYOC_F64)
        return byi_recurrent_plain(call, err);
    if (call->in->dtype != BYOC_F32)
        return byi_bad_dtype(call, call->in->dtype,
                             "float16, bfloat16, float32 or float64", err);
    const struct recurrent_plan p = make_plan(call);
    const struct byi_sequence *s = &p.s;
    BYI_TRY(byi_sequence_check(s, call, err));
    if (s->hidden == 0 || s->batch == 0)
        return BYOC_OK; /* the results are empty */
    if (p.packed && !call->packed)
        pack_weights(&p, call);
    list_offsets(&p);
    set_bias(&p);
    set_states(&p);
    for (int64_t t = 0; t < s->time; t += p.ahead) {
        const struct time_range range = {t, byi_min(p.ahead, s->time - t)};
        make_input(&p, call, &range);
        run_steps(&p, call, &range);
    }
    for (int64_t d = 0; d < s->r.directions; d++)
        for (int64_t n = 0; n < s->batch; n++)
            for (int64_t k = 0; k < s->hidden; k++)
                ((float *)s->y_h->data)[byi_sequence_state(s, d, n) + k] =
                    p.h[s->time % 2][h_at(&p, d, n, k)];
    return BYOC_OK;
}

/* Packs the recurrent weights, then the input weights. Returns 0 unless x is
 * float32, all its dims are known, and the plan for them uses packed weights.
 */
uint64_t byi_recurrent_pack(const struct byi_call *call, void *to)
{
    const int64_t *dims = call->in->dims;
    if (call->in->dtype != BYOC_F32 || dims[0] < 0 || dims[1] < 0 ||
        dims[2] <= 0)
        return 0;
    struct byi_call without_scratch = *call;
    without_scratch.scratch = NULL;
    without_scratch.packed = NULL;
    struct recurrent_plan p = make_plan(&without_scratch);
    const struct byi_sequence *s = &p.s;
    if (!p.packed || s->hidden == 0)
        return 0;
    uint64_t bytes = (uint64_t)p.recurrent_floats * sizeof(float);
    p.weights = to;
    if (to)
        pack_weights(&p, call);
    for (int64_t d = 0; d < s->r.directions; d++) {
        const float *x = (const float *)s->weights->data;
        bytes += byi_dense_pack(
            to ? x + d * p.rows * s->input : NULL, 1, s->input, s->input,
            p.rows, to ? (float *)to + bytes / sizeof(float) : NULL);
    }
    return bytes;
}

BYI_FLOAT_KERNEL(recurrent, sequence_run, sequence_scratch)

BYI_KERNEL_ROWS(recurrent, {BYI_OP_NN_RNN, {recurrent_run, recurrent_scratch}},
                {BYI_OP_NN_GRU, {recurrent_run, recurrent_scratch}},
                {BYI_OP_NN_LSTM, {recurrent_run, recurrent_scratch}})
