/* SPDX-License-Identifier: Apache-2.0 */
/* user_pass.c: adapts users' rules (byoc/pass.h) to a function pass on the
 * rewriter that all passes share. User code is not trusted: every node id is
 * checked, and the first fault is recorded and fails the pass.
 */
#include "user_pass.h"

#include "rewrite.h"

#include <string.h>

/* The state of one rewrite. `rewriter`, which the rules see, comes first,
 * so that both have the same address. */
struct user_rewrite {
    struct byoc_rewriter rewriter;
    struct byi_rewrite *rw;
    const struct byoc_pass *pass;
    struct byoc_error fault; /* status BYOC_OK: none yet */
};

static struct user_rewrite *rewrite_of(const struct byoc_rewriter *rewriter)
{
    return (struct user_rewrite *)(uintptr_t)rewriter;
}

/* Record the first fault of a rule, in the format of printf. */
#define RECORD_FAULT(s, ...)                                                   \
    do {                                                                       \
        if ((s)->fault.status == BYOC_OK)                                      \
            byi_fail(&(s)->fault, BYOC_EINVAL, __VA_ARGS__);                   \
    } while (0)

/* Returns the node, or NULL if the id is out of range. */
static const struct byi_node *node_of(const struct byoc_rewriter *rewriter,
                                      byoc_node id)
{
    const struct user_rewrite *s = rewrite_of(rewriter);
    return id < s->rw->f->nodes.n ? &s->rw->f->nodes.at[id] : NULL;
}

/* --- queries -------------------------------------------------------------- */

static const char *get_op(const struct byoc_rewriter *rewriter, byoc_node id)
{
    const struct byi_node *node = node_of(rewriter, id);
    return node && node->kind == BYI_CALL_OP ? byi_op(node->op)->name : NULL;
}

static uint32_t get_n_args(const struct byoc_rewriter *rewriter, byoc_node id)
{
    const struct byi_node *node = node_of(rewriter, id);
    return node ? node->n_args : 0;
}

static byoc_node get_arg(const struct byoc_rewriter *rewriter, byoc_node id,
                         uint32_t index)
{
    const struct byi_node *node = node_of(rewriter, id);
    return node && index < node->n_args ? node->args[index] : BYOC_NO_NODE;
}

static int get_read_once(const struct byoc_rewriter *rewriter, byoc_node id)
{
    return node_of(rewriter, id) &&
           byi_rw_has_one_reader(rewrite_of(rewriter)->rw, id);
}

static int get_tensor(const struct byoc_rewriter *rewriter, byoc_node id,
                      struct byoc_view *view)
{
    const struct byi_node *node = node_of(rewriter, id);
    struct byi_tensor t;
    if (!node || node->type->kind != BYI_TENSOR)
        return 0;
    const bool is_const = byi_rw_view(rewrite_of(rewriter)->rw, id, &t);
    *view = (struct byoc_view){
        .dtype = node->type->dtype,
        .rank = node->type->rank,
        .dims = node->type->dims,
        .data = is_const ? t.data : NULL,
        .bytes = is_const ? byi_tensor_bytes(&t) : 0,
    };
    return 1;
}

static const struct byi_attr *get_attr(const struct byoc_rewriter *rewriter,
                                       byoc_node id, const char *name)
{
    const struct byi_node *node = node_of(rewriter, id);
    return node && node->kind == BYI_CALL_OP ? byi_attr_find(node->attrs, name)
                                             : NULL;
}

static int64_t get_ints(const struct byoc_rewriter *rewriter, byoc_node id,
                        const char *name, int64_t *values, uint32_t max)
{
    const struct byi_attr *attr = get_attr(rewriter, id, name);
    if (!attr)
        return -1;
    const bool is_single =
        attr->kind == BYI_ATTR_INT || attr->kind == BYI_ATTR_BOOL;
    if (!is_single && attr->kind != BYI_ATTR_INTS)
        return -1;
    const uint32_t n = is_single ? 1 : attr->n;
    for (uint32_t i = 0; i < n && i < max; i++)
        values[i] = is_single ? attr->i : attr->ints[i];
    return n;
}

