/* SPDX-License-Identifier: Apache-2.0 */
/* append.c: computes outputs in the memory of an input. Such an output
 * concatenates the input and more rows, appends to it by nn.cache_append, or
 * scatters into it. An example is a decoder's cache of keys and values, to
 * which each run adds the rows of its tokens.
 *
 * The rows of a tensor that grows along an axis are in planes, one for each
 * position of the axes before it. `pitch` is the distance in bytes from one
 * plane to the next; a buffer with room to grow has a pitch that is larger than
 * a plane:
 *
 *   rows, capacity 4    a a a . | b b b . | c c c .     pitch = 4 rows
 *
 * Kernels read dense tensors. For most steps a tensor in planes is copied
 * first, with these exceptions:
 * - a step that appends rows along the planes' axis writes only these rows;
 * - a matrix product whose second operand is in planes, one for each batch, and
 *   whose first operand is dense, runs once for each plane;
 * - attention reads keys and values in planes;
 * - a slice of the first rows of an output along the planes' axis is a view;
 * - shape_of and size_of read no elements. */
#include "state.h"

#include <string.h>

enum { CACHE_AXIS = 2 }; /* along which nn.cache_append appends rows */

/* --- outputs in the memory of inputs -------------------------------------- */

/* Whether value v is an input tensor that an output may extend in place.
 * Tensors of strings are excluded, since their elements point to other memory.
 */
static bool is_extensible_input(const struct byi_plan_func *f, uint32_t v)
{
    return f->values[v].kind == BYI_V_INPUT &&
           f->values[v].type->kind == BYI_TENSOR &&
           f->values[v].type->dtype != BYOC_STRING;
}

/* Whether main returns input value v, reads it after step s or as another
 * operand of s, or captures it in a closure. */
static bool is_read_after(const struct byi_plan_func *f, uint32_t v, uint32_t s)
{
    bool read = false;
    for (uint32_t i = 0; i < f->n_outputs; i++)
        read = read || f->values[f->outputs[i]].root == v;
    for (uint32_t k = 0; k < f->n_steps; k++) {
        const struct byi_step *step = &f->steps[k];
        const bool late = k > s || step->kind == BYI_STEP_CLOSURE;
        for (uint32_t i = 0; i < step->n_in; i++)
            read = read || (f->values[step->in[i]].root == v &&
                            (late || (k == s && i > 0)));
    }
    return read;
}

/* The axis along which step s extends its first operand, or the operand's rank
 * if s replaces rows of it. UINT32_MAX if s does neither, or cannot do it in
 * place. */
static uint32_t grown_axis(const struct byi_plan_func *f, uint32_t s)
{
    const struct byi_step *step = &f->steps[s];
    if (step->kind != BYI_STEP_OP || step->n_out != 1 ||
        !is_extensible_input(f, step->in[0]) ||
        f->values[step->out[0]].kind != BYI_V_OUTPUT)
        return UINT32_MAX;
    const uint32_t rank = f->values[step->out[0]].type->rank;
    if (step->op->id == BYI_OP_CONCATENATE && step->n_in == 2) {
        const int64_t axis = byi_attr_int(step->attrs, "axis");
        return (uint32_t)(axis < 0 ? axis + rank : axis);
    }
    if (is_read_after(f, step->in[0], s))
        return UINT32_MAX;
    switch (step->op->id) {
    case BYI_OP_SCATTER_ELEMENTS:
    case BYI_OP_SCATTER_ND:
        return rank;
    case BYI_OP_NN_CACHE_APPEND:
        return byi_attr_int(step->attrs, "grows") ? CACHE_AXIS : rank;
    default:
        return UINT32_MAX;
    }
}

/* Let `output` use the memory of `input`, unless another output extends the
 * input along another axis. An input can grow in place along one axis only. If
 * the axis has a symbolic length, one specialisation serves all lengths, except
 * with require_backends. */
static void allow_in_place(struct byoc_model *model, uint32_t input,
                           uint32_t output, uint32_t axis)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    const struct byi_type *type = f->values[f->inputs[input]].type;
    uint32_t *grow_axis = &model->grow_axis[input];
    if (*grow_axis != UINT32_MAX && *grow_axis != axis)
        return;
    *grow_axis = axis;
    model->in_place[output] = input;
    if (axis < type->rank && BYI_IS_SYMBOL(type->dims[axis]) &&
        !model->require_backends)
        model->open_symbols[-1 - type->dims[axis]] = true;
}

