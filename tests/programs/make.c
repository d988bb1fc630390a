/* SPDX-License-Identifier: Apache-2.0 */
/* make.c: random programs: functions, closures, branches, recursion, tuples.
 * Every program is well typed, ends, and takes little time:
 *   - a function has an upper bound of the nodes that one call executes, and
 *     calls no function that exceeds its budget;
 *   - recursion counts a parameter down from at most 3.
 */
#include "make.h"

#include <string.h>

enum { MAX_RESULTS = 16 };

uint32_t make_pick(struct maker *k, uint32_t n)
{
    k->state = k->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(k->state >> 33) % n;
}

/* --- scopes ------------------------------------------------------ */

const struct byi_type *make_type_of(const struct scope *s, byi_id id)
{
    return s->f->nodes.at[id].type;
}

void make_push(struct scope *s, byi_id id, double bound)
{
    BYI_PUSH(&s->values, ((struct bounded_value){id, bound}));
}

double make_bound(const struct scope *s, byi_id id)
{
    for (uint32_t i = s->values.n; i-- > 0;)
        if (s->values.at[i].id == id)
            return s->values.at[i].bound;
    return 4.0;
}

static void open_scope(struct maker *k, struct scope *s, struct scope *outer,
                       const char *name, double budget)
{
    char text[24];
    if (name)
        snprintf(text, sizeof text, "%s%u", name, k->n_names++);
    *s = (struct scope){.outer = outer,
                        .depth = outer ? outer->depth + 1 : 0,
                        .budget = budget};
    s->func = byi_func_new(k->m, name ? text : NULL);
    s->f = k->m->funcs.at[s->func];
}

static void free_scope(struct scope *s)
{
    byi_vec_free(s->values.at);
    byi_vec_free(s->captures.at);
    byi_vec_free(s->imported.at);
}

/* Remove a function that is not used, and all functions written for it. */
static void discard_scope(struct maker *k, struct scope *s)
{
    for (uint32_t i = s->func; i < k->m->funcs.n; i++)
        k->m->funcs.at[i]->dead = true;
    free_scope(s);
}

static void add_params(struct maker *k, struct scope *s, uint32_t n,
                       const struct byi_type *const *types)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%u", i);
        make_push(s, byi_add_param(k->m, s->f, name, types[i]), 4.0);
    }
}

/* Value `i` of the outer scope, as a parameter of this one. */
static const struct bounded_value *import(struct maker *k, struct scope *s,
                                          uint32_t i)
{
    const struct bounded_value from = s->outer->values.at[i];
    char name[16];
    for (uint32_t c = 0; c < s->imported.n; c++)
        if (s->imported.at[c] == i)
            for (uint32_t v = 0; v < s->values.n; v++)
                if (s->values.at[v].id ==
                    s->f->params.at[s->f->params.n - s->captures.n + c])
                    return &s->values.at[v];
    snprintf(name, sizeof name, "c%u", s->captures.n);
    const byi_id id =
        byi_add_param(k->m, s->f, name, make_type_of(s->outer, from.id));
    BYI_PUSH(&s->captures, from.id);
    BYI_PUSH(&s->imported, i);
    make_push(s, id, from.bound);
    return &s->values.at[s->values.n - 1];
}

static uint32_t find_index(struct maker *k, struct scope *s,
                           make_accepts_fn accepts, const void *ctx)
{
    uint32_t found = UINT32_MAX, n_seen = 0;
    const uint32_t near = 4 + make_pick(k, 12);
    for (uint32_t i = s->values.n; i-- > 0;) {
        if (!accepts(make_type_of(s, s->values.at[i].id), ctx))
            continue;
        if (make_pick(k, ++n_seen) == 0) /* each with the same probability */
            found = i;
        if (n_seen == near)
            break;
    }
    return found;
}

const struct bounded_value *make_find(struct maker *k, struct scope *s,
                                      make_accepts_fn accepts, const void *ctx)
{
    struct scope *path[MAX_DEPTH + 4], *at = s;
    uint32_t n = 0, i = find_index(k, s, accepts, ctx);
    if (s->outer && make_pick(k, 3) == 0)
        i = UINT32_MAX;
    while (i == UINT32_MAX && at->outer) {
        path[n++] = at;
        at = at->outer;
        i = find_index(k, at, accepts, ctx);
    }
    if (i == UINT32_MAX) /* then also a value that was skipped */
        return n && (i = find_index(k, s, accepts, ctx)) != UINT32_MAX
                   ? &s->values.at[i]
                   : NULL;
    const struct bounded_value *found = &at->values.at[i];
    while (n > 0) {
        struct scope *inner = path[--n];
        found = import(k, inner, i);
        i = (uint32_t)(found - inner->values.at);
    }
    return found;
}

