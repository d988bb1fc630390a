/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime/provider.h: declares what the files of the execution provider for
 * ONNX Runtime share. It uses ONNX Runtime's plug-in ABI (OrtEpFactory, OrtEp)
 * and the public API of byoc.
 *
 *     OrtGraph -graph.c-> struct byi_ep_graph -subset.c-> an ONNX model's bytes
 *         -build.c-> artifact, loaded -compute.c-> runs
 *
 * claim.c decides which nodes form these models (GetCapability), and provider.c
 * returns them as fused nodes (Compile). Every callback of ONNX Runtime has its
 * own guard (core/base/guard.h). ONNX Runtime's functions never call back into
 * this library, except to run parts of a parallel loop.
 */
#ifndef BYI_EP_PROVIDER_H
#define BYI_EP_PROVIDER_H

#include <stdatomic.h>

#include <byoc/byoc.h>

#include <onnxruntime_c_api.h>

#include "core/base/guard.h"
#include "core/base/names.h"

#define BYI_EP_NAME "ByocExecutionProvider"

/* --- options.c ------------------------------------------------------------ */

/* The threads that run parallel loops: ONNX Runtime's, or byoc's own. */
enum byi_ep_pool { BYI_EP_POOL_ORT, BYI_EP_POOL_BYOC };

/* The options of a session. The pointers are to memory of the session's arena.
 */
struct byi_ep_options {
    const char *const *backends; /* as in struct byoc_compile_params */
    uint32_t threads;            /* 0: byoc's default */
    enum byoc_partition partition_by;
    enum byi_ep_pool pool;
    bool constant_inputs;   /* initializers that are also inputs are compiled as
                             * constants (initializers=constant) */
    const char *cache_dir;  /* folder of artifacts; NULL: none */
    const char *report_dir; /* folder of reports; NULL: none */
    const char *artifact_key; /* text of the options and versions that an
                               * artifact depends on */
};

/* Read the entries of `session` whose keys start with
 * "ep.byocexecutionprovider.". Errors: BYOC_EINVAL (an unknown option, a
 * malformed value), BYOC_EIO (a folder that cannot be created),
 * BYOC_EUNSUPPORTED (ep.context_enable). */
enum byoc_status byi_ep_options_read(const OrtApi *ort,
                                     const OrtSessionOptions *session,
                                     struct byi_arena *arena,
                                     struct byi_ep_options *options,
                                     struct byoc_error *err);

struct byi_ep;

/* --- status.c ------------------------------------------------------------- */

/* Convert a status of ONNX Runtime to byoc's, with its message in *err, and
 * release it. NULL is BYOC_OK. */
enum byoc_status byi_ep_status(const OrtApi *ort, OrtStatus *status,
                               struct byoc_error *err);
/* Create ONNX Runtime's status from byoc's; NULL for BYOC_OK. ONNX Runtime
 * releases it. */
OrtStatus *byi_ep_fail(const OrtApi *ort, enum byoc_status status,
                       const struct byoc_error *err);
/* Write a line to the session's log. */
void byi_ep_log(const struct byi_ep *ep, OrtLoggingLevel level, const char *fmt,
                ...) BYI_PRINTF(3, 4);
/* Return from the function if this call of ONNX Runtime fails. */
#define BYI_ORT(ort, call) BYI_TRY(byi_ep_status((ort), (ort)->call, err))

/* --- proto.c: writes messages of onnx.proto --------------------------------
 */

/* A growing array of n bytes in an arena. The functions of proto.c jump to the
 * guard when memory runs out. */
struct byi_ep_bytes {
    struct byi_arena *arena;
    char *at;
    uint32_t n, cap;
};
/* Append n bytes. */
void byi_ep_put(struct byi_ep_bytes *out, const void *data, size_t n);
/* Append a field of a message: a varint, or n bytes, or a string. */
void byi_ep_put_int(struct byi_ep_bytes *out, unsigned field, uint64_t value);
void byi_ep_put_bytes(struct byi_ep_bytes *out, unsigned field,
                      const void *data, size_t n);
void byi_ep_put_string(struct byi_ep_bytes *out, unsigned field,
                       const char *text);
/* Append the tag and the length of a field of n bytes, which the caller appends
 * next. */
void byi_ep_put_head(struct byi_ep_bytes *out, unsigned field, size_t n);
/* Append a field with the ValueInfoProto of a value. Errors: those of ONNX
 * Runtime's functions, as for all functions of proto.c. */
enum byoc_status byi_ep_put_value(const OrtApi *ort, struct byi_ep_bytes *out,
                                  unsigned field, const OrtValueInfo *info,
                                  const char *name, struct byoc_error *err);
/* Append the fields of a TensorProto, except raw_data. *data and *bytes are set
 * to its bytes, which belong to `value`. (For strings, which are appended, they
 * are NULL and 0.) */
enum byoc_status byi_ep_put_tensor(const OrtApi *ort, const OrtValue *value,
                                   const char *name, struct byi_ep_bytes *out,
                                   const void **data, size_t *bytes,
                                   struct byoc_error *err);
