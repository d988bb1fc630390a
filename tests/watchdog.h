/* SPDX-License-Identifier: Apache-2.0 */
/* tests/watchdog.h: ends a test that hangs, however busy the machine is. */
#ifndef BYI_TESTS_WATCHDOG_H
#define BYI_TESTS_WATCHDOG_H

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Let this process use `seconds` of CPU time from now on; then SIGXCPU ends it.
 * SIGALRM ends a process that sleeps, after thirty times as long. A further
 * call sets new limits; a forked process must call this itself. */
static inline void watch_process(unsigned seconds)
{
    struct rlimit limit;
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = (rlim_t)used.tv_sec + seconds + 1;
    setrlimit(RLIMIT_CPU, &limit);
    alarm(30 * seconds);
}

#endif
