/* ledger.c: where every node of the model went, and why: noted while the
 * passes decide, closed over the final module, written as JSON.
 */
#include "partition.h"

#include <cjson/cJSON.h>

#include <string.h>

struct attempts {
    BYI_VEC(struct byi_attempt) list;
};

/* One model node. */
struct entry {
    struct attempts tried;
    const char *impl;
    /* after closing */
    const char *name, *op;
    enum byi_reason where; /* OFFLOADED, NATIVE, FOLDED, REMOVED */
    const char *vendor, *region, *pattern;
    double flops;
};

struct byi_ledger {
    struct byi_arena *arena;
    BYI_VEC(struct entry) entries; /* by source */
    struct byi_coverage coverage;
};

static const struct {
    const char *code, *text;
} reasons[BYI_N_REASONS] = {
#define REASON(id, code, text) [BYI_REASON_##id] = {code, text},
#include "reasons.def"
#undef REASON
};

const char *byi_reason_code(enum byi_reason reason)
{
    return reasons[reason].code;
}

const char *byi_reason_text(enum byi_reason reason)
{
    return reasons[reason].text;
}

struct byi_ledger *byi_ledger_new(void)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_ledger *ledger = byi_arena_alloc(arena, sizeof *ledger);
    ledger->arena = arena;
    return ledger;
}

void byi_ledger_free(struct byi_ledger **ledger)
{
    if (!*ledger)
        return;
    struct byi_ledger *l = *ledger;
    for (uint32_t i = 0; i < l->entries.n; i++)
        byi_vec_free(l->entries.at[i].tried.list.at);
    byi_vec_free(l->entries.at);
    struct byi_arena *arena = l->arena;
    *ledger = NULL;
    byi_arena_free(&arena);
}

static struct entry *entry_of(struct byi_ledger *l, uint32_t source)
{
    const struct entry none = {.where = BYI_REASON_REMOVED};
    while (l->entries.n <= source)
        BYI_PUSH(&l->entries, none);
    return &l->entries.at[source];
}

static const char *keep(struct byi_ledger *l, const char *text)
{
    return text ? byi_arena_str(l->arena, text) : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void add_attempt(struct byi_ledger *l, struct entry *e,
                        const struct byi_attempt *attempt)
{
    for (uint32_t i = 0; i < e->tried.list.n; i++) {
        const struct byi_attempt *a = &e->tried.list.at[i];
        if (a->reason == attempt->reason &&
            same_text(a->vendor, attempt->vendor) &&
            same_text(a->pattern, attempt->pattern) &&
            same_text(a->detail, attempt->detail))
            return;
    }
    const struct byi_attempt copy = {.reason = attempt->reason,
                                     .vendor = keep(l, attempt->vendor),
                                     .pattern = keep(l, attempt->pattern),
                                     .detail = keep(l, attempt->detail)};
    BYI_PUSH(&e->tried.list, copy);
}

void byi_ledger_note(struct byi_ledger *ledger, const struct byi_sources *s,
                     enum byi_reason reason, const char *vendor,
                     const char *pattern, const char *detail)
{
    const struct byi_attempt attempt = {.reason = reason,
                                        .vendor = vendor,
                                        .pattern = pattern,
                                        .detail = detail};
    for (uint32_t i = 0; i < s->n; i++)
        add_attempt(ledger, entry_of(ledger, s->at[i]), &attempt);
}

void byi_ledger_impl(struct byi_ledger *ledger, const struct byi_sources *s,
                     const char *impl)
{
    for (uint32_t i = 0; i < s->n; i++)
        entry_of(ledger, s->at[i])->impl = keep(ledger, impl);
}

/* --- closing -------------------------------------------------------------- */

/* Where the node stands that is being read. */
struct place {
    enum byi_reason where;
    const char *vendor, *region, *pattern;
};

/* An operator counts more than a constant, a vendor's more than a native one:
 * a model node that was split is where its heaviest part is. */
static int rank_of(enum byi_reason where)
{
    switch (where) {
    case BYI_REASON_OFFLOADED:
        return 3;
    case BYI_REASON_NATIVE:
        return 2;
    case BYI_REASON_FOLDED:
        return 1;
    default:
        return 0;
    }
}

static void settle(struct byi_ledger *l, const struct byi_sources *s,
                   const struct place *place, double flops)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct entry *e = entry_of(l, s->at[i]);
        e->flops += flops / s->n;
        if (rank_of(place->where) <= rank_of(e->where))
            continue;
        e->where = place->where;
        e->vendor = place->vendor;
        e->region = place->region;
        e->pattern = place->pattern;
    }
}

static double node_flops(const struct byi_func *f, const struct byi_node *node)
{
    const struct byi_type *in[16];
    uint32_t n = node->n_args < BYI_COUNT(in) ? node->n_args : BYI_COUNT(in);
    for (uint32_t i = 0; i < n; i++)
        in[i] = f->nodes.at[node->args[i]].type;
    return byi_op_flops(byi_op(node->op), node->attrs, in, node->type);
}

