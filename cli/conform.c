/* conform.c: `byoc conform`: try a plug-in before its users do. */
#include "cli.h"

#include <stdlib.h>
#include <unistd.h>

static void show_progress(void *ctx, const char *what, uint32_t done,
                          uint32_t of)
{
    (void)ctx;
    fprintf(stderr, "\r%u of %u: %-50.50s", done + 1, of, what);
    if (done + 1 == of)
        fprintf(stderr, "\r%70s\r", "");
}

static int run(int argc, char **argv)
{
    struct byoc_conform_params params = {0};
    uint32_t seed = 1, n;
    bool json = false;
    const char *path;
    const struct byi_option options[] = {
        {"only", 0, BYI_OPTION_TEXT, &params.only, "CASE",
         "a case, or a group of them: numerics/vendor.add"},
        {"seed", 0, BYI_OPTION_COUNT, &seed, "N",
         "of the graphs and numbers that are made (default: 1)"},
        {"cases", 0, BYI_OPTION_COUNT, &params.cases, "N",
         "graphs for each pattern (default: 28)"},
        {"seconds", 0, BYI_OPTION_NUMBER, &params.seconds, "S",
         "for one case (default: 20)"},
        {"json", 0, BYI_OPTION_FLAG, &json, NULL, "print JSON"},
    };
    int code = byi_options(&byi_verb_conform, options, BYI_COUNT(options), argc,
                           argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    params.seed = seed;
    params.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    struct byoc_error err;
    char *text = NULL, *real = realpath(path, NULL);
    int failed = 0;
    if (byoc_conform(real ? real : path, &params, json, &failed, &text, &err) !=
        BYOC_OK) {
        free(real);
        return byi_complain(&byi_verb_conform, &err);
    }
    fputs(text, stdout);
    byoc_string_free(text);
    free(real);
    return failed ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}

const struct byi_verb byi_verb_conform = {
    .name = "conform",
    .usage = "libVENDOR.so [OPTIONS]",
    .summary = "try a vendor's plug-in, and say what is wrong with it",
    .run = run,
};
