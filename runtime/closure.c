/* closure.c: functions as values: a function of the plan with what it
 * captured. They are counted, and immutable, so none can hold itself. What one
 * captured lives as long as it does: in a block that it shares, or in a copy.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

struct byi_closure *byi_closure_share(struct byi_closure *c)
{
    c->readers++;
    return c;
}

static uint64_t closure_bytes(uint32_t n)
{
    return sizeof(struct byi_closure) + n * sizeof(struct byi_captured);
}

/* A list, for functions may capture functions as deep as a run is long. */
void byi_closure_give(struct byoc_state *s, struct byi_closure *c)
{
    if (!c || --c->readers > 0)
        return;
    c->next = NULL;
    while (c) {
        struct byi_closure *rest = c->next;
        for (uint32_t i = 0; i < c->n; i++) {
            struct byi_closure *inner = c->at[i].func;
            if (c->at[i].block)
                byi_pool_give(&s->pool, c->at[i].block - 1);
            if (!inner || --inner->readers > 0)
                continue;
            inner->next = rest;
            rest = inner;
        }
        byi_pool_refund(&s->pool, closure_bytes(c->n));
        free(c);
        c = rest;
    }
}

/* Does value `v` lie in memory that outlives the run's activations? */
static bool is_lasting(const struct byi_plan_func *f,
                       const struct byi_frame *fr, uint32_t v)
{
    enum byi_value_kind kind = f->values[f->values[v].root].kind;
    return kind == BYI_V_CONST || (kind == BYI_V_INPUT && !fr->up);
}

static enum byoc_status capture(struct byoc_state *s, struct byi_frame *fr,
                                uint32_t v, struct byi_captured *to,
                                struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->in->plan->funcs[fr->func];
    uint32_t block = fr->block[f->values[v].root];
    if (byi_value_is_func(&f->values[v])) {
        to->func = byi_closure_share(fr->fn[v]);
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
    struct byi_closure *c = fr->self;
    if (step->self && c && c->func == step->callee && c->n == step->n_in) {
        fr->fn[step->out[0]] = byi_closure_share(c);
        return BYOC_OK;
    }
    BYI_TRY(byi_pool_charge(&s->pool, closure_bytes(step->n_in), err));
    c = byi_alloc(1, closure_bytes(step->n_in));
    if (!c) {
        byi_pool_refund(&s->pool, closure_bytes(step->n_in));
        return byi_fail(err, BYOC_ENOMEM,
                        "no memory for a function that captures %u values",
                        step->n_in);
    }
    c->readers = 1;
    c->func = step->callee;
    c->n = step->n_in;
    fr->fn[step->out[0]] = c;
    for (uint32_t i = 0; i < step->n_in; i++)
        BYI_TRY(capture(s, fr, step->in[i], &c->at[i], err));
    return BYOC_OK;
}

enum byoc_status byi_closure_choose(struct byoc_state *s, struct byi_frame *fr,
                                    const struct byi_step *step,
                                    struct byoc_error *err)
{
    bool is = false;
    (void)s;
    BYI_TRY(byi_call_condition(fr, step, &is, err));
    fr->fn[step->out[0]] = byi_closure_share(fr->fn[step->in[is ? 1 : 2]]);
    return BYOC_OK;
}
