/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/build.h: builds a program from a region's graph: primitives in
 * order, each with its arguments in buffers. Builders (kernels_*.c) access
 * values as views of buffers and request the layout that they need. If a value
 * does not have that layout yet, a reorder is inserted, once per value and
 * layout.
 *
 *   graph.h's kernels -> walk.c, kernels_*.c, chain.c -> plan_memory.c
 *                   -> struct byi_program -> exec.c
 *                                         -> write.c -> C -> unit.c
 */
#ifndef BYI_DNNL_BUILD_H
#define BYI_DNNL_BUILD_H

#include <byoc/graph.h>

#include "core/base/index.h"
#include "runtime_dnnl/layer.h"
#include "runtime_dnnl/table.h"

/* --- the program --------------------------------------------------------- */

/* A constant that is computed at load. */
struct byi_computed_const {
    void *data; /* NULL if it was not computed, or after byi_dn_drop_computed */
    uint64_t bytes;
    /* The owner of the data: `shared` if not NULL; another constant or the
     * artifact if `borrowed`; otherwise this constant. */
    struct byi_shared *shared;
    bool borrowed;
};

/* The purpose of a program. */
enum byi_purpose {
    BYI_TO_RUN,
    BYI_TO_PROBE, /* create primitive descriptors only: no code, no packing */
    BYI_TO_WRITE  /* like BYI_TO_PROBE, and record a struct byi_creation for
                   * each primitive and constant */
};

/* How a primitive or a constant is made: the function of struct byi_operators
 * that makes it, and its arguments. */
struct byi_creation {
    const char *function;
    const void *params;
    const struct byi_posts *posts; /* may be NULL */
    const char *pattern;           /* "" for steps at a border of the region */
    /* index of the first constant that it makes, and their number */
    uint32_t computed, n_computed;
};

/* A region that is ready to run: its primitives, steps and constants. */
struct byi_program {
    const struct byi_dnnl *lib;
    const struct byoc_host *host;
    enum byi_purpose purpose;
    struct byi_arena *arena;
    const char *name; /* "dnnl_0" */
    uint32_t n_inputs, n_outputs, n_consts;
    const uint64_t *input_bytes, *output_bytes;
    struct byoc_view *consts; /* only data and bytes are set */
    /* codes of the constants, during load; NULL: none */
    const struct byoc_region_codes *codes;
    const struct byi_dnnl_unit *unit; /* the region's C; NULL: run the list of
                                       * steps */
    BYI_VEC(struct byi_prim *) prims; /* indexed by step */
    BYI_VEC(struct byi_dnnl_step) steps;
    struct byi_bands **bands; /* for each step: the bands of the step and those
                               * that join it, or NULL */
    BYI_VEC(struct byi_computed_const) computed;
    BYI_VEC(struct byi_creation)
    creations;                        /* for BYI_TO_WRITE */
    uint64_t temp_bytes;              /* of the temporaries */
    struct byi_computed_block *block; /* the block that is being filled */
    uint64_t unblocked_bytes;         /* bytes of constants outside of blocks */
    uint64_t scratch_bytes;           /* maximum over the primitives */
};

/* program.c. Create an empty program with the region's constants. Constants
 * that no step reads may have no data. Free *program with byi_dn_program_free.
 * Errors: BYOC_ENOMEM. */
enum byoc_status byi_dn_program_new(const struct byi_dnnl *lib,
                                    const struct byoc_host *host,
                                    enum byi_purpose purpose,
                                    const struct byoc_region *region,
                                    struct byi_program **program,
                                    struct byoc_error *err);
/* The data of a constant, widened if it is stored as codes; NULL if it has no
 * data or an allocation fails. */
const void *byi_dn_const(struct byi_program *program, uint32_t index);
/* Call at the end of load: widen the constants that the steps read. Returns
 * false if an allocation fails. */
bool byi_dn_consts_end(struct byi_program *program);
/* Free the program and its constants; *program becomes NULL and may be NULL. */
void byi_dn_program_free(struct byi_program **program);
/* Append the next step's primitive and, if the program is BYI_TO_RUN, generate
 * its code. Takes ownership of the primitive even on failure. Errors:
 * BYOC_ENOMEM, BYOC_EBACKEND (oneDNN failed). */
enum byoc_status byi_dn_program_prim(struct byi_program *program,
                                     struct byi_prim *prim,
                                     struct byoc_error *err);

