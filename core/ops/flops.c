/* SPDX-License-Identifier: Apache-2.0 */
/* flops.c: counts the floating-point operations of calls, for reports and the
 * cost model. Numbers are doubles, since products of sizes can be large. */
#include "layout.h"

/* The number of elements of a tensor, or of a tuple's first field; 0 if it is
 * unknown. */
static double elements(const struct byi_type *type)
{
    int64_t n = 0;

    if (type->kind == BYI_TUPLE && type->n_fields > 0)
        type = type->fields[0];
    if (type->kind != BYI_TENSOR)
        return 0;
    n = byi_elements(type->rank, type->dims);
    return n < 0 ? 0 : (double)n;
}

/* Multiply-adds per element of the output (convolution) or of the input
 * (transposed convolution). This is the number of weights divided by the size
 * of their axis `letter`. */
static double multiply_adds_per_element(const struct byi_attrs *attrs,
                                        const struct byi_type *weights,
                                        char letter)
{
    struct byi_layout l;
    double n = elements(weights);

    byi_layout_parse(byi_attr_string(attrs, "kernel_layout"), &l);
    for (uint32_t i = 0; i < l.n && i < weights->rank; i++)
        if (l.at[i].letter == letter)
            n /= weights->dims[i] > 0 ? (double)weights->dims[i] : 1;
    return n;
}

/* The number of elements of a pooling window. */
static double window_elements(const struct byi_attrs *attrs)
{
    double n = 1;
    uint32_t rank = 0;
    const int64_t *size = byi_attr_ints(attrs, "pool_size", &rank);

    for (uint32_t i = 0; i < rank; i++)
        n *= (double)size[i];
    return n;
}

/* The dim K that a product sums over: operand 0 is (M, K) or, transposed,
 * (K, M). */
static double inner_dim(const struct byi_attrs *attrs, const struct byi_type *a)
{
    uint32_t axis = 0;

    if (a->kind != BYI_TENSOR || a->rank == 0)
        return 0;
    axis = a->rank - 1;
    if (a->rank > 1 && byi_attr_find(attrs, "transpose_a") &&
        byi_attr_int(attrs, "transpose_a"))
        axis--;
    return BYI_IS_SYMBOL(a->dims[axis]) ? 0 : (double)a->dims[axis];
}

/* Each row of x is multiplied by the input weights, and its hidden state by the
 * recurrent weights: one multiply-add per weight. */
static double recurrent_flops(const struct byi_type *const *in)
{
    const struct byi_type *x = in[0];

    if (x->rank != 3 || x->dims[2] <= 0)
        return 0;
    return 2 * elements(x) / (double)x->dims[2] *
           (elements(in[1]) + elements(in[2]));
}

/* Each score costs `depth` multiply-adds for q k, and `columns` for its row of
 * v. */
static double attention_flops(const struct byi_type *const *in,
                              const struct byi_type *out)
{
    const struct byi_type *q = in[0], *v = in[2];
    const double depth = (double)q->dims[q->rank - 1];
    const double columns = (double)v->dims[v->rank - 1];
    const double keys = (double)v->dims[v->rank - 2];
    if (depth < 0 || columns <= 0 || keys < 0)
        return 0;
    return 2 * elements(out) / columns * keys * (depth + columns);
}

double byi_op_flops(const struct byi_op *op, const struct byi_attrs *attrs,
                    const struct byi_type *const *in,
                    const struct byi_type *out)
{
    switch (op->cost) {
    case BYI_COST_NONE:
        return 0;
    case BYI_COST_ELEMENT:
        return elements(out);
    case BYI_COST_INPUT:
        return elements(in[0]);
    case BYI_COST_WINDOW:
        return elements(out) * window_elements(attrs);
    case BYI_COST_CONV:
        return 2 * elements(out) * multiply_adds_per_element(attrs, in[1], 'O');
    case BYI_COST_CONV_TRANSPOSE:
        return 2 * elements(in[0]) *
               multiply_adds_per_element(attrs, in[1], 'I');
    case BYI_COST_MATMUL:
        return 2 * elements(out) * inner_dim(attrs, in[0]);
    case BYI_COST_ATTENTION:
        return attention_flops(in, out);
    case BYI_COST_RECURRENT:
        return recurrent_flops(in);
    }
    return 0;
}
