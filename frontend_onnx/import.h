/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/import.h: declares what the files of this folder share. These
 * are the unpacked model file, tensor decoding, the state of one import, and
 * the helper functions of operator converters.
 */
#ifndef BYI_IMPORT_H
#define BYI_IMPORT_H

#include "core/base/index.h"
#include "frontend_onnx/onnx.h"

#include "onnx.pb-c.h"

/* --- model.c ------------------------------------------------------------ */

/* Raw data of a tensor in the mapped file; `at` is NULL when the data is in the
 * message. */
struct byi_range {
    const uint8_t *at;
    size_t n;
};

/* A mapped file of external data. */
struct byi_external {
    const char *path; /* resolved */
    const uint8_t *at;
    size_t n;
};

/* An unpacked model. Large weights stay in the mapping. */
struct byi_onnx_file {
    Onnx__ModelProto *model;
    const char *folder;            /* resolved; external data is inside it */
    BYI_VEC(struct byi_range) raw; /* parallel to graph->initializer */
    BYI_VEC(struct byi_external) external;
    BYI_VEC(ProtobufCMessage *) separate; /* messages unpacked on their own */
    struct byi_arena *arena;              /* owns the mappings */
};

/* Map and unpack the model at `path`. The mapping lives as long as `arena`;
 * the rest until byi_onnx_close, which also accepts a file that failed to
 * open. Errors: BYOC_EIO, BYOC_EPARSE, BYOC_ELIMIT. */
enum byoc_status byi_onnx_open(const char *path, struct byi_arena *arena,
                               struct byi_onnx_file *file,
                               struct byoc_error *err);
/* Like byi_onnx_open, for a model in memory, which is copied; `path` is for
 * messages and external data. Errors: also BYOC_ENOMEM. */
enum byoc_status byi_onnx_open_memory(const void *data, uint64_t bytes,
                                      const char *path, struct byi_arena *arena,
                                      struct byi_onnx_file *file,
                                      struct byoc_error *err);
/* Free the unpacked model; the mappings belong to the arena. */
void byi_onnx_close(struct byi_onnx_file *file);
/* metadata.c: copy the model's description of itself (producer, version,
 * opsets, custom properties) into the module. */
void byi_onnx_metadata(const Onnx__ModelProto *model, struct byi_module *m);

/* Unpack an AttributeProto from an unknown field of n bytes, which start with
 * the length. It lives until the file is closed. Errors: BYOC_EPARSE,
 * BYOC_ELIMIT. */
enum byoc_status byi_onnx_attribute(struct byi_onnx_file *file,
                                    const uint8_t *data, size_t n,
                                    Onnx__AttributeProto **attribute,
                                    struct byoc_error *err);

/* external.c: map `path` for the life of the arena. Errors: BYOC_EIO. */
enum byoc_status byi_onnx_map(const char *path, struct byi_arena *arena,
                              const uint8_t **data, size_t *n,
                              struct byoc_error *err);

/* Decode a TensorProto in memory, which must live as long as the arena. `path`
 * appears in error messages; external data is looked up in its folder. *name
 * becomes the tensor's name, in the arena; `name` may be NULL. Errors: as for
 * byi_onnx_decode. */
enum byoc_status byi_onnx_tensor_bytes(
    const uint8_t *data, size_t n, const char *path, struct byi_arena *arena,
    struct byi_tensor *tensor, const char **name, struct byoc_error *err);

/* --- tensor.c ----------------------------------------------------------- */

/* Decode a TensorProto. The data is in the mapping, or in file->arena, where
 * it is aligned to BYI_ALIGN. raw: raw data that stayed in the mapping, or
 * NULL. Errors: BYOC_EIO, BYOC_EPARSE, BYOC_EUNSUPPORTED, BYOC_ELIMIT. */
enum byoc_status byi_onnx_decode(struct byi_onnx_file *file,
                                 const Onnx__TensorProto *proto,
                                 const struct byi_range *raw,
                                 struct byi_tensor *tensor,
                                 struct byoc_error *err);

/* --- sparse.c ----------------------------------------------------------- */

/* Decode a SparseTensorProto to a dense tensor in file->arena. Errors: as for
 * byi_onnx_decode. */
enum byoc_status byi_onnx_decode_sparse(struct byi_onnx_file *file,
                                        const Onnx__SparseTensorProto *proto,
                                        struct byi_tensor *tensor,
                                        struct byoc_error *err);
/* The name of a sparse initializer; "": it has none. */
const char *byi_onnx_sparse_name(const Onnx__SparseTensorProto *proto);

/* --- external.c --------------------------------------------------------- */

/* Find the `bytes` bytes of a tensor whose data is outside the model file; they
 * are mapped as long as file->arena lives. Errors: BYOC_EIO, BYOC_EPARSE,
 * BYOC_EUNSUPPORTED (a file outside the model's folder). */
