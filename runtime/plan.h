/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/plan.h: plans in the form that the executor runs (docs/plan.md), and
 * loaded models: their constants, backends and specialisations. */
#ifndef BYI_RUNTIME_PLAN_H
#define BYI_RUNTIME_PLAN_H

#include "internal.h"
#include "workers.h"

#include "core/base/descriptor.h"
#include "runtime_native/native.h"

enum {
    BYI_PLAN_MAX_BYTES = 1 << 30,
    BYI_PLAN_MAX_FUNCS = 1 << 20,
    BYI_PLAN_MAX_ITEMS = 64 << 20, /* values or steps of a function */
    BYI_PLAN_MAX_ACTIVE = 1000000, /* depth of nested calls */
    BYI_PLAN_MAX_CALLS = 100000000 /* calls in one run */
};

/* The memory of a value. */
enum byi_value_kind {
    BYI_V_INPUT,  /* `index` is the number of the input */
    BYI_V_CONST,  /* `index` is the number of the constant */
    BYI_V_TEMP,   /* at `offset` in the arena if the size is fixed */
    BYI_V_OUTPUT, /* computed in the memory of output `index` */
    BYI_V_ALIAS   /* shares the memory of value `root` */
};

/* A value of a function. */
struct byi_value {
    enum byi_value_kind kind;
    uint32_t index;
    uint32_t root;   /* the value itself unless it is an alias */
    bool fixed;      /* all dims are numbers; false for a function, sequence or
                      * optional */
    uint64_t offset; /* TEMP: bytes from the arena's start */
    /* a tensor, whose dims are numbers or the plan's symbols; a sequence or
     * optional; or BYI_FUNC without its signature */
    const struct byi_type *type;
};

static inline bool byi_value_is_func(const struct byi_value *v)
{
    return v->type->kind == BYI_FUNC;
}

/* Whether the value is a function, a sequence or an optional. */
static inline bool byi_value_is_object(const struct byi_value *v)
{
    return v->type->kind != BYI_TENSOR;
}

/* The kind of work of a step. */
enum byi_step_kind {
    BYI_STEP_OP,
    BYI_STEP_REGION,
    BYI_STEP_KERNEL, /* a fused kernel of the artifact */
    BYI_STEP_CALL,
    BYI_STEP_IF,      /* operands: condition, operands of `then`, operands of
                       * `else` */
    BYI_STEP_CLOSURE, /* operands: the values of the callee's last inputs */
    BYI_STEP_APPLY,   /* operands: a function value, its operands */
    BYI_STEP_CHOOSE   /* operands: condition, two function values */
};

/* A step of a function. */
struct byi_step {
    enum byi_step_kind kind;
    bool view;       /* its result shares its first operand's memory */
    bool infer;      /* result types are inferred when it runs */
    bool tail;       /* a tail call: its results are the function's */
    bool exact;      /* its kernel must not use an algorithm that rounds more
                      * than the operator's definition does */
    bool self;       /* CLOSURE: the callee is the function that contains the
                      * step, and the captures are those of that function */
    uint32_t callee; /* region, kernel or function; IF: the function `then` */
    uint32_t n_args; /* APPLY, CHOOSE: number of operands after the first */
    uint32_t else_func; /* IF: the function `else` */
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    const struct byi_kernel *kernel;
    const void *packed; /* constants that prepack.c packed; or NULL */
    uint32_t n_in, n_out, n_dead;
    /* OP: its epilogue, whose operands follow the n_op_in operands of the
     * operator */
    uint32_t n_op_in, n_epilogue;
    const struct byi_epilogue_op *epilogue;
    const uint32_t *in, *out; /* values */
    /* n_dead values that no later step reads: functions, sequences, optionals
     * and tensors of varying size */
    const uint32_t *dead;
    const char *name;    /* operator, function, or symbol of the region or
                          * kernel */
    const char *sources; /* the model's nodes, separated by ", " */
};

/* A function of the plan; function 0 is main. */
struct byi_plan_func {
    const char *name;
    uint32_t n_values, n_inputs, n_outputs, n_steps;
    struct byi_value *values;
    const uint32_t *inputs, *outputs; /* values */
    struct byi_step *steps;
    uint64_t arena; /* bytes of its temporaries of fixed size */
};

