/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: operators that plug-ins add (byoc/custom.h). In the IR they are
 * calls of the operator `custom`, whose attributes name the plug-in's operator
 * and hold its attributes as JSON. The type rule and the kernel call the
 * plug-in through the runtime, which has the list of open plug-ins. Each
 * library of byoc has a pointer to these calls.
 */
#ifndef BYI_CUSTOM_H
#define BYI_CUSTOM_H

#include <byoc/custom.h>

#include "ops.h"

/* The most operands and results of a call. */
enum { BYI_CUSTOM_INPUTS = 64, BYI_CUSTOM_RESULTS = 16 };

/* An operator with certain attributes. Lives until its plug-in is closed. */
struct byi_custom;

/* Implemented by runtime/custom.c. */
struct byi_custom_calls {
    /* Find an operator. name: "imaging.ImageDecoder@20": plug-in, operator and
     * version. attributes: a JSON object of all its attributes. Errors:
     * BYOC_EBACKEND if no open plug-in has it. */
    enum byoc_status (*find)(const char *name, const char *attributes,
                             const struct byi_custom **op,
                             struct byoc_error *err);
    /* The plug-in's definition of the operator, which lives as long as `op`. */
    const struct byoc_operator *(*operator_of)(const struct byi_custom *op);
    /* Call shape() or run(), with the attributes filled in; make() is called
     * before, once the values of all tensors are known. */
    enum byoc_status (*call)(const struct byi_custom *op, bool run,
                             struct byoc_operator_call *call,
                             struct byoc_error *err);
};

/* Set the calls of this library. Until then, byi_custom_begin fails with
 * BYOC_EBACKEND. */
void byi_custom_use(const struct byi_custom_calls *calls);

/* The inputs, tensors and results of one call, which points to them. */
struct byi_custom_call {
    struct byoc_operator_call call;
    struct byoc_view inputs[BYI_CUSTOM_INPUTS];
    struct byoc_view tensors[BYI_CUSTOM_INPUTS];
    struct byoc_result results[BYI_CUSTOM_RESULTS];
    const struct byi_custom *op;
};

/* Start a call of `custom` with these operands, whose data the call borrows.
 * Find the operator, and store each operand in the call's inputs or tensors.
 * Errors: BYOC_EBACKEND (no plug-in has the operator), BYOC_ETYPE (the operator
 * has another number of inputs, tensors or results). */
enum byoc_status byi_custom_begin(const struct byi_attrs *attrs, uint32_t n,
                                  const struct byoc_view *operands,
                                  struct byi_custom_call *call,
                                  struct byoc_error *err);
/* Call the operator's shape(), or run() if `run`. */
enum byoc_status byi_custom_invoke(struct byi_custom_call *call, bool run,
                                   struct byoc_error *err);

/* A row like those of the operator table, in the arena, with only the
 * operator's name and its attributes, all of them required. The names are
 * those of `op`, which must outlive the row. */
const struct byi_op *byi_custom_row(struct byi_arena *arena,
                                    const struct byoc_operator *op);
/* Set *text to the JSON of all attributes of a call that gives n of them; the
 * others have their defaults. The text is in the arena. Errors: BYOC_EPARSE (a
 * required attribute is missing), BYOC_EBACKEND (a default is not JSON of the
 * attribute's kind). */
enum byoc_status byi_custom_attributes(struct byi_arena *arena,
                                       const struct byoc_operator *op,
                                       const struct byi_attr *list, uint32_t n,
                                       const char **text,
                                       struct byoc_error *err);
/* Whether attribute i is a tensor of the call. */
static inline bool byi_custom_is_tensor(const struct byoc_operator *op,
                                        uint32_t i)
{
    return op->attrs[i].kind == BYOC_ATTR_BYTES ||
           op->attrs[i].kind == BYOC_ATTR_TENSOR;
}

#endif
