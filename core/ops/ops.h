/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: operators: their table (ops.def), attributes and type rules, and
 * queries about calls for the compiler and the runtime. The runtime includes
 * this header, but never the IR's.
 */
#ifndef BYI_OPS_H
#define BYI_OPS_H

#include "core/base/base.h"

/* --- attrs.c ------------------------------------------------------------ */

/* The type of an attribute, and the member of byi_attr that has its value. */
enum byi_attr_kind {
    BYI_ATTR_INT,
    BYI_ATTR_FLOAT,
    BYI_ATTR_BOOL, /* stored as an int */
    BYI_ATTR_STRING,
    BYI_ATTR_DTYPE, /* stored as an int: enum byoc_dtype */
    BYI_ATTR_INTS,
    BYI_ATTR_FLOATS,
    BYI_ATTR_STRINGS
};

/* An attribute: its name and value. */
struct byi_attr {
    const char *name;
    enum byi_attr_kind kind;
    uint32_t n; /* entries of a list */
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
        const char *const *strings;
    };
};

/* The attributes of a call: all that the operator's row declares, in that
 * order, with defaults filled in. Immutable, in an arena. */
struct byi_attrs {
    uint32_t n;
    const struct byi_attr *at;
};

/* The attribute `name`, or NULL. */
const struct byi_attr *byi_attr_find(const struct byi_attrs *attrs,
                                     const char *name);
/* The value of a declared attribute; asserts that it exists with that kind. */
int64_t byi_attr_int(const struct byi_attrs *attrs, const char *name);
/* Attribute `axis` of a tensor of rank `rank`, counted from the front. */
uint32_t byi_attr_axis(const struct byi_attrs *attrs, uint32_t rank);
double byi_attr_float(const struct byi_attrs *attrs, const char *name);
const char *byi_attr_string(const struct byi_attrs *attrs, const char *name);
const int64_t *byi_attr_ints(const struct byi_attrs *attrs, const char *name,
                             uint32_t *n);
const double *byi_attr_floats(const struct byi_attrs *attrs, const char *name,
                              uint32_t *n);
/* The attribute as a number for the formulas of unary.def: a string is 1 if it
 * is "tanh" (of nn.gelu's `approximate`), otherwise 0. Not for lists. */
double byi_attr_number(const struct byi_attr *attr);
/* "an integer", "a list of floats" and so on, for messages. */
const char *byi_attr_kind_text(enum byi_attr_kind kind);
/* Compares names and values; floats by their bits. */
bool byi_attr_equal(const struct byi_attr *a, const struct byi_attr *b);
/* Compares only the values; the names may be NULL. */
bool byi_attr_value_equal(const struct byi_attr *a, const struct byi_attr *b);
bool byi_attrs_equal(const struct byi_attrs *a, const struct byi_attrs *b);

/* --- ops.c: the operator table, from ops.def ---------------------------- */

enum byi_op_id {
    BYI_OP_NONE,
#define OP(id, ...) BYI_OP_##id,
#include "ops.def"
#undef OP
    BYI_N_OPS
};

/* Fusion kinds, weakest first (Relay's OpPatternKind). */
enum byi_op_kind {
    BYI_ELEMWISE,
    BYI_BROADCAST,
    BYI_INJECTIVE,
    BYI_REDUCE,
    BYI_OUT_FUSABLE,
    BYI_OPAQUE
};

/* How another order of its operands' axes affects a call: see ops.def. */
enum byi_op_layout {
    BYI_LAYOUT_FIXED,
    BYI_LAYOUT_SENSITIVE,
    BYI_LAYOUT_AGNOSTIC,
    BYI_LAYOUT_BROADCAST,
    BYI_LAYOUT_AXIS,
    BYI_LAYOUT_REDUCE,
    BYI_LAYOUT_JOIN,
    BYI_LAYOUT_PERM
};

/* How to count the floating-point operations of a call, for reports. */
enum byi_op_cost {
    BYI_COST_NONE,    /* moves or views data                    */
    BYI_COST_ELEMENT, /* one per output element                 */
    BYI_COST_INPUT,   /* one per element of the first operand   */
    BYI_COST_WINDOW,  /* pooling: window size per output        */
    BYI_COST_CONV,    /* 2 per multiply-add                     */
    BYI_COST_CONV_TRANSPOSE,
    BYI_COST_MATMUL,
    BYI_COST_ATTENTION, /* both matrix products                 */
    BYI_COST_RECURRENT  /* both matrix products of every step */
};

