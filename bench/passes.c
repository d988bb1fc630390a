/* passes.c: does every pass take time linear in the graph? Every known pass,
 * and the verifier, the printer and the parser, over graphs of 1e3 to 1e6
 * nodes of several shapes, each in a process of its own: nanoseconds per node,
 * how much more a node costs in the largest graph than in one of 1e4 (flat: at
 * most twice), and the memory taken at the peak beside the module itself.
 *     bench_passes [--shape NAME] [--pass NAME] [--max NODES] [--plugin
 * FILE.so]
 * --plugin partitions for that vendor; without it nobody takes anything.
 */
#include "cli/passes.h"
#include "partition/partition.h"
#include "runtime/internal.h"
#include "runtime_native/native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_SIZES = 4, MAX_WORK = 96, DEPTH = 100, FAN = 64 };
static const uint32_t sizes[N_SIZES] = {1000, 10000, 100000, 1000000};

/* --- graphs ------------------------------------------------------ */

struct graph {
    struct byi_module *m;
    struct byi_func *f;
    const struct byi_type *type;
    uint32_t n_consts;
};

static void start(struct graph *g, const char *name)
{
    static const int64_t dims[] = {1, 4, 2, 2};
    g->type = byi_type_tensor(g->m->arena, BYOC_F32, 4, dims);
    const uint32_t index = byi_func_new(g->m, name);
    g->f = g->m->funcs.at[index];
}

static byi_id param(struct graph *g, const char *name)
{
    return byi_add_param(g->m, g->f, name, g->type);
}

static byi_id call(struct graph *g, enum byi_op_id op, const byi_id *args,
                   uint32_t n)
{
    byi_id id = BYI_NO_ID;
    struct byoc_error err;
    const struct byi_sources *sources = byi_sources_one(
        g->m, byi_source_new(g->m, byi_op(op)->name, byi_op(op)->name));
    if (byi_add_call(g->m, g->f, op, args, n, NULL, 0, sources, &id, &err)) {
        fprintf(stderr, "bench_passes: %s\n", err.text);
        exit(1);
    }
    return id;
}

/* A constant that no other is equal to. */
static byi_id constant(struct graph *g, uint32_t rank, const int64_t *dims)
{
    float data[16];
    const struct byi_type *type =
        byi_type_tensor(g->m->arena, BYOC_F32, rank, dims);
    const int64_t n = byi_elements(rank, dims);
    for (int64_t i = 0; i < n; i++)
        data[i] = 0.5f + (float)(i % 3) * 0.25f;
    data[0] = (float)++g->n_consts;
    return byi_add_const(g->m, g->f, byi_const_add(g->m, type, data, false),
                         NULL);
}

/* One operator after the other. */
static void make_chain(struct graph *g, uint32_t n)
{
    static const enum byi_op_id ops[] = {BYI_OP_TANH, BYI_OP_NN_RELU,
                                         BYI_OP_SIGMOID};
    static const int64_t channels[] = {4, 1, 1};
    start(g, "main");
    byi_id x = param(g, "x");
    for (uint32_t i = 0; g->f->nodes.n < n; i++) {
        x = call(g, ops[i % 3], &x, 1);
        if (i % 4 == 3)
            x = call(g, i % 8 == 3 ? BYI_OP_ADD : BYI_OP_MULTIPLY,
                     (byi_id[]){x, constant(g, 3, channels)}, 2);
    }
    g->f->result = x;
}

/* Many readers of one value, joined two by two. */
static void make_wide(struct graph *g, uint32_t n)
{
    static const int64_t channels[] = {4, 1, 1};
    BYI_VEC(byi_id) ends = {0};
    start(g, "main");
    const byi_id x = param(g, "x");
    while (g->f->nodes.n + ends.n < n) {
        byi_id y = call(g, BYI_OP_MULTIPLY,
                        (byi_id[]){x, constant(g, 3, channels)}, 2);
        y = call(g, BYI_OP_NN_RELU, &y, 1);
        BYI_PUSH(&ends, y);
    }
    for (uint32_t i = 0; i + 1 < ends.n; i += 2) {
        const byi_id sum = call(g, BYI_OP_ADD, &ends.at[i], 2);
        BYI_PUSH(&ends, sum);
    }
    g->f->result = ends.at[ends.n - 1];
    byi_vec_free(ends.at);
}

