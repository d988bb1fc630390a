/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the compiler's view: modules, functions, nodes, their text
 * form, the verifier and the pass manager.
 */
#ifndef BYI_IR_H
#define BYI_IR_H

#include <byoc/pass.h>

#include "core/ops/ops.h"

/* --- ir.c --------------------------------------------------------------- */

/* A node, by its index in its function; also the value it gives. */
typedef uint32_t byi_id;
#define BYI_NO_ID UINT32_MAX

enum byi_node_kind {
    BYI_PARAM,   /* index: which parameter                                  */
    BYI_CONST,   /* index: in the module's constants                        */
    BYI_CALL_OP, /* op(args)                                                */
    BYI_CALL,    /* args[0](args[1..]); args[0] is a FN, GLOBAL or any value
                    of function type                                        */
    BYI_GLOBAL,  /* index: a function of the module, as a value             */
    BYI_FN,      /* index: a nested function, as a value; args: its captures,
                    which are the last parameters of that function. In its own
                    body: the function itself, args being those parameters  */
    BYI_MAKE_TUPLE,
    BYI_GET, /* index: field of the tuple args[0]                       */
    BYI_IF   /* args: condition, then, else: functions without (own)
                parameters                                              */
};

/* A set of model nodes, sorted, shared: where a node came from. */
struct byi_sources {
    uint32_t n;
    const uint32_t *at; /* indices into the module's source table */
};

enum { BYI_TARGET_BITS = 11, BYI_MAX_TARGETS = (1 << BYI_TARGET_BITS) - 1 };

struct byi_node {
    /* bits, since walks over large graphs cost what they read */
    enum byi_node_kind kind : 4;
    enum byi_op_id op : 16;            /* CALL_OP */
    bool let : 1;                      /* written as let: evaluated where it
                                          stands; no influence on its value  */
    uint32_t target : BYI_TARGET_BITS; /* annotation: 0 none, else 1 + index
                                          in the module's targets           */
    uint32_t region;                   /* annotation: 0 none, else its number */
    uint32_t index;
    uint32_t n_args;
    const byi_id *args;            /* in the module: byi_args_new */
    const struct byi_attrs *attrs; /* CALL_OP, else NULL    */
    const struct byi_type *type;
    const struct byi_sources *sources; /* never NULL; may be empty */
};

/* A function: parameters, nodes in an order where operands come first, one
 * result. Parameters are nodes too. A nested function (the body of a BYI_FN)
 * is in the module's list as well and has `name` NULL. Its captures are its
 * last n_captures parameters. */
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
        const char *operands;      /* Operands="weights,shape": names of
                                      the constants in a composite's
                                      body, in order, or NULL; its
                                      parameters have theirs          */
        /* what byi_is_closed and passes ask of every function, together */
        const char *compiler;  /* Compiler="dnnl", or NULL    */
        const char *composite; /* Composite="dnnl.conv", or NULL */
        bool primitive;        /* Primitive=1: fused by FuseOps */
        bool inlined;          /* Inline=1: by Inline, at each call */
        bool inner;            /* a branch in a composite: closed as
                                  it is; not in the text, which says
                                  so by where it stands           */
    } attr;
    bool refers;                        /* may hold GLOBALs and FNs; false:
                                           it holds none               */
    bool dead;                          /* removed from the module */
    BYI_VEC(const char *) result_names; /* outputs of the model, or empty */
    const struct byi_type *type;        /* the declared type, until the
                                           function has a result:
                                           byi_func_type */
    const struct byi_func *origin;      /* what byi_func_like was given */
};

/* A constant: shared by content, never copied by a pass that does not change
 * it. data is aligned to BYI_ALIGN where the module owns it, and as the model
 * file has it where it is mapped. */
struct byi_const {
    const struct byi_type *type;
    const void *data;
    uint64_t bytes;
    uint64_t hash;
};

struct byi_source {
    const char *name; /* the model node's name, unique, never empty */
    const char *op;   /* the model's operator: "Conv"               */
};

struct byi_module {
    struct byi_arena *arena;          /* types, attributes, names, args   */
    BYI_VEC(struct byi_func *) funcs; /* index = id; dead ones stay       */
    BYI_VEC(struct byi_const) consts;
    BYI_VEC(struct byi_source) sources;
    BYI_VEC(const char *) symbols; /* names of symbolic dims           */
    BYI_VEC(const char *) targets; /* names of vendors                 */
    uint64_t given, made;          /* bytes of constants: of the model's
                                      own, and of byi_const_alloc       */
    const char *entry;             /* the function that a model starts
                                      with; NULL: main                 */
    uint32_t n_metadata;           /* what the model's file says of itself */
    struct byoc_metadata *metadata;
    struct byi_const_index *const_index;
};

