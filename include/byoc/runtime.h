/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/runtime.h: load a compiled model and run it.
 *
 * Link with libbyoc_runtime.so; the compiler is not needed. A loaded model is
 * immutable and may be shared by any number of threads; each thread (or
 * request) runs it through its own state. Nothing here prints or exits. Of the
 * arguments only the callbacks of struct byoc_load_params and their contexts
 * are kept after the call, unless a function says otherwise. A pointer must not
 * be NULL unless the function says that it may.
 *
 * When any allocation fails, the call returns BYOC_ENOMEM. Every function that
 * returns a status may return this one, even if its own list of errors does not
 * mention it. Nothing leaks, nothing aborts, and all objects that existed
 * before the call stay usable.
 *
 * Structs that a caller fills and that may grow have a struct_size: set it to
 * sizeof the struct in your program. A library whose struct has more members
 * takes the missing ones as zero. A library whose struct has fewer returns
 * BYOC_EINVAL if an unknown one is set. Set the rest to zero, which always
 * means the default:
 *
 *     struct byoc_load_params params = {.struct_size = sizeof params,
 *                                       .threads = 2};
 *
 * Elements of arrays (struct byoc_dim, byoc_value, byoc_binding, byoc_metadata)
 * and results that the caller provides (struct byoc_error, byoc_cache_stats)
 * never grow. Structs that the library returns by pointer (struct byoc_io,
 * byoc_event) may grow at their end.
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

#include <byoc/dtype.h>

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

/* The result of a call; 0 is success. The values never change. */
enum byoc_status {
    BYOC_OK = 0,
    BYOC_EINVAL = 1,        /* an argument is wrong                       */
    BYOC_EPARSE = 2,        /* a file or text is malformed                */
    BYOC_ETYPE = 3,         /* element types or shapes do not fit         */
    BYOC_EUNSUPPORTED = 4,  /* valid, but this build does not support it  */
    BYOC_ENOMEM = 5,        /* memory is exhausted                        */
    BYOC_EIO = 6,           /* reading or writing failed                  */
    BYOC_EINCOMPATIBLE = 7, /* made by another version or for another CPU */
    BYOC_EBACKEND = 8,      /* a backend's plug-in failed                 */
    BYOC_ELIMIT = 9,        /* a stated limit was exceeded                */
    BYOC_EINTERNAL = 10,    /* a bug in byoc                              */
    BYOC_ECANCELLED = 11    /* byoc_state_cancel() or a fork ended the run */
};

/* A fixed phrase for `status`, for example "malformed input". Never NULL. */
BYOC_API const char *byoc_status_text(enum byoc_status status);

/* The message of a failed call: one sentence, lower-case, that says what was
 * found, what was expected and what to try. Every `err` parameter may be NULL.
 * The text is only written on failure. */
struct byoc_error {
    enum byoc_status status;
    char text[1020];
};

/* "float32" and so on; NULL when `dtype` is not one of byoc/dtype.h. */
BYOC_API const char *byoc_dtype_name(enum byoc_dtype dtype);
/* Bytes of one element; 0 for strings, which have no fixed size, and unknown
 * types. In memory an element that is a string is a `const char *` to bytes
 * that end in a NUL, usually UTF-8. */
BYOC_API uint32_t byoc_dtype_size(enum byoc_dtype dtype);
/* The DLPack type of a dtype. DLPack 0.6 has no boolean: bool is {UInt, 8},
 * and an input declared bool takes exactly that. */
BYOC_API DLDataType byoc_dtype_dlpack(enum byoc_dtype dtype);

/* The version of the loaded library, such as "0.1.0". */
BYOC_API const char *byoc_version(void);

/* How a thread waits for other threads of a run, and for the next run. */
enum byoc_wait {
    /* as the environment's BYOC_WAIT_POLICY: "brief", "sleep" or "spin"; unset:
     * "brief" */
    BYOC_WAIT_DEFAULT = 0,
    /* spin for a millisecond, then sleep; sleep at once while other processes
     * compete */
    BYOC_WAIT_BRIEF = 1,
    BYOC_WAIT_SLEEP = 2, /* sleep at once: for machines with other work */
    BYOC_WAIT_SPIN = 3   /* spin for 10 milliseconds: for dedicated CPUs    */
};

