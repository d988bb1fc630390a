/* SPDX-License-Identifier: Apache-2.0 */
/* plan_read.c: reads a plan from JSON. Every count is bounded, every index is
 * checked where it is read, and every error names its path. plan_check.c checks
 * the properties that involve types or several steps. */
#include "core/base/names.h"
#include "plan.h"
#include "core/base/row_codes.h"

#include <string.h>

/* The state of reading a plan. */
struct plan_reader {
    const struct byi_image *image;
    struct byi_plan_tables *plan;
    struct byi_plan_func *func; /* the function that is being read */
    struct byoc_error *err;
    struct byi_name_table symbols;
};

/* Fail because the number `found`, which is called `what` in the message, is
 * not below `limit`. */
static enum byoc_status fail_limit(struct plan_reader *r,
                                   const struct byi_json *at, const char *what,
                                   long long found, long long limit)
{
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s: found %s %lld, expected one below %lld", at->path,
                    what, found, limit);
}

/* --- types and lists ------------------------------------------------------ */

static enum byoc_status read_type(struct plan_reader *r,
                                  const struct byi_json *at,
                                  const struct byi_type **type)
{
    const char *name;
    BYI_TRY(byi_json_string(at, "dtype", &name, r->err));
    enum byoc_dtype dtype = byi_dtype_of_name(name, strlen(name));
    if (dtype == BYOC_NONE)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.dtype: found \"%.40s\", expected an element type",
                        at->path, name);
    struct byi_json shape, item = {0};
    uint32_t rank;
    BYI_TRY(byi_json_array(at, "shape", BYI_MAX_RANK, &shape, &rank, r->err));
    int64_t dims[BYI_MAX_RANK];
    bool fixed = true;
    for (uint32_t i = 0; byi_json_next(&shape, &item, i); i++) {
        if (byi_json_as_string(&item, &name, NULL) == BYOC_OK) {
            dims[i] = -1 - (int64_t)byi_name_intern(&r->symbols, r->plan->arena,
                                                    name);
            fixed = false;
            continue;
        }
        BYI_TRY(byi_json_as_int(&item, 0, INT64_C(1) << 40, &dims[i], r->err));
    }
    *type = byi_type_tensor(r->plan->arena, dtype, rank, dims);
    if (fixed && byi_type_bytes(*type) > (UINT64_C(1) << 44))
        return byi_fail(r->err, BYOC_ELIMIT,
                        "%s.shape: found a tensor of more than 16 TiB, "
                        "expected at most 16 TiB",
                        at->path);
    return BYOC_OK;
}

/* Read a list of numbers below `limit`. */
static enum byoc_status read_list(struct plan_reader *r,
                                  const struct byi_json *at, const char *key,
                                  uint32_t max, uint32_t limit,
                                  const uint32_t **list, uint32_t *n)
{
    struct byi_json array, item = {0};
    BYI_TRY(byi_json_array(at, key, max, &array, n, r->err));
    uint32_t *out = byi_arena_calloc(r->plan->arena, *n + 1u, sizeof *out);
    for (uint32_t i = 0; byi_json_next(&array, &item, i); i++) {
        int64_t v;
        BYI_TRY(byi_json_as_int(&item, 0, UINT32_MAX, &v, r->err));
        if (v >= limit)
            return fail_limit(r, &item, "index", v, limit);
        out[i] = (uint32_t)v;
    }
    *list = out;
    return BYOC_OK;
}

static enum byoc_status read_index(struct plan_reader *r,
                                   const struct byi_json *at, const char *key,
                                   uint32_t limit, uint32_t *out)
{
    int64_t v;
    BYI_TRY(byi_json_int(at, key, 0, UINT32_MAX, &v, r->err));
    if (v < limit) {
        *out = (uint32_t)v;
        return BYOC_OK;
    }
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.%s: found index %lld, expected one below %u", at->path,
                    key, (long long)v, limit);
}

/* --- values ------------------------------------------------------------- */

static const char *const kind_names[] = {
    [BYI_V_INPUT] = "input",   [BYI_V_CONST] = "const", [BYI_V_TEMP] = "temp",
    [BYI_V_OUTPUT] = "output", [BYI_V_ALIAS] = "alias",
};

