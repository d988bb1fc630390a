/* SPDX-License-Identifier: Apache-2.0 */
/* rules_custom.c: calls of operators that plug-ins add: their operands, and
 * their type rule.
 */
#include "custom.h"
#include "rules.h"

#include <string.h>

static const struct byi_custom_calls *custom_calls;

void byi_custom_use(const struct byi_custom_calls *calls)
{
    custom_calls = calls;
}

/* --- one call ------------------------------------------------------------ */

/* The place of operand i: attribute `operands` lists the inputs that are given,
 * tensors as -1, -2, ...; [] stands for 0, 1, 2, ... Returns NULL if the
 * operator does not have that input or tensor. */
static struct byoc_view *place_of(struct byi_custom_call *c, uint32_t i,
                                  const int64_t *places, uint32_t n)
{
    const int64_t at = n ? places[i] : i;
    if (at >= 0 && at < (int64_t)c->call.n_inputs)
        return &c->inputs[at];
    if (at < 0 && -1 - at < (int64_t)c->call.n_tensors)
        return &c->tensors[-1 - at];
    return NULL;
}

/* More inputs or results than any operator may have; check_counts refuses them.
 */
enum { TOO_MANY = 1000 };

/* The number of inputs: 1 + the last one in attribute `operands`. */
static uint32_t count_inputs(uint32_t n, const int64_t *places,
                             uint32_t n_places)
{
    int64_t last_input = -1;
    for (uint32_t i = 0; i < n_places; i++)
        last_input = places[i] > last_input ? places[i] : last_input;
    return n_places
               ? (uint32_t)(last_input < TOO_MANY ? last_input + 1 : TOO_MANY)
               : n;
}

static enum byoc_status check_counts(const struct byoc_operator *op,
                                     const char *name,
                                     const struct byi_custom_call *c,
                                     struct byoc_error *err)
{
    if (c->call.n_inputs < op->min_inputs || c->call.n_inputs > op->max_inputs)
        return byi_fail(err, BYOC_ETYPE,
                        "%s: found %u inputs, expected %u to %u", name,
                        c->call.n_inputs, op->min_inputs, op->max_inputs);
    if (c->call.n_results < op->min_results ||
        c->call.n_results > op->max_results)
        return byi_fail(err, BYOC_ETYPE,
                        "%s: found %u results, expected %u to %u", name,
                        c->call.n_results, op->min_results, op->max_results);
    return BYOC_OK;
}

enum byoc_status byi_custom_begin(const struct byi_attrs *attrs, uint32_t n,
                                  const struct byoc_view *operands,
                                  struct byi_custom_call *c,
                                  struct byoc_error *err)
{
    const char *name = byi_attr_string(attrs, "op");
    uint32_t n_places;
    const int64_t *places = byi_attr_ints(attrs, "operands", &n_places);
    const int64_t results = byi_attr_int(attrs, "results");
    memset(c, 0, sizeof *c);
    if (!custom_calls)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found a custom operator, expected an operator of "
                        "byoc, since this library opens no plug-ins",
                        name);
    BYI_TRY(custom_calls->find(name, byi_attr_string(attrs, "attributes"),
                               &c->op, err));
    const struct byoc_operator *op = custom_calls->operator_of(c->op);
    c->call.struct_size = sizeof c->call;
    c->call.inputs = c->inputs;
    c->call.tensors = c->tensors;
    c->call.results = c->results;
    c->call.n_inputs = count_inputs(n, places, n_places);
    c->call.n_results =
        results < 1 || results > TOO_MANY ? 0 : (uint32_t)results;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        c->call.n_tensors += byi_custom_is_tensor(op, i);
    BYI_TRY(check_counts(op, name, c, err));
    if (n_places && n_places != n)
        return byi_fail(err, BYOC_ETYPE,
                        "%s: attribute operands has %u entries, expected %u, "
                        "one for each operand",
                        name, n_places, n);
    for (uint32_t i = 0; i < n; i++) {
        struct byoc_view *to = place_of(c, i, places, n_places);
        if (!to)
            return byi_fail(err, BYOC_ETYPE,
                            "%s: operand %u is input or tensor %lld, expected "
                            "an input from 0 on, or one of the operator's %u "
                            "tensors, counted -1, -2, ...",
                            name, i, (long long)(n_places ? places[i] : i),
                            c->call.n_tensors);
        if (to->dtype != BYOC_NONE)
            return byi_fail(err, BYOC_ETYPE,
                            "%s: operand %u is input or tensor %lld, as is an "
                            "earlier operand, expected each at most once",
                            name, i, (long long)(n_places ? places[i] : i));
        *to = operands[i];
    }
    return BYOC_OK;
}

