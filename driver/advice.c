/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c: finds options that offload more of a model. Compiles the model with
 * each change, up to partitioning, and counts the offloaded operators.
 */
#include "compiled.h"

#include "compile/passes.h"
#include "core/base/guard.h"
#include "partition/partition.h"
#include "report/report.h"

#include <string.h>

enum {
    MAX_VALUES = 16, /* inputs to try as constants */
    MAX_COMBINED = 8 /* trials that help and are combined at the end */
};

/* A change, as an option of the command byoc. If `value` is NULL, the caller's
 * option is dropped. */
struct advice_change {
    const char *option, *value;
};

/* Changes that are tried together, and their result. */
struct advice_trial {
    BYI_VEC(struct advice_change) changes;
    struct byi_coverage after; /* of the model with the changes */
    bool fails;                /* the model does not compile with the changes */
};

/* The state of byoc_advise. */
struct advisor {
    const char *path;
    const struct byoc_compile_params *params; /* the caller's */
    struct byi_arena *arena;
    struct byoc_compiled *base;           /* compiled with `params` */
    struct byi_coverage now;              /* of `base` */
    BYI_VEC(struct advice_trial) helpful; /* the trials that help */
    uint32_t n_tried;
};

/* --- trying --------------------------------------------------------------- */

/* Returns the values of `option`: the caller's `values`, then the trial's; only
 * the trial's if the trial drops the option. */
static const char *const *list_with(struct advisor *a,
                                    const char *const *values,
                                    const struct advice_trial *t,
                                    const char *option)
{
    BYI_VEC(const char *) list = {0};
    bool keep = true;

    for (uint32_t i = 0; i < t->changes.n; i++)
        keep = keep && (t->changes.at[i].value ||
                        strcmp(t->changes.at[i].option, option) != 0);
    for (; keep && values && *values; values++)
        BYI_PUSH(&list, *values);
    for (uint32_t i = 0; i < t->changes.n; i++)
        if (t->changes.at[i].value &&
            strcmp(t->changes.at[i].option, option) == 0)
            BYI_PUSH(&list, t->changes.at[i].value);
    BYI_PUSH(&list, NULL);
    const char *const *copy =
        byi_arena_copy(a->arena, list.at, list.n * sizeof *list.at);
    byi_vec_free(list.at);
    return copy;
}

/* Whether the trial drops the caller's values of `option`. */
static bool is_dropped(const struct advice_trial *t, const char *option)
{
    for (uint32_t i = 0; i < t->changes.n; i++)
        if (!t->changes.at[i].value &&
            strcmp(t->changes.at[i].option, option) == 0)
            return true;
    return false;
}

/* Returns the caller's parameters for compiling up to partitioning, without
 * instruments and without output. */
static struct byoc_compile_params base_params(
    const struct byoc_compile_params *p)
{
    struct byoc_compile_params base = *p;

    base.stop_after = byi_pass_partition_graph.name;
    /* offload as much as possible, at any cost */
    base.partition_by = BYOC_PARTITION_GREEDY;
    base.instruments = NULL;
    base.n_instruments = 0;
    base.print = NULL;
    base.print_before = base.print_after = NULL;
    base.dump_passes = base.keep_c = NULL;
    return base;
}

static struct byoc_compile_params changed_params(struct advisor *a,
                                                 const struct advice_trial *t)
{
    struct byoc_compile_params p = base_params(a->params);

    p.dims = list_with(a, p.dims, t, "--dim");
    p.shapes = list_with(a, p.shapes, t, "--shape");
    p.values = list_with(a, p.values, t, "--const");
    p.exclude = list_with(a, p.exclude, t, "--exclude");
    p.only = list_with(a, p.only, t, "--only");
    p.disable = list_with(a, p.disable, t, "--disable-pass");
    p.add_passes = list_with(a, p.add_passes, t, "--pass");
    p.options = list_with(a, p.options, t, "--pass-option");
    if (is_dropped(t, "--native"))
        p.backends = NULL;
    if (is_dropped(t, "--forbid-ref"))
        p.forbid_reference = 0;
    if (is_dropped(t, "--keep-nan"))
        p.keep_nan = 0;
    if (is_dropped(t, "--min-region-nodes"))
        p.min_region_nodes = 0;
    if (is_dropped(t, "--min-region-flops"))
        p.min_region_flops = 0;
    if (is_dropped(t, "--max-regions"))
        p.max_regions = 0;
    if (is_dropped(t, "-O"))
        p.opt_level = BYOC_OPT_DEFAULT;
    return p;
}

