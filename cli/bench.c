/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c: `byoc bench`: measures loading, the first run, later runs, and the
 * peak memory of the process.
 */
#include "cli.h"

#include "clients.h"

#include "report/report.h"
#include "runtime/internal.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number and the floating-point operations of all regions of the model, and
 * of the regions that run as native twins because their backend is missing or
 * failed. The operations are 0 without a ledger. */
struct twins {
    uint32_t regions, native;
    double flops, native_flops;
};

/* The results that `byoc bench` prints. */
struct result {
    double load, first; /* seconds; loading includes making the state */
    double *runs;       /* times of the n runs in seconds, sorted */
    double elapsed;     /* seconds of all runs together */
    double rate;        /* runs that are due per second; 0: no schedule */
    uint32_t n, clients, warmup, threads;
    const char *threads_from; /* what set the number of threads */
    double peak_mb;           /* peak memory of the process */
    struct twins twins;
    struct byoc_cache_stats cache; /* all 0 if sizes do not vary */
    struct byi_profile *profile;   /* NULL: not requested */
};

/* The p-th percentile of sorted values, by the nearest rank. */
static double percentile(const struct result *r, double p)
{
    /* round up, except for the rounding error of an integral product */
    uint32_t rank = (uint32_t)(p / 100 * r->n + 0.999999);
    return r->runs[rank > r->n ? r->n - 1 : rank ? rank - 1 : 0];
}

static double median(const struct result *r)
{
    return r->n % 2 ? r->runs[r->n / 2]
                    : (r->runs[r->n / 2 - 1] + r->runs[r->n / 2]) / 2;
}

static double mean(const struct result *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += r->runs[i];
    return sum / r->n;
}

/* Print how many regions ran as native twins: the times include these, so they
 * are not the times of the backends. */
static void print_twins(const struct twins *t)
{
    struct byi_text share = {0};
    if (t->flops > 0) {
        byi_text_put(&share, ", with ");
        byi_report_add_share(&share, t->native_flops, t->flops);
        byi_text_put(&share, " of the offloaded operations");
    }
    printf("native  %10u of %u regions%s\n", t->native, t->regions,
           share.n ? share.at : "");
    byi_text_free(&share);
}

static void print_text(const struct result *r)
{
    printf("load    %10.3f ms\n", 1e3 * r->load);
    printf("first   %10.3f ms\n", 1e3 * r->first);
    printf("min     %10.3f ms\n", 1e3 * r->runs[0]);
    printf("median  %10.3f ms\n", 1e3 * median(r));
    printf("mean    %10.3f ms\n", 1e3 * mean(r));
    printf("P95     %10.3f ms\n", 1e3 * percentile(r, 95));
    printf("P99     %10.3f ms\n", 1e3 * percentile(r, 99));
    printf("rate    %10.1f runs/s", r->n / r->elapsed);
    if (r->rate > 0)
        printf(" of %.1f that were due", r->rate);
    printf(r->clients > 1 ? ", by %u clients\n" : "\n", r->clients);
    printf("memory  %10.1f MB peak\n", r->peak_mb);
    if (r->cache.max_shapes)
        printf("shapes  %10u of %u, %.1f of %.1f MB; %llu hits, %llu misses, "
               "%llu evicted, %llu regions refused\n",
               r->cache.shapes, r->cache.max_shapes,
               (double)r->cache.bytes / 1e6, (double)r->cache.max_bytes / 1e6,
               (unsigned long long)r->cache.hits,
               (unsigned long long)r->cache.misses,
               (unsigned long long)r->cache.evictions,
               (unsigned long long)r->cache.refusals);
    if (r->twins.native)
        print_twins(&r->twins);
    printf("runs    %10u after %u of warm-up, %u thread%s (%s)\n", r->n,
           r->warmup, r->threads, byi_plural(r->threads), r->threads_from);
    if (r->profile)
        byi_profile_print(r->profile);
}