static bool is_same(const struct byi_type *type, const void *other)
{
    return byi_type_equal(type, other);
}

static bool is_any(const struct byi_type *type, const void *unused)
{
    (void)unused;
    return type->kind != BYI_FUNC || type->n_fields < 4;
}

static bool is_kind(const struct byi_type *type, const void *kind)
{
    return type->kind == *(const enum byi_type_kind *)kind;
}

/* --- types ------------------------------------------------------- */

/* One of few types, so that values, parameters and results often have the same.
 */
static const struct byi_type *pick_tensor_type(struct maker *k)
{
    static const struct {
        enum byoc_dtype dtype;
        uint32_t rank;
        int64_t dims[4];
    } types[] = {
        {BYOC_F32, 4, {0, 2, 4, 4}}, {BYOC_F32, 4, {0, 2, 4, 4}},
        {BYOC_F32, 4, {0, 2, 4, 4}}, {BYOC_F32, 2, {2, 4}},
        {BYOC_F32, 2, {2, 4}},       {BYOC_F32, 0, {0}},
        {BYOC_F32, 4, {0, 4, 4, 2}}, {BYOC_I64, 0, {0}},
        {BYOC_I64, 1, {3}},          {BYOC_BOOL, 0, {0}},
        {BYOC_I32, 2, {2, 4}},       {BYOC_F64, 2, {2, 4}},
    };
    const uint32_t i = make_pick(k, BYI_COUNT(types));
    int64_t dims[4];
    memcpy(dims, types[i].dims, sizeof dims);
    if (types[i].rank == 4)
        dims[0] = k->batch;
    return byi_type_tensor(k->m->arena, types[i].dtype, types[i].rank, dims);
}

static const struct byi_type *pick_type(struct maker *k, uint32_t depth)
{
    const uint32_t what = make_pick(k, 10);
    if (depth > 1 || what < 7)
        return pick_tensor_type(k);
    const struct byi_type *fields[2];
    const uint32_t n = what == 7 ? 2 : 1;
    for (uint32_t i = 0; i < n; i++)
        fields[i] = pick_type(k, depth + 1);
    if (what == 7)
        return byi_type_tuple(k->m->arena, n, fields);
    const struct byi_type *result =
        make_pick(k, 2) ? fields[0] : pick_type(k, depth + 1);
    return byi_type_func(k->m->arena, n, fields, result);
}

/* --- function literals ------------------------------------------- */

static void write_steps(struct maker *k, struct scope *s);

static byi_id close_scope(struct maker *k, struct scope *s, byi_id result)
{
    s->f->n_captures = s->captures.n;
    s->f->result = result;
    byi_func_type(k->m, s->func);
    return byi_add_fn(k->m, s->outer->f, s->func, s->captures.at, s->captures.n,
                      NULL);
}

/* Write a function literal of this type; of a random one if it is NULL. */
static byi_id make_literal(struct maker *k, struct scope *outer,
                           const struct byi_type *type)
{
    struct scope s;
    const struct byi_type *types[3];
    uint32_t n = type ? type->n_fields : make_pick(k, 4);
    if (outer->depth >= MAX_DEPTH + 2)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n && i < BYI_COUNT(types); i++)
        types[i] = type ? type->fields[i] : pick_type(k, outer->depth);
    open_scope(k, &s, outer, NULL, VALUE_COST);
    add_params(k, &s, n, types);
    s.steps = outer->depth >= MAX_DEPTH ? 0 : make_pick(k, 5);
    write_steps(k, &s);
    const struct bounded_value *found =
        type ? NULL : make_find(k, &s, is_any, NULL);
    const byi_id result = type    ? make_value(k, &s, type->result)
                          : found ? found->id
                                  : make_number(k, &s, BYOC_F32, 1.5);
    if (result == BYI_NO_ID) {
        discard_scope(k, &s);
        return BYI_NO_ID;
    }
    const byi_id id = close_scope(k, &s, result);
    free_scope(&s);
    return id;
}

