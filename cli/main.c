/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: main() of byoc: finds the command of `byoc COMMAND ...` and calls it.
 */
#include "cli.h"

#include "core/base/guard.h"
#include "core/base/temp.h"
#include "runtime/internal.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADDRESS(name) &byi_command_##name,
static const struct byi_command *const commands[] = {BYI_COMMANDS(ADDRESS)
                                                         NULL};

/* The name of the command that runs, or NULL, and the process that runs it. A
 * forked child of this process may exit without a report. */
static const char *running_command;
static pid_t running_process;

/* A library, such as a plug-in, calls a function that ends the process. It
 * would otherwise end byoc without a message, possibly with code 0. */
static void report_end(const char *function)
{
    const char *plugin, *step;
    if (!running_command || running_process != getpid())
        return;
    byi_progress_end();
    const bool in_step = byi_plugin_step(&plugin, &step) != 0;
    fprintf(stderr,
            "byoc %s: found a call of %s by a library%s%s%s%s, expected "
            "the command to end first; `byoc conform` tests plug-ins\n",
            running_command, function, in_step ? ", in " : "", step,
            in_step ? " of the plug-in " : "", plugin);
    running_command = NULL;
    fflush(NULL);
    byi_temp_clear();
    byoc_internal_temp_clear();
    _exit(BYI_EXIT_BACKEND);
}

static void report_exit(void)
{
    report_end("exit()");
}

static void report_quick_exit(void)
{
    report_end("quick_exit()");
}

/* These replace the functions of the C library, also for plug-ins. */
__attribute__((visibility("default"))) void _exit(int code)
{
    report_end("_exit()");
    for (;;)
        (void)syscall(SYS_exit_group, code);
}

__attribute__((visibility("default"))) void _Exit(int code)
{
    _exit(code);
}

static int run_command(const struct byi_command *command, int argc, char **argv)
{
    struct byi_guard guard;
    if (byi_guard_enter(&guard)) {
        running_command = NULL;
        byi_progress_end();
        fprintf(stderr,
                "byoc %s: out of memory: %zu bytes could not be allocated\n",
                command->name, guard.bytes);
        return BYI_EXIT_USAGE;
    }
    byi_progress_begin(command->name);
    byi_interrupt_command(command->name);
    running_command = command->name;
    running_process = getpid();
    const int code = command->run(argc, argv);
    running_command = NULL;
    byi_progress_end();
    byi_guard_leave(&guard);
    return code;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        byi_print_usage(stderr);
        return BYI_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        byi_print_usage(stdout);
        return BYI_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("byoc %s\n", byoc_version());
        return BYI_EXIT_OK;
    }
    const struct byi_command *command = byi_find_command(argv[1]);
    return command ? run_command(command, argc - 1, argv + 1) : BYI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    /* by default, glibc raises this threshold to the largest size freed so far;
     * then the growing texts and vectors of a compile fragment the heap */
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    /* The parent process may ignore SIGCHLD, which byoc inherits. Exit statuses
     * of byoc's children, such as the C compiler, would then be lost. */
    signal(SIGCHLD, SIG_DFL);
    byi_commands = commands;
    byi_terminal_open();
    byi_interrupt_watch();
    atexit(report_exit);
    at_quick_exit(report_quick_exit);
    return byi_terminal_close(run(argc, argv));
}