static double offloaded_share(const struct byi_coverage *c)
{
    return c->flops > 0 ? 100 * c->flops_offloaded / c->flops : 0;
}

/* Whether a change helps: more operators or floating-point operations (FLOPs)
 * are offloaded, and the offloaded share of the FLOPs does not fall. Folded
 * operators do not count, nor does any operator of an .ir file without
 * provenance. */
static bool helps(const struct byi_coverage *before,
                  const struct byi_coverage *after)
{
    return (after->offloaded > before->offloaded ||
            after->flops_offloaded > before->flops_offloaded) &&
           offloaded_share(after) >= offloaded_share(before);
}

static void run_trial(struct advisor *a, struct advice_trial *t)
{
    const struct byoc_compile_params params = changed_params(a, t);
    struct byoc_compiled *c = NULL;
    struct byoc_error err;

    a->n_tried++;
    if (byoc_compile(a->path, &params, &c, &err) != BYOC_OK)
        t->fails = true;
    else
        t->after = *byi_compiled_coverage(c);
    byoc_compiled_free(&c);
}

/* Try a change, and keep it if it helps. Returns whether the model compiles. */
static bool keep_trial(struct advisor *a, struct advice_trial *t)
{
    run_trial(a, t);
    if (!t->fails && helps(&a->now, &t->after))
        BYI_PUSH(&a->helpful, *t);
    else
        byi_vec_free(t->changes.at);
    return !t->fails;
}

static bool try_one(struct advisor *a, const char *option, const char *value)
{
    const struct advice_change advice_change = {option, value};
    struct advice_trial t = {0};

    BYI_PUSH(&t.changes, advice_change);
    return keep_trial(a, &t);
}

/* --- the changes to try --------------------------------------------------- */

static const struct byi_func *entry_of(const struct advisor *a)
{
    const struct byi_module *m = byi_compiled_module(a->base);

    return m->funcs.at[byi_module_entry(m)];
}

/* Try to drop each of the caller's limits on offloading. */
static void try_limits(struct advisor *a)
{
    const struct byoc_compile_params *p = a->params;
    const struct {
        const char *option;
        bool is_set;
    } limits[] = {
        {"--native", p->backends && !*p->backends},
        {"--exclude", p->exclude && *p->exclude},
        {"--only", p->only && *p->only},
        {"--disable-pass", p->disable && *p->disable},
        {"--forbid-ref", p->forbid_reference != 0},
        {"--keep-nan", p->keep_nan != 0},
        {"--min-region-nodes", p->min_region_nodes != 0},
        {"--min-region-flops", p->min_region_flops > 0},
        {"--max-regions", p->max_regions != 0},
        {"-O", p->opt_level != 0},
    };

    for (size_t i = 0; i < BYI_COUNT(limits); i++)
        if (limits[i].is_set)
            try_one(a, limits[i].option, NULL);
}

/* Returns the size to try for a symbolic axis after size 1. It is again 1 for
 * axis 0, which is usually the batch, otherwise a common size of images or
 * sequences. */
static int64_t usual_size(const struct byi_type *type, uint32_t axis)
{
    if (axis == 0)
        return 1;
    return type->rank == 4 ? 224 : 128;
}

/* Whether the type has symbol `dim`; if `dim` is 0, any symbol. */
static bool has_dim(const struct byi_type *type, int64_t dim)
{
    for (uint32_t d = 0; d < type->rank; d++)
        if (dim == 0 ? BYI_IS_SYMBOL(type->dims[d]) : type->dims[d] == dim)
            return true;
    return false;
}

/* Add the complete shape of each input that has symbol `dim`, or, if `dim` is
 * 0, any symbol. */
static void add_shapes(struct advisor *a, struct advice_trial *t, int64_t dim)
{
    const struct byi_func *f = entry_of(a);

    for (uint32_t i = 0; i < f->params.n; i++) {
        const struct byi_type *type = f->nodes.at[f->params.at[i]].type;
        struct byi_text text = {0};
        if (type->kind != BYI_TENSOR || !has_dim(type, dim))
            continue;
        byi_text_addf(&text, "%s=", f->param_names.at[i]);
        for (uint32_t d = 0; d < type->rank; d++)
            byi_text_addf(&text, "%s%lld", d ? "x" : "",
                          (long long)(BYI_IS_SYMBOL(type->dims[d])
                                          ? usual_size(type, d)
                                          : type->dims[d]));
        const struct advice_change advice_change = {
            "--shape", byi_arena_str(a->arena, text.at)};
        BYI_PUSH(&t->changes, advice_change);
        byi_text_free(&text);
    }
}

