/* SPDX-License-Identifier: Apache-2.0 */
/* transform/relayout.h: shared by EliminateTransposes, ConvertLayout and
 * AlterOpLayout. Chooses for every value of a function the order in which its
 * axes are stored, and rebuilds the function that way.
 *
 * A layout is a storage order of axes, optionally with a block split off one
 * axis. Transposes of the function are not nodes here but layouts: transpose(x)
 * is x in another layout. An operator that propagates layouts (the layout
 * column of ops.def) has a state: the layout it is computed in. An operand in
 * another layout than the state needs must be converted, which costs the bytes
 * it moves; one conversion serves all readers. A plan assigns a state to every
 * node. Coordinate descent finds it: sweeps down and up in which every node
 * takes the cheapest state given its neighbours'. The cost never rises and the
 * number of sweeps is fixed, so the time is linear in nodes and edges. Ties go
 * to the operands' layout on the way down and to the readers' on the way up.
 * This moves a transpose through neutral operators until it meets another
 * transpose. The rebuild emits only the conversions of the plan, and folds
 * conversions of constants.
 *
 * OneFlow's auto-NHWC pass puts transposes around each operator, and cancels
 * adjacent pairs of them. Relay's ConvertLayout has a rule per operator, and
 * transposes constants at compile time. Neither pass moves the remaining
 * transposes to where they are cheapest.
 */
#ifndef BYI_RELAYOUT_H
#define BYI_RELAYOUT_H

#include "core/base/index.h"
#include "core/ir/ir.h"

/* --- layouts.c ----------------------------------------------------------- */

/* Stored axis i is the value's axis at[i]; `block` elements of `block_axis`
 * follow as the last stored axis. Interned: a layout is its index, and 0 is the
 * identity of any rank. */
struct byi_rl_layout {
    uint8_t rank;
    uint8_t at[BYI_MAX_RANK];
    uint8_t block_axis, block; /* block 0: none */
};
typedef uint32_t byi_rl_layout_id;
#define BYI_RL_NO_LAYOUT UINT32_MAX

/* All layouts of a function. */
struct byi_rl_layouts {
    BYI_VEC(struct byi_rl_layout) list;
    struct byi_index index;
};
/* Free the table, whose ids become invalid. */
void byi_rl_layouts_free(struct byi_rl_layouts *layouts);
/* Returns the index of the layout, which is added if it is new. */
byi_rl_layout_id byi_rl_layout_intern(struct byi_rl_layouts *layouts,
                                      const struct byi_rl_layout *layout);
/* Returns layout `id` of a value of that rank. */
struct byi_rl_layout byi_rl_layout_at(const struct byi_rl_layouts *layouts,
                                      byi_rl_layout_id id, uint32_t rank);
/* Returns layout `b` of y as a layout of x, if y is x in layout `a`, which
 * has no block. */
byi_rl_layout_id byi_rl_layout_compose(struct byi_rl_layouts *layouts,
                                       byi_rl_layout_id a, byi_rl_layout_id b,
                                       uint32_t rank);
/* Returns the inverse of a layout without a block. */
byi_rl_layout_id byi_rl_layout_inverse(struct byi_rl_layouts *layouts,
                                       byi_rl_layout_id id, uint32_t rank);
/* How to change the axes of a layout. A mask selects axes of the larger layout,
 * before or after the change. */
enum byi_rl_change {
    BYI_RL_DROP_AXES, /* the blocked axis must not be dropped */
    /* new axis i is stored at position i */
    BYI_RL_INSERT_AXES,
    /* from a layout of groups of axes, without a block, to a layout of the
     * axes; groups begin at the axes of the mask */
    BYI_RL_UNGROUP,
    /* the reverse: groups are stored in the order of their first axes, even if
     * one is not contiguous; a block is dropped */
    BYI_RL_MAKE_GROUPS
};
/* Returns layout `id` after the change. `axes` is its mask, and `rank` the rank
 * of the larger layout. */
byi_rl_layout_id byi_rl_layout_change(struct byi_rl_layouts *layouts,
                                      enum byi_rl_change change,
                                      byi_rl_layout_id id, uint32_t rank,
                                      uint32_t axes);