enum byoc_status byi_onnx_external(struct byi_onnx_file *file,
                                   const Onnx__TensorProto *proto,
                                   uint64_t bytes, struct byi_range *range,
                                   struct byoc_error *err);

/* --- names.c: the symbol table of ONNX value names ---------------------- */

/* A value's name. */
struct byi_name {
    const char *text;
    /* BYI_NO_ID: an initializer not read yet, an omitted input, or an output
     * that is not supported */
    byi_id id;
    /* in a scope: index of the initializer, sparse ones last, or UINT32_MAX for
     * other values; in other tables, an index into their owner's list */
    uint32_t index;
    /* of an unsupported output: its node, for the message */
    const char *producer;
};

/* A table of names, with an index by text. */
struct byi_names {
    struct byi_name **at; /* entries keep their addresses */
    uint32_t n, cap;
    struct byi_index index;
};

/* Returns an empty table in `arena`. Names are not copied, and must live as
 * long. */
struct byi_names byi_names_new(struct byi_arena *arena);
/* Returns the entry of `text`, or NULL. */
struct byi_name *byi_names_find(const struct byi_names *names,
                                const char *text);
/* Add an entry for `text` and return it; NULL if the table has that name
 * already. */
struct byi_name *byi_names_add(struct byi_names *names, const char *text);
/* Bind `text`, an input or a captured value of a body graph, to `id`. BYI_NO_ID
 * stands for an omitted input; an initializer of that name stays its default.
 * Returns false if the name is already bound. */
bool byi_names_bind(struct byi_names *names, const char *text, byi_id id);

/* --- import.c, node.c: the state of one import -------------------------- */

struct byi_import;
struct byi_node_sources;

/* The model's functions: their indices by domain and name. */
struct byi_functions {
    struct byi_names names;
    uint64_t bytes;      /* of memory, for calls that are inlined completely */
    uint64_t name_bytes; /* of the names of inlined nodes */
};

/* A graph being imported: the model's, or a graph attribute of a node. A lookup
 * continues in the enclosing graph when both belong to the same function; a
 * separate function captures outer values (subgraph.c). */
struct byi_scope {
    const Onnx__GraphProto *graph;
    const struct byi_range *raw; /* parallel to its initializers, or NULL */
    struct byi_names names;
    struct byi_scope *outer; /* of the same function, or NULL */
};

/* How one operator is imported from opset `since` on. The row with the largest
 * `since` up to the model's opset applies. */
struct byi_onnx_op {
    const char *type;
    uint8_t since;
    uint16_t min_in, max_in; /* the first min_in inputs are required */
    void (*convert)(struct byi_import *o);
    enum byi_op_id op; /* the IR operator, when `convert` serves many rows */
};

/* The state of one import, the first argument of every byi_import_NAME below;
 * converters call it `o`. Errors are sticky. After the first failure the
 * functions below do nothing and return BYI_NO_ID, 0, NULL or `default_value`.
 * So converters need not check each step. */
struct byi_import {
    struct byi_module *m;
    struct byi_func *f;
    struct byi_arena *scratch;
    const struct byi_onnx_params *params;
    struct byi_onnx_file *file;
    struct byi_scope *scope;
    struct byi_node_sources *node_sources; /* of nodes visited so far */
    struct byi_functions *functions;       /* NULL: none */
    const struct byi_expansion *expansion; /* NULL: in the model's graph */
    /* indexed by node; see dims.c */
    BYI_VEC(const struct byi_dim_item *) items;
    enum byoc_status status;
    struct byoc_error err;
    /* the node being converted */
    const Onnx__NodeProto *node;
    const struct byi_onnx_op *row;
    struct byi_onnx_custom custom; /* the operator, if a plug-in has it */
    const char *name;
    int64_t opset;
    uint64_t seen; /* bit i: the converter read attribute i */
    const struct byi_sources *sources;
    uint32_t n_in, n_out;
    byi_id *in;  /* BYI_NO_ID: omitted */
    byi_id *out; /* to fill in; BYI_NO_ID: not supported */
};

/* names.c: returns `text`, or `default_text` if it is NULL or empty. */
const char *byi_text_or(const char *text, const char *default_text);
/* names.c: returns the name of a domain; "" and NULL are names of ai.onnx. */
const char *byi_onnx_domain(const char *text);
/* import.c: returns the number of nodes of the graph and of the graphs inside.
 */
size_t byi_onnx_count_nodes(const Onnx__GraphProto *graph);

