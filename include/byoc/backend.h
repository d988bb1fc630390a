/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/backend.h: bring your own backend. Version 1.4.
 *
 * A backend is a shared library. It includes this header, links against no
 * library of byoc, and gives byoc a struct byoc_backend. The struct has
 * patterns: texts that describe the graphs that its kernels can run. Its probe
 * tests whether the backend can build a match with given shapes on this
 * machine. Other functions load and run regions. The host passes a region as
 * JSON of the format "byoc-graph" (docs/json.md), and lends the constants,
 * which stay in the artifact. The backend's source ends in
 *
 *     static const struct byoc_backend *query(const struct byoc_host *host,
 *                                             char *why, uint32_t why_bytes)
 *     {
 *         return &backend;
 *     }
 *     BYOC_BACKEND_DEFINE(query)
 *
 * which exports two symbols: the function that calls query(), and a constant
 * that says how this header was compiled. The host reads the constant from the
 * file before any code of the library runs.
 *
 * Rules that hold for every function here
 *   - a pointer argument is valid for the duration of the call and is never
 *     NULL, unless the declaration says otherwise. The same holds for the
 *     pointers in a struct that an argument points to
 *   - strings end in NUL and are UTF-8
 *   - a status is NULL for success, or a failure made by host->fail(), which
 *     copies the text. The side that receives it frees it: the host frees the
 *     failures that a backend returns. A failed call leaks nothing, and its
 *     results are not read
 *   - memory that passes from one side to the other is from host->acquire()
 *   - no function may throw, longjmp, exit, print, change the locale, the
 *     floating-point mode, affinity or signal handlers, or start threads beyond
 *     host->threads()
 *   - threads: "any" means the host may call it from several threads at once
 *   - lifetimes nest: library, compiled, state. The host frees them in reverse
 *     order
 *
 * How it grows (docs/abi.md): by minor versions that only add. A struct that
 * begins with struct_size may get members at its end; all others never change.
 * Reserved members are 0. Neither side reads beyond the other's struct_size;
 * members beyond it count as 0 or NULL, which BYOC_HAS() tests. Any 1.x host
 * accepts any 1.y backend that needs no later version than 1.x
 * (BYOC_BACKEND_NEEDS). */
#ifndef BYOC_BACKEND_H
#define BYOC_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <byoc/dtype.h>

#ifdef __cplusplus
#define BYOC_EXTERN extern "C"
extern "C" {
#else
#define BYOC_EXTERN extern
#endif

/* A version as one number; a later version is greater. */
#define BYOC_ABI(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))
/* The version of this header. */
#define BYOC_BACKEND_ABI BYOC_ABI(1, 4)
/* The lowest version a host must have for this backend. To require a newer
 * host, define it before this header is included. To use a newer function only
 * if the host has it, test for the function with BYOC_HAS(). */
#ifndef BYOC_BACKEND_NEEDS
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 0)
#endif

/* Whether the struct at `at`, which the other side made, has this member. */
#define BYOC_HAS(at, type, member)                                             \
    ((at)->struct_size >= offsetof(struct type, member) + sizeof((at)->member))

#if defined(__GNUC__)
/* Argument `text` is a printf format, and its arguments begin at argument
 * `first`. */
#define BYOC_PRINTF(text, first)                                               \
    __attribute__((__format__(__printf__, text, first)))
#define BYOC_VISIBLE __attribute__((__visibility__("default")))
#else
#define BYOC_PRINTF(text, first)
#define BYOC_VISIBLE
#endif

