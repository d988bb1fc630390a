/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/build.h: builds a program from a region's graph: primitives in
 * order, each with its arguments in buffers. Builders (kernels_*.c) see values
 * as views of buffers and request the layout they need; if a value does not
 * have it yet, a reorder is inserted, once per value and layout.
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

/* A constant made at load. */
struct byi_made_const {
    void *data; /* NULL if the program does not run, and after byi_dn_drop */
    uint64_t bytes;
    struct byi_shared *shared; /* owner of the data; NULL: this constant, or */
    bool lent;                 /* another constant                           */
};

/* The purpose of a program. */
enum byi_purpose {
    BYI_TO_RUN,
    BYI_TO_PROBE, /* primitive descriptors only: no code, no packing */
    BYI_TO_WRITE  /* as PROBE, and records how everything was made   */
};

/* How a primitive or a constant is made: the function of struct byi_operators
 * and its arguments. */
struct byi_recipe {
    const char *function;
    const void *params;
    const struct byi_posts *posts; /* may be NULL           */
    const char *pattern;           /* "" at a border        */
    uint32_t made, n_made;         /* constants that result */
};

struct byi_program {
    const struct byi_dnnl *lib;
    const struct byoc_host *host;
    enum byi_purpose purpose;
    struct byi_arena *arena;
    const char *name; /* "dnnl_0" */
    uint32_t n_inputs, n_outputs, n_consts;
    const uint64_t *input_bytes, *output_bytes;
    struct byoc_view *consts; /* data and bytes only */
    /* those of the constants, while it is loaded; NULL: there are none */
    const struct byoc_region_codes *codes;
    const struct byi_dnnl_unit *unit; /* NULL: run the list of steps */
    BYI_VEC(struct byi_prim *) prims; /* of the steps */
    BYI_VEC(struct byi_dnnl_step) steps;
    struct byi_bands **bands; /* of each step that others join, or NULL */
    BYI_VEC(struct byi_made_const) made;
    BYI_VEC(struct byi_recipe) recipes; /* BYI_TO_WRITE: of the constants */
    uint64_t temp_bytes;                /* plan_memory.c */
    struct byi_made_block *block;       /* made_memory.c */
    uint64_t taken;                     /* there: bytes outside of blocks */
    uint64_t scratch_bytes;             /* maximum over the primitives */
};

/* program.c. An empty program with the region's constants; the data of those
 * that nothing reads may be NULL. */
enum byoc_status byi_dn_program_new(const struct byi_dnnl *lib,
                                    const struct byoc_host *host,
                                    enum byi_purpose purpose,
                                    const struct byoc_region *region,
                                    struct byi_program **program,
                                    struct byoc_error *err);
/* The data of a constant, widened if it has codes; NULL: it has none, or memory
 * is exhausted. */
const void *byi_dn_const(struct byi_program *program, uint32_t index);
/* The program is loaded: widen the constants that its steps read. False: memory
 * is exhausted. */
bool byi_dn_consts_end(struct byi_program *program);
void byi_dn_program_free(struct byi_program **program);
/* Append the next step's primitive and, unless the program only describes,
 * generate its code. Takes ownership even on failure. */
enum byoc_status byi_dn_program_prim(struct byi_program *program,
                                     struct byi_prim *prim,
                                     struct byoc_error *err);

/* walk.c. Build the program of `graph`, which was read from `region`. */
enum byoc_status byi_dn_build(const struct byi_dnnl *lib,
                              const struct byoc_host *host,
                              const struct byoc_graph *graph,
                              const struct byoc_region *region,
                              enum byi_purpose purpose,
                              struct byi_program **program,
                              struct byoc_error *err);

/* declines.c. Do native kernels run the region faster? */
bool byi_dn_declines(const struct byoc_graph *graph);

/* write.c. Write the program, which was built BYI_TO_WRITE, as a unit of C that
 * defines the function `symbol`. Returns false if it cannot be written, because
 * it packs weights on every run. */
