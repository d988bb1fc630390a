/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/onnx.h: reads ONNX models and tensors, and copies models with
 * notes or regions.
 */
#ifndef BYI_ONNX_H
#define BYI_ONNX_H

#include "core/ir/ir.h"

struct byoc_operator; /* byoc/custom.h */

/* An operator of the plug-in called `plugin`. */
struct byi_onnx_custom {
    const struct byoc_operator *op;
    const char *plugin;
};

/* How to import. Zero-initialise. */
struct byi_onnx_params {
    /* "N=1" and "x=1x3x224x224": fix symbolic dims, or whole input shapes. */
    const char *const *dims;   /* NULL-terminated, or NULL */
    const char *const *shapes; /* NULL-terminated, or NULL */
    /* "sr=16000": inputs that become constants, each element that value. Their
     * sizes must be known. */
    const char *const *values; /* NULL-terminated, or NULL */
    /* Evaluates calls on small constants: exporters compute shapes, axes and
     * sizes with such graphs. NULL: the importer may refuse these models. */
    byi_eval_fn eval;
    /* The model as `bytes` bytes, which are copied; `path` then serves only for
     * messages and for the folder of external data. NULL: read the file at
     * `path`. */
    const void *data;
    uint64_t bytes;
    /* Find an operator that the importer does not support. Returns false if no
     * plug-in has it. NULL: there are no plug-ins. */
    bool (*find)(void *ctx, const char *domain, const char *type, int64_t opset,
                 struct byi_onnx_custom *custom);
    void *find_ctx;
};

/* Read the model at `path` into a module with one function @main. Parameters
 * are the graph's inputs (without those that are initializers), in order. The
 * result is the one output, or the tuple of outputs. Weights stay mapped from
 * the file where its encoding allows. External data must lie inside the model's
 * folder. The caller frees *module with byi_module_free; it is NULL after an
 * error. Errors: BYOC_EIO, BYOC_EPARSE (not a model; truncated),
 * BYOC_EUNSUPPORTED ("node NAME: operator OP (domain D, opset N) is not
 * supported"), BYOC_ETYPE (types or shapes do not match; names the node),
 * BYOC_EINVAL (params), BYOC_ELIMIT, BYOC_ENOMEM. */
enum byoc_status byi_onnx_import(const char *path,
                                 const struct byi_onnx_params *params,
                                 struct byi_module **module,
                                 struct byoc_error *err);

/* Read a TensorProto file (.pb, as in ONNX test data) into `arena`; *name is
 * its name, or "", in `arena`. `name` may be NULL. Errors: BYOC_EIO,
 * BYOC_EPARSE, BYOC_EUNSUPPORTED, BYOC_ELIMIT. */
enum byoc_status byi_onnx_tensor(const char *path, struct byi_arena *arena,
                                 struct byi_tensor *tensor, const char **name,
                                 struct byoc_error *err);

/* Read a SequenceProto or OptionalProto file, depending on the type of `io`,
 * into a tree in `arena`. Errors: as for byi_onnx_tensor. */
enum byoc_status byi_onnx_value(const char *path, const struct byoc_io *io,
                                struct byi_arena *arena,
                                struct byoc_value *value,
                                struct byoc_error *err);

/* --- annotate.c ----------------------------------------------------------- */

/* A metadata entry. Keys start with "byoc."; invalid UTF-8 is replaced. */
struct byi_onnx_note {
    const char *key, *value;
};
/* The notes of the model or of one node. */
struct byi_onnx_notes {
    uint32_t n;
    const struct byi_onnx_note *at;
    const char *op_type; /* of a node: must match the file */
};

/* Copy the model at `from` to `to` and add notes to the metadata of the model
 * and of its nodes. The node with source i of an import gets the notes
 * nodes[i], also in a branch or loop. Replaces notes of an earlier run and
 * copies everything else unchanged; external weights are not copied. Errors:
 * BYOC_EIO, BYOC_EPARSE, BYOC_EINVAL (`to` is `from`; `to` is in another folder
 * than the external weights; the nodes do not match), BYOC_ELIMIT (over the 2
 * GiB of an ONNX file). */
enum byoc_status byi_onnx_annotate(const char *from, const char *to,
                                   uint32_t n_nodes,
                                   const struct byi_onnx_notes *nodes,
                                   const struct byi_onnx_notes *model,
                                   struct byoc_error *err);

/* --- regions.c ------------------------------------------------------------ */

/* Where a node runs: placements[i] is for the node with source i of an import.
 * Nodes of inlined functions, called "CALL/NODE", follow all nodes of the
 * model's graphs. No field is NULL. */
struct byi_onnx_placement {
    const char *name, *op;        /* the op_type must match the file */
    const char *region, *backend; /* "": in no region */
    bool idle;                    /* folded or removed */
    uint32_t n_outputs;
    const char *const *outputs; /* types in the text form, or "" */
};

/* Copy the model at `from` to `to` with each region as a model-local function
 * of the domain "byoc.BACKEND", so that viewers show a region as one node. A
 * region becomes several functions if it has nodes in several graphs, or if a
 * path leaves it and comes back. Idle nodes that only one region reads go into
 * its function. So does the call of a function of the model whose nodes are all
 * in one region. Names are kept; values without a type in the file get the
 * types that `placements` lists. Errors: as for byi_onnx_annotate. */
enum byoc_status byi_onnx_regions(const char *from, const char *to,
                                  uint32_t n_placements,
                                  const struct byi_onnx_placement *placements,
                                  struct byoc_error *err);

#endif
