/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c: runs the steps that quantise a model, and makes the report. */
#include "quantize/quantize.h"

#include <math.h>
#include <string.h>

#include "npy/npy.h"
#include "quantize/model.h"

/* The quantised model for a choice of layers, and a run of it. */
struct quant_trial {
    struct quant_model m;
    struct quant_run run;
    const void *data; /* the packed model, of `bytes` bytes */
    size_t bytes;
};

/* The state of byi_quantize. */
struct quantization {
    const struct byi_quantize_params *params;
    const char *path;
    struct quant_model m; /* as read from the file; never rewritten */
    struct quant_samples samples;
    /* the observed tensors: the first n_read are read by selections, further
     * ones up to n_results are results of layers, further ones up to n_observed
     * need a range */
    struct quant_value **observed;
    const char **names;
    uint32_t n_read, n_results, n_observed;
    struct quant_histogram *histograms; /* indexed by value of `m` */
    struct quant_run original;
    struct quant_trial quantized;
    /* sums of squares: by layer; then by output of the model; then by tensor
     * that selections read */
    double *signal, *noise;
    uint32_t n_compared;
    int64_t n_labels;
    int64_t correct[2];  /* by the original model, by the quantized one */
    bool *kept;          /* for each layer: the search keeps it in float32 */
    double *error_alone; /* for each layer: as in struct byi_quantized_layer */
    double loss_of_all;  /* as in struct byi_quantize_report */
    uint32_t n_trials;
};

/* --- observed tensors ----------------------------------------------------- */

static void observe(struct quantization *q, struct quant_value *v)
{
    if (v->observed_at != UINT32_MAX || v->output)
        return;
    v->observed_at = q->n_observed;
    q->names[q->n_observed] = v->name;
    q->observed[q->n_observed++] = v;
}

/* If outputs of the model depend on TopK, NonMaxSuppression or NonZero, observe
 * the inputs of these operators, which are compared instead. The outputs may
 * change much when the inputs change little. */
static void observe_selection_inputs(struct quantization *q)
{
    struct quant_model *m = &q->m;
    bool selected = false;
    for (uint32_t i = 0; i < m->n_values; i++)
        selected |= m->values[i].output && m->values[i].selected;
    for (size_t i = 0; selected && i < m->graph->n_node; i++) {
        const Onnx__NodeProto *node = m->graph->node[i];
        const struct quant_value *y =
            node->n_output ? byi_quant_value(m, node->output[0]) : NULL;
        for (size_t k = 0; y && y->selected && k < node->n_input; k++) {
            struct quant_value *v = byi_quant_value(m, node->input[k]);
            if (v && v->producer && !v->constant && !v->selected)
                observe(q, v);
        }
    }
    q->n_read = q->n_observed;
}

/* List the tensors to observe. */
static void list_observed(struct quantization *q)
{
    struct quant_model *m = &q->m;
    q->names = byi_arena_calloc(m->arena, m->n_values, sizeof *q->names);
    q->observed = byi_arena_calloc(m->arena, m->n_values, sizeof *q->observed);
    for (uint32_t i = 0; i < m->n_values; i++)
        m->values[i].observed_at = UINT32_MAX;
    observe_selection_inputs(q);
    for (uint32_t i = 0; i < m->n_layers; i++)
        observe(q, m->layers[i].y);
    q->n_results = q->n_observed;
    for (uint32_t i = 0; i < m->n_values; i++)
        if (m->values[i].to_quantize && !m->values[i].range_of)
            observe(q, &m->values[i]);
}

/* Returns the value of `v` in the last run; NULL if `v` is an output that the
 * model does not have. An output of the model is not observed a second time. */
static const struct byi_tensor *tensor_of(const struct quantization *q,
                                          const struct quant_run *run,
                                          const struct quant_value *v)
{
    if (!v->output)
        return &run->tensors[v->observed_at];
    for (uint32_t i = 0; i < run->n_outputs; i++)
        if (strcmp(q->m.graph->output[i]->name, v->name) == 0)
            return &run->outputs[i];
    return NULL;
}

