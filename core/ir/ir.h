/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the compiler's IR: modules, functions, nodes, their text form, the
 * verifier, the pass manager and its instruments.
 */
#ifndef BYI_IR_H
#define BYI_IR_H

#include <byoc/pass.h>

#include "core/ops/ops.h"

/* --- ir.c --------------------------------------------------------------- */

/* The index of a node in its function; also stands for the node's value. */
typedef uint32_t byi_id;
#define BYI_NO_ID UINT32_MAX

/* What a node is, and what its members `index` and `args` mean. */
enum byi_node_kind {
    BYI_PARAM,   /* index: of the parameter */
    BYI_CONST,   /* index: into the module's constants */
    BYI_CALL_OP, /* op(args) */
    /* args[0](args[1..]); args[0] is a FN, GLOBAL or any value of function
     * type */
    BYI_CALL,
    BYI_GLOBAL, /* index: a function of the module, as a value */
    /* index: a nested function, as a value; args: its captures, which are the
     * values of that function's last parameters. In the function's own body:
     * the function itself; args: its last parameters */
    BYI_FN,
    BYI_MAKE_TUPLE, /* of args */
    BYI_GET,        /* index: field of the tuple args[0] */
    /* args: a condition, and two functions without parameters, captures aside:
     * the `then` and `else` branches */
    BYI_IF
};

/* The provenance of a node: a set of model nodes, sorted, shared. */
struct byi_sources {
    uint32_t n;
    const uint32_t *at; /* indices into the module's source table */
};

enum { BYI_BACKEND_BITS = 11, BYI_MAX_BACKENDS = (1 << BYI_BACKEND_BITS) - 1 };

/* A node of a function: a value, and how it is computed. */
struct byi_node {
    /* bit fields, since walks over large graphs are bound by memory reads */
    enum byi_node_kind kind : 4;
    enum byi_op_id op : 16; /* CALL_OP */
    /* the text has `let`: the node is computed at this place, which does not
     * change its value */
    bool let : 1;
    /* annotation: 0 none, otherwise 1 + index in the module's backends */
    uint32_t backend : BYI_BACKEND_BITS;
    uint32_t region; /* annotation: 0 none, else the region's number */
    uint32_t index;
    uint32_t n_args;
    const byi_id *args;            /* in the module: byi_args_new */
    const struct byi_attrs *attrs; /* CALL_OP, else NULL */
    const struct byi_type *type;
    const struct byi_sources *sources; /* never NULL; may be empty */
};

/* Whether the node refers to function `index`. */
static inline bool byi_node_refers(const struct byi_node *node)
{
    return node->kind == BYI_FN || node->kind == BYI_GLOBAL;
}

/* A function: parameters, nodes ordered so that operands come first, one
 * result. Parameters are nodes, too. A nested function (the body of a BYI_FN)
 * is also in the module's list, and has `name` NULL. Its captures are its last
 * n_captures parameters. */
struct byi_func {
    const char *name;
    BYI_VEC(struct byi_node) nodes;
    BYI_VEC(byi_id) params;
    BYI_VEC(const char *) param_names; /* without '%'; parallel to params */
    uint32_t n_captures;
    byi_id result;
    struct {                       /* attributes of the function */
        const char *from_pattern;  /* PartitionedFromPattern, or NULL */
        const char *global_symbol; /* or NULL */
        /* Operands="weights,shape": names of the constants in a composite's
         * body, in order, or NULL; param_names has the names of the parameters
         */
        const char *operands;
        /* adjacent, since byi_is_closed and passes read them for every function
         */
        const char *compiler;  /* Compiler="dnnl", or NULL */
        const char *composite; /* Composite="dnnl.conv", or NULL */
        bool primitive;        /* Primitive=1: fused by FuseOps */
        bool inlined;          /* Inline=1: the pass Inline inlines its calls */
        /* Exact=1: a composite that must not round more than its operators
         * do */
        bool exact;
        /* a branch in a composite, closed like it; the text shows this by
         * nesting */
        bool inner;
    } attr;
    bool refers;                        /* may contain GLOBALs and FNs */
    bool dead;                          /* removed from the module */
    BYI_VEC(const char *) result_names; /* outputs of the model, or empty */
    /* the declared type, until the function has a result: byi_func_type */
    const struct byi_type *type;
    const struct byi_func *origin; /* the function that byi_func_like copied */
};

