/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.h: the pattern language and its matcher.
 *
 * A row of a table is text in the notation of docs/patterns.md:
 *
 *     nn.conv2d(%src, const %weights) [nn.relu(^) | add(^, %other)]*
 *     concatenate(%src...)
 *
 * Operands have names, never positions. Rows are tried in the order of the
 * table.
 */
#ifndef BYI_PATTERNS_H
#define BYI_PATTERNS_H

#include <byoc/backend.h>

#include "core/ir/ir.h"

enum {
    BYI_PATTERN_MAX_ARGS = 8,    /* operands written out in one operator */
    BYI_PATTERN_MAX_NODES = 256, /* of one row */
    BYI_PATTERN_MAX_REPEAT = 32, /* repetitions of a step */
    BYI_PATTERN_MAX_IFS = 8,     /* nested `if`s, as in regions */
    BYI_MATCH_MAX_OPS = 64,      /* operators of one match */
    BYI_MATCH_MAX_OPERANDS = 64,
    BYI_MATCH_MAX_BRANCHES = 32, /* opened while matching */
    BYI_MATCH_MAX_TEXT = 1024    /* bytes of all texts for one predicate */
};

/* What a node of a pattern matches, in the pattern's notation. */
enum byi_pat_kind {
    BYI_PAT_ANY,   /* %name                                      */
    BYI_PAT_CONST, /* const %name, const 0.5                     */
    BYI_PAT_OP,    /* a|b(args){attr=value}                      */
    BYI_PAT_GROUP, /* add(p, q, - r): grouped in any way         */
    BYI_PAT_TUPLE, /* (p, q)                                     */
    BYI_PAT_GET,   /* p.0                                        */
    BYI_PAT_IF,    /* if (p) { q } else { r }                    */
    BYI_PAT_ALT,   /* (p | q)                                    */
    BYI_PAT_CHAIN, /* base [step]?  base [step]*  base [step]~   */
    BYI_PAT_HOLE,  /* ^: the value before the step */
    BYI_PAT_TYPE,  /* p: float32 */
    /* the same value at every place: %name of a `with`, the base of a '~'
     * step */
    BYI_PAT_ONCE
};

/* A comparison with n values: EQ holds if it equals one of them, NE if it
 * equals none. */
enum byi_cmp { BYI_EQ, BYI_NE, BYI_LT, BYI_LE, BYI_GT, BYI_GE, BYI_N_CMPS };
extern const char *const byi_cmp_text[BYI_N_CMPS]; /* "=", "!=", "<", ... */

/* A test of an attribute. A list is compared as a whole with lists, in which
 * BYI_PAT_ANY_INT matches every item, and item by item with single values. */
#define BYI_PAT_ANY_INT INT64_MIN
struct byi_pat_test {
    const char *name;
    enum byi_cmp cmp;
    uint32_t n;
    const struct byi_attr *values; /* their names are NULL */
};

/* A test of a dim, a rank or a number of elements: it compares with `value` as
 * `cmp` says. any: no test. */
struct byi_pat_dim {
    bool any;
    enum byi_cmp cmp;
    int64_t value;
};

/* A test of a tensor's type. Only `_` matches a symbolic dim. */
struct byi_pat_type {
    uint32_t n_dtypes; /* 0: any */
    const enum byoc_dtype *dtypes;
    bool has_dims, has_rest; /* has_rest: "..." comes before dims[rest] */
    uint32_t n_dims, rest;
    const struct byi_pat_dim *dims;
    struct byi_pat_dim rank, size;
};

/* A node of a pattern; children are indices into the row's nodes. Equal nodes
 * are shared, so equal parts of a pattern have the same index. */
struct byi_pat {
    enum byi_pat_kind kind;
    /* ANY, CONST, ONCE: index of the name; BYI_NO_NAME for an unnamed ONCE */
    uint32_t name;
    uint32_t n_ops; /* OP, GROUP: the operators that match */
    const enum byi_op_id *ops;
    /* OP, GROUP, TUPLE: operands; ALT: choices; CHAIN: base, step; GET, TYPE,
     * ONCE: the operand; IF: condition, then, else */
    uint32_t n_args;
    const uint32_t *args;
    /* GROUP: a bit for each operand that is subtracted or divided by */
    uint32_t inverse;
    uint32_t index; /* GET: the field */
    /* OP: "%rest..." matches any further operands, named rest0, rest1, ... */
    bool has_rest;
    uint32_t rest;     /* index of the name */
    uint32_t min, max; /* CHAIN: number of repetitions of the step */
    bool forks;        /* CHAIN: '~', along every path from the base */
    uint32_t n_tests;  /* OP: tests of attributes */
    const struct byi_pat_test *tests;
    bool has_value; /* CONST: one element, `value` */
    double value;
    const struct byi_pat_type *type; /* TYPE */
};
#define BYI_NO_NAME UINT32_MAX
#define BYI_CONST_NAME "const" /* the name of constants such as `const 0.5` */

