/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c: `byoc quantize`: writes an 8-bit copy of a model, and prints its
 * accuracy.
 */
#include "cli.h"

#include "quantize/quantize.h"

/* Whether the search measured the error of each layer alone. */
static bool has_alone_errors(const struct byi_quantize_report *q)
{
    bool any = false;
    for (uint32_t i = 0; i < q->n_layers; i++)
        any = any || q->layers[i].error_alone >= 0;
    return any;
}

static void print_layers(const struct byi_quantize_report *q)
{
    const bool alone = has_alone_errors(q);
    printf("%s%10s %10s  %-8s %s\n", alone ? "error % alone " : "",
           "weights dB", "result dB", "operator", "node");
    for (uint32_t i = 0; i < q->n_layers; i++) {
        const struct byi_quantized_layer *l = &q->layers[i];
        if (alone && l->error_alone >= 0)
            printf("%13.3g ", l->error_alone);
        else if (alone)
            printf("%14s", "");
        if (l->kept)
            printf("%10s", "float32");
        else
            printf("%10.1f", l->weights_snr);
        printf(" %10.1f  %-8s %s\n", l->result_snr, l->type, l->name);
    }
}

/* Print the result of the search for --max-loss. */
static void print_proposal(const struct byi_quantize_report *q)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n_layers; i++)
        n += q->layers[i].proposed;
    if (q->loss_of_all < 0)
        return;
    printf("loss: %.3g%s with all layers quantised, %.3g%s with the proposal, "
           "after %u trial%s\n",
           q->loss_of_all,
           q->n_labels ? " percentage points of accuracy" : "% of the outputs",
           q->loss, q->n_labels ? "" : "%", q->n_trials,
           byi_plural(q->n_trials));
    printf("proposal: %u of %u layers stay float32\n", n, q->n_layers);
    for (uint32_t i = 0; i < q->n_layers; i++)
        if (q->layers[i].proposed)
            printf("  --keep %s\n", q->layers[i].name);
}

static void print_report(const struct byi_quantize_report *q, const char *path,
                         const char *to)
{
    uint32_t n_quantised = 0;
    for (uint32_t i = 0; i < q->n_layers; i++)
        n_quantised += !q->layers[i].kept;
    print_layers(q);
    printf("\n%u of %u layers and %u tensors quantised, on %u %s\n",
           n_quantised, q->n_layers, q->n_tensors, q->n_samples,
           q->n_samples == 1 ? "sample" : "samples");
    print_proposal(q);
    printf("outputs%s: %.1f dB signal to noise\n",
           q->selected ? ", before selection" : "", q->output_snr);
    if (q->n_labels)
        printf("accuracy: %.2f%% before, %.2f%% after, of %lld labels\n",
               100 * (double)q->correct[0] / (double)q->n_labels,
               100 * (double)q->correct[1] / (double)q->n_labels,
               (long long)q->n_labels);
    printf("size: %.2f MB, %s\n      %.2f MB, %s\n", (double)q->bytes[0] / 1e6,
           path, (double)q->bytes[1] / 1e6, to);
}

/* Refuse invalid options before the model is read. */
static enum byoc_status check_arguments(
    const char *path, const char *to, const struct byi_quantize_params *params,
    struct byoc_error *err)
{
    if (!params->samples)
        return byi_fail(err, BYOC_EINVAL,
                        "found no --calibrate, expected --calibrate DIR, a "
                        "folder of samples");
    if (!to)
        return byi_fail(
            err, BYOC_EINVAL,
            "found no -o, expected -o FILE.onnx, the file to write");
    if (params->percentile < 50 || params->percentile > 100)
        return byi_fail(err, BYOC_EINVAL,
                        "--percentile: found %s, expected a number from 50 to "
                        "100",
                        BYI_FLOAT_TEXT(params->percentile));
    if (params->limited && !(params->max_loss >= 0 && params->max_loss <= 100))
        return byi_fail(err, BYOC_EINVAL,
                        "--max-loss: found %s, expected a percentage from 0 to "
                        "100",
                        BYI_FLOAT_TEXT(params->max_loss));
    if (byi_option_is_given("percentile") &&
        params->method != BYI_RANGE_PERCENTILE)
        return byi_fail(err, BYOC_EINVAL,
                        "--percentile: found %s without --method percentile, "
                        "expected both, or neither",
                        BYI_FLOAT_TEXT(params->percentile));
    return byi_expect_model(path, err);
}

static int run(int argc, char **argv)
{
    struct byi_quantize_params params = {.percentile = 99.99};
    const char *to = NULL, *path;
    int method = 1;
    uint32_t n;
    const struct byi_option options[] = {
        {"calibrate", 0, BYI_OPTION_TEXT, &params.samples, "DIR",
         "folder of samples: NAME.input_K.npy or .pb, NAME/input_K.npy, "
         "NAME.npz"},
        {"output", 'o', BYI_OPTION_TEXT, &to, "FILE.onnx",
         "file name of the 8-bit model"},
        {"method", 0, BYI_OPTION_CHOICE, &method,
         "minmax|percentile|entropy|mse",
         "how to choose ranges (default: minmax)"},
        {"percentile", 0, BYI_OPTION_PERCENT, &params.percentile, "P",
         "percentage of values inside the range (default: 99.99)"},
        {"keep", 0, BYI_OPTION_LIST, &params.keep, "NODE",
         "leave a node in float32, by its name"},
        {"keep-type", 0, BYI_OPTION_LIST, &params.keep_type, "OP",
         "leave all nodes of an operator in float32, such as Gemm"},
        {"max-loss", 0, BYI_OPTION_PERCENT, &params.max_loss, "P%",
         "leave layers in float32 so that the loss stays within P percent"},
        {"threads", 0, BYI_OPTION_COUNT, &params.threads, "N",
         "threads of the runs (default: all CPUs of this process)"},
    };
    int code =
        byi_parse_options(&byi_command_quantize, options, BYI_COUNT(options),
                          argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    params.method = (enum byi_range_method)(method - 1);
    params.limited = byi_option_is_given("max-loss");
    struct byi_arena *arena = byi_arena_new();
    struct byi_quantize_report report;
    struct byoc_error err;
    enum byoc_status status = check_arguments(path, to, &params, &err);
    if (status == BYOC_OK)
        status = byi_quantize(path, &params, to, arena, &report, &err);
    if (status == BYOC_OK)
        print_report(&report, path, to);
    code = status == BYOC_OK ? BYI_EXIT_OK
                             : byi_cli_print_error(&byi_command_quantize, &err);
    byi_arena_free(&arena);
    return code;
}

const struct byi_command byi_command_quantize = {
    .name = "quantize",
    .usage = "MODEL.onnx --calibrate DIR -o MODEL.q.onnx [OPTIONS]",
    .summary = "write an 8-bit copy of an ONNX model",
    .example = "byoc quantize digits.onnx --calibrate . -o digits.q.onnx\n",
    .steps = BYI_COMPILES | BYI_LOADS,
    .run = run,
};
