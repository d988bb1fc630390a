/* SPDX-License-Identifier: Apache-2.0 */
/* nms.c: vision.non_max_suppression (ONNX NonMaxSuppression): a greedy search,
 * highest score first, for each class and batch. Candidates are in a binary
 * heap, so that not all of them are sorted if the limit per class is low. The
 * corners of the selected boxes are stored as rows. A candidate is compared
 * with many selected boxes at once: those in the strips of the first axis that
 * the candidate may touch. Exported detectors often offset the boxes of each
 * class and run one search over all classes, so that most boxes are far from a
 * candidate. */
#include "move.h"

enum {
    STRIPS = 128,     /* most strips */
    STRIP_BOXES = 256 /* candidates for each strip */
};

struct nms_candidate {
    float score;
    int64_t box;
};

struct nms {
    const float *boxes;      /* (boxes, 4) of one batch */
    int64_t n, most;         /* number of boxes; largest number to select */
    float iou, score;        /* thresholds */
    bool has_score, centers; /* `score` is given; boxes have centres */
    struct nms_candidate *heap;
    float *corners; /* of the selected boxes, for byi_simd's overlaps */
    int64_t pitch;  /* floats from one row of corners to the next */
    /* A box is in the strip that contains its lower end along axis 0, low 0. */
    float least;           /* the least low 0 of a candidate */
    double scale;          /* strips for each unit of axis 0 */
    double longest;        /* greatest length of a selected box along axis 0 */
    int32_t strips;        /* number of strips */
    int64_t first[STRIPS]; /* where a strip's corners begin */
    int64_t n_selected[STRIPS]; /* of a strip */
};

/* Whether a precedes b: it has a higher score, or the same score and an earlier
 * box. */
static bool before(const struct nms_candidate *a, const struct nms_candidate *b)
{
    return a->score != b->score ? a->score > b->score : a->box < b->box;
}

/* Like fminf and fmaxf, which ignore a NaN operand, but inlined. */
static inline float smaller(float a, float b)
{
    return a < b || b != b ? a : b;
}

static inline float larger(float a, float b)
{
    return a > b || b != b ? a : b;
}

/* Read low 0, low 1, high 0, high 1 and the area of a box. */
static inline void read_box(const struct nms *s, int64_t box, float to[5])
{
    for (int axis = 0; axis < 2; axis++) {
        const float *at = s->boxes + 4 * box + axis;
        const float a = s->centers ? at[0] - at[2] / 2 : at[0];
        const float b = s->centers ? at[0] + at[2] / 2 : at[2];
        to[axis] = smaller(a, b);
        to[2 + axis] = larger(a, b);
    }
    to[4] = (to[2] - to[0]) * (to[3] - to[1]);
}

/* Put the boxes of one class with enough score into the heap; returns their
 * number. */
static int64_t fill_heap(const struct nms *s, const float *scores)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) /* NaN fails the comparison */
        if (scores[i] == scores[i] && (!s->has_score || scores[i] > s->score))
            s->heap[n++] = (struct nms_candidate){scores[i], i};
    for (int64_t at = n / 2; at-- > 0;)
        BYI_SIFT_DOWN(s->heap, n, at, before);
    return n;
}

static int32_t strip_of(const struct nms *s, double low)
{
    const double at = (low - (double)s->least) * s->scale;
    const int32_t last = s->strips - 1;
    return at >= last ? last : at >= 0 ? (int32_t)at : 0; /* NaN: 0 */
}

/* Divide axis 0 into strips, with room for the corners of n candidates. */
static void plan_strips(struct nms *s, int64_t n)
{
    float most = -INFINITY, corners[5];
    s->least = INFINITY;
    s->longest = 0;
    s->strips = (int32_t)byi_min(n / STRIP_BOXES + 1, STRIPS);
    memset(s->first, 0, sizeof s->first);
    memset(s->n_selected, 0, sizeof s->n_selected);
    for (int i = 0; i < 5; i++)
        memset(s->corners + i * s->pitch, 0,
               (size_t)(n + BYI_SLACK) * sizeof(float));
    if (s->strips == 1)
        return;
    for (int64_t i = 0; i < n; i++) {
        read_box(s, s->heap[i].box, corners);
        s->least = smaller(s->least, corners[0]);
        most = larger(most, corners[0]);
    }
    s->scale = s->strips / ((double)most - (double)s->least);
    for (int64_t i = 0; i < n; i++) {
        read_box(s, s->heap[i].box, corners);
        const int32_t strip = strip_of(s, (double)corners[0]);
        if (strip + 1 < s->strips)
            s->first[strip + 1]++;
    }
    for (int32_t i = 1; i < s->strips; i++)
        s->first[i] += s->first[i - 1];
}

/* Whether a selected box overlaps `box` by more than the threshold. overlaps()
 * reads whole vectors, so also beyond the boxes of a strip: zeros, which
 * overlap nothing, or selected boxes of the next strips, which may suppress
 * `box` as well. */
