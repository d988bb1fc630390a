/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff.c: compares two ledgers: prints the changes of shares, backends
 * and regions, and every node that moved, with its present reason. Nodes are
 * matched by name.
 */
#include "report.h"
#include "core/base/json_write.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* The nodes of one name in both models; NULL: a model has no such node. */
struct node_pair {
    const struct byi_report_node *old, *new;
};
typedef BYI_VEC(struct node_pair) pair_list;

/* Two ledgers, and the nodes that differ. */
struct ledger_comparison {
    const struct byi_report *old, *new;
    pair_list
        moved_pairs; /* to another backend, to or from native, or removed */
    pair_list rebuilt_pairs; /* same backend, other pattern or implementation */
    pair_list other_reason_pairs; /* still native, for another reason */
    pair_list added_pairs,
        gone_pairs; /* only in the new model, only in the old one */
    /* the offloaded percentage of the operators that run in both models */
    double old_nodes, new_nodes;
};

/* --- matching nodes ------------------------------------------------------- */

/* By name, then position in the model. */
static int compare_names(const void *a, const void *b)
{
    const struct byi_report_node *x = *(void *const *)a;
    const struct byi_report_node *y = *(void *const *)b;
    const int c = strcmp(x->name, y->name);
    return c ? c : (x > y) - (x < y);
}

/* The nodes of a ledger in the order of compare_names, in `arena`. */
static const struct byi_report_node **sort_by_name(const struct byi_report *r,
                                                   struct byi_arena *arena)
{
    const struct byi_report_node **list = byi_arena_calloc(
        arena, r->n_nodes, sizeof(const struct byi_report_node *));
    for (uint32_t i = 0; i < r->n_nodes; i++)
        list[i] = &r->nodes[i];
    if (r->n_nodes)
        qsort(list, r->n_nodes, sizeof *list, compare_names);
    return list;
}

static bool is_executed(const struct byi_report_node *node)
{
    return byi_report_is_offloaded(node) || byi_report_is_native(node);
}

/* Add the pair to the list for its change; none if nothing changed. */
static void classify(struct ledger_comparison *d, const struct node_pair *pair)
{
    const struct byi_report_node *old = pair->old, *new = pair->new;
    if (strcmp(old->where, new->where) != 0)
        BYI_PUSH(&d->moved_pairs, *pair);
    else if (byi_report_is_native(new) && (strcmp(old->reason, new->reason) ||
                                           strcmp(old->detail, new->detail)))
        BYI_PUSH(&d->other_reason_pairs, *pair);
    else if (byi_report_is_offloaded(new) &&
             (strcmp(old->impl, new->impl) ||
              strcmp(old->pattern, new->pattern)))
        BYI_PUSH(&d->rebuilt_pairs, *pair);
}

/* In the order of the new model, then of the old one. */
static int compare_pairs(const void *a, const void *b)
{
    const struct node_pair *x = a, *y = b;
    if (x->new && y->new)
        return (x->new > y->new) - (x->new < y->new);
    return (x->old > y->old) - (x->old < y->old);
}

static void sort_pairs(pair_list *list)
{
    if (list->n)
        qsort(list->at, list->n, sizeof *list->at, compare_pairs);
}

static void match_nodes(struct ledger_comparison *d)
{
    struct byi_arena *arena = byi_arena_new();
    const struct byi_report_node **old = sort_by_name(d->old, arena);
    const struct byi_report_node **new = sort_by_name(d->new, arena);
    uint32_t i = 0, k = 0, n_both = 0, n_old = 0, n_new = 0;
    while (i < d->old->n_nodes || k < d->new->n_nodes) {
        int c = i == d->old->n_nodes   ? 1
                : k == d->new->n_nodes ? -1
                                       : strcmp(old[i]->name, new[k]->name);
        const struct node_pair pair = {c <= 0 ? old[i] : NULL,
                                       c >= 0 ? new[k] : NULL};
        i += c <= 0;
        k += c >= 0;
        if (c < 0)
            BYI_PUSH(&d->gone_pairs, pair);
        if (c > 0)
            BYI_PUSH(&d->added_pairs, pair);
        if (c != 0)
            continue;
        classify(d, &pair);
        if (!is_executed(pair.old) || !is_executed(pair.new))
            continue;
        n_both++;
        n_old += byi_report_is_offloaded(pair.old);
        n_new += byi_report_is_offloaded(pair.new);
    }
    d->old_nodes = n_both ? 100.0 * n_old / n_both : 0;
    d->new_nodes = n_both ? 100.0 * n_new / n_both : 0;
    byi_arena_free(&arena);
    sort_pairs(&d->moved_pairs);
    sort_pairs(&d->rebuilt_pairs);
    sort_pairs(&d->other_reason_pairs);
    sort_pairs(&d->added_pairs);
    sort_pairs(&d->gone_pairs);
}

