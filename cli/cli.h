/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cli.h: the program byoc: its commands, their options, and the models that
 * they open. Results go to stdout, everything else to stderr.
 */
#ifndef BYI_CLI_H
#define BYI_CLI_H

#include <byoc/byoc.h>

#include "core/ops/ops.h"

/* Exit codes. */
enum {
    BYI_EXIT_OK = 0,
    /* a negative result, such as a mismatch, a failed gate or test, or a
     * plug-in that cannot be used */
    BYI_EXIT_VERDICT = 1,
    /* usage, bad input, a failed read or write, or out of memory */
    BYI_EXIT_USAGE = 2,
    BYI_EXIT_BACKEND = 3,     /* a backend failed */
    BYI_EXIT_INCOMPATIBLE = 4 /* an artifact of another version or machine */
};

/* Whether a command compiles the model, loads it, or both. byoc refuses an
 * option that affects only the other step. */
enum { BYI_COMPILES = 1, BYI_LOADS = 2 };

/* A command, such as `byoc run`. Each is in a file of the same name. */
struct byi_command {
    const char *name, *usage, *summary; /* usage: the arguments */
    const char *first; /* choices for the first argument, "a|b"; NULL: a file */
    /* shell commands that run in examples/digits, each followed by a newline;
     * or NULL */
    const char *example;
    unsigned steps; /* BYI_COMPILES, BYI_LOADS, both or, without a model, 0 */
    /* argv[0] is the command's name; returns the exit code */
    int (*run)(int argc, char **argv);
};

/* The commands, in the order in which they are listed to users;
 * byi_command_NAME is defined in NAME.c. */
/* clang-format off */
#define BYI_COMMANDS(X)                                                        \
    X(check) X(partition) X(compile) X(inspect) X(run) X(bench) X(compare)     \
    X(verify) X(backends) X(quantize) X(report) X(opt) X(conform) X(extract)   \
    X(help)
/* clang-format on */
#define BYI_COMMAND(name) extern const struct byi_command byi_command_##name;
BYI_COMMANDS(BYI_COMMAND)

/* --- help.c --------------------------------------------------------------- */

/* The command of that name; prints an error and returns NULL if there is none.
 */
const struct byi_command *byi_find_command(const char *name);
/* Print the list of commands with their summaries. */
void byi_print_usage(FILE *to);

/* --- terminal.c ----------------------------------------------------------- */

/* Replace stdout and stderr by streams that escape control characters. */
void byi_terminal_open(void);
/* From now on, escape stdout as JSON does. Call this before printing JSON. */
void byi_terminal_json(void);
/* Flush stdout. Returns `code`; if a write failed, prints a message, and
 * returns BYI_EXIT_USAGE instead of BYI_EXIT_OK. */
int byi_terminal_close(int code);

/* --- progress.c ----------------------------------------------------------- */

/* Start a thread that prints progress to stderr: after two seconds it begins
 * to report the current step and the time so far. Does nothing if BYOC_PROGRESS
 * is 0. `command` names the command in the line; it is not copied. */
void byi_progress_begin(const char *command);
/* Set the current step and its progress: `done` of `total` items; `total` is 0
 * if items are not counted. `what` names the step; it is copied. Any thread may
 * call this. */
void byi_progress_step(const char *what, uint32_t done, uint32_t total);
/* Erase the progress line, before other output goes to the terminal. */
void byi_progress_clear(void);
/* Stop the thread and erase the progress line. */
void byi_progress_end(void);
/* Erase the progress line, in a signal handler that ends the process. */
void byi_progress_forget(void);

/* --- interrupt.c ---------------------------------------------------------- */

/* Install the handler of SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU, and of the
 * signals of a crash, except where the signal does not have its default action,
 * such as SIGHUP under nohup. Ignore SIGXFSZ. */
void byi_interrupt_watch(void);
/* This command begins: messages about signals name it. */
void byi_interrupt_command(const char *name);
/* Get the plug-in that is being called, and the function; "" if there is none.
 * Returns when the call began: 0: there is none, UINT64_MAX: not known. */
uint64_t byi_plugin_step(const char **plugin, const char **step);

/* --- options.c ------------------------------------------------------------ */

/* The kind of an option's value, and the type of byi_option.to. A list ends in
 * NULL; an empty one is NULL. */
