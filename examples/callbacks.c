/* SPDX-License-Identifier: Apache-2.0 */
/* A small service: it queues requests, and byoc calls a callback when one ends.
 * One client cancels its second request while the request waits.
 *     callbacks MODEL.so REQUESTS
 *     cc callbacks.c $(pkg-config --cflags --libs byoc-runtime) -lpthread */
#include <byoc/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* A client: a state, and a request that it repeats. */
struct client {
    struct byoc_state *state;
    struct byoc_request request;
    struct byoc_binding in, out;
    char tag[32];
    /* `lock` guards these numbers of requests */
    int n_to_queue; /* -1 after the last request has ended */
    int n_done, n_cancelled, n_failed;
    int cancels; /* this client cancels its second request */
};

/* The callback: count the request that ended, and queue the next one. */
static void end_request(void *ctx, struct byoc_state *state,
                        enum byoc_status status, const struct byoc_error *err)
{
    struct client *c = ctx;
    int again, first;
    pthread_mutex_lock(&lock);
    first = c->n_done + c->n_cancelled + c->n_failed == 0;
    c->n_done += status == BYOC_OK;
    c->n_cancelled += status == BYOC_ECANCELLED;
    c->n_failed += status != BYOC_OK && status != BYOC_ECANCELLED;
    again = c->n_to_queue > 0;
    c->n_to_queue -= again;
    pthread_mutex_unlock(&lock);
    if (status != BYOC_OK && status != BYOC_ECANCELLED)
        fprintf(stderr, "%s: %s\n", c->tag, err->text);
    /* read outputs here, before the state runs again */
    if (again &&
        byoc_run_async(state, &c->request, end_request, c, NULL) == BYOC_OK) {
        /* the state is valid until this returns: byoc_state_free waits */
        if (first && c->cancels)
            byoc_state_cancel(state);
        return;
    }
    pthread_mutex_lock(&lock);
    c->n_to_queue = -1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Queue the client's first request. Returns 0, or -1 with the reason in err. */
static int start(struct client *c, const struct byoc_model *model, int id,
                 int requests, struct byoc_error *err)
{
    const struct byoc_io *io = byoc_model_input(model, 0);
    size_t n = 1;
    for (uint32_t i = 0; i < io->rank; i++)
        n *= (size_t)io->dims[i];
    snprintf(c->tag, sizeof c->tag, "client %d", id);
    c->n_to_queue = requests - 1;
    c->in = (struct byoc_binding){
        .name = io->name,
        .value.tensor = {.data = calloc(n, byoc_dtype_size(io->dtype)),
                         .device = {kDLCPU, 0},
                         .ndim = (int)io->rank,
                         .dtype = byoc_dtype_dlpack(io->dtype),
                         .shape = (int64_t *)io->dims}};
    c->out = (struct byoc_binding){.name = byoc_model_output(model, 0)->name};
    c->request = (struct byoc_request){.struct_size = sizeof c->request,
                                       .n_inputs = 1,
                                       .inputs = &c->in,
                                       .n_outputs = 1,
                                       .outputs = &c->out,
                                       .tag = c->tag};
    if (byoc_state_new(model, &c->state, err) ||
        byoc_run_async(c->state, &c->request, end_request, c, err))
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {.text = "usage: callbacks MODEL.so REQUESTS"};
    struct byoc_load_params params = {.struct_size = sizeof params,
                                      .runners = 2};
    struct client clients[3] = {0};
    struct byoc_model *model = NULL;
    int n_done = 0, n_cancelled = 0, n_failed = 0;
    if (argc != 3 || byoc_model_load(argv[1], &params, &model, &err))
        return fprintf(stderr, "%s\n", err.text), 2;
    clients[2].cancels = 1;
    for (int i = 0; i < 3; i++)
        if (start(&clients[i], model, i, atoi(argv[2]), &err))
            return fprintf(stderr, "%s\n", err.text), 2;
    for (int i = 0; i < 3; i++) {
        struct client *c = &clients[i];
        pthread_mutex_lock(&lock);
        while (c->n_to_queue >= 0)
            pthread_cond_wait(&changed, &lock);
        n_done += c->n_done;
        n_cancelled += c->n_cancelled;
        n_failed += c->n_failed;
        pthread_mutex_unlock(&lock);
        byoc_state_free(&c->state); /* waits for the callback */
        free(c->in.value.tensor.data);
    }
    byoc_model_free(&model);
    printf("%d done, %d cancelled, %d failed\n", n_done, n_cancelled, n_failed);
    return n_failed ? 1 : 0;
}
