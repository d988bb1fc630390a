/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the operator table, from ops.def. */
#include "rules.h"

#include <pthread.h>
#include <string.h>

#define ATTR(name, kind, default_text)                                         \
    {                                                                          \
        name, BYI_ATTR_##kind, default_text                                    \
    }
#define REQUIRED NULL

#define ATTRIBUTES(id, ...)                                                    \
    static const struct byi_attr_def attrs_##id[] = {__VA_ARGS__};             \
    enum { N_ATTRS_##id = BYI_COUNT(attrs_##id) };
#include "ops.def"
#undef ATTRIBUTES

#define attrs_none NULL
enum { N_ATTRS_none = 0 };

#define MANY BYI_MAX_ARGS
#define AT(i) (1u << (i))
#define FROM(i) (UINT32_MAX << (i))
#define COMMUTES BYI_TRAIT_COMMUTES
#define VIEW BYI_TRAIT_VIEW
#define RANDOM BYI_TRAIT_RANDOM
#define LIST BYI_TRAIT_LIST
#define FOLDABLE BYI_TRAIT_FOLDABLE
#define DISCONTINUOUS BYI_TRAIT_DISCONTINUOUS
#define WIDENS BYI_TRAIT_WIDENS
#define HIDES_NAN BYI_TRAIT_HIDES_NAN
#define NARROWS BYI_TRAIT_NARROWS
#define FOLLOWS BYI_TRAIT_FOLLOWS
#define EXACT                                                                  \
    {                                                                          \
        0, 0                                                                   \
    }
#define ULPS(wide, half)                                                       \
    {                                                                          \
        wide, half                                                             \
    }

static const struct byi_op ops[BYI_N_OPS] = {
    [BYI_OP_NONE] = {.name = "none"},
#define OP(id_, name_, min_, max_, n_out_, kind_, cost_, layout_, types_,      \
           values_, traits_, bound_, table_, rule_, doc_)                      \
    [BYI_OP_##id_] = {                                                         \
        .id = BYI_OP_##id_,                                                    \
        .name = name_,                                                         \
        .min_in = min_,                                                        \
        .max_in = max_,                                                        \
        .n_out = n_out_,                                                       \
        .kind = BYI_##kind_,                                                   \
        .cost = BYI_COST_##cost_,                                              \
        .layout = BYI_LAYOUT_##layout_,                                        \
        .types = BYI_##types_,                                                 \
        .values = values_,                                                     \
        .traits = traits_,                                                     \
        .ulps = bound_,                                                        \
        .attrs = attrs_##table_,                                               \
        .rule = byi_rule_##rule_,                                              \
        .doc = doc_,                                                           \
        .n_attrs = N_ATTRS_##table_,                                           \
    },
#include "ops.def"
#undef OP
};

const struct byi_op *byi_op(enum byi_op_id id)
{
    return &ops[id];
}

bool byi_op_has(enum byi_op_id id, enum byi_op_trait trait)
{
    return (ops[id].traits & trait) != 0;
}

bool byi_op_reads_value(enum byi_op_id id, uint32_t operand)
{
    return operand < 32 && (ops[id].values >> operand & 1);
}

bool byi_op_reads_unknown(enum byi_op_id id, uint32_t n,
                          const struct byi_tensor *const *value)
{
    for (uint32_t i = 0; i < n; i++)
        if (!value[i] && byi_op_reads_value(id, i))
            return true;
    return false;
}

/* From names to rows: a hash table with linear probing, filled before its first
 * use. */
enum { NAME_SLOTS = 512 };
static uint16_t name_slots[NAME_SLOTS];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;
_Static_assert(BYI_N_OPS <= NAME_SLOTS / 2, "operators fit the name table");

static size_t slot_of(const char *name, size_t n)
{
    return (size_t)(byi_hash(0, name, n) % NAME_SLOTS);
}

static void fill_names(void)
{
    for (size_t i = 1; i < BYI_N_OPS; i++) {
        size_t slot = slot_of(ops[i].name, strlen(ops[i].name));
        while (name_slots[slot])
            slot = (slot + 1) % NAME_SLOTS;
        name_slots[slot] = (uint16_t)i;
    }
}

const struct byi_op *byi_op_of_name(const char *name, size_t n)
{
    pthread_once(&names_once, fill_names);
    for (size_t slot = slot_of(name, n); name_slots[slot];
         slot = (slot + 1) % NAME_SLOTS) {
        const struct byi_op *op = &ops[name_slots[slot]];
        if (strlen(op->name) == n && memcmp(op->name, name, n) == 0)
            return op;
    }
    return NULL;
}

const struct byi_attr_def *byi_op_attr(const struct byi_op *op,
                                       const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return &op->attrs[i];
    return NULL;
}
