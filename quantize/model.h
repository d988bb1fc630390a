/* SPDX-License-Identifier: Apache-2.0 */
/* quantize/model.h: declarations that the files of this folder share: the
 * unpacked model, its tensors by name, samples and observed values.
 */
#ifndef BYI_QUANTIZE_MODEL_H
#define BYI_QUANTIZE_MODEL_H

#include "quantize/quantize.h"

#include <byoc/byoc.h>

#include "core/base/names.h"
#include "onnx.pb-c.h"

#include <string.h>

/* --- model.c -------------------------------------------------------------- */

/* A tensor of the graph. All pointers are into the model. */
struct quant_value {
    const char *name;
    char *dequantized; /* name of the tensor that readers read instead */
    Onnx__NodeProto *producer;         /* NULL: an input or initializer */
    const Onnx__TensorProto *constant; /* NULL: not constant            */
    const Onnx__NodeProto *reader;     /* the last one in the graph     */
    uint32_t n_readers;                /* of the graph                  */
    bool input, output;                /* of the graph                  */
    bool to_quantize;                  /* byi_quant_rewrite quantises it */
    bool selected; /* depends on TopK, NonMaxSuppression or NonZero */
    struct quant_value *range_of; /* has its range; NULL: its own range */
    float low, high;              /* its own range; includes 0          */
    float scale;                  /* of its uint8 values                */
    int32_t zero;                 /* zero point of its uint8 values     */
    uint32_t observed_at; /* index among observed tensors; UINT32_MAX: none */
};

/* A convolution or product to quantise. */
struct quant_layer {
    Onnx__NodeProto *node;
    struct quant_value *x, *weights, *bias; /* operands; bias may be NULL */
    struct quant_value *y;                  /* result */
    int64_t axis; /* of the weights' output channels */
    bool kept;    /* stays float32 */
    /* signal to noise of the weights, in dB; set by byi_quant_rewrite */
    double weights_snr;
};

/* An unpacked model, its tensors, and the layers to quantise. */
struct quant_model {
    struct byi_arena *arena; /* also of all protobuf messages */
    const char *path;
    Onnx__ModelProto *proto;
    Onnx__GraphProto *graph;
    struct byi_name_table names;
    struct quant_value *values; /* indexed by number */
    uint32_t n_values;
    struct quant_layer *layers;
    uint32_t n_layers;
    uint64_t bytes; /* of the file */
    int64_t opset;  /* of ONNX's own domain */
};

/* Read a model into `arena`, and upgrade it to opset 10 if it is older. `path`
 * must outlive *m. Errors: BYOC_EIO, BYOC_EPARSE, BYOC_EUNSUPPORTED (external
 * weights, and the errors of byi_quant_upgrade). */
enum byoc_status byi_quant_read(const char *path, struct byi_arena *arena,
                                struct quant_model *m, struct byoc_error *err);
/* Returns the tensor of that name, in m; NULL for "" and for names that the
 * graph does not have. */
struct quant_value *byi_quant_value(struct quant_model *m, const char *name);
/* Whether `domain` is ONNX's own: "ai.onnx", "" or NULL. */
static inline bool byi_quant_is_standard(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}
/* Pack the model as *n bytes, in m->arena. */
const void *byi_quant_pack(const struct quant_model *m, size_t *n);
/* Returns the *n elements of a float32 constant, in the model. Returns NULL if
 * it has another type, more than BYI_MAX_RANK axes, or no data in the file. */
const float *byi_quant_floats(const Onnx__TensorProto *t, int64_t *n);

/* --- upgrade.c ------------------------------------------------------------ */

/* Convert a model of opset 9 to opset 10; a newer one stays as it is. Errors:
 * BYOC_EUNSUPPORTED (a model older than opset 9, or of opset 9 with If, Loop or
 * Scan). */
enum byoc_status byi_quant_upgrade(struct quant_model *m,
                                   struct byoc_error *err);

