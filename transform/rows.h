/* SPDX-License-Identifier: Apache-2.0 */
/* transform/rows.h: rewriting rules as rows: a pattern and its replacement.
 *
 *     BYI_ROW("log(add(exp(%x), const %one))", "nn.softplus(%x)")
 *
 * docs/patterns.md describes patterns. A constant that is named one, two, half,
 * minus_half or zero, or one of these with digits, has this value in every
 * element. A replacement is the result of a template (core/ir/template.h) with
 * the pattern's names, including the names after `with`. again(...) is the root
 * with other operands. A row whose replacement has another type than the root
 * does not apply. Rows are tried in order, and again on a replacement.
 */
#ifndef BYI_PATTERN_ROWS_H
#define BYI_PATTERN_ROWS_H

#include "patterns/patterns.h"
#include "rewrite.h"

/* A match of a row, and the values and attributes that the row's condition
 * binds for the replacement. Valid during the call that receives it. */
struct byi_row_match {
    struct byi_rewrite *rw;
    const struct byi_match *match;
    byi_id root;
    struct byi_attr attrs[4];
    struct byi_bound_operand values[4];
    uint32_t n_attrs, n_values;
};

/* A rewriting rule. */
struct byi_row {
    const char *pattern;                       /* NULL: the row is a rule */
    const char *to;                            /* the replacement */
    bool (*when)(struct byi_row_match *match); /* NULL: always */
    /* The nodes inside the match may have other readers; they are then kept.
     */
    bool shared;
    /* If there is no pattern: a rule (rewrite.h) for nodes of this kind, an
     * operator, BYI_ROOT_TUPLE or BYI_ROOT_IF. */
    uint32_t root;
    byi_id (*apply)(struct byi_rewrite *rw, byi_id at);
};

#define BYI_ROW(from, result)                                                  \
    {                                                                          \
        .pattern = from, .to = result                                          \
    }
#define BYI_ROW_IF(from, result, condition)                                    \
    {                                                                          \
        .pattern = from, .to = result, .when = condition                       \
    }
#define BYI_ROW_SHARED(from, result)                                           \
    {                                                                          \
        .pattern = from, .to = result, .shared = true                          \
    }
#define BYI_ROW_SHARED_IF(from, result, condition)                             \
    {                                                                          \
        .pattern = from, .to = result, .when = condition, .shared = true       \
    }
#define BYI_ROW_RULE(kind, rule)                                               \
    {                                                                          \
        .root = kind, .apply = rule                                            \
    }

/* A pass that consists of rows has this table as `data`, and the functions
 * below as `prepare` and `run_func`. The first run of the pass in a process
 * compiles the rows, and stores them at *compiled for all later runs, in any
 * thread. */
struct byi_compiled_rows;
struct byi_row_table {
    const struct byi_row *rows;
    uint32_t n;
    const struct byi_compiled_rows *_Atomic *compiled;
};
/* Set *prepared to the compiled rows, which live until the process ends.
 * Errors: a pattern does not compile. */
enum byoc_status byi_rows_prepare(const struct byi_pass *pass,
                                  const void **prepared,
                                  struct byoc_error *err);
/* Rewrite function `func` with the rows in ctx->prepared. On an error the
 * function is unchanged. */
enum byoc_status byi_rows_run(struct byi_module *m, uint32_t func,
                              struct byi_pass_context *ctx,
                              struct byi_arena *scratch,
                              struct byoc_error *err);

/* Define byi_pass_ID, the pass `name_` of an optimisation level with these
 * rows.
 */
#define BYI_ROWS_PASS(id, name_, level, summary_, rows)                        \
    static const struct byi_compiled_rows *_Atomic compiled;                   \
    static const struct byi_row_table table = {rows, BYI_COUNT(rows),          \
                                               &compiled};                     \
    const struct byi_pass byi_pass_##id = {.name = (name_),                    \
                                           .summary = (summary_),              \
                                           .opt_level = (level),               \
                                           .data = &table,                     \
                                           .prepare = byi_rows_prepare,        \
                                           .run_func = byi_rows_run};

/* --- for conditions ------------------------------------------------------- */

/* Returns the value that the pattern binds to that name, or BYI_NO_ID if it
 * binds none. */
byi_id byi_row_value(const struct byi_row_match *match, const char *name);
/* Returns the node bound to that name, which must be bound. Valid until the
 * next emission. */
const struct byi_node *byi_row_node(const struct byi_row_match *match,
                                    const char *name);
/* Whether the root is a tensor of floats. */
bool byi_row_is_of_floats(struct byi_row_match *match);
/* Bind a name of the replacement to a value or an attribute, at most 4 of each.
 * The name may be new or the pattern's, and must be valid as long as the match.
 * byi_row_bind_ints copies `values`; the data of `attr` is borrowed as the name
 * is. Return true, or false if the value is BYI_NO_ID. */
bool byi_row_bind(struct byi_row_match *match, const char *name, byi_id value);
bool byi_row_bind_attr(struct byi_row_match *match, struct byi_attr attr);
bool byi_row_bind_int(struct byi_row_match *match, const char *name, int64_t i);
bool byi_row_bind_float(struct byi_row_match *match, const char *name,
                        double f);
bool byi_row_bind_ints(struct byi_row_match *match, const char *name,
                       const int64_t *values, uint32_t n);

#endif