static enum byoc_status read_kind(struct plan_reader *r,
                                  const struct byi_json *at,
                                  enum byi_value_kind *kind)
{
    const char *name;
    BYI_TRY(byi_json_string(at, "kind", &name, r->err));
    for (uint32_t k = 0; k < BYI_COUNT(kind_names); k++) {
        if (strcmp(name, kind_names[k]) != 0)
            continue;
        *kind = (enum byi_value_kind)k;
        return BYOC_OK;
    }
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.kind: found \"%.40s\", expected input, const, temp, "
                    "output or alias",
                    at->path, name);
}

static enum byoc_status read_alias(struct plan_reader *r,
                                   const struct byi_json *at,
                                   struct byi_plan_func *f, struct byi_value *v)
{
    uint32_t self = (uint32_t)(v - f->values);
    BYI_TRY(read_index(r, at, "of", self, &v->root));
    const struct byi_value *root = &f->values[v->root];
    if (root->kind == BYI_V_ALIAS)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.of: found value %u, which is an alias itself, "
                        "expected the value that it is an alias of",
                        at->path, v->root);
    if (byi_value_is_object(root) || root->type->dtype != v->type->dtype ||
        (v->fixed && root->fixed &&
         byi_type_bytes(root->type) != byi_type_bytes(v->type)))
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found an alias of value %u of another element "
                        "type or size, expected the same",
                        at->path, v->root);
    return BYOC_OK;
}

static enum byoc_status read_offset(struct plan_reader *r,
                                    const struct byi_json *at,
                                    const struct byi_plan_func *f,
                                    struct byi_value *v)
{
    int64_t offset;
    uint64_t bytes = byi_type_bytes(v->type);
    BYI_TRY(byi_json_int(at, "offset", 0, INT64_C(1) << 50, &offset, r->err));
    v->offset = (uint64_t)offset;
    if (v->offset % BYI_ALIGN != 0 || v->offset + bytes > f->arena)
        return byi_fail(
            r->err, BYOC_EPARSE,
            "%s.offset: found %llu bytes at offset %llu, expected an offset "
            "that is a multiple of %d and an end of at most %llu",
            at->path, (unsigned long long)bytes, (unsigned long long)v->offset,
            BYI_ALIGN, (unsigned long long)f->arena);
    return BYOC_OK;
}

/* Read a value that is a function, sequence or optional: it must be an input or
 * a result of a step. */
static enum byoc_status read_object(struct plan_reader *r,
                                    const struct byi_json *at,
                                    struct byi_plan_func *f,
                                    struct byi_value *v)
{
    static const char *const keys[] = {"dtype", "of", "kind", "input"};
    static const struct byi_type func = {.kind = BYI_FUNC};
    const char *dtype;
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(read_kind(r, at, &v->kind));
    BYI_TRY(byi_json_string(at, "dtype", &dtype, r->err));
    v->type = &func;
    if (strcmp(dtype, "function") != 0)
        BYI_TRY(byi_list_type_read(at, r->plan->arena, &v->type, r->err));
    v->root = (uint32_t)(v - f->values);
    if (v->kind == BYI_V_INPUT)
        return read_index(r, at, "input", f->n_inputs, &v->index);
    if (v->kind == BYI_V_TEMP)
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.kind: found %s, expected input or temp for a function, "
                    "sequence or optional",
                    at->path, kind_names[v->kind]);
}

