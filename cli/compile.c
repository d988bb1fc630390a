/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c: `byoc compile`: compiles a model into an artifact. */
#include "cli.h"

#include <string.h>

/* Append to `to` the default path of the artifact: the path of the model with
 * `.so` in place of its extension. */
static void add_artifact_path(struct byi_text *to, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const size_t stem =
        dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    byi_text_addf(to, "%.*s.so", (int)stem, path);
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_compile};
    const char *out = NULL;
    bool all_nodes = false, quiet = false;
    const struct byi_option options[] = {
        {"output", 'o', BYI_OPTION_TEXT, &out, "FILE.so",
         "file name of the artifact (default: beside the model)"},
        {"all", 'a', BYI_OPTION_FLAG, &all_nodes, NULL,
         "report every node, not only the native ones"},
        {"quiet", 'q', BYI_OPTION_FLAG, &quiet, NULL,
         "print no report and no progress"},
        {"keep-c", 0, BYI_OPTION_TEXT, &o.compile.keep_c, "DIR",
         "keep the generated C: fused kernels in kernels.c, each region in a "
         "file"},
        {"target", 0, BYI_OPTION_TEXT, &o.compile.target, "ARCH",
         "compile for aarch64, x86_64 or riscv64, all native"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate, code = byi_parse_options(&byi_command_compile, options,
                                       BYI_COUNT(options), argc, argv, 1, 1,
                                       &path, &n);
    if (code >= 0)
        return code;
    if (quiet)
        byi_progress_end();
    struct byi_text default_out = {0};
    if (!out) {
        add_artifact_path(&default_out, path);
        out = default_out.at;
    }
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    enum byoc_status status = BYOC_OK;
    if (byi_same_file(path, out))
        status = byi_fail(&err, BYOC_EINVAL,
                          "%s: found the model as the output, expected a file "
                          "other than the model after -o",
                          out);
    if (status == BYOC_OK)
        status = byi_compile_model(path, &o, &compiled, &gate, &err);
    if (status == BYOC_OK && gate == BYI_EXIT_OK)
        status = byoc_compiled_write(compiled, out, &err);
    code = status == BYOC_OK ? gate
                             : byi_cli_print_error(&byi_command_compile, &err);
    if (status == BYOC_OK && !quiet) {
        const struct byi_ledger_view view = {.all_nodes = all_nodes};
        const int printed = byi_print_ledger(
            &byi_command_compile, path, byoc_compiled_ledger(compiled), &view);
        code = printed != BYI_EXIT_OK ? printed : code;
        if (gate == BYI_EXIT_OK)
            printf("\nwrote %s\n", out);
    }
    byoc_compiled_free(&compiled);
    byi_text_free(&default_out);
    return code;
}

const struct byi_command byi_command_compile = {
    .name = "compile",
    .usage = "MODEL [-o MODEL.so] [OPTIONS]",
    .summary = "compile a model into a shared library",
    .example = "byoc compile digits.onnx -o digits.so\n",
    .steps = BYI_COMPILES,
    .run = run,
};