/* inputs.c: make the graph's inputs parameters of the function. */
enum byoc_status byi_onnx_add_inputs(struct byi_import *o);
/* Fill scope->names with the initializers of its graph. */
enum byoc_status byi_scope_open(struct byi_import *o, struct byi_scope *scope);
/* order.c: returns the order in which to convert the graph's nodes, as indices
 * in the arena; NULL: the order of the file. */
const size_t *byi_import_order(struct byi_arena *arena,
                               const Onnx__GraphProto *graph);
/* Convert the nodes of o->scope's graph. */
enum byoc_status byi_onnx_nodes(struct byi_import *o);
/* Look up the value `text` in o->scope; the error message names `reader`, or
 * o's node if `reader` is NULL. Returns BYI_NO_ID without a failure for an
 * omitted input of a function. */
byi_id byi_import_read(struct byi_import *o, const char *text,
                       const char *reader);
/* Returns the source of node `index` of its graph, the same one in every call.
 */
uint32_t byi_import_source(struct byi_import *o, size_t index,
                           const Onnx__NodeProto *node);

/* Refuse the node: "node NAME: operator OP (domain D, opset N) is not
 * supported: " and why. */
void byi_import_refuse(struct byi_import *o, const char *why, ...)
    BYI_PRINTF(2, 3);
/* Report an invalid node: "node NAME (OP): " and why. */
void byi_import_fail(struct byi_import *o, enum byoc_status status,
                     const char *why, ...) BYI_PRINTF(3, 4);
/* Whether the import has not failed yet. */
bool byi_import_ok(const struct byi_import *o);
/* Whether the node's output i has a name, and so may be read. */
bool byi_import_wants_output(const struct byi_import *o, uint32_t i);

/* Return attributes of the node, or default_value when absent; lists and texts
 * live until the import ends. The importer refuses a node with an attribute
 * that its converter did not read. */
bool byi_import_has_attr(struct byi_import *o, const char *name);
int64_t byi_import_int(struct byi_import *o, const char *name,
                       int64_t default_value);
double byi_import_float(struct byi_import *o, const char *name,
                        double default_value);
const char *byi_import_string(struct byi_import *o, const char *name,
                              const char *default_value);
/* Read an attribute of n numbers into `list`; fails if it has another number of
 * them. Each is `default_value` when the attribute is absent. */
void byi_import_int_list(struct byi_import *o, const char *name, uint32_t n,
                         int64_t default_value, int64_t *list);
/* These return a list of *n elements; NULL and *n = 0 when the attribute is
 * absent. */
const int64_t *byi_import_ints(struct byi_import *o, const char *name,
                               uint32_t *n);
const double *byi_import_floats(struct byi_import *o, const char *name,
                                uint32_t *n);
const char *const *byi_import_strings(struct byi_import *o, const char *name,
                                      uint32_t *n);
/* Returns the attribute, or NULL when absent; fails if it has another type than
 * `type` (AttributeProto.type). */
const Onnx__AttributeProto *byi_import_attr(struct byi_import *o,
                                            const char *name, int type);
/* Returns a required graph attribute; fails when absent. */
const Onnx__GraphProto *byi_import_graph(struct byi_import *o,
                                         const char *name);
/* Decode a tensor attribute; false, and t unchanged, when it is absent. */
bool byi_import_tensor(struct byi_import *o, const char *name,
                       struct byi_tensor *t);
/* Returns a dtype attribute, or default_value when it is absent or undefined.
 */
enum byoc_dtype byi_import_dtype_attr(struct byi_import *o, const char *name,
                                      enum byoc_dtype default_value);

/* Returns input i; BYI_NO_ID when it is omitted. */
byi_id byi_import_in(const struct byi_import *o, uint32_t i);
/* Return the rank, dtype or dim of a value; 0, BYOC_NONE and -1 after a
 * failure. */
uint32_t byi_import_rank(const struct byi_import *o, byi_id id);
enum byoc_dtype byi_import_dtype(const struct byi_import *o, byi_id id);
int64_t byi_import_dim(const struct byi_import *o, byi_id id, uint32_t axis);
/* Returns a dim that the conversion depends on; refuses the node if it is
 * symbolic. Messages call it the size of `what`. */
int64_t byi_import_known_dim(struct byi_import *o, byi_id id, uint32_t axis,
                             const char *what);
/* Returns the axis as a non-negative index; fails when it is out of range. */
uint32_t byi_import_axis(struct byi_import *o, int64_t axis, uint32_t rank);
/* Returns n axes as non-negative indices, in scratch. */
const int64_t *byi_import_axes(struct byi_import *o, const int64_t *axes,
                               uint32_t n, uint32_t rank);

/* Add a constant without provenance, or with the given sources (for a node of
 * the model that becomes a constant). If `borrow`, the module uses the data in
 * place, and the data must outlive it. Otherwise the data is copied. */
