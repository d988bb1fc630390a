/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c: nn.linear_attention. Heads of values are independent, and so are
 * the columns of a head's state. The state is updated in the result's memory.
 */
#include "kernel.h"

/* A call's operands by name; absent ones are NULL. */
struct linear {
    const struct byi_tensor *query, *key, *value, *past, *decay, *beta;
    const struct byi_tensor *y, *state;
    int64_t batch, time, heads, kv_heads, size, width;
    int64_t y_heads, queries;  /* queries: heads that read one state */
    int64_t key_heads, decays; /* decays: of one head and step; or 0 */
    double scale;
};

static struct linear describe(const struct byi_call *call)
{
    struct linear l = {
        .query = call->in,
        .key = call->in + 1,
        .value = call->in + 2,
        .past = byi_optional_operand(call, 3),
        .decay = byi_optional_operand(call, 4),
        .beta = byi_optional_operand(call, 5),
        .y = call->out,
        .state = call->out + 1,
        .heads = byi_attr_int(call->attrs, "heads"),
        .kv_heads = byi_attr_int(call->attrs, "kv_heads"),
        .scale = byi_attr_float(call->attrs, "scale"),
    };
    l.batch = l.query->dims[0];
    l.time = l.query->dims[1];
    l.size = l.query->dims[2] / l.heads;
    l.width = l.value->dims[2] / l.kv_heads;
    l.y_heads = byi_max(l.heads, l.kv_heads);
    l.queries = l.y_heads / l.kv_heads;
    l.key_heads = l.key->dims[2] / l.size;
    l.decays = l.decay ? l.decay->dims[2] / l.kv_heads : 0;
    return l;
}

/* The indices of the first elements of one sequence and head of values. */
struct linear_offsets {
    int64_t query, key, value, decay, beta, y, state;
};

static struct linear_offsets offsets_of(const struct linear *l, int64_t b,
                                        int64_t h)
{
    const int64_t rows = b * l->time;
    const int64_t query = h * l->heads / l->kv_heads;
    const int64_t key = h / (l->kv_heads / l->key_heads);
    const bool shared = l->beta && l->beta->dims[2] == 1;
    return (struct linear_offsets){
        .query = (rows * l->heads + query) * l->size,
        .key = (rows * l->key_heads + key) * l->size,
        .value = (rows * l->kv_heads + h) * l->width,
        .decay = (rows * l->kv_heads + h) * l->decays,
        .beta = shared ? rows : rows * l->kv_heads + h,
        .y = (rows * l->y_heads + h * l->queries) * l->width,
        .state = (b * l->kv_heads + h) * l->size * l->width,
    };
}

/* --- the plain form ------------------------------------------------------- */

/* Compute step t of column j of a head. */
static void plain_step(const struct linear *l, const struct linear_offsets *at,
                       int64_t t, int64_t j)
{
    const int64_t key = at->key + t * l->key->dims[2];
    const int64_t query = at->query + t * l->query->dims[2];
    const int64_t state = at->state + j;
    double product = 0;
    for (int64_t i = 0; i < l->size; i++) {
        double s = byi_get_real(l->state, state + i * l->width);
        if (l->decay)
            s *= exp(byi_get_real(l->decay, at->decay + t * l->decay->dims[2] +
                                                (l->decays > 1 ? i : 0)));
        byi_put_real(l->state, state + i * l->width, s);
        product += byi_get_real(l->key, key + i) * s;
    }
    double update =
        byi_get_real(l->value, at->value + t * l->value->dims[2] + j);
    if (l->beta)
        update = byi_get_real(l->beta, at->beta + t * l->beta->dims[2]) *
                 (update - product);
    for (int64_t i = 0; i < l->size; i++)
        byi_put_real(l->state, state + i * l->width,
                     byi_get_real(l->state, state + i * l->width) +
                         byi_get_real(l->key, key + i) * update);
    for (int64_t g = 0; g < l->queries; g++) {
        double sum = 0;
        for (int64_t i = 0; i < l->size; i++)
            sum += byi_get_real(l->query, query + g * l->size + i) *
                   byi_get_real(l->state, state + i * l->width);
        byi_put_real(l->y, at->y + t * l->y->dims[2] + g * l->width + j,
                     l->scale * sum);
    }
}

