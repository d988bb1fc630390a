/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/internal.h: interfaces inside the runtime, and functions of the
 * runtime that byoc's compiler calls: images, artifacts, libraries, plug-ins,
 * memory, threads. */
#ifndef BYI_RUNTIME_H
#define BYI_RUNTIME_H

#include <byoc/backend.h>

#include "core/base/base.h"
#include "core/base/machine.h"
#include "core/base/openmp.h"

#include <link.h>
#include <stdatomic.h>

#define BYI_ARTIFACT_VERSION 2
#define BYI_PLAN_VERSION 1

struct byi_code_table; /* core/base/descriptor.h */
struct byi_unit_table;
struct byi_c_unit; /* codegen_c/codegen_c.h */
typedef void (*byi_unit_fn)(void);

/* One of several blocks of memory that contain the weights. */
struct byi_weights_span {
    const void *data;
    uint64_t bytes, offset; /* in the weights; a multiple of BYI_ALIGN */
};

/* The input of the runtime: texts and weights, in memory or in the sections of
 * an artifact (docs/artifact.md). Owns nothing. */
struct byi_image {
    const struct byi_machine *machine; /* for which the code was compiled; NULL:
                                        * this machine */
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
    bool weights_mapped; /* mapped, so dropped pages are read again */
    /* if weights is NULL: the parts of the weights, ascending and disjoint,
     * with zeros between them */
    const struct byi_weights_span *spans;
    uint32_t n_spans;
    /* The fused kernels: `source` while the artifact is written, `code` once it
     * is loaded. NULL: there are no kernels, so their twins run. */
    const char *source;
    size_t source_bytes;
    uint32_t n_kernels;
    const struct byi_code_table *code;
    uint64_t code_bytes;
    /* The C of regions whose backends generated C, in the order of the plan's
     * regions: `sources` while the artifact is written, `units` once it is
     * loaded. For an image in memory, `functions` has the compiled functions by
     * region; NULL for other regions, or if there is no code for this machine.
     */
    const struct byi_c_unit *const *sources;
    uint32_t n_sources;
    const struct byi_unit_table *units;
    uint64_t units_bytes;
    const byi_unit_fn *functions;
    const char *text; /* the section with the code of kernels and units */
    uint64_t text_bytes;
};

/* The name of region `region` (in the plan's order), as in the ledger; NULL if
 * the model has no region of that number. Lives as long as the model. */
BYOC_API const char *byoc_internal_region_name(const struct byoc_model *model,
                                               uint32_t region);

/* The reason why region `region` (in the plan's order) runs its native twin
 * although a backend was chosen. NULL if the backend runs it, or if the caller
 * requested the twins (native_only). Lives as long as the model. */
BYOC_API const char *byoc_internal_region_fault(const struct byoc_model *model,
                                                uint32_t region);

/* Set faults[i], in `arena`, to the reason why region i runs its native twin in
 * a run with these sizes of all of the inputs' symbols. Leaves faults[i]
 * unchanged if the backend runs the region. Does not keep the specialisation.
 * For a model that was loaded without backends, the reason is why no backend
 * could build the region. Errors: those of byoc_model_warm. */
BYOC_API enum byoc_status byoc_internal_region_faults(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byi_arena *arena, const char **faults, struct byoc_error *err);

/* Check that the model accepts these sizes of all of its inputs' symbols, like
 * byoc_model_warm but without calling a backend. Errors: those of
 * byoc_model_warm. */
BYOC_API enum byoc_status byoc_internal_check_dims(
    const struct byoc_model *model, const struct byoc_dim *dims, uint32_t n,
    struct byoc_error *err);

/* Call the backend's describe() (byoc/backend.h) for a region; `on_step` is
 * called for each step of the region. Does nothing if the backend has no
 * describe(), the region runs its native twin, or its inputs or outputs have
 * symbolic dims. Threads: safe. */
BYOC_API void byoc_internal_region_describe(const struct byoc_model *model,
                                            uint32_t region,
                                            byoc_trace_fn on_step, void *ctx);

