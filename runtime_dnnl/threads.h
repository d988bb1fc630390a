/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/threads.h: oneDNN's parallel regions on the host's threads. */
#ifndef BYI_DN_THREADS_H
#define BYI_DN_THREADS_H

#include <byoc/backend.h>

#include "core/base/openmp.h"

/* State between enter and leave, on the caller's stack. */
struct byi_dn_threads {
    struct byi_omp_host host;
    const struct byi_omp_host *before;
    uint64_t asked;
    int gomp; /* libgomp's previous count; 0: unchanged */
};

/* Run the calling thread's oneDNN calls on host->threads() threads. */
void byi_dn_threads_enter(struct byi_dn_threads *threads,
                          const struct byoc_host *host);
void byi_dn_threads_leave(struct byi_dn_threads *threads);

#endif