/* A constant of the plan. */
struct byi_plan_const {
    uint64_t offset;        /* bytes from the start of the weights */
    struct byi_tensor view; /* if `narrow`: `data` is NULL until the constant is
                             * widened */
    /* the data of a float32 constant that is stored as `stored`: float16,
     * bfloat16, or int8 with a scale for each index along `axis`; otherwise
     * NULL */
    const void *narrow;
    uint64_t narrow_bytes;
    enum byoc_dtype stored;
    uint32_t axis;
};

/* A region in the plan's table. */
struct byi_region_row {
    const char *backend, *symbol;
    const char *code;          /* name of the C function that the backend
                                * generated; or NULL */
    uint64_t blob, blob_bytes; /* offset in the image's blobs, and length */
    uint32_t twin;             /* function */
    uint32_t n_consts;
    const uint32_t *consts; /* indices of the plan's constants */
    /* an input or output has symbolic dims, so the blob is the region's JSON */
    bool varies;
};

/* A fused kernel of the artifact. */
struct byi_plan_kernel {
    const char *symbol;
    uint32_t twin; /* function */
};

/* A plan that was read. It lives in its own `arena`. */
struct byi_plan_tables {
    struct byi_arena *arena;
    bool exact; /* every step is `exact` */
    uint32_t n_funcs, n_consts, n_regions, n_kernels, n_symbols;
    struct byi_plan_func *funcs; /* funcs[0] is main */
    struct byi_plan_const *consts;
    struct byi_region_row *regions;
    struct byi_plan_kernel *kernels;
    const char **symbols; /* a dim of -1 - i is the symbol named symbols[i] */
    uint32_t max_args;    /* largest number of operands and results of a step */
};

/* Read and check the plan of an image: every index, every type against its
 * operator's rule, the ranges of constants and blobs. Free *plan with
 * byi_plan_tables_free. Errors: BYOC_EPARSE, BYOC_EINCOMPATIBLE (of another
 * version), BYOC_EUNSUPPORTED (an operator without a native kernel),
 * BYOC_ELIMIT; messages name the path: "functions[0].steps[3].in[1]: ...". */
enum byoc_status byi_plan_read(const struct byi_image *image,
                               struct byi_plan_tables **plan,
                               struct byoc_error *err);
/* Free the plan and set *plan to NULL; *plan may be NULL. */
void byi_plan_tables_free(struct byi_plan_tables **plan);

/* --- list_type.c --------------------------------------------------------- */

/* The kind of list that a "dtype" in JSON names, BYI_SEQ or BYI_OPTIONAL;
 * otherwise BYI_TENSOR. */
enum byi_type_kind byi_list_kind(const char *dtype);
/* Read a type such as {"dtype": "sequence", "of": {...}} into `arena`. Errors:
 * BYOC_EPARSE, BYOC_ELIMIT (nested too deep). */
enum byoc_status byi_list_type_read(const struct byi_json *at,
                                    struct byi_arena *arena,
                                    const struct byi_type **type,
                                    struct byoc_error *err);

/* --- plan_check.c: checks across steps ------------------------------------ */

/* Check order, types and lifetimes of the values of all functions; find last
 * readers and tail calls. Errors: BYOC_EPARSE, with the path as for
 * byi_plan_read. */
enum byoc_status byi_plan_check(struct byi_plan_tables *plan,
                                struct byoc_error *err);

/* --- manifest.c ----------------------------------------------------------- */

/* The manifest's record of an input or output. */
struct byi_image_io {
    const char *name;
    /* the type of a sequence or optional, for which the members below are not
     * set; otherwise NULL */
    const struct byi_type *list;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t *dims; /* -1: varies */
    const char **dim_names;
};
/* The manifest's record of a plug-in that the model uses. */
struct byi_image_backend {
    const char *name, *version;
    const char *compat; /* as in struct byoc_backend, when it compiled */
    bool operators;     /* the plan calls operators of this plug-in */
};
/* The manifest. Strings and arrays are in the arena that it was read into. */
struct byi_image_manifest {
    const char *name, *symbol; /* the model's; the descriptor's symbol */
    const char *byoc;          /* version of byoc that compiled the model */
    const char *isa;           /* widest instruction set of the code */
    uint32_t n_inputs, n_outputs, n_backends;
    struct byi_image_io *inputs, *outputs;
    struct byi_image_backend *backends;
    struct byi_warm warm;
    struct byoc_metadata *metadata;
    uint32_t n_metadata;
    /* as hex; NULL if the manifest has no hashes */
    const char *plan_hash, *ledger_hash, *blobs_hash, *weights_hash;
};
/* Read the manifest of an image into `arena`; checks format and version.
 * Errors: BYOC_EPARSE, BYOC_EINCOMPATIBLE (of another version), BYOC_ELIMIT. */
