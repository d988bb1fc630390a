/* SPDX-License-Identifier: Apache-2.0 */
/* second_copy.c: a correct plug-in that defines functions of an OpenMP runtime
 * and of oneDNN, like one that links them statically.
 */
#include "bad.h"

BYOC_VISIBLE int omp_get_max_threads(void);
BYOC_VISIBLE const void *dnnl_version(void);

int omp_get_max_threads(void)
{
    return 1;
}

const void *dnnl_version(void)
{
    return NULL;
}

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
