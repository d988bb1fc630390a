/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: opens the model that a command is given: loads an artifact, or
 * compiles an ONNX model or text module in memory.
 */
#include "cli.h"

#include <string.h>

static void print_ir(void *ctx, const char *when, const char *pass,
                     const char *ir)
{
    (void)ctx;
    fprintf(stderr, "// %s %s\n%s", when, pass, ir);
}

static void print_warnings(const char *line)
{
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        fprintf(stderr, "byoc: warning: %.*s\n", (int)n, line);
    }
}

static void print_progress(void *ctx, const char *what, uint32_t done,
                           uint32_t total)
{
    (void)ctx;
    byi_progress_step(what, done, total);
}

/* Instrument: report each pass as the current step of the progress line. */
static enum byoc_status enter_pass(void *ctx, const char *pass,
                                   const struct byoc_module *module,
                                   struct byoc_error *err)
{
    (void)ctx, (void)module, (void)err;
    byi_progress_step(pass, 0, 0);
    return BYOC_OK;
}

static void leave_passes(void *ctx)
{
    (void)ctx;
    byi_progress_step("generating code", 0, 0);
}

static struct byoc_compile_params params_of(const struct byi_model_options *o)
{
    static const char *const no_backends[] = {NULL};
    static const struct byoc_instrument pass_progress = {.before = enter_pass,
                                                         .exit = leave_passes};
    struct byoc_compile_params params = o->compile;
    params.struct_size = sizeof params;
    if (o->native)
        params.backends = no_backends;
    params.forbid_reference = o->forbid_ref;
    params.keep_nan = o->keep_nan;
    params.exact = o->exact;
    params.verify = o->verify;
    params.isolate = o->isolate;
    params.isolate_bytes = (uint64_t)o->isolate_mib << 20;
    if (params.print_before || params.print_after)
        params.print = print_ir;
    params.instruments = &pass_progress;
    params.n_instruments = 1;
    params.progress = print_progress;
    return params;
}

/* The model options that affect only the compile, and those that affect only
 * the load. */
/* clang-format off */
static const char *const compile_only[] = {
    "backend", "function", "pattern", "shape", "warm", "const", "exclude",
    "only", "forbid-ref", "keep-nan", "exact", "min-region-nodes",
    "min-region-flops", "max-regions", "partition-by", "cost-table",
    "measure-seconds", "codegen", "weights", "precision", "isolate",
    "isolate-seconds", "isolate-mib", "O", "disable-pass", "require-pass", "pass", "pass-option",
    "pass-plugin", "print-before", "print-after", "dump-passes", "time-passes",
    "report", "require-offload", "require-offload-nodes", NULL};
/* clang-format on */
static const char *const load_only[] = {"require-backends", "verbose", NULL};

/* Returns the first of these options that was given, or NULL. */
static const char *find_given_option(const char *const *names)
{
    while (*names && !byi_option_is_given(*names))
        names++;
    return *names;
}

/* Refuse options that affect none of the steps. */
static enum byoc_status check_effects(const char *path, unsigned steps,
                                      const struct byi_command *command,
                                      struct byoc_error *err)
{
    const char *compile =
        steps & BYI_COMPILES ? NULL : find_given_option(compile_only);
    const char *load = steps & BYI_LOADS ? NULL : find_given_option(load_only);
    if (compile)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: an artifact is compiled already; give %s%s to "
                        "`byoc compile`",
                        path, compile[1] ? "--" : "-", compile);
    if (load)
        return byi_fail(err, BYOC_EINVAL,
                        "--%s has no effect here: `byoc %s` loads no model; "
                        "give it to `byoc run`",
                        load, command->name);
    return BYOC_OK;
}

enum byoc_status byi_compile_model(const char *path,
                                   const struct byi_model_options *o,
                                   struct byoc_compiled **compiled, int *gate,
                                   struct byoc_error *err)
{
    const struct byoc_compile_params params = params_of(o);
    *gate = BYI_EXIT_OK;
    BYI_TRY(check_effects(path, o->command->steps, o->command, err));
    BYI_TRY(byi_expect_model(path, err));
    BYI_TRY(byoc_compile(path, &params, compiled, err));
    print_warnings(byoc_compiled_warnings(*compiled));
    if (o->time_passes)
        fputs(byoc_compiled_times(*compiled), stderr);
    const char *ledger = byoc_compiled_ledger(*compiled);
    enum byoc_status status = BYOC_OK;
    if (o->report)
        status = byi_file_write(o->report, ledger, strlen(ledger), err);
    const char *verdict = byoc_compiled_verdict(*compiled);
    if (status == BYOC_OK && verdict) {
        fprintf(stderr, "byoc: gate failed: %s\n", verdict);
        *gate = BYI_EXIT_VERDICT;
    }
    if (status != BYOC_OK)
        byoc_compiled_free(compiled);
    return status;
}

enum byoc_status byi_advise_model(const char *path,
                                  const struct byi_model_options *o, bool json,
                                  char **text, struct byoc_error *err)
{
    const struct byoc_compile_params params = params_of(o);
    BYI_TRY(check_effects(path, BYI_COMPILES, o->command, err));
    BYI_TRY(byi_expect_model(path, err));
    return byoc_advise(path, &params, json, text, err);
}

/* The log function of the model. Without --verbose it prints only warnings of
 * runs: byi_open_model prints warnings of the load (byoc_model_warnings), since
 * a load that fails has its own message. */
static void log_line(void *ctx, enum byoc_severity severity, const char *line)
{
    const struct byi_open_model *open = ctx;
    const bool warning = severity >= BYOC_WARNING;
    if (open->verbose || (warning && open->loaded))
        fprintf(stderr, "byoc: %s%s\n", warning ? "warning: " : "", line);
}

enum byoc_status byi_open_model(const char *path,
                                const struct byi_model_options *o,
                                struct byi_open_model *open,
                                struct byoc_error *err)
{
    const struct byoc_load_params load = {
        .struct_size = sizeof load,
        .threads = o->compile.threads,
        .plugins = o->compile.plugins,
        .native_only = o->native || o->twins,
        .require_backends = o->require_backends,
        .verify = o->verify,
        .log = log_line,
        .log_ctx = open,
        .log_severity = o->verbose ? BYOC_DEBUG : BYOC_WARNING};
    *open = (struct byi_open_model){.verbose = o->verbose};
    enum byoc_status status;
    if (byi_is_artifact(path)) {
        BYI_TRY(check_effects(path, BYI_LOADS, o->command, err));
        open->dims = o->compile.dims;
        status = byi_explain_artifact(
            path, byoc_model_load(path, &load, &open->model, err), err);
    } else {
        BYI_TRY(byi_compile_model(path, o, &open->compiled, &open->gate, err));
        status = byoc_compiled_load(open->compiled, &load, &open->model, err);
        byi_progress_step("", 0, 0);
    }
    if (status != BYOC_OK) {
        byi_close_model(open);
        return status;
    }
    open->loaded = true;
    if (!open->verbose)
        print_warnings(byoc_model_warnings(open->model));
    return BYOC_OK;
}

void byi_close_model(struct byi_open_model *open)
{
    byoc_model_free(&open->model);
    byoc_compiled_free(&open->compiled);
}
