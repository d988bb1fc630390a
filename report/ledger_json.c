/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_json.c: writes a closed ledger as JSON (docs/ledger.md), one line per
 * backend, gate, region and node. It builds no tree, since models may have many
 * nodes.
 */
#include "ledger_internal.h"

#include <math.h>

static void put(struct byi_text *out, const char *text)
{
    byi_text_put(out, text);
}

static void put_number(struct byi_text *out, double value)
{
    char text[32];
    put(out, byi_float_text(text, value, false));
}

/* Begin a member that is not the first of its object: `, "key": `. */
static void put_key(struct byi_text *out, const char *key)
{
    put(out, ", \"");
    put(out, key);
    put(out, "\": ");
}

static void put_number_member(struct byi_text *out, const char *key,
                              double value)
{
    put_key(out, key);
    put_number(out, value);
}

/* Write a string member; NULL and "" are omitted. */
static void put_text_member(struct byi_text *out, const char *key,
                            const char *text)
{
    if (!text || !*text)
        return;
    put_key(out, key);
    byi_json_quote(out, text);
}

/* Write a list of strings as a member; an empty list is omitted. */
static void put_texts_member(struct byi_text *out, const char *key,
                             const char *const *at, uint32_t n)
{
    if (!n)
        return;
    put_key(out, key);
    put(out, "[");
    for (uint32_t i = 0; i < n; i++) {
        put(out, i ? ", " : "");
        byi_json_quote(out, at[i]);
    }
    put(out, "]");
}

static void put_numbers_member(struct byi_text *out, const char *key,
                               const uint32_t *at, uint32_t n)
{
    put_key(out, key);
    put(out, "[");
    for (uint32_t i = 0; i < n; i++) {
        put(out, i ? ", " : "");
        byi_text_int(out, at[i]);
    }
    put(out, "]");
}

/* Write the times that were measured. Others are 0, negative or infinite. */
static void put_times(struct byi_text *out, const struct byi_times *t)
{
    if (t->backend > 0 && isfinite(t->backend))
        put_number_member(out, "backend_us", t->backend);
    if (t->native > 0 && isfinite(t->native))
        put_number_member(out, "native_us", t->native);
}

static void open_list(struct byi_text *out, const char *key)
{
    byi_text_addf(out, ",\n\"%s\": [", key);
}

/* Begin the next line of a list, an object with this first member. */
static void open_item(struct byi_text *out, bool first, const char *key,
                      const char *text)
{
    byi_text_addf(out, "%s{\"%s\": ", first ? "\n  " : ",\n  ", key);
    byi_json_quote(out, text);
}

/* --- the lists ------------------------------------------------------------ */

/* The place of a node: its backend, or "native", "folded" or "removed". */
static const char *where_of(const struct byi_ledger *l,
                            const struct byi_ledger_entry *e)
{
    return e->region ? l->regions.at[e->region - 1].backend
                     : byi_reason_code(e->where);
}

static void put_backend(const struct byi_ledger *l, struct byi_text *out,
                        const struct byi_ledger_backend *backend, bool first)
{
    double flops = 0;
    uint32_t nodes = 0, regions = 0;
    for (uint32_t i = 0; i < l->regions.n; i++) {
        const struct byi_region_entry *r = &l->regions.at[i];
        if (!r->kept || r->backend != backend->name)
            continue;
        regions++;
        nodes += r->n_nodes;
        flops += r->flops;
    }
    open_item(out, first, "name", backend->name);
    put_text_member(out, "version", backend->version);
    put_number_member(out, "nodes", nodes);
    put_number_member(out, "flops", flops);
    put_number_member(out, "regions", regions);
    put(out, "}");
}

/* Write the backends that own regions but do not take part in this compile: the
 * module already had these regions. */
static void put_unlisted_backends(const struct byi_ledger *l,
                                  struct byi_text *out)
{
    for (uint32_t i = 0; i < l->regions.n; i++) {
        const struct byi_ledger_backend backend = {
            .name = l->regions.at[i].backend};
        bool listed = false;
        for (uint32_t k = 0; k < l->facts.n_backends && !listed; k++)
            listed = l->facts.backends[k].name == backend.name;
        for (uint32_t k = 0; k < i && !listed; k++)
            listed = l->regions.at[k].backend == backend.name;
        if (!listed)
            put_backend(l, out, &backend, !l->facts.n_backends && !i);
    }
}

