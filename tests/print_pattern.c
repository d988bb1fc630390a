/* SPDX-License-Identifier: Apache-2.0 */
/* print_pattern.c: prints a compiled pattern as canonical text, which compiles
 * to the same nodes.
 */
#include "tests/print_pattern.h"

#include "core/ir/text.h"

#include <string.h>

static void print_pat(const struct byi_pattern *p, uint32_t at,
                      struct byi_text *out);

static void add_text(struct byi_text *out, const char *text)
{
    byi_text_add(out, text, strlen(text));
}

static void add_list(const struct byi_pattern *p, const struct byi_pat *pat,
                     const char *between, struct byi_text *out)
{
    for (uint32_t i = 0; i < pat->n_args; i++) {
        add_text(out, i ? between : "");
        if (i < BYI_PATTERN_MAX_ARGS && pat->inverse >> i & 1)
            add_text(out, pat->ops[0] == BYI_OP_MULTIPLY ? "/ " : "- ");
        print_pat(p, pat->args[i], out);
    }
}

static void add_value(const struct byi_attr *value, struct byi_text *out)
{
    if (value->kind != BYI_ATTR_INTS) {
        byi_text_attr(out, value);
        return;
    }
    add_text(out, "[");
    for (uint32_t i = 0; i < value->n; i++) {
        add_text(out, i ? ", " : "");
        if (value->ints[i] == BYI_PAT_ANY_INT)
            add_text(out, "_");
        else
            byi_text_addf(out, "%lld", (long long)value->ints[i]);
    }
    add_text(out, "]");
}

static void add_tests(const struct byi_pat *pat, struct byi_text *out)
{
    for (uint32_t i = 0; i < pat->n_tests; i++) {
        const struct byi_pat_test *test = &pat->tests[i];
        byi_text_addf(out, "%s%s%s", i ? ", " : "{", test->name,
                      byi_cmp_text[test->cmp]);
        for (uint32_t k = 0; k < test->n; k++) {
            add_text(out, k ? "|" : "");
            add_value(&test->values[k], out);
        }
    }
    add_text(out, pat->n_tests ? "}" : "");
}

static void add_op(const struct byi_pattern *p, const struct byi_pat *pat,
                   struct byi_text *out)
{
    for (uint32_t i = 0; i < pat->n_ops; i++)
        byi_text_addf(out, "%s%s", i ? "|" : "", byi_op(pat->ops[i])->name);
    add_text(out, "(");
    add_list(p, pat, ", ", out);
    if (pat->has_rest) {
        add_text(out, pat->n_args ? ", " : "");
        byi_text_name(out, '%', p->names[pat->rest]);
        add_text(out, "...");
    }
    add_text(out, ")");
    add_tests(pat, out);
}

static void add_dim(const struct byi_pat_dim *dim, struct byi_text *out)
{
    if (dim->any)
        add_text(out, "_");
    else
        byi_text_addf(out, "%s%lld",
                      dim->cmp == BYI_EQ ? "" : byi_cmp_text[dim->cmp],
                      (long long)dim->value);
}

static void add_dims(const struct byi_pat_type *type, struct byi_text *out)
{
    const uint32_t n = type->n_dims + type->has_rest;
    add_text(out, "(");
    for (uint32_t i = 0, k = 0; i < n; i++) {
        add_text(out, i ? ", " : "");
        if (type->has_rest && i == type->rest)
            add_text(out, "...");
        else
            add_dim(&type->dims[k++], out);
    }
    add_text(out, ")");
}

static void add_count(const char *what, const struct byi_pat_dim *count,
                      struct byi_text *out)
{
    if (!count->any)
        byi_text_addf(out, "%s%s%lld, ", what, byi_cmp_text[count->cmp],
                      (long long)count->value);
}

static void add_dtypes(const struct byi_pat_type *type, struct byi_text *out)
{
    for (uint32_t i = 0; i < type->n_dtypes; i++)
        byi_text_addf(out, "%s%s", i ? "|" : "",
                      byoc_dtype_name(type->dtypes[i]));
    add_text(out, type->n_dtypes ? "" : "_");
}

