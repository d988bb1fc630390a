/* SPDX-License-Identifier: Apache-2.0 */
/* simplify_einsum.c: rules that bring einsum to products of two operands, which
 * the kernel runs as matrix products, or to sums, transposes and products of
 * elements. See simplify.h.
 */
#include "simplify.h"

enum {
    LETTERS = 128, /* size of a table by letter */
    MAX_TERMS = 8, /* operands                  */
    TEXT = 256     /* size of an equation       */
};

/* An equation of letters only: the labels of the n operands, then of the
 * result. */
struct einsum_terms {
    uint32_t n;
    const char *labels[MAX_TERMS + 1]; /* not terminated */
    uint32_t length[MAX_TERMS + 1];
};

static bool has_label(const struct einsum_terms *e, uint32_t term, char label)
{
    return memchr(e->labels[term], label, e->length[term]) != NULL;
}

/* Copy the letters of [from, to) to `text`, without blanks; false if there is
 * another character, or a letter twice. */
static bool read_labels(const char *from, const char *to, char *text,
                        uint32_t *n)
{
    *n = 0;
    for (; from < to; from++) {
        if (*from == ' ')
            continue;
        if (!byi_is_letter(*from) || memchr(text, *from, *n))
            return false;
        text[(*n)++] = *from;
    }
    return true;
}

/* Read the equation of node `at`. False if the rules of this file do not
 * support it. It must have "->", and neither "..." nor a label twice in a term.
 */
static bool read_equation(struct byi_rewrite *rw, byi_id at,
                          struct einsum_terms *e)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const char *text = byi_attr_string(node->attrs, "equation");
    const char *arrow = strstr(text, "->");
    char *copy = byi_arena_alloc(rw->scratch, strlen(text) + 1);

    if (!arrow || node->n_args > MAX_TERMS || !byi_rw_tensor(rw, at))
        return false;
    e->n = node->n_args;
    for (uint32_t i = 0; i <= e->n; i++) {
        const char *comma = strchr(text, ',');
        const char *end = i == e->n                ? text + strlen(text)
                          : comma && comma < arrow ? comma
                                                   : arrow;
        e->labels[i] = copy;
        if (!read_labels(text, end, copy, &e->length[i]))
            return false;
        copy += e->length[i];
        text = end == arrow ? arrow + 2 : end + 1;
    }
    return true;
}

/* Whether partial results would be rounded: 16-bit floats. */
static bool rounds(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_type *type = byi_rw_tensor(rw, at);
    return type && byi_dtype_is_half(type->dtype);
}

static byi_id emit_einsum(struct byi_rewrite *rw, const byi_id *args,
                          uint32_t n, const char *equation)
{
    const struct byi_attr attr = {.name = "equation",
                                  .kind = BYI_ATTR_STRING,
                                  .s = byi_arena_str(rw->scratch, equation),
                                  .n = (uint32_t)strlen(equation)};
    return byi_rw_call(rw, BYI_OP_EINSUM, args, n, &attr, 1);
}

/* --- three and more operands ---------------------------------------------- */

/* Returns the number of multiplications in the product of operands a and b; a
 * symbolic size counts as 64. */
static double work_of(const struct byi_rewrite *rw, byi_id at,
                      const struct einsum_terms *e, uint32_t a, uint32_t b)
{
    const double symbolic = 64;
    double size[LETTERS] = {0}, work = 1;
    const uint32_t terms[] = {a, b};
    for (uint32_t t = 0; t < 2; t++) {
        const struct byi_type *type =
            byi_rw_tensor(rw, byi_rw_arg(rw, at, terms[t]));
        for (uint32_t i = 0; type && i < e->length[terms[t]]; i++) {
            const double dim =
                BYI_IS_SYMBOL(type->dims[i]) ? symbolic : (double)type->dims[i];
            double *to = &size[e->labels[terms[t]][i] & 127];
            *to = dim > *to ? dim : *to;
        }
    }
    for (uint32_t i = 0; i < LETTERS; i++)
        work *= size[i] > 0 ? size[i] : 1;
    return work;
}

/* Whether another term than a and b, or the result, has the label. */
static bool is_needed(const struct einsum_terms *e, uint32_t a, uint32_t b,
                      char label)
{
    for (uint32_t i = 0; i <= e->n; i++)
        if (i != a && i != b && has_label(e, i, label))
            return true;
    return false;
}

/* Write the labels of the product of a and b to `to`, in the order of a batch
 * of matrix products. The labels that both have come first, then the other
 * labels of a, then the other labels of b. Returns their number. */
