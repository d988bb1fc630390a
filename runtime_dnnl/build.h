/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/build.h: a region's graph becomes a program: primitives in
 * order, each with its arguments in buffers. Builders (kernels_*.c) see values
 * as views of buffers and ask for them in the layout they want; layout
 * conversions appear where a wish cannot be met, once per value and layout.
 *
 *   graph.h's nodes -> build.c, kernels_*.c, chain.c -> plan_memory.c
 *                   -> struct byi_program -> exec.c
 *                                         -> write.c -> C -> unit.c
 */
#ifndef BYI_DNNL_BUILD_H
#define BYI_DNNL_BUILD_H

#include <byoc/backend.h>

#include "region/graph.h"
#include "runtime_dnnl/layer.h"
#include "runtime_dnnl/table.h"

/* --- the program --------------------------------------------------------- */

/* A constant made at load. */
struct byi_made {
    void *data; /* NULL where nothing is to run, and once it was dropped */
    uint64_t bytes;
    struct byi_shared *shared; /* whose data it is; NULL: its own, or */
    bool lent;                 /* another constant's                  */
};

/* What a program is made for. */
enum byi_purpose {
    BYI_TO_RUN,
    BYI_TO_PROBE, /* descriptors only: no code, nothing packed */
    BYI_TO_WRITE  /* as a probe, and notes what was made how   */
};

/* A note on a primitive or a constant: which function of struct byi_operators
 * makes it, and of what. */
struct byi_recipe {
    const char *function;
    const void *params;
    const struct byi_posts *posts; /* may be NULL       */
    const char *pattern;           /* "" at a border    */
    uint32_t made, n_made;         /* constants it makes */
};

struct byi_program {
    const struct byi_dnnl *lib;
    const struct byoc_host *host;
    enum byi_purpose purpose;
    struct byi_arena *arena;
    const char *name; /* "dnnl_0" */
    uint32_t n_inputs, n_outputs, n_consts;
    const uint64_t *input_bytes, *output_bytes;
    const struct byoc_view *consts;   /* data and bytes only */
    const struct byi_unit *unit;      /* NULL: steps run as they are listed */
    BYI_VEC(struct byi_prim *) prims; /* of the steps */
    BYI_VEC(struct byi_step) steps;
    BYI_VEC(struct byi_made) made;
    BYI_VEC(struct byi_recipe) recipes; /* BYI_TO_WRITE: of what is made */
    uint64_t temp_bytes;                /* plan_memory.c */
    uint64_t scratch_bytes;             /* the largest of the primitives */
};

/* program.c. An empty one that holds the constants: data may be NULL for what
 * is not read. */
enum byoc_status byi_dn_program_new(const struct byi_dnnl *lib,
                                    const struct byoc_host *host,
                                    enum byi_purpose purpose, uint32_t n_consts,
                                    const struct byoc_view *consts,
                                    struct byi_program **program,
                                    struct byoc_error *err);
void byi_dn_program_free(struct byi_program **program);
/* The primitive of the next step, its code generated where it is to run. Taken
 * over, success or not. */
enum byoc_status byi_dn_program_prim(struct byi_program *program,
                                     struct byi_prim *prim,
                                     struct byoc_error *err);

/* build.c. The program of `graph`, which is freed, success or not. */
enum byoc_status byi_dn_build(const struct byi_dnnl *lib,
                              const struct byoc_host *host,
                              struct byi_graph *graph, uint32_t n_consts,
                              const struct byoc_view *consts,
                              enum byi_purpose purpose,
                              struct byi_program **program,
                              struct byoc_error *err);

/* write.c. The program, made to be written, as one unit of C that defines the
 * function `symbol`. False: it cannot be, since it packs on every run. */
bool byi_dn_write(const struct byi_program *program, const char *symbol,
                  struct byi_text *text);
extern const char byi_dn_unit_text[]; /* operators.h, and what it needs */
extern const uint32_t byi_dn_unit_id; /* of these declarations */

/* unit.c: what units call; and the program that a unit makes. `code` is its
 * function, which must outlive the program. Errors: BYOC_EINCOMPATIBLE for a
 * unit of other declarations. */
extern const struct byi_operators byi_dn_operators;
enum byoc_status byi_dn_unit_load(const struct byi_dnnl *lib,
                                  const struct byoc_host *host,
                                  void (*code)(void), uint32_t n_consts,
                                  const struct byoc_view *consts,
                                  struct byi_program **program,
                                  struct byoc_error *err);

/* made.c: constants made at load, the next of the program's; computed where it
 * is to run. `prim`: of the step that a pack is for; the reorder of a copy. */
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
/* Errors: BYOC_EUNSUPPORTED when the floats are no such integers; nothing is
 * made then. */
