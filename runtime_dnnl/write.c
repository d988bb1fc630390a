/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/write.c: writes a program as C. walk.c has chosen primitives,
 * post-ops, order and memory. The unit of C reproduces them with calls of the
 * operators of operators.h:
 *
 *     make_N   makes the primitive of step N, and then the constants that no
 *              step before N needs
 *     step_N   lists the places of the arguments
 *     make_all, run_all call these for all steps, in order
 *
 * Parameters are written with the help of tables of their members. The output
 * is deterministic. */
#include "runtime_dnnl/build.h"

#include <math.h>
#include <string.h>

/* --- members -------------------------------------------------------------- */

/* The type of a member, which determines how it is written. */
enum member_kind {
    MEMBER_BOOL,
    MEMBER_U32,
    MEMBER_I64,
    MEMBER_FLOAT,
    MEMBER_NAME, /* an enumerator */
    MEMBER_DESC,
    MEMBER_DESCS, /* .n of them */
    MEMBER_WINDOW,
    MEMBER_GATHER,
    MEMBER_PLACE,
    MEMBER_ORDER /* uint8_t[4] */
};

/* A member of a struct of parameters. */
struct param_member {
    const char *name;
    size_t offset;
    enum member_kind kind;
    const char *const *names; /* NAME: of the enumerators */
};

#define NAME(x) [x] = #x
static const char *const desc_kinds[] = {
    NAME(BYI_DESC_ABSENT), NAME(BYI_DESC_STRIDED), NAME(BYI_DESC_ANY)};
static const char *const dtypes[] = {
    NAME(BYOC_F32), NAME(BYOC_U8),   NAME(BYOC_I8),
    NAME(BYOC_I32), NAME(BYOC_I64),  NAME(BYOC_F16),
    NAME(BYOC_F64), NAME(BYOC_BOOL), NAME(BYOC_BF16)};
#define ELT(name, algorithm) NAME(BYI_ELT_##name),
#define BIN(name, algorithm) NAME(BYI_BIN_##name),
static const char *const elts[] = {BYI_ELTS(ELT)};
static const char *const bins[] = {BYI_BINS(BIN)};
static const char *const post_kinds[] = {NAME(BYI_POST_SUM), NAME(BYI_POST_ELT),
                                         NAME(BYI_POST_BIN),
                                         NAME(BYI_POST_PRELU)};
static const char *const pool_kinds[] = {NAME(BYI_POOL_MAX), NAME(BYI_POOL_AVG),
                                         NAME(BYI_POOL_AVG_PAD)};
static const char *const reduce_kinds[] = {NAME(BYI_REDUCE_SUM),
                                           NAME(BYI_REDUCE_MEAN)};
static const char *const rnn_kinds[] = {NAME(BYI_RNN_PLAIN), NAME(BYI_RNN_LSTM),
                                        NAME(BYI_RNN_GRU),
                                        NAME(BYI_RNN_GRU_LINEAR)};
static const char *const qelementwise_kinds[] = {
    NAME(BYI_QELEMENTWISE_QUANTIZE),   NAME(BYI_QELEMENTWISE_DEQUANTIZE),
    NAME(BYI_QELEMENTWISE_ADD),        NAME(BYI_QELEMENTWISE_MUL),
    NAME(BYI_QELEMENTWISE_REQUANTIZE), NAME(BYI_QELEMENTWISE_LOOKUP),
    NAME(BYI_QELEMENTWISE_MEAN)};
static const char *const buf_kinds[] = {
    NAME(BYI_BUF_INPUT), NAME(BYI_BUF_OUTPUT), NAME(BYI_BUF_CONST),
    NAME(BYI_BUF_COMPUTED), NAME(BYI_BUF_TEMP)};
static const char *const args[] = {
    NAME(BYI_ARG_SRC),   NAME(BYI_ARG_SRC1),  NAME(BYI_ARG_WEIGHTS),
    NAME(BYI_ARG_BIAS),  NAME(BYI_ARG_MEAN),  NAME(BYI_ARG_VARIANCE),
    NAME(BYI_ARG_SCALE), NAME(BYI_ARG_SHIFT), NAME(BYI_ARG_DST),
    NAME(BYI_ARG_SRC_H), NAME(BYI_ARG_SRC_C), NAME(BYI_ARG_RECURRENT),
    NAME(BYI_ARG_DST_H), NAME(BYI_ARG_DST_C)};

#define MEMBER(type, member, kind)                                             \
    {                                                                          \
#member, offsetof(struct type, member), MEMBER_##kind, NULL            \
    }
#define ENUM(type, member, names)                                              \
    {                                                                          \
#member, offsetof(struct type, member), MEMBER_NAME, names             \
    }