static uint32_t product_labels(const struct einsum_terms *e, uint32_t a,
                               uint32_t b, char *to)
{
    uint32_t n = 0;
    for (uint32_t part = 0; part < 3; part++) {
        const uint32_t from = part == 2 ? b : a, other = part == 2 ? a : b;
        for (uint32_t i = 0; i < e->length[from]; i++) {
            const char label = e->labels[from][i];
            if (has_label(e, other, label) == (part == 0) &&
                is_needed(e, a, b, label))
                to[n++] = label;
        }
    }
    return n;
}

/* Append `before`, then `count` labels. */
static void append_labels(char *text, uint32_t *n, const char *labels,
                          uint32_t count, const char *before)
{
    for (; *before; before++)
        text[(*n)++] = *before;
    memcpy(text + *n, labels, count);
    *n += count;
    text[*n] = 0;
}

/* Emit the product of operands a and b, then its product with the others. */
static byi_id split_pair(struct byi_rewrite *rw, byi_id at,
                         const struct einsum_terms *e, uint32_t a, uint32_t b)
{
    char pair[TEXT], rest[TEXT], product[TEXT];
    uint32_t n_pair = 0, n_rest = 0, n = 1;
    const uint32_t n_product = product_labels(e, a, b, product);
    append_labels(pair, &n_pair, e->labels[a], e->length[a], "");
    append_labels(pair, &n_pair, e->labels[b], e->length[b], ",");
    append_labels(pair, &n_pair, product, n_product, "->");
    append_labels(rest, &n_rest, product, n_product, "");
    byi_id args[MAX_TERMS];
    args[0] = emit_einsum(
        rw, (byi_id[]){byi_rw_arg(rw, at, a), byi_rw_arg(rw, at, b)}, 2, pair);
    for (uint32_t i = 0; i < e->n; i++)
        if (i != a && i != b) {
            append_labels(rest, &n_rest, e->labels[i], e->length[i], ",");
            args[n++] = byi_rw_arg(rw, at, i);
        }
    append_labels(rest, &n_rest, e->labels[e->n], e->length[e->n], "->");
    return emit_einsum(rw, args, n, rest);
}

/* einsum(a, b, c, equation="bik,kj,bj->bi")
 *    ==>
 * %0 = einsum(b, c, equation="kj,bj->kb");   the pair with the least work
 * einsum(%0, a, equation="kb,bik->bi")
 */
byi_id byi_split_einsum(struct byi_rewrite *rw, byi_id at)
{
    struct einsum_terms e;
    if (byi_rw_node(rw, at)->n_args < 3 || rounds(rw, at) ||
        !read_equation(rw, at, &e))
        return BYI_NO_ID;
    uint32_t a = 0, b = 1, length = 0;
    double least_work = work_of(rw, at, &e, 0, 1);
    for (uint32_t i = 0; i <= e.n; i++)
        length += e.length[i] + 2;
    if (2 * length > TEXT)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < e.n; i++)
        for (uint32_t j = i + 1; j < e.n; j++) {
            const double work = work_of(rw, at, &e, i, j);
            if (work < least_work) {
                least_work = work;
                a = i;
                b = j;
            }
        }
    return split_pair(rw, at, &e, a, b);
}

/* --- labels of one operand ------------------------------------------------ */

/* Sum x over n axes; x itself for n = 0. */
static byi_id emit_sum(struct byi_rewrite *rw, byi_id x, const int64_t *axes,
                       uint32_t n)
{
    const struct byi_attr attrs[] = {
        {.name = "axis", .kind = BYI_ATTR_INTS, .n = n, .ints = axes},
        {.name = "keepdims", .kind = BYI_ATTR_BOOL, .i = 0}};
    return n ? byi_rw_call(rw, BYI_OP_SUM, &x, 1, attrs, BYI_COUNT(attrs)) : x;
}

/* Sum an operand first over the labels that only this operand has and that the
 * result does not have.
 *
 * einsum(a, b, equation="ij,jk->k")
 *    ==>
 * einsum(sum(a, axis=[0]), b, equation="j,jk->k")
 */