/* Why a call failed: the code of a failure. */
enum byoc_fail_code {
    BYOC_FAIL_UNSUPPORTED = 1,  /* not an error: the host uses native kernels */
    BYOC_FAIL_INVALID = 2,      /* the JSON, blob or arguments are wrong     */
    BYOC_FAIL_INCOMPATIBLE = 3, /* made for another version or machine       */
    BYOC_FAIL_RESOURCE = 4,     /* memory, threads, devices                  */
    BYOC_FAIL_INTERNAL = 5,     /* the backend has a bug                     */
    /* from check_compat(): the artifact runs, but would run better if it were
     * compiled again */
    BYOC_FAIL_STALE = 6,
    BYOC_FAIL_CANCELLED = 7, /* from run(): *cancel was set */
    /* Since 1.3, from compile(): native kernels run the region faster, see
     * BYOC_EXT_MAY_DECLINE */
    BYOC_FAIL_SLOWER = 8
};
struct byoc_fail; /* opaque, owned by the host */

/* The head of an extension. A member `ext` points to the first extension; NULL
 * ends the chain, which has at most 256. A side skips the types that it does
 * not support. Types below 0x10000 are byoc's; 1.0 has none. */
struct byoc_ext {
    uint32_t type;
    uint32_t size; /* of the whole extension, with this head */
    const struct byoc_ext *next;
};

/* The extension of this type and at least this size; NULL: there is none. */
static inline const struct byoc_ext *byoc_ext_find(const struct byoc_ext *first,
                                                   uint32_t type, uint32_t size)
{
    while (first && (first->type != type || first->size < size))
        first = first->next;
    return first;
}

/* A lent tensor. dims has `rank` entries. The data is dense and row-major,
 * aligned to the size of its elements, or to 64 bytes if it is a constant. */
struct byoc_view {
    uint32_t dtype; /* enum byoc_dtype */
    uint32_t rank;
    const int64_t *dims; /* may be NULL if rank is 0    */
    /* read-only for inputs and constants; may be NULL if bytes is 0 */
    void *data;
    uint64_t bytes;
};

/* A match of one of the backend's patterns, seen through the accessors of
 * struct byoc_host. Lives for the duration of the predicate. */
struct byoc_match;

struct byoc_region;
struct byoc_graph;

/* The services of the host. The struct is valid as long as the backend is
 * loaded; every function may be called from any thread. Only match_* may be
 * NULL, and only outside of accept(). */
struct byoc_host {
    uint32_t struct_size;
    /* the version agreed on: the lower one of the host's and
     * BYOC_BACKEND_ABI */
    uint32_t abi;
    void *ctx; /* first argument of the functions below */

    /* Acquire and release memory, 64-byte aligned; NULL when memory is
     * exhausted. Releasing NULL does nothing. Memory must be released through
     * the host and ctx that acquired it. */
    void *(*acquire)(void *ctx, uint64_t bytes);
    void (*release)(void *ctx, void *memory);
    /* Make a failure, with a byoc_fail_code; copies `text`: one sentence,
     * lower-case, what was found and what was expected; NULL or "": no reason
     * given. Never returns NULL. */
    struct byoc_fail *(*fail)(void *ctx, uint32_t code, const char *text);
    /* The text and the code of a failure, and the function that frees it. Only
     * the side that received the failure may call them; the text is valid as
     * long as the failure. */
    const char *(*fail_text)(const struct byoc_fail *fail);
    uint32_t (*fail_code)(const struct byoc_fail *fail);
    void (*fail_free)(struct byoc_fail *fail);
    /* Log a line, which has no newline. The host copies it. */
    void (*log)(void *ctx, const char *line);
    /* The number of threads that a call may use, at least 1. */
    uint32_t (*threads)(void *ctx);
    /* Run fn(arg, 0) ... fn(arg, n-1) on the host's threads; returns when all
     * are done. `arg` may be NULL. Must not be called from inside fn. In a
     * child that fn forks, it returns without the parts of other threads, and
     * the run fails. */
    void (*parallel_for)(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg);

    /* --- Queries about a match, for predicates. `name` is an operand (%name)
     * of the row's pattern, or NULL for the result of the pattern's root.
     * Returned pointers are valid as long as the match. Results are written
     * only if the function returns neither 0 nor NULL. */

