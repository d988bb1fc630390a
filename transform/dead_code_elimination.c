/* DeadCodeElimination: drop what no result needs.
 * requires: nothing
 * leaves:   every node reachable from its function's result (parameters
 *           stay), every function reachable from @main; in a module without
 *           @main, from any function with a name
 *
 *   def @main(%x) {                    def @main(%x) {
 *     %0 = exp(%x);
 *     nn.relu(%x)              ==>       nn.relu(%x)
 *   }                                  }
 *   def @unused(%x) { abs(%x) }
 */
#include "transform.h"

#include "rewrite.h"

typedef BYI_VEC(uint32_t) func_vec;

/* Mark function `index` as needed and look into it later. */
static void need(bool *needed, func_vec *pending, uint32_t index)
{
    if (needed[index])
        return;
    needed[index] = true;
    BYI_PUSH(pending, index);
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    (void)err;
    const uint32_t main_func = byi_func_find(m, "main");
    bool *needed = byi_arena_calloc(scratch, m->funcs.n + 1, sizeof *needed);
    func_vec pending = {0};
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead &&
            (main_func == UINT32_MAX ? m->funcs.at[i]->name != NULL
                                     : i == main_func))
            need(needed, &pending, i);
    while (pending.n > 0) {
        struct byi_func *f = m->funcs.at[pending.at[--pending.n]];
        byi_sweep(m, f, scratch);
        for (byi_id id = 0; id < f->nodes.n; id++)
            if (f->nodes.at[id].kind == BYI_GLOBAL ||
                f->nodes.at[id].kind == BYI_FN)
                need(needed, &pending, f->nodes.at[id].index);
    }
    byi_vec_free(pending.at);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!needed[i])
            m->funcs.at[i]->dead = true;
    return BYOC_OK;
}

const struct byi_pass byi_pass_dead_code_elimination = {
    .name = "DeadCodeElimination",
    .summary = "drop nodes and functions that no result needs",
    .opt_level = 0,
    .run_module = run,
};