enum byoc_status byi_manifest_read(const char *text, size_t n,
                                   struct byi_arena *arena,
                                   struct byi_image_manifest *manifest,
                                   struct byoc_error *err);

/* --- model.c ------------------------------------------------------------- */

/* A region of a specialisation. Its backend runs it, or else its twin runs. */
struct byi_region {
    const struct byi_plugin *plugin; /* NULL: the twin runs */
    const char *fault;               /* why the twin runs; NULL: the caller
                                      * requested it */
    void *compiled;                  /* the result of the backend's load() */
    bool lent;                       /* the model's `base` owns `compiled` */
};

/* A plan for given sizes, and its regions as built by their backends.
 * Immutable. */
struct byi_specialisation {
    const struct byoc_model *model;
    const struct byi_plan_tables *plan;
    struct byi_region *regions;
    bool starved; /* a region runs its twin because memory ran out */
    bool twins;   /* made with BYI_TWINS */
};

struct byi_cache;
/* A loaded model, which all its states share. */
struct byoc_model {
    /* if its `map` is NULL, the caller owns the image */
    struct byi_artifact artifact;
    struct byi_image image;            /* points to memory of the artifact or
                                        * the caller */
    struct byi_memory_library library; /* the artifact, loaded as a library */
    struct byi_memory *memory;
    struct byi_runners *runners;
    struct byi_widened *widened; /* consts.c */
    void *packed; /* constants in the layout that kernels read fastest */
    struct byi_arena *arena;
    struct byi_plan_tables *plan;
    /* `plan` as it was compiled: it runs if the inputs have no symbolic dims.
     * Otherwise the cache has the specialisations that run, and the regions of
     * `base` with symbolic dims have a plug-in but are not built */
    struct byi_specialisation base;
    uint32_t n_keys; /* number of symbols in the inputs' shapes; `keys` lists
                      * them */
    uint32_t *keys;
    uint32_t *grow_axis; /* for each input: the axis along which an output
                          * extends it; its rank if an output replaces rows of
                          * it; UINT32_MAX if neither */
    uint32_t *in_place;  /* for each output: the input whose memory it may use;
                          * UINT32_MAX: none */
    bool *open_symbols;  /* for each symbol: it is the length of an input that
                          * grows, so specialisations give it no size */
    struct byi_cache *cache; /* NULL: no symbols, `base` runs */
    /* indexed by kernel of the plan; NULL: its twin runs */
    byi_fused_fn *kernels;
    const char *code_level; /* the instruction set that they were compiled for,
                             * or NULL */
    /* indexed by region of the plan; NULL: it has no code, or none for this
     * machine */
    byi_unit_fn *functions;
    struct byi_plugin *plugins;
    struct byoc_io *inputs, *outputs;
    const struct byoc_metadata *metadata;
    uint32_t n_metadata;
    uint32_t threads;
    struct byi_parallelism parallelism; /* how to run parallel regions */
    struct byi_run_times run_times;
    bool require_backends;
    char threads_why[256];
    struct byi_text warnings;
    struct byi_log log;
};

/* --- consts.c ------------------------------------------------------------- */

/* Copy the constants that are not aligned to their elements. byi_consts_close
 * frees the copies; call it after a failure, too. Errors: BYOC_ENOMEM. */
enum byoc_status byi_consts_open(struct byoc_model *model,
                                 struct byoc_error *err);
void byi_consts_close(struct byoc_model *model);
/* Widen the constants list[0..n-1] that are stored narrow. Never jumps to a
 * guard. Threads: safe. Errors: BYOC_ENOMEM. */
enum byoc_status byi_consts_widen(const struct byoc_model *model,
                                  const uint32_t *list, uint32_t n,
                                  struct byoc_error *err);
/* A constant's data; NULL if it is stored narrow and has not been widened.
 * Threads: safe. */
