/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/walk.c: makes a program from a region's graph. Visits the
 * kernels in order, lets the builder of each append its primitives, and adds
 * the region's inputs and outputs. */
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

#include <stdlib.h>
#include <string.h>

#define NAME(op, name, ...) name
#define ELTWISE BYI_DN_ELTWISE(NAME, "|")
#define BINARY BYI_DN_BINARY(NAME, "|")
#define NONE BYI_DN_NOTHING
#define POSTS BYI_DN_POSTS
#define ATTENDS BYI_DN_ATTENDS
#define ROW(name, operators, operands, posts, accept, build)                   \
    {name, operators, posts, byi_dn_build_##build},
const struct byi_dn_row byi_dn_rows[] = {
#include "runtime_dnnl/patterns.def"
};
const uint32_t byi_dn_n_rows = BYI_COUNT(byi_dn_rows);

bool byi_dn_row_has(const struct byi_dn_row *row, const char *operator)
{
    const size_t n = strlen(operator);
    const char *at = row->operators;
    while (strncmp(at, operator, n) != 0 || (at[n] && at[n] != '|')) {
        at = strchr(at, '|');
        if (!at++)
            return false;
    }
    return true;
}

/* Set *row to the row with the name of the kernel's pattern, which must accept
 * step 0. */
static enum byoc_status find_row(struct byi_build *b,
                                 const struct byi_dn_row **row)
{
    const char *pattern = b->kernel->pattern, *op = byi_dn_step0(b)->name;
    uint32_t i = 0;
    while (i < byi_dn_n_rows && strcmp(byi_dn_rows[i].name, pattern) != 0)
        i++;
    if (i == byi_dn_n_rows)
        return byi_dn_refuse(
            b, "found pattern %s, expected one of this plug-in's patterns",
            pattern);
    *row = &byi_dn_rows[i];
    if (byi_dn_row_has(*row, op))
        return BYOC_OK;
    return byi_dn_refuse(b,
                         "pattern %s: found %s as its first operator, expected "
                         "one that the pattern has there",
                         pattern, op);
}

/* Count the uses of values: every read by a kernel and every region output is
 * one. */
static void count_uses(struct byi_build *b)
{
    const struct byoc_graph *g = b->graph;
    for (uint32_t n = 0; n < g->n_kernels; n++)
        for (uint32_t i = 0; i < g->kernels[n].n_operands; i++) {
            const uint32_t value = g->kernels[n].operands[i].value;
            b->values[value].uses++;
            b->reader[value] = n;
        }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        b->values[g->outputs[i]].uses++;
        b->reader[g->outputs[i]] = BYI_NO_INDEX;
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        if (b->values[v].uses != 1)
            b->reader[v] = BYI_NO_INDEX;
}

/* Count down the uses of the values and buffers that the kernel has read. */
static void release_operands(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->kernel->n_operands; i++) {
        struct byi_dnnl_value *value =
            byi_dn_operand(b, b->kernel->operands[i].value);
        value->uses--;
        for (uint32_t j = 0; j < value->n_views; j++)
            b->bufs.at[value->views[j].buf].uses--;
    }
}

/* Whether the step reads a tensor without elements, for which oneDNN computes
 * nothing, not even the padding of a pool. Omitted operands are vectors without
 * elements. */
static bool reads_empty(const struct byi_build *b,
                        const struct byoc_graph_step *step)
{
    for (uint32_t i = 0; i < step->n_args; i++) {
        const struct byoc_graph_value *v = &b->graph->values[step->args[i]];
        if (v->count == 0 && (i == 0 || v->rank != 1))
            return true;
    }
    return false;
}

/* Operands are checked when a match is probed. In a run with varying sizes, one
 * may be empty, such as the keys before a first token. */
static enum byoc_status check_types(struct byi_build *b)
{
    const bool probes = b->program->purpose == BYI_TO_PROBE;
    for (uint32_t i = 0; i < b->kernel->n_steps; i++) {
        const struct byoc_graph_step *step = byi_dn_step(b, i);
        for (uint32_t j = 0; j < step->n_outs; j++) {
            const struct byoc_graph_value *v = &b->graph->values[step->outs[j]];
            if (!byi_dnnl_has_dtype(v->dtype))
                return byi_dn_refuse(b,
                                     "%s: found dtype %s, expected float32, "
                                     "float16, bfloat16, int32, int8, uint8 or "
                                     "bool, which oneDNN has",
                                     step->name, byoc_dtype_name(v->dtype));
            if (v->count == 0 || (probes && reads_empty(b, step)))
                return byi_dn_refuse(b,
                                     "%s: found an empty tensor, expected at "
                                     "least one element",
                                     step->name);
        }
    }
    return BYOC_OK;
}

