/* SPDX-License-Identifier: Apache-2.0 */
/* opt.c: `byoc opt`: runs a list of passes on a module and prints it. */
#include "cli.h"

#include "compile/passes.h"

#include <string.h>

/* Print every pass with its options. */
static void list_passes(void)
{
    const struct byi_pass *const *pass = byi_passes_known();
    for (; *pass; pass++) {
        printf("%-26s level %d  %s\n", (*pass)->name, (*pass)->opt_level,
               (*pass)->summary);
        for (const struct byi_pass_option *o = (*pass)->options; o && o->name;
             o++)
            printf("    %s.%s=%s  %s\n", (*pass)->name, o->name,
                   o->default_text, o->summary);
    }
}

/* The lists to print instead of running passes. */
struct listing {
    bool passes, ops, json;
};

/* Refuse options and files that have no effect because of other options. */
static enum byoc_status check_list(const struct listing *list,
                                   const char *passes, const char *desired,
                                   uint32_t n_files, struct byoc_error *err)
{
    if ((list->passes || list->ops) && (passes || desired || n_files))
        return byi_fail(err, BYOC_EINVAL,
                        "--list-%s runs no pass, so %s has no effect; "
                        "leave it out",
                        list->passes ? "passes" : "ops",
                        passes    ? "--passes"
                        : desired ? "--desired"
                                  : "a file");
    if (list->json && (!list->ops || list->passes))
        return byi_fail(
            err, BYOC_EINVAL, "--json has an effect only with --list-ops; %s",
            list->passes ? "leave out --list-passes" : "give both, or neither");
    if (desired && !(passes && strstr(passes, "ConvertLayout")))
        return byi_fail(err, BYOC_EINVAL,
                        "--desired has no effect without "
                        "--passes=ConvertLayout; give both");
    return BYOC_OK;
}

/* Print the lists. Returns the exit code. */
static int print_lists(const struct listing *list, const char *const *plugins)
{
    struct byoc_error err;
    for (uint32_t i = 0; plugins && plugins[i]; i++)
        if (byi_passes_load(plugins[i], &err) != BYOC_OK)
            return byi_cli_print_error(&byi_command_opt, &err);
    if (list->passes)
        list_passes();
    if (list->ops)
        byi_list_ops(list->json);
    return BYI_EXIT_OK;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_opt};
    const char *consts = NULL;
    const char *passes = NULL, *desired = NULL;
    struct listing list = {0};
    const struct byi_option options[] = {
        {"passes", 0, BYI_OPTION_TEXT, &passes, "A,B,[C,D]",
         "run these passes in order; -O and --disable-pass apply to those in "
         "brackets"},
        {"desired", 0, BYI_OPTION_TEXT, &desired, "OP=LAYOUT,...",
         "short for --pass-option ConvertLayout.desired=..."},
        {"list-passes", 0, BYI_OPTION_FLAG, &list.passes, NULL,
         "list the passes"},
        {"list-ops", 0, BYI_OPTION_FLAG, &list.ops, NULL,
         "list the operators of the IR, and their attributes"},
        {"json", 0, BYI_OPTION_FLAG, &list.json, NULL,
         "print the operators as JSON"},
        {"consts", 0, BYI_OPTION_TEXT, &consts, "FILE.consts",
         "write the large constants to this file, which readers of the text "
         "need"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate,
        code = byi_parse_options(&byi_command_opt, options, BYI_COUNT(options),
                                 argc, argv, 0, 1, &path, &n);
    if (code >= 0)
        return code;
    struct byoc_error fault;
    if (check_list(&list, passes, desired, n, &fault) != BYOC_OK)
        return byi_cli_print_error(&byi_command_opt, &fault);
    if (list.passes || list.ops)
        return print_lists(&list, o.compile.pass_plugins);
    struct byoc_error err = {.status = BYOC_EINVAL,
                             .text = "found no input, expected FILE.ir or "
                                     "MODEL.onnx; see `byoc opt --help`"};
    if (n == 0)
        return byi_cli_print_error(&byi_command_opt, &err);
    struct byi_text layouts = {0};
    if (desired) {
        byi_text_addf(&layouts, "ConvertLayout.desired=%s", desired);
        byi_option_list_add(&o.compile.options, layouts.at);
    }
    const char *const pass_list[] = {passes, NULL};
    o.compile.passes = pass_list;
    o.verify = true;
    struct byoc_compiled *compiled = NULL;
    if (byi_compile_model(path, &o, &compiled, &gate, &err) != BYOC_OK) {
        byi_text_free(&layouts);
        return byi_cli_print_error(&byi_command_opt, &err);
    }
    fputs(byoc_compiled_ir(compiled), stdout);
    if (consts && byoc_compiled_consts(compiled, consts, &err) != BYOC_OK)
        gate = byi_cli_print_error(&byi_command_opt, &err);
    byoc_compiled_free(&compiled);
    byi_text_free(&layouts);
    return gate;
}

const struct byi_command byi_command_opt = {
    .name = "opt",
    .usage = "FILE.ir|MODEL.onnx --passes=A,B,C [OPTIONS]",
    .summary = "run passes on a module and print it in the text form",
    .example = "byoc opt --list-passes\n"
               "byoc opt --list-ops --json\n"
               "byoc opt digits.onnx --passes=SimplifyInference,FoldConstant\n",
    .steps = BYI_COMPILES,
    .run = run,
};