static void add_cache(cJSON *root, const struct byoc_cache_stats *cache)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"hits", cache->hits},           {"misses", cache->misses},
        {"builds", cache->builds},       {"failures", cache->failures},
        {"refusals", cache->refusals},   {"evictions", cache->evictions},
        {"shapes", cache->shapes},       {"max_shapes", cache->max_shapes},
        {"bytes", cache->bytes},         {"peak_bytes", cache->peak_bytes},
        {"max_bytes", cache->max_bytes},
    };
    cJSON *object = cJSON_AddObjectToObject(root, "cache");
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        cJSON_AddNumberToObject(object, rows[i].name, (double)rows[i].value);
}

static void print_json(const struct result *r)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "load_ms", 1e3 * r->load);
    cJSON_AddNumberToObject(root, "first_ms", 1e3 * r->first);
    cJSON_AddNumberToObject(root, "min_ms", 1e3 * r->runs[0]);
    cJSON_AddNumberToObject(root, "median_ms", 1e3 * median(r));
    cJSON_AddNumberToObject(root, "mean_ms", 1e3 * mean(r));
    cJSON_AddNumberToObject(root, "p95_ms", 1e3 * percentile(r, 95));
    cJSON_AddNumberToObject(root, "p99_ms", 1e3 * percentile(r, 99));
    cJSON_AddNumberToObject(root, "runs_per_second", r->n / r->elapsed);
    cJSON_AddNumberToObject(root, "clients", r->clients);
    if (r->rate > 0)
        cJSON_AddNumberToObject(root, "rate", r->rate);
    cJSON_AddNumberToObject(root, "peak_mb", r->peak_mb);
    cJSON_AddNumberToObject(root, "runs", r->n);
    cJSON_AddNumberToObject(root, "warmup", r->warmup);
    cJSON_AddNumberToObject(root, "threads", r->threads);
    cJSON_AddNumberToObject(root, "regions", r->twins.regions);
    cJSON_AddNumberToObject(root, "native_regions", r->twins.native);
    if (r->twins.flops > 0)
        cJSON_AddNumberToObject(root, "native_share",
                                r->twins.native_flops / r->twins.flops);
    if (r->cache.max_shapes)
        add_cache(root, &r->cache);
    if (r->profile)
        byi_profile_add_json(r->profile, root);
    struct byi_text text = {0};
    byi_json_print(root, &text);
    fputs(text.at, stdout);
    byi_text_free(&text);
    cJSON_Delete(root);
}

static enum byoc_status time_run(struct byoc_state *state,
                                 const struct byi_feed *in,
                                 struct byi_feed *out, double *seconds,
                                 struct byoc_error *err)
{
    double start = byi_now();
    BYI_TRY(byi_feed_run(state, in, out, err));
    *seconds = byi_now() - start;
    return BYOC_OK;
}

/* Time the first run, then do the remaining runs of the warm-up. */
static enum byoc_status warm_up(struct byoc_state *state,
                                const struct byi_feed *in, struct byi_feed *out,
                                struct result *r, struct byoc_error *err)
{
    double unused;
    BYI_TRY(time_run(state, in, out, &r->first, err));
    for (uint32_t i = 1; i < r->warmup; i++)
        BYI_TRY(time_run(state, in, out, &unused, err));
    return BYOC_OK;
}

/* Run until both `min_runs` runs have ended and `seconds` have passed, or after
 * BYI_BENCH_MAX_RUNS, and set the times in *r. */
static enum byoc_status time_runs(struct byoc_state *state,
                                  const struct byi_feed *in,
                                  struct byi_feed *out, uint32_t min_runs,
                                  double seconds, struct result *r,
                                  struct byoc_error *err)
{
    BYI_VEC(double) runs = {0};
    enum byoc_status status = BYOC_OK;
    if (r->profile)
        status = byoc_state_profile(state, byi_profile_event, r->profile, err);
    const double start = byi_now();
    while (status == BYOC_OK && runs.n < BYI_BENCH_MAX_RUNS &&
           (runs.n < min_runs || byi_now() - start < seconds)) {
        double run_seconds = 0;
        status = time_run(state, in, out, &run_seconds, err);
        BYI_PUSH(&runs, run_seconds);
    }
    r->elapsed = byi_now() - start;
    r->runs = runs.at;
    r->n = runs.n;
    return status;
}

