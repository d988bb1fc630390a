/* SPDX-License-Identifier: Apache-2.0 */
/* tests/operators/fuzz.h: the parts of operators_fuzz, which draws models of
 * one random node, runs them on byoc's kernels, on the kernels' plain forms and
 * in ONNX Runtime, and compares the results. */
#ifndef BYI_TESTS_FUZZ_H
#define BYI_TESTS_FUZZ_H

#include "onnx.pb-c.h"

#include "core/ir/ir.h"
#include "frontend_onnx/onnx.h"

enum { MAX_OPERANDS = 20, MAX_RESULTS = 16 };

/* The distribution of an operand's elements. */
enum distribution {
    ORDINARY, /* floats in -4 .. 4, some of them multiples of 1/2, so that some
                 are equal; integers in -9 .. 9 */
    EXTREME,  /* also NaN, infinities, denormals, the ends of integers */
    POSITIVE, /* floats in 1/16 .. 4, integers in 1 .. 9 */
    UNIT      /* floats between 0 and 1, integers in 1 .. 9 */
};

/* The current case. Its node is the model's only one, except for nodes that
 * make operands, or read results, that are not tensors. */
struct draw {
    uint64_t seed;
    struct byi_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    Onnx__NodeProto *node;
    Onnx__NodeProto *at; /* the node that draw_attr_... extends */
    bool placed; /* the node is in the graph; otherwise it is added last */
    enum byoc_dtype dtype; /* the main one, of the case */
    bool wide; /* float32 operands instead of 16-bit floats, as a reference */
    bool weights;      /* all operands but the first are initializers: backends
                          take a convolution only with constant weights */
    bool all_constant; /* all operands are initializers */
    bool open;         /* the sizes of the inputs are known only at run time */
    bool partly_open;  /* ... but for some of them */
    bool compiled;     /* run the compiled model, not node by node */
    uint32_t n;        /* of the operands in[] */
    struct byi_tensor in[MAX_OPERANDS];
    bool constant[MAX_OPERANDS]; /* whether in[i] is an initializer */
};

/* draw.c: numbers, shapes, operands, attributes. Bounds are inclusive. */
int64_t draw_int(struct draw *d, int64_t low, int64_t high);
bool draw_chance(struct draw *d, int percent);
/* Draw sizes, mostly from 1 to 7, now and then 0, or up to 70. Returns the
 * rank, now and then up to 8 if `high` is 4.
 */
uint32_t draw_shape(struct draw *d, uint32_t low, uint32_t high, int64_t *dims);
/* Draw dims that broadcast to those of `to`: leading ones are dropped, and some
 * become 1. Returns the rank. */
uint32_t draw_narrower(struct draw *d, uint32_t rank, const int64_t *to,
                       int64_t *dims);
/* An axis, counted from either end. */
int64_t draw_axis(struct draw *d, uint32_t rank);
/* Add a random tensor as the node's next operand. */
struct byi_tensor *draw_operand(struct draw *d, enum byoc_dtype dtype,
                                uint32_t rank, const int64_t *dims,
                                enum distribution distribution);
/* Add an operand with these integers: a vector, or a scalar if n < 0; an
 * initializer if `constant`. */
void draw_ints(struct draw *d, enum byoc_dtype dtype, int64_t n,
               const int64_t *values, bool constant);
/* The same for floats, in float32. Returns the operand. */
struct byi_tensor *draw_floats(struct draw *d, int64_t n, const double *values,
                               bool constant);
/* Add an operand of random shape, of the case's type and distribution. */
void draw_same(struct draw *d);
/* Add a quantisation scale, and a zero point of the case's type: each is a
 * scalar or a vector of one element. */
void draw_scale(struct draw *d, float value);
void draw_zero_point(struct draw *d);
/* Leave the next operand out. */
void draw_nothing(struct draw *d);
void draw_attr_int(struct draw *d, const char *name, int64_t v);
void draw_attr_float(struct draw *d, const char *name, float v);
void draw_attr_string(struct draw *d, const char *name, const char *v);
void draw_attr_ints(struct draw *d, const char *name, size_t n,
                    const int64_t *v);
void draw_attr_floats(struct draw *d, const char *name, size_t n,
                      const float *v);
void draw_attr_words(struct draw *d, const char *name, size_t n,
                     const char *const *v);
void draw_attr_tensor(struct draw *d, const char *name, enum byoc_dtype dtype,
                      uint32_t rank, const int64_t *dims,
                      enum distribution distribution);
/* The same for a vector of n given numbers. */
void draw_attr_vector(struct draw *d, const char *name, enum byoc_dtype dtype,
                      int64_t n, const double *values);
/* Add another node to the model's graph, or to a body; blanks separate names,
 * "-" is the empty name. draw_attr_...() extend it from now on. */
