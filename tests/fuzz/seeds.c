/* seeds.c: inputs that only a compile gives: artifacts and their parts. */
#include <byoc/byoc.h>

#include <string.h>

#include "fuzz.h"
#include "runtime/plan.h"

static const struct {
    const char *name, *path;
} models[] = {
    {"digits", TEST_DIR "/../examples/digits/digits.onnx"},
    {"if", TEST_DIR "/core/text_if.ir"},
    {"shape", TEST_DIR "/fuzz/seeds/varies.ir"},
    {"block", TEST_DIR "/fuzz/seeds/block.ir"},
    {"attention", TEST_DIR "/fuzz/seeds/attention.ir"},
    {"recursion", TEST_DIR "/run/even_odd.ir"},
    {"closures", TEST_DIR "/run/if_function.ir"},
    {"captures", TEST_DIR "/run/loop_closure.ir"},
};

bool fuzz_ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);
    return n >= k && strcmp(path + n - k, suffix) == 0;
}

bool fuzz_read(const char *path, struct byi_text *bytes)
{
    char piece[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    byi_text_add(bytes, "", 0);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        byi_text_add(bytes, piece, n);
    bool good = !ferror(f);
    fclose(f);
    return good;
}

bool fuzz_write(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool good = fwrite(bytes, 1, n, f) == n;
    return fclose(f) == 0 && good;
}

static bool part(const char *folder, const char *name, const char *suffix,
                 const char *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    return fuzz_write(path, bytes, n);
}

static bool take_apart(const char *folder, const char *name, const char *so)
{
    struct byi_artifact a;
    struct byi_plan_tables *plan = NULL;
    struct byoc_error err;
    char suffix[32];
    if (byoc_internal_artifact_open(so, &a, &err) != BYOC_OK ||
        byi_plan_read(&a.image, &plan, &err) != BYOC_OK) {
        printf("%s: %s\n", so, err.text);
        return false;
    }
    const struct byi_image *i = &a.image;
    bool good =
        part(folder, name, "plan", i->plan, i->plan_bytes) &&
        part(folder, name, "manifest", i->manifest, i->manifest_bytes) &&
        part(folder, name, "ledger", i->ledger, i->ledger_bytes);
    for (uint32_t k = 0; k < plan->n_parts && good; k++) {
        snprintf(suffix, sizeof suffix, "%u.region", k);
        good = part(folder, name, suffix, i->blobs + plan->parts[k].blob,
                    (size_t)plan->parts[k].blob_bytes);
    }
    byi_plan_tables_free(&plan);
    byoc_internal_artifact_close(&a);
    return good;
}

static bool make(const char *folder, const char *name, const char *model)
{
    const struct byoc_compile_params params = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .threads = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    bool good = byoc_compile(model, &params, &compiled, &err) == BYOC_OK &&
                byoc_compiled_write(compiled, path, &err) == BYOC_OK;
    if (!good)
        printf("%s: %s\n", model, err.text);
    byoc_compiled_free(&compiled);
    return good && take_apart(folder, name, path);
}

bool fuzz_make_seeds(const char *folder)
{
    for (size_t i = 0; i < BYI_COUNT(models); i++)
        if (!make(folder, models[i].name, models[i].path))
            return false;
    return true;
}
