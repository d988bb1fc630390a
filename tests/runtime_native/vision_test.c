/* vision_test.c: resize, samplers and non-maximum suppression against their
 * definitions, and the values they must refuse.
 */
#include "trial.h"

#include <math.h>

/* Bilinear by its definition, with half-pixel centres. */
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
        struct trial near = t;
        must_run(&near, BYI_OP_RESIZE,
                 "{\"coordinate_transformation_mode\": \"asymmetric\", "
                 "\"nearest_mode\": \"floor\"}");
        for (int64_t i = 0; i < count(&t.out[0]); i++) {
            int64_t at[4];
            unflat(&t.out[0], i, at);
            const double want =
                bilinear(&t.in[0], at[1], ((double)at[2] + 0.5) * sh - 0.5,
                         ((double)at[3] + 0.5) * sw - 0.5);
            assert_true(fabs(byi_tensor_float(&t.out[0], i) - want) < 1e-4);
            at[2] = at[2] * dims[2] / sizes[2];
            at[3] = at[3] * dims[3] / sizes[3];
            assert_true(byi_tensor_float(&near.out[0], i) ==
                        byi_tensor_float(&t.in[0], flat(&t.in[0], at)));
        }
    }
}

/* A grid on the pixels' centres gives the image back; so does a roi of it. */
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

/* The bins of a region of 3 by 4 pixels, found by hand; one beyond the picture
 * has no pixels. */
static void test_roi_pool(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 1, 4, 5}, roi_dims[] = {2, 5};
    const float rois[] = {1, 2, 0, 8, 4, 0, 20, 20, 30, 30};
    const double wanted[] = {27, 29, 32, 34, 0, 0, 0, 0};
    struct trial t = {.n_in = 2, .in = {make(BYOC_F32, 4, dims)}};
    for (int64_t i = 0; i < 40; i++)
        byi_tensor_set(&t.in[0], i, (double)i);
    t.in[1] = make(BYOC_F32, 2, roi_dims);
    memcpy(t.in[1].data, rois, sizeof rois);
    must_run(&t, BYI_OP_ROI_POOL,
             "{\"pooled_size\": [2, 2], \"spatial_scale\": 0.5}");
    for (int64_t i = 0; i < 8; i++)
        assert_true(byi_tensor_float(&t.out[0], i) == wanted[i]);
    byi_tensor_set(&t.in[1], 0, 2);
    assert_int_equal(run(&t, BYI_OP_ROI_POOL, "{\"pooled_size\": [2, 2]}"),
                     BYOC_EINVAL);
}

/* Two overlapping boxes and one apart; the second best of the pair goes. */
static void test_nms(void **state)
{
    (void)state;
    const float boxes[] = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 5, 1, 6};
    const float scores[] = {0.8f, 0.9f, 0.3f}, thresholds[] = {0.5f, 0.2f};
    const int64_t boxes_dims[] = {1, 3, 4}, scores_dims[] = {1, 1, 3};
    const int64_t most = 3, want[] = {0, 0, 1, 0, 0, 2};
    struct trial t = {.n_in = 5, .in = {make(BYOC_F32, 3, boxes_dims)}};
    memcpy(t.in[0].data, boxes, sizeof boxes);
    t.in[1] = make(BYOC_F32, 3, scores_dims);
    memcpy(t.in[1].data, scores, sizeof scores);
    t.in[2] = ints(0, &most);
    for (uint32_t i = 0; i < 2; i++) {
        t.in[3 + i] = make(BYOC_F32, 0, NULL);
        memcpy(t.in[3 + i].data, &thresholds[i], sizeof thresholds[i]);
    }
    must_run(&t, BYI_OP_NMS, "{}");
    assert_int_equal(t.out[0].dims[0], 2);
    assert_memory_equal(t.out[0].data, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_roi_pool),
        cmocka_unit_test(test_nms),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
