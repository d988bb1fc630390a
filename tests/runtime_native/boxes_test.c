/* SPDX-License-Identifier: Apache-2.0 */
/* boxes_test.c: tests non-maximum suppression with every instruction set. It is
 * compared with plain loops, which sort all candidates and compare each with
 * all selected boxes.
 */
#include "kernels.h"

enum { MAX_BOXES_SMALL = 200, MAX_BOXES = 3000 };

/* The operands and attributes of a case: n boxes of one image. */
struct boxes {
    int64_t n, classes, max_selected;
    float iou, score;
    bool centers;
    const float *coordinates, *scores;
};

/* Find the lowest and highest corner of a box. */
static void corners(const struct boxes *b, int64_t box, float low[2],
                    float high[2])
{
    for (int axis = 0; axis < 2; axis++) {
        const float *at = b->coordinates + 4 * box + axis;
        const float p = b->centers ? at[0] - at[2] / 2 : at[0];
        const float q = b->centers ? at[0] + at[2] / 2 : at[2];
        low[axis] = fminf(p, q);
        high[axis] = fmaxf(p, q);
    }
}

/* Whether boxes i and j overlap by more than the threshold. */
static bool overlap(const struct boxes *b, int64_t i, int64_t j)
{
    float li[2], hi[2], lj[2], hj[2], common = 1;
    corners(b, i, li, hi);
    corners(b, j, lj, hj);
    for (int axis = 0; axis < 2; axis++)
        common *=
            fmaxf(0, fminf(hi[axis], hj[axis]) - fmaxf(li[axis], lj[axis]));
    const float a = (hi[0] - li[0]) * (hi[1] - li[1]);
    const float c = (hj[0] - lj[0]) * (hj[1] - lj[1]);
    return common > 0 && common / (a + c - common) > b->iou;
}

/* Write the selected boxes of a class as (0, class, box). Returns their number.
 */
