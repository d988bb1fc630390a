/* tests/operators/fuzz.h: models of one random node, run by byoc's kernels, by
 * their plain forms and by ONNX Runtime, and compared.
 */
#ifndef BYI_TESTS_FUZZ_H
#define BYI_TESTS_FUZZ_H

#include "core/core.h"
#include "frontend_onnx/onnx.h"

#include "onnx.pb-c.h"

enum { MAX_OPERANDS = 16, MAX_RESULTS = 16 };

/* What elements are drawn from. */
enum flavour {
    ORDINARY, /* -4 .. 4, halves among them so that values meet */
    EXTREME,  /* also NaN, infinities, denormals, the ends of integers */
    POSITIVE, /* above 0 */
    UNIT      /* 0 .. 1 */
};

/* A case under way. The node is the model's only one. */
struct draw {
    uint64_t seed;
    struct byi_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    Onnx__NodeProto *node;
    enum byoc_dtype dtype; /* the main one, of the case */
    uint32_t n;
    struct byi_tensor in[MAX_OPERANDS];
    bool constant[MAX_OPERANDS]; /* an initialiser: ONNX wants it known */
};

/* draw.c: numbers, shapes, operands, attributes. Bounds are inclusive. */
int64_t draw_int(struct draw *d, int64_t low, int64_t high);
bool draw_chance(struct draw *d, int percent);
/* A rank, and sizes: mostly 1 to 7, now and then 0, or up to 70. */
uint32_t draw_shape(struct draw *d, uint32_t low, uint32_t high, int64_t *dims);
/* Dims that broadcast to those of `to`: leading ones dropped, others 1. */
uint32_t draw_narrower(struct draw *d, uint32_t rank, const int64_t *to,
                       int64_t *dims);
/* An axis, counted from either end. */
int64_t draw_axis(struct draw *d, uint32_t rank);
/* A tensor as the node's next operand. */
struct byi_tensor *draw_operand(struct draw *d, enum byoc_dtype dtype,
                                uint32_t rank, const int64_t *dims,
                                enum flavour flavour);
/* The next operand, of ints that are given: a vector, or a scalar where n < 0;
 * an initialiser where `constant`. */
void draw_ints(struct draw *d, enum byoc_dtype dtype, int64_t n,
               const int64_t *values, bool constant);
/* An operand of any shape, of the case's type and flavour. */
void draw_same(struct draw *d);
/* The next operand is left out. */
void draw_nothing(struct draw *d);
void draw_attr_int(struct draw *d, const char *name, int64_t v);
void draw_attr_float(struct draw *d, const char *name, float v);
void draw_attr_string(struct draw *d, const char *name, const char *v);
void draw_attr_ints(struct draw *d, const char *name, size_t n,
                    const int64_t *v);
/* A new model of the node `op` with `results` outputs; then bytes of it. */
void draw_begin(struct draw *d, uint64_t seed, const char *op, int64_t opset,
                const char *domain, enum byoc_dtype dtype, uint32_t results);
uint8_t *draw_pack(struct draw *d, size_t *n);
void draw_end(struct draw *d);

/* --- cases.c, cases_move.c */
struct op_case {
    const char *op;
    int64_t opset;
    const char *types; /* letters, see type_of in fuzz.c; "-": one type */
    void (*make)(struct draw *d);
    enum flavour flavour;
    uint32_t results;
    double bound; /* of |found - expected| / (1 + |expected|) */
    const char *domain;
};
struct op_table {
    const struct op_case *at;
    uint32_t n;
};
extern const struct op_table op_cases_compute; /* cases.c      */
extern const struct op_table op_cases_move;    /* cases_move.c */
/* The case being made: generators read its flavour. */
extern const struct op_case *op_now;

/* ort.c: ONNX Runtime through its C library. */
bool ort_open(const char *library);
/* Results in the arena. False: it refuses, and says why. */
bool ort_run(const void *model, size_t n, const struct draw *d,
             struct byi_arena *arena, struct byi_tensor *out, uint32_t *n_out,
             char *why, size_t room);

#endif
