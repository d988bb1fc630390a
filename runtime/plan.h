/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/plan.h: plans as the executor runs them (docs/plan.md), read by
 * plan_read.c and checked by plan_check.c; models and states, for model.c and
 * exec.c.
 */
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
    BYI_PLAN_MAX_ACTIVE = 1000000, /* nested calls */
    BYI_PLAN_MAX_CALLS = 100000000 /* of one run */
};

enum byi_value_kind {
    BYI_V_INPUT,  /* index: of the input */
    BYI_V_CONST,  /* index: of the constant */
    BYI_V_TEMP,   /* offset in the arena if the size is fixed */
    BYI_V_OUTPUT, /* index: of the output; computed in its memory */
    BYI_V_ALIAS   /* root: the value whose memory it shares */
};

struct byi_value {
    enum byi_value_kind kind;
    uint32_t index;
    uint32_t root; /* itself unless an alias */
    bool fixed;    /* no dim varies; false for a function */
    uint64_t offset;
    /* of a tensor, whose dims are numbers or the plan's symbols; of a sequence
     * or optional; or BYI_FUNC without its signature */
    const struct byi_type *type;
};

static inline bool byi_value_is_func(const struct byi_value *v)
{
    return v->type->kind == BYI_FUNC;
}

/* A function, a sequence, an optional. */
static inline bool byi_value_is_object(const struct byi_value *v)
{
    return v->type->kind != BYI_TENSOR;
}

enum byi_step_kind {
    BYI_STEP_OP,
    BYI_STEP_REGION,
    BYI_STEP_KERNEL, /* a fused kernel, from the artifact */
    BYI_STEP_CALL,
    BYI_STEP_IF,      /* operands: condition, operands of then, of else */
    BYI_STEP_CLOSURE, /* operands: the callee's last inputs */
    BYI_STEP_APPLY,   /* operands: a function value, its operands */
    BYI_STEP_CHOOSE   /* operands: condition, two function values */
};

struct byi_step {
    enum byi_step_kind kind;
    bool view;       /* its result shares its first operand's memory */
    bool infer;      /* result types are inferred when it runs */
    bool tail;       /* a tail call: its results are the function's */
    bool exact;      /* its kernel uses no algorithm that rounds more */
    bool self;       /* CLOSURE: of its own function, with its last inputs */
    uint32_t callee; /* region, kernel or function; IF: then */
    uint32_t other;  /* IF: else */
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    const struct byi_kernel *kernel;
    const void *packed; /* its constants, by prepack.c; or NULL */
    uint32_t n_in, n_out, n_dead;
    /* OP: its epilogue, whose operands follow the operator's own n_own */
    uint32_t n_own, n_epilogue;
    const struct byi_epilogue_op *epilogue;
    const uint32_t *in, *out; /* values */
    /* functions, and values of varying size, whose last reader this step is */
    const uint32_t *dead;
    const char *name;    /* operator, or the region's symbol */
    const char *sources; /* the model's nodes, ", " between */
};

struct byi_plan_func {
    const char *name;
    uint32_t n_values, n_inputs, n_outputs, n_steps;
    struct byi_value *values;
    const uint32_t *inputs, *outputs; /* values */
    struct byi_step *steps;
    uint64_t arena;
};

struct byi_plan_const {
    uint64_t offset;
    struct byi_tensor view; /* data: mapped; NULL until it is widened */
    /* of float32 that is stored as `stored`: float16, bfloat16, or int8 with a
     * step for each index along `axis`; else NULL */
    const void *narrow;
    uint64_t narrow_bytes;
    enum byoc_dtype stored;
    uint32_t axis;
};

struct byi_plan_part {
    const char *backend, *symbol;
    const char *code;          /* the C function it became; NULL: none */
    uint64_t blob, blob_bytes; /* offset in the blobs */
    uint32_t twin;             /* function */
    uint32_t n_consts;
    const uint32_t *consts;
    /* a shape of its inputs or outputs is symbolic: the blob is its JSON */
    bool varies;
};

struct byi_plan_kernel {
    const char *symbol;
    uint32_t twin; /* function */
};

