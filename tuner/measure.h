/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/measure.h: running modules and parts of them to see how long they
 * take, as an artifact would run them: the same passes, fused groups as
 * compiled C, the vendors' plug-ins, the threads of the compile.
 */
#ifndef BYI_MEASURE_H
#define BYI_MEASURE_H

#include "compile/image.h"

/* What the measuring of one compile shares. */
struct byi_meter {
    const struct byi_found *found;
    const struct byi_pass_context *ctx; /* what the user asked of passes */
    uint32_t threads;
    const char *plugins, *cc;
    struct byi_arena *arena;
    bool no_compiler; /* C could not be compiled: groups ran operator by
                         operator, as models in memory do            */
    struct byi_text why_none;
};

/* Partition `m` for these vendors, and fuse what stays native: what a compile
 * does behind its cleaning up. */
enum byoc_status byi_meter_passes(const struct byi_meter *meter,
                                  struct byi_module *m,
                                  struct byi_vendors *vendors,
                                  struct byoc_error *err);

/* The fused groups of a module, compiled. Zero-initialise. */
struct byi_compiled_groups {
    struct byi_kernels kernels;
    struct byi_code_library library;
    bool has_code;
};
/* Compile them, in a folder of $TMPDIR that is gone afterwards. Where that
 * cannot be, meter->no_compiler is set, and they run operator by operator. */
void byi_meter_compile(struct byi_meter *meter, const struct byi_module *m,
                       struct byi_compiled_groups *groups);
void byi_compiled_groups_free(struct byi_compiled_groups *groups);

/* A module's entry, loaded. Zero-initialise. */
struct byi_contender {
    struct byi_built built;
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor *outputs;
    uint32_t n_outputs;
    double us; /* of one run, once it was timed */
};
/* Load `m`, whose fused groups are `groups`. Errors: those of building and
 * loading; BYOC_EBACKEND where a vendor cannot load a region. */
enum byoc_status byi_contender_open(const struct byi_meter *meter,
                                    const struct byi_module *m,
                                    const struct byi_compiled_groups *groups,
                                    struct byi_contender *c,
                                    struct byoc_error *err);
void byi_contender_close(struct byi_contender *c);

/* Run these in turn on the same made-up inputs, for `seconds` and as many
 * rounds as it takes to tell them apart, at most four times as long where other
 * processes disturb it, and set their `us`. One that cannot run makes it fail:
 * *failed is its index. */
enum byoc_status byi_contenders_time(struct byi_contender *const *at,
                                     uint32_t n, double seconds,
                                     uint32_t *failed, struct byoc_error *err);
/* Seconds of a clock that only goes forward. */
double byi_meter_now(void);

#endif
