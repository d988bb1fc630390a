/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: the printer of the text form (docs/text.md). Statements are printed
 * in the order of the nodes. A nested function is printed where its node is.
 * The printer walks with a stack of levels instead of recursion.
 *
 * Every node has its own line and a number, except parameters; constants and
 * globals with at most one reader that is not a function literal; and the
 * branches of an `if`. The result of a function has no number if it is the last
 * node and needs no name. */
#include "core/base/index.h"
#include "text.h"

#include "lex.h"

#include <assert.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* How a value is written at its readers. */
enum ref_kind { NOWHERE, NUMBER, NAME, INLINE };
struct text_ref {
    enum ref_kind kind;
    uint32_t index; /* NUMBER: n of %n; NAME: in the printer's names */
};

enum close { CLOSE_DEF, CLOSE_FN, CLOSE_THEN, CLOSE_ELSE };

/* A function that is being printed. */
struct text_level {
    const struct byi_func *f;
    enum close close;      /* selects the text after its last node */
    bool tail;             /* the last node is the result expression */
    byi_id at;             /* the next node */
    byi_id last;           /* the last node that has a line */
    byi_id owner;          /* the FN or IF of the enclosing level */
    struct text_ref *refs; /* indexed by node */
    uint8_t *uses;         /* for each node: number of readers, at most 2 */
    bool *hidden;          /* for each node: a branch printed with its `if` */
};

/* A module that is being printed. All tables are in `arena`. */
struct text_printer {
    const struct byi_module *m;
    struct byi_text *out;
    FILE *side; /* the side file of large constants, or NULL */
    struct byi_arena *arena;
    BYI_VEC(struct text_level) levels;
    BYI_VEC(const char *) names;
    uint32_t next_number; /* %0, %1, ... of this top-level function */
    const char **digests; /* indexed by constant; NULL until needed */
    uint32_t *mentions;   /* for each source: 1 + when it first appeared */
    uint32_t n_mentions;
    /* for each symbol: the `stamp` of the last top-level function in whose text
     * it has appeared */
    uint32_t *known;
    uint32_t stamp; /* 1 + the number of top-level functions printed before */
    const struct byi_attrs **defaults; /* indexed by operator */
    /* the value that byi_print_name names, and its function, or NULL */
    const struct byi_func *target_func;
    byi_id target_id;
    struct byi_text *found;
};

static void add_text(struct text_printer *p, const char *text)
{
    byi_text_add(p->out, text, strlen(text));
}

static struct text_level *top_level(struct text_printer *p)
{
    return &p->levels.at[p->levels.n - 1];
}

static void indent(struct text_printer *p, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        add_text(p, "  ");
}

static bool is_annotated(const struct byi_node *node)
{
    return node->sources->n > 0 || node->backend != 0 || node->region != 0 ||
           node->let;
}

/* --- symbols: a node's type is printed if it introduces one ------------- */

/* What learn_type finds in a type. */
struct text_symbols {
    bool has_any; /* the type has symbols */
    bool has_new; /* one of them was not known */
};

/* Mark the symbols of a type as known. Returns whether it has any, and any that
 * was not known. */
static struct text_symbols learn_type(struct text_printer *p,
                                      const struct byi_type *type)
{
    BYI_VEC(const struct byi_type *) work = {0};
    struct text_symbols symbols = {0};

    if (p->m->symbols.n == 0)
        return symbols;
    BYI_PUSH(&work, type);
    while (work.n > 0) {
        type = work.at[--work.n];
        for (uint32_t i = 0; type->kind == BYI_TENSOR && i < type->rank; i++) {
            int64_t s = -1 - type->dims[i];
            if (s < 0 || s >= (int64_t)p->m->symbols.n)
                continue;
            symbols.has_any = true;
            symbols.has_new |= p->known[s] != p->stamp;
            p->known[s] = p->stamp;
        }
        for (uint32_t i = 0; type->kind != BYI_TENSOR && i < type->n_fields;
             i++)
            BYI_PUSH(&work, type->fields[i]);
        if (type->kind == BYI_FUNC)
            BYI_PUSH(&work, type->result);
    }
    byi_vec_free(work.at);
    return symbols;
}

/* Whether the text declares the node's type, since it introduces a symbol. */
static bool introduces_symbols(struct text_printer *p, const struct byi_func *f,
                               byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct text_symbols symbols = {0};
    if (node->kind == BYI_CALL_OP || node->kind == BYI_IF ||
        node->kind == BYI_CALL)
        symbols = learn_type(p, node->type);
    return symbols.has_new ||
           (symbols.has_any && byi_sizes_depend_on_data(p->m, f, id));
}

