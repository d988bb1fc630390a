/* SPDX-License-Identifier: Apache-2.0 */
/* prepack.c: prepares constant operands of native kernels once. Packs weights
 * into the panels that kernels read. Copies other constants to memory aligned
 * to BYI_ALIGN, since a model file does not align them. Packs only for steps
 * that may run; backends pack their own constants. */
#include "plan.h"
#include "workers.h"

#include <stdlib.h>
#include <string.h>

/* A step of function f, and the offset of its packed constants. */
struct packed_step {
    struct byi_step *step;
    const struct byi_plan_func *f;
    uint64_t at;
};

enum { NOT_COPIED = 0 }; /* the constant is not copied */

/* The state of packing a model's constants: first to count bytes, then to
 * fill `to`. */
struct packer {
    const struct byi_plan_tables *plan;
    const struct byi_image *image;
    uint64_t *copied_at;      /* for each constant: 1 + its offset in the packed
                               * memory, or NOT_COPIED */
    struct packed_step *list; /* the n steps to pack */
    uint32_t n, cap;
    uint64_t bytes; /* of packed and copied constants */
    uint32_t threads;
    char *to; /* the memory for packed constants */
};

static struct byi_tensor tensor_of(const struct byi_plan_tables *plan,
                                   const struct byi_plan_func *f, uint32_t v)
{
    const struct byi_value *root = &f->values[f->values[v].root];
    struct byi_tensor t = byi_tensor_of(f->values[v].type);
    if (root->kind == BYI_V_CONST)
        t.data = plan->consts[root->index].view.data;
    return t;
}

/* Pack the constant operands of a step into `to`, or only return the bytes that
 * this needs if `to` is NULL. The kernel receives a call in which only
 * constants have data. */
static uint64_t pack_step(const struct packer *p, const struct byi_plan_func *f,
                          const struct byi_step *step, void *to)
{
    enum { MAX_OPERANDS = 16 };
    struct byi_tensor in[MAX_OPERANDS], out[MAX_OPERANDS];
    if (step->kind != BYI_STEP_OP || step->view || step->n_in > MAX_OPERANDS ||
        step->n_out > MAX_OPERANDS)
        return 0;
    const struct byi_packing *packing = byi_packing_of(step->op->id);
    if (!packing)
        return 0;
    for (uint32_t i = 0; i < step->n_in; i++) {
        in[i] = tensor_of(p->plan, f, step->in[i]);
        if (packing->operands >> i & 1 && !in[i].data)
            return 0;
    }
    for (uint32_t i = 0; i < step->n_out; i++)
        out[i] = tensor_of(p->plan, f, step->out[i]);
    const struct byi_call call = {.op = step->op,
                                  .attrs = step->attrs,
                                  .n_in = step->n_in,
                                  .n_out = step->n_out,
                                  .in = in,
                                  .out = out,
                                  .n_epilogue = step->n_epilogue,
                                  .epilogue = step->epilogue,
                                  .exact = step->exact,
                                  .threads = p->threads};
    return packing->pack(&call, to);
}

/* List the unaligned constants that a step reads without packing. They are
 * copied, since vector loads across two cache lines take twice the time. */
static void list_copies(struct packer *p, const struct byi_plan_func *f,
                        const struct byi_step *step)
{
    if (step->kind != BYI_STEP_OP && step->kind != BYI_STEP_KERNEL)
        return;
    for (uint32_t i = 0; i < step->n_in; i++) {
        const struct byi_value *root = &f->values[f->values[step->in[i]].root];
        if (root->kind != BYI_V_CONST ||
            p->copied_at[root->index] != NOT_COPIED)
            continue;
        const struct byi_tensor *t = &p->plan->consts[root->index].view;
        const uint64_t bytes = byi_tensor_bytes(t);
        if ((uintptr_t)t->data % BYI_ALIGN == 0 || bytes < BYI_ALIGN)
            continue;
        p->copied_at[root->index] = 1 + p->bytes;
        p->bytes += byi_align_bytes(bytes);
    }
}

