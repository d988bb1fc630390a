/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_native/native.h: the native kernels, all with one signature: one for
 * each operator of ops.def except those on sequences and optionals
 * (BYI_TRAIT_LIST), which runtime/list.c runs. */
#ifndef BYI_NATIVE_H
#define BYI_NATIVE_H

#include "core/ops/epilogue.h"
#include "core/ops/ops.h"

/* The number of the calling thread's part of the OpenMP region; 0 outside of a
 * region. */
static inline int64_t byi_part_number(void)
{
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Memory of the strings that kernels create, freed as a whole. Zero-initialise
 * all members but `limit`, which is in bytes. */
struct byi_string_store {
    struct byi_string_chunk *chunks;
    uint64_t bytes, limit;
};

/* text.c. Allocate a NUL-terminated buffer for n bytes, which the store owns;
 * NULL if the limit or memory is exhausted. */
char *byi_store_string(struct byi_string_store *store, size_t n);
/* text.c. Replace each of n strings that the store does not own by a copy in
 * the store. Returns NULL, or the string that could not be copied because the
 * limit or memory is exhausted. */
const char *byi_store_copies(struct byi_string_store *store, const char **at,
                             int64_t n);
/* text.c. byi_store_reset discards all strings and keeps memory for the next
 * ones; byi_store_free frees all memory. */
void byi_store_reset(struct byi_string_store *store);
void byi_store_free(struct byi_string_store *store);

/* One call of a kernel. Tensors are dense and row-major; outputs have dtype,
 * dims and memory. Outputs do not overlap inputs, except that an output of
 * concatenate, nn.cache_append or a scatter may be at the address of in[0]. */
struct byi_call {
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    uint32_t n_in, n_out;
    const struct byi_tensor *in;
    struct byi_tensor *out;
    void *scratch;      /* as many bytes as the kernel's scratch() returned */
    const void *packed; /* result of byi_packing's pack(), or NULL          */
    /* Operators to apply to the result; their operands are the last ones of
     * in[]. */
    uint32_t n_epilogue;
    const struct byi_epilogue_op *epilogue;
    bool exact; /* use no algorithm with larger rounding errors than sums of
                 * products */
    uint32_t threads; /* for omp num_threads(); at least 1 */
    /* for strings that the kernel creates; NULL: it must not create any */
    struct byi_string_store *strings;
    uint64_t draw; /* number of earlier draws of random numbers in this state */
};

/* cache.c. Run nn.cache_append on planes (one per sequence and head) that begin
 * past_pitch bytes apart in past, and to_pitch bytes apart in the result. If
 * the result has past's memory, the other rows of past stay. */
void byi_cache_append(const struct byi_call *call, uint64_t past_pitch,
                      uint64_t to_pitch);

/* The planes of an operand, one for each position of its first `axes` axes,
 * begin `pitch` bytes apart; pitch 0: the operand is dense. */
struct byi_head_planes {
    uint32_t axes;
    uint64_t pitch;
};

/* attention.c. Run nn.attention; planes[] are those of keys and values, NULL if
 * both are dense. */
void byi_attention_run(const struct byi_call *call,
                       const struct byi_head_planes planes[2]);

/* A kernel. byi_infer_type has accepted the types. Returns BYOC_EUNSUPPORTED,
 * "OP: found dtype X, expected ...", for an element type that it does not
 * implement, and BYOC_EINVAL for bad values (an index out of range). Kernels of
 * strings may also return BYOC_ENOMEM or BYOC_ELIMIT: they allocate strings
 * from call->strings, and memory for matching. Other kernels allocate nothing.
 * Any number of calls may run at once, each with a string store of its own. If
 * the result's size depends on data, dims[] come in as upper bounds and the
 * kernel may lower them. */
typedef enum byoc_status byi_kernel_run(const struct byi_call *call,
                                        struct byoc_error *err);
typedef byi_kernel_run *byi_kernel_fn;

struct byi_kernel {
    byi_kernel_fn run;
    /* Bytes of scratch for these tensors, whose data may be NULL. The member is
     * NULL if the kernel needs no scratch. */
    uint64_t (*scratch)(const struct byi_call *call);
};

/* Packs constant operands once into the form that run() reads fastest. */
struct byi_packing {
    enum byi_op_id op;
    uint32_t operands; /* bit i: operand i must be constant */
    /* Returns the bytes of the packed form, or 0 if packing does not save time.
     * Writes the packed form to `to`, aligned to BYI_ALIGN, unless `to` is
     * NULL. Reads only the types of other operands and of results; unknown dims
     * are negative. The packed form serves any number of runs with the same
     * constants on the same instruction set. */
    uint64_t (*pack)(const struct byi_call *call, void *to);
};

/* Every kernel file exports rows, which table.c collects. A test asserts that
 * every operator without BYI_TRAIT_LIST has a row. */
struct byi_kernel_row {
    enum byi_op_id op;
    struct byi_kernel kernel;
};

/* table.c. The operator's kernel; NULL for an operator with BYI_TRAIT_LIST. */
const struct byi_kernel *byi_kernel_of(enum byi_op_id op);
/* table.c. The operator's packing; NULL if it packs no operands. */
const struct byi_packing *byi_packing_of(enum byi_op_id op);
/* table.c. The name of the algorithm that the call's kernel uses, for profiles,
 * such as "winograd_4x4:avx2", a static string; NULL if it has no name. */
const char *byi_algorithm_of(const struct byi_call *call);
/* table.c. Run an operator's kernel with scratch from the heap, for constant
 * folding, tests and tools. Errors: those of the kernel, and BYOC_ENOMEM. */
BYOC_API enum byoc_status byoc_internal_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    uint32_t threads, struct byoc_error *err);
/* The same with one thread: a byi_eval_fn of core/ir. */
static inline enum byoc_status byi_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    struct byoc_error *err)
{
    return byoc_internal_kernel_eval(op, attrs, n_in, in, n_out, out, 1, err);
}

/* simd.c. The machine and the widest instruction set that native kernels use on
 * it, such as "x86_64 avx512"; a static string. */
BYOC_API const char *byoc_internal_cpu(void);

#endif