void byi_append_find(struct byoc_model *model)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    const uint32_t n = f->n_inputs + f->n_outputs + 1;
    model->grow_axis =
        byi_arena_calloc(model->arena, n, sizeof *model->grow_axis);
    model->in_place = model->grow_axis + f->n_inputs;
    memset(model->grow_axis, 0xff, n * sizeof *model->grow_axis);
    model->open_symbols = byi_arena_calloc(
        model->arena, model->plan->n_symbols + 1u, sizeof *model->open_symbols);
    for (uint32_t s = 0; s < f->n_steps; s++) {
        const uint32_t axis = grown_axis(f, s);
        if (axis == UINT32_MAX)
            continue;
        const struct byi_value *from = &f->values[f->steps[s].in[0]];
        const struct byi_value *to = &f->values[f->steps[s].out[0]];
        if (f->outputs[to->index] == f->steps[s].out[0])
            allow_in_place(model, from->index, to->index, axis);
    }
}

uint32_t byoc_model_in_place(const struct byoc_model *model, uint32_t output,
                             uint32_t *axis)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    const uint32_t input =
        output < f->n_outputs ? model->in_place[output] : UINT32_MAX;
    if (axis)
        *axis = input == UINT32_MAX ? UINT32_MAX : model->grow_axis[input];
    return input;
}

/* --- callers' views ------------------------------------------------------- */

static uint64_t count_elements(const int64_t *dims, uint32_t n)
{
    return (uint64_t)byi_elements(n, dims);
}

/* Bytes of one plane of a tensor whose first `axes` axes number its planes. */
static uint64_t plane_bytes(const struct byi_tensor *t, uint32_t axes)
{
    return count_elements(t->dims + axes, t->rank - axes) *
           byi_dtype_bytes(t->dtype);
}

bool byi_row_planes_read(const DLTensor *view, uint32_t axis,
                         struct byi_row_planes *planes)
{
    /* in elements, from the first to the last one, including gaps */
    const int64_t max_extent = INT64_C(1) << 44;
    const uint64_t size = view->dtype.bits / 8u;
    int64_t step = 1;
    *planes = (struct byi_row_planes){.axes = axis};
    for (uint32_t d = (uint32_t)view->ndim; d-- > 0;) {
        const int64_t stride = view->strides ? view->strides[d] : step;
        if (d < axis && !planes->pitch && view->shape[d] > 1) {
            if (stride < step || stride > max_extent)
                return false;
            planes->pitch = (uint64_t)stride * size;
            step = stride;
        } else if (view->shape[d] > 1 && stride != step) {
            return false;
        }
        if (view->shape[d] > 0 && step > max_extent / view->shape[d])
            return false;
        step *= view->shape[d];
    }
    return true;
}

uint64_t byi_row_planes_extent(const struct byi_tensor *t,
                               const struct byi_row_planes *planes)
{
    const uint64_t bytes = byi_tensor_bytes(t);
    if (!planes->pitch || bytes == 0)
        return bytes;
    const uint64_t n = count_elements(t->dims, planes->axes);
    return (n - 1) * planes->pitch + plane_bytes(t, planes->axes);
}

bool byi_row_planes_are_dense(const struct byi_tensor *t,
                              const struct byi_row_planes *planes)
{
    return !planes->pitch || byi_tensor_bytes(t) == 0 ||
           planes->pitch == plane_bytes(t, planes->axes);
}

/* --- copies --------------------------------------------------------------- */

/* Bytes from one plane of t to the next, where the planes are the positions of
 * its first `axes` axes. */
static uint64_t pitch_of(const struct byi_tensor *t, uint32_t axes,
                         const struct byi_row_planes *planes)
{
    return planes->pitch ? planes->pitch : plane_bytes(t, axes);
}

enum byoc_status byi_row_planes_make_dense(struct byoc_state *s,
                                           struct byi_frame *fr, uint32_t v,
                                           struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    const uint32_t root = f->values[v].root;
    struct byi_row_planes *planes = &fr->planes[root];
    struct byi_tensor *t = &fr->t[root];
    if (planes->pitch) {
        const uint64_t bytes = plane_bytes(t, planes->axes);
        const uint64_t n = count_elements(t->dims, planes->axes);
        const char *from = t->data;
        BYI_TRY(byi_frame_block(s, fr, root, err));
        for (uint64_t i = 0; i < n; i++)
            memcpy((char *)t->data + i * bytes, from + i * planes->pitch,
                   bytes);
        *planes = (struct byi_row_planes){.placed = f->values[root].kind ==
                                                    BYI_V_OUTPUT};
    }
    if (fr->planes[v].pitch) {
        fr->planes[v] = (struct byi_row_planes){0};
        fr->t[v].data = t->data;
    }
    return BYOC_OK;
}