/* --- ranges --------------------------------------------------------------- */

static enum byoc_status check_float(const struct quant_value *v,
                                    const struct byi_tensor *t,
                                    struct byoc_error *err)
{
    if (t->dtype == BYOC_F32)
        return BYOC_OK;
    return byi_fail(err, BYOC_ETYPE,
                    "tensor '%s': found %s, expected float32; keep the nodes "
                    "that read it in float32",
                    v->name, byoc_dtype_name(t->dtype));
}

/* Run the original model on all samples. After each run, call add_values() for
 * each tensor that needs a range of its own. */
static enum byoc_status scan_samples(
    struct quantization *q,
    void (*add_values)(struct quant_histogram *h, const struct byi_tensor *t),
    struct byoc_error *err)
{
    const struct quant_model *m = &q->m;
    for (uint32_t s = 0; s < q->samples.n; s++) {
        BYI_TRY(byi_quant_run(&q->original, &q->samples.at[s], err));
        for (uint32_t i = 0; i < m->n_values; i++) {
            const struct quant_value *v = &m->values[i];
            if (!v->to_quantize || v->range_of)
                continue;
            const struct byi_tensor *t = tensor_of(q, &q->original, v);
            BYI_TRY(check_float(v, t, err));
            add_values(&q->histograms[i], t);
        }
    }
    return BYOC_OK;
}

/* Check that the tensors that need a range have a finite value on the samples.
 * Single values may be NaN or infinite, such as those of a mask. */
static enum byoc_status check_finite(const struct quantization *q,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < q->m.n_values; i++)
        if (q->histograms[i].any && !q->histograms[i].any_finite)
            return byi_fail(err, BYOC_EINVAL,
                            "tensor '%s': found only NaN and infinite values "
                            "on the samples, expected numbers; correct the "
                            "samples, or keep the nodes that read it in "
                            "float32",
                            q->m.values[i].name);
    return BYOC_OK;
}

static enum byoc_status find_ranges(struct quantization *q,
                                    struct byoc_error *err)
{
    struct quant_model *m = &q->m;
    q->histograms =
        byi_arena_calloc(m->arena, m->n_values, sizeof *q->histograms);
    BYI_TRY(scan_samples(q, byi_quant_widen, err));
    BYI_TRY(check_finite(q, err));
    if (q->params->method != BYI_RANGE_MINMAX)
        BYI_TRY(scan_samples(q, byi_quant_count, err));
    for (uint32_t i = 0; i < m->n_values; i++)
        byi_quant_range(&q->histograms[i], q->params->method,
                        q->params->percentile, &m->values[i].low,
                        &m->values[i].high);
    return BYOC_OK;
}

/* --- comparison ----------------------------------------------------------- */

/* Add the squares of a, and of its differences from b, to the sums. Elements of
 * a that are NaN or infinite do not count. Such an element of b alone is
 * infinite noise. */
static void add_noise(const struct byi_tensor *a, const struct byi_tensor *b,
                      double *signal, double *noise)
{
    const int64_t n = byi_elements(a->rank, a->dims);
    const float *x = a->data, *y = b->data;
    if (a->dtype != BYOC_F32 || b->dtype != BYOC_F32 ||
        !byi_dims_equal(a->rank, a->dims, b->rank, b->dims))
        return;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        const double difference =
            isfinite(y[i]) ? (double)x[i] - (double)y[i] : INFINITY;
        *signal += (double)x[i] * (double)x[i];
        *noise += difference * difference;
    }
}

/* Returns the number of rows of `scores` whose largest element is at their
 * label. */
static int64_t count_correct(const struct byi_tensor *scores,
                             const struct byi_tensor *labels)
{
    const int64_t rows = byi_elements(labels->rank, labels->dims);
    const int64_t n = byi_elements(scores->rank, scores->dims) / rows;
    int64_t correct = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (byi_tensor_float(scores, r * n + i) >
                byi_tensor_float(scores, r * n + best))
                best = i;
        correct += best == byi_tensor_int(labels, r);
    }
    return correct;
}

