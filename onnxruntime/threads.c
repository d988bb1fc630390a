/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c: runs byoc's parallel loops on the threads of ONNX Runtime's
 * session.
 */
#include "onnxruntime/provider.h"

/* The context of the fused node that runs on this thread, or NULL. The node's
 * session provides the threads. */
static _Thread_local const OrtKernelContext *current_context;

const OrtKernelContext *byi_ep_threads_enter(const OrtKernelContext *context)
{
    const OrtKernelContext *outer = current_context;
    current_context = context;
    return outer;
}

void byi_ep_threads_leave(const OrtKernelContext *outer)
{
    current_context = outer;
}

/* A loop of byoc, for run_part. */
struct byi_ep_loop {
    void (*fn)(void *arg, uint32_t part);
    void *arg;
};

static void run_part(void *loop, size_t part)
{
    const struct byi_ep_loop *l = loop;
    l->fn(l->arg, (uint32_t)part);
}

void byi_ep_parallel_for(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg)
{
    const OrtApi *ort = ctx;
    struct byi_ep_loop loop = {fn, arg};
    OrtStatus *status = NULL;
    if (current_context && n > 1) {
        status = ort->KernelContext_ParallelFor(current_context, run_part, n, 0,
                                                &loop);
        if (!status)
            return;
        ort->ReleaseStatus(status); /* the loop failed before it ran any part */
    }
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
}
