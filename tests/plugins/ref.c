/* SPDX-License-Identifier: Apache-2.0 */
/* ref.c: a complete backend with simple kernels: float32 add, multiply and
 * relu, chains of them, and an `if` between such chains. It reads regions
 * itself (cJSON) and uses only byoc's header, as a plug-in from outside would.
 */
#include <byoc/backend.h>
#include <byoc/pattern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { MAX_RANK = 12 };

/* A buffer: one for each node, and for each step but a kernel's last. */
struct buffer {
    int rank;
    long dims[MAX_RANK];
    size_t count, item; /* elements, and bytes of one */
    int input;          /* index among the region's inputs, or -1 */
    const float *constant;
};

/* A step of a loaded region, on buffers with these indices. */
struct step {
    /* 'a' add, 'm' multiply, 'r' relu, 'c' copy; '?' jump to step `to` if the
     * bool in buffer a is false, '>' jump to step `to` */
    char op;
    int a, b, out; /* buffers */
    int to;        /* a step */
};

/* A loaded region. */
struct compiled {
    struct buffer *buffers;
    struct step *steps;
    int *outputs; /* buffers */
    int n_buffers, n_steps, n_inputs, n_outputs;
};

/* --- reading -------------------------------------------------------------- */

static int new_buffer(struct compiled *c, const cJSON *type)
{
    struct buffer b = {.count = 1, .input = -1};
    const cJSON *dtype = cJSON_GetObjectItem(type, "dtype"), *dim;
    if (cJSON_IsString(dtype) && strcmp(dtype->valuestring, "float32") == 0)
        b.item = sizeof(float);
    if (cJSON_IsString(dtype) && strcmp(dtype->valuestring, "bool") == 0)
        b.item = 1;
    if (!b.item)
        return -1;
    cJSON_ArrayForEach(dim, cJSON_GetObjectItem(type, "shape"))
    {
        if (!cJSON_IsNumber(dim) || b.rank == MAX_RANK)
            return -1;
        b.dims[b.rank++] = (long)dim->valuedouble;
        b.count *= (size_t)dim->valuedouble;
    }
    struct buffer *at =
        realloc(c->buffers, (size_t)(c->n_buffers + 1) * sizeof *c->buffers);
    if (!at)
        return -1;
    c->buffers = at;
    at[c->n_buffers] = b;
    return c->n_buffers++;
}

/* Returns the buffer of a step's operand, or -1. `arg` is the number of an
 * earlier step, or the name of one of the kernel's operands. */
static int find_arg(const cJSON *kernel, const cJSON *arg, const int *of_node,
                    int n_nodes, const int *of_step, int n_steps)
{
    if (cJSON_IsNumber(arg))
        return arg->valueint >= 0 && arg->valueint < n_steps
                   ? of_step[arg->valueint]
                   : -1;
    const cJSON *operands = cJSON_GetObjectItem(kernel, "operands");
    const cJSON *ref =
        cJSON_IsString(arg)
            ? cJSON_GetObjectItemCaseSensitive(operands, arg->valuestring)
            : NULL;
    const cJSON *node = cJSON_GetArrayItem(ref, 0);
    if (!cJSON_IsNumber(node) || node->valueint < 0 ||
        node->valueint >= n_nodes)
        return -1;
    return of_node[node->valueint];
}

static int push(struct compiled *c, struct step s)
{
    struct step *at = realloc(c->steps, (size_t)(c->n_steps + 1) * sizeof *at);
    if (!at)
        return -1;
    c->steps = at;
    at[c->n_steps] = s;
    return c->n_steps++;
}

static int add_step(struct compiled *c, const cJSON *step, const int *args,
                    int n_args)
{
    static const struct {
        const char *name;
        char op;
        int n;
    } ops[] = {{"add", 'a', 2}, {"multiply", 'm', 2}, {"nn.relu", 'r', 1}};
    const cJSON *name = cJSON_GetObjectItem(step, "name");
    for (size_t i = 0; cJSON_IsString(name) && i < 3; i++) {
        if (strcmp(name->valuestring, ops[i].name) != 0 || ops[i].n != n_args)
            continue;
        struct step s = {.op = ops[i].op, .a = args[0], .b = args[n_args - 1]};
        s.out = new_buffer(c, cJSON_GetObjectItem(step, "type"));
        if (s.a < 0 || s.b < 0 || s.out < 0 || c->buffers[s.out].item != 4 ||
            c->buffers[s.a].item != 4 || c->buffers[s.b].item != 4 ||
            push(c, s) < 0)
            return -1;
        return s.out;
    }
    return -1;
}

