/* SPDX-License-Identifier: Apache-2.0 */
/* driver/compiled.h: the result of a compile: pipeline.c fills it in;
 * compiled.c writes it, loads it and reports on it.
 */
#ifndef BYI_COMPILED_H
#define BYI_COMPILED_H

#include <byoc/byoc.h>

#include "compile/image.h"
#include "compile/passes.h"
#include "report/ledger.h"
#include "transform/narrow_weights.h"
#include "transform/to_mixed_precision.h"
#include "tuner/by_cost.h"

/* See byoc.h. Holds the state of a compile while it runs, and its result
 * afterwards. */
struct byoc_compiled {
    struct byi_module *m;
    struct byi_arena *arena;         /* of the strings below */
    struct byi_found_backends found; /* the backends and their plug-ins */
    struct byi_ledger *ledger;
    struct byi_built_model built; /* plan, blobs and kernels */
    /* texts of the API, made at the end or on first use */
    struct byi_text ledger_json, ir, times, warnings;
    struct byi_timing timing;
    struct byi_pass_list pass_list; /* the passes to run */
    const char *verdict;            /* which gates fail, and why; NULL: none */
    struct byi_coverage coverage;
    uint32_t n_added; /* passes of pass_list that the caller added */
    struct byi_cost_partition by_cost;
    struct byi_narrow_list narrowing;
    struct byi_mixed_precision precision;
    char *cc;     /* the C compiler, as in byoc_compile_params */
    char *keep_c; /* the folder for generated C; NULL: not kept */
    /* the type in which the artifact stores float32 constants that this type
     * represents exactly; BYOC_NONE: all stay float32 */
    enum byoc_dtype store;
    /* the model that byi_try_regions loaded, with these threads and plug-ins,
     * for the first byoc_compiled_load whose parameters it fits; or NULL */
    struct byoc_model *preloaded;
    uint32_t preloaded_threads;
    const char *preloaded_plugins;
};

/* Returns the module after the last pass, and its coverage; both belong to c.
 */
const struct byi_module *byi_compiled_module(const struct byoc_compiled *c);
const struct byi_coverage *byi_compiled_coverage(const struct byoc_compiled *c);

/* Returns the image from which the runtime loads c: plan, weights, blobs and
 * ledger. Its pointers are valid until c is freed. */
struct byi_image byi_compiled_image(const struct byoc_compiled *c);

/* The model to compile: a file, or its content in memory. The caller owns what
 * the pointers refer to. */
struct byi_model_source {
    const char *path; /* with `data`: a name, whose end gives the format */
    const void *data; /* NULL: read the file */
    uint64_t bytes;   /* of `data` */
};

/* pipeline.c: make an empty result, which byoc_compiled_free frees. It copies
 * the strings that it keeps of `params`. */
struct byoc_compiled *byi_compiled_new(
    const struct byoc_compile_params *params);
/* implementations.c: record in the ledger which implementations the regions
 * use, if their backend has describe(). */
void byi_record_implementations(struct byoc_compiled *c);
/* try_regions.c: load the image, and set the fault of each region that fails.
 * Keeps the model as c->preloaded if all regions load. */
enum byoc_status byi_try_regions(struct byoc_compiled *c,
                                 const struct byoc_compile_params *params,
                                 struct byoc_error *err);
/* pipeline.c: compile in this process, without the `crashed` backends. The
 * caller frees *c, even after an error. */
enum byoc_status byi_compile_here(const struct byi_model_source *source,
                                  const struct byoc_compile_params *params,
                                  const struct byi_crashed_backend *crashed,
                                  uint32_t n_crashed, struct byoc_compiled **c,
                                  struct byoc_error *err);
/* isolated.c: compile in a child process. If a call of a backend crashes or
 * hangs, compiles again without this backend. *c must be NULL before. Further
 * errors: BYOC_EBACKEND, if the child crashes outside of such calls or sends a
 * malformed result; BYOC_EIO, if no child can be started. */
enum byoc_status byi_compile_isolated(const struct byi_model_source *source,
                                      const struct byoc_compile_params *params,
                                      struct byoc_compiled **c,
                                      struct byoc_error *err);

/* pipeline.c: copy a caller's parameters, of any struct_size or NULL, and set
 * fields beyond it to 0. Errors: BYOC_EINVAL for an invalid size or enum. */
enum byoc_status byi_compile_params_read(
    struct byoc_compile_params *params, const struct byoc_compile_params *given,
    struct byoc_error *err);

#endif
