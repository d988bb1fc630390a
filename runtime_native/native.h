/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_native/native.h: the native kernels: one for every operator of the
 * table, behind one signature.
 */
#ifndef BYI_NATIVE_H
#define BYI_NATIVE_H

#include "core/ops/ops.h"

/* The number of the calling thread in its parallel region; 0 outside. */
static inline int64_t byi_lane(void)
{
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Memory of strings that kernels make, freed all at once. Zero-initialise but
 * for the limit. */
struct byi_string_store {
    struct byi_string_chunk *chunks;
    uint64_t bytes, limit;
};

/* text.c. Room for n bytes and a NUL, which is there; NULL: exhausted. */
char *byi_store_string(struct byi_string_store *store, size_t n);
/* Free all of them. */
void byi_store_reset(struct byi_string_store *store);

/* One call of a kernel. Tensors are dense and row-major; outputs have dtype,
 * dims and memory, and never overlap inputs. */
struct byi_call {
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    uint32_t n_in, n_out;
    const struct byi_tensor *in;
    struct byi_tensor *out;
    void *scratch;      /* as many bytes as the row's scratch() asked for */
    const void *packed; /* what byi_packing's pack() left, or NULL       */
    uint32_t threads;   /* at least 1: for omp num_threads()             */
    struct byi_string_store *strings; /* for strings it makes; NULL: it must
                                         not                                */
    uint64_t draw; /* random numbers: how often any were drawn before */
};

/* A kernel. Runs on checked types (byi_infer_type accepted them); refuses
 * element types it does not do with BYOC_EUNSUPPORTED "OP: dtype ... is not
 * supported, ...". Bad values (an index out of range) give BYOC_EINVAL.
 * Allocates nothing, keeps nothing: any number may run at once. A kernel whose
 * result's size depends on data gets an upper bound and may lower dims[]. */
typedef enum byoc_status (*byi_kernel_fn)(const struct byi_call *call,
                                          struct byoc_error *err);

struct byi_kernel {
    byi_kernel_fn run;
    /* Bytes of scratch for these tensors (data may be NULL); NULL: none. */
    uint64_t (*scratch)(const struct byi_call *call);
};

/* What a kernel does once with constant operands, so that run() has them as it
 * reads them best. */
struct byi_packing {
    enum byi_op_id op;
    uint32_t operands; /* bit i: operand i must be constant */
    /* The bytes that takes; 0 where they are fine as they are. `to` NULL: only
     * that, else memory for them, aligned to BYI_ALIGN. Of the other operands
     * and of results only types are looked at; dims that vary are negative.
     * It serves any number of runs with the same constants, and as long as the
     * instruction set is the same. */
    uint64_t (*pack)(const struct byi_call *call, void *to);
};

/* Every file of kernels exports rows { operator, kernel }. table.c puts them
 * together and asserts in a test that no operator is without. */
struct byi_kernel_row {
    enum byi_op_id op;
    struct byi_kernel kernel;
};

/* table.c. NULL where the operator has no kernel. */
const struct byi_kernel *byi_kernel_of(enum byi_op_id op);
/* table.c. NULL where there is nothing to pack. */
const struct byi_packing *byi_packing_of(enum byi_op_id op);
/* Run with scratch from the heap: folding, tests, tools. */
BYOC_API enum byoc_status byoc_internal_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    uint32_t threads, struct byoc_error *err);

/* simd.c. The machine and the widest of its instruction sets that native
 * kernels are made for: "x86_64 avx512". */
BYOC_API const char *byoc_internal_cpu(void);

#endif
