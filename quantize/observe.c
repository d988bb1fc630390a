/* SPDX-License-Identifier: Apache-2.0 */
/* observe.c: compiles a model with further tensors as outputs, and runs it on
 * samples.
 */
#include "quantize/model.h"

#include "driver/feed.h"

/* Pack the model as *bytes bytes, with the tensors of `names` after its
 * outputs.
 */
static const void *pack_observed(const struct quant_model *m,
                                 const char *const *names, uint32_t n,
                                 size_t *bytes)
{
    const Onnx__GraphProto *old = m->graph;
    Onnx__GraphProto graph = *old;
    Onnx__ModelProto proto = *m->proto;
    struct quant_model observed = *m;
    graph.n_output = old->n_output + n;
    graph.output =
        byi_arena_calloc(m->arena, graph.n_output, sizeof(*graph.output));
    for (size_t i = 0; i < old->n_output; i++)
        graph.output[i] = old->output[i];
    for (uint32_t i = 0; i < n; i++) {
        Onnx__ValueInfoProto *info =
            byi_arena_alloc(m->arena, sizeof(Onnx__ValueInfoProto));
        onnx__value_info_proto__init(info);
        info->name = byi_arena_str(m->arena, names[i]);
        graph.output[old->n_output + i] = info;
    }
    proto.graph = &graph;
    observed.proto = &proto;
    return byi_quant_pack(&observed, bytes);
}

enum byoc_status byi_quant_open(const struct quant_model *m,
                                const char *const *names, uint32_t n,
                                uint32_t threads, struct quant_run *run,
                                struct byoc_error *err)
{
    const struct byoc_compile_params params = {.struct_size = sizeof params,
                                               .threads = threads};
    const struct byoc_load_params load = {.struct_size = sizeof load};
    size_t bytes;
    const void *data = pack_observed(m, names, n, &bytes);
    *run = (struct quant_run){.n = n,
                              .n_outputs = (uint32_t)m->graph->n_output,
                              .arena = byi_arena_new()};
    BYI_TRY(byoc_compile_memory(data, bytes, m->path, &params, &run->compiled,
                                err));
    BYI_TRY(byoc_compiled_load(run->compiled, &load, &run->model, err));
    return byoc_state_new(run->model, &run->state, err);
}

enum byoc_status byi_quant_run(struct quant_run *run,
                               const struct quant_sample *sample,
                               struct byoc_error *err)
{
    const struct byi_feed_params params = {.data = sample->data,
                                           .npz = sample->npz};
    struct byi_feed in, out;
    byi_arena_reset(run->arena);
    BYI_TRY(byi_feed_inputs(run->model, &params, run->arena, &in, err));
    out = byi_feed_outputs(run->model, run->arena);
    const enum byoc_status status = byi_feed_run(run->state, &in, &out, err);
    if (status != BYOC_OK)
        return byi_prefix(err, "%s", sample->data ? sample->data : sample->npz);
    struct byi_tensor *values =
        byi_arena_calloc(run->arena, out.n, sizeof *values);
    for (uint32_t i = 0; i < out.n; i++)
        values[i] = byi_feed_tensor(&out.views[i]);
    run->outputs = values;
    run->tensors = values + run->n_outputs;
    return BYOC_OK;
}

void byi_quant_close(struct quant_run *run)
{
    byoc_state_free(&run->state);
    byoc_model_free(&run->model);
    byoc_compiled_free(&run->compiled);
    if (run->arena)
        byi_arena_free(&run->arena);
}