/* Set the state that begins with element `at` to the past state, or to zeros.
 */
static void begin_state(const struct linear *l, int64_t at)
{
    const size_t size = byi_dtype_bytes(l->state->dtype);
    const size_t bytes = (size_t)(l->size * l->width) * size;
    char *to = (char *)l->state->data + (size_t)at * size;
    if (bytes == 0)
        return;
    if (l->past)
        memcpy(to, (const char *)l->past->data + (size_t)at * size, bytes);
    else
        memset(to, 0, bytes);
}

enum byoc_status byi_linear_plain(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const struct linear l = describe(call);
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    for (int64_t n = 0; n < l.batch * l.kv_heads; n++) {
        const struct linear_offsets at =
            offsets_of(&l, n / l.kv_heads, n % l.kv_heads);
        begin_state(&l, at.state);
        for (int64_t j = 0; j < l.width; j++)
            for (int64_t t = 0; t < l.time; t++)
                plain_step(&l, &at, t, j);
    }
    return BYOC_OK;
}

/* --- float32 -------------------------------------------------------------- */

static const float *data_at(const struct byi_tensor *t, int64_t at)
{
    return t ? (const float *)t->data + at : NULL;
}

/* Compute head n of all sequences' heads; `decay` has e^decay of all steps. */
static void run_head(const struct linear *l, const float *decay, int64_t n)
{
    const struct linear_offsets at =
        offsets_of(l, n / l->kv_heads, n % l->kv_heads);
    const struct byi_linear_head h = {
        .time = l->time,
        .size = l->size,
        .query = data_at(l->query, at.query),
        .key = data_at(l->key, at.key),
        .value = data_at(l->value, at.value),
        .decay = l->decay ? decay + at.decay : NULL,
        .beta = data_at(l->beta, at.beta),
        .query_step = l->query->dims[2],
        .key_step = l->key->dims[2],
        .value_step = l->value->dims[2],
        .decay_step = l->decay ? l->decay->dims[2] : 0,
        .beta_step = l->beta ? l->beta->dims[2] : 0,
        .y_step = l->y->dims[2],
        .decay_stride = l->decays > 1,
        .queries = l->queries,
        .state = (float *)l->state->data + at.state,
        .y = (float *)l->y->data + at.y,
        .width = l->width,
        .scale = (float)l->scale,
    };
    begin_state(l, at.state);
    byi_simd()->linear(&h, 0, l->width);
}

static enum byoc_status linear_f32(const struct byi_call *call,
                                   struct byoc_error *err)
{
    static const float no_params[4];
    if (call->in->dtype != BYOC_F32)
        return byi_linear_plain(call, err);
    const struct linear l = describe(call);
    const int64_t n = l.batch * l.kv_heads;
    const int64_t products = byi_count(l.state) * l.time * (2 + l.queries);
    const int team = (int)byi_min(byi_team_of_products(call, products), n);
    if (l.decay)
        byi_simd()->unary[BYI_OP_EXP](l.decay->data, call->scratch,
                                      byi_count(l.decay), no_params);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t i = 0; i < n; i++)
        run_head(&l, call->scratch, i);
    return BYOC_OK;
}

static uint64_t linear_scratch_f32(const struct byi_call *call)
{
    const struct linear l = describe(call);
    return l.decay && call->in->dtype == BYOC_F32
               ? (uint64_t)byi_count(l.decay) * sizeof(float)
               : 0;
}

BYI_FLOAT_KERNEL(linear, linear_f32, linear_scratch_f32)

BYI_KERNEL_ROWS(linear,
                {BYI_OP_NN_LINEAR_ATTENTION, {linear_run, linear_scratch}})
