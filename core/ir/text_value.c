/* SPDX-License-Identifier: Apache-2.0 */
/* text_value.c: prints types, attributes and small constants so that parsing
 * gives the same values.
 */
#include "text.h"

#include "lex.h"

#include <math.h>
#include <string.h>

/* --- types -------------------------------------------------------------- */

static bool is_new_symbol_name(const char *name)
{
    return name[0] == '?' && name[1] &&
           strspn(name + 1, "0123456789") == strlen(name + 1);
}

static void add_dim(const struct byi_module *m, int64_t dim,
                    struct byi_text *out)
{
    const char *name = NULL;

    if (!BYI_IS_SYMBOL(dim)) {
        byi_text_addf(out, "%lld", (long long)dim);
        return;
    }
    if (-1 - dim >= (int64_t)m->symbols.n) { /* an invalid module */
        byi_text_addf(out, "?");
        return;
    }
    name = byi_symbol_name(m, dim);
    if (byi_lex_is_bare_name(name) || is_new_symbol_name(name))
        byi_text_put(out, name);
    else
        byi_lex_quote(out, name);
}

static void add_tensor(const struct byi_module *m, const struct byi_type *type,
                       struct byi_text *out)
{
    const char *dtype = byoc_dtype_name(type->dtype);

    byi_text_put(out, "Tensor[(");
    for (uint32_t i = 0; i < type->rank; i++) {
        byi_text_put(out, i ? ", " : "");
        add_dim(m, type->dims[i], out);
    }
    byi_text_addf(out, "), %s]", dtype ? dtype : "none");
}

/* A type that is being printed. */
struct type_level {
    const struct byi_type *type;
    uint32_t field; /* the next one */
};

/* Print the text before the next field, or close the type. Returns the field to
 * print next; NULL: the type is complete. */
static const struct byi_type *print_up_to_field(struct type_level *level,
                                                struct byi_text *out)
{
    const struct byi_type *type = level->type;
    bool func = type->kind == BYI_FUNC;
    uint32_t i = level->field++;

    if (byi_type_is_list(type)) {
        byi_text_put(out, i                       ? "]"
                          : type->kind == BYI_SEQ ? "Seq["
                                                  : "Optional[");
        return i ? NULL : type->fields[0];
    }
    if (i == 0)
        byi_text_put(out, func ? "fn (" : "(");
    if (i < type->n_fields) {
        byi_text_put(out, i ? ", " : "");
        return type->fields[i];
    }
    if (i > type->n_fields)
        return NULL;
    if (func) {
        byi_text_put(out, ") -> ");
        return type->result;
    }
    byi_text_put(out, type->n_fields == 1 ? ",)" : ")");
    return NULL;
}

void byi_text_type(const struct byi_module *m, const struct byi_type *type,
                   struct byi_text *out)
{
    BYI_VEC(struct type_level) levels = {0};

    BYI_PUSH(&levels, (struct type_level){.type = type});
    while (levels.n > 0) {
        const struct byi_type *next = NULL;
        struct type_level *top = &levels.at[levels.n - 1];
        if (top->type->kind == BYI_TENSOR)
            add_tensor(m, top->type, out);
        else if (top->type->kind == BYI_ANY_TENSOR ||
                 top->type->kind == BYI_NO_TENSOR)
            byi_text_addf(out, "Tensor[%s, %s]",
                          top->type->kind == BYI_ANY_TENSOR ? "any" : "none",
                          byoc_dtype_name(top->type->dtype));
        else
            next = print_up_to_field(top, out);
        if (next)
            BYI_PUSH(&levels, (struct type_level){.type = next});
        else
            levels.n--;
    }
    byi_vec_free(levels.at);
}

