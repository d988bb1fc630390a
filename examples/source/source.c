/* SPDX-License-Identifier: Apache-2.0 */
/* source.c: a backend that writes C: float32 arithmetic with broadcasting
 * becomes one loop nest, which the machine's C compiler optimises.
 */
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 2)
#include <byoc/backend.h>
#include <byoc/graph.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    RANK = BYOC_GRAPH_RANK,
    MAX_TENSORS = 64,
    MIN_PARALLEL_BYTES = 1 << 16 /* a run uses several threads if each of its
                                  * results has at least this many bytes */
};

/* The operators, each as a C expression of its operands, %a and %b. */
static const struct {
    const char *name, *expression;
    uint32_t n_args;
} ops[] = {
    {"add", "%a + %b", 2},
    {"subtract", "%a - %b", 2},
    {"multiply", "%a * %b", 2},
    {"divide", "%a / %b", 2},
    {"maximum", "%a > %b || %a != %a ? %a : %b", 2},
    {"minimum", "%a < %b || %a != %a ? %a : %b", 2},
    {"nn.relu", "%a < 0.0f ? 0.0f : %a", 1},
    {"negative", "-%a", 1},
    {"abs", "fabsf(%a)", 1},
    {"sqrt", "sqrtf(%a)", 1},
    {"exp", "expf(%a)", 1},
    {"tanh", "tanhf(%a)", 1},
    {"sigmoid", "1.0f / (1.0f + expf(-%a))", 1},
};
enum { N_OPS = sizeof ops / sizeof ops[0] };

/* Returns why a value of the match is refused; NULL: it is accepted, or the
 * match has no such value. */
static const char *check_type(const struct byoc_host *host,
                              const struct byoc_match *m, const char *name)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    if (!host->match_type(m, name, &dtype, &rank, &dims))
        return NULL;
    for (uint32_t d = 0; d < rank; d++)
        if (dims[d] <= 0)
            dtype = 0;
    if (dtype == BYOC_F32 && rank <= RANK)
        return NULL;
    return host->match_say(m,
                           "found %s, expected float32 of at most rank %d and "
                           "of fixed sizes of at least 1",
                           host->match_show(m, name), RANK);
}

static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    const char *why = check_type(host, m, NULL);
    why = why ? why : check_type(host, m, "a");
    return why ? why : check_type(host, m, "b");
}

static const struct byoc_pattern patterns[] = {
    {"source.binary", "add|subtract|multiply|divide|maximum|minimum(%a, %b)",
     accept},
    {"source.unary", "nn.relu|negative|abs|sqrt|exp|tanh|sigmoid(%a)", accept},
};

/* A growing text, in memory from the host. */
struct text {
    const struct byoc_host *host;
    char *at;
    uint64_t n, capacity;
    int exhausted;
};

/* Append to the text, as printf does. */
static void add(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const uint64_t n = (uint64_t)vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (t->n + n + 1 > t->capacity && !t->exhausted) {
        const uint64_t capacity = 2 * (t->n + n) + 4096;
        char *memory = t->host->acquire(t->host->ctx, capacity);
        t->exhausted = !memory;
        if (memory && t->at)
            memcpy(memory, t->at, t->n);
        t->host->release(t->host->ctx, t->at);
        t->at = memory;
        t->capacity = capacity;
    }
    if (t->exhausted)
        return;
    va_start(list, format);
    vsnprintf(t->at + t->n, n + 1, format, list);
    va_end(list);
    t->n += n;
}

/* The operator of a step, or N_OPS if the table does not have it. */
static uint32_t op_of(const struct byoc_graph_step *s)
{
    uint32_t op = 0;
    while (op < N_OPS && (strcmp(ops[op].name, s->name) != 0 ||
                          ops[op].n_args != s->n_args || s->n_outs != 1))
        op++;
    return op;
}

