/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: keeps and runs the operators of the open plug-ins (byoc/custom.h).
 * The attributes of an operator's call are read once, and make() is called
 * before the first run() with them; if two threads call it at the same time,
 * one result is dropped. Calls with equal attributes share one struct
 * byi_custom, which lives until the plug-in is closed. */
#include "internal.h"

#include "core/base/guard.h"
#include "core/ops/custom.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An operator with the attributes of a call. */
struct byi_custom {
    const struct byoc_operator *op;
    const struct byi_plugin *plugin;
    char *attributes; /* as text, to find calls with equal attributes */
    struct byoc_graph_attr *attrs;
    struct byi_arena *arena; /* contains attrs */
    void *made;              /* the result of make() */
    bool ready;              /* make() was called */
    struct byi_custom *next;
};

/* The operators of a plug-in. */
struct byi_customs {
    const struct byi_plugin *plugin;
    struct byoc_operator *ops; /* copies with all members of this version */
    uint32_t n;
    struct byi_custom *instances; /* operators with attributes of calls */
    struct byi_customs *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct byi_customs *open_customs; /* guarded by `lock`, with all objects
                                          * that it points to */

void byi_customs_lock(void)
{
    pthread_mutex_lock(&lock);
}

void byi_customs_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* --- checks of an operator -------------------------------------------- */

/* Set *err to a fault of operator `op` of the plug-in. Returns BYOC_EBACKEND.
 */
static enum byoc_status fail_operator(const struct byi_plugin *plugin,
                                      const struct byoc_operator *op,
                                      struct byoc_error *err, const char *fmt,
                                      ...) BYI_PRINTF(4, 5);

static enum byoc_status fail_operator(const struct byi_plugin *plugin,
                                      const struct byoc_operator *op,
                                      struct byoc_error *err, const char *fmt,
                                      ...)
{
    char text[256];
    BYI_FORMAT(text, fmt);
    return byi_fail(err, BYOC_EBACKEND, "%s: operator %.100s: %s", plugin->path,
                    op->name ? op->name : "", text);
}

static enum byoc_status check_attr(const struct byi_plugin *plugin,
                                   const struct byoc_operator *op, uint32_t i,
                                   struct byoc_error *err)
{
    const struct byoc_attr_row *row = &op->attrs[i];
    if (!row->name || !*row->name)
        return fail_operator(plugin, op, err,
                             "attribute %u has no name, expected one", i);
    if (row->kind < BYOC_ATTR_INT || row->kind > BYOC_ATTR_TENSOR)
        return fail_operator(plugin, op, err,
                             "attribute '%.60s' has kind %u, expected one of "
                             "enum byoc_attr_kind",
                             row->name, row->kind);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(row->name, op->attrs[k].name) == 0)
            return fail_operator(plugin, op, err,
                                 "attributes %u and %u are both called "
                                 "'%.60s', expected distinct names",
                                 k, i, row->name);
    return BYOC_OK;
}

/* Check the domain or the name of an operator; `what` is the member. */
static enum byoc_status check_text(const struct byi_plugin *plugin,
                                   const struct byoc_operator *op,
                                   const char *what, const char *text,
                                   struct byoc_error *err)
{
    enum { MAX_BYTES = 100 };
    if (!text || !*text)
        return fail_operator(plugin, op, err, "found no %s, expected one",
                             what);
    if (strlen(text) > MAX_BYTES)
        return fail_operator(plugin, op, err,
                             "found a %s of %zu bytes, expected at most %d",
                             what, strlen(text), MAX_BYTES);
    return BYOC_OK;
}

static enum byoc_status check_counts(const struct byi_plugin *plugin,
                                     const struct byoc_operator *op,
                                     struct byoc_error *err)
{
    if (op->min_inputs > op->max_inputs || op->max_inputs > BYI_CUSTOM_INPUTS)
        return fail_operator(plugin, op, err,
                             "found %u to %u inputs, expected a range within "
                             "0 to %d",
                             op->min_inputs, op->max_inputs, BYI_CUSTOM_INPUTS);
    if (op->min_results < 1 || op->min_results > op->max_results ||
        op->max_results > BYI_CUSTOM_RESULTS)
        return fail_operator(
            plugin, op, err,
            "found %u to %u results, expected a range within 1 to %d",
            op->min_results, op->max_results, BYI_CUSTOM_RESULTS);
    if (op->n_attrs > BYI_CUSTOM_INPUTS)
        return fail_operator(plugin, op, err,
                             "found %u attributes, expected at most %d",
                             op->n_attrs, BYI_CUSTOM_INPUTS);
    if (op->n_attrs && !op->attrs)
        return fail_operator(plugin, op, err,
                             "found NULL as the table of %u attributes, "
                             "expected its address",
                             op->n_attrs);
    return BYOC_OK;
}

