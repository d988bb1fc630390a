/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/internal.h: the runtime's own view: images, plans, plug-ins. */
#ifndef BYI_RUNTIME_H
#define BYI_RUNTIME_H

#include <byoc/backend.h>

#include "core/base/base.h"

#include <stdatomic.h>

#define BYI_ARTIFACT_VERSION 1
#define BYI_PLAN_VERSION 1

struct byi_code_table; /* core/base/descriptor.h */
struct byi_unit_table;
struct byi_c_unit; /* codegen_c/codegen_c.h */
typedef void (*byi_unit_fn)(void);

/* A piece of the weights that lies elsewhere in memory. */
struct byi_span {
    const void *data;
    uint64_t bytes, offset; /* offset: where it belongs, BYI_ALIGN-multiple */
};

/* What the runtime opens: texts and weights, in memory or in the sections of
 * an artifact (docs/artifact.md). Borrowed. */
struct byi_image {
    const char *manifest;
    size_t manifest_bytes;
    const char *plan;
    size_t plan_bytes;
    const char *ledger; /* may be NULL */
    size_t ledger_bytes;
    const char *blobs; /* the regions' blobs, one after the other */
    size_t blobs_bytes;
    const void *weights; /* BYI_ALIGN-aligned, or NULL */
    uint64_t weights_bytes;
    const struct byi_span *spans; /* weights NULL: its pieces, ascending and
                                     disjoint, zeros between them           */
    uint32_t n_spans;
    /* The fused kernels: as C while the artifact is made, as code once it is
     * loaded. NULL: there are none, and their twins run. */
    const char *source;
    size_t source_bytes;
    uint32_t n_kernels;
    const struct byi_code_table *code;
    uint64_t code_bytes;
    /* What vendors wrote in C, in the order of the plan's regions: while the
     * artifact is made, and once it is loaded. In memory: functions, by region;
     * NULL where it is none, or not for this machine. */
    const struct byi_c_unit *const *sources;
    uint32_t n_sources;
    const struct byi_unit_table *units;
    uint64_t units_bytes;
    const byi_unit_fn *functions;
    const char *text; /* where all that code lies */
    uint64_t text_bytes;
};

/* Why region `region` (in the plan's order) runs its native twin although its
 * vendor was asked; NULL when the vendor runs it. Lives as long as the model.
 */
BYOC_API const char *byoc_internal_region_fault(const struct byoc_model *model,
                                                uint32_t region);

/* The same for these sizes of the inputs' symbols, which must be all of them,
 * as a run with them would find it: faults[i], by region, is set to why region
 * i runs its native twin, in `arena`, or stays as it is. What is made for it
 * goes again. Of a model without vendors: why none could build it. Errors:
 * those of byoc_model_warm. */
BYOC_API enum byoc_status byoc_internal_region_faults(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byi_arena *arena, const char **faults, struct byoc_error *err);

/* Called after every step of main with each of its results: the step's
 * operator or region, the model's nodes it came from. The tensor is lent for
 * the call. */
typedef void (*byi_watch_fn)(void *ctx, const char *step, const char *sources,
                             const struct byi_tensor *value);
/* Watch the runs that follow; NULL stops. Two models of one compile, with and
 * without vendors, have the same steps. */
BYOC_API void byoc_internal_state_watch(struct byoc_state *state,
                                        byi_watch_fn watch, void *ctx);

/* Called before a region of any function runs, vendor or twin, with what it is
 * given; lent for the call. NULL stops. */
typedef void (*byi_lend_fn)(void *ctx, uint32_t region, uint32_t n,
                            const struct byi_tensor *const *in);
BYOC_API void byoc_internal_state_lend(struct byoc_state *state,
                                       byi_lend_fn lend, void *ctx);

/* What is known of region `region` of a model; lives as long as it. */
struct byi_region_facts {
    const char *vendor, *symbol;
    const char *blob; /* its JSON, or what the vendor's compile() made */
    uint64_t blob_bytes;
    uint32_t n_consts;
    const struct byi_tensor *const *consts; /* by the JSON's "data" */
};
BYOC_API enum byoc_status byoc_internal_region(const struct byoc_model *model,
                                               uint32_t region,
                                               struct byi_arena *arena,
                                               struct byi_region_facts *facts,
                                               struct byoc_error *err);

/* Sizes to make a model ready for; each set has every symbol of the inputs. */
struct byi_warm_set {
    uint32_t n;
    const struct byoc_dim *dims;
};
struct byi_warm {
    uint32_t n;
    const struct byi_warm_set *at;
};

/* --- bind.c --------------------------------------------------------------- */

