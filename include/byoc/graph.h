/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/graph.h: a region as plain structs.
 *
 * A region reaches a backend as JSON (docs/json.md). byoc_graph_read() turns it
 * into values, the steps that compute them, and the kernels that the steps
 * belong to, all as arrays, each step behind what it reads:
 *
 *     struct byoc_graph *g;
 *     struct byoc_fail *fail = byoc_graph_read(host, region, &g);
 *     for (uint32_t i = 0; !fail && i < g->n_steps; i++)
 *         ... g->steps[i].name, &g->values[g->steps[i].args[0]] ...
 *
 * Reads text from anywhere: every kind, number and reference is checked, and
 * what it refuses it names. Whether operators, types and attributes are those
 * that the backend knows is for the backend to check. A region with an `if`,
 * which only rows with an `if` give, is refused as unsupported.
 *
 * Everything is inline; what includes this links cJSON, which reads the text,
 * and nothing of byoc's. Memory is the host's. Threads: a graph does not change
 * once it is read.
 */
#ifndef BYOC_GRAPH_H
#define BYOC_GRAPH_H

#include <byoc/backend.h>

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BYOC_GRAPH_RANK 12 /* dimensions of a value, at most */

enum byoc_graph_kind {
    BYOC_GRAPH_INPUT,
    BYOC_GRAPH_CONST,
    BYOC_GRAPH_RESULT /* of a step */
};

/* A tensor, dense and row-major. */
struct byoc_graph_value {
    enum byoc_graph_kind kind;
    uint32_t index; /* INPUT: of byoc_run_args.inputs, CONST: of the region's
                       consts, RESULT: of the steps                       */
    uint32_t dtype; /* enum byoc_dtype                                    */
    uint32_t rank;
    int64_t dims[BYOC_GRAPH_RANK];
    uint64_t count, bytes; /* elements, and their memory                  */
    const void *data;      /* CONST: lives until unload(); else NULL      */
    uint64_t at;           /* RESULT: see byoc_graph_data()               */
};

/* One operator. Values are indices into byoc_graph.values. */
struct byoc_graph_step {
    const char *name; /* "nn.conv2d" */
    uint32_t n_args, n_outs;
    const uint32_t *args, *outs;
    uint32_t kernel;           /* that it belongs to */
    const struct cJSON *attrs; /* see byoc_graph_ints() and its like */
};

/* What the row's pattern calls %name. */
struct byoc_graph_operand {
    const char *name;
    uint32_t value;
};

/* One match of one row: n_steps steps from `first` on. */
struct byoc_graph_kernel {
    const char *pattern; /* the row's name */
    uint32_t first, n_steps;
    uint32_t n_operands, n_outs;
    const struct byoc_graph_operand *operands;
    const uint32_t *outs;
    int exact; /* not 0: use no algorithm that rounds more than the operators'
                  definitions do                                            */
    const char *source; /* the model's nodes, "a,b", as tracing wants them */
};

struct byoc_graph {
    const char *symbol;
    uint32_t n_values, n_steps, n_kernels, n_inputs, n_outputs;
    struct byoc_graph_value *values;
    struct byoc_graph_step *steps;
    struct byoc_graph_kernel *kernels;
    const uint32_t *inputs, *outputs; /* values; an output may be any, twice */
    uint64_t bytes;                   /* see byoc_graph_data() */
    struct cJSON *json;
    void *memory; /* blocks, each beginning with the next one's address */
};

/* --- reading
 * ------------------------------------------------------------------ */

/* The values that a node or a step gives. */
struct byoc_graph_outs {
    const uint32_t *at;
    uint32_t n;
};

/* What is known while a region is read. */
struct byoc_graph_reader {
    const struct byoc_host *host;
    const struct byoc_region *region;
    struct byoc_graph *g;
    uint32_t n_nodes;                      /* read so far */
    struct byoc_graph_outs *nodes, *steps; /* steps: of the kernel */
    enum byoc_fail_code code;
    char why[200];
};

static inline int byoc_graph_no(struct byoc_graph_reader *r,
                                enum byoc_fail_code code, const char *what)
{
    if (r->code)
        return 0;
    r->code = code;
    snprintf(r->why, sizeof r->why, "nodes[%u]: %s", r->n_nodes, what);
    return 0;
}

static inline int byoc_graph_bad(struct byoc_graph_reader *r, const char *what)
{
    return byoc_graph_no(r, BYOC_FAIL_INVALID, what);
}