/* Kinds of roots: the id of an operator, or one of these. byi_root_of returns
 * the kind of a graph's node, BYI_ROOT_NONE if it cannot be a root. */
enum { BYI_ROOT_TUPLE = BYI_N_OPS, BYI_ROOT_IF, BYI_ROOT_NONE, BYI_N_ROOTS };
uint32_t byi_root_of(const struct byi_node *node);

/* A compiled row. */
struct byi_pattern {
    const struct byoc_pattern *row;
    uint32_t n_nodes, root;
    const struct byi_pat *nodes;
    uint32_t n_names;
    const char *const *names;
    /* names that can have several values, which are numbered */
    const bool *repeated;
    /* index of BYI_CONST_NAME; BYI_NO_NAME: the row has no such constant */
    uint32_t nameless;
    uint32_t n_defs; /* the ONCE nodes that `with` defines, in order */
    const uint32_t *defs;
    bool roots[BYI_N_ROOTS]; /* kinds of nodes at which the row can match */
};

/* The rows of one backend. */
struct byi_pattern_table {
    struct byi_arena *arena; /* NULL: the caller owns the arena */
    uint32_t n;
    const struct byi_pattern *at;
    bool inside[BYI_N_ROOTS]; /* kinds of nodes that occur in some row */
};

/* --- parse.c ------------------------------------------------------------ */

/* Compile rows[0..n-1], which must outlive *table. On failure *table is NULL.
 * Errors: BYOC_EPARSE and BYOC_EINVAL; they name the row, counted from 0, and
 * the column: "row 3 (dnnl.conv): column 14: unknown operator 'nn.conv4d'". */
enum byoc_status byi_patterns_compile(const struct byoc_pattern *rows,
                                      uint32_t n,
                                      struct byi_pattern_table **table,
                                      struct byoc_error *err);
/* The same in an arena of the caller, who must not call byi_patterns_free. */
enum byoc_status byi_patterns_compile_in(struct byi_arena *arena,
                                         const struct byoc_pattern *rows,
                                         uint32_t n,
                                         struct byi_pattern_table **table,
                                         struct byoc_error *err);
/* Free the table and set *table to NULL; *table may be NULL. */
void byi_patterns_free(struct byi_pattern_table **table);
/* Whether both are the same test of a type. */
bool byi_pat_type_equal(const struct byi_pat_type *a,
                        const struct byi_pat_type *b);

/* --- lint.c --------------------------------------------------------------- */

/* Check n rows, and set findings[0..n-1]: findings[i] is an error in rows[i],
 * in the arena, or NULL. */
void byi_patterns_lint(const struct byoc_pattern *rows, uint32_t n,
                       struct byi_arena *arena, const char **findings);

/* --- match.c ------------------------------------------------------------ */

/* An operand of a match: its full name ("other1" in a repeated step) and the
 * value bound to it. */
struct byi_bound_operand {
    const char *name;
    byi_id value;
};

/* Memory for the texts that match_say() and match_show() return to a
 * predicate. They are valid as long as the match. */
struct byi_match_texts {
    size_t n;
    char at[BYI_MATCH_MAX_TEXT];
};

/* An operator that `with` names. */
struct byi_named_operator {
    const char *name;
    byi_id value;
};

/* An opened branch of an `if`. Its nodes are values of the match, like those of
 * the function, from `first` on. */
struct byi_branch {
    uint32_t func; /* in the module */
    const struct byi_func *f;
    byi_id first; /* the value of node 0 of f */
    byi_id owner; /* the `if`, a value                      */
    byi_id fn;    /* the function literal, a value          */
    uint32_t arg; /* of the `if`: 1 then, 2 else            */
};

/* A match. Its operators (and tuples and `if`s) are ordered so that operands
 * come before their readers, and the branches of an `if` before the `if`. The
 * root is the last. Its operands are in the order of the pattern's text,
 * repetitions from the inside out.
 *
 * A value is a node of f or of a branch: see byi_match_node. A capture of a
 * branch counts as the outer value. */