enum byoc_status byi_dn_make_integers(struct byi_program *program,
                                      const struct byi_integers *p,
                                      struct byoc_error *err);
enum byoc_status byi_dn_make_gate_weights(struct byi_program *program,
                                          const struct byi_gates *p,
                                          struct byoc_error *err);
enum byoc_status byi_dn_make_gate_biases(struct byi_program *program,
                                         const struct byi_gates *p,
                                         struct byoc_error *err);
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
/* List the steps that the program's unit runs. */
enum byoc_status byi_dn_exec_list(struct byi_program *program,
                                  struct byoc_error *err);
/* A step of a unit: listed, or run. */
int byi_dn_exec_call(struct byi_exec *exec, const struct byi_step *step);
/* For measuring (bench/bound.c). One step, on the buffers of the last run; and
 * where the TEMP buffers are. */
enum byoc_status byi_dn_exec_step(const struct byi_exec *exec, uint32_t step,
                                  struct byoc_error *err);
void *byi_dn_exec_temps(const struct byi_exec *exec);

/* share.c: constants that were reordered, had once by all programs of a host.
 * Threads: safe. */
struct byi_shared;
/* What `reorder` makes of the constant at `src`, which stays where it is as
 * long as this is used; NULL: nobody has it. End it with byi_dn_share_end. */
struct byi_shared *byi_dn_share_find(const struct byoc_host *host,
                                     const void *src,
                                     const struct byi_prim *reorder);
/* Let others use `data`, acquired of the host, that `reorder` made: takes both.
 * Where another thread was first, theirs is what there is. NULL: no memory, and
 * data and primitive stay the caller's. */
struct byi_shared *byi_dn_share(const struct byoc_host *host, const void *src,
                                struct byi_prim **reorder, void *data);
void *byi_dn_shared_data(const struct byi_shared *shared);
void byi_dn_share_end(struct byi_shared *shared);

/* --- while building ------------------------------------------------------ */

/* Memory of one value or of several views of it. */
struct byi_buf {
    enum byi_buf_kind kind;
    uint32_t index;       /* not of TEMP                                 */
    uint32_t uses;        /* reads still to be built                     */
    uint32_t first, last; /* the steps that touch it first and last      */
    uint64_t bytes;
    uint64_t offset; /* TEMP: in the state's memory                      */
    bool keep;       /* TEMP: needs its slack, may not become an output  */
};

/* An argument of a step that is being made. */
struct byi_use {
    int arg; /* enum byi_arg */
    uint32_t buf;
    uint64_t offset; /* bytes */
};

/* A step, until it is known which ones stay and where buffers are. */
struct byi_draft {
    struct byi_prim *prim;
    const char *name, *sources;
    uint32_t n;
    const struct byi_use *uses;
};

/* A tensor in memory: elements desc.strides apart, from `offset` (elements)
 * of a buffer on. */
struct byi_view {
    uint32_t buf;
    int64_t offset;
    struct byi_desc desc;
};

/* Integers q of this type stand for (q - zero) scale. */
struct byi_quant {
    enum byoc_dtype dtype; /* int8 or uint8 */
    float scale, zero;
};

/* A value of the graph and the copies made of it so far, the one its producer
 * wrote first. Scalars have rank 1 here: oneDNN has no rank 0. */
struct byi_value {
    uint32_t uses; /* reads still to be built; a region output is one */
    uint32_t n_views, cap_views;
    struct byi_view *views;
    struct byi_value *integers; /* what it was dequantised from, or itself where
                                   its views hold integers; NULL: floats only */
    struct byi_quant quant;     /* of them */
};

/* A constant that was packed: shared by later readers of the same layout. */
struct byi_pack_made {
    struct byi_view src;
    const struct byi_prim *prim;
    int arg;
    uint32_t buf;
};

struct byi_known;  /* known.c */
struct byi_fusion; /* chain.c */

enum { BYI_KNOWN_LISTS = 1024 };

#define BYI_NOBODY UINT32_MAX

struct byi_build {
    struct byi_program *program;
    const struct byi_dnnl *lib;
    struct byi_graph *graph;
    struct byi_arena *arena; /* of what is not the program's */
    const struct byoc_view *consts;
    BYI_VEC(struct byi_buf) bufs;
    BYI_VEC(struct byi_draft) drafts;
    bool plain;    /* activations as the model has them: for measuring */
    uint32_t node; /* the kernel being built       */
    const struct byi_gnode *kernel;
    struct byi_value **values; /* [node][output]               */
    uint32_t *reader;          /* [node]: the only reader of output 0, or
                                  BYI_NOBODY; region outputs have none */
    const char *sources;       /* of the kernel, joined; NULL: not yet */
    struct byoc_error *err;
    BYI_VEC(struct byi_pack_made) packs;
    struct byi_known *known[BYI_KNOWN_LISTS]; /* by hash */
    struct byi_fusion *fusion; /* scratch of the kernel being built */
};