/* A step that ended: its operator or region, and its provenance. */
struct byi_watched {
    const char *step, *sources;
    bool in_main; /* not in a twin or in another function */
    bool owns;    /* it computed its results in memory of the state */
};
/* Called after every step with each of its results. The tensor is valid during
 * the call, which may change its elements for later steps if the step owns it.
 */
typedef void (*byi_watch_fn)(void *ctx, const struct byi_watched *step,
                             const struct byi_tensor *value);
/* Call `watch` in the state's following runs; NULL: stop. Two models of the
 * same compile, one loaded with backends and one without, have the same steps.
 */
BYOC_API void byoc_internal_state_watch(struct byoc_state *state,
                                        byi_watch_fn watch, void *ctx);

/* Called before a region of any function runs, by its backend or its twin. The
 * operands in[0..n-1] are valid during the call; `in` is NULL if n is above
 * 512. */
typedef void (*byi_region_fn)(void *ctx, uint32_t region, uint32_t n,
                              const struct byi_tensor *const *in);
/* Call `on_region` before each region that the state's following runs reach;
 * NULL: stop. */
BYOC_API void byoc_internal_state_watch_regions(struct byoc_state *state,
                                                byi_region_fn on_region,
                                                void *ctx);

/* A region of a model. The strings and constants are valid as long as the
 * model, `consts` as long as the arena. */
struct byi_region_facts {
    const char *backend, *symbol;
    const char *blob; /* its JSON, or the result of the backend's compile();
                       * NULL if the model is not from an artifact */
    uint64_t blob_bytes;
    uint32_t n_consts;
    const struct byi_tensor *const *consts; /* indexed by "data" in the region's
                                             * JSON */
};
/* Set *facts to those of region `region`, in the plan's order. Errors:
 * BYOC_EINVAL (no such region), BYOC_ENOMEM. */
BYOC_API enum byoc_status byoc_internal_region(const struct byoc_model *model,
                                               uint32_t region,
                                               struct byi_arena *arena,
                                               struct byi_region_facts *facts,
                                               struct byoc_error *err);

/* A set of sizes for which to prepare a specialisation: one size for each
 * symbol of the inputs. */
struct byi_warm_set {
    uint32_t n;
    const struct byoc_dim *dims;
};
/* The sets that an artifact lists: loading it prepares a specialisation for
 * each. */
struct byi_warm {
    uint32_t n;
    const struct byi_warm_set *at;
};

/* --- bind.c --------------------------------------------------------------- */

/* The constants that a backend receives with a region. The model owns their
 * data. */
struct byi_region_consts {
    uint32_t n;
    const struct byoc_view *at;
    const struct byoc_ext *ext; /* the region's extension; may be NULL */
};
/* A region specialised for given sizes; its members are in an arena. */
struct byi_sized {
    const char *json; /* in which all dims are numbers */
    size_t json_bytes;
    uint32_t n_outputs;
    const struct byi_type **outputs;
};
/* Specialise the region `json` of n bytes, whose dims may be symbolic, for
 * inputs of these types. Allocates the members of `sized` in `arena`. Errors:
 * BYOC_ETYPE (an input does not fit, a symbol has two sizes, an operator
 * refuses these sizes), BYOC_EUNSUPPORTED (a size depends on data), BYOC_ELIMIT
 * (an input of 2^63 elements or 2^64 bytes), BYOC_EINVAL (another number of
 * inputs), and those of reading the region. */
BYOC_API enum byoc_status byoc_internal_region_bind(
    const char *json, size_t n, const struct byi_region_consts *consts,
    uint32_t n_inputs, const struct byi_type *const *inputs,
    struct byi_arena *arena, struct byi_sized *sized, struct byoc_error *err);

/* --- weights.c ------------------------------------------------------------ */

/* Compute the hash of an image's weights: the SHA-256 of the digests, as hex,
 * of their pieces of 4 MiB. Hashes the pieces on all threads. */
BYOC_API void byoc_internal_weights_hash(const struct byi_image *image,
                                         char hex[65]);

/* --- model.c: functions for byoc's compiler, besides the public header ---- */

/* Make a model from an image in memory, which must outlive the model; free it
 * with byoc_model_free. `params` may be NULL. On failure *model is NULL.
 * Errors: those of byoc_model_load. */