/* A constant: shared by content, never copied by a pass that does not change
 * it. `data` is aligned to BYI_ALIGN if the module owns it. Mapped data is
 * aligned as in the model file. */
struct byi_const {
    const struct byi_type *type;
    const void *data;
    uint64_t bytes;
    uint64_t hash;
};

/* A node of the ONNX model, as the IR keeps it for provenance. */
struct byi_source {
    const char *name; /* the model node's name, unique, never empty */
    const char *op;   /* the model's operator: "Conv"               */
    /* recorded by the importer, for people to read; otherwise NULL and 0 */
    const char *attributes;     /* "kernel_shape=[3, 3], group=2" */
    const char *const *outputs; /* types in the text form; "": unknown */
    uint32_t n_outputs;
};

/* A module. `sources`, `symbols` and `backends` are referred to by index. */
struct byi_module {
    struct byi_arena *arena;          /* types, attributes, names, args   */
    BYI_VEC(struct byi_func *) funcs; /* index = id; dead ones stay       */
    BYI_VEC(struct byi_const) consts;
    BYI_VEC(struct byi_source) sources;
    BYI_VEC(const char *) symbols;  /* names of symbolic dims */
    BYI_VEC(const char *) backends; /* names of backends */
    uint64_t model_const_bytes;     /* of constants from the model */
    uint64_t pass_const_bytes;      /* of constants from byi_const_alloc */
    const char *entry;              /* the entry function; NULL: main */
    uint32_t n_metadata;            /* metadata of the model file */
    struct byoc_metadata *metadata;
    struct byi_module_tables *tables;
};

/* An empty module, which the caller frees with byi_module_free. The module owns
 * everything that the functions below add or return. If an allocation fails,
 * they jump to the innermost guard (guard.h). Threads: one at a time for each
 * module. */
struct byi_module *byi_module_new(void);
/* Free the module and set *module to NULL; *module may be NULL. */
void byi_module_free(struct byi_module **module);

/* Add a function without nodes. `name` is copied; NULL: a nested function.
 * Returns its index. */
uint32_t byi_func_new(struct byi_module *m, const char *name);
/* The function of that name, or UINT32_MAX. */
uint32_t byi_func_find(const struct byi_module *m, const char *name);
/* The name and index of the entry function; UINT32_MAX if no function has that
 * name. */
const char *byi_module_entry_name(const struct byi_module *m);
uint32_t byi_module_entry(const struct byi_module *m);
/* Make function `name` the entry. Errors: BYOC_EINVAL, the module does not have
 * it; the message begins with `where` and lists the functions. */
enum byoc_status byi_module_entry_set(struct byi_module *m, const char *name,
                                      const char *where,
                                      struct byoc_error *err);
/* Whether f is closed, so that passes do not change its body: a function with
 * Compiler, Composite or Primitive, or a branch in a composite. */
bool byi_is_closed(const struct byi_func *f);
/* The indices, in order, and the number of functions that may be open: neither
 * dead nor closed. Also lists the branches in composites, but not the
 * composites, of which a large graph has many. Functions never become open
 * again, so each one is checked only once. The list is valid until the next
 * call. */
const uint32_t *byi_open_funcs(struct byi_module *m, uint32_t *n);
/* The type of function `func` as a value: its parameters without the captures,
 * and the type of its result or, until it has one, the declared type. NULL if
 * it has neither. */
const struct byi_type *byi_func_type(struct byi_module *m, uint32_t func);
/* The dim that is the symbol `name`, which is added to the module if new. */
int64_t byi_symbol(struct byi_module *m, const char *name);
/* A new symbol, called "?0", "?1" and so on. */
int64_t byi_symbol_new(struct byi_module *m);
const char *byi_symbol_name(const struct byi_module *m, int64_t dim);
/* Set *backend to 1 + the index of the backend `name`, as in nodes; it is added
 * to the module if new. Errors: BYOC_ELIMIT, more than BYI_MAX_BACKENDS
 * backends.
 */
enum byoc_status byi_backend_add(struct byi_module *m, const char *name,
                                 uint32_t *backend, struct byoc_error *err);