static bool is_worse(const struct ledger_comparison *d, double tolerance)
{
    const double rounding = 1e-9;
    const double flops =
        byi_report_flops_share(d->old) - byi_report_flops_share(d->new);
    return flops > tolerance + rounding ||
           d->old_nodes - d->new_nodes > tolerance + rounding;
}

/* --- as text -------------------------------------------------------------- */

/* The text of a line, for n pairs of nodes. */
struct line_text {
    const char *op, *from, *to;
    const char *detail; /* of the present reason, or "" */
    const char *first;  /* name of the first node */
    uint32_t n;
    double flops;
};

static bool is_same_line(const struct line_text *a, const struct line_text *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->from, b->from) &&
           !strcmp(a->to, b->to) && !strcmp(a->detail, b->detail);
}

/* The detail of a native node's reason; "" for other nodes. */
static const char *native_reason(const struct byi_report_node *node)
{
    return byi_report_is_native(node) ? node->detail : "";
}

static struct line_text say_moved(const struct node_pair *p)
{
    return (struct line_text){.op = p->new->op,
                              .from = p->old->where,
                              .to = p->new->where,
                              .detail = native_reason(p->new)};
}

static struct line_text say_rebuilt(const struct node_pair *p)
{
    const bool row = strcmp(p->old->pattern, p->new->pattern) != 0;
    return (struct line_text){.op = p->new->op,
                              .from = row ? p->old->pattern : p->old->impl,
                              .to = row ? p->new->pattern : p->new->impl,
                              .detail = ""};
}

static struct line_text say_other(const struct node_pair *p)
{
    return (struct line_text){.op = p->new->op,
                              .from = p->old->reason,
                              .to = p->new->reason,
                              .detail = p->new->detail};
}

static struct line_text say_added(const struct node_pair *p)
{
    return (struct line_text){.op = p->new->op,
                              .from = "",
                              .to = p->new->where,
                              .detail = native_reason(p->new)};
}

static struct line_text say_gone(const struct node_pair *p)
{
    return (struct line_text){
        .op = p->old->op, .from = p->old->where, .to = "", .detail = ""};
}

static void print_line(const struct line_text *s, struct byi_text *out)
{
    byi_text_addf(out, "  %5u x %-16s %s%s%s, ", s->n, s->op, s->from,
                  *s->from && *s->to ? " -> " : "", s->to);
    byi_report_add_flops(out, s->flops);
    byi_text_addf(out, "%s%s (first: %s)\n", *s->detail ? ", " : "", s->detail,
                  s->first);
}

/* Print the pairs of a list; `say` makes the text of a pair. Pairs with the
 * same text share a line, since models repeat blocks. */
static void print_list(const pair_list *list, const char *title,
                       struct line_text (*say)(const struct node_pair *),
                       struct byi_text *out)
{
    BYI_VEC(struct line_text) lines = {0};
    enum { MAX_LINES = 64 };
    uint32_t more = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct node_pair *pair = &list->at[i];
        struct line_text line = say(pair);
        uint32_t k = 0;
        line.first = pair->new ? pair->new->name : pair->old->name;
        while (k < lines.n && !is_same_line(&lines.at[k], &line))
            k++;
        if (k == MAX_LINES) {
            more++;
            continue;
        }
        if (k == lines.n)
            BYI_PUSH(&lines, line);
        lines.at[k].n++;
        lines.at[k].flops += pair->new ? pair->new->flops : pair->old->flops;
    }
    if (lines.n)
        byi_text_addf(out, "\n%s:\n", title);
    for (uint32_t i = 0; i < lines.n; i++)
        print_line(&lines.at[i], out);
    if (more)
        byi_text_addf(out, "  and %u more nodes; --json lists them all\n",
                      more);
    byi_vec_free(lines.at);
}

