/* patterns/dnnl.h: oneDNN's table, for its plug-in. */
#ifndef BYI_PATTERNS_DNNL_H
#define BYI_PATTERNS_DNNL_H

#include <byoc/backend.h>

extern const struct byoc_pattern byi_dnnl_patterns[];
extern const uint32_t byi_dnnl_n_patterns;

#endif