static void put_backends(const struct byi_ledger *l, struct byi_text *out)
{
    const struct byi_coverage *c = &l->coverage;
    open_list(out, "backends");
    for (uint32_t i = 0; i < l->facts.n_backends; i++)
        put_backend(l, out, &l->facts.backends[i], i == 0);
    put_unlisted_backends(l, out);
    open_item(out, !l->facts.n_backends && !l->regions.n, "name", "native");
    put_text_member(out, "version", l->facts.native);
    put_number_member(out, "nodes", c->native);
    put_number_member(out, "flops", c->flops - c->flops_offloaded);
    put(out, ", \"regions\": 0}]");
}

static void put_summary(const struct byi_coverage *c, struct byi_text *out)
{
    byi_text_addf(out, ",\n\"summary\": {\"nodes\": %u", c->nodes);
    put_number_member(out, "operators", byi_coverage_operators(c));
    put_number_member(out, "offloaded", c->offloaded);
    put_number_member(out, "native", c->native);
    put_number_member(out, "folded", c->folded);
    put_number_member(out, "removed", c->removed);
    put_number_member(out, "regions", c->regions);
    put_number_member(out, "flops", c->flops);
    put_number_member(out, "flops_offloaded", c->flops_offloaded);
    put_text_member(out, "sizes", c->sizes);
    put(out, "}");
}

static void put_measured(const struct byi_placement_times *m,
                         struct byi_text *out)
{
    if (!m->chosen)
        return;
    byi_text_addf(out, ",\n\"measured\": {\"chosen\": \"%s\"", m->chosen);
    put_number_member(out, "native_us", m->native_us);
    put_number_member(out, "greedy_us", m->greedy_us);
    put_number_member(out, "measured_us", m->measured_us);
    put(out, "}");
}

static void put_gates(const struct byi_ledger *l, struct byi_text *out)
{
    open_list(out, "gates");
    for (uint32_t i = 0; i < l->gates.n; i++) {
        const struct byi_gate *gate = &l->gates.at[i];
        open_item(out, i == 0, "gate", gate->name);
        put_number_member(out, "wanted", gate->wanted);
        put_number_member(out, "found", gate->found);
        put_key(out, "passed");
        put(out, gate->passed ? "true}" : "false}");
    }
    put(out, "]");
}

static void put_weights(const struct byi_ledger *l, struct byi_text *out)
{
    if (!l->weights.n)
        return;
    open_list(out, "weights");
    for (uint32_t i = 0; i < l->weights.n; i++) {
        const struct byi_ledger_weight *w = &l->weights.at[i];
        open_item(out, i == 0, "to", w->to);
        put_number_member(out, "bytes", (double)w->bytes);
        if (!w->kept) {
            put_number_member(out, "narrow", (double)w->narrow);
            put_number_member(out, "largest", w->largest);
            put_number_member(out, "rms", w->rms);
        }
        put_text_member(out, "kept", w->kept);
        put_numbers_member(out, "nodes", w->sources->at, w->sources->n);
        put(out, "}");
    }
    put(out, "]");
}

static void put_precision(const struct byi_ledger_precision *p,
                          struct byi_text *out)
{
    if (!p->to)
        return;
    put(out, ", \"precision\": {");
    byi_text_addf(out, "\"to\": \"%s\", \"narrow\": %u, \"float32\": %u}",
                  p->to, p->narrow, p->float32);
}

static void put_region(struct byi_ledger *l, struct byi_text *out, uint32_t i)
{
    const struct byi_region_entry *r = &l->regions.at[i];
    open_item(out, i == 0, "name", r->name);
    put_text_member(out, "backend", r->backend);
    put_text_member(out, "outcome",
                    r->kept                         ? "kept"
                    : r->reason == BYI_REASON_SPLIT ? "split"
                                                    : "reverted");
    if (!r->kept) {
        put_text_member(out, "reason", byi_reason_code(r->reason));
        put_text_member(out, "detail",
                        r->detail ? r->detail : byi_reason_text(r->reason));
    }
    put_number_member(out, "flops", r->flops);
    if (r->n_outputs) { /* the region became a function */
        put_number_member(out, "inputs", r->n_inputs);
        put_number_member(out, "outputs", r->n_outputs);
    }
    put_times(out, byi_ledger_times_of(l, r->name));
    put_numbers_member(out, "nodes", r->nodes, r->n_nodes);
    put(out, "}");
}

