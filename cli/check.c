/* check.c: `byoc check`: who would run what, and why not, without writing an
 * artifact.
 */
#include "cli.h"

static int run(int argc, char **argv);

const struct byi_verb byi_verb_check = {
    .name = "check",
    .usage = "MODEL [OPTIONS]",
    .summary = "print which operators go to a vendor, which stay and why",
    .run = run,
};

static int run(int argc, char **argv)
{
    struct byi_model_options o = {0};
    bool json = false, every = false;
    const struct byi_option options[] = {
        {"json", 0, BYI_OPTION_FLAG, &json, NULL, "print the ledger's JSON"},
        {"all", 'a', BYI_OPTION_FLAG, &every, NULL, "print every node"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate, code = byi_options(&byi_verb_check, options, BYI_COUNT(options),
                                 argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byi_compile_model(path, &o, &compiled, &gate, &err) != BYOC_OK)
        return byi_complain(&byi_verb_check, &err);
    const char *ledger = byoc_compiled_ledger(compiled);
    if (json) {
        fputs(ledger, stdout);
    } else {
        char *text = byoc_ledger_text(ledger, every);
        fputs(text, stdout);
        byoc_string_free(text);
    }
    byoc_compiled_free(&compiled);
    return gate;
}