byi_id byi_import_const_of(struct byi_import *o, const struct byi_tensor *t,
                           bool borrow, const struct byi_sources *sources);
byi_id byi_import_const(struct byi_import *o, const struct byi_tensor *t,
                        bool borrow);
/* Add a constant vector of n elements, which are copied. */
byi_id byi_import_array(struct byi_import *o, enum byoc_dtype dtype, uint32_t n,
                        const void *elements);
/* Add a constant int64 vector; the values are copied. */
byi_id byi_import_vector(struct byi_import *o, uint32_t n,
                         const int64_t *values);
/* Add a constant int64 vector: first, first + step, ... */
byi_id byi_import_series(struct byi_import *o, uint32_t n, int64_t first,
                         int64_t step);
/* Add a constant scalar. */
byi_id byi_import_scalar(struct byi_import *o, enum byoc_dtype dtype,
                         double value);
/* Whether the value is a constant; if so, *t borrows its data. */
bool byi_import_const_view(const struct byi_import *o, byi_id id,
                           struct byi_tensor *t);
/* Whether input i is a constant; false if it is omitted. */
bool byi_import_is_const(const struct byi_import *o, uint32_t i);
/* Returns the elements of input i, or its one element; refuses the node unless
 * the input is constant. Messages call the input `what`. */
const int64_t *byi_import_const_ints(struct byi_import *o, uint32_t i,
                                     const char *what, uint32_t *n);
int64_t byi_import_const_int(struct byi_import *o, uint32_t i,
                             const char *what);

/* --- describe.c ---------------------------------------------------------- */

/* Record the node's attributes and the types of its outputs, once they are
 * known, in its source. */
void byi_import_describe(struct byi_import *o, uint32_t source);

/* --- emit.c ------------------------------------------------------------- */

/* These functions append calls to o->f and return the value that their comments
 * describe, or BYI_NO_ID after a failure. */

/* Append a call, or fold it when its operands are small constants. Returns its
 * value; fails if an operand is BYI_NO_ID. */
byi_id byi_import_emit(struct byi_import *o, enum byi_op_id op, uint32_t n,
                       const byi_id *args, uint32_t n_attrs,
                       const struct byi_attr *attrs);
/* Emit a field of a tuple. */
byi_id byi_import_get(struct byi_import *o, byi_id tuple, uint32_t index);
/* Set those of the node's first n outputs that may be read to the fields of a
 * tuple. */
void byi_import_get_outputs(struct byi_import *o, byi_id tuple, uint32_t n);
/* Emit a call with these operands and no attributes. */
#define byi_import_call(o, op, ...)                                            \
    byi_import_emit(o, op, ARGS(__VA_ARGS__), NO_ATTRS)
/* Emit a call with operands a and b; b becomes a scalar of a's type. */
byi_id byi_import_call_scalar(struct byi_import *o, enum byi_op_id op, byi_id a,
                              double b);
/* Emit a cast to dtype; `id` itself if it has that dtype. */
byi_id byi_import_cast(struct byi_import *o, byi_id id, enum byoc_dtype dtype);
/* Emit `vector` with `values` in place of its elements at the indices `axes`,
 * which may be negative. */
byi_id byi_import_scatter(struct byi_import *o, byi_id vector, byi_id axes,
                          byi_id values);
/* Insert n axes of size 1, which become the axes `axes` of the result. */
byi_id byi_import_expand_dims(struct byi_import *o, byi_id id, uint32_t n,
                              const int64_t *axes);
/* Insert n axes of size 1, which become the axes first, first + 1, ... */
byi_id byi_import_add_axes(struct byi_import *o, byi_id id, uint32_t first,
                           uint32_t n);
/* Emit a reshape to the dims in `shape`, an int64 vector, or to n known dims.
 * -1 stands for the remaining elements; without allowzero, 0 keeps the size of
 * an axis. */
byi_id byi_import_reshape(struct byi_import *o, byi_id id, byi_id shape,
                          bool allowzero);
byi_id byi_import_reshape_to(struct byi_import *o, byi_id id, uint32_t n,
                             const int64_t *dims);
/* Move axis `from` to place `to` among the axes of the result. */
byi_id byi_import_move_axis(struct byi_import *o, byi_id id, uint32_t from,
                            uint32_t to);
/* Emit the shape as an int64 vector. */
byi_id byi_import_shape_of(struct byi_import *o, byi_id id);
/* Emit a template (core/ir/template.h) with these values and attributes.
 * Returns its one result, or writes its n_results results. */
byi_id byi_import_template(struct byi_import *o, const char *text, uint32_t n,
                           const byi_id *args, uint32_t n_attrs,
                           const struct byi_attr *attrs);