enum byi_option_kind {
    BYI_OPTION_FLAG,    /* bool * */
    BYI_OPTION_TEXT,    /* const char ** */
    BYI_OPTION_LIST,    /* const char *const **: may be given many times */
    BYI_OPTION_PATH,    /* const char *const **: paths, made absolute */
    BYI_OPTION_PATHS,   /* const char **: paths A:B:C, made absolute, joined */
    BYI_OPTION_COMMAS,  /* const char *const **: A,B,C */
    BYI_OPTION_COUNT,   /* uint32_t *: 0 .. 2^31 - 1 */
    BYI_OPTION_CHOICE,  /* int * or enum *: 1 + the index of a word of `value`,
                         * "a|b|c" */
    BYI_OPTION_NUMBER,  /* double *: finite, not negative */
    BYI_OPTION_PERCENT, /* double *: as a number; may end in % */
    BYI_OPTION_SECONDS, /* double *: as a number; at most a million */
    BYI_OPTION_TOLERANCE, /* double *: as a number, or "inf" */
    BYI_OPTION_LEVEL      /* enum byoc_opt *: -O0 .. -O3 */
};

/* An option: "--name VALUE", "--name=VALUE", and "-x VALUE" if it has a short
 * form. */
struct byi_option {
    const char *name;
    char brief; /* the letter of the short form; 0: none */
    enum byi_option_kind kind;
    void *to; /* where to store the value; unchanged if it is not given */
    /* what help texts write for the value: a name such as "N", or all possible
     * values, such as "a|b"; NULL: the option takes no value */
    const char *value;
    const char *help; /* one line, for --help and manual pages */
};

/* Parse argv[1..argc-1] and store the values of options. The positional
 * arguments, `min_positional` to `max_positional` of them, go to
 * positional[0..*n_positional-1].
 * Returns -1 if the command should continue; otherwise the exit code, after
 * printing help (0) or an error (2). */
int byi_parse_options(const struct byi_command *command,
                      const struct byi_option *options, uint32_t n_options,
                      int argc, char **argv, uint32_t min_positional,
                      uint32_t max_positional, const char **positional,
                      uint32_t *n_positional);
/* A function that prints the options of a command. */
typedef void byi_print_options(const struct byi_command *command,
                               const struct byi_option *options, uint32_t n);
/* Print the usage, the options and the examples to stdout. */
byi_print_options byi_print_help;
/* The function that byi_parse_options calls for --help. This is byi_print_help,
 * unless `byoc help` sets another one. (The table of a command's options is
 * local to the command's function `run`. So only byi_parse_options can pass it
 * on.) */
extern byi_print_options *byi_help_printer;
extern const struct byi_command *const
    *byi_commands; /* ends in NULL; set by main */
/* Append `text`, which must outlive the list; the list is never freed. */
void byi_option_list_add(const char *const **list, const char *text);
/* Whether the option of that name was given; -O is called "O". */
bool byi_option_is_given(const char *name);

/* Print "byoc COMMAND: MESSAGE" to stderr, with the message of err. Returns the
 * exit code for its status. */
int byi_cli_print_error(const struct byi_command *command,
                        const struct byoc_error *err);

/* --- input.c -------------------------------------------------------------- */

/* Whether to open a file as an artifact: it is an ELF file, or its path ends in
 * .so. */
bool byi_is_artifact(const char *path);
/* Fail with BYOC_EINVAL if a file is of a kind that cannot be a model; the
 * message says what to do with it. A file that cannot be read passes: opening
 * it gives the error. */
enum byoc_status byi_expect_model(const char *path, struct byoc_error *err);
/* Improve the message of a failed attempt to open `path` as an artifact. If
 * `status` is BYOC_EPARSE and the file is of another kind, err names that kind.
 * Returns `status`. */
enum byoc_status byi_explain_artifact(const char *path, enum byoc_status status,
                                      struct byoc_error *err);

/* --- model.c -------------------------------------------------------------- */

/* The options that the commands with a model share. Their names are in
 * BYI_MODEL_OPTIONS, their meaning in struct byoc_compile_params and struct
 * byoc_load_params. */
struct byi_model_options {
    struct byoc_compile_params compile; /* its plugins and threads also load */
    const struct byi_command *command;
    const char *report;
    uint32_t isolate_mib;
    bool native, forbid_ref, keep_nan, exact, isolate, require_backends,
        time_passes, verify, verbose;
    bool twins; /* compile for backends, but run the regions' native twins */
};