static byi_id conv_norm(struct graph *g, byi_id x)
{
    static const int64_t weights[] = {4, 4, 1, 1}, channels[] = {4};
    byi_id args[5] = {x, constant(g, 4, weights)};
    args[0] = call(g, BYI_OP_NN_CONV2D, args, 2);
    for (uint32_t i = 1; i < 5; i++)
        args[i] = constant(g, 1, channels);
    return call(g, BYI_OP_NN_BATCH_NORM, args, 5);
}

/* Blocks of conv, batch norm, relu, conv, batch norm, add, relu. */
static void make_residual(struct graph *g, uint32_t n)
{
    start(g, "main");
    byi_id x = param(g, "x");
    while (g->f->nodes.n < n) {
        byi_id y = conv_norm(g, x);
        y = call(g, BYI_OP_NN_RELU, &y, 1);
        y = conv_norm(g, y);
        y = call(g, BYI_OP_ADD, (byi_id[]){y, x}, 2);
        x = call(g, BYI_OP_NN_RELU, &y, 1);
    }
    g->f->result = x;
}

/* A function without parameters of its own, given what `f` captures. */
static byi_id literal(struct graph *g, const struct byi_func *inner,
                      uint32_t index, const byi_id *captures)
{
    return byi_add_fn(g->m, g->f, index, captures, inner->n_captures, NULL);
}

static uint32_t leaf(struct graph *g, enum byi_op_id op)
{
    const uint32_t index = g->m->funcs.n;
    start(g, NULL);
    const byi_id x = param(g, "x");
    g->f->n_captures = 1;
    g->f->result = call(g, op, &x, 1);
    return index;
}

/* if (%c) { %y = ...; if (%c) { ... } else { ... } } else { relu(%x) } */
static uint32_t nest(struct graph *g, const struct byi_type *flag)
{
    uint32_t inner = leaf(g, BYI_OP_TANH);
    for (uint32_t depth = 1; depth < DEPTH; depth++) {
        const uint32_t other = leaf(g, BYI_OP_NN_RELU);
        const uint32_t index = g->m->funcs.n;
        byi_id id = BYI_NO_ID;
        start(g, NULL);
        const byi_id x = param(g, "x");
        const byi_id c = byi_add_param(g->m, g->f, "c", flag);
        g->f->n_captures = 2;
        const byi_id y = call(g, BYI_OP_SIGMOID, &x, 1);
        const byi_id then =
            literal(g, g->m->funcs.at[inner], inner, (byi_id[]){y, c});
        const byi_id otherwise = literal(g, g->m->funcs.at[other], other, &x);
        if (byi_add_if(g->m, g->f, c, then, otherwise, NULL, &id, NULL))
            exit(1);
        g->f->result = id;
        inner = index;
    }
    return inner;
}

static uint64_t count_nodes(const struct byi_module *m)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        n += m->funcs.at[i]->nodes.n;
    return n;
}

/* Branches in branches, DEPTH of them, one such tower after the other. */
static void make_nested(struct graph *g, uint32_t n)
{
    const struct byi_type *flag =
        byi_type_tensor(g->m->arena, BYOC_BOOL, 0, NULL);
    BYI_VEC(uint32_t) towers = {0};
    for (uint32_t done = 0; done < n; done += DEPTH * 8)
        BYI_PUSH(&towers, nest(g, flag));
    start(g, "main");
    byi_id x = param(g, "x");
    const byi_id c = byi_add_param(g->m, g->f, "c", flag);
    for (uint32_t i = 0; i < towers.n; i++) {
        const byi_id fn = literal(g, g->m->funcs.at[towers.at[i]], towers.at[i],
                                  (byi_id[]){x, c});
        if (byi_add_apply(g->m, g->f, fn, NULL, 0, NULL, &x, NULL))
            exit(1);
    }
    g->f->result = x;
    byi_vec_free(towers.at);
}

/* @globals of a few operators, each of which calls one before it. */
static void make_functions(struct graph *g, uint32_t n)
{
    const uint32_t each = 12;
    const uint32_t first = g->m->funcs.n;
    for (uint32_t i = 0; i < n / each; i++) {
        char name[24];
        const uint32_t before = g->m->funcs.n;
        snprintf(name, sizeof name, "f%u", i);
        start(g, name);
        byi_id x = param(g, "x");
        for (uint32_t k = 0; k < 8; k++)
            x = call(g, k % 2 ? BYI_OP_TANH : BYI_OP_NN_RELU, &x, 1);
        if (i > FAN) {
            const byi_id callee = byi_add_global(g->m, g->f, before - FAN);
            if (byi_add_apply(g->m, g->f, callee, &x, 1, NULL, &x, NULL))
                exit(1);
        }
        g->f->result = x;
    }
    const uint32_t end = g->m->funcs.n;
    start(g, "main");
    byi_id x = param(g, "x");
    for (uint32_t i = end > first + FAN ? end - FAN : first; i < end; i++)
        if (byi_add_apply(g->m, g->f, byi_add_global(g->m, g->f, i), &x, 1,
                          NULL, &x, NULL))
            exit(1);
    g->f->result = x;
}