/* Lives in its arena. */
struct byi_plan_tables {
    struct byi_arena *arena;
    bool exact; /* every step is */
    uint32_t n_funcs, n_consts, n_parts, n_kernels, n_symbols;
    struct byi_plan_func *funcs; /* 0: the entry */
    struct byi_plan_const *consts;
    struct byi_plan_part *parts;
    struct byi_plan_kernel *kernels;
    const char **symbols; /* dim -1 - i has the name symbols[i] */
    uint32_t max_args;    /* operands and results of one step */
};

/* Read and check the plan of an image: every index, every type against its
 * operator's rule, the ranges of constants and blobs. Errors name the path:
 * "functions[0].steps[3].in[1]: ...". */
enum byoc_status byi_plan_read(const struct byi_image *image,
                               struct byi_plan_tables **plan,
                               struct byoc_error *err);
void byi_plan_tables_free(struct byi_plan_tables **plan);

/* --- list_type.c --------------------------------------------------------- */

/* The kind of list that a dtype in JSON names; BYI_TENSOR: none. */
enum byi_type_kind byi_list_kind(const char *dtype);
/* {"dtype": "sequence", "of": {...}}: the type, in `arena`. */
enum byoc_status byi_list_type_read(const struct byi_json *at,
                                    struct byi_arena *arena,
                                    const struct byi_type **type,
                                    struct byoc_error *err);

/* --- plan_check.c: what plan_read.c cannot see line by line -------------- */

/* Check the types of every step against its operator's rule, find kernels,
 * scratch, lifetimes. */
enum byoc_status byi_plan_check(struct byi_plan_tables *plan,
                                struct byoc_error *err);

/* --- model.c ------------------------------------------------------------- */

/* A region, loaded by its backend or running its twin. */
struct byi_region {
    const struct byi_plugin *plugin; /* NULL: the twin runs */
    const char *fault;               /* why the twin runs; NULL: as requested */
    void *compiled;
    bool lent; /* owned by the model's own instance */
};

/* A plan, and its regions as built by their backends. Immutable. */
struct byi_instance {
    const struct byoc_model *model;
    const struct byi_plan_tables *plan;
    struct byi_region *regions;
    bool starved; /* a region runs its twin because memory ran out */
    bool twins;   /* made with BYI_TWINS */
};

struct byi_cache;
struct byoc_model {
    /* map NULL: the image belongs to the caller */
    struct byi_artifact artifact;
    struct byi_image image;            /* borrowed */
    struct byi_memory_library library; /* of the artifact */
    struct byi_memory *memory;
    struct byi_runners *runners;
    struct byi_widened *widened; /* consts.c */
    void *packed; /* constants in the layout that kernels read fastest */
    struct byi_arena *arena;
    struct byi_plan_tables *plan;
    /* of this plan; regions with symbolic dims have their plug-in, but are not
     * built */
    struct byi_instance own;
    uint32_t n_keys; /* symbols of the inputs' shapes */
    uint32_t *keys;
    uint32_t *grows;    /* by input: the axis along which an output is longer;
                           its rank: an output has its shape, with rows
                           replaced; UINT32_MAX: neither */
    uint32_t *in_place; /* by output: the input whose memory it may have;
                           UINT32_MAX: none */
    bool *open; /* by symbol: specialisations leave it open, since it is the
                   length of an input that grows */
    struct byi_cache *cache; /* NULL: no symbols, `own` runs */
    byi_fused_fn *kernels;   /* by the plan's kernel; NULL: its twin runs */
    const char *code_level;  /* the level they were compiled for, or NULL */
    /* by the plan's region with code; NULL: not for this machine */
    byi_unit_fn *functions;
    struct byi_plugin *plugins;
    struct byoc_io *inputs, *outputs;
    const struct byoc_metadata *metadata;
    uint32_t n_metadata;
    uint32_t threads;
    struct byi_ways ways; /* of its parallel regions */
    struct byi_pace pace;
    bool require_backends;
    char threads_why[256];
    struct byi_text warnings;
    struct byi_log log;
};

/* --- consts.c ------------------------------------------------------------- */

/* Align the constants; close frees their copies, and may follow a failure. */
enum byoc_status byi_consts_open(struct byoc_model *model,
                                 struct byoc_error *err);
