/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/internal.h: the runtime's internal interface: images, artifacts,
 * plug-ins, threads. */
#ifndef BYI_RUNTIME_H
#define BYI_RUNTIME_H

#include <byoc/backend.h>

#include "core/base/base.h"
#include "core/base/machine.h"

#include <link.h>
#include <stdatomic.h>

#define BYI_ARTIFACT_VERSION 2
#define BYI_PLAN_VERSION 1

struct byi_code_table; /* core/base/descriptor.h */
struct byi_unit_table;
struct byi_c_unit; /* codegen_c/codegen_c.h */
typedef void (*byi_unit_fn)(void);

/* A piece of the weights that is elsewhere in memory. */
struct byi_span {
    const void *data;
    uint64_t bytes,
        offset; /* offset: in the weights, a multiple of BYI_ALIGN */
};

/* The input of the runtime: texts and weights, in memory or in the sections of
 * an artifact (docs/artifact.md). Borrowed. */
struct byi_image {
    const struct byi_machine *machine; /* of its code; NULL: this one */
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
    bool weights_mapped; /* from a file, which can be read again */
    /* if weights is NULL: its pieces, ascending and disjoint, with zeros
     * between them */
    const struct byi_span *spans;
    uint32_t n_spans;
    /* The fused kernels: as C while the artifact is written, as code once it is
     * loaded. NULL: none; their twins run. */
    const char *source;
    size_t source_bytes;
    uint32_t n_kernels;
    const struct byi_code_table *code;
    uint64_t code_bytes;
    /* The C of regions whose backends generated C, in the order of the plan's
     * regions: while the artifact is written, and once it is loaded. In memory:
     * functions, by region; NULL for other regions, or if there is no code for
     * this machine. */
    const struct byi_c_unit *const *sources;
    uint32_t n_sources;
    const struct byi_unit_table *units;
    uint64_t units_bytes;
    const byi_unit_fn *functions;
    const char *text; /* the section with all that code */
    uint64_t text_bytes;
};

/* The name of region `region` (in the plan's order), as in the ledger; NULL if
 * there are not as many. Lives as long as the model. */
BYOC_API const char *byoc_internal_region_name(const struct byoc_model *model,
                                               uint32_t region);

/* Why region `region` (in the plan's order) runs its native twin although a
 * backend was chosen; NULL if the backend runs it. Lives as long as the model.
 */
BYOC_API const char *byoc_internal_region_fault(const struct byoc_model *model,
                                                uint32_t region);

/* The same for given sizes of all of the inputs' symbols, as a run with these
 * sizes would find it: sets faults[i], in `arena`, to why region i runs its
 * native twin, or leaves it unchanged. Does not keep the specialisation. For a
 * model loaded without backends: why none could build it. Errors: those of
 * byoc_model_warm. */
BYOC_API enum byoc_status byoc_internal_region_faults(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byi_arena *arena, const char **faults, struct byoc_error *err);

/* Whether the model accepts these sizes of all of its inputs' symbols, as
 * byoc_model_warm finds out, but without a call to a backend. Errors: those of
 * byoc_model_warm. */
BYOC_API enum byoc_status byoc_internal_check_dims(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byoc_error *err);

/* Call the backend's describe() (byoc/backend.h) for a region; `say` is called
 * for each of its steps. Does nothing if the backend has no describe(), the
 * region runs its native twin, or its inputs or outputs have symbolic dims.
 * Threads: safe. */
BYOC_API void byoc_internal_region_describe(const struct byoc_model *model,
                                            uint32_t region, byoc_trace_fn say,
                                            void *ctx);

/* Called after every step of main with each of its results, the step's operator
 * or region, and its provenance. The tensor is valid during the call. */
typedef void (*byi_watch_fn)(void *ctx, const char *step, const char *sources,
                             const struct byi_tensor *value);
/* Watch the following runs; NULL stops. Two models of the same compile, with
 * and without backends, have the same steps. */
BYOC_API void byoc_internal_state_watch(struct byoc_state *state,
                                        byi_watch_fn watch, void *ctx);

