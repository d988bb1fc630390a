/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the entry of the command `byoc VERB ...`: calls the verb. */
#include "cli.h"

#include "core/base/guard.h"

#include <malloc.h>
#include <string.h>

static const struct byi_verb *const verbs[] = {
    &byi_verb_check,    &byi_verb_partition,
    &byi_verb_compile,  &byi_verb_inspect,
    &byi_verb_run,      &byi_verb_bench,
    &byi_verb_compare,  &byi_verb_verify,
    &byi_verb_backends, &byi_verb_quantize,
    &byi_verb_report,   &byi_verb_opt,
    &byi_verb_conform,  &byi_verb_extract,
    &byi_verb_help,     NULL,
};

static int run_verb(const struct byi_verb *verb, int argc, char **argv)
{
    struct byi_guard guard;
    if (byi_guard_enter(&guard)) {
        byi_progress_end();
        fprintf(stderr,
                "byoc %s: out of memory: %zu bytes could not be "
                "allocated\n",
                verb->name, guard.bytes);
        return BYI_EXIT_USAGE;
    }
    byi_progress_begin(verb->name);
    const int code = verb->run(argc, argv);
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
    const struct byi_verb *verb = byi_find_verb(argv[1]);
    return verb ? run_verb(verb, argc - 1, argv + 1) : BYI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    /* by default, glibc raises this threshold to the largest size freed so far;
     * then the growing texts and vectors of a compile fragment the heap */
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    byi_verbs = verbs;
    byi_terminal_open();
    byi_interrupt_watch();
    return byi_terminal_close(run(argc, argv));
}
