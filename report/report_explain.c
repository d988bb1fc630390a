/* SPDX-License-Identifier: Apache-2.0 */
/* report_explain.c: prints everything that a ledger has about one node: where
 * it runs and why, its producers and readers, every pattern that was tried and
 * its result, its region, implementation and cost.
 */
#include "report.h"

#include <string.h>

enum { MAX_NAMES = 8 }; /* neighbours of a node that are printed */

/* Print the name of node i in a list, after n_before other names. Only the
 * first MAX_NAMES are printed. */
static void print_name(struct byi_text *out, const struct byi_report *r,
                       uint32_t i, uint32_t n_before)
{
    if (n_before < MAX_NAMES)
        byi_text_addf(out, "%s%s", n_before ? ", " : "", r->nodes[i].name);
}

static void end_names(struct byi_text *out, uint32_t n)
{
    if (n > MAX_NAMES)
        byi_text_addf(out, ", and %u more", n - MAX_NAMES);
    byi_text_addf(out, "\n");
}

static void print_neighbours(const struct byi_report *r, uint32_t at,
                             struct byi_text *out)
{
    const struct byi_report_node *node = &r->nodes[at];
    uint32_t n = 0;
    byi_text_addf(out, "  reads     ");
    for (uint32_t i = 0; i < node->n_inputs; i++)
        print_name(out, r, node->inputs[i], i);
    if (!node->n_inputs)
        byi_text_addf(out, "no other node");
    end_names(out, node->n_inputs);
    byi_text_addf(out, "  read by   ");
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (byi_has_id(r->nodes[i].inputs, r->nodes[i].n_inputs, at))
            print_name(out, r, i, n++);
    if (!n)
        byi_text_addf(out, "no other node");
    end_names(out, n);
}

/* --- where and why -------------------------------------------------------- */

static bool is_folded(const struct byi_report_node *node)
{
    return strcmp(node->where, byi_reason_code(BYI_REASON_FOLDED)) == 0;
}

/* Tell why a node was removed: no node that runs reads it, or it has no effect,
 * or its neighbours absorbed it. */
static const char *why_removed(const struct byi_report *r, uint32_t at)
{
    bool is_read = false;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        if (!byi_has_id(r->nodes[i].inputs, r->nodes[i].n_inputs, at))
            continue;
        is_read = true;
        if (byi_report_is_offloaded(&r->nodes[i]) ||
            byi_report_is_native(&r->nodes[i]))
            return "it does nothing, or other nodes do its work as well";
    }
    return is_read ? "no node that runs reads its result"
                   : "nothing reads its result, or it does nothing";
}

static void print_verdict(const struct byi_report *r, uint32_t at,
                          struct byi_text *out)
{
    const struct byi_report_node *node = &r->nodes[at];
    byi_text_addf(out, "%s (%s) ", node->name, node->op);
    if (byi_report_is_offloaded(node))
        byi_text_addf(out, "runs on %s, in %s\n", node->where, node->region);
    else if (byi_report_is_native(node))
        byi_text_addf(out, "stays native: %s: %s\n", node->reason,
                      node->detail);
    else if (is_folded(node))
        byi_text_addf(out, "is computed at compile time: all its inputs are "
                           "constant\n");
    else
        byi_text_addf(out, "is removed: %s\n", why_removed(r, at));
}

static void print_cost(const struct byi_report_node *node, struct byi_text *out)
{
    byi_text_addf(out, "  cost      ");
    byi_report_add_flops(out, node->flops);
    if (node->backend_us >= 0)
        byi_text_addf(out, ", %.1f us by the backend", node->backend_us);
    if (node->native_us >= 0)
        byi_text_addf(out, ", %.1f us native", node->native_us);
    byi_text_addf(out, "\n");
}

