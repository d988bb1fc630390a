/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_check.h: checks a ledger against its documentation, and for
 * consistency. */
#ifndef BYI_TEST_LEDGER_CHECK_H
#define BYI_TEST_LEDGER_CHECK_H

#include <stddef.h>

/* Check that a ledger matches docs/byoc-ledger.schema.json, has each node once
 * and in one place, and adds up. Returns NULL, or what is wrong: a constant, or
 * text in `why`, which has n bytes. */
const char *ledger_check(const char *json, char *why, size_t n);

#endif
