/* SPDX-License-Identifier: Apache-2.0 */
/* bound.c: compares the time of a model's run with the time of its oneDNN
 * primitives.
 *
 *     bound [--threads N] [--seconds S] [--dim NAME=SIZE]... [--all] MODEL.onnx
 *
 * Times the model and the chain in turns, in one process, for S seconds (3),
 * and then each primitive. The model runs by byoc_run with N threads (default:
 * see `byoc run --help`), and --dim gives the size of a symbolic dim. The chain
 * is all primitives of the regions that ran, back to back. Each primitive runs
 * alone in a loop. All three use the same
 * primitives, packed weights and buffers, which the recorder (bound_recorder.c)
 * finds. Every turn of the chain follows a run of the model, and reads the data
 * that the run left in the buffers. Inputs are read from NAME.input_K.npy
 * beside the model, or are random if there are no such files. --all also prints
 * a table of the primitives. Exits with 1 if the model cannot be measured, and
 * with 2 for wrong arguments.
 */
#include <byoc/byoc.h>

#include "bench/bound.h"
#include "core/base/clock.h"
#include "core/base/openmp.h"
#include "driver/feed.h"
#include "runtime/internal.h"
#include "runtime_dnnl/build.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void on_workers(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                       void *arg)
{
    (void)ctx;
    byoc_internal_parallel_for(n, fn, arg);
}

enum {
    WARMUP = 3,    /* runs of the model before all measurements */
    MIN_TURNS = 7, /* of the model and the chain */
    ROUNDS = 3,    /* in which each primitive runs alone */
    MIN_REPS = 4,  /* runs of a primitive in a round */
    MAX_REPS = 15
};

struct bound_options {
    const char *path, *dims[17]; /* dims: NAME=SIZE, a NULL after the last */
    uint32_t threads, n_dims;
    double seconds;
    int all;
};

struct bound_times {
    double *at; /* seconds */
    uint32_t n, cap;
};

/* A primitive, in the order of the model. */
struct bound_primitive {
    const struct bound_call *call;
    uint32_t step; /* index in the steps of the call's program */
    struct bound_times alone;
};

struct bound {
    struct byoc_compiled *compiled;
    struct byoc_model *model;
    struct byoc_state *state;
    struct byi_arena *arena;
    struct byi_feed in, out;
    struct bound_record *record;
    struct bound_call *calls; /* of one run of the model */
    uint32_t n_calls, n_reorders;
    BYI_VEC(struct bound_primitive) prims;
    /* of the model, of the model outside of regions, of the chain; and the
     * ratio model / chain of each turn */
    struct bound_times run, outside, chain, ratio;
    void *saved_result; /* as large as the largest result */
};

/* The median; sorts the times. */
static double median(struct bound_times *t)
{
    qsort(t->at, t->n, sizeof *t->at, byi_compare_doubles);
    return t->n % 2 ? t->at[t->n / 2]
                    : (t->at[t->n / 2 - 1] + t->at[t->n / 2]) / 2;
}

/* --- the model ------------------------------------------------------------ */

static enum byoc_status run_model(struct bound *b, struct byoc_error *err)
{
    b->record->n = 0;
    b->record->ns = 0;
    double start = byi_now();
    BYI_TRY(
        byoc_run(b->state, b->in.views, b->in.n, b->out.views, b->out.n, err));
    double seconds = byi_now() - start;
    for (uint32_t i = 0; i < b->out.n; i++)
        b->out.views[i].data = NULL; /* the next run sets it again */
    BYI_PUSH(&b->run, seconds);
    BYI_PUSH(&b->outside, seconds - 1e-9 * (double)b->record->ns);
    return BYOC_OK;
}

/* Find the recorder, in the folder of this program. */
static enum byoc_status find_recorder(struct bound *b, char *path, size_t n,
                                      struct byoc_error *err)
{
    static const char name[] = "bound_recorder.so";
    ssize_t len = readlink("/proc/self/exe", path, n - sizeof name - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return byi_fail(
            err, BYOC_EIO,
            "/proc/self/exe: found no readable link, expected the path "
            "of this program");
    strcpy(slash + 1, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    b->record = library ? dlsym(library, BOUND_RECORD) : NULL;
    if (!b->record)
        return byi_fail(err, BYOC_EIO, "%s", dlerror());
    return BYOC_OK;
}

/* The prefix "a/b/NAME." of the model's inputs if NAME.input_0.npy exists, or
 * NULL. */
static const char *find_data(struct bound *b, const char *path)
{
    const size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 5, ".onnx"))
        return NULL;
    const char *data = byi_arena_strn(b->arena, path, n - 4);
    const char *first = byi_arena_printf(b->arena, "%sinput_0.npy", data);
    return access(first, R_OK) == 0 ? data : NULL;
}