/* A primitive about to be emitted. */
struct byi_emit {
    const char *name;
    struct byi_prim *prim;
    uint32_t n;
    struct byi_use uses[2 * BYI_MAX_POSTS];
};

/* build.c */
/* The value behind operand `index` of the kernel. */
struct byi_value *byi_dn_operand(struct byi_build *b, uint32_t index);
/* Is it a constant of the artifact? Its bytes, NULL if it is computed. */
const void *byi_dn_const_data(struct byi_build *b, uint32_t index,
                              enum byoc_dtype *dtype, int64_t *n);
/* The operand's elements as numbers, for shapes; at most max. Errors: when it
 * is no constant. */
enum byoc_status byi_dn_const_ints(struct byi_build *b, uint32_t index,
                                   uint32_t max, int64_t *out, uint32_t *n);
/* The one element of a constant operand as a float; false if not such. */
bool byi_dn_const_scalar(struct byi_build *b, uint32_t index, float *out);

/* A view of `value` with exactly these strides (where dims are not 1); a
 * reorder is added when there is none yet. */
enum byoc_status byi_dn_want(struct byi_build *b, struct byi_value *value,
                             const struct byi_desc *desc,
                             struct byi_view *view);
/* In any dense layout it is had in; in row-major order. */
enum byoc_status byi_dn_want_dense(struct byi_build *b, struct byi_value *value,
                                   struct byi_view *view);
enum byoc_status byi_dn_want_plain(struct byi_build *b, struct byi_value *value,
                                   struct byi_view *view);
/* A copy of `src` as `desc` lies, with other dims than its value's maybe. */
enum byoc_status byi_dn_reorder(struct byi_build *b, const struct byi_view *src,
                                const struct byi_desc *desc,
                                struct byi_view *view);
/* The existing view of that layout, NULL when there is none. */
const struct byi_view *byi_dn_find(const struct byi_value *value,
                                   const struct byi_desc *desc);
/* Weights for argument `arg` of `prim`: `src` as it lies, or packed: at load
 * when it is constant, else on every run. */
enum byoc_status byi_dn_want_packed(struct byi_build *b,
                                    const struct byi_view *src,
                                    const struct byi_prim *prim, int arg,
                                    struct byi_use *use);

uint32_t byi_dn_temp(struct byi_build *b, uint64_t bytes);
/* The buffer of constant `made` of the program, and where a view begins. */
uint32_t byi_dn_made_buf(struct byi_build *b, uint32_t made);
struct byi_place byi_dn_place(const struct byi_build *b,
                              const struct byi_view *view);
/* May the current kernel, reading it once, write over the buffer of `view`: a
 * temporary, all of it, that nobody else is still to read? */
bool byi_dn_may_overwrite(const struct byi_build *b,
                          const struct byi_view *view);

void byi_dn_use(struct byi_emit *e, int arg, const struct byi_view *view);
/* The creators of layer.h; where the program is to be written, a note stays on
 * the primitive. */
#define BYI_DN_CREATOR(name)                                                   \
    enum byoc_status byi_dn_##name##_new(                                      \
        struct byi_build *b, const struct byi_##name *p,                       \
        const struct byi_posts *posts, struct byi_prim **prim);
BYI_OPERATORS(BYI_DN_CREATOR)
/* known.c: primitives that were asked for before in this build, since a deep
 * model asks for the same ones again and again. */
/* What a primitive is made of. */
struct byi_order {
    const char *function; /* of struct byi_operators */
    const void *params;
    size_t size;
    const struct byi_posts *posts; /* may be NULL */
};
/* Was this asked for? Then *status is the answer it got: BYOC_OK and another
 * reference to the primitive, or BYOC_EUNSUPPORTED and the message in b->err. */
bool byi_dn_known(struct byi_build *b, const struct byi_order *order,
                  struct byi_prim **prim, enum byoc_status *status);
/* Remember an answer: of the primitive a reference, of BYOC_EUNSUPPORTED the
 * message in b->err; other failures are not remembered. */
void byi_dn_know(struct byi_build *b, const struct byi_order *order,
                 struct byi_prim *prim, enum byoc_status status);
/* Drop the references. */
void byi_dn_known_free(struct byi_build *b);