/* walk.c. Build the program of `graph`, which was read from `region`. Free
 * *program with byi_dn_program_free; it is not set on failure. Errors:
 * BYOC_EUNSUPPORTED (oneDNN or this backend cannot run a kernel), BYOC_ENOMEM,
 * BYOC_ELIMIT (temporaries), BYOC_EBACKEND (oneDNN failed). */
enum byoc_status byi_dn_build(const struct byi_dnnl *lib,
                              const struct byoc_host *host,
                              const struct byoc_graph *graph,
                              const struct byoc_region *region,
                              enum byi_purpose purpose,
                              struct byi_program **program,
                              struct byoc_error *err);

/* declines.c. Whether native kernels run the region faster. */
bool byi_dn_declines(const struct byoc_graph *graph);

/* write.c. Append the program, which was built BYI_TO_WRITE, to `text` as a
 * unit of C that defines the function `symbol`. Returns false and appends
 * nothing if the program cannot be written, because it packs weights on every
 * run or has no steps. */
bool byi_dn_write(const struct byi_program *program, const char *symbol,
                  struct byi_text *text);
extern const char byi_dn_unit_text[]; /* the declarations of a unit */
extern const uint32_t byi_dn_unit_id; /* their hash */

/* unit.c. Load a region that is a unit of C, whose function region->code must
 * outlive the program. Errors: BYOC_EINCOMPATIBLE (the unit was compiled with
 * other declarations), and those of its calls. */
enum byoc_status byi_dn_unit_load(const struct byi_dnnl *lib,
                                  const struct byoc_host *host,
                                  const struct byoc_region *region,
                                  struct byi_program **program,
                                  struct byoc_error *err);

/* bands.c. Call when the program has all of its steps: plans those that run in
 * bands. */
void byi_dn_bands_end(struct byi_program *program);
/* bands.c. Name of the implementation of a step; NULL if an earlier step runs
 * it in bands. */
const char *byi_dn_step_impl(const struct byi_program *program, uint32_t step);

/* computed.c. Append a constant that is computed from others at load; only
 * programs that are BYI_TO_RUN compute it. byi_dn_make_pack packs weights for
 * `prim`. */
enum byoc_status byi_dn_make_pack(struct byi_program *program,
                                  const struct byi_pack *p,
                                  const struct byi_prim *prim,
                                  struct byoc_error *err);
enum byoc_status byi_dn_make_copy(struct byi_program *program,
                                  const struct byi_copy *p,
                                  struct byoc_error *err);
enum byoc_status byi_dn_make_fill(struct byi_program *program,
                                  const struct byi_fill *p,
                                  struct byoc_error *err);
/* Appends three constants, and computes them for any purpose. Errors:
 * BYOC_EUNSUPPORTED if the floats are not integers times a scale per row; then
 * it appends nothing. */
enum byoc_status byi_dn_make_integers(struct byi_program *program,
                                      const struct byi_integers *p,
                                      struct byoc_error *err);
enum byoc_status byi_dn_make_bytes(struct byi_program *program,
                                   const struct byi_bytes *p,
                                   struct byoc_error *err);
enum byoc_status byi_dn_make_gate_weights(struct byi_program *program,
                                          const struct byi_gates *p,
                                          struct byoc_error *err);
enum byoc_status byi_dn_make_gate_biases(struct byi_program *program,
                                         const struct byi_gates *p,
                                         struct byoc_error *err);
/* computed_memory.c. Allocate memory for a constant with the host's allocator,
 * aligned to BYI_ALIGN; NULL if that fails. Any thread may free it with
 * byi_dn_computed_free, even after the program was freed. `brief`: the constant
 * is freed before the load ends, so it shares no block with others. */
void *byi_dn_computed_alloc(struct byi_program *program, uint64_t bytes,
                            bool brief);
/* Free memory of byi_dn_computed_alloc; `data` may be NULL. */
void byi_dn_computed_free(const struct byoc_host *host, void *data);
/* Call when the program will allocate no more constants. */
void byi_dn_computed_end(struct byi_program *program);
/* computed.c. Free a constant that no step reads. */
void byi_dn_drop_computed(struct byi_program *program, uint32_t computed);