/* Called before a region of any function runs, by its backend or its twin, with
 * its operands, which are valid during the call. NULL stops. */
typedef void (*byi_lend_fn)(void *ctx, uint32_t region, uint32_t n,
                            const struct byi_tensor *const *in);
BYOC_API void byoc_internal_state_lend(struct byoc_state *state,
                                       byi_lend_fn lend, void *ctx);

/* The facts about region `region` of a model; valid as long as the model. */
struct byi_region_facts {
    const char *backend, *symbol;
    const char *blob; /* its JSON, or the result of the backend's compile() */
    uint64_t blob_bytes;
    uint32_t n_consts;
    const struct byi_tensor *const *consts; /* by the JSON's "data" */
};
BYOC_API enum byoc_status byoc_internal_region(const struct byoc_model *model,
                                               uint32_t region,
                                               struct byi_arena *arena,
                                               struct byi_region_facts *facts,
                                               struct byoc_error *err);

/* Sizes for which to prepare specialisations; each set has every symbol of the
 * inputs. */
struct byi_warm_set {
    uint32_t n;
    const struct byoc_dim *dims;
};
struct byi_warm {
    uint32_t n;
    const struct byi_warm_set *at;
};

/* --- bind.c --------------------------------------------------------------- */

/* The constants that a region receives; it does not own them. */
struct byi_region_consts {
    uint32_t n;
    const struct byoc_view *at;
    const struct byoc_ext *ext; /* of the region; may be NULL */
};
/* A region for given sizes, in an arena. */
struct byi_sized {
    const char *json; /* dims are numbers */
    size_t json_bytes;
    uint32_t n_outputs;
    const struct byi_type **outputs;
};
/* The region `json`, whose dims may be symbolic, for inputs of these types. The
 * members of `sized` are in `arena`. Errors: BYOC_ETYPE (an input does not fit,
 * a symbol has two sizes, an operator refuses these sizes), BYOC_EUNSUPPORTED
 * (a size depends on data), and those of reading the region. */
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

/* Log and require backends as in `params` from now on; first repeats the
 * messages of loading. Call it before the model is used. */
BYOC_API void byoc_internal_model_adopt(struct byoc_model *model,
                                        const struct byoc_load_params *params);

/* --- artifact.c: an artifact's sections, read as an ELF file, never run --- */

/* Map the artifact at `path` and find its sections. Bounds-checked; refuses
 * other files, and other versions (BYOC_EINCOMPATIBLE). */
struct byi_artifact {
    struct byi_image image;
    const void *map;
    size_t map_bytes;
    const struct byi_descriptor *descriptor; /* in the map */
    /* of .byoc.kernels, .byoc.units, .text, from the descriptor */
    int64_t code;
    uint64_t code_bytes;
    int64_t units;
    uint64_t units_bytes;
    int64_t text;
    uint64_t text_bytes;
};
BYOC_API enum byoc_status byoc_internal_artifact_open(const char *path,
                                                      struct byi_artifact *a,
                                                      struct byoc_error *err);
/* The same for a file that has another name in messages. */
enum byoc_status byi_artifact_open(const char *path, const char *name,
                                   struct byi_artifact *a,
                                   struct byoc_error *err);
BYOC_API void byoc_internal_artifact_close(struct byi_artifact *a);
/* Compare the hash of every section, including the weights, with the manifest.
 */
BYOC_API enum byoc_status byoc_internal_artifact_verify(
    const struct byi_artifact *a, struct byoc_error *err);

/* The fused kernels of an artifact, loaded as code: model.c. An image with this
 * `code` (image.code and the following members) runs them while the library is
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
 * before it except the weights. A tool that rewrites the file (strip) drops it;
 * then the loader's tables are not checked, and loading continues. */
#define BYI_SUM_MAGIC "BYOCSUM1"
enum { BYI_SUM_BYTES = 8 + 64 };

/* --- library.c: opens libraries, with the loader's lock
 * ---------------------------- */

/* Whether the file may be opened. Messages call it `name`. Errors: BYOC_EIO
 * (not found, not readable), BYOC_EPARSE (not a shared library), BYOC_EINVAL
 * (not absolute, or writable by all users). */