enum byoc_status byi_row_planes_alias(struct byoc_state *s,
                                      struct byi_frame *fr, uint32_t v,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    const uint32_t root = f->values[v].root;
    const struct byi_tensor *t = &fr->t[v], *from = &fr->t[root];
    const uint32_t axes = fr->planes[root].axes;
    const bool same_dims =
        t->rank >= axes && byi_dims_equal(axes, t->dims, axes, from->dims);
    fr->planes[v] = (struct byi_row_planes){0};
    if (same_dims)
        fr->planes[v] = fr->planes[root];
    else
        BYI_TRY(byi_row_planes_make_dense(s, fr, root, err));
    fr->t[v].data = from->data;
    return BYOC_OK;
}

/* --- steps ---------------------------------------------------------------- */

/* Write the second operand's rows after the first operand's rows, which are
 * copied unless the result has them already. */
static void concatenate_rows(const struct byi_frame *fr,
                             const struct byi_step *step, uint32_t axis)
{
    const struct byi_tensor *result = &fr->t[step->out[0]];
    const uint64_t n = count_elements(result->dims, axis);
    const uint64_t pitch = pitch_of(result, axis, &fr->planes[step->out[0]]);
    uint64_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct byi_tensor *t = &fr->t[step->in[i]];
        const uint64_t bytes = plane_bytes(t, axis);
        const uint64_t from_pitch = pitch_of(t, axis, &fr->planes[step->in[i]]);
        char *to = (char *)result->data + at;
        for (uint64_t k = 0; k < n && to != t->data && bytes > 0; k++)
            memcpy(to + k * pitch, (const char *)t->data + k * from_pitch,
                   bytes);
        at += bytes;
    }
}

/* Run a step for which extends_operand holds. */
static void append_rows(struct byoc_state *s, const struct byi_frame *fr,
                        const struct byi_step *step, uint32_t axis)
{
    if (step->op->id == BYI_OP_CONCATENATE) {
        concatenate_rows(fr, step, axis);
        return;
    }
    const struct byi_call call =
        byi_exec_call(s->args, fr, step, s->model->threads);
    byi_cache_append(&call, pitch_of(call.in, axis, &fr->planes[step->in[0]]),
                     pitch_of(call.out, axis, &fr->planes[step->out[0]]));
}

/* Whether the step appends rows to its first operand and can write them to an
 * output. It can if the planes of both, if any, are along the axis of the rows.
 * Sets *axis to this axis for every step that appends rows. */
static bool extends_operand(const struct byi_plan_func *f,
                            const struct byi_frame *fr,
                            const struct byi_step *step, uint32_t *axis)
{
    const bool concatenates =
        step->op->id == BYI_OP_CONCATENATE && step->n_in == 2;
    if (!concatenates && step->op->id != BYI_OP_NN_CACHE_APPEND)
        return false;
    const int64_t signed_axis =
        concatenates ? byi_attr_int(step->attrs, "axis") : CACHE_AXIS;
    *axis = (uint32_t)(signed_axis < 0 ? signed_axis + fr->t[step->out[0]].rank
                                       : signed_axis);
    const struct byi_row_planes *first = &fr->planes[step->in[0]];
    const struct byi_row_planes *result = &fr->planes[step->out[0]];
    return f->values[step->out[0]].kind == BYI_V_OUTPUT &&
           (!first->pitch || first->axes == *axis) &&
           (!result->pitch || result->axes == *axis);
}

/* Whether the step is a matrix product whose second operand is in planes, one
 * for each batch, and whose first operand is dense. */
static bool is_batched(const struct byi_frame *fr, const struct byi_step *step)
{
    if (step->op->id != BYI_OP_NN_MATMUL)
        return false;
    const uint32_t axes = fr->planes[step->in[1]].axes;
    const struct byi_tensor *c = &fr->t[step->out[0]];
    bool batched = fr->planes[step->in[1]].pitch &&
                   !fr->planes[step->in[0]].pitch && c->rank >= axes + 2;
    for (uint32_t i = 0; batched && i < 2; i++) {
        const struct byi_tensor *t = &fr->t[step->in[i]];
        batched =
            t->rank == c->rank && byi_dims_equal(axes, t->dims, axes, c->dims);
    }
    return batched;
}

