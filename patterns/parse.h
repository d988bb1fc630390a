/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h: parts of the parser: attribute tests in braces after an operator,
 * and types after a colon.
 */
#ifndef BYI_PATTERNS_PARSE_H
#define BYI_PATTERNS_PARSE_H

#include "core/ir/lex.h"

#include "patterns.h"

/* Read {name=value, ...} at the current token, if there is one, for an operator
 * that can be any of pat->ops, into pat->tests. Both functions allocate in
 * `arena`. Errors: BYOC_EPARSE, with the column. */
enum byoc_status byi_parse_tests(struct byi_lexer *lex, struct byi_arena *arena,
                                 struct byi_pat *pat, struct byoc_error *err);
/* Read a type after its colon: float32, float32|float16,
 * Tensor[(1, _, ...), rank<=5, float32]. */
enum byoc_status byi_parse_pat_type(struct byi_lexer *lex,
                                    struct byi_arena *arena,
                                    const struct byi_pat_type **type,
                                    struct byoc_error *err);

/* roots.c. Mark the kinds of graph nodes that this node of a pattern can match:
 * sets roots[kind], of BYI_N_ROOTS elements. */
void byi_pat_mark_ops(const struct byi_pat *pat, bool *roots);
/* roots.c. Mark the kinds of graph nodes that can be the root of the pattern
 * from its node `at` on. Returns false if the root can be a bare operand, since
 * the row would then match every node. */
bool byi_pat_mark_roots(const struct byi_pattern *p, uint32_t at, bool *roots);

#endif