void *byi_const_data(const struct byoc_model *model, uint32_t index);
struct byi_row_codes;
/* Get the int8 codes of a constant; returns false if it is not stored as int8.
 * They point into the image. */
bool byi_const_get_codes(const struct byi_plan_const *c,
                         struct byi_row_codes *codes);
/* Widen the constants that steps of the specialisation read, and set their data
 * in `consts`, the constants of the specialisation's plan. Call it after its
 * regions are loaded. Errors: BYOC_ENOMEM. */
enum byoc_status byi_consts_read(
    const struct byi_specialisation *specialisation,
    struct byi_plan_const *consts, struct byoc_error *err);

/* --- backends.c ----------------------------------------------------------- */

/* Add a warning to the model's warnings and log it. Never jumps to a guard. */
void byi_model_warn(struct byoc_model *model, const char *text);
/* Log the name, version and path of a plug-in. */
void byi_model_log_plugin(const struct byoc_model *model,
                          const struct byi_plugin *plugin);
/* Open the plug-ins whose operators the model calls. Errors: those of opening a
 * plug-in, BYOC_EIO (one is missing), BYOC_EINCOMPATIBLE (of another version).
 */
enum byoc_status byi_operators_open(struct byoc_model *model,
                                    const struct byoc_load_params *params,
                                    const struct byi_image_manifest *manifest,
                                    struct byoc_error *err);
/* Open the plug-ins of the regions, and let them build the regions. A region
 * that cannot be built gets a fault and a warning, or is an error with
 * require_backends. Errors: BYOC_ENOMEM, BYOC_EBACKEND. */
enum byoc_status byi_backends_load(struct byoc_model *model,
                                   const struct byoc_load_params *params,
                                   const struct byi_image_manifest *manifest,
                                   struct byoc_error *err);
/* Prepare the constants of a region for its backend: widen those that it does
 * not read as codes. Sets *consts, whose arrays are in `arena`; their data
 * belongs to the model. `plugin` may be NULL. Errors: BYOC_ENOMEM. */
enum byoc_status byi_region_consts(const struct byoc_model *model,
                                   const struct byi_region_row *entry,
                                   const struct byi_plugin *plugin,
                                   struct byi_arena *arena,
                                   struct byi_region_consts *consts,
                                   struct byoc_error *err);
/* Drop the pages of mapped constants of regions whose backends have copied
 * them. */
void byi_backends_drop_consts(const struct byi_specialisation *specialisation);
/* Let a backend build a region from its JSON of n bytes. Sets region->plugin
 * and region->compiled, which the caller passes to unload(). Errors: those of
 * the backend, BYOC_EUNSUPPORTED (its compile() returned C). */
enum byoc_status byi_region_load(const struct byi_plugin *plugin,
                                 const char *symbol,
                                 const struct byi_region_consts *consts,
                                 const char *json, size_t n,
                                 struct byi_region *region,
                                 struct byoc_error *err);

/* --- specialise.c --------------------------------------------------------- */

/* Specialise the model's plan for `sizes`, which are indexed by symbol of the
 * plan. A size is -1 for symbols that no input has, and for symbols in
 * model->open_symbols. `flags` is 0 or a sum of
 * - BYI_LAST_ATTEMPT: a region for which memory runs out gets a fault; without
 *   this flag the call fails;
 * - BYI_TWINS: backends build no region for these sizes. A region that varies
 *   gets a fault; the others stay as the model loaded them.
 * A region that its backend cannot build gets a fault. Free the result with
 * byi_specialisation_end. Errors: BYOC_ETYPE (the model refuses these sizes),
 * BYOC_ELIMIT, BYOC_ENOMEM. */
enum { BYI_LAST_ATTEMPT = 1, BYI_TWINS = 2 };
enum byoc_status byi_specialise(const struct byoc_model *model,
                                const int64_t *sizes, unsigned flags,
                                struct byi_specialisation *specialisation,
                                struct byoc_error *err);
/* Unload the specialisation's own regions and free its plan. */
void byi_specialisation_end(struct byi_specialisation *specialisation);

/* --- site.c --------------------------------------------------------------- */

/* Evaluate a call of function `func` with operands of these types and values
 * (NULL: unknown). Sets out[i] and out_values[i], in `arena`, for each output
 * that follows from them. The caller sets them to NULL first. The plan is the
 * model's own, not a specialisation. */