/* Whether the kernel's results are those of its last step, which builders
 * define. */
static bool returns_last_step(const struct byi_build *b)
{
    const struct byoc_graph_kernel *k = b->kernel;
    if (k->n_steps == 0)
        return false;
    const struct byoc_graph_step *last = byi_dn_step(b, k->n_steps - 1);
    return k->n_outs == last->n_outs &&
           memcmp(k->outs, last->outs, k->n_outs * sizeof *k->outs) == 0;
}

static enum byoc_status build_kernel(struct byi_build *b)
{
    BYI_TRY(check_types(b));
    if (!returns_last_step(b))
        return byi_dn_refuse(b,
                             "pattern %s: found results of an earlier step, "
                             "expected those of the last step",
                             b->kernel->pattern);
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const struct byi_dn_row *row = NULL;
    BYI_TRY(find_row(b, &row));
    if (row->following == BYI_DN_NOTHING && b->kernel->n_steps > 1)
        return byi_dn_refuse(
            b, "pattern %s: found %s after %s, expected no epilogue",
            b->kernel->pattern, byi_dn_step(b, 1)->name, step->name);
    b->sources = NULL;
    BYI_TRY(row->build(b));
    release_operands(b);
    return BYOC_OK;
}

/* Add the region's inputs and constants as buffers. */
static void add_inputs_and_consts(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->graph->n_values; i++) {
        const struct byoc_graph_value *v = &b->graph->values[i];
        if (v->kind == BYOC_GRAPH_RESULT)
            continue;
        const struct byi_buf buf = {
            .kind = v->kind == BYOC_GRAPH_INPUT ? BYI_BUF_INPUT : BYI_BUF_CONST,
            .index = v->index,
            .bytes = v->bytes};
        const struct byi_dnnl_view view = {
            .buf = byi_dn_add_buf(b, buf),
            .desc = byi_dn_dense(v->dtype, v->rank, v->dims, NULL)};
        byi_dn_add_view(b, &b->values[i], &view);
    }
}

static enum byoc_status build_kernels(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->graph->n_kernels; i++) {
        b->kernel = &b->graph->kernels[i];
        const enum byoc_status status = build_kernel(b);
        if (status == BYOC_OK)
            continue;
        /* the graph of a probe has a single kernel */
        return b->program->purpose == BYI_TO_PROBE
                   ? status
                   : byi_prefix(b->err, "kernels[%u]", i);
    }
    return BYOC_OK;
}

/* Make a temporary in row-major order the region's output, so that its
 * primitive writes to the caller's memory; if that is impossible, add a copy.
 */
static enum byoc_status place_output(struct byi_build *b, uint32_t index)
{
    const struct byoc_graph *g = b->graph;
    const struct byoc_graph_value *v = &g->values[g->outputs[index]];
    struct byi_dnnl_value *value = &b->values[g->outputs[index]];
    const struct byi_desc *main = &value->views[0].desc;
    const struct byi_desc row_major =
        byi_dn_dense(main->dtype, main->rank, main->dims, NULL);
    const struct byi_dnnl_view *existing = byi_dn_find(value, &row_major);
    if (existing) {
        struct byi_buf *buf = &b->bufs.at[existing->buf];
        if (buf->kind == BYI_BUF_TEMP && !buf->needs_slack &&
            existing->offset == 0 &&
            buf->bytes == byi_dn_desc_bytes(&row_major)) {
            buf->kind = BYI_BUF_OUTPUT;
            buf->index = index;
            return BYOC_OK;
        }
    }
    const struct byi_dnnl_view *src = existing ? existing : &value->views[0];
    const struct byi_dnnl_reorder r = {.src = src->desc, .dst = row_major};
    struct byi_emit e = {.name = "reorder"};
    b->kernel = v->kind == BYOC_GRAPH_RESULT
                    ? &g->kernels[g->steps[v->index].kernel]
                    : NULL;
    b->sources = NULL;
    BYI_TRY(byi_dn_reorder_new(b, &r, NULL, &e.prim));
    BYI_TRY(byi_prim_check(&e.prim, "reorder",
                           byi_elements(row_major.rank, row_major.dims),
                           b->err));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    const struct byi_buf out = {.kind = BYI_BUF_OUTPUT,
                                .index = index,
                                .bytes = byi_dn_desc_bytes(&row_major)};
    byi_dn_use(&e, BYI_ARG_DST,
               &(struct byi_dnnl_view){.buf = byi_dn_add_buf(b, out)});
    return byi_dn_emit(b, &e);
}