bool byi_dn_write(const struct byi_program *program, const char *symbol,
                  struct byi_text *text);
extern const char byi_dn_unit_text[]; /* the declarations of a unit */
extern const uint32_t byi_dn_unit_id; /* their hash                 */

/* unit.c: load a unit. `code` is its function and must outlive the program.
 * Returns BYOC_EINCOMPATIBLE if the unit was compiled with other declarations.
 */
enum byoc_status byi_dn_unit_load(const struct byi_dnnl *lib,
                                  const struct byoc_host *host,
                                  const struct byoc_region *region,
                                  struct byi_program **program,
                                  struct byoc_error *err);

/* bands.c. All steps are there: plan those that run in bands. */
void byi_dn_bands_end(struct byi_program *program);
/* The implementation of a step; NULL: another step runs it. */
const char *byi_dn_step_impl(const struct byi_program *program, uint32_t step);

/* made.c. Append a constant that is computed from others at load, unless the
 * program only describes. `prim`: the primitive that a pack is for. */
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
/* Returns BYOC_EUNSUPPORTED and appends nothing if the floats are not integers
 * times a scale per row. */
enum byoc_status byi_dn_make_integers(struct byi_program *program,
                                      const struct byi_integers *p,
                                      struct byoc_error *err);
enum byoc_status byi_dn_make_gate_weights(struct byi_program *program,
                                          const struct byi_gates *p,
                                          struct byoc_error *err);
enum byoc_status byi_dn_make_gate_biases(struct byi_program *program,
                                         const struct byi_gates *p,
                                         struct byoc_error *err);
/* made_memory.c: allocate a constant with the host's allocator, aligned to
 * BYI_ALIGN. Returns NULL if that fails. Any thread may free it with
 * byi_dn_made_give, also after the program was freed. `brief`: the constant is
 * freed before the load ends, so it shares no block with others. */
void *byi_dn_made_take(struct byi_program *program, uint64_t bytes, bool brief);
void byi_dn_made_give(const struct byoc_host *host, void *data);
/* Call when the program allocates no more constants. */
void byi_dn_made_end(struct byi_program *program);
/* Free a constant that no step reads. */
void byi_dn_drop(struct byi_program *program, uint32_t made);

/* exec.c */
enum byoc_status byi_dn_exec_new(const struct byi_program *program,
                                 struct byi_exec **exec,
                                 struct byoc_error *err);
enum byoc_status byi_dn_exec_run(struct byi_exec *exec,
                                 const struct byoc_run_args *args,
                                 struct byoc_error *err);
void byi_dn_exec_free(struct byi_exec **exec);
/* Record the steps that the program's unit runs. */
enum byoc_status byi_dn_exec_list(struct byi_program *program,
                                  struct byoc_error *err);
/* For benchmarks (bench/bound.c): run one step on the buffers of the last run;
 * the address of the TEMP buffers. */
enum byoc_status byi_dn_exec_step(const struct byi_exec *exec, uint32_t step,
                                  struct byoc_error *err);
void *byi_dn_exec_temps(const struct byi_exec *exec);

/* share.c: reordered constants, shared by all programs of a host. Thread-safe.
 */
struct byi_shared;
/* A shared result of `reorder` on the constant at `src`, which must stay in
 * place while the result is in use; NULL if there is none. Release it with
 * byi_dn_share_end. */
struct byi_shared *byi_dn_share_find(const struct byoc_host *host,
                                     const void *src,
                                     const struct byi_prim *reorder);
/* Share `data`, which the host allocated and `reorder` computed; takes
 * ownership of both. If another thread was faster, returns its result instead.
 * NULL: out of memory, and the caller keeps both. */
struct byi_shared *byi_dn_share(const struct byoc_host *host, const void *src,
                                struct byi_prim **reorder, void *data);