void byi_site_eval(const struct byi_plan_tables *plan, uint32_t func,
                   const struct byi_type *const *types,
                   const struct byi_tensor *const *values,
                   struct byi_arena *arena, const struct byi_type **out,
                   const struct byi_tensor **out_values);

/* --- prepack.c ------------------------------------------------------------ */

/* Pack the constants of all steps that may run. Call it after the regions are
 * loaded. Errors: BYOC_ENOMEM. */
enum byoc_status byi_prepack(struct byoc_model *model, struct byoc_error *err);

/* --- code.c --------------------------------------------------------------- */

/* Set the model's `kernels` to the code of the plan's fused kernels, and
 * `functions` to that of the regions whose backends generated C. Both are for
 * the widest instruction set in use (core/base/isa.h) that the artifact has
 * code for. `code_level` becomes that of the kernels. Errors: BYOC_EINVAL
 * (BYOC_MAX_ISA is wrong), BYOC_EPARSE (damaged), BYOC_ENOMEM. */
enum byoc_status byi_code_bind(struct byoc_model *model,
                               const struct byi_image *image,
                               struct byoc_error *err);

/* --- append.c ------------------------------------------------------------ */

/* Set the members grow_axis, in_place and open_symbols of the model. */
void byi_append_find(struct byoc_model *model);

/* --- work.c: functions that a run may call ------------------------------- */

/* List the functions that a step may call; returns their number, at most two.
 */
uint32_t byi_step_callees(const struct byi_specialisation *specialisation,
                          const struct byi_step *step, uint32_t callees[2]);
/* Set `runs`, by function, for main and all functions that it may call. `list`
 * is working memory with an entry for each function of the plan. */
void byi_work_mark_functions(const struct byi_specialisation *specialisation,
                             bool *runs, uint32_t *list);

/* --- cgroup.c ------------------------------------------------------------ */

/* Bytes of memory that this process may use: the machine's memory, or the
 * lowest limit of its cgroups if that is less. */
uint64_t byi_memory_limit(void);

/* --- cache.c: the cache of specialisations -------------------------------- */

struct byi_cache_entry;
struct byi_work; /* state.h */
/* A specialisation and its working memory, taken from the cache. */
struct byi_lease {
    struct byi_cache_entry *entry;
    const struct byi_specialisation *specialisation;
    struct byi_work *work;
    bool created; /* this lease created the specialisation */
};
/* Create the model's cache. Call it after the backends are open. Errors:
 * BYOC_EINVAL (BYOC_CACHE_SHAPES or BYOC_CACHE_BYTES is not a number),
 * BYOC_ENOMEM. */
enum byoc_status byi_cache_new(struct byoc_model *model,
                               const struct byoc_load_params *params,
                               struct byoc_error *err);
void byi_cache_free(struct byoc_model *model); /* also if it has no cache */
/* Take a specialisation for `sizes`, as for byi_specialise, and memory to run
 * it; creates them if needed. If `regions`, new sizes never run on the twins of
 * regions that backends can build. On success, the caller returns the lease
 * with byi_cache_put; on failure, there is nothing to return. Threads: safe.
 * Errors: those of byi_specialise. */
enum byoc_status byi_cache_take(const struct byoc_model *model,
                                const int64_t *sizes, bool regions,
                                struct byi_lease *lease,
                                struct byoc_error *err);
/* Return the lease's specialisation and memory to the cache. Threads: safe. */
void byi_cache_put(const struct byoc_model *model, struct byi_lease *lease);
/* Print the sizes of the inputs' symbols, such as "batch=3, sequence=7" and
 * "past=any" for an open one, into `buf` of n bytes. Returns buf. */
char *byi_sizes_text(const struct byoc_model *model, const int64_t *sizes,
                     char *buf, size_t n);

/* --- runner.c ------------------------------------------------------------- */

struct byi_runners;
/* Create the queue and threads for asynchronous runs of a model, n threads, or
 * one if n is 0. NULL if an allocation fails. */
struct byi_runners *byi_runners_new(uint32_t n);
/* End the threads after their current and queued runs, and free them. *runners
 * may be NULL and becomes NULL. */
void byi_runners_free(struct byi_runners **runners);

#endif