struct byi_match {
    const struct byi_module *m;
    const struct byi_func *f;
    uint32_t n_branches;
    struct byi_branch branches[BYI_MATCH_MAX_BRANCHES];
    const struct byi_pattern *pattern;
    byi_id root;
    uint32_t n_ops, n_bound, n_named;
    byi_id ops[BYI_MATCH_MAX_OPS];
    struct byi_bound_operand bound[BYI_MATCH_MAX_OPERANDS]; /* operands */
    char names[BYI_MATCH_MAX_OPERANDS][24]; /* memory for their names */
    struct byi_named_operator named[BYI_MATCH_MAX_OPS];
    struct byi_match_texts *texts;
};

/* Called for every way in which the pattern matches; true accepts it. */
typedef bool (*byi_match_fn)(const struct byi_match *match, void *ctx);

/* Find the first match of `pattern` at node `root` that `take` accepts. Returns
 * whether there is one; *tried counts the matches found. `distances` is from
 * byi_match_distances for this function and pattern, or NULL: it only prunes
 * the search. *budget bounds the goals that all searches for one pattern in one
 * function may solve: start with byi_match_budget(f); NULL: only this search is
 * bounded. A search that exceeds its bound is repeated once with every chain's
 * base only. */
bool byi_match(const struct byi_module *m, const struct byi_func *f,
               const struct byi_pattern *pattern, byi_id root,
               const uint32_t *distances, uint64_t *budget, byi_match_fn take,
               void *ctx, uint32_t *tried);
/* The goals that all searches for one pattern in f may solve. */
uint64_t byi_match_budget(const struct byi_func *f);

/* --- match_distances.c --------------------------------------------------- */

/* Returns, in `arena`, an array with an entry for each node of `f`: the least
 * number of steps of the pattern's chain that lead from the node to the chain's
 * base, or BYI_NO_DISTANCE if there is no path. Returns NULL if the pattern's
 * root is not a chain, or the chain's base or one of its steps
 * is not a single operator, or its step has a '~'. */
#define BYI_NO_DISTANCE UINT32_MAX
const uint32_t *byi_match_distances(const struct byi_func *f,
                                    const struct byi_pattern *pattern,
                                    struct byi_arena *arena);

/* --- match_fits.c -------------------------------------------------------- */

/* Whether the type passes the test. */
bool byi_match_type_fits(const struct byi_pat_type *test,
                         const struct byi_type *type);
/* Whether the node calls an operator of the pattern, with as many operands and
 * with attributes that pass its tests. */
bool byi_match_op_fits(const struct byi_pat *pat, const struct byi_node *node);
/* Whether the node, a constant, has one element, which differs from `expected`
 * by at most 1e-4 of it (float16: 1e-3, bfloat16: 8e-3). */
bool byi_match_value_fits(const struct byi_module *m,
                          const struct byi_node *node, double expected);

/* --- match_value.c ------------------------------------------------------- */

/* The node of this value. */
const struct byi_node *byi_match_node(const struct byi_match *match,
                                      byi_id value);
/* The branch that the value is in; NULL: it is in match->f. */
const struct byi_branch *byi_match_branch(const struct byi_match *match,
                                          byi_id value);
/* Operand i of a value, with captures resolved. Operands 1 and 2 of an `if` are
 * the results of its branches, which must be open. */
byi_id byi_match_arg(const struct byi_match *match, byi_id value, uint32_t i);
/* Open both branches of an `if`. Returns false if a branch is not a function
 * literal that passes may change, or if the match has BYI_MATCH_MAX_BRANCHES
 * already. */
bool byi_match_open(struct byi_match *match, byi_id value);
/* The open branch that is operand `arg`, 1 or 2, of an `if`, or NULL. */
const struct byi_branch *byi_match_branch_of(const struct byi_match *match,
                                             byi_id owner, uint32_t arg);
/* Whether the two are the same value, or equal constants of two branches. */
bool byi_match_is_same(const struct byi_match *match, byi_id a, byi_id b);
/* Whether a comes before b in the order of struct byi_match. */
bool byi_match_comes_before(const struct byi_match *match, byi_id a, byi_id b);
/* Whether the value is in that branch or one inside it; NULL: in any branch. */
bool byi_match_within(const struct byi_match *match, byi_id value,
                      const struct byi_branch *branch);

/* --- match_host.c -------------------------------------------------------- */

/* Set the match_* members of `host`. The struct byoc_match that backends pass
 * to them is a struct byi_match. */
void byi_match_host(struct byoc_host *host);

#endif
