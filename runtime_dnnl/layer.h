/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer.h: one interface to oneDNN 2.6 and 3.x. Only
 * layer_dnnl.h includes dnnl.h, for layer*.c and prim_*.c. Enumerators and
 * signatures differ between the major versions, so the version is fixed when
 * these files are compiled.
 *
 * Tensors are described by values of struct byi_desc. These can express every
 * layout except those that oneDNN chooses for packed weights, which stay inside
 * a primitive. Creators first call the checks of faults.c, which refuse
 * descriptors that are known to cause crashes or wrong results. */
#ifndef BYI_DNNL_LAYER_H
#define BYI_DNNL_LAYER_H

#include "core/base/base.h"
#include "runtime_dnnl/operators.h"

/* Bytes after the end of a buffer that oneDNN 2.6 may read. */
enum { BYI_DNNL_SLACK = 64 };

/* --- layer.c: the library ------------------------------------------------ */

/* oneDNN's engine. There is one per process, which all threads share and which
 * is never freed, like oneDNN's own globals. byi_dnnl_open returns NULL, with a
 * message in err, if the library has another major version than the headers, or
 * no CPU engine. */
struct byi_dnnl;
const struct byi_dnnl *byi_dnnl_open(struct byoc_error *err);
/* The version, such as "3.12.1"; and version and instruction set, such as
 * "oneDNN 3.12 avx512_core_bf16". The latter must be the same when an artifact
 * is compiled and loaded. Both are empty before the first byi_dnnl_open. */
const char *byi_dnnl_version(void);
const char *byi_dnnl_compat(void);
const char *byi_dnnl_isa(void); /* "avx512_core_bf16" */
int byi_dnnl_major(void);       /* of the headers: 2 or 3 */
/* Whether oneDNN supports this element type for moves and casts. */
bool byi_dnnl_has_dtype(enum byoc_dtype dtype);

/* Whether a region computes with this type. Kernels compute float16 and
 * bfloat16 in float32. */
static inline bool byi_dn_is_float(enum byoc_dtype dtype)
{
    return dtype == BYOC_F32 || byi_dtype_is_half(dtype);
}

/* --- primitives ---------------------------------------------------------- */

struct byi_prim;

/* clang-format off */
#define BYI_OPERATORS(X)                                                       \
    X(conv) X(matmul) X(attention) X(pool) X(softmax) X(eltwise) X(binary)     \
    X(reduce) X(resample) X(layer_norm) X(batch_norm) X(lrn) X(prelu)          \
    X(concat) X(reorder) X(rnn) X(qconv) X(qelementwise)
/* clang-format on */

/* Create a primitive from its primitive descriptor, without generating code;
 * free it with byi_prim_free. `posts` may be NULL. Thread-safe. Errors:
 * BYOC_EUNSUPPORTED (err says what oneDNN lacks), BYOC_ENOMEM. */
#define BYI_CREATOR(name)                                                      \
    enum byoc_status byi_prim_new_##name(                                      \
        const struct byi_dnnl *lib, const struct byi_dnnl_##name *p,           \
        const struct byi_posts *posts, struct byi_prim **prim,                 \
        struct byoc_error *err)
#define BYI_CREATOR_DECLARED(name) BYI_CREATOR(name);
BYI_OPERATORS(BYI_CREATOR_DECLARED)

/* Generate the code (about 0.3 ms; microseconds when oneDNN has it cached).
 * Errors: BYOC_ENOMEM, BYOC_EBACKEND. */
enum byoc_status byi_prim_build(struct byi_prim *prim, struct byoc_error *err);
/* Free the code; queries still work. */
void byi_prim_unbuild(struct byi_prim *prim);
/* Add a reference and return the primitive. byi_prim_free drops a reference,
 * and frees the primitive with the last one. */
struct byi_prim *byi_prim_ref(struct byi_prim *prim);
void byi_prim_free(struct byi_prim **prim);
/* byi_prim_note attaches a pointer to the primitive, which does not own it;
 * byi_prim_noted returns the pointer, or NULL if there is none. */