/* Check the members of an operator. */
static enum byoc_status check_operator(const struct byi_plugin *plugin,
                                       const struct byoc_operator *op,
                                       struct byoc_error *err)
{
    BYI_TRY(check_text(plugin, op, "domain", op->domain, err));
    BYI_TRY(check_text(plugin, op, "name", op->name, err));
    if (!op->shape || !op->run)
        return fail_operator(plugin, op, err, "found no %s, expected one",
                             op->shape ? "run()" : "shape()");
    if (!op->make != !op->drop)
        return fail_operator(plugin, op, err,
                             "found only %s, expected make() and drop(), or "
                             "neither",
                             op->make ? "make()" : "drop()");
    BYI_TRY(check_counts(plugin, op, err));
    for (uint32_t i = 0; i < op->n_attrs; i++)
        BYI_TRY(check_attr(plugin, op, i, err));
    return BYOC_OK;
}

/* Read the attributes' default values, so that a malformed one is reported when
 * the plug-in is opened. */
static enum byoc_status check_defaults(const struct byoc_operator *op,
                                       struct byoc_error *err)
{
    BYI_BORDER(err);
    struct byi_arena *arena = byi_arena_new();
    struct byi_attr *values =
        byi_arena_calloc(arena, op->n_attrs + 1u, sizeof *values);
    const struct byi_op *row = byi_custom_row(arena, op);
    const char *text;
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!op->attrs[i].default_value) { /* no default value */
            values[n] = (struct byi_attr){.name = row->attrs[i].name,
                                          .kind = row->attrs[i].kind};
            if (values[n].kind == BYI_ATTR_STRING)
                values[n].s = "";
            n++;
        }
    const enum byoc_status status =
        byi_custom_attributes(arena, op, values, n, &text, err);
    byi_arena_free(&arena);
    return status;
}

/* Copy the plug-in's operator `theirs` to *op, and check it. */
static enum byoc_status take_operator(const struct byi_plugin *plugin,
                                      const struct byoc_operator *theirs,
                                      struct byoc_operator *op,
                                      struct byoc_error *err)
{
    enum { MIN_SIZE = (int)BYI_UP_TO(struct byoc_operator, run) };
    if (!theirs)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found NULL among its operators, expected an "
                        "operator",
                        plugin->path);
    if (theirs->struct_size < MIN_SIZE)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: struct_size of an operator is %u, expected at "
                        "least %d",
                        plugin->path, theirs->struct_size, MIN_SIZE);
    memcpy(op, theirs,
           theirs->struct_size < sizeof *op ? theirs->struct_size : sizeof *op);
    BYI_TRY(check_operator(plugin, op, err));
    if (check_defaults(op, err) != BYOC_OK)
        return byi_prefix(err, "%s", plugin->path);
    return BYOC_OK;
}

/* --- plug-ins ------------------------------------------------------------ */

static void free_custom(struct byi_custom *c)
{
    if (c->ready && c->op->drop)
        c->op->drop(&c->plugin->host, c->made);
    byi_arena_free(&c->arena);
    free(c->attributes);
    free(c);
}

enum byoc_status byi_customs_open(const struct byi_plugin *plugin,
                                  struct byi_customs **customs,
                                  struct byoc_error *err)
{
    enum { MAX_OPERATORS = 4096 };
    const struct byoc_ext *ext =
        byoc_ext_find(plugin->backend->ext, BYOC_EXT_OPERATORS,
                      sizeof(struct byoc_operators));
    const struct byoc_operators *theirs = (const void *)ext;
    *customs = NULL;
    if (!theirs || !theirs->n)
        return BYOC_OK;
    if (theirs->n > MAX_OPERATORS)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found %u operators, expected at most %d",
                        plugin->path, theirs->n, MAX_OPERATORS);
    if (!theirs->at)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found NULL as the table of %u operators, expected "
                        "its address",
                        plugin->path, theirs->n);
    struct byi_customs *c = byi_alloc(1, sizeof *c);
    if (c)
        c->ops = byi_alloc(theirs->n, sizeof *c->ops);
    enum byoc_status status = BYOC_OK;
    if (!c || !c->ops)
        status =
            byi_fail(err, BYOC_ENOMEM, "out of memory for %u operators of %s",
                     theirs->n, plugin->path);
    for (uint32_t i = 0; i < theirs->n && status == BYOC_OK; i++)
        status = take_operator(plugin, theirs->at[i], &c->ops[i], err);
    if (status != BYOC_OK) {
        if (c)
            free(c->ops);
        free(c);
        return status;
    }
    c->plugin = plugin;
    c->n = theirs->n;
    byi_customs_lock();
    c->next = open_customs;
    open_customs = c;
    byi_customs_unlock();
    *customs = c;
    return BYOC_OK;
}