enum byoc_status byi_custom_invoke(struct byi_custom_call *call, bool run,
                                   struct byoc_error *err)
{
    return custom_calls->call(call->op, run, &call->call, err);
}

/* --- types --------------------------------------------------------------- */

/* Result i as a type; a size that no operand has is a new symbol. */
static enum byoc_status result_type(struct byi_infer *t,
                                    const struct byoc_result *r, uint32_t i)
{
    int64_t dims[BYI_MAX_RANK];
    const char *name = byi_attr_string(t->attrs, "op");
    if (r->dtype == BYOC_NONE || r->dtype > BYI_LAST_DTYPE)
        return byi_rule_fail(t,
                             "%s: its shape() gave result %u element type %u, "
                             "expected one of enum byoc_dtype",
                             name, i, r->dtype);
    if (r->rank > BYI_MAX_RANK)
        return byi_rule_fail(
            t, "%s: its shape() gave result %u rank %u, expected at most %d",
            name, i, r->rank, BYI_MAX_RANK);
    for (uint32_t d = 0; d < r->rank; d++) {
        bool known = r->dims[d] >= 0;
        for (uint32_t k = 0; k < t->n_in; k++)
            for (uint32_t e = 0; e < t->in[k]->rank; e++)
                known = known || t->in[k]->dims[e] == r->dims[d];
        if (!known && r->dims[d] != BYOC_SIZE_UNKNOWN)
            return byi_rule_fail(t,
                                 "%s: its shape() gave axis %u of result %u "
                                 "the size %lld, which no input has, expected "
                                 "a size of an input or an unknown one",
                                 name, d, i, (long long)r->dims[d]);
        dims[d] = known ? r->dims[d] : byi_rule_new_symbol(t);
    }
    return byi_rule_tensor(t, (enum byoc_dtype)r->dtype, r->rank, dims);
}

enum byoc_status byi_rule_custom(struct byi_infer *t)
{
    struct byoc_view operands[BYI_CUSTOM_INPUTS];
    const struct byi_type *types[BYI_CUSTOM_RESULTS];
    struct byi_custom_call c;
    struct byoc_error err;
    for (uint32_t i = 0; i < t->n_in; i++) {
        const struct byi_tensor *known = byi_known_value(t, i);
        operands[i] = (struct byoc_view){.dtype = t->in[i]->dtype,
                                         .rank = t->in[i]->rank,
                                         .dims = t->in[i]->dims};
        if (known) {
            operands[i].data = known->data;
            operands[i].bytes = byi_tensor_bytes(known);
        }
    }
    enum byoc_status status =
        byi_custom_begin(t->attrs, t->n_in, operands, &c, &err);
    if (status == BYOC_OK)
        status = byi_custom_invoke(&c, false, &err);
    if (status != BYOC_OK)
        return status == BYOC_ENOMEM ? byi_fail(t->err, status, "%s", err.text)
                                     : byi_rule_fail(t, "%s", err.text);
    for (uint32_t i = 0; i < c.call.n_results; i++) {
        BYI_TRY(result_type(t, &c.results[i], i));
        types[i] = t->out;
    }
    return byi_rule_result(
        t, c.call.n_results == 1
               ? types[0]
               : byi_type_tuple(t->arena, c.call.n_results, types));
}