static enum byoc_status read_value(void *ctx, uint32_t index,
                                   const struct byi_json *at,
                                   const struct byi_json_items inner[2])
{
    static const char *const keys[] = {"dtype", "shape",  "kind", "input",
                                       "const", "output", "of",   "offset"};
    struct plan_reader *r = ctx;
    struct byi_plan_func *f = r->func;
    struct byi_value *v = &f->values[index];
    const char *dtype;
    (void)inner;
    BYI_TRY(byi_json_string(at, "dtype", &dtype, r->err));
    if (strcmp(dtype, "function") == 0 || byi_list_kind(dtype) != BYI_TENSOR)
        return read_object(r, at, f, v);
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(read_type(r, at, &v->type));
    BYI_TRY(read_kind(r, at, &v->kind));
    v->fixed = byi_type_is_static(v->type);
    v->root = (uint32_t)(v - f->values);
    switch (v->kind) {
    case BYI_V_INPUT:
        return read_index(r, at, "input", f->n_inputs, &v->index);
    case BYI_V_OUTPUT:
        return read_index(r, at, "output", f->n_outputs, &v->index);
    case BYI_V_ALIAS:
        return read_alias(r, at, f, v);
    case BYI_V_TEMP:
        return v->fixed ? read_offset(r, at, f, v) : BYOC_OK;
    case BYI_V_CONST:
        BYI_TRY(read_index(r, at, "const", r->plan->n_consts, &v->index));
        break;
    }
    const struct byi_tensor *c = &r->plan->consts[v->index].view;
    if (!v->fixed || c->dtype != v->type->dtype ||
        !byi_dims_equal(c->rank, c->dims, v->type->rank, v->type->dims))
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found another type than that of constant %u, "
                        "expected the same",
                        at->path, v->index);
    return BYOC_OK;
}

/* --- steps -------------------------------------------------------------- */

static enum byoc_status read_sources(struct plan_reader *r,
                                     const struct byi_json *at,
                                     const char **sources)
{
    struct byi_json array, item = {0};
    uint32_t n;
    BYI_TRY(
        byi_json_array(at, "source", BYI_PLAN_MAX_ITEMS, &array, &n, r->err));
    struct byi_text text = {0};
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; status == BYOC_OK && byi_json_next(&array, &item, i);
         i++) {
        const char *name;
        status = byi_json_as_string(&item, &name, r->err);
        if (status == BYOC_OK)
            byi_text_addf(&text, "%s%s", i ? ", " : "", name);
    }
    *sources = byi_arena_strn(r->plan->arena, text.n ? text.at : "", text.n);
    byi_text_free(&text);
    return status;
}

/* Read an operator and its attributes: {"op": "clip", "attrs": {...}} */
static enum byoc_status read_operator(struct plan_reader *r,
                                      const struct byi_json *at,
                                      const struct byi_op **op,
                                      const struct byi_attrs **attrs)
{
    struct byi_arena *arena = r->plan->arena;
    struct byi_json attrs_json;
    const char *name;
    BYI_TRY(byi_json_string(at, "op", &name, r->err));
    *op = byi_op_of_name(name, strlen(name));
    if (!*op)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.op: found \"%.60s\", expected the name of an "
                        "operator",
                        at->path, name);
    BYI_TRY(byi_json_opt(at, "attrs", &attrs_json, r->err));
    return attrs_json.at
               ? byi_attrs_from_json(&attrs_json, arena, *op, attrs, r->err)
               : byi_attrs_make(arena, *op, NULL, 0, attrs, r->err);
}

static enum byoc_status read_op(struct plan_reader *r,
                                const struct byi_json *at,
                                struct byi_step *step)
{
    BYI_TRY(read_operator(r, at, &step->op, &step->attrs));
    step->name = step->op->name;
    step->kernel = byi_kernel_of(step->op->id);
    if (!byi_op_has(step->op->id, BYI_TRAIT_LIST) &&
        (!step->kernel || !step->kernel->run))
        return byi_fail(r->err, BYOC_EUNSUPPORTED,
                        "%s: found operator %s, which has no native kernel in "
                        "this build, expected one that has",
                        at->path, step->name);
    return BYOC_OK;
}

/* Read an epilogue such as [{"op": "add"}, {"op": "clip", "attrs": {...}}]. */
static enum byoc_status read_epilogue(struct plan_reader *r,
                                      const struct byi_json *at,
                                      struct byi_step *step)
{
    static const char *const keys[] = {"op", "attrs"};
    struct byi_arena *arena = r->plan->arena;
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_opt(at, "epilogue", &list, r->err));
    if (!list.at)
        return BYOC_OK;
    BYI_TRY(byi_json_array(at, "epilogue", BYI_EPILOGUE_OPS, &list,
                           &step->n_epilogue, r->err));
    struct byi_epilogue_op *ops =
        byi_arena_calloc(arena, step->n_epilogue + 1u, sizeof *ops);
    step->epilogue = ops;
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        BYI_TRY(byi_json_only(&item, keys, BYI_COUNT(keys), r->err));
        BYI_TRY(read_operator(r, &item, &ops[i].op, &ops[i].attrs));
        step->name =
            byi_arena_printf(arena, "%s+%s", step->name, ops[i].op->name);
    }
    return BYOC_OK;
}