/* exec.c. byi_dn_exec_new allocates the state of a run, which refers to the
 * program and serves one run at a time. byi_dn_exec_run runs all steps in the
 * scratch memory of the arguments, of byi_dn_exec_bytes bytes. Errors:
 * BYOC_ENOMEM, BYOC_ECANCELLED, BYOC_EBACKEND (oneDNN failed). */
uint64_t byi_dn_exec_bytes(const struct byi_program *program);
enum byoc_status byi_dn_exec_new(const struct byi_program *program,
                                 struct byi_exec **exec,
                                 struct byoc_error *err);
enum byoc_status byi_dn_exec_run(struct byi_exec *exec,
                                 const struct byoc_run_args *args,
                                 struct byoc_error *err);
void byi_dn_exec_free(struct byi_exec **exec);
/* Append the steps that the program's unit of C runs to the program. Errors:
 * BYOC_EINVAL (the unit's steps do not fit its primitives and buffers). */
enum byoc_status byi_dn_exec_list(struct byi_program *program,
                                  struct byoc_error *err);
/* For benchmarks (bench/bound.c): byi_dn_exec_step runs one step on the buffers
 * of the last run; byi_dn_exec_temps is the address of the TEMP buffers. */
enum byoc_status byi_dn_exec_step(const struct byi_exec *exec, uint32_t step,
                                  struct byoc_error *err);
void *byi_dn_exec_temps(const struct byi_exec *exec);

/* share.c. Reordered constants that all programs of a host share. Thread-safe.
 */
struct byi_shared;
/* Find a shared result of `reorder` on the constant at `src`; NULL if there is
 * none. The constant must not move while the result is in use. Release the
 * result with byi_dn_share_release. */
struct byi_shared *byi_dn_share_find(const struct byoc_host *host,
                                     const void *src,
                                     const struct byi_prim *reorder);
/* Share `data`, which byi_dn_computed_alloc allocated and *reorder computed.
 * Takes ownership of both and sets *reorder to NULL. If another thread has
 * shared an equal result meanwhile, frees `data`, returns that result, and
 * leaves *reorder to the caller. Returns NULL if an allocation fails; the
 * caller then keeps both. */
struct byi_shared *byi_dn_share(const struct byoc_host *host, const void *src,
                                struct byi_prim **reorder, void *data);
/* The shared constant; it is valid until byi_dn_share_release. */
void *byi_dn_shared_data(const struct byi_shared *shared);
/* Drop a reference; the last one frees the data. */
void byi_dn_share_release(struct byi_shared *shared);

/* --- while building ------------------------------------------------------ */

/* The memory of a value, or of several values that are views of it. */
struct byi_buf {
    enum byi_buf_kind kind;
    uint32_t index;       /* 0 for TEMP */
    uint32_t uses;        /* reads by kernels that are not built yet */
    uint32_t first, last; /* the first and the last step that use it */
    uint64_t bytes;
    uint64_t offset;  /* TEMP: in the memory of temporaries */
    bool needs_slack; /* TEMP: is read with the slack after it, so it cannot
                       * become an output */
};

/* An argument of a step under construction. */
struct byi_use {
    int arg; /* enum byi_arg */
    uint32_t buf;
    uint64_t offset; /* bytes */
};

/* A step while building, before dead steps are dropped and buffers placed. */
struct byi_emitted_step {
    struct byi_prim *prim;
    const char *name, *sources;
    bool joins; /* as in struct byi_dnnl_step */
    uint32_t n;
    const struct byi_use *uses;
};

/* A tensor in memory: it begins `offset` elements into a buffer and has the
 * strides of `desc`. */
struct byi_dnnl_view {
    uint32_t buf;
    int64_t offset;
    struct byi_desc desc;
};

/* A quantisation: the integer q of this type represents (q - zero) * scale. */
struct byi_quant {
    enum byoc_dtype dtype; /* int8 or uint8 */
    float scale, zero;
};

/* A value of the graph, with its copies in several layouts; the producer wrote
 * the first one. Scalars have rank 1 here, since oneDNN has no rank 0. */
struct byi_dnnl_value {
    uint32_t uses; /* reads by kernels that are not built yet; a region output
                    * counts as one */
    uint32_t n_views, cap_views;
    struct byi_dnnl_view *views;
    /* the value from which this one was dequantised; the value itself if its
     * views hold integers; NULL if there are only floats */
    struct byi_dnnl_value *integers;
    struct byi_quant quant; /* the quantisation of the integers */
    /* the convolution or product that computed the integers and whose epilogue
     * may add another operand; or NULL */
    const struct byi_qconv_step *qconv;
    /* set if its only reader computes it; then it has no views */
    const struct byi_gathered *gathered;
};

