/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/threads.c: runs oneDNN on the host's threads. oneDNN calls
 * OpenMP. The plug-in exports that library's functions (core/base/openmp.c).
 * The libdnnl.so that it loads binds to them before libgomp's, so that parallel
 * regions go to host->parallel_for().
 *
 * If the process loaded libdnnl.so, or an OpenMP library with global
 * visibility, before the plug-in, oneDNN is bound to another OpenMP library.
 * core/base/openmp.c then receives no calls while oneDNN creates primitives. So
 * the number of threads is set in that library, where it is a property of the
 * calling thread. If that library is global, the host's parallel regions run on
 * its threads, too (runtime/backends.c, choose_openmp). */
#include "runtime_dnnl/threads.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

enum { UNKNOWN, OURS, OTHER };
/* the OpenMP library that oneDNN calls, once known */
static _Atomic int bound_to = UNKNOWN;

static void (*set_threads)(int n); /* NULL: no other library */
static int (*max_threads)(void);

/* Runs while the plug-in is being loaded, when the loading code prevents forks.
 * A dlopen at a later time would not be safe, since a child that is forked
 * during it cannot load anything. */
static __attribute__((constructor)) void find_other_openmp(void)
{
    void *gomp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void *max = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (!set && gomp) {
        set = dlsym(gomp, "omp_set_num_threads");
        max = dlsym(gomp, "omp_get_max_threads");
    }
    set_threads = set && max ? (void (*)(int))(uintptr_t)set : NULL;
    max_threads = (int (*)(void))(uintptr_t)max;
}

void byi_dn_threads_enter(struct byi_dn_threads *threads,
                          const struct byoc_host *host)
{
    threads->host = (struct byi_omp_host){host->parallel_for, host->ctx,
                                          host->threads(host->ctx)};
    threads->previous = byi_omp_use(&threads->host);
    threads->calls_before = byi_omp_max_threads_calls();
    threads->other_threads = 0;
    if (atomic_load(&bound_to) == OURS)
        return;
    if (!set_threads)
        return;
    threads->other_threads = max_threads();
    set_threads((int)threads->host.threads);
}

void byi_dn_threads_leave(struct byi_dn_threads *threads)
{
    int unknown = UNKNOWN;
    byi_omp_use(threads->previous);
    if (threads->other_threads)
        set_threads(threads->other_threads);
    if (byi_omp_max_threads_calls() != threads->calls_before)
        atomic_store(&bound_to, OURS);
    else
        atomic_compare_exchange_strong(&bound_to, &unknown, OTHER);
}
