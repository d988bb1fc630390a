/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/state.h: states and the memory of a run: pools, objects, frames, and
 * the functions that run steps on them. */
#ifndef BYI_RUNTIME_STATE_H
#define BYI_RUNTIME_STATE_H

#include "core/base/clock.h"
#include "plan.h"

struct byi_frame;

/* A function that runs a step of a frame, and one that makes the memory of
 * value v. */
typedef enum byoc_status byi_step_run(struct byoc_state *state,
                                      struct byi_frame *frame,
                                      const struct byi_step *step,
                                      struct byoc_error *err);
typedef enum byoc_status byi_value_make(struct byoc_state *state,
                                        struct byi_frame *frame, uint32_t v,
                                        struct byoc_error *err);

/* --- append.c: outputs in the memory of an input ------------------------ */

/* The layout of a tensor with room to grow along an axis. Its rows are in
 * planes, one for each position of the `axes` axes before that axis. */
struct byi_row_planes {
    uint32_t axes;
    bool placed;    /* the value is an output that is complete in its
                     * destination; the frame's tensor is a dense copy */
    uint64_t pitch; /* bytes from plane to plane; 0: dense */
};

/* Read the planes of a caller's view that grows along `axis`; a dense view has
 * planes, too. Returns false if the view has other strides. */
bool byi_row_planes_read(const DLTensor *view, uint32_t axis,
                         struct byi_row_planes *planes);
/* Bytes from the first byte of a tensor to its end, including gaps between
 * planes. */
uint64_t byi_row_planes_extent(const struct byi_tensor *t,
                               const struct byi_row_planes *planes);
/* Whether there are no gaps between the planes. */
bool byi_row_planes_are_dense(const struct byi_tensor *t,
                              const struct byi_row_planes *planes);
/* Make value `v`, or all operands of a step, dense by copying. Errors: those of
 * byi_pool_take. */
byi_value_make byi_row_planes_make_dense;
byi_step_run byi_row_planes_make_all_dense;
/* Set the memory of alias `v` of a value in planes; the caller has set the dims
 * of `v`. Errors: those of byi_pool_take. */
byi_value_make byi_row_planes_alias;
/* If the step takes the first rows along an axis of an output, set its result
 * to these rows without copying them, and return true. */
bool byi_row_planes_slice(struct byoc_state *state, struct byi_frame *frame,
                          const struct byi_step *step);
/* If the operator of `step` can read and write planes, run the step and set
 * *done; otherwise make its operands dense and set *done to false. The caller
 * has set the dims and memory of the results. Errors: those of byi_pool_take
 * and of the step's kernel. */
enum byoc_status byi_row_planes_run(struct byoc_state *state,
                                    struct byi_frame *frame,
                                    const struct byi_step *step, bool *done,
                                    struct byoc_error *err);

/* --- pool.c: memory of values whose size varies -------------------------- */

/* A block of a pool. */
struct byi_block {
    void *at; /* NULL: a slot without memory */
    uint64_t bytes;
    uint64_t filled; /* bytes of the longest value in it */
    uint64_t run;    /* number of the last run that used it */
    uint32_t n_refs; /* references; 0: free */
    uint32_t next;   /* if free: 1 + the next block of its list */
    bool kept;       /* stays reserved during the next run */
};

enum { BYI_POOL_CLASSES = 64 };

/* Blocks of memory that the values of a state's runs reuse. */
struct byi_pool {
    struct byi_memory *memory; /* NULL: byi_memory_allocate without a limit */
    struct byi_block *at;
    uint32_t n, cap; /* slots in use, and allocated slots of `at` */
    /* free lists by log2 of bytes; entries are 1 + block */
    uint32_t free[BYI_POOL_CLASSES];
    uint32_t empty; /* list of slots without memory; 1 + slot */
    uint64_t bytes; /* of all blocks, and charged; at most `limit` */
    uint64_t limit;
    uint64_t run;        /* number of the run */
    uint64_t used, idle; /* bytes of the taken blocks; of the free blocks */
    uint64_t most_used;  /* maximum of `used`, which decays from run to run */
};

/* Start a run: make all blocks free except the kept ones, and release the
 * memory of those that no recent run used. */
void byi_pool_reset(struct byi_pool *pool);
/* Keep the block that begins at `data`, if there is one, until the second call
 * of byi_pool_reset after this. */
