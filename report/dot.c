/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c: writes a ledger as a Graphviz graph: a box per model node, a cluster
 * per region, an edge from each node to its readers.
 */
#include "page.h"

#include "report.h"

#include <string.h>

enum { LABEL_MAX = 48 /* bytes; of a longer name, only the end is shown */ };

/* Colours that colour-blind people can distinguish, as on the page; `fill` is a
 * light tint of `line`, or white. */
struct colour {
    const char *line, *fill;
};

static const struct colour backend_colours[] = {{"#0072b2", "#cce3f0"},
                                                {"#009e73", "#ccece3"},
                                                {"#b0609a", "#efdfeb"},
                                                {"#8a7a00", "#e8e4cc"},
                                                {"#4d4dcc", "#dbdbf5"}};
static const struct colour native_colour = {"#d55e00", "#ffffff"};
static const struct colour eliminated_colour = {"#9aa3ab", "#ffffff"};

/* The state of byi_ledger_write_dot. */
struct dot {
    const struct byi_report *r;
    bool *is_written; /* for each node: written */
    struct byi_text *out;
};

/* Add text to a quoted string: escaped, on one line, as valid UTF-8. */
static void add_escaped(struct byi_text *out, const char *from)
{
    struct byi_text clean = {0};
    byi_utf8_add(&clean, from, strlen(from));
    for (const char *c = clean.at; c && *c; c++) {
        if (*c == '"' || *c == '\\')
            byi_text_add(out, "\\", 1);
        byi_text_add(out, (unsigned char)*c < ' ' ? " " : c, 1);
    }
    byi_text_free(&clean);
}

/* Add the end of a long name, where names usually differ. */
static void add_name(struct byi_text *out, const char *name)
{
    size_t n = strlen(name);
    if (n <= LABEL_MAX) {
        add_escaped(out, name);
        return;
    }
    const char *end = name + n - LABEL_MAX;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++; /* do not start inside a UTF-8 character */
    byi_text_addf(out, "...");
    add_escaped(out, end);
}

/* The colour of a place: a backend's name, or the code of a reason. The last of
 * the report's backends is "native". */
static struct colour colour_of(const struct dot *d, const char *where)
{
    if (!strcmp(where, "folded") || !strcmp(where, "removed"))
        return eliminated_colour;
    for (uint32_t i = 0; i + 1 < d->r->n_backends; i++)
        if (!strcmp(d->r->backends[i].name, where))
            return backend_colours[i % BYI_COUNT(backend_colours)];
    return native_colour;
}

static void add_node(struct dot *d, uint32_t i, const char *indent)
{
    const struct byi_report_node *node = &d->r->nodes[i];
    const char *where = node->where;
    const struct colour colour = colour_of(d, where);
    const bool eliminated =
        !strcmp(where, "folded") || !strcmp(where, "removed");
    d->is_written[i] = true;
    byi_text_addf(d->out, "%sn%u [label=\"", indent, i);
    add_escaped(d->out, node->op);
    byi_text_addf(d->out, "\\n");
    add_name(d->out, node->name);
    byi_text_addf(d->out, "\", tooltip=\"");
    add_escaped(d->out, node->name);
    byi_text_addf(d->out, ": ");
    add_escaped(d->out, where);
    byi_text_addf(d->out, ", ");
    add_escaped(d->out, *node->pattern ? node->pattern : node->reason);
    byi_text_addf(d->out, "\", color=\"%s\", fillcolor=\"%s\"%s];\n",
                  colour.line, colour.fill,
                  eliminated ? ", style=\"filled,dashed\"" : "");
}

/* Write a kept region as cluster `number`, with those of its nodes that are not
 * written yet. */
static void add_region(struct dot *d, const struct byi_report_region *region,
                       uint32_t number)
{
    byi_text_addf(d->out, "  subgraph cluster_%u {\n    label=\"", number);
    add_escaped(d->out, region->name);
    byi_text_addf(d->out, "\"; style=\"rounded\"; color=\"%s\";\n",
                  colour_of(d, region->backend).line);
    for (uint32_t i = 0; i < region->n_nodes; i++)
        if (!d->is_written[region->nodes[i]])
            add_node(d, region->nodes[i], "    ");
    byi_text_addf(d->out, "  }\n");
}

static void add_edges(struct dot *d)
{
    for (uint32_t i = 0; i < d->r->n_nodes; i++) {
        const struct byi_report_node *node = &d->r->nodes[i];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            byi_text_addf(d->out, "  n%u -> n%u;\n", node->inputs[k], i);
    }
}

static void add_graph(struct dot *d)
{
    uint32_t number = 0;
    byi_text_addf(d->out, "digraph \"");
    add_escaped(d->out, d->r->model);
    byi_text_addf(d->out, "\" {\n"
                          "  node [shape=box, style=filled, "
                          "fontname=\"sans-serif\", fontsize=10];\n"
                          "  edge [color=\"#8a949c\", arrowsize=0.6];\n"
                          "  graph [fontname=\"sans-serif\", fontsize=12];\n");
    for (uint32_t i = 0; i < d->r->n_regions; i++)
        if (d->r->regions[i].kept)
            add_region(d, &d->r->regions[i], number++);
    for (uint32_t i = 0; i < d->r->n_nodes; i++)
        if (!d->is_written[i])
            add_node(d, i, "  ");
    add_edges(d);
    byi_text_addf(d->out, "}\n");
}

enum byoc_status byi_ledger_write_dot(const char *json, size_t n,
                                      struct byi_text *out,
                                      struct byoc_error *err)
{
    struct byi_report r;
    BYI_TRY(byi_report_read(json, n, &r, err));
    struct dot d = {.r = &r,
                    .is_written = byi_arena_calloc(r.arena, r.n_nodes,
                                                   sizeof *d.is_written),
                    .out = out};
    add_graph(&d);
    byi_report_free(&r);
    return BYOC_OK;
}
