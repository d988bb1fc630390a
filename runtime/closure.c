/* SPDX-License-Identifier: Apache-2.0 */
/* closure.c: makes and frees closures. A closure is a function of the plan with
 * its captures. Closures are reference-counted and immutable, so there are no
 * cycles. A closure shares the objects and pool blocks that it captures. It
 * copies other tensors, except constants and inputs of main, whose memory
 * outlives every closure.
 * Sequences and optionals (list.c) are objects of the same kind, without a
 * function. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

struct byi_object *byi_object_share(struct byi_object *object)
{
    object->n_refs++;
    return object;
}

enum byoc_status byi_object_new(struct byoc_state *s, uint32_t n,
                                struct byi_object **object,
                                struct byoc_error *err)
{
    BYI_TRY(byi_pool_charge(&s->pool, byi_object_bytes(n), err));
    struct byi_object *new_object = byi_alloc(1, byi_object_bytes(n));
    if (!new_object) {
        byi_pool_refund(&s->pool, byi_object_bytes(n));
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for a sequence or closure of %u values",
                        n);
    }
    new_object->n_refs = 1;
    new_object->n = new_object->capacity = n;
    *object = new_object;
    return BYOC_OK;
}

/* Keeps a list of the objects to free instead of recursing, since closures may
 * capture closures to any depth. */
void byi_object_release(struct byoc_state *s, struct byi_object *object)
{
    if (!object || --object->n_refs > 0)
        return;
    object->next = NULL;
    while (object) {
        struct byi_object *rest = object->next;
        for (uint32_t i = 0; i < object->n; i++) {
            struct byi_object *inner = object->at[i].object;
            if (object->at[i].block)
                byi_pool_drop(&s->pool, object->at[i].block - 1);
            if (!inner || --inner->n_refs > 0)
                continue;
            inner->next = rest;
            rest = inner;
        }
        byi_pool_refund(&s->pool, byi_object_bytes(object->capacity));
        free(object);
        object = rest;
    }
}

void byi_item_release(struct byoc_state *s, struct byi_item *item)
{
    if (item->block)
        byi_pool_drop(&s->pool, item->block - 1);
    byi_object_release(s, item->object);
    *item = (struct byi_item){0};
}

/* Whether value `v` is in memory that outlives the run's frames: a constant or
 * an input of main. */
static bool is_lasting(const struct byi_plan_func *f,
                       const struct byi_frame *fr, uint32_t v)
{
    enum byi_value_kind kind = f->values[f->values[v].root].kind;
    return kind == BYI_V_CONST || (kind == BYI_V_INPUT && !fr->up);
}

enum byoc_status byi_object_capture(struct byoc_state *s, struct byi_frame *fr,
                                    uint32_t v, struct byi_item *to,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    uint32_t block = fr->block[f->values[v].root];
    if (byi_value_is_object(&f->values[v])) {
        to->object = byi_object_share(fr->obj[v]);
        return BYOC_OK;
    }
    to->t = fr->t[v];
    if (block) {
        byi_pool_share(&s->pool, block - 1);
        to->block = block;
        return BYOC_OK;
    }
    if (is_lasting(f, fr, v))
        return BYOC_OK;
    BYI_TRY(byi_pool_take(&s->pool, byi_tensor_bytes(&to->t), &block, err));
    to->block = block + 1;
    to->t.data = s->pool.at[block].at;
    memcpy(to->t.data, fr->t[v].data, byi_tensor_bytes(&to->t));
    return BYOC_OK;
}

enum byoc_status byi_closure_make(struct byoc_state *s, struct byi_frame *fr,
                                  const struct byi_step *step,
                                  struct byoc_error *err)
{
    struct byi_object *closure = fr->self;
    if (step->self && closure && closure->func == step->callee &&
        closure->n == step->n_in) {
        fr->obj[step->out[0]] = byi_object_share(closure);
        return BYOC_OK;
    }
    BYI_TRY(byi_object_new(s, step->n_in, &closure, err));
    closure->func = step->callee;
    fr->obj[step->out[0]] = closure;
    for (uint32_t i = 0; i < step->n_in; i++)
        BYI_TRY(byi_object_capture(s, fr, step->in[i], &closure->at[i], err));
    return BYOC_OK;
}

enum byoc_status byi_read_condition(const struct byi_frame *fr,
                                    const struct byi_step *step, bool *holds,
                                    struct byoc_error *err)
{
    const struct byi_tensor *cond = &fr->t[step->in[0]];
    uint64_t bytes = byi_tensor_bytes(cond);
    if (bytes != 1)
        return byi_fail(err, BYOC_ETYPE,
                        "%s (%s): found a condition of %llu elements, expected "
                        "1",
                        step->name, step->sources, (unsigned long long)bytes);
    *holds = *(const uint8_t *)cond->data != 0;
    return BYOC_OK;
}

enum byoc_status byi_closure_choose(struct byoc_state *s, struct byi_frame *fr,
                                    const struct byi_step *step,
                                    struct byoc_error *err)
{
    bool holds = false;
    (void)s;
    BYI_TRY(byi_read_condition(fr, step, &holds, err));
    fr->obj[step->out[0]] = byi_object_share(fr->obj[step->in[holds ? 1 : 2]]);
    return BYOC_OK;
}
