/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c: writes the manifest of a model (docs/artifact.md): its signature,
 * its backends, the hashes of the other sections, and a unique symbol.
 */
#include "plan.h"

#include "core/base/descriptor.h"
#include "core/base/machine.h"

/* The state of byi_manifest_write. */
struct manifest_writer {
    const struct byi_module *m;
    struct byi_text *json;
    /* tensors, sequences and optionals of the current type */
    BYI_VEC(const struct byi_type *) leaves;
    BYI_VEC(const struct byi_type *) stack;
};

/* Set w->leaves to the tensors, sequences and optionals of a type, from left to
 * right. */
static void list_leaves(struct manifest_writer *w, const struct byi_type *type)
{
    w->leaves.n = 0;
    BYI_PUSH(&w->stack, type);
    while (w->stack.n > 0) {
        const struct byi_type *t = w->stack.at[--w->stack.n];
        if (t->kind == BYI_TENSOR || byi_type_is_list(t))
            BYI_PUSH(&w->leaves, t);
        for (uint32_t i = t->n_fields; t->kind == BYI_TUPLE && i-- > 0;)
            BYI_PUSH(&w->stack, t->fields[i]);
    }
}

static void print_tensor(struct manifest_writer *w, bool first,
                         const char *name, const struct byi_type *type)
{
    byi_text_addf(w->json, "%s\n  {\"name\": ", first ? "" : ",");
    byi_json_quote(w->json, name);
    if (byi_type_is_list(type)) {
        byi_text_addf(w->json, ", ");
        byi_list_type_print(type, w->json);
        byi_text_addf(w->json, "}");
        return;
    }
    byi_text_addf(w->json, ", \"dtype\": \"%s\", \"shape\": [",
                  byoc_dtype_name(type->dtype));
    for (uint32_t i = 0; i < type->rank; i++) {
        byi_text_addf(w->json, "%s", i ? ", " : "");
        if (BYI_IS_SYMBOL(type->dims[i]))
            byi_json_quote(w->json, byi_symbol_name(w->m, type->dims[i]));
        else
            byi_text_addf(w->json, "%lld", (long long)type->dims[i]);
    }
    byi_text_addf(w->json, "]}");
}

/* A parameter that is a tuple gives several inputs: "state.0", "state.1". */
static void print_inputs(struct manifest_writer *w, const struct byi_func *f)
{
    bool first = true;
    byi_text_addf(w->json, "\"inputs\": [");
    for (uint32_t p = 0; p < f->params.n; p++) {
        list_leaves(w, f->nodes.at[f->params.at[p]].type);
        for (uint32_t i = 0; i < w->leaves.n; i++) {
            char name[512];
            if (w->leaves.n == 1)
                snprintf(name, sizeof name, "%s", f->param_names.at[p]);
            else
                snprintf(name, sizeof name, "%s.%u", f->param_names.at[p], i);
            print_tensor(w, first, name, w->leaves.at[i]);
            first = false;
        }
    }
    byi_text_addf(w->json, "],\n");
}

static void print_outputs(struct manifest_writer *w, const struct byi_func *f)
{
    list_leaves(w, f->nodes.at[f->result].type);
    byi_text_addf(w->json, "\"outputs\": [");
    for (uint32_t i = 0; i < w->leaves.n; i++) {
        char default_name[32];
        snprintf(default_name, sizeof default_name, "output_%u", i);
        bool has_names = f->result_names.n == w->leaves.n;
        print_tensor(w, i == 0,
                     has_names ? f->result_names.at[i] : default_name,
                     w->leaves.at[i]);
    }
    byi_text_addf(w->json, "],\n");
}

static void print_backends(struct manifest_writer *w,
                           const struct byi_manifest *manifest)
{
    byi_text_addf(w->json, "\"backends\": [");
    for (uint32_t i = 0; i < manifest->n_backends; i++) {
        const struct byi_manifest_backend *backend = &manifest->backends[i];
        byi_text_addf(w->json, "%s\n  {\"name\": ", i ? "," : "");
        byi_json_quote(w->json, backend->name);
        byi_text_addf(w->json, ", \"version\": ");
        byi_json_quote(w->json, backend->version);
        byi_text_addf(w->json, ", \"compat\": ");
        byi_json_quote(w->json, backend->compat);
        byi_text_addf(w->json,
                      backend->operators ? ", \"operators\": true}" : "}");
    }
    byi_text_addf(w->json, "],\n");
}