/* Read the number that the step's key gives: the index of a region, kernel or
 * function; for apply and choose n_args. */
static enum byoc_status read_callee(struct plan_reader *r,
                                    const struct byi_json *at,
                                    struct byi_step *step)
{
    const struct byi_plan_tables *plan = r->plan;
    const uint32_t limits[] = {[BYI_STEP_REGION] = plan->n_regions,
                               [BYI_STEP_KERNEL] = plan->n_kernels,
                               [BYI_STEP_CALL] = plan->n_funcs,
                               [BYI_STEP_CLOSURE] = plan->n_funcs,
                               [BYI_STEP_APPLY] = BYI_PLAN_MAX_ITEMS,
                               [BYI_STEP_CHOOSE] = BYI_PLAN_MAX_ITEMS};
    const bool counts =
        step->kind == BYI_STEP_APPLY || step->kind == BYI_STEP_CHOOSE;
    BYI_TRY(read_index(r, at, step->name, limits[step->kind],
                       counts ? &step->n_args : &step->callee));
    if (step->kind == BYI_STEP_REGION)
        step->name = plan->regions[step->callee].symbol;
    else if (step->kind == BYI_STEP_KERNEL)
        step->name = plan->kernels[step->callee].symbol;
    return BYOC_OK;
}

static enum byoc_status read_if(struct plan_reader *r,
                                const struct byi_json *at,
                                struct byi_step *step)
{
    const uint32_t *branches;
    uint32_t n;
    BYI_TRY(read_list(r, at, "if", 2, r->plan->n_funcs, &branches, &n));
    if (n != 2)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.if: found %u functions, expected 2", at->path, n);
    step->callee = branches[0];
    step->else_func = branches[1];
    return BYOC_OK;
}

/* The members that decide the kind of a step. A step has exactly one. */
static const struct {
    const char *key;
    enum byi_step_kind kind;
    enum byoc_status (*read)(struct plan_reader *r, const struct byi_json *at,
                             struct byi_step *step);
} step_keys[] = {
    {"op", BYI_STEP_OP, read_op},
    {"region", BYI_STEP_REGION, read_callee},
    {"kernel", BYI_STEP_KERNEL, read_callee},
    {"call", BYI_STEP_CALL, read_callee},
    {"if", BYI_STEP_IF, read_if},
    {"closure", BYI_STEP_CLOSURE, read_callee},
    {"apply", BYI_STEP_APPLY, read_callee},
    {"choose", BYI_STEP_CHOOSE, read_callee},
};

/* Set *kind to the index in step_keys of the only one of these keys that the
 * step has. */
static enum byoc_status read_step_kind(struct plan_reader *r,
                                       const struct byi_json *at, size_t *kind)
{
    *kind = BYI_COUNT(step_keys);
    for (size_t k = 0; k < BYI_COUNT(step_keys); k++) {
        struct byi_json member;
        BYI_TRY(byi_json_opt(at, step_keys[k].key, &member, r->err));
        if (!member.at)
            continue;
        if (*kind < BYI_COUNT(step_keys))
            return byi_fail(r->err, BYOC_EPARSE,
                            "%s: found both %s and %s, expected one of them",
                            at->path, step_keys[*kind].key, step_keys[k].key);
        *kind = k;
    }
    if (*kind < BYI_COUNT(step_keys))
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s: found a step without a kind, expected one of op, "
                    "region, kernel, call, if, closure, apply, choose",
                    at->path);
}

