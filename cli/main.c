/* main.c: byoc VERB ...: the verbs, and nothing else. */
#include "cli.h"

#include "core/guard.h"

#include <string.h>

static const struct byi_verb *const verbs[] = {
    &byi_verb_check,   &byi_verb_partition, &byi_verb_compile,
    &byi_verb_inspect, &byi_verb_run,       &byi_verb_bench,
    &byi_verb_compare, &byi_verb_verify,    &byi_verb_backends,
    &byi_verb_report,  &byi_verb_opt,       &byi_verb_conform,
    &byi_verb_extract,
};

static void print_usage(FILE *to)
{
    fprintf(to, "usage: byoc VERB ...\n\n");
    for (size_t i = 0; i < BYI_COUNT(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "\n`byoc VERB --help` lists a verb's options. Exit codes: 0 "
                "success, 1 a negative\nverdict, 2 usage or bad input, 3 a "
                "backend failed, 4 an incompatible artifact.\n");
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

int main(int argc, char **argv)
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
    for (size_t i = 0; i < BYI_COUNT(verbs); i++)
        if (strcmp(argv[1], verbs[i]->name) == 0) {
            int code = run_verb(verbs[i], argc - 1, argv + 1);
            if (fflush(stdout) == 0)
                return code;
            fprintf(stderr, "byoc: cannot write to stdout\n");
            return BYI_EXIT_USAGE;
        }
    fprintf(stderr, "byoc: no verb is called '%s'; `byoc --help` lists them\n",
            argv[1]);
    return BYI_EXIT_USAGE;
}
