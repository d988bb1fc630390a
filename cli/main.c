/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: byoc VERB ...: dispatches to the verbs. */
#include "cli.h"

#include "core/base/guard.h"

#include <malloc.h>
#include <string.h>

static const struct byi_verb *const verbs[] = {
    &byi_verb_check,    &byi_verb_partition, &byi_verb_compile,
    &byi_verb_inspect,  &byi_verb_run,       &byi_verb_bench,
    &byi_verb_compare,  &byi_verb_verify,    &byi_verb_backends,
    &byi_verb_quantize, &byi_verb_report,    &byi_verb_opt,
    &byi_verb_conform,  &byi_verb_extract,
};

static void print_usage(FILE *to)
{
    fprintf(to, "usage: byoc VERB ...\n\n");
    for (size_t i = 0; i < BYI_COUNT(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to,
            "\n`byoc VERB --help` or `byoc help VERB` lists a verb's "
            "options. Exit codes: 0\nsuccess, 1 a negative verdict, 2 usage "
            "or bad input, 3 a backend failed, 4 an\nincompatible "
            "artifact.\n");
}

static int run_verb(const struct byi_verb *verb, int argc, char **argv)
{
    struct byi_guard guard;
    if (byi_guard_enter(&guard)) {
        fprintf(stderr,
                "byoc %s: out of memory: %zu bytes could not be "
                "allocated\n",
                verb->name, guard.bytes);
        return BYI_EXIT_USAGE;
    }
    const int code = verb->run(argc, argv);
    byi_guard_leave(&guard);
    return code;
}

/* The verb of that name; prints an error and returns NULL if there is none. */
static const struct byi_verb *find_verb(const char *name)
{
    const char *names[BYI_COUNT(verbs) + 1] = {"help"};
    for (size_t i = 0; i < BYI_COUNT(verbs); i++) {
        if (strcmp(name, verbs[i]->name) == 0)
            return verbs[i];
        names[i + 1] = verbs[i]->name;
    }
    const char *nearest = byi_nearest(name, names, BYI_COUNT(names));
    fprintf(stderr, "byoc: no verb is called '%s'; ", name);
    if (nearest)
        fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        fprintf(stderr, "`byoc --help` lists them\n");
    return NULL;
}

/* `byoc help`, `byoc help VERB`. */
static int help(int argc, char **argv)
{
    char option[] = "--help";
    if (argc == 2) {
        print_usage(stdout);
        return BYI_EXIT_OK;
    }
    const struct byi_verb *verb = find_verb(argv[2]);
    if (verb && argc > 3)
        fprintf(stderr,
                "byoc help: found one argument too many, '%s'; expected a "
                "verb\n",
                argv[3]);
    if (!verb || argc > 3)
        return BYI_EXIT_USAGE;
    return run_verb(verb, 2, (char *[]){argv[2], option, NULL});
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return BYI_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        return BYI_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("byoc %s\n", byoc_version());
        return BYI_EXIT_OK;
    }
    if (!strcmp(argv[1], "help"))
        return help(argc, argv);
    const struct byi_verb *verb = find_verb(argv[1]);
    return verb ? run_verb(verb, argc - 1, argv + 1) : BYI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    /* by default, glibc raises this to the largest size that was freed, and the
     * growing texts and vectors of a compile fragment its heap */
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    byi_terminal_open();
    byi_interrupt_watch();
    return byi_terminal_close(run(argc, argv));
}