/* Annotate a node with a backend from byi_backend_add, or 0, and a region. */
void byi_node_mark(struct byi_node *node, uint32_t backend, uint32_t region);
/* Add a model node as a source, and return its index. The name gets a suffix if
 * it is taken; without a name (NULL or ""), `op` with a suffix is the name. */
uint32_t byi_source_new(struct byi_module *m, const char *name, const char *op);
/* The set of source s, and the empty set. */
const struct byi_sources *byi_sources_one(struct byi_module *m, uint32_t s);
const struct byi_sources *byi_sources_none(void);
/* The union of two sets, in the module's arena. */
const struct byi_sources *byi_sources_join(struct byi_module *m,
                                           const struct byi_sources *a,
                                           const struct byi_sources *b);
/* Sort the ids and drop repeated ones; returns how many remain. */
uint32_t byi_ids_sort(uint32_t *at, uint32_t n);
/* The set of these ids, which may be unsorted and repeated; sorts `at`. */
const struct byi_sources *byi_sources_of(struct byi_module *m, uint32_t *at,
                                         uint32_t n);
/* The sources of n nodes of f. */
const struct byi_sources *byi_sources_of_nodes(struct byi_module *m,
                                               const struct byi_func *f,
                                               const byi_id *nodes, uint32_t n);
/* The index of a constant with this content: of an equal one, or of a new one.
 * `type` has no symbols. `data` is copied unless `borrow`: then it must be
 * valid as long as the module. */
uint32_t byi_const_add(struct byi_module *m, const struct byi_type *type,
                       const void *data, bool borrow);
/* The same for a constant from the model: it enlarges the budget of
 * byi_consts_can_grow. */
uint32_t byi_const_add_model(struct byi_module *m, const struct byi_type *type,
                             const void *data, bool borrow);
/* Memory for a constant of `type`, in the module's arena, for byi_const_add to
 * use without a copy. Returns false if the type has symbols or is of strings,
 * or if the bytes exceed the budget of byi_consts_can_grow. */
bool byi_const_alloc(struct byi_module *m, const struct byi_type *type,
                     struct byi_tensor *out);
/* Whether a compile may create this many more bytes of constants from sizes
 * that the model declares. A few bytes can declare any size, so the budget is
 * BYI_CONST_BUDGET_FACTOR times the bytes of the model's own constants, plus
 * BYI_CONST_BUDGET_FREE. */
#define BYI_CONST_BUDGET_FREE ((uint64_t)256 << 20)
#define BYI_CONST_BUDGET_FACTOR 16
bool byi_consts_can_grow(const struct byi_module *m, uint64_t bytes);
/* The bytes of this budget that are left. */
uint64_t byi_consts_left(const struct byi_module *m);
/* Fail with BYOC_ELIMIT: a pass cannot make a constant within the budget.
 * `what`: the pass's word for the constant. */
enum byoc_status byi_const_refuse(const struct byi_module *m, enum byi_op_id op,
                                  const char *what, struct byoc_error *err);

/* Memory for n operands that is valid as long as the module. Operands of
 * adjacent nodes are adjacent in memory, so that walks over nodes touch few
 * cache lines.
 */
byi_id *byi_args_new(struct byi_module *m, uint32_t n);
/* Append `node` unchanged, with operands from byi_args_new or another node: for
 * nodes that move without a change of type. Returns its id. */
byi_id byi_add_node(struct byi_func *f, struct byi_node node);
/* The same for a copy of `like` with other operands. */
byi_id byi_add_like(struct byi_func *f, const struct byi_node *like,
                    const byi_id *args, uint32_t n_args);
/* Append a parameter, whose name, without '%', is copied. Returns its id. */
byi_id byi_add_param(struct byi_module *m, struct byi_func *f, const char *name,
                     const struct byi_type *type);

/* --- ir_build.c --------------------------------------------------------- *
 * These functions append a node to function f of m, and infer its type. They
 * copy `args`, and set *id only on success. Errors: BYOC_ETYPE and those of
 * type rules, with a message in err. Functions that return an id cannot fail.
 * `sources` may be NULL: none. */

