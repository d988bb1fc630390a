/* SPDX-License-Identifier: Apache-2.0 */
/* blob.c: a backend with its own compiler: it compiles float32 arithmetic on
 * tensors of one size to a program for a small virtual machine. The machine
 * computes a block of elements at a time, so that intermediate values stay in
 * the cache.
 */
#include <byoc/backend.h>
#include <byoc/graph.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAJOR = 1, MINOR = 0, BLOCK = 256 };

enum op {
    ADD,
    SUBTRACT,
    MULTIPLY,
    MAXIMUM,
    MINIMUM,
    RELU,
    NEGATIVE,
    SQRT,
    N_OPS
};

static const struct {
    const char *name;
    uint32_t n_args;
} ops[N_OPS] = {{"add", 2},      {"subtract", 2}, {"multiply", 2},
                {"maximum", 2},  {"minimum", 2},  {"nn.relu", 1},
                {"negative", 1}, {"sqrt", 1}};

/* Returns why a value of the match is refused, or NULL. A value is accepted if
 * it is float32 and has one element, or `count` elements as the result has. A
 * value that the match does not have is accepted too. */
static const char *check_type(const struct byoc_host *host,
                              const struct byoc_match *m, const char *name,
                              int64_t count)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    int64_t n = 1;
    if (!host->match_type(m, name, &dtype, &rank, &dims))
        return NULL;
    for (uint32_t d = 0; d < rank; d++)
        n *= dims[d];
    if (dtype == BYOC_F32 && n > 0 && (n == count || n == 1))
        return NULL;
    return host->match_say(m,
                           "found %s, expected float32 of the size of the "
                           "result, or one number",
                           host->match_show(m, name));
}

static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    int64_t count = 1;
    if (!host->match_type(m, NULL, &dtype, &rank, &dims))
        return "found a tuple, expected one tensor";
    for (uint32_t d = 0; d < rank; d++)
        count *= dims[d];
    const char *why = check_type(host, m, NULL, count);
    why = why ? why : check_type(host, m, "a", count);
    return why ? why : check_type(host, m, "b", count);
}

static const struct byoc_pattern patterns[] = {
    {"blob.binary", "add|subtract|multiply|maximum|minimum(%a, %b)", accept},
    {"blob.unary", "nn.relu|negative|sqrt(%a)", accept},
};

/* The blob: a header, n_values values, n_steps steps, and for each output the
 * index of its value. It has no pointers, so it can be at any address. */
struct head {
    char magic[8];
    uint32_t n_inputs, n_outputs, n_values, n_steps;
    uint64_t count; /* elements of every value that has more than one */
};

struct value {
    uint32_t kind, index; /* as in struct byoc_graph_value       */
    uint32_t is_array;    /* 1: `count` elements; 0: one element */
};

struct step {
    uint32_t op, to, a, b; /* to, a, b: indices of values */
};

static const char magic[8] = "blob 1\r\n";

/* The operator of a step, or N_OPS if the table does not have it. */
static uint32_t op_of(const struct byoc_graph_step *s)
{
    uint32_t op = 0;
    while (op < N_OPS && (strcmp(ops[op].name, s->name) != 0 ||
                          ops[op].n_args != s->n_args || s->n_outs != 1))
        op++;
    return op;
}

/* Set *count to the number of elements of the region's tensors, and return
 * NULL; otherwise return why the virtual machine cannot run the region. */
static const char *find_count(const struct byoc_graph *g, uint64_t *count)
{
    *count = 1;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const struct byoc_graph_value *v = &g->values[i];
        if (v->dtype != BYOC_F32)
            return "found another element type, expected float32";
        if (v->count == 0)
            return "found an empty tensor, expected at least one element";
        if (v->count > 1 && *count > 1 && v->count != *count)
            return "found tensors of different sizes, expected one size";
        if (v->count > 1)
            *count = v->count;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->values[g->outputs[i]].count != *count)
            return "found one number among larger results, expected one size";
    for (uint32_t i = 0; i < g->n_steps; i++)
        if (op_of(&g->steps[i]) == N_OPS)
            return "found an operator that this backend does not support";
    return NULL;
}