/* The rows of a command's option table that set `o`, a byi_model_options. */
/* clang-format off */
#define BYI_MODEL_OPTIONS(o)                                                   \
    {"backend", 0, BYI_OPTION_COMMAS, &(o).compile.backends, "NAME[,NAME]",    \
     "backends, in order of preference (default: all)"},                       \
    {"function", 0, BYI_OPTION_TEXT, &(o).compile.function, "NAME",            \
     "entry function of a text (default: main)"},                              \
    {"native", 0, BYI_OPTION_FLAG, &(o).native, NULL, "native kernels only"},  \
    {"plugin", 0, BYI_OPTION_PATHS, &(o).compile.plugins, "PATH[:PATH]",       \
     "more plug-ins or folders; \"only\": no default folders"},                \
    {"pattern", 0, BYI_OPTION_LIST, &(o).compile.patterns, "NAME=PATTERN",     \
     "add a row of a backend without a plug-in, to try patterns"},             \
    {"threads", 0, BYI_OPTION_COUNT, &(o).compile.threads, "N",                \
     "threads of a run (default: all CPUs of this process)"},                  \
    {"dim", 0, BYI_OPTION_LIST, &(o).compile.dims, "N=1",                      \
     "fix a symbolic dim; for an artifact: only in random inputs"},            \
    {"shape", 0, BYI_OPTION_LIST, &(o).compile.shapes, "x=1x3x224x224",        \
     "fix an input's shape, and its symbolic dims in all inputs"},             \
    {"warm", 0, BYI_OPTION_LIST, &(o).compile.warm, "N=1,2,8[,M=16]",          \
     "prepare for these sizes of symbolic dims, in all combinations"},         \
    {"const", 0, BYI_OPTION_LIST, &(o).compile.values, "x=0.5",                \
     "make an input a constant with this value in each element"},              \
    {"require-backends", 0, BYI_OPTION_FLAG, &(o).require_backends, NULL,      \
     "fail if a backend is missing, instead of running native twins"},         \
    {"exclude", 0, BYI_OPTION_LIST, &(o).compile.exclude, "NAME|OP",           \
     "keep a node, or every node of an operator, native"},                     \
    {"only", 0, BYI_OPTION_LIST, &(o).compile.only, "NAME|OP",                 \
     "keep every other node native"},                                          \
    {"forbid-ref", 0, BYI_OPTION_FLAG, &(o).forbid_ref, NULL,                  \
     "refuse backends' reference implementations"},                            \
    {"keep-nan", 0, BYI_OPTION_FLAG, &(o).keep_nan, NULL,                      \
     "keep operators native for which backends may lose NaN"},                 \
    {"exact", 0, BYI_OPTION_FLAG, &(o).exact, NULL,                            \
     "use no algorithm that rounds more than plain sums of products"},         \
    {"min-region-nodes", 0, BYI_OPTION_COUNT,                                  \
     &(o).compile.min_region_nodes, "N",                                       \
     "make no region with fewer nodes of the model"},                          \
    {"min-region-flops", 0, BYI_OPTION_NUMBER,                                 \
     &(o).compile.min_region_flops, "N",                                       \
     "make no region with fewer floating-point operations, such as 1e6"},      \
    {"max-regions", 0, BYI_OPTION_COUNT, &(o).compile.max_regions, "N",        \
     "keep the N regions with the most operations (0: all)"},                  \
    {"partition-by", 0, BYI_OPTION_CHOICE,                                     \
     &(o).compile.partition_by, "greedy|estimated|measured",                   \
     "place nodes on backends if possible, or by cost (default: greedy)"},     \
    {"cost-table", 0, BYI_OPTION_TEXT, &(o).compile.cost_table, "FILE",        \
     "file of measured times (default: in ~/.cache/byoc)"},                    \
    {"measure-seconds", 0, BYI_OPTION_SECONDS,                                 \
     &(o).compile.measure_seconds, "S",                                        \
     "time limit of measuring (default: 60)"},                                 \
    {"codegen", 0, BYI_OPTION_CHOICE, &(o).compile.codegen, "auto|c|json",     \
     "which backends generate C; auto: those that generate only C; c: all; "   \
     "json: none"},                                                            \
    {"weights", 0, BYI_OPTION_CHOICE,                                          \
     &(o).compile.weights, "fp16|bf16|int8|int4",                              \
     "narrow large float32 weights, and report the error it costs"},           \
    {"precision", 0, BYI_OPTION_CHOICE,                                        \
     &(o).compile.precision, "fp16|bf16",                                      \
     "compute float32 operators in 16 bits (docs/precision.md)"},              \
    {"isolate", 0, BYI_OPTION_FLAG, &(o).isolate, NULL,                        \
     "compile in a child process, which a backend may crash"},                 \
    {"isolate-seconds", 0, BYI_OPTION_SECONDS,                                 \
     &(o).compile.isolate_seconds, "S",                                        \
     "time limit of one call of a backend in that process (default: 10)"},     \
    {"isolate-mib", 0, BYI_OPTION_COUNT, &(o).isolate_mib, "N",                \
     "memory that backends may add in that process (default: 4096)"},          \
    {"", 'O', BYI_OPTION_LEVEL, &(o).compile.opt_level, "0..3",                \
     "optimisation level (default: 2)"},                                       \
    {"disable-pass", 0, BYI_OPTION_LIST, &(o).compile.disable, "PASS",         \
     "do not run a pass"},                                                     \
    {"require-pass", 0, BYI_OPTION_LIST, &(o).compile.require, "PASS",         \
     "run a pass at every level"},                                             \
    {"pass", 0, BYI_OPTION_LIST, &(o).compile.add_passes, "A,[B,C]",           \
     "more passes to run, before partitioning"},                               \
    {"pass-option", 0, BYI_OPTION_LIST,                                        \
     &(o).compile.options, "PASS.NAME=VALUE",                                  \
     "set an option of a pass (see `byoc opt --list-passes`)"},                \
    {"pass-plugin", 0, BYI_OPTION_PATH, &(o).compile.pass_plugins, "PATH",     \
     "load a library with passes"},                                            \
    {"print-before", 0, BYI_OPTION_TEXT, &(o).compile.print_before, "PASS|all",\
     "print the IR before a pass, to stderr"},                                 \
    {"print-after", 0, BYI_OPTION_TEXT, &(o).compile.print_after, "PASS|all",  \
     "print the IR after a pass, to stderr"},                                  \
    {"dump-passes", 0, BYI_OPTION_TEXT, &(o).compile.dump_passes, "FOLDER",    \
     "write the IR after every pass, numbered"},                               \
    {"time-passes", 0, BYI_OPTION_FLAG, &(o).time_passes, NULL,                \
     "print times and nodes of every pass, to stderr"},                        \
    {"verify", 0, BYI_OPTION_FLAG, &(o).verify, NULL,                          \
     "check an artifact's hashes, or a model's IR after every pass"},          \
    {"report", 0, BYI_OPTION_TEXT, &(o).report, "FILE",                        \
     "write the ledger's JSON"},                                               \
    {"require-offload", 0, BYI_OPTION_PERCENT,                                 \
     &(o).compile.require_offload, "%",                                        \
     "exit with 1 if a smaller share of the FLOP is offloaded"},               \
    {"require-offload-nodes", 0, BYI_OPTION_PERCENT,                           \
     &(o).compile.require_offload_nodes, "%",                                  \
     "exit with 1 if a smaller share of the operators is offloaded"},          \
    {"verbose", 'v', BYI_OPTION_FLAG, &(o).verbose, NULL,                      \
     "print progress to stderr"}