void byi_pool_keep(struct byi_pool *pool, const void *data);
/* Take a block of at least `bytes` bytes, aligned to BYI_ALIGN; sets *block to
 * its number. Errors: BYOC_ENOMEM, BYOC_ELIMIT. */
enum byoc_status byi_pool_take(struct byi_pool *pool, uint64_t bytes,
                               uint32_t *block, struct byoc_error *err);
/* Add a reference to a block, which byi_pool_drop must then drop. */
void byi_pool_share(struct byi_pool *pool, uint32_t block);
/* Let the block's value of `from` bytes also be the beginning of a new value of
 * `to` bytes, which gets a reference. Returns false if the block already has a
 * longer value, or is smaller than `to` bytes. */
bool byi_pool_extend(struct byi_pool *pool, uint32_t block, uint64_t from,
                     uint64_t to);
/* Drop a reference to a block; without references it is free. */
void byi_pool_drop(struct byi_pool *pool, uint32_t block);
/* Count `bytes` bytes of memory outside of the blocks towards the limit.
 * Errors: BYOC_ELIMIT. */
enum byoc_status byi_pool_charge(struct byi_pool *pool, uint64_t bytes,
                                 struct byoc_error *err);
/* Undo a charge of `bytes`. */
void byi_pool_refund(struct byi_pool *pool, uint64_t bytes);
/* Release the memory of all blocks. */
void byi_pool_free(struct byi_pool *pool);

/* --- closure.c: closures and other objects -------------------------------- */

/* A captured value, or an element of a list. */
struct byi_item {
    struct byi_tensor t;
    /* 1 + the pool's block that contains t; 0: its memory outlives the run */
    uint32_t block;
    struct byi_object *object; /* not NULL: the item is this object instead of a
                                * tensor */
};

/* A closure (a function of the plan with values for its last inputs), a
 * sequence, or an optional, which has one element or none. Reference-counted,
 * and immutable once shared, so there are no cycles. */
struct byi_object {
    uint32_t n_refs;         /* number of references */
    uint32_t func;           /* of a closure: its function in the plan */
    uint32_t n, capacity;    /* number of items; allocated items of a list */
    struct byi_object *next; /* in a list of objects to be freed */
    struct byi_item at[];
};

static inline uint64_t byi_object_bytes(uint32_t capacity)
{
    return sizeof(struct byi_object) + capacity * sizeof(struct byi_item);
}

/* Make an object of n items, which the caller fills in, with one reference;
 * byi_object_release drops it. Errors: BYOC_ENOMEM, BYOC_ELIMIT. */
enum byoc_status byi_object_new(struct byoc_state *state, uint32_t n,
                                struct byi_object **object,
                                struct byoc_error *err);
/* Add a reference; returns the object. */
struct byi_object *byi_object_share(struct byi_object *object);
/* Drop a reference, the last of which frees the object. It may be NULL. */
void byi_object_release(struct byoc_state *state, struct byi_object *object);
/* Set *item to value `v` of an activation: shares the value, or copies it if
 * its memory does not live long enough. byi_item_release releases the item.
 * Errors: those of byi_pool_take. */
enum byoc_status byi_object_capture(struct byoc_state *state,
                                    struct byi_frame *frame, uint32_t v,
                                    struct byi_item *item,
                                    struct byoc_error *err);
/* Drop the item's reference to its block or object. */
void byi_item_release(struct byoc_state *state, struct byi_item *item);

/* --- list.c: sequences and optionals -------------------------------------- */

/* Run a step whose operator has BYI_TRAIT_LIST. Errors: BYOC_EINVAL (a position
 * outside of the list, an empty optional), BYOC_ETYPE, BYOC_ELIMIT,
 * BYOC_ENOMEM.
 */
byi_step_run byi_list_run;

/* --- frame.c: activations of functions ----------------------------------- */

/* The memory of an activation of a function. byi_work_new allocates the first
 * one of each function; a run allocates and frees further ones for recursion.
 */
struct byi_frame {
    uint32_t func;
    uint32_t at;             /* the current step */
    struct byi_frame *up;    /* the caller's frame; NULL: none */
    struct byi_frame *next;  /* in the list of spare frames */
    struct byi_object *self; /* the closure that was applied, or NULL */
    uint64_t began;          /* time of the call, if there is a trace */
    uint64_t bytes;          /* total size of its memory */
    bool active, extra;      /* `extra`: not the first frame of its
                              * function */
    struct byi_tensor *t;    /* indexed by value */
    uint32_t *block;         /* for each value: 1 + its block of the pool */
    bool strided;            /* values may be in planes, or be computed in
                              * the memory of an input */
    struct byi_row_planes *planes; /* indexed by value */
    struct byi_object **obj; /* indexed by value, for lists and functions */
    /* for each output: its destination; `data` NULL: the step provides memory
     */
    struct byi_tensor *dest;
    struct byi_row_planes *dest_planes; /* indexed by output */
    /* for each step: a region's operands and results */
    struct byoc_view **views;
};