char *byi_text_type_buf(const struct byi_module *m, const struct byi_type *type,
                        char *buf, size_t n)
{
    struct byi_text text = {0};

    if (!type)
        return strncpy(buf, "no type", n);
    byi_text_type(m, type, &text);
    if (text.n < n)
        memcpy(buf, text.at, text.n + 1);
    else
        snprintf(buf, n, "%.*s...", (int)n - 4, text.at);
    byi_text_free(&text);
    return buf;
}

void byi_text_name(struct byi_text *out, char sigil, const char *name)
{
    byi_text_add(out, &sigil, 1);
    if (byi_lex_is_bare_name(name))
        byi_text_put(out, name);
    else
        byi_lex_quote(out, name);
}

/* --- numbers ------------------------------------------------------------ */

/* The shortest text that reads back as the same value of its width, with a
 * point or an exponent, so that it is not an integer. */
static void add_float(struct byi_text *out, double value, bool single)
{
    char buf[32];

    byi_text_put(out, byi_float_text(buf, value, single));
    if (isfinite(value) && !strpbrk(buf, ".e"))
        byi_text_put(out, ".0");
}

static void add_ints(struct byi_text *out, const struct byi_attr *attr)
{
    for (uint32_t i = 0; i < attr->n; i++)
        byi_text_addf(out, "%s%lld", i ? ", " : "", (long long)attr->ints[i]);
}

static void add_floats(struct byi_text *out, const struct byi_attr *attr)
{
    for (uint32_t i = 0; i < attr->n; i++) {
        byi_text_put(out, i ? ", " : "");
        add_float(out, attr->floats[i], false);
    }
}

static void add_strings(struct byi_text *out, const struct byi_attr *attr)
{
    for (uint32_t i = 0; i < attr->n; i++) {
        byi_text_put(out, i ? ", " : "");
        byi_lex_quote(out, attr->strings[i]);
    }
}

void byi_text_attr(struct byi_text *out, const struct byi_attr *attr)
{
    switch (attr->kind) {
    case BYI_ATTR_INT:
        byi_text_addf(out, "%lld", (long long)attr->i);
        return;
    case BYI_ATTR_FLOAT:
        add_float(out, attr->f, false);
        return;
    case BYI_ATTR_BOOL:
        byi_text_put(out, attr->i ? "true" : "false");
        return;
    case BYI_ATTR_STRING:
        byi_lex_quote(out, attr->s);
        return;
    case BYI_ATTR_DTYPE:
        byi_lex_quote(out, byoc_dtype_name((enum byoc_dtype)attr->i));
        return;
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        break;
    }
    byi_text_put(out, "[");
    if (attr->kind == BYI_ATTR_INTS)
        add_ints(out, attr);
    else if (attr->kind == BYI_ATTR_FLOATS)
        add_floats(out, attr);
    else
        add_strings(out, attr);
    byi_text_put(out, "]");
}

/* clang-format off */
const struct byi_func_attr byi_func_attrs[BYI_N_FUNC_ATTRS] = {
    {"Composite", offsetof(struct byi_func, attr.composite)},
    {"PartitionedFromPattern", offsetof(struct byi_func, attr.from_pattern)},
    {"Operands", offsetof(struct byi_func, attr.operands)},
    {"Compiler", offsetof(struct byi_func, attr.compiler)},
    {"global_symbol", offsetof(struct byi_func, attr.global_symbol)},
};

const struct byi_func_attr byi_func_flags[BYI_N_FUNC_FLAGS] = {
    {"Primitive", offsetof(struct byi_func, attr.primitive)},
    {"Inline", offsetof(struct byi_func, attr.inlined)},
    {"Exact", offsetof(struct byi_func, attr.exact)},
};
/* clang-format on */

/* --- constants ---------------------------------------------------------- */

static const char *const suffixes[] = {
    [BYOC_F32] = "f",   [BYOC_U8] = "u8",   [BYOC_I8] = "i8",
    [BYOC_U16] = "u16", [BYOC_I16] = "i16", [BYOC_I32] = "i32",
    [BYOC_I64] = "",    [BYOC_F16] = "f16", [BYOC_F64] = "f64",
    [BYOC_U32] = "u32", [BYOC_U64] = "u64", [BYOC_BF16] = "bf16",
};