static void print_region(const struct byi_report_region *region,
                         struct byi_text *out)
{
    byi_text_addf(out, "  region    %s of %s, %u node%s, ", region->name,
                  region->backend, region->n_nodes,
                  byi_plural(region->n_nodes));
    byi_report_add_flops(out, region->flops);
    byi_text_addf(out, ": ");
    if (region->kept)
        byi_text_addf(out, "kept");
    else
        byi_text_addf(out, "%s, %s: %s", region->outcome, region->reason,
                      region->detail);
    if (region->backend_us >= 0)
        byi_text_addf(out, ", %.1f us by the backend", region->backend_us);
    if (region->native_us >= 0)
        byi_text_addf(out, ", %.1f us native", region->native_us);
    byi_text_addf(out, "\n");
}

static void print_attempts(const struct byi_report_node *node,
                           struct byi_text *out)
{
    for (uint32_t i = 0; i < node->n_attempts; i++) {
        const struct byi_report_attempt *t = &node->attempts[i];
        const char *source = *t->pattern ? t->pattern : t->backend;
        byi_text_addf(out, "  %-9s %s%s%s: %s\n", i ? "" : "tried", source,
                      *source ? ", " : "", t->reason, t->detail);
    }
    if (*node->pattern)
        byi_text_addf(out, "  matched   %s%s%s\n", node->pattern,
                      *node->impl ? ", built as " : "", node->impl);
}

/* --- similar names -------------------------------------------------------- */

/* How much the names differ: 1 if one contains the other, otherwise their
 * distance; UINT32_MAX if they are not similar. */
static uint32_t dissimilarity(const char *requested, const char *name)
{
    const size_t n = strlen(requested);
    const uint32_t max_distance = n < 24 ? 2 + (uint32_t)n / 4 : 8;
    if (n && (strcasestr(name, requested) || strcasestr(requested, name)))
        return 1;
    const uint32_t d = byi_edit_distance(requested, name, true, max_distance);
    return d < max_distance ? d : UINT32_MAX;
}

/* Fail because no node has the name; suggest the most similar names. */
static enum byoc_status fail_unknown_node(const struct byi_report *r,
                                          const char *requested,
                                          struct byoc_error *err)
{
    enum { SHOWN = 3 };
    uint32_t best[SHOWN], at[SHOWN], n = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const uint32_t d = dissimilarity(requested, r->nodes[i].name);
        uint32_t k = n;
        while (k > 0 && d < best[k - 1])
            k--;
        if (d == UINT32_MAX || k == SHOWN)
            continue;
        n += n < SHOWN;
        for (uint32_t last = n - 1; last > k; last--) {
            best[last] = best[last - 1];
            at[last] = at[last - 1];
        }
        best[k] = d;
        at[k] = i;
    }
    struct byi_text names = {0};
    for (uint32_t i = 0; i < n; i++)
        byi_text_addf(&names, "%s'%s'",
                      !i           ? ""
                      : i + 1 == n ? " or "
                                   : ", ",
                      r->nodes[at[i]].name);
    byi_fail(err, BYOC_EINVAL, "the model has no node '%s'; %s%s%s", requested,
             n ? "did you mean " : "`byoc check --all` lists its nodes",
             n ? names.at : "", n ? "?" : "");
    byi_text_free(&names);
    return BYOC_EINVAL;
}

enum byoc_status byi_report_add_node(const struct byi_report *r,
                                     const char *name, struct byi_text *out,
                                     struct byoc_error *err)
{
    uint32_t at = 0;
    while (at < r->n_nodes && strcmp(r->nodes[at].name, name) != 0)
        at++;
    if (at == r->n_nodes)
        return fail_unknown_node(r, name, err);
    print_verdict(r, at, out);
    print_neighbours(r, at, out);
    print_attempts(&r->nodes[at], out);
    for (uint32_t i = 0; i < r->n_regions; i++)
        if (byi_has_id(r->regions[i].nodes, r->regions[i].n_nodes, at))
            print_region(&r->regions[i], out);
    print_cost(&r->nodes[at], out);
    return BYOC_OK;
}