void byi_consts_close(struct byoc_model *model);
/* Widen those of the n constants that are stored narrow. Threads: safe. Jumps
 * to no guard. Errors: BYOC_ENOMEM. */
enum byoc_status byi_consts_widen(const struct byoc_model *model,
                                  const uint32_t *list, uint32_t n,
                                  struct byoc_error *err);
/* A constant's data; NULL: it is stored narrow, and nothing has widened it.
 * Threads: safe. */
void *byi_const_data(const struct byoc_model *model, uint32_t index);
/* The codes of a constant; false: it is not stored as int8. */
struct byi_row_codes;
bool byi_const_codes(const struct byi_plan_const *c,
                     struct byi_row_codes *codes);
/* Widen the constants that steps of the instance read, and set their data in
 * `consts`, which are its plan's. Call it after its regions are loaded. Errors:
 * BYOC_ENOMEM. */
enum byoc_status byi_consts_read(const struct byi_instance *in,
                                 struct byi_plan_const *consts,
                                 struct byoc_error *err);

/* --- backends.c ----------------------------------------------------------- */

/* Keep a warning of the model, and log it. */
void byi_model_warn(struct byoc_model *model, const char *text);
void byi_model_say_plugin(const struct byoc_model *model,
                          const struct byi_plugin *plugin);
/* Open the plug-ins of a plan's regions and have them build those. Errors:
 * BYOC_ENOMEM, BYOC_EBACKEND (require_backends). */
struct byi_facts;
/* Open the plug-ins whose operators the model calls, which must be there. */
enum byoc_status byi_operators_open(struct byoc_model *model,
                                    const struct byoc_load_params *params,
                                    const struct byi_facts *facts,
                                    struct byoc_error *err);
enum byoc_status byi_backends_load(struct byoc_model *model,
                                   const struct byoc_load_params *params,
                                   const struct byi_facts *facts,
                                   struct byoc_error *err);
/* The constants of a region, as passed to its backend; in `arena`. Errors:
 * BYOC_ENOMEM. */
enum byoc_status byi_region_consts(const struct byoc_model *model,
                                   const struct byi_plan_part *part,
                                   const struct byi_plugin *plugin,
                                   struct byi_arena *arena,
                                   struct byi_region_consts *consts,
                                   struct byoc_error *err);
/* Drop the pages of mapped constants of which the backends have copies. */
void byi_backends_drop_consts(const struct byi_instance *in);
/* Let a backend build a region from its JSON. */
enum byoc_status byi_region_load(const struct byi_plugin *plugin,
                                 const char *symbol,
                                 const struct byi_region_consts *consts,
                                 const char *json, size_t n,
                                 struct byi_region *region,
                                 struct byoc_error *err);

/* --- specialise.c --------------------------------------------------------- */

/* Set *in to a specialisation for these sizes, by symbol of the plan, -1 for
 * symbols that are not the inputs'. A region that its backend cannot build has
 * a fault; if memory runs out, only with BYI_LAST, otherwise that is an error.
 * With BYI_TWINS all regions of backends have one, and are not built.
 * End it with byi_instance_end. Errors: BYOC_ETYPE (the model refuses these
 * sizes), BYOC_ELIMIT, BYOC_ENOMEM. */
enum { BYI_LAST = 1, BYI_TWINS = 2 };
enum byoc_status byi_specialise(const struct byoc_model *model,
                                const int64_t *sizes, unsigned how,
                                struct byi_instance *in,
                                struct byoc_error *err);
void byi_instance_end(struct byi_instance *in);

/* --- site.c --------------------------------------------------------------- */

/* The results of a call of function `func` with operands of these types and
 * values (NULL: unknown): sets out[i] and out_values[i], in `arena`, for each
 * output that follows from them. The caller sets them to NULL first. The plan
 * is the model's own, not a specialisation. */
void byi_site_eval(const struct byi_plan_tables *plan, uint32_t func,
                   const struct byi_type *const *types,
                   const struct byi_tensor *const *values,
                   struct byi_arena *arena, const struct byi_type **out,
                   const struct byi_tensor **out_values);

/* --- prepack.c ------------------------------------------------------------ */

/* Pack the constants of all steps that may run. Call it after the regions are
 * loaded. */
enum byoc_status byi_prepack(struct byoc_model *model, struct byoc_error *err);

