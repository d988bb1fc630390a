/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer.h: oneDNN 2.6 and 3.x behind one face. Only layer*.c and
 * prim_*.c include dnnl.h; enumerators and signatures differ between the
 * majors, so which one it is is settled when they are compiled.
 *
 * Tensors are described by value (struct byi_desc); the only layouts this
 * header cannot spell are the ones oneDNN picks for packed weights, and those
 * stay inside a primitive. Creators first ask the guards (guards.c) about
 * descriptors that are known to crash or to give wrong results.
 */
#ifndef BYI_DNNL_LAYER_H
#define BYI_DNNL_LAYER_H

#include "core/base/base.h"
#include "runtime_dnnl/operators.h"

/* bytes after a buffer that 2.6 may read */
enum { BYI_DNNL_SLACK = 64 };

/* --- layer.c: the library ------------------------------------------------ */

/* The engine; one per process, shared by all threads. NULL and a message in
 * err when the library cannot serve: another major than compiled for, no CPU
 * engine. Never freed: oneDNN's own globals live as long. */
struct byi_dnnl;
const struct byi_dnnl *byi_dnnl_open(struct byoc_error *err);
/* "3.12.1", and "oneDNN 3.12 avx512_core_bf16", what the choices made for an
 * artifact rest on; empty before the first byi_dnnl_open. */
const char *byi_dnnl_version(void);
const char *byi_dnnl_compat(void);
const char *byi_dnnl_isa(void); /* "avx512_core_bf16" */
int byi_dnnl_major(void);       /* of the headers: 2 or 3 */
/* Does oneDNN have this element type for data that is moved or cast? */
bool byi_dnnl_has_dtype(enum byoc_dtype dtype);

/* --- primitives ---------------------------------------------------------- */

struct byi_prim;

#define BYI_OPERATORS(X)                                                       \
    X(conv)                                                                    \
    X(matmul)                                                                  \
    X(pool)                                                                    \
    X(softmax)                                                                 \
    X(eltwise)                                                                 \
    X(binary)                                                                  \
    X(reduce)                                                                  \
    X(resample)                                                                \
    X(layer_norm)                                                              \
    X(batch_norm)                                                              \
    X(lrn)                                                                     \
    X(prelu)                                                                   \
    X(concat)                                                                  \
    X(reorder)                                                                 \
    X(rnn)

/* Make a primitive's descriptor; no code is generated yet. On BYOC_EUNSUPPORTED
 * err says what is not to be had. Any thread. */
#define BYI_CREATOR(name)                                                      \
    enum byoc_status byi_##name##_new(                                         \
        const struct byi_dnnl *lib, const struct byi_##name *p,                \
        const struct byi_posts *posts, struct byi_prim **prim,                 \
        struct byoc_error *err);
BYI_OPERATORS(BYI_CREATOR)

/* Generate the code (about 0.3 ms; microseconds when oneDNN has it cached). */
enum byoc_status byi_prim_build(struct byi_prim *prim, struct byoc_error *err);
/* Let the code go again: what is left answers questions. */
void byi_prim_unbuild(struct byi_prim *prim);
/* One more reference; byi_prim_free drops one, and frees with the last. */
struct byi_prim *byi_prim_ref(struct byi_prim *prim);
void byi_prim_free(struct byi_prim **prim);
/* What the caller wants to remember with it; NULL at first. */
void byi_prim_note(struct byi_prim *prim, const void *note);
const void *byi_prim_noted(const struct byi_prim *prim);
/* prim_layout.c: the layouts that the primitive picks where p leaves them to
 * it, as names ("NCHW16c", "OIHW16i16o") of less than n characters; "" where
 * there is no such name, as for weights in groups, or only a reference
 * implementation. */
enum byoc_status byi_conv_layouts(const struct byi_dnnl *lib,
                                  const struct byi_conv *p, char *data,
                                  char *kernel, size_t n,
                                  struct byoc_error *err);
