/* SPDX-License-Identifier: Apache-2.0 */
/* pictures.c: writes a ledger as a page, as a graph for Graphviz, or into a
 * copy of the model, as metadata of the nodes or with regions as functions.
 * Writes a profile as a chart.
 */
#include "cli.h"

#include "frontend_onnx/onnx.h"
#include "report/page.h"
#include "report/report.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <sys/stat.h>

bool byi_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Fail if `path` is the same file as `input`, which the message calls `what`.
 * `input` may be NULL. */
static enum byoc_status check_output(const char *path, const char *input,
                                     const char *what, struct byoc_error *err)
{
    return input && byi_same_file(path, input)
               ? byi_fail(err, BYOC_EINVAL,
                          "%s: found %s as the output, expected a file other "
                          "than the input",
                          path, what)
               : BYOC_OK;
}

/* Write `text` to the file if `status` is BYOC_OK, and free it. */
static enum byoc_status write_text(enum byoc_status status, const char *path,
                                   struct byi_text *text,
                                   struct byoc_error *err)
{
    if (status == BYOC_OK)
        status = byi_file_write(path, text->at, text->n, err);
    byi_text_free(text);
    return status;
}

static enum byoc_status write_dot(const char *path, const char *ledger,
                                  struct byoc_error *err)
{
    struct byi_text text = {0};
    return write_text(byi_ledger_write_dot(ledger, strlen(ledger), &text, err),
                      path, &text, err);
}

static enum byoc_status write_page(const struct byi_pictures *pictures,
                                   const char *ledger, struct byoc_error *err)
{
    struct byi_text text = {0}, old = {0};
    enum byoc_status status =
        pictures->against ? byi_read_ledger(pictures->against, &old, err)
                          : BYOC_OK;
    char *profile =
        pictures->profile ? cJSON_PrintUnformatted(pictures->profile) : NULL;
    const struct byi_page page = {.against = pictures->against ? old.at : NULL,
                                  .profile = profile};
    if (status == BYOC_OK)
        status =
            byi_ledger_write_page(ledger, strlen(ledger), &page, &text, err);
    status = write_text(status, pictures->html, &text, err);
    cJSON_free(profile);
    byi_text_free(&old);
    return status;
}

static enum byoc_status write_chart(const struct byi_pictures *pictures,
                                    const char *model, struct byoc_error *err)
{
    struct byi_text text = {0};
    const char *slash = strrchr(model, '/');
    byi_profile_add_svg(pictures->profile, slash ? slash + 1 : model, &text);
    return write_text(BYOC_OK, pictures->svg, &text, err);
}

/* --- the model with the placement as metadata ----------------------------- */

/* Set *notes to the metadata of a node. */
static void list_notes(const struct byi_report_node *node,
                       struct byi_arena *arena, struct byi_onnx_notes *notes)
{
    const struct byi_onnx_note notes_of_node[] = {
        {"byoc.backend", node->where}, {"byoc.region", node->region},
        {"byoc.reason", node->reason}, {"byoc.pattern", node->pattern},
        {"byoc.impl", node->impl},
    };
    struct byi_onnx_note *at =
        byi_arena_calloc(arena, BYI_COUNT(notes_of_node), sizeof *at);
    *notes = (struct byi_onnx_notes){.at = at, .op_type = node->op};
    for (size_t i = 0; i < BYI_COUNT(notes_of_node); i++)
        if (*notes_of_node[i].value)
            at[notes->n++] = notes_of_node[i];
}

static const char *summary_of(const struct byi_report *r)
{
    const struct byi_coverage *c = &r->coverage;
    return byi_arena_printf(
        r->arena,
        "%u nodes: %u offloaded in %u regions, %u native, %u folded, %u "
        "removed; %.2f%% of the work offloaded",
        c->nodes, c->offloaded, c->regions, c->native, c->folded, c->removed,
        byi_report_flops_share(r));
}

/* Fail unless `model` is an ONNX file: text cannot be written as ONNX. */
static enum byoc_status check_onnx(const char *option, const char *model,
                                   struct byoc_error *err)
{
    return byi_path_ends_in(model, ".ir")
               ? byi_fail(err, BYOC_EINVAL,
                          "%s: found %s, which is text, expected an ONNX "
                          "model, since only an ONNX model can be written as "
                          "one; --dot and --html show any model",
                          option, model)
               : BYOC_OK;
}

static enum byoc_status dump_onnx(const char *path, const char *model,
                                  const char *ledger, struct byoc_error *err)
{
    struct byi_report r;
    BYI_TRY(check_onnx("--dump-onnx", model, err));
    BYI_TRY(byi_report_read(ledger, strlen(ledger), &r, err));
    struct byi_onnx_notes *notes =
        byi_arena_calloc(r.arena, r.n_nodes, sizeof *notes);
    for (uint32_t i = 0; i < r.n_nodes; i++)
        list_notes(&r.nodes[i], r.arena, &notes[i]);
    const struct byi_onnx_note model_notes[] = {
        {"byoc.version", BYI_VERSION}, {"byoc.summary", summary_of(&r)}};
    const struct byi_onnx_notes notes_of_model = {.n = BYI_COUNT(model_notes),
                                                  .at = model_notes};
    enum byoc_status status =
        byi_onnx_annotate(model, path, r.n_nodes, notes, &notes_of_model, err);
    byi_report_free(&r);
    return status;
}

/* --- the model with regions as functions ---------------------------------- */

static enum byoc_status dump_regions(const char *path, const char *model,
                                     const char *ledger, struct byoc_error *err)
{
    struct byi_report r;
    BYI_TRY(check_onnx("--dump-regions", model, err));
    BYI_TRY(byi_report_read(ledger, strlen(ledger), &r, err));
    struct byi_onnx_placement *placements =
        byi_arena_calloc(r.arena, r.n_nodes, sizeof *placements);
    for (uint32_t i = 0; i < r.n_nodes; i++) {
        const struct byi_report_node *node = &r.nodes[i];
        const bool offloaded = byi_report_is_offloaded(node);
        placements[i] = (struct byi_onnx_placement){
            .name = node->name,
            .op = node->op,
            .region = offloaded ? node->region : "",
            .backend = offloaded ? node->where : "",
            .idle = !offloaded && !byi_report_is_native(node),
            .n_outputs = node->n_outputs,
            .outputs = node->outputs};
    }
    enum byoc_status status =
        byi_onnx_regions(model, path, r.n_nodes, placements, err);
    byi_report_free(&r);
    return status;
}

enum byoc_status byi_write_pictures(const struct byi_pictures *pictures,
                                    const char *model, const char *ledger,
                                    struct byoc_error *err)
{
    const char *const outputs[] = {pictures->html, pictures->dot,
                                   pictures->svg};
    for (size_t i = 0; i < BYI_COUNT(outputs); i++)
        if (outputs[i]) {
            BYI_TRY(check_output(outputs[i], model, "the model", err));
            BYI_TRY(check_output(outputs[i], pictures->against,
                                 "the old ledger", err));
        }
    if (pictures->html)
        BYI_TRY(write_page(pictures, ledger, err));
    if (pictures->dot)
        BYI_TRY(write_dot(pictures->dot, ledger, err));
    if (pictures->svg)
        BYI_TRY(write_chart(pictures, model, err));
    if (pictures->onnx)
        BYI_TRY(dump_onnx(pictures->onnx, model, ledger, err));
    if (pictures->regions)
        BYI_TRY(dump_regions(pictures->regions, model, ledger, err));
    return BYOC_OK;
}
