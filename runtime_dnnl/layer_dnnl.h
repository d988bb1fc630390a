/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer_dnnl.h: declarations that the files of the layer share.
 * Includes dnnl.h, and hides the difference between memory descriptors of 2.x
 * (a struct, passed by address) and 3.x (a handle). */
#ifndef BYI_LAYER_DNNL_H
#define BYI_LAYER_DNNL_H

#include <stdatomic.h>

#include <dnnl.h>

#include "runtime_dnnl/layer.h"
#include "runtime_dnnl/prim_fast.h"

#define BYI_V3 (DNNL_VERSION_MAJOR >= 3)

/* oneDNN's engine. */
struct byi_dnnl {
    dnnl_engine_t engine;
};

/* The narrow arguments of a primitive, of type float16 or bfloat16. oneDNN
 * supports these types on few processors, so its primitives run on float32
 * copies in scratch memory. */
struct byi_narrowing {
    enum byoc_dtype dtype; /* of all arguments but `wide`; 0: none is narrow */
    int wide;              /* enum byi_arg of a float32 argument; -1: none */
    bool adds;             /* the primitive adds to dst, so it reads dst */
    uint32_t binary;       /* bit i: post-op i has an operand */
    uint32_t sources;      /* number of sources of a concatenation */
};

/* A primitive, of oneDNN or with byoc's own kernel; reference-counted. */
struct byi_prim {
    struct byi_dn_fast *fast; /* if not NULL, runs the primitive; pd is NULL */
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim; /* NULL until built */
    atomic_uint users;     /* number of references, without the first */
    const char *impl;      /* owned by pd */
    const void *note;      /* the caller's data */
    /* number of slopes of the prelu among its post-ops, which oneDNN cannot be
     * queried for */
    int64_t slopes;
    bool alone; /* so small that only the calling thread runs it */
    struct byi_narrowing narrow;
    uint64_t copies; /* bytes of the float32 copies of narrow arguments */
};

/* A memory descriptor; `used` is false for an absent tensor. */
struct byi_md {
    bool used;
    dnnl_memory_desc_t md;
};
#if BYI_V3
#define BYI_MD(m) ((m)->used ? (m)->md : NULL)
#define BYI_MD_PTR const_dnnl_memory_desc_t
#else
#define BYI_MD(m) ((m)->used ? &(m)->md : NULL)
#define BYI_MD_PTR const dnnl_memory_desc_t *
#endif

/* Describe a tensor for oneDNN; free *md with byi_md_drop. Errors: BYOC_ENOMEM,
 * BYOC_EUNSUPPORTED (oneDNN lacks the type or layout). */
enum byoc_status byi_md_make(const struct byi_desc *desc,
                             enum byi_unit_axes units, struct byi_md *md,
                             struct byoc_error *err);
void byi_md_drop(struct byi_md *md);

/* The memory descriptors and attributes of a creator's call, which are created
 * and freed together. */
enum { BYI_MAX_MDS = 9 };
struct byi_pieces {
    struct byi_md md[BYI_MAX_MDS];
    uint32_t n;
    dnnl_primitive_attr_t attr;
    int64_t slopes;   /* as in struct byi_prim */
    int64_t elements; /* elements of the largest tensor */
    struct byi_narrowing narrow;
};
/* Make the pieces of a call with n tensors; free them with byi_pieces_drop.
 * Errors: those of byi_md_make, and BYOC_EUNSUPPORTED for the post-ops. */
enum byoc_status byi_pieces_make(struct byi_pieces *pieces, uint32_t n,
                                 const struct byi_desc *const *desc,
                                 const struct byi_posts *posts,
                                 enum byi_unit_axes units,
                                 struct byoc_error *err);
void byi_pieces_drop(struct byi_pieces *pieces);

/* Turn a fault's reason into BYOC_EUNSUPPORTED with that message; NULL is
 * BYOC_OK. */
enum byoc_status byi_fault_status(const char *why, struct byoc_error *err);

/* --- layer_args.c --------------------------------------------------------- */

/* oneDNN's number for an argument, BYI_ARG_*. */
int byi_prim_arg(int arg);
/* oneDNN's descriptor of an argument. */
BYI_MD_PTR byi_prim_query(const struct byi_prim *prim, int arg);

/* --- prim_narrow.c: narrow arguments -------------------------------------- */

/* Find the narrow ones of n tensors. Weights whose layout the primitive chooses
 * are packed as float32. Errors: BYOC_EUNSUPPORTED if some of the other tensors
 * are float32 and some are narrow. */
