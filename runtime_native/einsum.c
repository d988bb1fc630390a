/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.c: Einstein summation. Every letter (and axis of "...") is a label
 * with a size, and a stride in each operand. Two operands run as matrix
 * products if both have every summed label. Copies of them are multiplied if no
 * single stride covers the summed labels, or if the result's rows have gaps.
 * All other calls loop over every combination of labels.
 */
#include "kernel.h"

#include "matmul.h"
#include "move.h"

enum { LETTERS = 52, LABELS = LETTERS + BYI_MAX_RANK };

/* The equation and its operands. Labels 0..51 are letters. Labels from 52 on
 * are the axes of "...", counted from its end, so that an operand with fewer of
 * them broadcasts. strides[operand][label]: the last operand is the result. */
struct einsum {
    const struct byi_call *call;
    int64_t size[LABELS];
    bool in_result[LABELS];
    int64_t (*strides)[LABELS];
    const void *data[2];    /* of the first operands, or of their copies */
    void *out;              /* the result, or a copy to be moved there */
    int64_t results, terms; /* iterations of the two loops */
    /* labels whose size is not 1: list[0] has the n[0] summed labels, list[1]
     * the n[1] labels of the result */
    int list[2][LABELS];
    uint32_t n[2];
};

static int label_of(char c)
{
    return c >= 'a' ? c - 'a' : c - 'A' + 26;
}

/* Set the strides of tensor `t` from the labels of its term [at, end). The
 * strides of a repeated label add up, so that its coordinates are on the
 * diagonal. */
static void read_term(struct einsum *s, const struct byi_tensor *t,
                      const char *at, const char *end, int64_t *strides)
{
    uint32_t letters = 0, axis = 0;
    memset(strides, 0, sizeof(int64_t[LABELS]));
    for (const char *c = at; c < end; c++)
        letters += byi_is_letter(*c);
    for (const char *c = at; c < end && axis < t->rank; c++) {
        uint32_t n = 1;
        int label = 0;
        if (byi_is_letter(*c)) {
            label = label_of(*c);
        } else if (*c == '.') {
            n = t->rank - letters;
            label = LETTERS + (int)n - 1;
            c += 2;
        } else {
            continue;
        }
        for (; n > 0; n--, label--, axis++) {
            if (t->dims[axis] == 1)
                continue;
            s->size[label] = t->dims[axis];
            strides[label] += byi_span(t, axis + 1, t->rank);
        }
    }
}

/* Write the result's term if the equation has no "->": "...", then the letters
 * that occur once, in alphabetical order (ASCII: upper case first). */
static void write_implicit_term(const char *equation, char *term)
{
    uint32_t seen[128] = {0}, n = 0;
    if (strchr(equation, '.')) {
        memcpy(term, "...", 3);
        n = 3;
    }
    for (const char *c = equation; *c; c++)
        seen[*c & 127]++;
    for (int c = 'A'; c <= 'z'; c++)
        if (byi_is_letter(c) && seen[c] == 1)
            term[n++] = (char)c;
    term[n] = 0;
}

/* Read the equation. `strides` has a row for each operand and the result. */
static void read_equation(const struct byi_call *call,
                          int64_t (*strides)[LABELS], struct einsum *s)
{
    const char *at = byi_attr_string(call->attrs, "equation");
    const char *arrow = strstr(at, "->");
    const char *end = arrow ? arrow : at + strlen(at);
    char implicit[LETTERS + 4];

    s->call = call;
    s->strides = strides;
    for (uint32_t i = 0; i < 2 && i < call->n_in; i++)
        s->data[i] = call->in[i].data;
    s->out = call->out->data;
    s->n[0] = s->n[1] = 0;
    for (int i = 0; i < LABELS; i++)
        s->size[i] = 1;
    if (!arrow)
        write_implicit_term(at, implicit);
    const char *result = arrow ? arrow + 2 : implicit;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        read_term(s, &call->in[i], at, stop, s->strides[i]);
        at = stop + 1;
    }
    read_term(s, call->out, result, result + strlen(result),
              s->strides[call->n_in]);
    s->results = s->terms = 1;
    for (int i = 0; i < LABELS; i++) {
        s->in_result[i] = s->strides[call->n_in][i] != 0;
        *(s->in_result[i] ? &s->results : &s->terms) *= s->size[i];
        if (s->size[i] != 1)
            s->list[s->in_result[i]][s->n[s->in_result[i]]++] = i;
    }
}

/* --- plain loops over all combinations of labels -------------------------- */

/* Set the coordinates of position `flat` over the result's labels, or over the
 * summed labels. */
