/* SPDX-License-Identifier: Apache-2.0 */
/* snail.c: slower than anything native. */
#define VENDOR "snail"
#define WAIT_US 10000.0
#include "timed.h"