static const struct {
    const char *name;
    void (*make)(struct graph *g, uint32_t n);
} shapes[] = {
    {"chain", make_chain},         {"wide", make_wide},
    {"residual", make_residual},   {"nested", make_nested},
    {"functions", make_functions},
};

/* --- work -------------------------------------------------------- */

/* What a process did: written by it, read by the one that prints. */
struct measured {
    double seconds;
    uint64_t nodes, bytes;
    bool failed;
    char why[200];
};

struct work {
    const char *name;
    const struct byi_pass *const *passes; /* NULL: `run` */
    uint32_t n;
    bool plugin;
    const char *first; /* a pass that makes what this one works on, or NULL */
    void (*prepare)(struct byi_module *m);
    enum byoc_status (*run)(struct byi_module *m, struct byoc_error *err);
};

/* Of this process alone: others may be at work. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum byoc_status eval(const struct byi_op *op,
                             const struct byi_attrs *attrs, uint32_t n_in,
                             const struct byi_tensor *in, uint32_t n_out,
                             struct byi_tensor *out, struct byoc_error *err)
{
    return byoc_internal_kernel_eval(op, attrs, n_in, in, n_out, out, 1, err);
}

static struct byi_text text;
static FILE *side;

static enum byoc_status print(struct byi_module *m, struct byoc_error *err)
{
    (void)err;
    byi_print_module(m, &text, side);
    return BYOC_OK;
}

static void prepare_side(struct byi_module *m)
{
    (void)m;
    side = fdopen(memfd_create("consts", 0), "w+");
}

static void prepare_text(struct byi_module *m)
{
    prepare_side(m);
    byi_print_module(m, &text, side);
    fflush(side);
}

static enum byoc_status parse(struct byi_module *m, struct byoc_error *err)
{
    char path[48];
    struct byi_module *parsed = NULL;
    (void)m;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(side));
    return byi_parse_module(text.at, text.n, "printed", path, &parsed, err);
}

static enum byoc_status verify(struct byi_module *m, struct byoc_error *err)
{
    return byi_verify(m, err);
}

static const struct {
    const char *name, *first;
} forms[] = {
    {"CheckBasicBlockNormalForm", "ToBasicBlockNormalForm"},
    {"ToGraphNormalForm", "ToANormalForm"},
    {"EliminateTransposes", "ConvertLayout"},
};

static const char *find_first(const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0)
            return forms[i].first;
    return NULL;
}

/* --- memory: what Linux says of this process --------------------- */

static uint64_t read_memory(const char *field)
{
    char line[256];
    uint64_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            kilobytes = strtoull(line + strlen(field), NULL, 10);
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f)
        return;
    fputs("5", f);
    fclose(f);
}

/* --- one measurement --------------------------------------------- */

static const char *plugin_path;

static enum byoc_status open_vendor(struct byi_vendors *v,
                                    struct byoc_error *err)
{
    struct byi_plugin *plugin = NULL;
    BYI_TRY(byoc_internal_plugin_open(plugin_path, 1, &plugin, err));
    byi_match_host(&plugin->host);
    const struct byoc_backend *backend = plugin->backend;
    const struct byoc_host *host = &plugin->host;
    return byi_vendors_init(v, &backend, &host, 1, err);
}

static enum byoc_status work_on(const struct work *w, struct byi_module *m,
                                struct measured *out, struct byoc_error *err)
{
    struct byi_vendors vendors = {0};
    struct byi_pass_context ctx = {.opt_level = 3,
                                   .by_hand = true,
                                   .known = byi_passes_known(),
                                   .eval = eval};
    if (w->plugin) {
        BYI_TRY(open_vendor(&vendors, err));
        ctx.vendors = &vendors;
    }
    if (w->prepare)
        w->prepare(m);
    if (w->first) {
        const struct byi_pass *first = byi_pass_find(w->first);
        BYI_TRY(byi_run_passes(m, &first, 1, &ctx, err));
    }
    forget_peak();
    const uint64_t resident = read_memory("VmRSS:");
    const double began = now();
    const enum byoc_status status =
        w->run ? w->run(m, err) : byi_run_passes(m, w->passes, w->n, &ctx, err);
    out->seconds = now() - began;
    const uint64_t peak = read_memory("VmHWM:");
    out->bytes = peak > resident ? peak - resident : 0;
    return status;
}