static void copy_consts(const struct packer *p, struct byoc_model *model)
{
    for (uint32_t i = 0; i < model->plan->n_consts; i++) {
        struct byi_tensor *t = &model->plan->consts[i].view;
        if (p->copied_at[i] == NOT_COPIED)
            continue;
        void *to = (char *)model->packed + (p->copied_at[i] - 1);
        t->data = memcpy(to, t->data, byi_tensor_bytes(t));
    }
}

static enum byoc_status list_steps(struct packer *p, uint32_t func,
                                   struct byoc_error *err)
{
    const struct byi_plan_func *f = &p->plan->funcs[func];
    for (uint32_t k = 0; k < f->n_steps; k++) {
        const uint64_t bytes = pack_step(p, f, &f->steps[k], NULL);
        if (bytes == 0) {
            list_copies(p, f, &f->steps[k]);
            continue;
        }
        if (p->n == p->cap) {
            const uint32_t cap = p->cap ? 2 * p->cap : 64;
            struct packed_step *list = realloc(p->list, cap * sizeof *list);
            if (!list)
                return byi_fail_memory(err, cap * sizeof *list,
                                       "a list of steps to pack");
            p->list = list;
            p->cap = cap;
        }
        p->list[p->n++] = (struct packed_step){&f->steps[k], f, p->bytes};
        p->bytes += byi_align_bytes(bytes);
    }
    return BYOC_OK;
}

static enum byoc_status list_runnable_steps(struct packer *p,
                                            struct byoc_model *model,
                                            struct byoc_error *err)
{
    const uint32_t n_funcs = model->plan->n_funcs;
    bool *runs = byi_alloc(n_funcs, sizeof *runs);
    uint32_t *list = byi_alloc(n_funcs, sizeof *list);
    enum byoc_status status =
        runs && list
            ? BYOC_OK
            : byi_fail_memory(err, n_funcs * (sizeof *runs + sizeof *list),
                              "lists of the plan's functions");
    if (status == BYOC_OK)
        byi_work_mark_functions(&model->base, runs, list);
    for (uint32_t f = 0; f < n_funcs && status == BYOC_OK; f++)
        if (runs[f])
            status = list_steps(p, f, err);
    free(runs);
    free(list);
    return status;
}

static void pack_listed(void *arg, uint32_t i)
{
    const struct packer *p = arg;
    struct byi_step *step = p->list[i].step;
    const struct byi_packing *packing = byi_packing_of(step->op->id);
    char *to = p->to + p->list[i].at;
    pack_step(p, p->list[i].f, step, to);
    step->packed = to;
    for (uint32_t k = 0; k < step->n_in; k++) {
        const struct byi_tensor t =
            tensor_of(p->plan, p->list[i].f, step->in[k]);
        if (packing->operands >> k & 1)
            byi_image_drop_const(p->image, t.data, byi_tensor_bytes(&t));
    }
}

static enum byoc_status pack(struct packer *p, struct byoc_model *model,
                             struct byoc_error *err)
{
    BYI_TRY(list_runnable_steps(p, model, err));
    if (!p->bytes)
        return BYOC_OK;
    model->packed = byi_memory_allocate(model->memory, p->bytes);
    if (!model->packed)
        return byi_fail_memory(err, p->bytes, "packed weights");
    p->to = model->packed;
    byi_parallel_for(p->n, pack_listed, p);
    copy_consts(p, model);
    return BYOC_OK;
}

enum byoc_status byi_prepack(struct byoc_model *model, struct byoc_error *err)
{
    struct packer p = {
        .plan = model->plan, .image = &model->image, .threads = model->threads};
    const size_t n = model->plan->n_consts + 1u;
    p.copied_at = byi_alloc(n, sizeof *p.copied_at);
    const enum byoc_status status =
        p.copied_at ? pack(&p, model, err)
                    : byi_fail_memory(err, n * sizeof *p.copied_at,
                                      "a list of constants to copy");
    free(p.copied_at);
    free(p.list);
    return status;
}