static void print_type(const struct byi_pat_type *type, struct byi_text *out)
{
    const bool only_dtypes =
        !type->has_dims && type->rank.any && type->size.any && type->n_dtypes;
    if (!only_dtypes) {
        add_text(out, "Tensor[");
        if (type->has_dims) {
            add_dims(type, out);
            add_text(out, ", ");
        }
        add_count("rank", &type->rank, out);
        add_count("size", &type->size, out);
    }
    add_dtypes(type, out);
    add_text(out, only_dtypes ? "" : "]");
}

static void add_chain(const struct byi_pattern *p, const struct byi_pat *pat,
                      struct byi_text *out)
{
    const struct byi_pat *step = &p->nodes[pat->args[1]];
    print_pat(p, pat->args[0], out);
    add_text(out, " [");
    if (step->kind == BYI_PAT_ALT)
        add_list(p, step, " | ", out);
    else
        print_pat(p, pat->args[1], out);
    add_text(out, "]");
    if (pat->forks)
        add_text(out, "~");
    else if (pat->min == 0 && pat->max == 1)
        add_text(out, "?");
    else if (pat->min == 0 && pat->max == BYI_PATTERN_MAX_REPEAT)
        add_text(out, "*");
    else if (pat->min != pat->max)
        byi_text_addf(out, "{%u, %u}", pat->min, pat->max);
    else if (pat->max != 1)
        byi_text_addf(out, "{%u}", pat->max);
}

static void add_const(const struct byi_pattern *p, const struct byi_pat *pat,
                      struct byi_text *out)
{
    const char *name = p->names[pat->name];
    const struct byi_attr value = {.kind = BYI_ATTR_FLOAT, .f = pat->value};
    add_text(out, "const ");
    if (!pat->has_value) {
        byi_text_name(out, '%', name);
        return;
    }
    if (strcmp(name, BYI_CONST_NAME) != 0) {
        byi_text_name(out, '%', name);
        add_text(out, " = ");
    }
    byi_text_attr(out, &value);
}

static void print_pat(const struct byi_pattern *p, uint32_t at,
                      struct byi_text *out)
{
    const struct byi_pat *pat = &p->nodes[at];
    switch (pat->kind) {
    case BYI_PAT_ANY:
        byi_text_name(out, '%', p->names[pat->name]);
        return;
    case BYI_PAT_CONST:
        add_const(p, pat, out);
        return;
    case BYI_PAT_OP:
    case BYI_PAT_GROUP:
        add_op(p, pat, out);
        return;
    case BYI_PAT_TUPLE:
        add_text(out, "(");
        add_list(p, pat, ", ", out);
        add_text(out, pat->n_args == 1 ? ",)" : ")");
        return;
    case BYI_PAT_GET:
        print_pat(p, pat->args[0], out);
        byi_text_addf(out, ".%u", pat->index);
        return;
    case BYI_PAT_IF:
        add_text(out, "if (");
        print_pat(p, pat->args[0], out);
        add_text(out, ") { ");
        print_pat(p, pat->args[1], out);
        add_text(out, " } else { ");
        print_pat(p, pat->args[2], out);
        add_text(out, " }");
        return;
    case BYI_PAT_ALT:
        add_text(out, "(");
        add_list(p, pat, " | ", out);
        add_text(out, ")");
        return;
    case BYI_PAT_CHAIN:
        add_chain(p, pat, out);
        return;
    case BYI_PAT_HOLE:
        add_text(out, "^");
        return;
    case BYI_PAT_TYPE:
        print_pat(p, pat->args[0], out);
        add_text(out, ": ");
        print_type(pat->type, out);
        return;
    case BYI_PAT_ONCE:
        if (pat->name == BYI_NO_NAME)
            print_pat(p, pat->args[0], out);
        else
            byi_text_name(out, '%', p->names[pat->name]);
        return;
    }
    byi_unreachable();
}

void print_pattern(const struct byi_pattern *p, struct byi_text *out)
{
    print_pat(p, p->root, out);
    for (uint32_t i = 0; i < p->n_defs; i++) {
        const struct byi_pat *def = &p->nodes[p->defs[i]];
        add_text(out, i ? ", " : " with ");
        byi_text_name(out, '%', p->names[def->name]);
        add_text(out, " = ");
        print_pat(p, def->args[0], out);
    }
}
