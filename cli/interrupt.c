/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c: handles signals that end byoc: ends child processes, such as
 * compilers, and removes temporary files first. */
#include "cli.h"

#include "core/base/temp.h"
#include "runtime/internal.h"

#include <signal.h>

/* Clean up, and let the signal end the process. */
static void end_process(int number)
{
    byi_temp_clear();
    byoc_internal_temp_clear();
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
}

void byi_interrupt_watch(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU};
    struct sigaction before, action = {.sa_handler = end_process};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < BYI_COUNT(numbers); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 &&
            before.sa_handler == SIG_DFL) /* nohup ignores SIGHUP */
            (void)sigaction(numbers[i], &action, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* write() then fails with EFBIG */
}