void *byi_dn_shared_data(const struct byi_shared *shared);
void byi_dn_share_end(struct byi_shared *shared);

/* --- while building ------------------------------------------------------ */

/* Memory of one value or of several views of it. */
struct byi_buf {
    enum byi_buf_kind kind;
    uint32_t index;       /* unused for TEMP                             */
    uint32_t uses;        /* reads that are not built yet                */
    uint32_t first, last; /* the steps that touch it first and last      */
    uint64_t bytes;
    uint64_t offset; /* TEMP: in the state's memory                      */
    bool keep;       /* TEMP: needs its slack, cannot become an output   */
};

/* An argument of a step under construction. */
struct byi_use {
    int arg; /* enum byi_arg */
    uint32_t buf;
    uint64_t offset; /* bytes */
};

/* A step before dead steps are dropped and buffers placed. */
struct byi_draft_step {
    struct byi_prim *prim;
    const char *name, *sources;
    bool joins; /* as in struct byi_dnnl_step */
    uint32_t n;
    const struct byi_use *uses;
};

/* A tensor in memory: starts at `offset` (in elements) of a buffer, with the
 * strides of desc. */
struct byi_dnnl_view {
    uint32_t buf;
    int64_t offset;
    struct byi_desc desc;
};

/* Quantisation: the integer q of this type represents (q - zero) scale. */
struct byi_quant {
    enum byoc_dtype dtype; /* int8 or uint8 */
    float scale, zero;
};

/* A value of the graph and its copies in other layouts, its producer's first.
 * Scalars have rank 1 here, since oneDNN has no rank 0. */
struct byi_dnnl_value {
    uint32_t uses; /* reads not built yet; a region output counts as one */
    uint32_t n_views, cap_views;
    struct byi_dnnl_view *views;
    /* the value that this one was dequantised from; itself if its views hold
     * integers; NULL: floats only */
    struct byi_dnnl_value *integers;
    struct byi_quant quant; /* of the integers */
    /* the integers are the result of a convolution or product on integers that
     * may take a sum; or NULL */
    const struct byi_qconv_step *qconv;
    /* its only reader computes it; it has no views */
    const struct byi_gathered *gathered;
};

/* gather.c. A value that its reader, a convolution of one tap, computes from
 * these as it reads them. */
struct byi_gathered {
    struct byi_dnnl_gather p;
    struct byi_dnnl_view views[BYI_MAX_GATHERED], scale, shift;
    const char *name, *sources; /* of the kernel that gives the value */
};

/* A packed constant, shared by later readers that want the same layout. */
struct byi_pack_made {
    struct byi_dnnl_view src;
    const struct byi_prim *prim;
    int arg;
    uint32_t buf;
};

struct byi_qconv_step; /* quant.c */

struct byi_known;  /* known.c */
struct byi_fusion; /* chain.c */

#define BYI_NOBODY UINT32_MAX

struct byi_build {
    struct byi_program *program;
    const struct byi_dnnl *lib;
    const struct byoc_graph *graph;
    struct byi_arena *arena; /* for data that the program does not keep */
    BYI_VEC(struct byi_buf) bufs;
    BYI_VEC(struct byi_draft_step) drafts;
    bool plain; /* keep the model's layouts, for measuring */
    const struct byoc_graph_kernel *kernel; /* that is being built */
    struct byi_dnnl_value *values;          /* of each of the graph's */
    /* of each value: the only kernel that reads it, or BYI_NOBODY; also for
     * region outputs */
    uint32_t *reader;
    const char *sources; /* of the kernel; NULL: not copied yet */
    struct byoc_error *err;
    BYI_VEC(struct byi_pack_made) packs;
    BYI_VEC(struct byi_known *) known;
    struct byi_index known_index; /* by the creator's arguments */
    struct byi_fusion *fusion;    /* scratch of the kernel being built */
};

/* A primitive and its arguments, to be emitted. */
struct byi_emit {
    const char *name;
    struct byi_prim *prim;
    uint32_t n;
    struct byi_use uses[2 * BYI_MAX_POSTS];
};

