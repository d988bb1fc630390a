/* SPDX-License-Identifier: Apache-2.0 */
/* vision_test.c: tests resize, samplers and non-maximum suppression against
 * their definitions, and the values they must refuse.
 */
#include "trial.h"

#include <math.h>

#include "runtime_native/kernel.h"

/* The bilinear sample at row r and column c of a plane by its definition;
 * positions outside are clamped. */
static double bilinear(const struct byi_tensor *x, int64_t plane, double r,
                       double c)
{
    const int64_t h = x->dims[2], w = x->dims[3];
    double sum = 0;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++) {
            const double row = floor(r) + (double)i, col = floor(c) + (double)j;
            const double share = (1 - fabs(r - row)) * (1 - fabs(c - col));
            const double y = fmin(fmax(row, 0), (double)h - 1);
            const double z = fmin(fmax(col, 0), (double)w - 1);
            sum += share * byi_tensor_float(x, (plane * h + (int64_t)y) * w +
                                                   (int64_t)z);
        }
    return sum;
}

static void test_resize(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {1, 2, pick(1, 9), pick(1, 9)};
        const int64_t sizes[] = {1, 2, pick(1, 20), pick(1, 20)};
        const double sh = (double)dims[2] / (double)sizes[2];
        const double sw = (double)dims[3] / (double)sizes[3];
        struct trial t = {.n_in = 2};
        t.in[0] = make(round % 4 ? BYOC_F32 : BYOC_F64, 4, dims);
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i, (double)pick(-999, 999) / 100);
        t.in[1] = ints(4, sizes);
        must_run(&t, BYI_OP_RESIZE, "{\"mode\": \"linear\"}");
        struct trial nearest = t;
        must_run(&nearest, BYI_OP_RESIZE,
                 "{\"coordinate_transformation_mode\": \"asymmetric\", "
                 "\"nearest_mode\": \"floor\"}");
        for (int64_t i = 0; i < count(&t.out[0]); i++) {
            int64_t at[4];
            unflat(&t.out[0], i, at);
            const double expected =
                bilinear(&t.in[0], at[1], ((double)at[2] + 0.5) * sh - 0.5,
                         ((double)at[3] + 0.5) * sw - 0.5);
            assert_true(fabs(byi_tensor_float(&t.out[0], i) - expected) < 1e-4);
            at[2] = at[2] * dims[2] / sizes[2];
            at[3] = at[3] * dims[3] / sizes[3];
            assert_true(byi_tensor_float(&nearest.out[0], i) ==
                        byi_tensor_float(&t.in[0], flat(&t.in[0], at)));
        }
    }
}

/* The weight of an input at distance `distance` from a position; `a` is the
 * coefficient of cubic interpolation. */
static double weight_of(bool cubic, double a, double distance)
{
    const double d = fabs(distance);
    if (!cubic)
        return fmax(0, 1 - d);
    return d < 1   ? (a + 2) * d * d * d - (a + 3) * d * d + 1
           : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
                   : 0;
}

/* Row j of the matrix that resizes an axis of `in` to one of `out`. */
static void matrix_row(int64_t in, int64_t out, int64_t j, bool corners,
                       bool cubic, bool smooth, bool exclude, double *row)
{
    const double scale = (double)out / (double)in;
    const double narrow = smooth && scale < 1 ? scale : 1;
    const double at = !corners   ? ((double)j + 0.5) / scale - 0.5
                      : out == 1 ? 0
                                 : (double)(j * (in - 1)) / (double)(out - 1);
    double sum = 0;
    memset(row, 0, (size_t)in * sizeof *row);
    for (int64_t i = -4 * in - 4; i < 5 * in + 4; i++) {
        const int64_t end = i < 0 ? 0 : i >= in ? in - 1 : i;
        const double w =
            i != end && exclude
                ? 0
                : weight_of(cubic, -0.75, ((double)i - at) * narrow);
        row[end] += w;
        sum += w;
    }
    for (int64_t i = 0; i < in; i++)
        row[i] /= sum;
}

/* Resizing two axes equals a product with a matrix for each, for every filter
 * and instruction set. */
