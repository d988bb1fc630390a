/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/runtime.h: load a compiled model and run it.
 *
 * Link with libbyoc_runtime.so; nothing of the compiler is needed. A loaded
 * model is immutable and may be shared by any number of threads; each thread
 * (or request) runs it through a state of its own. Nothing here prints or
 * exits, and of its arguments only byoc_load_params.log and log_ctx are kept
 * after the call. Pointers must not be NULL where nothing says they may.
 *
 * Where memory runs out a call gives BYOC_ENOMEM: for weights, primitives,
 * states and results, which are all that is large. The small tables a model is
 * read into, and the shapes of a run whose shapes vary, abort the process
 * instead.
 *
 *     struct byoc_error err;
 *     struct byoc_model *model = NULL;
 *     struct byoc_state *state = NULL;
 *     if (byoc_model_load("model.so", NULL, &model, &err) ||
 *         byoc_state_new(model, &state, &err) ||
 *         byoc_run(state, inputs, n_inputs, outputs, n_outputs, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     byoc_state_free(&state);
 *     byoc_model_free(&model);
 */
#ifndef BYOC_RUNTIME_H
#define BYOC_RUNTIME_H

#include <stdint.h>

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BYOC_API __attribute__((visibility("default")))
#define BYOC_CHECKED __attribute__((warn_unused_result))
#else
#define BYOC_API
#define BYOC_CHECKED
#endif

/* What a call came to; 0 is success. The values never change. */
enum byoc_status {
    BYOC_OK = 0,
    BYOC_EINVAL = 1,        /* an argument is wrong                       */
    BYOC_EPARSE = 2,        /* a file or text is malformed                */
    BYOC_ETYPE = 3,         /* element types or shapes do not fit         */
    BYOC_EUNSUPPORTED = 4,  /* a known thing that this build cannot do    */
    BYOC_ENOMEM = 5,        /* memory is exhausted                        */
    BYOC_EIO = 6,           /* reading or writing failed                  */
    BYOC_EINCOMPATIBLE = 7, /* made by another version or for another CPU */
    BYOC_EBACKEND = 8,      /* a vendor's plug-in failed                  */
    BYOC_ELIMIT = 9,        /* a stated limit was exceeded                */
    BYOC_EINTERNAL = 10,    /* a bug in byoc                              */
    BYOC_ECANCELLED = 11    /* byoc_state_cancel() ended the run          */
};

/* A fixed phrase for `status`, for example "malformed input". Never NULL. */
BYOC_API const char *byoc_status_text(enum byoc_status status);

/* Where a failing call leaves its message: one sentence, lower-case, that
 * says what was found, what was expected and what to try. Every `err`
 * parameter may be NULL. The text is only written on failure. */
struct byoc_error {
    enum byoc_status status;
    char text[1020];
};

/* Element types, numbered as ONNX's TensorProto.DataType. */
enum byoc_dtype {
    BYOC_NONE = 0,
    BYOC_F32 = 1,
    BYOC_U8 = 2,
    BYOC_I8 = 3,
    BYOC_U16 = 4,
    BYOC_I16 = 5,
    BYOC_I32 = 6,
    BYOC_I64 = 7,
    BYOC_STRING = 8,
    BYOC_BOOL = 9,
    BYOC_F16 = 10,
    BYOC_F64 = 11,
    BYOC_U32 = 12,
    BYOC_U64 = 13,
    BYOC_C64 = 14,
    BYOC_C128 = 15,
    BYOC_BF16 = 16
};

/* "float32" and so on; NULL when `dtype` is not one of the above. */
BYOC_API const char *byoc_dtype_name(enum byoc_dtype dtype);
/* Bytes of one element; 0 for strings, which have no fixed size, and unknown
 * types. In memory an element that is a string is a `const char *` to bytes
 * that end in a NUL, as a rule UTF-8. */
BYOC_API uint32_t byoc_dtype_size(enum byoc_dtype dtype);
/* The DLPack type of a dtype. DLPack 0.6 has no boolean: bool is {UInt, 8},
 * and an input declared bool takes exactly that. */
BYOC_API DLDataType byoc_dtype_dlpack(enum byoc_dtype dtype);

/* "0.1.0": of the library that is loaded. */
BYOC_API const char *byoc_version(void);

/* How a thread waits for other threads of a run, and for the next run. */
enum byoc_wait {
    BYOC_WAIT_DEFAULT = 0, /* BYOC_WAIT_POLICY: "brief", "sleep" or "spin";
                              else brief                                    */
    BYOC_WAIT_BRIEF = 1,   /* spin for some 50 microseconds, then sleep      */
    BYOC_WAIT_SLEEP = 2,   /* sleep at once: for machines with other work    */
    BYOC_WAIT_SPIN = 3     /* spin for 10 milliseconds: for CPUs of one's own */
};

/* Options of loading. Zero-initialise; a zero field means the default. */
struct byoc_load_params {
    uint32_t threads;      /* 0: BYOC_NUM_THREADS, OMP_NUM_THREADS, then the
                              CPUs this process may use (affinity, cgroup),
                              which are the most in any case                */
    const char *plugins;   /* where more of vendors' plug-ins are: absolute
                              paths of files or folders, ':' between; NULL:
                              those of the environment's BYOC_PLUGIN_PATH.
                              After them come the folder of
                              libbyoc_runtime.so and its subfolder "byoc",
                              unless one of the entries is the word "only".
                              Plug-ins of the environment and of these folders
                              are not loaded where everybody may write, or a
                              user other than root, this one and the owner of
                              libbyoc_runtime.so owns them                  */
    int native_only;       /* not 0: every region runs its native twin      */
    int require_vendors;   /* not 0: a vendor that is missing or fails is an
                              error, not a reason to run the native twin    */
    uint32_t cache_shapes; /* of a model whose inputs' sizes vary: for so many
                              sizes it is kept ready; 0: BYOC_CACHE_SHAPES,
                              else 32                                       */
    int verify;            /* not 0: check every hash of the artifact before
                              it is used, also that of the weights, which are
                              read for it; damage is BYOC_EPARSE. Where 0, all
                              but the weights is checked                    */
    uint64_t cache_bytes;  /* and in so much memory; 0: BYOC_CACHE_BYTES, else
                              1 GiB                                         */
    void (*log)(void *ctx, const char *line); /* progress, warnings and what
                              vendors say, a line without newline, which
                              begins with "warning: " where it is one, such
                              as a region that its vendor refuses for the
                              sizes of a run (once for each region); NULL:
                              none. Called while the model lives, by vendors
                              from any thread                               */
    void *log_ctx;       /* lives as long as the model                    */
    enum byoc_wait wait; /* how threads wait for work                     */
    /* Not NULL: run the parallel parts of runs here, rather than on the threads
     * that all models of this process share: fn(arg, 0) ... fn(arg, n - 1),
     * each once, in any order, on any threads; return when all are done. n is
     * at most `threads`, but for a backend that asks for more. A part may wait
     * for another part; those that have not begun after 2 ms then get threads
     * of byoc's. Called while the model lives, from the threads that run it. */
    void (*parallel_for)(void *ctx, uint32_t n, void (*fn)(void *arg, uint32_t),
                         void *arg);
    void *parallel_ctx; /* lives as long as the model               */
};

struct byoc_model; /* a loaded model: immutable, shared by threads */
struct byoc_state; /* memory of one run at a time: one per thread   */

/* Load the artifact at `path` (made by `byoc compile`) into *model.
 * Maps the weights, loads the vendors' plug-ins, builds their primitives and
 * packs their weights: all that is slow happens here.
 * params NULL: the defaults. Errors: BYOC_EIO (no such file), BYOC_EPARSE
 * (not an artifact, or a damaged one), BYOC_EINCOMPATIBLE (other version),
 * BYOC_EBACKEND (require_vendors), BYOC_EINVAL (threads, wait, also those of
 * BYOC_NUM_THREADS and BYOC_WAIT_POLICY), BYOC_ELIMIT, BYOC_ENOMEM. On failure
 * *model is NULL and nothing is left behind but the libraries of vendors that
 * cannot be closed. Threads: safe. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_load(
    const char *path, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* Free *model and null it; *model may be NULL. Its states must be gone. */
BYOC_API void byoc_model_free(struct byoc_model **model);

/* What a value is. */
enum byoc_kind {
    BYOC_TENSOR = 0,
    BYOC_SEQUENCE = 1, /* any number of values of one type */
    BYOC_OPTIONAL = 2  /* one value, or none               */
};

/* One input or output of a model. Strings and arrays live as long as it. */
struct byoc_io {
    const char *name;
    enum byoc_dtype dtype;
    uint32_t rank;
    const int64_t *dims;          /* rank numbers; -1 where the size varies */
    const char *const *dim_names; /* the symbol of a dim that varies, or NULL */
    enum byoc_kind kind; /* no tensor: the above are BYOC_NONE, 0, NULL */
    const struct byoc_io
        *element; /* of a sequence or optional: what is in it,
                     name "" ; rank UINT32_MAX: any. Else NULL */
};

BYOC_API uint32_t byoc_model_n_inputs(const struct byoc_model *model);
BYOC_API uint32_t byoc_model_n_outputs(const struct byoc_model *model);
/* Input or output `index`; NULL when there is none of that number. */
BYOC_API const struct byoc_io *byoc_model_input(const struct byoc_model *model,
                                                uint32_t index);
BYOC_API const struct byoc_io *byoc_model_output(const struct byoc_model *model,
                                                 uint32_t index);
/* How many threads a run uses; *why, unless NULL, gets a phrase that says
 * where the number is from, and lives as long as the model. */
BYOC_API uint32_t byoc_model_threads(const struct byoc_model *model,
                                     const char **why);
/* Warnings of loading, such as a vendor whose native twin runs instead; one
 * a line, "" when there are none. Lives as long as the model. */
BYOC_API const char *byoc_model_warnings(const struct byoc_model *model);

/* A symbolic dim and a size for it. */
struct byoc_dim {
    const char *name;
    int64_t size;
};

/* Make the model ready for sizes before traffic comes: as a run with them
 * would, its vendors build their regions, and memory for one run is there.
 * dims  one for every symbolic dim of the inputs, in any order
 * Errors: BYOC_EINVAL (a name that no input's shape has, one that is missing,
 * a negative size, inputs that do not vary), BYOC_ETYPE (sizes that the model
 * does not take), BYOC_ELIMIT, BYOC_ENOMEM. Threads: safe. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_warm(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byoc_error *err);

/* What a model whose inputs' sizes vary keeps ready, and how that went. All
 * are 0 where they do not vary. */
struct byoc_cache_stats {
    uint64_t hits;       /* runs whose sizes were there, or being built     */
    uint64_t misses;     /* runs whose sizes were not                       */
    uint64_t builds;     /* sizes that were built                           */
    uint64_t failures;   /* sizes that the model does not take, and builds
                            that ran out of memory                          */
    uint64_t refusals;   /* regions that run their native twin for the sizes
                            of a build, for their vendor refused            */
    uint64_t evictions;  /* sizes that went to keep to the limits           */
    uint64_t bytes;      /* held now: plans, memory of runs, and what vendors
                            acquired of the host for them                   */
    uint64_t peak_bytes; /* the most after any run                          */
    uint64_t max_bytes;  /* the limits: what runs may exceed them           */
    uint32_t max_shapes;
    uint32_t shapes; /* sizes that are kept now                         */
};
/* Threads: safe. */
BYOC_API void byoc_model_cache(const struct byoc_model *model,
                               struct byoc_cache_stats *stats);

/* Make a state for `model`: all memory a run needs where shapes are fixed.
 * The model must outlive it. Errors: BYOC_ENOMEM, and what a vendor says
 * (BYOC_EBACKEND, BYOC_EUNSUPPORTED, BYOC_EINCOMPATIBLE). On failure *state is
 * NULL. Threads: safe. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_state_new(
    const struct byoc_model *model, struct byoc_state **state,
    struct byoc_error *err);
/* Free *state, close its trace, and null it; *state may be NULL. */
BYOC_API void byoc_state_free(struct byoc_state **state);

/* Run once.
 * inputs   one view per input, in the model's order: CPU memory, dense
 *          row-major (strides NULL or equal to dense), dtype and dims as
 *          byoc_model_input says; byte_offset is honoured; data aligned to
 *          its elements
 *          Strings are read in the run and not kept.
 * outputs  one view per output. A view with data is written in place, and must
 *          be as an input is and overlap no input and no other output. A view
 *          whose data is NULL, or still what the run before filled in, is
 *          filled in: all of it is written, data and shape point into the
 *          state and stay valid until its next run or its end. So are strings,
 * also those that memory of the caller points to after the run. Errors:
 * BYOC_EINVAL (counts, NULL data, strides, overlap, values that no operator
 * takes), BYOC_ETYPE (dtype, shape), BYOC_ELIMIT, BYOC_EBACKEND, BYOC_ENOMEM,
 * BYOC_ECANCELLED. A failed run leaves the state usable. Threads: one run per
 * state at a time. Allocates: not when every shape is fixed, and hardly when no
 * size depends on data and the sizes are kept ready. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run(
    struct byoc_state *state, const DLTensor *inputs, uint32_t n_inputs,
    DLTensor *outputs, uint32_t n_outputs, struct byoc_error *err);

/* A value as it crosses byoc_run_values: a tree of tensors. */
struct byoc_value {
    enum byoc_kind kind;
    DLTensor tensor; /* BYOC_TENSOR */
    uint32_t n;      /* elements; of an optional 0 or 1 */
    const struct byoc_value *elements;
};

/* Run once, as byoc_run does, a model with inputs or outputs that are sequences
 * or optionals; byoc_run refuses those.
 * inputs   one value per input; the tree and its tensors are the caller's, are
 *          read in the run and not kept
 * outputs  one value per output. A tensor is as byoc_run has it: with data
 *          given, or filled in. Anything else is filled in: the tree and its
 *          tensors are the state's, to be read, and valid until its next run
 *          or its end.
 * Errors, threads: as byoc_run; BYOC_ETYPE for a value of another kind.
 * Allocates: for what is no tensor. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run_values(
    struct byoc_state *state, const struct byoc_value *inputs,
    uint32_t n_inputs, struct byoc_value *outputs, uint32_t n_outputs,
    struct byoc_error *err);

/* Make the run of `state` that goes on, else its next one, end with
 * BYOC_ECANCELLED as soon as a kernel, or a vendor that looks, is done.
 * Threads: any; also from a signal handler. */
BYOC_API void byoc_state_cancel(struct byoc_state *state);

/* Write a Chrome trace of the runs that follow to `path`, where it appears
 * complete when it is closed: one event per kernel, primitive, copy and
 * reorder, naming the model's nodes. NULL stops and closes. Errors: BYOC_EIO,
 * also for what the trace before could not write; BYOC_ENOMEM. Threads: as
 * byoc_run. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_state_trace(
    struct byoc_state *state, const char *path, struct byoc_error *err);

#ifdef __cplusplus
}
#endif
#endif