/* build.c */
/* Values are numbered as in the graph. */
struct byi_dnnl_value *byi_dn_operand(struct byi_build *b, uint32_t value);
/* The bytes of a value if it is a constant of the artifact, or NULL. */
const void *byi_dn_const_data(struct byi_build *b, uint32_t value,
                              enum byoc_dtype *dtype, int64_t *n);
/* The elements of a constant value as integers, at most max. Refuses values
 * that are not constant. */
enum byoc_status byi_dn_const_ints(struct byi_build *b, uint32_t value,
                                   uint32_t max, int64_t *out, uint32_t *n);
/* The element of a constant scalar as a float; false for other values. */
bool byi_dn_const_scalar(struct byi_build *b, uint32_t value, float *out);

/* A view of `value` with exactly these strides (on axes longer than 1). Emits a
 * reorder if the value has no such view yet. */
enum byoc_status byi_dn_want(struct byi_build *b, struct byi_dnnl_value *value,
                             const struct byi_desc *desc,
                             struct byi_dnnl_view *view);
/* A view in any dense layout that the value has; in row-major order. */
enum byoc_status byi_dn_want_dense(struct byi_build *b,
                                   struct byi_dnnl_value *value,
                                   struct byi_dnnl_view *view);
enum byoc_status byi_dn_want_plain(struct byi_build *b,
                                   struct byi_dnnl_value *value,
                                   struct byi_dnnl_view *view);
/* Copy `src` into the layout `desc`, whose dims may differ from its value's. */
enum byoc_status byi_dn_reorder(struct byi_build *b,
                                const struct byi_dnnl_view *src,
                                const struct byi_desc *desc,
                                struct byi_dnnl_view *view);
/* The value's existing view in that layout, or NULL. */
const struct byi_dnnl_view *byi_dn_find(const struct byi_dnnl_value *value,
                                        const struct byi_desc *desc);
/* Weights for argument `arg` of `prim`: `src` itself, or packed, at load if it
 * is constant, otherwise on every run. */
enum byoc_status byi_dn_want_packed(struct byi_build *b,
                                    const struct byi_dnnl_view *src,
                                    const struct byi_prim *prim, int arg,
                                    struct byi_use *use);

uint32_t byi_dn_add_buf(struct byi_build *b, struct byi_buf buf);
uint32_t byi_dn_temp(struct byi_build *b, uint64_t bytes);
/* The buffer of constant `made` of the program; the place of a view's data. */
uint32_t byi_dn_made_buf(struct byi_build *b, uint32_t made);
struct byi_place byi_dn_place(const struct byi_build *b,
                              const struct byi_dnnl_view *view);
/* May the current kernel write over the buffer of `view`? The buffer must be a
 * whole temporary whose only remaining read is the kernel's. */
bool byi_dn_may_overwrite(const struct byi_build *b,
                          const struct byi_dnnl_view *view);

void byi_dn_use(struct byi_emit *e, int arg, const struct byi_dnnl_view *view);
/* The creators of layer.h. If the program is to be written, they record their
 * arguments with the primitive. */
#define BYI_DN_CREATOR(name)                                                   \
    enum byoc_status byi_dn_##name##_new(                                      \
        struct byi_build *b, const struct byi_dnnl_##name *p,                  \
        const struct byi_posts *posts, struct byi_prim **prim);
BYI_OPERATORS(BYI_DN_CREATOR)
/* known.c: the primitives created in this build, since a deep model asks for
 * the same ones repeatedly. */
/* The arguments of a creator: they identify a primitive. */
struct byi_order {
    const char *function; /* of struct byi_operators */
    const void *params;
    size_t size;
    const struct byi_posts *posts; /* may be NULL */
};
/* If the creator was called with these arguments before, return true and its
 * result in *status: BYOC_OK with a reference to the primitive, or
 * BYOC_EUNSUPPORTED with the message in b->err. */
