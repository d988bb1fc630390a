/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_open.c: opens a ledger with a module as imported: records the nodes
 * that each model node reads, its attributes and the types of its outputs. The
 * attributes and types come from the importer or, if the module was read as
 * text, from the IR's nodes.
 */
#include "core/ir/text.h"
#include "ledger_internal.h"

/* Copy the attributes and the types of outputs that the importer recorded. */
static void take_recorded(struct byi_ledger *l, const struct byi_source *s,
                          struct byi_ledger_entry *e)
{
    const char **outputs =
        byi_arena_calloc(l->arena, s->n_outputs, sizeof *outputs);
    for (uint32_t i = 0; i < s->n_outputs; i++)
        outputs[i] = byi_ledger_intern(l, s->outputs[i]);
    e->attributes = byi_ledger_intern(l, s->attributes);
    e->outputs = outputs;
    e->n_outputs = s->n_outputs;
}

/* Record the attributes and type of an IR node for its model node. If several
 * IR nodes have the same model node, the last one counts. */
static void take_node(struct byi_ledger *l, const struct byi_module *m,
                      const struct byi_node *node, struct byi_ledger_entry *e)
{
    struct byi_text text = {0};
    byi_text_type(m, node->type, &text);
    const char **outputs = byi_arena_alloc(l->arena, sizeof *outputs);
    *outputs = byi_ledger_intern(l, text.at);
    e->outputs = outputs;
    e->n_outputs = 1;
    text.n = 0;
    for (uint32_t i = 0; node->attrs && i < node->attrs->n; i++) {
        byi_text_addf(&text, "%s%s=", i ? ", " : "", node->attrs->at[i].name);
        byi_text_attr(&text, &node->attrs->at[i]);
    }
    e->attributes = text.n ? byi_ledger_intern(l, text.at) : NULL;
    byi_text_free(&text);
}

void byi_ledger_open(struct byi_ledger *ledger, const struct byi_module *m)
{
    ledger->reads = byi_sources_reads(m, ledger->arena);
    for (uint32_t i = 0; i < m->sources.n; i++)
        if (m->sources.at[i].n_outputs)
            take_recorded(ledger, &m->sources.at[i],
                          byi_ledger_entry_of(ledger, i));
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; id < f->nodes.n && !f->dead; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            const uint32_t source =
                node->sources->n == 1 ? node->sources->at[0] : UINT32_MAX;
            if (node->kind == BYI_CALL_OP && source < m->sources.n &&
                !m->sources.at[source].n_outputs)
                take_node(ledger, m, node, byi_ledger_entry_of(ledger, source));
        }
    }
}
