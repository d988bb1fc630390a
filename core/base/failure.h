/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h: failures of backends (struct byoc_fail), as the hosts of plug-ins
 * create and read them. Threads: any. */
#ifndef BYI_FAILURE_H
#define BYI_FAILURE_H

#include <byoc/backend.h>

/* A failure with a code of enum byoc_fail_code and a copy of the text, cut to
 * 4096 bytes. Never NULL: if the allocation fails, returns a static failure
 * with the code RESOURCE. The caller frees it with byi_failure_free. */
struct byoc_fail *byi_failure_new(uint32_t code, const char *text);
/* The text, which is valid until the failure is freed. */
const char *byi_failure_text(const struct byoc_fail *fail);
uint32_t byi_failure_code(const struct byoc_fail *fail);
/* Free the failure, which may be NULL. */
void byi_failure_free(struct byoc_fail *fail);

#endif