bool byi_dn_known(struct byi_build *b, const struct byi_order *order,
                  struct byi_prim **prim, enum byoc_status *status);
/* Remember a result: a reference to the primitive, or, for BYOC_EUNSUPPORTED,
 * the message in b->err. Other failures are not remembered. */
void byi_dn_know(struct byi_build *b, const struct byi_order *order,
                 struct byi_prim *prim, enum byoc_status status);
/* Drop the references. */
void byi_dn_known_free(struct byi_build *b);

/* Append the step; takes ownership of the primitive. */
enum byoc_status byi_dn_emit(struct byi_build *b, struct byi_emit *e);
/* Free a primitive, and forget it in the list of packed weights. */
void byi_dn_abandon(struct byi_build *b, struct byi_prim **prim);

/* One more layout of a value. */
void byi_dn_add_view(struct byi_build *b, struct byi_dnnl_value *value,
                     const struct byi_dnnl_view *view);
/* Make `view` output `output` of the current kernel. */
void byi_dn_define(struct byi_build *b, uint32_t output,
                   const struct byi_dnnl_view *view);

/* plan_memory.c: place the TEMP buffers. Returns BYOC_ELIMIT if too large. */
enum byoc_status byi_dn_plan_temps(struct byi_build *b);

/* layout.c: arithmetic on strides */
/* Dense, with axes from outermost to innermost in `order`; NULL: row-major.
 * Rank 0 becomes one element of rank 1. */
struct byi_desc byi_dn_dense(enum byoc_dtype dtype, uint32_t rank,
                             const int64_t *dims, const uint32_t *order);
/* (N, spatial..., C) for rank 3 and above, else row-major. */
struct byi_desc byi_dn_channels_last(enum byoc_dtype dtype, uint32_t rank,
                                     const int64_t *dims);
/* The order of the axes in memory, outermost first. */
void byi_dn_order(const struct byi_desc *desc, uint32_t *order);
bool byi_dn_is_dense(const struct byi_desc *desc);
bool byi_dn_is_plain(const struct byi_desc *desc);
/* Dense in the axis order of `desc`, with strides of size-1 axes normalised. */
struct byi_desc byi_dn_regular(const struct byi_desc *desc);
bool byi_dn_same_layout(const struct byi_desc *a, const struct byi_desc *b);
/* Dense in the axis order of `like`, with `dims` of the same rank. */
struct byi_desc byi_dn_dense_like(const struct byi_desc *like,
                                  const int64_t *dims);
/* Reshape without moving elements; false if impossible. */
bool byi_dn_reshape_desc(const struct byi_desc *desc, uint32_t rank,
                         const int64_t *dims, struct byi_desc *out);
/* The layout nearest to `desc` that can be reshaped to `dims` without moving
 * elements; false if there is none. */
bool byi_dn_joined_desc(const struct byi_desc *desc, uint32_t rank,
                        const int64_t *dims, struct byi_desc *out);
struct byi_desc byi_dn_permute_desc(const struct byi_desc *desc,
                                    const uint32_t *axes);
/* Add leading axes of size 1 up to `rank`, or remove them. */
struct byi_desc byi_dn_lead(const struct byi_desc *desc, uint32_t rank);
uint64_t byi_dn_desc_bytes(const struct byi_desc *desc); /* of a dense one */

/* chain.c: the epilogue of a kernel: the operators after its first one */
enum byi_item_kind { BYI_ITEM_ELT, BYI_ITEM_BIN, BYI_ITEM_PRELU };
struct byi_chain_item {
    enum byi_item_kind kind;
    uint32_t step; /* of the kernel, for names  */
    int alg;       /* enum byi_elt, byi_bin     */
    float alpha, beta;
    uint32_t operand;                    /* BIN, PRELU: a value      */
    const struct byoc_graph_value *type; /* of the result */
};
struct byi_chain {
    uint32_t n;
    struct byi_chain_item *at;
};