static const struct param_member conv[] = {
    MEMBER(byi_dnnl_conv, deconv, BOOL),  MEMBER(byi_dnnl_conv, exact, BOOL),
    MEMBER(byi_dnnl_conv, banded, BOOL),  MEMBER(byi_dnnl_conv, window, WINDOW),
    MEMBER(byi_dnnl_conv, src, DESC),     MEMBER(byi_dnnl_conv, weights, DESC),
    MEMBER(byi_dnnl_conv, bias, DESC),    MEMBER(byi_dnnl_conv, dst, DESC),
    MEMBER(byi_dnnl_conv, gather, GATHER)};
static const struct param_member matmul[] = {
    MEMBER(byi_dnnl_matmul, src, DESC), MEMBER(byi_dnnl_matmul, weights, DESC),
    MEMBER(byi_dnnl_matmul, bias, DESC), MEMBER(byi_dnnl_matmul, dst, DESC)};
static const struct param_member pool[] = {
    ENUM(byi_dnnl_pool, kind, pool_kinds),
    MEMBER(byi_dnnl_pool, window, WINDOW),
    MEMBER(byi_dnnl_pool, src, DESC),
    MEMBER(byi_dnnl_pool, dst, DESC),
    MEMBER(byi_dnnl_pool, zero, I64),
    MEMBER(byi_dnnl_pool, scale, FLOAT)};
static const struct param_member softmax[] = {
    MEMBER(byi_dnnl_softmax, log, BOOL), MEMBER(byi_dnnl_softmax, axis, U32),
    MEMBER(byi_dnnl_softmax, src, DESC)};
static const struct param_member eltwise[] = {
    ENUM(byi_dnnl_eltwise, alg, elts), MEMBER(byi_dnnl_eltwise, alpha, FLOAT),
    MEMBER(byi_dnnl_eltwise, beta, FLOAT), MEMBER(byi_dnnl_eltwise, src, DESC)};
static const struct param_member binary[] = {
    ENUM(byi_dnnl_binary, alg, bins), MEMBER(byi_dnnl_binary, src, DESC),
    MEMBER(byi_dnnl_binary, src1, DESC), MEMBER(byi_dnnl_binary, dst, DESC)};
static const struct param_member reduce[] = {
    ENUM(byi_dnnl_reduce, kind, reduce_kinds),
    MEMBER(byi_dnnl_reduce, src, DESC), MEMBER(byi_dnnl_reduce, dst, DESC)};
static const struct param_member resample[] = {
    MEMBER(byi_dnnl_resample, linear, BOOL),
    MEMBER(byi_dnnl_resample, src, DESC), MEMBER(byi_dnnl_resample, dst, DESC)};
static const struct param_member layer_norm[] = {
    MEMBER(byi_dnnl_layer_norm, epsilon, FLOAT),
    MEMBER(byi_dnnl_layer_norm, scale, BOOL),
    MEMBER(byi_dnnl_layer_norm, shift, BOOL),
    MEMBER(byi_dnnl_layer_norm, src, DESC)};
static const struct param_member batch_norm[] = {
    MEMBER(byi_dnnl_batch_norm, epsilon, FLOAT),
    MEMBER(byi_dnnl_batch_norm, computes_mean, BOOL),
    MEMBER(byi_dnnl_batch_norm, src, DESC)};
static const struct param_member lrn[] = {
    MEMBER(byi_dnnl_lrn, size, I64), MEMBER(byi_dnnl_lrn, alpha, FLOAT),
    MEMBER(byi_dnnl_lrn, beta, FLOAT), MEMBER(byi_dnnl_lrn, k, FLOAT),
    MEMBER(byi_dnnl_lrn, src, DESC)};
static const struct param_member prelu[] = {
    MEMBER(byi_dnnl_prelu, src, DESC), MEMBER(byi_dnnl_prelu, weights, DESC)};
static const struct param_member concat[] = {
    MEMBER(byi_dnnl_concat, axis, U32), MEMBER(byi_dnnl_concat, n, U32),
    MEMBER(byi_dnnl_concat, src, DESCS), MEMBER(byi_dnnl_concat, dst, DESC)};
static const struct param_member reorder[] = {
    MEMBER(byi_dnnl_reorder, src, DESC), MEMBER(byi_dnnl_reorder, dst, DESC)};
