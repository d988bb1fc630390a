/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: random numbers by Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011), a stateless function
 * of a key and a counter. So the results depend neither on the order of
 * evaluation nor on the number of threads. The key is the bits of `seed` as a
 * double; the counter is the index of a block of four words and the number of
 * earlier draws in this state. */
#include "kernel.h"

#define PI 3.14159265358979323846

enum { ROUNDS = 10, WORDS = 4 };

/* The key, and the number of earlier draws, which is half of the counter. */
struct stream {
    uint32_t key[2], draw[2];
};

static struct stream stream_of(const struct byi_call *call)
{
    const double seed = byi_attr_float(call->attrs, "seed");
    struct stream s;

    memcpy(s.key, &seed, sizeof s.key);
    memcpy(s.draw, &call->draw, sizeof s.draw);
    return s;
}

/* Compute block `index` of the stream. */
static void philox(const struct stream *s, uint64_t index, uint32_t x[WORDS])
{
    uint32_t k0 = s->key[0], k1 = s->key[1];

    x[0] = (uint32_t)index;
    x[1] = (uint32_t)(index >> 32);
    x[2] = s->draw[0];
    x[3] = s->draw[1];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t a = (uint64_t)x[0] * 0xD2511F53u;
        const uint64_t b = (uint64_t)x[2] * 0xCD9E8D57u;
        const uint32_t y[WORDS] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ x[3] ^ k1,
                                   (uint32_t)a};
        memcpy(x, y, sizeof y);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* A number in [0, 1) with 53 random bits, from half a block. */
static double unit(const uint32_t x[2])
{
    return (double)(((uint64_t)x[1] << 32 | x[0]) >> 11) * 0x1p-53;
}

/* Draw two numbers from a block. params: the range, or the mean and the
 * standard deviation. */
typedef void (*draw_fn)(const uint32_t x[WORDS], const double *params,
                        double pair[2]);

static void draw_uniform(const uint32_t x[WORDS], const double *params,
                         double pair[2])
{
    for (int i = 0; i < 2; i++)
        pair[i] = params[0] + unit(x + 2 * i) * (params[1] - params[0]);
}

/* The Box-Muller transform: makes two normally distributed numbers from two
 * uniform ones, the first of which must be above 0. */
static void draw_normal(const uint32_t x[WORDS], const double *params,
                        double pair[2])
{
    const double r = sqrt(-2 * log(unit(x) + 0x1p-53));
    const double angle = 2 * PI * unit(x + 2);

    pair[0] = params[0] + params[1] * r * cos(angle);
    pair[1] = params[0] + params[1] * r * sin(angle);
}

/* Fill the result. A number that is not below `below` becomes params[0]; NAN:
 * no limit. */
static void fill(const struct byi_call *call, draw_fn draw,
                 const double params[2], double below)
{
    const struct stream s = stream_of(call);
    struct byi_tensor *y = call->out;
    const int64_t n = byi_count(y), pairs = byi_ceil_div(n, 2);
    const int team = byi_team(call, n * 8);

#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < pairs; i++) {
        uint32_t x[WORDS];
        double pair[2];
        philox(&s, (uint64_t)i, x);
        draw(x, params, pair);
        for (int64_t k = 0; k < 2 && 2 * i + k < n; k++) {
            byi_tensor_set(y, 2 * i + k, pair[k]);
            /* rounding to the type of y may reach the excluded end of the range
             */
            if (byi_tensor_float(y, 2 * i + k) >= below)
                byi_tensor_set(y, 2 * i + k, params[0]);
        }
    }
}

static enum byoc_status uniform_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const double range[] = {byi_attr_float(call->attrs, "low"),
                            byi_attr_float(call->attrs, "high")};

    (void)err;
    fill(call, draw_uniform, range, range[1] > range[0] ? range[1] : NAN);
    return BYOC_OK;
}

static enum byoc_status normal_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    const double params[] = {byi_attr_float(call->attrs, "mean"),
                             byi_attr_float(call->attrs, "scale")};

    (void)err;
    fill(call, draw_normal, params, NAN);
    return BYOC_OK;
}

/* logits (rows, classes), y (rows, samples), by inverse transform sampling.
 * Each sample is the first class whose cumulative sum of e^x exceeds a
 * uniformly drawn part of the total. */
static enum byoc_status multinomial_run(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct stream s = stream_of(call);
    const struct byi_tensor *x = call->in;
    struct byi_tensor *y = call->out;
    const int64_t rows = x->dims[0], classes = x->dims[1];
    const int64_t samples = y->dims[1];
    double *sums = call->scratch;

    (void)err;
    for (int64_t r = 0; r < rows; r++) {
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            most = fmax(most, byi_tensor_float(x, r * classes + c));
        for (int64_t c = 0; c < classes; c++) {
            const double e = exp(byi_tensor_float(x, r * classes + c) - most);
            sum += isnan(e) ? 0 : e;
            sums[c] = sum;
        }
        for (int64_t i = 0; i < samples; i++) {
            uint32_t word[WORDS];
            int64_t low = 0, high = classes - 1;
            philox(&s, (uint64_t)(r * samples + i), word);
            const double part = unit(word) * sum;
            while (low < high) {
                const int64_t middle = low + (high - low) / 2;
                if (sums[middle] > part)
                    high = middle;
                else
                    low = middle + 1;
            }
            byi_tensor_set(y, r * samples + i, (double)low);
        }
    }
    return BYOC_OK;
}

static uint64_t multinomial_scratch(const struct byi_call *call)
{
    return (uint64_t)call->in->dims[1] * sizeof(double);
}

static const struct byi_kernel_row rows[] = {
    {BYI_OP_RANDOM_UNIFORM, {uniform_run, NULL}},
    {BYI_OP_RANDOM_NORMAL, {normal_run, NULL}},
    {BYI_OP_RANDOM_MULTINOMIAL, {multinomial_run, multinomial_scratch}},
};
const struct byi_kernel_rows byi_rows_random = {rows, BYI_COUNT(rows)};
