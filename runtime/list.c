/* SPDX-License-Identifier: Apache-2.0 */
/* list.c: runs the operators on sequences and optionals. Sequences and
 * optionals are reference-counted and immutable, like closures (closure.c);
 * several may share a tensor in one block. A list with one reference whose last
 * reader is this step grows in place, so that a loop that appends does not
 * copy. */
#include "state.h"

#include <string.h>

/* Fail with `status` and a message that begins with the step's operator and
 * provenance. */
static enum byoc_status fail_list(const struct byi_step *step,
                                  enum byoc_status status,
                                  struct byoc_error *err, const char *fmt, ...)
    BYI_PRINTF(4, 5);

static enum byoc_status fail_list(const struct byi_step *step,
                                  enum byoc_status status,
                                  struct byoc_error *err, const char *fmt, ...)
{
    char text[400];
    BYI_FORMAT(text, fmt);
    return byi_fail(err, status, "%s (%s): %s", step->name, step->sources,
                    text);
}

/* --- values --------------------------------------------------------------- */

static void share_item(struct byoc_state *s, struct byi_item *to,
                       const struct byi_item *from)
{
    *to = *from;
    if (to->block)
        byi_pool_share(&s->pool, to->block - 1);
    if (to->object)
        byi_object_share(to->object);
}

/* Enlarge an unshared list so that it has room for `capacity` values. */
static enum byoc_status grow_list(struct byoc_state *s,
                                  struct byi_object **list, uint32_t capacity,
                                  struct byoc_error *err)
{
    const uint64_t extra_bytes =
        byi_object_bytes(capacity) - byi_object_bytes((*list)->capacity);
    BYI_TRY(byi_pool_charge(&s->pool, extra_bytes, err));
    struct byi_object *new_list =
        byi_realloc(*list, 1, byi_object_bytes(capacity));
    if (!new_list) {
        byi_pool_refund(&s->pool, extra_bytes);
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for a sequence of %u values", capacity);
    }
    memset(&new_list->at[new_list->capacity], 0,
           (capacity - new_list->capacity) * sizeof *new_list->at);
    new_list->capacity = capacity;
    *list = new_list;
    return BYOC_OK;
}

/* Set *list to operand 0 as an unshared list with room for `n_extra` values at
 * its end. This is operand 0 itself if no other value refers to it and no later
 * step reads it, otherwise a copy. */
static enum byoc_status make_unshared(
    struct byoc_state *s, struct byi_frame *fr, const struct byi_step *step,
    uint32_t n_extra, struct byi_object **list, struct byoc_error *err)
{
    struct byi_object **from = &fr->obj[step->in[0]];
    const uint32_t n = (*from)->n;
    if ((*from)->n_refs == 1 &&
        byi_has_id(step->dead, step->n_dead, step->in[0])) {
        if (n + n_extra > (*from)->capacity)
            BYI_TRY(grow_list(s, from, n + n_extra + n / 2, err));
        *list = *from;
        *from = NULL;
        return BYOC_OK;
    }
    BYI_TRY(byi_object_new(s, n + n_extra, list, err));
    (*list)->n = n;
    for (uint32_t i = 0; i < n; i++)
        share_item(s, &(*list)->at[i], &(*from)->at[i]);
    return BYOC_OK;
}

/* Read a position in a list of n elements from operand 1; it is `if_omitted` if
 * the step has no such operand. Fails if the list is empty. */
static enum byoc_status read_position(const struct byi_frame *fr,
                                      const struct byi_step *step, uint32_t n,
                                      uint32_t if_omitted, uint32_t *position,
                                      struct byoc_error *err)
{
    *position = if_omitted;
    if (n == 0)
        return fail_list(step, BYOC_EINVAL, err,
                         "found an empty sequence, expected at least 1 "
                         "element");
    if (step->n_in < 2)
        return BYOC_OK;
    const int64_t found = byi_tensor_int(&fr->t[step->in[1]], 0);
    const int64_t at = found < 0 ? found + n : found;
    if (at < 0 || at >= n)
        return fail_list(step, BYOC_EINVAL, err,
                         "found position %lld, expected %lld to %lld",
                         (long long)found, -(long long)n, (long long)n - 1);
    *position = (uint32_t)at;
    return BYOC_OK;
}

/* --- elements of lists -------------------------------------------------- */

/* Set value `v` to the tensor of an item: shares the item's block if possible,
 * otherwise copies the elements. */
