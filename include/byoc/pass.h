/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/pass.h: watch the passes of a compile, and bring passes of your own.
 *
 * A pass rewrites the program between the model and the plan. `byoc opt
 * --list-passes` names those in the box; `byoc opt FILE --passes=A,B` runs any
 * of them. A pass of your own is a struct byoc_pass: a name and rules.
 * Register it (byoc_pass_register), or build a shared library that exports
 * byoc_passes (below) and give its path to `byoc opt --pass-plugin` (struct
 * byoc_compile_params: pass_plugins). Such a library needs this header and
 * nothing to link with: whatever a rule calls is a member of the rewriter it is
 * given. examples/tanh_gelu.c is one.
 */
#ifndef BYOC_PASS_H
#define BYOC_PASS_H

#include <stdint.h>

#include <byoc/backend.h>
#include <byoc/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program between two passes. Lent for the duration of a call. */
struct byoc_module;

/* The program as text (docs/text.md); free with byoc_string_free. */
BYOC_API char *byoc_module_text(const struct byoc_module *module);
/* How many operator calls, calls, tuples, projections and ifs it has, bodies
 * of all functions included. */
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
    /* 0 keeps a pass from running. All must agree; not asked for passes that
     * are required (byoc_compile_params: require). */
    int (*should_run)(void *ctx, const char *pass,
                      const struct byoc_module *module);
    /* Around a pass that runs. A sequence is a pass as well: its members run
     * between its own two calls. */
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

/* An attribute: one of ints, floats and string is set. Flags are ints 0 and 1,
 * element types their name as a string; a single value has n = 1. */
struct byoc_attr {
    const char *name;
    uint32_t n;
    const int64_t *ints;
    const double *floats;
    const char *string;
};

/* The function that a rule works on, rebuilt from its operands to its result:
 * what a rule sees is rewritten already. Strings and views it hands out live
 * until the rule emits a node. Not for use by other threads, nor later. */
struct byoc_rewriter {
    uint32_t struct_size;
    uint32_t reserved;
    /* The operator of a call, "add"; NULL for all other nodes. */
    const char *(*op)(const struct byoc_rewriter *rw, byoc_node node);
    uint32_t (*n_args)(const struct byoc_rewriter *rw, byoc_node node);
    byoc_node (*arg)(const struct byoc_rewriter *rw, byoc_node node,
                     uint32_t index); /* BYOC_NO_NODE: no such operand */
    /* Not 0 when `node` has exactly one reader. */
    int (*read_once)(const struct byoc_rewriter *rw, byoc_node node);
    /* dtype, rank and dims (below 0: varies) of a tensor, and the data of a
     * constant, else NULL. 0 if it is not a tensor. */
    int (*tensor)(const struct byoc_rewriter *rw, byoc_node node,
                  struct byoc_view *view);
    /* An attribute of a call: a number or list of at most `max` entries; the
     * number of entries, or -1 when it has none of that name and kind. */
    int64_t (*ints)(const struct byoc_rewriter *rw, byoc_node node,
                    const char *name, int64_t *values, uint32_t max);
    int64_t (*floats)(const struct byoc_rewriter *rw, byoc_node node,
                      const char *name, double *values, uint32_t max);
    const char *(*string)(const struct byoc_rewriter *rw, byoc_node node,
                          const char *name);
    /* Emit a call; attributes that differ from the defaults. BYOC_NO_NODE when
     * an operand is, or when the types do not fit. An operator or attribute
     * that does not exist makes the pass fail, and the error names it. */
    byoc_node (*call)(struct byoc_rewriter *rw, const char *op,
                      const byoc_node *args, uint32_t n,
                      const struct byoc_attr *attrs, uint32_t n_attrs);
    /* Emit a constant; the data is copied. */
    byoc_node (*constant)(struct byoc_rewriter *rw,
                          const struct byoc_view *view);
};

/* Looks at a node and returns the one that takes its place, which must have
 * the same type: an operand, one it emitted, or BYOC_NO_NODE for none. Nodes
 * without readers are dropped, and the replacement inherits the model's names.
 */
struct byoc_rule {
    const char *op; /* the operator it looks at; NULL: every node */
    byoc_node (*apply)(void *ctx, struct byoc_rewriter *rw, byoc_node at);
};

/* Constant while registered, with all it points to. Rules may be called by
 * several threads at once, for different modules. */
struct byoc_pass {
    uint32_t struct_size;
    int32_t opt_level;   /* 0..3: in a sequence it runs from this level on */
    const char *name;    /* "FoldPairs": letters, digits and '_'  */
    const char *summary; /* one line, lower-case                  */
    /* passes that must have run, ending in NULL; NULL: none */
    const char *const *needs;
    const struct byoc_rule *rules; /* tried in order */
    uint32_t n_rules;
    uint32_t reserved;
    void *ctx; /* first argument of the rules */
};

/* Make a pass known by its name, to all compiles of this process from now on.
 * Any thread. Errors: BYOC_EINVAL (no or a taken name, no rules, an operator
 * that does not exist), BYOC_ELIMIT (256 are registered). */
BYOC_API BYOC_CHECKED enum byoc_status byoc_pass_register(
    const struct byoc_pass *pass, struct byoc_error *err);

/* What a shared library with passes exports as "byoc_passes": an array that
 * ends in NULL; NULL when it cannot serve `abi` (BYOC_PASS_ABI of the host).
 * Called once; the library stays loaded. */
#define BYOC_PASS_ABI 1
typedef const struct byoc_pass *const *(*byoc_passes_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
