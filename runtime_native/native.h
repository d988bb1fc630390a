/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_native/native.h: the native kernels, at least one per operator of
 * ops.def, behind one signature.
 */
#ifndef BYI_NATIVE_H
#define BYI_NATIVE_H

#include "core/ops/epilogue.h"
#include "core/ops/ops.h"

/* The calling thread's number in its parallel region; 0 outside of one. */
static inline int64_t byi_lane(void)
{
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Memory of the strings that kernels create, freed as a whole. Zero-initialise
 * all but the limit. */
struct byi_string_store {
    struct byi_string_chunk *chunks;
    uint64_t bytes, limit;
};

/* text.c. A NUL-terminated buffer for n bytes; NULL if the limit or memory is
 * exhausted. */
char *byi_store_string(struct byi_string_store *store, size_t n);
/* Discard all strings, and keep memory for the next ones; or free all memory.
 */
void byi_store_reset(struct byi_string_store *store);
void byi_store_free(struct byi_string_store *store);

/* One call of a kernel. Tensors are dense and row-major; outputs have dtype,
 * dims and memory, and never overlap inputs. */
struct byi_call {
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    uint32_t n_in, n_out;
    const struct byi_tensor *in;
    struct byi_tensor *out;
    void *scratch;      /* of the size that the kernel's scratch() returned */
    const void *packed; /* result of byi_packing's pack(), or NULL          */
    /* Operators to apply to the result; their operands are the last of in[]. */
    uint32_t n_epilogue;
    const struct byi_epilogue_op *epilogue;
    bool exact; /* use no algorithm that rounds more than sums of products do */
    uint32_t threads; /* at least 1: for omp num_threads() */
    /* for strings the kernel creates; NULL: it must not create any */
    struct byi_string_store *strings;
    uint64_t draw; /* number of earlier draws of random numbers in this state */
};

/* A kernel. byi_infer_type has accepted the types. Returns BYOC_EUNSUPPORTED,
 * "OP: dtype ... is not supported, ...", for an element type it does not
 * implement, and BYOC_EINVAL for bad values (an index out of range).
 * Allocates nothing and keeps no state, so that any number may run at once. If
 * the result's size depends on data, dims[] come in as upper bounds and the
 * kernel may lower them. */
typedef enum byoc_status (*byi_kernel_fn)(const struct byi_call *call,
                                          struct byoc_error *err);

struct byi_kernel {
    byi_kernel_fn run;
    /* Bytes of scratch for these tensors (data may be NULL); NULL: none. */
    uint64_t (*scratch)(const struct byi_call *call);
};

/* Prepares constant operands once, in the form in which run() reads them
 * fastest. */
struct byi_packing {
    enum byi_op_id op;
    uint32_t operands; /* bit i: operand i must be constant */
    /* Returns the bytes of the packed form, 0 if packing does not pay, and
     * writes it to `to`, aligned to BYI_ALIGN, unless that is NULL. Reads only
     * the types of other operands and of results; unknown dims are negative.
     * The packed form serves any number of runs with the same constants on the
     * same instruction set. */
    uint64_t (*pack)(const struct byi_call *call, void *to);
};

/* Every kernel file exports rows { operator, kernel }, which table.c collects.
 * A test asserts that every operator has a row. */
struct byi_kernel_row {
    enum byi_op_id op;
    struct byi_kernel kernel;
};

/* table.c. NULL if the operator has no kernel. */
const struct byi_kernel *byi_kernel_of(enum byi_op_id op);
/* table.c. NULL if the operator packs no operands. */
const struct byi_packing *byi_packing_of(enum byi_op_id op);
/* table.c. The algorithm of the call's kernel, for profiles:
 * "winograd_4x4:avx2"; NULL: it has no name. */
const char *byi_algorithm_of(const struct byi_call *call);
/* Run with scratch from the heap: for constant folding, tests and tools. */
BYOC_API enum byoc_status byoc_internal_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    uint32_t threads, struct byoc_error *err);

/* simd.c. The machine and its widest instruction set that native kernels use:
 * "x86_64 avx512". */
BYOC_API const char *byoc_internal_cpu(void);

#endif
