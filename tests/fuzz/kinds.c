/* kinds.c: who reads each kind of mutant, and what must hold then. */
#include <byoc/byoc.h>

#include <string.h>
#include <unistd.h>

#include "driver/npy.h"
#include "core/core.h"
#include "frontend_onnx/onnx.h"
#include "fuzz.h"
#include "partition/page.h"
#include "partition/report.h"
#include "runtime/internal.h"
#include "runtime/plan.h"

static bool wrong(struct fuzz_case *c, const char *what, const char *detail)
{
    snprintf(c->why, sizeof c->why, "%s%.900s", what, detail);
    return false;
}

/* The mutant as a file of this child's; the path is good until the next. */
static const char *as_file(struct fuzz_case *c, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", c->temp, name);
    if (!fuzz_write(path, c->bytes.at, c->bytes.n))
        wrong(c, "cannot write ", path);
    return path;
}

/* --- models, text -----------------------------------------------------------
 */

static void mutate_model(struct fuzz_rng *rng, struct byi_text *bytes)
{
    if (fuzz_below(rng, 3) == 0 || !fuzz_onnx(rng, bytes))
        fuzz_bytes(rng, bytes);
}

static bool feed_model(struct fuzz_case *c)
{
    return fuzz_compile_and_run(c, as_file(c, "mutant.onnx"));
}

/* What is printed must read back as itself. */
static bool print_and_parse(struct fuzz_case *c, const struct byi_module *m)
{
    struct byi_text first = {0}, second = {0};
    struct byi_module *again = NULL;
    struct byoc_error err;
    char side[512];
    snprintf(side, sizeof side, "%s/side.consts", c->temp);
    FILE *stream = fopen(side, "wb");
    byi_print_module(m, &first, stream);
    if (stream)
        fclose(stream);
    bool good = true;
    if (byi_parse_module(first.at, first.n, "printed", side, &again, &err) !=
        BYOC_OK) {
        good = wrong(c, "what was printed does not read: ", err.text);
    } else {
        byi_print_module(again, &second, NULL);
        if (strcmp(first.at, second.at) != 0)
            good = wrong(c, "what was printed reads as another module", "");
    }
    byi_module_free(&again);
    byi_text_free(&first);
    byi_text_free(&second);
    return good;
}

static bool feed_text(struct fuzz_case *c)
{
    struct byi_module *m = NULL;
    struct byoc_error err;
    if (byi_parse_module(c->bytes.at, c->bytes.n, "mutant", NULL, &m, &err) !=
        BYOC_OK)
        return fuzz_refused(c, "parse", &err);
    bool good = true;
    if (byi_verify(m, &err) != BYOC_OK)
        good = wrong(c, "parsed, but does not verify: ", err.text);
    good = good && print_and_parse(c, m);
    byi_module_free(&m);
    return good && fuzz_compile_and_run(c, as_file(c, "mutant.ir"));
}

/* --- artifacts and their parts ----------------------------------------------
 */

/* All that is said of a ledger. */
static bool read_ledger(struct fuzz_case *c, const char *json, size_t n)
{
    struct byi_report r;
    struct byi_text out = {0};
    struct byoc_error err;
    bool good = true;
    if (byi_report_read(json, n, &r, &err) != BYOC_OK)
        return fuzz_refused(c, "ledger", &err);
    byi_report_text(&r, fuzz_below(&c->rng, 2), &out);
    if (r.n_nodes &&
        byi_report_explain(&r, r.nodes[fuzz_below(&c->rng, r.n_nodes)].name,
                           &out, &err) != BYOC_OK)
        good = wrong(c, "a node that is there: ", err.text);
    if (byi_report_diff(&r, &r, 0, fuzz_below(&c->rng, 2), &out))
        good = wrong(c, "a ledger is worse than itself", "");
    byi_text_free(&out);
    byi_report_free(&r);
    return good;
}

/* It ends in a sum: then every changed byte must be seen. */
static bool has_sum(const struct byi_text *t)
{
    return t->n >= BYI_SUM_BYTES &&
           memcmp(t->at + t->n - BYI_SUM_BYTES, BYI_SUM_MAGIC,
                  strlen(BYI_SUM_MAGIC)) == 0;
}