/* gather.c. A value that its reader, a pointwise convolution, computes from
 * these views while it reads them. */
struct byi_gathered {
    struct byi_dnnl_gather p;
    struct byi_dnnl_view views[BYI_MAX_GATHERED], scale, shift;
    const char *name, *sources; /* of the kernel whose result the value is */
};

/* A packed constant, which later readers share if they need the same layout. */
struct byi_packed_const {
    struct byi_dnnl_view src;
    const struct byi_prim *prim;
    int arg;
    uint32_t buf;
};

struct byi_qconv_step; /* quant.c */

struct byi_cached_prim; /* prim_cache.c */
struct byi_fusion;      /* chain.c */

#define BYI_NO_INDEX UINT32_MAX

/* The state of building a program. */
struct byi_build {
    struct byi_program *program;
    const struct byi_dnnl *lib;
    const struct byoc_graph *graph;
    struct byi_arena *arena; /* for data that are freed after building */
    BYI_VEC(struct byi_buf) bufs;
    BYI_VEC(struct byi_emitted_step) emitted;
    bool keeps_layouts; /* keep the model's layouts, for measurements */
    const struct byoc_graph_kernel *kernel; /* the kernel that is being built */
    struct byi_dnnl_value *values;          /* indexed by value of the graph */
    /* for each value: the only kernel that reads it; BYI_NO_INDEX if there are
     * several or none, or if it is a region output */
    uint32_t *reader;
    const char *sources; /* the kernel's sources; NULL until they are copied */
    struct byoc_error *err;
    BYI_VEC(struct byi_packed_const) packs;
    BYI_VEC(struct byi_cached_prim *) prims;
    struct byi_index prim_index; /* from a creator's arguments to `prims` */
    struct byi_fusion *fusion;   /* memory for chain.c */
};

/* A primitive and its arguments, which byi_dn_emit makes a step. */
struct byi_emit {
    const char *name;
    struct byi_prim *prim;
    uint32_t n;
    struct byi_use uses[2 * BYI_MAX_POSTS];
};

/* --- build.c -------------------------------------------------------------- */
/* The value with number `value` in the graph. */
struct byi_dnnl_value *byi_dn_operand(struct byi_build *b, uint32_t value);
/* The data of a value if it is a constant of the artifact, otherwise NULL. Sets
 * its dtype and its number of elements. */
const void *byi_dn_const_data(struct byi_build *b, uint32_t value,
                              enum byoc_dtype *dtype, int64_t *n);
/* Read the elements of a constant value, at most BYI_MAX_RANK, as integers.
 * Errors: BYOC_EUNSUPPORTED for other values. */
enum byoc_status byi_dn_read_const_ints(struct byi_build *b, uint32_t value,
                                        int64_t out[BYI_MAX_RANK], uint32_t *n);
/* Read the element of a constant scalar as a float; false for other values. */
bool byi_dn_read_const_scalar(struct byi_build *b, uint32_t value, float *out);

/* Get a view of `value` with the strides of `desc` (on axes longer than 1).
 * Emits a reorder if the value has no such view yet. */
enum byoc_status byi_dn_get_view(struct byi_build *b,
                                 struct byi_dnnl_value *value,
                                 const struct byi_desc *desc,
                                 struct byi_dnnl_view *view);
/* byi_dn_get_dense gets a view in any dense layout that the value has;
 * byi_dn_get_row_major gets one in row-major order. */
enum byoc_status byi_dn_get_dense(struct byi_build *b,
                                  struct byi_dnnl_value *value,
                                  struct byi_dnnl_view *view);
enum byoc_status byi_dn_get_row_major(struct byi_build *b,
                                      struct byi_dnnl_value *value,
                                      struct byi_dnnl_view *view);
/* Emit a copy of `src` in the layout `desc`, whose dims may differ from those
 * of the value. */
enum byoc_status byi_dn_reorder(struct byi_build *b,
                                const struct byi_dnnl_view *src,
                                const struct byi_desc *desc,
                                struct byi_dnnl_view *view);
/* The value's view in that layout if there is one, otherwise NULL. */
const struct byi_dnnl_view *byi_dn_find(const struct byi_dnnl_value *value,
                                        const struct byi_desc *desc);
