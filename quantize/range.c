/* SPDX-License-Identifier: Apache-2.0 */
/* range.c: makes histograms of values, and chooses the range to quantise. A
 * smaller range clips more values and rounds the others more finely. MSE and
 * ENTROPY shrink the range towards 0 in steps and choose the range with the
 * least cost.
 */
#include "quantize/model.h"

#include <math.h>

enum {
    N_STEPS = 100, /* each step shrinks the range by 1 % of the full range */
    LEVELS = 256   /* values of a uint8 */
};

void byi_quant_widen(struct quant_histogram *h, const struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    const float *x = t->data;
    double low = h->low, high = h->high;
    h->any |= n > 0;
    for (int64_t i = 0; t->dtype == BYOC_F32 && i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        h->any_finite = true;
        low = (double)x[i] < low ? (double)x[i] : low;
        high = (double)x[i] > high ? (double)x[i] : high;
    }
    h->low = low;
    h->high = high;
}

static double bin_width(const struct quant_histogram *h)
{
    return (h->high - h->low) / QUANT_BINS;
}

void byi_quant_count(struct quant_histogram *h, const struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    const float *x = t->data;
    const double width = bin_width(h);
    for (int64_t i = 0; t->dtype == BYOC_F32 && width > 0 && i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        const double at = ((double)x[i] - h->low) / width;
        const int bin = at < QUANT_BINS ? (int)at : QUANT_BINS - 1;
        h->bins[bin < 0 ? 0 : bin]++;
    }
}

/* Returns the number of values. */
static double count_values(const struct quant_histogram *h)
{
    double sum = 0;
    for (int i = 0; i < QUANT_BINS; i++)
        sum += h->bins[i];
    return sum;
}

/* Returns the middle of a bin. */
static double bin_middle(const struct quant_histogram *h, int bin)
{
    return h->low + (bin + 0.5) * bin_width(h);
}

/* Returns the square error of 256 levels from low to high. The rounding error
 * of a value in the range is assumed to be uniform in half a step to either
 * side. */
static double square_error(const struct quant_histogram *h, double low,
                           double high)
{
    const double step = (high - low) / (LEVELS - 1);
    double sum = 0;
    for (int i = 0; i < QUANT_BINS; i++) {
        const double x = bin_middle(h, i);
        const double out = x < low ? low - x : x > high ? x - high : 0;
        sum += h->bins[i] * (out > 0 ? out * out : step * step / 12);
    }
    return sum;
}

/* Returns the level that the values of a bin are rounded to. */
static int level_of(const struct quant_histogram *h, int bin, double low,
                    double step)
{
    const int level = (int)((bin_middle(h, bin) - low) / step + 0.5);
    return level < 0 ? 0 : level < LEVELS ? level : LEVELS - 1;
}

/* Returns the Kullback-Leibler divergence D(p || q) of the distribution p of
 * the clipped values from the quantised distribution q. In q, the bins of a
 * level that have values share its count equally (Migacz, "8-bit inference with
 * TensorRT", 2017). */
static double divergence(const struct quant_histogram *h, double low,
                         double high)
{
    /* of each level: its values, and its bins that have values */
    double in_level[LEVELS] = {0}, n_filled[LEVELS] = {0};
    static const double min_q = 1e-12;
    const double step = (high - low) / (LEVELS - 1);
    const int first = (int)((low - h->low) / bin_width(h)),
              last = (int)byi_min((int64_t)((high - h->low) / bin_width(h)),
                                  QUANT_BINS - 1);
    double below = 0, above = 0, sum = 0, result = 0;
    for (int i = 0; i < QUANT_BINS; i++) {
        sum += h->bins[i];
        below += i < first ? h->bins[i] : 0;
        above += i > last ? h->bins[i] : 0;
    }
    for (int i = first; i <= last; i++) {
        const int at = level_of(h, i, low, step);
        in_level[at] += h->bins[i];
        n_filled[at] += h->bins[i] > 0;
    }
    for (int i = first; i <= last; i++) {
        const int at = level_of(h, i, low, step);
        const double p =
            (h->bins[i] + (i == first ? below : 0) + (i == last ? above : 0)) /
            sum;
        const double q =
            n_filled[at] > 0 ? in_level[at] / n_filled[at] / sum : 0;
        if (p > 0)
            result += p * log(p / (q > min_q ? q : min_q));
    }
    return result;
}

/* Try 100 % down to 21 % of the range, in steps of 1 %, and choose the range of
 * least cost. */
static void choose_least_cost(const struct quant_histogram *h,
                              double (*cost)(const struct quant_histogram *h,
                                             double low, double high),
                              float *low, float *high)
{
    double lowest = INFINITY;
    for (int i = N_STEPS; i > N_STEPS / 5; i--) {
        const double share = (double)i / N_STEPS;
        const double current = cost(h, h->low * share, h->high * share);
        if (current < lowest) {
            lowest = current;
            *low = (float)(h->low * share);
            *high = (float)(h->high * share);
        }
    }
}

/* Cut 100 - percentile percent of the values from each end; keep 0 in the
 * range.
 */
static void cut_ends(const struct quant_histogram *h, double percentile,
                     float *low, float *high)
{
    const double cut = count_values(h) * (100 - percentile) / 100;
    double seen = 0;
    int i = 0;
    for (; i < QUANT_BINS && (seen += h->bins[i]) <= cut; i++)
        ;
    const double cut_low = h->low + i * bin_width(h);
    seen = 0;
    for (i = QUANT_BINS; i > 0 && (seen += h->bins[i - 1]) <= cut; i--)
        ;
    const double cut_high = h->low + i * bin_width(h);
    *low = (float)(cut_low < 0 ? cut_low : 0);
    *high = (float)(cut_high > 0 ? cut_high : 0);
}

void byi_quant_range(const struct quant_histogram *h,
                     enum byi_range_method method, double percentile,
                     float *low, float *high)
{
    *low = (float)h->low;
    *high = (float)h->high;
    if (method == BYI_RANGE_MINMAX || count_values(h) <= 0)
        return;
    if (method == BYI_RANGE_PERCENTILE)
        cut_ends(h, percentile, low, high);
    else
        choose_least_cost(
            h, method == BYI_RANGE_MSE ? square_error : divergence, low, high);
}
