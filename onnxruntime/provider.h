/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime/provider.h: an execution provider for ONNX Runtime, on its
 * plug-in ABI (OrtEpFactory, OrtEp). Of byoc it uses include/byoc only.
 *
 *     OrtGraph -graph.c-> struct byi_ep_graph -part.c-> bytes of an ONNX model
 *         -build.c-> artifact, loaded -compute.c-> runs
 *
 * claim.c decides which nodes form such models (GetCapability), provider.c
 * hands them over (Compile). Every callback of ONNX Runtime has a guard of its
 * own (core/base/guard.h), and ONNX Runtime's functions never call back into
 * this library while one of them is active, except to run parts of a loop.
 */
#ifndef BYI_EP_PROVIDER_H
#define BYI_EP_PROVIDER_H

#include <byoc/byoc.h>

#include <onnxruntime_c_api.h>

#include "core/base/guard.h"
#include "core/base/names.h"

#define BYI_EP_NAME "ByocExecutionProvider"

/* --- options.c ------------------------------------------------------------ */

enum byi_ep_pool { BYI_EP_POOL_ORT, BYI_EP_POOL_OWN };

/* The options of a session. Everything is in `arena`. */
struct byi_ep_options {
    const char *const *backends; /* as in struct byoc_compile_params */
    uint32_t threads;            /* 0: byoc's default                */
    enum byoc_partition partition_by;
    enum byi_ep_pool pool;
    const char *cache_dir; /* NULL: none */
    const char *report;    /* NULL: none */
    const char *compile; /* the options that an artifact depends on, as text */
};

/* Read the entries of `session` that start with "ep.byocexecutionprovider.".
 * Errors: BYOC_EINVAL (an unknown option, a malformed value), BYOC_EIO (a
 * folder that cannot be made). */
enum byoc_status byi_ep_options_read(const OrtApi *ort,
                                     const OrtSessionOptions *session,
                                     struct byi_arena *arena,
                                     struct byi_ep_options *options,
                                     struct byoc_error *err);

struct byi_ep;

/* --- status.c ------------------------------------------------------------- */

/* Convert a status of ONNX Runtime to byoc's, and release it. */
enum byoc_status byi_ep_status(const OrtApi *ort, OrtStatus *status,
                               struct byoc_error *err);
/* The inverse; NULL for BYOC_OK. */
OrtStatus *byi_ep_fail(const OrtApi *ort, enum byoc_status status,
                       const struct byoc_error *err);
/* Write a line to the session's log. */
void byi_ep_log(const struct byi_ep *ep, OrtLoggingLevel level, const char *fmt,
                ...) BYI_PRINTF(3, 4);
/* Return from the function if this call of ONNX Runtime fails. */
#define BYI_ORT(ort, call) BYI_TRY(byi_ep_status((ort), (ort)->call, err))

/* --- proto.c: messages of onnx.proto -------------------------------------- */

/* Bytes that grow, in an arena. */
struct byi_ep_bytes {
    struct byi_arena *arena;
    char *at;
    uint32_t n, cap;
};
void byi_ep_put(struct byi_ep_bytes *out, const void *data, size_t n);
/* Append a field: a varint, or bytes with their length. */
void byi_ep_put_int(struct byi_ep_bytes *out, unsigned field, uint64_t value);
void byi_ep_put_bytes(struct byi_ep_bytes *out, unsigned field,
                      const void *data, size_t n);
void byi_ep_put_string(struct byi_ep_bytes *out, unsigned field,
                       const char *text);
/* Append the tag of a field, and the length of the n bytes that follow. */
void byi_ep_put_head(struct byi_ep_bytes *out, unsigned field, size_t n);
/* Append a value as a field that is a ValueInfoProto. */
enum byoc_status byi_ep_put_value(const OrtApi *ort, struct byi_ep_bytes *out,
                                  unsigned field, const OrtValueInfo *info,
                                  const char *name, struct byoc_error *err);