/* Whether the step writes to a region output, or to a buffer that a later step
 * reads. */
static bool is_live(const struct byi_build *b,
                    const struct byi_emitted_step *emitted, const bool *is_read)
{
    for (uint32_t i = 0; i < emitted->n; i++) {
        const int arg = emitted->uses[i].arg;
        const uint32_t buf = emitted->uses[i].buf;
        if ((arg == BYI_ARG_DST || arg == BYI_ARG_DST_H ||
             arg == BYI_ARG_DST_C) &&
            (b->bufs.at[buf].kind != BYI_BUF_TEMP || is_read[buf]))
            return true;
    }
    return false;
}

/* Drop steps whose results no step reads, such as a conversion to floats whose
 * reader uses the integers instead. */
static void drop_dead_steps(struct byi_build *b)
{
    bool *is_read = byi_arena_calloc(b->arena, b->bufs.n, sizeof *is_read);
    bool *dead = byi_arena_calloc(b->arena, b->emitted.n, sizeof *dead);
    uint32_t n = 0;
    for (uint32_t i = b->emitted.n; i-- > 0;) {
        const struct byi_emitted_step *emitted = &b->emitted.at[i];
        dead[i] = !is_live(b, emitted, is_read);
        for (uint32_t k = 0; k < emitted->n && !dead[i]; k++)
            is_read[emitted->uses[k].buf] = true;
    }
    for (uint32_t i = 0; i < b->emitted.n; i++)
        if (dead[i])
            byi_prim_free(&b->emitted.at[i].prim);
        else
            b->emitted.at[n++] = b->emitted.at[i];
    b->emitted.n = n;
}

/* Find the first and last step of each buffer, between which it is live. Steps
 * that run in bands run at the same time. */
static void find_lifetimes(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->bufs.n; i++) {
        b->bufs.at[i].first = UINT32_MAX;
        b->bufs.at[i].last = 0;
    }
    for (uint32_t i = 0, first = 0; i < b->emitted.n; i++) {
        uint32_t last = i;
        first = b->emitted.at[i].joins ? first : i;
        while (last + 1 < b->emitted.n && b->emitted.at[last + 1].joins)
            last++;
        for (uint32_t k = 0; k < b->emitted.at[i].n; k++) {
            struct byi_buf *buf = &b->bufs.at[b->emitted.at[i].uses[k].buf];
            buf->first = first < buf->first ? first : buf->first;
            buf->last = last;
        }
    }
}

/* Append a step, whose buffers have been placed, to the program. */
static enum byoc_status add_step(struct byi_build *b,
                                 struct byi_emitted_step *emitted)
{
    struct byi_program *p = b->program;
    struct byi_dnnl_slot *slots =
        byi_arena_calloc(p->arena, emitted->n, sizeof *slots);
    for (uint32_t i = 0; i < emitted->n; i++) {
        const struct byi_buf *buf = &b->bufs.at[emitted->uses[i].buf];
        slots[i] = (struct byi_dnnl_slot){
            .arg = emitted->uses[i].arg,
            .at = {.kind = buf->kind,
                   .index = buf->index,
                   .offset = buf->offset + emitted->uses[i].offset}};
    }
    const struct byi_dnnl_step step = {.index = p->steps.n,
                                       .joins = emitted->joins,
                                       .name = emitted->name,
                                       .sources = emitted->sources,
                                       .n_slots = emitted->n,
                                       .slots = slots};
    struct byi_prim *prim = emitted->prim;
    emitted->prim = NULL;
    BYI_TRY(byi_dn_program_prim(p, prim, b->err));
    BYI_PUSH(&p->steps, step);
    return BYOC_OK;
}