/* The kernel that is read, with the buffers of the nodes before it and of its
 * steps. */
struct kernel_reader {
    const cJSON *kernel;
    const int *of_node;
    int n_nodes;
    int of_step[16], n_steps; /* in the order of the text */
};

static int read_step(struct compiled *c, struct kernel_reader *r,
                     const cJSON *step);

/* Add the steps of a branch, and a copy of its result to `out`. */
static int read_branch(struct compiled *c, struct kernel_reader *r,
                       const cJSON *branch, int out)
{
    const cJSON *step;
    cJSON_ArrayForEach(step, cJSON_GetObjectItem(branch, "steps"))
    {
        if (read_step(c, r, step) < 0)
            return -1;
    }
    int from = find_arg(r->kernel, cJSON_GetObjectItem(branch, "result"),
                        r->of_node, r->n_nodes, r->of_step, r->n_steps);
    if (from < 0 || c->buffers[from].item != c->buffers[out].item ||
        c->buffers[from].count != c->buffers[out].count)
        return -1;
    return push(c, (struct step){'c', from, from, out, 0});
}

static int read_if(struct compiled *c, struct kernel_reader *r,
                   const cJSON *step, int cond)
{
    int out = new_buffer(c, cJSON_GetObjectItem(step, "type"));
    if (out < 0 || cond < 0 || c->buffers[cond].item != 1)
        return -1;
    int test = push(c, (struct step){'?', cond, cond, out, 0});
    if (test < 0 ||
        read_branch(c, r, cJSON_GetObjectItem(step, "then"), out) < 0)
        return -1;
    int jump = push(c, (struct step){'>', cond, cond, out, 0});
    if (jump < 0)
        return -1;
    c->steps[test].to = c->n_steps;
    if (read_branch(c, r, cJSON_GetObjectItem(step, "else"), out) < 0)
        return -1;
    c->steps[jump].to = c->n_steps;
    return out;
}

/* Add a step, and the steps in its branches. */
static int read_step(struct compiled *c, struct kernel_reader *r,
                     const cJSON *step)
{
    int args[2] = {-1, -1}, n = 0, at = r->n_steps++;
    const cJSON *arg, *name = cJSON_GetObjectItem(step, "name");
    if (at >= 16)
        return -1;
    r->of_step[at] = -1;
    cJSON_ArrayForEach(arg, cJSON_GetObjectItem(step, "args"))
    {
        if (n < 2)
            args[n] = find_arg(r->kernel, arg, r->of_node, r->n_nodes,
                               r->of_step, at);
        n++;
    }
    if (cJSON_IsString(name) && strcmp(name->valuestring, "if") == 0)
        r->of_step[at] = n == 1 ? read_if(c, r, step, args[0]) : -1;
    else
        r->of_step[at] = n > 0 && n <= 2 ? add_step(c, step, args, n) : -1;
    return r->of_step[at];
}

static int read_kernel(struct compiled *c, const cJSON *kernel,
                       const int *of_node, int n_nodes)
{
    struct kernel_reader r = {kernel, of_node, n_nodes, {0}, 0};
    int last = read_step(c, &r, kernel);
    const cJSON *step;
    cJSON_ArrayForEach(step, cJSON_GetObjectItem(kernel, "post_ops"))
    {
        if (last >= 0)
            last = read_step(c, &r, step);
    }
    return last;
}

static int read_node(struct compiled *c, const cJSON *node,
                     const struct byoc_region *region, const int *of_node,
                     int n_nodes)
{
    const cJSON *op = cJSON_GetObjectItem(node, "op");
    if (!cJSON_IsString(op))
        return -1;
    if (strcmp(op->valuestring, "kernel") == 0)
        return read_kernel(c, node, of_node, n_nodes);
    int b =
        new_buffer(c, cJSON_GetArrayItem(cJSON_GetObjectItem(node, "out"), 0));
    if (b < 0 || strcmp(op->valuestring, "const") != 0)
        return b;
    const cJSON *data = cJSON_GetObjectItem(node, "data");
    if (!cJSON_IsNumber(data) || data->valueint < 0 ||
        (uint32_t)data->valueint >= region->n_consts)
        return -1;
    const struct byoc_view *view = &region->consts[data->valueint];
    if (c->buffers[b].item != sizeof(float) || view->dtype != BYOC_F32 ||
        view->bytes != c->buffers[b].count * sizeof(float))
        return -1;
    c->buffers[b].constant = view->data;
    return b;
}