static enum byoc_status open_model(struct bound *b,
                                   const struct bound_options *o,
                                   struct byoc_error *err)
{
    char plugin[4096];
    BYI_TRY(find_recorder(b, plugin, sizeof plugin, err));
    const struct byoc_compile_params compile = {
        .plugins = plugin, .dims = o->dims, .threads = o->threads};
    BYI_TRY(byoc_compile(o->path, &compile, &b->compiled, err));
    const struct byoc_load_params load = {
        .plugins = plugin, .threads = o->threads, .require_backends = 1};
    BYI_TRY(byoc_compiled_load(b->compiled, &load, &b->model, err));
    BYI_TRY(byoc_state_new(b->model, &b->state, err));
    const struct byi_feed_params feed = {
        .data = find_data(b, o->path), .dims = o->dims, .seed = 1};
    BYI_TRY(byi_feed_inputs(b->model, &feed, b->arena, &b->in, err));
    b->out = byi_feed_outputs(b->model, b->arena);
    return BYOC_OK;
}

/* --- the primitives ------------------------------------------------------- */

static const struct byi_dnnl_step *step_of(const struct bound_primitive *p)
{
    const struct byi_program *program = p->call->compiled;
    return &program->steps.at[p->step];
}

static bool is_reorder(const struct bound_primitive *p)
{
    return strcmp(step_of(p)->name, "reorder") == 0;
}

static enum byoc_status run_primitive(const struct bound_primitive *p,
                                      struct byoc_error *err)
{
    return byi_dn_exec_step(p->call->state, p->step, err);
}

/* The place that a primitive writes its result to, and the bytes from there to
 * the end of the buffer; NULL if it is unknown. */
static void *result_of(const struct bound_primitive *p, uint64_t *bytes)
{
    const struct byi_program *program = p->call->compiled;
    const struct byi_dnnl_step *step = step_of(p);
    for (uint32_t i = 0; i < step->n_slots; i++) {
        const struct byi_place *at = &step->slots[i].at;
        if (step->slots[i].arg != BYI_ARG_DST)
            continue;
        if (at->kind == BYI_BUF_OUTPUT) {
            const struct byoc_view *output = &p->call->outputs[at->index];
            *bytes = output->bytes - at->offset;
            return (char *)output->data + at->offset;
        }
        if (at->kind == BYI_BUF_TEMP) {
            *bytes = program->temp_bytes - at->offset;
            return (char *)byi_dn_exec_temps(p->call->state) + at->offset;
        }
    }
    *bytes = 0;
    return NULL;
}

/* List the primitives that the last run of the model executed. */
static enum byoc_status list_primitives(struct bound *b, struct byoc_error *err)
{
    b->n_calls = b->record->n;
    b->calls =
        byi_arena_copy(b->arena, b->record->at, b->n_calls * sizeof *b->calls);
    uint64_t max_bytes = 1;
    for (uint32_t i = 0; i < b->n_calls; i++) {
        const struct byi_program *program = b->calls[i].compiled;
        for (uint32_t k = 0; k < program->steps.n; k++) {
            const struct bound_primitive p = {.call = &b->calls[i], .step = k};
            uint64_t bytes = 0;
            result_of(&p, &bytes);
            max_bytes = bytes > max_bytes ? bytes : max_bytes;
            b->n_reorders += is_reorder(&p);
            BYI_PUSH(&b->prims, p);
        }
    }
    if (b->prims.n == 0)
        return byi_fail(
            err, BYOC_EUNSUPPORTED,
            "found no oneDNN primitive in the run, expected at least "
            "one; try `byoc check`, which says why");
    b->saved_result = byi_acquire(max_bytes);
    return b->saved_result ? BYOC_OK
                           : byi_fail(err, BYOC_ENOMEM, "out of memory");
}

/* --- measuring ------------------------------------------------------------ */

static enum byoc_status run_chain(struct bound *b, struct byoc_error *err)
{
    double start = byi_now();
    for (uint32_t i = 0; i < b->prims.n; i++)
        BYI_TRY(run_primitive(&b->prims.at[i], err));
    BYI_PUSH(&b->chain, byi_now() - start);
    return BYOC_OK;
}