/* Like time_runs, but by several clients or at a given rate. */
static enum byoc_status time_clients(const struct byoc_model *model,
                                     const struct byi_feed *in,
                                     uint32_t min_runs, double seconds,
                                     struct byi_arena *arena, struct result *r,
                                     struct byoc_error *err)
{
    struct byi_bench_clients bench = {.model = model,
                                      .in = in,
                                      .clients = r->clients,
                                      .min_runs = min_runs,
                                      .rate = r->rate,
                                      .seconds = seconds};
    BYI_TRY(byi_clients_run(&bench, arena, err));
    r->runs = bench.latency;
    r->n = bench.n;
    r->elapsed = bench.elapsed;
    return BYOC_OK;
}

/* Make a state of the model, run it repeatedly, and set the results in *r. */
static enum byoc_status bench(const struct byoc_model *model,
                              const struct byi_feed_params *feed,
                              uint32_t min_runs, double seconds,
                              struct byi_arena *arena, struct result *r,
                              struct byoc_error *err)
{
    struct byi_feed in, out = byi_feed_outputs(model, arena);
    struct byoc_state *state = NULL;
    min_runs = min_runs ? min_runs : 1;
    if (r->clients == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "--clients: found 0, expected 1 or more");
    BYI_TRY(byi_feed_inputs(model, feed, arena, &in, err));
    double start = byi_now();
    BYI_TRY(byoc_state_new(model, &state, err));
    r->load += byi_now() - start;
    r->threads = byoc_model_threads(model, &r->threads_from);
    if (r->profile)
        byi_profile_measure_peak(r->profile, r->threads);
    byi_progress_step("timing runs", 0, 0);
    enum byoc_status status = warm_up(state, &in, &out, r, err);
    if (status == BYOC_OK && (r->clients > 1 || r->rate > 0))
        status = time_clients(model, &in, min_runs, seconds, arena, r, err);
    else if (status == BYOC_OK)
        status = time_runs(state, &in, &out, min_runs, seconds, r, err);
    if (status == BYOC_OK)
        qsort(r->runs, r->n, sizeof *r->runs, byi_compare_doubles);
    if (r->profile)
        byi_profile_measure_peak(r->profile, r->threads);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    r->peak_mb = (double)usage.ru_maxrss * 1024 / 1e6;
    byoc_model_cache(model, &r->cache);
    byoc_state_free(&state);
    return status;
}

/* Count the regions that run their native twins; take FLOP from the ledger. */
static void count_twins(const struct byi_open_model *open, struct twins *t)
{
    struct byi_report ledger = {0};
    struct byoc_error err;
    uint64_t bytes = 0;
    const char *name;
    const char *json = open->compiled ? byoc_compiled_ledger(open->compiled)
                                      : byoc_model_ledger(open->model, &bytes);
    if (open->compiled)
        bytes = strlen(json);
    const bool has_ledger =
        json && byi_report_read(json, bytes, &ledger, &err) == BYOC_OK;
    *t = (struct twins){0};
    for (; (name = byoc_internal_region_name(open->model, t->regions));
         t->regions++) {
        const bool native = byoc_internal_region_fault(open->model, t->regions);
        t->native += native;
        for (uint32_t i = 0; i < ledger.n_regions; i++)
            if (strcmp(ledger.regions[i].name, name) == 0) {
                t->flops += ledger.regions[i].flops;
                t->native_flops += native ? ledger.regions[i].flops : 0;
            }
    }
    if (has_ledger)
        byi_report_free(&ledger);
}

/* Print *r as text or JSON, with the model's twins. The progress line ends
 * before, so that it cannot appear between two lines of the result. */
static void print_result(const struct byi_open_model *open, struct result *r,
                         bool json)
{
    byi_progress_end();
    count_twins(open, &r->twins);
    (json ? print_json : print_text)(r);
}

