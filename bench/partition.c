/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c: checks that the four partition passes take time linear in the
 * size of the graph. Runs MergeComposite, AnnotateTarget, MergeRegions and
 * PartitionGraph, with a ledger as in a compile, on graphs of 1e3 to 1e6 nodes,
 * for one backend and for two. The backends consist of patterns only, which
 * leave some operators native, so that there are many regions. The columns are
 * the same as in passes.c.
 *     bench_partition [--shape NAME] [--max NODES]
 *     bench_partition --plugin FILE.so MODEL.onnx...
 * The second form runs the passes on models after Canonicalize, for a backend's
 * plug-in, without and with its probe, and prints milliseconds of each pass
 * (medians of 11). Exits with 2 for wrong arguments.
 */
#include "graphs.h"
#include "measure.h"

#include "compile/passes.h"
#include "frontend_onnx/onnx.h"
#include "partition/partition.h"
#include "runtime/internal.h"
#include "runtime_native/native.h"

#include <stdlib.h>
#include <string.h>

enum { N_PASSES = 4 };
static const struct byi_pass *const passes[N_PASSES] = {
    &byi_pass_merge_composite,
    &byi_pass_annotate_target,
    &byi_pass_merge_regions,
    &byi_pass_partition_graph,
};

/* --- backends ------------------------------------------------------------- */

/* The rows of the backends, without tanh and batch norm, which stay native. */
static const struct byoc_pattern first_rows[] = {
    {"first.add_relu", "nn.relu(add(%a, %b))", NULL},
    {"first.mul_relu", "nn.relu(multiply(%a, %b))", NULL},
    {"first.conv", "nn.conv2d(%src, const %weights)", NULL},
    {"first.relu", "nn.relu(%src)", NULL},
    {"first.add", "add(%a, %b)", NULL},
};
static const struct byoc_pattern second_rows[] = {
    {"second.sigmoid", "sigmoid(%src)", NULL},
    {"second.relu", "nn.relu(%src)", NULL},
    {"second.mul", "multiply(%a, %b)", NULL},
};
static const struct byoc_backend pattern_backends[] = {
    {.struct_size = sizeof(struct byoc_backend),
     .name = "first",
     .patterns = first_rows,
     .n_patterns = BYI_COUNT(first_rows)},
    {.struct_size = sizeof(struct byoc_backend),
     .name = "second",
     .patterns = second_rows,
     .n_patterns = BYI_COUNT(second_rows)},
};

static enum byoc_status open_pattern_backends(struct byi_backends *v,
                                              uint32_t n,
                                              struct byoc_error *err)
{
    static struct byoc_host host;
    const struct byoc_backend *const backends[] = {&pattern_backends[0],
                                                   &pattern_backends[1]};
    const struct byoc_host *const hosts[] = {&host, &host};
    byi_match_host(&host);
    return byi_backends_init(v, backends, hosts, n, err);
}

static const char *plugin_path;

static enum byoc_status open_backend(struct byi_backends *v, bool probing,
                                     struct byoc_error *err)
{
    static struct byoc_backend without_probe;
    struct byi_plugin *plugin = NULL;
    BYI_TRY(byoc_internal_plugin_open(plugin_path, 1, &plugin, err));
    byi_match_host(&plugin->host);
    without_probe = *plugin->backend;
    without_probe.probe = NULL;
    const struct byoc_backend *backend =
        probing ? plugin->backend : &without_probe;
    const struct byoc_host *host = &plugin->host;
    return byi_backends_init(v, &backend, &host, 1, err);
}

/* --- one measurement ----------------------------------------------------- */

static enum byoc_status run_passes(struct byi_module *m,
                                   struct byi_backends *backends,
                                   struct bench_result *run,
                                   struct byoc_error *err)
{
    struct byi_pass_context ctx = {
        .opt_level = 3,
        .runs_all = true,
        .known = byi_passes_known(),
        .eval = byi_kernel_eval,
        .entries = {byi_backends_entry(backends),
                    byi_ledger_entry(byi_ledger_new())}};
    for (uint32_t i = 0; i < N_PASSES; i++) {
        const struct bench_start start = bench_begin(run->steps[i].nodes);
        BYI_TRY(byi_run_passes(m, &passes[i], 1, &ctx, err));
        bench_end(&start, &run->steps[i]);
    }
    return BYOC_OK;
}

