/* SPDX-License-Identifier: Apache-2.0 */
/* readers.c: the table of all readers of untrusted bytes. A new reader needs a
 * row here, a function that feeds it, and a seed.
 */
#include "fuzz.h"

#include <string.h>

/* clang-format off */
const struct fuzz_reader fuzz_readers[] = {
    /* models */
    {"onnx", "ONNX models: import, annotate", ".onnx", true, fuzz_onnx, fuzz_feed_onnx},
    {"onnx-run", "ONNX models: compile and run, natively and on oneDNN", ".onnx", true, fuzz_onnx, fuzz_feed_onnx_run},
    {"text", "the text form: parse, print", ".ir", false, fuzz_tokens, fuzz_feed_text},
    {"text-run", "the text form: compile and run", ".ir", false, fuzz_tokens, fuzz_feed_text_run},
    {"consts", "the side file of a text's large constants", ".consts", true, fuzz_tokens, fuzz_feed_consts},
    /* options of a compile */
    {"pattern", "a row of a backend's patterns", ".pattern", true, fuzz_tokens, fuzz_feed_pattern},
    {"passes", "lists of passes, and their options", ".passes", true, fuzz_tokens, fuzz_feed_passes},
    {"params", "sizes, shapes, values, names and other texts of a compile", ".params", true, fuzz_tokens, fuzz_feed_params},
    {"costs", "the table of measured costs", ".costs", true, fuzz_tokens, fuzz_feed_costs},
    /* JSON */
    {"json", "JSON: parse, print", ".json", true, fuzz_tokens, fuzz_feed_json},
    {"attributes", "attributes of an operator as JSON", ".attributes", true, fuzz_tokens, fuzz_feed_attributes},
    {"ledger", "a ledger: text, page, graph, differences", ".ledger", true, fuzz_tokens, fuzz_feed_ledger},
    {"region", "a region as JSON: read, bind sizes", ".region", true, fuzz_tokens, fuzz_feed_region},
    {"region-run", "a region on oneDNN: probe, load, run", ".region", true, fuzz_tokens, fuzz_feed_region_run},
    /* artifacts and their parts */
    {"artifact", "an artifact: open, verify, load, run", ".so", true, fuzz_sections, fuzz_feed_artifact},
    {"plan", "a plan: load, run", ".plan", true, fuzz_tokens, fuzz_feed_plan},
    {"manifest", "a manifest: load, run", ".manifest", true, fuzz_tokens, fuzz_feed_manifest},
    /* libraries and processes */
    {"plugin", "a plug-in's file: symbols, layout of its structs", ".plugin", true, fuzz_bytes, fuzz_feed_plugin},
    {"cgroup", "the kernel's files about CPU quotas", ".cgroup", true, fuzz_tokens, fuzz_feed_cgroup},
    /* tensors */
    {"npy", "an array of numpy's", ".npy", false, fuzz_bytes, fuzz_feed_npy},
    {"npz", "an archive of arrays", ".npz", false, fuzz_bytes, fuzz_feed_npz},
    {"tensor", "a tensor as ONNX has it", ".pb", false, fuzz_bytes, fuzz_feed_tensor},
    {"value", "a sequence or optional as ONNX has it", ".pb", false, fuzz_bytes, fuzz_feed_value},
};
/* clang-format on */
const uint32_t fuzz_n_readers = BYI_COUNT(fuzz_readers);

const struct fuzz_reader *fuzz_find_reader(const char *name)
{
    for (uint32_t i = 0; i < fuzz_n_readers; i++)
        if (strcmp(fuzz_readers[i].name, name) == 0)
            return &fuzz_readers[i];
    return NULL;
}