enum byoc_status byi_library_check(const char *path, const char *name,
                                   struct byoc_error *err);
/* dlopen with RTLD_NOW | RTLD_LOCAL. Errors: as above, and BYOC_EBACKEND with
 * the loader's message. */
enum byoc_status byi_library_open(const char *path, const char *name,
                                  void **handle, struct byoc_error *err);
void *byi_library_symbol(void *handle, const char *name); /* NULL: none */
void byi_library_close(void *handle);                     /* NULL is fine */
/* dl_iterate_phdr with the lock of core/base/loader.h, which every walk of the
 * runtime must hold. */
int byi_library_walk(int (*visit)(struct dl_phdr_info *info, size_t size,
                                  void *ctx),
                     void *ctx);
/* Open `path`, never to be closed, and look up a symbol. Errors: as
 * byi_library_open, and BYOC_EBACKEND (no such symbol). */
BYOC_API enum byoc_status byoc_internal_library_find(const char *path,
                                                     const char *name,
                                                     void **symbol,
                                                     struct byoc_error *err);
/* The same for a library whose file is in memory and has no name. */
struct byi_memory_library {
    void *handle; /* NULL: not open */
    int fd;       /* of its file; -1: the library has a path */
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
/* The folder of the library or program that contains this code; false: unknown.
 */
bool byi_library_folder(char *path, size_t n);

/* --- log.c ---------------------------------------------------------------- */

/* The receiver of log lines; zero-initialised: none. */
struct byi_log {
    void (*log)(void *ctx, enum byoc_severity severity, const char *line);
    void (*log_line)(void *ctx,
                     const char *line); /* as in struct byoc_load_params */
    void *ctx;
    enum byoc_severity least;
};
void byi_log_init(struct byi_log *log, const struct byoc_load_params *params);
void byi_log(const struct byi_log *log, enum byoc_severity severity,
             const char *fmt, ...) BYI_PRINTF(3, 4);
/* Log a line unchanged. */
void byi_log_line(const struct byi_log *log, enum byoc_severity severity,
                  const char *line);

/* --- memory.c ------------------------------------------------------------- */

/* The allocator and the limit of a model's large memory. */
struct byi_memory {
    void *(*allocate)(void *ctx, uint64_t bytes, uint64_t alignment);
    void (*release)(void *ctx, void *memory, uint64_t bytes);
    void *ctx; /* of these two, which may be NULL: byi_acquire, byi_release */
    uint64_t limit;
    _Atomic uint64_t held, peak; /* bytes */
    /* NULL, or a mapped file, whose pages are dropped now and then while
     * weights are packed, so that memory never holds them all and their packed
     * copies.
     */
    const void *file;
    uint64_t file_bytes;
    _Atomic uint32_t packers; /* threads that pack weights      */
    _Atomic uint64_t since;   /* bytes taken since the last time */
};
struct byi_memory *byi_memory_new(const struct byoc_load_params *params);
/* Drop the whole pages of a constant, if it is in a file that is mapped
 * privately and unchanged; they are read again when they are used. Threads:
 * safe. */
void byi_drop_const(const struct byi_image *image, const void *at,
                    uint64_t bytes);
/* Begin, or end, packing weights. Threads: safe. */
void byi_memory_packs(struct byi_memory *memory, bool packs);
void byi_memory_free(struct byi_memory **memory);
/* Allocate memory aligned to BYI_ALIGN; NULL if that fails or exceeds the
 * limit. `memory` NULL: no limit and no allocator. Threads: safe. */
void *byi_memory_take(struct byi_memory *memory, uint64_t bytes);
/* Free it; returns its size in bytes. NULL is fine. */
uint64_t byi_memory_give(struct byi_memory *memory, void *at);

/* --- host.c, plugin.c
 * ------------------------------------------------------------- */

struct byi_library;
struct byi_plugin {
    struct byi_library *library;
    const char *path;
    /* a copy with all members of this version */
    const struct byoc_backend *backend;
    /* ctx: this plug-in; match_*: NULL, for the compiler side to set */
    struct byoc_host host;
    uint32_t threads;
    struct byi_log log;
    struct byi_memory *memory; /* of its model, or NULL */
    _Atomic uint64_t held;     /* bytes that it acquired and has not released */
    struct byi_plugin *next;
};
/* Fill plugin->host with the services of this process; its ctx is the plug-in.
 */
void byi_plugin_init_host(struct byi_plugin *plugin, uint32_t abi);
/* Load one plug-in by absolute path; RTLD_NOW | RTLD_LOCAL; checks version,
 * sizes, required members, name. Each failure has its own message. threads 0:
 * as in loading a model. Threads: safe. */
BYOC_API enum byoc_status byoc_internal_plugin_open(const char *path,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
BYOC_API void byoc_internal_plugin_close(struct byi_plugin **plugin);
/* The plug-ins of a list as in struct byoc_load_params, as absolute paths, one
 * per line: files as given, for folders their libbyoc_backend_*.so, sorted;
 * then those of the runtime's folder and its byoc/. *places, unless NULL, lists
 * the places that were searched. */
BYOC_API enum byoc_status byoc_internal_plugin_list(const char *plugins,
                                                    struct byi_text *paths,
                                                    struct byi_text *places,
                                                    struct byoc_error *err);
/* Load the plug-in of backend `name`: libbyoc_backend_NAME.so in a folder, or
 * any file in the list. BYOC_EIO if there is none. */
BYOC_API enum byoc_status byoc_internal_plugin_find(const char *plugins,
                                                    const char *name,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
/* Bytes that a plug-in has acquired from its host. Threads: safe. */
uint64_t byi_plugin_held(const struct byi_plugin *plugin);
/* The status of a call of a plug-in: NULL is success; a failure is freed and
 * becomes BYOC_EBACKEND (BYOC_ENOMEM for RESOURCE) with "BACKEND: WHERE: TEXT".
 */
enum byoc_status byi_plugin_status(struct byoc_fail *fail,
                                   const struct byi_plugin *plugin,
                                   const char *where, struct byoc_error *err);

/* Load a region. A blob that is not aligned is passed as an aligned copy. */
BYOC_API struct byoc_fail *byoc_internal_plugin_load(
    const struct byi_plugin *plugin, const struct byoc_region *region,
    void **compiled);
/* Run a loaded region, on the threads of the calling thread's turn. */
struct byoc_fail *byi_plugin_run(const struct byi_plugin *plugin,
                                 void *compiled, void *state,
                                 const struct byoc_run_args *args);
/* Whether the calling thread now runs a backend's kernels; returns what was. */
bool byi_plugin_runs(bool now);
/* Call the backend's state_new() and state_free() for `compiled`. */
struct byoc_fail *byi_plugin_state_new(const struct byi_plugin *plugin,
                                       void *compiled, void **state);
void byi_plugin_state_free(const struct byi_plugin *plugin, void *compiled,
                           void *state);

/* --- custom.c ------------------------------------------------------------- */

struct byoc_operator;    /* byoc/custom.h */
struct byi_customs;      /* the operators of a plug-in */
struct byi_custom_calls; /* core/ops/custom.h */
/* Check and add the operators of a plug-in; NULL if it has none. */
enum byoc_status byi_customs_open(const struct byi_plugin *plugin,
                                  struct byi_customs **customs,
                                  struct byoc_error *err);
void byi_customs_close(struct byi_customs *customs);
void byi_customs_lock(void);
void byi_customs_unlock(void);
/* The plug-in's newest operator of this domain and name that version `version`
 * of the domain has; NULL if there is none. Lives as long as the plug-in. */
BYOC_API const struct byoc_operator *byoc_internal_custom_row(
    const struct byi_plugin *plugin, const char *domain, const char *name,
    int64_t version);
/* For byi_custom_use in other libraries of byoc. */
BYOC_API const struct byi_custom_calls *byoc_internal_custom_calls(void);

/* --- plugin_abi.c --------------------------------------------------------- */

/* Whether the plug-in at `path` can work with this host, judged by its file
 * without running its code. *abi: the version that both support. Errors:
 * BYOC_EPARSE (not a shared library, damaged), BYOC_EBACKEND (no plug-in),
 * BYOC_EINCOMPATIBLE (machine, version, sanitizer, the first struct or member
 * that differs). */
enum byoc_status byi_plugin_agree(const char *path, uint32_t *abi,
                                  struct byoc_error *err);
/* Whether the file is a plug-in, of any version; does not run its code. */
BYOC_API bool byoc_internal_is_plugin(const char *path);

/* --- copies.c ------------------------------------------------------------- */

/* A line for each kind of library that this process should have once but has
 * loaded several times: its kind and the files. "" if there is none. */
BYOC_API void byoc_internal_copies(struct byi_text *out);

/* --- cgroup.c ------------------------------------------------------------- */

/* The limit in one cgroup folder, of version 1 or 2; 0: none. */
struct byi_cgroup_limit {
    const char *controller; /* of version 1 */
    uint64_t (*v1)(const char *folder), (*v2)(const char *folder);
};
/* The lowest limit of the cgroups in file `self` ("/proc/self/cgroup") and of
 * their parents, which are mounted at `root`; 0: none. */
uint64_t byi_cgroup_least(const char *self, const char *root,
                          const struct byi_cgroup_limit *limit);
/* The first line of a file. */
bool byi_cgroup_line(const char *path, char *line, size_t n);
/* Bytes of memory that this process may use: those of the machine, limited by
 * its cgroups. */
uint64_t byi_memory_limit_from(const char *self, const char *root);

/* byi_temp_clear for the runtime's temporary files. */
BYOC_API void byoc_internal_temp_clear(void);

/* --- threads.c ------------------------------------------------------------ */

/* The input of byi_threads_from; a zero member means the process's own value.
 */
struct byi_thread_facts {
    uint32_t option;
    const char *byoc_env, *omp_env; /* NULL: not set                */
    uint32_t affinity;              /* CPUs of the mask             */
    const char *cgroup_self;        /* "/proc/self/cgroup"          */
    const char *cgroup_root;        /* "/sys/fs/cgroup"             */
};
/* The number of threads, and the reason: option, BYOC_NUM_THREADS (strict:
 * BYOC_EINVAL if it is not a number from 1 to 4096), OMP_NUM_THREADS, else the
 * CPUs of the affinity mask. Limited by the affinity mask and the cgroup quota
 * (v1 and v2). */
enum byoc_status byi_threads_from(const struct byi_thread_facts *facts,
                                  uint32_t *threads, char *why, size_t n,
                                  struct byoc_error *err);
/* The same for this process. `why` receives a sentence. */
enum byoc_status byi_threads_decide(uint32_t option, uint32_t *threads,
                                    char *why, size_t n,
                                    struct byoc_error *err);
/* How long a thread spins before it sleeps, and whether it sleeps at once while
 * other processes compete: by `wait`, else by the environment's
 * BYOC_WAIT_POLICY. Errors: BYOC_EINVAL (neither is a policy). */
enum byoc_status byi_wait_decide(enum byoc_wait wait, uint64_t *spin_ns,
                                 bool *adapts, struct byoc_error *err);

/* --- workers.c ------------------------------------------------------------ */

/* Run fn(arg, 0) ... fn(arg, n - 1) on this process's workers; returns when all
 * are done. */
BYOC_API void byoc_internal_parallel_for(uint32_t n,
                                         void (*fn)(void *, uint32_t),
                                         void *arg);

/* Only the number, for the compiler. */
BYOC_API enum byoc_status byoc_internal_threads(uint32_t option,
                                                uint32_t *threads,
                                                struct byoc_error *err);

/* --- peak.c --------------------------------------------------------------- */

/* FLOP/s of float32 multiply-adds on registers, with the widest instruction set
 * that may be used, on `threads` threads at the same time: the best of some
 * short runs, 3 ms in all. */
BYOC_API double byoc_internal_peak_flops(uint32_t threads);
/* Bytes per second of reading `bytes` of memory over and over, a part on each
 * thread: the best of several rounds. 0: an allocation failed. */
BYOC_API double byoc_internal_peak_read(uint64_t bytes, uint32_t threads);

#endif