static void set_coordinates(const struct einsum *s, bool result, int64_t flat,
                            int64_t *at)
{
    for (uint32_t k = s->n[result]; k-- > 0;) {
        const int i = s->list[result][k];
        at[i] = flat % s->size[i];
        flat /= s->size[i];
    }
}

static int64_t offset_of(const struct einsum *s, uint32_t operand,
                         const int64_t *at)
{
    const int64_t *strides = s->strides[operand];
    int64_t offset = 0;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < s->n[i]; k++)
            offset += strides[s->list[i][k]] * at[s->list[i][k]];
    return offset;
}

static void plain_float(const struct einsum *s, int64_t result)
{
    int64_t at[LABELS] = {0};
    double total = 0;
    set_coordinates(s, true, result, at);
    for (int64_t term = 0; term < s->terms; term++) {
        double product = 1;
        set_coordinates(s, false, term, at);
        for (uint32_t i = 0; i < s->call->n_in; i++)
            product *= byi_tensor_float(&s->call->in[i], offset_of(s, i, at));
        total += product;
    }
    byi_tensor_set(s->call->out, offset_of(s, s->call->n_in, at), total);
}

static uint64_t load_int(const struct byi_tensor *x, int64_t i)
{
    if (x->dtype == BYOC_U64)
        return ((const uint64_t *)x->data)[i];
    return (uint64_t)byi_tensor_int(x, i);
}

static void plain_int(const struct einsum *s, int64_t result)
{
    int64_t at[LABELS] = {0};
    uint64_t total = 0;
    set_coordinates(s, true, result, at);
    for (int64_t term = 0; term < s->terms; term++) {
        uint64_t product = 1;
        set_coordinates(s, false, term, at);
        for (uint32_t i = 0; i < s->call->n_in; i++)
            product *= load_int(&s->call->in[i], offset_of(s, i, at));
        total += product;
    }
    byi_put_int(s->call->out, offset_of(s, s->call->n_in, at), total);
}

static void run_plain(const struct einsum *s)
{
    const bool floats = byi_dtype_is_float(s->call->in->dtype);
    const int team = byi_team(s->call, s->results * s->terms * 16);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t result = 0; result < s->results; result++)
        (floats ? plain_float : plain_int)(s, result);
}

/* --- as matrix products --------------------------------------------------- */

/* An axis into which several labels are merged: its size, and its strides in a,
 * b and c. */
struct einsum_axis {
    int64_t size, a, b, c;
};

/* The sum as a batch of matrix products c = a b: the axes of rows, columns and
 * sums, and those of the batch, the innermost first. */
struct einsum_product {
    struct einsum_axis m, n, k;
    struct einsum_axis batch[BYI_MAX_RANK];
    uint32_t n_batch;
    const void *a, *b;
};

static bool is_contiguous(const struct einsum_axis *inner,
                          const struct einsum_axis *outer)
{
    return outer->a == inner->a * inner->size &&
           outer->b == inner->b * inner->size &&
           outer->c == inner->c * inner->size;
}

/* Merge `label` into `axis`, as its inner or outer part; false if no single
 * stride covers both. */
static bool merge(struct einsum_axis *axis, const struct einsum_axis *label)
{
    if (axis->size == 1) {
        *axis = *label;
        return true;
    }
    if (is_contiguous(axis, label)) {
        axis->size *= label->size;
        return true;
    }
    if (!is_contiguous(label, axis))
        return false;
    const int64_t size = axis->size * label->size;
    *axis = *label;
    axis->size = size;
    return true;
}

/* Add a label to the product's axes. A label of rows or columns that cannot be
 * merged becomes a batch axis, like a label that all three tensors have.
 * Returns false for a summed label that cannot be merged with the other summed
 * ones. */
static bool add_label(struct einsum_product *p, const struct einsum_axis *label)
{
    struct einsum_axis *axis = label->c == 0   ? &p->k
                               : label->b == 0 ? &p->m
                               : label->a == 0 ? &p->n
                                               : NULL;
    if (axis && (label->c || (label->a && label->b)) && merge(axis, label))
        return true;
    if (label->c)
        p->batch[p->n_batch++] = *label;
    return label->c != 0;
}

/* Write the labels whose size is not 1 to order[]: the summed ones, then those
 * of the result from the innermost. Returns their number. */
static uint32_t order_labels(const struct einsum *s, int *order)
{
    const int64_t *c = s->strides[s->call->n_in];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = s->n[i]; k-- > 0; n++) {
            const int label = s->list[i][k];
            uint32_t to = n;
            for (; to > 0 && c[order[to - 1]] > c[label]; to--)
                order[to] = order[to - 1];
            order[to] = label;
        }
    return n;
}

/* Whether the sum is a matrix product with operand `left` as the left matrix.
 * The labels that only this operand and the result have are the result's rows.
 * Sets *p if so. */
