/* runtime/internal.h: the runtime's own view: images, plans, plug-ins. */
#ifndef BYI_RUNTIME_H
#define BYI_RUNTIME_H

#include <byoc/backend.h>

#include "core/base.h"

#define BYI_ARTIFACT_VERSION 1
#define BYI_PLAN_VERSION 1

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
    const char *ledger;      /* may be NULL */
    size_t ledger_bytes;
    const char *blobs;       /* the regions' blobs, one after the other */
    size_t blobs_bytes;
    const void *weights;     /* BYI_ALIGN-aligned, or NULL */
    uint64_t weights_bytes;
    const struct byi_span *spans; /* weights NULL: its pieces, ascending and
                                     disjoint, zeros between them           */
    uint32_t n_spans;
};

/* --- model.c: what the compiler side uses of the runtime besides the public
 * header; exported under byoc_internal_, not for others ------------------- */

/* A model from an image in memory; the image must outlive it. */
BYOC_API enum byoc_status
byoc_internal_model_open(const struct byi_image *image,
                         const struct byoc_load_params *params,
                         struct byoc_model **model, struct byoc_error *err);

/* --- artifact.c: an artifact's sections, read as an ELF file, never run --- */

/* Map the artifact at `path` and find its sections. Bounds-checked; rejects
 * what is not ours, and other versions (BYOC_EINCOMPATIBLE). */
struct byi_artifact {
    struct byi_image image;
    const void *map;
    size_t map_bytes;
};
enum byoc_status byi_artifact_open(const char *path, struct byi_artifact *a,
                                   struct byoc_error *err);
void byi_artifact_close(struct byi_artifact *a);

/* --- plugin.c: the one file that owns dlopen ----------------------------- */

struct byi_plugin {
    void *handle;
    const char *path;
    const struct byoc_backend *backend;
    struct byoc_host host;
    struct byi_plugin *next;
};
/* Load one plug-in by absolute path; RTLD_NOW | RTLD_LOCAL; checks version,
 * sizes, required members, name. One message for each way to fail. */
BYOC_API enum byoc_status byoc_internal_plugin_open(const char *path, uint32_t threads,
                                 struct byi_plugin **plugin,
                                 struct byoc_error *err);
BYOC_API void byoc_internal_plugin_close(struct byi_plugin **plugin);

/* --- threads.c ------------------------------------------------------------ */

/* How many threads, and why: option, BYOC_NUM_THREADS, OMP_NUM_THREADS,
 * affinity mask, cgroup quota (v1 and v2). `why` gets a sentence. */
uint32_t byi_threads_decide(uint32_t option, char *why, size_t n);

#endif
