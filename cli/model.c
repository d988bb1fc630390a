/* model.c: opening what a verb was given: an artifact, or a model that is
 * compiled in memory.
 */
#include "cli.h"

#include <string.h>
#include <unistd.h>

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
                           uint32_t of)
{
    (void)ctx;
    fprintf(stderr, "\rbyoc: %s %u of %u%s", what, done, of,
            done == of ? "\n" : "");
}

static enum byoc_status write_report(const char *path, const char *ledger,
                                     struct byoc_error *err)
{
    struct byi_file file;
    BYI_TRY(byi_file_create(path, &file, err));
    fputs(ledger, file.stream);
    return byi_file_commit(&file, err);
}

static bool is_artifact(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".so") == 0;
}

static struct byoc_compile_params params_of(const struct byi_model_options *o)
{
    static const char *const none[] = {NULL};
    return (struct byoc_compile_params){
        .backends = o->native ? none : o->backends.at,
        .plugins = o->plugins,
        .patterns = o->patterns.at,
        .dims = o->dims.at,
        .shapes = o->shapes.at,
        .values = o->values.at,
        .warm = o->warm.at,
        .exclude = o->exclude.at,
        .only = o->only.at,
        .disable = o->disable.at,
        .require = o->require.at,
        .opt_level = o->opt_level,
        .forbid_reference = o->forbid_ref,
        .min_region_nodes = o->min_region_nodes,
        .min_region_flops = o->min_region_flops,
        .max_regions = o->max_regions,
        .require_offload = o->require_offload,
        .require_offload_nodes = o->require_offload_nodes,
        .threads = o->threads,
        .passes = o->passes,
        .stop_after = o->stop_after,
        .add_passes = o->add_passes.at,
        .pass_plugins = o->pass_plugins.at,
        .options = o->pass_options.at,
        .print_before = o->print_before,
        .print_after = o->print_after,
        .print = o->print_before || o->print_after ? print_ir : NULL,
        .dump_passes = o->dump_passes,
        .keep_c = o->keep_c,
        .verify = o->verify,
        .function = o->function,
        .partition_by = o->partition_by,
        .cost_table = o->cost_table,
        .codegen = o->codegen,
        .measure_seconds = o->measure_seconds,
        .isolate = o->isolate,
        .isolate_seconds = o->isolate_seconds,
        .isolate_bytes = (uint64_t)o->isolate_mib << 20,
        .progress = isatty(STDERR_FILENO) ? print_progress : NULL};
}

static enum byoc_status check_options(const struct byi_model_options *o,
                                      struct byoc_error *err)
{
    if (o->native && o->backends.n)
        return byi_fail(err, BYOC_EINVAL,
                        "--native and --backend exclude each other; expected "
                        "one of them");
    return BYOC_OK;
}

enum byoc_status byi_compile_model(const char *path,
                                   const struct byi_model_options *o,
                                   struct byoc_compiled **compiled, int *gate,
                                   struct byoc_error *err)
{
    const struct byoc_compile_params params = params_of(o);
    *gate = BYI_EXIT_OK;
    BYI_TRY(check_options(o, err));
    BYI_TRY(byoc_compile(path, &params, compiled, err));
    print_warnings(byoc_compiled_warnings(*compiled));
    if (o->time_passes)
        fputs(byoc_compiled_times(*compiled), stderr);
    const char *ledger = byoc_compiled_ledger(*compiled);
    enum byoc_status status = BYOC_OK;
    if (o->report)
        status = write_report(o->report, ledger, err);
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
    BYI_TRY(check_options(o, err));
    return byoc_advise(path, &params, json, text, err);
}

/* An option that only compiling takes note of, where one was given. */
static const char *find_compile_option(const struct byi_model_options *o)
{
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"--backend", o->backends.n > 0},
        {"--pattern", o->patterns.n > 0},
        {"--shape", o->shapes.n > 0},
        {"--warm", o->warm.n > 0},
        {"--const", o->values.n > 0},
        {"--exclude", o->exclude.n > 0},
        {"--only", o->only.n > 0},
        {"--forbid-ref", o->forbid_ref},
        {"--min-region-nodes", o->min_region_nodes > 0},
        {"--min-region-flops", o->min_region_flops > 0},
        {"--max-regions", o->max_regions > 0},
        {"-O", o->opt_level > 0},
        {"--disable-pass", o->disable.n > 0},
        {"--require-pass", o->require.n > 0},
        {"--pass", o->add_passes.n > 0},
        {"--pass-plugin", o->pass_plugins.n > 0},
        {"--pass-option", o->pass_options.n > 0},
        {"--print-before", o->print_before != NULL},
        {"--print-after", o->print_after != NULL},
        {"--dump-passes", o->dump_passes != NULL},
        {"--time-passes", o->time_passes},
        {"--verify", o->verify},
        {"--function", o->function != NULL},
        {"--partition-by", o->partition_by != NULL},
        {"--cost-table", o->cost_table != NULL},
        {"--measure-seconds", o->measure_seconds > 0},
        {"--codegen", o->codegen != NULL},
        {"--isolate", o->isolate},
        {"--isolate-seconds", o->isolate_seconds > 0},
        {"--isolate-mib", o->isolate_mib > 0},
        {"--report", o->report != NULL},
        {"--require-offload", o->require_offload > 0},
        {"--require-offload-nodes", o->require_offload_nodes > 0},
    };
    for (size_t i = 0; i < BYI_COUNT(options); i++)
        if (options[i].given)
            return options[i].name;
    return NULL;
}

static void log_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "byoc: %s\n", line);
}

enum byoc_status byi_open_model(const char *path,
                                const struct byi_model_options *o,
                                struct byi_open_model *open,
                                struct byoc_error *err)
{
    const struct byoc_load_params load = {.threads = o->threads,
                                          .plugins = o->plugins,
                                          .native_only = o->native || o->twins,
                                          .require_vendors = o->require_vendors,
                                          .log = o->verbose ? log_line : NULL};
    *open = (struct byi_open_model){0};
    enum byoc_status status;
    if (is_artifact(path)) {
        const char *option = find_compile_option(o);
        if (option)
            return byi_fail(err, BYOC_EINVAL,
                            "%s: an artifact is compiled already; give %s to "
                            "`byoc compile`",
                            path, option);
        status = byoc_model_load(path, &load, &open->model, err);
    } else {
        BYI_TRY(byi_compile_model(path, o, &open->compiled, &open->gate, err));
        status = byoc_compiled_load(open->compiled, &load, &open->model, err);
    }
    if (status != BYOC_OK) {
        byi_close_model(open);
        return status;
    }
    print_warnings(byoc_model_warnings(open->model));
    return BYOC_OK;
}

void byi_close_model(struct byi_open_model *open)
{
    byoc_model_free(&open->model);
    byoc_compiled_free(&open->compiled);
}