/* Drop constants that were needed only to make other constants. */
static void drop_unread(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->bufs.n; i++) {
        const struct byi_buf *buf = &b->bufs.at[i];
        if (buf->kind == BYI_BUF_COMPUTED && buf->first == UINT32_MAX)
            byi_dn_drop_computed(b->program, buf->index);
    }
}

static enum byoc_status finish_program(struct byi_build *b)
{
    drop_dead_steps(b);
    byi_dn_find_bands(b);
    find_lifetimes(b);
    BYI_TRY(byi_dn_plan_temps(b));
    for (uint32_t i = 0; i < b->emitted.n; i++)
        BYI_TRY(add_step(b, &b->emitted.at[i]));
    drop_unread(b);
    byi_dn_bands_end(b->program);
    return BYOC_OK;
}

static enum byoc_status build_program(struct byi_build *b)
{
    const struct byoc_graph *g = b->graph;
    b->values = byi_arena_calloc(b->arena, g->n_values, sizeof *b->values);
    b->reader = byi_arena_calloc(b->arena, g->n_values, sizeof *b->reader);
    count_uses(b);
    add_inputs_and_consts(b);
    BYI_TRY(build_kernels(b));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        BYI_TRY(place_output(b, i));
    return finish_program(b);
}

/* Read BYOC_DNNL_LAYOUT, the layout of activations inside a region. */
static enum byoc_status read_layout(bool *keeps_layouts, struct byoc_error *err)
{
    const char *text = getenv("BYOC_DNNL_LAYOUT");
    *keeps_layouts = text && strcmp(text, "plain") == 0;
    if (!text || !*text || *keeps_layouts || strcmp(text, "channels-last") == 0)
        return BYOC_OK;
    return byi_fail(
        err, BYOC_EINVAL,
        "BYOC_DNNL_LAYOUT is %.40s, expected plain or channels-last", text);
}

/* Store the sizes of the region's inputs and outputs in the program. */
static void store_io_sizes(struct byi_build *b)
{
    struct byi_program *p = b->program;
    const struct byoc_graph *g = b->graph;
    uint64_t *in = byi_arena_calloc(p->arena, g->n_inputs, sizeof *in);
    uint64_t *out = byi_arena_calloc(p->arena, g->n_outputs, sizeof *out);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        in[i] = g->values[g->inputs[i]].bytes;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        out[i] = g->values[g->outputs[i]].bytes;
    p->name = byi_arena_str(p->arena, g->symbol);
    p->n_inputs = g->n_inputs;
    p->n_outputs = g->n_outputs;
    p->input_bytes = in;
    p->output_bytes = out;
}

static void close_build(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->emitted.n; i++)
        byi_prim_free(&b->emitted.at[i].prim);
    byi_dn_prims_free(b);
    byi_vec_free(b->emitted.at);
    byi_vec_free(b->bufs.at);
    byi_vec_free(b->packs.at);
    byi_arena_free(&b->arena);
}

/* Called through byi_guarded. */
static enum byoc_status build_region(void *arg, struct byoc_error *err)
{
    struct byi_build *b = arg;
    BYI_TRY(read_layout(&b->keeps_layouts, err));
    b->arena = byi_arena_new();
    store_io_sizes(b);
    return build_program(b);
}

enum byoc_status byi_dn_build(const struct byi_dnnl *lib,
                              const struct byoc_host *host,
                              const struct byoc_graph *graph,
                              const struct byoc_region *region,
                              enum byi_purpose purpose,
                              struct byi_program **program,
                              struct byoc_error *err)
{
    struct byoc_error local = {0}; /* also receives errors of failed attempts */
    struct byi_build b = {.lib = lib, .graph = graph, .err = &local};
    enum byoc_status status =
        byi_dn_program_new(lib, host, purpose, region, &b.program, &local);
    struct byi_guard guard = {0};
    if (status == BYOC_OK)
        status = byi_guarded(&guard, build_region, &b, &local);
    close_build(&b);
    if (status == BYOC_OK)
        *program = b.program;
    else
        byi_dn_program_free(&b.program);
    byi_guard_leave(&guard);
    if (status == BYOC_OK)
        return BYOC_OK;
    return byi_fail(err, status, "%s", local.text);
}