/* A symbol of the model's inputs. */
struct input_symbol {
    int64_t dim;      /* as in struct byi_type */
    int64_t size;     /* from usual_size */
    const char *name; /* NULL: without a name, or the model does not compile
                         if the name is fixed */
};

static void add_dim(struct advisor *a, struct advice_trial *t,
                    const struct input_symbol *input_symbol, int64_t size)
{
    const struct advice_change advice_change = {
        "--dim", byi_arena_printf(a->arena, "%s=%lld", input_symbol->name,
                                  (long long)size)};

    BYI_PUSH(&t->changes, advice_change);
}

/* Try to fix a symbol by its name or, if the model does not compile then, by
 * the shapes of the inputs that have it. */
static void try_symbol(struct advisor *a, struct input_symbol *input_symbol)
{
    const int64_t sizes[] = {1, input_symbol->size};
    const uint32_t helpful = a->helpful.n;
    struct advice_trial by_shape = {0};
    bool compiles = false;

    for (uint32_t i = 0; i < BYI_COUNT(sizes) && input_symbol->name; i++) {
        struct advice_trial t = {0};
        if ((i && sizes[i] == sizes[0]) || a->helpful.n > helpful)
            continue;
        add_dim(a, &t, input_symbol, sizes[i]);
        compiles |= keep_trial(a, &t);
    }
    if (compiles)
        return;
    input_symbol->name = NULL;
    add_shapes(a, &by_shape, input_symbol->dim);
    keep_trial(a, &by_shape);
}

/* Try to fix all symbols at once, if there are several: by their names,
 * otherwise by the shapes of the inputs. */
static void try_symbols(struct advisor *a, const struct input_symbol *symbols,
                        uint32_t n)
{
    struct advice_trial by_name = {0}, by_shape = {0};
    bool have_names = true;

    for (uint32_t i = 0; i < n; i++)
        have_names = have_names && symbols[i].name;
    for (uint32_t i = 0; i < n && have_names; i++)
        add_dim(a, &by_name, &symbols[i], symbols[i].size);
    if (n < 2 || (have_names && keep_trial(a, &by_name)))
        return;
    add_shapes(a, &by_shape, 0);
    keep_trial(a, &by_shape);
}

/* Try to fix symbolic dims: each alone, and all together. */
static void try_sizes(struct advisor *a)
{
    const struct byi_module *m = byi_compiled_module(a->base);
    const struct byi_func *f = entry_of(a);
    BYI_VEC(struct input_symbol) symbols = {0};

    for (uint32_t i = 0; i < f->params.n; i++) {
        const struct byi_type *type = f->nodes.at[f->params.at[i]].type;
        for (uint32_t d = 0; type->kind == BYI_TENSOR && d < type->rank; d++) {
            bool listed = !BYI_IS_SYMBOL(type->dims[d]);
            for (uint32_t k = 0; k < symbols.n && !listed; k++)
                listed = symbols.at[k].dim == type->dims[d];
            if (listed)
                continue;
            const char *name = byi_symbol_name(m, type->dims[d]);
            const struct input_symbol input_symbol = {
                type->dims[d], usual_size(type, d), *name == '?' ? NULL : name};
            BYI_PUSH(&symbols, input_symbol);
            try_symbol(a, &symbols.at[symbols.n - 1]);
        }
    }
    try_symbols(a, symbols.at, symbols.n);
    byi_vec_free(symbols.at);
}

/* Try to make each input a constant, in case a pattern requires one. */
static void try_values(struct advisor *a)
{
    const struct byi_func *f = entry_of(a);

    for (uint32_t i = 0; i < f->params.n && i < MAX_VALUES; i++) {
        const struct byi_type *type = f->nodes.at[f->params.at[i]].type;
        if (type->kind == BYI_TENSOR && byi_type_is_static(type))
            try_one(a, "--const",
                    byi_arena_printf(a->arena, "%s=1", f->param_names.at[i]));
    }
}

/* Returns the default layout of an operator, or NULL if it has no layout. */
static const char *usual_layout(struct advisor *a, const struct byi_op *op)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const char *text = op->attrs[i].default_text;
        if (strcmp(op->attrs[i].name, "data_layout") == 0 && text)
            return byi_arena_strn(a->arena, text + (*text == '"'),
                                  strcspn(text + (*text == '"'), "\""));
    }
    return NULL;
}

/* Returns the layout with its channels last: "NHWC" for "NCHW". */
static const char *move_channels_last(struct advisor *a,
                                      const char *default_layout)
{
    char *channels_last = byi_arena_str(a->arena, default_layout);
    const size_t n = strlen(channels_last);

    if (n > 2 && channels_last[1] == 'C') {
        memmove(channels_last + 1, channels_last + 2, n - 2);
        channels_last[n - 1] = 'C';
    }
    return channels_last;
}