/* Append the step; takes the primitive. */
enum byoc_status byi_dn_emit(struct byi_build *b, struct byi_emit *e);
/* Free a primitive that weights may have been packed for. */
void byi_dn_abandon(struct byi_build *b, struct byi_prim **prim);

/* Output `output` of the current kernel is this view of a buffer. */
void byi_dn_define(struct byi_build *b, uint32_t output,
                   const struct byi_view *view);

/* plan_memory.c: place the TEMP buffers. Errors: BYOC_ELIMIT. */
enum byoc_status byi_dn_plan_temps(struct byi_build *b);

/* layout.c: strides */
/* Dense, with the axes from outermost to innermost as in `order`; NULL:
 * row-major. Rank 0 becomes one element of rank 1. */
struct byi_desc byi_dn_dense(enum byoc_dtype dtype, uint32_t rank,
                             const int64_t *dims, const uint32_t *order);
/* N, spatial..., C from rank 3 on, else row-major. */
struct byi_desc byi_dn_channels_last(enum byoc_dtype dtype, uint32_t rank,
                                     const int64_t *dims);
/* The order of the axes in memory, outermost first. */
void byi_dn_order(const struct byi_desc *desc, uint32_t *order);
bool byi_dn_is_dense(const struct byi_desc *desc);
bool byi_dn_is_plain(const struct byi_desc *desc);
/* As `desc` lies when dense, but strides of size-1 axes made regular. */
struct byi_desc byi_dn_regular(const struct byi_desc *desc);
bool byi_dn_same_layout(const struct byi_desc *a, const struct byi_desc *b);
/* Dense in the order of `like`, with `dims` of the same rank. */
struct byi_desc byi_dn_dense_like(const struct byi_desc *like,
                                  const int64_t *dims);
/* The same elements with other dims, without moving; false if impossible. */
bool byi_dn_reshape_desc(const struct byi_desc *desc, uint32_t rank,
                         const int64_t *dims, struct byi_desc *out);
/* The layout nearest to `desc` that a reshape to `dims` only looks at in
 * another way; false when there is none. */
bool byi_dn_joined_desc(const struct byi_desc *desc, uint32_t rank,
                        const int64_t *dims, struct byi_desc *out);
struct byi_desc byi_dn_permute_desc(const struct byi_desc *desc,
                                    const uint32_t *axes);
/* Axes of size 1 put in front, up to `rank`; or taken off the front. */
struct byi_desc byi_dn_lead(const struct byi_desc *desc, uint32_t rank);
uint64_t byi_dn_desc_bytes(const struct byi_desc *desc); /* of a dense one */

/* chain.c: what follows a kernel's own operator */
enum byi_item_kind { BYI_ITEM_ELT, BYI_ITEM_BIN, BYI_ITEM_PRELU };
struct byi_item {
    enum byi_item_kind kind;
    uint32_t step; /* of the kernel, for names */
    int alg;       /* enum byi_elt, byi_bin    */
    float alpha, beta;
    uint32_t operand;            /* BIN, PRELU               */
    struct byi_value *own;       /* in its place, or NULL    */
    const struct byi_type *type; /* of the result  */
};
struct byi_chain {
    uint32_t n;
    struct byi_item *at;
};

/* A primitive that may take post-ops: what chain.c needs to know of it. */
struct byi_core {
    uint32_t step; /* the kernel's step it is  */
    void *params;  /* of make                  */
    enum byoc_status (*make)(struct byi_build *b, void *params,
                             const struct byi_posts *posts,
                             struct byi_prim **prim);
    /* The arguments, once the primitive is chosen (post-ops are added by
     * chain.c, dst too). */
    enum byoc_status (*fill)(struct byi_build *b, void *params,
                             struct byi_emit *e);
    struct byi_desc dst;   /* in the graph's dims               */
    const uint32_t *order; /* the primitive's axis i is dst's order[i]; NULL:
                              it is axis i */
    bool folded;           /* the primitive sees (elements/N, N) */
    bool elt_only; /* it has other axes than dst: elementwise post-ops alone
                      mean the same to it */
    bool whole;    /* with all of the chain, or not at all, and not in place */
    bool no_posts;
    struct byi_view src; /* may be written over when in_place */
    bool in_place;
};

/* image.c: data with channels, first or last in the graph's dims; a primitive
 * sees (N, C, spatial...) in either case. */