static enum byoc_status read_step(void *ctx, uint32_t index,
                                  const struct byi_json *at,
                                  const struct byi_json_items inner[2])
{
    static const char *const keys[] = {
        "op",     "region", "kernel", "call",   "if",    "closure", "apply",
        "choose", "in",     "out",    "source", "attrs", "epilogue"};
    enum { N_OPERATOR_KEYS = 2 }; /* the last keys, which only operators have */
    struct plan_reader *r = ctx;
    struct byi_plan_func *f = r->func;
    struct byi_step *step = &f->steps[index];
    (void)inner;
    size_t k;
    BYI_TRY(read_step_kind(r, at, &k));
    step->kind = step_keys[k].kind;
    BYI_TRY(byi_json_only(at, keys,
                          BYI_COUNT(keys) -
                              (step->kind == BYI_STEP_OP ? 0 : N_OPERATOR_KEYS),
                          r->err));
    step->exact = r->plan->exact;
    step->name = step_keys[k].key;
    BYI_TRY(step_keys[k].read(r, at, step));
    BYI_TRY(read_list(r, at, "in", BYI_PLAN_MAX_ITEMS, f->n_values, &step->in,
                      &step->n_in));
    BYI_TRY(read_list(r, at, "out", BYI_PLAN_MAX_ITEMS, f->n_values, &step->out,
                      &step->n_out));
    BYI_TRY(read_epilogue(r, at, step));
    return read_sources(r, at, &step->sources);
}

/* --- functions, constants, regions -------------------------------------- */

static enum byoc_status read_func(void *ctx, uint32_t index,
                                  const struct byi_json *at,
                                  const struct byi_json_items inner[2])
{
    static const char *const keys[] = {"name",    "values", "inputs",
                                       "outputs", "steps",  "arena"};
    struct plan_reader *r = ctx;
    struct byi_plan_func *f = r->func = &r->plan->funcs[index];
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    struct byi_json inputs, outputs;
    int64_t arena;
    BYI_TRY(byi_json_string(at, "name", &f->name, r->err));
    f->name = byi_arena_str(r->plan->arena, f->name);
    BYI_TRY(byi_json_int(at, "arena", 0, INT64_C(1) << 46, &arena, r->err));
    f->arena = (uint64_t)arena;
    BYI_TRY(byi_json_array(at, "inputs", BYI_PLAN_MAX_ITEMS, &inputs,
                           &f->n_inputs, r->err));
    BYI_TRY(byi_json_array(at, "outputs", BYI_PLAN_MAX_ITEMS, &outputs,
                           &f->n_outputs, r->err));
    BYI_TRY(byi_json_count(at, &inner[0], "values", BYI_PLAN_MAX_ITEMS,
                           &f->n_values, r->err));
    f->values =
        byi_arena_calloc(r->plan->arena, f->n_values + 1u, sizeof *f->values);
    BYI_TRY(byi_json_each(at, &inner[0], NULL, read_value, r, r->err));
    BYI_TRY(read_list(r, at, "inputs", BYI_PLAN_MAX_ITEMS, f->n_values,
                      &f->inputs, &f->n_inputs));
    BYI_TRY(read_list(r, at, "outputs", BYI_PLAN_MAX_ITEMS, f->n_values,
                      &f->outputs, &f->n_outputs));
    BYI_TRY(byi_json_count(at, &inner[1], "steps", BYI_PLAN_MAX_ITEMS,
                           &f->n_steps, r->err));
    f->steps =
        byi_arena_calloc(r->plan->arena, f->n_steps + 1u, sizeof *f->steps);
    return byi_json_each(at, &inner[1], NULL, read_step, r, r->err);
}

/* The address of `bytes` bytes at `offset` of the weights; NULL if they are
 * outside of the weights or are not exactly one span. */
