/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h: checks a document against its JSON Schema: the part of the 2020-12
 * dialect that docs/ uses. An unknown keyword is a failure, so that no rule is
 * skipped.
 */
#ifndef BYI_TEST_SCHEMA_H
#define BYI_TEST_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/* Whether `value` fits the schema; if not, `why`, of n bytes, gets the path and
 * the rule. */
bool schema_fits(const struct cJSON *schema, const struct cJSON *value,
                 char *why, size_t n);
/* Parse a document of docs/, which the caller frees. NULL if it cannot be read,
 * or is not JSON. */
struct cJSON *schema_read(const char *name);

#endif