/* Write the blob of a region whose tensors have `count` elements to `at`. */
static void write_blob(const struct byoc_graph *g, uint64_t count, char *at)
{
    struct head head = {.n_inputs = g->n_inputs,
                        .n_outputs = g->n_outputs,
                        .n_values = g->n_values,
                        .n_steps = g->n_steps,
                        .count = count};
    memcpy(head.magic, magic, sizeof magic);
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (uint32_t i = 0; i < g->n_values; i++, at += sizeof(struct value)) {
        const struct byoc_graph_value *v = &g->values[i];
        const struct value value = {v->kind, v->index, v->count > 1};
        memcpy(at, &value, sizeof value);
    }
    for (uint32_t i = 0; i < g->n_steps; i++, at += sizeof(struct step)) {
        const struct byoc_graph_step *s = &g->steps[i];
        const struct step step = {op_of(s), s->outs[0], s->args[0],
                                  s->args[s->n_args - 1]};
        memcpy(at, &step, sizeof step);
    }
    memcpy(at, g->outputs, g->n_outputs * sizeof *g->outputs);
}

/* The size of a blob. */
static uint64_t bytes_of(uint64_t n_values, uint64_t n_steps,
                         uint64_t n_outputs)
{
    return sizeof(struct head) + n_values * sizeof(struct value) +
           n_steps * sizeof(struct step) + n_outputs * sizeof(uint32_t);
}

static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    struct byoc_graph *g;
    uint64_t count;
    struct byoc_fail *fail = byoc_graph_read(host, region, &g);
    if (fail)
        return fail;
    const char *why = find_count(g, &count);
    blob->bytes = bytes_of(g->n_values, g->n_steps, g->n_outputs);
    blob->data = why ? NULL : host->acquire(host->ctx, blob->bytes);
    if (why)
        fail = host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, why);
    else if (!blob->data)
        fail = host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    else
        write_blob(g, count, blob->data);
    byoc_graph_free(host, g);
    return fail;
}

/* Accept blobs of this major version. Blobs of an older minor version run
 * faster after they are compiled again. */
static struct byoc_fail *check_compat(const struct byoc_host *host,
                                      const char *compat)
{
    char text[160];
    int major, minor, end = 0;
    const int known =
        sscanf(compat, "blob %d.%d%n", &major, &minor, &end) == 2 &&
        compat[end] == '\0' && major == MAJOR && minor >= 0 && minor <= MINOR;
    if (known && minor == MINOR)
        return NULL;
    snprintf(text, sizeof text,
             "found a blob of \"%.60s\", expected \"blob %d.%d\"", compat,
             MAJOR, MINOR);
    return host->fail(host->ctx,
                      known ? BYOC_FAIL_STALE : BYOC_FAIL_INCOMPATIBLE, text);
}

/* A checked blob, in memory of this plug-in. */
struct loaded_blob {
    struct head head;
    struct value *values;
    struct step *steps;
    uint32_t *outputs;
    const float **consts;
    char *is_set; /* for each value: 1 if it is an input, a constant, or
                   * computed by a step so far */
    uint32_t threads;
};

static void unload(const struct byoc_host *host, void *compiled)
{
    struct loaded_blob *l = compiled;
    (void)host;
    free(l->values);
    free(l->steps);
    free(l->outputs);
    free(l->consts);
    free(l->is_set);
    free(l);
}

/* Copy n elements from *at to new memory, and advance *at past them. */
static void *copy(const char **at, uint64_t n, uint64_t size)
{
    void *to = malloc(n * size + 1);
    if (to)
        memcpy(to, *at, n * size);
    *at += n * size;
    return to;
}

