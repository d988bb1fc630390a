/* dot.c: a ledger as text for Graphviz: a box for each node of the model, a
 * cluster for each region, an edge from each node to those that read it.
 */
#include "page.h"

#include <cjson/cJSON.h>

#include <string.h>

enum { LABEL_MAX = 48 /* bytes of a name; of longer ones the end is shown */ };

/* Colours that stay apart for colour-blind people, as on the page; the second
 * is the first on white paper, thinned. */
struct colour {
    const char *line, *fill;
};

static const struct colour vendor_colours[] = {{"#0072b2", "#cce3f0"},
                                               {"#009e73", "#ccece3"},
                                               {"#b0609a", "#efdfeb"},
                                               {"#8a7a00", "#e8e4cc"},
                                               {"#4d4dcc", "#dbdbf5"}};
static const struct colour native_colour = {"#d55e00", "#ffffff"};
static const struct colour quiet_colour = {"#9aa3ab", "#ffffff"};

struct dot {
    const cJSON *vendors;
    const cJSON **nodes;
    bool *done;
    uint32_t n;
    struct byi_text *out;
};

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = member(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* What stands between quotes: escaped, on one line, valid UTF-8. */
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

/* The end of a name: there names differ. */
static void add_name(struct byi_text *out, const char *name)
{
    size_t n = strlen(name);
    if (n <= LABEL_MAX) {
        add_escaped(out, name);
        return;
    }
    const char *end = name + n - LABEL_MAX;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++; /* not from within a character */
    byi_text_addf(out, "...");
    add_escaped(out, end);
}

static struct colour colour_of(const struct dot *d, const char *where)
{
    const cJSON *vendor;
    uint32_t i = 0;
    if (!strcmp(where, "folded") || !strcmp(where, "removed"))
        return quiet_colour;
    cJSON_ArrayForEach(vendor, d->vendors)
    {
        if (!strcmp(text(vendor, "name"), "native"))
            continue;
        if (!strcmp(text(vendor, "name"), where))
            return vendor_colours[i % BYI_COUNT(vendor_colours)];
        i++;
    }
    return native_colour;
}

static void add_node(struct dot *d, uint32_t i, const char *indent)
{
    const cJSON *node = d->nodes[i];
    const char *where = text(node, "where");
    const struct colour colour = colour_of(d, where);
    const bool quiet = !strcmp(where, "folded") || !strcmp(where, "removed");
    d->done[i] = true;
    byi_text_addf(d->out, "%sn%u [label=\"", indent, i);
    add_escaped(d->out, text(node, "op"));
    byi_text_addf(d->out, "\\n");
    add_name(d->out, text(node, "name"));
    byi_text_addf(d->out, "\", tooltip=\"");
    add_escaped(d->out, text(node, "name"));
    byi_text_addf(d->out, ": ");
    add_escaped(d->out, where);
    byi_text_addf(d->out, ", ");
    add_escaped(d->out,
                text(node, *text(node, "pattern") ? "pattern" : "reason"));
    byi_text_addf(d->out, "\", color=\"%s\", fillcolor=\"%s\"%s];\n",
                  colour.line, colour.fill,
                  quiet ? ", style=\"filled,dashed\"" : "");
}

static void add_region(struct dot *d, const cJSON *region, uint32_t number)
{
    const struct colour colour = colour_of(d, text(region, "vendor"));
    const cJSON *index;
    byi_text_addf(d->out, "  subgraph cluster_%u {\n    label=\"", number);
    add_escaped(d->out, text(region, "name"));
    byi_text_addf(d->out, "\"; style=\"rounded\"; color=\"%s\";\n",
                  colour.line);
    cJSON_ArrayForEach(index, member(region, "nodes"))
    {
        const double i = cJSON_IsNumber(index) ? index->valuedouble : -1;
        if (i >= 0 && i < d->n && !d->done[(uint32_t)i])
            add_node(d, (uint32_t)i, "    ");
    }
    byi_text_addf(d->out, "  }\n");
}

static void add_edges(struct dot *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const cJSON *input;
        cJSON_ArrayForEach(input, member(d->nodes[i], "inputs"))
        {
            const double from = cJSON_IsNumber(input) ? input->valuedouble : -1;
            if (from >= 0 && from < d->n)
                byi_text_addf(d->out, "  n%u -> n%u;\n", (uint32_t)from, i);
        }
    }
}

static void add_graph(struct dot *d, const cJSON *root)
{
    const cJSON *region;
    uint32_t number = 0;
    byi_text_addf(d->out, "digraph \"");
    add_escaped(d->out, text(root, "model"));
    byi_text_addf(d->out,
                  "\" {\n"
                  "  node [shape=box, style=filled, fontname=\"sans-serif\", "
                  "fontsize=10];\n"
                  "  edge [color=\"#8a949c\", arrowsize=0.6];\n"
                  "  graph [fontname=\"sans-serif\", fontsize=12];\n");
    cJSON_ArrayForEach(region, member(root, "regions"))
    {
        if (!strcmp(text(region, "outcome"), "kept"))
            add_region(d, region, number++);
    }
    for (uint32_t i = 0; i < d->n; i++)
        if (!d->done[i])
            add_node(d, i, "  ");
    add_edges(d);
    byi_text_addf(d->out, "}\n");
}

enum byoc_status byi_ledger_dot(const char *json, size_t n,
                                struct byi_text *out, struct byoc_error *err)
{
    cJSON *root = NULL;
    const cJSON *node;
    BYI_TRY(byi_ledger_parse(json, n, &root, err));
    struct byi_arena *arena = byi_arena_new();
    const cJSON *nodes = member(root, "nodes");
    struct dot d = {.vendors = member(root, "vendors"),
                    .n = (uint32_t)cJSON_GetArraySize(nodes),
                    .out = out};
    d.nodes = byi_arena_calloc(arena, d.n, sizeof *d.nodes);
    d.done = byi_arena_calloc(arena, d.n, sizeof *d.done);
    uint32_t i = 0;
    cJSON_ArrayForEach(node, nodes) d.nodes[i++] = node;
    add_graph(&d, root);
    byi_arena_free(&arena);
    byi_json_free(&root);
    return BYOC_OK;
}