static void add_literal(struct maker *k, struct scope *s)
{
    if (s->depth >= MAX_DEPTH)
        return;
    const byi_id id = make_literal(k, s, NULL);
    if (id != BYI_NO_ID)
        make_push(s, id, 4.0);
}

/* --- values of a given type -------------------------------------- */

/* Write a constant plus a scalar that depends on a visible float. */
static byi_id write_float(struct maker *k, struct scope *s,
                          const struct byi_type *type)
{
    const struct bounded_value *found = make_find(k, s, make_is_float32, NULL);
    const struct bounded_value from =
        found ? *found : (struct bounded_value){.id = BYI_NO_ID};
    if (!byi_type_is_static(type))
        return BYI_NO_ID;
    const byi_id fill = make_const(k, s, type->dtype, type->rank, type->dims);
    if (!found || make_pick(k, 4) == 0)
        return fill;
    const struct byi_attr keep = {.name = "keepdims", .kind = BYI_ATTR_BOOL};
    const struct byi_attr to = {
        .name = "dtype", .kind = BYI_ATTR_DTYPE, .i = type->dtype};
    const double bound = from.bound;
    byi_id x = make_call(k, s, BYI_OP_MEAN, &from.id, 1, &keep, 1, bound);
    if (x != BYI_NO_ID && make_type_of(s, x)->dtype != type->dtype)
        x = make_call(k, s, BYI_OP_CAST, &x, 1, &to, 1, bound);
    if (x == BYI_NO_ID)
        return fill;
    x = make_call(k, s, BYI_OP_ADD, (byi_id[]){fill, x}, 2, NULL, 0,
                  bound + 6.0);
    return x != BYI_NO_ID && byi_type_equal(make_type_of(s, x), type) ? x
                                                                      : fill;
}

static byi_id write_tensor(struct maker *k, struct scope *s,
                           const struct byi_type *type)
{
    if (byi_dtype_is_float(type->dtype))
        return write_float(k, s, type);
    if (type->dtype == BYOC_BOOL && type->rank == 0)
        return make_condition(k, s);
    if (!byi_type_is_static(type))
        return BYI_NO_ID;
    return make_const(k, s, type->dtype, type->rank, type->dims);
}

static byi_id write_tuple(struct maker *k, struct scope *s,
                          const struct byi_type *type)
{
    byi_id fields[8];
    if (type->n_fields > BYI_COUNT(fields))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < type->n_fields; i++) {
        fields[i] = make_value(k, s, type->fields[i]);
        if (fields[i] == BYI_NO_ID)
            return BYI_NO_ID;
    }
    s->cost++;
    return byi_add_tuple(k->m, s->f, fields, type->n_fields, NULL);
}

byi_id make_value(struct maker *k, struct scope *s, const struct byi_type *type)
{
    const struct bounded_value *found =
        make_pick(k, 5) ? make_find(k, s, is_same, type) : NULL;
    byi_id id = found ? found->id : BYI_NO_ID;
    if (id != BYI_NO_ID)
        return id;
    if (type->kind == BYI_TENSOR)
        id = write_tensor(k, s, type);
    else if (type->kind == BYI_TUPLE)
        id = write_tuple(k, s, type);
    else
        id = make_literal(k, s, type);
    if (id == BYI_NO_ID && (found = make_find(k, s, is_same, type)))
        id = found->id;
    return id;
}

/* --- tuples ------------------------------------------------------ */

static void add_tuple(struct maker *k, struct scope *s)
{
    byi_id fields[3];
    const uint32_t n = make_pick(k, 4);
    for (uint32_t i = 0; i < n; i++) {
        const struct bounded_value *found = make_find(k, s, is_any, NULL);
        if (!found)
            return;
        fields[i] = found->id;
    }
    make_push(s, byi_add_tuple(k->m, s->f, fields, n, NULL), 4.0);
    s->cost++;
}

static void add_get(struct maker *k, struct scope *s)
{
    static const enum byi_type_kind kind = BYI_TUPLE;
    const struct bounded_value *found = make_find(k, s, is_kind, &kind);
    byi_id id;
    if (!found || make_type_of(s, found->id)->n_fields == 0)
        return;
    const uint32_t n = make_type_of(s, found->id)->n_fields;
    if (byi_add_get(k->m, s->f, found->id, make_pick(k, n), NULL, &id, NULL) ==
        BYOC_OK)
        make_push(s, id, found->bound);
    s->cost++;
}

