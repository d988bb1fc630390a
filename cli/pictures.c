/* pictures.c: a ledger to look at: a page, a graph for Graphviz, the model
 * itself with what became of its nodes.
 */
#include "cli.h"

#include "frontend_onnx/onnx.h"
#include "partition/page.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <sys/stat.h>

typedef enum byoc_status picture_fn(const char *json, size_t n,
                                    struct byi_text *out,
                                    struct byoc_error *err);

bool byi_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static enum byoc_status write_picture(const char *path, const char *model,
                                      picture_fn *make, const char *ledger,
                                      struct byoc_error *err)
{
    struct byi_text text = {0};
    struct byi_file file;
    if (!path)
        return BYOC_OK;
    if (byi_same_file(path, model))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: the output is the model itself; expected another "
                        "file",
                        path);
    enum byoc_status status = make(ledger, strlen(ledger), &text, err);
    if (status == BYOC_OK)
        status = byi_file_create(path, &file, err);
    if (status == BYOC_OK) {
        fwrite(text.at, 1, text.n, file.stream);
        status = byi_file_commit(&file, err);
    }
    byi_text_free(&text);
    return status;
}

/* --- the model with notes ------------------------------------------------- */

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void notes_of(const cJSON *node, struct byi_arena *arena,
                     struct byi_onnx_notes *notes)
{
    static const char *const keys[][2] = {
        {"byoc.vendor", "where"},  {"byoc.region", "region"},
        {"byoc.reason", "reason"}, {"byoc.pattern", "pattern"},
        {"byoc.impl", "impl"},
    };
    struct byi_onnx_note *at =
        byi_arena_calloc(arena, BYI_COUNT(keys), sizeof *at);
    *notes = (struct byi_onnx_notes){.at = at, .about = text(node, "op")};
    for (size_t i = 0; i < BYI_COUNT(keys); i++)
        if (*text(node, keys[i][1]))
            at[notes->n++] =
                (struct byi_onnx_note){keys[i][0], text(node, keys[i][1])};
}

static const char *summary_of(const cJSON *root, struct byi_arena *arena)
{
    const cJSON *s = cJSON_GetObjectItemCaseSensitive(root, "summary");
    const double flops = number(s, "flops");
    return byi_arena_printf(
        arena,
        "%.0f nodes: %.0f offloaded in %.0f regions, %.0f native, %.0f "
        "folded, %.0f removed; %.2f%% of the work offloaded",
        number(s, "nodes"), number(s, "offloaded"), number(s, "regions"),
        number(s, "native"), number(s, "folded"), number(s, "removed"),
        flops > 0 ? 100 * number(s, "flops_offloaded") / flops : 0);
}

static enum byoc_status dump_onnx(const char *path, const char *model,
                                  const char *ledger, struct byoc_error *err)
{
    const size_t n = strlen(model);
    cJSON *root = NULL;
    const cJSON *node;
    if (n > 3 && strcmp(model + n - 3, ".ir") == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "--dump-onnx: %s is text, and only an ONNX model can "
                        "be written as one; --dot and --html show any model",
                        model);
    BYI_TRY(byi_ledger_parse(ledger, strlen(ledger), &root, err));
    struct byi_arena *arena = byi_arena_new();
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(root, "nodes");
    const uint32_t n_nodes = (uint32_t)cJSON_GetArraySize(nodes);
    struct byi_onnx_notes *notes =
        byi_arena_calloc(arena, n_nodes, sizeof *notes);
    uint32_t i = 0;
    cJSON_ArrayForEach(node, nodes) notes_of(node, arena, &notes[i++]);
    const struct byi_onnx_note about[] = {
        {"byoc.version", BYI_VERSION},
        {"byoc.summary", summary_of(root, arena)}};
    const struct byi_onnx_notes whole = {.n = BYI_COUNT(about), .at = about};
    enum byoc_status status =
        byi_onnx_annotate(model, path, n_nodes, notes, &whole, err);
    byi_arena_free(&arena);
    byi_json_free(&root);
    return status;
}

enum byoc_status byi_write_pictures(const struct byi_pictures *pictures,
                                    const char *model, const char *ledger,
                                    struct byoc_error *err)
{
    BYI_TRY(write_picture(pictures->html, model, byi_ledger_page, ledger, err));
    BYI_TRY(write_picture(pictures->dot, model, byi_ledger_dot, ledger, err));
    if (pictures->onnx)
        BYI_TRY(dump_onnx(pictures->onnx, model, ledger, err));
    return BYOC_OK;
}
