/* SPDX-License-Identifier: Apache-2.0 */
/* bound.h: the records of the runs of regions, from the recorder
 * (bound_recorder.c) to the program (bound.c). The plug-in owns the objects.
 */
#ifndef BYI_BOUND_H
#define BYI_BOUND_H

#include <byoc/backend.h>

/* A region's run, in the order of the model. */
struct bound_call {
    void *compiled;                  /* struct byi_program */
    void *state;                     /* struct byi_exec    */
    const struct byoc_view *outputs; /* as long as the model's state */
};

/* Exported by the recorder under the name of BOUND_RECORD. The program clears
 * it before a run of the model. */
struct bound_record {
    struct bound_call *at;
    uint32_t n, cap;
    uint64_t ns; /* spent in the plug-in */
};
#define BOUND_RECORD "bound_record"

#endif