/* Set *use to the weights for argument `arg` of `prim`. These are `src` itself,
 * or a packed copy, which is made at load if `src` is constant and otherwise on
 * every run. */
enum byoc_status byi_dn_get_packed(struct byi_build *b,
                                   const struct byi_dnnl_view *src,
                                   const struct byi_prim *prim, int arg,
                                   struct byi_use *use);

/* Append a buffer, or a TEMP buffer of `bytes` bytes; returns its index. */
uint32_t byi_dn_add_buf(struct byi_build *b, struct byi_buf buf);
uint32_t byi_dn_temp(struct byi_build *b, uint64_t bytes);
/* byi_dn_computed_buf appends a buffer for constant `computed` of the program
 * and returns its index; byi_dn_place is the place of a view's data. */
uint32_t byi_dn_computed_buf(struct byi_build *b, uint32_t computed);
struct byi_place byi_dn_place(const struct byi_build *b,
                              const struct byi_dnnl_view *view);
/* Whether buffer `buf` is constant or computed at load. */
bool byi_dn_is_constant(const struct byi_build *b, uint32_t buf);
/* Whether the current kernel may overwrite the buffer of `view`: it is a
 * temporary that the view covers, and this kernel is its last reader. */
bool byi_dn_may_overwrite(const struct byi_build *b,
                          const struct byi_dnnl_view *view);

/* Make `view` argument `arg` (enum byi_arg) of the primitive. */
void byi_dn_use(struct byi_emit *e, int arg, const struct byi_dnnl_view *view);

/* Creates a primitive with one of the creators; `params` points to its struct
 * of parameters. */
typedef enum byoc_status byi_dn_make(struct byi_build *b, const void *params,
                                     const struct byi_posts *posts,
                                     struct byi_prim **prim);
/* The creators of layer.h, except that equal calls share one primitive. If the
 * program is BYI_TO_WRITE, they record their arguments with the primitive.
 * byi_dn_make_NAME is byi_dn_NAME_new as a byi_dn_make. */
#define BYI_DN_CREATOR(name)                                                   \
    enum byoc_status byi_dn_##name##_new(                                      \
        struct byi_build *b, const struct byi_dnnl_##name *p,                  \
        const struct byi_posts *posts, struct byi_prim **prim);                \
    byi_dn_make byi_dn_make_##name;
BYI_OPERATORS(BYI_DN_CREATOR)

/* --- prim_cache.c: the primitives of one build ---------------------------- */

/* A call of a creator. Its arguments identify a primitive. */
struct byi_creator_call {
    const char *function; /* the member of struct byi_operators */
    const void *params;
    size_t size;
    const struct byi_posts *posts; /* may be NULL */
};
/* If the creator was called with these arguments before, return true and set
 * *status to its result. This is BYOC_OK, with a reference to the primitive, or
 * BYOC_EUNSUPPORTED, with the message in b->err. */
bool byi_dn_find_prim(struct byi_build *b, const struct byi_creator_call *call,
                      struct byi_prim **prim, enum byoc_status *status);
/* Remember a result of a creator: a reference to the primitive or, for
 * BYOC_EUNSUPPORTED, the message in b->err. Other failures are not remembered.
 */
void byi_dn_keep_prim(struct byi_build *b, const struct byi_creator_call *call,
                      struct byi_prim *prim, enum byoc_status status);
/* Drop the references to all remembered primitives. */
void byi_dn_prims_free(struct byi_build *b);

/* --- build.c: steps and views -------------------------------------------- */
/* Append a step to b->emitted; takes ownership of the primitive. Always returns
 * BYOC_OK. */
enum byoc_status byi_dn_emit(struct byi_build *b, struct byi_emit *e);
/* Free a primitive, and remove the weights that were packed for it from
 * b->packs, so that no other primitive uses them. */
void byi_dn_abandon(struct byi_build *b, struct byi_prim **prim);

/* Add a view, in a layout that the value does not have yet. */
void byi_dn_add_view(struct byi_build *b, struct byi_dnnl_value *value,
                     const struct byi_dnnl_view *view);
/* Make `view` output `output` of the current kernel. */
void byi_dn_define(struct byi_build *b, uint32_t output,
                   const struct byi_dnnl_view *view);

/* plan_memory.c. Set the offsets of the TEMP buffers. Errors: BYOC_ELIMIT. */
enum byoc_status byi_dn_plan_temps(struct byi_build *b);

