/* SPDX-License-Identifier: Apache-2.0 */
/* patterns/patterns.h: the pattern language and its matcher.
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
    BYI_PATTERN_MAX_REPEAT = 32, /* of a step */
    BYI_PATTERN_MAX_IFS = 8,     /* in each other; as deep as a region's */
    BYI_MATCH_MAX_OPS = 64,      /* operators of one match */
    BYI_MATCH_MAX_OPERANDS = 64,
    BYI_MATCH_MAX_BRANCHES = 32, /* looked into on the way to a match */
    BYI_MATCH_MAX_TEXT = 1024    /* bytes a predicate can say of one match */
};

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
    BYI_PAT_HOLE,  /* ^: what stands before the step             */
    BYI_PAT_TYPE,  /* p: float32                                 */
    BYI_PAT_ONCE   /* the same value wherever it stands: %name of a `with`,
                      what a '~' step starts from                */
};

/* A comparison with one of n values; NE: with none of them. */
enum byi_cmp { BYI_EQ, BYI_NE, BYI_LT, BYI_LE, BYI_GT, BYI_GE, BYI_N_CMPS };
extern const char *const byi_cmp_text[BYI_N_CMPS]; /* "=", "!=", "<", ... */

/* What an attribute must be. A list is compared as a whole with lists, where
 * BYI_PAT_ANY_INT fits every item, and item by item with single values. */
#define BYI_PAT_ANY_INT INT64_MIN
struct byi_pat_test {
    const char *name;
    enum byi_cmp cmp;
    uint32_t n;
    const struct byi_attr *values; /* their names are NULL */
};

/* A dim, a rank or a number of elements: `cmp` to `value`; any: no matter. */
struct byi_pat_dim {
    bool any;
    enum byi_cmp cmp;
    int64_t value;
};

/* What a tensor's type must be. A dim with a symbol fits `_` only. */
struct byi_pat_type {
    uint32_t n_dtypes; /* 0: any */
    const enum byoc_dtype *dtypes;
    bool has_dims, has_rest; /* has_rest: "..." stands before dims[rest] */
    uint32_t n_dims, rest;
    const struct byi_pat_dim *dims;
    struct byi_pat_dim rank, size;
};

/* One node of a pattern; children are indices into the row's nodes. Two nodes
 * that say the same are one, so an index is also what a place of the pattern
 * says. */
struct byi_pat {
    enum byi_pat_kind kind;
    uint32_t name;  /* ANY, CONST, ONCE: index of the name, BYI_NO_NAME
                       for an ONCE without                         */
    uint32_t n_ops; /* OP, GROUP: the operators it may be          */
    const enum byi_op_id *ops;
    uint32_t n_args; /* OP, GROUP, TUPLE: operands; ALT: choices; CHAIN:
                        base, step; GET, TYPE, ONCE: what it is of;
                        IF: condition, then, else                   */
    const uint32_t *args;
    uint32_t inverse;  /* GROUP: a bit for each operand that is taken away
                          or divided by                               */
    uint32_t index;    /* GET: which field                            */
    bool has_rest;     /* OP: any further operands, bound to rest's   */
    uint32_t rest;     /* name: rest0, rest1, ...                     */
    uint32_t min, max; /* CHAIN: how often the step may stand         */
    bool forks;        /* CHAIN: '~', along every way from the base   */
    uint32_t n_tests;  /* OP: what attributes must be                 */
    const struct byi_pat_test *tests;
    bool has_value; /* CONST: one element, `value`                 */
    double value;
    const struct byi_pat_type *type; /* TYPE */
};
#define BYI_NO_NAME UINT32_MAX
#define BYI_CONST_NAME "const" /* of constants that are only a value */

/* What a node of a graph must be to be a root: its operator, or one of these;
 * byi_root_of says which it is. */
enum { BYI_ROOT_TUPLE = BYI_N_OPS, BYI_ROOT_IF, BYI_ROOT_NONE, BYI_N_ROOTS };
uint32_t byi_root_of(const struct byi_node *node);

/* A compiled row. */
struct byi_pattern {
    const struct byoc_pattern *row;
    uint32_t n_nodes, root;
    const struct byi_pat *nodes;
    uint32_t n_names;
    const char *const *names;
    const bool *repeated; /* names that can stand for several values,
                             which are numbered */
    uint32_t nameless;    /* the name of constants without one, or
                             BYI_NO_NAME */
    uint32_t n_defs;      /* the ONCE nodes that `with` defines, in order */
    const uint32_t *defs;
    bool roots[BYI_N_ROOTS];
};

/* The rows of one vendor. */
struct byi_pattern_table {
    struct byi_arena *arena;
    uint32_t n;
    const struct byi_pattern *at;
    bool inside[BYI_N_ROOTS]; /* stands anywhere in a row */
};

/* --- parse.c ------------------------------------------------------------ */

/* Compile rows[0..n-1]. Errors name the row and the column: "row 3
 * (dnnl.conv): column 14: unknown operator 'nn.conv4d'". */
enum byoc_status byi_patterns_compile(const struct byoc_pattern *rows,
                                      uint32_t n,
                                      struct byi_pattern_table **table,
                                      struct byoc_error *err);
void byi_patterns_free(struct byi_pattern_table **table);

/* --- print.c ------------------------------------------------------------ */

