/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: prints a ledger for people: the offloaded share first, then
 * backends, regions, implementations, and native operators with their reasons.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* Lists are cut after this many lines. */
enum { MAX_SHOWN = 8 };

void byi_report_add_flops(struct byi_text *out, double flops)
{
    static const struct {
        double from;
        const char *unit;
    } units[] = {
        {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}};
    for (size_t i = 0; i < BYI_COUNT(units); i++)
        if (flops >= units[i].from) {
            byi_text_addf(out, "%.2f %s", flops / units[i].from, units[i].unit);
            return;
        }
    byi_text_addf(out, "%.0f FLOP", flops);
}

/* Print 100 only if the part is the whole, and 0 only if the part is 0. */
void byi_report_add_share(struct byi_text *out, double part, double whole)
{
    double percent = whole > 0 ? 100 * part / whole : 0;
    if (part < whole && percent > 99.99)
        percent = 99.99;
    if (part > 0 && percent < 0.01)
        percent = 0.01;
    byi_text_addf(out, "%.2f%%", percent);
}

static void print_headline(const struct byi_report *r, struct byi_text *out)
{
    const struct byi_coverage *c = &r->coverage;
    const uint32_t run = byi_coverage_operators(c);
    byi_text_addf(out, "%s: ", r->model);
    if (c->flops > 0) { /* 0 if every size is symbolic */
        byi_report_add_share(out, c->flops_offloaded, c->flops);
        byi_text_addf(out, " of ");
        byi_report_add_flops(out, c->flops);
        if (*c->sizes)
            byi_text_addf(out, " (%s)", c->sizes);
        byi_text_addf(out, " and ");
    }
    byi_text_addf(out, "%u of %u operator%s offloaded, in %u region%s\n",
                  c->offloaded, run, byi_plural(run), c->regions,
                  byi_plural(c->regions));
    byi_text_addf(out, "%u node%s in the model, %u folded, %u removed; ",
                  c->nodes, byi_plural(c->nodes), c->folded, c->removed);
    byi_text_addf(out, "%u thread%s, %s\n", r->threads, byi_plural(r->threads),
                  r->cpu);
}

static void print_gates(const struct byi_report *r, struct byi_text *out)
{
    for (uint32_t i = 0; i < r->n_gates; i++) {
        const struct byi_gate *gate = &r->gates[i];
        byi_text_addf(out, "gate %s: found %.2f%%, expected %.2f%%: %s\n",
                      gate->name, gate->found, gate->wanted,
                      gate->passed ? "passed" : "failed");
    }
}

static void print_measured(const struct byi_placement_times *m,
                           struct byi_text *out)
{
    if (m->chosen)
        byi_text_addf(out,
                      "measured: native %.1f us, greedy %.1f us, placed by "
                      "measured costs %.1f us; chosen: %s\n",
                      m->native_us, m->greedy_us, m->measured_us, m->chosen);
}

/* The width of a column that must also hold `name`, within a limit. */
static int widen(int width, const char *name)
{
    const int n = (int)strlen(name);
    return n > width && n < 32 ? n : width;
}

static void print_backends(const struct byi_report *r, struct byi_text *out)
{
    const struct byi_coverage *c = &r->coverage;
    const double run = byi_coverage_operators(c);
    int width = (int)strlen("backend");
    for (uint32_t i = 0; i < r->n_backends; i++)
        width = widen(width, r->backends[i].name);
    byi_text_addf(out, "\n%-*s  regions  %16s  %22s  version\n", width,
                  "backend", "operators", "operations");
    for (uint32_t i = 0; i < r->n_backends; i++) {
        const struct byi_report_backend *v = &r->backends[i];
        struct byi_text nodes = {0}, flops = {0}, amount = {0};
        byi_report_add_share(&nodes, v->n_nodes, run);
        byi_report_add_share(&flops, v->flops, c->flops);
        byi_report_add_flops(&amount, v->flops);
        byi_text_addf(out, "%-*s  %7u  %7u  %7s  %13s  %7s  %s\n", width,
                      v->name, v->n_regions, v->n_nodes, nodes.at, amount.at,
                      flops.at, v->version);
        byi_text_free(&nodes);
        byi_text_free(&flops);
        byi_text_free(&amount);
    }
}

/* --- regions -------------------------------------------------------------- */

/* By descending work, then number of nodes, then position. */
static int compare_regions(const void *a, const void *b)
{
    const struct byi_report_region *x = *(void *const *)a;
    const struct byi_report_region *y = *(void *const *)b;
    if (x->flops != y->flops)
        return x->flops > y->flops ? -1 : 1;
    if (x->n_nodes != y->n_nodes)
        return x->n_nodes > y->n_nodes ? -1 : 1;
    return (x > y) - (x < y);
}

static void print_times(struct byi_text *out, const char *backend,
                        double backend_us, double native_us)
{
    if (backend_us >= 0)
        byi_text_addf(out, ", %.1f us on %s", backend_us, backend);
    if (native_us >= 0)
        byi_text_addf(out, ", %.1f us native", native_us);
}

