/* SPDX-License-Identifier: Apache-2.0 */
/* fork.h: locks at a fork. The child process inherits only the thread that
 * forks: a lock that another thread held would stay locked for ever.
 */
#ifndef BYI_FORK_H
#define BYI_FORK_H

#include <pthread.h>

/* Register these functions for every fork of the process. */
#define BYI_AT_FORK(before, after, in_child)                                   \
    static __attribute__((constructor)) void watch_forks(void)                 \
    {                                                                          \
        pthread_atfork(before, after, in_child);                               \
    }

/* Hold the mutex during every fork; then the child calls in_child, which makes
 * it usable there. */
#define BYI_HOLD_AT_FORK(mutex, in_child)                                      \
    static void before_fork(void)                                              \
    {                                                                          \
        pthread_mutex_lock(&(mutex));                                          \
    }                                                                          \
    static void after_fork(void)                                               \
    {                                                                          \
        pthread_mutex_unlock(&(mutex));                                        \
    }                                                                          \
    BYI_AT_FORK(before_fork, after_fork, in_child)

#endif