static enum byoc_status take_tensor(struct byoc_state *s, struct byi_frame *fr,
                                    const struct byi_step *step, uint32_t v,
                                    const struct byi_item *item,
                                    struct byoc_error *err)
{
    const struct byi_value *value =
        &s->specialisation->plan->funcs[fr->func].values[v];
    const struct byi_type *type = value->type;
    if (!byi_tensor_fits(&item->t, type)) {
        char found[128], expected[128];
        return fail_list(
            step, BYOC_ETYPE, err, "found an element of %s %s, expected %s %s",
            byoc_dtype_name(item->t.dtype),
            byi_dims_text(found, sizeof found, item->t.rank, item->t.dims),
            byoc_dtype_name(type->dtype),
            byi_dims_text(expected, sizeof expected, type->rank, type->dims));
    }
    memcpy(fr->t[v].dims, item->t.dims, sizeof item->t.dims);
    if (item->block && value->kind == BYI_V_TEMP && !value->fixed) {
        byi_pool_share(&s->pool, item->block - 1);
        fr->block[v] = item->block;
        fr->t[v].data = item->t.data;
        return BYOC_OK;
    }
    BYI_TRY(byi_frame_provide(s, fr, v, err));
    memcpy(fr->t[v].data, item->t.data, byi_tensor_bytes(&item->t));
    return BYOC_OK;
}

static enum byoc_status take_item(struct byoc_state *s, struct byi_frame *fr,
                                  const struct byi_step *step,
                                  const struct byi_item *item,
                                  struct byoc_error *err)
{
    if (!item->object)
        return take_tensor(s, fr, step, step->out[0], item, err);
    fr->obj[step->out[0]] = byi_object_share(item->object);
    return BYOC_OK;
}

/* --- operators ------------------------------------------------------------ */

/* sequence.make, optional.make, optional.none */
static enum byoc_status run_make(struct byoc_state *s, struct byi_frame *fr,
                                 const struct byi_step *step,
                                 struct byoc_error *err)
{
    struct byi_object *list;
    BYI_TRY(byi_object_new(s, step->n_in, &list, err));
    fr->obj[step->out[0]] = list;
    for (uint32_t i = 0; i < step->n_in; i++)
        BYI_TRY(byi_object_capture(s, fr, step->in[i], &list->at[i], err));
    return BYOC_OK;
}

static enum byoc_status run_insert(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    const uint32_t n = fr->obj[step->in[0]]->n;
    struct byi_object *list;
    struct byi_item item = {0};
    uint32_t at;
    if (n == BYI_PLAN_MAX_ITEMS)
        return fail_list(step, BYOC_ELIMIT, err,
                         "found a list of %d elements, expected fewer before "
                         "an insertion",
                         BYI_PLAN_MAX_ITEMS);
    /* there is one more position than elements: the end */
    const bool end = step->n_in < 3;
    int64_t position = end ? n : byi_tensor_int(&fr->t[step->in[2]], 0);
    position += position < 0 ? n : 0;
    if (position < 0 || position > n)
        return fail_list(step, BYOC_EINVAL, err,
                         "found position %lld, expected %lld to %lld",
                         (long long)byi_tensor_int(&fr->t[step->in[2]], 0),
                         -(long long)n, (long long)n);
    at = (uint32_t)position;
    BYI_TRY(byi_object_capture(s, fr, step->in[1], &item, err));
    enum byoc_status status = make_unshared(s, fr, step, 1, &list, err);
    if (status != BYOC_OK) {
        byi_item_release(s, &item);
        return status;
    }
    memmove(&list->at[at + 1], &list->at[at], (n - at) * sizeof *list->at);
    list->at[at] = item;
    list->n = n + 1;
    fr->obj[step->out[0]] = list;
    return BYOC_OK;
}

static enum byoc_status run_erase(struct byoc_state *s, struct byi_frame *fr,
                                  const struct byi_step *step,
                                  struct byoc_error *err)
{
    const uint32_t n = fr->obj[step->in[0]]->n;
    struct byi_object *list;
    uint32_t at;
    BYI_TRY(read_position(fr, step, n, n - 1, &at, err));
    BYI_TRY(make_unshared(s, fr, step, 0, &list, err));
    byi_item_release(s, &list->at[at]);
    memmove(&list->at[at], &list->at[at + 1], (n - at - 1) * sizeof *list->at);
    list->at[--list->n] = (struct byi_item){0};
    fr->obj[step->out[0]] = list;
    return BYOC_OK;
}

static enum byoc_status run_at(struct byoc_state *s, struct byi_frame *fr,
                               const struct byi_step *step,
                               struct byoc_error *err)
{
    const struct byi_object *list = fr->obj[step->in[0]];
    uint32_t at;
    BYI_TRY(read_position(fr, step, list->n, 0, &at, err));
    return take_item(s, fr, step, &list->at[at], err);
}

