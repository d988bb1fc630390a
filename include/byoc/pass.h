/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/pass.h: watch the passes of a compile, and add your own passes.
 *
 * A pass rewrites the program between the model and the plan. `byoc opt
 * --list-passes` lists the built-in passes; `byoc opt FILE --passes=A,B` runs
 * any of them. A pass of your own is a struct byoc_pass: a name and rules.
 * Register it (byoc_pass_register), or build a shared library that exports
 * byoc_passes (below) and give its path to `byoc opt --pass-plugin` (struct
 * byoc_compile_params: pass_plugins). Such a library needs only this header and
 * need not be linked against any library. All functions that a rule may call
 * are members of its rewriter. examples/tanh_gelu.c is one.
 */
#ifndef BYOC_PASS_H
#define BYOC_PASS_H

#include <stdint.h>

#include <byoc/backend.h>
#include <byoc/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program between two passes. Valid only during the call. */
struct byoc_module;

/* The program as text (docs/text.md), which the caller frees with
 * byoc_string_free; NULL if an allocation fails. */
BYOC_API char *byoc_module_text(const struct byoc_module *module);
/* The number of calls of operators, calls of functions, tuples, tuple
 * projections and ifs in all functions. */
BYOC_API uint64_t byoc_module_nodes(const struct byoc_module *module);

/* --- instruments ---------------------------------------------------------
 * Called by the thread that compiles, in the order of their list. Members may
 * be NULL. A hook that fails ends the compile with its error; `exit` is then
 * still called for every instrument whose `enter` succeeded. */
struct byoc_instrument {
    void *ctx; /* first argument of all */
    /* Before the first pass, and after the last one. */
    enum byoc_status (*enter)(void *ctx, struct byoc_error *err);
    void (*exit)(void *ctx);
    /* Returns 0 to skip the pass, which runs only if all instruments agree. Not
     * called for required passes (byoc_compile_params: require). */
    int (*should_run)(void *ctx, const char *pass,
                      const struct byoc_module *module);
    /* Around a pass that runs. A sequence is also a pass: its members run
     * between its two calls. */
    enum byoc_status (*before)(void *ctx, const char *pass,
                               const struct byoc_module *module,
                               struct byoc_error *err);
    enum byoc_status (*after)(void *ctx, const char *pass,
                              const struct byoc_module *module,
                              struct byoc_error *err);
};

/* --- passes of your own --------------------------------------------------- */

typedef uint32_t byoc_node; /* a value of the function being rewritten */
#define BYOC_NO_NODE UINT32_MAX

/* An attribute: one of ints, floats and string is set. Booleans are the ints 0
 * and 1, an element type is its name as a string; a single value has n = 1. */
struct byoc_attr {
    const char *name;
    uint32_t n;
    const int64_t *ints;
    const double *floats;
    const char *string;
};

/* The function that a rule works on. It is rebuilt in topological order: when a
 * rule is called, the operands of its node are rewritten already. Strings and
 * views that the members return live until the rule emits a node. A rewriter is
 * valid only during the call of the rule, in its thread. */
struct byoc_rewriter {
    uint32_t struct_size;
    uint32_t reserved;
    /* The operator of a call, "add"; NULL for all other nodes. */
    const char *(*op)(const struct byoc_rewriter *rw, byoc_node node);
    /* The number of operands, and operand `index`. */
    uint32_t (*n_args)(const struct byoc_rewriter *rw, byoc_node node);
    byoc_node (*arg)(const struct byoc_rewriter *rw, byoc_node node,
                     uint32_t index); /* BYOC_NO_NODE: no such operand */
    /* Not 0 when `node` has exactly one reader. */
    int (*read_once)(const struct byoc_rewriter *rw, byoc_node node);
    /* Sets *view to dtype, rank and dims of a tensor; a negative dim is
     * symbolic. view->data is NULL unless the node is a constant. Returns 0 if
     * the node is not a tensor. */
    int (*tensor)(const struct byoc_rewriter *rw, byoc_node node,
                  struct byoc_view *view);
    /* Read an attribute of a call, a number or a list, of which at most `max`
     * entries are written. Returns the number of entries; -1 if the call has no
     * attribute of that name and kind. */
    int64_t (*ints)(const struct byoc_rewriter *rw, byoc_node node,
                    const char *name, int64_t *values, uint32_t max);
    int64_t (*floats)(const struct byoc_rewriter *rw, byoc_node node,
                      const char *name, double *values, uint32_t max);
    /* A string attribute of a call; NULL if the call has no such attribute. */
    const char *(*string)(const struct byoc_rewriter *rw, byoc_node node,
                          const char *name);
    /* Emit a call; `attrs` are the attributes that differ from the defaults.
     * Returns BYOC_NO_NODE if an operand is BYOC_NO_NODE or the types do not
     * fit. An operator or attribute that does not exist makes the pass fail,
     * and the error names it. */
    byoc_node (*call)(struct byoc_rewriter *rw, const char *op,
                      const byoc_node *args, uint32_t n,
                      const struct byoc_attr *attrs, uint32_t n_attrs);
    /* Emit a constant, whose data is copied. */
    byoc_node (*constant)(struct byoc_rewriter *rw,
                          const struct byoc_view *view);
};

/* A rule looks at a node. Returns the replacement: an operand, or a node that
 * the rule emitted; its type must equal the node's. BYOC_NO_NODE keeps the
 * node. Nodes without readers are dropped, and the replacement inherits the
 * model's names. */
struct byoc_rule {
    const char *op; /* the operator it looks at; NULL: every node */
    byoc_node (*apply)(void *ctx, struct byoc_rewriter *rw, byoc_node at);
};

/* A pass. It and everything that it points to must not change after it is
 * registered. Rules may be called by several threads at once, for different
 * modules. */
struct byoc_pass {
    uint32_t struct_size;
    /* 0..3: the lowest level at which a sequence runs it */
    int32_t opt_level;
    const char *name;    /* "FoldPairs": letters, digits and '_'  */
    const char *summary; /* one line, lower-case                  */
    /* passes that must have run, ending in NULL; NULL: none */
    const char *const *needs;
    const struct byoc_rule *rules; /* tried in order */
    uint32_t n_rules;
    uint32_t reserved;
    void *ctx; /* first argument of the rules */
};

/* Register a pass under its name, for all later compiles of this process. Any
 * thread. Errors: BYOC_EINVAL (struct_size is too small; the name is malformed
 * or taken; no summary; opt_level is not 0 to 3; no rules, a rule without
 * apply() or for an operator that does not exist), BYOC_ELIMIT (256 are
 * registered), BYOC_ENOMEM. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_pass_register(
    const struct byoc_pass *pass, struct byoc_error *err);

/* The type of the function that a shared library with passes exports as
 * "byoc_passes". It returns an array that ends in NULL, or NULL if it does not
 * support `abi` (BYOC_PASS_ABI of the host). May be called several times, and
 * must return the same passes each time. The library stays loaded. */
#define BYOC_PASS_ABI 1
typedef const struct byoc_pass *const *(*byoc_passes_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