static bool is_native(const struct byi_func *f)
{
    return !f->dead && !f->attr.compiler && !f->attr.composite &&
           !f->attr.inner;
}

/* Append the value of ConvertLayout.desired that gives native operators their
 * default layout or, if `channels_last`, channels last. */
static void list_layouts(struct advisor *a, bool channels_last,
                         struct byi_text *out)
{
    const struct byi_module *m = byi_compiled_module(a->base);
    bool seen[BYI_N_OPS] = {0};

    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; is_native(f) && id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            const struct byi_attr *attr = NULL;
            if (node->kind == BYI_CALL_OP && !seen[node->op])
                attr = byi_attr_find(node->attrs, "data_layout");
            const char *layout =
                attr ? usual_layout(a, byi_op(node->op)) : NULL;
            if (layout && channels_last)
                layout = move_channels_last(a, layout);
            if (!layout || strcmp(attr->s, layout) == 0)
                continue;
            seen[node->op] = true;
            byi_text_addf(out, "%s%s=%s", out->n ? "," : "",
                          byi_op(node->op)->name, layout);
        }
    }
}

/* Try to convert native operators to other layouts. */
static void try_layouts(struct advisor *a)
{
    for (int channels_last = 0; channels_last < 2; channels_last++) {
        struct byi_text text = {0};
        struct advice_trial t = {0};
        list_layouts(a, channels_last == 1, &text);
        if (text.n) {
            const struct advice_change changes[] = {
                {"--pass", "ConvertLayout"},
                {"--pass-option",
                 byi_arena_printf(a->arena, "ConvertLayout.desired=%s",
                                  text.at)}};
            BYI_PUSH(&t.changes, changes[0]);
            BYI_PUSH(&t.changes, changes[1]);
            keep_trial(a, &t);
        }
        byi_text_free(&text);
    }
}

/* --- ranking -------------------------------------------------------------- */

/* Whether x is listed before y: it offloads more, or as much with fewer
 * changes. */
static bool is_better(const struct advice_trial *x,
                      const struct advice_trial *y)
{
    if (offloaded_share(&x->after) != offloaded_share(&y->after))
        return offloaded_share(&x->after) > offloaded_share(&y->after);
    if (x->after.offloaded != y->after.offloaded)
        return x->after.offloaded > y->after.offloaded;
    return x->changes.n < y->changes.n;
}

static void sort_helpful(struct advisor *a)
{
    for (uint32_t i = 1; i < a->helpful.n; i++) {
        const struct advice_trial t = a->helpful.at[i];
        uint32_t k = i;
        for (; k > 0 && is_better(&t, &a->helpful.at[k - 1]); k--)
            a->helpful.at[k] = a->helpful.at[k - 1];
        a->helpful.at[k] = t;
    }
}

/* Try the best changes together, of those that fix sizes only the best one.
 * Keep the combination if it helps more than the best change alone. */
static void try_together(struct advisor *a)
{
    struct advice_trial combined = {0};
    bool has_sizes = false;

    sort_helpful(a);
    for (uint32_t i = 0; i < a->helpful.n && i < MAX_COMBINED; i++) {
        const struct advice_trial *t = &a->helpful.at[i];
        const bool is_size = strcmp(t->changes.at[0].option, "--dim") == 0 ||
                             strcmp(t->changes.at[0].option, "--shape") == 0;
        if (is_size && has_sizes)
            continue;
        has_sizes = has_sizes || is_size;
        for (uint32_t k = 0; k < t->changes.n; k++)
            BYI_PUSH(&combined.changes, t->changes.at[k]);
    }
    if (a->helpful.n < 2 || combined.changes.n <= a->helpful.at[0].changes.n) {
        byi_vec_free(combined.changes.at);
        return;
    }
    const struct byi_coverage best = a->helpful.at[0].after;
    run_trial(a, &combined);
    if (!combined.fails && helps(&best, &combined.after))
        BYI_PUSH(&a->helpful, combined);
    else
        byi_vec_free(combined.changes.at);
    sort_helpful(a);
}

/* --- output --------------------------------------------------------------- */

static void print_changes(const struct advice_trial *t, struct byi_text *out)
{
    for (uint32_t i = 0; i < t->changes.n; i++) {
        const struct advice_change *c = &t->changes.at[i];
        byi_text_addf(out, "%s%s%s%s%s", i ? " " : "",
                      c->value ? "" : "without ", c->option,
                      c->value ? " " : "", c->value ? c->value : "");
    }
}