struct byi_image {
    uint32_t channel;             /* the axis of the graph's dims        */
    bool last;                    /* it is the last one                  */
    uint32_t order[BYI_MAX_RANK]; /* the primitive's axes in the graph's */
};
/* With channels on axis 1, or the last one, of `rank`. */
struct byi_image byi_dn_image(uint32_t rank, bool last);
/* As attribute `name` of step 0 says, channels first where it has none.
 * Errors: blocks of channels; a rank that is not 3 to 5. */
enum byoc_status byi_dn_image_read(struct byi_build *b, const char *name,
                                   uint32_t rank, struct byi_image *image);
/* The layout of such data in a region, in the graph's dims: channels last in
 * memory, unless it is to be plain. */
struct byi_desc byi_dn_image_desc(const struct byi_build *b,
                                  const struct byi_image *image, uint32_t rank,
                                  const int64_t *dims);
/* A descriptor in the graph's dims as the primitive sees it. */
struct byi_desc byi_dn_image_seen(const struct byi_image *image,
                                  const struct byi_desc *desc);
/* The value in that layout; view->desc is as the primitive sees it. Errors: it
 * is not float32. */
enum byoc_status byi_dn_want_image(struct byi_build *b, struct byi_value *value,
                                   const struct byi_image *image,
                                   struct byi_view *view);

/* The chain of the current kernel's steps first .. n_steps-1; when first is 0,
 * argument `main` of step 0 is what it starts from. Errors: steps that are no
 * chain, functions oneDNN does not have. */
enum byoc_status byi_dn_chain_read(struct byi_build *b, uint32_t first,
                                   uint32_t main, struct byi_chain *chain);
/* When the chain starts with the addition of a vector along `axis` of dst:
 * the vector, and *next is 1. */
enum byoc_status byi_dn_chain_bias(struct byi_build *b,
                                   const struct byi_chain *chain,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_view *bias, uint32_t *next);
/* Emit `core` with as many of the chain's items from *next on as can be had
 * in one primitive, the others as primitives of their own; defines output 0. */
enum byoc_status byi_dn_emit_chain(struct byi_build *b, struct byi_core *core,
                                   const struct byi_chain *chain,
                                   uint32_t next);
/* Emit items of a chain from `next` on, starting with `view`. */
enum byoc_status byi_dn_emit_items(struct byi_build *b,
                                   const struct byi_chain *chain, uint32_t next,
                                   struct byi_view view);

/* quant.c: the first step, a kernel of data and constant weights, on integers.
 */
struct byi_int8 {
    struct byi_value *src; /* integers, NULL: it cannot be had so */
    struct byi_quant quant;
    struct byi_view weights; /* int8, row-major */
    struct byi_value *scale, *shift;
    bool narrow; /* the result is integers too, of `out` */
    struct byi_quant out;
};
/* Whether it can: the data are quantised, and the weights, seen as `w`, in
 * row-major order with the output channels first, integers times steps. The
 * result has `rank` axes, channels on `axis`; `padded`: with zeros, which must
 * then be the integer 0.
 */
enum byoc_status byi_dn_int8_open(struct byi_build *b, const struct byi_desc *w,
                                  uint32_t rank, uint32_t axis, bool padded,
                                  struct byi_int8 *x);
/* The kernel's chain behind what makes numbers of the integer product. */
enum byoc_status byi_dn_int8_chain(struct byi_build *b, struct byi_int8 *x,
                                   struct byi_chain *chain);
/* Emit; *dtype is that of the result in core's parameters. Errors:
 * BYOC_EUNSUPPORTED when oneDNN does not do all of it in one primitive. */
enum byoc_status byi_dn_int8_emit(struct byi_build *b, const struct byi_int8 *x,
                                  struct byi_core *core, enum byoc_dtype *dtype,
                                  const struct byi_chain *chain);

/* kernels_window.c: the mean or maximum over the spatial axes. */
enum byoc_status byi_dn_global_pool(struct byi_build *b, bool average);

/* kernels_window.c: the layouts that oneDNN would pick for the data and the
 * weights of a kernel that starts with a convolution of either direction; names
 * as byi_conv_layouts gives them. */
enum byoc_status byi_dn_conv_layouts(const struct byi_dnnl *lib,
                                     const struct byi_graph *graph,
                                     const struct byi_gnode *kernel, char *data,
                                     char *weights, size_t n,
                                     struct byoc_error *err);

/* The index of the kernel's operand that is argument i of step 0. */
uint32_t byi_dn_arg0(const struct byi_build *b, uint32_t i);
const struct byi_gstep *byi_dn_step0(const struct byi_build *b);
/* Refuse with BYOC_EUNSUPPORTED. */
enum byoc_status byi_dn_refuse(struct byi_build *b, const char *fmt, ...)
    BYI_PRINTF(2, 3);

#endif