/* The reason why one loop nest cannot compute the region, or NULL. */
static const char *find_fault(const struct byoc_graph *g, uint32_t n_consts)
{
    const struct byoc_graph_value *first = &g->values[g->outputs[0]];
    if (g->n_inputs + n_consts + g->n_outputs > MAX_TENSORS)
        return "found too many tensors, expected at most 64";
    for (uint32_t i = 0; i < g->n_values; i++)
        if (g->values[i].dtype != BYOC_F32)
            return "found another element type, expected float32";
    for (uint32_t i = 0; i < g->n_values; i++)
        if (g->values[i].count == 0)
            return "found an empty tensor, expected at least one element";
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const struct byoc_graph_value *v = &g->values[g->outputs[i]];
        if (v->rank != first->rank ||
            memcmp(v->dims, first->dims, v->rank * sizeof *v->dims) != 0)
            return "found results of different shapes, expected one shape";
    }
    for (uint32_t i = 0; i < g->n_steps; i++)
        if (op_of(&g->steps[i]) == N_OPS)
            return "found an operator that this backend does not support";
    return NULL;
}

/* The loops over the results, outermost first. */
struct nest {
    const struct byoc_graph *g;
    uint32_t n_consts;
    const struct byoc_graph_value *result; /* all results have the shape of this
                                            * one */
    uint32_t n_loops;
    uint32_t axis[RANK];  /* for each loop: the innermost of the results' axes
                           * that it iterates over */
    int64_t extent[RANK]; /* for each loop: number of iterations */
};

/* The stride of value v, in elements, along axis d of the results: 0 if it is
 * broadcast. */
static int64_t stride_of(const struct nest *n, const struct byoc_graph_value *v,
                         uint32_t d)
{
    const uint32_t skip = n->result->rank - v->rank;
    int64_t stride = 1;
    if (d < skip || v->dims[d - skip] == 1)
        return 0;
    for (uint32_t i = d - skip + 1; i < v->rank; i++)
        stride *= v->dims[i];
    return stride;
}

/* Whether one loop can iterate over axis d and the axes of loop `loop`: every
 * tensor in memory is contiguous across both. */
static int is_one_loop(const struct nest *n, uint32_t loop, uint32_t d)
{
    for (uint32_t i = 0; i < n->g->n_values; i++) {
        const struct byoc_graph_value *v = &n->g->values[i];
        if (v->kind != BYOC_GRAPH_RESULT &&
            stride_of(n, v, n->axis[loop]) !=
                stride_of(n, v, d) * n->result->dims[d])
            return 0;
    }
    return 1;
}

static struct nest make_nest(const struct byoc_graph *g, uint32_t n_consts)
{
    struct nest n = {
        .g = g, .n_consts = n_consts, .result = &g->values[g->outputs[0]]};
    for (uint32_t d = 0; d < n.result->rank; d++) {
        if (n.result->dims[d] == 1)
            continue;
        if (n.n_loops == 0 || !is_one_loop(&n, n.n_loops - 1, d))
            n.extent[n.n_loops++] = 1;
        n.axis[n.n_loops - 1] = d;
        n.extent[n.n_loops - 1] *= n.result->dims[d];
    }
    if (n.n_loops == 0) /* one element */
        n.extent[n.n_loops++] = 1;
    return n;
}

/* Append the index of the element of v that the loops have reached. */
static void add_index(struct text *t, const struct nest *n,
                      const struct byoc_graph_value *v)
{
    const char *plus = "";
    for (uint32_t l = 0; l < n->n_loops; l++) {
        const int64_t stride =
            n->result->rank ? stride_of(n, v, n->axis[l]) : 0;
        if (stride == 0)
            continue;
        add(t, stride == 1 ? "%si%u" : "%si%u * %lld", plus, l,
            (long long)stride);
        plus = " + ";
    }
    if (!*plus)
        add(t, "0");
}

/* Append the expression of a value in the innermost loop. */
static void add_value(struct text *t, const struct nest *n, uint32_t value)
{
    const struct byoc_graph_value *v = &n->g->values[value];
    if (v->kind == BYOC_GRAPH_RESULT) {
        add(t, "v%u", value);
        return;
    }
    add(t, "%s%u[", v->kind == BYOC_GRAPH_INPUT ? "in" : "c", v->index);
    add_index(t, n, v);
    add(t, "]");
}