/* --- plan.c --------------------------------------------------------------- */

/* Fill in m->layers, and `to_quantize` and `range_of` of the tensors. kept[i]:
 * layer i stays float32, in addition to the nodes of `params`; `kept` may be
 * NULL. Errors: BYOC_EINVAL (an unknown node in `params`, nothing to quantise).
 */
enum byoc_status byi_quant_plan(struct quant_model *m,
                                const struct byi_quantize_params *params,
                                const bool *kept, struct byoc_error *err);

/* --- samples.c ------------------------------------------------------------ */

/* The files of one sample: the inputs, and optionally their labels. */
struct quant_sample {
    const char *data, *npz; /* exactly one is set */
    const char *labels;     /* a file, or NULL */
};
/* The samples of a folder. */
struct quant_samples {
    struct quant_sample *at;
    uint32_t n;
};
/* List the samples of a folder, sorted by path, in `arena`: see
 * byi_quantize_params.samples. Errors: BYOC_EIO (the folder cannot be opened),
 * BYOC_EINVAL (it has no sample). */
enum byoc_status byi_quant_samples(const char *folder, struct byi_arena *arena,
                                   struct quant_samples *samples,
                                   struct byoc_error *err);

/* --- observe.c ------------------------------------------------------------ */

/* A compiled model with further tensors as outputs, which are observed. */
struct quant_run {
    struct byoc_compiled *compiled;
    struct byoc_model *model;
    struct byoc_state *state;
    uint32_t n;              /* number of observed tensors */
    uint32_t n_outputs;      /* number of the model's own outputs */
    struct byi_arena *arena; /* of the last run's memory */
    /* values of the last run: the model's outputs, the observed tensors */
    struct byi_tensor *outputs, *tensors;
};
/* Compile the model with the n tensors of `names` as further outputs, and load
 * it. The caller closes *run, also on failure. Errors: those of byoc_compile
 * and byoc_compiled_load. */
enum byoc_status byi_quant_open(const struct quant_model *m,
                                const char *const *names, uint32_t n,
                                uint32_t threads, struct quant_run *run,
                                struct byoc_error *err);
/* Run the model on a sample, and set run->outputs and run->tensors until the
 * next run. Errors: those of reading files, BYOC_ETYPE, those of byoc_run. */
enum byoc_status byi_quant_run(struct quant_run *run,
                               const struct quant_sample *sample,
                               struct byoc_error *err);
/* Free what *run owns; *run may be zero. */
void byi_quant_close(struct quant_run *run);

/* --- range.c -------------------------------------------------------------- */

enum { QUANT_BINS = 2048 };

/* The values of a tensor on all samples. */
struct quant_histogram {
    double low, high;        /* low <= 0 <= high    */
    double bins[QUANT_BINS]; /* numbers of values, from low to high */
    bool any, any_finite;    /* values so far */
};
/* Extend the range to the finite values of a float32 tensor. */
void byi_quant_widen(struct quant_histogram *h, const struct byi_tensor *t);
/* Count these values in the bins; the range must contain them. */
void byi_quant_count(struct quant_histogram *h, const struct byi_tensor *t);
/* Set *low and *high to the range that the method chooses. All methods except
 * MINMAX need counted values. `percentile`: of BYI_RANGE_PERCENTILE, 50 to 100.
 */
void byi_quant_range(const struct quant_histogram *h,
                     enum byi_range_method method, double percentile,
                     float *low, float *high);

/* --- rewrite.c ------------------------------------------------------------ */

/* Returns the ratio of signal to noise, which are sums of squares, in dB;
 * INFINITY without noise. */
double byi_quant_decibels(double signal, double noise);
/* Set scales and zero points from the ranges, insert QuantizeLinear and
 * DequantizeLinear, and replace the weights by 8-bit integers. */
void byi_quant_rewrite(struct quant_model *m);

#endif