/* The constants that a region is lent. */
struct byi_region_consts {
    uint32_t n;
    const struct byoc_view *at;
};
/* A region for given sizes, in an arena. */
struct byi_sized {
    const char *json; /* dims are numbers */
    size_t json_bytes;
    uint32_t n_outputs;
    const struct byi_type **outputs;
};
/* The region `json`, whose dims may be names, for inputs of these types. What
 * `sized` gets is in `arena`. Errors: BYOC_ETYPE (an input does not fit, a name
 * has two sizes, an operator does not take these sizes), BYOC_EUNSUPPORTED (a
 * size depends on data), and those of reading it. */
BYOC_API enum byoc_status byoc_internal_region_bind(
    const char *json, size_t n, const struct byi_region_consts *consts,
    uint32_t n_inputs, const struct byi_type *const *inputs,
    struct byi_arena *arena, struct byi_sized *sized, struct byoc_error *err);

/* --- weights.c ------------------------------------------------------------ */

/* The hash of an image's weights: SHA-256 over the SHA-256 digests, as hex,
 * of their pieces of 4 MiB; the pieces are hashed on all threads. */
BYOC_API void byoc_internal_weights_hash(const struct byi_image *image,
                                         char hex[65]);

/* --- model.c: what the compiler side uses of the runtime besides the public
 * header; exported under byoc_internal_, not for others ------------------- */

