/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/pattern.h: patterns built in C.
 *
 * The pattern of a row is text (docs/patterns.md). These functions build that
 * text, for example from lists of operators. Each function joins pieces of text
 * into a larger piece; the last piece is the row's pattern.
 *
 *     static char buffer[512];
 *     struct byoc_pat t = {buffer, sizeof buffer, 0};
 *     const char *conv = byoc_pat_op(&t, "nn.conv2d", 2,
 *                                    byoc_pat_any(&t, "src"),
 *                                    byoc_pat_const(&t, "weights"));
 *     conv = byoc_pat_ints(&t, conv, "dilation", "=", 2, (int64_t[]){1, 1});
 *     row.pattern = byoc_pat_step(
 *         &t, conv, byoc_pat_op(&t, "nn.relu|tanh", 1, "^"), "?");
 *
 * All functions are inline: a plug-in links against no library. The pieces are
 * in the caller's buffer. If it is full, a function returns "", which is not a
 * pattern, and t.used stays t.size. The functions do not check names, operators
 * or numbers: the host does when it compiles the row, and reports the column of
 * an error. Threads: one per struct byoc_pat.
 */
#ifndef BYOC_PATTERN_H
#define BYOC_PATTERN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The buffer that patterns are written to: `size` bytes at `at`. Set `used` to
 * 0 first. */
struct byoc_pat {
    char *at;
    size_t size, used;
};

/* Format a piece as printf does; all other functions use this one. */
#if defined(__GNUC__)
__attribute__((__format__(__printf__, 2, 3)))
#endif
static inline const char *
byoc_pat_text(struct byoc_pat *t, const char *format, ...)
{
    char *text = t->at + t->used;
    const size_t room = t->size - t->used;
    va_list list;
    int n;
    va_start(list, format);
    n = vsnprintf(text, room, format, list);
    va_end(list);
    if (n < 0 || (size_t)n + 1 >= room) {
        t->used = t->size;
        return "";
    }
    t->used += (size_t)n + 1;
    return text;
}

/* Join `open`, n pieces separated by `between`, and `close`. */
static inline const char *byoc_pat_list(struct byoc_pat *t, const char *open,
                                        uint32_t n, va_list parts,
                                        const char *between, const char *close)
{
    const char *joined = byoc_pat_text(t, "%s", open);
    uint32_t i;
    for (i = 0; i <= n && t->used < t->size; i++) {
        t->used--; /* overwrite the NUL, so that the pieces join */
        if (i == n)
            byoc_pat_text(t, "%s", close);
        else
            byoc_pat_text(t, "%s%s", i ? between : "",
                          va_arg(parts, const char *));
    }
    return t->used < t->size ? joined : "";
}

/* --- operands ------------------------------------------------------------- */

/* %name. For `^`, the value before a step, write "^" instead. */
static inline const char *byoc_pat_any(struct byoc_pat *t, const char *name)
{
    return byoc_pat_text(t, "%%%s", name);
}

/* const %name */
static inline const char *byoc_pat_const(struct byoc_pat *t, const char *name)
{
    return byoc_pat_text(t, "const %%%s", name);
}

/* const %name = 0.5, or const 0.5 if `name` is NULL */
static inline const char *byoc_pat_value(struct byoc_pat *t, const char *name,
                                         double value)
{
    if (!name)
        return byoc_pat_text(t, "const %.17g", value);
    return byoc_pat_text(t, "const %%%s = %.17g", name, value);
}

/* %name...: all remaining operands of an operator; must be its last operand */
static inline const char *byoc_pat_rest(struct byoc_pat *t, const char *name)
{
    return byoc_pat_text(t, "%%%s...", name);
}

/* - p: an operand of add that is subtracted; / p: an operand of multiply that
 * is a divisor */
static inline const char *byoc_pat_minus(struct byoc_pat *t, const char *p)
{
    return byoc_pat_text(t, "- %s", p);
}
static inline const char *byoc_pat_over(struct byoc_pat *t, const char *p)
{
    return byoc_pat_text(t, "/ %s", p);
}

/* --- operators, alternatives, tuples -------------------------------------- */

/* ops(p, q, ...) with n operands; ops is one operator, or several:
 * "add|multiply" */
static inline const char *byoc_pat_op(struct byoc_pat *t, const char *ops,
                                      uint32_t n, ...)
{
    const char *open = byoc_pat_text(t, "%s(", ops), *p;
    va_list parts;
    va_start(parts, n);
    p = byoc_pat_list(t, open, n, parts, ", ", ")");
    va_end(parts);
    return p;
}

