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
    const char *verdict; /* of the gates */
    struct byi_coverage coverage;
    uint32_t n_added; /* how many passes of the list the caller has added */
    struct byi_by_cost by_cost;
    struct byi_narrow_list narrowing;
    char *cc;
    char *keep_c;
    /* as which the artifact stores float32 constants that it holds exactly;
     * BYOC_NONE: as they are */
    enum byoc_dtype store;
    /* loaded with these, for the first caller that needs it */
    struct byoc_model *tried;
    uint32_t tried_threads;
    const char *tried_plugins;
};

/* The module after the last pass, and what is offloaded; c's. */
const struct byi_module *byi_compiled_module(const struct byoc_compiled *c);
const struct byi_coverage *byi_compiled_coverage(const struct byoc_compiled *c);

/* Plan, weights, blobs and ledger, as for loading; owned by c. */
struct byi_image byi_compiled_image(const struct byoc_compiled *c);

/* A model: a file, or bytes that stand for it. */
struct byi_given {
    const char *path;
    const void *data; /* NULL: in the file */
    uint64_t bytes;
};

/* pipeline.c: an empty result. */
struct byoc_compiled *byi_compiled_new(
    const struct byoc_compile_params *params);
/* described.c: record in the ledger which implementations the regions use,
 * where their backend tells. */
void byi_record_implementations(struct byoc_compiled *c);
/* Compile in this process, without those that fell before. *c is freed by the
 * caller, also on failure. */
enum byoc_status byi_compile_here(const struct byi_given *given,
                                  const struct byoc_compile_params *params,
                                  const struct byi_crashed_backend *crashed,
                                  uint32_t n_crashed, struct byoc_compiled **c,
                                  struct byoc_error *err);
/* isolated.c: the same in a child process; once more without a backend whose
 * call it did not survive. Errors: those, and BYOC_EBACKEND. */
enum byoc_status byi_compile_isolated(const struct byi_given *given,
                                      const struct byoc_compile_params *params,
                                      struct byoc_compiled **c,
                                      struct byoc_error *err);

/* pipeline.c: read the parameters of a caller, of any struct_size. */
enum byoc_status byi_compile_params_read(
    struct byoc_compile_params *params, const struct byoc_compile_params *given,
    struct byoc_error *err);

#endif