static void print_region(const struct byi_report_region *region,
                         struct byi_text *out)
{
    byi_text_addf(out, "  %-12s %5u node%s, ", region->name, region->n_nodes,
                  byi_plural(region->n_nodes));
    byi_report_add_flops(out, region->flops);
    if (region->n_outputs)
        byi_text_addf(out, ", %u input%s, %u output%s", region->n_inputs,
                      byi_plural(region->n_inputs), region->n_outputs,
                      byi_plural(region->n_outputs));
    print_times(out, region->backend, region->backend_us, region->native_us);
    if (!region->kept)
        byi_text_addf(out, "; %s, %s: %s", region->outcome, region->reason,
                      region->detail);
    byi_text_addf(out, "\n");
}

/* Print the regions that were kept, or those that were not, by descending work.
 */
static void print_regions(const struct byi_report *r, bool kept,
                          struct byi_text *out)
{
    BYI_VEC(const struct byi_report_region *) list = {0};
    for (uint32_t i = 0; i < r->n_regions; i++)
        if (r->regions[i].kept == kept)
            BYI_PUSH(&list, &r->regions[i]);
    if (!list.n)
        return;
    qsort(list.at, list.n, sizeof(struct byi_report_region *), compare_regions);
    byi_text_addf(out,
                  kept ? "\nregions:\n" : "\nregions that were not kept:\n");
    for (uint32_t i = 0; i < list.n && i < MAX_SHOWN; i++)
        print_region(list.at[i], out);
    uint32_t max_nodes = 0, nodes = 0;
    for (uint32_t i = MAX_SHOWN; i < list.n; i++) {
        const uint32_t n = list.at[i]->n_nodes;
        max_nodes = n > max_nodes ? n : max_nodes;
        nodes += n;
    }
    if (list.n > MAX_SHOWN)
        byi_text_addf(out, "  and %u smaller, %u node%s in all, %u at most\n",
                      list.n - MAX_SHOWN, nodes, byi_plural(nodes), max_nodes);
    byi_vec_free(list.at);
}

/* --- weights -------------------------------------------------------------- */

/* The weights that stay float32 first, then by descending error. */
static int compare_weights(const void *a, const void *b)
{
    const struct byi_report_weight *x = *(void *const *)a;
    const struct byi_report_weight *y = *(void *const *)b;
    if (!*x->kept != !*y->kept)
        return *x->kept ? -1 : 1;
    if (x->rms != y->rms)
        return x->rms > y->rms ? -1 : 1;
    return (x > y) - (x < y);
}

static void print_weight(const struct byi_report *r,
                         const struct byi_report_weight *w,
                         struct byi_text *out)
{
    byi_text_addf(out, "  %8.2f MB ", w->bytes / 1e6);
    if (*w->kept)
        byi_text_addf(out, "stays float32: %s", w->kept);
    else
        byi_text_addf(out, "to %8.2f MB, error %.3g%% rms, %.3g%% at most",
                      w->narrow / 1e6, 100 * w->rms, 100 * w->largest);
    byi_text_addf(out, "  %s\n", w->n_nodes ? r->nodes[w->nodes[0]].name : "");
}

/* Print totals; then the weights that stay float32 and the weights with the
 * largest error, at most MAX_SHOWN unless `show_all`. */
static void print_weights(const struct byi_report *r, bool show_all,
                          struct byi_text *out)
{
    BYI_VEC(const struct byi_report_weight *) list = {0};
    double before = 0, after = 0;
    uint32_t narrowed = 0;
    if (!r->n_weights)
        return;
    for (uint32_t i = 0; i < r->n_weights; i++) {
        const struct byi_report_weight *w = &r->weights[i];
        BYI_PUSH(&list, w);
        before += w->bytes;
        after += *w->kept ? w->bytes : w->narrow;
        narrowed += !*w->kept;
    }
    qsort(list.at, list.n, sizeof(struct byi_report_weight *), compare_weights);
    byi_text_addf(
        out, "\nweights to %s: %u of %u large ones, %.2f MB to %.2f MB\n",
        r->weights[0].to, narrowed, list.n, before / 1e6, after / 1e6);
    const uint32_t shown = show_all || list.n < MAX_SHOWN ? list.n : MAX_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        print_weight(r, list.at[i], out);
    if (shown < list.n)
        byi_text_addf(out, "  and %u more\n", list.n - shown);
    byi_vec_free(list.at);
}

static void print_precision(const struct byi_report_precision *p,
                            struct byi_text *out)
{
    if (p->to)
        byi_text_addf(out,
                      "\nprecision %s: %u of %u float32 operators compute in "
                      "16 bits\n",
                      p->to, p->narrow, p->narrow + p->float32);
}

/* --- groups of nodes ------------------------------------------------------ */

/* Nodes that are printed as one line. A line about an implementation has its
 * name as `op`, and its backend as `reason`. */
struct line {
    const char *op, *reason, *detail;
    const char *first_name; /* name of the first node */
    uint32_t n;             /* number of nodes */
    uint32_t first_node;    /* its number in the model */
    double flops;
};
typedef BYI_VEC(struct line) line_list;