/* Time the model and the chain in turns, so that other load slows both. */
static enum byoc_status time_turns(struct bound *b, double seconds,
                                   struct byoc_error *err)
{
    b->run.n = b->outside.n = 0;
    for (double start = byi_now();
         b->run.n < MIN_TURNS || byi_now() - start < seconds;) {
        BYI_TRY(run_model(b, err));
        BYI_TRY(run_chain(b, err));
        BYI_PUSH(&b->ratio,
                 b->run.at[b->run.n - 1] / b->chain.at[b->run.n - 1]);
    }
    return BYOC_OK;
}

/* Time one primitive in a loop. Afterwards restore its result: if it works in
 * place, or accumulates, repetition may produce infinities or denormals, which
 * would change the time of later primitives. */
static enum byoc_status time_alone(struct bound *b, struct bound_primitive *p,
                                   uint32_t reps, struct byoc_error *err)
{
    uint64_t bytes;
    BYI_TRY(run_primitive(p, err));
    void *result = result_of(p, &bytes);
    if (result)
        memcpy(b->saved_result, result, bytes);
    BYI_TRY(run_primitive(p, err)); /* warms the caches again */
    for (uint32_t i = 0; i < reps; i++) {
        double start = byi_now();
        BYI_TRY(run_primitive(p, err));
        BYI_PUSH(&p->alone, byi_now() - start);
    }
    if (result)
        memcpy(result, b->saved_result, bytes);
    return BYOC_OK;
}

static enum byoc_status time_all_alone(struct bound *b, double seconds,
                                       struct byoc_error *err)
{
    double wanted_reps = seconds / (ROUNDS * median(&b->chain));
    uint32_t reps = wanted_reps < MIN_REPS   ? MIN_REPS
                    : wanted_reps > MAX_REPS ? MAX_REPS
                                             : (uint32_t)wanted_reps;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        BYI_TRY(run_model(b, err)); /* computes the inputs of all primitives */
        for (uint32_t i = 0; i < b->prims.n; i++)
            BYI_TRY(time_alone(b, &b->prims.at[i], reps, err));
    }
    return BYOC_OK;
}

static enum byoc_status measure(struct bound *b, const struct bound_options *o,
                                struct byoc_error *err)
{
    BYI_TRY(open_model(b, o, err));
    for (uint32_t i = 0; i < WARMUP; i++)
        BYI_TRY(run_model(b, err));
    BYI_TRY(list_primitives(b, err));
    /* during a run, the plug-in sets the threads of oneDNN's OpenMP regions;
     * the chain has to set them here */
    static struct byi_omp_host host = {.parallel_for = on_workers};
    host.threads = byoc_model_threads(b->model, NULL);
    byi_omp_use(&host);
    BYI_TRY(run_chain(b, err));
    b->chain.n = 0;
    BYI_TRY(time_turns(b, o->seconds, err));
    /* time_all_alone runs the model, too; only the times of the turns count */
    struct bound_times run = b->run, outside = b->outside;
    b->run = b->outside = (struct bound_times){0};
    enum byoc_status status = time_all_alone(b, o->seconds, err);
    byi_vec_free(b->run.at);
    byi_vec_free(b->outside.at);
    b->run = run;
    b->outside = outside;
    return status;
}

/* --- printing ------------------------------------------------------------- */

static double flops_of_node(const cJSON *nodes, const char *name, size_t n)
{
    const cJSON *node;
    cJSON_ArrayForEach(node, nodes)
    {
        const char *found = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(node, "name"));
        const cJSON *flops = cJSON_GetObjectItemCaseSensitive(node, "flops");
        if (found && strlen(found) == n && memcmp(found, name, n) == 0)
            return cJSON_IsNumber(flops) ? flops->valuedouble : 0;
    }
    return 0;
}

/* The floating-point operations of a primitive's nodes, as the ledger counts
 * them. 0 for a reorder, for a primitive whose nodes are unknown, and if
 * several primitives compute these nodes. */
static double flops_of(const struct bound *b, const struct bound_primitive *p,
                       const cJSON *nodes)
{
    const char *sources = step_of(p)->sources;
    double sum = 0;
    if (!sources || is_reorder(p))
        return 0;
    for (uint32_t i = 0; i < b->prims.n; i++) {
        const struct bound_primitive *other = &b->prims.at[i];
        const char *other_sources = step_of(other)->sources;
        if (other != p && !is_reorder(other) && other_sources &&
            strcmp(other_sources, sources) == 0)
            return 0;
    }
    for (const char *at = sources; *at;) {
        const size_t n = strcspn(at, ",");
        sum += flops_of_node(nodes, at, n);
        at += n + (at[n] == ',');
    }
    return sum;
}