BYOC_API enum byoc_status byoc_internal_model_open(
    const struct byi_image *image, const struct byoc_load_params *params,
    struct byoc_model **model, struct byoc_error *err);

/* Use the log and require_backends of `params` from now on; first logs the
 * messages of loading again. Call it before the model is used. */
BYOC_API void byoc_internal_model_adopt(struct byoc_model *model,
                                        const struct byoc_load_params *params);

/* --- artifact.c: an artifact's sections, read as an ELF file, never run --- */

/* A mapped artifact and its sections, which live until
 * byoc_internal_artifact_close. */
struct byi_artifact {
    struct byi_image image;
    const void *map;
    size_t map_bytes;
    const struct byi_descriptor *descriptor; /* in the map */
    /* .byoc.kernels, .byoc.units and .text: their distance in bytes from the
     * descriptor when the file is mapped, and their length; 0 if the artifact
     * has no such section */
    int64_t code;
    uint64_t code_bytes;
    int64_t units;
    uint64_t units_bytes;
    int64_t text;
    uint64_t text_bytes;
};
/* Map the artifact at `path`, and check its bounds, checksum and version. On
 * failure *a is all zero. Errors: BYOC_EIO, BYOC_EPARSE (not an artifact, or
 * damaged), BYOC_EINCOMPATIBLE (of another version or for another processor).
 */
BYOC_API enum byoc_status byoc_internal_artifact_open(const char *path,
                                                      struct byi_artifact *a,
                                                      struct byoc_error *err);
/* Like byoc_internal_artifact_open, but messages call the file `name`. */
enum byoc_status byi_artifact_open(const char *path, const char *name,
                                   struct byi_artifact *a,
                                   struct byoc_error *err);
/* Unmap the artifact and set *a to zero, which it may already be. */
BYOC_API void byoc_internal_artifact_close(struct byi_artifact *a);
/* Compare the hashes of plan, ledger, blobs and weights with the manifest.
 * Errors: BYOC_EPARSE (a hash differs). */
BYOC_API enum byoc_status byoc_internal_artifact_verify(
    const struct byi_artifact *a, struct byoc_error *err);

/* load.c: an artifact that is opened only for its code of fused kernels and
 * backends' C. An image that has the members of artifact.image from `code` on
 * can run this code while the library is open. Errors: those of
 * byoc_model_load. */
struct byi_code_library {
    struct byi_artifact artifact;
    void *library;
};
BYOC_API enum byoc_status byoc_internal_code_open(const char *path,
                                                  struct byi_code_library *code,
                                                  struct byoc_error *err);
BYOC_API void byoc_internal_code_close(struct byi_code_library *code);

/* An artifact ends in BYI_SUM_MAGIC and 64 hex digits: the SHA-256 of all bytes
 * before them except the weights. Loading refuses a file without it, such as
 * one that strip rewrote. */
#define BYI_SUM_MAGIC "BYOCSUM1"
enum { BYI_SUM_BYTES = 8 + 64 };

/* --- library.c: opens libraries, with the loader's lock ------------------- */

/* Check that the file may be opened as a library. Messages call it `name`.
 * Errors: BYOC_EIO (not found, not readable), BYOC_EPARSE (not a shared
 * library), BYOC_EINVAL (not absolute, or writable by all users). */
enum byoc_status byi_library_check(const char *path, const char *name,
                                   struct byoc_error *err);
/* Check the file and open it with RTLD_NOW | RTLD_LOCAL. Close *handle with
 * byi_library_close; it is NULL after a failure. Errors: those of
 * byi_library_check, and BYOC_EBACKEND with the loader's message. */
enum byoc_status byi_library_open(const char *path, const char *name,
                                  void **handle, struct byoc_error *err);
/* As byi_library_open, even if the loader has another library that was opened
 * by this path and whose file has been replaced since. Needs /proc. Errors:
 * also BYOC_EIO (the file cannot be opened). */
enum byoc_status byi_library_open_anew(const char *path, const char *name,
                                       void **handle, struct byoc_error *err);
