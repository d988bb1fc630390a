/* SPDX-License-Identifier: Apache-2.0 */
/* region.c: feeds a region: reads it and binds it to sizes, or lets the oneDNN
 * plug-in probe, load and run it.
 */
#include "fuzz.h"

#include "region/graph.h"
#include "runtime/internal.h"

/* Limits of the values and operations of a region that runs. */
enum { MAX_BYTES = 8 << 20, MAX_FLOPS = 20 << 20 };

static const struct byi_type *type_of(const struct byi_graph *g,
                                      struct byi_graph_ref ref)
{
    return g->nodes[ref.node].out[ref.output];
}

static double step_flops(const struct byi_graph *g,
                         const struct byi_graph_node *n,
                         const struct byi_graph_step *s,
                         struct byi_arena *arena)
{
    const struct byi_type **in = byi_arena_calloc(arena, s->n_args, sizeof *in);
    for (uint32_t i = 0; i < s->n_args; i++) {
        in[i] = s->args[i].is_step
                    ? n->steps[s->args[i].index].type
                    : type_of(g, n->operands[s->args[i].index].ref);
        if (s->args[i].is_field)
            in[i] = in[i]->fields[s->args[i].field];
    }
    return byi_op_flops(s->op, s->attrs, in, s->type);
}

static bool is_small(const struct byi_graph *g, struct byi_arena *arena)
{
    uint64_t bytes = 0;
    double flops = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const struct byi_graph_node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->n_out; k++) {
            uint64_t value_bytes = byi_type_bytes(n->out[k]);
            if (value_bytes > MAX_BYTES)
                return false;
            bytes += value_bytes;
        }
        for (uint32_t k = 0; k < n->n_steps; k++)
            flops += step_flops(g, n, &n->steps[k], arena);
    }
    return bytes <= MAX_BYTES && flops <= MAX_FLOPS;
}

static struct byoc_view make_view(struct fuzz_case *c,
                                  const struct byi_type *type,
                                  struct byi_arena *arena)
{
    struct byi_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (uint32_t i = 0; i < t.rank; i++)
        t.dims[i] = type->dims[i];
    uint64_t bytes = byi_tensor_bytes(&t);
    t.data = byi_acquire(bytes + 1);
    byi_arena_defer(arena, byi_release, t.data);
    bool number =
        byoc_dtype_size(t.dtype) && t.dtype != BYOC_C64 && t.dtype != BYOC_C128;
    int64_t n = number ? byi_elements(t.rank, t.dims) : 0;
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(&t, i, (double)fuzz_below(&c->rng, 4));
    return (struct byoc_view){.dtype = (uint32_t)type->dtype,
                              .rank = type->rank,
                              .dims = type->dims,
                              .data = t.data,
                              .bytes = bytes};
}

/* Check a backend's failure as fuzz_refused() checks one of byoc. Returns true
 * if there is no failure, or a valid one. */
static bool is_proper(struct fuzz_case *c, const struct byi_plugin *p,
                      struct byoc_fail *fail, const char *where)
{
    if (!fail)
        return true;
    bool good = p->host.fail_code(fail) != BYOC_FAIL_INTERNAL &&
                p->host.fail_text(fail)[0];
    if (!good)
        snprintf(c->why, sizeof c->why, "%s: %s", where,
                 p->host.fail_text(fail));
    p->host.fail_free(fail);
    return good;
}

static bool run(struct fuzz_case *c, const struct byi_plugin *p,
                const struct byi_graph *g, void *compiled,
                struct byi_arena *arena)
{
    const struct byoc_backend *b = p->backend;
    struct byoc_view *in = byi_arena_calloc(arena, g->n_inputs, sizeof *in);
    struct byoc_view *out = byi_arena_calloc(arena, g->n_outputs, sizeof *out);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        in[i] = make_view(c, g->nodes[g->inputs[i]].out[0], arena);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        out[i] = make_view(c, type_of(g, g->outputs[i]), arena);
    void *state = NULL;
    struct byoc_fail *fail = byi_plugin_state_new(p, compiled, &state);
    if (fail)
        return is_proper(c, p, fail, "state_new");
    const struct byoc_run_args args = {
        .struct_size = sizeof args,
        .n_inputs = g->n_inputs,
        .n_outputs = g->n_outputs,
        .inputs = in,
        .outputs = out,
        .scratch = byi_acquire(byi_plugin_scratch_bytes(p, compiled))};
    fail = b->run(&p->host, compiled, state, &args);
    c->accepted = !fail;
    bool good = is_proper(c, p, fail, "run");
    byi_plugin_state_free(p, compiled, state);
    byi_release(args.scratch);
    return good;
}