/* --- references to values ----------------------------------------------- */

static void add_const(struct text_printer *p, uint32_t index)
{
    const struct byi_const *c = &p->m->consts.at[index];

    if (byi_text_const(c, p->out))
        return;
    if (!p->digests[index]) {
        char digest[17];
        byi_const_digest(c, digest);
        p->digests[index] = byi_arena_str(p->arena, digest);
        if (p->side)
            byi_side_write(p->side, digest, c);
    }
    byi_text_addf(p->out, "const[\"%s\"]", p->digests[index]);
}

static void add_ref(struct text_printer *p, byi_id id)
{
    const struct text_level *l = top_level(p);
    const struct byi_node *node = NULL;
    struct text_ref ref = {.kind = NOWHERE};

    if (id < l->f->nodes.n) {
        node = &l->f->nodes.at[id];
        ref = l->refs[id];
    }
    if (ref.kind == NUMBER)
        byi_text_addf(p->out, "%%%u", ref.index);
    else if (ref.kind == NAME)
        byi_text_name(p->out, '%', p->names.at[ref.index]);
    else if (ref.kind == INLINE && node->kind == BYI_CONST)
        add_const(p, node->index);
    else if (ref.kind == INLINE)
        byi_text_name(p->out, '@', p->m->funcs.at[node->index]->name);
    else
        add_text(p, "%undefined"); /* only in an invalid module */
}

static void add_refs(struct text_printer *p, const byi_id *args, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        add_text(p, i ? ", " : "");
        add_ref(p, args[i]);
    }
}

/* The defaults of an operator, from the table; required attributes have the
 * node's value here (they are always printed). */
static const struct byi_attrs *defaults_of(struct text_printer *p,
                                           const struct byi_op *op,
                                           const struct byi_attrs *attrs)
{
    struct byi_attr required[32];
    uint32_t n = 0;

    if (p->defaults[op->id])
        return p->defaults[op->id];
    for (uint32_t i = 0; i < op->n_attrs && n < BYI_COUNT(required); i++)
        if (!op->attrs[i].default_text)
            required[n++] = attrs->at[i];
    if (byi_attrs_make(p->arena, op, required, n, &p->defaults[op->id], NULL))
        return NULL;
    return p->defaults[op->id];
}

static void add_attrs(struct text_printer *p, const struct byi_node *node)
{
    const struct byi_op *op = byi_op(node->op);
    const struct byi_attrs *attrs = node->attrs, *defaults = NULL;
    bool first = node->n_args == 0;

    if (!attrs || attrs->n != op->n_attrs || attrs->n == 0)
        return;
    defaults = defaults_of(p, op, attrs);
    for (uint32_t i = 0; i < attrs->n; i++) {
        const struct byi_attr *attr = &attrs->at[i];
        if (op->attrs[i].default_text && defaults &&
            byi_attr_equal(attr, &defaults->at[i]))
            continue;
        byi_text_addf(p->out, "%s%s=", first ? "" : ", ", attr->name);
        byi_text_attr(p->out, attr);
        first = false;
    }
}

/* --- annotations and sources -------------------------------------------- */

static void add_backend(struct text_printer *p, const struct byi_node *node)
{
    const char *name = NULL;

    if (!node->backend && !node->region)
        return;
    add_text(p, " @[");
    if (node->backend && node->backend <= p->m->backends.n)
        name = p->m->backends.at[node->backend - 1];
    if (name && byi_lex_is_bare_name(name))
        add_text(p, name);
    else if (name)
        byi_lex_quote(p->out, name);
    if (node->region)
        byi_text_addf(p->out, ".%u", node->region);
    add_text(p, "]");
}

static void add_source(struct text_printer *p, uint32_t s, bool first)
{
    const struct byi_source *source = &p->m->sources.at[s];

    add_text(p, first ? "" : ", ");
    byi_lex_quote(p->out, source->name);
    if (p->mentions[s])
        return;
    p->mentions[s] = ++p->n_mentions;
    if (source->op[0]) {
        add_text(p, ": ");
        byi_lex_quote(p->out, source->op);
    }
}