/* Write a scalar result, which has fixed memory. */
static enum byoc_status put_scalar(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step, int64_t value,
                                   struct byoc_error *err)
{
    BYI_TRY(byi_frame_provide(s, fr, step->out[0], err));
    byi_tensor_set(&fr->t[step->out[0]], 0, (double)value);
    return BYOC_OK;
}

static enum byoc_status run_length(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    return put_scalar(s, fr, step, fr->obj[step->in[0]]->n, err);
}

static enum byoc_status run_has(struct byoc_state *s, struct byi_frame *fr,
                                const struct byi_step *step,
                                struct byoc_error *err)
{
    return put_scalar(s, fr, step, fr->obj[step->in[0]]->n != 0, err);
}

static enum byoc_status run_get(struct byoc_state *s, struct byi_frame *fr,
                                const struct byi_step *step,
                                struct byoc_error *err)
{
    const struct byi_object *value = fr->obj[step->in[0]];
    if (value->n == 0)
        return fail_list(step, BYOC_EINVAL, err,
                         "found an empty optional, expected a value; test it "
                         "with optional.has first");
    return take_item(s, fr, step, &value->at[0], err);
}

/* --- splitting and concatenating ------------------------------------------ */

/* The memory of a tensor, divided at an axis into `outer` lines. A line has
 * `size` positions along the axis, each of `bytes` bytes. */
struct lines {
    int64_t outer, size;
    uint64_t bytes;
};

static struct lines lines_of(const struct byi_tensor *t, uint32_t axis)
{
    return (struct lines){.outer = byi_span(t, 0, axis),
                          .size = t->dims[axis],
                          .bytes = byi_dtype_bytes(t->dtype) *
                                   (uint64_t)byi_span(t, axis + 1, t->rank)};
}

/* Set *item to a copy of part [from, from + size) of x along `axis`; the copy
 * has that axis only if `keeps_axis`. */
static enum byoc_status cut_part(struct byoc_state *s,
                                 const struct byi_tensor *x, uint32_t axis,
                                 int64_t from, int64_t size, bool keeps_axis,
                                 struct byi_item *item, struct byoc_error *err)
{
    const struct lines l = lines_of(x, axis);
    struct byi_tensor *t = &item->t;
    uint32_t block;
    *t = *x;
    t->dims[axis] = size;
    BYI_TRY(byi_pool_take(&s->pool, byi_tensor_bytes(t), &block, err));
    item->block = block + 1;
    t->data = s->pool.at[block].at;
    for (int64_t o = 0; o < l.outer && size > 0; o++)
        memcpy((char *)t->data + (uint64_t)(o * size) * l.bytes,
               (const char *)x->data + (uint64_t)(o * l.size + from) * l.bytes,
               (uint64_t)size * l.bytes);
    if (!keeps_axis)
        memmove(&t->dims[axis], &t->dims[axis + 1],
                (--t->rank - axis) * sizeof *t->dims);
    return BYOC_OK;
}

static enum byoc_status run_split(struct byoc_state *s, struct byi_frame *fr,
                                  const struct byi_step *step,
                                  struct byoc_error *err)
{
    const struct byi_tensor *x = &fr->t[step->in[0]];
    const struct byi_tensor *sizes =
        step->n_in > 1 ? &fr->t[step->in[1]] : NULL;
    const uint32_t axis = byi_attr_axis(step->attrs, x->rank);
    const bool has_list = sizes && sizes->rank == 1;
    const bool keeps_axis = sizes || byi_attr_int(step->attrs, "keepdims") != 0;
    const int64_t axis_size = x->dims[axis];
    const int64_t part_size = sizes && !has_list ? byi_tensor_int(sizes, 0) : 1;
    if (part_size < 1)
        return fail_list(step, BYOC_EINVAL, err,
                         "found %lld as size of the parts, expected 1 or more",
                         (long long)part_size);
    const int64_t n =
        has_list ? sizes->dims[0] : (axis_size + part_size - 1) / part_size;
    int64_t from = 0;
    struct byi_object *list;
    if (n > BYI_PLAN_MAX_ITEMS)
        return fail_list(step, BYOC_ELIMIT, err,
                         "found %lld parts, expected at most %d", (long long)n,
                         BYI_PLAN_MAX_ITEMS);
    BYI_TRY(byi_object_new(s, (uint32_t)n, &list, err));
    fr->obj[step->out[0]] = list;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = has_list ? byi_tensor_int(sizes, i) : part_size;
        if (!has_list && size > axis_size - from)
            size = axis_size - from;
        if (size < 0 || size > axis_size - from)
            return fail_list(
                step, BYOC_EINVAL, err,
                "found size %lld of part %lld, expected 0 to %lld, "
                "the remaining size",
                (long long)size, (long long)i, (long long)(axis_size - from));
        BYI_TRY(
            cut_part(s, x, axis, from, size, keeps_axis, &list->at[i], err));
        from += size;
    }
    if (from == axis_size)
        return BYOC_OK;
    return fail_list(step, BYOC_EINVAL, err,
                     "found parts whose sizes sum up to %lld, expected %lld",
                     (long long)from, (long long)axis_size);
}