static void measure_here(const struct work *w, uint32_t shape, uint32_t size,
                         struct measured *out)
{
    struct byoc_error err = {0};
    struct graph g = {.m = byi_module_new()};
    shapes[shape].make(&g, size);
    out->nodes = count_nodes(g.m);
    out->failed = work_on(w, g.m, out, &err) != BYOC_OK;
    snprintf(out->why, sizeof out->why, "%.199s", err.text);
}

/* In a process of its own, so that small graphs find no warm memory either. */
static struct measured measure_once(const struct work *w, uint32_t shape,
                                    uint32_t size)
{
    struct measured *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct measured result;
    int status = 0;
    if (shared == MAP_FAILED)
        exit(1);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        measure_here(w, shape, size, shared);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    result = *shared;
    if (pid < 0 || status != 0) {
        result.failed = true;
        snprintf(result.why, sizeof result.why, "died, status %d", status);
    }
    munmap(shared, sizeof *shared);
    return result;
}

/* The best of several. */
static struct measured measure(const struct work *w, uint32_t shape,
                               uint32_t size)
{
    struct measured best = measure_once(w, shape, size);
    const uint32_t more = size > 10000 ? 2 : 10;
    for (uint32_t i = 0; i < more && !best.failed; i++) {
        const struct measured again = measure_once(w, shape, size);
        if (again.failed || again.seconds < best.seconds)
            best = again;
    }
    return best;
}

/* --- the table --------------------------------------------------- */

/* Nanoseconds per node at each size; false where one failed. */
static void print_row(const struct work *w, uint32_t shape, uint32_t max)
{
    double per_node[N_SIZES] = {0};
    struct measured last = {0};
    printf("%-28s", w->name);
    for (uint32_t i = 0; i < N_SIZES && sizes[i] <= max; i++) {
        last = measure(w, shape, sizes[i]);
        if (last.failed) {
            printf("  %s\n", last.why);
            return;
        }
        per_node[i] = 1e9 * last.seconds / (double)last.nodes;
        printf(" %8.0f", per_node[i]);
        fflush(stdout);
    }
    if (per_node[3] > 0)
        printf(" %6.2f%s", per_node[3] / per_node[1],
               per_node[3] > 2.0 * per_node[1] ? "!" : " ");
    printf(" %8.0f %8.2f\n", (double)last.bytes / (double)last.nodes,
           last.seconds);
}

static uint32_t list_work(struct work all[MAX_WORK],
                          const struct byi_pass *const *pipeline)
{
    const struct byi_pass *const *known = byi_passes_known();
    uint32_t n = 0, steps = 0;
    while (pipeline[steps])
        steps++;
    all[n++] = (struct work){.name = "verify", .run = verify};
    all[n++] =
        (struct work){.name = "print", .prepare = prepare_side, .run = print};
    all[n++] =
        (struct work){.name = "parse", .prepare = prepare_text, .run = parse};
    for (; *known && n + 1 < MAX_WORK; known++)
        all[n++] = (struct work){.name = (*known)->name,
                                 .passes = known,
                                 .n = 1,
                                 .first = find_first((*known)->name)};
    all[n++] =
        (struct work){.name = "pipeline", .passes = pipeline, .n = steps};
    for (uint32_t i = 0; plugin_path && i < n; i++)
        all[i].plugin = !all[i].run;
    return n;
}

int main(int argc, char **argv)
{
    const char *shape = NULL, *pass = NULL;
    uint32_t max = sizes[N_SIZES - 1];
    struct work all[MAX_WORK];
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
    const uint32_t n = list_work(all, byi_passes_pipeline());
    for (uint32_t s = 0; s < BYI_COUNT(shapes); s++) {
        if (shape && strcmp(shape, shapes[s].name) != 0)
            continue;
        printf("%s, nanoseconds per node at\n%-28s %8s %8s %8s %8s %6s %8s "
               "%8s\n",
               shapes[s].name, "", "1e3", "1e4", "1e5", "1e6", "ratio",
               "bytes/n", "s");
        for (uint32_t i = 0; i < n; i++)
            if (!pass || strcmp(pass, all[i].name) == 0)
                print_row(&all[i], s, max);
        printf("\n");
    }
    return 0;
}