/* Append a call of an operator; `attrs` NULL: all have their defaults. */
enum byoc_status byi_add_op(struct byi_module *m, struct byi_func *f,
                            enum byi_op_id op, const byi_id *args, uint32_t n,
                            const struct byi_attrs *attrs,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err);
/* The same with a list of attributes, which is completed by byi_attrs_make. */
enum byoc_status byi_add_call(struct byi_module *m, struct byi_func *f,
                              enum byi_op_id op, const byi_id *args, uint32_t n,
                              const struct byi_attr *list, uint32_t n_list,
                              const struct byi_sources *sources, byi_id *id,
                              struct byoc_error *err);
/* Append a call of `callee`, a value of function type. */
enum byoc_status byi_add_apply(struct byi_module *m, struct byi_func *f,
                               byi_id callee, const byi_id *args, uint32_t n,
                               const struct byi_sources *sources, byi_id *id,
                               struct byoc_error *err);
/* Append field `index` of a tuple. */
enum byoc_status byi_add_get(struct byi_module *m, struct byi_func *f,
                             byi_id tuple, uint32_t index,
                             const struct byi_sources *sources, byi_id *id,
                             struct byoc_error *err);
/* Append an `if`; both branches are functions without parameters. */
enum byoc_status byi_add_if(struct byi_module *m, struct byi_func *f,
                            byi_id cond, byi_id then, byi_id otherwise,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err);
/* The types that byi_add_apply and byi_add_if infer, for the verifier.
 * new_symbol(ctx) returns a new symbol, for a size in which the branches
 * differ. */
enum byoc_status byi_apply_type(
    const struct byi_module *m, struct byi_arena *arena,
    const struct byi_func *f, const struct byi_type *callee, const byi_id *args,
    uint32_t n, const struct byi_type **out, struct byoc_error *err);
enum byoc_status byi_if_type(struct byi_arena *arena,
                             const struct byi_type *cond,
                             const struct byi_type *then,
                             const struct byi_type *otherwise,
                             int64_t (*new_symbol)(void *), void *ctx,
                             const struct byi_type **out,
                             struct byoc_error *err);
/* Append a constant, a tuple, function `func` as a value, and the nested
 * function `func`, whose n captures are copied. */
byi_id byi_add_const(struct byi_module *m, struct byi_func *f,
                     uint32_t constant, const struct byi_sources *sources);
byi_id byi_add_tuple(struct byi_module *m, struct byi_func *f,
                     const byi_id *args, uint32_t n,
                     const struct byi_sources *sources);
byi_id byi_add_global(struct byi_module *m, struct byi_func *f, uint32_t func);
byi_id byi_add_fn(struct byi_module *m, struct byi_func *f, uint32_t func,
                  const byi_id *captures, uint32_t n,
                  const struct byi_sources *sources);
/* Append a copy of node `old` of `from` with operands map[...], including
 * annotations and `let`. If f rebuilds `from` (byi_func_like) and the operands'
 * types and known values are unchanged, the type is kept. Otherwise it is
 * inferred, with new symbols for sizes that depend on data, since a node may
 * be copied several times. Not for parameters. */
enum byoc_status byi_add_copy(struct byi_module *m, struct byi_func *f,
                              const struct byi_func *from, byi_id old,
                              const byi_id *map, byi_id *id,
                              struct byoc_error *err);
/* The same for a node that moves from another function: its type is kept as in
 * a rebuild. */
enum byoc_status byi_add_moved(struct byi_module *m, struct byi_func *f,
                               const struct byi_func *from, byi_id old,
                               const byi_id *map, byi_id *id,
                               struct byoc_error *err);

/* --- ir.c: functions and their nodes -------------------------------------- */

/* Replace function `index` by `new_func`, from byi_func_like. The name and the
 * attributes stay unless `new_func` sets them. The nodes of the old function
 * are freed. */
void byi_func_replace(struct byi_module *m, uint32_t index,
                      struct byi_func *new_func);
/* A function that has no index in the module yet: the target of a rebuild. It
 * has the name, attributes and parameters of `like`; map[param] becomes the new
 * parameter unless map is NULL. The module owns the function. */
struct byi_func *byi_func_like(struct byi_module *m,
                               const struct byi_func *like, byi_id *map);