struct byi_module *byi_module_new(void);
void byi_module_free(struct byi_module **module);

/* A new function; name NULL for a nested one. Returns its index. */
uint32_t byi_func_new(struct byi_module *m, const char *name);
/* The function of that name, UINT32_MAX when there is none. */
uint32_t byi_func_find(const struct byi_module *m, const char *name);
/* Where the module starts: the name, and the function, UINT32_MAX when there
 * is none of that name. */
const char *byi_entry_name(const struct byi_module *m);
uint32_t byi_entry(const struct byi_module *m);
/* Start with function `name`; `where` is in the message when there is none,
 * which lists those there are. */
enum byoc_status byi_entry_set(struct byi_module *m, const char *name,
                               const char *where, struct byoc_error *err);
/* A function whose body passes leave alone: Compiler, Composite, Primitive. */
bool byi_is_closed(const struct byi_func *f);
/* Where to look for functions that are neither dead nor closed: indices in
 * order, and how many. A few others are among them, the many composites of a
 * large graph are not. What is dead, or has Compiler, Composite or Primitive,
 * never comes back, so each function is looked at once. Lives until the next
 * call. */
const uint32_t *byi_open_funcs(struct byi_module *m, uint32_t *n);
/* The type of function `func` as a value: its parameters but for the captures,
 * and the type of its result, or as declared while it has no result yet.
 * NULL when neither is there. */
const struct byi_type *byi_func_type(struct byi_module *m, uint32_t func);
/* Symbols and targets by name, made when new. byi_symbol returns a dim. */
int64_t byi_symbol(struct byi_module *m, const char *name);
int64_t byi_symbol_fresh(struct byi_module *m); /* "?0", "?1", ...    */
const char *byi_symbol_name(const struct byi_module *m, int64_t dim);
/* *target is 1 + its index, as nodes have it. Fails for more than
 * BYI_MAX_TARGETS of them. */
enum byoc_status byi_target(struct byi_module *m, const char *name,
                            uint32_t *target, struct byoc_error *err);
/* Annotate a node: with a target that byi_target gave, or 0. */
void byi_node_mark(struct byi_node *node, uint32_t target, uint32_t region);
/* A model node as a source; a name that is taken gets a suffix. */
uint32_t byi_source_new(struct byi_module *m, const char *name, const char *op);
const struct byi_sources *byi_sources_one(struct byi_module *m, uint32_t s);
const struct byi_sources *byi_sources_none(void);
/* The union of two sets, in the module's arena. */
const struct byi_sources *byi_sources_join(struct byi_module *m,
                                           const struct byi_sources *a,
                                           const struct byi_sources *b);
/* The set of these ids, which come in any order and more than once; `at` is
 * sorted on the way. */
const struct byi_sources *byi_sources_of(struct byi_module *m, uint32_t *at,
                                         uint32_t n);
/* A constant with this content; returns its index. `data` is copied unless
 * `borrow`: then it must live as long as the module. */
uint32_t byi_const_add(struct byi_module *m, const struct byi_type *type,
                       const void *data, bool borrow);
/* The same of a constant that the model itself brings: byi_const_afford allows
 * more after it. */
uint32_t byi_const_given(struct byi_module *m, const struct byi_type *type,
                         const void *data, bool borrow);
/* Memory for a constant of `type`, in the module's arena, which
 * byi_const_add then takes without a copy. False: the type has symbols, or the
 * bytes are over the budget of byi_const_afford. */
bool byi_const_alloc(struct byi_module *m, const struct byi_type *type,
                     struct byi_tensor *out);
/* Whether a compile may make so many more bytes of constants out of sizes that
 * the model only declares. A few bytes can declare any size, so the budget is
 * what the model itself brings, BYI_MADE_PER_BYTE times, and BYI_MADE_FREE. */
#define BYI_MADE_FREE ((uint64_t)256 << 20)
#define BYI_MADE_PER_BYTE 16
bool byi_const_afford(const struct byi_module *m, uint64_t bytes);

/* Room for n operands, for as long as the module lives. Those of neighbours lie
 * side by side, so that a walk over nodes is one over few lines of memory. */
byi_id *byi_args_new(struct byi_module *m, uint32_t n);
/* Append `node` as it is, its operands from byi_args_new or another node: for
 * what is moved without a change to its type. */
byi_id byi_add_node(struct byi_func *f, struct byi_node node);

