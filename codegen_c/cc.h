/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/cc.h: the compiler driver of the machine (cc, gcc, clang), run in a
 * folder that is gone afterwards. Nothing of the folder's name gets into what
 * it makes.
 */
#ifndef BYI_CC_H
#define BYI_CC_H

#include "core/base/base.h"

#include <sys/types.h>

/* Set `seconds` and `bytes` where what is compiled is not ours. */
struct byi_cc {
    const char *command; /* may hold options: "gcc -m64" */
    char *folder;        /* where it runs */
    double seconds;      /* that a run may take; 0: however long        */
    uint64_t bytes;      /* of address space for a process; 0: any number */
};

/* A run of it, under way. Zero-initialise, then name the log. */
struct byi_cc_run {
    const char *log; /* a file of the folder: what it says */
    pid_t pid;       /* and its process group */
    struct byi_temp *listed;
    uint64_t began;
};

/* Make a folder whose name begins with `prefix`; cc NULL: $CC, then "cc".
 * Errors: BYOC_EIO. */
enum byoc_status byi_cc_open(struct byi_cc *cc, const char *prefix,
                             const char *command, struct byoc_error *err);
/* Remove the folder with all files in it. */
void byi_cc_close(struct byi_cc *cc);

/* The path of a file of the folder, to be freed; NULL: no memory. */
char *byi_cc_path(const struct byi_cc *cc, const char *name);
FILE *byi_cc_file(const struct byi_cc *cc, const char *name, const char *mode);
/* Errors: BYOC_EIO. */
enum byoc_status byi_cc_write(const struct byi_cc *cc, const char *name,
                              const void *data, size_t n,
                              struct byoc_error *err);
enum byoc_status byi_cc_read(const struct byi_cc *cc, const char *name,
                             struct byi_text *data, struct byoc_error *err);

/* Start it with `options`, words between spaces. Errors: BYOC_EIO. */
enum byoc_status byi_cc_start(const struct byi_cc *cc, const char *options,
                              struct byi_cc_run *run, struct byoc_error *err);
/* Wait for a run that was started, or not. Returns `before` where that is a
 * failure, else BYOC_EIO where the run failed, with what it said on one line;
 * its log has the lines. */
enum byoc_status byi_cc_finish(const struct byi_cc *cc, struct byi_cc_run *run,
                               enum byoc_status before, struct byoc_error *err);

#endif
