/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/measure.h: times modules as an artifact would run them. It uses the
 * same passes, fused groups as compiled C, the backends' plug-ins, and as many
 * threads as the user requests.
 */
#ifndef BYI_MEASURE_H
#define BYI_MEASURE_H

#include "compile/image.h"
#include "core/base/clock.h"

/* Shared by all measurements of one compile. */
struct byi_meter {
    const struct byi_found_backends *found;
    const struct byi_pass_context *ctx; /* the user's options of passes  */
    uint32_t threads;                   /* as in byoc_load_params        */
    const char *plugins, *cc; /* list of plug-ins; C compiler; or NULL */
    struct byi_arena *arena;
    /* the C compiler failed: groups ran operator by operator, as models in
     * memory do */
    bool no_compiler;
    struct byi_text compiler_error; /* the error of the C compiler; freed by the
                                     * caller */
};

/* Partition `m` for these backends (NULL: all nodes stay native) and fuse the
 * native rest, as a compile does after its simplifying passes. */
enum byoc_status byi_meter_passes(const struct byi_meter *meter,
                                  struct byi_module *m,
                                  struct byi_backends *backends,
                                  struct byoc_error *err);

/* The compiled fused groups of a module. Zero-initialise. */
struct byi_compiled_groups {
    struct byi_kernels kernels;
    struct byi_code_library library;
    bool has_code;
};
/* Compile the fused groups of m in a temporary folder in $TMPDIR, as *groups,
 * which the caller frees. If that fails, sets meter->no_compiler, and groups
 * run operator by operator. */
void byi_meter_compile(struct byi_meter *meter, const struct byi_module *m,
                       struct byi_compiled_groups *groups);
/* Unload the code and free the kernels; *groups may be zero. */
void byi_compiled_groups_free(struct byi_compiled_groups *groups);

/* A loaded model: one of the placements that are timed against each other. */
struct byi_alternative {
    struct byi_built_model built;
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor *outputs; /* in the meter's arena */
    uint32_t n_outputs;
    /* set by byi_alternatives_time: */
    double us;    /* of one run */
    double noise; /* spread of its rounds, relative to `us` */
};
/* Load `m`, whose fused groups are `groups`; both must outlive *a, which the
 * caller closes. On an error *a is closed already. Errors: those of building
 * and loading; BYOC_EBACKEND if a backend cannot load a region. */
enum byoc_status byi_alternative_open(const struct byi_meter *meter,
                                      const struct byi_module *m,
                                      const struct byi_compiled_groups *groups,
                                      struct byi_alternative *a,
                                      struct byoc_error *err);
/* Free the model and its state; *a may be zero. */
void byi_alternative_close(struct byi_alternative *a);

/* Run n alternatives, one or more, in turn on the same random inputs and set
 * their times. A time is CPU time of this thread, or wall time if it sleeps.
 * Takes `seconds`, less if the winner is certain, more if a few rounds take
 * longer. Symbolic dims are 1 or, if the model does not accept that, 2 or 64.
 * Fails if an alternative cannot run: *failed is its index. */
enum byoc_status byi_alternatives_time(struct byi_alternative *const *at,
                                       uint32_t n, double seconds,
                                       uint32_t *failed,
                                       struct byoc_error *err);
/* Whether the measured times show which alternative is the fastest. On a busy
 * machine they may differ more from round to round than between alternatives.
 */
bool byi_alternatives_are_decided(struct byi_alternative *const *at,
                                  uint32_t n);

#endif
