/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/byoc.h: compile a model.
 *
 * Link with libbyoc.so and libbyoc_runtime.so.
 *
 *     struct byoc_error err;
 *     struct byoc_compiled *c = NULL;
 *     if (byoc_compile("model.onnx", NULL, &c, &err) ||
 *         byoc_compiled_write(c, "model.so", &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     byoc_compiled_free(&c);
 *
 * A compiled model may be used by one thread at a time; several threads may
 * compile at once. The library prints nothing. The only program that it
 * executes is the C compiler: to write an artifact, to compile the C of a
 * backend, and to time candidates (BYOC_PARTITION_MEASURED).
 */
#ifndef BYOC_BYOC_H
#define BYOC_BYOC_H

#include <byoc/pass.h>
#include <byoc/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much to optimise: passes of that level and below run. */
enum byoc_opt {
    BYOC_OPT_DEFAULT = 0, /* BYOC_O2 */
    BYOC_O0 = 1,          /* only passes that a run needs */
    BYOC_O1 = 2,
    BYOC_O2 = 3,
    BYOC_O3 = 4 /* also passes that may change results in the last bits */
};

/* Which backends may generate C, which is compiled into the artifact. */
enum byoc_codegen {
    BYOC_CODEGEN_DEFAULT = 0, /* BYOC_CODEGEN_AUTO                       */
    BYOC_CODEGEN_AUTO = 1,    /* backends that generate nothing but C    */
    BYOC_CODEGEN_C = 2,       /* all backends that have a compile()      */
    BYOC_CODEGEN_JSON = 3     /* none                                    */
};

/* How nodes that several backends can run are placed (docs/cost.md). */
enum byoc_partition {
    BYOC_PARTITION_DEFAULT = 0, /* BYOC_PARTITION_GREEDY */
    /* each node goes to the first backend, in order of preference, that can run
     * it */
    BYOC_PARTITION_GREEDY = 1,
    BYOC_PARTITION_ESTIMATED = 2, /* the backend whose cost() is lowest */
    /* candidates are timed on this machine, natively and on each backend, and
     * placed so that the whole model takes the least time */
    BYOC_PARTITION_MEASURED = 3
};

/* Whether large float32 weights of products and convolutions are narrowed
 * (docs/weights.md). */
enum byoc_weights {
    BYOC_WEIGHTS_DEFAULT = 0, /* as the model has them                      */
    BYOC_WEIGHTS_FP16 = 1,    /* rounded to float16                         */
    BYOC_WEIGHTS_BF16 = 2,    /* rounded to bfloat16                        */
    BYOC_WEIGHTS_INT8 = 3,    /* matrix products: 8 bits, a scale per block */
    BYOC_WEIGHTS_INT4 = 4     /* matrix products: 4 bits, a scale per block */
};

/* The type in which those float32 operators compute that tolerate a narrower
 * one (docs/precision.md lists them). */
enum byoc_precision {
    BYOC_PRECISION_DEFAULT = 0, /* as the model has them */
    BYOC_PRECISION_FP16 = 1,    /* float16               */
    BYOC_PRECISION_BF16 = 2     /* bfloat16              */
};

/* Options of a compile. A zero member means the default. Lists of strings end
 * in NULL; NULL is the empty list. struct_size is explained in byoc/runtime.h.
 */
struct byoc_compile_params {
    /* backends by name, in order of preference; NULL: all that are found; an
     * empty list: none, so all nodes are native */
    const char *const *backends;
    const char *plugins;     /* where plug-ins are, as in byoc_load_params */
    const char *const *dims; /* "N=1": fix a symbolic dim (ONNX only) */
    /* "x=1x3x224x224": fix an input's shape, and with it the symbolic dims of
     * the shape, also in other inputs (ONNX only) */
    const char *const *shapes;
    /* "sr=16000": make input sr a constant whose elements all have this value
     * (ONNX only) */
    const char *const *values;
    /* nodes or operators that stay native, by name in the model or in the IR */
    const char *const *exclude;
    /* if not empty: only these nodes or operators may be offloaded, named in
     * the same way */
    const char *const *only;
    /* "a.conv_relu=PATTERN" (docs/patterns.md): rows of backends without a
     * plug-in, to try a table; their regions run their native twins. The text
     * before the dot names the backend; these backends come before the plug-ins
     */
    const char *const *patterns;
    const char *const *disable; /* passes not to run, by name              */
    const char *const *require; /* passes to run at any level        */
    enum byoc_opt opt_level;
    int forbid_reference; /* not 0: refuse backends' reference kernels */
    /* regions of fewer nodes of the model stay native; 0: no limit */
    uint32_t min_region_nodes;
    /* sizeof the struct. (0: the struct ends with isolate_bytes, as it did
     * before this member) */
    uint32_t struct_size;
    /* regions of fewer floating-point operations stay native; 0: no limit */
    double min_region_flops;
    /* limit on the number of regions: the regions with the fewest operations
     * stay native; 0: no limit */
    uint32_t max_regions;
    /* gates: the percentage of the floating-point operations, and of the
     * operators that run, that backends must run; 0: no gate. See
     * byoc_compiled_verdict */
    double require_offload;
    double require_offload_nodes;
    uint32_t threads; /* number of threads that backends are probed for; 0: the
                       * default of loading */
    /* these passes instead of a compile's, each "A" or "A,B,[C,[D]]": brackets
     * make a sequence, whose members are gated by level and `disable`; passes
     * outside of brackets always run. No plan is made, so that only
     * byoc_compiled_ir() and the ledger are useful */
    const char *const *passes;
    /* additional passes, written the same way, that run between clean-up and
     * partitioning */
    const char *const *add_passes;
    /* libraries with passes (byoc/pass.h), by absolute path; never unloaded */
    const char *const *pass_plugins;
    const char *const *options; /* of passes: "FuseOps.max_depth=4" */
    /* a pass's name: stop after its first run; no plan is made, as with
     * `passes` */
    const char *stop_after;
    const char *cc; /* the C compiler; NULL: $CC, then "cc" */
    enum byoc_codegen codegen;
    /* not 0: use no algorithm that rounds more than the operator's definition
     * does, such as Winograd's convolution */
    uint32_t exact;
    const struct byoc_instrument *instruments;
    uint32_t n_instruments;
    const char *print_before; /* a pass's name, or "all"; NULL: none */
    const char *print_after;
    void (*print)(void *ctx, const char *when, const char *pass,
                  const char *ir); /* when: "before", "after" */
    void *print_ctx;
    /* a folder: the IR after each pass is written to NNN-PASS.ir in it */
    const char *dump_passes;
    /* a folder, created if missing, for the C source of the artifact: kernels.c
     * has the fused kernels, FUNCTION.c the C of a backend for one region;
     * NULL: the source is not kept */
    const char *keep_c;
    /* sizes of symbolic dims, such as "batch=1,2,8,sequence=16": loading the
     * artifact makes a specialisation for every combination, and backends are
     * probed for these sizes; NULL: backends are probed for 1, 2 and 64 */
    const char *const *warm;
    int verify; /* not 0: check the IR after every pass */
    /* the entry function of a model in the text form; NULL: main */
    const char *function;
    enum byoc_partition partition_by;
    /* not 0: operators such as relu stay native if a backend may return a
     * number where they return NaN */
    uint32_t keep_nan;
    /* the file of measured times; NULL: $BYOC_CACHE_DIR/costs.json, otherwise
     * $XDG_CACHE_HOME/byoc/costs.json, otherwise
     * ~/.cache/byoc/costs.json */
    const char *cost_table;
    /* the time limit for timing candidates; nodes that are not timed by then
     * are placed greedily; 0: 60 */
    double measure_seconds;
    /* NULL, or called during long work: `what` names the work, of which `done`
     * of `total` parts are done */
    void (*progress)(void *ctx, const char *what, uint32_t done,
                     uint32_t total);
    void *progress_ctx;
    /* not 0: compile in a child process. If a plug-in crashes or hangs, the
     * ledger and a warning say so, and the model is compiled again without it.
     * Callbacks of these params are called in the child. Not together with
     * BYOC_PARTITION_MEASURED */
    int isolate;
    double isolate_seconds; /* time limit for one call of a plug-in; 0: 10 */
    uint64_t isolate_bytes; /* of memory that plug-ins may allocate; 0: 4 GiB */
    /* the type to which weights are narrowed; the ledger records the errors of
     * the narrowed weights. A weight stays float32 if the type cannot hold it
     * or if it has too few elements for a gain. Not together with `passes` */
    enum byoc_weights weights;
    /* "x86_64", "aarch64", "riscv64": the kind of machine that the artifact is
     * for; NULL: this one. For another one, `cc` is a cross compiler, by
     * default ARCH-linux-gnu-gcc, and $CC is not used. Backends can be probed
     * only on the machine that they run on, so for another one all operators
     * are native; the ledger says so */
    const char *target;
    /* the type in which products and the operators between them compute.
     * Inputs and outputs keep their types. The ledger counts the operators. Not
     * together with `passes` */
    enum byoc_precision precision;
};

struct byoc_compiled; /* a partitioned model with its plan, not yet a file */

/* Compile the model at `path`: ONNX, or the text form when it ends in ".ir".
 * Errors: BYOC_EIO, BYOC_EPARSE, BYOC_EUNSUPPORTED (names the operator),
 * BYOC_ETYPE, BYOC_ELIMIT, BYOC_EINVAL (a wrong parameter, an unknown name),
 * BYOC_EBACKEND (a requested plug-in cannot be loaded). On failure *compiled is
 * NULL. Nothing of `params` is kept. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_compile(
    const char *path, const struct byoc_compile_params *params,
    struct byoc_compiled **compiled, struct byoc_error *err);
/* Compile the model in `data`, as if it were the content of a file called
 * `name`. If the name ends in ".ir", the data is a text, otherwise ONNX.
 * Messages and the ledger quote the name. External tensors are read from the
 * folder in `name`, and refused if it has none ("model.onnx"). The caller may
 * free `data` after the call. Errors: as byoc_compile. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_compile_memory(
    const void *data, uint64_t bytes, const char *name,
    const struct byoc_compile_params *params, struct byoc_compiled **compiled,
    struct byoc_error *err);
/* Free *compiled and set it to NULL; *compiled may be NULL. */
BYOC_API void byoc_compiled_free(struct byoc_compiled **compiled);

/* Write the artifact: a shared library. It is written to another file and
 * renamed, so that `path` has either the whole artifact or its old content.
 * Errors: BYOC_EIO (also: the C compiler failed), BYOC_EINVAL (made with
 * `passes` or `stop_after`). */
BYOC_API BYOC_CHECKED enum byoc_status byoc_compiled_write(
    const struct byoc_compiled *compiled, const char *path,
    struct byoc_error *err);

/* Load the model from memory, without writing an artifact. `compiled` must
 * outlive the model. byoc_compile has already loaded the model once, as a
 * check. The first call returns that model if its params set only log,
 * log_line, log_ctx, log_severity, require_backends, verify, and the compile's
 * own threads and plug-ins. Errors: as byoc_model_load, and BYOC_EINVAL (made
 * with `passes` or `stop_after`). */
BYOC_API BYOC_CHECKED enum byoc_status byoc_compiled_load(
    struct byoc_compiled *compiled, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* NULL if the gates of the params hold, otherwise a sentence: the requirement,
 * what was found, and which nodes stayed native. Lives as long as `compiled`,
 * which can be used even if a gate does not hold. */
BYOC_API const char *byoc_compiled_verdict(
    const struct byoc_compiled *compiled);

/* The ledger as JSON (docs/ledger.md); valid as long as `compiled`. */
BYOC_API const char *byoc_compiled_ledger(const struct byoc_compiled *compiled);
/* The module as text after the last pass. Made on first use; valid as long
 * as `compiled`. NULL if an allocation fails. */
BYOC_API const char *byoc_compiled_ir(struct byoc_compiled *compiled);

/* Warnings, one line each; "" if there are none. Lives as long as `compiled`.
 */
BYOC_API const char *byoc_compiled_warnings(
    const struct byoc_compiled *compiled);
/* How many candidates and whole models were timed; times from the cost table do
 * not count. */
BYOC_API uint32_t byoc_compiled_timed(const struct byoc_compiled *compiled);

/* The passes that ran, as a table: a sequence above its members, milliseconds
 * with and without those of the members, shares, nodes before and after. Lives
 * as long as `compiled`. NULL if an allocation fails. */
BYOC_API const char *byoc_compiled_times(struct byoc_compiled *compiled);

/* Write the large constants that the text of byoc_compiled_ir names by digest
 * (docs/text.md): to read NAME.ir back, store them as NAME.consts beside it.
 * The file is replaced as a whole, as byoc_compiled_write does. Errors:
 * BYOC_EIO. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_compiled_consts(
    const struct byoc_compiled *compiled, const char *path,
    struct byoc_error *err);

/* A ledger's JSON as text for people: the totals, regions, implementations, and
 * the nodes that stayed native and why. Lists every node if every_node is not
 * 0. Errors: BYOC_EPARSE (not a ledger, or a damaged one), BYOC_EINCOMPATIBLE
 * (of another version), BYOC_ELIMIT. *text is NULL then; otherwise free it with
 * byoc_string_free. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_ledger_text(const char *ledger_json,
                                                        int every_node,
                                                        char **text,
                                                        struct byoc_error *err);
/* Everything that a ledger says about the model's node of this name. That is
 * its placement and the reason, the patterns that were tried and their results,
 * its region, implementation and cost. Errors: BYOC_EINVAL (no such node; the
 * message lists similar names), and those of byoc_ledger_text. *text: as for
 * byoc_ledger_text. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_ledger_explain(
    const char *ledger_json, const char *node, char **text,
    struct byoc_error *err);
/* List changes that let backends run more of the model at `path`: fix a size,
 * make an input a constant, use another layout, drop a limit of `params`.
 * Compiles again up to partitioning with each change, and lists the change with
 * the share that is then offloaded, the best first. *text is text, or JSON when
 * json is not 0 (docs/ledger.md); free it with byoc_string_free. Errors: those
 * of byoc_compile for the unchanged model; BYOC_EINVAL for `passes` and
 * `stop_after`. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_advise(
    const char *path, const struct byoc_compile_params *params, int json,
    char **text, struct byoc_error *err);
/* List the changes from one ledger to another (docs/ledger.md), as text, or as
 * JSON when json is not 0. *worse is 1 if the offloaded share shrank by more
 * than `tolerance` percentage points, otherwise 0. The share is of the
 * floating-point operations, or of the operators that run in both models.
 * Errors, *text: as for byoc_ledger_text; the message says which ledger is
 * wrong. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_ledger_diff(
    const char *old_json, const char *new_json, double tolerance, int json,
    int *worse, char **text, struct byoc_error *err);
/* Free a string that this library returned; `text` may be NULL. */
BYOC_API void byoc_string_free(char *text);

/* List every plug-in that is found, usable or not; `plugins` as in
 * byoc_load_params. Each is opened in a child process before it is opened here.
 * `use` is called once for each, with strings that are lent for the call.
 * `verdict` is NULL if the plug-in can be used, otherwise the reason. */
BYOC_API void byoc_backends_list(const char *plugins,
                                 void (*use)(void *ctx, const char *path,
                                             const char *name,
                                             const char *version,
                                             const char *verdict),
                                 void *ctx);

/* Check the pattern tables of every plug-in that is found (`plugins` as in
 * byoc_load_params). If `patterns` is not NULL, check only its rows,
 * "NAME=PATTERN", which end in NULL. `use` is called once for each row, in
 * order. `finding` is NULL if the row is valid, otherwise its fault: the row
 * does not compile, or an earlier row has the same name or takes all its
 * matches. Strings are lent for the call. Errors: BYOC_EINVAL, a row without a
 * name. */
BYOC_API enum byoc_status byoc_patterns_lint(
    const char *plugins, const char *const *patterns,
    void (*use)(void *ctx, const char *row, const char *finding), void *ctx,
    struct byoc_error *err);

/* Options of byoc_conform. A zero member means the default. */
struct byoc_conform_params {
    const char *only; /* a case, or a group of them; NULL: all        */
    uint64_t seed;    /* of random graphs and data; 0: 1              */
    uint32_t cases;   /* graphs for each pattern; 0: 28               */
    /* sizeof the struct. (0: the struct ends with progress_ctx, as it did
     * before this member) */
    uint32_t struct_size;
    double seconds; /* time limit of one case; 0: 20 */
    int no_onnx;    /* not 0: skip ONNX's own cases                 */
    /* more options for the command that runs a failed case alone, as "--seconds
     * 4"; or NULL */
    const char *options;
    enum byoc_codegen codegen; /* not BYOC_CODEGEN_JSON */
    uint32_t reserved;         /* 0 */
    /* NULL, or called before each case: `what` is its name, and `done` of
     * `total` cases are done */
    void (*progress)(void *ctx, const char *what, uint32_t done,
                     uint32_t total);
    void *progress_ctx;
};

/* Test the plug-in at `plugin`, an absolute path: its entry point, table,
 * claims, results, memory and threads (docs/conform.md). Every case runs in a
 * child process, so that a crash or hang of the plug-in does not affect the
 * caller. Sets *failed to the number of cases that fail, and *text to the
 * scorecard, as JSON when json is not 0; free it with byoc_string_free. Errors:
 * BYOC_EINVAL (`only` names no case, the path is not absolute), BYOC_ENOMEM.
 * Threads: call it from a process that has one thread and has run no model. */
BYOC_API BYOC_CHECKED enum byoc_status byoc_conform(
    const char *plugin, const struct byoc_conform_params *params, int json,
    int *failed, char **text, struct byoc_error *err);

#ifdef __cplusplus
}
#endif
#endif