/* --- layout.c: arithmetic on strides -------------------------------------- */
/* A dense descriptor whose axes are, from outermost to innermost, in `order`;
 * NULL: row-major. Rank 0 becomes rank 1 with one element. */
struct byi_desc byi_dn_dense(enum byoc_dtype dtype, uint32_t rank,
                             const int64_t *dims, const uint32_t *order);
/* A dense descriptor in memory order (N, spatial..., C) for rank 3 and above,
 * otherwise row-major. */
struct byi_desc byi_dn_channels_last(enum byoc_dtype dtype, uint32_t rank,
                                     const int64_t *dims);
/* Set order[] to the axes in memory order, outermost first. */
void byi_dn_order(const struct byi_desc *desc, uint32_t *order);
/* Whether the layout has no gaps; whether it is also row-major. */
bool byi_dn_is_dense(const struct byi_desc *desc);
bool byi_dn_is_row_major(const struct byi_desc *desc);
/* A dense descriptor in the axis order of `desc`, with normalised strides of
 * axes of size 1. */
struct byi_desc byi_dn_regular(const struct byi_desc *desc);
/* Whether dtype, dims and the strides of axes longer than 1 are equal. */
bool byi_dn_same_layout(const struct byi_desc *a, const struct byi_desc *b);
/* A dense descriptor in the axis order of `like`, with `dims` of the same rank.
 */
struct byi_desc byi_dn_dense_like(const struct byi_desc *like,
                                  const int64_t *dims);
/* Describe the same memory with other dims; false if that would need a copy. */
bool byi_dn_reshape_desc(const struct byi_desc *desc, uint32_t rank,
                         const int64_t *dims, struct byi_desc *out);
/* Find the layout nearest to `desc` that can be reshaped to `dims` without a
 * copy; false if there is none. */
bool byi_dn_join_desc(const struct byi_desc *desc, uint32_t rank,
                      const int64_t *dims, struct byi_desc *out);
/* The descriptor whose axis i is axis axes[i] of `desc`. */
struct byi_desc byi_dn_permute_desc(const struct byi_desc *desc,
                                    const uint32_t *axes);
/* Add leading axes of size 1 up to `rank`, or remove them. */
struct byi_desc byi_dn_with_rank(const struct byi_desc *desc, uint32_t rank);
/* Bytes of a tensor with this layout, which must be dense. */
uint64_t byi_dn_desc_bytes(const struct byi_desc *desc);

/* --- chain.c: the epilogue of a kernel, the operators after its first ----- */
enum byi_item_kind { BYI_ITEM_ELT, BYI_ITEM_BIN, BYI_ITEM_PRELU };
/* An operator of an epilogue. */
struct byi_chain_item {
    enum byi_item_kind kind;
    uint32_t step; /* the kernel's step, for names */
    int alg;       /* enum byi_elt, byi_bin */
    float alpha, beta;
    uint32_t operand;                    /* BIN, PRELU: number of a value */
    const struct byoc_graph_value *type; /* type of the result */
};
/* An epilogue: n operators, each of which reads the result of the one before.
 */
struct byi_chain {
    uint32_t n;
    struct byi_chain_item *at;
};

/* An argument of a primitive; `packed`: a constant, in the layout that the
 * primitive requires. */
struct byi_core_arg {
    int arg; /* enum byi_arg */
    const struct byi_dnnl_view *view;
    bool packed;
};

/* A primitive to which chain.c may fuse post-ops. */
struct byi_core {
    uint32_t step; /* the step of the kernel */
    byi_dn_make *make;
    const void *params; /* of make */
    /* whether byoc's own kernels run the primitive with the post-ops; NULL:
     * they never do */
    bool (*is_fast)(const void *params, const struct byi_posts *posts);
    /* the primitive's arguments besides the source, post-ops and dst */
    uint32_t n_args;
    struct byi_core_arg args[4];
    struct byi_desc dst; /* in the graph's dims */
    int64_t terms;       /* terms of an element of dst (see BYI_REF_TERMS); 0
                          * means 1 */
    /* the primitive's axis i is dst's order[i]; NULL: the same axes */
    const uint32_t *order;
    bool folded; /* the primitive's dst is (elements / N, N) */
    /* the primitive's axes differ from dst's, so only elementwise post-ops are
     * correct */
    bool elt_only;
    bool no_posts; /* no post-op can be fused to the primitive */
    bool no_sum;   /* dst must not be the buffer of an operand */
    struct byi_dnnl_view src;
    bool in_place;                       /* the primitive may overwrite src */
    const struct byi_gathered *gathered; /* if not NULL: replaces src */
};