/* Append the attributes of a node as fields of a NodeProto, except graphs. If
 * ONNX Runtime's ABI cannot read one of them, sets *refusal to the reason, a
 * constant. */
enum byoc_status byi_ep_put_attributes(const OrtApi *ort, const OrtNode *node,
                                       struct byi_ep_bytes *out,
                                       const char **refusal,
                                       struct byoc_error *err);
/* Set at[0..n-1] to copies of the n strings of a tensor, in `arena`. */
enum byoc_status byi_ep_read_strings(const OrtApi *ort, const OrtValue *value,
                                     size_t n, struct byi_arena *arena,
                                     const char **at, struct byoc_error *err);
/* Set *rank to the rank of a value; -1 if it is unknown. ONNX Runtime
 * before 1.24 does not distinguish unknown ranks from scalars: then *rank is 0.
 */
enum byoc_status byi_ep_read_rank(const OrtApi *ort,
                                  const OrtTensorTypeAndShapeInfo *info,
                                  int32_t *rank, struct byoc_error *err);
/* Convert an element type of ONNX Runtime; BYOC_NONE: byoc has no such type.
 * (The numbers of the newest types differ.) */
enum byoc_dtype byi_ep_dtype(ONNXTensorElementDataType type);

/* --- graph.c: reads graphs of ONNX Runtime -------------------------------- */

enum { BYI_EP_NONE = -1 };

/* A value of a graph. `info` and `constant` belong to ONNX Runtime. */
struct byi_ep_value {
    const char *name;
    const OrtValueInfo *info;
    const OrtValue *constant; /* the value of an initializer that is compiled as
                               * a constant, or NULL */
    bool is_input;            /* an initializer that is also an input of the
                               * model */
    bool is_output;           /* of the graph */
    bool is_tensor;           /* a tensor that byoc and ONNX Runtime can
                               * exchange */
    bool is_string;           /* is_tensor, and its elements are strings */
    int32_t rank;             /* -1: unknown before the run */
    int32_t producer;         /* the node, or BYI_EP_NONE */
};

/* A node of a graph. */
struct byi_ep_node {
    const OrtNode *node;
    const char *name, *op, *domain;
    /* why it cannot be written as a NodeProto; NULL: it can; a constant */
    const char *refusal;
    uint32_t n_in, n_out, n_explicit;
    /* indices of values: n_explicit inputs, then the values that its bodies
     * read from outside; UINT32_MAX: omitted */
    const uint32_t *in;
    const uint32_t *out; /* indices of values; UINT32_MAX: omitted */
    const char *proto;   /* the node as a NodeProto */
    size_t n_proto;
};

/* The nodes of a graph in topological order, with their values. All memory is
 * in `arena`, or belongs to ONNX Runtime. */
struct byi_ep_graph {
    struct byi_arena *arena;
    const OrtApi *ort;
    bool constant_inputs; /* as in struct byi_ep_options */
    uint32_t n_nodes;
    struct byi_ep_node *nodes;
    struct byi_name_table names;
    struct byi_ep_value *values; /* indexed by the name's number in `names` */
    uint32_t cap_values;
    /* fields of the ModelProto before its graph */
    struct byi_ep_bytes model_header;
};

/* Set *out to the n nodes `nodes` of `graph`, or to all its nodes if `nodes` is
 * NULL. The caller zeroes *out and sets out->arena and out->constant_inputs
 * first. If `nodes` is not NULL, every result counts as an output. Errors: of
 * ONNX Runtime's functions. */
enum byoc_status byi_ep_graph_read(const OrtApi *ort, const OrtGraph *graph,
                                   const OrtNode *const *nodes, size_t n,
                                   struct byi_ep_graph *out,
                                   struct byoc_error *err);

/* --- subset.c: subsets of the nodes as models ----------------------------- */

/* A part of an ONNX model. A large constant is memory of ONNX Runtime
 * (`foreign`); other parts are in the graph's arena. */
struct byi_ep_span {
    const void *data;
    size_t n;
    bool foreign;
};
/* An ONNX model, as the concatenation of spans. */
struct byi_ep_model {
    struct byi_ep_span *spans;
    uint32_t n_spans, cap_spans;
    size_t bytes; /* of all spans */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* indices of values, in the order of the model */
};
/* Set *model to the model of the nodes whose within[node] is true, in the
 * graph's arena. Its inputs and outputs are the values at the boundary of this
 * set. Errors: those of ONNX Runtime's functions. */
enum byoc_status byi_ep_write_subset(const struct byi_ep_graph *graph,
                                     const bool *within,
                                     struct byi_ep_model *model,
                                     struct byoc_error *err);
/* Write the SHA-256 of `salt` and the model to `hex`. Unless `whole`, it covers
 * the addresses of large constants instead of their bytes, which is much
 * faster.
 */
void byi_ep_model_digest(const struct byi_ep_model *model, const char *salt,
                         bool whole, char hex[65]);

/* Divide the supported nodes into groups, each as large as possible, such that
 * no path leaves a group and returns to it. Sets group[node] to the group's
 * number, or BYI_EP_NONE. Returns the number of groups. */
uint32_t byi_ep_find_groups(const struct byi_ep_graph *graph,
                            const bool *supported, int32_t *group);