/* The implementation chosen: "brgconv:avx512_core". */
const char *byi_prim_impl(const struct byi_prim *prim);
/* Is it one of the reference implementations, far slower than the rest? */
bool byi_prim_is_ref(const struct byi_prim *prim);
/* Results of more elements than this are never left to one. */
enum { BYI_REF_ELEMENTS = 4096 };
/* Refuse to do so, with BYOC_EUNSUPPORTED; `what`: the operator. Frees the
 * primitive then. */
enum byoc_status byi_prim_check(struct byi_prim **prim, const char *what,
                                int64_t elements, struct byoc_error *err);
uint64_t byi_prim_scratch(const struct byi_prim *prim);
/* Bytes of an argument as the primitive wants it. */
uint64_t byi_prim_bytes(const struct byi_prim *prim, int arg);
/* Does it want the argument exactly so? */
bool byi_prim_wants(const struct byi_prim *prim, int arg,
                    const struct byi_desc *desc);
/* Do two primitives want these arguments in the same layout? */
bool byi_prim_same(const struct byi_prim *a, int arg_a,
                   const struct byi_prim *b, int arg_b);
/* The reorder from `src` to what `prim` wants as `arg`. */
enum byoc_status byi_pack_new(const struct byi_dnnl *lib,
                              const struct byi_desc *src,
                              const struct byi_prim *prim, int arg,
                              struct byi_prim **reorder,
                              struct byoc_error *err);

/* --- calls: a primitive with memory, ready to run ------------------------ */

struct byi_bound;
/* data may be NULL, to be set later. scratch: of byi_prim_scratch bytes,
 * 64-byte aligned, used by one call at a time. The primitive must be built
 * and outlive the call. */
enum byoc_status byi_bound_new(const struct byi_dnnl *lib,
                               const struct byi_prim *prim, uint32_t n,
                               const int *args, void *const *data,
                               void *scratch, struct byi_bound **call,
                               struct byoc_error *err);
void byi_bound_set(struct byi_bound *call, uint32_t slot, void *data);
/* Run on the calling thread's OpenMP team; returns when it is done. */
enum byoc_status byi_bound_run(const struct byi_bound *call,
                               struct byoc_error *err);
void byi_bound_free(struct byi_bound **call);

/* --- strides.c: strides of axes of size 1 -------------------------------- */

/* How a primitive reads layouts that differ in such strides only. */
enum byi_unit_axes {
    BYI_UNITS_PLAIN,  /* as row-major where they can be read so        */
    BYI_UNITS_WINDOWS /* as channels-last where they are written so: by
                         these windows over one channel or pixel are
                         matched with their implementations            */
};
/* The same memory, described in the one way that oneDNN is given. */
struct byi_desc byi_desc_canonical(const struct byi_desc *desc,
                                   enum byi_unit_axes units);
/* Do the axes lie in row-major or channels-last order, gaps allowed? Those of
 * size 1 do not count. */
bool byi_desc_is_plain(const struct byi_desc *desc);
bool byi_desc_is_last(const struct byi_desc *desc);

/* --- guards.c: descriptors oneDNN gets wrong ----------------------------- */

/* NULL when fine, else the reason. `major`, `posts`: as for the creators. */
const char *byi_guard_desc(const struct byi_desc *desc);
const char *byi_guard_posts(int major, const struct byi_posts *posts);
const char *byi_guard_conv(int major, const struct byi_conv *p,
                           const struct byi_posts *posts);
const char *byi_guard_matmul(int major, const struct byi_matmul *p,
                             const struct byi_posts *posts);
const char *byi_guard_binary(int major, const struct byi_binary *p,
                             const struct byi_posts *posts);
const char *byi_guard_elt_only(const struct byi_posts *posts);
const char *byi_guard_pool(int major, const struct byi_pool *p);
const char *byi_guard_prelu(const struct byi_prelu *p);
/* After the choice: an implementation that is wrong for these post-ops. */
const char *byi_guard_pool_impl(int major, const struct byi_pool *p,
                                const struct byi_posts *posts,
                                const char *impl);
const char *byi_guard_impl(int major, const struct byi_conv *p,
                           const struct byi_posts *posts, const char *impl);

#endif