/* clang-format on */

/* --- pictures.c ----------------------------------------------------------- */

struct cJSON;

/* Output files that show a ledger or a profile to people; NULL: not requested.
 */
struct byi_pictures {
    const char *html, *dot, *onnx, *regions, *svg;
    const char *against; /* a file with an old ledger, for html */
    const struct cJSON
        *profile; /* from byi_profile_add_json; for html and svg */
};

/* clang-format off */
#define BYI_PICTURE_OPTIONS(p)                                                 \
    {"html", 0, BYI_OPTION_TEXT, &(p).html, "FILE",                            \
     "write a page that shows the graph and the placement"},                   \
    {"against", 0, BYI_OPTION_TEXT, &(p).against, "OLD",                       \
     "compare with the ledger in OLD on that page"},                           \
    {"dot", 0, BYI_OPTION_TEXT, &(p).dot, "FILE",                              \
     "write the graph for Graphviz, with a cluster for each region"}
/* clang-format on */

/* Write the requested files. `model` is the model's path, `ledger` the JSON of
 * its ledger. Errors: BYOC_EINVAL (a file would overwrite the model or the old
 * ledger), and those of reading the old ledger and of writing. */
enum byoc_status byi_write_pictures(const struct byi_pictures *pictures,
                                    const char *model, const char *ledger,
                                    struct byoc_error *err);
