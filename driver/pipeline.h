/* driver/pipeline.h: what the library's own files see of a compile. */
#ifndef BYI_PIPELINE_H
#define BYI_PIPELINE_H

#include <byoc/byoc.h>

#include "partition/ledger.h"

/* The module after the last pass, and the closed ledger. */
const struct byi_module *byi_compiled_module(const struct byoc_compiled *c);
const struct byi_ledger *byi_compiled_ledger(const struct byoc_compiled *c);

#endif
