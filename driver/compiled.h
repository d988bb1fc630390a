/* SPDX-License-Identifier: Apache-2.0 */
/* compiled.h: what a compile has come to: pipeline.c fills it, compiled.c
 * writes it, loads it and says what became of the model.
 */
#ifndef BYI_COMPILED_H
#define BYI_COMPILED_H

#include <byoc/byoc.h>

#include "compile/image.h"
#include "compile/passes.h"
#include "report/ledger.h"
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
    uint32_t n_added; /* passes of the list that the caller adds, from 1 on */
    struct byi_by_cost by_cost;
    char *cc;
    char *keep_c;
    struct byoc_model *tried; /* loaded with these, for the first to ask */
    uint32_t tried_threads;
    const char *tried_plugins;
};

/* The module after the last pass, and the closed ledger; c's. */
const struct byi_module *byi_compiled_module(const struct byoc_compiled *c);
const struct byi_ledger *byi_compiled_ledger(const struct byoc_compiled *c);

/* Plan, weights, blobs and ledger as they are loaded; they stay c's. */
struct byi_image byi_compiled_image(const struct byoc_compiled *c);

/* pipeline.c: the parameters of a caller, of any struct_size. */
enum byoc_status byi_compile_params_read(
    struct byoc_compile_params *params, const struct byoc_compile_params *given,
    struct byoc_error *err);

#endif
