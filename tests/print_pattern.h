/* SPDX-License-Identifier: Apache-2.0 */
/* tests/print_pattern.h: prints compiled patterns, to compare them. */
#ifndef PRINT_PATTERN_H
#define PRINT_PATTERN_H

#include "patterns/patterns.h"

/* Print the row as text that compiles to the same nodes. Equal nodes give the
 * same text. */
void print_pattern(const struct byi_pattern *p, struct byi_text *out);

#endif
