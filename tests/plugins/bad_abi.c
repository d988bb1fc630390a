/* bad_abi.c: made for a version of the header that is not ours. */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND, .abi = 77};

QUERY(&backend)
