/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c: measures whether every pass takes time linear in the graph's size.
 * Runs every pass, the verifier, the printer and the parser on graphs of 1e3 to
 * 1e6 nodes of several shapes, each in a separate process. Prints nanoseconds
 * per node, and the peak memory without the module itself. Also prints the
 * ratio of the time per node at 1e6 to that at 1e4 nodes; at most 2 counts as
 * linear. Times are medians of 11 processes up to 1e4 nodes, of 5 above; the
 * memory is that of the process with the median time.
 *     bench_passes [--shape NAME] [--pass NAME] [--max NODES]
 *                  [--plugin FILE.so]
 * --plugin partitions for that backend; without it all nodes stay native. Exits
 * with 2 for wrong arguments.
 */
#include "graphs.h"
#include "measure.h"

#include "compile/passes.h"
#include "partition/partition.h"
#include "runtime/internal.h"
#include "runtime_native/native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_WORK = 96 };

/* --- work -------------------------------------------------------- */

/* One row of the table: passes, or a function. */
struct work {
    const char *name;
    const struct byi_pass *const *passes; /* NULL: call `run` instead */
    uint32_t n;                           /* of passes */
    bool plugin;       /* partition for the plug-in's backend */
    const char *first; /* a pass to run first, without timing it, or NULL */
    void (*prepare)(struct byi_module *m);
    enum byoc_status (*run)(struct byi_module *m, struct byoc_error *err);
};

static struct byi_text text;
static FILE *consts_file; /* the constants of the printed module */

static enum byoc_status print(struct byi_module *m, struct byoc_error *err)
{
    (void)err;
    byi_print_module(m, &text, consts_file);
    return BYOC_OK;
}

static void prepare_consts_file(struct byi_module *m)
{
    (void)m;
    consts_file = fdopen(memfd_create("consts", 0), "w+");
}

static void prepare_text(struct byi_module *m)
{
    prepare_consts_file(m);
    byi_print_module(m, &text, consts_file);
    fflush(consts_file);
}

static enum byoc_status parse(struct byi_module *m, struct byoc_error *err)
{
    char path[48];
    struct byi_module *parsed = NULL;
    (void)m;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(consts_file));
    return byi_parse_module(text.at, text.n, "printed", path, &parsed, err);
}

static enum byoc_status verify(struct byi_module *m, struct byoc_error *err)
{
    return byi_verify(m, err);
}

/* Passes that fail, or have nothing to do, unless another pass, `first`, has
 * run. */
static const struct {
    const char *name, *first;
} prerequisites[] = {
    {"CheckBasicBlockNormalForm", "ToBasicBlockNormalForm"},
    {"ToGraphNormalForm", "ToANormalForm"},
    {"EliminateTransposes", "ConvertLayout"},
};

static const char *find_first(const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(prerequisites); i++)
        if (strcmp(prerequisites[i].name, name) == 0)
            return prerequisites[i].first;
    return NULL;
}

/* --- one measurement --------------------------------------------- */

static const char *plugin_path;

static enum byoc_status open_backend(struct byi_backends *v,
                                     struct byoc_error *err)
{
    struct byi_plugin *plugin = NULL;
    BYI_TRY(byoc_internal_plugin_open(plugin_path, 1, &plugin, err));
    byi_match_host(&plugin->host);
    const struct byoc_backend *backend = plugin->backend;
    const struct byoc_host *host = &plugin->host;
    return byi_backends_init(v, &backend, &host, 1, err);
}

static enum byoc_status work_on(const struct work *w, struct byi_module *m,
                                struct bench_step *out, struct byoc_error *err)
{
    struct byi_backends backends = {0};
    struct byi_pass_context ctx = {.opt_level = 3,
                                   .runs_all = true,
                                   .known = byi_passes_known(),
                                   .eval = byi_kernel_eval};
    if (w->plugin) {
        BYI_TRY(open_backend(&backends, err));
        byi_context_put(&ctx, byi_backends_entry(&backends));
    }
    if (w->prepare)
        w->prepare(m);
    if (w->first) {
        const struct byi_pass *first = byi_pass_find(w->first);
        BYI_TRY(byi_run_passes(m, &first, 1, &ctx, err));
    }
    const struct bench_start start = bench_begin(out->nodes);
    const enum byoc_status status =
        w->run ? w->run(m, err) : byi_run_passes(m, w->passes, w->n, &ctx, err);
    bench_end(&start, out);
    return status;
}

static void measure(const void *arg, uint32_t shape, uint32_t size,
                    struct bench_result *run)
{
    struct byoc_error err = {0};
    struct byi_module *m = bench_graph(shape, size);
    run->steps[0].nodes = bench_count(m);
    run->failed = work_on(arg, m, &run->steps[0], &err) != BYOC_OK;
    snprintf(run->why, sizeof run->why, "%.199s", err.text);
}

/* --- the table --------------------------------------------------- */

static void print_row(const struct work *w, uint32_t shape, uint32_t max)
{
    struct bench_result runs[BENCH_SIZES] = {0};
    for (uint32_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= max; i++)
        runs[i] = bench_measure(measure, w, shape, bench_sizes[i], 1);
    bench_row(w->name, max, runs, 0);
}

static uint32_t list_work(struct work list[MAX_WORK],
                          const struct byi_pass *const *pipeline)
{
    const struct byi_pass *const *known = byi_passes_known();
    uint32_t n = 0, steps = 0;
    while (pipeline[steps])
        steps++;
    list[n++] = (struct work){.name = "verify", .run = verify};
    list[n++] = (struct work){
        .name = "print", .prepare = prepare_consts_file, .run = print};
    list[n++] =
        (struct work){.name = "parse", .prepare = prepare_text, .run = parse};
    for (; *known && n + 1 < MAX_WORK; known++)
        list[n++] = (struct work){.name = (*known)->name,
                                  .passes = known,
                                  .n = 1,
                                  .first = find_first((*known)->name)};
    list[n++] =
        (struct work){.name = "pipeline", .passes = pipeline, .n = steps};
    for (uint32_t i = 0; plugin_path && i < n; i++)
        list[i].plugin = !list[i].run;
    return n;
}

int main(int argc, char **argv)
{
    const char *shape = NULL, *pass = NULL;
    uint32_t max = bench_sizes[BENCH_SIZES - 1];
    struct work list[MAX_WORK];
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--shape") == 0)
            shape = value;
        else if (strcmp(argv[i], "--pass") == 0)
            pass = value;
        else if (strcmp(argv[i], "--max") == 0)
            max = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--plugin") == 0)
            plugin_path = value;
        else
            return fputs("usage: bench_passes [--shape NAME] [--pass NAME] "
                         "[--max NODES] [--plugin FILE.so]\n",
                         stderr),
                   2;
    }
    const uint32_t n = list_work(list, byi_passes_pipeline());
    for (uint32_t s = 0; bench_shape(s); s++) {
        if (shape && strcmp(shape, bench_shape(s)) != 0)
            continue;
        bench_head(bench_shape(s));
        for (uint32_t i = 0; i < n; i++)
            if (!pass || strcmp(pass, list[i].name) == 0)
                print_row(&list[i], s, max);
        printf("\n");
    }
    return 0;
}