void byi_import_template_results(struct byi_import *o, const char *text,
                                 uint32_t n, const byi_id *args,
                                 uint32_t n_attrs, const struct byi_attr *attrs,
                                 uint32_t n_results, byi_id *results);
/* Emit a tensor of one element, of any rank, as a scalar. */
byi_id byi_import_as_scalar(struct byi_import *o, byi_id id);
/* Emit x times the factor, in x's type. */
byi_id byi_import_scale(struct byi_import *o, byi_id x, double factor);
/* Emit a call with the given attributes, and those of the node's attributes
 * that have the same meaning and default; their names are the same, or in a
 * table of emit.c. */
byi_id byi_import_same(struct byi_import *o, enum byi_op_id op, uint32_t n,
                       const byi_id *args, uint32_t n_attrs,
                       const struct byi_attr *attrs);
/* Convert an operator that maps one to one: byi_import_same of all inputs. */
void byi_import_convert_same(struct byi_import *o);

/* ARGS, INTS and ATTRS: the length of a list and the list, as two arguments. */
#define BYI_N(array) ((uint32_t)BYI_COUNT(array))
#define ARGS(...)                                                              \
    BYI_N(((const byi_id[]){__VA_ARGS__})), (const byi_id[])                   \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define INTS(...)                                                              \
    BYI_N(((const int64_t[]){__VA_ARGS__})), (const int64_t[])                 \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define ATTRS(...)                                                             \
    BYI_N(((const struct byi_attr[]){__VA_ARGS__})), (const struct byi_attr[]) \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define NO_ATTRS 0, NULL
#define AN_INT(name_, v)                                                       \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_INT, .i = (v)                        \
    }
#define A_BOOL(name_, v)                                                       \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_BOOL, .i = (v)                       \
    }
#define A_DTYPE(name_, v)                                                      \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_DTYPE, .i = (v)                      \
    }
#define A_FLOAT(name_, v)                                                      \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_FLOAT, .f = (v)                      \
    }
#define A_STRING(name_, v)                                                     \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_STRING, .s = (v)                     \
    }
#define SOME_INTS(name_, n_, v)                                                \
    {                                                                          \
        .name = (name_), .kind = BYI_ATTR_INTS, .n = (n_), .ints = (v)         \
    }

/* --- subgraph.c: graphs that are attributes of a node --------------------- */

/* A graph attribute being imported as a separate function. */
struct byi_body {
    const Onnx__GraphProto *graph;
    struct byi_scope scope;
    struct byi_import inner; /* imports into the function */
    uint32_t func;
    struct byi_outside *outside;     /* values of the enclosing function */
    uint32_t n_outside, max_outside; /* max_outside: its capacity */
    byi_id *captures; /* the values in `outside` that are not constants */
};

/* A value of the enclosing function: its name (NULL when the node itself needs
 * it), its id there, and its id in the body. */
struct byi_outside {
    const char *name;
    byi_id outer, inner;
};

/* Call in this order: open; capture; param for each parameter of the function;
 * add_captures, which adds the values that the graph reads or that were
 * requested by capture, constants as constants; nodes, at most once; any other
 * additions to the function, through body->inner; then close, also after a
 * failure. `inputs` are the values of the graph's inputs; `outputs` receives
 * the values of its outputs; both belong to the function. close returns the
 * function as a value of o->f, or drops it when result is BYI_NO_ID. */
void byi_import_body_open(struct byi_import *o, const Onnx__GraphProto *graph,
                          struct byi_body *body);
byi_id byi_import_body_param(struct byi_import *o, struct byi_body *body,
                             const char *name, const struct byi_type *type);
/* Request to capture value `outer` of o even if the graph does not read it.
 * Call before byi_import_body_add_captures. Returns its index in body->outside.
 */
uint32_t byi_import_body_capture(struct byi_import *o, struct byi_body *body,
                                 byi_id outer);
void byi_import_body_add_captures(struct byi_import *o, struct byi_body *body);
void byi_import_body_nodes(struct byi_import *o, struct byi_body *body,
                           const byi_id *inputs, uint32_t n_inputs,
                           byi_id *outputs);
byi_id byi_import_body_close(struct byi_import *o, struct byi_body *body,
                             byi_id result);
/* Convert a graph in place of the node; `inputs` are the values of the graph's
 * inputs, and `outputs` receives those of its outputs. */
void byi_import_inline(struct byi_import *o, const Onnx__GraphProto *graph,
                       const byi_id *inputs, uint32_t n_inputs,
                       byi_id *outputs);
/* Like byi_import_inline, for an open scope of the function that `expansion`
 * inlines. */
void byi_import_inline_scope(struct byi_import *o, struct byi_scope *scope,
                             const struct byi_expansion *expansion,
                             byi_id *outputs);