static int read_graph(struct compiled *c, const cJSON *root,
                      const struct byoc_region *region)
{
    const cJSON *nodes = cJSON_GetObjectItem(root, "nodes"), *item;
    int n = 0, max = cJSON_GetArraySize(nodes);
    int *of_node = calloc((size_t)max + 1, sizeof *of_node);
    const cJSON *outputs = cJSON_GetObjectItem(root, "outputs");
    c->outputs =
        calloc((size_t)cJSON_GetArraySize(outputs) + 1, sizeof *c->outputs);
    int ok = of_node && c->outputs;
    cJSON_ArrayForEach(item, (ok ? nodes : NULL))
    {
        of_node[n] = read_node(c, item, region, of_node, n);
        ok = ok && of_node[n++] >= 0;
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "inputs"))
    {
        int in = cJSON_IsNumber(item) ? item->valueint : -1;
        ok = ok && in >= 0 && in < n;
        if (ok)
            c->buffers[of_node[in]].input = c->n_inputs;
        c->n_inputs++;
    }
    cJSON_ArrayForEach(item, (c->outputs ? outputs : NULL))
    {
        const cJSON *node = cJSON_GetArrayItem(item, 0);
        int out = cJSON_IsNumber(node) ? node->valueint : -1;
        ok = ok && out >= 0 && out < n;
        c->outputs[c->n_outputs++] = ok ? of_node[out] : 0;
    }
    free(of_node);
    return ok;
}

/* --- the backend ---------------------------------------------------------- */

static void unload(const struct byoc_host *host, void *compiled)
{
    struct compiled *c = compiled;
    (void)host;
    free(c->buffers);
    free(c->steps);
    free(c->outputs);
    free(c);
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct compiled *c = calloc(1, sizeof *c);
    cJSON *root = cJSON_ParseWithLength(region->json, region->json_bytes);
    int ok = c && root && read_graph(c, root, region);
    cJSON_Delete(root);
    if (!ok) {
        if (c)
            unload(host, c);
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found another operator or type, expected float32 "
                          "add, multiply, nn.relu and 'if'");
    }
    *compiled = c;
    return NULL;
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    void *compiled;
    struct byoc_fail *fail = load(host, graph, &compiled);
    if (fail)
        return fail;
    unload(host, compiled);
    snprintf(result->impl, sizeof result->impl, "ref:plain");
    return NULL;
}

/* A state has memory for every buffer. */
static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    struct compiled *c = compiled;
    float **memory = state;
    for (int i = 0; memory && i < c->n_buffers; i++)
        host->release(host->ctx, memory[i]);
    free(memory);
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    struct compiled *c = compiled;
    float **memory = calloc((size_t)c->n_buffers + 1, sizeof *memory);
    int ok = memory != NULL;
    for (int i = 0; ok && i < c->n_buffers; i++) {
        memory[i] = host->acquire(
            host->ctx, c->buffers[i].count * c->buffers[i].item + 64);
        ok = memory[i] != NULL;
    }
    if (!ok) {
        state_free(host, c, memory);
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    }
    *state = memory;
    return NULL;
}

/* The element of `b` that broadcasts to element `at` of `out`. */
static size_t broadcast_index(const struct buffer *b, const struct buffer *out,
                              size_t at)
{
    size_t index = 0, step = 1;
    for (int d = 1; d <= out->rank; d++) {
        size_t size = (size_t)out->dims[out->rank - d];
        size_t place = at % size;
        at /= size;
        if (d > b->rank)
            continue;
        size_t b_size = (size_t)b->dims[b->rank - d];
        index += (b_size == 1 ? 0 : place) * step;
        step *= b_size;
    }
    return index;
}

/* A step that runs, with the elements of its buffers. */
struct job {
    const struct compiled *c;
    const struct step *step;
    const float *a, *b;
    float *out;
};

/* A test may set this; each part calls it before it computes. */
BYOC_VISIBLE void (*ref_before_part)(uint32_t part);