/* Readers of each node: uses->at[uses->first[id] .. first[id+1]) are the
 * nodes that have it as an operand, ascending, once per operand. In `arena`. */
struct byi_uses {
    const uint32_t *first;
    const byi_id *at;
};
struct byi_uses byi_uses_of(const struct byi_func *f, struct byi_arena *arena);

/* Nodes of each region: members->at[members->first[r] .. first[r + 1]) are the
 * nodes whose region is r, ascending; r = 0: nodes outside of regions. In
 * `arena`. */
struct byi_members {
    const uint32_t *first;
    const byi_id *at;
};
struct byi_members byi_members_of(const struct byi_func *f, uint32_t n_regions,
                                  struct byi_arena *arena);

/* Set *view to the tensor of node `id`. The module owns its data, which must
 * not be changed. Returns false if the node is not a constant. */
bool byi_const_view(const struct byi_module *m, const struct byi_func *f,
                    byi_id id, struct byi_tensor *view);

/* --- ir_clone.c --------------------------------------------------------- */

/* A copy of the module with the same indices, without metadata and without the
 * attributes and outputs of sources; changes to one do not affect the other.
 * Types, operands and the data of constants stay in the arena of `m`, which
 * must outlive the clone. */
struct byi_module *byi_module_clone(const struct byi_module *m);

/* --- text.c (print), parse.c -------------------------------------------- */

/* Print the module in the text form. The same module gives the same text.
 * Constants up to 16 elements, and all of strings, are inline; a larger one is
 * const["HEX"], the first 16 digits of the SHA-256 of its type and bytes. It is
 * written to `side`, the side file (docs/text.md), unless that is NULL. */
void byi_print_module(const struct byi_module *m, struct byi_text *out,
                      FILE *side);
/* Print the name that value `id` of function `func` has in the module's text,
 * such as "%4", if it has one. Takes as long as printing the module; for
 * messages. */
void byi_print_name(const struct byi_module *m, uint32_t func, byi_id id,
                    struct byi_text *out);
/* Parse the text form. `file` is its name in messages: "file:line:col: ...".
 * `side` is the path of the side file of large constants, or NULL. The caller
 * frees *module, which is NULL on errors: BYOC_EPARSE, BYOC_ETYPE, BYOC_ELIMIT,
 * and those of byi_side_open. */
enum byoc_status byi_parse_module(const char *text, size_t n, const char *file,
                                  const char *side, struct byi_module **module,
                                  struct byoc_error *err);

/* --- verify.c ----------------------------------------------------------- */

/* Check every invariant of the IR: operands before use, indices, arity, types
 * as inferred, captures, names, annotations. Errors: BYOC_ETYPE, a bug of the
 * pass that ran last (or of the input, for parsed text). */
enum byoc_status byi_verify(const struct byi_module *m, struct byoc_error *err);
/* Whether `type` equals `inferred`. Symbols that the inference created (dims
 * from first_new down) may have other names in `type`, one name each. */
bool byi_type_fits(const struct byi_type *type, const struct byi_type *inferred,
                   int64_t first_new);
/* Whether the inference creates symbols for the type of a correct node. The
 * node's type may have existing symbols instead: the runtime then checks that
 * the sizes are equal. */
bool byi_sizes_depend_on_data(const struct byi_module *m,
                              const struct byi_func *f, byi_id id);

/* --- pass.c ------------------------------------------------------------- */

/* Runs one operator on constants, for FoldConstant. The driver sets it, since
 * core does not use the kernels. out[i] has dtype, dims and memory. */
typedef enum byoc_status (*byi_eval_fn)(const struct byi_op *op,
                                        const struct byi_attrs *attrs,
                                        uint32_t n_in,
                                        const struct byi_tensor *in,
                                        uint32_t n_out, struct byi_tensor *out,
                                        struct byoc_error *err);

struct byi_pass;
struct byi_sizes; /* core/ir/samples.h */

/* An option of a pass: "max_depth" of FuseOps is "FuseOps.max_depth" to users.
 * `kind` is INT, BOOL or STRING; `default_text` is its default, as users write
 * it.
 */
struct byi_pass_option {
    const char *name;
    enum byi_attr_kind kind;
    const char *default_text;
    const char *summary;
};