/* Create the sources of a graph's nodes in file order, each node before the
 * nodes of its subgraphs. This includes nodes that never run. annotate.c relies
 * on this numbering. */
void byi_import_number_sources(struct byi_import *o,
                               const Onnx__GraphProto *graph);

/* --- function.c: model-local functions ------------------------------------ */

/* A call that is being inlined. */
struct byi_expansion {
    const Onnx__FunctionProto *function;
    const Onnx__NodeProto *node; /* the call, its attributes resolved */
    const char *name;            /* of the call */
    uint32_t source;             /* of the call */
    uint32_t depth;              /* 1: a call in the model's graph */
    uint64_t before; /* bytes of memory in use when the outermost call began */
    uint32_t n_defaults;
    Onnx__AttributeProto **defaults;   /* the function's default attributes */
    const struct byi_expansion *outer; /* the call around this one, or NULL */
};

/* Index the model's functions by domain and name. Errors: BYOC_EPARSE. */
enum byoc_status byi_functions_open(struct byi_import *o);
/* Count the memory that o's node, an inlined one, takes; fail if the model's
 * inlined nodes together exceed the limits on memory and on names. */
void byi_function_check_limits(struct byi_import *o);
/* Returns the model-local function that the node calls, or NULL. */
const Onnx__FunctionProto *byi_function_find(struct byi_import *o,
                                             const Onnx__NodeProto *node);
/* Returns the node with its attribute references (ref_attr_name) resolved; the
 * node itself when it has none. */
const Onnx__NodeProto *byi_function_node(struct byi_import *o,
                                         const Onnx__NodeProto *node);
/* Inline the function in place of o->node, whose operands are read; source is
 * the node's. */
void byi_function_expand(struct byi_import *o, const Onnx__FunctionProto *f,
                         uint32_t source);

/* --- loop.c: Loop and Scan ------------------------------------------------ */

/* A scan input, which the loop reads slice by slice, or a scan output, to which
 * each iteration adds a slice. */
struct byi_slices {
    byi_id whole;      /* of an input: the whole tensor */
    int64_t node_axis; /* the axis as the node gives it; may be negative */
    uint32_t axis;     /* the same axis, counted from 0 */
    bool backward;
    bool is_sequence; /* slices are elements of a sequence */
    /* of an output: its slices have unknown dims, so the loop collects them in
     * a sequence, which is stacked afterwards */
    bool stacked;
    bool reads_whole; /* of an input: every iteration reads all of it */
    const struct byi_type *slice_type; /* of an output; NULL: not known yet */
};

/* A Loop or Scan, as byi_loop_make imports it. */
struct byi_onnx_loop {
    /* inputs: iteration and condition (Loop), states, slices; outputs:
     * condition (Loop), states, scan outputs */
    const Onnx__GraphProto *graph;
    byi_id trips;     /* int64 scalar; BYI_NO_ID: unbounded */
    byi_id condition; /* bool scalar, the initial condition; BYI_NO_ID: true */
    bool is_loop;     /* false: Scan */
    uint32_t n_states, n_scan_inputs, n_scan_outputs;
    /* number of scan outputs with known types: none in the first pass, which
     * infers the types, then all */
    uint32_t n_typed;
    const byi_id *states;          /* initial values */
    const struct byi_type **types; /* of the states, in every iteration */
    struct byi_slices *scan_inputs, *scan_outputs;
};

/* Add the loop as a function value of o->f. Parameters: iteration, condition
 * (if the loop has one), states, scan outputs. Result: states, scan outputs. */
byi_id byi_loop_make(struct byi_import *o, struct byi_onnx_loop *loop);
/* Emit the empty tensor or sequence that a scan output is before the first
 * iteration. */
byi_id byi_loop_empty_output(struct byi_import *o,
                             const struct byi_slices *output);

/* --- fold.c ------------------------------------------------------------- */

/* Fold a call if its operands are small constants. Returns whether it is
 * folded; *folded is then the constant. */
bool byi_import_fold(struct byi_import *o, enum byi_op_id id, uint32_t n,
                     const byi_id *args, uint32_t n_attrs,
                     const struct byi_attr *attrs, byi_id *folded);

/* --- dims.c: vectors of dims -------------------------------------------- */

/* An element of a small integer tensor that is part of a shape. */
struct byi_dim_item {
    enum { BYI_NUMBER, BYI_SYMBOL, BYI_UNKNOWN } kind;
    int64_t value; /* the number, or the symbol as a dim */
    /* if shape_of returned it: the tensor, a node of this function, and the
     * axis; otherwise the function is NULL */
    const struct byi_func *func;
    byi_id tensor;
    uint32_t axis;
};

/* Returns the elements of `id`, as far as they are known, in scratch; NULL
 * unless `id` is a small int64 scalar or vector. */