/* --- builders: append to function f of m, infer the type. The first failure
 * is left in err and returned; *id is only written on success. `sources` may
 * be NULL for none. */
enum byoc_status byi_add_op(struct byi_module *m, struct byi_func *f,
                            enum byi_op_id op, const byi_id *args, uint32_t n,
                            const struct byi_attrs *attrs,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err);
/* With attributes as given (see byi_attrs_make). */
enum byoc_status byi_add_call(struct byi_module *m, struct byi_func *f,
                              enum byi_op_id op, const byi_id *args, uint32_t n,
                              const struct byi_attr *given, uint32_t n_given,
                              const struct byi_sources *sources, byi_id *id,
                              struct byoc_error *err);
enum byoc_status byi_add_apply(struct byi_module *m, struct byi_func *f,
                               byi_id callee, const byi_id *args, uint32_t n,
                               const struct byi_sources *sources, byi_id *id,
                               struct byoc_error *err);
enum byoc_status byi_add_get(struct byi_module *m, struct byi_func *f,
                             byi_id tuple, uint32_t index,
                             const struct byi_sources *sources, byi_id *id,
                             struct byoc_error *err);
enum byoc_status byi_add_if(struct byi_module *m, struct byi_func *f,
                            byi_id cond, byi_id then, byi_id otherwise,
                            const struct byi_sources *sources, byi_id *id,
                            struct byoc_error *err);
/* The types that byi_add_apply and byi_add_if infer, for the verifier. */
enum byoc_status byi_apply_type(
    const struct byi_module *m, struct byi_arena *arena,
    const struct byi_func *f, const struct byi_type *callee, const byi_id *args,
    uint32_t n, const struct byi_type **out, struct byoc_error *err);
enum byoc_status byi_if_type(struct byi_arena *arena,
                             const struct byi_type *cond,
                             const struct byi_type *then,
                             const struct byi_type *otherwise,
                             int64_t (*fresh)(void *), void *ctx,
                             const struct byi_type **out,
                             struct byoc_error *err);
byi_id byi_add_param(struct byi_module *m, struct byi_func *f, const char *name,
                     const struct byi_type *type);
byi_id byi_add_const(struct byi_module *m, struct byi_func *f,
                     uint32_t constant, const struct byi_sources *sources);
byi_id byi_add_tuple(struct byi_module *m, struct byi_func *f,
                     const byi_id *args, uint32_t n,
                     const struct byi_sources *sources);
byi_id byi_add_global(struct byi_module *m, struct byi_func *f, uint32_t func);
byi_id byi_add_fn(struct byi_module *m, struct byi_func *f, uint32_t func,
                  const byi_id *captures, uint32_t n,
                  const struct byi_sources *sources);
/* Append a copy of node `old` of `from` with operands map[...], annotations
 * and `let` included. Where f rebuilds `from` (byi_func_like) the type stays if
 * the operands' types, and what is known of their values, did; else it is
 * inferred, with names of its own for sizes that depend on data, since a node
 * may be copied several times. Parameters are not copied this way. */
enum byoc_status byi_add_copy(struct byi_module *m, struct byi_func *f,
                              const struct byi_func *from, byi_id old,
                              const byi_id *map, byi_id *id,
                              struct byoc_error *err);
/* The same for a node that moves from another function: as in a rebuild. */
enum byoc_status byi_add_moved(struct byi_module *m, struct byi_func *f,
                               const struct byi_func *from, byi_id old,
                               const byi_id *map, byi_id *id,
                               struct byoc_error *err);

/* Replace the body of functions: passes build a new function and move it in
 * place of the old one (same index, name and attributes unless set). */
void byi_func_replace(struct byi_module *m, uint32_t index,
                      struct byi_func *fresh);
/* A function that is not in the module yet: the target of a rebuild. Takes
 * over the name, attributes and parameters of `like` (map[param] is set when
 * map is not NULL). */
struct byi_func *byi_func_like(struct byi_module *m,
                               const struct byi_func *like, byi_id *map);

/* Readers of each node: uses->at[uses->first[id] .. first[id+1]) are the
 * nodes that have it as an operand, ascending, once per operand. In `arena`. */
struct byi_uses {
    const uint32_t *first;
    const byi_id *at;
};
struct byi_uses byi_uses_of(const struct byi_func *f, struct byi_arena *arena);

/* The constant's tensor view if node `id` is a constant, else false. */
bool byi_const_view(const struct byi_module *m, const struct byi_func *f,
                    byi_id id, struct byi_tensor *view);

/* --- ir_clone.c --------------------------------------------------------- */

