/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: nn.cache_append: past keys or values, followed by the new ones.
 *
 *   past (b, heads, t, h), new (b, heads, s, h), lengths (b), total
 *
 * A plane is the rows of one sequence and head. In the result a sequence's new
 * rows follow its first `length` rows, and zeros follow the new rows, or past's
 * other rows if the result has past's memory:
 *
 *   p p p p n n 0 0
 *   p p n n 0 0 0 0
 */
#include "kernel.h"

/* The planes of one call. */
struct cache_planes {
    const char *past, *new_rows;
    char *to;                      /* the result */
    uint64_t past_pitch, to_pitch; /* bytes from plane to plane */
    /* numbers of rows of a plane: of past, of the new rows, of the result */
    int64_t past_rows, n_new_rows, rows;
    size_t row; /* bytes of a row */
};

/* Compute a plane of the result; `length` rows of past are in use. */
static void append_plane(const struct cache_planes *p, int64_t plane,
                         int64_t length)
{
    const char *past = p->past + (uint64_t)plane * p->past_pitch;
    char *to = p->to + (uint64_t)plane * p->to_pitch;
    const int64_t old_rows = byi_min(byi_max(length, 0), p->rows);
    const int64_t new_rows = byi_min(p->n_new_rows, p->rows - old_rows);
    const bool in_place = past == to; /* past's other rows stay */
    const int64_t copied_rows = byi_min(old_rows, p->past_rows);
    int64_t end = old_rows + new_rows;
    if (!in_place)
        memcpy(to, past, (size_t)copied_rows * p->row);
    memset(to + (size_t)copied_rows * p->row, 0,
           (size_t)(old_rows - copied_rows) * p->row);
    memcpy(to + (size_t)old_rows * p->row,
           p->new_rows + (size_t)(plane * p->n_new_rows) * p->row,
           (size_t)new_rows * p->row);
    if (in_place)
        end = byi_max(end, p->past_rows);
    memset(to + (size_t)end * p->row, 0, (size_t)(p->rows - end) * p->row);
}

void byi_cache_append(const struct byi_call *call, uint64_t past_pitch,
                      uint64_t to_pitch)
{
    const struct byi_tensor *past = &call->in[0], *y = call->out;
    const struct cache_planes p = {
        .past = past->data,
        .new_rows = call->in[1].data,
        .to = y->data,
        .past_pitch = past_pitch,
        .to_pitch = to_pitch,
        .past_rows = past->dims[2],
        .n_new_rows = call->in[1].dims[2],
        .rows = y->dims[2],
        .row = (size_t)y->dims[3] * byi_dtype_bytes(y->dtype),
    };
    const int64_t n = y->dims[0] * y->dims[1];
    const bool in_place = p.past == p.to && past_pitch == to_pitch;
    const int64_t written_rows = in_place ? p.n_new_rows : p.rows;
    const int team =
        byi_team(call, n * written_rows * (int64_t)(p.row / sizeof(float)));
    if (p.row == 0)
        return;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t i = 0; i < n; i++)
        append_plane(&p, i, byi_tensor_int(&call->in[2], i / y->dims[1]));
}

static uint64_t pitch_of(const struct byi_tensor *t)
{
    return (uint64_t)(t->dims[2] * t->dims[3]) * byi_dtype_bytes(t->dtype);
}

static enum byoc_status append_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    (void)err;
    byi_cache_append(call, pitch_of(call->in), pitch_of(call->out));
    return BYOC_OK;
}

BYI_KERNEL_ROWS(cache, {BYI_OP_NN_CACHE_APPEND, {append_run, NULL}})
