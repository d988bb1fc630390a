/* SPDX-License-Identifier: Apache-2.0 */
/* template.h: graphs of operators as text. A template has the syntax of a
 * function literal of the text form (docs/text.md), without types:
 *
 *     fn (%x, %gamma) {
 *       %mean = mean(multiply(%x, %x), axis=axes, keepdims=true);
 *       multiply(multiply(%x, rsqrt(add(%mean, epsilon))), %gamma)
 *     }
 *
 * and these differences:
 *  - A number has the element type of the call's first operand that is neither
 *    a number nor of type bool; 2i64 is an int64.
 *  - A word (`axes`, `epsilon`) stands for the value of the attribute that is
 *    given under this name: as an attribute, an operand, or in a list.
 *  - dtype=%x is the element type of %x.
 *  - A list is a vector of int64, or the value of an attribute.
 *  - The last operands of a call may be omitted values (BYI_NO_ID), and are
 *    left out if the operator allows it.
 * The result is one value, or several in parentheses.
 *
 * A template is part of the program, so it is read each time that it is used:
 * this takes less time than creating its nodes.
 */
#ifndef BYI_TEMPLATE_H
#define BYI_TEMPLATE_H

#include "ir.h"

/* Adds the nodes of a template: byi_template adds constants and fields of
 * tuples to `f`, and calls `call` to add an operator. If `call` returns
 * BYI_NO_ID, the template ends; `call` records the reason in ctx. */
struct byi_emitter {
    void *ctx;
    struct byi_module *m;
    struct byi_func *f;
    const struct byi_sources *sources; /* of fields; NULL: none */
    byi_id (*call)(void *ctx, enum byi_op_id op, const byi_id *args, uint32_t n,
                   const struct byi_attr *attrs, uint32_t n_attrs);
};

/* The values and attributes that a template is instantiated with. */
struct byi_template_inputs {
    /* of the values, if the text is a body without signature and braces; NULL:
     * it is a function literal, whose parameters are the values in order */
    const char *const *names;
    uint32_t n_values, n_attrs;
    const byi_id *values;
    const struct byi_attr *attrs;
    /* again(...) is this call of an operator, with other operands; or NULL */
    const struct byi_node *again;
};

/* Emit the template, and set results[0..n-1], to BYI_NO_ID if `call` ended it.
 * Errors: BYOC_EPARSE, if the text is not a template; BYOC_EINVAL, if the text
 * has another number of values or results; BYOC_ETYPE, for a field of a value
 * that is not a tuple; BYOC_EUNSUPPORTED, for a number among operands of a type
 * without numbers. Threads: one call at a time on a module. */
enum byoc_status byi_template(const struct byi_emitter *to, const char *text,
                              const struct byi_template_inputs *inputs,
                              struct byi_arena *scratch, uint32_t n,
                              byi_id *results, struct byoc_error *err);

#endif
