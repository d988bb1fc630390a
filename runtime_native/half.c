/* SPDX-License-Identifier: Apache-2.0 */
/* half.c: runs kernels on float16 and bfloat16. CPUs rarely compute in these
 * types, so a float kernel runs on float32 copies in scratch. Inputs are
 * widened before the call and results narrowed after it, which rounds once. */
#include "kernel.h"

#include "kernels/f32.h"

/* The largest number of operands or results of a float kernel. */
enum { MAX_OPERANDS = 8 };

enum { BLOCK = 16384 }; /* elements that a thread converts at a time */

void byi_widen(enum byoc_dtype dtype, const void *src, float *dst, int64_t n)
{
    byi_f32_kernels_of(byi_simd_isa())->widen[dtype == BYOC_BF16](src, dst, n);
}

void byi_narrow(enum byoc_dtype dtype, const float *src, void *dst, int64_t n)
{
    byi_f32_kernels_of(byi_simd_isa())->narrow[dtype == BYOC_BF16](src, dst, n);
}

/* A call on float32 copies. */
struct wide_call {
    struct byi_call call;
    struct byi_tensor in[MAX_OPERANDS], out[MAX_OPERANDS];
    bool has_copies; /* whether any tensor is a copy */
};

/* Replace float16 and bfloat16 tensors of `from` by float32 ones at scratch +
 * *used. Returns whether it replaced any. */
static bool place_copies(uint32_t n, const struct byi_tensor *from,
                         struct byi_tensor *to, char *scratch, uint64_t *used)
{
    bool has_copies = false;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        if (!byi_dtype_is_half(from[i].dtype))
            continue;
        to[i].dtype = BYOC_F32;
        to[i].data = byi_take_bytes(
            scratch, used, (uint64_t)byi_count(&from[i]) * sizeof(float));
        has_copies = true;
    }
    return has_copies;
}

/* Prepare the call on float32 copies. Returns the bytes of scratch that the
 * copies need. */
static uint64_t widen_call(const struct byi_call *call, struct wide_call *w)
{
    assert(call->n_in <= MAX_OPERANDS && call->n_out <= MAX_OPERANDS);
    uint64_t used = 0;
    bool in = place_copies(call->n_in, call->in, w->in, call->scratch, &used);
    bool out =
        place_copies(call->n_out, call->out, w->out, call->scratch, &used);
    w->has_copies = in || out;
    w->call = *call;
    w->call.in = w->in;
    w->call.out = w->out;
    w->call.scratch =
        call->scratch ? (char *)call->scratch + used : call->scratch;
    return used;
}

uint64_t byi_scratch_float(const struct byi_call *call,
                           const struct byi_kernel *kernel)
{
    struct byi_call unplaced = *call; /* copies get no addresses */
    struct wide_call w;
    unplaced.scratch = NULL;
    uint64_t copies = widen_call(&unplaced, &w);
    return copies + (kernel->scratch ? kernel->scratch(&w.call) : 0);
}

/* Widen or narrow a whole tensor, on the call's threads. */
static void convert_all(const struct byi_call *call,
                        const struct byi_tensor *from,
                        const struct byi_tensor *to)
{
    const int64_t n = byi_count(from);
    const int team = byi_team(call, n);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t count = byi_min(BLOCK, n - at);
        if (byi_dtype_is_half(from->dtype))
            byi_widen(from->dtype, (const uint16_t *)from->data + at,
                      (float *)to->data + at, count);
        else
            byi_narrow(to->dtype, (const float *)from->data + at,
                       (uint16_t *)to->data + at, count);
    }
}

enum byoc_status byi_run_float(const struct byi_call *call,
                               const struct byi_kernel *kernel,
                               struct byoc_error *err)
{
    struct wide_call w;
    widen_call(call, &w);
    if (!w.has_copies)
        return kernel->run(call, err);

    for (uint32_t i = 0; i < call->n_in; i++)
        if (byi_dtype_is_half(call->in[i].dtype))
            convert_all(call, &call->in[i], &w.in[i]);
    BYI_TRY(kernel->run(&w.call, err));
    for (uint32_t i = 0; i < call->n_out; i++)
        if (byi_dtype_is_half(call->out[i].dtype))
            convert_all(call, &w.out[i], &call->out[i]);
    return BYOC_OK;
}

enum byoc_status byi_bad_dtype(const struct byi_call *call,
                               enum byoc_dtype dtype, const char *expected,
                               struct byoc_error *err)
{
    const char *name = byoc_dtype_name(dtype);
    return byi_fail(err, BYOC_EUNSUPPORTED, "%s: found dtype %s, expected %s",
                    call->op->name, name ? name : "unknown", expected);
}

enum byoc_status byi_check_wide(const struct byi_call *call,
                                enum byoc_dtype dtype, struct byoc_error *err)
{
    return byi_dtype_is_wide(dtype)
               ? BYOC_OK
               : byi_bad_dtype(call, dtype,
                               "float16, bfloat16, float32 or float64", err);
}
