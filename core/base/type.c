/* SPDX-License-Identifier: Apache-2.0 */
/* type.c: creates, compares and joins types, which are immutable trees in an
 * arena, compared by structure. */
#include "base.h"

const struct byi_type *byi_type_tensor(struct byi_arena *arena,
                                       enum byoc_dtype dtype, uint32_t rank,
                                       const int64_t *dims)
{
    struct byi_type *type = byi_arena_alloc(arena, sizeof *type);

    *type = (struct byi_type){
        .kind = BYI_TENSOR,
        .dtype = dtype,
        .rank = rank,
        .dims = byi_arena_copy(arena, dims, rank * sizeof *dims),
    };
    return type;
}

const struct byi_type *byi_type_tuple(struct byi_arena *arena, uint32_t n,
                                      const struct byi_type *const *fields)
{
    struct byi_type *type = byi_arena_alloc(arena, sizeof *type);

    *type = (struct byi_type){
        .kind = BYI_TUPLE,
        .n_fields = n,
        .fields = byi_arena_copy(arena, fields, n * sizeof *fields),
    };
    return type;
}

const struct byi_type *byi_type_func(struct byi_arena *arena, uint32_t n,
                                     const struct byi_type *const *params,
                                     const struct byi_type *result)
{
    struct byi_type *type = byi_arena_alloc(arena, sizeof *type);

    *type = (struct byi_type){
        .kind = BYI_FUNC,
        .n_fields = n,
        .fields = byi_arena_copy(arena, params, n * sizeof *params),
        .result = result,
    };
    return type;
}

/* Two types that are still to be compared. */
struct type_pair {
    const struct byi_type *a, *b;
};

/* Compare two types without their fields and results. */
static bool heads_equal(const struct byi_type *a, const struct byi_type *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != BYI_TENSOR)
        return a->n_fields == b->n_fields && a->dtype == b->dtype;
    return a->dtype == b->dtype &&
           byi_dims_equal(a->rank, a->dims, b->rank, b->dims);
}

/* Uses a worklist, since the input may nest tuples arbitrarily deep. Skips a
 * pair that equals the previous one, so that ((t, t), (t, t)) stays linear. */
static bool trees_equal(const struct byi_type *a, const struct byi_type *b)
{
    BYI_VEC(struct type_pair) work = {0};
    bool equal = true;

    BYI_PUSH(&work, ((struct type_pair){a, b}));
    while (equal && work.n > 0) {
        struct type_pair p = work.at[--work.n], last = {0};
        equal = heads_equal(p.a, p.b);
        if (!equal || p.a->kind == BYI_TENSOR)
            continue;
        for (uint32_t i = 0; i <= p.a->n_fields; i++) {
            bool result = i == p.a->n_fields;
            struct type_pair next = {result ? p.a->result : p.a->fields[i],
                                     result ? p.b->result : p.b->fields[i]};
            if (next.a == next.b || (next.a == last.a && next.b == last.b))
                continue;
            BYI_PUSH(&work, next);
            last = next;
        }
    }
    byi_vec_free(work.at);
    return equal;
}

bool byi_type_equal(const struct byi_type *a, const struct byi_type *b)
{
    if (a == b)
        return true;
    if (a->kind == BYI_TENSOR || b->kind == BYI_TENSOR)
        return heads_equal(a, b);
    return trees_equal(a, b);
}

/* Whether both are tensor types of one dtype and rank. */
static bool same_dtype_and_rank(const struct byi_type *a,
                                const struct byi_type *b)
{
    return a->kind == BYI_TENSOR && b->kind == BYI_TENSOR &&
           a->dtype == b->dtype && a->rank == b->rank;
}

bool byi_type_refines(const struct byi_type *type, const struct byi_type *of)
{
    bool fits = same_dtype_and_rank(type, of);

    for (uint32_t d = 0; fits && d < of->rank; d++)
        fits = BYI_IS_SYMBOL(of->dims[d]) || type->dims[d] == of->dims[d];
    return fits;
}

bool byi_tensor_fits(const struct byi_tensor *t, const struct byi_type *type)
{
    const struct byi_type exact = {.kind = BYI_TENSOR,
                                   .dtype = t->dtype,
                                   .rank = t->rank,
                                   .dims = t->dims};

    return byi_type_refines(&exact, type);
}

bool byi_type_may_equal(const struct byi_type *a, const struct byi_type *b)
{
    bool may = same_dtype_and_rank(a, b);

    for (uint32_t d = 0; may && d < a->rank; d++)
        may = a->dims[d] == b->dims[d] || BYI_IS_SYMBOL(a->dims[d]) ||
              BYI_IS_SYMBOL(b->dims[d]);
    return may;
}

/* --- sequences and optionals ---------------------------------------------- */

enum { MAX_NESTED = 16 };

const struct byi_type *byi_type_of_any(struct byi_arena *arena,
                                       enum byi_type_kind kind,
                                       enum byoc_dtype dtype)
{
    struct byi_type *type = byi_arena_alloc(arena, sizeof *type);

    *type = (struct byi_type){.kind = kind, .dtype = dtype};
    return type;
}