static const void *weights_at(const struct byi_image *image, uint64_t offset,
                              uint64_t bytes)
{
    if (image->weights) {
        if (offset > image->weights_bytes ||
            bytes > image->weights_bytes - offset)
            return NULL;
        return (const char *)image->weights + offset;
    }
    uint32_t lo = 0, hi = image->n_spans;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (image->spans[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* empty constants share the offset of the next one */
    while (lo < image->n_spans && image->spans[lo].offset == offset &&
           image->spans[lo].bytes != bytes)
        lo++;
    if (lo == image->n_spans || image->spans[lo].offset != offset)
        return NULL;
    return image->spans[lo].data;
}

/* Set pointers to the strings of a constant, which are stored one after the
 * other. Each string has at least one byte, so the file's size limits the
 * memory for the pointers. */
static enum byoc_status read_strings(struct plan_reader *r,
                                     const struct byi_json *at,
                                     const struct byi_type *type,
                                     const void **data, uint64_t bytes)
{
    const int64_t n = byi_elements(type->rank, type->dims);
    const char **strings = NULL;
    if ((uint64_t)n <= bytes)
        strings =
            byi_arena_calloc(r->plan->arena, (size_t)n + 1, sizeof *strings);
    if (!strings || !byi_strings_unpack(*data, bytes, n, strings))
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found %llu bytes, expected the %lld strings of "
                        "its shape",
                        at->path, (unsigned long long)bytes, (long long)n);
    *data = strings;
    return BYOC_OK;
}

/* Set c->stored to the type in which the constant is stored, and c->axis to the
 * axis of int8 codes. c->stored stays BYOC_NONE if it is stored unchanged. */
static enum byoc_status read_stored(struct plan_reader *r,
                                    const struct byi_json *at,
                                    const struct byi_type *type,
                                    struct byi_plan_const *c)
{
    struct byi_json item;
    const char *name;
    int64_t axis;
    BYI_TRY(byi_json_opt(at, "stored", &item, r->err));
    if (!item.at)
        return BYOC_OK;
    BYI_TRY(byi_json_string(at, "stored", &name, r->err));
    c->stored = byi_dtype_of_name(name, strlen(name));
    if ((c->stored != BYOC_F16 && c->stored != BYOC_BF16 &&
         c->stored != BYOC_I8) ||
        type->dtype != BYOC_F32)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.stored: found \"%.40s\" of %s, expected float16, "
                        "bfloat16 or int8 of float32",
                        at->path, name, byoc_dtype_name(type->dtype));
    if (c->stored != BYOC_I8)
        return BYOC_OK;
    BYI_TRY(byi_json_int(at, "axis", 0, 1, &axis, r->err));
    c->axis = (uint32_t)axis;
    if (type->rank >= 2 && (axis == 0 || type->rank == 2))
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.axis: found %lld of %u axes, expected 0, or the last "
                    "of 2",
                    at->path, (long long)axis, type->rank);
}

/* Bytes of a constant in the weights, unless its elements are strings. */
static uint64_t stored_bytes(const struct byi_plan_const *c,
                             const struct byi_type *type)
{
    const uint64_t bytes = byi_type_bytes(type);
    if (c->stored != BYOC_I8)
        return c->stored ? bytes / 2 : bytes;
    const int64_t rows = type->dims[c->axis];
    return bytes == 0 ? 0
                      : byi_row_codes_bytes(
                            rows, (int64_t)(bytes / sizeof(float)) / rows);
}

/* Check the type, offset and number of bytes of a constant. */
static enum byoc_status check_const(struct plan_reader *r,
                                    const struct byi_json *at,
                                    const struct byi_type *type,
                                    const struct byi_plan_const *c,
                                    int64_t offset, int64_t bytes)
{
    if (!byi_type_is_static(type))
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.shape: found a symbolic dim, expected numbers",
                        at->path);
    if (offset % BYI_ALIGN != 0)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.offset: found %lld, expected a multiple of %d",
                        at->path, (long long)offset, BYI_ALIGN);
    if (type->dtype == BYOC_STRING || stored_bytes(c, type) == (uint64_t)bytes)
        return BYOC_OK;
    return byi_fail(
        r->err, BYOC_EPARSE,
        "%s.bytes: found %lld, expected %llu, the bytes of its type", at->path,
        (long long)bytes, (unsigned long long)stored_bytes(c, type));
}

