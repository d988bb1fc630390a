/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: runs operators that plug-ins define (core/ops/custom.h). */
#include "kernel.h"

#include "core/ops/custom.h"

/* The text() of struct byoc_operator_call: allocates a string of n bytes in the
 * call's store; returns NULL if it cannot. */
static char *allocate_text(const struct byoc_operator_call *call, uint64_t n)
{
    const struct byi_call *native = call->ctx;
    return native->strings && n < SIZE_MAX
               ? byi_store_string(native->strings, (size_t)n)
               : NULL;
}

/* Set the dims of results that run() lowered; they must not exceed the bounds
 * of shape(). */
static enum byoc_status set_sizes(const struct byi_call *call,
                                  const struct byi_custom_call *c,
                                  struct byoc_error *err)
{
    for (uint32_t i = 0; i < call->n_out; i++)
        for (uint32_t d = 0; d < call->out[i].rank; d++) {
            const int64_t size = c->results[i].dims[d];
            if (size < 0 || size > call->out[i].dims[d])
                return byi_fail(
                    err, BYOC_EBACKEND,
                    "%s: its run() gave axis %u of result %u the "
                    "size %lld, expected 0 to %lld, the bound of its shape()",
                    byi_attr_string(call->attrs, "op"), d, i, (long long)size,
                    (long long)call->out[i].dims[d]);
            call->out[i].dims[d] = size;
        }
    return BYOC_OK;
}

static enum byoc_status custom_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    struct byoc_view operands[BYI_CUSTOM_INPUTS];
    struct byi_custom_call c;
    for (uint32_t i = 0; i < call->n_in; i++)
        operands[i] = (struct byoc_view){
            .dtype = call->in[i].dtype,
            .rank = call->in[i].rank,
            .dims = call->in[i].dims,
            .data = call->in[i].data,
            .bytes = byi_tensor_bytes(&call->in[i]),
        };
    BYI_TRY(byi_custom_begin(call->attrs, call->n_in, operands, &c, err));
    for (uint32_t i = 0; i < call->n_out; i++) {
        c.results[i] = (struct byoc_result){
            .dtype = call->out[i].dtype,
            .rank = call->out[i].rank,
            .data = call->out[i].data,
            .bytes = byi_tensor_bytes(&call->out[i]),
        };
        memcpy(c.results[i].dims, call->out[i].dims,
               call->out[i].rank * sizeof *c.results[i].dims);
    }
    c.call.text = allocate_text;
    c.call.ctx = (void *)(uintptr_t)call;
    BYI_TRY(byi_custom_invoke(&c, true, err));
    return set_sizes(call, &c, err);
}

BYI_KERNEL_ROWS(custom, {BYI_OP_CUSTOM, {custom_run, NULL}})
