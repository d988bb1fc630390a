/* byoc/backend.h: bring your own backend.
 *
 * A backend is a shared library that exports one function,
 * byoc_backend_query_v1(). It includes this header, links against nothing of
 * byoc's, and gives byoc: patterns as text (what its kernels can take), a
 * probe (can it really build this, with these shapes, on this machine), and
 * load / run. Regions reach it as JSON of the format "byoc-graph"
 * (docs/json.md); their constants stay in the artifact and are lent to it.
 *
 * Rules that hold for every function here
 *   - every struct starts with struct_size; set it with BYOC_STRUCT_SIZE of
 *     the last member your header knows; the host reads no further
 *   - a pointer argument is lent for the duration of the call, unless the
 *     declaration says otherwise
 *   - a status is NULL for success, or made by host->fail(), which copies the
 *     text; the host frees it
 *   - no function may throw, longjmp, exit, print, change the locale, the
 *     floating-point mode, affinity or signal handlers
 *   - threads: "any" means the host may call it from several threads at once
 */
#ifndef BYOC_BACKEND_H
#define BYOC_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BYOC_BACKEND_ABI 1u

/* Size of `type` up to and with its member `last`. */
#define BYOC_STRUCT_SIZE(type, last)                                          \
    ((uint32_t)(offsetof(type, last) + sizeof(((type *)0)->last)))

/* Argument `text` is printf's, argument `first` the first one it prints. */
#if defined(__GNUC__)
#define BYOC_PRINTF(text, first)                                              \
    __attribute__((__format__(__printf__, text, first)))
#else
#define BYOC_PRINTF(text, first)
#endif

/* Why a call failed. UNSUPPORTED is the polite no: the host takes another
 * way. INTERNAL says the backend has a bug. */
enum byoc_fail_code {
    BYOC_FAIL_UNSUPPORTED = 1,
    BYOC_FAIL_INVALID = 2,      /* the JSON, blob or arguments are wrong   */
    BYOC_FAIL_INCOMPATIBLE = 3, /* made for another version or machine     */
    BYOC_FAIL_RESOURCE = 4,     /* memory, threads, devices                */
    BYOC_FAIL_INTERNAL = 5
};
struct byoc_fail; /* opaque, owned by the host */

/* A tensor lent to the backend. dtype is ONNX's TensorProto.DataType number;
 * dims has rank entries; the data is dense and row-major. */
struct byoc_view {
    uint32_t struct_size;
    uint32_t dtype;
    uint32_t rank;
    uint32_t reserved;
    const int64_t *dims;
    void *data;
    uint64_t bytes;
};

/* A match of one of the backend's patterns, seen through the accessors of
 * struct byoc_host. Lives for the duration of the predicate. */
struct byoc_match;

/* Services of the host. Lives as long as the backend is loaded; every
 * function may be called from any thread. */
struct byoc_host {
    uint32_t struct_size;
    uint32_t abi; /* the version agreed on: BYOC_BACKEND_ABI or lower */
    void *ctx;    /* first argument of every function below           */

    /* Memory, 64-byte aligned; NULL when exhausted. release(NULL) is fine. */
    void *(*acquire)(void *ctx, uint64_t bytes);
    void (*release)(void *ctx, void *memory);
    /* Make a failure; copies `text`: one sentence, lower-case, what was found
     * and what was expected. Never returns NULL. */
    struct byoc_fail *(*fail)(void *ctx, enum byoc_fail_code code,
                              const char *text);
    /* Read a failure, and end it: for whoever received it. */
    const char *(*fail_text)(const struct byoc_fail *fail);
    enum byoc_fail_code (*fail_code)(const struct byoc_fail *fail);
    void (*fail_free)(struct byoc_fail *fail);
    /* A line for the log, without newline. */
    void (*log)(void *ctx, const char *line);
    /* Threads a call may use, at least 1. */
    uint32_t (*threads)(void *ctx);
    /* Run fn(arg, 0) ... fn(arg, n-1) on the host's threads, return when all
     * are done. */
    void (*parallel_for)(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg);