/* The same module once more: every index is the same, and what is done to the
 * one is not done to the other. Types, operands and the data of constants stay
 * in the arena of `m`, which must outlive the clone. */
struct byi_module *byi_module_clone(const struct byi_module *m);

/* --- text.c (print), parse.c -------------------------------------------- */

/* Print the module in the text form; the same module, the same text.
 * Constants up to 16 elements are inline; a larger one is const["HEX"], the
 * first 16 digits of the SHA-256 of its type and bytes, and goes to `side` when
 * that is not NULL (the side file: see docs/text.md). */
void byi_print_module(const struct byi_module *m, struct byi_text *out,
                      FILE *side);
/* Print only what the text of the module calls value `id` of function `func`,
 * where that has a name: "%4". Takes as long as printing all; for messages. */
void byi_print_name(const struct byi_module *m, uint32_t func, byi_id id,
                    struct byi_text *out);
/* Parse the text form. `file` names it in messages: "file:line:col: ...".
 * `side` is the path of the side file of large constants, or NULL. */
enum byoc_status byi_parse_module(const char *text, size_t n, const char *file,
                                  const char *side, struct byi_module **module,
                                  struct byoc_error *err);

/* --- verify.c ----------------------------------------------------------- */

/* Check every invariant of the IR: operands before use, indices, arity,
 * types as inferred, captures, names, annotations. A failure is a bug of the
 * pass that ran last (or bad input where text is parsed). */
enum byoc_status byi_verify(const struct byi_module *m, struct byoc_error *err);
/* `type` is `inferred`, but for symbols: those that the inference has made
 * (dims from `minted` down) may have any name, each the same everywhere. */
bool byi_type_fits(const struct byi_type *type, const struct byi_type *inferred,
                   int64_t minted);

/* --- pass.c ------------------------------------------------------------- */

/* Runs one operator on constants: how FoldConstant computes. Given by the
 * driver, since core knows no kernels. out[i] has dtype, dims and memory. */
typedef enum byoc_status (*byi_eval_fn)(const struct byi_op *op,
                                        const struct byi_attrs *attrs,
                                        uint32_t n_in,
                                        const struct byi_tensor *in,
                                        uint32_t n_out, struct byi_tensor *out,
                                        struct byoc_error *err);

struct byi_pass;
struct byi_sizes; /* core/ir/samples.h */

/* An option of a pass: "max_depth" of FuseOps is "FuseOps.max_depth" to users.
 * `kind` is INT, BOOL or STRING; `fallback` is its value as they write it. */
struct byi_pass_option {
    const char *name;
    enum byi_attr_kind kind;
    const char *fallback;
    const char *summary;
};

/* Something that passes of a folder above find in their context. The folder
 * that owns it declares it with BYI_CONTEXT_ENTRY. */
struct byi_context_key {
    const char *name;
};
struct byi_context_entry {
    const struct byi_context_key *key;
    void *value;
};
enum { BYI_CONTEXT_ENTRIES = 4 };

struct byi_pass_context;
/* The value of that key; NULL when the context has none. */
void *byi_context_find(const struct byi_pass_context *ctx,
                       const struct byi_context_key *key);
/* Give the key another value, or its first one. */
void byi_context_put(struct byi_pass_context *ctx,
                     struct byi_context_entry entry);

/* Declare an entry of type `struct byi_NAME *`, whose key is defined in the
 * owner's C file: byi_NAME_entry(value) for an initialiser or byi_context_put,
 * and byi_NAME_of(ctx), which returns NULL when there is none. */
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

/* What passes are given. Zero-initialise; set what is needed. Lists of strings
 * end in NULL; NULL is the empty list. */
struct byi_pass_context {
    int opt_level;               /* 0..3 */
    const char *const *disabled; /* passes */
    const char *const *required;
    const char *const *options;          /* "FuseOps.max_depth=4"; the last of
                                            one name counts                */
    const struct byi_pass *const *known; /* every pass there is, for needs that
                                           are not in the list and for
                                           options; ends in NULL; or NULL  */
    const struct byoc_instrument *instruments;
    uint32_t n_instruments;
    const char *stop_after; /* a pass: end after its first run */
    bool by_hand;           /* the list itself is not gated: only
                               sequences in it are            */
    bool verify;            /* after every pass */
    byi_eval_fn eval;       /* NULL: no folding */
    /* Whether there is code for a node in a fused group; NULL: for any. */
    bool (*generates)(const struct byi_func *f, byi_id id);
    /* ... in a function of its own; NULL: for none. */
    bool (*generates_alone)(const struct byi_module *m,
                            const struct byi_func *f, byi_id id);
    uint64_t fold_limit;           /* largest folded constant, bytes;
                                      0: 64 MiB */
    const struct byi_sizes *sizes; /* of symbolic dims (samples.h), or NULL */
    /* what folders above pass to their own passes; NULL keys: no more */
    struct byi_context_entry entries[BYI_CONTEXT_ENTRIES];
    const struct byi_pass *pass; /* the one that runs: the manager's */
};