static enum byoc_status read_const(struct plan_reader *r,
                                   const struct byi_json *at,
                                   struct byi_plan_const *c)
{
    static const char *const keys[] = {"offset", "bytes",  "dtype",
                                       "shape",  "stored", "axis"};
    static const char empty[BYI_ALIGN] __attribute__((aligned(BYI_ALIGN)));
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    const struct byi_type *type;
    int64_t offset, bytes;
    BYI_TRY(read_type(r, at, &type));
    BYI_TRY(byi_json_int(at, "offset", 0, INT64_C(1) << 50, &offset, r->err));
    BYI_TRY(byi_json_int(at, "bytes", 0, INT64_C(1) << 50, &bytes, r->err));
    BYI_TRY(read_stored(r, at, type, c));
    BYI_TRY(check_const(r, at, type, c, offset, bytes));
    const void *data =
        bytes == 0 ? empty
                   : weights_at(r->image, (uint64_t)offset, (uint64_t)bytes);
    if (!data)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found %lld bytes at offset %lld, expected a range "
                        "inside the weights",
                        at->path, (long long)bytes, (long long)offset);
    if (type->dtype == BYOC_STRING)
        BYI_TRY(read_strings(r, at, type, &data, (uint64_t)bytes));
    c->offset = (uint64_t)offset;
    if (bytes == 0)
        c->stored = BYOC_NONE; /* the constant has no elements */
    c->narrow = c->stored ? data : NULL;
    c->narrow_bytes = (uint64_t)bytes;
    /* never written: consts are only operands */
    c->view.data = c->stored ? NULL : (void *)(uintptr_t)data;
    c->view.dtype = type->dtype;
    c->view.rank = type->rank;
    for (uint32_t i = 0; i < type->rank; i++)
        c->view.dims[i] = type->dims[i];
    return BYOC_OK;
}

static enum byoc_status read_region_entry(struct plan_reader *r,
                                          const struct byi_json *at,
                                          struct byi_region_row *entry)
{
    static const char *const keys[] = {"backend", "symbol", "code",
                                       "blob",    "twin",   "consts"};
    struct byi_json code;
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(byi_json_string(at, "backend", &entry->backend, r->err));
    BYI_TRY(byi_json_string(at, "symbol", &entry->symbol, r->err));
    entry->backend = byi_arena_str(r->plan->arena, entry->backend);
    entry->symbol = byi_arena_str(r->plan->arena, entry->symbol);
    BYI_TRY(byi_json_opt(at, "code", &code, r->err));
    if (code.at) {
        BYI_TRY(byi_json_as_string(&code, &entry->code, r->err));
        entry->code = byi_arena_str(r->plan->arena, entry->code);
    }
    BYI_TRY(read_index(r, at, "twin", r->plan->n_funcs, &entry->twin));
    BYI_TRY(read_list(r, at, "consts", BYI_PLAN_MAX_ITEMS, r->plan->n_consts,
                      &entry->consts, &entry->n_consts));
    struct byi_json blob, item = {0};
    uint32_t n;
    int64_t place[2] = {0, 0};
    BYI_TRY(byi_json_array(at, "blob", 2, &blob, &n, r->err));
    for (uint32_t i = 0; byi_json_next(&blob, &item, i); i++)
        BYI_TRY(byi_json_as_int(&item, 0, INT64_C(1) << 50, &place[i], r->err));
    entry->blob = (uint64_t)place[0];
    entry->blob_bytes = (uint64_t)place[1];
    uint64_t all_bytes = r->image->blobs_bytes;
    if (n == 2 && entry->blob <= all_bytes &&
        entry->blob_bytes <= all_bytes - entry->blob)
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.blob: found [%lld, %lld], expected [offset, bytes] "
                    "inside the blobs' %llu bytes",
                    at->path, (long long)place[0], (long long)place[1],
                    (unsigned long long)all_bytes);
}

static enum byoc_status read_kernel(struct plan_reader *r,
                                    const struct byi_json *at,
                                    struct byi_plan_kernel *kernel)
{
    static const char *const keys[] = {"symbol", "twin"};
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(byi_json_string(at, "symbol", &kernel->symbol, r->err));
    kernel->symbol = byi_arena_str(r->plan->arena, kernel->symbol);
    return read_index(r, at, "twin", r->plan->n_funcs, &kernel->twin);
}