static enum byoc_status compare_labels(struct quantization *q, const char *file,
                                       struct byoc_error *err)
{
    struct byi_tensor labels;
    const struct byi_tensor *scores = &q->original.outputs[0];
    BYI_TRY(byi_npy_read(file, q->quantized.run.arena, &labels, err));
    const int64_t n = byi_elements(labels.rank, labels.dims);
    const int64_t n_scores = byi_elements(scores->rank, scores->dims);
    if (!byi_dtype_is_int(labels.dtype))
        return byi_fail(err, BYOC_ETYPE,
                        "%s: found labels of %s, expected integers", file,
                        byoc_dtype_name(labels.dtype));
    if (n <= 0 || n_scores <= n || n_scores % n)
        return byi_fail(err, BYOC_ETYPE,
                        "%s: found %lld labels for a first output of %lld "
                        "elements, expected one for each row of it",
                        file, (long long)n, (long long)n_scores);
    q->n_labels += n;
    q->correct[0] += count_correct(scores, &labels);
    q->correct[1] += count_correct(&q->quantized.run.outputs[0], &labels);
    return BYOC_OK;
}

/* Add signal and noise of each output of the model and, instead of the outputs
 * that depend on selections, of the inputs of the selections. */
static void compare_outputs(struct quantization *q)
{
    const struct quant_run *quantized = &q->quantized.run;
    double *signal = q->signal + q->m.n_layers,
           *noise = q->noise + q->m.n_layers;
    for (uint32_t i = 0; i < q->original.n_outputs; i++, signal++, noise++) {
        const struct quant_value *v =
            byi_quant_value(&q->m, q->m.graph->output[i]->name);
        if (q->n_read == 0 || !v->selected)
            add_noise(&q->original.outputs[i], &quantized->outputs[i], signal,
                      noise);
    }
    for (uint32_t i = 0; i < q->n_read; i++)
        add_noise(&q->original.tensors[i], &quantized->tensors[i], signal + i,
                  noise + i);
}

/* Returns the mean ratio of noise to signal over all outputs. Each output
 * counts the same, regardless of its size. */
static double output_noise(const struct quantization *q)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = q->m.n_layers; i < q->n_compared; i++) {
        if (!(q->signal[i] > 0))
            continue;
        sum += q->noise[i] / q->signal[i];
        n++;
    }
    return n ? sum / n : 0;
}

/* Run both models on all samples, and add up signal, noise and correct labels.
 * Layers are compared only if the quantised model observes their results. */
static enum byoc_status compare_models(struct quantization *q,
                                       struct byoc_error *err)
{
    const struct quant_model *m = &q->m;
    const struct quant_run *quantized = &q->quantized.run;
    const uint32_t n = m->n_layers;
    memset(q->signal, 0, q->n_compared * sizeof *q->signal);
    memset(q->noise, 0, q->n_compared * sizeof *q->noise);
    q->n_labels = q->correct[0] = q->correct[1] = 0;
    for (uint32_t s = 0; s < q->samples.n; s++) {
        const struct quant_sample *sample = &q->samples.at[s];
        BYI_TRY(byi_quant_run(&q->original, sample, err));
        BYI_TRY(byi_quant_run(&q->quantized.run, sample, err));
        for (uint32_t i = 0; i < n && quantized->n == q->n_results; i++)
            add_noise(tensor_of(q, &q->original, m->layers[i].y),
                      tensor_of(q, quantized, m->layers[i].y), &q->signal[i],
                      &q->noise[i]);
        compare_outputs(q);
        if (sample->labels)
            BYI_TRY(compare_labels(q, sample->labels, err));
    }
    return BYOC_OK;
}

/* Returns the outputs' relative error, in percent. */
static double output_error(const struct quantization *q)
{
    return 100 * sqrt(output_noise(q));
}

/* See struct byi_quantize_report.loss. */
static double find_loss(const struct quantization *q)
{
    if (q->n_labels)
        return 100 * (double)(q->correct[0] - q->correct[1]) /
               (double)q->n_labels;
    return output_error(q);
}

