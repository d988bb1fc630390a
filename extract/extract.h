/* SPDX-License-Identifier: Apache-2.0 */
/* extract/extract.h: turns one region of a model into a separate program, with
 * the inputs that the region has in a run. Reduces this program as long as a
 * test fails.
 */
#ifndef BYI_EXTRACT_H
#define BYI_EXTRACT_H

#include "core/ir/ir.h"

/* Limits on inputs and outputs of a program, and on operands of an operator. A
 * reduced program must have fewer inputs than this. */
enum { BYI_EXTRACT_MAX_IO = 512 };

/* A program and its inputs. @main of m is the region as plain operators. The
 * arena owns the inputs; json, consts and backend belong to the caller. */
struct byi_extract {
    struct byi_module *m;
    struct byi_arena *arena; /* of the inputs */
    uint32_t n_in;
    const struct byi_tensor *in;
    const char *backend; /* of the region, for README.md; or NULL */
    /* the region as its backend receives it; NULL after a reduction */
    const struct byi_text *json;
    uint32_t n_consts;
    const struct byi_tensor *consts;
};
/* Free m and the arena, and set *x to zeros. */
void byi_extract_free(struct byi_extract *x);

/* --- region.c ------------------------------------------------------------- */

/* Convert a region ("byoc-graph" JSON) to a module, which the caller frees;
 * consts[i] is constant i of the JSON, and is copied. On an error *m is NULL.
 * Errors: those of byi_graph_read; BYOC_EPARSE (a constant that does not exist
 * or has another size); BYOC_EINVAL (a symbolic dim); BYOC_EUNSUPPORTED (an
 * `if`). */
enum byoc_status byi_region_module(const char *json, size_t n,
                                   const struct byi_tensor *consts,
                                   uint32_t n_consts, struct byi_module **m,
                                   struct byoc_error *err);

/* A deep copy of the attributes in `arena`. */
const struct byi_attrs *byi_attrs_copy(struct byi_arena *arena,
                                       const struct byi_attrs *attrs);

/* --- folder.c ------------------------------------------------------------- */

/* Remove a folder and the files in it; errors are ignored, and a folder with
 * subfolders stays. */
void byi_folder_remove(const char *folder);
/* Write the program to a new folder: region.ir and region.consts; unless
 * x->json is NULL, region.json and const_K.npy as the backend gets them;
 * input_K.npy, the outputs of native kernels as output_K.npy, README.md. The
 * folder is written under another name, then renamed, so that it is complete or
 * missing. Errors: BYOC_EIO (`folder` exists, or cannot be written), those of
 * running the program. */
enum byoc_status byi_extract_write(const struct byi_extract *x,
                                   const char *folder, struct byoc_error *err);

/* --- reduce.c ------------------------------------------------------------- */

/* Options and results of a reduction. */
struct byi_region_reduction {
    const char *test;   /* command for sh -c, run in the program's folder */
    uint32_t max_tests; /* 0: 500 */
    double seconds;     /* limit of one test; 0: 60 */
    /* NULL, or called at the start and after each change that is kept, with a
     * line about the program's size */
    void (*progress)(void *ctx, const char *line);
    void *progress_ctx;
    uint32_t n_tests; /* out: tests that ran */
    int code;         /* out: the test's exit code, or 128 + its signal */
};
/* Reduce the program as long as the test fails with the same exit code as on
 * the whole region. Tries to drop operators, replace computed values by inputs,
 * and choose smaller sizes and simpler values (delta debugging: A. Zeller, R.
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
 * Deterministic if the test is. The caller then frees x with byi_extract_free;
 * its old program is freed here. On an error x is unchanged. Errors:
 * BYOC_EINVAL (the test succeeds, or does not end in time), BYOC_EUNSUPPORTED
 * (the program has an `if` or too many inputs), those of writing. */
enum byoc_status byi_extract_reduce(struct byi_extract *x,
                                    struct byi_region_reduction *r,
                                    struct byoc_error *err);

#endif
