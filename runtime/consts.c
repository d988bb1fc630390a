/* SPDX-License-Identifier: Apache-2.0 */
/* consts.c: prepares the data of a model's constants. Kernels need constants
 * that are aligned to their elements; those in a model file may not be. Kernels
 * also need them wide: a float32 constant that is stored in fewer bits is
 * widened when a step or backend first reads it. A backend that reads int8
 * codes itself gets them unwidened. */
#include "plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/row_codes.h"

/* The aligned and widened copies of a model's constants, shared by all threads.
 */
struct byi_widened {
    pthread_mutex_t lock;
    void *copied; /* copies of constants that were not aligned */
    void **at;    /* widened data by constant; NULL: not read yet */
};

/* --- alignment ------------------------------------------------------------ */

static bool is_aligned(const struct byi_plan_const *c)
{
    return c->narrow ||
           (uintptr_t)c->view.data % byi_dtype_bytes(c->view.dtype) == 0;
}

static enum byoc_status align_consts(struct byoc_model *model,
                                     struct byoc_error *err)
{
    struct byi_plan_tables *plan = model->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n_consts; i++)
        if (!is_aligned(&plan->consts[i]))
            bytes += byi_align_bytes(byi_tensor_bytes(&plan->consts[i].view));
    if (bytes == 0)
        return BYOC_OK;
    char *to = model->widened->copied =
        byi_memory_allocate(model->memory, bytes);
    if (!to)
        return byi_fail_memory(err, bytes, "constants");
    for (uint32_t i = 0; i < plan->n_consts; i++) {
        struct byi_tensor *t = &plan->consts[i].view;
        if (is_aligned(&plan->consts[i]))
            continue;
        t->data = memcpy(to, t->data, byi_tensor_bytes(t));
        to += byi_align_bytes(byi_tensor_bytes(t));
    }
    return BYOC_OK;
}

enum byoc_status byi_consts_open(struct byoc_model *model,
                                 struct byoc_error *err)
{
    struct byi_widened *w = model->widened = byi_alloc(1, sizeof *w);
    if (!w)
        return byi_fail_memory(err, sizeof *w, "constants");
    pthread_mutex_init(&w->lock, NULL);
    w->at = byi_alloc(model->plan->n_consts + 1u, sizeof *w->at);
    if (!w->at)
        return byi_fail_memory(err, model->plan->n_consts * sizeof *w->at,
                               "constants");
    return align_consts(model, err);
}

void byi_consts_close(struct byoc_model *model)
{
    struct byi_widened *w = model->widened;
    if (!w)
        return;
    for (uint32_t i = 0; w->at && i < model->plan->n_consts; i++)
        byi_memory_release(model->memory, w->at[i]);
    byi_memory_release(model->memory, w->copied);
    pthread_mutex_destroy(&w->lock);
    free(w->at);
    free(w);
}

/* --- width ---------------------------------------------------------------- */

bool byi_const_get_codes(const struct byi_plan_const *c,
                         struct byi_row_codes *codes)
{
    if (c->stored != BYOC_I8)
        return false;
    const int64_t rows = c->view.dims[c->axis];
    *codes = byi_row_codes_at(c->narrow, rows,
                              byi_elements(c->view.rank, c->view.dims) / rows,
                              c->axis > 0);
    return true;
}

static void widen_half(const struct byi_plan_const *c, float *to)
{
    const int64_t n = byi_elements(c->view.rank, c->view.dims);
    const uint16_t *from = c->narrow;
    for (int64_t i = 0; i < n; i++)
        to[i] = byi_half_to_f32(from[i], c->stored);
}

/* The input and result of widening a list of constants. */
struct widening {
    const struct byi_plan_tables *plan;
    const struct byi_widened *to;
    const uint32_t *list;
    bool *missing; /* for each member of the list */
};

static void widen_listed(void *arg, uint32_t i)
{
    const struct widening *widening = arg;
    if (!widening->missing[i])
        return;
    const struct byi_plan_const *c = &widening->plan->consts[widening->list[i]];
    float *to = widening->to->at[widening->list[i]];
    struct byi_row_codes codes;
    if (byi_const_get_codes(c, &codes))
        byi_row_codes_dequantize(&codes, to);
    else
        widen_half(c, to);
}