    /* --- What a predicate may ask of a match. `name` is an operand (%name)
     * of the row's pattern, or NULL for the value the pattern's root gives. */

    /* dtype and shape of an operand: 0 when the row has no such operand in
     * this match (an optional part that is absent). dims holds *rank entries
     * and lives as long as the match; -1 marks a size that varies. */
    int (*match_type)(const struct byoc_match *m, const char *name,
                      uint32_t *dtype, uint32_t *rank, const int64_t **dims);
    /* The dense bytes of a constant operand; NULL when it is not constant. */
    const void *(*match_const)(const struct byoc_match *m, const char *name,
                               uint64_t *bytes);
    /* Operators of the match, in topological order. */
    uint32_t (*match_n_ops)(const struct byoc_match *m);
    const char *(*match_op)(const struct byoc_match *m, uint32_t i);
    /* Its result, as match_type gives an operand's. */
    int (*match_op_type)(const struct byoc_match *m, uint32_t i,
                         uint32_t *dtype, uint32_t *rank,
                         const int64_t **dims);
    /* Attributes of operator i, by name; 0 when it has none of that name and
     * kind. Booleans are ints. *values lives as long as the match. */
    int (*match_ints)(const struct byoc_match *m, uint32_t i, const char *name,
                      const int64_t **values, uint32_t *n);
    int (*match_float)(const struct byoc_match *m, uint32_t i,
                       const char *name, double *value);
    const char *(*match_string)(const struct byoc_match *m, uint32_t i,
                                const char *name);

    /* --- From here on: there where struct_size reaches that far. */

    /* A sentence for accept() to return, made as by printf; cut after some
     * 1000 bytes of all that is said about one match. Never NULL, like the
     * two below. Text lives as long as the match. */
    const char *(*match_say)(const struct byoc_match *m, const char *format,
                             ...) BYOC_PRINTF(2, 3);
    /* The type of an operand, of the result of operator i, as people read it:
     * "Tensor[(1, 64, 56, 56), float64]"; "nothing" when there is none. */
    const char *(*match_show)(const struct byoc_match *m, const char *name);
    const char *(*match_show_op)(const struct byoc_match *m, uint32_t i);
};

/* One row of a pattern table; docs/patterns.md has the notation. Rows are
 * tried in order, the most specific first.
 * accept   NULL takes every match; else returns NULL to take it, or a
 *          sentence that says what it found and what it wanted: a constant, or
 *          made by host->match_say. Pure, cheap, any thread. */
struct byoc_pattern {
    const char *name;    /* "vendor.what", unique within the table */
    const char *pattern;
    const char *(*accept)(const struct byoc_host *host,
                          const struct byoc_match *m);
};

/* What a probe found out; the host zeroes it and sets struct_size first. */
struct byoc_probe {
    uint32_t struct_size;
    uint32_t reference;  /* not 0: a slow reference implementation          */
    char impl[120];      /* the implementation chosen, NUL-terminated       */
};

/* The layouts that an operator would like, in Relay's notation: upper-case
 * letters are axes, a number and a lower-case letter a block of that axis, as
 * in "NCHW", "NHWC", "NCHW16c"; of weights "OIHW", "HWIO", "OIHW16i16o". The
 * host zeroes it and sets struct_size first; what stays empty is wished as it
 * is. */
struct byoc_layout {
    uint32_t struct_size;
    uint32_t reserved;
    char data[24];   /* of the data, in and out */
    char kernel[24]; /* of the weights          */
};

/* A region to load. Everything is lent for the duration of load(), but the
 * constants stay mapped, at the same address, until unload(). */
struct byoc_region {
    uint32_t struct_size;
    uint32_t n_consts;
    const char *json; /* the region; or the blob that compile() made */
    uint64_t json_bytes;
    const struct byoc_view *consts; /* constants, by the JSON's "data" index */
};