static bool feed_artifact(struct fuzz_case *c)
{
    const char *path = as_file(c, "mutant.so");
    const struct byoc_load_params load = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .threads = 1};
    bool changed = c->bytes.n != c->original->n ||
                   memcmp(c->bytes.at, c->original->at, c->bytes.n) != 0;
    struct byi_artifact a;
    struct byoc_error err;
    if (byoc_internal_artifact_open(path, &a, &err) != BYOC_OK)
        return fuzz_refused(c, "open", &err);
    const bool read = read_ledger(c, a.image.ledger, a.image.ledger_bytes);
    bool whole = byoc_internal_artifact_verify(&a, &err) == BYOC_OK;
    bool good = read && (whole || fuzz_refused(c, "verify", &err));
    byoc_internal_artifact_close(&a);
    if (!good || !has_sum(&c->bytes))
        return good; /* nothing vouches for what the loader reads */
    struct byoc_model *model = NULL;
    if (byoc_model_load(path, &load, &model, &err) != BYOC_OK)
        return fuzz_refused(c, "load", &err);
    good = fuzz_run(c, model);
    byoc_model_free(&model);
    /* weights are hashed by verify alone: loading need not read them all */
    return good && changed && whole ? wrong(c, "changed, yet loaded", "")
                                    : good;
}

/* The artifact that a part was taken from: NAME.so of NAME.plan. */
static bool open_origin(struct fuzz_case *c, struct byi_artifact *a)
{
    const char *base = strrchr(c->file, '/');
    base = base ? base + 1 : c->file;
    int n = (int)strcspn(base, ".");
    char path[512];
    struct byoc_error err;
    snprintf(path, sizeof path, "%s/%.*s.so", c->seeds, n, base);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "%s/digits.so", c->seeds);
    return byoc_internal_artifact_open(path, a, &err) == BYOC_OK ||
           wrong(c, "no artifact to put the part into: ", err.text);
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

static bool feed_plan(struct fuzz_case *c)
{
    struct byi_artifact a;
    if (!open_origin(c, &a))
        return false;
    a.image.plan = c->bytes.at;
    a.image.plan_bytes = c->bytes.n;
    bool good = feed_image(c, &a.image);
    byoc_internal_artifact_close(&a);
    return good;
}

static bool feed_manifest(struct fuzz_case *c)
{
    struct byi_artifact a;
    if (!open_origin(c, &a))
        return false;
    a.image.manifest = c->bytes.at;
    a.image.manifest_bytes = c->bytes.n;
    bool good = feed_image(c, &a.image);
    byoc_internal_artifact_close(&a);
    return good;
}

static bool feed_ledger(struct fuzz_case *c)
{
    struct byoc_error err;
    struct byi_text page = {0}, dot = {0};
    enum byoc_status status =
        byi_ledger_page(c->bytes.at, c->bytes.n, &page, &err);
    bool good = status == BYOC_OK || fuzz_refused(c, "page", &err);
    if (byi_ledger_dot(c->bytes.at, c->bytes.n, &dot, &err) != status)
        good = wrong(c, "a page, and no dot, or the other way", "");
    byi_text_free(&page);
    byi_text_free(&dot);
    return good && read_ledger(c, c->bytes.at, c->bytes.n);
}

/* --- tensors
 * ------------------------------------------------------------------ */

static bool feed_tensor(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor t = {0};
    struct byoc_error err;
    const char *name;
    enum byoc_status status;
    if (fuzz_ends_in(c->file, ".npy"))
        status = byi_npy_read(as_file(c, "mutant.npy"), arena, &t, &err);
    else if (fuzz_ends_in(c->file, ".npz"))
        status = byi_npz_read(as_file(c, "mutant.npz"), "x", arena, &t, &err);
    else
        status =
            byi_onnx_tensor(as_file(c, "mutant.pb"), arena, &t, &name, &err);
    bool good = status == BYOC_OK || fuzz_refused(c, "read", &err);
    volatile double sum = 0; /* every element is there to be read */
    c->taken = status == BYOC_OK;
    if (c->taken && byoc_dtype_size(t.dtype))
        for (int64_t i = 0; i < byi_elements(t.rank, t.dims); i++)
            sum = sum + byi_tensor_float(&t, i);
    byi_arena_free(&arena);
    return good;
}

/* --- the table
 * ------------------------------------------------------------------ */

static const char *const onnx[] = {".onnx", NULL};
static const char *const ir[] = {".ir", NULL};
static const char *const region[] = {".region", NULL};
static const char *const so[] = {".so", NULL};
static const char *const plan[] = {".plan", NULL};
static const char *const manifest[] = {".manifest", NULL};
static const char *const ledger[] = {".ledger", NULL};
static const char *const tensor[] = {".npy", ".npz", ".pb", NULL};

const struct fuzz_kind fuzz_kinds[] = {
    {"model", onnx, mutate_model, feed_model},
    {"text", ir, fuzz_tokens, feed_text},
    {"region", region, fuzz_tokens, fuzz_region},
    {"artifact", so, fuzz_bytes, feed_artifact},
    {"plan", plan, fuzz_tokens, feed_plan},
    {"manifest", manifest, fuzz_tokens, feed_manifest},
    {"ledger", ledger, fuzz_tokens, feed_ledger},
    {"tensor", tensor, fuzz_bytes, feed_tensor},
};
const uint32_t fuzz_n_kinds = BYI_COUNT(fuzz_kinds);
