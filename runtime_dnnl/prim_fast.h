/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_fast.h: primitives that byoc's own kernels run. */
#ifndef BYI_PRIM_FAST_H
#define BYI_PRIM_FAST_H

#include "kernels/conv.h"
#include "runtime_dnnl/build.h"

struct byi_dn_fast {
    struct byi_f32_conv conv;
    bool sums;  /* its first post-op adds to the destination  */
    bool packs; /* packs the weights of `conv`, laid out so:  */
    struct byi_desc src;
    int threads; /* that a run may use                         */
};

/* An argument of a call. */
struct byi_dn_fast_slot {
    int arg; /* enum byi_arg */
    void *data;
};

/* Describe the primitive; false if oneDNN should run it. */
bool byi_dn_fast_conv(const struct byi_dnnl_conv *p,
                      const struct byi_posts *posts, struct byi_dn_fast *fast);
bool byi_dn_fast_matmul(const struct byi_dnnl_matmul *p,
                        const struct byi_posts *posts,
                        struct byi_dn_fast *fast);
/* The one that packs `src` for `conv`. */
void byi_dn_fast_pack(const struct byi_dn_fast *conv,
                      const struct byi_desc *src, struct byi_dn_fast *pack);

const char *byi_dn_fast_impl(const struct byi_dn_fast *fast);
uint64_t byi_dn_fast_scratch(const struct byi_dn_fast *fast);
uint64_t byi_dn_fast_packed(const struct byi_dn_fast *fast);
/* Do the two want, or make, the same packed weights? */
bool byi_dn_fast_same(const struct byi_dn_fast *a, const struct byi_dn_fast *b);
void byi_dn_fast_run(const struct byi_dn_fast *fast, uint32_t n,
                     const struct byi_dn_fast_slot *slots, void *scratch);

#endif