/* A buffer the backend hands over: acquired from the host, freed by it. */
struct byoc_blob {
    uint32_t struct_size;
    uint32_t reserved;
    void *data;
    uint64_t bytes;
};

/* Called once per event when tracing: names are copied. Times are
 * nanoseconds of CLOCK_MONOTONIC. sources: the model's node names. */
typedef void (*byoc_trace_fn)(void *ctx, const char *name, const char *impl,
                              const char *sources, uint64_t begin_ns,
                              uint64_t end_ns);

/* Arguments of one run. */
struct byoc_run_args {
    uint32_t struct_size;
    uint32_t n_inputs, n_outputs;
    uint32_t reserved;
    const struct byoc_view *inputs;  /* as the JSON's "inputs"           */
    const struct byoc_view *outputs; /* as the JSON's "outputs": written */
    byoc_trace_fn trace;             /* NULL: off                        */
    void *trace_ctx;
};

/* The backend itself: a constant that lives as long as the library. Members
 * marked optional may be NULL. */
struct byoc_backend {
    uint32_t struct_size;
    uint32_t abi;         /* the version in use, from the query's argument */
    const char *name;     /* lower-case identifier: the prefix of patterns  */
    const char *version;  /* of the vendor's library, for people            */
    const char *compat;   /* changes when artifacts must be rebuilt         */
    const struct byoc_pattern *patterns;
    uint32_t n_patterns;
    uint32_t flags;       /* BYOC_BACKEND_* below */

    /* Optional; NULL: every match can be built. Can this graph (one kernel,
     * real shapes and constants) be built here? Builds what load() would
     * build. Any thread. */
    struct byoc_fail *(*probe)(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result);
    /* Optional; NULL: load() gets the JSON itself. Region in, blob out; same
     * input, same bytes. Any thread. */
    struct byoc_fail *(*compile)(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob);
    /* Optional; NULL: it does where it is this `compat`. Does an artifact made
     * with `compat` run here? NULL status: yes. Needs no model. Any thread. */
    struct byoc_fail *(*check_compat)(const struct byoc_host *host,
                                      const char *compat);
    /* Make *compiled: build kernels, pack weights. On failure *compiled stays
     * untouched and nothing is left behind. Any thread. */
    struct byoc_fail *(*load)(const struct byoc_host *host,
                              const struct byoc_region *region,
                              void **compiled);
    /* Its states are gone. Any thread. */
    void (*unload)(const struct byoc_host *host, void *compiled);
    /* Memory for one run at a time of `compiled`. Both: any thread. */
    struct byoc_fail *(*state_new)(const struct byoc_host *host,
                                   void *compiled, void **state);
    void (*state_free)(const struct byoc_host *host, void *compiled,
                       void *state);
    /* Run. `compiled` is shared by threads and must not change; a state
     * belongs to one run at a time. */
    struct byoc_fail *(*run)(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args);
    /* Optional. Called once before the library is closed: join own threads,
     * free globals. NULL: the host keeps the library mapped. */
    void (*quiesce)(const struct byoc_host *host);
    /* Optional, and not read where struct_size ends before it; NULL: no
     * opinion. Which layout would this graph (one kernel, a convolution of
     * either direction; real shapes) like best? The host follows the wish where
     * the shapes allow it, and carries the layout through operators that stay
     * native. A failure is no opinion. Any thread. */
    struct byoc_fail *(*layout)(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *wish);
};

enum {
    BYOC_BACKEND_USES_OPENMP = 1 /* runs on the process's OpenMP threads */
};

/* The one exported symbol. Called with the host's services, any number of
 * times; starts no threads, keeps nothing but `host`. Returns the backend for
 * ABI host->abi or lower, or NULL after copying a sentence of at most
 * `why_bytes` bytes (with NUL) into `why`. */
typedef const struct byoc_backend *(*byoc_backend_query_fn)(
    const struct byoc_host *host, char *why, uint32_t why_bytes);
#define BYOC_BACKEND_QUERY "byoc_backend_query_v1"

#ifdef __cplusplus
}
#endif
#endif
