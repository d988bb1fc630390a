/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c: creates, reads and frees failures of backends. */
#include "failure.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

/* A failure, in one block of memory. */
struct byoc_fail {
    uint32_t code; /* enum byoc_fail_code */
    char text[];   /* NUL-terminated */
};

/* Returned when allocating a failure fails. */
static struct {
    uint32_t code;
    char text[sizeof "out of memory"];
} const out_of_memory = {BYOC_FAIL_RESOURCE, "out of memory"};

struct byoc_fail *byi_failure_new(uint32_t code, const char *text)
{
    size_t n = strlen(text);
    n = n < 4096 ? n : 4096;
    struct byoc_fail *fail = byi_alloc(1, sizeof *fail + n + 1);
    if (!fail)
        return (struct byoc_fail *)(uintptr_t)&out_of_memory;
    fail->code = code;
    memcpy(fail->text, text, n);
    return fail;
}

const char *byi_failure_text(const struct byoc_fail *fail)
{
    return fail->text;
}

uint32_t byi_failure_code(const struct byoc_fail *fail)
{
    return fail->code;
}

void byi_failure_free(struct byoc_fail *fail)
{
    if ((const void *)fail != (const void *)&out_of_memory)
        free(fail);
}