/* Returns the storage position of axis `axis`. */
uint32_t byi_rl_layout_place(const struct byi_rl_layout *layout, uint32_t axis);
/* Whether a tensor of this type can have the layout: the rank matches, and the
 * block divides its axis, or the axis has size 1. */
bool byi_rl_layout_fits(const struct byi_rl_layout *layout,
                        const struct byi_type *type);
/* Returns the type of the stored tensor. */
const struct byi_type *byi_rl_layout_type(struct byi_arena *arena,
                                          const struct byi_rl_layout *layout,
                                          const struct byi_type *type);
/* Whether a tensor of these dims has the same element order in both layouts. */
bool byi_rl_layout_same_order(const struct byi_rl_layout *a,
                              const struct byi_rl_layout *b,
                              const struct byi_type *type);
/* Write the layout's name, as "NHWC", with the letters of `axis_letters`
 * ("NCHW"), or A, B, ... if it is NULL. Returns buf. */
enum { BYI_RL_LAYOUT_NAME = 32 };
char *byi_rl_layout_name(const struct byi_rl_layout *layout,
                         const char *axis_letters,
                         char buf[BYI_RL_LAYOUT_NAME]);

/* --- relayout.c ----------------------------------------------------------- */

/* How an operator's state relates to its operands and result. */
enum byi_relayout_rule {
    BYI_RL_FIXED, /* operands and result in the original layout */
    /* the state is the layout of the result and of all operands that have the
     * result's axes */
    BYI_RL_SAME,
    /* the state is the first operand's layout; the result has its axes except
     * the axes of the mask */
    BYI_RL_DROP,
    /* the state is the result's layout; the first operand has its axes except
     * the axes of the mask */
    BYI_RL_INSERT,
    /* a reshape: the state orders groups of axes; each group of operand axes
     * becomes a group of result axes */
    BYI_RL_GROUP,
    /* a reshape to rows that nn.dense multiplies with constants: the state is
     * the operand's layout, in whose order the elements of the result and of
     * the weights are */
    BYI_RL_UNROLL,
    BYI_RL_MATMUL /* bit i of the state: operand i is transposed */
};

enum { BYI_RL_RESULT = 16 }; /* the first bit of the result's groups */

/* A value of the old function, and the state of its node. */
struct byi_site {
    /* this value is value `origin` in layout `rel`; if it is not a transpose,
     * it is its own origin in layout 0 */
    byi_id origin;
    byi_id root; /* the node whose state decides: origin, or its tuple */
    byi_rl_layout_id rel;
    uint32_t state; /* its meaning depends on the rule */
    /* DROP, INSERT: axes of the larger side; GROUP, UNROLL: the first axes of
     * the operand's groups and, from bit BYI_RL_RESULT, of the result's */
    uint32_t mask;
    uint8_t rule; /* enum byi_relayout_rule */
    bool live;    /* the result of the function needs it */
    bool claimed; /* a transpose whose sources another node has taken over */
    bool pinned;  /* the state must not change */
    bool mixed;   /* a reader is not an nn.dense with constant weights */
    /* SENSITIVE, pinned: the layout that its weights need */
    byi_rl_layout_id kernel_layout;
    const char *kernel; /* the name of that layout; NULL: unchanged   */
    uint64_t move_cost; /* of one conversion of its result */
    /* while rebuilding */
    byi_id base; /* the node in the new function */
    byi_rl_layout_id base_layout;
};

/* A layout in which operands need the result of `root`, and how many do. */
struct byi_need {
    byi_id root;
    byi_rl_layout_id layout;
    uint32_t count;
    uint32_t next;  /* the next need of the root; 0: none */
    uint32_t depth; /* length of the list from here */
};

/* A conversion: `origin` in that layout, in the new function. */
struct byi_relayout_value {
    byi_id origin;
    byi_rl_layout_id layout;
    byi_id node;
};

/* Returns the hash of `id` in that layout. */
static inline uint64_t byi_rl_hash(byi_id id, byi_rl_layout_id layout)
{
    const uint32_t key[2] = {id, layout};
    return byi_hash(0, key, sizeof key);
}