static void measure_graph(const void *arg, uint32_t shape, uint32_t size,
                          struct bench_result *run)
{
    const uint32_t *n_backends = arg;
    struct byoc_error err = {0};
    struct byi_backends backends = {0};
    struct byi_module *m = bench_graph(shape, size);
    const uint64_t nodes = bench_count(m);
    for (uint32_t i = 0; i < N_PASSES; i++)
        run->steps[i].nodes = nodes;
    run->failed =
        open_pattern_backends(&backends, *n_backends, &err) != BYOC_OK ||
        run_passes(m, &backends, run, &err) != BYOC_OK;
    snprintf(run->why, sizeof run->why, "%.199s", err.text);
}

/* --- models -------------------------------------------------------------- */

struct model {
    const char *path;
    bool probing;
};

static enum byoc_status partition_model(const struct model *model,
                                        struct bench_result *run,
                                        struct byoc_error *err)
{
    const struct byi_onnx_params params = {.eval = byi_kernel_eval};
    struct byi_backends backends = {0};
    struct byi_module *m = NULL;
    struct byi_pass_context ctx = {
        .opt_level = 3, .known = byi_passes_known(), .eval = byi_kernel_eval};
    const struct byi_pass *canonicalize = byi_pass_find("Canonicalize");
    BYI_TRY(byi_onnx_import(model->path, &params, &m, err));
    BYI_TRY(byi_run_passes(m, &canonicalize, 1, &ctx, err));
    for (uint32_t i = 0; i < N_PASSES; i++)
        run->steps[i].nodes = bench_count(m);
    BYI_TRY(open_backend(&backends, model->probing, err));
    return run_passes(m, &backends, run, err);
}

static void measure_model(const void *arg, uint32_t shape, uint32_t size,
                          struct bench_result *run)
{
    struct byoc_error err = {0};
    (void)shape, (void)size;
    run->failed = partition_model(arg, run, &err) != BYOC_OK;
    snprintf(run->why, sizeof run->why, "%.199s", err.text);
}

static void print_model(const char *path, bool probing)
{
    const struct model model = {path, probing};
    const char *name = strrchr(path, '/');
    const struct bench_result run =
        bench_measure(measure_model, &model, 0, 0, N_PASSES);
    double total = 0;
    printf("%-28s %-5s", name ? name + 1 : path, probing ? "yes" : "no");
    if (run.failed) {
        printf("  %s\n", run.why);
        return;
    }
    printf(" %8llu", (unsigned long long)run.steps[0].nodes);
    for (uint32_t i = 0; i < N_PASSES; i++) {
        printf(" %15.3f", 1e3 * run.steps[i].seconds);
        total += run.steps[i].seconds;
    }
    printf(" %8.3f\n", 1e3 * total);
}

/* --- main ---------------------------------------------------------------- */

static void print_shape(uint32_t shape, uint32_t n_backends, uint32_t max)
{
    struct bench_result runs[BENCH_SIZES] = {0};
    char title[64];
    snprintf(title, sizeof title, "%s, %u backend%s", bench_shape(shape),
             n_backends, n_backends > 1 ? "s" : "");
    bench_head(title);
    for (uint32_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= max; i++)
        runs[i] = bench_measure(measure_graph, &n_backends, shape,
                                bench_sizes[i], N_PASSES);
    for (uint32_t i = 0; i < N_PASSES; i++)
        bench_row(passes[i]->name, max, runs, i);
    printf("\n");
}

static int usage(void)
{
    fputs("usage: bench_partition [--shape NAME] [--max NODES]\n"
          "       bench_partition --plugin FILE.so MODEL.onnx...\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *shape = NULL;
    uint32_t max = bench_sizes[BENCH_SIZES - 1];
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
        if (strcmp(argv[i], "--shape") == 0)
            shape = argv[i + 1];
        else if (strcmp(argv[i], "--max") == 0)
            max = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--plugin") == 0)
            plugin_path = argv[i + 1];
        else
            return usage();
    if ((i < argc) != (plugin_path != NULL))
        return usage();
    for (uint32_t s = 0; !plugin_path && bench_shape(s); s++)
        for (uint32_t n = 1; n <= 2; n++)
            if (!shape || strcmp(shape, bench_shape(s)) == 0)
                print_shape(s, n, max);
    if (plugin_path)
        printf("%-28s %-5s %8s %15s %15s %15s %15s %8s\n", "milliseconds",
               "probe", "nodes", passes[0]->name, passes[1]->name,
               passes[2]->name, passes[3]->name, "all");
    for (; i < argc; i++)
        for (int probing = 0; probing < 2; probing++)
            print_model(argv[i], probing);
    return 0;
}
