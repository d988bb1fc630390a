/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer_dnnl.h: what the files of the layer share: oneDNN's
 * header, and its two notions of a memory descriptor (2.x: a struct, passed by
 * address; 3.x: a handle).
 */
#ifndef BYI_LAYER_DNNL_H
#define BYI_LAYER_DNNL_H

#include <stdatomic.h>

#include <dnnl.h>

#include "runtime_dnnl/layer.h"

#define BYI_V3 (DNNL_VERSION_MAJOR >= 3)

struct byi_dnnl {
    dnnl_engine_t engine;
};

struct byi_prim {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim; /* NULL until built */
    atomic_uint users;     /* references but the first */
    const char *impl;      /* owned by pd */
    const void *note;      /* the caller's */
    int64_t slopes;        /* of the prelu among its post-ops: how many;
                              oneDNN tells nothing of that argument */
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

enum byoc_status byi_md_make(const struct byi_desc *given,
                             enum byi_unit_axes units, struct byi_md *md,
                             struct byoc_error *err);
void byi_md_drop(struct byi_md *md);

/* The descriptors a creator needs and its attributes, made and dropped
 * together. */
enum { BYI_MAX_MDS = 9 };
struct byi_pieces {
    struct byi_md md[BYI_MAX_MDS];
    uint32_t n;
    dnnl_primitive_attr_t attr;
    int64_t slopes; /* as in struct byi_prim */
};
enum byoc_status byi_pieces_make(struct byi_pieces *pieces, uint32_t n,
                                 const struct byi_desc *const *desc,
                                 const struct byi_posts *posts,
                                 enum byi_unit_axes units,
                                 struct byoc_error *err);
void byi_pieces_drop(struct byi_pieces *pieces);

/* What a guard said: UNSUPPORTED with its sentence, or OK for NULL. */
enum byoc_status byi_guard_status(const char *why, struct byoc_error *err);

#if !BYI_V3
/* The end of every creator of 2.x: the primitive descriptor of the operation
 * descriptor `op`, whose making gave `status`. */
dnnl_status_t byi_pd_make(dnnl_status_t status, const void *op,
                          const struct byi_pieces *pieces,
                          const struct byi_dnnl *lib,
                          dnnl_primitive_desc_t *pd);
#endif

/* The end of every creator: drops the pieces, wraps pd or turns `status` into
 * a message about `what`. */
enum byoc_status byi_prim_wrap(dnnl_status_t status, dnnl_primitive_desc_t pd,
                               struct byi_pieces *pieces, const char *what,
                               struct byi_prim **prim, struct byoc_error *err);

/* oneDNN's number of an elementwise function, and its parameters where they
 * are spelt in another way; false when this version has none. */
bool byi_elt_translate(enum byi_elt alg, float *alpha, float *beta,
                       dnnl_alg_kind_t *kind);
dnnl_alg_kind_t byi_bin_translate(enum byi_bin alg);

#endif