/* Whether both paths name the same existing file. */
bool byi_same_file(const char *a, const char *b);

/* --- model.c -------------------------------------------------------------- */

/* A loaded model: an artifact, or a model compiled in memory. */
struct byi_open_model {
    struct byoc_compiled *compiled; /* NULL: an artifact */
    const char *const *dims;        /* --dim for random inputs; or NULL */
    struct byoc_model *model;
    int gate; /* from byi_compile_model; for an artifact BYI_EXIT_OK */
    /* the log function of the model reads these: never move the struct */
    bool verbose, loaded;
};

/* Compile according to `options`. *gate becomes BYI_EXIT_OK, or
 * BYI_EXIT_VERDICT if a gate such as --require-offload fails. Free *compiled
 * with byoc_compiled_free. Errors: BYOC_EINVAL (an option that has no effect, a
 * file that cannot be a model), and those of byoc_compile and of writing the
 * ledger.
 */
enum byoc_status byi_compile_model(const char *path,
                                   const struct byi_model_options *options,
                                   struct byoc_compiled **compiled, int *gate,
                                   struct byoc_error *err);
/* Call byoc_advise: set *text (JSON if `json`) to the changes of options that
 * would offload more of the model. The caller frees *text with
 * byoc_string_free. */
enum byoc_status byi_advise_model(const char *path,
                                  const struct byi_model_options *o, bool json,
                                  char **text, struct byoc_error *err);
/* Load an artifact, or compile a model in memory and load it. Warnings of the
 * load go to stderr. Close *open with byi_close_model; on failure there is
 * nothing to close. Errors: those of byi_compile_model and byoc_model_load. */
enum byoc_status byi_open_model(const char *path,
                                const struct byi_model_options *options,
                                struct byi_open_model *open,
                                struct byoc_error *err);
/* Free the model. Does nothing if *open is all zero. */
void byi_close_model(struct byi_open_model *open);

/* --- list_ops.c ----------------------------------------------------------- */

/* Print the operators of the IR and their attributes to stdout; as JSON, an
 * array of objects. An operator without "max_operands" takes any number of
 * operands; without "results", its type rule determines the number of results.
 */
void byi_list_ops(bool json);

/* --- report.c ------------------------------------------------------------- */

/* The parts of a ledger to print. */
struct byi_ledger_view {
    bool json;
    bool all_nodes;             /* not only native ones */
    const char *const *explain; /* these nodes; NULL: the report */
};
/* Append a ledger's JSON, from a file of --report or from an artifact. Errors:
 * BYOC_EINVAL (an artifact without a ledger), BYOC_ELIMIT, those of reading. */
enum byoc_status byi_read_ledger(const char *path, struct byi_text *ledger,
                                 struct byoc_error *err);
/* Print a ledger to stdout. Returns the exit code. Messages start with `path`.
 */
int byi_print_ledger(const struct byi_command *command, const char *path,
                     const char *ledger, const struct byi_ledger_view *view);

/* --- profile.c: the table of `bench --profile` --------------------------- */

/* The times of all steps in several runs. */
struct byi_profile;
/* A new profile, whose texts are in `arena`. Free it with byi_profile_free. */
struct byi_profile *byi_profile_new(struct byi_arena *arena);
/* Measure the largest number of FLOP/s that `threads` threads reach. Call it
 * before and after the runs: the larger result counts. */
void byi_profile_measure_peak(struct byi_profile *profile, uint32_t threads);
/* Add an event of a run. A callback for byoc_state_profile; `ctx` is a struct
 * byi_profile. */
void byi_profile_event(void *ctx, const struct byoc_event *event);
/* Print the table to stdout. */
void byi_profile_print(struct byi_profile *profile);
/* Add the profile to the object `root` as its member "profile". */
void byi_profile_add_json(struct byi_profile *profile, struct cJSON *root);
void byi_profile_free(struct byi_profile *profile); /* may be NULL */

/* --- chart.c -------------------------------------------------------------- */

/* Append an SVG of a profile (the member that byi_profile_add_json adds): bars
 * as wide as their time, for the run, its operators and their steps. */
void byi_profile_add_svg(const struct cJSON *profile, const char *title,
                         struct byi_text *out);

#endif
