/* SPDX-License-Identifier: Apache-2.0 */
/* RemoveUnusedFunctions: drop the functions that no entry reaches.
 * requires: nothing
 * leaves:   the functions that `entry` names (by default the model's entry),
 *           and the functions that they reach by calls or as values, also
 *           through branches, literals and composites. Nodes are unchanged.
 *
 *   def @main(%x) { @used(%x) }         def @main(%x) { @used(%x) }
 *   def @used(%x) { abs(%x) }     ==>   def @used(%x) { abs(%x) }
 *   def @unused(%x) { @used(%x) }
 */
#include "call_graph.h"
#include "transform.h"

#include <string.h>

static const struct byi_pass_option options[] = {
    {"entry", BYI_ATTR_STRING, "",
     "functions to keep, separated by commas: main,predict (default: the "
     "model's entry)"},
    {.name = NULL},
};

static enum byoc_status report_unknown_entry(const struct byi_module *m,
                                             const char *name,
                                             struct byoc_error *err)
{
    struct byi_text names = {0};
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->name)
            byi_text_addf(&names, "%s@%s", names.n ? ", " : "",
                          m->funcs.at[i]->name);
    const enum byoc_status status =
        names.n ? byi_fail(err, BYOC_EINVAL,
                           "found the entry '%.80s', expected one of %.700s",
                           name, names.at)
                : byi_fail(err, BYOC_EINVAL,
                           "found no functions in the module, expected the "
                           "entry '%.80s'",
                           name);
    byi_text_free(&names);
    return status;
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    bool *needed = byi_arena_calloc(scratch, m->funcs.n, sizeof *needed);
    const char *entries = byi_option_string(ctx, "RemoveUnusedFunctions.entry");
    if (!*entries)
        entries = byi_module_entry_name(m);
    for (size_t n;; entries += n + 1) {
        n = strcspn(entries, ",");
        const char *name = byi_arena_strn(scratch, entries, n);
        const uint32_t func = byi_func_find(m, name);
        if (func == UINT32_MAX)
            return report_unknown_entry(m, name, err);
        needed[func] = true;
        if (!entries[n])
            break;
    }
    byi_call_graph_drop(m, needed, scratch);
    return BYOC_OK;
}

const struct byi_pass byi_pass_remove_unused_functions = {
    .name = "RemoveUnusedFunctions",
    .summary = "drop the functions that no entry reaches",
    .opt_level = 1,
    .options = options,
    .run_module = run,
};