/* The reason why a value is invalid, or NULL. */
static const char *check_value(struct loaded_blob *l, uint32_t i,
                               const struct byoc_region *region)
{
    const struct value *v = &l->values[i];
    if (v->kind > BYOC_GRAPH_RESULT)
        return "found a value of unknown kind, expected input, constant or "
               "result";
    if (v->is_array > 1)
        return "found a value of unknown size, expected one element or `count`";
    if (v->kind == BYOC_GRAPH_INPUT && v->index >= l->head.n_inputs)
        return "found an index of an input that the region does not have";
    if (v->kind == BYOC_GRAPH_CONST && v->index >= region->n_consts)
        return "found an index of a constant that the region does not have";
    if (v->kind == BYOC_GRAPH_CONST &&
        region->consts[v->index].dtype != BYOC_F32)
        return "found a constant of another type, expected float32";
    if (v->kind == BYOC_GRAPH_CONST &&
        region->consts[v->index].bytes !=
            (v->is_array ? l->head.count : 1) * sizeof(float))
        return "found a constant of another size, expected that of its value";
    l->is_set[i] = v->kind != BYOC_GRAPH_RESULT;
    return NULL;
}

static const char *check_step(struct loaded_blob *l, const struct step *s)
{
    const uint32_t n = l->head.n_values;
    if (s->op >= N_OPS)
        return "found an unknown operator, expected one of the table";
    if (s->a >= n || s->b >= n || s->to >= n)
        return "found an index of a value that the blob does not have";
    if (!l->is_set[s->a] || !l->is_set[s->b])
        return "found a step that reads a value that no earlier step computes";
    if (l->is_set[s->to])
        return "found a step that computes a value again, expected new values";
    l->is_set[s->to] = 1;
    return NULL;
}

/* Returns why the blob is invalid, or NULL. A blob may be any bytes, so all of
 * it is checked before it is used. */
static const char *check_blob(struct loaded_blob *l,
                              const struct byoc_region *region)
{
    const struct head *h = &l->head;
    const char *why = NULL;
    for (uint32_t i = 0; !why && i < h->n_values; i++)
        why = check_value(l, i, region);
    for (uint32_t i = 0; !why && i < h->n_steps; i++)
        why = check_step(l, &l->steps[i]);
    for (uint32_t i = 0; !why && i < h->n_outputs; i++)
        if (l->outputs[i] >= h->n_values || !l->is_set[l->outputs[i]])
            why = "found an output that no step computes, expected a result";
    return why;
}

static const char no_memory[] = "out of memory";

/* Copy the region's blob to *l, and check it. Returns why it is invalid,
 * no_memory, or NULL. The caller frees the members of *l in all cases. */
static const char *read_blob(struct loaded_blob *l,
                             const struct byoc_region *region)
{
    struct head *h = &l->head;
    const char *at = region->json;
    if (region->json_bytes < sizeof *h)
        return "found a part of a header, expected a whole one";
    memcpy(h, at, sizeof *h);
    at += sizeof *h;
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return "found other data, expected a blob of this backend";
    if (region->json_bytes != bytes_of(h->n_values, h->n_steps, h->n_outputs))
        return "found another size, expected the one in the header";
    if (h->count == 0 || h->count > UINT64_MAX / 64)
        return "found an invalid count in the header, expected 1 to 2^58 - 1";
    l->values = copy(&at, h->n_values, sizeof *l->values);
    l->steps = copy(&at, h->n_steps, sizeof *l->steps);
    l->outputs = copy(&at, h->n_outputs, sizeof *l->outputs);
    l->consts = malloc((region->n_consts + 1u) * sizeof *l->consts);
    l->is_set = calloc(h->n_values + 1u, 1);
    if (!l->values || !l->steps || !l->outputs || !l->consts || !l->is_set)
        return no_memory;
    for (uint32_t i = 0; i < region->n_consts; i++)
        l->consts[i] = region->consts[i].data;
    return check_blob(l, region);
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct loaded_blob *l = calloc(1, sizeof *l);
    const char *why = l ? read_blob(l, region) : no_memory;
    char text[160];
    if (!why) {
        l->threads = host->threads(host->ctx);
        *compiled = l;
        return NULL;
    }
    if (l)
        unload(host, l);
    snprintf(text, sizeof text, "the region's blob: %s%s", why,
             why == no_memory ? "" : "; compile the model again");
    return host->fail(host->ctx,
                      why == no_memory ? BYOC_FAIL_RESOURCE : BYOC_FAIL_INVALID,
                      text);
}