/* A model from an image in memory; the image must outlive it. */
BYOC_API enum byoc_status byoc_internal_model_open(
    const struct byi_image *image, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* Log and require vendors as `params` say from now on, beginning with what
 * loading would have logged. Before the model is used. */
BYOC_API void byoc_internal_model_adopt(struct byoc_model *model,
                                        const struct byoc_load_params *params);

/* --- artifact.c: an artifact's sections, read as an ELF file, never run --- */

/* Map the artifact at `path` and find its sections. Bounds-checked; rejects
 * what is not ours, and other versions (BYOC_EINCOMPATIBLE). */
struct byi_artifact {
    struct byi_image image;
    const void *map;
    size_t map_bytes;
    const struct byi_descriptor *descriptor; /* in the map */
    int64_t
        code; /* of .byoc.kernels, .byoc.units, .text, from the descriptor */
    uint64_t code_bytes;
    int64_t units;
    uint64_t units_bytes;
    int64_t text;
    uint64_t text_bytes;
};
BYOC_API enum byoc_status byoc_internal_artifact_open(const char *path,
                                                      struct byi_artifact *a,
                                                      struct byoc_error *err);
/* The same of a file that messages call by another name. */
enum byoc_status byi_artifact_open(const char *path, const char *name,
                                   struct byi_artifact *a,
                                   struct byoc_error *err);
BYOC_API void byoc_internal_artifact_close(struct byi_artifact *a);
/* Hold every section, weights included, against the manifest's hashes. */
BYOC_API enum byoc_status byoc_internal_artifact_verify(
    const struct byi_artifact *a, struct byoc_error *err);

/* The fused kernels of an artifact as code that is loaded: model.c. An image
 * that has `code` (image.code and what follows it) runs them while this is
 * open. Nothing else of the artifact is read. */
struct byi_code_library {
    struct byi_artifact artifact;
    void *library;
};
BYOC_API enum byoc_status byoc_internal_code_open(const char *path,
                                                  struct byi_code_library *code,
                                                  struct byoc_error *err);
BYOC_API void byoc_internal_code_close(struct byi_code_library *code);

/* The file ends in BYI_SUM_MAGIC and 64 hex digits: the SHA-256 of all bytes
 * before it but the weights. A tool that rewrites the file (strip) drops it;
 * then nothing vouches for the loader's tables, and loading goes on. */
#define BYI_SUM_MAGIC "BYOCSUM1"
enum { BYI_SUM_BYTES = 8 + 64 };

/* --- library.c: the one file that owns dlopen ---------------------------- */

/* May the file be opened? Messages call it `name`. Errors: BYOC_EIO (not found,
 * not readable), BYOC_EPARSE (not a shared library), BYOC_EINVAL (not absolute,
 * or writable by everybody). */
enum byoc_status byi_library_check(const char *path, const char *name,
                                   struct byoc_error *err);
/* dlopen with RTLD_NOW | RTLD_LOCAL. Errors: as above, and BYOC_EBACKEND (the
 * loader's words). */
enum byoc_status byi_library_open(const char *path, const char *name,
                                  void **handle, struct byoc_error *err);
void *byi_library_symbol(void *handle, const char *name); /* NULL: none */
void byi_library_close(void *handle);                     /* NULL is fine */
/* Open `path` for good and look a symbol up. Errors: as byi_library_open, and
 * BYOC_EBACKEND (no such symbol). */
BYOC_API enum byoc_status byoc_internal_library_find(const char *path,
                                                     const char *name,
                                                     void **symbol,
                                                     struct byoc_error *err);
/* The same of a library whose file is in memory, which nobody else can name. */
struct byi_memory_library {
    void *handle; /* NULL: not open */
    int fd;       /* of its file; -1: the library has a path of its own */
};
/* A file without a name, readable by this user only. Errors: BYOC_ENOMEM,
 * BYOC_EIO. */
enum byoc_status byi_memory_file(const void *data, size_t n, int *fd,
                                 struct byoc_error *err);
BYOC_API enum byoc_status byoc_internal_library_map(
    const void *data, size_t n, struct byi_memory_library *library,
    struct byoc_error *err);
BYOC_API byi_unit_fn
byoc_internal_library_function(const struct byi_memory_library *library,
                               const char *name); /* NULL: none */
BYOC_API void byoc_internal_library_unmap(struct byi_memory_library *library);
/* The folder of the library or program this code is in; false: not known. */
bool byi_library_folder(char *path, size_t n);

/* --- log.c ---------------------------------------------------------------- */

/* Where lines go; zero: nowhere. */
struct byi_log {
    void (*log)(void *ctx, enum byoc_severity severity, const char *line);
    void (*log_line)(void *ctx, const char *line); /* as struct
                                                      byoc_load_params has it */
    void *ctx;
    enum byoc_severity least;
};
void byi_log_init(struct byi_log *log, const struct byoc_load_params *params);
void byi_log(const struct byi_log *log, enum byoc_severity severity,
             const char *fmt, ...) BYI_PRINTF(3, 4);
/* A line as it stands. */
void byi_log_line(const struct byi_log *log, enum byoc_severity severity,
                  const char *line);

/* --- memory.c ------------------------------------------------------------- */

/* Where the large memory of a model comes from, and how much it may be. */
struct byi_memory {
    void *(*allocate)(void *ctx, uint64_t bytes, uint64_t alignment);
    void (*release)(void *ctx, void *memory, uint64_t bytes);
    void *ctx; /* of these two; NULL: byi_acquire, byi_release */
    uint64_t limit;
    _Atomic uint64_t held, peak; /* bytes */
};
struct byi_memory *byi_memory_new(const struct byoc_load_params *params);
void byi_memory_free(struct byi_memory **memory);
/* BYI_ALIGN-aligned; NULL when there is none, or the limit is reached. Memory
 * NULL: without a limit or an allocator. Threads: safe. */
void *byi_memory_take(struct byi_memory *memory, uint64_t bytes);
/* Give it back; how many bytes it was. NULL is fine. */
uint64_t byi_memory_give(struct byi_memory *memory, void *at);
struct byi_memory *byi_memory_of(const struct byoc_model *model);

/* --- plugin.c ------------------------------------------------------------- */

struct byi_library;
struct byi_plugin {
    struct byi_library *library;
    const char *path;
    const struct byoc_backend
        *backend;          /* a copy, complete to its last member */
    struct byoc_host host; /* ctx: this plug-in; match_*: NULL, for the
                              compiler side to set                       */
    uint32_t threads;
    struct byi_log log;
    struct byi_memory *memory; /* of the model it is for, or NULL */
    _Atomic uint64_t held;     /* bytes that it acquired and has not released */
    struct byi_plugin *next;
};
/* Load one plug-in by absolute path; RTLD_NOW | RTLD_LOCAL; checks version,
 * sizes, required members, name. One message for each way to fail. threads 0:
 * decide as loading a model does. Threads: safe. */
BYOC_API enum byoc_status byoc_internal_plugin_open(const char *path,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
BYOC_API void byoc_internal_plugin_close(struct byi_plugin **plugin);
/* Fill plugin->host with the services of this process; ctx: the plug-in. */
BYOC_API void byoc_internal_host_init(struct byi_plugin *plugin, uint32_t abi);
/* The plug-ins of a list as in struct byoc_load_params, as absolute paths, one
 * a line: files as they stand, folders by their libbyoc_backend_*.so, sorted;
 * then those of the runtime's folder and its byoc/. *places, unless NULL, gets
 * where they were looked for. */
BYOC_API enum byoc_status byoc_internal_plugin_list(const char *plugins,
                                                    struct byi_text *paths,
                                                    struct byi_text *places,
                                                    struct byoc_error *err);
/* Load the plug-in of vendor `name`: libbyoc_backend_NAME.so of a folder, or
 * any file the list names. BYOC_EIO when there is none. */
BYOC_API enum byoc_status byoc_internal_plugin_find(const char *plugins,
                                                    const char *name,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
/* Bytes that a plug-in has acquired of its host. Threads: safe. */
uint64_t byi_plugin_held(const struct byi_plugin *plugin);
/* What a call of a plug-in came to: NULL is success; a failure is freed and
 * becomes BYOC_EBACKEND (BYOC_ENOMEM for RESOURCE) with "VENDOR: WHERE: TEXT".
 */
enum byoc_status byi_plugin_status(struct byoc_fail *fail,
                                   const struct byi_plugin *plugin,
                                   const char *where, struct byoc_error *err);

/* Load a region: a blob that is not aligned is lent as a copy that is. */
BYOC_API struct byoc_fail *byoc_internal_plugin_load(
    const struct byi_plugin *plugin, const struct byoc_region *region,
    void **compiled);
/* Run a region that is loaded, on the threads of the calling thread's turn. */
struct byoc_fail *byi_plugin_run(const struct byi_plugin *plugin,
                                 void *compiled, void *state,
                                 const struct byoc_run_args *args);
/* Make a state for runs of `compiled`, and free it, as the backend says. */
struct byoc_fail *byi_plugin_state_new(const struct byi_plugin *plugin,
                                       void *compiled, void **state);
void byi_plugin_state_free(const struct byi_plugin *plugin, void *compiled,
                           void *state);

/* --- plugin_abi.c --------------------------------------------------------- */

/* Can the plug-in at `path` work with this host, as far as its file says?
 * *abi: the version both speak. Runs nothing of it. Errors: BYOC_EPARSE (not a
 * shared library, damaged), BYOC_EBACKEND (no plug-in), BYOC_EINCOMPATIBLE
 * (machine, version, sanitizer, the first struct or member that differs). */
enum byoc_status byi_plugin_agree(const char *path, uint32_t *abi,
                                  struct byoc_error *err);
/* Whether the file is a plug-in, also one of another version; none of its code
 * runs. */
BYOC_API bool byoc_internal_is_plugin(const char *path);

/* --- copies.c ------------------------------------------------------------- */

/* A line for each kind of library that this process should have once, but has
 * loaded twice or more: what, and which. Text: "" where there is none. */
BYOC_API void byoc_internal_copies(struct byi_text *out);

/* --- cgroup.c ------------------------------------------------------------- */

/* The limit that one cgroup folder states, of version 1 or 2; 0: none. */
struct byi_cgroup_limit {
    const char *controller; /* of version 1 */
    uint64_t (*v1)(const char *folder), (*v2)(const char *folder);
};
/* The least of the cgroups in file `self` ("/proc/self/cgroup") and of those
 * above them, which are mounted at `root`; 0: none. */
uint64_t byi_cgroup_least(const char *self, const char *root,
                          const struct byi_cgroup_limit *limit);
/* The first line of a file. */
bool byi_cgroup_line(const char *path, char *line, size_t n);
/* Bytes of memory that this process may use: the machine's, or what its
 * cgroups leave of them. */
uint64_t byi_memory_limit_from(const char *self, const char *root);

/* byi_temp_clear, of the temporary files that the runtime made. */
BYOC_API void byoc_internal_temp_clear(void);

/* --- threads.c ------------------------------------------------------------ */

/* Where the count comes from; zero fields mean the process's own. */
struct byi_thread_facts {
    uint32_t option;
    const char *byoc_env, *omp_env; /* NULL: not set                */
    uint32_t affinity;              /* CPUs of the mask             */
    const char *cgroup_self;        /* "/proc/self/cgroup"          */
    const char *cgroup_root;        /* "/sys/fs/cgroup"             */
};
/* How many threads, and why: option, BYOC_NUM_THREADS (strict: BYOC_EINVAL if
 * it is not a number of 1 to 4096), OMP_NUM_THREADS, else the CPUs of the
 * affinity mask. No more than those, nor than the cgroup quota (v1 and v2). */
enum byoc_status byi_threads_from(const struct byi_thread_facts *facts,
                                  uint32_t *threads, char *why, size_t n,
                                  struct byoc_error *err);
/* The same for this process. `why` gets a sentence. */
enum byoc_status byi_threads_decide(uint32_t option, uint32_t *threads,
                                    char *why, size_t n,
                                    struct byoc_error *err);
/* How long a thread spins before it sleeps, and whether it sleeps at once while
 * other processes compete: as asked for, else as the environment's
 * BYOC_WAIT_POLICY says. Errors: BYOC_EINVAL (neither is a policy). */
enum byoc_status byi_wait_decide(enum byoc_wait wait, uint64_t *spin_ns,
                                 bool *adapts, struct byoc_error *err);

/* --- workers.c ------------------------------------------------------------ */

/* Run fn(arg, 0) ... fn(arg, n - 1) on this process's workers; returns when all
 * are done. */
BYOC_API void byoc_internal_parallel_for(uint32_t n,
                                         void (*fn)(void *, uint32_t),
                                         void *arg);

/* The count alone, for the compiler. */
BYOC_API enum byoc_status byoc_internal_threads(uint32_t option,
                                                uint32_t *threads,
                                                struct byoc_error *err);

#endif