void byi_customs_close(struct byi_customs *customs)
{
    if (!customs)
        return;
    byi_customs_lock();
    struct byi_customs **at = &open_customs;
    while (*at != customs)
        at = &(*at)->next;
    *at = customs->next;
    byi_customs_unlock();
    while (customs->instances) {
        struct byi_custom *c = customs->instances;
        customs->instances = c->next;
        free_custom(c);
    }
    free(customs->ops);
    free(customs);
}

const struct byoc_operator *byoc_internal_custom_row(
    const struct byi_plugin *plugin, const char *domain, const char *name,
    int64_t version)
{
    const struct byoc_operator *best = NULL;
    byi_customs_lock();
    for (const struct byi_customs *c = open_customs; c; c = c->next)
        for (uint32_t i = 0;
             i < c->n && strcmp(c->plugin->path, plugin->path) == 0; i++) {
            const struct byoc_operator *op = &c->ops[i];
            if (strcmp(op->domain, domain) == 0 &&
                strcmp(op->name, name) == 0 && (int64_t)op->since <= version &&
                (!best || op->since > best->since))
                best = op;
        }
    byi_customs_unlock();
    return best;
}

/* --- operators with attributes ------------------------------------------- */

/* Find the plug-in and operator of a name like "imaging.ImageDecoder@20", where
 * the number is the operator's `since`. Called with the lock. */
static struct byi_customs *find_operator(const char *name,
                                         const struct byoc_operator **op)
{
    const size_t prefix = strcspn(name, ".");
    const char *version = strrchr(name, '@');
    for (struct byi_customs *c = open_customs; c && version && name[prefix];
         c = c->next)
        for (uint32_t i = 0; i < c->n; i++) {
            const char *backend = c->plugin->backend->name;
            const char *operator_name = c->ops[i].name;
            const size_t n = strlen(operator_name);
            if (strlen(backend) != prefix ||
                strncmp(backend, name, prefix) != 0 ||
                strncmp(name + prefix + 1, operator_name, n) != 0 ||
                name + prefix + 1 + n != version ||
                (uint32_t)strtoul(version + 1, NULL, 10) != c->ops[i].since)
                continue;
            *op = &c->ops[i];
            return c;
        }
    return NULL;
}

static struct byi_custom *find_instance(const struct byi_customs *c,
                                        const struct byoc_operator *op,
                                        const char *attributes)
{
    struct byi_custom *instance = c->instances;
    while (instance &&
           (instance->op != op || strcmp(instance->attributes, attributes)))
        instance = instance->next;
    return instance;
}

/* Convert attributes to the structs that the plug-in reads. */
static struct byoc_graph_attr *convert_attrs(struct byi_arena *arena,
                                             const struct byi_attrs *attrs)
{
    struct byoc_graph_attr *list =
        byi_arena_calloc(arena, attrs->n + 1u, sizeof *list);
    for (uint32_t i = 0; i < attrs->n; i++) {
        const struct byi_attr *a = &attrs->at[i];
        struct byoc_graph_attr *to = &list[i];
        to->name = byi_arena_str(arena, a->name);
        to->n = a->n;
        if (a->kind == BYI_ATTR_INTS)
            to->ints = a->ints;
        else if (a->kind == BYI_ATTR_FLOATS)
            to->floats = a->floats;
        else if (a->kind == BYI_ATTR_STRINGS)
            to->strings = a->strings;
        else
            to->n = 1;
        if (a->kind == BYI_ATTR_INT)
            to->ints = byi_arena_copy(arena, &a->i, sizeof a->i);
        else if (a->kind == BYI_ATTR_FLOAT)
            to->floats = byi_arena_copy(arena, &a->f, sizeof a->f);
        else if (a->kind == BYI_ATTR_STRING)
            to->strings = byi_arena_copy(arena, &a->s, sizeof a->s);
    }
    return list;
}

static enum byoc_status read_attributes(struct byi_custom *c,
                                        const char *attributes,
                                        struct byoc_error *err)
{
    enum { MAX_TEXT = 64 << 20 };
    const struct byi_attrs *attrs;
    struct cJSON *json = NULL;
    BYI_BORDER(err);
    struct byi_arena *arena = byi_arena_new();
    enum byoc_status status =
        byi_json_parse(attributes, strlen(attributes), MAX_TEXT, &json, err);
    if (status == BYOC_OK) {
        const struct byi_json root = byi_json_root(json);
        status = byi_attrs_from_json(&root, arena, byi_custom_row(arena, c->op),
                                     &attrs, err);
    }
    byi_json_free(&json);
    if (status != BYOC_OK) {
        byi_arena_free(&arena);
        return byi_prefix(err, "%s", c->op->name);
    }
    c->attrs = convert_attrs(arena, attrs);
    byi_keep(arena);
    c->arena = arena;
    return BYOC_OK;
}