/* How urgent a line of the log is. */
enum byoc_severity {
    BYOC_DEBUG = 1, /* lines that backends log                            */
    BYOC_INFO = 2,  /* decisions: threads, plug-ins, sizes                */
    /* the model runs, but not as requested: a native twin replaces a region */
    BYOC_WARNING = 3,
    BYOC_ERROR = 4 /* a failure that no status can report */
};

/* Options of loading. A zero member means the default. */
struct byoc_load_params {
    /* Threads of a run. 0: the environment's BYOC_NUM_THREADS, otherwise
     * OMP_NUM_THREADS, otherwise the number of CPUs that this process may use
     * (affinity, cgroup). A run never has more threads than that number. */
    uint32_t threads;
    /* sizeof the struct. 0 is for programs that were compiled before this
     * member existed: the members after parallel_ctx are ignored then. */
    uint32_t struct_size;
    /* More plug-ins of backends: absolute paths of files or folders, separated
     * by ':'; NULL: the entries of the environment's BYOC_PLUGIN_PATH. After
     * them come the folder of libbyoc_runtime.so and its subfolder "byoc",
     * unless one of the entries is the word "only". Plug-ins of the environment
     * and of these folders are not loaded if everybody may write to them or to
     * the folder in which they were found. The owner of both must be root, this
     * user or the owner of libbyoc_runtime.so. */
    const char *plugins;
    /* Not 0: every region runs its native twin. */
    int native_only;
    /* Not 0: a backend that is missing or fails is an error, not a reason to
     * run the native twin. */
    int require_backends;
    /* If the inputs' sizes vary: the number of specialisations that the model
     * keeps. 0: the environment's BYOC_CACHE_SHAPES, otherwise 32. */
    uint32_t cache_shapes;
    /* Not 0: check every hash of the artifact before it is used. This includes
     * the hash of the weights, which reads all of them. Damage is BYOC_EPARSE.
     * 0: check the file's checksum, which covers all but the weights, and the
     * hashes of sections of at most 64 MiB. */
    int verify;
    /* The limit on the bytes of memory for specialisations. 0: the
     * environment's BYOC_CACHE_BYTES, otherwise 1 GiB. */
    uint64_t cache_bytes;
    /* For programs that were compiled before `log` had a severity: gets lines
     * of at least log_severity (0: all lines), with "warning: " before warnings
     * and errors. Used if `log` is NULL. */
    void (*log_line)(void *ctx, const char *line);
    void *log_ctx;       /* for log and log_line; must outlive the model */
    enum byoc_wait wait; /* how threads wait for work          */
    /* Not NULL: runs the parts of the model's parallel regions, instead of the
     * threads that all models of this process share. It calls fn(arg, 0) ...
     * fn(arg, n - 1), each once, in any order, on any threads. It returns when
     * all calls have returned. n is at most `threads`, unless a backend
     * requests more. A part may wait for another part; byoc starts threads for
     * parts that have not begun after 2 ms. Called while the model lives, from
     * the threads that run it. */
    void (*parallel_for)(void *ctx, uint32_t n, void (*fn)(void *arg, uint32_t),
                         void *arg);
    void *parallel_ctx; /* must be valid as long as the model */
    /* Not NULL: gets lines of at least log_severity (0: BYOC_INFO), without a
     * newline, for example once for each region that its backend refuses for
     * the sizes of a run. The line is lent for the call. Called while the model
     * lives: by the threads that load and run it, by backends from any thread.
     */
    void (*log)(void *ctx, enum byoc_severity severity, const char *line);
    enum byoc_severity log_severity;
    /* Threads that byoc_run_async runs on; 0: 1. Each starts and ends one run
     * at a time; the parts of its parallel regions run on the same threads as
     * those of other runs. */
    uint32_t runners;
    /* Not NULL: allocates the model's memory for states, results, packed
     * weights and backends: everything large that is not mapped from the
     * artifact. String elements and the tables of plans are not part of it.
     * `alignment` is a power of two, at most 64; returns NULL if memory is
     * exhausted. `release` gets what `allocate` returned, and the size that was
     * requested. Neither may call byoc. Threads that load, run or free the
     * model call both at the same time. Set both or neither. */
    void *(*allocate)(void *ctx, uint64_t bytes, uint64_t alignment);
    void (*release)(void *ctx, void *memory, uint64_t bytes);
    void *allocate_ctx;
    /* The limit on the bytes of that memory that the model and its states hold
     * at once. A call that would exceed it returns BYOC_ENOMEM. 0: no limit. */
    uint64_t memory_bytes;
};