/* Compute one of 4 parts of a step. */
static void run_part(void *arg, uint32_t part)
{
    const struct job *j = arg;
    if (ref_before_part)
        ref_before_part(part);
    const struct buffer *out = &j->c->buffers[j->step->out];
    for (size_t i = part; i < out->count; i += 4) {
        float a = j->a[broadcast_index(&j->c->buffers[j->step->a], out, i)];
        float b = j->b[broadcast_index(&j->c->buffers[j->step->b], out, i)];
        j->out[i] = j->step->op == 'a'   ? a + b
                    : j->step->op == 'm' ? a * b
                    : a > 0 || a != a    ? a
                                         : 0;
    }
}

static const void *read_from(const struct compiled *c, int b, float *const *m,
                             const struct byoc_run_args *args)
{
    const struct buffer *buffer = &c->buffers[b];
    if (buffer->constant)
        return buffer->constant;
    return buffer->input >= 0 ? args->inputs[buffer->input].data : m[b];
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    const struct compiled *c = compiled;
    float **memory = state;
    if (args->n_inputs != (uint32_t)c->n_inputs ||
        args->n_outputs != (uint32_t)c->n_outputs)
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found other numbers of inputs or outputs than the "
                          "region has");
    for (int i = 0; i < c->n_steps; i++) {
        const struct step *s = &c->steps[i];
        if (strchr("?>", s->op)) {
            const char *cond = read_from(c, s->a, memory, args);
            if (s->op == '>' || !*cond)
                i = s->to - 1;
            continue;
        }
        if (s->op == 'c') {
            memcpy(memory[s->out], read_from(c, s->a, memory, args),
                   c->buffers[s->out].count * c->buffers[s->out].item);
            continue;
        }
        struct job job = {c, s, read_from(c, s->a, memory, args),
                          read_from(c, s->b, memory, args), memory[s->out]};
        host->parallel_for(host->ctx, 4, run_part, &job);
        if (args->trace)
            args->trace(args->trace_ctx, s->op == 'r' ? "relu" : "binary",
                        "ref:plain", "", 0, 0);
    }
    for (int i = 0; i < c->n_outputs; i++)
        memcpy(args->outputs[i].data, read_from(c, c->outputs[i], memory, args),
               c->buffers[c->outputs[i]].count *
                   c->buffers[c->outputs[i]].item);
    return NULL;
}

static void quiesce(const struct byoc_host *host)
{
    (void)host; /* no threads, no globals */
}

/* --- the patterns --------------------------------------------------------- */

static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    if (!host->match_type(m, NULL, &dtype, &rank, &dims) || dtype != BYOC_F32)
        return host->match_say(m, "found %s, expected float32",
                               host->match_show(m, NULL));
    return NULL;
}

/* The query writes the rows without a pattern, with byoc/pattern.h. */
static struct byoc_pattern patterns[] = {
    {"ref.multiply_add_relu", NULL, accept},
    {"ref.if", NULL, accept},
    {"ref.add_relu", "nn.relu(add(%a, %b))", accept},
    {"ref.add", "add(%a, %b)", accept},
    {"ref.multiply", "multiply(%a, %b)", accept},
    {"ref.relu", "nn.relu(%x)", accept},
#ifdef PAIR /* its branches may have different sizes */
    {"ref.pair", "if (%c) { nn.relu(%x) } else { add(%y, %y) }", accept},
#endif
};

static void make_rows(void)
{
    if (patterns[0].pattern)
        return;
    static char memory[512];
    struct byoc_pat t = {memory, sizeof memory, 0};
    const char *product = byoc_pat_op(&t, "multiply", 2, byoc_pat_any(&t, "a"),
                                      byoc_pat_any(&t, "b"));
    patterns[0].pattern =
        byoc_pat_op(&t, "nn.relu", 1,
                    byoc_pat_op(&t, "add", 2, product, byoc_pat_any(&t, "c")));
    patterns[1].pattern =
        byoc_pat_if(&t, byoc_pat_any(&t, "cond"),
                    byoc_pat_op(&t, "nn.relu", 1,
                                byoc_pat_op(&t, "add", 2, byoc_pat_any(&t, "x"),
                                            byoc_pat_any(&t, "y"))),
                    byoc_pat_op(&t, "multiply", 2, byoc_pat_any(&t, "x"),
                                byoc_pat_any(&t, "k")));
}

static const struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = "ref",
    .version = "1",
    .compat = "ref-1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .probe = probe,
    .load = load,
    .unload = unload,
    .state_new = state_new,
    .state_free = state_free,
    .run = run,
    .quiesce = quiesce,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    make_rows();
    return &backend;
}

#ifndef REF_IS_A_PART /* another plug-in includes this file */
BYOC_BACKEND_DEFINE(query)
#endif