/* Read the fused kernels. A plan without any has no "kernels". */
static enum byoc_status read_kernels(struct plan_reader *r,
                                     const struct byi_json *root)
{
    struct byi_plan_tables *plan = r->plan;
    struct byi_json kernels, item = {0};
    BYI_TRY(byi_json_opt(root, "kernels", &kernels, r->err));
    if (!kernels.at)
        return BYOC_OK;
    BYI_TRY(byi_json_array(root, "kernels", BYI_PLAN_MAX_FUNCS, &kernels,
                           &plan->n_kernels, r->err));
    plan->kernels = byi_arena_calloc(plan->arena, plan->n_kernels + 1u,
                                     sizeof *plan->kernels);
    for (uint32_t i = 0; byi_json_next(&kernels, &item, i); i++)
        BYI_TRY(read_kernel(r, &item, &plan->kernels[i]));
    return BYOC_OK;
}

static enum byoc_status read_root(struct plan_reader *r,
                                  const struct byi_json *root,
                                  const struct byi_json_items *funcs)
{
    static const char *const func_keys[2] = {"values", "steps"};
    static const char *const keys[] = {"format",  "version", "functions",
                                       "regions", "kernels", "consts",
                                       "exact"};
    BYI_TRY(byi_json_only(root, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(byi_json_version(root, "byoc-plan", BYI_PLAN_VERSION, r->err));
    struct byi_plan_tables *plan = r->plan;
    struct byi_json regions, consts, item = {0};
    BYI_TRY(byi_json_flag(root, "exact", &plan->exact, r->err));
    BYI_TRY(byi_json_count(root, funcs, "functions", BYI_PLAN_MAX_FUNCS,
                           &plan->n_funcs, r->err));
    BYI_TRY(byi_json_array(root, "regions", BYI_PLAN_MAX_FUNCS, &regions,
                           &plan->n_regions, r->err));
    BYI_TRY(byi_json_array(root, "consts", BYI_PLAN_MAX_ITEMS, &consts,
                           &plan->n_consts, r->err));
    if (plan->n_funcs == 0)
        return byi_fail(r->err, BYOC_EPARSE,
                        "functions: found an empty list, expected main");
    plan->funcs =
        byi_arena_calloc(plan->arena, plan->n_funcs, sizeof *plan->funcs);
    plan->regions = byi_arena_calloc(plan->arena, plan->n_regions + 1u,
                                     sizeof *plan->regions);
    plan->consts = byi_arena_calloc(plan->arena, plan->n_consts + 1u,
                                    sizeof *plan->consts);
    for (uint32_t i = 0; byi_json_next(&consts, &item, i); i++)
        BYI_TRY(read_const(r, &item, &plan->consts[i]));
    item = (struct byi_json){0};
    for (uint32_t i = 0; byi_json_next(&regions, &item, i); i++)
        BYI_TRY(read_region_entry(r, &item, &plan->regions[i]));
    BYI_TRY(read_kernels(r, root));
    return byi_json_each(root, funcs, func_keys, read_func, r, r->err);
}

enum byoc_status byi_plan_read(const struct byi_image *image,
                               struct byi_plan_tables **plan,
                               struct byoc_error *err)
{
    *plan = NULL;
    static const char *const keys[2] = {"functions"};
    struct cJSON *json = NULL;
    struct byi_json_items items[2];
    enum byoc_status status =
        byi_json_parse_around(image->plan, image->plan_bytes,
                              BYI_PLAN_MAX_BYTES, keys, items, &json, err);
    if (status != BYOC_OK)
        return byi_prefix(err, "plan");
    struct byi_arena *arena = byi_arena_new();
    struct byi_plan_tables *tables = byi_arena_alloc(arena, sizeof *tables);
    tables->arena = arena;
    struct plan_reader r = {.image = image, .plan = tables, .err = err};
    struct byi_json root = byi_json_root(json);
    status = read_root(&r, &root, &items[0]);
    byi_json_free(&json);
    tables->n_symbols = r.symbols.n;
    tables->symbols = r.symbols.at;
    if (status == BYOC_OK)
        status = byi_plan_check(tables, err);
    if (status != BYOC_OK) {
        byi_plan_tables_free(&tables);
        return byi_prefix(err, "plan");
    }
    *plan = tables;
    return BYOC_OK;
}

void byi_plan_tables_free(struct byi_plan_tables **plan)
{
    if (!*plan)
        return;
    struct byi_arena *arena = (*plan)->arena;
    *plan = NULL;
    byi_arena_free(&arena);
}