/* --- code.c --------------------------------------------------------------- */

/* Find the code of the plan's kernels that this CPU can run. */
enum byoc_status byi_code_bind(struct byoc_model *model,
                               const struct byi_image *image,
                               struct byoc_error *err);

struct byi_frame;

/* --- append.c: outputs in the memory of an input ---------------------------
 */

/* Where the rows of a tensor are that has room to grow along axis `axes`: in
 * planes, one for each position of the axes before it. */
struct byi_row_planes {
    uint32_t axes;
    bool placed;    /* an output: it is complete in its destination, and the
                       frame has a dense copy */
    uint64_t pitch; /* bytes from plane to plane; 0: dense */
};

/* Set the model's grows, in_place and open. */
void byi_append_find(struct byoc_model *model);
/* The planes of a caller's view that grows along `axis`, also of a dense one;
 * false: its strides are others. */
bool byi_planes_read(const DLTensor *view, uint32_t axis,
                     struct byi_row_planes *planes);
/* Bytes from a tensor's first to its last one. */
uint64_t byi_planes_extent(const struct byi_tensor *t,
                           const struct byi_row_planes *planes);
bool byi_planes_dense(const struct byi_tensor *t,
                      const struct byi_row_planes *planes);
/* Make value `v` dense, by a copy: all operands of a step. */
enum byoc_status byi_planes_pack(struct byoc_state *state,
                                 struct byi_frame *frame, uint32_t v,
                                 struct byoc_error *err);
enum byoc_status byi_planes_pack_all(struct byoc_state *state,
                                     struct byi_frame *frame,
                                     const struct byi_step *step,
                                     struct byoc_error *err);
/* Set the memory of alias `v`, whose dims are set, of a value in planes. */
enum byoc_status byi_planes_alias(struct byoc_state *state,
                                  struct byi_frame *frame, uint32_t v,
                                  struct byoc_error *err);
/* Run a step of an operator where it can read and write planes, or make its
 * operands dense: *done is false. Results have dims and memory. */
enum byoc_status byi_planes_run(struct byoc_state *state,
                                struct byi_frame *frame,
                                const struct byi_step *step, bool *done,
                                struct byoc_error *err);

/* --- pool.c: memory of values whose size varies -------------------------- */

struct byi_block {
    void *at; /* NULL: a slot without memory */
    uint64_t bytes;
    uint64_t filled;  /* bytes of its value, of the longest of its values */
    uint64_t run;     /* number of the last run that used it */
    uint32_t readers; /* how many readers have it; 0: free */
    uint32_t next;    /* 1 + the next block of its list, if free */
    bool kept;        /* kept for the next run */
};

enum { BYI_POOL_CLASSES = 64 };

struct byi_pool {
    struct byi_memory *memory; /* NULL: any */
    struct byi_block *at;
    uint32_t n, cap;
    /* 1 + block: free lists by log2 of bytes */
    uint32_t free[BYI_POOL_CLASSES];
    uint32_t empty; /* 1 + slot: the list of slots without memory */
    uint64_t bytes, limit, run;
    uint64_t used, idle; /* bytes of blocks: taken, free */
    uint64_t most_used;  /* at the same time, in recent runs */
};

/* Start a run: free all blocks except the kept ones, and release those that few
 * runs needed. */
void byi_pool_reset(struct byi_pool *pool);
/* Keep the block that begins at `data`, if there is one, until the second reset
 * after this. */
void byi_pool_keep(struct byi_pool *pool, const void *data);
/* A block of at least `bytes`, BYI_ALIGN-aligned; its number in *block. */
enum byoc_status byi_pool_take(struct byi_pool *pool, uint64_t bytes,
                               uint32_t *block, struct byoc_error *err);
/* Add a reader of a block: it must be freed once more. */
void byi_pool_share(struct byi_pool *pool, uint32_t block);
/* Let the block's value of `from` bytes be the beginning of another of `to`
 * bytes, for one more reader. False if a longer value is in the block already,
 * or `to` bytes do not fit. */
bool byi_pool_extend(struct byi_pool *pool, uint32_t block, uint64_t from,
                     uint64_t to);