/* Allocate the memory of an activation of function `func`. Returns NULL, with
 * BYOC_ENOMEM in *err, if that fails. Free it with byi_memory_release, with the
 * model's memory. */
struct byi_frame *byi_frame_new(const struct byi_specialisation *specialisation,
                                uint32_t func, struct byoc_error *err);
/* Take a frame for an activation of function `func`; byi_frame_release ends the
 * activation and frees or keeps the frame. Errors: BYOC_ENOMEM, BYOC_ELIMIT. */
enum byoc_status byi_frame_take(struct byoc_state *state, uint32_t func,
                                struct byi_frame **frame,
                                struct byoc_error *err);
void byi_frame_release(struct byoc_state *state, struct byi_frame *frame);
/* Mark the frame active, with all values dense. */
void byi_frame_begin(const struct byoc_state *state, struct byi_frame *frame);
/* Drop the references of value `v` to its block and object. */
void byi_frame_drop(struct byoc_state *state, struct byi_frame *frame,
                    uint32_t v);
/* byi_frame_provide sets the memory of result `v`, whose dims are set. This is
 * its fixed place, the root's memory for an alias, the caller's memory for an
 * output that fits, or a block of the pool. byi_frame_block always takes a
 * block. Errors: those of byi_pool_take. */
byi_value_make byi_frame_provide, byi_frame_block;

/* --- work.c: the memory of one run of a specialisation -------------------- */

/* The working memory of one run at a time: frames and region states. */
struct byi_work {
    const struct byi_specialisation *specialisation;
    struct byi_work *next; /* in the list of idle works of the specialisation */
    uint64_t bytes;        /* size of the frames */
    struct byi_frame **frames; /* for each function: its first frame; NULL: it
                                * never runs */
    struct byi_frame **spare;  /* for each function: list of further frames */
    uint64_t spare_bytes;      /* size of all frames in `spare` */
    void **
        region_states; /* for each region: the result of state_new(), or NULL */
    bool *region_has_state; /* for each region: state_new() succeeded */
    uint64_t scratch; /* bytes of the largest scratch memory of a step with
                       * fixed shapes */
};

/* Create the memory of a run of the specialisation: frames, and states of its
 * regions. The specialisation must outlive it. Errors: BYOC_ENOMEM, and those
 * of backends. */
enum byoc_status byi_work_new(const struct byi_specialisation *specialisation,
                              struct byi_work **work, struct byoc_error *err);
/* Free the memory; *work may be NULL and becomes NULL. No run may use it. */
void byi_work_free(struct byi_work **work);
/* Free the frames of a recursion, which were charged to the run's pool, before
 * another state's run takes the work. */
void byi_work_clear(struct byi_work *work, struct byi_pool *pool);

/* --- state.c, run.c, exec.c, call.c --------------------------------------- */

/* A run that byoc_run_async queued; guarded by the lock of the runners. */
struct byi_async_run {
    const struct byoc_request *request;
    byoc_done_fn done;
    void *ctx;
    struct byoc_state *next; /* next in the queue */
    bool busy;               /* until the run has ended */
    uint32_t callbacks;      /* calls of `done` that have not returned */
    /* the number of forks when the other members were set; they are invalid if
     * that number has changed */
    uint32_t epoch;
};

