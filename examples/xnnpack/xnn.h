/* SPDX-License-Identifier: Apache-2.0 */
/* xnn.h: a region as a program of XNNPACK's operators.
 *
 *   accept.c   which matches XNNPACK can take, and why not the others
 *   build.c    a region becomes a program: operators over tensors
 *   kinds.c    how an operator of a program becomes one of XNNPACK's
 *   run.c      memory, threads, running
 *   xnnpack.c  the table of patterns and the backend
 */
#ifndef XNN_H
#define XNN_H

#include <byoc/backend.h>
#include <byoc/graph.h>

#include <xnnpack.h>

#define NONE UINT32_MAX
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* How a value lies in memory: its axes in the model's order, or, of four axes
 * (N, C, H, W), as (N, H, W, C). Other ranks have the first form only. */
enum form { PLAIN, LAST, N_FORMS };

/* Four sizes of an image, whatever the order they are written in. */
struct image {
    size_t n, c, h, w;
};

/* --- programs ----------------------------------------------------------- */

enum where {
    INPUT,    /* of the run                                          */
    CONSTANT, /* `data`: the program's own copy                      */
    MEMORY,   /* of the state, from `at` on                          */
    OUTPUT    /* of the run; written by one operator, read by none   */
};

struct tensor {
    enum where where;
    uint32_t index; /* of the run's inputs, its outputs */
    float *data;
    size_t bytes;
    uint64_t at;
    uint32_t last; /* the operator that reads it last; NONE */
};

struct window {
    uint32_t pad[4]; /* top, left, bottom, right */
    uint32_t size[2], stride[2], dilation[2];
    /* rows and columns of a transposed convolution's output beyond what the
     * others say */
    uint32_t more[2];
    uint32_t groups;
    size_t in, out; /* channels of a group */
};

struct kind;

/* One operator; which members count says its kind. */
struct op {
    const struct kind *kind;
    uint32_t in[2], out;  /* tensors; in[1]: NONE */
    struct image image;   /* of in[0] */
    size_t rows, columns; /* of matrices; elements: 1 row                */
    size_t n_dims[2], dims[2][XNN_MAX_TENSOR_DIMS]; /* of in[0], in[1]   */
    struct window window;
    size_t first, width; /* of joined rows: where these begin, all */
    float min, max;      /* what results are clamped to */
    float alpha;
    const float *weights, *bias; /* of the region; bias: NULL */
    size_t stride[4];            /* of weights, in elements: O, H, W, I */
    double work;                 /* multiplications, about */
    int transposed;              /* weights of a matrix product: (in, out) */
    const char *source;
};

struct kind {
    const char *name;
    /* Make XNNPACK's operator; NULL: move() does the work. */
    enum xnn_status (*create)(const struct op *op, xnn_operator_t *made);
    enum xnn_status (*setup)(const struct op *op, xnn_operator_t made,
                             const float *a, const float *b, float *out,
                             pthreadpool_t pool);
    void (*move)(const struct op *op, const float *in, float *out);
};

struct program {
    struct byoc_graph *graph;
    uint32_t n_tensors, n_ops;
    struct tensor *tensors;
    struct op *ops;
    uint64_t bytes; /* of a state's memory */
};

/* --- kinds.c ------------------------------------------------------------ */

extern const struct kind kind_convolution, kind_deconvolution, kind_dense,
    kind_max_pool, kind_average_pool, kind_global_average_pool, kind_join;
extern const struct kind kind_to_last, kind_from_last, kind_copy;

/* The kind for an operator of the IR that works on rows or on two operands;
 * NULL for other operators. */
const struct kind *kind_of(const char *name);

/* (n, c, h, w) of `in` as (n, h, w, c). */
void to_last(struct image image, const float *in, float *out);

/* --- build.c ------------------------------------------------------------ */

/* Takes `graph` over, also where it fails. */
struct byoc_fail *program_new(const struct byoc_host *host,
                              struct byoc_graph *graph,
                              struct program **program);
void program_free(const struct byoc_host *host, struct program *program);

/* The sizes of `dims`, which are in the order of `layout`: "NCHW", "NHWC"; 0:
 * another layout. */
int image_of(struct image *image, const char *layout, const int64_t *dims);

/* --- accept.c ------------------------------------------------------------ */

const char *accept_convolution(const struct byoc_host *,
                               const struct byoc_match *);
const char *accept_dense(const struct byoc_host *, const struct byoc_match *);
const char *accept_pool(const struct byoc_host *, const struct byoc_match *);
const char *accept_global_pool(const struct byoc_host *,
                               const struct byoc_match *);
const char *accept_axis(const struct byoc_host *, const struct byoc_match *);
const char *accept_prelu(const struct byoc_host *, const struct byoc_match *);
const char *accept_float(const struct byoc_host *, const struct byoc_match *);

/* --- run.c ---------------------------------------------------------------- */

struct byoc_fail *xnn_load(const struct byoc_host *host,
                           const struct byoc_region *region, void **compiled);
void xnn_unload(const struct byoc_host *host, void *compiled);
struct byoc_fail *xnn_state_new(const struct byoc_host *host, void *compiled,
                                void **state);
void xnn_state_free(const struct byoc_host *host, void *compiled, void *state);
struct byoc_fail *xnn_run(const struct byoc_host *host, void *compiled,
                          void *state, const struct byoc_run_args *args);
/* The name of the XNNPACK operator that runs a loaded region's first kernel. */
const char *xnn_name(const void *compiled);

#endif