/* --- choices of layers ---------------------------------------------------- */

static void close_trial(struct quant_trial *trial)
{
    byi_quant_close(&trial->run);
    if (trial->m.arena)
        byi_arena_free(&trial->m.arena);
    *trial = (struct quant_trial){0};
}

/* Make q->quantized the model in which all layers but the kept ones are
 * quantised, with the ranges found before. `results`: observe the layers'
 * results. */
static enum byoc_status open_trial(struct quantization *q, const bool *kept,
                                   bool results, struct byoc_error *err)
{
    struct quant_trial *t = &q->quantized;
    close_trial(t);
    t->m.arena = byi_arena_new();
    BYI_TRY(byi_quant_read(q->path, t->m.arena, &t->m, err));
    BYI_TRY(byi_quant_plan(&t->m, q->params, kept, err));
    for (uint32_t i = 0; i < t->m.n_values; i++) {
        t->m.values[i].low = q->m.values[i].low;
        t->m.values[i].high = q->m.values[i].high;
    }
    byi_quant_rewrite(&t->m);
    t->data = byi_quant_pack(&t->m, &t->bytes);
    return byi_quant_open(&t->m, q->names, results ? q->n_results : q->n_read,
                          q->params->threads, &t->run, err);
}

/* Set *loss to the loss if all layers but the kept ones are quantised. */
static enum byoc_status try_layers(struct quantization *q, const bool *kept,
                                   double *loss, struct byoc_error *err)
{
    q->n_trials++;
    BYI_TRY(open_trial(q, kept, false, err));
    BYI_TRY(compare_models(q, err));
    *loss = find_loss(q);
    return BYOC_OK;
}

/* Set order[] to the *n layers that may be quantised, sorted by the error that
 * each causes alone, largest first. */
static enum byoc_status rank_layers(struct quantization *q, uint32_t *order,
                                    uint32_t *n, struct byoc_error *err)
{
    const struct quant_model *m = &q->m;
    bool *kept = byi_arena_calloc(m->arena, m->n_layers, sizeof *kept);
    double loss;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        if (m->layers[i].kept)
            continue;
        memset(kept, true, m->n_layers * sizeof *kept);
        kept[i] = false;
        BYI_TRY(try_layers(q, kept, &loss, err));
        q->error_alone[i] = output_error(q);
        uint32_t at = (*n)++;
        for (; at > 0 && q->error_alone[order[at - 1]] < q->error_alone[i];
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return BYOC_OK;
}

/* Set q->kept to the layers that cause the largest errors, as few as bring the
 * loss within the limit. Finds their number by bisection. */
static enum byoc_status search_layers(struct quantization *q,
                                      struct byoc_error *err)
{
    const double max_loss = q->params->max_loss;
    const uint32_t n_layers = q->m.n_layers;
    uint32_t *order = byi_arena_calloc(q->m.arena, n_layers, sizeof *order);
    bool *kept = byi_arena_calloc(q->m.arena, n_layers, sizeof *kept);
    uint32_t n = 0;
    double loss;
    BYI_TRY(try_layers(q, NULL, &q->loss_of_all, err));
    if (q->loss_of_all <= max_loss)
        return BYOC_OK;
    BYI_TRY(rank_layers(q, order, &n, err));
    /* the number of layers to keep; with all n kept, nothing is quantised */
    uint32_t low = 1, high = n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        memset(kept, false, n_layers * sizeof *kept);
        for (uint32_t i = 0; i < middle; i++)
            kept[order[i]] = true;
        BYI_TRY(try_layers(q, kept, &loss, err));
        if (loss <= max_loss) {
            high = middle;
            memcpy(q->kept, kept, n_layers * sizeof *kept);
        } else {
            low = middle + 1;
        }
    }
    if (high < n)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "%s: the loss is %.3g%% with all layers quantised, and no "
                    "choice of layers brings it to %s%%, expected a larger "
                    "limit, or another method of finding ranges",
                    q->path, q->loss_of_all, BYI_FLOAT_TEXT(max_loss));
}