/* Allocate the float32 data of the listed constants that have not been widened
 * yet, and mark these in widening->missing. Called with the lock. */
static enum byoc_status allocate_missing(const struct byoc_model *model,
                                         const struct widening *widening,
                                         uint32_t n, struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_plan_const *c =
            &model->plan->consts[widening->list[i]];
        void **at = &widening->to->at[widening->list[i]];
        widening->missing[i] = c->narrow && !*at;
        if (!widening->missing[i])
            continue;
        *at = byi_memory_allocate(model->memory, byi_tensor_bytes(&c->view));
        if (*at)
            continue;
        for (widening->missing[i] = false; i-- > 0;)
            if (widening->missing[i]) {
                byi_memory_release(model->memory,
                                   widening->to->at[widening->list[i]]);
                widening->to->at[widening->list[i]] = NULL;
            }
        return byi_fail_memory(err, byi_tensor_bytes(&c->view), "constants");
    }
    return BYOC_OK;
}

enum byoc_status byi_consts_widen(const struct byoc_model *model,
                                  const uint32_t *list, uint32_t n,
                                  struct byoc_error *err)
{
    struct widening widening = {.plan = model->plan,
                                .to = model->widened,
                                .list = list,
                                .missing = byi_alloc(n + 1u, sizeof(bool))};
    if (!widening.missing)
        return byi_fail_memory(err, n, "constants");
    pthread_mutex_lock(&model->widened->lock);
    const enum byoc_status status = allocate_missing(model, &widening, n, err);
    if (status == BYOC_OK)
        byi_parallel_for(n, widen_listed, &widening);
    pthread_mutex_unlock(&model->widened->lock);
    free(widening.missing);
    return status;
}

void *byi_const_data(const struct byoc_model *model, uint32_t index)
{
    const struct byi_plan_const *c = &model->plan->consts[index];
    if (!c->narrow)
        return c->view.data;
    pthread_mutex_lock(&model->widened->lock);
    void *at = model->widened->at[index];
    pthread_mutex_unlock(&model->widened->lock);
    return at;
}

/* --- constants of a specialisation ---------------------------------------- */

/* List the narrow constants of the functions that may run; returns their
 * number. `list` has n_consts entries, and behind them room for as many flags,
 * which are false. */
static uint32_t list_narrow(const struct byi_specialisation *specialisation,
                            const bool *runs, uint32_t *list)
{
    const struct byi_plan_tables *tables = specialisation->model->plan;
    uint32_t n = 0;
    bool *seen = (bool *)(list + tables->n_consts);
    for (uint32_t i = 0; i < specialisation->plan->n_funcs; i++) {
        const struct byi_plan_func *f = &specialisation->plan->funcs[i];
        for (uint32_t v = 0; runs[i] && v < f->n_values; v++) {
            const uint32_t at = f->values[v].index;
            if (f->values[v].kind != BYI_V_CONST || at >= tables->n_consts ||
                !tables->consts[at].narrow || seen[at])
                continue;
            seen[at] = true;
            list[n++] = at;
        }
    }
    return n;
}

enum byoc_status byi_consts_read(
    const struct byi_specialisation *specialisation,
    struct byi_plan_const *consts, struct byoc_error *err)
{
    const uint32_t n_funcs = specialisation->plan->n_funcs,
                   n_consts = specialisation->model->plan->n_consts;
    bool *runs = byi_alloc(n_funcs, sizeof *runs);
    uint32_t *list =
        byi_alloc((uint64_t)n_funcs + 2 * (uint64_t)n_consts + 1, sizeof *list);
    enum byoc_status status =
        runs && list
            ? BYOC_OK
            : byi_fail_memory(err,
                              (n_funcs + 2 * (uint64_t)n_consts) * sizeof *list,
                              "constants");
    if (status == BYOC_OK) {
        byi_work_mark_functions(specialisation, runs, list);
        memset(list, 0, (n_funcs + 2 * (size_t)n_consts) * sizeof *list);
        const uint32_t n = list_narrow(specialisation, runs, list);
        status = byi_consts_widen(specialisation->model, list, n, err);
        for (uint32_t i = 0; status == BYOC_OK && i < n; i++)
            consts[list[i]].view.data =
                byi_const_data(specialisation->model, list[i]);
    }
    free(runs);
    free(list);
    return status;
}
