/* opt.c: `byoc opt`: run any list of passes on a module and print it. */
#include "cli.h"

#include "driver/passes.h"

static int run(int argc, char **argv);

const struct byi_verb byi_verb_opt = {
    .name = "opt",
    .usage = "FILE.ir|MODEL.onnx --passes=A,B,C [OPTIONS]",
    .summary = "run passes on a module and print it in the text form",
    .run = run,
};

static void list_passes(void)
{
    const struct byi_pass *const *pass = byi_passes_known();
    for (; *pass; pass++) {
        printf("%-26s level %d  %s\n", (*pass)->name, (*pass)->opt_level,
               (*pass)->summary);
        for (const struct byi_pass_option *o = (*pass)->options; o && o->name;
             o++)
            printf("    %s.%s=%s  %s\n", (*pass)->name, o->name, o->fallback,
                   o->summary);
    }
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {0};
    const char *consts = NULL;
    const char *passes = NULL, *desired = NULL;
    bool list = false;
    const struct byi_option options[] = {
        {"passes", 0, BYI_OPTION_TEXT, &passes, "A,B,[C,D]",
         "what to run, in this order; brackets make a sequence, whose members "
         "-O and --disable-pass gate (default: nothing)"},
        {"desired", 0, BYI_OPTION_TEXT, &desired, "OP=LAYOUT,...",
         "short for --pass-option ConvertLayout.desired=..."},
        {"list-passes", 0, BYI_OPTION_FLAG, &list, NULL, "name every pass"},
        {"consts", 0, BYI_OPTION_TEXT, &consts, "FILE.consts",
         "write the large constants, to read FILE.ir back"},
        BYI_MODEL_OPTIONS(o),
    };
    const char *path;
    uint32_t n;
    int gate, code = byi_options(&byi_verb_opt, options, BYI_COUNT(options),
                                 argc, argv, 0, 1, &path, &n);
    if (code >= 0)
        return code;
    struct byoc_error fault;
    for (uint32_t i = 0; list && i < o.pass_plugins.n; i++)
        if (byi_passes_load(o.pass_plugins.at[i], &fault) != BYOC_OK)
            return byi_complain(&byi_verb_opt, &fault);
    if (list) {
        list_passes();
        return BYI_EXIT_OK;
    }
    struct byoc_error err = {.status = BYOC_EINVAL,
                             .text = "a file to read is missing; `byoc opt "
                                     "--help` says more"};
    if (n == 0)
        return byi_complain(&byi_verb_opt, &err);
    struct byi_text layouts = {0};
    if (desired) {
        byi_text_addf(&layouts, "ConvertLayout.desired=%s", desired);
        byi_list_add(&o.pass_options, layouts.at);
    }
    const char *const given[] = {passes, NULL};
    o.passes = given;
    o.verify = true;
    struct byoc_compiled *compiled = NULL;
    if (byi_compile_model(path, &o, &compiled, &gate, &err) != BYOC_OK) {
        byi_text_free(&layouts);
        return byi_complain(&byi_verb_opt, &err);
    }
    fputs(byoc_compiled_ir(compiled), stdout);
    if (consts && byoc_compiled_consts(compiled, consts, &err) != BYOC_OK)
        gate = byi_complain(&byi_verb_opt, &err);
    byoc_compiled_free(&compiled);
    byi_text_free(&layouts);
    return gate;
}