static int by_mention(const void *a, const void *b, void *mentions)
{
    uint32_t x = ((const uint32_t *)mentions)[*(const uint32_t *)a];
    uint32_t y = ((const uint32_t *)mentions)[*(const uint32_t *)b];

    return x < y ? -1 : x > y;
}

/* A parser numbers sources in the order of their first mention, so list sources
 * that were mentioned before first, in that order, then the new ones. */
static void add_sources(struct text_printer *p,
                        const struct byi_sources *sources)
{
    BYI_VEC(uint32_t) known = {0};
    bool first = true;

    if (sources->n == 0)
        return;
    for (uint32_t i = 0; i < sources->n; i++)
        if (p->mentions[sources->at[i]])
            BYI_PUSH(&known, sources->at[i]);
    if (known.n > 0)
        qsort_r(known.at, known.n, sizeof *known.at, by_mention, p->mentions);
    add_text(p, " #[");
    for (uint32_t i = 0, n_known = known.n; i < n_known + sources->n; i++) {
        bool is_known = i < n_known;
        uint32_t s = is_known ? known.at[i] : sources->at[i - n_known];
        if (!is_known && p->mentions[s])
            continue;
        add_source(p, s, first);
        first = false;
    }
    add_text(p, "]");
    byi_vec_free(known.at);
}

static void end_statement(struct text_printer *p, byi_id id)
{
    const struct text_level *l = top_level(p);
    const struct byi_node *node = &l->f->nodes.at[id];

    add_backend(p, node);
    add_sources(p, node->sources);
    add_text(p, l->tail && id == l->last ? "\n" : ";\n");
}

/* --- names of parameters ------------------------------------------------ */

static bool has_name(const struct text_printer *p,
                     const struct byi_index *index, const char *name)
{
    BYI_INDEX_EACH (index, byi_hash_text(name), i)
        if (strcmp(p->names.at[i], name) == 0)
            return true;
    return false;
}

/* A parameter that would hide a name of an outer function that is read here
 * gets a suffix. */
static void name_params(struct text_printer *p, struct text_level *l)
{
    const struct byi_func *f = l->f;
    uint32_t n = f->params.n, n_declared = n - f->n_captures;
    struct byi_index index = {.arena = p->arena}; /* into p->names */

    for (uint32_t i = n_declared; i < n; i++) {
        struct text_ref ref = l->refs[f->params.at[i]];
        if (ref.kind == NAME)
            byi_index_add(&index, byi_hash_text(p->names.at[ref.index]),
                          ref.index);
    }
    for (uint32_t i = 0; i < n_declared; i++) {
        const char *name = f->param_names.at[i];
        for (uint32_t k = 1; has_name(p, &index, name); k++)
            name = byi_arena_printf(p->arena, "%s_%u", f->param_names.at[i], k);
        byi_index_add(&index, byi_hash_text(name), p->names.n);
        l->refs[f->params.at[i]] = (struct text_ref){NAME, p->names.n};
        BYI_PUSH(&p->names, name);
    }
}

/* --- levels ------------------------------------------------------------- */

/* Whether node `id` of `f` is a function literal of f itself. */
static bool is_self(const struct text_printer *p, const struct byi_func *f,
                    byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];

    return node->kind == BYI_FN && p->m->funcs.at[node->index] == f;
}

/* Whether a function calls itself, and so needs a name. */
static bool has_self(const struct text_printer *p, const struct byi_func *f)
{
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (is_self(p, f, id))
            return true;
    return false;
}

/* Whether the function is printed without signature, as a branch of an `if`. */
static bool is_block(const struct text_printer *p, const struct byi_func *f)
{
    return f->params.n == f->n_captures && !has_self(p, f) &&
           !f->attr.compiler && !f->attr.composite && !f->attr.from_pattern &&
           !f->attr.global_symbol && !f->attr.operands && !f->attr.primitive &&
           !f->attr.inlined && !f->attr.exact && f->result_names.n == 0;
}

static void count_uses(struct text_level *l)
{
    const struct byi_func *f = l->f;

    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 0; i < node->n_args; i++) {
            uint8_t *uses = &l->uses[node->args[i]];
            /* captures of a function literal must have a name: count two uses
             */
            *uses = (uint8_t)(*uses == 0 && node->kind != BYI_FN ? 1 : 2);
        }
    }
    if (f->result < f->nodes.n)
        l->uses[f->result] = (uint8_t)(l->uses[f->result] ? 2 : 1);
}

