/* SPDX-License-Identifier: Apache-2.0 */
/* extract/extract.h: one region of a model as a program of its own, with the
 * numbers it sees there; and that program made smaller.
 */
#ifndef BYI_EXTRACT_H
#define BYI_EXTRACT_H

#include "core/ir/ir.h"

enum { BYI_EXTRACT_MAX_IO = 512 };

/* A program and its inputs. @main of m is the region as plain operators. */
struct byi_extract {
    struct byi_module *m;
    struct byi_arena *arena; /* of the inputs */
    uint32_t n_in;
    const struct byi_tensor *in;
    const char *backend; /* that the region is for; named in written files */
    /* the region as its backend receives it; NULL after a reduction */
    const struct byi_text *json;
    uint32_t n_consts;
    const struct byi_tensor *consts;
};
void byi_extract_free(struct byi_extract *x);

/* --- region.c ------------------------------------------------------------- */

/* A region ("byoc-graph") as a module; consts[i] is the constant that the text
 * calls i. Errors: those of byi_graph_read; BYOC_EUNSUPPORTED (an `if`). */
enum byoc_status byi_region_module(const char *json, size_t n,
                                   const struct byi_tensor *consts,
                                   uint32_t n_consts, struct byi_module **m,
                                   struct byoc_error *err);

/* The same attributes, with all that they point to, in `arena`. */
const struct byi_attrs *byi_attrs_copy(struct byi_arena *arena,
                                       const struct byi_attrs *attrs);

/* --- folder.c ------------------------------------------------------------- */

/* Remove a folder and the files in it. */
void byi_folder_remove(const char *folder);
/* Write the program to a new folder: region.ir and its constants, region.json
 * and const_K.npy as the backend gets them, input_K.npy, output_K.npy as native
 * kernels make them, README.md. Written aside, then renamed. Errors: BYOC_EIO
 * (`folder` is there already, or cannot be written), those of running it. */
enum byoc_status byi_extract_write(const struct byi_extract *x,
                                   const char *folder, struct byoc_error *err);

/* --- reduce.c ------------------------------------------------------------- */

struct byi_reduce {
    const char *test;   /* for sh -c, run in the folder; must fail */
    uint32_t max_tests; /* 0: 500   */
    double seconds;     /* for one test; 0: 60 */
    void (*say)(void *ctx, const char *line); /* of every step; or NULL */
    void *say_ctx;
    uint32_t n_tests; /* out */
    int code;         /* out: the test's exit code */
};
/* Make the program smaller while the test still fails with the code it has at
 * first: fewer operators, inputs in the place of what computes them, smaller
 * sizes, simpler numbers (delta debugging: A. Zeller, R. Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input", 2002). The same program
 * and a test that answers the same, the same result. Errors: BYOC_EINVAL (the
 * test does not fail), those of writing. */
enum byoc_status byi_extract_reduce(struct byi_extract *x, struct byi_reduce *r,
                                    struct byoc_error *err);

#endif