static const struct param_member rnn[] = {
    ENUM(byi_dnnl_rnn, kind, rnn_kinds),
    ENUM(byi_dnnl_rnn, activation, elts),
    MEMBER(byi_dnnl_rnn, bidirectional, BOOL),
    MEMBER(byi_dnnl_rnn, reverse, BOOL),
    MEMBER(byi_dnnl_rnn, src, DESC),
    MEMBER(byi_dnnl_rnn, src_h, DESC),
    MEMBER(byi_dnnl_rnn, src_c, DESC),
    MEMBER(byi_dnnl_rnn, weights, DESC),
    MEMBER(byi_dnnl_rnn, recurrent, DESC),
    MEMBER(byi_dnnl_rnn, bias, DESC),
    MEMBER(byi_dnnl_rnn, dst, DESC),
    MEMBER(byi_dnnl_rnn, dst_h, DESC),
    MEMBER(byi_dnnl_rnn, dst_c, DESC)};
static const struct param_member qconv[] = {
    MEMBER(byi_dnnl_qconv, window, WINDOW),
    MEMBER(byi_dnnl_qconv, src, DESC),
    MEMBER(byi_dnnl_qconv, weights, DESC),
    MEMBER(byi_dnnl_qconv, dst, DESC),
    MEMBER(byi_dnnl_qconv, src_zero, I64),
    MEMBER(byi_dnnl_qconv, zero, I64),
    MEMBER(byi_dnnl_qconv, low, FLOAT),
    MEMBER(byi_dnnl_qconv, high, FLOAT),
    MEMBER(byi_dnnl_qconv, scale, FLOAT),
    ENUM(byi_dnnl_qconv, add.kind, qelementwise_kinds),
    MEMBER(byi_dnnl_qconv, add.src, DESC),
    MEMBER(byi_dnnl_qconv, add.src1, DESC),
    MEMBER(byi_dnnl_qconv, add.dst, DESC),
    MEMBER(byi_dnnl_qconv, add.src1_zero, I64),
    MEMBER(byi_dnnl_qconv, add.zero, I64),
    MEMBER(byi_dnnl_qconv, add.src_scale, FLOAT),
    MEMBER(byi_dnnl_qconv, add.src1_scale, FLOAT),
    MEMBER(byi_dnnl_qconv, add.scale, FLOAT),
    MEMBER(byi_dnnl_qconv, add.low, FLOAT),
    MEMBER(byi_dnnl_qconv, add.high, FLOAT)};
static const struct param_member attention[] = {
    MEMBER(byi_dnnl_attention, src, DESC),
    MEMBER(byi_dnnl_attention, weights, DESC),
    MEMBER(byi_dnnl_attention, src1, DESC),
    MEMBER(byi_dnnl_attention, dst, DESC),
    MEMBER(byi_dnnl_attention, zero_nan, BOOL)};
static const struct param_member qelementwise[] = {
    ENUM(byi_dnnl_qelementwise, kind, qelementwise_kinds),
    MEMBER(byi_dnnl_qelementwise, src, DESC),
    MEMBER(byi_dnnl_qelementwise, src1, DESC),
    MEMBER(byi_dnnl_qelementwise, dst, DESC),
    MEMBER(byi_dnnl_qelementwise, src_zero, I64),
    MEMBER(byi_dnnl_qelementwise, src1_zero, I64),
    MEMBER(byi_dnnl_qelementwise, zero, I64),
    MEMBER(byi_dnnl_qelementwise, src_scale, FLOAT),
    MEMBER(byi_dnnl_qelementwise, src1_scale, FLOAT),
    MEMBER(byi_dnnl_qelementwise, scale, FLOAT),
    MEMBER(byi_dnnl_qelementwise, low, FLOAT),
    MEMBER(byi_dnnl_qelementwise, high, FLOAT)};
static const struct param_member post[] = {
    ENUM(byi_post, kind, post_kinds), MEMBER(byi_post, alpha, FLOAT),
    MEMBER(byi_post, beta, FLOAT), MEMBER(byi_post, desc, DESC)};
/* write_creation() adds `step` and `arg` */
static const struct param_member pack[] = {MEMBER(byi_pack, from, PLACE),
                                           MEMBER(byi_pack, src, DESC)};
static const struct param_member copy[] = {MEMBER(byi_copy, from, PLACE),
                                           MEMBER(byi_copy, src, DESC),
                                           MEMBER(byi_copy, dst, DESC)};
static const struct param_member fill[] = {MEMBER(byi_fill, n, I64),
                                           MEMBER(byi_fill, value, FLOAT)};
static const struct param_member integers[] = {
    MEMBER(byi_integers, from, PLACE),  MEMBER(byi_integers, rows, I64),
    MEMBER(byi_integers, columns, I64), MEMBER(byi_integers, transposed, BOOL),
    MEMBER(byi_integers, scale, FLOAT), MEMBER(byi_integers, result, FLOAT),
    MEMBER(byi_integers, posts, BOOL),  MEMBER(byi_integers, n_bias, I64),
    MEMBER(byi_integers, bias, PLACE)};