/* The key of data that passes in higher layers find in their context. The
 * folder that owns the data declares it with BYI_CONTEXT_ENTRY. */
struct byi_context_key {
    const char *name;
};
/* A key of a context, and its value. */
struct byi_context_entry {
    const struct byi_context_key *key;
    void *value;
};
enum { BYI_CONTEXT_ENTRIES = 4 };

struct byi_pass_context;
/* The value of the key, or NULL. */
void *byi_context_find(const struct byi_pass_context *ctx,
                       const struct byi_context_key *key);
/* Set the value of the key. */
void byi_context_put(struct byi_pass_context *ctx,
                     struct byi_context_entry entry);

/* Declare an entry of type `struct byi_NAME *`, whose key is defined in the
 * owner's C file. byi_NAME_entry(value) is for an initializer or
 * byi_context_put; byi_NAME_of(ctx) may return NULL. */
#define BYI_CONTEXT_ENTRY(name)                                                \
    extern const struct byi_context_key byi_##name##_key;                      \
    static inline struct byi_context_entry byi_##name##_entry(                 \
        struct byi_##name *value)                                              \
    {                                                                          \
        return (struct byi_context_entry){&byi_##name##_key, value};           \
    }                                                                          \
    static inline struct byi_##name *byi_##name##_of(                          \
        const struct byi_pass_context *ctx)                                    \
    {                                                                          \
        return byi_context_find(ctx, &byi_##name##_key);                       \
    }

/* The input of passes. Zero-initialise it, and set the members that are needed.
 * Lists of strings end in NULL; NULL is the empty list. */
struct byi_pass_context {
    int opt_level;               /* 0..3 */
    const char *const *disabled; /* passes */
    const char *const *required;
    /* "FuseOps.max_depth=4"; for equal names, the last one counts */
    const char *const *options;
    /* all existing passes, for needs that are not in the list and for options;
     * ends in NULL; or NULL */
    const struct byi_pass *const *known;
    const struct byoc_instrument *instruments;
    uint32_t n_instruments;
    const char *stop_after; /* a pass: end after its first run */
    bool runs_all; /* run every pass of the list; skip only within sequences */
    bool verify;   /* after every pass */
    byi_eval_fn eval; /* NULL: no folding */
    /* Whether the code generator supports a node in a fused group; NULL: every
     * node. */
    bool (*generates)(const struct byi_func *f, byi_id id);
    /* Whether it supports a node as the only one of a function; NULL: no node.
     */
    bool (*generates_alone)(const struct byi_module *m,
                            const struct byi_func *f, byi_id id);
    const struct byi_sizes *sizes; /* of symbolic dims (samples.h), or NULL */
    /* data of higher layers for their own passes; ends at a NULL key */
    struct byi_context_entry entries[BYI_CONTEXT_ENTRIES];
    const struct byi_pass *pass; /* the running pass; set by the pass manager */
    const void *prepared;        /* the result of its `prepare` */
};

/* A pass, defined in a separate file. Exactly one of run_module, run_func and
 * sequence is set. A function pass is called for every function that is neither
 * dead nor closed (byi_is_closed), callees first; it replaces the body with
 * byi_func_replace. `scratch` is reset after the call. A sequence holds other
 * passes (and sequences), each of which is run or skipped by its own level, the
 * options and the instruments. */
struct byi_pass {
    const char *name; /* "FoldConstant" */
    const char *summary;
    int opt_level;
    const char *const *needs; /* passes that must have run, or NULL */
    /* passes whose work this one undoes: they run again for passes that need
     * them */
    const char *const *breaks;
    const struct byi_pass_option *options;  /* name NULL at the end, or NULL */
    const struct byi_pass *const *sequence; /* NULL at the end */
    enum byoc_status (*run_module)(struct byi_module *m,
                                   struct byi_pass_context *ctx,
                                   struct byi_arena *scratch,
                                   struct byoc_error *err);
    enum byoc_status (*run_func)(struct byi_module *m, uint32_t func,
                                 struct byi_pass_context *ctx,
                                 struct byi_arena *scratch,
                                 struct byoc_error *err);
    /* NULL, or called before the calls of run_func, which find its result as
     * ctx->prepared. */
    enum byoc_status (*prepare)(const struct byi_pass *pass,
                                const void **prepared, struct byoc_error *err);
    const void *data; /* for prepare or run_func */
};

/* Run passes in order. A pass is skipped if it is in ctx->disabled. Otherwise
 * it runs if it is in ctx->required, or if its level and all instruments allow
 * it. The passes that it needs run first, at any level, unless they already ran
 * in this call and no later pass undid their work. A pass that ran early
 * because another needed it is not repeated at its own place in the list. The
 * verifier runs after each pass when ctx->verify. Errors: of passes and
 * instruments; BYOC_EINVAL for options that no pass of ctx->known (or, if that
 * is NULL, of the list) has, and for a needed pass that is disabled or in
 * neither list, or that needs the pass in turn; BYOC_EINTERNAL, the verifier
 * refused the module that a pass left. */
enum byoc_status byi_run_passes(struct byi_module *m,
                                const struct byi_pass *const *passes,
                                uint32_t n, struct byi_pass_context *ctx,
                                struct byoc_error *err);

/* pass_options.c: the value of an option of the running pass, by its full name
 * ("FuseOps.max_depth"). */
int64_t byi_option_int(const struct byi_pass_context *ctx, const char *name);
bool byi_option_bool(const struct byi_pass_context *ctx, const char *name);
const char *byi_option_string(const struct byi_pass_context *ctx,
                              const char *name);

/* --- instrument.c --------------------------------------------------------
 * Built-in instruments. Each is in memory of the caller, who fills it in before
 * byi_run_passes and keeps it until that returns. */

/* Time and node counts as a tree: sequences are parents of their members. */
struct byi_pass_time {
    const char *name;
    uint32_t depth;
    uint64_t begin, total, inner; /* nanoseconds; inner: of members */
    uint64_t nodes_before, nodes_after;
};
/* The times of all passes of a run. */
struct byi_timing {
    BYI_VEC(struct byi_pass_time) passes; /* in the order in which they began */
    /* indices of passes that have not ended */
    uint32_t open[64];
    uint32_t depth;
};
struct byoc_instrument byi_timing_instrument(struct byi_timing *timing);
/* A table: pass, milliseconds with and without those of its members, share of
 * the total and of the enclosing sequence, nodes before and after. */
void byi_timing_print(const struct byi_timing *timing, struct byi_text *out);
void byi_timing_free(struct byi_timing *timing);

/* Print the IR before and after the passes with these names; "all": all
 * passes. */
struct byi_printing {
    const char *before, *after; /* NULL: never */
    void (*print)(void *ctx, const char *when, const char *pass,
                  const char *ir);
    void *ctx;
};
struct byoc_instrument byi_printing_instrument(struct byi_printing *printing);

/* The IR after each pass as FOLDER/NNN-PASS.ir, from 000-input.ir on, with a
 * side file of large constants for each. Creates the folder, and keeps the
 * files in it. */
struct byi_dump {
    const char *folder;
    uint32_t n; /* modules written so far */
};
struct byoc_instrument byi_dump_instrument(struct byi_dump *dump);

/* --- tables ------------------------------------------------------------- */

/* The probe sequence of a hash table with open addressing and mask + 1 slots.
 * Each key has a number below `limit`, equal keys the same number, and keys
 * arrive roughly in the order of their numbers. The first slots of the sequence
 * are those of one cache line, which the number chooses. So a walk over a large
 * graph also reads the table in order. If that line is full, the slots from the
 * hash on follow. A search tries the slots byi_hash_slot(&p, 0),
 * byi_hash_slot(&p, 1), ... until it finds the key or an empty slot.
 */
struct byi_hash_probe {
    uint64_t line, hash;
    uint32_t mask;
};
static inline struct byi_hash_probe byi_hash_probe(uint32_t number,
                                                   uint32_t limit,
                                                   uint64_t hash, uint32_t mask)
{
    return (struct byi_hash_probe){
        number * ((uint64_t)mask + 1) / limit & ~(uint64_t)7, hash, mask};
}
static inline uint32_t byi_hash_slot(const struct byi_hash_probe *p, uint32_t i)
{
    return (uint32_t)(i < 8 ? p->line + i : p->hash + i) & p->mask;
}

#endif
