/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c: `byoc partition`: prints the partitioned module as text. */
#include "cli.h"

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_partition};
    const char *consts = NULL;
    const struct byi_option options[] = {
        {"stop-after", 0, BYI_OPTION_TEXT, &o.compile.stop_after, "PASS",
         "stop after this pass"},
        {"consts", 0, BYI_OPTION_TEXT, &consts, "FILE.consts",
         "write the large constants to this file, which readers of the text "
         "need"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate, code = byi_parse_options(&byi_command_partition, options,
                                       BYI_COUNT(options), argc, argv, 1, 1,
                                       &path, &n);
    if (code >= 0)
        return code;
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byi_compile_model(path, &o, &compiled, &gate, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_partition, &err);
    fputs(byoc_compiled_ir(compiled), stdout);
    code = gate;
    if (consts && byoc_compiled_consts(compiled, consts, &err) != BYOC_OK)
        code = byi_cli_print_error(&byi_command_partition, &err);
    byoc_compiled_free(&compiled);
    return code;
}

const struct byi_command byi_command_partition = {
    .name = "partition",
    .usage = "MODEL [OPTIONS]",
    .summary = "print the partitioned module in the text form",
    .example = "byoc partition digits.onnx\n",
    .steps = BYI_COMPILES,
    .run = run,
};
