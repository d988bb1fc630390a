/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h: the kinds of machines that artifacts are compiled for. */
#ifndef BYI_MACHINE_H
#define BYI_MACHINE_H

#include "base.h"

/* The fused kernels are compiled once for each level, lowest first. On x86-64,
 * even levels[0] requires SSE4.2. */
struct byi_machine_level {
    const char *name;    /* "avx2" */
    const char *options; /* of the C compiler, for this level */
};

/* A kind of machine, with its levels. */
struct byi_machine {
    const char *name; /* "aarch64", in --target and in the manifest */
    const char *cc;   /* the cross compiler's name; NULL: unknown */
    uint16_t elf;     /* e_machine */
    uint32_t n_levels;
    const struct byi_machine_level *levels;
};

/* The machine that this process runs on. */
const struct byi_machine *byi_machine_host(void);
/* Find a machine by its name; NULL or "" is the host. Errors: BYOC_EINVAL,
 * which lists the names. */
enum byoc_status byi_machine_find(const char *name,
                                  const struct byi_machine **machine,
                                  struct byoc_error *err);

#endif