/* Zeroed memory that goes with the graph; NULL: exhausted, and said. */
static inline void *byoc_graph_new(struct byoc_graph_reader *r, uint64_t n,
                                   uint64_t size)
{
    const uint64_t head = 64, bytes = head + n * size;
    char *block = (char *)r->host->acquire(r->host->ctx, bytes);
    if (!block) {
        byoc_graph_no(r, BYOC_FAIL_RESOURCE, "out of memory");
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    memcpy(block, &r->g->memory, sizeof r->g->memory);
    r->g->memory = block;
    return block + head;
}

static inline const cJSON *byoc_graph_get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline uint32_t byoc_graph_size(const cJSON *list)
{
    return (uint32_t)cJSON_GetArraySize(list);
}

static inline const char *byoc_graph_text(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(byoc_graph_get(object, name));
}

/* A whole number of 0 to end - 1. */
static inline int byoc_graph_number(const cJSON *json, double end, uint64_t *n)
{
    const int fits = cJSON_IsNumber(json) && json->valuedouble >= 0 &&
                     json->valuedouble < end;
    *n = fits ? (uint64_t)json->valuedouble : 0;
    return fits && (double)*n == json->valuedouble;
}

static inline uint32_t byoc_graph_dtype(const char *name, uint64_t *bytes)
{
#define BYOC_GRAPH_DTYPE(dtype, its_name, its_bytes)                           \
    if (its_bytes && name && strcmp(name, its_name) == 0) {                    \
        *bytes = its_bytes;                                                    \
        return dtype;                                                          \
    }
    BYOC_DTYPES(BYOC_GRAPH_DTYPE)
#undef BYOC_GRAPH_DTYPE
    return BYOC_NONE;
}

/* One more value, of that type. */
static inline int byoc_graph_add(struct byoc_graph_reader *r, const cJSON *type,
                                 enum byoc_graph_kind kind, uint32_t index)
{
    const cJSON *shape = byoc_graph_get(type, "shape"), *dim;
    struct byoc_graph_value *v = &r->g->values[r->g->n_values];
    uint64_t size, item = 0;
    v->kind = kind;
    v->index = index;
    v->dtype = byoc_graph_dtype(byoc_graph_text(type, "dtype"), &item);
    if (!v->dtype)
        return byoc_graph_bad(r, "a type without a dtype of a fixed size");
    if (!cJSON_IsArray(shape) || byoc_graph_size(shape) > BYOC_GRAPH_RANK)
        return byoc_graph_bad(r, "a type without a shape of at most 12 sizes");
    v->count = 1;
    cJSON_ArrayForEach(dim, shape)
    {
        if (!byoc_graph_number(dim, 9007199254740992.0, &size) ||
            (size && v->count > (UINT64_C(1) << 48) / size))
            return byoc_graph_bad(r, "a shape that no tensor has");
        v->dims[v->rank++] = (int64_t)size;
        v->count *= size;
    }
    v->bytes = v->count * item;
    if (kind == BYOC_GRAPH_RESULT) {
        v->at = r->g->bytes; /* with room behind it for reads in vectors */
        r->g->bytes += (v->bytes + 127) & ~UINT64_C(63);
    }
    r->g->n_values++;
    return 1;
}

/* [node, output], a node that was read. */
static inline int byoc_graph_ref(struct byoc_graph_reader *r, const cJSON *ref,
                                 uint32_t *value)
{
    const cJSON *node = cJSON_IsArray(ref) ? ref->child : NULL;
    uint64_t at, output;
    if (!node || !node->next || !byoc_graph_number(node, r->n_nodes, &at) ||
        !byoc_graph_number(node->next, r->nodes[at].n, &output))
        return byoc_graph_bad(r, "a reference to what was not made before");
    *value = r->nodes[at].at[output];
    return 1;
}

static inline int byoc_graph_input(struct byoc_graph_reader *r,
                                   const cJSON *node)
{
    const cJSON *out = byoc_graph_get(node, "out");
    uint32_t *value = (uint32_t *)byoc_graph_new(r, 1, sizeof *value);
    const struct byoc_view *view;
    uint64_t data;
    struct byoc_graph_value *v = &r->g->values[r->g->n_values];
    if (!value)
        return 0;
    *value = r->g->n_values;
    r->nodes[r->n_nodes].at = value;
    r->nodes[r->n_nodes].n = 1;
    if (!byoc_graph_add(r, cJSON_GetArrayItem(out, 0), BYOC_GRAPH_INPUT,
                        UINT32_MAX))
        return 0;
    if (strcmp(byoc_graph_text(node, "op"), "input") == 0)
        return 1;
    if (!byoc_graph_number(byoc_graph_get(node, "data"), r->region->n_consts,
                           &data))
        return byoc_graph_bad(r, "a constant that the region does not have");
    view = &r->region->consts[data];
    if (view->dtype != v->dtype || view->bytes != v->bytes)
        return byoc_graph_bad(r, "a constant of another type than is lent");
    v->kind = BYOC_GRAPH_CONST;
    v->index = (uint32_t)data;
    v->data = view->data;
    return 1;
}

/* An entry of "args": an operand's name, a step, a field of a step. */
static inline int byoc_graph_arg(struct byoc_graph_reader *r,
                                 const struct byoc_graph_kernel *k,
                                 uint32_t n_steps, const cJSON *arg,
                                 uint32_t *value)
{
    const cJSON *step = cJSON_IsArray(arg) ? arg->child : arg;
    uint64_t at, field = 0;
    uint32_t i;
    for (i = 0; cJSON_IsString(arg) && i < k->n_operands; i++)
        if (strcmp(arg->valuestring, k->operands[i].name) == 0) {
            *value = k->operands[i].value;
            return 1;
        }
    if (cJSON_IsString(arg) || !byoc_graph_number(step, n_steps, &at) ||
        (step != arg && !byoc_graph_number(step->next, r->steps[at].n, &field)))
        return byoc_graph_bad(r, "an argument that is no operand or step");
    if (step == arg && r->steps[at].n != 1)
        return byoc_graph_bad(r, "an argument that is a tuple");
    *value = r->steps[at].at[field];
    return 1;
}

/* The results of a step: new values. */
static inline const uint32_t *byoc_graph_results(struct byoc_graph_reader *r,
                                                 const cJSON *type, uint32_t n)
{
    uint32_t *outs = (uint32_t *)byoc_graph_new(r, n, sizeof *outs), i;
    const cJSON *one = cJSON_IsArray(type) ? type->child : type;
    for (i = 0; outs && i < n; i++, one = one->next) {
        outs[i] = r->g->n_values;
        if (!byoc_graph_add(r, one, BYOC_GRAPH_RESULT, r->g->n_steps))
            return NULL;
    }
    return outs;
}

/* Step `n` of a kernel. A tuple is its arguments and becomes no step. */
static inline int byoc_graph_step(struct byoc_graph_reader *r,
                                  struct byoc_graph_kernel *k, uint32_t n,
                                  const cJSON *json)
{
    const cJSON *args = byoc_graph_get(json, "args"), *arg;
    const cJSON *type = byoc_graph_get(json, "type");
    struct byoc_graph_step *s = &r->g->steps[r->g->n_steps];
    uint32_t *values =
        (uint32_t *)byoc_graph_new(r, byoc_graph_size(args), sizeof *values);
    s->name = byoc_graph_text(json, "name");
    s->attrs = byoc_graph_get(json, "attrs");
    s->kernel = r->g->n_kernels;
    s->args = values;
    s->n_args = 0;
    if (!values)
        return 0;
    if (!s->name || !cJSON_IsArray(args) || !cJSON_IsObject(s->attrs) || !type)
        return byoc_graph_bad(r, "a step without name, args, attrs or type");
    if (strcmp(s->name, "if") == 0)
        return byoc_graph_no(r, BYOC_FAIL_UNSUPPORTED, "has an 'if'");
    cJSON_ArrayForEach(arg, args)
    {
        if (!byoc_graph_arg(r, k, n, arg, &values[s->n_args++]))
            return 0;
    }
    r->steps[n].at = values;
    r->steps[n].n = s->n_args;
    if (strcmp(s->name, "tuple") == 0)
        return 1;
    s->n_outs = cJSON_IsArray(type) ? byoc_graph_size(type) : 1;
    s->outs = byoc_graph_results(r, type, s->n_outs);
    r->steps[n].at = s->outs;
    r->steps[n].n = s->n_outs;
    r->g->n_steps++;
    return s->outs != NULL;
}

static inline int byoc_graph_operands(struct byoc_graph_reader *r,
                                      struct byoc_graph_kernel *k,
                                      const cJSON *operands)
{
    struct byoc_graph_operand *at = (struct byoc_graph_operand *)byoc_graph_new(
        r, byoc_graph_size(operands), sizeof *at);
    const cJSON *one;
    k->operands = at;
    if (!at)
        return 0;
    cJSON_ArrayForEach(one, operands)
    {
        at[k->n_operands].name = one->string;
        if (!byoc_graph_ref(r, one, &at[k->n_operands++].value))
            return 0;
    }
    return 1;
}

static inline int byoc_graph_sources(struct byoc_graph_reader *r,
                                     struct byoc_graph_kernel *k,
                                     const cJSON *list)
{
    const cJSON *one;
    uint64_t bytes = 1;
    char *text;
    cJSON_ArrayForEach(one, list)
    {
        bytes += cJSON_IsString(one) ? strlen(one->valuestring) + 1 : 0;
    }
    k->source = text = (char *)byoc_graph_new(r, bytes, 1);
    cJSON_ArrayForEach(one, (text ? list : NULL))
    {
        if (cJSON_IsString(one))
            text += sprintf(text, "%s%s", text == k->source ? "" : ",",
                            one->valuestring);
    }
    return text != NULL;
}

static inline int byoc_graph_kernel_node(struct byoc_graph_reader *r,
                                         const cJSON *node)
{
    struct byoc_graph_kernel *k = &r->g->kernels[r->g->n_kernels];
    const cJSON *operands = byoc_graph_get(node, "operands"), *step;
    const cJSON *post_ops = byoc_graph_get(node, "post_ops");
    const uint32_t n = 1 + byoc_graph_size(post_ops);
    uint32_t i = 1;
    k->pattern = byoc_graph_text(node, "pattern");
    k->exact = cJSON_IsTrue(byoc_graph_get(node, "exact"));
    k->first = r->g->n_steps;
    r->steps = (struct byoc_graph_outs *)byoc_graph_new(r, n, sizeof *r->steps);
    if (!r->steps || !byoc_graph_sources(r, k, byoc_graph_get(node, "source")))
        return 0;
    if (!k->pattern || !cJSON_IsObject(operands) || !cJSON_IsArray(post_ops))
        return byoc_graph_bad(r, "no pattern, operands or post_ops");
    if (!byoc_graph_operands(r, k, operands) || !byoc_graph_step(r, k, 0, node))
        return 0;
    cJSON_ArrayForEach(step, post_ops)
    {
        if (!byoc_graph_step(r, k, i++, step))
            return 0;
    }
    k->n_steps = r->g->n_steps - k->first;
    k->outs = r->steps[n - 1].at;
    k->n_outs = r->steps[n - 1].n;
    r->nodes[r->n_nodes] = r->steps[n - 1];
    r->g->n_kernels++;
    return 1;
}

/* Room for all that the nodes hold. */
static inline int byoc_graph_room(struct byoc_graph_reader *r,
                                  const cJSON *nodes)
{
    uint64_t n = byoc_graph_size(nodes), values = n, steps = n;
    const cJSON *node, *step, *type;
    struct byoc_graph *g = r->g;
    cJSON_ArrayForEach(node, nodes)
    {
        type = byoc_graph_get(node, "type");
        values += cJSON_IsArray(type) ? byoc_graph_size(type) : 1;
        cJSON_ArrayForEach(step, byoc_graph_get(node, "post_ops"))
        {
            type = byoc_graph_get(step, "type");
            values += cJSON_IsArray(type) ? byoc_graph_size(type) : 1;
            steps++;
        }
    }
    r->nodes = (struct byoc_graph_outs *)byoc_graph_new(r, n, sizeof *r->nodes);
    g->values =
        (struct byoc_graph_value *)byoc_graph_new(r, values, sizeof *g->values);
    g->steps =
        (struct byoc_graph_step *)byoc_graph_new(r, steps, sizeof *g->steps);
    g->kernels =
        (struct byoc_graph_kernel *)byoc_graph_new(r, n, sizeof *g->kernels);
    return !r->code;
}

/* "inputs" and "outputs". */
static inline int byoc_graph_ends(struct byoc_graph_reader *r,
                                  const cJSON *inputs, const cJSON *outputs)
{
    struct byoc_graph *g = r->g;
    uint32_t *in = (uint32_t *)byoc_graph_new(r, byoc_graph_size(inputs), 4);
    uint32_t *out = (uint32_t *)byoc_graph_new(r, byoc_graph_size(outputs), 4);
    const cJSON *one;
    uint64_t node;
    uint32_t i;
    if (!in || !out)
        return 0;
    cJSON_ArrayForEach(one, inputs)
    {
        if (!byoc_graph_number(one, r->n_nodes, &node) ||
            g->values[r->nodes[node].at[0]].kind != BYOC_GRAPH_INPUT ||
            g->values[r->nodes[node].at[0]].index != UINT32_MAX)
            return byoc_graph_bad(r, "'inputs' names what is no input");
        in[g->n_inputs] = r->nodes[node].at[0];
        g->values[in[g->n_inputs]].index = g->n_inputs;
        g->n_inputs++;
    }
    for (i = 0; i < g->n_values; i++)
        if (g->values[i].kind == BYOC_GRAPH_INPUT &&
            g->values[i].index == UINT32_MAX)
            return byoc_graph_bad(r, "an input that 'inputs' does not name");
    cJSON_ArrayForEach(one, outputs)
    {
        if (!byoc_graph_ref(r, one, &out[g->n_outputs++]))
            return 0;
    }
    g->inputs = in;
    g->outputs = out;
    return 1;
}

static inline int byoc_graph_nodes(struct byoc_graph_reader *r)
{
    const cJSON *root = r->g->json, *node;
    const cJSON *nodes = byoc_graph_get(root, "nodes");
    const char *format = byoc_graph_text(root, "format"), *op;
    uint64_t version;
    if (!format || strcmp(format, "byoc-graph") ||
        !byoc_graph_number(byoc_graph_get(root, "version"), 1e9, &version) ||
        version != 1)
        return byoc_graph_bad(r, "not a region of \"byoc-graph\", version 1");
    r->g->symbol = byoc_graph_text(root, "symbol");
    if (!byoc_graph_room(r, nodes))
        return 0;
    cJSON_ArrayForEach(node, nodes)
    {
        op = byoc_graph_text(node, "op");
        if (!op || (strcmp(op, "input") && strcmp(op, "const") &&
                    strcmp(op, "kernel")))
            return byoc_graph_bad(r, "neither input nor const nor kernel");
        if (!(op[0] == 'k' ? byoc_graph_kernel_node : byoc_graph_input)(r,
                                                                        node))
            return 0;
        r->n_nodes++;
    }
    return byoc_graph_ends(r, byoc_graph_get(root, "inputs"),
                           byoc_graph_get(root, "outputs"));
}

/* Give back all that a graph holds; NULL is fine. */
static inline void byoc_graph_free(const struct byoc_host *host,
                                   struct byoc_graph *g)
{
    void *block = g ? g->memory : NULL, *next;
    if (g)
        cJSON_Delete(g->json);
    for (; block; block = next) {
        memcpy(&next, block, sizeof next);
        host->release(host->ctx, block);
    }
}

/* The text as cJSON's tree: all of it, with the NUL that older cJSON reads. */
static inline int byoc_graph_parse(struct byoc_graph_reader *r)
{
    const uint64_t n = r->region->json_bytes;
    char *text = (char *)byoc_graph_new(r, n + 1, 1);
    const char *end = NULL;
    if (!text)
        return 0;
    memcpy(text, r->region->json, (size_t)n);
    r->g->json = cJSON_ParseWithLengthOpts(text, (size_t)n + 1, &end, 0);
    if (!r->g->json || end[strspn(end, " \t\r\n")])
        return byoc_graph_bad(r, "malformed JSON, or out of memory");
    return 1;
}

/* Read the region of load(), probe(), layout() or compile().
 * graph  NULL on failure; byoc_graph_free() ends it; its texts live as long,
 *        the data of constants as long as the region's
 * Errors: INVALID with the node and what is wrong there, UNSUPPORTED ("if"),
 * RESOURCE. Threads: any. */
static inline struct byoc_fail *byoc_graph_read(
    const struct byoc_host *host, const struct byoc_region *region,
    struct byoc_graph **graph)
{
    struct byoc_graph first, *g;
    struct byoc_graph_reader r;
    *graph = NULL;
    memset(&first, 0, sizeof first);
    memset(&r, 0, sizeof r);
    r.host = host;
    r.region = region;
    r.g = &first;
    g = (struct byoc_graph *)byoc_graph_new(&r, 1, sizeof first);
    if (!g)
        return host->fail(host->ctx, r.code, r.why);
    g->memory = first.memory; /* the first block is the graph itself */
    r.g = g;
    if (byoc_graph_parse(&r) && byoc_graph_nodes(&r)) {
        *graph = g;
        return NULL;
    }
    byoc_graph_free(host, g);
    return host->fail(host->ctx, r.code, r.why);
}

/* --- asking
 * ------------------------------------------------------------------- */

/* Where value `v` lies in a run. `memory`: graph->bytes bytes from acquire(),
 * the state: the results of steps lie there, each 64-byte aligned with 64 bytes
 * behind it that may be read. Only those may be written. */
static inline void *byoc_graph_data(const struct byoc_graph *g, uint32_t v,
                                    void *memory,
                                    const struct byoc_run_args *args)
{
    const struct byoc_graph_value *value = &g->values[v];
    if (value->kind == BYOC_GRAPH_INPUT)
        return args->inputs[value->index].data;
    if (value->kind == BYOC_GRAPH_CONST)
        return (void *)(uintptr_t)value->data;
    return (char *)memory + value->at;
}

/* The value that the row calls %name; NULL: the match has no such operand. */
static inline const struct byoc_graph_value *byoc_graph_operand(
    const struct byoc_graph *g, const struct byoc_graph_kernel *k,
    const char *name)
{
    uint32_t i;
    for (i = 0; i < k->n_operands; i++)
        if (strcmp(k->operands[i].name, name) == 0)
            return &g->values[k->operands[i].value];
    return NULL;
}

/* Attributes. A list: writes at most `max` numbers and returns how many it
 * has; 0: no such list. */
static inline uint32_t byoc_graph_ints(const struct byoc_graph_step *s,
                                       const char *name, int64_t *values,
                                       uint32_t max)
{
    const cJSON *list = byoc_graph_get(s->attrs, name), *one;
    uint32_t n = 0;
    if (!cJSON_IsArray(list))
        return 0;
    cJSON_ArrayForEach(one, list)
    {
        if (n++ < max)
            values[n - 1] = cJSON_IsNumber(one) ? (int64_t)one->valuedouble : 0;
    }
    return n;
}

/* A number, "inf", "-inf", "nan" or a boolean; `otherwise` where it is left
 * out: the operator's default. */
static inline double byoc_graph_float(const struct byoc_graph_step *s,
                                      const char *name, double otherwise)
{
    const cJSON *one = byoc_graph_get(s->attrs, name);
    double value = otherwise;
    if (cJSON_IsString(one) && sscanf(one->valuestring, "%lf", &value) == 1)
        return value;
    return cJSON_IsBool(one) ? cJSON_IsTrue(one)
                             : (cJSON_IsNumber(one) ? one->valuedouble : value);
}

static inline int64_t byoc_graph_int(const struct byoc_graph_step *s,
                                     const char *name, int64_t otherwise)
{
    return (int64_t)byoc_graph_float(s, name, (double)otherwise);
}

static inline const char *byoc_graph_string(const struct byoc_graph_step *s,
                                            const char *name,
                                            const char *otherwise)
{
    const char *text = byoc_graph_text(s->attrs, name);
    return text ? text : otherwise;
}

/* Layouts, as attributes name them: a capital letter for each axis, "NHWC", and
 * a number with a small letter for a block of one, "NCHW16c". */

/* Where the axis of that letter is; -1: nowhere, or the layout has blocks. */
static inline int byoc_graph_axis(const char *layout, char letter)
{
    int i, at = -1;
    for (i = 0; layout[i]; i++) {
        if (layout[i] < 'A' || layout[i] > 'Z')
            return -1;
        if (layout[i] == letter)
            at = i;
    }
    return at;
}

/* axes[i]: the axis of `from` that is axis i of `to`. Returns how many; 0: one
 * of them has blocks, or they differ in more than the order. */
static inline uint32_t byoc_graph_axes(const char *from, const char *to,
                                       uint32_t axes[BYOC_GRAPH_RANK])
{
    const size_t n = strlen(from);
    uint32_t i;
    if (n > BYOC_GRAPH_RANK || strlen(to) != n)
        return 0;
    for (i = 0; i < n; i++) {
        const int at = byoc_graph_axis(from, to[i]);
        if (at < 0 || strchr(to + i + 1, to[i]))
            return 0;
        axes[i] = (uint32_t)at;
    }
    return (uint32_t)n;
}

#ifdef __cplusplus
}
#endif
#endif
