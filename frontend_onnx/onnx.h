/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/onnx.h: ONNX models and tensors in. */
#ifndef BYI_ONNX_H
#define BYI_ONNX_H

#include "core/ir/ir.h"

/* How to import. Zero-initialise. */
struct byi_onnx_params {
    /* "N=1" and "x=1x3x224x224": fix symbolic dims, or whole input shapes. */
    const char *const *dims;   /* NULL-terminated, or NULL */
    const char *const *shapes; /* NULL-terminated, or NULL */
    /* "sr=16000": inputs that become constants, each element that value. Their
     * sizes must be known. */
    const char *const *values; /* NULL-terminated, or NULL */
    /* Computes what exporters leave as small graphs over constants: shapes,
     * axes, sizes. NULL: such a model may be refused. */
    byi_eval_fn eval;
};

/* Read the model at `path` into a module with one function @main: parameters
 * are the graph's inputs (without those that are initialisers), in order; the
 * result is the one output, or the tuple of outputs. Weights stay mapped from
 * the file where its encoding allows. External data must lie inside the
 * model's folder.
 * Errors: BYOC_EIO, BYOC_EPARSE (not a model; truncated), BYOC_EUNSUPPORTED
 * ("node NAME: operator OP (domain D, opset N) is not supported"), BYOC_ETYPE
 * (a shape that does not fit: names the node), BYOC_EINVAL (params). */
enum byoc_status byi_onnx_import(const char *path,
                                 const struct byi_onnx_params *params,
                                 struct byi_module **module,
                                 struct byoc_error *err);

/* A TensorProto file (.pb, as in ONNX test data). Data, in `arena`. */
enum byoc_status byi_onnx_tensor(const char *path, struct byi_arena *arena,
                                 struct byi_tensor *tensor, const char **name,
                                 struct byoc_error *err);

/* A SequenceProto or OptionalProto file, as `io` says which: a tree in `arena`.
 */
enum byoc_status byi_onnx_value(const char *path, const struct byoc_io *io,
                                struct byi_arena *arena,
                                struct byoc_value *value,
                                struct byoc_error *err);

/* --- annotate.c ----------------------------------------------------------- */

/* Metadata. Keys start with "byoc."; bytes that are no UTF-8 are replaced. */
struct byi_onnx_note {
    const char *key, *value;
};
struct byi_onnx_notes {
    uint32_t n;
    const struct byi_onnx_note *at;
    const char *about; /* of a node: its operator, which is checked */
};

/* Write the model at `from` again as `to`, with notes in the metadata of the
 * model and of its nodes, nodes[i] for that with the source i of an import,
 * nodes of branches and loops among them.
 * Notes of an earlier run are replaced; all else stays as it is. Weights
 * outside the file are not copied.
 * Errors: BYOC_EIO, BYOC_EPARSE, BYOC_EINVAL (`to` is `from`; `to` is in
 * another folder than weights outside the file; not these nodes),
 * BYOC_ELIMIT (more than ONNX files may have). */
enum byoc_status byi_onnx_annotate(const char *from, const char *to,
                                   uint32_t n_nodes,
                                   const struct byi_onnx_notes *nodes,
                                   const struct byi_onnx_notes *model,
                                   struct byoc_error *err);

#endif
