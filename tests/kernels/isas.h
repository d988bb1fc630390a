/* SPDX-License-Identifier: Apache-2.0 */
/* isas.h: runs tests with the float32 kernels of each instruction set. */
#ifndef BYI_TESTS_ISAS_H
#define BYI_TESTS_ISAS_H

#include <stdlib.h>

#include "kernels/f32.h"

/* Call `body` once for each of the float32 kernels that this machine can run,
 * which are then those of byi_f32_kernels(). */
static inline void with_each_f32_kernels(void (*body)(void))
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    const struct byi_f32_kernels *previous = NULL;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        setenv("BYOC_MAX_ISA", isas[i], 1);
        if (byi_f32_kernels() != previous)
            body();
        previous = byi_f32_kernels();
    }
    unsetenv("BYOC_MAX_ISA");
}

#endif