/* --- branches ---------------------------------------------------- */

/* Write a branch as a function that returns `type`. Returns BYI_NO_ID if that
 * is not possible. */
static byi_id make_branch(struct maker *k, struct scope *outer,
                          const struct byi_type *type, double *cost)
{
    struct scope s;
    open_scope(k, &s, outer, NULL, (outer->budget - outer->cost) / 2);
    s.steps = make_pick(k, 5);
    write_steps(k, &s);
    const byi_id result = make_value(k, &s, type);
    if (result == BYI_NO_ID) {
        discard_scope(k, &s);
        return BYI_NO_ID;
    }
    *cost = s.cost > *cost ? s.cost : *cost;
    const byi_id id = close_scope(k, &s, result);
    free_scope(&s);
    return id;
}

static void add_if(struct maker *k, struct scope *s)
{
    const struct bounded_value *value = make_find(k, s, is_any, NULL);
    byi_id id;
    double cost = 0;
    if (!value || s->depth >= MAX_DEPTH)
        return;
    const struct byi_type *type = make_type_of(s, value->id);
    const byi_id condition = make_condition(k, s);
    const byi_id then = make_branch(k, s, type, &cost);
    const byi_id otherwise = make_branch(k, s, type, &cost);
    s->cost += cost + 2;
    if (then == BYI_NO_ID || otherwise == BYI_NO_ID)
        return;
    if (byi_add_if(k->m, s->f, condition, then, otherwise, NULL, &id, NULL) ==
        BYOC_OK)
        make_push(s, id, 8.0);
}

/* --- calls ------------------------------------------------------- */

/* Call node `callee` with existing values, or values written for it. */
static byi_id apply(struct maker *k, struct scope *s, byi_id callee,
                    double cost)
{
    const struct byi_type *type = make_type_of(s, callee);
    byi_id args[8], id;
    if (type->n_fields > BYI_COUNT(args) || s->cost + cost > s->budget)
        return BYI_NO_ID;
    s->cost += cost;
    for (uint32_t i = 0; i < type->n_fields; i++) {
        args[i] = make_value(k, s, type->fields[i]);
        if (args[i] == BYI_NO_ID)
            return BYI_NO_ID;
    }
    if (byi_add_apply(k->m, s->f, callee, args, type->n_fields, NULL, &id,
                      NULL) != BYOC_OK)
        return BYI_NO_ID;
    make_push(s, id, 8.0);
    return id;
}

static void add_call(struct maker *k, struct scope *s)
{
    static const enum byi_type_kind kind = BYI_FUNC;
    const uint32_t what = make_pick(k, 4);
    if (what < 2 && k->globals.n) {
        const struct global *g = &k->globals.at[make_pick(k, k->globals.n)];
        if (s->cost + g->cost <= s->budget)
            apply(k, s, byi_add_global(k->m, s->f, g->func), g->cost);
        return;
    }
    const struct bounded_value *found =
        what == 2 ? make_find(k, s, is_kind, &kind) : NULL;
    byi_id callee = found ? found->id : BYI_NO_ID;
    if (callee == BYI_NO_ID && s->depth < MAX_DEPTH)
        callee = make_literal(k, s, NULL);
    if (callee != BYI_NO_ID)
        apply(k, s, callee, VALUE_COST);
}

static void add_global_value(struct maker *k, struct scope *s)
{
    if (!k->globals.n)
        return;
    const struct global *g = &k->globals.at[make_pick(k, k->globals.n)];
    if (g->cost <= VALUE_COST)
        make_push(s, byi_add_global(k->m, s->f, g->func), 4.0);
}

/* --- statements -------------------------------------------------- */

static void write_steps(struct maker *k, struct scope *s)
{
    static void (*const flow[])(struct maker *, struct scope *) = {
        add_tuple, add_get,  add_get,  add_if,      add_if,
        add_call,  add_call, add_call, add_literal, add_global_value};
    while (s->steps-- > 0) {
        const uint32_t what = make_pick(k, 12);
        if (what < 4)
            flow[make_pick(k, BYI_COUNT(flow))](k, s);
        else if (what < 10)
            make_ops[make_pick(k, n_make_ops)](k, s);
        else
            make_nets[make_pick(k, n_make_nets)](k, s);
    }
    s->steps = 0;
}