void *byi_library_symbol(void *handle, const char *name); /* NULL: none */
void byi_library_close(void *handle);                     /* may be NULL */
/* Call dl_iterate_phdr with the lock of core/base/loader.h, which all code of
 * the runtime must hold during such a walk. */
int byi_library_walk(int (*visit)(struct dl_phdr_info *info, size_t size,
                                  void *ctx),
                     void *ctx);
/* Open the library `path`, which is never closed, and look up a symbol. Errors:
 * as byi_library_open, and BYOC_EBACKEND (no such symbol). */
BYOC_API enum byoc_status byoc_internal_library_find(const char *path,
                                                     const char *name,
                                                     void **symbol,
                                                     struct byoc_error *err);
/* A library that was opened by its path, or from bytes in memory through a file
 * that has no name. */
struct byi_memory_library {
    void *handle; /* NULL: not open */
};
/* Write n bytes to a new file in memory that has no name and that only this
 * user can read. The caller closes *fd. Errors: BYOC_ENOMEM, BYOC_EIO. */
enum byoc_status byi_memory_file(const void *data, size_t n, int *fd,
                                 struct byoc_error *err);
/* Open the library in data[0..n-1] through a file of byi_memory_file. Close it
 * with byoc_internal_library_unmap. Errors: those of byi_memory_file, and
 * BYOC_EBACKEND with the loader's message. */
BYOC_API enum byoc_status byoc_internal_library_map(
    const void *data, size_t n, struct byi_memory_library *library,
    struct byoc_error *err);
BYOC_API byi_unit_fn
byoc_internal_library_function(const struct byi_memory_library *library,
                               const char *name); /* NULL: none */
BYOC_API void byoc_internal_library_unmap(struct byi_memory_library *library);
/* Copy the folder of the library or program that contains this code to `path`,
 * of n bytes; returns false if the folder is unknown or its path does not fit.
 */
bool byi_library_find_folder(char *path, size_t n);

/* --- log.c ---------------------------------------------------------------- */

/* The destination of log lines; a zero-initialised one drops them. */
struct byi_log {
    void (*log)(void *ctx, enum byoc_severity severity, const char *line);
    void (*log_line)(void *ctx,
                     const char *line); /* as in struct byoc_load_params */
    void *ctx;
    enum byoc_severity least; /* lines of lower severity are dropped */
};
/* Set *log to the destination in `params`. If log_severity is 0, `log` receives
 * lines of at least BYOC_INFO, and `log_line` all lines. */
void byi_log_init(struct byi_log *log, const struct byoc_load_params *params);
/* Log a formatted line; lines longer than 1399 bytes are cut. `log_line` gets
 * "warning: " before lines of BYOC_WARNING and higher. */
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
    void *ctx; /* passed to both functions. If they are NULL, byi_acquire and
                * byi_release are called instead */
    uint64_t limit; /* bytes that may be allocated; UINT64_MAX: no limit */
    _Atomic uint64_t allocated, peak; /* bytes, now and at most */
    /* NULL, or a mapped file whose pages are dropped now and then while weights
     * are packed. So memory never holds both the whole file and all packed
     * copies. */
    const void *file;
    uint64_t file_bytes;
    _Atomic uint32_t packers; /* number of threads that pack weights */
    _Atomic uint64_t
        undropped; /* bytes allocated since pages were last dropped */
};
/* Create a model's memory with the allocator and limit of `params`. NULL if an
 * allocation fails. */
struct byi_memory *byi_memory_new(const struct byoc_load_params *params);
/* Drop the pages that lie entirely in the constant of `bytes` bytes at `at`, if
 * the image's weights are mapped from a file. The operating system reads them
 * again when they are used. Threads: safe. */
void byi_image_drop_const(const struct byi_image *image, const void *at,
                          uint64_t bytes);
/* Record that the calling thread starts (true) or stops (false) packing
 * weights. Threads: safe. */
void byi_memory_set_packing(struct byi_memory *memory, bool packs);
/* Free *memory after everything that was allocated from it. *memory may be NULL
 * and becomes NULL. */
void byi_memory_free(struct byi_memory **memory);
/* Allocate memory aligned to BYI_ALIGN; NULL if that fails or exceeds the
 * limit. `memory` NULL: no limit and no allocator. Threads: safe. */