static void print_change(struct byi_text *out, const char *what, double old,
                         double new)
{
    if (old == new)
        byi_text_addf(out, "%-22s %.2f%%\n", what, new);
    else
        byi_text_addf(out, "%-22s %.2f%% -> %.2f%% (%+.2f)\n", what, old, new,
                      new - old);
}

static const struct byi_report_backend *find_backend(const struct byi_report *r,
                                                     const char *name)
{
    for (uint32_t i = 0; i < r->n_backends; i++)
        if (strcmp(r->backends[i].name, name) == 0)
            return &r->backends[i];
    return NULL;
}

static void print_backend(struct byi_text *out,
                          const struct byi_report_backend *v)
{
    if (v)
        byi_text_addf(out, "%s%s%u node%s in %u region%s", v->version,
                      *v->version ? ", " : "", v->n_nodes,
                      byi_plural(v->n_nodes), v->n_regions,
                      byi_plural(v->n_regions));
    else
        byi_text_addf(out, "absent");
}

/* Whether the backend is unchanged. For native only the version counts, since
 * its numbers follow from the backends'. */
static bool is_same_backend(const struct byi_report_backend *a,
                            const struct byi_report_backend *b)
{
    return a && b && !strcmp(a->version, b->version) &&
           (strcmp(a->name, byi_reason_code(BYI_REASON_NATIVE)) == 0 ||
            (a->n_nodes == b->n_nodes && a->n_regions == b->n_regions));
}

/* The backends of the new model, then those that only the old one has. */
static void print_backends(const struct ledger_comparison *d,
                           struct byi_text *out)
{
    const struct byi_report *sides[] = {d->new, d->old};
    for (size_t s = 0; s < BYI_COUNT(sides); s++)
        for (uint32_t i = 0; i < sides[s]->n_backends; i++) {
            const char *name = sides[s]->backends[i].name;
            const struct byi_report_backend *old = find_backend(d->old, name);
            const struct byi_report_backend *new = find_backend(d->new, name);
            if ((s == 1 && new) || is_same_backend(old, new))
                continue;
            byi_text_addf(out, "%-22s ", name);
            print_backend(out, old);
            byi_text_addf(out, " -> ");
            print_backend(out, new);
            byi_text_addf(out, "\n");
        }
}

/* Print the number of kept regions, and the sizes of the first ones. */
static void print_sizes(struct byi_text *out, const struct byi_report *r)
{
    enum { SHOWN = 6 };
    uint32_t n = 0;
    byi_text_addf(out, "%u%s", r->coverage.regions,
                  r->coverage.regions ? " (" : "");
    for (uint32_t i = 0; i < r->n_regions; i++)
        if (r->regions[i].kept && n++ < SHOWN)
            byi_text_addf(out, "%s%u", n > 1 ? ", " : "",
                          r->regions[i].n_nodes);
    if (r->coverage.regions)
        byi_text_addf(out, "%s nodes)", n > SHOWN ? ", ..." : "");
}

static void print_text(const struct ledger_comparison *d, double tolerance,
                       struct byi_text *out)
{
    byi_text_addf(out, "%s -> %s: %s\n", d->old->model, d->new->model,
                  is_worse(d, tolerance) ? "less is offloaded"
                  : is_worse(d, 0) ? "less is offloaded, within the tolerance"
                                   : "no less is offloaded");
    print_change(out, "operations", byi_report_flops_share(d->old),
                 byi_report_flops_share(d->new));
    print_change(out, "operators of both", d->old_nodes, d->new_nodes);
    byi_text_addf(out, "%-22s ", "regions");
    print_sizes(out, d->old);
    byi_text_addf(out, " -> ");
    print_sizes(out, d->new);
    byi_text_addf(out, "\n");
    if (strcmp(d->old->cpu, d->new->cpu) || d->old->threads != d->new->threads)
        byi_text_addf(out, "%-22s %s, %u threads -> %s, %u threads\n",
                      "machine", d->old->cpu, d->old->threads, d->new->cpu,
                      d->new->threads);
    print_backends(d, out);
    print_list(&d->moved_pairs, "moved", say_moved, out);
    print_list(&d->rebuilt_pairs, "built in another way", say_rebuilt, out);
    print_list(&d->other_reason_pairs, "native for another reason", say_other,
               out);
    print_list(&d->gone_pairs, "no longer in the model", say_gone, out);
    print_list(&d->added_pairs, "new in the model", say_added, out);
}

/* --- as JSON -------------------------------------------------------------- */