const struct byi_dim_item *byi_import_items(struct byi_import *o, byi_id id,
                                            uint32_t *n);
/* Returns the elements of a call's result, as far as they follow from types and
 * constants, or NULL if they cannot be tracked. *rank: of the result, 0 or 1.
 */
const struct byi_dim_item *byi_import_items_of(
    struct byi_import *o, enum byi_op_id op, uint32_t n, const byi_id *args,
    uint32_t n_attrs, const struct byi_attr *attrs, uint32_t *n_items,
    uint32_t *rank);
/* Record the elements of node `id`. */
void byi_import_set_items(struct byi_import *o, byi_id id,
                          const struct byi_dim_item *items);
/* Make a constant, *id, of the items if all are numbers; false otherwise. */
bool byi_import_const_of_items(struct byi_import *o,
                               const struct byi_dim_item *items, uint32_t n,
                               uint32_t rank, byi_id *id);
/* Returns the target of a reshape or broadcast_to as an equivalent constant,
 * with 0, -1 or 1 for dims that are known only at run time. Returns `shape` if
 * there is no such constant. */
byi_id byi_import_reshape_target(struct byi_import *o, byi_id x, byi_id shape);
byi_id byi_import_expand_target(struct byi_import *o, byi_id x, byi_id shape);

/* --- ops.c: finding rows ------------------------------------------------ */

/* Returns the row for an operator of a domain at an opset, or NULL if the
 * importer does not support it. */
const struct byi_onnx_op *byi_onnx_find(const char *domain, const char *type,
                                        int64_t opset);

/* Canonical names of domains (see byi_onnx_domain). */
#define BYI_ONNX "ai.onnx"
#define BYI_MICROSOFT "com.microsoft"
#define BYI_ML "ai.onnx.ml"
#define BYI_PREVIEW "ai.onnx.preview"