void draw_node(struct draw *d, Onnx__GraphProto *graph, const char *op,
               const char *in, const char *out);
/* Add the case's node to the graph now, so that the following nodes can read
 * it.
 */
void draw_place_node(struct draw *d);
/* Set the names that the node reads and makes, instead of x0, x1, ... and y0,
 * y1, ... (NULL: keep them). draw_attr_...() extend the node from now on. */
void draw_set_names(struct draw *d, const char *in, const char *out);
/* Add a graph with inputs and outputs of these names as attribute `name` of the
 * node. */
Onnx__GraphProto *draw_body(struct draw *d, const char *name, const char *in,
                            const char *out);
/* Set the outputs of a body; blanks separate the names. */
void draw_body_results(struct draw *d, Onnx__GraphProto *body, const char *out);
/* Returns a node that is in no graph yet. */
Onnx__NodeProto *draw_new_node(struct draw *d, const char *op);
/* Import a version of a domain. */
void draw_opset(struct draw *d, const char *domain, int64_t version);
/* Set the type of a body's input. */
void draw_body_type(struct draw *d, Onnx__GraphProto *graph, uint32_t input,
                    enum byoc_dtype dtype, uint32_t rank);
/* Begin a model of the node `op` with `results` outputs; domain NULL is
 * ai.onnx. draw_pack() returns its *n bytes, which belong to the case's arena;
 * draw_end() frees the arena. */
void draw_begin(struct draw *d, uint64_t seed, const char *op, int64_t opset,
                const char *domain, enum byoc_dtype dtype, bool wide,
                uint32_t results);
uint8_t *draw_pack(struct draw *d, size_t *n);
void draw_end(struct draw *d);

/* --- wrap.c: the forms of a case, which depend on its seed ---------------- */

/* Returns an opset for the current case: at times another one than the table's
 * at which the importer has the same row. */
int64_t wrap_opset(uint64_t seed);
/* Choose how to declare operands; call before they are drawn. */
void wrap_operands(struct draw *d, uint64_t seed);
/* Put the node, once its operands are drawn, into a branch, a loop or a
 * function, or leave it in the graph. */
void wrap_node(struct draw *d, uint64_t seed);

/* --- cases*.c */
/* An operator, and how to draw a call of it. */
struct op_case {
    const char *op;
    int64_t opset;
    const char *types;            /* letters, see cases.c */
    void (*make)(struct draw *d); /* draws operands and attributes */
    enum distribution distribution;
    uint32_t results;
    double bound;       /* of |found - expected| / (1 + |expected|) */
    const char *domain; /* NULL: ai.onnx */
    bool compiled;      /* run the compiled model, not node by node */
};
/* A list of operators to draw. */
struct op_table {
    const struct op_case *at;
    uint32_t n;
};
extern const struct op_table op_cases_compute; /* cases.c      */
extern const struct op_table op_cases_layers;  /* cases_layers.c */
extern const struct op_table op_cases_move;    /* cases_move.c */
extern const struct op_table op_cases_image;   /* cases_image.c */
extern const struct op_table op_cases_more;    /* cases_more.c */
extern const struct op_table op_cases_control; /* cases_control.c */
extern const struct op_table op_cases_contrib; /* cases_contrib.c */
extern const struct op_table op_cases_ml;      /* cases_ml.c   */
/* The case being made: generators read its distribution. */
extern const struct op_case *op_now;
/* Make op_now the first or next operator; only: skip those of other names.
 * Returns false after the last one. */
bool next_op(const char *only);
/* The backend that models are compiled for; NULL: native kernels. */
extern const char *plugin_now;

/* explained.c: the known reason why ONNX Runtime's result differs from the
 * standard's in this case, or NULL. */
const char *explained(const struct draw *d);

/* Whether an operand has a NaN. */
bool any_nan(const struct draw *d);

/* compiled.c: compile and run the model at `path`, with --keep-nan if an
 * operand has a NaN, since backends may lose it otherwise. The results are in
 * d's arena. */
enum byoc_status compiled_run(const char *path, struct draw *d,
                              const struct byi_tensor *inputs,
                              uint32_t n_inputs, struct byi_tensor *out,
                              uint32_t *n_out, struct byoc_error *err);

/* hostile.c: run the current case's models with one fault at a time. Returns
 * how many failed; adds the number of the others to *done. */
long hostile_run(enum byoc_dtype dtype, long *done);

/* ort.c: open ONNX Runtime's C library. Returns false, with a message on
 * stderr, if that fails. */
bool ort_open(const char *library);
/* Compute the results, in the arena. Returns false, with the reason in `why`,
 * if ONNX Runtime refuses the model. */
bool ort_run(const void *model, size_t n, const struct draw *d,
             struct byi_arena *arena, struct byi_tensor *out, uint32_t *n_out,
             char *why, size_t why_bytes);

#endif
