/* SPDX-License-Identifier: Apache-2.0 */
/* quantize/quantize.h: post-training static quantisation of ONNX models.
 *
 *   model.onnx -read-> tensors to quantise -run on samples-> their ranges
 *   -rewrite-> QuantizeLinear and DequantizeLinear after the tensors, 8-bit
 *   weights with a scale per channel -write-> model.q.onnx
 */
#ifndef BYI_QUANTIZE_H
#define BYI_QUANTIZE_H

#include "core/base/base.h"

/* How to choose the range of a tensor from its values on the samples. */
enum byi_range_method {
    BYI_RANGE_MINMAX,     /* all values                                       */
    BYI_RANGE_PERCENTILE, /* percentiles 100 - `percentile` to `percentile`   */
    BYI_RANGE_ENTROPY,    /* least Kullback-Leibler divergence                */
    BYI_RANGE_MSE         /* least mean square error                          */
};

/* Options of quantisation. */
struct byi_quantize_params {
    /* The folder of samples. Input K of a sample, counted from 0, is the file
     * input_K, NAME.input_K or NAME/input_K with the extension .npy or .pb,
     * where NAME names the sample; or NAME.npz holds all inputs. Labels are
     * optional: the array "labels", named like an input, has an integer for
     * each row of the model's first output, its class. */
    const char *samples;
    enum byi_range_method method;
    double percentile; /* 50 to 100 */
    /* nodes that stay float32, by name, or NULL; NULL-terminated */
    const char *const *keep;
    const char *const *keep_type; /* likewise, by op_type            */
    uint32_t threads;             /* 0: all CPUs                     */
    /* leave layers in float32 so that the loss stays within max_loss */
    bool limited;
    double max_loss; /* percent, see byi_quantize_report.loss; at least 0 */
};

/* A convolution or product. */
struct byi_quantized_layer {
    const char *name; /* of the node or, if it has no name, of its output */
    const char *type; /* its op_type */
    bool kept;        /* it stays float32 */
    /* signal to noise, in dB: of its quantised weights, and of its result in
     * the quantised model */
    double weights_snr, result_snr;
    bool proposed; /* the search for max_loss keeps it in float32 */
    /* the outputs' relative error in percent if this layer alone is quantised;
     * negative: not measured */
    double error_alone;
};

/* The report of byi_quantize. */
struct byi_quantize_report {
    uint32_t n_samples, n_layers;
    uint32_t n_tensors; /* quantised activations */
    const struct byi_quantized_layer *layers;
    /* index 0 of an array is the original model, 1 the quantised one */
    uint64_t bytes[2]; /* of the files */
    double output_snr; /* signal to noise of all outputs, in dB */
    /* some outputs depend on TopK, NonMaxSuppression or NonZero; the inputs of
     * these operators are compared instead of such outputs */
    bool selected;
    int64_t n_labels;   /* 0: no labels                */
    int64_t correct[2]; /* rows whose largest output is at the label */
    /* with labels: the loss of accuracy, in percentage points; otherwise the
     * relative error of the outputs, sqrt(noise / signal), in percent */
    double loss;
    /* the loss if all layers are quantised; negative: not measured, because
     * only a search measures it */
    double loss_of_all;
    uint32_t n_trials; /* models that the search compiled */
};

/* Quantise the model at `path`, write it to `to`, run both on the samples and
 * report; *report is in `arena`. The same model and samples give the same file.
 * Errors: those of reading and compiling; BYOC_EINVAL (an unknown node, no
 * sample, nothing to quantise, no choice of layers keeps the loss within
 * max_loss); BYOC_EUNSUPPORTED (external weights, and the errors of
 * byi_quant_upgrade in model.h); BYOC_ETYPE (a sample or its labels have
 * the wrong shape, labels are not integers, or a tensor to quantise is not
 * float32); BYOC_EIO. */
enum byoc_status byi_quantize(const char *path,
                              const struct byi_quantize_params *params,
                              const char *to, struct byi_arena *arena,
                              struct byi_quantize_report *report,
                              struct byoc_error *err);

#endif
