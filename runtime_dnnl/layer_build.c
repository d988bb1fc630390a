/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer_build.c: lets oneDNN generate the code of primitives. */
#include "runtime_dnnl/layer_dnnl.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Multiply matrices of such shapes that oneDNN generates all kernels of its
 * matrix product. */
static bool run_gemm(void)
{
    enum { N = 64 };
    static const dnnl_dim_t sizes[] = {1, N};
    static float a[N * N], c[N * N];
    bool ok = true;
    for (size_t i = 0; i < BYI_COUNT(sizes); i++) {
        const dnnl_dim_t n = sizes[i];
        ok = ok && dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, a, n, 0.0f, c,
                              n) == dnnl_success;
    }
    return ok;
}

/* Make oneDNN generate the code of its matrix product. Otherwise the first run
 * of a primitive that multiplies matrices generates it, and crashes if there is
 * no memory for the code. Returns BYOC_ENOMEM if less than BYTES can be
 * allocated; the next call then tries again. Threads may call it at the same
 * time. */
static enum byoc_status generate_gemm(struct byoc_error *err)
{
    enum { BYTES = 8 << 20 }; /* more than the code takes */
    static bool is_generated;
    enum byoc_status status = BYOC_OK;
    pthread_mutex_lock(&lock);
    void *memory = NULL;
    if (!is_generated)
        memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        status = byi_fail(err, BYOC_ENOMEM,
                          "out of memory for oneDNN's matrix product");
    else if (memory) {
        munmap(memory, BYTES);
        is_generated = run_gemm();
    }
    pthread_mutex_unlock(&lock);
    return status;
}

enum byoc_status byi_prim_build(struct byi_prim *prim, struct byoc_error *err)
{
    if (prim->prim || prim->fast)
        return BYOC_OK;
    if (strstr(prim->impl, "gemm"))
        BYI_TRY(generate_gemm(err));
    const dnnl_status_t status = dnnl_primitive_create(&prim->prim, prim->pd);
    if (status == dnnl_success)
        return BYOC_OK;
    prim->prim = NULL;
    return byi_fail(
        err, status == dnnl_out_of_memory ? BYOC_ENOMEM : BYOC_EBACKEND,
        "oneDNN failed to generate %s (status %d)", prim->impl, (int)status);
}

void byi_prim_unbuild(struct byi_prim *prim)
{
    if (prim->prim)
        dnnl_primitive_destroy(prim->prim);
    prim->prim = NULL;
}