/* The rows of one file and domain. */
struct byi_onnx_table {
    const char *domain;
    const struct byi_onnx_op *at;
    uint32_t n;
};
/* Define byi_NAME, the table of the given rows. */
#define BYI_ONNX_ROWS(name, domain, ...)                                       \
    static const struct byi_onnx_op name##_rows[] = {__VA_ARGS__};             \
    const struct byi_onnx_table byi_##name = {domain, name##_rows,             \
                                              BYI_COUNT(name##_rows)};
/* byi_NAME of these is defined in the file of the operators' family. */
/* clang-format off */
#define BYI_ONNX_TABLES(X)                                                     \
    X(onnx_element) X(onnx_window) X(onnx_patches) X(onnx_linear) X(onnx_norm) \
    X(onnx_reduce) X(onnx_shape) X(onnx_index) X(onnx_make) X(onnx_image)      \
    X(onnx_quant) X(onnx_loss) X(onnx_recurrent) X(onnx_control)               \
    X(onnx_signal) X(onnx_random) X(onnx_text) X(onnx_sequence)                \
    X(onnx_attention) X(onnx_rotary)                                           \
    X(microsoft_element) X(microsoft_window) X(microsoft_linear)               \
    X(microsoft_norm) X(microsoft_quant) X(microsoft_attention)                \
    X(microsoft_grouped) X(microsoft_rotary) X(microsoft_recurrent)            \
    X(microsoft_blocks) X(microsoft_index) X(microsoft_image)                  \
    X(microsoft_make) X(microsoft_shape) X(microsoft_experts)                  \
    X(preview_attention) X(ml_linear) X(ml_tree) X(ml_tree_5) X(ml_svm)        \
    X(ml_map)
/* clang-format on */
#define BYI_ONNX_TABLE(name) extern const struct byi_onnx_table byi_##name;
BYI_ONNX_TABLES(BYI_ONNX_TABLE)

/* ops_map.c: import a graph input of map type as a tuple of two parameters,
 * its values and, under byi_import_keys_name, its keys. Returns false if the
 * type is not a map between tensor element types. */
bool byi_import_map_input(struct byi_import *o, const char *name,
                          const Onnx__TypeProto *type, byi_id *id);
const char *byi_import_keys_name(struct byi_import *o, const char *name);
/* ops_map.c: whether the value is a map, a tuple of values and keys. */
bool byi_import_is_map(const struct byi_import *o, byi_id id);
/* ops_map.c: return the values of a map, and its keys. */
byi_id byi_import_map_values(struct byi_import *o, byi_id map);
byi_id byi_import_map_keys(struct byi_import *o, byi_id map);

/* ops_random.c: emit uniform float32 numbers in [0, 1) of the given shape, from
 * the node's seed. */
byi_id byi_import_random_uniform(struct byi_import *o, byi_id shape);
/* ops_window.c: emit a convolution of the given values with the node's
 * attributes; bias may be BYI_NO_ID. */
byi_id byi_import_conv(struct byi_import *o, byi_id x, byi_id weights,
                       byi_id bias);
/* ops_window.c: emit average pooling of x with the node's attributes. */
byi_id byi_import_avg_pool(struct byi_import *o, byi_id x);
/* ops_window.c: emit the average of x over its spatial axes, which keep size 1.
 */
byi_id byi_import_global_avg_pool(struct byi_import *o, byi_id x);
/* ops_window.c: transpose (N, ..., C) to (N, C, ...), and back. */
byi_id byi_import_channels_first(struct byi_import *o, byi_id x);
byi_id byi_import_channels_last(struct byi_import *o, byi_id x);
/* ops_norm.c: emit nn.softmax or nn.log_softmax over all axes from `axis` on,
 * flattened. */
byi_id byi_import_softmax_from(struct byi_import *o, enum byi_op_id op,
                               byi_id x, int64_t axis);
/* ops_make.c: emit the size of an axis as an int64 scalar. */
byi_id byi_import_length(struct byi_import *o, byi_id id, int64_t axis);
/* ops_make.c: emit the vector start .. end - 1, of end's type; without a start
 * (BYI_NO_ID), from 0. */
byi_id byi_import_arange(struct byi_import *o, byi_id start, byi_id end);
/* ops_index.c: emit the elements of x at the indices along the axis. */
byi_id byi_import_take(struct byi_import *o, byi_id x, byi_id indices,
                       int64_t axis);
/* ops_shape.c: emit the elements from .. to - 1 of x along the axis. */
byi_id byi_import_slice(struct byi_import *o, byi_id x, int64_t from,
                        int64_t to, int64_t axis);
/* ops_shape.c: concatenate a and b along an axis; if a is BYI_NO_ID, return b.
 */
byi_id byi_import_concat(struct byi_import *o, byi_id a, byi_id b,
                         int64_t axis);
/* ops_element.c: apply the activation of a fused operator, by its ONNX name.
 * The n numbers are its attributes; missing ones take their defaults. Returns x
 * when the name is empty. */
byi_id byi_import_activation(struct byi_import *o, byi_id x, const char *name,
                             const double *numbers, uint32_t n);

/* ops_blocks.c: weights (n, k) of 2, 4 or 8 bits with a scale and a zero point
 * for each block of a row's columns. */
struct byi_block_weights {
    int64_t k, n, bits;
    int64_t block_size;
    byi_id codes, scales; /* n rows of bytes, the lower bits first; (n, blocks)
                           */
    byi_id zeros;         /* rows of bytes like codes; BYI_NO_ID: omitted */
    byi_id block_of_column; /* the block of each column; BYI_NO_ID: omitted */
    bool packs_rows; /* a byte of zeros has zero points of several rows */
};
/* Check the bits and the size of blocks. */
void byi_import_check_blocks(struct byi_import *o, int64_t bits,
                             int64_t block_size);
/* Emit x times the transposed weights. */
byi_id byi_import_block_product(struct byi_import *o, byi_id x,
                                const struct byi_block_weights *w);

/* --- ops_custom.c: operators of plug-ins ---------------------------------- */

/* Find the node's operator among the operators of plug-ins, and set o->custom
 * and o->row. Returns false if no plug-in has it. */
bool byi_import_find_custom(struct byi_import *o);

/* --- ops_ml.c: shared by the operators of ai.onnx.ml ---------------------- */

/* Emit input i as rows of features; a vector is one row. Fails if it has
 * another rank than 1 or 2. */
byi_id byi_ml_matrix(struct byi_import *o, uint32_t i, enum byoc_dtype dtype);
/* Add the vector of class labels, from attribute `ints` or classlabels_strings;
 * *n: their number. */
byi_id byi_ml_labels(struct byi_import *o, const char *ints, uint32_t *n);
/* Emit the elements of vector `values` at `indices`, which may have any integer
 * type or be bools. */
byi_id byi_ml_take(struct byi_import *o, byi_id values, byi_id indices);
/* Emit the argmax of each row of (rows, n), the first on ties, as (rows). */
byi_id byi_ml_argmax(struct byi_import *o, byi_id scores);
/* Emit score > limit for scores (rows, 1), as (rows). */
byi_id byi_ml_above(struct byi_import *o, byi_id score, double limit);
/* Emit 1 - p. */
byi_id byi_ml_complement(struct byi_import *o, byi_id p);
/* Concatenate two columns (rows, 1) to (rows, 2). */
byi_id byi_ml_two_columns(struct byi_import *o, byi_id first, byi_id second);
/* Apply post_transform `name` to scores (rows, n). */
byi_id byi_ml_post_transform(struct byi_import *o, byi_id scores,
                             const char *name);

#endif
