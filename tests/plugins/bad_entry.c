/* SPDX-License-Identifier: Apache-2.0 */
/* bad_entry.c: a shared library that is not a plug-in. */
#include <stdint.h>

__attribute__((visibility("default"))) int32_t answer(void);

int32_t answer(void)
{
    return 42;
}
