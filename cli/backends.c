/* backends.c: `byoc backends`: every plug-in that is found, and whether it
 * can be used.
 */
#include "cli.h"

#include <string.h>

static int run(int argc, char **argv);

const struct byi_verb byi_verb_backends = {
    .name = "backends",
    .usage = "[--plugin PATH[:PATH]]",
    .summary = "list the vendors' plug-ins, with a verdict on each",
    .run = run,
};

struct count {
    uint32_t good, bad;
};

static void print_backend(void *ctx, const char *path, const char *name,
                          const char *version, const char *verdict)
{
    struct count *count = ctx;
    if (verdict) {
        bool named = strncmp(verdict, path, strlen(path)) == 0;
        printf("rejected  %s%s%s\n", named ? "" : path, named ? "" : ": ",
               verdict);
        count->bad++;
    } else {
        printf("%-9s %s (%s)\n", name, path, version);
        count->good++;
    }
}

static int run(int argc, char **argv)
{
    const char *plugins = NULL, *none;
    const struct byi_option options[] = {
        {"plugin", 0, BYI_OPTION_TEXT, &plugins, "PATH[:PATH]",
         "plug-ins, or folders of them, by absolute path"},
    };
    uint32_t n;
    int code = byi_options(&byi_verb_backends, options, BYI_COUNT(options),
                           argc, argv, 0, 0, &none, &n);
    if (code >= 0)
        return code;
    struct count count = {0};
    byoc_backends_list(plugins, print_backend, &count);
    printf("native    in libbyoc_runtime.so (byoc %s), always there\n",
           byoc_version());
    return count.bad ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}