/* Random constants for the region. */
static struct byoc_view *make_consts(struct fuzz_case *c,
                                     const struct byi_graph *g,
                                     struct byi_arena *arena)
{
    struct byoc_view *consts =
        byi_arena_calloc(arena, g->n_consts, sizeof *consts);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].kind == BYI_GRAPH_CONST)
            consts[g->nodes[i].data] = make_view(c, g->nodes[i].out[0], arena);
    return consts;
}

static bool load(struct fuzz_case *c, const struct byi_plugin *p,
                 const struct byi_graph *g, struct byi_arena *arena)
{
    const struct byoc_backend *b = p->backend;
    struct byoc_view *consts = make_consts(c, g, arena);
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = g->n_consts,
                                       .json = c->bytes,
                                       .json_bytes = c->n,
                                       .consts = consts};
    struct byoc_probe probe = {.struct_size = sizeof probe};
    if (!is_proper(c, p, b->probe(&p->host, &region, &probe), "probe"))
        return false;
    void *compiled = NULL;
    struct byoc_fail *fail = b->load(&p->host, &region, &compiled);
    if (fail)
        return is_proper(c, p, fail, "load");
    bool good = run(c, p, g, compiled, arena);
    b->unload(&p->host, compiled);
    return good;
}

bool fuzz_feed_region_run(struct fuzz_case *c)
{
    struct byi_graph *g = NULL;
    struct byoc_error err;
    if (byi_graph_read(c->bytes, c->n, &g, &err) != BYOC_OK)
        return fuzz_refused(c, "read", &err);
    struct byi_arena *arena = byi_arena_new();
    struct byi_plugin *plugin = NULL;
    bool good = true;
    if (is_small(g, arena)) {
        if (byoc_internal_plugin_open(BUILD_DIR "/libbyoc_backend_dnnl.so", 1,
                                      &plugin, &err) != BYOC_OK)
            good = fuzz_refused(c, "plug-in", &err);
        else
            good = load(c, plugin, g, arena);
        byoc_internal_plugin_close(&plugin);
    }
    byi_arena_free(&arena);
    byi_graph_free(&g);
    return good;
}

/* The type of an input with random sizes for its symbolic dims. */
static const struct byi_type *with_sizes(struct fuzz_case *c,
                                         const struct byi_type *type,
                                         struct byi_arena *arena)
{
    struct byi_type *t = byi_arena_copy(arena, type, sizeof *type);
    int64_t *dims = byi_arena_calloc(arena, t->rank + 1, sizeof *dims);
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = type->dims[i] < 0 ? 1 + (int64_t)fuzz_below(&c->rng, 3)
                                    : type->dims[i];
    t->dims = dims;
    return t;
}

/* Whether all constants have known, small sizes. */
static bool has_small_consts(const struct byi_graph *g)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const struct byi_type *type = g->nodes[i].out[0];
        if (g->nodes[i].kind != BYI_GRAPH_CONST)
            continue;
        for (uint32_t k = 0; k < type->rank; k++)
            if (type->dims[k] < 0)
                return false;
        const uint64_t value_bytes = byi_type_bytes(type);
        bytes = value_bytes > MAX_BYTES ? UINT64_MAX / 2 : bytes + value_bytes;
        if (bytes > MAX_BYTES)
            return false;
    }
    return true;
}

/* Bind sizes; the result must be a region without symbolic dims. */
static bool bind(struct fuzz_case *c, const struct byi_graph *g,
                 struct byi_arena *arena)
{
    const struct byi_region_consts consts = {g->n_consts,
                                             make_consts(c, g, arena), NULL};
    const struct byi_type **in =
        byi_arena_calloc(arena, g->n_inputs + 1, sizeof *in);
    struct byi_sized bound;
    struct byi_graph *reread = NULL;
    struct byoc_error err;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        in[i] = with_sizes(c, g->nodes[g->inputs[i]].out[0], arena);
    if (byoc_internal_region_bind(c->bytes, c->n, &consts, g->n_inputs, in,
                                  arena, &bound, &err) != BYOC_OK)
        return fuzz_refused(c, "bind", &err);
    c->accepted = true;
    if (byi_graph_read(bound.json, bound.json_bytes, &reread, &err) != BYOC_OK)
        return fuzz_wrong(c, "a bound region does not read: ", err.text);
    byi_graph_free(&reread);
    return true;
}

bool fuzz_feed_region(struct fuzz_case *c)
{
    struct byi_graph *g = NULL;
    struct byoc_error err;
    if (byi_graph_read_varying(c->bytes, c->n, &g, &err) != BYOC_OK)
        return fuzz_refused(c, "read", &err);
    struct byi_arena *arena = byi_arena_new();
    const bool good = !has_small_consts(g) || bind(c, g, arena);
    byi_arena_free(&arena);
    byi_graph_free(&g);
    return good;
}