static void test_resize_filters(void **state)
{
    enum { MAX_SIZE = 90 };
    static double row_weights[MAX_SIZE][MAX_SIZE],
        column_weights[MAX_SIZE][MAX_SIZE], sums[MAX_SIZE][MAX_SIZE];
    (void)state;
    for (int round = 0; round < 6 * ROUNDS; round++) {
        const bool corners = round & 1, cubic = round & 2, smooth = round & 4;
        const bool exclude = round % 3 == 0, last = round % 5 == 0;
        const int64_t c = pick(1, 3);
        const int64_t h = pick(1, MAX_SIZE), w = pick(1, MAX_SIZE);
        const int64_t to_h = pick(0, 3) ? pick(1, MAX_SIZE) : h;
        const int64_t to_w = pick(0, 3) ? pick(1, MAX_SIZE) : w;
        const int64_t dims[] = {last ? 1 : c, h, w, last ? c : 1};
        const int64_t sizes[] = {dims[0], to_h, to_w, dims[3]};
        char attrs[200];
        struct trial t = {.n_in = 2};
        if (!byi_simd_use((enum byi_isa)(round % BYI_N_ISAS)))
            continue;
        t.in[0] = make(round % 7 ? BYOC_F32 : BYOC_F64, 4, dims);
        for (int64_t i = 0; i < count(&t.in[0]); i++)
            byi_tensor_set(&t.in[0], i, (double)pick(-999, 999) / 100);
        t.in[1] = ints(4, sizes);
        snprintf(attrs, sizeof attrs,
                 "{\"mode\": \"%s\", \"coordinate_transformation_mode\": "
                 "\"%s\", \"antialias\": %s, \"exclude_outside\": %s}",
                 cubic ? "cubic" : "linear",
                 corners ? "align_corners" : "half_pixel",
                 smooth ? "true" : "false", exclude ? "true" : "false");
        must_run(&t, BYI_OP_RESIZE, attrs);
        for (int64_t j = 0; j < to_h; j++)
            matrix_row(h, to_h, j, corners, cubic, smooth, exclude,
                       row_weights[j]);
        for (int64_t j = 0; j < to_w; j++)
            matrix_row(w, to_w, j, corners, cubic, smooth, exclude,
                       column_weights[j]);
        for (int64_t plane = 0; plane < c; plane++) {
            for (int64_t r = 0; r < h; r++)
                for (int64_t j = 0; j < to_w; j++) {
                    sums[r][j] = 0;
                    for (int64_t i = 0; i < w; i++) {
                        const int64_t at[] = {last ? 0 : plane, r, i,
                                              last ? plane : 0};
                        sums[r][j] +=
                            column_weights[j][i] *
                            byi_tensor_float(&t.in[0], flat(&t.in[0], at));
                    }
                }
            for (int64_t i = 0; i < to_h * to_w; i++) {
                const int64_t at[] = {last ? 0 : plane, i / to_w, i % to_w,
                                      last ? plane : 0};
                double expected = 0;
                for (int64_t r = 0; r < h; r++)
                    expected += row_weights[i / to_w][r] * sums[r][i % to_w];
                const double found =
                    byi_tensor_float(&t.out[0], flat(&t.out[0], at));
                if (!(fabs(found - expected) < 1e-4))
                    fail_msg("%s: %lld x %lld to %lld x %lld: found %g, "
                             "expected %g",
                             attrs, (long long)h, (long long)w, (long long)to_h,
                             (long long)to_w, found, expected);
            }
        }
    }
    byi_simd_use(byi_isa_widest());
}

/* Inputs of weight 0 are not read, so that infinities and NaN do not spread. */
static void test_resize_not_finite(void **state)
{
    const int64_t dims[] = {1, 40}, sizes[] = {1, 80};
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 2, dims)}};
        if (!byi_simd_use((enum byi_isa)isa))
            continue;
        for (int64_t i = 0; i < 40; i++)
            byi_tensor_set(&t.in[0], i, i % 8 == 4 ? NAN : (double)i);
        t.in[1] = ints(2, sizes);
        must_run(&t, BYI_OP_RESIZE,
                 "{\"mode\": \"linear\", "
                 "\"coordinate_transformation_mode\": \"asymmetric\"}");
        for (int64_t j = 0; j < 80; j++)
            assert_int_equal(isnan(byi_tensor_float(&t.out[0], j)),
                             j % 16 >= 7 && j % 16 <= 9);
    }
    byi_simd_use(byi_isa_widest());
}