/* "99.20% of 8.20 GFLOP WHAT, 121 operators; 0 stay native" */
static void print_coverage(const struct byi_coverage *c, const char *what,
                           struct byi_text *out)
{
    byi_report_add_share(out, c->flops_offloaded, c->flops);
    byi_text_addf(out, " of ");
    byi_report_add_flops(out, c->flops);
    byi_text_addf(out, "%s, %u operator%s; %u stay%s native\n", what,
                  c->offloaded, byi_plural(c->offloaded), c->native,
                  c->native == 1 ? "s" : "");
}

static void print_text(const struct advisor *a, struct byi_text *out)
{
    byi_text_addf(out, "now: ");
    print_coverage(&a->now, " offloaded", out);
    if (!a->helpful.n)
        byi_text_addf(out, "none of the %u change%s tried offloads more\n",
                      a->n_tried, byi_plural(a->n_tried));
    else
        byi_text_addf(out, "changes that offload more, of %u tried:\n",
                      a->n_tried);
    for (uint32_t i = 0; i < a->helpful.n; i++) {
        const struct advice_trial *t = &a->helpful.at[i];
        byi_text_addf(out, "  ");
        print_changes(t, out);
        byi_text_addf(out, "\n      ");
        print_coverage(&t->after, "", out);
    }
}

static void print_counts(const struct byi_coverage *c, struct byi_text *out)
{
    byi_text_addf(out,
                  "\"share\": %.4f, \"flops\": %.17g, \"offloaded\": %u, "
                  "\"native\": %u, \"folded\": %u, \"removed\": %u, "
                  "\"regions\": %u}",
                  offloaded_share(c), c->flops, c->offloaded, c->native,
                  c->folded, c->removed, c->regions);
}

static void print_json(const struct advisor *a, struct byi_text *out)
{
    byi_text_addf(out,
                  "{\"format\": \"byoc-advice\", \"version\": 1, "
                  "\"tried\": %u,\n\"now\": {",
                  a->n_tried);
    print_counts(&a->now, out);
    byi_text_addf(out, ",\n\"changes\": [");
    for (uint32_t i = 0; i < a->helpful.n; i++) {
        const struct advice_trial *t = &a->helpful.at[i];
        byi_text_addf(out, "%s\n  {\"options\": [", i ? "," : "");
        for (uint32_t k = 0; k < t->changes.n; k++) {
            byi_text_addf(out, "%s{\"option\": ", k ? ", " : "");
            byi_json_quote(out, t->changes.at[k].option);
            byi_text_addf(out, ", \"value\": ");
            if (t->changes.at[k].value)
                byi_json_quote(out, t->changes.at[k].value);
            else
                byi_text_addf(out, "null");
            byi_text_addf(out, "}");
        }
        byi_text_addf(out, "], ");
        print_counts(&t->after, out);
    }
    byi_text_addf(out, "]}\n");
}

enum byoc_status byoc_advise(const char *path,
                             const struct byoc_compile_params *params, int json,
                             char **text, struct byoc_error *err)
{
    struct byoc_compile_params full_params;
    struct advisor a = {.path = path, .params = &full_params};
    struct byi_text out = {0};

    *text = NULL;
    BYI_BORDER(err);
    BYI_TRY(byi_compile_params_read(&full_params, params, err));
    const struct byoc_compile_params base = base_params(a.params);
    if (a.params->passes || a.params->stop_after)
        return byi_fail(err, BYOC_EINVAL,
                        "advice: found %s, expected a whole compile; leave it "
                        "out",
                        a.params->passes ? "passes" : "stop_after");
    BYI_TRY(byoc_compile(path, &base, &a.base, err));
    a.arena = byi_arena_new();
    a.now = *byi_compiled_coverage(a.base);
    if (a.now.native || a.now.flops_offloaded < a.now.flops) {
        try_limits(&a);
        try_layouts(&a);
        if (!byi_path_ends_in(path, ".ir")) { /* --dim and --const need ONNX */
            try_sizes(&a);
            try_values(&a);
        }
        try_together(&a);
    }
    if (json)
        print_json(&a, &out);
    else
        print_text(&a, &out);
    for (uint32_t i = 0; i < a.helpful.n; i++)
        byi_vec_free(a.helpful.at[i].changes.at);
    byi_vec_free(a.helpful.at);
    byi_arena_free(&a.arena);
    byoc_compiled_free(&a.base);
    *text = out.at;
    return BYOC_OK;
}
