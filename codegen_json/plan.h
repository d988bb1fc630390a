/* codegen_json/plan.h: a plan while it is made. plan.c takes a module apart,
 * memory.c gives temporaries their places, plan.c prints the result.
 */
#ifndef BYI_PLAN_H
#define BYI_PLAN_H

#include "codegen_json.h"

enum byi_pvalue_kind {
    BYI_P_INPUT, /* index: which input       */
    BYI_P_CONST, /* index: which constant    */
    BYI_P_TEMP,
    BYI_P_OUTPUT, /* index: which output; written in place */
    BYI_P_ALIAS   /* index: the value whose memory it shares, no alias */
};

struct byi_pvalue {
    enum byi_pvalue_kind kind;
    uint32_t index;
    const struct byi_type *type;
    bool fixed;      /* no dim varies */
    uint64_t offset; /* of a fixed temporary */
};

enum byi_pstep_kind {
    BYI_P_OP,
    BYI_P_REGION,
    BYI_P_KERNEL,
    BYI_P_CALL,
    BYI_P_IF
};

/* in and out are runs of byi_pfunc.flat. */
struct byi_pstep {
    enum byi_pstep_kind kind;
    const struct byi_node *node;
    uint32_t callee; /* region, kernel or function; IF: then */
    uint32_t other;  /* IF: the else branch                     */
    uint32_t in, n_in, out, n_out;
};

struct byi_pfunc {
    const char *name;
    BYI_VEC(struct byi_pvalue) values;
    BYI_VEC(uint32_t) inputs;  /* values */
    BYI_VEC(uint32_t) outputs; /* values */
    BYI_VEC(struct byi_pstep) steps;
    BYI_VEC(uint32_t) flat; /* values; nodes and steps own runs of it */
    uint64_t arena;
};

/* The value that owns the memory of `v`. */
static inline uint32_t byi_pfunc_root(const struct byi_pfunc *f, uint32_t v)
{
    return f->values.at[v].kind == BYI_P_ALIAS ? f->values.at[v].index : v;
}

/* memory.c: offsets for fixed temporaries, and f->arena. */
void byi_plan_memory(struct byi_pfunc *f);

/* plan_json.c */
void byi_plan_print_func(const struct byi_module *m, const struct byi_pfunc *f,
                         struct byi_text *json);
void byi_plan_print_consts(const struct byi_module *m,
                           const struct byi_plan *plan, struct byi_text *json);

#endif