/* Find the branches that are printed with their `if`. */
static void hide_blocks(const struct text_printer *p, struct text_level *l)
{
    const struct byi_func *f = l->f;

    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 1; node->kind == BYI_IF && i < 3; i++) {
            const struct byi_node *fn = &f->nodes.at[node->args[i]];
            l->hidden[node->args[i]] =
                fn->kind == BYI_FN && l->uses[node->args[i]] == 1 &&
                !is_annotated(fn) && is_block(p, p->m->funcs.at[fn->index]);
        }
    }
}

/* Operands= names the constants of a composite in their order, which inlining
 * must not change. */
static bool inlining_keeps_order(const struct text_level *l)
{
    const struct byi_func *f = l->f;
    byi_id last = 0;

    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_CONST && (l->uses[id] != 1 || is_annotated(node)))
            return false;
        for (uint32_t i = 0; i < node->n_args; i++) {
            if (f->nodes.at[node->args[i]].kind != BYI_CONST)
                continue;
            if (node->args[i] < last)
                return false;
            last = node->args[i];
        }
    }
    return true;
}

/* Find the constants and globals that are written at their readers. */
static void inline_values(struct text_level *l)
{
    const struct byi_func *f = l->f;
    bool can = !f->attr.operands || inlining_keeps_order(l);

    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind != BYI_CONST && node->kind != BYI_GLOBAL)
            continue;
        if (l->uses[id] < 2 && !is_annotated(node) &&
            (can || node->kind == BYI_GLOBAL))
            l->refs[id].kind = INLINE;
    }
}

static bool has_line(const struct text_level *l, byi_id id)
{
    return l->f->nodes.at[id].kind != BYI_PARAM && !l->hidden[id] &&
           l->refs[id].kind != INLINE;
}

static byi_id last_line(const struct text_level *l)
{
    byi_id id = l->f->nodes.n;

    while (id > 0 && !has_line(l, id - 1))
        id--;
    return id > 0 ? id - 1 : BYI_NO_ID;
}

/* Begin a function; `captures` are the values of its last parameters in the
 * enclosing level. */
static void enter_level(struct text_printer *p, const struct byi_func *f,
                        const byi_id *captures, byi_id owner, enum close close)
{
    struct text_level l = {.f = f, .close = close, .owner = owner};
    uint32_t n = f->nodes.n, n_declared = f->params.n - f->n_captures;

    /* otherwise a function would contain itself */
    assert(p->levels.n <= p->m->funcs.n);
    l.refs = byi_arena_calloc(p->arena, n, sizeof *l.refs);
    l.uses = byi_arena_calloc(p->arena, n, sizeof *l.uses);
    l.hidden = byi_arena_calloc(p->arena, n, sizeof *l.hidden);
    for (uint32_t i = 0; i < f->n_captures; i++)
        l.refs[f->params.at[n_declared + i]] = top_level(p)->refs[captures[i]];
    for (byi_id id = 0; close == CLOSE_FN && id < n; id++) {
        if (!is_self(p, f, id))
            continue;
        l.refs[id] = top_level(p)->refs[owner];
        l.hidden[id] = true;
    }
    name_params(p, &l);
    count_uses(&l);
    hide_blocks(p, &l);
    inline_values(&l);
    l.last = last_line(&l);
    BYI_PUSH(&p->levels, l);
}

/* --- signatures of functions ---------------------------------------------- */

static void add_func_attrs(struct text_printer *p, const struct byi_func *f,
                           bool first)
{
    for (size_t i = 0; i < BYI_N_FUNC_ATTRS; i++) {
        const char *value = NULL;
        memcpy(&value, (const char *)f + byi_func_attrs[i].offset,
               sizeof value);
        if (!value)
            continue;
        byi_text_addf(p->out, "%s%s=", first ? "" : ", ",
                      byi_func_attrs[i].name);
        byi_lex_quote(p->out, value);
        first = false;
    }
    for (size_t i = 0; i < BYI_N_FUNC_FLAGS; i++) {
        bool value = false;
        memcpy(&value, (const char *)f + byi_func_flags[i].offset,
               sizeof value);
        if (!value)
            continue;
        byi_text_addf(p->out, "%s%s=1", first ? "" : ", ",
                      byi_func_flags[i].name);
        first = false;
    }
    if (f->result_names.n == 0)
        return;
    add_text(p, first ? "Outputs=[" : ", Outputs=[");
    for (uint32_t i = 0; i < f->result_names.n; i++) {
        add_text(p, i ? ", " : "");
        byi_lex_quote(p->out, f->result_names.at[i]);
    }
    add_text(p, "]");
}