/* Append the statement of an operator: "const float v3 = in0[i0] + v2;". */
static void add_step(struct text *t, const struct nest *n, uint32_t depth,
                     const struct byoc_graph_step *s)
{
    add(t, "%*sconst float v%u = ", (int)(4 * depth), "", s->outs[0]);
    for (const char *c = ops[op_of(s)].expression; *c; c++)
        if (*c == '%')
            add_value(t, n, s->args[*++c == 'b']);
        else
            add(t, "%c", *c);
    add(t, "; /* %s */\n", s->name);
}

/* Append the declaration of a pointer to a value, with its shape as a comment.
 */
static void add_pointer(struct text *t, const char *what, uint32_t i,
                        const struct byoc_graph_value *v)
{
    const int out = strcmp(what, "out") == 0;
    add(t, "    %sfloat *%s%u = %s[%u]; /* (", out ? "" : "const ", what, i,
        what, i);
    for (uint32_t d = 0; d < v->rank; d++)
        add(t, d ? ", %lld" : "%lld", (long long)v->dims[d]);
    add(t, v->rank == 1 ? ",) */\n" : ") */\n");
}

static void add_pointers(struct text *t, const struct nest *n)
{
    for (uint32_t i = 0; i < n->g->n_values; i++) {
        const struct byoc_graph_value *v = &n->g->values[i];
        if (v->kind != BYOC_GRAPH_RESULT)
            add_pointer(t, v->kind == BYOC_GRAPH_INPUT ? "in" : "c", v->index,
                        v);
    }
    for (uint32_t i = 0; i < n->g->n_outputs; i++)
        add_pointer(t, "out", i, n->result);
}

/* Append the loops; each thread runs a part of the outermost one. */
static void add_loops(struct text *t, const struct nest *n)
{
    const struct byoc_graph *g = n->g;
    uint32_t depth = 1;
    add(t, "    const long first = %lld * part / parts;\n",
        (long long)n->extent[0]);
    add(t, "    const long end = %lld * (part + 1) / parts;\n",
        (long long)n->extent[0]);
    add(t, "    for (long i0 = first; i0 < end; i0++)");
    for (; depth < n->n_loops; depth++)
        add(t, "\n%*sfor (long i%u = 0; i%u < %lld; i%u++)",
            (int)(4 * (depth + 1)), "", depth, depth,
            (long long)n->extent[depth], depth);
    add(t, " {\n");
    for (uint32_t i = 0; i < g->n_steps; i++)
        add_step(t, n, depth + 1, &g->steps[i]);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        add(t, "%*sout%u[", (int)(4 * (depth + 1)), "", i);
        add_index(t, n, n->result);
        add(t, "] = ");
        add_value(t, n, g->outputs[i]);
        add(t, ";\n");
    }
    add(t, "%*s}\n", (int)(4 * depth), "");
}

/* Append the statements that return the bytes of the tensors, so that load()
 * and run() can check them. */
static void add_sizes(struct text *t, const struct nest *n,
                      const struct byoc_region *region)
{
    const struct byoc_graph *g = n->g;
    add(t, "    static const long bytes[] = {");
    for (uint32_t i = 0; i < n->n_consts; i++)
        add(t, "%llu, ", (unsigned long long)region->consts[i].bytes);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        add(t, "%llu, ", (unsigned long long)g->values[g->inputs[i]].bytes);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        add(t, "%llu, ", (unsigned long long)n->result->bytes);
    add(t, "-1};\n    if (!out)\n        return bytes[part];\n");
}

static void write_source(struct text *t, const struct nest *n,
                         const struct byoc_region *region)
{
    static const char head[] =
        "/* Written by the backend \"source\": computes part `part` of `parts` "
        "of the\n * results. If `out` is NULL, returns the bytes of tensor "
        "`part` in the order\n * constants, inputs, results, and -1 after the "
        "last one. */\n"
        "#include <math.h>\n\n";
    static const char arguments[] =
        "(const float *const *c, const float *const *in,\n"
        "    float *const *out, long part, long parts)";
    add(t, "%s", head);
    add(t, "long %s%s;\n\n", region->symbol, arguments);
    add(t, "long %s%s\n{\n", region->symbol, arguments);
    add_sizes(t, n, region);
    add_pointers(t, n);
    add_loops(t, n);
    add(t, "    return 0;\n}\n");
}

