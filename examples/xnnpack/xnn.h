/* SPDX-License-Identifier: Apache-2.0 */
/* xnn.h: shared by the files of the plug-in, which compiles a region to a
 * program of XNNPACK's operators.
 *
 *   accept.c   accepts the matches that XNNPACK supports
 *   build.c    compiles a region to a program: operators and their tensors
 *   kinds.c    creates XNNPACK's operators for those of a program
 *   run.c      loads regions, creates states, runs
 *   xnnpack.c  the table of patterns and the backend
 */
#ifndef XNN_H
#define XNN_H

#include <byoc/backend.h>
#include <byoc/graph.h>

#include <xnnpack.h>

#define NONE UINT32_MAX
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The layout of a value. PLAIN is the order of the model's axes. LAST is (N, H,
 * W, C) for axes (N, C, H, W) and exists for rank 4 only. */
enum layout { PLAIN, LAST, N_LAYOUTS };

/* The four sizes of an image, in any layout. */
struct image {
    size_t n, c, h, w;
};

/* --- programs ----------------------------------------------------------- */

/* Where the memory of a tensor is. */
enum where {
    INPUT,    /* an input of the run                                     */
    CONSTANT, /* `data`, the program's own copy                          */
    MEMORY,   /* the state's memory, from `offset` on                    */
    OUTPUT    /* an output of the run; one operator writes it, none reads */
};

/* A tensor of a program. */
struct tensor {
    enum where where;
    uint32_t index;  /* of an INPUT or OUTPUT */
    float *data;     /* of a CONSTANT */
    size_t bytes;    /* of its elements */
    uint64_t offset; /* of a MEMORY, in bytes */
    uint32_t last;   /* the operator that reads it last, or NONE */
};

/* The window of a convolution or pooling. Pairs are for rows and columns. */
struct window {
    uint32_t pad[4]; /* top, left, bottom, right */
    uint32_t size[2], stride[2], dilation[2];
    uint32_t output_padding[2]; /* of a transposed convolution */
    uint32_t groups;
    size_t in, out; /* channels of one group */
};

struct kind;

/* An operator of a program; its kind determines which members it uses. */
struct op {
    const struct kind *kind;
    uint32_t in[2], out;  /* indices of tensors; in[1] may be NONE */
    struct image image;   /* sizes of in[0] */
    size_t rows, columns; /* of matrices; elementwise operators have 1 row */
    size_t n_dims[2], dims[2][XNN_MAX_TENSOR_DIMS]; /* of in[0], in[1]   */
    struct window window;
    size_t first, width; /* of a concatenation: the operand's first column in
                          * the result, and the length of the result's rows */
    float min, max;      /* range to clamp results to */
    float alpha;
    const float *weights, *bias; /* the region's constants; bias or NULL */
    size_t stride[4];            /* of weights, in elements: O, H, W, I */
    double work;                 /* approximate number of multiplications */
    int transposed;              /* not 0: the weights of a matrix product are
                                  * (in, out) */
    const char *source; /* the model's nodes; the graph owns the text */
};

/* How an operator of a program is computed: by an operator of XNNPACK, or by
 * move(). */
struct kind {
    const char *name;
    /* create XNNPACK's operator; bind it to addresses. Both NULL: move()
     * computes it */
    enum xnn_status (*create)(const struct op *op, xnn_operator_t *xnn_op);
    enum xnn_status (*setup)(const struct op *op, xnn_operator_t xnn_op,
                             const float *a, const float *b, float *out,
                             pthreadpool_t pool);
    void (*move)(const struct op *op, const float *in, float *out);
};

/* A region, as XNNPACK's operators in the order in which they run. */
struct program {
    struct byoc_graph *graph;
    uint32_t n_tensors, n_ops;
    struct tensor *tensors;
    struct op *ops;
    uint64_t bytes; /* size of a state's memory */
};

/* --- kinds.c ------------------------------------------------------------ */

extern const struct kind kind_convolution, kind_deconvolution, kind_dense,
    kind_max_pool, kind_average_pool, kind_global_average_pool,
    kind_concatenate;
extern const struct kind kind_to_nhwc, kind_to_nchw, kind_copy;

/* The kind for an operator of the IR that works on rows or on two operands;
 * NULL for other operators. */
const struct kind *kind_of(const char *name);

/* Copy an image of layout (n, c, h, w) to `out`, in layout (n, h, w, c). */
void convert_to_nhwc(struct image image, const float *in, float *out);

/* --- build.c ------------------------------------------------------------ */

/* Compile a graph. *program owns the graph from now on; on failure the graph is
 * freed, and *program is not set. The region's constants must live as long as
 * the program, which program_free frees. */
struct byoc_fail *program_new(const struct byoc_host *host,
                              struct byoc_graph *graph,
                              struct program **program);
void program_free(const struct byoc_host *host, struct program *program);

/* Set the sizes of an image from its four dims, which are in the order of
 * `layout`, "NCHW" or "NHWC". Returns 0 for any other layout, otherwise 1. */
int image_of(struct image *image, const char *layout, const int64_t *dims);

/* --- accept.c: predicates of rows ----------------------------------------- */

/* Each returns NULL to accept the match, otherwise the reason to refuse it,
 * which the host or this plug-in owns. */

const char *accept_convolution(const struct byoc_host *,
                               const struct byoc_match *);
const char *accept_dense(const struct byoc_host *, const struct byoc_match *);
const char *accept_pool(const struct byoc_host *, const struct byoc_match *);
const char *accept_global_pool(const struct byoc_host *,
                               const struct byoc_match *);
const char *accept_axis(const struct byoc_host *, const struct byoc_match *);
const char *accept_prelu(const struct byoc_host *, const struct byoc_match *);
const char *accept_float(const struct byoc_host *, const struct byoc_match *);

/* --- run.c: functions of struct byoc_backend ------------------------------ */

struct byoc_fail *xnn_load(const struct byoc_host *host,
                           const struct byoc_region *region, void **compiled);
void xnn_unload(const struct byoc_host *host, void *compiled);
struct byoc_fail *xnn_state_new(const struct byoc_host *host, void *compiled,
                                void **state);
void xnn_state_free(const struct byoc_host *host, void *compiled, void *state);
struct byoc_fail *xnn_run(const struct byoc_host *host, void *compiled,
                          void *state, const struct byoc_run_args *args);
/* The name of the XNNPACK operator that runs a loaded region's first kernel;
 * "view" if the region has none. */
const char *xnn_name(const void *compiled);

#endif