void byi_pool_give(struct byi_pool *pool, uint32_t block);
/* Count memory outside of the blocks towards the limit. */
enum byoc_status byi_pool_charge(struct byi_pool *pool, uint64_t bytes,
                                 struct byoc_error *err);
void byi_pool_refund(struct byi_pool *pool, uint64_t bytes);
void byi_pool_free(struct byi_pool *pool);

/* --- closure.c: values that hold values ---------------------------------- */

/* A captured value, or an element of a list. */
struct byi_item {
    struct byi_tensor t;
    /* 1 + the pool's block that contains t; 0: its memory outlives the run */
    uint32_t block;
    struct byi_object *object; /* not NULL: not a tensor */
};

/* A closure: a function of the plan with values for its last inputs; a
 * sequence; an optional, with one element or none. Reference-counted, and
 * immutable once shared, so there are no cycles. */
struct byi_object {
    uint32_t readers, func, n, room; /* room: of a list's items */
    struct byi_object *next;         /* of the objects to be freed */
    struct byi_item at[];
};

struct byi_object *byi_object_share(struct byi_object *object);
/* Drop a reference; the last one frees it. NULL is fine. */
void byi_object_give(struct byoc_state *state, struct byi_object *object);
/* Value `v` of an activation as an item: shared, or copied if its memory does
 * not live long enough. */
enum byoc_status byi_object_capture(struct byoc_state *state,
                                    struct byi_frame *frame, uint32_t v,
                                    struct byi_item *item,
                                    struct byoc_error *err);
/* Drop an item. */
void byi_object_drop(struct byoc_state *state, struct byi_item *item);

/* --- list.c: sequences and optionals -------------------------------------- */

/* A list of n items, to be filled in. */
enum byoc_status byi_list_new(struct byoc_state *state, uint32_t n,
                              struct byi_object **list, struct byoc_error *err);
/* A step whose operator has BYI_TRAIT_LIST. */
enum byoc_status byi_list_run(struct byoc_state *state, struct byi_frame *frame,
                              const struct byi_step *step,
                              struct byoc_error *err);

/* --- frame.c: activations of functions ----------------------------------- */

/* An activation of a function. The first one of each function is allocated with
 * the state; further ones, for recursion, are allocated and freed during the
 * run. */
struct byi_frame {
    uint32_t func;
    uint32_t at;                   /* the current step */
    struct byi_frame *up;          /* the caller's; NULL: none */
    struct byi_frame *next;        /* in the list of spare frames */
    struct byi_object *self;       /* the closure that was applied, or NULL */
    uint64_t began;                /* time of the call, if there is a trace */
    uint64_t bytes;                /* total size of its memory */
    bool active, extra;            /* extra: a further one of its function */
    struct byi_tensor *t;          /* by value */
    uint32_t *block;               /* by value: 1 + its block of the pool */
    bool strided;                  /* values may be in planes, or in place */
    struct byi_row_planes *planes; /* by value */
    struct byi_object **obj;       /* by value, for lists and functions */
    /* by output: its destination; data NULL: to be provided */
    struct byi_tensor *dest;
    struct byi_row_planes *dest_planes; /* by output */
    struct byoc_view **views; /* by step: a region's operands, results */
};

/* NULL if an allocation fails. */
struct byi_frame *byi_frame_new(const struct byi_instance *in, uint32_t func);
/* Take a frame for an activation of function `func`; end the activation. */
enum byoc_status byi_frame_take(struct byoc_state *state, uint32_t func,
                                struct byi_frame **frame,
                                struct byoc_error *err);
void byi_frame_give(struct byoc_state *state, struct byi_frame *frame);
/* Mark it active, with all values dense. */
void byi_frame_begin(const struct byoc_state *state, struct byi_frame *frame);
/* Drop value `v` of an activation. */
void byi_frame_drop(struct byoc_state *state, struct byi_frame *frame,
                    uint32_t v);
/* Memory for result `v`, whose dims are set: where its value is, or a block of
 * the pool; a block in any case. */
enum byoc_status byi_frame_provide(struct byoc_state *state,
                                   struct byi_frame *frame, uint32_t v,
                                   struct byoc_error *err);
enum byoc_status byi_frame_block(struct byoc_state *state,
                                 struct byi_frame *frame, uint32_t v,
                                 struct byoc_error *err);