static bool is_suppressed(const struct nms *s, const float *box)
{
    const double low = (double)box[0];
    const int32_t last = strip_of(s, (double)box[2]);
    int32_t strip = strip_of(s, low - s->longest);
    /* one more, since the difference is rounded */
    for (strip = strip > 0 ? strip - 1 : 0; strip <= last; strip++)
        if (byi_simd()->overlaps(s->corners + s->first[strip], s->pitch,
                                 s->n_selected[strip], box, s->iou))
            return true;
    return false;
}

static void add_selected(struct nms *s, const float *box)
{
    const int32_t strip = strip_of(s, (double)box[0]);
    const int64_t at = s->first[strip] + s->n_selected[strip]++;
    for (int i = 0; i < 5; i++)
        s->corners[i * s->pitch + at] = box[i];
    const double length = (double)box[2] - (double)box[0];
    s->longest = length > s->longest ? length : s->longest;
}

/* Select boxes of one class, at most s->most and at most `max_rows`, into the
 * third column of rows (k, 3). Returns their number. */
static int64_t select_class(struct nms *s, const float *scores,
                            int64_t *selected, int64_t max_rows)
{
    const int64_t most = byi_min(s->most, max_rows);
    int64_t n = fill_heap(s, scores), count = 0;
    plan_strips(s, n);
    while (n > 0 && count < most) {
        const int64_t box = s->heap[0].box;
        s->heap[0] = s->heap[--n];
        if (n > 0)
            BYI_SIFT_DOWN(s->heap, n, 0, before);
        float corners[5];
        read_box(s, box, corners);
        if (is_suppressed(s, corners))
            continue;
        add_selected(s, corners);
        selected[3 * count++ + 2] = box;
    }
    return count;
}

static uint64_t heap_bytes(const struct byi_call *call)
{
    return byi_align_bytes((uint64_t)call->in->dims[1] *
                           sizeof(struct nms_candidate));
}

static uint64_t nms_scratch(const struct byi_call *call)
{
    const uint64_t pitch = (uint64_t)call->in->dims[1] + BYI_SLACK;
    return heap_bytes(call) + 5 * pitch * sizeof(float);
}

/* Check the values that are known only in a run. */
static enum byoc_status check_values(const struct byi_call *call,
                                     const struct nms *s, int64_t needed_rows,
                                     struct byoc_error *err)
{
    if (!(s->iou >= 0 && s->iou <= 1))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found an IoU threshold of %g, expected 0 to 1",
                        call->op->name, (double)s->iou);
    if (needed_rows > call->out->dims[0])
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found memory for %lld rows of the result, "
                        "expected %lld, one for each box that may be selected; "
                        "please report this as a bug in byoc",
                        call->op->name, (long long)call->out->dims[0],
                        (long long)needed_rows);
    return BYOC_OK;
}

/* boxes (batches, boxes, 4), scores (batches, classes, boxes) -> rows of
 * (batch, class, box) */
static enum byoc_status nms_run(const struct byi_call *call,
                                struct byoc_error *err)
{
    const struct byi_tensor *boxes = call->in, *scores = &call->in[1];
    const int64_t batches = scores->dims[0], classes = scores->dims[1];
    int64_t *selected = call->out->data, count = 0;
    struct nms s = {
        .n = boxes->dims[1],
        .most = call->n_in > 2 ? byi_tensor_int(&call->in[2], 0) : 0,
        .iou = call->n_in > 3 ? (float)byi_tensor_float(&call->in[3], 0) : 0,
        .has_score = call->n_in > 4,
        .score = call->n_in > 4 ? (float)byi_tensor_float(&call->in[4], 0) : 0,
        .centers = byi_attr_int(call->attrs, "center_point_box") != 0,
        .heap = call->scratch,
        .corners = (float *)(void *)((char *)call->scratch + heap_bytes(call)),
        .pitch = boxes->dims[1] + BYI_SLACK,
    };
    const int64_t needed_rows =
        batches * classes * byi_max(0, byi_min(s.most, s.n));
    BYI_TRY(check_values(call, &s, needed_rows, err));
    for (int64_t b = 0; b < batches && s.most > 0; b++) {
        s.boxes = (const float *)boxes->data + b * s.n * 4;
        for (int64_t c = 0; c < classes; c++) {
            const float *from =
                (const float *)scores->data + (b * classes + c) * s.n;
            int64_t *to = selected + 3 * count;
            const int64_t k =
                select_class(&s, from, to, call->out->dims[0] - count);
            for (int64_t i = 0; i < k; i++) {
                to[3 * i] = b;
                to[3 * i + 1] = c;
            }
            count += k;
        }
    }
    call->out->dims[0] = count;
    return BYOC_OK;
}

BYI_KERNEL_ROWS(nms, {BYI_OP_NMS, {nms_run, nms_scratch}})