struct byoc_model; /* a loaded model: immutable, shared by threads */
struct byoc_state; /* memory of one run at a time: one per thread */

/* Load the artifact at `path` (made by `byoc compile`) into *model. Maps the
 * weights, loads the backends' plug-ins, builds their primitives and packs
 * their weights: all slow work is done here. params NULL: the defaults. Errors:
 * BYOC_EIO (no such file, or no plug-in of operators that the model calls),
 * BYOC_EPARSE (not an artifact, or a damaged one), BYOC_EINCOMPATIBLE (other
 * version), BYOC_EBACKEND (require_backends), BYOC_EINVAL (invalid threads or
 * wait, also in BYOC_NUM_THREADS or BYOC_WAIT_POLICY), BYOC_ELIMIT,
 * BYOC_ENOMEM. On failure *model is NULL, and only libraries of backends that
 * cannot be closed stay loaded. Threads: safe.
 */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_load(
    const char *path, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* Load an artifact that is in memory. It is copied to a file in memory, so the
 * caller may free `data` after the call. Models that are loaded from one file
 * share its weights; models that are loaded from memory do not: prefer
 * byoc_model_load or byoc_model_load_fd for large ones. Needs /proc. Errors,
 * threads: as byoc_model_load; messages call it "artifact in memory". */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_load_memory(
    const void *data, uint64_t bytes, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* Load the artifact in the regular file that descriptor `fd` has open for
 * reading, from its first byte, ignoring the descriptor's offset. The caller
 * keeps the descriptor and may close it after the call; the file may have been
 * unlinked. Needs /proc, and the right of this process to open the file, which
 * the loader does again through /proc/self/fd. Errors, threads: as
 * byoc_model_load, and BYOC_EINVAL (not a descriptor of a regular file). */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_load_fd(
    int fd, const struct byoc_load_params *params, struct byoc_model **model,
    struct byoc_error *err);

/* Free *model and set it to NULL; *model may be NULL. Free its states first:
 * byoc_state_free waits for their runs. Do not call this from a log, event or
 * byoc_run_async callback of the model. Free every model before
 * libbyoc_runtime.so is closed: runners execute its code. */
BYOC_API void byoc_model_free(struct byoc_model **model);

/* The kind of a value. */
enum byoc_kind {
    BYOC_TENSOR = 0,
    BYOC_SEQUENCE = 1, /* any number of values of one type */
    BYOC_OPTIONAL = 2  /* one value, or none               */
};

/* One input or output of a model. Strings and arrays are valid as long as the
 * model.
 */
struct byoc_io {
    const char *name;
    enum byoc_dtype dtype;
    uint32_t rank;
    const int64_t *dims;          /* rank numbers; -1 where the size varies */
    const char *const *dim_names; /* the symbol of a dim that varies, or NULL */
    /* if not BYOC_TENSOR, dtype, rank, dims and dim_names are BYOC_NONE, 0,
     * NULL and NULL */
    enum byoc_kind kind;
    /* of a sequence or optional: its elements, with the name ""; rank
     * UINT32_MAX: any. Otherwise NULL */
    const struct byoc_io *element;
};

/* The numbers of inputs and outputs. */
BYOC_API uint32_t byoc_model_n_inputs(const struct byoc_model *model);
BYOC_API uint32_t byoc_model_n_outputs(const struct byoc_model *model);
/* Input or output `index`; NULL if `index` is too large. */
BYOC_API const struct byoc_io *byoc_model_input(const struct byoc_model *model,
                                                uint32_t index);
BYOC_API const struct byoc_io *byoc_model_output(const struct byoc_model *model,
                                                 uint32_t index);
/* The index of the input or output of that name; UINT32_MAX: there is none. */
BYOC_API uint32_t byoc_model_input_index(const struct byoc_model *model,
                                         const char *name);
BYOC_API uint32_t byoc_model_output_index(const struct byoc_model *model,
                                          const char *name);

/* The input whose memory output `index` may share in a run (see byoc_run);
 * UINT32_MAX: none. *axis, unless NULL, is set to the axis along which the
 * output extends that input by more rows, as a decoder's present keys extend
 * its past keys. If *axis is the input's rank, the output has the input's shape
 * and other values in some places. Such an input is not read after these values
 * are written. Runs that differ only in the symbolic size of that axis share a
 * specialisation. Threads: safe. */
BYOC_API uint32_t byoc_model_in_place(const struct byoc_model *model,
                                      uint32_t index, uint32_t *axis);

/* One entry of a model file's metadata. */
struct byoc_metadata {
    const char *key;
    const char *value;
};
/* The metadata that the ONNX file has, in this order: "producer_name",
 * "producer_version", "domain", "model_version", "doc_string", "ir_version",
 * "graph_name"; "opset.DOMAIN" for each operator set, where "opset." is ONNX's
 * own; "custom.KEY" for each entry of metadata_props. An array of *n; valid
 * as long as the model. Models in the text form have none. */
BYOC_API const struct byoc_metadata *byoc_model_metadata(
    const struct byoc_model *model, uint32_t *n);
/* The value of a key; NULL: there is none. Lives as long as the model. */
BYOC_API const char *byoc_model_metadata_value(const struct byoc_model *model,
                                               const char *key);

/* Bytes that the model and its states hold now (see memory_bytes of struct
 * byoc_load_params); *peak, unless NULL, gets the most so far. Threads: safe.
 */
BYOC_API uint64_t byoc_model_memory(const struct byoc_model *model,
                                    uint64_t *peak);
/* How many threads a run uses. *why, unless NULL, gets a phrase that says where
 * the number is from. It is valid as long as the model. */
BYOC_API uint32_t byoc_model_threads(const struct byoc_model *model,
                                     const char **why);
/* Warnings of loading, such as a backend whose native twin runs instead; one
 * per line, "" if there are none. Valid as long as the model. */
BYOC_API const char *byoc_model_warnings(const struct byoc_model *model);

/* The ledger of the artifact, as JSON (docs/ledger.md): *bytes bytes, without a
 * NUL at the end, which are valid as long as the model. NULL: the artifact has
 * none, or the model is from byoc_compiled_load; byoc_compiled_ledger has it
 * then. Threads: safe. */
BYOC_API const char *byoc_model_ledger(const struct byoc_model *model,
                                       uint64_t *bytes);

/* A symbolic dim and a size for it. */
struct byoc_dim {
    const char *name;
    int64_t size;
};

/* Make a specialisation before the first request. Backends build their regions
 * for these sizes, and memory for one run is allocated, as a run with these
 * sizes would do. `dims` has every symbolic dim of the inputs, in any order.
 * Errors: BYOC_EINVAL (a name that no input's shape has, a missing name, a
 * negative size, inputs that do not vary), BYOC_ETYPE (sizes that the model
 * does not accept), BYOC_ELIMIT, BYOC_ENOMEM. Threads: safe. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_model_warm(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byoc_error *err);

/* The cache of specialisations of a model whose inputs' sizes vary. All are 0
 * if they do not vary. */
struct byoc_cache_stats {
    uint64_t hits;   /* runs whose sizes were cached or being built     */
    uint64_t misses; /* runs whose sizes were not                       */
    uint64_t builds; /* sizes that were built                           */
    /* builds that failed, for example because the model does not accept the
     * sizes */
    uint64_t failures;
    /* regions that run their native twin because their backend refused the
     * sizes of a build */
    uint64_t refusals;
    /* specialisations that were dropped: to respect the limits, after a failed
     * allocation, or to build their regions because their sizes recur */
    uint64_t evictions;
    /* held now: plans, memory of runs, and memory that backends acquired from
     * the host for them */
    uint64_t bytes;
    uint64_t peak_bytes; /* the most after any run */
    /* the limits; running specialisations may exceed them */
    uint64_t max_bytes;
    uint32_t max_shapes;
    uint32_t shapes; /* sizes that are kept now */
};
/* Set *stats to the present numbers. Threads: safe. */
BYOC_API void byoc_model_cache(const struct byoc_model *model,
                               struct byoc_cache_stats *stats);

/* Make a state for `model`: all memory that a run needs if shapes are fixed.
 * The model must outlive it. Errors: BYOC_ENOMEM, and those of a backend
 * (BYOC_EBACKEND, BYOC_EUNSUPPORTED, BYOC_EINCOMPATIBLE). On failure *state is
 * NULL. Threads: safe. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_state_new(
    const struct byoc_model *model, struct byoc_state **state,
    struct byoc_error *err);
/* Free *state, close its trace, and set *state to NULL; *state may be NULL.
 * Waits for a run of byoc_run_async and for its callbacks to return, except for
 * a callback that frees the state itself. */
BYOC_API void byoc_state_free(struct byoc_state **state);

/* Run once.
 * inputs   one view per input, in the model's order: CPU memory, dense
 *          row-major (strides NULL or equal to dense), dtype and dims as
 *          byoc_model_input says; byte_offset is honoured; data aligned to
 *          its elements
 *          Strings are read in the run and not kept.
 * outputs  one view per output. A view with data is written in place; it must
 *          meet the conditions for inputs and overlap no input or other output.
 *          A view whose data is NULL, or unchanged since the state's last run
 *          filled it in, is filled in: all its members are written, data and
 *          shape point into the state and stay valid until its next run or its
 *          end.
 *          String elements always point into the state, even in outputs that
 *          the caller allocated.
 * in place An output may have the memory of the input that byoc_model_in_place
 *          returns; then the run writes only the rows that differ. If the
 *          output is longer along an axis, both views may have strides that
 *          leave room for more rows: dense, except that the strides of the axes
 *          before that axis count `capacity` rows, not the present ones. In
 *          place, data and strides of both are the same. A buffer of (heads,
 *          capacity, size) elements grows from (heads, n, size) to (heads, n +
 *          1, size), both with the strides capacity * size, size, 1. The caller
 *          must ensure that the memory has `capacity` rows; the run never reads
 *          beyond the output's rows. If data or strides differ, the memory must
 *          not overlap, and the rows are copied. After a failed run, rows after
 *          the input's may have any value; of an output with the input's shape
 *          any row may.
 *
 * Errors: BYOC_EINVAL (counts, NULL data, strides, overlap, values that an
 * operator rejects), BYOC_ETYPE (dtype, shape), BYOC_ELIMIT, BYOC_EBACKEND,
 * BYOC_ENOMEM, BYOC_ECANCELLED. A failed run leaves the state usable. Threads:
 * one run per state at a time. Allocates: nothing if every shape is fixed;
 * little if no size depends on data and the sizes are cached. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run(
    struct byoc_state *state, const DLTensor *inputs, uint32_t n_inputs,
    DLTensor *outputs, uint32_t n_outputs, struct byoc_error *err);

/* A value that byoc_run_values takes or returns: a tree of tensors. */
struct byoc_value {
    enum byoc_kind kind;
    DLTensor tensor; /* BYOC_TENSOR */
    uint32_t n;      /* elements; of an optional 0 or 1 */
    const struct byoc_value *elements;
};

/* Run once, as byoc_run does, a model with inputs or outputs that are sequences
 * or optionals; byoc_run refuses those.
 * inputs   one value per input; the tree and its tensors belong to the caller,
 *          are read during the run and not kept
 * outputs  one value per output. A tensor is as for byoc_run: written to the
 *          given data, or filled in. Anything else is filled in: the tree and
 *          its tensors belong to the state, are read-only, and are valid until
 *          its next run or its end.
 * Errors, threads: as byoc_run; BYOC_ETYPE for a value of another kind.
 * Allocates: for sequences and optionals. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run_values(
    struct byoc_state *state, const struct byoc_value *inputs,
    uint32_t n_inputs, struct byoc_value *outputs, uint32_t n_outputs,
    struct byoc_error *err);

/* A value with the name of its input or output. */
struct byoc_binding {
    const char *name; /* NULL: the input or output of the same index    */
    struct byoc_value value;
};

/* The inputs, the requested outputs and the tag of a run. */
struct byoc_request {
    uint32_t struct_size; /* sizeof the struct */
    uint32_t n_inputs;
    uint32_t n_outputs;
    uint32_t reserved;                 /* 0 */
    const struct byoc_binding *inputs; /* every input once, in any order */
    /* the requested outputs, each at most once, in any order; nodes that only
     * other outputs need do not run */
    struct byoc_binding *outputs;
    /* identifies the run in its trace and profile and in byoc_log_tag(); NULL:
     * no tag */
    const char *tag;
};

/* Run once, with inputs and outputs by name.
 * The values of the bindings are as for byoc_run_values.
 *
 *     struct byoc_binding in = {"image", {.tensor = view}};
 *     struct byoc_binding out = {"scores", {.tensor = {.data = NULL}}};
 *     struct byoc_request request = {.struct_size = sizeof request,
 *                                    .n_inputs = 1,
 *                                    .inputs = &in,
 *                                    .n_outputs = 1,
 *                                    .outputs = &out,
 *                                    .tag = "request 4711"};
 *     if (byoc_run_request(state, &request, &err) == BYOC_OK)
 *         use(out.value.tensor.data);
 *
 * Errors, threads: as byoc_run_values; BYOC_EINVAL for a name that the model
 * does not have (the message lists its names), a name that is given twice, a
 * missing input. Random operators that do not run draw no numbers. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run_request(
    struct byoc_state *state, const struct byoc_request *request,
    struct byoc_error *err);

/* byoc_run_async calls this when the run has ended, with its status and, if it
 * failed, the message, lent for the call. The state is idle by then. The
 * callback, or a thread that it notifies, may read the outputs, start the next
 * run of the state, or free it. A callback that started the next run may not
 * free the state. No callback may free the model or wait for other runs of it.
 * Called by one of the model's runners. */
typedef void (*byoc_done_fn)(void *ctx, struct byoc_state *state,
                             enum byoc_status status,
                             const struct byoc_error *err);

/* Run as byoc_run_request does, later and on another thread, and call `done`
 * from there. Runs of a model begin in the order of these calls. They run on
 * `runners` threads (struct byoc_load_params), which the first call makes and
 * byoc_model_free ends. The request, its bindings, their tensors and its tag
 * are lent until `done` is called. This happens exactly once if BYOC_OK is
 * returned, and never otherwise. byoc_state_cancel() ends a waiting or running
 * request.
 *
 * Errors: BYOC_EINVAL (the state has a run that has not ended), BYOC_ENOMEM (no
 * thread; the message has the system's reason). Threads: any; one run per state
 * at a time.
 *
 * A forked child starts new runners. Its parent's runs do not end there, nor is
 * their `done` called. States whose run waited are idle in the child. States
 * whose run was under way must not be used or freed there. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_run_async(
    struct byoc_state *state, const struct byoc_request *request,
    byoc_done_fn done, void *ctx, struct byoc_error *err);

/* Called from a log callback: the tag of the run that the calling thread
 * executes; NULL: no tag, or a thread that only runs parallel parts. Valid as
 * long as the request is lent. */
BYOC_API const char *byoc_log_tag(void);

/* An event of a run. Strings are never NULL and are lent. */
struct byoc_event {
    /* "kernel", "fused", "region", "primitive", "copy", "view", "call", "if",
     * "closure", "choose", "specialise", "run" */
    const char *kind;
    const char *name;    /* of the operator, region, function, primitive */
    const char *impl;    /* "native", or the name of the backend or
                          * implementation */
    const char *sources; /* the model's nodes, joined by ", "                 */
    const char *tag;     /* of the run, or ""                                 */
    uint64_t begin_ns;   /* of CLOCK_MONOTONIC                                */
    uint64_t end_ns;
    /* floating-point operations, two for a multiply-add; 0: none or unknown.
     * Winograd's algorithm does fewer */
    double flops;
    double bytes; /* of operands and results; 0: unknown                    */
    double constant_bytes; /* the part of `bytes` that constants, such as
                            * weights, have */
};

/* Call use(ctx, event) at the end of every event of later runs of `state`.
 * Inner events ("primitive") come before the step that contains them
 * ("region"), and "run" comes last. The running thread calls it during the run,
 * so that the time of `use` is part of the run's. `use` NULL ends profiling. A
 * state may be traced and profiled at once. Threads: as byoc_run. Errors:
 * BYOC_ENOMEM. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_state_profile(
    struct byoc_state *state,
    void (*use)(void *ctx, const struct byoc_event *event), void *ctx,
    struct byoc_error *err);

/* End the current run of `state`, otherwise its next one, with BYOC_ECANCELLED,
 * after the current kernel, or when a backend polls `cancel`. Threads: any;
 * also from a signal handler. */
BYOC_API void byoc_state_cancel(struct byoc_state *state);

/* Write a Chrome trace of the runs that follow to `path`. The file appears,
 * complete, when the trace is closed. It has one event per kernel, primitive,
 * copy and reorder, naming the model's nodes. `path` NULL ends tracing and
 * closes the trace. Errors: BYOC_EIO, also if part of the previous trace could
 * not be written; BYOC_ENOMEM. Threads: as byoc_run. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_state_trace(
    struct byoc_state *state, const char *path, struct byoc_error *err);

#ifdef __cplusplus
}
#endif
#endif
