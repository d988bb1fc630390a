/* cli/pipeline.h: the passes of a compile, by name. */
#ifndef BYI_PIPELINE_H
#define BYI_PIPELINE_H

#include "core/core.h"

/* The pass of that name; NULL when there is none. */
const struct byi_pass *byi_pipeline_pass(const char *name);
/* Every pass, ending in NULL, in the order of a compile. */
const struct byi_pass *const *byi_pipeline_passes(void);

#endif