/* A primitive that may take post-ops, as chain.c needs to know it. */
struct byi_core {
    uint32_t step; /* the kernel's step       */
    void *params;  /* passed to make and fill */
    enum byoc_status (*make)(struct byi_build *b, void *params,
                             const struct byi_posts *posts,
                             struct byi_prim **prim);
    /* Add the arguments once the primitive is chosen; chain.c adds those of
     * post-ops, and dst. */
    enum byoc_status (*fill)(struct byi_build *b, void *params,
                             struct byi_emit *e);
    struct byi_desc dst; /* in the graph's dims */
    int64_t terms;       /* of an element of dst, as of BYI_REF_TERMS; 0: one */
    /* the primitive's axis i is dst's order[i]; NULL: the same axes */
    const uint32_t *order;
    bool folded; /* the primitive's dst is (elements/N, N) */
    /* axes differ from dst: only elementwise post-ops keep their meaning */
    bool elt_only;
    bool no_posts;
    bool no_sum;              /* dst is memory of its own */
    struct byi_dnnl_view src; /* may be overwritten if in_place */
    bool in_place;
    const struct byi_gathered *gathered; /* what the data are computed from */
};

/* bands.c. Should the kernel, a convolution, run in bands with another one? */
bool byi_dn_is_banded(const struct byi_build *b);
/* Find the draft steps that do. */
void byi_dn_find_bands(struct byi_build *b);

/* image.c: data with a channel axis, first or last in the graph's dims; a
 * primitive always sees (N, C, spatial...). */
struct byi_image_axes {
    uint32_t channel;             /* axis in the graph's dims           */
    bool last;                    /* is it the last axis?               */
    uint32_t order[BYI_MAX_RANK]; /* graph axis of each primitive axis  */
};
/* Channels on axis 1 of `rank` axes, or on the last one. */
struct byi_image_axes byi_dn_image(uint32_t rank, bool last);
/* Read attribute `name` of step 0; without it channels are first. Refuses
 * blocked channels and ranks other than 3 to 5. */
enum byoc_status byi_dn_image_read(struct byi_build *b, const char *name,
                                   uint32_t rank, struct byi_image_axes *image);
/* The layout of such data inside a region, in the graph's dims: channels-last
 * in memory, or plain if the build is. */
struct byi_desc byi_dn_image_desc(const struct byi_build *b,
                                  const struct byi_image_axes *image,
                                  uint32_t rank, const int64_t *dims);
/* A descriptor in the graph's dims, permuted to the primitive's axes. */
struct byi_desc byi_dn_image_seen(const struct byi_image_axes *image,
                                  const struct byi_desc *desc);
/* The value in that layout; view->desc has the primitive's axes. Refuses dtypes
 * other than float32. */
enum byoc_status byi_dn_want_image(struct byi_build *b,
                                   struct byi_dnnl_value *value,
                                   const struct byi_image_axes *image,
                                   struct byi_dnnl_view *view);

/* Read steps [first, end) of the current kernel as a chain. If first is 0, the
 * chain starts from argument `main` of step 0. Refuses steps that do not form a
 * chain, and functions that oneDNN lacks. */
enum byoc_status byi_dn_chain_read(struct byi_build *b, uint32_t first,
                                   uint32_t end, uint32_t main,
                                   struct byi_chain *chain);
/* If the chain starts by adding a vector along `axis` of dst, return that as
 * the bias and set *next to 1. */
enum byoc_status byi_dn_chain_bias(struct byi_build *b,
                                   const struct byi_chain *chain,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_dnnl_view *bias, uint32_t *next);
/* If the kernel's result, the concatenation of `n` values and then the whole
 * chain, can be computed by its reader, note this in the result and return
 * true. Else the kernel must be built. */