static int64_t select_boxes(const struct boxes *b, int64_t class, int64_t *to)
{
    const float *scores = b->scores + class * b->n;
    bool selected[MAX_BOXES] = {false};
    int64_t count = 0;
    for (int64_t round = 0; round < b->n && count < b->max_selected; round++) {
        int64_t best = -1;
        for (int64_t i = 0; i < b->n; i++)
            if (!selected[i] && scores[i] > b->score &&
                (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        selected[best] = true;
        bool keep = true;
        for (int64_t k = 0; k < count; k++)
            keep = keep && !overlap(b, best, to[3 * k + 2]);
        if (!keep)
            continue;
        to[3 * count] = 0;
        to[3 * count + 1] = class;
        to[3 * count++ + 2] = best;
    }
    return count;
}

/* Coordinates and scores have few values, so that there are ties, touching
 * boxes, boxes without an area, and quotients that equal the thresholds. */
static void fill_boxes(struct byi_tensor *boxes, struct byi_tensor *scores)
{
    for (int64_t i = 0; i < byi_count(boxes); i++)
        ((float *)boxes->data)[i] = (float)random_in(0, 40) / 4;
    for (int64_t i = 0; i < byi_count(scores); i++)
        ((float *)scores->data)[i] =
            random_in(0, 30) ? (float)random_in(0, 60) / 64 : NAN;
}

/* Move groups of boxes apart, as exporters of detectors do with classes; some
 * to infinity or NaN. */
static void move_boxes(struct byi_tensor *boxes, bool centers)
{
    float *at = boxes->data;
    for (int64_t i = 0; i < boxes->dims[1]; i++, at += 4) {
        const float offset = random_in(0, 300) ? 11 * (float)random_in(0, 30)
                             : random_in(0, 1) ? INFINITY
                                               : NAN;
        for (int k = 0; k < (centers ? 2 : 4); k++)
            at[k] += offset;
    }
}

static void run_case(int isa, int64_t max_boxes)
{
    const int64_t n =
        random_in(max_boxes > MAX_BOXES_SMALL ? max_boxes / 2 : 0, max_boxes);
    const int64_t classes = random_in(1, 3);
    const double max_selected = (double)random_in(0, n),
                 ious[] = {0, 0.25, 0.5, 1};
    const double iou = ious[random_in(0, 3)];
    const bool centers = random_in(0, 1);
    struct byi_tensor in[] = {
        TENSOR(BYOC_F32, 1, n, 4), TENSOR(BYOC_F32, 1, classes, n),
        TENSOR(BYOC_I64, 1), TENSOR(BYOC_F32, 1), TENSOR(BYOC_F32, 1)};
    fill_boxes(&in[0], &in[1]);
    if (max_boxes > MAX_BOXES_SMALL)
        move_boxes(&in[0], centers);
    byi_tensor_set(&in[2], 0, max_selected);
    byi_tensor_set(&in[3], 0, iou);
    byi_tensor_set(&in[4], 0, 0.25);
    const struct byi_attr attrs[] = {BOOL("center_point_box", centers)};
    struct eval e = prepare(BYI_OP_NMS, attrs, 1, in, 5);
    assert_true(e.typed);
    if (run_fast(&e, 1) != BYOC_OK)
        fail_msg("%s", err.text);
    const struct boxes b = {n,          classes,   (int64_t)max_selected,
                            (float)iou, 0.25f,     centers,
                            in[0].data, in[1].data};
    int64_t *expected = calloc((size_t)(3 * n * classes) + 1, sizeof *expected);
    int64_t count = 0;
    for (int64_t c = 0; c < classes; c++)
        count += select_boxes(&b, c, expected + 3 * count);
    if (e.out[0].dims[0] != count)
        fail_msg("%s: %lld of %lld boxes selected, expected %lld",
                 byi_isa_name((enum byi_isa)isa), (long long)e.out[0].dims[0],
                 (long long)n, (long long)count);
    const int64_t *selection = e.out[0].data;
    for (int64_t i = 0; i < 3 * count; i++)
        if (selection[i] != expected[i])
            fail_msg("%s: element %lld of the selection is %lld, expected %lld",
                     byi_isa_name((enum byi_isa)isa), (long long)i,
                     (long long)selection[i], (long long)expected[i]);
    free(expected);
    for (uint32_t i = 0; i < e.n_in; i++)
        release(&e.in[i]);
    free(e.out[0].data);
}

static void test_boxes(void **state)
{
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int round = 0; use(isa) && round < 200; round++)
            run_case(isa, MAX_BOXES_SMALL);
}

/* Enough boxes for several strips. */
static void test_many_boxes(void **state)
{
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int round = 0; use(isa) && round < 4; round++)
            run_case(isa, MAX_BOXES);
}

/* Far boxes are not compared, so a negative threshold would not suppress
 * them. */
static void test_bad_thresholds(void **state)
{
    static const struct {
        double iou;
        const char *text;
    } cases[] = {{-0.5, "found an IoU threshold of -0.5, expected 0 to 1"},
                 {1.5, "found an IoU threshold of 1.5, expected 0 to 1"},
                 {NAN, "found an IoU threshold of nan, expected 0 to 1"}};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_tensor in[] = {TENSOR(BYOC_F32, 1, 2, 4),
                                  TENSOR(BYOC_F32, 1, 1, 2),
                                  TENSOR(BYOC_I64, 1), TENSOR(BYOC_F32, 1)};
        fill_boxes(&in[0], &in[1]);
        byi_tensor_set(&in[2], 0, 2);
        byi_tensor_set(&in[3], 0, cases[i].iou);
        struct eval e = prepare(BYI_OP_NMS, NULL, 0, in, BYI_COUNT(in));
        assert_true(e.typed);
        assert_int_equal(run_fast(&e, 1), BYOC_EINVAL);
        assert_non_null(strstr(err.text, cases[i].text));
        for (uint32_t k = 0; k < e.n_in; k++)
            release(&e.in[k]);
        free(e.out[0].data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_thresholds, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