const struct byi_type *byi_type_list(struct byi_arena *arena,
                                     enum byi_type_kind kind,
                                     const struct byi_type *element)
{
    struct byi_type *type = byi_arena_alloc(arena, sizeof *type);

    if (element->kind == BYI_TENSOR) {
        int64_t dims[BYI_MAX_RANK];
        for (uint32_t d = 0; d < element->rank; d++)
            dims[d] = BYI_IS_SYMBOL(element->dims[d]) ? BYI_ANY_DIM
                                                      : element->dims[d];
        element = byi_type_tensor(arena, element->dtype, element->rank, dims);
    }
    *type = (struct byi_type){
        .kind = kind,
        .n_fields = 1,
        .fields = byi_arena_copy(arena, &element, sizeof element),
    };
    return type;
}

bool byi_type_accepts(const struct byi_type *to, const struct byi_type *from)
{
    while (byi_type_is_list(to) && to->kind == from->kind) {
        to = to->fields[0];
        from = from->fields[0];
    }
    if (to->dtype != from->dtype || byi_type_is_list(to) ||
        byi_type_is_list(from))
        return false;
    if (from->kind == BYI_NO_TENSOR || to->kind == BYI_ANY_TENSOR)
        return true;
    if (to->kind != from->kind || to->rank != from->rank)
        return false;
    for (uint32_t d = 0; to->kind == BYI_TENSOR && d < to->rank; d++)
        if (to->dims[d] != BYI_ANY_DIM && to->dims[d] != from->dims[d])
            return false;
    return true;
}

static const struct byi_type *join_elements(struct byi_arena *arena,
                                            const struct byi_type *a,
                                            const struct byi_type *b)
{
    int64_t dims[BYI_MAX_RANK];

    if (a->dtype != b->dtype || byi_type_is_list(a) || byi_type_is_list(b))
        return NULL;
    if (a->kind == BYI_NO_TENSOR || b->kind == BYI_NO_TENSOR)
        return a->kind == BYI_NO_TENSOR ? b : a;
    if (a->kind == BYI_ANY_TENSOR || b->kind == BYI_ANY_TENSOR ||
        a->rank != b->rank)
        return byi_type_of_any(arena, BYI_ANY_TENSOR, a->dtype);
    for (uint32_t d = 0; d < a->rank; d++)
        dims[d] = a->dims[d] == b->dims[d] ? a->dims[d] : BYI_ANY_DIM;
    return byi_type_tensor(arena, a->dtype, a->rank, dims);
}

const struct byi_type *byi_type_join(struct byi_arena *arena,
                                     const struct byi_type *a,
                                     const struct byi_type *b)
{
    enum byi_type_kind kinds[MAX_NESTED];
    uint32_t n = 0;

    for (; byi_type_is_list(a) && a->kind == b->kind; n++) {
        if (n == MAX_NESTED)
            return NULL;
        kinds[n] = a->kind;
        a = a->fields[0];
        b = b->fields[0];
    }
    const struct byi_type *type = join_elements(arena, a, b);
    while (type && n-- > 0)
        type = byi_type_list(arena, kinds[n], type);
    return type;
}

struct byi_tensor byi_tensor_of(const struct byi_type *type)
{
    struct byi_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (uint32_t d = 0; d < t.rank; d++)
        t.dims[d] = type->dims[d];
    return t;
}

bool byi_type_is_static(const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR)
        return false;
    for (uint32_t i = 0; i < type->rank; i++)
        if (BYI_IS_SYMBOL(type->dims[i]))
            return false;
    return true;
}

bool byi_type_has_static_sizes(const struct byi_type *type)
{
    if (type->kind != BYI_TUPLE)
        return byi_type_is_static(type);
    for (uint32_t i = 0; i < type->n_fields; i++)
        if (!byi_type_is_static(type->fields[i]))
            return false;
    return true;
}

const char *byi_type_kind_text(enum byi_type_kind kind)
{
    static const char *const texts[] = {
        [BYI_TENSOR] = "a tensor",      [BYI_TUPLE] = "a tuple",
        [BYI_FUNC] = "a function",      [BYI_SEQ] = "a sequence",
        [BYI_OPTIONAL] = "an optional", [BYI_ANY_TENSOR] = "an element",
        [BYI_NO_TENSOR] = "an element",
    };
    return texts[kind];
}

const char *byi_type_text(char *buf, size_t n, const struct byi_type *type)
{
    char inner[128];
    switch (type->kind) {
    case BYI_TENSOR:
        snprintf(buf, n, "%s %s", byoc_dtype_name(type->dtype),
                 byi_dims_text(inner, sizeof inner, type->rank, type->dims));
        return buf;
    case BYI_SEQ:
    case BYI_OPTIONAL:
        snprintf(buf, n, "%s of %s", byi_type_kind_text(type->kind),
                 byi_type_text(inner, sizeof inner, type->fields[0]));
        return buf;
    case BYI_ANY_TENSOR:
    case BYI_NO_TENSOR:
        snprintf(buf, n, "%s of %s", byoc_dtype_name(type->dtype),
                 type->kind == BYI_ANY_TENSOR ? "any shape" : "unknown shape");
        return buf;
    case BYI_TUPLE:
    case BYI_FUNC:
        break;
    }
    return byi_type_kind_text(type->kind);
}