static enum byoc_status new_custom(const struct byi_plugin *plugin,
                                   const struct byoc_operator *op,
                                   const char *attributes,
                                   struct byi_custom **out,
                                   struct byoc_error *err)
{
    struct byi_custom *c = byi_alloc(1, sizeof *c);
    if (c)
        c->attributes = strdup(attributes);
    if (!c || !c->attributes) {
        free(c);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for attributes of %s",
                        op->name);
    }
    c->op = op;
    c->plugin = plugin;
    const enum byoc_status status = read_attributes(c, attributes, err);
    if (status != BYOC_OK) {
        free(c->attributes);
        free(c);
        return status;
    }
    *out = c;
    return BYOC_OK;
}

/* Find the operator `name` with these attributes, which are JSON; create it if
 * it is new. */
static enum byoc_status find_custom(const char *name, const char *attributes,
                                    const struct byi_custom **out,
                                    struct byoc_error *err)
{
    const struct byoc_operator *op = NULL;
    byi_customs_lock();
    struct byi_customs *customs = find_operator(name, &op);
    struct byi_custom *c =
        customs ? find_instance(customs, op, attributes) : NULL;
    byi_customs_unlock();
    if (!customs)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: no open plug-in has this operator; give the "
                        "library of '%.*s' with --plugin, or in the "
                        "parameters' plugins",
                        name, (int)strcspn(name, "."), name);
    if (!c) {
        struct byi_custom *candidate = NULL;
        BYI_TRY(new_custom(customs->plugin, op, attributes, &candidate, err));
        byi_customs_lock();
        c = find_instance(customs, op, attributes);
        if (!c) {
            candidate->next = customs->instances;
            customs->instances = c = candidate;
            candidate = NULL;
        }
        byi_customs_unlock();
        if (candidate)
            free_custom(candidate);
    }
    *out = c;
    return BYOC_OK;
}

static const struct byoc_operator *operator_of(const struct byi_custom *c)
{
    return c->op;
}

/* --- calls --------------------------------------------------------------- */

/* Whether all tensors among the attributes have data, as make() needs. */
static bool are_tensors_known(const struct byoc_operator_call *call)
{
    for (uint32_t i = 0; i < call->n_tensors; i++)
        if (call->tensors[i].dtype != BYOC_NONE && !call->tensors[i].data &&
            call->tensors[i].bytes)
            return false;
    return true;
}

/* Call make() if the operator has one, unless it was called before. If two
 * threads call it at the same time, the first result is kept. */
static enum byoc_status make(struct byi_custom *c,
                             const struct byoc_operator_call *call,
                             struct byoc_error *err)
{
    struct byoc_operator_call make_call = *call;
    void *made = NULL;
    byi_customs_lock();
    const bool ready = c->ready;
    byi_customs_unlock();
    if (ready || !c->op->make)
        return BYOC_OK;
    make_call.n_inputs = make_call.n_results = 0;
    BYI_TRY(byi_plugin_status(c->op->make(&c->plugin->host, &make_call, &made),
                              c->plugin, c->op->name, err));
    byi_customs_lock();
    const bool first = !c->ready;
    if (first) {
        c->made = made;
        c->ready = true;
    }
    byi_customs_unlock();
    if (!first)
        c->op->drop(&c->plugin->host, made);
    return BYOC_OK;
}

static enum byoc_status call_operator(const struct byi_custom *op, bool run,
                                      struct byoc_operator_call *call,
                                      struct byoc_error *err)
{
    struct byi_custom *c = (struct byi_custom *)(uintptr_t)op;
    const struct byoc_host *host = &c->plugin->host;
    call->n_attrs = c->op->n_attrs;
    call->attrs = c->attrs;
    if (are_tensors_known(call)) {
        BYI_TRY(make(c, call, err));
        call->made = c->made;
    }
    const struct byi_plugin *before =
        byi_plugin_set_running(run ? c->plugin : NULL);
    struct byoc_fail *fail =
        run ? c->op->run(host, call) : c->op->shape(host, call);
    byi_plugin_set_running(before);
    return byi_plugin_status(fail, c->plugin, c->op->name, err);
}

static const struct byi_custom_calls calls = {
    .find = find_custom,
    .operator_of = operator_of,
    .call = call_operator,
};

const struct byi_custom_calls *byoc_internal_custom_calls(void)
{
    return &calls;
}

static __attribute__((constructor)) void use_calls(void)
{
    byi_custom_use(&calls);
}