void byi_prim_note(struct byi_prim *prim, const void *note);
const void *byi_prim_noted(const struct byi_prim *prim);
/* prim_layout.c. Find the layouts that oneDNN chooses where p leaves them open,
 * as names ("NCHW16c", "OIHW16i16o") of less than n characters. A name is "" if
 * the layout has none, as for weights in groups, or if there is only a
 * reference implementation. Errors: those of creating the convolution. */
enum byoc_status byi_conv_layouts(const struct byi_dnnl *lib,
                                  const struct byi_dnnl_conv *p, char *data,
                                  char *kernel, size_t n,
                                  struct byoc_error *err);
/* The name of the implementation, such as "brgconv:avx512_core". */
const char *byi_prim_impl(const struct byi_prim *prim);
/* Whether byoc's own kernels run the convolution, without post-ops, on
 * channels-first data, faster than after a reorder of the data. */
bool byi_conv_reads_planes(const struct byi_dnnl_conv *p);
/* Whether byoc's own kernels run the convolution, a struct byi_dnnl_conv, or
 * the product, a struct byi_dnnl_matmul, with the post-ops. */
bool byi_conv_is_fast(const void *params, const struct byi_posts *posts);
bool byi_matmul_is_fast(const void *params, const struct byi_posts *posts);
/* Whether a qconv primitive computes the post-ops. */
bool byi_qconv_has_posts(const struct byi_posts *posts);
/* Whether the primitive is a reference implementation, which is far slower than
 * the others. */
bool byi_prim_is_ref(const struct byi_prim *prim);
/* The largest number of terms for which a reference implementation is accepted.
 * Terms are the elements of the result times the products that are summed for
 * each, or the elements of a window. */
enum { BYI_REF_TERMS = 4096 };
/* If the primitive is a reference implementation and has more terms, free it,
 * set *prim to NULL and fail with BYOC_EUNSUPPORTED. `what` is the operator's
 * name. */
enum byoc_status byi_prim_check(struct byi_prim **prim, const char *what,
                                int64_t terms, struct byoc_error *err);
/* Bytes of scratch memory that a run needs. */
uint64_t byi_prim_scratch(const struct byi_prim *prim);
/* Bytes of an argument in the layout that the primitive needs. For a primitive
 * on byoc's kernels only those of packed weights are defined. */
uint64_t byi_prim_bytes(const struct byi_prim *prim, int arg);
/* Whether the primitive needs the argument in exactly this layout. */
bool byi_prim_needs(const struct byi_prim *prim, int arg,
                    const struct byi_desc *desc);
/* Whether two primitives need these arguments in the same layout. */
bool byi_prim_same(const struct byi_prim *a, int arg_a,
                   const struct byi_prim *b, int arg_b);
/* Create the reorder from `src` to the layout that `prim` needs for `arg`; free
 * it with byi_prim_free. Errors: BYOC_EUNSUPPORTED, BYOC_ENOMEM. */
enum byoc_status byi_pack_new(const struct byi_dnnl *lib,
                              const struct byi_desc *src,
                              const struct byi_prim *prim, int arg,
                              struct byi_prim **reorder,
                              struct byoc_error *err);

/* --- calls: a primitive with memory, ready to run ------------------------ */

struct byi_bound_call;
/* Bind a primitive to the n arguments args[], at data[], which may be NULL and
 * set later by byi_bound_set. `scratch` has byi_prim_scratch bytes, is 64-byte
 * aligned, and is used by one call at a time. The primitive must be built and
 * must outlive the call. Free the call with byi_bound_free. Errors:
 * BYOC_ENOMEM, BYOC_EINTERNAL (oneDNN refused an argument). */
enum byoc_status byi_bound_new(const struct byi_dnnl *lib,
                               const struct byi_prim *prim, uint32_t n,
                               const int *args, void *const *data,
                               void *scratch, struct byi_bound_call **call,
                               struct byoc_error *err);
/* Set the data of argument args[slot]. */
void byi_bound_set(struct byi_bound_call *call, uint32_t slot, void *data);
/* Run the call on the calling thread's OpenMP team; returns when it has ended.
 * Errors: BYOC_EBACKEND. */
enum byoc_status byi_bound_run(const struct byi_bound_call *call,
                               struct byoc_error *err);