/* --- @globals ---------------------------------------------------- */

static void add_global(struct maker *k)
{
    struct scope s;
    const struct byi_type *types[3];
    const uint32_t n = 1 + make_pick(k, 3);
    for (uint32_t i = 0; i < n; i++)
        types[i] = pick_type(k, 0);
    open_scope(k, &s, NULL, "f", make_pick(k, 2) ? VALUE_COST : 400.0);
    add_params(k, &s, n, types);
    s.steps = 1 + make_pick(k, 8);
    write_steps(k, &s);
    const struct bounded_value *result = make_find(k, &s, is_any, NULL);
    s.f->result = result->id;
    byi_func_type(k->m, s.func);
    BYI_PUSH(&k->globals, ((struct global){s.func, s.cost + 1}));
    free_scope(&s);
}

/* The result of a recursive step: the call, or an operator on it. */
static byi_id finish_step(struct maker *k, struct scope *s, byi_id call,
                          const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR || type->dtype == BYOC_BOOL || make_pick(k, 2))
        return call;
    const byi_id other = make_value(k, s, type);
    const byi_id sum = other == BYI_NO_ID ? other
                                          : make_call(k, s, BYI_OP_MAXIMUM,
                                                      (byi_id[]){call, other},
                                                      2, NULL, 0, 8.0);
    return sum != BYI_NO_ID && byi_type_equal(make_type_of(s, sum), type)
               ? sum
               : call;
}

/* Write the recursive branch: steps, then `next`(%n - 1, state). */
static byi_id make_next(struct maker *k, struct scope *outer, byi_id counter,
                        uint32_t next, const struct byi_type *type,
                        double *cost)
{
    struct scope s;
    byi_id call = BYI_NO_ID;
    open_scope(k, &s, outer, NULL, 40.0);
    s.steps = 1 + make_pick(k, 4);
    write_steps(k, &s);
    uint32_t at = 0;
    while (outer->values.at[at].id != counter)
        at++;
    const byi_id one = make_number(k, &s, BYOC_I64, 1.0);
    const byi_id n = import(k, &s, at)->id;
    byi_id args[2] = {BYI_NO_ID, make_value(k, &s, type)};
    if (byi_add_call(k->m, s.f, BYI_OP_SUBTRACT, (byi_id[]){n, one}, 2, NULL, 0,
                     NULL, &args[0], NULL) != BYOC_OK ||
        args[1] == BYI_NO_ID ||
        byi_add_apply(k->m, s.f, byi_add_global(k->m, s.f, next), args, 2, NULL,
                      &call, NULL) != BYOC_OK) {
        discard_scope(k, &s);
        return BYI_NO_ID;
    }
    const byi_id result = finish_step(k, &s, call, type);
    *cost = s.cost + 4;
    const byi_id id = close_scope(k, &s, result);
    free_scope(&s);
    return id;
}

/* @r(%n, %state): if (0 < min(%n, limit)) { ... next(...) } else { ... }, with
 * a limit from 1 to 3 */
static bool write_recursive(struct maker *k, struct scope *s, uint32_t next,
                            const struct byi_type *type)
{
    struct byi_module *m = k->m;
    double cost = 0, other = 0;
    byi_id n = s->f->params.at[0], condition, id;
    const byi_id limit = make_number(k, s, BYOC_I64, 1 + make_pick(k, 3));
    const byi_id zero = make_number(k, s, BYOC_I64, 0.0);
    n = make_call(k, s, BYI_OP_MINIMUM, (byi_id[]){n, limit}, 2, NULL, 0, 3.0);
    if (n == BYI_NO_ID ||
        byi_add_call(m, s->f, BYI_OP_LESS, (byi_id[]){zero, n}, 2, NULL, 0,
                     NULL, &condition, NULL) != BYOC_OK)
        return false;
    const byi_id then = make_next(k, s, n, next, type, &cost);
    const byi_id otherwise = make_branch(k, s, type, &other);
    if (then == BYI_NO_ID || otherwise == BYI_NO_ID ||
        byi_add_if(m, s->f, condition, then, otherwise, NULL, &id, NULL) !=
            BYOC_OK)
        return false;
    s->f->result = id;
    byi_func_type(m, s->func);
    s->cost += cost + other + 4;
    return true;
}