byi_id byi_sum_in_einsum(struct byi_rewrite *rw, byi_id at)
{
    struct einsum_terms e;
    if (byi_rw_node(rw, at)->n_args != 2 || rounds(rw, at) ||
        !read_equation(rw, at, &e))
        return BYI_NO_ID;
    char text[TEXT];
    uint32_t n_text = 0, n_summed = 0;
    byi_id args[2];
    if (e.length[0] + e.length[1] + e.length[2] + 4 > TEXT)
        return BYI_NO_ID;
    for (uint32_t t = 0; t < 2; t++) {
        int64_t axes[BYI_MAX_RANK];
        char labels[BYI_MAX_RANK];
        uint32_t n = 0, n_labels = 0;
        for (uint32_t i = 0; i < e.length[t] && i < BYI_MAX_RANK; i++)
            if (has_label(&e, 1 - t, e.labels[t][i]) ||
                has_label(&e, 2, e.labels[t][i]))
                labels[n_labels++] = e.labels[t][i];
            else
                axes[n++] = i;
        args[t] = emit_sum(rw, byi_rw_arg(rw, at, t), axes, n);
        append_labels(text, &n_text, labels, n_labels, t ? "," : "");
        n_summed += n;
    }
    append_labels(text, &n_text, e.labels[2], e.length[2], "->");
    return n_summed ? emit_einsum(rw, args, 2, text) : BYI_NO_ID;
}

/* --- without matrix products ---------------------------------------------- */

/* The operand with its axes in the order of the result's labels; a label that
 * only the result has is an axis of size 1, one that only the operand has is
 * summed. */
static byi_id emit_arranged(struct byi_rewrite *rw, byi_id x,
                            const struct einsum_terms *e, uint32_t term)
{
    int64_t summed[BYI_MAX_RANK], order[BYI_MAX_RANK], missing[BYI_MAX_RANK];
    char labels[BYI_MAX_RANK];
    uint32_t n_summed = 0, n_labels = 0, n_order = 0, n_missing = 0;
    bool moves = false;
    for (uint32_t i = 0; i < e->length[term]; i++)
        if (has_label(e, e->n, e->labels[term][i]))
            labels[n_labels++] = e->labels[term][i];
        else
            summed[n_summed++] = i;
    for (uint32_t i = 0; i < e->length[e->n]; i++) {
        const char *at = memchr(labels, e->labels[e->n][i], n_labels);
        if (!at) {
            missing[n_missing++] = i;
            continue;
        }
        moves = moves || at - labels != n_order;
        order[n_order++] = at - labels;
    }
    x = emit_sum(rw, x, summed, n_summed);
    const struct byi_attr axes = {
        .name = "axes", .kind = BYI_ATTR_INTS, .n = n_order, .ints = order};
    if (moves)
        x = byi_rw_call(rw, BYI_OP_TRANSPOSE, &x, 1, &axes, 1);
    const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = n_missing, .ints = missing};
    return n_missing ? byi_rw_call(rw, BYI_OP_EXPAND_DIMS, &x, 1, &axis, 1) : x;
}

/* einsum(a, equation="ijk->ki")
 *    ==>
 * transpose(sum(a, axis=[1]), axes=[1, 0])
 */
byi_id byi_einsum_of_one(struct byi_rewrite *rw, byi_id at)
{
    struct einsum_terms e;
    if (byi_rw_node(rw, at)->n_args != 1 || !read_equation(rw, at, &e) ||
        e.length[0] > BYI_MAX_RANK || e.length[1] > BYI_MAX_RANK)
        return BYI_NO_ID;
    return emit_arranged(rw, byi_rw_arg(rw, at, 0), &e, 0);
}

/* Whether operand `of` and the result have each label of operand `term`, and no
 * label is summed. */
static bool broadcasts(const struct einsum_terms *e, uint32_t term, uint32_t of)
{
    bool has_all = e->length[e->n] == e->length[of];
    for (uint32_t i = 0; i < e->length[term]; i++)
        has_all = has_all && has_label(e, of, e->labels[term][i]);
    for (uint32_t i = 0; i < e->length[of]; i++)
        has_all = has_all && has_label(e, e->n, e->labels[of][i]);
    return has_all && e->length[of] <= BYI_MAX_RANK;
}

/* einsum(a, b, equation="ij,j->ij")
 *    ==>
 * multiply(a, expand_dims(b, axis=[0]))
 */
byi_id byi_einsum_of_elements(struct byi_rewrite *rw, byi_id at)
{
    struct einsum_terms e;
    if (byi_rw_node(rw, at)->n_args != 2 || !read_equation(rw, at, &e) ||
        (!broadcasts(&e, 0, 1) && !broadcasts(&e, 1, 0)))
        return BYI_NO_ID;
    byi_id args[2];
    for (uint32_t t = 0; t < 2; t++)
        args[t] = emit_arranged(rw, byi_rw_arg(rw, at, t), &e, t);
    return byi_rw_call(rw, BYI_OP_MULTIPLY, args, 2, NULL, 0);
}