static int64_t get_floats(const struct byoc_rewriter *rewriter, byoc_node id,
                          const char *name, double *values, uint32_t max)
{
    const struct byi_attr *attr = get_attr(rewriter, id, name);
    if (!attr ||
        (attr->kind != BYI_ATTR_FLOAT && attr->kind != BYI_ATTR_FLOATS))
        return -1;
    const uint32_t n = attr->kind == BYI_ATTR_FLOAT ? 1 : attr->n;
    for (uint32_t i = 0; i < n && i < max; i++)
        values[i] = attr->kind == BYI_ATTR_FLOAT ? attr->f : attr->floats[i];
    return n;
}

static const char *get_string(const struct byoc_rewriter *rewriter,
                              byoc_node id, const char *name)
{
    const struct byi_attr *attr = get_attr(rewriter, id, name);
    if (attr && attr->kind == BYI_ATTR_STRING)
        return attr->s;
    return attr && attr->kind == BYI_ATTR_DTYPE
               ? byoc_dtype_name((enum byoc_dtype)attr->i)
               : NULL;
}

/* --- emitting ------------------------------------------------------------- */

/* Convert `user_attr` to the declared kind; false if it has another kind. */
static bool read_attr(const struct byi_attr_def *def,
                      const struct byoc_attr *user_attr,
                      struct byi_arena *arena, struct byi_attr *attr)
{
    const bool ints =
        user_attr->ints && !user_attr->floats && !user_attr->string;
    const bool floats =
        user_attr->floats && !user_attr->ints && !user_attr->string;
    const bool string =
        user_attr->string && !user_attr->ints && !user_attr->floats;
    *attr = (struct byi_attr){.name = def->name, .kind = def->kind};
    switch (def->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
        attr->i = ints && user_attr->n ? user_attr->ints[0] : 0;
        return ints && user_attr->n == 1 &&
               (def->kind == BYI_ATTR_INT || attr->i == 0 || attr->i == 1);
    case BYI_ATTR_FLOAT:
        attr->f = floats && user_attr->n ? user_attr->floats[0] : 0;
        return floats && user_attr->n == 1;
    case BYI_ATTR_STRING:
        attr->s = string ? byi_arena_str(arena, user_attr->string) : NULL;
        return string;
    case BYI_ATTR_DTYPE:
        attr->i = string ? byi_dtype_of_name(user_attr->string,
                                             strlen(user_attr->string))
                         : BYOC_NONE;
        return attr->i != BYOC_NONE;
    case BYI_ATTR_INTS:
        attr->n = user_attr->n;
        attr->ints =
            ints ? byi_arena_copy(arena, user_attr->ints,
                                  user_attr->n * sizeof *user_attr->ints)
                 : NULL;
        return ints;
    case BYI_ATTR_FLOATS:
        attr->n = user_attr->n;
        attr->floats =
            floats ? byi_arena_copy(arena, user_attr->floats,
                                    user_attr->n * sizeof *user_attr->floats)
                   : NULL;
        return floats;
    case BYI_ATTR_STRINGS:
        return false; /* struct byoc_attr cannot give a list of strings */
    }
    byi_unreachable();
}

static const char *user_attr_kind(const struct byoc_attr *user_attr)
{
    return user_attr->string   ? "a string"
           : user_attr->ints   ? user_attr->n == 1 ? "an integer" : "integers"
           : user_attr->floats ? user_attr->n == 1 ? "a float" : "floats"
                               : "no value";
}

static const char *const expected_kinds[] = {
    [BYI_ATTR_INT] = "an integer",       [BYI_ATTR_BOOL] = "the integer 0 or 1",
    [BYI_ATTR_FLOAT] = "a float",        [BYI_ATTR_STRING] = "a string",
    [BYI_ATTR_DTYPE] = "a dtype's name", [BYI_ATTR_INTS] = "integers",
    [BYI_ATTR_FLOATS] = "floats",        [BYI_ATTR_STRINGS] = "strings",
};