bool byi_dn_gather(struct byi_build *b, uint32_t n, const uint32_t *values,
                   const struct byi_chain *chain, enum byoc_status *status);
/* The arguments of the reader's primitive. */
void byi_dn_gather_use(struct byi_emit *e, const struct byi_gathered *g);
/* The reader has been built. */
void byi_dn_gather_end(struct byi_build *b, const struct byi_gathered *g);
/* Emit `core` with as many items from *next on as oneDNN fuses, and the others
 * as primitives of their own; defines output 0. */
enum byoc_status byi_dn_emit_chain(struct byi_build *b, struct byi_core *core,
                                   const struct byi_chain *chain,
                                   uint32_t next);
/* Emit the items of a chain from `next` on, starting from `view`. */
enum byoc_status byi_dn_emit_items(struct byi_build *b,
                                   const struct byi_chain *chain, uint32_t next,
                                   struct byi_dnnl_view view);

/* quant.c: step 0, a product of quantised data and constant weights, by byoc's
 * own kernels, which are exact on every CPU. */
struct byi_exact {
    struct byi_dnnl_value *src; /* integers */
    struct byi_quant quant;
    struct byi_chain chain;
    struct byi_dnnl_view weights, scale, bias; /* weights: desc not set */
    /* the result is integers, with scale `out`, and the product's epilogue has
     * the whole chain */
    bool narrow;
    struct byi_quant out;
    float low, high; /* of the result, in steps */
};
/* Try to open step 0, with the float32 weights w, output channels first or, if
 * `turned`, last; the result's channels are on `axis` of dst. Returns
 * BYOC_EUNSUPPORTED if it does not apply. */
enum byoc_status byi_dn_exact_open(struct byi_build *b,
                                   const struct byi_dnnl_view *w, bool turned,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_exact *x);
/* Emit `p`, whose window and descriptors are set, and the rest of the chain;
 * dst is the result's descriptor in the graph's dims. */
enum byoc_status byi_dn_exact_emit(struct byi_build *b, struct byi_exact *x,
                                   const struct byi_dnnl_view *src,
                                   struct byi_dnnl_qconv *p,
                                   const struct byi_desc *dst);
/* Build a sum or product of two dequantised values whose only reader quantises;
 * BYOC_EUNSUPPORTED if the kernel is something else. */
enum byoc_status byi_dn_exact_point(struct byi_build *b);

/* kernels_window.c: the mean or maximum over the spatial axes. */
enum byoc_status byi_dn_global_pool(struct byi_build *b, bool average);

/* kernels_window.c: the layouts that oneDNN prefers for the data and the
 * weights of a kernel that starts with a convolution or deconvolution; names as
 * in byi_conv_layouts. */
enum byoc_status byi_dn_conv_layouts(const struct byi_dnnl *lib,
                                     const struct byoc_graph *graph,
                                     const struct byoc_graph_step *step,
                                     char *data, char *weights, size_t n,
                                     struct byoc_error *err);
/* Is it a convolution or deconvolution? */
bool byi_dn_is_conv(const struct byoc_graph_step *step);

/* The names of the kernel's operators: "nn.conv2d+add+nn.relu". */
const char *byi_dn_joined_name(struct byi_build *b);
/* The value that is argument i of step 0. */
uint32_t byi_dn_arg0(const struct byi_build *b, uint32_t i);
/* A step of the kernel, counted from its first. */
const struct byoc_graph_step *byi_dn_step(const struct byi_build *b,
                                          uint32_t i);
const struct byoc_graph_step *byi_dn_step0(const struct byi_build *b);
/* The type of step 0's first result. */
const struct byoc_graph_value *byi_dn_result(const struct byi_build *b);
bool byi_dn_is(const struct byoc_graph_step *step, const char *name);
/* Refuse with BYOC_EUNSUPPORTED. */
enum byoc_status byi_dn_refuse(struct byi_build *b, const char *fmt, ...)
    BYI_PRINTF(2, 3);

#endif