    /* Get dtype and shape of an operand. Returns 0 if the match has no such
     * operand (it is optional and absent), or if it is a tuple. dims has *rank
     * entries; a negative size is symbolic. */
    int32_t (*match_type)(const struct byoc_match *m, const char *name,
                          uint32_t *dtype, uint32_t *rank,
                          const int64_t **dims);
    /* The dense bytes of a constant operand; NULL when it is not constant. */
    const void *(*match_const)(const struct byoc_match *m, const char *name,
                               uint64_t *bytes);
    /* The number of operators of the match, and the name of operator i, in
     * topological order. Making a tuple is an operator called "tuple". match_op
     * returns NULL if i is not less than that number. */
    uint32_t (*match_n_ops)(const struct byoc_match *m);
    const char *(*match_op)(const struct byoc_match *m, uint32_t i);
    /* Get dtype and shape of the result of operator i, as match_type does for
     * an operand. */
    int32_t (*match_op_type)(const struct byoc_match *m, uint32_t i,
                             uint32_t *dtype, uint32_t *rank,
                             const int64_t **dims);
    /* The index of the operator that the pattern's `with` clause defines as
     * %name; UINT32_MAX if it is not in this match. */
    uint32_t (*match_find)(const struct byoc_match *m, const char *name);
    /* Get an attribute of operator i by name. Returns 0 or NULL if the operator
     * has no attribute of that name and kind. Booleans and dtypes (by number)
     * are ints; a single value is a list of one entry. match_float and
     * match_string read single values. */
    int32_t (*match_ints)(const struct byoc_match *m, uint32_t i,
                          const char *name, const int64_t **values,
                          uint32_t *n);
    int32_t (*match_floats)(const struct byoc_match *m, uint32_t i,
                            const char *name, const double **values,
                            uint32_t *n);
    int32_t (*match_strings)(const struct byoc_match *m, uint32_t i,
                             const char *name, const char *const **values,
                             uint32_t *n);
    int32_t (*match_float)(const struct byoc_match *m, uint32_t i,
                           const char *name, double *value);
    const char *(*match_string)(const struct byoc_match *m, uint32_t i,
                                const char *name);
    /* Format a sentence for accept() to return, as printf does. The sentences
     * of one match are cut after about 1000 bytes in total. This function and
     * the two functions below never return NULL. */
    const char *(*match_say)(const struct byoc_match *m, const char *format,
                             ...)BYOC_PRINTF(2, 3);
    /* The type of an operand, or of the result of operator i, for messages:
     * "Tensor[(1, 64, 56, 56), float64]"; "nothing" if it does not exist. */
    const char *(*match_show)(const struct byoc_match *m, const char *name);
    const char *(*match_show_op)(const struct byoc_match *m, uint32_t i);

    const struct byoc_ext *ext; /* may be NULL */

    /* Since 1.2. Convert a region to structs; byoc/graph.h wraps these
     * functions and describes them. graph_open checks that every operator in
     * region->json is one of byoc's with complete attributes. It also checks
     * that every type is the one that the operator's type rule computes. `host`
     * is this struct. graph_close(NULL) does nothing. */
    struct byoc_fail *(*graph_open)(const struct byoc_host *host,
                                    const struct byoc_region *region,
                                    struct byoc_graph **graph);
    void (*graph_close)(struct byoc_graph *graph);
};

/* One row of a pattern table; docs/patterns.md has the notation. Rows are tried
 * in order, the most specific first. accept NULL: every match is accepted.
 * Otherwise it returns NULL to accept the match, or the reason for refusing it,
 * with what it found and expected. The reason is a string constant, or a result
 * of host->match_say. accept must be pure and fast. Any thread. */
struct byoc_pattern {
    const char *name; /* "backend.what", unique within the table */
    const char *pattern;
    const char *(*accept)(const struct byoc_host *host,
                          const struct byoc_match *m);
};

