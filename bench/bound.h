/* SPDX-License-Identifier: Apache-2.0 */
/* bound.h: the records of runs of regions that the recorder (bound_recorder.c)
 * writes and the program (bound.c) reads. oneDNN's plug-in owns the compiled
 * regions and the states that the records point to.
 */
#ifndef BYI_BOUND_H
#define BYI_BOUND_H

#include <byoc/backend.h>

/* One run of a region. */
struct bound_call {
    void *compiled;                  /* struct byi_program */
    void *state;                     /* struct byi_exec    */
    const struct byoc_view *outputs; /* valid as long as the model's state */
};

/* The runs of regions in a run of the model, in order. The recorder exports it
 * as the symbol BOUND_RECORD; the program clears it before each run. */
struct bound_record {
    struct bound_call *at;
    uint32_t n, cap;
    uint64_t ns; /* sum of the times in oneDNN's plug-in */
};
#define BOUND_RECORD "bound_record"

#endif