static void fill_report(const struct quantization *q, struct byi_arena *arena,
                        struct byi_quantize_report *to)
{
    const struct quant_model *m = &q->quantized.m;
    struct byi_quantized_layer *layers =
        byi_arena_calloc(arena, m->n_layers, sizeof *layers);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct quant_layer *layer = &m->layers[i];
        const char *name = layer->node->name;
        layers[i] = (struct byi_quantized_layer){
            .name = byi_arena_str(arena, name && *name ? name : layer->y->name),
            .type = byi_arena_str(arena, layer->node->op_type),
            .kept = layer->kept,
            .weights_snr = layer->kept ? INFINITY : layer->weights_snr,
            .result_snr = byi_quant_decibels(q->signal[i], q->noise[i]),
            .proposed = q->kept[i],
            .error_alone = q->error_alone[i]};
    }
    *to = (struct byi_quantize_report){
        .n_samples = q->samples.n,
        .n_layers = m->n_layers,
        .layers = layers,
        .bytes = {q->m.bytes, q->quantized.bytes},
        .output_snr = byi_quant_decibels(1, output_noise(q)),
        .selected = q->n_read > 0,
        .n_labels = q->n_labels,
        .correct = {q->correct[0], q->correct[1]},
        .loss = find_loss(q),
        .loss_of_all = q->loss_of_all,
        .n_trials = q->n_trials};
    for (uint32_t i = 0; i < m->n_values; i++)
        to->n_tensors += m->values[i].to_quantize;
}

/* --- the whole quantisation ----------------------------------------------- */

static void alloc_layers(struct quantization *q)
{
    const uint32_t n = q->m.n_layers;
    q->n_compared = n + (uint32_t)q->m.graph->n_output + q->n_read;
    q->signal = byi_arena_calloc(q->m.arena, q->n_compared, sizeof *q->signal);
    q->noise = byi_arena_calloc(q->m.arena, q->n_compared, sizeof *q->noise);
    q->kept = byi_arena_calloc(q->m.arena, n, sizeof *q->kept);
    q->error_alone = byi_arena_calloc(q->m.arena, n, sizeof *q->error_alone);
    for (uint32_t i = 0; i < n; i++)
        q->error_alone[i] = -1;
}

static enum byoc_status quantize_model(struct quantization *q, const char *to,
                                       struct byi_arena *arena,
                                       struct byi_quantize_report *out,
                                       struct byoc_error *err)
{
    struct quant_model *m = &q->m;
    BYI_TRY(byi_quant_samples(q->params->samples, m->arena, &q->samples, err));
    BYI_TRY(byi_quant_read(q->path, m->arena, m, err));
    BYI_TRY(byi_quant_plan(m, q->params, NULL, err));
    list_observed(q);
    alloc_layers(q);
    BYI_TRY(byi_quant_open(m, q->names, q->n_observed, q->params->threads,
                           &q->original, err));
    BYI_TRY(find_ranges(q, err));
    if (q->params->limited)
        BYI_TRY(search_layers(q, err));
    BYI_TRY(open_trial(q, q->kept, true, err));
    BYI_TRY(compare_models(q, err));
    BYI_TRY(byi_file_write(to, q->quantized.data, q->quantized.bytes, err));
    fill_report(q, arena, out);
    return BYOC_OK;
}

enum byoc_status byi_quantize(const char *path,
                              const struct byi_quantize_params *params,
                              const char *to, struct byi_arena *arena,
                              struct byi_quantize_report *out,
                              struct byoc_error *err)
{
    struct byi_arena *scratch = byi_arena_new();
    struct quantization q = {
        .params = params, .path = path, .m.arena = scratch, .loss_of_all = -1};
    const enum byoc_status status = quantize_model(&q, to, arena, out, err);
    byi_quant_close(&q.original);
    close_trial(&q.quantized);
    byi_arena_free(&scratch);
    return status;
}
