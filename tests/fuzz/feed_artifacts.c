/* SPDX-License-Identifier: Apache-2.0 */
/* feed_artifacts.c: the feed functions of artifacts and their parts. */
#include <byoc/byoc.h>

#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "runtime/internal.h"
#include "runtime/plan.h"

/* Whether the artifact ends in a sum; then byoc must detect every changed byte.
 */
static bool has_sum(const struct fuzz_case *c)
{
    return c->n >= BYI_SUM_BYTES &&
           memcmp(c->bytes + c->n - BYI_SUM_BYTES, BYI_SUM_MAGIC,
                  strlen(BYI_SUM_MAGIC)) == 0;
}

bool fuzz_feed_artifact(struct fuzz_case *c)
{
    const char *path = fuzz_as_file(c, "mutant.so");
    const struct byoc_load_params load = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .threads = 1};
    struct byi_artifact a;
    struct byoc_error err;
    if (byoc_internal_artifact_open(path, &a, &err) != BYOC_OK)
        return fuzz_refused(c, "open", &err);
    bool good = byoc_internal_artifact_verify(&a, &err) == BYOC_OK ||
                fuzz_refused(c, "verify", &err);
    byoc_internal_artifact_close(&a);
    if (!good || !has_sum(c))
        return good; /* no checksum covers the loader's data */
    struct byoc_model *model = NULL;
    if (byoc_model_load(path, &load, &model, &err) != BYOC_OK)
        return fuzz_refused(c, "load", &err);
    good = fuzz_run(c, model);
    byoc_model_free(&model);
    return good;
}

/* Open the artifact at `path`. It stays open until the child ends, since
 * checking the sum for each input takes longer than most loads. On failure
 * returns NULL, and c->why has the reason. */
static const struct byi_artifact *open_once(struct fuzz_case *c,
                                            const char *path)
{
    static struct origin {
        char path[512];
        struct byi_artifact artifact;
    } open_origins[16];
    static uint32_t n;
    struct byoc_error err;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(open_origins[i].path, path) == 0)
            return &open_origins[i].artifact;
    struct origin *o = &open_origins[n];
    if (n == BYI_COUNT(open_origins) ||
        byoc_internal_artifact_open(path, &o->artifact, &err) != BYOC_OK) {
        fuzz_wrong(c, "no artifact to put the part into: ", path);
        return NULL;
    }
    snprintf(o->path, sizeof o->path, "%s", path);
    n++;
    return &o->artifact;
}

/* The artifact that the part was taken from: NAME.so for NAME.plan, or
 * digits.so if that file does not exist. If it cannot be opened, returns NULL,
 * and c->why has the reason. */
static const struct byi_artifact *find_origin(struct fuzz_case *c)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.so", c->seeds, c->origin);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "%s/digits.so", c->seeds);
    return open_once(c, path);
}

/* Load an image with a part of it changed, and run it. */
static bool feed_image(struct fuzz_case *c, const struct byi_image *image)
{
    const struct byoc_load_params load = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so",
        .native_only = (int)fuzz_below(&c->rng, 2),
        .threads = 1};
    struct byoc_model *model = NULL;
    struct byoc_error err;
    if (byoc_internal_model_open(image, &load, &model, &err) != BYOC_OK)
        return fuzz_refused(c, "load", &err);
    bool good = fuzz_run(c, model);
    byoc_model_free(&model);
    return good;
}

bool fuzz_feed_plan(struct fuzz_case *c)
{
    const struct byi_artifact *a = find_origin(c);
    if (!a)
        return false;
    struct byi_image image = a->image;
    image.plan = c->bytes;
    image.plan_bytes = c->n;
    return feed_image(c, &image);
}

bool fuzz_feed_manifest(struct fuzz_case *c)
{
    const struct byi_artifact *a = find_origin(c);
    if (!a)
        return false;
    struct byi_image image = a->image;
    image.manifest = c->bytes;
    image.manifest_bytes = c->n;
    return feed_image(c, &image);
}