/* Write the profile as a page, with the model's ledger, and as a chart. */
static enum byoc_status draw_profile(const struct byi_open_model *open,
                                     const char *path,
                                     struct byi_pictures pictures,
                                     struct byi_profile *profile,
                                     struct byoc_error *err)
{
    struct byi_text ledger = {0};
    const char *json = NULL;
    if (open->compiled)
        json = byoc_compiled_ledger(open->compiled);
    else if (pictures.html)
        BYI_TRY(byi_read_ledger(path, &ledger, err));
    cJSON *root = cJSON_CreateObject();
    byi_profile_add_json(profile, root);
    pictures.profile = cJSON_GetObjectItem(root, "profile");
    enum byoc_status status =
        byi_write_pictures(&pictures, path, json ? json : ledger.at, err);
    cJSON_Delete(root);
    byi_text_free(&ledger);
    return status;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_bench};
    struct byi_feed_params feed = {.seed = 1};
    struct result r = {.warmup = 5, .clients = 1};
    const char *path;
    uint32_t min_runs = 10, n;
    double seconds = 1.5;
    bool json = false, profile = false;
    struct byi_pictures pictures = {0};
    const struct byi_option options[] = {
        {"data", 0, BYI_OPTION_TEXT, &feed.data, "DIR|PREFIX.",
         "read inputs from input_K.npy or .pb there (default: random)"},
        {"iterations", 0, BYI_OPTION_COUNT, &min_runs, "N",
         "at least this many runs (default: 10)"},
        {"warmup", 0, BYI_OPTION_COUNT, &r.warmup, "N",
         "warm-up runs, the first run included (default: 5)"},
        {"seconds", 0, BYI_OPTION_SECONDS, &seconds, "S",
         "run for at least this long (default: 1.5)"},
        {"clients", 0, BYI_OPTION_COUNT, &r.clients, "N",
         "threads that run the model at once (default: 1)"},
        {"rate", 0, BYI_OPTION_NUMBER, &r.rate, "R",
         "R runs are due in a second; times count from when a run was due"},
        {"json", 0, BYI_OPTION_FLAG, &json, NULL, "print JSON"},
        {"profile", 0, BYI_OPTION_FLAG, &profile, NULL,
         "print the time and work of each step of a run"},
        {"html", 0, BYI_OPTION_TEXT, &pictures.html, "FILE",
         "--profile, and write a page that shows the times in the graph"},
        {"svg", 0, BYI_OPTION_TEXT, &pictures.svg, "FILE",
         "--profile, and write a chart of operators and steps"},
        BYI_MODEL_OPTIONS(o),
    };
    int code =
        byi_parse_options(&byi_command_bench, options, BYI_COUNT(options), argc,
                          argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    struct byoc_error err;
    struct byi_open_model open;
    double start = byi_now();
    if (byi_open_model(path, &o, &open, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_bench, &err);
    r.load = byi_now() - start;
    feed.dims = open.dims;
    struct byi_arena *arena = byi_arena_new();
    code = open.gate;
    const bool draws = pictures.html || pictures.svg;
    r.profile = profile || draws ? byi_profile_new(arena) : NULL;
    if (bench(open.model, &feed, min_runs, seconds, arena, &r, &err) !=
            BYOC_OK ||
        (draws &&
         draw_profile(&open, path, pictures, r.profile, &err) != BYOC_OK))
        code = byi_cli_print_error(&byi_command_bench, &err);
    else
        print_result(&open, &r, json);
    byi_profile_free(r.profile);
    byi_vec_free(r.runs);
    byi_arena_free(&arena);
    byi_close_model(&open);
    return code;
}

const struct byi_command byi_command_bench = {
    .name = "bench",
    .usage = "MODEL.so|MODEL.onnx [OPTIONS]",
    .summary = "time loading and runs of a model",
    .example = "byoc bench digits.so\n"
               "byoc bench digits.so --threads 1 --profile\n"
               "byoc bench digits.so --html times.html --svg times.svg\n"
               "byoc bench digits.so --threads 1 --clients 2 --rate 500\n",
    .steps = BYI_COMPILES | BYI_LOADS,
    .run = run,
};