/* bands.c. Whether the kernel, a convolution, is likely to run in bands with
 * others. */
bool byi_dn_is_banded(const struct byi_build *b);
/* bands.c. Find the steps in b->emitted that run in bands, and set `joins`. */
void byi_dn_find_bands(struct byi_build *b);

/* --- image.c ------------------------------------------------------------- */

/* The axes of data with a channel axis, which is first or last in the
 * graph's dims; a primitive's dims are always (N, C, spatial...). */
struct byi_image_axes {
    uint32_t channel;             /* channel axis in the graph's dims */
    bool last;                    /* the channel axis is the last one */
    uint32_t order[BYI_MAX_RANK]; /* graph axis of each primitive axis */
};
/* The axes of data of `rank` axes, with channels on axis 1 or, if `last`, on
 * the last one. */
struct byi_image_axes byi_dn_image(uint32_t rank, bool last);
/* Read the layout attribute `name` of step 0; without it, channels are first.
 * Errors: BYOC_EUNSUPPORTED for blocked channels and ranks other than 3 to 5.
 */
enum byoc_status byi_dn_image_read(struct byi_build *b, const char *name,
                                   uint32_t rank, struct byi_image_axes *image);
/* The layout of such data inside a region, in the graph's dims: channels last
 * in memory, or row-major if b->keeps_layouts. */
struct byi_desc byi_dn_image_desc(const struct byi_build *b,
                                  const struct byi_image_axes *image,
                                  uint32_t rank, const int64_t *dims);
/* The descriptor `desc`, which is in the graph's dims, with its axes in the
 * primitive's order. */
struct byi_desc byi_dn_image_permute(const struct byi_image_axes *image,
                                     const struct byi_desc *desc);
/* Get a view of the value in the layout of byi_dn_image_desc; view->desc has
 * the primitive's axes. Errors: BYOC_EUNSUPPORTED if its dtype differs from the
 * dtype of the kernel's result. */
enum byoc_status byi_dn_get_image(struct byi_build *b,
                                  struct byi_dnnl_value *value,
                                  const struct byi_image_axes *image,
                                  struct byi_dnnl_view *view);

/* --- chain.c: reading and emitting --------------------------------------- */

/* Read steps [first, end) of the current kernel as a chain. If first is 0, the
 * chain starts from argument `main` of step 0. Errors: BYOC_EUNSUPPORTED for
 * steps that do not form a chain, and for operators that oneDNN lacks. */
enum byoc_status byi_dn_chain_read(struct byi_build *b, uint32_t first,
                                   uint32_t end, uint32_t main,
                                   struct byi_chain *chain);
/* If the chain starts by adding a vector along `axis` of dst, set *bias to that
 * vector and *next to 1; otherwise set *next to 0. */
enum byoc_status byi_dn_chain_bias(struct byi_build *b,
                                   const struct byi_chain *chain,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_dnnl_view *bias, uint32_t *next);
/* gather.c. If the kernel's only reader can compute its result, the
 * concatenation of n values and then the whole chain, note this in the result,
 * set *status and return true. Otherwise the caller must build the kernel.
 * Errors in *status: those of byi_dn_get_view. */
bool byi_dn_gather(struct byi_build *b, uint32_t n, const uint32_t *values,
                   const struct byi_chain *chain, enum byoc_status *status);
/* gather.c. Add the arguments of a gathered value to the reader's primitive. */
void byi_dn_gather_use(struct byi_emit *e, const struct byi_gathered *g);
/* gather.c. Call when the reader has been built: releases the buffers of the
 * views. */
void byi_dn_gather_end(struct byi_build *b, const struct byi_gathered *g);
/* Emit `core` with as many items from `next` on as oneDNN fuses, and the others
 * as separate primitives. Defines output 0. */
enum byoc_status byi_dn_emit_chain(struct byi_build *b, struct byi_core *core,
                                   const struct byi_chain *chain,
                                   uint32_t next);
/* Emit the items of a chain from `next` on as separate primitives, starting
 * from `view`. Defines output 0. */