/* --- work.c: what runs of an instance need, one at a time ----------------- */

struct byi_work {
    const struct byi_instance *in;
    struct byi_work *next; /* in the list of idle ones */
    uint64_t bytes;        /* of the frames                                */
    struct byi_frame **frames; /* by function: the first; NULL: never runs */
    struct byi_frame **spare;  /* by function: a list of further frames */
    uint64_t spare_bytes;
    void **region_states; /* by region                                  */
    bool *region_made;    /* by region: state_new succeeded             */
    uint64_t scratch; /* bytes for the step of fixed shapes that needs most */
};

/* The functions that a step may call, up to two. */
uint32_t byi_step_callees(const struct byi_instance *in,
                          const struct byi_step *step, uint32_t callees[2]);
/* Mark main and all functions that it may call. `list` has room for all. */
void byi_mark_reached(const struct byi_instance *in, bool *runs,
                      uint32_t *list);
/* Errors: BYOC_ENOMEM, and those of backends. */
enum byoc_status byi_work_new(const struct byi_instance *in,
                              struct byi_work **work, struct byoc_error *err);
void byi_work_free(struct byi_work **work);
/* Free the frames of a recursion, which were charged to the run's pool, before
 * another state's run takes the work. */
void byi_work_clear(struct byi_work *work, struct byi_pool *pool);

/* --- cache.c: instances by the sizes that they are for -------------------- */

struct byi_entry;
/* An instance and its working memory, taken from the cache. */
struct byi_lease {
    struct byi_entry *entry;
    const struct byi_instance *in;
    struct byi_work *work;
    bool made; /* it was not in the cache */
};
/* Call it after the backends are open. */
enum byoc_status byi_cache_new(struct byoc_model *model,
                               const struct byoc_load_params *params,
                               struct byoc_error *err);
void byi_cache_free(struct byoc_model *model); /* NULL is fine */
/* `sizes` is as for byi_specialise; regions: never serve new sizes by twins of
 * regions that backends could build. Threads: safe. */
enum byoc_status byi_cache_take(const struct byoc_model *model,
                                const int64_t *sizes, bool regions,
                                struct byi_lease *lease,
                                struct byoc_error *err);
void byi_cache_give(const struct byoc_model *model, struct byi_lease *lease);
/* "batch=3, sequence=7". Returns buf. */
char *byi_sizes_text(const struct byoc_model *model, const int64_t *sizes,
                     char *buf, size_t n);

/* --- state.c, run.c, exec.c, call.c --------------------------------------- */

/* A run that byoc_run_async queued; guarded by the lock of the runners. */
struct byi_later {
    const struct byoc_request *request;
    byoc_done_fn done;
    void *ctx;
    struct byoc_state *next; /* of the queue                             */
    bool busy;               /* until the run has ended                  */
    uint32_t callbacks;      /* calls of `done` that have not returned   */
    /* the process in which the above holds: a count of forks */
    uint32_t process;
};

struct byoc_state {
    const struct byoc_model *model;
    struct byi_later later;
    /* by input, by output: its binding, of a request; UINT32_MAX: none */
    uint32_t *in_at, *out_at;
    bool *needed; /* by step of main: an output of the request depends on it */
    size_t needed_room;
    bool choosing; /* this run skips steps that are not needed */
    const struct byi_instance *in; /* what runs */
    struct byi_work *work;         /* of it */
    struct byi_lease lease;        /* during a run, if sizes vary */
    struct byi_tensor *inputs;     /* by input */
    struct byi_row_planes *planes; /* by input: as the caller's strides say */
    struct byi_tensor *
        /* by output: the caller's view as filled in by the last run that
         * computed it, with its dims here; data NULL: none did */
        results;
    struct byi_frame *top; /* the current activation */
    uint32_t depth;        /* number of activations */
    uint32_t max_depth;
    uint64_t calls, max_calls; /* of one run */
    uint64_t draws;            /* of random numbers, over all runs */
    /* by output of main: memory for callers that provide none; NULL if the size
     * varies */
    void **out;
    int64_t *dims;                 /* by symbol: bound by the inputs; -1 open */
    struct byi_tensor *args;       /* of the current kernel */
    void **buffers;                /* of the current fused kernel */
    const struct byi_type **types; /* of its operands, when inferring */
    struct byi_type *type_store;
    const struct byi_tensor **known;
    void *scratch;
    uint64_t scratch_bytes;
    struct byi_pool pool;
    struct byi_string_store strings; /* of the run, and of its outputs */
    struct byi_arena *given;         /* trees of outputs that are not tensors */
    struct byi_arena *infer;         /* types of this run's last steps */
    uint64_t n_inferred;
    struct byi_trace *trace;
    volatile uint32_t cancel; /* not 0: the run must end; atomic */
    byi_watch_fn watch;       /* NULL: none */
    void *watch_ctx;
    byi_lend_fn lend; /* NULL: none */
    void *lend_ctx;
};