static void print_primitives(struct bound *b)
{
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(b->compiled));
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(ledger, "nodes");
    printf("%4s %12s %10s  %-28s %-28s %s\n", "", "alone us", "GFLOP/s",
           "primitive", "implementation", "nodes");
    for (uint32_t i = 0; i < b->prims.n; i++) {
        struct bound_primitive *p = &b->prims.at[i];
        const struct byi_program *program = p->call->compiled;
        const struct byi_dnnl_step *step = step_of(p);
        const double seconds = median(&p->alone), flops = flops_of(b, p, nodes);
        char rate[32] = "-";
        if (flops > 0)
            snprintf(rate, sizeof rate, "%.1f", 1e-9 * flops / seconds);
        printf("%4u %12.2f %10s  %-28s %-28s %s\n", i, 1e6 * seconds, rate,
               step->name, byi_prim_impl(program->prims.at[p->step]),
               step->sources ? step->sources : "");
    }
    cJSON_Delete(ledger);
}

static void print_line(const char *name, double mid, double minimum)
{
    printf("%-22s %10.3f %10.3f\n", name, 1e3 * mid, 1e3 * minimum);
}

static void print_table(struct bound *b, const struct bound_options *o)
{
    const char *why;
    const uint32_t threads = byoc_model_threads(b->model, &why);
    const double run = median(&b->run), chain = median(&b->chain);
    const double outside = median(&b->outside);
    double alone = 0, alone_min = 0;
    for (uint32_t i = 0; i < b->prims.n; i++) {
        alone += median(&b->prims.at[i].alone);
        alone_min += b->prims.at[i].alone.at[0];
    }
    printf("%s: %u primitives (%u of them reorders) in %u region%s; %u "
           "thread%s (%s); %u turns\n",
           o->path, b->prims.n, b->n_reorders, b->n_calls,
           b->n_calls == 1 ? "" : "s", threads, threads == 1 ? "" : "s", why,
           b->run.n);
    printf("%-22s %10s %10s\n", "ms", "median", "minimum");
    print_line("model", run, b->run.at[0]);
    print_line("  outside the regions", outside, b->outside.at[0]);
    print_line("chain", chain, b->chain.at[0]);
    print_line("each alone, summed", alone, alone_min);
    printf("%-22s %10.3f %10.3f\n", "model / chain", median(&b->ratio),
           b->run.at[0] / b->chain.at[0]);
    printf("%-22s %10.3f %10.3f\n", "chain / alone", chain / alone,
           b->chain.at[0] / alone_min);
}

/* --- the program ---------------------------------------------------------- */

static bool read_options(int argc, char **argv, struct bound_options *o)
{
    const struct option names[] = {
        {"threads", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 's'},
        {"dim", required_argument, NULL, 'd'},
        {"all", no_argument, &o->all, 1},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = "";
        if (c == 't')
            o->threads = (uint32_t)strtoul(optarg, &end, 10);
        else if (c == 's')
            o->seconds = byi_strtod(optarg, &end);
        else if (c == 'd' && o->n_dims + 1 < BYI_COUNT(o->dims))
            o->dims[o->n_dims++] = optarg;
        else if (c != 0)
            return false;
        if (*end || !(o->seconds >= 0) || o->threads > 4096)
            return false;
    }
    if (optind + 1 != argc)
        return false;
    o->path = argv[optind];
    return true;
}

static void close_bench(struct bound *b)
{
    byoc_state_free(&b->state);
    byoc_model_free(&b->model);
    byoc_compiled_free(&b->compiled);
    for (uint32_t i = 0; i < b->prims.n; i++)
        byi_vec_free(b->prims.at[i].alone.at);
    byi_vec_free(b->prims.at);
    byi_vec_free(b->run.at);
    byi_vec_free(b->outside.at);
    byi_vec_free(b->chain.at);
    byi_vec_free(b->ratio.at);
    byi_release(b->saved_result);
    byi_arena_free(&b->arena);
}

int main(int argc, char **argv)
{
    struct bound_options o = {.seconds = 3};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: bound [--threads N] [--seconds S] "
                        "[--dim NAME=SIZE]... [--all] MODEL.onnx\n");
        return 2;
    }
    struct byoc_error err;
    struct bound b = {.arena = byi_arena_new()};
    const enum byoc_status status = measure(&b, &o, &err);
    if (status != BYOC_OK)
        fprintf(stderr, "bound: %s\n", err.text);
    else {
        if (o.all)
            print_primitives(&b);
        print_table(&b, &o);
    }
    close_bench(&b);
    return status == BYOC_OK ? 0 : 1;
}