/* a / b, rounded down, b > 0. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/* The element of an axis of `in` that is nearest to position p / (2 half), in
 * exact arithmetic. */
static int64_t nearest_of(int64_t in, int64_t p, int64_t half, int rounding)
{
    const int64_t q = 2 * half;
    const int64_t choices[] = {-floor_div(half - p, q), floor_div(p + half, q),
                               floor_div(p, q), -floor_div(-p, q)};

    return byi_clamp(choices[rounding], 0, in - 1);
}

/* Positions are (j + add / 2) in / out - less / 2. */
static const struct {
    const char *name;
    int64_t add, less;
} placements[] = {
    {"half_pixel", 1, 1}, {"asymmetric", 0, 0}, {"tf_half_pixel_for_nn", 1, 0}};
static const char *const roundings[] = {"round_prefer_floor",
                                        "round_prefer_ceil", "floor", "ceil"};

/* Nearest positions between two sizes are exact: 4.5 * 7 / 9 - 0.5 is 3, also
 * where rounding 9 / 7 first would make it less. */
static void check_nearest(int64_t in, int64_t out, uint32_t place, int rounding)
{
    struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 1, &in), ints(1, &out)}};
    char attrs[160];

    snprintf(attrs, sizeof attrs,
             "{\"mode\": \"nearest\", \"coordinate_transformation_mode\": "
             "\"%s\", \"nearest_mode\": \"%s\"}",
             placements[place].name, roundings[rounding]);
    for (int64_t i = 0; i < in; i++)
        byi_tensor_set(&t.in[0], i, (double)i);
    must_run(&t, BYI_OP_RESIZE, attrs);
    for (int64_t j = 0; j < out; j++) {
        const int64_t add = placements[place].add,
                      less = placements[place].less;
        const int64_t expected =
            nearest_of(in, (2 * j + add) * in - less * out, out, rounding);
        if (byi_tensor_int(&t.out[0], j) != expected)
            fail_msg("%s: element %lld of %lld from %lld is %lld, expected "
                     "%lld",
                     attrs, (long long)j, (long long)out, (long long)in,
                     (long long)byi_tensor_int(&t.out[0], j),
                     (long long)expected);
    }
}

static void test_resize_exact(void **state)
{
    (void)state;
    for (int64_t in = 1; in <= 20; in++)
        for (int64_t out = 1; out <= 20; out++)
            for (uint32_t i = 0; i < BYI_COUNT(placements); i++)
                for (int k = 0; k < 4; k++)
                    check_nearest(in, out, i, k);
}

/* Positions are exact, too, if the scale is 1 / `factor` and the output is
 * centred on the input. */
static void check_centred(int64_t in, int64_t factor, int rounding)
{
    const int64_t one = 1, out = in / factor;
    struct trial t = {.n_in = 2,
                      .in = {make(BYOC_F32, 1, &in), make(BYOC_F32, 1, &one)}};
    char attrs[160];

    snprintf(attrs, sizeof attrs,
             "{\"mode\": \"nearest\", \"coordinate_transformation_mode\": "
             "\"half_pixel_symmetric\", \"nearest_mode\": \"%s\"}",
             roundings[rounding]);
    for (int64_t i = 0; i < in; i++)
        byi_tensor_set(&t.in[0], i, (double)i);
    byi_tensor_set(&t.in[1], 0, 1 / (double)factor);
    must_run(&t, BYI_OP_RESIZE, attrs);
    for (int64_t j = 0; j < out; j++)
        assert_int_equal(
            byi_tensor_int(&t.out[0], j),
            nearest_of(in, in - 1 + factor * (2 * j + 1 - out), 1, rounding));
}

static void test_resize_centred(void **state)
{
    (void)state;
    for (int64_t in = 8; in <= 40; in++)
        for (int64_t factor = 1; factor <= 8; factor *= 2)
            for (int k = 0; k < 4; k++)
                check_centred(in, factor, k);
}