/* The result of a probe. The host zeroes it and sets struct_size before the
 * call. */
struct byoc_probe {
    uint32_t struct_size;
    uint32_t reference; /* not 0: a slow reference implementation          */
    char impl[120];     /* the implementation chosen                       */
};

/* The layouts that a backend prefers for an operator, in Relay's notation.
 * Upper-case letters are axes. A number and a lower-case letter are a block of
 * that axis, as in "NCHW", "NHWC", "NCHW16c", or for weights "OIHW", "HWIO",
 * "OIHW16i16o". The host zeroes it and sets struct_size first; an empty string
 * means the present layout. */
struct byoc_layout {
    uint32_t struct_size;
    uint32_t reserved;
    char data[24];   /* of the data, in and out */
    char kernel[24]; /* of the weights          */
};

/* A region: a part of the model that this backend runs. Everything is lent for
 * the duration of the call, except that the constants given to load() stay in
 * place until unload(). */
struct byoc_region {
    uint32_t struct_size;
    uint32_t n_consts;
    /* the region, which need not end in NUL. In load() of a backend with
     * compile(): the blob that compile() made, at an address that is a multiple
     * of 64 */
    const char *json;
    uint64_t json_bytes;
    const struct byoc_view *consts; /* constants, by the JSON's "data" index */
    /* compile(): the name of the function to define if the result is C. load():
     * the name and address of that function if compile() returned C, which is
     * in `json`; otherwise both are NULL. */
    const char *symbol;
    void (*code)(void);
    const struct byoc_ext *ext; /* may be NULL */
};

/* Since 1.3. An extension of the region in load(), for backends with
 * BYOC_BACKEND_READS_CODES. It has the float32 constants that the artifact
 * stores as 8-bit integers, each times the scale of its row, such as the
 * weights of quantised models. Valid for the duration of the call, except for
 * the codes and scales, which stay in place until unload(). */
enum { BYOC_EXT_CODES = 2 };

/* The matrix has `rows` rows. Element i of row r is at[r * columns + i] *
 * scales[r], or at[i * rows + r] * scales[r] if `transposed` is not 0. */
struct byoc_codes {
    const int8_t *at; /* NULL: no codes, the view has data        */
    const float *scales;
    uint64_t rows;
    uint64_t transposed; /* not 0: rows is the last axis, not the first one */
};

/* The extension, whose head has the type BYOC_EXT_CODES. */
struct byoc_region_codes {
    struct byoc_ext head;
    const struct byoc_codes *at; /* for each constant, as byoc_region.consts */
    void *ctx;                   /* first argument of widen */
    /* Returns the floats of a constant whose view has no data; they stay in
     * place until unload(). NULL: memory is exhausted. */
    const void *(*widen)(void *ctx, uint32_t index);
};

/* Since 1.3. An extension of the region in compile(), only a struct byoc_ext.
 * It says that the region is complete, and that the host can run it on native
 * kernels instead. compile() may return BYOC_FAIL_SLOWER if they are faster.
 * For example, reordering inputs and outputs may cost more than the computation
 * saves. */
enum { BYOC_EXT_MAY_DECLINE = 3 };

/* A region as structs. Each step comes after the steps whose results it reads.
 * A graph is immutable. Strings and arrays belong to the graph, the data of
 * constants to the region. */

/* The source of a value. */
enum byoc_graph_kind {
    BYOC_GRAPH_INPUT = 0,
    BYOC_GRAPH_CONST = 1,
    BYOC_GRAPH_RESULT = 2 /* of a step */
};

/* A tensor, dense and row-major. */
struct byoc_graph_value {
    uint32_t kind; /* enum byoc_graph_kind */
    /* INPUT: into byoc_run_args.inputs, CONST: into the region's consts,
     * RESULT: into the graph's steps */
    uint32_t index;
    uint32_t dtype; /* enum byoc_dtype */
    uint32_t rank;
    const int64_t *dims;
    uint64_t count; /* elements */
    uint64_t bytes;
    const void *data; /* CONST: valid until unload(); otherwise NULL */
    uint64_t at;      /* RESULT: see byoc_graph_data()          */
};