/* The row as text that compiles to the same nodes; the same nodes, the same
 * text. */
void byi_pattern_print(const struct byi_pattern *p, struct byi_text *out);
/* One node; the parser's key for what a node says. */
void byi_pat_print(const struct byi_pattern *p, uint32_t at,
                   struct byi_text *out);
void byi_pat_type_print(const struct byi_pat_type *type, struct byi_text *out);

/* --- lint.c --------------------------------------------------------------- */

/* findings[i]: what is wrong with rows[i], in the arena, or NULL. */
void byi_patterns_lint(const struct byoc_pattern *rows, uint32_t n,
                       struct byi_arena *arena, const char **findings);

/* --- match.c ------------------------------------------------------------ */

/* An operand of a match: its full name ("other1" in a repeated step) and the
 * value bound to it. */
struct byi_bound {
    const char *name;
    byi_id value;
};

/* What a predicate said: text that lives as long as the match. */
struct byi_said {
    size_t n;
    char at[BYI_MATCH_MAX_TEXT];
};

/* An operator that `with` gave a name. */
struct byi_named {
    const char *name;
    byi_id value;
};

/* A branch of an `if` that was looked into. Its nodes are values of the match
 * as those of the function are, from `first` on. */
struct byi_branch {
    uint32_t func; /* in the module                          */
    const struct byi_func *f;
    byi_id first; /* the value that node 0 of f is          */
    byi_id home;  /* the `if`, a value                      */
    byi_id fn;    /* the function literal, a value          */
    uint32_t arg; /* of the `if`: 1 then, 2 else            */
};

/* A match. Operators (and tuples, and `if`s) in an order where operands come
 * before their readers, those in the branches of an `if` before the `if`; the
 * root is the last. Operands in the order of the pattern's text, repetitions
 * from the inside out.
 *
 * A value is a node of f, or one in a branch: see byi_match_node. What a branch
 * captures is the value outside. */
struct byi_match {
    const struct byi_module *m;
    const struct byi_func *f;
    uint32_t n_branches;
    struct byi_branch branches[BYI_MATCH_MAX_BRANCHES];
    const struct byi_pattern *pattern;
    byi_id root;
    uint32_t n_ops, n_bound, n_named;
    byi_id ops[BYI_MATCH_MAX_OPS];
    struct byi_bound bound[BYI_MATCH_MAX_OPERANDS];
    char names[BYI_MATCH_MAX_OPERANDS][24];
    struct byi_named named[BYI_MATCH_MAX_OPS];
    struct byi_said *said;
};

/* Asked about every way in which the pattern fits; true takes it. */
typedef bool (*byi_match_fn)(const struct byi_match *match, void *ctx);

/* Find the first way in which `pattern` fits at node `root` that `take`
 * accepts. Returns whether one was taken; *tried counts the ways seen. `reach`
 * is of byi_match_reach for this function and pattern, or NULL: it only makes
 * the search shorter. *steps bounds the searches for one pattern in
 * one function: start with byi_match_steps(f); NULL: only this one is bounded.
 * A search that runs out of steps only looks at chains without steps. */
bool byi_match(const struct byi_module *m, const struct byi_func *f,
               const struct byi_pattern *pattern, byi_id root,
               const uint32_t *reach, uint64_t *steps, byi_match_fn take,
               void *ctx, uint32_t *tried);
uint64_t byi_match_steps(const struct byi_func *f);

/* --- match_reach.c ------------------------------------------------------- */

/* For each node of `f`, at least how many steps of the pattern's chain lead
 * from it to the chain's base; BYI_NEVER where none do. In `arena`; NULL where
 * the pattern is no chain of single operators. */
#define BYI_NEVER UINT32_MAX
const uint32_t *byi_match_reach(const struct byi_func *f,
                                const struct byi_pattern *pattern,
                                struct byi_arena *arena);

/* --- match_value.c ------------------------------------------------------- */

/* The node that is this value; and the branch it is in, NULL: in none. */
const struct byi_node *byi_match_node(const struct byi_match *match,
                                      byi_id value);
const struct byi_branch *byi_match_branch(const struct byi_match *match,
                                          byi_id value);
/* Operand i of a value, which no capture is. Operands 1 and 2 of an `if` are
 * the results of its branches, which must have been opened. */
byi_id byi_match_arg(const struct byi_match *match, byi_id value, uint32_t i);
/* Look into both branches of an `if`; false: one is no literal that stands
 * there, or there are too many. */
bool byi_match_open(struct byi_match *match, byi_id value);
/* What was opened as operand `arg`, 1 or 2, of an `if`; NULL: nothing was. */
const struct byi_branch *byi_match_branch_of(const struct byi_match *match,
                                             byi_id home, uint32_t arg);
/* Are they one value, or one constant that two branches have each? */
bool byi_match_same(const struct byi_match *match, byi_id a, byi_id b);
/* Does a come before b in the order of struct byi_match? */
bool byi_match_before(const struct byi_match *match, byi_id a, byi_id b);
/* Is it in that branch, or in one inside it? NULL: in any. */
bool byi_match_within(const struct byi_match *match, byi_id value,
                      const struct byi_branch *branch);

/* --- match_host.c -------------------------------------------------------- */

/* Fill the match_* members of `host`: struct byoc_match is a byi_match. */
void byi_match_host(struct byoc_host *host);

#endif