/* The state of a model for one run at a time. */
struct byoc_state {
    const struct byoc_model *model;
    struct byi_async_run async;
    /* for each input and output: index of its binding in the request;
     * UINT32_MAX: none */
    uint32_t *in_at, *out_at;
    bool *needed; /* for each step of main: an output of the request depends on
                     it */
    size_t needed_capacity;
    bool skips_unneeded; /* this run skips the steps that are not `needed` */
    const struct byi_specialisation *specialisation; /* the one that runs */
    struct byi_work *work;     /* the memory of that run */
    struct byi_lease lease;    /* during a run, if the model has a cache */
    struct byi_tensor *inputs; /* indexed by input */
    /* for each input: its planes, read from the caller's strides */
    struct byi_row_planes *planes;
    /* for each output: the caller's view as the last run that computed it
     * filled it in, with a copy of the dims; data NULL: no run has computed it
     */
    struct byi_tensor *results;
    struct byi_frame *top; /* the current activation */
    uint32_t depth;        /* number of activations */
    uint32_t max_depth;
    uint64_t calls, max_calls; /* in one run */
    uint64_t draws;            /* random numbers drawn in all runs */
    /* for each output of main: memory for callers that provide none; NULL if
     * the size varies */
    void **out;
    int64_t *dims;           /* for each symbol: its size, from the inputs; -1:
                              * not bound */
    struct byi_tensor *args; /* operands and results of the current kernel
                              */
    void **buffers;          /* addresses of the operands and results of
                              * the current fused kernel */
    const struct byi_type **types; /* types of the operands, for a type rule */
    struct byi_type *type_store;   /* the memory that `types` points to */
    const struct byi_tensor **known; /* values of the operands, for a type rule;
                                      * NULL: not known */
    void *scratch;
    uint64_t scratch_bytes;
    struct byi_pool pool;
    struct byi_string_store strings; /* strings of the run and of its outputs */
    struct byi_arena *value_trees;   /* trees of outputs that are sequences or
                                      * optionals */
    struct byi_arena *infer;         /* types of the results of the last steps
                                      * of this run */
    uint64_t n_inferred; /* steps of this run whose types were inferred */
    struct byi_trace *trace;
    volatile uint32_t cancel; /* not 0: the run must end; accessed atomically */
    byi_watch_fn watch;       /* NULL: none */
    void *watch_ctx;
    byi_region_fn on_region; /* NULL: none */
    void *on_region_ctx;
};

/* exec.c: describe the step as a call of its kernel, with operands and results
 * in `args`. */
struct byi_call byi_exec_call(struct byi_tensor *args,
                              const struct byi_frame *fr,
                              const struct byi_step *step, uint32_t threads);
/* exec.c: make the scratch memory at least this large; its contents are lost.
 * Errors: BYOC_ENOMEM. */
enum byoc_status byi_exec_provide_scratch(struct byoc_state *state,
                                          uint64_t bytes,
                                          struct byoc_error *err);
/* exec.c: free the results of the previous run, including its outputs. */
void byi_exec_begin(struct byoc_state *state);
/* exec.c: drop the sequences, optionals and functions in main's frame. */
void byi_exec_drop(struct byoc_state *state);
/* exec.c: check that the caller's memory `dest` for output `output` has the
 * shape of the result `t`. Errors: BYOC_ETYPE. */
enum byoc_status byi_exec_check_dest(const struct byi_plan_func *f,
                                     uint32_t output,
                                     const struct byi_tensor *t,
                                     const struct byi_tensor *dest,
                                     struct byoc_error *err);
/* exec.c: run main, whose inputs and destinations are bound. Errors: those of
 * kernels and backends, BYOC_ECANCELLED, BYOC_ELIMIT, BYOC_ENOMEM. */
enum byoc_status byi_exec_main(struct byoc_state *state,
                               struct byoc_error *err);
/* call.c: run CALL, IF and APPLY steps. A call makes the callee's activation
 * state->top; byi_call_leave ends that activation and gives its results to the
 * calling step. Errors: BYOC_ETYPE, BYOC_ELIMIT, BYOC_ENOMEM. */
byi_step_run byi_call_func, byi_call_if, byi_call_apply;
enum byoc_status byi_call_leave(struct byoc_state *state,
                                struct byoc_error *err);
/* closure.c: run CLOSURE and CHOOSE steps. Errors: BYOC_ETYPE, BYOC_ELIMIT,
 * BYOC_ENOMEM. */
byi_step_run byi_closure_make, byi_closure_choose;
/* closure.c: set *holds to the condition of a step, its first operand.
 * Errors: BYOC_ETYPE (not one element). */
enum byoc_status byi_read_condition(const struct byi_frame *fr,
                                    const struct byi_step *step, bool *holds,
                                    struct byoc_error *err);

/* values.c: byi_value_check checks the kind of an input. byi_value_read
 * converts a caller's tree to an object, and byi_value_write an object to a
 * tree. The tree lives in state->value_trees until the next run. `io` is the
 * model's declaration of the input or output. Errors: BYOC_ETYPE, BYOC_EINVAL,
 * BYOC_ELIMIT, BYOC_ENOMEM. */
