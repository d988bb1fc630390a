/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: `byoc check`: prints the placement and its reasons, without writing
 * an artifact.
 */
#include "cli.h"

static int print_advice(const char *path, const struct byi_model_options *o,
                        bool json)
{
    struct byoc_error err;
    char *text;
    if (byi_advise_model(path, o, json, &text, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_check, &err);
    fputs(text, stdout);
    byoc_string_free(text);
    return BYI_EXIT_OK;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_check};
    struct byi_ledger_view view = {0};
    bool advise = false;
    struct byi_pictures pictures = {0};
    const struct byi_option options[] = {
        {"json", 0, BYI_OPTION_FLAG, &view.json, NULL,
         "print the ledger's JSON"},
        {"all", 'a', BYI_OPTION_FLAG, &view.all_nodes, NULL,
         "print every node"},
        {"explain", 0, BYI_OPTION_LIST, &view.explain, "NODE",
         "print everything about one node"},
        {"advise", 0, BYI_OPTION_FLAG, &advise, NULL,
         "try changes of options, and print the changes that offload more"},
        BYI_PICTURE_OPTIONS(pictures),
        {"dump-onnx", 0, BYI_OPTION_TEXT, &pictures.onnx, "FILE",
         "write the ONNX model with each node's placement in its metadata"},
        {"dump-regions", 0, BYI_OPTION_TEXT, &pictures.regions, "FILE",
         "write the ONNX model with each region as a function"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate, code = byi_parse_options(&byi_command_check, options,
                                       BYI_COUNT(options), argc, argv, 1, 1,
                                       &path, &n);
    if (code >= 0)
        return code;
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (advise &&
        (pictures.html || pictures.dot || pictures.onnx || pictures.regions)) {
        (void)byi_fail(&err, BYOC_EINVAL,
                       "found --advise with --html, --dot, --dump-onnx or "
                       "--dump-regions, expected one of them: --advise "
                       "compiles many times, and a picture shows one compile");
        return byi_cli_print_error(&byi_command_check, &err);
    }
    if (advise)
        return print_advice(path, &o, view.json);
    if (byi_compile_model(path, &o, &compiled, &gate, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_check, &err);
    const char *ledger = byoc_compiled_ledger(compiled);
    if (byi_write_pictures(&pictures, path, ledger, &err) != BYOC_OK)
        code = byi_cli_print_error(&byi_command_check, &err);
    else
        code = byi_print_ledger(&byi_command_check, path, ledger, &view);
    byoc_compiled_free(&compiled);
    return code ? code : gate;
}

const struct byi_command byi_command_check = {
    .name = "check",
    .usage = "MODEL [OPTIONS]",
    .summary =
        "print which operators are offloaded, and why the others are not",
    .example =
        "byoc check digits.onnx\n"
        "byoc check digits.onnx --html digits.html --report digits.json\n",
    .steps = BYI_COMPILES,
    .run = run,
};