void *byi_memory_allocate(struct byi_memory *memory, uint64_t bytes);
/* Return `status`; if it is BYOC_ENOMEM and there is a limit, add the limit to
 * the message, since the caller may have set it too low. */
enum byoc_status byi_memory_explain(const struct byi_memory *memory,
                                    enum byoc_status status,
                                    struct byoc_error *err);
/* Free memory from byi_memory_allocate, with the same `memory`; returns the
 * size that was requested. `at` may be NULL. */
uint64_t byi_memory_release(struct byi_memory *memory, void *at);

/* --- host.c, plugin.c, plugin_path.c -------------------------------------- */

struct byi_library;
/* An opened plug-in. */
struct byi_plugin {
    struct byi_library *library;
    const char *path;
    /* a copy that has all members of this header's version */
    const struct byoc_backend *backend;
    /* ctx is this plug-in; the compiler sets match_*, which are NULL here */
    struct byoc_host host;
    uint32_t threads;
    byi_gomp_fn openmp; /* of the OpenMP library whose threads the backend uses;
                         * NULL: it uses the host's threads */
    struct byi_log log;
    struct byi_memory *memory; /* the memory of its model, or NULL */
    _Atomic uint64_t acquired; /* bytes that the backend acquired and has not
                                * released */
    struct byi_plugin *next;   /* of the model's plug-ins */
};
/* Fill plugin->host with the services of this process. Its ctx is the plug-in;
 * `abi` is the version agreed on. */
void byi_plugin_init_host(struct byi_plugin *plugin, uint32_t abi);
/* Open one plug-in by absolute path, with RTLD_NOW | RTLD_LOCAL. Checks
 * version, sizes, required members and name. If `threads` is 0, the number is
 * decided as for loading a model. Close *plugin with
 * byoc_internal_plugin_close; it is NULL after a failure. Errors: those of
 * byi_library_open, byi_plugin_agree and byi_customs_open, BYOC_EBACKEND (a
 * wrong member). Threads: safe. */