static byoc_node emit_call(struct byoc_rewriter *rewriter, const char *name,
                           const byoc_node *args, uint32_t n,
                           const struct byoc_attr *user_attrs, uint32_t n_attrs)
{
    enum { MAX_ATTRS = 16 };
    struct user_rewrite *s = rewrite_of(rewriter);
    const struct byi_op *op = byi_op_of_name(name, strlen(name));
    struct byi_attr attrs[MAX_ATTRS];
    if (!op) {
        RECORD_FAULT(
            s, "a rule emits '%s', expected an operator of docs/operators.md",
            name);
        return BYOC_NO_NODE;
    }
    if (n_attrs > MAX_ATTRS) {
        RECORD_FAULT(s,
                     "a rule gives %u attributes to '%s', expected at most %d",
                     n_attrs, name, MAX_ATTRS);
        return BYOC_NO_NODE;
    }
    for (uint32_t i = 0; i < n_attrs; i++) {
        const struct byi_attr_def *def = byi_op_attr(op, user_attrs[i].name);
        if (def && read_attr(def, &user_attrs[i], s->rw->m->arena, &attrs[i]))
            continue;
        if (def)
            RECORD_FAULT(
                s, "a rule gives %s to the attribute '%s' of '%s', expected %s",
                user_attr_kind(&user_attrs[i]), def->name, name,
                expected_kinds[def->kind]);
        else
            RECORD_FAULT(s,
                         "a rule gives '%s' the attribute '%s', expected an "
                         "attribute of this operator",
                         name, user_attrs[i].name);
        return BYOC_NO_NODE;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!node_of(rewriter, args[i]))
            return BYOC_NO_NODE;
    return byi_rw_call(s->rw, op->id, args, n, attrs, n_attrs);
}

/* Returns the type of a constant that a rule emits; NULL, after recording the
 * fault, if the view has one. */
static const struct byi_type *constant_type(struct user_rewrite *s,
                                            const struct byoc_view *view)
{
    const char *dtype = byoc_dtype_name(view->dtype);
    if (byoc_dtype_size(view->dtype) == 0) {
        RECORD_FAULT(
            s, "a rule emits a constant of dtype %s, expected numbers or bool",
            dtype ? dtype : "unknown");
        return NULL;
    }
    if (view->rank > BYI_MAX_RANK) {
        RECORD_FAULT(s,
                     "a rule emits a constant of rank %u, expected at most %d",
                     view->rank, BYI_MAX_RANK);
        return NULL;
    }
    for (uint32_t d = 0; d < view->rank; d++)
        if (view->dims[d] < 0) {
            RECORD_FAULT(s,
                         "a rule emits a constant of size %lld on axis %u, "
                         "expected 0 or more",
                         (long long)view->dims[d], d);
            return NULL;
        }
    const struct byi_type *type =
        byi_type_tensor(s->rw->m->arena, view->dtype, view->rank, view->dims);
    const uint64_t bytes = byi_type_bytes(type);
    if (bytes == view->bytes && (view->data || !bytes))
        return type;
    RECORD_FAULT(s,
                 "a rule emits a constant of %llu bytes at %s, expected %llu, "
                 "as its dtype and dims need",
                 (unsigned long long)view->bytes,
                 view->data ? "an address" : "NULL", (unsigned long long)bytes);
    return NULL;
}

static byoc_node emit_constant(struct byoc_rewriter *rewriter,
                               const struct byoc_view *view)
{
    struct user_rewrite *s = rewrite_of(rewriter);
    struct byi_rewrite *rw = s->rw;
    struct byi_tensor t;
    const struct byi_type *type = constant_type(s, view);
    if (!type)
        return BYOC_NO_NODE;
    if (!byi_rw_alloc(rw, type, &t)) {
        RECORD_FAULT(
            s,
            "a rule emits a constant of %llu bytes, expected at most "
            "%llu, which are left of the limit on constants that "
            "passes make; let the rule emit smaller or fewer constants",
            (unsigned long long)view->bytes,
            (unsigned long long)byi_consts_left(rw->m));
        return BYOC_NO_NODE;
    }
    memcpy(t.data, view->data, view->bytes);
    return byi_rw_const(rw, type, &t);
}

/* --- the pass ------------------------------------------------------------- */

static bool rule_applies(const struct byoc_rule *rule,
                         const struct byi_node *node)
{
    return !rule->op || (node->kind == BYI_CALL_OP &&
                         strcmp(rule->op, byi_op(node->op)->name) == 0);
}