/* The work on one function. */
struct byi_relayout {
    struct byi_module *m;
    struct byi_pass_context *ctx;
    struct byi_arena *scratch;
    const struct byi_func *old; /* the function that is analysed */
    struct byi_func *f;         /* the function that byi_rl_emit builds */
    struct byi_rl_layouts layouts;
    struct byi_site *sites;         /* indexed by node of the old function */
    BYI_VEC(struct byi_need) needs; /* index 0: none */
    /* the needs of long lists, by root and layout */
    struct byi_index long_needs;
    uint32_t *first_need; /* for each root: its needs, linked; 0: none */
    byi_id *map;          /* old -> new, of nodes that are copied */
    BYI_VEC(struct byi_relayout_value) conversions;
    struct byi_index
        conversion_index;      /* of conversions, by origin and layout */
    BYI_VEC(uint32_t) pending; /* sources of removed transposes */
    uint64_t original_cost;    /* of the transposes of the old function */
    bool changed;              /* a pin differs from the original */
};

/* Analyse function `func`: find the values that are other values in another
 * layout, and set the states of the nodes as they are in the function. The
 * module, ctx and scratch must outlive rl. Free with byi_relayout_free. */
void byi_relayout_init(struct byi_relayout *rl, struct byi_module *m,
                       uint32_t func, struct byi_pass_context *ctx,
                       struct byi_arena *scratch);
/* Free what *rl owns, except the memory in `scratch`. */
void byi_relayout_free(struct byi_relayout *rl);
/* Between byi_relayout_init and byi_relayout_run: pin call `id`, whose operator
 * is SENSITIVE, to data layout `data` and weight layout `kernel` (NULL:
 * unchanged), at any cost. False, and the call stays unpinned, if that is
 * impossible. The strings must be valid as long as rl. */
bool byi_relayout_pin(struct byi_relayout *rl, byi_id id, const char *data,
                      const char *kernel);
/* Find a plan and replace `func` by the function that follows it. Without pins,
 * a plan that is not cheaper changes nothing. */
enum byoc_status byi_relayout_run(struct byi_relayout *rl, uint32_t func,
                                  struct byoc_error *err);

/* --- relayout_rules.c ----------------------------------------------------- */

/* Returns layout `need` of value `id`, as a layout of its origin. */
byi_rl_layout_id byi_rl_at_origin(struct byi_relayout *rl, byi_id id,
                                  byi_rl_layout_id need);
/* Set the rule and the mask of node `id`, and pin it if it has weights. */
void byi_rl_classify(struct byi_relayout *rl, byi_id id);
/* Whether the operator supports the state. */
bool byi_rl_allows(const struct byi_relayout *rl, byi_id id, uint32_t state);
/* Returns the layout of the result in that state. */
byi_rl_layout_id byi_rl_out(struct byi_relayout *rl, byi_id id, uint32_t state);
/* Returns the layout that operand i must have in that state. */
byi_rl_layout_id byi_rl_need(struct byi_relayout *rl, byi_id id, uint32_t state,
                             uint32_t i);
/* Returns the state in which operand i, or the result, has that layout; the
 * present state if there is no such state. The caller checks it with
 * byi_rl_allows. */
uint32_t byi_rl_from_operand(struct byi_relayout *rl, byi_id id, uint32_t i,
                             byi_rl_layout_id layout);
uint32_t byi_rl_from_result(struct byi_relayout *rl, byi_id id,
                            byi_rl_layout_id layout);
/* Whether operand i is broadcast from a lower rank: its axes are the result's
 * trailing axes. */
bool byi_rl_has_lower_rank(const struct byi_relayout *rl, byi_id id,
                           uint32_t i);
/* Returns the tensor type of node `id` of the old function; NULL for another
 * type. */
const struct byi_type *byi_rl_type(const struct byi_relayout *rl, byi_id id);

/* --- relayout_emit.c ------------------------------------------------------ */

/* Build the function of the plan as rl->f. */
enum byoc_status byi_rl_emit(struct byi_relayout *rl, struct byoc_error *err);
/* Returns node `id` of the old function. */
static inline const struct byi_node *byi_rl_node(const struct byi_relayout *rl,
                                                 byi_id id)
{
    return &rl->old->nodes.at[id];
}

#endif