/* Add a function that calls itself, or two that call each other. */
static void add_recursive_global(struct maker *k)
{
    struct scope s[2];
    const uint32_t n = 1 + make_pick(k, 2);
    const int64_t *no_dims = NULL;
    const struct byi_type *types[2] = {
        byi_type_tensor(k->m->arena, BYOC_I64, 0, no_dims), pick_type(k, 1)};
    double cost = 0;
    bool complete = true;
    for (uint32_t i = 0; i < n; i++) {
        open_scope(k, &s[i], NULL, "r", 60.0);
        add_params(k, &s[i], 2, types);
        s[i].f->type = byi_type_func(k->m->arena, 2, types, types[1]);
    }
    for (uint32_t i = 0; i < n && complete; i++) {
        complete = write_recursive(k, &s[i], s[(i + 1) % n].func, types[1]);
        cost = s[i].cost > cost ? s[i].cost : cost;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!complete) {
            discard_scope(k, &s[i]);
            continue;
        }
        BYI_PUSH(&k->globals, ((struct global){s[i].func, 4.0 * cost}));
        free_scope(&s[i]);
    }
}

/* --- @main ------------------------------------------------------- */

/* Tensors, and tuples of them: the types of a model's results. */
static bool is_result_type(const struct byi_type *type, const void *unused)
{
    bool plain = type->kind != BYI_FUNC;
    for (uint32_t i = 0; plain && i < type->n_fields; i++)
        plain = is_result_type(type->fields[i], unused);
    return plain && (type->kind != BYI_TUPLE || type->n_fields > 0);
}

/* Values without readers, the last ones first: as results, they keep most of
 * the program alive. */
static uint32_t list_unread(struct maker *k, const struct scope *s,
                            byi_id *list, uint32_t max)
{
    const struct byi_func *f = s->f;
    bool *read = byi_arena_calloc(k->m->arena, f->nodes.n + 1, sizeof *read);
    uint32_t n = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            read[f->nodes.at[id].args[i]] = true;
    for (uint32_t i = s->values.n; i-- > 0 && n < max;) {
        const byi_id id = s->values.at[i].id;
        if (!read[id] && f->nodes.at[id].kind != BYI_CONST &&
            is_result_type(f->nodes.at[id].type, NULL))
            list[n++] = id;
        read[id] = true;
    }
    return n;
}

static void add_main(struct maker *k, uint32_t size)
{
    struct scope s;
    const struct byi_type *types[4];
    const uint32_t n = 1 + make_pick(k, 4);
    uint32_t n_results = 1 + make_pick(k, 3);
    byi_id results[MAX_RESULTS];
    const int64_t dims[] = {k->batch, 2, 4, 4};
    types[0] = byi_type_tensor(k->m->arena, BYOC_F32, 4, dims);
    for (uint32_t i = 1; i < n; i++)
        types[i] = pick_tensor_type(k);
    s = (struct scope){.budget = 3000.0};
    s.func = byi_func_new(k->m, "main");
    s.f = k->m->funcs.at[s.func];
    add_params(k, &s, n, types);
    s.steps = size;
    write_steps(k, &s);
    for (uint32_t i = 0; i < n_results; i++)
        results[i] = make_find(k, &s, is_result_type, NULL)->id;
    if (make_pick(k, 4))
        n_results +=
            list_unread(k, &s, results + n_results, MAX_RESULTS - n_results);
    s.f->result = n_results == 1
                      ? results[0]
                      : byi_add_tuple(k->m, s.f, results, n_results, NULL);
    byi_func_type(k->m, s.func);
    free_scope(&s);
}

struct byi_module *program_make(uint64_t seed, uint32_t size)
{
    struct maker k = {.m = byi_module_new(),
                      .state = (seed + 1) * 0x9e3779b97f4a7c15u,
                      .batch = 1};
    const uint32_t n = make_pick(&k, 4);
    if (make_pick(&k, 6) == 0)
        k.batch = byi_symbol(k.m, "N");
    k.lets = make_pick(&k, 4) == 0;
    for (uint32_t i = 0; i < n; i++)
        if (make_pick(&k, 3))
            add_global(&k);
        else
            add_recursive_global(&k);
    add_main(&k, size);
    byi_vec_free(k.globals.at);
    return k.m;
}