/* (p | q | ...): an alternative of n patterns; each argument is a const char *
 */
static inline const char *byoc_pat_alt(struct byoc_pat *t, uint32_t n, ...)
{
    const char *p;
    va_list parts;
    va_start(parts, n);
    p = byoc_pat_list(t, "(", n, parts, " | ", ")");
    va_end(parts);
    return p;
}

/* (p, q, ...): a tuple of n patterns; each argument is a const char * */
static inline const char *byoc_pat_tuple(struct byoc_pat *t, uint32_t n, ...)
{
    const char *p;
    va_list parts;
    va_start(parts, n);
    p = byoc_pat_list(t, "(", n, parts, ", ", n == 1 ? ",)" : ")");
    va_end(parts);
    return p;
}

/* if (p) { then } else { otherwise } */
static inline const char *byoc_pat_if(struct byoc_pat *t, const char *p,
                                      const char *then, const char *otherwise)
{
    return byoc_pat_text(t, "if (%s) { %s } else { %s }", p, then, otherwise);
}

/* p.index */
static inline const char *byoc_pat_field(struct byoc_pat *t, const char *p,
                                         uint32_t index)
{
    return byoc_pat_text(t, "%s.%u", p, index);
}

/* --- tests of attributes and types ---------------------------------------- */

/* p{test} for a `p` from byoc_pat_op; a second test is joined to the first:
 * "{a=1, b=2}". The test is text: "axis=-1|3", "mode=\"a\"|\"b\"". */
static inline const char *byoc_pat_attr(struct byoc_pat *t, const char *p,
                                        const char *test)
{
    const size_t n = strlen(p);
    if (n && p[n - 1] == '}')
        return byoc_pat_text(t, "%.*s, %s}", (int)n - 1, p, test);
    return byoc_pat_text(t, "%s{%s}", p, test);
}

/* The same for one number, one string or a list; cmp is "=" or "!=", or for
 * ordered values "<", "<=", ">" or ">=". */
static inline const char *byoc_pat_int(struct byoc_pat *t, const char *p,
                                       const char *name, const char *cmp,
                                       int64_t value)
{
    return byoc_pat_attr(
        t, p, byoc_pat_text(t, "%s%s%lld", name, cmp, (long long)value));
}
static inline const char *byoc_pat_float(struct byoc_pat *t, const char *p,
                                         const char *name, const char *cmp,
                                         double value)
{
    return byoc_pat_attr(t, p, byoc_pat_text(t, "%s%s%.17g", name, cmp, value));
}
static inline const char *byoc_pat_string(struct byoc_pat *t, const char *p,
                                          const char *name, const char *cmp,
                                          const char *value)
{
    return byoc_pat_attr(t, p,
                         byoc_pat_text(t, "%s%s\"%s\"", name, cmp, value));
}
static inline const char *byoc_pat_ints(struct byoc_pat *t, const char *p,
                                        const char *name, const char *cmp,
                                        uint32_t n, const int64_t *values)
{
    const char *list = byoc_pat_text(t, "%s%s[", name, cmp);
    uint32_t i;
    for (i = 0; i < n; i++)
        list = byoc_pat_text(t, "%s%s%lld", list, i ? ", " : "",
                             (long long)values[i]);
    return byoc_pat_attr(t, p, byoc_pat_text(t, "%s]", list));
}

/* p: type, as text: "float32|float16", "Tensor[(1, _, ...), float32]" */
static inline const char *byoc_pat_type(struct byoc_pat *t, const char *p,
                                        const char *type)
{
    return byoc_pat_text(t, "%s: %s", p, type);
}

/* --- steps and names ------------------------------------------------------ */

/* p [step]mark: `step` contains "^", the value before the step; `mark`, the
 * quantifier, is "", "?", "*", "~" or "{1, 4}" */
static inline const char *byoc_pat_step(struct byoc_pat *t, const char *p,
                                        const char *step, const char *mark)
{
    return byoc_pat_text(t, "%s [%s]%s", p, step, mark);
}

/* PATTERN with %name = p. Complete the pattern first; later calls define names
 * that earlier definitions use. */
static inline const char *byoc_pat_with(struct byoc_pat *t, const char *row,
                                        const char *name, const char *p)
{
    return byoc_pat_text(t, "%s%s%%%s = %s", row,
                         strstr(row, " with %") ? ", " : " with ", name, p);
}

#ifdef __cplusplus
}
#endif
#endif