/* Bits of struct byi_op's traits: see ops.def. */
enum byi_op_trait {
    BYI_TRAIT_COMMUTES = 1,
    BYI_TRAIT_VIEW = 2,
    BYI_TRAIT_RANDOM = 4,
    BYI_TRAIT_LIST = 8,
    BYI_TRAIT_FOLDABLE = 16,
    BYI_TRAIT_DISCONTINUOUS = 32,
    BYI_TRAIT_WIDENS = 64,
    BYI_TRAIT_HIDES_NAN = 128,
    BYI_TRAIT_NARROWS = 256,
    BYI_TRAIT_FOLLOWS = 512
};

/* An attribute's declaration; `default_text` is its default as text, such as
 * "[1, 1]", "0.01", "true" or "\"constant\"", or NULL if the attribute is
 * required. */
struct byi_attr_def {
    const char *name;
    enum byi_attr_kind kind;
    const char *default_text;
};

struct byi_infer;
typedef enum byoc_status (*byi_rule_fn)(struct byi_infer *t);

/* A row of the operator table; ops.def explains the columns. */
struct byi_op {
    enum byi_op_id id;
    const char *name;
    uint16_t min_in, max_in; /* operands; trailing ones are optional */
    uint16_t n_out; /* 1: a tensor; else a tuple; 0: the rule decides */
    enum byi_op_kind kind;
    enum byi_op_cost cost;
    enum byi_op_layout layout;
    /* of operand 0, a bit for each dtype; 0: the rule checks them */
    uint32_t types;
    uint32_t values;  /* operands whose value the rule reads, as bits */
    uint32_t traits;  /* enum byi_op_trait */
    uint16_t ulps[2]; /* error bound: for 32 and 64 bits, for 16 */
    const struct byi_attr_def *attrs;
    uint32_t n_attrs;
    byi_rule_fn rule;
    const char *doc;
};

/* The row of `id`. */
const struct byi_op *byi_op(enum byi_op_id id);
/* The row whose name is name[0..n-1], or NULL. Threads: safe. */
const struct byi_op *byi_op_of_name(const char *name, size_t n);
/* The declaration of attribute `name` of `op`, or NULL. */
const struct byi_attr_def *byi_op_attr(const struct byi_op *op,
                                       const char *name);
/* attrs.c: the names of the operator's attributes, "a, b", or "no attributes",
 * for messages; cut to fit. Returns buf. */
const char *byi_op_attrs_text(char *buf, size_t n, const struct byi_op *op);
/* Whether the operator has the trait. */
bool byi_op_has(enum byi_op_id id, enum byi_op_trait trait);
/* Whether its type rule reads the value of that operand. */
bool byi_op_reads_value(enum byi_op_id id, uint32_t operand);
/* Whether the type rule reads an operand whose value is unknown (value[i] is
 * NULL). Then it must run again once the value is known, even if the result's
 * type does not depend on it. The rule also checks the value. */
bool byi_op_reads_unknown(enum byi_op_id id, uint32_t n,
                          const struct byi_tensor *const *value);

/* attrs.c: complete `list` (in any order, defaults may be missing) to the
 * attributes of `op`, in the arena. Errors: BYOC_EINVAL, an attribute is
 * unknown, missing, given twice, or has another kind (an int is accepted for a
 * float, a list of ints for a list of floats). */
enum byoc_status byi_attrs_make(struct byi_arena *arena,
                                const struct byi_op *op,
                                const struct byi_attr *list, uint32_t n,
                                const struct byi_attrs **attrs,
                                struct byoc_error *err);

/* flops.c: floating-point operations of a call; 0 if a shape is unknown. */
double byi_op_flops(const struct byi_op *op, const struct byi_attrs *attrs,
                    const struct byi_type *const *in,
                    const struct byi_type *out);

/* --- recurrent.c: attributes of nn.rnn, nn.gru and nn.lstm --------------- */