enum byoc_status byi_dn_emit_items(struct byi_build *b,
                                   const struct byi_chain *chain, uint32_t next,
                                   struct byi_dnnl_view view);

/* --- quant.c ------------------------------------------------------------- */

/* Whether type, scale and zero point are equal. */
bool byi_dn_is_same_quant(const struct byi_quant *a, const struct byi_quant *b);
/* Set *q to the quantisation of this kernel's result and return true, if the
 * only reader of the result quantises it. */
bool byi_dn_is_quantized_after(const struct byi_build *b, struct byi_quant *q);
/* Set *to to a value whose views hold the integers of `value` in quantisation
 * `q`. */
enum byoc_status byi_dn_requantize(struct byi_build *b,
                                   const struct byi_dnnl_value *value,
                                   const struct byi_quant *q,
                                   struct byi_dnnl_value **to);

/* Step 0, a convolution or product of quantised data and constant weights,
 * which byoc's own kernels compute in integers, exactly on every CPU. */
struct byi_integer_kernel {
    struct byi_dnnl_value *src; /* integers */
    struct byi_quant quant;
    struct byi_chain chain;
    struct byi_dnnl_view weights, scale, bias; /* weights.desc is not set */
    /* the product writes integers of quantisation `out`, and computes the whole
     * chain */
    bool int8_result;
    struct byi_quant out;
    float low, high; /* bounds of the result, in units of out.scale */
    /* post-ops of the product with an 8-bit result; `at` may be NULL */
    struct byi_posts posts;
};
/* Prepare step 0 with the float32 weights w, whose output channels are first
 * or, if `transposed`, last; the result's channels are on `axis` of dst.
 * Errors: BYOC_EUNSUPPORTED if it cannot run on integers. */
enum byoc_status byi_dn_integer_open(struct byi_build *b,
                                     const struct byi_dnnl_view *w,
                                     bool transposed,
                                     const struct byi_desc *dst, uint32_t axis,
                                     struct byi_integer_kernel *x);
/* Emit `p`, whose window and descriptors are set, and the rest of the chain.
 * `dst` is the result's descriptor in the graph's dims. */
enum byoc_status byi_dn_integer_emit(struct byi_build *b,
                                     struct byi_integer_kernel *x,
                                     const struct byi_dnnl_view *src,
                                     struct byi_dnnl_qconv *p,
                                     const struct byi_desc *dst);
/* Build a sum or product of two dequantised values whose only reader quantises
 * it. Errors: BYOC_EUNSUPPORTED for other kernels. */
enum byoc_status byi_dn_integer_elementwise(struct byi_build *b);

/* --- kernels_window.c ---------------------------------------------------- */

/* Build the mean or maximum over the spatial axes. */
enum byoc_status byi_dn_global_pool(struct byi_build *b, bool average);

/* Find the layouts that oneDNN prefers for the data and the weights of a kernel
 * that starts with a convolution or transposed convolution, `step`. Sets data
 * and weights, of n characters each, to names as byi_conv_layouts does. */
enum byoc_status byi_dn_conv_layouts(const struct byi_dnnl *lib,
                                     const struct byoc_graph *graph,
                                     const struct byoc_graph_step *step,
                                     char *data, char *weights, size_t n,
                                     struct byoc_error *err);
/* Whether the step is a convolution or transposed convolution. */
bool byi_dn_is_conv(const struct byoc_graph_step *step);

/* --- build.c: the current kernel ----------------------------------------- */

/* The names of the kernel's operators, such as "nn.conv2d+add+nn.relu". The
 * result is in b->arena. */
const char *byi_dn_joined_name(struct byi_build *b);
/* The number of the value that is argument i of step 0. */
uint32_t byi_dn_arg0(const struct byi_build *b, uint32_t i);
/* Step i of the kernel. */
const struct byoc_graph_step *byi_dn_step(const struct byi_build *b,
                                          uint32_t i);
const struct byoc_graph_step *byi_dn_step0(const struct byi_build *b);
/* The type of step 0's first result. */
const struct byoc_graph_value *byi_dn_result(const struct byi_build *b);
/* Whether the step's operator has this name. */
bool byi_dn_is(const struct byoc_graph_step *step, const char *name);
/* Return BYOC_EUNSUPPORTED with this message, of less than 600 characters. */
enum byoc_status byi_dn_refuse(struct byi_build *b, const char *fmt, ...)
    BYI_PRINTF(2, 3);

#endif
