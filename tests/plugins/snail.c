/* SPDX-License-Identifier: Apache-2.0 */
/* snail.c: a backend that is slower than native kernels. */
#define BACKEND "snail"
#define WAIT_US 10000.0
#include "timed.h"