static bool is_product(const struct einsum *s, int left,
                       struct einsum_product *p)
{
    const struct byi_call *call = s->call;
    if (call->n_in != 2)
        return false;
    *p = (struct einsum_product){
        .m = {.size = 1},
        .n = {.size = 1},
        .k = {.size = 1},
        .a = s->data[left],
        .b = s->data[1 - left],
    };
    int order[LABELS];
    const uint32_t n = order_labels(s, order);
    for (uint32_t i = 0; i < n; i++) {
        const int l = order[i];
        const struct einsum_axis label = {s->size[l], s->strides[left][l],
                                          s->strides[1 - left][l],
                                          s->strides[2][l]};
        if (!add_label(p, &label))
            return false;
    }
    return p->n.size == 1 || p->n.c == 1;
}

static bool is_any_product(const struct einsum *s, struct einsum_product *p)
{
    return is_product(s, 0, p) || is_product(s, 1, p);
}

/* Whether copies of the operands can be multiplied: both have every summed
 * label. */
static bool suits_copies(const struct einsum *s)
{
    bool both = s->call->n_in == 2;
    for (uint32_t k = 0; both && k < s->n[0]; k++)
        both = s->strides[0][s->list[0][k]] && s->strides[1][s->list[0][k]];
    return both;
}

/* Whether the product of copies has another order than the result: if both
 * operands have the result's innermost label, and each also has labels of its
 * own, then no row of a product is contiguous in the result.
 *
 * bikc,bjkc->bijc: a product for each b and c, (b, c, i, j)
 */
static bool moves_result(const struct einsum *s)
{
    bool own[2] = {false, false}, shared = false;
    for (uint32_t k = 0; k < s->n[1]; k++) {
        const int l = s->list[1][k];
        const bool in_a = s->strides[0][l] != 0, in_b = s->strides[1][l] != 0;
        own[0] = own[0] || !in_b;
        own[1] = own[1] || !in_a;
        shared = shared || (s->strides[2][l] == 1 && in_a && in_b);
    }
    return own[0] && own[1] && shared;
}

/* The order of labels in copies: that of order_labels, or if the result moves,
 * the summed labels, those of columns, of rows, of the batch. */
static uint32_t order_copies(const struct einsum *s, int *order)
{
    int labels[LABELS];
    const uint32_t n_labels = order_labels(s, labels);
    const bool moves = moves_result(s);
    uint32_t n = 0;
    for (int part = 0; part < 4; part++)
        for (uint32_t i = 0; i < n_labels; i++) {
            const int l = labels[i];
            const int own = !s->in_result[l]        ? 0
                            : s->strides[0][l] == 0 ? 1
                            : s->strides[1][l] == 0 ? 2
                                                    : 3;
            if (part == (moves ? own : 0))
                order[n++] = l;
        }
    return n;
}

/* Make `to` the memory of the product, with its labels in the given order.
 * Returns the result as a view of it. */
static struct byi_view place_result(struct einsum *s, const int *order,
                                    uint32_t n, void *to)
{
    int64_t *strides = s->strides[2], dense = 1;
    int labels[LABELS];
    struct byi_view view = {0};
    const uint32_t n_labels = order_labels(s, labels);
    for (uint32_t i = 0; i < n; i++)
        if (s->in_result[order[i]]) {
            strides[order[i]] = dense;
            dense *= s->size[order[i]];
        }
    for (uint32_t i = n_labels; i-- > s->n[0];) {
        view.dims[view.rank] = s->size[labels[i]];
        view.strides[view.rank++] = strides[labels[i]];
    }
    s->out = to;
    return view;
}

/* Copy an operand to `to`, with its labels in the given order, which begins
 * with the innermost one. Sets its strides to those of the copy. */
static void copy_operand(struct einsum *s, uint32_t operand, const int *order,
                         uint32_t n, void *to)
{
    int64_t *strides = s->strides[operand], dense = 1;
    struct byi_view view = {0};
    for (uint32_t i = n; i-- > 0;)
        if (strides[order[i]]) {
            view.dims[view.rank] = s->size[order[i]];
            view.strides[view.rank++] = strides[order[i]];
        }
    byi_view_copy(s->call, &view, s->data[operand], to,
                  byoc_dtype_size(s->call->in->dtype));
    s->data[operand] = to;
    for (uint32_t i = 0; i < n; i++)
        if (strides[order[i]]) {
            strides[order[i]] = dense;
            dense *= s->size[order[i]];
        }
}

static uint64_t copy_bytes(const struct byi_tensor *t)
{
    return byi_align_bytes((uint64_t)byi_span(t, 0, t->rank) *
                           byoc_dtype_size(t->dtype));
}