/* Call the kernel once for each plane, with the batch axes removed. */
static enum byoc_status run_batches(struct byoc_state *s, struct byi_frame *fr,
                                    const struct byi_step *step,
                                    struct byoc_error *err)
{
    const struct byi_row_planes *planes = &fr->planes[step->in[1]];
    const uint32_t axes = planes->axes;
    const uint64_t n = count_elements(fr->t[step->out[0]].dims, axes);
    struct byi_call call = byi_exec_call(s->args, fr, step, s->model->threads);
    uint64_t pitch[3];
    call.packed = NULL;
    for (uint32_t i = 0; i < 3; i++) { /* both operands, and the result */
        struct byi_tensor *t = &s->args[i];
        pitch[i] = i == 1 ? planes->pitch : plane_bytes(t, axes);
        t->rank -= axes;
        memmove(t->dims, t->dims + axes, t->rank * sizeof t->dims[0]);
    }
    if (step->kernel->scratch)
        BYI_TRY(byi_exec_provide_scratch(s, step->kernel->scratch(&call), err));
    call.scratch = s->scratch;
    call.strings = &s->strings;
    enum byoc_status status = BYOC_OK;
    for (uint64_t k = 0; k < n && status == BYOC_OK; k++) {
        status = step->kernel->run(&call, err);
        for (uint32_t i = 0; i < 3; i++)
            s->args[i].data = (char *)s->args[i].data + pitch[i];
    }
    return status;
}

/* Run nn.attention, whose keys and values may be in planes. */
static enum byoc_status run_attention(struct byoc_state *s,
                                      struct byi_frame *fr,
                                      const struct byi_step *step,
                                      struct byoc_error *err)
{
    struct byi_head_planes planes[2];
    for (uint32_t i = 0; i < step->n_in; i++) {
        const struct byi_row_planes *operand = &fr->planes[step->in[i]];
        if (i == 1 || i == 2)
            planes[i - 1] =
                (struct byi_head_planes){operand->axes, operand->pitch};
        else
            BYI_TRY(byi_row_planes_make_dense(s, fr, step->in[i], err));
    }
    struct byi_call call = byi_exec_call(s->args, fr, step, s->model->threads);
    BYI_TRY(byi_exec_provide_scratch(s, step->kernel->scratch(&call), err));
    call.scratch = s->scratch;
    byi_attention_run(&call, planes);
    return BYOC_OK;
}

enum byoc_status byi_row_planes_run(struct byoc_state *s, struct byi_frame *fr,
                                    const struct byi_step *step, bool *done,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    uint32_t axis;
    *done = true;
    if (extends_operand(f, fr, step, &axis)) {
        for (uint32_t i = 1; i < step->n_in; i++)
            BYI_TRY(byi_row_planes_make_dense(s, fr, step->in[i], err));
        append_rows(s, fr, step, axis);
        return BYOC_OK;
    }
    if (is_batched(fr, step))
        return run_batches(s, fr, step, err);
    if (step->op->id == BYI_OP_NN_ATTENTION)
        return run_attention(s, fr, step, err);
    *done = false;
    if (byi_reads_only_shapes(step->op))
        return BYOC_OK;
    return byi_row_planes_make_all_dense(s, fr, step, err);
}

/* Read the only element of an integer operand. Returns false if the operand has
 * several elements or none. */
static bool read_scalar(const struct byi_tensor *t, int64_t *value)
{
    if (byi_elements(t->rank, t->dims) != 1)
        return false;
    *value = byi_tensor_int(t, 0);
    return true;
}

bool byi_row_planes_slice(struct byoc_state *s, struct byi_frame *fr,
                          const struct byi_step *step)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    const uint32_t v = step->out[0], x = step->in[0];
    int64_t begin, axis, stride;
    if (step->op->id != BYI_OP_STRIDED_SLICE ||
        f->values[f->values[x].root].kind != BYI_V_OUTPUT ||
        f->values[v].kind != BYI_V_TEMP ||
        !read_scalar(&fr->t[step->in[1]], &begin) || begin != 0 ||
        !read_scalar(&fr->t[step->in[3]], &axis) ||
        !read_scalar(&fr->t[step->in[4]], &stride) || stride != 1)
        return false;
    const struct byi_tensor *from = &fr->t[x];
    struct byi_tensor *t = &fr->t[v];
    const uint32_t axes = (uint32_t)(axis < 0 ? axis + from->rank : axis);
    if (fr->planes[x].pitch && fr->planes[x].axes != axes)
        return false;
    byi_frame_drop(s, fr, v);
    t->data = from->data;
    fr->planes[v] = (struct byi_row_planes){
        .axes = axes, .pitch = pitch_of(from, axes, &fr->planes[x])};
    if (byi_row_planes_are_dense(t, &fr->planes[v]))
        fr->planes[v].pitch = 0;
    fr->strided = fr->strided || fr->planes[v].pitch;
    return true;
}

enum byoc_status byi_row_planes_make_all_dense(struct byoc_state *s,
                                               struct byi_frame *fr,
                                               const struct byi_step *step,
                                               struct byoc_error *err)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        if (fr->planes[step->in[i]].pitch)
            BYI_TRY(byi_row_planes_make_dense(s, fr, step->in[i], err));
    return BYOC_OK;
}