/* Print "(%x: T, Compiler="dnnl") -> T {" of the innermost level. */
static void add_signature(struct text_printer *p)
{
    const struct text_level *l = top_level(p);
    const struct byi_func *f = l->f;
    uint32_t n_declared = f->params.n - f->n_captures;

    add_text(p, "(");
    for (uint32_t i = 0; i < n_declared; i++) {
        const struct byi_type *type = f->nodes.at[f->params.at[i]].type;
        add_text(p, i ? ", " : "");
        add_ref(p, f->params.at[i]);
        add_text(p, ": ");
        byi_text_type(p->m, type, p->out);
        learn_type(p, type);
    }
    add_func_attrs(p, f, n_declared == 0);
    add_text(p, ")");
    if (f->result < f->nodes.n) {
        add_text(p, " -> ");
        byi_text_type(p->m, f->nodes.at[f->result].type, p->out);
    }
    add_text(p, " {\n");
}

/* --- statements --------------------------------------------------------- */

static const struct byi_func *func_of(const struct text_printer *p,
                                      const struct byi_node *node)
{
    return p->m->funcs.at[node->index];
}

/* Print a branch of an `if`: enter its function, or call a function value.
 * Returns true if it entered a level. */
static bool open_branch(struct text_printer *p, byi_id id, uint32_t which)
{
    const struct text_level *l = top_level(p);
    const struct byi_node *node = &l->f->nodes.at[id];
    byi_id branch = node->args[which];
    const struct byi_node *fn = &l->f->nodes.at[branch];

    if (l->hidden[branch]) {
        enter_level(p, func_of(p, fn), fn->args, id,
                    which == 1 ? CLOSE_THEN : CLOSE_ELSE);
        return true;
    }
    indent(p, p->levels.n + 1);
    add_ref(p, branch);
    add_text(p, "()\n");
    return false;
}

static void close_if(struct text_printer *p, byi_id id)
{
    indent(p, p->levels.n);
    add_text(p, "}");
    end_statement(p, id);
}

static void continue_if(struct text_printer *p, byi_id id)
{
    indent(p, p->levels.n);
    add_text(p, "} else {\n");
    if (!open_branch(p, id, 2))
        close_if(p, id);
}

static void add_tuple(struct text_printer *p, const struct byi_node *node)
{
    add_text(p, "(");
    add_refs(p, node->args, node->n_args);
    add_text(p, node->n_args == 1 ? ",)" : ")");
}

/* Print the expression of a node up to its first block, if it has one. */
static void add_expression(struct text_printer *p, byi_id id)
{
    const struct byi_node *node = &top_level(p)->f->nodes.at[id];

    switch (node->kind) {
    case BYI_PARAM:
        break;
    case BYI_CONST:
        add_const(p, node->index);
        break;
    case BYI_GLOBAL:
        byi_text_name(p->out, '@', func_of(p, node)->name);
        break;
    case BYI_CALL_OP:
        byi_text_addf(p->out, "%s(", byi_op(node->op)->name);
        add_refs(p, node->args, node->n_args);
        add_attrs(p, node);
        add_text(p, ")");
        break;
    case BYI_CALL:
        add_ref(p, node->args[0]);
        add_text(p, "(");
        add_refs(p, node->args + 1, node->n_args - 1);
        add_text(p, ")");
        break;
    case BYI_MAKE_TUPLE:
        add_tuple(p, node);
        break;
    case BYI_GET:
        add_ref(p, node->args[0]);
        byi_text_addf(p->out, ".%u", node->index);
        break;
    case BYI_FN:
        add_text(p, "fn ");
        enter_level(p, func_of(p, node), node->args, id, CLOSE_FN);
        add_signature(p);
        return;
    case BYI_IF:
        add_text(p, "if (");
        add_ref(p, node->args[0]);
        add_text(p, ") {\n");
        if (!open_branch(p, id, 1))
            continue_if(p, id);
        return;
    }
    end_statement(p, id);
}

static bool is_branch(const struct text_level *l)
{
    return l->close == CLOSE_THEN || l->close == CLOSE_ELSE;
}

/* Print node `id` of the innermost level. The result needs no number if it is
 * the last node. A branch declares no type, so a new symbol must be declared at
 * a named value. */