/* If a resized axis has one element, it is the first one of the input, as in
 * PyTorch, even if the size times the scale is between 1 and 2. */
static void test_resize_to_one(void **state)
{
    const int64_t dims[] = {1, 3}, two[] = {2};
    struct trial t = {.n_in = 2,
                      .in = {make(BYOC_F32, 2, dims), make(BYOC_F32, 1, two)}};
    (void)state;
    for (int64_t i = 0; i < 3; i++)
        byi_tensor_set(&t.in[0], i, (double)(i + 5));
    byi_tensor_set(&t.in[1], 0, 1);
    byi_tensor_set(&t.in[1], 1, 0.5);
    must_run(&t, BYI_OP_RESIZE,
             "{\"mode\": \"linear\", "
             "\"coordinate_transformation_mode\": \"pytorch_half_pixel\"}");
    assert_int_equal(byi_elements(t.out[0].rank, t.out[0].dims), 1);
    assert_true(byi_tensor_float(&t.out[0], 0) == 5);
}

/* A grid of the pixels' centres gives the image itself; so does a region of
 * interest that is the whole image. */
static void test_samples(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 2, 3, 4}, grid_dims[] = {1, 3, 4, 2};
    const int64_t roi_dims[] = {1, 4}, zero[] = {0};
    const float roi[] = {0, 0, 4, 3};
    struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 4, dims)}};
    for (int64_t i = 0; i < 24; i++)
        byi_tensor_set(&t.in[0], i, (double)pick(-9, 9));
    t.in[1] = make(BYOC_F32, 4, grid_dims);
    for (int64_t i = 0; i < 12; i++) {
        byi_tensor_set(&t.in[1], 2 * i, (double)(i % 4) * 2 / 3 - 1);
        byi_tensor_set(&t.in[1], 2 * i + 1, (double)(i / 4) - 1);
    }
    must_run(&t, BYI_OP_GRID_SAMPLE, "{\"align_corners\": true}");
    for (int64_t i = 0; i < 24; i++)
        assert_true(fabs(byi_tensor_float(&t.out[0], i) -
                         byi_tensor_float(&t.in[0], i)) < 1e-5);
    byi_tensor_set(&t.in[1], 0, (double)NAN);
    byi_tensor_set(&t.in[1], 3, 1e30);
    must_run(&t, BYI_OP_GRID_SAMPLE, "{\"padding_mode\": \"reflection\"}");
    t.n_in = 3;
    t.in[1] = make(BYOC_F32, 2, roi_dims);
    memcpy(t.in[1].data, roi, sizeof roi);
    t.in[2] = ints(1, zero);
    must_run(&t, BYI_OP_ROI_ALIGN,
             "{\"output_height\": 3, \"output_width\": 4}");
    for (int64_t i = 0; i < 24; i++)
        assert_true(fabs(byi_tensor_float(&t.out[0], i) -
                         byi_tensor_float(&t.in[0], i)) < 1e-5);
    byi_tensor_set(&t.in[2], 0, 1);
    assert_int_equal(run(&t, BYI_OP_ROI_ALIGN, "{}"), BYOC_EINVAL);
    byi_tensor_set(&t.in[2], 0, 0);
    byi_tensor_set(&t.in[1], 2, 1e30);
    assert_int_equal(run(&t, BYI_OP_ROI_ALIGN, "{}"), BYOC_EINVAL);
}

/* Means of regions in float32, which run plane by plane, equal those in
 * float64, which run bin by bin: also outside of the image, and of bins with
 * more points than are listed together. */