/* cgroup.c: the bytes of memory that this process may use. */
uint64_t byi_memory_limit(void);
/* exec.c: operands and results of a step, in `args`, for its kernel.
 */
struct byi_call byi_exec_call(struct byi_tensor *args,
                              const struct byi_frame *fr,
                              const struct byi_step *step, uint32_t threads);
/* exec.c: make the scratch memory at least this large. */
enum byoc_status byi_exec_need(struct byoc_state *state, uint64_t bytes,
                               struct byoc_error *err);
/* exec.c: free the results of the previous run, including its outputs. */
void byi_exec_begin(struct byoc_state *state);
/* exec.c: drop the sequences and functions that main holds. */
void byi_exec_drop(struct byoc_state *state);
/* exec.c: check that the memory given for an output has its shape. */
enum byoc_status byi_exec_fits(const struct byi_plan_func *f, uint32_t output,
                               const struct byi_tensor *t,
                               const struct byi_tensor *dest,
                               struct byoc_error *err);
/* exec.c: run main; its inputs and dests are bound. */
enum byoc_status byi_exec_main(struct byoc_state *state,
                               struct byoc_error *err);
/* call.c: run steps of these kinds. A call leaves the callee's activation as
 * state->top; byi_call_leave ends it and gives its results to the calling step.
 */
enum byoc_status byi_call_func(struct byoc_state *state, struct byi_frame *fr,
                               const struct byi_step *step,
                               struct byoc_error *err);
enum byoc_status byi_call_if(struct byoc_state *state, struct byi_frame *fr,
                             const struct byi_step *step,
                             struct byoc_error *err);
enum byoc_status byi_call_apply(struct byoc_state *state, struct byi_frame *fr,
                                const struct byi_step *step,
                                struct byoc_error *err);
enum byoc_status byi_call_leave(struct byoc_state *state,
                                struct byoc_error *err);
/* closure.c: run steps of these kinds. */
enum byoc_status byi_closure_make(struct byoc_state *state,
                                  struct byi_frame *fr,
                                  const struct byi_step *step,
                                  struct byoc_error *err);
enum byoc_status byi_closure_choose(struct byoc_state *state,
                                    struct byi_frame *fr,
                                    const struct byi_step *step,
                                    struct byoc_error *err);
/* The condition of a step, its first operand. */
enum byoc_status byi_closure_condition(const struct byi_frame *fr,
                                       const struct byi_step *step, bool *is,
                                       struct byoc_error *err);

/* values.c: convert callers' trees to objects, and back. `io` is the model's
 * declaration. A new tree lives in state->given until the next run. */
enum byoc_status byi_value_check(
    const struct byoc_value *value, const struct byoc_io *io,
    struct byoc_error *err); /* checks only its kind */
enum byoc_status byi_value_read(struct byoc_state *state,
                                const struct byoc_value *value,
                                const struct byoc_io *io,
                                struct byi_object **object,
                                struct byoc_error *err);
enum byoc_status byi_value_write(struct byoc_state *state,
                                 const struct byi_object *object,
                                 const struct byoc_io *io,
                                 struct byoc_value *value,
                                 struct byoc_error *err);
/* Check a caller's tensor. It may be in planes if it grows along `axis`, which
 * is less than its rank; *planes gets them, unless it is NULL. */
enum byoc_status byi_check_view(const DLTensor *view, const char *what,
                                const struct byoc_io *io, struct byi_tensor *t,
                                uint32_t axis, struct byi_row_planes *planes,
                                struct byoc_error *err);