static byi_id apply_rules(struct byi_rewrite *rw, byi_id at)
{
    struct user_rewrite *s = rw->state;
    s->rw = rw;
    for (uint32_t i = 0; i < s->pass->n_rules; i++) {
        const struct byoc_rule *rule = &s->pass->rules[i];
        if (s->fault.status != BYOC_OK ||
            !rule_applies(rule, byi_rw_node(rw, at)))
            continue;
        const byoc_node replacement =
            rule->apply(s->pass->ctx, &s->rewriter, at);
        if (replacement == BYOC_NO_NODE)
            continue;
        if (replacement < rw->f->nodes.n)
            return replacement;
        RECORD_FAULT(s,
                     "a rule for '%s' returns a node that does not exist, "
                     "expected a node of the function or BYOC_NO_NODE",
                     rule->op ? rule->op : "any node");
    }
    return BYI_NO_ID;
}

static enum byoc_status run_user(struct byi_module *m, uint32_t func,
                                 struct byi_pass_context *ctx,
                                 struct byi_arena *scratch,
                                 struct byoc_error *err)
{
    static const struct byi_rule rules[] = {{BYI_OP_NONE, apply_rules}};
    struct user_rewrite s = {
        .rewriter = {.struct_size = sizeof s.rewriter,
                     .op = get_op,
                     .n_args = get_n_args,
                     .arg = get_arg,
                     .read_once = get_read_once,
                     .tensor = get_tensor,
                     .ints = get_ints,
                     .floats = get_floats,
                     .string = get_string,
                     .call = emit_call,
                     .constant = emit_constant},
        .pass = ctx->pass->data,
    };
    BYI_TRY(
        byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, &s, err));
    return s.fault.status == BYOC_OK
               ? BYOC_OK
               : byi_fail(err, s.fault.status, "%s", s.fault.text);
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name && *name && name[strspn(name, letters)] == '\0';
}

static enum byoc_status check_pass(const struct byoc_pass *pass,
                                   struct byoc_error *err)
{
    const bool has_name =
        pass->struct_size >= BYI_UP_TO(struct byoc_pass, name);
    const char *name = has_name && pass->name ? pass->name : "?";
    if (pass->struct_size < BYI_UP_TO(struct byoc_pass, ctx))
        return byi_fail(err, BYOC_EINVAL,
                        "the pass '%s' has struct_size %u, expected "
                        "sizeof(struct byoc_pass)",
                        name, pass->struct_size);
    if (!is_name(pass->name))
        return byi_fail(err, BYOC_EINVAL,
                        "found the pass '%s', expected a name of letters, "
                        "digits and '_'",
                        name);
    if (!pass->summary)
        return byi_fail(err, BYOC_EINVAL,
                        "the pass '%s' has no summary, expected one line",
                        name);
    if (pass->opt_level < 0 || pass->opt_level > 3)
        return byi_fail(err, BYOC_EINVAL,
                        "the pass '%s' has opt level %d, expected 0 to 3", name,
                        (int)pass->opt_level);
    if (pass->n_rules == 0 || !pass->rules)
        return byi_fail(err, BYOC_EINVAL,
                        "the pass '%s' has no rules, expected at least one",
                        name);
    for (uint32_t i = 0; i < pass->n_rules; i++) {
        const struct byoc_rule *rule = &pass->rules[i];
        if (!rule->apply)
            return byi_fail(err, BYOC_EINVAL,
                            "rule %u of the pass '%s' has no apply(), expected "
                            "a function",
                            i, name);
        if (rule->op && !byi_op_of_name(rule->op, strlen(rule->op)))
            return byi_fail(err, BYOC_EINVAL,
                            "the pass '%s' has a rule for '%s', expected an "
                            "operator of docs/operators.md",
                            name, rule->op);
    }
    return BYOC_OK;
}

enum byoc_status byi_user_pass(const struct byoc_pass *pass,
                               struct byi_pass **new_pass,
                               struct byoc_error *err)
{
    *new_pass = NULL;
    BYI_TRY(check_pass(pass, err));
    *new_pass = byi_alloc(1, sizeof **new_pass);
    if (!*new_pass)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for the pass '%s'",
                        pass->name);
    **new_pass = (struct byi_pass){.name = pass->name,
                                   .summary = pass->summary,
                                   .opt_level = pass->opt_level,
                                   .needs = pass->needs,
                                   .run_func = run_user,
                                   .data = pass};
    return BYOC_OK;
}
