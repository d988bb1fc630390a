/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/bands.c: finds convolutions that byoc's own kernels run in bands
 * (kernels/bands.h). In mobile networks, a pointwise convolution increases the
 * channels of a large image for a depthwise convolution. Another pointwise one
 * reduces them again. The large results between them are not stored. Nor are
 * those between the first convolution of a network and a depthwise one. */
#include "runtime_dnnl/build.h"

#include <byoc/graph.h>

#include <string.h>

#include "kernels/bands.h"

/* --- while building ------------------------------------------------------- */

static const struct byoc_graph_step *first_step(
    const struct byi_build *b, const struct byoc_graph_kernel *kernel)
{
    return &b->graph->steps[kernel->first];
}

static bool is_depthwise(const struct byi_build *b,
                         const struct byoc_graph_step *step)
{
    const int64_t groups = byoc_graph_int(step, "groups", 0);
    return groups > 1 && groups == b->graph->values[step->args[0]].dims[1];
}

static bool is_pointwise(const struct byi_build *b,
                         const struct byoc_graph_step *step)
{
    const int64_t *dims = b->graph->values[step->args[1]].dims;
    return byoc_graph_int(step, "groups", 0) == 1 && dims[2] == 1 &&
           dims[3] == 1;
}

/* Whether the kernel begins with an nn.conv2d in NCHW that is of this `kind`:
 * is_depthwise or is_pointwise. */
static bool begins_with(const struct byi_build *b,
                        const struct byoc_graph_kernel *kernel,
                        bool (*kind)(const struct byi_build *,
                                     const struct byoc_graph_step *))
{
    const struct byoc_graph_step *step = first_step(b, kernel);
    return byi_dn_is(step, "nn.conv2d") &&
           strcmp(byoc_graph_string(step, "data_layout", ""), "NCHW") == 0 &&
           kind(b, step);
}

/* Whether an image of this many bytes is evicted from the second-level cache,
 * at least in part, before it is read. Without AVX-512, the image must be
 * larger than the cache: for smaller images, bands take as long as separate
 * steps, some of which oneDNN runs faster. */
static bool is_large(uint64_t bytes)
{
    const int64_t cache = byi_f32_second_cache();
    return (int64_t)bytes > (byi_f32_kernels()->rows > 6 ? cache / 2 : cache);
}

static bool is_large_image(const struct byi_build *b, uint32_t value)
{
    const struct byoc_graph_value *type = &b->graph->values[value];
    return type->rank == 4 && type->dtype == BYOC_F32 && is_large(type->bytes);
}

/* The only reader of the large result of `kernel`, if it reads the result as
 * data; otherwise NULL. */
static const struct byoc_graph_kernel *reader_of(
    const struct byi_build *b, const struct byoc_graph_kernel *kernel)
{
    const uint32_t value = kernel->outs[0], at = b->reader[value];
    if (kernel->n_outs != 1 || at == BYI_NO_INDEX || !is_large_image(b, value))
        return NULL;
    const struct byoc_graph_kernel *reader = &b->graph->kernels[at];
    return first_step(b, reader)->args[0] == value ? reader : NULL;
}

/* The kernel whose large result only `kernel` reads, as data; otherwise NULL.
 */
static const struct byoc_graph_kernel *source_of(
    const struct byi_build *b, const struct byoc_graph_kernel *kernel)
{
    const uint32_t value = first_step(b, kernel)->args[0];
    const struct byoc_graph_value *type = &b->graph->values[value];
    if (type->kind != BYOC_GRAPH_RESULT)
        return NULL;
    const struct byoc_graph_kernel *from =
        &b->graph->kernels[b->graph->steps[type->index].kernel];
    return reader_of(b, from) == kernel ? from : NULL;
}

/* Whether the kernel is a depthwise convolution that is the only reader of the
 * large result of a pointwise one. */
static bool is_middle(const struct byi_build *b,
                      const struct byoc_graph_kernel *kernel)
{
    const struct byoc_graph_kernel *from =
        begins_with(b, kernel, is_depthwise) ? source_of(b, kernel) : NULL;
    return from && begins_with(b, from, is_pointwise);
}