/* The reason for the node's placement; of a native node, the reason of its
 * attempt with the latest stage. */
static enum byi_reason reason_of(const struct byi_ledger *l,
                                 const struct byi_ledger_entry *e)
{
    enum byi_reason best = BYI_REASON_NO_BACKEND;
    if (e->where != BYI_REASON_NATIVE)
        return e->where;
    for (uint32_t i = e->first; i; i = l->attempts.at[i - 1].next)
        if (byi_reason_stage(l->attempts.at[i - 1].reason) >=
            byi_reason_stage(best))
            best = l->attempts.at[i - 1].reason;
    return best;
}

static void put_attempts(const struct byi_ledger *l, struct byi_text *out,
                         const struct byi_ledger_entry *e)
{
    put_key(out, "tried");
    put(out, "[");
    for (uint32_t i = e->first; i; i = l->attempts.at[i - 1].next) {
        const struct byi_attempt *a = &l->attempts.at[i - 1];
        put(out,
            i == e->first ? "\n    {\"reason\": " : ",\n    {\"reason\": ");
        byi_json_quote(out, byi_reason_code(a->reason));
        put_text_member(out, "backend", a->backend);
        put_text_member(out, "pattern", a->pattern);
        put_text_member(out, "detail",
                        a->detail ? a->detail : byi_reason_text(a->reason));
        put(out, "}");
    }
    put(out, "]");
}

static void put_node(const struct byi_ledger *l, struct byi_text *out,
                     uint32_t i)
{
    const struct byi_ledger_entry *e = &l->entries.at[i];
    const struct byi_number_sets *reads = &l->reads;
    const uint32_t from = i < reads->n ? reads->first[i] : 0;
    const uint32_t to = i < reads->n ? reads->first[i + 1] : 0;
    open_item(out, i == 0, "name", l->sources[i].name);
    put_key(out, "op");
    byi_json_quote(out, l->sources[i].op);
    put_text_member(out, "attributes", e->attributes);
    put_texts_member(out, "outputs", e->outputs, e->n_outputs);
    put_text_member(out, "where", where_of(l, e));
    put_text_member(out, "reason", byi_reason_code(reason_of(l, e)));
    if (e->region) {
        put_text_member(out, "region", l->regions.at[e->region - 1].name);
        put_text_member(out, "pattern", e->pattern);
        put_text_member(out, "impl", e->impl);
    }
    put_number_member(out, "flops", e->flops);
    put_times(out, &e->times);
    put_numbers_member(out, "inputs", from < to ? reads->at + from : NULL,
                       to - from);
    put_attempts(l, out, e);
    put(out, "}");
}

static void put_ledger(struct byi_ledger *l, struct byi_text *out)
{
    const struct byi_ledger_facts *facts = &l->facts;
    byi_text_addf(out, "{\"format\": \"byoc-ledger\", \"version\": %d",
                  BYI_LEDGER_VERSION);
    put_text_member(out, "model", facts->model ? facts->model : "model");
    put_number_member(out, "threads", facts->threads);
    put_text_member(out, "cpu", facts->cpu ? facts->cpu : "unknown");
    put_backends(l, out);
    put_summary(&l->coverage, out);
    put_measured(&l->measured, out);
    put_gates(l, out);
    put_weights(l, out);
    put_precision(&l->precision, out);
    open_list(out, "regions");
    for (uint32_t i = 0; i < l->regions.n; i++)
        put_region(l, out, i);
    put(out, "]");
    open_list(out, "nodes");
    for (uint32_t i = 0; i < l->coverage.nodes; i++)
        put_node(l, out, i);
    put(out, "]}\n");
}

void byi_ledger_write_json(struct byi_ledger *l, struct byi_text *out)
{
    struct byi_text json = {0};
    put_ledger(l, &json);
    /* names of the model and texts of backends may not be valid UTF-8 */
    byi_utf8_add(out, json.at, json.n);
    byi_text_free(&json);
}