BYOC_API enum byoc_status byoc_internal_plugin_open(const char *path,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
/* Close the plug-in for this user; the last user's call also closes the library
 * if the backend has quiesce(). *plugin may be NULL and becomes NULL. */
BYOC_API void byoc_internal_plugin_close(struct byi_plugin **plugin);
/* List the plug-ins of `plugins`, a list as in struct byoc_load_params, as
 * absolute paths, one per line. First come the files as given, and for each
 * folder its libbyoc_backend_*.so, sorted. The plug-ins in the runtime's folder
 * and its byoc/ follow. *places, unless NULL, lists the places that were
 * searched. The caller frees both texts. Errors: BYOC_EINVAL (a path that is
 * not absolute, a file that others may write), BYOC_EBACKEND (a folder without
 * plug-ins). */
BYOC_API enum byoc_status byoc_internal_plugin_list(const char *plugins,
                                                    struct byi_text *paths,
                                                    struct byi_text *places,
                                                    struct byoc_error *err);
/* Load the plug-in of backend `name`: libbyoc_backend_NAME.so in a folder, or
 * any file in the list. Errors: BYOC_EIO (there is none), and those of opening
 * it. */
BYOC_API enum byoc_status byoc_internal_plugin_find(const char *plugins,
                                                    const char *name,
                                                    uint32_t threads,
                                                    struct byi_plugin **plugin,
                                                    struct byoc_error *err);
/* Bytes that the plug-in has acquired from its host and not released. Threads:
 * safe. */
uint64_t byi_plugin_acquired(const struct byi_plugin *plugin);
/* Convert the result of a call of a plug-in to a status. NULL becomes BYOC_OK.
 * A failure, which is freed, becomes the status for its code, by default
 * BYOC_EBACKEND, with the message "BACKEND: WHERE: TEXT". */
enum byoc_status byi_plugin_status(struct byoc_fail *fail,
                                   const struct byi_plugin *plugin,
                                   const char *where, struct byoc_error *err);

/* Call the backend's compile(). If compile() succeeds but returns no data, this
 * returns a failure. After a failure blob->data is NULL; otherwise the caller
 * releases it to the host. */
BYOC_API struct byoc_fail *byoc_internal_plugin_compile(
    const struct byi_plugin *plugin, const struct byoc_region *region,
    struct byoc_blob *blob);
/* Call the backend's load() for a region. If the blob is not aligned to
 * BYI_ALIGN, the backend gets an aligned copy. The caller passes *compiled to
 * unload(). */
BYOC_API struct byoc_fail *byoc_internal_plugin_load(
    const struct byi_plugin *plugin, const struct byoc_region *region,
    void **compiled);
/* Call the backend's unload(). */
void byi_plugin_unload(const struct byi_plugin *plugin, void *compiled);
/* Call the backend's run() for a loaded region, on the threads of the calling
 * thread's turn (workers.h). */
struct byoc_fail *byi_plugin_run(const struct byi_plugin *plugin,
                                 void *compiled, void *state,
                                 const struct byoc_run_args *args);
/* Record the plug-in in whose run(), of its backend or an operator, the calling
 * thread is; NULL: none. Returns the previous value. */
const struct byi_plugin *byi_plugin_set_running(
    const struct byi_plugin *plugin);
/* byi_child_record_steps and byi_child_step_now (core/base/child.h) in this
 * library. A run() of the calling thread is a step, too, which began at
 * UINT64_MAX, since runs do not record the time. */
BYOC_API void byoc_internal_record_steps(void);
BYOC_API uint64_t byoc_internal_step_now(const char **plugin,
                                         const char **text);
/* Call the backend's state_new() and state_free() for `compiled`. Without them,
 * the state is memory of state_bytes() bytes from the host, or NULL. */
struct byoc_fail *byi_plugin_state_new(const struct byi_plugin *plugin,
                                       void *compiled, void **state);
void byi_plugin_state_free(const struct byi_plugin *plugin, void *compiled,
                           void *state);
/* Returns the bytes of scratch memory that run() needs; 0 if the backend has no
 * scratch_bytes(). */
uint64_t byi_plugin_scratch_bytes(const struct byi_plugin *plugin,
                                  const void *compiled);

/* --- custom.c ------------------------------------------------------------- */

struct byoc_operator;    /* byoc/custom.h */
struct byi_customs;      /* the operators of a plug-in */
struct byi_custom_calls; /* core/ops/custom.h */
/* Check the operators of a plug-in and register them; *customs is NULL if the
 * plug-in has none. Errors: BYOC_EBACKEND, BYOC_ENOMEM. */
enum byoc_status byi_customs_open(const struct byi_plugin *plugin,
                                  struct byi_customs **customs,
                                  struct byoc_error *err);
void byi_customs_close(struct byi_customs *customs); /* may be NULL */
/* The lock of all operators, which a fork must hold. */
void byi_customs_lock(void);
void byi_customs_unlock(void);
/* The plug-in's operator of this domain and name with the highest `since` of at
 * most `version`; NULL if there is none. Lives as long as the plug-in. */
BYOC_API const struct byoc_operator *byoc_internal_custom_row(
    const struct byi_plugin *plugin, const char *domain, const char *name,
    int64_t version);
/* The functions that other libraries of byoc pass to byi_custom_use. */
BYOC_API const struct byi_custom_calls *byoc_internal_custom_calls(void);

/* --- plugin_abi.c --------------------------------------------------------- */

/* Check that the plug-in at `path` can work with this host, by reading its file
 * without running its code. Sets *abi to the version that both support. Errors:
 * BYOC_EPARSE (not a shared library, damaged), BYOC_EBACKEND (not a plug-in),
 * BYOC_EINCOMPATIBLE (another machine, version or sanitizer, or a struct that
 * differs; the message names the first difference). */
enum byoc_status byi_plugin_agree(const char *path, uint32_t *abi,
                                  struct byoc_error *err);
/* Whether the file is a plug-in of any version. Does not run its code. */
BYOC_API bool byoc_internal_is_plugin(const char *path);

/* --- copies.c ------------------------------------------------------------- */

/* Set *out to a text with a line for each kind of library that this process
 * should load only once but has loaded several times. A line has the kind and
 * the files. The text is "" if there is no such kind. The caller frees the
 * text. */
BYOC_API void byoc_internal_copies(struct byi_text *out);

/* --- cgroup.c ------------------------------------------------------------- */

/* Functions that read a limit from one cgroup folder, of version 1 or 2. They
 * return 0 if there is no limit. */
struct byi_cgroup_limit {
    const char *controller; /* of version 1 */
    uint64_t (*v1)(const char *folder), (*v2)(const char *folder);
};
/* The lowest limit of the cgroups listed in file `self` ("/proc/self/cgroup")
 * and of their parents, which are mounted at `root`; 0: no limit. */
uint64_t byi_cgroup_least(const char *self, const char *root,
                          const struct byi_cgroup_limit *limit);
/* Read the first line of a file; returns false if that fails. */
bool byi_cgroup_read_line(const char *path, char *line, size_t n);
/* Bytes of memory that this process may use: the machine's memory, or the
 * lowest limit of its cgroups if that is less. `self` and `root`: as for
 * byi_cgroup_least. */
uint64_t byi_memory_limit_from(const char *self, const char *root);

/* trace.c: remove the runtime's temporary files, by calling byi_temp_clear
 * (core/base/temp.h) in this library. */
BYOC_API void byoc_internal_temp_clear(void);

/* --- threads.c ------------------------------------------------------------ */

/* The input of byi_threads_from. */
struct byi_thread_facts {
    uint32_t option;
    const char *byoc_env, *omp_env; /* NULL: not set */
    uint32_t affinity;              /* CPUs in the mask; 0 counts as 1 */
    const char *cgroup_self;        /* "/proc/self/cgroup" */
    const char *cgroup_root;        /* "/sys/fs/cgroup" */
};
/* Decide the number of threads. It is the first of `option` (0: not set),
 * byoc_env and omp_env that is set, otherwise the CPUs of the affinity mask. It
 * never exceeds the affinity mask and the cgroup quota (v1 and v2). `why`, of n
 * bytes, receives the reason. Errors: BYOC_EINVAL if the option or
 * BYOC_NUM_THREADS is not a number from 1 to 4096. */
enum byoc_status byi_threads_from(const struct byi_thread_facts *facts,
                                  uint32_t *threads, char *why, size_t n,
                                  struct byoc_error *err);
/* Like byi_threads_from, with the environment, affinity mask and cgroups of
 * this process. */
enum byoc_status byi_threads_decide(uint32_t option, uint32_t *threads,
                                    char *why, size_t n,
                                    struct byoc_error *err);
/* Decide how long a thread spins before it sleeps, and whether it sleeps at
 * once while other processes compete. The source is `wait`, otherwise the
 * environment's BYOC_WAIT_POLICY. Errors: BYOC_EINVAL (the value that decides
 * is not a policy). */
enum byoc_status byi_wait_decide(enum byoc_wait wait, uint64_t *spin_ns,
                                 bool *adapts, struct byoc_error *err);

/* Decide the number of threads like byi_threads_decide, without the reason; for
 * the compiler. */
BYOC_API enum byoc_status byoc_internal_threads(uint32_t option,
                                                uint32_t *threads,
                                                struct byoc_error *err);

/* --- workers.c ------------------------------------------------------------ */

/* Run fn(arg, 0) ... fn(arg, n - 1) on this process's workers; returns when all
 * are done. */
BYOC_API void byoc_internal_parallel_for(uint32_t n,
                                         void (*fn)(void *, uint32_t),
                                         void *arg);

/* --- peak.c --------------------------------------------------------------- */

/* Measure the FLOP/s of float32 multiply-adds on registers, with the widest
 * instruction set that may be used, on `threads` threads at the same time.
 * Returns the best of some short runs, about 3 ms in all. */
BYOC_API double byoc_internal_peak_flops(uint32_t threads);
/* Measure the bandwidth of reading `bytes` bytes of memory, in bytes per
 * second. Each thread reads a share of them in each round. The result is that
 * of the fastest round. Returns 0 if an allocation fails. */
BYOC_API double byoc_internal_peak_read(uint64_t bytes, uint32_t threads);

#endif
