/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/table.h: declares the rows of runtime_dnnl/patterns.def as a
 * table of builders. */
#ifndef BYI_DNNL_TABLE_H
#define BYI_DNNL_TABLE_H

#include "core/base/base.h"
#include "runtime_dnnl/patterns.h"

struct byi_build;

/* kernels_*.c: the builders that runtime_dnnl/patterns.def names. */
#define ROW(name, operators, operands, posts, accept, build)                   \
    enum byoc_status byi_dn_build_##build(struct byi_build *b);
#include "runtime_dnnl/patterns.def"

/* The steps that may follow step 0 in a match of the row. */
enum byi_dn_following {
    BYI_DN_NOTHING,
    BYI_DN_POSTS,
    BYI_DN_ATTENDS /* attention's steps, which must follow */
};

/* A row of the table; a missing builder is a link error. */
struct byi_dn_row {
    const char *name;
    const char *operators; /* alternatives for step 0, separated by "|" */
    enum byi_dn_following following;
    enum byoc_status (*build)(struct byi_build *b);
};
extern const struct byi_dn_row byi_dn_rows[]; /* walk.c */
extern const uint32_t byi_dn_n_rows;
/* Whether the row accepts the operator as step 0. */
bool byi_dn_row_has(const struct byi_dn_row *row, const char *operator);

#endif