enum byoc_status byi_value_check(const struct byoc_value *value,
                                 const struct byoc_io *io,
                                 struct byoc_error *err);
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
/* values.c: check dtype, rank, fixed dims, layout and alignment of a caller's
 * tensor, and describe it in *t. `what`, such as "input", begins messages. If
 * `axis` is less than the rank and `planes` is not NULL, the tensor may be in
 * planes along `axis`, which *planes receives. Errors: BYOC_ETYPE, BYOC_EINVAL,
 * BYOC_ELIMIT. */
enum byoc_status byi_check_view(const DLTensor *view, const char *what,
                                const struct byoc_io *io, struct byi_tensor *t,
                                uint32_t axis, struct byi_row_planes *planes,
                                struct byoc_error *err);
/* values.c: if t is a tensor of strings, copy the strings to which the elements
 * of `data` point into the state. `data` has as many elements as t, and then
 * points to the copies. Errors: BYOC_ENOMEM. */
enum byoc_status byi_copy_strings(struct byoc_state *state,
                                  const struct byi_tensor *t, void *data,
                                  struct byoc_error *err);

/* --- request.c ------------------------------------------------------------ */

/* Set in_at and out_at of the state from the names in the request. Errors:
 * BYOC_EINVAL (an unknown or repeated name, a missing input). */
enum byoc_status byi_request_bind(struct byoc_state *state,
                                  const struct byoc_request *request,
                                  struct byoc_error *err);
/* Set `needed` of the state: the steps that the outputs in out_at depend on.
 * Errors: BYOC_ENOMEM. */
enum byoc_status byi_request_find_needed(struct byoc_state *state,
                                         struct byoc_error *err);

/* --- runner.c ------------------------------------------------------------ */

/* Wait until the state has no queued or active run, and all callbacks have
 * returned except one that the calling thread is in. */
void byi_runners_wait(struct byoc_state *state);

/* --- trace.c -------------------------------------------------------------- */

/* The destination of the events of a state's runs: a file, a callback, or both.
 * A state that writes no events has none (NULL); byi_trace_tag and
 * byi_trace_event must not be called for it. */
struct byi_trace;
/* Write events to the file `path`, or to no file if NULL. Closes the previous
 * file first. *trace is created or freed as needed. Errors: BYOC_EIO, also from
 * writing the previous file; BYOC_ENOMEM. */
enum byoc_status byi_trace_file(struct byi_trace **trace, const char *path,
                                struct byoc_error *err);
/* Pass events to a callback, or to none if NULL. *trace is created or freed as
 * needed. Errors: BYOC_ENOMEM. */
enum byoc_status byi_trace_set_callback(
    struct byi_trace **trace,
    void (*callback)(void *ctx, const struct byoc_event *event), void *ctx,
    struct byoc_error *err);
/* Set the tag of the following events; NULL: no tag. The text is not copied. */
void byi_trace_tag(struct byi_trace *trace, const char *tag);
/* Record an event, with the trace's tag. If end_ns is 0, the event ends now.
 * Its strings except `kind` may be NULL. */
void byi_trace_event(struct byi_trace *trace, const struct byoc_event *event);

/* --- costs.c -------------------------------------------------------------- */

/* Set flops, bytes and constant_bytes of the event to those of a step; the
 * sizes of its operands are in `frame`. */
void byi_cost_step(const struct byi_plan_tables *plan,
                   const struct byi_frame *frame, const struct byi_step *step,
                   struct byoc_event *event);

/* The steps of a region's twin that the primitives of one run have computed. */
struct byi_cost_region {
    const struct byi_plan_func *twin;
    /* for each step of the twin: the number of the primitive that computes it,
     * from 1; 0: none yet. NULL: an allocation failed, so nothing is counted */
    uint32_t *primitive_of_step;
    uint32_t n, begin; /* number of primitives so far; each step before `begin`
                        * has its primitive */
};
/* Begin to count a run of a region; byi_cost_end frees what this allocates. */
void byi_cost_begin(const struct byi_plan_tables *plan, uint32_t region,
                    struct byi_cost_region *costs);
void byi_cost_end(struct byi_cost_region *costs);
/* Set flops, bytes and constant_bytes of the event to those of a primitive of
 * the region. The event's name lists operators of the twin, joined by '+'; its
 * sources are the model's nodes that they came from. */
void byi_cost_primitive(struct byi_cost_region *costs,
                        struct byoc_event *event);

#endif
