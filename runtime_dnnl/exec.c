/* runtime_dnnl/exec.c: a program with memory: one state per run at a time.
 * All memory objects are made here once; a run sets the pointers of the
 * region's inputs and outputs and executes the steps.
 */
#include "runtime_dnnl/build.h"

#include <time.h>

/* A slot whose memory the caller lends. */
struct loan {
    struct byi_bound *call;
    uint32_t slot;
    bool output;
    uint32_t index;
    uint64_t offset;
};

struct byi_exec {
    const struct byi_program *program;
    char *memory;  /* the temporaries                   */
    char *scratch; /* of one primitive at a time        */
    struct byi_bound **calls;
    struct loan *loans;
    uint32_t n_loans;
};

static void *slot_data(const struct byi_exec *exec, const struct byi_buf *buf,
                       uint64_t offset)
{
    switch (buf->kind) {
    case BYI_BUF_CONST:
    case BYI_BUF_OWNED:
        return (char *)buf->data + offset;
    case BYI_BUF_TEMP:
        return exec->memory + buf->offset + offset;
    case BYI_BUF_INPUT:
    case BYI_BUF_OUTPUT:
        break;
    }
    return NULL;
}

static bool is_lent(const struct byi_buf *buf)
{
    return buf->kind == BYI_BUF_INPUT || buf->kind == BYI_BUF_OUTPUT;
}

static enum byoc_status bind_step(struct byi_exec *exec, uint32_t at, int *args,
                                  void **data, struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    const struct byi_step *step = &p->steps.at[at];
    for (uint32_t i = 0; i < step->n_slots; i++) {
        const struct byi_slot *slot = &step->slots[i];
        args[i] = slot->arg;
        data[i] = slot_data(exec, &p->bufs.at[slot->buf], slot->offset);
    }
    BYI_TRY(byi_bound_new(p->lib, step->prim, step->n_slots, args, data,
                          exec->scratch, &exec->calls[at], err));
    for (uint32_t i = 0; i < step->n_slots; i++) {
        const struct byi_slot *slot = &step->slots[i];
        const struct byi_buf *buf = &p->bufs.at[slot->buf];
        if (is_lent(buf))
            exec->loans[exec->n_loans++] =
                (struct loan){.call = exec->calls[at],
                              .slot = i,
                              .output = buf->kind == BYI_BUF_OUTPUT,
                              .index = buf->index,
                              .offset = slot->offset};
    }
    return BYOC_OK;
}

static enum byoc_status bind_steps(struct byi_exec *exec,
                                   struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    uint32_t n_loans = 0, most = 1;
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const struct byi_step *step = &p->steps.at[i];
        most = step->n_slots > most ? step->n_slots : most;
        for (uint32_t j = 0; j < step->n_slots; j++)
            n_loans += is_lent(&p->bufs.at[step->slots[j].buf]);
    }
    exec->calls = byi_alloc(p->steps.n, sizeof *exec->calls);
    exec->loans = byi_alloc(n_loans, sizeof *exec->loans);
    int *args = byi_alloc(most, sizeof *args);
    void **data = byi_alloc(most, sizeof *data);
    enum byoc_status status = exec->calls && exec->loans && args && data
                                  ? BYOC_OK
                                  : byi_fail(err, BYOC_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < p->steps.n && status == BYOC_OK; i++)
        status = bind_step(exec, i, args, data, err);
    byi_release(args);
    byi_release(data);
    return status;
}

enum byoc_status byi_dn_exec_new(const struct byi_program *program,
                                 struct byi_exec **exec, struct byoc_error *err)
{
    const struct byoc_host *host = program->host;
    struct byi_exec *x = byi_alloc(1, sizeof *x);
    if (!x)
        return byi_fail(err, BYOC_ENOMEM, "out of memory");
    x->program = program;
    x->memory = host->acquire(host->ctx, program->temp_bytes + BYI_ALIGN);
    x->scratch = host->acquire(host->ctx, program->scratch_bytes + BYI_ALIGN);
    enum byoc_status status =
        x->memory && x->scratch
            ? bind_steps(x, err)
            : byi_fail(err, BYOC_ENOMEM,
                       "no memory for %llu bytes of temporaries",
                       (unsigned long long)program->temp_bytes);
    if (status != BYOC_OK)
        byi_dn_exec_free(&x);
    else
        *exec = x;
    return status;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum byoc_status byi_dn_exec_run(struct byi_exec *exec,
                                 const struct byoc_run_args *args,
                                 struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    for (uint32_t i = 0; i < exec->n_loans; i++) {
        const struct loan *loan = &exec->loans[i];
        const struct byoc_view *view = loan->output
                                           ? &args->outputs[loan->index]
                                           : &args->inputs[loan->index];
        byi_bound_set(loan->call, loan->slot,
                      (char *)view->data + loan->offset);
    }
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const uint64_t begin = args->trace ? now() : 0;
        if (args->cancel && *args->cancel)
            return byi_fail(err, BYOC_ECANCELLED,
                            "cancelled after %u of %u primitives", i,
                            p->steps.n);
        BYI_TRY(byi_bound_run(exec->calls[i], err));
        if (args->trace)
            args->trace(args->trace_ctx, p->steps.at[i].name,
                        byi_prim_impl(p->steps.at[i].prim),
                        p->steps.at[i].sources, begin, now());
    }
    return BYOC_OK;
}

void byi_dn_exec_free(struct byi_exec **exec)
{
    struct byi_exec *x = *exec;
    if (!x)
        return;
    const struct byoc_host *host = x->program->host;
    for (uint32_t i = 0; x->calls && i < x->program->steps.n; i++)
        byi_bound_free(&x->calls[i]);
    byi_release(x->calls);
    byi_release(x->loans);
    host->release(host->ctx, x->memory);
    host->release(host->ctx, x->scratch);
    byi_release(x);
    *exec = NULL;
}

enum byoc_status byi_dn_exec_step(const struct byi_exec *exec, uint32_t step,
                                  struct byoc_error *err)
{
    return byi_bound_run(exec->calls[step], err);
}

void *byi_dn_exec_temps(const struct byi_exec *exec)
{
    return exec->memory;
}