/* An attribute: a list of n numbers or strings; a single one is a list of one
 * entry. One of the three lists is not NULL, unless n is 0. Booleans and dtypes
 * (by number) are ints. */
struct byoc_graph_attr {
    const char *name;
    uint32_t n;
    uint32_t reserved;
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
};

/* One operator. args and outs are indices into byoc_graph.values. Attributes
 * that the JSON leaves out have their defaults. */
struct byoc_graph_step {
    const char *name; /* "nn.conv2d" */
    uint32_t n_args;
    uint32_t n_outs;
    const uint32_t *args;
    const uint32_t *outs;
    uint32_t kernel; /* index of the step's kernel */
    uint32_t n_attrs;
    const struct byoc_graph_attr *attrs;
};

/* An operand that the row's pattern calls %name. */
struct byoc_graph_operand {
    const char *name;
    uint32_t value;
    uint32_t reserved;
};

/* One match of one row: n_steps steps from `first` on. */
struct byoc_graph_kernel {
    const char *pattern; /* the row's name */
    uint32_t first;
    uint32_t n_steps;
    uint32_t n_operands;
    uint32_t n_outs;
    const struct byoc_graph_operand *operands;
    const uint32_t *outs;
    /* not 0: use no algorithm that rounds more than the operators' definitions
     * do */
    uint32_t exact;
    uint32_t reserved;
    const char *source; /* the model's nodes, "a,b", as for byoc_trace_fn  */
};

/* The graph of a region, which byoc_graph_free() frees. */
struct byoc_graph {
    uint32_t struct_size;
    uint32_t n_values;
    uint32_t n_steps;
    uint32_t n_kernels;
    uint32_t n_inputs;
    uint32_t n_outputs;
    const char *symbol; /* the region's name: "symbol" in the JSON */
    const struct byoc_graph_value *values;
    const struct byoc_graph_step *steps;
    const struct byoc_graph_kernel *kernels;
    /* indices into values; an output may be an input, and one value may be
     * several outputs */
    const uint32_t *inputs;
    const uint32_t *outputs;
    uint64_t bytes; /* see byoc_graph_data() */
};

/* The result of compile(). The host zeroes it and sets struct_size before the
 * call; the backend acquires `data` from the host, which releases it. */
struct byoc_blob {
    uint32_t struct_size;
    uint32_t kind; /* BYOC_BLOB_DATA or BYOC_BLOB_C */
    void *data;
    uint64_t bytes;
};

enum {
    /* Opaque bytes, kept in the artifact and passed to load(), at any address.
     * They must contain no pointers, and load() must check them. */
    BYOC_BLOB_DATA = 0,
    /* C11 source: one translation unit, whose only symbol with external linkage
     * is a function called region->symbol. It is compiled into the artifact and
     * linked with the C and math libraries only; the backend passes everything
     * else as arguments. The backend chooses its parameters and result; load()
     * casts region->code to that type. Return C only if region->symbol is set:
     * a host that accepts no C leaves it NULL. */
    BYOC_BLOB_C = 1
};

/* The host's function that records an event of a traced run; it copies the
 * strings. Times are nanoseconds of CLOCK_MONOTONIC. sources: the model's node
 * names, "a,b". Any thread. */
typedef void (*byoc_trace_fn)(void *ctx, const char *name, const char *impl,
                              const char *sources, uint64_t begin_ns,
                              uint64_t end_ns);