static cJSON *side_json(struct byi_arena *arena, const struct byi_report *r,
                        double nodes)
{
    cJSON *json = byi_json_object(arena);
    byi_json_add(json, "model", byi_json_text(arena, r->model));
    byi_json_add(json, "flops_share",
                 byi_json_number(arena, byi_report_flops_share(r)));
    byi_json_add(json, "nodes_share", byi_json_number(arena, nodes));
    byi_json_add(json, "regions", byi_json_number(arena, r->coverage.regions));
    cJSON *backends = byi_json_add(json, "backends", byi_json_list(arena));
    for (uint32_t i = 0; i < r->n_backends; i++) {
        cJSON *backend = byi_json_object(arena);
        byi_json_add(backend, "name",
                     byi_json_text(arena, r->backends[i].name));
        byi_json_add(backend, "version",
                     byi_json_text(arena, r->backends[i].version));
        byi_json_add(backend, "nodes",
                     byi_json_number(arena, r->backends[i].n_nodes));
        byi_json_add(backend, "regions",
                     byi_json_number(arena, r->backends[i].n_regions));
        byi_json_append(backends, backend);
    }
    return json;
}

static void add_place(struct byi_arena *arena, cJSON *json, const char *key,
                      const struct byi_report_node *node)
{
    cJSON *place = byi_json_add(json, key, byi_json_object(arena));
    byi_json_add(place, "where", byi_json_text(arena, node->where));
    byi_json_add(place, "reason", byi_json_text(arena, node->reason));
    if (byi_report_is_native(node))
        byi_json_add(place, "detail", byi_json_text(arena, node->detail));
    if (*node->pattern)
        byi_json_add(place, "pattern", byi_json_text(arena, node->pattern));
    if (*node->impl)
        byi_json_add(place, "impl", byi_json_text(arena, node->impl));
}

static void add_list(struct byi_arena *arena, cJSON *root, const char *key,
                     const pair_list *list)
{
    cJSON *json = byi_json_add(root, key, byi_json_list(arena));
    for (uint32_t i = 0; i < list->n; i++) {
        const struct node_pair *pair = &list->at[i];
        const struct byi_report_node *node = pair->new ? pair->new : pair->old;
        cJSON *item = byi_json_object(arena);
        byi_json_add(item, "name", byi_json_text(arena, node->name));
        byi_json_add(item, "op", byi_json_text(arena, node->op));
        byi_json_add(item, "flops", byi_json_number(arena, node->flops));
        if (pair->old)
            add_place(arena, item, "old", pair->old);
        if (pair->new)
            add_place(arena, item, "new", pair->new);
        byi_json_append(json, item);
    }
}

static void print_json(const struct ledger_comparison *d, bool worse,
                       struct byi_text *out)
{
    struct byi_arena *arena = byi_arena_new();
    cJSON *root = byi_json_object(arena);
    byi_json_add(root, "format", byi_json_text(arena, "byoc-ledger-diff"));
    byi_json_add(root, "version", byi_json_number(arena, 1));
    byi_json_add(root, "worse", byi_json_bool(arena, worse));
    byi_json_add(root, "old", side_json(arena, d->old, d->old_nodes));
    byi_json_add(root, "new", side_json(arena, d->new, d->new_nodes));
    add_list(arena, root, "moved", &d->moved_pairs);
    add_list(arena, root, "rebuilt", &d->rebuilt_pairs);
    add_list(arena, root, "other_reason", &d->other_reason_pairs);
    add_list(arena, root, "gone", &d->gone_pairs);
    add_list(arena, root, "added", &d->added_pairs);
    byi_json_print(root, out);
    byi_arena_free(&arena);
}

bool byi_report_add_diff(const struct byi_report *old,
                         const struct byi_report *new, double tolerance,
                         bool json, struct byi_text *out)
{
    struct ledger_comparison d = {.old = old, .new = new};
    match_nodes(&d);
    const bool worse = is_worse(&d, tolerance);
    if (json)
        print_json(&d, worse, out);
    else
        print_text(&d, tolerance, out);
    byi_vec_free(d.moved_pairs.at);
    byi_vec_free(d.rebuilt_pairs.at);
    byi_vec_free(d.other_reason_pairs.at);
    byi_vec_free(d.added_pairs.at);
    byi_vec_free(d.gone_pairs.at);
    return worse;
}