/* --- build.c: compiles and loads models ------------------------------------
 */

/* A loaded model, with the memory that it refers to. `ledger` is JSON, or NULL.
 */
struct byi_ep_build {
    struct byi_ep_build *next; /* in the list of byi_ep.builds */
    char digest[65];           /* byi_ep_model_digest, not `whole` */
    struct byoc_model *model;
    struct byoc_compiled *compiled; /* NULL: loaded from an artifact */
    char *ledger;
    bool cached; /* loaded from cache_dir */
};
/* Compile the model and load it, or load it from the cache folder. The guard
 * owns *build until the caller frees it or gives it an owner with byi_keep;
 * *build is NULL on failure. Errors: those of byoc_compile_memory,
 * byoc_compiled_write and byoc_model_load. */
enum byoc_status byi_ep_build_new(struct byi_ep *ep,
                                  const struct byi_ep_model *model,
                                  struct byi_ep_build **build,
                                  struct byoc_error *err);
/* Free *build and set it to NULL; *build may be NULL. */
void byi_ep_build_free(struct byi_ep_build **build);
/* Check that byoc can import the model, which is much faster than building it.
 * Errors: those of byoc_compile_memory. */
enum byoc_status byi_ep_import(struct byi_ep *ep,
                               const struct byi_ep_model *model,
                               struct byoc_error *err);

/* --- threads.c ------------------------------------------------------------ */

/* A callback for struct byoc_load_params: runs a parallel loop on the threads
 * of the session whose node the calling thread runs. `ctx`: the OrtApi. */
void byi_ep_parallel_for(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg);
/* Begin and end the run of a node on the calling thread. byi_ep_threads_enter
 * returns the argument for byi_ep_threads_leave, since runs may be nested. */
const OrtKernelContext *byi_ep_threads_enter(const OrtKernelContext *context);
void byi_ep_threads_leave(const OrtKernelContext *outer);

/* --- constant_inputs.c: initializers that are also inputs of the model ---- */

/* An initializer that is also an input, and was compiled as a constant. */
struct byi_ep_constant_input {
    const char *name;
    size_t index;    /* index among the fused node's inputs */
    char digest[65]; /* of the bytes that were compiled */
    /* the address at which an earlier run had these bytes; or NULL */
    _Atomic(const void *) address;
    uint64_t sample_hash; /* of samples of the bytes */
};
/* List in *list, in `arena`, the initializers of the graph that were compiled
 * as constants and are among the fused node's n_in inputs. *n is their number.
 * Errors: those of ONNX Runtime's functions. */
enum byoc_status byi_ep_constant_inputs_list(
    const struct byi_ep_graph *graph, const char *const *inputs, size_t n_in,
    struct byi_arena *arena, struct byi_ep_constant_input **list, uint32_t *n,
    struct byoc_error *err);
/* Check that a run has the values that were compiled; constant_inputs.c says
 * which differences are not noticed. Errors: BYOC_EINVAL (the run has another
 * value).
 */
enum byoc_status byi_ep_constant_inputs_check(
    const OrtApi *ort, struct byi_ep_constant_input *list, uint32_t n,
    const OrtKernelContext *context, struct byoc_error *err);

/* --- compute.c ------------------------------------------------------------ */

/* Create the object that runs a built model as a fused node. It owns `build`
 * from now on, even on failure. `inputs` and `outputs` are the names of the
 * fused node's inputs and outputs, in its order. The caller frees *kernel with
 * byi_ep_kernel_free, also if it is set on failure. Errors: BYOC_ENOMEM,
 * BYOC_EINTERNAL, and those of ONNX Runtime's functions. */
enum byoc_status byi_ep_kernel_new(struct byi_ep *ep,
                                   const struct byi_ep_graph *graph,
                                   struct byi_ep_build *build,
                                   const char *const *inputs, size_t n_in,
                                   const char *const *outputs, size_t n_out,
                                   OrtNodeComputeInfo **kernel,
                                   struct byoc_error *err);
/* Free a kernel and its model; `kernel` may be NULL. */
void byi_ep_kernel_free(OrtNodeComputeInfo *kernel);

/* --- claim.c -------------------------------------------------------------- */

/* OrtEp's GetCapability: claims groups of nodes of the graph, each of which
 * becomes a fused node. */
OrtStatus *ORT_API_CALL byi_ep_claim(OrtEp *ep, const OrtGraph *graph,
                                     OrtEpGraphSupportInfo *info);

/* --- provider.c ----------------------------------------------------------- */

/* The factory of providers. */
struct byi_ep_factory {
    OrtEpFactory base;
    const OrtApi *ort;
    const OrtEpApi *api;
    /* this ONNX Runtime can run fused nodes in bodies of If, Loop and Scan, and
     * passes to a fused node the values that bodies in it read from outside */
    bool fuses_in_bodies;
    /* byi_ep_read_rank distinguishes scalars from unknown ranks */
    bool knows_scalars;
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
    /* list of results of GetCapability that Compile has not taken yet */
    struct byi_ep_build *builds;
    uint32_t n_reports; /* number of reports on graphs written so far */
};

#endif
