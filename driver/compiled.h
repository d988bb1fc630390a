/* SPDX-License-Identifier: Apache-2.0 */
/* compiled.h: the result of a compile: pipeline.c fills it in; compiled.c
 * writes it, loads it and reports on it.
 */
#ifndef BYI_COMPILED_H
#define BYI_COMPILED_H

#include <byoc/byoc.h>

#include "compile/image.h"
#include "compile/passes.h"
#include "report/ledger.h"
#include "transform/narrow_weights.h"
#include "tuner/by_cost.h"

struct byoc_compiled {
    struct byi_module *m;
    struct byi_arena *arena;
    struct byi_found found;
    struct byi_ledger *ledger;
    struct byi_built built;
    struct byi_text ledger_json, ir, times, warnings;
    struct byi_timing timing;
    struct byi_pass_list list;
    const char *verdict; /* of the gates: NULL if they hold */
    struct byi_coverage coverage;
    uint32_t n_added; /* passes of the list that the caller added         */
    struct byi_by_cost by_cost;
    struct byi_narrow_list narrowing;
    char *cc;
    char *keep_c;
    /* the type in which the artifact stores float32 constants that this type
     * represents exactly; BYOC_NONE: all stay float32 */
    enum byoc_dtype store;
    /* the model that try_regions loaded, with these threads and plug-ins, for
     * the first caller that can use it */
    struct byoc_model *tried;
    uint32_t tried_threads;
    const char *tried_plugins;
};

/* The module after the last pass, and its coverage; both belong to c. */
const struct byi_module *byi_compiled_module(const struct byoc_compiled *c);
const struct byi_coverage *byi_compiled_coverage(const struct byoc_compiled *c);

/* Plan, weights, blobs and ledger, as for loading; owned by c. */
struct byi_image byi_compiled_image(const struct byoc_compiled *c);

/* A model: a file, or its content in memory. */
struct byi_given {
    const char *path;
    const void *data; /* NULL: read the file */
    uint64_t bytes;
};

/* pipeline.c: an empty result. */
struct byoc_compiled *byi_compiled_new(
    const struct byoc_compile_params *params);
/* described.c: record in the ledger which implementations the regions use, if
 * their backend has describe(). */
void byi_record_implementations(struct byoc_compiled *c);
/* Compile in this process, without the `crashed` backends. The caller frees *c,
 * even after an error. */
enum byoc_status byi_compile_here(const struct byi_given *given,
                                  const struct byoc_compile_params *params,
                                  const struct byi_crashed_backend *crashed,
                                  uint32_t n_crashed, struct byoc_compiled **c,
                                  struct byoc_error *err);
/* isolated.c: the same in a child process. If a call of a backend crashes or
 * hangs, compiles again without this backend. Errors: also BYOC_EBACKEND. */
enum byoc_status byi_compile_isolated(const struct byi_given *given,
                                      const struct byoc_compile_params *params,
                                      struct byoc_compiled **c,
                                      struct byoc_error *err);

/* pipeline.c: read the parameters of a caller, of any struct_size. */
enum byoc_status byi_compile_params_read(
    struct byoc_compile_params *params, const struct byoc_compile_params *given,
    struct byoc_error *err);

#endif