/* By operator, reason and detail. */
static int compare_texts(const struct line *x, const struct line *y)
{
    int c = strcmp(x->op, y->op);
    c = c ? c : strcmp(x->reason, y->reason);
    return c ? c : strcmp(x->detail, y->detail);
}

/* By compare_texts, then position in the model. */
static int compare_alike(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    const int c = compare_texts(x, y);
    return c ? c
             : (x->first_node > y->first_node) -
                   (x->first_node < y->first_node);
}

/* By descending work, then number of nodes, then position in the model. */
static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->flops != y->flops)
        return x->flops > y->flops ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->first_node > y->first_node) - (x->first_node < y->first_node);
}

/* Merge lines with equal texts. */
static void group_lines(line_list *list)
{
    uint32_t n_groups = 0;
    if (!list->n)
        return;
    qsort(list->at, list->n, sizeof *list->at, compare_alike);
    for (uint32_t i = 0; i < list->n; i++) {
        struct line *last = n_groups ? &list->at[n_groups - 1] : NULL;
        if (!last || compare_texts(last, &list->at[i]) != 0) {
            list->at[n_groups++] = list->at[i];
            continue;
        }
        last->n++;
        last->flops += list->at[i].flops;
    }
    list->n = n_groups;
    qsort(list->at, list->n, sizeof *list->at, compare_lines);
}

static void print_implementations(const struct byi_report *r,
                                  struct byi_text *out)
{
    line_list list = {0};
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const struct byi_report_node *node = &r->nodes[i];
        if (byi_report_is_offloaded(node) && *node->impl)
            BYI_PUSH(&list, ((struct line){.op = node->impl,
                                           .reason = node->where,
                                           .detail = "",
                                           .first_node = i,
                                           .n = 1,
                                           .flops = node->flops}));
    }
    group_lines(&list);
    if (list.n)
        byi_text_addf(out, "\nimplementations, by their operations:\n");
    for (uint32_t i = 0; i < list.n && i < MAX_SHOWN; i++) {
        byi_text_addf(out, "  %5u x %-32s ", list.at[i].n, list.at[i].op);
        byi_report_add_flops(out, list.at[i].flops);
        byi_text_addf(out, "\n");
    }
    if (list.n > MAX_SHOWN)
        byi_text_addf(out, "  and %u more\n", list.n - MAX_SHOWN);
    byi_vec_free(list.at);
}

/* The native nodes, grouped by operator and reason. The caller frees the
 * result's `at` with byi_vec_free. */
static line_list group_native(const struct byi_report *r)
{
    line_list list = {0};
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const struct byi_report_node *node = &r->nodes[i];
        if (byi_report_is_native(node))
            BYI_PUSH(&list, ((struct line){.op = node->op,
                                           .reason = node->reason,
                                           .detail = node->detail,
                                           .first_name = node->name,
                                           .first_node = i,
                                           .n = 1,
                                           .flops = node->flops}));
    }
    group_lines(&list);
    return list;
}

static void print_native(const struct byi_report *r, struct byi_text *out)
{
    line_list list = group_native(r);
    int width = 0;
    for (uint32_t i = 0; i < list.n; i++)
        width = widen(width, list.at[i].op);
    if (list.n)
        byi_text_addf(out, "\nnative:\n");
    for (uint32_t i = 0; i < list.n; i++)
        byi_text_addf(out, "  %5u x %-*s %s: %s (first: %s)\n", list.at[i].n,
                      width, list.at[i].op, list.at[i].reason,
                      list.at[i].detail, list.at[i].first_name);
    byi_vec_free(list.at);
}

void byi_report_add_reasons(const struct byi_report *r, struct byi_text *out)
{
    const uint32_t max_reasons = 3;
    line_list list = group_native(r);
    for (uint32_t i = 0; i < list.n && i < max_reasons; i++)
        byi_text_addf(out, "%s%u x %s, %s: %s", i ? "; " : "", list.at[i].n,
                      list.at[i].op, list.at[i].reason, list.at[i].detail);
    if (list.n > max_reasons)
        byi_text_addf(out, "; and %u more reasons", list.n - max_reasons);
    byi_vec_free(list.at);
}

static void print_node(const struct byi_report_node *node, struct byi_text *out)
{
    byi_text_addf(out, "  %-10s %-20s %s", node->where, node->op, node->name);
    if (*node->pattern)
        byi_text_addf(out, "  [%s %s %s]", node->region, node->pattern,
                      node->impl);
    else if (byi_report_is_native(node))
        byi_text_addf(out, "  [%s: %s]", node->reason, node->detail);
    byi_text_addf(out, "\n");
}

void byi_report_add_text(const struct byi_report *r, bool every_node,
                         struct byi_text *out)
{
    print_headline(r, out);
    print_gates(r, out);
    print_measured(&r->measured, out);
    print_backends(r, out);
    print_regions(r, true, out);
    print_regions(r, false, out);
    print_implementations(r, out);
    print_weights(r, every_node, out);
    print_precision(&r->precision, out);
    if (!every_node) {
        print_native(r, out);
        return;
    }
    byi_text_addf(out, "\nnodes:\n");
    for (uint32_t i = 0; i < r->n_nodes; i++)
        print_node(&r->nodes[i], out);
}