/* Arguments of one run. */
struct byoc_run_args {
    uint32_t struct_size;
    uint32_t n_inputs;
    uint32_t n_outputs;
    uint32_t reserved;
    /* in the order of the JSON's "inputs" and "outputs" */
    const struct byoc_view *inputs;
    const struct byoc_view *outputs; /* written */
    byoc_trace_fn trace;             /* NULL: off */
    void *trace_ctx;
    /* Not NULL: poll it; if it is not 0, end the run soon and return
     * BYOC_FAIL_CANCELLED. */
    const volatile uint32_t *cancel;
    const struct byoc_ext *ext; /* may be NULL */
    /* Since 1.4. Memory of scratch_bytes() bytes, 64-byte aligned, which the
     * host owns and lends for this run. Its contents are undefined when the run
     * starts, and its address may differ from run to run. NULL if the backend
     * has no scratch_bytes(). */
    void *scratch;
};

/* The backend itself: a constant that lives, with everything that it points to,
 * as long as the library. Members are not NULL unless they are called optional.
 */
struct byoc_backend {
    uint32_t struct_size; /* sizeof(struct byoc_backend) */
    uint32_t flags;       /* BYOC_BACKEND_* below */
    /* 1 to 32 characters of a-z, 0-9 and _, a letter first. The names of its
     * patterns begin with it and a dot */
    const char *name;
    const char *version; /* of the kernel library, for people to read */
    /* a text that changes when artifacts must be compiled again: it contains
     * the versions of the library and of the blob format, and the properties of
     * machine and threads that blobs depend on */
    const char *compat;
    const struct byoc_pattern *patterns; /* may be NULL if n_patterns is 0 */
    uint32_t n_patterns;
    uint32_t reserved;

    /* Optional; NULL: every match can be built. Test whether this graph (one
     * kernel, with the model's shapes and constants) can be built on this
     * machine, by building what load() would build. Any thread. */
    struct byoc_fail *(*probe)(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result);
    /* Optional; NULL: no preference. Set the layout that is fastest for this
     * graph (one kernel, a convolution or transposed convolution with the
     * model's shapes). The host uses that layout if the shapes allow it, and
     * propagates it through native operators. A failure means no preference.
     * Any thread. */
    struct byoc_fail *(*layout)(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *preferred);
    /* Optional; NULL, or a failure: unknown. Estimate the time of a run of this
     * region on this machine, in nanoseconds, for hosts that cannot measure it.
     * Any thread. */
    struct byoc_fail *(*cost)(const struct byoc_host *host,
                              const struct byoc_region *region,
                              uint64_t *nanoseconds);
    /* Optional; NULL: load() gets the JSON itself. Compile a region to a blob;
     * the same region gives the same bytes. Any thread. */
    struct byoc_fail *(*compile)(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob);
    /* Optional; NULL: only the same `compat` runs here. Tell whether an
     * artifact made with `compat` runs here. NULL: the artifact runs.
     * BYOC_FAIL_STALE: it runs, but would run better if it were compiled again.
     * Other failures: it does not run. Called without a model. Any thread. */
    struct byoc_fail *(*check_compat)(const struct byoc_host *host,
                                      const char *compat);
    /* Build kernels and pack weights. *compiled, which may be NULL, belongs to
     * the backend until unload(). Any thread. */
    struct byoc_fail *(*load)(const struct byoc_host *host,
                              const struct byoc_region *region,
                              void **compiled);
    /* Free the result of load(), after its states. Any thread. */
    void (*unload)(const struct byoc_host *host, void *compiled);
    /* Optional; NULL: none. The bytes of memory that one run at a time of
     * `compiled` needs, always the same number. The host passes this much
     * memory to run() as its state: 64-byte aligned, zeroed before the first
     * run. Any thread. */
    uint64_t (*state_bytes)(const struct byoc_host *host, const void *compiled);
    /* Optional: for a state that is more than memory. Set both or neither, and
     * not together with state_bytes. They make and free a state for one run at
     * a time of `compiled`; *state may be NULL. Any thread. */
    struct byoc_fail *(*state_new)(const struct byoc_host *host, void *compiled,
                                   void **state);
    void (*state_free)(const struct byoc_host *host, void *compiled,
                       void *state);
    /* Run the region once. Threads share `compiled`, which must not change. A
     * state belongs to one run at a time; it is NULL if the backend has no
     * states. Any thread. */
    struct byoc_fail *(*run)(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args);
    /* Optional; NULL: the library stays mapped until the process ends. Called
     * once before it is closed, when none of its code runs: join its threads,
     * free its globals. Never called while the process ends. */
    void (*quiesce)(const struct byoc_host *host);
    const struct byoc_ext *ext; /* may be NULL */