static void test_roi_means(void **state)
{
    static const char *const attrs[] = {
        "{\"output_height\": 3, \"output_width\": 4}",
        "{\"output_height\": 7, \"output_width\": 7, \"sampling_ratio\": 2}",
        "{\"output_height\": 2, \"output_width\": 1, \"sampling_ratio\": 23}",
    };
    const int64_t dims[] = {2, 5, 13, 11}, roi_dims[] = {6, 4};
    const int64_t batch[] = {0, 1, 1, 0, 0, 1};
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct trial t[2];
        for (int wide = 0; wide < 2; wide++)
            t[wide] = (struct trial){
                .n_in = 3,
                .in = {make(wide ? BYOC_F64 : BYOC_F32, 4, dims),
                       make(wide ? BYOC_F64 : BYOC_F32, 2, roi_dims),
                       ints(6, batch)}};
        for (int64_t i = 0; i < 2 * 5 * 13 * 11; i++) {
            const double v = (double)pick(-9, 9);
            byi_tensor_set(&t[0].in[0], i, v);
            byi_tensor_set(&t[1].in[0], i, v);
        }
        for (int64_t i = 0; i < 24; i++) {
            const double v = (double)pick(-8, 40) / 2 + (i % 4 > 1 ? 9 : 0);
            byi_tensor_set(&t[0].in[1], i, v);
            byi_tensor_set(&t[1].in[1], i, v);
        }
        for (int wide = 0; wide < 2; wide++)
            must_run(&t[wide], BYI_OP_ROI_ALIGN, attrs[round % 3]);
        for (int64_t i = 0; i < byi_count(&t[0].out[0]); i++)
            assert_true(fabs(byi_tensor_float(&t[0].out[0], i) -
                             byi_tensor_float(&t[1].out[0], i)) < 1e-5);
    }
}

/* The bins of a region of 3 by 4 pixels, computed by hand; one outside the
 * picture has no pixels. */
static void test_roi_pool(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 1, 4, 5}, roi_dims[] = {2, 5};
    const float rois[] = {1, 2, 0, 8, 4, 0, 20, 20, 30, 30};
    const double expected[] = {27, 29, 32, 34, 0, 0, 0, 0};
    struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 4, dims)}};
    for (int64_t i = 0; i < 40; i++)
        byi_tensor_set(&t.in[0], i, (double)i);
    t.in[1] = make(BYOC_F32, 2, roi_dims);
    memcpy(t.in[1].data, rois, sizeof rois);
    must_run(&t, BYI_OP_ROI_POOL,
             "{\"pooled_size\": [2, 2], \"spatial_scale\": 0.5}");
    for (int64_t i = 0; i < 8; i++)
        assert_true(byi_tensor_float(&t.out[0], i) == expected[i]);
    byi_tensor_set(&t.in[1], 0, 2);
    assert_int_equal(run(&t, BYI_OP_ROI_POOL, "{\"pooled_size\": [2, 2]}"),
                     BYOC_EINVAL);
}

/* Two overlapping boxes and a separate one; the second best of the pair is
 * suppressed. */
static void test_nms(void **state)
{
    (void)state;
    const float boxes[] = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 5, 1, 6};
    const float scores[] = {0.8f, 0.9f, 0.3f}, thresholds[] = {0.5f, 0.2f};
    const int64_t boxes_dims[] = {1, 3, 4}, scores_dims[] = {1, 1, 3};
    const int64_t max_selected = 3, expected[] = {0, 0, 1, 0, 0, 2};
    struct trial t = {.n_in = 5, .in = {make(BYOC_F32, 3, boxes_dims)}};
    memcpy(t.in[0].data, boxes, sizeof boxes);
    t.in[1] = make(BYOC_F32, 3, scores_dims);
    memcpy(t.in[1].data, scores, sizeof scores);
    t.in[2] = ints(0, &max_selected);
    for (uint32_t i = 0; i < 2; i++) {
        t.in[3 + i] = make(BYOC_F32, 0, NULL);
        memcpy(t.in[3 + i].data, &thresholds[i], sizeof thresholds[i]);
    }
    must_run(&t, BYI_OP_NMS, "{}");
    assert_int_equal(t.out[0].dims[0], 2);
    assert_memory_equal(t.out[0].data, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_resize_filters),
        cmocka_unit_test(test_resize_not_finite),
        cmocka_unit_test(test_resize_to_one),
        cmocka_unit_test(test_resize_exact),
        cmocka_unit_test(test_resize_centred),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_roi_means),
        cmocka_unit_test(test_roi_pool),
        cmocka_unit_test(test_nms),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