/* A pass: one file, one of these.
 * Exactly one of run_module, run_func and sequence is set. A function pass is
 * called for every live function that has no Compiler, no Composite and is not
 * Primitive, callees first; it replaces the body through byi_func_replace.
 * `scratch` is emptied after the call. A sequence holds other passes (and
 * sequences), which are gated one by one when it runs. */
struct byi_pass {
    const char *name; /* "FoldConstant" */
    const char *summary;
    int opt_level;
    const char *const *needs;  /* passes that must have run, or NULL */
    const char *const *breaks; /* passes whose work this one undoes:
                                  who needs them gets them again   */
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
    const void *data; /* of a pass made at run time */
};

/* Run passes in order. Gate: disabled, then required, then opt level, then
 * what instruments say (required passes are not asked about). A pass's needs
 * run first, whatever the level, unless they already have in this call and
 * nothing broke them since; a need that ran ahead of its own turn is not
 * repeated then. The verifier runs after each pass when ctx->verify.
 * Errors: of passes and instruments; BYOC_EINVAL for options that no pass of
 * ctx->known (where that is NULL: of the list) has. */
enum byoc_status byi_run_passes(struct byi_module *m,
                                const struct byi_pass *const *passes,
                                uint32_t n, struct byi_pass_context *ctx,
                                struct byoc_error *err);

/* An option of the pass that runs, by its whole name. */
int64_t byi_option_int(const struct byi_pass_context *ctx, const char *name);
bool byi_option_bool(const struct byi_pass_context *ctx, const char *name);
const char *byi_option_string(const struct byi_pass_context *ctx,
                              const char *name);

/* --- instrument.c --------------------------------------------------------
 * Instruments in the box. Each lives in memory of the caller, is filled in
 * before byi_run_passes, and outlives it. */

/* Time and nodes as a tree: a sequence above its members. */
struct byi_timed {
    const char *name;
    uint32_t depth;
    uint64_t begin, total, inner; /* nanoseconds; inner: of members */
    uint64_t nodes_before, nodes_after;
};
struct byi_timing {
    BYI_VEC(struct byi_timed) passes; /* in the order they began */
    uint32_t open[64];                /* those that have not ended */
    uint32_t depth;
};
struct byoc_instrument byi_timing_instrument(struct byi_timing *timing);
/* A table: pass, total and own milliseconds, share of the whole and of the
 * sequence around it, nodes before and after. */
void byi_timing_print(const struct byi_timing *timing, struct byi_text *out);
void byi_timing_free(struct byi_timing *timing);

/* The IR as text before and after passes: of one name, or "all". */
struct byi_printing {
    const char *before, *after; /* NULL: never */
    void (*print)(void *ctx, const char *when, const char *pass,
                  const char *ir);
    void *ctx;
};
struct byoc_instrument byi_printing_instrument(struct byi_printing *printing);

/* The IR after each pass as FOLDER/NNN-PASS.ir, from 000-input.ir on, with the
 * large constants beside each. The folder is made; what is in it stays. */
struct byi_dump {
    const char *folder;
    uint32_t n;
};
struct byoc_instrument byi_dump_instrument(struct byi_dump *dump);

/* --- tables ------------------------------------------------------------- */

/* Where to look in a table of open addressing, of mask + 1 slots, for keys that
 * come roughly in the order of a number below `of` that equal ones share:
 * first in a line of memory that goes with that number, since a walk over what
 * is large then is one over its table; then, once the line is full, from where
 * the hash says. byi_slot(&p, 0), byi_slot(&p, 1), ... until one is empty. */
struct byi_near {
    uint64_t line, hash;
    uint32_t mask;
};
static inline struct byi_near byi_near(uint32_t at, uint32_t of, uint64_t hash,
                                       uint32_t mask)
{
    return (struct byi_near){at * ((uint64_t)mask + 1) / of & ~(uint64_t)7,
                             hash, mask};
}
static inline uint32_t byi_slot(const struct byi_near *p, uint32_t i)
{
    return (uint32_t)(i < 8 ? p->line + i : p->hash + i) & p->mask;
}

#endif
