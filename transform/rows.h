/* SPDX-License-Identifier: Apache-2.0 */
/* transform/rows.h: rewriting rules as rows: a pattern and its replacement.
 *
 *     BYI_ROW("log(add(exp(%x), const %one))", "nn.softplus(%x)")
 *
 * Patterns are those of docs/patterns.md. A constant that is named one, two,
 * half, minus_half or zero, or one of these with a digit, has this value in
 * every element. A replacement is the result of a template (core/ir/template.h)
 * with the pattern's names, those after `with` included.
 */
#ifndef BYI_ROWS_H
#define BYI_ROWS_H

#include "patterns/patterns.h"
#include "rewrite.h"

/* A match of a row. Valid during the call that gets it. */
struct byi_row_match {
    struct byi_rewrite *rw;
    const struct byi_match *match;
    struct byi_attr attr; /* given to the replacement; no name: none */
};

struct byi_row {
    const char *pattern, *to;
    /* NULL: always. It may set the match's attribute. */
    bool (*when)(struct byi_row_match *match);
    /* Not NULL: emits the replacement, and `to` is NULL; BYI_NO_ID: none. */
    byi_id (*emit)(struct byi_row_match *match);
    /* The nodes inside the match may have other readers, for which they stay.
     */
    bool shared;
};

#define BYI_ROW(pattern, to)                                                   \
    {                                                                          \
        pattern, to, NULL, NULL, false                                         \
    }
#define BYI_ROW_IF(pattern, to, when)                                          \
    {                                                                          \
        pattern, to, when, NULL, false                                         \
    }
#define BYI_ROW_SHARED(pattern, to)                                            \
    {                                                                          \
        pattern, to, NULL, NULL, true                                          \
    }
#define BYI_ROW_EMIT(pattern, emit)                                            \
    {                                                                          \
        pattern, NULL, NULL, emit, false                                       \
    }

/* byi_rewrite with rows: the rule {BYI_OP_NONE, byi_rows_apply} among `rules`
 * tries them in order. The rules have no state. */
enum byoc_status byi_rewrite_rows(struct byi_module *m, uint32_t func,
                                  const struct byi_rule *rules,
                                  uint32_t n_rules, const struct byi_row *rows,
                                  uint32_t n_rows, struct byi_pass_context *ctx,
                                  struct byi_arena *scratch,
                                  struct byoc_error *err);
byi_id byi_rows_apply(struct byi_rewrite *rw, byi_id at);

/* The value of that name; BYI_NO_ID: the match has none. */
byi_id byi_row_value(const struct byi_row_match *match, const char *name);

#endif