bool byi_dn_is_banded(const struct byi_build *b)
{
    const struct byoc_graph_kernel *kernel = b->kernel;
    /* byi_f32_bands_plan refuses kernels with tiles of fewer rows */
    if (b->keeps_layouts || byi_f32_kernels()->rows < 6)
        return false;
    if (!begins_with(b, kernel, is_pointwise))
        return is_middle(b, kernel);
    const struct byoc_graph_kernel *to = reader_of(b, kernel);
    const struct byoc_graph_kernel *from = source_of(b, kernel);
    return (to && is_middle(b, to)) || (from && is_middle(b, from));
}

static const struct byi_use *find_use(const struct byi_emitted_step *emitted,
                                      int arg)
{
    for (uint32_t i = 0; i < emitted->n; i++)
        if (emitted->uses[i].arg == arg)
            return &emitted->uses[i];
    return NULL;
}

/* Whether step i is the only reader of the large result of the step before it.
 * `uses` has the number of uses of each buffer. */
static bool follows(const struct byi_build *b, uint32_t i, const uint32_t *uses)
{
    const struct byi_use *from = find_use(&b->emitted.at[i - 1], BYI_ARG_DST);
    const struct byi_use *to = find_use(&b->emitted.at[i], BYI_ARG_SRC);
    return from && to && from->buf == to->buf && from->offset == to->offset &&
           b->bufs.at[to->buf].kind == BYI_BUF_TEMP && uses[to->buf] == 2 &&
           is_large(b->bufs.at[to->buf].bytes);
}

/* Whether the last of n steps writes to a buffer that an earlier one uses. */
static bool overwrites(const struct byi_emitted_step *emitted, uint32_t n)
{
    const uint32_t to = find_use(&emitted[n - 1], BYI_ARG_DST)->buf;
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t k = 0; k < emitted[i].n; k++)
            if (emitted[i].uses[k].buf == to)
                return true;
    return false;
}

/* Mark the n steps emitted[] to run in bands; false if that is impossible or
 * not faster. */
static bool join(struct byi_build *b, struct byi_emitted_step *emitted,
                 uint32_t n)
{
    struct byi_prim *prims[BYI_F32_MAX_BAND_CONVS];
    for (uint32_t i = 0; i < n; i++)
        prims[i] = emitted[i].prim;
    if (overwrites(emitted, n) || !byi_bands_new(b->arena, prims, n))
        return false;
    for (uint32_t i = 1; i < n; i++) {
        emitted[i].joins = true;
        emitted->name = byi_arena_printf(b->program->arena, "%s+%s",
                                         emitted->name, emitted[i].name);
        emitted->sources =
            byi_arena_printf(b->program->arena, "%s%s%s", emitted->sources,
                             *emitted->sources ? "," : "", emitted[i].sources);
    }
    return true;
}

void byi_dn_find_bands(struct byi_build *b)
{
    uint32_t *uses = byi_arena_calloc(b->arena, b->bufs.n, sizeof *uses);
    for (uint32_t i = 0; i < b->emitted.n; i++)
        for (uint32_t k = 0; k < b->emitted.at[i].n; k++)
            uses[b->emitted.at[i].uses[k].buf]++;
    for (uint32_t i = 0, n; i < b->emitted.n; i += n) {
        n = 1;
        while (n < BYI_F32_MAX_BAND_CONVS && i + n < b->emitted.n &&
               follows(b, i + n, uses))
            n++;
        while (n > 1 && !join(b, &b->emitted.at[i], n))
            n--;
    }
}

/* --- the program ---------------------------------------------------------- */

void byi_dn_bands_end(struct byi_program *p)
{
    p->bands = byi_arena_calloc(p->arena, p->steps.n, sizeof(void *));
    for (uint32_t i = 0, n; i < p->steps.n; i += n) {
        n = 1;
        while (i + n < p->steps.n && p->steps.at[i + n].joins)
            n++;
        if (n > 1)
            p->bands[i] = byi_bands_new(p->arena, p->prims.at + i, n);
        const uint64_t bytes = p->bands[i] ? byi_bands_scratch(p->bands[i]) : 0;
        p->scratch_bytes = bytes > p->scratch_bytes ? bytes : p->scratch_bytes;
    }
}

const char *byi_dn_step_impl(const struct byi_program *p, uint32_t step)
{
    uint32_t first = step;
    while (first > 0 && p->steps.at[first].joins)
        first--;
    const struct byi_bands *bands = p->bands[first];
    return !bands          ? byi_prim_impl(p->prims.at[step])
           : step == first ? byi_bands_impl(bands)
                           : NULL;
}