static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    struct byoc_graph *g;
    struct text t = {.host = host};
    if (!region->symbol)
        return host->fail(
            host->ctx, BYOC_FAIL_UNSUPPORTED,
            "this backend writes C, which the host does not accept");
    struct byoc_fail *fail = byoc_graph_read(host, region, &g);
    if (fail)
        return fail;
    const char *why = find_fault(g, region->n_consts);
    if (why) {
        byoc_graph_free(host, g);
        return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, why);
    }
    const struct nest n = make_nest(g, region->n_consts);
    write_source(&t, &n, region);
    byoc_graph_free(host, g);
    if (t.exhausted)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    blob->kind = BYOC_BLOB_C;
    blob->data = t.at;
    blob->bytes = t.n;
    return NULL;
}

/* The function that write_source() defines. */
typedef long (*nest_fn)(const float *const *c, const float *const *in,
                        float *const *out, long part, long parts);

/* A loaded region. */
struct loaded_region {
    nest_fn code;
    long threads, n_consts;
    const float *consts[MAX_TENSORS];
};

/* Whether the views have as many bytes as the code's next tensors, the first of
 * which has number *at. Advances *at past the tensors that do. */
static int sizes_match(nest_fn code, long *at, const struct byoc_view *views,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const long bytes = code(NULL, NULL, NULL, *at, 1);
        if (bytes < 0 || (uint64_t)bytes != views[i].bytes)
            return 0;
        ++*at;
    }
    return 1;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    const nest_fn code = (nest_fn)region->code;
    long at = 0;
    if (!code)
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found no code, expected code for this region; "
                          "compile the model again");
    if (region->n_consts > MAX_TENSORS ||
        !sizes_match(code, &at, region->consts, region->n_consts))
        return host->fail(
            host->ctx, BYOC_FAIL_INVALID,
            "found constants of other sizes, expected the sizes that the code "
            "was compiled for; compile the model again");
    struct loaded_region *l = host->acquire(host->ctx, sizeof *l);
    if (!l)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    l->code = code;
    l->threads = host->threads(host->ctx);
    l->n_consts = region->n_consts;
    for (uint32_t i = 0; i < region->n_consts; i++)
        l->consts[i] = region->consts[i].data;
    *compiled = l;
    return NULL;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    host->release(host->ctx, compiled);
}

/* A run, whose parts several threads compute. */
struct job {
    const struct loaded_region *l;
    long parts;
    const float *in[MAX_TENSORS];
    float *out[MAX_TENSORS];
};

static void run_part(void *arg, uint32_t part)
{
    const struct job *j = arg;
    j->l->code(j->l->consts, j->in, j->out, part, j->parts);
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    struct job j = {.l = compiled};
    long at = j.l->n_consts;
    (void)state;
    if (args->n_inputs > MAX_TENSORS || args->n_outputs > MAX_TENSORS ||
        !sizes_match(j.l->code, &at, args->inputs, args->n_inputs) ||
        !sizes_match(j.l->code, &at, args->outputs, args->n_outputs) ||
        j.l->code(NULL, NULL, NULL, at, 1) != -1)
        return host->fail(
            host->ctx, BYOC_FAIL_INVALID,
            "found inputs or outputs of other sizes, expected the sizes that "
            "the code was compiled for; compile the model again");
    for (uint32_t i = 0; i < args->n_inputs; i++)
        j.in[i] = args->inputs[i].data;
    for (uint32_t i = 0; i < args->n_outputs; i++)
        j.out[i] = args->outputs[i].data;
    j.parts = args->outputs[0].bytes < MIN_PARALLEL_BYTES ? 1 : j.l->threads;
    if (j.parts == 1)
        run_part(&j, 0);
    else
        host->parallel_for(host->ctx, (uint32_t)j.parts, run_part, &j);
    return NULL;
}

static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .flags = BYOC_BACKEND_WRITES_C,
    .name = "source",
    .version = "1.0",
    .compat = "source 1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .compile = compile,
    .load = load,
    .unload = unload,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