    /* Since 1.3. Optional; NULL: the host reports the names that probe() gave.
     * Call `say` as a traced run of `compiled` would call `trace`, with times
     * 0, but not for steps that only move data. The host reports the
     * implementations that it is given. Any thread. */
    void (*describe)(const struct byoc_host *host, const void *compiled,
                     byoc_trace_fn say, void *ctx);
    /* Since 1.4. Optional; NULL: none. The bytes of scratch memory that a run
     * of `compiled` needs, always the same number. All regions and native
     * kernels of a run share one scratch memory, of the size of the largest.
     * Prefer it to a state for what need not last until the next run. Any
     * thread. */
    uint64_t (*scratch_bytes)(const struct byoc_host *host,
                              const void *compiled);
};

/* Flags of a backend. */
enum {
    BYOC_BACKEND_USES_OPENMP = 1, /* runs on the process's OpenMP threads */
    /* run() hardly reads the constants, since load() copied them. The host
     * drops their pages from memory; reading them still works */
    BYOC_BACKEND_COPIES_CONSTS = 2,
    /* compile() returns nothing but C: a host that accepts no C excludes this
     * backend. Since 1.1: set BYOC_BACKEND_NEEDS */
    BYOC_BACKEND_WRITES_C = 4,
    /* load() looks for BYOC_EXT_CODES of its region: views of constants that
     * have codes there may have no data. Since 1.3 */
    BYOC_BACKEND_READS_CODES = 8
};

/* The type of a plug-in's query function. It is called with the host's
 * services, any number of times, from one thread at a time. It starts no
 * threads and keeps no argument but `host`. Returns the backend, the same each
 * time, or NULL after copying a sentence of at most `why_bytes` bytes (with
 * NUL) into `why`. */
typedef const struct byoc_backend *(*byoc_backend_query_fn)(
    const struct byoc_host *host, char *why, uint32_t why_bytes);
#define BYOC_BACKEND_QUERY "byoc_backend_query_v1"

/* --- how this header was compiled ----------------------------------------- */

/* The offset and size in bytes of a struct ("byoc_view", offset 0) or of a
 * member ("byoc_view.dims"). */
struct byoc_place {
    char name[40];
    uint32_t offset;
    uint32_t size;
};

#include <byoc/backend_layout.h>

#define BYOC_ONE_STRUCT(type) +1
#define BYOC_ONE_MEMBER(type, member) +1
enum { BYOC_N_PLACES = 0 BYOC_LAYOUT(BYOC_ONE_STRUCT, BYOC_ONE_MEMBER) };

/* The constant that a plug-in exports beside its query function. It has no
 * pointers, so that a host can read it from the file. */
struct byoc_descriptor {
    char magic[8];
    uint32_t struct_size; /* of this, without the places */
    uint32_t abi;         /* BYOC_BACKEND_ABI of the plug-in's header */
    uint32_t needs;       /* BYOC_BACKEND_NEEDS */
    uint32_t tags;        /* BYOC_TAGS */
    uint32_t place_size;  /* sizeof(struct byoc_place) */
    uint32_t n_places;
    struct byoc_place places[BYOC_N_PLACES];
};
#define BYOC_BACKEND_MAGIC "BYOCABI"
#define BYOC_BACKEND_DESCRIPTOR "byoc_backend_descriptor_v1"