static uint64_t stride_bytes(const struct byi_call *call)
{
    return byi_align_bytes((call->n_in + 1) * sizeof(int64_t[LABELS]));
}

static uint64_t product_bytes(const struct byi_call *call)
{
    return byi_align_bytes(byi_product_scratch(call));
}

static void run_product(const struct einsum *s, const struct einsum_product *p)
{
    struct byi_product product = {
        .m = p->m.size,
        .n = p->n.size,
        .k = p->k.size,
        .a_rs = p->m.a,
        .a_cs = p->k.a,
        .b_rs = p->k.b,
        .b_cs = p->n.b,
        .c_rs = p->m.size == 1 ? p->n.size : p->m.c,
        .rank = p->n_batch,
        .batches = 1,
        .a = p->a,
        .b = p->b,
        .c = s->out,
    };
    /* the innermost label is first, but the last axis of a product */
    for (uint32_t i = 0; i < p->n_batch; i++) {
        const struct einsum_axis *batch = &p->batch[p->n_batch - 1 - i];
        product.dims[i] = batch->size;
        product.a_batch[i] = batch->a;
        product.b_batch[i] = batch->b;
        product.c_batch[i] = batch->c;
        product.batches *= batch->size;
    }
    byi_product_run(&product, s->call,
                    (char *)s->call->scratch + stride_bytes(s->call));
}

/* Multiply copies of the operands, with their summed labels in one order. */
static void run_copies(struct einsum *s)
{
    const struct byi_call *call = s->call;
    char *to = (char *)call->scratch + stride_bytes(call) + product_bytes(call);
    int order[LABELS];
    struct einsum_product p;
    struct byi_view view = {0};
    const bool moves = moves_result(s);
    const uint32_t n = order_copies(s, order);
    for (uint32_t i = 0; i < 2; i++) {
        copy_operand(s, i, order, n, to);
        to += copy_bytes(&call->in[i]);
    }
    if (moves)
        view = place_result(s, order, n, to);
    const bool product = is_any_product(s, &p);
    assert(product);
    if (product)
        run_product(s, &p);
    if (moves)
        byi_view_copy(call, &view, to, call->out->data,
                      byoc_dtype_size(call->out->dtype));
}

/* --- the kernel --------------------------------------------------------- */

static enum byoc_status einsum_run_f32(const struct byi_call *call,
                                       struct byoc_error *err)
{
    struct einsum s = {0};
    struct einsum_product p;
    const enum byoc_dtype dtype = call->in->dtype;
    if (!byi_dtype_is_float(dtype) && !byi_dtype_is_int(dtype))
        return byi_bad_dtype(call, dtype, "a float or an integer type", err);
    read_equation(call, call->scratch, &s);
    if (s.results == 0)
        return BYOC_OK;
    if (is_any_product(&s, &p))
        run_product(&s, &p);
    else if (suits_copies(&s))
        run_copies(&s);
    else
        run_plain(&s);
    return BYOC_OK;
}

enum byoc_status byi_einsum_plain(const struct byi_call *call,
                                  struct byoc_error *err)
{
    struct einsum s = {0};
    (void)err;
    read_equation(call, call->scratch, &s);
    run_plain(&s);
    return BYOC_OK;
}

static uint64_t einsum_scratch_f32(const struct byi_call *call)
{
    int64_t strides[3][LABELS];
    struct einsum s = {0};
    struct einsum_product p;
    uint64_t bytes = stride_bytes(call) + product_bytes(call);
    if (call->n_in != 2)
        return bytes;
    read_equation(call, strides, &s);
    if (!is_any_product(&s, &p) && suits_copies(&s))
        bytes += copy_bytes(&call->in[0]) + copy_bytes(&call->in[1]) +
                 (moves_result(&s) ? copy_bytes(call->out) : 0);
    return bytes;
}

static const struct byi_kernel einsum_kernel = {einsum_run_f32,
                                                einsum_scratch_f32};

/* Whether float16 and bfloat16 operands are copied to float32, which
 * byi_run_float can do for at most 8 operands. With more than 4, elements are
 * converted one by one. */
static bool widens_operands(const struct byi_call *call)
{
    return call->n_in <= 4;
}

static enum byoc_status einsum_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    return widens_operands(call) ? byi_run_float(call, &einsum_kernel, err)
                                 : einsum_run_f32(call, err);
}

static uint64_t einsum_scratch(const struct byi_call *call)
{
    return widens_operands(call) ? byi_scratch_float(call, &einsum_kernel)
                                 : einsum_scratch_f32(call);
}

BYI_KERNEL_ROWS(einsum, {BYI_OP_EINSUM, {einsum_run, einsum_scratch}})