/* An activation function of a gate. */
struct byi_gate_fn {
    const char *name;  /* its name in `activations` */
    enum byi_op_id op; /* computes it; NONE: alpha x + beta */
    /* how many of alpha and beta it has; tanh with both computes
     * alpha tanh(beta x) */
    uint32_t n_params;
    double alpha, beta;
};

enum { BYI_MAX_GATE_FNS = 3 };
/* What the attributes of a recurrent operator say. */
struct byi_recurrent {
    uint32_t gates;      /* 1, 3, 4: rows of weights per hidden unit */
    uint32_t directions; /* 1 or 2 */
    bool reverse[2];     /* of each direction: from the end to the beginning */
    uint32_t n_fns;      /* 1, 2, 3: of each direction */
    struct byi_gate_fn fn[2][BYI_MAX_GATE_FNS];
    bool has_default_fns; /* the functions are the defaults, listed or not */
};

/* Read the attributes of one of these operators. Errors: BYOC_ETYPE, with the
 * attribute, its value and the allowed values. */
enum byoc_status byi_recurrent_read(const struct byi_op *op,
                                    const struct byi_attrs *attrs,
                                    struct byi_recurrent *r,
                                    struct byoc_error *err);
/* Whether an operand stands for an omitted one: its shape is (0,). */
bool byi_is_absent(uint32_t rank, const int64_t *dims);

/* --- rules_*.c: type rules ---------------------------------------------- */

/* The input of a type rule: the types of the operands and the values that are
 * known (at compile time: constants; at run time: all). The same rule is the
 * shape function at run time. Its result is `out`. */
struct byi_infer {
    struct byi_arena *arena;
    const struct byi_op *op;
    const struct byi_attrs *attrs;
    uint32_t n_in;
    /* tensor types, except for operators on lists */
    const struct byi_type *const *in;
    const struct byi_tensor *const *value; /* value[i]: NULL if unknown */
    /* in a run: a dim that only the kernel determines is an upper bound, which
     * the kernel lowers; otherwise it is a new symbol */
    bool bounds;
    /* a new symbol, as a dim; NULL: always the first one, for callers that only
     * test whether a dim is unknown */
    int64_t (*new_symbol)(void *ctx);
    void *symbol_ctx;
    struct byoc_error *err;
    const struct byi_type *out;
};

/* Set *out to the result type of a call, which is in t->arena or is an
 * operand's type. Checks the number, kinds and sizes of the operands, then runs
 * the rule. A data-dependent dim becomes a new symbol. Errors: BYOC_ETYPE
 * with "OP: found, expected". */
enum byoc_status byi_infer_type(struct byi_infer *t,
                                const struct byi_type **out);

/* Whether a kernel reads the shapes of its operands, but no elements. */
bool byi_reads_only_shapes(const struct byi_op *op);

enum { BYI_MAX_KNOWN = 8192 }; /* elements of a value computed in advance */
/* Whether the value of a call depends only on sizes, so that it can be computed
 * once the inputs' sizes are known. Then every operand's value is known, or the
 * operator reads only shapes, and the result is small. `result` is the type of
 * one result, without symbols; value[i] is NULL if operand i is unknown. Both
 * partitioning and the runtime use this function. */
bool byi_follows_from_sizes(const struct byi_op *op, uint32_t n_in,
                            const struct byi_tensor *const *value,
                            const struct byi_type *result);

/* --- json_attrs.c --------------------------------------------------------- */

/* Read the attributes {"strides": [1, 1], ...} of `op`, and complete them.
 * Floats that JSON cannot represent are the strings "inf", "-inf", "nan". The
 * result is in the arena. Errors: BYOC_EPARSE, BYOC_ELIMIT (a list is too
 * long), and those of byi_attrs_make. */
enum byoc_status byi_attrs_from_json(const struct byi_json *object,
                                     struct byi_arena *arena,
                                     const struct byi_op *op,
                                     const struct byi_attrs **attrs,
                                     struct byoc_error *err);
/* The inverse: every attribute, in the order of the table. */
struct cJSON *byi_attrs_to_json(struct byi_arena *arena,
                                const struct byi_attrs *attrs);

#endif
