/* patterns/patterns.h: the pattern language and its matcher.
 *
 * A row of a table is text in the notation of docs/patterns.md:
 *
 *     nn.conv2d(%src, const %weights) [nn.relu(^) | add(^, %other)]*
 *     concatenate(%src...)
 *
 * Operands have names, never positions. Rows are tried in the order of the
 * table; all rows are indexed by the operators their root can be.
 */
#ifndef BYI_PATTERNS_H
#define BYI_PATTERNS_H

#include <byoc/backend.h>

#include "core/core.h"

enum {
    BYI_PATTERN_MAX_ARGS = 8,      /* operands written out in one operator */
    BYI_PATTERN_MAX_NODES = 256,   /* of one row */
    BYI_PATTERN_MAX_REPEAT = 32,   /* of a '*' step */
    BYI_MATCH_MAX_OPS = 64,        /* operators of one match */
    BYI_MATCH_MAX_OPERANDS = 64,
    BYI_MATCH_MAX_TEXT = 1024      /* bytes a predicate can say of one match */
};

enum byi_pat_kind {
    BYI_PAT_ANY,   /* %name                                      */
    BYI_PAT_CONST, /* const %name                                */
    BYI_PAT_OP,    /* a|b(args){attr=value}                      */
    BYI_PAT_ALT,   /* (p | q)                                    */
    BYI_PAT_GET,   /* p.0                                        */
    BYI_PAT_CHAIN, /* base [step]?  base [step]*                 */
    BYI_PAT_HOLE   /* ^: what stands before the step             */
};

/* One node of a pattern; children are indices into the row's nodes. */
struct byi_pat {
    enum byi_pat_kind kind;
    uint32_t name;         /* ANY, CONST: index of the operand's name     */
    uint32_t n_ops;        /* OP: the operators it may be                 */
    const enum byi_op_id *ops;
    uint32_t n_args;       /* OP: operands; ALT: choices; CHAIN: base, step;
                              GET: the tuple                              */
    const uint32_t *args;
    uint32_t index;        /* GET: which field                            */
    bool has_rest;         /* OP: any further operands, bound to rest's   */
    uint32_t rest;         /* name: rest0, rest1, ...                     */
    uint32_t min, max;     /* CHAIN: how often the step may stand         */
    uint32_t n_attrs;      /* OP: attributes that must have this value    */
    const struct byi_attr *attrs;
};

/* A compiled row. */
struct byi_pattern {
    const struct byoc_pattern *row;
    uint32_t n_nodes, root;
    const struct byi_pat *nodes;
    uint32_t n_names;
    const char *const *names;
    const bool *repeated;  /* names that stand inside a '*' step */
};

/* The rows of one vendor, and for each operator the rows whose root it can
 * be, in the table's order. */
struct byi_pattern_table {
    struct byi_arena *arena;
    uint32_t n;
    const struct byi_pattern *at;
    uint32_t first[BYI_N_OPS + 1]; /* into by_root */
    const uint32_t *by_root;
    bool inside[BYI_N_OPS];        /* stands anywhere in a row */
};

/* --- parse.c ------------------------------------------------------------ */

/* Compile rows[0..n-1]. Errors name the row and the column: "row 3
 * (dnnl.conv): column 14: unknown operator 'nn.conv4d'". */
enum byoc_status byi_patterns_compile(const struct byoc_pattern *rows,
                                      uint32_t n,
                                      struct byi_pattern_table **table,
                                      struct byoc_error *err);
void byi_patterns_free(struct byi_pattern_table **table);

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

/* A match. Operators ascending, so operands come before their readers; the
 * root is the last. Operands in the order of the pattern's text, repetitions
 * from the inside out. */
struct byi_match {
    const struct byi_module *m;
    const struct byi_func *f;
    const struct byi_pattern *pattern;
    byi_id root;
    uint32_t n_ops, n_bound;
    byi_id ops[BYI_MATCH_MAX_OPS];
    struct byi_bound bound[BYI_MATCH_MAX_OPERANDS];
    char names[BYI_MATCH_MAX_OPERANDS][24];
    struct byi_said *said;
};

/* Asked about every way in which the pattern fits; true takes it. */
typedef bool (*byi_match_fn)(const struct byi_match *match, void *ctx);

/* Find the first way in which `pattern` fits at node `root` that `take`
 * accepts. Returns whether one was taken; *tried counts the ways seen. */
bool byi_match(const struct byi_module *m, const struct byi_func *f,
               const struct byi_pattern *pattern, byi_id root,
               byi_match_fn take, void *ctx, uint32_t *tried);

/* --- match_host.c -------------------------------------------------------- */

/* Fill the match_* members of `host`: struct byoc_match is a byi_match. */
void byi_match_host(struct byoc_host *host);

#endif