/* The size of a state: for each thread, a block of each value. */
static uint64_t state_bytes(const struct byoc_host *host, const void *compiled)
{
    const struct loaded_blob *l = compiled;
    (void)host;
    return (uint64_t)l->threads * l->head.n_values * BLOCK * sizeof(float);
}

/* A run, which several threads compute. */
struct job {
    const struct loaded_blob *l;
    float *state;
    const struct byoc_run_args *args;
};

/* The address of a value's elements from `at` on; `blocks` has a block for each
 * value, to which a single element is copied repeatedly. */
static const float *block_of(const struct job *j, uint32_t v, float *blocks,
                             uint64_t at)
{
    const struct value *value = &j->l->values[v];
    float *block = blocks + (size_t)v * BLOCK;
    if (value->kind == BYOC_GRAPH_RESULT)
        return block;
    const float *data = value->kind == BYOC_GRAPH_INPUT
                            ? j->args->inputs[value->index].data
                            : j->l->consts[value->index];
    if (value->is_array)
        return data + at;
    for (int i = 0; i < BLOCK; i++)
        block[i] = data[0];
    return block;
}

/* Compute n elements of an operator's result. */
static void compute(uint32_t op, const float *a, const float *b, float *to,
                    size_t n)
{
#define EACH(OP, RESULT)                                                       \
    case OP:                                                                   \
        for (size_t i = 0; i < n; i++)                                         \
            to[i] = RESULT;                                                    \
        break
    switch (op) {
        EACH(ADD, a[i] + b[i]);
        EACH(SUBTRACT, a[i] - b[i]);
        EACH(MULTIPLY, a[i] * b[i]);
        EACH(MAXIMUM, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i]);
        EACH(MINIMUM, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i]);
        EACH(RELU, a[i] < 0 ? 0 : a[i]);
        EACH(NEGATIVE, -a[i]);
        EACH(SQRT, sqrtf(a[i]));
    }
#undef EACH
}

/* Compute blocks part, part + threads, part + 2 threads and so on. */
static void run_part(void *arg, uint32_t part)
{
    const struct job *j = arg;
    const struct head *h = &j->l->head;
    float *blocks = j->state + (size_t)part * h->n_values * BLOCK;
    for (uint64_t at = (uint64_t)part * BLOCK; at < h->count;
         at += (uint64_t)j->l->threads * BLOCK) {
        const size_t n =
            h->count - at < BLOCK ? (size_t)(h->count - at) : BLOCK;
        for (uint32_t i = 0; i < h->n_steps; i++) {
            const struct step *s = &j->l->steps[i];
            compute(s->op, block_of(j, s->a, blocks, at),
                    block_of(j, s->b, blocks, at),
                    blocks + (size_t)s->to * BLOCK, n);
        }
        for (uint32_t i = 0; i < h->n_outputs; i++)
            memcpy((float *)j->args->outputs[i].data + at,
                   block_of(j, j->l->outputs[i], blocks, at),
                   n * sizeof(float));
    }
}

/* Whether the tensors of a run have the sizes in the blob. */
static int fits(const struct loaded_blob *l, const struct byoc_run_args *args)
{
    int fit = args->n_inputs == l->head.n_inputs &&
              args->n_outputs == l->head.n_outputs;
    for (uint32_t i = 0; fit && i < l->head.n_values; i++) {
        const struct value *v = &l->values[i];
        if (v->kind == BYOC_GRAPH_INPUT)
            fit = args->inputs[v->index].bytes ==
                  (v->is_array ? l->head.count : 1) * sizeof(float);
    }
    for (uint32_t i = 0; fit && i < l->head.n_outputs; i++)
        fit = args->outputs[i].bytes == l->head.count * sizeof(float);
    return fit;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    struct job job = {compiled, state, args};
    if (!fits(job.l, args))
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found tensors of other sizes, expected those in the "
                          "blob; compile the model again");
    host->parallel_for(host->ctx, job.l->threads, run_part, &job);
    return NULL;
}

static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .name = "blob",
    .version = "1.0",
    .compat = "blob 1.0",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .compile = compile,
    .check_compat = check_compat,
    .load = load,
    .unload = unload,
    .state_bytes = state_bytes,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
