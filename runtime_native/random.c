/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: random numbers by Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011), a stateless function
 * of a key and a counter. So the results depend neither on the order of
 * evaluation nor on the number of threads. The key is the bits of `seed` as a
 * double; the counter is the index of a block of four words and the number of
 * earlier draws in this state. */
#include "kernel.h"

#define PI 3.14159265358979323846

enum {
    ROUNDS = 10,
    WORDS = 4,
    LANES = 8 /* blocks that are computed together, in vectors */
};

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

/* Compute blocks first .. first + LANES - 1 of the stream: column l of x is
 * block first + l. */
static void philox(const struct stream *s, uint64_t first,
                   uint32_t x[WORDS][LANES])
{
    uint32_t k0 = s->key[0], k1 = s->key[1];

    for (uint32_t l = 0; l < LANES; l++) {
        x[0][l] = (uint32_t)(first + l);
        x[1][l] = (uint32_t)((first + l) >> 32);
        x[2][l] = s->draw[0];
        x[3][l] = s->draw[1];
    }
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            const uint64_t a = (uint64_t)x[0][l] * 0xD2511F53u;
            const uint64_t b = (uint64_t)x[2][l] * 0xCD9E8D57u;
            x[0][l] = (uint32_t)(b >> 32) ^ x[1][l] ^ k0;
            x[1][l] = (uint32_t)b;
            x[2][l] = (uint32_t)(a >> 32) ^ x[3][l] ^ k1;
            x[3][l] = (uint32_t)a;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* A number in [0, 1) with 53 random bits, from half a block. */
static double unit_interval(uint32_t low, uint32_t high)
{
    return (double)(int64_t)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* Draw two numbers from each block. params: the range, or the mean and the
 * standard deviation. */
typedef void (*draw_fn)(uint32_t x[WORDS][LANES], const double *params,
                        double to[2 * LANES]);

static void draw_uniform(uint32_t x[WORDS][LANES], const double *params,
                         double to[2 * LANES])
{
    const double size = params[1] - params[0];
    for (int l = 0; l < LANES; l++) {
        to[2 * l] = params[0] + unit_interval(x[0][l], x[1][l]) * size;
        to[2 * l + 1] = params[0] + unit_interval(x[2][l], x[3][l]) * size;
    }
}

/* ln(x) for a normal x, within 3 ulps. x = m 2^e with m from about sqrt(1/2) to
 * sqrt(2), and ln(m) = 2 artanh(s) with s = (m - 1) / (m + 1), by its Taylor
 * series. Without a call the compiler vectorises it, and the results are the
 * same on every instruction set. */
static inline double natural_logarithm(double x)
{
    enum { TERMS = 10 };
    const uint64_t mantissa = UINT64_C(0xfffffffffffff);
    const double ln2_high = 0x1.62e42fefa3800p-1, /* 42 bits: e ln2 is exact */
        ln2_low = 0x1.ef35793c76730p-45;
    uint64_t word, of_exponent, of_m;
    double exponent, m, series = 0;

    memcpy(&word, &x, sizeof word);
    /* 2^52 + the biased exponent; 1 <= m < 2 */
    of_exponent = word >> 52 | UINT64_C(0x4330000000000000);
    of_m = (word & mantissa) | UINT64_C(0x3ff0000000000000);
    memcpy(&exponent, &of_exponent, sizeof exponent);
    memcpy(&m, &of_m, sizeof m);
    exponent -= 0x1p52 + 1023;
    const double above = m > 1.4142 ? 1 : 0; /* vectors have no branches */
    exponent += above;
    m -= m / 2 * above;
    const double s = (m - 1) / (m + 1), square = s * s;
#pragma GCC unroll 10
    for (int i = TERMS; i > 0; i--)
        series = (series + 2.0 / (2 * i + 1)) * square;
    return exponent * ln2_high + (2 * s + (s * series + exponent * ln2_low));
}

/* sin and cos of 2 pi x for 0 <= x < 1, by the Taylor series for the distance
 * from the nearest quarter. */
static inline void sine_and_cosine(double x, double *sine, double *cosine)
{
    enum { TERMS = 8 };
    const double quarter = (int)(4 * x + 0.5);
    const double a = 2 * PI * (x - 0.25 * quarter), square = a * a;
    double s = 1, c = 1;

#pragma GCC unroll 8
    for (int i = TERMS; i > 0; i--) {
        s = 1 - s * square * (1.0 / (2 * i * (2 * i + 1)));
        c = 1 - c * square * (1.0 / (2 * i * (2 * i - 1)));
    }
    s *= a;
    const bool odd = fabs(fabs(quarter - 2) - 1) < 0.5; /* 1 or 3 */
    *sine = (odd ? c : s) * (fabs(quarter - 2.5) < 1 ? -1 : 1);
    *cosine = (odd ? s : c) * (fabs(quarter - 1.5) < 1 ? -1 : 1);
}

/* The Box-Muller transform: makes two normally distributed numbers from two
 * uniform ones, the first of which must be above 0. */
static void draw_normal(uint32_t x[WORDS][LANES], const double *params,
                        double to[2 * LANES])
{
    double radius[LANES], turn[LANES], sine[LANES], cosine[LANES];

    for (int l = 0; l < LANES; l++) {
        radius[l] = unit_interval(x[0][l], x[1][l]) + 0x1p-53;
        turn[l] = unit_interval(x[2][l], x[3][l]);
    }
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        radius[l] = params[1] * sqrt(-2 * natural_logarithm(radius[l]));
        sine_and_cosine(turn[l], &sine[l], &cosine[l]);
    }
    for (int l = 0; l < LANES; l++) {
        to[2 * l] = params[0] + radius[l] * cosine[l];
        to[2 * l + 1] = params[0] + radius[l] * sine[l];
    }
}

/* Set elements at .. at + n - 1 of y. A number that is not below `below`
 * becomes `low`: rounding to the type of y may reach the excluded end of the
 * range. */
static void store_numbers(struct byi_tensor *y, int64_t at, int64_t n,
                          const double *numbers, double low, double below)
{
    float floats[2 * LANES], rounded[2 * LANES];
    if (y->dtype == BYOC_F64) {
        double *to = (double *)y->data + at;
        for (int64_t i = 0; i < n; i++)
            to[i] = numbers[i] >= below ? low : numbers[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        floats[i] = rounded[i] = (float)numbers[i];
    if (byi_dtype_is_half(y->dtype)) {
        uint16_t halves[2 * LANES];
        byi_narrow(y->dtype, floats, halves, n);
        byi_widen(y->dtype, halves, rounded, n);
    }
    for (int64_t i = 0; i < n; i++)
        floats[i] = (double)rounded[i] >= below ? (float)low : floats[i];
    if (byi_dtype_is_half(y->dtype))
        byi_narrow(y->dtype, floats, (uint16_t *)y->data + at, n);
    else
        memcpy((float *)y->data + at, floats, (size_t)n * sizeof *floats);
}

/* Fill the result. A number that is not below `below` becomes params[0]; NAN:
 * no limit. */
static void fill(const struct byi_call *call, draw_fn draw,
                 const double params[2], double below)
{
    const struct stream s = stream_of(call);
    struct byi_tensor *y = call->out;
    const int64_t n = byi_count(y);
    const int team = byi_team(call, n * 8);

#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t at = 0; at < n; at += 2 * LANES) {
        uint32_t x[WORDS][LANES];
        double numbers[2 * LANES];
        philox(&s, (uint64_t)at / 2, x);
        draw(x, params, numbers);
        store_numbers(y, at, byi_min(2 * LANES, n - at), numbers, params[0],
                      below);
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
    uint32_t words[WORDS][LANES];
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
            int64_t low = 0, high = classes - 1;
            if (i % LANES == 0)
                philox(&s, (uint64_t)(r * samples + i), words);
            const int lane = (int)(i % LANES);
            const double part =
                unit_interval(words[0][lane], words[1][lane]) * sum;
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

BYI_KERNEL_ROWS(random, {BYI_OP_RANDOM_UNIFORM, {uniform_run, NULL}},
                {BYI_OP_RANDOM_NORMAL, {normal_run, NULL}},
                {BYI_OP_RANDOM_MULTINOMIAL,
                 {multinomial_run, multinomial_scratch}})