const char *byi_text_suffix(enum byoc_dtype dtype)
{
    return (size_t)dtype < BYI_COUNT(suffixes) ? suffixes[dtype] : NULL;
}

/* Real and imaginary part, as two numbers. */
static void add_complex(struct byi_text *out, const struct byi_tensor *t,
                        int64_t i)
{
    bool single = t->dtype == BYOC_C64;
    struct byi_tensor parts = {
        .data = t->data,
        .dtype = single ? BYOC_F32 : BYOC_F64,
    };

    add_float(out, byi_tensor_float(&parts, 2 * i), single);
    byi_text_put(out, ", ");
    add_float(out, byi_tensor_float(&parts, 2 * i + 1), single);
}

static void add_element(struct byi_text *out, const struct byi_tensor *t,
                        int64_t i)
{
    const char *string = NULL;
    uint64_t value_64 = 0;

    if (byi_dtype_is_float(t->dtype) || byi_narrow_is_float(t->dtype)) {
        add_float(out, byi_tensor_float(t, i), t->dtype != BYOC_F64);
    } else if (t->dtype == BYOC_BOOL) {
        byi_text_put(out, byi_tensor_int(t, i) ? "true" : "false");
    } else if (t->dtype == BYOC_STRING) {
        memcpy(&string, (const char *)t->data + (size_t)i * sizeof string,
               sizeof string);
        byi_lex_quote(out, string);
    } else if (t->dtype == BYOC_C64 || t->dtype == BYOC_C128) {
        add_complex(out, t, i);
    } else if (t->dtype == BYOC_U64) {
        memcpy(&value_64, (const char *)t->data + (size_t)i * sizeof value_64,
               sizeof value_64);
        byi_text_addf(out, "%llu", (unsigned long long)value_64);
    } else {
        byi_text_addf(out, "%lld", (long long)byi_tensor_int(t, i));
    }
}

static void add_elements(struct byi_text *out, const struct byi_tensor *t,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        byi_text_put(out, i ? ", " : "");
        add_element(out, t, i);
    }
}

/* Print a scalar as true, 2i32, "x" or nan (float32). Returns false if it has
 * no such notation. */
static bool add_scalar(struct byi_text *out, const struct byi_tensor *t)
{
    const char *suffix = byi_text_suffix(t->dtype);

    if (t->dtype == BYOC_BOOL || t->dtype == BYOC_STRING) {
        add_element(out, t, 0);
        return true;
    }
    if (!suffix)
        return false;
    if (byi_dtype_is_float(t->dtype) && !isfinite(byi_tensor_float(t, 0))) {
        if (t->dtype != BYOC_F32)
            return false;
        suffix = "";
    }
    add_element(out, t, 0);
    byi_text_put(out, suffix);
    return true;
}

bool byi_text_const(const struct byi_const *c, struct byi_text *out)
{
    struct byi_tensor t = {
        .data = (void *)(uintptr_t)c->data,
        .dtype = c->type->dtype,
        .rank = c->type->rank,
    };
    int64_t n = byi_elements(t.rank, c->type->dims);

    if (n > BYI_TEXT_INLINE && t.dtype != BYOC_STRING)
        return false;
    if (t.rank == 0 && add_scalar(out, &t))
        return true;
    if (t.rank == 1 && n > 0 && (t.dtype == BYOC_I64 || t.dtype == BYOC_F32)) {
        byi_text_put(out, "[");
        add_elements(out, &t, n);
        byi_text_put(out, "]");
        return true;
    }
    add_tensor(NULL, c->type, out);
    byi_text_put(out, " {");
    add_elements(out, &t, n);
    byi_text_put(out, "}");
    return true;
}