/* Copy the strings of a tensor into the state. */
enum byoc_status byi_own_strings(struct byoc_state *state,
                                 const struct byi_tensor *t, void *data,
                                 struct byoc_error *err);

/* --- request.c ------------------------------------------------------------ */

/* Set in_at and out_at. Errors: BYOC_EINVAL. */
enum byoc_status byi_request_place(struct byoc_state *state,
                                   const struct byoc_request *request,
                                   struct byoc_error *err);
/* Set `needed` for the outputs in out_at. */
enum byoc_status byi_request_choose(struct byoc_state *state,
                                    struct byoc_error *err);

/* --- runner.c ------------------------------------------------------------- */

struct byi_runners;
/* NULL if an allocation fails. n 0: one thread. */
struct byi_runners *byi_runners_new(uint32_t n);
void byi_runners_free(struct byi_runners **runners); /* NULL is fine */
/* Wait until the state has no queued or active run, and all callbacks have
 * returned except one that the calling thread is in. */
void byi_runners_wait(struct byoc_state *state);

/* --- trace.c -------------------------------------------------------------- */

/* The receiver of the events of a state's runs: a file or a callback; NULL:
 * none. */
struct byi_trace;
/* Write them to a file; NULL: none. Closes the previous file, and returns its
 * write errors. */
enum byoc_status byi_trace_file(struct byi_trace **trace, const char *path,
                                struct byoc_error *err);
/* Pass them to a callback; NULL: none. */
enum byoc_status byi_trace_use(struct byi_trace **trace,
                               void (*use)(void *ctx,
                                           const struct byoc_event *event),
                               void *ctx, struct byoc_error *err);
/* Tag the following events; NULL: no tag. */
void byi_trace_tag(struct byi_trace *trace, const char *tag);
uint64_t byi_trace_now(void); /* nanoseconds of CLOCK_MONOTONIC */
/* An event that ends now, as `event` describes it; strings may be NULL. */
void byi_trace_event(struct byi_trace *trace, const struct byoc_event *event);

/* --- costs.c -------------------------------------------------------------- */

/* Set the event's operations and bytes: those of a step, whose operands have
 * their sizes in `frame`. */
void byi_cost_step(const struct byi_plan_tables *plan,
                   const struct byi_frame *frame, const struct byi_step *step,
                   struct byoc_event *event);

/* A region's run, to find the operators that its primitives compute: those of
 * the twin. */
struct byi_cost_region {
    const struct byi_plan_func *twin;
    /* by step of the twin: the primitive that computes it, from 1; 0: none yet.
     * NULL: memory ran out, nothing is known */
    uint32_t *taken;
    uint32_t n, begin; /* primitives; steps before `begin` are taken */
};
void byi_cost_begin(const struct byi_plan_tables *plan, uint32_t region,
                    struct byi_cost_region *costs);
void byi_cost_end(struct byi_cost_region *costs);
/* The same for a primitive of the region, whose name has operators of the twin,
 * joined by '+', and whose sources are theirs. */
void byi_cost_primitive(struct byi_cost_region *costs,
                        struct byoc_event *event);

/* --- manifest.c ----------------------------------------------------------- */

/* An input or output, and a backend, from the manifest. */
struct byi_fact_io {
    const char *name;
    /* of a sequence or optional, for which the rest is not set; or NULL */
    const struct byi_type *list;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t *dims; /* -1: varies */
    const char **dim_names;
};
struct byi_fact_backend {
    const char *name, *version, *compat;
    bool operators; /* the plan calls operators of it */
};
struct byi_facts {
    const char *name, *symbol, *byoc, *isa;
    uint32_t n_inputs, n_outputs, n_backends;
    struct byi_fact_io *inputs, *outputs;
    struct byi_fact_backend *backends;
    struct byi_warm warm;
    struct byoc_metadata *metadata;
    uint32_t n_metadata;
    const char *plan_hash, *ledger_hash, *blobs_hash,
        *weights_hash; /* or NULL */
};
/* Read the manifest of an image into `arena`; checks format and version. */
enum byoc_status byi_manifest_read(const char *text, size_t n,
                                   struct byi_arena *arena,
                                   struct byi_facts *facts,
                                   struct byoc_error *err);

#endif