enum byoc_status byi_narrowing_read(uint32_t n,
                                    const struct byi_desc *const *desc,
                                    const struct byi_posts *posts,
                                    struct byi_narrowing *narrow,
                                    struct byoc_error *err);
/* Whether argument `arg` is narrow. */
bool byi_prim_is_narrow(const struct byi_prim *prim, int arg);
/* Bytes of the float32 copies of all narrow arguments. */
uint64_t byi_narrow_bytes(const struct byi_prim *prim);

/* The float32 copy of a narrow argument. */
struct byi_narrow_copy {
    uint32_t slot; /* the argument's index in the call */
    void (*widen)(const uint16_t *from, float *to, int64_t n);
    void (*narrow)(const float *from, uint16_t *to, int64_t n);
    void *data; /* the narrow argument */
    float *copy;
    int64_t n;          /* number of elements */
    bool reads, writes; /* what the primitive does with the argument */
};
/* Describe the copies, in `buffer`, of the narrow ones among n arguments; free
 * *copies with byi_release. Errors: BYOC_ENOMEM. */
enum byoc_status byi_narrow_copies(const struct byi_prim *prim, uint32_t n,
                                   const int *args, void *const *data,
                                   char *buffer,
                                   struct byi_narrow_copy **copies,
                                   uint32_t *n_copies, struct byoc_error *err);
/* Call byi_narrow_begin before the primitive runs, and byi_narrow_end after it.
 */
void byi_narrow_begin(const struct byi_narrow_copy *copies, uint32_t n);
void byi_narrow_end(const struct byi_narrow_copy *copies, uint32_t n);

/* Declare `pd`, a primitive descriptor of `operation` created with `lib` and
 * the pieces `s`, and `status`, the result of its creation. `type` names the
 * struct of 2.x. BYI_AND adds an argument for 3.x. */
#if BYI_V3
#define BYI_AND(argument) , argument
#define BYI_CREATE(type, operation, ...)                                       \
    dnnl_primitive_desc_t pd = NULL;                                           \
    const dnnl_status_t status = dnnl_##operation##_primitive_desc_create(     \
        &pd, lib->engine, __VA_ARGS__, s.attr)
#else
#define BYI_AND(argument)
#define BYI_CREATE(type, operation, ...)                                       \
    dnnl_primitive_desc_t pd = NULL;                                           \
    dnnl_##type##_desc_t op_;                                                  \
    const dnnl_status_t status = byi_pd_make(                                  \
        dnnl_##operation##_desc_init(&op_, __VA_ARGS__), &op_, &s, lib, &pd)
/* layer.c. The end of every 2.x creator: create the primitive descriptor of the
 * operation descriptor `op`, whose creation returned `status`. */
dnnl_status_t byi_pd_make(dnnl_status_t status, const void *op,
                          const struct byi_pieces *pieces,
                          const struct byi_dnnl *lib,
                          dnnl_primitive_desc_t *pd);
#endif

/* --- layer.c ------------------------------------------------------------- */

/* The end of every creator: free the pieces, and make a primitive of pd, or
 * turn `status` into a message about `what`. */
enum byoc_status byi_prim_wrap(dnnl_status_t status, dnnl_primitive_desc_t pd,
                               struct byi_pieces *pieces, const char *what,
                               struct byi_prim **prim, struct byoc_error *err);

/* Make a primitive that byoc's own kernels run, from a copy of `fast`. Errors:
 * BYOC_ENOMEM. */
enum byoc_status byi_prim_wrap_fast(const struct byi_dn_fast *fast,
                                    struct byi_prim **prim,
                                    struct byoc_error *err);

/* Find oneDNN's algorithm for an elementwise function; changes the parameters
 * if oneDNN defines them differently. Returns false if this version lacks it.
 */
bool byi_elt_translate(enum byi_elt alg, float *alpha, float *beta,
                       dnnl_alg_kind_t *kind);
/* Replace ReLU, *alg (enum byi_elt), by a clip from 0 to infinity, which is as
 * fast. All versions: in post-ops of reference implementations, ReLU multiplies
 * negative numbers by a slope of 0. This turns minus infinity into NaN. Some
 * binary operators and all transposed convolutions are reference
 * implementations. */
void byi_elt_replace_relu(int *alg, float alpha, float *beta);
/* oneDNN's algorithm for a binary operator. */
dnnl_alg_kind_t byi_bin_translate(enum byi_bin alg);

#endif