/* Append the fields of a TensorProto except raw_data, whose bytes are set in
 * *data and *bytes (NULL, 0 for strings, which are in the message). */
enum byoc_status byi_ep_tensor(const OrtApi *ort, const OrtValue *value,
                               const char *name, struct byi_ep_bytes *out,
                               const void **data, size_t *bytes,
                               struct byoc_error *err);
/* Append the attributes of a NodeProto, without its bodies. *refusal is set if
 * the ABI cannot read one of them. */
enum byoc_status byi_ep_put_attributes(const OrtApi *ort, const OrtNode *node,
                                       struct byi_ep_bytes *out,
                                       const char **refusal,
                                       struct byoc_error *err);
/* The n strings of a tensor, in `arena`. */
enum byoc_status byi_ep_strings(const OrtApi *ort, const OrtValue *value,
                                size_t n, struct byi_arena *arena,
                                const char **at, struct byoc_error *err);
/* Set *rank, to -1 if ONNX Runtime does not know it. Before 1.24 it gives 0 for
 * such values, as for scalars. */
enum byoc_status byi_ep_rank(const OrtApi *ort,
                             const OrtTensorTypeAndShapeInfo *info,
                             int32_t *rank, struct byoc_error *err);
/* byoc's number of an element type of ONNX Runtime, which numbers the newest
 * ones differently. BYOC_NONE: unknown. */
enum byoc_dtype byi_ep_dtype(ONNXTensorElementDataType type);

/* --- graph.c: nodes of ONNX Runtime, copied out --------------------------- */

enum { BYI_EP_NONE = -1 };

struct byi_ep_value {
    const char *name;
    const OrtValueInfo *info;
    const OrtValue *constant; /* an initialiser that cannot change, or NULL */
    bool is_output;           /* of the graph                               */
    bool is_tensor;           /* that can cross between byoc and ONNX Runtime */
    int32_t rank;             /* -1: only a run tells it */
    int32_t producer;         /* the node, or BYI_EP_NONE */
};

struct byi_ep_node {
    const OrtNode *node;
    const char *name, *op, *domain;
    const char *refusal; /* why it cannot be a node of a model, or NULL */
    uint32_t n_in, n_out, n_explicit;
    /* values: n_explicit inputs, then those that its bodies read */
    const uint32_t *in;
    const uint32_t *out; /* values */
    const char *proto;   /* a NodeProto */
    size_t n_proto;
};

/* Nodes in topological order, with their values. Lives in `arena`. */
struct byi_ep_graph {
    struct byi_arena *arena;
    const OrtApi *ort;
    uint32_t n_nodes;
    struct byi_ep_node *nodes;
    struct byi_name_table names;
    struct byi_ep_value *values; /* by the numbers of `names` */
    uint32_t cap_values;
    struct byi_ep_bytes head; /* fields of the ModelProto before its graph */
};

/* Read these nodes of `graph`, or all if `nodes` is NULL, into out->arena. Of
 * nodes that are given, every result counts as an output.
 * Errors: of ONNX Runtime's functions. */
enum byoc_status byi_ep_graph_read(const OrtApi *ort, const OrtGraph *graph,
                                   const OrtNode *const *nodes, size_t n,
                                   struct byi_ep_graph *out,
                                   struct byoc_error *err);

/* --- part.c: subsets of the nodes as models ------------------------------- */

/* A model as spans of bytes. The spans of large constants belong to ONNX
 * Runtime (`foreign`); everything else is in the arena of the graph. */
struct byi_ep_span {
    const void *data;
    size_t n;
    bool foreign;
};
struct byi_ep_model {
    struct byi_ep_span *spans;
    uint32_t n_spans, cap_spans;
    size_t bytes;
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* values, in the order of the model */
};
/* Make the model of the nodes with within[node]. */
enum byoc_status byi_ep_part(const struct byi_ep_graph *graph,
                             const bool *within, struct byi_ep_model *model,
                             struct byoc_error *err);
