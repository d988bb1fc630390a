/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/threads.h: runs oneDNN's parallel regions on the host's threads.
 */
#ifndef BYI_DN_THREADS_H
#define BYI_DN_THREADS_H

#include <byoc/backend.h>

#include "core/base/openmp.h"

/* State between enter and leave, on the caller's stack. */
struct byi_dn_threads {
    struct byi_omp_host host;
    const struct byi_omp_host *previous; /* the host that leave restores */
    uint64_t calls_before; /* byi_omp_max_threads_calls() at enter */
    /* the number of threads that the other OpenMP library had before enter; 0:
     * enter did not change it */
    int other_threads;
};

/* Run the calling thread's oneDNN calls on the host's threads until leave,
 * which restores what enter changed. Pairs may nest. */
void byi_dn_threads_enter(struct byi_dn_threads *threads,
                          const struct byoc_host *host);
void byi_dn_threads_leave(struct byi_dn_threads *threads);

#endif
