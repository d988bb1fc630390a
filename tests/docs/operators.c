/* SPDX-License-Identifier: Apache-2.0 */
/* operators.c: prints a line about each operator of the IR, from which
 * scripts/operators generates docs/operators.md, with tabs between
 *   NAME, ID, types, kernel's file, "loops" or nothing, oneDNN's rows, doc
 * The types are those that the type rule accepts for the first operand; the
 * program calls the rule with each.
 */
#include <stdio.h>
#include <string.h>

#include "core/ir/ir.h"
#include "runtime_dnnl/patterns.h"
#include "runtime_native/kernel.h"

/* --- types ---------------------------------------------------------------- */

/* Attributes with which the rule reaches its operands: the defaults, and any
 * value of the kind for required ones. */
static const struct byi_attrs *some_attrs(const struct byi_op *op,
                                          struct byi_arena *arena)
{
    static const int64_t ints[] = {0};
    static const double floats[] = {0};
    struct byi_attr *given =
        byi_arena_calloc(arena, op->n_attrs + 1, sizeof *given);
    const struct byi_attrs *attrs = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < op->n_attrs; i++) {
        struct byi_attr *a = &given[n];
        if (op->attrs[i].default_text)
            continue;
        a->name = op->attrs[i].name;
        a->kind = op->attrs[i].kind;
        a->n = 1;
        if (a->kind == BYI_ATTR_STRING)
            a->s = "sum";
        else if (a->kind == BYI_ATTR_INTS)
            a->ints = ints;
        else if (a->kind == BYI_ATTR_FLOATS)
            a->floats = floats;
        else
            a->i = a->kind == BYI_ATTR_DTYPE ? BYOC_F32 : 1;
        n++;
    }
    if (byi_attrs_make(arena, op, given, n, &attrs, NULL) != BYOC_OK)
        return NULL;
    return attrs;
}

static int64_t new_symbol(void *ctx)
{
    (void)ctx;
    return -1;
}

/* Set *err to the type rule's error for operands that all have this type and
 * rank; to an empty one if the rule accepts them. */
static void find_error(const struct byi_op *op, const struct byi_attrs *attrs,
                       enum byoc_dtype dtype, uint32_t rank,
                       struct byi_arena *arena, struct byoc_error *err)
{
    static const int64_t dims[] = {1, 1, 1, 1, 1};
    const struct byi_type *types[16], *out = NULL;
    const struct byi_tensor *values[16] = {NULL};
    const uint32_t n = op->min_in < 16 ? op->min_in : 16;

    *err = (struct byoc_error){0};
    for (uint32_t i = 0; i < n; i++)
        types[i] = byi_type_tensor(arena, dtype, rank, dims);
    struct byi_infer infer = {.arena = arena,
                              .op = op,
                              .attrs = attrs,
                              .n_in = n,
                              .in = types,
                              .value = values,
                              .new_symbol = new_symbol,
                              .err = err};
    byi_infer_type(&infer, &out);
}

/* Whether an error begins with `start`, "OP: NAME has type": the rule refuses
 * the type of operand NAME. */
static bool is_about_type(const struct byoc_error *err, const char *start)
{
    const size_t n = strlen(start);

    return n && strncmp(err->text, start, n) == 0;
}

static void print_types(const struct byi_op *op, struct byi_arena *arena)
{
    const struct byi_attrs *attrs = some_attrs(op, arena);
    struct byoc_error err = {0};
    char start[sizeof err.text] = "";
    const char *separator = "";

    /* every rule refuses BYOC_NONE, and checks operand 0 first */
    for (uint32_t rank = 0; attrs && rank < 5 && !*start; rank++) {
        find_error(op, attrs, BYOC_NONE, rank, arena, &err);
        char *end = strstr(err.text, " has type ");
        if (end)
            snprintf(start, sizeof start, "%.*s has type ",
                     (int)(end - err.text), err.text);
    }
    for (int dtype = 1; dtype < BYI_DTYPES; dtype++) {
        bool refused = false;
        for (uint32_t rank = 0; attrs && rank < 5 && !refused; rank++) {
            find_error(op, attrs, (enum byoc_dtype)dtype, rank, arena, &err);
            refused = is_about_type(&err, start);
        }
        if (refused || !byoc_dtype_name((enum byoc_dtype)dtype))
            continue;
        printf("%s%s", separator, byoc_dtype_name((enum byoc_dtype)dtype));
        separator = " ";
    }
}

/* --- kernels and patterns ------------------------------------------------- */

static const char *family_of(enum byi_op_id op)
{
#define FIND(name)                                                             \
    for (uint32_t i = 0; i < byi_rows_##name.n; i++)                           \
        if (byi_rows_##name.at[i].op == op)                                    \
            return #name;
    BYI_FAMILIES(FIND)
    return "";
}

/* Whether a pattern's text contains the operator's whole name. */
static bool pattern_has(const char *text, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyz"
                                                  "0123456789_.",
                                                  at[-1]);
        if (begins && !strchr("abcdefghijklmnopqrstuvwxyz0123456789_.",
                              at[n] ? at[n] : ' '))
            return true;
    }
    return false;
}

static void print_rows(const char *name)
{
    const char *separator = "";

    for (uint32_t i = 0; i < byi_dnnl_n_patterns; i++)
        if (pattern_has(byi_dnnl_patterns[i].pattern, name)) {
            printf("%s%s", separator, byi_dnnl_patterns[i].name);
            separator = " ";
        }
}

int main(void)
{
    struct byi_arena *arena = byi_arena_new();

    for (int id = 1; id < BYI_N_OPS; id++) {
        const struct byi_op *op = byi_op((enum byi_op_id)id);
        const struct byi_simd *simd = byi_simd();
        printf("%s\t%d\t", op->name, id);
        print_types(op, arena);
        printf("\t%s\t%s\t", family_of(op->id),
               simd->unary[id] || simd->binary[id] ? "loops" : "");
        print_rows(op->name);
        printf("\t%s\n", op->doc);
    }
    byi_arena_free(&arena);
    return 0;
}