/* The sanitizer that a plug-in was built with. The runtimes of two sanitizers
 * cannot share a process. */
enum { BYOC_TAG_ADDRESS = 1, BYOC_TAG_THREAD = 2, BYOC_TAG_MEMORY = 4 };
#if defined(__has_feature)
#define BYOC_BUILT_WITH(what) __has_feature(what)
#else
#define BYOC_BUILT_WITH(what) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || BYOC_BUILT_WITH(address_sanitizer)
#define BYOC_TAGS BYOC_TAG_ADDRESS
#elif defined(__SANITIZE_THREAD__) || BYOC_BUILT_WITH(thread_sanitizer)
#define BYOC_TAGS BYOC_TAG_THREAD
#elif BYOC_BUILT_WITH(memory_sanitizer)
#define BYOC_TAGS BYOC_TAG_MEMORY
#else
#define BYOC_TAGS 0
#endif

#define BYOC_PLACE_OF_STRUCT(type) {#type, 0, (uint32_t)sizeof(struct type)},
#define BYOC_PLACE_OF_MEMBER(type, member)                                     \
    {#type "." #member, (uint32_t)offsetof(struct type, member),               \
     (uint32_t)sizeof(((struct type *)0)->member)},
/* clang-format off */
#define BYOC_DESCRIPTOR                                                        \
    {BYOC_BACKEND_MAGIC, (uint32_t)offsetof(struct byoc_descriptor, places),   \
     BYOC_BACKEND_ABI, BYOC_BACKEND_NEEDS, BYOC_TAGS,                          \
     (uint32_t)sizeof(struct byoc_place), BYOC_N_PLACES,                       \
     {BYOC_LAYOUT(BYOC_PLACE_OF_STRUCT, BYOC_PLACE_OF_MEMBER)}}
/* clang-format on */

/* The version that host and backend both support: the lower one of the host's
 * and this header's. Returns 0 if the host's is lower than `needs` or of
 * another major version, after copying a sentence to `why`. BYOC_BACKEND_DEFINE
 * calls this before query(). */
static inline uint32_t byoc_backend_agree(const struct byoc_host *host,
                                          uint32_t needs, char *why,
                                          uint32_t why_bytes)
{
    const char *message =
        "found a host of another version of byoc/backend.h, "
        "expected one that this backend supports; update byoc";
    if (host && host->struct_size >= offsetof(struct byoc_host, ctx) &&
        host->abi >> 16 == BYOC_BACKEND_ABI >> 16 && host->abi >= needs)
        return host->abi < BYOC_BACKEND_ABI ? host->abi : BYOC_BACKEND_ABI;
    for (uint32_t i = 0; why && i < why_bytes; i++) {
        why[i] = i + 1 < why_bytes ? message[i] : '\0';
        if (!message[i])
            break;
    }
    return 0;
}

/* Export the backend that query(), a byoc_backend_query_fn, returns. Use it
 * once, at the end of one file. */
#define BYOC_BACKEND_DEFINE(query)                                             \
    BYOC_EXTERN BYOC_VISIBLE const struct byoc_descriptor                      \
        byoc_backend_descriptor_v1;                                            \
    const struct byoc_descriptor byoc_backend_descriptor_v1 = BYOC_DESCRIPTOR; \
    BYOC_EXTERN BYOC_VISIBLE const struct byoc_backend *byoc_backend_query_v1( \
        const struct byoc_host *host, char *why, uint32_t why_bytes);          \
    const struct byoc_backend *byoc_backend_query_v1(                          \
        const struct byoc_host *host, char *why, uint32_t why_bytes)           \
    {                                                                          \
        if (!byoc_backend_agree(host, BYOC_BACKEND_NEEDS, why, why_bytes))     \
            return NULL;                                                       \
        return query(host, why, why_bytes);                                    \
    }

#ifdef __cplusplus
}
#endif
#endif
