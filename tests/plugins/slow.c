/* SPDX-License-Identifier: Apache-2.0 */
/* slow.c: a backend that is slower than native kernels. */
#define BACKEND "slow"
#define WAIT_US 10000.0
#include "timed.h"