/* A digest of the model: of all its bytes if `whole`; else, which is much
 * faster, with the addresses of large constants instead of their bytes. */
void byi_ep_model_digest(const struct byi_ep_model *model, const char *salt,
                         bool whole, char hex[65]);

/* Groups of supported nodes, each as large as possible, such that no path
 * leaves a group and comes back to it. group[node]: its number, or BYI_EP_NONE.
 * Returns how many. */
uint32_t byi_ep_groups(const struct byi_ep_graph *graph, const bool *supported,
                       int32_t *group);

/* --- build.c: a model compiled and loaded --------------------------------- */

/* A loaded model, with the memory that it refers to. On the heap. */
struct byi_ep_built {
    struct byi_ep_built *next; /* in the provider's list */
    char digest[65];           /* byi_ep_model_digest, not of the whole model */
    struct byoc_model *model;
    struct byoc_compiled *compiled; /* NULL: from an artifact */
    char *ledger;
    bool cached; /* came from cache_dir */
};
/* Compile the model and load it, or load it from the cache folder. */
enum byoc_status byi_ep_build(struct byi_ep *ep,
                              const struct byi_ep_model *model,
                              struct byi_ep_built **built,
                              struct byoc_error *err);
void byi_ep_built_free(struct byi_ep_built **built);
/* Can byoc import the model? Much faster than building it. */
enum byoc_status byi_ep_import(struct byi_ep *ep,
                               const struct byi_ep_model *model,
                               struct byoc_error *err);

/* --- threads.c ------------------------------------------------------------ */

/* For struct byoc_load_params: runs on the threads of the session that the
 * calling thread computes for. `ctx`: the OrtApi. */
void byi_ep_parallel_for(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg);
/* Between enter and leave, the calling thread computes for this run. enter
 * returns the argument for leave. */
const OrtKernelContext *byi_ep_threads_enter(const OrtKernelContext *context);
void byi_ep_threads_leave(const OrtKernelContext *outer);

/* --- compute.c ------------------------------------------------------------ */

/* Create the object that runs a built model, and owns it from now on. On
 * failure *kernel may be set, and the caller frees it. `inputs`, `outputs`: the
 * names of the fused node's, in its order. */
enum byoc_status byi_ep_kernel_new(struct byi_ep *ep,
                                   struct byi_ep_built *built,
                                   const char *const *inputs, size_t n_in,
                                   const char *const *outputs, size_t n_out,
                                   OrtNodeComputeInfo **kernel,
                                   struct byoc_error *err);
void byi_ep_kernel_free(OrtNodeComputeInfo *kernel);

/* --- claim.c -------------------------------------------------------------- */

OrtStatus *ORT_API_CALL byi_ep_claim(OrtEp *ep, const OrtGraph *graph,
                                     OrtEpGraphSupportInfo *info);

/* --- provider.c ----------------------------------------------------------- */

struct byi_ep_factory {
    OrtEpFactory base;
    const OrtApi *ort;
    const OrtEpApi *api;
    /* this ONNX Runtime runs fused nodes in bodies of If, Loop and Scan, and
     * hands over what bodies of fused nodes read */
    bool bodies;
    bool scalars; /* byi_ep_rank tells scalars from values of unknown rank */
};

/* The provider of one session. */
struct byi_ep {
    OrtEp base;
    const struct byi_ep_factory *factory;
    const OrtApi *ort;
    const OrtEpApi *api;
    const OrtLogger *logger; /* lives as long as the session */
    struct byi_arena *arena;
    struct byi_ep_options options;
    /* models of claimed nodes that Compile has not taken yet */
    struct byi_ep_built *built;
    uint32_t n_reports;
};
OrtStatus *byi_ep_new(const struct byi_ep_factory *factory,
                      const OrtSessionOptions *session, const OrtLogger *logger,
                      OrtEp **ep);
void byi_ep_free(OrtEp *ep);

#endif