static void add_statement(struct text_printer *p, byi_id id)
{
    struct text_level *l = top_level(p);
    const struct byi_func *f = l->f;
    bool last = id == l->last && id == f->result && l->uses[id] == 1;
    bool named = f->nodes.at[id].kind == BYI_FN &&
                 has_self(p, func_of(p, &f->nodes.at[id]));
    bool declares = introduces_symbols(p, f, id);

    indent(p, p->levels.n);
    l->tail =
        last && !named && !f->nodes.at[id].let && !(declares && is_branch(l));
    if (!l->tail) {
        add_text(p, f->nodes.at[id].let ? "let " : "");
        l->refs[id] = (struct text_ref){NUMBER, p->next_number++};
        add_ref(p, id);
        if (declares) {
            add_text(p, ": ");
            byi_text_type(p->m, f->nodes.at[id].type, p->out);
        }
        add_text(p, " = ");
    }
    add_expression(p, id);
}

/* Report the name of the target value, once all names of the innermost level
 * are assigned. */
static void report_name(struct text_printer *p)
{
    struct byi_text *out = p->out;

    if (p->target_func != top_level(p)->f || p->found->n > 0)
        return;
    p->out = p->found;
    add_ref(p, p->target_id);
    p->out = out;
}

/* After all nodes of the innermost level: print its result, and continue in the
 * enclosing level. */
static void leave_level(struct text_printer *p)
{
    struct text_level l = *top_level(p);

    report_name(p);
    if (!l.tail) {
        indent(p, p->levels.n);
        add_ref(p, l.f->result);
        add_text(p, "\n");
    }
    p->levels.n--;
    switch (l.close) {
    case CLOSE_DEF:
        add_text(p, "}\n");
        return;
    case CLOSE_FN:
        indent(p, p->levels.n);
        add_text(p, "}");
        end_statement(p, l.owner);
        return;
    case CLOSE_THEN:
        continue_if(p, l.owner);
        return;
    case CLOSE_ELSE:
        close_if(p, l.owner);
        return;
    }
}

static void print_func(struct text_printer *p, const struct byi_func *f)
{
    p->next_number = 0;
    p->names.n = 0;
    p->stamp++;
    enter_level(p, f, NULL, BYI_NO_ID, CLOSE_DEF);
    add_text(p, "def ");
    byi_text_name(p->out, '@', f->name);
    add_signature(p);
    while (p->levels.n > 0) {
        struct text_level *l = top_level(p);
        byi_id id = l->at;
        if (id == l->f->nodes.n) {
            leave_level(p);
            continue;
        }
        l->at++;
        if (has_line(l, id))
            add_statement(p, id);
    }
}

/* Print the module; store the name of value `id` of `func` in *found unless
 * that is NULL. */
static void print_module(const struct byi_module *m, struct byi_text *out,
                         FILE *side, uint32_t func, byi_id id,
                         struct byi_text *found)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(c);
    struct byi_arena *arena = byi_arena_new();
    struct text_printer p = {
        .m = m,
        .out = out,
        .side = side,
        .arena = arena,
        .digests = byi_arena_calloc(arena, m->consts.n, sizeof *p.digests),
        .mentions = byi_arena_calloc(arena, m->sources.n, sizeof *p.mentions),
        .known = byi_arena_calloc(arena, m->symbols.n, sizeof *p.known),
        .defaults = byi_arena_calloc(arena, BYI_N_OPS, sizeof *p.defaults),
        .target_func = found ? m->funcs.at[func] : NULL,
        .target_id = id,
        .found = found,
    };
    bool first = true;

    if (side)
        byi_side_begin(side);
    byi_text_add(out, "", 0);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->dead || !m->funcs.at[i]->name)
            continue;
        if (!first)
            add_text(&p, "\n");
        first = false;
        print_func(&p, m->funcs.at[i]);
    }
    byi_vec_free(p.levels.at);
    byi_vec_free(p.names.at);
    byi_arena_free(&arena);
    uselocale(before);
    freelocale(c);
}

void byi_print_module(const struct byi_module *m, struct byi_text *out,
                      FILE *side)
{
    print_module(m, out, side, 0, BYI_NO_ID, NULL);
}

void byi_print_name(const struct byi_module *m, uint32_t func, byi_id id,
                    struct byi_text *out)
{
    struct byi_text text = {0};

    print_module(m, &text, NULL, func, id, out);
    byi_text_free(&text);
}
