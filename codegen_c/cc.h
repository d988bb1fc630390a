/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/cc.h: runs a compiler driver (cc, gcc, clang) in a temporary
 * folder, so that its output does not depend on the folder's name.
 */
#ifndef BYI_CC_H
#define BYI_CC_H

#include "core/base/child.h"

#include <sys/types.h>

/* A compiler driver and its folder. Zero-initialise; to compile untrusted
 * source, set `seconds` and `bytes`. */
struct byi_cc {
    const char *command; /* may contain options, as in "gcc -m64" */
    char *folder;        /* the working folder of its runs */
    double seconds;      /* limit of a run; 0: none */
    uint64_t bytes;      /* limit of a process's address space; 0: none */
};

/* A run of the driver. Zero-initialise, then set `output` and `log`: names of
 * files in the folder, for the driver's result and its standard error. */
struct byi_cc_run {
    const char *output, *log;
    pid_t pid; /* also the id of its process group; 0: not started */
    struct byi_temp *entry;     /* its entry for core/base/temp.h */
    struct byi_child_time time; /* its time limit */
};

/* Make a folder whose name begins with `prefix`, and choose the driver:
 * `command`; if NULL, $CC; if not set, "cc". cc->command points to this text.
 * Close *cc with byi_cc_close. Errors: BYOC_EIO. */
enum byoc_status byi_cc_open(struct byi_cc *cc, const char *prefix,
                             const char *command, struct byoc_error *err);
/* Remove the folder and its files; does nothing if there is no folder. */
void byi_cc_close(struct byi_cc *cc);

/* The path of file `name` of the folder, which the caller frees; NULL: out of
 * memory. */
char *byi_cc_path(const struct byi_cc *cc, const char *name);
/* Open file `name` of the folder, which the caller closes. NULL if fopen() or
 * an allocation fails. */
FILE *byi_cc_file(const struct byi_cc *cc, const char *name, const char *mode);
/* Write n bytes to file `name` of the folder. Errors: BYOC_EIO. */
enum byoc_status byi_cc_write(const struct byi_cc *cc, const char *name,
                              const void *data, size_t n,
                              struct byoc_error *err);
/* Append the content of file `name` of the folder to `data`. Errors: BYOC_EIO,
 * BYOC_ENOMEM. */
enum byoc_status byi_cc_read(const struct byi_cc *cc, const char *name,
                             struct byi_text *data, struct byoc_error *err);

/* Start the driver with `options`, separated by spaces, and -o; then call
 * byi_cc_finish. Several runs may be active. Errors: BYOC_EIO. */
enum byoc_status byi_cc_start(const struct byi_cc *cc, const char *options,
                              struct byi_cc_run *run, struct byoc_error *err);
/* Wait until a run ends, if it was started. Returns `earlier` if that is a
 * failure or the run succeeds and wrote its output; otherwise BYOC_EIO, with
 * the log as one line. */
enum byoc_status byi_cc_finish(const struct byi_cc *cc, struct byi_cc_run *run,
                               enum byoc_status earlier,
                               struct byoc_error *err);

#endif