static const struct param_member as_bytes[] = {
    MEMBER(byi_bytes, from, PLACE), MEMBER(byi_bytes, src, DESC),
    ENUM(byi_bytes, dtype, dtypes), MEMBER(byi_bytes, scale, FLOAT),
    MEMBER(byi_bytes, zero, I64)};
static const struct param_member gates[] = {
    MEMBER(byi_gates, from, PLACE),     MEMBER(byi_gates, no_bias, BOOL),
    MEMBER(byi_gates, directions, U32), MEMBER(byi_gates, gates, U32),
    MEMBER(byi_gates, order, ORDER),    MEMBER(byi_gates, last_separate, BOOL),
    MEMBER(byi_gates, size, I64)};

/* The parameters of the functions of struct byi_operators. `from` is the offset
 * of the member with the place from which a constant is made. */
#define OPERATOR(name)                                                         \
    {#name, "byi_dnnl_" #name, name, BYI_COUNT(name), SIZE_MAX},
#define MAKER(name, spec, members, from)                                       \
    {                                                                          \
        name, #spec, members, BYI_COUNT(members), from                         \
    }
static const struct unit_function {
    const char *name, *spec; /* of the function; of its struct of parameters */
    const struct param_member *members;
    size_t n, from;
} unit_functions[] = {
    BYI_OPERATORS(OPERATOR) /* and the functions that make constants: */
    MAKER("pack", byi_pack, pack, offsetof(struct byi_pack, from)),
    MAKER("copy", byi_copy, copy, offsetof(struct byi_copy, from)),
    MAKER("fill", byi_fill, fill, SIZE_MAX),
    MAKER("integers", byi_integers, integers,
          offsetof(struct byi_integers, from)),
    MAKER("bytes", byi_bytes, as_bytes, offsetof(struct byi_bytes, from)),
    MAKER("gate_weights", byi_gates, gates, offsetof(struct byi_gates, from)),
    MAKER("gate_biases", byi_gates, gates, offsetof(struct byi_gates, from)),
};

static const struct unit_function *find_function(const char *name)
{
    const struct unit_function *op = unit_functions;
    while (strcmp(op->name, name) != 0)
        op++;
    return op;
}

/* --- text ----------------------------------------------------------------- */

/* The state of byi_dn_write. */
struct unit_writer {
    const struct byi_program *program;
    struct byi_text *text;
    struct byi_arena *arena;
    /* for each constant: its number in the unit, or BYI_NO_INDEX */
    uint32_t *computed;
    uint32_t n_computed;
    uint32_t *step; /* for each creation: the first step that needs it */
    int *arg;       /* for each creation: the argument that it packs */
    bool *is_read;  /* for each constant: a step reads it */
    /* for each step: its first creation; by creation: the next one of its step
     */
    uint32_t *first, *next;
};

/* Add text inside a comment, with a space wherever it would end the comment or
 * begin another, and for control characters. */
static void add_comment(struct byi_text *t, const char *s)
{
    for (; *s; s++) {
        const bool splits =
            (s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*');
        byi_text_addf(t, "%c%s", (unsigned char)*s < ' ' ? ' ' : *s,
                      splits ? " " : "");
    }
}

/* Add a string literal. Octal escapes have three digits, so that a following
 * digit is not part of them; "??" is escaped, since it may start a trigraph. */
static void add_string(struct byi_text *t, const char *s)
{
    byi_text_addf(t, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < ' ' || c == 127)
            byi_text_addf(t, "\\%03o", c);
        else
            byi_text_addf(t, "%s%c", strchr("\"\\?", c) ? "\\" : "", c);
    }
    byi_text_addf(t, "\"");
}

/* Add the shortest decimal number that reads back as x. */
static void add_float(struct byi_text *t, float x)
{
    char digits[32];
    if (isnan(x) || isinf(x)) {
        byi_text_addf(t, "%s",
                      isnan(x) ? "NAN"
                      : x < 0  ? "-INFINITY"
                               : "INFINITY");
        return;
    }
    byi_float_text(digits, (double)x, true);
    byi_text_addf(t, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void add_numbers(struct byi_text *t, uint32_t n, const int64_t *at)
{
    byi_text_addf(t, "{");
    for (uint32_t i = 0; i < n; i++)
        byi_text_addf(t, "%s%lld", i ? ", " : "", (long long)at[i]);
    byi_text_addf(t, "}");
}

/* Add a descriptor, without the members that its kind does not use. */
static void add_desc(struct byi_text *t, const struct byi_desc *d)
{
    static const int64_t no_strides[1] = {0};
    const bool strided = d->kind == BYI_DESC_STRIDED;
    byi_text_addf(t, "{%s, %s, %u, ", desc_kinds[d->kind], dtypes[d->dtype],
                  d->rank);
    add_numbers(t, d->rank, d->dims);
    byi_text_addf(t, ", ");
    add_numbers(t, strided ? d->rank : 1, strided ? d->strides : no_strides);
    byi_text_addf(t, "}");
}

static void add_window(struct byi_text *t, const struct byi_dnnl_window *w)
{
    const struct {
        const char *name;
        const int64_t *at;
    } parts[] = {{"kernel", w->kernel},
                 {"stride", w->stride},
                 {"dilation", w->dilation},
                 {"begin", w->begin},
                 {"end", w->end}};
    byi_text_addf(t, "{.n = %u", w->n);
    for (size_t i = 0; i < BYI_COUNT(parts); i++) {
        byi_text_addf(t, ",\n                   .%s = ", parts[i].name);
        add_numbers(t, w->n, parts[i].at);
    }
    byi_text_addf(t, "}");
}

static void add_gather(struct byi_text *t, const struct byi_dnnl_gather *g)
{
    const struct {
        const char *name;
        const struct byi_desc *at;
    } operands[] = {{"scale", &g->scale}, {"shift", &g->shift}};
    byi_text_addf(t, "{.n = %u,\n                   .channels = ", g->n);
    add_numbers(t, g->n, g->channels);
    for (size_t i = 0; i < BYI_COUNT(operands); i++)
        if (operands[i].at->kind != BYI_DESC_ABSENT) {
            byi_text_addf(t, ",\n                   .%s = ", operands[i].name);
            add_desc(t, operands[i].at);
        }
    byi_text_addf(t, "%s}",
                  g->relu ? ",\n                   .relu = true" : "");
}

static void add_place(const struct unit_writer *w, const struct byi_place *at)
{
    byi_text_addf(w->text, "{%s, %u, %llu}", buf_kinds[at->kind],
                  at->kind == BYI_BUF_COMPUTED ? w->computed[at->index]
                                               : at->index,
                  (unsigned long long)at->offset);
}

static void add_arg(struct byi_text *t, int arg)
{
    if (arg >= BYI_ARG_MULTI)
        byi_text_addf(t, "BYI_ARG_MULTI + %d", arg - BYI_ARG_MULTI);
    else if (arg >= BYI_ARG_SLOPE)
        byi_text_addf(t, "BYI_ARG_SLOPE + %d", arg - BYI_ARG_SLOPE);
    else if (arg >= BYI_ARG_POST)
        byi_text_addf(t, "BYI_ARG_POST + %d", arg - BYI_ARG_POST);
    else
        byi_text_addf(t, "%s", args[arg]);
}

/* Whether the member is zero, so that its initializer can be omitted. */
static bool is_zero(const struct param_member *m, const char *at)
{
    switch (m->kind) {
    case MEMBER_BOOL:
        return !*(const bool *)at;
    case MEMBER_U32:
        return *(const uint32_t *)at == 0;
    case MEMBER_I64:
        return *(const int64_t *)at == 0;
    case MEMBER_FLOAT: /* -0.0f must be written */
        return *(const float *)at == 0 && !signbit(*(const float *)at);
    case MEMBER_DESC:
        return ((const struct byi_desc *)at)->kind == BYI_DESC_ABSENT;
    case MEMBER_GATHER:
        return ((const struct byi_dnnl_gather *)at)->n == 0;
    default:
        return false;
    }
}

static void add_value(const struct unit_writer *w, const struct param_member *m,
                      const char *at)
{
    struct byi_text *t = w->text;
    const uint8_t *order = (const uint8_t *)at;
    switch (m->kind) {
    case MEMBER_BOOL:
        byi_text_addf(t, "true");
        return;
    case MEMBER_U32:
        byi_text_addf(t, "%u", *(const uint32_t *)at);
        return;
    case MEMBER_I64:
        byi_text_addf(t, "%lld", (long long)*(const int64_t *)at);
        return;
    case MEMBER_FLOAT:
        add_float(t, *(const float *)at);
        return;
    case MEMBER_NAME:
        byi_text_addf(t, "%s", m->names[*(const unsigned *)at]);
        return;
    case MEMBER_DESC:
        add_desc(t, (const struct byi_desc *)at);
        return;
    case MEMBER_DESCS:
        byi_text_addf(t, "sources");
        return;
    case MEMBER_WINDOW:
        add_window(t, (const struct byi_dnnl_window *)at);
        return;
    case MEMBER_GATHER:
        add_gather(t, (const struct byi_dnnl_gather *)at);
        return;
    case MEMBER_PLACE:
        add_place(w, (const struct byi_place *)at);
        return;
    case MEMBER_ORDER:
        byi_text_addf(t, "{%u, %u, %u, %u}", order[0], order[1], order[2],
                      order[3]);
        return;
    }
}

static void add_members(const struct unit_writer *w,
                        const struct param_member *members, size_t n,
                        const void *params, const char *separator)
{
    const char *comma = "";
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)params + members[i].offset;
        if (is_zero(&members[i], at))
            continue;
        byi_text_addf(w->text, "%s.%s = ", comma, members[i].name);
        add_value(w, &members[i], at);
        comma = separator;
    }
}

/* --- placing constants with steps ----------------------------------------- */

static const struct byi_place *source_of(const struct byi_creation *r)
{
    const size_t from = find_function(r->function)->from;
    return from == SIZE_MAX
               ? NULL
               : (const struct byi_place *)((const char *)r->params + from);
}

/* For each constant: the creation that makes it. */
static uint32_t *creations_of(const struct unit_writer *w)
{
    const struct byi_program *p = w->program;
    uint32_t *creations =
        byi_arena_calloc(w->arena, p->computed.n, sizeof *creations);
    for (uint32_t r = 0; r < p->creations.n; r++)
        for (uint32_t i = 0; i < p->creations.at[r].n_computed; i++)
            creations[p->creations.at[r].computed + i] = r;
    return creations;
}

/* Assign every creation to the first step that reads its constants, or
 * constants made from them. A creation comes after those that make the
 * constants it reads.
 */
static void place_creations(struct unit_writer *w)
{
    const struct byi_program *p = w->program;
    const uint32_t *creations = creations_of(w);
    for (uint32_t r = 0; r < p->creations.n; r++)
        w->step[r] = BYI_NO_INDEX;
    for (uint32_t s = p->steps.n; s-- > 0;)
        for (uint32_t i = 0; i < p->steps.at[s].n_slots; i++) {
            const struct byi_dnnl_slot *slot = &p->steps.at[s].slots[i];
            if (slot->at.kind != BYI_BUF_COMPUTED)
                continue;
            w->is_read[slot->at.index] = true;
            w->step[creations[slot->at.index]] = s;
            w->arg[creations[slot->at.index]] = slot->arg;
        }
    for (uint32_t r = p->creations.n; r-- > 0;) {
        const struct byi_place *from = source_of(&p->creations.at[r]);
        if (from && from->kind == BYI_BUF_COMPUTED &&
            w->step[r] < w->step[creations[from->index]])
            w->step[creations[from->index]] = w->step[r];
    }
    for (uint32_t s = 0; s < p->steps.n; s++)
        w->first[s] = BYI_NO_INDEX;
    for (uint32_t r = p->creations.n; r-- > 0;)
        if (w->step[r] != BYI_NO_INDEX) {
            w->next[r] = w->first[w->step[r]];
            w->first[w->step[r]] = r;
        }
}

/* --- one step ------------------------------------------------------------- */

static void write_params(const struct unit_writer *w,
                         const struct unit_function *op, const char *variable,
                         const void *params)
{
    byi_text_addf(w->text, "    static const struct %s %s = {\n        ",
                  op->spec, variable);
    add_members(w, op->members, op->n, params, ",\n        ");
}

static void write_creation(struct unit_writer *w, uint32_t r)
{
    const struct byi_creation *creation = &w->program->creations.at[r];
    const struct unit_function *op = find_function(creation->function);
    char variable[32];
    for (uint32_t i = 0; i < creation->n_computed; i++)
        w->computed[creation->computed + i] = w->n_computed++;
    snprintf(variable, sizeof variable, "computed_%u",
             w->computed[creation->computed]);
    write_params(w, op, variable, creation->params);
    if (strcmp(op->name, "pack") == 0) {
        byi_text_addf(w->text,
                      ",\n        .step = %u,\n        .arg = ", w->step[r]);
        add_arg(w->text, w->arg[r]);
    }
    byi_text_addf(w->text, "};\n    DO(dn->%s(load, &%s));\n", op->name,
                  variable);
}

static void write_posts(const struct unit_writer *w,
                        const struct byi_posts *posts)
{
    struct byi_text *t = w->text;
    byi_text_addf(t, "    static const struct byi_post post[] = {\n");
    for (uint32_t i = 0; i < posts->n; i++) {
        const struct byi_post *p = &posts->at[i];
        byi_text_addf(t, "        {");
        add_members(w, post, 1, p, "");
        if (p->kind == BYI_POST_ELT || p->kind == BYI_POST_BIN)
            byi_text_addf(t, ", .alg = %s",
                          p->kind == BYI_POST_ELT ? elts[p->alg]
                                                  : bins[p->alg]);
        for (size_t k = 1; k < BYI_COUNT(post); k++)
            if (!is_zero(&post[k], (const char *)p + post[k].offset)) {
                byi_text_addf(t, ", ");
                add_members(w, &post[k], 1, p, "");
            }
        byi_text_addf(t, "},\n");
    }
    byi_text_addf(
        t, "    };\n    static const struct byi_posts posts = {%u, post};\n",
        posts->n);
}

static void write_sources(const struct unit_writer *w,
                          const struct byi_dnnl_concat *p)
{
    byi_text_addf(w->text, "    static const struct byi_desc sources[] = {\n");
    for (uint32_t i = 0; i < p->n; i++) {
        byi_text_addf(w->text, "        ");
        add_desc(w->text, &p->src[i]);
        byi_text_addf(w->text, ",\n");
    }
    byi_text_addf(w->text, "    };\n");
}

static void write_slots(const struct unit_writer *w,
                        const struct byi_dnnl_step *step)
{
    struct byi_text *t = w->text;
    byi_text_addf(t, "static const struct byi_dnnl_slot slots_%u[] = {\n",
                  step->index);
    for (uint32_t i = 0; i < step->n_slots; i++) {
        byi_text_addf(t, "    {");
        add_arg(t, step->slots[i].arg);
        byi_text_addf(t, ", ");
        add_place(w, &step->slots[i].at);
        byi_text_addf(t, "},\n");
    }
    byi_text_addf(t,
                  "};\nstatic const struct byi_dnnl_step step_%u = {\n"
                  "    .index = %u,\n%s    .name = ",
                  step->index, step->index,
                  step->joins ? "    .joins = true,\n" : "");
    add_string(t, step->name);
    byi_text_addf(t, ",\n    .sources = ");
    add_string(t, step->sources);
    byi_text_addf(t, ",\n    .n_slots = %u,\n    .slots = slots_%u,\n};\n\n",
                  step->n_slots, step->index);
}

static void write_step(struct unit_writer *w, uint32_t at)
{
    const struct byi_dnnl_step *step = &w->program->steps.at[at];
    const struct byi_creation *creation =
        byi_prim_noted(w->program->prims.at[at]);
    const struct unit_function *op = find_function(creation->function);
    struct byi_text *t = w->text;
    byi_text_addf(t, "/* %u: %s%s%s: ", at, step->name,
                  *creation->pattern ? ", of pattern " : "", creation->pattern);
    add_comment(t, step->sources);
    byi_text_addf(t,
                  " */\nstatic int make_%u(const struct byi_operators *dn, "
                  "struct byi_load *load)\n{\n",
                  at);
    if (strcmp(op->name, "concat") == 0)
        write_sources(w, creation->params);
    write_params(w, op, op->name, creation->params);
    byi_text_addf(t, "};\n");
    if (creation->posts)
        write_posts(w, creation->posts);
    byi_text_addf(t, "    DO(dn->%s(load, &%s, %s));\n", op->name, op->name,
                  creation->posts ? "&posts" : "NULL");
    for (uint32_t r = w->first[at]; r != BYI_NO_INDEX; r = w->next[r])
        write_creation(w, r);
    byi_text_addf(t, "    return 0;\n}\n\n");
    write_slots(w, step);
}

/* --- the unit ------------------------------------------------------------- */

static void write_header(const struct unit_writer *w, const char *symbol)
{
    struct byi_text *t = w->text;
    byi_text_addf(t, "/* %s: ", symbol);
    add_comment(t, w->program->name);
    byi_text_addf(
        t,
        " for %s, made by byoc.\n"
        " *\n"
        " * It calls the operators below, which the plug-in hands to it.\n"
        " */\n%s#include <math.h>\n"
        "#include <stddef.h>\n\n"
        "#define DO(call)                    \\\n"
        "    do {                            \\\n"
        "        const int status_ = (call); \\\n"
        "        if (status_)                \\\n"
        "            return status_;         \\\n"
        "    } while (0)\n\n",
        byi_dnnl_compat(), byi_dn_unit_text);
}

/* Write `static const uint64_t NAME[]`, or nothing if n is 0. */
static void write_sizes(struct byi_text *t, const char *name, uint32_t n,
                        const uint64_t *bytes)
{
    if (n == 0)
        return;
    byi_text_addf(t, "static const uint64_t %s[] = {", name);
    for (uint32_t i = 0; i < n; i++)
        byi_text_addf(t, "%s%llu", i ? ", " : "", (unsigned long long)bytes[i]);
    byi_text_addf(t, "};\n");
}

static void write_io_sizes(const struct unit_writer *w)
{
    const struct byi_program *p = w->program;
    uint64_t *consts = byi_arena_calloc(w->arena, p->n_consts, sizeof *consts);
    for (uint32_t i = 0; i < p->n_consts; i++)
        consts[i] = p->consts[i].bytes;
    write_sizes(w->text, "sizes_in", p->n_inputs, p->input_bytes);
    write_sizes(w->text, "sizes_out", p->n_outputs, p->output_bytes);
    write_sizes(w->text, "sizes_const", p->n_consts, consts);
    byi_text_addf(w->text, "\n");
}

static void write_build(const struct unit_writer *w)
{
    const struct byi_program *p = w->program;
    struct byi_text *t = w->text;
    byi_text_addf(t, "static int make_all(const struct byi_operators *dn, "
                     "struct byi_load *load)\n{\n");
    for (uint32_t i = 0; i < p->steps.n; i++)
        byi_text_addf(t, "    DO(make_%u(dn, load));\n", i);
    for (uint32_t i = 0; i < p->computed.n; i++)
        if (w->computed[i] != BYI_NO_INDEX && !w->is_read[i])
            byi_text_addf(t, "    DO(dn->drop(load, %u));\n", w->computed[i]);
    byi_text_addf(t, "    return 0;\n}\n\n");
}

static void write_run(const struct unit_writer *w)
{
    const struct byi_program *p = w->program;
    struct byi_text *t = w->text;
    byi_text_addf(t, "static int run_all(const struct byi_operators *dn, "
                     "struct byi_exec *exec)\n{\n");
    for (uint32_t i = 0; i < p->steps.n; i++)
        byi_text_addf(t, "    DO(dn->run(exec, &step_%u)); /* %s */\n", i,
                      p->steps.at[i].name);
    byi_text_addf(t, "    return 0;\n}\n\n");
}

static void write_unit(const struct unit_writer *w, const char *symbol)
{
    const struct byi_program *p = w->program;
    struct byi_text *t = w->text;
    byi_text_addf(t,
                  "const struct byi_dnnl_unit *%s(void);\n"
                  "const struct byi_dnnl_unit *%s(void)\n{\n"
                  "    static const struct byi_dnnl_unit unit = {\n"
                  "        .size = sizeof unit,\n"
                  "        .id = 0x%08x,\n"
                  "        .name = ",
                  symbol, symbol, byi_dn_unit_id);
    add_string(t, p->name);
    byi_text_addf(t,
                  ",\n        .n_steps = %u,\n        .n_computed = %u,\n"
                  "        .n_inputs = %u,\n        .n_outputs = %u,\n"
                  "        .n_consts = %u,\n",
                  p->steps.n, w->n_computed, p->n_inputs, p->n_outputs,
                  p->n_consts);
    const struct {
        const char *member, *name;
        uint32_t n;
    } sizes[] = {{"input_bytes", "sizes_in", p->n_inputs},
                 {"output_bytes", "sizes_out", p->n_outputs},
                 {"const_bytes", "sizes_const", p->n_consts}};
    for (size_t i = 0; i < BYI_COUNT(sizes); i++)
        if (sizes[i].n)
            byi_text_addf(t, "        .%s = %s,\n", sizes[i].member,
                          sizes[i].name);
    byi_text_addf(t,
                  "        .temp_bytes = %llu,\n        .build = make_all,\n"
                  "        .run = run_all,\n    };\n    return &unit;\n}\n",
                  (unsigned long long)p->temp_bytes);
}

/* Whether the program has steps, and it is known how each primitive was
 * created.
 */
static bool can_write(const struct byi_program *p)
{
    for (uint32_t i = 0; i < p->prims.n; i++)
        if (!byi_prim_noted(p->prims.at[i]))
            return false;
    return p->prims.n > 0;
}

bool byi_dn_write(const struct byi_program *program, const char *symbol,
                  struct byi_text *text)
{
    const uint32_t n = program->creations.n, n_computed = program->computed.n;
    if (!can_write(program))
        return false;
    struct unit_writer w = {
        .program = program, .text = text, .arena = byi_arena_new()};
    w.computed = byi_arena_calloc(w.arena, n_computed, sizeof *w.computed);
    w.is_read = byi_arena_calloc(w.arena, n_computed, sizeof *w.is_read);
    w.step = byi_arena_calloc(w.arena, n, sizeof *w.step);
    w.arg = byi_arena_calloc(w.arena, n, sizeof *w.arg);
    w.next = byi_arena_calloc(w.arena, n, sizeof *w.next);
    w.first = byi_arena_calloc(w.arena, program->steps.n, sizeof *w.first);
    for (uint32_t i = 0; i < n_computed; i++)
        w.computed[i] = BYI_NO_INDEX;
    place_creations(&w);
    write_header(&w, symbol);
    for (uint32_t i = 0; i < program->steps.n; i++)
        write_step(&w, i);
    write_io_sizes(&w);
    write_build(&w);
    write_run(&w);
    write_unit(&w, symbol);
    byi_arena_free(&w.arena);
    return true;
}
