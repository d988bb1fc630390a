/* cli/passes.h: the passes by name, and those of a compile. */
#ifndef BYI_PASSES_H
#define BYI_PASSES_H

#include "core/core.h"

/* The pass of that name; NULL when there is none. */
const struct byi_pass *byi_pass_find(const char *name);
/* Every pass once, ending in NULL. */
const struct byi_pass *const *byi_passes_known(void);
/* The passes of a compile in their order, ending in NULL. */
const struct byi_pass *const *byi_passes_pipeline(void);

#endif