/* Convolutions of byoc's own kernels that run in bands (kernels/bands.h). */
struct byi_bands;
/* Plan to run n > 1 primitives, each of which reads the result of the one
 * before, in bands. NULL if they should run one after the other. The result is
 * in `arena` and refers to the primitives. */
struct byi_bands *byi_bands_new(struct byi_arena *arena,
                                struct byi_prim *const *prims, uint32_t n);
/* Bytes of scratch memory that a run needs, as the scratch of the first call;
 * those of the others are not used. */
uint64_t byi_bands_scratch(const struct byi_bands *bands);
/* The name of the bands' implementation. */
const char *byi_bands_impl(const struct byi_bands *bands);
/* Run the calls of the primitives in bands. */
void byi_bands_run(const struct byi_bands *bands,
                   struct byi_bound_call *const *calls);
/* Free the call; *call may be NULL and becomes NULL. */
void byi_bound_free(struct byi_bound_call **call);

/* --- strides.c: strides of axes of size 1 -------------------------------- */

/* How a primitive is to interpret layouts that differ only in the strides of
 * axes of size 1. */
enum byi_unit_axes {
    BYI_UNITS_PLAIN, /* as row-major if possible */
    /* as channels-last if possible, so that oneDNN chooses its channels-last
     * convolution or pooling even for one channel or one pixel */
    BYI_UNITS_WINDOWS
};
/* Set order[] to the axes by falling strides; equal ones keep their order. */
void byi_axes_sort(uint32_t rank, const int64_t *strides, uint32_t *order);
/* Describe the same memory with canonical strides for oneDNN. */
struct byi_desc byi_desc_canonical(const struct byi_desc *desc,
                                   enum byi_unit_axes units);
/* Elements of memory that the tensor spans, including gaps. */
int64_t byi_desc_span(const struct byi_desc *desc);
/* Whether the axes are in row-major order, or channels-last. Gaps are allowed,
 * and axes of size 1 ignored. */
bool byi_desc_is_row_major(const struct byi_desc *desc);
bool byi_desc_is_channels_last(const struct byi_desc *desc);

/* --- faults.c: descriptors that oneDNN does not compute correctly --------- */

/* The checks return NULL if the descriptor is supported, otherwise the reason;
 * byi_fault_elt_only() returns one if a post-op is not elementwise.
 * `major` is oneDNN's major version; `posts` may be NULL. */
const char *byi_fault_desc(const struct byi_desc *desc);
const char *byi_fault_posts(int major, const struct byi_posts *posts);
const char *byi_fault_conv(int major, const struct byi_dnnl_conv *p,
                           const struct byi_posts *posts);
/* Whether the batch axes of a matrix product's operand are stored in another
 * order than the shape's, including axes of size 1, whose strides oneDNN reads.
 */
bool byi_desc_permutes_batch(const struct byi_desc *desc);
const char *byi_fault_matmul(int major, const struct byi_dnnl_matmul *p,
                             const struct byi_posts *posts);
const char *byi_fault_binary(int major, const struct byi_dnnl_binary *p,
                             const struct byi_posts *posts);
const char *byi_fault_elt_only(const struct byi_posts *posts);
const char *byi_fault_batch_norm(const struct byi_posts *posts);
const char *byi_fault_pool(int major, const struct byi_dnnl_pool *p);
/* Whether the window of an output covers no element of the input along `axis`.
 */
bool byi_window_misses_input(const struct byi_dnnl_window *w,
                             const struct byi_desc *src,
                             const struct byi_desc *dst, uint32_t axis);
const char *byi_fault_prelu(const struct byi_dnnl_prelu *p);
/* Whether the last bits of a float32 product or convolution, which oneDNN runs
 * with the implementation `impl`, depend on the number of threads. `axes` is
 * the number of axes of a convolution's window, 0 for a product. */
bool byi_varies_by_threads(int major, const char *impl, uint32_t axes);
/* Checks after creation: they refuse implementations, named `impl`, that are
 * wrong for these post-ops. */
const char *byi_fault_pool_impl(int major, const struct byi_dnnl_pool *p,
                                const struct byi_posts *posts,
                                const char *impl);
const char *byi_fault_impl(int major, const struct byi_dnnl_conv *p,
                           const struct byi_posts *posts, const char *impl);

#endif