/* Compute the dims of a concatenation along `axis`, which is a new axis if
 * `adds_axis`. Fails unless the shapes of the elements fit together. */
static enum byoc_status compute_joined_dims(const struct byi_object *list,
                                            const struct byi_step *step,
                                            bool adds_axis, uint32_t axis,
                                            struct byi_tensor *out,
                                            struct byoc_error *err)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct byi_tensor *t = &list->at[i].t;
        bool fits = t->rank + adds_axis == out->rank;
        for (uint32_t d = 0, k = 0; fits && d < out->rank; d++) {
            if (adds_axis && d == axis)
                continue;
            if (i == 0)
                out->dims[d] = t->dims[k];
            fits = d == axis || out->dims[d] == t->dims[k];
            k++;
        }
        if (!fits) {
            char found[128], expected[128];
            return fail_list(
                step, BYOC_EINVAL, err,
                "found shape %s of element %u, expected one that fits element "
                "0, of shape %s",
                byi_dims_text(found, sizeof found, t->rank, t->dims), i,
                byi_dims_text(expected, sizeof expected, list->at[0].t.rank,
                              list->at[0].t.dims));
        }
        sum += adds_axis ? 1 : t->dims[axis];
    }
    out->dims[axis] = sum;
    return BYOC_OK;
}

/* Set the result's dims for an empty list: 0 along `axis` and for symbolic
 * dims.
 */
static void set_empty_dims(const struct byoc_state *s,
                           const struct byi_frame *fr,
                           const struct byi_step *step, uint32_t axis,
                           struct byi_tensor *out)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    const struct byi_type *type = f->values[step->out[0]].type;
    for (uint32_t d = 0; d < out->rank; d++)
        out->dims[d] =
            d == axis || BYI_IS_SYMBOL(type->dims[d]) ? 0 : type->dims[d];
}

static enum byoc_status run_concatenate(struct byoc_state *s,
                                        struct byi_frame *fr,
                                        const struct byi_step *step,
                                        struct byoc_error *err)
{
    const struct byi_object *list = fr->obj[step->in[0]];
    const bool adds_axis = byi_attr_int(step->attrs, "new_axis") != 0;
    struct byi_tensor *out = &fr->t[step->out[0]];
    const uint32_t axis = byi_attr_axis(step->attrs, out->rank);
    uint64_t at = 0;
    if (list->n)
        BYI_TRY(compute_joined_dims(list, step, adds_axis, axis, out, err));
    else if (byi_attr_int(step->attrs, "allow_empty"))
        set_empty_dims(s, fr, step, axis, out);
    else
        return fail_list(step, BYOC_EINVAL, err,
                         "found an empty sequence, expected at least 1 "
                         "element");
    BYI_TRY(byi_frame_provide(s, fr, step->out[0], err));
    const struct lines l = lines_of(out, axis);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct byi_tensor *t = &list->at[i].t;
        const uint64_t run =
            (adds_axis ? 1 : (uint64_t)t->dims[axis]) * l.bytes;
        for (int64_t o = 0; o < l.outer && run; o++)
            memcpy((char *)out->data + (uint64_t)(o * l.size) * l.bytes + at,
                   (const char *)t->data + (uint64_t)o * run, run);
        at += run;
    }
    return BYOC_OK;
}

enum byoc_status byi_list_run(struct byoc_state *s, struct byi_frame *fr,
                              const struct byi_step *step,
                              struct byoc_error *err)
{
    static const struct {
        enum byi_op_id op;
        byi_step_run *run;
    } rows[] = {
        {BYI_OP_SEQ_MAKE, run_make},
        {BYI_OP_SEQ_INSERT, run_insert},
        {BYI_OP_SEQ_ERASE, run_erase},
        {BYI_OP_SEQ_AT, run_at},
        {BYI_OP_SEQ_LENGTH, run_length},
        {BYI_OP_SEQ_SPLIT, run_split},
        {BYI_OP_OPT_MAKE, run_make},
        {BYI_OP_OPT_NONE, run_make},
        {BYI_OP_OPT_HAS, run_has},
        {BYI_OP_OPT_GET, run_get},
        {BYI_OP_SEQ_CONCATENATE, run_concatenate},
    };
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        if (rows[i].op == step->op->id)
            return rows[i].run(s, fr, step, err);
    byi_unreachable();
}
