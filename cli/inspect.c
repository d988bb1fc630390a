/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c: `byoc inspect`: prints the metadata of an artifact. Reads the file
 * without running any of its code.
 */
#include "cli.h"

#include "runtime/internal.h"

#include <cjson/cJSON.h>

#include <string.h>

static int run(int argc, char **argv);

const struct byi_command byi_command_inspect = {
    .name = "inspect",
    .usage = "MODEL.so [--json] [--all]",
    .summary = "print an artifact's signature, backends and ledger",
    .example = "byoc inspect digits.so\n",
    .run = run,
};

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void print_ios(const cJSON *manifest, const char *key)
{
    const cJSON *io, *dim;
    cJSON_ArrayForEach(io, cJSON_GetObjectItemCaseSensitive(manifest, key))
    {
        printf("%-9.*s %s %s (", (int)strlen(key) - 1, key, text(io, "name"),
               text(io, "dtype"));
        const char *comma = "";
        cJSON_ArrayForEach(dim, cJSON_GetObjectItemCaseSensitive(io, "shape"))
        {
            if (cJSON_IsString(dim))
                printf("%s%s", comma, dim->valuestring);
            else
                printf("%s%.0f", comma, dim->valuedouble);
            comma = ", ";
        }
        printf(")\n");
    }
}

/* Print the metadata of the ONNX file, only the first line of each value. */
static void print_metadata(const cJSON *manifest)
{
    const cJSON *item;
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(manifest, "metadata"))
    {
        struct byi_text line = {0};
        const char *value = text(item, "value");
        const size_t n = strcspn(value, "\n");
        byi_text_addf(&line, "%s = %.*s%s", text(item, "key"), (int)n, value,
                      value[n] ? " ..." : "");
        struct byi_text shown = {0};
        byi_printable_add(&shown, line.at, line.n, BYI_PRINTABLE_LINE);
        printf("metadata  %s\n", shown.at);
        byi_text_free(&shown);
        byi_text_free(&line);
    }
}

/* Print the fused kernels, from the plan's list. */
static void print_kernels(const struct byi_image *image, const cJSON *manifest)
{
    const cJSON *level, *kernel;
    const cJSON *built = cJSON_GetObjectItemCaseSensitive(manifest, "kernels");
    if (!built)
        return;
    cJSON *plan = cJSON_ParseWithLength(image->plan, image->plan_bytes);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(plan, "kernels");
    printf("kernels   %d fused, for", cJSON_GetArraySize(list));
    cJSON_ArrayForEach(level, cJSON_GetObjectItemCaseSensitive(built, "levels"))
        printf(" %s", cJSON_IsString(level) ? level->valuestring : "");
    printf("\n");
    cJSON_ArrayForEach(kernel, list)
        printf("          %s\n", text(kernel, "symbol"));
    cJSON_Delete(plan);
}

/* Print the regions for which backends generated C, from the plan. */
static void print_units(const struct byi_artifact *a)
{
    const cJSON *region;
    if (!a->units_bytes)
        return;
    cJSON *plan = cJSON_ParseWithLength(a->image.plan, a->image.plan_bytes);
    cJSON_ArrayForEach(region, cJSON_GetObjectItem(plan, "regions"))
    {
        if (*text(region, "code"))
            printf("C         %s, by %s\n", text(region, "code"),
                   text(region, "backend"));
    }
    cJSON_Delete(plan);
}

static int print_artifact(const struct byi_artifact *a, const char *path,
                          bool every)
{
    const struct byi_image *image = &a->image;
    cJSON *m = cJSON_ParseWithLength(image->manifest, image->manifest_bytes);
    const cJSON *backend;
    printf("artifact  %s, format version %.0f, made by byoc %s\n",
           text(m, "symbol"),
           cJSON_GetNumberValue(cJSON_GetObjectItem(m, "version")),
           text(m, "byoc"));
    print_ios(m, "inputs");
    print_ios(m, "outputs");
    print_metadata(m);
    cJSON_ArrayForEach(backend, cJSON_GetObjectItem(m, "backends"))
        printf("backend    %s %s (%s)\n", text(backend, "name"),
               text(backend, "version"), text(backend, "compat"));
    printf("sections  plan %zu, regions %zu, ledger %zu, weights %llu bytes\n",
           image->plan_bytes, image->blobs_bytes, image->ledger_bytes,
           (unsigned long long)image->weights_bytes);
    print_kernels(image, m);
    print_units(a);
    cJSON_Delete(m);
    if (!image->ledger_bytes)
        return BYI_EXIT_OK;
    const struct byi_ledger_view view = {.every = every};
    struct byi_text ledger = {0};
    byi_text_add(&ledger, image->ledger, image->ledger_bytes);
    printf("\n");
    const int code =
        byi_print_ledger(&byi_command_inspect, path, ledger.at, &view);
    byi_text_free(&ledger);
    return code;
}

static void print_json(const struct byi_artifact *a)
{
    const struct byi_image *image = &a->image;
    printf("{\"manifest\":%.*s,\"ledger\":%.*s}\n", (int)image->manifest_bytes,
           image->manifest, image->ledger_bytes ? (int)image->ledger_bytes : 4,
           image->ledger_bytes ? image->ledger : "null");
}

static enum byoc_status draw(const struct byi_artifact *a,
                             const struct byi_pictures *pictures,
                             const char *path, struct byoc_error *err)
{
    struct byi_text ledger = {0};
    if (!pictures->html && !pictures->dot)
        return BYOC_OK;
    if (!a->image.ledger_bytes)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found no ledger in the artifact; expected one for "
                        "--html and --dot",
                        path);
    byi_text_add(&ledger, a->image.ledger, a->image.ledger_bytes);
    enum byoc_status status =
        byi_write_pictures(pictures, path, ledger.at, err);
    byi_text_free(&ledger);
    return status;
}

static int run(int argc, char **argv)
{
    struct byi_pictures pictures = {0};
    bool json = false, every = false;
    const struct byi_option options[] = {
        {"json", 0, BYI_OPTION_FLAG, &json, NULL,
         "print the manifest and the ledger as JSON"},
        {"all", 'a', BYI_OPTION_FLAG, &every, NULL, "print every node"},
        BYI_PICTURE_OPTIONS(pictures),
    };
    const char *path;
    uint32_t n;
    int code = byi_options(&byi_command_inspect, options, BYI_COUNT(options),
                           argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    struct byi_artifact a;
    struct byoc_error err;
    if (byi_explain_artifact(path, byoc_internal_artifact_open(path, &a, &err),
                             &err) != BYOC_OK)
        return byi_complain(&byi_command_inspect, &err);
    if (draw(&a, &pictures, path, &err) != BYOC_OK)
        code = byi_complain(&byi_command_inspect, &err);
    else if (json)
        print_json(&a);
    else
        code = print_artifact(&a, path, every);
    byoc_internal_artifact_close(&a);
    return code < 0 ? BYI_EXIT_OK : code;
}