/* Print, for example, "warm": [{"batch": 1, "sequence": 16}]. */
static void print_warm(struct manifest_writer *w, const struct byi_warm *warm)
{
    byi_text_addf(w->json, "\"warm\": [");
    for (uint32_t i = 0; i < warm->n; i++) {
        byi_text_addf(w->json, "%s{", i ? ", " : "");
        for (uint32_t d = 0; d < warm->at[i].n; d++) {
            byi_text_addf(w->json, "%s", d ? ", " : "");
            byi_json_quote(w->json, warm->at[i].dims[d].name);
            byi_text_addf(w->json, ": %lld",
                          (long long)warm->at[i].dims[d].size);
        }
        byi_text_addf(w->json, "}");
    }
    byi_text_addf(w->json, "],\n");
}

/* Print the metadata of the ONNX model. */
static void print_metadata(struct manifest_writer *w)
{
    byi_text_addf(w->json, "\"metadata\": [");
    for (uint32_t i = 0; i < w->m->n_metadata; i++) {
        byi_text_addf(w->json, "%s\n  {\"key\": ", i ? "," : "");
        byi_json_quote(w->json, w->m->metadata[i].key);
        byi_text_addf(w->json, ", \"value\": ");
        byi_json_quote(w->json, w->m->metadata[i].value);
        byi_text_addf(w->json, "}");
    }
    byi_text_addf(w->json, "],\n");
}

static void print_hashes(struct manifest_writer *w,
                         const struct byi_image *image)
{
    char plan[65], ledger[65], blobs[65], weights[65];
    byi_sha256_hex_of(image->plan, image->plan_bytes, plan);
    byi_sha256_hex_of(image->ledger, image->ledger_bytes, ledger);
    byi_sha256_hex_of(image->blobs, image->blobs_bytes, blobs);
    byoc_internal_weights_hash(image, weights);
    byi_text_addf(w->json,
                  "\"hashes\": {\n  \"plan\": \"%s\",\n  \"ledger\": \"%s\",\n"
                  "  \"blobs\": \"%s\",\n  \"weights\": \"%s\"},\n",
                  plan, ledger, blobs, weights);
}

/* Print the number of fused kernels, the instruction sets that they are
 * compiled for, and the hash of their source. */
static void print_kernels(struct manifest_writer *w,
                          const struct byi_image *image,
                          const struct byi_machine *machine)
{
    char source[65];
    byi_sha256_hex_of(image->source, image->source_bytes, source);
    byi_text_addf(w->json, "\"kernels\": {\"count\": %u, \"levels\": [",
                  image->n_kernels);
    for (uint32_t i = 0; i < machine->n_levels; i++)
        byi_text_addf(w->json, "%s\"%s\"", i ? ", " : "",
                      machine->levels[i].name);
    byi_text_addf(w->json, "], \"source\": \"%s\"},\n", source);
}

enum byoc_status byi_manifest_write(const struct byi_module *m,
                                    const struct byi_manifest *manifest,
                                    const struct byi_image *image,
                                    struct byi_text *json,
                                    struct byoc_error *err)
{
    uint32_t entry = byi_module_entry(m);
    if (entry == UINT32_MAX)
        return byi_fail(err, BYOC_EINVAL,
                        "the module: found no function @%s, expected the entry "
                        "function",
                        byi_module_entry_name(m));
    const struct byi_func *f = m->funcs.at[entry];
    const struct byi_machine *machine =
        image->machine ? image->machine : byi_machine_host();
    struct manifest_writer w = {.m = m, .json = json};
    size_t start = json->n;
    byi_text_addf(json, "{\"format\": \"byoc-model\", \"version\": %d,\n",
                  BYI_ARTIFACT_VERSION);
    byi_text_addf(json, "\"byoc\": \"%s\", \"name\": ", byoc_version());
    byi_json_quote(json, manifest->name);
    byi_text_addf(json, ", \"isa\": \"%s\",\n", machine->name);
    print_inputs(&w, f);
    print_outputs(&w, f);
    print_backends(&w, manifest);
    if (manifest->warm.n)
        print_warm(&w, &manifest->warm);
    if (m->n_metadata)
        print_metadata(&w);
    if (image->source)
        print_kernels(&w, image, machine);
    if (manifest->hashes)
        print_hashes(&w, image);
    char hex[65];
    byi_sha256_hex_of(json->at + start, json->n - start, hex);
    byi_text_addf(json, "\"symbol\": \"byoc_model_%.16s\"}\n", hex);
    byi_vec_free(w.leaves.at);
    byi_vec_free(w.stack.at);
    return BYOC_OK;
}