static void read_function(struct byi_ledger *l, const struct byi_func *f,
                          const struct place *place)
{
    const struct place folded = {.where = BYI_REASON_FOLDED};
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_CONST)
            settle(l, node->sources, &folded, 0);
        if (node->kind != BYI_CALL_OP)
            continue;
        double flops = node_flops(f, node);
        settle(l, node->sources, place, flops);
        l->coverage.flops += flops;
        if (place->where == BYI_REASON_OFFLOADED)
            l->coverage.flops_offloaded += flops;
    }
}

/* The composites of a vendor's function; or of one of ours, when their region
 * was given back. */
static void read_composites(struct byi_ledger *l, const struct byi_module *m,
                            const struct byi_func *f)
{
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const struct byi_func *body =
            node->kind == BYI_FN ? m->funcs.at[node->index] : NULL;
        if (!body || !body->attr.composite)
            continue;
        const struct place offloaded = {.where = BYI_REASON_OFFLOADED,
                                        .vendor = f->attr.compiler,
                                        .region = f->name,
                                        .pattern = body->attr.composite};
        const struct place native = {.where = BYI_REASON_NATIVE};
        read_function(l, body, f->attr.compiler ? &offloaded : &native);
    }
}

void byi_ledger_close(struct byi_ledger *ledger, const struct byi_module *m)
{
    ledger->coverage = (struct byi_coverage){.nodes = m->sources.n};
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        const struct place native = {.where = BYI_REASON_NATIVE};
        if (f->dead || f->attr.composite)
            continue;
        ledger->coverage.regions += f->attr.compiler != NULL;
        read_function(ledger, f, &native);
        read_composites(ledger, m, f);
    }
    for (uint32_t i = 0; i < m->sources.n; i++) {
        struct entry *e = entry_of(ledger, i);
        struct byi_coverage *c = &ledger->coverage;
        e->name = m->sources.at[i].name;
        e->op = m->sources.at[i].op;
        c->offloaded += e->where == BYI_REASON_OFFLOADED;
        c->native += e->where == BYI_REASON_NATIVE;
        c->folded += e->where == BYI_REASON_FOLDED;
        c->removed += e->where == BYI_REASON_REMOVED;
    }
}

/* --- as JSON -------------------------------------------------------------- */

static void add_text(cJSON *object, const char *key, const char *text)
{
    if (text && *text)
        cJSON_AddStringToObject(object, key, text);
}

static cJSON *attempt_json(const struct byi_attempt *a)
{
    cJSON *json = cJSON_CreateObject();
    add_text(json, "vendor", a->vendor);
    add_text(json, "pattern", a->pattern);
    cJSON_AddStringToObject(json, "reason", byi_reason_code(a->reason));
    cJSON_AddStringToObject(json, "detail",
                            a->detail ? a->detail : byi_reason_text(a->reason));
    return json;
}

/* The code that says most about a node that stayed: the last attempt at it,
 * since attempts go from the most specific row to the least. */
static enum byi_reason reason_of(const struct entry *e)
{
    if (e->where != BYI_REASON_NATIVE)
        return e->where;
    if (!e->tried.list.n)
        return BYI_REASON_NO_VENDOR;
    return e->tried.list.at[e->tried.list.n - 1].reason;
}

static cJSON *entry_json(const struct entry *e)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", e->name);
    cJSON_AddStringToObject(json, "op", e->op);
    cJSON_AddStringToObject(json, "where",
                            e->vendor ? e->vendor : byi_reason_code(e->where));
    cJSON_AddStringToObject(json, "reason", byi_reason_code(reason_of(e)));
    add_text(json, "region", e->region);
    add_text(json, "pattern", e->pattern);
    if (e->where == BYI_REASON_OFFLOADED)
        add_text(json, "impl", e->impl);
    cJSON_AddNumberToObject(json, "flops", e->flops);
    cJSON *tried = cJSON_AddArrayToObject(json, "tried");
    for (uint32_t i = 0; i < e->tried.list.n; i++)
        cJSON_AddItemToArray(tried, attempt_json(&e->tried.list.at[i]));
    return json;
}

static cJSON *summary_json(const struct byi_coverage *c)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "nodes", c->nodes);
    cJSON_AddNumberToObject(json, "offloaded", c->offloaded);
    cJSON_AddNumberToObject(json, "native", c->native);
    cJSON_AddNumberToObject(json, "folded", c->folded);
    cJSON_AddNumberToObject(json, "removed", c->removed);
    cJSON_AddNumberToObject(json, "regions", c->regions);
    cJSON_AddNumberToObject(json, "flops", c->flops);
    cJSON_AddNumberToObject(json, "flops_offloaded", c->flops_offloaded);
    return json;
}

void byi_ledger_json(const struct byi_ledger *ledger, struct byi_text *out)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "format", "byoc-ledger");
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON_AddItemToObject(root, "summary", summary_json(&ledger->coverage));
    cJSON *nodes = cJSON_AddArrayToObject(root, "nodes");
    for (uint32_t i = 0; i < ledger->coverage.nodes; i++)
        cJSON_AddItemToArray(nodes, entry_json(&ledger->entries.at[i]));
    byi_json_print(root, out);
    cJSON_Delete(root);
}
